//! The scheduler against a naive model: random histories of each policy, side by side.

mod bounds;
mod lists;
mod model;
pub(crate) mod prices;
mod records;

use super::audit::Audited;
use super::policy::Policy;
use super::*;
use crate::frontier::tests::sabotage::{Sabotage, commit};
use crate::ground::time::{Now, UnixTime};
use crate::url::site::{Matcher, Sites};
use lists::{Checks, Waits};
use model::{ADDRESSES, DOMAINS, Group, Model, Place, SERVERS, Turn, address, prefix};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Both, side by side.
struct Pair {
    random: Random,
    now: Instant,
    scheduler: Scheduler,
    model: Model,
    /// Number of each server in the scheduler, by its number in the model.
    ids: Vec<ServerId>,
    waits: Waits,
}

impl Pair {
    fn new(seed: u64, policy: Policy) -> Self {
        Self::with_share(seed, policy, 0, Checks::Both)
    }

    fn with_share(seed: u64, policy: Policy, random_share_milli: u32, checks: Checks) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let ms = |ms| Duration::from_millis(ms);
        let schedule = policy::Settings {
            policy,
            speedup_milli: random.pick([1_000, 1_200, 3_000]),
            smoothing_milli: random.pick([200, 800]),
            allowance_new: random.pick([1, 3, 50]),
            random_share_milli,
            ..policy::Settings::default()
        };
        let settings = Settings {
            schedule,
            burst: random.pick([Burst::Requests(1), Burst::Requests(4), Burst::Server]),
            delay: ms(random.pick([0, 700, 1_000])),
            delay_factor_milli: random.pick([0, 2_500, 10_000]),
            delay_max: ms(random.pick([3_000, 300_000])),
            address_visits_max: random.pick([0, 1, 2, 4]),
            address_delay: ms(random.pick([0, 0, 400])),
            domain_visits_max: random.pick([0, 1, 2, 3]),
            domain_delay: ms(random.pick([0, 0, 250, 900])),
            ..Settings::default()
        };
        let settings = with_sites(settings, seed);
        let (now, model) = (Instant::from_micros(1), Model::new(settings.clone()));
        let waits = Waits::new(&settings, checks);
        let scheduler = Scheduler::new(settings);
        let mut pair = Self { random, now, scheduler, model, ids: Vec::new(), waits };
        // In some histories most servers become known in their middle.
        let met = pair.random.pick([8, 22]);
        (0..met).for_each(|_| pair.meet());
        pair
    }

    /// Another server becomes known, if there are any.
    fn meet(&mut self) {
        if self.ids.len() < SERVERS {
            let text = url(self.ids.len());
            let url = UrlRef::from_canonical(text.as_bytes()).expect("canonical");
            self.model.prices.meet();
            self.ids.push(self.scheduler.server_of(url));
            assert_eq!(self.scheduler.find(url), self.ids.last().copied());
        }
    }

    /// One thing that the engine may do.
    fn step(&mut self) {
        let server = self.random.below(self.ids.len());
        let busy = self.model.servers[server].visit.is_some();
        match self.random.below(104) {
            0..16 => self.add(server),
            16..18 => self.drop_some(server),
            18..21 => self.read_or_evict(server),
            21..45 => _ = self.next(),
            45..54 if busy => self.take(server),
            54..60 if busy => self.bind(server),
            60..66 if busy => self.begin(server),
            66..78 if busy => self.finish(server),
            78..80 if busy => self.hand_back(server),
            80..82 => self.open(server),
            82..85 if !busy => self.snooze(server),
            85..88 => self.rouse(server),
            88..90 => self.ask_for_delay(server),
            90..94 => self.park(server),
            94 if !busy && self.random.below(4) == 0 => self.retire(server),
            95 if self.model.servers[server].retired => self.reinstate(server),
            96 if self.random.below(4) == 0 => self.meet(),
            97 => self.change_price(),
            98 => (0..self.random.below(20)).for_each(|_| _ = self.reprice()),
            99 if busy => self.may_end(server),
            _ => self.pass_time(),
        }
    }

    fn change_price(&mut self) {
        let [page_us, connection_us] = [(); 2].map(|()| self.random.pick(prices::TIMES_US));
        let price = Price { page_us, connection_us };
        self.scheduler.set_price(price);
        self.model.prices.set(price);
    }

    /// Law: servers get a new price in turn, each once.
    fn reprice(&mut self) -> bool {
        let expected = self.model.prices.next();
        let is_due = self.scheduler.is_repricing();
        let found = self.scheduler.next_repriced().map(ServerId::index);
        assert_eq!((found, is_due), (expected, expected.is_some()));
        let Some(server) = found else { return false };
        if self.model.servers[server].waits() {
            self.report(server);
        }
        true
    }

    /// Law: a visit ends early if its next page gives less than 0.8 of the best waiting server.
    fn may_end(&mut self, server: usize) {
        let pace = Some(self.random.time(900)).filter(|_| self.random.below(2) == 0);
        let Some((gain, cost)) = self.model.next_worth(server, pace) else { return };
        let is_yield = self.model.settings.schedule.policy == Policy::Yield;
        let best = is_yield.then(|| self.model.best(self.now)).flatten();
        let best = best.map(|best| self.model.worth(best));
        let quality = u64::try_from(gain).expect("as it was drawn");
        let ends = self.scheduler.is_outbid(self.ids[server], (quality, pace), self.now);
        let (gains, costs) = best.unwrap_or((0, 1));
        let (own, others) = (10 * gain * costs, 8 * gains * cost);
        if !is_yield {
            assert!(!ends);
        } else if own.abs_diff(others) > own / 1_000_000 {
            assert_eq!(ends, own < others, "{gain} / {cost}, {gains} / {costs}");
        }
    }

    fn waiting(&self, server: usize) -> Waiting {
        let counted = self.scheduler.counted(self.ids[server]);
        assert_eq!(counted, self.model.counted(server));
        self.model.waiting(server, counted)
    }

    /// The queue of a server has changed.
    fn report(&mut self, server: usize) {
        let waiting = self.waiting(server);
        self.scheduler.set_waiting(self.ids[server], waiting, self.now);
        self.reported(server);
    }

    fn reported(&mut self, server: usize) {
        let known = &mut self.model.servers[server];
        let was_idle = known.place == Place::Nowhere && known.visit.is_none() && !known.retired;
        if was_idle {
            // It must not become ready before others that are due.
            self.model.settle(server, self.now);
        } else if known.queue.is_empty() {
            known.place = Place::Nowhere;
        }
        self.follow_waits();
    }

    fn add(&mut self, server: usize) {
        // A few have long queues.
        let server = if self.random.below(3) == 0 { server % 3 } else { server };
        // Few values, so that many are equal.
        let quality = self.random.pick([0, 1, 10, 11, 500, 3_000_000]);
        self.model.servers[server].queue.push(quality);
        self.report(server);
    }

    fn drop_some(&mut self, server: usize) {
        let most = self.random.below(4);
        self.model.servers[server].queue.truncate(most);
        self.report(server);
    }

    fn read_or_evict(&mut self, server: usize) {
        self.model.servers[server].at_hand = self.random.below(3) > 0;
        self.report(server);
    }

    fn pass_time(&mut self) {
        let us = |us| Duration::from_micros(us);
        let deadline = self.scheduler.deadline().unwrap_or(self.now).max(self.now);
        self.now = match self.random.below(4) {
            0 => self.now + self.random.time(4_000),
            1 => self.now + self.random.time(50),
            2 => self.now + deadline.since(self.now).saturating_sub(us(1)),
            _ => deadline,
        };
    }

    /// Laws: a server that is returned may be visited, and is the best of all that may; if one may
    /// be, one is returned.
    fn next(&mut self) -> Option<usize> {
        let line = self.line();
        let expected = self.model.best(self.now);
        let looks = self.random.below(4) == 0;
        let best = if looks { self.scheduler.best(self.now) } else { None };
        let Some(id) = self.scheduler.next(self.now) else {
            assert_eq!((expected, best), (None, None), "a server may be visited");
            assert_eq!(self.scheduler.ready(), 0, "the others wait elsewhere");
            let deadline = self.scheduler.deadline();
            assert!(deadline.is_none_or(|at| at > self.now), "no wake-up for nothing");
            return None;
        };
        let server = self.ids.iter().position(|other| *other == id).expect("a known server");
        self.check_taken(&line, expected, server);
        let first = expected.and_then(|first| self.scheduler.server(self.ids[first]).place());
        assert!(!looks || best == first, "and is announced");
        let known = &mut self.model.servers[server];
        assert_eq!(known.place, Place::Ready);
        known.place = Place::Nowhere;
        known.visit = Some(Turn { began: self.now, counts: true, address: known.address });
        self.follow_waits();
        Some(server)
    }

    fn open(&mut self, server: usize) {
        let known = &self.model.servers[server];
        let may = known.visit.is_none() && !known.retired;
        assert_eq!(self.scheduler.open(self.ids[server], self.now), may);
        self.model.rise(self.now);
        if may {
            let known = &mut self.model.servers[server];
            known.place = Place::Nowhere;
            known.visit = Some(Turn { began: self.now, counts: false, address: None });
        }
    }

    fn take(&mut self, server: usize) {
        let policy = self.model.settings.schedule.policy;
        let known = &mut self.model.servers[server];
        if let Some(first) = known.in_order(policy).first() {
            let index = known.queue.iter().position(|url| url == first).expect("it is there");
            known.queue.remove(index);
        }
    }

    fn is_counted(&self, server: usize) -> bool {
        self.model.servers[server].visit.as_ref().is_some_and(|turn| turn.counts)
    }

    fn bind(&mut self, server: usize) {
        if !self.is_counted(server) {
            return;
        }
        let usual = server % ADDRESSES;
        let number = if self.random.below(4) == 0 { self.random.below(ADDRESSES) } else { usual };
        let (id, address) = (self.ids[server], address(number));
        let turn = self.model.servers[server].visit.as_mut().expect("a visit is under way");
        let same = turn.address == Some(address);
        turn.address = None;
        let group = Group::Address(address);
        let admits = same || (self.model.has_room(group) && self.model.clock(group) <= self.now);
        assert_eq!(self.scheduler.bind(id, address, self.now), admits, "{server} at {address}");
        let known = &mut self.model.servers[server];
        known.address = Some(address);
        if admits {
            known.visit.as_mut().expect("as above").address = Some(address);
        } else {
            self.hand_back(server);
        }
    }

    /// The server of a visit is connected to, maybe long after it was taken.
    fn begin(&mut self, server: usize) {
        if !self.is_counted(server) {
            return;
        }
        let visit = self.model.servers[server].visit.as_ref().expect("a visit is under way");
        let is_first = self.random.below(4) > 0;
        let groups = self.model.beginning(server, visit.address, is_first);
        let admits = groups.iter().all(|group| self.model.clock(*group) <= self.now);
        let begins = self.scheduler.begin(self.ids[server], is_first, self.now);
        assert_eq!(begins, admits, "{server}");
        if begins {
            for group in groups {
                self.model.rest(group, self.now + self.model.delay(group));
            }
        } else {
            self.hand_back(server);
        }
    }

    /// Law: the rest is what the settings say.
    fn finish(&mut self, server: usize) {
        if !self.is_counted(server) {
            return self.hand_back(server);
        }
        let turn = self.model.servers[server].visit.clone().expect("a visit is under way");
        let spent = self.random.pick([0, 1, 3]);
        let late_us = self.random.pick([0, 0, 40_000]);
        let ended = Instant::from_micros(self.now.as_micros().saturating_sub(late_us));
        let ended = ended.max(turn.began);
        let not_before = match self.random.below(5) {
            0 => self.now + self.random.time(8_000),
            _ => Instant::ZERO,
        };
        let strained = self.random.below(2) == 0;
        let visit = Visit {
            not_before,
            strained,
            connect_time: (self.random.below(2) == 0).then(|| self.random.time(300)),
            replies: u32::try_from(self.random.below(4)).expect("small"),
            response_time: self.random.time(900),
            allowance: self.random.pick([0, 1, 2, 10, 100]),
            ..Visit::new(spent, turn.began, ended)
        };
        let owed = ended + self.model.rest_owed(server, spent, ended.since(turn.began));
        let due = owed.max(not_before);
        self.model.learn(server, &visit);
        let waiting = |counted| self.model.waiting(server, counted);
        let found = self.scheduler.finish(self.ids[server], &visit, self.now, waiting);
        assert_eq!(found, due, "the rest owed by {server}");

        for group in self.model.groups(server, turn.address) {
            let own = ended + self.model.delay(group);
            let is_host = matches!(group, Group::Host(..));
            let next = if is_host { own.max(if strained { due } else { owed }) } else { own };
            self.model.rest(group, next);
        }
        let known = &mut self.model.servers[server];
        (known.due, known.visit) = (due, None);
        self.model.settle(server, self.now);
    }

    fn hand_back(&mut self, server: usize) {
        let waiting = self.waiting(server);
        self.scheduler.hand_back(self.ids[server], waiting, self.now);
        self.model.hand_back(server, self.now);
        self.note_handed_back(server);
    }

    fn snooze(&mut self, server: usize) {
        let until = self.now + self.random.time(6_000);
        self.scheduler.snooze(self.ids[server], until, self.now);
        let due = self.model.servers[server].due.max(until);
        self.model.set_due(server, due, self.now);
    }

    fn rouse(&mut self, server: usize) {
        let due = self.now + self.random.time(2_000);
        let due = if self.random.below(2) == 0 { Instant::ZERO } else { due };
        self.scheduler.rouse(self.ids[server], due, self.now);
        self.model.set_due(server, due, self.now);
    }

    fn park(&mut self, server: usize) {
        let parked = self.random.below(2) == 0;
        self.model.servers[server].parked = parked;
        let waiting = self.waiting(server);
        self.scheduler.set_parked(self.ids[server], parked, self.now, || waiting);
        self.reported(server);
        if self.random.below(4) == 0 {
            self.model.servers[server].is_called = !self.model.servers[server].retired;
            self.scheduler.call(self.ids[server], self.waiting(server), self.now);
        }
    }

    fn ask_for_delay(&mut self, server: usize) {
        let delay = Some(self.random.time(3_000)).filter(|_| self.random.below(3) > 0);
        // Whole milliseconds are kept, rounded up.
        let ms = delay.map(|delay| delay.as_micros().div_ceil(1_000) as u64);
        self.model.servers[server].crawl_delay = ms.map(Duration::from_millis);
        let waiting = |counted| self.model.waiting(server, counted);
        self.scheduler.set_crawl_delay(self.ids[server], delay, self.now, waiting);
        self.reported(server);
    }

    fn retire(&mut self, server: usize) {
        self.scheduler.retire(self.ids[server], Retirement::Failures, self.now);
        let known = &mut self.model.servers[server];
        (known.place, known.retired) = (Place::Nowhere, true);
    }

    fn reinstate(&mut self, server: usize) {
        self.scheduler.reinstate(self.ids[server]);
        let known = &mut self.model.servers[server];
        (known.retired, known.is_called) = (false, false);
        known.queue.clear();
    }

    /// Laws: states are what the model says, nothing is out of place, and no wake-up comes too
    /// late.
    fn check(&mut self) {
        self.follow_waits();
        self.audit_waits();
        let mut waiting = 0;
        for (id, known) in self.ids.iter().zip(&self.model.servers) {
            let server = self.scheduler.server(*id);
            let fits = match server.state() {
                ServerState::Idle => known.place == Place::Nowhere && !known.waits(),
                ServerState::Ready => known.place != Place::Nowhere && known.at_hand,
                ServerState::Reading => known.place != Place::Nowhere && !known.at_hand,
                ServerState::Snoozed => known.place == Place::Asleep,
                ServerState::Busy => known.visit.is_some(),
                ServerState::Retired(_) => known.retired,
            };
            assert!(fits, "{:?} {known:?}", server.state());
            assert!((server.due, server.visits) == (known.due, known.visits));
            waiting +=
                usize::from(matches!(server.state(), ServerState::Ready | ServerState::Snoozed));
        }
        assert_eq!(self.scheduler.ready() + self.scheduler.snoozed(), waiting);
        let queue = |id: ServerId| {
            let server = self.ids.iter().position(|other| *other == id).expect("a known server");
            let known = &self.model.servers[server];
            let best = known.in_order(self.model.settings.schedule.policy);
            Audited { urls: known.queue.len(), best }
        };
        assert_eq!(self.scheduler.audit(queue), Ok(()));
        if let Some(at) = self.model.soonest()
            && self.scheduler.ready() == 0
        {
            let deadline = self.scheduler.deadline();
            assert!(deadline.is_some_and(|nearest| nearest <= at.max(self.now)), "{deadline:?}");
        }
    }

    /// Nothing is added any more: all servers are visited until no URL is left.
    fn drain(&mut self) {
        while self.reprice() {}
        for server in 0..self.ids.len() {
            self.model.servers[server].at_hand = true;
            self.report(server);
            if self.model.servers[server].visit.is_some() {
                self.finish(server);
            }
        }
        for _ in 0..20_000 {
            if let Some(server) = self.next() {
                self.take(server);
                self.finish(server);
            } else if let Some(deadline) = self.scheduler.deadline() {
                self.now = deadline;
            } else {
                break;
            }
            self.check();
        }
        let left = self.model.servers.iter().filter(|known| known.waits()).count();
        assert_eq!(left, 0, "all servers are visited in the end");
    }
}

