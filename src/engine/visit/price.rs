//! The early end of visits, and the price of the core's time, by which the policy `yield` decides.
//!
//! Laws: a turn ranks no more servers again than its budget allows; a visit that ends early has
//! made a request, so each visit gets on.
//! Cost: nothing under other policies and in visits without a known page; under `yield`, a look at
//! the best waiting server before each request, and a ranking of every server when the price has
//! changed by a sixteenth.

use crate::engine::Engine;
use crate::engine::backlog::{Item, Purpose};
use crate::engine::ledger::Work;
use crate::frontier::{Load, Price};
use crate::ground::stats::Stage;
use crate::ground::time::Now;

/// The cost of ranking a server again, in units of work (see `ledger`).
const REPRICE_UNITS: usize = 512;

impl Engine {
    /// Reports what the core does, about once a second. The policy `yield` ranks servers by it; the
    /// others ignore it.
    pub fn load(&mut self, now: Now, load: &Load) {
        self.turn.set_time(now);
        let slots = self.settings.connections.open_max;
        self.backlog.set_price(Price::of(load, slots));
    }

    /// Ranks servers again whose price has changed, within the budget of the turn.
    pub(in crate::engine) fn work_prices(&mut self) {
        if !self.backlog.is_repricing() {
            return;
        }
        let stage = self.turn.enter(Stage::Schedule, 0);
        while !self.turn.is_half_spent(Work::Repriced) && self.backlog.reprice_one(self.turn.at()) {
            self.turn.charge(Work::Repriced, REPRICE_UNITS);
        }
        self.turn.back(stage);
    }

    /// Returns whether the visit on a connection should end although it may go on.
    pub(in crate::engine) fn should_end(&mut self, slot: u32) -> bool {
        self.has_served_known(slot) || self.is_outbid(slot)
    }

    /// Returns whether a visit has requested all granted pages of its server, and the others must
    /// wait: another server is ready, and has no slot, or it would be visited. With new URLs, which
    /// grant visits themselves, such visits would keep all slots (decision 140).
    fn has_served_known(&mut self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        let (id, serves_known) = (conn.server, conn.visit.serves_known);
        serves_known
            && self.may_visit()
            && self.visits.outage.may_visit(self.turn.at())
            && self.backlog.peek(id).is_some_and(|item| item.purpose == Purpose::Page)
            && self.backlog.best(self.turn.at()).is_some()
    }

    /// Returns whether the visit on a connection should end although it may go on, because the best
    /// waiting server gives more (see `Scheduler::is_outbid`). If that server isn't visited at
    /// once, no slot is free or the core is behind. A visit makes at least one request.
    fn is_outbid(&mut self, slot: u32) -> bool {
        let conn = self.wire.conn(slot);
        let tally = &conn.visit.tally;
        let pace = tally.response_time.checked_div(tally.replies);
        let (id, requests) = (conn.server, conn.visit.tally.requests);
        if !self.settings.frontier.scheduler.schedule.policy.ends_early()
            || requests == 0
            || !self.may_visit()
            || !self.visits.outage.may_visit(self.turn.at())
            || self.backlog.peek(id).is_none_or(Item::is_robots)
        {
            return false;
        }
        let quality = self.backlog.next_quality(id).unwrap_or_default();
        self.backlog.is_outbid(id, quality, pace, self.turn.at())
    }
}
