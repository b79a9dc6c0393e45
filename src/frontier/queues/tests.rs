//! Tests of the queues against a naive model: both run the same random histories, in both orders.

mod check;
mod find;
pub(in crate::frontier) mod seen;

use super::*;
use crate::ground::disk::memory::Memory;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const QUEUES: u32 = 12;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("small")
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A URL as the model has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Url {
    key: Key,
    payload: Vec<u8>,
}

impl Url {
    fn order(&self, order: Order) -> (bool, Reverse<u64>, u64) {
        let quality = if order == Order::Quality { self.key.quality.millionths() } else { 0 };
        (!self.key.is_first, Reverse(quality), self.key.arrival)
    }

    fn band(&self, order: Order) -> u8 {
        match order {
            _ if self.key.is_first => band::BAND_MAX,
            Order::Arrival => 0,
            Order::Quality => band::band_of(self.key.quality),
        }
    }
}

type Model = BTreeMap<QueueId, Vec<Url>>;

/// The queues and the model, to which every call is applied alike.
struct Pair {
    random: Random,
    queues: Queues,
    model: Model,
    /// URLs that were taken and may be put back into their queues.
    taken: Vec<(QueueId, Url)>,
    disk: Memory,
    job: Option<QueuesJob>,
    snapshot: Option<(Model, Vec<u8>)>,
    restored: u32,
    reads: u32,
    /// How many URLs were found on disk by a search.
    found: u32,
}

fn is_payload(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'/')
}

impl Pair {
    fn new(seed: u64, order: Order) -> Self {
        let mut random = Random(seed);
        let settings = Settings {
            order,
            memory_bytes: random.pick(&[0, 3_000, 10_000, 60_000]),
            crawl: random.pick(&[None, Some(7), Some(7), Some(7)]),
            is_payload,
        };
        let mut queues = Queues::new(settings);
        (0..QUEUES).for_each(|_| queues.add_queue());
        Self {
            random,
            queues,
            model: (0..QUEUES).map(|id| (id, Vec::new())).collect(),
            taken: Vec::new(),
            disk: Memory::default(),
            job: None,
            snapshot: None,
            restored: 0,
            reads: 0,
            found: 0,
        }
    }

    fn order(&self) -> Order {
        self.queues.settings.order
    }

    fn step(&mut self) {
        // More than half of all steps use three of the queues, so that these have most URLs.
        let id = self.random.below(QUEUES as usize) as u32;
        let id = if self.random.below(2) == 0 { id % 3 } else { id };
        match self.random.below(100) {
            0..40 => self.push(id),
            40..65 => self.pop(id),
            65..72 => self.put_back(),
            72..74 => {
                let counted = self.random.pick(&[1, 1, 3, 20]);
                self.queues.set_counted(id, counted);
            }
            74..86 => self.work(),
            86..92 => {
                let all = self.random.below(2) == 0;
                let _ = self.queues.write(all, &mut self.disk);
            }
            92 => {
                let room = self.random.pick(&[None, Some(2_000)]);
                self.disk.limit(room, self.random.below(2) == 0);
            }
            93 => self.empty(id),
            94 => self.find(id),
            _ => self.checkpoint(),
        }
        while self.queues.next_changed().is_some() {}
    }

    fn push(&mut self, id: QueueId) {
        let is_first = self.random.below(20) == 0;
        let quality = self.random.pick(&[0, 1, 1_000_000, 1_400_000, 3_000_000, 1_000_000_000_000]);
        let quality = Quality::from_millionths(quality + self.random.below(1_000) as u64);
        let (number, extra) = (self.random.below(10_000), self.random.below(30));
        let extra = if extra == 0 { 1_000 } else { extra };
        let payload = format!("/a/{number}{}?via=https://h{id}/", "x".repeat(extra)).into_bytes();
        let arrival = self.queues.push(id, is_first, quality, &payload);
        let key = Key { is_first, quality, arrival };
        self.model.get_mut(&id).expect("it is known").push(Url { key, payload });
    }

    fn pop(&mut self, id: QueueId) {
        let order = self.order();
        let waiting = self.model.get_mut(&id).expect("it is known");
        let mut payload = Vec::new();
        let Some(key) = self.queues.pop(id, &mut payload) else {
            let is_behind = self.queues.len(id) > 0;
            assert_eq!(is_behind, !waiting.is_empty());
            assert!(!is_behind || self.queues.at(id).on_disk() > 0, "it waits for the disk");
            return;
        };
        let url = Url { key, payload };
        let place = waiting.iter().position(|other| *other == url).expect("it waits");
        waiting.remove(place);
        let better = |other: &&Url| other.order(order) < url.order(order);
        let best = waiting.iter().filter(better).min_by_key(|url| url.order(order));
        if order == Order::Arrival {
            assert_eq!(best, None, "it is the first");
        } else {
            let entries = self.queues.at(id).entries();
            let in_memory: Vec<u64> = entries.map(|entry| entry.key(order).arrival).collect();
            let passed_over = |other: &Url| in_memory.contains(&other.key.arrival);
            assert!(!waiting.iter().filter(better).any(passed_over), "it is the best in memory");
            assert!(best.is_none_or(|best| best.band(order) <= url.band(order)));
        }
        self.taken.push((id, url));
        if self.taken.len() > 20 {
            self.taken.remove(0);
        }
    }

    fn put_back(&mut self) {
        if let Some((id, url)) = self.taken.pop() {
            self.queues.put_back(id, url.key, &url.payload);
            self.model.get_mut(&id).expect("it is known").push(url);
        }
    }

