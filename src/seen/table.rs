//! A hash table of fingerprints in memory, with open addressing and a budget in bytes.
//!
//! The table is split into 1,024 segments by the upper bits of the fingerprint; each is probed
//! linearly and grows on its own, by half. So old and new slots of only one segment are in memory
//! at a time, no look-up waits for more than one segment to be rehashed (a quarter of a megabyte in
//! a table of 256 MiB: 0.1 ms), and a bucket on disk consists of whole segments.
//!
//! Laws: the slots of all segments, those of a growing one counted twice, fit into the budget; a
//! key that doesn't fit is refused, and no key is ever lost.
//! Cost: a look-up reads the head of a segment and 1 to 3 cache lines of slots. A key takes 10 to
//! 15 bytes, 10 when the budget is used up.

/// The number of upper bits of a key that select its segment.
const SEGMENT_BITS: u32 = 10;
const SEGMENTS: usize = 1 << SEGMENT_BITS;
/// The minimum number of slots of a segment that has any keys.
const SLOTS_MIN: usize = 8;
/// The maximum share of used slots, as numerator and denominator. Above it, runs of used slots
/// become long.
const LOAD: (usize, usize) = (4, 5);
const SLOT_BYTES: usize = size_of::<u64>();

/// A set of fingerprints.
#[derive(Debug)]
pub(super) struct Table {
    segments: Vec<Segment>,
    /// The number of slots of all segments.
    slots: usize,
    slots_max: usize,
    len: usize,
}

/// The fingerprints that share their upper bits, in a hash table of their own.
#[derive(Debug, Default)]
pub(super) struct Segment {
    /// The slots, each with a fingerprint; 0 marks a free one.
    slots: Box<[u64]>,
    used: usize,
    /// True if the key 0, which no slot can hold, is in the set.
    zero: bool,
}

/// The result of [`Table::insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Insertion {
    /// The key was in the table already.
    Known,
    /// The key was added.
    New,
    /// The key was not added, because it doesn't fit into the budget.
    Full,
}

impl Table {
    /// Creates an empty table that takes at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        let segments = std::iter::repeat_with(Segment::default).take(SEGMENTS).collect();
        Self { segments, slots: 0, slots_max: bytes_max / SLOT_BYTES, len: 0 }
    }

    /// Reserves memory for `keys` keys, as far as the budget allows.
    pub(super) fn reserve(&mut self, keys: usize) {
        assert_eq!(self.len, 0, "room is made before there are keys");
        let slots = keys / SEGMENTS * LOAD.1 / LOAD.0 * 17 / 16;
        if slots < SLOTS_MIN || slots * SEGMENTS > self.slots_max {
            return;
        }
        self.segments.iter_mut().for_each(|segment| segment.resize(slots));
        self.slots = slots * SEGMENTS;
    }

    /// Changes the budget to `bytes_max` bytes; all keys stay, even if they exceed it.
    pub(super) fn limit(&mut self, bytes_max: usize) {
        self.slots_max = bytes_max / SLOT_BYTES;
    }

    /// Adds a key, if it is missing and fits into the budget.
    pub(super) fn insert(&mut self, key: u64) -> Insertion {
        let segment = &mut self.segments[segment_of(key)];
        let Err(place) = segment.find(key) else { return Insertion::Known };
        match place {
            Some(place) if !segment.is_crowded() => segment.slots[place] = key,
            None if key == 0 => segment.zero = true,
            _ => {
                // The divisor is one more than the number of segments, because a growing segment is
                // in memory twice.
                let (have, share) = (segment.slots.len(), self.slots_max / (SEGMENTS + 1));
                let slots = grown(have, share);
                if self.slots + slots > self.slots_max {
                    return Insertion::Full;
                }
                segment.resize(slots);
                self.slots += slots - have;
                segment.place(key);
            }
        }
        segment.used += usize::from(key != 0);
        self.len += 1;
        Insertion::New
    }

    /// Prefetches the slots that look-ups of these keys read first. No read depends on another, so
    /// the core can have many in flight.
    pub(super) fn fetch(&self, keys: impl Iterator<Item = u64>) {
        let first = |key: u64| {
            let segment = &self.segments[segment_of(key)];
            segment.slots.get(segment.home(key)).copied().unwrap_or(0)
        };
        std::hint::black_box(keys.map(first).fold(0, |sum, slot| sum ^ slot));
    }

    /// Returns whether a key is in the table.
    pub(super) fn contains(&self, key: u64) -> bool {
        self.segments[segment_of(key)].find(key).is_ok()
    }

    /// Returns the number of keys in the table.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the size of all slots, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.slots * SLOT_BYTES
    }

    /// Removes and returns all segments whose keys begin with `prefix` in their `bits` upper bits.
    /// These keys are then no longer in the table.
    pub(super) fn take(&mut self, prefix: usize, bits: u32) -> Vec<Segment> {
        let each = SEGMENTS >> bits;
        let segments = &mut self.segments[prefix * each..][..each];
        let taken: Vec<Segment> = segments.iter_mut().map(std::mem::take).collect();
        self.slots -= taken.iter().map(|segment| segment.slots.len()).sum::<usize>();
        self.len -= taken.iter().map(Segment::len).sum::<usize>();
        taken
    }
}

