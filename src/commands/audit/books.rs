//! The arithmetic of an audit: rests, requests at once and requests a day, from the times alone.
//!
//! It shares no code with the scheduler. What is computed here is never more than what the crawler
//! owed: a visit is taken to last from its first request to the end of its last reply, and to have
//! the requests that the log shows. So a rest that is found too short was too short.
//!
//! Events must come in the order of their times, run by run.

use super::order::Event;
use super::promises::{Promise, Promised};
use smallvec::SmallVec;

/// What servers are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Server,
    Host,
    Address,
    Domain,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Server, Self::Host, Self::Address, Self::Domain];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Host => "host",
            Self::Address => "address",
            Self::Domain => "domain",
        }
    }
}

/// The figures of one server, host, address or domain.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) requests: u64,
    /// The smallest gap between two visits; `None` with one visit.
    pub(super) gap: Option<u64>,
    /// The gap with the smallest margin, and what was owed then.
    pub(super) tightest: Option<(u64, u64)>,
    /// The largest numbers of requests and of visits at once.
    pub(super) at_once: u32,
    pub(super) visits_at_once: u32,
    /// The largest number of requests on one day (UTC).
    pub(super) a_day: u32,
    /// The number of promises that were broken.
    pub(super) broken: u32,
    today: (u32, u32),
    last: Last,
    /// When the last visits began; only of what owes a delay of its own.
    began: SmallVec<[u64; 1]>,
    /// Requests that may be in progress: when each ended, and its server.
    active: SmallVec<[(u64, u32); 1]>,
    /// Until when the row rests because of the visits to a server.
    rest: (u64, u32),
}

/// The last request: its run, and when the last reply ended.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    run: u32,
    ended: u64,
}

impl Row {
    fn count(&mut self, event: &Event) {
        let day = u32::try_from(event.at / 86_400_000_000).unwrap_or(u32::MAX);
        self.today = if self.today.0 == day { (day, self.today.1 + 1) } else { (day, 1) };
        self.a_day = self.a_day.max(self.today.1);
        self.requests += 1;
    }

    /// Adds a request to those in progress; returns the number of servers that are being visited.
    fn begin(&mut self, event: &Event) -> u32 {
        self.active.retain(|(ended, _)| *ended > event.at);
        self.active.push((event.ended, event.server));
        let mut servers: SmallVec<[u32; 8]> = self.active.iter().map(|(_, id)| *id).collect();
        servers.sort_unstable();
        servers.dedup();
        let visits = u32::try_from(servers.len()).unwrap_or(u32::MAX);
        self.at_once = self.at_once.max(u32::try_from(self.active.len()).unwrap_or(u32::MAX));
        self.visits_at_once = self.visits_at_once.max(visits);
        visits
    }

    fn note_gap(&mut self, gap: u64, owed: u64) {
        self.gap = Some(self.gap.map_or(gap, |least| least.min(gap)));
        let margin = |(gap, owed): (u64, u64)| i128::from(gap) - i128::from(owed);
        if self.tightest.is_none_or(|least| margin((gap, owed)) < margin(least)) {
            self.tightest = Some((gap, owed));
        }
    }
}

/// What is known of the last visit to a server.
#[derive(Clone, Debug, Default)]
struct Visit {
    run: u32,
    number: u32,
    began: u64,
    ended: u64,
    requests: u64,
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
}

/// The books of a job: the figures of all servers and of what they share.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// The rows by [`Kind`]; the index of a server is that in its events.
    pub(super) rows: [Vec<Row>; 4],
    visits: Vec<Visit>,
    /// The host and the domain of each server.
    pub(super) groups: Vec<(u32, u32)>,
    promises: Vec<Promised>,
    /// The number of the present run, and when it began.
    run: u32,
    began_run: u64,
    /// The numbers of visits whose gap was checked, and of those whose last visit isn't in the log.
    pub(super) checked: u64,
    pub(super) unknown: u64,
    /// The number of visits before which the calendar went back, so their gap is not known.
    pub(super) set_back: u64,
    /// The number of visits whose times contradict their numbers.
    pub(super) disordered: u64,
}

