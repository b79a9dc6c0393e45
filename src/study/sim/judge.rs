//! The judge of a simulated crawl: checks that the crawl keeps the laws it promised to keep.
//!
//! It sees what an observer at the servers sees ([`Observation`]) and the engine's counters, and it
//! knows the web. Its limits are its own ([`Laws`]), not the crawl's configuration: a crawl that
//! forgets a delay can't make the judge forget it too. Every law has a name, which the verdict
//! reports. A visit is a series of requests to one server, after which it gets a rest; a burst is
//! the number of requests of a visit.
//!
//! | law | rule |
//! |---|---|
//! | `one-connection` | a server has at most one connection that carries requests |
//! | `connections` | no more connections are open than allowed |
//! | `depth` | no more requests are unanswered on a connection than allowed |
//! | `rest` | the delay due after a visit passes before the next visit to the server |
//! | `attempts` | the delay passes between two connection attempts to a server, even failed ones |
//! | `crawl-delay` | the Crawl-delay of the server's robots.txt passes between two requests |
//! | `groups` | servers of one address or domain are not visited too many at once, nor too soon |
//! | `pace` | requests to a server come no faster than one per delay, except two bursts of them |
//! | `once` | what was answered and kept is requested again only as `batch` and `hops` allow |
//! | `again` | a crawl that comes back requests a page again when its shortest interval is over |
//! | `restart` | after a crash, servers visited before get the longest rest possible |
//! | `tries` | nothing is requested more often than declared; a crash may forget earlier tries |
//! | `robots` | nothing that robots.txt disallows is requested |
//! | `complete` | a finished crawl has every page that can be reached, except what limits refuse |
//! | `records` | each fetch has one line in the crawl log, each answered page one capture |
//! | `filed` | the body archived under a page's URL is that page's body |
//! | `kept` | what a sync has reported as durable is in the archive after a crash |
//! | `memory` | buffered replies take no more memory than allowed |
//! | `order` | the ready server with the best rank goes first, by the policies' formulas |
//! | `wait` | ready servers are taken by age as often as promised, so that none waits too long |
//! | `orders` | nothing is requested that a command pauses or blocks, or sooner than it allows |
//! | `secret` | a header field of a site is in all requests to it, and in no other |
//! | `pages` | no more pages of a server, domain or site are answered than its limit allows |
//! | `reserved` | nothing is archived of a page whose use is reserved for the crawl's purpose |
//! | `turn` | no turn does more work than its budgets, plus the steps already begun |
//!
//! A crawl may consist of several processes, one after the other: see [`Judge::restart`]. The
//! caller reads the archive for the judge and passes what it contains ([`Captures`]).
//!
//! Cost: one or two map look-ups per observation; an inspection of the order reads every waiting
//! URL.

mod again;
mod asking;
mod batch;
mod begun;
mod complete;
mod hops;
mod laws;
mod orders;
mod paces;
mod pages;
mod reserved;
mod signed;
mod traits;
mod waits;

use super::{Observation, View};
use crate::engine::Engine;
use crate::engine::contract::ConnId;
use crate::ground::map::{Map, Set};
use crate::ground::time::Instant;
use crate::study::web::{Budget, Manifest, Outcome, Place, Resource, Web};
use again::Visits;
use batch::{Batch, Compared};
use begun::Begun;
use complete::Reach;
pub(super) use complete::wanted;
use hops::Hops;
pub use laws::{Complete, Laws, SiteLaw};
use orders::Orders;
use pages::Pages;
use reserved::Reserved;
pub use signed::Signs;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use traits::{Group, Traits};

/// A violation of a law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The name of the law.
    pub law: &'static str,
    /// When the law was broken.
    pub at: Instant,
    /// What happened, in words.
    pub how: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law `{}` broken at {}: {}", self.law, self.at, self.how)
    }
}

/// The judge of one simulated crawl.
#[derive(Debug)]
pub struct Judge {
    laws: Laws,
    forbidden: Set<Place>,
    reach: Reach,
    /// What the judge knows of each host beforehand, indexed by the host's number.
    traits: Vec<Traits>,
    /// The number of servers of each group that have unanswered requests.
    asking: Map<Group, u32>,
    /// When visits to each group began, in this process.
    begun: Begun,
    conns: Map<ConnId, Line>,
    hosts: Map<u32, Watched>,
    answered: Set<Place>,
    /// Redirects that were answered; they are requested again as hops of redirect chains.
    hops: Hops,
    /// Pages answered whose replies the crawler may have lost: before a crash of a crawl that keeps
    /// no archive, while the disk was full, or redirects with a truncated body.
    doubtful: Set<Place>,
    /// Whether the crawler's disk is full.
    is_full: bool,
    /// How often pages were asked for, and when, if the crawl comes back.
    visits: Visits,
    pages: Pages,
    process: Process,
    /// The operator's commands.
    orders: Orders,
    broken: Vec<Violation>,
}

