//! What goes to the disk when memory is full.
//!
//! The queue that has most URLs beyond those it keeps near is cut: these become chunks. Queues are
//! listed by classes of that number, a power of two each. When none has enough for a chunk, all
//! keep half as many, one at least; twice as many again when memory is half empty. A queue that has
//! a great deal in memory is cut at once, so that no call has to copy more than that.
//!
//! Law: memory is below its bound, or no queue has more than it keeps. Cost: no call looks at all
//! queues; a hand passes over some of them with each URL that comes, after what they keep changed.

use super::band::Band;
use super::chunk::ChunkRef;
use super::queue::Queue;
use super::{OnDisk, QueueId, Queues, Store};
use crate::ground::codec::Put;
use crate::ground::segments::Segments;

/// Kind of the frame that is a chunk.
pub(super) const CHUNK: u8 = 20;
/// Unpacked bytes of a chunk.
const CHUNK_BYTES: usize = if cfg!(test) { 150 } else { 4 << 10 };
/// URLs that a queue keeps near at most while others go to the disk.
const KEPT_MAX: usize = if cfg!(test) { 8 } else { 64 };
/// URLs that are worth a chunk.
const CHUNK_MIN: usize = 4;
/// URLs beyond near that one queue has in memory at most.
const FAR_MAX: usize = if cfg!(test) { 60 } else { 4_096 };
/// Queues that the hand passes over with each URL.
const HAND_STEP: usize = 4;
const CLASSES: usize = 16;

/// Who is cut next, and to how much.
#[derive(Debug)]
pub(super) struct Evictor {
    /// Queues by the logarithm of the URLs that could go to the disk. A queue may have changed
    /// since; it is in each list once at most.
    pub(super) classes: [Vec<QueueId>; CLASSES],
    kept: usize,
    /// Queues before this one are listed by what is kept now.
    pub(super) hand: usize,
}

impl Evictor {
    pub(super) fn new() -> Self {
        Self { classes: [const { Vec::new() }; CLASSES], kept: KEPT_MAX, hand: usize::MAX }
    }

    /// How many URLs a queue keeps near, at most.
    pub(super) fn kept(&self) -> usize {
        if self.kept == KEPT_MAX { usize::MAX } else { self.kept }
    }

    /// Bytes of memory that the lists take.
    pub(super) fn bytes(&self) -> usize {
        self.classes.iter().map(|ids| ids.capacity() * size_of::<QueueId>()).sum()
    }

    /// Lists a queue by what could go to the disk.
    pub(super) fn note(&mut self, id: QueueId, queue: &mut Queue) {
        let Some(class) = queue.evictable(self.kept).checked_ilog2() else { return };
        let class = (class as usize).min(CLASSES - 1);
        if queue.listed >> class & 1 == 0 {
            queue.listed |= 1 << class;
            self.classes[class].push(id);
        }
    }

    /// The least class that is worth a chunk.
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
    /// Brings memory below its bound, if there is a disk and anything that could go there.
    pub(super) fn make_room(&mut self) {
        if self.store.disk.is_none() {
            return;
        }
        self.move_hand(HAND_STEP);
        // One URL came: a few cuts make up for it.
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

    /// As [`Queues::make_room`], whatever it takes: for a snapshot that was read back.
    pub(super) fn make_all_room(&mut self) {
        while self.store.disk.is_some() && self.memory_bytes() > self.settings.memory_bytes {
            self.move_hand(self.queues.len());
            if !self.evict_one() {
                break;
            }
        }
    }

    /// Cuts the queue that has most beyond what it keeps, or lets all keep less. `false` if there's
    /// nothing left to do.
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

    /// Lists some more queues by what they keep now.
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

    /// Cuts a queue that has more in memory than one call may copy.
    pub(super) fn limit_far(&mut self, id: QueueId) {
        if self.store.disk.is_some() && self.at(id).far_len() > FAR_MAX {
            self.evict(id);
        }
    }

    fn evict(&mut self, id: QueueId) {
        let kept = self.evictor.kept;
        self.change(id, |queue, Store { order, records, disk, .. }| {
            let on_disk = disk.as_deref_mut().expect("somebody asked for room on it");
            let (entries, is_before) = queue.evict(*order, kept);
            #[cfg(test)]
            super::tests::seen::count(|seen| {
                (seen.evictions, seen.before) =
                    (seen.evictions + 1, seen.before + u32::from(is_before));
            });
            let mut chunks: Vec<(ChunkRef, usize)> = Vec::new();
            let mut band = 0;
            for (number, entry) in entries.iter().enumerate() {
                if on_disk.packer.urls() == 0 {
                    band = entry.band(*order);
                }
                on_disk.packer.put(entry.key(*order), |out| records.read(entry.record(), out));
                records.free(entry.record());
                if on_disk.packer.is_full(CHUNK_BYTES) || number + 1 == entries.len() {
                    let OnDisk { segments, packer, .. } = on_disk;
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

/// Appends a chunk, which counts for as many bytes as its reference says.
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
