//! Ready servers in the order of their ranks: a tournament.
//!
//! A tree by server number: each node holds the best of eight below it. A changed rank is carried
//! up until a node keeps its winner, so that nothing else moves and no table of places is needed.
//!
//! Law: the first is the best of all that are in it (held to a sorted list). Cost: setting, moving
//! and removing O(log n), the first O(1); for n servers known, ready or not, 24 bytes each and a
//! sixth for the nodes.

use super::policy::Rank;
use super::server::ServerId;

/// Ready servers by rank.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    leaves: Vec<Option<Rank>>,
    /// From the leaves up; the last one is the root alone.
    levels: Vec<Vec<Node>>,
    len: usize,
}

/// The best of those below, if there is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    rank: Option<Rank>,
    id: u32,
}

const EMPTY: Node = Node { rank: None, id: u32::MAX };
/// Children of a node: eight ranks are three cache lines.
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
    /// Who comes first.
    pub(super) fn first(&self) -> Option<ServerId> {
        let root = self.levels.last()?.first()?;
        root.rank.map(|_| ServerId(root.id))
    }

    /// Servers in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The rank of a server, if it is in it.
    pub(super) fn rank(&self, id: ServerId) -> Option<Rank> {
        self.leaves.get(id.index()).copied().flatten()
    }

    /// Puts a server in, or moves it.
    pub(super) fn set(&mut self, id: ServerId, rank: Rank) {
        self.reach(id.index());
        self.change(id, Some(rank));
    }

    /// Takes a server out, if it is in.
    pub(super) fn remove(&mut self, id: ServerId) {
        if self.rank(id).is_some() {
            self.change(id, None);
        }
    }

    fn change(&mut self, id: ServerId, rank: Option<Rank>) {
        let leaf = &mut self.leaves[id.index()];
        let mut before = Node { rank: std::mem::replace(leaf, rank), id: id.0 };
        let mut after = Node { rank, id: id.0 };
        self.len += usize::from(after.rank.is_some());
        self.len -= usize::from(before.rank.is_some());
        let mut place = id.index();
        for level in 0..self.levels.len() {
            place /= WIDTH;
            let holder = self.levels[level][place];
            let held = before.rank.is_some() && holder.id == before.id;
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
                    offer(&mut best, node.rank.as_ref(), node.id);
                }
            }
            None => {
                let until = (from + WIDTH).min(self.leaves.len());
                for (rank, id) in self.leaves[from..until].iter().zip(narrow(from)..) {
                    offer(&mut best, rank.as_ref(), id);
                }
            }
        }
        best.map_or(EMPTY, |(rank, id)| Node { rank: Some(*rank), id })
    }

    /// Makes room for a server of this number.
    fn reach(&mut self, index: usize) {
        if index < self.leaves.len() {
            return;
        }
        self.leaves.resize(index + 1, None);
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
fn offer<'a>(best: &mut Option<(&'a Rank, u32)>, rank: Option<&'a Rank>, id: u32) {
    if let Some(rank) = rank
        && best.is_none_or(|(other, _)| rank < other)
    {
        *best = Some((rank, id));
    }
}

fn narrow(id: usize) -> u32 {
    u32::try_from(id).expect("fewer than 2^32 servers")
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
            let mut sorted: BTreeMap<Rank, u32> = BTreeMap::new();
            for arrival in 0..20_000_u64 {
                let id = ServerId(u32::try_from(below(servers)).expect("small"));
                if let Some(old) = ranking.rank(id) {
                    assert_eq!(sorted.remove(&old), Some(id.0));
                }
                if below(3) == 0 {
                    ranking.remove(id);
                } else {
                    let new = rank(below(50), 1 + below(50), arrival);
                    ranking.set(id, new);
                    sorted.insert(new, id.0);
                }
                let first = sorted.first_key_value().map(|(_, id)| ServerId(*id));
                assert_eq!(ranking.first(), first, "{servers} servers, change {arrival}");
                assert_eq!(ranking.len(), sorted.len());
            }
        }
    }
}
