//! The job that writes captures to the archive on a side thread.
//!
//! It takes the writer with it, and its result brings it back. So it writes what the loop would
//! have written, and only one of both can write at a time.

use super::capture::{OwnCapture, Receipt};
use super::settings::Error;
use super::writer::Writer;
use crate::ground::disk::Disk;

/// A job for a side thread: it writes captures to the archive, in order.
#[derive(Debug)]
pub struct WriteJob {
    /// A disk handle that only jobs like this one use, one after the other.
    pub(super) disk: Box<dyn Disk>,
    pub(super) writer: Box<Writer>,
    pub(super) captures: Vec<OwnCapture>,
}

/// The result of a [`WriteJob`].
#[derive(Debug)]
pub struct WriteDone {
    pub(super) disk: Box<dyn Disk>,
    pub(super) writer: Box<Writer>,
    pub(super) written: Written,
}

/// What a [`WriteJob`] has written.
#[derive(Debug)]
pub struct Written {
    /// The captures of the job.
    pub captures: Vec<OwnCapture>,
    /// The receipts of those that were stored, which are the first ones.
    pub receipts: Vec<Receipt>,
    /// Why the next one could not be stored, or why all of them still wait in memory; `Ok` if
    /// neither is so.
    pub result: Result<(), Error>,
}

impl WriteJob {
    /// Returns the number of captures to write.
    pub fn captures(&self) -> usize {
        self.captures.len()
    }

    /// Writes the captures, up to the first error.
    pub fn run(self) -> WriteDone {
        let Self { mut disk, mut writer, captures } = self;
        let mut receipts = Vec::with_capacity(captures.len());
        let mut result = captures.iter().try_for_each(|capture| {
            receipts.push(writer.keep(&capture.view(), disk.as_mut())?);
            Ok(())
        });
        if result.is_ok() && writer.is_flush_due() {
            // What stays in memory is written by the next job, or by the loop.
            result = writer.flush(disk.as_mut()).map_err(Into::into);
        }
        WriteDone { disk, writer, written: Written { captures, receipts, result } }
    }
}