/// The number of captures in the archive, by page.
pub type Captures = Map<Place, u32>;

/// How a process ended, if it was not the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process was asked to stop and shut down in order.
    Stopped,
    /// The process stopped by its own decision because it could not continue. It may have lost
    /// something.
    Failed,
    /// The process was killed at an arbitrary moment.
    Killed,
}

/// A connection, as observed.
#[derive(Debug, Default)]
struct Line {
    asked: Instant,
    /// When the crawler learned that the connection was established.
    stood: Option<Instant>,
    host: u32,
    /// When the requests were sent that have not reached the server yet.
    sent: VecDeque<Instant>,
    /// When the bytes of the last request were sent; requests that follow may have been in them.
    wrote: Instant,
    /// Requests that have reached the server and have no reply yet.
    open: Vec<Option<Place>>,
    batch: Batch,
    requests: u32,
    has_served: bool,
}

/// The current process of the crawl.
#[derive(Debug, Default)]
struct Process {
    /// The number of processes before this one.
    number: u32,
    /// When this process began, if the previous one was killed; else `None`.
    killed: Option<Instant>,
}

/// A server, as observed.
#[derive(Debug, Default)]
struct Watched {
    line: Option<ConnId>,
    /// When the current or last visit to the server began.
    began: Instant,
    requests: u32,
    compared: Compared,
    /// The number of the process that last sent the server a request, counted from 0.
    process: u32,
    /// When the current process last asked for a connection to the server.
    attempted: Option<Instant>,
    /// When the server's last reply ended, or its last connection that left requests unanswered.
    ended: Instant,
    /// When the next request would be allowed if each request had to wait for the delay.
    paced: Instant,
    /// The Crawl-delay that the crawler has received from the server's robots.txt.
    crawl_delay: Option<Duration>,
    /// When the server first asked the current process for signed requests; [`Instant::FAR`] if it
    /// may have.
    asked_signature: Option<Instant>,
}

/// The number of redirects of a robots.txt that are followed (RFC 9309, section 2.3.1.2).
const ROBOTS_REDIRECTS: u32 = 5;
/// The most violations reported for one run.
const BROKEN_MAX: usize = 20;

/// Returns what is wrong, in words, if a turn of an engine has done more work than allowed; `units`
/// and `intake` are the most units of work in a turn, as in [`Laws`].
pub(super) fn turn_above(engine: &Engine, (units, intake): (usize, usize)) -> Option<String> {
    let most = |budget: &str| if budget == "intake" { intake } else { units };
    let (budget, units) =
        engine.ledger().peaks().into_iter().find(|(budget, units)| *units > most(budget))?;
    let largest = engine.ledger().largest();
    Some(format!("{budget}: {units} units, not {}; {largest:?}", most(budget)))
}

impl Judge {
    /// Creates a judge for a crawl of `web` that has promised to keep `laws`.
    pub fn new(web: &Web, laws: Laws) -> Self {
        let budget = Budget { robots: laws.robots, tries: laws.tries_max, ..Budget::default() };
        let manifest = Manifest::new(web, budget);
        let reserved = Reserved::of(web, laws.obeys, laws.robots);
        let is_closed = |outcomes: &[Outcome]| outcomes == [Outcome::RobotsDenied];
        let forbidden = manifest.entries.iter().filter(|entry| is_closed(entry.outcomes));
        Self {
            forbidden: forbidden.map(|entry| entry.place).collect(),
            reach: Reach::of(web, wanted(&manifest), &laws),
            traits: (0..web.hosts()).map(|number| Traits::of(web, number, &laws)).collect(),
            asking: Map::default(),
            begun: Begun::default(),
            laws,
            conns: Map::default(),
            hosts: Map::default(),
            answered: Set::default(),
            hops: Hops::of(web),
            doubtful: Set::default(),
            is_full: false,
            visits: Visits::default(),
            pages: Pages::of(reserved),
            process: Process::default(),
            orders: Orders::of(web),
            broken: Vec::new(),
        }
    }

