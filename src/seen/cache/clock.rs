//! CLOCK replacement: a hand advances over the slots and evicts the first entry that wasn't hit.
//!
//! It differs from the textbook in one respect, because the table sometimes moves an entry: an
//! entry in the home slot of a new list must leave it, and when the head of a list is removed
//! another member takes its slot. So a new entry isn't always right behind the hand, with a full
//! turn to be hit in; more than half of them get a random slot, with half a turn on average. The
//! reference bit is worth one turn: if the hand is due within half a turn, a new entry gets the
//! bit, so that it has one turn on average. Entries that move keep their bits.
//!
//! Cost: O(1); the hand reads 64 bits at once.
//! Source: Broder, Najork, Wiener 2003, section 3.4: a hit sets the bit, a new entry has it clear.
//! The rule for moved entries is not from there.

use super::bits::Bits;

/// The hand of the clock and the reference bits.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// One reference bit for each slot: set if the entry was hit since the hand passed it.
    marks: Bits,
    hand: usize,
    capacity: usize,
}

impl Clock {
    /// Creates a clock for `capacity` slots, a power of two, with all reference bits clear.
    pub(super) fn new(capacity: usize) -> Self {
        assert!(capacity.is_power_of_two(), "distances are taken by mask");
        Self { marks: Bits::new(capacity), hand: 0, capacity }
    }

    pub(super) fn hit(&mut self, slot: usize) {
        self.marks.set(slot);
    }

    /// Advances the hand past the next slot whose bit is clear, and returns that slot. The set bits
    /// on the way are cleared.
    pub(super) fn next(&mut self) -> usize {
        let slot = self.marks.sweep(self.hand, self.capacity);
        self.hand = (slot + 1) & (self.capacity - 1);
        slot
    }

    /// Records that the table moved an entry from one slot to another. Its reference bit moves too.
    pub(super) fn moved(&mut self, from: usize, to: usize) {
        self.marks.shift(from, to);
    }

    /// Records a new entry at `slot`. Right behind the hand the entry has a full turn to be hit in,
    /// and starts with a clear bit. Elsewhere the hand passes sooner. A set bit gives the entry one
    /// more turn, and is set if that brings its total time closer to one turn.
    pub(super) fn settled(&mut self, slot: usize) {
        let ahead = slot.wrapping_sub(self.hand) & (self.capacity - 1);
        if ahead < self.capacity / 2 {
            self.marks.set(slot);
        }
    }
}

#[cfg(test)]
impl Clock {
    pub(super) fn is_marked(&self, slot: usize) -> bool {
        self.marks.has(slot)
    }

    pub(super) fn allocated_bits(&self) -> u64 {
        self.marks.allocated_bits()
    }
}
