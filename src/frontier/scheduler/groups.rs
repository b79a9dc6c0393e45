//! Groups of servers that share politeness limits: those of one host, one address or one
//! registrable domain.
//!
//! A group has a clock (an instant before which no visit begins) and a cap on simultaneous visits.
//! Whatever the cap is, the beginnings of two visits are at least the group's delay apart. A server
//! is *held back* if it is ready and one of its groups doesn't admit a visit. It waits in that
//! group until the clock is over or another visit ends; nothing scans for it. An *alarm* is an
//! entry in a time-ordered set, which wakes a group when its clock is over. The *rank* of a server
//! is its place in the ready queue.
//!
//! A group is created only if it can hold a server back. A host becomes a group with its second
//! server; until then the server keeps the host's clock. A domain becomes one with its second
//! server if it has a cap only, and with its first server if it has a delay. An address is a group
//! if it has a cap or a delay. Groups are not part of a snapshot: a restored crawl creates those
//! that its settings require.
//! Cost: 24 bytes a group. A domain takes an index slot more, an address a slot and 20 bytes. Each
//! server held back and each alarm takes an entry of an ordered map.

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

/// The number of a group: its index plus 1, so that an `Option` of it takes four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(NonZeroU32);

/// What the servers of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// The servers have the same host name. The host gets at most one visit at a time, whatever the
    /// scheme or port.
    Host,
    /// The servers have the same registrable domain, such as `example.co.uk`.
    Domain,
    /// The servers have the same IP address, as on shared hosting and in content delivery networks.
    Address,
}

impl GroupKind {
    /// All kinds, in the order of their declaration, which is that of a server's groups.
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

/// The state of one group.
#[derive(Debug)]
struct Group {
    /// The clock of the group: no visit begins before this instant.
    next: Instant,
    /// The number of visits to servers of the group that have not ended.
    active: u32,
    kind: GroupKind,
    /// The servers that this group holds back, by rank.
    #[expect(
        clippy::box_collection,
        reason = "most groups hold no server back: one word for that"
    )]
    waiting: Option<Box<BTreeMap<Rank, ServerId>>>,
}

/// The limits that apply to each group of one kind (host, domain or address).
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The largest number of simultaneous visits; `u32::MAX` means no cap.
    cap: u32,
    /// The rest of the group after a visit, and the shortest time between the beginnings of two
    /// visits. A host instead rests as long as the server that was visited.
    delay: Duration,
}

/// All groups, and the servers that they hold back.
#[derive(Debug)]
pub(super) struct Groups {
    limits: [Limits; 3],
    groups: Table<Group>,
    /// The first known server of each domain, by the hash of the domain.
    domains: Index,
    /// The address groups, each with its address as IPv6 (IPv4 addresses are mapped).
    addresses: Table<([u8; 16], GroupId)>,
    by_address: Index,
    /// The clock with which new address groups begin. A restored crawl sets it, since the previous
    /// run may have visited an address that this run has not seen yet.
    addresses_rest_until: Instant,
    /// The alarms: groups that hold servers back until their clock is over, with the present value
    /// of that clock.
    alarms: BTreeSet<(Instant, GroupId)>,
    /// The number of servers that all groups together hold back.
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

    /// Changes the caps and delays of groups.
    pub(super) fn set_limits(&mut self, settings: &Settings) {
        self.limits = GroupKind::ALL.map(|kind| Limits::of(kind, settings));
    }

    /// Returns whether a group of that kind can hold any server back, by a cap or a delay.
    pub(super) fn can_hold(&self, kind: GroupKind) -> bool {
        self.limits[kind as usize].cap < u32::MAX || self.can_hold_one(kind)
    }

    /// Returns whether a group of that kind can hold a server back even if it is the only one in
    /// the group. Only a delay can do that, not a cap.
    pub(super) fn can_hold_one(&self, kind: GroupKind) -> bool {
        self.limits[kind as usize].delay > Duration::ZERO
    }

    /// Adds a group of that kind whose clock is `next`. `is_active` is whether its first server is
    /// being visited now.
    pub(super) fn add(&mut self, kind: GroupKind, next: Instant, is_active: bool) -> GroupId {
        let id = GroupId::from_index(self.groups.len());
        self.groups.push(Group { next, active: u32::from(is_active), kind, waiting: None });
        id
    }

