//! Pages on disk, in the order in which they are due: a wheel of slots.
//!
//! A page is filed under a time and comes up when that has come. Of a page the calendar knows the
//! time and bytes that it doesn't read. Times are counted in *units* of 16 seconds. A time has six
//! digits of five bits; a page waits in the *slot* of the first digit in which its time differs
//! from that of the hand. When the hand reaches a slot of the last digit, its pages come up, in no
//! order; when it reaches another slot, its pages are distributed among the slots of later digits.
//! So a page is copied five times at most.
//!
//! The records of a slot are collected in memory up to some kilobytes, then appended as one frame
//! to a log that all slots share (`ground::segments`).
//!
//! ```text
//! file    state/known/segment-N: frames of records
//! record  due in seconds u32 | length varint | bytes
//! mark    hand u32, pages varint | for each slot in use: number + 1 u16, pages varint,
//!         frames varint, of each segment u32, offset u32, length u32; records | 0 u16
//! ```
//!
//! If pages are asked for early, the hand goes ahead of the present. Pages that are filed for
//! before the hand then are *overtaken*: they are kept in memory, in order.
//!
//! Laws: a page that was filed comes up once, and not before its time, to a unit, unless it is
//! asked for early. If pages of two units are due, that of the earlier unit comes up first.
//! Memory: a frame for each slot in use, some 200 at most, 12 bytes for each frame on disk, and
//! 10,000 pages at most that are overtaken. More of them, and those of an earlier run,
//! come up in no order when the time of the hand has come, or early.
//! Cost: half a microsecond for a visit: a page is taken, what is known of it read and written, and
//! it is filed again (`bench/recrawl.rs known`); its part of a read and of a write.

mod pass;
#[cfg(test)]
mod tests;

pub use pass::{Look, Pass};

use crate::ground::codec::{Put, Short, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Damage, Flaw, Mark, Role};
use crate::ground::segments::{Limits, Location, Segments};
use std::collections::BTreeMap;

/// The folder of the segments, relative to the job directory.
pub const FOLDER: &str = "state/known";
/// Where the mark comes from, for messages.
const MARK: &str = "state/checkpoint";
/// The kind of a frame of records.
const RECORDS: u8 = 1;
/// The binary logarithm of a unit in seconds.
const UNIT: u32 = 4;
/// The bits of a digit of a time, and the number of digits.
const DIGIT: u32 = 5;
const DIGITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT;
/// The length at which the records of a slot become a frame, in bytes.
const FRAME_BYTES: usize = if cfg!(test) { 200 } else { 16 << 10 };
const LIMITS: Limits = if cfg!(test) {
    Limits { segment_bytes: 3_000, write_bytes: 300 }
} else {
    Limits { segment_bytes: 32 << 20, write_bytes: 256 << 10 }
};
/// The fixed cost of moving a page, in units of work, in addition to its bytes.
const PAGE_UNITS: usize = 64;
/// The most pages that are overtaken.
const OVERTAKEN_MAX: usize = if cfg!(test) { 20 } else { 10_000 };

/// Pages in the order in which they are due.
#[derive(Debug)]
pub struct Calendar {
    /// By digit, the last one first, and value of the digit.
    slots: Vec<Slot>,
    /// The log; `None` if everything stays in memory.
    log: Option<Segments>,
    /// The unit of the pages that come up now.
    hand: u32,
    /// The pages that come up now.
    heads: Vec<u8>,
    /// How much of them has come up.
    taken: usize,
    /// Pages filed for before the unit of the hand, by their times.
    overtaken: BTreeMap<(u32, u64), Box<[u8]>>,
    /// The slot whose pages are being distributed.
    distributes: Option<usize>,
    pages: u64,
    /// The number of pages ever filed.
    filed: u64,
}

/// The pages of a slot.
#[derive(Clone, Debug, Default)]
struct Slot {
    pages: u64,
    frames: Vec<Location>,
    /// Records that are in no frame yet.
    records: Vec<u8>,
}

