//! A cache of fingerprints: most links of a page were seen recently, and need no look-up on disk.
//!
//! Its memory is fixed: 66 bits for each fingerprint of 64 bits, with the table's metadata and the
//! reference bit (65 with [`Replacement::Random`]). `table` is the set, `clock` selects the entry
//! to evict.
//!
//! Laws: a fingerprint is in the cache after its touch, and an answer is never wrong: what was
//! added and not evicted is found, what was never added is not. The cache holds at most its
//! capacity, and once full it stays full. Equal touches with an equal seed give equal answers, one
//! by one or in bulk. Misses per hundred touches, compared with a textbook CLOCK (2^8 to 2^18
//! entries): 0.3 to 0.8 more on links of crawled servers, 0.3 to 0.5 more on Zipf's law, none on
//! uniform keys, 0.9 fewer on keys drawn from the most recent new ones. The tests allow 1.5 in
//! either direction.
//! Cost: at 2^18 entries and a fifth of misses, 119 instructions a touch, 39 million a second on a
//! busy machine; at 2^22, 12 million one by one and 17 in bulk. A touch reads memory twice or more.
//! Sets of eight entries in a cache line would read it once and be twice as fast, but miss one to
//! two touches of a hundred more, and a miss costs more than that (`bench/cache.rs`).
//! Source: Broder, Najork, Wiener, "Efficient URL Caching for World Wide Web Crawling", WWW 2003,
//! sections 3.4, 3.5 and 6.

mod bits;
mod clock;
mod table;
#[cfg(test)]
mod tests;

use super::AHEAD;
use crate::ground::random::Random;
use clock::Clock;
use table::Table;

/// The policy that selects the entry to evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// CLOCK: a hand advances over the entries, and skips each that was hit since its last pass.
    Clock,
    /// A random entry.
    Random,
}

impl Replacement {
    /// All replacement policies.
    pub const ALL: [Self; 2] = [Self::Clock, Self::Random];

    /// Returns the name of the policy that is used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Random => "random",
        }
    }
}

/// A set of recently touched fingerprints, with a fixed capacity.
#[derive(Clone, Debug)]
pub struct Cache {
    table: Table,
    order: Order,
}

/// The replacement policy with its state.
#[derive(Clone, Debug)]
enum Order {
    Clock(Clock),
    /// The generator of random numbers.
    Random(Random),
}

impl Cache {
    /// Creates an empty cache for 2^`entries_log2` fingerprints, 0 to 32. `seed` is for
    /// [`Replacement::Random`] only. All memory is reserved here, and used as the cache fills.
    pub fn new(entries_log2: u32, replacement: Replacement, seed: u64) -> Self {
        let table = Table::new(entries_log2);
        let order = match replacement {
            Replacement::Clock => Order::Clock(Clock::new(table.capacity())),
            Replacement::Random => Order::Random(Random(seed)),
        };
        Self { table, order }
    }

    /// Looks a fingerprint up, and adds it if it is missing. Returns whether it was found.
    #[inline]
    pub fn touch(&mut self, fingerprint: u64) -> bool {
        let key = self.table.key(fingerprint);
        let found = self.table.find(key);
        match found {
            Some(slot) => self.order.hit(slot),
            None => self.put(key),
        }
        found.is_some()
    }

    /// Calls [`Cache::touch`] for each fingerprint in turn, and appends each result to `hits`.
    /// Prefetches memory, which saves time for tables larger than the processor's caches.
    pub fn touch_all(&mut self, fingerprints: &[u64], hits: &mut Vec<bool>) {
        for few in fingerprints.chunks(AHEAD) {
            self.fetch(few.iter().copied());
            hits.extend(few.iter().map(|fingerprint| self.touch(*fingerprint)));
        }
    }

    /// Prefetches the memory that touches of these fingerprints will read; at most [`AHEAD`] at
    /// once.
    pub fn fetch(&self, fingerprints: impl Iterator<Item = u64>) {
        self.table.fetch(fingerprints);
    }

    /// Returns whether a fingerprint is in the cache. Changes nothing.
    pub fn contains(&self, fingerprint: u64) -> bool {
        self.table.find(self.table.key(fingerprint)).is_some()
    }

    /// Returns the number of fingerprints in the cache.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the maximum number of fingerprints in the cache.
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// Returns the size of all tables in bits: 66 an entry with [`Replacement::Clock`], 65 with
    /// [`Replacement::Random`]. Below 64 entries bit maps take a word each, which isn't counted.
    pub fn memory_bits(&self) -> u64 {
        let marks = match self.order {
            Order::Clock(_) => 1,
            Order::Random(_) => 0,
        };
        (table::ENTRY_BITS + marks) * self.capacity() as u64
    }

    /// Adds a missing key, and evicts another if the cache is full. Not inlined, so that a hit
    /// needn't save the registers that this function uses, which would be a fifth of its
    /// instructions.
    #[inline(never)]
    fn put(&mut self, key: u64) {
        let full = self.table.is_full();
        let free = if full {
            let victim = self.order.next(self.table.capacity());
            let free = self.table.remove(victim);
            self.order.moved(free, victim);
            free
        } else {
            self.table.vacant()
        };
        let slot = self.table.insert(key, free);
        self.order.moved(slot, free);
        if full {
            self.order.settled(slot);
        }
    }
}

impl Order {
    /// Records that the entry at `slot` was touched again.
    fn hit(&mut self, slot: usize) {
        if let Self::Clock(clock) = self {
            clock.hit(slot);
        }
    }

    /// Returns the slot of the entry to evict.
    fn next(&mut self, capacity: usize) -> usize {
        match self {
            Self::Clock(clock) => clock.next(),
            Self::Random(lot) => lot.word() as usize & (capacity - 1),
        }
    }

    /// Records that the table moved the entry at `from` to `to`; both may be the same slot.
    fn moved(&mut self, from: usize, to: usize) {
        if let Self::Clock(clock) = self
            && from != to
        {
            clock.moved(from, to);
        }
    }

    /// Records that a new entry, which replaced another, is at `slot`.
    fn settled(&mut self, slot: usize) {
        if let Self::Clock(clock) = self {
            clock.settled(slot);
        }
    }
}
