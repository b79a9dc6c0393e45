//! Ends of queues on disk, where the histories don't lead: long URLs, damaged segments, bounds.

use super::*;
use crate::frame::{Error, Flaw};
use std::collections::BTreeMap;

fn settings(policy: Policy, memory_bytes: usize) -> Settings {
    Settings {
        schedule: policy::Settings { policy, ..policy::Settings::default() },
        delay: Duration::ZERO,
        delay_factor_milli: 0,
        domain_visits_max: 0,
        memory_bytes,
        crawl: Some(7),
        ..Settings::default()
    }
}

fn add(frontier: &mut Frontier, host: u32, item: Item) {
    let url = format!("http://h{host}.test{}", item.target);
    let url = UrlRef::from_canonical(url.as_bytes()).expect("canonical");
    assert!(matches!(frontier.add(url, item, Instant::ZERO), Added::Queued(_)));
}

/// A job is done, or some of what the last one has read is taken in; `false` if there is neither.
pub(super) fn work(frontier: &mut Frontier, disk: &Memory, now: Instant) -> Result<bool, Error> {
    if frontier.has_read() {
        frontier.take_in(now)?;
        return Ok(true);
    }
    // One of few reads may be held back.
    let job = (0..16).find_map(|_| frontier.job(disk));
    job.map_or(Ok(false), |job| frontier.worked(job.run()).map(|()| true))
}

/// Takes all URLs out, by visits of one; jobs are done as they come.
fn take_all(frontier: &mut Frontier, disk: &mut Memory) -> Result<Vec<Item>, Error> {
    let (mut items, mut now) = (Vec::new(), Instant::from_micros(1));
    loop {
        now = now + Duration::from_micros(1);
        frontier.write(false, disk)?;
        if !work(frontier, disk, now)? && frontier.urls() == 0 {
            return Ok(items);
        }
        while let Some(id) = frontier.next(now) {
            items.extend(frontier.take(id));
            frontier.finish(id, &Visit::new(1, now, now), now);
        }
    }
}

/// The same, by server.
fn take_all_of_each(frontier: &mut Frontier, disk: &mut Memory) -> BTreeMap<ServerId, Vec<Item>> {
    let (mut found, mut now) = (BTreeMap::<_, Vec<_>>::new(), Instant::from_micros(1));
    while frontier.urls() > 0 {
        now = now + Duration::from_micros(1);
        frontier.write(false, disk).expect("there is room");
        work(frontier, disk, now).expect("the disk is whole");
        while let Some(id) = frontier.next(now) {
            found.entry(id).or_default().extend(frontier.take(id));
            frontier.finish(id, &Visit::new(1, now, now), now);
        }
    }
    found
}

/// A place tells lengths up to 64 KiB only.
#[test]
fn the_longest_urls_go_to_the_disk_and_come_back() {
    for policy in Policy::ALL {
        let mut frontier = Frontier::new(settings(policy, 0));
        let mut disk = Memory::default();
        let mut expected = Vec::new();
        for number in 0..40 {
            let len = [10, 700, 65_000][number as usize % 3];
            let target = format!("/{number}/{}", "x".repeat(len)).into();
            let via = Some(format!("http://via.test/{number}{}", "y".repeat(len)).into());
            let item = Item { target, via, ..item(number, 5, None) };
            expected.push(item.clone());
            add(&mut frontier, 0, item);
        }
        let found = take_all(&mut frontier, &mut disk).expect("the disk is whole");
        let mut found: Vec<Item> =
            found.into_iter().map(|item| Item { arrival: 0, ..item }).collect();
        if policy.is_by_quality() {
            // They are of one band.
            found.sort_by_key(number_at_front);
        }
        assert!(found == expected, "{policy:?}");
    }
}

fn number_at_front(item: &Item) -> u32 {
    let digits = item.target[1..].split('/').next();
    digits.and_then(|digits| digits.parse().ok()).expect("targets begin with numbers")
}

/// Law: in whatever order URLs lie in a chunk, by quality none comes out before one of its server
/// that is of a better band.
#[test]
fn a_chunk_in_no_order_hides_no_better_url() {
    let mut unsorted = 0;
    for seed in 1..=300 {
        let mut random = Random(seed);
        let policy = random.pick([Policy::Quality, Policy::Capability]);
        // Tails are cut before they are overlong.
        let settings = settings(policy, 1_000 + random.below(700));
        let (mut frontier, mut disk) = (Frontier::new(settings), Memory::default());
        let urls = 40 + random.below(100) as u32;
        for number in 0..urls {
            let quality = random.pick([0, 20, 1_000, 60_000, 500_000, 3_000_000]);
            let item = Item { via: None, ..item(number, quality, None) };
            add(&mut frontier, random.below(6) as u32, item);
        }
        unsorted += frontier.spill.as_ref().map_or(0, |spill| spill.seen.unsorted);
        let found = take_all_of_each(&mut frontier, &mut disk);
        for items in found.values() {
            let bands: Vec<_> = items.iter().map(|item| item.written().band()).collect();
            assert!(bands.is_sorted_by(|one, next| one >= next), "{policy:?} {seed}: {bands:?}");
        }
        let found: usize = found.values().map(Vec::len).sum();
        assert_eq!(found, urls as usize, "none is lost");
    }
    assert!(unsorted > 200, "chunks of some URLs in no order: {unsorted}");
}

