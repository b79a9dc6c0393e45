//! Groups of servers that share politeness: a host, an address, a registrable domain.
//!
//! A group has a clock and a cap on simultaneous visits. However many the cap admits, no two begin
//! nearer to each other than the group's delay. A server that its group holds back waits
//! in the group, and is woken by the clock or by the end of a visit, never found by a scan.
//!
//! Groups that could hold nobody back don't exist: a host has one from its second server on (until
//! then the server keeps the host's clock), and so has a domain, if a cap is set for them; with a
//! delay it has one from the first on. Addresses have groups if a cap or a delay is set. None of
//! this is written down: a crawl that goes on with other settings makes the groups that these ask
//! for.
//! Cost: 24 bytes a group; a slot of an index for each domain if domains have groups; 16 bytes and
//! a slot for an address.

use super::index::Index;
use super::policy::Rank;
use super::rest::Settings;
#[cfg(test)]
use super::sabotage::{self, Sabotage};
use super::server::ServerId;
use crate::table::Table;
use crate::time::Instant;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::ops::{Index as At, IndexMut as AtMut};
use std::time::Duration;

/// Number of a group: its kind in the lower two bits, above it its place among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(NonZeroU32);

/// What a group's servers have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// The host name: at most one visit at a time, whatever scheme or port.
    Host,
    /// The registrable domain.
    Domain,
    /// The address: what shared hosting has in common, and what a content network has too.
    Address,
}

impl GroupKind {
    /// All there are.
    pub(super) const ALL: [Self; 3] = [Self::Host, Self::Domain, Self::Address];
}

impl GroupId {
    fn new(kind: GroupKind, place: usize) -> Self {
        let place = u32::try_from(place).ok().filter(|place| *place < 1 << 30);
        let word = place.expect("fewer than 2^30 groups of a kind") << 2 | (kind as u32 + 1);
        Self(NonZeroU32::new(word).expect("a kind is not 0"))
    }

    /// The group of that place among those of `kind`.
    pub(super) fn of(kind: GroupKind, place: u32) -> Self {
        Self::new(kind, place as usize)
    }

    pub(super) fn kind(self) -> GroupKind {
        match self.0.get() & 3 {
            1 => GroupKind::Host,
            2 => GroupKind::Domain,
            _ => GroupKind::Address,
        }
    }

    /// Its place among those of its kind.
    pub(super) fn place(self) -> u32 {
        self.0.get() >> 2
    }
}

/// One group.
#[derive(Debug)]
pub(super) struct Group {
    /// No visit before this.
    pub(super) next: Instant,
    /// Visits under way.
    active: u32,
    /// Servers held back, by rank.
    #[expect(clippy::box_collection, reason = "most groups hold nobody back: one word for that")]
    waiting: Option<Box<BTreeMap<Rank, ServerId>>>,
}

/// What holds for all groups of a kind.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// Visits at the same time; `u32::MAX` is no cap.
    cap: u32,
    /// Rest after a visit, and shortest time between the beginnings of two; a host rests as long as
    /// the server that was visited.
    delay: Duration,
}

/// All groups.
#[derive(Debug)]
pub(super) struct Groups {
    rules: [Rule; 3],
    groups: [Table<Group>; 3],
    /// The first server of each domain.
    domains: Index,
    addresses: Index,
    /// The address of each group of that kind.
    names: Table<u128>,
    /// No visit at an address that was not met in this run before this.
    addresses_rest_until: Instant,
}

impl Groups {
    pub(super) fn new(settings: &Settings) -> Self {
        let seed = settings.crawl.unwrap_or(0);
        Self {
            rules: GroupKind::ALL.map(|kind| Rule::of(kind, settings)),
            groups: [Table::default(), Table::default(), Table::default()],
            domains: Index::new(seed),
            addresses: Index::new(seed),
            names: Table::default(),
            addresses_rest_until: Instant::ZERO,
        }
    }

    /// Whether a group of that kind could hold anybody back.
    pub(super) fn hold(&self, kind: GroupKind) -> bool {
        let rule = self.rules[kind as usize];
        rule.cap < u32::MAX || rule.delay > Duration::ZERO
    }

    /// Whether a group of that kind could hold its only server back longer than that rests.
    pub(super) fn hold_one(&self, kind: GroupKind) -> bool {
        self.rules[kind as usize].delay > Duration::ZERO
    }

    /// A new group, which admits at once. If `active`, its first server is being visited.
    pub(super) fn add(&mut self, kind: GroupKind, active: bool) -> GroupId {
        let groups = &mut self.groups[kind as usize];
        let id = GroupId::new(kind, groups.len());
        let next = Instant::ZERO;
        groups.push(Group { next, active: u32::from(active), waiting: None });
        id
    }

