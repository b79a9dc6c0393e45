//! Qualities that URLs take over from how they were found: from the page that links to them, or
//! from their distance from the seeds.
//!
//! [`Parent`] estimates what a page links to as the page's quality times a factor. The quality of
//! some pages is known once they are fetched; others keep their estimates, so that these fall with
//! each hop. To draw estimates towards the mean would suppose a scale of qualities, and is no
//! better (DECISIONS.md 115).
//!
//! Laws: a better page's links never have a worse estimate. Only integers are used.

use super::table::Lookups;
use crate::ground::quality::Quality;
use crate::url::UrlRef;

/// Estimates by the linking page.
#[derive(Debug)]
pub(super) struct Parent {
    /// The qualities of fetched pages; `None` if no table lists them.
    pages: Option<Lookups>,
    fall_milli: u32,
}

impl Parent {
    /// Creates estimates with the factor `fall_milli`, in thousandths.
    pub(super) fn new(pages: Option<Lookups>, fall_milli: u32) -> Self {
        Self { pages, fall_milli }
    }

    /// Returns the table of pages.
    pub(super) fn pages(&self) -> Option<&Lookups> {
        self.pages.as_ref()
    }

    /// Returns the quality that is known of a page; `None` if it isn't listed.
    pub(super) fn known(&self, url: UrlRef<'_>) -> Option<Quality> {
        self.pages.as_ref()?.listed(url)
    }

    /// Returns the estimate for what a page of this quality links to.
    pub(super) fn of_links(&self, page: Quality) -> Quality {
        page.scaled(self.fall_milli)
    }
}

/// Qualities by distance: a power of the factor for each depth.
#[derive(Debug)]
pub(super) struct Depth {
    /// The quality by depth, up to the depth at which it no longer changes.
    powers: Vec<Quality>,
}

impl Depth {
    /// Creates qualities that fall to `fall_milli` thousandths with each link, at most 1,000.
    pub(super) fn new(fall_milli: u32) -> Self {
        let mut powers = vec![Quality::ONE];
        loop {
            let last = powers[powers.len() - 1];
            let next = last.scaled(fall_milli.min(1_000));
            if next == last {
                return Self { powers };
            }
            powers.push(next);
        }
    }

    /// Returns the quality at a depth.
    pub(super) fn at(&self, depth: u16) -> Quality {
        self.powers[usize::from(depth).min(self.powers.len() - 1)]
    }
}
