//! The ready queue: how servers become ready, go to sleep, wake, and are held back by their groups.
//!
//! Ready servers are in one map, by rank. Snoozed servers, which rest until they are due, are in
//! another, by time. A *group* is the servers of one host, address or registrable domain; it has a
//! clock (no visit begins before it) and a cap on simultaneous visits. A ready server that a group
//! doesn't admit leaves the queue when it comes first, and waits in that group under the same rank:
//! it is *held back*. When the group admits a visit again, the best server that it holds back
//! returns to the queue. When that server comes first, all its groups are checked again.
//!
//! Law: the first server in the queue that all its groups admit is the best of all that may be
//! visited. This holds because, if a group that admits a visit holds servers back, the queue has a
//! better server of that group. Whichever server leaves the queue, its groups may release another.

use super::groups::{GroupId, GroupKind};
use super::lists::Turn;
use super::policy::Rank;
use super::server::Standing;
use super::{Scheduler, ServerId, Waiting};
#[cfg(test)]
use crate::frontier::tests::sabotage::{self, Sabotage};
use crate::ground::time::Instant;
use std::cmp::Reverse;
use std::num::NonZeroU64;

/// The largest number of snoozed servers that one call wakes. It is also the limit for groups.
pub const WAKES_MAX: usize = 64;
/// The largest number of ready servers that one call moves to groups that hold them back.
pub const MOVES_MAX: usize = 1_024;

impl Scheduler {
    /// Wakes the snoozed servers and the groups that are due, at most [`WAKES_MAX`] of each.
    pub(super) fn wake(&mut self, now: Instant) {
        for _ in 0..WAKES_MAX {
            let first = self.asleep.last_entry().filter(|first| first.key().0.0 <= now);
            let Some(first) = first else { break };
            let id = first.remove();
            self.place(id, now);
        }
        for _ in 0..WAKES_MAX {
            let Some(group) = self.groups.expire(now) else { break };
            self.wake_group(group, now);
        }
    }

    /// Returns the first server of the queue that all its groups admit. The servers before it are
    /// moved to the groups that hold them back.
    pub(super) fn first_admitted(&mut self, now: Instant) -> Option<ServerId> {
        for _ in 0..MOVES_MAX {
            let (rank, id) = self.ready.last_key_value().map(|(rank, id)| (rank.0, *id))?;
            let Some(holder) = self.holder(id, now) else {
                return Some(id);
            };
            self.hold_back(id, rank, holder, now);
        }
        None
    }

    /// Takes the server of the next visit out of the queue: the oldest one of a list if it is the
    /// turn of the lists and no called server may be visited, otherwise the best one.
    pub(super) fn take_next(&mut self, now: Instant) -> Option<ServerId> {
        let best = self.first_admitted(now)?;
        if self.lists.is_some() && !self.called.contains(&best) {
            return self.take_counted(best, now);
        }
        self.take_best();
        Some(best)
    }

    /// Takes the server of the next turn of the lists if it is their turn, otherwise `best`, and
    /// counts the visit.
    #[inline(never)]
    fn take_counted(&mut self, best: ServerId, now: Instant) -> Option<ServerId> {
        let is_turn = self.lists.as_ref()?.is_turn();
        let turn = if is_turn { Some(self.turn_admitted(now)?) } else { None };
        let id = turn.map_or(best, |turn| turn.id);
        let rank = self.place_of(id);
        self.leave_line(rank);
        self.lists.as_mut()?.count(rank.arrival, turn);
        Some(id)
    }

    /// Returns the next turn of the lists whose server is admitted by all its groups. Older servers
    /// are moved to the groups that hold them back.
    fn turn_admitted(&mut self, now: Instant) -> Option<Turn> {
        for _ in 0..MOVES_MAX {
            let turn = self.lists.as_ref()?.next_turn()?;
            let Some(holder) = self.holder(turn.id, now) else {
                return Some(turn);
            };
            self.hold_back(turn.id, self.place_of(turn.id), holder, now);
        }
        None
    }

