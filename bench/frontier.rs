//! What a URL costs the frontier when queues don't fit into memory: time, memory, disk.
//!
//! Question: does the cost of a URL stay flat from one million to a hundred million, with the same
//! bytes of memory? URLs of 40 bytes, found 25 on a page, come to servers drawn at random; then all
//! are visited, the best server first, until none is left. The calls are those that the engine
//! makes ([`driver`]). Jobs run where they are handed out, and their time counts: all times are the
//! processor's, not the clock's. A checkpoint is written every ten million URLs, and when all have
//! come.
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
//! `frontier one SERVERS MEMORY_MIB` says how many bytes a server takes by itself, and with one URL
//! that waits.
//!
//! `frontier memory MIB...` says what one step through so much memory takes, each to a line drawn
//! at random, whose number the one before holds: what there is to be flat against.

#![expect(clippy::disallowed_methods, reason = "a bench asks the system what it takes")]

mod driver;
#[path = "frontier_study.rs"]
mod study;

use driver::crawl::{Crawl, Plan, Random};
use driver::{Found, Policy};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use sted::ground::disk::Disk;
use sted::ground::quality::Quality;
use sted::os::disk::OsDisk;
use sted::os::signal::{self, Cpu};
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
/// URLs of a study, if none are named.
const SIZES: [u64; 5] = [1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000];

fn main() {
    // As the program does.
    signal::merge_freed_memory();
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
    } else if let [one, servers, memory_mib] = &arguments[..]
        && one == "one"
    {
        println!("{}", one_each(number(servers), number(memory_mib)));
    } else if let [policy, servers, urls, memory_mib, rest @ ..] = &arguments[..] {
        let named = |policy_: &Policy| policy_.name() == policy;
        let policy =
            Policy::PAPER.into_iter().find(named).expect("bfs, performance, quality, capability");
        let urls = number(urls);
        let burst = rest.first().map_or(Some(1), |text| burst_of(text));
        let taken = rest.get(1).map_or(urls, number);
        let turns_a_job = rest.get(2).map_or(1, number);
        let memory_bytes = usize::try_from(number(memory_mib) << 20).expect("it fits");
        let bench = Bench::new(policy, memory_bytes, burst, turns_a_job);
        println!("{}", run(bench, number(servers), urls, taken));
    } else {
        println!("{}", one_each(1_000, 1));
        for (policy, burst) in Policy::PAPER
            .into_iter()
            .flat_map(|policy| [Some(1), None].map(|burst| (policy, burst)))
        {
            println!("{}", run(Bench::new(policy, 200_000, burst, 2), 300, 20_000, 20_000));
        }
        study::test_faults();
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let sizes = vec![1_000, 40_000];
        let asked = Asked { servers: 1_000, memory_mib: 1, burst: None, sizes };
        study::run(folder.path(), &asked); // how long it takes here says nothing
    }
}

/// As the configuration spells it; `None` for what servers allow on a connection.
fn burst_of(text: &str) -> Option<u32> {
    match text {
        "server" => None,
        number => Some(number.parse().expect("a number of requests, or server")),
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
    let (disk_bytes, memory) = (bench.driver().disk_bytes(), bench.driver().memory_bytes());
    let checkpoint = bench.checkpoint(&mut disk);
    let popping = pop(&mut bench, &mut disk, taken);
    let left = bench.driver().urls() as u64;
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
        bench.crawl.visits,
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
        bench.crawl.checksum,
    )
}

