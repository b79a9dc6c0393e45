//! The naive model: no queue in order, no map of sleepers, no alarm, no count.
//!
//! Whatever it is asked, it computes from all servers and all their URLs, by the formulas of the
//! paper.

use super::super::policy::Policy;
use super::super::*;
use crate::frontier::scheduler::tests::prices::NaivePrices;
use crate::ground::time::Now;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
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
    pub(super) key: Key,
}

/// Where a server with URLs is while it isn't visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Nowhere,
    Ready,
    Asleep,
}

/// One server of the model.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Its URLs in no order.
    pub(super) queue: Vec<Url>,
    /// The numbers, in the order of arrival, of those that are in memory: this the frontier is
    /// believed.
    pub(super) memory: BTreeSet<u64>,
    /// So many of the best make its rank at most: this, too.
    pub(super) counted: u64,
    pub(super) due: Instant,
    pub(super) place: Place,
    /// When it became ready or went to sleep the last time.
    pub(super) arrival: u64,
    pub(super) crawl_delay: Option<Duration>,
    pub(super) address: Option<IpAddr>,
    pub(super) visit: Option<Turn>,
    pub(super) retired: bool,
    pub(super) visits: u32,
    pub(super) connect_us: Option<u64>,
    pub(super) response_us: Option<u64>,
    pub(super) allowance: Option<u64>,
    pub(super) parked: bool,
    pub(super) is_called: bool,
}

/// A visit under way.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) began: Instant,
    /// Whether groups count it.
    pub(super) counts: bool,
    /// The address group that counts it.
    pub(super) address: Option<IpAddr>,
    /// URLs that were taken, in order.
    pub(super) taken: Vec<Url>,
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) settings: Settings,
    pub(super) servers: Vec<Known>,
    /// Clocks of groups that have been visited.
    pub(super) next: BTreeMap<Group, Instant>,
    events: u64,
    /// URLs queued so far.
    pub(super) arrivals: u64,
    pub(super) prices: NaivePrices,
}

impl Url {
    /// The lesser goes first.
    pub(super) fn order(&self, policy: Policy) -> (bool, Reverse<u64>, u64) {
        let quality = self.key.quality.millionths();
        let quality = if policy.is_by_quality() { quality } else { 0 };
        (!self.key.is_first, Reverse(quality), self.key.arrival)
    }

    pub(super) fn band(&self, policy: Policy) -> u8 {
        let by_quality = policy.is_by_quality();
        let order = if by_quality { queues::Order::Quality } else { queues::Order::Arrival };
        Queues::band(order, self.key)
    }
}

impl Known {
    fn new() -> Self {
        Self {
            queue: Vec::new(),
            memory: BTreeSet::new(),
            counted: 1,
            due: Instant::ZERO,
            place: Place::Nowhere,
            arrival: 0,
            crawl_delay: None,
            address: None,
            visit: None,
            retired: false,
            visits: 0,
            connect_us: None,
            response_us: None,
            allowance: None,
            parked: false,
            is_called: false,
        }
    }

    fn waits(&self) -> bool {
        !self.queue.is_empty() && self.visit.is_none() && !self.retired
    }

    fn is_in_memory(&self, url: &Url) -> bool {
        self.memory.contains(&url.key.arrival)
    }

    /// Its URLs in memory in the order in which they are to come.
    pub(super) fn in_order(&self, policy: Policy) -> Vec<Url> {
        let in_memory = self.queue.iter().filter(|url| self.is_in_memory(url));
        let mut urls: Vec<Url> = in_memory.copied().collect();
        urls.sort_by_key(|url| url.order(policy));
        urls
    }

