//! Queues of bytes on disk that share one log: each gives back what was put into it, in order.
//!
//! What is put into a queue is collected in memory up to some kilobytes, then appended as one frame
//! to the log (`ground::segments`). The more queues share a log, the shorter are their frames, so
//! that all of them together take no more than 4 MiB of memory beside the frame that each of them
//! gives back.
//!
//! ```text
//! file   FOLDER/segment-N: frames of records
//! record domain u64 | length varint | bytes
//! mark   entries varint | frames varint; of each segment u32, offset u32, length u32
//!        | records of the frame that is given back | records that are in no frame yet
//! ```
//!
//! Laws: an entry that was put is given back once, in order. Nothing is lost if the disk is full.
//! Cost: a copy in and out; memory of 12 bytes for a frame on disk.

use crate::ground::codec::{Put, Short, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Damage, Flaw, Role};
use crate::ground::segments::{Limits, Location, Segments};
use std::collections::VecDeque;

/// Where the mark comes from, for messages.
const MARK: &str = "state/checkpoint";
/// The kind of a frame of records.
const RECORDS: u8 = 1;
/// The memory that entries take which are in no frame yet, in bytes.
const TAILS_BYTES: usize = if cfg!(test) { 2_000 } else { 4 << 20 };
/// The bounds of the length at which records become a frame, in bytes.
const FRAME_BYTES: (usize, usize) = if cfg!(test) { (50, 200) } else { (4 << 10, 16 << 10) };
const LIMITS: Limits = if cfg!(test) {
    Limits { segment_bytes: 3_000, write_bytes: 300 }
} else {
    Limits { segment_bytes: 32 << 20, write_bytes: 256 << 10 }
};

/// The log of all queues.
#[derive(Debug)]
pub struct Log {
    /// `None` if everything stays in memory.
    segments: Option<Segments>,
    /// The length at which records become a frame, in bytes.
    frame_bytes: usize,
    /// The bytes of frames that were read back.
    read_bytes: usize,
}

/// One queue.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    entries: u64,
    /// The records of the frame that is given back, and how many of its bytes were.
    head: Vec<u8>,
    taken: usize,
    frames: VecDeque<Location>,
    /// Records that are in no frame yet.
    tail: Vec<u8>,
}

impl Log {
    /// Creates the log in a folder. Its files carry the identifier of the crawl; if there is none,
    /// everything stays in memory.
    pub fn new(folder: &'static str, crawl: Option<u64>) -> Self {
        let segments = crawl.map(|crawl| Segments::new(folder, Role::Budgets, crawl, LIMITS));
        Self { segments, frame_bytes: FRAME_BYTES.1, read_bytes: 0 }
    }

    /// Returns the bytes of frames that were read back since the last call.
    pub fn take_read_bytes(&mut self) -> usize {
        std::mem::take(&mut self.read_bytes)
    }

    /// Sets the number of queues, which the length of frames depends on.
    pub fn set_queues(&mut self, queues: usize) {
        self.frame_bytes = (TAILS_BYTES / queues.max(1)).clamp(FRAME_BYTES.0, FRAME_BYTES.1);
    }

    /// Writes buffered frames to the disk: all of them, or only what is enough for an append.
    ///
    /// # Errors
    /// The disk reports an error. Nothing is lost, and the call may be repeated.
    pub fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.segments.as_mut().map_or(Ok(()), |log| log.write(all, disk))
    }

    /// Writes all buffered frames. Returns the files that a checkpoint must name, with their
    /// lengths.
    ///
    /// # Errors
    /// The disk reports an error.
    pub fn mark(&mut self, disk: &mut dyn Disk) -> Result<Vec<(String, u64)>, disk::Error> {
        self.segments.as_mut().map_or(Ok(Vec::new()), |log| log.mark(disk))
    }

    /// Called when the checkpoint with the last [`Self::mark`] is durable. Returns the names of
    /// files that are no longer needed.
    pub fn on_durable(&mut self) -> Vec<String> {
        self.segments.as_mut().map_or(Vec::new(), |log| log.on_durable(None))
    }

    /// Restores the segments. `files` are those that the checkpoint of an earlier run names, with
    /// their valid lengths.
    ///
    /// # Errors
    /// Those of [`Segments::restore_files`].
    pub fn restore_files(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        self.segments.as_mut().map_or(Ok(()), |log| log.restore_files(files, disk).map(drop))
    }

    /// Returns the length of the files on disk, in bytes.
    pub fn bytes(&self) -> u64 {
        self.segments.as_ref().map_or(0, |log| log.bytes().0)
    }
}

