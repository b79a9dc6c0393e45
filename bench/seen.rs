//! The cost of the seen test per URL, in memory and on disk, as the crawl grows.
//!
//! Question: does a check stay below 100 ns with a hundred million fingerprints and 256 MiB? Half
//! of the checks are of new URLs; the others repeat a random earlier one, which is the hardest
//! case, because the cache does not help. Jobs run where a crawl would have a side thread, so the
//! time is that of loop and jobs together. Files are real, in a temporary folder.
//!
//! `seen KEYS MEMORY_MIB URL_BYTES CACHE_LOG2 [unsynced]` prints a line of JSON at each size on the
//! way and one at the end; `seen all [MILLIONS]` runs nine cases up to this many million keys
//! (300), each in its own process; without arguments it runs small, as a test. `unsynced` leaves
//! out the syncs, so that only the CPU cost remains. `cpu_ns` is user and system time per check.
//!
//! `seen lag KEYS MEMORY_MIB URL_BYTES CACHE_LOG2 [unsynced]` measures how long a turn of the loop
//! can get while jobs run on a side thread: 1,000 offers, at most as many first-timers, the result
//! of a job, and the next job. Times are by the clock and, because other processes may use the
//! core, by the thread's own CPU time; `past_keys` is where counting begins: half of the keys.

#![expect(clippy::disallowed_methods, reason = "a bench reads clocks and makes files")]

use std::hint::black_box;
use std::sync::mpsc;
use std::time::{Duration, Instant as Clock};
use sted::ground::disk::{Disk, Error};
use sted::os::{disk::OsDisk, signal};
use sted::seen::{AHEAD, Seen, SeenJob, Settings};
use sted::url::Fingerprint;

/// Offers between two checks of jobs and disk: the links of some forty pages.
const TURN: u64 = 1_000;
const MILLION: u64 = 1_000_000;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let bytes = |text: &str| text.parse::<usize>().expect("a number");
    match words[..] {
        ["all"] => run_all(300),
        ["all", millions] => run_all(number(millions)),
        ["lag", keys, memory_mib, url_bytes, cache_log2, ..] => {
            let settings = settings(bytes(memory_mib) << 20, number(cache_log2) as u32);
            let synced = words.get(5) != Some(&"unsynced");
            Run::new(settings, bytes(url_bytes), synced).lag(number(keys));
        }
        [keys, memory_mib, url_bytes, cache_log2, ..] => {
            let settings = settings(bytes(memory_mib) << 20, number(cache_log2) as u32);
            let synced = words.get(4) != Some(&"unsynced");
            Run::new(settings, bytes(url_bytes), synced).go(number(keys));
        }
        _ => {
            Run::new(settings(1 << 20, 10), 60, false).lag(MILLION / 5);
            Run::new(settings(64 << 20, 18), 60, true).go(MILLION / 5);
            Run::new(settings(1 << 20, 10), 60, false).go(MILLION / 5);
        }
    }
}

/// Runs each case in its own process, to measure the peak of its memory.
fn run_all(millions_max: u64) {
    // Millions of keys, memory in MiB, bytes of a URL, entries of the cache, syncs.
    let cases: [(u64, u64, u64, u64, &str); 9] = [
        (10, 256, 60, 18, "synced"),
        (100, 256, 0, 0, "synced"),
        (100, 256, 0, 0, "unsynced"),
        (100, 256, 0, 18, "unsynced"),
        (100, 256, 60, 0, "synced"),
        (100, 256, 60, 18, "synced"),
        (100, 64, 0, 0, "unsynced"),
        (100, 2_048, 0, 18, "synced"),
        (300, 256, 0, 0, "unsynced"),
    ];
    let program = std::env::current_exe().expect("the system knows what it runs");
    for (millions, memory_mib, url_bytes, cache_log2, synced) in cases {
        if millions > millions_max {
            continue;
        }
        let keys = millions * MILLION;
        let words = [keys, memory_mib, url_bytes, cache_log2].map(|number| number.to_string());
        let status = std::process::Command::new(&program).args(words).arg(synced).status();
        assert!(status.expect("it was run before").success());
    }
}

fn settings(memory_bytes: usize, cache_entries_log2: u32) -> Settings {
    Settings { urls_max: usize::MAX, memory_bytes, cache_entries_log2, crawl: Some(1) }
}

struct Run {
    settings: Settings,
    url: Vec<u8>,
    synced: bool,
    disk: Box<dyn Disk>,
    /// The folder is removed when this is dropped.
    _folder: tempfile::TempDir,
    random: Random,
    /// The number of new keys so far, from which the next one is computed.
    keys: u64,
    checks: u64,
    fresh: u64,
    checksum: u64,
    loop_time: Duration,
    turn_max: Duration,
    job_time: Duration,
    job_max: Duration,
    jobs: u64,
    cpu_before: Duration,
}

