//! Records of servers: found by their origins, bound to the groups they need, small, and restored
//! from a snapshot as they were.

use super::*;
use crate::ground::codec::Take;
use std::collections::BTreeSet;

const AHEAD_US: u64 = 1 << 50;

/// The calendar beside the monotonic clock, so many microseconds ahead of it.
fn calendar(at: Instant, ahead_us: u64) -> Now {
    Now { at, unix: UnixTime::from_micros(ahead_us + at.as_micros()) }
}

impl Pair {
    fn records(&self, now: Now) -> Vec<(ServerId, Vec<u8>)> {
        let record = |id: &ServerId| {
            let mut bytes = Vec::new();
            let (_, host_next) = self.scheduler.host_clock(*id);
            self.scheduler.put_record(*id, host_next, now, &mut bytes);
            (*id, bytes)
        };
        self.ids.iter().map(record).collect()
    }

    /// Takes a snapshot and restores it.
    fn restore(mut self) -> Self {
        let began = calendar(self.now, AHEAD_US);
        let records = self.records(began);
        let was_clean = self.random.below(2) == 0;
        let passed_us = self.random.pick([0, 3_000, 700_000, 5_000_000, 1 << 45]);
        let jump_us = if self.random.below(3) == 0 { 20_000_000 } else { 0 };
        let at = Instant::from_micros(self.random.below(1_000) as u64);
        let unix = began.unix.as_micros() + passed_us - jump_us;
        let now = Now { at, unix: UnixTime::from_micros(unix) };
        self.scheduler = Scheduler::new(self.model.settings.clone());
        self.waits = Waits::new(&self.model.settings, Checks::Both);
        for (id, bytes) in records {
            let mut take = Take::new(&bytes);
            self.scheduler.restore_record(&mut take, now).expect("just written");
            assert!(take.is_empty());
            assert!(url(id.index()).starts_with(self.scheduler.origin(id).as_str()));
        }
        let (model, known) = (&self.model, self.ids.len());
        // Before its records are restored, what counts of a queue is not known.
        let waiting = |id: ServerId| model.waiting(id.index(), model.counted(id.index()));
        self.scheduler.restored(known, was_clean, now, waiting).expect("all are there");
        self.model.restore(began, now, was_clean, known);
        self.now = now.at;
        self
    }
}

