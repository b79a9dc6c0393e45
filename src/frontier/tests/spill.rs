//! Ends of queues on disk, where the histories don't lead: long URLs, damaged segments, bounds.

use super::*;
use crate::ground::frame::{Error, Flaw, Frame, Mark};
use items::long_payload;
use restore::{calendar, frames_of};
use std::collections::BTreeMap;

fn settings(policy: Policy, memory_bytes: usize) -> Settings {
    let scheduler = scheduler::Settings {
        schedule: policy::Settings { policy, ..policy::Settings::default() },
        delay: Duration::ZERO,
        delay_factor_milli: 0,
        domain_visits_max: 0,
        ..scheduler::Settings::default()
    };
    Settings { scheduler, memory_bytes, crawl: Some(7), is_payload, ..Settings::default() }
}

fn add(frontier: &mut Frontier, host: usize, quality: u64, payload: &[u8]) {
    let id = frontier.server_of(UrlRef::from_canonical(url(host).as_bytes()).expect("canonical"));
    let quality = Quality::from_millionths(quality);
    let added = frontier.add_to(id, false, quality, payload, Instant::ZERO);
    assert_eq!(added, Added::Queued);
}

/// Adds so many URLs, numbered, to any of so many hosts, of any quality.
fn add_some(frontier: &mut Frontier, urls: u32, hosts: usize, random: &mut Random) {
    for number in 0..urls {
        let quality = random.pick(&[0, 1_000, 500_000, 3_000_000]);
        add(frontier, random.below(hosts), quality, &payload(number));
    }
}

/// A job is done, or some of what the last one has read is taken in; `false` if there is neither.
pub(super) fn work(frontier: &mut Frontier, disk: &Memory, now: Instant) -> Result<bool, Error> {
    if frontier.has_read() {
        frontier.take_in(now)?;
        return Ok(true);
    }
    let job = frontier.job(disk);
    Ok(job.map_or(Ok(false), |job| frontier.worked(job.run()).map(|()| true))?)
}

/// What came out: the server, the key, the payload.
type Found = (ServerId, Key, Vec<u8>);

/// Takes all URLs out, by visits of one; jobs are done as they come.
fn take_all(frontier: &mut Frontier, disk: &mut Memory) -> Result<Vec<Found>, Error> {
    let (mut found, mut now) = (Vec::new(), Instant::from_micros(1));
    loop {
        now = now + Duration::from_micros(1);
        frontier.write(false, disk)?;
        if !work(frontier, disk, now)? && frontier.urls() == 0 {
            return Ok(found);
        }
        while let Some(id) = frontier.next(now) {
            let mut payload = Vec::new();
            let key = frontier.take(id, &mut payload).expect("a ready server has a URL");
            found.push((id, key, payload));
            frontier.finish(id, &Visit::new(1, now, now), now);
        }
    }
}

fn numbers(found: &[Found]) -> Vec<u32> {
    found.iter().map(|(.., payload)| number_of(payload)).collect()
}

/// Long URLs: neighbours share all but their numbers, or little.
fn long_urls(do_share: bool) -> Vec<Vec<u8>> {
    let url = |number: u32| {
        let len = [65_000, 10, 700, 30][number as usize / 40 % 4];
        let (rest, via) = match do_share {
            true => ("x".repeat(len), "y".repeat(len)),
            false => (number.to_string().repeat(len), (7 * number).to_string().repeat(len)),
        };
        let mut payload = long_payload(number, &rest, &via);
        payload.truncate(LONGEST);
        payload
    };
    (0..200).map(url).collect()
}

/// The longest payload there is.
const LONGEST: usize = (1 << 18) - 1;

/// Law: URLs of any length go to the disk and into snapshots, and come back. The reference of a
/// chunk has a length up to 16 KiB only, a record shares up to 64 KiB at each end; and payloads
/// that share nearly all they have pack to a few bytes each, but never unpack to gigabytes.
#[test]
fn the_longest_urls_go_to_the_disk_and_come_back() {
    for policy in Policy::ALL {
        for (do_share, memory_bytes) in
            [(true, 0), (true, 100 << 20), (false, 0), (false, 100 << 20)]
        {
            let settings = settings(policy, memory_bytes);
            let mut frontier = Frontier::new(settings.clone());
            let mut disk = Memory::default();
            let expected = long_urls(do_share);
            expected.iter().for_each(|payload| add(&mut frontier, 0, 5, payload));
            frontier.begin_snapshot(Vec::new(), crate::ground::time::Now::default());
            let mark = frontier.mark(&mut disk).expect("there is room");
            let mut frames = Vec::new();
            while !frontier.snapshot_some(1 << 20, &mut frames) {}
            let restored = restored(settings, &mark, &frames, Default::default(), &mut disk);
            for mut frontier in [frontier, restored] {
                let found = take_all(&mut frontier, &mut disk).expect("the disk is whole");
                let mut found: Vec<Vec<u8>> =
                    found.into_iter().map(|(.., payload)| payload).collect();
                if policy.is_by_quality() {
                    // They are of one band.
                    found.sort_unstable_by_key(|payload| number_of(payload));
                }
                assert!(found == expected, "{policy:?} {do_share} {memory_bytes}");
            }
        }
    }
}

