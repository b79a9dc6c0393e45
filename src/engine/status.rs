//! The status of a running crawl: what it does, what its servers wait for, and when it may end.
//!
//! What is counted anyway is as of now; what servers wait for is as of the last census
//! (`visit/census.rs`).

use super::Engine;
pub use super::visit::census::{Wait, Waiting};
use crate::budgets::Budgets;
use crate::ground::time::{Instant, UnixTime};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// The status of a crawl, as `sted status --json` prints it. Times are UTC.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The time of the status.
    pub time: String,
    /// The seconds since this run began.
    pub elapsed_s: u64,
    /// What the crawl as a whole does.
    pub state: State,
    /// The state in words: what the crawl waits for, and until when.
    pub state_text: String,
    /// The pages fetched in all runs.
    pub pages: u64,
    /// The pages a second, over the last ten to twenty seconds.
    pub pages_per_s: f64,
    /// The fetches that failed in all runs: no complete reply.
    pub failed: u64,
    /// The fetches that failed, a second.
    pub failed_per_s: f64,
    /// The requests sent in all runs.
    pub requests: u64,
    /// The bytes received in all runs.
    pub received_bytes: u64,
    /// The URLs that wait.
    pub urls_waiting: u64,
    /// The pages whose links wait for their scores.
    pub scores_waiting: u64,
    /// The servers that are known.
    pub servers_known: u64,
    /// The servers that were given up, by reason.
    #[serde(default)]
    pub given_up: BTreeMap<Cow<'static, str>, u64>,
    /// Open connections that a visit uses.
    pub connections: usize,
    /// Connections that are kept open between two visits.
    pub parked: usize,
    /// What is left until a limit of the configuration ends the crawl.
    pub limits_left: LimitsLeft,
    /// How long ago the servers were counted; `None` if they never were.
    pub counted_s_ago: Option<f64>,
    /// The servers with URLs.
    pub servers_waiting: u64,
    /// What these servers wait for; the class with most URLs first.
    pub waiting: Vec<Waiting>,
    /// The servers with most URLs, the largest first.
    pub largest: Vec<Largest>,
    /// When the crawl may end, if it can be estimated.
    pub end: Option<End>,
    /// The pages that the crawl comes back to; `None` if it doesn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownPages>,
    /// The URLs over the budget of their domain; `None` if domains have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<OverBudget>,
    /// This node's part in a crawl that several machines share; `None` in a crawl of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Sharing>,
}

/// The URLs over the budget of their registrable domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OverBudget {
    /// The number of URLs that wait for a later pass.
    pub waiting: u64,
    /// The number of the present pass, from 0 on. Passes for which no URL waits are skipped.
    pub pass: u64,
    /// The number of registrable domains that are known.
    pub domains: u64,
    /// The length of the files of URLs that wait, in bytes.
    pub bytes: u64,
}

/// The pages that a crawl comes back to, and what came of its visits in all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KnownPages {
    /// The known pages.
    pub pages: u64,
    /// Those that wait in the queues of their servers, or are under way.
    pub queued: u64,
    /// The seconds until the next one comes up; `None` if none waits.
    pub next_s: Option<u32>,
    /// What a visit must be worth: of a page of mean importance, the seconds that it adds to the
    /// time for which its copy is up to date.
    pub bar: f64,
    /// What came of the visits.
    #[serde(flatten)]
    pub visits: Visits,
}

/// What came of visits to known pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Visits {
    /// Visits that found another page than before.
    pub changed: u64,
    /// Visits that found the same page.
    pub unchanged: u64,
    /// Those of them whose server said so (304).
    pub unmodified: u64,
    /// Visits that found no page any more (404, 410), or a redirect.
    pub gone: u64,
    /// Visits that failed.
    pub failed: u64,
    /// Pages that weren't visited: robots.txt, the scope, a command or a limit forbids it now.
    pub refused: u64,
    /// Pages that were forgotten, because they have vanished for good.
    pub forgotten: u64,
    /// Visits before a page's time, because nothing else was to be done.
    pub early: u64,
    /// Signals of change, from sitemaps and feeds, that have reached known pages.
    pub signals: u64,
    /// Signals that were dropped, because too many waited. The next reading of the sitemap or feed
    /// gives those again that were of the two days before.
    pub signals_dropped: u64,
}

impl Status {
    /// Returns why this node of a shared crawl may request nothing at all now, in words; `None` if
    /// it may.
    pub fn stopped_by(&self) -> Option<&str> {
        let part = self.cluster.as_ref().filter(|part| part.session_left_s.is_none())?;
        part.held_up_by.first().map(String::as_str)
    }
}

