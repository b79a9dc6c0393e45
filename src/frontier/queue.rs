//! The URL queue of one server: first in, first out, or by quality with the best few apart.
//!
//! A queue by quality keeps its best `visit_max` URLs (as many as a visit may take) in a heap with
//! two ends, all others in a plain one, and the sum of the qualities of the first kept as they
//! change. So the capability of a server is at hand whatever its queue holds. The end of a queue
//! may wait outside, in its `Depot`.
//!
//! Laws: first in, first out: what is given back comes out before what was waiting, in the order
//! given. By quality: robots.txt before pages, then the higher quality, then the earlier arrival;
//! what is given back keeps its place. The sum is that of the best `visit_max`, recomputed or not.
//! Of what waits outside only the band counts: nothing comes out before a URL of a better band,
//! and the order within a queue by arrival is exact.
//! Cost: O(1) first in, first out; O(log n) by quality, and O(k log n) when `visit_max` changes
//! by k.

pub(super) mod depot;
mod ends;
#[cfg(test)]
mod tests;

use super::ServerId;
use super::place::{Band, Place, band_of};
use super::policy::Policy;
use crate::quality::Quality;
use depot::{Depot, Task};
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
pub struct UrlQueue {
    order: Order,
    /// Bytes of the URLs in memory, those in buffers excepted.
    item_bytes: usize,
    depot: Option<Box<Depot>>,
}

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

/// What is open of a chunk, best first, as far as it isn't among the best yet.
type Opened<'a> = Option<&'a mut VecDeque<Item>>;

impl UrlQueue {
    pub(super) fn new(policy: Policy) -> Self {
        let order = match policy {
            Policy::Bfs | Policy::Performance => Order::Arrival(VecDeque::new()),
            Policy::Quality | Policy::Capability => Order::Quality(Box::new(Ranked::new())),
        };
        Self { order, item_bytes: 0, depot: None }
    }

    /// URLs waiting, in memory and outside.
    pub fn len(&self) -> usize {
        self.in_memory() + self.depot.as_ref().map_or(0, |depot| depot.urls())
    }

    /// URLs that wait in memory in their order.
    pub(super) fn in_memory(&self) -> usize {
        let own = match &self.order {
            Order::Arrival(items) => items.len(),
            Order::Quality(ranked) => ranked.best.len() + ranked.rest.len(),
        };
        own + self.opened().map_or(0, VecDeque::len)
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that its URLs take.
    pub(super) fn bytes(&self) -> usize {
        self.item_bytes + self.depot.as_ref().map_or(0, |depot| depot.bytes())
    }

    /// What waits outside.
    pub(super) fn depot(&self) -> Option<&Depot> {
        self.depot.as_deref()
    }

    pub(super) fn depot_mut(&mut self) -> Option<&mut Depot> {
        self.depot.as_deref_mut()
    }

    /// The same, for a queue that is about to have something there.
    pub(super) fn depot_or_new(&mut self) -> &mut Depot {
        self.depot.get_or_insert_default()
    }

    /// Whether nothing can come out before a chunk has been read.
    pub(super) fn is_behind(&self) -> bool {
        let chunk = self.depot.as_ref().and_then(|depot| depot.chunk_band());
        chunk.is_some_and(|band| self.front_in_memory().is_none_or(|item| self.band(item) < band))
    }

    /// Whether a chunk should be read, since the next visit may take more than is in memory.
    pub(super) fn is_short(&self, visit_max: usize) -> bool {
        let has_chunks = self.depot.as_ref().is_some_and(|depot| !depot.chunks().is_empty());
        has_chunks && (self.in_memory() < visit_max || self.is_behind())
    }

    /// The next one; `None` as well if it has to be read first.
    pub fn front(&self) -> Option<&Item> {
        if self.is_behind() { None } else { self.front_in_memory() }
    }

    fn front_in_memory(&self) -> Option<&Item> {
        match &self.order {
            Order::Arrival(items) => {
                items.front().or_else(|| self.opened().and_then(VecDeque::front))
            }
            Order::Quality(ranked) => ranked.best.best().map(|entry| &entry.0),
        }
    }

    fn opened(&self) -> Option<&VecDeque<Item>> {
        self.depot.as_ref()?.open()
    }

    /// The band of a URL: by arrival there is one.
    pub(super) fn band(&self, item: &Item) -> Band {
        match self.order {
            Order::Arrival(_) => 0,
            Order::Quality(_) => band_of(item),
        }
    }

    /// All that wait in memory, in no order; those that wait by arrival in theirs.
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = &Item> + '_> {
        let opened = self.opened().into_iter().flatten();
        Box::new(self.own().chain(opened))
    }

