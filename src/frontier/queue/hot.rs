//! URLs of one queue as they are handed out: first in, first out, or by quality with the best few
//! apart.
//!
//! By quality the best `visit_max` URLs (as many as a visit may take) are in a heap with two ends,
//! all others in a plain one, and the sum of the qualities of the first is kept as they change. So
//! the capability of a server is at hand whatever its queue holds.
//!
//! Laws: first in, first out: what is put in front comes out before what was waiting. By quality:
//! robots.txt before pages, then the higher quality, then the earlier arrival. The sum is that of
//! the best `visit_max`, recomputed or not.
//! Cost: O(1) first in, first out; O(log n) by quality, and O(k log n) when `visit_max` changes
//! by k.

use super::ends::Ends;
use super::{Item, goes_before};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// URLs in their order.
#[derive(Debug)]
pub(super) struct Hot {
    order: Order,
    /// Bytes that the URLs take beside their place in the order.
    text_bytes: usize,
}

#[derive(Debug)]
enum Order {
    Arrival(VecDeque<Item>),
    Quality(Ranked),
}

#[derive(Debug)]
struct Ranked {
    best: Ends,
    rest: BinaryHeap<Entry>,
    visit_max: usize,
    /// Of the qualities in `best`, in millionths.
    sum: u64,
}

impl Hot {
    pub(super) fn new(by_quality: bool, visit_max: usize) -> Self {
        let order = match by_quality {
            false => Order::Arrival(VecDeque::new()),
            true => Order::Quality(Ranked::new(visit_max)),
        };
        Self { order, text_bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        match &self.order {
            Order::Arrival(items) => items.len(),
            Order::Quality(ranked) => ranked.best.len() + ranked.rest.len(),
        }
    }

    /// Bytes of memory that it takes, with what allocators add.
    pub(super) fn bytes(&self) -> usize {
        let room = match &self.order {
            Order::Arrival(items) => items.capacity(),
            Order::Quality(ranked) => ranked.best.capacity() + ranked.rest.capacity(),
        };
        size_of::<Self>() + 32 + room * size_of::<Item>() + self.text_bytes
    }

    pub(super) fn front(&self) -> Option<&Item> {
        match &self.order {
            Order::Arrival(items) => items.front(),
            Order::Quality(ranked) => ranked.best.best().map(|entry| &entry.0),
        }
    }

    /// All in no order; those that wait by arrival in theirs.
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = &Item> + '_> {
        match &self.order {
            Order::Arrival(items) => Box::new(items.iter()),
            Order::Quality(ranked) => {
                Box::new(ranked.best.iter().chain(&ranked.rest).map(|entry| &entry.0))
            }
        }
    }

    /// Sum of the qualities of the best `visit_max`, in millionths; 0 in order of arrival.
    pub(super) fn best_sum(&self) -> u64 {
        match &self.order {
            Order::Arrival(_) => 0,
            Order::Quality(ranked) => ranked.sum,
        }
    }

    /// Sets how many of the best count.
    pub(super) fn set_visit_max(&mut self, visit_max: usize) {
        if let Order::Quality(ranked) = &mut self.order {
            ranked.set_visit_max(visit_max);
        }
    }

    /// Puts a URL where its order says: by arrival at the end.
    pub(super) fn push(&mut self, item: Item) {
        self.text_bytes += item.text_bytes();
        match &mut self.order {
            Order::Arrival(items) => items.push_back(item),
            Order::Quality(ranked) => ranked.push(Entry(item)),
        }
    }

    /// The same, but by arrival in front.
    pub(super) fn push_front(&mut self, item: Item) {
        self.text_bytes += item.text_bytes();
        match &mut self.order {
            Order::Arrival(items) => items.push_front(item),
            Order::Quality(ranked) => ranked.push(Entry(item)),
        }
    }

    /// Puts what goes before pages where it belongs: by arrival a robots.txt in front, a hop behind
    /// what goes before pages already.
    pub(super) fn push_prior(&mut self, item: Item) {
        self.text_bytes += item.text_bytes();
        match &mut self.order {
            Order::Arrival(items) => {
                let prior = items.iter().take_while(|other| other.is_prior()).count();
                items.insert(if item.is_robots() { 0 } else { prior }, item);
            }
            Order::Quality(ranked) => ranked.push(Entry(item)),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        let item = match &mut self.order {
            Order::Arrival(items) => items.pop_front(),
            Order::Quality(ranked) => ranked.pop(),
        }?;
        self.text_bytes -= item.text_bytes();
        Some(item)
    }

    /// All, in order.
    pub(super) fn into_items(self) -> Vec<Item> {
        match self.order {
            Order::Arrival(items) => items.into(),
            Order::Quality(ranked) => {
                let best = ranked.best.into_entries();
                let all = best.into_iter().chain(ranked.rest.into_vec());
                let mut all: Vec<Item> = all.map(|entry| entry.0).collect();
                all.sort_unstable_by(goes_before);
                all
            }
        }
    }

    /// In order of arrival: takes the last ones out, as many as take so many bytes.
    pub(super) fn split_end(&mut self, most_bytes: usize) -> Vec<Item> {
        let Order::Arrival(items) = &mut self.order else { return Vec::new() };
        let (mut from, mut bytes) = (items.len(), 0);
        while from > 0 && bytes < most_bytes {
            from -= 1;
            bytes += size_of::<Item>() + items[from].text_bytes();
        }
        let end = items.split_off(from);
        items.shrink_to_fit();
        self.text_bytes -= end.iter().map(Item::text_bytes).sum::<usize>();
        end.into()
    }
}

impl Ranked {
    fn new(visit_max: usize) -> Self {
        Self { best: Ends::default(), rest: BinaryHeap::new(), visit_max, sum: 0 }
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
pub(super) struct Entry(pub(super) Item);

impl Entry {
    pub(super) fn worth(&self) -> u64 {
        self.0.quality.millionths()
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        goes_before(&self.0, &other.0).reverse()
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
