//! Q(u), the quality of a URL before it is fetched: uniform, drawn, looked up, or estimated.
//!
//! Promises: [`Rating::of`] gives every URL a quality; equal settings and equal pages in equal
//! order give equal qualities on every machine, in integers alone. Whatever the pages hold, memory
//! stays as it was made: a table of sites has its full size from the start.
//!
//! Estimates are kept by site and so are the same for all URLs of one: what links say about a
//! single URL is known only once it is met, and a table of all URLs met has no bound.
//!
//! Cost in nanoseconds, on pages of 25 links of which three quarters stay on the page's server, of
//! a web of 200,000 hosts (150,000 sites met, so that most look-ups miss the processor's caches; a
//! table of a million URLs); the best of ten runs beside other work (`tests/rating.rs`):
//!
//! | source | look-up | link of a page | memory |
//! |---|---|---|---|
//! | uniform | 5 | - | - |
//! | zipf | 48; 280 unless the exponent is 1 | - | - |
//! | table | 240 | - | 22 bytes an entry, and a bit a crawl |
//! | inlinks | 78; by domain 130 | 59; by domain 73 | 12 bytes a site of `sites_max` |
//! | opic | 100; by domain 150 | 66; by domain 80 | 32 bytes a site of `sites_max` |

mod inlinks;
mod listing;
mod opic;
mod sites;
mod table;
#[cfg(test)]
mod tests;
mod zipf;

pub use listing::{Mistake, Mistakes, Reason};
pub use table::Table;

use crate::ground::codec::{Short, Take};
use crate::ground::quality::Quality;
use crate::url::UrlRef;
use inlinks::Inlinks;
use opic::Opic;
use sites::Names;
use std::sync::Arc;
use table::Lookups;
use zipf::Zipf;

/// Where qualities come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Every URL is worth one.
    #[default]
    Uniform,
    /// Drawn for each URL, so that qualities are spread as Zipf's law says.
    Zipf,
    /// Looked up in a table, by URL or by host.
    Table,
    /// Links from other sites that lead to the URL's site, as far as the crawl has seen.
    Inlinks,
    /// Importance of the URL's site by OPIC: cash that pages pass on along their links.
    Opic,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Uniform, Self::Zipf, Self::Table, Self::Inlinks, Self::Opic];

    /// Its name in configuration and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
            Self::Table => "file",
            Self::Inlinks => "inlinks",
            Self::Opic => "opic",
        }
    }
}

/// What a site is, for estimates that are kept by site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Site {
    /// A server: scheme, host, port.
    #[default]
    Server,
    /// A registrable domain.
    Domain,
}

impl Site {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Server, Self::Domain];

    /// Its name in configuration and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Domain => "domain",
        }
    }
}

/// Settings of the ratings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where qualities come from.
    pub source: Source,
    /// Decides the draws of [`Source::Zipf`].
    pub zipf_seed: u64,
    /// Pages among which the draws of [`Source::Zipf`] spread, 1 to 10^12: the best is worth so
    /// many times the last, for an exponent of one.
    pub zipf_pages: u64,
    /// Exponent of Zipf's law, in thousandths.
    pub zipf_exponent_milli: u32,
    /// The table of [`Source::Table`].
    pub table: Option<Arc<Table>>,
    /// Quality of a URL that isn't in the table.
    pub unlisted: Quality,
    /// What [`Source::Inlinks`] and [`Source::Opic`] count by.
    pub site: Site,
    /// Sites that are counted at most, 8 or more; beyond, those that count for least are
    /// forgotten.
    pub sites_max: usize,
    /// Key of the fingerprints of sites: who doesn't know it can't make two of them collide, nor
    /// have one of his choice forgotten.
    pub key: [u8; 16],
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            source: Source::Uniform,
            zipf_seed: 1,
            zipf_pages: 1_000_000,
            zipf_exponent_milli: 1_000,
            table: None,
            unlisted: Quality::ONE,
            site: Site::Server,
            sites_max: 1_000_000,
            key: [0; 16],
        }
    }
}

/// Links of one page that are counted at most: a page with more of them is a list.
pub const LINKS_MAX: usize = 10_000;

/// What URLs are thought to be worth.
#[derive(Debug)]
pub struct Rating {
    estimate: Estimate,
}

/// What is known, by source.
/// Bytes of a piece of what was learnt, or a site more.
const PIECE_BYTES: usize = 256 << 10;

