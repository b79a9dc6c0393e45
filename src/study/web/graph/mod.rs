//! A real web's link graph: pages and their links, cut into hosts, with the page to start from.
//!
//! It is read from two arrays of little-endian 32-bit numbers (the number of links of each page,
//! and the targets of all links, page after page), or from a list of links as text ([`EdgeList`]).
//! Links are kept as they are, in their order, including those to the page itself and repeated
//! ones. [`super::Web::of_graph`] makes a web of it, for which names, sizes and times are drawn.
//! `GRAPHS.md` is the manual.
//!
//! Laws: a file that is truncated, badly joined or damaged is refused with a description of the
//! flaw; every link of an accepted graph leads to a page. Hosts are runs of pages with consecutive
//! numbers: listed ([`HostRanges`]) or guessed ([`Cut`]). The entry reaches every page if any page
//! does.
//!
//! Cost: four bytes a link and a page; reading is linear: 40 ms for 3.2 million links, including
//! the cut and the search for an entry that reaches all.

mod cut;
mod edges;
mod entry;
mod hosts;
mod xz;

#[cfg(test)]
pub(super) mod tests;

pub use cut::Cut;
pub use edges::{EdgeFlaw, EdgeList};
pub use entry::Entry;
pub use hosts::{HostRanges, HostsFlaw};
pub use xz::{XzFlaw, unpack_xz, unpacking_xz};

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

/// A link graph, cut into hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    links: Links,
    /// The number of each host's first page; after the last host, the number of pages.
    starts: Vec<u32>,
    /// True if the hosts are guessed from the links.
    guessed: bool,
    entry: Entry,
}

/// The links of all pages, page after page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// For each page the index in `targets` where its links begin; after the last page, the number
    /// of links.
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

/// One of the two arrays that a graph is read from; a flaw names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The array with the number of links of each page.
    Degrees,
    /// The array with the targets of all links.
    Targets,
}

/// Why two arrays are not a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// There are no pages.
    Empty,
    /// The length of an array is not a multiple of four bytes.
    Uneven(Part),
    /// The array of targets is too short: this many targets are missing for the links that the
    /// degrees count.
    Missing(u64),
    /// The array of targets is too long: this many targets at its end belong to no page.
    Surplus(u64),
    /// A link leads to a page number that does not exist.
    Nowhere {
        /// The position of the link in the array of targets, counted from 0.
        link: u32,
        /// The page number that it leads to.
        target: u32,
    },
    /// There are more pages or links than 32 bits can count.
    TooLarge,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there are no pages"),
            Self::Uneven(Part::Degrees) => {
                f.write_str("the length of the degrees is no multiple of 4 bytes")
            }
            Self::Uneven(Part::Targets) => {
                f.write_str("the length of the targets is no multiple of 4 bytes")
            }
            Self::Missing(links) => write!(f, "{links} link targets are missing"),
            Self::Surplus(links) => write!(f, "{links} link targets belong to no page"),
            Self::Nowhere { link, target } => {
                write!(f, "link {link} leads to page {target}, which there isn't")
            }
            Self::TooLarge => f.write_str("more pages or links than 32 bits can number"),
        }
    }
}

impl std::error::Error for Flaw {}

impl Graph {
    /// Creates the graph of these links, whose hosts have to be guessed: it is cut into hosts.
    pub fn cut(links: Links, cut: Cut) -> Self {
        let starts = cut.starts(&links);
        Self { starts, guessed: true, entry: entry::find(&links), links }
    }

    /// Creates the graph of these links, whose hosts are listed.
    ///
    /// # Errors
    /// The number of a line of the list, and why its ranges are not the hosts of this graph. Pages
    /// that are missing at the end have the line of the last range; 0 if there is no range.
    pub fn listed(links: Links, ranges: HostRanges) -> Result<Self, (u64, HostsFlaw)> {
        let starts = ranges.starts(links.pages())?;
        Ok(Self { starts, guessed: false, entry: entry::find(&links), links })
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> u32 {
        self.links.pages()
    }

    /// Returns the number of links of all pages together.
    pub fn links_total(&self) -> u32 {
        self.links.offsets[self.links.pages() as usize]
    }

    /// Returns the targets of a page's links, in the order of the page.
    pub fn links(&self, page: u32) -> &[u32] {
        self.links.of(page)
    }

    /// Returns true if the hosts are guessed from the links, false if they are listed.
    pub fn is_guessed(&self) -> bool {
        self.guessed
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        u32::try_from(self.starts.len() - 1).expect("no more hosts than pages")
    }

    /// Returns the numbers of the pages of a host.
    pub fn pages_of(&self, host: u32) -> Range<u32> {
        self.starts[host as usize]..self.starts[host as usize + 1]
    }

    /// Returns the number of the host of a page.
    pub fn host_of(&self, page: u32) -> u32 {
        let after = self.starts.partition_point(|start| *start <= page);
        u32::try_from(after - 1).expect("no more hosts than pages")
    }

    /// Returns the page to start from, and how many pages it reaches.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    pub(super) fn starts(&self) -> &[u32] {
        &self.starts
    }
}

impl Links {
    /// Reads the links in these two arrays.
    ///
    /// # Errors
    /// The first flaw of the arrays.
    pub fn read(degrees: &[u8], targets: &[u8]) -> Result<Self, Flaw> {
        let degrees = numbers(degrees).ok_or(Flaw::Uneven(Part::Degrees))?;
        let targets = numbers(targets).ok_or(Flaw::Uneven(Part::Targets))?;
        let pages = u32::try_from(degrees.len()).map_err(|_| Flaw::TooLarge)?;
        if pages == 0 {
            return Err(Flaw::Empty);
        }
        let (counted, found) = (degrees.clone().map(u64::from).sum::<u64>(), targets.len() as u64);
        match counted.cmp(&found) {
            Ordering::Less => return Err(Flaw::Surplus(found - counted)),
            Ordering::Greater => return Err(Flaw::Missing(counted - found)),
            Ordering::Equal => {}
        }
        u32::try_from(found).map_err(|_| Flaw::TooLarge)?;
        let mut offsets = Vec::with_capacity(degrees.len() + 1);
        offsets.push(0);
        let mut passed = 0;
        offsets.extend(degrees.map(|degree| {
            passed += degree;
            passed
        }));
        let targets: Vec<u32> = targets.collect();
        if let Some(at) = targets.iter().position(|target| *target >= pages) {
            let link = u32::try_from(at).expect("counted above");
            return Err(Flaw::Nowhere { link, target: targets[at] });
        }
        Ok(Self { offsets, targets })
    }

    fn pages(&self) -> u32 {
        u32::try_from(self.offsets.len() - 1).expect("looked at when read")
    }

    fn of(&self, page: u32) -> &[u32] {
        let page = page as usize;
        &self.targets[self.offsets[page] as usize..self.offsets[page + 1] as usize]
    }
}

/// Decodes the little-endian 32-bit numbers in an array of bytes; `None` if its length is not a
/// multiple of four.
fn numbers(bytes: &[u8]) -> Option<impl ExactSizeIterator<Item = u32> + Clone> {
    let (words, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| words.iter().map(|word| u32::from_le_bytes(*word)))
}
