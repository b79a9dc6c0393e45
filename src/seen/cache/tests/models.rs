//! Models of the cache: a textbook CLOCK, and the same rules as the cache's without lists, links
//! and abbreviated keys.

use super::super::Replacement;
use crate::ground::map::Map;
use crate::ground::random::Random;

/// A textbook CLOCK: entries in an array, found by a map, never moved.
pub(super) struct Textbook {
    pub(super) slots: Vec<Option<u64>>,
    pub(super) marks: Vec<bool>,
    places: Map<u64, usize>,
    hand: usize,
}

impl Textbook {
    pub(super) fn new(entries: usize) -> Self {
        let (slots, marks) = (vec![None; entries], vec![false; entries]);
        Self { slots, marks, places: Map::default(), hand: 0 }
    }

    pub(super) fn touch(&mut self, key: u64) -> bool {
        if let Some(slot) = self.places.get(&key) {
            self.marks[*slot] = true;
            return true;
        }
        let slot = self.next();
        while self.hand != slot || self.marks[slot] {
            self.marks[self.hand] = false;
            self.hand = (self.hand + 1) % self.slots.len();
        }
        self.hand = (slot + 1) % self.slots.len();
        if let Some(old) = self.slots[slot].replace(key) {
            self.places.remove(&old);
        }
        self.places.insert(key, slot);
        false
    }

    /// Returns the slot of the next new key: the first one from the hand on whose bit is clear.
    pub(super) fn next(&self) -> usize {
        let turn = (0..self.slots.len()).map(|step| (self.hand + step) % self.slots.len());
        turn.into_iter().find(|slot| !self.marks[*slot]).unwrap_or(self.hand)
    }
}

/// The rules of the cache with whole keys: an array of entries, and for each home the list of its
/// slots, head first.
pub(super) struct Plain {
    pub(super) slots: Vec<Option<u64>>,
    pub(super) marks: Vec<bool>,
    circles: Vec<Vec<usize>>,
    replacement: Replacement,
    hand: usize,
    lot: Random,
    /// The number of entries that had to move.
    pub(super) moves: usize,
}

impl Plain {
    pub(super) fn new(entries: usize, replacement: Replacement, seed: u64) -> Self {
        Self {
            slots: vec![None; entries],
            marks: vec![false; entries],
            circles: vec![Vec::new(); entries],
            replacement,
            hand: 0,
            lot: Random(seed),
            moves: 0,
        }
    }

    pub(super) fn touch(&mut self, key: u64) -> bool {
        if let Some(slot) = self.slots.iter().position(|entry| *entry == Some(key)) {
            self.marks[slot] = self.replacement == Replacement::Clock;
            return true;
        }
        let vacant = self.slots.iter().position(Option::is_none);
        let free = vacant.unwrap_or_else(|| {
            let victim = self.victim();
            self.remove(victim)
        });
        let slot = self.insert(key, free);
        if vacant.is_none() && self.replacement == Replacement::Clock {
            let steps = (0..).find(|steps| (self.hand + steps) % self.slots.len() == slot);
            self.marks[slot] = steps.expect("a turn of the hand") < self.slots.len() / 2;
        }
        false
    }

    fn victim(&mut self) -> usize {
        let entries = self.slots.len();
        if self.replacement == Replacement::Random {
            return self.lot.below(entries);
        }
        while self.marks[self.hand] {
            self.marks[self.hand] = false;
            self.hand = (self.hand + 1) % entries;
        }
        let victim = self.hand;
        self.hand = (self.hand + 1) % entries;
        victim
    }

    fn remove(&mut self, slot: usize) -> usize {
        let old = self.slots[slot].take().expect("a full table");
        let home = self.home(old);
        let circle = &mut self.circles[home];
        if circle[0] == slot && circle.len() > 1 {
            let second = circle.remove(1);
            self.shift(second, slot);
            return second;
        }
        circle.retain(|member| *member != slot);
        slot
    }

    fn insert(&mut self, key: u64, free: usize) -> usize {
        let home = self.home(key);
        let slot = if self.circles[home].is_empty() { home } else { free };
        if let Some(alien) = self.slots[slot] {
            let circle = self.home(alien);
            let members = self.circles[circle].iter_mut();
            members.filter(|member| **member == slot).for_each(|member| *member = free);
            self.shift(slot, free);
        }
        let circle = &mut self.circles[home];
        circle.insert(circle.len().min(1), slot);
        self.slots[slot] = Some(key);
        slot
    }

    fn shift(&mut self, from: usize, to: usize) {
        self.slots[to] = self.slots[from].take();
        self.marks[to] = std::mem::take(&mut self.marks[from]);
        self.moves += 1;
    }

    /// By division: the first bits of a key, as a fraction of all slots.
    fn home(&self, key: u64) -> usize {
        ((u128::from(key) * self.slots.len() as u128) >> 64) as usize
    }
}
