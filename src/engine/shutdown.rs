//! The end of a crawl: the frontier is empty, a limit is reached, or the operator stops it.
//!
//! This part of the engine owns the limits of the crawl and the stage that its end has reached.
//! Replies in progress may finish within a grace period. Then the last checkpoint is written. A
//! node of a cluster leaves it, so that others can take its partitions at once. At last the archive
//! is closed and synced, and the crawl is finished.
//!
//! Law: a crawl is finished only when everything it did is durable, or after a fatal error.
//! Cost: some comparisons a turn.

use super::Engine;
use super::checkpoint::Checkpoints;
use super::contract::StopReason;
use super::counts::Counts;
use super::settings::{Limits, Settings};
use super::status::LimitsLeft;
use crate::ground::time::{Instant, Now};
use crate::http::pipeline::Close;
use std::time::Duration;

/// The limits of the crawl, and the progress of its end.
#[derive(Debug)]
pub(super) struct Shutdown {
    limits: Limits,
    grace: Duration,
    /// When the limit on the time of the run is reached; `None` without such a limit.
    time_up: Option<Instant>,
    stage: Stage,
    /// Why the crawl ends; `None` as long as it goes on.
    reason: Option<StopReason>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Crawling,
    /// No more requests are sent. Replies in progress may finish until this time; if it is over,
    /// `None`, only what has been received is processed.
    Stopping(Option<Instant>),
    /// Waits until checkpoints in progress have ended.
    Closing,
    /// Writes the last checkpoint.
    Saving,
    /// Publishes what other nodes of the cluster must know and leaves it, until this time at most.
    Leaving(Instant),
    /// Waits for the archive's last job, which closes the files that the checkpoint names.
    Settling,
    Finished,
}

/// How long a node tries to leave its cluster in order.
const LEAVING_MAX: Duration = Duration::from_secs(30);
/// What is said when it can't.
const NOT_LEFT: &str = "the queue can't be reached, or is too slow, so this node hasn't left: \
                        others take its partitions when its session is over, and may fetch its \
                        last pages again";

impl Shutdown {
    pub(super) fn new(settings: &Settings, now: Now) -> Self {
        let limits = settings.limits;
        let time_up = limits.time_max.map(|time_max| now.at + time_max);
        let grace = settings.connections.stop_timeout;
        Self { limits, grace, time_up, stage: Stage::Crawling, reason: None }
    }

    /// Changes the limits of the crawl; `elapsed` is how long the run has taken until `now`.
    pub(super) fn set_limits(&mut self, settings: &Settings, elapsed: Duration, now: Now) {
        self.limits = settings.limits;
        self.grace = settings.connections.stop_timeout;
        self.time_up =
            self.limits.time_max.map(|time_max| now.at + time_max.saturating_sub(elapsed));
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Crawling => self.time_up,
            Stage::Stopping(until) => until,
            Stage::Leaving(until) => Some(until),
            Stage::Closing | Stage::Settling | Stage::Saving | Stage::Finished => None,
        }
    }

    /// Returns what is left until a limit is reached, if `others` are the pages and the bytes that
    /// other nodes have fetched.
    pub(super) fn left(&self, now: Instant, counts: &Counts, others: (u64, u64)) -> LimitsLeft {
        let Limits { pages_max, bytes_max, .. } = self.limits;
        let (pages, bytes) = others;
        LimitsLeft {
            pages: pages_max.map(|most| most.saturating_sub(counts.pages.saturating_add(pages))),
            bytes: bytes_max
                .map(|most| most.saturating_sub(counts.received_bytes.saturating_add(bytes))),
            seconds: self.time_up.map(|up| up.since(now).as_secs()),
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.stage == Stage::Finished
    }

    pub(super) fn reason(&self) -> Option<StopReason> {
        self.reason
    }

    /// Returns whether the end has come so far that no more replies are awaited.
    pub(super) fn is_closing(&self) -> bool {
        self.stage >= Stage::Closing
    }

    /// Returns whether the archive's last job has been handed out to the world.
    pub(super) fn is_settling(&self) -> bool {
        self.stage >= Stage::Settling
    }

    /// Returns whether the crawl ends because there is nothing left to fetch.
    pub(super) fn is_exhausted(&self) -> bool {
        self.reason() == Some(StopReason::Finished)
    }
}

impl Engine {
    pub(super) fn is_stopping(&self) -> bool {
        self.shutdown.stage != Stage::Crawling
    }

    /// Begins to end the crawl: no further request is sent.
    pub(super) fn begin_stop(&mut self, reason: StopReason) {
        if self.is_stopping() {
            return;
        }
        self.shutdown.stage = Stage::Stopping(Some(self.turn.at() + self.shutdown.grace));
        self.shutdown.reason = Some(reason);
        log::info!("the crawl ends: {}", reason.text());
        self.storage.end_pause_at(self.turn.at());
        self.stop_rereading();
        self.give_up_scores();
        self.close_idle();
        self.leave_cluster();
    }

    /// Ends the crawl if a limit is reached, or after a fatal error.
    pub(super) fn check_limits(&mut self) {
        if self.is_stopping() {
            return;
        }
        let Limits { pages_max, bytes_max, .. } = self.shutdown.limits;
        if self.storage.fatal().is_some() {
            self.begin_stop(StopReason::FatalError);
            return;
        }
        if pages_max.is_none() && bytes_max.is_none() {
            return;
        }
        let (pages, bytes) = self.fetched_by_others();
        if pages_max.is_some_and(|most| self.counts.pages.saturating_add(pages) >= most) {
            self.begin_stop(StopReason::Pages);
        } else if bytes_max
            .is_some_and(|most| self.counts.received_bytes.saturating_add(bytes) >= most)
        {
            self.begin_stop(StopReason::Bytes);
        }
    }

