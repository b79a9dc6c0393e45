//! A set of 64-bit keys in 65 bits each: scatter table with circular lists, abbreviated keys.
//!
//! A key's first r bits are its *home*, one of 2^r slots; the other 64 - r are its *quotient*. All
//! keys of one home are linked in a circle that begins there, so a slot needs to keep only the
//! quotient: the home is where the circle begins. The r bits saved are the link, and quotient and
//! link fill one word. One more bit says whether a slot is the *head* of a circle; a slot that is
//! taken and no head holds an *alien*, a member of a circle with its head elsewhere.
//!
//! Links are kept as the difference (exclusive or) of both slots: a link to oneself is zero, and
//! no alien has one. So a vacant slot is a zero word and no head, and fresh memory is an empty
//! table.
//!
//! Laws, for every slot s: if any key of home s is in the table, s is a head and holds such a key;
//! the circle from s holds all keys of home s and no other; an alien is in some other's circle.
//! Cost, for uniform keys in a full table: there is one key a home on average, so a search for what
//! isn't there compares once, for what is there one and a half times; insertion and removal walk a
//! circle each at most. With all keys of one home it is O(n): fingerprints are keyed, so that
//! nobody outside can choose theirs.
//! Source: Knuth, The Art of Computer Programming, vol. 3, section 6.4, exercise 13 (Lampson);
//! Broder, Najork, Wiener 2003, section 6.

use super::super::AHEAD;
use super::bits::Bits;

/// Bits an entry: its word, and whether it is a head.
pub(super) const ENTRY_BITS: u64 = 64 + 1;

/// The set; at most as many keys as slots.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Quotient above, link below.
    words: Vec<u64>,
    heads: Bits,
    /// The bits of a word that are its link, and of a key that are its home.
    low: u64,
    /// How many they are.
    low_bits: u32,
    len: usize,
    /// No slot before it is vacant, until the table is full.
    filled: usize,
}

impl Table {
    /// Room for 2^`entries_log2` keys.
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

    /// The key of a fingerprint: turned so that the home is below, where links are. Each of both
    /// can be told from the other.
    pub(super) fn key(&self, fingerprint: u64) -> u64 {
        fingerprint.rotate_left(self.low_bits)
    }

    /// Where a key is.
    pub(super) fn find(&self, key: u64) -> Option<usize> {
        let home = self.home(key);
        if !self.heads.has(home) {
            return None;
        }
        let mut slot = home;
        for _ in 0..self.words.len() {
            let word = self.words[slot];
            // Equal quotients: they differ below only.
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

    /// Puts in a key that isn't there, where `free` is some vacant slot. Returns where it is now:
    /// if that is another slot that was taken, who was there has moved to `free`.
    pub(super) fn insert(&mut self, key: u64, free: usize) -> usize {
        self.len += 1;
        let home = self.home(key);
        if self.heads.has(home) {
            // A. Its circle exists: it goes in behind the head.
            self.write(free, key, self.next(home));
            self.link(home, free);
            return free;
        }
        if !self.is_vacant(home) {
            // C. Its circle must begin at home, and an alien sits there. That can be anywhere in
            // its own circle, and so at `free`.
            let before = self.before(home);
            self.write(free, self.words[home], self.next(home));
            self.link(before, free);
        }
        // B. It is a circle of its own.
        self.write(home, key, home);
        self.heads.set(home);
        home
    }

    /// Takes out who is at `slot`. Returns the slot that is vacant now: if it is another, who was
    /// there has moved to `slot`.
    pub(super) fn remove(&mut self, slot: usize) -> usize {
        self.len -= 1;
        let next = self.next(slot);
        let vacant = if !self.heads.has(slot) {
            // D1. An alien: its circle closes without it.
            self.link(self.before(slot), next);
            slot
        } else if next == slot {
            // D2. A head alone: there is no circle any more.
            self.heads.clear(slot);
            slot
        } else {
            // D3. A head with others: circles begin at home, so the next one has to take its
            // place, and it is that one's slot which gets free.
            self.write(slot, self.words[next], self.next(next));
            next
        };
        self.words[vacant] = 0;
        vacant
    }

    /// A vacant slot of a table that isn't full and never was. Over the filling of a table this
    /// looks at each slot once.
    pub(super) fn vacant(&mut self) -> usize {
        while !self.is_vacant(self.filled) {
            self.filled += 1;
        }
        self.filled
    }

    /// Reads what touches of these will read first, [`AHEAD`] of them at most, without a use for
    /// it: no read waits for another key's, so that the core has many under way at once.
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

    /// Whose link leads to `slot`: once around its circle.
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

    /// Puts the quotient of `word` and a link to `next` at `slot`.
    fn write(&mut self, slot: usize, word: u64, next: usize) {
        self.words[slot] = word & !self.low | (slot ^ next) as u64;
    }

    fn link(&mut self, slot: usize, next: usize) {
        self.write(slot, self.words[slot], next);
    }
}

#[cfg(test)]
impl Table {
    /// The fingerprints by slot, or which law is broken where. Follows links only from heads, and
    /// no more of them than there are slots.
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

    /// Bits in use, counted.
    pub(super) fn allocated_bits(&self) -> u64 {
        64 * self.words.len() as u64 + self.heads.allocated_bits()
    }
}
