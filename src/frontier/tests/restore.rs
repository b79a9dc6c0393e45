//! A frontier written down in the middle of its history and made again: it is the model as that
//! was at the moment, and goes on like it.

use super::super::runs::GONE;
use super::super::snapshot::{MORE, TAIL};
use super::*;
use crate::codec::Take;
use crate::frame::{self, Flaw, Frame};
use crate::time::{Now, UnixTime};

/// A frame, owned.
type Owned = (u8, Vec<u8>);

/// What a history left: the frontier as it was written down, and the model as it was then.
struct Left {
    settings: Settings,
    state: Vec<u8>,
    frames: Vec<Owned>,
    model: Model,
    fates: Vec<Fate>,
    ids: Vec<ServerId>,
    began: Now,
    disk: Memory,
}

/// The calendar beside the monotonic clock, so many microseconds ahead of it.
fn calendar(at: Instant, ahead_us: u64) -> Now {
    Now { at, unix: UnixTime::from_micros(ahead_us + at.as_micros()) }
}

const AHEAD_US: u64 = 1 << 50;

impl Pair {
    /// Writes the state down, in small pieces between which the history goes on.
    fn write_down(&mut self) -> Left {
        let began = calendar(self.now, AHEAD_US);
        let mut flights = Vec::new();
        for (id, known) in self.ids.iter().zip(&self.model.servers) {
            let under_way = known.visit.iter().flat_map(|turn| &turn.taken);
            flights.extend(under_way.map(|url| (*id, self.taken[&url.number].clone())));
        }
        self.frontier.begin_snapshot(flights, began);
        // The frontier has woken those that were due.
        self.model.rise(self.now);
        let (model, fates, ids) = (self.model.clone(), self.fates.clone(), self.ids.clone());
        let mark = loop {
            let room = self.disk.used() + self.random.below(800) as u64;
            let is_full = self.random.below(2) == 0;
            self.disk.limit(is_full.then_some(room), self.random.below(2) == 0);
            let marked = self.frontier.mark(&mut self.disk);
            self.disk.limit(None, false);
            if let Ok(mark) = marked {
                break mark;
            }
        };
        for (name, bytes) in &mark.files {
            self.disk.sync(name).expect("it is there");
            assert!(self.disk.len(name).expect("as above") >= Some(*bytes));
        }
        let state = mark.state;
        let mut bytes = Vec::new();
        loop {
            for _ in 0..self.random.below(8) {
                self.step();
                self.check();
            }
            assert!(self.frontier.is_snapshotting());
            let before = bytes.len();
            let budget = self.random.below(400);
            let is_done = self.frontier.snapshot_some(budget, &mut bytes);
            if is_done {
                break;
            }
            assert!(bytes.len() - before >= budget, "it makes headway");
        }
        assert!(!self.frontier.is_snapshotting());
        for name in self.frontier.settled() {
            assert!(mark.files.iter().all(|(needed, _)| *needed != name), "{name} is needed");
            self.disk.remove(&name).expect("it is there");
        }
        let (settings, disk) = (self.model.settings.clone(), self.disk.clone());
        Left { settings, state, frames: frames_of(&bytes), model, fates, ids, began, disk }
    }

    /// Makes a frontier of what is left, and goes on with it.
    fn take_up(mut self, left: Left) -> Self {
        let was_clean = self.random.below(2) == 0;
        let passed_us = self.random.pick([0, 3_000, 700_000, 5_000_000, 1 << 45]);
        let jump_us = if self.random.below(3) == 0 { 20_000_000 } else { 0 };
        let at = Instant::from_micros(self.random.below(1_000) as u64);
        let unix = left.began.unix.as_micros() + passed_us - jump_us;
        let now = Now { at, unix: UnixTime::from_micros(unix) };
        self.disk.lose_power(|bytes| self.random.below(bytes as usize + 1) as u64);
        let mut frontier =
            Frontier::restore(left.settings, &left.state, &mut self.disk).expect("just written");
        for (kind, payload) in shuffled(left.frames, &mut self.random) {
            let frame = Frame { kind, payload: &payload, offset: 0 };
            let id = frontier.restore_frame(&frame).expect("just written");
            let url = url(id.index(), 0);
            assert!(url.starts_with(frontier.origin(id).as_str()), "a server is known at once");
        }
        frontier.restored(was_clean, now).expect("all frames are there");
        assert_eq!(frontier.servers(), left.ids.len());

        (self.frontier, self.model, self.now) = (frontier, left.model, now.at);
        (self.fates, self.ids) = (left.fates, left.ids);
        self.taken.clear();
        self.job = None;
        self.model.take_up(left.began, now, was_clean, self.ids.len());
        for (number, fate) in (0..).zip(&mut self.fates) {
            let waits = self.model.servers.iter().any(|known| known.waits_with(number));
            *fate = if waits { Fate::Waits } else { Fate::Done };
        }
        self
    }

