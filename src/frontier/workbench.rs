//! The server queue: who may be visited, when, and who comes first.
//!
//! Ready servers stand in a line (first in, first out); snoozed ones sleep on a timer each; held
//! back ones wait in the group that holds them. A woken server asks all its groups again.
//!
//! Law: if a group admits a visit and servers wait in it, one of them stands in the line (so a
//! release is never lost). Cost: O(log n) for a snooze, O(1) amortised for the rest.

use super::group::{Group, GroupId, GroupKind};
use super::rest::Settings;
use super::server::{Server, ServerId, ServerState};
use crate::map::Map;
use crate::time::{Instant, Timers};
use std::collections::VecDeque;

/// Servers in line, asleep, and held back.
#[derive(Debug)]
pub(super) struct Workbench {
    line: VecDeque<ServerId>,
    sleepers: Timers,
    groups: Vec<Group>,
    ids: Map<(GroupKind, Box<str>), GroupId>,
    /// Groups at rest with servers waiting, by group number.
    resting: Timers,
    /// Servers waiting in groups.
    held: usize,
}

impl Workbench {
    pub(super) fn new() -> Self {
        Self {
            line: VecDeque::new(),
            sleepers: Timers::new(),
            groups: Vec::new(),
            ids: Map::default(),
            resting: Timers::new(),
            held: 0,
        }
    }

    /// The group of that kind and name; a new one admits at once.
    pub(super) fn group(&mut self, kind: GroupKind, name: &str, settings: &Settings) -> GroupId {
        let key = (kind, name.into());
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = GroupId(u32::try_from(self.groups.len()).expect("fewer than 2^32 groups"));
        self.groups.push(Group::new(kind, settings));
        self.ids.insert(key, id);
        id
    }

    /// An idle server with URLs stands in line, or sleeps until `due`.
    pub(super) fn admit(
        &mut self,
        servers: &mut [Server],
        id: ServerId,
        due: Instant,
        now: Instant,
    ) {
        if due > now {
            servers[id.index()].state = ServerState::Snoozed(due);
            self.sleepers.set(id.0, due);
        } else {
            self.sleepers.cancel(id.0);
            servers[id.index()].state = ServerState::Ready;
            self.line.push_back(id);
        }
    }

    /// Like [`Workbench::admit`], but it keeps its place at the head of the line.
    pub(super) fn hand_back(
        &mut self,
        servers: &mut [Server],
        id: ServerId,
        due: Instant,
        now: Instant,
    ) {
        self.admit(servers, id, due, now);
        if self.line.back() == Some(&id) {
            self.line.pop_back();
            self.line.push_front(id);
        }
    }

    /// Wakes what is due: sleepers stand in line, rested groups let their first in line.
    pub(super) fn expire(&mut self, servers: &mut [Server], now: Instant) {
        while let Some(key) = self.sleepers.expire(now) {
            let id = ServerId(key);
            servers[id.index()].state = ServerState::Ready;
            self.line.push_back(id);
        }
        while let Some(key) = self.resting.expire(now) {
            self.wake(GroupId(key), now);
        }
    }

    /// The first server in line that all its groups admit; the others go to the group that holds
    /// them back, or back to sleep.
    pub(super) fn take(&mut self, servers: &mut [Server], now: Instant) -> Option<ServerId> {
        while let Some(id) = self.line.pop_front() {
            let server = &mut servers[id.index()];
            let groups = server.groups;
            let holder = groups.into_iter().flatten().find(|group| !self.admits(*group, now));
            if server.state != ServerState::Ready {
                // Retired while it stood in line.
            } else if server.due > now {
                let due = server.due;
                self.admit(servers, id, due, now);
            } else if let Some(holder) = holder {
                self.groups[holder.index()].waiting.push_back(id);
                self.held += 1;
            } else {
                server.state = ServerState::Busy;
                server.admitted = true;
                groups.into_iter().flatten().for_each(|group| self.groups[group.index()].enter());
            }
            // It may have come from a group, in place of another: whatever became of it, whoever
            // waits there must not wait for it.
            groups.into_iter().flatten().for_each(|group| self.wake(group, now));
            if servers[id.index()].state == ServerState::Busy {
                return Some(id);
            }
        }
        None
    }

    /// Adds the address group to a server under visit; `false` if that group does not admit it.
    pub(super) fn bind(&mut self, server: &mut Server, group: GroupId, now: Instant) -> bool {
        if server.groups[2] == Some(group) {
            return true;
        }
        if let Some(old) = server.groups[2].replace(group) {
            self.groups[old.index()].leave(None);
            self.wake(old, now);
        }
        let admitted = self.admits(group, now);
        if admitted {
            self.groups[group.index()].enter();
            server.later = None;
        } else {
            // Not counted in yet: the hand-back that must follow makes it a group to be asked.
            server.groups[2] = None;
            server.later = Some(group);
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
        for group in groups.into_iter().flatten() {
            self.wake(group, now);
        }
    }

    /// A retired server sleeps no more; in line or in a group it is passed over.
    pub(super) fn forget(&mut self, id: ServerId) {
        self.sleepers.cancel(id.0);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match (self.sleepers.nearest(), self.resting.nearest()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.line.is_empty()
    }

    pub(super) fn snoozed(&self) -> usize {
        self.sleepers.len() + self.held
    }

    fn admits(&self, group: GroupId, now: Instant) -> bool {
        self.groups[group.index()].admits(now)
    }

    /// Lets the first that waits in `id` stand in line, or sets the group's clock.
    fn wake(&mut self, id: GroupId, now: Instant) {
        let group = &mut self.groups[id.index()];
        if group.waiting.is_empty() {
            return;
        }
        if group.rests(now) {
            self.resting.set(id.0, group.next);
        } else if group.admits(now)
            && let Some(first) = group.waiting.pop_front()
        {
            self.held -= 1;
            self.line.push_back(first);
        }
    }
}
