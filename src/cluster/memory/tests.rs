//! Tests the memory of a partition against plain maps, with random logs that are cut anywhere, and
//! with nodes that make snapshots of one log at once.

use super::*;
use crate::cluster::queue::{Name, Sequence};
use crate::cluster::record::{Link, Record, Records, Sender};
use crate::ground::random::Random;
use crate::ground::time::UnixTime;
use crate::url::Fingerprint;
use std::collections::{BTreeMap, BTreeSet};

/// Short parts, so that a snapshot has many.
const SHORT: usize = 300;

/// What is known of a partition. Which of several links to a URL, and of several causes, is known
/// doesn't matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    settled: BTreeSet<u64>,
    tries: BTreeMap<u64, u8>,
    links: BTreeSet<u64>,
    facts: BTreeSet<(String, String)>,
    waits: BTreeMap<String, UnixTime>,
    retired: BTreeSet<String>,
}

impl Model {
    fn add(&mut self, record: Record<'_>) {
        match record {
            Record::Link(link) => drop(self.links.insert(link.fingerprint.0)),
            Record::Settled(all) => self.settled.extend(all.map(|key| key.0)),
            Record::Tries { fingerprint, tries } => {
                let most = self.tries.entry(fingerprint.0).or_default();
                *most = tries.max(*most);
            }
            Record::Fact { source, target } => {
                self.facts.insert((source.to_owned(), target.to_owned()));
            }
            Record::Wait { origin, until } => {
                let longest = self.waits.entry(origin.to_owned()).or_default();
                *longest = until.max(*longest);
            }
            Record::Retired { origin, .. } => drop(self.retired.insert(origin.to_owned())),
        }
    }

    /// Drops the links and tries of what is settled.
    fn settle(mut self) -> Self {
        self.links.retain(|key| !self.settled.contains(key));
        self.tries.retain(|key, _| !self.settled.contains(key));
        self
    }
}

fn sender(incarnation: u64) -> Sender {
    Sender { name: Name::new("a").expect("a name"), incarnation }
}

/// Returns a message with random records about a few URLs and servers.
fn message(random: &mut Random) -> Vec<u8> {
    let mut records = Records::new();
    for _ in 0..random.below(12) {
        let key = |random: &mut Random| Fingerprint(random.below(200_u64) << 55);
        let origin = format!("http://{}.test", random.below(6_u8));
        let number = random.below(9_u16);
        match random.below(8_u8) {
            0..3 => {
                let fingerprint = key(random);
                let url = format!("{origin}/{}", fingerprint.0);
                records.link(&Link {
                    fingerprint,
                    url: &url,
                    via: &origin,
                    letter: b'L',
                    hops: 0,
                    requisite: 0,
                    depth: number,
                    tries: 0,
                    estimate: None,
                });
            }
            3 => {
                let mut all: Vec<_> = (0..random.below(4)).map(|_| key(random)).collect();
                records.settled(&mut all);
            }
            4 => records.tries(key(random), number as u8),
            5 => records.fact(&origin, &format!("{number}.example")),
            6 => records.wait(&origin, UnixTime::from_micros(number.into())),
            _ => records.retired(&origin, &format!("cause {number}")),
        }
    }
    let mut payload = Vec::new();
    sender(random.word()).put(&mut payload);
    records.iter().for_each(|record| payload.extend_from_slice(record));
    payload
}

/// Returns what the messages of a log say.
fn said<'a>(log: impl IntoIterator<Item = &'a Vec<u8>>) -> Model {
    let mut model = Model::default();
    for payload in log {
        let (_, records) = record::Reader::open(payload).expect("a whole message");
        records.for_each(|record| model.add(record.expect("a whole record")));
    }
    model.settle()
}

/// Returns the parts of a snapshot of a log, which are short.
fn snapshot(log: &[Vec<u8>], by: u64) -> Result<Vec<Vec<u8>>, Damage> {
    let mut merge = Merge::with_part_bytes(sender(by), Sequence(log.len() as u64), SHORT);
    let mut parts = Vec::new();
    let mut emit = |part| parts.push(part);
    loop {
        log.iter().try_for_each(|payload| merge.message(payload, &mut emit))?;
        if merge.end_pass(&mut emit)? == Step::Done {
            return Ok(parts);
        }
    }
}

/// Returns parts without their heads.
fn records_of(parts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let records = |part: &Vec<u8>| {
        let (_, reader) = record::Reader::open(part).expect("a whole part");
        part[reader.position()..].to_vec()
    };
    parts.iter().map(records).collect()
}