    /// Returns the first group of a server that doesn't admit a visit to it.
    fn holder(&self, id: ServerId, now: Instant) -> Option<GroupId> {
        let mut all = self.servers[id.index()].groups.into_iter().flatten();
        all.find(|group| !self.groups.admits(*group, now))
    }

    /// Moves a server from the queue to a group that holds it back.
    fn hold_back(&mut self, id: ServerId, rank: Rank, holder: GroupId, now: Instant) {
        self.leave_line(rank);
        self.groups.hold_back(holder, rank, id);
        let server = &mut self.servers[id.index()];
        server.standing = Standing::Held;
        // A group releases one server at a time. This one has left the ready queue, so its groups
        // may release the next.
        let groups = server.groups;
        self.wake_groups(groups, now);
    }

    /// Returns the rank of a server in the queue.
    fn place_of(&self, id: ServerId) -> Rank {
        self.servers[id.index()].place().expect("a ready server has a rank")
    }

    /// Adds a server to the queue, and to a list if there are lists.
    fn enter_line(&mut self, rank: Rank, id: ServerId) {
        assert!(self.ready.insert(Reverse(rank), id).is_none(), "ranks are unique");
        if let Some(lists) = &mut self.lists {
            lists.insert(rank, id);
        }
    }

    /// Removes a server from the queue, and from its list if there are lists.
    fn leave_line(&mut self, rank: Rank) {
        self.ready.remove(&Reverse(rank));
        if let Some(lists) = &mut self.lists {
            lists.remove(rank);
        }
    }

    /// Removes the best server from the queue, which needs no search, and from its list if there
    /// are lists.
    fn take_best(&mut self) {
        let best = self.ready.pop_last();
        if let (Some(lists), Some((rank, _))) = (&mut self.lists, best) {
            lists.remove(rank.0);
        }
    }

    /// Ranks an idle server by the state of its queue. If the server has URLs, it becomes ready, or
    /// sleeps if its rest is not over.
    pub(super) fn settle(&mut self, id: ServerId, waiting: Waiting, now: Instant) {
        let rank = self.rank_of(id, waiting);
        self.servers[id.index()].rank = rank;
        if waiting.urls > 0 {
            self.place(id, now);
        }
    }

    /// Makes a server with URLs ready, behind all servers of equal rank. If its rest is not over,
    /// it sleeps until it is due.
    pub(super) fn place(&mut self, id: ServerId, now: Instant) {
        self.arrivals += 1;
        let server = &mut self.servers[id.index()];
        server.arrival = self.arrivals;
        if server.due > now {
            server.standing = Standing::Asleep;
            self.asleep.insert(Reverse((server.due, server.arrival)), id);
        } else {
            let rank = server.rank;
            self.line_up(id, rank);
        }
    }

    /// Adds a server to the ready queue at the given rank. If `rank` is `None`, its next URL is
    /// still on disk: the server is in state reading until the URL is in memory.
    pub(super) fn line_up(&mut self, id: ServerId, rank: Option<NonZeroU64>) {
        let server = &mut self.servers[id.index()];
        server.rank = rank;
        server.standing = Standing::Reading;
        if let Some(place) = server.place() {
            server.standing = Standing::InLine;
            self.enter_line(place, id);
        }
    }

    /// Moves a ready server to its new place if its rank has changed.
    pub(super) fn rerank(&mut self, id: ServerId, rank: Option<NonZeroU64>, now: Instant) {
        let server = &mut self.servers[id.index()];
        if server.rank == rank {
            return; // most URLs don't change the sum of the best
        }
        #[cfg(test)]
        if sabotage::is(Sabotage::RanksStale) {
            return;
        }
        let before = server.place().expect("a ready server has a rank");
        server.rank = rank;
        let (after, groups) = (server.place().expect("it stays ready"), server.groups);
        if server.standing == Standing::Held {
            let holder = self.groups.let_go(groups, before);
            if self.groups.admits(holder, now) {
                // The queue may have another server of that group, which may be worse than this one
                // now.
                return self.line_up(id, rank);
            }
            return self.groups.hold_back(holder, after, id);
        }
        self.ready.remove(&Reverse(before));
        self.ready.insert(Reverse(after), id);
        if let Some(lists) = &mut self.lists {
            lists.raise(after);
        }
        if before < after {
            // A group may hold back a server that is now better than this one, which stands for the
            // group in the queue.
            for group in groups.into_iter().flatten() {
                if self.groups.first(group).is_some_and(|(best, _)| best < after) {
                    self.wake_group(group, now);
                }
            }
        }
    }

