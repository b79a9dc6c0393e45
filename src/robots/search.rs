//! Matches rules that contain stars against a target (path and query), at a cost that many rules
//! share.
//!
//! The text between two stars of a rule is a piece. For a few rules the pieces are searched
//! directly. For more rules the target is indexed: for each length that is a power of two, the
//! index lists the positions of each run of that many octets. A piece occurs where the longest such
//! run at its start and the one at its end occur at the right distance, because together they cover
//! the piece.
//!
//! Law: the index and a plain search return the same position.
//! Cost: an index takes some 10 ns an octet of the target for each length in use. A piece costs
//! some 10 ns, and as much again for each position where one run occurs and the other does not.
//! There are few such pieces, because few long runs occur often.

use super::octets::ANY;
use memchr::memmem;

/// The number of direct searches of a target before it is indexed.
const SEARCHES_MAX: usize = 48;
/// The number of octets that count as one unit of work. Reading them costs about as much as
/// scanning one octet of a page.
const OCTETS_A_UNIT: usize = 4;

/// A target, and what is needed to match rules with it.
pub(super) struct Search<'t> {
    target: &'t [u8],
    searches: usize,
    index: Option<Index>,
    /// The number of octets read so far.
    octets_read: usize,
}

impl<'t> Search<'t> {
    pub(super) fn new(target: &'t [u8]) -> Self {
        Self { target, searches: 0, index: None, octets_read: 0 }
    }

    pub(super) fn target(&self) -> &'t [u8] {
        self.target
    }

    /// Returns the work done so far, in units that cost about as much as scanning one octet of a
    /// page.
    pub(super) fn units(&self) -> usize {
        self.octets_read / OCTETS_A_UNIT
    }

    /// Adds octets that the caller has read itself to the work done.
    pub(super) fn charge(&mut self, octets: usize) {
        self.octets_read += octets;
    }

    /// Returns whether the rule with these octets matches the target. Each piece is matched at its
    /// first occurrence: whatever the rest of the rule matches after a later one, it also matches
    /// after the first. The octet that means "end" occurs at the end of the target only.
    pub(super) fn matches(&mut self, octets: &[u8]) -> bool {
        let mut pieces = octets.split(|&octet| octet == ANY);
        let first = pieces.next().unwrap_or_default();
        if !self.target.starts_with(first) {
            return false;
        }
        let mut from = first.len();
        for piece in pieces {
            match self.find(piece, from) {
                Some(position) => from = position + piece.len(),
                None => return false,
            }
        }
        true
    }

    /// Returns the position of the first occurrence of `piece` in the target at or after `from`.
    fn find(&mut self, piece: &[u8], from: usize) -> Option<usize> {
        self.searches += 1;
        if self.searches <= SEARCHES_MAX {
            self.octets_read += self.target.len() - from;
            return memmem::find(&self.target[from..], piece).map(|position| from + position);
        }
        self.octets_read += piece.len();
        let target = self.target;
        let work = &mut self.octets_read;
        self.index.get_or_insert_default().find(target, piece, from, work)
    }
}

/// The number of levels of an index. The runs of level n have a length of 2^n octets.
const LEVELS: usize = 12;

/// The positions of all runs of a target, by level. A level is built when it is first needed.
#[derive(Default)]
struct Index {
    octets: Option<Octets>,
    levels: [Option<Level>; LEVELS],
}

impl Index {
    /// Returns the position of the first occurrence of `piece` at or after `from`. It is where the
    /// first and the last run of the piece occur, which together cover it.
    fn find(
        &mut self,
        target: &[u8],
        piece: &[u8],
        from: usize,
        work: &mut usize,
    ) -> Option<usize> {
        let level = match piece {
            [] => return Some(from),
            [octet] => {
                let octets = self.octets.get_or_insert_with(|| Octets::new(target));
                return octets.next(*octet, from);
            }
            _ if piece.len() > target.len() => return None,
            _ => piece.len().ilog2(),
        };
        let len = 1 << level;
        let runs = self.level(level as usize, target, work)?;
        let first = runs.of(hash(&piece[..len]))?;
        let offset = piece.len() - len;
        if offset == 0 && len <= WORD {
            return first.next(from);
        }
        let last = runs.of(hash(&piece[offset..]))?;
        let mut position = from;
        loop {
            position = first.next(position)?;
            let other = last.next(position + offset)? - offset;
            if other > position {
                position = other;
            } else if len <= WORD || target[position..].starts_with(piece) {
                return Some(position);
            } else {
                position += 1; // another run with the same hash
            }
            *work += WORD;
        }
    }

