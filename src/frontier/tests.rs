//! The frontier against a naive model: random histories of each policy, side by side.

#[cfg(feature = "study")]
pub(crate) mod calls;
mod check;
mod items;
mod model;
mod restore;
pub(crate) mod sabotage;
mod seen;
mod spill;

use super::policy::Policy;
use super::scheduler::tests::prices::TIMES_US;
use super::*;
use crate::ground::disk::Disk;
use crate::ground::disk::memory::Memory;
use crate::ground::quality::Quality;
use crate::ground::random::Random;
use items::{is_payload, number_of, payload, seeds, time, url};
use model::{ADDRESSES, DOMAINS, FEW, Group, MET, Model, Place, SERVERS, Turn, address, prefix};
use seen::Seen;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Histories up to this begin with most servers known; in later ones they come as they go on.
const EARLY: u64 = 80;

/// What has become of a URL, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Waits,
    Taken,
    Done,
}

/// Both, side by side.
struct Pair {
    random: Random,
    now: Instant,
    frontier: Frontier,
    model: Model,
    /// Number of each server in the frontier, by its number in the model.
    ids: Vec<ServerId>,
    fates: Vec<Fate>,
    disk: Memory,
    job: Option<QueuesJob>,
    seen: Seen,
}

impl Pair {
    fn new(seed: u64, policy: Policy) -> Self {
        let mut random = Random(seed);
        let ms = |ms| Duration::from_millis(ms);
        let schedule = policy::Settings {
            policy,
            speedup_milli: random.pick(&[1_000, 1_200, 3_000]),
            smoothing_milli: random.pick(&[200, 800]),
            allowance_new: random.pick(&[1, 3, 50]),
            ..policy::Settings::default()
        };
        let scheduler = scheduler::Settings {
            schedule,
            burst: random.pick(&[Burst::Requests(1), Burst::Requests(4), Burst::Server]),
            delay: ms(random.pick(&[0, 700, 1_000])),
            delay_factor_milli: random.pick(&[0, 2_500, 10_000]),
            delay_max: ms(random.pick(&[3_000, 300_000])),
            address_visits_max: random.pick(&[0, 1, 2, 4]),
            address_delay: ms(random.pick(&[0, 0, 400])),
            domain_visits_max: random.pick(&[0, 1, 2, 3]),
            domain_delay: ms(random.pick(&[0, 0, 250, 900])),
            ..scheduler::Settings::default()
        };
        let settings = Settings {
            scheduler,
            urls_max: random.pick(&[60, 100_000]),
            urls_per_server_max: random.pick(&[5, 1_000]),
            memory_bytes: random.pick(&[0, 3_000, 9_000]),
            crawl: random.pick(&[None, Some(7), Some(7)]),
            is_payload,
        };
        let (now, model) = (Instant::from_micros(1), Model::new(settings.clone()));
        let mut pair = Self {
            random,
            now,
            frontier: Frontier::new(settings),
            model,
            ids: Vec::new(),
            fates: Vec::new(),
            disk: Memory::default(),
            job: None,
            seen: Seen::default(),
        };
        let met = if seed > EARLY { FEW } else { MET };
        (0..met).for_each(|_| pair.meet());
        pair
    }

    /// Adds another server, if there are any.
    fn meet(&mut self) {
        if self.ids.len() < SERVERS {
            let url = url(self.ids.len());
            let url = UrlRef::from_canonical(url.as_bytes()).expect("canonical");
            assert_eq!(self.frontier.find(url), None);
            self.model.prices.meet();
            self.ids.push(self.frontier.server_of(url));
            assert_eq!(self.frontier.find(url), self.ids.last().copied());
        }
    }

