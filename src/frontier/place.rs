//! Bands of quality, and where on disk a chunk of URLs lies: one word of eight bytes.
//!
//! A URL on disk is worth its band (decision 34). There are 64: two for each doubling of quality
//! from a sixtieth of the mean page up, one for each below, one for nothing.
//!
//! ```text
//! place   segment 24 bits | length in units of 256 bytes, rounded up, 8 | band 6 | offset 26
//! ```
//!
//! Laws: a higher quality is never in a lower band; a place says what it was made of, but for
//! lengths past 255 units, which are told as 255.

use super::queue::Item;
use crate::quality::Quality;

/// A band, from 0 (worth nothing) to 63.
pub(super) type Band = u8;

/// The band of robots.txt, which goes before all pages, and of the best of these.
pub(super) const BAND_MAX: Band = 63;
/// Qualities below so many doublings of a millionth have one band each.
const FINE_FROM: u32 = 14;

/// Offsets in a segment are below this.
pub(super) const SEGMENT_BYTES_MAX: u64 = 1 << 26;
/// Numbers of segments are below this: a thousand terabytes.
pub(super) const SEGMENTS_MAX: u32 = 1 << 24;
const UNIT_BYTES: usize = 256;

/// The band of a URL.
pub(super) fn band_of(item: &Item) -> Band {
    if item.is_prior() { BAND_MAX } else { band(item.quality) }
}

fn band(quality: Quality) -> Band {
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

/// Where a chunk lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

impl Place {
    pub(super) fn new(segment: u32, offset: u64, bytes: usize, band: Band) -> Self {
        assert!(offset < SEGMENT_BYTES_MAX && segment < SEGMENTS_MAX, "it fits its bits");
        assert!(band <= BAND_MAX, "there are 64 bands");
        let units = bytes.div_ceil(UNIT_BYTES).min(255) as u64;
        Self(u64::from(segment) << 40 | units << 32 | u64::from(band) << 26 | offset)
    }

    /// As it was written down.
    pub(super) fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// To be written down.
    pub(super) fn word(self) -> u64 {
        self.0
    }

    pub(super) fn segment(self) -> u32 {
        (self.0 >> 40) as u32
    }

    pub(super) fn offset(self) -> u64 {
        self.0 % SEGMENT_BYTES_MAX
    }

    pub(super) fn band(self) -> Band {
        (self.0 >> 26) as u8 & BAND_MAX
    }

    /// Bytes it takes, rounded up; if as many as can be told, maybe more.
    pub(super) fn bytes(self) -> usize {
        usize::from((self.0 >> 32) as u8) * UNIT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_go_up_with_quality() {
        let cases = [
            (0, 0, "nothing"),
            (1, 0, "next to nothing"),
            (1 << 14, 12, "the first of the fine ones"),
            ((1 << 14) - 1, 11, "the last of the coarse ones"),
            (1_000_000, 23, "the mean page"),
            (1 << 20, 24, "two bands for each doubling"),
            (3 << 19, 25, "of which this is the second"),
            (1 << 21, 26, "and then the next"),
            (1_000_000_000_000, 63, "the best there is"),
        ];
        for (millionths, expected, why) in cases {
            assert_eq!(band(Quality::from_millionths(millionths)), expected, "{why}");
        }
        let mut last = 0;
        for step in 0..4_000_u32 {
            let quality = Quality::from_millionths(f64::powf(1.007, f64::from(step)) as u64);
            assert!(band(quality) >= last, "{quality:?}");
            last = band(quality);
        }
        assert_eq!(last, BAND_MAX);
    }

    #[test]
    fn places_say_what_they_were_made_of() {
        for segment in [0, 1, SEGMENTS_MAX - 1] {
            for offset in [0, 24, SEGMENT_BYTES_MAX - 1] {
                for (bytes, told) in [(1, 256), (256, 256), (257, 512), (1 << 20, 65_280)] {
                    for band in [0, 1, 62, 63] {
                        let place = Place::new(segment, offset, bytes, band);
                        let place = Place::from_word(place.word());
                        assert_eq!((place.segment(), place.offset()), (segment, offset));
                        assert_eq!((place.bytes(), place.band()), (told, band));
                    }
                }
            }
        }
    }
}
