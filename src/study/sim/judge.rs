//! The judge: holds a simulated crawl to the laws it promised to keep.
//!
//! It sees what an observer at the servers sees ([`Sight`]) and the engine's counters, and knows
//! the web; its numbers are its own ([`Laws`]), not the crawl's, so that a crawl that forgets a
//! delay can't talk it into forgetting it, too. A law is a name in the verdict.
//!
//! | law | says |
//! |---|---|
//! | `one-connection` | a server has at most one connection that carries requests |
//! | `connections` | no more connections are open than allowed |
//! | `depth` | no more requests are unanswered on a connection than allowed |
//! | `rest` | between two visits to a server lies the rest that is owed |
//! | `attempts` | between two connections to a server lies the delay, whatever came of the first |
//! | `crawl-delay` | between two requests lies what the server's robots.txt asks for |
//! | `groups` | servers of an address or a domain are asked neither too many at once nor too soon |
//! | `pace` | requests to a server come no faster than one a delay, two bursts ahead |
//! | `once` | what was answered and kept is asked for again only as `batch` and `hops` allow |
//! | `restart` | after a crash servers asked before are left alone for the longest rest there is |
//! | `tries` | nothing is asked for more often than declared; a crash may forget what was tried |
//! | `robots` | nothing that robots.txt forbids is asked for |
//! | `complete` | a finished crawl that gave nothing up has every page that can be reached |
//! | `records` | each fetch has its line in the crawl log, each page answered its one capture |
//! | `filed` | what the archive has under a page's URL is that page's body |
//! | `kept` | what a sync has called durable is in the archive after a crash |
//! | `memory` | replies take no more memory than allowed |
//! | `order` | the best server in line goes first, by the formulas |
//! | `turn` | no turn does more work than its budgets and the steps under way admit |
//!
//! A crawl may have several processes, one after the other: [`Judge::restarts`]. What is in the
//! archive then, somebody has to read for the judge ([`Captures`]).
//!
//! Cost: a map look-up or two a sight; a look at the order costs a look at every waiting URL.

mod asking;
mod batch;
mod begun;
mod hops;
mod laws;
mod traits;

use super::{Sight, View};
use crate::engine::Engine;
use crate::engine::contract::{ConnId, StopReason};
use crate::ground::map::{Map, Set};
use crate::ground::time::Instant;
use crate::study::web::{Budget, Manifest, Outcome, Place, Resource, Web};
use batch::{Batch, Compared};
use begun::Begun;
use hops::Hops;
pub use laws::{Complete, Laws};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use traits::{Group, Traits};

/// A law that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its name.
    pub law: &'static str,
    /// When.
    pub at: Instant,
    /// How.
    pub how: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law `{}` broken at {}: {}", self.law, self.at, self.how)
    }
}

/// The judge of one run.
#[derive(Debug)]
pub struct Judge {
    laws: Laws,
    forbidden: Set<Place>,
    /// Pages of behaving hosts that a finished crawl must have an answer for.
    wanted: Vec<Place>,
    /// What is known of each host, by its number.
    traits: Vec<Traits>,
    /// Servers of each group that are being asked.
    asking: Map<Group, u32>,
    /// When visits to each group began, in this process.
    begun: Begun,
    conns: Map<ConnId, Line>,
    hosts: Map<u32, Watched>,
    /// Whether a connection says by itself whose it is.
    has_own_addresses: bool,
    answered: Set<Place>,
    /// What redirects have come to, which are asked for again as hops of chains.
    hops: Hops,
    /// Answered, but perhaps forgotten: before a crash of a crawl that keeps no archive, or while
    /// there was no room to keep it. Or not answered, perhaps: redirects with a cut body.
    doubtful: Set<Place>,
    /// There is no room to keep anything.
    is_full: bool,
    asked: Map<Place, u32>,
    /// Processes before this one; when it began, if the one before was killed.
    process: u32,
    killed: Option<Instant>,
    broken: Vec<Broken>,
}

/// Captures in the archive, by page.
pub type Captures = Map<Place, u32>;

/// How a process ended that was not the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was told to, and took its time.
    Stopped,
    /// By its own choice: it could not go on. It may have forgotten something.
    Failed,
    /// In the midst of whatever it did.
    Killed,
}

