//! Reads a link graph from a list of its links as text: one link a line, the number of a page and
//! the number of the page that it links to, separated by blanks or tabs. Empty lines and lines that
//! begin with `#` are ignored.
//!
//! Pages are numbered from 0; the largest number says how many there are. Lines may be in any
//! order: the links of a page are in the order of their lines.
//!
//! Laws: a line that is not a link is refused with its flaw. The memory that a graph takes is known
//! before it is taken, and limited.
//!
//! Cost: eight bytes a link while the list is read, then four bytes a link and a page more.

use super::Links;
use std::fmt;

/// A list of links while it is read.
#[derive(Clone, Debug, Default)]
pub struct EdgeList {
    /// For each link the page that has it, and the page it leads to.
    links: Vec<[u32; 2]>,
    /// The largest number of a page so far.
    last: u32,
}

/// What is wrong with a list of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeFlaw {
    /// A line doesn't have two words, but this many.
    Words(usize),
    /// A word is not the number of a page.
    Number(String),
    /// There are more links than allowed.
    TooLarge(usize),
    /// There is no link.
    Empty,
    /// The largest number of a page is far above the number of links.
    Sparse {
        /// The largest number of a page.
        last: u32,
        /// The number of links.
        links: usize,
    },
}

impl fmt::Display for EdgeFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => write!(
                f,
                "{words} words, not two; write the number of a page and of the page it links to, \
                 like 0 17"
            ),
            Self::Number(word) => write!(
                f,
                "{word:?} is not the number of a page; write 0 to {PAGE_MAX}, without sign or point"
            ),
            Self::TooLarge(most) => {
                write!(f, "more than {most} links, the most that are read; take a part of the list")
            }
            Self::Empty => f.write_str("there is no link; write one a line, like 0 17"),
            Self::Sparse { last, links } => write!(
                f,
                "the largest page number is {last}, but there are only {links} links; number the \
                 pages from 0 on, without gaps"
            ),
        }
    }
}

impl std::error::Error for EdgeFlaw {}

/// The largest number of a page.
const PAGE_MAX: u32 = 999_999_999;
/// The number of pages allowed in any list, and for each link: numbers with larger gaps than that
/// are a mistake, and would fill the memory with pages that nothing links to.
const PAGES_FREE: u64 = 1_000_000;
const PAGES_PER_LINK: u64 = 16;

impl EdgeList {
    /// Reads a line, without its end. `links_max` is the number of links allowed.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn read_line(&mut self, line: &[u8], links_max: usize) -> Result<(), EdgeFlaw> {
        let mut found = words(line);
        let Some(first) = found.next().filter(|word| word[0] != b'#') else { return Ok(()) };
        let (Some(second), None) = (found.next(), found.next()) else {
            return Err(EdgeFlaw::Words(words(line).count()));
        };
        if self.links.len() >= links_max {
            return Err(EdgeFlaw::TooLarge(links_max));
        }
        let link = [number(first)?, number(second)?];
        self.last = self.last.max(link[0]).max(link[1]);
        self.links.push(link);
        Ok(())
    }

    /// Returns the links by page.
    ///
    /// # Errors
    /// What is wrong with the list as a whole.
    pub fn links(self) -> Result<Links, EdgeFlaw> {
        let (last, links) = (self.last, self.links.len());
        if links == 0 {
            return Err(EdgeFlaw::Empty);
        }
        if u64::from(last) > PAGES_FREE + PAGES_PER_LINK * links as u64 {
            return Err(EdgeFlaw::Sparse { last, links });
        }
        let pages = last as usize + 1;
        // First how many links each page has, then where they begin, then where the next one goes.
        let mut offsets = vec![0_u32; pages + 1];
        self.links.iter().for_each(|[from, _]| offsets[*from as usize + 1] += 1);
        for page in 0..pages {
            offsets[page + 1] += offsets[page];
        }
        let mut targets = vec![0; links];
        for [from, to] in self.links {
            let next = &mut offsets[from as usize];
            targets[*next as usize] = to;
            *next += 1;
        }
        // Each page's place has moved to the beginning of the next page's links.
        offsets.rotate_right(1);
        offsets[0] = 0;
        offsets[pages] = u32::try_from(links).expect("limited when read");
        Ok(Links { offsets, targets })
    }
}

pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty())
}

/// Returns the page number that a word is.
pub(super) fn number(word: &[u8]) -> Result<u32, EdgeFlaw> {
    let digit = |number: Option<u32>, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        number?.checked_mul(10)?.checked_add(digit)
    };
    let found = word.iter().fold(Some(0), digit).filter(|number| *number <= PAGE_MAX);
    // A whole file may be one word.
    let shown = || String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned();
    found.ok_or_else(|| EdgeFlaw::Number(shown()))
}