    /// Every queue, URL by URL with all its fields as far as it is in memory, and every wait.
    fn check_all(&mut self) {
        self.look();
        for (number, (id, known)) in self.ids.iter().zip(&self.model.servers).enumerate() {
            let server = self.frontier.server(*id);
            let mut found = self.frontier.in_memory(server);
            let policy = self.model.settings.schedule.policy;
            server.queue.sort(&mut found);
            for (url, found) in known.in_order(policy).iter().zip(&found) {
                let expected = made(url, self.errand(number, url.number));
                assert_eq!(Item { arrival: 0, ..found.clone() }, expected);
            }
            assert_eq!(server.queue.len(), known.queue.len());
            assert!(server.queue.cold().is_some() || found.len() == known.queue.len());
            let left = |due: Instant| due.since(self.now);
            assert_eq!(left(server.due), left(known.due), "{server:?}");
            assert_eq!(server.crawl_delay(), known.crawl_delay);
        }
    }
}

impl model::Known {
    fn waits_with(&self, number: u32) -> bool {
        self.queue.iter().any(|url| url.number == number)
    }
}

impl Model {
    /// What is left of it when a crawl that was written down at `began` is taken up again: nobody
    /// is visited, URLs that were under way wait before all others, waits go on by the calendar
    /// and never grow, and nothing is known of addresses. After an unclean stop everybody waits
    /// the full rest.
    fn take_up(&mut self, began: Now, now: Now, was_clean: bool, known: usize) {
        let passed = now.unix.as_micros().saturating_sub(began.unix.as_micros());
        let passed = Duration::from_micros(passed);
        let end = |until: Instant| now.at + until.since(began.at).saturating_sub(passed);
        let mut order = Vec::new();
        for (number, server) in self.servers.iter_mut().enumerate() {
            let mut place = std::mem::replace(&mut server.place, Place::Nowhere);
            if let Some(turn) = server.visit.take() {
                place = Place::InLine(turn.arrival);
                let of_others = |url: &model::Url| !url.prior || !is_own(url.number);
                let under_way = turn.taken.into_iter().filter(of_others);
                server.queue = under_way.chain(std::mem::take(&mut server.queue)).collect();
            }
            order.push(match place {
                Place::InLine(event) if server.due <= began.at => (false, event, number),
                _ => (true, server.due.as_micros(), number),
            });
            (server.parked, server.address, server.due) = (false, None, end(server.due));
        }
        self.next.retain(|group, _| matches!(group, Group::Host(..)));
        self.next.values_mut().for_each(|next| *next = end(*next));
        for number in 0..self.servers.len() {
            self.next.insert(Group::Domain(number % DOMAINS), now.at + self.settings.domain_delay);
            if was_clean {
                continue;
            }
            let server = &mut self.servers[number];
            server.due = server.due.max(now.at + self.settings.full_rest(server.crawl_delay));
            if number < known {
                let due = now.at + self.settings.full_rest(server.crawl_delay);
                let clock = self.next.entry(Group::Host(number % DOMAINS, prefix(number)));
                let clock = clock.or_default();
                *clock = due.max(*clock);
            }
        }
        for number in 0..ADDRESSES {
            self.next.insert(Group::Address(address(number)), now.at + self.settings.address_delay);
        }
        order.sort_unstable();
        order.into_iter().for_each(|(_, _, number)| self.settle_down(number, now.at));
    }
}

fn frames_of(mut bytes: &[u8]) -> Vec<Owned> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (frame, used) = frame::parse(bytes, 0).expect("just written");
        frames.push((frame.kind, frame.payload.to_vec()));
        bytes = &bytes[used..];
    }
    frames
}

