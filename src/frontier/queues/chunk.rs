//! Chunks: URLs of one queue as bytes, on disk and in snapshots; and where a chunk lies.
//!
//! ```text
//! chunk    URLs | each, to the end
//! URL      arrival, less that of the one before, zigzag | quality x 2, + 1 if it goes first
//!          of each of its two parts: bytes at the front and at the back that are those of the same
//!          part of the payload before, and those between
//! ref      segment 20 bits | sixteenths used up 4 | length in units of 64 bytes, rounded up, 8
//!          band 6 | offset 26
//! ```
//! URLs of a chunk are in order; it is used up by sixteenths of their number, and its reference has
//! the band of the next.
//!
//! Law: what is unpacked is what was packed, or refused.

use super::band::{BAND_MAX, Band};
use super::entry::Key;
use super::records::PAYLOAD_BYTES_MAX;
use super::shared::Shared;
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use crate::ground::segments::Location;
use std::ops::Range;

/// A chunk is used up in so many steps.
const STEPS: usize = 16;
const UNIT_BYTES: usize = 64;
/// Offsets in a segment are below this.
pub(super) const SEGMENT_BYTES_MAX: u64 = 1 << 26;
const SEGMENTS_MAX: u32 = 1 << 20;
/// A chunk is full when its URLs have so many bytes, unpacked: they may share nearly all of them.
const UNPACKED_BYTES: usize = if cfg!(test) { 400 } else { 1 << 20 };

/// Where a chunk lies, and how much of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkRef(u64);

impl ChunkRef {
    pub(super) fn new(place: Location, band: Band) -> Self {
        assert!(u64::from(place.offset) < SEGMENT_BYTES_MAX, "a segment is closed before that");
        assert!(place.segment < SEGMENTS_MAX, "seventy terabytes of URLs");
        let units = (place.bytes as usize).div_ceil(UNIT_BYTES).min(255) as u64;
        let (segment, band) = (u64::from(place.segment), u64::from(band));
        Self(segment << 44 | units << 32 | band << 26 | u64::from(place.offset))
    }

    pub(super) fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// Where it lies; its length is rounded up, and at most 16,320 bytes.
    pub(super) fn place(self) -> Location {
        Location {
            segment: (self.0 >> 44) as u32,
            offset: (self.0 % SEGMENT_BYTES_MAX) as u32,
            bytes: (self.0 >> 32 & 255) as u32 * UNIT_BYTES as u32,
        }
    }

    /// The band of the next URL in it.
    pub(super) fn band(self) -> Band {
        (self.0 >> 26) as u8 & BAND_MAX
    }

    fn steps_used(self) -> usize {
        (self.0 >> 40) as usize % STEPS
    }

    /// Of so many URLs those that are not used up yet.
    fn used(self, urls: usize) -> usize {
        (self.steps_used() * urls.div_ceil(STEPS)).min(urls)
    }

    /// The same chunk, with so many of its URLs used up, or more; the next is of this band.
    fn used_up(self, steps: usize, band: Band) -> Self {
        let changed = (15 << 40) | (u64::from(BAND_MAX) << 26);
        Self(self.0 & !changed | (steps as u64) << 40 | u64::from(band) << 26)
    }

    /// The same chunk, which lies where the other says.
    pub(super) fn moved(self, to: Self) -> Self {
        to.used_up(self.steps_used(), self.band())
    }

    /// Whether it is that chunk, however much of it is used up.
    pub(super) fn is(self, other: Self) -> bool {
        let (own, other) = (self.place(), other.place());
        (own.segment, own.offset) == (other.segment, other.offset)
    }
}

/// URLs that become a chunk.
#[derive(Debug, Default)]
pub(super) struct Packer {
    packed: Vec<u8>,
    /// Bytes of all payloads.
    unpacked: usize,
    urls: usize,
    arrival: u64,
    /// The last payload, and room for the next.
    last: Vec<u8>,
    payload: Vec<u8>,
}

impl Packer {
    /// Adds a URL; `write` appends its payload.
    pub(super) fn put(&mut self, key: Key, write: impl FnOnce(&mut Vec<u8>)) {
        self.payload.clear();
        write(&mut self.payload);
        let out = &mut self.packed;
        let step = key.arrival.wrapping_sub(self.arrival) as i64;
        out.put_varint((step << 1 ^ step >> 63) as u64);
        out.put_varint(key.quality.millionths() << 1 | u64::from(key.is_first));
        for (before, part) in parts(&self.last).into_iter().zip(parts(&self.payload)) {
            let shared = Shared::of(before, part);
            let middle = shared.middle(part);
            out.put_varint(shared.front as u64);
            out.put_varint(shared.back as u64);
            out.put_varint(middle.len() as u64);
            out.extend_from_slice(middle);
        }
        self.unpacked += self.payload.len();
        std::mem::swap(&mut self.last, &mut self.payload);
        (self.urls, self.arrival) = (self.urls + 1, key.arrival);
    }

    pub(super) fn urls(&self) -> usize {
        self.urls
    }

    /// Whether it has so many bytes, or as many as a chunk may have when it is unpacked.
    pub(super) fn is_full(&self, bytes: usize) -> bool {
        self.packed.len() >= bytes || self.unpacked >= UNPACKED_BYTES
    }

