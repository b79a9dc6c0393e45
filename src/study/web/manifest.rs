//! What a crawl of the whole web should come to: every URL, its outcome, its requests, its records.
//!
//! Made by walking the description from the seeds, breadth first, the way RFC 9309 and 9110 say a
//! crawler goes; no code of the crawler's is used. Scope is every host under `.test`.
//!
//! Laws: a URL is in the manifest exactly if a crawler honouring robots.txt comes to know it (a
//! robots.txt, if there is a host to ask for it); a URL that isn't in it must not be asked for. Of
//! endless rows only the part within the budget is listed and the last entry is marked open: deeper
//! ones may be asked for up to a crawler's cap.
//! Cost: one look at each page's links, under 1 us a page; about 100 bytes a URL while walking.

use super::hostile::{Asked, Manner, Play, Row};
use super::page::Kind;
use super::{Place, Resource, Robots, Web};
use crate::ground::map::{Map, Set};
use std::io::{self, Write};

/// What became of a URL.
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
}

impl Outcome {
    /// As in logs and manifests.
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
        }
    }
}

/// What the crawl allows itself; the manifest hangs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Redirects followed one after another.
    pub redirects: u32,
    /// Times a URL is tried before it is given up, the first included.
    pub tries: u32,
    /// Whether robots.txt is asked for and obeyed.
    pub robots: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self { redirects: 10, tries: 3, robots: true }
    }
}

/// From and up to, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub min: u32,
    /// The most.
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

/// What one URL should come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which URL.
    pub place: Place,
    /// Any of these is right.
    pub outcomes: &'static [Outcome],
    /// Requests the server answers, or begins to.
    pub requests: Range,
    /// Responses the archive holds (revisits count; each with or without its request record).
    pub records: Range,
    /// There is more behind it without end; a crawl goes on until a cap of its own.
    pub open: bool,
}

/// The expected crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// In the order a breadth-first walk finds them; a host's robots.txt before its first URL.
    pub entries: Vec<Entry>,
}

/// Found and not yet looked at, with the redirects that led to it in a row.
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

    /// One JSON object a line: a head, then the entries.
    pub fn write(&self, web: &Web, out: &mut dyn Write) -> io::Result<()> {
        let (seed, urls) = (web.settings.seed, self.entries.len());
        writeln!(
            out,
            "{{\"manifest\":1,\"seed\":{seed},\"hosts\":{},\"urls\":{urls}}}",
            web.hosts()
        )?;
        for entry in &self.entries {
            // Nothing in a URL or a name of ours needs an escape.
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

type Verdict = (&'static [Outcome], Range, Range);

impl Walk<'_> {
    fn find(&mut self, place: Place, redirects: u32) {
        if self.seen.insert(place) {
            if self.hosts.insert(place.host) && self.budget.robots {
                self.enter_robots(place.host);
            }
            self.found.push(Found { place, redirects });
        }
    }

    fn look(&mut self, place: Place, redirects: u32) {
        match place.resource {
            // Known as the host's robots.txt already, if it is asked for at all.
            Resource::Robots => {}
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
            // Whether a 500 is worth another try, or each try a record, is the crawler's to say.
            Kind::ServerError => {
                let tries = Range { min: 1, max: self.budget.tries };
                (&[Outcome::HttpError], tries, tries)
            }
        };
        self.entries.push(Entry { place, outcomes, requests, records, open: false });
        if requests.max == 0 {
            return;
        }
        if kind == Kind::Redirect {
            // Chains of behaving hosts are far shorter than any budget.
            self.find(self.web.redirect_of(host, page), 0);
        }
        for link in self.web.links(place) {
            self.find(link.to, 0);
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
            // Without a byte of the reply a connection that had served before may have been about
            // to close anyway: the request is sent again without counting (RFC 9110 9.2.2).
            Asked::Tries if matches!(row.play, Play::CloseAtOnce | Play::ResetAtOnce) => {
                Range { min: 1, max: tries + 1 }
            }
            Asked::Tries => Range { min: 1, max: tries },
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
        // A retry may leave a record of each attempt, an unfinished reply one or none.
        let records = match outcomes {
            [Outcome::Ok] | [Outcome::Redirect] => Range { min: 1, max: requests.max },
            _ => Range::upto(requests.max),
        };
        // One redirect too many: it is known, and not asked for.
        let over = redirects > self.budget.redirects;
        let (requests, records) = match over {
            true => (Range::exactly(0), Range::exactly(0)),
            false => (requests, records),
        };
        if over {
            outcomes = &[Outcome::RedirectLimit];
        }
        let open = row.play == Play::TwoMore && index >= ENDLESS_LISTED;
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

    /// Hops of a chain of redirects are not entered as seen: a redirect is asked for once for
    /// itself, and once for each that leads to it.
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
            entry.requests.max += hops;
            entry.records.max += hops;
        }
    }

    /// The robots.txt of a host that can be reached.
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
                // A redirect to itself is followed as often as the budget has it.
                let max = tries * (self.budget.redirects + 1);
                (outcomes, requests) = (row.outcomes, Range { min: 1, max });
            } else if spec.manner == Manner::Mute && spec.certificate.is_none() {
                // It is asked, and doesn't read.
                (outcomes, requests) = (&[Outcome::HeadTimedOut], Range::exactly(0));
            } else if rows.iter().all(|row| row.asked == Asked::Never) {
                return;
            }
        }
        // Whether the archive keeps robots.txt is a setting of the crawler's.
        let records = Range::upto(requests.max);
        self.entries.push(Entry { place, outcomes, requests, records, open: false });
    }
}

/// Pages listed of a tree of links without end.
const ENDLESS_LISTED: u32 = 6;
