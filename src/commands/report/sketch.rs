//! A sketch of durations: quantiles from counts of logarithmic buckets.
//!
//! Law: a quantile is within 5% and a microsecond of the exact one, from 100 microseconds on.
//! Cost: 8 bytes for each bucket that is in use; the fetches of a host mostly share 5 to 50.

/// The width of a bucket, as a factor.
const FACTOR: f64 = 1.1;
/// The shortest duration that is distinguished from shorter ones, in microseconds.
const LEAST: f64 = 100.0;

/// Durations, counted by their magnitude.
#[derive(Clone, Debug, Default)]
pub(super) struct Sketch {
    /// The buckets in use, in order, each with the number of durations in it.
    buckets: Vec<(u8, u32)>,
}

impl Sketch {
    /// Adds a duration in microseconds. Returns how many bytes of memory that took. A sketch that
    /// must not grow counts it in the nearest bucket in use; then `None` is returned.
    pub(super) fn add(&mut self, us: u64, may_grow: bool) -> Option<usize> {
        let bucket = bucket_of(us);
        match self.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => {
                self.buckets[at].1 = self.buckets[at].1.saturating_add(1);
                Some(0)
            }
            Err(at) if may_grow || self.buckets.is_empty() => {
                let before = self.buckets.capacity();
                self.buckets.insert(at, (bucket, 1));
                Some((self.buckets.capacity() - before) * size_of::<(u8, u32)>())
            }
            Err(at) => {
                let at = at.min(self.buckets.len() - 1);
                self.buckets[at].1 = self.buckets[at].1.saturating_add(1);
                None
            }
        }
    }

    /// Adds all durations of another sketch.
    pub(super) fn merge(&mut self, other: &Self) {
        for &(bucket, count) in &other.buckets {
            match self.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
                Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(count),
                Err(at) => self.buckets.insert(at, (bucket, count)),
            }
        }
    }

    /// Returns a quantile in microseconds: what at least `share` (0 to 1) of the durations don't
    /// exceed. `None` without a duration.
    pub(super) fn quantile(&self, share: f64) -> Option<u64> {
        let count: u64 = self.buckets.iter().map(|(_, count)| u64::from(*count)).sum();
        let wanted = ((count as f64 * share).ceil() as u64).max(1);
        let mut passed = 0;
        let found = self.buckets.iter().find(|(_, count)| {
            passed += u64::from(*count);
            passed >= wanted
        });
        found.map(|(bucket, _)| middle_of(*bucket))
    }
}

fn bucket_of(us: u64) -> u8 {
    let magnitude = (us as f64 / LEAST).max(1.0).ln() / FACTOR.ln();
    // A conversion from a float saturates.
    magnitude as u8
}

fn middle_of(bucket: u8) -> u64 {
    (LEAST * FACTOR.powf(f64::from(bucket) + 0.5)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    /// Against the exact quantiles of sorted lists, also after a merge.
    #[test]
    fn quantiles_are_within_a_twentieth() {
        let mut random = Random(7);
        for _ in 0..50 {
            let (mut one, mut two) = (Sketch::default(), Sketch::default());
            let mut all: Vec<u64> = Vec::new();
            for _ in 0..1 + random.below(500) {
                let us = 100 << random.below(30);
                let us = us + random.below(us);
                all.push(us);
                let sketch = if random.below(2) == 0 { &mut one } else { &mut two };
                assert!(sketch.add(us, true).is_some());
            }
            all.sort_unstable();
            one.merge(&two);
            for share in [0.0, 0.5, 0.95, 1.0] {
                let wanted = ((all.len() as f64 * share).ceil() as usize).max(1);
                let (exact, found) = (all[wanted - 1] as f64, one.quantile(share).unwrap() as f64);
                let error = (found - exact).abs();
                assert!(error <= exact * 0.05 + 1.0, "{share}: {found} for {exact}");
            }
        }
    }

    #[test]
    fn a_sketch_that_may_not_grow_counts_all_the_same() {
        let mut sketch = Sketch::default();
        assert!(sketch.add(1_000, false).is_some_and(|bytes| bytes > 0), "the first is kept");
        assert_eq!(sketch.add(1_000_000, false), None);
        assert_eq!(sketch.add(1_000, false), Some(0));
        assert_eq!(sketch.quantile(1.0), Some(middle_of(bucket_of(1_000))));
        assert_eq!(Sketch::default().quantile(0.5), None);
        for us in [0, 1, u64::MAX] {
            assert!(Sketch::default().add(us, true).is_some());
        }
    }
}
