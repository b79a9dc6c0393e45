//! Pseudorandom numbers from a seed: SplitMix64, the same on every machine.
//!
//! They are used by simulated worlds, synthetic webs, record ids, tests and benches. Nothing here
//! is secret.
//!
//! Law: equal seeds give equal numbers. Seeds of failed simulations are kept in lists, so the
//! sequence of each method never changes. Cost: a few nanoseconds a number, no allocation. Source:
//! Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.

use std::fmt::Debug;

/// A pseudorandom generator; the number is its state. Any number is a valid seed, including zero.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

/// The increment that is added to the state for each number: 2^64 divided by the golden ratio, made
/// odd.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Returns 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Returns a number from 0 to `limit` - 1, of any integer type.
    ///
    /// # Panics
    ///
    /// If `limit` is not above zero.
    pub fn below<N: TryInto<u64, Error: Debug> + TryFrom<u64, Error: Debug>>(
        &mut self,
        limit: N,
    ) -> N {
        let limit = limit.try_into().expect("a limit above zero");
        N::try_from(self.word() % limit).expect("less than the limit, which is of the type")
    }

    /// Returns true with probability 1 / `many`.
    pub fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// Returns a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a random item of `from`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }
}

/// Scrambles a number so that the result looks random. No two numbers give the same result.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_published() {
        // First outputs of the reference implementation for the state 1234567.
        let mut random = Random(1_234_567);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.word(), random.word()], first);
    }

    #[test]
    fn numbers_are_within_bounds_and_all_are_drawn() {
        let mut random = Random(0);
        let mut seen = [0; 7];
        for _ in 0..7_000 {
            seen[random.below(7_usize)] += 1;
            assert!((0.0..1.0).contains(&random.unit()) && random.below(1_u8) == 0);
        }
        assert!(seen.iter().all(|count| (800..1_200).contains(count)), "{seen:?}");
        let fours = (0..8_000).filter(|_| random.one_in(4)).count();
        assert!((1_800..2_200).contains(&fours), "a quarter of 8,000, not {fours}");
    }

    #[test]
    fn a_shuffle_keeps_what_it_orders() {
        let mut list: Vec<u32> = (0..50).collect();
        Random(1).shuffle(&mut list);
        assert!(!list.is_sorted());
        list.sort_unstable();
        assert_eq!(list, (0..50).collect::<Vec<_>>());
        assert_eq!(Random(1).pick(&["a"]), "a");
    }
}