impl Queue {
    /// Returns the number of entries.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Appends an entry: bytes that belong to a domain.
    pub fn put(&mut self, domain: u64, bytes: &[u8], log: &mut Log) {
        self.entries += 1;
        self.tail.put_u64(domain);
        self.tail.put_bytes(bytes);
        if let Some(segments) = log.segments.as_mut().filter(|_| self.tail.len() >= log.frame_bytes)
        {
            let tail = std::mem::take(&mut self.tail);
            self.frames.push_back(segments.append(RECORDS, |out| out.extend_from_slice(&tail)));
        }
    }

    /// Takes the first entry: appends its bytes to `out`, and returns its domain. Returns `None` if
    /// there is none.
    ///
    /// # Errors
    /// The disk reports an error, or a frame is damaged: nothing is lost. Or the number of entries
    /// in the checkpoint is wrong: those in no frame are lost.
    pub fn take(
        &mut self,
        out: &mut Vec<u8>,
        log: &mut Log,
        disk: &mut dyn Disk,
    ) -> Result<Option<u64>, frame::Error> {
        if self.taken == self.head.len() && !self.read_head(log, disk)? {
            return Ok(None);
        }
        let mut take = Take::new(&self.head[self.taken..]);
        let before = take.rest().len();
        let (domain, bytes) = record(&mut take).expect("they were counted");
        out.extend_from_slice(bytes);
        self.taken += before - take.rest().len();
        self.entries -= 1;
        Ok(Some(domain))
    }

    /// Makes the records of the next frame the head. Returns whether there is an entry.
    fn read_head(&mut self, log: &mut Log, disk: &mut dyn Disk) -> Result<bool, frame::Error> {
        if self.entries == 0 {
            (self.head, self.taken) = (Vec::new(), 0);
            return Ok(false);
        }
        let (Some(place), Some(segments)) = (self.frames.front().copied(), &mut log.segments)
        else {
            (self.head, self.taken) = (std::mem::take(&mut self.tail), 0);
            return match count(&self.head) {
                Ok(entries) if entries == self.entries => Ok(true),
                // A checkpoint said otherwise.
                _ => {
                    self.head.clear();
                    let (name, flaw) = (MARK.to_owned(), Flaw::Senseless);
                    Err(Damage { name, offset: 0, flaw }.into())
                }
            };
        };
        let head = segments.read(place, RECORDS, disk)?;
        if !count(&head).is_ok_and(|entries| (1..=self.entries).contains(&entries)) {
            let (name, offset) = (segments.name_of(place.segment), place.offset.into());
            return Err(Damage { name, offset, flaw: Flaw::Senseless }.into());
        }
        self.frames.pop_front();
        segments.release(place);
        log.read_bytes += head.len();
        (self.head, self.taken) = (head, 0);
        Ok(true)
    }

    /// Appends what a checkpoint must keep.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_varint(self.entries);
        out.put_varint(self.frames.len() as u64);
        for Location { segment, offset, bytes } in &self.frames {
            [segment, offset, bytes].into_iter().for_each(|value| out.put_u32(*value));
        }
        out.put_bytes(&self.head[self.taken..]);
        out.put_bytes(&self.tail);
    }

    /// Restores the queue that [`Self::encode`] saved.
    ///
    /// # Errors
    /// The bytes make no sense.
    pub fn decode(take: &mut Take<'_>, log: &mut Log) -> Result<Self, Flaw> {
        let (entries, frames) = (take.varint()?, take.number::<usize>()?);
        let mut own = Self { entries, ..Self::default() };
        for _ in 0..frames {
            let (segment, offset, bytes) = (take.u32()?, take.u32()?, take.u32()?);
            let place = Location { segment, offset, bytes };
            let segments = log.segments.as_mut().ok_or(Flaw::Senseless)?;
            if !segments.retain(place) {
                return Err(Flaw::Senseless);
            }
            own.frames.push_back(place);
        }
        (own.head, own.tail) = (take.bytes()?.to_vec(), take.bytes()?.to_vec());
        let in_memory = count(&own.head)? + count(&own.tail)?;
        let is_all = own.frames.is_empty() && in_memory == entries;
        let is_part = in_memory + (frames as u64) <= entries && frames > 0;
        (is_all || is_part).then_some(own).ok_or(Flaw::Senseless)
    }
}

fn record<'a>(take: &mut Take<'a>) -> Result<(u64, &'a [u8]), Short> {
    Ok((take.u64()?, take.bytes()?))
}

/// Returns the number of records.
fn count(records: &[u8]) -> Result<u64, Short> {
    let (mut take, mut entries) = (Take::new(records), 0);
    while !take.is_empty() {
        record(&mut take)?;
        entries += 1;
    }
    Ok(entries)
}
