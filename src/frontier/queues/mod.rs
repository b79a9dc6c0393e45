//! Queues: the URLs that wait at each server, in memory and on disk.
//!
//! There is one queue for each server. A URL waits in it as a *payload* (bytes that this module
//! does not interpret) with a *key*: its quality, its arrival number, and whether it goes first.
//! When memory is full, URLs are packed into *chunks* of a few kilobytes, each with URLs of one
//! queue, and the chunks are appended to a log on disk. Jobs read them back before a visit needs
//! them.
//!
//! ```text
//! entry    a URL in its queue: 16 bytes that sort in the queue's order
//! band     classes of quality, by which chunks are ordered
//! records  payloads in memory; each queue has a base, of which similar payloads share bytes
//! shared   the bytes that two payloads have in common
//! queue    one queue: its next URLs, its other URLs in memory, its chunks
//! chunk    the encoding of a chunk, and the reference to it
//! evict    moves URLs to disk when memory is full
//! find     finds a URL without taking it
//! read     jobs that read chunks back, and sweep sparse segments (append what is needed again)
//! snapshot writes the queues to a checkpoint while they change
//! ```
//!
//! Laws (tested against a naive model in `tests.rs`): no URL is lost or duplicated, whatever fails.
//! In the order of arrival, URLs come out in exactly that order. In the order of quality, the order
//! is exact among URLs in memory, and no URL comes out before a URL on disk of a better band.
//! Memory stays below its bound as long as one URL of each queue fits into it.
//! Cost: a queue of one URL takes 48 bytes and its payload; no call looks at all queues.

mod band;
mod chunk;
mod entry;
mod evict;
mod find;
mod queue;
mod read;
mod records;
mod shared;
mod snapshot;
#[cfg(test)]
pub(super) mod tests;

use crate::ground::disk::{self, Disk};
use crate::ground::frame::Role;
use crate::ground::quality::Quality;
use crate::ground::segments::{Limits, Segments};
use crate::ground::table::Table;
use chunk::{Packer, Unpacker};
use entry::Entry;
pub use entry::{Key, Order};
use evict::Evictor;
pub use find::{Found, Search};
use queue::Queue;
use read::Reader;
pub use read::{QueuesDone, QueuesJob};
use records::Records;
use snapshot::{Restoring, Snapshot};
use std::collections::VecDeque;

/// The number of a queue. Queues are numbered from 0 without gaps.
pub type QueueId = u32;

/// The folder of the segment files, relative to the job directory.
pub(super) const FOLDER: &str = "state/frontier";
/// The limits of the log: the length of a segment, and how many bytes are appended at once. Both
/// are small in tests so that segments are soon closed and swept.
const LIMITS: Limits = if cfg!(test) {
    Limits { segment_bytes: 3_000, write_bytes: 500 }
} else {
    Limits { segment_bytes: 32 << 20, write_bytes: 256 << 10 }
};

/// The settings of the queues.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The order in which the URLs of a queue come out.
    pub order: Order,
    /// The memory that URLs may take, in bytes.
    pub memory_bytes: usize,
    /// The identifier of the crawl, which its files carry. If it is `None`, all URLs stay in
    /// memory.
    pub crawl: Option<u64>,
    /// A function that returns whether bytes that were read from disk are a valid payload.
    pub is_payload: fn(&[u8]) -> bool,
}

/// The queues of all servers. See the head of this file.
#[derive(Debug)]
pub struct Queues {
    settings: Settings,
    queues: Table<Queue>,
    store: Store,
    /// The memory that the queues take, without that of the payloads, in bytes.
    list_bytes: usize,
    /// The number of URLs in all queues.
    urls: usize,
    /// The number of URLs queued so far, which is the arrival number of the last one.
    arrivals: u64,
    evictor: Evictor,
    snapshot: Option<Box<Snapshot>>,
    restoring: Option<Box<Restoring>>,
    /// The queues that changed in a way that can change the rank of their server, other than by a
    /// call for that queue.
    changed: VecDeque<QueueId>,
}

/// The storage that all queues share, in memory and on disk.
#[derive(Debug)]
struct Store {
    order: Order,
    /// The payloads in memory.
    records: Records,
    unpacker: Unpacker,
    /// The log on disk, or `None` if all URLs stay in memory.
    disk: Option<Box<OnDisk>>,
}

/// The log on disk, and the state of packing chunks for it and of reading them back.
#[derive(Debug)]
struct OnDisk {
    segments: Segments,
    packer: Packer,
    reader: Reader,
}

