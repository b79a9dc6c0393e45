//! Finds the page of a graph from which a crawl reaches most pages.
//!
//! Laws: if some page reaches all, so does the one found. Otherwise the best of the [`STARTS_MAX`]
//! most successful walks is taken; in a web with one giant component, that is one that reaches this
//! component and most of what leads into it.
//!
//! Cost: two walks of the graph if a page reaches all, [`STARTS_MAX`] more if none does; eight
//! bytes a page while it runs.

use super::Links;
use std::cmp::Reverse;

/// The page at which a crawl of a graph starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number of the page.
    pub page: u32,
    /// The number of pages reached from `page` by links, `page` included.
    pub reached: u32,
}

/// The number of walks that are repeated in full if no page reaches all.
pub(super) const STARTS_MAX: usize = 64;

/// Returns the page that reaches most pages, by the rules above. The graph must have pages.
pub(super) fn find(links: &Links) -> Entry {
    let mut walker = Walker { links, seen: vec![0; links.pages() as usize], found: Vec::new() };
    // The pages found so far are closed under links. So if a page reaches all, the last of these
    // walks finds it, and the start of that walk reaches all, too.
    let mut starts = Vec::new();
    for page in 0..links.pages() {
        let reached = walker.walk(page, 1);
        if reached > 0 {
            starts.push(Entry { page, reached });
        }
    }
    let last = starts.last().expect("there are pages").page;
    let whole = Entry { page: last, reached: walker.walk(last, 2) };
    if whole.reached == links.pages() {
        return whole;
    }
    starts.sort_by_key(|start| Reverse(start.reached));
    starts.truncate(STARTS_MAX);
    let mut best = whole;
    for (start, mark) in starts.iter().zip(3..) {
        let reached = walker.walk(start.page, mark);
        // Among equals the lowest page is taken, whatever the order of the walks.
        if (reached, Reverse(start.page)) > (best.reached, Reverse(best.page)) {
            best = Entry { page: start.page, reached };
        }
    }
    best
}

struct Walker<'a> {
    links: &'a Links,
    /// For each page, the mark of the last walk that reached it; 0 if none did.
    seen: Vec<u32>,
    /// Pages that the current walk has found and not yet visited.
    found: Vec<u32>,
}

impl Walker<'_> {
    /// Walks the links from page `from`: gives `mark` to every page reached, and returns their
    /// number. Pages that have this mark already are neither passed nor counted.
    fn walk(&mut self, from: u32, mark: u32) -> u32 {
        let mut count = 0;
        self.find(from, mark);
        while let Some(page) = self.found.pop() {
            count += 1;
            for &target in self.links.of(page) {
                self.find(target, mark);
            }
        }
        count
    }

    fn find(&mut self, page: u32, mark: u32) {
        let seen = &mut self.seen[page as usize];
        if *seen != mark {
            *seen = mark;
            self.found.push(page);
        }
    }
}
