//! The sections of what is kept: `[store]`, `[memory]`, `[state]`, `[disk]`, `[report]`.

use super::target::file_name;
use super::{DAY, HOUR, KIB, MIB, MILLISECOND, MINUTE, SECOND, TIB, section};
use crate::conf::kind::{Kind, choice, count, flag, size, time};
use crate::store::Format;
use crate::store::digest::Algorithm;
use std::time::Duration;

section! {
    /// How fetched pages are archived.
    store: Store {
        /// Format of the archive: "warc" writes WARC 1.1 files with a CDXJ index; "none" writes the
        /// crawl log only.
        ///
        /// "none" discards the pages and keeps only their links.
        format: Format = Format::Warc, formats(), [];

        /// Prefix of the names of archive files.
        ///
        /// A resumed crawl finds its archive by it.
        prefix: String = "sted".into(), file_name(), [Kept];

        /// Compression level of the records: 0 none, 1 fast, 12 small.
        ///
        /// 0 takes four to five times the disk space; above 6 takes more time than the crawl.
        gzip_level: u8 = 1, count(0..=12), [];

        /// Size at which an archive file is closed and the next one begun. Its last record may
        /// exceed it.
        ///
        /// Small makes many files; large makes files that are hard to move.
        file_bytes_max: u64 = 1_000_000_000, size(MIB..=TIB), [];

        /// Hash function of the digests of blocks and payloads.
        ///
        /// "sha1" is what other archives and tools use to compare; "sha256" can't be forged.
        digest: Algorithm = Algorithm::Sha1Base32, digests(), [];

        /// Number of side threads that digest, compress and write what is archived: 0 or 1. 0
        /// leaves that to the loop.
        ///
        /// With a core to spare, 1 relieves the loop of a fifth of its work if pages come
        /// compressed over TLS, of four fifths if they come plain and are compressed here. With one
        /// core it gains nothing. The records are the same.
        threads: usize = 0, count(0..=1), [];

        /// Archive requests, too.
        ///
        /// true adds about 300 bytes a page before compression.
        requests: bool = true, flag(), [];

        /// Archive responses to robots.txt, too.
        ///
        /// false leaves no proof of what was allowed.
        robots: bool = true, flag(), [];

        /// Number of payload digests remembered. A page with the payload of another one is stored
        /// as a revisit record, without its body.
        ///
        /// About 100 bytes each. 0 stores every duplicate in full.
        revisits_max: usize = 1_000_000, count(0..=100_000_000), [];

        /// Size at which crawl.log is rotated: renamed to crawl-00000.log, the next time to
        /// crawl-00001.log, and begun anew. SIGUSR1 rotates it at any time.
        ///
        /// Small makes many files; large makes files that are hard to move. Rotated files, and
        /// crawl.log too, may be moved away or emptied: crawl.parts lists the names in use.
        log_bytes_max: u64 = 1_000_000_000, size(MIB..=TIB), [];

        /// Bytes of archive files, the latest first, that a resumed crawl verifies against their
        /// index. Files without an index are always verified, and all files by `--rebuild`.
        ///
        /// Small leaves damage unnoticed; large delays the start by a second per 250 MB.
        verify_bytes_max: u64 = 256 << 20, size(MIB..=1_024 * TIB), [];

        /// Longest time between fetching a page and syncing it to disk.
        ///
        /// Short syncs the disk more often; long repeats more fetches after a crash.
        sync_period: Duration = 10 * SECOND, time(100 * MILLISECOND..=HOUR), [];

        /// Bytes collected before they are written to a file.
        ///
        /// Small makes more system calls; large takes memory for each open file.
        buffer_bytes: usize = 1 << 20, size(64 * KIB..=64 * MIB), [];
    }
}