fn agrees_with_the_naive_model(policy: Policy) {
    for seed in 1..=100 {
        history(seed, policy);
    }
}

fn history(seed: u64, policy: Policy) {
    // Shown if the test fails: the last one is the history that did.
    println!("the history of seed {seed}, {policy:?}");
    let mut pair = Pair::new(seed, policy);
    for _ in 0..900 {
        pair.step();
        pair.check();
    }
    pair.drain();
}

#[test]
fn breadth_first_agrees_with_the_naive_model() {
    agrees_with_the_naive_model(Policy::Bfs);
}

#[test]
fn performance_agrees_with_the_naive_model() {
    agrees_with_the_naive_model(Policy::Performance);
}

#[test]
fn quality_agrees_with_the_naive_model() {
    agrees_with_the_naive_model(Policy::Quality);
}

#[test]
fn capability_agrees_with_the_naive_model() {
    agrees_with_the_naive_model(Policy::Capability);
}

#[test]
fn law_the_baselines_agree_with_the_naive_model() {
    agrees_with_the_naive_model(Policy::Random);
    agrees_with_the_naive_model(Policy::LargestSiteFirst);
}

#[test]
fn yield_agrees_with_the_naive_model() {
    agrees_with_the_naive_model(Policy::Yield);
}

/// The model notices each fault, in a few histories at most.
#[test]
fn faults_are_noticed() {
    let all = [
        (Sabotage::RankInverted, Policy::Bfs),
        (Sabotage::RankInverted, Policy::Capability),
        (Sabotage::RanksStale, Policy::Quality),
        (Sabotage::RanksStale, Policy::Yield),
        (Sabotage::RanksStale, Policy::Performance),
        (Sabotage::WorstReleased, Policy::Quality),
        (Sabotage::DelayIgnored, Policy::Bfs),
        (Sabotage::CapsIgnored, Policy::Bfs),
        (Sabotage::CrawlDelayIgnored, Policy::Bfs),
    ];
    for (sabotage, policy) in all {
        commit(Some(sabotage));
        let fails = |seed| catch_unwind(AssertUnwindSafe(|| history(seed, policy))).is_err();
        let noticed = (1..=20).any(fails);
        commit(None);
        assert!(noticed, "{sabotage:?} by {policy:?}");
    }
}

