//! Frames: the format of every file in which a job keeps its state.
//!
//! A file is a sequence of frames, each with a kind, a payload and a checksum. The first frame (the
//! opening) identifies the crawl and the content of the file, so that no file is taken for another.
//! Files grow by appends only, or are written once. The checkpoint records the valid length of a
//! growing file, and readers ignore what a crash left behind it.
//!
//! ```text
//! frame    payload length u32 | kind u8 | CRC-32 of kind and payload u32 | payload
//! opening  kind 0: "sted" | role u8 | format u16 | number of the crawl u64
//! ```
//!
//! Laws: a file with a changed bit, a missing end or bytes of another file is reported with its
//! name and the offset, and never read as if it were whole. A length in a file that exceeds
//! [`PAYLOAD_BYTES_MAX`] is reported as damage. Cost: nine bytes and a checksum (some GB/s) for
//! each frame; a reader holds one piece of the file (256 KiB), or the longest payload.

use crate::ground::codec::{Put, Short, Take};
use crate::ground::disk::{self, Disk};
use std::fmt;

/// The longest payload of a frame. A greater length in a file is damage.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// The number of bytes of a frame before its payload: length, kind and checksum.
pub const OVERHEAD_BYTES: usize = 9;
/// The version of all file formats below `state/`. Files of any other version are refused.
pub const FORMAT: u16 = 10;
/// The kind of the frame that opens a file.
const OPENING: u8 = 0;
const MAGIC: &[u8] = b"sted";
/// The number of bytes that a reader reads from the disk at a time.
const PIECE_BYTES: usize = 256 << 10;

/// What a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// A checkpoint's snapshot: servers, queues in memory, counters.
    Snapshot = 1,
    /// Fingerprints in order of arrival, while all of them fit into memory.
    Keys = 2,
    /// URLs of a batch that have not been tested yet for having been seen before.
    Pending = 3,
    /// The sorted fingerprints of one range of fingerprints.
    Bucket = 4,
    /// Chunks of queued URLs, each of one server.
    Segment = 5,
    /// The stream of discovered URLs, for cache studies.
    Trace = 6,
    /// Parsed robots.txt rules, by server.
    Rules = 7,
    /// URLs of servers that were given up.
    GivenUp = 8,
    /// Messages that wait to be published to the other nodes of the crawl.
    Outbox = 9,
    /// Known pages, by the time at which they are due.
    Known = 10,
    /// URLs over the budget of their domain, by the pass that they wait for.
    Budgets = 11,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "a snapshot",
            Self::Keys => "a list of fingerprints",
            Self::Pending => "a list of URLs to be tested",
            Self::Bucket => "a bucket of fingerprints",
            Self::Segment => "a segment of queues",
            Self::Trace => "a trace",
            Self::Rules => "a segment of robots.txt rules",
            Self::GivenUp => "a segment of URLs given up",
            Self::Outbox => "a segment of messages to other nodes",
            Self::Known => "a segment of known pages",
            Self::Budgets => "a segment of URLs over a budget",
        }
    }
}

/// A parsed frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the payload contains; each role has its own kinds. Never 0.
    pub kind: u8,
    /// The payload.
    pub payload: &'a [u8],
    /// The offset of the frame in its file, in bytes.
    pub offset: u64,
}

/// Appends a frame of the kind `kind` with the given payload to `out`.
pub fn push(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    push_with(kind, out, |out| out.extend_from_slice(payload));
}

/// Appends a frame of the kind `kind` to `out`. `write` appends the payload to the same buffer, so
/// it isn't copied.
pub fn push_with(kind: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; OVERHEAD_BYTES]);
    write(out);
    let payload = start + OVERHEAD_BYTES;
    let len = out.len() - payload;
    assert!(len <= PAYLOAD_BYTES_MAX, "a payload of {len} bytes is too long for a frame");
    let sum = checksum(kind, &out[payload..]);
    out[start..start + 4].copy_from_slice(&u32::try_from(len).expect("capped").to_le_bytes());
    out[start + 4] = kind;
    out[start + 5..payload].copy_from_slice(&sum.to_le_bytes());
}

