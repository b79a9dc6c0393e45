//! Payloads that earlier runs stored, read back from the index: a repeat of one is a repeat still.
//!
//! The index tells digest, URL and date, which is what a reference needs; the name of the record,
//! which is in the WARC file only, stays out of it. Of what there is the latest is wanted, so the
//! last files are read, as many as have enough.
//!
//! Laws: nothing is remembered but what is stored in full, by a digest of the kind that is taken
//! now; what can't be read as a line is passed over.
//! Cost: one to two microseconds a line, of somewhat more lines than are wanted.

use super::capture::FIRST_URL_BYTES_MAX;
use super::cdxj;
use super::digest::{Digest, First};
use super::replay::{REPEAT, each_line};
use super::{Error, Store};
use crate::ground::disk::Disk;
use crate::ground::time::UnixTime;

/// What a line takes: more than most do, so that rather too many files are read.
const LINE_BYTES: u64 = 400;

impl Store {
    /// Remembers the latest payloads that earlier runs stored, oldest first.
    pub(super) fn recall(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        let wanted = self.settings.revisit_names_max as u64;
        if wanted == 0 {
            return Ok(());
        }
        let mut indexes = self.indexes(disk)?;
        let mut bytes = 0;
        let mut from = indexes.len();
        while from > 0 && bytes < wanted.saturating_mul(LINE_BYTES) {
            from -= 1;
            bytes += disk.len(&indexes[from].1)?.unwrap_or(0);
        }
        let nothing = self.settings.digest.of(b"");
        for (_, index) in indexes.drain(from..) {
            each_line(&index, disk, &mut |entry| {
                if let Some((digest, first)) = self.stored(entry)
                    && digest != nothing
                {
                    self.repeats.add(digest, &entry.url, first);
                }
            })?;
        }
        Ok(())
    }

    /// The payload that a line tells of, if another may refer to it.
    fn stored(&self, entry: &cdxj::Entry<'_>) -> Option<(Digest, First)> {
        let is_whole = entry.mime != REPEAT && !entry.truncated;
        let is_wanted = is_whole && entry.url.len() <= FIRST_URL_BYTES_MAX;
        let digest = self.settings.digest.parse_indexed(&entry.digest)?;
        let date = UnixTime::from_digits(entry.stamp)?;
        is_wanted.then_some((digest, First { id: None, date, chunked: entry.chunked }))
    }
}
