//! Random numbers of this station's tests: SplitMix64.

/// A generator, by its seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// 64 random bits.
    pub(super) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From 0 to below `most`.
    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.word() % most
    }

    /// True one time in so many.
    pub(super) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}
