//! A file of frames that only grows: records gather in a frame, frames in a tail.
//!
//! ```text
//! RECORDS (1)  number of records u32 | their keys, u64 each | their bytes: of each a length u32
//!              and so many bytes (in a file of keys there are none)
//! ```
//!
//! Whole frames are brought to the disk by jobs: the file's end goes with the job and comes back,
//! and meanwhile what is added gathers here.
//!
//! Law: what was added is in memory or on disk, whole and once, whatever fails. Cost: two copies of
//! each record and a checksum; the disk is met once in 256 KiB.

use crate::ground::codec::{Put, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Frame, Role};
use crate::ground::tail::Tail;

/// Kind of the frames that hold records.
pub(super) const RECORDS: u8 = 1;
/// A frame is closed when it holds so much.
const FRAME_BYTES: usize = 64 << 10;
/// What waits is written when it is so much.
const WRITE_BYTES: usize = 256 << 10;

/// The end of one file of records.
#[derive(Debug)]
pub(super) struct Log {
    name: String,
    tail: End,
    /// Whole frames, behind those of the tail.
    frames: Vec<u8>,
    /// Of the frame that is being filled.
    keys: Vec<u8>,
    bodies: Vec<u8>,
}

/// Where the file's end is.
#[derive(Debug)]
enum End {
    Here(Tail),
    /// With a job: how long the file will be, and how many bytes of that the job has.
    Out {
        len: u64,
        bytes: usize,
    },
}

impl Log {
    /// A file that comes into being.
    pub(super) fn new(name: String, role: Role, crawl: u64) -> Self {
        let mut log = Self::going_on(name, 0);
        frame::push_opening(role, crawl, &mut log.frames);
        log
    }

    /// A file that holds `len` bytes.
    pub(super) fn going_on(name: String, len: u64) -> Self {
        let tail = End::Here(Tail::new(name.clone(), len));
        Self { name, tail, frames: Vec::new(), keys: Vec::new(), bodies: Vec::new() }
    }

    /// Adds a record without bytes, to a file of keys.
    pub(super) fn add_key(&mut self, key: u64) {
        self.keys.put_u64(key);
        if self.keys.len() + self.bodies.len() >= FRAME_BYTES {
            self.close_frame();
        }
    }

    /// Adds a record, whose bytes `write` appends.
    pub(super) fn add(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
        push_body(&mut self.bodies, write);
        self.add_key(key);
    }

    /// Whether so much waits that it is to be written.
    pub(super) fn is_due(&self) -> bool {
        let frames_bytes = match &self.tail {
            End::Here(tail) => tail.pending.len() + self.frames.len(),
            End::Out { .. } => 0,
        };
        frames_bytes >= WRITE_BYTES
    }

    /// The file's end with all whole frames, for a job to be written; `None` if a job has it.
    pub(super) fn hand_out(&mut self) -> Option<Tail> {
        let (len, bytes) = match self.gather()? {
            Tail { pending, .. } if pending.is_empty() => return None,
            tail => (tail.len(), tail.pending.len()),
        };
        match std::mem::replace(&mut self.tail, End::Out { len, bytes }) {
            End::Here(tail) => Some(tail),
            End::Out { .. } => unreachable!("it was here just now"),
        }
    }

    /// A job gives the file's end back; what it couldn't write waits on.
    pub(super) fn take_back(&mut self, tail: Tail) {
        assert!(matches!(self.tail, End::Out { .. }), "it was handed out");
        self.tail = End::Here(tail);
    }

    /// Closes the last frame and brings all that waits to the disk, but for what a job has.
    pub(super) fn write(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.close_frame();
        self.gather().map_or(Ok(()), |tail| tail.flush(disk, 2 * WRITE_BYTES))
    }

    /// The file's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Length of the file when all is written that is in closed frames.
    pub(super) fn len(&self) -> u64 {
        let len = match &self.tail {
            End::Here(tail) => tail.len(),
            End::Out { len, .. } => *len,
        };
        len + self.frames.len() as u64
    }

    /// Bytes that wait in memory, here or with a job.
    pub(super) fn waiting_bytes(&self) -> usize {
        let bytes = match &self.tail {
            End::Here(tail) => tail.pending.len(),
            End::Out { bytes, .. } => *bytes,
        };
        self.keys.len() + self.bodies.len() + self.frames.len() + bytes
    }

    /// Closes the frame that is being filled, if there is anything in it.
    pub(super) fn close_frame(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        let count = u32::try_from(self.keys.len() / size_of::<u64>()).expect("a frame is capped");
        frame::push_with(RECORDS, &mut self.frames, |out| {
            out.reserve(size_of::<u32>() + self.keys.len() + self.bodies.len());
            out.put_u32(count);
            out.extend_from_slice(&self.keys);
            out.extend_from_slice(&self.bodies);
        });
        self.keys.clear();
        self.bodies.clear();
    }

    /// The file's end with all whole frames, if it is here.
    fn gather(&mut self) -> Option<&mut Tail> {
        let End::Here(tail) = &mut self.tail else { return None };
        if tail.pending.is_empty() {
            std::mem::swap(&mut tail.pending, &mut self.frames);
        } else {
            tail.pending.append(&mut self.frames);
        }
        Some(tail)
    }
}

/// Brings the end of a file to the disk, in a job.
pub(super) fn flush(tail: &mut Tail, disk: &mut dyn Disk) -> Result<(), disk::Error> {
    tail.flush(disk, 2 * WRITE_BYTES)
}

/// Appends the bytes that `write` appends, behind their length.
pub(super) fn push_body(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let head = out.len();
    out.put_u32(0);
    let start = out.len();
    write(out);
    let len = out.len().checked_sub(start).and_then(|len| u32::try_from(len).ok());
    let len = len.expect("bytes are appended, and capped");
    out[head..start].copy_from_slice(&len.to_le_bytes());
}

/// The length at the front of `body`, and what is behind it.
pub(super) fn split_body(body: &[u8]) -> Option<(usize, &[u8])> {
    let (head, rest) = body.split_first_chunk()?;
    Some((u32::from_le_bytes(*head) as usize, rest))
}

/// Takes a frame apart: the keys of its records, and their bytes. `None` if it makes no sense.
pub(super) fn take_records<'a>(frame: &Frame<'a>) -> Option<(&'a [[u8; 8]], &'a [u8])> {
    if frame.kind != RECORDS {
        return None;
    }
    let mut take = Take::new(frame.payload);
    let count = take.u32().ok()? as usize;
    let keys = take.raw(count.checked_mul(size_of::<u64>())?).ok()?;
    Some((keys.as_chunks().0, take.rest()))
}
