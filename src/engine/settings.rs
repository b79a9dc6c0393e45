//! What the engine can be told: its own limits and each station's settings, as plain values.

use crate::dns::address;
use crate::http::request::{BadField, Fixed};
use crate::{dns, frontier, http, links, rating, seen, store, url};
use std::time::Duration;

/// Chains of redirects under way at once: at 1,000 pages a second and one redirect in ten, a
/// minute's worth. With all their cookies they take 64 MiB.
pub const CHAINS_MAX: usize = 8_192;

/// Settings of a crawl.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Who we are.
    pub identity: Identity,
    /// When the crawl ends though the frontier does not.
    pub limits: Limits,
    /// Connections and their time-outs.
    pub connections: Connections,
    /// What follows from failures.
    pub retries: Retries,
    /// robots.txt.
    pub robots: Robots,
    /// Redirects followed in a row.
    pub redirects_max: u8,
    /// Chains of redirects under way at once; beyond, their targets are URLs like others.
    pub chains_max: usize,
    /// Whether a chain of redirects sends the cookies that it is given.
    pub cookies: bool,
    /// Limits of a reply.
    pub reply: http::response::Limits,
    /// Limits of content codings.
    pub coding: http::coding::DecodeLimits,
    /// Pipelining.
    pub pipeline: http::pipeline::Settings,
    /// What URLs are thought to be worth.
    pub rating: rating::Settings,
    /// Politeness, queues, and who comes first.
    pub frontier: frontier::Settings,
    /// Names.
    pub names: dns::Settings,
    /// The duplicate URL eliminator.
    pub seen: seen::Settings,
    /// Rules of the deduplication key.
    pub key: url::key::Settings,
    /// Which URLs are wanted.
    pub scope: url::scope::Settings,
    /// Which references lead on.
    pub links: links::Settings,
    /// The archive.
    pub store: store::Settings,
    /// What is kept so that the crawl can go on.
    pub state: State,
    /// Whether the stream of discovered URLs is written down.
    pub trace: bool,
    /// Key of the fingerprints: drawn once per crawl.
    pub fingerprint_key: [u8; 16],
    /// Bytes of replies held at once; beyond, connections are paused.
    pub held_bytes_max: usize,
    /// Bytes of robots.txt rules in memory; past it those unused for longest go to the disk, or are
    /// asked for again if nothing is kept.
    pub robots_bytes_max: usize,
    /// Servers known of one registrable domain, but never more than a tenth of all.
    pub servers_per_domain_max: Option<u32>,
    /// Bytes of pages worked on in one turn.
    pub turn_bytes_max: usize,
}

impl Settings {
    /// Nothing is kept to go on with: what memory doesn't hold is dropped.
    pub fn keep_no_state(&mut self) {
        self.state.crawl = None;
        self.seen.crawl = None;
        self.frontier.crawl = None;
    }

    /// The request fields that never change.
    pub(super) fn request(&self) -> Result<Fixed, BadField> {
        let Identity { user_agent, from, codings, fields, .. } = &self.identity;
        Fixed::new(user_agent, from.as_deref(), codings, fields)
    }

    /// Whether there is an archive of requests and replies, beside the crawl log.
    pub(super) fn keeps_archive(&self) -> bool {
        self.store.format == store::Format::Warc
    }

    /// What the archive says of its maker.
    pub(super) fn archive_identity(&self) -> store::Identity {
        let identity = &self.identity;
        store::Identity {
            software: identity.software.clone(),
            operator: identity.operator.clone(),
            user_agent: identity.user_agent.clone(),
            from: identity.from.clone(),
            hostname: None,
            job: identity.job.clone(),
            robots: if self.robots.obey { "obey" } else { "ignore" }.to_owned(),
            config: identity.config.clone(),
        }
    }

    /// Longest text of a page, in bytes.
    pub(super) fn text_bytes_max(&self) -> usize {
        usize::try_from(self.coding.decoded_bytes_max).unwrap_or(usize::MAX)
    }

    /// What ids of records are drawn from.
    pub(super) fn store_seed(&self) -> u64 {
        let (low, _) = self.fingerprint_key.split_first_chunk().expect("16 bytes");
        u64::from_le_bytes(*low)
    }
}

/// What is kept so that the crawl can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Number of the crawl, which its files carry; `None`: nothing is kept.
    pub crawl: Option<u64>,
    /// Time between two checkpoints.
    pub period: Duration,
    /// When the disk is full: wait so long before the next try; `None`: the crawl ends.
    pub full_wait: Option<Duration>,
}

