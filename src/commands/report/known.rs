//! Two sets of fingerprints in constant memory: which URLs were seen, and how many payloads differ.

use crate::ground::map::Set;
use std::hash::BuildHasher;

/// The number of bits of a [`Filter`]: 16 MiB.
const FILTER_BITS: u64 = 1 << 27;
/// The most fingerprints that [`Distinct`] holds.
const HELD_MAX: usize = 1 << 19;

/// What is known of pages and payloads.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The URLs of pages that have a line.
    pub(super) pages: Filter,
    pub(super) payloads: Distinct,
}

/// Returns a fingerprint of a text.
pub(super) fn fingerprint(text: &str) -> u64 {
    foldhash::quality::FixedState::default().hash_one(text)
}

/// A set of fingerprints that may, rarely, claim to hold one that was never added (a Bloom filter
/// with four bits each): one of 90,000 with two million in it, one of 200 with ten million.
#[derive(Debug)]
pub(super) struct Filter(Vec<u64>);

impl Default for Filter {
    fn default() -> Self {
        Self(vec![0; (FILTER_BITS / 64) as usize])
    }
}

impl Filter {
    fn places(fingerprint: u64) -> [u64; 4] {
        let step = fingerprint.rotate_left(32) | 1;
        [0, 1, 2, 3].map(|n| fingerprint.wrapping_add(step.wrapping_mul(n)) % FILTER_BITS)
    }

    pub(super) fn add(&mut self, fingerprint: u64) {
        for place in Self::places(fingerprint) {
            self.0[(place / 64) as usize] |= 1 << (place % 64);
        }
    }

    pub(super) fn has(&self, fingerprint: u64) -> bool {
        let has = |place: u64| self.0[(place / 64) as usize] & (1 << (place % 64)) != 0;
        Self::places(fingerprint).into_iter().all(has)
    }
}

/// Counts how many fingerprints differ: exactly up to half a million, then from a sample of them,
/// with an error of about 0.2%.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    held: Set<u64>,
    /// Only fingerprints that end in this number of zero bits are held.
    zeros: u32,
    /// The number of fingerprints that were added, equal or not.
    pub(super) all: u64,
}

impl Distinct {
    pub(super) fn add(&mut self, fingerprint: u64) {
        self.all += 1;
        if fingerprint.trailing_zeros() < self.zeros {
            return;
        }
        self.held.insert(fingerprint);
        while self.held.len() > HELD_MAX {
            self.zeros += 1;
            let zeros = self.zeros;
            self.held.retain(|held| held.trailing_zeros() >= zeros);
        }
    }

    /// Returns how many differ.
    pub(super) fn count(&self) -> u64 {
        ((self.held.len() as u64) << self.zeros).min(self.all)
    }

    pub(super) fn is_exact(&self) -> bool {
        self.zeros == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_known_and_little_else() {
        let mut filter = Filter::default();
        let url = |number: u64| fingerprint(&format!("http://a.test/{number}"));
        (0..100_000).for_each(|number| filter.add(url(number)));
        assert!((0..100_000).all(|number| filter.has(url(number))));
        let wrong = (100_000..200_000).filter(|number| filter.has(url(*number))).count();
        assert!(wrong <= 1, "{wrong}");
    }

    #[test]
    fn distinct_payloads_are_counted() {
        let mut distinct = Distinct::default();
        for number in 0..3_000_u64 {
            distinct.add(fingerprint(&(number % 1_000).to_string()));
        }
        assert_eq!((distinct.all, distinct.count(), distinct.is_exact()), (3_000, 1_000, true));
        for number in 0..2_000_000_u64 {
            distinct.add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        let error = distinct.count() as f64 / 2_001_000.0 - 1.0;
        assert!(error.abs() < 0.01 && !distinct.is_exact(), "{error}");
        assert!(distinct.held.len() <= HELD_MAX);
    }
}
