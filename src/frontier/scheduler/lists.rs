//! The lists: ready servers by age, so that none waits forever because others have better ranks.
//!
//! Every server of the ready queue is also in one of K = [`LISTS`] first-in, first-out lists, by
//! the magnitude of its rank's quotient: list K - 1 has the servers of at least 4 times a typical
//! quotient ([`policy::typical`]), the next one those of at least that quotient, then a quarter of
//! it; list 0 has all others. Under policies whose ranks have no magnitude, all servers are in list
//! 0. A list is ordered by *arrival*, the number that a server got when it became ready. A server
//! whose rank rises moves to a better list and keeps its arrival. A server whose rank falls stays
//! in its list. A server that a group holds back is in no list until it returns to the ready queue.
//!
//! A share s of the visits are *turns*: they take the oldest server of a list, not the best server
//! of the queue. Turns go by weighted round robin: a round has W = 2^K - 1 slots, of which list k
//! has 2^k, evenly spread. A turn skips slots of empty lists. Visits of *called* servers, which go
//! before all others, are no turns and don't count as visits here.
//!
//! Law: a server that stays in the ready queue is taken within (a + K) x W turns after it entered,
//! which are at most ceil((a + K) x W / s) visits; K becomes 1 if it stays in one list. Here a is
//! how many servers with lesser arrivals are ready, held back, reading or busy when it enters, and
//! how many times one is handed back while it waits. Proof: of 2^(K - k) turns in a row, and of W,
//! at least one visits list k if it isn't empty, since none of its slots is skipped. A visit to the
//! list of the server takes this server or an older one. A visit that takes an older one lowers a,
//! because a server whose visit has ended gets a new arrival. A move to a better list, of which
//! there are at most K - 1, costs fewer than W turns: those since the last visit to the old list.
//!
//! The law doesn't include the time for which a group holds a server back. A group releases the
//! best of the servers that it holds back, whatever their age.
//! Cost: O(log servers) to enter or leave; an entry of an ordered map for each server, about 45
//! bytes. Without a share there are no lists and no cost.
//!
//! Source: the front queues of Mercator: Najork, Heydon: High-performance web crawling, Compaq SRC
//! 173, 2001, section 4.2.

use super::policy::{self, Rank};
use super::{ServerId, Settings};
#[cfg(test)]
use crate::frontier::tests::sabotage::{self, Sabotage};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// K, the number of lists.
pub(super) const LISTS: usize = 4;
/// W, the number of slots in a round.
pub(super) const SLOTS: u32 = (1 << LISTS) - 1;
/// The least quotient of each list but list 0, as a multiple of the typical one.
const LEAST: [f64; LISTS - 1] = [0.25, 1.0, 4.0];

/// The lists, and whose turn it is.
#[derive(Debug)]
pub(super) struct Lists {
    lists: [List; LISTS],
    /// The quotient of a typical server; `None` if ranks have no magnitude.
    typical: Option<f64>,
    /// The share of visits that are turns, in thousandths.
    share_milli: u32,
    /// The thousandths of a turn that visits have added and no turn has used.
    credit_milli: u32,
    /// The slot of the last turn, from 1 to [`SLOTS`]; 0 before the first turn.
    slot: u32,
    /// The number of visits, not counting those of called servers.
    visits: u64,
    /// The number of turns.
    turns: u64,
}

/// One list.
#[derive(Debug, Default)]
struct List {
    /// The servers, by arrival.
    servers: BTreeMap<u64, Entry>,
    /// The number of the last turn that visited this list; 0 before the first one.
    visited: u64,
    /// The arrival of the server that it took.
    taken: u64,
}

/// One server of a list.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: ServerId,
    /// The number of turns that had passed when the server entered this list.
    entered: u64,
}

/// A turn that may be carried out: the slot, and the server to take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    slot: u32,
    pub(super) id: ServerId,
}

impl Lists {
    /// Creates empty lists; returns `None` if the settings give them no share of the visits.
    pub(super) fn new(settings: &Settings) -> Option<Box<Self>> {
        let share_milli = settings.schedule.random_share_milli.min(1_000);
        let lists = || Self {
            lists: Default::default(),
            typical: policy::typical(settings.burst, &settings.schedule),
            share_milli,
            credit_milli: 0,
            slot: 0,
            visits: 0,
            turns: 0,
        };
        (share_milli > 0).then(|| Box::new(lists()))
    }

    /// Adds a server that enters the ready queue at this rank. This and the other ways to change
    /// lists aren't inlined: most crawls have none, and their code would slow the ready queue.
    #[inline(never)]
    pub(super) fn insert(&mut self, rank: Rank, id: ServerId) {
        #[cfg(test)]
        if sabotage::is(Sabotage::ListsIncomplete) && rank.arrival.is_multiple_of(3) {
            return;
        }
        let list = self.list_of(rank.fraction);
        self.lists[list].servers.insert(rank.arrival, Entry { id, entered: self.turns });
    }

    /// Moves a server to the list of its new rank if that list is a better one.
    #[inline(never)]
    pub(super) fn raise(&mut self, rank: Rank) {
        let list = self.list_of(rank.fraction);
        let worse = self.lists[..list].iter_mut();
        let entry = worse.filter_map(|worse| worse.servers.remove(&rank.arrival)).next();
        if let Some(entry) = entry {
            let entry = Entry { entered: self.turns, ..entry };
            self.lists[list].servers.insert(rank.arrival, entry);
        }
    }

