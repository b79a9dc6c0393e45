//! What pages of a web are worth: PageRank over all that a crawl can reach, or worth at random.
//!
//! A surfer on a page goes on by one of its links, each as likely as the other (a link that is
//! there twice is two), or, every now and then and always where there is none, to any page of all.
//! The share of time spent on a page is its worth. A redirect hands on all it has. Pages that
//! robots.txt closes aren't part of it, nor are links to them, nor hostile hosts.
//!
//! Laws: worths of pages that can be reached have a mean of one, all others are worth nothing;
//! they are off by less than [`ERROR_MAX`] a page, on average; equal webs give equal bits on every
//! machine: only `+ - * /`, summed in one order.
//! Cost (measured): 30,000 pages of 24 links 0.1 s, 325,557 of 10 0.6 s, a million of 25 4 s.
//! Source: Page, Brin, Motwani, Winograd 1998. R(u) = (1 - d) / N + d * sum of R(v) / C(v) over the
//! pages v that link to u, C(v) the number of links of v; here times N. One step shrinks the
//! distance to the solution to d or less, so the last step bounds what is left.

#[cfg(test)]
mod tests;

use super::draw::{self, Draw, Purpose};
use super::page::Kind;
use super::{Place, Resource, Robots, Web};

/// How often the surfer goes on by a link: the usual share.
pub const DAMPING: f64 = 0.85;
/// Mean distance of a worth from the exact one, at most.
pub const ERROR_MAX: f64 = 1e-9;
/// Where links count for more than this, steps shrink the error too slowly.
const DAMPING_MAX: f64 = 0.99;
/// More than it ever takes: what is left after so many is 2 * 0.99^steps / (1 - 0.99) at most.
const STEPS_MAX: u32 = 3_000;

/// The worth of each page of a web.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRank {
    /// By [`Web::page_index`]; relative to the mean of all that can be reached, which is one.
    pub quality: Vec<f64>,
    /// Pages that a crawl can reach.
    pub pages: usize,
    /// Links between them.
    pub links: usize,
    /// Steps it took.
    pub steps: u32,
}

impl Web {
    /// What pages are worth to a surfer who goes on by a link in `damping` of all cases (0 to
    /// 0.99; [`DAMPING`] is usual).
    pub fn page_rank(&self, damping: f64) -> PageRank {
        let reach = Reach::of(self);
        let (found, steps) = reach.settle(damping.clamp(0.0, DAMPING_MAX));
        let mut quality = vec![0.0; self.pages_total()];
        for (&(host, page), worth) in reach.pages.iter().zip(found) {
            quality[self.page_index(host, page)] = worth;
        }
        PageRank { quality, pages: reach.pages.len(), links: reach.targets.len(), steps }
    }

    /// Worths that have nothing to do with links: the page of rank k is worth 1 / k^`exponent`
    /// (0 to 2), relative to the mean of all pages; which page has which rank is drawn by `seed`.
    /// By [`Web::page_index`].
    pub fn zipf_permutation(&self, exponent: f64, seed: u64) -> Vec<f64> {
        let exponent = exponent.clamp(0.0, 2.0);
        let pages = u32::try_from(self.pages_total()).expect("counted in 32 bits");
        let mut worths: Vec<f64> =
            (1..=pages).map(|rank| draw::exp(-exponent * draw::ln(f64::from(rank)))).collect();
        // The small ones first, so that they aren't lost in the sum.
        let mean = worths.iter().rev().sum::<f64>() / f64::from(pages);
        worths.iter_mut().for_each(|worth| *worth /= mean);
        let mut draw = Draw::new(seed, Purpose::Rank, 0, 0);
        for last in (1..pages).rev() {
            worths.swap(last as usize, draw.below(last + 1) as usize);
        }
        worths
    }
}

/// What a crawl can reach, in the order it does breadth first.
struct Reach {
    /// (host, page) of each.
    pages: Vec<(u32, u32)>,
    /// Where the links of each begin, and after the last their number.
    offsets: Vec<usize>,
    /// Places in `pages`.
    targets: Vec<u32>,
}

/// States of a page while it is sought; all below are places in [`Reach::pages`].
const UNKNOWN: u32 = u32::MAX;
const REFUSED: u32 = u32::MAX - 1;

impl Reach {
    fn of(web: &Web) -> Self {
        let mut reach = Self { pages: Vec::new(), offsets: vec![0], targets: Vec::new() };
        let mut known = vec![UNKNOWN; web.pages_total()];
        for seed in web.seed_places() {
            reach.meet(web, &mut known, seed);
        }
        let mut at = 0;
        while let Some(&(host, page)) = reach.pages.get(at) {
            if web.kind(host, page) == Kind::Redirect {
                let to = reach.meet(web, &mut known, web.redirect_of(host, page));
                reach.targets.extend(to);
            }
            for link in web.links(Place { host, resource: Resource::Page(page) }) {
                let to = reach.meet(web, &mut known, link.to);
                reach.targets.extend(to);
            }
            reach.offsets.push(reach.targets.len());
            at += 1;
        }
        reach
    }

    /// The number of what a link leads to, if a crawl may ask for it.
    fn meet(&mut self, web: &Web, known: &mut [u32], place: Place) -> Option<u32> {
        let Resource::Page(page) = place.resource else { return None };
        let host = place.host;
        let known = &mut known[web.page_index(host, page)];
        if *known == UNKNOWN {
            let open = web.robots_of(host) != Robots::Deny && web.kind(host, page) != Kind::Closed;
            *known = REFUSED;
            if open {
                *known = u32::try_from(self.pages.len()).expect("counted in 32 bits");
                self.pages.push((host, page));
            }
        }
        (*known != REFUSED).then_some(*known)
    }

    /// Steps until the worths stand, and how many it took.
    fn settle(&self, damping: f64) -> (Vec<f64>, u32) {
        let pages = self.pages.len() as f64;
        let mut worths = vec![1.0; self.pages.len()];
        let mut next = worths.clone();
        for step in 1..=STEPS_MAX {
            let change = self.step(damping, &worths, &mut next);
            std::mem::swap(&mut worths, &mut next);
            // What all later steps can still change, together.
            if change * damping / (1.0 - damping) <= ERROR_MAX * pages {
                return (worths, step);
            }
        }
        unreachable!("each step shrinks the error to {damping} of it");
    }

    /// One step of the surfer. Returns the sum of all changes.
    fn step(&self, damping: f64, worths: &[f64], next: &mut [f64]) -> f64 {
        next.fill(0.0);
        let mut stuck = 0.0;
        for (ends, worth) in self.offsets.windows(2).zip(worths) {
            let links = &self.targets[ends[0]..ends[1]];
            if links.is_empty() {
                stuck += worth;
                continue;
            }
            let share = worth / links.len() as f64;
            for &to in links {
                next[to as usize] += share;
            }
        }
        let anywhere = 1.0 - damping + damping * stuck / worths.len() as f64;
        let mut change = 0.0;
        for (next, worth) in next.iter_mut().zip(worths) {
            *next = anywhere + damping * *next;
            change += (*next - worth).abs();
        }
        change
    }
}
