//! Reads the reply of one capture from the archive, piece by piece.
//!
//! The capture's own record is read first. If it is a `revisit`, which has no payload, the earlier
//! record that contains the payload is read after it.
//!
//! Laws: the reply equals the stored one, byte for byte, or there is an error; a step does a
//! bounded amount of work.
//! Cost: the records are inflated, and held in memory while they are read.

use super::Truncated;
use super::capture::NOT_MODIFIED;
use super::job::OPEN;
use super::records::Source;
use super::replay::{Kept, Place, Reply};
use super::warc::{block_of, field};
use crate::ground::disk::Disk;
use crate::ground::time::UnixTime;
use flate2::bufread::GzDecoder;
use std::fmt;
use std::io::Read;

/// The maximum number of bytes that one step inflates.
const STEP_BYTES: usize = 64 << 10;
/// The maximum length of a record; this program writes none that is longer.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// A capture whose reply is being read from the archive.
pub struct Reread {
    kept: Kept,
    part: Part,
    /// The block of the capture's own record, while the record with the payload is being read;
    /// `None` before.
    own: Option<Block>,
}

impl fmt::Debug for Reread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reread").field("kept", &self.kept).finish_non_exhaustive()
    }
}

/// The progress after a step.
#[derive(Debug)]
pub enum Step {
    /// There is more to read: call [`Reread::step`] again.
    More,
    /// Everything was read: the complete reply.
    Whole(Reply),
    /// The reply can't be read; the text states the file, the offset and the reason.
    Unreadable(String),
}

/// The block of a record, the reason why it is truncated (`None` if it is complete), and the date
/// of the record.
type Block = (Vec<u8>, Option<Truncated>, Option<UnixTime>);

impl Reread {
    /// Prepares to read the reply of a capture; nothing is read yet.
    pub fn new(kept: Kept, disk: &dyn Disk) -> Self {
        let part = Part::new(&kept.own, disk);
        Self { kept, part, own: None }
    }

    /// Reads the next piece. Returns the work done, which is the sum of the bytes read from the
    /// disk and the bytes that came out of decompression, and the progress.
    pub fn step(&mut self, disk: &dyn Disk) -> (usize, Step) {
        let (bytes, ended) = self.part.read(disk);
        let block = match ended {
            Ok(false) => return (bytes, Step::More),
            Ok(true) => self.part.block(),
            Err(why) => Err(why),
        };
        let block = match block {
            Ok(block) => block,
            Err(why) => return (bytes, Step::Unreadable(self.part.place.says(&why))),
        };
        let step = match (self.own.take(), &self.kept.payload) {
            (None, Some(first)) => {
                self.part = Part::new(first, disk);
                self.own = Some(block);
                Step::More
            }
            (None, None) => {
                let (own, truncated, captured) = block;
                Step::Whole(Reply { own, truncated, first: None, captured })
            }
            // The reason for the truncation of a `revisit` record is ignored: it only says that the
            // record has no body.
            (Some((own, _, captured)), _) => {
                Step::Whole(Reply { own, truncated: None, first: Some(block.0), captured })
            }
        };
        (bytes, step)
    }
}

/// One record that is being read, of the two that a `revisit` needs.
struct Part {
    place: Place,
    member: Member,
    /// True if the record is being read from the file with its final name, false with `.open`.
    is_closed: bool,
    record: Vec<u8>,
}

enum Member {
    Packed(Box<GzDecoder<Source>>),
    Plain(Source),
}

impl Part {
    /// Prepares to read a record. A job may give the file its final name at any time, so a file
    /// that is missing under its `.open` name is read under its final name.
    fn new(place: &Place, disk: &dyn Disk) -> Self {
        let member = Member::new(&format!("warc/{}{OPEN}", place.file), place, disk);
        Self { place: place.clone(), member, is_closed: false, record: Vec::new() }
    }

    /// Reads the next piece of the record. Returns the work done, in bytes read plus bytes
    /// inflated, and whether the record has ended.
    fn read(&mut self, disk: &dyn Disk) -> (usize, Result<bool, String>) {
        let before = self.member.source().position();
        let filled = self.record.len();
        self.record.resize(filled + STEP_BYTES, 0);
        let read = self.member.read(&mut self.record[filled..]);
        self.record.truncate(filled + read.as_ref().map_or(0, |bytes| *bytes));
        let source = self.member.source();
        let bytes = usize::try_from(source.position() - before).unwrap_or(STEP_BYTES);
        let error = source.error();
        let ended = match (read, error) {
            (_, Some(_)) if !self.is_closed => {
                self.is_closed = true;
                self.record.clear();
                let name = format!("warc/{}", self.place.file);
                self.member = Member::new(&name, &self.place, disk);
                Ok(false)
            }
            (_, Some(error)) => Err(error.source.to_string()),
            (Err(_), _) => Err("it is damaged".to_owned()),
            (Ok(_), _) if self.record.len() > RECORD_BYTES_MAX => Err("it is too long".to_owned()),
            (Ok(more), _) => Ok(more == 0),
        };
        (bytes + self.record.len().saturating_sub(filled), ended)
    }

    /// Returns the block of the record, once all of the record was read; for a `revisit` of a page
    /// that was unmodified, whose record has none, the reply that it stands for.
    fn block(&mut self) -> Result<Block, String> {
        let Some(block) = block_of(&self.record) else {
            return Err("there is no complete record".to_owned());
        };
        let date = field(&self.record, "WARC-Date").unwrap_or_default();
        let digits: String = date.chars().filter(char::is_ascii_digit).take(14).collect();
        let captured = UnixTime::from_digits(&digits);
        if field(&self.record, "WARC-Profile") == Some(NOT_MODIFIED) {
            return Ok((b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(), None, captured));
        }
        let end = self.record.len() - END_BYTES;
        let head_bytes = end - block.len();
        let truncated = field(&self.record, "WARC-Truncated").and_then(Truncated::named);
        self.record.truncate(end);
        self.record.drain(..head_bytes);
        Ok((std::mem::take(&mut self.record), truncated, captured))
    }
}

/// The length of the two line ends (CRLF CRLF) that follow the block of every WARC record.
const END_BYTES: usize = 4;

impl Member {
    fn new(name: &str, place: &Place, disk: &dyn Disk) -> Self {
        let end = place.offset.saturating_add(place.length);
        let source = Source::new(name, place.offset, end, disk.handle());
        let is_packed = place.file.ends_with(".gz");
        if is_packed { Self::Packed(Box::new(GzDecoder::new(source))) } else { Self::Plain(source) }
    }

    fn source(&mut self) -> &mut Source {
        match self {
            Self::Packed(member) => member.get_mut(),
            Self::Plain(source) => source,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Packed(member) => member.read(buffer),
            Self::Plain(source) => source.read(buffer),
        }
    }
}
