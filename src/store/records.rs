//! Reads the records of a WARC file one after the other, without an index.
//!
//! A gzip member ends at its checksum, a plain record after its Content-Length. If there is no
//! complete record, the file is searched for the next record of the same file: one that names the
//! same `warcinfo` record, whose id no archived page can contain.
//!
//! Laws: each returned record is complete, and its checksum or the digest of its block is verified;
//! no complete record is skipped.
//! Cost: everything is inflated once; the longest record is held in memory.

use super::Error;
use super::warc::{block_of, field, is_sound};
use crate::ground::disk::Disk;
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// The number of bytes that are read from the disk at once.
const PIECE_BYTES: usize = 64 << 10;
/// The maximum length of a record; this program writes none that is longer.
const RECORD_BYTES_MAX: usize = 1 << 30;
/// The first bytes of a gzip member.
const MEMBER: &[u8] = &[0x1f, 0x8b, 8];
/// The first bytes of a record.
const RECORD: &[u8] = b"WARC/1.1\r\n";

/// Iterates over the records of one WARC file, without its index.
pub(super) struct Records {
    source: Option<Source>,
    gzip: bool,
    record: Vec<u8>,
    /// The value of WARC-Warcinfo-ID in the first record that has this field; `None` until then.
    info: Option<String>,
}

/// What was found next in a WARC file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A complete record, with its offset and its length in the file; its content is returned by
    /// [`Records::record`].
    Record(u64, u64),
    /// A range without a complete record: its start, its end, and `true` if it ends at the end of
    /// the file.
    Damage(u64, u64, bool),
    /// The end of the file was reached.
    End,
}

impl Records {
    /// Creates an iterator over the records of the file `name`, from `offset` up to `end`.
    pub(super) fn new(name: &str, offset: u64, end: u64, disk: &dyn Disk) -> Self {
        let source = Source::new(name, offset, end, disk.handle());
        let gzip = name.contains(".warc.gz");
        Self { source: Some(source), gzip, record: Vec::new(), info: None }
    }

    /// Returns the record that was read last, uncompressed: its head, its block and the two line
    /// ends after the block.
    pub(super) fn record(&self) -> &[u8] {
        &self.record
    }

    /// Reads on from the current position to the end of the next record or damaged range.
    ///
    /// # Errors
    /// Returns an error of the disk.
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

    /// Reads the record at `offset`, and returns its length in the file. Returns `None` if there is
    /// no complete record at this offset. The next read continues after the record.
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

    /// Returns whether the buffer contains exactly one complete record. For a gzip member its
    /// checksum is verified as well.
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
        source.error.take().map_or(Ok(()), |error| Err(error.into()))
    }

    fn read_plain(&mut self) -> Result<(), Error> {
        let source = self.source.as_mut().expect("it is put back after use");
        let record = &mut self.record;
        let mut line = 0;
        while !record.ends_with(b"\r\n\r\n") && record.len() < PIECE_BYTES {
            let more = source.take(PIECE_BYTES as u64).read_until(b'\n', record);
            // A record begins with the version line.
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
        source.error.take().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Searches for the first complete record of this file at or after the offset `from`, and
    /// returns its offset. The next read begins there.
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
            // The first record of a file names no other.
            (_, its) => its.is_some(),
        }
    }

    /// Returns the offset of the next occurrence of `bytes` in the file, at or after `from`.
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
            if let Some(error) = source.error.take() {
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

/// Reads a range of a file, piece by piece.
pub(super) struct Source {
    disk: Box<dyn Disk>,
    name: String,
    /// The offset in the file at which the buffer ends; the next field is the end of the range.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
    /// The error of the disk, if there was one. It is kept here because `io::Error` only carries a
    /// copy.
    error: Option<crate::ground::disk::Error>,
}

impl Source {
    /// Creates a reader of the bytes of the file `name` from `offset` to `end`.
    pub(super) fn new(name: &str, offset: u64, end: u64, disk: Box<dyn Disk>) -> Self {
        let buffer = Vec::new();
        Self { disk, name: name.to_owned(), at: offset, end, buffer, used: 0, error: None }
    }

    /// Returns the offset in the file of the next byte to be returned.
    pub(super) fn position(&self) -> u64 {
        self.at - (self.buffer.len() - self.used) as u64
    }

    /// Returns the error of the disk, if there was one, and clears it.
    pub(super) fn error(&mut self) -> Option<crate::ground::disk::Error> {
        self.error.take()
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
                self.error = Some(error);
                0
            });
            self.buffer.truncate(bytes);
            self.at += bytes as u64;
            if self.error.is_some() {
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
