//! The log in which the ends of queues lie: segments that only grow, and what of them is alive.
//!
//! Chunks of all servers go to the end of the newest segment as they come. A segment that is full
//! is closed; one of whose chunks few are alive is swept: those are written anew (see
//! [`super::spill`]). A segment that holds nothing alive goes when no durable checkpoint names it.
//!
//! ```text
//! file   state/frontier/segment-N: the opening frame, then chunks
//! chunk  kind 20: number of the server | URLs, to the end
//! ```
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

/// Kind of the frame that is a chunk.
pub(super) const CHUNK: u8 = 20;
/// A segment this long is closed; in tests, soon.
const SEGMENT_BYTES: u64 = if cfg!(test) { 3_000 } else { SEGMENT_BYTES_MAX - (1 << 20) };
/// Bytes wait in memory until there are so many.
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
        let offset = growing.tail.len();
        frame::push_with(CHUNK, &mut growing.tail.pending, |out| {
            out.put_varint(id.index() as u64);
            write(out);
        });
        let bytes = growing.tail.len() - offset;
        let place = Place::new(growing.segment, offset, bytes as usize, band);
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
        self.tails.push_back(Growing { segment, tail, is_fresh: true });
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
        let written = tail.len() - tail.pending.len() as u64;
        let from = place.offset().checked_sub(written)?;
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
            let enough = growing.tail.pending.len() >= WRITE_BYTES;
            let is_closed = growing.tail.len() >= SEGMENT_BYTES;
            if !all && !enough && !is_closed || growing.tail.pending.is_empty() && !is_closed {
                break;
            }
            if growing.is_fresh {
                // What a crash left behind under this name is nobody's.
                if disk.len(growing.tail.name())?.is_some_and(|bytes| bytes > 0) {
                    disk.truncate(growing.tail.name(), 0)?;
                }
                growing.is_fresh = false;
            }
            growing.tail.flush(disk, 2 * WRITE_BYTES)?;
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
