//! A set of 64-bit keys in 65 bits each: a hash table with circular lists and abbreviated keys.
//!
//! The first r bits of a key are its *home*, one of 2^r slots; the other 64 - r bits are its
//! *quotient*. All keys with the same home are linked in a circular list that begins there, so a
//! slot only stores the quotient: the home is where the list begins. The r saved bits are the link,
//! and quotient and link fill one word. One more bit says whether a slot is the *head* of a list. A
//! used slot that is no head holds an *alien*, a member of a list whose head is elsewhere.
//!
//! Links are stored as the exclusive or of both slots: a link to the slot itself is zero, and no
//! alien has one. So a vacant slot is a zero word and no head, and zeroed memory is an empty table.
//!
//! Laws, for every slot s: if any key with home s is in the table, s is a head and holds such a
//! key; the list from s contains all keys with home s and no other; an alien is in the list of
//! another home. Cost, for uniform keys in a full table: there is one key for each home on average,
//! so a search for a missing key takes one comparison, for a present one one and a half; insertion
//! and removal walk one list each at most. With all keys of one home it is O(n); fingerprints are
//! keyed, so that nobody outside can choose their homes.
//! Source: Knuth, The Art of Computer Programming, vol. 3, section 6.4, exercise 13 (Lampson);
//! Broder, Najork, Wiener 2003, section 6.

use super::super::AHEAD;
use super::bits::Bits;

/// The size of an entry, in bits: a word, and the bit that says whether the slot is a head.
pub(super) const ENTRY_BITS: u64 = 64 + 1;

/// A set of keys; it holds at most as many keys as it has slots.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// One word for each slot: the quotient in the upper bits, the link in the lower bits.
    words: Vec<u64>,
    heads: Bits,
    /// A mask of the lower bits: those of a word that are the link, and those of a key that are its
    /// home.
    low: u64,
    /// The number of bits of a link, and of a home.
    low_bits: u32,
    len: usize,
    /// The first slot that may be vacant while the table fills; all slots before it are used.
    filled: usize,
}

