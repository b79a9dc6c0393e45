//! Parses a seed file to URLs, and reports the lines that give none.
//!
//! The format:
//! - One URL on each line. A line may end in LF, CR LF or CR; the file may be in UTF-8 or UTF-16.
//! - Blank lines are skipped, and so are comments: a `#` at the start of a line or after white
//!   space, and the rest of the line.
//! - A URL may be in quotes or angle brackets, and followed by a tab and a note.
//! - Tables are read by the column that their header names (`url`, `domain`, ...), or by the second
//!   column if the first contains ranks. On any line a rank and a tab before the URL are skipped,
//!   and so are zero-width characters around it.
//! - A line without a scheme is an http URL: `example.com/x`, `localhost:8080`.
//! - A duplicate URL counts once and is reported once.
//!
//! Parsing continues after an invalid line. A line that can't be meant as one URL is a [`Mistake`]
//! and gives no seed. A line that may have another meaning gives a seed and a [`Doubt`].
//!
//! Cost: linear in the text.

mod line;
mod table;

use crate::ground::map::Map;
use crate::url::{Invalid, Url};
use std::borrow::Cow;
use std::fmt;
use table::Layout;

/// A start URL of the crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The URL in canonical form.
    pub url: Url,
    /// The number of the line that contains the URL, counted from 1.
    pub line: usize,
}

/// A line that gave no seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The content of the line, shortened if it is long.
    pub text: String,
    /// What is wrong with the line.
    pub reason: Reason,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The text is not a URL that can be fetched.
    Invalid(Invalid),
    /// The line is not in UTF-8.
    NotUtf8,
    /// The text looks like a mail address.
    MailAddress,
    /// There is white space inside the URL.
    WhiteSpace,
    /// The line contains this control character, line end of another system, or invisible
    /// character.
    Invisible(char),
    /// The line begins with a plus or a minus, like a line of a scope file.
    Directive,
    /// A quote or an angle bracket is not closed or not opened.
    Quote,
    /// The line is one of an XML or HTML file.
    Markup,
    /// There is text before the scheme, which a URL parser would read as the host.
    Prefix,
    /// The scheme is misspelt, so that a URL parser would read it as the host.
    Scheme,
    /// The host contains characters that no DNS name has.
    HostName,
    /// A second URL begins inside the first one.
    TwoUrls,
    /// The line is the name of a column.
    Header,
    /// In a row of a table the column of URLs is empty.
    NoCell,
    /// The URL was already given on the line with this number.
    Duplicate(usize),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid(invalid) => return invalid.fmt(f),
            Self::Duplicate(first) => return write!(f, "the same as line {first}"),
            Self::Invisible(c) => {
                let code = u32::from(*c);
                return write!(f, "contains the invisible character U+{code:04X}");
            }
            Self::NotUtf8 => "not UTF-8",
            Self::MailAddress => "a mail address, not a URL",
            Self::WhiteSpace => "white space in a URL; write %20, or put a tab before a note",
            Self::Directive => "not a URL; put scope rules under [scope]",
            Self::Quote => "unbalanced quote or angle bracket",
            Self::Markup => "markup, not a URL; a seed file is a list of URLs",
            Self::Prefix => "text before the scheme; put the URL first",
            Self::Scheme => "the scheme is misspelt; write http:// or https://",
            Self::HostName => {
                "not a valid host name; a table needs a header line with a column \"url\""
            }
            Self::TwoUrls => "more than one URL; write one on each line, or %2C for a comma",
            Self::Header => {
                "taken as the name of a column; write http:// before the name of a host"
            }
            Self::NoCell => "the column of URLs is empty",
        })
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {:?}: {}", self.line, self.text, self.reason)
    }
}

/// Why a line that gave a seed may have another meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// This separator (comma, semicolon or bar) was read as part of the URL. Without a header
    /// nothing shows whether it separates the columns of a table instead.
    Separator(char),
    /// The host has no dot, and the line has no scheme.
    Dotless,
    /// The host is a number, which the URL standard reads as an IP address.
    Number,
    /// The URL contained a user name or password, which was removed.
    Credentials,
    /// The URL ends like a sentence, a pattern or a truncated text.
    Ending,
    /// The URL contains `&amp;`, like URLs in HTML.
    Entity,
    /// The URL contains backslashes, which the URL standard reads as slashes.
    Backslash,
    /// The note after the URL looks like another URL, and was ignored.
    SecondUrl,
}

