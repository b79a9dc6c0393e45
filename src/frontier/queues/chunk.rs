//! Chunks: the encoding of several URLs of one queue, on disk and in snapshots, and the reference
//! to a chunk on disk.
//!
//! ```text
//! chunk      number of URLs | each URL, to the end
//! URL        arrival number minus that of the URL before, zigzag
//!            quality in millionths x 2, + 1 if the URL goes first
//!            two parts of the payload, each encoded by its difference from the same part of the
//!            payload before: bytes shared at the front | bytes shared at the back |
//!            length of the bytes between | these bytes
//! reference  segment 20 bits | steps taken 4 | length in units of 64 bytes, rounded up, 8 |
//!            band 6 | offset 26
//! ```
//! The URLs of a chunk are in the order of the queue. They are taken from its start, in *steps* of
//! a sixteenth of its URLs. The chunk on disk stays as it is; the reference counts the steps taken,
//! and has the *band* (class of quality) of the next URL to take.
//!
//! Law: unpacking returns the URLs that were packed, or an error.

use super::band::{BAND_MAX, Band};
use super::entry::Key;
use super::records::PAYLOAD_BYTES_MAX;
use super::shared::Shared;
use crate::ground::codec::{Put, Short, Take};
use crate::ground::quality::Quality;
use crate::ground::segments::Location;
use std::ops::Range;

/// The number of steps into which the URLs of a chunk are divided. URLs are taken in whole steps.
const STEPS: usize = 16;
const UNIT_BYTES: usize = 64;
/// The length of a segment in bytes below which every chunk in it begins.
pub(super) const SEGMENT_BYTES_MAX: u64 = 1 << 26;
const SEGMENTS_MAX: u32 = 1 << 20;
/// The total length of unpacked payloads at which a chunk is full, in bytes. A bound of the packed
/// length alone would not limit it, since payloads may share nearly all of their bytes.
const UNPACKED_BYTES: usize = if cfg!(test) { 400 } else { 1 << 20 };

/// The reference to a chunk on disk: its location, the steps taken from it, and the band of its
/// next URL. The head of this file has its format.
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

    /// Returns the location of the chunk. The length in it is rounded up to a multiple of 64 bytes,
    /// but is never more than 16,320 bytes, even if the chunk is longer.
    pub(super) fn place(self) -> Location {
        Location {
            segment: (self.0 >> 44) as u32,
            offset: (self.0 % SEGMENT_BYTES_MAX) as u32,
            bytes: (self.0 >> 32 & 255) as u32 * UNIT_BYTES as u32,
        }
    }

    /// Returns the band of the next URL in the chunk.
    pub(super) fn band(self) -> Band {
        (self.0 >> 26) as u8 & BAND_MAX
    }

    fn steps_used(self) -> usize {
        (self.0 >> 40) as usize % STEPS
    }

    /// Returns how many of a chunk's URLs were taken, if the chunk was packed with `urls` URLs.
    fn used(self, urls: usize) -> usize {
        (self.steps_used() * urls.div_ceil(STEPS)).min(urls)
    }

    /// Returns a reference to the same chunk of which `steps` steps are taken, and whose next URL
    /// is in `band`.
    fn used_up(self, steps: usize, band: Band) -> Self {
        let changed = (15 << 40) | (u64::from(BAND_MAX) << 26);
        Self(self.0 & !changed | (steps as u64) << 40 | u64::from(band) << 26)
    }

    /// Returns this reference with the location of `to`: the chunk was copied there.
    pub(super) fn moved(self, to: Self) -> Self {
        to.used_up(self.steps_used(), self.band())
    }

    /// Returns whether both references are to the same chunk, whatever number of steps was taken.
    pub(super) fn is(self, other: Self) -> bool {
        let (own, other) = (self.place(), other.place());
        (own.segment, own.offset) == (other.segment, other.offset)
    }
}

/// The encoder of a chunk, to which URLs are added one by one.
#[derive(Debug, Default)]
pub(super) struct Packer {
    packed: Vec<u8>,
    /// The total length of the payloads in the chunk before encoding, in bytes.
    unpacked: usize,
    urls: usize,
    arrival: u64,
    /// The payload that was added last, from which the next one is encoded by its difference.
    last: Vec<u8>,
    /// The payload that is being added. It is a field so that its memory is reused.
    payload: Vec<u8>,
}

impl Packer {
    /// Adds a URL to the chunk. `write` appends its payload to the vector that it is given.
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

    /// Returns whether the chunk has at least `bytes` packed bytes, or as many unpacked bytes as a
    /// chunk may have.
    pub(super) fn is_full(&self, bytes: usize) -> bool {
        self.packed.len() >= bytes || self.unpacked >= UNPACKED_BYTES
    }

    /// Appends the finished chunk to `out` and begins the next one.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        out.put_varint(self.urls as u64);
        out.extend_from_slice(&self.packed);
        self.packed.clear();
        self.last.clear();
        (self.unpacked, self.urls, self.arrival) = (0, 0, 0);
    }
}

/// Splits a payload after its last line end. Each of the two parts is encoded by its difference
/// from the same part of the payload before.
fn parts(payload: &[u8]) -> [&[u8]; 2] {
    let end = memchr::memrchr(b'\n', payload).map_or(payload.len(), |end| end + 1);
    [&payload[..end], &payload[end..]]
}

/// The decoder of chunks, with the URLs of the chunk that it decoded last.
#[derive(Debug, Default)]
pub(super) struct Unpacker {
    bytes: Vec<u8>,
    /// The key of each URL, and the range of its payload in `bytes`.
    pub(super) urls: Vec<(Key, Range<usize>)>,
}

impl Unpacker {
    /// Decodes a chunk. Its URLs replace those of the chunk that was decoded before.
    ///
    /// # Errors
    /// The bytes are not a valid chunk.
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

    /// Returns the decoded URLs that were not taken from the chunk yet, in order.
    pub(super) fn left_of(&self, chunk: ChunkRef) -> &[(Key, Range<usize>)] {
        &self.urls[chunk.used(self.urls.len())..]
    }

    /// Returns whether all URLs are plausible: their arrival numbers are at most `arrivals`, that
    /// of the last URL queued, and `is_payload` accepts their payloads.
    pub(super) fn are_right(&self, arrivals: u64, is_payload: fn(&[u8]) -> bool) -> bool {
        let is_right = |(key, range): &(Key, Range<usize>)| {
            key.arrival <= arrivals && is_payload(self.payload(range))
        };
        self.urls.iter().all(is_right)
    }

    /// Returns which of the decoded URLs to take if about `wanted` are wanted (always whole steps,
    /// at least one), and the reference to the chunk afterwards: `None` if no URL is left in it.
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
