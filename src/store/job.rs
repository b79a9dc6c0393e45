//! The jobs of the archive: which files are synced on a side thread, in which order, and how full
//! files are closed.
//!
//! A full WARC file is synced. Its index lines, which were appended in order of capture, are sorted
//! by bytes (the order of `LC_ALL=C sort`) into a file with its final name. Last the WARC file
//! loses its suffix `.open`. From then on the operator may move both away, even before the job has
//! ended: the `.open` file of the index is removed by then, and no power failure brings it back.
//!
//! Laws: a file whose name has no `.open` is complete and durable. A job may be interrupted
//! anywhere by a crash and run again.
//! Cost: a sort holds the lines of one file in memory, at most `index_bytes_max` of the settings
//! and 16 bytes a line.

use super::log_file::is_log;
use super::segment::serial_of;
use crate::ground::disk::{Disk, Error};
use std::fmt;
use std::io;

/// A job for a side thread: it syncs files in a given order, then closes those that are full.
pub struct StoreJob {
    /// A disk handle that only this job uses.
    pub disk: Box<dyn Disk>,
    /// The files to sync, named relative to the job directory, in this order: data, index, log.
    pub files: Vec<String>,
    /// The full files, oldest first. They are synced as part of `files`, and then get their final
    /// names.
    pub full: Vec<Full>,
    /// The number of the job, which its result repeats.
    pub ticket: u64,
}

/// The final names of a full WARC file and its index. Until they are closed, both names end in
/// [`OPEN`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// The name of the WARC file, such as `warc/....warc.gz`.
    pub warc: String,
    /// The name of the index, such as `index/....cdxj`.
    pub index: String,
}

/// The suffix of WARC and index files while they grow.
pub const OPEN: &str = ".open";
/// The suffix of the file into which an index is being sorted.
pub(super) const SORTING: &str = ".sorting";
/// The number of bytes of sorted lines written at a time.
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
    /// Syncs each file, then closes the full ones; stops at the first error.
    pub fn run(mut self) -> StoreDone {
        StoreDone { ticket: self.ticket, result: self.work() }
    }

    fn work(&mut self) -> Result<(), Error> {
        for name in &self.files {
            match self.disk.sync(name) {
                // The operator may move logs away at any time.
                Err(error) if is_log(name) && is_missing(&error) => {}
                synced => synced?,
            }
        }
        for full in &self.full {
            full.close(self.disk.as_mut())?;
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

/// The result of a [`StoreJob`].
#[derive(Debug)]
pub struct StoreDone {
    /// The number of the job, as in [`StoreJob::ticket`].
    pub ticket: u64,
    /// `Ok` if all files of the job are durable and the full ones are closed; otherwise the first
    /// error.
    pub result: Result<(), Error>,
}

impl Full {
    /// Returns the serial number of the WARC file.
    pub(super) fn serial(&self) -> u32 {
        serial_of(&self.warc).expect("it was made of one")
    }

    /// Returns the name that the WARC file has while it grows.
    pub(super) fn warc_open(&self) -> String {
        format!("{}{OPEN}", self.warc)
    }

    /// Returns the name of the index file that has the lines in order of capture.
    pub(super) fn index_open(&self) -> String {
        format!("{}{OPEN}", self.index)
    }

    /// Sorts the index and gives both files their final names. Skips the steps that an earlier,
    /// interrupted run completed.
    fn close(&self, disk: &mut dyn Disk) -> Result<(), Error> {
        let (warc_open, index_open) = (self.warc_open(), self.index_open());
        if let Some(bytes) = disk.len(&index_open)? {
            self.sort(disk, &index_open, bytes)?;
            disk.remove(&index_open)?;
        }
        if disk.len(&warc_open)?.is_some() {
            // As long as the index has `.open`, its WARC file can't have been moved away. A power
            // failure must not restore that state, so the sorted index is synced first.
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

/// Reads exactly `bytes` bytes of a file at `offset` into newly allocated memory. A shorter file is
/// an error.
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
            0 => return Err(short("the file is shorter than expected")),
            more => filled += more,
        }
    }
    Ok(text)
}