impl Calendar {
    /// Creates a calendar whose hand is at `now`, in seconds since 1970. Its files carry the
    /// identifier of the crawl; if there is none, all pages stay in memory.
    pub fn new(now: u32, crawl: Option<u64>) -> Self {
        Self {
            slots: vec![Slot::default(); DIGITS as usize * SLOTS],
            log: crawl.map(|crawl| Segments::new(FOLDER, Role::Known, crawl, LIMITS)),
            hand: now >> UNIT,
            heads: Vec::new(),
            taken: 0,
            overtaken: BTreeMap::new(),
            distributes: None,
            pages: 0,
            filed: 0,
        }
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Files a page, to come up at `due`, in seconds since 1970, or now if that has passed.
    pub fn file(&mut self, due: u32, page: &[u8]) {
        self.pages += 1;
        self.filed += 1;
        if due >> UNIT < self.hand && self.overtaken.len() < OVERTAKEN_MAX {
            self.overtaken.insert((due, self.filed), page.into());
        } else {
            self.put(due, page);
        }
    }

    fn put(&mut self, due: u32, page: &[u8]) {
        let number = slot_of(due >> UNIT, self.hand);
        let slot = &mut self.slots[number];
        slot.pages += 1;
        slot.records.put_u32(due);
        slot.records.put_bytes(page);
        self.end_frame(number);
    }

    /// Makes frames of the records of a slot, as far as they are enough for one.
    fn end_frame(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        let Some(log) = self.log.as_mut().filter(|_| slot.records.len() >= FRAME_BYTES) else {
            return;
        };
        let records = std::mem::take(&mut slot.records);
        let (mut take, mut begin) = (Take::new(&records), 0);
        // The slot of the hand may have got many at once from a checkpoint.
        while record(&mut take).is_ok() {
            let end = records.len() - take.rest().len();
            if end - begin >= FRAME_BYTES {
                let frame = &records[begin..end];
                slot.frames.push(log.append(RECORDS, |out| out.extend_from_slice(frame)));
                begin = end;
            }
        }
        slot.records.extend_from_slice(&records[begin..]);
    }

    /// Returns the unit to which the hand goes next, in seconds since 1970; `None` if no page is
    /// left. It is now if a page comes up.
    pub fn next_due(&self) -> Option<u32> {
        if let Some(((due, _), _)) = self.overtaken.first_key_value() {
            return Some(*due);
        }
        if self.taken < self.heads.len() || self.is_distributing() {
            return Some(self.hand << UNIT);
        }
        self.next_slot().map(|(_, unit)| unit << UNIT)
    }

    fn is_distributing(&self) -> bool {
        self.distributes.is_some_and(|number| self.slots[number].pages > 0)
    }

    /// Returns the next slot in use, and the unit at which it begins.
    fn next_slot(&self) -> Option<(usize, u32)> {
        (0..DIGITS).find_map(|digit| {
            let shift = DIGIT * digit;
            let own = (self.hand >> shift) as usize % SLOTS;
            let from = if digit == 0 { own } else { own + 1 };
            let value = (from..SLOTS).find(|value| self.slots[place(digit, *value)].pages > 0)?;
            let above = self.hand >> shift >> DIGIT << DIGIT;
            Some((place(digit, value), (above | value as u32) << shift))
        })
    }

    /// Reads and distributes pages until one has come up at `until`, in seconds since 1970, or
    /// none is due until then, with about as much work as `units_max` allows. Returns the work that
    /// was done.
    ///
    /// # Errors
    /// The disk reports an error, or a frame is damaged.
    pub fn advance(
        &mut self,
        until: u32,
        units_max: usize,
        disk: &mut dyn Disk,
    ) -> Result<usize, frame::Error> {
        let mut units = 0;
        while units < units_max && self.taken == self.heads.len() && self.overtaken.is_empty() {
            (self.taken, self.heads) = (0, Vec::new());
            // A pass may have taken out what was left of it.
            self.distributes = self.distributes.filter(|number| self.slots[*number].pages > 0);
            if let Some(number) = self.distributes {
                units += self.distribute(number, disk)?;
                continue;
            }
            match self.next_slot() {
                Some((number, unit)) if unit <= until >> UNIT => {
                    self.hand = unit;
                    if number < SLOTS {
                        let (records, pages) = self.part_of(number, disk)?;
                        units += records.len() + PAGE_UNITS;
                        let slot = &mut self.slots[number];
                        slot.pages -= pages;
                        self.heads = records;
                    } else {
                        self.distributes = Some(number);
                    }
                }
                _ => break,
            }
        }
        Ok(units)
    }

    /// Distributes a part of a slot's pages.
    fn distribute(&mut self, number: usize, disk: &mut dyn Disk) -> Result<usize, frame::Error> {
        let (records, pages) = self.part_of(number, disk)?;
        let mut take = Take::new(&records);
        while let Ok((due, page)) = record(&mut take) {
            self.put(due, page);
        }
        self.slots[number].pages -= pages;
        if self.slots[number].pages == 0 {
            self.distributes = None;
        }
        Ok(records.len() + pages as usize * PAGE_UNITS)
    }

    /// Takes a frame of a slot, or else the records that are in no frame. Returns the records and
    /// their number.
    fn part_of(
        &mut self,
        number: usize,
        disk: &mut dyn Disk,
    ) -> Result<(Vec<u8>, u64), frame::Error> {
        let slot = &mut self.slots[number];
        let (Some(place), Some(log)) = (slot.frames.last().copied(), &mut self.log) else {
            let records = std::mem::take(&mut slot.records);
            let pages = count(&records).expect("they were written by put");
            if pages == 0 || pages > slot.pages {
                // A checkpoint said otherwise.
                return Err(
                    Damage { name: MARK.to_owned(), offset: 0, flaw: Flaw::Senseless }.into()
                );
            }
            return Ok((records, pages));
        };
        let (name, offset) = (log.name_of(place.segment), place.offset.into());
        let damage = |flaw| Damage { name: name.clone(), offset, flaw };
        let records = log.read(place, RECORDS, disk)?;
        let pages = count(&records).map_err(|_| damage(Flaw::Senseless))?;
        if pages > slot.pages {
            return Err(damage(Flaw::Senseless).into());
        }
        slot.frames.pop();
        log.release(place);
        Ok((records, pages))
    }

    /// Takes a page that is due at `until`, in seconds since 1970, and appends its bytes to `out`.
    /// Returns its time; `None` if there is none, or [`Self::advance`] must be called first.
    pub fn take(&mut self, until: u32, out: &mut Vec<u8>) -> Option<u32> {
        if let Some(first) = self.overtaken.first_entry() {
            let (due, _) = *first.key();
            return (due >> UNIT <= until >> UNIT).then(|| {
                out.extend_from_slice(&first.remove());
                self.pages -= 1;
                due
            });
        }
        if self.hand > until >> UNIT {
            return None;
        }
        let mut take = Take::new(self.heads.get(self.taken..)?);
        let before = take.rest().len();
        let (due, page) = record(&mut take).ok()?;
        out.extend_from_slice(page);
        self.taken += before - take.rest().len();
        self.pages -= 1;
        Some(due)
    }
}

/// Returns the slot of a unit when the hand is at another; that of the hand's own unit if it has
/// passed.
fn slot_of(unit: u32, hand: u32) -> usize {
    let unit = unit.max(hand);
    let digit = (u32::BITS - (unit ^ hand).leading_zeros()).saturating_sub(1) / DIGIT;
    place(digit, (unit >> (DIGIT * digit)) as usize % SLOTS)
}

fn place(digit: u32, value: usize) -> usize {
    digit as usize * SLOTS + value
}

fn record<'a>(take: &mut Take<'a>) -> Result<(u32, &'a [u8]), Short> {
    Ok((take.u32()?, take.bytes()?))
}

