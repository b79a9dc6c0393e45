//! Settings of the simulated world, except those of its web: the crawler's access line, its CPU
//! core, the faults.

use std::time::Duration;

/// The description of a simulated world.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Periods in which hosts can't be reached.
    pub outages: Vec<Outage>,
    /// The seed of every draw that the web does not make itself.
    pub seed: u64,
    /// The rate of the crawler's access line in bytes per second, all connections together; 0 is
    /// unlimited.
    pub gateway_bytes_per_second: u64,
    /// Bytes that a server sends before it waits for the first acknowledgement (RFC 6928: ten
    /// segments).
    pub window_first_bytes: u32,
    /// The most unacknowledged bytes on one connection.
    pub window_max_bytes: u32,
    /// The faults of network and name servers.
    pub faults: Faults,
    /// The CPU time of the crawler's operations.
    pub core: Core,
    /// The answers of the program that scores pages.
    pub scores: Scores,
    /// How long a job takes on the side thread.
    pub job_time: Duration,
    /// A crawl that exceeds this much virtual time is reported as one that never ends.
    pub time_max: Duration,
}

/// Faults of the network and the name servers. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// The share of bursts that lose a segment: they arrive late, and the next windows are small.
    pub losses: f64,
    /// The share of replies that are interrupted by a reset.
    pub resets: f64,
    /// The share of connections that are refused.
    pub refusals: f64,
    /// The share of look-ups that fail (no answer, or an error of the name server).
    pub dns_failures: f64,
    /// The share of replies that never arrive: the server stops sending without closing.
    pub silences: f64,
    /// When the faults end; `None`: never.
    pub until: Option<Duration>,
}

/// The answers of the program that scores pages. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores {
    /// The longest time that an answer takes; each takes a part of it, so they change their order.
    pub time: Duration,
    /// The share of answers that take `late_time` more.
    pub late: f64,
    /// The time that late answers take more.
    pub late_time: Duration,
    /// The share of pages that are never answered.
    pub never: f64,
    /// The share of pages whose answer is no quality, or that are lost as the program ends.
    pub failed: f64,
    /// The share of pages beside whose answer the program writes lines that answer no page.
    pub odd: f64,
}

/// A period in which hosts can't be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the outage begins, counted from the start of the world.
    pub from: Duration,
    /// How long the outage lasts.
    pub length: Duration,
    /// Which hosts the outage affects.
    pub of: Affected,
    /// How connections and look-ups fail during the outage.
    pub how: Away,
}

/// The hosts that an outage affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affected {
    /// All hosts: the crawler has no network, or its resolver gives wrong answers.
    All,
    /// Hosts of odd numbers. A host that shares its address with an even one stays reachable.
    Half,
    /// The host of this number.
    One(u32),
}

/// How attempts to reach a host fail during an outage. Open connections fall silent and stay so,
/// unless only names are affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Away {
    /// Packets are lost: look-ups time out, and so do connections.
    Silent,
    /// The system reports at once that there is no route.
    Unreachable,
    /// Connections are refused; names resolve.
    Refuses,
    /// The resolver answers that the name does not exist.
    Denied,
    /// The resolver answers that the name has no address.
    Empty,
    /// The resolver answers with an address that must not be connected to.
    Private,
}

impl Away {
    /// Whether the outage affects name look-ups only.
    pub fn is_of_names(self) -> bool {
        matches!(self, Self::Denied | Self::Empty | Self::Private)
    }
}

/// Faults of a disk in memory: see [`super::disk::MemoryDisk::with`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskFaults {
    /// The capacity in bytes, all files together; `None`: unlimited.
    pub room_bytes: Option<u64>,
    /// A prefix of the file names to which the capacity applies, for example a folder; empty by
    /// default: all files.
    pub room_of: &'static str,
    /// What happens to an append that does not fit: true: the part that fits is written; false:
    /// nothing is written.
    pub torn: bool,
    /// The share of syncs that fail.
    pub syncs: f64,
    /// Whether each sync that doesn't fail reports success and still makes nothing durable.
    pub lies: bool,
    /// The seed that decides which syncs fail.
    pub seed: u64,
}

/// A model of the CPU core that crawls: while it works, events wait. Each field is the CPU time of
/// one kind of operation; if all are zero, the core is infinitely fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// For each turn of the loop, in nanoseconds.
    pub turn_ns: u64,
    /// For each connection that is open in a turn, in nanoseconds: the cost of `select`.
    pub watch_ns: u64,
    /// For each connection asked for, in nanoseconds.
    pub connect_ns: u64,
    /// For each TLS handshake, in nanoseconds.
    pub handshake_ns: u64,
    /// For each reply, its request included, in nanoseconds.
    pub reply_ns: u64,
    /// For each byte received, in picoseconds.
    pub byte_ps: u64,
    /// For each byte of text decoded from a content-coded reply, in picoseconds, in addition to
    /// `byte_ps` for the coded bytes.
    pub text_byte_ps: u64,
    /// For each link found, in nanoseconds.
    pub link_ns: u64,
    /// For what a node of a cluster exchanges with its queue. Other crawlers have no such work.
    pub exchange: Exchange,
}

/// The CPU time of what a node of a cluster does in addition to the crawl. Each field is that of
/// one kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// For each link found, in nanoseconds: whose it is, and whether it was sent lately.
    pub link_ns: u64,
    /// For each URL that is published, a link or one that is settled, in nanoseconds.
    pub write_ns: u64,
    /// For each message that is published, in nanoseconds, compression included.
    pub write_message_ns: u64,
    /// For each byte of the messages that are published, in picoseconds, compression included.
    pub write_byte_ps: u64,
    /// For each link that is read from a log, in nanoseconds.
    pub read_ns: u64,
    /// For each settled URL that is read from a log, in nanoseconds.
    pub settled_ns: u64,
    /// For each message that is read, in nanoseconds, decompression included.
    pub read_message_ns: u64,
    /// For each byte of the messages that are read, in picoseconds, decompression included.
    pub read_byte_ps: u64,
    /// For each request to the queue and each event from there, in nanoseconds.
    pub call_ns: u64,
}

impl Exchange {
    /// The costs that `bench/nodes costs` measured on a core of 2026, with messages of 2 KiB and
    /// of 128 KiB (`bench/runs/2026-11-27-nodes`). What a message takes by itself and what its
    /// bytes take follow from the two lengths.
    pub const MEASURED: Self = Self {
        link_ns: 77,
        write_ns: 100,
        // 0.5 us to hand it out, 5.8 us to begin and end a compressed frame.
        write_message_ns: 6_300,
        // 1,190 ps to compress, 60 ps to copy, 30 ps to send what is left of it.
        write_byte_ps: 1_280,
        read_ns: 155,
        settled_ns: 18,
        read_message_ns: 1_100,
        // 510 ps to decompress, and the receiving.
        read_byte_ps: 540,
        // The mean of a call that sends (4.5 us) and one that receives (2.7 us), over loopback.
        call_ns: 3_600,
    };
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            outages: Vec::new(),
            seed: 1,
            gateway_bytes_per_second: 0,
            window_first_bytes: 14_600,
            window_max_bytes: 1 << 20,
            faults: Faults::default(),
            core: Core::default(),
            scores: Scores::default(),
            job_time: Duration::from_millis(10),
            time_max: Duration::from_secs(30 * 24 * 3_600),
        }
    }
}
