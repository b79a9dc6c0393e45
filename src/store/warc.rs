//! Encodes WARC 1.1 records: headers, ids, one gzip member for each record.
//!
//! A record is a version line, named fields, an empty line, the unchanged block, and two line ends.
//! Every member contains exactly one record and can be read alone, given its offset and length. A
//! record that is compressed is assembled first, because the compressor needs it in one piece. Any
//! other record is never in memory twice: it is written in pieces, as a member of stored blocks.
//!
//! Laws: the value of a field never contains a line end; Content-Length is the length of the block;
//! the same seed gives the same ids.
//! Cost: the block is copied once, then compressed; no allocation once the buffers have grown
//! (beyond a megabyte they are freed).
//! Source: WARC 1.1 (ISO 28500:2017), sections 4 to 6 and annex D; RFC 1951, section 3.2.4; RFC
//! 1952, section 2.3.

use super::digest::{Digest, is_of};
use super::text::{push_value, put};
use crate::ground::disk;
use crate::ground::random::Random;
use crate::ground::tail::Outlet;
use libdeflater::{CompressionLvl, Compressor, Crc, Decompressor};
use std::fmt;
use std::io;
use std::net::IpAddr;

/// The capacity up to which a buffer is kept for the next record, in bytes. Larger ones are freed.
const KEPT_BYTES: usize = 1 << 20;
/// The two line ends that follow the block of every record.
const END: &[u8] = b"\r\n\r\n";

/// The type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Info,
    Response,
    Request,
    Revisit,
    Metadata,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Info => "warcinfo",
            Self::Response => "response",
            Self::Request => "request",
            Self::Revisit => "revisit",
            Self::Metadata => "metadata",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Info | Self::Metadata => "application/warc-fields",
            Self::Response | Self::Revisit => "application/http; msgtype=response",
            Self::Request => "application/http; msgtype=request",
        }
    }
}

/// The id of a record, a version 4 UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordId([u8; 16]);

impl RecordId {
    /// Appends the id in the form of WARC-Record-ID: `<urn:uuid:...>`. A record contains three ids,
    /// so the digits are taken from a table, which takes a tenth of the time of `format!`.
    fn push(self, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = *b"<urn:uuid:00000000-0000-0000-0000-000000000000>";
        let mut place = 10;
        for (index, byte) in self.0.into_iter().enumerate() {
            place += usize::from(matches!(index, 4 | 6 | 8 | 10));
            text[place] = DIGITS[usize::from(byte >> 4)];
            text[place + 1] = DIGITS[usize::from(byte & 15)];
            place += 2;
        }
        out.extend_from_slice(&text);
    }
}

/// Generates record ids from a seed. Each takes two words of the SplitMix64 generator.
#[derive(Debug)]
pub(super) struct Ids(Random);

impl Ids {
    /// Creates the generator for `seed`; equal seeds give equal ids.
    pub(super) fn new(seed: u64) -> Self {
        Self(Random(seed))
    }

    /// Returns the next id, with version and variant bits set (RFC 9562, section 5.4).
    pub(super) fn next(&mut self) -> RecordId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.word().to_be_bytes());
        bytes[8..].copy_from_slice(&self.word().to_be_bytes());
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        RecordId(bytes)
    }

    /// Returns the next 64-bit word of the generator.
    pub(super) fn word(&mut self) -> u64 {
        self.0.word()
    }
}

/// Writes the head of a record, its version line and fields, to the end of a buffer.
pub(super) struct Record<'a> {
    out: &'a mut Vec<u8>,
    kind: Kind,
}

impl<'a> Record<'a> {
    /// Begins a record at the end of `out` with the fields that every record has. `date` is in the
    /// form that [`super::text::Stamps::iso`] returns.
    pub(super) fn begin(out: &'a mut Vec<u8>, kind: Kind, id: RecordId, date: &str) -> Self {
        out.extend_from_slice(b"WARC/1.1\r\n");
        let mut record = Self { out, kind };
        record.value("WARC-Type", kind.name()).id("WARC-Record-ID", id).value("WARC-Date", date);
        record
    }