/// Appends the frame that opens a file to `out`: the role of the file and the number of the crawl.
pub fn push_opening(role: Role, crawl: u64, out: &mut Vec<u8>) {
    push_with(OPENING, out, |out| {
        out.extend_from_slice(MAGIC);
        out.put_u8(role as u8);
        out.put_u16(FORMAT);
        out.put_u64(crawl);
    });
}

/// The length of the frame that opens a file, in bytes.
pub const OPENING_BYTES: usize = OVERHEAD_BYTES + 15;

/// Parses the frame at the front of `bytes`. Returns the frame and its length in bytes. `offset` is
/// the position of `bytes` in the file, and becomes [`Frame::offset`].
pub fn parse(bytes: &[u8], offset: u64) -> Result<(Frame<'_>, usize), Flaw> {
    let mut take = Take::new(bytes);
    let len = take.u32().map_err(|Short| Flaw::Cut)? as usize;
    if len > PAYLOAD_BYTES_MAX {
        return Err(Flaw::Changed);
    }
    let kind = take.u8().map_err(|Short| Flaw::Cut)?;
    let sum = take.u32().map_err(|Short| Flaw::Cut)?;
    let payload = take.raw(len).map_err(|Short| Flaw::Cut)?;
    if checksum(kind, payload) != sum {
        return Err(Flaw::Changed);
    }
    Ok((Frame { kind, payload, offset }, OVERHEAD_BYTES + len))
}

fn checksum(kind: u8, payload: &[u8]) -> u32 {
    let mut crc = libdeflater::Crc::new();
    crc.update(&[kind]);
    crc.update(payload);
    crc.sum()
}

/// A defect of a frame or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The file ends in the middle of a frame.
    Cut,
    /// The checksum of a frame is wrong.
    Changed,
    /// The checksum is right, but the content is not valid.
    Senseless,
    /// The file doesn't have the role given here, which was expected, or belongs to another crawl.
    Foreign(Role),
    /// Another version of the program wrote the file, in the format given here.
    Version(u16),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("ends too early"),
            Self::Changed => f.write_str("has changed since it was written (wrong checksum)"),
            Self::Senseless => f.write_str("contains an invalid value"),
            Self::Foreign(role) => write!(f, "is not {} of this crawl", role.name()),
            Self::Version(format) => {
                let age = if *format > FORMAT { "a newer" } else { "an older" };
                write!(f, "was written by {age} sted (format {format}; this one knows {FORMAT})")
            }
        }
    }
}

impl From<Short> for Flaw {
    fn from(Short: Short) -> Self {
        Self::Senseless
    }
}

/// A damaged file of the state: its name, the offset, and the defect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file's name, relative to the job directory.
    pub name: String,
    /// The offset of the defect, in bytes.
    pub offset: u64,
    /// The defect.
    pub flaw: Flaw,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: at byte {}: {}", self.name, self.offset, self.flaw)
    }
}

/// Why a file of the state could not be read.
#[derive(Debug)]
pub enum Error {
    /// The disk reported an error.
    Disk(disk::Error),
    /// The file is damaged.
    Damaged(Damage),
}

impl From<disk::Error> for Error {
    fn from(error: disk::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Damaged(damage) => damage.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// What one component of the crawler contributes to a checkpoint: bytes for the snapshot, and files
/// of its own.
///
/// Until a later checkpoint is durable, the files may change by appends only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The bytes in the snapshot from which the component is restored.
    pub state: Vec<u8>,
    /// The files that must be synced before the checkpoint is published: names relative to the job
    /// directory, and the valid length of each in bytes.
    pub files: Vec<(String, u64)>,
}

/// Reads a file frame by frame.
#[derive(Debug)]
pub struct Reader {
    name: String,
    /// The offset at which reading ends: the valid length of the file in bytes.
    end: u64,
    /// The offset in the file at which `buffer` begins.
    base: u64,
    buffer: Vec<u8>,
    /// The position of the next frame in `buffer`.
    next: usize,
}

impl Reader {
    /// Opens the file `name` and checks its role and crawl. Reading stops at `end`, the valid
    /// length in bytes; `None` reads the whole file.
    pub fn open(
        name: &str,
        role: Role,
        crawl: u64,
        end: Option<u64>,
        disk: &mut dyn Disk,
    ) -> Result<Self, Error> {
        let cut = |offset| Damage { name: name.to_owned(), offset, flaw: Flaw::Cut };
        let len = disk.len(name)?.ok_or_else(|| cut(0))?;
        let end = end.unwrap_or(len);
        if len < end {
            return Err(cut(len).into());
        }
        let (name, buffer) = (name.to_owned(), Vec::new());
        let mut reader = Self { name, end, base: 0, buffer, next: 0 };
        let opening = reader.next(disk)?.map(|frame| check_opening(frame, role, crawl));
        match opening {
            Some(Ok(())) => Ok(reader),
            Some(Err(flaw)) => Err(reader.damage(0, flaw).into()),
            None => Err(reader.damage(0, Flaw::Cut).into()),
        }
    }

