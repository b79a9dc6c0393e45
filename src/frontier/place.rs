//! Bands of quality, and where on disk a chunk of URLs lies: one word of eight bytes.
//!
//! A URL on disk is worth its band (decision 34). There are 64: two for each doubling of quality
//! from a sixtieth of the mean page up, one for each below, one for nothing.
//!
//! ```text
//! place   segment 20 bits | sixteenths used up 4 | length in units of 256 bytes, rounded up, 8
//!         band 6 | offset 26
//! ```
//! A chunk may hold several bands, the best first; its place tells that of the next URL in it. It
//! is used up by sixteenths of its URLs.
//!
//! Laws: a higher quality is never in a lower band; a place says what it was made of, but for
//! lengths past 255 units, which are told as 255.

use crate::quality::Quality;

/// A band, from 0 (worth nothing) to 63.
pub(super) type Band = u8;

/// The band of robots.txt, which goes before all pages, and of the best of these.
pub(super) const BAND_MAX: Band = 63;
/// Qualities below so many doublings of a millionth have one band each.
const FINE_FROM: u32 = 14;

/// Offsets in a segment are below this.
pub(super) const SEGMENT_BYTES_MAX: u64 = 1 << 26;
/// Numbers of segments are below this: seventy terabytes.
pub(super) const SEGMENTS_MAX: u32 = 1 << 20;
/// A chunk is used up in so many steps.
pub(super) const STEPS: u32 = 16;
/// In tests a short chunk has a few URLs.
const UNIT_BYTES: usize = if cfg!(test) { 32 } else { 256 };
/// A chunk of so many bytes, or of which no more is left, is short.
pub(super) const SHORT_BYTES: usize = UNIT_BYTES * if cfg!(test) { 4 } else { 3 };
/// And one of so many has next to nothing in it.
const TINY_BYTES: usize = if cfg!(test) { 2 * UNIT_BYTES } else { UNIT_BYTES };

/// The band of a page of that quality.
pub(super) fn quality_band(quality: Quality) -> Band {
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
        Self(u64::from(segment) << 44 | units << 32 | u64::from(band) << 26 | offset)
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
        (self.0 >> 44) as u32
    }

    pub(super) fn offset(self) -> u64 {
        self.0 % SEGMENT_BYTES_MAX
    }

    /// The band of the next URL in it.
    pub(super) fn band(self) -> Band {
        (self.0 >> 26) as u8 & BAND_MAX
    }

    /// Steps in which it has been used up: 15 at most.
    pub(super) fn used(self) -> u32 {
        (self.0 >> 40) as u32 % STEPS
    }

    /// The same chunk, used up so far; the next URL in it is of this band.
    pub(super) fn used_up(self, steps: u32, band: Band) -> Self {
        assert!(steps < STEPS && band <= BAND_MAX, "something is left of it");
        let changed = (15 << 40) | (u64::from(BAND_MAX) << 26);
        Self(self.0 & !changed | u64::from(steps) << 40 | u64::from(band) << 26)
    }

    /// The same chunk, moved elsewhere.
    pub(super) fn moved(self, to: Self) -> Self {
        to.used_up(self.used(), self.band())
    }

    /// Whether it is that chunk, however far it is used up.
    pub(super) fn is(self, other: Self) -> bool {
        (self.segment(), self.offset()) == (other.segment(), other.offset())
    }

    /// Whether little is in it still.
    pub(super) fn is_short(self) -> bool {
        self.left_bytes() <= SHORT_BYTES
    }

    /// By quality: whether it may lie there as its URLs have come, in no order, so that it must be
    /// taken whole.
    pub(super) fn is_unsorted(self) -> bool {
        self.used() == 0 && self.is_short()
    }

    /// Whether it has next to nothing in it.
    pub(super) fn is_tiny(self) -> bool {
        self.left_bytes() <= TINY_BYTES
    }

    /// Bytes of it that are not used up, about.
    pub(super) fn left_bytes(self) -> usize {
        self.bytes() * (STEPS - self.used()) as usize / STEPS as usize
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
            assert_eq!(quality_band(Quality::from_millionths(millionths)), expected, "{why}");
        }
        let mut last = 0;
        for step in 0..4_000_u32 {
            let quality = Quality::from_millionths(f64::powf(1.007, f64::from(step)) as u64);
            assert!(quality_band(quality) >= last, "{quality:?}");
            last = quality_band(quality);
        }
        assert_eq!(last, BAND_MAX);
    }

    #[test]
    fn places_say_what_they_were_made_of() {
        let unit = UNIT_BYTES;
        for segment in [0, 1, SEGMENTS_MAX - 1] {
            for offset in [0, 24, SEGMENT_BYTES_MAX - 1] {
                for (bytes, told) in [(1, 1), (unit, 1), (unit + 1, 2), (1 << 20, 255)] {
                    for band in [0, 1, 62, 63] {
                        let place = Place::new(segment, offset, bytes, band);
                        let place = Place::from_word(place.word());
                        assert_eq!((place.segment(), place.offset()), (segment, offset));
                        assert_eq!((place.bytes(), place.band()), (told * unit, band));
                        assert_eq!(place.used(), 0);
                        let later = place.used_up(15, 7).used_up(9, 5);
                        assert!(later.is(place));
                        assert_eq!((later.used(), later.band()), (9, 5));
                        assert_eq!(later.used_up(0, band), place);
                    }
                }
            }
        }
    }
}
