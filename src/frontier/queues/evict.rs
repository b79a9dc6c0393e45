//! Eviction: moves URLs to disk when memory is full.
//!
//! A queue has *near* URLs, the next ones in order, and *far* URLs, the others in memory. It may
//! keep a number of near URLs; all other URLs in memory are *evictable*. The queue with the most
//! evictable URLs is evicted first: they are packed into *chunks*, which are appended to the log on
//! disk. Queues are listed by *class*, the binary logarithm of their number of evictable URLs.
//!
//! When no queue has enough evictable URLs for a chunk, the number that each may keep is halved,
//! down to one. It is doubled again when memory is half empty. A queue with a great many far URLs
//! is evicted at once, so that no call has to copy more than that.
//!
//! Law: memory is below its bound, or no queue has more URLs in memory than it may keep.
//! Cost: no call looks at all queues. After the number to keep has changed, each new URL lists a
//! few queues again, until all are listed.

use super::band::Band;
use super::chunk::ChunkRef;
use super::queue::Queue;
use super::{OnDisk, QueueId, Queues, Store};
use crate::ground::codec::Put;
use crate::ground::segments::Segments;

/// The kind of the frames in the log that hold a chunk.
pub(super) const CHUNK: u8 = 20;
/// The packed length at which a chunk is finished, in bytes.
const CHUNK_BYTES: usize = if cfg!(test) { 150 } else { 4 << 10 };
/// The number of near URLs that a queue may keep when other queues have URLs evicted. If memory is
/// too short for that, the number is halved.
const KEPT_MAX: usize = if cfg!(test) { 8 } else { 64 };
/// The least number of evictable URLs for which a chunk is written. If queues may keep fewer URLs
/// than this, that number is the least instead.
const CHUNK_MIN: usize = 4;
/// The number of far URLs above which a queue is evicted at once, even if memory is not full.
const FAR_MAX: usize = if cfg!(test) { 60 } else { 4_096 };
/// The number of queues that are listed again with each new URL, after the number that each may
/// keep has changed.
const HAND_STEP: usize = 4;
const CLASSES: usize = 16;

/// The queues that can be evicted, by class, and the number of URLs that each may keep.
#[derive(Debug)]
pub(super) struct Evictor {
    /// The queues of each class. A queue may have changed since it was listed, so its class is
    /// checked when it is taken from the list. It is in each list at most once.
    pub(super) classes: [Vec<QueueId>; CLASSES],
    /// The number of near URLs that each queue may keep.
    kept: usize,
    /// The next queue to list again after `kept` changed. All queues before it are listed by the
    /// present `kept`.
    pub(super) hand: usize,
}

impl Evictor {
    pub(super) fn new() -> Self {
        Self { classes: [const { Vec::new() }; CLASSES], kept: KEPT_MAX, hand: usize::MAX }
    }

    /// Returns the number of near URLs that a queue may keep. It is `usize::MAX`, which is no
    /// limit, while memory is not so short that the number was halved.
    pub(super) fn kept(&self) -> usize {
        if self.kept == KEPT_MAX { usize::MAX } else { self.kept }
    }

    /// Returns the memory that the lists take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.classes.iter().map(|ids| ids.capacity() * size_of::<QueueId>()).sum()
    }

    /// Lists a queue by the class of its number of evictable URLs, unless it is in that list
    /// already or has none.
    pub(super) fn note(&mut self, id: QueueId, queue: &mut Queue) {
        let Some(class) = queue.evictable(self.kept).checked_ilog2() else { return };
        let class = (class as usize).min(CLASSES - 1);
        if queue.listed >> class & 1 == 0 {
            queue.listed |= 1 << class;
            self.classes[class].push(id);
        }
    }

    /// Returns the lowest class whose queues have enough evictable URLs for a chunk.
    fn least(&self) -> usize {
        CHUNK_MIN.min(self.kept).ilog2() as usize
    }

    fn next(&mut self) -> Option<(QueueId, usize)> {
        let least = self.least();
        let mut classes = self.classes.iter_mut().enumerate().skip(least).rev();
        classes.find_map(|(class, ids)| Some((ids.pop()?, class)))
    }
}

