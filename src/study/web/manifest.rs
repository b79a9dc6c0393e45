//! The expected result of a crawl of the whole web: for every URL its outcomes, requests and
//! records.
//!
//! The manifest is made by walking the web's description breadth-first from the seeds, as RFC 9309
//! and RFC 9110 demand of a crawler; it uses no code of the crawler. The scope is every host under
//! `.test`.
//!
//! Laws: a URL is in the manifest exactly if a crawler that obeys robots.txt discovers it (the URL
//! of a robots.txt: if its host can be asked for it); a URL that isn't in the manifest must not be
//! requested. Of endless rows (trees of links without end) only the first URLs are listed, and the
//! last of them is marked open: deeper URLs may be requested up to a limit of the crawler.
//!
//! Cost: each page's links are read once, under 1 us a page; about 100 bytes a URL while walking.

use super::hostile::{Asked, Manner, Play, Row};
use super::page::Kind;
use super::{Changes, Place, Resource, Robots, Web};
use crate::ground::map::{Map, Set};
use std::io::{self, Write};

/// The outcome of a URL: what a crawler makes of it in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is its name")]
pub enum Outcome {
    Ok,
    Redirect,
    HttpError,
    RobotsDenied,
    RobotsUnreachable,
    DnsNoSuchName,
    DnsNoAddress,
    DnsTimedOut,
    DnsFailed,
    ConnectRefused,
    ConnectTimedOut,
    Unreachable,
    Reset,
    ClosedEarly,
    TlsNotTls,
    TlsTimedOut,
    CertificateExpired,
    CertificateWrongHost,
    CertificateUnknownIssuer,
    HeadTimedOut,
    BodyTimedOut,
    FetchTimedOut,
    HeadTooLarge,
    BodyTooLarge,
    DecodedTooLarge,
    MalformedHead,
    MalformedFraming,
    CutShort,
    RedirectLimit,
    RedirectLoop,
    ForbiddenAddress,
    Local,
    Challenged,
    Repeats,
}

impl Outcome {
    /// Returns the name of the outcome as used in logs and manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Redirect => "redirect",
            Self::HttpError => "http-error",
            Self::RobotsDenied => "robots-denied",
            Self::RobotsUnreachable => "robots-unreachable",
            Self::DnsNoSuchName => "dns-no-such-name",
            Self::DnsNoAddress => "dns-no-address",
            Self::DnsTimedOut => "dns-timed-out",
            Self::DnsFailed => "dns-failed",
            Self::ConnectRefused => "connect-refused",
            Self::ConnectTimedOut => "connect-timed-out",
            Self::Unreachable => "unreachable",
            Self::Reset => "reset",
            Self::ClosedEarly => "closed-early",
            Self::TlsNotTls => "tls-not-tls",
            Self::TlsTimedOut => "tls-timed-out",
            Self::CertificateExpired => "certificate-expired",
            Self::CertificateWrongHost => "certificate-wrong-host",
            Self::CertificateUnknownIssuer => "certificate-unknown-issuer",
            Self::HeadTimedOut => "head-timed-out",
            Self::BodyTimedOut => "body-timed-out",
            Self::FetchTimedOut => "fetch-timed-out",
            Self::HeadTooLarge => "head-too-large",
            Self::BodyTooLarge => "body-too-large",
            Self::DecodedTooLarge => "decoded-too-large",
            Self::MalformedHead => "malformed-head",
            Self::MalformedFraming => "malformed-framing",
            Self::CutShort => "cut-short",
            Self::RedirectLimit => "redirect-limit",
            Self::RedirectLoop => "redirect-loop",
            Self::ForbiddenAddress => "forbidden-address",
            Self::Local => "local",
            Self::Challenged => "challenged",
            Self::Repeats => "repeats",
        }
    }
}

/// The limits of the crawler, on which the manifest depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The number of redirects in a row that the crawler follows.
    pub redirects: u32,
    /// How often the crawler tries a URL before it gives up, the first try included.
    pub tries: u32,
    /// True if the crawler requests and obeys robots.txt.
    pub robots: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self { redirects: 10, tries: 3, robots: true }
    }
}