/// In another order, but for that within a server.
fn shuffled(mut frames: Vec<Owned>, random: &mut Random) -> Vec<Owned> {
    let of = |frame: &Owned| Take::new(&frame.1).varint().expect("a number");
    let keys: Vec<usize> = (0..SERVERS).map(|_| random.below(5)).collect();
    frames.sort_by_key(|frame| keys[of(frame) as usize]);
    frames
}

fn comes_back(policy: Policy) {
    for seed in 1..=30 {
        println!("the history of seed {seed}, {policy:?}");
        let mut pair = Pair::new(seed, policy);
        for _ in 0..3 {
            for _ in 0..pair.random.below(400) {
                pair.step();
            }
            let left = pair.write_down();
            // This is lost.
            for _ in 0..pair.random.below(100) {
                pair.step();
            }
            pair = pair.take_up(left);
            pair.check_all();
            pair.check();
            for _ in 0..200 {
                pair.step();
                pair.check();
            }
        }
        pair.drain();
    }
}

#[test]
fn breadth_first_it_comes_back_as_it_was() {
    comes_back(Policy::Bfs);
}

#[test]
fn by_performance_it_comes_back_as_it_was() {
    comes_back(Policy::Performance);
}

#[test]
fn by_quality_it_comes_back_as_it_was() {
    comes_back(Policy::Quality);
}

#[test]
fn by_capability_it_comes_back_as_it_was() {
    comes_back(Policy::Capability);
}

/// A URL whose texts have more or less in common with those of others.
fn long(number: u32, random: &mut Random) -> Item {
    let some = |random: &mut Random| "x".repeat(random.pick([0, 3, 30, 300]));
    let page = random.below(3);
    let via = format!("http://via.test/{page}{}", some(random)).into();
    let target = format!("/{number}/{}", some(random)).into();
    let quality = random.pick([0, 1, 500, 3_000_000]);
    Item { target, via: Some(via), arrival: number.into(), ..item(number, quality, None) }
}

/// A frontier of one server with all of these in its head, but for the first so many, which were
/// taken, and those in its tail.
fn with_ends(policy: Policy, head: &[Item], gone: usize, tail: &[Item]) -> Frontier {
    let schedule = policy::Settings { policy, ..policy::Settings::default() };
    let mut frontier = Frontier::new(Settings { schedule, crawl: Some(7), ..Settings::default() });
    let url = url(0, 0);
    let id = frontier.server_of(UrlRef::from_canonical(url.as_bytes()).expect("canonical"));
    frontier.arrivals = (head.len() + tail.len()) as u64;
    let blocks = &mut frontier.spill.as_mut().expect("it has one").blocks;
    let queue = &mut frontier.servers[id.index()].queue;
    head.iter().for_each(|item| queue.restore(item.clone(), Some(blocks)));
    queue.restore_packed(blocks);
    for _ in 0..gone {
        queue.pop(Some(blocks)).expect("a head has as many");
    }
    let by_quality = policy.is_by_quality();
    tail.iter().for_each(|url| queue.cold_or_new().put_tail(url.written(), by_quality, blocks));
    frontier
}

