//! Whether a rule with stars matches a target, at a cost that many rules can share.
//!
//! The pieces of a few rules are searched for. For more of them the target is indexed: for each
//! length that is a power of two the index lists where each run of so many octets occurs. A piece
//! occurs where the longest such run at its front and the one at its end occur at the right
//! distance, for together they cover it.
//!
//! Law: an index and a plain search give the same answer.
//! Cost: an index takes some 10 ns an octet of the target for each length in use. A piece costs
//! some 10 ns, and as much again for each place where one run occurs and the other does not: there
//! are few such pieces, as there are few long runs that occur often.

use super::octets::ANY;
use memchr::memmem;

/// Searches of a target before it is indexed.
const SEARCHES_MAX: usize = 48;
/// Octets that cost about as much as scanning one octet of a page.
const OCTETS_A_UNIT: usize = 4;

/// One target that rules are matched with.
pub(super) struct Search<'t> {
    target: &'t [u8],
    searches: usize,
    index: Option<Index>,
    /// Octets looked at so far.
    looked_at: usize,
}

impl<'t> Search<'t> {
    pub(super) fn new(target: &'t [u8]) -> Self {
        Self { target, searches: 0, index: None, looked_at: 0 }
    }

    pub(super) fn target(&self) -> &'t [u8] {
        self.target
    }

    /// What it has cost so far, in units of work.
    pub(super) fn units(&self) -> usize {
        self.looked_at / OCTETS_A_UNIT
    }

    /// So many octets were looked at elsewhere.
    pub(super) fn charge(&mut self, octets: usize) {
        self.looked_at += octets;
    }

    /// Whether a rule matches. Each piece is taken where it first occurs: what a later place could
    /// match, the rest of the rule can match from the earlier one, too. An end occurs at the end
    /// only.
    pub(super) fn matches(&mut self, octets: &[u8]) -> bool {
        let mut pieces = octets.split(|&octet| octet == ANY);
        let first = pieces.next().unwrap_or_default();
        if !self.target.starts_with(first) {
            return false;
        }
        let mut from = first.len();
        for piece in pieces {
            match self.find(piece, from) {
                Some(place) => from = place + piece.len(),
                None => return false,
            }
        }
        true
    }

    /// Where `piece` first occurs from a place on.
    fn find(&mut self, piece: &[u8], from: usize) -> Option<usize> {
        self.searches += 1;
        if self.searches <= SEARCHES_MAX {
            self.looked_at += self.target.len() - from;
            return memmem::find(&self.target[from..], piece).map(|place| from + place);
        }
        self.looked_at += piece.len();
        let target = self.target;
        let work = &mut self.looked_at;
        self.index.get_or_insert_default().find(target, piece, from, work)
    }
}

/// Lengths of runs: powers of two up to this one.
const LEVELS: usize = 12;

/// The runs of a target by level, each level made when it is first asked for.
#[derive(Default)]
struct Index {
    octets: Option<Octets>,
    levels: [Option<Level>; LEVELS],
}

impl Index {
    /// Where `piece` first occurs from a place on: where its first and its last run do, which
    /// together are all of it.
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
        let first = runs.of(name(&piece[..len]))?;
        let behind = piece.len() - len;
        if behind == 0 && len <= WORD {
            return first.next(from);
        }
        let last = runs.of(name(&piece[behind..]))?;
        let mut place = from;
        loop {
            place = first.next(place)?;
            let other = last.next(place + behind)? - behind;
            if other > place {
                place = other;
            } else if len <= WORD || target[place..].starts_with(piece) {
                return Some(place);
            } else {
                place += 1; // another run of the same name
            }
            *work += WORD;
        }
    }

    /// The runs of a level; `None` if the target is shorter.
    fn level(&mut self, level: usize, target: &[u8], work: &mut usize) -> Option<&Level> {
        let slot = self.levels.get_mut(level)?;
        Some(slot.get_or_insert_with(|| {
            *work += 4 * target.len();
            Level::new(target, 1 << level)
        }))
    }
}

