//! Reads the records of a WARC file one after the other, without an index.
//!
//! A gzip member ends where its checksum is, a plain record where its Content-Length says. Where
//! there is no whole record the file is searched for the next one of the same file: one that names
//! the same `warcinfo` record, which no archived page can know.
//!
//! Laws: what is handed out is one whole record, its checksum or the digest of its block verified;
//! nothing that was written whole is passed over. Cost: one inflation; the longest record is held
//! in memory.

use super::Error;
use super::warc::{block_of, field, is_sound};
use crate::ground::disk::Disk;
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// Bytes read from the disk at once.
const PIECE_BYTES: usize = 64 << 10;
/// Longer records aren't ours.
const RECORD_BYTES_MAX: usize = 1 << 30;
/// What a gzip member begins with.
const MEMBER: &[u8] = &[0x1f, 0x8b, 8];
/// What a record begins with.
const RECORD: &[u8] = b"WARC/1.1\r\n";

/// The records of a file, in order.
pub(super) struct Records {
    source: Option<Source>,
    gzip: bool,
    record: Vec<u8>,
    /// Value of WARC-Warcinfo-ID of the first record that has one.
    info: Option<String>,
}

/// What comes next in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A whole record at this offset, of so many bytes: see [`Records::record`].
    Record(u64, u64),
    /// No whole record from here to there: the end of the file, if the last is `true`.
    Damage(u64, u64, bool),
    /// The end.
    End,
}

impl Records {
    /// The records of `name` from `offset` on, up to `end`.
    pub(super) fn new(name: &str, offset: u64, end: u64, disk: &dyn Disk) -> Self {
        let source = Source::new(name, offset, end, disk.handle());
        let gzip = name.contains(".warc.gz");
        Self { source: Some(source), gzip, record: Vec::new(), info: None }
    }

    /// The record that came last: head, block and end.
    pub(super) fn record(&self) -> &[u8] {
        &self.record
    }

    /// Reads on.
    ///
    /// # Errors
    /// The disk.
    pub(super) fn next(&mut self) -> Result<Next, Error> {
        let (start, end) = (self.source().position(), self.source().end);
        if start >= end {
            return Ok(Next::End);
        }
        if let Some(bytes) = self.read_at(start)? {
            return Ok(Next::Record(start, bytes));
        }
        let found = self.search(start + 1)?;
        Ok(Next::Damage(start, found.unwrap_or(end), found.is_none()))
    }

    /// Length of the whole record at `offset`; `None` if there is none. What follows is read next.
    fn read_at(&mut self, offset: u64) -> Result<Option<u64>, Error> {
        self.source().seek(offset);
        self.record.clear();
        if self.gzip {
            self.read_member()?
        } else {
            self.read_plain()?
        };
        let end = self.source().position();
        let is_whole = self.is_whole();
        if is_whole && self.info.is_none() {
            self.info = field(&self.record, "WARC-Warcinfo-ID").map(str::to_owned);
        }
        Ok(is_whole.then(|| end - offset))
    }

    /// What is in hand is one whole record. A member has a checksum of its own.
    fn is_whole(&self) -> bool {
        if self.gzip { block_of(&self.record).is_some() } else { is_sound(&self.record) }
    }

    fn read_member(&mut self) -> Result<(), Error> {
        let source = self.source.take().expect("it is put back below");
        let mut member = GzDecoder::new(source);
        let read = (&mut member).take(RECORD_BYTES_MAX as u64).read_to_end(&mut self.record);
        let source = self.source.insert(member.into_inner());
        if read.is_err() {
            self.record.clear();
        }
        source.trouble.take().map_or(Ok(()), |error| Err(error.into()))
    }

    fn read_plain(&mut self) -> Result<(), Error> {
        let source = self.source.as_mut().expect("it is put back after use");
        let record = &mut self.record;
        let mut line = 0;
        while !record.ends_with(b"\r\n\r\n") && record.len() < PIECE_BYTES {
            let more = source.take(PIECE_BYTES as u64).read_until(b'\n', record);
            // The line of the version comes first, or it is no record.
            if more.unwrap_or(0) == 0 || line == 0 && record != RECORD {
                record.clear();
                break;
            }
            line += 1;
        }
        let rest = field(record, "Content-Length").and_then(|text| text.parse::<u64>().ok());
        let rest = rest.filter(|bytes| *bytes < RECORD_BYTES_MAX as u64);
        match rest {
            Some(bytes) if source.take(bytes + 4).read_to_end(record).is_ok() => {}
            _ => record.clear(),
        }
        source.trouble.take().map_or(Ok(()), |error| Err(error.into()))
    }