    /// Removes a server that leaves the ready queue.
    #[inline(never)]
    pub(super) fn remove(&mut self, rank: Rank) {
        self.lists.iter_mut().any(|list| list.servers.remove(&rank.arrival).is_some());
    }

    /// Returns whether the next visit is a turn.
    pub(super) fn is_turn(&self) -> bool {
        self.credit_milli + self.share_milli >= 1_000
    }

    /// Returns the next turn; `None` if all lists are empty.
    pub(super) fn next_turn(&self) -> Option<Turn> {
        (1..=SLOTS).find_map(|step| {
            let slot = (self.slot + step - 1) % SLOTS + 1;
            let servers = &self.lists[list_at(slot)].servers;
            let oldest = servers.first_key_value();
            #[cfg(test)]
            let oldest = match () {
                () if sabotage::is(Sabotage::YoungestFirst) => servers.last_key_value(),
                () if sabotage::is(Sabotage::ListSkipped) && self.may_skip(slot) => None,
                () => oldest,
            };
            oldest.map(|(_, entry)| Turn { slot, id: entry.id })
        })
    }

    /// Returns whether a slot is that of the worst list with servers, and a better one has some.
    #[cfg(test)]
    fn may_skip(&self, slot: u32) -> bool {
        let mut filled = (0..LISTS).filter(|list| !self.lists[*list].servers.is_empty());
        filled.next() == Some(list_at(slot)) && filled.next().is_some()
    }

    /// Counts a visit that takes a server of this arrival, which has left the lists. `turn` is the
    /// turn that took it; `None` if it was taken as the best.
    pub(super) fn count(&mut self, arrival: u64, turn: Option<Turn>) {
        self.visits += 1;
        self.credit_milli += self.share_milli;
        if let Some(turn) = turn {
            self.credit_milli -= 1_000;
            self.turns += 1;
            self.slot = turn.slot;
            let list = &mut self.lists[list_at(turn.slot)];
            (list.visited, list.taken) = (self.turns, arrival);
        }
    }

    /// Checks what the proof of the law relies on: `ready`, the servers of the ready queue with
    /// their true ranks, are in the lists; a share of the visits were turns; no list waited for
    /// longer than its gap; each list gave its oldest server. For audits only.
    ///
    /// # Errors
    /// A message that says which of these is violated.
    pub(super) fn check(
        &self,
        ready: impl Iterator<Item = (Rank, ServerId)>,
        share_milli: u32,
    ) -> Result<(), String> {
        let due = u128::from(self.visits) * u128::from(share_milli) / 1_000;
        if u128::from(self.turns) < due {
            return Err(format!("{} turns of {} visits, not {due}", self.turns, self.visits));
        }
        let mut count = 0;
        for (rank, id) in ready {
            count += 1;
            let least = self.list_of(rank.fraction);
            let mut better = self.lists[least..].iter();
            let is_listed = |list: &List| list.servers.get(&rank.arrival).map(|it| it.id);
            if !better.any(|list| is_listed(list) == Some(id)) {
                return Err(format!("ready server {} is in no list from {least} on", id.0));
            }
        }
        let listed: usize = self.lists.iter().map(|list| list.servers.len()).sum();
        if listed != count {
            return Err(format!("{count} servers are ready, {listed} are in the lists"));
        }
        for (number, list) in self.lists.iter().enumerate() {
            for (arrival, entry) in &list.servers {
                let passed = self.turns - entry.entered.max(list.visited);
                if passed >= gap_of(number).into() {
                    return Err(format!("list {number} was not visited in {passed} turns"));
                }
                // It was in the list when the list was visited last.
                if entry.entered < list.visited && *arrival < list.taken {
                    return Err(format!(
                        "list {number} gave arrival {} before {arrival}",
                        list.taken
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the list of a server whose rank has this fraction.
    fn list_of(&self, fraction: NonZeroU64) -> usize {
        let Some(typical) = self.typical else { return 0 };
        let own = policy::quotient(fraction);
        // Multiples by powers of 2 are exact.
        LEAST.iter().filter(|least| own >= typical * **least).count()
    }
}

/// Returns in how many turns in a row a list that isn't empty is visited at least once.
fn gap_of(list: usize) -> u32 {
    SLOTS.min(1 << (LISTS - list))
}

/// Returns the list that a slot of a round belongs to: list K - 1 has every second slot, the next
/// one every second of the others, and so on.
fn list_at(slot: u32) -> usize {
    LISTS - 1 - slot.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: list k has 2^k of the slots of a round, and never waits longer than its gap.
    #[test]
    fn slots_are_weighted_and_spread() {
        for list in 0..LISTS {
            let slots: Vec<u32> =
                (1..=2 * SLOTS).filter(|slot| list_at((slot - 1) % SLOTS + 1) == list).collect();
            assert_eq!(slots.len(), 2 << list);
            let gap = slots.windows(2).map(|pair| pair[1] - pair[0]).max();
            assert!(gap.is_some_and(|gap| gap <= gap_of(list)), "{list}: {gap:?}");
        }
    }
}
