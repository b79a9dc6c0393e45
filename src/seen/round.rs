//! A round: merges the keys of a batch into the buckets on disk one by one, then extracts the new
//! URLs of the batch from its log.
//!
//! A merge returns a bit for each key of its bucket that says whether the URL is new. Reading the
//! log from its start gives the new URLs in order of arrival: the key of a record determines its
//! bucket, and it is the next key of that bucket's part. When the frontier runs dry, URLs are
//! extracted before all buckets are merged, as soon as the merges have moved as many bytes as the
//! log has. So reading the log repeatedly at most doubles the work, and with a short log the new
//! URLs of each bucket come at once.
//!
//! Laws: each new URL comes out once; nothing is read while earlier ones wait to be taken.
//! Cost: the log is read once, 3 ns a record in addition to its bytes.

use super::batch::{BUCKETS, Batch, Part, bucket_of};
use super::log::{self, Log};
use super::merge::Merging;
use crate::ground::disk::Disk;
use crate::ground::frame::{self, Flaw, Frame, Role};

/// A batch whose keys are being merged into the buckets.
#[derive(Debug)]
pub(super) struct Round {
    /// The log with the bytes of the batch's URLs. The part that isn't written yet is written by
    /// the next job.
    pub(super) log: Log,
    /// The keys of each bucket; empty for buckets that are merged.
    parts: Vec<Part>,
    /// The new URLs that are still to be extracted from the log.
    waiting: Firsts,
    /// The position up to which the log has been read; `None` before the first read.
    reading: Option<Cursor>,
    /// The number of bytes read and written since URLs were last extracted.
    moved_bytes: u64,
}

/// The next step of a round.
#[derive(Debug)]
pub(super) enum Step {
    /// Merge a bucket: its number, and the keys to merge into it.
    Merge(usize, Part),
    /// Continue to read the log, with this task.
    Read(Reading),
    /// Wait until the caller has taken the extracted URLs.
    Wait,
}

impl Round {
    /// Begins a round with a full batch.
    pub(super) fn new(mut batch: Batch) -> Self {
        batch.log.close_frame();
        Self {
            log: batch.log,
            parts: batch.parts,
            waiting: Firsts::default(),
            reading: None,
            moved_bytes: 0,
        }
    }

    /// Returns the next step. `hastened` is true if new URLs are wanted before all buckets are
    /// merged. `spare` is memory for new URLs; it is `None` until the last extracted ones were
    /// taken.
    pub(super) fn step(&mut self, hastened: bool, spare: Option<&mut Vec<u8>>) -> Step {
        let early = hastened && self.moved_bytes >= self.log.len();
        let next = self.parts.iter().position(|part| part.len() > 0);
        match next {
            Some(number) if self.reading.is_none() && (self.waiting.count == 0 || !early) => {
                Step::Merge(number, std::mem::take(&mut self.parts[number]))
            }
            _ => {
                let Some(found) = spare else { return Step::Wait };
                self.moved_bytes = 0;
                Step::Read(Reading {
                    log: self.log.name().to_owned(),
                    log_bytes: self.log.len(),
                    cursor: self.reading.take().unwrap_or_default(),
                    waiting: std::mem::take(&mut self.waiting),
                    starts: Vec::new(),
                    found: std::mem::take(found),
                    bytes: 0,
                })
            }
        }
    }

    /// Records the result of merging one bucket.
    pub(super) fn merged(&mut self, merging: &mut Merging) {
        let merged = &mut merging.merged;
        self.waiting.count += merged.admitted;
        self.waiting.parts[merging.number] = std::mem::take(&mut merged.firsts);
        self.moved_bytes += merged.read_bytes + merged.new.map_or(0, |new| new.bytes);
    }

    /// Records the result of reading a part of the log.
    pub(super) fn read(&mut self, reading: Reading) {
        if reading.waiting.count > 0 {
            self.reading = Some(reading.cursor);
            self.waiting = reading.waiting;
        }
    }

    /// Returns whether all buckets are merged and all new URLs extracted.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.count == 0 && self.parts.iter().all(|part| part.len() == 0)
    }

    /// Returns the keys of one bucket that are not merged yet.
    pub(super) fn part(&self, number: usize) -> &Part {
        &self.parts[number]
    }

    /// Returns the number of keys that are not merged yet.
    pub(super) fn keys(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }
}

/// A position in a log file.
#[derive(Debug)]
struct Cursor {
    /// The open log file; `None` if it must be opened (again).
    reader: Option<frame::Reader>,
    /// The offset of the next frame in the log file, in bytes.
    offset: u64,
    /// The number of records that were read, for each bucket.
    passed: Box<[u32; BUCKETS]>,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { reader: None, offset: 0, passed: Box::new([0; BUCKETS]) }
    }
}