#[derive(Debug)]
enum Estimate {
    Uniform,
    Zipf(Zipf),
    Table(Lookups),
    Inlinks(Inlinks),
    Opic(Opic),
}

impl Rating {
    /// Ratings by these settings, before any page. A table of sites is made at its full size.
    pub fn new(settings: Settings) -> Self {
        let names = Names::new(settings.site, settings.key);
        let estimate = match settings.source {
            Source::Uniform => Estimate::Uniform,
            Source::Zipf => Estimate::Zipf(Zipf::new(
                settings.zipf_seed,
                settings.zipf_pages,
                settings.zipf_exponent_milli,
            )),
            Source::Table => {
                let table = settings.table.unwrap_or_default();
                Estimate::Table(Lookups::new(table, settings.unlisted))
            }
            Source::Inlinks => Estimate::Inlinks(Inlinks::new(names, settings.sites_max)),
            Source::Opic => Estimate::Opic(Opic::new(names, settings.sites_max)),
        };
        Self { estimate }
    }

    /// The quality of a URL, as far as is known now. Asking changes no answer; that a table was
    /// asked is noted for [`Rating::unused`] and [`Rating::unlisted`].
    pub fn of(&self, url: UrlRef<'_>) -> Quality {
        match &self.estimate {
            Estimate::Uniform => Quality::ONE,
            Estimate::Zipf(zipf) => zipf.of(url),
            Estimate::Table(lookups) => lookups.of(url),
            Estimate::Inlinks(inlinks) => inlinks.of(url),
            Estimate::Opic(opic) => opic.of(url),
        }
    }

    /// Whether [`Rating::page`] makes a difference.
    pub fn counts_links(&self) -> bool {
        matches!(self.estimate, Estimate::Inlinks(_) | Estimate::Opic(_))
    }

    /// A page was read, and these are its links into the crawl, known ones and repeats included.
    /// What comes after the first ten thousand isn't counted. Costs nothing unless
    /// [`Rating::counts_links`].
    pub fn page<'a>(&mut self, page: UrlRef<'_>, links: &mut dyn Iterator<Item = UrlRef<'a>>) {
        let links = &mut links.take(LINKS_MAX);
        match &mut self.estimate {
            Estimate::Uniform | Estimate::Zipf(_) | Estimate::Table(_) => {}
            Estimate::Inlinks(inlinks) => inlinks.page(page, links),
            Estimate::Opic(opic) => opic.page(page, links),
        }
    }

    /// Entries of the table that have given no URL its quality so far: what a table holds and the
    /// crawl never meets is most often misspelt. Counted on the spot, a microsecond for a hundred
    /// thousand entries.
    pub fn unused(&self) -> usize {
        match &self.estimate {
            Estimate::Table(lookups) => lookups.unused(),
            _ => 0,
        }
    }

    /// Look-ups so far that found nothing in the table and got the default.
    pub fn unlisted(&self) -> u64 {
        match &self.estimate {
            Estimate::Table(lookups) => lookups.unlisted(),
            _ => 0,
        }
    }

    /// Tells what was learnt, piece by piece, for a later run by the same settings; nothing if
    /// qualities are known beforehand.
    pub fn encode(&self, tell: &mut dyn FnMut(&[u8])) {
        match &self.estimate {
            Estimate::Uniform | Estimate::Zipf(_) | Estimate::Table(_) => {}
            Estimate::Inlinks(inlinks) => inlinks.encode(tell),
            Estimate::Opic(opic) => opic.encode(tell),
        }
    }

    /// Takes in a piece that [`Rating::encode`] told. One of another source says nothing here.
    pub fn decode(&mut self, piece: &[u8]) -> Result<(), Short> {
        let mut take = Take::new(piece);
        match (&mut self.estimate, take.u8()?) {
            (Estimate::Inlinks(inlinks), inlinks::TAG) => inlinks.decode(take),
            (Estimate::Opic(opic), opic::TAG) => opic.decode(take),
            _ => Ok(()),
        }
    }

    /// Sites that are counted now.
    pub fn sites(&self) -> usize {
        match &self.estimate {
            Estimate::Inlinks(inlinks) => inlinks.sites(),
            Estimate::Opic(opic) => opic.sites(),
            _ => 0,
        }
    }

    /// Sites forgotten so far for want of room; each time one is forgotten counts.
    pub fn forgotten(&self) -> u64 {
        match &self.estimate {
            Estimate::Inlinks(inlinks) => inlinks.forgotten(),
            Estimate::Opic(opic) => opic.forgotten(),
            _ => 0,
        }
    }
}
