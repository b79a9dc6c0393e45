//! The section `[web]`: the synthetic web that the lab serves and that simulations crawl.

mod presets;

use super::{DAY, HOUR, MILLISECOND, MINUTE, SECOND, section};
use crate::conf::Hostile;
use crate::conf::kind::{Kind, choice, count, decimal, flag, list, parsed, path, size, text, time};
use crate::conf::syntax;
use crate::conf::units::{Decimal, thousandths};
use crate::conf::walk::Walk;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

section! {
    /// The synthetic web of [lab] and [compare]. These values and the seed determine it. A sigma is
    /// that of a lognormal distribution: with 0 all values are the median, 1 is wide. Shares go
    /// from 0 to 1.
    web: Web {
        /// The web from which the other keys take their defaults. Shown here are those of
        /// "quickstart". "2003" and "2025" have the times and rates of real networks, for
        /// simulations.
        preset: Preset = Preset::Quickstart, presets(), [];

        /// A real link graph, which replaces hosts, pages, fanout and links below. A text file with
        /// one link a line, the numbers of two pages, which may be compressed as .gz, .xz or .zst;
        /// or a directory with two arrays of little-endian 32-bit numbers: outdeg.u32 has the
        /// number of links of each page, dst.u32 the pages they lead to, either also as .xz.
        ///
        /// The pages of a host must have consecutive numbers. For simulations only: the lab serves
        /// generated webs. src/study/web/GRAPHS.md describes the formats and how to make them.
        graph: Option<PathBuf> = None, path().or("none"), [];

        /// Text file with the hosts of the graph: on each line the first and the last page of a
        /// host and its name, such as `0 41 www.example.org`. It may be compressed like the graph.
        ///
        /// With "none" the hosts are guessed from the links, and the report of a comparison says
        /// so.
        hosts_file: Option<PathBuf> = None, path().or("none"), [];

        /// Seed of all draws: the same seed and values give the same web.
        seed: u64 = 1, count(SEED), [];

        /// Number of well-behaved hosts.
        ///
        /// In the lab each has a listening socket: tens of thousands need a higher descriptor
        /// limit.
        hosts: u32 = 60, count(0..=10_000_000), [];

        /// Number of hosts whose root page is a seed.
        seeds: u32 = 3, count(1..=10_000_000), [];

        /// Number of pages of all well-behaved hosts; each host has at least one.
        pages: u32 = 3_000, count(1..=1_000_000_000), [];

        /// Pages per host: sigma.
        pages_sigma: Decimal = thousandths(800), decimal(SIGMA), [];

        /// Hosts per registrable domain.
        hosts_per_domain: u32 = 1, count(1..=1_000_000), [];

        /// Hosts per IP address.
        hosts_per_address: u32 = 1, count(1..=1_000_000), [];

        /// Number of pages that each page is the first to link to.
        ///
        /// 1 makes a chain as deep as the host has pages; large makes a flat host.
        fanout: u32 = 8, count(1..=1_000), [];

        /// Number of hosts that each host is the first to link to.
        host_fanout: u32 = 8, count(1..=1_000), [];

        /// Links per page: median.
        links_per_page: u32 = 18, count(0..=10_000), [];

        /// Links per page: sigma.
        links_sigma: Decimal = thousandths(500), decimal(SIGMA), [];

        /// Share of links that stay on their host.
        locality: Decimal = thousandths(750), decimal(SHARE), [];

        /// How much links prefer few pages; 1 is not at all.
        link_skew: u32 = 2, count(1..=10), [];

        /// Generate a web that simpler crawlers understand: no path has a query or an escape, and
        /// HTTP/1.1 responses have the unnecessary field `Connection: keep-alive`.
        ///
        /// With false, crawlers that don't decode `&amp;` miss pages, and some close the connection
        /// after each response without that field.
        easy: bool = false, flag(), [];

        /// Share of links in odd spellings: entities, dot segments, blanks, fragments.
        odd_links_share: Decimal = thousandths(200), decimal(SHARE), [];

        /// Share of pages with references that must not be followed.
        noise_share: Decimal = thousandths(200), decimal(SHARE), [];

        /// Length of a page before coding: median.
        page_bytes: u32 = 9_000, size(0..=16 << 20), [];

        /// Length of a page before coding: sigma.
        page_bytes_sigma: Decimal = thousandths(900), decimal(SIGMA), [];

        /// Share of pages with status 404.
        not_found_share: Decimal = thousandths(30), decimal(SHARE), [];

        /// Share of pages with status 500.
        server_error_share: Decimal = thousandths(10), decimal(SHARE), [];

        /// Share of pages that redirect to another.
        redirect_share: Decimal = thousandths(50), decimal(SHARE), [];

        /// Share of pages that have the same body as others of the host.
        duplicate_share: Decimal = thousandths(40), decimal(SHARE), [];

        /// Share of pages that are not HTML.
        binary_share: Decimal = thousandths(30), decimal(SHARE), [];

        /// Time to the first byte of a response: median over hosts.
        think_time: Duration = 5 * MILLISECOND, time(Duration::ZERO..=MINUTE), [];

        /// Time to the first byte: sigma over hosts.
        think_time_sigma: Decimal = thousandths(1_000), decimal(SIGMA), [];

        /// Time to the first byte: sigma over the responses of a host.
        think_jitter: Decimal = thousandths(400), decimal(SIGMA), [];

        /// Network round-trip time: median over hosts. This key and those up to coded_ratio are for
        /// simulations: over loopback nothing takes time.
        ///
        /// "0s" makes new connections free, so that keeping them open gains nothing.
        round_trip: Duration = Duration::ZERO, time(Duration::ZERO..=MINUTE), [];

        /// Network round-trip time: sigma over hosts.
        round_trip_sigma: Decimal = thousandths(0), decimal(SIGMA), [];

        /// Network round-trip time: sigma over the messages of a host.
        round_trip_jitter: Decimal = thousandths(0), decimal(SIGMA), [];

        /// Time a host takes to accept a connection, in addition to the round trip: median over
        /// hosts.
        accept_time: Duration = Duration::ZERO, time(Duration::ZERO..=MINUTE), [];

        /// Time to accept a connection: sigma over hosts.
        accept_time_sigma: Decimal = thousandths(0), decimal(SIGMA), [];

        /// Time of a name lookup: median over hosts.
        name_time: Duration = Duration::ZERO, time(Duration::ZERO..=MINUTE), [];

        /// Time of a name lookup: sigma over hosts.
        name_time_sigma: Decimal = thousandths(0), decimal(SIGMA), [];

        /// Bytes per second that a host sends: median over hosts.
        ///
        /// "none" is no limit but that of the network.
        rate: Option<u64> = None, size(RATE).or("none"), [];

        /// Bytes per second: sigma over hosts.
        rate_sigma: Decimal = thousandths(0), decimal(SIGMA), [];

        /// Factor by which content coding shortens a simulated page. Over sockets pages are really
        /// coded.
        coded_ratio: Decimal = thousandths(5_000), decimal(1_000..=100_000), [];

        /// Requests that hosts allow per connection, by share of hosts. The hosts left over have no
        /// limit.
        requests_per_connection: Vec<Allowance> = quick_allowances(), allowances(), [];

        /// Share of hosts that close at their limit without announcing it.
        silent_close_share: Decimal = thousandths(200), decimal(SHARE), [];

        /// Share of hosts that mix up the responses to pipelined requests: each swaps them, repeats
        /// one, sends one in place of another, omits one, or adds bytes after each body.
        muddled_share: Decimal = thousandths(0), decimal(SHARE), [];

        /// How long a host keeps an idle connection open.
        idle_time: Duration = 15 * SECOND, time(SECOND..=HOUR), [];

        /// Share of hosts that speak HTTP/1.0 and close after each response.
        http10_share: Decimal = thousandths(100), decimal(SHARE), [];

        /// Share of hosts with TLS.
        tls_share: Decimal = thousandths(150), decimal(SHARE), [];

        /// Share of the hosts with TLS that resume sessions. With the others each handshake is a
        /// full one.
        resume_share: Decimal = thousandths(1_000), decimal(SHARE), [];

        /// Share of hosts with chunked responses.
        chunked_share: Decimal = thousandths(300), decimal(SHARE), [];

        /// Share of hosts that use gzip if it is accepted.
        gzip_share: Decimal = thousandths(400), decimal(SHARE), [];

        /// Share of hosts that use brotli.
        brotli_share: Decimal = thousandths(150), decimal(SHARE), [];

        /// Share of hosts that use zstd.
        zstd_share: Decimal = thousandths(100), decimal(SHARE), [];

        /// Share of hosts that use deflate.
        deflate_share: Decimal = thousandths(50), decimal(SHARE), [];

        /// Share of hosts whose robots.txt allows everything. The hosts left over have none.
        robots_allow_share: Decimal = thousandths(300), decimal(SHARE), [];

        /// Share of hosts whose robots.txt disallows a part.
        robots_part_share: Decimal = thousandths(250), decimal(SHARE), [];

        /// Share of hosts whose robots.txt has a Crawl-delay.
        robots_delay_share: Decimal = thousandths(30), decimal(SHARE), [];

        /// Share of hosts whose robots.txt disallows everything.
        robots_deny_share: Decimal = thousandths(40), decimal(SHARE), [];

        /// The Crawl-delay of these hosts.
        crawl_delay: Duration = SECOND, time(Duration::ZERO..=HOUR), [];

        /// Time between two changes of a page: median over the hosts. With "none" pages never
        /// change, and the keys from here to last_modified_share have no effect.
        change_interval: Option<Duration> = None, time(MILLISECOND..=10_000 * DAY).or("none"), [];

        /// Time between two changes: sigma over the hosts.
        change_sigma: Decimal = thousandths(1_300), decimal(SIGMA), [];

        /// Time between two changes: sigma over the pages of a host.
        change_page_sigma: Decimal = thousandths(800), decimal(SIGMA), [];

        /// Share of pages that change at equal distances instead of at random.
        change_scheduled_share: Decimal = thousandths(100), decimal(SHARE), [];

        /// Share of pages that differ with each request.
        change_always_share: Decimal = thousandths(50), decimal(SHARE), [];

        /// Share of pages that appear within change_span after the web began, and are linked to
        /// from then on.
        appear_share: Decimal = thousandths(100), decimal(SHARE), [];

        /// Share of pages that vanish within change_span.
        vanish_share: Decimal = thousandths(50), decimal(SHARE), [];

        /// The time within which pages appear and vanish.
        change_span: Duration = DAY, time(SECOND..=10_000 * DAY), [];

        /// Share of hosts that send ETag fields.
        etag_share: Decimal = thousandths(500), decimal(SHARE), [];

        /// Share of hosts whose robots.txt names a sitemap, among those that have one and don't
        /// forbid all. It lists all pages of the host, and when they changed last.
        sitemap_share: Decimal = thousandths(0), decimal(SHARE), [];

        /// Share of these hosts whose sitemap says of each page that it just changed.
        sitemap_lie_share: Decimal = thousandths(0), decimal(SHARE), [];

        /// Share of hosts that say something of the use of their pages: each in one of seven ways,
        /// by a line of robots.txt, a header field or a meta element.
        consent_share: Decimal = thousandths(0), decimal(SHARE), [];

        /// Share of hosts that send Last-Modified fields.
        last_modified_share: Decimal = thousandths(500), decimal(SHARE), [];

        /// Hosts that misbehave, named by what they do (endless-head, reset, bomb-gzip, ...).
        /// "quick" stands for those that take no time, "all" for all.
        hostile: Vec<String> = vec!["quick".into()], list(hostile()), [];
    }
}

