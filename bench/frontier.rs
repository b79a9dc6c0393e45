//! What a URL costs the frontier when queues don't fit into memory: time, memory, disk.
//!
//! Question: does the cost of a URL stay flat from one million to a hundred million, with the same
//! bytes of memory? URLs of 40 bytes, found 25 on a page, come to servers drawn at random; then all
//! are visited, the best server first, until none is left. Jobs run where they are handed out, and
//! their time counts: all times are the processor's, not the clock's. A checkpoint is written every
//! ten million URLs, and when all have come.
//!
//! `frontier POLICY SERVERS URLS MEMORY_MIB [BURST [TAKEN [TURNS_A_JOB]]]` prints one line of JSON
//! and leaves nothing behind; without arguments it runs small, as a test. BURST is what a visit
//! takes at most, as in `[politeness]`: a number (1 unless told otherwise, as on the open web), or
//! `server`, as many as servers allow on a connection, a hundred here (as in experiments). TAKEN is
//! how many URLs are. A job every 64 turns, say, is what a slow disk would do: each then reads for
//! all that have come to wait since. Files go below the folder for temporary ones: up to 8 GB for a
//! hundred million URLs.
//!
//! `frontier study FOLDER BURST [URLS...]` runs each policy with so many URLs of a million servers
//! and 736 MiB, a million to a hundred million if none are named, and writes a report; it fails
//! where one costs twice as much, or a GiB is not enough ([`study`]; `make frontier-study`).
//!
//! `frontier memory MIB...` says what one step through so much memory takes, each to a line drawn
//! at random, whose number the one before holds: what there is to be flat against.

#![expect(clippy::disallowed_methods, reason = "a bench asks the system what it takes")]

#[path = "frontier_study.rs"]
mod study;

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use sted::disk::Disk;
use sted::frontier::policy::{self, Policy};
use sted::frontier::{Added, Burst, EXPECTED, Errand, Frontier, Item, ServerId, Settings, Visit};
use sted::os::disk::OsDisk;
use sted::os::signal::{self, Cpu};
use sted::quality::Quality;
use sted::time::{Instant, Now};
use sted::url::UrlRef;
use study::Asked;

/// Links of one page.
const PAGE: u64 = 25;
/// URLs between two writes, and two jobs.
const TURN: u64 = 250;
/// Turns between two looks at memory.
const LOOK: u64 = 64;
/// URLs between two checkpoints.
const CHECKPOINT: u64 = 10_000_000;
/// What the loop's lag is to be below.
const LONG: Duration = Duration::from_millis(5);
const BYTES_PER_PAGE: usize = 4_096;
/// Requests that servers allow on a connection.
const ALLOWANCE: u32 = 100;
/// URLs of a study, if none are named.
const SIZES: [u64; 5] = [1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000];

fn main() {
    // As the program does.
    signal::join_freed_memory();
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |text: &String| text.parse::<u64>().expect("a number");
    if let [memory, sizes @ ..] = &arguments[..]
        && memory == "memory"
    {
        sizes.iter().map(number).for_each(walk_memory);
    } else if let [study, folder, burst, sizes @ ..] = &arguments[..]
        && study == "study"
    {
        let mut sizes: Vec<u64> = sizes.iter().map(number).collect();
        sizes.sort_unstable();
        let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };
        let burst = burst_of(burst);
        let asked = Asked { servers: 1_000_000, memory_mib: 736, burst, sizes };
        let faults = study::run(Path::new(folder), &asked);
        faults.iter().for_each(|fault| eprintln!("frontier: {fault}"));
        std::process::exit(i32::from(!faults.is_empty()));
    } else if let [policy, servers, urls, memory_mib, rest @ ..] = &arguments[..] {
        let named = |policy_: &Policy| policy_.name() == policy;
        let policy =
            Policy::ALL.into_iter().find(named).expect("bfs, performance, quality, capability");
        let urls = number(urls);
        let burst = rest.first().map_or(Burst::Requests(1), |text| burst_of(text));
        let taken = rest.get(1).map_or(urls, number);
        let turns_a_job = rest.get(2).map_or(1, number);
        let memory_bytes = usize::try_from(number(memory_mib) << 20).expect("it fits");
        let bench = Bench::new(policy, memory_bytes, burst, turns_a_job);
        println!("{}", run(bench, number(servers), urls, taken));
    } else {
        for (policy, burst) in Policy::ALL
            .into_iter()
            .flat_map(|policy| [Burst::Requests(1), Burst::Server].map(|burst| (policy, burst)))
        {
            println!("{}", run(Bench::new(policy, 200_000, burst, 2), 300, 20_000, 20_000));
        }
        study::test_faults();
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let sizes = vec![1_000, 40_000];
        let asked = Asked { servers: 1_000, memory_mib: 1, burst: Burst::Server, sizes };
        study::run(folder.path(), &asked); // how long it takes here says nothing
    }
}

