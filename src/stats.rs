//! Histograms of the loop and the meter of its stages: written by all, read by none in the core.
//!
//! The meter is how a core without a clock accounts for its time: the world hands in a tick
//! function, each stage announces itself, and the ticks since the last announcement are charged to
//! the stage before. The core only ever writes; a world reads (`tests/layers.rs` holds it to that),
//! so that no decision can hang on a clock.
//!
//! Cost: two calls of the tick function a page and stage; a histogram sample is a shift and an add.

use serde::ser::{Serialize, SerializeMap, Serializer};
use std::time::Duration;

/// A stage of the loop that time is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Stage {
    /// Asleep in the poller.
    Wait,
    /// Moving bytes between sockets and buffers, TLS included.
    Transfer,
    /// Heads and framing of responses; writing of requests.
    Http,
    /// Content codings.
    Decode,
    /// Finding references in pages.
    Links,
    /// Joining, canonical form, fingerprints, scope.
    Url,
    /// The duplicate URL eliminator.
    Seen,
    /// Frontier: adding, ranking, choosing.
    Schedule,
    /// Records, digests, index, crawl log.
    Store,
    /// Names: cache and hand-over to the side thread.
    Dns,
    /// All else: wiring, timers, accounting.
    Rest,
}

/// Stages there are.
pub const STAGES: usize = Stage::Rest as usize + 1;

impl Stage {
    /// All of them, in the order of the journey.
    pub const ALL: [Self; STAGES] = [
        Self::Wait,
        Self::Transfer,
        Self::Http,
        Self::Decode,
        Self::Links,
        Self::Url,
        Self::Seen,
        Self::Schedule,
        Self::Store,
        Self::Dns,
        Self::Rest,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Transfer => "transfer",
            Self::Http => "http",
            Self::Decode => "decode",
            Self::Links => "links",
            Self::Url => "url",
            Self::Seen => "seen",
            Self::Schedule => "schedule",
            Self::Store => "store",
            Self::Dns => "dns",
            Self::Rest => "rest",
        }
    }
}

/// Charges ticks to stages.
#[derive(Debug)]
pub struct Meter {
    tick: fn() -> u64,
    ticks: [u64; STAGES],
    stage: Stage,
    since: u64,
}

impl Meter {
    /// A meter over the world's tick function; [`still`] where time has no meaning.
    pub fn new(tick: fn() -> u64) -> Self {
        Self { tick, ticks: [0; STAGES], stage: Stage::Rest, since: tick() }
    }

    /// From here on time is `stage`'s. Returns the stage it was, to go back to.
    pub fn enter(&mut self, stage: Stage) -> Stage {
        let now = (self.tick)();
        self.ticks[self.stage as usize] += now.saturating_sub(self.since);
        self.since = now;
        std::mem::replace(&mut self.stage, stage)
    }

    /// Ticks charged to each stage, in the order of [`Stage::ALL`]. For worlds only.
    pub fn read(&self) -> [u64; STAGES] {
        self.ticks
    }
}

/// A clock that stands still, for worlds in which stages cost nothing.
pub fn still() -> u64 {
    0
}

/// Counts of values by magnitude: four buckets to each power of two, so a quantile read from it is
/// at most a quarter too high.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

const SUB_BITS: u32 = 2;
const BUCKETS: usize = (64 << SUB_BITS) as usize;

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], count: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts one `value`.
    pub fn add(&mut self, value: u64) {
        self.counts[bucket_of(value)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// Counts a duration in microseconds.
    pub fn add_duration(&mut self, value: Duration) {
        self.add(u64::try_from(value.as_micros()).unwrap_or(u64::MAX));
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean, zero of nothing.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The value that `share` (0 to 1) of all are at or below, rounded up to its bucket's end.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut passed = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            passed += count;
            if passed >= wanted {
                return end_of(bucket).min(self.max);
            }
        }
        self.max
    }
}

/// As its count, mean, quantiles and maximum.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("count", &self.count)?;
        map.serialize_entry("mean", &self.mean())?;
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            map.serialize_entry(name, &self.quantile(share))?;
        }
        map.serialize_entry("max", &self.max)?;
        map.end()
    }
}

fn bucket_of(value: u64) -> usize {
    if value < 1 << SUB_BITS {
        return value as usize;
    }
    let magnitude = value.ilog2();
    let sub = (value >> (magnitude - SUB_BITS)) & ((1 << SUB_BITS) - 1);
    (((magnitude - SUB_BITS + 1) << SUB_BITS) as usize) + sub as usize
}

fn end_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 1 << SUB_BITS {
        return bucket;
    }
    let magnitude = (bucket >> SUB_BITS) - 1;
    let first = ((1 << SUB_BITS) + (bucket & ((1 << SUB_BITS) - 1))) << magnitude;
    first + ((1 << magnitude) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for shift in 0..63 {
            for value in [(1_u64 << shift) - 1, 1 << shift, (1 << shift) + (1 << shift) / 3] {
                let end = end_of(bucket_of(value));
                assert!(end >= value, "{value} past the end {end} of its bucket");
                assert!(end <= value + value / 4, "{value}: bucket too wide, ends at {end}");
            }
        }
    }

    #[test]
    fn quantiles_of_one_to_a_thousand() {
        let mut histogram = Histogram::default();
        (1..=1_000).for_each(|value| histogram.add(value));
        let median = histogram.quantile(0.5);
        assert!((500..=640).contains(&median), "{median}");
        assert_eq!(histogram.quantile(1.0), 1_000);
        assert_eq!(histogram.mean(), 500.5);
        assert_eq!(Histogram::default().quantile(0.99), 0);
    }

    #[test]
    fn the_meter_charges_the_stage_before() {
        thread_local!(static CLOCK: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
        fn tick() -> u64 {
            CLOCK.with(|clock| clock.replace(clock.get() + 10))
        }
        let mut meter = Meter::new(tick);
        assert_eq!(meter.enter(Stage::Links), Stage::Rest);
        assert_eq!(meter.enter(Stage::Url), Stage::Links);
        let read = meter.read();
        assert_eq!(read[Stage::Links as usize], 10);
        assert_eq!(read[Stage::Url as usize], 0);
    }
}
