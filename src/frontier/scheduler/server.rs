//! The record of one server.
//!
//! Cost: 64 bytes a server, one line of the processor's cache. A server that is ready, snoozed or
//! held back by a group takes one entry of an ordered map more, about 35 bytes.

use super::groups::GroupId;
use super::policy::{Estimates, Rank, Waiting};
use super::politeness::Settings;
use super::state::{Retirement, ServerState};
use super::visit::Burst;
use crate::ground::time::Instant;
use std::num::NonZeroU64;
use std::time::Duration;

/// The record of a server.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Server {
    /// It is not visited before this.
    pub due: Instant,
    /// Its host is not visited before this. Valid while it is the host's only server.
    pub(super) host_next: Instant,
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
