//! A file that only grows: bytes wait in memory and reach the disk in large pieces.
//!
//! Laws: [`Tail::len`] counts what is on disk and what waits, so an offset taken from it stays
//! true; after a failed append nothing is lost and nothing doubled: what waits still waits, and
//! before the next try the file is cut back to what is known to be whole. What was put through an
//! [`Outlet`] can be taken back, wherever it has got to.
//! Cost: an append to memory is a copy; the buffer is kept between flushes.

use crate::ground::disk::{Disk, Error};
use std::io;

/// The end of one file.
#[derive(Debug)]
pub struct Tail {
    name: String,
    /// Bytes known to be on disk.
    written: u64,
    /// Bytes not there yet.
    pub pending: Vec<u8>,
    /// The disk may hold more than is known: part of an append that failed, or what was taken back.
    doubtful: bool,
}

/// A tail that brings bytes to the disk whenever enough of them wait.
pub struct Outlet<'a> {
    /// Where the bytes go.
    pub tail: &'a mut Tail,
    /// What they go to when enough of them wait.
    pub disk: &'a mut dyn Disk,
    /// So many may wait, and one piece more.
    pub buffer_bytes: usize,
}

/// Longer ones are put in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;

impl Tail {
    /// The end of `name`, which holds `written` bytes now.
    pub fn new(name: String, written: u64) -> Self {
        Self { name, written, pending: Vec::new(), doubtful: false }
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes on disk and waiting.
    pub fn len(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Bytes on disk.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether nothing is in it or waits to be.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Goes on at the end of what has the file's name now: somebody may have renamed the file or
    /// emptied it.
    pub fn follow(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        disk.refresh(&self.name)?;
        let len = disk.len(&self.name)?.unwrap_or(0);
        if !self.doubtful || len < self.written {
            (self.written, self.doubtful) = (len, false);
        }
        Ok(())
    }

    /// Brings what waits to the disk. On an error all of it waits on.
    pub fn flush(&mut self, disk: &mut dyn Disk, kept_bytes: usize) -> Result<(), Error> {
        self.flush_to(self.len(), disk, kept_bytes)
    }

    /// The same, of what is before `len`.
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

    /// Takes back all that is past `len`.
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
    /// As [`Tail::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.tail.is_empty()
    }

    /// As [`Tail::len`].
    pub fn len(&self) -> u64 {
        self.tail.len()
    }

    /// Adds bytes. On an error it isn't known how many of them.
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

    /// Law: whatever fails, the file and what waits are what was put and not taken back; and no
    /// more waits than is said.
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
