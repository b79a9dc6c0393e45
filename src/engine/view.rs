//! What a world, a command or a judge may read of a crawl while it runs.

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
    /// What has been done so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The queues.
    pub fn frontier(&self) -> &Frontier {
        &self.backlog
    }

    /// What URLs are thought to be worth.
    pub fn rating(&self) -> &Rating {
        self.admission.rating()
    }

    /// What the seen test has done.
    pub fn seen_totals(&self) -> seen::Totals {
        self.admission.seen().totals()
    }

    /// The meter of stages, for reports.
    pub fn meter(&self) -> &Meter {
        self.turn.meter()
    }

    /// The meter of stages, for the world to charge its own to.
    pub fn meter_mut(&mut self) -> &mut Meter {
        self.turn.meter_mut()
    }

    /// Connections open and on a visit, and parked.
    pub fn connections(&self) -> (usize, usize) {
        (self.wire.conns().busy(), self.wire.conns().parked())
    }

    /// Bytes of replies held.
    pub fn held_bytes(&self) -> usize {
        self.wire.held_bytes()
    }

    /// Pages of this run: those that earlier runs of the job had counted are left out.
    pub fn pages_of_run(&self) -> u64 {
        self.counts.pages_of_run
    }

    /// When the first request of this run went out.
    pub fn first_request(&self) -> Option<Instant> {
        self.wire.first_request()
    }

    /// Until when servers rest because nobody knows what they were owed when the crawl stopped;
    /// `None` once somebody is visited again.
    pub fn rests_until(&self) -> Option<UnixTime> {
        let wait = self.backlog.quiet_until().since(self.turn.at());
        let rests = !wait.is_zero() && self.wire.conns().busy() == 0;
        rests.then(|| self.turn.unix().after(wait))
    }

    /// Time since this run began.
    pub fn elapsed(&self) -> std::time::Duration {
        self.turn.elapsed()
    }

    /// Work done turn by turn, and the turn that did most.
    pub fn ledger(&self) -> &Ledger {
        self.turn.ledger()
    }

    /// Whether all is done and durable.
    pub fn is_finished(&self) -> bool {
        self.shutdown.is_finished()
    }

    /// Why the crawl ended, or is ending.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.shutdown.reason()
    }

    /// The error that ends the crawl, if there was one.
    pub fn fatal_error(&self) -> Option<&FatalError> {
        self.storage.fatal()
    }
}