impl Doubt {
    /// Returns advice for the operator: what to change if the line has another meaning than
    /// assumed.
    pub fn fix(self) -> &'static str {
        match self {
            Self::Separator(_) => "a table needs a header line with a column \"url\"",
            Self::Dotless | Self::Number => "write http:// before it if it is a host",
            Self::Credentials => "sted doesn't log in to servers",
            Self::Ending => "remove it if it isn't part of the URL",
            Self::Entity => "write & instead",
            Self::Backslash => "write / instead, or %5C for a literal backslash",
            Self::SecondUrl => "write one URL on each line",
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Separator(',') => "the comma was taken as part of the URL",
            Self::Separator(';') => "the semicolon was taken as part of the URL",
            Self::Separator(c) => return write!(f, "the {c} was taken as part of the URL"),
            Self::Dotless => "a word without a dot was taken as a host",
            Self::Number => "a number was taken as an address",
            Self::Credentials => "user name and password were removed from the URL",
            Self::Ending => "the punctuation at the end was taken as part of the URL",
            Self::Entity => "&amp; was taken as part of the URL",
            Self::Backslash => "backslashes were taken as slashes",
            Self::SecondUrl => "the text after the URL looks like another one and was not read",
        })
    }
}

/// All lines of a file that gave a seed and share one kind of doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubtful {
    /// The kind of doubt.
    pub doubt: Doubt,
    /// The number of lines with this kind of doubt.
    pub lines: usize,
    /// The number of the first of these lines, counted from 1.
    pub first: usize,
}

/// The content of a seed file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The seeds, in the order of their lines.
    pub seeds: Vec<Seed>,
    /// The lines that gave no seed, and why.
    pub mistakes: Vec<Mistake>,
    /// The lines that gave a seed but may have another meaning.
    pub doubts: Vec<Doubtful>,
}

impl Parsed {
    fn doubt(&mut self, doubt: Doubt, line: usize) {
        match self.doubts.iter_mut().find(|known| known.doubt == doubt) {
            Some(known) => known.lines += 1,
            None => self.doubts.push(Doubtful { doubt, lines: 1, first: line }),
        }
    }
}

/// Parses a seed file; returns its seeds, and the lines that gave none.
pub fn parse(text: &[u8]) -> (Vec<Seed>, Vec<Mistake>) {
    let Parsed { seeds, mistakes, .. } = parse_file(text);
    (seeds, mistakes)
}

/// Parses a seed file; returns its seeds, the lines that gave none, and the doubtful lines.
pub fn parse_file(text: &[u8]) -> Parsed {
    let text = decoded(text);
    let mut parsed = Parsed::default();
    // Maps each URL to the number of its line, and to whether a duplicate of it was reported.
    let mut known: Map<Url, (usize, bool)> = Map::default();
    let layout = Layout::of(&text);
    for (line, record) in layout.records(&text) {
        let (content, read) = match layout.content(line, record) {
            None => continue,
            Some(Err(reason)) => (record.trim_ascii(), Err(reason)),
            Some(Ok(cell)) => (cell, line::read(cell, layout.is_table())),
        };
        let reason = match read {
            Ok((url, doubts)) => {
                doubts.into_iter().for_each(|doubt| parsed.doubt(doubt, line));
                match known.get_mut(&url) {
                    None => {
                        known.insert(url.clone(), (line, false));
                        parsed.seeds.push(Seed { url, line });
                        continue;
                    }
                    Some((_, true)) => continue,
                    Some((first, reported)) => {
                        *reported = true;
                        Reason::Duplicate(*first)
                    }
                }
            }
            Err(reason) => reason,
        };
        parsed.mistakes.push(Mistake { line, text: shortened(content), reason });
    }
    parsed
}

/// Returns the text in UTF-8. It is decoded if it has a byte order mark, or is UTF-16 without one,
/// which is recognized by a zero in every other byte (as ASCII text has in UTF-16).
fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    let (encoding, text) = match text {
        [0xef, 0xbb, 0xbf, text @ ..] => return Cow::Borrowed(text),
        [0xff, 0xfe, text @ ..] => (encoding_rs::UTF_16LE, text),
        [0xfe, 0xff, text @ ..] => (encoding_rs::UTF_16BE, text),
        [1..=255, 0, 1..=255, 0, ..] => (encoding_rs::UTF_16LE, text),
        [0, 1..=255, 0, 1..=255, ..] => (encoding_rs::UTF_16BE, text),
        _ => return Cow::Borrowed(text),
    };
    let (text, _) = encoding.decode_without_bom_handling(text);
    Cow::Owned(text.into_owned().into_bytes())
}

/// Returns the line without its comment and the white space around it.
fn uncommented(line: &[u8]) -> &[u8] {
    let is_comment = |at: &usize| *at == 0 || line[at - 1].is_ascii_whitespace();
    let end = memchr::memchr_iter(b'#', line).find(is_comment).unwrap_or(line.len());
    line[..end].trim_ascii()
}

/// Returns at most 200 characters of a line, for messages.
fn shortened(content: &[u8]) -> String {
    const CHARS_MAX: usize = 200;
    let text = String::from_utf8_lossy(&content[..content.len().min(4 * CHARS_MAX)]);
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests;
