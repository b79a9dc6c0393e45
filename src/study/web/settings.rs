//! Settings of a synthetic web: shares, spreads, and presets.
//!
//! Shares are from 0 to 1 and are drawn per host or per page, as their fields say. Everything else
//! follows from these settings and their seed.

use super::hostile::Hostile;
use super::signed::Keys;
use std::sync::Arc;
use std::time::Duration;

/// A lognormal distribution of counts or sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median count or size.
    pub median: f64,
    /// The standard deviation of the natural logarithm; 0 means always the median.
    pub sigma: f64,
}

/// A lognormal distribution of durations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeSpread {
    /// The median duration.
    pub median: Duration,
    /// The standard deviation of the natural logarithm; 0 means always the median.
    pub sigma: f64,
}

/// How the pages of a web change.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// When the web began, in seconds since 1970. The lab begins it if this is 0.
    pub epoch: u64,
    /// The mean time between two changes of a page, drawn per host.
    pub interval: TimeSpread,
    /// How much pages of a host differ: the standard deviation (sigma) of the natural logarithm.
    pub page_sigma: f64,
    /// The share of pages that change at fixed distances.
    pub scheduled: f64,
    /// The share of pages that differ with every request.
    pub always: f64,
    /// The share of pages that aren't there at first.
    pub appear: f64,
    /// The share of pages that vanish.
    pub vanish: f64,
    /// The time within which pages appear and vanish.
    pub span: Duration,
    /// The share of hosts that send an ETag.
    pub etags: f64,
    /// The share of hosts that send Last-Modified.
    pub modified: f64,
}

