//! Hosts of a synthetic web: names, addresses, and the traits drawn for each.
//!
//! Only the number of pages is stored per host; everything else is drawn again when needed. Host 0
//! (in a graph: its entry's host) never disallows everything by robots.txt, so that all other hosts
//! can be reached.

use super::draw::{Draw, Purpose};
use super::hostile::{Hostile, Manner};
use super::settings::{Settings, Spread, TimeSpread};
use super::{Muddle, Ports, Web, push_number};
use std::net::Ipv4Addr;
use std::time::Duration;

/// The scheme of a host: plain text or TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`: plain text.
    Http,
    /// `https`: over TLS.
    Https,
}

impl Scheme {
    /// Returns the scheme as spelled in a URL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port_default(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    pub(super) fn port(self, ports: Ports) -> u16 {
        match self {
            Self::Http => ports.http,
            Self::Https => ports.https,
        }
    }
}

/// The content coding of a host's bodies, applied if the client accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// No coding.
    Identity,
    /// `gzip`.
    Gzip,
    /// `deflate` with the zlib frame, as the standard demands.
    Deflate,
    /// `deflate` without the zlib frame, as some servers send it.
    RawDeflate,
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
}

impl Coding {
    /// Returns the name of the coding as used in Accept-Encoding and Content-Encoding.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Deflate | Self::RawDeflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

/// The kind of a host's robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Robots {
    /// There is no robots.txt: requests for it are answered with 404.
    None,
    /// A robots.txt that allows everything explicitly.
    Allow,
    /// A robots.txt that disallows some paths.
    Part,
    /// A robots.txt that asks for a Crawl-delay.
    Delay,
    /// A robots.txt that disallows everything.
    Deny,
}

/// One host: its identity and its traits.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// The number of the host: well-behaved hosts are counted first, then the hostile ones.
    pub number: u32,
    /// The name of the host in lower case.
    pub name: String,
    /// The kind of a hostile host; `None` for a well-behaved one.
    pub hostile: Option<Hostile>,
    /// The one scheme that the host serves.
    pub scheme: Scheme,
    /// The address that the host's name resolves to.
    pub address: Ipv4Addr,
    /// The number of the host's pages, the root included; 0 for hostile hosts, whose kind lists
    /// their resources.
    pub pages: u32,
    /// True if the host uses HTTP/1.0 and closes the connection after each reply.
    pub http10: bool,
    /// The number of requests that the host answers on one connection before closing it.
    pub requests_max: u32,
    /// True if the host closes the connection at `requests_max` without `Connection: close` in the
    /// last reply.
    pub closes_silently: bool,
    /// How the host mixes up replies; `None` if it doesn't.
    pub muddle: Option<Muddle>,
    /// True if replies say `Connection: keep-alive` while the host keeps the connection.
    pub says_kept: bool,
    /// True if the host sends bodies in chunks.
    pub chunked: bool,
    /// The content coding of the host's bodies, for clients that accept this coding.
    pub coding: Coding,
    /// The kind of the host's robots.txt.
    pub robots: Robots,
    /// The median time from a request to the first byte of its reply.
    pub think_time: Duration,
    /// The round-trip time of the network between the crawler and the host.
    pub round_trip: Duration,
    /// The time the host takes to accept a connection, in addition to the round trip.
    pub accept_time: Duration,
    /// The time that a look-up of the host's name takes.
    pub dns_time: Duration,
    /// The rate at which the host sends, in bytes per second; 0 is unlimited.
    pub rate: u64,
}

/// The longest time in seconds: longer ones, drawn from too wide a spread, are cut to this day.
const SECONDS_MAX: f64 = 86_400.0;
/// The first address assigned to a host, 127.1.0.1; the lab's own services are at 127.0.0.1.
const ADDRESS_FIRST: u32 = 0x7f01_0001;

impl Web {
    /// Returns the number of hosts, hostile ones included.
    pub fn hosts(&self) -> u32 {
        self.settings.hosts + self.hostile_count()
    }

    fn hostile_count(&self) -> u32 {
        u32::try_from(self.settings.hostile.len()).expect("a short list")
    }

    /// Returns the host of this number, which is below [`Web::hosts`].
    pub fn host(&self, number: u32) -> Host {
        match self.hostile_of(number) {
            Some(kind) => self.hostile_host(number, kind),
            None => self.drawn_host(number),
        }
    }

