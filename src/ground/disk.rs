//! The disk as the core sees it: the program's one trait.
//!
//! A world gives the engine a `Disk` rooted in the job directory; file names are relative to it,
//! with `/` between folders (folders come into being with their first file). Small appends and
//! bounded reads are plain calls. What could stall a turn (sync, merge, large reads) goes out as a
//! job that owns a [`Disk::handle`] of its own.
//!
//! Laws: an append is at the end of the file or not at all in memory's view, but a crash may keep
//! any prefix of what was not yet synced; `sync` makes the file's bytes and its name durable;
//! `rename` replaces its target at once.

#[cfg(test)]
pub(crate) mod memory;

use std::fmt;
use std::io;

/// The whole disk behind ten verbs.
pub trait Disk: Send {
    /// Adds `bytes` at the end of `name`, which is created if it does not exist.
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error>;
    /// Reads into `buffer` from `offset`; returns how many bytes there were (fewer at the end).
    fn read_at(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, Error>;
    /// Somebody else may have renamed or replaced the file: from here on its name means what has it
    /// now. Only what was renamed through this disk is noticed without.
    fn refresh(&mut self, _name: &str) -> Result<(), Error> {
        Ok(())
    }
    /// Length of `name` in bytes; `None` if there is no such file.
    fn len(&mut self, name: &str) -> Result<Option<u64>, Error>;
    /// Makes the bytes and the name durable. Slow: a job's call, not the loop's.
    fn sync(&mut self, name: &str) -> Result<(), Error>;
    /// Cuts `name` to `len` bytes.
    fn truncate(&mut self, name: &str, len: u64) -> Result<(), Error>;
    /// Gives the file another name, replacing what had it.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), Error>;
    /// Removes a file; removing one that isn't there is an error.
    fn remove(&mut self, name: &str) -> Result<(), Error>;
    /// Names of the files directly in `folder` (`""` is the root), sorted by bytes; none if it
    /// doesn't exist.
    fn list(&mut self, folder: &str) -> Result<Vec<String>, Error>;
    /// Another handle on the same disk, for a job on a side thread.
    fn handle(&self) -> Box<dyn Disk>;
}

/// Reads from `offset` of a file into `bytes`, of which the first `have` are read already; `bytes`
/// is cut where the file ends.
///
/// # Errors
/// The disk's.
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

/// Our own trouble with a file: what was tried, on which file, and why it failed.
#[derive(Debug)]
pub struct Error {
    /// The verb, as in [`Disk`].
    pub verb: &'static str,
    /// The file's name, relative to the job directory.
    pub name: String,
    /// What the system said.
    pub source: io::Error,
}

impl Error {
    /// An error of `verb` on `name`.
    pub fn new(verb: &'static str, name: &str, source: io::Error) -> Self {
        Self { verb, name: name.to_owned(), source }
    }

    /// Whether there is no room left, on the disk or within a limit of the system: the one error
    /// that goes away by itself.
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
