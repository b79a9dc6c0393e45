//! A batch of URLs that wait for the test whether they are new: keys in memory, bytes in a log.
//!
//! A bucket is the set of all keys with the same upper bits. Keys are stored by bucket, the bytes
//! in the log by order of arrival. The position of a URL in the log is not stored: each log record
//! contains the key, which determines the bucket, and the keys of a bucket are in order of arrival
//! too.
//!
//! Cost: eight bytes of memory a URL, in blocks that are never moved or grown. The bytes are
//! written to the log's frame, and are read again only when the new URLs are extracted.

use super::log::Log;

/// The number of upper bits that the keys of a bucket share.
pub(super) const BUCKET_BITS: u32 = 6;
/// The number of buckets. With 64, a bucket of a billion keys is 75 MB, and its merge takes a third
/// of a second. More buckets mean more files to sync for each merge, fewer mean longer jobs.
pub(super) const BUCKETS: usize = 1 << BUCKET_BITS;
/// The memory for one waiting URL, in bytes: that of its key.
pub(super) const ENTRY_BYTES: usize = size_of::<u64>();

/// Returns the number of the bucket of a key.
pub(super) fn bucket_of(key: u64) -> usize {
    (key >> (u64::BITS - BUCKET_BITS)) as usize
}

/// URLs that wait for the test whether they are new.
#[derive(Debug)]
pub(super) struct Batch {
    /// The keys of the waiting URLs, one part for each bucket.
    pub(super) parts: Vec<Part>,
    /// The log with the bytes of the waiting URLs.
    pub(super) log: Log,
    /// The number of waiting URLs, duplicates included.
    len: u32,
    /// The number of keys for which a part allocates memory at once: the length of a block.
    block: usize,
}

impl Batch {
    /// Creates an empty batch for about `urls_max` URLs.
    pub(super) fn new(log: Log, urls_max: usize) -> Self {
        let parts = std::iter::repeat_with(Part::default).take(BUCKETS).collect();
        // The unused space in the last block of each bucket is then a sixteenth of the batch.
        let block = (urls_max / BUCKETS / 8).clamp(16, 8_192);
        Self { parts, log, len: 0, block }
    }

    /// Adds a URL with this key; the function `write` appends the bytes of the URL to the log.
    pub(super) fn push(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.log.add(key, write);
        self.push_key(key);
    }

    /// Adds the key of a URL whose bytes are in the log already.
    pub(super) fn push_key(&mut self, key: u64) {
        self.parts[bucket_of(key)].push(key, self.block);
        self.len = self.len.checked_add(1).expect("fewer than 2^32 URLs wait");
    }

    /// Returns the number of waiting URLs, duplicates included.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns the memory in use by the keys and the log, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.len() * ENTRY_BYTES + self.log.waiting_bytes()
    }
}

/// The keys of one bucket, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The block to which keys are added.
    open: Vec<u64>,
    /// The blocks that are full, in order of arrival.
    full: Vec<Vec<u64>>,
    /// The number of keys in all full blocks.
    full_len: usize,
}

impl Part {
    /// Adds a key. If a new block is needed, memory for `block` keys is allocated at once.
    pub(super) fn push(&mut self, key: u64, block: usize) {
        if self.open.len() == self.open.capacity() {
            self.open_block(block);
        }
        self.open.push(key);
    }

    /// Returns the number of keys of this bucket.
    pub(super) fn len(&self) -> usize {
        self.full_len + self.open.len()
    }

    /// Returns the keys of this bucket as a sequence of blocks, of which only the last may still
    /// grow.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &[u64]> {
        self.full.iter().chain([&self.open]).map(Vec::as_slice)
    }

    /// Returns the keys of this bucket, in order of arrival.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> + Clone {
        self.full.iter().chain([&self.open]).flatten().copied()
    }

    #[cold]
    fn open_block(&mut self, block: usize) {
        let full = std::mem::replace(&mut self.open, Vec::with_capacity(block));
        self.full_len += full.len();
        if !full.is_empty() {
            self.full.push(full);
        }
    }
}
