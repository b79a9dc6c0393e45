//! One WARC file being written, with its index: names, the opening record, size.
//!
//! Names follow the archives' habit: `PREFIX-20261120093849-00000.warc.gz`, the time of the first
//! capture and a serial that goes on across runs of the job, also when files were taken away;
//! `.open` behind it while it grows. The index has the same stem:
//! `index/PREFIX-20261120093849-00000.cdxj`.
//!
//! Laws: a file that exists is never written over; every file begins with a `warcinfo` record;
//! the index reaches the disk after the records it points to.

use super::Error;
use super::job::{Full, OPEN};
use super::warc::RecordId;
use crate::ground::disk::{self, Disk};
use crate::ground::tail::Tail;
use std::rc::Rc;

/// A WARC file that grows.
#[derive(Debug)]
pub(super) struct Segment {
    /// Final name without its folder, as the index and the log give it.
    pub(super) file: Rc<str>,
    pub(super) full: Full,
    pub(super) warc: Tail,
    pub(super) index: Tail,
    /// Id of its `warcinfo` record.
    pub(super) info: RecordId,
    /// Captures in it.
    pub(super) captures: u64,
}

impl Segment {
    /// Begins the files of `stem`; nothing is written yet.
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

    /// Records first, then the lines that point to them.
    pub(super) fn flush(
        &mut self,
        disk: &mut dyn Disk,
        kept_bytes: usize,
    ) -> Result<(), disk::Error> {
        self.warc.flush(disk, kept_bytes)?;
        self.index.flush(disk, kept_bytes)
    }
}

/// `PREFIX-20261120093849-00000`.
pub(super) fn stem(prefix: &str, digits: &str, serial: u32) -> String {
    format!("{prefix}-{digits}-{serial:05}")
}

/// The final names of a stem's files.
pub(super) fn full_of(stem: &str, gzip: bool) -> Full {
    let suffix = if gzip { ".warc.gz" } else { ".warc" };
    Full { warc: format!("warc/{stem}{suffix}"), index: format!("index/{stem}.cdxj") }
}

/// The serial number in the name of a WARC file or its index.
pub(super) fn serial_of(name: &str) -> Option<u32> {
    let (_, end) = name.rsplit_once('-')?;
    end.split('.').next()?.parse().ok()
}

/// What the name of a file in `warc/` or `index/` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    pub(super) stem: &'a str,
    pub(super) serial: u32,
    /// `.warc`, `.warc.gz` or `.cdxj`.
    pub(super) suffix: &'a str,
    pub(super) open: bool,
}

/// Reads a file's name; `None` if it is not one of ours.
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
