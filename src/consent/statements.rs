//! What was said of the use of one page, as it was written, and what that means.

use super::Consent;

/// The maximum length of the statements about a page that are kept, in bytes.
pub const LINES_BYTES_MAX: usize = 4 << 10;

/// Where a statement was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// A line of robots.txt with this key.
    Robots(&'a str),
    /// A header field with this name.
    Field(&'a str),
    /// A `meta` element with this name.
    Meta(&'a str),
}

/// The statements about a page, one on each line: where it was made, a colon, a space, and the
/// statement as it was written. Control characters in it are replaced by spaces.
///
/// ```
/// use sted::consent::{Consent, Purpose, Source, Standing, Statements};
///
/// let mut all = Statements::default();
/// all.add(Source::Robots("content-signal"), b"ai-train=no", Consent::of_content_signal);
/// all.add(Source::Field("x-robots-tag"), b"all", |_| Consent::default());
/// assert_eq!(all.lines(), "robots.content-signal: ai-train=no\nhttp.x-robots-tag: all\n");
/// assert_eq!(all.consent().standing(Purpose::AiTrain), Standing::Reserved);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statements {
    lines: String,
    consent: Consent,
    is_cut: bool,
}

impl Statements {
    /// Adds a statement, whose meaning `means` returns. One that has no place among
    /// [`LINES_BYTES_MAX`] bytes counts, but isn't kept; one that alone is longer isn't read.
    pub fn add(&mut self, source: Source<'_>, value: &[u8], means: impl FnOnce(&[u8]) -> Consent) {
        let value = value.trim_ascii();
        if value.len() > LINES_BYTES_MAX {
            self.is_cut = true;
            return;
        }
        self.consent = self.consent | means(value);
        let (place, name) = match source {
            Source::Robots(name) => ("robots", name),
            Source::Field(name) => ("http", name),
            Source::Meta(name) => ("meta", name),
        };
        let text = String::from_utf8_lossy(value);
        let text = text.chars().map(|it| if it.is_control() { ' ' } else { it });
        let before = self.lines.len();
        self.lines.extend([place, "."]);
        self.lines.extend(name.chars().map(|it| it.to_ascii_lowercase()));
        self.lines.push_str(": ");
        self.lines.extend(text);
        self.lines.push('\n');
        if self.lines.len() > LINES_BYTES_MAX {
            self.lines.truncate(before);
            self.is_cut = true;
        }
    }

    /// Takes in that there were more statements, which aren't read.
    pub fn note_cut(&mut self) {
        self.is_cut = true;
    }

    /// Returns the statements, one on each line.
    pub fn lines(&self) -> &str {
        &self.lines
    }

    /// Returns what they mean together.
    pub fn consent(&self) -> Consent {
        self.consent
    }

    /// Returns whether there is no statement.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && !self.is_cut
    }

    /// Returns whether some aren't kept, because they are too long or too many.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Purpose, Standing};
    use super::*;

    #[test]
    fn statements_are_lines() {
        let mut all = Statements::default();
        assert!(all.is_empty());
        let silent = |_: &[u8]| Consent::default();
        all.add(Source::Meta("ROBOTS"), b" noai\r\nWARC-Type: x \xFF", silent);
        assert_eq!(all.lines(), "meta.robots: noai  WARC-Type: x \u{FFFD}\n");
        assert!(!all.is_empty() && !all.is_cut());
    }

    /// What has no place counts; what is too long to be read doesn't, and is noted.
    #[test]
    fn long_statements() {
        let reserved = Consent::of_tdm_reservation;
        let mut all = Statements::default();
        all.add(Source::Field("x"), &[b'a'; LINES_BYTES_MAX + 1], |_| reserved(b"1"));
        assert!(all.is_cut() && all.consent() == Consent::default() && !all.is_empty());
        all.add(Source::Field("tdm-reservation"), b"0", reserved);
        // Each byte that isn't UTF-8 becomes three.
        all.add(Source::Field("x"), &[0xFF; LINES_BYTES_MAX / 3], |_| reserved(b"1"));
        assert_eq!(all.lines(), "http.tdm-reservation: 0\n");
        assert_eq!(all.consent().standing(Purpose::Mining), Standing::Reserved);
        for _ in 0..1_000 {
            all.add(Source::Field("tdm-reservation"), b"0", reserved);
        }
        assert!(all.lines().len() <= LINES_BYTES_MAX && all.lines().len() > LINES_BYTES_MAX - 30);
    }
}