    /// The same without those of the open chunk.
    pub(super) fn own(&self) -> Box<dyn Iterator<Item = &Item> + '_> {
        match &self.order {
            Order::Arrival(items) => Box::new(items.iter()),
            Order::Quality(ranked) => {
                Box::new(ranked.best.iter().chain(&ranked.rest).map(|entry| &entry.0))
            }
        }
    }

    /// Sum of the qualities of the best `visit_max` in memory, in millionths; 0 in order of
    /// arrival.
    pub(super) fn best_sum(&self) -> u64 {
        match &self.order {
            Order::Arrival(_) => 0,
            Order::Quality(ranked) => ranked.sum,
        }
    }

    /// Sets how many of the best count.
    pub(super) fn set_visit_max(&mut self, visit_max: usize) {
        if let Order::Quality(ranked) = &mut self.order {
            let opened = self.depot.as_deref_mut().and_then(Depot::open_mut);
            ranked.set_visit_max(visit_max.max(1), opened);
        }
    }

    /// Puts a URL where its order says, in order of arrival at the end; robots.txt goes first.
    pub(super) fn push(&mut self, item: Item) {
        if self.depot.is_some() && self.joins_depot(&item) {
            let band = self.band(&item);
            return self.depot_or_new().put(band, &item);
        }
        self.item_bytes += item.bytes();
        match &mut self.order {
            Order::Arrival(items) if item.is_prior() => items.push_front(item),
            Order::Arrival(items) => items.push_back(item),
            Order::Quality(ranked) => ranked.push(Entry(item)),
        }
    }

    /// Whether a new URL has to wait behind others that are outside, or may as well.
    #[cold]
    fn joins_depot(&self, item: &Item) -> bool {
        let depot = self.depot.as_ref().expect("it was asked for");
        let outside = depot.chunk_band().max(depot.buffer_band());
        !item.is_prior()
            && match self.order {
                Order::Arrival(_) => true,
                Order::Quality(_) => outside.is_some_and(|band| band_of(item) <= band),
            }
    }

    /// Puts a URL behind those that were put so: a queue that is read back in the order in which
    /// it was written.
    pub(super) fn restore(&mut self, item: Item) {
        self.item_bytes += item.bytes();
        match &mut self.order {
            Order::Arrival(items) => items.push_back(item),
            Order::Quality(ranked) => ranked.push(Entry(item)),
        }
    }

    /// Puts a URL back to where it was.
    pub(super) fn put_back(&mut self, item: Item) {
        self.item_bytes += item.bytes();
        match &mut self.order {
            Order::Arrival(items) => items.push_front(item),
            Order::Quality(ranked) => ranked.push(Entry(item)),
        }
    }

    /// Takes the next one; `None` as well if it has to be read first.
    pub(super) fn pop(&mut self) -> Option<Item> {
        if self.depot.is_some() {
            return self.pop_before_depot();
        }
        let item = match &mut self.order {
            Order::Arrival(items) => pop_front(items),
            Order::Quality(ranked) => ranked.pop(None),
        }?;
        self.item_bytes -= item.bytes();
        Some(item)
    }

    #[cold]
    fn pop_before_depot(&mut self) -> Option<Item> {
        if self.is_behind() {
            return None;
        }
        let opened = self.depot.as_deref_mut().and_then(Depot::open_mut);
        let item = match &mut self.order {
            Order::Arrival(items) => pop_front(items).or_else(|| opened?.pop_front()),
            Order::Quality(ranked) => ranked.pop(opened),
        };
        self.item_bytes -= item.as_ref().map_or(0, Item::bytes);
        self.empty_buffers();
        item
    }

    /// Buffers whose turn has come are read: nothing of their band or a better one is on disk, nor
    /// of a better one in memory.
    pub(super) fn empty_buffers(&mut self) {
        while let Some(depot) = &mut self.depot
            && let Some(band) = depot.buffer_band()
            && depot.chunk_band().is_none_or(|chunk| chunk < band)
        {
            let front = self.front_in_memory().map(|item| self.band(item));
            if front.is_some_and(|front| front >= band) {
                break;
            }
            self.depot_or_new().empty_buffer().into_iter().for_each(|item| self.restore(item));
        }
        self.depot.take_if(|depot| depot.is_empty());
    }

    /// The open chunk, if all its URLs are used up; a depot that is empty is given up.
    pub(super) fn spent(&mut self) -> Option<Place> {
        let spent = self.depot.as_mut()?.spent();
        self.depot.take_if(|depot| depot.is_empty());
        spent
    }

    /// A chunk of so many URLs comes in, of which `items` are left; it was removed from the depot.
    /// It is open from now on if its order is that of the queue; else its place is handed back,
    /// and it is needed no more. So is the one that was open.
    pub(super) fn open(&mut self, place: Place, urls: u32, items: Vec<Item>) -> [Option<Place>; 2] {
        let before = self.own_opened();
        let sorted = match self.order {
            Order::Arrival(_) => true,
            Order::Quality(_) => items.is_sorted_by(|one, next| order(one) >= order(next)),
        };
        if !sorted {
            self.own_all(items);
            return [before, Some(place)];
        }
        self.item_bytes += items.iter().map(Item::bytes).sum::<usize>();
        self.depot_or_new().set_open(place, urls, items.into());
        if let Order::Quality(ranked) = &mut self.order {
            let opened = self.depot.as_deref_mut().and_then(Depot::open_mut);
            ranked.mingle(opened.expect("it has just been opened"));
        }
        [before, None]
    }

    /// What is left of the open chunk becomes the queue's own; its place is needed no more.
    pub(super) fn own_opened(&mut self) -> Option<Place> {
        let (place, items) = self.depot.as_mut()?.take_open()?;
        self.item_bytes -= items.iter().map(Item::bytes).sum::<usize>();
        self.own_all(items);
        Some(place)
    }

    /// URLs of chunks that are needed no more.
    pub(super) fn own_all(&mut self, items: impl IntoIterator<Item = Item>) {
        items.into_iter().for_each(|item| self.restore(item));
    }

    /// Keeps so many of the open chunk's URLs that `kept` are in memory, and drops the rest.
    pub(super) fn close(&mut self, kept: usize) {
        let Some(depot) = &mut self.depot else { return };
        let Some(opened) = depot.open_mut() else { return };
        if let Order::Arrival(items) = &mut self.order {
            let missing = kept.saturating_sub(items.len()).min(opened.len());
            items.extend(opened.drain(..missing));
        }
        self.item_bytes -= opened.iter().map(Item::bytes).sum::<usize>();
        if !opened.is_empty() {
            depot.close();
        }
    }

    /// Takes out what is beyond the first `kept`, in order: by quality all but the best few, by
    /// arrival the last ones, about `most_bytes` of them.
    pub(super) fn cut(&mut self, kept: usize, most_bytes: usize) -> Vec<Item> {
        let cut: Vec<Item> = match &mut self.order {
            Order::Arrival(items) => {
                let (mut from, mut bytes) = (items.len(), 0);
                while from > kept && bytes < most_bytes {
                    from -= 1;
                    bytes += items[from].bytes();
                }
                let cut = items.split_off(from.min(items.len())).into();
                items.shrink_to_fit();
                cut
            }
            Order::Quality(ranked) => {
                let rest = std::mem::take(&mut ranked.rest).into_sorted_vec();
                rest.into_iter().rev().map(|entry| entry.0).collect()
            }
        };
        self.item_bytes -= cut.iter().map(Item::bytes).sum::<usize>();
        cut
    }

    /// Bytes that [`UrlQueue::close`], [`UrlQueue::cut`] and writing buffers would free, about.
    pub(super) fn spillable(&self, kept: usize) -> usize {
        let buffers = self.depot.as_ref().map_or(0, |depot| depot.buffer_bytes());
        if self.depot.as_ref().is_some_and(|depot| depot.task != Task::Nothing) {
            return buffers;
        }
        let (urls, opened) = (self.in_memory(), self.opened().map_or(0, VecDeque::len));
        let own_beyond = match &self.order {
            Order::Arrival(_) => (urls - opened).saturating_sub(kept),
            Order::Quality(ranked) => ranked.rest.len(),
        };
        buffers + self.item_bytes / urls.max(1) * (own_beyond + opened.saturating_sub(kept))
    }

    /// Takes any of its own, whatever waits outside.
    pub(super) fn pop_own(&mut self) -> Option<Item> {
        let item = match &mut self.order {
            Order::Arrival(items) => pop_front(items),
            Order::Quality(ranked) => ranked.pop(None),
        }?;
        self.item_bytes -= item.bytes();
        Some(item)
    }

    /// Brings URLs into the order in which they would come out; by arrival they are.
    pub(super) fn sort(&self, items: &mut [Item]) {
        if !self.is_by_arrival() {
            items.sort_by_key(|item| Reverse(order(item)));
        }
    }

    /// Whether its order is that of arrival.
    pub(super) fn is_by_arrival(&self) -> bool {
        matches!(self.order, Order::Arrival(_))
    }

    /// Empties the queue but for its chunks on disk, in order; and the chunk that is needed no
    /// more by that.
    pub(super) fn drain(&mut self) -> (Vec<Item>, Option<Place>) {
        let spent = self.own_opened();
        let mut items = match &mut self.order {
            Order::Arrival(items) => std::mem::take(items).into(),
            Order::Quality(ranked) => std::iter::from_fn(|| ranked.pop(None)).collect::<Vec<_>>(),
        };
        while let Some(depot) = &mut self.depot
            && depot.buffer_band().is_some()
        {
            items.extend(depot.empty_buffer());
        }
        self.item_bytes = 0;
        self.depot.take_if(|depot| depot.is_empty());
        (items, spent)
    }
}

