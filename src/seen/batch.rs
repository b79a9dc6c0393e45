//! URLs that wait for their test: keys in memory, by bucket; bytes in a log, by arrival.
//!
//! Where a URL lies in the log needn't be kept: the log says its key, and so its bucket; and in a
//! bucket keys are in order of arrival too.
//!
//! Cost: eight bytes of memory a URL, in pieces that are neither moved nor grown; bytes are written
//! to the log's frame, and are not seen again until those of first-timers are read.

use super::log::Log;

/// A bucket is the keys that share so many upper bits.
pub(super) const BUCKET_BITS: u32 = 6;
/// 64: with a billion keys a bucket is 75 MB, a job of a third of a second; more would mean more
/// files to sync a merge, fewer longer jobs.
pub(super) const BUCKETS: usize = 1 << BUCKET_BITS;
/// What a URL takes of memory while it waits: its key.
pub(super) const ENTRY_BYTES: usize = size_of::<u64>();

/// Number of the bucket of a key.
pub(super) fn bucket_of(key: u64) -> usize {
    (key >> (u64::BITS - BUCKET_BITS)) as usize
}

/// URLs that wait.
#[derive(Debug)]
pub(super) struct Batch {
    /// By bucket.
    pub(super) parts: Vec<Part>,
    /// Their bytes.
    pub(super) log: Log,
    /// URLs, repeats included.
    len: u32,
    /// Keys of a piece of a part.
    piece: usize,
}

impl Batch {
    /// An empty batch, to take some `urls_max` URLs.
    pub(super) fn new(log: Log, urls_max: usize) -> Self {
        let parts = std::iter::repeat_with(Part::default).take(BUCKETS).collect();
        // What the last piece of each part leaves free is a sixteenth of the batch.
        let piece = (urls_max / BUCKETS / 8).clamp(16, 8_192);
        Self { parts, log, len: 0, piece }
    }

    /// Takes in a URL, whose bytes `write` appends.
    pub(super) fn push(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.log.add(key, write);
        self.push_key(key);
    }

    /// Takes in a URL whose bytes are in the log already.
    pub(super) fn push_key(&mut self, key: u64) {
        self.parts[bucket_of(key)].push(key, self.piece);
        self.len = self.len.checked_add(1).expect("fewer than 2^32 URLs wait");
    }

    /// URLs, repeats included.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Bytes of memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.len() * ENTRY_BYTES + self.log.waiting_bytes()
    }
}

/// The keys of one bucket, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The piece that is being filled.
    open: Vec<u64>,
    /// Those before it.
    full: Vec<Vec<u64>>,
    /// Keys in those.
    full_len: usize,
}

impl Part {
    /// Adds a key; memory is taken for `piece` of them at once.
    pub(super) fn push(&mut self, key: u64, piece: usize) {
        if self.open.len() == self.open.capacity() {
            self.open_piece(piece);
        }
        self.open.push(key);
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.full_len + self.open.len()
    }

    /// Its keys in pieces, of which only the last may still grow.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u64]> {
        self.full.iter().chain([&self.open]).map(Vec::as_slice)
    }

    /// All keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> + Clone {
        self.full.iter().chain([&self.open]).flatten().copied()
    }

    #[cold]
    fn open_piece(&mut self, piece: usize) {
        let full = std::mem::replace(&mut self.open, Vec::with_capacity(piece));
        self.full_len += full.len();
        if !full.is_empty() {
            self.full.push(full);
        }
    }
}