    /// The first whole record of this file from `from` on; it is read next.
    fn search(&mut self, mut from: u64) -> Result<Option<u64>, Error> {
        let start = if self.gzip { MEMBER } else { RECORD };
        while let Some(at) = self.find(start, from)? {
            let is_ours = self.read_at(at)?.is_some() && self.names_this_file();
            if is_ours {
                self.source().seek(at);
                return Ok(Some(at));
            }
            from = at + 1;
        }
        let end = self.source().end;
        self.source().seek(end);
        Ok(None)
    }

    fn names_this_file(&self) -> bool {
        match (&self.info, field(&self.record, "WARC-Warcinfo-ID")) {
            (Some(ours), Some(its)) => ours == its,
            // Who opens the file names nobody.
            (_, its) => its.is_some(),
        }
    }

    /// Where these bytes come next.
    fn find(&mut self, bytes: &[u8], from: u64) -> Result<Option<u64>, Error> {
        let source = self.source();
        source.seek(from);
        let mut window = Vec::new();
        loop {
            let at = source.position() - window.len() as u64;
            if let Some(place) = memchr::memmem::find(&window, bytes) {
                return Ok(Some(at + place as u64));
            }
            let kept = window.len().saturating_sub(bytes.len() - 1);
            window.drain(..kept);
            let more = source.fill_buf().map(<[u8]>::to_vec).unwrap_or_default();
            if let Some(error) = source.trouble.take() {
                return Err(error.into());
            }
            if more.is_empty() {
                return Ok(None);
            }
            source.consume(more.len());
            window.extend(more);
        }
    }

    fn source(&mut self) -> &mut Source {
        self.source.as_mut().expect("it is put back after use")
    }
}

/// Bytes of a file from the disk, piece by piece.
pub(super) struct Source {
    disk: Box<dyn Disk>,
    name: String,
    /// Where the buffer ends in the file, and where the file does.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
    /// What the disk said, if it failed: readers of bytes only pass a copy on.
    trouble: Option<crate::ground::disk::Error>,
}

impl Source {
    /// The bytes of `name` from `offset` to `end`.
    pub(super) fn new(name: &str, offset: u64, end: u64, disk: Box<dyn Disk>) -> Self {
        let buffer = Vec::new();
        Self { disk, name: name.to_owned(), at: offset, end, buffer, used: 0, trouble: None }
    }

    /// Offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.at - (self.buffer.len() - self.used) as u64
    }

    /// What the disk said, if it failed.
    pub(super) fn trouble(&mut self) -> Option<crate::ground::disk::Error> {
        self.trouble.take()
    }

    fn seek(&mut self, offset: u64) {
        let start = self.at - self.buffer.len() as u64;
        match offset.checked_sub(start).and_then(|into| usize::try_from(into).ok()) {
            Some(into) if into <= self.buffer.len() => self.used = into,
            _ => {
                self.buffer.clear();
                (self.used, self.at) = (0, offset);
            }
        }
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.buffer.len() {
            let rest = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
            self.buffer.resize(rest.min(PIECE_BYTES), 0);
            self.used = 0;
            let read = self.disk.read_at(&self.name, self.at, &mut self.buffer);
            let bytes = read.unwrap_or_else(|error| {
                self.trouble = Some(error);
                0
            });
            self.buffer.truncate(bytes);
            self.at += bytes as u64;
            if self.trouble.is_some() {
                return Err(io::Error::other("the disk"));
            }
        }
        Ok(&self.buffer[self.used..])
    }

    fn consume(&mut self, bytes: usize) {
        self.used += bytes;
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut here = self.fill_buf()?;
        let bytes = here.read(buffer)?;
        self.consume(bytes);
        Ok(bytes)
    }
}
