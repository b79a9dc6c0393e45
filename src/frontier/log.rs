//! The log in which the ends of queues lie: segments that only grow, and what of them is alive.
//!
//! Chunks of all servers go to the end of the newest segment as they come. A segment that is full
//! is closed; one of whose chunks few are alive is swept: those are written anew (see
//! [`super::spill`]). A segment that holds nothing alive goes when no durable checkpoint names it.
//!
//! ```text
//! file   state/frontier/segment-N: the opening frame, then chunks
//! chunk  kind 20: number of the server | URLs, to the end
//! filler kind 21: zeros up to where the next append begins
//! ```
//! Appends end at multiples of [`WRITE_BYTES`], and no chunk lies across one, but for those that
//! are longer, for ends of segments, and for what is brought to the disk at once: what a system
//! keeps of a file in memory it keeps in pieces that lie as the appends did, and in large ones a
//! chunk is found the sooner (DECISIONS.md 73).
//!
//! Laws: a place that was handed out can be read until it is released, from the disk or from what
//! waits to be written; on a full disk nothing is lost; at most a quarter of the closed segments'
//! bytes are alive only where a sweep is about to come.
//! Cost: a copy into memory a chunk, an append to the disk for some hundred of them.

use super::place::{Band, Place, SEGMENT_BYTES_MAX, SEGMENTS_MAX};
use super::server::ServerId;
use crate::codec::Put;
use crate::disk::{self, Disk};
use crate::frame::{self, Role};
use crate::tail::Tail;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Kind of the frame that is a chunk, and of what fills a file up.
pub(super) const CHUNK: u8 = 20;
const FILLER: u8 = 21;
/// A segment this long is closed; in tests, soon.
const SEGMENT_BYTES: u64 = if cfg!(test) { 3_000 } else { SEGMENT_BYTES_MAX - (1 << 20) };
/// Bytes wait in memory until there are so many: an append.
const WRITE_BYTES: usize = if cfg!(test) { 500 } else { 256 << 10 };
/// What is asked for at once of a segment.
pub(super) const EXTENT_BYTES: u64 =
    if cfg!(test) { 300 } else { SEGMENT_BYTES_MAX / u64::BITS as u64 };
/// A closed segment is swept when less than one part in so many is alive.
const SPARSE: u64 = 4;

/// All segments.
#[derive(Debug)]
pub(super) struct Log {
    crawl: u64,
    segments: BTreeMap<u32, Segment>,
    /// The ends of segments that have bytes waiting, and of the newest.
    tails: VecDeque<Growing>,
    next: u32,
    /// Segments to be swept.
    sparse: VecDeque<u32>,
    /// Those that the last mark names.
    marked: BTreeSet<u32>,
}

#[derive(Debug, Default)]
struct Segment {
    bytes: u64,
    /// Bytes of chunks that are needed, each rounded up.
    live_bytes: u64,
    is_sparse: bool,
    /// Extents that were asked for, a bit each.
    asked: u64,
}

#[derive(Debug)]
struct Growing {
    segment: u32,
    tail: Tail,
    /// Up to here it goes to the disk in whole appends.
    whole: u64,
    /// Nothing of it was written in this run: the name must not be taken.
    is_fresh: bool,
}

impl Log {
    pub(super) fn new(crawl: u64) -> Self {
        Self {
            crawl,
            segments: BTreeMap::new(),
            tails: VecDeque::new(),
            next: 1,
            sparse: VecDeque::new(),
            marked: BTreeSet::new(),
        }
    }

    /// A segment of an earlier run. `false`: there can't be such a one.
    pub(super) fn restore(&mut self, segment: u32, bytes: u64) -> bool {
        let fits = segment < SEGMENTS_MAX - 1 && bytes <= SEGMENT_BYTES_MAX;
        self.next = self.next.max(segment.saturating_add(1));
        self.marked.insert(segment);
        fits && self.segments.insert(segment, Segment { bytes, ..Segment::default() }).is_none()
    }

    /// Numbers up to this are taken by files of an earlier run.
    pub(super) fn skip_to(&mut self, segment: u32) {
        self.next = self.next.max(segment.saturating_add(1));
    }