/// What the crawl as a whole does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It fetches, or its servers rest.
    #[default]
    Crawling,
    /// It is ending.
    Stopping,
    /// It waits for space on the disk.
    DiskFull,
    /// It reads replies back from the archive after a kill.
    ReadingBack,
    /// The operator has paused it.
    Paused,
    /// No server can be reached.
    Outage,
    /// All servers rest after an unclean stop.
    Resting,
}

impl State {
    /// All states, in order of declaration.
    pub const ALL: [Self; 7] = [
        Self::Crawling,
        Self::Stopping,
        Self::DiskFull,
        Self::ReadingBack,
        Self::Paused,
        Self::Outage,
        Self::Resting,
    ];
}

/// What is left until a limit of the configuration ends the crawl; `None` without such a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsLeft {
    /// Pages.
    pub pages: Option<u64>,
    /// Bytes received.
    pub bytes: Option<u64>,
    /// Seconds.
    pub seconds: Option<u64>,
}

/// A node's part in a crawl that several machines share. What is counted began with this run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sharing {
    /// The name of the node.
    pub node: String,
    /// What the node does.
    pub state: NodeState,
    /// What keeps the node from crawling all its partitions, in words; what holds up most first.
    pub held_up_by: Vec<String>,
    /// The seconds for which it may send requests unless its session is renewed; `None` if it may
    /// send none.
    pub session_left_s: Option<f64>,
    /// The seconds since the queue could be reached last, or since the run began; `None` while it
    /// can be reached.
    pub disconnected_s: Option<u64>,
    /// The number of nodes among which the pace of addresses is divided.
    pub nodes: u32,
    /// The partitions that the node holds.
    pub partitions: Partitions,
    /// What it reads from their logs.
    pub reading: Reading,
    /// What it writes to the logs of all partitions.
    pub publishing: Publishing,
    /// The pages of all runs that other nodes may fetch again: see
    /// [`Counts::pages_lost`](super::counts::Counts::pages_lost).
    pub pages_lost: u64,
}

/// What a node of a shared crawl does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It has no session, or not yet.
    #[default]
    NoSession,
    /// It waits until all other nodes take it into account.
    Joining,
    /// It takes its partitions and crawls them.
    Active,
    /// It gives up its partitions.
    Leaving,
    /// It has left the crawl.
    Left,
}

impl NodeState {
    /// All states, in order of declaration.
    pub const ALL: [Self; 5] =
        [Self::NoSession, Self::Joining, Self::Active, Self::Leaving, Self::Left];

    /// Returns the state in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::NoSession => "no session",
            Self::Joining => "joining",
            Self::Active => "active",
            Self::Leaving => "leaving",
            Self::Left => "left",
        }
    }
}

/// The partitions that a node holds, by what it does with them. Each is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Partitions {
    /// Their servers are visited.
    pub crawled: u32,
    /// The longest rest of a server is waited for, since another node may have visited them.
    pub waiting: u32,
    /// Their logs are read for what other nodes know.
    pub reading: u32,
    /// They go to other nodes.
    pub leaving: u32,
}

impl Partitions {
    /// Returns the number of all of them.
    pub fn held(self) -> u32 {
        self.crawled + self.waiting + self.reading + self.leaving
    }
}

/// What a node has read of the logs of its partitions, and what it hasn't.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reading {
    /// The messages that it has used up; those of a log that was read twice count twice.
    pub messages: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// Messages and records that made no sense.
    pub damaged: u64,
    /// The messages that it hasn't used up, as of the last portion of each log.
    pub unread_messages: u64,
    /// The logs that have such messages.
    pub unread_logs: u32,
    /// The longest time for which one of these logs has had such messages, in seconds; 0 if there
    /// are none.
    pub behind_s: f64,
}

/// What a node has written to the logs of all partitions, and what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Publishing {
    /// The messages that are in the logs.
    pub messages: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// The publications of several messages each that are in the logs.
    pub publications: u64,
    /// How often a publication was handed to the queue again: it had refused it, or not answered.
    pub repeats: u64,
    /// The bytes of messages in memory that aren't known to be in the logs.
    pub unsent_memory_bytes: u64,
    /// The bytes of messages that wait on disk.
    pub unsent_disk_bytes: u64,
    /// The links to partitions of other nodes that were written.
    pub links: u64,
    /// The links that were not written, because the same was written recently.
    pub links_held_back: u64,
}

/// A server with many URLs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Largest {
    /// Scheme, host and port.
    pub server: String,
    /// The number of its URLs.
    pub urls: u64,
    /// What it waits for.
    pub r#for: Wait,
    /// When the wait is over, if that is known.
    pub due: Option<String>,
}

/// An estimate of the end of the crawl.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct End {
    /// When the URLs that are known now may all be fetched.
    pub at: String,
    /// The seconds until then.
    pub seconds: u64,
    /// What the estimate rests on.
    pub basis: String,
}

