//! Ready servers in the order of their ranks: a tournament.
//!
//! Each server in it has a slot, which it keeps until it is taken out; slots that are free are
//! given again. A tree stands on the slots: each node holds the best of eight below it. A changed
//! rank is carried up until a node keeps its winner, so that nothing else moves.
//!
//! Law: the first is the best of all that are in it (held to a sorted list). Cost: setting, moving
//! and removing O(log n), the first O(1); for as many servers as were ever in it at once, 20 bytes
//! each and a sixth for the nodes. Who isn't in it costs nothing.

use super::ahead;
use super::policy::Rank;
use super::server::ServerId;

/// Ready servers by rank.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// Ranks by slot.
    leaves: Vec<Option<Rank>>,
    /// Servers by slot; of a free one, the next that is free.
    servers: Vec<u32>,
    /// The slot that is given next, unless it is `NONE`.
    free: u32,
    /// From the leaves up; the last one is the root alone.
    levels: Vec<Vec<Node>>,
    len: usize,
}

/// The best of those below, if there is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    rank: Option<Rank>,
    slot: u32,
}

const NONE: u32 = u32::MAX;
const EMPTY: Node = Node { rank: None, slot: NONE };
/// Children of a node: eight ranks are two cache lines.
const WIDTH: usize = 8;

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
        let root = self.levels.last()?.first()?;
        root.rank.map(|rank| (ServerId(self.servers[root.slot as usize]), root.slot, rank))
    }

    /// Servers in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The rank in a slot, if there is a server in it.
    pub(super) fn rank(&self, slot: u32) -> Option<Rank> {
        self.leaves.get(slot as usize).copied().flatten()
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
        self.change(slot, Some(rank));
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
        self.change(slot, Some(rank));
    }

    /// Takes the server in a slot out.
    pub(super) fn remove(&mut self, slot: u32) {
        assert!(self.rank(slot).is_some(), "who is taken out is in");
        self.change(slot, None);
        self.len -= 1;
        self.servers[slot as usize] = std::mem::replace(&mut self.free, slot);
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
                let nodes = &self.levels[below];
                let until = (from + WIDTH).min(nodes.len());
                for node in &nodes[from..until] {
                    offer(&mut best, node.rank.as_ref(), node.slot);
                }
            }
            None => {
                let until = (from + WIDTH).min(self.leaves.len());
                for (rank, slot) in self.leaves[from..until].iter().zip(narrow(from)..) {
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
                most = most.max(sorted.len());
            }
            assert_eq!(ranking.leaves.len(), most, "free slots are given again");
        }
    }
}
