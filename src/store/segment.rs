//! A growing WARC file with its index: names, first record, size.
//!
//! Names follow the convention of archives: `PREFIX-20261120093849-00000.warc.gz`, with the time of
//! the first capture and a serial number that continues across the runs of a job, even after files
//! were moved away; with the suffix `.open` while the file grows. The index has the same stem:
//! `index/PREFIX-20261120093849-00000.cdxj`.
//!
//! Laws: an existing file is never overwritten; every file begins with a `warcinfo` record; the
//! index is written after the records it points to.

use super::Error;
use super::job::{Full, OPEN};
use super::warc::RecordId;
use crate::ground::disk::{self, Disk};
use crate::ground::tail::Tail;
use std::sync::Arc;

/// A growing WARC file, together with its index.
#[derive(Debug)]
pub(super) struct Segment {
    /// The final name of the WARC file, without its folder, as it is written to the index and the
    /// crawl log.
    pub(super) file: Arc<str>,
    pub(super) full: Full,
    pub(super) warc: Tail,
    pub(super) index: Tail,
    /// The id of the `warcinfo` record with which the WARC file begins.
    pub(super) info: RecordId,
    /// The number of captures in the WARC file.
    pub(super) captures: u64,
}

impl Segment {
    /// Begins a WARC file and its index with the names of `stem`; nothing is written to the disk
    /// yet.
    pub(super) fn begin(
        stem: &str,
        gzip: bool,
        info: RecordId,
        disk: &mut dyn Disk,
    ) -> Result<Self, Error> {
        let full = full_of(stem, gzip);
        let names = [&full.warc, &full.index, &full.warc_open(), &full.index_open()];
        for name in names {
            if disk.len(name)?.is_some() {
                return Err(Error::Exists(name.clone()));
            }
        }
        Ok(Self {
            file: full.warc["warc/".len()..].into(),
            warc: Tail::new(full.warc_open(), 0),
            index: Tail::new(full.index_open(), 0),
            full,
            info,
            captures: 0,
        })
    }

    /// Writes the buffered records first, then the buffered index lines that point to them.
    pub(super) fn flush(
        &mut self,
        disk: &mut dyn Disk,
        kept_bytes: usize,
    ) -> Result<(), disk::Error> {
        self.warc.flush(disk, kept_bytes)?;
        self.index.flush(disk, kept_bytes)
    }
}

/// Returns the stem of the names of a WARC file and its index, such as
/// `PREFIX-20261120093849-00000`.
pub(super) fn stem(prefix: &str, digits: &str, serial: u32) -> String {
    format!("{prefix}-{digits}-{serial:05}")
}

/// Returns the final names of the WARC file and the index with this stem.
pub(super) fn full_of(stem: &str, gzip: bool) -> Full {
    let suffix = if gzip { ".warc.gz" } else { ".warc" };
    Full { warc: format!("warc/{stem}{suffix}"), index: format!("index/{stem}.cdxj") }
}

/// Returns the serial number in the name of a WARC file or its index.
pub(super) fn serial_of(name: &str) -> Option<u32> {
    let (_, end) = name.rsplit_once('-')?;
    end.split('.').next()?.parse().ok()
}

/// The parsed name of a file in `warc/` or `index/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    pub(super) stem: &'a str,
    pub(super) serial: u32,
    /// The suffix: `.warc`, `.warc.gz` or `.cdxj`.
    pub(super) suffix: &'a str,
    pub(super) open: bool,
}

/// Parses the name of a file; `None` if it is not one of this archive.
pub(super) fn name_of<'a>(name: &'a str, prefix: &str) -> Option<Name<'a>> {
    let (closed, open) = match name.strip_suffix(OPEN) {
        Some(closed) => (closed, true),
        None => (name, false),
    };
    let suffixes = [".warc.gz", ".warc", ".cdxj"];
    let suffix = suffixes.into_iter().find(|suffix| closed.ends_with(suffix))?;
    let (stem, suffix) = closed.split_at(closed.len() - suffix.len());
    let rest = stem.strip_prefix(prefix)?.strip_prefix('-')?;
    let (digits, serial) = rest.split_once('-')?;
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if digits.len() != 14 || serial.len() < 5 || !plain(digits) || !plain(serial) {
        return None;
    }
    Some(Name { stem, serial: serial.parse().ok()?, suffix, open })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_what_they_say() {
        let stem = stem("a-b", "20261120093849", 7);
        assert_eq!(stem, "a-b-20261120093849-00007");
        let full = full_of(&stem, true);
        assert_eq!(full.warc, "warc/a-b-20261120093849-00007.warc.gz");
        assert_eq!(full.index, "index/a-b-20261120093849-00007.cdxj");
        let open = format!("{stem}.warc.gz.open");
        let name = name_of(&open, "a-b").expect("ours");
        assert_eq!((name.stem, name.serial), (stem.as_str(), 7));
        assert_eq!((name.suffix, name.open), (".warc.gz", true));
        let strangers = [
            "b-20261120093849-00007.warc",
            "a-b-2026-00007.warc",
            "a-b-20261120093849-7.warc",
            "a-b-20261120093849-99999999999.warc",
            "a-b-20261120093849-00007.txt",
            "a-b-20261120093849-00007",
            "notes",
        ];
        for name in strangers {
            assert_eq!(name_of(name, "a-b"), None, "{name}");
        }
    }
}
