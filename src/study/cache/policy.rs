//! The policies of a cache, and their misses at all sizes.
//!
//! What each costs, for n links, k entries and s sizes: INFINITE and STATIC O(n), LRU and MIN one
//! pass for all sizes ([`super::stack`], [`super::min`]), CLOCK and RANDOM a replay for each size
//! by the crawler's own cache.

use super::misses::{Hits, Misses, WINDOWS, level_of, window};
use super::stream::Stream;
use super::{min, stack};
use crate::seen::cache::{Cache, Replacement};

/// How a cache chooses what to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// Nothing: it has room for all. The floor.
    Infinite,
    /// The URL met again last: the best there is, if the future is known.
    Min,
    /// The URL met longest ago.
    Lru,
    /// About that, at one bit an entry.
    Clock,
    /// Any.
    Random,
    /// Nothing, and takes nothing in: holds the most frequent URLs of the whole stream from the
    /// start, which is not charged.
    Static,
}

impl Policy {
    /// All of them, as they are shown.
    pub(super) const ALL: [Self; 6] =
        [Self::Infinite, Self::Min, Self::Lru, Self::Clock, Self::Random, Self::Static];

    /// As the paper calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Infinite => "INFINITE",
            Self::Min => "MIN",
            Self::Lru => "LRU",
            Self::Clock => "CLOCK",
            Self::Random => "RANDOM",
            Self::Static => "STATIC",
        }
    }
}

/// A part of the work on a stream that can be done by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// A policy at all sizes.
    Whole(Policy),
    /// CLOCK or RANDOM at one.
    Sized(Replacement, usize),
}

impl Job {
    /// What there is to do with a stream, longest first.
    pub(super) fn all(stream: &Stream) -> Vec<Self> {
        let mut jobs = vec![Self::Whole(Policy::Min), Self::Whole(Policy::Lru)];
        // A cache with room for all gives nothing up: INFINITE says what it misses.
        for level in (0..stream.levels() - 1).rev() {
            jobs.extend(Replacement::ALL.map(|replacement| Self::Sized(replacement, level)));
        }
        jobs.extend([Self::Whole(Policy::Static), Self::Whole(Policy::Infinite)]);
        jobs
    }

    /// Does it. `tell` is told of links as they are done, `stream.links` in all.
    pub(super) fn run(self, stream: &Stream, tell: &dyn Fn(usize)) -> Misses {
        let (links, urls, levels) = (&stream.links, stream.urls(), stream.levels());
        match self {
            Self::Whole(Policy::Min) => min::min(links, urls, levels, tell),
            Self::Whole(Policy::Lru) => stack::lru(links, urls, levels, tell),
            Self::Whole(Policy::Static) => fixed(links, urls, levels, tell),
            Self::Whole(_) => infinite(links, levels, tell),
            Self::Sized(replacement, level) => {
                let log2 = u32::try_from(level).expect("at most 32");
                let mut cache = Cache::new(log2, replacement, SEED);
                let prints = &stream.prints;
                let misses = replay(links, &mut |url| cache.touch(prints[url as usize]), tell);
                Misses::of_levels(vec![misses])
            }
        }
    }
}

/// Of what RANDOM draws: the same for every replay.
const SEED: u64 = 2_003;

/// Misses by window of a cache that is met by one link after the other.
pub(super) fn replay(
    links: &[u32],
    touch: &mut impl FnMut(u32) -> bool,
    tell: &dyn Fn(usize),
) -> [u32; WINDOWS] {
    let mut misses = [0; WINDOWS];
    for (at, misses) in misses.iter_mut().enumerate() {
        let window = window(links.len(), at);
        for url in &links[window.clone()] {
            *misses += u32::from(!touch(*url));
        }
        tell(window.len());
    }
    misses
}

/// A cache without end misses what is new: numbers are given in the order in which URLs are met.
fn infinite(links: &[u32], levels: usize, tell: &dyn Fn(usize)) -> Misses {
    let mut met = 0;
    let mut is_known = |url| {
        let is_known = url < met;
        met = met.max(url + 1);
        is_known
    };
    Misses::of_levels(vec![replay(links, &mut is_known, tell); levels])
}

/// A cache that holds the most frequent URLs from the start: a URL hits from the size on at which
/// it is among them. Of equally frequent ones the first met.
fn fixed(links: &[u32], urls: usize, levels: usize, tell: &dyn Fn(usize)) -> Misses {
    let mut counts = vec![0_u32; urls];
    links.iter().for_each(|url| counts[*url as usize] += 1);
    let mut order: Vec<u32> = (0..).take(urls).collect();
    order.sort_by_key(|url| std::cmp::Reverse(counts[*url as usize]));
    let mut first_level = vec![0_u8; urls];
    for (rank, url) in order.iter().enumerate() {
        let level = u8::try_from(level_of(rank + 1)).expect("at most 32");
        first_level[*url as usize] = level;
    }
    let mut hits = Hits::new(links.len(), levels);
    for at in 0..WINDOWS {
        let window = window(links.len(), at);
        for url in &links[window.clone()] {
            hits.add(at, usize::from(first_level[*url as usize]));
        }
        tell(window.len());
    }
    hits.misses()
}
