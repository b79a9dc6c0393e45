//! The sections of the file as plain values: what the engine's wiring hands to the stations.
//!
//! Each field is one key of `conf/reference.toml`, which says what goes wrong at both ends of its
//! range; `Default` is what holds where the file is silent. Nothing here is checked: a section
//! inside a [`super::Conf`] has been.

use super::units::Decimal;
use super::walk::quote;
use super::walk::values::read_path;
use crate::dns::Families;
use crate::dns::address::{self, Block};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use super::schedule::{Policy, Qualities, Schedule, Site, Source};
pub use super::target::{Identity, Job, Limits, Scheme, Scope, Span, UrlKey};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Names that are answered without asking a name server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostsFile {
    /// `/etc/hosts`, if it exists.
    #[default]
    System,
    /// None.
    None,
    /// This file, in the form of `/etc/hosts`.
    File(PathBuf),
}

impl HostsFile {
    /// What the key allows.
    pub(super) const ALLOWED: &str = "\"system\", \"none\", or a path";

    pub(super) fn read(text: &str) -> Result<Self, String> {
        match text {
            "system" => Ok(Self::System),
            "none" => Ok(Self::None),
            path => read_path(path).map(Self::File),
        }
    }

    pub(super) fn show(&self) -> String {
        quote(match self {
            Self::System => "system",
            Self::None => "none",
            Self::File(path) => return quote(&path.to_string_lossy()),
        })
    }
}

/// `[names]`: names to addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Name servers; none: those of the system.
    pub servers: Vec<SocketAddr>,
    /// File of names and addresses that is asked first.
    pub hosts_file: HostsFile,
    /// Questions with the case of their letters drawn (DNS 0x20).
    pub mixed_case: bool,
    /// Wait for one answer.
    pub timeout: Duration,
    /// Times a name is asked for before it has failed.
    pub tries: u32,
    /// Look-ups under way at once.
    pub in_flight_max: usize,
    /// Names whose answers are kept.
    pub names_max: usize,
    /// Shortest time an answer is kept.
    pub ttl_min: Duration,
    /// Longest time an answer is kept.
    pub ttl_max: Duration,
    /// How long "no such name" and "no address" are kept.
    pub negative_ttl: Duration,
    /// How long a look-up that failed is not tried again.
    pub failure_ttl: Duration,
    /// Which addresses are asked for, and which come first.
    pub families: Families,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            hosts_file: HostsFile::System,
            mixed_case: true,
            timeout: seconds(5),
            tries: 3,
            in_flight_max: 1_000,
            names_max: 1_000_000,
            ttl_min: seconds(60),
            ttl_max: seconds(24 * 3_600),
            negative_ttl: seconds(600),
            failure_ttl: seconds(30),
            families: Families::Ipv4ThenIpv6,
        }
    }
}

/// `[connections]`: how many, how long, to where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Connections open at once, parked ones included.
    pub open_max: usize,
    /// How long one is kept open without a request.
    pub idle_timeout: Duration,
    /// Wait for TCP to stand.
    pub connect_timeout: Duration,
    /// Wait for TLS to stand.
    pub tls_timeout: Duration,
    /// Wait for the whole head of a reply.
    pub head_timeout: Duration,
    /// Wait for the next byte of a body.
    pub body_timeout: Duration,
    /// Wait for the whole of a fetch.
    pub fetch_timeout: Duration,
    /// Wait for open replies when the crawl is told to stop.
    pub stop_timeout: Duration,
    /// Ranges that are not global and may be reached all the same.
    pub addresses_allowed: Vec<Block>,
    /// Ranges that may not be reached, whatever else is said.
    pub addresses_refused: Vec<Block>,
    /// Bytes read from one connection before the others have their turn.
    pub read_bytes_per_turn: usize,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            open_max: 1_000,
            idle_timeout: seconds(30),
            connect_timeout: seconds(10),
            tls_timeout: seconds(10),
            head_timeout: seconds(20),
            body_timeout: seconds(20),
            fetch_timeout: seconds(120),
            stop_timeout: seconds(10),
            addresses_allowed: Vec::new(),
            addresses_refused: address::Rules::default().refused,
            read_bytes_per_turn: 256 << 10,
        }
    }
}

/// `[tls]`: whom to trust, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Certificates are verified.
    pub verify: bool,
    /// PEM file of authorities trusted in place of those compiled in.
    pub roots_file: Option<PathBuf>,
    /// Sessions kept to be resumed.
    pub sessions_max: usize,
    /// Bytes of a handshake that are received at most.
    pub handshake_bytes_max: usize,
    /// The post-quantum key exchange is offered first.
    pub post_quantum: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            verify: true,
            roots_file: None,
            sessions_max: 10_000,
            handshake_bytes_max: 32 << 10,
            post_quantum: false,
        }
    }
}