/// The description of a synthetic web.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The seed of every draw.
    pub seed: u64,
    /// The number of well-behaved hosts; hostile ones are added.
    pub hosts: u32,
    /// The number of hosts, from the first on, whose root page is a seed.
    pub seeds: u32,
    /// The number of pages on all well-behaved hosts together; each host has at least its root.
    pub pages: u32,
    /// How much hosts differ in their number of pages: the standard deviation (sigma) of the
    /// natural logarithm of a host's weight.
    pub pages_sigma: f64,
    /// The number of hosts that share a registrable domain; 1 gives each its own.
    pub hosts_per_domain: u32,
    /// The number of each host's registrable domain, by the number of the host. Hosts without one
    /// have a domain of their own. `None` if `hosts_per_domain` says which hosts share a domain.
    pub domains: Option<Arc<[u32]>>,
    /// The number of hosts that share an address; 1 gives each its own.
    pub hosts_per_address: u32,

    /// The number of pages that each page is the first to link to (its fan-out): a small number
    /// makes a deep web, a large one a flat web.
    pub fanout: u32,
    /// The number of hosts that each host is the first to link to.
    pub host_fanout: u32,
    /// The number of links of a page, those of the fan-out included.
    pub links: Spread,
    /// The share of links to pages of the same host, among the links beyond the fan-out.
    pub locality: f64,
    /// How much the links beyond the fan-out prefer few pages: 1 not at all, 2 and 3 increasingly.
    pub link_skew: u32,
    /// True if the web is simplified for crawlers with fewer features: no path has a query or an
    /// escape, and HTTP/1.1 replies say that the connection is kept, though the protocol doesn't
    /// require it.
    pub easy: bool,
    /// The share of links in unusual spellings: entities, dot segments, blanks, fragments,
    /// capitals.
    pub odd_links: f64,
    /// The share of pages with references that must not be followed: mail addresses, comments,
    /// scripts, hosts outside `.test`, and references inside raw text.
    pub noise: f64,

    /// The length of an HTML body before coding, in bytes; pages with many links may exceed it.
    pub page_bytes: Spread,
    /// The share of pages answered with 404, per page.
    pub not_found: f64,
    /// The share of pages answered with 500, per page.
    pub server_error: f64,
    /// The share of pages that redirect to another, per page.
    pub redirect: f64,
    /// The share of pages with the same body as others on the host, per page.
    pub duplicate: f64,
    /// The share of pages that aren't HTML, per page.
    pub binary: f64,

    /// The time to the first byte of a reply, drawn per host.
    pub think_time: TimeSpread,
    /// How much the time to the first byte varies from reply to reply: the standard deviation
    /// (sigma) of the natural logarithm of its factor.
    pub think_jitter: f64,
    /// The round-trip time of the network, drawn per host. Like all times and rates below, it is
    /// used in simulation only: the loopback interface has none.
    pub round_trip: TimeSpread,
    /// How much the round-trip time varies from message to message: the standard deviation (sigma)
    /// of the natural logarithm of its factor.
    pub round_trip_jitter: f64,
    /// The time a host takes to accept a connection in addition to the round trip, drawn per host.
    pub accept_time: TimeSpread,
    /// The time of a look-up of a host's name, drawn per host.
    pub dns_time: TimeSpread,
    /// The rate at which a host sends, in bytes per second, drawn per host; a median of 0 is
    /// unlimited.
    pub rate: Spread,
    /// The factor by which content coding shrinks a body in simulation. Where bodies are really
    /// sent, they are really coded.
    pub coded_ratio: f64,

    /// Limits of requests on one connection: (share of hosts, limit). The remaining hosts have no
    /// limit.
    pub requests_per_connection: Vec<(f64, u32)>,
    /// The share of hosts, per host, that close the connection at their limit of requests without
    /// announcing it.
    pub close_silently: f64,
    /// The share of hosts that mix up replies to pipelined requests, per host, each in a drawn way.
    pub muddled: f64,
    /// True if a redirect to another host leads to any page of it, false if only to its root.
    pub deep_redirects: bool,
    /// How long a host keeps an idle connection open.
    pub idle_time: Duration,
    /// The share of hosts that use HTTP/1.0 and close after each reply, per host.
    pub http10: f64,
    /// The share of hosts that are served over TLS, per host.
    pub tls: f64,
    /// The share of hosts with TLS that resume sessions, per host.
    pub resuming: f64,
    /// The share of hosts that send bodies in chunks, per host (HTTP/1.1 only).
    pub chunked: f64,
    /// The share of hosts that code bodies with gzip if the client accepts it, per host.
    pub gzip: f64,
    /// The share of hosts that code bodies with brotli if the client accepts it, per host.
    pub brotli: f64,
    /// The share of hosts that code bodies with zstd if the client accepts it, per host.
    pub zstd: f64,
    /// The share of hosts that code bodies with deflate if the client accepts it, per host (half
    /// with the zlib frame, half raw).
    pub deflate: f64,

    /// The share of hosts whose robots.txt allows everything explicitly; the remaining ones answer
    /// 404.
    pub robots_allow: f64,
    /// The share of hosts whose robots.txt disallows a part of the host.
    pub robots_part: f64,
    /// The share of hosts whose robots.txt asks for a Crawl-delay.
    pub robots_delay: f64,
    /// The share of hosts whose robots.txt disallows everything.
    pub robots_deny: f64,
    /// The Crawl-delay that these robots.txt files ask for.
    pub crawl_delay: Duration,

    /// How pages change with time; `None` if they don't.
    pub changes: Option<Changes>,
    /// The share of hosts with a robots.txt that names a sitemap.
    pub sitemaps: f64,
    /// The share of these that say of each page that it just changed.
    pub sitemap_lies: f64,
    /// The share of the well-behaved hosts that say something of the use of their pages.
    pub voices: f64,

    /// The kinds of hostile hosts, one host for each; each host is a seed.
    pub hostile: Vec<Hostile>,
    /// The keys by which its servers verify signed requests; `None` if they know none.
    pub keys: Option<Keys>,
}

