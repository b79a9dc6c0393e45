//! Finds the captures since a checkpoint: after an unclean stop they need not be fetched again.
//!
//! Laws: every complete capture since the checkpoint is reported once; a reply read from the
//! archive equals the stored one, byte for byte.
//! Cost: the index lines of the files since the checkpoint are read once. If there are `revisit`
//! records among them, the index lines of all files are read to find the payloads.

use super::cdxj;
use super::job::OPEN;
use super::segment::{full_of, name_of};
use super::{Error, Store, Truncated, WriterAt};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::disk::Disk;
use crate::ground::map::{Map, Set};
use crate::ground::time::UnixTime;
use std::cmp::Ordering;
use std::rc::Rc;

/// A position in the archive: the records of all earlier captures are before this offset of this
/// WARC file, or in earlier files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The serial number of the WARC file.
    pub serial: u32,
    /// The offset in the WARC file, in bytes.
    pub offset: u64,
}

/// The position of one record with a reply in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the WARC file, without its folder and without `.open`.
    pub(super) file: Rc<str>,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A stored capture, with the positions of the records from which its reply can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The position of the capture's own record, a `response` or a `revisit`.
    pub(super) own: Place,
    /// The position of the earlier record with the payload, if the capture's own record is a
    /// `revisit`; otherwise `None`.
    pub(super) payload: Option<Place>,
}

/// A reply that was read from the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The unchanged head and body of the reply; only the head if the capture is a `revisit`.
    pub own: Vec<u8>,
    /// The earlier reply that had the same payload, if the capture is a `revisit`; otherwise
    /// `None`.
    pub first: Option<Vec<u8>>,
    /// The reason why the stored reply is incomplete; `None` if it is complete.
    pub truncated: Option<Truncated>,
    /// The date of the capture's own record.
    pub captured: Option<UnixTime>,
}

impl Position {
    /// The position after everything in any archive.
    pub const END: Self = Self { serial: u32::MAX, offset: u64::MAX };

    /// Returns the position after the whole file in which this position is, which must not grow any
    /// more.
    pub fn behind_file(self) -> Self {
        Self { serial: self.next_serial(), offset: 0 }
    }

    /// Returns the serial number of the first file that is entirely after this position.
    pub(super) fn next_serial(self) -> u32 {
        // `END` says nothing about serial numbers, so no file is after it.
        if self == Self::END { 0 } else { self.serial.saturating_add(u32::from(self.offset > 0)) }
    }

    /// Returns the number of bytes of the WARC file `serial` that are before this position;
    /// `u64::MAX` if the whole file is before it.
    pub(super) fn bytes_of(self, serial: u32) -> u64 {
        match serial.cmp(&self.serial) {
            Ordering::Less => u64::MAX,
            Ordering::Equal => self.offset,
            Ordering::Greater => 0,
        }
    }
}

impl Store {
    /// Returns the position after everything that was stored so far. No job may be writing
    /// captures.
    pub fn position(&self) -> Position {
        let WriterAt::Loop(writer) = &self.writer else { panic!("a job is writing") };
        writer.position()
    }

    /// Calls `report` with the URL, the [`Kept`] and the status of each capture since a position.
    ///
    /// # Errors
    /// Returns an error of the disk.
    pub fn since(
        &self,
        moment: Position,
        disk: &mut dyn Disk,
        report: &mut dyn FnMut(&str, Kept, u16),
    ) -> Result<(), Error> {
        let mut repeats = Vec::new();
        let mut wanted = Set::default();
        for (serial, index) in indexes(&self.settings.prefix, disk)? {
            if serial < moment.serial {
                continue;
            }
            each_line(&index, disk, &mut |entry| {
                let is_since = serial > moment.serial || entry.offset >= moment.offset;
                if !is_since {
                } else if entry.mime == REPEAT && entry.status != UNMODIFIED {
                    wanted.insert(entry.digest.to_string());
                    let url = entry.url.to_string();
                    let status = entry.status;
                    repeats.push((url, entry.digest.to_string(), Place::of(entry), status));
                } else {
                    report(&entry.url, Kept { own: Place::of(entry), payload: None }, entry.status);
                }
            })?;
        }
        if repeats.is_empty() {
            return Ok(());
        }
        let firsts = self.firsts(&wanted, disk)?;
        for (url, digest, own, status) in repeats {
            // A `revisit` whose first record is gone can't be read again, so its URL is fetched
            // again.
            if let Some(first) = firsts.get(&digest) {
                report(&url, Kept { own, payload: Some(first.clone()) }, status);
            }
        }
        Ok(())
    }

