//! Text of a seed file to URLs, and what is wrong with the lines that give none.
//!
//! One URL a line. Blank lines and what follows a `#` at the start of a line or behind white space
//! are skipped; a line may end in LF, CR LF or CR, the file may be in UTF-8 or UTF-16. A URL may be
//! in quotes or angle brackets, and have a note behind a tab. Tables are read by the column that
//! their header names (`url`, `domain`, ...), or by the second one where the first holds ranks; a
//! rank and a tab before a URL are skipped on any line, and so are zero-width characters around it.
//! A line without a scheme is an http URL: `example.com/x`, `localhost:8080`. A URL given twice
//! counts once and is reported once. No line stops the others.
//!
//! A line that can't be meant as one URL is reported as a mistake and gives no seed. A line that
//! can be meant otherwise gives a seed and a [`Doubt`].
//!
//! Cost: linear in the text.

mod line;
mod table;

use crate::ground::map::Map;
use crate::url::{Invalid, Url};
use std::borrow::Cow;
use std::fmt;
use table::Layout;

/// A URL to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// In canonical form.
    pub url: Url,
    /// Where it stands, counted from 1.
    pub line: usize,
}

/// A line that gave no seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it stands, counted from 1.
    pub line: usize,
    /// What stands there; shortened if it is long.
    pub text: String,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It isn't a URL that can be fetched.
    Invalid(Invalid),
    /// It isn't UTF-8.
    NotUtf8,
    /// It looks like a mail address.
    MailAddress,
    /// There is white space within it.
    WhiteSpace,
    /// It holds a control character, a line end of another system, or a character without a width.
    Unseen(char),
    /// It begins as a line of a scope file does: with a plus or a minus.
    Directive,
    /// It has a quote or an angle bracket without its other half.
    Quote,
    /// It is a line of an XML or HTML file.
    Markup,
    /// There is something before the scheme, which a parser would take for the host.
    Prefix,
    /// The scheme is misspelt, so that a parser would take it for the host.
    Scheme,
    /// The host has characters that no name in the DNS has.
    HostName,
    /// A second URL begins within it.
    TwoUrls,
    /// It is the name of a column.
    Header,
    /// A row of a table has nothing in the column of URLs.
    NoCell,
    /// It is the same as that of this line.
    Duplicate(usize),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid(invalid) => return invalid.fmt(f),
            Self::Duplicate(first) => return write!(f, "the same as line {first}"),
            Self::Unseen(c) => {
                let code = u32::from(*c);
                return write!(f, "holds the unseen character U+{code:04X}; write one URL a line");
            }
            Self::NotUtf8 => "not UTF-8",
            Self::MailAddress => "a mail address, not a URL",
            Self::WhiteSpace => "white space in a URL; write %20, or put a tab before a note",
            Self::Directive => "not a URL; list what is wanted under [scope]",
            Self::Quote => "a quote or bracket without its other half",
            Self::Markup => "markup, not a URL; sitemaps and HTML pages are no seed files",
            Self::Prefix => "text before the scheme; put the URL first",
            Self::Scheme => "the scheme is misspelt; write http:// or https://",
            Self::HostName => {
                "not a valid host name; a table needs a header line with a column \"url\""
            }
            Self::TwoUrls => "more than one URL; write one a line, or %2C for a comma within one",
            Self::Header => {
                "taken as the name of a column; write http:// before the name of a host"
            }
            Self::NoCell => "nothing in the column of URLs",
        })
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {:?}: {}", self.line, self.text, self.reason)
    }
}

/// Why a line that gave a seed may not be meant as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// A comma, semicolon or bar was taken as part of the URL. In a table without a header nobody
    /// can tell one of the URL from one behind it.
    Separator(char),
    /// The host has no dot, and no scheme says that it is one.
    Dotless,
    /// The host is a number, which the standard takes for an address.
    Number,
    /// User name and password were left out.
    Credentials,
    /// It ends as a sentence, a pattern or a shortened text does.
    Ending,
    /// It has an `&amp;`, as URLs in HTML have.
    Entity,
    /// It has backslashes, which the standard takes as slashes.
    Backslash,
    /// The note behind it looks like a URL and isn't read.
    SecondUrl,
}

impl Doubt {
    /// What to do if it isn't meant so.
    pub fn fix(self) -> &'static str {
        match self {
            Self::Separator(_) => "a table needs a header line with a column \"url\"",
            Self::Dotless | Self::Number => "write http:// before it if it is a host",
            Self::Credentials => "sted doesn't log in to servers",
            Self::Ending => "remove it if it isn't part of the URL",
            Self::Entity => "write & instead",
            Self::Backslash => "write / instead, or %5C for one of the URL's own",
            Self::SecondUrl => "write one URL a line",
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
            Self::SecondUrl => "what follows the URL looks like another one and wasn't read",
        })
    }
}

/// Lines that gave a URL, in doubt of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubtful {
    /// Which kind.
    pub doubt: Doubt,
    /// How many lines.
    pub lines: usize,
    /// The first of them, counted from 1.
    pub first: usize,
}

/// What a seed file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The seeds, in the order of their lines.
    pub seeds: Vec<Seed>,
    /// Lines that gave none, and why.
    pub mistakes: Vec<Mistake>,
    /// Lines that gave one and may be meant otherwise.
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

/// Reads a seed file: the seeds, and the lines that gave none.
pub fn parse(text: &[u8]) -> (Vec<Seed>, Vec<Mistake>) {
    let Parsed { seeds, mistakes, .. } = parse_file(text);
    (seeds, mistakes)
}

/// Reads a seed file.
pub fn parse_file(text: &[u8]) -> Parsed {
    let text = decoded(text);
    let mut parsed = Parsed::default();
    // For each URL its line, and whether a second one was reported.
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

/// The text in UTF-8, as far as it is text: what begins with a byte order mark is what that says,
/// and ASCII with a zero at every other byte is UTF-16 without one.
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

/// The line without its comment and the white space around it.
fn uncommented(line: &[u8]) -> &[u8] {
    let is_comment = |at: &usize| *at == 0 || line[at - 1].is_ascii_whitespace();
    let end = memchr::memchr_iter(b'#', line).find(is_comment).unwrap_or(line.len());
    line[..end].trim_ascii()
}

/// At most 200 characters, for a line of a report.
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