impl Engine {
    /// Returns the status of the crawl.
    pub fn status(&self) -> Status {
        let (state, state_text) = self.state();
        let (connections, parked) = self.connections();
        let sample = self.visits.census().sample();
        let now = self.sample();
        let seconds = now.at.since(sample.at).as_secs_f64().max(1e-3);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let mut status = Status {
            time: self.turn.unix().civil().to_seconds(),
            elapsed_s: self.elapsed().as_secs(),
            state,
            state_text,
            pages: self.counts.pages,
            pages_per_s: rate(now.pages, sample.pages),
            failed: self.counts.failures(),
            failed_per_s: rate(now.failed, sample.failed),
            requests: self.counts.requests,
            received_bytes: self.counts.received_bytes,
            urls_waiting: (self.backlog.urls() + self.archive.filing().unfiled().len()) as u64,
            scores_waiting: self.pages.scoring().waiting() as u64,
            servers_known: self.backlog.servers() as u64,
            given_up: self.counts.given_up.clone(),
            connections,
            parked,
            limits_left: self.shutdown.left(self.turn.at(), &self.counts, self.fetched_by_others()),
            counted_s_ago: None,
            servers_waiting: 0,
            waiting: Vec::new(),
            largest: Vec::new(),
            end: (state == State::Crawling)
                .then(|| self.end_estimate(rate(now.settled, sample.settled)))
                .flatten(),
            known: self.known_pages(),
            over_budget: self.over_budget(),
            cluster: self.sharing(),
        };
        self.add_census(&mut status);
        status
    }

    /// Counts what servers with URLs wait for, all at once: for the end of a crawl, when no turn
    /// can become too long.
    pub fn waits_at_end(&self) -> Vec<Waiting> {
        self.count_all().waiting()
    }

    fn add_census(&self, status: &mut Status) {
        let Some((at, tally)) = self.visits.census().last() else { return };
        status.counted_s_ago = Some(self.turn.at().since(*at).as_secs_f64());
        status.waiting = tally.waiting();
        let waits = status
            .waiting
            .iter()
            .filter(|class| !matches!(class.r#for, Wait::GivenUp | Wait::OtherNode));
        status.servers_waiting = waits.map(|class| class.servers).sum();
        status.largest.extend(tally.largest.iter().map(|waiter| Largest {
            server: self.backlog.origin(waiter.id.0).as_str().to_owned(),
            urls: waiter.urls,
            r#for: waiter.wait,
            due: waiter.due.map(|due| self.time_at(due)),
        }));
    }

    /// Returns what the crawl as a whole does, in one word and in at most 50 characters.
    fn state(&self) -> (State, String) {
        let clock = |unix: UnixTime| unix.civil().to_clock();
        if let Some(reason) = self.stop_reason() {
            return (State::Stopping, format!("ending: {}", reason.text()));
        }
        if let Some(again) = self.storage.deadline() {
            let again = clock(self.turn.now().unix_of(again));
            return (State::DiskFull, format!("the disk is full; the next try is at {again}"));
        }
        if let Some((done, of)) = self.reread() {
            return (State::ReadingBack, format!("reading back {done} of {of} archived replies"));
        }
        if self.visits.orders().pauses_all() {
            return (State::Paused, "paused by the operator; `sted ctl` resumes it".to_owned());
        }
        if let Some(silence) = self.outage() {
            let since = clock(self.turn.unix().before(silence));
            return (State::Outage, format!("no server can be reached since {since}"));
        }
        if let Some(until) = self.rests_until() {
            let until = clock(until);
            return (State::Resting, format!("servers rest until {until} after an unclean stop"));
        }
        (State::Crawling, "crawling".to_owned())
    }

    /// Estimates when the URLs that are known now are fetched: the later of when the server that
    /// takes longest is done, and of when all are at the present rate.
    fn end_estimate(&self, per_second: f64) -> Option<End> {
        let (_, tally) = self.visits.census().last()?;
        let over = self.backlog.budgets().map_or(0, Budgets::waiting);
        let (now, urls) = (self.turn.at(), self.backlog.urls() as u64 + over);
        let longest = tally.longest?;
        let by_server = longest.ends.since(now);
        let by_rate = Duration::try_from_secs_f64(urls as f64 / per_second).ok();
        let (after, basis) = match by_rate {
            Some(time) if time > by_server => {
                (time, format!("{urls} URLs at the present rate of {per_second:.1} a second"))
            }
            _ => {
                let origin = self.backlog.origin(longest.id).as_str();
                (by_server, format!("the {} URLs of {origin}, at its rests", longest.urls))
            }
        };
        Some(End { at: self.time_at(now + after), seconds: after.as_secs(), basis })
    }

    /// Returns the time on the wall clock of an instant.
    fn time_at(&self, at: Instant) -> String {
        let unix: UnixTime = self.turn.now().unix_of(at);
        unix.civil().to_seconds()
    }
}