section! {
    /// Bounds of what grows with the web. The crawl keeps to them however large the web is.
    memory: Memory {
        /// Bytes of response heads and bodies in memory, over all connections. Beyond three
        /// quarters of it, connections are paused until others have finished their responses.
        ///
        /// It must hold the largest body. Small keeps connections waiting for each other.
        buffers: usize = 256 << 20, size(MIB..=TIB), [];

        /// Bytes of queued URLs in memory. Beyond it the tails of queues are moved to disk.
        ///
        /// Small reads from disk more often. One URL of each queue always stays in memory, about
        /// 120 bytes; the process takes a tenth more than this, and 140 bytes a server.
        queues: usize = 512 << 20, size(MIB..=TIB), [];

        /// Number of queued URLs, in memory and on disk. Beyond it new URLs are counted and
        /// dropped. As many more may wait that are over the budget of their domain
        /// (schedule.budget_max).
        ///
        /// On disk a URL of 40 bytes took 31 to 110 bytes.
        urls_max: usize = 1_000_000_000, count(1_000..=100_000_000_000), [];

        /// Number of queued URLs per server.
        ///
        /// Small loses the ends of large sites; large lets one endless site fill the queues.
        urls_per_server_max: usize = 10_000_000, count(1..=4_000_000_000), [];

        /// Bytes of memory for the test whether a URL was seen before. Beyond it the known URLs are
        /// moved to disk, and tested in batches.
        ///
        /// In memory a URL takes 10 to 15 bytes. On disk it takes 5, and each batch reads and
        /// writes all of them once: small makes small batches, and keeps the disk busy.
        seen: usize = 256 << 20, size(MIB..=TIB), [];

        /// Number of URLs in the cache in front of the seen test, a power of two.
        ///
        /// 8.25 bytes each. Small sends links to the disk that were seen a moment ago; more than a
        /// thousand per server that is crawled at the same time gains little.
        cache_entries: usize = 1 << 20, count(1..=1 << 32), [];

        /// Number of known URLs. Beyond it new URLs are counted and dropped.
        ///
        /// Small ends the crawl early; large may fill the disk.
        seen_max: usize = 10_000_000_000, count(1_000..=100_000_000_000), [];

        /// Number of known servers. Beyond it URLs of new servers are counted and dropped.
        ///
        /// About 200 bytes each, and 100 more once visited.
        servers_max: usize = 1_000_000, count(1..=4_000_000_000), [];

        /// Number of known servers per registrable domain; never more than a tenth of servers_max,
        /// because the owner of a domain can create host names without end. Beyond it URLs of new
        /// servers are counted and dropped, except seeds.
        ///
        /// Small loses parts of large sites; large lets one domain take the room of all others.
        servers_per_domain_max: u32 = 1_000, count(1..=4_000_000_000), [];

        /// Bytes of robots.txt rules in memory. Beyond it the least recently used are moved to
        /// disk.
        ///
        /// Small reads from disk at most visits; without state.keep it fetches robots.txt again
        /// instead.
        robots: usize = 64 << 20, size(MIB..=TIB), [];
    }
}

section! {
    /// What is stored so that a crawl can be resumed, however it ended.
    state: State {
        /// Write checkpoints, and move to disk what exceeds the bounds in [memory].
        ///
        /// false loses everything but the archive when the crawl ends, and drops what exceeds the
        /// bounds.
        keep: bool = true, flag(), [];

        /// Time between two checkpoints. A crawl that is stopped writes one more.
        ///
        /// A crawl that crashed resumes from its last checkpoint and what was archived since. Short
        /// writes the state in memory more often; long takes longer to resume.
        checkpoint_period: Duration = 5 * MINUTE, time(SECOND..=DAY), [Live];
    }
}

section! {
    /// What happens when the disk of the job directory becomes full.
    disk: DiskSpace {
        /// Free space that the crawl leaves to others. With less, it pauses or ends as if the disk
        /// were full. The space is measured every second.
        ///
        /// "0B" uses the disk until it is full; large leaves space unused.
        free_min: u64 = 128 * MIB, size(0..=1_024 * TIB), [];

        /// When the disk is full: "wait" pauses the crawl until there is space, "stop" ends it.
        /// Nothing is lost in either case.
        full: DiskFull = DiskFull::Wait, disk_full(), [];

        /// Time between two checks whether there is space again.
        ///
        /// Short writes to a full disk all the time; long pauses longer than needed.
        full_wait: Duration = 10 * SECOND, time(MILLISECOND..=HOUR), [];
    }
}

section! {
    /// What is reported while the crawl runs.
    report: Report {
        /// Time between two lines of progress if stderr is not a terminal. On a terminal one line
        /// is updated.
        progress_period: Duration = 10 * SECOND, time(SECOND..=HOUR), [];
    }
}

fn formats() -> Kind<Format> {
    choice(&[("warc", Format::Warc), ("none", Format::None)])
}

fn digests() -> Kind<Algorithm> {
    choice(&[("sha1", Algorithm::Sha1Base32), ("sha256", Algorithm::Sha256Base32)])
}

/// What happens when the disk is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFull {
    /// The crawl pauses until there is space.
    Wait,
    /// The crawl ends, to be resumed.
    Stop,
}

fn disk_full() -> Kind<DiskFull> {
    choice(&[("wait", DiskFull::Wait), ("stop", DiskFull::Stop)])
}