    /// Takes in one observation; observations must come in order of time.
    pub fn observe(&mut self, at: Instant, seen: &Observation) {
        match seen {
            Observation::Connecting { conn, host } => {
                self.judge_attempt(at, *host);
                self.conns.insert(*conn, Line { asked: at, host: *host, ..Line::default() });
                let open = self.conns.len();
                if open > self.laws.connections_max {
                    self.report("connections", at, format!("{open} are open"));
                }
            }
            Observation::Sent { conn } => {
                if let Some(line) = self.conns.get_mut(conn) {
                    line.sent.push_back(at);
                }
            }
            Observation::Request { conn, host, place, path, unanswered, authorization, proof } => {
                let named = format!("host {host} {path}");
                self.judge_line(at, *conn, *host);
                self.judge_secret(at, *host, authorization, &named);
                let compares = self.compares(*conn, *host, *place);
                if !compares {
                    self.judge_request(at, *place, *unanswered, path, &named);
                }
                let sent = self.conns.get_mut(conn).map_or(at, |line| {
                    line.wrote = line.sent.front().copied().unwrap_or(line.wrote);
                    line.wrote
                });
                if let Some(place) = place.filter(|_| self.laws.again.is_some()) {
                    self.visits.sent(place, sent);
                }
                // A repeated request is as it was, whatever its host asks for since.
                self.judge_signed(at, sent, *host, proof.as_ref().filter(|_| !compares), &named);
                self.judge_orders(sent, *host, path, &named);
                self.judge_rest(at, *conn, *host, &named);
                if let Some(line) = self.conns.get_mut(conn) {
                    line.open.push(*place);
                    if line.open.len() == 1 {
                        self.asks(at, *host);
                    }
                }
            }
            Observation::Reply { conn, host, place, status, content, whole } => {
                self.note_signature_asked(at, *place, (*status, *whole));
                self.replied(at, *conn, *host, *place, (*status, *content), *whole);
            }
            Observation::Closed { conn, .. } => self.closed(at, *conn),
            Observation::Established { conn, .. } => {
                if let Some(line) = self.conns.get_mut(conn) {
                    line.stood = Some(at);
                }
            }
            Observation::Resolved { .. } => {}
        }
    }

    /// Checks the crawl's memory, the order of its servers and the work of its turns.
    pub fn inspect(&mut self, view: &View<'_>) {
        let held = view.engine.held_bytes();
        if held > self.laws.held_bytes_max {
            self.report("memory", view.at, format!("{held} bytes of replies are held"));
        }
        self.judge_order(view.engine, view.at);
        self.judge_turns(view.engine, view.at);
    }

    /// Checks that no turn of the current process so far has done more work than allowed.
    pub fn judge_turns(&mut self, engine: &Engine, at: Instant) {
        let is_known = self.broken.iter().any(|broken| broken.law == "turn");
        let most = (self.laws.turn_units_max, self.laws.turn_intake_max);
        if let Some(how) = turn_above(engine, most).filter(|_| !is_known) {
            self.report("turn", at, how);
        }
    }

    /// Takes in that a new process begins at `at`; `end` says how the previous one ended. `archive`
    /// is the captures that were durable then, and the captures that the new process finds in the
    /// archive; `None` if no archive is kept.
    ///
    /// From here on, what is not in the archive counts as never answered and must be requested.
    pub fn restart(&mut self, at: Instant, end: End, archive: Option<(&Captures, &Captures)>) {
        self.process.number += 1;
        self.begun = Begun::default();
        self.hops.restart();
        self.process.killed = (end == End::Killed).then_some(at);
        for watched in self.hosts.values_mut() {
            (watched.attempted, watched.asked_signature) = (None, None);
        }
        self.orders.restart(end == End::Stopped, archive.map(|(_, after)| after));
        if end != End::Stopped {
            self.visits.forget_times();
            self.visits.asked.clear();
            self.pages.restart(archive.map(|(_, after)| after));
        }
        if let Some((before, after)) = archive {
            let lost = before.keys().filter(|place| !after.contains_key(*place));
            if let Some(first) = lost.clone().min() {
                let how = format!("{} pages are gone, {first:?} first", lost.count());
                self.report("kept", at, how);
            }
            let keeps = |place: &Place| end == End::Stopped && self.pages.reserved.has(*place);
            self.answered.retain(|place| after.contains_key(place) || keeps(place));
            self.check_archive(at, after);
        } else if end != End::Stopped {
            self.doubtful.extend(self.answered.drain());
        }
    }

