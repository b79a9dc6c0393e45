//! Ready servers in the order of their ranks: a sorted row of those that come first, and bags of
//! the others.
//!
//! Behind the row come the bags, each with those whose ranks lie between its border and that of the
//! next, in no order: to put a server in is a search among the borders, which fit into the nearer
//! caches, and an append. When the row runs short the best of the first bag are sorted and join it.
//! So it is known who will be visited soon, and what is told of them can be asked for in time. A
//! bag that is full is split; a row that is long gives its worse half up.
//!
//! A server whose rank changes, or that goes, leaves behind what said so: an entry counts as long
//! as its stamp is the one that its server got last. Bags are rid of what doesn't count when they
//! are full or looked into, and one after the other when that is a quarter of what does.
//!
//! Laws: the row is sorted and its first one counts, nobody in a bag goes before anybody in the row
//! or in a bag before, and the row is short only if there are no bags; so the first is the best of
//! all (held to a sorted list). Cost: setting, moving and removing O(log n), amortised, of which
//! nothing but the end of a bag and the stamp is far from what is used anyway; the first O(1). At
//! once no more is done than to look through a bag or to split one, some microseconds. 24 bytes for
//! an entry, of which there are a quarter more than servers at most, in bags that are half full or
//! fuller, and four bytes for each server that is known.
//!
//! Source: to sort no more than is asked for is Navarro and Paredes, "On sorting, heaps, and
//! minimum spanning trees", Algorithmica 57 (2010); here leaves that aren't sorted hang on a row of
//! borders, so that no step is long.

use super::ahead::AHEAD;
use super::policy::Rank;
use super::server::ServerId;
use crate::table::Table;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Ready servers by rank.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// Those that come first, the first one last.
    row: Vec<Entry>,
    /// The others, best bags first.
    bags: VecDeque<Vec<Entry>>,
    /// Room for more bags: all are of one size, or the allocator would be left with holes.
    spare: Vec<Vec<Entry>>,
    /// Nobody in a bag goes before its border, and all in the bags before it do.
    borders: VecDeque<Rank>,
    /// Servers.
    len: usize,
    /// Entries in bags, those included that don't count.
    filed: usize,
    /// Entries made so far, as far as stamps tell them apart.
    stamps: u32,
    /// By server: the stamp of what counts.
    counting: Table<u32>,
    /// The bag that is rid next of what doesn't count.
    hand: usize,
}

/// A server in the row or in a bag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    rank: Rank,
    id: ServerId,
    stamp: u32,
}

/// So many are in the row at least: as many as are looked at ahead. In tests, few.
const ROW_MIN: usize = if cfg!(test) { 3 } else { AHEAD };
/// A row that is longer gives a piece up.
const ROW_MAX: usize = 2 * PIECE;
/// Entries that go from a bag to the row at once, or back.
const PIECE: usize = if cfg!(test) { 4 } else { 256 };
/// Entries of a bag.
const BAG: usize = if cfg!(test) { 12 } else { 1 << 10 };
/// Whenever so many entries were made a bag is rid of what doesn't count: so all are, long before a
/// stamp is given again.
const TIDY: u32 = if cfg!(test) { 50 } else { 1 << 10 };
/// What counts of a server that isn't in it.
const NONE: u32 = 0;

impl Entry {
    /// Whether it is what counts of its server.
    fn counts(&self, counting: &Table<u32>) -> bool {
        counting[self.id.index()] == self.stamp
    }
}

impl Ranking {
    /// Who comes first, and with which rank.
    pub(super) fn first(&self) -> Option<(ServerId, Rank)> {
        self.row.last().map(|first| (first.id, first.rank))
    }

    /// Who comes after so many others, most likely, if that is soon.
    pub(super) fn coming(&self, place: usize) -> Option<ServerId> {
        self.row.iter().nth_back(place).map(|entry| entry.id)
    }

    /// Servers in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// All in it, in no order, with their ranks.
    pub(super) fn all(&self) -> impl Iterator<Item = (ServerId, Rank)> {
        let entries = self.row.iter().chain(self.bags.iter().flatten());
        entries.filter(|entry| entry.counts(&self.counting)).map(|entry| (entry.id, entry.rank))
    }

    /// One server more is known, and may be put in from now on.
    pub(super) fn meet(&mut self) {
        self.counting.push(NONE);
    }

    /// Puts a server in that isn't.
    pub(super) fn enter(&mut self, id: ServerId, rank: Rank) {
        self.len += 1;
        self.set(id, rank);
    }

    /// Sets the rank of a server that is in it.
    pub(super) fn set(&mut self, id: ServerId, rank: Rank) {
        self.stamps = self.stamps.wrapping_add(1).max(NONE + 1);
        self.counting[id.index()] = self.stamps;
        let entry = Entry { rank, id, stamp: self.stamps };
        match self.bag_of(rank) {
            None => self.put_in_row(entry),
            Some(bag) => self.put_in_bag(bag, entry),
        }
        if self.stamps.is_multiple_of(TIDY) {
            self.tidy();
        }
        self.keep();
    }