    /// Appends a chunk; `write` appends its URLs.
    pub(super) fn append(
        &mut self,
        id: ServerId,
        band: Band,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Place {
        let is_full = |growing: &Growing| growing.tail.len() >= SEGMENT_BYTES;
        if self.tails.back().is_none_or(is_full) {
            self.begin();
        }
        let growing = self.tails.back_mut().expect("it has just begun");
        let (offset, bytes) = growing.put(|out| {
            out.put_varint(id.index() as u64);
            write(out);
        });
        let place = Place::new(growing.segment, offset, bytes, band);
        let segment = self.segments.get_mut(&growing.segment).expect("all are listed");
        segment.bytes = growing.tail.len();
        segment.live_bytes += place.bytes() as u64;
        place
    }

    fn begin(&mut self) {
        let closed = self.tails.back().map(|growing| growing.segment);
        let segment = self.next;
        assert!(segment < SEGMENTS_MAX, "a thousand terabytes of URLs");
        self.next += 1;
        let mut tail = Tail::new(name_of(segment), 0);
        frame::push_opening(Role::Segment, self.crawl, &mut tail.pending);
        self.segments.insert(segment, Segment::default());
        self.tails.push_back(Growing { segment, tail, whole: 0, is_fresh: true });
        if let Some(closed) = closed {
            self.look_at(closed);
        }
    }

    /// A chunk is needed no more.
    pub(super) fn release(&mut self, place: Place) {
        let segment = self.segments.get_mut(&place.segment()).expect("chunks lie in segments");
        segment.live_bytes -= place.bytes() as u64;
        self.look_at(place.segment());
    }

    /// A chunk of an earlier run. `false`: there can't be such a one.
    pub(super) fn retain(&mut self, place: Place) -> bool {
        let Some(segment) = self.segments.get_mut(&place.segment()) else { return false };
        segment.live_bytes += place.bytes() as u64;
        place.offset() < segment.bytes && place.bytes() > 0
    }

    /// Whether a segment is to be swept.
    pub(super) fn look_at(&mut self, number: u32) {
        let is_open = self.tails.back().is_some_and(|growing| growing.segment == number);
        let segment = self.segments.get_mut(&number).expect("chunks lie in segments");
        let is_sparse = segment.live_bytes > 0 && segment.live_bytes < segment.bytes / SPARSE;
        if is_sparse && !is_open && !segment.is_sparse {
            segment.is_sparse = true;
            self.sparse.push_back(number);
        }
    }

    /// Numbers of all segments.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.segments.keys().copied().collect()
    }

    /// The next segment to be swept, and its length, if anything in it is alive still.
    pub(super) fn next_sparse(&mut self) -> Option<(u32, u64)> {
        while let Some(number) = self.sparse.pop_front() {
            let is_waiting = self.tails.iter().any(|growing| growing.segment == number);
            if is_waiting {
                self.sparse.push_front(number);
                return None;
            }
            if let Some(segment) = self.segments.get(&number).filter(|of| of.live_bytes > 0) {
                return Some((number, segment.bytes));
            }
        }
        None
    }

    /// The bytes at a place, from its start, if they are not on disk yet; they may be more than
    /// one chunk's.
    pub(super) fn waiting(&self, place: Place) -> Option<&[u8]> {
        let mut growing = self.tails.iter().filter(|growing| growing.segment == place.segment());
        let tail = &growing.next()?.tail;
        let from = place.offset().checked_sub(tail.written())?;
        tail.pending.get(usize::try_from(from).ok()?..)
    }

    /// Something is about to be read: where the extent begins that it is in, unless that was asked
    /// for before.
    pub(super) fn ask_for(&mut self, place: Place) -> Option<u64> {
        let segment = self.segments.get_mut(&place.segment())?;
        let extent = place.offset() / EXTENT_BYTES;
        let bit = 1_u64.checked_shl(u32::try_from(extent).ok()?)?;
        let is_new = segment.asked & bit == 0;
        segment.asked |= bit;
        is_new.then_some(extent * EXTENT_BYTES)
    }

    /// Whether anything in a segment is needed.
    pub(super) fn is_alive(&self, number: u32) -> bool {
        self.segments.get(&number).is_some_and(|segment| segment.live_bytes > 0)
    }

    /// Brings what waits to the disk: all, or if it is enough for an append.
    ///
    /// # Errors
    /// The disk's: what waits waits on, and this may be called again.
    pub(super) fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        while let Some(growing) = self.tails.front_mut() {
            let is_closed = growing.tail.len() >= SEGMENT_BYTES;
            let until = if all || is_closed { growing.tail.len() } else { growing.whole };
            if until <= growing.tail.written() && !is_closed {
                break;
            }
            if growing.is_fresh {
                // What a crash left behind under this name is nobody's.
                if disk.len(growing.tail.name())?.is_some_and(|bytes| bytes > 0) {
                    disk.truncate(growing.tail.name(), 0)?;
                }
                growing.is_fresh = false;
            }
            growing.tail.flush_to(until, disk, 2 * WRITE_BYTES)?;
            if !is_closed || self.tails.len() == 1 {
                break;
            }
            self.tails.pop_front();
        }
        Ok(())
    }

    /// What is alive now, with how much of each counts.
    pub(super) fn alive(&self) -> Vec<(u32, u64)> {
        let alive = self.segments.iter().filter(|(_, segment)| segment.live_bytes > 0);
        alive.map(|(number, segment)| (*number, segment.bytes)).collect()
    }

    /// The mark that is being taken names these.
    pub(super) fn set_marked(&mut self, marked: impl Iterator<Item = u32>) {
        self.marked = marked.collect();
    }

    /// The last mark is durable: names of segments that are of no use any more; not `swept`, which
    /// may be being read.
    pub(super) fn settled(&mut self, swept: Option<u32>) -> Vec<String> {
        let waiting = |number| self.tails.iter().any(|growing| growing.segment == number);
        let is_dead = |(number, segment): (&u32, &Segment)| {
            let is_needed = segment.live_bytes > 0 || self.marked.contains(number);
            let is_in_use = waiting(*number) || swept == Some(*number);
            (!is_needed && !is_in_use).then_some(*number)
        };
        let dead: Vec<u32> = self.segments.iter().filter_map(is_dead).collect();
        dead.iter().for_each(|number| {
            self.segments.remove(number);
        });
        dead.into_iter().map(name_of).collect()
    }

    /// Bytes of all segments, and of what is alive in them.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let sum = |(all, live), segment: &Segment| (all + segment.bytes, live + segment.live_bytes);
        self.segments.values().fold((0, 0), sum)
    }
}

