//! What a world, a command or a judge may read of a running crawl.

use super::contract::StopReason;
use super::counts::Counts;
use super::ledger::Ledger;
use super::{Engine, FatalError};
use crate::frontier::{Frontier, ServerId};
use crate::ground::stats::Meter;
use crate::ground::time::{Instant, UnixTime};
use crate::rating::Rating;
use crate::seen;

impl Engine {
    /// Returns the counters of the crawl.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the frontier, with its queues.
    pub fn frontier(&self) -> &Frontier {
        &self.backlog
    }

    /// Returns the estimated qualities of URLs.
    pub fn rating(&self) -> &Rating {
        self.admission.rating()
    }

    /// Returns the counters of the seen test.
    pub fn seen_totals(&self) -> seen::Totals {
        self.admission.seen().totals()
    }

    /// Returns the meter of CPU time by stage.
    pub fn meter(&self) -> &Meter {
        self.turn.meter()
    }

    /// Returns the meter of CPU time by stage, for the world to charge its own stages.
    pub fn meter_mut(&mut self) -> &mut Meter {
        self.turn.meter_mut()
    }

    /// Returns two numbers: of the connections that a visit uses, and of the parked ones, which are
    /// kept open between two visits.
    pub fn connections(&self) -> (usize, usize) {
        (self.wire.conns().busy(), self.wire.conns().parked())
    }

    /// Returns how many requests each server accepts on one connection, of those whose connections
    /// have shown it. Looks at every server.
    pub fn requests_accepted(&self) -> impl Iterator<Item = u32> + '_ {
        let learnt =
            (0..self.sites.len()).map(|id| &self.sites.get(ServerId::from_index(id)).learnt);
        let known = learnt.filter(|learnt| learnt.knows_allowance());
        known.map(|learnt| learnt.allowance(&self.settings.pipeline))
    }

    /// Returns the number of bytes that replies in memory and receive buffers take.
    pub fn held_bytes(&self) -> usize {
        self.wire.held_bytes()
    }

    /// Returns the memory of the seen test, in bytes, without its cache.
    pub fn seen_bytes(&self) -> usize {
        self.admission.seen().memory_bytes()
    }

    /// Returns when the first request of this run was written, or `None` if none was yet.
    pub fn first_request(&self) -> Option<Instant> {
        self.wire.first_request()
    }

    /// Returns until when all servers rest after an unclean stop, since the rest that each was owed
    /// is not known. Returns `None` if the stop was clean, or once a server is visited.
    pub fn rests_until(&self) -> Option<UnixTime> {
        let wait = self.backlog.quiet_until().since(self.turn.at());
        let rests = !wait.is_zero() && self.wire.conns().busy() == 0;
        rests.then(|| self.turn.unix().after(wait))
    }

    /// Returns the time since this run began.
    pub fn elapsed(&self) -> std::time::Duration {
        self.turn.elapsed()
    }

    /// Returns the account of the work done in the turns of this run.
    pub fn ledger(&self) -> &Ledger {
        self.turn.ledger()
    }

    /// Returns whether the crawl has ended, and all of it is durable.
    pub fn is_finished(&self) -> bool {
        self.shutdown.is_finished()
    }

    /// Returns why the crawl has ended or is ending, or `None` if it goes on.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.shutdown.reason()
    }

    /// Returns the error that ended the crawl, if one did.
    pub fn fatal_error(&self) -> Option<&FatalError> {
        self.storage.fatal()
    }
}
