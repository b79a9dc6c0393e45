//! The arithmetic of an audit: rests, requests at once and requests a day, from the times alone.
//!
//! It shares no code with the scheduler. What is computed here is never more than what the crawler
//! owed: a visit is taken to last from its first request to the end of its last reply, and to have
//! the requests that the log shows. So a rest that is found too short was too short.
//!
//! Several nodes of one crawl owe the same rests together: to a server whoever visited it last, and
//! to a domain `delay_max` between the requests of two of them, because a node waits that long when
//! it takes over. A visit that ends when the next owner has begun its own was under way when its
//! node was stopped or lost its session; it is counted apart. A rest of an address is owed by each
//! node alone; all of them keep the cap and the pace that they divide among them (`crowd`).
//!
//! Events must come in the order of their times: those of a run exactly, those of several nodes as
//! far as their calendars agree.

use super::clocks::{Clocks, Link};
use super::crowd::Crowds;
use super::order::{Event, What};
use super::promises::{Promise, Promised, Whole};
use super::rows::{Kind, Row, Time, margin};
use smallvec::SmallVec;

/// What is known of the last visit to a server.
#[derive(Clone, Debug, Default)]
struct Visit {
    run: u32,
    number: u32,
    began: u64,
    ended: u64,
    /// The number of requests: that of its lines, or the highest number that one has.
    requests: u64,
    lines: u64,
    /// Whether a request was sent.
    is_sent: bool,
    /// Until when replies asked the crawler to wait.
    asked_until: u64,
    crawl_delay: u64,
}

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breach {
    /// The rest before a visit was shorter than owed.
    Gap { kind: Kind, gap: u64, owed: u64 },
    /// A visit began before the last one to the same server had ended.
    Overlap,
    /// More visits at once than allowed.
    AtOnce { kind: Kind, visits: u32, most: u32 },
    /// A domain was asked too early after another node had asked it.
    Takeover { other: u32, gap: u64, owed: u64 },
    /// More visits of all nodes to an address than its rest allows.
    Crowd { visits: u32, time: u64, delay: u64 },
}

/// What was counted besides breaches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// The number of visits whose gap was checked.
    pub(super) checked: u64,
    /// The number of visits before which the calendar went back, so their gap is not known.
    pub(super) set_back: u64,
    /// The number of visits whose times contradict their numbers.
    pub(super) disordered: u64,
    /// The number of visits that ended when another node had taken the server over.
    pub(super) late: u64,
}

/// The books of a crawl: the figures of all servers and of what they share.
#[derive(Debug)]
pub(super) struct Books {
    /// The rows by [`Kind`]; the index of a server is that in its events.
    pub(super) rows: [Vec<Row>; 4],
    visits: Vec<Visit>,
    /// The host and the domain of each server.
    pub(super) groups: Vec<(u32, u32)>,
    /// The promises of each node.
    promises: Vec<Vec<Promised>>,
    pub(super) clocks: Clocks,
    /// When each domain was asked last; only of several nodes.
    asked: Vec<Option<Time>>,
    crowds: Crowds,
    /// Set for several nodes, if it is known.
    pub(super) whole: Option<Whole>,
    pub(super) tally: Tally,
}

impl Books {
    pub(super) fn new(clocks: Clocks) -> Self {
        Self {
            rows: Default::default(),
            visits: Vec::new(),
            groups: Vec::new(),
            promises: (0..clocks.nodes()).map(|_| Vec::new()).collect(),
            clocks,
            asked: Vec::new(),
            crowds: Crowds::default(),
            whole: None,
            tally: Tally::default(),
        }
    }

    /// Adds promises of a node, which are in force from a time on.
    pub(super) fn promise(&mut self, node: u32, promised: Promised) {
        self.promises[node as usize].push(promised);
    }

