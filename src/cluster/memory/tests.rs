//! Tests the memory of a partition against plain maps, with random logs that are cut anywhere.

use super::*;
use crate::cluster::Partition;
use crate::cluster::queue::{Name, Sequence};
use crate::cluster::record::{Link, Record, Records, Sender};
use crate::ground::random::Random;
use crate::ground::time::UnixTime;
use crate::url::Fingerprint;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Short parts, so that a snapshot has many.
const SHORT: usize = 300;

/// What is known of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    settled: BTreeSet<u64>,
    tries: BTreeMap<u64, u8>,
    links: BTreeMap<u64, (String, u16)>,
    facts: BTreeSet<(String, String)>,
    waits: BTreeMap<String, UnixTime>,
    retired: BTreeMap<String, String>,
}

impl Model {
    fn add(&mut self, record: Record<'_>) {
        match record {
            Record::Link(Link { fingerprint, url, depth, .. }) => {
                self.links.entry(fingerprint.0).or_insert_with(|| (url.to_owned(), depth));
            }
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
            Record::Retired { origin, cause } => {
                self.retired.entry(origin.to_owned()).or_insert_with(|| cause.to_owned());
            }
        }
    }

    /// Drops the links and tries of what is settled.
    fn settle(mut self) -> Self {
        self.links.retain(|key, _| !self.settled.contains(key));
        self.tries.retain(|key, _| !self.settled.contains(key));
        self
    }
}

fn partition() -> Partition {
    Partition::new(3).expect("there is one")
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
    let sender = Sender { name: Name::new("a").expect("a name"), incarnation: random.word() };
    let mut payload = Vec::new();
    sender.put(&mut payload);
    records.iter().for_each(|record| payload.extend_from_slice(record));
    payload
}

fn expected(log: &[Vec<u8>]) -> Model {
    let mut model = Model::default();
    for payload in log {
        let (_, records) = record::Reader::open(payload).expect("a whole message");
        records.for_each(|record| model.add(record.expect("a whole record")));
    }
    model.settle()
}

/// Merges with short parts.
fn snapshot(old: &[Vec<u8>], log: &[Vec<u8>], sequence: u64) -> Result<Vec<Vec<u8>>, Damage> {
    let mut merge = Merge::with_part_bytes(partition(), Sequence(sequence), SHORT);
    log.iter().try_for_each(|payload| merge.message(payload))?;
    let mut merging = merge.begin();
    let mut parts = Vec::new();
    let mut emit = |part| parts.push(part);
    old.iter().try_for_each(|part| merging.part(part, &mut emit))?;
    merging.finish(&mut emit)?;
    Ok(parts)
}

/// Replays a snapshot and messages within small random budgets.
fn replay(parts: &[Vec<u8>], log: &[Vec<u8>], random: &mut Random) -> Result<Model, Damage> {
    let mut model = Model::default();
    let mut replay = Replay::new(partition());
    let mut links = Vec::new();
    for pass in 1..=2 {
        for (index, bytes) in parts.iter().chain(log).enumerate() {
            let is_part = index < parts.len();
            let mut cursor = if is_part { replay.part(bytes) } else { replay.message(bytes) }?;
            while !cursor.is_at_end(bytes) {
                let budget = 1 + random.below(200_usize);
                if pass == 1 {
                    let known = replay.known(bytes, &mut cursor, budget);
                    known.into_iter().try_for_each(|record| record.map(|it| model.add(it)))?;
                } else {
                    for link in replay.links(bytes, &mut cursor, budget) {
                        links.push((link?.fingerprint.0, bytes.clone()));
                        model.add(Record::Link(link?));
                    }
                }
            }
        }
        if pass == 1 {
            replay.begin_second()?;
        }
    }
    let all = links.iter().all(|(key, _)| !model.settled.contains(key));
    assert!(all, "law: a link that is settled is not replayed");
    Ok(model.settle())
}

