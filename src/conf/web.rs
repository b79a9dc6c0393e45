//! `[lab]` and `[web]`: a synthetic web on loopback, and what it is like.
//!
//! A file with `[lab]` crawls that web and nothing else: names are resolved by the lab's own
//! server, which knows no name outside `.test`. `[web]` describes it, starting from a preset.

use super::units::Decimal;
use crate::web::{Hostile, Settings, Spread, TimeSpread};
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
    /// `[web]`: the web it serves.
    pub web: Web,
}

impl Default for Lab {
    fn default() -> Self {
        Self {
            directory: PathBuf::from("jobs/lab"),
            manifest: true,
            events: Events::None,
            web: Web::default(),
        }
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
}

/// `[web]`: what the synthetic web is like. Shares are of hosts or of pages, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    /// What the other values are where the file is silent.
    pub preset: Preset,
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
    /// Requests allowed on a connection.
    pub requests_per_connection: Vec<Allowance>,
    /// Hosts that close at their limit without a word.
    pub silent_close_share: Decimal,
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

const fn decimal(thousandths: u32) -> Decimal {
    Decimal::from_thousandths(thousandths)
}

impl Default for Web {
    fn default() -> Self {
        Self::of(Preset::Quickstart)
    }
}

impl Web {
    /// The web of a preset.
    pub fn of(preset: Preset) -> Self {
        match preset {
            Preset::Plain => Self::plain(),
            Preset::Quickstart => Self::quickstart(),
            Preset::Bench => Self { preset, seeds: 64, pages: 64 * 300, ..Self::plain() },
            Preset::Hostile => Self::hostile(),
        }
    }

    fn plain() -> Self {
        let none = decimal(0);
        Self {
            preset: Preset::Plain,
            seed: 1,
            hosts: 64,
            seeds: 1,
            pages: 6_400,
            pages_sigma: none,
            hosts_per_domain: 1,
            hosts_per_address: 1,
            fanout: 8,
            host_fanout: 8,
            links_per_page: 25,
            links_sigma: none,
            locality: decimal(750),
            link_skew: 2,
            odd_links_share: none,
            noise_share: none,
            page_bytes: 16_700,
            page_bytes_sigma: none,
            not_found_share: none,
            server_error_share: none,
            redirect_share: none,
            duplicate_share: none,
            binary_share: none,
            think_time: Duration::ZERO,
            think_time_sigma: none,
            think_jitter: none,
            requests_per_connection: Vec::new(),
            silent_close_share: none,
            idle_time: Duration::from_secs(15),
            http10_share: none,
            tls_share: none,
            chunked_share: none,
            gzip_share: none,
            brotli_share: none,
            zstd_share: none,
            deflate_share: none,
            robots_allow_share: none,
            robots_part_share: none,
            robots_delay_share: none,
            robots_deny_share: none,
            crawl_delay: Duration::from_secs(2),
            hostile: Vec::new(),
        }
    }

    fn quickstart() -> Self {
        let allow = |requests, thousandths| Allowance { requests, share: decimal(thousandths) };
        Self {
            preset: Preset::Quickstart,
            hosts: 60,
            seeds: 3,
            pages: 3_000,
            pages_sigma: decimal(800),
            links_per_page: 18,
            links_sigma: decimal(500),
            odd_links_share: decimal(200),
            noise_share: decimal(200),
            page_bytes: 9_000,
            page_bytes_sigma: decimal(900),
            not_found_share: decimal(30),
            server_error_share: decimal(10),
            redirect_share: decimal(50),
            duplicate_share: decimal(40),
            binary_share: decimal(30),
            think_time: Duration::from_millis(5),
            think_time_sigma: decimal(1_000),
            think_jitter: decimal(400),
            requests_per_connection: vec![allow(1, 240), allow(10, 100), allow(100, 460)],
            silent_close_share: decimal(200),
            http10_share: decimal(100),
            tls_share: decimal(150),
            chunked_share: decimal(300),
            gzip_share: decimal(400),
            brotli_share: decimal(150),
            zstd_share: decimal(100),
            deflate_share: decimal(50),
            robots_allow_share: decimal(300),
            robots_part_share: decimal(250),
            robots_delay_share: decimal(30),
            robots_deny_share: decimal(40),
            crawl_delay: Duration::from_secs(1),
            hostile: vec!["quick".to_owned()],
            ..Self::plain()
        }
    }

    fn hostile() -> Self {
        Self {
            preset: Preset::Hostile,
            hosts: 10,
            pages: 200,
            page_bytes: 4_000,
            page_bytes_sigma: decimal(500),
            odd_links_share: decimal(500),
            noise_share: decimal(500),
            hostile: vec!["all".to_owned()],
            ..Self::plain()
        }
    }
}

impl Web {
    /// As the web is made of them. What only a simulation needs has its defaults.
    pub fn settings(&self) -> Settings {
        let spread = |median: u32, sigma: Decimal| Spread {
            median: f64::from(median),
            sigma: sigma.as_f64(),
        };
        let allowances = self.requests_per_connection.iter();
        Settings {
            seed: self.seed,
            hosts: self.hosts,
            seeds: self.seeds,
            pages: self.pages,
            pages_sigma: self.pages_sigma.as_f64(),
            hosts_per_domain: self.hosts_per_domain,
            hosts_per_address: self.hosts_per_address,
            fanout: self.fanout,
            host_fanout: self.host_fanout,
            links: spread(self.links_per_page, self.links_sigma),
            locality: self.locality.as_f64(),
            link_skew: self.link_skew,
            odd_links: self.odd_links_share.as_f64(),
            noise: self.noise_share.as_f64(),
            page_bytes: spread(self.page_bytes, self.page_bytes_sigma),
            not_found: self.not_found_share.as_f64(),
            server_error: self.server_error_share.as_f64(),
            redirect: self.redirect_share.as_f64(),
            duplicate: self.duplicate_share.as_f64(),
            binary: self.binary_share.as_f64(),
            think_time: TimeSpread {
                median: self.think_time,
                sigma: self.think_time_sigma.as_f64(),
            },
            think_jitter: self.think_jitter.as_f64(),
            requests_per_connection: allowances
                .map(|each| (each.share.as_f64(), each.requests))
                .collect(),
            close_silently: self.silent_close_share.as_f64(),
            idle_time: self.idle_time,
            http10: self.http10_share.as_f64(),
            tls: self.tls_share.as_f64(),
            chunked: self.chunked_share.as_f64(),
            gzip: self.gzip_share.as_f64(),
            brotli: self.brotli_share.as_f64(),
            zstd: self.zstd_share.as_f64(),
            deflate: self.deflate_share.as_f64(),
            robots_allow: self.robots_allow_share.as_f64(),
            robots_part: self.robots_part_share.as_f64(),
            robots_delay: self.robots_delay_share.as_f64(),
            robots_deny: self.robots_deny_share.as_f64(),
            crawl_delay: self.crawl_delay,
            hostile: self.hostile_kinds(),
            ..Settings::default()
        }
    }

    /// The kinds that the names stand for, each once, in the order of the list of all.
    fn hostile_kinds(&self) -> Vec<Hostile> {
        let is_named = |kind: &Hostile| {
            self.hostile.iter().any(|name| match name.as_str() {
                "all" => true,
                "quick" => kind.is_quick(),
                name => kind.name() == name,
            })
        };
        Hostile::ALL.into_iter().filter(is_named).collect()
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