    /// One thing that the engine may do.
    fn step(&mut self) {
        let server = self.random.below(self.ids.len());
        let busy = self.model.servers[server].visit.is_some();
        match self.random.below(108) {
            0..14 => self.add(server),
            // A few have long queues.
            14..20 => (0..=self.random.below(8)).for_each(|_| self.add(server % 3)),
            20..44 => {
                self.next();
            }
            44..56 if busy => self.take(server),
            56..62 if busy => self.bind(server),
            62..68 if busy => self.begin(server),
            68..80 if busy => self.finish(server),
            80..82 if busy => self.hand_back(server),
            82..85 if !busy => self.snooze(server),
            85..88 => self.rouse(server),
            88..90 => self.ask_for_delay(server),
            90..94 => self.park(server),
            94 if !busy && self.random.one_in(4) => self.retire(server),
            95 if self.random.one_in(8) => self.meet(),
            96..99 => self.reinstate(server),
            99 => self.open_queue(server),
            100..103 => self.work(),
            103..106 => self.write(),
            106 => self.change_price(),
            107 => (0..self.random.below(20)).for_each(|_| _ = self.reprice()),
            _ => self.pass_time(),
        }
    }

    fn change_price(&mut self) {
        let [page_us, connection_us] = [(); 2].map(|()| self.random.pick(&TIMES_US));
        let price = Price { page_us, connection_us };
        self.frontier.set_price(price);
        if self.model.policy() == Policy::Yield {
            self.model.prices.set(price);
        }
    }

    /// Law: servers get a new price in turn, each once.
    fn reprice(&mut self) -> bool {
        let expected = self.model.prices.next();
        assert_eq!(self.frontier.reprice_one(self.now), expected.is_some());
        expected.is_some()
    }

    /// A job is handed out, or comes back, some of it at a time; some of what was given up is
    /// reported.
    fn work(&mut self) {
        if self.frontier.has_read() {
            self.frontier.take_in(self.now).expect("the disk is whole");
            self.seen.parted += u32::from(self.frontier.has_read());
        } else if let Some(job) = self.job.take() {
            self.frontier.worked(job.run()).expect("the disk is whole");
        } else {
            self.job = self.frontier.job(&self.disk);
        }
        let most = self.random.below(40);
        (0..most).for_each(|_| _ = self.given_up());
    }

    /// The next URL of a retired server is reported: it waited there.
    fn given_up(&mut self) -> Option<u32> {
        let mut found = Vec::new();
        let (id, key) = self.frontier.given_up(&mut found)?;
        let server = self.ids.iter().position(|other| *other == id).expect("a known server");
        let known = &mut self.model.servers[server];
        assert!(known.retired);
        let url = model::Url { number: number_of(&found), key };
        let place = known.queue.iter().position(|other| *other == url);
        known.queue.swap_remove(place.expect("it was not reported before"));
        assert_eq!(found, payload(url.number));
        self.fates[url.number as usize] = Fate::Done;
        self.seen.given_up += 1;
        Some(url.number)
    }

    /// What waits is written; sometimes there is no room for it.
    fn write(&mut self) {
        let room = self.disk.used() + self.random.below(800);
        let is_full = self.random.one_in(3);
        self.disk.limit(is_full.then_some(room), self.random.one_in(2));
        let all = self.random.one_in(2);
        self.seen.failures += u32::from(self.frontier.write(all, &mut self.disk).is_err());
        self.disk.limit(None, false);
    }

    /// The frontier is believed where its URLs are.
    fn look(&mut self) {
        for (id, known) in self.ids.iter().zip(&mut self.model.servers) {
            let keys = self.frontier.queues.keys_in_memory(id.0);
            known.memory = keys.iter().map(|key| key.arrival).collect();
            assert_eq!(known.memory.len(), keys.len(), "each URL is in memory once");
            known.counted = self.frontier.queues.counted(id.0) as u64;
        }
    }

    fn pass_time(&mut self) {
        let us = |us| Duration::from_micros(us);
        let deadline = self.frontier.deadline().unwrap_or(self.now).max(self.now);
        self.now = match self.random.below(4) {
            0 => self.now + time(&mut self.random, 4_000),
            1 => self.now + time(&mut self.random, 50),
            2 => self.now + deadline.since(self.now).saturating_sub(us(1)),
            _ => deadline,
        };
    }

