//! Q(u), the quality of a URL before it is fetched: uniform, random, from a table, or estimated.
//!
//! Laws: [`Rating::of`] returns a quality for every URL. Equal settings and equal pages in equal
//! order give equal qualities on every machine, because only integers are used. Memory is bounded
//! whatever the pages contain: a table of sites has its full size from the start.
//!
//! Estimates are stored by site, and are the same for all URLs of a site: what links say about a
//! single URL is only known once it is found, and a table of all URLs found would be unbounded.
//!
//! Cost in nanoseconds, on pages of 25 links of which three quarters stay on the page's server, in
//! a web of 200,000 hosts (150,000 sites seen, so that most look-ups miss the processor's caches; a
//! table of a million URLs); the best of ten runs on a busy machine (`tests/rating.rs`):
//!
//! | source | look-up | link of a page | memory |
//! |---|---|---|---|
//! | uniform | 5 | - | - |
//! | zipf | 48; 280 unless the exponent is 1 | - | - |
//! | table | 240 | - | 22 bytes an entry, and a bit a crawl |
//! | inlinks | 78; by domain 130 | 59; by domain 73 | 12 bytes a site of `sites_max` |
//! | parent, depth | 5 | - | that of a table, if there is one |
//! | opic | 100; by domain 150 | 66; by domain 80 | 32 bytes a site of `sites_max` |

mod inherited;
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
use crate::url::site::Sites;
use inherited::{Depth, Parent};
use inlinks::Inlinks;
use opic::Opic;
use sites::Names;
use std::sync::Arc;
use table::Lookups;
use zipf::Zipf;

/// The source from which the qualities of URLs come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Every URL has the quality one.
    #[default]
    Uniform,
    /// A random quality for each URL, distributed by Zipf's law.
    Zipf,
    /// A table of qualities, by URL or by host, that the operator provides.
    Table,
    /// The number of links from other sites to the URL's site that the crawl has seen. In a crawl
    /// that several nodes share: the number of domains that link to the URL's domain, or, by
    /// server, the links on pages that this node fetches.
    Inlinks,
    /// The importance of the URL's site by OPIC, in which pages pass on cash along their links. In
    /// a crawl that several nodes share, only the pages that this node fetches do.
    Opic,
    /// The quality of the page that links to the URL, falling by hop.
    Parent,
    /// The number of links from a seed to the URL.
    Depth,
    /// As [`Source::Parent`], with the score that the operator's program gives a page.
    Command,
}

impl Source {
    /// All sources of qualities.
    pub const ALL: [Self; 8] = [
        Self::Uniform,
        Self::Zipf,
        Self::Table,
        Self::Inlinks,
        Self::Opic,
        Self::Parent,
        Self::Depth,
        Self::Command,
    ];

    /// Returns the name of the source that is used in configuration and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
            Self::Table => "file",
            Self::Inlinks => "inlinks",
            Self::Opic => "opic",
            Self::Parent => "parent",
            Self::Depth => "depth",
            Self::Command => "command",
        }
    }
}

/// What counts as a site, for estimates that are stored by site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Site {
    /// A server counts as a site: scheme, host and port.
    #[default]
    Server,
    /// A registrable domain counts as a site.
    Domain,
}

impl Site {
    /// All kinds of sites.
    pub const ALL: [Self; 2] = [Self::Server, Self::Domain];

    /// Returns the name of this kind of site that is used in configuration and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Domain => "domain",
        }
    }
}

/// The settings of ratings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The source from which the qualities of URLs come.
    pub source: Source,
    /// The seed of [`Source::Zipf`].
    pub zipf_seed: u64,
    /// The number of ranks of [`Source::Zipf`], 1 to 10^12. With an exponent of one the first rank
    /// has this many times the quality of the last.
    pub zipf_pages: u64,
    /// The exponent of Zipf's law for [`Source::Zipf`], in thousandths.
    pub zipf_exponent_milli: u32,
    /// The table of [`Source::Table`], or of the pages that [`Source::Parent`] knows once they are
    /// fetched; `None` if there is none.
    pub table: Option<Arc<Table>>,
    /// The quality of a URL that isn't in the table of [`Source::Table`].
    pub unlisted: Quality,
    /// The factor by which [`Source::Parent`] and [`Source::Depth`] fall with each link, in
    /// thousandths.
    pub fall_milli: u32,
    /// The URLs whose sites have a quality of their own, by the number of their table.
    pub sites: Arc<Sites>,
    /// The qualities of the tables of `sites`; `None` for a table without one.
    pub own: Vec<Option<Quality>>,
    /// The kind of site that [`Source::Inlinks`] and [`Source::Opic`] count by.
    pub site: Site,
    /// The maximum number of sites that are stored, 8 or more. Beyond it the sites of the lowest
    /// quality are evicted.
    pub sites_max: usize,
    /// The key of the fingerprints of sites. Without knowing it nobody can make two sites collide,
    /// or have a chosen site evicted.
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
            fall_milli: 800,
            sites: Arc::default(),
            own: Vec::new(),
            site: Site::Server,
            sites_max: 1_000_000,
            key: [0; 16],
        }
    }
}