    /// Returns the level with this number; `None` if the target is shorter than its runs.
    fn level(&mut self, level: usize, target: &[u8], work: &mut usize) -> Option<&Level> {
        let slot = self.levels.get_mut(level)?;
        Some(slot.get_or_insert_with(|| {
            *work += 4 * target.len();
            Level::new(target, 1 << level)
        }))
    }
}

/// The maximum length of a run whose hash is unique, in octets.
const WORD: usize = 8;
/// The number of occurrences from which on a run has a bit map of its positions.
const OFTEN: usize = 16;

/// The positions of all runs of one length.
struct Level {
    /// The hashes of the runs, each with the start of its positions; the last entry is an end
    /// marker.
    runs: Box<[(u64, u32)]>,
    /// The start of each hash bucket in `runs`; the last entry is the end of the last bucket.
    buckets: Box<[u32]>,
    /// The number of low bits of a hash that don't select the bucket.
    shift: u32,
    /// The positions of each run, in ascending order.
    positions: Box<[u32]>,
    /// For each run, the number of its bit map plus 1; 0 if the run is rare and has none.
    maps_of: Box<[u32]>,
    /// The bit maps, one after the other, with a bit for each position of the target.
    maps: Vec<u64>,
    words: usize,
}

/// The positions of each single octet in the target.
struct Octets {
    /// The number of the bit map of each octet.
    map_of: [u16; 256],
    /// The bit maps, one after the other, with a bit for each position of the target. The first one
    /// is empty, for octets that don't occur.
    maps: Vec<u64>,
    words: usize,
}

impl Octets {
    fn new(target: &[u8]) -> Self {
        let words = target.len().div_ceil(64);
        let (mut map_of, mut maps, mut known) = ([0; 256], vec![0; words], 0);
        for (position, octet) in target.iter().enumerate() {
            let map = &mut map_of[usize::from(*octet)];
            if *map == 0 {
                known += 1;
                *map = known;
                maps.resize(maps.len() + words, 0);
            }
            maps[usize::from(*map) * words + position / 64] |= 1 << (position % 64);
        }
        Self { map_of, maps, words }
    }

    /// Returns the position of the first occurrence of `octet` at or after `from`.
    fn next(&self, octet: u8, from: usize) -> Option<usize> {
        let map = usize::from(self.map_of[usize::from(octet)]);
        next_bit(&self.maps[map * self.words..][..self.words], from)
    }
}

/// Returns the position of the first set bit of a bit map at or after `from`.
fn next_bit(map: &[u64], from: usize) -> Option<usize> {
    let mut at = from / 64;
    let mut word = map.get(at)? & (u64::MAX << (from % 64));
    while word == 0 {
        at += 1;
        word = *map.get(at)?;
    }
    Some(at * 64 + word.trailing_zeros() as usize)
}

/// The positions of one run, as a bit map or a list.
enum Occurs<'l> {
    Rarely(&'l [u32]),
    Often(&'l [u64]),
}

impl Occurs<'_> {
    /// Returns the first position of the run at or after `from`.
    fn next(&self, from: usize) -> Option<usize> {
        match self {
            Self::Rarely(positions) => positions
                .iter()
                .find(|position| **position as usize >= from)
                .map(|position| *position as usize),
            Self::Often(map) => next_bit(map, from),
        }
    }
}

impl Level {
    fn new(target: &[u8], len: usize) -> Self {
        let hashes: Vec<u64> = hashes(target, len);
        let bits = (hashes.len() | 1).ilog2() + 1;
        let shift = u64::BITS - bits;
        let bucket_of = |hash: u64| (hash >> shift) as usize;
        let mut ends = vec![0_u32; (1 << bits) + 1];
        hashes.iter().for_each(|&hash| ends[bucket_of(hash) + 1] += 1);
        for bucket in 1..ends.len() {
            ends[bucket] += ends[bucket - 1];
        }
        let begins = ends.clone();
        let mut sorted = vec![(0, 0_u32); hashes.len()];
        for (position, hash) in (0..).zip(hashes) {
            let end = &mut ends[bucket_of(hash)];
            sorted[*end as usize] = (hash, position);
            *end += 1;
        }
        let words = target.len().div_ceil(64);
        let mut level = Self {
            runs: Box::default(),
            buckets: Box::default(),
            shift,
            positions: Box::default(),
            maps_of: Box::default(),
            maps: Vec::new(),
            words,
        };
        let (mut runs, mut buckets, mut maps_of) = (Vec::new(), Vec::new(), Vec::new());
        for bounds in begins.windows(2) {
            buckets.push(narrow(runs.len()));
            let bucket = &mut sorted[bounds[0] as usize..bounds[1] as usize];
            bucket.sort_unstable(); // in order already if all have one hash
            let mut start = bounds[0];
            for run in bucket.chunk_by(|one, other| one.0 == other.0) {
                runs.push((run[0].0, start));
                maps_of.push(level.map(run));
                start += narrow(run.len());
            }
        }
        buckets.push(narrow(runs.len()));
        runs.push((0, narrow(sorted.len())));
        level.positions = sorted.iter().map(|(_, position)| *position).collect();
        (level.runs, level.buckets, level.maps_of) = (runs.into(), buckets.into(), maps_of.into());
        level
    }