    /// The first server of the domain of that name; if there is none, it is `id` from now on. `is`
    /// says of a server whether it is of that domain.
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
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let hash = self.addresses.hash(&address.octets());
        let name = u128::from(address);
        let names = &self.names;
        if let Some(place) = self.addresses.find(hash, |place| names[place as usize] == name) {
            return GroupId::of(GroupKind::Address, place);
        }
        let id = self.add(GroupKind::Address, false);
        self[id].next = self.addresses_rest_until;
        self.names.push(name);
        self.addresses.insert(hash, id.place());
        id
    }

    /// A crawl goes on: what groups other than hosts still owed is not known. Each rests from now
    /// on as long as it would after a visit.
    pub(super) fn begin_again(&mut self, now: Instant) {
        for (groups, rule) in self.groups.iter_mut().zip(self.rules) {
            groups.iter_mut().for_each(|group| group.next = group.next.max(now + rule.delay));
        }
        self.addresses_rest_until = now + self.rules[GroupKind::Address as usize].delay;
    }

    fn rule(&self, id: GroupId) -> Rule {
        self.rules[id.kind() as usize]
    }

    /// Whether one more visit may begin.
    pub(super) fn admits(&self, id: GroupId, now: Instant) -> bool {
        self.has_room(id) && self[id].next <= now
    }

    /// Whether the cap allows for one more visit.
    pub(super) fn has_room(&self, id: GroupId) -> bool {
        self[id].active < self.rule(id).cap
    }

    /// Whether only the clock holds it back.
    pub(super) fn rests(&self, id: GroupId, now: Instant) -> bool {
        self.has_room(id) && self[id].next > now
    }

    /// A server of it is taken for a visit.
    pub(super) fn enter(&mut self, id: GroupId) {
        let rule = self.rule(id);
        let group = &mut self[id];
        group.active += 1;
        debug_assert!(group.active <= rule.cap, "a group is never above its cap");
    }

    /// A visit begins: no other begins before the group's delay is over.
    pub(super) fn begin(&mut self, id: GroupId, now: Instant) {
        let next = now + self.rule(id).delay;
        let group = &mut self[id];
        group.next = group.next.max(next);
    }

    /// A visit ended at `ended` (`None`: it never began); its server rests until `due`.
    pub(super) fn leave(&mut self, id: GroupId, visit: Option<(Instant, Instant)>) {
        let rule = self.rule(id);
        let group = &mut self[id];
        assert!(group.active > 0, "a group counts each visit once");
        group.active -= 1;
        if let Some((ended, due)) = visit {
            let own = ended + rule.delay;
            let next = if id.kind() == GroupKind::Host { due.max(own) } else { own };
            group.next = group.next.max(next);
        }
    }

    /// All there are.
    pub(super) fn ids(&self) -> impl Iterator<Item = GroupId> {
        GroupKind::ALL.into_iter().flat_map(|kind| {
            let places = 0..self.groups[kind as usize].len();
            places.map(move |place| GroupId::new(kind, place))
        })
    }
}

impl At<GroupId> for Groups {
    type Output = Group;

    fn index(&self, id: GroupId) -> &Group {
        &self.groups[id.kind() as usize][id.place() as usize]
    }
}

impl AtMut<GroupId> for Groups {
    fn index_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.groups[id.kind() as usize][id.place() as usize]
    }
}

impl Group {
    /// The best of the servers held back.
    pub(super) fn first(&self) -> Option<(Rank, ServerId)> {
        let first = self.waiting.as_ref()?.first_key_value();
        first.map(|(rank, id)| (*rank, *id))
    }

    /// A server is held back.
    pub(super) fn hold_back(&mut self, rank: Rank, id: ServerId) {
        self.waiting.get_or_insert_default().insert(rank, id);
    }

    /// A server waits no more.
    pub(super) fn let_go(&mut self, rank: Rank) {
        let waiting = self.waiting.as_mut().expect("somebody waits");
        waiting.remove(&rank);
        self.waiting.take_if(|waiting| waiting.is_empty());
    }

    /// Whoever is the best of those that wait.
    pub(super) fn next_of(&mut self) -> Option<(Rank, ServerId)> {
        let waiting = self.waiting.as_mut()?;
        #[cfg(test)]
        if sabotage::is(Sabotage::WorstReleased) {
            return waiting.pop_last();
        }
        let first = waiting.pop_first();
        self.waiting.take_if(|waiting| waiting.is_empty());
        first
    }
}

impl Rule {
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