impl Books {
    /// Begins a run. `drift` is how much later the calendar was than the clock of the run before
    /// at its end, in microseconds: from now on, times of earlier runs are those of the calendar.
    pub(super) fn begin_run(&mut self, run: u64, drift: i64) {
        let shift = |time: &mut u64| *time = time.saturating_add_signed(drift);
        for row in self.rows.iter_mut().flatten().filter(|row| row.requests > 0) {
            row.active.clear();
            row.began.clear();
            shift(&mut row.last.ended);
            shift(&mut row.rest.0);
        }
        for visit in self.visits.iter_mut().filter(|visit| visit.requests > 0) {
            shift(&mut visit.began);
            shift(&mut visit.ended);
            shift(&mut visit.asked_until);
        }
        self.run += 1;
        self.began_run = run;
    }

    /// Adds promises, which are in force from a time on.
    pub(super) fn promise(&mut self, promised: Promised) {
        self.promises.push(promised);
    }

    /// Adds what was promised to the server that was added last, which is on `host`.
    pub(super) fn promise_server(&mut self, host: &str) {
        let server = u32::try_from(self.groups.len() - 1).expect("fewer than 2^32 servers");
        for Promised { own, tables, .. } in &mut self.promises {
            own.extend(tables.of(host).map(|own| (server, own)));
        }
    }

