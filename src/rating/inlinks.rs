//! Quality as the number of links from other sites, counted during the crawl.
//!
//! A site with n links from other sites has the quality 1 + n, at most [`Quality::MAX`], and so has
//! each of its URLs. Links within a site don't count. Every other link counts, also duplicates on a
//! page. The mean quality is not one: the unit is a link, and qualities grow with the crawl.
//!
//! In a crawl that several nodes share, links between domains are counted by [`Inlinks::link_to`]
//! instead, which is called about once for a pair of domains. If servers are sites, the links of
//! the pages that this node fetches are counted, and no others.
//!
//! Laws: as long as no site is evicted, counts are exact; another link never lowers the quality of
//! its target. An evicted site starts again at none: if there are more than
//! [`sites_max`](super::Settings::sites_max) sites, a site must be linked to again before others of
//! its set evict it, which happens for popular sites.
//! Cost: 12 bytes a site; 60 ns a link, nearly all of it for links that leave the site.

use super::PIECE_BYTES;
use super::sites::{Key, Names, Sites};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use crate::url::UrlRef;

/// The first byte of each piece that [`Inlinks::encode`] writes.
pub(super) const TAG: u8 = b'i';

/// The number of links to each site.
#[derive(Debug)]
pub(super) struct Inlinks {
    names: Names,
    /// The number of links from other sites to each site that has any.
    counts: Sites<u32>,
    /// The target sites of the current page's links; kept to reuse the memory.
    others: Vec<Key>,
}

impl Inlinks {
    /// Creates the counts before any page was read, for at most `sites_max` sites.
    pub(super) fn new(names: Names, sites_max: usize) -> Self {
        Self { names, counts: Sites::new(sites_max), others: Vec::new() }
    }

    /// Returns the quality of a URL, which is that of its site.
    pub(super) fn of(&self, url: UrlRef<'_>) -> Quality {
        let count = self.counts.find(self.names.key(url)).copied().unwrap_or(0);
        Quality::from_millionths((1 + u64::from(count)) * Quality::ONE.millionths())
    }

    /// Counts the links of a page that lead to other sites.
    pub(super) fn page<'a>(
        &mut self,
        page: UrlRef<'_>,
        links: &mut dyn Iterator<Item = UrlRef<'a>>,
    ) {
        self.names.sort(page, links, &mut self.others);
        for site in self.others.drain(..) {
            count(&mut self.counts, site);
        }
    }

    /// Returns whether registrable domains are sites.
    pub(super) fn is_by_domain(&self) -> bool {
        self.names.is_by_domain()
    }

    /// Counts a link from another site to the site of this name.
    pub(super) fn link_to(&mut self, name: &str) {
        count(&mut self.counts, self.names.key_of(name));
    }

    /// Encodes the counts in pieces, for a later run.
    pub(super) fn encode(&self, report: &mut dyn FnMut(&[u8])) {
        let mut piece = vec![TAG];
        for (site, count) in self.counts.iter() {
            piece.put_u64(site.0);
            piece.put_u32(*count);
            if piece.len() >= PIECE_BYTES {
                report(&piece);
                piece.truncate(1);
            }
        }
        report(&piece);
    }

    /// Adds the counts of one piece that [`Inlinks::encode`] wrote.
    pub(super) fn decode(&mut self, mut take: Take<'_>) -> Result<(), Short> {
        while !take.is_empty() {
            let (site, count) = (Key(take.u64()?), take.u32()?);
            if site == Key::default() || self.counts.find(site).is_some() {
                return Err(Short);
            }
            self.counts.enter(site, count, |count| *count);
        }
        Ok(())
    }

    /// Returns the number of sites that are stored now.
    pub(super) fn sites(&self) -> usize {
        self.counts.held()
    }

    /// Returns the number of sites that were evicted so far.
    pub(super) fn evicted(&self) -> u64 {
        self.counts.evicted()
    }
}

/// Counts a link to a site.
fn count(counts: &mut Sites<u32>, site: Key) {
    match counts.find_mut(site) {
        Some(count) => *count = count.saturating_add(1),
        None => {
            counts.enter(site, 1, |count| *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use crate::rating::Site;
    use crate::rating::tests::{World, url};
    use std::collections::BTreeMap;

    /// Law: with space for all sites, the counts are those of an unbounded map.
    #[test]
    fn counts_are_exact_while_there_is_room() {
        for site in Site::ALL {
            let world = World { site, sites: 60 };
            let mut random = Random(0x5eed_0606);
            let mut inlinks = Inlinks::new(Names::new(site, [4; 16]), 4_096);
            let mut model: BTreeMap<String, u64> = BTreeMap::new();
            for _ in 0..2_000 {
                let (page, links) = world.page(&mut random);
                inlinks.page(page.view(), &mut links.iter().map(|link| link.view()));
                for link in &links {
                    if world.name(link) != world.name(&page) {
                        *model.entry(world.name(link)).or_default() += 1;
                    }
                }
            }
            assert_eq!((inlinks.sites(), inlinks.evicted()), (model.len(), 0));
            for (site, url) in world.all() {
                let links = model.get(&site).copied().unwrap_or(0);
                assert_eq!(inlinks.of(url.view()).millionths(), (1 + links) * 1_000_000, "{url}");
            }
        }
    }

    /// Law, also in a table that is far too small: a link never lowers the quality of its target,
    /// and a link within a site changes nothing.
    #[test]
    fn a_link_more_is_never_worth_less() {
        let world = World { site: Site::Server, sites: 300 };
        let mut random = Random(0x5eed_0607);
        let mut inlinks = Inlinks::new(Names::new(Site::Server, [5; 16]), 64);
        for _ in 0..20_000 {
            let (page, links) = world.page(&mut random);
            let Some(link) = links.first() else { continue };
            let before = inlinks.of(link.view());
            inlinks.page(page.view(), &mut std::iter::once(link.view()));
            let is_own = world.name(link) == world.name(&page);
            let more = if is_own { 0 } else { Quality::ONE.millionths() };
            assert_eq!(inlinks.of(link.view()).millionths(), before.millionths() + more);
        }
        assert!(inlinks.evicted() > 1_000 && inlinks.sites() == 64);
    }

    /// The popular sites of a web four times as large as the table stay in it.
    #[test]
    fn popular_sites_stay_in_a_table_too_small() {
        let mut random = Random(0x5eed_0608);
        let mut inlinks = Inlinks::new(Names::new(Site::Server, [6; 16]), 256);
        let page = url("http://list.test/");
        for round in 0..100_000_u64 {
            let site = if round % 4 == 0 { random.below(20) } else { 20 + random.below(1_000) };
            let link = url(&format!("http://h{site}.test/"));
            inlinks.page(page.view(), &mut std::iter::once(link.view()));
        }
        for site in 0..20 {
            let quality = inlinks.of(url(&format!("http://h{site}.test/")).view());
            // Of 1,250 links each; a site may be evicted before it has its first few.
            assert!(quality.millionths() > 1_000 * 1_000_000, "{site}: {quality}");
        }
    }

    #[test]
    fn no_count_is_worth_more_than_the_best() {
        let mut inlinks = Inlinks::new(Names::new(Site::Server, [0; 16]), 8);
        let site = url("http://a.test/");
        inlinks.counts.enter(inlinks.names.key(site.view()), u32::MAX - 1, |count| *count);
        let page = url("http://b.test/");
        for _ in 0..3 {
            inlinks.page(page.view(), &mut std::iter::once(site.view()));
            assert_eq!(inlinks.of(site.view()), Quality::MAX);
        }
    }
}
