//! The server queue: who may be visited, when, and who comes first.
//!
//! Ready servers are ranked; snoozed ones sleep on a timer each; held back ones wait, ranked
//! alike, in the group that holds them. A woken server asks all its groups again.
//!
//! Laws: who is taken is the best of all that may be visited now, and whoever takes its place in
//! line because a group admits again is the best that waits there; so no release is lost (held to
//! a model that looks at all servers). Cost: O(log n) for all verbs, amortised; nothing scans.

use super::group::{GroupId, GroupKind, Groups};
use super::policy::Rank;
use super::ranking::Ranking;
use super::rest::Settings;
#[cfg(test)]
use super::sabotage::{self, Sabotage};
use super::server::{Hold, Server, ServerId, ServerState};
use crate::table::Table;
use crate::time::{Instant, Timers};
use slab::Slab;

/// Servers in line, asleep, and held back.
#[derive(Debug)]
pub(super) struct Workbench {
    line: Ranking,
    /// Wake-ups of those asleep, by slot, and whose slots they are.
    alarms: Timers,
    sleepers: Slab<ServerId>,
    pub(super) groups: Groups,
    /// Groups at rest with servers waiting, by kind and place.
    resting: [Timers; 3],
    /// Servers held back: by whom, and their ranks there.
    held: Slab<(GroupId, Rank)>,
    /// Servers that became ready so far: their order of arrival.
    arrivals: u64,
}