impl Queues {
    /// Evicts queues until memory is below its bound, but only a few of them. It is called after
    /// each URL that is added. Does nothing if there is no disk. If memory is half empty, doubles
    /// the number of URLs that each queue may keep.
    pub(super) fn make_room(&mut self) {
        if self.store.disk.is_none() {
            return;
        }
        self.move_hand(HAND_STEP);
        // Only one URL was added since the last call, so a few evictions suffice.
        for _ in 0..4 {
            if self.memory_bytes() <= self.settings.memory_bytes || !self.evict_one() {
                break;
            }
        }
        let is_half_empty = self.memory_bytes() < self.settings.memory_bytes / 2;
        if is_half_empty && self.evictor.kept < KEPT_MAX && self.evictor.hand >= self.queues.len() {
            self.evictor.kept *= 2;
            #[cfg(test)]
            super::tests::seen::count(|seen| seen.doublings += 1);
            self.evictor.hand = 0;
        }
    }

    /// Evicts queues until memory is below its bound or nothing is evictable, however long it
    /// takes. It is called once after a snapshot was restored.
    pub(super) fn make_all_room(&mut self) {
        while self.store.disk.is_some() && self.memory_bytes() > self.settings.memory_bytes {
            self.move_hand(self.queues.len());
            if !self.evict_one() {
                break;
            }
        }
    }

    /// Evicts the queue with the most evictable URLs. If no queue has enough of them, halves the
    /// number of URLs that each queue may keep. Returns `false` if neither is possible.
    fn evict_one(&mut self) -> bool {
        let Some((id, class)) = self.evictor.next() else {
            let is_listed = self.evictor.hand >= self.queues.len();
            if is_listed && self.evictor.kept > 1 {
                self.evictor.kept /= 2;
                #[cfg(test)]
                super::tests::seen::count(|seen| seen.halvings += 1);
                self.evictor.hand = 0;
            }
            return !is_listed || self.evictor.kept > 1;
        };
        let queue = &mut self.queues[id as usize];
        queue.listed &= !(1 << class);
        if queue.evictable(self.evictor.kept) >> class == 0 {
            self.evictor.note(id, queue);
        } else {
            self.evict(id);
        }
        true
    }

    /// Lists the next `steps` queues by the number of URLs that each may keep now. Does nothing
    /// once all queues are listed.
    fn move_hand(&mut self, steps: usize) {
        let (kept, until) = (self.evictor.kept, self.evictor.hand.saturating_add(steps));
        while self.evictor.hand < until.min(self.queues.len()) {
            let id = self.evictor.hand as QueueId;
            let queue = &mut self.queues[id as usize];
            self.evictor.note(id, queue);
            if queue.counted as usize > kept || queue.counted as usize == kept / 2 {
                self.changed.push_back(id);
            }
            self.evictor.hand += 1;
        }
    }

    /// Evicts a queue if it has more far URLs than one call should have to copy.
    pub(super) fn limit_far(&mut self, id: QueueId) {
        if self.store.disk.is_some() && self.at(id).far_len() > FAR_MAX {
            self.evict(id);
        }
    }

    fn evict(&mut self, id: QueueId) {
        let kept = self.evictor.kept;
        self.change(id, |queue, Store { order, records, disk, .. }| {
            let OnDisk { segments, packer, .. } =
                disk.as_deref_mut().expect("somebody asked for room on it");
            let (entries, is_before) = queue.evict(*order, kept);
            #[cfg(test)]
            super::tests::seen::count(|seen| {
                (seen.evictions, seen.before) =
                    (seen.evictions + 1, seen.before + u32::from(is_before));
            });
            let mut chunks: Vec<(ChunkRef, usize)> = Vec::new();
            let mut band = 0;
            for (number, entry) in entries.iter().enumerate() {
                if packer.urls() == 0 {
                    band = entry.band(*order);
                }
                packer.put(entry.key(*order), |out| records.read(entry.record(), out));
                records.free(entry.record());
                if packer.is_full(CHUNK_BYTES) || number + 1 == entries.len() {
                    let urls = packer.urls();
                    let chunk = append(segments, band, |out| {
                        out.put_varint(u64::from(id));
                        packer.finish(out);
                    });
                    chunks.push((chunk, urls));
                }
            }
            if is_before {
                chunks.reverse();
            }
            chunks.into_iter().for_each(|(chunk, urls)| queue.add_chunk(chunk, urls, is_before));
        });
        self.changed.push_back(id);
    }
}

/// Appends a chunk to the log and returns its reference. `write` appends the payload of the frame.
/// The segment counts the chunk with the rounded length that the reference has, since exactly that
/// length is released later.
pub(super) fn append(
    segments: &mut Segments,
    band: Band,
    write: impl FnOnce(&mut Vec<u8>),
) -> ChunkRef {
    let place = segments.append(CHUNK, write);
    let chunk = ChunkRef::new(place, band);
    segments.release(place);
    segments.retain(chunk.place());
    chunk
}