    fn add(&mut self, server: usize) {
        let number = u32::try_from(self.fates.len()).expect("few URLs");
        let is_first = self.random.one_in(8);
        // Few values, so that many are equal.
        let quality = if is_first { 0 } else { self.random.pick(&[0, 1, 10, 11, 500, 3_000_000]) };
        let quality = Quality::from_millionths(quality);
        let full = self.model.urls() >= self.model.settings.urls_max
            || self.model.servers[server].queue.len() >= self.model.settings.urls_per_server_max;
        let (id, bytes) = (self.ids[server], payload(number));
        let added = self.frontier.add_to(id, is_first, quality, &bytes, self.now);
        if self.model.servers[server].retired {
            assert_eq!(added, Added::Retired(Retirement::Failures));
        } else if full && !is_first {
            assert_eq!(added, Added::Full);
        } else {
            assert_eq!(added, Added::Queued);
            let key = self.model.key(is_first, quality);
            let known = &mut self.model.servers[server];
            known.queue.push(model::Url { number, key });
            if known.place == Place::Nowhere && known.visit.is_none() {
                self.model.settle(server, self.now);
            }
            self.fates.push(Fate::Waits);
        }
    }

    /// Laws: whoever is handed out may be visited, and has the best rank of all who may; if
    /// anyone may be, one is.
    fn next(&mut self) -> Option<usize> {
        self.look();
        let expected = self.model.best(self.now);
        let Some(id) = self.frontier.next(self.now) else {
            assert_eq!(expected, None, "someone may be visited");
            assert_eq!(self.frontier.ready(), 0, "whoever can't be visited stands aside");
            let deadline = self.frontier.deadline();
            assert!(deadline.is_none_or(|at| at > self.now), "no wake-up for nothing");
            let reading =
                self.ids.iter().filter(|id| self.state(**id) == ServerState::Reading).count();
            assert_eq!(self.frontier.snoozed() + reading, self.model.waiting());
            return None;
        };
        let server = self.ids.iter().position(|other| *other == id).expect("a known server");
        assert_eq!(Some(server), expected, "the best goes first");
        let known = &mut self.model.servers[server];
        assert_eq!(known.place, Place::Ready);
        known.place = Place::Nowhere;
        let (began, address) = (self.now, known.address);
        known.visit = Some(Turn { began, counts: true, address, taken: Vec::new() });
        Some(server)
    }

    fn state(&self, id: ServerId) -> ServerState {
        self.frontier.server(id).state()
    }

    /// Its queue is opened outside a visit, whatever rest it owes.
    fn open_queue(&mut self, server: usize) {
        let known = &self.model.servers[server];
        let may = known.visit.is_none() && !known.retired;
        assert_eq!(self.frontier.open_queue(self.ids[server], self.now), may);
        self.model.rise(self.now);
        if may {
            let known = &mut self.model.servers[server];
            known.place = Place::Nowhere;
            let (began, address) = (self.now, None);
            known.visit = Some(Turn { began, counts: false, address, taken: Vec::new() });
        }
    }

    /// Laws: URLs come in order, and none before one of a better band, wherever that is; they are
    /// what was queued.
    fn take(&mut self, server: usize) {
        self.look();
        let (id, policy) = (self.ids[server], self.model.policy());
        let known = &mut self.model.servers[server];
        let expected = known.next_url(policy);
        assert_eq!(self.frontier.has_next(id), expected.is_some());
        assert_eq!(self.frontier.next_key(id), expected.map(|url| url.key));
        let taken = &mut known.visit.as_mut().expect("it is visited").taken;
        for url in taken.iter() {
            let is_better = expected.is_some_and(|next| next.order(policy) < url.order(policy));
            assert_eq!(self.frontier.has_better(id, url.key), is_better);
        }
        let mut found = b"before".to_vec();
        let key = self.frontier.take(id, &mut found);
        assert_eq!(key, expected.map(|url| url.key));
        let Some(url) = expected else { return assert_eq!(found, b"before") };
        assert_eq!(found, [b"before", &payload(url.number)[..]].concat());
        taken.push(url);
        known.queue.retain(|other| *other != url);
        let fate = std::mem::replace(&mut self.fates[url.number as usize], Fate::Taken);
        assert_eq!(fate, Fate::Waits, "{url:?} is handed out once");
    }

    fn is_counted(&self, server: usize) -> bool {
        self.model.servers[server].visit.as_ref().is_some_and(|turn| turn.counts)
    }

