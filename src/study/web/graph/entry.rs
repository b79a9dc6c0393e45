//! The page of a graph from which a crawl gets furthest.
//!
//! Laws: if some page reaches all, so does the one found; otherwise it is the furthest-reaching of
//! the [`STARTS_MAX`] walks that found most, which in a web with one great component is that
//! component with most of what leads into it.
//! Cost: two walks of the graph if a page reaches all, [`STARTS_MAX`] more if none does; eight
//! bytes a page for the time of it.

use super::Links;
use std::cmp::Reverse;

/// Where a crawl of a graph starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The page.
    pub page: u32,
    /// Pages that links lead to from there, itself included.
    pub reached: u32,
}

/// Walks that are taken up again where no page reaches all.
pub(super) const STARTS_MAX: usize = 64;

/// The page that reaches most; of a graph that has pages.
pub(super) fn find(links: &Links) -> Entry {
    let mut walker = Walker { links, seen: vec![0; links.pages() as usize], found: Vec::new() };
    // What has been found so far is closed under links, so a page that reaches all is found by the
    // last of these walks, and where that one starts reaches all, too.
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
        // Of equals the lowest page, whatever the order of the walks.
        if (reached, Reverse(start.page)) > (best.reached, Reverse(best.page)) {
            best = Entry { page: start.page, reached };
        }
    }
    best
}

struct Walker<'a> {
    links: &'a Links,
    /// Mark of the last walk that came by each page.
    seen: Vec<u32>,
    /// Found and not yet looked at.
    found: Vec<u32>,
}

impl Walker<'_> {
    /// Pages that a walk finds which avoids those with its mark, and marks them.
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
