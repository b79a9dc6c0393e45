//! A file of frames that only grows: records gather in a frame, frames in a tail.
//!
//! Law: what was added is in memory or on disk, whole and once, whatever fails. Cost: two copies of
//! each record and a checksum; the disk is met once in 256 KiB.

use crate::disk::{self, Disk};
use crate::frame::{self, Role};
use crate::tail::Tail;

/// Kind of the frames that hold records.
pub(super) const RECORDS: u8 = 1;
/// A frame is closed when it holds so much.
const FRAME_BYTES: usize = 64 << 10;
/// What waits is written when it is so much.
const WRITE_BYTES: usize = 256 << 10;

/// The end of one file of records.
#[derive(Debug)]
pub(super) struct Log {
    tail: Tail,
    /// Payload of the frame that is being filled.
    open: Vec<u8>,
}

impl Log {
    /// A file that comes into being.
    pub(super) fn new(name: String, role: Role, crawl: u64) -> Self {
        let mut tail = Tail::new(name, 0);
        frame::push_opening(role, crawl, &mut tail.pending);
        Self { tail, open: Vec::new() }
    }

    /// A file that holds `len` bytes.
    pub(super) fn going_on(name: String, len: u64) -> Self {
        Self { tail: Tail::new(name, len), open: Vec::new() }
    }

    /// Adds the record that `write` appends.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.open);
        if self.open.len() >= FRAME_BYTES {
            self.close_frame();
        }
    }

    /// Whether much waits to be written; with `all`, whether anything does. Then the last frame is
    /// closed.
    pub(super) fn is_due(&mut self, all: bool) -> bool {
        if all {
            self.close_frame();
        }
        self.tail.pending.len() >= if all { 1 } else { WRITE_BYTES }
    }

    /// Brings the frames that wait to the disk.
    pub(super) fn write(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.tail.flush(disk, 2 * WRITE_BYTES)
    }

    /// The file's name.
    pub(super) fn name(&self) -> &str {
        self.tail.name()
    }

    /// Length of the file when all is written that is in closed frames.
    pub(super) fn len(&self) -> u64 {
        self.tail.len()
    }

    /// Bytes that wait in memory.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.open.len() + self.tail.pending.len()
    }

    fn close_frame(&mut self) {
        if !self.open.is_empty() {
            frame::push(RECORDS, &self.open, &mut self.tail.pending);
            self.open.clear();
        }
    }
}
