//! Tests of the append log, mostly against a naive model and a disk with faults.

use super::*;
use crate::ground::disk::memory::Memory;
use crate::ground::frame::{Error, Reader};
use crate::ground::random::Random;
use std::collections::BTreeMap;

const FOLDER: &str = "state/test";
const CRAWL: u64 = 7;
const KIND: u8 = 3;
const LIMITS: Limits = Limits { segment_bytes: 600, write_bytes: 150 };

fn new() -> Segments {
    Segments::new(FOLDER, Role::Segment, CRAWL, LIMITS)
}

/// The frames that are needed: their locations and payloads.
type Live = BTreeMap<Location, Vec<u8>>;

/// A checkpoint: the segments that it names, and the frames needed at its instant.
#[derive(Clone, Default)]
struct Checkpoint {
    files: Vec<(u32, u64)>,
    live: Live,
}

/// The log and its model, changed together.
struct Pair {
    random: Random,
    log: Segments,
    disk: Memory,
    live: Live,
    durable: Checkpoint,
    begun: Option<Checkpoint>,
    /// How often each kind of step happened.
    counts: BTreeMap<&'static str, u32>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            log: new(),
            disk: Memory::default(),
            live: Live::new(),
            durable: Checkpoint::default(),
            begun: None,
            counts: BTreeMap::new(),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..40 => self.append(),
            40..70 => self.release(),
            70..88 => self.write(),
            88..92 => self.begin_checkpoint(),
            92..96 => self.publish(),
            96..99 => self.sweep(),
            _ => self.restart(),
        }
        self.read_some();
        let expected: u64 = self.live.keys().map(|at| u64::from(at.bytes)).sum();
        assert_eq!(self.log.bytes().1, expected);
    }

    fn append(&mut self) {
        let most = self.random.pick(&[1, 30, 200, 900]);
        let bytes = self.random.below(most);
        let payload: Vec<u8> = (0..bytes).map(|_| self.random.word() as u8).collect();
        let at = self.log.append(KIND, |out| out.extend_from_slice(&payload));
        assert!(self.live.insert(at, payload).is_none(), "no two frames lie at {at:?}");
    }

    fn any(&mut self) -> Option<Location> {
        let index = self.random.below(self.live.len().max(1));
        self.live.keys().nth(index).copied()
    }

    fn release(&mut self) {
        for _ in 0..self.random.below(3) {
            if let Some(at) = self.any() {
                self.live.remove(&at);
                self.log.release(at);
            }
        }
    }

    fn write(&mut self) {
        let room = self.disk.used() + self.random.below(300);
        let is_full = self.random.below(3) == 0;
        self.disk.limit(is_full.then_some(room), self.random.below(2) == 0);
        let all = self.random.below(4) == 0;
        if self.log.write(all, &mut self.disk).is_err() {
            self.count("full");
        }
        self.disk.limit(None, false);
    }

    /// Reads some frames and compares them with what was appended.
    fn read_some(&mut self) {
        for _ in 0..3 {
            if let Some(at) = self.any() {
                let what = if self.log.waiting(at).is_some() { "waits" } else { "on disk" };
                self.count(what);
                let found = self.log.read(at, KIND, &mut self.disk).expect("it is needed");
                assert_eq!(&found, &self.live[&at]);
            }
        }
    }

    fn begin_checkpoint(&mut self) {
        self.begun = Some(Checkpoint { files: self.log.alive(), live: self.live.clone() });
    }

    fn publish(&mut self) {
        let Some(begun) = self.begun.take() else { return };
        self.log.write(true, &mut self.disk).expect("there is room");
        self.log.set_marked(begun.files.iter().map(|(number, _)| *number));
        if self.random.below(5) == 0 {
            // Publishing failed, so the previous checkpoint still counts.
            return self.count("failed");
        }
        for (number, bytes) in &begun.files {
            let name = self.log.name_of(*number);
            self.disk.sync(&name).expect("it is written");
            assert!(self.disk.bytes(&name).len() as u64 >= *bytes);
        }
        self.durable = begun;
        for name in self.log.on_durable(None) {
            self.disk.remove(&name).expect("it is there");
            self.count("removed");
        }
    }

    /// Sweeps a sparse segment: appends its live frames again.
    fn sweep(&mut self) {
        let Some((number, bytes)) = self.log.next_sparse() else { return };
        let name = self.log.name_of(number);
        let disk = &mut self.disk;
        let reader = Reader::open(&name, Role::Segment, CRAWL, Some(bytes), disk);
        let mut reader = reader.expect("it is on disk");
        while let Some(frame) = reader.next(disk).expect("it is whole") {
            let (offset, payload) = (frame.offset as u32, frame.payload.to_vec());
            let bytes = (frame::OVERHEAD_BYTES + payload.len()) as u32;
            let old = Location { segment: number, offset, bytes };
            if self.live.remove(&old).is_some() {
                let new = self.log.append(KIND, |out| out.extend_from_slice(&payload));
                self.log.release(old);
                self.live.insert(new, payload);
            }
        }
        assert!(!self.log.is_alive(number), "all that was alive has moved");
        self.count("swept");
    }

    /// Loses power, then restores the log from the last checkpoint.
    fn restart(&mut self) {
        self.disk.lose_power(|bytes| self.random.below(bytes + 1));
        let Checkpoint { files, live } = self.durable.clone();
        self.log = new();
        if self.random.below(2) == 0 {
            for name in self.disk.list(FOLDER).expect("it can be listed") {
                let number = number_of(FOLDER, &format!("{FOLDER}/{name}"));
                self.log.skip_to(number.expect("nothing else is there"));
            }
        }
        for (number, bytes) in files {
            assert!(self.log.restore(number, bytes) && self.log.is_restored(number));
        }
        assert!(live.keys().all(|at| self.log.retain(*at)));
        self.log.find_sparse();
        (self.live, self.begun) = (live, None);
        self.count("restarted");
    }
}