/// A connection as it is seen.
#[derive(Debug, Default)]
struct Line {
    asked: Instant,
    /// When the crawler had it.
    stood: Option<Instant>,
    host: u32,
    /// When requests were sent that have not come to the server.
    sent: VecDeque<Instant>,
    /// Requests whose replies have not come.
    open: Vec<Option<Place>>,
    batch: Batch,
    requests: u32,
    has_served: bool,
}

/// A server as it is seen.
#[derive(Debug, Default)]
struct Watched {
    line: Option<ConnId>,
    /// When the visit under way began and how many requests it has made, or the last one.
    began: Instant,
    requests: u32,
    compared: Compared,
    /// By which process it was asked last.
    process: u32,
    /// When this process asked for the last connection.
    attempted: Option<Instant>,
    /// When the last reply, or the last connection, ended.
    ended: Instant,
    /// The earliest instant for the next request, were all requests one a delay.
    paced: Instant,
    /// The Crawl-delay that the crawler has been told.
    crawl_delay: Option<Duration>,
}

/// Redirects of a robots.txt that are followed (RFC 9309 2.3.1.2).
const ROBOTS_REDIRECTS: u32 = 5;
/// Broken laws that are told of one run.
const BROKEN_MAX: usize = 20;

impl Judge {
    /// A judge who knows the web and what was promised.
    pub fn new(web: &Web, laws: Laws) -> Self {
        let budget = Budget { robots: laws.robots, tries: laws.tries_max, ..Budget::default() };
        let manifest = Manifest::new(web, budget);
        let is_closed = |outcomes: &[Outcome]| outcomes == [Outcome::RobotsDenied];
        let answers = [Outcome::Ok, Outcome::Redirect, Outcome::HttpError];
        let entries = manifest.entries.iter();
        let forbidden = entries.clone().filter(|entry| is_closed(entry.outcomes));
        let wanted = entries.filter(|entry| {
            let answered = entry.outcomes.iter().all(|outcome| answers.contains(outcome));
            let behaves = matches!(entry.place.resource, Resource::Page(_));
            answered && behaves && entry.requests.min > 0
        });
        Self {
            forbidden: forbidden.map(|entry| entry.place).collect(),
            wanted: wanted.map(|entry| entry.place).collect(),
            traits: (0..web.hosts()).map(|number| Traits::of(web, number, &laws)).collect(),
            asking: Map::default(),
            begun: Begun::default(),
            laws,
            conns: Map::default(),
            hosts: Map::default(),
            has_own_addresses: web.settings().hosts_per_address <= 1,
            answered: Set::default(),
            hops: Hops::of(web),
            doubtful: Set::default(),
            is_full: false,
            asked: Map::default(),
            process: 0,
            killed: None,
            broken: Vec::new(),
        }
    }

    /// Takes in something that was seen.
    pub fn sees(&mut self, at: Instant, sight: &Sight) {
        match sight {
            Sight::Asked { conn, host } => {
                self.judge_attempt(at, *host);
                self.conns.insert(*conn, Line { asked: at, host: *host, ..Line::default() });
                let open = self.conns.len();
                if open > self.laws.connections_max {
                    self.breaks("connections", at, format!("{open} are open"));
                }
            }
            Sight::Sent { conn } => {
                if let Some(line) = self.conns.get_mut(conn) {
                    line.sent.push_back(at);
                }
            }
            Sight::Request { conn, host, place, path, unanswered } => {
                let named = format!("host {host} {path}");
                self.judge_line(at, *conn, *host);
                if !self.compares(*conn, *host, *place) {
                    self.judge_request(at, *place, *unanswered, path, &named);
                }
                self.judge_rest(at, *conn, *host, &named);
                if let Some(line) = self.conns.get_mut(conn) {
                    line.open.push(*place);
                    if line.open.len() == 1 {
                        self.asks(at, *host);
                    }
                }
            }
            Sight::Reply { conn, host, place, status, content, whole } => {
                self.replied(at, *conn, *host, *place, (*status, *content), *whole);
            }
            Sight::Closed { conn, .. } => self.closed(at, *conn),
            Sight::Stood { conn, .. } => {
                if let Some(line) = self.conns.get_mut(conn) {
                    line.stood = Some(at);
                }
            }
            Sight::Resolved { .. } => {}
        }
    }

