//! The naive model: no line, no heap, no timer, no count. Whatever it is asked, it finds by
//! looking at all servers and all their URLs, and by the formulas of the paper.

use super::super::policy::Policy;
use super::super::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub(super) const SERVERS: usize = 30;
pub(super) const DOMAINS: usize = 8;
/// Servers known from the start; the others come later.
pub(super) const MET: usize = 22;
/// The same, where most come in the middle of the history.
pub(super) const FEW: usize = 8;
pub(super) const ADDRESSES: usize = 5;

/// What shares a clock and a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Host(usize, &'static str),
    Domain(usize),
    Address(IpAddr),
}

/// One URL of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) number: u32,
    pub(super) prior: bool,
    pub(super) quality: u64,
    pub(super) arrival: u64,
}

/// Where a server with URLs stands while nobody visits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Nowhere,
    /// Became ready as the so-manieth.
    InLine(u64),
    /// Went to sleep as the so-manieth.
    Asleep(u64),
}

/// One server of the model.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) queue: VecDeque<Url>,
    /// Of these the ones in memory, and whether others have to be read before any comes out: this
    /// the frontier is believed.
    pub(super) memory: Vec<u32>,
    pub(super) behind: bool,
    /// So many of the best make its rank at most: this, too.
    pub(super) counted: u64,
    pub(super) due: Instant,
    pub(super) place: Place,
    pub(super) crawl_delay: Option<Duration>,
    pub(super) address: Option<IpAddr>,
    pub(super) visit: Option<Turn>,
    pub(super) retired: bool,
    pub(super) connect_us: Option<u64>,
    pub(super) response_us: Option<u64>,
    pub(super) allowance: Option<u64>,
    pub(super) parked: bool,
}

/// A visit under way.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) began: Instant,
    /// The address group that counts it.
    pub(super) address: Option<IpAddr>,
    /// URLs taken and not settled, in order.
    pub(super) taken: Vec<Url>,
    /// Its place in line before it was taken.
    pub(super) arrival: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) settings: Settings,
    pub(super) servers: Vec<Known>,
    /// Clocks of groups that have been visited.
    pub(super) next: BTreeMap<Group, Instant>,
    pub(super) events: u64,
}

impl Known {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            memory: Vec::new(),
            behind: false,
            counted: 1,
            due: Instant::ZERO,
            place: Place::Nowhere,
            crawl_delay: None,
            address: None,
            visit: None,
            retired: false,
            connect_us: None,
            response_us: None,
            allowance: None,
            parked: false,
        }
    }

    fn waits(&self) -> bool {
        !self.queue.is_empty() && self.visit.is_none() && !self.retired
    }

    /// Its URLs in the order in which they are to come: by quality those in memory.
    pub(super) fn in_order(&self, policy: Policy) -> Vec<Url> {
        let mut urls: Vec<Url> = self.queue.iter().copied().collect();
        if policy.is_by_quality() {
            urls.retain(|url| self.memory.contains(&url.number));
            urls.sort_by_key(|url| Reverse((url.prior, url.quality, Reverse(url.arrival))));
        }
        urls
    }
}

impl Model {
    pub(super) fn new(settings: Settings) -> Self {
        let servers = (0..SERVERS).map(|_| Known::new()).collect();
        Self { settings, servers, next: BTreeMap::new(), events: 0 }
    }

    pub(super) fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    pub(super) fn urls(&self) -> usize {
        self.servers.iter().map(|server| server.queue.len()).sum()
    }

    /// Whoever sleeps and is due by now stands in line, in order of time.
    pub(super) fn rise(&mut self, now: Instant) {
        let asleep = |(number, known): (usize, &Known)| match known.place {
            Place::Asleep(event) if known.due <= now => Some((known.due, event, number)),
            _ => None,
        };
        let mut woken: Vec<_> = self.servers.iter().enumerate().filter_map(asleep).collect();
        woken.sort_unstable();
        for (_, _, number) in woken {
            self.servers[number].place = Place::InLine(self.event());
        }
    }

