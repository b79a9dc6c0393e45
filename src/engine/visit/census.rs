//! The census: what the servers of the crawl wait for, counted piece by piece.
//!
//! A pass examines all servers, some in each turn, so it never makes a turn long. It begins every
//! second for few servers, every ten seconds for many. It puts each server with URLs in one class,
//! by what keeps its next URL from being requested, and remembers the servers with the most URLs
//! and the one that will take longest. The crawl goes on meanwhile, so the result of a long pass is
//! approximate.
//!
//! Laws: a pass within one turn counts what a count over all servers at the end of that turn does.
//! The census only reads: it changes no decision of the crawl.
//! Cost: about 0.2 microseconds a server. A pass examines at most [`SLICE`] servers every
//! [`SLICE_TIME`], so it takes less than 1% of a core however many servers there are.

use crate::engine::Engine;
use crate::engine::ledger::Work;
use crate::frontier::{GroupKind, ServerId, ServerState};
use crate::ground::time::Instant;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::time::Duration;

/// The most servers that a turn examines.
const SLICE: usize = 512;
/// The shortest time between two slices of a pass.
const SLICE_TIME: Duration = Duration::from_millis(20);
/// The shortest time between the beginnings of two passes, for each slice that the pass had.
const PASS_TIME: Duration = Duration::from_secs(1);
/// The longest time between the beginnings of two passes, if the turns of the crawl allow it.
const PASS_TIME_MAX: Duration = Duration::from_secs(10);
/// The time over which rates are computed at least.
const RATE_TIME: Duration = Duration::from_secs(10);
/// The cost of examining a server, in units of work (see `ledger`).
const SERVER_UNITS: usize = 128;
/// The number of servers with the most URLs that are remembered.
const LARGEST: usize = 10;

/// What keeps the next URL of a server from being requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Nothing: the server is being visited.
    Visited,
    /// Its name is being looked up.
    Names,
    /// A free connection.
    Connection,
    /// Its next URLs are being read from disk.
    Disk,
    /// The rest after its last visit.
    Rest,
    /// Another server of its host is visited, or the host rests.
    Host,
    /// The cap or the delay of its address.
    Address,
    /// The cap or the delay of its registrable domain.
    Domain,
    /// The wait after failed visits, or until URLs are retried.
    Failures,
    /// Its robots.txt can't be fetched; it is tried again.
    Robots,
    /// The robots.txt of another server, to which its own redirects.
    RobotsOfOther,
    /// The operator: the server is paused or slowed.
    Operator,
    /// The server was given up, and its URLs are being logged.
    GivenUp,
    /// Its partition: another node has it, or this one may not visit it yet.
    OtherNode,
}

/// The number of classes.
const WAITS: usize = 14;

impl Wait {
    /// All classes, in order of declaration.
    pub const ALL: [Self; WAITS] = [
        Self::Visited,
        Self::Names,
        Self::Connection,
        Self::Disk,
        Self::Rest,
        Self::Host,
        Self::Address,
        Self::Domain,
        Self::Failures,
        Self::Robots,
        Self::RobotsOfOther,
        Self::Operator,
        Self::GivenUp,
        Self::OtherNode,
    ];

    /// Says for people what the servers of the class wait for, in at most 25 characters.
    pub fn text(self) -> &'static str {
        match self {
            Self::Visited => "nothing: being visited",
            Self::Names => "name servers",
            Self::Connection => "a free connection",
            Self::Disk => "URLs to come from disk",
            Self::Rest => "the rest after a visit",
            Self::Host => "other servers of the host",
            Self::Address => "others at the address",
            Self::Domain => "others in the domain",
            Self::Failures => "retry after failures",
            Self::Robots => "robots.txt, unreachable",
            Self::RobotsOfOther => "robots.txt of a redirect",
            Self::Operator => "the operator",
            Self::GivenUp => "nothing: given up",
            Self::OtherNode => "another node",
        }
    }
}

/// The servers of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Class {
    /// The number of servers with URLs.
    pub(in crate::engine) servers: u64,
    /// The number of their URLs.
    pub(in crate::engine) urls: u64,
}

/// The servers that wait for the same thing, in a status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// What they wait for.
    pub r#for: Wait,
    /// The number of servers.
    pub servers: u64,
    /// The number of their URLs.
    pub urls: u64,
}