/// `[politeness]`: how much, how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Politeness {
    /// Requests of one visit.
    pub burst: Burst,
    /// Rest per request of a visit.
    pub delay: Duration,
    /// Rest as a multiple of how long the visit took.
    pub delay_factor: Decimal,
    /// Longest rest.
    pub delay_max: Duration,
    /// robots.txt is asked for and obeyed.
    pub robots: bool,
    /// What an HTML page in place of robots.txt means.
    pub robots_html: RobotsHtml,
    /// How long a robots.txt holds.
    pub robots_ttl: Duration,
    /// Wait before a robots.txt that could not be had is asked for again.
    pub robots_retry_wait: Duration,
    /// After this long without an answer a server counts as one without robots.txt.
    pub robots_unreachable_max: Duration,
    /// Longest Crawl-delay that is kept; a server that asks for more is not crawled.
    pub crawl_delay_max: Duration,
    /// Servers of one address visited at once.
    pub address_visits_max: u32,
    /// Rest between two visits to one address.
    pub address_delay: Duration,
    /// Servers of one registrable domain visited at once.
    pub domain_visits_max: u32,
    /// Rest between two visits to one registrable domain.
    pub domain_delay: Duration,
}

impl Default for Politeness {
    fn default() -> Self {
        Self {
            burst: Burst::Requests(1),
            delay: seconds(1),
            delay_factor: Decimal::from_thousandths(10_000),
            delay_max: seconds(300),
            robots: true,
            robots_html: RobotsHtml::Allow,
            robots_ttl: seconds(24 * 3_600),
            robots_retry_wait: seconds(3_600),
            robots_unreachable_max: seconds(30 * 24 * 3_600),
            crawl_delay_max: seconds(60),
            address_visits_max: 4,
            address_delay: Duration::from_millis(250),
            domain_visits_max: 4,
            domain_delay: Duration::from_millis(250),
        }
    }
}

/// Requests of one visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// At most so many.
    Requests(u32),
    /// As many as the server allows on one connection.
    Server,
}

/// `[retries]`: what is tried again, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Tries of one URL after the first.
    pub retries_max: u32,
    /// Wait before the first of them.
    pub retry_wait: Duration,
    /// How many times longer each further wait is.
    pub retry_factor: Decimal,
    /// Longest wait between two tries.
    pub retry_wait_max: Duration,
    /// Longest Retry-After that is kept; a longer one counts as this.
    pub retry_after_max: Duration,
    /// Failures in a row after which a server is given up.
    pub server_failures_max: u32,
    /// Time without an answer from anybody after which the crawl ends.
    pub outage_max: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            retries_max: 3,
            retry_wait: seconds(30),
            retry_factor: Decimal::from_thousandths(4_000),
            retry_wait_max: seconds(3_600),
            retry_after_max: seconds(24 * 3_600),
            server_failures_max: 10,
            outage_max: seconds(24 * 3_600),
        }
    }
}

/// `[pipeline]`: several requests on their way on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Servers that have earned it are pipelined.
    pub enabled: bool,
    /// Requests on their way on one connection.
    pub depth_max: u32,
    /// Requests a server is believed to allow on a connection until it has shown it.
    pub allowance_new: u32,
    /// Batches of a server that are held and compared before its order is trusted.
    pub probation: u32,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self { enabled: true, depth_max: 8, allowance_new: 50, probation: 3 }
    }
}

/// `[fetch]`: what is asked for, and how much of it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Bytes of a head.
    pub head_bytes_max: usize,
    /// Header fields of a head.
    pub fields_max: usize,
    /// Bytes of a body as it comes, without chunk framing.
    pub body_bytes_max: usize,
    /// Bytes of a body after decoding.
    pub decoded_bytes_max: usize,
    /// Redirects followed from one URL.
    pub redirects_max: u32,
    /// Send cookies along one chain of redirects.
    pub cookies: bool,
    /// Content codings asked for, the most wanted first.
    pub codings: Vec<Coding>,
    /// The Accept field.
    pub accept: String,
    /// More header fields, `Name: value`.
    pub headers: Vec<String>,
    /// Bytes of a page decoded and scanned before other events have their turn.
    pub work_bytes_per_turn: usize,
}

impl Default for Fetch {
    fn default() -> Self {
        Self {
            head_bytes_max: 64 << 10,
            fields_max: 256,
            body_bytes_max: 16 << 20,
            decoded_bytes_max: 64 << 20,
            redirects_max: 10,
            cookies: true,
            codings: vec![Coding::Gzip, Coding::Brotli, Coding::Zstd, Coding::Deflate],
            accept: "text/html,application/xhtml+xml,*/*;q=0.5".to_owned(),
            headers: Vec::new(),
            work_bytes_per_turn: 1 << 20,
        }
    }
}

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// RFC 1950.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
}

