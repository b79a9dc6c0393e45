//! Cuts a graph whose pages have no names into hosts: runs of pages connected by short links.
//!
//! A crawl's pages are numbered in the order of their URLs, so that a host's pages are neighbours.
//! Most links stay on their host and near their page; links between hosts lead anywhere. A border
//! between two hosts lies where hardly any short link crosses, in either direction.
//!
//! Laws: every page is in one host; a wider span or a lower limit gives fewer hosts. Only integers
//! are used.
//!
//! Cost: each link is read once; eight bytes a page while it runs.

use super::Links;

/// The parameters by which a graph is cut into hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The largest distance of page numbers that a short link spans. If it is too small, large
    /// hosts are split; if it is as large as the number of pages, all hosts that link to each other
    /// are merged.
    pub span_max: u32,
    /// The most short links that may cross a border between two hosts.
    pub crossing_max: u32,
}

impl Default for Cut {
    /// Returns the parameters for which no link of 5,000 pages or less crosses a border. The crawl
    /// for which they were chosen (cnr-2000: 325,557 pages) is cut into 1,494 hosts, 116 of them
    /// with 50 pages or more.
    fn default() -> Self {
        Self { span_max: 5_000, crossing_max: 0 }
    }
}

impl Cut {
    /// Returns the first page of each host, and after the last host the number of pages.
    pub(super) fn starts(self, links: &Links) -> Vec<u32> {
        let mut starts = vec![0];
        let crossings = (1..).zip(self.crossings(links));
        let allowed = i64::from(self.crossing_max);
        starts.extend(crossings.filter(|(_, crossing)| *crossing <= allowed).map(|(at, _)| at));
        starts.push(links.pages());
        starts
    }

    /// Returns the number of short links that cross the border before page 1, before page 2, and so
    /// on.
    fn crossings(self, links: &Links) -> impl Iterator<Item = i64> {
        // Each link adds one at its lower end and subtracts it at its upper end.
        let pages = links.pages();
        let mut changes = vec![0_i64; pages as usize];
        for page in 0..pages {
            for &target in links.of(page) {
                if page.abs_diff(target) <= self.span_max {
                    changes[page.min(target) as usize] += 1;
                    changes[page.max(target) as usize] -= 1;
                }
            }
        }
        changes.truncate(pages as usize - 1);
        changes.into_iter().scan(0, |passing, change| {
            *passing += change;
            Some(*passing)
        })
    }
}
