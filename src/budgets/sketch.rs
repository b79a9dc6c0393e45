//! Counts distinct domains in 32 bytes: a HyperLogLog sketch of 64 registers of four bits.
//!
//! Law: an item that was added before changes nothing, and the order of items doesn't matter.
//! Error: the standard deviation is 13% of the number; up to ten, about one. Estimates saturate at
//! 1.49 million.
//! Cost: an item changes at most one register; an estimate reads all of them.
//! Source: Flajolet, Fusy, Gandouet, Meunier: HyperLogLog (AofA 2007), with their correction of
//! small numbers by linear counting.

/// The number of registers.
const REGISTERS: usize = 64;
/// The largest value of a register.
const VALUE_MAX: u64 = 15;
/// `0.709 * REGISTERS^2 * 2^VALUE_MAX`: what is divided by the sum of `2^(VALUE_MAX - register)`.
/// The factor is the one for 64 registers.
const SCALE: u64 = 95_160_369;
/// Estimates up to this are those of linear counting while a register is empty: 2.5 times the
/// registers.
const LINEAR_MAX: u64 = 160;
/// `64 ln(64 / v)`, rounded, for v empty registers.
const LINEAR: [u16; REGISTERS + 1] = [
    0, 266, 222, 196, 177, 163, 151, 142, 133, 126, 119, 113, 107, 102, 97, 93, 89, 85, 81, 78, 74,
    71, 68, 65, 63, 60, 58, 55, 53, 51, 48, 46, 44, 42, 40, 39, 37, 35, 33, 32, 30, 28, 27, 25, 24,
    23, 21, 20, 18, 17, 16, 15, 13, 12, 11, 10, 9, 7, 6, 5, 4, 3, 2, 1, 0,
];

/// A set of items of which only the number can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sketch([u8; REGISTERS / 2]);

impl Sketch {
    /// Adds an item, given its hash. Returns whether the sketch has changed.
    pub fn add(&mut self, hash: u64) -> bool {
        let place = hash as usize % REGISTERS;
        // The hash without the bits of the place, and a bit that ends it.
        let rest = hash >> REGISTERS.trailing_zeros() | 1 << (VALUE_MAX - 1);
        let value = u64::from(rest.trailing_zeros()) as u8 + 1;
        if value <= self.register(place) {
            return false;
        }
        let (byte, shift) = (&mut self.0[place / 2], place % 2 * 4);
        *byte = *byte & !(0xf << shift) | value << shift;
        true
    }

    /// Returns about how many distinct items were added.
    pub fn estimate(&self) -> u32 {
        let (mut sum, mut empty) = (0, 0);
        for place in 0..REGISTERS {
            let value = self.register(place);
            sum += 1_u64 << (VALUE_MAX - u64::from(value));
            empty += usize::from(value == 0);
        }
        let raw = SCALE / sum;
        if raw <= LINEAR_MAX && empty > 0 {
            return LINEAR[empty].into();
        }
        u32::try_from(raw).expect("at most 2^15 times the registers")
    }

    /// Returns the bytes of the sketch.
    pub fn bytes(&self) -> &[u8; REGISTERS / 2] {
        &self.0
    }

    /// Returns the sketch of these bytes.
    pub fn of_bytes(bytes: [u8; REGISTERS / 2]) -> Self {
        Self(bytes)
    }

    fn register(&self, place: usize) -> u8 {
        self.0[place / 2] >> (place % 2 * 4) & 0xf
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use std::collections::BTreeSet;

    /// Law: an item counts once, in any order.
    #[test]
    fn an_item_counts_once() {
        let mut random = Random(7);
        let items: Vec<u64> = (0..300).map(|_| random.word()).collect();
        let mut sketch = Sketch::default();
        assert_eq!(sketch.estimate(), 0);
        items.iter().for_each(|item| _ = sketch.add(*item));
        let mut other = Sketch::default();
        items.iter().rev().for_each(|item| _ = other.add(*item));
        assert_eq!(sketch, other);
        assert!(items.iter().all(|item| !sketch.add(*item)));
        assert_eq!(Sketch::of_bytes(*sketch.bytes()), sketch);
    }

    /// Estimates are held to exact sets: the mean error and the largest one, by number.
    #[test]
    fn estimates_are_near() {
        for (count, most_mean, most) in [
            (1, 0.001, 0.001),
            (5, 0.08, 0.8),
            (20, 0.10, 0.8),
            (100, 0.13, 0.8),
            (160, 0.13, 0.8),
            (1_000, 0.13, 0.8),
            (50_000, 0.13, 0.8),
        ] {
            let (mut sum, mut worst, mut bias) = (0.0, 0.0_f64, 0.0);
            for seed in 0..200 {
                let mut random = Random(seed * 1_000_003 + count);
                let (mut sketch, mut exact) = (Sketch::default(), BTreeSet::new());
                while exact.len() < count as usize {
                    let item = random.word();
                    exact.insert(item);
                    sketch.add(item);
                    sketch.add(item);
                }
                let error = f64::from(sketch.estimate()) / count as f64 - 1.0;
                sum += error.abs();
                bias += error;
                worst = worst.max(error.abs());
            }
            let (mean, bias) = (sum / 200.0, bias / 200.0);
            assert!(mean <= most_mean && worst <= most, "{count}: {mean:.3}, {worst:.3}");
            assert!(bias.abs() < 0.05, "{count}: {bias:.3}");
        }
    }
}
