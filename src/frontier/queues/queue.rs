//! The queue of one server: its next URLs in order, the others in memory, and its chunks on disk.
//!
//! ```text
//! near     the next URLs, sorted
//! far      others in memory, a heap: by quality none is better than the worst of near
//! chunks   on disk, each in order; by arrival all of them between near and far
//! ```
//!
//! Laws: by arrival URLs come out in the order of their arrival. By quality the best in memory
//! comes out, unless a chunk has a better band: then that chunk is read first. Far is empty
//! whenever near is, unless chunks come between them. Cost: a short queue is 16 bytes a URL and no
//! more memory than near; a URL costs a move of few entries, or O(log n) in far.

use super::band::Band;
use super::chunk::ChunkRef;
use super::entry::{Entry, Order};
use super::records::{NONE, RecordId};
use smallvec::SmallVec;
use std::collections::BinaryHeap;

/// Near holds at least so many URLs while there are others in memory.
const NEAR_MIN: usize = 16;

/// Pending URLs of one server.
#[derive(Debug)]
pub(super) struct Queue {
    /// The last one comes first.
    near: SmallVec<[Entry; 1]>,
    more: Option<Box<More>>,
    /// What payloads that come are compared with.
    pub(super) base: RecordId,
    /// How many of the next URLs a visit may take, or make the rank of the server.
    pub(super) counted: u32,
    /// It is listed among those that wait for a read, or one is under way.
    pub(super) is_wanted: bool,
    /// The classes of victims in which it is listed, a bit each.
    pub(super) listed: u16,
}

/// What short queues don't have.
#[derive(Debug, Default)]
struct More {
    far: BinaryHeap<Entry>,
    /// The next one last.
    chunks: Vec<ChunkRef>,
    /// URLs in chunks.
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

    /// URLs in memory and on disk.
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

    /// The next URL in memory.
    pub(super) fn next(&self) -> Option<Entry> {
        self.near.last().copied()
    }

    /// Chunks, the next one last.
    pub(super) fn chunks(&self) -> &[ChunkRef] {
        self.more.as_ref().map_or(&[], |more| &more.chunks)
    }

