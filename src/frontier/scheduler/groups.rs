//! Groups of servers that share politeness: a host, an address, a registrable domain.
//!
//! A group has a clock and a cap on simultaneous visits. Whatever the cap, no two visits begin
//! closer to each other than the group's delay. A server that its group holds back waits in the
//! group. The clock or the end of a visit wakes it; nothing scans for it.
//!
//! Groups that can't hold any server back don't exist. A host becomes a group with its second
//! server (until then the server keeps the host's clock). So does a domain if only a cap is set;
//! with a delay it is a group from its first server on. Addresses are groups if a cap or a delay
//! is set. Groups are not part of a snapshot: a restored crawl makes those that its settings need.
//! Cost: 24 bytes a group; an index slot more for a domain; 20 bytes and a slot for an address; an
//! entry of an ordered map for each server held back and each group that has an alarm.

use super::index::Index;
use super::policy::Rank;
use super::politeness::Settings;
use super::state::ServerId;
#[cfg(test)]
use crate::frontier::tests::sabotage::{self, Sabotage};
use crate::ground::table::Table;
use crate::ground::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

/// Number of a group: its index, plus 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(NonZeroU32);

/// What the servers of a group share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// The host name: at most one visit at a time, whatever the scheme or port.
    Host,
    /// The registrable domain.
    Domain,
    /// The address, which servers share on shared hosting and in content networks.
    Address,
}

impl GroupKind {
    /// All kinds.
    pub(super) const ALL: [Self; 3] = [Self::Host, Self::Domain, Self::Address];
}

impl GroupId {
    fn from_index(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("fewer than 2^32 groups"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// One group.
#[derive(Debug)]
struct Group {
    /// No visit begins before this.
    next: Instant,
    /// Visits under way.
    active: u32,
    kind: GroupKind,
    /// Servers held back, by rank.
    #[expect(
        clippy::box_collection,
        reason = "most groups hold no server back: one word for that"
    )]
    waiting: Option<Box<BTreeMap<Rank, ServerId>>>,
}

/// The limits of all groups of a kind.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Visits at the same time; `u32::MAX` is no cap.
    cap: u32,
    /// Rest after a visit, and shortest time between the beginnings of two. A host rests as long as
    /// the server that was visited.
    delay: Duration,
}

/// All groups.
#[derive(Debug)]
pub(super) struct Groups {
    limits: [Limits; 3],
    groups: Table<Group>,
    /// The first server of each domain.
    domains: Index,
    /// The address groups, each with its address.
    addresses: Table<([u8; 16], GroupId)>,
    by_address: Index,
    /// An address that this run has not met yet is not visited before this.
    addresses_rest_until: Instant,
    /// Groups that hold servers back until their clock is over: always under their present clock.
    alarms: BTreeSet<(Instant, GroupId)>,
    /// Servers held back.
    held: usize,
}

