//! A batch on its way: its buckets are merged one by one, then its first-timers are let out.
//!
//! Bits say which URLs of the batch are first-timers. Reading the log from its start then gives
//! them in order of arrival. When the frontier starves they are let out before all buckets are
//! merged, as soon as what was merged weighs as much as the log: so reading it again and again at
//! most doubles the work, and with a short log each bucket's first-timers come at once.
//!
//! Laws: each first-timer is let out once; nothing is read while earlier ones wait to be taken.

use super::batch::{Batch, Part};
use super::log::RECORDS;
use super::merge::Merging;
use crate::codec::{Short, Take};
use crate::disk::Disk;
use crate::frame::{self, Flaw, Role};

/// What is left of a batch.
#[derive(Debug)]
pub(super) struct Round {
    log: String,
    log_bytes: u64,
    /// By bucket; those done are empty.
    parts: Vec<Part>,
    /// First-timers that are still in the log.
    waiting: Bits,
    /// How far they have been read.
    reading: Option<Cursor>,
    /// Bytes read and written since first-timers were let out.
    moved_bytes: u64,
}

/// A place in a log.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// `None`: it is to be opened (again).
    reader: Option<frame::Reader>,
    /// URLs passed.
    place: u32,
}

/// What the round wants done next.
#[derive(Debug)]
pub(super) enum Step {
    /// The next bucket with keys: its number and its entries.
    Merge(usize, Part),
    /// Read on.
    Read(Reading),
    /// First let the fresh ones be taken.
    Wait,
}

impl Round {
    /// Begins; the log is on disk as a whole.
    pub(super) fn new(batch: Batch) -> Self {
        Self {
            log: batch.log.name().to_owned(),
            log_bytes: batch.log.len(),
            parts: batch.parts,
            waiting: Bits::new(batch.len),
            reading: None,
            moved_bytes: 0,
        }
    }

    /// What is next. `spare` is memory for first-timers; there is none until the last were taken.
    pub(super) fn step(&mut self, hastened: bool, spare: Option<&mut Vec<u8>>) -> Step {
        let early = hastened && self.moved_bytes >= self.log_bytes;
        let next = self.parts.iter().position(|part| part.len() > 0);
        match next {
            Some(number) if self.reading.is_none() && (self.waiting.is_empty() || !early) => {
                Step::Merge(number, std::mem::take(&mut self.parts[number]))
            }
            _ => {
                let Some(found) = spare else { return Step::Wait };
                self.moved_bytes = 0;
                Step::Read(Reading {
                    log: self.log.clone(),
                    log_bytes: self.log_bytes,
                    cursor: self.reading.take().unwrap_or_default(),
                    waiting: std::mem::take(&mut self.waiting),
                    found: std::mem::take(found),
                    bytes: 0,
                })
            }
        }
    }

    /// A bucket is merged.
    pub(super) fn merged(&mut self, merging: &Merging) {
        merging.merged.fresh.iter().for_each(|place| self.waiting.set(*place));
        let written_bytes = merging.merged.new.map_or(0, |new| new.bytes);
        self.moved_bytes += merging.merged.read_bytes + written_bytes;
    }

    /// A piece of the log is read.
    pub(super) fn read(&mut self, reading: Reading) {
        self.waiting = reading.waiting;
        self.reading = (!self.waiting.is_empty()).then_some(reading.cursor);
    }

    /// Whether all is merged and let out.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.parts.iter().all(|part| part.len() == 0)
    }

    /// Name of its log.
    pub(super) fn log(&self) -> &str {
        &self.log
    }

    /// Entries not yet merged.
    pub(super) fn entries(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }
}

/// Reads first-timers from a log.
#[derive(Debug)]
pub(super) struct Reading {
    log: String,
    log_bytes: u64,
    cursor: Cursor,
    waiting: Bits,
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
        let from = self.cursor.place;
        let done = self.read_on(crawl, disk);
        match done {
            Ok(place) => {
                self.cursor.place = place;
                self.waiting.clear(from, place);
            }
            Err(_) => self.cursor.reader = None,
        }
        done.map(|_| ())
    }

    fn read_on(&mut self, crawl: u64, disk: &mut dyn Disk) -> Result<u32, frame::Error> {
        let Cursor { reader, place: from } = &mut self.cursor;
        // A reader opened again passes over what was let out before.
        let mut place = if reader.is_some() { *from } else { 0 };
        let reader = match reader {
            Some(reader) => reader,
            None => {
                let end = Some(self.log_bytes);
                let opened = frame::Reader::open(&self.log, Role::Pending, crawl, end, disk)?;
                reader.insert(opened)
            }
        };
        let (mut found, began) = (0, reader.offset());
        while found < self.waiting.count && !is_enough(&self.found, reader.offset() - began) {
            let at = reader.offset();
            let read = match reader.next(disk)? {
                None => Err(Flaw::Senseless),
                Some(frame) => {
                    let keep = |_, bytes: &[u8]| {
                        if place >= *from && self.waiting.has(place) {
                            found += 1;
                            super::push_fresh(bytes, &mut self.found);
                        }
                        place = place.saturating_add(1);
                    };
                    records(frame, keep).map_err(|Short| Flaw::Senseless)
                }
            };
            read.map_err(|flaw| reader.damage(at, flaw))?;
        }
        self.bytes = reader.offset() - began;
        Ok(place)
    }
}

fn is_enough(found: &[u8], read_bytes: u64) -> bool {
    found.len() >= FOUND_BYTES || read_bytes >= READ_BYTES
}

/// The URLs in one frame of a log: key and bytes of each.
pub(super) fn records(
    frame: frame::Frame<'_>,
    mut take_one: impl FnMut(u64, &[u8]),
) -> Result<(), Short> {
    if frame.kind != RECORDS {
        return Err(Short);
    }
    let mut take = Take::new(frame.payload);
    while !take.is_empty() {
        let key = take.u64()?;
        take_one(key, take.bytes()?);
    }
    Ok(())
}

/// A bit for each URL of a batch.
#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
    /// Bits that are set.
    count: usize,
}

impl Bits {
    fn new(len: u32) -> Self {
        Self { words: vec![0; len.div_ceil(u64::BITS) as usize], count: 0 }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn has(&self, place: u32) -> bool {
        let word = self.words.get((place / u64::BITS) as usize);
        word.is_some_and(|word| word >> (place % u64::BITS) & 1 == 1)
    }

    fn set(&mut self, place: u32) {
        let word = &mut self.words[(place / u64::BITS) as usize];
        let bit = 1 << (place % u64::BITS);
        self.count += usize::from(*word & bit == 0);
        *word |= bit;
    }

    /// Clears the bits of `from` up to before `to`.
    fn clear(&mut self, from: u32, to: u32) {
        for place in from..to {
            if self.has(place) {
                self.words[(place / u64::BITS) as usize] &= !(1 << (place % u64::BITS));
                self.count -= 1;
            }
        }
    }
}
