//! Random draws of the simulated world: a stream for each connection and each look-up, from one
//! seed.
//!
//! A stream is identified by its purpose and two numbers (the host, and which of its connections or
//! look-ups it is for), so that a policy that visits servers in another order meets the same faults
//! at the same places.
//!
//! Law: equal seed, purpose and numbers give equal draws on every machine.

use crate::ground::random::{GOLDEN, Random, mix};

/// What a stream is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Purpose {
    Connection = 1,
    Lookup,
    Cuts,
    Disk,
    Score,
}

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(super) struct Draw(Random);

impl Draw {
    pub(super) fn new(seed: u64, purpose: Purpose, a: u32, b: u32) -> Self {
        let place = u64::from(a) << 32 | u64::from(b);
        Self(Random(mix(mix(seed ^ (purpose as u64).wrapping_mul(GOLDEN)) ^ place)))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.word()
    }

    /// Returns a number below `bound`; 0 if `bound` is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let high = (u128::from(self.next()) * u128::from(bound)) >> 64;
        u64::try_from(high).expect("below a 64-bit bound")
    }

    /// Returns true with the probability `share`. One number of the stream is used, whatever the
    /// share.
    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.0.unit() < share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_within_bounds() {
        let mut draw = Draw::new(1, Purpose::Cuts, 2, 3);
        let hits = (0..10_000).filter(|_| draw.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "a quarter of 10,000, not {hits}");
        assert!((0..1_000).all(|_| draw.below(7) < 7 && !draw.chance(0.0) && draw.chance(1.0)));
        assert_eq!(draw.below(0), 0);
    }
}