/// A task for a job: extracts new URLs from a log.
#[derive(Debug)]
pub(super) struct Reading {
    log: String,
    log_bytes: u64,
    cursor: Cursor,
    waiting: Firsts,
    /// The offsets in the frame at which the records of new URLs begin.
    starts: Vec<usize>,
    /// The extracted URLs, each as its length and its bytes.
    pub(super) found: Vec<u8>,
    /// The number of bytes read from the log.
    pub(super) bytes: u64,
}

/// The number of bytes of extracted URLs at which a task stops.
const FOUND_BYTES: usize = 1 << 20;
/// The number of bytes read from the log at which a task stops.
const READ_BYTES: u64 = 16 << 20;

impl Reading {
    /// Reads the log until the task has extracted or read enough. On an error nothing is extracted,
    /// and the next attempt begins at the same position.
    pub(super) fn run(&mut self, crawl: u64, disk: &mut dyn Disk) -> Result<(), frame::Error> {
        self.found.clear();
        self.bytes = 0;
        let (passed, count) = (self.cursor.passed.clone(), self.waiting.count);
        let done = self.read_on(crawl, disk);
        if done.is_err() {
            self.cursor.reader = None;
            (self.cursor.passed, self.waiting.count) = (passed, count);
        }
        done
    }

    fn read_on(&mut self, crawl: u64, disk: &mut dyn Disk) -> Result<(), frame::Error> {
        let mut reader = match self.cursor.reader.take() {
            Some(reader) => reader,
            None => self.open(crawl, disk)?,
        };
        let began = reader.offset();
        while self.waiting.count > 0 && !is_enough(&self.found, reader.offset() - began) {
            let at = reader.offset();
            let frame = reader.next(disk)?;
            let taken = frame.and_then(|frame| self.take(&frame));
            taken.ok_or_else(|| reader.damage(at, Flaw::Senseless))?;
        }
        self.cursor.offset = reader.offset();
        self.bytes = reader.offset() - began;
        self.cursor.reader = Some(reader);
        Ok(())
    }

    /// Opens the log file at the position up to which it was read before.
    fn open(&self, crawl: u64, disk: &mut dyn Disk) -> Result<frame::Reader, frame::Error> {
        let end = Some(self.log_bytes);
        let mut reader = frame::Reader::open(&self.log, Role::Pending, crawl, end, disk)?;
        while reader.offset() < self.cursor.offset {
            reader.next(disk)?;
        }
        Ok(reader)
    }

    /// Extracts the new URLs of one frame; `None` if the frame is invalid. A first loop finds where
    /// they begin, without a branch on whether a URL is new.
    fn take(&mut self, frame: &Frame<'_>) -> Option<()> {
        let (keys, bodies) = log::take_records(frame)?;
        self.starts.resize(self.starts.len().max(keys.len() + 1), 0);
        let (mut at, mut found) = (0, 0);
        for key in keys {
            let bucket = bucket_of(u64::from_le_bytes(*key));
            let passed = &mut self.cursor.passed[bucket];
            let is_first = self.waiting.parts[bucket].has(*passed);
            *passed = passed.wrapping_add(1);
            self.starts[found] = at;
            found += usize::from(is_first);
            let (len, _) = log::split_body(bodies.get(at..)?)?;
            at += size_of::<u32>() + len;
        }
        if at != bodies.len() {
            return None;
        }
        for &start in &self.starts[..found] {
            let (len, _) = log::split_body(&bodies[start..])?;
            self.found.extend_from_slice(&bodies[start..start + size_of::<u32>() + len]);
        }
        self.waiting.count = self.waiting.count.checked_sub(found)?;
        Some(())
    }
}

fn is_enough(found: &[u8], read_bytes: u64) -> bool {
    found.len() >= FOUND_BYTES || read_bytes >= READ_BYTES
}

/// The bits that mark the new URLs of a batch, for the buckets that are merged.
#[derive(Debug)]
struct Firsts {
    /// The bits of each bucket, one for each key. Empty if the bucket is not merged yet, or all its
    /// new URLs were extracted.
    parts: Vec<Bits>,
    /// The number of set bits, minus those of URLs that were extracted.
    count: usize,
}

impl Default for Firsts {
    fn default() -> Self {
        Self { parts: std::iter::repeat_with(Bits::default).take(BUCKETS).collect(), count: 0 }
    }
}

/// A bit for each key of one bucket, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// Creates `len` bits that are all clear.
    pub(super) fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(u64::BITS as usize)])
    }

    /// Returns whether the bit at `place` exists and is set.
    pub(super) fn has(&self, place: u32) -> bool {
        let word = self.0.get((place / u64::BITS) as usize);
        word.is_some_and(|word| word >> (place % u64::BITS) & 1 == 1)
    }

    /// Sets the bit at `place` if `bit` is true.
    pub(super) fn put(&mut self, place: u32, bit: bool) {
        self.0[(place / u64::BITS) as usize] |= u64::from(bit) << (place % u64::BITS);
    }
}