    /// Makes a ready, reading or snoozed server idle.
    pub(super) fn withdraw(&mut self, id: ServerId, now: Instant) {
        let server = &self.servers[id.index()];
        let (groups, place) = (server.groups, server.place());
        let place = || place.expect("a ready server has a rank");
        match server.standing {
            Standing::Reading => {}
            Standing::Asleep => _ = self.asleep.remove(&Reverse((server.due, server.arrival))),
            Standing::Held => _ = self.groups.let_go(groups, place()),
            Standing::InLine => {
                self.leave_line(place());
                self.wake_groups(groups, now);
            }
            _ => return,
        }
        self.servers[id.index()].standing = Standing::Idle;
    }

    /// Changes the instant at which a server is due, and makes it sleep or ready accordingly.
    pub(super) fn set_due(&mut self, id: ServerId, due: Instant, now: Instant) {
        self.wake(now);
        let moves = match self.servers[id.index()].standing {
            Standing::InLine | Standing::Held | Standing::Reading => due > now,
            standing => standing == Standing::Asleep,
        };
        if moves {
            self.withdraw(id, now);
        }
        self.servers[id.index()].due = due;
        if moves {
            self.place(id, now);
        }
    }

    /// Records the end of a visit in the groups of a server and in the clock of its host. `visit`
    /// holds two instants: when the visit ended, and until when the server rests. It is `None` if
    /// the visit made no request.
    pub(super) fn release(
        &mut self,
        id: ServerId,
        visit: Option<(Instant, Instant)>,
        now: Instant,
    ) {
        let server = &mut self.servers[id.index()];
        let mut groups = server.groups;
        match std::mem::replace(&mut server.standing, Standing::Idle) {
            Standing::Visited => {}
            Standing::Unbound => groups[GroupKind::Address as usize] = None,
            _ => return,
        }
        if let Some((ended, due)) = visit {
            server.host_next = server.host_next.max(ended).max(due);
        }
        groups.into_iter().flatten().for_each(|group| self.groups.leave(group, visit));
        self.wake_groups(groups, now);
    }

    /// Returns the clock of a server's host: the instant before which no server of that host is
    /// visited.
    pub(super) fn host_next(&self, id: ServerId) -> Instant {
        let server = &self.servers[id.index()];
        let host = server.groups[GroupKind::Host as usize];
        host.map_or(server.host_next, |host| self.groups.next(host))
    }

    /// Makes a group of a host that has one server, if the host's clock ends after the server is
    /// due. Without a group the server would be visited before the host's clock is over.
    pub(super) fn keep_host_clock(&mut self, id: ServerId) {
        let server = &self.servers[id.index()];
        if server.groups[GroupKind::Host as usize].is_none() && server.host_next > server.due {
            self.group_of(GroupKind::Host, id);
        }
    }

    pub(super) fn wake_groups(&mut self, groups: [Option<GroupId>; 3], now: Instant) {
        groups.into_iter().flatten().for_each(|group| self.wake_group(group, now));
    }

    /// Moves the best server that a group holds back to the ready queue if the group admits a
    /// visit.
    pub(super) fn wake_group(&mut self, group: GroupId, now: Instant) {
        if let Some((rank, id)) = self.groups.wake(group, now) {
            self.servers[id.index()].standing = Standing::InLine;
            self.enter_line(rank, id);
        }
    }
}
