//! Ready servers in the order of their ranks: a few in front, and a tournament of the others.
//!
//! Each server has a slot, which it keeps until it is taken out; slots that are free are given
//! again. A tree stands on the slots: each node holds the best of eight below it. A changed rank is
//! carried up until a node keeps its winner, so that nothing else moves. Those few dozen that come
//! first have left the tree and stand in a row, so that it is known who will be visited soon, and
//! what is told of them can be asked for in time.
//!
//! Laws: the row is sorted, nobody in the tree goes before anybody in it, and it is full unless the
//! tree is empty; so the first is the best of all (held to a sorted list). Cost: setting, moving
//! and removing O(log n), the first O(1); for as many servers as were ever in it at once, 20 bytes
//! each and a sixth for the nodes. Who isn't in it costs nothing.

use super::ahead::{self, AHEAD, BATCH};
use super::policy::Rank;
use super::server::ServerId;
use std::collections::VecDeque;

/// Ready servers by rank.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// Those that come first, best first.
    front: VecDeque<Leader>,
    /// Ranks by slot, of those that are in the tree.
    leaves: Vec<Option<Rank>>,
    /// Servers by slot; of a free one, the next that is free.
    servers: Vec<u32>,
    /// The slot that is given next, unless it is `NONE`.
    free: u32,
    /// From the leaves up; the last one is the root alone.
    levels: Vec<Vec<Node>>,
    len: usize,
    /// Servers that have gone from the tree to the row so far.
    left: usize,
}

/// One of those in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leader {
    rank: Rank,
    slot: u32,
    id: ServerId,
}

/// The best of those below, if there is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    rank: Option<Rank>,
    slot: u32,
}

/// So many stand in front of the tree: as many as are looked at ahead. In tests, few.
const FRONT: usize = if cfg!(test) { 3 } else { AHEAD };
const NONE: u32 = u32::MAX;
const EMPTY: Node = Node { rank: None, slot: NONE };
/// Children of a node: eight ranks are two cache lines.
const WIDTH: usize = 8;
/// Levels of the tree, leaves excepted, that don't fit into the nearer caches.
const FAR_LEVELS: usize = 2;
/// Of no more nodes are the best chosen that will most likely leave the tree next.
const CANDIDATES: usize = 64;

impl Node {
    /// Whether it goes before `other`.
    fn beats(self, other: Self) -> bool {
        match (self.rank, other.rank) {
            (Some(own), Some(others)) => own < others,
            (own, _) => own.is_some(),
        }
    }
}

impl Ranking {
    /// Who comes first, in which slot, and with which rank.
    pub(super) fn first(&self) -> Option<(ServerId, u32, Rank)> {
        self.front.front().map(|first| (first.id, first.slot, first.rank))
    }

    /// Who comes after so many others, if that is soon.
    pub(super) fn coming(&self, place: usize) -> Option<ServerId> {
        self.front.get(place).map(|leader| leader.id)
    }

    /// Servers in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The rank in a slot, if there is a server in it.
    pub(super) fn rank(&self, slot: u32) -> Option<Rank> {
        let in_tree = self.leaves.get(slot as usize).copied().flatten();
        in_tree.or_else(|| self.place_in_front(slot).map(|place| self.front[place].rank))
    }

    /// Puts a server in that isn't; returns its slot.
    pub(super) fn enter(&mut self, id: ServerId, rank: Rank) -> u32 {
        let slot = if self.len < self.leaves.len() {
            let slot = self.free;
            self.free = std::mem::replace(&mut self.servers[slot as usize], id.0);
            slot
        } else {
            let slot = u32::try_from(self.leaves.len()).expect("fewer than 2^32 servers");
            self.servers.push(id.0);
            self.reach(slot as usize);
            slot
        };
        self.len += 1;
        self.put(slot, rank);
        slot
    }

    /// Asks for what a change of the rank in a slot will look at first.
    pub(super) fn fetch(&self, slot: u32) {
        self.leaves.get(slot as usize).into_iter().for_each(ahead::fetch);
        let nodes = self.levels.first().and_then(|level| level.get(slot as usize / WIDTH));
        nodes.into_iter().for_each(ahead::fetch);
    }