/// Law: a log and its snapshot with the rest say the same, also if messages are repeated. Each part
/// is short, and has its records in order.
#[test]
fn snapshots_say_what_the_log_says() {
    let mut random = Random(1);
    let mut parts_most = 0;
    for round in 0..150 {
        let all: Vec<Vec<u8>> = (0..random.below(40)).map(|_| message(&mut random)).collect();
        let (mut log, mut done) = (Vec::new(), 0);
        for by in 0..3 {
            let cut = done + random.below(all.len() - done + 1);
            log.extend_from_slice(&all[done..cut]);
            done = cut;
            let parts = snapshot(&log, by).expect("whole");
            parts_most = parts_most.max(parts.len());
            let records = 200;
            assert!(parts.iter().all(|part| part.len() <= SHORT.max(records)), "parts are short");
            let again = snapshot(&parts, 9).expect("whole");
            assert_eq!(records_of(&again), records_of(&parts), "a snapshot of it is the same");
            let kept = random.below(log.len() + 1);
            log = [&log[kept..], &parts].concat();
            assert_eq!(said(&log), said(&all[..done]), "round {round}: {kept} messages purged");
        }
    }
    assert!(parts_most > 20, "{parts_most} parts at most");
}

/// Each part has its records in order, and none twice.
#[test]
fn parts_are_sorted() {
    let mut random = Random(2);
    let log: Vec<Vec<u8>> = (0..60).map(|_| message(&mut random)).collect();
    let parts = snapshot(&log, 1).expect("whole");
    let mut keys = Vec::new();
    for bytes in &parts {
        let (_, records) = record::Reader::open(bytes).expect("whole");
        for record in records {
            if let Record::Link(link) = record.expect("whole") {
                keys.push(link.fingerprint);
            }
        }
    }
    assert!(keys.len() > 10 && keys.is_sorted_by(|one, two| one < two), "{keys:?}");
}

/// A node that makes a snapshot of a log that others write to and purge.
struct Maker {
    merge: Merge,
    through: u64,
    /// The number of the last message that was read in this pass.
    position: u64,
    /// The parts that aren't in the log yet; `None` until there are all.
    parts: Option<Vec<Vec<u8>>>,
    made: Vec<Vec<u8>>,
}

impl Maker {
    fn new(by: u64, through: u64) -> Self {
        let merge = Merge::with_part_bytes(sender(by), Sequence(through), SHORT);
        Self { merge, through, position: 0, parts: None, made: Vec::new() }
    }

    /// Reads a message, appends a part, or purges. Returns whether the snapshot is over.
    fn step(&mut self, log: &mut BTreeMap<u64, Vec<u8>>, last: &mut u64) -> bool {
        if let Some(parts) = &mut self.parts {
            if parts.is_empty() {
                log.retain(|number, _| *number > self.through);
                return true;
            }
            *last += 1;
            log.insert(*last, parts.remove(0));
            return false;
        }
        let mut emit = |part| self.made.push(part);
        let mut rest = log.range(self.position + 1..);
        let next = rest.next().filter(|(number, _)| **number <= self.through);
        if let Some((number, payload)) = next {
            self.position = *number;
            self.merge.message(payload, &mut emit).expect("a whole message");
            return false;
        }
        self.position = 0;
        match self.merge.end_pass(&mut emit) {
            Ok(Step::Again) => false,
            Ok(Step::Done) => {
                self.parts = Some(std::mem::take(&mut self.made));
                false
            }
            Err(damage) => {
                assert_eq!(damage.flaw, Flaw::Missing);
                true
            }
        }
    }
}

/// Law: whatever nodes make snapshots of a log at once, and are killed meanwhile, and purge what
/// their parts say: the log says what was ever appended to it.
#[test]
fn snapshots_at_once_lose_nothing() {
    let mut met: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..300 {
        let mut random = Random(seed);
        let (mut log, mut last) = (BTreeMap::new(), 0);
        let mut makers: Vec<Maker> = Vec::new();
        let mut all = Vec::new();
        for step in 0..400 {
            match random.below(20_u8) {
                0..2 => {
                    last += 1;
                    all.push(message(&mut random));
                    log.extend(all.last().map(|payload| (last, payload.clone())));
                }
                2 if makers.len() < 3 => makers.push(Maker::new(step, last)),
                3 if random.one_in(5) && !makers.is_empty() => {
                    makers.swap_remove(random.below(makers.len()));
                    *met.entry("killed").or_default() += 1;
                }
                _ if makers.is_empty() => {}
                _ => {
                    let at = random.below(makers.len());
                    let before = log.len();
                    if makers[at].step(&mut log, &mut last) {
                        let is_purged = log.len() < before;
                        let what = if is_purged { "purged" } else { "given up" };
                        *met.entry(what).or_default() += 1;
                        let others = makers.iter().filter(|maker| maker.parts.is_some()).count();
                        *met.entry("at once").or_default() += u32::from(others > 1);
                        makers.swap_remove(at);
                    }
                }
            }
            if step % 10 == 0 || step == 399 {
                assert_eq!(said(log.values()), said(&all), "seed {seed}, step {step}");
            }
        }
    }
    for what in ["killed", "purged", "given up", "at once"] {
        assert!(met.get(what).is_some_and(|times| *times > 30), "{what} is rare: {met:?}");
    }
}

