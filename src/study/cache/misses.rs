//! The misses of a replay, by cache size and by time.
//!
//! Sizes are powers of two and are identified by their logarithm, the *level*: level 10 is a cache
//! of 1,024 entries. Time is counted in links: a stream (the links of a trace, in order) is divided
//! into [`WINDOWS`] windows of equal length, so that every curve over time is available for every
//! size.

use std::ops::Range;

/// The number of windows that a stream is divided into.
pub(super) const WINDOWS: usize = 100;

/// The misses of a policy in each window: one entry per level, smallest cache first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misses {
    levels: Vec<[u32; WINDOWS]>,
}

impl Misses {
    /// Creates the misses from the counts of each level, smallest cache first.
    pub(super) fn of_levels(levels: Vec<[u32; WINDOWS]>) -> Self {
        Self { levels }
    }

    /// Returns the misses of all windows at a level.
    pub(super) fn total(&self, level: usize) -> u64 {
        self.levels[level].iter().map(|misses| u64::from(*misses)).sum()
    }

    /// Returns the misses in a window at a level.
    pub(super) fn in_window(&self, level: usize, window: usize) -> u32 {
        self.levels[level][window]
    }

    /// Returns the misses of each window at a level.
    pub(super) fn row(&self, level: usize) -> [u32; WINDOWS] {
        self.levels[level]
    }
}

/// Counts hits of policies whose caches hold everything that smaller ones hold: a link that hits at
/// a level hits at all higher levels.
#[derive(Clone, Debug)]
pub(super) struct Hits {
    /// For each level, the number of links in each window that hit at this level, but at no lower
    /// one.
    from: Vec<[u32; WINDOWS]>,
    links: usize,
}

impl Hits {
    /// Creates a counter without hits for a stream of `links` links.
    pub(super) fn new(links: usize, levels: usize) -> Self {
        Self { from: vec![[0; WINDOWS]; levels], links }
    }

    /// Counts a link in `window` that hits at `level` and at all higher levels.
    pub(super) fn add(&mut self, window: usize, level: usize) {
        self.from[level][window] += 1;
    }

    /// Returns the misses at each level: all links that don't hit there.
    pub(super) fn misses(&self) -> Misses {
        let mut left: [u32; WINDOWS] = std::array::from_fn(|at| {
            u32::try_from(window(self.links, at).len()).expect("a stream has fewer than 2^32")
        });
        let mut levels = Vec::with_capacity(self.from.len());
        for hits in &self.from {
            for (left, hits) in left.iter_mut().zip(hits) {
                *left -= hits;
            }
            levels.push(left);
        }
        Misses { levels }
    }
}

/// Returns the range of the links in window number `at`, for a stream of `links` links.
pub(super) fn window(links: usize, at: usize) -> Range<usize> {
    let edge = |at: usize| {
        let edge = links as u128 * at as u128 / WINDOWS as u128;
        usize::try_from(edge).expect("at most `links`")
    };
    edge(at)..edge(at + 1)
}

/// Returns the smallest level whose cache has room for `entries` entries, or for one if that is 0.
pub(super) fn level_of(entries: usize) -> usize {
    entries.next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_the_whole_stream() {
        for links in [0, 1, 7, 99, 100, 101, 12_345] {
            let mut next = 0;
            for at in 0..WINDOWS {
                let window = window(links, at);
                assert_eq!(window.start, next, "{links}, {at}");
                next = window.end;
            }
            assert_eq!(next, links);
        }
    }

    #[test]
    fn levels_have_room() {
        for (entries, level) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 20, 20)] {
            assert_eq!(level_of(entries), level, "{entries}");
        }
    }

    #[test]
    fn a_hit_counts_for_all_larger_caches() {
        let mut hits = Hits::new(200, 3);
        hits.add(0, 1);
        hits.add(99, 2);
        let misses = hits.misses();
        let totals: Vec<u64> = (0..3).map(|level| misses.total(level)).collect();
        assert_eq!(totals, [200, 199, 198]);
        assert_eq!((misses.in_window(1, 0), misses.in_window(1, 99)), (1, 2));
    }
}