impl Queues {
    /// Creates the storage, without any queue.
    pub fn new(settings: Settings) -> Self {
        let on_disk = |crawl| {
            let segments = Segments::new(FOLDER, Role::Segment, crawl, LIMITS);
            Box::new(OnDisk { segments, packer: Packer::default(), reader: Reader::default() })
        };
        let (order, disk) = (settings.order, settings.crawl.map(on_disk));
        Self {
            store: Store { order, records: Records::new(), unpacker: Unpacker::default(), disk },
            settings,
            queues: Table::default(),
            list_bytes: 0,
            urls: 0,
            arrivals: 0,
            evictor: Evictor::new(),
            snapshot: None,
            restoring: None,
            changed: VecDeque::new(),
        }
    }

    /// Adds an empty queue. Its number is the count of queues before the call.
    pub fn add_queue(&mut self) {
        self.queues.push(Queue::new());
    }

    /// Returns the number of queues.
    pub fn count(&self) -> usize {
        self.queues.len()
    }

    /// Returns the number of URLs in all queues.
    pub fn urls(&self) -> usize {
        self.urls
    }

    /// Returns the number of URLs in a queue, in memory and on disk.
    pub fn len(&self, id: QueueId) -> usize {
        self.at(id).len()
    }

    /// Returns three facts about a queue: the number of its URLs, whether the next one is in
    /// memory, and the sum of the qualities of its next [`Queues::counted`] URLs in memory, in
    /// millionths. The sum is 0 in the order of arrival.
    pub fn waiting(&self, id: QueueId) -> (usize, bool, u64) {
        let (queue, order) = (self.at(id), self.store.order);
        (queue.len(), queue.is_at_hand(order), queue.best_sum(order))
    }

    /// Prefetches a queue into the CPU cache, ahead of a call that needs it.
    pub fn prefetch(&self, id: QueueId) {
        std::hint::black_box(self.at(id).counted);
    }

    /// Prefetches two payloads into the CPU cache: that of the queue's next URL, and the queue's
    /// base, with which the former may share bytes. The queue itself should be in the cache
    /// already.
    pub fn prefetch_more(&self, id: QueueId) {
        let queue = self.at(id);
        let next = queue.next().map_or(records::NONE, Entry::record);
        [queue.base, next].into_iter().for_each(|record| self.store.records.prefetch(record));
    }

    /// Returns whether a queue's next URL is in memory, so that [`Queues::pop`] can take it.
    pub fn is_at_hand(&self, id: QueueId) -> bool {
        self.at(id).is_at_hand(self.store.order)
    }

    /// Returns the qualities of a queue's best [`Queues::counted`] URLs in memory, in millionths.
    /// It sorts all of the queue's URLs in memory and relies on no stored order.
    pub fn best_qualities(&self, id: QueueId) -> Vec<u64> {
        let order = self.store.order;
        let mut entries: Vec<Entry> = self.at(id).entries().collect();
        entries.sort_unstable_by(|one, other| other.cmp(one));
        let best = entries.iter().take(self.counted(id));
        best.map(|entry| entry.key(order).quality.millionths()).collect()
    }

    /// Returns whether the queue's next URL is in memory and goes before a URL with the key `than`.
    pub fn has_better(&self, id: QueueId, than: Key) -> bool {
        let than = Entry::new(self.store.order, than, records::NONE);
        self.at(id).next().is_some_and(|next| next > than) && self.is_at_hand(id)
    }

    /// Returns the key of a queue's next URL if that URL is in memory.
    pub fn next_key(&self, id: QueueId) -> Option<Key> {
        let next = self.at(id).next().filter(|_| self.is_at_hand(id));
        next.map(|entry| entry.key(self.store.order))
    }

    /// Returns a number set by [`Queues::set_counted`], which is capped while memory is short. It
    /// is how many of the queue's next URLs matter: those that the next visit may take, or on which
    /// the rank of the server depends.
    pub fn counted(&self, id: QueueId) -> usize {
        self.at(id).counted as usize
    }

