//! URLs that wait for their test: keys in memory, by bucket; bytes in a log, by arrival.
//!
//! Cost: 12 bytes of memory a URL, in pieces that are neither moved nor grown; bytes are copied to
//! the log's frame, and are not seen again until those of first-timers are read.

use super::log::Log;
use super::sort::Entry;
use crate::codec::Put;

/// A bucket is the keys that share so many upper bits.
pub(super) const BUCKET_BITS: u32 = 6;
/// 64: with a billion keys a bucket is 75 MB, a job of a third of a second; more would mean more
/// files to sync a merge, fewer longer jobs.
pub(super) const BUCKETS: usize = 1 << BUCKET_BITS;
/// What a URL takes of memory while it waits: its key and its place.
pub(super) const ENTRY_BYTES: usize = size_of::<u64>() + size_of::<u32>();

/// Number of the bucket of a key.
pub(super) fn bucket_of(key: u64) -> usize {
    (key >> (u64::BITS - BUCKET_BITS)) as usize
}

/// URLs that wait.
#[derive(Debug)]
pub(super) struct Batch {
    /// By bucket.
    pub(super) parts: Vec<Part>,
    /// URLs, repeats included.
    pub(super) len: u32,
    /// Their bytes.
    pub(super) log: Log,
    /// Entries of a piece of a part.
    piece: usize,
}

impl Batch {
    /// An empty batch, to take some `urls_max` URLs.
    pub(super) fn new(log: Log, urls_max: usize) -> Self {
        let parts = std::iter::repeat_with(Part::default).take(BUCKETS).collect();
        // What the last piece of each part leaves free is a sixteenth of the batch.
        let piece = (urls_max / BUCKETS / 8).clamp(16, 8_192);
        Self { parts, len: 0, log, piece }
    }

    /// Takes in a URL.
    pub(super) fn push(&mut self, key: u64, bytes: &[u8]) {
        self.log.add(|out| {
            out.reserve(size_of::<u64>() + bytes.len() + 10);
            out.put_u64(key);
            out.put_bytes(bytes);
        });
        self.push_key(key);
    }

    /// Takes in a URL whose bytes are in the log already.
    pub(super) fn push_key(&mut self, key: u64) {
        self.parts[bucket_of(key)].push(key, self.len, self.piece);
        self.len = self.len.checked_add(1).expect("fewer than 2^32 URLs wait");
    }

    /// Bytes of memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.len as usize * ENTRY_BYTES + self.log.waiting_bytes()
    }
}

/// The keys of one bucket with their places, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Part {
    pieces: Vec<Piece>,
    len: usize,
}

#[derive(Debug)]
struct Piece {
    keys: Vec<u64>,
    places: Vec<u32>,
}

impl Part {
    /// Adds an entry; memory is taken for `piece` of them at once.
    pub(super) fn push(&mut self, key: u64, place: u32, piece: usize) {
        if self.len == self.pieces.len() * piece {
            let (keys, places) = (Vec::with_capacity(piece), Vec::with_capacity(piece));
            self.pieces.push(Piece { keys, places });
        }
        let last = self.pieces.last_mut().expect("there is a piece with room");
        last.keys.push(key);
        last.places.push(place);
        self.len += 1;
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// All keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> {
        self.pieces.iter().flat_map(|piece| piece.keys.iter().copied())
    }

    /// All entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.pieces.iter().flat_map(|piece| {
            let entries = piece.keys.iter().zip(&piece.places);
            entries.map(|(&key, &place)| Entry { key, place })
        })
    }
}