/// A server that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) struct Waiter {
    pub(in crate::engine) urls: u64,
    pub(in crate::engine) id: Reverse<ServerId>,
    pub(in crate::engine) wait: Wait,
    /// When the wait is over, if that is known.
    pub(in crate::engine) due: Option<Instant>,
}

/// The server that will take longest, and when it will be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Longest {
    pub(in crate::engine) ends: Instant,
    pub(in crate::engine) id: ServerId,
    pub(in crate::engine) urls: u64,
}

/// The result of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Tally {
    /// The classes, in the order of [`Wait::ALL`].
    pub(in crate::engine) classes: [Class; WAITS],
    /// The servers with the most URLs, the largest first.
    pub(in crate::engine) largest: Vec<Waiter>,
    pub(in crate::engine) longest: Option<Longest>,
    /// The number of URLs at servers of partitions that aren't this node's.
    pub(in crate::engine) elsewhere: u64,
    /// What the crawl had done when the pass began: see `Engine::stamp`.
    pub(in crate::engine) stamp: Option<u64>,
}

/// Counts of a run at one moment, to compute rates.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Sample {
    pub(in crate::engine) at: Instant,
    pub(in crate::engine) pages: u64,
    pub(in crate::engine) failed: u64,
    /// URLs that got an outcome, including tries that failed.
    pub(in crate::engine) settled: u64,
}

/// The progress of the census.
#[derive(Debug, Default)]
pub(in crate::engine) struct Census {
    /// The pass in progress.
    counting: Option<Tally>,
    /// The server that the pass examines next.
    next: usize,
    /// When the next slice or pass may begin.
    due: Instant,
    pass_began: Instant,
    /// The last pass that ended, and when.
    last: Option<(Instant, Tally)>,
    /// The last two samples, the older first.
    samples: [Sample; 2],
}

impl Census {
    /// Returns the last pass that ended, and when that was.
    pub(in crate::engine) fn last(&self) -> Option<&(Instant, Tally)> {
        self.last.as_ref()
    }

    /// Returns the sample that the present rates are computed from: ten to twenty seconds old if
    /// the crawl has run so long.
    pub(in crate::engine) fn sample(&self) -> Sample {
        self.samples[0]
    }

    /// Returns when the next slice of the pass in progress may begin; `None` between passes, since
    /// a pass is no reason to wake an idle crawl.
    pub(in crate::engine) fn deadline(&self) -> Option<Instant> {
        self.counting.as_ref().map(|_| self.due)
    }
}

