//! Queues: which URLs wait at each server, in memory and on disk.
//!
//! A URL is a payload of opaque bytes with a priority and a number in the order of arrival. What
//! does not fit into memory is written to an append log in chunks of some kilobytes, each of one
//! queue, and read back by jobs before a visit needs it.
//!
//! ```text
//! entry    a URL in its queue: 16 bytes that sort
//! band     classes of quality
//! records  payloads in memory
//! queue    one queue: near, far, chunks
//! chunk    URLs as bytes on disk
//! evict    what goes to the disk when memory is full
//! read     jobs: reading back, sweeping segments
//! snapshot what a checkpoint keeps, copied before it changes
//! ```
//!
//! Laws (held to a naive model in `tests.rs`): no URL is lost or doubled, whatever fails. By
//! arrival the order is exact. By quality it is exact in memory, and by band on disk: nothing comes
//! out before a URL of a better band. Memory keeps to its bound as long as one URL a queue does.
//! Cost: a queue of one URL takes 48 bytes and its payload; no call looks at all queues.

mod band;
mod chunk;
mod entry;
mod evict;
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
use queue::Queue;
use read::Reader;
pub use read::{QueuesDone, QueuesJob};
use records::Records;
use snapshot::{Restoring, Snapshot};
use std::collections::VecDeque;

/// Number of a queue, dense from 0.
pub type QueueId = u32;

/// The folder of all segments.
pub(super) const FOLDER: &str = "state/frontier";
/// A segment is closed when it is so long; in tests, soon.
const LIMITS: Limits = if cfg!(test) {
    Limits { segment_bytes: 3_000, write_bytes: 500 }
} else {
    Limits { segment_bytes: 32 << 20, write_bytes: 256 << 10 }
};

/// What an operator sets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// In which order URLs come out.
    pub order: Order,
    /// Bytes of memory that URLs may take.
    pub memory_bytes: usize,
    /// The crawl whose files they are; `None`: all stay in memory.
    pub crawl: Option<u64>,
    /// Whether bytes that come from the disk are a payload.
    pub is_payload: fn(&[u8]) -> bool,
}

/// All queues.
#[derive(Debug)]
pub struct Queues {
    settings: Settings,
    queues: Table<Queue>,
    store: Store,
    /// Bytes of memory that queues take beside records.
    list_bytes: usize,
    /// URLs in all queues.
    urls: usize,
    /// URLs queued so far.
    arrivals: u64,
    evictor: Evictor,
    snapshot: Option<Box<Snapshot>>,
    restoring: Option<Box<Restoring>>,
    /// Queues of which something changed that their server's rank depends on, but for those that a
    /// call named.
    changed: VecDeque<QueueId>,
}

/// Where the URLs of all queues are.
#[derive(Debug)]
struct Store {
    order: Order,
    /// In memory.
    records: Records,
    unpacker: Unpacker,
    /// `None`: nothing goes to the disk.
    disk: Option<Box<OnDisk>>,
}

/// What is on disk, and on its way to it and from there.
#[derive(Debug)]
struct OnDisk {
    segments: Segments,
    packer: Packer,
    reader: Reader,
}

impl Queues {
    /// No queues.
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

    /// One more queue, empty; its number is the count before.
    pub fn add_queue(&mut self) {
        self.queues.push(Queue::new());
    }

    /// Queues there are.
    pub fn count(&self) -> usize {
        self.queues.len()
    }

    /// URLs in all queues.
    pub fn urls(&self) -> usize {
        self.urls
    }

    /// URLs in a queue, in memory and on disk.
    pub fn len(&self, id: QueueId) -> usize {
        self.at(id).len()
    }

    /// URLs in a queue; whether the next one is in memory; and, by quality, the sum of the
    /// qualities of its next URLs in memory, as many as count, in millionths.
    pub fn waiting(&self, id: QueueId) -> (usize, bool, u64) {
        let (queue, order) = (self.at(id), self.store.order);
        (queue.len(), queue.is_at_hand(order), queue.best_sum(order))
    }

    /// Prefetches a queue.
    pub fn prefetch(&self, id: QueueId) {
        std::hint::black_box(self.at(id).counted);
    }

