//! The record of one server, and the table of all of them.
//!
//! Cost: 72 bytes a server. A server that is ready, snoozed or held back by a group takes one
//! entry of an ordered map more, about 35 bytes.

use super::groups::GroupId;
use super::origins::Name;
use super::policy::{Estimates, Rank, Waiting};
use super::politeness::Settings;
use super::state::{Retirement, ServerId, ServerState};
use super::visit::Burst;
use crate::ground::map::Map;
use crate::ground::table::Table;
use crate::ground::time::Instant;
use std::num::NonZeroU64;
use std::ops::{Index, IndexMut};
use std::time::Duration;

/// The record of a server.
#[derive(Debug, Default)]
pub struct Server {
    /// It is not visited before this.
    pub due: Instant,
    /// Its host is not visited before this. Valid while it is the host's only server.
    pub(super) host_next: Instant,
    pub(super) name: Name,
    /// Order in which servers became ready or went to sleep; unique, but for 0.
    pub(super) arrival: u64,
    /// What the policy makes of it; `None` if no URL is in memory.
    pub(super) rank: Option<NonZeroU64>,
    /// Its groups, by kind.
    pub(super) groups: [Option<GroupId>; 3],
    pub(super) estimates: Estimates,
    pub(super) standing: Standing,
    /// Visits that ended.
    pub visits: u32,
    /// The Crawl-delay of its robots.txt in milliseconds, plus 1; 0 if it has none.
    pub(super) delay: u32,
}

/// What a server is doing, and which structure it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has no URLs.
    #[default]
    Idle,
    /// It is in the ready queue.
    InLine,
    /// It is ready, and waits in a group that holds it back.
    Held,
    /// It would be ready, but its next URLs are on disk.
    Reading,
    /// It is in the map of sleepers.
    Asleep,
    /// It is being visited, and all its groups count the visit.
    Visited,
    /// It is being visited, but the group of its address didn't admit it.
    Unbound,
    /// Its queue is open outside a visit; no group counts it.
    Open,
    /// It was given up.
    Retired(Retirement),
}

impl Server {
    pub(super) fn new(name: Name) -> Self {
        Self { name, ..Self::default() }
    }

    /// What it is doing.
    pub fn state(&self) -> ServerState {
        match self.standing {
            Standing::Idle => ServerState::Idle,
            Standing::InLine | Standing::Held => ServerState::Ready,
            Standing::Reading => ServerState::Reading,
            Standing::Asleep => ServerState::Snoozed,
            Standing::Visited | Standing::Unbound | Standing::Open => ServerState::Busy,
            Standing::Retired(why) => ServerState::Retired(why),
        }
    }

    /// The Crawl-delay of its robots.txt: whole milliseconds, 49 days at most.
    pub fn crawl_delay(&self) -> Option<Duration> {
        let ms = self.delay.checked_sub(1)?;
        Some(Duration::from_millis(u64::from(ms)))
    }

    /// Whether it has ever answered a request, in any run of the crawl.
    pub fn has_answered(&self) -> bool {
        self.estimates.response_us > 0
    }

    /// Rounded up, so that it is never asked sooner than it wants.
    pub(super) fn set_crawl_delay(&mut self, delay: Option<Duration>) {
        let ms = delay.map(|delay| delay.as_micros().div_ceil(1_000));
        self.delay = ms.map_or(0, |ms| u32::try_from(ms + 1).unwrap_or(u32::MAX));
    }

    /// How many requests one visit may make.
    pub(super) fn burst(&self, settings: &Settings) -> Burst {
        if self.delay > 0 { Burst::Requests(1) } else { settings.burst }
    }

    /// Its rank with these URLs waiting; `None` if none is in memory.
    pub(super) fn rank_of(&self, waiting: Waiting, settings: &Settings) -> Option<NonZeroU64> {
        self.estimates.rank(waiting, self.burst(settings), &settings.schedule)
    }

    /// Its place in the ready queue, or in the group that holds it back.
    pub(super) fn place(&self) -> Option<Rank> {
        let rank = Rank { fraction: self.rank?, arrival: self.arrival };
        #[cfg(test)]
        if crate::frontier::tests::sabotage::is(
            crate::frontier::tests::sabotage::Sabotage::RankInverted,
        ) {
            return Some(rank.inverted());
        }
        Some(rank)
    }
}

/// All servers by number.
///
/// While a snapshot is restored, servers may come in any order; those that come before others of a
/// lower number wait in a map, so that a damaged number can't ask for memory.
#[derive(Debug, Default)]
pub(super) struct Servers {
    table: Table<Server>,
    early: Map<ServerId, Server>,
}

impl Servers {
    /// Servers known, but for those that came early.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no server of a lower number is missing.
    pub(super) fn is_dense(&self) -> bool {
        self.early.is_empty()
    }

    pub(super) fn get(&self, id: ServerId) -> Option<&Server> {
        self.table.get(id.index()).or_else(|| self.early.get(&id))
    }

    /// Adds a server that isn't known yet.
    pub(super) fn insert(&mut self, id: ServerId, server: Server) {
        if id.index() > self.table.len() {
            self.early.insert(id, server);
            return;
        }
        self.table.push(server);
        while let Some(next) = self.early.remove(&ServerId::from_index(self.table.len())) {
            self.table.push(next);
        }
    }

    /// All in order of number, but for those that came early.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ServerId, &Server)> {
        let numbered = |(index, server)| (ServerId::from_index(index), server);
        self.table.iter().enumerate().map(numbered)
    }
}

impl Index<ServerId> for Servers {
    type Output = Server;

    fn index(&self, id: ServerId) -> &Server {
        self.get(id).expect("the number of a known server")
    }
}

impl IndexMut<ServerId> for Servers {
    fn index_mut(&mut self, id: ServerId) -> &mut Server {
        match self.table.get_mut(id.index()) {
            Some(server) => server,
            None => self.early.get_mut(&id).expect("the number of a known server"),
        }
    }
}
