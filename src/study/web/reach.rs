//! The pages of a web that a crawl can reach from the seeds, in breadth-first order, and the links
//! between them. Pages that robots.txt disallows and hostile hosts are not part of them, nor are
//! links to them. A redirect counts as a link.
//!
//! Cost: the links of every page are drawn once; 4 bytes a link and 20 bytes a page.

use super::page::Kind;
use super::{Place, Resource, Robots, Web};

/// The pages that a crawl can reach, in breadth-first order, and their links.
pub(super) struct Reach {
    /// The numbers of host and page of each reachable page.
    pub(super) pages: Vec<(u32, u32)>,
    /// For each of `pages` the index of the page that is the first to link to it, which is below
    /// its own; its own index for a seed.
    pub(super) parents: Vec<u32>,
    /// For each of `pages` the index in `targets` where its links begin; after the last, the number
    /// of links.
    pub(super) offsets: Vec<usize>,
    /// The targets of all links, as indices of `pages`.
    pub(super) targets: Vec<u32>,
}

/// The state of a page that has not been found. A state below [`REFUSED`] is the page's index in
/// [`Reach::pages`].
const UNKNOWN: u32 = u32::MAX;
/// The state of a page that a crawl must not request.
const REFUSED: u32 = u32::MAX - 1;

impl Reach {
    pub(super) fn of(web: &Web) -> Self {
        let mut reach =
            Self { pages: Vec::new(), parents: Vec::new(), offsets: vec![0], targets: Vec::new() };
        let mut known = vec![UNKNOWN; web.pages_total()];
        for seed in web.seed_places() {
            reach.index_of(web, &mut known, seed, None);
        }
        let mut at = 0;
        while let Some(&(host, page)) = reach.pages.get(at) {
            let parent = Some(index(at));
            if web.kind(host, page) == Kind::Redirect {
                let to = reach.index_of(web, &mut known, web.redirect_of(host, page), parent);
                reach.targets.extend(to);
            }
            for link in web.links(Place { host, resource: Resource::Page(page) }) {
                let to = reach.index_of(web, &mut known, link.to, parent);
                reach.targets.extend(to);
            }
            reach.offsets.push(reach.targets.len());
            at += 1;
        }
        reach
    }

    /// Returns the index of a link's target in [`Reach::pages`], entering it if it is new; `None`
    /// if a crawl must not request it. The link is on the page `parent`, or is a seed.
    fn index_of(
        &mut self,
        web: &Web,
        known: &mut [u32],
        place: Place,
        parent: Option<u32>,
    ) -> Option<u32> {
        let Resource::Page(page) = place.resource else { return None };
        let host = place.host;
        let known = &mut known[web.page_index(host, page)];
        if *known == UNKNOWN {
            let open = web.robots_of(host) != Robots::Deny && web.kind(host, page) != Kind::Closed;
            *known = REFUSED;
            if open {
                *known = index(self.pages.len());
                self.pages.push((host, page));
                self.parents.push(parent.unwrap_or(*known));
            }
        }
        (*known != REFUSED).then_some(*known)
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("counted in 32 bits")
}