/// Law: damaged messages are reported or say something else, and never panic.
#[test]
fn damaged_messages_are_reported() {
    let mut random = Random(6);
    let mut reported = 0;
    for _ in 0..2_000 {
        let mut log: Vec<Vec<u8>> = (0..30).map(|_| message(&mut random)).collect();
        let parts = snapshot(&log, 1).expect("whole");
        log = if random.one_in(2) { log[..3].to_vec() } else { parts };
        let index = random.below(log.len());
        let at = random.below(log[index].len());
        match random.below(3_u8) {
            0 => log[index].truncate(at),
            1 => log[index][at] = random.word() as u8,
            _ => log[index].iter_mut().skip(at).for_each(|byte| *byte = random.word() as u8),
        }
        match snapshot(&log, 2) {
            Err(damage) => {
                let is_there = (damage.message as usize) < log.len();
                assert!(is_there || damage.flaw == Flaw::Missing, "{damage}");
                reported += 1;
            }
            Ok(parts) => assert_eq!(said(&parts), said(&log)),
        }
    }
    assert!(reported > 500, "{reported}");
}

/// Parts have the lengths that the head of the file states, and a merge keeps none of the old ones.
#[test]
fn a_large_snapshot_is_merged_part_by_part() {
    let mut random = Random(7);
    let mut message = |count: u32| {
        let (mut records, mut payload) = (Records::new(), Vec::new());
        let mut all: Vec<_> = (0..count).map(|_| Fingerprint(random.word())).collect();
        records.settled(&mut all);
        sender(1).put(&mut payload);
        records.iter().for_each(|record| payload.extend_from_slice(record));
        payload
    };
    let merged = |log: &[Vec<u8>]| {
        let mut merge = Merge::new(sender(1), Sequence(1));
        let (mut parts, mut bytes) = (Vec::new(), 0);
        loop {
            for payload in log {
                merge.message(payload, &mut |part| parts.push(part)).expect("whole");
                bytes = bytes.max(merge.bytes());
            }
            if merge.end_pass(&mut |part| parts.push(part)).expect("whole") == Step::Done {
                return (parts, bytes);
            }
        }
    };
    let (old, _) = merged(&[message(1_000_000)]);
    let bytes: usize = old.iter().map(Vec::len).sum();
    assert!((5_900_000..6_200_000).contains(&bytes), "{bytes} bytes for 10^6 settled URLs");
    assert!(old.iter().all(|part| part.len() <= PART_BYTES) && old.len() < 30, "{}", old.len());
    let (parts, bytes) = merged(&[old, vec![message(1_000)]].concat());
    assert_eq!((parts.len() > 20, bytes), (true, 8_000), "only the news are kept");
    let (parts, _) = merged(&[message(100_000)]);
    let bytes: usize = parts.iter().map(Vec::len).sum();
    assert!((690_000..720_000).contains(&bytes), "{bytes} bytes for 10^5 settled URLs");
}

/// What a merge keeps of facts counts for its limit, each of them once.
#[test]
fn facts_take_memory() {
    let (mut records, mut payload) = (Records::new(), Vec::new());
    (0..100).for_each(|number| records.fact("a.test", &format!("{number:02}.test")));
    sender(1).put(&mut payload);
    records.iter().for_each(|record| payload.extend_from_slice(record));
    let mut merge = Merge::new(sender(1), Sequence(2));
    for _ in 0..2 {
        merge.message(&payload, &mut |_| ()).expect("whole");
        assert_eq!(merge.bytes(), 100 * (80 + 6 + 7));
    }
}

#[test]
fn a_snapshot_is_due_by_length() {
    const MIB: u64 = 1 << 20;
    let cases = [
        (0, 0, false, "nothing"),
        (4 * MIB - 1, 0, false, "a short log"),
        (4 * MIB, 0, true, "the first snapshot"),
        (4 * MIB, 9 * MIB, false, "less than half of the old one"),
        (5 * MIB, 9 * MIB, true, "more than half"),
        (63 * MIB, 1_000 * MIB, false, "a large old one"),
        (64 * MIB, 1_000 * MIB, true, "as much as a merge should hold"),
    ];
    for (log, snapshot, expected, why) in cases {
        assert_eq!(is_due(log, snapshot, 4 * MIB), expected, "{why}");
    }
}