    /// The URL that comes next: by arrival the first of all, by quality the best in memory, unless
    /// one of a better band is on disk. `None` if there is none, or if it is to be read first.
    pub(super) fn next_url(&self, policy: Policy) -> Option<Url> {
        let in_memory = self.queue.iter().filter(|url| self.is_in_memory(url));
        let best = in_memory.min_by_key(|url| url.order(policy))?;
        let mut on_disk = self.queue.iter().filter(|url| !self.is_in_memory(url));
        let is_next = match policy.is_by_quality() {
            true => on_disk.all(|url| url.band(policy) <= best.band(policy)),
            false => on_disk.all(|url| url.order(policy) > best.order(policy)),
        };
        is_next.then_some(*best)
    }

    /// Whether a URL has to be read before any comes out.
    pub(super) fn is_behind(&self, policy: Policy) -> bool {
        !self.queue.is_empty() && self.next_url(policy).is_none()
    }
}

impl Model {
    pub(super) fn new(settings: Settings) -> Self {
        let servers = (0..SERVERS).map(|_| Known::new()).collect();
        Self {
            settings,
            servers,
            next: BTreeMap::new(),
            events: 0,
            arrivals: 0,
            prices: NaivePrices::default(),
        }
    }

    pub(super) fn policy(&self) -> Policy {
        self.settings.scheduler.schedule.policy
    }

    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// The key of a URL that is queued now.
    pub(super) fn key(&mut self, is_first: bool, quality: Quality) -> Key {
        self.arrivals += 1;
        Key { is_first, quality, arrival: self.arrivals }
    }

    pub(super) fn urls(&self) -> usize {
        self.servers.iter().map(|server| server.queue.len()).sum()
    }

    /// Whoever sleeps and is due by now becomes ready, in order of time.
    pub(super) fn rise(&mut self, now: Instant) {
        let asleep = |(number, known): (usize, &Known)| {
            let rises = known.place == Place::Asleep && known.due <= now;
            rises.then_some((known.due, known.arrival, number))
        };
        let mut woken: Vec<_> = self.servers.iter().enumerate().filter_map(asleep).collect();
        woken.sort_unstable();
        for (.., number) in woken {
            self.servers[number].place = Place::Ready;
            self.servers[number].arrival = self.event();
        }
    }

    /// A server that has URLs and is nowhere finds its place.
    pub(super) fn settle(&mut self, server: usize, now: Instant) {
        self.rise(now);
        let event = self.event();
        let known = &mut self.servers[server];
        if known.place == Place::Nowhere && known.waits() {
            known.place = if known.due > now { Place::Asleep } else { Place::Ready };
            known.arrival = event;
        }
    }

    /// When it is due has changed: unless it is ready and may stay so, it finds a new place.
    pub(super) fn set_due(&mut self, server: usize, due: Instant, now: Instant) {
        self.rise(now);
        let known = &mut self.servers[server];
        known.due = due;
        if known.place != Place::Ready || due > now {
            known.place = Place::Nowhere;
        }
        self.settle(server, now);
    }

    /// It is busy no more, and was not visited: it keeps its arrival.
    pub(super) fn hand_back(&mut self, server: usize, now: Instant) {
        self.rise(now);
        let known = &mut self.servers[server];
        known.visit = None;
        if known.waits() && known.due <= now && known.arrival > 0 {
            known.place = Place::Ready;
        }
        self.settle(server, now);
    }

    pub(super) fn groups(
        &self,
        server: usize,
        address: Option<IpAddr>,
    ) -> impl Iterator<Item = Group> + use<> {
        let (host, domain) = (Group::Host(server % DOMAINS, prefix(server)), server % DOMAINS);
        [host, Group::Domain(domain)].into_iter().chain(address.map(Group::Address))
    }

