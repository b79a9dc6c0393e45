//! The frontier's job: chunks read back from the disk, of several servers at once, in the order in
//! which they lie there.

use super::super::log;
use super::super::place::Place;
use super::super::server::ServerId;
use crate::disk::{self, Disk};
use crate::frame;
use std::ops::Range;

/// Read these.
#[derive(Debug)]
pub struct FrontierJob {
    /// A handle of the job's own.
    pub disk: Box<dyn Disk>,
    pub(in super::super) work: Work,
}

/// What came of a [`FrontierJob`].
#[derive(Debug)]
pub struct FrontierDone {
    pub(in super::super) work: Work,
    pub(super) result: Result<(), disk::Error>,
    /// For the next job: its files are open.
    pub(super) disk: Box<dyn Disk>,
}

/// What is read.
#[derive(Debug)]
pub(in super::super) enum Work {
    /// Chunks to come into the memory of their queues.
    Back(Reads),
    /// Chunks of which each queue is to have fewer.
    Merge(Reads),
    /// Part of a segment of which little is alive, from this offset on.
    Sweep { segment: u32, offset: u64, bytes: Vec<u8> },
}

/// Chunks to be read, and their bytes in one piece of memory.
#[derive(Debug, Default)]
pub(in super::super) struct Reads {
    pub(super) reads: Vec<Read>,
    pub(super) bytes: Vec<u8>,
}

/// One chunk to be read.
#[derive(Debug)]
pub(in super::super) struct Read {
    pub(super) id: ServerId,
    pub(super) place: Place,
    /// Where its frame is, once it is read; what follows it may be there, too.
    pub(super) range: Range<usize>,
}

impl FrontierJob {
    /// Reads; stops at the first failure.
    pub fn run(mut self) -> FrontierDone {
        let result = match &mut self.work {
            Work::Back(reads) | Work::Merge(reads) => reads.run(self.disk.as_mut()),
            Work::Sweep { segment, offset, bytes } => {
                fill(self.disk.as_mut(), &log::name_of(*segment), *offset, 0, 0, bytes)
            }
        };
        FrontierDone { work: self.work, result, disk: self.disk }
    }
}

impl Reads {
    /// Reads what isn't there, in the order in which it lies on the disk.
    fn run(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        let mut missing: Vec<&mut Read> =
            self.reads.iter_mut().filter(|read| read.range.is_empty()).collect();
        let room = missing.iter().map(|read| read.place.bytes()).sum();
        self.bytes.reserve(room);
        missing.sort_unstable_by_key(|read| (read.place.segment(), read.place.offset()));
        for reads in missing.chunk_by_mut(|one, next| one.place.segment() == next.place.segment()) {
            let name = log::name_of(reads[0].place.segment());
            reads.iter_mut().try_for_each(|read| read.run(&name, &mut self.bytes, disk))?;
        }
        Ok(())
    }
}

impl Read {
    fn run(
        &mut self,
        name: &str,
        bytes: &mut Vec<u8>,
        disk: &mut dyn Disk,
    ) -> Result<(), disk::Error> {
        let (offset, start) = (self.place.offset(), bytes.len());
        bytes.resize(start + self.place.bytes(), 0);
        fill(disk, name, offset, start, 0, bytes)?;
        // A place doesn't tell all of a length that is out of the common.
        let have = bytes.len() - start;
        if let Some(missing) = frame_bytes(&bytes[start..]).filter(|bytes| *bytes > have) {
            bytes.resize(start + missing, 0);
            fill(disk, name, offset, start, have, bytes)?;
        }
        self.range = start..bytes.len();
        Ok(())
    }
}

/// Bytes of the frame that begins here, by what it says itself.
pub(super) fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    Some(frame::OVERHEAD_BYTES + len.min(frame::PAYLOAD_BYTES_MAX))
}

/// Fills `bytes` from `start` on, of which there are so many; they are cut if the file ends before.
fn fill(
    disk: &mut dyn Disk,
    name: &str,
    offset: u64,
    start: usize,
    mut have: usize,
    bytes: &mut Vec<u8>,
) -> Result<(), disk::Error> {
    while start + have < bytes.len() {
        match disk.read_at(name, offset + have as u64, &mut bytes[start + have..])? {
            0 => break,
            more => have += more,
        }
    }
    bytes.truncate(start + have);
    Ok(())
}