/// A frontier restored from this snapshot, after a clean stop.
fn restored(
    settings: Settings,
    mark: &Mark,
    frames: &[u8],
    now: crate::ground::time::Now,
    disk: &mut Memory,
) -> Frontier {
    let restored = Frontier::restore(settings, &mark.state, &mark.files, disk);
    let mut frontier = restored.expect("it is whole");
    for (kind, payload) in frames_of(frames) {
        let frame = Frame { kind, payload: &payload, offset: 0 };
        frontier.restore_frame(&frame, now).expect("just written");
    }
    frontier.restored(true, now).expect("all are there");
    frontier
}

/// Law: a job that fails loses nothing, and what it was to read is read later.
#[test]
fn what_could_not_be_read_is_read_later() {
    for policy in Policy::ALL {
        let mut random = Random(79);
        let mut frontier = Frontier::new(settings(policy, 4_000));
        let (mut disk, mut now) = (Memory::default(), Instant::from_micros(1));
        add_some(&mut frontier, 1_000, 6, &mut random);
        let (mut found, mut failures) = (Vec::new(), 0);
        while frontier.urls() > 0 {
            now = now + Duration::from_micros(1);
            frontier.write(random.one_in(4), &mut disk).expect("there is room");
            while let Some(id) = frontier.next(now) {
                let mut payload = Vec::new();
                frontier.take(id, &mut payload).expect("a ready server has a URL");
                found.push(number_of(&payload));
                frontier.finish(id, &Visit::new(1, now, now), now);
            }
            frontier.queues.check();
            if random.one_in(2) {
                work(&mut frontier, &disk, now).expect("the disk is whole");
            } else if let Some(job) = frontier.job(&disk) {
                let done = without_files(&mut disk, || job.run());
                failures += u32::from(frontier.worked(done).is_err());
            }
        }
        assert!(failures > 20, "{policy:?}: {failures}");
        found.sort_unstable();
        assert!(found.into_iter().eq(0..1_000), "{policy:?}");
    }
}

/// Does something while no file can be read.
fn without_files<T>(disk: &mut Memory, what: impl FnOnce() -> T) -> T {
    let files: Vec<_> = disk.names().into_iter().map(|name| (disk.bytes(&name), name)).collect();
    files.iter().for_each(|(_, name)| disk.remove(name).expect("it is there"));
    let result = what();
    files.iter().for_each(|(bytes, name)| disk.append(name, bytes).expect("there is room"));
    result
}

/// Law: by quality none comes out before one of its server that is of a better band.
#[test]
fn a_chunk_hides_no_better_url() {
    queues::tests::seen::take();
    for seed in 1..=300 {
        let mut random = Random(seed);
        let policy = random.pick(&[Policy::Quality, Policy::Capability]);
        let settings = settings(policy, 1_000 + random.below(3_000));
        let (mut frontier, mut disk) = (Frontier::new(settings), Memory::default());
        let urls = 40 + random.below(200);
        for number in 0..urls {
            let quality = random.pick(&[0, 20, 1_000, 60_000, 500_000, 3_000_000]);
            add(&mut frontier, random.below(6), quality, &payload(number));
        }
        let mut bands: BTreeMap<ServerId, Vec<u8>> = BTreeMap::new();
        let found = take_all(&mut frontier, &mut disk).expect("the disk is whole");
        for (id, key, _) in &found {
            bands.entry(*id).or_default().push(Queues::band(queues::Order::Quality, *key));
        }
        for bands in bands.values() {
            assert!(bands.is_sorted_by(|one, next| one >= next), "{policy:?} {seed}: {bands:?}");
        }
        let mut numbers = numbers(&found);
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..urls), "none is lost");
    }
    let seen = queues::tests::seen::take();
    assert!(seen.parts > 200 && seen.rebanded > 200, "{seen:?}");
}