    /// Entries in memory: near, the next one last, then far in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let far = self.more.iter().flat_map(|more| more.far.iter());
        self.near.iter().chain(far).copied()
    }

    /// Bytes of memory that it takes beside its payloads and its own.
    pub(super) fn bytes(&self) -> usize {
        let near = if self.near.spilled() { self.near.capacity() * size_of::<Entry>() } else { 0 };
        let more = self.more.as_ref().map_or(0, |more| {
            let far = more.far.capacity() * size_of::<Entry>();
            size_of::<More>() + far + more.chunks.capacity() * size_of::<ChunkRef>()
        });
        near + more
    }

    /// The best band on disk.
    fn chunk_band(&self) -> Option<Band> {
        self.chunks().last().map(|chunk| chunk.band())
    }

    /// How many URLs can come out before a chunk has to be read.
    fn ahead(&self, order: Order) -> usize {
        match (order, self.chunk_band()) {
            (Order::Quality, Some(band)) => {
                let behind = self.near.partition_point(|entry| entry.band(order) < band);
                self.near.len() - behind
            }
            _ => self.near.len(),
        }
    }

    /// Whether the next URL is in memory.
    pub(super) fn is_at_hand(&self, order: Order) -> bool {
        let Some(next) = self.near.last() else { return false };
        match order {
            Order::Arrival => true,
            Order::Quality => self.chunk_band().is_none_or(|band| next.band(order) >= band),
        }
    }

    /// Whether a chunk should be read for the next visit, if near keeps so many URLs.
    pub(super) fn needs_read(&self, order: Order, kept: usize) -> bool {
        !self.chunks().is_empty() && self.ahead(order) < kept.min(self.counted as usize)
    }

    /// Sum of the qualities of the best in memory that count, in millionths; 0 by arrival.
    pub(super) fn best_sum(&self, order: Order) -> u64 {
        if order == Order::Arrival {
            return 0;
        }
        let best = self.near.iter().rev().take(self.counted as usize);
        best.map(|entry| entry.key(order).quality.millionths()).sum()
    }

    /// Puts a URL where its order says.
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

    /// Puts a URL back that came out of here, or of a chunk: by arrival it goes before all that
    /// wait outside near.
    pub(super) fn put_back(&mut self, order: Order, entry: Entry) {
        match order {
            Order::Arrival => self.push_near(order, entry),
            Order::Quality => self.push(order, entry),
        }
    }

    fn push_near(&mut self, order: Order, entry: Entry) {
        let place = self.near.partition_point(|other| *other < entry);
        self.near.insert(place, entry);
        // By arrival what is far comes after what is on disk.
        let between = self.has_chunks_between(order);
        let least = self.near_min();
        if self.near.len() > 4 * least && !between {
            let worse = self.pages().min(2 * least);
            self.more.get_or_insert_default().far.extend(self.near.drain(..worse));
        }
    }

    /// Takes the next URL in memory, which must be at hand.
    pub(super) fn pop(&mut self, order: Order) -> Option<Entry> {
        let next = self.near.pop();
        self.refill(order);
        next
    }

    /// Takes any URL that is in memory.
    pub(super) fn pop_any(&mut self, order: Order) -> Option<Entry> {
        let next = self.near.pop().or_else(|| self.more.as_mut()?.far.pop());
        self.refill(order);
        next
    }

    /// Sets how many of the next URLs count.
    pub(super) fn set_counted(&mut self, order: Order, counted: usize) {
        self.counted = u32::try_from(counted.max(1)).unwrap_or(u32::MAX);
        self.refill(order);
    }

    /// Whether chunks come between near and far.
    fn has_chunks_between(&self, order: Order) -> bool {
        order == Order::Arrival && !self.chunks().is_empty()
    }

    fn near_min(&self) -> usize {
        NEAR_MIN.max(self.counted as usize)
    }

    /// Brings URLs from far to near if near is short, and gives memory back that is of no use.
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

    /// URLs of near that don't go first. Those that do stay there.
    fn pages(&self) -> usize {
        self.near.partition_point(|entry| !entry.is_first())
    }

    /// URLs of near that could go to the disk if it keeps so many. While nothing is there, near
    /// keeps what the next visits take: what was read back is of use soon.
    fn beyond(&self, kept: usize) -> usize {
        let needed = if self.chunks().is_empty() { 2.max(self.counted as usize) } else { kept };
        self.near.len().saturating_sub(needed.min(kept)).min(self.pages())
    }

    /// How many URLs could go to the disk if near keeps so many.
    pub(super) fn evictable(&self, kept: usize) -> usize {
        self.beyond(kept) + self.far_len()
    }

    /// Takes what goes to the disk, the next one first, and whether it goes before the chunks.
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

    /// Lists a chunk that was written: before all others of its band if it `is_before`, else
    /// behind them.
    pub(super) fn add_chunk(&mut self, chunk: ChunkRef, urls: usize, is_before: bool) {
        let more = self.more.get_or_insert_default();
        let band = chunk.band();
        let place = more.chunks.partition_point(|other| match is_before {
            true => other.band() <= band,
            false => other.band() < band,
        });
        more.chunks.insert(place, chunk);
        let urls = u32::try_from(urls).expect("a chunk has few URLs");
        more.on_disk = more.on_disk.saturating_add(urls); // a damaged snapshot may say anything
    }

    /// Chunk `number` lies elsewhere now, or has been used up so far (`None`: wholly); so many of
    /// its URLs came out.
    pub(super) fn replace_chunk(&mut self, number: usize, by: Option<ChunkRef>, urls: usize) {
        let more = self.more.as_mut().expect("it has chunks");
        more.on_disk -= u32::try_from(urls).expect("as above");
        let old = more.chunks[number];
        match by {
            Some(chunk) if chunk.band() == old.band() => more.chunks[number] = chunk,
            Some(chunk) => {
                more.chunks.remove(number);
                // Of those of its band it is read first: its URLs came first.
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
