//! The URL queue of one server: first in, first out, or by quality.
//!
//! A queue has two parts. What is *hot* is at hand, in order (`hot`); as long as URLs fit into
//! memory that is all. What is *cold* (`cold`) is packed, in bytes in memory and in chunks on
//! disk. A queue is packed when memory is wanted or its visit is over, and warmed when its next URL
//! is looked at; what is only taken comes straight out of the head.
//!
//! Laws: in order of arrival what is given back comes out before what was waiting, in the order
//! given. By quality: robots.txt and hops before pages, then the higher quality, then the earlier
//! arrival; what is given back keeps its place. The sum is that of the best as many as count,
//! recomputed or not. Of tail and chunks only the band counts: nothing comes out before a URL of a
//! better band; and the order within a queue by arrival is exact. Outside a visit a queue is hot
//! or has a head, not both (by arrival what is hot comes before the head).
//! Cost: that of `hot`; to pack and to warm, a copy of each URL. An idle one takes no memory
//! beside its own 24 bytes.

pub(super) mod blocks;
pub(super) mod cold;
mod ends;
mod hot;
mod packed;
pub(super) mod places;
mod sorted;
#[cfg(test)]
mod tests;

use super::ServerId;
use super::ahead;
use super::items::Written;
use super::place::Band;
use super::policy::Policy;
use crate::quality::Quality;
use blocks::Blocks;
use cold::{Cold, Task};
use hot::Hot;
use std::cmp::Ordering;
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
    /// A page that a redirect led to: the next hop of the chain with this number.
    Hop(u32),
}

impl Item {
    /// Whether it goes before the pages of its server.
    pub fn is_prior(&self) -> bool {
        self.errand != Errand::Page
    }

    /// Whether it is a robots.txt, which no robots.txt forbids.
    pub fn is_robots(&self) -> bool {
        matches!(self.errand, Errand::Robots(..))
    }
}

/// Pending URLs of one server.
#[derive(Debug)]
pub struct UrlQueue {
    hot: Option<Box<Hot>>,
    cold: Option<Box<Cold>>,
    /// How many of the best make the sum; by arrival, how many a visit takes.
    counted: u32,
    by_quality: bool,
    /// The lists of victims that it is in, a bit each: for what is hot, and for what could go to
    /// the disk.
    pub(super) filed_hot: u8,
    pub(super) filed_cold: u8,
}

/// Bytes of memory that a queue takes beside its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) hot: usize,
    pub(super) cold: usize,
}

/// By arrival a long queue is packed in pieces of this size.
const PACK_BYTES: usize = if cfg!(test) { 1_000 } else { 256 << 10 };
/// A URL that must come into a packed head that is no longer is put in its place, whatever it is
/// like; longer ones are warmed, unless their URLs have much in common.
const INSERT_MAX: usize = 8;
/// A tail whose turn has come is put in order as bytes if it and the head hold no more than twice
/// as many URLs, or as many as count.
const MERGE_MAX: usize = if cfg!(test) { 8 } else { 32 };

/// URLs of a retired server that are unpacked at once.
const OWN_MAX: usize = 64;

impl UrlQueue {
    pub(super) fn new(policy: Policy) -> Self {
        let by_quality = policy.is_by_quality();
        Self { hot: None, cold: None, counted: 1, by_quality, filed_hot: 0, filed_cold: 0 }
    }

    /// URLs waiting, in memory and on disk.
    pub fn len(&self) -> usize {
        let outside = self.cold.as_ref().map_or(0, |cold| {
            let (tail, disk) = cold.urls_outside();
            tail + disk
        });
        self.in_memory() + outside
    }

    /// URLs that wait in memory in their order.
    pub(super) fn in_memory(&self) -> usize {
        self.hot_len() + self.cold.as_ref().map_or(0, |cold| cold.head.urls())
    }