impl Default for Settings {
    /// Returns the settings of a quiet, fast, uniform web: every host is well-behaved, nothing
    /// waits.
    fn default() -> Self {
        let at_once = TimeSpread { median: Duration::ZERO, sigma: 0.0 };
        Self {
            seed: 1,
            hosts: 64,
            seeds: 1,
            pages: 6_400,
            pages_sigma: 0.0,
            hosts_per_domain: 1,
            domains: None,
            hosts_per_address: 1,
            fanout: 8,
            host_fanout: 8,
            links: Spread { median: 25.0, sigma: 0.0 },
            locality: 0.75,
            link_skew: 2,
            easy: false,
            odd_links: 0.0,
            noise: 0.0,
            page_bytes: Spread { median: 16_700.0, sigma: 0.0 },
            not_found: 0.0,
            server_error: 0.0,
            redirect: 0.0,
            duplicate: 0.0,
            binary: 0.0,
            think_time: at_once,
            think_jitter: 0.0,
            round_trip: at_once,
            round_trip_jitter: 0.0,
            accept_time: at_once,
            dns_time: at_once,
            rate: Spread { median: 0.0, sigma: 0.0 },
            coded_ratio: 5.0,
            requests_per_connection: Vec::new(),
            close_silently: 0.0,
            muddled: 0.0,
            deep_redirects: false,
            idle_time: Duration::from_secs(15),
            http10: 0.0,
            tls: 0.0,
            resuming: 1.0,
            chunked: 0.0,
            gzip: 0.0,
            brotli: 0.0,
            zstd: 0.0,
            deflate: 0.0,
            robots_allow: 0.0,
            robots_part: 0.0,
            robots_delay: 0.0,
            robots_deny: 0.0,
            crawl_delay: Duration::from_secs(2),
            changes: None,
            sitemaps: 0.0,
            voices: 0.0,
            sitemap_lies: 0.0,
            hostile: Vec::new(),
            keys: None,
        }
    }
}

impl Settings {
    /// Returns the settings of a small, varied web for a first try: 60 hosts, 3,000 pages, some of
    /// everything that well-behaved servers do, and the hostile hosts that don't take long.
    pub fn quickstart() -> Self {
        Self {
            hosts: 60,
            seeds: 3,
            pages: 3_000,
            pages_sigma: 0.8,
            links: Spread { median: 18.0, sigma: 0.5 },
            odd_links: 0.2,
            noise: 0.2,
            page_bytes: Spread { median: 9_000.0, sigma: 0.9 },
            not_found: 0.03,
            server_error: 0.01,
            redirect: 0.05,
            duplicate: 0.04,
            binary: 0.03,
            think_time: TimeSpread { median: Duration::from_millis(5), sigma: 1.0 },
            think_jitter: 0.4,
            requests_per_connection: vec![(0.24, 1), (0.10, 10), (0.46, 100)],
            close_silently: 0.2,
            http10: 0.1,
            tls: 0.15,
            chunked: 0.3,
            gzip: 0.4,
            brotli: 0.15,
            zstd: 0.1,
            deflate: 0.05,
            robots_allow: 0.3,
            robots_part: 0.25,
            robots_delay: 0.03,
            robots_deny: 0.04,
            crawl_delay: Duration::from_secs(1),
            hostile: Hostile::ALL.into_iter().filter(|kind| kind.is_quick()).collect(),
            ..Self::default()
        }
    }

    /// Returns the settings of the benchmarks' web: `hosts` hosts of 300 pages each, 16.7 kB and 25
    /// links a page, plain HTTP, no waiting, every host a seed.
    pub fn bench(hosts: u32) -> Self {
        Self { hosts, seeds: hosts, pages: hosts.saturating_mul(300), ..Self::default() }
    }