    pub(super) fn has_promises(&self) -> bool {
        !self.promises.is_empty()
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

    /// Takes an event, and passes each broken promise to `sink`.
    pub(super) fn take(&mut self, event: &Event, sink: &mut impl FnMut(Breach)) {
        let promise = self.promise_at(event.ended, event.server);
        if event.request == 0 {
            let visit = &mut self.visits[event.server as usize];
            visit.crawl_delay = event.wait;
            return self.rest(event.server, &promise);
        }
        let visit = &self.visits[event.server as usize];
        let run = self.run;
        let is_new = visit.requests == 0 || (visit.run, visit.number) != (run, event.visit);
        let mut breaches = Breaches::new();
        if is_new {
            self.check_rest(event, &mut breaches);
            self.check_groups(event, &promise, &mut breaches);
            let visit = &mut self.visits[event.server as usize];
            self.disordered += u64::from(visit.run == run && event.visit < visit.number);
            let began = if event.began > 0 { event.began.min(event.at) } else { event.at };
            let (number, crawl_delay) = (event.visit, visit.crawl_delay);
            *visit = Visit { run, number, began, crawl_delay, ..Visit::default() };
        }
        let visit = &mut self.visits[event.server as usize];
        visit.requests = (visit.requests + 1).max(event.request.into());
        visit.ended = visit.ended.max(event.ended);
        if event.wait > 0 {
            visit.asked_until = visit.asked_until.max(event.ended.saturating_add(event.wait));
        }
        self.count(event, &promise, &mut breaches);
        self.rest(event.server, &promise);
        breaches.into_iter().for_each(sink);
    }

    /// Checks the rest of a server that is over when a visit begins.
    fn check_rest(&mut self, event: &Event, breaches: &mut Breaches) {
        let began_run = self.began_run;
        let visit = &self.visits[event.server as usize];
        let slack = if visit.run == self.run { 0 } else { SLACK };
        let row = &mut self.rows[Kind::Server as usize][event.server as usize];
        let is_restart = event.rule == RESTART;
        if is_restart && event.at < began_run.saturating_add(event.owed) {
            let gap = event.at.saturating_sub(began_run);
            breaches.push(Breach::Gap { kind: Kind::Server, gap, owed: event.owed });
        }
        if visit.requests == 0 {
            self.unknown += u64::from(event.owed > 0 && !is_restart);
        } else if slack > 0 && event.at < visit.ended {
            self.set_back += 1;
        } else {
            self.checked += 1;
            let claimed = if is_restart { 0 } else { event.owed };
            let due = row.rest.0.saturating_sub(slack);
            let owed = due.saturating_sub(visit.ended).max(claimed);
            let gap = event.at.saturating_sub(visit.ended);
            row.note_gap(gap, owed);
            if event.at < visit.ended {
                breaches.push(Breach::Overlap);
            } else if gap < owed {
                breaches.push(Breach::Gap { kind: Kind::Server, gap, owed });
            }
        }
    }

    /// Checks the rests that a host, an address and a domain owe when a visit begins.
    fn check_groups(&mut self, event: &Event, promise: &Promise, breaches: &mut Breaches) {
        let (host, domain) = self.groups[event.server as usize];
        let row = &mut self.rows[Kind::Host as usize][host as usize];
        let slack = if row.last.run == self.run { 0 } else { SLACK };
        if row.requests > 0 && event.at >= row.last.ended {
            let gap = event.at - row.last.ended;
            let owed = row.rest.0.saturating_sub(slack).saturating_sub(row.last.ended);
            row.note_gap(gap, owed);
            // The server's own rest is checked as such.
            if gap < owed && row.rest.1 != event.server {
                breaches.push(Breach::Gap { kind: Kind::Host, gap, owed });
            }
        }
        let began = if event.began > 0 { event.began } else { event.at };
        let limits = [
            (Kind::Domain, domain, promise.domain.1),
            (Kind::Address, event.address, promise.address.1),
        ];
        for (kind, index, owed) in limits {
            let Some(row) = self.rows[kind as usize].get_mut(index as usize) else { continue };
            let slack = if row.last.run == self.run { 0 } else { SLACK };
            // Visits may overlap, but their beginnings may not be closer than the delay.
            let others = row.began.iter().map(|other| other.abs_diff(began));
            // One request doesn't show whether a visit of several is over.
            let is_over = promise.is_single && row.requests > 0 && row.last.ended <= began;
            let over = is_over.then(|| began - row.last.ended + slack);
            let Some(gap) = others.chain(over).min() else { continue };
            row.note_gap(gap, owed);
            if gap < owed {
                breaches.push(Breach::Gap { kind, gap, owed });
            }
        }
        for (kind, index, owed) in limits {
            if owed > 0
                && let Some(row) = self.rows[kind as usize].get_mut(index as usize)
            {
                if row.began.len() == BEGAN_MAX {
                    row.began.remove(0);
                }
                row.began.push(began);
            }
        }
    }

    /// Counts a request in all rows that it belongs to.
    fn count(&mut self, event: &Event, promise: &Promise, breaches: &mut Breaches) {
        let (host, domain) = self.groups[event.server as usize];
        let limits = [
            (Kind::Server, event.server, 1),
            (Kind::Host, host, 1),
            (Kind::Address, event.address, promise.address.0),
            (Kind::Domain, domain, promise.domain.0),
        ];
        for (kind, index, most) in limits {
            let Some(row) = self.rows[kind as usize].get_mut(index as usize) else { continue };
            row.count(event);
            let visits = row.begin(event);
            row.last.ended = row.last.ended.max(event.ended);
            row.last.run = self.run;
            if most > 0 && visits > most {
                breaches.push(Breach::AtOnce { kind, visits, most });
            }
            row.broken += u32::from(breaches.iter().any(|breach| breach.kind() == kind));
        }
    }

    /// Computes until when a server and its host rest, from what is known of the last visit.
    fn rest(&mut self, server: u32, promise: &Promise) {
        let visit = &self.visits[server as usize];
        if visit.requests == 0 {
            return;
        }
        let lasted = visit.ended.saturating_sub(visit.began);
        let rest = promise.rest(visit.requests, lasted, visit.crawl_delay);
        let until = visit.ended.saturating_add(rest).max(visit.asked_until);
        self.rows[Kind::Server as usize][server as usize].rest = (until, server);
        let row = &mut self.rows[Kind::Host as usize][self.groups[server as usize].0 as usize];
        if until > row.rest.0 || row.rest.1 == server {
            row.rest = (until, server);
        }
    }

    /// Returns the promises to a server at a time.
    fn promise_at(&self, at: u64, server: u32) -> Promise {
        let mut known = self.promises.iter().rev();
        let found = known.find(|known| known.promise.from <= at).or(self.promises.first());
        let Some(Promised { promise, own, .. }) = found else { return Promise::default() };
        let own = own.get(&server).copied().unwrap_or_default();
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
        }
    }
}

type Breaches = SmallVec<[Breach; 4]>;

