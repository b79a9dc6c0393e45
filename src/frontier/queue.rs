//! The URL queue of one server: first in, first out, or by quality with the best few apart.
//!
//! A queue by quality keeps its best `visit_max` URLs (as many as a visit may take) in a heap with
//! two ends, all others in a plain one, and the sum of the qualities of the first kept as they
//! change. So the capability of a server is at hand whatever its queue holds.
//!
//! Laws: first in, first out: what is given back comes out before what was waiting, in the order
//! given. By quality: robots.txt before pages, then the higher quality, then the earlier arrival;
//! what is given back keeps its place. The sum is that of the best `visit_max`, recomputed or not.
//! Cost: O(1) first in, first out; O(log n) by quality, and O(k log n) when `visit_max` changes
//! by k.

mod ends;
#[cfg(test)]
mod tests;

use super::ServerId;
use super::policy::Policy;
use crate::quality::Quality;
use ends::Ends;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

/// One URL waiting: path and query only, the origin is its server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Path and query, beginning with `/`.
    pub target: Box<str>,
    /// What it is thought to be worth, as of its discovery.
    pub quality: Quality,
    /// Place in the order of arrival; the frontier's to set.
    pub arrival: u64,
    /// Links followed from a seed to here.
    pub depth: u16,
    /// Redirects followed to here.
    pub hops: u8,
    /// Tries that failed so far.
    pub tries: u8,
    /// What it is fetched for.
    pub errand: Errand,
    /// Heritrix's letter for how it was found (`L`, `E`, `R`, ...); `-` for a seed.
    pub found_as: u8,
    /// Where it was found; shared by all links of one page.
    pub via: Option<Rc<str>>,
}

/// What a URL is fetched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// A page of the crawl.
    Page,
    /// The robots.txt of this server, after so many redirects (the server may be another one).
    Robots(ServerId, u8),
}

impl Item {
    /// Whether it goes before the pages of its server.
    pub fn is_prior(&self) -> bool {
        matches!(self.errand, Errand::Robots(..))
    }
}

/// Pending URLs of one server.
#[derive(Debug)]
pub struct UrlQueue(Order);

#[derive(Debug)]
enum Order {
    Arrival(VecDeque<Item>),
    Quality(Box<Ranked>),
}

/// A queue by quality.
#[derive(Debug)]
struct Ranked {
    best: Ends,
    rest: BinaryHeap<Entry>,
    visit_max: usize,
    /// Of the qualities in `best`, in millionths.
    sum: u64,
}

impl UrlQueue {
    pub(super) fn new(policy: Policy) -> Self {
        Self(match policy {
            Policy::Bfs | Policy::Performance => Order::Arrival(VecDeque::new()),
            Policy::Quality | Policy::Capability => Order::Quality(Box::new(Ranked::new())),
        })
    }

    /// URLs waiting.
    pub fn len(&self) -> usize {
        match &self.0 {
            Order::Arrival(items) => items.len(),
            Order::Quality(ranked) => ranked.best.len() + ranked.rest.len(),
        }
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next one.
    pub fn front(&self) -> Option<&Item> {
        match &self.0 {
            Order::Arrival(items) => items.front(),
            Order::Quality(ranked) => ranked.best.best().map(|entry| &entry.0),
        }
    }

    /// All that wait, in no order.
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = &Item> + '_> {
        match &self.0 {
            Order::Arrival(items) => Box::new(items.iter()),
            Order::Quality(ranked) => {
                Box::new(ranked.best.iter().chain(&ranked.rest).map(|entry| &entry.0))
            }
        }
    }

    /// Sum of the qualities of the best `visit_max`, in millionths; 0 in order of arrival.
    pub(super) fn best_sum(&self) -> u64 {
        match &self.0 {
            Order::Arrival(_) => 0,
            Order::Quality(ranked) => ranked.sum,
        }
    }

    /// Sets how many of the best count.
    pub(super) fn set_visit_max(&mut self, visit_max: usize) {
        if let Order::Quality(ranked) = &mut self.0 {
            ranked.set_visit_max(visit_max.max(1));
        }
    }

    /// Puts a URL where its order says, in order of arrival at the end; robots.txt goes first.
    pub(super) fn push(&mut self, item: Item) {
        match &mut self.0 {
            Order::Arrival(items) if item.is_prior() => items.push_front(item),
            Order::Arrival(items) => items.push_back(item),
            Order::Quality(ranked) => ranked.push(Entry(item)),
        }
    }

    /// Puts a URL back to where it was.
    pub(super) fn put_back(&mut self, item: Item) {
        match &mut self.0 {
            Order::Arrival(items) => items.push_front(item),
            Order::Quality(ranked) => ranked.push(Entry(item)),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        match &mut self.0 {
            Order::Arrival(items) => {
                let item = items.pop_front();
                if items.is_empty() && items.capacity() > SPARE {
                    // An idle server keeps no memory for the queue it once had.
                    *items = VecDeque::new();
                }
                item
            }
            Order::Quality(ranked) => ranked.pop(),
        }
    }

    /// Empties the queue, in order.
    pub(super) fn drain(&mut self) -> Vec<Item> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

impl Ranked {
    fn new() -> Self {
        Self { best: Ends::default(), rest: BinaryHeap::new(), visit_max: 1, sum: 0 }
    }

    fn push(&mut self, entry: Entry) {
        if self.best.len() < self.visit_max {
            self.sum += entry.worth();
            self.best.push(entry);
        } else if self.best.worst().is_some_and(|worst| *worst < entry) {
            self.sum += entry.worth();
            let out = self.best.trade_worst(entry).expect("there is a worst");
            self.sum -= out.worth();
            self.rest.push(out);
        } else {
            self.rest.push(entry);
        }
    }

    fn pop(&mut self) -> Option<Item> {
        let entry = self.best.take_best()?;
        self.sum -= entry.worth();
        self.fill();
        if self.best.len() == 0 {
            self.best.tidy(SPARE);
            self.rest.shrink_to(SPARE);
        }
        Some(entry.0)
    }

    fn set_visit_max(&mut self, visit_max: usize) {
        self.visit_max = visit_max;
        while self.best.len() > visit_max {
            let out = self.best.take_worst().expect("it holds more than one");
            self.sum -= out.worth();
            self.rest.push(out);
        }
        self.fill();
    }

    fn fill(&mut self) {
        while self.best.len() < self.visit_max
            && let Some(entry) = self.rest.pop()
        {
            self.sum += entry.worth();
            self.best.push(entry);
        }
    }
}

/// A URL in a queue by quality; the greater goes first.
#[derive(Debug, PartialEq, Eq)]
struct Entry(Item);

impl Entry {
    fn worth(&self) -> u64 {
        self.0.quality.millionths()
    }

    fn order(&self) -> (bool, Quality, Reverse<u64>) {
        (self.0.is_prior(), self.0.quality, Reverse(self.0.arrival))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Room that an empty queue may keep, in items.
const SPARE: usize = 16;