    /// Sets the rank of the server in a slot.
    pub(super) fn set(&mut self, slot: u32, rank: Rank) {
        if self.leaves[slot as usize].is_none() {
            self.leave_front(slot);
            self.put(slot, rank);
        } else if self.goes_in_front(rank) {
            self.change(slot, None);
            self.put_in_front(slot, rank);
        } else {
            self.change(slot, Some(rank));
        }
    }

    /// Takes the server in a slot out.
    pub(super) fn remove(&mut self, slot: u32) {
        if self.leaves[slot as usize].is_none() {
            self.leave_front(slot);
        } else {
            self.change(slot, None);
        }
        self.len -= 1;
        self.servers[slot as usize] = std::mem::replace(&mut self.free, slot);
    }

    /// Puts a server that is neither in front nor in the tree where it belongs.
    fn put(&mut self, slot: u32, rank: Rank) {
        if self.goes_in_front(rank) {
            self.put_in_front(slot, rank);
        } else {
            self.change(slot, Some(rank));
        }
    }

    /// Whether a server of this rank belongs in front.
    fn goes_in_front(&self, rank: Rank) -> bool {
        self.front.len() < FRONT || self.front.back().is_some_and(|last| rank < last.rank)
    }

    /// If there are too many then, the last one goes to the tree.
    fn put_in_front(&mut self, slot: u32, rank: Rank) {
        let place = self.front.partition_point(|leader| leader.rank < rank);
        let id = ServerId(self.servers[slot as usize]);
        self.front.insert(place, Leader { rank, slot, id });
        if self.front.len() > FRONT
            && let Some(last) = self.front.pop_back()
        {
            self.change(last.slot, Some(last.rank));
        }
    }

    /// The best of the tree takes the place of one that leaves.
    fn leave_front(&mut self, slot: u32) {
        let place = self.place_in_front(slot).expect("who is taken out is in");
        self.front.remove(place);
        if let Some((slot, rank)) = self.best() {
            self.change(slot, None);
            let id = ServerId(self.servers[slot as usize]);
            self.front.push_back(Leader { rank, slot, id });
            self.left += 1;
            if self.left.is_multiple_of(BATCH) {
                self.fetch_next();
            }
        }
    }

    fn place_in_front(&self, slot: u32) -> Option<usize> {
        self.front.iter().position(|leader| leader.slot == slot)
    }

    /// The best of the tree.
    fn best(&self) -> Option<(u32, Rank)> {
        let root = self.levels.last()?.first()?;
        root.rank.map(|rank| (root.slot, rank))
    }

    /// Asks for what is looked at when those leave the tree who will most likely be the next: the
    /// best of a few dozen that each are the best of their part.
    fn fetch_next(&self) {
        let few = self.levels.iter().skip(FAR_LEVELS).find(|level| level.len() <= CANDIDATES);
        let mut best = [EMPTY; BATCH];
        for node in few.into_iter().flatten() {
            if node.beats(best[BATCH - 1]) {
                let place = best.partition_point(|other| !node.beats(*other));
                best[place..].rotate_right(1);
                best[place] = *node;
            }
        }
        let slots = best.into_iter().filter(|node| node.rank.is_some());
        slots.for_each(|node| self.fetch_removal(node.slot));
    }

    /// Asks for what is looked at if a slot becomes free.
    fn fetch_removal(&self, slot: u32) {
        let place = slot as usize;
        ahead::fetch(&self.servers[place]);
        ahead::fetch_all(group(&self.leaves, place));
        let levels = self.levels.iter().take(FAR_LEVELS);
        levels.fold(place / WIDTH, |place, level| {
            ahead::fetch_all(group(level, place));
            place / WIDTH
        });
    }

    fn change(&mut self, slot: u32, rank: Option<Rank>) {
        let leaf = &mut self.leaves[slot as usize];
        let mut before = Node { rank: std::mem::replace(leaf, rank), slot };
        let mut after = Node { rank, slot };
        let mut place = slot as usize;
        for level in 0..self.levels.len() {
            place /= WIDTH;
            let holder = self.levels[level][place];
            let held = before.rank.is_some() && holder.slot == before.slot;
            let winner = if after.beats(holder) || held && !before.beats(after) {
                after
            } else if held {
                self.best_of(level, place)
            } else {
                return; // somebody else holds this node, and keeps it
            };
            self.levels[level][place] = winner;
            (before, after) = (holder, winner);
            if before == after {
                return;
            }
        }
    }

