//! Bands of quality: how exactly URLs on disk are in order (decision 34).
//!
//! There are 64: two for each doubling of quality from a sixtieth of the mean page up, one for each
//! doubling below, one for nothing.
//!
//! Law: a higher quality is never in a lower band.

use crate::ground::quality::Quality;

/// A band of quality, from 0 (worth nothing) to [`BAND_MAX`].
pub(super) type Band = u8;

/// The band of what goes first, and of the best pages.
pub(super) const BAND_MAX: Band = 63;
/// Qualities below so many doublings of a millionth have one band each.
const FINE_FROM: u32 = 14;
/// The band of a quality.
pub(super) fn band_of(quality: Quality) -> Band {
    let millionths = quality.millionths();
    let bits = u64::BITS - millionths.leading_zeros();
    let band = if bits <= FINE_FROM {
        bits.saturating_sub(3)
    } else {
        let is_upper_half = millionths >> (bits - 2) & 1 == 1;
        FINE_FROM - 2 + 2 * (bits - FINE_FROM - 1) + u32::from(is_upper_half)
    };
    u8::try_from(band).expect("the best quality is in band 63")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_follow_quality() {
        let mut before = 0;
        for doubling in 0..40 {
            for quarter in 4..8 {
                let quality = Quality::from_millionths((quarter << doubling) / 4);
                let band = band_of(quality);
                assert!(band >= before && band <= BAND_MAX);
                before = band;
            }
        }
        assert_eq!(band_of(Quality::ZERO), 0);
        assert_eq!(band_of(Quality::MAX), BAND_MAX);
    }
}