/// Returns the number of records.
fn count(records: &[u8]) -> Result<u64, Short> {
    let (mut take, mut pages) = (Take::new(records), 0);
    while !take.is_empty() {
        record(&mut take)?;
        pages += 1;
    }
    Ok(pages)
}

impl Calendar {
    /// Writes buffered frames to the disk: all of them, or only what is enough for an append.
    ///
    /// # Errors
    /// The disk reports an error. Nothing is lost, and the call may be repeated.
    pub fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.log.as_mut().map_or(Ok(()), |log| log.write(all, disk))
    }

    /// Returns what a checkpoint must keep. `extra` is pages that were taken and wait elsewhere,
    /// with their times: they will come up again, now, in no order.
    ///
    /// # Errors
    /// The disk reports an error.
    pub fn mark<'a>(
        &mut self,
        extra: impl Iterator<Item = (u32, &'a [u8])>,
        disk: &mut dyn Disk,
    ) -> Result<Mark, disk::Error> {
        let mut state = Vec::new();
        state.put_u32(self.hand);
        // What has come up and what was taken comes up again in the unit of the hand.
        let mut now = self.heads[self.taken..].to_vec();
        let mut pages = count(&now).expect("they were checked");
        let mut add = |due: u32, page: &[u8]| {
            now.put_u32(due);
            now.put_bytes(page);
            pages += 1;
        };
        extra.for_each(|(due, page)| add(due, page));
        self.overtaken.iter().for_each(|((due, _), page)| add(*due, page));
        let own = slot_of(self.hand, self.hand);
        for (number, slot) in self.slots.iter().enumerate() {
            let more = if number == own { pages } else { 0 };
            if slot.pages + more == 0 {
                continue;
            }
            state.put_u16(number as u16 + 1);
            state.put_varint(slot.pages + more);
            state.put_varint(slot.frames.len() as u64);
            for Location { segment, offset, bytes } in &slot.frames {
                [segment, offset, bytes].into_iter().for_each(|value| state.put_u32(*value));
            }
            if number == own {
                state.put_varint((slot.records.len() + now.len()) as u64);
                state.extend_from_slice(&slot.records);
                state.extend_from_slice(&now);
            } else {
                state.put_bytes(&slot.records);
            }
        }
        state.put_u16(0);
        state.put_u16(self.distributes.map_or(0, |number| number as u16 + 1));
        let files = self.log.as_mut().map_or(Ok(Vec::new()), |log| log.mark(disk))?;
        Ok(Mark { state, files })
    }

    /// Called when the checkpoint with the last [`Self::mark`] is durable. Returns the names of
    /// files that are no longer needed.
    pub fn on_durable(&mut self) -> Vec<String> {
        self.log.as_mut().map_or(Vec::new(), |log| log.on_durable(None))
    }

    /// Restores the segments. `files` are those that the checkpoint of an earlier run names, with
    /// their valid lengths.
    ///
    /// # Errors
    /// Those of [`Segments::restore_files`].
    pub fn restore_files(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        self.log.as_mut().map_or(Ok(()), |log| log.restore_files(files, disk).map(drop))
    }

    /// Restores a new calendar from the state that [`Self::mark`] returned.
    ///
    /// # Errors
    /// The bytes make no sense.
    pub fn restore_mark(&mut self, state: &[u8]) -> Result<(), Flaw> {
        let mut take = Take::new(state);
        self.hand = take.u32()?;
        while let Some(number) = usize::from(take.u16()?).checked_sub(1) {
            let pages = take.varint()?;
            let frames: usize = take.number()?;
            let slot = self.slots.get_mut(number).ok_or(Flaw::Senseless)?;
            for _ in 0..frames {
                let (segment, offset, bytes) = (take.u32()?, take.u32()?, take.u32()?);
                let place = Location { segment, offset, bytes };
                let log = self.log.as_mut().ok_or(Flaw::Senseless)?;
                if !log.retain(place) {
                    return Err(Flaw::Senseless);
                }
                slot.frames.push(place);
            }
            slot.records = take.bytes()?.to_vec();
            (slot.pages, self.pages) = (pages, self.pages + pages);
            if count(&slot.records)? > pages {
                return Err(Flaw::Senseless);
            }
        }
        if let Some(number) = usize::from(take.u16()?).checked_sub(1) {
            let slot = self.slots.get(number).ok_or(Flaw::Senseless)?;
            self.distributes = (slot.pages > 0).then_some(number);
        }
        Ok(())
    }
}