fn url(server: usize) -> String {
    let scheme = if server / DOMAINS == 1 { "https" } else { "http" };
    let port = if server / DOMAINS == 3 { ":8080" } else { "" };
    format!("{scheme}://{}.d{}.com{port}/", prefix(server), server % DOMAINS)
}

/// Adds settings of sites to every other history: those of a host go before those of its domain.
/// They are drawn from a stream of their own, so that the histories of old seeds stay the same.
fn with_sites(settings: Settings, seed: u64) -> Settings {
    let mut random = Random(seed.wrapping_mul(0xD134_2543_DE82_EF95) | 1);
    if random.below(2) == 0 {
        return settings;
    }
    let mut pace = || SitePace {
        burst: random.pick([None, Some(Burst::Requests(2)), Some(Burst::Server)]),
        delay: random.pick([None, Some(0), Some(300), Some(2_000)]).map(Duration::from_millis),
        delay_factor_milli: random.pick([None, Some(0), Some(5_000)]),
    };
    let paces = vec![pace(), pace(), pace()];
    let host = format!("{}.d1.com", prefix(1));
    let all = [Matcher::host(&host), Matcher::domain("d1.com"), Matcher::domain("d2.com")];
    let all: Vec<Matcher> = all.into_iter().flatten().collect();
    Settings { sites: Arc::new(Sites::new(&all)), paces, ..settings }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("below a usize")
    }

    fn pick<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.below(N)]
    }

    /// Less than so many milliseconds; one in eight is none at all.
    fn time(&mut self, ms: usize) -> Duration {
        let us = if self.below(8) == 0 { 0 } else { self.below(ms * 1_000) };
        Duration::from_micros(us as u64)
    }
}