/// The range of sigma of a lognormal distribution, in thousandths.
const SIGMA: RangeInclusive<u32> = 0..=5_000;
/// The range of shares, from 0 to 1, in thousandths.
pub(super) const SHARE: RangeInclusive<u32> = 0..=1_000;
/// The range of seeds, which leaves room for the numbers that repeats add.
pub(super) const SEED: RangeInclusive<u64> = 0..=1_000_000_000_000_000;
/// The range of transfer rates, in bytes per second.
pub(super) const RATE: RangeInclusive<u64> = 1_000..=1_000_000_000_000;

/// A web whose values are the defaults of the other keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Fast, well-behaved hosts.
    Plain,
    /// Small and varied, with some faults: for a first try.
    Quickstart,
    /// Fast, uniform hosts of 300 pages: for measurements.
    Bench,
    /// All kinds of hostile hosts, and ten well-behaved ones.
    Hostile,
    /// The university web of 2003 in the paper on crawl capability.
    Of2003,
    /// Today's web, with values measured by web archives.
    Of2025,
}

fn presets() -> Kind<Preset> {
    choice(&[
        ("plain", Preset::Plain),
        ("quickstart", Preset::Quickstart),
        ("bench", Preset::Bench),
        ("hostile", Preset::Hostile),
        ("2003", Preset::Of2003),
        ("2025", Preset::Of2025),
    ])
}

