//! What the simulated world is like beside the web in it: the crawler's line, its core, the faults.

use std::time::Duration;

/// Description of a simulated world.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Times in which hosts can't be reached.
    pub outages: Vec<Outage>,
    /// Decides every draw that the web doesn't.
    pub seed: u64,
    /// Bytes per second of the crawler's own line, all connections together; 0 is unlimited.
    pub gateway_bytes_per_second: u64,
    /// Bytes a server sends before it waits for the first acknowledgement (RFC 6928: ten segments).
    pub window_first_bytes: u32,
    /// Most bytes under way on one connection.
    pub window_max_bytes: u32,
    /// What comes in the way.
    pub faults: Faults,
    /// What the crawler's core takes for what.
    pub core: Core,
    /// How long a job takes on the side thread.
    pub job_time: Duration,
    /// A crawl that needs more virtual time than this will never end.
    pub time_max: Duration,
}

/// Faults of the network and the name servers. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Share of bursts of which a segment is lost: they come late, and the next ones are small.
    pub losses: f64,
    /// Share of replies that end in a reset somewhere on their way.
    pub resets: f64,
    /// Share of connections that are refused.
    pub refusals: f64,
    /// Share of look-ups that fail (no answer, or the name server's own failure).
    pub dns_failures: f64,
    /// Share of replies that never come: the server falls silent.
    pub silences: f64,
    /// From then on all is well; `None`: never.
    pub until: Option<Duration>,
}

/// A time in which hosts can't be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When it begins.
    pub from: Duration,
    /// How long it takes.
    pub length: Duration,
    /// Which hosts.
    pub of: Affected,
    /// What becomes of those who try.
    pub how: Away,
}

/// Hosts that an outage affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affected {
    /// All: it is the crawler that has no network, or a resolver that lies.
    All,
    /// Those of odd numbers. Whoever shares an address with one of even number is found there.
    Half,
    /// This one.
    One(u32),
}

/// What becomes of those who try to reach a host that is away. Connections that are open fall
/// silent, and stay so, unless only names are affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Away {
    /// Packets are lost: names time out, and so do connections.
    Silent,
    /// The system says at once that there is no way.
    Unreachable,
    /// Nothing listens; names resolve.
    Refuses,
    /// The resolver says that there is no such name.
    Denied,
    /// The resolver says that the name has no address.
    Empty,
    /// The resolver says an address that may not be connected to.
    Private,
}

impl Away {
    /// Whether only the resolver is affected.
    pub fn is_of_names(self) -> bool {
        matches!(self, Self::Denied | Self::Empty | Self::Private)
    }
}

/// Faults of a disk in memory: [`super::disk::MemoryDisk::with`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskFaults {
    /// Bytes of all files together there is room for; `None`: no bound.
    pub room_bytes: Option<u64>,
    /// Beginning of the names that this holds for: a folder's, say; all by default.
    pub room_of: &'static str,
    /// An append that finds too little room leaves what fitted: the system wrote a part of it.
    pub torn: bool,
    /// Share of syncs that fail.
    pub syncs: f64,
    /// A sync says that it is done, and nothing is durable.
    pub lies: bool,
    /// Decides which.
    pub seed: u64,
}

/// A model of the one core that crawls: while it works, events wait. All zero: infinitely fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// For each turn of the loop, nanoseconds.
    pub turn_ns: u64,
    /// For each connection that is open in a turn, nanoseconds: what `select` costs.
    pub watch_ns: u64,
    /// For each connection asked for, nanoseconds.
    pub connect_ns: u64,
    /// For each TLS handshake, nanoseconds.
    pub handshake_ns: u64,
    /// For each reply, its request included, nanoseconds.
    pub reply_ns: u64,
    /// For each byte received, picoseconds.
    pub byte_ps: u64,
    /// For each byte of text decoded, picoseconds, on top.
    pub text_byte_ps: u64,
    /// For each link found, nanoseconds.
    pub link_ns: u64,
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
            job_time: Duration::from_millis(10),
            time_max: Duration::from_secs(30 * 24 * 3_600),
        }
    }
}