    /// Takes a server out that is in it.
    pub(super) fn remove(&mut self, id: ServerId) {
        self.counting[id.index()] = NONE;
        self.len -= 1;
        self.keep();
    }

    /// The bag that servers of this rank belong to; `None`: that is the row.
    fn bag_of(&self, rank: Rank) -> Option<usize> {
        self.borders.partition_point(|border| *border <= rank).checked_sub(1)
    }

    fn put_in_row(&mut self, entry: Entry) {
        let place = self.row.partition_point(|other| other.rank > entry.rank);
        self.row.insert(place, entry);
        if self.row.len() > ROW_MAX {
            self.shorten_row();
        }
    }

    /// The worse ones of the row go to the first bag, if it has room for them, or to a new one.
    fn shorten_row(&mut self) {
        let border = self.row[PIECE - 1].rank;
        if self.bags.front().is_some_and(|first| first.len() + PIECE <= BAG) {
            self.borders[0] = border;
        } else {
            let bag = self.new_bag();
            self.add_bag(0, border, bag);
        }
        self.bags[0].extend(self.row.drain(..PIECE));
        self.filed += PIECE;
    }

    fn put_in_bag(&mut self, mut bag: usize, entry: Entry) {
        if self.bags[bag].len() >= BAG {
            bag = self.make_room(bag, entry.rank);
        }
        self.bags[bag].push(entry);
        self.filed += 1;
    }

    /// A bag is full: what doesn't count goes, and if that isn't much, half of it. Returns the bag
    /// that this rank belongs to then.
    fn make_room(&mut self, bag: usize, rank: Rank) -> usize {
        self.rid(bag);
        if self.bags[bag].len() <= BAG / 4 * 3 {
            return bag;
        }
        let is_last = bag + 1 == self.borders.len();
        if is_last && self.bags[bag].iter().all(|entry| entry.rank < rank) {
            // Servers that come one behind the other leave full bags behind.
            let empty = self.new_bag();
            self.add_bag(bag + 1, rank, empty);
            return bag + 1;
        }
        // All that is left counts, and ranks that count are unique.
        let mut worse = self.new_bag();
        let entries = &mut self.bags[bag];
        let middle = entries.len() / 2;
        let border = entries.select_nth_unstable_by_key(middle, |entry| entry.rank).1.rank;
        worse.extend(entries.drain(middle..));
        self.filed -= worse.len();
        self.add_bag(bag + 1, border, worse);
        if rank < border { bag } else { bag + 1 }
    }

    fn add_bag(&mut self, place: usize, border: Rank, bag: Vec<Entry>) {
        self.filed += bag.len();
        self.bags.insert(place, bag);
        self.borders.insert(place, border);
    }