    /// Whether nothing was at hand since it was packed.
    pub(super) fn is_bare(&self) -> bool {
        self.hot.is_none()
    }

    /// URLs that are hot.
    pub(super) fn hot_len(&self) -> usize {
        self.hot.as_ref().map_or(0, |hot| hot.len())
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it takes no memory.
    pub(super) fn is_vacant(&self) -> bool {
        self.hot.is_none() && self.cold.is_none()
    }

    /// By quality: whether some of it is hot and some in a head.
    pub(super) fn is_parted(&self) -> bool {
        let has_head = self.cold.as_ref().is_some_and(|cold| !cold.head.is_empty());
        self.by_quality && self.hot.is_some() && has_head
    }

    /// Bytes of memory that it takes, blocks excepted.
    pub(super) fn weight(&self) -> Weight {
        Weight {
            hot: self.hot.as_ref().map_or(0, |hot| hot.bytes()),
            cold: self.cold.as_ref().map_or(0, |cold| cold.bytes()),
        }
    }

    /// What is packed.
    pub(super) fn cold(&self) -> Option<&Cold> {
        self.cold.as_deref()
    }

    pub(super) fn cold_mut(&mut self) -> Option<&mut Cold> {
        self.cold.as_deref_mut()
    }

    /// The same, for a queue that is about to be packed.
    pub(super) fn cold_or_new(&mut self) -> &mut Cold {
        self.cold.get_or_insert_default()
    }

    fn hot_or_new(&mut self) -> &mut Hot {
        let (by_quality, counted) = (self.by_quality, self.counted());
        self.hot.get_or_insert_with(|| Box::new(Hot::new(by_quality, counted)))
    }

    /// Asks for what it has at hand, and for what is told of what is packed.
    pub(super) fn fetch_boxes(&self) {
        self.hot.as_deref().into_iter().for_each(ahead::fetch);
        self.cold.as_deref().into_iter().for_each(ahead::fetch);
    }

    /// The same, for its next URLs.
    pub(super) fn fetch_urls(&self, blocks: Option<&Blocks>) {
        self.hot.iter().filter_map(|hot| hot.front()).for_each(ahead::fetch);
        if let (Some(cold), Some(blocks)) = (&self.cold, blocks) {
            cold.fetch_urls(blocks);
        }
    }

    /// As `fetch_urls`, but for the next one of them.
    pub(super) fn fetch_front(&self, blocks: Option<&Blocks>) {
        match (&self.hot, &self.cold, blocks) {
            (Some(hot), ..) => hot.front().into_iter().for_each(ahead::fetch),
            (_, Some(cold), Some(blocks)) => cold.fetch_front(blocks),
            _ => {}
        }
    }

    /// Asks for where the next one that comes will be put, if it is packed: by quality that may be
    /// a short head.
    pub(super) fn fetch_ends(&self, blocks: &Blocks) {
        let Some(cold) = &self.cold else { return };
        cold.fetch_ends(blocks);
        // Most that comes while something is on disk is no better than that.
        if self.by_quality && cold.head.urls() <= INSERT_MAX && cold.places().is_empty() {
            cold.fetch_front(blocks);
        }
    }

    /// How many of the best count.
    pub(super) fn counted(&self) -> usize {
        self.counted as usize
    }

    /// Whether its order is that of arrival.
    pub(super) fn is_by_arrival(&self) -> bool {
        !self.by_quality
    }

    /// Whether nothing can come out before a chunk has been read.
    pub(super) fn is_behind(&self) -> bool {
        let chunk = self.cold.as_ref().and_then(|cold| cold.chunk_band());
        chunk.is_some_and(|band| self.front_band().is_none_or(|front| front < band))
    }

    /// The band of the next URL in memory.
    fn front_band(&self) -> Option<Band> {
        let hot = self.hot.as_ref().and_then(|hot| hot.front());
        match hot {
            Some(item) => Some(self.band(&item.written())),
            None => self.cold.as_ref().and_then(|cold| cold.front_band()),
        }
    }

    /// Whether a chunk should be read, since there are fewer than `kept` URLs in memory.
    pub(super) fn is_short(&self, kept: usize) -> bool {
        let has_chunks = self.cold.as_ref().is_some_and(|cold| !cold.places().is_empty());
        has_chunks && (self.in_memory() < kept || self.is_behind())
    }

    /// The next one; `None` as well if it has to be read or warmed first.
    pub fn front(&self) -> Option<&Item> {
        if self.is_behind() { None } else { self.hot.as_ref()?.front() }
    }

    /// The band of a URL: by arrival there is one.
    pub(super) fn band(&self, url: &Written<'_>) -> Band {
        if self.by_quality { url.band() } else { 0 }
    }

    /// All that wait in memory in their order, in no order; those that wait by arrival in theirs.
    pub(super) fn items(&self, blocks: Option<&Blocks>) -> Vec<Item> {
        let mut items: Vec<Item> = self.hot_items().cloned().collect();
        if let (Some(cold), Some(blocks)) = (&self.cold, blocks) {
            items.extend(cold.head_items(blocks));
        }
        items
    }

    /// Those at hand, in no order; those that wait by arrival in theirs.
    pub(super) fn hot_items(&self) -> impl Iterator<Item = &Item> {
        self.hot.iter().flat_map(|hot| hot.iter())
    }

    /// Sum of the qualities of the best in memory as many as count, in millionths; 0 in order of
    /// arrival. During a visit that of some of them.
    pub(super) fn best_sum(&self) -> u64 {
        match (&self.hot, &self.cold) {
            (Some(hot), _) => hot.best_sum(),
            (None, Some(cold)) if self.by_quality => cold.sum(),
            _ => 0,
        }
    }

    /// Sets how many of the best count. If it is packed, a survey must follow.
    pub(super) fn set_visit_max(&mut self, visit_max: usize) {
        self.counted = u32::try_from(visit_max.max(1)).unwrap_or(u32::MAX);
        if let Some(hot) = &mut self.hot {
            hot.set_visit_max(visit_max.max(1));
        }
    }

    /// By quality: looks at what is packed anew.
    pub(super) fn survey(&mut self, blocks: &Blocks) {
        let counted = self.counted();
        if let Some(cold) = self.cold.as_mut().filter(|_| self.by_quality && self.hot.is_none()) {
            cold.survey(counted, blocks);
        }
    }

    /// Puts a URL where its order says, in order of arrival at the end; robots.txt goes first, then
    /// hops of redirect chains.
    pub(super) fn push(&mut self, item: Item, blocks: Option<&mut Blocks>) {
        match blocks {
            Some(blocks) if self.cold.is_some() => self.push_cold(item, blocks),
            _ if item.is_prior() => self.hot_or_new().push_prior(item),
            _ => self.hot_or_new().push(item),
        }
    }

    #[cold]
    fn push_cold(&mut self, item: Item, blocks: &mut Blocks) {
        if item.is_prior() {
            if self.by_quality {
                self.warm(usize::MAX, blocks);
            }
            return self.hot_or_new().push_prior(item);
        }
        let (band, counted) = (self.band(&item.written()), self.counted());
        let is_hot = self.hot_len() > 0;
        let by_quality = self.by_quality;
        let cold = self.cold.as_mut().expect("it was asked for");
        // What comes before all in the head waits for nothing but the disk.
        let is_best = !is_hot && cold.is_best(item.quality, counted);
        let tail = if is_best { None } else { cold.tail_band() };
        let outside = cold.chunk_band().max(tail);
        let is_outside = outside.is_some_and(|outside| band <= outside);
        let head = cold.head.urls();
        let is_last = head > 0 && item.quality <= cold.worst();
        if !by_quality {
            if is_outside || head >= counted {
                cold.put_tail(item.written(), false, blocks);
            } else if is_hot && head == 0 {
                self.hot_or_new().push(item);
            } else {
                cold.put_head(item.written(), blocks);
            }
        } else if is_outside
            || is_last && (is_hot || head >= counted)
            || !is_hot && cold.is_behind_counted(item.quality, counted)
        {
            cold.put_tail(item.written(), true, blocks);
        } else if is_hot || !self.insert(&item, blocks) {
            self.warm(usize::MAX, blocks);
            self.hot_or_new().push(item);
        }
    }

    /// Puts a URL back to where it was.
    pub(super) fn put_back(&mut self, item: Item, blocks: &mut Blocks) {
        if self.by_quality {
            self.warm(usize::MAX, blocks);
        }
        self.hot_or_new().push_front(item);
    }

    /// The same, while nothing is packed.
    pub(super) fn put_back_hot(&mut self, item: Item) {
        self.hot_or_new().push_front(item);
    }

    /// Puts a URL behind those that were put so: a queue that is read back in the order in which
    /// it was written.
    pub(super) fn restore(&mut self, item: Item, blocks: Option<&mut Blocks>) {
        match (&mut self.cold, blocks) {
            (Some(cold), Some(blocks)) if !self.by_quality && !cold.head.is_empty() => {
                cold.put_head(item.written(), blocks);
            }
            _ => self.hot_or_new().push(item),
        }
    }

    /// What is at hand of a queue that is being read back becomes its head, however much it is.
    pub(super) fn restore_packed(&mut self, blocks: &mut Blocks) {
        let cold = self.cold.take().unwrap_or_default();
        let is_first = self.by_quality || cold.head.is_empty();
        self.cold = Some(cold);
        if is_first {
            let mut rest = usize::MAX;
            while self.hot_len() < rest {
                rest = self.hot_len();
                self.pack(usize::MAX / 2, blocks);
            }
        }
    }

    /// Takes the next one, out of the head if nothing is at hand; `None` as well if it has to be
    /// read first.
    pub(super) fn pop(&mut self, blocks: Option<&mut Blocks>) -> Option<Item> {
        if self.cold.is_some() && self.is_behind() {
            return None;
        }
        match (&mut self.hot, &mut self.cold, blocks) {
            (Some(hot), ..) if hot.len() > 0 => hot.pop(),
            (_, Some(cold), Some(blocks)) => cold.take_first(self.by_quality, blocks),
            _ => None,
        }
    }

    /// Gives memory back that an empty queue doesn't need.
    pub(super) fn tidy(&mut self) {
        self.hot.take_if(|hot| hot.len() == 0);
        self.cold.take_if(|cold| cold.is_empty());
    }

    /// The first URLs of the head become hot, so many at most, if all that is hot comes before
    /// them.
    pub(super) fn warm(&mut self, most: usize, blocks: &mut Blocks) {
        let Some(cold) = self.cold.as_mut().filter(|cold| !cold.head.is_empty()) else { return };
        let items = match self.by_quality {
            true => cold.take_best(most.max(1), blocks),
            false => cold.take_head(most.max(1), blocks),
        };
        let hot = self.hot_or_new();
        items.into_iter().for_each(|item| hot.push(item));
    }

    /// The first URLs of the head become hot, so many at most, if nothing is.
    pub(super) fn warm_if_bare(&mut self, most: usize, blocks: &mut Blocks) {
        if self.hot_len() == 0 {
            self.warm(most, blocks);
        }
    }

    /// By quality: whether the tail comes before all else in memory and on disk.
    pub(super) fn is_turn_of_tail(&self) -> bool {
        let Some(cold) = &self.cold else { return false };
        let before = cold.chunk_band().max(self.front_band());
        self.by_quality && cold.tail_band() > before
    }

    /// The tail comes in if its turn has come: nothing of its band or a better one is on disk, nor
    /// of its own or a better one before it in memory.
    pub(super) fn take_turn(&mut self, blocks: &mut Blocks) {
        let (is_turn, counted) = (self.is_turn_of_tail(), self.counted());
        let Some(cold) = &mut self.cold else { return };
        if !self.by_quality {
            return cold.turn_over(blocks);
        }
        if !is_turn {
            return;
        }
        let is_short = cold.head.urls() + cold.tail.urls() <= 2 * counted.max(MERGE_MAX);
        if is_short && self.hot.is_none() {
            return self.merge_tail(blocks);
        }
        let items = cold.take_tail(blocks);
        self.warm(usize::MAX, blocks);
        let hot = self.hot_or_new();
        items.into_iter().for_each(|item| hot.push(item));
    }

    /// What is hot becomes the front of the head; if it is much by arrival, part of it. By quality
    /// returns all but the best for which there is room, best first: they are not of this queue any
    /// more.
    pub(super) fn pack(&mut self, room: usize, blocks: &mut Blocks) -> Vec<Item> {
        let Some(hot) = &mut self.hot else { return Vec::new() };
        if !self.by_quality {
            let items = hot.split_end(PACK_BYTES);
            self.hot.take_if(|hot| hot.len() == 0);
            self.cold_or_new().put_before(&items, blocks);
            return Vec::new();
        }
        let counted = self.counted();
        let mut items = self.hot.take().map_or(Vec::new(), |hot| hot.into_items());
        let cold = self.cold_or_new();
        if !cold.head.is_empty() {
            items.extend(cold.head_items(blocks));
            items.sort_unstable_by(goes_before);
        }
        let rest = items.split_off(items.len().min(room.max(1)));
        let urls: Vec<Written<'_>> = items.iter().map(Item::written).collect();
        cold.set_head(&urls, counted, blocks);
        rest
    }

    /// Bytes that could go to the disk if so many URLs are kept of heads that hold more than
    /// `head_max`, about.
    pub(super) fn spillable(&self, kept: usize, head_max: usize) -> usize {
        self.cold.as_ref().map_or(0, |cold| cold.spillable(kept, head_max))
    }

    /// Whether some of it is in memory, whatever is on disk.
    pub(super) fn is_in_hand(&self) -> bool {
        self.in_memory() > 0 || self.cold.as_ref().is_some_and(|cold| !cold.tail.is_empty())
    }

    /// Takes any that is in memory, whatever is on disk: what is at hand, then the head, then the
    /// tail.
    pub(super) fn pop_own(&mut self, blocks: Option<&mut Blocks>) -> Option<Item> {
        if self.hot_len() == 0
            && let Some(blocks) = blocks
        {
            self.warm(OWN_MAX, blocks);
            if self.hot_len() == 0 {
                let items = self.cold.as_mut()?.take_tail_some(OWN_MAX, blocks);
                let hot = self.hot_or_new();
                items.into_iter().for_each(|item| hot.push(item));
            }
        }
        self.hot.as_mut()?.pop()
    }

    /// Brings URLs into the order in which they would come out; by arrival they are.
    #[cfg(test)]
    pub(super) fn sort(&self, items: &mut [Item]) {
        if self.by_quality {
            items.sort_unstable_by(goes_before);
        }
    }

    /// Whether something is being done with its chunks.
    pub(super) fn is_worked_at(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| cold.task != Task::Nothing)
    }
}

impl Item {
    /// Bytes of memory that it takes beside its own: its target with what allocators add, and its
    /// share in the URL it was found on, which eight have in common.
    fn text_bytes(&self) -> usize {
        let via = self.via.as_ref().map_or(0, |via| via.len() / 8);
        (self.target.len() + 23).max(32) / 16 * 16 + via
    }
}

/// What decides by quality: `Less` if `one` comes out before `other`.
fn goes_before(one: &Item, other: &Item) -> Ordering {
    one.written().standing().cmp(&other.written().standing())
}