    /// Returns the memory that URLs and their lists take, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.store.records.bytes() + self.list_bytes + self.evictor.bytes()
    }

    /// Returns the total length of all segments and that of the chunks that are still needed, in
    /// bytes.
    pub fn disk_bytes(&self) -> (u64, u64) {
        self.store.disk.as_ref().map_or((0, 0), |disk| disk.segments.bytes())
    }

    /// Returns the number of URLs that were ever queued, which is the arrival number of the last.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Adds a URL to a queue and returns its arrival number. In the order of arrival the URL goes
    /// behind all others, in the order of quality it goes where its quality says. With `is_first`
    /// it goes before all URLs that lack that flag. Moves URLs to disk if memory is full.
    pub fn push(&mut self, id: QueueId, is_first: bool, quality: Quality, payload: &[u8]) -> u64 {
        self.arrivals += 1;
        let key = Key { is_first, quality, arrival: self.arrivals };
        self.put(id, key, payload, Queue::push);
        self.limit_far(id);
        self.make_room();
        key.arrival
    }

    /// Puts a URL that [`Queues::pop`] returned back into its queue, at its former place.
    pub fn put_back(&mut self, id: QueueId, key: Key, payload: &[u8]) {
        self.put(id, key, payload, Queue::put_back);
    }

    /// Takes the next URL of a queue: appends its payload to `out` and returns its key. Returns
    /// `None` if the queue is empty, or if its next URL is still on disk.
    pub fn pop(&mut self, id: QueueId, out: &mut Vec<u8>) -> Option<Key> {
        if self.is_at_hand(id) { self.take(id, out, Queue::pop) } else { None }
    }

    /// Takes any URL of a queue that is in memory, in no particular order, to empty the queue.
    /// Otherwise it is like [`Queues::pop`].
    pub fn pop_any(&mut self, id: QueueId, out: &mut Vec<u8>) -> Option<Key> {
        self.take(id, out, Queue::pop_any)
    }

    /// Sets how many of a queue's next URLs matter: those that the next visit may take, or on which
    /// the rank of the server depends. That many are kept in memory. While memory is short the
    /// number is capped.
    pub fn set_counted(&mut self, id: QueueId, counted: usize) {
        let counted = counted.min(self.evictor.kept());
        if self.counted(id) != counted {
            self.change(id, |queue, store| queue.set_counted(store.order, counted));
        }
    }

    /// Returns the next queue that changed other than by a call for that queue: its length, its
    /// next URLs, or whether they are in memory. Returns `None` when each was returned.
    pub fn next_changed(&mut self) -> Option<QueueId> {
        self.changed.pop_front()
    }

    /// Writes buffered chunks to the disk: all of them, or only what is enough for a full append.
    ///
    /// # Errors
    /// The disk reports an error. Nothing is lost, and the call can be repeated.
    pub fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.store.disk.as_mut().map_or(Ok(()), |on_disk| on_disk.segments.write(all, disk))
    }

    fn at(&self, id: QueueId) -> &Queue {
        &self.queues[id as usize]
    }

    fn put(&mut self, id: QueueId, key: Key, payload: &[u8], how: fn(&mut Queue, Order, Entry)) {
        self.urls += 1;
        self.change(id, |queue, store| store.put(queue, key, payload, how));
    }

    fn take(
        &mut self,
        id: QueueId,
        out: &mut Vec<u8>,
        how: fn(&mut Queue, Order) -> Option<Entry>,
    ) -> Option<Key> {
        let key = self.change(id, |queue, Store { order, records, .. }| {
            let entry = how(queue, *order)?;
            records.read(entry.record(), out);
            records.free(entry.record());
            if queue.in_memory() == 0 {
                records.free(std::mem::replace(&mut queue.base, records::NONE));
            }
            Some(entry.key(*order))
        });
        self.urls -= usize::from(key.is_some());
        key
    }

    /// Changes a queue by calling `what`. Every change of a queue goes through this function. First
    /// it copies the queue to the snapshot that is being written. After the change it updates the
    /// bytes that the queue takes, and lists the queue for eviction and for reads if needed.
    fn change<T>(&mut self, id: QueueId, what: impl FnOnce(&mut Queue, &mut Store) -> T) -> T {
        self.copy_before_change(id);
        let queue = &mut self.queues[id as usize];
        let before = queue.bytes();
        let result = what(queue, &mut self.store);
        self.list_bytes = self.list_bytes + queue.bytes() - before;
        if let Some(on_disk) = &mut self.store.disk {
            self.evictor.note(id, queue);
            on_disk.reader.note(id, queue, self.store.order, self.evictor.kept());
        }
        result
    }
}

impl Store {
    /// Stores the payload of a URL, and adds the URL's entry to the queue by calling `how`.
    fn put(
        &mut self,
        queue: &mut Queue,
        key: Key,
        payload: &[u8],
        how: impl FnOnce(&mut Queue, Order, Entry),
    ) {
        let record = self.records.put(payload, &mut queue.base);
        how(queue, self.order, Entry::new(self.order, key, record));
    }
}