    /// Adds a field whose value comes from outside, so control bytes in it are replaced.
    pub(super) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.name(name);
        push_value(self.out, value);
        self.end_line()
    }

    /// Adds a field whose value this program made; it is copied unchanged.
    pub(super) fn value(&mut self, name: &str, value: &str) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(value.as_bytes());
        self.end_line()
    }

    /// Adds a field whose value is the id of a record.
    pub(super) fn id(&mut self, name: &str, id: RecordId) -> &mut Self {
        self.name(name);
        id.push(self.out);
        self.end_line()
    }

    /// Adds a field whose value is an IP address.
    pub(super) fn ip(&mut self, name: &str, ip: IpAddr) -> &mut Self {
        self.name(name);
        put!(self.out, "{ip}");
        self.end_line()
    }

    /// Adds a field whose value is a digest.
    pub(super) fn digest(&mut self, name: &str, digest: &Digest) -> &mut Self {
        self.name(name);
        digest.push(self.out);
        self.end_line()
    }

    /// Ends the head of the record, whose last field is the length of `block`. The caller then
    /// appends the block.
    pub(super) fn end(&mut self, block: &[u8]) {
        self.value("Content-Type", self.kind.content_type());
        put!(self.out, "Content-Length: {}\r\n\r\n", block.len());
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

/// Builds records and appends them to the bytes of a file, plain or as gzip members.
pub(super) struct Packer {
    gzip: Option<Gzip>,
    /// The record before compression; only its head if the record is written in pieces.
    record: Vec<u8>,
}

struct Gzip {
    compressor: Compressor,
    /// The maximum length of a block that is compressed, in bytes.
    bytes_max: usize,
}

/// The lengths of one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    /// The length of the record before compression, in bytes.
    pub(super) raw_bytes: u64,
    /// The length of the record in the file, in bytes.
    pub(super) bytes: u64,
}

impl Packer {
    /// Creates a packer with the gzip `level` 1 to 12, or 0 for no compression. Blocks longer than
    /// `bytes_max` are not to be compressed, because that would hold up the event loop.
    pub(super) fn new(level: u8, bytes_max: usize) -> Self {
        let gzip = (level > 0).then(|| {
            let level = CompressionLvl::new(i32::from(level));
            let level = level.expect("settings hold level to 0..=12");
            Gzip { compressor: Compressor::new(level), bytes_max }
        });
        Self { gzip, record: Vec::new() }
    }

    /// Returns whether a block of `block_bytes` bytes should be compressed.
    pub(super) fn compresses(&self, block_bytes: usize) -> bool {
        self.gzip.as_ref().is_some_and(|gzip| block_bytes <= gzip.bytes_max)
    }

    /// Appends a record to `out`, compressed if gzip is enabled. The function `fields` adds the
    /// fields of the record.
    pub(super) fn pack(
        &mut self,
        out: &mut Vec<u8>,
        block: &[u8],
        fields: impl FnOnce(&mut Vec<u8>),
    ) -> Packed {
        let start = out.len();
        let Some(gzip) = &mut self.gzip else {
            fields(out);
            out.extend_from_slice(block);
            out.extend_from_slice(END);
            let bytes = (out.len() - start) as u64;
            return Packed { raw_bytes: bytes, bytes };
        };
        self.record.clear();
        fields(&mut self.record);
        self.record.extend_from_slice(block);
        self.record.extend_from_slice(END);
        out.resize(start + gzip.compressor.gzip_compress_bound(self.record.len()), 0);
        let bytes = gzip
            .compressor
            .gzip_compress(&self.record, &mut out[start..])
            .expect("the bound leaves room for every input");
        out.truncate(start + bytes);
        let raw_bytes = self.record.len() as u64;
        self.record.clear();
        self.record.shrink_to(KEPT_BYTES);
        Packed { raw_bytes, bytes: bytes as u64 }
    }

