//! A cache of fingerprints: most of what a page links to was met a moment ago, and need not be
//! asked of the disk.
//!
//! Fixed memory: 66 bits for each fingerprint of 64, the place in the table and the right to stay
//! included (65 under [`Replacement::Random`]). `table` is the set, `clock` chooses who leaves.
//!
//! Laws: a fingerprint is in it after its touch, and an answer is never wrong: what was put in and
//! not replaced is known, what was never put in isn't. No more than the capacity are in it, and
//! once full it stays full. Equal touches from an equal seed give equal answers, one by one or
//! all at once.
//! Misses, of a hundred touches, against the textbook's clock (2^8 to 2^18 entries): 0.3 to 0.8
//! more on links of servers being drained, 0.3 to 0.5 on Zipf's law, none on uniform keys, 0.9
//! fewer on keys drawn from the last new ones. The tests hold it to 1.5 either way.
//! Cost: at 2^18 entries and a fifth of misses, 119 instructions a touch, 39 million a second on a
//! busy machine; at 2^22, 12 million one by one and 17 all at once. One touch hits memory twice
//! or more; sets of eight entries in a cache line hit it once and are twice as fast, but miss one
//! to two touches of a hundred more, and a miss is the dearer of the two (`bench/cache.rs`).
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

/// Which entry makes room for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The next one by a hand that goes round, sparing each that was hit since it last came by.
    Clock,
    /// One drawn by lot.
    Random,
}

impl Replacement {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Clock, Self::Random];

    /// As reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Random => "random",
        }
    }
}

/// Fingerprints touched of late, as many as it was made for.
#[derive(Clone, Debug)]
pub struct Cache {
    table: Table,
    order: Order,
}

/// Who leaves next, and all that must be kept to know it.
#[derive(Clone, Debug)]
enum Order {
    Clock(Clock),
    /// The state of the lot.
    Random(Random),
}

impl Cache {
    /// An empty cache for 2^`entries_log2` fingerprints, 0 to 32. `seed` is for
    /// [`Replacement::Random`] only. All memory is reserved here, and used as it fills.
    pub fn new(entries_log2: u32, replacement: Replacement, seed: u64) -> Self {
        let table = Table::new(entries_log2);
        let order = match replacement {
            Replacement::Clock => Order::Clock(Clock::new(table.capacity())),
            Replacement::Random => Order::Random(Random(seed)),
        };
        Self { table, order }
    }

    /// Looks a fingerprint up, and puts it in if it isn't there. Returns whether it was there.
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

    /// [`Cache::touch`] of each in turn; the answers go to the end of `hits`. For tables larger
    /// than the processor's caches: memory is asked for ahead.
    pub fn touch_all(&mut self, fingerprints: &[u64], hits: &mut Vec<bool>) {
        for few in fingerprints.chunks(AHEAD) {
            self.fetch(few.iter().copied());
            hits.extend(few.iter().map(|fingerprint| self.touch(*fingerprint)));
        }
    }

    /// Asks memory for what touches of these will read, without a use for it: [`AHEAD`] of them at
    /// most.
    pub fn fetch(&self, fingerprints: impl Iterator<Item = u64>) {
        self.table.fetch(fingerprints);
    }

    /// Whether a fingerprint is in it. Changes nothing.
    pub fn contains(&self, fingerprint: u64) -> bool {
        self.table.find(self.table.key(fingerprint)).is_some()
    }

    /// Fingerprints in it.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fingerprints it has room for.
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// Bits of all tables: 66 an entry under [`Replacement::Clock`], 65 under
    /// [`Replacement::Random`]. Below 64 entries maps of bits take a word each, which isn't
    /// counted.
    pub fn memory_bits(&self) -> u64 {
        let marks = match self.order {
            Order::Clock(_) => 1,
            Order::Random(_) => 0,
        };
        (table::ENTRY_BITS + marks) * self.capacity() as u64
    }

    /// Puts in a key that isn't there. Apart, so that a hit needn't save the registers that this
    /// uses: a fifth of its instructions.
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
    /// The entry at `slot` was touched again.
    fn hit(&mut self, slot: usize) {
        if let Self::Clock(clock) = self {
            clock.hit(slot);
        }
    }

    /// The slot to be freed.
    fn next(&mut self, capacity: usize) -> usize {
        match self {
            Self::Clock(clock) => clock.next(),
            Self::Random(lot) => lot.word() as usize & (capacity - 1),
        }
    }

    /// Whatever was at `from` is at `to` now; they may be the same.
    fn moved(&mut self, from: usize, to: usize) {
        if let Self::Clock(clock) = self
            && from != to
        {
            clock.moved(from, to);
        }
    }

    /// A new entry has replaced another and is at `slot`.
    fn settled(&mut self, slot: usize) {
        if let Self::Clock(clock) = self {
            clock.settled(slot);
        }
    }
}
