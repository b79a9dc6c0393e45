//! The record of one server: its politeness, its rank and its state.
//!
//! A server has up to three *groups*, one for each kind: its host, its registrable domain and its
//! IP address. A group limits the visits to its servers; it *holds back* a ready server while it
//! doesn't admit a visit.
//!
//! Cost: 64 bytes a server, which is one cache line of the processor. A server that is ready,
//! snoozed or held back takes one entry of an ordered map more, about 35 bytes.

use super::ServerId;
use super::groups::GroupId;
use super::policy::{self, Estimates, Rank, Waiting};
use super::price::Price;
use super::state::{Retirement, ServerState};
use super::visit::Burst;
#[cfg(test)]
use crate::frontier::tests::sabotage::{self, Sabotage};
use crate::ground::time::Instant;
use std::num::NonZeroU64;
use std::time::Duration;

/// The record of a server.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Server {
    /// The instant before which the server is not visited.
    pub due: Instant,
    /// The instant before which the host of the server is not visited. It is valid while the server
    /// is the only one of its host; a host with more servers is a group, which keeps the instant.
    pub(super) host_next: Instant,
    /// The number of the server in the order in which servers became ready or went to sleep. It
    /// decides between servers of equal rank. It is unique, except for 0, which means never.
    pub(super) arrival: u64,
    /// The fraction that the policy ranks the server by; the server with the least goes first.
    /// `None` if the server's next URL is not in memory.
    pub(super) rank: Option<NonZeroU64>,
    /// The groups of the server, indexed by their kind; `None` for a kind of which it has no
    /// group.
    pub(super) groups: [Option<GroupId>; 3],
    pub(super) estimates: Estimates,
    pub(super) standing: Standing,
    /// The number of visits that have ended.
    pub visits: u32,
    /// The Crawl-delay of the server's robots.txt in milliseconds, plus 1; 0 if it has none.
    pub(super) delay: u32,
}

/// The state of a server, in more detail than [`ServerState`]: it also says which structure holds
/// the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// The server has no URLs.
    #[default]
    Idle,
    /// The server is ready, and is in the ready queue.
    InLine,
    /// The server is ready, and waits in a group that holds it back.
    Held,
    /// The rest of the server is over, but its next URLs are on disk and must be read first.
    Reading,
    /// The server rests until it is due, and is in the map of snoozed servers.
    Asleep,
    /// The server is being visited, and all its groups count the visit.
    Visited,
    /// The server is being visited, but the group of its address didn't admit the visit and doesn't
    /// count it.
    Unbound,
    /// The server is busy without a visit, while URLs are taken from its queue. No group counts
    /// this as a visit.
    Open,
    /// The server was given up for this reason.
    Retired(Retirement),
}

impl Server {
    /// Returns the state of the server.
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

    /// Returns the Crawl-delay of the server's robots.txt, in whole milliseconds and at most 49
    /// days.
    pub fn crawl_delay(&self) -> Option<Duration> {
        let ms = self.delay.checked_sub(1)?;
        Some(Duration::from_millis(u64::from(ms)))
    }

    /// Returns whether the server has ever answered a request, in any run of the crawl.
    pub fn has_answered(&self) -> bool {
        self.estimates.response_us > 0
    }

    /// Sets the Crawl-delay of the server's robots.txt. It is rounded up to milliseconds, so that
    /// no request is sent earlier than the server allows.
    pub(super) fn set_crawl_delay(&mut self, delay: Option<Duration>) {
        let ms = delay.map(|delay| delay.as_micros().div_ceil(1_000));
        self.delay = ms.map_or(0, |ms| u32::try_from(ms + 1).unwrap_or(u32::MAX));
    }

    /// Returns how many requests one visit to this server may make. A server with a Crawl-delay
    /// gets one.
    pub(super) fn burst(&self, of_site: Burst) -> Burst {
        if self.delay > 0 { Burst::Requests(1) } else { of_site }
    }

    /// Returns the fraction of the rank that the server, whose number is `id`, has if its queue is
    /// in the state `waiting`; `None` if the next URL is not in memory.
    pub(super) fn rank_of(
        &self,
        id: ServerId,
        waiting: Waiting,
        burst: Burst,
        (schedule, price): (&policy::Settings, Price),
    ) -> Option<NonZeroU64> {
        self.estimates.rank(waiting, burst, schedule, price, (id, self.visits))
    }

    /// Returns the rank of the server, which is its place in the ready queue or in the group that
    /// holds it back; `None` if its next URL is not in memory.
    pub(super) fn place(&self) -> Option<Rank> {
        let rank = Rank { fraction: self.rank?, arrival: self.arrival };
        #[cfg(test)]
        if sabotage::is(Sabotage::RankInverted) {
            // The lesser fraction and the last arrival first: wrong in every respect.
            let fraction = NonZeroU64::new(!rank.fraction.get()).unwrap_or(NonZeroU64::MIN);
            return Some(Rank { fraction, arrival: !rank.arrival });
        }
        Some(rank)
    }
}