    /// Writes a record like [`Packer::pack`], but in pieces and without compressing it.
    ///
    /// # Errors
    /// Returns an error of the disk. Part of the record may have been written by then, which the
    /// caller must remove.
    pub(super) fn stream(
        &mut self,
        out: &mut Outlet<'_>,
        block: &[u8],
        fields: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Packed, disk::Error> {
        self.record.clear();
        fields(&mut self.record);
        let start = out.len();
        let parts = [&self.record, block, END];
        if self.gzip.is_some() {
            put_member(parts, out)?;
        } else {
            for part in parts {
                out.put(part)?;
            }
        }
        let raw_bytes = parts.iter().map(|part| part.len() as u64).sum();
        Ok(Packed { raw_bytes, bytes: out.len() - start })
    }
}

/// Writes one gzip member that consists of uncompressed (stored) blocks, the last of them empty.
fn put_member(parts: [&[u8]; 3], out: &mut Outlet<'_>) -> Result<(), disk::Error> {
    /// The gzip header: no name, no time, fastest compression, unknown system.
    const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];
    const LAST: [u8; 5] = [1, 0, 0, 0xff, 0xff];
    let (mut crc, mut bytes) = (Crc::new(), 0_u32);
    out.put(&HEAD)?;
    for piece in parts.iter().flat_map(|part| part.chunks(usize::from(u16::MAX))) {
        let length = piece.len() as u16;
        let [[a, b], [c, d]] = [length.to_le_bytes(), (!length).to_le_bytes()];
        out.put(&[0, a, b, c, d])?;
        out.put(piece)?;
        crc.update(piece);
        bytes = bytes.wrapping_add(u32::from(length));
    }
    out.put(&LAST)?;
    out.put(&crc.sum().to_le_bytes())?;
    out.put(&bytes.to_le_bytes())
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").field("gzip", &self.gzip.is_some()).finish_non_exhaustive()
    }
}

/// Returns the maximum length of a gzip member for `raw_bytes` bytes of data: these bytes, a
/// header, a trailer, and five bytes for each stored block.
pub(super) fn bytes_max(raw_bytes: u64) -> u64 {
    raw_bytes + raw_bytes / 1_000 + 64
}

/// Decodes `bytes`, which must be exactly the bytes of one record in a file. Returns the
/// uncompressed record in newly allocated memory. Returns `None` if `bytes` are not one complete
/// record, by the checksum of its gzip member or the digest of its block.
pub(super) fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    const MEMBER_BYTES_MIN: usize = 18;
    /// The maximum ratio of deflate: 258 bytes for two bits.
    const RATIO_MAX: usize = 1_032;
    const RECORD_BYTES_MAX: usize = 1 << 30;
    let is_packed = bytes.starts_with(&[0x1f, 0x8b]);
    let record = if is_packed {
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
    let is_whole = if is_packed { block_of(&record).is_some() } else { is_sound(&record) };
    is_whole.then_some(record)
}

/// Returns whether an uncompressed record is complete and its block has the digest that its head
/// states.
pub(super) fn is_sound(record: &[u8]) -> bool {
    let digest = || field(record, "WARC-Block-Digest");
    block_of(record).is_some_and(|block| digest().is_none_or(|digest| is_of(block, digest)))
}

/// Returns the block of an uncompressed record; `None` if it isn't one complete record. A head with
/// control bytes is invalid (WARC 1.1, section 4): zeros that begin in the head of one record and
/// end in that of another would otherwise merge the two.
pub(super) fn block_of(record: &[u8]) -> Option<&[u8]> {
    let head_bytes = head_bytes(record)?;
    let head = &record[..head_bytes];
    let is_text = |byte: &u8| !byte.is_ascii_control() || matches!(byte, b'\r' | b'\n' | b'\t');
    let block_bytes = content_length(head)?;
    let end = head_bytes.checked_add(block_bytes)?;
    let whole = head.starts_with(b"WARC/1.1\r\n")
        && head.iter().all(is_text)
        && end.checked_add(END.len())? == record.len()
        && record.ends_with(END);
    whole.then(|| &record[head_bytes..end])
}