    /// Whose clocks decide whether a visit may begin, the first time or at another address.
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
            Group::Domain(_) => self.settings.scheduler.domain_visits_max,
            Group::Address(_) => self.settings.scheduler.address_visits_max,
        };
        if cap == 0 { usize::MAX } else { cap as usize }
    }

    pub(super) fn delay(&self, group: Group) -> Duration {
        match group {
            Group::Host(..) => Duration::ZERO,
            Group::Domain(_) => self.settings.scheduler.domain_delay,
            Group::Address(_) => self.settings.scheduler.address_delay,
        }
    }

    /// No visit in that group before `next`.
    pub(super) fn rest(&mut self, group: Group, next: Instant) {
        let clock = self.next.entry(group).or_default();
        *clock = next.max(*clock);
    }

    fn active(&self, group: Group) -> usize {
        let counts = |(number, server): (usize, &Known)| {
            let turn = server.visit.as_ref().filter(|turn| turn.counts)?;
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
    fn possible(&self, server: usize) -> Option<Instant> {
        let known = &self.servers[server];
        if !known.waits() || known.is_behind(self.policy()) {
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

    /// When the next server may be visited.
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
        let [is_called, other_is] = [one, other].map(|server| self.servers[server].is_called);
        let is_earlier = || self.arrival(one) < self.arrival(other);
        is_called && !other_is
            || is_called == other_is && (own > others || own == others && is_earlier())
    }

    fn arrival(&self, server: usize) -> u64 {
        assert_eq!(self.servers[server].place, Place::Ready, "{server} may be visited");
        self.servers[server].arrival
    }

    /// P, but for the length of the queue: the most that one visit may take.
    fn visit_max(&self, server: usize) -> u64 {
        let known = &self.servers[server];
        let schedule = &self.settings.scheduler.schedule;
        let burst = match (known.crawl_delay, self.settings.scheduler.burst) {
            (Some(_), _) => 1,
            (None, Burst::Requests(most)) => u64::from(most),
            (None, Burst::Server) => u64::MAX,
        };
        burst.min(known.allowance.unwrap_or(u64::from(schedule.allowance_new)))
    }

    /// How many of the best URLs make up the rank, if memory has room for them.
    pub(super) fn counted(&self, server: usize) -> u64 {
        match self.policy() {
            Policy::Quality => 1,
            Policy::Yield => self.visit_max(server).min(6),
            _ => self.visit_max(server),
        }
    }

    /// Gain and cost of the next visit, in the words of design D5.
    fn rank(&self, server: usize) -> (u128, u128) {
        let (known, schedule) = (&self.servers[server], &self.settings.scheduler.schedule);
        let urls = known.in_order(schedule.policy);
        let allowance = known.allowance.unwrap_or(u64::from(schedule.allowance_new));
        let pages = self.visit_max(server).min(known.queue.len() as u64);
        let us = |time: Duration| u64::try_from(time.as_micros()).expect("short");
        let connect = known.connect_us.unwrap_or(us(schedule.connect_time_new));
        let response = known.response_us.unwrap_or(us(schedule.response_time_new));
        let speedup = if allowance > 1 { u64::from(schedule.speedup_milli) } else { 1_000 };
        let opening = if known.parked { 0 } else { 2 * connect };
        let slot = |pages: u64| (opening + pages * response * 1_000 / speedup).max(1);
        let quality =
            |most: u64| urls.iter().take(most as usize).map(|url| url.key.quality.millionths());
        let (gain, cost) = match schedule.policy {
            Policy::Bfs => (1, 1),
            Policy::Performance => (pages, slot(pages)),
            // The next one is the best one; robots.txt has no quality of its own.
            Policy::Quality => (quality(1).sum::<u64>(), 1),
            Policy::Capability => (quality(pages.min(known.counted)).sum::<u64>(), slot(pages)),
            Policy::Random => (!policy::lot((ServerId::from_index(server), known.visits)).get(), 1),
            Policy::LargestSiteFirst => (known.queue.len() as u64, 1),
            Policy::Yield => {
                let (few, price) = (pages.min(6), self.prices.of[server]);
                let opening = if known.parked { 0 } else { u64::from(price.connection_us) };
                let cost = slot(few) + opening + few * u64::from(price.page_us);
                (quality(few.min(known.counted)).sum::<u64>(), cost)
            }
        };
        (u128::from(gain), u128::from(cost))
    }

    /// What a visit has shown of a server.
    pub(super) fn learn(&mut self, server: usize, visit: &Visit) {
        let weight = u64::from(self.settings.scheduler.schedule.smoothing_milli);
        let us = |time: Duration| u64::try_from(time.as_micros()).expect("short").max(1);
        let smooth = |old: Option<u64>, new: u64| {
            let old = old.unwrap_or(new);
            Some(((old * weight + new * (1_000 - weight) + 500) / 1_000).max(1))
        };
        let known = &mut self.servers[server];
        (known.visits, known.is_called) = (known.visits + 1, false);
        if let Some(time) = visit.connect_time {
            known.connect_us = smooth(known.connect_us, us(time));
        }
        if visit.replies > 0 {
            let mean = visit.response_time / visit.replies;
            known.response_us = smooth(known.response_us, us(mean));
        }
        known.allowance = (visit.allowance > 0).then_some(u64::from(visit.allowance));
    }

    /// The rest owed after a visit, in the words of the settings.
    pub(super) fn rest_owed(&self, server: usize, requests: u32, visit: Duration) -> Duration {
        let (count, settings) = (u128::from(requests.max(1)), &self.settings.scheduler);
        let factor = u128::from(settings.delay_factor_milli);
        let own = (count * settings.delay.as_micros()).max(visit.as_micros() * factor / 1_000);
        let asked = self.servers[server].crawl_delay.unwrap_or_default();
        let rest = own.min(settings.delay_max.as_micros()).max(count * asked.as_micros());
        Duration::from_micros(u64::try_from(rest).expect("the cases are small"))
    }

    /// What is left of it when a crawl of which a snapshot was taken at `began` is restored: no
    /// server is visited, URLs that were under way wait where they were, waits go on by the
    /// calendar and never grow, and nothing is known of addresses. After an unclean stop every
    /// server waits the full rest. `arrivals` are those of the snapshot, one for each server known:
    /// they decide between equals.
    pub(super) fn restore(&mut self, began: Now, now: Now, was_clean: bool, arrivals: &[u64]) {
        self.prices.restart();
        let passed = now.unix.as_micros().saturating_sub(began.unix.as_micros());
        let passed = Duration::from_micros(passed);
        let end = |until: Instant| match until.since(began.at) {
            Duration::ZERO => Instant::ZERO,
            left => now.at + left.saturating_sub(passed),
        };
        let mut order = Vec::new();
        for (number, server) in self.servers.iter_mut().enumerate() {
            if let Some(turn) = server.visit.take() {
                server.queue.extend(turn.taken);
            }
            (server.parked, server.address, server.arrival) = (false, None, 0);
            server.is_called = false;
            (server.place, server.due) = (Place::Nowhere, end(server.due));
            order.push((server.due, arrivals.get(number).copied(), number));
        }
        let (known, settings) = (arrivals.len(), self.settings.scheduler.clone());
        self.next.retain(|group, _| matches!(group, Group::Host(..)));
        self.next.values_mut().for_each(|next| *next = end(*next));
        for number in 0..self.servers.len() {
            self.rest(Group::Domain(number % DOMAINS), now.at + settings.domain_delay);
            if !was_clean {
                let server = &mut self.servers[number];
                let full = now.at + settings.full_rest(server.crawl_delay);
                server.due = server.due.max(full);
                if number < known {
                    self.rest(Group::Host(number % DOMAINS, prefix(number)), full);
                }
            }
        }
        for number in 0..ADDRESSES {
            self.rest(Group::Address(address(number)), now.at + settings.address_delay);
        }
        order.sort_unstable();
        order.into_iter().for_each(|(.., number)| self.settle(number, now.at));
    }
}

pub(super) fn prefix(server: usize) -> &'static str {
    // The first two differ in their scheme only, so that they share a host.
    ["www", "www", "img", "api"][server / DOMAINS]
}

pub(super) fn address(number: usize) -> IpAddr {
    IpAddr::from([192, 0, 2, u8::try_from(number).expect("few addresses")])
}