    /// A server that has URLs and stands nowhere finds its place.
    pub(super) fn settle_down(&mut self, server: usize, now: Instant) {
        self.rise(now);
        let event = self.event();
        let known = &mut self.servers[server];
        if known.place == Place::Nowhere && known.waits() {
            let asleep = known.due > now;
            known.place = if asleep { Place::Asleep(event) } else { Place::InLine(event) };
        }
    }

    /// Its rest has changed: unless it stands in line and may, it finds its place anew.
    pub(super) fn reconsider(&mut self, server: usize, now: Instant) {
        let known = &mut self.servers[server];
        match known.place {
            Place::InLine(_) if known.due <= now => {}
            _ => known.place = Place::Nowhere,
        }
        self.settle_down(server, now);
    }

    pub(super) fn groups(
        &self,
        server: usize,
        address: Option<IpAddr>,
    ) -> impl Iterator<Item = Group> + use<> {
        let (host, domain) = (Group::Host(server % DOMAINS, prefix(server)), server % DOMAINS);
        [host, Group::Domain(domain)].into_iter().chain(address.map(Group::Address))
    }

    /// Whose clocks say whether a visit may begin, the first or one at another address.
    pub(super) fn beginning(
        &self,
        server: usize,
        address: Option<IpAddr>,
        is_first: bool,
    ) -> Vec<Group> {
        let counts = |group: &Group| match group {
            Group::Host(..) => false,
            Group::Domain(_) => is_first,
            Group::Address(_) => true,
        };
        self.groups(server, address).filter(counts).collect()
    }

    fn cap(&self, group: Group) -> usize {
        let cap = match group {
            Group::Host(..) => 1,
            Group::Domain(_) => self.settings.domain_visits_max,
            Group::Address(_) => self.settings.address_visits_max,
        };
        if cap == 0 { usize::MAX } else { cap as usize }
    }

    pub(super) fn delay(&self, group: Group) -> Duration {
        match group {
            Group::Host(..) => Duration::ZERO,
            Group::Domain(_) => self.settings.domain_delay,
            Group::Address(_) => self.settings.address_delay,
        }
    }

    /// A visit begins now: the next one not before the delay of the group is over.
    pub(super) fn begins(&mut self, group: Group, now: Instant) {
        let next = now + self.delay(group);
        let clock = self.next.entry(group).or_default();
        *clock = next.max(*clock);
    }

    fn active(&self, group: Group) -> usize {
        let counts = |(number, server): (usize, &Known)| {
            let turn = server.visit.as_ref()?;
            self.groups(number, turn.address).find(|other| *other == group)
        };
        self.servers.iter().enumerate().filter_map(counts).count()
    }

    pub(super) fn has_room(&self, group: Group) -> bool {
        self.active(group) < self.cap(group)
    }

    pub(super) fn clock(&self, group: Group) -> Instant {
        self.next.get(&group).copied().unwrap_or(Instant::ZERO)
    }

    /// When a server may be visited if nothing else happens; `None` if something else must.
    pub(super) fn possible(&self, server: usize) -> Option<Instant> {
        let known = &self.servers[server];
        if !known.waits() || known.behind {
            return None;
        }
        let mut at = known.due;
        for group in self.groups(server, known.address) {
            if !self.has_room(group) {
                return None;
            }
            at = at.max(self.clock(group));
        }
        Some(at)
    }

    /// The nearest instant at which some server may be visited.
    pub(super) fn soonest(&self) -> Option<Instant> {
        (0..self.servers.len()).filter_map(|server| self.possible(server)).min()
    }

    pub(super) fn waiting(&self) -> usize {
        self.servers.iter().filter(|known| known.waits()).count()
    }

    /// Of all servers that may be visited now the one with the best rank, computed from nothing.
    pub(super) fn best(&mut self, now: Instant) -> Option<usize> {
        self.rise(now);
        let may = |server: &usize| self.possible(*server).is_some_and(|at| at <= now);
        let mut best: Option<usize> = None;
        for server in (0..self.servers.len()).filter(may) {
            if best.is_none_or(|best| self.goes_before(server, best)) {
                best = Some(server);
            }
        }
        best
    }