/// How inexact times of an earlier run are, in microseconds: the calendar time of a request is
/// known to the millisecond.
const SLACK: u64 = 2_000;
/// The number of visits whose beginnings are remembered for an address or a domain.
const BEGAN_MAX: usize = 8;

/// The index in [`crate::frontier::Rule::ALL`] of the rule that counts from the beginning of a run.
pub(super) const RESTART: u8 = 6;

#[cfg(test)]
mod tests {
    use super::super::promises::{Own, Tables};
    use super::*;

    const MS: u64 = 1_000;

    /// Returns what is found in requests, each given as its server, its visit and its beginning and
    /// end in ms. Servers 0 and 1 are of one host, 2 and 3 of others in one domain; all have one
    /// address.
    fn breaches(requests: &[(u32, u32, u64, u64)]) -> Vec<Breach> {
        let mut books = Books::default();
        [(0, 0), (0, 0), (1, 1), (2, 1)].into_iter().for_each(|(host, domain)| {
            books.add_server(host, domain);
        });
        books.reach(Kind::Address, 0);
        let promise = Promise {
            delay: 100 * MS,
            factor_milli: 10_000,
            delay_max: 1_000 * MS,
            address: (3, 10 * MS),
            domain: (1, 0),
            is_single: true,
            from: 0,
        };
        let own = Own { delay: Some(300 * MS), ..Own::default() };
        let own = [(3, own)].into_iter().collect();
        books.promise(Promised { promise, own, tables: Tables::default() });
        books.begin_run(1, 0);
        let mut found = Vec::new();
        for &(server, visit, at, ended) in requests {
            let (at, ended) = (at * MS, ended * MS);
            let event = Event {
                at,
                ended,
                began: at,
                owed: 0,
                wait: 0,
                server,
                address: 0,
                visit,
                request: 1,
                line: 1,
                file: 0,
                rule: 0,
            };
            books.take(&event, &mut |breach| found.push(breach));
        }
        found
    }

    #[test]
    fn each_promise_is_checked_to_the_microsecond() {
        let gap = |kind, gap: u64, owed: u64| Breach::Gap { kind, gap: gap * MS, owed: owed * MS };
        let most = |kind, visits, most| Breach::AtOnce { kind, visits, most };
        use Kind::{Address, Domain, Host, Server};
        let cases = [
            (vec![(0, 1, 100, 105), (0, 2, 205, 210)], vec![], "the delay"),
            (vec![(0, 1, 100, 105), (0, 2, 204, 210)], vec![gap(Server, 99, 100)], "less"),
            (vec![(0, 1, 100, 120), (0, 2, 320, 330)], vec![], "the factor"),
            (vec![(0, 1, 100, 120), (0, 2, 319, 330)], vec![gap(Server, 199, 200)], "less"),
            (vec![(0, 1, 100, 900), (0, 2, 1_900, 1_910)], vec![], "delay_max"),
            (vec![(0, 1, 100, 105), (1, 1, 204, 210)], vec![gap(Host, 99, 100)], "the host rests"),
            (vec![(0, 1, 100, 105), (1, 1, 205, 210)], vec![], "the host has rested"),
            (vec![(0, 1, 100, 105), (2, 1, 109, 120)], vec![gap(Address, 4, 10)], "the address"),
            (vec![(0, 1, 100, 105), (2, 1, 115, 120)], vec![], "the address has rested"),
            (vec![(2, 1, 100, 205), (3, 1, 115, 120)], vec![most(Domain, 2, 1)], "two in a domain"),
            (
                vec![(0, 1, 100, 205), (1, 1, 115, 120)],
                vec![most(Host, 2, 1), most(Domain, 2, 1)],
                "two of a host",
            ),
            (vec![(0, 1, 100, 205), (2, 1, 115, 120)], vec![], "others"),
            (vec![(3, 1, 100, 105), (3, 2, 405, 410)], vec![], "a site's own delay"),
            (vec![(3, 1, 100, 105), (3, 2, 404, 410)], vec![gap(Server, 299, 300)], "less"),
        ];
        for (requests, expected, why) in cases {
            assert_eq!(breaches(&requests), expected, "{why}");
        }
        assert_eq!(breaches(&[(0, 1, 100, 400), (0, 2, 300, 400)]), [Breach::Overlap]);
    }
}