    /// Returns the next frame, or `None` at the end of the valid length.
    pub fn next(&mut self, disk: &mut dyn Disk) -> Result<Option<Frame<'_>>, Error> {
        let at = self.offset();
        if at >= self.end {
            return Ok(None);
        }
        let mut wanted = OVERHEAD_BYTES;
        self.fill(wanted, disk)?;
        if let Some(head) = self.buffer.get(self.next..self.next + 4) {
            let len = u32::from_le_bytes(head.try_into().expect("four bytes")) as usize;
            wanted += len.min(PAYLOAD_BYTES_MAX);
            self.fill(wanted, disk)?;
        }
        let parsed = parse(&self.buffer[self.next..], at);
        let used = match parsed {
            Ok((_, used)) => used,
            Err(flaw) => return Err(self.damage(at, flaw).into()),
        };
        let from = self.next;
        self.next += used;
        let (frame, _) = parse_again(&self.buffer[from..self.next], at);
        Ok(Some(frame))
    }

    /// Returns the offset of the next frame in the file.
    pub fn offset(&self) -> u64 {
        self.base + self.next as u64
    }

    /// Continues reading with the frame at the file offset `offset`.
    pub fn seek(&mut self, offset: u64) {
        self.base = offset;
        self.buffer.clear();
        self.next = 0;
    }

    /// Returns the report of a defect at `offset` of this file.
    pub fn damage(&self, offset: u64, flaw: Flaw) -> Damage {
        Damage { name: self.name.clone(), offset, flaw }
    }

    /// Reads until the buffer holds `wanted` bytes from the next frame on, or the file ends.
    fn fill(&mut self, wanted: usize, disk: &mut dyn Disk) -> Result<(), Error> {
        if self.buffer.len() - self.next >= wanted {
            return Ok(());
        }
        self.buffer.drain(..self.next);
        self.base += self.next as u64;
        self.next = 0;
        let mut have = self.buffer.len();
        let left = self.end - self.base;
        let most = wanted.max(PIECE_BYTES).min(usize::try_from(left).unwrap_or(usize::MAX));
        self.buffer.resize(most.max(have), 0);
        while have < self.buffer.len() {
            match disk.read_at(&self.name, self.base + have as u64, &mut self.buffer[have..])? {
                0 => break,
                more => have += more,
            }
        }
        self.buffer.truncate(have);
        Ok(())
    }
}

/// Parses a frame whose checksum was found right before, without computing it again. Returns the
/// frame and its length in bytes.
fn parse_again(bytes: &[u8], offset: u64) -> (Frame<'_>, usize) {
    let payload = &bytes[OVERHEAD_BYTES..];
    (Frame { kind: bytes[4], payload, offset }, bytes.len())
}

/// Checks that an opening frame has the role `role` and the crawl's number `crawl`.
fn check_opening(frame: Frame<'_>, role: Role, crawl: u64) -> Result<(), Flaw> {
    let of = crawl_of(frame, role)?;
    if of == crawl { Ok(()) } else { Err(Flaw::Foreign(role)) }
}