    /// Appends the chunk to `out`, and begins the next.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        out.put_varint(self.urls as u64);
        out.extend_from_slice(&self.packed);
        self.packed.clear();
        self.last.clear();
        (self.unpacked, self.urls, self.arrival) = (0, 0, 0);
    }
}

/// What is up to the last line end of a payload, and what follows: each is compared with the same
/// part of the payload before.
fn parts(payload: &[u8]) -> [&[u8]; 2] {
    let end = memchr::memrchr(b'\n', payload).map_or(payload.len(), |end| end + 1);
    [&payload[..end], &payload[end..]]
}

/// A chunk's URLs, unpacked.
#[derive(Debug, Default)]
pub(super) struct Unpacker {
    bytes: Vec<u8>,
    /// Keys, and where the payloads lie in `bytes`.
    pub(super) urls: Vec<(Key, Range<usize>)>,
}

impl Unpacker {
    /// Unpacks a chunk, in place of what was unpacked before.
    ///
    /// # Errors
    /// These are no chunk's bytes.
    pub(super) fn unpack(&mut self, chunk: &[u8]) -> Result<(), Short> {
        let mut take = Take::new(chunk);
        let urls = take.number::<usize>()?;
        self.bytes.clear();
        self.urls.clear();
        let (mut arrival, mut last) = (0_u64, 0..0);
        while !take.is_empty() {
            let step = take.varint()?;
            arrival = arrival.wrapping_add((step >> 1) ^ (step & 1).wrapping_neg());
            let quality = take.varint()?;
            let start = self.bytes.len();
            if start >= UNPACKED_BYTES {
                return Err(Short);
            }
            let between = last.start + parts(&self.bytes[last.clone()])[0].len();
            for before in [last.start..between, between..last.end] {
                let (front, back) = (take.number::<usize>()?, take.number::<usize>()?);
                let middle = take.bytes()?;
                if front.checked_add(back).is_none_or(|both| both > before.len()) {
                    return Err(Short);
                }
                self.bytes.extend_from_within(before.start..before.start + front);
                self.bytes.extend_from_slice(middle);
                self.bytes.extend_from_within(before.end - back..before.end);
            }
            last = start..self.bytes.len();
            if last.len() >= PAYLOAD_BYTES_MAX {
                return Err(Short);
            }
            let (is_first, quality) = (quality & 1 == 1, Quality::from_millionths(quality >> 1));
            self.urls.push((Key { is_first, quality, arrival }, last.clone()));
        }
        if self.urls.len() == urls && urls > 0 { Ok(()) } else { Err(Short) }
    }

    pub(super) fn payload(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }

    /// Whether no URL came later than the last, and all of them are payloads.
    pub(super) fn are_right(&self, arrivals: u64, is_payload: fn(&[u8]) -> bool) -> bool {
        let is_right = |(key, range): &(Key, Range<usize>)| {
            key.arrival <= arrivals && is_payload(self.payload(range))
        };
        self.urls.iter().all(is_right)
    }

    /// Which of the URLs are taken now if so many are wanted, about, and what is left of the chunk
    /// then.
    pub(super) fn take(
        &self,
        chunk: ChunkRef,
        wanted: usize,
        band: impl Fn(Key) -> Band,
    ) -> (Range<usize>, Option<ChunkRef>) {
        let urls = self.urls.len();
        let from = chunk.used(urls);
        let step = urls.div_ceil(STEPS);
        let steps = from.saturating_add(wanted.max(1)).div_ceil(step);
        let until = steps.saturating_mul(step).min(urls);
        let left = self.urls.get(until).map(|(key, _)| chunk.used_up(steps, band(*key)));
        (from..until, left)
    }
}

#[cfg(test)]
mod tests {
    use super::super::band::band_of;
    use super::*;

    #[test]
    fn a_chunk_is_used_up_in_steps() {
        let mut packer = Packer::default();
        let key = |number: u64| Key {
            is_first: number == 0,
            quality: Quality::from_millionths(1_000_000 - number),
            arrival: 5_000 + number * 7 % 100,
        };
        for number in 0..100 {
            packer.put(key(number), |out| out.extend_from_slice(format!("/{number}").as_bytes()));
        }
        let mut bytes = Vec::new();
        packer.finish(&mut bytes);
        assert!(bytes.len() < 1_300, "{}", bytes.len());
        let mut unpacker = Unpacker::default();
        unpacker.unpack(&bytes).expect("it was packed here");
        let mut left = Some(ChunkRef::new(Location { segment: 3, offset: 77, bytes: 800 }, 1));
        let mut seen = 0;
        while let Some(chunk) = left {
            let (range, next) = unpacker.take(chunk, 10, |key| band_of(key.quality));
            assert_eq!((range.start, range.is_empty()), (seen, false));
            for number in range.clone() {
                let (found, place) = &unpacker.urls[number];
                assert_eq!(*found, key(number as u64));
                assert_eq!(unpacker.payload(place), format!("/{number}").as_bytes());
            }
            (seen, left) = (range.end, next);
            assert!(left.is_none_or(|left| left.is(chunk) && left.place() == chunk.place()));
        }
        assert_eq!(seen, 100);
        for cut in 0..bytes.len() {
            let _ = unpacker.unpack(&bytes[..cut]);
            bytes[cut] ^= 0x55;
            let _ = unpacker.unpack(&bytes); // any answer, no panic
            bytes[cut] ^= 0x55;
        }
    }
}
