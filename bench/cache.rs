//! The cost of an access to the URL cache by size and misses, and the effect of its layout on
//! misses.
//!
//! Questions: does it reach twenty million accesses a second at 2^18 entries and a fifth of misses,
//! and how many when it exceeds the core's caches? Does prefetching help? Would sets of eight
//! entries in a cache line do better than the circles of a scatter table?
//!
//! `cargo bench --bench cache` prints accesses per second; times are medians over batches of 4,096.
//! `... -- misses` prints misses by stream and size, compared with the textbook's CLOCK. `... --
//! LAYOUT ENTRIES_LOG2 NEW TOUCHES` prints one line of JSON, where NEW in a hundred keys are new;
//! `bench/cache.sh` uses it to count instructions. Under `cargo test` it runs small.

#![expect(clippy::disallowed_methods, reason = "a bench reads clocks")]

#[path = "../src/seen/cache/tests/streams.rs"]
mod streams;

use std::hint::black_box;
use std::time::Instant as Clock;
use sted::ground::map::Map;
use sted::ground::random::{Random, mix};
use sted::seen::cache::{Cache, Replacement};
use streams::{Recent, Stream};

/// Accesses between two readings of the clock.
const BATCH: usize = 4_096;

fn main() {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] if flags.is_empty() => {
            for layout in Layout::ALL {
                println!("{}", measure(layout, 10, 20, 4 * BATCH));
            }
            misses(&[8], 4);
        }
        [] => speeds(),
        ["misses"] => misses(&[8, 10, 12, 14, 16, 18], 40),
        [layout, entries_log2, new, touches] => {
            let named = |other: &Layout| other.name() == layout;
            let layout = Layout::ALL.into_iter().find(named).expect("table, ahead, random, sets");
            let number = |text: &str| text.parse().expect("a number");
            let entries_log2 = entries_log2.parse().expect("a number");
            println!("{}", measure(layout, entries_log2, number(new) as u64, number(touches)));
        }
        _ => panic!("nothing, `misses`, or a layout, a size, new keys in a hundred, touches"),
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// The cache, one access after the other.
    Table,
    /// The cache, with prefetching.
    Ahead,
    /// The cache, with random replacement.
    Random,
    /// Sets of eight.
    Sets,
}

impl Layout {
    const ALL: [Self; 4] = [Self::Table, Self::Ahead, Self::Random, Self::Sets];

    fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Ahead => "ahead",
            Self::Random => "random",
            Self::Sets => "sets",
        }
    }

    fn make(self, entries_log2: u32) -> Made {
        match self {
            Self::Table => Made::Table(Cache::new(entries_log2, Replacement::Clock, 1)),
            Self::Ahead => Made::Ahead(Cache::new(entries_log2, Replacement::Clock, 1)),
            Self::Random => Made::Table(Cache::new(entries_log2, Replacement::Random, 1)),
            Self::Sets => Made::Sets(Sets::new(entries_log2)),
        }
    }
}

enum Made {
    Table(Cache),
    Ahead(Cache),
    Sets(Sets),
}

fn speeds() {
    println!("{:>6} {:>9} {:>6} {:>9} {:>8}", "layout", "entries", "new", "misses", "M/s");
    for entries_log2 in [10, 14, 18, 22, 25] {
        for new in [5, 20, 50] {
            for layout in Layout::ALL {
                let Measured { missed, touch_ns } = run(layout, entries_log2, new, 1 << 23);
                println!(
                    "{:>6} {:>9} {new:>5}% {:>8.2}% {:>8.1}",
                    layout.name(),
                    format!("2^{entries_log2}"),
                    100.0 * missed,
                    1_000.0 / touch_ns,
                );
            }
        }
    }
}

fn measure(layout: Layout, entries_log2: u32, new: u64, touches: usize) -> String {
    let Measured { missed, touch_ns } = run(layout, entries_log2, new, touches);
    format!(
        "{{\"layout\":\"{}\",\"entries_log2\":{entries_log2},\"new\":{new},\"missed\":{missed:.4},\
         \"touch_ns\":{touch_ns:.2}}}",
        layout.name(),
    )
}

struct Measured {
    /// The share of accesses that miss.
    missed: f64,
    touch_ns: f64,
}