impl Run {
    fn new(settings: Settings, url_bytes: usize, synced: bool) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let real = OsDisk::open(folder.path()).expect("it was made just now");
        Self {
            settings,
            url: vec![b'u'; url_bytes],
            synced,
            disk: if synced { Box::new(real) } else { Box::new(Unsynced(Box::new(real))) },
            _folder: folder,
            random: Random(0x9e37_79b9_7f4a_7c15),
            keys: 0,
            checks: 0,
            fresh: 0,
            checksum: 0,
            loop_time: Duration::ZERO,
            turn_max: Duration::ZERO,
            job_time: Duration::ZERO,
            job_max: Duration::ZERO,
            jobs: 0,
            cpu_before: cpu_time(),
        }
    }

    fn go(mut self, keys_max: u64) {
        let mut seen = Seen::new(self.settings.clone());
        let mut milestone = MILLION * 10;
        let mut since = (0, Duration::ZERO);
        while self.keys < keys_max {
            self.turn(&mut seen);
            self.work(&mut seen);
            if self.keys >= milestone && self.keys < keys_max {
                let spent = self.loop_time + self.job_time;
                let (checks, time) = (self.checks - since.0, spent - since.1);
                let ns_since = time.as_nanos() as f64 / checks as f64;
                println!("{{{},\"ns_since\":{ns_since:.1}}}", self.line(&seen));
                since = (self.checks, spent);
                milestone = if milestone < MILLION * 100 {
                    milestone * 2
                } else {
                    milestone + 50 * MILLION
                };
            }
        }
        self.finish(seen);
    }

    /// Ends the crawl: everything is answered, marked, and restored.
    fn finish(mut self, mut seen: Seen) {
        seen.hasten();
        while !seen.is_settled() {
            self.work(&mut seen);
        }
        assert_eq!((self.fresh, seen.len() as u64), (self.keys, self.keys), "each key once");
        let began = Clock::now();
        let mark = seen.mark(self.disk.as_mut()).expect("there is room");
        mark.files.iter().for_each(|(name, _)| self.disk.sync(name).expect("it can be synced"));
        let mark_ms = began.elapsed().as_millis();
        let (mut line, len) = (self.line(&seen), seen.len());
        drop(seen);
        let (began, cpu_began) = (Clock::now(), cpu_time());
        let again = Seen::restore(self.settings.clone(), &mark.state, self.disk.as_mut());
        let restore_ms = began.elapsed().as_millis();
        let restore_cpu_ms = (cpu_time() - cpu_began).as_millis();
        assert_eq!(again.expect("it was marked just now").len(), len);
        let file_bytes: u64 = mark.files.iter().map(|(_, bytes)| bytes).sum();
        line += &format!(
            ",\"file_bytes\":{file_bytes},\"mark_ms\":{mark_ms},\"restore_ms\":{restore_ms},\
             \"restore_cpu_ms\":{restore_cpu_ms},\"checksum\":{}",
            self.checksum
        );
        println!("{{{line}}}");
    }

    /// Does the work of the loop in one turn.
    fn turn(&mut self, seen: &mut Seen) {
        let began = Clock::now();
        self.offer(seen);
        self.take(seen, usize::MAX);
        let time = began.elapsed();
        self.loop_time += time;
        self.turn_max = self.turn_max.max(time);
    }

    fn offer(&mut self, seen: &mut Seen) {
        let mut fingerprints = [Fingerprint(0); TURN as usize];
        fingerprints.iter_mut().for_each(|fingerprint| *fingerprint = self.draw());
        for few in fingerprints.chunks(AHEAD) {
            seen.prefetch(few);
            few.iter().for_each(|fingerprint| seen.offer(*fingerprint, &self.url));
        }
        self.checks += TURN;
    }

    /// Draws a new key, or an earlier one.
    fn draw(&mut self) -> Fingerprint {
        let word = self.random.word();
        let number = if word & 1 == 0 || self.keys == 0 {
            self.keys += 1;
            self.keys
        } else {
            1 + ((u128::from(word) * u128::from(self.keys)) >> 64) as u64
        };
        Fingerprint(mixed(number))
    }

    /// Does the work of the side thread.
    fn work(&mut self, seen: &mut Seen) {
        while let Some(job) = seen.job(self.disk.as_mut()).expect("there is room") {
            let began = Clock::now();
            let done = job.run();
            let time = began.elapsed();
            self.job_time += time;
            self.job_max = self.job_max.max(time);
            self.jobs += 1;
            let began = Clock::now();
            seen.worked(done).expect("the disk is well");
            self.take(seen, usize::MAX);
            self.loop_time += began.elapsed();
        }
        self.take(seen, usize::MAX);
    }

    /// Runs turns with jobs on a side thread.
    fn lag(mut self, keys_max: u64) {
        let mut seen = Seen::new(self.settings.clone());
        let (jobs, queue) = mpsc::channel::<SeenJob>();
        let (answers, done) = mpsc::channel();
        let side = std::thread::spawn(move || {
            for job in queue {
                answers.send(job.run()).expect("all answers are waited for");
            }
        });
        let (mut clock_us, mut cpu_us) = (Vec::new(), Vec::new());
        let (mut is_out, mut waited) = (false, Duration::ZERO);
        let began = Clock::now();
        while self.keys < keys_max || is_out || !seen.is_settled() {
            let is_over = self.keys >= keys_max;
            let turn_began = Clock::now();
            // A loop that has nothing to do, or may not go on, sleeps until the job is done.
            let sleeps = is_out && (seen.is_overloaded() || is_over && !seen.has_fresh());
            let answer = if sleeps { done.recv().ok() } else { done.try_recv().ok() };
            if sleeps {
                waited += turn_began.elapsed();
            }
            let (turn_began, cpu_began) = (Clock::now(), signal::thread_cpu_ns());
            if let Some(done) = answer {
                is_out = false;
                seen.worked(done).expect("the disk is well");
            }
            if !is_over && !seen.is_overloaded() {
                self.offer(&mut seen);
            }
            self.take(&mut seen, TURN as usize);
            if is_over {
                seen.hasten();
            }
            if let Some(job) = seen.job(self.disk.as_mut()).expect("there is room") {
                is_out = true;
                self.jobs += 1;
                jobs.send(job).expect("the side thread waits for it");
            }
            if self.keys > keys_max / 2 && !is_over {
                clock_us.push(turn_began.elapsed().as_micros() as u64);
                cpu_us.push((signal::thread_cpu_ns() - cpu_began) / 1_000);
            }
        }
        self.loop_time = began.elapsed() - waited;
        drop(jobs);
        side.join().expect("no job panics");
        assert_eq!((self.fresh, seen.len() as u64), (self.keys, self.keys), "each key once");
        println!(
            "{{{},\"past_keys\":{},\"turns\":{},\"waited_s\":{:.1},\
             {},{}}}",
            self.line(&seen),
            keys_max / 2,
            clock_us.len(),
            waited.as_secs_f64(),
            spread("turn_us", clock_us),
            spread("turn_cpu_us", cpu_us),
        );
    }

    fn take(&mut self, seen: &mut Seen, most: usize) {
        for _ in 0..most {
            let Some(bytes) = seen.fresh() else { break };
            self.checksum = self.checksum.rotate_left(7) ^ black_box(bytes).len() as u64;
            self.fresh += 1;
        }
    }

    fn line(&self, seen: &Seen) -> String {
        let totals = seen.totals();
        let ns = |time: Duration| time.as_nanos() as f64 / self.checks as f64;
        let each = |bytes: u64| bytes as f64 / self.checks as f64;
        format!(
            "\"keys\":{},\"memory_mib\":{},\"url_bytes\":{},\"cache_log2\":{},\"synced\":{},\
             \"checks\":{},\
             \"checks_per_s\":{:.0},\"ns\":{:.1},\"cpu_ns\":{:.1},\"loop_ns\":{:.1},\
             \"job_ns\":{:.1},\
             \"turn_max_us\":{},\"job_max_ms\":{},\"jobs\":{},\"merges\":{},\"read_each\":{:.1},\
             \"written_each\":{:.1},\"peak_mib\":{}",
            totals.known,
            self.settings.memory_bytes >> 20,
            self.url.len(),
            self.settings.cache_entries_log2,
            self.synced,
            self.checks,
            1e9 / ns(self.loop_time + self.job_time),
            ns(self.loop_time + self.job_time),
            ns(cpu_time() - self.cpu_before),
            ns(self.loop_time),
            ns(self.job_time),
            self.turn_max.as_micros(),
            self.job_max.as_millis(),
            self.jobs,
            totals.merges,
            each(totals.merge_read_bytes),
            each(totals.merge_written_bytes),
            peak_mib(),
        )
    }
}

