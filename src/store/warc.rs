//! Record to bytes: WARC 1.1 headers, ids, one gzip member a record.
//!
//! A record is a version line, named fields, an empty line, the block as it came, and two line
//! ends. It is built in one piece and compressed in one piece, so that every member holds exactly
//! one record and can be read alone, given its offset and length.
//!
//! Laws: a field's value never holds a line end; Content-Length is the block's length; the same
//! seed gives the same ids. Cost: the block is copied once, then compressed; no allocation once
//! the buffers have grown (past a megabyte they are given back).
//! Source: WARC 1.1 (ISO 28500:2017), sections 4 to 6 and annex D.

use super::digest::Digest;
use super::text::{push_value, put};
use libdeflater::{CompressionLvl, Compressor, Decompressor};
use std::fmt;

/// Buffers larger than this are given back after use.
const KEPT_BYTES: usize = 1 << 20;

/// The type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Info,
    Response,
    Request,
    Revisit,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Info => "warcinfo",
            Self::Response => "response",
            Self::Request => "request",
            Self::Revisit => "revisit",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Info => "application/warc-fields",
            Self::Response | Self::Revisit => "application/http; msgtype=response",
            Self::Request => "application/http; msgtype=request",
        }
    }
}

/// A record's name, a version 4 UUID. Its `Display` is the form of WARC-Record-ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordId([u8; 16]);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |from: usize, to: usize| {
            self.0[from..to].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let (a, b, c, d, e) = (part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 16));
        write!(f, "<urn:uuid:{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}>")
    }
}

/// Draws record ids from a seed: SplitMix64, two words an id.
#[derive(Debug)]
pub(super) struct Ids(u64);

impl Ids {
    /// The sequence of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next id, with version and variant bits in place (RFC 9562, section 5.4).
    pub(super) fn next(&mut self) -> RecordId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.word().to_be_bytes());
        bytes[8..].copy_from_slice(&self.word().to_be_bytes());
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        RecordId(bytes)
    }

    /// One word of the sequence.
    pub(super) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

/// A record under construction at the end of a buffer: fields, then the block.
pub(super) struct Record<'a> {
    out: &'a mut Vec<u8>,
    kind: Kind,
}

impl<'a> Record<'a> {
    /// Starts a record at the end of `out`. `date` is as [`super::text::Stamps::iso`] has it.
    pub(super) fn begin(out: &'a mut Vec<u8>, kind: Kind, id: RecordId, date: &str) -> Self {
        let name = kind.name();
        put!(out, "WARC/1.1\r\nWARC-Type: {name}\r\nWARC-Record-ID: {id}\r\n");
        put!(out, "WARC-Date: {date}\r\n");
        Self { out, kind }
    }

    /// Adds a field whose value may come from anywhere.
    pub(super) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.name(name);
        push_value(self.out, value);
        self.end_line()
    }

    /// Adds a field whose value is our own.
    pub(super) fn value(&mut self, name: &str, value: impl fmt::Display) -> &mut Self {
        put!(self.out, "{name}: {value}\r\n");
        self
    }

    /// Adds a digest.
    pub(super) fn digest(&mut self, name: &str, digest: &Digest) -> &mut Self {
        self.name(name);
        digest.push(self.out);
        self.end_line()
    }

    /// Ends the fields, adds the block and closes the record.
    pub(super) fn block(&mut self, block: &[u8]) {
        let (kind, bytes) = (self.kind.content_type(), block.len());
        put!(self.out, "Content-Type: {kind}\r\nContent-Length: {bytes}\r\n\r\n");
        self.out.extend_from_slice(block);
        self.out.extend_from_slice(b"\r\n\r\n");
    }

    fn name(&mut self, name: &str) {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
    }

    fn end_line(&mut self) -> &mut Self {
        self.out.extend_from_slice(b"\r\n");
        self
    }
}

/// Builds records and appends them to a file's bytes, as members or as they are.
pub(super) struct Packer {
    gzip: Option<Gzip>,
    /// The record before compression.
    record: Vec<u8>,
}

struct Gzip {
    compressor: Compressor,
    /// Level 0: for records so large that compressing them would hold up the loop, and for those
    /// that are compressed already.
    wrapper: Compressor,
    bytes_max: usize,
}

/// What [`Packer::pack`] appended, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    /// Of the record.
    pub(super) raw_bytes: u64,
    /// In the file.
    pub(super) bytes: u64,
}

impl Packer {
    /// A packer at gzip `level` 1 to 12, 0 for none; records over `bytes_max` are members too, but
    /// of stored blocks.
    pub(super) fn new(level: u8, bytes_max: usize) -> Self {
        let compressor = |level: i32| {
            Compressor::new(CompressionLvl::new(level).expect("settings hold level to 0..=12"))
        };
        let gzip = (level > 0).then(|| Gzip {
            compressor: compressor(i32::from(level)),
            wrapper: compressor(0),
            bytes_max,
        });
        Self { gzip, record: Vec::new() }
    }