    /// Looks at the crawl itself, at its memory and at the order of its servers.
    pub fn looks(&mut self, view: &View<'_>) {
        let held = view.engine.held_bytes();
        if held > self.laws.held_bytes_max {
            self.breaks("memory", view.at, format!("{held} bytes of replies are held"));
        }
        if let Err(how) = view.engine.frontier().audit() {
            self.breaks("order", view.at, how);
        }
        self.judge_turns(view.engine, view.at);
    }

    /// The largest turns of a process so far.
    pub fn judge_turns(&mut self, engine: &Engine, at: Instant) {
        let is_known = self.broken.iter().any(|broken| broken.law == "turn");
        for (budget, units) in engine.ledger().peaks() {
            let is_intake = budget == "intake";
            let laws = &self.laws;
            let most = if is_intake { laws.turn_intake_max } else { laws.turn_units_max };
            if units > most && !is_known {
                let work = engine.ledger().largest();
                let how = format!("{budget}: {units} units, not {most}; {work:?}");
                self.breaks("turn", at, how);
            }
        }
    }

    /// A process has ended, and at `at` another begins, which has opened the archive: `before` are
    /// the captures that were durable at the end, `after` are those that are there now; `None` if
    /// no archive is kept.
    ///
    /// From here on what is not in the archive has never been answered, and must be asked for.
    pub fn restarts(&mut self, at: Instant, end: End, archive: Option<(&Captures, &Captures)>) {
        self.process += 1;
        self.begun = Begun::default();
        self.hops.begins_again();
        self.killed = (end == End::Killed).then_some(at);
        self.hosts.values_mut().for_each(|watched| watched.attempted = None);
        if end != End::Stopped {
            self.asked.clear();
        }
        if let Some((before, after)) = archive {
            let lost = before.keys().filter(|place| !after.contains_key(*place));
            if let Some(first) = lost.clone().min() {
                let how = format!("{} pages are gone, {first:?} first", lost.count());
                self.breaks("kept", at, how);
            }
            self.answered.retain(|place| after.contains_key(place));
            self.sees_archive(at, after);
        } else if end != End::Stopped {
            self.doubtful.extend(self.answered.drain());
        }
    }

    /// Whether the crawler has no room to keep anything: then it may ask for what comes again.
    pub fn is_told_of_room(&mut self, is_full: bool) {
        self.is_full = is_full;
        if is_full {
            self.conns.values_mut().for_each(|line| line.batch.meets_full());
        }
    }

    /// Looks at the whole archive, after the end of a process.
    pub fn sees_archive(&mut self, at: Instant, captures: &Captures) {
        // What came while there was no room, and isn't there, was lost: it must be asked for.
        let kept = self.doubtful.drain().filter(|place| captures.contains_key(place));
        self.answered.extend(kept);
        let most = |place: &Place| self.hops.captures_max(*place);
        let twice = captures.iter().filter(|(place, count)| **count > most(place));
        if let Some((place, count)) = twice.min() {
            self.breaks("records", at, format!("{count} captures of {place:?}"));
        }
        let missing = self.answered.iter().filter(|place| !captures.contains_key(*place));
        if let Some(first) = missing.clone().min() {
            let how = format!("{} pages have no capture, {first:?} first", missing.count());
            self.breaks("records", at, how);
        }
    }

    /// The crawl is over: the verdict.
    ///
    /// # Errors
    /// The laws that were broken, in order of time; not all of very many.
    pub fn concludes(mut self, engine: &Engine, at: Instant) -> Result<(), Vec<Broken>> {
        let is_finished = engine.stop_reason() == Some(StopReason::Finished);
        let must_have_all = match self.laws.complete {
            Complete::Always => true,
            Complete::Unless => leaves_nothing(engine),
            Complete::Never => false,
        };
        if is_finished && must_have_all {
            let has =
                |place: &Place| self.answered.contains(place) || self.doubtful.contains(place);
            let missing = self.wanted.iter().filter(|place| !has(place));
            let missing: Vec<Place> = missing.copied().collect();
            if let Some(first) = missing.first() {
                let (count, of) = (missing.len(), self.wanted.len());
                let how = format!("{count} of {of} pages were never answered, {first:?} first");
                self.breaks("complete", at, how);
            }
        }
        self.judge_turns(engine, at);
        // A later process has counted its own part only.
        if self.process == 0 {
            self.judge_records(engine, at);
        }
        if self.broken.is_empty() { Ok(()) } else { Err(self.broken) }
    }