/// Octets that a name can hold.
const WORD: usize = 8;
/// A run that occurs so often has a map of its places.
const OFTEN: usize = 16;

/// Where the runs of one length occur.
struct Level {
    /// The runs that occur, by name, and where the places of each begin; at the end one of none.
    runs: Box<[(u64, u32)]>,
    /// Where the runs of each bucket begin, and where the last end.
    buckets: Box<[u32]>,
    /// Bits of a name that don't say which bucket it is in.
    shift: u32,
    /// By run, in order.
    places: Box<[u32]>,
    /// By run: the number of its map, and 1; nothing if it is rare.
    maps_of: Box<[u32]>,
    /// A bit for each place.
    maps: Vec<u64>,
    words: usize,
}

/// Where each octet occurs.
struct Octets {
    /// The number of its map.
    map_of: [u16; 256],
    /// A bit for each place; the first map, of the octets that don't occur, has none.
    maps: Vec<u64>,
    words: usize,
}

impl Octets {
    fn new(target: &[u8]) -> Self {
        let words = target.len().div_ceil(64);
        let (mut map_of, mut maps, mut known) = ([0; 256], vec![0; words], 0);
        for (place, octet) in target.iter().enumerate() {
            let map = &mut map_of[usize::from(*octet)];
            if *map == 0 {
                known += 1;
                *map = known;
                maps.resize(maps.len() + words, 0);
            }
            maps[usize::from(*map) * words + place / 64] |= 1 << (place % 64);
        }
        Self { map_of, maps, words }
    }

    /// Where an octet first occurs from a place on.
    fn next(&self, octet: u8, from: usize) -> Option<usize> {
        let map = usize::from(self.map_of[usize::from(octet)]);
        next_bit(&self.maps[map * self.words..][..self.words], from)
    }
}

/// The first bit of a map from a place on.
fn next_bit(map: &[u64], from: usize) -> Option<usize> {
    let mut at = from / 64;
    let mut word = map.get(at)? & (u64::MAX << (from % 64));
    while word == 0 {
        at += 1;
        word = *map.get(at)?;
    }
    Some(at * 64 + word.trailing_zeros() as usize)
}

/// Where one run occurs.
enum Occurs<'l> {
    Rarely(&'l [u32]),
    Often(&'l [u64]),
}

impl Occurs<'_> {
    /// The first place from one on.
    fn next(&self, from: usize) -> Option<usize> {
        match self {
            Self::Rarely(places) => {
                places.iter().find(|place| **place as usize >= from).map(|place| *place as usize)
            }
            Self::Often(map) => next_bit(map, from),
        }
    }
}

impl Level {
    fn new(target: &[u8], len: usize) -> Self {
        let names: Vec<u64> = names(target, len);
        let bits = (names.len() | 1).ilog2() + 1;
        let shift = u64::BITS - bits;
        let bucket_of = |name: u64| (name >> shift) as usize;
        let mut ends = vec![0_u32; (1 << bits) + 1];
        names.iter().for_each(|&name| ends[bucket_of(name) + 1] += 1);
        for bucket in 1..ends.len() {
            ends[bucket] += ends[bucket - 1];
        }
        let begins = ends.clone();
        let mut sorted = vec![(0, 0_u32); names.len()];
        for (place, name) in (0..).zip(names) {
            let end = &mut ends[bucket_of(name)];
            sorted[*end as usize] = (name, place);
            *end += 1;
        }
        let words = target.len().div_ceil(64);
        let mut level = Self {
            runs: Box::default(),
            buckets: Box::default(),
            shift,
            places: Box::default(),
            maps_of: Box::default(),
            maps: Vec::new(),
            words,
        };
        let (mut runs, mut buckets, mut maps_of) = (Vec::new(), Vec::new(), Vec::new());
        for bounds in begins.windows(2) {
            buckets.push(narrow(runs.len()));
            let bucket = &mut sorted[bounds[0] as usize..bounds[1] as usize];
            bucket.sort_unstable(); // in order already if all have one name
            let mut start = bounds[0];
            for run in bucket.chunk_by(|one, other| one.0 == other.0) {
                runs.push((run[0].0, start));
                maps_of.push(level.map(run));
                start += narrow(run.len());
            }
        }
        buckets.push(narrow(runs.len()));
        runs.push((0, narrow(sorted.len())));
        level.places = sorted.iter().map(|(_, place)| *place).collect();
        (level.runs, level.buckets, level.maps_of) = (runs.into(), buckets.into(), maps_of.into());
        level
    }

