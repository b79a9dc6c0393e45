//! The log of segments that holds the ends of queues as chunks.
//!
//! [`Segments`] does the work. Here locations become places, which round lengths up to units.
//!
//! ```text
//! file   state/frontier/segment-N: the opening frame, then chunks
//! chunk  kind 20: number of the server | URLs, to the end
//! ```

use super::place::{Band, Place, SEGMENT_BYTES_MAX, SEGMENTS_MAX};
use super::server::ServerId;
use crate::codec::Put;
use crate::frame::Role;
use crate::segments::{self, Limits, Location, Segments};
use std::ops::{Deref, DerefMut};

/// The kind of the frame that is a chunk.
pub(super) const CHUNK: u8 = 20;
/// In tests, segments are closed soon.
const LIMITS: Limits = Limits {
    segment_bytes: if cfg!(test) { 3_000 } else { SEGMENT_BYTES_MAX - (1 << 20) },
    write_bytes: if cfg!(test) { 500 } else { 256 << 10 },
};
/// The folder of all segments.
pub(super) const FOLDER: &str = "state/frontier";

/// All segments.
#[derive(Debug)]
pub(super) struct Log(Segments);

impl Deref for Log {
    type Target = Segments;

    fn deref(&self) -> &Segments {
        &self.0
    }
}

impl DerefMut for Log {
    fn deref_mut(&mut self) -> &mut Segments {
        &mut self.0
    }
}

impl Log {
    pub(super) fn new(crawl: u64) -> Self {
        Self(Segments::new(FOLDER, Role::Segment, crawl, LIMITS))
    }

    /// A checkpoint names this segment of an earlier run. Returns `false` if it can't be one.
    pub(super) fn restore(&mut self, segment: u32, bytes: u64) -> bool {
        let fits = segment < SEGMENTS_MAX - 1 && bytes <= SEGMENT_BYTES_MAX;
        fits && self.0.restore(segment, bytes)
    }

    /// Appends a chunk; `write` appends its URLs.
    pub(super) fn append(
        &mut self,
        id: ServerId,
        band: Band,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Place {
        let exact = self.0.append(CHUNK, |out| {
            out.put_varint(id.index() as u64);
            write(out);
        });
        let place = Place::new(exact.segment, exact.offset.into(), exact.bytes as usize, band);
        // It will be released with the length that its place has.
        let is_retained = self.retain(place);
        assert!(is_retained, "it was just appended");
        self.0.release(exact);
        place
    }

    /// A chunk is needed no more.
    pub(super) fn release(&mut self, place: Place) {
        self.0.release(location(place));
    }

    /// A chunk of an earlier run is needed. Returns `false` if none can lie there.
    pub(super) fn retain(&mut self, place: Place) -> bool {
        self.0.retain(location(place))
    }

    /// A chunk that is not yet on disk, and what follows it.
    pub(super) fn waiting(&self, place: Place) -> Option<&[u8]> {
        self.0.waiting(Location { bytes: u32::MAX, ..location(place) })
    }
}

fn location(place: Place) -> Location {
    let short = |number| u32::try_from(number).expect("places have eight bytes");
    let (offset, bytes) = (short(place.offset()), short(place.bytes() as u64));
    Location { segment: place.segment(), offset, bytes }
}

/// The file of a segment.
pub(super) fn name_of(segment: u32) -> String {
    segments::name_of(FOLDER, segment)
}

/// The number of the segment that has this name in its folder.
pub(super) fn number_of(name: &str) -> Option<u32> {
    segments::number_of(FOLDER, &format!("{FOLDER}/{name}"))
}