    /// The crawl's own account of its archive.
    fn judge_records(&mut self, engine: &Engine, at: Instant) {
        let (captures, lines) = (engine.archive().captures, engine.archive().log_lines);
        let settled: u64 = engine.counts().outcomes.values().sum();
        let answered = self.answered.len() as u64;
        if lines != settled {
            let how = format!("{settled} fetches were settled, {lines} are in the crawl log");
            self.breaks("records", at, how);
        }
        if self.laws.archive && captures < answered {
            let how = format!("{answered} pages were answered, {captures} captures");
            self.breaks("records", at, how);
        }
    }

    fn breaks(&mut self, law: &'static str, at: Instant, how: String) {
        if self.broken.len() < BROKEN_MAX {
            self.broken.push(Broken { law, at, how });
        }
    }

    /// A request has come on a connection: it must be its server's only one.
    fn judge_line(&mut self, at: Instant, conn: ConnId, host: u32) {
        let watched = self.hosts.entry(host).or_default();
        let other = watched.line.replace(conn).filter(|other| *other != conn);
        if let Some(other) = other.filter(|other| self.conns.contains_key(other)) {
            let how = format!("host {host} has the connections {other} and {conn}");
            self.breaks("one-connection", at, how);
        }
        if let Some(line) = self.conns.get_mut(&conn) {
            line.host = host;
        }
    }

    /// A connection is asked for: a visit, even if it fails.
    fn judge_attempt(&mut self, at: Instant, host: u32) {
        if self.laws.burst.is_none() || !self.has_own_addresses {
            return;
        }
        let rest = self.laws.delay.min(self.laws.delay_max);
        let last = self.hosts.entry(host).or_default().attempted.replace(at);
        if let Some(kept) = last.map(|last| at.since(last)).filter(|kept| *kept < rest) {
            self.breaks(
                "attempts",
                at,
                format!("host {host} {kept:?} after the last, not {rest:?}"),
            );
        }
    }

    fn judge_request(
        &mut self,
        at: Instant,
        place: Option<Place>,
        unanswered: u32,
        path: &str,
        named: &str,
    ) {
        if unanswered >= self.laws.depth_max {
            self.breaks("depth", at, format!("{named}: {unanswered} before it are unanswered"));
        }
        let Some(place) = place else { return };
        if self.laws.robots && self.forbidden.contains(&place) {
            self.breaks("robots", at, format!("{named} is closed"));
        }
        if self.answered.contains(&place) && !self.hops.is_due(place) {
            self.breaks("once", at, format!("{named} had been answered"));
        }
        let asked = self.asked.entry(place).or_default();
        *asked += 1;
        // A robots.txt may redirect to itself, and each try follows that.
        let most = match path {
            "/robots.txt" => self.laws.tries_max * (1 + ROBOTS_REDIRECTS),
            _ => self.laws.tries_max,
        };
        // The end of a process cuts one try short.
        if *asked > most + self.process + self.hops.more(place) {
            let how = format!("{named} is asked for the {asked}th time");
            self.breaks("tries", at, how);
        }
    }

