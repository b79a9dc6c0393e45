//! The server queue: who may be visited, when, and who comes first.
//!
//! Ready servers are ranked; snoozed ones sleep on a timer each; held back ones wait, ranked
//! alike, in the group that holds them. A woken server asks all its groups again.
//!
//! Laws: who is taken is the best of all that may be visited now, and whoever takes its place in
//! line because a group admits again is the best that waits there; so no release is lost (held to
//! a model that looks at all servers). Cost: O(log n) for all verbs, amortised; nothing scans.

use super::group::{Group, GroupId, GroupKind};
use super::policy::{Policy, Rank};
use super::ranking::Ranking;
use super::rest::Settings;
#[cfg(test)]
use super::sabotage::{self, Sabotage};
use super::server::{Server, ServerId, ServerState};
use crate::map::Map;
use crate::time::{Instant, Timers};
use std::collections::BTreeMap;

/// Servers in line, asleep, and held back.
#[derive(Debug)]
pub(super) struct Workbench {
    line: Ranking,
    sleepers: Timers,
    groups: Vec<Group>,
    ids: Map<(GroupKind, Box<str>), GroupId>,
    /// Groups at rest with servers waiting, by group number.
    resting: Timers,
    /// Servers waiting in groups.
    held: usize,
    /// Servers that became ready so far: their order of arrival.
    arrivals: u64,
    /// No visit at an address that was not met in this run before this.
    addresses_rest_until: Instant,
}

impl Workbench {
    pub(super) fn new() -> Self {
        Self {
            line: Ranking::default(),
            sleepers: Timers::new(),
            groups: Vec::new(),
            ids: Map::default(),
            resting: Timers::new(),
            held: 0,
            arrivals: 0,
            addresses_rest_until: Instant::ZERO,
        }
    }

    /// The group of that kind and name; a new one admits at once, unless it is an address and the
    /// crawl has just been taken up again.
    pub(super) fn group(&mut self, kind: GroupKind, name: &str, settings: &Settings) -> GroupId {
        let key = (kind, name.into());
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = GroupId(u32::try_from(self.groups.len()).expect("fewer than 2^32 groups"));
        let mut group = Group::new(kind, settings);
        if kind == GroupKind::Address {
            group.next = self.addresses_rest_until;
        }
        self.groups.push(group);
        self.ids.insert(key, id);
        id
    }

    /// No visit in that group before this.
    pub(super) fn clock(&self, id: GroupId) -> Instant {
        self.groups[id.index()].next
    }

    /// Sets the clock of a group forward.
    pub(super) fn set_clock(&mut self, id: GroupId, next: Instant) {
        let group = &mut self.groups[id.index()];
        group.next = group.next.max(next);
    }

    /// A crawl goes on: what groups other than hosts still owed is not known. Each rests from now
    /// on as long as it would after a visit.
    pub(super) fn begin_again(&mut self, settings: &Settings, now: Instant) {
        for group in &mut self.groups {
            group.next = group.next.max(now + group.delay);
        }
        self.addresses_rest_until = now + settings.address_delay;
    }

    /// An idle server with URLs stands in line, or sleeps until it is due.
    pub(super) fn admit(&mut self, server: &mut Server, id: ServerId, settings: &Settings) {
        self.arrivals += 1;
        server.arrival = self.arrivals;
        self.stand(server, id, settings);
    }

    /// Like [`Workbench::admit`], but it keeps its place among equal ones.
    pub(super) fn readmit(
        &mut self,
        server: &mut Server,
        id: ServerId,
        settings: &Settings,
        now: Instant,
    ) {
        if server.due > now {
            self.sleep(server, id);
        } else {
            self.stand(server, id, settings);
        }
    }

    pub(super) fn sleep(&mut self, server: &mut Server, id: ServerId) {
        server.state = ServerState::Snoozed(server.due);
        self.sleepers.set(id.0, server.due);
    }

    /// Stands in line; not if the next URL is still on disk.
    pub(super) fn stand(&mut self, server: &mut Server, id: ServerId, settings: &Settings) {
        if server.queue.is_behind() {
            server.state = ServerState::Reading;
        } else {
            server.state = ServerState::Ready;
            self.line.set(id, server.rank(settings));
        }
    }

    /// Wakes what is due: sleepers stand in line, rested groups let their best in line.
    pub(super) fn expire(&mut self, servers: &mut [Server], settings: &Settings, now: Instant) {
        while let Some(key) = self.sleepers.expire(now) {
            let id = ServerId(key);
            self.admit(&mut servers[id.index()], id, settings);
        }
        while let Some(key) = self.resting.expire(now) {
            self.wake(servers, GroupId(key), now);
        }
    }

    /// The first in line that all its groups admit; the others go to the group that holds them
    /// back.
    pub(super) fn take(&mut self, servers: &mut [Server], now: Instant) -> Option<ServerId> {
        while let Some(id) = self.line.first() {
            let rank = self.line.rank(id).expect("the first has a rank");
            self.line.remove(id);
            let server = &mut servers[id.index()];
            debug_assert_eq!(server.state, ServerState::Ready, "only ready servers are in line");
            let groups = server.groups;
            let holder = groups.into_iter().flatten().find(|group| !self.admits(*group, now));
            if let Some(holder) = holder {
                server.held = Some((holder, rank));
                self.groups[holder.index()].waiting.insert(rank, id);
                self.held += 1;
            } else {
                server.state = ServerState::Busy;
                server.admitted = true;
                groups.into_iter().flatten().for_each(|group| self.groups[group.index()].enter());
            }
            // It may have come from a group, in place of another: whatever became of it, whoever
            // waits there must not wait for it.
            self.wake_all(servers, groups, now);
            if holder.is_none() {
                return Some(id);
            }
        }
        None
    }