    /// Finds, for each of these payload digests, the first record that contains the payload.
    fn firsts(
        &self,
        digests: &Set<String>,
        disk: &mut dyn Disk,
    ) -> Result<Map<String, Place>, Error> {
        let mut firsts = Map::default();
        for (_, index) in indexes(&self.settings.prefix, disk)? {
            each_line(&index, disk, &mut |entry| {
                if entry.mime != REPEAT && digests.contains(&*entry.digest) {
                    firsts.entry(entry.digest.to_string()).or_insert_with(|| Place::of(entry));
                }
            })?;
        }
        Ok(firsts)
    }
}

/// Returns the names of the index files with their serial numbers, in that order, each once.
pub(super) fn indexes(prefix: &str, disk: &mut dyn Disk) -> Result<Vec<(u32, String)>, Error> {
    let names = disk.list("index")?;
    let ours = names.iter().filter_map(|name| name_of(name, prefix));
    // A crash may have left both the sorted index and the unsorted file from which it was made.
    let mut found: Vec<(u32, bool, String)> = ours
        .map(|name| {
            let open = if name.open { OPEN } else { "" };
            (name.serial, name.open, format!("{}{open}", full_of(name.stem, true).index))
        })
        .collect();
    found.sort_unstable();
    found.dedup_by_key(|(serial, _, _)| *serial);
    Ok(found.into_iter().map(|(serial, _, name)| (serial, name)).collect())
}

pub(super) const REPEAT: &str = "warc/revisit";
/// The status of a reply that says that a page is unmodified, and needs no payload.
pub(super) const UNMODIFIED: u16 = 304;

impl Kept {
    /// Returns whether another record has the payload of this capture.
    pub fn is_repeat(&self) -> bool {
        self.payload.is_some()
    }

    /// Returns whether this capture was archived before `other`.
    pub fn is_before(&self, other: &Self) -> bool {
        (&self.own.file, self.own.offset) < (&other.own.file, other.own.offset)
    }

    /// Appends this `Kept` to `out` in binary form, so that a later run can decode it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.own.encode(out);
        out.put_bool(self.payload.is_some());
        self.payload.iter().for_each(|place| place.encode(out));
    }

    /// Decodes a `Kept` that [`Kept::encode`] wrote.
    ///
    /// # Errors
    /// Returns [`Short`] if the bytes end early.
    pub fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        let own = Place::decode(take)?;
        let payload = take.bool()?.then(|| Place::decode(take)).transpose()?;
        Ok(Self { own, payload })
    }
}

impl Place {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_str(&self.file);
        out.put_varint(self.offset);
        out.put_varint(self.length);
    }

    fn decode(take: &mut Take<'_>) -> Result<Self, Short> {
        Ok(Self { file: take.str()?.into(), offset: take.varint()?, length: take.varint()? })
    }

    /// Returns an error message with the file name, the offset and the reason `why`.
    pub(super) fn says(&self, why: &str) -> String {
        format!("warc/{} at byte {}: {why}", self.file, self.offset)
    }

    fn of(entry: &cdxj::Entry<'_>) -> Self {
        Self { file: entry.file.as_ref().into(), offset: entry.offset, length: entry.length }
    }
}

/// Calls `report` with each valid line of an index. Invalid lines are skipped: torn ones have been
/// cut off before, and other programs may have written others.
pub(super) fn each_line(
    name: &str,
    disk: &mut dyn Disk,
    report: &mut dyn FnMut(&cdxj::Entry<'_>),
) -> Result<(), Error> {
    const PIECE_BYTES: usize = 256 << 10;
    let (mut text, mut offset) = (Vec::new(), 0);
    loop {
        let before = text.len();
        text.resize(before + PIECE_BYTES, 0);
        let more = disk.read_at(name, offset, &mut text[before..])?;
        text.truncate(before + more);
        offset += more as u64;
        let end = memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1);
        let mut from = 0;
        for to in memchr::memchr_iter(b'\n', &text[..end]) {
            let line = std::str::from_utf8(&text[from..to]).ok();
            line.and_then(|line| cdxj::parse(line).ok()).iter().for_each(&mut *report);
            from = to + 1;
        }
        text.drain(..end);
        if more == 0 {
            return Ok(());
        }
    }
}