/// Heads and tails of many frames come back, wherever in a run a frame is full, and whether its
/// first was taken before.
#[test]
fn long_ends_of_queues_come_back() {
    for policy in Policy::ALL {
        let (mut heads_cut, mut tails_cut) = (0, 0);
        for seed in 1..=100 {
            let mut random = Random(seed);
            let urls = 2 + random.below(60);
            let mut head: Vec<Item> =
                (0..urls as u32).map(|number| long(number, &mut random)).collect();
            let tail = head.split_off(1 + random.below(urls - 1));
            let gone = random.below(head.len().min(4) + 1);
            let mut frontier = with_ends(policy, &head, gone, &tail);
            frontier.begin_snapshot(Vec::new(), calendar(Instant::ZERO, AHEAD_US));
            let mut disk = Memory::default();
            let mark = frontier.mark(&mut disk).expect("there is room");
            let mut bytes = Vec::new();
            while !frontier.snapshot_some(random.below(300), &mut bytes) {}
            let frames = frames_of(&bytes);
            heads_cut += frames.iter().filter(|frame| begins_amid_a_run(frame, MORE)).count();
            tails_cut += frames.iter().filter(|frame| begins_amid_a_run(frame, TAIL)).count();

            let settings = frontier.settings.clone();
            let mut found = Frontier::restore(settings, &mark.state, &mut disk).expect("whole");
            for (kind, payload) in &frames {
                let frame = Frame { kind: *kind, payload, offset: 0 };
                found.restore_frame(&frame).expect("just written");
            }
            found.restored(true, calendar(Instant::ZERO, AHEAD_US)).expect("all are there");
            let server = found.server(ServerId(0));
            let mut in_memory = found.in_memory(server);
            server.queue.sort(&mut in_memory);
            server.queue.sort(&mut head);
            assert_eq!(in_memory, head[gone..], "{policy:?} {seed}");
            let blocks = &mut found.spill.as_mut().expect("it has one").blocks;
            let cold = found.servers[0].queue.cold_or_new();
            assert_eq!(cold.take_tail(blocks), tail, "{policy:?} {seed}");
        }
        assert!(heads_cut > 100 && tails_cut > 100, "{policy:?}: {heads_cut}, {tails_cut}");
    }
}

/// Whether a frame of that kind begins with the first of a run that the frame before it has.
fn begins_amid_a_run((kind, payload): &Owned, of: u8) -> bool {
    let mut take = Take::new(payload);
    *kind == of && take.varint().is_ok() && take.rest()[0] & GONE != 0
}

fn restore(left: &Left, frames: &[Owned]) -> Result<Frontier, Flaw> {
    let settings = left.settings.clone();
    let mut frontier = Frontier::restore(settings, &left.state, &mut left.disk.clone())
        .map_err(|_| Flaw::Senseless)?;
    for (kind, payload) in frames {
        frontier.restore_frame(&Frame { kind: *kind, payload, offset: 0 })?;
    }
    frontier.restored(true, left.began)?;
    Ok(frontier)
}

#[test]
fn what_is_missing_or_twice_is_told() {
    let mut pair = Pair::new(5, Policy::Capability);
    (0..600).for_each(|_| pair.step());
    let left = pair.write_down();
    assert!(left.frames.iter().any(|(kind, _)| *kind == 17), "some server takes two frames");
    for index in 0..left.frames.len() {
        let mut frames = left.frames.clone();
        frames.remove(index);
        assert!(restore(&left, &frames).is_err(), "without frame {index}");
        let mut frames = left.frames.clone();
        frames.push(frames[index].clone());
        assert!(restore(&left, &frames).is_err(), "frame {index} twice");
    }
}

/// Bytes behind a right checksum that no crawl wrote: told, or a frontier that can be driven.
#[test]
fn senseless_frames_are_told() {
    let mut told = 0;
    for seed in 1..=40 {
        let mut pair = Pair::new(seed, Policy::ALL[seed as usize % 4]);
        (0..300).for_each(|_| pair.step());
        let left = pair.write_down();
        for _ in 0..60 {
            let mut frames = left.frames.clone();
            for _ in 0..=pair.random.below(3) {
                let number = pair.random.below(frames.len());
                let (kind, payload) = &mut frames[number];
                let at = pair.random.below(payload.len().max(1));
                match pair.random.below(4) {
                    0 => *kind = 15 + pair.random.below(6) as u8,
                    1 => payload.truncate(at),
                    2 => payload.insert(at, pair.random.below(256) as u8),
                    _ => {
                        if let Some(byte) = payload.get_mut(at) {
                            *byte = pair.random.below(256) as u8;
                        }
                    }
                }
            }
            let Ok(mut frontier) = restore(&left, &frames) else {
                told += 1;
                continue;
            };
            let mut now = left.began.at;
            for _ in 0..50 {
                let Some(id) = frontier.next(now) else {
                    now = frontier.deadline().unwrap_or(now);
                    continue;
                };
                frontier.take(id);
                frontier.finish(id, &Visit::new(1, now, now), now);
                if spill::work(&mut frontier, &left.disk, now).is_err() {
                    break; // that is told, too
                }
            }
        }
    }
    assert!(told > 1_000, "{told}");
}
