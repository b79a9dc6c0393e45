//! What a synthetic web is like: shares, spreads, and ready-made webs.
//!
//! Shares are from 0 to 1 and are drawn per host or per page as their field says. Everything else
//! follows from these settings and their seed.

use super::hostile::Hostile;
use std::time::Duration;

/// A lognormal spread of counts or sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Half of all values are below it.
    pub median: f64,
    /// Standard deviation of the natural logarithm; 0 means always the median.
    pub sigma: f64,
}

/// A lognormal spread of durations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeSpread {
    /// Half of all values are below it.
    pub median: Duration,
    /// Standard deviation of the natural logarithm; 0 means always the median.
    pub sigma: f64,
}

/// Description of a synthetic web.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Decides every draw.
    pub seed: u64,
    /// Hosts that behave (hostile ones come on top).
    pub hosts: u32,
    /// Hosts, from the first on, whose root page is a seed.
    pub seeds: u32,
    /// Pages on all behaving hosts together; each host has at least its root.
    pub pages: u32,
    /// How unequal hosts are in pages: sigma of the lognormal weight of a host.
    pub pages_sigma: f64,
    /// Hosts that share a registrable domain; 1 gives each its own.
    pub hosts_per_domain: u32,
    /// Hosts that share an address; 1 gives each its own.
    pub hosts_per_address: u32,

    /// Pages that each page is the first to link to: small is deep, large is flat.
    pub fanout: u32,
    /// Hosts that each host is the first to link to.
    pub host_fanout: u32,
    /// Links of a page, those of the fan-out included.
    pub links: Spread,
    /// Share of the links beyond the fan-out that stay on their host.
    pub locality: f64,
    /// How much those links favour few pages: 1 not at all, 2 and 3 more and more.
    pub link_skew: u32,
    /// Made easy for crawlers that know less: no path has a query or an escape, and replies over
    /// HTTP/1.1 say that the connection is kept, as they needn't.
    pub easy: bool,
    /// Share of links in odd spellings: entities, dot segments, blanks, fragments, capitals.
    pub odd_links: f64,
    /// Share of pages with what isn't a link to follow: mail addresses, comments, scripts, hosts
    /// outside `.test`, and references inside raw text.
    pub noise: f64,

    /// Length of an HTML body before coding, bytes; pages with many links may exceed it.
    pub page_bytes: Spread,
    /// Share of pages answered 404, per page.
    pub not_found: f64,
    /// Share of pages answered 500, per page.
    pub server_error: f64,
    /// Share of pages that redirect to another, per page.
    pub redirect: f64,
    /// Share of pages whose body is the same as that of others on the host, per page.
    pub duplicate: f64,
    /// Share of pages that aren't HTML, per page.
    pub binary: f64,

    /// Time to the first byte of a reply, drawn per host.
    pub think_time: TimeSpread,
    /// How much that time varies from reply to reply: sigma of a lognormal factor.
    pub think_jitter: f64,
    /// Time there and back through the network, drawn per host. In simulation only, as are all
    /// further times and rates: loopback has none.
    pub round_trip: TimeSpread,
    /// How much that time varies from message to message: sigma of a lognormal factor.
    pub round_trip_jitter: f64,
    /// Time a host takes to accept a connection, beyond the round trip, drawn per host.
    pub accept_time: TimeSpread,
    /// Time of a look-up, drawn per host.
    pub dns_time: TimeSpread,
    /// Bytes per second of a host, drawn per host; a median of 0 is unlimited.
    pub rate: Spread,
    /// How many times shorter a coded body is on the wire. Where bodies are really moved, they
    /// are really coded.
    pub coded_ratio: f64,

    /// Requests allowed per connection: (share of hosts, limit); hosts left over have no limit.
    pub requests_per_connection: Vec<(f64, u32)>,
    /// Share of hosts that close at their limit without announcing it, per host.
    pub close_silently: f64,
    /// Share of hosts that mix up replies to pipelined requests, per host, each in a drawn way.
    pub muddled: f64,
    /// Whether redirects to another host lead to any page of it, not to its front page alone.
    pub deep_redirects: bool,
    /// How long a host keeps an idle connection.
    pub idle_time: Duration,
    /// Share of hosts that speak HTTP/1.0 and close after each reply, per host.
    pub http10: f64,
    /// Share of hosts that are served over TLS, per host.
    pub tls: f64,
    /// Share of hosts that send in chunks, per host (HTTP/1.1 only).
    pub chunked: f64,
    /// Share of hosts that code bodies by gzip if the client accepts it, per host.
    pub gzip: f64,
    /// Share of hosts that code bodies by brotli.
    pub brotli: f64,
    /// Share of hosts that code bodies by zstd.
    pub zstd: f64,
    /// Share of hosts that code bodies by deflate (half with the zlib frame, half raw).
    pub deflate: f64,

    /// Share of hosts whose robots.txt allows all in words; those left over answer 404.
    pub robots_allow: f64,
    /// Share of hosts whose robots.txt closes part of the host.
    pub robots_part: f64,
    /// Share of hosts whose robots.txt asks for a delay.
    pub robots_delay: f64,
    /// Share of hosts whose robots.txt closes everything.
    pub robots_deny: f64,
    /// The delay asked for.
    pub crawl_delay: Duration,

    /// Hostile hosts, each a seed.
    pub hostile: Vec<Hostile>,
}