/// Law: whatever is appended, released, swept or restarted, and whatever fails, each needed frame
/// can be read, and files that nothing needs are removed.
#[test]
fn the_log_agrees_with_a_naive_model() {
    let mut counts = BTreeMap::new();
    for seed in 0..60 {
        let mut pair = Pair::new(seed);
        (0..800).for_each(|_| pair.step());
        // Files of an earlier run that no checkpoint names are removed by the log's user.
        for number in pair.log.numbers() {
            let name = pair.log.name_of(number);
            assert!(pair.log.is_growing(number) || pair.disk.names().contains(&name), "{name}");
        }
        pair.live.keys().for_each(|at| pair.log.release(*at));
        pair.live.clear();
        pair.begin_checkpoint();
        while pair.begun.is_some() {
            pair.publish();
        }
        for (what, count) in pair.counts {
            *counts.entry(what).or_insert(0) += count;
        }
    }
    let least = [("full", 800), ("waits", 9_000), ("on disk", 9_000), ("failed", 100)];
    let least = least.into_iter().chain([("removed", 500), ("swept", 300), ("restarted", 300)]);
    for (what, least) in least {
        assert!(counts.get(what).is_some_and(|count| *count > least), "{what}: {counts:?}");
    }
}

/// Law: appends to the disk have at least the configured length, except at ends of segments.
#[test]
fn short_appends_wait() {
    let (mut log, mut disk) = (new(), Memory::default());
    let mut appends = 0;
    for _ in 0..200 {
        let at = log.append(KIND, |out| out.extend_from_slice(&[1; 20]));
        let name = log.name_of(at.segment);
        let before = disk.len(&name).expect("it can be asked").unwrap_or(0);
        log.write(false, &mut disk).expect("there is room");
        let after = disk.len(&name).expect("as above").unwrap_or(0);
        let is_long = after >= before + LIMITS.write_bytes as u64;
        assert!(after == before || is_long || after >= LIMITS.segment_bytes, "{before} {after}");
        assert_eq!(log.waiting(at).is_some(), after == before);
        appends += u32::from(after > before);
    }
    assert!(appends > 20, "{appends}");
    let at = log.append(KIND, |_| {});
    assert_eq!(log.waiting(at).map(<[u8]>::len), Some(frame::OVERHEAD_BYTES));
    log.write(true, &mut disk).expect("there is room");
    assert_eq!(log.waiting(at), None);
}

/// Law: a location where no frame of an earlier run can be is neither retained nor read.
#[test]
fn impossible_locations_are_refused() {
    let (mut log, mut disk) = (new(), Memory::default());
    let at = log.append(KIND, |out| out.extend_from_slice(b"payload"));
    log.append(KIND, |out| out.extend_from_slice(b"another"));
    log.write(true, &mut disk).expect("there is room");
    let (segment, bytes) = log.alive()[0];
    let mut log = new();
    assert!(!log.restore(u32::MAX, bytes) && !log.restore(1, u64::MAX));
    assert!(log.restore(segment, bytes) && !log.restore(segment, bytes), "named twice");
    let refused = [
        Location { segment: segment + 1, ..at },
        Location { offset: at.offset - 1, ..at },
        Location { offset: u32::try_from(bytes).expect("short") - 8, ..at },
        Location { offset: u32::MAX, ..at },
        Location { bytes: 8, ..at },
        Location { bytes: u32::MAX, ..at },
    ];
    assert!(refused.into_iter().all(|at| !log.retain(at)));
    assert_eq!(log.bytes(), (bytes, 0), "what is refused doesn't count");
    assert!(log.retain(at));
    let rounded = Location { bytes: at.bytes + 200, ..at };
    assert_eq!(log.read(rounded, KIND, &mut disk).expect("it is there"), b"payload");
    let next = log.append(KIND, |_| {});
    assert_eq!(next.segment, segment + 1, "a restored segment is not added to");
    assert!(log.is_restored(segment) && !log.is_restored(next.segment));
}