    /// Returns whether the limit on pages allows another request. Each request in flight may become
    /// a page, and so may each reply that is being archived, so these count too; requests are
    /// counted only near the limit, since that takes time.
    pub(super) fn may_ask(&self) -> bool {
        let Some(most) = self.shutdown.limits.pages_max else { return true };
        let (others, _) = self.fetched_by_others();
        let left = most.saturating_sub(self.counts.pages.saturating_add(others));
        let (conns, filing) = (self.wire.conns(), self.archive.filing().len() as u64);
        let out_max = conns.busy() as u64 * u64::from(self.settings.pipeline.depth_max) + filing;
        left > out_max || left > conns.pages_out() as u64 + filing
    }

    /// Ends the crawl when its time is up. Ends the replies in progress when the grace period is
    /// over.
    pub(super) fn expire_shutdown(&mut self) {
        let now = self.turn.at();
        match self.shutdown.stage {
            Stage::Crawling if self.shutdown.time_up.is_some_and(|up| up <= now) => {
                self.begin_stop(StopReason::Time);
            }
            Stage::Stopping(Some(until)) if until <= now => {
                self.shutdown.stage = Stage::Stopping(None);
                for slot in self.wire.conns().slots() {
                    self.end_connection(slot, None, Close::Ours);
                }
            }
            _ => {}
        }
    }

    /// Enters the next stage of the end when the current one is done.
    pub(super) fn end_if_done(&mut self) {
        match self.shutdown.stage {
            Stage::Crawling => {
                let is_idle = self.is_idle();
                if !self.is_nothing_left(is_idle) {
                    return;
                }
                self.begin_stop(StopReason::Finished);
            }
            // DNS look-ups in progress are not waited for.
            Stage::Stopping(_) if !self.is_working() && !self.hands_over_chains() => {
                self.put_back_filing();
                self.shutdown.stage = Stage::Closing;
            }
            // A checkpoint in progress ends first, so that the last one includes everything.
            Stage::Closing if self.checkpoints_over() => {
                self.shutdown.stage = Stage::Saving;
                if self.storage.fatal().is_none() && self.checkpoints.is_some() {
                    self.want_checkpoint();
                    return self.work_checkpoint();
                }
            }
            Stage::Saving if !self.archive.is_syncing() && self.checkpoints_over() => {
                self.shutdown.stage = Stage::Leaving(self.turn.at() + LEAVING_MAX);
            }
            Stage::Leaving(until)
                if self.has_left_cluster()
                    || !self.can_leave_cluster()
                    || until <= self.turn.at() =>
            {
                if !self.has_left_cluster() {
                    log::warn!("cluster: {NOT_LEFT}");
                }
                self.shutdown.stage = Stage::Settling;
                self.close_store();
            }
            Stage::Settling if !self.archive.is_syncing() && !self.is_syncing_orders() => {
                self.shutdown.stage = Stage::Finished;
                if self.storage.fatal().is_some() {
                    self.shutdown.reason = Some(StopReason::FatalError);
                }
            }
            _ => return,
        }
        self.end_if_done();
    }

    /// Returns whether nothing is under way, and nothing waits but at servers of other nodes.
    fn is_idle(&self) -> bool {
        let has_urls = || match self.backlog.urls() {
            0 => false,
            urls => self.urls_elsewhere() != Some(urls as u64),
        };
        !self.is_busy()
            && self.admission.seen().is_settled()
            && !self.backlog.given_up_log().is_reviving()
            && self.counts.shelved == 0
            && self.chains.len() == 0
            && self.backlog.budgets().is_none_or(|budgets| budgets.waiting() == 0)
            && !has_urls()
            // A crawl that comes back never ends by itself.
            && self.backlog.again().is_none_or(|again| again.pages() == 0)
    }

    /// Returns whether anything is under way: requests, replies, look-ups, or what follows from
    /// them.
    pub(super) fn is_busy(&self) -> bool {
        self.is_working()
            || self.visits.waiters() > 0
            || self.archive.replays().is_active()
            || !self.archive.filing().is_empty()
            || self.pages.scoring().waiting() > 0
    }

    fn is_working(&self) -> bool {
        let has_replies = self.has_replies() || self.pages.lists().is_busy() || self.is_filing();
        self.wire.conns().busy() > 0 || has_replies || self.visits.has_deferred()
    }

    /// Returns whether redirect chains have to end before this node can leave its cluster: nobody
    /// gets a partition while a chain that began there isn't settled.
    pub(super) fn hands_over_chains(&self) -> bool {
        matches!(self.shutdown.stage, Stage::Stopping(_))
            && !self.is_working()
            && !self.has_left_cluster()
            && self.chains.len() > 0
            && self.storage.is_usable()
    }

    fn is_syncing_orders(&self) -> bool {
        self.visits.orders().log().is_syncing()
    }

    /// Returns whether no checkpoint is in progress, or none can be written any more.
    fn checkpoints_over(&self) -> bool {
        let is_idle = self.checkpoints.as_ref().is_none_or(Checkpoints::is_idle);
        is_idle || self.storage.fatal().is_some()
    }
}
