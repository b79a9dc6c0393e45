//! What happened over time: sums of intervals, which grow so that there are never too many.
//!
//! Law: the intervals add up to all that was added.

use std::collections::BTreeMap;

/// The lengths of intervals, in seconds. Each divides the next.
const LENGTHS: [u64; 13] =
    [1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400, 864_000, 86_400_000_000];
/// The largest number of intervals.
const INTERVALS_MAX: usize = 1_000;

/// The sums of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) pages: u64,
    pub(super) bytes: u64,
    /// Replies by the first digit of their status, 1 to 5; at 0 the tries without a usable reply.
    pub(super) by_class: [u64; 6],
}

impl Interval {
    fn merge(&mut self, other: &Self) {
        self.pages += other.pages;
        self.bytes += other.bytes;
        for (own, others) in self.by_class.iter_mut().zip(other.by_class) {
            *own += others;
        }
    }
}

/// Sums over time.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// The index in [`LENGTHS`] of the length of the intervals.
    length: usize,
    /// The intervals with something in them, by their number since 1970.
    intervals: BTreeMap<u64, Interval>,
}

impl Series {
    /// Adds sums at a time, in microseconds since 1970.
    pub(super) fn add(&mut self, at: u64, sums: &Interval) {
        let number = at / 1_000_000 / LENGTHS[self.length];
        self.intervals.entry(number).or_default().merge(sums);
        while self.intervals.len() > INTERVALS_MAX && self.length + 1 < LENGTHS.len() {
            self.lengthen();
        }
    }

    fn lengthen(&mut self) {
        let factor = LENGTHS[self.length + 1] / LENGTHS[self.length];
        self.length += 1;
        for (number, interval) in std::mem::take(&mut self.intervals) {
            self.intervals.entry(number / factor).or_default().merge(&interval);
        }
    }

    /// Returns the length of an interval, in seconds.
    pub(super) fn seconds(&self) -> u64 {
        LENGTHS[self.length]
    }

    /// Returns the intervals with something in them, in order, each with the time at which it
    /// begins, in microseconds since 1970.
    pub(super) fn intervals(&self) -> impl Iterator<Item = (u64, &Interval)> {
        let us = self.seconds() * 1_000_000;
        self.intervals.iter().map(move |(number, interval)| (number * us, interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_bounded_and_add_up() {
        for step in [1_000, 700_000, 61_000_000, 86_400_000_000, u64::MAX / 5_000] {
            let mut series = Series::default();
            for number in 0..5_000 {
                let by_class = [0, 0, 1, 0, 2, 0];
                series.add(number * step, &Interval { pages: 1, bytes: number, by_class });
            }
            let mut all = Interval::default();
            series.intervals().for_each(|(_, interval)| all.merge(interval));
            let expected = Interval {
                pages: 5_000,
                bytes: 5_000 * 4_999 / 2,
                by_class: [0, 0, 5_000, 0, 10_000, 0],
            };
            assert_eq!(all, expected);
            assert!(series.intervals().count() <= INTERVALS_MAX, "{step}");
            let times: Vec<u64> = series.intervals().map(|(at, _)| at).collect();
            assert!(times.is_sorted());
            assert!(times.iter().all(|at| at % (series.seconds() * 1_000_000) == 0));
        }
        assert!(LENGTHS.windows(2).all(|pair| pair[1] % pair[0] == 0));
    }
}
