//! Quality of a page as a value: a fixed-point number, the same on every machine.
//!
//! What a page is thought to be worth, against the mean page of a crawl, which is worth one. Who
//! estimates it is [`crate::rating`]; who ranks by it is [`crate::frontier`].
//!
//! Laws: never negative, never above [`Quality::MAX`], so that the sum over a million of the best
//! still fits 64 bits; equal text gives equal quality. Cost: eight bytes.

use std::fmt;

/// Worth of a page, in millionths of the mean page's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quality(u64);

/// Why a text is no quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// Not a decimal number.
    Syntax,
    /// Not a number, or without end.
    NotFinite,
    /// Below zero.
    Negative,
    /// Above [`Quality::MAX`].
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
    /// Worth nothing.
    pub const ZERO: Self = Self(0);
    /// The mean page.
    pub const ONE: Self = Self(1_000_000);
    /// The best there is: a million mean pages.
    pub const MAX: Self = Self(1_000_000_000_000);

    /// So many millionths, [`Quality::MAX`] at most.
    pub const fn from_millionths(millionths: u64) -> Self {
        if millionths > Self::MAX.0 { Self::MAX } else { Self(millionths) }
    }

    /// Millionths.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// The nearest quality to a number of mean pages.
    ///
    /// # Errors
    /// What is not finite, negative or too large.
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

    /// Reads a decimal number.
    ///
    /// # Errors
    /// What is no such number, or out of range.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::from_f64(text.trim().parse().map_err(|_| Invalid::Syntax)?)
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
        for millionths in [0, 1, 999_999, 1_000_000, 1_234_567_890, 1_000_000_000_000] {
            let quality = Quality::from_millionths(millionths);
            assert_eq!(Quality::parse(&quality.to_string()), Ok(quality));
        }
    }
}
