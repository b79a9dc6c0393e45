//! The crawl log on disk: `crawl.log`, which grows, and the parts `crawl-00000.log`, ... that it
//! became when it was long enough or somebody asked for it.
//!
//! Others may rename the file or empty it (`logrotate` does either): before bytes go to the disk
//! the file is looked for by its name, and the log goes on at the end of what is there.
//!
//! Laws: no line is split over two parts; a part is renamed only when the one before it is durable,
//! so a crash tears the newest part and `crawl.log` at most. Cost: two system calls a flush.

use super::Error;
use super::job::read;
use crate::disk::{self, Disk};
use crate::tail::Tail;
use std::io;

/// Name of the log while it grows.
pub(super) const LOG: &str = "crawl.log";

/// The crawl log.
#[derive(Debug)]
pub(super) struct LogFile {
    tail: Tail,
    /// A file this long is renamed, in bytes.
    bytes_max: u64,
    /// Number of the next part.
    next: u32,
    /// The last part, unless it is known to be durable.
    unsynced: Option<String>,
    /// The file is to be renamed as soon as that can be.
    wanted: bool,
}

impl LogFile {
    /// The log that an earlier run left, cut behind its last whole line.
    pub(super) fn open(bytes_max: u64, disk: &mut dyn Disk) -> Result<Self, Error> {
        let parts = parts(disk)?;
        if let Some(last) = parts.last() {
            trim(last, disk)?;
        }
        let next = parts.last().and_then(|name| number_of(name)).map_or(0, |last| last + 1);
        let bytes = trim(LOG, disk)?;
        let tail = Tail::new(LOG.to_owned(), bytes);
        // A run that was killed may not have synced its last part.
        let unsynced = parts.into_iter().next_back();
        Ok(Self { tail, bytes_max, next, unsynced, wanted: false })
    }

    /// Where lines are put; they wait there.
    pub(super) fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.tail.pending
    }

    /// Brings what waits to the disk, and renames the file if it is time. On an error all waits on.
    pub(super) fn flush(
        &mut self,
        may_rotate: bool,
        disk: &mut dyn Disk,
        kept_bytes: usize,
    ) -> Result<(), disk::Error> {
        self.tail.follow(disk)?;
        self.tail.flush(disk, kept_bytes)?;
        let is_due = self.wanted || self.tail.len() >= self.bytes_max;
        if may_rotate && is_due && self.unsynced.is_none() && !self.tail.is_empty() {
            self.rotate(disk)?;
        }
        Ok(())
    }

    /// The file is to become a part, whatever its length.
    pub(super) fn want_rotation(&mut self) {
        self.wanted = true;
    }

    /// Files to be synced: they may be gone by then.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.unsynced.as_deref().into_iter().chain([LOG])
    }

    /// These files are durable.
    pub(super) fn synced(&mut self, files: &[String]) {
        if self.unsynced.as_ref().is_some_and(|part| files.contains(part)) {
            self.unsynced = None;
        }
    }

    fn rotate(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        let part = format!("crawl-{:05}.log", self.next);
        match disk.rename(LOG, &part) {
            // Somebody else has just renamed it.
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        self.next += 1;
        self.wanted = false;
        self.unsynced = Some(part);
        let pending = std::mem::take(&mut self.tail.pending);
        self.tail = Tail::new(LOG.to_owned(), 0);
        self.tail.pending = pending;
        Ok(())
    }
}

/// Whether a file is one of the log's.
pub(super) fn is_log(name: &str) -> bool {
    name == LOG || number_of(name).is_some()
}

/// The renamed parts of the log in a job's directory, oldest first.
///
/// # Errors
/// The disk.
pub fn parts(disk: &mut dyn Disk) -> Result<Vec<String>, disk::Error> {
    let mut parts = disk.list("")?;
    parts.retain(|name| number_of(name).is_some());
    parts.sort_by_key(|name| number_of(name));
    Ok(parts)
}

fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("crawl-")?.strip_suffix(".log")?;
    let is_plain = digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

/// Cuts a log behind its last whole line; returns its length.
fn trim(name: &str, disk: &mut dyn Disk) -> Result<u64, Error> {
    const PIECE_BYTES: u64 = 64 << 10;
    let Some(bytes) = disk.len(name)? else {
        return Ok(0);
    };
    let mut end = hole(name, bytes, disk)?.unwrap_or(bytes);
    let whole = loop {
        let start = end.saturating_sub(PIECE_BYTES);
        let piece = read(disk, name, start, end - start)?;
        match memchr::memrchr(b'\n', &piece) {
            Some(place) => break start + place as u64 + 1,
            None if start == 0 => break 0,
            None => end = start,
        }
    };
    if whole < bytes {
        disk.truncate(name, whole)?;
    }
    Ok(whole)
}

/// Where zeros begin in the end of a log: a page that a loss of power took. So much is not written
/// between two syncs.
fn hole(name: &str, bytes: u64, disk: &mut dyn Disk) -> Result<Option<u64>, Error> {
    const UNSYNCED_BYTES_MAX: u64 = 32 << 20;
    const PIECE_BYTES: u64 = 1 << 20;
    let mut at = bytes.saturating_sub(UNSYNCED_BYTES_MAX);
    while at < bytes {
        let count = PIECE_BYTES.min(bytes - at);
        let piece = read(disk, name, at, count)?;
        if let Some(place) = memchr::memchr(0, &piece) {
            return Ok(Some(at + place as u64));
        }
        at += count;
    }
    Ok(None)
}