    /// Rests, from the end of a visit to the sending of the next one's first request. Which
    /// requests make a visit can be told only if there is one in each.
    fn judge_rest(&mut self, at: Instant, conn: ConnId, host: u32, named: &str) {
        let line = self.conns.entry(conn).or_default();
        let sent = line.sent.pop_front().unwrap_or(at);
        let opened = Some(line.asked).filter(|_| !line.has_served);
        let began = if line.has_served { sent } else { self.laws.began(line, sent) };
        line.has_served = true;
        let watched = self.hosts.entry(host).or_default();
        let kept = sent.since(watched.ended);
        let mut owed = None;
        if let Some(rest) = watched.crawl_delay.filter(|rest| kept < *rest) {
            owed = Some(("crawl-delay", format!("{named} after {kept:?} of {rest:?}")));
        }
        if let Some(born) = self.killed.filter(|_| watched.process < self.process) {
            let since = sent.since(born);
            let rest = self.laws.longest_rest();
            let how = || ("restart", format!("{named} {since:?} after a crash, not {rest:?}"));
            owed = owed.or_else(|| (watched.requests > 0 && since < rest).then(how));
        }
        if let Some(burst) = self.laws.burst {
            let groups = self.traits.get(host as usize).map_or(&[][..], |traits| &traits.groups);
            if burst == 1 {
                // What was opened for a visit that then had no use for it serves another one, whose
                // beginning is as far from the first as the groups want.
                let delay = self.laws.address_delay.max(self.laws.domain_delay);
                let is_again = opened.is_none_or(|opened| sent.since(opened) >= delay);
                let again = Some(sent).filter(|sent| is_again && began == *sent);
                for began in opened.into_iter().chain(again) {
                    if let Some(how) = self.begun.visit(&self.laws, groups, began) {
                        owed = owed.or(Some(("groups", format!("{named}: {how}"))));
                    }
                }
            }
            if burst == 1 && watched.requests > 0 {
                let rest = self.laws.rest(watched.ended.since(watched.began));
                let is_short = kept < rest;
                let how = || ("rest", format!("{named} after {kept:?} of {rest:?}"));
                owed = owed.or_else(|| is_short.then(how));
            }
            // A bucket of two bursts: one visit may end and the next begin within little time.
            let ahead = self.laws.delay.saturating_mul(2 * burst);
            if watched.paced > sent + ahead {
                let early = watched.paced.since(sent + ahead);
                owed = owed.or(Some(("pace", format!("{named} is {early:?} early"))));
            }
        }
        watched.paced = watched.paced.max(sent) + self.laws.delay;
        watched.began = began;
        watched.requests += 1;
        watched.process = self.process;
        if let Some((law, how)) = owed {
            self.breaks(law, at, how);
        }
    }

    fn replied(
        &mut self,
        at: Instant,
        conn: ConnId,
        host: u32,
        place: Option<Place>,
        (status, content): (u16, u64),
        whole: bool,
    ) {
        self.hosts.entry(host).or_default().ended = at;
        let (compares, is_deep) = self.answers(conn, place, (status, content), whole);
        self.is_answered(conn, place);
        if let Some(Place { host, resource: Resource::Robots }) = place
            && whole
            && status == 200
        {
            let asked = self.traits.get(host as usize).and_then(|traits| traits.crawl_delay);
            self.hosts.entry(host).or_default().crawl_delay = asked;
        }
        // Rules are asked for again when they are old, and hostile hosts may confuse anybody.
        let Some(place) = place.filter(|place| matches!(place.resource, Resource::Page(_))) else {
            return;
        };
        let is_plea = matches!(status, 408 | 425 | 429 | 502 | 503 | 504);
        let muddles = self.traits.get(host as usize).is_some_and(|traits| traits.muddles);
        if whole && !is_plea && !compares {
            let doubts = self.is_full || is_deep && muddles && !self.answered.contains(&place);
            let known = if doubts { &mut self.doubtful } else { &mut self.answered };
            known.insert(place);
            self.hops.answered(place, doubts);
        } else if (300..400).contains(&status) && !compares {
            // Its head says where it leads: a cut body need not be asked for again.
            self.doubtful.insert(place);
            self.hops.answered(place, true);
        }
    }

    /// Requests that a connection took to its end without an answer don't count as tries: which
    /// of them the crawler blames can't be seen.
    fn closed(&mut self, at: Instant, conn: ConnId) {
        let Some(mut line) = self.conns.remove(&conn) else { return };
        let watched = self.hosts.entry(line.host).or_default();
        let batches = self.laws.probation * (self.process + 1);
        let on_probation = watched.compared.on_probation(batches);
        if watched.line == Some(conn) {
            watched.line = None;
            if !line.open.is_empty() {
                watched.ended = watched.ended.max(at);
            }
        }
        if !line.open.is_empty() {
            self.is_quiet(line.host);
        }
        let most = self.traits.get(line.host as usize).map_or(u32::MAX, |traits| traits.requests);
        self.may_repeat(line.batch.ends(line.requests >= most), on_probation);
        line.open.into_iter().flatten().for_each(|place| self.is_no_try(place));
    }
}

/// Whether the crawl says that it has an answer for all it came across.
fn leaves_nothing(engine: &Engine) -> bool {
    let counts = engine.counts();
    let answers = ["ok", "redirect", "redirect-to-known", "http-error", "robots-denied"];
    counts.outcomes.keys().all(|outcome| answers.contains(&&**outcome))
        && counts.links_out_of_scope.is_empty()
        && !["servers-max", "disconnectTrunc", "timeTrunc", "trunc"]
            .iter()
            .any(|cause| counts.cut.contains_key(*cause))
}