impl Item {
    /// Bytes of memory it takes: its own, its target with what allocators add, and its share in
    /// the URL it was found on, which eight have in common.
    pub(super) fn bytes(&self) -> usize {
        let via = self.via.as_ref().map_or(0, |via| via.len() / 8);
        size_of::<Self>() + self.target.len() + 16 + via
    }
}

fn pop_front(items: &mut VecDeque<Item>) -> Option<Item> {
    let item = items.pop_front();
    if items.is_empty() && items.capacity() > SPARE {
        // An idle server keeps no memory for the queue it once had.
        *items = VecDeque::new();
    }
    item
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

    fn pop(&mut self, opened: Opened<'_>) -> Option<Item> {
        let entry = self.best.take_best()?;
        self.sum -= entry.worth();
        self.fill(opened);
        if self.best.len() == 0 {
            self.best.tidy(SPARE);
            self.rest.shrink_to(SPARE);
        }
        Some(entry.0)
    }

    fn set_visit_max(&mut self, visit_max: usize, opened: Opened<'_>) {
        self.visit_max = visit_max;
        while self.best.len() > visit_max {
            let out = self.best.take_worst().expect("it holds more than one");
            self.sum -= out.worth();
            self.rest.push(out);
        }
        self.fill(opened);
    }

    /// Makes up the best from what comes next, in the heap or in the open chunk.
    fn fill(&mut self, mut opened: Opened<'_>) {
        while self.best.len() < self.visit_max {
            let next = opened.as_ref().and_then(|opened| opened.front()).map(order);
            let next_is_opened = next > self.rest.peek().map(|entry| order(&entry.0));
            let entry = match &mut opened {
                Some(opened) if next_is_opened => opened.pop_front().map(Entry),
                _ => self.rest.pop(),
            };
            let Some(entry) = entry else { break };
            self.sum += entry.worth();
            self.best.push(entry);
        }
    }

    /// Takes in from a chunk that has just been opened what is among the best.
    fn mingle(&mut self, opened: &mut VecDeque<Item>) {
        while let Some(next) = opened.front()
            && (self.best.len() < self.visit_max
                || self.best.worst().is_some_and(|worst| order(&worst.0) < order(next)))
        {
            let next = opened.pop_front().expect("it has just been looked at");
            self.push(Entry(next));
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
}

/// What decides by quality; the greater goes first.
fn order(item: &Item) -> (bool, Quality, Reverse<u64>) {
    (item.is_prior(), item.quality, Reverse(item.arrival))
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0).cmp(&order(&other.0))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Room that an empty queue may keep, in items.
const SPARE: usize = 16;
