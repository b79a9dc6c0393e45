//! One server: what politeness is owed to, and its URL queue.
//!
//! Cost: 72 bytes and what its queue is; who is neither in line nor asleep nor held back pays for
//! no more than that, its name, a slot to find it by, and four bytes for when it stands in line.

use super::group::GroupId;
use super::names::Name;
use super::policy::{Estimates, Policy, Rank, Waiting};
use super::queue::UrlQueue;
use super::rest::{Burst, Settings};
use crate::time::Instant;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Number of a server, dense from 0 in order of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u32);

impl ServerId {
    /// Place in tables by server.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The server at `index`.
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 servers"))
    }
}

/// Where a server stands. The words are those of Heritrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// No URLs.
    Idle,
    /// Has URLs, stands in line; a group may still hold it back.
    Ready,
    /// Would be ready, but its next URLs are on disk, and being read.
    Reading,
    /// Is being visited.
    Busy,
    /// Has URLs, rests until it is due.
    Snoozed,
    /// Given up.
    Retired(Retirement),
}

/// Why a server was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Retirement {
    /// Its name has no address, or can't be resolved.
    Name,
    /// Its address may not be connected to.
    ForbiddenAddress,
    /// Its certificate was not accepted.
    Certificate,
    /// It failed too often in a row.
    Failures,
    /// It asks for a longer delay than the config accepts.
    CrawlDelay,
}

impl Retirement {
    /// All there are; files know them by their place.
    pub(super) const ALL: [Self; 5] =
        [Self::Name, Self::ForbiddenAddress, Self::Certificate, Self::Failures, Self::CrawlDelay];

    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::ForbiddenAddress => "forbidden-address",
            Self::Certificate => "certificate",
            Self::Failures => "failures",
            Self::CrawlDelay => "crawl-delay",
        }
    }
}

/// The record of a server.
#[derive(Debug)]
#[repr(align(32))]
pub struct Server {
    /// Its pending URLs.
    pub queue: UrlQueue,
    /// Not to be visited before this.
    pub due: Instant,
    /// No visit to its host before this, as long as it is the only server there.
    pub(super) host_next: Instant,
    pub(super) name: Name,
    /// Place in the order in which servers became ready.
    pub(super) arrival: u64,
    /// Host, domain and address, as far as they have groups.
    pub(super) groups: [Option<GroupId>; 3],
    /// Its slot among those asleep or held back, if it is.
    pub(super) slot: u32,
    /// How it answers.
    pub(super) estimates: Estimates,
    /// Visits ended.
    pub visits: u32,
    /// Delay that its robots.txt asks for in milliseconds, and 1; 0 if it asks for none.
    delay: u32,
    /// Where it stands.
    pub state: ServerState,
    pub(super) hold: Hold,
}

/// How a server stands to its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// None has to do with it.
    Out,
    /// It would stand in line, but waits in one of them.
    Held,
    /// They count it as being visited.
    In,
    /// The same, but for that of its address, which did not admit it.
    InButAddress,
}

impl Server {
    pub(super) fn new(name: Name, policy: Policy) -> Self {
        Self {
            queue: UrlQueue::new(policy),
            due: Instant::ZERO,
            host_next: Instant::ZERO,
            name,
            arrival: 0,
            groups: [None; 3],
            slot: u32::MAX,
            estimates: Estimates::default(),
            visits: 0,
            delay: 0,
            state: ServerState::Idle,
            hold: Hold::Out,
        }
    }

    /// Delay that its robots.txt asks for: whole milliseconds, 49 days at most.
    pub fn crawl_delay(&self) -> Option<Duration> {
        let ms = self.delay.checked_sub(1)?;
        Some(Duration::from_millis(u64::from(ms)))
    }

    /// Whether it has ever answered a request, in whatever run of the crawl.
    pub fn has_answered(&self) -> bool {
        self.estimates.has_answered()
    }

    /// Rounded up: no server is asked sooner than it wants.
    pub(super) fn set_crawl_delay(&mut self, delay: Option<Duration>) {
        let ms = delay.map(|delay| delay.as_micros().div_ceil(1_000));
        self.delay = ms.map_or(0, |ms| u32::try_from(ms + 1).unwrap_or(u32::MAX));
    }

    /// The group of its host.
    pub(super) fn host(&self) -> Option<GroupId> {
        self.groups[0]
    }

    /// How many requests one visit to it may make.
    pub(super) fn burst(&self, settings: &Settings) -> Burst {
        if self.delay > 0 { Burst::Requests(1) } else { settings.burst }
    }

    /// Its rank among ready servers, as it is now.
    pub(super) fn rank(&self, settings: &Settings) -> Rank {
        let waiting = Waiting { len: self.queue.len(), best_sum: self.queue.best_sum() };
        let rank =
            self.estimates.rank(waiting, self.burst(settings), &settings.schedule, self.arrival);
        #[cfg(test)]
        if super::sabotage::is(super::sabotage::Sabotage::RankInverted) {
            return rank.inverted();
        }
        rank
    }

    /// Requests of its next visit, if its queue holds as many.
    pub(super) fn visit_max(&self, settings: &Settings) -> usize {
        self.estimates.visit_max(self.burst(settings), &settings.schedule)
    }

    /// Tells its queue how many URLs make its rank, after what may have changed that.
    pub(super) fn retarget(&mut self, settings: &Settings) {
        let visit_max = self.visit_max(settings);
        self.queue.set_visit_max(settings.schedule.counted(visit_max));
    }
}