/// Law: a log and any snapshots of its beginnings with the rest say the same, also if messages are
/// repeated.
#[test]
fn snapshots_say_what_the_log_says() {
    let mut random = Random(1);
    let mut parts_most = 0;
    for _ in 0..150 {
        let log: Vec<Vec<u8>> = (0..random.below(40)).map(|_| message(&mut random)).collect();
        let expected = expected(&log);
        assert_eq!(replay(&[], &log, &mut random).expect("whole"), expected, "the log");
        let (mut parts, mut done) = (Vec::new(), 0);
        for _ in 0..3 {
            let cut = done + random.below(log.len() - done + 1);
            // Messages that the old snapshot has already.
            let again = random.below(done + 1);
            parts = snapshot(&parts, &log[again..cut], cut as u64).expect("whole");
            done = cut;
            parts_most = parts_most.max(parts.len());
            let records = 200;
            assert!(parts.iter().all(|part| part.len() <= SHORT.max(records)), "parts are short");
            let again = random.below(done + 1);
            let found = replay(&parts, &log[again..], &mut random).expect("whole");
            assert_eq!(found, expected, "a snapshot of {done} and the messages from {again}");
        }
        let same = snapshot(&parts, &[], done as u64).expect("whole");
        assert_eq!(same, parts, "merging nothing changes nothing");
        let twice = snapshot(&parts, &log[..done], done as u64).expect("whole");
        assert_eq!(twice, parts, "merging what is known changes nothing");
    }
    assert!(parts_most > 20, "{parts_most} parts at most");
}

/// Each part and message has its records in order, and none twice.
#[test]
fn parts_are_sorted() {
    let mut random = Random(2);
    let log: Vec<Vec<u8>> = (0..60).map(|_| message(&mut random)).collect();
    let parts = snapshot(&[], &log, 60).expect("whole");
    let mut keys = Vec::new();
    for bytes in &parts {
        for record in record::Reader::resume(bytes, part::HEAD_BYTES) {
            if let Record::Link(link) = record.expect("whole") {
                keys.push(link.fingerprint);
            }
        }
    }
    assert!(keys.len() > 10 && keys.is_sorted_by(|one, two| one < two), "{keys:?}");
}

/// Law: a part with a changed bit, a missing one, one that is repeated or comes from another
/// snapshot is reported with its number.
#[test]
fn damaged_parts_are_reported() {
    let mut random = Random(3);
    let log: Vec<Vec<u8>> = (0..30).map(|_| message(&mut random)).collect();
    let parts = snapshot(&[], &log, 30).expect("whole");
    assert!(parts.len() > 4);
    let report = |parts: &[Vec<u8>]| {
        let replayed = replay(parts, &[], &mut Random(4)).expect_err("damaged");
        let merged = snapshot(parts, &[], 30).expect_err("damaged");
        assert_eq!(replayed, merged);
        let Source::Part(number) = merged.source else { panic!("{merged}") };
        assert!(merged.to_string().contains(&format!("part {number} of")), "{merged}");
        (number as usize, merged.flaw)
    };
    for _ in 0..500 {
        let mut changed = parts.clone();
        let index = random.below(parts.len());
        let at = random.below(parts[index].len());
        match random.below(5_u8) {
            0 => changed[index].truncate(at),
            1 => changed[index].push(0),
            _ => changed[index][at] ^= 1 << random.below(8),
        }
        let (number, flaw) = report(&changed);
        assert_eq!(number, index);
        assert!(matches!(flaw, Flaw::Frame(_)), "{flaw}");
    }
    let other = snapshot(&[], &log, 31).expect("whole");
    for index in 1..parts.len() - 1 {
        let mut changed = parts.clone();
        changed[index] = other[index].clone();
        assert_eq!(report(&changed), (index, Flaw::Foreign), "of another snapshot");
        changed = parts.clone();
        changed.swap(index, index - 1);
        assert_eq!(report(&changed), (index - 1, Flaw::Foreign), "out of turn");
        assert_eq!(report(&parts[..index]), (index, Flaw::Missing), "cut");
    }
    let more = [parts.clone(), vec![parts[0].clone()]].concat();
    assert_eq!(report(&more), (parts.len(), Flaw::Foreign), "after the last");
    let lone = replay(&parts[..1], &log[..1], &mut random).expect_err("cut");
    assert_eq!(lone.source, Source::Part(1), "a message before the last part");
}

