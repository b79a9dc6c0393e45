//! Sitemaps and feeds: the URLs that a site lists, and when it says that they have changed.
//!
//! | root | is | an entry has |
//! |---|---|---|
//! | `urlset` | a sitemap | `loc`, `lastmod`, `priority` |
//! | `sitemapindex` | a list of sitemaps | `loc`, `lastmod` |
//! | `rss`, `RDF` | a feed | `link`, `pubDate` or `date` |
//! | `feed` | an Atom feed | `link` with `href`, `updated` |
//! | none | a sitemap of lines | a URL |
//!
//! Elements are known by their local names: many sitemaps have no namespace, or a wrong one. Bytes
//! may be compressed by gzip, and of any encoding that the Encoding Standard knows; a byte order
//! mark, the declaration of XML and the Content-Type are believed, in this order. What is before
//! the first flaw is read, and the flaw is reported.
//!
//! Laws: no bytes panic; memory is bounded by [`Limits`], whatever a file has in it.
//! Cost: some 200 MB a second. It is meant for a job.
//! Source: sitemaps.org/protocol.html; RFC 4287; RSS 2.0.

mod date;
mod input;
mod xml;

use std::fmt;
use std::io::{BufRead, Read};

pub use date::read as read_date;

/// How much of a file is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most entries.
    pub entries: usize,
    /// The most bytes, uncompressed.
    pub bytes: u64,
    /// The longest URL in bytes; an entry with a longer one is left out.
    pub url_bytes: usize,
}

impl Default for Limits {
    /// The limits of the protocol.
    fn default() -> Self {
        Self { entries: 50_000, bytes: 52_428_800, url_bytes: 2_048 }
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A list of pages.
    Pages,
    /// A list of sitemaps.
    Index,
    /// A feed, whose entries are news.
    Feed,
}

/// An entry of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The URL, as written.
    pub url: String,
    /// When it changed last, in seconds since 1970, if the file says so.
    pub modified: Option<u32>,
    /// Its priority among the pages of its site, in thousandths.
    pub priority: Option<u16>,
}

/// Why a file was not read to its end, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It is neither a sitemap nor a feed.
    Foreign,
    /// It has more entries than allowed.
    TooManyEntries,
    /// It is longer than allowed.
    TooLong,
    /// A text or a tag in it is longer than a mebibyte.
    TokenTooLong,
    /// Its elements are nested too deeply.
    TooDeep,
    /// The XML is malformed at this byte.
    Malformed(u64),
    /// The compressed bytes are damaged or end early.
    Gzip,
    /// It ends within an element.
    EndsEarly,
    /// The disk can't be read.
    Unreadable,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "neither a sitemap nor a feed",
            Self::TooManyEntries => "more entries than allowed",
            Self::TooLong => "longer than allowed",
            Self::TokenTooLong => "a text or tag of more than a mebibyte",
            Self::TooDeep => "nested too deeply",
            Self::Malformed(at) => return write!(f, "malformed at byte {at}"),
            Self::Gzip => "gzip that is damaged or ends early",
            Self::EndsEarly => "ends within an element",
            Self::Unreadable => "the disk can't be read",
        })
    }
}

/// What a file lists, as far as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// What the file is; `None` if that isn't known.
    pub kind: Option<Kind>,
    /// The entries.
    pub entries: Vec<Entry>,
    /// Entries without a URL, or with one that is too long.
    pub left_out: u64,
    /// Why reading ended before the end.
    pub flaw: Option<Flaw>,
}

/// Reads a file. `charset` is the one that its Content-Type names.
pub fn read(file: impl BufRead, charset: Option<&str>, limits: &Limits) -> Listing {
    let mut result = Listing { kind: None, entries: Vec::new(), left_out: 0, flaw: None };
    let read =
        input::open(file, charset, limits).and_then(|mut input| match input.first_char()? {
            Some('<') => xml::read(input, limits, &mut result),
            Some(_) => lines(input, limits, &mut result),
            None => Err(Flaw::Foreign),
        });
    result.flaw = read.err();
    result
}

impl Listing {
    /// Adds an entry.
    fn add(&mut self, mut entry: Entry, limits: &Limits) -> Result<(), Flaw> {
        let url = entry.url.trim();
        if url.is_empty() || url.len() > limits.url_bytes {
            self.left_out += 1;
            return Ok(());
        }
        if self.entries.len() >= limits.entries {
            return Err(Flaw::TooManyEntries);
        }
        if url.len() < entry.url.len() {
            entry.url = url.to_owned();
        }
        self.entries.push(entry);
        Ok(())
    }
}

/// Reads a list of URLs, one a line.
fn lines<R: Read>(
    mut input: input::Input<R>,
    limits: &Limits,
    result: &mut Listing,
) -> Result<(), Flaw> {
    let mut line = Vec::new();
    loop {
        line.clear();
        input.begin_token();
        let read = input.read_until(b'\n', &mut line);
        let read = read.map_err(|_| input.flaw().unwrap_or(Flaw::Unreadable));
        let url = String::from_utf8_lossy(&line);
        let url = url.trim();
        let is_url = url.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("http"));
        if is_url {
            result.kind = Some(Kind::Pages);
            result.add(Entry { url: url.to_owned(), ..Entry::default() }, limits)?;
        } else if !url.is_empty() {
            if result.kind.is_none() {
                // An ordinary text.
                return Err(Flaw::Foreign);
            }
            result.left_out += 1;
        }
        if read? == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
