//! The archive's jobs: what is synced on a side thread, in which order, and what becomes of files
//! that are full.
//!
//! A full WARC file is synced; its index lines, which were appended in order of capture, are sorted
//! by bytes (the order of `LC_ALL=C sort`) into a file of its final name; last the WARC file loses
//! its `.open`. From then on somebody may take both away, even before the job has ended: the
//! `.open` name of the index is gone by then, and no loss of power brings it back.
//!
//! Laws: a name without `.open` means the whole file, durable; a job may be cut anywhere by a
//! crash and run again. Cost: a sort holds one file's lines in memory, at most the settings'
//! `index_bytes_max` and 16 bytes a line.

use super::log_file::is_log;
use super::segment::serial_of;
use crate::ground::disk::{Disk, Error};
use std::fmt;
use std::io;

/// Sync these files, in this order, then settle those that are full.
pub struct StoreJob {
    /// A handle of the job's own.
    pub disk: Box<dyn Disk>,
    /// Names relative to the job directory; data before index before log.
    pub files: Vec<String>,
    /// Files that get their final names, oldest first; they are among `files`.
    pub full: Vec<Full>,
    /// Handed back in the answer.
    pub ticket: u64,
}

/// A WARC file and its index, by their final names; so far both end in [`OPEN`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// `warc/....warc.gz`
    pub warc: String,
    /// `index/....cdxj`
    pub index: String,
}

/// What the names of files end in while they grow.
pub const OPEN: &str = ".open";
/// What the name of an index ends in while its sorted form is being written.
pub(super) const SORTING: &str = ".sorting";
/// Sorted lines are written in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;

impl fmt::Debug for StoreJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreJob")
            .field("files", &self.files)
            .field("full", &self.full)
            .field("ticket", &self.ticket)
            .finish_non_exhaustive()
    }
}

impl StoreJob {
    /// Syncs each file, then settles the full ones; stops at the first that fails.
    pub fn run(mut self) -> StoreDone {
        StoreDone { ticket: self.ticket, result: self.work() }
    }

    fn work(&mut self) -> Result<(), Error> {
        for name in &self.files {
            match self.disk.sync(name) {
                // Logs may be taken away at any time.
                Err(error) if is_log(name) && is_missing(&error) => {}
                synced => synced?,
            }
        }
        for full in &self.full {
            full.settle(self.disk.as_mut())?;
        }
        Ok(())
    }
}

fn sync_if_there(name: &str, disk: &mut dyn Disk) -> Result<(), Error> {
    match disk.sync(name) {
        Err(error) if is_missing(&error) => Ok(()),
        synced => synced,
    }
}

fn is_missing(error: &Error) -> bool {
    error.source.kind() == io::ErrorKind::NotFound
}

/// What came of a [`StoreJob`].
#[derive(Debug)]
pub struct StoreDone {
    /// The job's.
    pub ticket: u64,
    /// `Ok` if all of it is durable.
    pub result: Result<(), Error>,
}

impl Full {
    /// Serial number of the WARC file.
    pub(super) fn serial(&self) -> u32 {
        serial_of(&self.warc).expect("it was made of one")
    }

    /// Name of the WARC file while it grows.
    pub(super) fn warc_open(&self) -> String {
        format!("{}{OPEN}", self.warc)
    }

    /// Name of its lines in order of capture.
    pub(super) fn index_open(&self) -> String {
        format!("{}{OPEN}", self.index)
    }

    /// Gives both files their final names. What an earlier run did already is left alone.
    fn settle(&self, disk: &mut dyn Disk) -> Result<(), Error> {
        let (warc_open, index_open) = (self.warc_open(), self.index_open());
        if let Some(bytes) = disk.len(&index_open)? {
            self.sort(disk, &index_open, bytes)?;
            disk.remove(&index_open)?;
        }
        if disk.len(&warc_open)?.is_some() {
            // An index that is still `.open` says that its WARC file can't have been taken away:
            // a loss of power must not bring it back.
            sync_if_there(&self.index, disk)?;
            disk.rename(&warc_open, &self.warc)?;
        }
        sync_if_there(&self.warc, disk)
    }

    fn sort(&self, disk: &mut dyn Disk, unsorted: &str, bytes: u64) -> Result<(), Error> {
        let text = read(disk, unsorted, 0, bytes)?;
        let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        lines.sort_unstable();
        let sorting = format!("{}{SORTING}", self.index);
        if disk.len(&sorting)?.is_some() {
            disk.remove(&sorting)?;
        }
        let mut piece = Vec::with_capacity(PIECE_BYTES.min(text.len()));
        for line in lines {
            if piece.len() + line.len() > PIECE_BYTES && !piece.is_empty() {
                disk.append(&sorting, &piece)?;
                piece.clear();
            }
            piece.extend_from_slice(line);
        }
        disk.append(&sorting, &piece)?;
        disk.sync(&sorting)?;
        disk.rename(&sorting, &self.index)?;
        disk.sync(&self.index)
    }
}

/// Exactly the bytes asked for; an end before them is an error. Allocates them.
pub(super) fn read(
    disk: &mut dyn Disk,
    name: &str,
    offset: u64,
    bytes: u64,
) -> Result<Vec<u8>, Error> {
    let short = |what: &str| Error::new("read", name, io::Error::other(what.to_owned()));
    let bytes = usize::try_from(bytes).map_err(|_| short("too long for memory"))?;
    let mut text = vec![0; bytes];
    let mut filled = 0;
    while filled < text.len() {
        match disk.read_at(name, offset + filled as u64, &mut text[filled..])? {
            0 => return Err(short("the file ends before its end")),
            more => filled += more,
        }
    }
    Ok(text)
}