    /// Adds what was promised to the server that was added last, which is on `host`.
    pub(super) fn promise_server(&mut self, host: &str) {
        let server = u32::try_from(self.groups.len() - 1).expect("fewer than 2^32 servers");
        for Promised { own, tables, .. } in self.promises.iter_mut().flatten() {
            own.extend(tables.of(host).map(|own| (server, own)));
        }
    }

    pub(super) fn has_promises(&self, node: u32) -> bool {
        !self.promises[node as usize].is_empty()
    }

    /// Adds a server of a host and of a domain.
    pub(super) fn add_server(&mut self, host: u32, domain: u32) {
        self.visits.push(Visit::default());
        self.groups.push((host, domain));
        let server = u32::try_from(self.groups.len() - 1).expect("fewer than 2^32 servers");
        self.reach(Kind::Server, server);
        self.reach(Kind::Host, host);
        self.reach(Kind::Domain, domain);
    }

    /// Makes sure that there is a row.
    pub(super) fn reach(&mut self, kind: Kind, index: u32) {
        let rows = &mut self.rows[kind as usize];
        if rows.len() <= index as usize {
            rows.resize_with(index as usize + 1, Row::default);
        }
    }

    fn is_shared(&self) -> bool {
        self.clocks.nodes() > 1
    }

    /// Takes an event, and passes each broken promise to `sink`.
    pub(super) fn take(&mut self, event: &Event, sink: &mut impl FnMut(Breach)) {
        self.clocks.note(event);
        let mut breaches = Breaches::new();
        match event.what {
            What::Rules => self.learn(event),
            What::Visit => self.check_crowd(event, &mut breaches),
            What::Request(number) => self.ask(event, number, &mut breaches),
            What::NoConnection => {
                let last = &self.visits[event.server as usize];
                let link = self.clocks.link(event.clock, last.run);
                if last.requests > 0 && link == Link::Other {
                    // Nobody knows when it was tried: the node may have been stopped since.
                    self.count(event, None, &mut breaches);
                } else {
                    self.ask(event, 1, &mut breaches);
                }
            }
        }
        breaches.into_iter().for_each(sink);
    }

    /// Takes the Crawl-delay of rules that have become known to a node.
    fn learn(&mut self, event: &Event) {
        let visit = &mut self.visits[event.server as usize];
        if visit.requests > 0 && self.clocks.link(event.clock, visit.run) == Link::Other {
            return; // Another node has read its own.
        }
        visit.crawl_delay = event.wait;
        self.rest(event);
    }

    /// Takes a request, by its number in its visit.
    fn ask(&mut self, event: &Event, number: u32, breaches: &mut Breaches) {
        let promise = self.promise_at(event, event.ended);
        let run = event.clock.run;
        let takeover = self.take_over(event, &promise, breaches);
        let visit = &self.visits[event.server as usize];
        if visit.requests == 0 || (visit.run, visit.number) != (run, event.visit) {
            self.check_rest(event, takeover, breaches);
            self.check_host(event, takeover, breaches);
            self.check_delays(event, breaches);
            let visit = &mut self.visits[event.server as usize];
            self.tally.disordered += u64::from(visit.run == run && event.visit < visit.number);
            let began = event.visit_began().min(event.at);
            let (number, crawl_delay) = (event.visit, visit.crawl_delay);
            *visit = Visit { run, number, began, crawl_delay, ..Visit::default() };
        }
        let visit = &mut self.visits[event.server as usize];
        visit.lines += 1;
        visit.requests = visit.requests.max(visit.lines).max(number.into());
        visit.is_sent |= event.what != What::NoConnection;
        visit.ended = visit.ended.max(event.ended);
        if event.wait > 0 {
            visit.asked_until = visit.asked_until.max(event.ended.saturating_add(event.wait));
        }
        self.count(event, Some(&promise), breaches);
        self.rest(event);
    }

