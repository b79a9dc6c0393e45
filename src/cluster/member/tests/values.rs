//! The bytes of entries.

use super::super::settings::Settings;
use super::super::value::{CrawlValue, Idleness, NodeValue, PartitionValue, Session, State};
use crate::cluster::Partition;
use crate::cluster::member::{Change, Member};
use crate::cluster::queue::{Entry, Key, Name, Revision, WriteFailure};
use crate::ground::random::Random;
use crate::ground::time::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

fn session(name: &str, number: u64) -> Session {
    Session { name: Name::new(name).expect("a name"), number }
}

fn crawl() -> CrawlValue {
    let settings = Settings {
        key: [7; 16],
        partitions: 1_024,
        ttl: Duration::from_secs(30),
        drift_ppm: 500,
        settle: Duration::from_secs(60),
        equal: vec![("scope".into(), "example.org".into()), ("user-agent".into(), "".into())],
    };
    CrawlValue { settings, roll: vec![session("a", 1), session("node-17", u64::MAX)] }
}

fn node(state: State) -> NodeValue {
    NodeValue {
        incarnation: u64::MAX - 1,
        number: 3,
        lineage: 2,
        state,
        counter: 1 << 40,
        roll: Revision(17),
        settled: Revision(0),
        idleness: Idleness { period: 5, confirmed: u64::MAX - 2, is_over: true },
    }
}

fn owned() -> PartitionValue {
    PartitionValue::Owned { owner: session("b", 300), since: Revision(99) }
}

#[test]
fn values_are_read_as_they_were_written() {
    assert_eq!(CrawlValue::decode(&crawl().encode()), Ok(crawl()));
    for state in [State::Joining, State::Active, State::Leaving, State::Left, State::Over] {
        assert_eq!(NodeValue::decode(&node(state).encode()), Ok(node(state)));
    }
    for value in [PartitionValue::Free, owned()] {
        assert_eq!(PartitionValue::decode(&value.encode()), Ok(value));
    }
}

/// Law: decoding never panics, and what it accepts is what encoding writes (a number may be longer
/// than it need be). Half of the bytes are random, half are values with some bytes changed.
#[test]
fn any_bytes_are_a_value_or_none() {
    let mut random = Random(3);
    let samples = [crawl().encode(), node(State::Active).encode(), owned().encode()];
    let mut accepted = [0; 3];
    for round in 0..60_000 {
        let mut bytes: Vec<u8> = if round % 2 == 0 {
            (0..random.below(40)).map(|_| random.word() as u8 & random.word() as u8).collect()
        } else {
            samples[round / 2 % 3].to_vec()
        };
        for _ in 0..random.below(3) {
            let at = random.below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.word() as u8;
            }
        }
        bytes.truncate(bytes.len() - random.below(2).min(bytes.len()));
        if let Ok(value) = CrawlValue::decode(&bytes) {
            assert_eq!(CrawlValue::decode(&value.encode()), Ok(value));
            accepted[0] += 1;
        }
        if let Ok(value) = NodeValue::decode(&bytes) {
            assert_eq!(NodeValue::decode(&value.encode()), Ok(value));
            accepted[1] += 1;
        }
        if let Ok(value) = PartitionValue::decode(&bytes) {
            assert_eq!(PartitionValue::decode(&value.encode()), Ok(value));
            accepted[2] += 1;
        }
    }
    assert!(accepted.iter().all(|count| *count > 500), "{accepted:?}");
}

/// Entries of all kinds with values of all kinds, many of them damaged: a member survives them, and
/// never writes an entry that it can't read.
#[test]
fn any_entries_do_no_harm() {
    let mut random = Random(4);
    for _ in 0..40 {
        let settings = Settings { partitions: 4, ..crawl().settings };
        let name = Name::new("a").expect("a name");
        let mut member = Member::new(settings.clone(), name, 1, Some(u64::MAX - 1));
        let crawl = CrawlValue { settings, ..crawl() };
        let mut now = Instant::ZERO;
        let mut damaged = BTreeSet::new();
        member.connected(now);
        for revision in 1..400 {
            now = now + Duration::from_millis(random.below(2_000));
            let key = match random.below(6) {
                0 => Key::Crawl,
                1 | 2 => Key::Node(Name::new(random.pick(&["a", "b"])).expect("a name")),
                _ => Key::Partition(Partition::new(random.below(6)).expect("a partition")),
            };
            let state = random.pick(&[State::Joining, State::Active, State::Left, State::Over]);
            let mut value = match key {
                Key::Crawl => crawl.encode(),
                Key::Node(_) => NodeValue { number: random.below(9), ..node(state) }.encode(),
                Key::Partition(_) => owned().encode(),
                Key::Report(_) | Key::Orders => unreachable!("not the member's"),
            };
            if random.one_in(8) {
                let at = random.below(value.len());
                value[at] = random.word() as u8;
            }
            damaged.remove(&key);
            member.entry(now, &Entry { key, revision: Revision(revision), value });
            member.expired(now);
            while let Some(change) = member.next_change() {
                if let Change::Damaged { key } = change {
                    damaged.insert(key);
                }
            }
            while let Some(write) = member.next_write(now) {
                assert!(!damaged.contains(&write.key), "{write:?}");
                let failures = [WriteFailure::Conflict, WriteFailure::Unknown];
                member.wrote(now, write.id, Err(random.pick(&failures)));
            }
        }
    }
}

#[test]
fn a_difference_is_named() {
    let own = crawl().settings;
    assert_eq!(own.difference(&own), None);
    let key = Settings { key: [0; 16], ..own.clone() };
    assert_eq!(own.difference(&key), None, "the crawl's key is taken");
    let settle = Settings { settle: Duration::from_secs(1), ..own.clone() };
    let difference = own.difference(&settle).expect("another time");
    let named = [&*difference.setting, &*difference.own, &*difference.crawl];
    assert_eq!(named, ["settling time", "60s", "1s"]);
    let less = Settings { equal: own.equal[..1].to_vec(), ..own.clone() };
    let scope = Settings { equal: vec![("scope".into(), "example.com".into())], ..own.clone() };
    for (crawl, setting) in [(less, "user-agent"), (scope, "scope")] {
        let difference = own.difference(&crawl).expect("another setting");
        assert_eq!(&*difference.setting, setting);
        assert_eq!(crawl.difference(&own).expect("the same").setting, difference.setting);
    }
}