    /// Returns the first known server of a domain. If there is none, records `id` as the first one
    /// and returns `None`. `is` is called with a server and returns whether it belongs to the
    /// domain.
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

    /// Returns the group of an address, which is created if there is none.
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

    /// Prepares the groups of a restored crawl. How long domains and addresses should still rest is
    /// not known, so each of them rests as long as after a visit.
    pub(super) fn restart(&mut self, now: Instant) {
        for id in self.ids() {
            let delay = self.limits_of(id).delay;
            self.rest_until(id, now + delay);
        }
        self.addresses_rest_until = now + self.limits[GroupKind::Address as usize].delay;
    }

    /// Returns the clock of a group: the instant from which a visit may begin.
    pub(super) fn next(&self, id: GroupId) -> Instant {
        self.group(id).next
    }

    /// Sets the clock of a group to `next`, and moves the group's alarm. A clock that is later
    /// already stays.
    pub(super) fn rest_until(&mut self, id: GroupId, next: Instant) {
        let old = self.next(id);
        if next > old {
            self.group_mut(id).next = next;
            if self.alarms.remove(&(old, id)) {
                self.alarms.insert((next, id));
            }
        }
    }

    /// Returns whether one more visit to the group may begin now.
    pub(super) fn admits(&self, id: GroupId, now: Instant) -> bool {
        self.has_room(id) && self.next(id) <= now
    }

    fn has_room(&self, id: GroupId) -> bool {
        self.group(id).active < self.limits_of(id).cap
    }

    /// Counts a visit to a server of the group, when the server is taken.
    pub(super) fn enter(&mut self, id: GroupId) {
        self.group_mut(id).active += 1;
        debug_assert!(self.group(id).active <= self.limits_of(id).cap, "the cap holds");
    }

    /// Records the beginning of a visit: no other begins before the group's delay is over.
    pub(super) fn begin(&mut self, id: GroupId, now: Instant) {
        self.rest_until(id, now + self.limits_of(id).delay);
    }

    /// Records the end of a visit to a server of the group. `visit` holds two instants: when the
    /// visit ended, and until when its server rests. It is `None` if the visit made no request to
    /// this group; then the group doesn't rest.
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

    /// Returns the best of the servers that a group holds back, with its rank; `None` if it holds
    /// none.
    pub(super) fn first(&self, id: GroupId) -> Option<(Rank, ServerId)> {
        let first = self.group(id).waiting.as_ref()?.first_key_value();
        first.map(|(rank, server)| (*rank, *server))
    }

    /// Holds a server back: it waits in the group under its rank.
    pub(super) fn hold_back(&mut self, id: GroupId, rank: Rank, server: ServerId) {
        let waiting = self.group_mut(id).waiting.get_or_insert_default();
        assert!(waiting.insert(rank, server).is_none(), "ranks are unique");
        self.held += 1;
    }

    /// Removes the server with that rank from whichever of these groups holds it back, and returns
    /// that group.
    pub(super) fn let_go(&mut self, groups: [Option<GroupId>; 3], rank: Rank) -> GroupId {
        let holder = groups.into_iter().flatten().find(|id| self.remove(*id, rank));
        holder.expect("a group holds it back")
    }

    /// Wakes a group. If it admits a visit, the best server that it holds back is removed and
    /// returned. If it would admit a visit but for its clock, the group gets an alarm. Otherwise
    /// nothing happens.
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

    /// Returns the instant of the first alarm, or `None` if there is no alarm.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.alarms.first().map(|(next, _)| *next)
    }

    /// Removes one alarm that is due and returns its group, or `None` if no alarm is due.
    pub(super) fn expire(&mut self, now: Instant) -> Option<GroupId> {
        self.deadline().filter(|next| *next <= now)?;
        self.alarms.pop_first().map(|(_, id)| id)
    }

    /// Returns the number of servers that all groups together hold back.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Returns the groups that hold servers back and have room for a visit but no alarm, each with
    /// its best server. It reads all groups and is for audits only.
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