    /// Notes that a node asks a domain, and checks how long ago another one did. If that is long
    /// enough, returns how long a node waits that takes a domain over; else 0.
    fn take_over(&mut self, event: &Event, promise: &Promise, breaches: &mut Breaches) -> u64 {
        if !self.is_shared() || event.what == What::NoConnection {
            return 0;
        }
        let (_, domain) = self.groups[event.server as usize];
        let now = Time { at: event.at, run: event.clock.run };
        if self.asked.len() <= domain as usize {
            self.asked.resize(domain as usize + 1, None);
        }
        let before = self.asked[domain as usize].replace(now);
        let is_other = |last: &Time| self.clocks.link(event.clock, last.run) == Link::Other;
        let Some(last) = before.filter(is_other) else { return promise.delay_max };
        let gap = event.at.saturating_sub(self.clocks.convert(event.clock, last.at, last.run));
        let (owed, slack) = (promise.delay_max, self.clocks.slack(Link::Other));
        if gap.saturating_add(slack) >= owed {
            return owed;
        }
        let other = self.clocks.node_of(last.run);
        breaches.push(Breach::Takeover { other, gap, owed });
        0
    }

    /// Checks the rest of a server that is over when a visit begins.
    fn check_rest(&mut self, event: &Event, takeover: u64, breaches: &mut Breaches) {
        let Self { clocks, rows, visits, tally, .. } = self;
        let began_run = clocks.began(event.clock.run);
        let is_restart = event.rule == RESTART;
        if is_restart && event.at < began_run.saturating_add(event.owed) {
            let gap = event.at.saturating_sub(began_run);
            breaches.push(Breach::Gap { kind: Kind::Server, gap, owed: event.owed });
        }
        let visit = &visits[event.server as usize];
        if visit.requests == 0 {
            return;
        }
        let link = clocks.link(event.clock, visit.run);
        let slack = clocks.slack(link);
        let row = &mut rows[Kind::Server as usize][event.server as usize];
        let ended = clocks.convert(event.clock, visit.ended, visit.run);
        if link == Link::Restart && event.at < ended {
            tally.set_back += 1;
            return;
        }
        if link == Link::Other && !visit.is_sent {
            return;
        }
        tally.checked += 1;
        // What another node says was owed counts from its own last visit.
        let claimed = if is_restart || link == Link::Other { 0 } else { event.owed };
        let due = clocks.convert(event.clock, row.rest.0.at, row.rest.0.run).saturating_sub(slack);
        let owed = due.saturating_sub(ended).max(claimed);
        let gap = event.at.saturating_sub(ended);
        let has_overlap = event.at.saturating_add(if link == Link::Other { slack } else { 0 });
        let is_broken = has_overlap < ended || gap < owed;
        if is_broken && link == Link::Other && gap < takeover {
            tally.late += 1;
            return;
        }
        row.note_gap(gap, owed);
        if has_overlap < ended {
            breaches.push(Breach::Overlap);
        } else if gap < owed {
            breaches.push(Breach::Gap { kind: Kind::Server, gap, owed });
        }
    }

    /// Checks the rest that a host owes when a visit begins.
    fn check_host(&mut self, event: &Event, takeover: u64, breaches: &mut Breaches) {
        let Self { clocks, rows, groups, .. } = self;
        let row = &mut rows[Kind::Host as usize][groups[event.server as usize].0 as usize];
        if row.requests == 0 {
            return;
        }
        let here = |time: Time| clocks.convert(event.clock, time.at, time.run);
        let link = clocks.link(event.clock, row.last.run);
        let (ended, (rest, server)) = (here(row.last), row.rest);
        if event.at < ended {
            return;
        }
        let gap = event.at - ended;
        let owed = here(rest).saturating_sub(clocks.slack(link)).saturating_sub(ended);
        let is_others = clocks.link(event.clock, rest.run) == Link::Other;
        if is_others && gap < owed && here(rest).saturating_sub(event.at) < takeover {
            return; // A visit was under way when the host was taken over.
        }
        row.note_gap(gap, owed);
        // The server's own rest is checked as such.
        if gap < owed && server != event.server {
            breaches.push(Breach::Gap { kind: Kind::Host, gap, owed });
        }
    }