impl Workbench {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            line: Ranking::default(),
            alarms: Timers::new(),
            sleepers: Slab::new(),
            groups: Groups::new(settings),
            resting: [Timers::new(), Timers::new(), Timers::new()],
            held: Slab::new(),
            arrivals: 0,
        }
    }

    /// One server more is known.
    pub(super) fn meet(&mut self) {
        self.line.meet();
    }

    /// No visit to the host of a server before this.
    pub(super) fn host_clock(&self, server: &Server) -> Instant {
        server.host().map_or(server.host_next, |host| self.groups[host].next)
    }

    /// Sets the clock of the host of a server forward.
    pub(super) fn set_host_clock(&mut self, server: &mut Server, next: Instant) {
        match server.host() {
            Some(host) => self.groups[host].next = self.groups[host].next.max(next),
            None => server.host_next = server.host_next.max(next),
        }
        self.keep_host_clock(server);
    }

    /// The server that keeps the clock of its host is not visited before that either: if it is due
    /// earlier, the host has to be a group.
    pub(super) fn keep_host_clock(&mut self, server: &mut Server) {
        if server.host().is_none() && server.host_next > server.due {
            self.group_of(GroupKind::Host, server);
        }
    }

    /// The group of a server's host or domain, which comes to be.
    pub(super) fn group_of(&mut self, kind: GroupKind, server: &mut Server) -> GroupId {
        if let Some(group) = server.groups[kind as usize] {
            return group;
        }
        let is_visited = matches!(server.hold, Hold::In | Hold::InButAddress);
        let group = self.groups.add(kind, is_visited);
        if kind == GroupKind::Host {
            self.groups[group].next = server.host_next;
        }
        server.groups[kind as usize] = Some(group);
        group
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
        server.state = ServerState::Snoozed;
        server.slot = narrow(self.sleepers.insert(id));
        self.alarms.set(server.slot, server.due);
    }

    /// Stands in line; not if the next URL is still on disk.
    pub(super) fn stand(&mut self, server: &mut Server, id: ServerId, settings: &Settings) {
        if server.queue.is_behind() {
            server.state = ServerState::Reading;
        } else {
            server.state = ServerState::Ready;
            self.line.enter(id, server.rank(settings));
        }
    }

    /// Wakes what is due: sleepers stand in line, rested groups let their best in line.
    pub(super) fn expire(
        &mut self,
        servers: &mut Table<Server>,
        settings: &Settings,
        now: Instant,
    ) {
        while let Some(slot) = self.alarms.expire(now) {
            let id = self.sleepers.remove(slot as usize);
            self.admit(&mut servers[id.index()], id, settings);
        }
        for kind in GroupKind::ALL {
            while let Some(place) = self.resting[kind as usize].expire(now) {
                self.wake(servers, GroupId::of(kind, place), now);
            }
        }
    }

    /// The first in line that all its groups admit; the others go to the group that holds them
    /// back.
    pub(super) fn take(&mut self, servers: &mut Table<Server>, now: Instant) -> Option<ServerId> {
        while let Some((id, rank)) = self.line.first() {
            self.line.remove(id);
            let server = &mut servers[id.index()];
            debug_assert_eq!(server.state, ServerState::Ready, "only ready servers are in line");
            let groups = server.groups;
            let mut holders = groups.into_iter().flatten();
            let holder = holders.find(|group| !self.groups.admits(*group, now));
            if let Some(holder) = holder {
                server.hold = Hold::Held;
                server.slot = narrow(self.held.insert((holder, rank)));
                self.groups[holder].hold_back(rank, id);
            } else {
                server.state = ServerState::Busy;
                server.hold = Hold::In;
                groups.into_iter().flatten().for_each(|group| self.groups.enter(group));
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

    /// Something that makes the rank of a server may have changed, which was this `before`.
    pub(super) fn rerank(
        &mut self,
        servers: &mut Table<Server>,
        id: ServerId,
        before: Rank,
        settings: &Settings,
        now: Instant,
    ) {
        let server = &mut servers[id.index()];
        if server.state != ServerState::Ready {
            return;
        }
        let rank = server.rank(settings);
        if rank == before {
            return; // most URLs don't change what the best are worth
        }
        #[cfg(test)]
        if sabotage::is(Sabotage::RanksStale) {
            return;
        }
        if server.hold == Hold::Held {
            return self.rerank_held(server, id, rank, now);
        }
        let groups = server.groups;
        self.line.set(id, rank);
        if before < rank {
            // It may have stood in line for a group in which somebody is better now.
            for group in groups.into_iter().flatten() {
                if self.groups[group].first().is_some_and(|(best, _)| best < rank) {
                    self.wake(servers, group, now);
                }
            }
        }
    }

    fn rerank_held(&mut self, server: &mut Server, id: ServerId, rank: Rank, now: Instant) {
        let (holder, old) = &mut self.held[server.slot as usize];
        let group = &mut self.groups[*holder];
        group.let_go(std::mem::replace(old, rank));
        if self.groups.admits(*holder, now) {
            // Whoever stands in line for that group may be worse now.
            self.held.remove(server.slot as usize);
            server.hold = Hold::Out;
            self.line.enter(id, rank);
        } else {
            self.groups[*holder].hold_back(rank, id);
        }
    }

    /// Adds the address group to a server under visit; `false` if that group does not admit it.
    pub(super) fn bind(
        &mut self,
        servers: &mut Table<Server>,
        id: ServerId,
        group: GroupId,
        now: Instant,
    ) -> bool {
        let server = &mut servers[id.index()];
        let was_in = server.hold == Hold::In;
        if server.groups[2] == Some(group) && was_in {
            return true;
        }
        let old = server.groups[2].replace(group).filter(|_| was_in);
        let admitted = self.groups.admits(group, now);
        // If it isn't counted in, the hand-back that must follow makes it a group to be asked.
        server.hold = if admitted { Hold::In } else { Hold::InButAddress };
        if admitted {
            self.groups.enter(group);
        }
        if let Some(old) = old {
            self.groups.leave(old, None);
            self.wake(servers, old, now);
        }
        admitted
    }

    /// The visit of a server begins, if the clocks of its groups admit that; only that of its
    /// address is asked if it began at another address before.
    pub(super) fn begin(
        &mut self,
        servers: &mut Table<Server>,
        id: ServerId,
        is_first: bool,
        now: Instant,
    ) -> bool {
        let [_, domain, address] = servers[id.index()].groups;
        let groups = [None, domain.filter(|_| is_first), address];
        let begins = groups.into_iter().flatten().all(|group| self.groups[group].next <= now);
        if begins {
            groups.into_iter().flatten().for_each(|group| self.groups.begin(group, now));
            // Whoever waits there waits for the clock now, whatever stands in line for the group.
            self.wake_all(servers, groups, now);
        }
        begins
    }

    /// A visit ended (or never began, if `visit` is `None`): its groups go on.
    pub(super) fn release(
        &mut self,
        servers: &mut Table<Server>,
        id: ServerId,
        visit: Option<(Instant, Instant)>,
        now: Instant,
    ) {
        let server = &mut servers[id.index()];
        let mut groups = server.groups;
        match std::mem::replace(&mut server.hold, Hold::Out) {
            Hold::In => {}
            Hold::InButAddress => groups[2] = None,
            Hold::Out | Hold::Held => return,
        }
        for group in groups.into_iter().flatten() {
            self.groups.leave(group, visit);
        }
        if groups[0].is_none()
            && let Some((ended, due)) = visit
        {
            server.host_next = server.host_next.max(ended).max(due);
        }
        self.wake_all(servers, groups, now);
    }

    /// A server that is snoozed or given up sleeps no more, stands in no line, waits in no group.
    pub(super) fn withdraw(&mut self, servers: &mut Table<Server>, id: ServerId, now: Instant) {
        let server = &mut servers[id.index()];
        match (server.state, server.hold) {
            (ServerState::Snoozed, _) => {
                self.alarms.cancel(server.slot);
                self.sleepers.remove(server.slot as usize);
            }
            (ServerState::Ready, Hold::Held) => {
                let (holder, rank) = self.held.remove(server.slot as usize);
                server.hold = Hold::Out;
                self.groups[holder].let_go(rank);
            }
            (ServerState::Ready, _) => {
                self.line.remove(id);
                let groups = server.groups;
                self.wake_all(servers, groups, now);
            }
            _ => {}
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let resting = self.resting.iter().filter_map(Timers::nearest);
        resting.chain(self.alarms.nearest()).min()
    }

    /// Servers in line.
    pub(super) fn ready(&self) -> usize {
        self.line.len()
    }

    /// Who comes after so many others, most likely, if that is soon.
    pub(super) fn coming(&self, place: usize) -> Option<ServerId> {
        self.line.coming(place)
    }

    /// A server that waits in a group with room and no clock to wait for, and better than all in
    /// line that might go in its place. There must be none. Looks at all groups.
    pub(super) fn forgotten(&self, servers: &Table<Server>) -> Option<ServerId> {
        let forgets = |group: GroupId| {
            let (best, id) = self.groups[group].first()?;
            let is_resting = self.resting[group.kind() as usize].at(group.place()).is_some();
            if !self.groups.has_room(group) || is_resting {
                return None;
            }
            let stands_for = |(id, rank): (ServerId, Rank)| {
                servers[id.index()].groups.contains(&Some(group)) && rank < best
            };
            let is_stood_for = self.line.all().any(stands_for);
            (!is_stood_for).then_some(id)
        };
        self.groups.ids().find_map(forgets)
    }

    pub(super) fn snoozed(&self) -> usize {
        self.alarms.len() + self.held.len()
    }

    fn wake_all(
        &mut self,
        servers: &mut Table<Server>,
        groups: [Option<GroupId>; 3],
        now: Instant,
    ) {
        groups.into_iter().flatten().for_each(|group| self.wake(servers, group, now));
    }

    /// Lets the best that waits in a group stand in line, or sets the group's clock.
    fn wake(&mut self, servers: &mut Table<Server>, id: GroupId, now: Instant) {
        if self.groups[id].first().is_none() {
            return;
        }
        if self.groups.rests(id, now) {
            self.resting[id.kind() as usize].set(id.place(), self.groups[id].next);
        } else if self.groups.admits(id, now)
            && let Some((rank, first)) = self.groups[id].next_of()
        {
            let server = &mut servers[first.index()];
            self.held.remove(server.slot as usize);
            server.hold = Hold::Out;
            self.line.enter(first, rank);
        }
    }
}

fn narrow(slot: usize) -> u32 {
    u32::try_from(slot).expect("fewer than 2^32 servers")
}