impl Table {
    /// Creates an empty table with 2^`entries_log2` slots.
    pub(super) fn new(entries_log2: u32) -> Self {
        assert!(entries_log2 <= 32, "a table of 2^{entries_log2} entries");
        let capacity = usize::try_from(1_u64 << entries_log2).expect("memory has as many bytes");
        Self {
            words: vec![0; capacity],
            heads: Bits::new(capacity),
            low: capacity as u64 - 1,
            low_bits: entries_log2,
            len: 0,
            filled: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn capacity(&self) -> usize {
        self.words.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == self.words.len()
    }

    /// Returns the key for a fingerprint: the fingerprint rotated so that the home is in the low
    /// bits, where links are. Different fingerprints have different keys.
    pub(super) fn key(&self, fingerprint: u64) -> u64 {
        fingerprint.rotate_left(self.low_bits)
    }

    /// Returns the slot of a key; `None` if the key is not in the table.
    pub(super) fn find(&self, key: u64) -> Option<usize> {
        let home = self.home(key);
        if !self.heads.has(home) {
            return None;
        }
        let mut slot = home;
        for _ in 0..self.words.len() {
            let word = self.words[slot];
            // The quotients are equal if the words differ in the low bits only.
            if word ^ key <= self.low {
                return Some(slot);
            }
            slot ^= (word & self.low) as usize;
            if slot == home {
                return None;
            }
        }
        unreachable!("circles close");
    }

    /// Adds a missing key; `free` is a vacant slot. Returns the slot in which the key is stored. If
    /// another entry was in that slot, it has moved to `free`.
    pub(super) fn insert(&mut self, key: u64, free: usize) -> usize {
        self.len += 1;
        let home = self.home(key);
        if self.heads.has(home) {
            // A. The list of this home exists: insert the key after the head.
            self.write(free, key, self.next(home));
            self.link(home, free);
            return free;
        }
        if !self.is_vacant(home) {
            // C. The list must begin at the home slot, which an alien uses. The alien may be
            // anywhere in its own list, and moves to `free`.
            let before = self.before(home);
            self.write(free, self.words[home], self.next(home));
            self.link(before, free);
        }
        // B. The home slot is vacant: the key becomes a list of one entry.
        self.write(home, key, home);
        self.heads.set(home);
        home
    }

    /// Removes the entry at `slot`. Returns the slot that is vacant now. If it is not `slot`, the
    /// entry in it has moved to `slot`.
    pub(super) fn remove(&mut self, slot: usize) -> usize {
        self.len -= 1;
        let next = self.next(slot);
        let vacant = if !self.heads.has(slot) {
            // D1. An alien: unlink it.
            self.link(self.before(slot), next);
            slot
        } else if next == slot {
            // D2. A head without other entries: the list is empty now.
            self.heads.clear(slot);
            slot
        } else {
            // D3. A head with other entries: a list must begin at its home slot, so the next entry
            // moves there, and the slot of that entry becomes vacant.
            self.write(slot, self.words[next], self.next(next));
            next
        };
        self.words[vacant] = 0;
        vacant
    }

    /// Returns a vacant slot of a table that has never been full. All calls together read each slot
    /// once.
    pub(super) fn vacant(&mut self) -> usize {
        while !self.is_vacant(self.filled) {
            self.filled += 1;
        }
        self.filled
    }

    /// Prefetches the memory that touches of these fingerprints, at most [`AHEAD`], will read
    /// first. No read depends on another, so the processor can overlap many of them.
    pub(super) fn fetch(&self, fingerprints: impl Iterator<Item = u64>) {
        let (mut sum, mut nexts, mut count) = (0, [0; AHEAD], 0);
        for (fingerprint, next) in fingerprints.zip(&mut nexts) {
            let home = self.home(self.key(fingerprint));
            *next = self.next(home);
            sum ^= u64::from(self.heads.has(home));
            count += 1;
        }
        for next in nexts.iter().take(count) {
            sum ^= self.words[*next];
        }
        std::hint::black_box(sum);
    }

    fn home(&self, key: u64) -> usize {
        (key & self.low) as usize
    }

    fn is_vacant(&self, slot: usize) -> bool {
        self.next(slot) == slot && !self.heads.has(slot)
    }

    fn next(&self, slot: usize) -> usize {
        slot ^ (self.words[slot] & self.low) as usize
    }

    /// Returns the slot whose link leads to `slot`, found by following the circular list once
    /// around.
    fn before(&self, slot: usize) -> usize {
        let mut before = slot;
        for _ in 0..self.words.len() {
            let next = self.next(before);
            if next == slot {
                return before;
            }
            before = next;
        }
        unreachable!("circles close");
    }

    /// Stores the quotient of `word` and a link to `next` at `slot`.
    fn write(&mut self, slot: usize, word: u64, next: usize) {
        self.words[slot] = word & !self.low | (slot ^ next) as u64;
    }

    fn link(&mut self, slot: usize, next: usize) {
        self.write(slot, self.words[slot], next);
    }
}

#[cfg(test)]
impl Table {
    /// Returns the fingerprint in each slot (`None` if vacant), or a message that says which law is
    /// violated where. Follows links only from heads, and at most as many as there are slots.
    pub(super) fn contents(&self) -> Result<Vec<Option<u64>>, String> {
        let mut contents = vec![None; self.capacity()];
        for head in (0..self.capacity()).filter(|slot| self.heads.has(*slot)) {
            let mut slot = head;
            for step in 0.. {
                if contents[slot].is_some() {
                    return Err(format!(
                        "slot {slot} is in two circles, or the one from {head} twice"
                    ));
                }
                if step > 0 && self.heads.has(slot) {
                    return Err(format!("head {slot} is in the circle of {head}"));
                }
                let key = self.words[slot] & !self.low | head as u64;
                contents[slot] = Some(key.rotate_right(self.low_bits));
                slot = self.next(slot);
                if slot == head {
                    break;
                }
            }
        }
        let outside = |slot: &usize| contents[*slot].is_none() && self.words[*slot] != 0;
        match (0..self.capacity()).find(outside) {
            Some(slot) => Err(format!("slot {slot} is taken and in no circle")),
            None if contents.iter().flatten().count() != self.len => {
                Err(format!("{} keys, not {}", contents.iter().flatten().count(), self.len))
            }
            None => Ok(contents),
        }
    }

    /// Returns the number of bits of memory that the table has allocated.
    pub(super) fn allocated_bits(&self) -> u64 {
        64 * self.words.len() as u64 + self.heads.allocated_bits()
    }
}