/// Returns the number of the crawl in an opening frame, after checking that it has the role `role`.
pub fn crawl_of(frame: Frame<'_>, role: Role) -> Result<u64, Flaw> {
    let mut take = Take::new(frame.payload);
    let magic = take.raw(MAGIC.len());
    if frame.kind != OPENING || magic != Ok(MAGIC) {
        return Err(Flaw::Foreign(role));
    }
    let mut read =
        || -> Result<(u8, u16, u64), Short> { Ok((take.u8()?, take.u16()?, take.u64()?)) };
    match read() {
        Ok((_, format, _)) if format != FORMAT => Err(Flaw::Version(format)),
        Ok((found, _, of)) if found == role as u8 => Ok(of),
        Ok(_) => Err(Flaw::Foreign(role)),
        Err(Short) => Err(Flaw::Cut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::disk::memory::Memory;

    const CRAWL: u64 = 0x5eed;

    fn file(payloads: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut out = Vec::new();
        push_opening(Role::Keys, CRAWL, &mut out);
        payloads.iter().for_each(|(kind, payload)| push(*kind, payload, &mut out));
        out
    }

    fn disk_with(bytes: &[u8]) -> Memory {
        let mut disk = Memory::default();
        disk.append("x", bytes).expect("there is room");
        disk
    }

    fn read_all(bytes: &[u8], end: Option<u64>) -> Result<Vec<(u8, Vec<u8>)>, Error> {
        let mut disk = disk_with(bytes);
        let mut reader = Reader::open("x", Role::Keys, CRAWL, end, &mut disk)?;
        let mut found = Vec::new();
        while let Some(frame) = reader.next(&mut disk)? {
            found.push((frame.kind, frame.payload.to_vec()));
        }
        Ok(found)
    }

    fn sample() -> Vec<(u8, Vec<u8>)> {
        vec![(1, b"one".to_vec()), (2, Vec::new()), (9, vec![7; 600_000]), (1, vec![0; 40])]
    }

    fn flaw(error: Error) -> Damage {
        match error {
            Error::Damaged(damage) => damage,
            Error::Disk(error) => panic!("{error}"),
        }
    }

    #[test]
    fn what_was_pushed_is_read() {
        assert_eq!(read_all(&file(&sample()), None).unwrap(), sample());
        let counted = file(&sample()[..2]).len() as u64;
        let found = read_all(&file(&sample()), Some(counted)).unwrap();
        assert_eq!(found, sample()[..2], "what does not count is passed over");
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_reported() {
        let whole = file(&[(1, b"one".to_vec()), (3, vec![5; 30])]);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let damage = flaw(read_all(&bytes, None).unwrap_err());
            assert!(damage.offset <= (bit / 8) as u64, "{damage}: bit {bit}");
        }
        for end in 0..whole.len() {
            let read = read_all(&whole[..end], Some(whole.len() as u64));
            assert_eq!(flaw(read.unwrap_err()).flaw, Flaw::Cut, "cut to {end}");
        }
    }

    #[test]
    fn files_of_others_are_refused() {
        let mut other = Vec::new();
        push_opening(Role::Bucket, CRAWL, &mut other);
        assert_eq!(
            flaw(read_all(&other, None).unwrap_err()).flaw,
            Flaw::Foreign(Role::Keys),
            "another role"
        );
        other.clear();
        push_opening(Role::Keys, CRAWL + 1, &mut other);
        assert_eq!(
            flaw(read_all(&other, None).unwrap_err()).flaw,
            Flaw::Foreign(Role::Keys),
            "another crawl"
        );
        for (format, age) in [(FORMAT + 1, "a newer sted"), (FORMAT - 1, "an older sted")] {
            let mut other = Vec::new();
            push_with(OPENING, &mut other, |out| {
                out.extend_from_slice(b"sted\x02");
                out.put_u16(format);
                out.put_u64(CRAWL);
            });
            let damage = flaw(read_all(&other, None).unwrap_err());
            assert_eq!(damage.flaw, Flaw::Version(format));
            assert!(damage.to_string().contains(age), "{damage}");
        }
        assert_eq!(flaw(read_all(b"", None).unwrap_err()).flaw, Flaw::Cut, "an empty file");
    }

    #[test]
    fn opening_has_its_length() {
        assert_eq!(file(&[]).len(), OPENING_BYTES);
    }
}