impl Tally {
    /// Returns the classes that have servers, the class with most URLs first.
    pub(in crate::engine) fn waiting(&self) -> Vec<Waiting> {
        let classes = Wait::ALL.into_iter().zip(self.classes);
        let classes = classes.filter(|(_, class)| class.servers > 0);
        let mut waiting: Vec<Waiting> = classes
            .map(|(wait, Class { servers, urls })| Waiting { r#for: wait, servers, urls })
            .collect();
        waiting.sort_by_key(|class| Reverse((class.urls, class.servers)));
        waiting
    }

    fn add(&mut self, waiter: Waiter) {
        let class = &mut self.classes[waiter.wait as usize];
        class.servers += 1;
        class.urls += waiter.urls;
        if matches!(waiter.wait, Wait::GivenUp | Wait::OtherNode) {
            return;
        }
        if self.largest.len() < LARGEST || self.largest.last().is_some_and(|last| *last < waiter) {
            self.largest.truncate(LARGEST - 1);
            let place = self.largest.partition_point(|other| *other > waiter);
            self.largest.insert(place, waiter);
        }
    }
}

impl Engine {
    /// Continues the census at the end of a turn, if a slice is due.
    pub(in crate::engine) fn work_census(&mut self) {
        let now = self.turn.at();
        let census = self.visits.census();
        if now < census.due || self.is_finished() {
            return;
        }
        if census.counting.is_none() {
            self.begin_pass();
        }
        let mut tally = self.visits.census_mut().counting.take().expect("a pass is in progress");
        let (first, servers) = (self.visits.census().next, self.backlog.servers());
        let mut next = first;
        while next < servers && next - first < SLICE && !self.turn.is_spent(Work::Census) {
            self.turn.charge(Work::Census, SERVER_UNITS);
            self.count_server(ServerId::from_index(next), &mut tally);
            next += 1;
        }
        let census = self.visits.census_mut();
        census.next = next;
        if next < servers {
            census.due = now + SLICE_TIME;
            census.counting = Some(tally);
        } else {
            let slices = u32::try_from(servers.div_ceil(SLICE)).unwrap_or(u32::MAX);
            let pass = PASS_TIME.saturating_mul(slices.max(1)).min(PASS_TIME_MAX);
            census.due = (census.pass_began + pass).max(now + SLICE_TIME);
            census.last = Some((now, tally));
        }
    }

    /// Counts all servers at once.
    pub(in crate::engine) fn count_all(&self) -> Tally {
        let mut tally = Tally::default();
        let ids = (0..self.backlog.servers()).map(ServerId::from_index);
        ids.for_each(|id| self.count_server(id, &mut tally));
        tally
    }

    fn begin_pass(&mut self) {
        let (sample, stamp) = (self.sample(), self.stamp());
        let census = self.visits.census_mut();
        if sample.at.since(census.samples[1].at) >= RATE_TIME {
            census.samples = [census.samples[1], sample];
        }
        census.counting = Some(Tally { stamp, ..Tally::default() });
        census.next = 0;
        census.pass_began = sample.at;
    }

    /// Returns the present counts of the run.
    pub(in crate::engine) fn sample(&self) -> Sample {
        Sample {
            at: self.turn.at(),
            pages: self.counts.pages_of_run,
            failed: self.counts.failures(),
            settled: self.counts.outcomes.values().sum(),
        }
    }

    fn count_server(&self, id: ServerId, tally: &mut Tally) {
        let urls = self.backlog.queue_len(id) as u64;
        let state = self.backlog.server(id).state();
        if urls == 0 && state != ServerState::Busy {
            return;
        }
        if self.is_foreign_server(id) {
            tally.elsewhere += urls;
        }
        let (wait, due) = self.wait_of(id, state);
        tally.add(Waiter { urls, id: Reverse(id), wait, due });
        if matches!(wait, Wait::Operator | Wait::GivenUp | Wait::OtherNode) || urls == 0 {
            return;
        }
        let time = self.backlog.time_of(id, u32::try_from(urls).unwrap_or(u32::MAX));
        let ends = due.unwrap_or(Instant::ZERO).max(self.turn.at()) + time;
        if tally.longest.is_none_or(|longest| longest.ends < ends) {
            tally.longest = Some(Longest { ends, id, urls });
        }
    }

    /// Returns whether a command of the operator holds a server back.
    fn is_held_back(&self, id: ServerId) -> bool {
        self.held_by(id, None).is_some() || self.visits.orders().holds_back(id)
    }

    /// Returns what a server with URLs waits for, and until when if that is known.
    fn wait_of(&self, id: ServerId, state: ServerState) -> (Wait, Option<Instant>) {
        let (now, site) = (self.turn.at(), self.sites.get(id));
        match state {
            ServerState::Retired(_) => (Wait::GivenUp, None),
            // The name of a server under visit without a connection is being looked up.
            ServerState::Busy if site.conn().is_none() && self.visits.waiters() > 0 => {
                (Wait::Names, None)
            }
            ServerState::Busy | ServerState::Idle => (Wait::Visited, None),
            ServerState::Ready | ServerState::Snoozed if self.is_elsewhere(id).is_some() => {
                (Wait::OtherNode, None)
            }
            ServerState::Reading => (Wait::Disk, None),
            ServerState::Ready | ServerState::Snoozed if self.is_held_back(id) => {
                (Wait::Operator, None)
            }
            ServerState::Ready => match self.backlog.blocked_by(id, now) {
                Some((kind, clock)) => (by_group(kind), Some(clock).filter(|clock| *clock > now)),
                None => (Wait::Connection, None),
            },
            ServerState::Snoozed => {
                let due = self.backlog.server(id).due;
                let wait = if site.robots_redirected().is_some() {
                    Wait::RobotsOfOther
                } else if site.robots_tries > 0 {
                    Wait::Robots
                } else if site.failures > 0 || site.retry_due().is_some_and(|retry| retry == due) {
                    Wait::Failures
                } else {
                    Wait::Rest
                };
                (wait, Some(due))
            }
        }
    }
}

fn by_group(kind: GroupKind) -> Wait {
    match kind {
        GroupKind::Host => Wait::Host,
        GroupKind::Address => Wait::Address,
        GroupKind::Domain => Wait::Domain,
    }
}
