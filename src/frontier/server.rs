//! One server: what politeness is owed to, and its URL queue.

use super::group::GroupId;
use super::policy::{Estimates, Policy, Rank, Waiting};
use super::queue::UrlQueue;
use super::rest::{Burst, Settings};
use crate::time::Instant;
use crate::url::UrlRef;
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
    /// Has URLs, rests until then.
    Snoozed(Instant),
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
pub struct Server {
    /// `scheme://host[:port]`.
    pub origin: Box<str>,
    /// Where it stands.
    pub state: ServerState,
    /// Its pending URLs.
    pub queue: UrlQueue,
    /// Not to be visited before this.
    pub due: Instant,
    /// Visits ended.
    pub visits: u32,
    /// Delay that its robots.txt asks for.
    pub crawl_delay: Option<Duration>,
    /// Host and domain, then the address once it is known.
    pub(super) groups: [Option<GroupId>; 3],
    /// An address group that did not admit it, to be asked before the next visit.
    pub(super) later: Option<GroupId>,
    /// The group it waits in, and its rank there.
    pub(super) held: Option<(GroupId, Rank)>,
    /// Place in the order in which servers became ready.
    pub(super) arrival: u64,
    /// How it answers.
    pub(super) estimates: Estimates,
    /// Groups count it as being visited.
    pub(super) admitted: bool,
    /// The class of its queue among those that could go to the disk.
    pub(super) filed: u8,
}

impl Server {
    pub(super) fn new(url: UrlRef<'_>, [host, domain]: [GroupId; 2], policy: Policy) -> Self {
        Self {
            origin: url.origin().into(),
            state: ServerState::Idle,
            queue: UrlQueue::new(policy),
            due: Instant::ZERO,
            visits: 0,
            crawl_delay: None,
            groups: [Some(host), Some(domain), None],
            later: None,
            held: None,
            arrival: 0,
            estimates: Estimates::default(),
            admitted: false,
            filed: 0,
        }
    }

    /// The group of its host.
    pub(super) fn host(&self) -> Option<GroupId> {
        self.groups[0]
    }

    /// How many requests one visit to it may make.
    pub(super) fn burst(&self, settings: &Settings) -> Burst {
        match self.crawl_delay {
            Some(_) => Burst::Requests(1),
            None => settings.burst,
        }
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

    /// The full URL of a target on this server.
    pub fn url_of(&self, target: &str) -> String {
        let mut url = String::with_capacity(self.origin.len() + target.len());
        url.push_str(&self.origin);
        url.push_str(target);
        url
    }
}
