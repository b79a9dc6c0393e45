//! Streams of keys to measure caches with; the bench has them from here too.
//!
//! Integers, `+` and `/` only: the same on every machine.

use super::{Random, mix};

/// What a stream is like. Sizes go with the cache's, so that one stream is as hard for any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// All keys are equally likely; twice as many as entries.
    Uniform,
    /// Zipf's law with exponent 1; eight times as many keys as entries.
    Zipf,
    /// So many of a hundred keys are new, the others are drawn from the last ones that were: half
    /// as many as entries.
    Recent(u64),
    /// Servers being drained, and what they link to fits in by far.
    Ample,
    /// The same, and it just fits in.
    Tight,
    /// The same, twice as much as fits in.
    Scarce,
}

impl Stream {
    /// All of them.
    pub(super) const ALL: [Self; 6] =
        [Self::Uniform, Self::Zipf, Self::Recent(20), Self::Ample, Self::Tight, Self::Scarce];

    /// The first `len` keys for a cache of `entries`.
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

/// [`Stream::Recent`] without an end.
pub(super) struct Recent {
    random: Random,
    /// New keys so far, by number.
    newest: u64,
    /// How far back old ones are drawn from.
    window: u64,
    new_of_hundred: u64,
}

impl Recent {
    /// For a cache of so many entries.
    pub(super) fn new(entries: u64, new_of_hundred: u64, seed: u64) -> Self {
        let window = (entries / 2).max(1);
        Self { random: Random(seed), newest: window, window, new_of_hundred }
    }

    /// The next key.
    pub(super) fn next(&mut self) -> u64 {
        if self.random.below(100) < self.new_of_hundred {
            return self.new_key();
        }
        mix(self.newest - self.random.below(self.window))
    }

    /// A key that hasn't been seen.
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

/// Keys that a server is asked for within a short time: its popular ones and its last hundred.
const SERVER_KEYS: u64 = 116;
const POPULAR: u64 = 16;
/// Keys drawn at a server until another takes its place.
const VISIT: u64 = 2_000;

/// A few servers at a time; of what their pages link to, a fifth was never seen, two fifths are
/// the server's popular pages, two fifths those that came up last.
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
