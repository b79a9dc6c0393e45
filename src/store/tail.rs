//! A file that only grows: bytes wait in memory and reach the disk in large pieces.
//!
//! Laws: [`Tail::len`] counts what is on disk and what waits, so an offset taken from it stays
//! true; after a failed append nothing is lost and nothing doubled: what waits still waits, and
//! before the next try the file is cut back to what is known to be whole.
//! Cost: an append to memory is a copy; the buffer is kept between flushes.

use crate::disk::{Disk, Error};
use std::io;

/// The end of one file.
#[derive(Debug)]
pub(super) struct Tail {
    name: String,
    /// Bytes known to be on disk.
    written: u64,
    /// Bytes not there yet.
    pub(super) pending: Vec<u8>,
    /// An append failed: the disk may hold part of what still waits.
    doubtful: bool,
}

impl Tail {
    /// The end of `name`, which holds `written` bytes now.
    pub(super) fn new(name: String, written: u64) -> Self {
        Self { name, written, pending: Vec::new(), doubtful: false }
    }

    /// The file's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes on disk and waiting.
    pub(super) fn len(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Brings what waits to the disk. On an error all of it waits on.
    pub(super) fn flush(&mut self, disk: &mut dyn Disk, kept_bytes: usize) -> Result<(), Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.doubtful {
            self.cut_back(disk)?;
        }
        if let Err(error) = disk.append(&self.name, &self.pending) {
            self.doubtful = true;
            return Err(error);
        }
        self.written = self.len();
        self.pending.clear();
        self.pending.shrink_to(kept_bytes);
        Ok(())
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