    /// Checks the delays that an address and a domain owe when a visit begins.
    fn check_delays(&mut self, event: &Event, breaches: &mut Breaches) {
        let (_, domain) = self.groups[event.server as usize];
        let began = event.visit_began();
        for (kind, index) in [(Kind::Domain, domain), (Kind::Address, event.address)] {
            let Some(row) = self.rows[kind as usize].get(index as usize) else { continue };
            let least = self.least_gap(event, kind, row);
            let owes = self.delay_at(event.clock.run, began, kind) > 0;
            let row = &mut self.rows[kind as usize][index as usize];
            if let Some((gap, owed)) = least {
                row.note_gap(gap, owed);
                if gap < owed {
                    breaches.push(Breach::Gap { kind, gap, owed });
                }
            }
            if owes {
                row.begun(event, &self.clocks);
            }
        }
    }

    /// Returns the gap with the smallest margin between the beginning of a visit and those before
    /// it, and the delay that is owed, which may have changed between them.
    fn least_gap(&self, event: &Event, kind: Kind, row: &Row) -> Option<(u64, u64)> {
        let (clock, began) = (event.clock, event.visit_began());
        let now = self.delay_at(clock.run, began, kind);
        let owed = |time: Time| self.delay_at(time.run, time.at, kind).min(now);
        // Visits may overlap, but their beginnings may not be closer than the delay.
        let others = row.began.iter().filter_map(|other| {
            let gap = self.clocks.convert(clock, other.at, other.run).abs_diff(began);
            match self.clocks.link(clock, other.run) {
                Link::Same => Some((gap, owed(*other))),
                // Each node has its own delay of an address.
                Link::Other if kind == Kind::Domain => {
                    let slack = self.clocks.slack(Link::Other);
                    Some((gap.saturating_add(slack), owed(*other)))
                }
                Link::Other | Link::Restart => None,
            }
        });
        // One request doesn't show whether a visit of several is over.
        let is_single = self.promised_at(clock.run, event.ended).is_some_and(|it| it.is_single);
        let link = self.clocks.link(clock, row.last.run);
        let ended = self.clocks.convert(clock, row.last.at, row.last.run);
        let is_over = is_single && row.requests > 0 && link != Link::Other && ended <= began;
        let over = is_over.then(|| (began - ended + self.clocks.slack(link), owed(row.last)));
        others.chain(over).min_by_key(|gap| margin(*gap))
    }

    /// Checks how many visits of all nodes an address gets.
    fn check_crowd(&mut self, event: &Event, breaches: &mut Breaches) {
        let Some(Whole { delay, .. }) = self.whole else { return };
        let own = self.delay_at(event.clock.run, event.at, Kind::Address);
        // Clocks of nodes may run a thousandth too fast.
        let delay = delay.min(own) / 1_000 * 999;
        let others = u64::try_from(self.clocks.nodes() - 1).unwrap_or(u64::MAX);
        let slack = self.clocks.slack(Link::Other);
        let most = delay.saturating_mul(others).saturating_add(slack);
        let found = self.crowds.take(event.address, (event.calendar(), delay), most);
        if let Some((visits, time)) = found {
            self.rows[Kind::Address as usize][event.address as usize].broken += 1;
            breaches.push(Breach::Crowd { visits, time, delay });
        }
    }

