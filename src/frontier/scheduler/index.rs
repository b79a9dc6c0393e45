//! A hash index from names (hosts, origins, domains, addresses) to numbers. It is an
//! open-addressing table of 64-bit slots, which don't hold the names.
//!
//! A slot holds a number and 32 bits of the hash of its name. The caller compares the names, to
//! decide whether a number with these bits is the right one. The upper bits of the hash select one
//! of 1,024 segments. Each segment is probed linearly. When it is full it grows by half, alone, and
//! its slots are placed again by the bits that they hold. So growth reads no name, and no insert
//! moves more than about a thousandth of the table.
//!
//! Laws: every number that was inserted is found, whatever else has the same bits (tested against a
//! list). Each crawl has its own seed, so that names that collide in one crawl don't in another.
//! Cost: 10 to 15 bytes a name. With ten million names the longest insert moves 150 KiB.

use foldhash::quality::FixedState;
use std::hash::BuildHasher;

/// The number of upper bits of the hash, which select a segment.
const SEGMENT_BITS: u32 = 10;
const SLOTS_MIN: usize = 4;
/// The largest share of slots in use, as a fraction: 4 of 5.
const LOAD: (usize, usize) = (4, 5);
/// The value of an empty slot. No number is `u32::MAX`, so no slot in use has this value.
const FREE: u64 = u64::MAX;

/// A hash index from names to numbers, without the names.
#[derive(Debug)]
pub(super) struct Index {
    hasher: FixedState,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, Default)]
struct Segment {
    /// Each slot holds the lower 32 bits of the hash in its upper half and the number in its lower
    /// half.
    slots: Box<[u64]>,
    used: usize,
}

impl Index {
    pub(super) fn new(seed: u64) -> Self {
        let segments = vec![Segment::default(); 1 << SEGMENT_BITS];
        Self { hasher: FixedState::with_seed(seed), segments }
    }

    /// Returns the hash of a name, which depends on the seed of the index.
    pub(super) fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name)
    }

    /// Returns the number whose name has this hash and for which `is` returns true. `is` compares
    /// the names; it is called for each number whose hash may be the same.
    pub(super) fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let segment = &self.segments[segment_of(hash)];
        let slots = segment.probe(hash as u32).map(|at| segment.slots[at]);
        let mut used = slots.take_while(|slot| *slot != FREE);
        let found = used.find(|slot| (slot >> 32) as u32 == hash as u32 && is(*slot as u32));
        found.map(|slot| slot as u32)
    }

    /// Adds a number whose name has this hash. The number must not be in the index yet.
    pub(super) fn insert(&mut self, hash: u64, number: u32) {
        assert_ne!(number, u32::MAX, "fewer than 2^32 - 1 names");
        self.segments[segment_of(hash)].insert(hash << 32 | u64::from(number));
    }
}

fn segment_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SEGMENT_BITS)) as usize
}

impl Segment {
    fn insert(&mut self, slot: u64) {
        self.used += 1;
        if self.used * LOAD.1 > self.slots.len() * LOAD.0 {
            let slots = (self.slots.len() + self.slots.len() / 2).max(SLOTS_MIN);
            let old = std::mem::replace(&mut self.slots, vec![FREE; slots].into_boxed_slice());
            old.into_iter().filter(|slot| *slot != FREE).for_each(|slot| self.place(slot));
        }
        self.place(slot);
    }

    fn place(&mut self, slot: u64) {
        let mut slots = self.probe((slot >> 32) as u32);
        let free = slots.find(|at| self.slots[*at] == FREE).expect("a segment is never full");
        self.slots[free] = slot;
    }

    /// Returns the indexes of the slots in the order in which they are searched for a hash.
    fn probe(&self, hash: u32) -> impl Iterator<Item = usize> + use<> {
        let slots = self.slots.len();
        let home = ((u64::from(hash) * slots as u64) >> 32) as usize;
        (home..slots).chain(0..home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: numbers whose hashes share a segment, all bits, or nothing are all found.
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
                assert_eq!(
                    index.find(!hash, |other| other == number),
                    None,
                    "found under its own hash only"
                );
            }
        }
    }

    /// Law: the seed of the crawl changes the hashes.
    #[test]
    fn hashes_are_the_crawls_own() {
        let [one, same, other] = [7, 7, 8].map(|seed| Index::new(seed).hash(b"a.test"));
        assert!(one == same && one != other);
    }

    /// Law: at most 16 bytes a name.
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