/// Returns the new number of slots of a segment that must grow from `have` slots. If it would
/// exceed its share of the budget, it first grows to that share: with uniformly distributed keys,
/// all segments can have their share.
fn grown(have: usize, share: usize) -> usize {
    let more = (have + have / 2).max(SLOTS_MIN);
    if have < share { more.min(share.max(SLOTS_MIN)) } else { more }
}

fn segment_of(key: u64) -> usize {
    (key >> (u64::BITS - SEGMENT_BITS)) as usize
}

impl Segment {
    /// Returns the number of keys in the segment.
    pub(super) fn len(&self) -> usize {
        self.used + usize::from(self.zero)
    }

    /// Returns the keys of the segment, in no particular order.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> + Clone {
        let zero = self.zero.then_some(0);
        zero.into_iter().chain(self.slots.iter().copied().filter(|key| *key != 0))
    }

    /// Returns `Ok` if `key` is in the segment. Otherwise returns the free slot for the key as the
    /// error, or `None` if the segment has no slots.
    fn find(&self, key: u64) -> Result<(), Option<usize>> {
        if key == 0 || self.slots.is_empty() {
            return if key == 0 && self.zero { Ok(()) } else { Err(None) };
        }
        let mut at = self.home(key);
        loop {
            let slot = self.slots[at];
            if slot == key {
                return Ok(());
            }
            if slot == 0 {
                return Err(Some(at));
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    /// Returns the slot at which the search for a key begins. The factor spreads keys that are not
    /// random.
    fn home(&self, key: u64) -> usize {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mixed) * self.slots.len() as u128) >> u64::BITS) as usize
    }

    fn is_crowded(&self) -> bool {
        (self.used + 1) * LOAD.1 > self.slots.len() * LOAD.0
    }

    /// Stores a key in a free slot, without counting it. The key must not be 0, nor in the segment.
    fn place(&mut self, key: u64) {
        let place = self.find(key).expect_err("it isn't in").expect("there are slots");
        self.slots[place] = key;
    }

    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![0; slots].into_boxed_slice());
        old.iter().filter(|key| **key != 0).for_each(|key| self.place(*key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use std::collections::BTreeSet;

    /// Law: known, new and full are what a plain set and the budget say; no key is lost.
    #[test]
    fn a_table_agrees_with_a_set() {
        let mut refused = 0;
        for seed in 0..30 {
            let mut random = Random(seed);
            let bytes_max = 1 << (random.below(16) + 6);
            let (mut table, mut model) = (Table::new(bytes_max), BTreeSet::new());
            // Keys may be few, close to one another, or random.
            let (most, shift) = (1 << (random.below(13) + 2), random.below(64) as u32);
            for _ in 0..6_000 {
                let key = random.below(most) << shift;
                assert_eq!(table.contains(key), model.contains(&key));
                match table.insert(key) {
                    Insertion::Known => assert!(model.contains(&key)),
                    Insertion::New => assert!(model.insert(key)),
                    Insertion::Full => {
                        assert!(!model.contains(&key));
                        refused += 1;
                    }
                }
                assert!(table.slots * SLOT_BYTES <= bytes_max);
                assert_eq!(table.len(), model.len());
            }
            let mut kept: Vec<u64> = Vec::new();
            for bucket in 0..64 {
                let segments = table.take(bucket, 6);
                let from = kept.len();
                kept.extend(segments.iter().flat_map(Segment::keys));
                assert!(kept[from..].iter().all(|key| key >> 58 == bucket as u64));
            }
            kept.sort_unstable();
            assert!(kept.into_iter().eq(model), "seed {seed}");
            assert_eq!((table.len(), table.bytes()), (0, 0));
        }
        assert!(refused > 1_000, "the budget was met: {refused}");
    }

    /// Law: with uniformly distributed keys the budget holds one key for each 11 bytes (small
    /// budgets fewer, because segments of a hundred keys differ in size).
    #[test]
    fn a_budget_is_used_up() {
        for (bytes_max, each) in [(1 << 20, 16), (3 << 20, 14), (20 << 20, 11)] {
            let (mut table, mut random) = (Table::new(bytes_max), Random(7));
            while table.insert(random.word()) == Insertion::New {}
            assert!(table.len() * each >= bytes_max, "{} keys in {bytes_max}", table.len());
        }
    }

    #[test]
    fn reserved_room_is_enough() {
        let (mut table, mut random) = (Table::new(16 << 20), Random(1));
        table.reserve(1_000_000);
        let slots = table.slots;
        (0..1_000_000).for_each(|_| assert_eq!(table.insert(random.word()), Insertion::New));
        assert!(slots > 0 && table.slots < slots + slots / 10, "few segments grew");
    }
}