/// Formats the median, the 99th percentile and the maximum of times.
fn spread(name: &str, mut times: Vec<u64>) -> String {
    times.sort_unstable();
    let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize];
    let [half, most, all] = [0.5, 0.99, 1.0].map(at);
    format!("\"{name}\":{{\"p50\":{half},\"p99\":{most},\"max\":{all}}}")
}

/// Returns the user and system time of this process, in steps of the kernel's clock (10 ms).
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// Returns the peak of the memory used.
fn peak_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}

/// A disk without syncs.
struct Unsynced(Box<dyn Disk>);

impl Disk for Unsynced {
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.0.append(name, bytes)
    }
    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.0.read_at(name, offset, buffer)
    }
    fn len(&mut self, name: &str) -> Result<Option<u64>, Error> {
        self.0.len(name)
    }
    fn sync(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }
    fn truncate(&mut self, name: &str, len: u64) -> Result<(), Error> {
        self.0.truncate(name, len)
    }
    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error> {
        self.0.rename(from, to)
    }
    fn remove(&mut self, name: &str) -> Result<(), Error> {
        self.0.remove(name)
    }
    fn list(&mut self, folder: &str) -> Result<Vec<String>, Error> {
        self.0.list(folder)
    }
    fn handle(&self) -> Box<dyn Disk> {
        Box::new(Self(self.0.handle()))
    }
}

/// Maps numbers to evenly spread ones, one to one.
fn mixed(number: u64) -> u64 {
    let word = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }
}