fn run(layout: Layout, entries_log2: u32, new: u64, touches: usize) -> Measured {
    let mut made = layout.make(entries_log2);
    let mut stream = Recent::new(1 << entries_log2, new, 1);
    let (mut keys, mut hits) = (vec![0; BATCH], Vec::with_capacity(BATCH));
    // Three times as many new keys as entries: the cache is full, and its hand has gone round.
    for _ in 0..(3 << entries_log2) / BATCH + 1 {
        keys.fill_with(|| stream.new_key());
        touch(&mut made, &keys, &mut hits);
    }
    if std::env::var_os("BENCH_WAIT").is_some() {
        // A counter of instructions starts here.
        eprintln!("ready");
        let _ = std::io::stdin().read_line(&mut String::new());
    }
    let (mut times, mut missed) = (Vec::new(), 0);
    for _ in 0..touches / BATCH {
        keys.fill_with(|| stream.next());
        let began = Clock::now();
        missed += touch(&mut made, &keys, &mut hits);
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    Measured {
        missed: missed as f64 / (times.len() * BATCH) as f64,
        touch_ns: median.as_nanos() as f64 / BATCH as f64,
    }
}

/// Measures a batch by itself. Returns the misses.
#[inline(never)]
fn touch(made: &mut Made, keys: &[u64], hits: &mut Vec<bool>) -> usize {
    match made {
        Made::Table(cache) => keys.iter().filter(|key| !cache.touch(**key)).count(),
        Made::Sets(sets) => keys.iter().filter(|key| !sets.touch(**key)).count(),
        Made::Ahead(cache) => {
            hits.clear();
            cache.touch_all(keys, hits);
            hits.iter().filter(|hit| !**hit).count()
        }
    }
}

/// The alternative: an entry may be in any of eight places of the cache line that its key selects,
/// and each line has its own CLOCK. A word holds the bits of a key that the line doesn't imply; the
/// bits saved hold whether it is occupied, its mark, and in a line's first word the line's hand: 64
/// bits an entry.
struct Sets {
    lines: Vec<Line>,
    lines_log2: u32,
}

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([u64; WAYS]);

const WAYS: usize = 8;
const TAKEN: u64 = 1;
const MARK: u64 = 2;
const HAND_SHIFT: u32 = 2;
const HAND: u64 = 7 << HAND_SHIFT;

impl Sets {
    fn new(entries_log2: u32) -> Self {
        assert!(entries_log2 >= 8, "the line's number leaves five bits of a word");
        let lines_log2 = entries_log2 - WAYS.ilog2();
        Self { lines: vec![Line([0; WAYS]); 1 << lines_log2], lines_log2 }
    }

    fn touch(&mut self, fingerprint: u64) -> bool {
        let low = (1 << self.lines_log2) - 1;
        let key = fingerprint.rotate_left(self.lines_log2);
        let line = &mut self.lines[(key & low) as usize].0;
        let (wanted, compared) = (key & !low | TAKEN, !low | TAKEN);
        let equal = |(way, word): (usize, &u64)| u32::from(word & compared == wanted) << way;
        let found = line.iter().enumerate().map(equal).fold(0, |all, one| all | one);
        if found != 0 {
            line[found.trailing_zeros() as usize % WAYS] |= MARK;
            return true;
        }
        let mut way = (line[0] & HAND) >> HAND_SHIFT;
        while line[way as usize % WAYS] & MARK != 0 {
            line[way as usize % WAYS] &= !MARK;
            way = (way + 1) % WAYS as u64;
        }
        // The hand's bits are in the first word, whose other bits may be the ones replaced.
        let hand = (way + 1) % WAYS as u64;
        line[way as usize % WAYS] = wanted;
        line[0] = line[0] & !HAND | hand << HAND_SHIFT;
        false
    }
}

/// Prints misses in a hundred accesses after half of the stream; for others than the textbook's
/// CLOCK, the difference to it.
fn misses(sizes: &[u32], touches_per_entry: usize) {
    println!(
        "{:>10} {:>7} {:>8} {:>7} {:>7} {:>7}",
        "stream", "entries", "textbook", "clock", "random", "sets"
    );
    for stream in Stream::ALL {
        for &entries_log2 in sizes {
            let len = (touches_per_entry << entries_log2).max(touches_per_entry * 50_000);
            let keys = stream.keys(1 << entries_log2, len, 5);
            let mut textbook = Textbook::new(1 << entries_log2);
            let expected = missed(&keys, |key| textbook.touch(key));
            let mut clock = Cache::new(entries_log2, Replacement::Clock, 1);
            let mut random = Cache::new(entries_log2, Replacement::Random, 1);
            let mut sets = Sets::new(entries_log2);
            println!(
                "{:>10} {:>7} {expected:>8.2} {:>+7.2} {:>+7.2} {:>+7.2}",
                format!("{stream:?}"),
                format!("2^{entries_log2}"),
                missed(&keys, |key| clock.touch(key)) - expected,
                missed(&keys, |key| random.touch(key)) - expected,
                missed(&keys, |key| sets.touch(key)) - expected,
            );
        }
    }
}

fn missed(keys: &[u64], mut touch: impl FnMut(u64) -> bool) -> f64 {
    let (warming, counted) = keys.split_at(keys.len() / 2);
    for key in warming {
        black_box(touch(*key));
    }
    let missed = counted.iter().filter(|key| !touch(**key)).count();
    100.0 * missed as f64 / counted.len() as f64
}

/// CLOCK as in textbooks: entries in an array, found by a map, never moved.
struct Textbook {
    slots: Vec<(u64, bool)>,
    places: Map<u64, usize>,
    hand: usize,
    entries: usize,
}

impl Textbook {
    fn new(entries: usize) -> Self {
        Self { slots: Vec::new(), places: Map::default(), hand: 0, entries }
    }

    fn touch(&mut self, key: u64) -> bool {
        if let Some(slot) = self.places.get(&key) {
            self.slots[*slot].1 = true;
            return true;
        }
        if self.slots.len() < self.entries {
            self.places.insert(key, self.slots.len());
            self.slots.push((key, false));
            return false;
        }
        while std::mem::take(&mut self.slots[self.hand].1) {
            self.hand = (self.hand + 1) % self.entries;
        }
        self.places.remove(&self.slots[self.hand].0);
        self.places.insert(key, self.hand);
        self.slots[self.hand] = (key, false);
        self.hand = (self.hand + 1) % self.entries;
        false
    }
}
