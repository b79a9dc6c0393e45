//! The disk as the core sees it: the program's only trait.
//!
//! A world (the real system or a simulator) gives the engine a `Disk` rooted in the job directory.
//! File names are relative to it, with `/` between folders; a folder is created with its first
//! file. Small appends and bounded reads are plain calls. Work that could stall a turn of the event
//! loop (sync, merge, large reads) is done by a job on a side thread, which owns a [`Disk::handle`]
//! of its own.
//!
//! Laws: an append is complete, or fails and is undone if possible; after a crash any prefix of the
//! unsynced bytes may remain. `sync` makes the bytes and the name of a file durable. `rename`
//! replaces its target atomically.

#[cfg(test)]
pub(crate) mod memory;
pub mod overlay;

use std::fmt;
use std::io;

/// The operations on files that the core uses.
pub trait Disk: Send {
    /// Appends `bytes` to the file `name`, which is created if it doesn't exist.
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error>;
    /// Reads from `offset` into `buffer`. Returns the number of bytes read, which is less than the
    /// buffer's length only at the end of the file.
    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, Error>;
    /// Drops a cached handle of the file `name`, because another process may have renamed or
    /// replaced it. Renames through this disk don't need this call.
    fn refresh(&mut self, _name: &str) -> Result<(), Error> {
        Ok(())
    }
    /// Returns the length of the file `name` in bytes, or `None` if it doesn't exist.
    fn len(&mut self, name: &str) -> Result<Option<u64>, Error>;
    /// Makes the bytes and the name of a file durable. Slow, so only jobs call it, not the loop.
    fn sync(&mut self, name: &str) -> Result<(), Error>;
    /// Truncates the file `name` to `len` bytes.
    fn truncate(&mut self, name: &str, len: u64) -> Result<(), Error>;
    /// Renames a file, replacing a file that has the new name.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error>;
    /// Removes the file `name`. Returns an error if it doesn't exist.
    fn remove(&mut self, name: &str) -> Result<(), Error>;
    /// Returns the names of the files directly in `folder` (`""` is the root), sorted by bytes. A
    /// folder that doesn't exist has none.
    fn list(&mut self, folder: &str) -> Result<Vec<String>, Error>;
    /// Returns how many bytes can still be written, or `None` if that is not known.
    fn free(&mut self) -> Result<Option<u64>, Error> {
        Ok(None)
    }
    /// Returns another handle on the same disk, for a job on a side thread.
    fn handle(&self) -> Box<dyn Disk>;
}

/// Reads from `offset` of the file `name` until `bytes` is full. The first `have` bytes of `bytes`
/// already hold the file's content from `offset` on and are not read again. If the file ends
/// earlier, `bytes` is truncated to what was read.
///
/// # Errors
/// The disk reports an error.
pub fn read_all(
    disk: &mut dyn Disk,
    name: &str,
    offset: u64,
    mut have: usize,
    bytes: &mut Vec<u8>,
) -> Result<(), Error> {
    while have < bytes.len() {
        match disk.read_at(name, offset + have as u64, &mut bytes[have..])? {
            0 => break,
            more => have += more,
        }
    }
    bytes.truncate(have);
    Ok(())
}

impl fmt::Debug for dyn Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a disk")
    }
}

/// An error of a file operation: which operation, on which file, and why it failed.
#[derive(Debug)]
pub struct Error {
    /// The operation that failed, as a verb for the message, such as "append to".
    pub verb: &'static str,
    /// The file's name, relative to the job directory.
    pub name: String,
    /// The error that the system reported.
    pub source: io::Error,
}

impl Error {
    /// Creates an error of the operation `verb` on the file `name`.
    pub fn new(verb: &'static str, name: &str, source: io::Error) -> Self {
        Self { verb, name: name.to_owned(), source }
    }

    /// Returns whether the disk is full or a quota of the system is used up: the only error that
    /// may go away without help.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self.source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.verb, self.name, self.source)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
