//! Fingerprints in memory: an open-addressing table within a budget of bytes.
//!
//! The table is cut into 1,024 segments by the upper bits of the fingerprint; each is probed
//! linearly and grows by itself, by half. So no moment holds old and new of more than one segment,
//! no look-up waits for more than one segment to move (a quarter of a megabyte in a table of
//! 256 MiB: 0.1 ms), and a bucket of the disk is a run of whole segments.
//!
//! Laws: the slots of all segments, the one that grows counted twice, fit the budget; a key that
//! doesn't fit is refused, never forgotten.
//! Cost: a look-up reads the head of a segment and 1 to 3 lines of slots; 10 to 15 bytes a key, 10
//! when the budget is used up.

/// A table is cut by so many upper bits of the key.
const SEGMENT_BITS: u32 = 10;
const SEGMENTS: usize = 1 << SEGMENT_BITS;
/// Slots of the smallest segment that holds anything.
const SLOTS_MIN: usize = 8;
/// Share of slots in use, at most: beyond it, runs of used slots get long.
const LOAD: (usize, usize) = (4, 5);
const SLOT_BYTES: usize = size_of::<u64>();

/// A set of fingerprints.
#[derive(Debug)]
pub(super) struct Table {
    segments: Vec<Segment>,
    /// Of all segments.
    slots: usize,
    slots_max: usize,
    len: usize,
}

/// The fingerprints that share their upper bits.
#[derive(Debug, Default)]
pub(super) struct Segment {
    /// 0 is a free slot.
    slots: Box<[u64]>,
    used: usize,
    /// The key 0 is in, which no slot can hold.
    zero: bool,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Insertion {
    /// It was in already.
    Known,
    /// It is in now.
    New,
    /// It is not in, and there is no room for it.
    Full,
}

impl Table {
    /// An empty table that takes at most so many bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        let segments = std::iter::repeat_with(Segment::default).take(SEGMENTS).collect();
        Self { segments, slots: 0, slots_max: bytes_max / SLOT_BYTES, len: 0 }
    }

    /// Makes room for so many keys at once, if they are within the budget.
    pub(super) fn reserve(&mut self, keys: usize) {
        assert_eq!(self.len, 0, "room is made before there are keys");
        let slots = keys / SEGMENTS * LOAD.1 / LOAD.0 * 17 / 16;
        if slots < SLOTS_MIN || slots * SEGMENTS > self.slots_max {
            return;
        }
        self.segments.iter_mut().for_each(|segment| segment.resize(slots));
        self.slots = slots * SEGMENTS;
    }

    /// The budget from now on; what is in stays in.
    pub(super) fn limit(&mut self, bytes_max: usize) {
        self.slots_max = bytes_max / SLOT_BYTES;
    }

    /// Puts a key in if it isn't in and there is room.
    pub(super) fn insert(&mut self, key: u64) -> Insertion {
        let segment = &mut self.segments[segment_of(key)];
        let Err(place) = segment.find(key) else { return Insertion::Known };
        match place {
            Some(place) if !segment.is_crowded() => segment.slots[place] = key,
            None if key == 0 => segment.zero = true,
            _ => {
                // One share more, for the segment that grows is there twice.
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

    /// Reads what look-ups of these will read first, without a use for it: no read waits for
    /// another key's, so that the core has many under way at once.
    pub(super) fn fetch(&self, keys: impl Iterator<Item = u64>) {
        let first = |key: u64| {
            let segment = &self.segments[segment_of(key)];
            segment.slots.get(segment.home(key)).copied().unwrap_or(0)
        };
        std::hint::black_box(keys.map(first).fold(0, |sum, slot| sum ^ slot));
    }

    /// Whether a key is in.
    pub(super) fn contains(&self, key: u64) -> bool {
        self.segments[segment_of(key)].find(key).is_ok()
    }

    /// Keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of its slots.
    pub(super) fn bytes(&self) -> usize {
        self.slots * SLOT_BYTES
    }

    /// Takes out all segments of the keys that begin with the `bits` upper bits `prefix`; they are
    /// not known any more.
    pub(super) fn take(&mut self, prefix: usize, bits: u32) -> Vec<Segment> {
        let each = SEGMENTS >> bits;
        let segments = &mut self.segments[prefix * each..][..each];
        let taken: Vec<Segment> = segments.iter_mut().map(std::mem::take).collect();
        self.slots -= taken.iter().map(|segment| segment.slots.len()).sum::<usize>();
        self.len -= taken.iter().map(Segment::len).sum::<usize>();
        taken
    }
}

/// Slots of a segment that is to grow from `have`. One that would pass its share of the budget
/// stops at it first: when keys are spread evenly, all segments can have their share.
fn grown(have: usize, share: usize) -> usize {
    let more = (have + have / 2).max(SLOTS_MIN);
    if have < share { more.min(share.max(SLOTS_MIN)) } else { more }
}

fn segment_of(key: u64) -> usize {
    (key >> (u64::BITS - SEGMENT_BITS)) as usize
}

impl Segment {
    /// How many keys.
    pub(super) fn len(&self) -> usize {
        self.used + usize::from(self.zero)
    }

    /// Its keys, in no order.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> + Clone {
        let zero = self.zero.then_some(0);
        zero.into_iter().chain(self.slots.iter().copied().filter(|key| *key != 0))
    }

    /// Whether `key` is in; if not, the slot where it would go, if there can be one.
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

    /// Where the search for a key begins. The factor spreads keys that are not random.
    fn home(&self, key: u64) -> usize {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mixed) * self.slots.len() as u128) >> u64::BITS) as usize
    }

    fn is_crowded(&self) -> bool {
        (self.used + 1) * LOAD.1 > self.slots.len() * LOAD.0
    }

    /// Puts in a key that is neither in nor 0, without counting it.
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

    /// Law: known, new and full are what a plain set and the budget say; nothing in is forgotten.
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

    /// Law: when keys are spread evenly the budget holds one for each 11 bytes (small budgets less,
    /// for segments of a hundred keys differ).
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
