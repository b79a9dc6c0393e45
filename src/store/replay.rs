//! What the archive holds since a moment, read back: a crawl that stopped without a word goes on
//! from an older checkpoint, and need not ask again for what it has.
//!
//! Laws: every whole capture since then is told once; a reply read back is the reply that was
//! kept, byte for byte.
//! Cost: the index lines of the files since then are read once; if repeats are among them, those
//! of all files, for the payload that a repeat only mentions.

use super::cdxj;
use super::job::OPEN;
use super::segment::{full_of, name_of};
use super::{Error, Store, Truncated};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::disk::Disk;
use crate::ground::map::{Map, Set};
use std::cmp::Ordering;
use std::rc::Rc;

/// A moment of the archive: all captures before it lie before this place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Serial number of a WARC file.
    pub serial: u32,
    /// Bytes of it.
    pub offset: u64,
}

/// A record of a reply in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the WARC file, without its folder and without what its name ends in while it grows.
    pub(super) file: Rc<str>,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A capture to be read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its own record.
    pub(super) own: Place,
    /// The record with its payload, if its own only refers to it.
    pub(super) payload: Option<Place>,
}

/// A reply as it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Head and body, verbatim; of a repeat the head.
    pub own: Vec<u8>,
    /// The reply that had the same payload first, if `own` has none.
    pub first: Option<Vec<u8>>,
    /// Why less was kept than the server had to give, in a word of the standard.
    pub truncated: Option<Truncated>,
}

impl Position {
    /// Behind all that there is.
    pub const END: Self = Self { serial: u32::MAX, offset: u64::MAX };

    /// Behind the whole file: it grows no more.
    pub fn behind_file(self) -> Self {
        Self { serial: self.next_serial(), offset: 0 }
    }

    /// The serial of the first file that lies behind it as a whole.
    pub(super) fn next_serial(self) -> u32 {
        // The end says nothing about serials.
        if self == Self::END { 0 } else { self.serial.saturating_add(u32::from(self.offset > 0)) }
    }

    /// How many bytes of a WARC file lie before it: all, if the whole file does.
    pub(super) fn bytes_of(self, serial: u32) -> u64 {
        match serial.cmp(&self.serial) {
            Ordering::Less => u64::MAX,
            Ordering::Equal => self.offset,
            Ordering::Greater => 0,
        }
    }
}

impl Store {
    /// This moment.
    pub fn position(&self) -> Position {
        match &self.segment {
            Some(segment) => {
                Position { serial: self.serial.saturating_sub(1), offset: segment.warc.len() }
            }
            None => Position { serial: self.serial, offset: 0 },
        }
    }

    /// Tells the URLs of all captures since a moment, and where they are.
    pub fn since(
        &self,
        moment: Position,
        disk: &mut dyn Disk,
        tell: &mut dyn FnMut(&str, Kept),
    ) -> Result<(), Error> {
        let mut repeats = Vec::new();
        let mut wanted = Set::default();
        for (serial, index) in self.indexes(disk)? {
            if serial < moment.serial {
                continue;
            }
            each_line(&index, disk, &mut |entry| {
                let is_since = serial > moment.serial || entry.offset >= moment.offset;
                if !is_since {
                } else if entry.mime == REPEAT {
                    wanted.insert(entry.digest.to_string());
                    let url = entry.url.to_string();
                    repeats.push((url, entry.digest.to_string(), Place::of(entry)));
                } else {
                    tell(&entry.url, Kept { own: Place::of(entry), payload: None });
                }
            })?;
        }
        if repeats.is_empty() {
            return Ok(());
        }
        let firsts = self.firsts(&wanted, disk)?;
        for (url, digest, own) in repeats {
            // A repeat whose first record is gone can't be read back: it is asked for again.
            if let Some(first) = firsts.get(&digest) {
                tell(&url, Kept { own, payload: Some(first.clone()) });
            }
        }
        Ok(())
    }

    /// The first records with these payloads.
    fn firsts(
        &self,
        digests: &Set<String>,
        disk: &mut dyn Disk,
    ) -> Result<Map<String, Place>, Error> {
        let mut firsts = Map::default();
        for (_, index) in self.indexes(disk)? {
            each_line(&index, disk, &mut |entry| {
                if entry.mime != REPEAT && digests.contains(&*entry.digest) {
                    firsts.entry(entry.digest.to_string()).or_insert_with(|| Place::of(entry));
                }
            })?;
        }
        Ok(firsts)
    }

    /// Index files by serial number, each once.
    pub(super) fn indexes(&self, disk: &mut dyn Disk) -> Result<Vec<(u32, String)>, Error> {
        let names = disk.list("index")?;
        let ours = names.iter().filter_map(|name| name_of(name, &self.settings.prefix));
        // A crash may have left both the sorted file and the one it was made of.
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
}

pub(super) const REPEAT: &str = "warc/revisit";

impl Kept {
    /// Whether it was archived before another.
    pub fn is_before(&self, other: &Self) -> bool {
        (&self.own.file, self.own.offset) < (&other.own.file, other.own.offset)
    }

    /// Writes it down, for a later run.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.own.encode(out);
        out.put_bool(self.payload.is_some());
        self.payload.iter().for_each(|place| place.encode(out));
    }

    /// What [`Kept::encode`] wrote.
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

    /// What is wrong with it, in words.
    pub(super) fn says(&self, why: &str) -> String {
        format!("warc/{} at byte {}: {why}", self.file, self.offset)
    }

    fn of(entry: &cdxj::Entry<'_>) -> Self {
        Self { file: entry.file.as_ref().into(), offset: entry.offset, length: entry.length }
    }
}

/// Reads an index line by line. A line that isn't one is passed over: what was torn has been cut,
/// and what somebody else wrote there is none of ours.
pub(super) fn each_line(
    name: &str,
    disk: &mut dyn Disk,
    tell: &mut dyn FnMut(&cdxj::Entry<'_>),
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
            line.and_then(|line| cdxj::parse(line).ok()).iter().for_each(&mut *tell);
            from = to + 1;
        }
        text.drain(..end);
        if more == 0 {
            return Ok(());
        }
    }
}
