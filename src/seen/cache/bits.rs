//! A bit vector, 64 bits in a word.
//!
//! Law: equivalent to a `Vec<bool>`, at an eighth of the memory.
//! Cost: O(1); a sweep reads 64 bits at once.

/// A vector of bits, all clear at first.
#[derive(Clone, Debug)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// Creates `len` clear bits; `len` is rounded up to whole words.
    pub(super) fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    pub(super) fn set(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    pub(super) fn clear(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }

    /// Moves the bit at `from` to `to`, and clears `from`.
    pub(super) fn shift(&mut self, from: usize, to: usize) {
        let bit = u64::from(self.has(from));
        self.clear(from);
        self.clear(to);
        self.0[to / 64] |= bit << (to % 64);
    }

    /// Returns the first clear bit at or after `from`, and clears the set bits before it. The
    /// search continues at bit 0 after the last of the `len` bits; `len` is a power of two.
    pub(super) fn sweep(&mut self, from: usize, len: usize) -> usize {
        let mut at = from;
        // The bits of the first word before `from` are checked last.
        for _ in 0..=self.0.len() {
            let word = &mut self.0[at / 64];
            let (shift, end) = (at % 64, (len - at).min(64 - at % 64));
            // Bits that were shifted in are clear, so a run ends with its word at the latest.
            let run = (*word >> shift).trailing_ones() as usize;
            if run < end {
                *word &= !(((1 << run) - 1) << shift);
                return at + run;
            }
            *word &= !(u64::MAX << shift);
            at = (at + end) & (len - 1);
        }
        unreachable!("a turn has cleared them all");
    }
}

#[cfg(test)]
impl Bits {
    pub(super) fn allocated_bits(&self) -> u64 {
        64 * self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    #[test]
    fn bits_are_as_a_row_of_truths() {
        let mut random = Random(1);
        let mut below = |limit: usize| random.below(limit);
        for len in [1, 2, 32, 64, 128, 512] {
            let (mut bits, mut truths) = (Bits::new(len), vec![false; len]);
            for round in 0..4_000 {
                let (at, to) = (below(len), below(len));
                match below(20) {
                    0..12 => (bits.set(at), truths[at] = true).0,
                    12..14 => (bits.clear(at), truths[at] = false).0,
                    14..16 if at != to => {
                        bits.shift(at, to);
                        truths[to] = std::mem::take(&mut truths[at]);
                    }
                    16 if round % 64 == 0 => {
                        // All set: the sweep wraps around once.
                        (0..len).for_each(|at| bits.set(at));
                        truths.fill(true);
                    }
                    _ => {
                        let mut hand = at;
                        while std::mem::take(&mut truths[hand]) {
                            hand = (hand + 1) % len;
                        }
                        assert_eq!(bits.sweep(at, len), hand, "{len} bits from {at}");
                    }
                }
                let now: Vec<bool> = (0..len).map(|at| bits.has(at)).collect();
                assert_eq!(now, truths, "{len} bits");
            }
        }
    }
}