    /// Returns the kind of the hostile host with this number; `None` if the host is well-behaved.
    pub fn hostile_of(&self, number: u32) -> Option<Hostile> {
        let index = number.checked_sub(self.settings.hosts)?;
        self.settings.hostile.get(index as usize).copied()
    }

    /// Returns the number of the host with this name, in any case, with or without a final dot;
    /// `None` if there is no such host.
    pub fn host_named(&self, name: &str) -> Option<u32> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if let Some(kind) = name.strip_suffix(".test").and_then(Hostile::named) {
            let index = self.settings.hostile.iter().position(|listed| *listed == kind)?;
            return Some(self.settings.hosts + u32::try_from(index).expect("a short list"));
        }
        let digits: String =
            name.strip_prefix('h')?.chars().take_while(char::is_ascii_digit).collect();
        let number = digits.parse().ok().filter(|number| *number < self.settings.hosts)?;
        (self.name_of(number) == name).then_some(number)
    }

    pub(super) fn name_of(&self, number: u32) -> String {
        let mut name = String::new();
        self.push_name(&mut name, number);
        name
    }

    fn push_name(&self, out: &mut String, number: u32) {
        if let Some(kind) = self.hostile_of(number) {
            out.push_str(kind.name());
        } else {
            out.push('h');
            push_number(out, number, 4);
            if let Some(domain) = self.domain_of(number) {
                out.push_str(".d");
                push_number(out, domain, 4);
            }
        }
        out.push_str(".test");
    }

    /// Returns the number of a well-behaved host's registrable domain; `None` if its name is the
    /// domain.
    fn domain_of(&self, number: u32) -> Option<u32> {
        let shared = self.settings.hosts_per_domain;
        match &self.settings.domains {
            Some(domains) => domains.get(number as usize).copied(),
            None => (shared > 1).then(|| number / shared),
        }
    }

    /// Returns the origin of a host, such as `http://h0001.test:8080`. The port is left out if it
    /// is the scheme's default.
    pub fn origin(&self, number: u32) -> String {
        let mut origin = String::new();
        self.push_origin(&mut origin, number);
        origin
    }

    pub(super) fn push_origin(&self, out: &mut String, number: u32) {
        let scheme = self.scheme_of(number);
        let port = scheme.port(self.ports);
        out.push_str(scheme.name());
        out.push_str("://");
        self.push_name(out, number);
        if port != scheme.port_default() {
            out.push(':');
            push_number(out, u32::from(port), 1);
        }
    }

    pub(super) fn scheme_of(&self, number: u32) -> Scheme {
        if let Some(kind) = self.hostile_of(number) {
            return kind.scheme();
        }
        let mut draw = self.draw(Purpose::Host, number, 1);
        if draw.chance(self.settings.tls) { Scheme::Https } else { Scheme::Http }
    }

    /// Returns whether a host with TLS resumes sessions.
    pub fn resumes(&self, number: u32) -> bool {
        self.draw(Purpose::Host, number, 5).chance(self.settings.resuming)
    }

    pub(super) fn robots_of(&self, number: u32) -> Robots {
        if number == self.first_host || self.hostile_of(number).is_some() {
            return Robots::Allow;
        }
        let of = &self.settings;
        let shares = [
            (of.robots_allow, Robots::Allow),
            (of.robots_part, Robots::Part),
            (of.robots_delay, Robots::Delay),
            (of.robots_deny, Robots::Deny),
        ];
        // This is called for every link, and most webs have no robots.txt at all.
        if shares.iter().all(|(share, _)| *share == 0.0) {
            return Robots::None;
        }
        let mut draw = self.draw(Purpose::Host, number, 2);
        by_share(&mut draw, &shares, Robots::None)
    }

    fn address_of(&self, number: u32) -> Ipv4Addr {
        let shared = self.settings.hosts_per_address.max(1);
        let index = match number.checked_sub(self.settings.hosts) {
            None => number / shared,
            Some(hostile) => self.settings.hosts.div_ceil(shared) + hostile,
        };
        Ipv4Addr::from_bits(ADDRESS_FIRST + index)
    }

    fn drawn_host(&self, number: u32) -> Host {
        let of = &self.settings;
        let mut draw = self.draw(Purpose::Host, number, 3);
        let deflate = of.deflate / 2.0;
        let codings = [
            (of.gzip, Coding::Gzip),
            (of.brotli, Coding::Brotli),
            (of.zstd, Coding::Zstd),
            (deflate, Coding::Deflate),
            (deflate, Coding::RawDeflate),
        ];
        let http10 = draw.chance(of.http10);
        let limit = by_share(&mut draw, &of.requests_per_connection, u32::MAX);
        let silently = draw.chance(of.close_silently);
        Host {
            number,
            name: self.name_of(number),
            hostile: None,
            scheme: self.scheme_of(number),
            address: self.address_of(number),
            pages: self.pages_of(number),
            http10,
            requests_max: if http10 { 1 } else { limit.max(1) },
            closes_silently: silently && !http10,
            muddle: self.muddle_of(number).filter(|_| !http10),
            says_kept: of.easy && !http10,
            chunked: draw.chance(of.chunked) && !http10,
            coding: by_share(&mut draw, &codings, Coding::Identity),
            robots: self.robots_of(number),
            think_time: duration(&mut draw, of.think_time),
            round_trip: duration(&mut draw, of.round_trip),
            accept_time: duration(&mut draw, of.accept_time),
            dns_time: duration(&mut draw, of.dns_time),
            rate: draw.lognormal(of.rate) as u64,
        }
    }

    fn hostile_host(&self, number: u32, kind: Hostile) -> Host {
        let requests_max = match kind.manner() {
            Manner::Limit(requests) => requests,
            _ => u32::MAX,
        };
        Host {
            number,
            name: self.name_of(number),
            hostile: Some(kind),
            scheme: kind.scheme(),
            address: self.address_of(number),
            pages: 0,
            http10: false,
            requests_max,
            closes_silently: true,
            muddle: kind.muddle(),
            says_kept: false,
            chunked: false,
            coding: Coding::Identity,
            robots: Robots::Allow,
            think_time: Duration::ZERO,
            round_trip: Duration::ZERO,
            accept_time: Duration::ZERO,
            dns_time: Duration::ZERO,
            rate: 0,
        }
    }

    /// Returns the time to the first byte of one reply: the host's median, varied per request.
    pub fn think_time(&self, host: &Host, request: u32) -> Duration {
        let jitter = Spread { median: 1.0, sigma: self.settings.think_jitter };
        if host.think_time.is_zero() || jitter.sigma == 0.0 {
            return host.think_time;
        }
        let factor = self.draw(Purpose::Think, host.number, request).lognormal(jitter);
        host.think_time.mul_f64(factor.min(1e3))
    }

    /// Returns the round-trip time of one message: the host's own, varied per message.
    pub fn round_trip(&self, host: &Host, message: u32) -> Duration {
        let jitter = Spread { median: 1.0, sigma: self.settings.round_trip_jitter };
        if host.round_trip.is_zero() || jitter.sigma == 0.0 {
            return host.round_trip;
        }
        let factor = self.draw(Purpose::RoundTrip, host.number, message).lognormal(jitter);
        host.round_trip.mul_f64(factor.min(1e3))
    }
}

