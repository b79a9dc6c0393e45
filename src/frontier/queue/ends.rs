//! A heap with two ends: the best and the worst of what waits, both at hand.
//!
//! A min-max heap: levels alternate; an entry on an even level is the best of all below it, one on
//! an odd level the worst. Law: what is taken is the best (the worst) of what is in it, held to a
//! sorted list. Cost: push and take O(log n), looking at either end O(1); one array, no links.
//! Source: Atkinson, Sack, Santoro, Strothotte: Min-Max Heaps and Generalized Priority Queues,
//! Communications of the ACM 29 (10), 1986.

use super::hot::Entry;

/// Entries, with both ends at hand.
#[derive(Debug, Default)]
pub(super) struct Ends {
    entries: Vec<Entry>,
}

/// Which end an entry is nearer to being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Best,
    Worst,
}

impl End {
    /// The end that the level of this place is sorted by.
    fn of(place: usize) -> Self {
        if (place + 1).ilog2().is_multiple_of(2) { Self::Best } else { Self::Worst }
    }

    /// Whether `one` is nearer to this end than `other`.
    fn favours(self, one: &Entry, other: &Entry) -> bool {
        match self {
            Self::Best => one > other,
            Self::Worst => one < other,
        }
    }
}

impl Ends {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn best(&self) -> Option<&Entry> {
        self.entries.first()
    }

    pub(super) fn worst(&self) -> Option<&Entry> {
        self.entries.get(self.worst_place()?)
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.rise(self.entries.len() - 1);
    }

    pub(super) fn take_best(&mut self) -> Option<Entry> {
        self.take(0)
    }

    pub(super) fn take_worst(&mut self) -> Option<Entry> {
        self.take(self.worst_place()?)
    }

    /// Puts `entry` in place of the worst, which is handed out.
    pub(super) fn trade_worst(&mut self, entry: Entry) -> Option<Entry> {
        let worst = self.take_worst();
        self.push(entry);
        worst
    }

    /// How many it has room for.
    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// All, in no order.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    fn worst_place(&self) -> Option<usize> {
        match self.entries.len() {
            0 => None,
            1 => Some(0),
            2 => Some(1),
            _ => Some(if self.entries[1] < self.entries[2] { 1 } else { 2 }),
        }
    }

    fn take(&mut self, place: usize) -> Option<Entry> {
        if self.entries.is_empty() {
            return None;
        }
        let taken = self.entries.swap_remove(place);
        if place < self.entries.len() {
            self.sink(place);
        }
        Some(taken)
    }

    /// A new entry finds its side, then its height on it.
    fn rise(&mut self, mut place: usize) {
        let mut end = End::of(place);
        if let Some(parent) = parent(place)
            && !end.favours(&self.entries[place], &self.entries[parent])
        {
            self.entries.swap(place, parent);
            place = parent;
            end = End::of(place);
        }
        while let Some(over) = parent(place).and_then(parent)
            && end.favours(&self.entries[place], &self.entries[over])
        {
            self.entries.swap(place, over);
            place = over;
        }
    }

    /// An entry that came from the bottom goes down to where it belongs.
    fn sink(&mut self, mut place: usize) {
        let end = End::of(place);
        while let Some(next) = self.most_below(place, end) {
            if !end.favours(&self.entries[next], &self.entries[place]) {
                return;
            }
            self.entries.swap(next, place);
            if next <= 2 * place + 2 {
                return; // a child: below it there is nothing, or it would not have been the most
            }
            let over = parent(next).expect("a grandchild has a parent");
            if end.favours(&self.entries[over], &self.entries[next]) {
                self.entries.swap(next, over);
            }
            place = next;
        }
    }

    /// Of the children and grandchildren of a place, the one that is nearest to `end`.
    fn most_below(&self, place: usize, end: End) -> Option<usize> {
        let (child, grandchild) = (2 * place + 1, 4 * place + 3);
        let below = (child..child + 2).chain(grandchild..grandchild + 4);
        let there = below.take_while(|&place| place < self.entries.len());
        there.reduce(|most, place| {
            if end.favours(&self.entries[place], &self.entries[most]) { place } else { most }
        })
    }
}

fn parent(place: usize) -> Option<usize> {
    place.checked_sub(1).map(|place| place / 2)
}