    fn goes_before(&self, one: usize, other: usize) -> bool {
        let ((gain, cost), (others_gain, others_cost)) = (self.rank(one), self.rank(other));
        let (own, others) = (gain * others_cost, others_gain * cost);
        own > others || own == others && self.arrival(one) < self.arrival(other)
    }

    fn arrival(&self, server: usize) -> u64 {
        match self.servers[server].place {
            Place::InLine(event) => event,
            place => panic!("{server} may be visited and is {place:?}"),
        }
    }

    /// Gain and cost of the next visit, in the words of design D5.
    fn rank(&self, server: usize) -> (u128, u128) {
        let (known, schedule) = (&self.servers[server], &self.settings.schedule);
        let urls = known.in_order(schedule.policy);
        let allowance = known.allowance.unwrap_or(u64::from(schedule.allowance_new));
        let burst = match (known.crawl_delay, self.settings.burst) {
            (Some(_), _) => 1,
            (None, Burst::Requests(most)) => u64::from(most),
            (None, Burst::Server) => u64::MAX,
        };
        let pages = burst.min(allowance).min(known.queue.len() as u64);
        let us = |time: Duration| u64::try_from(time.as_micros()).expect("short");
        let connect = known.connect_us.unwrap_or(us(schedule.connect_time_new));
        let response = known.response_us.unwrap_or(us(schedule.response_time_new));
        let speedup = if allowance > 1 { u64::from(schedule.speedup_milli) } else { 1_000 };
        let opening = if known.parked { 0 } else { 2 * connect };
        let hold = (opening + pages * response * 1_000 / speedup).max(1);
        let worth = |most: u64| urls.iter().take(most as usize).map(|url| url.quality).sum::<u64>();
        let (gain, cost) = match schedule.policy {
            Policy::Bfs => (1, 1),
            Policy::Performance => (pages, hold),
            // The next one is the best one; robots.txt has no quality of its own.
            Policy::Quality => (worth(1), 1),
            Policy::Capability => (worth(pages.min(known.counted)), hold),
        };
        (u128::from(gain), u128::from(cost))
    }

    /// What a visit has shown of a server.
    pub(super) fn learn(&mut self, server: usize, visit: &Visit) {
        let weight = u64::from(self.settings.schedule.smoothing_milli);
        let us = |time: Duration| u64::try_from(time.as_micros()).expect("short").max(1);
        let smooth = |old: Option<u64>, new: u64| {
            let old = old.unwrap_or(new);
            Some(((old * weight + new * (1_000 - weight) + 500) / 1_000).max(1))
        };
        let known = &mut self.servers[server];
        if let Some(time) = visit.connect_time {
            known.connect_us = smooth(known.connect_us, us(time));
        }
        if visit.replies > 0 {
            let mean = visit.response_time / visit.replies;
            known.response_us = smooth(known.response_us, us(mean));
        }
        known.allowance = (visit.allowance > 0).then_some(u64::from(visit.allowance));
    }

    /// The rest owed, in the words of the settings.
    pub(super) fn rest(&self, server: usize, requests: u32, visit: Duration) -> Duration {
        let count = u128::from(requests.max(1));
        let factor = u128::from(self.settings.delay_factor_milli);
        let own = (count * self.settings.delay.as_micros()).max(visit.as_micros() * factor / 1_000);
        let asked = self.servers[server].crawl_delay.unwrap_or_default();
        let rest = own.min(self.settings.delay_max.as_micros()).max(count * asked.as_micros());
        Duration::from_micros(u64::try_from(rest).expect("the cases are small"))
    }
}

pub(super) fn prefix(server: usize) -> &'static str {
    // The first two differ in their scheme only, so that they share a host.
    ["www", "www", "img", "api"][server / DOMAINS]
}