    /// Creates the bit map of a run, if the run occurs often. Returns the number of the map plus 1,
    /// or 0 if none was created.
    fn map(&mut self, run: &[(u64, u32)]) -> u32 {
        if run.len() < OFTEN {
            return 0;
        }
        let start = self.maps.len();
        self.maps.resize(start + self.words, 0);
        for (_, position) in run {
            self.maps[start + *position as usize / 64] |= 1 << (position % 64);
        }
        narrow(self.maps.len() / self.words)
    }

    /// Returns the positions of the run with this hash; `None` if it doesn't occur.
    fn of(&self, hash: u64) -> Option<Occurs<'_>> {
        let bucket = (hash >> self.shift) as usize;
        let bounds = self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize;
        let run = bounds.start + self.runs[bounds].iter().position(|run| run.0 == hash)?;
        Some(match self.maps_of[run] {
            0 => {
                let positions = self.runs[run].1 as usize..self.runs[run + 1].1 as usize;
                Occurs::Rarely(&self.positions[positions])
            }
            map => Occurs::Often(&self.maps[(map as usize - 1) * self.words..][..self.words]),
        })
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("a target is short")
}

/// Returns the hashes of all runs of `len` octets in the target, by position.
fn hashes(target: &[u8], len: usize) -> Vec<u64> {
    let mut hashes: Vec<u64> = target.windows(len.min(WORD)).map(word).collect();
    let mut known = WORD;
    while known < len {
        let kept = (target.len() + 1).saturating_sub(2 * known);
        for position in 0..kept {
            hashes[position] = join(hashes[position], hashes[position + known]);
        }
        hashes.truncate(kept);
        known *= 2;
    }
    hashes
}

/// Returns the hash of one run, whose length is a power of two.
fn hash(run: &[u8]) -> u64 {
    if run.len() <= WORD {
        return word(run);
    }
    let (one, other) = run.split_at(run.len() / 2);
    join(hash(one), hash(other))
}

/// Returns the hash of a run of up to eight octets, which is unique for that length.
fn word(run: &[u8]) -> u64 {
    let number = match *run {
        [one] => u64::from(one),
        [one, other] => u64::from(u16::from_le_bytes([one, other])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        _ => u64::from_le_bytes(*run.first_chunk().expect("eight octets")),
    };
    number.wrapping_mul(ODD)
}

/// Combines the hashes of two adjacent runs to that of the whole; collisions are unlikely.
fn join(one: u64, other: u64) -> u64 {
    let mixed = (one ^ one >> 29).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    (mixed ^ mixed >> 32).wrapping_add(other).wrapping_mul(ODD)
}

const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    /// Law: the index and a plain search return the same position.
    #[test]
    fn an_index_finds_what_a_search_finds() {
        let mut random = Random(0x5eed);
        let mut below = |limit: usize| random.below(limit);
        let (mut found, mut missed) = (0, 0);
        for _ in 0..400 {
            let letters = &b"abcd"[..1 + below(4)];
            let period = 1 + below(200);
            let mut target: Vec<u8> =
                (0..1 + below(400)).map(|_| letters[below(letters.len())]).collect();
            (period..target.len())
                .for_each(|position| target[position] = target[position - period]);
            let mut index = Index::default();
            for _ in 0..80 {
                let start = below(target.len());
                let mut piece = target[start..start + below(target.len() - start + 1)].to_vec();
                if !piece.is_empty() && below(3) == 0 {
                    let position = below(piece.len());
                    piece[position] = letters[below(letters.len())];
                }
                let from = below(target.len() + 1);
                let expected =
                    memmem::find(&target[from..], &piece).map(|position| from + position);
                let position = index.find(&target, &piece, from, &mut 0);
                assert_eq!(position, expected, "{piece:?} from {from} in {target:?}");
                found += u32::from(position.is_some());
                missed += u32::from(position.is_none());
            }
        }
        assert!(found > 3_000 && missed > 3_000, "{found} found, {missed} missed");
    }
}