impl Groups {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            limits: GroupKind::ALL.map(|kind| Limits::of(kind, settings)),
            groups: Table::default(),
            domains: Index::new(settings.seed),
            addresses: Table::default(),
            by_address: Index::new(settings.seed),
            addresses_rest_until: Instant::ZERO,
            alarms: BTreeSet::new(),
            held: 0,
        }
    }

    /// Whether a group of that kind can hold a server back.
    pub(super) fn can_hold(&self, kind: GroupKind) -> bool {
        self.limits[kind as usize].cap < u32::MAX || self.can_hold_one(kind)
    }

    /// Whether a group of that kind can hold its only server back.
    pub(super) fn can_hold_one(&self, kind: GroupKind) -> bool {
        self.limits[kind as usize].delay > Duration::ZERO
    }

    /// Adds a group. If `is_active`, its first server is being visited.
    pub(super) fn add(&mut self, kind: GroupKind, next: Instant, is_active: bool) -> GroupId {
        let id = GroupId::from_index(self.groups.len());
        self.groups.push(Group { next, active: u32::from(is_active), kind, waiting: None });
        id
    }

    /// The first server of that domain; if there is none, it is `id` from now on. `is` says of a
    /// server whether it is of that domain.
    pub(super) fn first_of(
        &mut self,
        domain: &str,
        id: ServerId,
        is: impl Fn(ServerId) -> bool,
    ) -> Option<ServerId> {
        let hash = self.domains.hash(domain.as_bytes());
        let first = self.domains.find(hash, |number| is(ServerId(number)));
        if first.is_none() {
            self.domains.insert(hash, id.0);
        }
        first.map(ServerId)
    }

    /// The group of an address.
    pub(super) fn address(&mut self, address: IpAddr) -> GroupId {
        let name = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let (hash, known) = (self.by_address.hash(&name), &self.addresses);
        if let Some(index) = self.by_address.find(hash, |index| known[index as usize].0 == name) {
            return known[index as usize].1;
        }
        let id = self.add(GroupKind::Address, self.addresses_rest_until, false);
        self.by_address.insert(hash, u32::try_from(self.addresses.len()).expect("as groups"));
        self.addresses.push((name, id));
        id
    }

    /// A crawl was restored. What domains and addresses still owed is not known: each rests as long
    /// as after a visit.
    pub(super) fn restart(&mut self, now: Instant) {
        for id in self.ids() {
            let delay = self.limits_of(id).delay;
            self.rest_until(id, now + delay);
        }
        self.addresses_rest_until = now + self.limits[GroupKind::Address as usize].delay;
    }

    /// When a group's clock is over.
    pub(super) fn next(&self, id: GroupId) -> Instant {
        self.group(id).next
    }

    /// Sets the clock of a group forward.
    pub(super) fn rest_until(&mut self, id: GroupId, next: Instant) {
        let old = self.next(id);
        if next > old {
            self.group_mut(id).next = next;
            if self.alarms.remove(&(old, id)) {
                self.alarms.insert((next, id));
            }
        }
    }

    /// Whether one more visit may begin.
    pub(super) fn admits(&self, id: GroupId, now: Instant) -> bool {
        self.has_room(id) && self.next(id) <= now
    }

    fn has_room(&self, id: GroupId) -> bool {
        self.group(id).active < self.limits_of(id).cap
    }

    /// A server of the group was taken for a visit.
    pub(super) fn enter(&mut self, id: GroupId) {
        self.group_mut(id).active += 1;
        debug_assert!(self.group(id).active <= self.limits_of(id).cap, "the cap holds");
    }

    /// A visit begins: no other begins before the group's delay is over.
    pub(super) fn begin(&mut self, id: GroupId, now: Instant) {
        self.rest_until(id, now + self.limits_of(id).delay);
    }

    /// A visit ended: when, and until when its server rests. `None`: it never began.
    pub(super) fn leave(&mut self, id: GroupId, visit: Option<(Instant, Instant)>) {
        let group = self.group_mut(id);
        assert!(group.active > 0, "a group counts each visit once");
        group.active -= 1;
        let is_host = group.kind == GroupKind::Host;
        if let Some((ended, due)) = visit {
            let own = ended + self.limits_of(id).delay;
            self.rest_until(id, if is_host { due.max(own) } else { own });
        }
    }

    /// The best of the servers held back.
    pub(super) fn first(&self, id: GroupId) -> Option<(Rank, ServerId)> {
        let first = self.group(id).waiting.as_ref()?.first_key_value();
        first.map(|(rank, server)| (*rank, *server))
    }

    /// Holds a server back.
    pub(super) fn hold_back(&mut self, id: GroupId, rank: Rank, server: ServerId) {
        let waiting = self.group_mut(id).waiting.get_or_insert_default();
        assert!(waiting.insert(rank, server).is_none(), "ranks are unique");
        self.held += 1;
    }

    /// Removes the server of that rank from the one of these groups that holds it back, which is
    /// returned.
    pub(super) fn let_go(&mut self, groups: [Option<GroupId>; 3], rank: Rank) -> GroupId {
        let holder = groups.into_iter().flatten().find(|id| self.remove(*id, rank));
        holder.expect("a group holds it back")
    }

    /// Wakes a group. If it admits a visit, the best of the servers held back is released. If only
    /// its clock is not over, it gets an alarm.
    pub(super) fn wake(&mut self, id: GroupId, now: Instant) -> Option<(Rank, ServerId)> {
        let first = self.first(id)?;
        if !self.has_room(id) {
            return None; // the end of a visit wakes it
        }
        let next = self.next(id);
        if next > now {
            self.alarms.insert((next, id));
            return None;
        }
        #[cfg(test)]
        let first = match &self.group(id).waiting {
            Some(waiting) if sabotage::is(Sabotage::WorstReleased) => {
                waiting.last_key_value().map_or(first, |(rank, server)| (*rank, *server))
            }
            _ => first,
        };
        self.remove(id, first.0);
        Some(first)
    }

    /// The nearest alarm.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.alarms.first().map(|(next, _)| *next)
    }

    /// Takes a group whose alarm is due.
    pub(super) fn expire(&mut self, now: Instant) -> Option<GroupId> {
        self.deadline().filter(|next| *next <= now)?;
        self.alarms.pop_first().map(|(_, id)| id)
    }

    /// Servers held back.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Groups that hold servers back, have room, and no alarm: each with the best of its servers.
    /// For audits: looks at all groups.
    pub(super) fn unalarmed(&self) -> impl Iterator<Item = (GroupId, Rank, ServerId)> {
        self.ids().filter_map(|id| {
            let (rank, server) = self.first(id)?;
            let may_release = self.has_room(id) && !self.alarms.contains(&(self.next(id), id));
            may_release.then_some((id, rank, server))
        })
    }

    fn remove(&mut self, id: GroupId, rank: Rank) -> bool {
        let waiting = &mut self.group_mut(id).waiting;
        let waited = waiting.as_mut().is_some_and(|servers| servers.remove(&rank).is_some());
        waiting.take_if(|servers| servers.is_empty());
        self.held -= usize::from(waited);
        waited
    }

    fn ids(&self) -> impl Iterator<Item = GroupId> + use<> {
        (0..self.groups.len()).map(GroupId::from_index)
    }

    fn limits_of(&self, id: GroupId) -> Limits {
        self.limits[self.group(id).kind as usize]
    }

    fn group(&self, id: GroupId) -> &Group {
        &self.groups[id.index()]
    }

    fn group_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.groups[id.index()]
    }
}

impl Limits {
    fn of(kind: GroupKind, settings: &Settings) -> Self {
        let (cap, delay) = match kind {
            GroupKind::Host => (1, Duration::ZERO),
            GroupKind::Address => (settings.address_visits_max, settings.address_delay),
            GroupKind::Domain => (settings.domain_visits_max, settings.domain_delay),
        };
        let cap = if cap == 0 { u32::MAX } else { cap };
        #[cfg(test)]
        let cap = if sabotage::is(Sabotage::CapsIgnored) { u32::MAX } else { cap };
        Self { cap, delay }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_small() {
        assert_eq!(size_of::<Group>(), 24);
        assert_eq!(size_of::<Option<GroupId>>(), 4);
    }
}