/// As the configuration spells it.
fn burst_of(text: &str) -> Burst {
    match text {
        "server" => Burst::Server,
        number => Burst::Requests(number.parse().expect("a number of requests, or server")),
    }
}

fn run(bench: Bench, servers: u64, urls: u64, taken: u64) -> String {
    let root = std::env::temp_dir().join(format!("sted-frontier-{}", std::process::id()));
    let report = within(&root, bench, servers, urls, taken);
    std::fs::remove_dir_all(&root).expect("it was made here");
    report
}

fn within(root: &Path, mut bench: Bench, servers: u64, urls: u64, taken: u64) -> String {
    let mut disk = OsDisk::open(root).expect("a folder for temporary files");
    let known = resident();
    bench.meet(servers);
    let idle = resident();
    let pushing = push(&mut bench, &mut disk, servers, urls);
    let full = bench.look();
    let (disk_bytes, memory) = (bench.frontier.disk_bytes().0, bench.frontier.memory_bytes());
    let checkpoint = bench.checkpoint(&mut disk);
    let popping = pop(&mut bench, &mut disk, taken);
    let left = bench.frontier.urls() as u64;
    assert_eq!(left, urls.saturating_sub(taken.next_multiple_of(TURN)), "none is lost");
    let ns = |us: u64, count: u64| us as f64 * 1e3 / count as f64;
    format!(
        "{{\"policy\":\"{}\",\"servers\":{servers},\"urls\":{urls},\"taken\":{taken},\"visits\":{},\
         \"push_ns\":{:.0},\"pop_ns\":{:.0},\"push_system_ns\":{:.0},\"pop_system_ns\":{:.0},\
         \"jobs_ns\":{:.0},\"jobs\":{},\
         \"disk_bytes_per_url\":{:.1},\"rss_mib\":{},\"rss_most_mib\":{},\
         \"counted_mib\":{},\"idle_server_bytes\":{},\
         \"turns_a_job\":{},\"checkpoint_ms\":{},\"turns\":{},\"turns_over_5_ms\":{},\
         \"longest_turn_us\":{},\"checksum\":{}}}",
        bench.policy.name(),
        bench.visits,
        ns(pushing.sum_us(), urls),
        ns(popping.sum_us(), taken),
        ns(pushing.system_us, urls),
        ns(popping.system_us, taken),
        bench.working.as_nanos() as f64 / (urls + taken) as f64,
        bench.jobs,
        disk_bytes as f64 / urls as f64,
        (full - known) >> 20,
        (bench.rss_most - known) >> 20,
        memory >> 20,
        (idle - known) as u64 / servers,
        bench.turns_a_job,
        checkpoint.sum_us() / 1_000,
        bench.turns,
        bench.long_turns,
        bench.longest_turn.as_micros(),
        bench.checksum,
    )
}

/// URLs come. `bench/frontier.sh` counts instructions in here, and in [`pop`].
#[inline(never)]
fn push(bench: &mut Bench, disk: &mut OsDisk, servers: u64, urls: u64) -> Cpu {
    bench.turn_began = processor();
    let mut began = signal::thread_cpu();
    for turn in 0..urls.div_ceil(TURN) {
        let until = ((turn + 1) * TURN).min(urls);
        for from in (turn * TURN..until).step_by(PAGE as usize) {
            bench.add(from..(from + PAGE).min(until), servers);
        }
        bench.turn(disk);
        if ((turn + 1) * TURN).is_multiple_of(CHECKPOINT) {
            pass_over(bench.checkpoint(disk), &mut began);
        }
    }
    signal::thread_cpu().since(began)
}

/// Servers are visited.
#[inline(never)]
fn pop(bench: &mut Bench, disk: &mut OsDisk, taken: u64) -> Cpu {
    let mut began = signal::thread_cpu();
    for turn in 0..taken.div_ceil(TURN) {
        bench.visit(TURN, disk);
        bench.turn(disk);
        if ((turn + 1) * TURN).is_multiple_of(CHECKPOINT) {
            pass_over(bench.checkpoint(disk), &mut began);
        }
    }
    signal::thread_cpu().since(began)
}

