//! What a world, a command or a judge may read of a running crawl.

use super::contract::StopReason;
use super::counts::Counts;
use super::ledger::Ledger;
use super::{Engine, FatalError};
use crate::frontier::Frontier;
use crate::ground::stats::Meter;
use crate::ground::time::{Instant, UnixTime};
use crate::rating::Rating;
use crate::seen;

impl Engine {
    /// The counters of the crawl.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The frontier, with its queues.
    pub fn frontier(&self) -> &Frontier {
        &self.backlog
    }

    /// The estimated qualities of URLs.
    pub fn rating(&self) -> &Rating {
        self.admission.rating()
    }

    /// The counters of the seen test.
    pub fn seen_totals(&self) -> seen::Totals {
        self.admission.seen().totals()
    }

    /// The meter of CPU time by stage.
    pub fn meter(&self) -> &Meter {
        self.turn.meter()
    }

    /// The meter of CPU time by stage, for the world to charge its own stages.
    pub fn meter_mut(&mut self) -> &mut Meter {
        self.turn.meter_mut()
    }

    /// The number of connections on a visit, and the number of parked ones.
    pub fn connections(&self) -> (usize, usize) {
        (self.wire.conns().busy(), self.wire.conns().parked())
    }

    /// The bytes of replies and buffers that are held.
    pub fn held_bytes(&self) -> usize {
        self.wire.held_bytes()
    }

    /// When the first request of this run was written.
    pub fn first_request(&self) -> Option<Instant> {
        self.wire.first_request()
    }

    /// Until when all servers rest after an unclean stop, because the rests they were owed are not
    /// known; `None` once a server is visited.
    pub fn rests_until(&self) -> Option<UnixTime> {
        let wait = self.backlog.quiet_until().since(self.turn.at());
        let rests = !wait.is_zero() && self.wire.conns().busy() == 0;
        rests.then(|| self.turn.unix().after(wait))
    }

    /// The time since this run began.
    pub fn elapsed(&self) -> std::time::Duration {
        self.turn.elapsed()
    }

    /// The work done in the turns of this run.
    pub fn ledger(&self) -> &Ledger {
        self.turn.ledger()
    }

    /// Whether the crawl has ended, and all of it is durable.
    pub fn is_finished(&self) -> bool {
        self.shutdown.is_finished()
    }

    /// Why the crawl has ended, or is ending.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.shutdown.reason()
    }

    /// The error that ended the crawl, if there was one.
    pub fn fatal_error(&self) -> Option<&FatalError> {
        self.storage.fatal()
    }
}
