//! The clock of a cache: a hand goes round the slots and stops at the first that wasn't hit.
//!
//! As in the textbook but for one thing. The table moves an entry now and then: who sits in the
//! home of a new circle must leave it, and a head that goes is followed by a member of its circle.
//! So a new entry isn't always just behind the hand, with a full turn to be hit in; more than half
//! of them land anywhere, with half a turn on average. A mark is worth one turn: where the hand
//! comes within half a turn a new entry gets one, so that it has one turn on average. Entries that
//! move take their marks along.
//!
//! Cost: O(1); the hand looks at 64 marks at once.
//! Source: Broder, Najork, Wiener 2003, section 3.4: a hit sets the mark, a new entry has none. The
//! rule for displaced ones is our own.

use super::bits::Bits;

/// The hand and the marks.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Entries that were hit since the hand came by.
    marks: Bits,
    hand: usize,
    capacity: usize,
}

impl Clock {
    /// Of 2^n slots, none of them marked.
    pub(super) fn new(capacity: usize) -> Self {
        assert!(capacity.is_power_of_two(), "distances are taken by mask");
        Self { marks: Bits::new(capacity), hand: 0, capacity }
    }

    pub(super) fn hit(&mut self, slot: usize) {
        self.marks.set(slot);
    }

    /// Goes on to the next slot without a mark, past it, and returns it; the marks on the way are
    /// cleared.
    pub(super) fn next(&mut self) -> usize {
        let slot = self.marks.sweep(self.hand, self.capacity);
        self.hand = (slot + 1) & (self.capacity - 1);
        slot
    }

    /// An entry has moved, and its mark goes with it.
    pub(super) fn moved(&mut self, from: usize, to: usize) {
        self.marks.shift(from, to);
    }

    /// A new entry is at `slot`. Just behind the hand it has a full turn to be hit in, and starts
    /// unmarked. Elsewhere the hand comes sooner: a mark is one more turn, and is given where that
    /// comes nearer to one turn in all.
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