struct Bench {
    policy: Policy,
    /// URLs that a visit takes, if the server has as many.
    visit_max: u64,
    /// Turns from one job to the next.
    turns_a_job: u64,
    frontier: Frontier,
    random: Random,
    now: Instant,
    via: Rc<str>,
    /// The URLs of a page, one behind the other.
    page: String,
    jobs: u64,
    working: Duration,
    /// When the turn began, had it no job.
    turn_began: Duration,
    turns: u64,
    longest_turn: Duration,
    /// Turns that took longer than [`LONG`].
    long_turns: u64,
    checkpoints: u32,
    visits: u64,
    rss_most: usize,
    checksum: u64,
}

impl Bench {
    fn new(policy: Policy, memory_bytes: usize, burst: Burst, turns_a_job: u64) -> Self {
        let frontier = Frontier::new(Settings {
            schedule: policy::Settings { policy, ..policy::Settings::default() },
            burst,
            delay: Duration::ZERO,
            delay_factor_milli: 0,
            domain_visits_max: 0,
            urls_max: usize::MAX,
            urls_per_server_max: usize::MAX,
            servers_max: usize::MAX,
            memory_bytes,
            crawl: Some(1),
            ..Settings::default()
        });
        let visit_max = match burst {
            Burst::Requests(most) => most,
            Burst::Server => ALLOWANCE,
        };
        Self {
            policy,
            visit_max: visit_max.into(),
            turns_a_job,
            frontier,
            random: Random(0x9e37_79b9_7f4a_7c15),
            now: Instant::from_micros(1),
            via: "".into(),
            page: String::new(),
            jobs: 0,
            working: Duration::ZERO,
            turn_began: processor(),
            turns: 0,
            longest_turn: Duration::ZERO,
            long_turns: 0,
            checkpoints: 0,
            visits: 0,
            rss_most: 0,
            checksum: 0,
        }
    }

    /// All servers, with names of 20 bytes.
    fn meet(&mut self, servers: u64) {
        for server in 0..servers {
            let url = format!("http://host{server:010}.test1/");
            let url = UrlRef::from_canonical(url.as_bytes()).expect("canonical");
            self.frontier.server_of(url);
        }
    }

    /// Adds URLs of one page, as the engine does.
    fn add(&mut self, numbers: Range<u64>, servers: u64) {
        let number = numbers.start;
        self.via = format!("http://host{number:010}.test1/the/page/they/were/on").into();
        let mut page = std::mem::take(&mut self.page);
        page.clear();
        let links: Vec<(Range<usize>, Quality)> =
            numbers.map(|number| self.write_link(number, servers, &mut page)).collect();
        let url = |text: &Range<usize>| UrlRef::from_canonical(&page.as_bytes()[text.clone()]);
        let urls: Option<Vec<UrlRef<'_>>> = links.iter().map(|(text, _)| url(text)).collect();
        let urls = urls.expect("canonical");
        for (urls, links) in urls.chunks(EXPECTED).zip(links.chunks(EXPECTED)) {
            self.frontier.expect(urls.iter().copied());
            for (url, (_, quality)) in urls.iter().zip(links) {
                self.add_one(*url, *quality);
            }
        }
        self.page = page;
    }

    /// Writes a URL behind the others of its page, and says where.
    fn write_link(
        &mut self,
        number: u64,
        servers: u64,
        page: &mut String,
    ) -> (Range<usize>, Quality) {
        let start = page.len();
        page.push_str("http://host");
        write_number::<10>(self.random.below(servers), page);
        page.push_str(".test1/archive/2026/11/article-");
        write_number::<12>(number, page);
        page.push_str(".html");
        (start..page.len(), Quality::from_millionths(self.random.below(5_000_000)))
    }

    fn add_one(&mut self, url: UrlRef<'_>, quality: Quality) {
        let item = Item {
            target: url.target().into(),
            quality,
            arrival: 0,
            depth: 3,
            hops: 0,
            tries: 0,
            errand: Errand::Page,
            found_as: b'L',
            via: Some(self.via.clone()),
        };
        let added = self.frontier.add(url, item, self.now);
        assert!(matches!(added, Added::Queued(_)), "there is room");
    }

    /// What the engine does once a turn.
    fn turn(&mut self, disk: &mut OsDisk) {
        self.frontier.take_in(self.now).expect("the disk is whole");
        self.frontier.write(false, disk).expect("there is room");
        if self.turns.is_multiple_of(self.turns_a_job) {
            self.work(disk);
        }
        let took = processor() - self.turn_began;
        self.longest_turn = self.longest_turn.max(took);
        self.long_turns += u64::from(took > LONG);
        self.turns += 1;
        if self.turns.is_multiple_of(LOOK) {
            self.look();
        }
        self.turn_began = processor();
    }

    /// Bytes of memory in use.
    fn look(&mut self) -> usize {
        let now = resident();
        self.rss_most = self.rss_most.max(now);
        now
    }

