//! A snapshot of a frontier in the middle of its history, restored: it is the model as that was at
//! the moment, and goes on like it.

use super::*;
use crate::ground::codec::Take;
use crate::ground::frame::{self, Flaw, Frame};
use crate::ground::time::{Now, UnixTime};

/// A frame, owned.
type Owned = (u8, Vec<u8>);

/// Kinds of frames.
const SERVER: u8 = 16;
const CHUNKS: u8 = 17;
/// URLs that are near or under way, and those that are far.
const URLS: [u8; 2] = [18, 19];
/// The byte of a frame of chunks that says how much of the first one is used up.
const USED_AT: usize = 2 + 5;

/// What a history left: the snapshot of the frontier, and the model as it was then.
struct Left {
    settings: Settings,
    state: Vec<u8>,
    files: Vec<(String, u64)>,
    frames: Vec<Owned>,
    model: Model,
    fates: Vec<Fate>,
    ids: Vec<ServerId>,
    began: Now,
    disk: Memory,
}

/// The calendar beside the monotonic clock, so many microseconds ahead of it.
pub(super) fn calendar(at: Instant, ahead_us: u64) -> Now {
    Now { at, unix: UnixTime::from_micros(ahead_us + at.as_micros()) }
}

const AHEAD_US: u64 = 1 << 50;

impl Pair {
    /// Takes a snapshot, in small pieces between which the history goes on.
    fn write_down(&mut self) -> Left {
        let began = calendar(self.now, AHEAD_US);
        let mut flights = Vec::new();
        for (id, known) in self.ids.iter().zip(&self.model.servers) {
            let under_way = known.visit.iter().flat_map(|turn| &turn.taken);
            flights.extend(under_way.map(|url| (*id, url.key, payload(url.number))));
        }
        self.frontier.begin_snapshot(flights, began);
        let (model, fates, ids) = (self.model.clone(), self.fates.clone(), self.ids.clone());
        let mark = loop {
            let room = self.disk.used() + self.random.below(800);
            let is_full = self.random.one_in(2);
            self.disk.limit(is_full.then_some(room), self.random.one_in(2));
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
        let bytes = self.write_frames(ids.len());
        for name in self.frontier.on_durable() {
            assert!(mark.files.iter().all(|(needed, _)| *needed != name), "{name} is needed");
            self.disk.remove(&name).expect("it is there");
        }
        let (settings, disk) = (self.model.settings.clone(), self.disk.clone());
        let (state, files, frames) = (mark.state, mark.files, frames_of(&bytes));
        Left { settings, state, files, frames, model, fates, ids, began, disk }
    }

    /// Law: each call writes as much as it may, or passes as many queues that are empty or written
    /// already; there are so many.
    fn write_frames(&mut self, queues: usize) -> Vec<u8> {
        let (mut bytes, mut passed) = (Vec::new(), 0);
        loop {
            for _ in 0..self.random.below(8) {
                self.step();
                self.check();
            }
            assert!(self.frontier.is_snapshotting());
            let before = bytes.len();
            let budget = self.random.below(400);
            if self.frontier.snapshot_some(budget, &mut bytes) {
                break;
            }
            passed += budget.saturating_sub(bytes.len() - before);
            assert!(passed <= queues, "it makes headway");
        }
        assert!(!self.frontier.is_snapshotting());
        bytes
    }

    /// Restores a frontier from what is left, and goes on with it.
    fn take_up(mut self, left: Left) -> Self {
        let was_clean = self.random.one_in(2);
        let passed_us = self.random.pick(&[0, 3_000, 700_000, 5_000_000, 1 << 45]);
        let jump_us = if self.random.one_in(3) { 20_000_000 } else { 0 };
        let at = Instant::from_micros(self.random.below(1_000));
        let unix = left.began.unix.as_micros() + passed_us - jump_us;
        let now = Now { at, unix: UnixTime::from_micros(unix) };
        let arrivals = left.arrivals();
        self.disk.lose_power(|bytes| self.random.below(bytes + 1));
        let mut frontier =
            Frontier::restore(left.settings, &left.state, &left.files, &mut self.disk)
                .expect("just written");
        for (kind, payload) in shuffled(left.frames, &mut self.random) {
            let frame = Frame { kind, payload: &payload, offset: 0 };
            frontier.restore_frame(&frame, now).expect("just written");
            let id = ServerId::from_index(number_in(&payload));
            let url = url(id.index());
            assert!(url.starts_with(frontier.origin(id).as_str()), "a server is known at once");
        }
        frontier.restored(was_clean, now).expect("all frames are there");
        assert_eq!(frontier.servers(), left.ids.len());

        (self.frontier, self.model, self.now) = (frontier, left.model, now.at);
        (self.fates, self.ids) = (left.fates, left.ids);
        self.job = None;
        self.model.restore(left.began, now, was_clean, &arrivals);
        for (number, fate) in (0..).zip(&mut self.fates) {
            let waits = self.model.servers.iter().any(|known| known.waits_with(number));
            *fate = if waits { Fate::Waits } else { Fate::Done };
        }
        self
    }

    /// Every queue, URL by URL with its payload as far as it is in memory, and every wait.
    fn check_all(&mut self) {
        self.look();
        assert!(!self.frontier.is_snapshotting());
        for (id, known) in self.ids.iter().zip(&self.model.servers) {
            let server = self.frontier.server(*id);
            for url in known.queue.iter().filter(|url| known.memory.contains(&url.key.arrival)) {
                let found = self.frontier.queues.payload_of(id.0, url.key);
                assert_eq!(found, payload(url.number));
            }
            let on_disk = known.queue.len() - known.memory.len();
            assert_eq!(self.frontier.queue_len(*id), known.queue.len());
            assert!(on_disk == 0 || self.model.settings.crawl.is_some());
            let left = |due: Instant| due.since(self.now);
            assert_eq!(left(server.due), left(known.due), "{server:?}");
            assert_eq!(server.crawl_delay(), known.crawl_delay);
        }
    }
}

impl Left {
    /// The arrivals of servers as they were written: those of servers that were ready or visited at
    /// the moment are in the order of the model; others may have become ready since.
    fn arrivals(&self) -> Vec<u64> {
        let mut arrivals = vec![0; self.ids.len()];
        for (kind, payload) in &self.frames {
            if *kind == SERVER {
                let mut take = Take::new(payload);
                let number: usize = take.number().expect("a server's");
                take.str().expect("its origin");
                take.u8().expect("whether it is retired");
                arrivals[number] = take.varint().expect("its arrival");
            }
        }
        let known = self.model.servers.iter().zip(&arrivals);
        let settled =
            known.filter(|(known, _)| known.place == Place::Ready || known.visit.is_some());
        let mut settled: Vec<(u64, u64)> =
            settled.map(|(known, arrival)| (known.arrival, *arrival)).collect();
        settled.sort_unstable();
        assert!(settled.is_sorted_by_key(|(_, arrival)| *arrival), "{settled:?}");
        arrivals
    }
}

impl model::Known {
    fn waits_with(&self, number: u32) -> bool {
        self.queue.iter().any(|url| url.number == number)
    }
}

pub(super) fn frames_of(mut bytes: &[u8]) -> Vec<Owned> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (frame, used) = frame::parse(bytes, 0).expect("just written");
        frames.push((frame.kind, frame.payload.to_vec()));
        bytes = &bytes[used..];
    }
    frames
}

