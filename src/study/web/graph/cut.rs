//! Hosts of a graph whose pages have no names: runs of pages that short links hold together.
//!
//! A crawl's pages are numbered in the order of their URLs, so that a host's pages are neighbours.
//! Most links stay on their host and near their page; links between hosts lead anywhere. Between
//! two pages next to each other there is the border of a host if hardly any short link passes over
//! it, in either direction.
//!
//! Laws: every page is in one host; a wider span or a lower limit gives fewer hosts. Only integers.
//! Cost: one look at each link, eight bytes a page for the time of it.

use super::Links;

/// How a graph is cut into hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// A link to a page up to this far away is short, pages. Too few tear large hosts apart, as
    /// many as there are pages make neighbours of all hosts that link to each other.
    pub span_max: u32,
    /// Short links that may pass over a border, links.
    pub crossing_max: u32,
}

impl Default for Cut {
    /// No link of 5,000 pages or less passes over a border. Of the crawl it was chosen on
    /// (cnr-2000: 325,557 pages) it makes 1,494 hosts, 116 of them with 50 pages or more.
    fn default() -> Self {
        Self { span_max: 5_000, crossing_max: 0 }
    }
}

impl Cut {
    /// First page of each host, and after the last host the number of pages.
    pub(super) fn starts(self, links: &Links) -> Vec<u32> {
        let mut starts = vec![0];
        let crossings = (1..).zip(self.crossings(links));
        let allowed = i64::from(self.crossing_max);
        starts.extend(crossings.filter(|(_, crossing)| *crossing <= allowed).map(|(at, _)| at));
        starts.push(links.pages());
        starts
    }

    /// Short links that pass over the border before page 1, before page 2, and so on.
    fn crossings(self, links: &Links) -> impl Iterator<Item = i64> {
        // Each link adds one from its lower end on and takes it back at its upper end.
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
