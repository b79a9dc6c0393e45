//! Histograms: counts of values by magnitude.
//!
//! Law: every value is counted in the bucket whose range contains it, and no bucket's range is
//! wider than a quarter of its smallest value. Cost: a shift and an addition for each value; 2 KiB
//! of memory.

use serde::ser::{Serialize, SerializeMap, Serializer};
use std::time::Duration;

/// Counts of values by magnitude. There are four buckets for each power of two, so a quantile,
/// which is reported as the end of its bucket, is at most a quarter too high.
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

    /// Counts a duration, converted to microseconds.
    pub fn add_duration(&mut self, value: Duration) {
        self.add(u64::try_from(value.as_micros()).unwrap_or(u64::MAX));
    }

    /// Returns a histogram of the values counted since `earlier`, which is an older copy of this
    /// histogram. Its maximum is rounded up to the end of its bucket.
    pub fn since(&self, earlier: &Self) -> Self {
        let pairs = self.counts.iter().zip(&earlier.counts);
        let counts: Vec<u64> = pairs.map(|(now, before)| now - before).collect();
        let last = counts.iter().rposition(|count| *count > 0);
        let max = last.map_or(0, |bucket| end_of(bucket).min(self.max));
        let (count, sum) = (self.count - earlier.count, self.sum.saturating_sub(earlier.sum));
        Self { counts, count, sum, max }
    }

    /// Returns the number of values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of the values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the number of values below `1 << bits`. It is exact, because a bucket ends there.
    pub fn count_below(&self, bits: u32) -> u64 {
        let end = if bits < 64 { bucket_of(1 << bits) } else { BUCKETS };
        self.counts[..end].iter().sum()
    }

    /// Returns the largest value counted; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the mean of the values; 0 if there are none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Returns a quantile: the smallest value that at least `share` (0 to 1) of all values don't
    /// exceed, rounded up to the end of its bucket.
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

/// Serializes the count, mean, quantiles and maximum.
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
        assert_eq!((histogram.mean(), histogram.sum()), (500.5, 500_500));
        for (bits, below) in
            [(0, 0), (1, 1), (3, 7), (9, 511), (10, 1_000), (63, 1_000), (64, 1_000)]
        {
            assert_eq!(histogram.count_below(bits), below, "below 2^{bits}");
        }
        assert_eq!(Histogram::default().quantile(0.99), 0);
        let before = histogram.clone();
        (1..=10).for_each(|value| histogram.add(value * 10));
        let since = histogram.since(&before);
        assert_eq!((since.count(), since.mean()), (10, 55.0));
        assert!((100..=125).contains(&since.max()), "{}", since.max());
        assert_eq!(histogram.since(&histogram).quantile(1.0), 0);
    }
}
