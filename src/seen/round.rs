//! A batch on its way: its buckets are merged one by one, then its first-timers are let out.
//!
//! A merge says by a bit for each key of its bucket's part which are first-timers. Reading the log
//! from its start gives them in order of arrival: each record's key says its bucket, and it is the
//! next of that bucket's part. When the frontier starves they are let out before all buckets are
//! merged, as soon as what was merged weighs as much as the log: so reading it again and again at
//! most doubles the work, and with a short log each bucket's first-timers come at once.
//!
//! Laws: each first-timer is let out once; nothing is read while earlier ones wait to be taken.
//! Cost: the log read once, 3 ns a record beside its bytes.

use super::batch::{BUCKETS, Batch, Part, bucket_of};
use super::log::{self, Log};
use super::merge::Merging;
use crate::ground::disk::Disk;
use crate::ground::frame::{self, Flaw, Frame, Role};

/// What is left of a batch.
#[derive(Debug)]
pub(super) struct Round {
    /// Its bytes; what isn't on disk yet goes with the next job.
    pub(super) log: Log,
    /// By bucket; those done are empty.
    parts: Vec<Part>,
    /// First-timers that are still in the log.
    waiting: Firsts,
    /// How far they have been read.
    reading: Option<Cursor>,
    /// Bytes read and written since first-timers were let out.
    moved_bytes: u64,
}

/// What the round wants done next.
#[derive(Debug)]
pub(super) enum Step {
    /// The next bucket with keys: its number and its keys.
    Merge(usize, Part),
    /// Read on.
    Read(Reading),
    /// First let the fresh ones be taken.
    Wait,
}

impl Round {
    /// Begins.
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

    /// What is next. `spare` is memory for first-timers; there is none until the last were taken.
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

    /// A bucket is merged.
    pub(super) fn merged(&mut self, merging: &mut Merging) {
        let merged = &mut merging.merged;
        self.waiting.count += merged.admitted;
        self.waiting.parts[merging.number] = std::mem::take(&mut merged.firsts);
        self.moved_bytes += merged.read_bytes + merged.new.map_or(0, |new| new.bytes);
    }

    /// A piece of the log is read.
    pub(super) fn read(&mut self, reading: Reading) {
        if reading.waiting.count > 0 {
            self.reading = Some(reading.cursor);
            self.waiting = reading.waiting;
        }
    }

    /// Whether all is merged and let out.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.count == 0 && self.parts.iter().all(|part| part.len() == 0)
    }

    /// Those of one bucket that are not yet merged.
    pub(super) fn part(&self, number: usize) -> &Part {
        &self.parts[number]
    }

    /// Keys not yet merged.
    pub(super) fn keys(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }
}

/// A place in a log.
#[derive(Debug)]
struct Cursor {
    /// `None`: it is to be opened (again).
    reader: Option<frame::Reader>,
    /// Where the next frame begins.
    offset: u64,
    /// How many records of each bucket were passed.
    passed: Box<[u32; BUCKETS]>,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { reader: None, offset: 0, passed: Box::new([0; BUCKETS]) }
    }
}

/// Reads first-timers from a log.
#[derive(Debug)]
pub(super) struct Reading {
    log: String,
    log_bytes: u64,
    cursor: Cursor,
    waiting: Firsts,
    /// Where the first-timers of one frame begin.
    starts: Vec<usize>,
    /// First-timers found, each a length and its bytes.
    pub(super) found: Vec<u8>,
    /// Bytes read.
    pub(super) bytes: u64,
}

/// A job stops when it has found so much,
const FOUND_BYTES: usize = 1 << 20;
/// or read so much.
const READ_BYTES: u64 = 16 << 20;

impl Reading {
    /// Reads on until enough is found. On an error nothing is: the next try begins where this one
    /// began.
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

    /// Opens the log, and passes over what was read before.
    fn open(&self, crawl: u64, disk: &mut dyn Disk) -> Result<frame::Reader, frame::Error> {
        let end = Some(self.log_bytes);
        let mut reader = frame::Reader::open(&self.log, Role::Pending, crawl, end, disk)?;
        while reader.offset() < self.cursor.offset {
            reader.next(disk)?;
        }
        Ok(reader)
    }

    /// Takes the first-timers out of a frame. Where they begin is found first, in a loop that
    /// doesn't branch on what is one.
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

/// The first-timers of a batch, as far as it is merged.
#[derive(Debug)]
struct Firsts {
    /// By bucket; without bits where nothing is merged, or all was let out.
    parts: Vec<Bits>,
    /// Bits that are set, but for those of first-timers that were let out.
    count: usize,
}

impl Default for Firsts {
    fn default() -> Self {
        Self { parts: std::iter::repeat_with(Bits::default).take(BUCKETS).collect(), count: 0 }
    }
}

/// A bit for each URL of a bucket's part.
#[derive(Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// `len` bits, all clear.
    pub(super) fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(u64::BITS as usize)])
    }

    /// Whether a bit is there, and set.
    pub(super) fn has(&self, place: u32) -> bool {
        let word = self.0.get((place / u64::BITS) as usize);
        word.is_some_and(|word| word >> (place % u64::BITS) & 1 == 1)
    }

    /// Sets a bit, if it is `true`.
    pub(super) fn put(&mut self, place: u32, bit: bool) {
        self.0[(place / u64::BITS) as usize] |= u64::from(bit) << (place % u64::BITS);
    }
}