impl Default for State {
    fn default() -> Self {
        let full_wait = Some(Duration::from_secs(10));
        Self { crawl: None, period: Duration::from_secs(300), full_wait }
    }
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name and version of the program.
    pub software: String,
    /// Product token, the name that robots.txt is searched for.
    pub product: String,
    /// The whole User-Agent.
    pub user_agent: String,
    /// The From field: an address of a person.
    pub from: Option<String>,
    /// Who runs the crawl, for the archive.
    pub operator: String,
    /// Name of the job.
    pub job: String,
    /// Fields added to every request, Accept among them.
    pub fields: Vec<(String, String)>,
    /// Digest of the effective configuration, for the archive.
    pub config: String,
    /// Content codings asked for.
    pub codings: Vec<http::coding::Coding>,
}

/// Budgets; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Replies kept as pages.
    pub pages_max: Option<u64>,
    /// Bytes received.
    pub bytes_max: Option<u64>,
    /// Time since the start.
    pub time_max: Option<Duration>,
}

/// Connections and their time-outs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Connections open at once, parked ones included.
    pub open_max: usize,
    /// How long a connection is kept between two visits.
    pub idle_timeout: Duration,
    /// From asking for a connection to TCP standing.
    pub connect_timeout: Duration,
    /// From TCP to TLS standing.
    pub tls_timeout: Duration,
    /// From the request (or the end of the reply before) to the end of the head.
    pub head_timeout: Duration,
    /// Between two pieces of the body.
    pub body_timeout: Duration,
    /// From the request (or the end of the reply before) to the end of the reply.
    pub fetch_timeout: Duration,
    /// How long open replies may still take once the crawl is told to stop.
    pub stop_timeout: Duration,
    /// Which addresses may be connected to.
    pub addresses: address::Rules,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            open_max: 1_000,
            idle_timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            tls_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(20),
            body_timeout: Duration::from_secs(20),
            fetch_timeout: Duration::from_secs(120),
            stop_timeout: Duration::from_secs(10),
            addresses: address::Rules::default(),
        }
    }
}

/// What follows from failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Tries of one URL after its first.
    pub url_retries_max: u8,
    /// How many of them are made for a body that ends early, before what came of it is the page.
    /// Servers that cut bodies mostly do so always.
    pub short_retries_max: u8,
    /// Failed visits in a row after which a server is given up.
    pub server_failures_max: u8,
    /// Rest after the first failure.
    pub wait: Duration,
    /// How many times longer it is after each further one, in thousandths.
    pub factor_milli: u32,
    /// Longest rest after failures.
    pub wait_max: Duration,
    /// Longest `Retry-After` that is kept; a longer one counts as this.
    pub retry_after_max: Duration,
    /// The crawl ends when nobody could be reached for so long.
    pub outage_max: Duration,
}

impl Retries {
    /// Rest after the `failures`th failure in a row.
    pub fn after(&self, failures: u8) -> Duration {
        let mut wait = self.wait;
        for _ in 1..failures {
            if wait >= self.wait_max {
                break;
            }
            wait = wait.saturating_mul(self.factor_milli) / 1_000;
        }
        wait.min(self.wait_max)
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            url_retries_max: 3,
            short_retries_max: 1,
            server_failures_max: 10,
            wait: Duration::from_secs(30),
            factor_milli: 4_000,
            wait_max: Duration::from_secs(3_600),
            retry_after_max: Duration::from_secs(24 * 3_600),
            outage_max: Duration::from_secs(24 * 3_600),
        }
    }
}

/// robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Robots {
    /// Whether it is asked for and obeyed.
    pub obey: bool,
    /// How long a file is trusted (RFC 9309 2.4: at most a day).
    pub ttl: Duration,
    /// Wait before a file that could not be had is asked for again.
    pub retry_wait: Duration,
    /// After so long without an answer a server counts as one without the file.
    pub unreachable_max: Duration,
    /// Longest Crawl-delay that is waited for; beyond, the server is given up.
    pub crawl_delay_max: Duration,
    /// Redirects followed (RFC 9309 2.3.1.2: at least five).
    pub redirects_max: u8,
    /// An HTML page in its place has no rules; else it can't be had.
    pub html_allows: bool,
}

impl Default for Robots {
    fn default() -> Self {
        Self {
            obey: true,
            ttl: Duration::from_secs(24 * 3_600),
            retry_wait: Duration::from_secs(3_600),
            unreachable_max: Duration::from_secs(30 * 24 * 3_600),
            crawl_delay_max: Duration::from_secs(60),
            redirects_max: 5,
            html_allows: true,
        }
    }
}