/// Servers with one URL each, found in an order that is not that of their names.
fn one_each(servers: u64, memory_mib: u64) -> String {
    const STRIDE: u64 = 1_000_003; // a prime: all servers are met
    assert!(!servers.is_multiple_of(STRIDE), "each server has one");
    let memory_bytes = usize::try_from(memory_mib << 20).expect("it fits");
    let mut bench = Bench::new(Policy::Capability, memory_bytes, Some(1), 1);
    let before = resident();
    bench.meet(servers);
    let idle = resident();
    for first in (0..servers).step_by(PAGE as usize) {
        let page = first..(first + PAGE).min(servers);
        bench.find(page, |_, number| number * STRIDE % servers);
    }
    let queued = resident();
    assert_eq!(bench.driver().urls() as u64, servers);
    let a_server = |now: usize| (now - before) as u64 / servers;
    format!(
        "{{\"servers\":{servers},\"idle_server_bytes\":{},\"server_with_one_url_bytes\":{},\
         \"mib\":{}}}",
        a_server(idle),
        a_server(queued),
        (queued - before) >> 20
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
    /// Turns from one job to the next.
    turns_a_job: u64,
    crawl: Crawl,
    random: Random,
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
    rss_most: usize,
}

impl Bench {
    fn new(policy: Policy, memory_bytes: usize, burst: Option<u32>, turns_a_job: u64) -> Self {
        let plan = Plan { burst, memory_bytes: Some(memory_bytes), ..Plan::of(policy) };
        Self {
            policy,
            turns_a_job,
            crawl: Crawl::new(&plan),
            random: Random(0x9e37_79b9_7f4a_7c15),
            page: String::new(),
            jobs: 0,
            working: Duration::ZERO,
            turn_began: processor(),
            turns: 0,
            longest_turn: Duration::ZERO,
            long_turns: 0,
            checkpoints: 0,
            rss_most: 0,
        }
    }

    fn driver(&self) -> &driver::Driver {
        self.crawl.driver()
    }

    /// All servers, with names of 20 bytes.
    fn meet(&mut self, servers: u64) {
        for server in 0..servers {
            let url = format!("http://host{server:010}.test1/");
            let url = UrlRef::from_canonical(url.as_bytes()).expect("canonical");
            self.crawl.meet(url);
        }
    }

    /// Adds URLs of one page, each to a server drawn at random.
    fn add(&mut self, numbers: Range<u64>, servers: u64) {
        self.find(numbers, |random, _| random.below(servers));
    }

    /// Adds URLs of one page, each to a server by its number.
    fn find(&mut self, numbers: Range<u64>, server: impl Fn(&mut Random, u64) -> u64) {
        let number = numbers.start;
        let via = format!("http://host{number:010}.test1/the/page/they/were/on");
        let mut page = std::mem::take(&mut self.page);
        page.clear();
        let links: Vec<(Range<usize>, Quality)> =
            numbers.map(|number| self.write_link(number, &server, &mut page)).collect();
        let found = |(text, quality): &(Range<usize>, Quality)| {
            let url = UrlRef::from_canonical(&page.as_bytes()[text.clone()]).expect("canonical");
            Found { url, via: &via, quality: *quality, depth: 3, letter: b'L' }
        };
        let found: Vec<Found<'_>> = links.iter().map(found).collect();
        self.crawl.found(&found);
        self.page = page;
    }

    /// Writes a URL behind the others of its page, and says where.
    fn write_link(
        &mut self,
        number: u64,
        server: impl Fn(&mut Random, u64) -> u64,
        page: &mut String,
    ) -> (Range<usize>, Quality) {
        let start = page.len();
        page.push_str("http://host");
        write_number::<10>(server(&mut self.random, number), page);
        page.push_str(".test1/archive/2026/11/article-");
        write_number::<12>(number, page);
        page.push_str(".html");
        (start..page.len(), Quality::from_millionths(self.random.below(5_000_000)))
    }

    /// A turn ends, and the next one begins.
    fn turn(&mut self, disk: &mut OsDisk) {
        self.crawl.write(disk);
        if self.turns.is_multiple_of(self.turns_a_job) {
            self.work(disk);
        }
        self.crawl.take_in();
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
        let Some(job) = self.crawl.job(disk) else { return };
        let began = processor();
        let done = job.run();
        let took = processor() - began;
        self.working += took;
        self.turn_began += took; // it is not the loop's
        self.jobs += 1;
        self.crawl.worked(done);
    }

    /// Servers are visited until so many URLs were taken.
    fn visit(&mut self, mut urls: u64, disk: &mut OsDisk) {
        while urls > 0 && self.driver().urls() > 0 {
            match self.crawl.visit(urls) {
                Some(taken) => urls -= u64::from(taken),
                None => self.wait(disk),
            }
        }
    }

    /// Nobody is ready: turns go by until chunks come back, or a rest is over.
    fn wait(&mut self, disk: &mut OsDisk) {
        let (was_read, jobs) = (self.driver().has_read(), self.jobs);
        for _ in 0..self.turns_a_job {
            self.turn(disk);
        }
        let is_coming = was_read || self.jobs > jobs;
        assert!(
            is_coming || self.crawl.sleep(),
            "whoever has URLs is ready, rests, or waits for the disk"
        );
    }

    /// Writes a checkpoint as the engine would, and removes what is of no use after it.
    fn checkpoint(&mut self, disk: &mut OsDisk) -> Cpu {
        let began = signal::thread_cpu();
        let before = snapshot_name(self.checkpoints);
        self.checkpoints += 1;
        self.crawl.checkpoint(&snapshot_name(self.checkpoints), disk);
        if self.checkpoints > 1 {
            disk.remove(&before).expect("it was written");
        }
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