/// `[links]`: which references of a page are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Images, scripts, style sheets and media, too.
    pub embedded: bool,
    /// The targets of forms, too.
    pub forms: bool,
    /// Links marked `rel=nofollow` are not followed.
    pub nofollow: Marks,
    /// `nofollow` in a page's robots meta tag and X-Robots-Tag holds for all its links.
    pub robots_meta: Marks,
    /// Links taken from one page.
    pub links_max: usize,
}

impl Default for Links {
    fn default() -> Self {
        Self {
            embedded: false,
            forms: false,
            nofollow: Marks::Obey,
            robots_meta: Marks::Obey,
            links_max: 10_000,
        }
    }
}

/// What an HTML page without a rule in place of robots.txt means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsHtml {
    /// There are no rules.
    Allow,
    /// The rules can't be had: nothing may be fetched.
    Unreachable,
}

/// What is done about marks a page's author has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// They hold.
    Obey,
    /// They are passed over.
    Ignore,
}

/// `[memory]`: what may grow, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of bodies and heads in hand, over all connections.
    pub buffers: usize,
    /// Bytes of waiting URLs in hand; past it they wait on disk.
    pub queues: usize,
    /// URLs that wait.
    pub urls_max: usize,
    /// URLs that wait at one server.
    pub urls_per_server_max: usize,
    /// Bytes for telling which URLs were seen before.
    pub seen: usize,
    /// URLs in the cache before the seen test; a power of two.
    pub cache_entries: usize,
    /// URLs remembered as seen.
    pub seen_max: usize,
    /// Servers known.
    pub servers_max: usize,
    /// Servers known of one registrable domain.
    pub servers_per_domain_max: u32,
    /// Bytes of robots.txt rules.
    pub robots: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            buffers: 256 << 20,
            queues: 512 << 20,
            urls_max: 1_000_000_000,
            urls_per_server_max: 10_000_000,
            seen: 256 << 20,
            cache_entries: 1 << 20,
            seen_max: 10_000_000_000,
            servers_max: 1_000_000,
            servers_per_domain_max: 1_000,
            robots: 64 << 20,
        }
    }
}

/// `[state]`: what is kept so that a stopped crawl can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether there are checkpoints, and files for what memory doesn't hold.
    pub keep: bool,
    /// Time between two checkpoints.
    pub checkpoint_period: Duration,
    /// What is done when the disk is full.
    pub disk_full: DiskFull,
    /// Time between two looks whether there is room again.
    pub disk_full_wait: Duration,
}

impl Default for State {
    fn default() -> Self {
        Self {
            keep: true,
            checkpoint_period: Duration::from_secs(300),
            disk_full: DiskFull::Wait,
            disk_full_wait: Duration::from_secs(10),
        }
    }
}

/// What is done when the disk is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFull {
    /// The crawl pauses until there is room.
    Wait,
    /// The crawl ends, to be gone on with.
    Stop,
}

/// `[store]`: what is kept of what was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The archive's format.
    pub format: Format,
    /// Beginning of file names.
    pub prefix: String,
    /// 0: not compressed; 1 (fast) to 12 (small).
    pub gzip_level: u8,
    /// Size at which a file is closed and the next begun.
    pub file_bytes_max: u64,
    /// The hash of blocks and payloads.
    pub digest: Digest,
    /// Requests are kept, too.
    pub requests: bool,
    /// Replies to robots.txt are kept, too.
    pub robots: bool,
    /// Payloads remembered, so that a repeat is kept as a mention; 0: none.
    pub revisits_max: usize,
    /// Size at which the crawl log is renamed and begun anew.
    pub log_bytes_max: u64,
    /// Bytes of the archive that are read through when a crawl goes on.
    pub verify_bytes_max: u64,
    /// Longest time what was fetched stays unsynced.
    pub sync_period: Duration,
    /// Bytes gathered before they are handed to the system.
    pub buffer_bytes: usize,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            format: Format::Warc,
            prefix: "sted".to_owned(),
            gzip_level: 1,
            file_bytes_max: 1_000_000_000,
            digest: Digest::Sha1,
            requests: true,
            robots: true,
            revisits_max: 1_000_000,
            log_bytes_max: 1_000_000_000,
            verify_bytes_max: 256 << 20,
            sync_period: seconds(10),
            buffer_bytes: 1 << 20,
        }
    }
}

/// Format of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Nothing is kept but the crawl log.
    None,
    /// WARC 1.1 with a CDXJ index.
    Warc,
}

/// Hash of blocks and payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// What archives use.
    Sha1,
    /// What nobody can forge.
    Sha256,
}

/// `[report]`: what is said while the crawl runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Time from one line of progress to the next where there is no terminal.
    pub progress_period: Duration,
}

impl Default for Report {
    fn default() -> Self {
        Self { progress_period: seconds(10) }
    }
}
