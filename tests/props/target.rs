//! What the bodies of properties and their drivers share.

use sted::ground::random::Random;

/// One parser and its laws.
#[derive(Clone, Copy)]
pub struct Target {
    /// What mutation begins with.
    pub samples: &'static [&'static [u8]],
    /// What is dropped in here and there: pieces that mean something to this parser.
    pub words: &'static [&'static str],
    /// Panics if a law is broken.
    pub check: fn(&[u8]),
}

/// Numbers that depend on the bytes alone (FNV-1a), from which bodies draw their cuts.
pub fn seeded(bytes: &[u8]) -> Random {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    Random(bytes.iter().fold(0xCBF2_9CE4_8422_2325, mix))
}
