//! The queue of one server: its URLs in memory and the references to its chunks on disk.
//!
//! ```text
//! near     the next URLs in memory, sorted
//! far      the other URLs in memory, in a heap; by quality none is better than the worst near URL
//! chunks   packed URLs on disk, each chunk in order; by arrival all of them come after near and
//!          before far
//! ```
//!
//! Chunks are ordered by *band*, the class of quality of their next URL. *Evictable* URLs are those
//! in memory that may be moved to disk when memory is full.
//!
//! Laws: in the order of arrival, URLs come out in exactly that order. In the order of quality, the
//! best URL in memory comes out, unless a chunk has a better band: then that chunk is read first.
//! Far is empty whenever near is, unless chunks come between them.
//! Cost: a short queue takes 16 bytes a URL and has near only; adding or taking a URL moves a few
//! entries, or costs O(log n) in far.

use super::band::Band;
use super::chunk::ChunkRef;
use super::entry::{Entry, Order};
use super::records::{NONE, RecordId};
use smallvec::SmallVec;
use std::collections::BinaryHeap;

/// The number of near URLs to which URLs from far are added when near is short, unless visits need
/// more.
const NEAR_MIN: usize = 16;

/// The waiting URLs of one server. See the head of this file.
#[derive(Debug)]
pub(super) struct Queue {
    /// The near URLs, the next one last.
    near: SmallVec<[Entry; 1]>,
    more: Option<Box<More>>,
    /// The record of the payload that new payloads are compared with, to store only their
    /// differences.
    pub(super) base: RecordId,
    /// How many of the next URLs matter: those that the next visit may take, or on which the
    /// server's rank depends.
    pub(super) counted: u32,
    /// Whether the queue is listed for a read, or a read for it has begun.
    pub(super) is_wanted: bool,
    /// The eviction classes in whose lists the queue is, one bit for each class.
    pub(super) listed: u16,
}

