//! The line of sealed batches: its front is in memory, the rest may be on disk.
//!
//! Laws: batches leave the line in the order in which they joined it. A batch that joins goes to
//! the disk if there is no room in memory, or if others are there already, so that none overtakes
//! them.
//! Cost: O(1) for a batch, and for one that goes to the disk a copy and a checksum each way. Files
//! are removed when they were read and no checkpoint names them; they are never compacted, because
//! batches are read in the order in which they were written.

use super::collect::Batch;
use crate::cluster::Partition;
use crate::ground::disk::Disk;
use crate::ground::frame::{self, Role};
use crate::ground::segments::{Limits, Location, Segments};
use std::collections::VecDeque;

/// The kind of the frame that holds a batch.
const BATCH: u8 = 1;
/// Tests have short files, so that many are written and removed.
const LIMITS: Limits = match cfg!(test) {
    true => Limits { segment_bytes: 1_000, write_bytes: 300 },
    false => Limits { segment_bytes: 16 << 20, write_bytes: 64 << 10 },
};
/// The folder of the segments, relative to the job directory.
pub const FOLDER: &str = "state/outbox";

/// The sealed batches that are not under way.
#[derive(Debug)]
pub(super) struct Waiting {
    memory: VecDeque<Batch>,
    memory_bytes: usize,
    spilled: VecDeque<Spilled>,
    disk_bytes: u64,
    pub(super) segments: Segments,
}

/// A batch on disk. The fields are those of [`Batch`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Spilled {
    pub(super) location: Location,
    pub(super) partition: Partition,
    pub(super) first: u64,
    pub(super) after: u64,
    pub(super) records: u32,
}

impl Waiting {
    pub(super) fn new(crawl: u64) -> Self {
        Self {
            memory: VecDeque::new(),
            memory_bytes: 0,
            spilled: VecDeque::new(),
            disk_bytes: 0,
            segments: Segments::new(FOLDER, Role::Outbox, crawl, LIMITS),
        }
    }

    /// Adds a batch at the end, in memory only if there is room.
    pub(super) fn push(&mut self, batch: Batch, has_room: bool) {
        if has_room && self.spilled.is_empty() {
            self.memory_bytes += batch.payload.len();
            self.memory.push_back(batch);
            return;
        }
        let Batch { partition, first, after, records, payload } = batch;
        let location = self.segments.append(BATCH, |out| out.extend_from_slice(&payload));
        self.push_spilled(Spilled { location, partition, first, after, records });
    }

    /// Adds a batch at the end that is on disk.
    pub(super) fn push_spilled(&mut self, batch: Spilled) {
        self.disk_bytes += u64::from(batch.location.bytes);
        self.spilled.push_back(batch);
    }

    /// Takes batches from the front for a publication: those in memory that need no place above
    /// `durable`, at most `messages_max`, and of at most `bytes_max` bytes unless one is longer.
    pub(super) fn take(
        &mut self,
        durable: u64,
        messages_max: usize,
        bytes_max: usize,
    ) -> Vec<Batch> {
        let mut batches = Vec::new();
        let mut bytes = 0;
        while batches.len() < messages_max
            && let Some(batch) = self.memory.front()
            && batch.after <= durable
            && (batches.is_empty() || bytes + batch.payload.len() <= bytes_max)
        {
            bytes += batch.payload.len();
            batches.extend(self.memory.pop_front());
        }
        self.memory_bytes -= bytes;
        batches
    }

    /// Returns the memory that the first batch on disk will take, in bytes.
    pub(super) fn next_on_disk(&self) -> Option<usize> {
        self.spilled.front().map(|batch| batch.location.bytes as usize)
    }

    /// Reads the first batch on disk back into memory.
    ///
    /// # Errors
    /// The disk reports an error, or the batch is damaged. It stays in the line.
    pub(super) fn read_back(&mut self, disk: &mut dyn Disk) -> Result<(), frame::Error> {
        let Some(&Spilled { location, partition, first, after, records }) = self.spilled.front()
        else {
            return Ok(());
        };
        let payload = self.segments.read(location, BATCH, disk)?.into_boxed_slice();
        self.spilled.pop_front();
        self.segments.release(location);
        self.disk_bytes -= u64::from(location.bytes);
        self.memory_bytes += payload.len();
        self.memory.push_back(Batch { partition, first, after, records, payload });
        Ok(())
    }

    /// Returns the length of the batches in memory, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Returns the length of the batches on disk, in bytes.
    pub(super) fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    /// Returns the batches in memory, in order.
    pub(super) fn in_memory(&self) -> impl ExactSizeIterator<Item = &Batch> {
        self.memory.iter()
    }

    /// Returns the batches on disk, in order.
    pub(super) fn on_disk(&self) -> impl ExactSizeIterator<Item = &Spilled> {
        self.spilled.iter()
    }
}