/// Law: damaged messages are reported or say something else, and never panic.
#[test]
fn damaged_messages_are_reported() {
    let mut random = Random(6);
    let mut reported = 0;
    for _ in 0..2_000 {
        let mut log: Vec<Vec<u8>> = (0..3).map(|_| message(&mut random)).collect();
        let at = random.below(log[1].len());
        match random.below(3_u8) {
            0 => log[1].truncate(at),
            1 => log[1][at] = random.word() as u8,
            _ => log[1].iter_mut().skip(at).for_each(|byte| *byte = random.word() as u8),
        }
        let (replayed, merged) = (replay(&[], &log, &mut random), snapshot(&[], &log, 3));
        match (replayed, merged) {
            (Err(one), Err(two)) => {
                assert_eq!((one, one.source), (two, Source::Message(1)));
                assert!(one.to_string().contains("message 1 of"), "{one}");
                reported += 1;
            }
            (Ok(model), Ok(parts)) => {
                assert_eq!(replay(&parts, &[], &mut random).expect("whole"), model);
            }
            (one, two) => panic!("{one:?} but {two:?}"),
        }
    }
    assert!(reported > 500, "{reported}");
}

/// A part that counts how many of its kind are held.
struct Counted<'a>(&'a Cell<[usize; 2]>, Vec<u8>);

impl<'a> Counted<'a> {
    fn new(held: &'a Cell<[usize; 2]>, bytes: Vec<u8>) -> Self {
        let [now, most] = held.get();
        held.set([now + 1, most.max(now + 1)]);
        Self(held, bytes)
    }
}

impl AsRef<[u8]> for Counted<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.1
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let [now, most] = self.0.get();
        self.0.set([now - 1, most]);
    }
}

/// A merge holds at most two old parts at a time, and parts have the lengths that the head of the
/// file states.
#[test]
fn a_large_snapshot_is_merged_part_by_part() {
    let mut random = Random(7);
    let sender = Sender { name: Name::new("a").expect("a name"), incarnation: 1 };
    let mut message = |count: u32| {
        let (mut records, mut payload) = (Records::new(), Vec::new());
        let mut all: Vec<_> = (0..count).map(|_| Fingerprint(random.word())).collect();
        records.settled(&mut all);
        sender.put(&mut payload);
        records.iter().for_each(|record| payload.extend_from_slice(record));
        payload
    };
    let merged = |old: Vec<Counted<'_>>, message: &[u8]| {
        let mut parts = Vec::new();
        merge(partition(), Sequence(1), old, [message], |part| parts.push(part)).expect("whole");
        parts
    };
    let large = message(1_000_000);
    let old = merged(Vec::new(), &large);
    let bytes: usize = old.iter().map(Vec::len).sum();
    assert!((5_900_000..6_200_000).contains(&bytes), "{bytes} bytes for 10^6 settled URLs");
    assert!(old.iter().all(|part| part.len() <= PART_BYTES) && old.len() < 30, "{}", old.len());
    let held = Cell::new([0; 2]);
    let news = message(1_000);
    let mut parts = Vec::new();
    let fetched = old.iter().map(|part| Counted::new(&held, part.clone()));
    merge(partition(), Sequence(2), fetched, [&news], |part| parts.push(part)).expect("whole");
    assert!(held.get() == [0, 1], "{:?} old parts held", held.get());
    assert!(parts.len() > 20);
    let bytes: usize = merged(Vec::new(), &message(100_000)).iter().map(Vec::len).sum();
    assert!((690_000..720_000).contains(&bytes), "{bytes} bytes for 10^5 settled URLs");
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
        assert_eq!(is_due(log, snapshot), expected, "{why}");
    }
}