    /// Returns the settings of a web of 2003 for comparing policies: 500 hosts, 30,000 pages, slow
    /// to connect to. They were fixed before the first run on it.
    ///
    /// Source, unless noted otherwise below: Cao, Jiang, Singh: Scheduling Web Crawl for Better
    /// Performance and Quality, TR-682-03, Princeton 2003.
    pub fn scenario_2003() -> Self {
        Self {
            // As in the paper's own crawl, of one university's domain; a few of its hosts are
            // large.
            hosts: 500,
            pages: 30_000,
            pages_sigma: 1.2,
            fanout: 8,
            host_fanout: 20,
            // Close to the counts of a crawl of 2002 (Broder, Najork, Wiener: Efficient URL
            // Caching, 2003): a median of 23 links, 81.5% of them on their host. The fourth power
            // of a uniform draw gives in-links a power law.
            links: Spread { median: 20.0, sigma: 0.6 },
            locality: 0.8,
            link_skew: 4,
            // A mean of 10 kB, as measured at the time.
            page_bytes: Spread { median: 6_000.0, sigma: 1.0 },
            // 24% of hosts take one request on a connection. So do all that use HTTP/1.0: this is
            // their share.
            http10: 0.24,
            // 66% of all hosts take 100 requests on a connection, which is 0.868 of the other 76%.
            // The last 10% take something in between: assumed 10 and 50, half each.
            requests_per_connection: vec![(0.868, 100), (0.066, 10), (0.066, 50)],
            idle_time: Duration::from_secs(15),
            // 20 hosts were found that answer within 100 ms and take 100 requests on a connection
            // (figure 5). Here 330 hosts take so many, and a tenth of these think for less than 100
            // ms: a few more than 20, because those of the paper were selected.
            think_time: spread_ms(400, 1.1),
            think_jitter: 0.3,
            // HTTP/1.1 was twice as fast as HTTP/1.0, though a quarter of the hosts don't support
            // it (figure 4). So opening a connection (c) takes 1.9 times as long as a reply (r),
            // since (c + r) / (r + 0.24 c) = 2.
            accept_time: spread_ms(800, 1.0),
            // One continent by cable; little compared to the rest.
            round_trip: spread_ms(80, 0.2),
            round_trip_jitter: 0.1,
            // Assumed: a name server near the host, queried once for each host.
            dns_time: spread_ms(60, 0.8),
            // Assumed: two thirds of the hosts send at 1.4 to 7 Mb/s, a shared network line of the
            // time.
            rate: Spread { median: 400e3, sigma: 0.8 },
            ..Self::default()
        }
    }

    /// Returns the settings of a web of 2025 for comparing policies: 2,000 hosts, 60,000 pages,
    /// short round trips, TLS, coded bodies. They were fixed before the first run on it.
    pub fn scenario_2025() -> Self {
        Self {
            hosts: 2_000,
            pages: 60_000,
            // Sites differ more in size than in 2003.
            pages_sigma: 1.5,
            // IRLbot counted (Lee and others, 2008) some 62 links a page on average; more by now.
            links: Spread { median: 60.0, sigma: 0.7 },
            locality: 0.8,
            link_skew: 4,
            // The HTML of a page alone, in bytes: a mean of 138,000 * e^(1.06^2 / 2) = 242,000.
            page_bytes: Spread { median: 138_000.0, sigma: 1.06 },
            // Assumed: dead links and moved pages, few among a site's own links.
            not_found: 0.02,
            redirect: 0.03,
            // nginx's default: 100 requests on a connection until 1.19.10, 1,000 since. Others have
            // no limit.
            requests_per_connection: vec![(0.25, 100), (0.60, 1_000)],
            // Nearly all pages use https, and nearly all of these are coded; text shrinks to a
            // fifth, as IRLbot found.
            tls: 0.95,
            gzip: 0.5,
            brotli: 0.4,
            coded_ratio: 5.0,
            // Assumed: some pages are generated on request, some come from a nearby cache.
            think_time: spread_ms(120, 1.0),
            think_jitter: 0.4,
            // Assumed: from the next data centre (a tenth below 22 ms) to the other side of the
            // world.
            round_trip: spread_ms(60, 0.8),
            // Assumed: the resolver is near and has many of the names cached.
            dns_time: spread_ms(30, 0.8),
            // Assumed: 40 Mb/s, what one connection gets of the capacity of a server's network.
            rate: Spread { median: 5e6, sigma: 1.0 },
            ..Self::default()
        }
    }

    /// Returns the settings of a web with every hostile host there is, and ten well-behaved ones.
    pub fn hostile() -> Self {
        Self {
            hosts: 10,
            pages: 200,
            page_bytes: Spread { median: 4_000.0, sigma: 0.5 },
            odd_links: 0.5,
            noise: 0.5,
            hostile: Hostile::ALL.to_vec(),
            ..Self::default()
        }
    }
}

const fn spread_ms(median_ms: u64, sigma: f64) -> TimeSpread {
    TimeSpread { median: Duration::from_millis(median_ms), sigma }
}
