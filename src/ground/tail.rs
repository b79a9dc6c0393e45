//! A file that only grows: appends are buffered in memory and written to disk in large pieces.
//!
//! Laws: [`Tail::len`] counts both written and buffered bytes, so an offset taken from it stays
//! valid. A failed append neither loses nor doubles bytes: they stay buffered, and before the next
//! try the file is truncated to the bytes known to be written. Bytes put through an [`Outlet`] can
//! be taken back, whether written or not. Cost: one copy for each append; the buffer is kept
//! between flushes.

use crate::ground::disk::{Disk, Error};
use std::io;

/// The growing end of one file.
#[derive(Debug)]
pub struct Tail {
    name: String,
    /// The number of bytes at the front of the file that are known to be on disk.
    written: u64,
    /// The bytes that are not on disk yet.
    pub pending: Vec<u8>,
    /// Whether the file may be longer than `written`: by part of a failed append, or by bytes that
    /// were taken back.
    doubtful: bool,
}

/// A writer into a tail that flushes it whenever the buffer is full.
pub struct Outlet<'a> {
    /// The tail that receives the bytes.
    pub tail: &'a mut Tail,
    /// The disk that the tail is flushed to.
    pub disk: &'a mut dyn Disk,
    /// The number of buffered bytes at which the tail is flushed. The buffer may exceed it by one
    /// piece of `PIECE_BYTES`.
    pub buffer_bytes: usize,
}

/// Inputs longer than this are appended in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;

impl Tail {
    /// Creates the tail of the file `name`, which has `written` bytes now.
    pub fn new(name: String, written: u64) -> Self {
        Self { name, written, pending: Vec::new(), doubtful: false }
    }

    /// Returns the file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the length of the file in bytes once all is written: written and buffered bytes.
    pub fn len(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Returns the number of bytes that are on disk.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns whether there are no bytes at all, neither written nor buffered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Continues at the end of the file that has this tail's name now, because another process may
    /// have renamed or emptied the file that had it.
    pub fn follow(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        disk.refresh(&self.name)?;
        let len = disk.len(&self.name)?.unwrap_or(0);
        if !self.doubtful || len < self.written {
            (self.written, self.doubtful) = (len, false);
        }
        Ok(())
    }

    /// Writes all buffered bytes to disk. On an error all of them stay buffered. The emptied buffer
    /// keeps at most `kept_bytes` of its capacity.
    pub fn flush(&mut self, disk: &mut dyn Disk, kept_bytes: usize) -> Result<(), Error> {
        self.flush_to(self.len(), disk, kept_bytes)
    }

    /// Writes the buffered bytes before the file offset `len` to disk. The buffer keeps at most
    /// `kept_bytes` of spare capacity.
    pub fn flush_to(
        &mut self,
        len: u64,
        disk: &mut dyn Disk,
        kept_bytes: usize,
    ) -> Result<(), Error> {
        if self.doubtful {
            self.cut_back(disk)?;
        }
        let count = usize::try_from(len.saturating_sub(self.written)).unwrap_or(usize::MAX);
        let now = &self.pending[..count.min(self.pending.len())];
        if now.is_empty() {
            return Ok(());
        }
        if let Err(error) = disk.append(&self.name, now) {
            self.doubtful = true;
            return Err(error);
        }
        let count = now.len();
        self.written += count as u64;
        self.pending.drain(..count);
        self.pending.shrink_to(kept_bytes);
        Ok(())
    }

    /// Takes back all bytes from the file offset `len` on: buffered ones are dropped, written ones
    /// are cut off before the next flush.
    pub fn take_back(&mut self, len: u64) {
        assert!(len <= self.len(), "what is taken back was put");
        let kept = len.saturating_sub(self.written);
        self.pending.truncate(usize::try_from(kept).expect("no more than waits"));
        self.doubtful |= len < self.written;
        self.written = self.written.min(len);
    }

    fn cut_back(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        let len = disk.len(&self.name)?.unwrap_or(0);
        if len < self.written {
            let source = io::Error::other("the file is shorter than what was written to it");
            return Err(Error::new("append to", &self.name, source));
        }
        if len > self.written {
            disk.truncate(&self.name, self.written)?;
        }
        self.doubtful = false;
        Ok(())
    }
}

impl Outlet<'_> {
    /// Returns whether the tail is empty, as [`Tail::is_empty`] does.
    pub fn is_empty(&self) -> bool {
        self.tail.is_empty()
    }

    /// Returns the number of written and buffered bytes, as [`Tail::len`] does.
    pub fn len(&self) -> u64 {
        self.tail.len()
    }

    /// Appends bytes to the tail, and flushes it when the buffer is full. On an error an unknown
    /// number of the bytes was appended.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for piece in bytes.chunks(PIECE_BYTES) {
            if self.tail.pending.len() >= self.buffer_bytes {
                self.tail.flush(self.disk, 2 * self.buffer_bytes)?;
            }
            self.tail.pending.extend_from_slice(piece);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::disk::memory::Memory;
    use crate::ground::random::Random;

    /// Law: whatever fails, file and buffer hold what was put and not taken back; and the buffer
    /// keeps to its limit.
    #[test]
    fn a_tail_agrees_with_a_list_of_bytes() {
        let (mut failed, mut taken_back) = (0, 0);
        for seed in 0..200 {
            let mut random = Random(seed);
            let mut disk = Memory::default();
            let mut tail = Tail::new("x".to_owned(), 0);
            let mut model = Vec::new();
            for _ in 0..40 {
                let room = disk.used() + random.word() % 200_000;
                let is_full = random.word().is_multiple_of(3);
                disk.limit(is_full.then_some(room), random.word().is_multiple_of(2));
                let whole = model.len();
                for _ in 0..random.word() % 4 {
                    let size = random.word() % (1 << (random.word() % 18));
                    let bytes: Vec<u8> = (0..size).map(|_| random.word() as u8).collect();
                    let mut out = Outlet { tail: &mut tail, disk: &mut disk, buffer_bytes: 9_000 };
                    let put = out.put(&bytes);
                    assert!(tail.pending.len() < 9_000 + PIECE_BYTES);
                    model.extend_from_slice(&bytes);
                    if put.is_err() || random.word().is_multiple_of(20) {
                        failed += usize::from(put.is_err());
                        taken_back += usize::from((whole as u64) < tail.written);
                        model.truncate(whole);
                        tail.take_back(whole as u64);
                        break;
                    }
                }
                assert_eq!(tail.len(), model.len() as u64);
                let until = if random.word().is_multiple_of(2) {
                    model.len()
                } else {
                    random.word() as usize % (model.len() + 1)
                };
                if random.word().is_multiple_of(4)
                    && tail.flush_to(until as u64, &mut disk, 0).is_ok()
                {
                    let until = until.max(tail.written() as usize);
                    assert!(until == 0 || disk.bytes("x") == model[..until], "seed {seed}");
                }
            }
            disk.limit(None, false);
            tail.flush(&mut disk, 0).expect("room again");
            assert!(disk.bytes("x") == model, "seed {seed}");
        }
        assert!(failed > 100 && taken_back > 50, "the faults were met: {failed}, {taken_back}");
    }
}