    fn new_bag(&mut self) -> Vec<Entry> {
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BAG))
    }

    /// Room is kept for a quarter more bags than there are.
    fn put_away(&mut self, mut bag: Vec<Entry>) {
        if self.spare.len() <= self.bags.len() / 4 {
            bag.clear();
            self.spare.push(bag);
        }
    }

    fn take_bag(&mut self, place: usize) -> Option<Vec<Entry>> {
        self.borders.remove(place)?;
        let bag = self.bags.remove(place)?;
        self.filed -= bag.len();
        Some(bag)
    }

    /// Something may not count any more: the first one does, the row is long enough, and what
    /// doesn't is not too much.
    fn keep(&mut self) {
        if self.row.len() + self.filed > self.len + self.len / 4 + 2 * ROW_MIN {
            self.tidy();
        }
        loop {
            while self.row.pop_if(|first| !first.counts(&self.counting)).is_some() {}
            if self.row.len() >= ROW_MIN || self.bags.is_empty() {
                break;
            }
            self.lengthen_row();
        }
    }

    /// The best ones of the first bag go to the row.
    fn lengthen_row(&mut self) {
        self.rid(0);
        let bag = &mut self.bags[0];
        let left = bag.len().saturating_sub(PIECE);
        if let Some(last) = left.checked_sub(1) {
            // The worse ones, in front, stay; the best of them comes last.
            let best = bag.select_nth_unstable_by_key(last, |entry| Reverse(entry.rank)).1;
            self.borders[0] = best.rank;
        }
        bag[left..].sort_unstable_by_key(|entry| Reverse(entry.rank));
        self.filed -= bag.len() - left;
        self.row.splice(..0, bag.drain(left..));
        if left == 0 {
            let empty = self.take_bag(0).expect("there is one");
            self.put_away(empty);
        }
    }

    /// Takes what doesn't count out of a bag.
    fn rid(&mut self, bag: usize) {
        let entries = &mut self.bags[bag];
        let before = entries.len();
        entries.retain(|entry| entry.counts(&self.counting));
        self.filed -= before - entries.len();
    }

    /// The next bag, or the row, is rid of what doesn't count; a small bag is joined to the one
    /// behind it.
    fn tidy(&mut self) {
        if self.hand >= self.bags.len() {
            self.hand = 0;
            self.row.retain(|entry| entry.counts(&self.counting));
            return;
        }
        let bag = self.hand;
        self.hand += 1;
        self.rid(bag);
        let next = self.bags.get(bag + 1).map_or(BAG, Vec::len);
        if self.bags[bag].is_empty() {
            let empty = self.take_bag(bag).expect("there is one");
            self.put_away(empty);
        } else if self.bags[bag].len() + next <= BAG / 2 {
            let mut worse = self.take_bag(bag + 1).expect("there is one");
            self.filed += worse.len();
            self.bags[bag].append(&mut worse);
            self.put_away(worse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn known(servers: u32) -> Ranking {
        let mut ranking = Ranking::default();
        (0..servers).for_each(|_| ranking.meet());
        ranking
    }

    /// All laws.
    fn check(ranking: &Ranking, sorted: &BTreeMap<Rank, ServerId>) {
        let first = sorted.first_key_value().map(|(rank, id)| (*id, *rank));
        assert_eq!(ranking.first(), first);
        assert_eq!(ranking.len(), sorted.len());
        let all: BTreeMap<Rank, ServerId> = ranking.all().map(|(id, rank)| (rank, id)).collect();
        assert_eq!(all, *sorted);
        assert_eq!(ranking.all().count(), sorted.len(), "each counts once");
        assert!(ranking.row.is_sorted_by_key(|entry| Reverse(entry.rank)));
        assert!(ranking.row.len() >= ROW_MIN || ranking.bags.is_empty());
        assert!(ranking.borders.iter().is_sorted());
        assert_eq!(ranking.borders.len(), ranking.bags.len());
        assert_eq!(ranking.filed, ranking.bags.iter().map(Vec::len).sum::<usize>());
        let borders =
            ranking.borders.iter().zip(ranking.borders.iter().skip(1).map(Some).chain([None]));
        for (bag, (from, to)) in ranking.bags.iter().zip(borders) {
            assert!(bag.len() <= BAG);
            assert!(
                bag.iter()
                    .all(|entry| *from <= entry.rank && to.is_none_or(|to| entry.rank <= *to))
            );
        }
        let border = ranking.borders.front();
        assert!(ranking.row.iter().all(|entry| border.is_none_or(|border| entry.rank <= *border)));
        // A change at a time is tidied, if a bag at a time.
        let most = ranking.len + ranking.len / 2 + 2 * ROW_MIN + ranking.bags.len() + ROW_MAX;
        assert!(ranking.row.len() + ranking.filed <= most);
        assert!(ranking.bags.len() <= 4 * most / BAG + 4, "{} bags", ranking.bags.len());
    }

    /// Random changes, against a sorted map.
    #[test]
    fn the_first_is_the_best_of_all() {
        let mut random = 88_172_645_463_325_252_u64;
        let mut below = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        for (count, ranks, leavers) in [1_u32, 2, 9, 17, 600, 3_000]
            .into_iter()
            .flat_map(|count| [(count, 50, 3), (count, 2, 30), (count, 1, 2)])
        {
            let mut ranking = known(count);
            let mut ranks_of: BTreeMap<ServerId, Rank> = BTreeMap::new();
            let mut sorted: BTreeMap<Rank, ServerId> = BTreeMap::new();
            for arrival in 0..10_000_u64 {
                let any = ServerId(u32::try_from(below(count.into())).expect("small"));
                // As often as not it is the first: that is who is taken.
                let first = sorted.first_key_value().map_or(any, |(_, id)| *id);
                let id = if below(2) == 0 { first } else { any };
                let old = ranks_of.remove(&id);
                old.iter().for_each(|old| {
                    sorted.remove(old);
                });
                let same = below(8) == 0;
                let new = old.filter(|_| same);
                let new = new.unwrap_or_else(|| Rank::new(below(ranks), 1 + below(ranks), arrival));
                match old {
                    Some(_) if below(leavers) == 0 => ranking.remove(id),
                    Some(_) => ranking.set(id, new),
                    None => ranking.enter(id, new),
                }
                if ranking.len() > sorted.len() {
                    ranks_of.insert(id, new);
                    sorted.insert(new, id);
                }
                if arrival % 16 == 0 || count < 20 {
                    check(&ranking, &sorted);
                } else {
                    let first = sorted.first_key_value().map(|(rank, id)| (*id, *rank));
                    assert_eq!(ranking.first(), first, "{count} servers, change {arrival}");
                }
            }
        }
    }

    /// Whoever has gone leaves no memory taken.
    #[test]
    fn what_does_not_count_goes() {
        let mut ranking = known(3_000);
        for (arrival, id) in (0..).zip((0..3_000).map(ServerId)) {
            ranking.enter(id, Rank::new(1, 1, arrival));
        }
        assert!(
            ranking.bags.len() <= 3_000_usize.div_ceil(BAG),
            "in order of arrival bags are full"
        );
        for id in (0..3_000).rev().map(ServerId) {
            ranking.remove(id);
        }
        assert_eq!((ranking.first(), ranking.len()), (None, 0));
        assert!(ranking.row.len() + ranking.filed <= ROW_MAX, "{ranking:?}");
    }
}