    fn bind(&mut self, server: usize) {
        if !self.is_counted(server) {
            return;
        }
        let usual = server % ADDRESSES;
        let number = if self.random.one_in(4) { self.random.below(ADDRESSES) } else { usual };
        let (id, address) = (self.ids[server], address(number));
        let turn = self.model.servers[server].visit.as_mut().expect("a visit is under way");
        let same = turn.address == Some(address);
        turn.address = None;
        let group = Group::Address(address);
        let admits = same || (self.model.has_room(group) && self.model.clock(group) <= self.now);
        assert_eq!(self.frontier.bind(id, address, self.now), admits, "{server} at {address}");
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
        let begins = self.frontier.begin(self.ids[server], is_first, self.now);
        assert_eq!(begins, admits, "{server}");
        if begins {
            for group in groups {
                self.model.rest(group, self.now + self.model.delay(group));
            }
        } else {
            self.hand_back(server);
        }
    }

    /// The URLs taken are done, given back, or put off.
    fn settle(&mut self, server: usize) {
        let id = self.ids[server];
        let turn = self.model.servers[server].visit.as_mut().expect("a visit is under way");
        for url in std::mem::take(&mut turn.taken).into_iter().rev() {
            let fate = &mut self.fates[url.number as usize];
            assert_eq!(*fate, Fate::Taken);
            *fate = Fate::Waits;
            let (bytes, model::Url { number, key }) = (payload(url.number), url);
            match self.random.below(6) {
                0 => {
                    self.model.servers[server].queue.push(url);
                    self.frontier.give_back(id, key, &bytes);
                }
                1 => {
                    self.frontier.put_off(id, key.is_first, key.quality, &bytes);
                    let key = self.model.key(key.is_first, key.quality);
                    self.model.servers[server].queue.push(model::Url { number, key });
                }
                _ => *fate = Fate::Done,
            }
        }
    }

    /// Law: the rest is what the settings say.
    fn finish(&mut self, server: usize) {
        if !self.is_counted(server) {
            return self.hand_back(server);
        }
        self.settle(server);
        let turn = self.model.servers[server].visit.clone().expect("a visit is under way");
        let spent = self.random.pick(&[0, 1, 3]);
        let late_us = self.random.pick(&[0, 0, 40_000]);
        let ended = Instant::from_micros(self.now.as_micros().saturating_sub(late_us));
        let ended = ended.max(turn.began);
        let not_before = match self.random.below(5) {
            0 => self.now + time(&mut self.random, 8_000),
            _ => Instant::ZERO,
        };
        let owed = ended + self.model.rest_owed(server, spent, ended.since(turn.began));
        let due = owed.max(not_before);
        let strained = self.random.one_in(2);
        let visit = Visit {
            not_before,
            strained,
            connect_time: (self.random.one_in(2)).then(|| time(&mut self.random, 300)),
            replies: self.random.below(4),
            response_time: time(&mut self.random, 900),
            allowance: self.random.pick(&[0, 1, 2, 10, 100]),
            ..Visit::new(spent, turn.began, ended)
        };
        let found = self.frontier.finish(self.ids[server], &visit, self.now);
        assert_eq!(found, due, "the rest owed by {server}");

        for group in self.model.groups(server, turn.address) {
            let own = ended + self.model.delay(group);
            let is_host = matches!(group, Group::Host(..));
            let next = if is_host { own.max(if strained { due } else { owed }) } else { own };
            self.model.rest(group, next);
        }
        self.model.learn(server, &visit);
        let known = &mut self.model.servers[server];
        (known.due, known.visit) = (due, None);
        self.model.settle(server, self.now);
    }

    fn hand_back(&mut self, server: usize) {
        self.settle(server);
        self.frontier.hand_back(self.ids[server], self.now);
        self.model.hand_back(server, self.now);
    }

    fn snooze(&mut self, server: usize) {
        let until = self.now + time(&mut self.random, 6_000);
        self.frontier.snooze(self.ids[server], until, self.now);
        let due = self.model.servers[server].due.max(until);
        self.model.set_due(server, due, self.now);
    }

    fn rouse(&mut self, server: usize) {
        let due = self.now + time(&mut self.random, 2_000);
        let due = if self.random.one_in(2) { Instant::ZERO } else { due };
        self.frontier.rouse(self.ids[server], due, self.now);
        self.model.set_due(server, due, self.now);
    }