    /// Takes all URLs of a queue that are in memory.
    fn empty(&mut self, id: QueueId) {
        let waiting = self.model.get_mut(&id).expect("it is known");
        let mut payload = Vec::new();
        while let Some(key) = self.queues.pop_any(id, &mut payload) {
            let url = Url { key, payload: std::mem::take(&mut payload) };
            let place = waiting.iter().position(|other| *other == url).expect("it waits");
            waiting.remove(place);
        }
        assert_eq!(self.queues.at(id).in_memory(), 0);
    }

    fn work(&mut self) {
        match self.random.below(3) {
            0 => self.job = self.job.take().or_else(|| self.queues.job(&self.disk)),
            1 => {
                if let Some(job) = self.job.take() {
                    let _ = self.queues.worked(job.run());
                }
            }
            _ => {
                self.reads += u32::from(self.queues.has_read());
                self.queues.take_in(300).expect("nothing is damaged");
            }
        }
    }

    fn work_it_off(&mut self) {
        self.disk.limit(None, false);
        self.queues.write(true, &mut self.disk).expect("there is room");
        for _ in 0..10_000 {
            if let Some(job) = self.job.take().or_else(|| self.queues.job(&self.disk)) {
                self.queues.worked(job.run()).expect("it can be read");
            }
            if !self.queues.has_read() {
                return;
            }
            self.queues.take_in(1_000).expect("nothing is damaged");
        }
        panic!("jobs come to an end");
    }

    /// Begins a snapshot, continues it, or ends it and restores it.
    fn checkpoint(&mut self) {
        let Some((model, mut frames)) = self.snapshot.take() else {
            let mut model = self.model.clone();
            let flights = self.random.below(4).min(self.taken.len());
            let flights = self.taken.split_off(self.taken.len() - flights);
            for (id, url) in &flights {
                model.get_mut(id).expect("it is known").push(url.clone());
            }
            let flights = flights.into_iter().map(|(id, url)| (id, url.key, url.payload));
            self.queues.begin_snapshot(flights.collect());
            self.snapshot = Some((model, Vec::new()));
            return;
        };
        self.disk.limit(None, false);
        let mark = self.queues.mark(&mut self.disk).expect("there is room");
        if !self.queues.snapshot_some(100, &mut frames) {
            self.snapshot = Some((model, frames));
            return;
        }
        let copy = Memory::default();
        for name in
            ["state/frontier"].iter().flat_map(|folder| self.disk.clone().list(folder)).flatten()
        {
            let name = if name.contains('/') { name } else { format!("{FOLDER}/{name}") };
            let bytes = self.disk.bytes(&name);
            copy.clone().append(&name, &bytes).expect("there is room");
        }
        let settings = Settings {
            memory_bytes: self.random.pick(&[0, 5_000, 90_000]),
            ..self.queues.settings.clone()
        };
        let mut restored = Queues::restore(settings, &mark.state).expect("it is whole");
        restored.restore_files(&mark.files, &mut copy.clone()).expect("they are there");
        let mut at = 0;
        while at < frames.len() {
            let (frame, len) = frame::parse(&frames[at..], 0).expect("they are whole");
            restored.restore_frame(frame.kind, frame.payload).expect("it belongs to it");
            at += len;
        }
        restored.restored(QUEUES as usize).expect("nothing is missing");
        for name in self.queues.on_durable() {
            self.disk.remove(&name).expect("it is there");
        }
        let mut other = Pair {
            queues: restored,
            model,
            disk: copy,
            taken: Vec::new(),
            job: None,
            random: Random(self.random.next()),
            snapshot: None,
            restored: 0,
            reads: 0,
            found: 0,
        };
        other.drain();
        self.restored += 1;
    }

    /// Takes all URLs of all queues and compares them with the model.
    fn drain(&mut self) {
        for _ in 0..20_000 {
            self.work_it_off();
            for id in 0..QUEUES {
                assert_eq!(self.queues.len(id), self.model[&id].len());
                assert!(self.queues.len(id) == 0 || self.queues.is_at_hand(id), "it was read");
                self.pop(id);
            }
            if self.queues.urls() == 0 {
                assert!(self.model.values().all(Vec::is_empty));
                assert_eq!(self.queues.store.records.bytes(), 0);
                return;
            }
        }
        panic!("all comes out");
    }
}

use crate::ground::frame;

fn histories(order: Order, seeds: std::ops::Range<u64>) {
    let (mut restored, mut reads, mut found) = (0, 0, 0);
    for seed in seeds {
        let mut pair = Pair::new(seed, order);
        for _ in 0..1_500 {
            pair.step();
            assert_eq!(pair.queues.urls(), pair.model.values().map(Vec::len).sum::<usize>());
        }
        let is_bounded = pair.queues.store.disk.is_some();
        if is_bounded {
            for _ in 0..200 {
                pair.queues.make_room();
            }
            let (bytes, bound) = (pair.queues.memory_bytes(), pair.queues.settings.memory_bytes);
            let cut = pair.queues.queues.iter().all(|queue| queue.evictable(1) == 0);
            assert!(bytes <= bound || cut, "{bytes} bytes of {bound}");
        }
        pair.taken.clear();
        pair.drain();
        restored += pair.restored;
        reads += pair.reads;
        found += pair.found;
    }
    assert!(restored > 0 && reads > 0, "{restored} snapshots, {reads} reads");
    assert!(found > 0, "no search has found a URL on disk");
}

/// Returns the number of histories to run, which the environment variable `SEEDS` overrides.
fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

#[test]
fn by_arrival_queues_keep_to_the_model() {
    histories(Order::Arrival, 0..seeds());
}

#[test]
fn by_quality_queues_keep_to_the_model() {
    histories(Order::Quality, 0..seeds());
}
