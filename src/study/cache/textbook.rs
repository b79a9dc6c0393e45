//! CLOCK and RANDOM as in textbooks, to compare the crawler's cache with: an array, a hash table of
//! positions, a clock hand.

use crate::ground::map::Map;
use crate::seen::cache::Replacement;

/// A cache of fingerprints with a fixed number of entries.
#[derive(Debug)]
pub(super) struct Cache {
    replacement: Replacement,
    room: usize,
    entries: Vec<u64>,
    marks: Vec<bool>,
    places: Map<u64, usize>,
    hand: usize,
    random: u64,
}

impl Cache {
    pub(super) fn new(entries_log2: u32, replacement: Replacement, seed: u64) -> Self {
        Self {
            replacement,
            room: 1 << entries_log2,
            entries: Vec::new(),
            marks: Vec::new(),
            places: Map::default(),
            hand: 0,
            random: seed,
        }
    }

    pub(super) fn touch(&mut self, fingerprint: u64) -> bool {
        if let Some(place) = self.places.get(&fingerprint) {
            self.marks[*place] = true;
            return true;
        }
        if self.entries.len() < self.room {
            self.places.insert(fingerprint, self.entries.len());
            self.entries.push(fingerprint);
            self.marks.push(false);
            return false;
        }
        let place = self.victim();
        self.places.remove(&self.entries[place]);
        self.places.insert(fingerprint, place);
        self.entries[place] = fingerprint;
        self.marks[place] = false;
        false
    }

    fn victim(&mut self) -> usize {
        if self.replacement == Replacement::Random {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            return ((u128::from(self.random) * self.room as u128) >> 64) as usize;
        }
        while std::mem::take(&mut self.marks[self.hand]) {
            self.hand = (self.hand + 1) % self.room;
        }
        let place = self.hand;
        self.hand = (self.hand + 1) % self.room;
        place
    }
}