/// Law: a closed segment that is on disk is swept if less than a quarter of it is alive, also after
/// a restart.
#[test]
fn sparse_segments_are_found() {
    for (kept, expected) in [(0, false), (1, true), (2, true), (3, false), (9, false)] {
        let (mut log, mut disk) = (new(), Memory::default());
        let frames: Vec<Location> =
            (0..9).map(|_| log.append(KIND, |out| out.resize(out.len() + 60, 1))).collect();
        let bytes = log.bytes().0;
        assert!(bytes >= LIMITS.segment_bytes, "closed");
        frames[kept..].iter().for_each(|at| log.release(*at));
        assert_eq!(log.next_sparse(), None, "it waits to be written");
        log.write(false, &mut disk).expect("there is room");
        let sparse = expected.then_some((frames[0].segment, bytes));
        assert_eq!(log.next_sparse(), sparse, "{kept} frames are alive");
        assert_eq!(log.next_sparse(), None);

        let mut log = new();
        assert!(log.restore(frames[0].segment, bytes));
        assert!(frames[..kept].iter().all(|at| log.retain(*at)));
        assert_eq!(log.next_sparse(), None, "not all may have been retained yet");
        log.find_sparse();
        assert_eq!(log.next_sparse(), sparse, "{kept} frames are alive");
    }
}

/// Every changed bit and every truncation is reported with the file and the offset.
#[test]
fn damage_is_reported() {
    let (mut log, mut whole) = (new(), Memory::default());
    let at = [0, 1].map(|byte| log.append(KIND, |out| out.extend_from_slice(&[byte; 20])));
    log.write(true, &mut whole).expect("there is room");
    let name = log.name_of(1);
    let bytes = whole.bytes(&name);
    let read = |bytes: &[u8], at: Location, kind| {
        let mut disk = Memory::default();
        disk.append(&name, bytes).expect("there is room");
        log.read(at, kind, &mut disk)
    };
    assert_eq!(read(&bytes, at[1], KIND).expect("it is whole"), [1; 20]);
    assert!(read(&bytes, at[1], KIND + 1).is_err(), "another kind");
    let last = at[1].offset as usize;
    for bit in last * 8..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        match read(&changed, at[1], KIND) {
            Err(Error::Damaged(damage)) => {
                assert_eq!((&damage.name, damage.offset), (&name, at[1].offset.into()));
            }
            other => panic!("bit {bit}: {other:?}"),
        }
        assert!(read(&changed, at[0], KIND).is_ok(), "the other one is whole");
    }
    for end in 0..bytes.len() {
        assert!(read(&bytes[..end], at[1], KIND).is_err(), "cut to {end}");
    }
}

/// A segment is removed when it is closed, nothing in it is needed and no checkpoint names it; one
/// that is being read may be kept.
#[test]
fn segments_go_when_nothing_needs_them() {
    let (mut log, mut disk) = (new(), Memory::default());
    let mut long = || log.append(KIND, |out| out.resize(out.len() + 600, 1));
    let [first, second] = [long(), long()];
    let third = log.append(KIND, |_| {});
    let numbers: Vec<u32> = log.numbers().collect();
    assert_eq!(numbers, [1, 2, 3]);
    log.release(first);
    log.set_marked(log.alive().into_iter().map(|(number, _)| number));
    assert!(log.on_durable(None).is_empty(), "what waits to be written is not removed");
    log.write(true, &mut disk).expect("there is room");
    assert!(log.on_durable(Some(first.segment)).is_empty());
    assert_eq!(log.on_durable(None), [log.name_of(first.segment)]);
    log.release_all(second.segment);
    log.release(third);
    assert!(log.on_durable(None).is_empty(), "they are marked");
    log.set_marked([]);
    assert_eq!(log.on_durable(None), [log.name_of(second.segment)], "the last one is open");
    assert_eq!(log.bytes(), (u64::from(third.offset + third.bytes), 0));
}