impl Growing {
    /// Appends a chunk, behind a filler if it would lie across the end of an append: where it lies,
    /// and how long it is.
    fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> (u64, usize) {
        let (start, offset) = (self.tail.pending.len(), self.tail.len());
        frame::push_with(CHUNK, &mut self.tail.pending, write);
        let bytes = self.tail.pending.len() - start;
        let left = WRITE_BYTES - (offset % WRITE_BYTES as u64) as usize;
        // What is left behind a chunk has to be nothing, or to have room for a filler.
        if bytes + frame::OVERHEAD_BYTES <= left {
            return (offset, bytes);
        }
        let is_long = bytes + frame::OVERHEAD_BYTES > WRITE_BYTES;
        let zeros = left.checked_sub(frame::OVERHEAD_BYTES).filter(|_| !is_long && bytes != left);
        let Some(zeros) = zeros else {
            self.whole = self.tail.len();
            return (offset, bytes);
        };
        let chunk = self.tail.pending.split_off(start);
        frame::push_with(FILLER, &mut self.tail.pending, |out| out.resize(out.len() + zeros, 0));
        self.whole = self.tail.len();
        self.tail.pending.extend_from_slice(&chunk);
        (self.whole, bytes)
    }
}

/// The file of a segment.
pub(super) fn name_of(segment: u32) -> String {
    format!("{FOLDER}/segment-{segment}")
}

/// The number of the segment that has this name in its folder.
pub(super) fn number_of(name: &str) -> Option<u32> {
    name.strip_prefix("segment-")?.parse().ok()
}

/// The folder of all segments.
pub(super) const FOLDER: &str = "state/frontier";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Take;
    use crate::disk::memory::Memory;

    /// Law: but for what is brought to the disk at once, appends end at multiples of their size
    /// and between chunks; chunks are where they are said to be, whichever they are, and a reader
    /// of all frames finds each of them.
    #[test]
    fn appends_end_where_pieces_of_a_file_do() {
        let (mut log, mut disk) = (Log::new(7), Memory::default());
        let (mut placed, mut appends, mut fillers) = (Vec::new(), 0, 0);
        for number in 0..3_000_u32 {
            // Some are longer than an append, and some end just before it does or with it.
            let bytes = if number % 50 == 49 { 1_100 } else { 1 + number * 7 % 160 };
            let place = log.append(ServerId(number % 90), 0, |out| {
                out.resize(out.len() + bytes as usize, number as u8);
            });
            placed.push((place, number, bytes as usize));
            let name = name_of(place.segment());
            let before = disk.len(&name).expect("it can be asked").unwrap_or(0);
            let all = number % 70 == 69;
            log.write(all, &mut disk).expect("there is room");
            let after = disk.len(&name).expect("as above").unwrap_or(0);
            // There may be no room for a filler behind one that is longer.
            let is_odd = all || after >= SEGMENT_BYTES || (number + 1) % 50 < 2;
            let is_even = after.is_multiple_of(WRITE_BYTES as u64);
            assert!(is_odd || after == before || is_even);
            assert!(log.tails.len() == 1, "what is closed is written");
            appends += usize::from(!all && after > before);
        }
        log.write(true, &mut disk).expect("there is room");
        for (place, number, bytes) in placed {
            let file = disk.bytes(&name_of(place.segment()));
            let at = place.offset();
            let (frame, _) = frame::parse(&file[at as usize..], at).expect("it is whole");
            let mut take = Take::new(frame.payload);
            assert_eq!((frame.kind, take.number()), (CHUNK, Ok(number % 90)));
            assert_eq!(take.rest(), vec![number as u8; bytes]);
        }
        for number in log.numbers() {
            let (file, mut at) = (disk.bytes(&name_of(number)), 0);
            while at < file.len() {
                let (frame, bytes) = frame::parse(&file[at..], 0).expect("frames to the end");
                fillers += usize::from(frame.kind == FILLER);
                at += bytes;
            }
        }
        assert!(appends > 100 && fillers > 100, "{appends} appends, {fillers} fillers");
    }
}
