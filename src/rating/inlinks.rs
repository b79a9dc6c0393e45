//! Quality as the number of links from other sites, counted as the crawl goes.
//!
//! A site with n links from other sites is worth 1 + n, [`Quality::MAX`] at most; so is each of its
//! URLs. Links within a site are no votes. Every link counts, repeats on a page too. The mean site
//! is not worth one: the scale is that of links, and grows with the crawl.
//!
//! Laws: as long as no site is forgotten, counts are exact; a link more never makes the site it
//! leads to worth less. A site that was forgotten begins again at none: past
//! [`sites_max`](super::Settings::sites_max) a site must be linked to again before others of its
//! set push it out, which the popular ones are.
//! Cost: 12 bytes a site; 60 ns a link, nearly all of it for those that leave the site.

use super::PIECE_BYTES;
use super::sites::{Key, Names, Sites};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use crate::url::UrlRef;

/// Begins each piece that is written down.
pub(super) const TAG: u8 = b'i';

/// Counts of links by site.
#[derive(Debug)]
pub(super) struct Inlinks {
    names: Names,
    /// Links from other sites; those that have one at least.
    counts: Sites<u32>,
    /// Where the links of the page at hand lead. Kept for its memory.
    others: Vec<Key>,
}

impl Inlinks {
    /// No link seen yet.
    pub(super) fn new(names: Names, sites_max: usize) -> Self {
        Self { names, counts: Sites::new(sites_max), others: Vec::new() }
    }

    /// The quality of a URL's site.
    pub(super) fn of(&self, url: UrlRef<'_>) -> Quality {
        let count = self.counts.find(self.names.key(url)).copied().unwrap_or(0);
        Quality::from_millionths((1 + u64::from(count)) * Quality::ONE.millionths())
    }

    /// Counts the links of a page.
    pub(super) fn page<'a>(
        &mut self,
        page: UrlRef<'_>,
        links: &mut dyn Iterator<Item = UrlRef<'a>>,
    ) {
        self.names.sort(page, links, &mut self.others);
        for site in self.others.drain(..) {
            match self.counts.find_mut(site) {
                Some(count) => *count = count.saturating_add(1),
                None => {
                    self.counts.enter(site, 1, |count| *count);
                }
            }
        }
    }

    /// Tells the counts piece by piece, for a later run.
    pub(super) fn encode(&self, tell: &mut dyn FnMut(&[u8])) {
        let mut piece = vec![TAG];
        for (site, count) in self.counts.iter() {
            piece.put_u64(site.0);
            piece.put_u32(*count);
            if piece.len() >= PIECE_BYTES {
                tell(&piece);
                piece.truncate(1);
            }
        }
        tell(&piece);
    }

    /// Takes in a piece that [`Inlinks::encode`] told.
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

    /// Sites counted.
    pub(super) fn sites(&self) -> usize {
        self.counts.held()
    }

    /// Sites forgotten.
    pub(super) fn forgotten(&self) -> u64 {
        self.counts.forgotten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;
    use crate::rating::Site;
    use crate::rating::tests::{World, url};
    use std::collections::BTreeMap;

    /// Law: with room for all, the counts of a map without bound.
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
            assert_eq!((inlinks.sites(), inlinks.forgotten()), (model.len(), 0));
            for (site, url) in world.all() {
                let links = model.get(&site).copied().unwrap_or(0);
                assert_eq!(inlinks.of(url.view()).millionths(), (1 + links) * 1_000_000, "{url}");
            }
        }
    }

    /// Law, in a table far too small as well: a link never makes its site worth less, and a link
    /// within the page's site changes nothing.
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
        assert!(inlinks.forgotten() > 1_000 && inlinks.sites() == 64);
    }

    /// The popular sites of a web four times as large as the table keep their places.
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
            // Of 1,250 links each; a place may be lost before the first few have come.
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
