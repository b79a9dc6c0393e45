//! The frontier's job: chunks read back from the disk, of several servers at once, in the order in
//! which they lie there.

use super::super::log;
use super::super::place::Place;
use super::super::server::ServerId;
use crate::disk::{self, Disk};
use crate::frame;
use std::fmt;

/// Read these.
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
}

/// What is read.
#[derive(Debug)]
pub(in super::super) enum Work {
    /// Chunks to come into the memory of their queues.
    Back(Vec<Read>),
    /// Chunks of which each queue is to have fewer.
    Merge(Vec<Read>),
    /// Part of a segment of which little is alive, from this offset on.
    Sweep { segment: u32, offset: u64, bytes: Vec<u8> },
}

/// One chunk to be read.
#[derive(Debug)]
pub(in super::super) struct Read {
    pub(super) id: ServerId,
    pub(super) place: Place,
    /// Its frame, once it is read; what follows it may be there, too.
    pub(super) bytes: Vec<u8>,
}

impl fmt::Debug for FrontierJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontierJob").field("work", &self.work).finish_non_exhaustive()
    }
}

impl FrontierJob {
    /// Reads; stops at the first failure.
    pub fn run(mut self) -> FrontierDone {
        let result = match &mut self.work {
            Work::Back(reads) | Work::Merge(reads) => {
                let mut as_they_lie: Vec<&mut Read> = reads.iter_mut().collect();
                as_they_lie.sort_by_key(|read| (read.place.segment(), read.place.offset()));
                as_they_lie.into_iter().try_for_each(|read| read.run(self.disk.as_mut()))
            }
            Work::Sweep { segment, offset, bytes } => {
                fill(self.disk.as_mut(), *segment, *offset, 0, bytes)
            }
        };
        FrontierDone { work: self.work, result }
    }
}

impl Read {
    fn run(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        if !self.bytes.is_empty() {
            return Ok(()); // it was still in memory
        }
        let (segment, offset) = (self.place.segment(), self.place.offset());
        self.bytes.resize(self.place.bytes(), 0);
        fill(disk, segment, offset, 0, &mut self.bytes)?;
        // A place doesn't tell all of a length that is out of the common.
        let have = self.bytes.len();
        if let Some(missing) = frame_bytes(&self.bytes).filter(|bytes| *bytes > have) {
            self.bytes.resize(missing, 0);
            fill(disk, segment, offset, have, &mut self.bytes)?;
        }
        Ok(())
    }
}

/// Bytes of the frame that begins here, by what it says itself.
pub(super) fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    Some(frame::OVERHEAD_BYTES + len.min(frame::PAYLOAD_BYTES_MAX))
}

/// Fills `bytes` from `have` on; they are cut if the file ends before.
fn fill(
    disk: &mut dyn Disk,
    segment: u32,
    offset: u64,
    mut have: usize,
    bytes: &mut Vec<u8>,
) -> Result<(), disk::Error> {
    let name = log::name_of(segment);
    while have < bytes.len() {
        match disk.read_at(&name, offset + have as u64, &mut bytes[have..])? {
            0 => break,
            more => have += more,
        }
    }
    bytes.truncate(have);
    Ok(())
}