    /// Something that makes the rank of a server has changed.
    pub(super) fn rerank(
        &mut self,
        servers: &mut [Server],
        id: ServerId,
        settings: &Settings,
        now: Instant,
    ) {
        let server = &mut servers[id.index()];
        if settings.schedule.policy == Policy::Bfs || server.state != ServerState::Ready {
            return;
        }
        #[cfg(test)]
        if sabotage::is(Sabotage::RanksStale) {
            return;
        }
        let rank = server.rank(settings);
        if let Some((holder, old)) = server.held {
            if old == rank {
                return;
            }
            let admits = self.admits(holder, now);
            let waiting = &mut self.groups[holder.index()].waiting;
            waiting.remove(&old);
            if admits {
                // Whoever stands in line for that group may be worse now.
                server.held = None;
                self.held -= 1;
                self.line.set(id, rank);
            } else {
                server.held = Some((holder, rank));
                waiting.insert(rank, id);
            }
            return;
        }
        let fell = self.line.rank(id).is_some_and(|old| old < rank);
        let groups = server.groups;
        self.line.set(id, rank);
        if fell {
            // It may have stood in line for a group in which somebody is better now.
            for group in groups.into_iter().flatten() {
                let first = self.groups[group.index()].waiting.first_key_value();
                if first.is_some_and(|(best, _)| *best < rank) {
                    self.wake(servers, group, now);
                }
            }
        }
    }

    /// Adds the address group to a server under visit; `false` if that group does not admit it.
    pub(super) fn bind(
        &mut self,
        servers: &mut [Server],
        id: ServerId,
        group: GroupId,
        now: Instant,
    ) -> bool {
        let server = &mut servers[id.index()];
        if server.groups[2] == Some(group) {
            return true;
        }
        let old = server.groups[2].replace(group);
        let admitted = self.admits(group, now);
        if admitted {
            self.groups[group.index()].enter();
            server.later = None;
        } else {
            // Not counted in yet: the hand-back that must follow makes it a group to be asked.
            server.groups[2] = None;
            server.later = Some(group);
        }
        if let Some(old) = old {
            self.groups[old.index()].leave(None);
            self.wake(servers, old, now);
        }
        admitted
    }

    /// A visit ended (or never began, if `visit` is `None`): its groups go on.
    pub(super) fn release(
        &mut self,
        servers: &mut [Server],
        id: ServerId,
        visit: Option<(Instant, Instant)>,
        now: Instant,
    ) {
        let server = &mut servers[id.index()];
        if !std::mem::take(&mut server.admitted) {
            return;
        }
        let groups = server.groups;
        if let Some(later) = server.later.take() {
            server.groups[2] = Some(later);
        }
        for group in groups.into_iter().flatten() {
            self.groups[group.index()].leave(visit);
        }
        self.wake_all(servers, groups, now);
    }

    /// A server that is snoozed or given up sleeps no more, stands in no line, waits in no group.
    pub(super) fn withdraw(&mut self, servers: &mut [Server], id: ServerId, now: Instant) {
        self.sleepers.cancel(id.0);
        let server = &mut servers[id.index()];
        if let Some((holder, rank)) = server.held.take() {
            self.groups[holder.index()].waiting.remove(&rank);
            self.held -= 1;
        } else if self.line.rank(id).is_some() {
            self.line.remove(id);
            let groups = server.groups;
            self.wake_all(servers, groups, now);
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match (self.sleepers.nearest(), self.resting.nearest()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Servers in line.
    pub(super) fn ready(&self) -> usize {
        self.line.len()
    }

    pub(super) fn first(&self) -> Option<ServerId> {
        self.line.first()
    }

    /// A server that waits in a group with room and no clock to wait for, and better than all in
    /// line that might go in its place. There must be none. Looks at all groups.
    pub(super) fn forgotten(&self, servers: &[Server]) -> Option<ServerId> {
        let forgets = |(group, group_number): (&Group, u32)| {
            let (best, id) = group.waiting.first_key_value()?;
            if !group.has_room() || self.resting.at(group_number).is_some() {
                return None;
            }
            let stands_for = |(server, number): (&Server, u32)| {
                server.groups.contains(&Some(GroupId(group_number)))
                    && self.line.rank(ServerId(number)).is_some_and(|rank| rank < *best)
            };
            let is_stood_for = servers.iter().zip(0..).any(stands_for);
            (!is_stood_for).then_some(*id)
        };
        self.groups.iter().zip(0..).find_map(forgets)
    }

    pub(super) fn snoozed(&self) -> usize {
        self.sleepers.len() + self.held
    }

    pub(super) fn admits(&self, group: GroupId, now: Instant) -> bool {
        self.groups[group.index()].admits(now)
    }

    fn wake_all(&mut self, servers: &mut [Server], groups: [Option<GroupId>; 3], now: Instant) {
        groups.into_iter().flatten().for_each(|group| self.wake(servers, group, now));
    }

    /// Lets the best that waits in a group stand in line, or sets the group's clock.
    fn wake(&mut self, servers: &mut [Server], id: GroupId, now: Instant) {
        let group = &mut self.groups[id.index()];
        if group.waiting.is_empty() {
            return;
        }
        if group.rests(now) {
            self.resting.set(id.0, group.next);
        } else if group.admits(now)
            && let Some((rank, first)) = next_of(&mut group.waiting)
        {
            self.held -= 1;
            servers[first.index()].held = None;
            self.line.set(first, rank);
        }
    }
}

/// Whoever is the best of those that wait.
fn next_of(waiting: &mut BTreeMap<Rank, ServerId>) -> Option<(Rank, ServerId)> {
    #[cfg(test)]
    if sabotage::is(Sabotage::WorstReleased) {
        return waiting.pop_last();
    }
    waiting.pop_first()
}