/// A changed bit is reported, with the file and the place, or it lies in what is dead.
#[test]
fn a_damaged_segment_is_reported() {
    let mut reported = 0;
    for seed in 1..=150 {
        let mut random = Random(seed);
        let policy = Policy::PAPER[seed as usize % 4];
        let mut frontier = Frontier::new(settings(policy, 2_000));
        let mut disk = Memory::default();
        add_some(&mut frontier, 120, 4, &mut random);
        frontier.write(true, &mut disk).expect("there is room");
        let names = disk.names();
        let name = &names[random.below(names.len())];
        let mut bytes = disk.bytes(name);
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
        let is_cut = random.one_in(4);
        if is_cut {
            bytes.truncate(at);
        }
        disk.remove(name).expect("it is there");
        disk.append(name, &bytes).expect("there is room");
        match take_all(&mut frontier, &mut disk) {
            Ok(found) => assert_eq!(found.len(), 120),
            Err(Error::Damaged(damage)) => {
                assert!(damage.name == *name && (is_cut || damage.offset <= at as u64), "{damage}");
                assert!(matches!(damage.flaw, Flaw::Changed | Flaw::Cut), "{damage}");
                reported += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(reported > 100, "{reported}");
}

/// Law: memory keeps to its bound but for what is near in each queue; the disk to a factor of what
/// is needed once checkpoints let go of what is not.
#[test]
fn memory_and_disk_keep_to_their_bounds() {
    for policy in Policy::ALL {
        let mut random = Random(77);
        let mut frontier = Frontier::new(settings(policy, 30_000));
        let mut disk = Memory::default();
        let mut now = Instant::from_micros(1);
        let (mut written, mut most) = (0, 0);
        for number in 0..6_000 {
            let host = random.below(20) * random.below(2);
            let quality = random.pick(&[0, 1_000, 500_000, 3_000_000]);
            add(&mut frontier, host, quality, &payload(number));
            let near = 20 * 1_000;
            assert!(frontier.memory_bytes() < 30_000 + near, "{}", frontier.memory_bytes());
            now = now + Duration::from_micros(1);
            frontier.write(false, &mut disk).expect("there is room");
            if random.one_in(3)
                && let Some(id) = frontier.next(now)
            {
                frontier.take(id, &mut Vec::new());
                frontier.finish(id, &Visit::new(1, now, now), now);
            }
            work(&mut frontier, &disk, now).expect("the disk is whole");
            if number % 500 == 0 {
                frontier.begin_snapshot(Vec::new(), crate::ground::time::Now::default());
                frontier.mark(&mut disk).expect("there is room");
                while !frontier.snapshot_some(1 << 20, &mut Vec::new()) {}
                for name in frontier.on_durable() {
                    disk.remove(&name).expect("it was written");
                }
                let needed = frontier.disk_bytes().1;
                assert!(disk.used() < 6 * needed + 20_000, "{} for {needed}", disk.used());
                (written, most) = (written.max(disk.used()), most.max(frontier.urls()));
            }
        }
        println!("{policy:?}: {written} bytes written, {most} URLs");
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
        let mut settings = settings(policy, bound);
        settings.scheduler.burst = Burst::Requests(16);
        let mut frontier = Frontier::new(settings);
        let (mut disk, mut now) = (Memory::default(), Instant::from_micros(1));
        for number in 0..4_000 {
            let quality = random.pick(&[0, 1_000, 500_000, 3_000_000]);
            add(&mut frontier, random.below(SERVERS), quality, &payload(number));
            frontier.write(false, &mut disk).expect("there is room");
        }
        let (mut full, mut most) = (frontier.memory_bytes(), 0);
        while frontier.urls() > 1_000 {
            now = now + Duration::from_micros(1);
            while let Some(id) = frontier.next(now) {
                frontier.take(id, &mut Vec::new());
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
        println!("{policy:?}: {full} when full, {most} after jobs");
        assert!(most < full + one_servers, "{policy:?}: {full} when full, {most} after jobs");
    }
}

/// Law: a turn takes in no more than it can bear, whatever was read, and in the end all is there.
#[test]
fn what_was_read_is_taken_in_some_at_a_time() {
    // With little memory chunks are of one URL.
    let cases =
        Policy::ALL.into_iter().flat_map(|policy| [(policy, 1_000, 5), (policy, 20_000, 3)]);
    for (policy, memory_bytes, servers_max) in cases {
        let mut frontier = Frontier::new(settings(policy, memory_bytes));
        let (mut disk, mut now) = (Memory::default(), Instant::from_micros(1));
        for number in 0..SERVERS as u32 * 30 {
            add(&mut frontier, number as usize % SERVERS, 5, &payload(number));
        }
        frontier.write(true, &mut disk).expect("there is room");
        while let Some(id) = frontier.next(now) {
            frontier.take(id, &mut Vec::new());
            frontier.finish(id, &Visit::new(1, now, now), now);
            now = now + Duration::from_micros(1);
        }
        let (mut turns, mut reading) = (0, SERVERS);
        while reading > 0 {
            assert!(work(&mut frontier, &disk, now).expect("whole"), "{policy:?}: {reading}");
            let ids = (0..SERVERS).map(ServerId::from_index);
            let states = ids.map(|id| frontier.server(id).state());
            let left = states.filter(|state| *state == ServerState::Reading).count();
            assert!(left + servers_max >= reading, "{policy:?}: {left} of {reading}");
            (reading, turns) = (left, turns + 1);
        }
        assert!(turns > SERVERS / servers_max, "{policy:?}: {turns}");
        let left = frontier.urls();
        assert_eq!(take_all(&mut frontier, &mut disk).expect("whole").len(), left);
    }
}

/// Comings and goings on a few servers: what waits by number, and at which.
struct Churn {
    random: Random,
    frontier: Frontier,
    disk: Memory,
    now: Instant,
    next: u32,
    waiting: BTreeMap<u32, usize>,
}

impl Churn {
    fn add(&mut self) {
        let host = self.random.below(6);
        let quality = self.random.pick(&[0, 1_000, 500_000, 3_000_000]);
        add(&mut self.frontier, host, quality, &payload(self.next));
        self.waiting.insert(self.next, host);
        self.next += 1;
    }

    fn step(&mut self) {
        self.add();
        self.now = self.now + Duration::from_micros(1);
        for _ in 0..2 {
            if let Some(id) = self.frontier.next(self.now) {
                let mut payload = Vec::new();
                self.frontier.take(id, &mut payload).expect("a ready server has a URL");
                self.waiting.remove(&number_of(&payload)).expect("it waits");
                self.frontier.finish(id, &Visit::new(1, self.now, self.now), self.now);
            }
            work(&mut self.frontier, &self.disk, self.now).expect("the disk is whole");
        }
        self.frontier.write(false, &mut self.disk).expect("there is room");
    }
}

/// Law: whatever is read, swept and removed while a checkpoint is written and after it, what it
/// names is there, and is what waited at its moment.
#[test]
fn a_checkpoint_outlives_what_comes_after() {
    for seed in 1..=40 {
        let (policy, random) = (Policy::PAPER[seed as usize % 4], Random(seed));
        let (frontier, disk) = (Frontier::new(settings(policy, 2_000)), Memory::default());
        let (now, waiting) = (Instant::from_micros(1), BTreeMap::new());
        let mut churn = Churn { random, frontier, disk, now, next: 0, waiting };
        (0..400).for_each(|_| churn.add());
        (0..150).for_each(|_| churn.step());
        let moment = calendar(churn.now, 0);
        let expected = churn.waiting.clone();
        churn.frontier.begin_snapshot(Vec::new(), moment);
        let mark = churn.frontier.mark(&mut churn.disk).expect("there is room");
        mark.files.iter().for_each(|(name, _)| churn.disk.sync(name).expect("it is there"));
        let mut frames = Vec::new();
        while !churn.frontier.snapshot_some(60, &mut frames) {
            churn.step();
        }
        for name in churn.frontier.on_durable() {
            churn.disk.remove(&name).expect("it is there");
        }
        (0..100).for_each(|_| churn.step());

        let Churn { mut random, mut disk, .. } = churn;
        disk.lose_power(|bytes| random.below(bytes + 1));
        let settings = settings(policy, 2_000);
        let mut again = restored(settings, &mark, &frames, moment, &mut disk);
        assert_eq!(again.urls(), expected.len());
        let found = take_all(&mut again, &mut disk).expect("all that is named is there");
        let numbers = numbers(&found);
        for host in 0..6 {
            let at_host = |number: &u32| expected.get(number) == Some(&host);
            let mut found: Vec<u32> = numbers.iter().copied().filter(at_host).collect();
            if policy.is_by_quality() {
                found.sort_unstable();
            }
            let expected = expected.keys().copied().filter(at_host);
            assert!(found.iter().copied().eq(expected), "seed {seed}, host {host}: {found:?}");
        }
        assert_eq!(numbers.len(), expected.len());
    }
}
