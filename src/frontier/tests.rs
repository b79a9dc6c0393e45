//! The frontier against a naive model that keeps no line, no timer and no count: whatever it is
//! asked, it finds by looking at all servers.

use super::*;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const SERVERS: usize = 30;
const DOMAINS: usize = 8;
const ADDRESSES: usize = 5;

/// What shares a clock and a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Host(usize, &'static str),
    Domain(usize),
    Address(IpAddr),
}

/// One server of the model.
#[derive(Clone, Debug, Default)]
struct Known {
    queue: VecDeque<u32>,
    due: Instant,
    crawl_delay: Option<Duration>,
    address: Option<IpAddr>,
    visit: Option<Turn>,
    retired: bool,
}

/// A visit under way.
#[derive(Clone, Debug)]
struct Turn {
    began: Instant,
    /// The address group that counts it.
    address: Option<IpAddr>,
    /// URLs taken and not settled, in order.
    taken: Vec<u32>,
}

#[derive(Debug)]
struct Model {
    settings: Settings,
    servers: Vec<Known>,
    /// Clocks of groups that have been visited.
    next: BTreeMap<Group, Instant>,
}

impl Model {
    fn urls(&self) -> usize {
        self.servers.iter().map(|server| server.queue.len()).sum()
    }

    fn groups(
        &self,
        server: usize,
        address: Option<IpAddr>,
    ) -> impl Iterator<Item = Group> + use<> {
        let (host, domain) = (Group::Host(server % DOMAINS, prefix(server)), server % DOMAINS);
        [host, Group::Domain(domain)].into_iter().chain(address.map(Group::Address))
    }

    fn cap(&self, group: Group) -> usize {
        let cap = match group {
            Group::Host(..) => 1,
            Group::Domain(_) => self.settings.domain_visits_max,
            Group::Address(_) => self.settings.address_visits_max,
        };
        if cap == 0 { usize::MAX } else { cap as usize }
    }

    fn delay(&self, group: Group) -> Duration {
        match group {
            Group::Host(..) => Duration::ZERO,
            Group::Domain(_) => self.settings.domain_delay,
            Group::Address(_) => self.settings.address_delay,
        }
    }

    fn active(&self, group: Group) -> usize {
        let counts = |(number, server): (usize, &Known)| {
            let turn = server.visit.as_ref()?;
            self.groups(number, turn.address).find(|other| *other == group)
        };
        self.servers.iter().enumerate().filter_map(counts).count()
    }

    fn has_room(&self, group: Group) -> bool {
        self.active(group) < self.cap(group)
    }

    fn clock(&self, group: Group) -> Instant {
        self.next.get(&group).copied().unwrap_or(Instant::ZERO)
    }