    fn park(&mut self, server: usize) {
        let parked = self.random.one_in(2);
        self.frontier.set_parked(self.ids[server], parked, self.now);
        self.model.servers[server].parked = parked;
        self.call(server);
    }

    fn ask_for_delay(&mut self, server: usize) {
        let delay = Some(time(&mut self.random, 3_000)).filter(|_| self.random.below(3) > 0);
        self.frontier.set_crawl_delay(self.ids[server], delay, self.now);
        // Whole milliseconds are kept, rounded up.
        let ms = delay.map(|delay| delay.as_micros().div_ceil(1_000) as u64);
        self.model.servers[server].crawl_delay = ms.map(Duration::from_millis);
    }

    /// Law: what a server still had comes out, in order if all of it is in memory.
    fn retire(&mut self, server: usize) {
        if self.model.servers[server].retired {
            return;
        }
        self.look();
        while self.given_up().is_some() {}
        self.frontier.retire(self.ids[server], Retirement::Failures, self.now);
        let policy = self.model.policy();
        let known = &mut self.model.servers[server];
        (known.place, known.retired) = (Place::Nowhere, true);
        let expected = known.in_order(policy);
        if expected.len() == known.queue.len() {
            let expected: Vec<u32> = expected.iter().map(|url| url.number).collect();
            let found = expected.iter().map_while(|_| self.given_up());
            assert_eq!(found.collect::<Vec<u32>>(), expected);
            if self.random.one_in(2) {
                self.reinstate(server);
            }
        }
    }

    /// A server that was given up gets another chance.
    fn reinstate(&mut self, server: usize) {
        let known = &mut self.model.servers[server];
        if known.retired && known.queue.is_empty() {
            self.frontier.reinstate(self.ids[server]);
            (known.retired, known.is_called) = (false, false);
        }
    }

    /// Nothing is added any more: then all URLs come out, each once.
    fn drain(&mut self) {
        for server in 0..self.ids.len() {
            if self.model.servers[server].visit.is_some() {
                self.finish(server);
            }
        }
        for _ in 0..100_000 {
            if let Some(server) = self.next() {
                self.take(server);
                self.finish(server);
            } else if let Some(deadline) = self.frontier.deadline() {
                self.now = deadline;
            } else if self.frontier.urls() == 0 {
                break;
            }
            // So that more than one server waits for a job.
            if self.random.one_in(4) {
                self.work();
            }
            self.check();
        }
        self.seen.queues += queues::tests::seen::take();
        assert_eq!(self.frontier.urls(), 0, "all servers are visited in the end");
        assert!(self.fates.iter().all(|fate| *fate == Fate::Done), "no URL is lost");
        self.frontier.queues.check_empty();
    }
}

fn agrees_with_the_naive_model(policy: Policy) {
    let mut seen = Seen::default();
    for seed in 1..=seeds(EARLY + 40) {
        seen += history(seed, policy);
    }
    seen.assert_enough(policy);
}

fn history(seed: u64, policy: Policy) -> Seen {
    // Shown if the test fails: the last one is the history that did.
    println!("the history of seed {seed}, {policy:?}");
    let mut pair = Pair::new(seed, policy);
    for step in 0..900 {
        if seed > EARLY && step % 40 == 0 {
            pair.meet();
        }
        pair.step();
        pair.check();
    }
    pair.drain();
    pair.seen
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
fn yield_agrees_with_the_naive_model() {
    agrees_with_the_naive_model(Policy::Yield);
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

/// The model notices each fault, in a few histories at most.
#[test]
fn faults_are_noticed() {
    let all = [
        (Sabotage::UrlsDropped, Policy::Bfs),
        (Sabotage::RankInverted, Policy::Performance),
        (Sabotage::RanksStale, Policy::Capability),
        (Sabotage::DelayIgnored, Policy::Quality),
    ];
    for (fault, policy) in all {
        sabotage::commit(Some(fault));
        let fails = |seed| catch_unwind(AssertUnwindSafe(|| history(seed, policy))).is_err();
        let noticed = (1..=10).any(fails);
        sabotage::commit(None);
        assert!(noticed, "{fault:?} by {policy:?}");
    }
}

#[test]
fn an_empty_queue_is_small() {
    assert_eq!(Queues::QUEUE_BYTES, 48);
}