    /// Prefetches the next payload of a queue, which is in the cache, and the base of payloads.
    pub fn prefetch_more(&self, id: QueueId) {
        let queue = self.at(id);
        let next = queue.next().map_or(records::NONE, Entry::record);
        [queue.base, next].into_iter().for_each(|record| self.store.records.prefetch(record));
    }

    /// Whether a queue's next URL is in memory.
    pub fn is_at_hand(&self, id: QueueId) -> bool {
        self.at(id).is_at_hand(self.store.order)
    }

    /// Qualities of a queue's best URLs in memory that count, in millionths, computed from nothing.
    pub fn best_qualities(&self, id: QueueId) -> Vec<u64> {
        let order = self.store.order;
        let mut entries: Vec<Entry> = self.at(id).entries().collect();
        entries.sort_unstable_by(|one, other| other.cmp(one));
        let best = entries.iter().take(self.counted(id));
        best.map(|entry| entry.key(order).quality.millionths()).collect()
    }

    /// Whether a URL in memory goes before one with this key.
    pub fn has_better(&self, id: QueueId, than: Key) -> bool {
        let than = Entry::new(self.store.order, than, records::NONE);
        self.at(id).next().is_some_and(|next| next > than) && self.is_at_hand(id)
    }

    /// The key of a queue's next URL, if that is in memory.
    pub fn next_key(&self, id: QueueId) -> Option<Key> {
        let next = self.at(id).next().filter(|_| self.is_at_hand(id));
        next.map(|entry| entry.key(self.store.order))
    }

    /// How many of a queue's next URLs count: as [`Queues::set_counted`] set, but no more than
    /// memory has room for.
    pub fn counted(&self, id: QueueId) -> usize {
        self.at(id).counted as usize
    }

    /// Bytes of memory that URLs take.
    pub fn memory_bytes(&self) -> usize {
        self.store.records.bytes() + self.list_bytes + self.evictor.bytes()
    }

    /// Bytes of all segments on disk, and of the chunks in them that are needed.
    pub fn disk_bytes(&self) -> (u64, u64) {
        self.store.disk.as_ref().map_or((0, 0), |disk| disk.segments.bytes())
    }

    /// Queues a URL behind all others, or by its quality; returns its number in the order of
    /// arrival.
    pub fn push(&mut self, id: QueueId, is_first: bool, quality: Quality, payload: &[u8]) -> u64 {
        self.arrivals += 1;
        let key = Key { is_first, quality, arrival: self.arrivals };
        self.put(id, key, payload, Queue::push);
        self.limit_far(id);
        self.make_room();
        key.arrival
    }

    /// Puts a URL back to where [`Queues::pop`] took it from.
    pub fn put_back(&mut self, id: QueueId, key: Key, payload: &[u8]) {
        self.put(id, key, payload, Queue::put_back);
    }

    /// Takes the next URL of a queue and appends its payload to `out`; `None` if there is none, or
    /// if it is still on disk.
    pub fn pop(&mut self, id: QueueId, out: &mut Vec<u8>) -> Option<Key> {
        if self.is_at_hand(id) { self.take(id, out, Queue::pop) } else { None }
    }

    /// Takes any URL of a queue that is in memory: for one that is to be emptied.
    pub fn pop_any(&mut self, id: QueueId, out: &mut Vec<u8>) -> Option<Key> {
        self.take(id, out, Queue::pop_any)
    }

    /// Sets how many of a queue's next URLs count: as many as the next visit may take, or as make
    /// the rank of its server. So many are kept in memory, if there is room.
    pub fn set_counted(&mut self, id: QueueId, counted: usize) {
        let counted = counted.min(self.evictor.kept());
        if self.counted(id) != counted {
            self.change(id, |queue, store| queue.set_counted(store.order, counted));
        }
    }

    /// A queue, not named in a call, whose length, next URLs or whether they are in memory changed.
    pub fn next_changed(&mut self) -> Option<QueueId> {
        self.changed.pop_front()
    }

    /// Brings what waits to be written to the disk: all, or if it is enough for an append.
    ///
    /// # Errors
    /// The disk's: nothing is lost, and this may be called again.
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

    /// Changes a queue: a snapshot keeps what it was, its bytes are counted, and it is listed with
    /// those that could go to the disk, and those that need something from there.
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
    /// Stores a URL of a queue.
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
