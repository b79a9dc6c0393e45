//! The ready queue: how servers become ready, sleep, wake, and are held back by their groups.
//!
//! Ready servers are in one map by rank, snoozed ones in one map by time. A ready server that a
//! group doesn't admit leaves the queue when its turn comes, and waits in that group under the same
//! rank. When the group admits a visit again, the best that it holds back returns to the queue,
//! where all its groups are asked again.
//!
//! Law: the first server in the queue that all its groups admit is the best of all that may be
//! visited: whoever waits in a group that admits a visit has a better one of that group in the
//! queue.

use super::groups::{GroupId, GroupKind};
use super::server::Standing;
use super::{Scheduler, ServerId, Waiting};
#[cfg(test)]
use crate::frontier::tests::sabotage::{self, Sabotage};
use crate::ground::time::Instant;
use std::num::NonZeroU64;

/// Snoozed servers, and groups, that one call wakes at most.
pub const WAKES_MAX: usize = 64;
/// Ready servers that one call moves to groups that hold them back at most.
pub const MOVES_MAX: usize = 1_024;

impl Scheduler {
    /// Wakes servers and groups that are due.
    pub(super) fn wake(&mut self, now: Instant) {
        for _ in 0..WAKES_MAX {
            let first = self.asleep.first_entry().filter(|first| first.key().0 <= now);
            let Some(first) = first else { break };
            let id = first.remove();
            self.place(id, now);
        }
        for _ in 0..WAKES_MAX {
            let Some(group) = self.groups.expire(now) else { break };
            self.wake_group(group, now);
        }
    }

    /// The first server of the queue that all its groups admit. Those before it move to the groups
    /// that hold them back.
    pub(super) fn first_admitted(&mut self, now: Instant) -> Option<ServerId> {
        for _ in 0..MOVES_MAX {
            let (rank, id) = self.ready.first_key_value().map(|(rank, id)| (*rank, *id))?;
            let groups = self.servers[id.index()].groups;
            let mut all = groups.into_iter().flatten();
            let Some(holder) = all.find(|group| !self.groups.admits(*group, now)) else {
                return Some(id);
            };
            self.ready.pop_first();
            self.servers[id.index()].standing = Standing::Held;
            self.groups.hold_back(holder, rank, id);
            // It may have been released in place of another, which must not wait for it.
            self.wake_groups(groups, now);
        }
        None
    }

    /// An idle server with URLs becomes ready, or sleeps if its rest is not over.
    pub(super) fn settle(&mut self, id: ServerId, waiting: Waiting, now: Instant) {
        let server = &mut self.servers[id.index()];
        server.rank = server.rank_of(waiting, &self.settings);
        if waiting.urls > 0 {
            self.place(id, now);
        }
    }

    /// A server with URLs becomes ready, behind all of equal rank, or sleeps until it is due.
    pub(super) fn place(&mut self, id: ServerId, now: Instant) {
        self.arrivals += 1;
        let server = &mut self.servers[id.index()];
        server.arrival = self.arrivals;
        if server.due > now {
            server.standing = Standing::Asleep;
            self.asleep.insert((server.due, server.arrival), id);
        } else {
            let rank = server.rank;
            self.line_up(id, rank);
        }
    }

    /// A server enters the ready queue. If its next URL is still on disk, it waits for that.
    pub(super) fn line_up(&mut self, id: ServerId, rank: Option<NonZeroU64>) {
        let server = &mut self.servers[id.index()];
        server.rank = rank;
        server.standing = Standing::Reading;
        if let Some(place) = server.place() {
            server.standing = Standing::InLine;
            assert!(self.ready.insert(place, id).is_none(), "ranks are unique");
        }
    }

    /// The rank of a ready server may have changed.
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
                // The one of that group in the queue may be worse now.
                return self.line_up(id, rank);
            }
            return self.groups.hold_back(holder, after, id);
        }
        self.ready.remove(&before);
        self.ready.insert(after, id);
        if before < after {
            // It may be in the queue for a group that holds a better one back.
            for group in groups.into_iter().flatten() {
                if self.groups.first(group).is_some_and(|(best, _)| best < after) {
                    self.wake_group(group, now);
                }
            }
        }
    }

    /// A server that is ready or snoozed becomes idle.
    pub(super) fn withdraw(&mut self, id: ServerId, now: Instant) {
        let server = &self.servers[id.index()];
        let (groups, place) = (server.groups, server.place());
        let place = || place.expect("a ready server has a rank");
        match server.standing {
            Standing::Reading => {}
            Standing::Asleep => _ = self.asleep.remove(&(server.due, server.arrival)),
            Standing::Held => _ = self.groups.let_go(groups, place()),
            Standing::InLine => {
                self.ready.remove(&place());
                self.wake_groups(groups, now);
            }
            _ => return,
        }
        self.servers[id.index()].standing = Standing::Idle;
    }

    /// Changes when a server is due: it sleeps, or becomes ready, accordingly.
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

    /// Records the end of a visit in the groups of a server and in the clock of its host: when it
    /// ended, and until when the server rests. `None`: it never began.
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

    /// The clock of a server's host.
    pub(super) fn host_next(&self, id: ServerId) -> Instant {
        let server = &self.servers[id.index()];
        let host = server.groups[GroupKind::Host as usize];
        host.map_or(server.host_next, |host| self.groups.next(host))
    }

    /// A server that is alone at its host is not visited before the host's clock is over either. If
    /// it is due earlier, the host becomes a group.
    pub(super) fn keep_host_clock(&mut self, id: ServerId) {
        let server = &self.servers[id.index()];
        if server.groups[GroupKind::Host as usize].is_none() && server.host_next > server.due {
            self.group_of(GroupKind::Host, id);
        }
    }

    pub(super) fn wake_groups(&mut self, groups: [Option<GroupId>; 3], now: Instant) {
        groups.into_iter().flatten().for_each(|group| self.wake_group(group, now));
    }

    /// The best server that a group holds back enters the queue if the group admits a visit.
    pub(super) fn wake_group(&mut self, group: GroupId, now: Instant) {
        if let Some((rank, id)) = self.groups.wake(group, now) {
            self.servers[id.index()].standing = Standing::InLine;
            self.ready.insert(rank, id);
        }
    }
}