fn comes_back(policy: Policy) {
    for seed in 1..=40 {
        println!("the history of seed {seed}, {policy:?}");
        let share_milli = if seed > 30 { 300 } else { 0 };
        let mut pair = Pair::with_share(seed, policy, share_milli, Checks::Both);
        for _ in 0..3 {
            for _ in 0..pair.random.below(400) {
                pair.step();
            }
            pair = pair.restore();
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
fn snapshots_are_restored_under_each_policy() {
    Policy::ALL.into_iter().for_each(comes_back);
}

/// Law: damaged records are errors, and never a panic; missing and repeated ones are noticed.
#[test]
fn damaged_records_are_errors() {
    let mut pair = Pair::new(3, Policy::Capability);
    (0..900).for_each(|_| pair.step());
    let now = calendar(pair.now, AHEAD_US);
    let records = pair.records(now);
    let new = || Scheduler::new(pair.model.settings.clone());
    for (_, bytes) in &records {
        for cut in 0..bytes.len() {
            assert!(new().restore_record(&mut Take::new(&bytes[..cut]), now).is_err());
        }
        for _ in 0..200 {
            let mut bytes = bytes.clone();
            let any = pair.random.below(bytes.len());
            bytes[any] = u8::try_from(pair.random.below(256)).expect("a byte");
            let mut scheduler = new();
            if scheduler.restore_record(&mut Take::new(&bytes), now).is_ok() {
                let number = pair.random.below(3);
                let waiting = Waiting { urls: 1, at_hand: true, best_sum: 1 };
                let restored = scheduler.restored(number, false, now, |_| waiting);
                assert_eq!(restored.is_ok(), number == 1);
            }
        }
    }
    let mut scheduler = new();
    for (_, bytes) in records.iter().skip(1).chain(&records[..1]) {
        assert!(scheduler.restored(records.len(), true, now, |_| Waiting::default()).is_err());
        assert!(scheduler.restore_record(&mut Take::new(bytes), now).is_ok());
        assert!(scheduler.restore_record(&mut Take::new(bytes), now).is_err(), "known");
    }
    assert!(scheduler.restored(records.len(), true, now, |_| Waiting::default()).is_ok());
}

/// Law: a server is found by its origin, whichever server of its host was the first; servers of one
/// host share its group, others don't.
#[test]
fn origins_agree_with_a_map() {
    let settings = Settings { domain_visits_max: 0, servers_max: 9, ..Settings::default() };
    let mut scheduler = Scheduler::new(settings);
    let mut known: BTreeMap<String, ServerId> = BTreeMap::new();
    let mut random = Random(0x1234_5678);
    for _ in 0..30_000 {
        let scheme = random.pick(["http", "https"]);
        let host = random.pick(["a", "b.c", "[::1]", "host"]);
        let host =
            if random.below(2) == 0 { host.into() } else { format!("h{}", random.below(20_000)) };
        let port = if random.below(3) == 0 {
            String::new()
        } else {
            format!(":{}", 81 + random.below(90))
        };
        let text = format!("{scheme}://{host}{port}/x");
        let url = UrlRef::from_canonical(text.as_bytes()).expect("canonical");
        let expected = known.get(url.origin()).copied();
        assert_eq!(scheduler.find(url), expected, "{text}");
        assert_eq!(scheduler.has_room_for(url), known.len() < 9 || expected.is_some());
        let found = scheduler.server_of(url);
        assert_eq!(found, expected.unwrap_or(ServerId::from_index(known.len())), "{text}");
        assert_eq!(scheduler.origin(found).as_str(), url.origin());
        known.insert(url.origin().to_owned(), found);
        assert_eq!(scheduler.servers(), known.len());
    }
    let mut hosts: BTreeMap<&str, Vec<ServerId>> = BTreeMap::new();
    for id in known.values() {
        hosts.entry(scheduler.origin(*id).host()).or_default().push(*id);
    }
    let host_of = |id: &ServerId| scheduler.host_clock(*id).0;
    let mut groups: Vec<_> = hosts.values().map(|ids| host_of(&ids[0])).collect();
    for (ids, group) in hosts.values().zip(&groups) {
        assert_eq!(group.is_some(), ids.len() > 1, "alone at its host it needs no group");
        assert!(ids.iter().all(|id| host_of(id) == *group));
    }
    groups.retain(Option::is_some);
    let all = groups.len();
    groups.sort_unstable();
    groups.dedup();
    assert!(groups.len() == all && all < hosts.len(), "{all} of {}", hosts.len());
}

/// Law: a domain is a group from its second server on if only a cap is set, from the first on if it
/// rests after a visit, and never if neither is set.
#[test]
fn domains_are_groups_if_they_can_hold_a_server_back() {
    let second = Duration::from_secs(1);
    for (cap, delay, expected) in [
        (0, Duration::ZERO, [0, 0, 0]),
        (2, Duration::ZERO, [0, 1, 1]),
        (0, second, [1, 1, 2]),
        (2, second, [1, 1, 2]),
    ] {
        let settings =
            Settings { domain_visits_max: cap, domain_delay: delay, ..Settings::default() };
        let mut scheduler = Scheduler::new(settings);
        let met = ["http://a.x.com/", "http://b.x.com/", "http://a.y.com/"].map(|url| {
            scheduler.server_of(UrlRef::from_canonical(url.as_bytes()).expect("canonical"));
            let groups = scheduler.servers.iter().filter_map(|server| server.groups[1]);
            groups.collect::<BTreeSet<_>>().len()
        });
        assert_eq!(met, expected, "cap {cap}, delay {delay:?}");
    }
}

#[test]
fn a_record_is_small() {
    assert_eq!(size_of::<Server>(), 64);
}