    /// Counts a request in all rows that it belongs to, and checks how many visits there are at
    /// once if promises are given.
    fn count(&mut self, event: &Event, promise: Option<&Promise>, breaches: &mut Breaches) {
        let (host, domain) = self.groups[event.server as usize];
        let (address_most, domain_most) =
            promise.map_or((0, 0), |promise| (promise.address.0, promise.domain.0));
        let address_most = match self.whole {
            Some(whole) if whole.visits_max > 0 => whole.visits_max.max(address_most),
            _ if self.is_shared() => 0,
            _ => address_most,
        };
        let limits = [
            (Kind::Server, event.server, 1),
            (Kind::Host, host, 1),
            (Kind::Address, event.address, address_most),
            (Kind::Domain, domain, domain_most),
        ];
        for (kind, index, most) in limits {
            let Some(row) = self.rows[kind as usize].get_mut(index as usize) else { continue };
            row.count(event);
            if promise.is_some() {
                // What other nodes do at a domain is checked when it is taken over.
                let visits = row.begin(event, &self.clocks, kind == Kind::Address);
                row.end(event, &self.clocks);
                if most > 0 && visits > most {
                    breaches.push(Breach::AtOnce { kind, visits, most });
                }
            }
            row.broken += u32::from(breaches.iter().any(|breach| breach.kind() == kind));
        }
    }

    /// Computes until when a server and its host rest, from what is known of the last visit.
    fn rest(&mut self, event: &Event) {
        let promise = self.promise_at(event, event.ended);
        let server = event.server;
        let visit = &self.visits[server as usize];
        if visit.requests == 0 {
            return;
        }
        let lasted = visit.ended.saturating_sub(visit.began);
        let rest = promise.rest(visit.requests, lasted, visit.crawl_delay);
        let until = visit.ended.saturating_add(rest).max(visit.asked_until);
        let until = Time { at: until, run: visit.run };
        self.rows[Kind::Server as usize][server as usize].rest = (until, server);
        let row = &mut self.rows[Kind::Host as usize][self.groups[server as usize].0 as usize];
        let here = |time: Time| self.clocks.convert(event.clock, time.at, time.run);
        if row.rest.1 == server || here(until) > here(row.rest.0) {
            row.rest = (until, server);
        }
    }

    /// Returns the promises that a node had made at a time.
    fn promised_at(&self, run: u32, at: u64) -> Option<&Promise> {
        self.all_promised_at(run, at).map(|promised| &promised.promise)
    }

    fn all_promised_at(&self, run: u32, at: u64) -> Option<&Promised> {
        let promises = &self.promises[self.clocks.node_of(run) as usize];
        let mut known = promises.iter().rev();
        known.find(|known| known.promise.from <= at).or(promises.first())
    }

    /// Returns the delay of an address or a domain that a node had promised at a time of a run.
    fn delay_at(&self, run: u32, at: u64, kind: Kind) -> u64 {
        let Some(promise) = self.promised_at(run, at) else { return 0 };
        if kind == Kind::Domain {
            return promise.domain.1;
        }
        // Before a run writes its first line the number of nodes may have changed unannounced.
        let is_announced = (self.clocks.began(run)..=at).contains(&promise.from);
        let whole = self.whole.filter(|_| !is_announced).map(|whole| whole.delay);
        whole.unwrap_or(u64::MAX).min(promise.address.1)
    }

    /// Returns the promises to the server of an event that its node had made at a time.
    fn promise_at(&self, event: &Event, at: u64) -> Promise {
        let found = self.all_promised_at(event.clock.run, at);
        let Some(Promised { promise, own, .. }) = found else { return Promise::default() };
        let own = own.get(&event.server).copied().unwrap_or_default();
        Promise {
            delay: own.delay.unwrap_or(promise.delay),
            factor_milli: own.factor_milli.unwrap_or(promise.factor_milli),
            ..*promise
        }
    }
}

impl Breach {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Gap { kind, .. } | Self::AtOnce { kind, .. } => kind,
            Self::Overlap => Kind::Server,
            Self::Takeover { .. } => Kind::Domain,
            Self::Crowd { .. } => Kind::Address,
        }
    }
}

type Breaches = SmallVec<[Breach; 4]>;

/// The index in [`crate::frontier::Rule::ALL`] of the rule that counts from the beginning of a run.
pub(super) const RESTART: u8 = 6;

#[cfg(test)]
mod tests;