    /// Lets `write` build a record and appends it to `out`.
    pub(super) fn pack(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Packed {
        self.add(out, write, false)
    }

    /// As [`Packer::pack`], for a record that compressing won't make smaller: a member of stored
    /// blocks.
    pub(super) fn wrap(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Packed {
        self.add(out, write, true)
    }

    fn add(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>), packed: bool) -> Packed {
        let start = out.len();
        let Some(gzip) = &mut self.gzip else {
            write(out);
            let bytes = (out.len() - start) as u64;
            return Packed { raw_bytes: bytes, bytes };
        };
        self.record.clear();
        write(&mut self.record);
        let compressor = if packed || self.record.len() > gzip.bytes_max {
            &mut gzip.wrapper
        } else {
            &mut gzip.compressor
        };
        out.resize(start + compressor.gzip_compress_bound(self.record.len()), 0);
        let bytes = compressor
            .gzip_compress(&self.record, &mut out[start..])
            .expect("the bound leaves room for every input");
        out.truncate(start + bytes);
        let raw_bytes = self.record.len() as u64;
        self.record.clear();
        self.record.shrink_to(KEPT_BYTES);
        Packed { raw_bytes, bytes: bytes as u64 }
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").field("gzip", &self.gzip.is_some()).finish_non_exhaustive()
    }
}

/// Most that a gzip member can add to the bytes in it: header, trailer, five bytes a stored block.
pub(super) fn bytes_max(raw_bytes: u64) -> u64 {
    raw_bytes + raw_bytes / 1_000 + 64
}

/// The record in `bytes`, which are all of its bytes as a file holds them; `None` if they are not
/// one whole record. Allocates the record.
pub(super) fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    const MEMBER_BYTES_MIN: usize = 18;
    /// Deflate's best: 258 bytes for two bits.
    const RATIO_MAX: usize = 1_032;
    const RECORD_BYTES_MAX: usize = 1 << 30;
    let record = if bytes.starts_with(&[0x1f, 0x8b]) {
        let tail = bytes.len().checked_sub(4)?;
        let size = u32::from_le_bytes(bytes[tail..].try_into().ok()?) as usize;
        let size_max = bytes.len().saturating_mul(RATIO_MAX).min(RECORD_BYTES_MAX);
        if bytes.len() < MEMBER_BYTES_MIN || size > size_max {
            return None;
        }
        let mut record = vec![0; size];
        let length = Decompressor::new().gzip_decompress(bytes, &mut record).ok()?;
        record.truncate(length);
        record
    } else {
        bytes.to_vec()
    };
    let head_bytes = memchr::memmem::find(&record, b"\r\n\r\n")? + 4;
    let block_bytes = content_length(&record[..head_bytes])?;
    let whole = record.starts_with(b"WARC/1.1\r\n")
        && record.ends_with(b"\r\n\r\n")
        && head_bytes.checked_add(block_bytes)?.checked_add(4)? == record.len();
    whole.then_some(record)
}

fn content_length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_four_and_repeat_from_the_seed() {
        let (mut ids, mut again) = (Ids::new(42), Ids::new(42));
        for _ in 0..1_000 {
            let id = ids.next();
            assert_eq!(id, again.next());
            let text = id.to_string();
            assert_eq!((text.len(), &text[..10]), (47, "<urn:uuid:"));
            assert_eq!(&text[24..25], "4", "version: {text}");
            assert!("89ab".contains(&text[29..30]), "variant: {text}");
        }
        assert_ne!(Ids::new(1).next(), Ids::new(2).next());
    }

    /// Cut or flip anything: what isn't a whole record is not taken for one.
    #[test]
    fn damaged_records_are_not_whole() {
        for level in [0, 1] {
            let mut bytes = Vec::new();
            let mut packer = Packer::new(level, usize::MAX);
            let id = Ids::new(3).next();
            let packed = packer.pack(&mut bytes, |out| {
                Record::begin(out, Kind::Request, id, "2026-11-20T09:38:49Z").block(b"GET /");
            });
            assert_eq!(packed.bytes, bytes.len() as u64);
            let record = unpack(&bytes).expect("whole");
            assert_eq!(packed.raw_bytes, record.len() as u64);
            for cut in 0..bytes.len() {
                assert_eq!(unpack(&bytes[..cut]), None, "cut at {cut}");
            }
            for place in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[place] ^= 0x55;
                if level > 0 && place > 9 {
                    assert_eq!(unpack(&flipped), None, "flipped at {place}");
                } else {
                    let _ = unpack(&flipped);
                }
            }
        }
    }

    #[test]
    fn members_never_pass_the_bound() {
        let mut ids = Ids::new(9);
        for (level, bytes_max) in [(1, usize::MAX), (1, 0), (12, usize::MAX)] {
            let mut packer = Packer::new(level, bytes_max);
            for size in [0, 1, 100, 70_000, 300_000] {
                let noise: Vec<u8> = (0..size).map(|_| ids.word() as u8).collect();
                let mut out = vec![7; 5];
                let packed = packer.pack(&mut out, |out| out.extend_from_slice(&noise));
                assert_eq!(out.len() as u64, 5 + packed.bytes);
                assert!(packed.bytes <= super::bytes_max(size as u64), "{size}: {packed:?}");
            }
        }
    }
}
