//! An append-only file of frames: records are collected in a frame, frames in a tail.
//!
//! ```text
//! RECORDS (1)  number of records u32 | their keys, u64 each | their bytes: of each a length u32
//!              and so many bytes (in a file of keys there are none)
//! ```
//!
//! Complete frames are written by jobs. The tail of the file is handed to the job and comes back;
//! meanwhile new frames are collected here.
//!
//! Law: an added record is in memory or on disk, complete and once, whatever fails.
//! Cost: two copies of each record and a checksum; one write for 256 KiB.

use crate::ground::codec::{Put, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Frame, Role};
use crate::ground::tail::Tail;

/// The kind of a frame that contains records.
pub(super) const RECORDS: u8 = 1;
/// The size at which a frame is closed, in bytes.
const FRAME_BYTES: usize = 64 << 10;
/// The total size of complete frames at which they are written, in bytes.
const WRITE_BYTES: usize = 256 << 10;

/// The end of a file of records, with what is not written yet.
#[derive(Debug)]
pub(super) struct Log {
    name: String,
    tail: End,
    /// Complete frames that follow those of the tail.
    frames: Vec<u8>,
    /// The keys of the frame that is being filled; the bytes of its records are collected
    /// separately.
    keys: Vec<u8>,
    bodies: Vec<u8>,
}

/// The state of the tail: the end of the file and the frames to be appended to it.
#[derive(Debug)]
enum End {
    Here(Tail),
    /// The tail is with a job. The fields are the length of the file once the tail is written, and
    /// the number of bytes that the job has.
    Out {
        len: u64,
        bytes: usize,
    },
}

impl Log {
    /// Creates the log for a new file.
    pub(super) fn new(name: String, role: Role, crawl: u64) -> Self {
        let mut log = Self::resume(name, 0);
        frame::push_opening(role, crawl, &mut log.frames);
        log
    }

    /// Continues an existing file of `len` bytes.
    pub(super) fn resume(name: String, len: u64) -> Self {
        let tail = End::Here(Tail::new(name.clone(), len));
        Self { name, tail, frames: Vec::new(), keys: Vec::new(), bodies: Vec::new() }
    }

    /// Adds a record that is only a key, for a file of keys.
    pub(super) fn add_key(&mut self, key: u64) {
        self.keys.put_u64(key);
        if self.keys.len() + self.bodies.len() >= FRAME_BYTES {
            self.close_frame();
        }
    }

    /// Adds a record with a key; the function `write` appends the bytes of the record.
    pub(super) fn add(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
        push_body(&mut self.bodies, write);
        self.add_key(key);
    }

    /// Returns whether enough complete frames wait to be written.
    pub(super) fn is_due(&self) -> bool {
        let frames_bytes = match &self.tail {
            End::Here(tail) => tail.pending.len() + self.frames.len(),
            End::Out { .. } => 0,
        };
        frames_bytes >= WRITE_BYTES
    }

    /// Returns the tail with all complete frames, for a job to write. Returns `None` if there are
    /// no complete frames, or a job has the tail already.
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

    /// Takes the tail back from a job. The bytes that the job could not write are still in it.
    pub(super) fn take_back(&mut self, tail: Tail) {
        assert!(matches!(self.tail, End::Out { .. }), "it was handed out");
        self.tail = End::Here(tail);
    }

    /// Completes the frame that is being filled and writes all frames, except those that a job has.
    pub(super) fn write(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.close_frame();
        self.gather().map_or(Ok(()), |tail| tail.flush(disk, 2 * WRITE_BYTES))
    }

    /// Returns the name of the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the length of the file once all complete frames are written, in bytes.
    pub(super) fn len(&self) -> u64 {
        let len = match &self.tail {
            End::Here(tail) => tail.len(),
            End::Out { len, .. } => *len,
        };
        len + self.frames.len() as u64
    }

    /// Returns the number of bytes that are not written yet, here or with a job.
    pub(super) fn waiting_bytes(&self) -> usize {
        let bytes = match &self.tail {
            End::Here(tail) => tail.pending.len(),
            End::Out { bytes, .. } => *bytes,
        };
        self.keys.len() + self.bodies.len() + self.frames.len() + bytes
    }

    /// Completes the frame that is being filled, unless it is empty.
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

    /// Adds the complete frames to the tail and returns it; `None` if a job has it.
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

/// Writes the frames of a tail to its file; called in a job.
pub(super) fn flush(tail: &mut Tail, disk: &mut dyn Disk) -> Result<(), disk::Error> {
    tail.flush(disk, 2 * WRITE_BYTES)
}

/// Appends what the function `write` appends, preceded by its length.
pub(super) fn push_body(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let head = out.len();
    out.put_u32(0);
    let start = out.len();
    write(out);
    let len = out.len().checked_sub(start).and_then(|len| u32::try_from(len).ok());
    let len = len.expect("bytes are appended, and capped");
    out[head..start].copy_from_slice(&len.to_le_bytes());
}

/// Splits a length off the start of `body`. Returns the length and the rest; `None` if `body` is
/// too short.
pub(super) fn split_body(body: &[u8]) -> Option<(usize, &[u8])> {
    let (head, rest) = body.split_first_chunk()?;
    Some((u32::from_le_bytes(*head) as usize, rest))
}

/// Splits a frame into the keys of its records and the bytes of its records. Returns `None` if the
/// frame is invalid.
pub(super) fn take_records<'a>(frame: &Frame<'a>) -> Option<(&'a [[u8; 8]], &'a [u8])> {
    if frame.kind != RECORDS {
        return None;
    }
    let mut take = Take::new(frame.payload);
    let count = take.u32().ok()? as usize;
    let keys = take.raw(count.checked_mul(size_of::<u64>())?).ok()?;
    Some((keys.as_chunks().0, take.rest()))
}