    /// When a server may be visited if nothing else happens; `None` if something else must.
    fn possible(&self, server: usize) -> Option<Instant> {
        let known = &self.servers[server];
        if known.queue.is_empty() || known.visit.is_some() || known.retired {
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
    fn soonest(&self) -> Option<Instant> {
        (0..self.servers.len()).filter_map(|server| self.possible(server)).min()
    }

    fn waiting(&self) -> usize {
        let waits =
            |known: &&Known| !known.queue.is_empty() && known.visit.is_none() && !known.retired;
        self.servers.iter().filter(waits).count()
    }

    /// The rest owed, in the words of the settings.
    fn rest(&self, server: usize, requests: u32, visit: Duration) -> Duration {
        let count = u128::from(requests.max(1));
        let factor = u128::from(self.settings.delay_factor_milli);
        let own = (count * self.settings.delay.as_micros()).max(visit.as_micros() * factor / 1_000);
        let asked = self.servers[server].crawl_delay.unwrap_or_default();
        let rest = own.min(self.settings.delay_max.as_micros()).max(count * asked.as_micros());
        Duration::from_micros(u64::try_from(rest).expect("the cases are small"))
    }
}

fn prefix(server: usize) -> &'static str {
    // The first two differ in their scheme only, so that they share a host.
    ["www", "www", "img", "api"][server / DOMAINS]
}

fn url(server: usize, item: u32) -> String {
    let scheme = if server / DOMAINS == 1 { "https" } else { "http" };
    let port = if server / DOMAINS == 3 { ":8080" } else { "" };
    format!("{scheme}://{}.d{}.com{port}/{item}", prefix(server), server % DOMAINS)
}

fn address(number: usize) -> IpAddr {
    IpAddr::from([192, 0, 2, u8::try_from(number).expect("few addresses")])
}

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
    retired: usize,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let ms = |ms| Duration::from_millis(ms);
        let settings = Settings {
            delay: ms(random.pick([0, 700, 1_000])),
            delay_factor_milli: random.pick([0, 2_500, 10_000]),
            delay_max: ms(random.pick([3_000, 300_000])),
            address_visits_max: random.pick([0, 1, 2, 4]),
            address_delay: ms(random.pick([0, 0, 400])),
            domain_visits_max: random.pick([0, 1, 2, 3]),
            domain_delay: ms(random.pick([0, 0, 250, 900])),
            urls_max: random.pick([60, 100_000]),
            urls_per_server_max: random.pick([5, 1_000]),
            ..Settings::default()
        };
        let mut frontier = Frontier::new(settings.clone());
        let id_of = |server| {
            let url = url(server, 0);
            frontier.server_of(UrlRef::from_canonical(url.as_bytes()).expect("canonical"))
        };
        let ids = (0..SERVERS).map(id_of).collect();
        let servers = vec![Known::default(); SERVERS];
        let model = Model { settings, servers, next: BTreeMap::new() };
        let (now, fates) = (Instant::from_micros(1), Vec::new());
        Self { random, now, frontier, model, ids, fates, retired: 0 }
    }

    /// One thing that the engine may do.
    fn step(&mut self) {
        let server = self.random.below(SERVERS);
        let busy = self.model.servers[server].visit.is_some();
        match self.random.below(100) {
            0..20 => self.add(server),
            20..44 => {
                self.next();
            }
            44..56 if busy => self.take(server),
            56..64 if busy => self.bind(server),
            64..80 if busy => self.finish(server),
            80..82 if busy => self.hand_back(server),
            82..85 if !busy => self.snooze(server),
            85..88 => self.rouse(server),
            88..90 => self.ask_for_delay(server),
            90 if !busy && self.random.below(4) == 0 => self.retire(server),
            _ => self.pass_time(),
        }
    }

    fn pass_time(&mut self) {
        let us = |us| Duration::from_micros(us);
        let deadline = self.frontier.deadline().unwrap_or(self.now).max(self.now);
        self.now = match self.random.below(4) {
            0 => self.now + self.random.time(4_000),
            1 => self.now + self.random.time(50),
            2 => self.now + deadline.since(self.now).saturating_sub(us(1)),
            _ => deadline,
        };
    }

    fn add(&mut self, server: usize) {
        let number = u32::try_from(self.fates.len()).expect("few URLs");
        let prior = self.random.below(8) == 0;
        let item = item(number, prior.then_some(self.ids[server]));
        let full = self.model.urls() >= self.model.settings.urls_max
            || self.model.servers[server].queue.len() >= self.model.settings.urls_per_server_max;
        let url = url(server, number);
        let url = UrlRef::from_canonical(url.as_bytes()).expect("canonical");
        let added = self.frontier.add(url, item, self.now);
        let (id, known) = (self.ids[server], &mut self.model.servers[server]);
        if known.retired {
            assert!(matches!(added, Added::Retired(of, ..) if of == id), "{added:?}");
        } else if full && !prior {
            assert!(matches!(added, Added::Full(of, _) if of == id), "{added:?}");
        } else {
            assert_eq!(added, Added::Queued(id));
            if prior {
                known.queue.push_front(number);
            } else {
                known.queue.push_back(number);
            }
            self.fates.push(Fate::Waits);
        }
    }

    /// Laws: whoever is handed out may be visited; and if anyone may be, one is.
    fn next(&mut self) -> Option<usize> {
        let Some(id) = self.frontier.next(self.now) else {
            let soonest = self.model.soonest();
            assert!(soonest.is_none_or(|at| at > self.now), "someone may be visited");
            assert!(!self.frontier.has_ready(), "whoever can't be visited stands aside");
            let deadline = self.frontier.deadline();
            assert!(deadline.is_none_or(|at| at > self.now), "no wake-up for nothing");
            let (snoozed, waiting) = (self.frontier.snoozed(), self.model.waiting());
            assert!((waiting..=waiting + self.retired).contains(&snoozed), "{snoozed} {waiting}");
            return None;
        };
        let server = self.ids.iter().position(|other| *other == id).expect("a known server");
        let possible = self.model.possible(server);
        assert!(possible.is_some_and(|at| at <= self.now), "{server} may not be visited");
        let known = &mut self.model.servers[server];
        known.visit = Some(Turn { began: self.now, address: known.address, taken: Vec::new() });
        Some(server)
    }

    /// Law: URLs come in order.
    fn take(&mut self, server: usize) {
        let id = self.ids[server];
        let known = &mut self.model.servers[server];
        let expected = known.queue.pop_front();
        assert_eq!(self.frontier.peek(id).map(number_of), expected);
        let taken = self.frontier.take(id);
        assert_eq!(taken.as_ref().map(number_of), expected);
        if let (Some(number), Some(turn)) = (expected, &mut known.visit) {
            turn.taken.push(number);
            let fate = std::mem::replace(&mut self.fates[number as usize], Fate::Taken);
            assert_eq!(fate, Fate::Waits, "{number} is handed out once");
        }
    }

    fn bind(&mut self, server: usize) {
        let usual = server % ADDRESSES;
        let number = if self.random.below(4) == 0 { self.random.below(ADDRESSES) } else { usual };
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

    /// The URLs taken are done, given back in order, or put off.
    fn settle(&mut self, server: usize) {
        let id = self.ids[server];
        let known = &mut self.model.servers[server];
        let turn = known.visit.as_mut().expect("a visit is under way");
        for number in std::mem::take(&mut turn.taken).into_iter().rev() {
            let fate = &mut self.fates[number as usize];
            assert_eq!(*fate, Fate::Taken);
            *fate = Fate::Waits;
            match self.random.below(6) {
                0 => {
                    known.queue.push_front(number);
                    self.frontier.give_back(id, item(number, None));
                }
                1 => {
                    known.queue.push_back(number);
                    self.frontier.put_off(id, item(number, None));
                }
                _ => *fate = Fate::Done,
            }
        }
    }

    /// Law: the rest is what the settings say.
    fn finish(&mut self, server: usize) {
        self.settle(server);
        let turn = self.model.servers[server].visit.clone().expect("a visit is under way");
        let spent = self.random.pick([0, 1, 3]);
        let late_us = self.random.pick([0, 0, 40_000]);
        let ended = Instant::from_micros(self.now.as_micros().saturating_sub(late_us));
        let ended = ended.max(turn.began);
        let not_before = match self.random.below(5) {
            0 => self.now + self.random.time(8_000),
            _ => Instant::ZERO,
        };
        let rest = self.model.rest(server, spent, ended.since(turn.began));
        let due = (ended + rest).max(not_before);
        let strained = self.random.below(2) == 0;
        let visit = Visit { requests: spent, began: turn.began, ended, not_before, strained };
        let found = self.frontier.finish(self.ids[server], &visit, self.now);
        assert_eq!(found, due, "the rest owed by {server}");

        for group in self.model.groups(server, turn.address) {
            let mut next = ended + self.model.delay(group);
            if matches!(group, Group::Host(..)) {
                next = next.max(if strained { due } else { ended + rest });
            }
            let clock = self.model.next.entry(group).or_default();
            *clock = next.max(*clock);
        }
        let known = &mut self.model.servers[server];
        (known.due, known.visit) = (due, None);
    }

    fn hand_back(&mut self, server: usize) {
        self.settle(server);
        self.frontier.hand_back(self.ids[server], self.now);
        self.model.servers[server].visit = None;
    }

    fn snooze(&mut self, server: usize) {
        let until = self.now + self.random.time(6_000);
        self.frontier.snooze(self.ids[server], until, self.now);
        let known = &mut self.model.servers[server];
        known.due = known.due.max(until);
    }

    fn rouse(&mut self, server: usize) {
        let due = self.now + self.random.time(2_000);
        let due = if self.random.below(2) == 0 { Instant::ZERO } else { due };
        self.frontier.rouse(self.ids[server], due, self.now);
        self.model.servers[server].due = due;
    }

    fn ask_for_delay(&mut self, server: usize) {
        let delay = Some(self.random.time(3_000)).filter(|_| self.random.below(3) > 0);
        self.frontier.set_crawl_delay(self.ids[server], delay);
        self.model.servers[server].crawl_delay = delay;
    }

    /// Law: what a server still had comes out, in order.
    fn retire(&mut self, server: usize) {
        if self.model.servers[server].retired {
            return;
        }
        let items = self.frontier.retire(self.ids[server], Retirement::Failures);
        let known = &mut self.model.servers[server];
        let expected: Vec<u32> = known.queue.drain(..).collect();
        assert_eq!(items.iter().map(number_of).collect::<Vec<_>>(), expected);
        expected.iter().for_each(|number| self.fates[*number as usize] = Fate::Done);
        known.retired = true;
        self.retired += 1;
    }

    /// Laws: nothing is lost; states are what they say; and no wake-up comes too late.
    fn check(&self) {
        assert_eq!(self.frontier.urls(), self.model.urls());
        for (id, known) in self.ids.iter().zip(&self.model.servers) {
            let server = self.frontier.server(*id);
            assert_eq!(server.queue.len(), known.queue.len());
            let fits = match server.state {
                ServerState::Idle => known.visit.is_none() && known.queue.is_empty(),
                ServerState::Ready => known.visit.is_none() && !known.queue.is_empty(),
                ServerState::Snoozed(until) => {
                    known.visit.is_none() && !known.queue.is_empty() && until == known.due
                }
                ServerState::Busy => known.visit.is_some(),
                ServerState::Retired(_) => known.retired,
            };
            assert!(fits, "{:?} {known:?}", server.state);
        }
        if let Some(at) = self.model.soonest()
            && !self.frontier.has_ready()
        {
            let deadline = self.frontier.deadline();
            assert!(deadline.is_some_and(|nearest| nearest <= at.max(self.now)), "{deadline:?}");
        }
    }

    /// Nothing is added any more: then all URLs come out, each once.
    fn drain(&mut self) {
        for server in 0..SERVERS {
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
            } else {
                break;
            }
            self.check();
        }
        assert_eq!(self.frontier.urls(), 0, "all servers are visited in the end");
        assert!(self.fates.iter().all(|fate| *fate == Fate::Done), "no URL is lost");
    }
}

fn item(number: u32, robots_of: Option<ServerId>) -> Item {
    Item {
        target: format!("/{number}").into(),
        depth: 0,
        hops: 0,
        tries: 0,
        errand: robots_of.map_or(Errand::Page, |of| Errand::Robots(of, 0)),
        found_as: b'L',
        via: None,
    }
}

fn number_of(item: &Item) -> u32 {
    item.target[1..].parse().expect("targets are numbers")
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

#[test]
fn agrees_with_the_naive_model() {
    for seed in 1..=400 {
        // Shown if the test fails: the last one is the history that did.
        println!("the history of seed {seed}");
        let mut pair = Pair::new(seed);
        for _ in 0..900 {
            pair.step();
            pair.check();
        }
        pair.drain();
    }
}
