//! Loads the index of stored payloads, which finds duplicates, from the index files of earlier
//! runs.
//!
//! An index line contains digest, URL and date, which is what a `revisit` record needs. The id of
//! the record is only in the WARC file, and is left out. The latest payloads are wanted, so the
//! last files are read, as many as needed.
//!
//! Laws: only payloads that are stored in full are loaded, and only digests of the current
//! algorithm. Invalid lines are skipped.
//! Cost: one to two microseconds a line, for somewhat more lines than needed.

use super::capture::FIRST_URL_BYTES_MAX;
use super::cdxj;
use super::digest::{Digest, First};
use super::replay::{REPEAT, each_line, indexes};
use super::settings::Error;
use super::writer::Writer;
use crate::ground::disk::Disk;
use crate::ground::time::UnixTime;

/// The assumed length of an index line, in bytes. Most are shorter, so that rather too many files
/// are read than too few.
const LINE_BYTES: u64 = 400;

impl Writer {
    /// Loads the payloads that earlier runs stored last into the revisit index, oldest first.
    pub(super) fn load_revisit_index(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        let wanted = self.settings.revisit_names_max as u64;
        if wanted == 0 {
            return Ok(());
        }
        let mut indexes = indexes(&self.settings.prefix, disk)?;
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
                    self.revisit_index.add(digest, &entry.url, first);
                }
            })?;
        }
        Ok(())
    }

    /// Returns the digest and the record of the payload that an index line describes; `None` if a
    /// `revisit` may not refer to it.
    fn stored(&self, entry: &cdxj::Entry<'_>) -> Option<(Digest, First)> {
        let is_whole = entry.mime != REPEAT && !entry.truncated;
        let is_wanted = is_whole && entry.url.len() <= FIRST_URL_BYTES_MAX;
        let digest = self.settings.digest.parse_indexed(&entry.digest)?;
        let date = UnixTime::from_digits(entry.stamp)?;
        is_wanted.then_some((digest, First { id: None, date, chunked: entry.chunked }))
    }
}
