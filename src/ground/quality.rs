//! The quality of a page: a fixed-point number, the same on every machine.
//!
//! The quality says how much a page is expected to be worth relative to the mean page of a crawl,
//! which has quality 1. [`crate::rating`] estimates it, [`crate::frontier`] ranks by it.
//!
//! Laws: a quality is never negative and never above [`Quality::MAX`], so the sum of a million
//! highest qualities fits 64 bits. Equal text is parsed to equal quality. Cost: eight bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// The quality of a page, counted in millionths of the quality of the mean page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quality(u64);

/// Why a text or a number is not a valid quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The text is not a decimal number.
    Syntax,
    /// The value is NaN or infinite.
    NotFinite,
    /// The value is below zero.
    Negative,
    /// The value is above [`Quality::MAX`].
    TooLarge,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "not a decimal number",
            Self::NotFinite => "not a finite number",
            Self::Negative => "below zero",
            Self::TooLarge => "above 1,000,000, the highest there is",
        })
    }
}

impl Quality {
    /// The quality of a page that is worth nothing.
    pub const ZERO: Self = Self(0);
    /// The quality of the mean page.
    pub const ONE: Self = Self(1_000_000);
    /// The highest quality: a million times that of the mean page.
    pub const MAX: Self = Self(1_000_000_000_000);

    /// Creates a quality from `millionths` of the mean page's. A number above [`Quality::MAX`] is
    /// lowered to that.
    pub const fn from_millionths(millionths: u64) -> Self {
        if millionths > Self::MAX.0 { Self::MAX } else { Self(millionths) }
    }

    /// Returns the quality in millionths of the mean page's.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// Returns the quality times `milli` thousandths, at most [`Quality::MAX`], rounded down.
    pub const fn scaled(self, milli: u32) -> Self {
        let exact = self.0 as u128 * milli as u128 / 1_000;
        if exact > Self::MAX.0 as u128 { Self::MAX } else { Self(exact as u64) }
    }

    /// Rounds `value`, a multiple of the mean page's quality, to the nearest millionth.
    ///
    /// # Errors
    /// The value is NaN, infinite, negative, or above [`Quality::MAX`].
    pub fn from_f64(value: f64) -> Result<Self, Invalid> {
        if !value.is_finite() {
            return Err(Invalid::NotFinite);
        }
        let millionths = (value * 1e6).round();
        if value < 0.0 {
            Err(Invalid::Negative)
        } else if millionths > Self::MAX.0 as f64 {
            Err(Invalid::TooLarge)
        } else {
            Ok(Self(millionths as u64))
        }
    }

    /// Parses a decimal number, which is a multiple of the mean page's quality.
    ///
    /// # Errors
    /// The text is not a number, or the number is negative or above [`Quality::MAX`].
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::from_f64(text.trim().parse().map_err(|_| Invalid::Syntax)?)
    }
}

/// A number, which parses as the same quality.
impl Serialize for Quality {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

impl<'de> Deserialize<'de> for Quality {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_f64(f64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_what_they_are_worth() {
        let cases = [
            ("1", Ok(1_000_000)),
            ("0.25", Ok(250_000)),
            (" 3e2 ", Ok(300_000_000)),
            ("0.0000004", Ok(0)),
            ("-0", Ok(0)),
            ("1000000", Ok(1_000_000_000_000)),
            ("1000001", Err(Invalid::TooLarge)),
            ("-1", Err(Invalid::Negative)),
            ("-1e-9", Err(Invalid::Negative)),
            ("NaN", Err(Invalid::NotFinite)),
            ("inf", Err(Invalid::NotFinite)),
            ("", Err(Invalid::Syntax)),
            ("1,5", Err(Invalid::Syntax)),
        ];
        for (text, expected) in cases {
            assert_eq!(Quality::parse(text).map(Quality::millionths), expected, "{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for millionths in
            [0, 1, 999_999, 1_000_000, 1_234_567_890, 999_999_999_999, 1_000_000_000_000]
        {
            let quality = Quality::from_millionths(millionths);
            assert_eq!(Quality::parse(&quality.to_string()), Ok(quality));
            let json = serde_json::to_string(&quality).expect("a number");
            assert_eq!(serde_json::from_str::<Quality>(&json).expect(&json), quality);
        }
    }
}