/// An inclusive range of counts, in which an actual count must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least count.
    pub min: u32,
    /// The largest count.
    pub max: u32,
}

impl Range {
    const fn exactly(count: u32) -> Self {
        Self { min: count, max: count }
    }

    const fn upto(max: u32) -> Self {
        Self { min: 0, max }
    }
}

/// The expected result for one URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The place that the URL refers to.
    pub place: Place,
    /// The acceptable outcomes of the URL; any of them is right.
    pub outcomes: &'static [Outcome],
    /// The number of requests for the URL that the server answers, at least in part.
    pub requests: Range,
    /// The number of responses for the URL in the archive. Revisit records count; each response may
    /// be there with or without its request record.
    pub records: Range,
    /// True if endlessly many URLs follow this one; a crawl may go on to them up to a limit of its
    /// own.
    pub open: bool,
}

/// The expected result of a whole crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The entries in breadth-first order; a host's robots.txt comes before its first URL.
    pub entries: Vec<Entry>,
}

/// Places found and not yet visited, with the number of redirects in a row that led to each.
struct Found {
    place: Place,
    redirects: u32,
}

struct Walk<'a> {
    web: &'a Web,
    budget: Budget,
    hosts: Set<u32>,
    seen: Set<Place>,
    found: Vec<Found>,
    entries: Vec<Entry>,
}

impl Manifest {
    /// Walks the web from its seeds.
    pub fn new(web: &Web, budget: Budget) -> Self {
        let mut walk = Walk {
            web,
            budget,
            hosts: Set::default(),
            seen: Set::default(),
            found: Vec::new(),
            entries: Vec::new(),
        };
        web.seed_places().for_each(|place| walk.find(place, 0));
        let mut at = 0;
        while at < walk.found.len() {
            let Found { place, redirects } = walk.found[at];
            walk.look(place, redirects);
            at += 1;
        }
        walk.count_hops();
        Self { entries: walk.entries }
    }

    /// Writes the manifest as one JSON object per line: a head, then the entries.
    pub fn write(&self, web: &Web, out: &mut dyn Write) -> io::Result<()> {
        let (seed, urls) = (web.settings.seed, self.entries.len());
        writeln!(
            out,
            "{{\"manifest\":1,\"seed\":{seed},\"hosts\":{},\"urls\":{urls}}}",
            web.hosts()
        )?;
        for entry in &self.entries {
            // No URL or name of this web needs an escape.
            let names: Vec<_> =
                entry.outcomes.iter().map(|of| format!("\"{}\"", of.name())).collect();
            let (requests, records) = (entry.requests, entry.records);
            write!(
                out,
                "{{\"url\":\"{}\",\"outcomes\":[{}],\"requests\":[{},{}],\"records\":[{},{}]",
                web.url(entry.place),
                names.join(","),
                requests.min,
                requests.max,
                records.min,
                records.max
            )?;
            out.write_all(if entry.open { b",\"open\":true}\n" } else { b"}\n" })?;
        }
        Ok(())
    }
}

impl Entry {
    /// Returns what is expected of the page of this entry if it may change, appear and vanish: that
    /// it is requested any number of times.
    fn at_any_time(self, changes: &Changes) -> Self {
        let comes_and_goes = changes.appear > 0.0 || changes.vanish > 0.0;
        let least = |range: Range| if comes_and_goes { 0 } else { range.min };
        let most = |range: Range| if range.max > 0 { u32::MAX } else { 0 };
        let any = |range: Range| Range { min: least(range), max: most(range) };
        let outcomes = match self.outcomes {
            [Outcome::Ok] if comes_and_goes => &[Outcome::Ok, Outcome::HttpError],
            outcomes => outcomes,
        };
        Self { outcomes, requests: any(self.requests), records: any(self.records), ..self }
    }
}