/// Returns the number of pages before each host's own and, after the last host, the number of all
/// pages. Hosts have lognormal weights, which are scaled to the total; each has at least one page.
pub(super) fn spread_pages(settings: &Settings) -> Vec<u32> {
    let spread = Spread { median: 1.0, sigma: settings.pages_sigma };
    let weigh = |host| Draw::new(settings.seed, Purpose::Weight, host, 0).lognormal(spread);
    let weights: Vec<f64> = (0..settings.hosts).map(weigh).collect();
    let whole: f64 = weights.iter().sum();
    let rest = settings.pages.saturating_sub(settings.hosts);
    // Rounding the running sum gives shares that add up to the total exactly.
    let mut passed = 0.0;
    let roots = 1..=settings.hosts;
    let until = |(roots, weight): (u32, &f64)| {
        passed += weight;
        roots + ((passed / whole * f64::from(rest)) as u32).min(rest)
    };
    let mut starts = vec![0];
    starts.extend(roots.zip(&weights).map(until));
    // The last sum may differ from the total by rounding.
    starts[settings.hosts as usize] = settings.hosts + rest;
    starts
}

/// Returns a drawn value: each of `shares` with its probability, else `otherwise`.
fn by_share<T: Copy>(draw: &mut Draw, shares: &[(f64, T)], otherwise: T) -> T {
    let mut at = draw.unit();
    for &(share, value) in shares {
        if at < share {
            return value;
        }
        at -= share;
    }
    otherwise
}

fn duration(draw: &mut Draw, spread: TimeSpread) -> Duration {
    let seconds = Spread { median: spread.median.as_secs_f64(), sigma: spread.sigma };
    Duration::from_secs_f64(draw.lognormal(seconds).min(SECONDS_MAX))
}