    /// Maps the places of a run, if it occurs often.
    fn map(&mut self, run: &[(u64, u32)]) -> u32 {
        if run.len() < OFTEN {
            return 0;
        }
        let start = self.maps.len();
        self.maps.resize(start + self.words, 0);
        for (_, place) in run {
            self.maps[start + *place as usize / 64] |= 1 << (place % 64);
        }
        narrow(self.maps.len() / self.words)
    }

    /// Where the run of that name occurs, if it does.
    fn of(&self, name: u64) -> Option<Occurs<'_>> {
        let bucket = (name >> self.shift) as usize;
        let bounds = self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize;
        let run = bounds.start + self.runs[bounds].iter().position(|run| run.0 == name)?;
        Some(match self.maps_of[run] {
            0 => {
                let places = self.runs[run].1 as usize..self.runs[run + 1].1 as usize;
                Occurs::Rarely(&self.places[places])
            }
            map => Occurs::Often(&self.maps[(map as usize - 1) * self.words..][..self.words]),
        })
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("a target is short")
}

/// The names of all runs of that length, by place.
fn names(target: &[u8], len: usize) -> Vec<u64> {
    let mut names: Vec<u64> = target.windows(len.min(WORD)).map(word).collect();
    let mut known = WORD;
    while known < len {
        let kept = (target.len() + 1).saturating_sub(2 * known);
        for place in 0..kept {
            names[place] = join(names[place], names[place + known]);
        }
        names.truncate(kept);
        known *= 2;
    }
    names
}

/// The name of one run, which is as long as a power of two.
fn name(run: &[u8]) -> u64 {
    if run.len() <= WORD {
        return word(run);
    }
    let (one, other) = run.split_at(run.len() / 2);
    join(name(one), name(other))
}

/// The name of a run of up to eight octets: no other of that length has it.
fn word(run: &[u8]) -> u64 {
    let number = match *run {
        [one] => u64::from(one),
        [one, other] => u64::from(u16::from_le_bytes([one, other])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        _ => u64::from_le_bytes(*run.first_chunk().expect("eight octets")),
    };
    number.wrapping_mul(ODD)
}

/// The name of two runs together: hardly any other two have it.
fn join(one: u64, other: u64) -> u64 {
    let mixed = (one ^ one >> 29).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    (mixed ^ mixed >> 32).wrapping_add(other).wrapping_mul(ODD)
}

const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    /// Law: an index and a plain search give the same answer, and no other place comes before it.
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
            (period..target.len()).for_each(|place| target[place] = target[place - period]);
            let mut index = Index::default();
            for _ in 0..80 {
                let start = below(target.len());
                let mut piece = target[start..start + below(target.len() - start + 1)].to_vec();
                if !piece.is_empty() && below(3) == 0 {
                    let place = below(piece.len());
                    piece[place] = letters[below(letters.len())];
                }
                let from = below(target.len() + 1);
                let expected = memmem::find(&target[from..], &piece).map(|place| from + place);
                let place = index.find(&target, &piece, from, &mut 0);
                assert_eq!(place, expected, "{piece:?} from {from} in {target:?}");
                found += u32::from(place.is_some());
                missed += u32::from(place.is_none());
            }
        }
        assert!(found > 3_000 && missed > 3_000, "{found} found, {missed} missed");
    }
}
