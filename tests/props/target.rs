//! The type that the bodies of properties and their drivers share.

use sted::ground::random::Random;

/// A parser and its laws.
#[derive(Clone, Copy)]
pub struct Target {
    /// The inputs from which mutations begin.
    pub samples: &'static [&'static [u8]],
    /// Words that mutations insert: pieces that mean something to this parser.
    pub words: &'static [&'static str],
    /// Panics if a law is broken.
    pub check: fn(&[u8]),
}

/// Returns random numbers that depend only on the bytes (FNV-1a), from which bodies draw their
/// cuts.
pub fn seeded(bytes: &[u8]) -> Random {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    Random(bytes.iter().fold(0xCBF2_9CE4_8422_2325, mix))
}
