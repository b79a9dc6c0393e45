//! The figures of servers, hosts, addresses and domains.

use super::clocks::{Clocks, Link};
use super::order::Event;
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
    /// When the last reply ended.
    pub(super) last: Time,
    /// When the last visits began; only of what owes a delay of its own.
    pub(super) began: SmallVec<[Time; 1]>,
    /// Requests that may be in progress: when each ended, and its server.
    active: SmallVec<[(Time, u32); 1]>,
    /// Until when the row rests because of the visits to a server.
    pub(super) rest: (Time, u32),
}

/// A time by the clock of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) at: u64,
    pub(super) run: u32,
}

/// The number of visits of a node whose beginnings are remembered for an address or a domain.
const BEGAN_MAX: usize = 8;

impl Row {
    /// Counts a request.
    pub(super) fn count(&mut self, event: &Event) {
        let day = u32::try_from(event.at / 86_400_000_000).unwrap_or(u32::MAX);
        self.today = if self.today.0 == day { (day, self.today.1 + 1) } else { (day, 1) };
        self.a_day = self.a_day.max(self.today.1);
        self.requests += 1;
    }

    /// Adds a request to those in progress; returns the number of servers that are being visited.
    /// What other nodes do counts if `counts_all`, unless they may have been stopped.
    pub(super) fn begin(&mut self, event: &Event, clocks: &Clocks, counts_all: bool) -> u32 {
        let (clock, at) = (event.clock, event.at);
        self.active.retain(|(ended, _)| match clocks.link(clock, ended.run) {
            Link::Restart => false,
            Link::Same | Link::Other => clocks.convert(clock, ended.at, ended.run) > at,
        });
        self.active.push((Time { at: event.ended, run: clock.run }, event.server));
        let counts = |(ended, _): &&(Time, u32)| {
            let over = at.saturating_add(clocks.slack(Link::Other));
            clocks.link(clock, ended.run) == Link::Same
                || counts_all
                    && !clocks.is_still(event, ended.run)
                    && clocks.convert(clock, ended.at, ended.run) > over
        };
        let counted = self.active.iter().filter(counts);
        let mut servers: SmallVec<[u32; 8]> = counted.map(|(_, id)| *id).collect();
        self.at_once = self.at_once.max(u32::try_from(servers.len()).unwrap_or(u32::MAX));
        servers.sort_unstable();
        servers.dedup();
        let visits = u32::try_from(servers.len()).unwrap_or(u32::MAX);
        self.visits_at_once = self.visits_at_once.max(visits);
        visits
    }

    /// Notes when a reply ended.
    pub(super) fn end(&mut self, event: &Event, clocks: &Clocks) {
        let Time { at, run } = self.last;
        let is_own = self.requests > 1 && clocks.link(event.clock, run) != Link::Other;
        let before = if is_own { clocks.convert(event.clock, at, run) } else { 0 };
        self.last = Time { at: before.max(event.ended), run: event.clock.run };
    }

    /// Notes when a visit of a node began.
    pub(super) fn begun(&mut self, event: &Event, clocks: &Clocks) {
        let clock = event.clock;
        self.began.retain(|began| clocks.link(clock, began.run) != Link::Restart);
        let is_own = |began: &Time| began.run == clock.run;
        if self.began.iter().filter(|began| is_own(began)).count() == BEGAN_MAX {
            let oldest = self.began.iter().position(is_own).expect("some were counted");
            self.began.remove(oldest);
        }
        self.began.push(Time { at: event.visit_began(), run: clock.run });
    }

    pub(super) fn note_gap(&mut self, gap: u64, owed: u64) {
        self.gap = Some(self.gap.map_or(gap, |least| least.min(gap)));
        if self.tightest.is_none_or(|least| margin((gap, owed)) < margin(least)) {
            self.tightest = Some((gap, owed));
        }
    }
}

/// Returns how much longer a gap is than what was owed.
pub(super) fn margin((gap, owed): (u64, u64)) -> i128 {
    i128::from(gap) - i128::from(owed)
}
