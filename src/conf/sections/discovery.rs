//! The section `[discovery]`: where URLs come from beside links.

use super::section;
use crate::conf::kind::choice;

/// Which sitemaps are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sitemaps {
    /// None.
    None,
    /// Those that a robots.txt names, and those that the crawl meets otherwise.
    Robots,
    /// These, and those at the usual places.
    WellKnown,
}

section! {
    /// Where URLs come from beside links.
    discovery: Discovery {
        /// Which sitemaps are read for the URLs in them. "robots": those that a robots.txt in the
        /// crawl names, what they lead to, and each XML file that turns out to be a sitemap or a
        /// feed. "well-known": where robots.txt names none, /sitemap.xml and /sitemap_index.xml,
        /// too. "none": no sitemap; XML files are archived only. With recrawl.policy = "greedy",
        /// sitemaps and feeds are visited again for what they say of changes, as far as it is true.
        ///
        /// A sitemap lists up to 50,000 pages, which all wait in the queue of their server. "none"
        /// misses pages that nothing links to; "well-known" costs servers without one two requests.
        sitemaps: Sitemaps = Sitemaps::Robots, choice(&[
            ("none", Sitemaps::None),
            ("robots", Sitemaps::Robots),
            ("well-known", Sitemaps::WellKnown),
        ]), [];
    }
}