    /// The best of the children of a node.
    fn best_of(&self, level: usize, place: usize) -> Node {
        let from = place * WIDTH;
        let mut best = None;
        match level.checked_sub(1) {
            Some(below) => {
                for node in group(&self.levels[below], from) {
                    offer(&mut best, node.rank.as_ref(), node.slot);
                }
            }
            None => {
                for (rank, slot) in group(&self.leaves, from).iter().zip(narrow(from)..) {
                    offer(&mut best, rank.as_ref(), slot);
                }
            }
        }
        best.map_or(EMPTY, |(rank, slot)| Node { rank: Some(*rank), slot })
    }

    /// Makes a new slot.
    fn reach(&mut self, slot: usize) {
        self.leaves.resize(slot + 1, None);
        let mut below = self.leaves.len();
        for level in 0.. {
            let wanted = below.div_ceil(WIDTH);
            if level == self.levels.len() {
                // A new root: what the old one held is below it.
                let nodes = (0..wanted).map(|place| self.best_of(level, place)).collect();
                self.levels.push(nodes);
            } else {
                self.levels[level].resize(wanted, EMPTY);
            }
            if wanted == 1 {
                return;
            }
            below = wanted;
        }
    }
}

/// Those that have the same node above them.
fn group<T>(row: &[T], place: usize) -> &[T] {
    let from = place / WIDTH * WIDTH;
    &row[from..(from + WIDTH).min(row.len())]
}

/// Takes a rank if it goes before the best so far. By reference: ranks are compared more often
/// than kept.
fn offer<'a>(best: &mut Option<(&'a Rank, u32)>, rank: Option<&'a Rank>, slot: u32) {
    if let Some(rank) = rank
        && best.is_none_or(|(other, _)| rank < other)
    {
        *best = Some((rank, slot));
    }
}

fn narrow(slot: usize) -> u32 {
    u32::try_from(slot).expect("fewer than 2^32 servers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn rank(gain: u64, cost_us: u64, arrival: u64) -> Rank {
        Rank::new(gain, cost_us, arrival)
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
        for servers in [1, 7, 8, 9, 63, 64, 65, 600, 5_000] {
            let mut ranking = Ranking::default();
            let mut slots: BTreeMap<u32, u32> = BTreeMap::new();
            let mut sorted: BTreeMap<Rank, u32> = BTreeMap::new();
            let mut most = 0;
            for arrival in 0..20_000_u64 {
                let id = u32::try_from(below(servers)).expect("small");
                let slot = slots.get(&id).copied();
                let old = slot.map(|slot| ranking.rank(slot).expect("it is in"));
                assert_eq!(old.and_then(|old| sorted.remove(&old)), slot.map(|_| id));
                let new = rank(below(50), 1 + below(50), arrival);
                match (slot, below(3)) {
                    (None, 0) => {}
                    (Some(slot), 0) => {
                        ranking.remove(slot);
                        slots.remove(&id);
                    }
                    (Some(slot), _) => ranking.set(slot, new),
                    (None, _) => {
                        assert_eq!(slots.insert(id, ranking.enter(ServerId(id), new)), None)
                    }
                }
                if slots.contains_key(&id) {
                    sorted.insert(new, id);
                }
                let first = sorted.first_key_value();
                let first = first.map(|(rank, id)| (ServerId(*id), slots[id], *rank));
                assert_eq!(ranking.first(), first, "{servers} servers, change {arrival}");
                assert_eq!(ranking.len(), sorted.len());
                let coming: Vec<u32> =
                    (0..).map_while(|place| ranking.coming(place)).map(|id| id.0).collect();
                let next: Vec<u32> = sorted.values().copied().take(FRONT).collect();
                assert_eq!(coming, next, "{servers} servers, change {arrival}");
                most = most.max(sorted.len());
            }
            assert_eq!(ranking.leaves.len(), most, "free slots are given again");
        }
    }
}