    fn work(&mut self, disk: &OsDisk) {
        let Some(job) = self.frontier.job(disk) else { return };
        let began = processor();
        let done = job.run();
        let took = processor() - began;
        self.working += took;
        self.turn_began += took; // it is not the loop's
        self.jobs += 1;
        self.frontier.worked(done).expect("the disk is whole");
    }

    /// Servers are visited until so many URLs were taken.
    fn visit(&mut self, mut urls: u64, disk: &mut OsDisk) {
        while urls > 0 && self.frontier.urls() > 0 {
            self.now = self.now + Duration::from_micros(1);
            let Some(id) = self.frontier.next(self.now) else {
                self.wait(disk);
                continue;
            };
            let most = self.visit_max.min(urls);
            let mut requests = 0;
            while requests < most
                && let Some(item) = self.frontier.take(id)
            {
                let checksum = self.checksum.rotate_left(5) ^ u64::from(id.0);
                self.checksum = checksum ^ item.quality.millionths();
                requests += 1;
            }
            assert!(requests > 0, "it has a URL");
            self.finish(id, requests);
            urls -= requests;
        }
    }

    fn finish(&mut self, id: ServerId, requests: u64) {
        let connect_us = 20_000 + self.random.below(200_000);
        let response_us = (5_000 + self.random.below(500_000)) * requests;
        let requests = u32::try_from(requests).expect("a visit is short");
        let visit = Visit {
            connect_time: Some(Duration::from_micros(connect_us)),
            replies: requests,
            response_time: Duration::from_micros(response_us),
            allowance: ALLOWANCE,
            ..Visit::new(requests, self.now, self.now)
        };
        self.frontier.finish(id, &visit, self.now);
        self.visits += 1;
    }

    /// Nobody is ready: turns go by until chunks come back.
    fn wait(&mut self, disk: &mut OsDisk) {
        let mut is_coming = self.frontier.has_read();
        for _ in 0..self.turns_a_job {
            self.turn(disk);
            is_coming |= self.frontier.has_read();
        }
        assert!(is_coming, "whoever has URLs is ready or waits for the disk");
    }

    /// Writes a checkpoint as the engine would, and removes what is of no use after it.
    fn checkpoint(&mut self, disk: &mut OsDisk) -> Cpu {
        let began = signal::thread_cpu();
        let before = snapshot_name(self.checkpoints);
        self.checkpoints += 1;
        let name = snapshot_name(self.checkpoints);
        let now = Now { at: self.now, ..Now::default() };
        self.frontier.begin_snapshot(Vec::new(), now);
        self.frontier.mark(disk).expect("there is room");
        let mut out = Vec::new();
        while !self.frontier.snapshot_some(1 << 20, &mut out) {
            disk.append(&name, &out).expect("there is room");
            out.clear();
        }
        if self.checkpoints > 1 {
            disk.remove(&before).expect("it was written");
        }
        self.frontier.settled().iter().for_each(|name| disk.remove(name).expect("it was written"));
        self.turn_began = processor();
        signal::thread_cpu().since(began)
    }
}

/// Steps through memory that nothing foresees.
fn walk_memory(mib: u64) {
    const STEPS: u32 = 4_000_000;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let count = u32::try_from(mib << 20 >> 6).expect("fewer than 2^32 lines");
    let mut lines: Vec<[u32; 16]> = (0..count).map(|number| [number; 16]).collect();
    // One cycle through all of them (Sattolo).
    for last in (1..lines.len()).rev() {
        lines.swap(last, usize::try_from(random.below(last as u64)).expect("a place"));
    }
    let walk = |from: u32| (0..STEPS).fold(from, |line, _| lines[line as usize][0]);
    let from = walk(0); // once for the caches
    let began = processor();
    let end = std::hint::black_box(walk(from));
    let ns = (processor() - began).as_nanos() as f64 / f64::from(STEPS);
    println!("{{\"memory_mib\":{mib},\"step_ns\":{ns:.1},\"checksum\":{end}}}");
}

fn snapshot_name(number: u32) -> String {
    format!("snapshot-{number}")
}

/// Appends a number of so many digits.
fn write_number<const DIGITS: usize>(mut number: u64, out: &mut String) {
    let mut digits = [0; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend(digits.map(char::from));
}

/// Moves the beginning of what is measured past what is no part of it.
fn pass_over(took: Cpu, began: &mut Cpu) {
    began.user_us += took.user_us;
    began.system_us += took.system_us;
}

/// Time that this thread has had a processor.
fn processor() -> Duration {
    Duration::from_nanos(signal::thread_cpu_ns())
}

/// Bytes of memory in use.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * BYTES_PER_PAGE
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
