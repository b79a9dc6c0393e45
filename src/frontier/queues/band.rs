//! Bands: classes of quality, by which URLs on disk are ordered (decision 34).
//!
//! In memory URLs are sorted by their exact quality, on disk only by its band. There are 64 bands:
//! two for each doubling of quality from a sixtieth of the mean page's quality up, one for each
//! doubling below that, and band 0 for qualities below 8 millionths.
//!
//! Law: a higher quality is never in a lower band.

use crate::ground::quality::Quality;

/// The number of a band, from 0 (the lowest qualities) to [`BAND_MAX`].
pub(super) type Band = u8;

/// The highest band: that of the best pages, and of URLs that go first in their queue whatever
/// their quality.
pub(super) const BAND_MAX: Band = 63;
/// The binary logarithm of a quality, in millionths. From this quality up there are two bands for
/// each doubling, below it there is one.
const FINE_FROM: u32 = 14;
/// Returns the band of a quality.
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