/// The fields that short queues do not need.
#[derive(Debug, Default)]
struct More {
    far: BinaryHeap<Entry>,
    /// The chunks on disk, the next one last.
    chunks: Vec<ChunkRef>,
    /// The number of URLs in all chunks.
    on_disk: u32,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            near: SmallVec::new(),
            more: None,
            base: NONE,
            counted: 1,
            is_wanted: false,
            listed: 0,
        }
    }

    /// Returns the number of URLs in memory and on disk.
    pub(super) fn len(&self) -> usize {
        self.in_memory() + self.on_disk()
    }

    pub(super) fn in_memory(&self) -> usize {
        self.near.len() + self.far_len()
    }

    pub(super) fn on_disk(&self) -> usize {
        self.more.as_ref().map_or(0, |more| more.on_disk as usize)
    }

    pub(super) fn far_len(&self) -> usize {
        self.more.as_ref().map_or(0, |more| more.far.len())
    }

    pub(super) fn near_len(&self) -> usize {
        self.near.len()
    }

    /// Returns the next URL in memory. A chunk on disk may have a better one.
    pub(super) fn next(&self) -> Option<Entry> {
        self.near.last().copied()
    }

    /// Returns the chunks, the next one last.
    pub(super) fn chunks(&self) -> &[ChunkRef] {
        self.more.as_ref().map_or(&[], |more| &more.chunks)
    }

    /// Returns the entries in memory: first those of near, the next one last, then those of far in
    /// no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let far = self.more.iter().flat_map(|more| more.far.iter());
        self.near.iter().chain(far).copied()
    }

    /// Returns the memory that the queue has allocated, in bytes. Its payloads and the struct
    /// itself are not included.
    pub(super) fn bytes(&self) -> usize {
        let near = if self.near.spilled() { self.near.capacity() * size_of::<Entry>() } else { 0 };
        let more = self.more.as_ref().map_or(0, |more| {
            let far = more.far.capacity() * size_of::<Entry>();
            size_of::<More>() + far + more.chunks.capacity() * size_of::<ChunkRef>()
        });
        near + more
    }

    /// Returns the best band on disk, which is that of the next chunk, or `None` without chunks.
    fn chunk_band(&self) -> Option<Band> {
        self.chunks().last().map(|chunk| chunk.band())
    }

    /// Returns how many near URLs can be taken before a chunk has to be read from disk.
    fn ahead(&self, order: Order) -> usize {
        match (order, self.chunk_band()) {
            (Order::Quality, Some(band)) => {
                let behind = self.near.partition_point(|entry| entry.band(order) < band);
                self.near.len() - behind
            }
            _ => self.near.len(),
        }
    }

    /// Returns whether the next URL is in memory, so that no chunk has to be read before it.
    pub(super) fn is_at_hand(&self, order: Order) -> bool {
        let Some(next) = self.near.last() else { return false };
        match order {
            Order::Arrival => true,
            Order::Quality => self.chunk_band().is_none_or(|band| next.band(order) >= band),
        }
    }

    /// Returns whether a chunk should be read for the next visit, if the queue may keep `kept` near
    /// URLs.
    pub(super) fn needs_read(&self, order: Order, kept: usize) -> bool {
        !self.chunks().is_empty() && self.ahead(order) < kept.min(self.counted as usize)
    }

    /// Returns the sum of the qualities of the next `counted` near URLs, in millionths, or 0 in the
    /// order of arrival.
    pub(super) fn best_sum(&self, order: Order) -> u64 {
        if order == Order::Arrival {
            return 0;
        }
        let best = self.near.iter().rev().take(self.counted as usize);
        best.map(|entry| entry.key(order).quality.millionths()).sum()
    }

    /// Adds a URL to near or to far, depending on its place in the order.
    pub(super) fn push(&mut self, order: Order, entry: Entry) {
        let between = self.has_chunks_between(order);
        let is_near = entry.is_first()
            || match self.near.first() {
                Some(worst) if entry > *worst => true,
                _ => self.far_len() == 0 && self.near.len() < self.near_min() && !between,
            };
        if is_near {
            self.push_near(order, entry);
        } else {
            self.more.get_or_insert_default().far.push(entry);
        }
    }

    /// Puts back a URL that was taken from the queue, or adds one that was read from a chunk. In
    /// the order of arrival it always goes to near, since it comes before all URLs in chunks and in
    /// far.
    pub(super) fn put_back(&mut self, order: Order, entry: Entry) {
        match order {
            Order::Arrival => self.push_near(order, entry),
            Order::Quality => self.push(order, entry),
        }
    }

    fn push_near(&mut self, order: Order, entry: Entry) {
        let place = self.near.partition_point(|other| *other < entry);
        self.near.insert(place, entry);
        // In the order of arrival far comes after the chunks, so near URLs must not move there.
        let between = self.has_chunks_between(order);
        let least = self.near_min();
        if self.near.len() > 4 * least && !between {
            let worse = self.pages().min(2 * least);
            self.more.get_or_insert_default().far.extend(self.near.drain(..worse));
        }
    }

    /// Takes the next URL. [`Self::is_at_hand`] must be true, or a better one may be on disk.
    pub(super) fn pop(&mut self, order: Order) -> Option<Entry> {
        let next = self.near.pop();
        self.refill(order);
        next
    }

    /// Takes any URL that is in memory, or returns `None` if none is.
    pub(super) fn pop_any(&mut self, order: Order) -> Option<Entry> {
        let next = self.near.pop().or_else(|| self.more.as_mut()?.far.pop());
        self.refill(order);
        next
    }

    /// Sets how many of the next URLs matter: those that the next visit may take, or on which the
    /// server's rank depends.
    pub(super) fn set_counted(&mut self, order: Order, counted: usize) {
        self.counted = u32::try_from(counted.max(1)).unwrap_or(u32::MAX);
        self.refill(order);
    }

    /// Returns whether chunks come between near and far in the order.
    fn has_chunks_between(&self, order: Order) -> bool {
        order == Order::Arrival && !self.chunks().is_empty()
    }

    fn near_min(&self) -> usize {
        NEAR_MIN.max(self.counted as usize)
    }

    /// Moves URLs from far to near if near is short, and frees memory that is no longer used.
    pub(super) fn refill(&mut self, order: Order) {
        let (least, wanted) = (self.near_min(), (self.counted as usize).max(NEAR_MIN / 2));
        let between = self.has_chunks_between(order);
        if let Some(more) = &mut self.more {
            if self.near.len() < wanted && !between {
                let count = least.min(more.far.len());
                let mut best: SmallVec<[Entry; NEAR_MIN]> =
                    (0..count).filter_map(|_| more.far.pop()).collect();
                best.reverse();
                self.near.insert_from_slice(0, &best);
            }
            if more.far.is_empty() {
                more.far = BinaryHeap::new();
            }
            self.more.take_if(|more| more.far.is_empty() && more.chunks.is_empty());
        }
        if self.near.is_empty() && self.near.spilled() {
            self.near = SmallVec::new();
        }
    }

    /// Returns the number of near URLs that may be evicted: URLs that are marked to go first stay
    /// in near, so they don't count.
    fn pages(&self) -> usize {
        self.near.partition_point(|entry| !entry.is_first())
    }

    /// Returns how many near URLs are evictable if each queue may keep `kept` of them. A queue
    /// without chunks keeps only as many as the next visits take. A queue with chunks keeps `kept`,
    /// since the URLs that it has read back are needed soon.
    fn beyond(&self, kept: usize) -> usize {
        let needed = if self.chunks().is_empty() { 2.max(self.counted as usize) } else { kept };
        let beyond = self.near.len().saturating_sub(needed.min(kept));
        if beyond == 0 { 0 } else { beyond.min(self.pages()) }
    }

    /// Returns how many URLs could be moved to disk if the queue may keep `kept` near URLs.
    pub(super) fn evictable(&self, kept: usize) -> usize {
        self.beyond(kept) + self.far_len()
    }

    /// Takes the URLs to move to disk out of the queue, which may keep `kept` near URLs. Returns
    /// them in order, the next one first, and whether they go before the existing chunks. If chunks
    /// come between near and far, it takes the URLs of only one of the two, whichever has more.
    pub(super) fn evict(&mut self, order: Order, kept: usize) -> (Vec<Entry>, bool) {
        let (between, beyond) = (self.has_chunks_between(order), self.beyond(kept));
        let more = self.more.get_or_insert_default();
        let far = std::mem::take(&mut more.far);
        let is_before = between && far.len() < beyond;
        let mut entries = if is_before {
            more.far = far;
            Vec::new()
        } else {
            far.into_vec()
        };
        if is_before || !between {
            entries.extend(self.near.drain(..beyond));
            self.near.shrink_to_fit();
        }
        entries.sort_unstable_by(|one, other| other.cmp(one));
        (entries, is_before)
    }

    /// Adds a chunk with `urls` URLs that was written to disk. If `is_before`, it is read as the
    /// first of the chunks in its band, else as the last.
    pub(super) fn add_chunk(&mut self, chunk: ChunkRef, urls: usize, is_before: bool) {
        let more = self.more.get_or_insert_default();
        let band = chunk.band();
        let place = more.chunks.partition_point(|other| match is_before {
            true => other.band() <= band,
            false => other.band() < band,
        });
        more.chunks.insert(place, chunk);
        let urls = u32::try_from(urls).expect("a chunk has few URLs");
        more.on_disk = more.on_disk.saturating_add(urls); // a damaged snapshot can hold any number
    }

    /// Replaces the reference to the chunk with the index `number`, because the chunk was moved or
    /// `urls` of its URLs were taken. If `by` is `None`, all of them were taken and the reference
    /// is removed.
    pub(super) fn replace_chunk(&mut self, number: usize, by: Option<ChunkRef>, urls: usize) {
        let more = self.more.as_mut().expect("it has chunks");
        more.on_disk -= u32::try_from(urls).expect("as above");
        let old = more.chunks[number];
        match by {
            Some(chunk) if chunk.band() == old.band() => more.chunks[number] = chunk,
            Some(chunk) => {
                more.chunks.remove(number);
                // The chunk is the next of its new band to be read, since its URLs came before the
                // others.
                let place = more.chunks.partition_point(|other| other.band() <= chunk.band());
                more.chunks.insert(place, chunk);
            }
            None => {
                more.chunks.remove(number);
                if more.chunks.is_empty() {
                    more.chunks = Vec::new();
                }
            }
        }
    }
}
