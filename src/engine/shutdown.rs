//! How a crawl ends: the frontier is empty, a budget is reached, or somebody says stop.
//!
//! Open replies may finish within a grace period; then the archive is closed and synced, and only
//! when that is done is the crawl finished.

use super::Engine;
use super::checkpoint::Checkpoints;
use super::contract::StopReason;
use super::settings::{Limits, Settings};
use crate::ground::time::{Instant, Now};
use crate::http::pipeline::Close;
use std::time::Duration;

/// How far the end has come.
#[derive(Debug)]
pub(super) struct Shutdown {
    limits: Limits,
    grace: Duration,
    /// When the budget of time is spent.
    time_up: Option<Instant>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Crawling,
    /// Open replies may finish until then.
    Stopping(StopReason, Instant),
    /// Checkpoints and jobs of the archive that are under way end first.
    Closing(StopReason),
    /// The last checkpoint is being made.
    Saving(StopReason),
    /// The archive's last job is under way: it closes files that the checkpoint knows.
    Settling(StopReason),
    Finished(StopReason),
}

impl Shutdown {
    pub(super) fn new(settings: &Settings, now: Now) -> Self {
        let limits = settings.limits;
        let time_up = limits.time_max.map(|time_max| now.at + time_max);
        let grace = settings.connections.stop_timeout;
        Self { limits, grace, time_up, stage: Stage::Crawling }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Crawling => self.time_up,
            Stage::Stopping(_, until) => Some(until),
            Stage::Closing(_) | Stage::Settling(_) | Stage::Saving(_) | Stage::Finished(_) => None,
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.stage, Stage::Finished(_))
    }

    pub(super) fn reason(&self) -> Option<StopReason> {
        match self.stage {
            Stage::Crawling => None,
            Stage::Stopping(reason, _)
            | Stage::Closing(reason)
            | Stage::Settling(reason)
            | Stage::Saving(reason)
            | Stage::Finished(reason) => Some(reason),
        }
    }

    /// Whether nothing is fetched any more.
    pub(super) fn is_closing(&self) -> bool {
        !matches!(self.stage, Stage::Crawling | Stage::Stopping(..))
    }

    /// Whether the archive's last job has been handed out.
    pub(super) fn is_settling(&self) -> bool {
        matches!(self.stage, Stage::Settling(_) | Stage::Finished(_))
    }

    /// Whether it ends because there is nothing left to fetch.
    pub(super) fn is_exhausted(&self) -> bool {
        self.reason() == Some(StopReason::Finished)
    }
}

impl Engine {
    pub(super) fn is_stopping(&self) -> bool {
        self.shutdown.stage != Stage::Crawling
    }

    /// Nothing new from here on.
    pub(super) fn begin_stop(&mut self, reason: StopReason) {
        if self.is_stopping() {
            return;
        }
        self.shutdown.stage = Stage::Stopping(reason, self.turn.at() + self.shutdown.grace);
        log::info!("the crawl ends: {}", reason.text());
        self.stop_rereading();
        self.close_idle();
    }

    /// Whether a budget is spent.
    pub(super) fn check_limits(&mut self) {
        if self.is_stopping() {
            return;
        }
        let Limits { pages_max, bytes_max, .. } = self.shutdown.limits;
        if self.storage.fatal().is_some() {
            self.begin_stop(StopReason::FatalError);
        } else if pages_max.is_some_and(|most| self.counts.pages >= most) {
            self.begin_stop(StopReason::Pages);
        } else if bytes_max.is_some_and(|most| self.counts.received_bytes >= most) {
            self.begin_stop(StopReason::Bytes);
        }
    }

    /// Whether the budget of pages allows another request: each that is under way may be a page.
    /// They are counted only near the end.
    pub(super) fn may_ask(&self) -> bool {
        let Some(most) = self.shutdown.limits.pages_max else { return true };
        let left = most.saturating_sub(self.counts.pages);
        let out_max = self.wire.conns().busy() as u64 * u64::from(self.settings.pipeline.depth_max);
        left > out_max || left > self.wire.conns().pages_out() as u64
    }

    /// Time may be up, for the crawl or for the replies that were still open.
    pub(super) fn expire_shutdown(&mut self) {
        let now = self.turn.at();
        match self.shutdown.stage {
            Stage::Crawling if self.shutdown.time_up.is_some_and(|up| up <= now) => {
                self.begin_stop(StopReason::Time);
            }
            Stage::Stopping(_, until) if until <= now => {
                for slot in self.wire.conns().slots() {
                    self.lost(slot, None, Close::Ours);
                }
            }
            _ => {}
        }
    }

    /// Moves on towards the end when what stands before it is done.
    pub(super) fn end_if_done(&mut self) {
        let busy =
            self.is_working() || self.visits.is_resolving() || self.archive.replays().is_active();
        match self.shutdown.stage {
            Stage::Crawling
                if !busy
                    && self.backlog.urls() == 0
                    && self.admission.seen().is_settled()
                    && !self.backlog.is_reviving()
                    && self.chains.len() == 0 =>
            {
                self.begin_stop(StopReason::Finished);
                self.end_if_done();
            }
            // Look-ups are not waited for.
            Stage::Stopping(reason, _) if !self.is_working() => {
                self.shutdown.stage = Stage::Closing(reason);
                self.end_if_done();
            }
            // A checkpoint that was under way ends first: the last one is of the very end.
            Stage::Closing(reason) if self.rests_or_fails() => {
                self.shutdown.stage = Stage::Saving(reason);
                if self.storage.fatal().is_none() && self.checkpoints.is_some() {
                    self.want_checkpoint();
                    self.work_checkpoint();
                } else {
                    self.end_if_done();
                }
            }
            Stage::Saving(reason) if !self.archive.is_syncing() && self.rests_or_fails() => {
                self.shutdown.stage = Stage::Settling(reason);
                self.close_store();
                self.end_if_done();
            }
            Stage::Settling(reason) if !self.archive.is_syncing() => {
                let trouble = self.storage.fatal().is_some();
                let reason = if trouble { StopReason::FatalError } else { reason };
                self.shutdown.stage = Stage::Finished(reason);
            }
            _ => {}
        }
    }

    fn is_working(&self) -> bool {
        self.wire.conns().busy() > 0 || self.has_replies() || self.visits.has_deferred()
    }

    /// Whether no checkpoint is under way, or none can be made any more.
    fn rests_or_fails(&self) -> bool {
        let rests = self.checkpoints.as_ref().is_none_or(Checkpoints::is_resting);
        rests || self.storage.fatal().is_some()
    }
}