/// The number of the server or queue of a frame.
fn number_in(payload: &[u8]) -> usize {
    Take::new(payload).number().expect("a number")
}

/// In another order, but for that of servers, and that within a queue.
fn shuffled(mut frames: Vec<Owned>, random: &mut Random) -> Vec<Owned> {
    let keys: Vec<usize> = (0..SERVERS).map(|_| 1 + random.below(5)).collect();
    frames.sort_by_key(|(kind, payload)| match *kind {
        SERVER => 0,
        _ => keys[number_in(payload)],
    });
    frames
}

fn comes_back(policy: Policy) {
    for seed in 1..=seeds(30) {
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

fn restore(left: &Left, state: &[u8], frames: &[Owned]) -> Result<Frontier, Flaw> {
    let (settings, mut disk) = (left.settings.clone(), left.disk.clone());
    let mut frontier =
        Frontier::restore(settings, state, &left.files, &mut disk).map_err(|_| Flaw::Senseless)?;
    for (kind, payload) in frames {
        let frame = Frame { kind: *kind, payload, offset: 0 };
        frontier.restore_frame(&frame, left.began)?;
    }
    frontier.restored(true, left.began)?;
    Ok(frontier)
}

#[test]
fn what_is_missing_or_twice_is_refused() {
    let (mut long, mut with_chunks) = (0, 0);
    for seed in 1..=12 {
        let mut pair = Pair::new(seed, Policy::PAPER[seed as usize % 4]);
        (0..600).for_each(|_| pair.step());
        let left = pair.write_down();
        let urls = left.frames.iter().filter(|(kind, _)| URLS.contains(kind));
        let mut of_queues: Vec<usize> = urls.map(|(_, payload)| number_in(payload)).collect();
        let frames = of_queues.len();
        of_queues.dedup();
        long += frames - of_queues.len();
        with_chunks += left.frames.iter().filter(|(kind, _)| *kind == CHUNKS).count();
        assert!(restore(&left, &left.state, &left.frames).is_ok());
        for index in 0..left.frames.len() {
            let mut frames = left.frames.clone();
            frames.remove(index);
            assert!(restore(&left, &left.state, &frames).is_err(), "without frame {index}");
            for place in [index, left.frames.len()] {
                let mut frames = left.frames.clone();
                frames.insert(place, frames[index].clone());
                assert!(restore(&left, &left.state, &frames).is_err(), "frame {index} twice");
            }
        }
    }
    assert!(long > 10 && with_chunks > 10, "{long} second frames, {with_chunks} with chunks");
}

/// Bytes behind a right checksum that no crawl wrote: refused, or a frontier that can be driven.
#[test]
fn senseless_frames_are_refused() {
    let (mut refused, mut driven, mut damaged) = (0, 0, 0);
    for seed in 1..=seeds(60) {
        let mut pair = Pair::new(seed, Policy::PAPER[seed as usize % 4]);
        (0..500).for_each(|_| pair.step());
        let left = pair.write_down();
        let is_chunks = |(_, (kind, _)): &(usize, &Owned)| *kind == CHUNKS;
        let chunks = left.frames.iter().enumerate().filter(is_chunks);
        let chunks: Vec<usize> = chunks.map(|(number, _)| number).collect();
        for _ in 0..60 {
            let (mut frames, mut state) = (left.frames.clone(), left.state.clone());
            for _ in 0..=pair.random.below(3) {
                let any = pair.random.below(frames.len() + 1);
                let is_chunk = !chunks.is_empty() && pair.random.one_in(2);
                let number = if is_chunk { chunks[any % chunks.len()] } else { any };
                match frames.get_mut(number) {
                    Some((CHUNKS, payload)) if any.is_multiple_of(2) => {
                        let word = pair.random.below(payload.len() / 8 + 1);
                        let used = payload.get_mut(8 * word + USED_AT);
                        used.into_iter().for_each(|byte| *byte ^= pair.random.below(16));
                    }
                    // URLs are said to be far that were near.
                    Some((kind, _)) if URLS.contains(kind) && pair.random.one_in(3) => {
                        *kind = URLS[0] + URLS[1] - *kind;
                    }
                    Some((kind, payload)) => spoil(kind, payload, &mut pair.random),
                    None => spoil(&mut 0, &mut state, &mut pair.random),
                }
            }
            *match restore(&left, &state, &frames).map(|frontier| drive(frontier, &left)) {
                Err(_) => &mut refused,
                Ok(true) => &mut driven,
                Ok(false) => &mut damaged,
            } += 1;
        }
    }
    println!("{refused} refused, {driven} driven, {damaged} damaged");
    assert!(refused > 2_000 && driven > 100 && damaged > 50, "{refused}, {driven}, {damaged}");
}

fn spoil(kind: &mut u8, payload: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(payload.len().max(1));
    match random.below(4) {
        0 => *kind = 15 + random.below(6),
        1 => payload.truncate(at),
        2 => payload.insert(at, random.word() as u8),
        _ => {
            if let Some(byte) = payload.get_mut(at) {
                *byte = random.word() as u8;
            }
        }
    }
}

/// Takes out what there is; `false` if something is found to be damaged.
fn drive(mut frontier: Frontier, left: &Left) -> bool {
    let (mut now, mut disk, mut idle) = (left.began.at, left.disk.clone(), 0);
    for number in 0..5_000 {
        idle += 1;
        while frontier.given_up(&mut Vec::new()).is_some() {}
        if let Some(id) = frontier.next(now) {
            let mut payload = Vec::new();
            let key = frontier.take(id, &mut payload);
            if let Some(key) = key.filter(|_| number % 7 == 0) {
                frontier.give_back(id, key, &payload);
            }
            frontier.finish(id, &Visit::new(1, now, now), now);
            idle = 0;
        } else if let Some(deadline) = frontier.deadline().filter(|deadline| *deadline > now) {
            (now, idle) = (deadline, 0);
        }
        frontier.write(false, &mut disk).expect("there is room");
        match spill::work(&mut frontier, &disk, now) {
            Ok(works) => idle *= i32::from(!works),
            Err(_) => return false,
        }
        if idle > 5 {
            assert_eq!(frontier.urls(), 0, "none waits for ever");
            return true;
        }
    }
    panic!("all come out");
}
