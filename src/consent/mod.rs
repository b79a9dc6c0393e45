//! What a site says about the use of its pages, and what that means for the purpose of a crawl.
//!
//! A site *signals* its preferences in its robots.txt (Content-Signal, Content-Usage), in header
//! fields (Content-Usage, X-Robots-Tag, TDM-Reservation) and in `meta` elements (robots,
//! tdm-reservation). For each [`Purpose`] a signal reserves the use, allows it, or is silent. Of
//! all signals the strictest counts. If all are silent, the use is allowed.
//!
//! Laws: no input panics. More signals never lift a reservation; those that are too long to be read
//! are noted as cut. A word that isn't known changes nothing.
//! Cost: one pass over each value.
//! Source: draft-ietf-aipref-vocab (Content-Usage), the categories of its versions up to 05;
//! contentsignals.org (Content-Signal); TDM Reservation Protocol, 2 February 2024.

mod statements;
mod table;
#[cfg(test)]
mod tests;

pub use statements::{LINES_BYTES_MAX, Source, Statements};
pub use table::{Purpose, Standing};

use std::ops::BitOr;

/// What signals mean for each purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consent([Standing; Purpose::ALL.len()]);

impl Consent {
    /// Returns what the signals mean for a purpose.
    pub fn standing(self, purpose: Purpose) -> Standing {
        self.0[purpose as usize]
    }

    /// Returns the names of the purposes for which the use is of this standing, separated by
    /// spaces.
    pub fn names(self, standing: Standing) -> String {
        let has = |purpose: &Purpose| self.standing(*purpose) == standing;
        let names: Vec<&str> = Purpose::ALL.into_iter().filter(has).map(Purpose::name).collect();
        names.join(" ")
    }

    /// Parses the value of a Content-Signal line of a robots.txt, without a path: words for uses,
    /// each with `=yes` or `=no`, separated by commas.
    pub fn of_content_signal(value: &[u8]) -> Self {
        let mut consent = Self::default();
        for part in value.split(|byte| *byte == b',') {
            let mut sides = part.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
            let (name, word) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
            let allows = word.eq_ignore_ascii_case(b"yes");
            if allows || word.eq_ignore_ascii_case(b"no") {
                let is = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
                let speaks = |purpose: Purpose| purpose.content_signal().is_some_and(is);
                consent = consent | Self::of(|purpose| speaks(purpose).then_some(allows));
            }
        }
        consent
    }

    /// Parses the value of a Content-Usage field, or of a Content-Usage line of a robots.txt
    /// without its path: a dictionary (RFC 9651, section 3.2) of categories with `y` or `n`. If it
    /// is none, nothing in it counts; if a category is named twice, the last value does.
    pub fn of_content_usage(value: &[u8]) -> Self {
        let Ok(all) = sfv::Parser::new(value).parse::<sfv::Dictionary>() else {
            return Self::default();
        };
        let says = |category: &&str| match all.get(*category)? {
            sfv::ListEntry::Item(item) => match item.bare_item.as_token()?.as_str() {
                "y" => Some(true),
                "n" => Some(false),
                _ => None,
            },
            sfv::ListEntry::InnerList(_) => None,
        };
        let strictest = |purpose: Purpose| purpose.content_usage().iter().filter_map(says).min();
        // All automated processing, which counts where nothing narrower is named.
        let bots = says(&"bots");
        Self::of(|purpose| strictest(purpose).or(bots))
    }

    /// Parses a TDM-Reservation field or `meta` element: 1 reserves and 0 allows text and data
    /// mining, AI training and AI input. Any other value is silent.
    pub fn of_tdm_reservation(value: &[u8]) -> Self {
        let allows = match value.trim_ascii() {
            b"0" => true,
            b"1" => false,
            _ => return Self::default(),
        };
        Self::of(|purpose| purpose.is_mining().then_some(allows))
    }

    /// Returns what a directive of an X-Robots-Tag field or a robots `meta` element means for a
    /// page, which may be an image.
    pub fn of_directive(name: &[u8], is_image: bool) -> Self {
        let is = |known: &&str| known.as_bytes().eq_ignore_ascii_case(name);
        let reserves = |purpose: Purpose| {
            purpose.directives().iter().any(is)
                || is_image && purpose.image_directives().iter().any(is)
        };
        Self::of(|purpose| reserves(purpose).then_some(false))
    }

    /// Returns what a signal means that says for each purpose whether it allows it.
    fn of(says: impl Fn(Purpose) -> Option<bool>) -> Self {
        Self(Purpose::ALL.map(|purpose| says(purpose).map_or(Standing::Silent, Standing::of)))
    }
}

impl BitOr for Consent {
    type Output = Self;

    /// Returns the strictest of both for each purpose.
    fn bitor(self, other: Self) -> Self {
        Self(Purpose::ALL.map(|purpose| self.standing(purpose).max(other.standing(purpose))))
    }
}
