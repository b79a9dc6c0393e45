//! Finds a URL in a queue without taking it, for questions of people.
//!
//! The URLs are searched in the order in which they come out: near, then the chunks on disk, then
//! far (by quality the chunks come last). The search stops at a limit of work.
//!
//! Law: nothing changes, and the place of a URL that was found is between its bounds.
//! Cost: a copy of each payload in memory, and a read for each chunk.

use super::band::Band;
use super::chunk::{ChunkRef, Unpacker};
use super::entry::{Entry, Order};
use super::queue::Queue;
use super::read::{Read, damage, open};
use super::{Key, OnDisk, QueueId, Queues};
use crate::ground::disk::Disk;
use crate::ground::frame::{self, Flaw};

/// The fixed cost of looking at one URL in memory, in bytes, in addition to its payload.
const URL_BYTES: usize = 64;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// The URL waits in the queue.
    Found(Found),
    /// The URL is not in the queue.
    Nowhere,
    /// The URL is not among the next `searched` URLs; the others were not searched.
    Unsure {
        /// The number of URLs that were searched.
        searched: usize,
    },
}

/// A URL that was found in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The key of the URL.
    pub key: Key,
    /// The payload of the URL.
    pub payload: Vec<u8>,
    /// The fewest and the most URLs of the queue that go before it.
    pub before: (usize, usize),
    /// Whether the URL is on disk.
    pub is_on_disk: bool,
}

/// A search in progress: the test, the work that is left, and the number of URLs searched.
struct Walk<'a> {
    is_it: &'a mut dyn FnMut(&[u8]) -> bool,
    left: usize,
    searched: usize,
}

impl Walk<'_> {
    /// Tests one payload. Returns whether it is that of the URL.
    fn test(&mut self, payload: &[u8]) -> bool {
        self.left = self.left.saturating_sub(payload.len() + URL_BYTES);
        self.searched += 1;
        (self.is_it)(payload)
    }
}

impl Queues {
    /// Searches a queue for the URL for whose payload `is_it` returns true. It does about
    /// `bytes_max` bytes of work, and at most one chunk more. Also returns the work that was done.
    ///
    /// # Errors
    /// The disk reports an error, or a chunk is damaged.
    pub fn find(
        &self,
        id: QueueId,
        is_it: &mut dyn FnMut(&[u8]) -> bool,
        bytes_max: usize,
        disk: &mut dyn Disk,
    ) -> Result<(Search, usize), frame::Error> {
        let mut walk = Walk { is_it, left: bytes_max, searched: 0 };
        let found = self.walk(id, &mut walk, disk)?;
        let search = match found {
            Some(found) => Search::Found(found),
            None if walk.searched >= self.len(id) => Search::Nowhere,
            None => Search::Unsure { searched: walk.searched },
        };
        Ok((search, bytes_max - walk.left))
    }

    fn walk(
        &self,
        id: QueueId,
        walk: &mut Walk<'_>,
        disk: &mut dyn Disk,
    ) -> Result<Option<Found>, frame::Error> {
        let (queue, order) = (self.at(id), self.store.order);
        let near = queue.entries().take(queue.near_len());
        let near: Vec<Entry> = near.collect();
        if let Some(found) = self.walk_entries(queue, near.into_iter().rev(), walk) {
            return Ok(Some(found));
        }
        if order == Order::Arrival
            && let Some(found) = self.walk_chunks(id, queue, walk, disk)?
        {
            return Ok(Some(found));
        }
        let far = queue.entries().skip(queue.near_len());
        if let Some(found) = self.walk_entries(queue, far, walk) {
            return Ok(Some(found));
        }
        match order {
            Order::Arrival => Ok(None),
            Order::Quality => self.walk_chunks(id, queue, walk, disk),
        }
    }

    fn walk_entries(
        &self,
        queue: &Queue,
        entries: impl Iterator<Item = Entry>,
        walk: &mut Walk<'_>,
    ) -> Option<Found> {
        let mut payload = Vec::new();
        for entry in entries {
            if walk.left == 0 {
                break;
            }
            payload.clear();
            self.store.records.read(entry.record(), &mut payload);
            if walk.test(&payload) {
                let key = entry.key(self.store.order);
                let before = self.before(queue, entry);
                return Some(Found { key, payload, before, is_on_disk: false });
            }
        }
        None
    }

    /// Returns the fewest and the most URLs that go before one in memory.
    fn before(&self, queue: &Queue, entry: Entry) -> (usize, usize) {
        let near = queue.near_len();
        let better = queue.entries().filter(|other| *other > entry).count();
        let on_disk = queue.on_disk();
        match self.store.order {
            // All chunks come between near and far.
            Order::Arrival if better >= near => (better + on_disk, better + on_disk),
            Order::Arrival => (better, better),
            Order::Quality => (better, better + on_disk),
        }
    }

    fn walk_chunks(
        &self,
        id: QueueId,
        queue: &Queue,
        walk: &mut Walk<'_>,
        disk: &mut dyn Disk,
    ) -> Result<Option<Found>, frame::Error> {
        let Some(on_disk) = self.store.disk.as_deref() else { return Ok(None) };
        let mut unpacker = Unpacker::default();
        // The bands of the URLs that were passed.
        let mut passed: Vec<Band> = Vec::new();
        for chunk in queue.chunks().iter().rev() {
            if walk.left == 0 {
                break;
            }
            let read = read_chunk(on_disk, id, *chunk, disk)?;
            let place = chunk.place();
            let flawed = |flaw| damage(place.segment, place.offset.into(), flaw);
            open(&read, &mut unpacker).map_err(flawed)?;
            if !unpacker.are_right(self.arrivals, self.settings.is_payload) {
                return Err(flawed(Flaw::Senseless).into());
            }
            walk.left = walk.left.saturating_sub(read.bytes());
            for (key, range) in unpacker.left_of(*chunk) {
                if walk.left == 0 {
                    return Ok(None);
                }
                let payload = unpacker.payload(range);
                if walk.test(payload) {
                    let before = self.before_in_chunk(queue, *key, &passed);
                    let (key, payload) = (*key, payload.to_vec());
                    return Ok(Some(Found { key, payload, before, is_on_disk: true }));
                }
                passed.push(key.band(self.store.order));
            }
        }
        Ok(None)
    }

    /// Returns the fewest and the most URLs that go before one on disk. The chunks before it have
    /// URLs of the bands `passed`.
    fn before_in_chunk(&self, queue: &Queue, key: Key, passed: &[Band]) -> (usize, usize) {
        let (order, band) = (self.store.order, key.band(self.store.order));
        if order == Order::Arrival {
            let before = queue.near_len() + passed.len();
            return (before, before);
        }
        let in_memory = || queue.entries().map(|entry| entry.band(order));
        let better = in_memory().chain(passed.iter().copied()).filter(|other| *other > band);
        let alike = in_memory().filter(|other| *other >= band);
        (better.count(), alike.count() + queue.on_disk().saturating_sub(1))
    }
}

fn read_chunk(
    on_disk: &OnDisk,
    id: QueueId,
    chunk: ChunkRef,
    disk: &mut dyn Disk,
) -> Result<Read, frame::Error> {
    let mut read = Read::new(id, chunk, on_disk.waiting(chunk));
    if read.bytes() == 0 {
        read.run(disk)?;
    }
    Ok(read)
}