/// Returns the value of a field in the head of a record that this program wrote; `None` if there is
/// no such field.
pub(super) fn field<'a>(record: &'a [u8], name: &str) -> Option<&'a str> {
    let head = std::str::from_utf8(&record[..head_bytes(record)?]).ok()?;
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn head_bytes(record: &[u8]) -> Option<usize> {
    memchr::memmem::find(record, END).map(|at| at + END.len())
}

/// Returns whether `bytes` consist of complete records only.
pub(super) fn are_whole(bytes: &[u8]) -> bool {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        // Each member ends with a checksum of its own.
        let mut members = flate2::bufread::MultiGzDecoder::new(bytes);
        return io::copy(&mut members, &mut io::sink()).is_ok();
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        let head = memchr::memmem::find(rest, b"\r\n\r\n").map(|at| at + 4);
        let block = head.and_then(|head| head.checked_add(content_length(&rest[..head])?));
        let end = block.and_then(|block| block.checked_add(4)).filter(|end| *end <= rest.len());
        let Some(end) = end.filter(|end| unpack(&rest[..*end]).is_some()) else { return false };
        rest = &rest[end..];
    }
    true
}

fn content_length(head: &[u8]) -> Option<usize> {
    field(head, "Content-Length")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::digest::Algorithm;
    use super::*;
    use crate::ground::disk::memory::Memory;
    use crate::ground::tail::Tail;
    use std::io::Read;

    #[test]
    fn ids_are_version_four_and_repeat_from_the_seed() {
        let (mut ids, mut again) = (Ids::new(42), Ids::new(42));
        for _ in 0..1_000 {
            let id = ids.next();
            assert_eq!(id, again.next());
            let mut text = Vec::new();
            id.push(&mut text);
            let text = String::from_utf8(text).expect("digits");
            let plain: String = id.0.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(text[10..46].replace('-', ""), plain);
            let dashes: Vec<usize> = text.match_indices('-').map(|(place, _)| place).collect();
            assert_eq!(dashes, [18, 23, 28, 33], "RFC 9562, section 4");
            assert_eq!((&text[..10], &text[46..]), ("<urn:uuid:", ">"));
            assert_eq!(&text[24..25], "4", "version: {text}");
            assert!("89ab".contains(&text[29..30]), "variant: {text}");
        }
        assert_ne!(Ids::new(1).next(), Ids::new(2).next());
    }

    /// A record as written by [`Packer::stream`], on a disk without faults.
    fn streamed(level: u8, block: &[u8], fields: impl FnOnce(&mut Vec<u8>)) -> (Vec<u8>, Packed) {
        let (mut disk, mut tail) = (Memory::default(), Tail::new("x".to_owned(), 0));
        let mut packer = Packer::new(level, usize::MAX);
        let mut out = Outlet { tail: &mut tail, disk: &mut disk, buffer_bytes: 70_000 };
        let packed = packer.stream(&mut out, block, fields).expect("room");
        assert!(packer.record.capacity() < 1_000, "the block isn't copied");
        tail.flush(&mut disk, 0).expect("room");
        (disk.bytes("x"), packed)
    }

    fn example(out: &mut Vec<u8>) {
        let id = Ids::new(3).next();
        Record::begin(out, Kind::Request, id, "2026-11-20T09:38:49Z").end(b"GET /");
    }

    /// Records truncated or changed anywhere are not accepted as complete.
    #[test]
    fn damaged_records_are_not_whole() {
        let mut members = Vec::new();
        for level in [0, 1] {
            let mut bytes = Vec::new();
            let packed = Packer::new(level, usize::MAX).pack(&mut bytes, b"GET /", example);
            members.push((level, bytes, packed));
            let (bytes, packed) = streamed(level, b"GET /", example);
            members.push((level, bytes, packed));
        }
        for (level, bytes, packed) in members {
            assert_eq!(packed.bytes, bytes.len() as u64);
            let record = unpack(&bytes).expect("whole");
            assert_eq!(packed.raw_bytes, record.len() as u64);
            for cut in 0..bytes.len() {
                assert_eq!(unpack(&bytes[..cut]), None, "cut at {cut}");
            }
            for place in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[place] ^= 0x55;
                if level == 0 || place <= 9 {
                    let _ = unpack(&flipped);
                    continue;
                }
                // The padding of a stored block may be anything: RFC 1951, section 3.2.4.
                let whole = unpack(&flipped);
                assert!(whole.is_none_or(|whole| whole == record), "flipped at {place}");
            }
        }
    }

    /// Law: a page that was lost in a power failure is detected wherever it is, even if it begins
    /// in one record and ends in another, and the remains of both would form one record.
    #[test]
    fn zeros_in_records_are_found() {
        let mut bytes = Vec::new();
        let mut ids = Ids::new(5);
        for kind in [Kind::Response, Kind::Request, Kind::Response, Kind::Request] {
            let block = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
            let id = ids.next();
            Packer::new(0, usize::MAX).pack(&mut bytes, block, |out| {
                let mut record = Record::begin(out, kind, id, "2026-11-20T09:38:49Z");
                record.digest("WARC-Block-Digest", &Algorithm::Sha1Base32.of(block));
                record.end(block);
            });
        }
        assert!(are_whole(&bytes));
        for from in 0..bytes.len() {
            for to in (from + 1..=bytes.len()).step_by(7) {
                let mut holed = bytes.clone();
                holed[from..to].fill(0);
                assert!(!are_whole(&holed), "{from} to {to}");
            }
        }
    }

    #[test]
    fn members_never_pass_the_bound() {
        let mut ids = Ids::new(9);
        for size in [0, 1, 100, 65_535, 65_536, 70_000, 300_000] {
            let noise: Vec<u8> = (0..size).map(|_| ids.word() as u8).collect();
            let bound = bytes_max((size + END.len()) as u64);
            for level in [1, 12] {
                let mut out = vec![7; 5];
                let packed = Packer::new(level, usize::MAX).pack(&mut out, &noise, |_| ());
                assert_eq!(out.len() as u64, 5 + packed.bytes);
                assert!(packed.bytes <= bound, "{size}: {packed:?}");
            }
            let (out, packed) = streamed(1, &noise, |_| ());
            assert_eq!(out.len() as u64, packed.bytes);
            assert!(packed.bytes <= bound, "{size}: {packed:?}");
        }
    }

    /// Another inflater decodes a member to exactly the bytes that were written.
    #[test]
    fn streamed_members_hold_what_was_put() {
        let mut ids = Ids::new(11);
        for size in [0, 1, 65_534, 65_535, 65_536, 200_000] {
            let noise: Vec<u8> = (0..size).map(|_| ids.word() as u8).collect();
            let mut expected = Vec::new();
            example(&mut expected);
            expected.extend_from_slice(&noise);
            expected.extend_from_slice(END);
            let (plain, packed) = streamed(0, &noise, example);
            assert_eq!((plain.len() as u64, packed.raw_bytes), (packed.bytes, packed.bytes));
            assert!(plain == expected, "{size}");
            let (member, _) = streamed(1, &noise, example);
            let mut decoder = flate2::bufread::GzDecoder::new(&member[..]);
            let mut record = Vec::new();
            decoder.read_to_end(&mut record).expect("a whole member");
            assert!(record == expected, "{size}");
            assert!(decoder.into_inner().is_empty(), "one member and nothing behind it");
        }
    }
}
