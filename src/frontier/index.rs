//! From names to numbers: an open-addressing table of 64-bit slots that keeps no name.
//!
//! A slot holds a number and 32 bits of the hash of its name; who looks up says whether a number
//! with these bits is the one meant. The table is cut into 1,024 segments by the upper bits of the
//! hash; each is probed linearly and grows by itself, by half, from the bits it has: no name is
//! read again, and no insert waits for more than a thousandth of the table to move.
//!
//! Laws: what was inserted is found, whatever else shares its bits (held to a map); the seed is the
//! crawl's, so that names that fall together in one crawl don't in another.
//! Cost: 10 to 15 bytes a name; with ten million names the longest insert moves 150 KiB.

use foldhash::quality::FixedState;
use std::hash::BuildHasher;

/// The table is cut by so many upper bits of the hash.
const SEGMENT_BITS: u32 = 10;
const SLOTS_MIN: usize = 4;
/// Share of slots in use, at most.
const LOAD: (usize, usize) = (4, 5);
/// No number is `u32::MAX`.
const FREE: u64 = u64::MAX;

/// Numbers by the hashes of names.
#[derive(Debug)]
pub(super) struct Index {
    hasher: FixedState,
    /// None until there is a name.
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, Default)]
struct Segment {
    /// The lower bits of the hash, then the number.
    slots: Box<[u64]>,
    used: u32,
}

impl Index {
    pub(super) fn new(seed: u64) -> Self {
        Self { hasher: FixedState::with_seed(seed), segments: Vec::new() }
    }

    /// The hash of a name.
    pub(super) fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name)
    }

    /// The number with this hash for which `is` says yes.
    pub(super) fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let slots = &*self.segments.get(segment_of(hash))?.slots;
        let (mut at, bits) = (home(hash, slots.len()), hash as u32);
        while *slots.get(at)? != FREE {
            let number = slots[at] as u32;
            if (slots[at] >> 32) as u32 == bits && is(number) {
                return Some(number);
            }
            at = if at + 1 == slots.len() { 0 } else { at + 1 };
        }
        None
    }

    /// The slot at which the search for a hash begins.
    pub(super) fn home(&self, hash: u64) -> Option<&u64> {
        let slots = &*self.segments.get(segment_of(hash))?.slots;
        slots.get(home(hash, slots.len()))
    }

    /// Puts a number in that isn't in.
    pub(super) fn insert(&mut self, hash: u64, number: u32) {
        assert_ne!(number, u32::MAX, "fewer than 2^32 - 1 names");
        if self.segments.is_empty() {
            self.segments.resize(1 << SEGMENT_BITS, Segment::default());
        }
        self.segments[segment_of(hash)].insert(hash << 32 | u64::from(number));
    }
}

fn segment_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SEGMENT_BITS)) as usize
}

/// Where a search begins.
fn home(hash: u64, slots: usize) -> usize {
    ((u128::from(hash << 32) * slots as u128) >> u64::BITS) as usize
}

impl Segment {
    fn insert(&mut self, slot: u64) {
        let used = self.used as usize + 1;
        if used * LOAD.1 > self.slots.len() * LOAD.0 {
            let slots = (self.slots.len() + self.slots.len() / 2).max(SLOTS_MIN);
            let old = std::mem::replace(&mut self.slots, vec![FREE; slots].into_boxed_slice());
            old.iter().filter(|slot| **slot != FREE).for_each(|slot| self.place(*slot));
        }
        self.place(slot);
        self.used += 1;
    }

    fn place(&mut self, slot: u64) {
        let mut at = home(slot >> 32, self.slots.len());
        while self.slots[at] != FREE {
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        self.slots[at] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that share a segment, all bits, or nothing.
    #[test]
    fn an_index_agrees_with_a_list() {
        for (seed, mask) in [(0, u64::MAX), (1, 0), (2, 3), (3, 0xff), (4, 7 << 61), (5, 7 << 29)] {
            let mut index = Index::new(seed);
            let mut hashes = Vec::new();
            for number in 0_u32..3_000 {
                let hash = index.hash(&number.to_le_bytes()) & mask;
                assert_eq!(index.find(hash, |other| other == number), None);
                index.insert(hash, number);
                hashes.push(hash);
            }
            for (number, hash) in (0..).zip(hashes) {
                assert_eq!(index.find(hash, |other| other == number), Some(number));
                assert_eq!(index.find(!hash, |other| other == number), None, "under this only");
            }
        }
    }

    /// Law: a crawl's seed decides where names fall.
    #[test]
    fn hashes_are_the_crawls_own() {
        let [one, same, other] = [7, 7, 8].map(|seed| Index::new(seed).hash(b"a.test"));
        assert!(one == same && one != other);
    }

    /// Law: bytes a name.
    #[test]
    fn slots_are_few() {
        let mut index = Index::new(0);
        for number in 0_u32..200_000 {
            index.insert(index.hash(&number.to_le_bytes()), number);
            let enough = number > 50_000 && number.is_multiple_of(1_000);
            if enough {
                let slots: usize = index.segments.iter().map(|segment| segment.slots.len()).sum();
                assert!(slots * 8 <= 16 * number as usize, "{slots} for {number}");
            }
        }
    }
}