    /// Sets whether the crawler's disk is full: while it is, replies that were lost may be
    /// requested again.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
        if is_full {
            self.conns.values_mut().for_each(|line| line.batch.note_full());
        }
    }

    /// Checks, after the end of a process, that each answered page has a capture in the archive,
    /// and no page too many.
    pub fn check_archive(&mut self, at: Instant, captures: &Captures) {
        let orders = &self.orders;
        let most = |place: &Place| match self.visits.has(*place) {
            true => u32::MAX,
            false => self.hops.captures_max(*place) + orders.captures_more(*place),
        };
        // A reply that came while the disk was full and that isn't archived was lost: it must be
        // requested again.
        self.answered.extend(self.doubtful.drain().filter(|place| captures.contains_key(place)));
        let twice = captures.iter().filter(|(place, count)| **count > most(place));
        if let Some((place, count)) = twice.min() {
            self.report("records", at, format!("{count} captures of {place:?}"));
        }
        captures.keys().for_each(|place| self.confirm_page(at, *place));
        self.judge_reserved(at, captures);
        let has = |place: &Place| captures.contains_key(place) || self.pages.reserved.has(*place);
        let missing = self.answered.iter().filter(|place| !has(place));
        if let Some(first) = missing.clone().min() {
            let how = format!("{} pages have no capture, {first:?} first", missing.count());
            self.report("records", at, how);
        }
    }

    /// Takes in the end of the crawl and returns the verdict: `Ok` if no law was broken.
    ///
    /// # Errors
    /// The violations in order of time, at most `BROKEN_MAX` of them.
    pub fn conclude(mut self, engine: &Engine, at: Instant) -> Result<(), Vec<Violation>> {
        self.judge_complete(engine, at);
        self.judge_turns(engine, at);
        // A later process has counted only its own part.
        if self.process.number == 0 {
            self.judge_records(engine, at);
        }
        if self.broken.is_empty() { Ok(()) } else { Err(self.broken) }
    }

    /// Checks the crawl's own counts of captures and log lines against each other and against the
    /// pages answered.
    fn judge_records(&mut self, engine: &Engine, at: Instant) {
        let (captures, lines) = (engine.archive().captures, engine.archive().log_lines);
        let settled: u64 = engine.counts().outcomes.values().sum();
        let kept = self.answered.iter().filter(|place| !self.pages.reserved.has(**place));
        let answered = kept.count() as u64;
        let rules = engine.counts().rules_lines;
        if lines != settled + rules {
            let how = format!(
                "{settled} fetches were settled, {lines} lines are in the crawl log, {rules} of \
                 them without a fetch"
            );
            self.report("records", at, how);
        }
        if self.laws.archive && captures < answered {
            let how = format!("{answered} pages were answered, {captures} captures");
            self.report("records", at, how);
        }
        self.judge_reserved_count(engine, at);
    }

    fn report(&mut self, law: &'static str, at: Instant, how: String) {
        if self.broken.len() < BROKEN_MAX {
            self.broken.push(Violation { law, at, how });
        }
    }

    /// Checks that a connection that carries a request is the only one of its server.
    fn judge_line(&mut self, at: Instant, conn: ConnId, host: u32) {
        let watched = self.hosts.entry(host).or_default();
        let other = watched.line.replace(conn).filter(|other| *other != conn);
        if let Some(other) = other.filter(|other| self.conns.contains_key(other)) {
            let how = format!("host {host} has the connections {other} and {conn}");
            self.report("one-connection", at, how);
        }
        if let Some(line) = self.conns.get_mut(&conn) {
            line.host = host;
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
            self.report("depth", at, format!("{named}: {unanswered} before it are unanswered"));
        }
        let Some(place) = place else { return };
        if self.laws.robots && self.forbidden.contains(&place) {
            self.report("robots", at, format!("{named} is closed"));
        }
        let is_over = self.answered.contains(&place) && !self.orders.is_reopened(place);
        if is_over && !self.hops.is_due(place) {
            self.judge_again(at, place, named);
        }
        let asked = self.visits.ask(place, at, self.laws.again);
        // A robots.txt may redirect to itself, and each try follows the redirects.
        let most = match path {
            "/robots.txt" => self.laws.tries_max * (1 + ROBOTS_REDIRECTS),
            _ => self.laws.tries_max,
        };
        // The end of a process may interrupt one try.
        if asked > most + self.process.number + self.hops.more(place) {
            let how = format!("{named} is asked for the {asked}th time");
            self.report("tries", at, how);
        }
    }

    /// Checks the rests between the end of a visit and the sending of the next visit's first
    /// request. Which requests form a visit is known only if each visit has one request.
    fn judge_rest(&mut self, at: Instant, conn: ConnId, host: u32, named: &str) {
        let pace = self.pace(host);
        let line = self.conns.entry(conn).or_default();
        let sent = line.sent.pop_front().unwrap_or(at);
        let opened = Some(line.asked).filter(|_| !line.has_served);
        let began = if line.has_served { sent } else { pace.began(line, sent) };
        line.has_served = true;
        let watched = self.hosts.entry(host).or_default();
        let kept = sent.since(watched.ended);
        let mut owed = None;
        if let Some(rest) = watched.crawl_delay.filter(|rest| kept < *rest) {
            owed = Some(("crawl-delay", format!("{named} after {kept:?} of {rest:?}")));
        }
        if let Some(born) = self.process.killed.filter(|_| watched.process < self.process.number) {
            let since = sent.since(born);
            let rest = pace.longest_rest();
            let how = || ("restart", format!("{named} {since:?} after a crash, not {rest:?}"));
            owed = owed.or_else(|| (watched.requests > 0 && since < rest).then(how));
        }
        if let Some(burst) = pace.burst {
            let groups = self.traits.get(host as usize).map_or(&[][..], |traits| &traits.groups);
            if burst == 1 {
                // A connection opened for a visit that was then not needed serves a later visit,
                // which must begin at least a group's delay after the first.
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
                let rest = pace.rest(watched.ended.since(watched.began));
                let is_short = kept < rest;
                let how = || ("rest", format!("{named} after {kept:?} of {rest:?}"));
                owed = owed.or_else(|| is_short.then(how));
            }
            // A token bucket of two bursts: one visit may end and the next begin within little
            // time.
            let ahead = pace.delay.saturating_mul(2 * burst);
            if watched.paced > sent + ahead {
                let early = watched.paced.since(sent + ahead);
                owed = owed.or(Some(("pace", format!("{named} is {early:?} early"))));
            }
        }
        watched.paced = watched.paced.max(sent) + pace.delay;
        watched.began = began;
        watched.requests += 1;
        watched.process = self.process.number;
        if let Some((law, how)) = owed {
            self.report(law, at, how);
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
        self.note_reply(host, place, status);
        let (compares, is_deep) = self.answers(conn, place, (status, content), whole);
        self.is_answered(conn, place);
        if whole && !compares {
            self.note_visit(at, host, place, status);
        }
        if let Some(Place { host, resource: Resource::Robots }) = place
            && whole
            && status == 200
        {
            let asked = self.traits.get(host as usize).and_then(|traits| traits.crawl_delay);
            self.hosts.entry(host).or_default().crawl_delay = asked;
        }
        // Expired robots.txt rules are requested again, and hostile hosts may confuse any crawler.
        let Some(place) = place.filter(|place| matches!(place.resource, Resource::Page(_))) else {
            return;
        };
        self.orders.note_status(place, status);
        let is_plea = matches!(status, 408 | 425 | 429 | 502 | 503 | 504);
        let muddles = self.traits.get(host as usize).is_some_and(|traits| traits.muddles);
        if whole && !is_plea && !compares {
            let is_known = self.answered.contains(&place);
            let is_open = !is_known || self.orders.is_reopened(place);
            let doubts = self.is_full || is_deep && muddles && is_open;
            self.pages.reserved.replied(place, status, !doubts);
            if !doubts {
                self.orders.retried(place, is_known);
            }
            let known = if doubts { &mut self.doubtful } else { &mut self.answered };
            match known.insert(place) {
                true if doubts => self.pages.doubt(place, status),
                true => self.judge_pages(at, place, status),
                false => {}
            }
            self.hops.answered(place, doubts);
        } else if (300..400).contains(&status) && !compares {
            // The head says where a redirect leads, so a truncated body need not be requested
            // again. One that is reserved has no capture to show that it was answered.
            self.doubtful.insert(place);
            self.pages.reserved.replied(place, status, false);
            self.hops.answered(place, true);
        } else if !whole {
            self.pages.reserved.replied_in_part(place);
        }
    }

    /// Takes in the end of a connection. Requests that it left without an answer don't count as
    /// tries, because the judge can't see which of them the crawler blames.
    fn closed(&mut self, at: Instant, conn: ConnId) {
        let Some(mut line) = self.conns.remove(&conn) else { return };
        let watched = self.hosts.entry(line.host).or_default();
        let batches = self.laws.probation * (self.process.number + 1);
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