impl Default for Settings {
    /// A quiet, fast, uniform web: every host behaves, nothing waits.
    fn default() -> Self {
        let at_once = TimeSpread { median: Duration::ZERO, sigma: 0.0 };
        Self {
            seed: 1,
            hosts: 64,
            seeds: 1,
            pages: 6_400,
            pages_sigma: 0.0,
            hosts_per_domain: 1,
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
            hostile: Vec::new(),
        }
    }
}

impl Settings {
    /// A small varied web for a first try: 60 hosts, 3,000 pages, a bit of everything that a
    /// well-meaning server does, and the quick ones of the others.
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

    /// The web of the benchmarks: `hosts` hosts of 300 pages each, 16.7 kB and 25 links a page,
    /// plain HTTP, no waiting, every host a seed.
    pub fn bench(hosts: u32) -> Self {
        Self { hosts, seeds: hosts, pages: hosts.saturating_mul(300), ..Self::default() }
    }

    /// The web of 2003 to compare policies on: 500 hosts, 30,000 pages, slow to connect to. Fixed
    /// before the first run on it.
    ///
    /// Source, where not said otherwise below: Cao, Jiang, Singh: Scheduling Web Crawl for Better
    /// Performance and Quality, TR-682-03, Princeton 2003.
    pub fn scenario_2003() -> Self {
        Self {
            // As the paper's own crawl, of one university's domain; a few of its hosts are large.
            hosts: 500,
            pages: 30_000,
            pages_sigma: 1.2,
            fanout: 8,
            host_fanout: 20,
            // Near what a crawl of 2002 counted (Broder, Najork, Wiener: Efficient URL Caching,
            // 2003): a median of 23 links, 81.5% of them on their host. The fourth power of a
            // uniform draw gives in-links a power law.
            links: Spread { median: 20.0, sigma: 0.6 },
            locality: 0.8,
            link_skew: 4,
            // A mean of 10 kB, as measured at the time.
            page_bytes: Spread { median: 6_000.0, sigma: 1.0 },
            // 24% of hosts take one request on a connection. So do all that speak HTTP/1.0.
            http10: 0.24,
            // 66% of all hosts take 100, which is 0.868 of the other 76%. The last 10% take
            // something between: set to 10 and to 50, half each.
            requests_per_connection: vec![(0.868, 100), (0.066, 10), (0.066, 50)],
            idle_time: Duration::from_secs(15),
            // 20 hosts were found that answer within 100 ms and take 100 requests (figure 5). Of
            // the 330 that take so many a tenth think for less: a few more, as they were picked.
            think_time: spread_ms(400, 1.1),
            think_jitter: 0.3,
            // HTTP/1.1 was twice as fast as HTTP/1.0, though a quarter of the hosts can't speak it
            // (figure 4): opening a connection takes 1.9 times as long as a reply, for (c + r) /
            // (r + 0.24 c) = 2.
            accept_time: spread_ms(800, 1.0),
            // One continent by wire; little next to the rest.
            round_trip: spread_ms(80, 0.2),
            round_trip_jitter: 0.1,
            // Set: a name server near the host, asked once a host.
            dns_time: spread_ms(60, 0.8),
            // Set: two thirds of the hosts send at 1.4 to 7 Mb/s, lines of the time, shared.
            rate: Spread { median: 400e3, sigma: 0.8 },
            ..Self::default()
        }
    }

    /// A web of 2025 to compare policies on: 2,000 hosts, 60,000 pages, near, over TLS, coded.
    /// Fixed before the first run on it.
    pub fn scenario_2025() -> Self {
        Self {
            hosts: 2_000,
            pages: 60_000,
            // Sites differ more in size than they did.
            pages_sigma: 1.5,
            // As IRLbot counted (Lee and others, 2008): some 62 a page on average; more by now.
            links: Spread { median: 60.0, sigma: 0.7 },
            locality: 0.8,
            link_skew: 4,
            // HTML alone: a mean of 138,000 * e^(1.06^2 / 2) = 242,000.
            page_bytes: Spread { median: 138_000.0, sigma: 1.06 },
            // Set: dead links and moved pages, few among a site's own links.
            not_found: 0.02,
            redirect: 0.03,
            // What nginx takes: 100 until 1.19.10, 1,000 since. Others have no limit.
            requests_per_connection: vec![(0.25, 100), (0.60, 1_000)],
            // Nearly all is under https, and nearly all of it coded; text shrinks to a fifth, as
            // IRLbot found.
            tls: 0.95,
            gzip: 0.5,
            brotli: 0.4,
            coded_ratio: 5.0,
            // Set: some pages are made when asked for, some come from a cache near by.
            think_time: spread_ms(120, 1.0),
            think_jitter: 0.4,
            // Set: from the next data centre (a tenth below 22 ms) to the other side of the world.
            round_trip: spread_ms(60, 0.8),
            // Set: the resolver is near and knows many of the names.
            dns_time: spread_ms(30, 0.8),
            // Set: 40 Mb/s, what one connection gets of a server's line.
            rate: Spread { median: 5e6, sigma: 1.0 },
            ..Self::default()
        }
    }

    /// Every hostile host there is, and ten that behave.
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