/// A share of the hosts, and the number of requests that they allow on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The number of requests.
    pub requests: u32,
    /// The share of hosts.
    pub share: Decimal,
}

impl Allowance {
    /// Parses `100 for 0.46`.
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("{text:?}: write the requests and the share of hosts, like \"100 for 0.46\"")
        };
        let (requests, share) = text.split_once(" for ").ok_or_else(wrong)?;
        let requests = requests.parse().ok().filter(|&count| count > 0).ok_or_else(wrong)?;
        Ok(Self { requests, share: Decimal::read(share)? })
    }

    fn show(&self) -> String {
        format!("{} for {}", self.requests, self.share)
    }
}

fn allowances() -> Kind<Vec<Allowance>> {
    list(parsed("\"REQUESTS for SHARE\"", Allowance::read, Allowance::show))
}

fn quick_allowances() -> Vec<Allowance> {
    presets::allow(&[(1, 240), (10, 100), (100, 460)])
}

fn hostile() -> Kind<String> {
    text("kinds, or \"quick\", \"all\"", syntax::hostile)
}

impl Web {
    /// Sets the defaults to the values of the preset that the file names.
    pub(super) fn start_from_preset(&mut self, walk: &Walk<'_>) {
        match walk.peek("web", "preset", &presets()) {
            Some(preset) if preset != self.preset => *self = Self::of(preset),
            _ => {}
        }
    }

    /// Returns whether the kind is listed by its name or by `all`.
    pub(in crate::conf) fn names(&self, kind: Hostile) -> bool {
        self.hostile.iter().any(|name| name == "all" || name == kind.name())
    }
}
