//! The replacement policies of a cache, and their misses at all sizes.
//!
//! Cost for n links, k entries and s sizes: INFINITE and STATIC take O(n), LRU and MIN one pass for
//! all sizes ([`super::stack`], [`super::min`]), CLOCK and RANDOM a replay for each size with the
//! crawler's own cache.

use super::misses::{Hits, Misses, WINDOWS, level_of, window};
use super::stream::Stream;
use super::{min, stack};
use crate::seen::cache::{Cache, Replacement};

/// How a full cache chooses the entry to evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// It evicts nothing: it has room for all URLs. Its misses are a lower bound.
    Infinite,
    /// It evicts the URL whose next link is last: the optimum, which needs to know the future.
    Min,
    /// It evicts the URL whose last link is oldest.
    Lru,
    /// It approximates LRU with one bit per entry.
    Clock,
    /// It evicts a random entry.
    Random,
    /// It evicts and inserts nothing: it holds the most frequent URLs of the whole stream from the
    /// start, without counting misses for them.
    Static,
}

impl Policy {
    /// All policies, in the order in which they are shown.
    pub(super) const ALL: [Self; 6] =
        [Self::Infinite, Self::Min, Self::Lru, Self::Clock, Self::Random, Self::Static];

    /// Returns the name of the policy in the paper (Broder, Najork, Wiener: Efficient URL Caching,
    /// 2003).
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

/// A part of the work on a stream that can run by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// The replay of a policy that handles all cache sizes in one pass.
    Whole(Policy),
    /// The replay of CLOCK or RANDOM at one level: a cache of 2^level entries.
    Sized(Replacement, usize),
}

impl Job {
    /// Returns all jobs of a stream, longest first.
    pub(super) fn all(stream: &Stream) -> Vec<Self> {
        let mut jobs = vec![Self::Whole(Policy::Min), Self::Whole(Policy::Lru)];
        // A cache with room for all evicts nothing: its misses are those of INFINITE.
        for level in (0..stream.levels() - 1).rev() {
            jobs.extend(Replacement::ALL.map(|replacement| Self::Sized(replacement, level)));
        }
        jobs.extend([Self::Whole(Policy::Static), Self::Whole(Policy::Infinite)]);
        jobs
    }

    /// Runs the job. Calls `progress` with the number of links done since the last call;
    /// `stream.links` in total.
    pub(super) fn run(self, stream: &Stream, progress: &dyn Fn(usize)) -> Misses {
        let (links, urls, levels) = (&stream.links, stream.urls(), stream.levels());
        match self {
            Self::Whole(Policy::Min) => min::min(links, urls, levels, progress),
            Self::Whole(Policy::Lru) => stack::lru(links, urls, levels, progress),
            Self::Whole(Policy::Static) => fixed(links, urls, levels, progress),
            Self::Whole(_) => infinite(links, levels, progress),
            Self::Sized(replacement, level) => {
                let log2 = u32::try_from(level).expect("at most 32");
                let mut cache = Cache::new(log2, replacement, SEED);
                let prints = &stream.prints;
                let misses = replay(links, &mut |url| cache.touch(prints[url as usize]), progress);
                Misses::of_levels(vec![misses])
            }
        }
    }
}

/// The seed of RANDOM's draws, the same for every replay.
const SEED: u64 = 2_003;

/// Returns the misses in each window of a cache that gets one link after the other: `touch`
/// receives the URL's number and returns whether it hits. Calls `progress` with the number of links
/// done since the last call.
pub(super) fn replay(
    links: &[u32],
    touch: &mut impl FnMut(u32) -> bool,
    progress: &dyn Fn(usize),
) -> [u32; WINDOWS] {
    let mut misses = [0; WINDOWS];
    for (at, misses) in misses.iter_mut().enumerate() {
        let window = window(links.len(), at);
        for url in &links[window.clone()] {
            *misses += u32::from(!touch(*url));
        }
        progress(window.len());
    }
    misses
}

/// Returns the misses of an unlimited cache. URLs are numbered in the order of their first links,
/// so a link misses if its number is new.
fn infinite(links: &[u32], levels: usize, progress: &dyn Fn(usize)) -> Misses {
    let mut known = 0;
    let mut is_known = |url| {
        let is_known = url < known;
        known = known.max(url + 1);
        is_known
    };
    Misses::of_levels(vec![replay(links, &mut is_known, progress); levels])
}

/// Returns the misses of caches that hold the most frequent URLs from the start: a URL hits in the
/// smallest cache that holds it, and in all larger ones. Of equally frequent URLs, the one linked
/// first takes precedence.
fn fixed(links: &[u32], urls: usize, levels: usize, progress: &dyn Fn(usize)) -> Misses {
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
        progress(window.len());
    }
    hits.misses()
}
