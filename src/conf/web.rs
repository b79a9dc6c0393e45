//! `[lab]` and `[web]`: a synthetic web on loopback, and what it is like.
//!
//! A file with `[lab]` crawls that web and nothing else: names are resolved by the lab's own
//! server, which knows no name outside `.test`. `[web]` describes it, starting from a preset, for
//! the lab and for simulated crawls alike.

mod presets;

use super::Hostile;
use super::units::Decimal;
use std::path::PathBuf;
use std::time::Duration;

/// `[lab]`: how the lab runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lab {
    /// Folder of what it writes: its certificate authority, its manifest, its events.
    pub directory: PathBuf,
    /// What each URL should come to is written down.
    pub manifest: bool,
    /// What it writes down of what happened to it.
    pub events: Events,
}

impl Default for Lab {
    fn default() -> Self {
        Self { directory: PathBuf::from("jobs/lab"), manifest: true, events: Events::None }
    }
}

/// What the lab writes down of what happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// Nothing: for measurements.
    None,
    /// Each connection opened and closed.
    Connections,
    /// Each request, too.
    Requests,
}

/// A web that others start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Every host is quick and behaves.
    Plain,
    /// Small and varied, with some trouble: for a first try.
    Quickstart,
    /// Quick, uniform hosts of 300 pages: for measurements.
    Bench,
    /// Every hostile host there is, and ten that behave.
    Hostile,
    /// A university's web of 2003, as the paper on crawl capability describes it.
    Of2003,
    /// Today's web, as archives of it measure it.
    Of2025,
}

/// `[web]`: what the synthetic web is like. Shares are of hosts or of pages, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    /// What the other values are where the file is silent.
    pub preset: Preset,
    /// Folder of a link graph that pages and links are taken from; `None`: they are drawn.
    pub graph: Option<PathBuf>,
    /// Decides every draw.
    pub seed: u64,
    /// Hosts that behave.
    pub hosts: u32,
    /// Hosts, from the first on, whose root page is a seed.
    pub seeds: u32,
    /// Pages of all hosts that behave.
    pub pages: u32,
    /// How unequal hosts are in pages: sigma of a lognormal.
    pub pages_sigma: Decimal,
    /// Hosts of one registrable domain.
    pub hosts_per_domain: u32,
    /// Hosts of one address.
    pub hosts_per_address: u32,
    /// Pages each page is the first to link to.
    pub fanout: u32,
    /// Hosts each host is the first to link to.
    pub host_fanout: u32,
    /// Links of a page: the median.
    pub links_per_page: u32,
    /// Links of a page: sigma of the lognormal.
    pub links_sigma: Decimal,
    /// Links that stay on their host.
    pub locality: Decimal,
    /// How much links favour few pages; 1: not at all.
    pub link_skew: u32,
    /// Made easy for crawlers that know less.
    pub easy: bool,
    /// Links in odd spellings.
    pub odd_links_share: Decimal,
    /// Pages with references that are not to be followed.
    pub noise_share: Decimal,
    /// Bytes of a page: the median.
    pub page_bytes: u32,
    /// Bytes of a page: sigma of the lognormal.
    pub page_bytes_sigma: Decimal,
    /// Pages answered 404.
    pub not_found_share: Decimal,
    /// Pages answered 500.
    pub server_error_share: Decimal,
    /// Pages that redirect.
    pub redirect_share: Decimal,
    /// Pages whose body others have, too.
    pub duplicate_share: Decimal,
    /// Pages that are not HTML.
    pub binary_share: Decimal,
    /// Time to the first byte of a reply: the median over hosts.
    pub think_time: Duration,
    /// Time to the first byte: sigma of the lognormal over hosts.
    pub think_time_sigma: Decimal,
    /// Time to the first byte: sigma of the lognormal from reply to reply.
    pub think_jitter: Decimal,
    /// Time there and back through the network: the median over hosts. In simulation only, as are
    /// all further times and rates.
    pub round_trip: Duration,
    /// That time: sigma of the lognormal over hosts.
    pub round_trip_sigma: Decimal,
    /// That time: sigma of the lognormal from message to message.
    pub round_trip_jitter: Decimal,
    /// Time to accept a connection, beyond the round trip: the median over hosts.
    pub accept_time: Duration,
    /// Time to accept: sigma of the lognormal over hosts.
    pub accept_time_sigma: Decimal,
    /// Time of a look-up: the median over hosts.
    pub name_time: Duration,
    /// Time of a look-up: sigma of the lognormal over hosts.
    pub name_time_sigma: Decimal,
    /// Bytes per second of a host: the median; `None` is unlimited.
    pub rate: Option<u64>,
    /// Bytes per second: sigma of the lognormal over hosts.
    pub rate_sigma: Decimal,
    /// How many times shorter a coded body is.
    pub coded_ratio: Decimal,
    /// Requests allowed on a connection.
    pub requests_per_connection: Vec<Allowance>,
    /// Hosts that close at their limit without a word.
    pub silent_close_share: Decimal,
    /// Hosts that mix up replies to pipelined requests.
    pub muddled_share: Decimal,
    /// How long a host keeps an idle connection.
    pub idle_time: Duration,
    /// Hosts that speak HTTP/1.0.
    pub http10_share: Decimal,
    /// Hosts served over TLS.
    pub tls_share: Decimal,
    /// Hosts that send in chunks.
    pub chunked_share: Decimal,
    /// Hosts that code by gzip.
    pub gzip_share: Decimal,
    /// Hosts that code by brotli.
    pub brotli_share: Decimal,
    /// Hosts that code by zstd.
    pub zstd_share: Decimal,
    /// Hosts that code by deflate.
    pub deflate_share: Decimal,
    /// Hosts whose robots.txt allows all.
    pub robots_allow_share: Decimal,
    /// Hosts whose robots.txt closes a part.
    pub robots_part_share: Decimal,
    /// Hosts whose robots.txt asks for a delay.
    pub robots_delay_share: Decimal,
    /// Hosts whose robots.txt closes all.
    pub robots_deny_share: Decimal,
    /// The delay asked for.
    pub crawl_delay: Duration,
    /// Hosts that do not behave, by what they do.
    pub hostile: Vec<String>,
}

/// A share of the hosts and the requests they allow on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Requests on one connection.
    pub requests: u32,
    /// Share of hosts.
    pub share: Decimal,
}

impl Default for Web {
    fn default() -> Self {
        Self::of(Preset::Quickstart)
    }
}

impl Web {
    /// Whether it has hosts of this kind, other than those that `quick` stands for.
    pub(super) fn names(&self, kind: Hostile) -> bool {
        self.hostile.iter().any(|name| name == "all" || name == kind.name())
    }
}

impl Allowance {
    /// Reads `100 for 0.46`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("{text:?}: write the requests and the share of hosts, like \"100 for 0.46\"")
        };
        let (requests, share) = text.split_once(" for ").ok_or_else(wrong)?;
        let requests = requests.parse().ok().filter(|&count| count > 0).ok_or_else(wrong)?;
        Ok(Self { requests, share: Decimal::read(share)? })
    }
}

/// As it is written: `100 for 0.46`.
impl std::fmt::Display for Allowance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} for {}", self.requests, self.share)
    }
}