/// A changed bit is told, with the file and the place, or it lies in what is dead.
#[test]
fn a_damaged_segment_is_told() {
    let mut told = 0;
    for seed in 1..=150 {
        let mut random = Random(seed);
        let policy = Policy::ALL[seed as usize % 4];
        let mut frontier = Frontier::new(settings(policy, 2_000));
        let mut disk = Memory::default();
        for number in 0..120 {
            let quality = random.pick([0, 1_000, 500_000, 3_000_000]);
            add(&mut frontier, random.below(4) as u32, item(number, quality, None));
        }
        frontier.write(true, &mut disk).expect("there is room");
        let names = disk.names();
        let name = &names[random.below(names.len())];
        let mut bytes = disk.bytes(name);
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
        let is_cut = random.below(4) == 0;
        if is_cut {
            bytes.truncate(at);
        }
        disk.remove(name).expect("it is there");
        disk.append(name, &bytes).expect("there is room");
        match take_all(&mut frontier, &mut disk) {
            Ok(items) => assert_eq!(items.len(), 120),
            Err(Error::Damaged(damage)) => {
                assert!(damage.name == *name && (is_cut || damage.offset <= at as u64), "{damage}");
                assert!(matches!(damage.flaw, Flaw::Changed | Flaw::Cut), "{damage}");
                told += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(told > 100, "{told}");
}

/// Law: memory keeps to its bound but for the heads of queues; the disk to a factor of what is
/// alive once checkpoints let go of what is dead.
#[test]
fn memory_and_disk_keep_to_their_bounds() {
    for policy in Policy::ALL {
        let mut random = Random(77);
        let mut frontier = Frontier::new(settings(policy, 30_000));
        let mut disk = Memory::default();
        let mut now = Instant::from_micros(1);
        let (mut written, mut most) = (0, 0);
        for number in 0..6_000 {
            let host = random.below(20) as u32 * random.below(2) as u32;
            let quality = random.pick([0, 1_000, 500_000, 3_000_000]);
            add(&mut frontier, host, item(number, quality, None));
            let heads = 20 * 1_000;
            assert!(frontier.memory_bytes() < 30_000 + heads, "{}", frontier.memory_bytes());
            now = now + Duration::from_micros(1);
            frontier.write(false, &mut disk).expect("there is room");
            if random.below(3) == 0
                && let Some(id) = frontier.next(now)
            {
                frontier.take(id);
                frontier.finish(id, &Visit::new(1, now, now), now);
            }
            work(&mut frontier, &disk, now).expect("the disk is whole");
            if number % 500 == 0 {
                frontier.begin_snapshot(Vec::new(), crate::time::Now::default());
                frontier.mark(&mut disk).expect("there is room");
                while !frontier.snapshot_some(1 << 20, &mut Vec::new()) {}
                for name in frontier.settled() {
                    disk.remove(&name).expect("it was written");
                }
                let live = frontier.disk_bytes().1;
                assert!(disk.used() < 6 * live + 20_000, "{} for {live}", disk.used());
                (written, most) = (written.max(disk.used()), most.max(frontier.urls()));
            }
        }
        assert!(written > 50_000 && most > 3_000, "{policy:?}: {written}, {most}");
        let left = frontier.urls();
        assert_eq!(take_all(&mut frontier, &mut disk).expect("whole").len(), left);
    }
}

/// Law: chunks that come back for many servers at once make room for themselves.
#[test]
fn memory_keeps_to_its_bound_while_chunks_come_back() {
    for policy in Policy::ALL {
        let (mut random, bound) = (Random(78), 30_000);
        let burst = Burst::Requests(16);
        let mut frontier = Frontier::new(Settings { burst, ..settings(policy, bound) });
        let (mut disk, mut now) = (Memory::default(), Instant::from_micros(1));
        for number in 0..4_000 {
            let quality = random.pick([0, 1_000, 500_000, 3_000_000]);
            add(&mut frontier, random.below(60) as u32, item(number, quality, None));
            frontier.write(false, &mut disk).expect("there is room");
        }
        let (mut full, mut most) = (frontier.memory_bytes(), 0);
        while frontier.urls() > 1_000 {
            now = now + Duration::from_micros(1);
            while let Some(id) = frontier.next(now) {
                frontier.take(id);
                let visit = Visit { replies: 1, allowance: 100, ..Visit::new(1, now, now) };
                frontier.finish(id, &visit, now);
            }
            full = full.max(frontier.memory_bytes());
            frontier.write(false, &mut disk).expect("there is room");
            while work(&mut frontier, &disk, now).expect("the disk is whole") {
                most = most.max(frontier.memory_bytes());
            }
        }
        let one_servers = 3_000;
        assert!(most < full + one_servers, "{policy:?}: {full} when full, {most} after jobs");
    }
}

/// Law: a turn takes in no more than it can bear, whatever was read, and in the end all is there.
#[test]
fn what_was_read_is_taken_in_some_at_a_time() {
    const SERVERS: u32 = 40;
    for policy in Policy::ALL {
        let mut frontier = Frontier::new(settings(policy, 1_000));
        let (mut disk, mut now) = (Memory::default(), Instant::from_micros(1));
        for number in 0..SERVERS * 30 {
            add(&mut frontier, number % SERVERS, item(number, 5, None));
        }
        frontier.write(true, &mut disk).expect("there is room");
        while let Some(id) = frontier.next(now) {
            frontier.take(id);
            frontier.finish(id, &Visit::new(1, now, now), now);
            now = now + Duration::from_micros(1);
        }
        let mut turns = 0;
        while frontier.ready() < SERVERS as usize {
            let before = frontier.ready();
            assert!(work(&mut frontier, &disk, now).expect("whole"), "{policy:?}: {before} ready");
            assert!(frontier.ready() <= before + 3, "{policy:?}: {before}");
            turns += 1;
        }
        assert!(turns > SERVERS / 3, "{policy:?}: {turns}");
        let left = frontier.urls();
        assert_eq!(take_all(&mut frontier, &mut disk).expect("whole").len(), left);
    }
}

/// Comings and goings on a few servers, with what waits told by number.
struct Churn {
    random: Random,
    frontier: Frontier,
    disk: Memory,
    now: Instant,
    next: u32,
    waiting: BTreeMap<u32, u32>,
}

impl Churn {
    fn step(&mut self) {
        let host = self.random.below(6) as u32;
        let quality = self.random.pick([0, 1_000, 500_000, 3_000_000]);
        add(&mut self.frontier, host, item(self.next, quality, None));
        self.waiting.insert(self.next, host);
        self.next += 1;
        self.now = self.now + Duration::from_micros(1);
        for _ in 0..2 {
            if let Some(id) = self.frontier.next(self.now) {
                let item = self.frontier.take(id).expect("a ready server has a URL");
                self.waiting.remove(&number_of(&item)).expect("it waits");
                self.frontier.finish(id, &Visit::new(1, self.now, self.now), self.now);
            }
            work(&mut self.frontier, &self.disk, self.now).expect("the disk is whole");
        }
        self.frontier.write(false, &mut self.disk).expect("there is room");
    }
}

/// Law: whatever is read, merged, swept and removed while a checkpoint is written and after it,
/// what it names is there, and is what waited at its moment.
#[test]
fn a_checkpoint_outlives_what_comes_after() {
    for seed in 1..=40 {
        let mut random = Random(seed);
        let settings = settings(Policy::ALL[seed as usize % 4], 2_000);
        let frontier = Frontier::new(settings.clone());
        let (disk, now, waiting) = (Memory::default(), Instant::from_micros(1), BTreeMap::new());
        for number in 0..random.below(50) as u32 {
            random.below(number as usize + 1);
        }
        let mut churn = Churn { random, frontier, disk, now, next: 400, waiting };
        for number in 0..400 {
            let host = churn.random.below(6) as u32;
            let quality = churn.random.pick([0, 1_000, 500_000, 3_000_000]);
            add(&mut churn.frontier, host, item(number, quality, None));
            churn.waiting.insert(number, host);
        }
        (0..150).for_each(|_| churn.step());
        let moment = crate::time::Now { at: churn.now, ..Default::default() };
        let expected = churn.waiting.clone();
        churn.frontier.begin_snapshot(Vec::new(), moment);
        let mark = churn.frontier.mark(&mut churn.disk).expect("there is room");
        mark.files.iter().for_each(|(name, _)| churn.disk.sync(name).expect("it is there"));
        let mut frames = Vec::new();
        while !churn.frontier.snapshot_some(60, &mut frames) {
            churn.step();
        }
        for name in churn.frontier.settled() {
            churn.disk.remove(&name).expect("it is there");
        }
        (0..100).for_each(|_| churn.step());

        let Churn { mut random, mut disk, .. } = churn;
        disk.lose_power(|bytes| random.below(bytes as usize + 1) as u64);
        let mut again = Frontier::restore(settings, &mark.state, &mut disk).expect("it was synced");
        let mut rest = &frames[..];
        while !rest.is_empty() {
            let (frame, used) = crate::frame::parse(rest, 0).expect("just written");
            again.restore_frame(&frame).expect("just written");
            rest = &rest[used..];
        }
        again.restored(true, moment).expect("all are there");
        assert_eq!(again.urls(), expected.len());
        let found = take_all(&mut again, &mut disk).expect("all that is named is there");
        let numbers: Vec<u32> = found.iter().map(number_of).collect();
        let by_arrival = seed % 4 < 2;
        for host in 0..6 {
            let mut found: Vec<u32> =
                numbers.iter().copied().filter(|of| expected.get(of) == Some(&host)).collect();
            if !by_arrival {
                found.sort_unstable();
            }
            let expected =
                expected.iter().filter(|(_, of)| **of == host).map(|(number, _)| *number);
            assert!(found.iter().copied().eq(expected), "seed {seed}, host {host}: {found:?}");
        }
        assert_eq!(numbers.len(), expected.len());
    }
}