/// The maximum number of links of one page that are counted: a page with more is only a list.
pub const LINKS_MAX: usize = 10_000;

/// The qualities of URLs, with the counts of the crawl if qualities depend on it.
#[derive(Debug)]
pub struct Rating {
    estimate: Estimate,
    sites: Arc<Sites>,
    own: Vec<Option<Quality>>,
}

/// The approximate length of a piece of [`Rating::encode`], in bytes.
const PIECE_BYTES: usize = 256 << 10;

#[derive(Debug)]
enum Estimate {
    Uniform,
    Zipf(Zipf),
    Table(Lookups),
    Inlinks(Inlinks),
    Opic(Opic),
    Parent(Parent),
    Depth(Depth),
}

/// How a URL was found, as far as its quality depends on that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What [`Rating::of_links`] returned for the page that links to the URL; `None` if the URL was
    /// found on no page.
    pub estimate: Option<Quality>,
    /// The number of links that lead from a seed to the URL.
    pub depth: u16,
}

impl Rating {
    /// Creates the ratings for a crawl that has not read a page yet. A table of sites is allocated
    /// at its full size.
    pub fn new(settings: Settings) -> Self {
        let names = Names::new(settings.site, settings.key);
        let (sites, mut own) = (settings.sites, settings.own);
        if own.iter().all(Option::is_none) {
            own.clear();
        }
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
            Source::Parent | Source::Command => {
                let table = settings.table.filter(|_| settings.source == Source::Parent);
                let pages = table.map(|table| Lookups::new(table, settings.unlisted));
                Estimate::Parent(Parent::new(pages, settings.fall_milli))
            }
            Source::Depth => Estimate::Depth(Depth::new(settings.fall_milli)),
        };
        Self { estimate, sites, own }
    }

    /// Returns the current quality of a URL that was found in this way. A call changes no quality;
    /// look-ups in a table are counted for [`Rating::unused`] and [`Rating::unlisted`].
    pub fn of(&self, url: UrlRef<'_>, found: Found) -> Quality {
        if let Some(own) = self.own_of(url) {
            return match &self.estimate {
                Estimate::Table(lookups) => lookups.listed(url).unwrap_or(own),
                Estimate::Parent(parent) if found.estimate.is_none() => {
                    parent.known(url).unwrap_or(own)
                }
                _ => own,
            };
        }
        match &self.estimate {
            Estimate::Uniform => Quality::ONE,
            Estimate::Zipf(zipf) => zipf.of(url),
            Estimate::Table(lookups) => lookups.of(url),
            Estimate::Inlinks(inlinks) => inlinks.of(url),
            Estimate::Opic(opic) => opic.of(url),
            Estimate::Parent(parent) => {
                found.estimate.or_else(|| parent.known(url)).unwrap_or(Quality::ONE)
            }
            Estimate::Depth(depth) => depth.at(found.depth),
        }
    }

    /// Returns whether URLs take over the quality of the page that they are found on, so that
    /// [`Rating::of_links`] returns it.
    pub fn inherits(&self) -> bool {
        matches!(self.estimate, Estimate::Parent(_))
    }

    /// Returns the quality that is known of a page once it is fetched; `None` if none is, or if the
    /// source of qualities is not [`Source::Parent`].
    pub fn of_page(&self, url: UrlRef<'_>) -> Option<Quality> {
        match &self.estimate {
            Estimate::Parent(parent) => parent.known(url),
            _ => None,
        }
    }

    /// Returns the estimate for what a page of the quality `page` links to; `None` unless
    /// [`Rating::inherits`].
    pub fn of_links(&self, page: Quality) -> Option<Quality> {
        match &self.estimate {
            Estimate::Parent(parent) => Some(parent.of_links(page)),
            _ => None,
        }
    }

    /// Returns the look-ups in the table of qualities; `None` if the source has no table.
    fn lookups(&self) -> Option<&Lookups> {
        match &self.estimate {
            Estimate::Table(lookups) => Some(lookups),
            Estimate::Parent(parent) => parent.pages(),
            _ => None,
        }
    }

    /// Returns the quality of the site of a URL, if it has one of its own.
    fn own_of(&self, url: UrlRef<'_>) -> Option<Quality> {
        if self.own.is_empty() {
            return None;
        }
        self.own.get(usize::from(self.sites.of(url)?)).copied().flatten()
    }

    /// Returns whether the links of pages change qualities, so that [`Rating::page`] has an effect.
    pub fn counts_links(&self) -> bool {
        matches!(self.estimate, Estimate::Inlinks(_) | Estimate::Opic(_))
    }

    /// Counts the links of a page that was read; `links` are those into the crawl, including known
    /// ones and duplicates. Links after the first ten thousand aren't counted. Costs nothing unless
    /// [`Rating::counts_links`].
    pub fn page<'a>(&mut self, page: UrlRef<'_>, links: &mut dyn Iterator<Item = UrlRef<'a>>) {
        let links = &mut links.take(LINKS_MAX);
        match &mut self.estimate {
            Estimate::Inlinks(inlinks) => inlinks.page(page, links),
            Estimate::Opic(opic) => opic.page(page, links),
            _ => {}
        }
    }

    /// Returns whether qualities count the links between registrable domains, so that
    /// [`Rating::link_to`] has an effect.
    pub fn counts_domains(&self) -> bool {
        matches!(&self.estimate, Estimate::Inlinks(inlinks) if inlinks.is_by_domain())
    }

    /// Counts a link from another domain to the registrable domain `domain`, as a crawl does that
    /// several nodes share, in place of [`Rating::page`]. Has no effect unless
    /// [`Rating::counts_domains`].
    pub fn link_to(&mut self, domain: &str) {
        match &mut self.estimate {
            Estimate::Inlinks(inlinks) if inlinks.is_by_domain() => inlinks.link_to(domain),
            _ => {}
        }
    }

    /// Returns the number of table entries that no URL has used so far. An entry that is never used
    /// is usually misspelt. It is counted in each call, a microsecond for a hundred thousand
    /// entries.
    pub fn unused(&self) -> usize {
        self.lookups().map_or(0, Lookups::unused)
    }

    /// Returns the number of look-ups that found nothing in the table and returned the default
    /// quality.
    pub fn unlisted(&self) -> u64 {
        self.lookups().map_or(0, Lookups::unlisted)
    }

    /// Encodes the estimates in pieces, for a later run with the same settings, and calls `report`
    /// with each. There are no pieces if qualities don't depend on the crawl.
    pub fn encode(&self, report: &mut dyn FnMut(&[u8])) {
        match &self.estimate {
            Estimate::Inlinks(inlinks) => inlinks.encode(report),
            Estimate::Opic(opic) => opic.encode(report),
            _ => {}
        }
    }

    /// Restores the estimates in one piece that [`Rating::encode`] wrote. A piece of another source
    /// is ignored.
    ///
    /// # Errors
    /// Returns [`Short`] if the bytes end early or are invalid.
    pub fn decode(&mut self, piece: &[u8]) -> Result<(), Short> {
        let mut take = Take::new(piece);
        match (&mut self.estimate, take.u8()?) {
            (Estimate::Inlinks(inlinks), inlinks::TAG) => inlinks.decode(take),
            (Estimate::Opic(opic), opic::TAG) => opic.decode(take),
            _ => Ok(()),
        }
    }

    /// Returns the number of sites that are stored now.
    pub fn sites(&self) -> usize {
        match &self.estimate {
            Estimate::Inlinks(inlinks) => inlinks.sites(),
            Estimate::Opic(opic) => opic.sites(),
            _ => 0,
        }
    }

    /// Returns the number of sites that were evicted so far.
    pub fn evicted(&self) -> u64 {
        match &self.estimate {
            Estimate::Inlinks(inlinks) => inlinks.evicted(),
            Estimate::Opic(opic) => opic.evicted(),
            _ => 0,
        }
    }
}