type Verdict = (&'static [Outcome], Range, Range);

impl Walk<'_> {
    fn find(&mut self, place: Place, redirects: u32) {
        if self.seen.insert(place) {
            if self.hosts.insert(place.host) && self.budget.robots {
                self.enter_robots(place.host);
                if self.web.has_sitemap(place.host) {
                    self.find(Place { resource: Resource::Sitemap, ..place }, 0);
                }
            }
            self.found.push(Found { place, redirects });
        }
    }

    fn look(&mut self, place: Place, redirects: u32) {
        match place.resource {
            // The robots.txt has been entered with its host, if it is requested at all.
            Resource::Robots => {}
            Resource::Sitemap => self.look_at_sitemap(place),
            Resource::Page(page) => self.look_at_page(place, page),
            Resource::Row { row, index } => {
                let kind = self.web.hostile_of(place.host).expect("only hostile hosts have rows");
                let row = &kind.spec().rows[row as usize];
                self.look_at_row(place, row, index, redirects);
            }
        }
    }

    fn look_at_page(&mut self, place: Place, page: u32) {
        let host = place.host;
        let kind = self.web.kind(host, page);
        let denied = self.web.robots_of(host) == Robots::Deny || kind == Kind::Closed;
        let (outcomes, requests, records): Verdict = match kind {
            _ if denied && self.budget.robots => {
                (&[Outcome::RobotsDenied], Range::exactly(0), Range::exactly(0))
            }
            Kind::Html | Kind::Duplicate | Kind::Binary | Kind::Closed => {
                (&[Outcome::Ok], Range::exactly(1), Range::exactly(1))
            }
            Kind::Redirect => (&[Outcome::Redirect], Range::exactly(1), Range::exactly(1)),
            Kind::NotFound => (&[Outcome::HttpError], Range::exactly(1), Range::exactly(1)),
            // Whether a 500 is tried again, and whether each try is recorded, depends on the
            // crawler.
            Kind::ServerError => {
                let tries = Range { min: 1, max: self.budget.tries };
                (&[Outcome::HttpError], tries, tries)
            }
        };
        let entry = Entry { place, outcomes, requests, records, open: false };
        self.entries
            .push(self.web.settings().changes.as_ref().map_or(entry, |how| entry.at_any_time(how)));
        if requests.max == 0 {
            return;
        }
        if kind == Kind::Redirect {
            // Chains on well-behaved hosts are far shorter than any budget.
            self.find(self.web.redirect_of(host, page), 0);
        }
        for link in self.web.links(place) {
            self.find(link.to, 0);
        }
    }

    /// Enters a sitemap, and finds the pages that it lists.
    fn look_at_sitemap(&mut self, place: Place) {
        let (outcomes, once) = (&[Outcome::Ok], Range::exactly(1));
        let entry = Entry { place, outcomes, requests: once, records: once, open: false };
        let changes = self.web.settings().changes.as_ref();
        self.entries.push(changes.map_or(entry, |how| entry.at_any_time(how)));
        for page in 0..self.web.pages_of(place.host) {
            self.find(Place { resource: Resource::Page(page), ..place }, 0);
        }
    }

    fn look_at_row(&mut self, place: Place, row: &Row, index: u32, redirects: u32) {
        let tries = self.budget.tries;
        let mut outcomes = row.outcomes;
        let ruled = matches!(outcomes, [Outcome::RobotsDenied] | [Outcome::RobotsUnreachable]);
        let requests = match row.asked {
            Asked::Never if !self.budget.robots && ruled && row.play == Play::StallHead => {
                outcomes = &[Outcome::HeadTimedOut];
                Range::exactly(0)
            }
            Asked::Never if !self.budget.robots && ruled => {
                outcomes = &[Outcome::Ok];
                Range::exactly(1)
            }
            Asked::Never => Range::exactly(0),
            Asked::Once => Range::exactly(1),
            // If the connection had served other requests and now closes or resets without a byte
            // of a reply, it may have been about to close anyway: the request is sent again without
            // counting as a try (RFC 9110, section 9.2.2).
            Asked::Tries if matches!(row.play, Play::CloseAtOnce | Play::ResetAtOnce) => {
                Range { min: 1, max: tries + 1 }
            }
            Asked::Tries => Range { min: 1, max: tries },
            Asked::Perhaps => Range::upto(tries),
            Asked::Twice => Range::exactly(tries.min(2)),
            Asked::Past(refusals) if refusals < tries => Range::exactly(refusals + 1),
            Asked::Past(_) => {
                outcomes = &[Outcome::HttpError];
                Range::exactly(tries)
            }
        };
        let requests = if outcomes.contains(&Outcome::RobotsUnreachable) {
            Range::upto(requests.max)
        } else {
            requests
        };
        // A retry may leave a record of each try, an incomplete reply one or none.
        let records = match outcomes {
            [Outcome::Ok] | [Outcome::Redirect] => Range { min: 1, max: requests.max },
            _ => Range::upto(requests.max),
        };
        // True if one redirect too many led here: the URL is known, but not requested.
        let over = redirects > self.budget.redirects;
        let (requests, records) = match over {
            true => (Range::exactly(0), Range::exactly(0)),
            false => (requests, records),
        };
        if over {
            outcomes = &[Outcome::RedirectLimit];
        }
        let open = matches!(row.play, Play::TwoMore | Play::Alike) && index >= ENDLESS_LISTED;
        self.entries.push(Entry { place, outcomes, requests, records, open });
        if requests.max == 0 || open {
            return;
        }
        self.follow_row(place, row, index, redirects);
    }

    fn follow_row(&mut self, place: Place, row: &Row, index: u32, redirects: u32) {
        match row.play {
            Play::RedirectTo(path) => {
                let to = self.web.place(place.host, path).expect("the table's own path");
                self.find(to, redirects + 1);
            }
            Play::RedirectOn => {
                let Resource::Row { row, .. } = place.resource else { return };
                let resource = Resource::Row { row, index: index + 1 };
                self.find(Place { resource, ..place }, redirects + 1);
            }
            _ => {
                for link in self.web.links(place) {
                    self.find(link.to, 0);
                }
            }
        }
    }

    /// Counts the requests for the hops of redirect chains. Hops are not entered as seen: a
    /// redirect is requested once for itself, and once for each redirect that leads to it.
    fn count_hops(&mut self) {
        let led_to = |entry: &Entry| match entry.place.resource {
            Resource::Page(page) if entry.outcomes == [Outcome::Redirect] => {
                Some(self.web.redirect_of(entry.place.host, page))
            }
            _ => None,
        };
        let mut hops: Map<Place, u32> = Map::default();
        for to in self.entries.iter().filter_map(led_to) {
            *hops.entry(to).or_default() += 1;
        }
        for entry in self.entries.iter_mut().filter(|entry| entry.outcomes == [Outcome::Redirect]) {
            let hops = hops.get(&entry.place).copied().unwrap_or(0);
            // In a web that changes there is no most.
            entry.requests.max = entry.requests.max.saturating_add(hops);
            entry.records.max = entry.records.max.saturating_add(hops);
        }
    }

    /// Enters the robots.txt of a host, if the host can be reached.
    fn enter_robots(&mut self, host: u32) {
        let place = Place { host, resource: Resource::Robots };
        let tries = self.budget.tries;
        let (mut outcomes, mut requests): (&'static [Outcome], _) = match self.web.robots_of(host) {
            Robots::None => (&[Outcome::HttpError], Range::exactly(1)),
            _ => (&[Outcome::Ok], Range::exactly(1)),
        };
        if let Some(kind) = self.web.hostile_of(host) {
            let spec = kind.spec();
            let rows = spec.rows;
            if let Some(row) = rows.iter().find(|row| row.path == super::ROBOTS_PATH) {
                // A redirect to itself is followed as often as the budget allows.
                let max = tries * (self.budget.redirects + 1);
                (outcomes, requests) = (row.outcomes, Range { min: 1, max });
            } else if spec.manner == Manner::Mute && spec.certificate.is_none() {
                // The host gets the request but does not read it.
                (outcomes, requests) = (&[Outcome::HeadTimedOut], Range::exactly(0));
            } else if rows.iter().all(|row| row.asked == Asked::Never) {
                return;
            }
        }
        // Whether the archive keeps robots.txt depends on the crawler's settings.
        let records = Range::upto(requests.max);
        self.entries.push(Entry { place, outcomes, requests, records, open: false });
    }
}

/// The number of pages that the manifest lists of an endless tree of links.
const ENDLESS_LISTED: u32 = 6;
