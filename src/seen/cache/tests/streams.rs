//! Streams of keys to measure caches with; the benches use them, too.
//!
//! Only integers, `+` and `/`, so that they are the same on every machine.

use super::{Random, mix};

/// The kind of stream. Sizes are relative to the cache, so that a stream is equally difficult for
/// any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// All keys are equally likely; twice as many keys as entries.
    Uniform,
    /// Zipf's law with exponent 1; eight times as many keys as entries.
    Zipf,
    /// So many of a hundred keys are new; the others are drawn from the last new ones, half as many
    /// as entries.
    Recent(u64),
    /// Servers being crawled, whose link targets fit into the cache easily.
    Ample,
    /// Servers being crawled, whose link targets just fit.
    Tight,
    /// Servers being crawled, with twice as many link targets as fit.
    Scarce,
}

impl Stream {
    /// All streams.
    pub(super) const ALL: [Self; 6] =
        [Self::Uniform, Self::Zipf, Self::Recent(20), Self::Ample, Self::Tight, Self::Scarce];

    /// Returns the first `len` keys for a cache of `entries`.
    pub(super) fn keys(self, entries: usize, len: usize, seed: u64) -> Vec<u64> {
        let mut random = Random(seed);
        let entries = entries as u64;
        match self {
            Self::Uniform => (0..len).map(|_| mix(random.below(2 * entries))).collect(),
            Self::Zipf => zipf(8 * entries, len, &mut random),
            Self::Recent(new) => {
                let mut recent = Recent::new(entries, new, seed);
                (0..len).map(|_| recent.next()).collect()
            }
            Self::Ample => draining(entries / (2 * SERVER_KEYS), len, &mut random),
            Self::Tight => draining(entries * 9 / (10 * SERVER_KEYS), len, &mut random),
            Self::Scarce => draining(2 * entries / SERVER_KEYS, len, &mut random),
        }
    }
}

/// The endless stream of [`Stream::Recent`].
pub(super) struct Recent {
    random: Random,
    /// The number of new keys so far.
    newest: u64,
    /// The number of last new keys from which old ones are drawn.
    window: u64,
    new_of_hundred: u64,
}

impl Recent {
    /// Creates the stream for a cache of so many entries.
    pub(super) fn new(entries: u64, new_of_hundred: u64, seed: u64) -> Self {
        let window = (entries / 2).max(1);
        Self { random: Random(seed), newest: window, window, new_of_hundred }
    }

    /// Returns the next key.
    pub(super) fn next(&mut self) -> u64 {
        if self.random.below(100) < self.new_of_hundred {
            return self.new_key();
        }
        mix(self.newest - self.random.below(self.window))
    }

    /// Returns a key that hasn't been seen.
    pub(super) fn new_key(&mut self) -> u64 {
        self.newest += 1;
        mix(self.newest)
    }
}

fn zipf(keys: u64, len: usize, random: &mut Random) -> Vec<u64> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=keys)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let draw = |_| {
        let at = (random.word() >> 11) as f64 / (1_u64 << 53) as f64 * sum;
        mix(sums.partition_point(|sum| *sum <= at) as u64)
    };
    (0..len).map(draw).collect()
}

/// The keys that a server's pages link to within a short time: its popular ones and its last
/// hundred.
const SERVER_KEYS: u64 = 116;
const POPULAR: u64 = 16;
/// The number of keys drawn at a server until another takes its place.
const VISIT: u64 = 2_000;

/// A few servers are crawled at a time. Of the links of their pages a fifth is new, two fifths are
/// the server's popular pages, two fifths the most recent ones.
fn draining(servers: u64, len: usize, random: &mut Random) -> Vec<u64> {
    struct Server {
        number: u64,
        pages: u64,
        left: u64,
    }
    let mut number = 0;
    let mut open = |left| {
        number += 1;
        Server { number, pages: POPULAR, left }
    };
    let mut servers: Vec<Server> =
        (0..servers.max(1)).map(|_| open(1 + random.below(VISIT))).collect();
    let draw = |_| {
        let at = random.below(servers.len() as u64) as usize;
        if servers[at].left == 0 {
            servers[at] = open(VISIT);
        }
        let server = &mut servers[at];
        server.left -= 1;
        let page = match random.below(5) {
            0 => {
                server.pages += 1;
                server.pages
            }
            1 | 2 => random.below(POPULAR),
            _ => server.pages - random.below(server.pages.min(SERVER_KEYS - POPULAR)),
        };
        mix(server.number << 32 | page)
    };
    (0..len).map(draw).collect()
}
