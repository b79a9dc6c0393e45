//! The naive model: no queue, no map of sleepers, no alarm, no count. Whatever it is asked, it
//! computes from all servers and all their URLs, by the formulas of the paper.

use super::super::policy::Policy;
use super::super::*;
use super::prices::NaivePrices;
use crate::ground::time::Now;
use std::cmp::Reverse;
use std::sync::Arc;

pub(super) const SERVERS: usize = 30;
pub(super) const DOMAINS: usize = 8;
pub(super) const ADDRESSES: usize = 5;

/// What shares a clock and a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Host(usize, &'static str),
    Domain(usize),
    Address(IpAddr),
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
    /// Qualities of its URLs, in order of arrival.
    pub(super) queue: Vec<u64>,
    pub(super) at_hand: bool,
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
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) settings: Settings,
    pub(super) servers: Vec<Known>,
    /// Clocks of groups that have been visited.
    pub(super) next: BTreeMap<Group, Instant>,
    pub(super) prices: NaivePrices,
    events: u64,
}

impl Known {
    fn new() -> Self {
        Self {
            queue: Vec::new(),
            at_hand: true,
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

    pub(super) fn waits(&self) -> bool {
        !self.queue.is_empty() && self.visit.is_none() && !self.retired
    }

    /// The qualities of its URLs in the order in which they come out.
    pub(super) fn in_order(&self, policy: Policy) -> Vec<u64> {
        let mut urls = self.queue.clone();
        if policy.is_by_quality() {
            urls.sort_by_key(|quality| Reverse(*quality));
        }
        urls
    }
}

impl Model {
    pub(super) fn new(settings: Settings) -> Self {
        let servers = (0..SERVERS).map(|_| Known::new()).collect();
        Self { settings, servers, next: BTreeMap::new(), prices: NaivePrices::default(), events: 0 }
    }

    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
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
        if !known.waits() || !known.at_hand {
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

    /// Whether a server may be visited now.
    pub(super) fn may(&self, server: usize, now: Instant) -> bool {
        self.possible(server).is_some_and(|at| at <= now)
    }

    /// Gain and cost of a server that was never visited, with 64 URLs of mean quality.
    pub(super) fn typical(settings: &Settings) -> (u128, u128) {
        let settings = Settings { sites: Arc::default(), paces: Vec::new(), ..settings.clone() };
        let mut model = Self::new(settings);
        model.prices.meet();
        model.servers[0].queue = vec![1_000_000; 64];
        model.worth(0)
    }

    /// When the next server may be visited.
    pub(super) fn soonest(&self) -> Option<Instant> {
        (0..self.servers.len()).filter_map(|server| self.possible(server)).min()
    }

    /// The best of all servers that may be visited now.
    pub(super) fn best(&mut self, now: Instant) -> Option<usize> {
        self.rise(now);
        let may = |server: &usize| self.may(*server, now);
        let mut best: Option<usize> = None;
        for server in (0..self.servers.len()).filter(may) {
            if best.is_none_or(|best| self.goes_before(server, best)) {
                best = Some(server);
            }
        }
        best
    }

    fn goes_before(&self, one: usize, other: usize) -> bool {
        let ((gain, cost), (others_gain, others_cost)) = (self.worth(one), self.worth(other));
        let (own, others) = (gain * others_cost, others_gain * cost);
        let [one, other] = [one, other].map(|server| &self.servers[server]);
        one.is_called && !other.is_called
            || one.is_called == other.is_called
                && (own > others || own == others && one.arrival < other.arrival)
    }

    /// The burst, the delay and the factor of a server: the table of the host goes before that of
    /// the domain.
    fn own(&self, server: usize) -> (Burst, Duration, u32) {
        let set = &self.settings;
        let name = format!("{}.d{}.com", prefix(server), server % DOMAINS);
        let tables = set.sites.list().iter().zip(&set.paces);
        let mut own = SitePace::default();
        for (matcher, pace) in tables.rev() {
            let (kind, text) = matcher.parts();
            if name == text || kind == "domain" && name.ends_with(&format!(".{text}")) {
                own = *pace;
            }
        }
        (
            own.burst.unwrap_or(set.burst),
            own.delay.unwrap_or(set.delay),
            own.delay_factor_milli.unwrap_or(set.delay_factor_milli),
        )
    }

    /// The longest rest that a visit to a server without a Crawl-delay may be followed by.
    fn longest(&self, server: usize) -> Duration {
        let (burst, delay, factor) = self.own(server);
        let most = self.settings.delay_max;
        match burst {
            _ if factor > 0 => most,
            Burst::Requests(count) => (delay * count).min(most),
            Burst::Server if delay.is_zero() => delay,
            Burst::Server => most,
        }
    }

    /// P, but for the length of the queue.
    fn visit_max(&self, server: usize) -> u64 {
        let known = &self.servers[server];
        let burst = match (known.crawl_delay, self.own(server).0) {
            (Some(_), _) => 1,
            (None, Burst::Requests(most)) => u64::from(most),
            (None, Burst::Server) => u64::MAX,
        };
        burst.min(known.allowance.unwrap_or(u64::from(self.settings.schedule.allowance_new)))
    }

    /// How many of the best URLs make up the rank.
    pub(super) fn counted(&self, server: usize) -> usize {
        let all = usize::try_from(self.visit_max(server)).expect("64 bits");
        match self.settings.schedule.policy {
            Policy::Quality => 1,
            Policy::Yield => all.min(6),
            _ => all,
        }
    }

    /// What is reported to the scheduler.
    pub(super) fn waiting(&self, server: usize, counted: usize) -> Waiting {
        let known = &self.servers[server];
        let best = known.in_order(self.settings.schedule.policy);
        Waiting {
            urls: u32::try_from(known.queue.len()).expect("few"),
            at_hand: known.at_hand && !known.queue.is_empty(),
            best_sum: best.iter().take(counted).sum(),
        }
    }

    /// Gain and cost of the next visit, in the words of design D5.
    pub(super) fn worth(&self, server: usize) -> (u128, u128) {
        let (known, schedule) = (&self.servers[server], &self.settings.schedule);
        let urls = known.in_order(schedule.policy);
        let allowance = known.allowance.unwrap_or(u64::from(schedule.allowance_new));
        let pages = self.visit_max(server).min(known.queue.len() as u64);
        let us = |time: Duration| u64::try_from(time.as_micros()).expect("short");
        let connect = known.connect_us.unwrap_or(us(schedule.connect_time_new));
        let response = known.response_us.unwrap_or(us(schedule.response_time_new));
        let speedup = if allowance > 1 { u64::from(schedule.speedup_milli) } else { 1_000 };
        let opening = if known.parked { 0 } else { 2 * connect };
        let slot = |pages: u64| (opening + pages * response * 1_000 / speedup).max(1);
        let quality = |most: u64| urls.iter().take(most as usize).sum::<u64>();
        let (gain, cost) = match schedule.policy {
            Policy::Bfs => (1, 1),
            Policy::Performance => (pages, slot(pages)),
            Policy::Quality => (quality(1), 1),
            Policy::Capability => (quality(pages), slot(pages)),
            Policy::Random => (!policy::lot((ServerId::from_index(server), known.visits)).get(), 1),
            Policy::LargestSiteFirst => (known.queue.len() as u64, 1),
            Policy::Yield => {
                let (few, price) = (pages.min(6), self.prices.of[server]);
                let opening = if known.parked { 0 } else { u64::from(price.connection_us) };
                (quality(few), slot(few) + opening + few * u64::from(price.page_us))
            }
        };
        (u128::from(gain), u128::from(cost))
    }

    /// Gain and cost of one more page of a visit whose replies take `pace`.
    pub(super) fn next_worth(&self, server: usize, pace: Option<Duration>) -> Option<(u128, u128)> {
        let (known, schedule) = (&self.servers[server], &self.settings.schedule);
        let gain = *known.in_order(schedule.policy).first()?;
        let us = |time: Duration| u64::try_from(time.as_micros()).expect("short").max(1);
        let estimate = known.response_us.unwrap_or(us(schedule.response_time_new));
        let allowance = known.allowance.unwrap_or(u64::from(schedule.allowance_new));
        let speedup = if allowance > 1 { u64::from(schedule.speedup_milli) } else { 1_000 };
        let slot = (pace.map_or(estimate, us) * 1_000 / speedup).max(1);
        Some((gain.into(), (slot + u64::from(self.prices.of[server].page_us)).into()))
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
        let count = u128::from(requests.max(1));
        let (_, delay, factor) = self.own(server);
        let by_time = visit.as_micros() * u128::from(factor) / 1_000;
        let own = (count * delay.as_micros()).max(by_time);
        let asked = self.servers[server].crawl_delay.unwrap_or_default();
        let rest = own.min(self.settings.delay_max.as_micros()).max(count * asked.as_micros());
        Duration::from_micros(u64::try_from(rest).expect("the cases are small"))
    }

    /// What is left when a crawl of which a snapshot was taken at `began` is restored: no server is
    /// visited, waits go on by the calendar and never grow, and nothing is known of addresses.
    /// After an unclean stop every server waits the full rest. `known` servers are known.
    pub(super) fn restore(&mut self, began: Now, now: Now, was_clean: bool, known: usize) {
        self.prices.restart();
        let passed = now.unix.as_micros().saturating_sub(began.unix.as_micros());
        let passed = Duration::from_micros(passed);
        let end = |until: Instant| match until.since(began.at) {
            Duration::ZERO => Instant::ZERO,
            left => now.at + left.saturating_sub(passed),
        };
        let mut order = Vec::new();
        for (number, server) in self.servers.iter_mut().enumerate() {
            (server.parked, server.address, server.visit) = (false, None, None);
            server.is_called = false;
            (server.place, server.due) = (Place::Nowhere, end(server.due));
            order.push((server.due, std::mem::take(&mut server.arrival), number));
        }
        self.next.retain(|group, _| matches!(group, Group::Host(..)));
        self.next.values_mut().for_each(|next| *next = end(*next));
        for number in 0..self.servers.len() {
            self.rest(Group::Domain(number % DOMAINS), now.at + self.settings.domain_delay);
            if !was_clean {
                // A server that becomes known later rests for as long as any server may have to.
                let all = 0..self.servers.len();
                let asked = self.servers[number].crawl_delay;
                let (_, delay, factor) = self.own(number);
                let most = self.settings.delay_max;
                let full = match (number < known, asked) {
                    (true, Some(asked)) => {
                        asked.max(if factor > 0 { most } else { delay.min(most) })
                    }
                    (true, None) => self.longest(number),
                    (false, _) => all.map(|any| self.longest(any)).max().unwrap_or_default(),
                };
                let full = now.at + full;
                let server = &mut self.servers[number];
                server.due = server.due.max(full);
                if number < known {
                    self.rest(Group::Host(number % DOMAINS, prefix(number)), full);
                }
            }
        }
        for number in 0..ADDRESSES {
            self.rest(Group::Address(address(number)), now.at + self.settings.address_delay);
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
