//! Reads which pages of a graph are on one host: a range of page numbers a line, `FIRST LAST NAME`,
//! separated by blanks or tabs. Empty lines and lines that begin with `#` are ignored.
//!
//! Laws: every page is in exactly one range, and every range has a name of its own; anything else
//! is refused with the line and the flaw. The order of the lines doesn't matter.
//!
//! Cost: linear in the lines, and a sort.

use super::edges::{number, words};
use std::collections::BTreeMap;
use std::fmt;

/// The ranges of pages by host while they are read.
#[derive(Clone, Debug, Default)]
pub struct HostRanges {
    ranges: Vec<HostRange>,
    /// For each name the line that has it.
    names: BTreeMap<Vec<u8>, u64>,
}

/// The pages of one host.
#[derive(Clone, Copy, Debug)]
struct HostRange {
    first: u32,
    last: u32,
    /// The number of its line, counted from 1.
    line: u64,
}

/// What is wrong with a line of a list of hosts, or with the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostsFlaw {
    /// A line doesn't have three words, but this many.
    Words(usize),
    /// A word is not the number of a page; with the description.
    Number(String),
    /// The last page of a range is before its first.
    Backwards {
        /// The first page.
        first: u32,
        /// The last page.
        last: u32,
    },
    /// The name was on this line before.
    Twice {
        /// The name.
        name: String,
        /// The number of the other line.
        line: u64,
    },
    /// A range has a page that is in the range of another line, too.
    Overlap {
        /// The page.
        page: u32,
        /// The number of the other line.
        line: u64,
    },
    /// No range has the pages before this one, or after it at the end.
    Gap {
        /// The first page without a host.
        first: u32,
        /// The last page without a host.
        last: u32,
    },
    /// A range has pages that the graph doesn't have.
    Beyond {
        /// The last page of the range.
        last: u32,
        /// The last page of the graph.
        graph: u32,
    },
}

impl fmt::Display for HostsFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => write!(
                f,
                "{words} words, not three; write the first and the last page of a host, and its \
                 name, like 0 41 www.example.org"
            ),
            Self::Number(text) => f.write_str(text),
            Self::Backwards { first, last } => write!(
                f,
                "the last page, {last}, is before the first, {first}; write the first page first"
            ),
            Self::Twice { name, line } => write!(
                f,
                "{name:?} is on line {line}, too; the pages of a host must have consecutive \
                 numbers: number them in the order of their URLs, and write one line a host"
            ),
            Self::Overlap { page, line } => {
                write!(f, "page {page} is in the range of line {line}, too; each page has one host")
            }
            Self::Gap { first, last } if first == last => {
                write!(f, "page {first} is on no host; add it to a range")
            }
            Self::Gap { first, last } => {
                write!(f, "pages {first} to {last} are on no host; add a range for them")
            }
            Self::Beyond { last, graph } => write!(
                f,
                "the range ends with page {last}, but the last page of the graph is {graph}; lower \
                 it, or use the hosts of this graph"
            ),
        }
    }
}

impl std::error::Error for HostsFlaw {}

impl HostRanges {
    /// Reads a line, without its end. `line_number` is counted from 1.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn read_line(&mut self, line: &[u8], line_number: u64) -> Result<(), HostsFlaw> {
        let found: Vec<&[u8]> = words(line).collect();
        let (first, last, name) = match found[..] {
            [] => return Ok(()),
            [first, ..] if first[0] == b'#' => return Ok(()),
            [first, last, name] => (first, last, name),
            _ => return Err(HostsFlaw::Words(found.len())),
        };
        let number = |word| number(word).map_err(|flaw| HostsFlaw::Number(flaw.to_string()));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(HostsFlaw::Backwards { first, last });
        }
        if let Some(line) = self.names.insert(name.to_ascii_lowercase(), line_number) {
            let name = String::from_utf8_lossy(name).into_owned();
            return Err(HostsFlaw::Twice { name, line });
        }
        self.ranges.push(HostRange { first, last, line: line_number });
        Ok(())
    }

    /// Returns the first page of each host, and after the last host the number of pages of the
    /// graph.
    ///
    /// # Errors
    /// The number of the line, and what is wrong with it or before it. Pages missing at the end
    /// have the number of the line with the highest pages; 0 if there is none.
    pub(super) fn starts(mut self, pages: u32) -> Result<Vec<u32>, (u64, HostsFlaw)> {
        self.ranges.sort_by_key(|range| (range.first, range.line));
        let mut starts = Vec::with_capacity(self.ranges.len() + 1);
        let (mut next, mut before) = (0, 0);
        for range in self.ranges {
            if range.first < next {
                let flaw = HostsFlaw::Overlap { page: range.first, line: before };
                return Err((range.line, flaw));
            }
            if range.last >= pages {
                let flaw = HostsFlaw::Beyond { last: range.last, graph: pages - 1 };
                return Err((range.line, flaw));
            }
            if range.first > next {
                let flaw = HostsFlaw::Gap { first: next, last: range.first - 1 };
                return Err((range.line, flaw));
            }
            starts.push(range.first);
            (next, before) = (range.last + 1, range.line);
        }
        if next < pages {
            return Err((before, HostsFlaw::Gap { first: next, last: pages - 1 }));
        }
        starts.push(pages);
        Ok(starts)
    }
}
