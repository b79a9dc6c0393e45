//! Visits that wait for the next turn because the budget for examining their queues is spent.
//!
//! URLs that robots.txt forbids are dropped from the queue before any request, and a server may
//! have any number of them. So each visit may drop only a share of the budget's worth at a time. If
//! that is not enough, the visit is deferred: its server stays under visit (so it keeps its place
//! in its groups), and nothing is requested from it.
//!
//! Laws: deferred visits resume in order, at the latest when the crawl ends. While inputs are fed,
//! visits use at most half of the budget; the other half is left for deferred visits and for those
//! that are about to begin.

use crate::engine::Engine;
use crate::engine::contract::ConnId;
use crate::engine::ledger::Work;
use crate::frontier::ServerId;
use crate::ground::stats::Stage;
use std::collections::VecDeque;

/// The number of shares in a budget: a visit may spend one share before others get their turn.
const SHARES: usize = 16;

/// The visits that wait for the next turn, in order.
#[derive(Debug, Default)]
pub(in crate::engine) struct Deferred {
    visits: VecDeque<Visit>,
    /// Whether visits are being begun and resumed at present, so that they may use the whole
    /// budget.
    is_pumping: bool,
}

/// A visit that waits for the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    /// The visit has not begun: its queue may hold nothing to request.
    Begin(ServerId),
    /// The connection is open and has no request in flight.
    Fill(ConnId),
}

impl Deferred {
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.visits.is_empty()
    }
}

impl Engine {
    /// Defers the visit of a server until the next turn. The visit has not begun.
    pub(in crate::engine) fn begin_later(&mut self, id: ServerId) {
        self.visits.deferred.visits.push_back(Visit::Begin(id));
    }

    /// Defers further requests on a connection, which has none in flight, until the next turn.
    pub(in crate::engine) fn fill_later(&mut self, slot: u32) {
        self.visits.deferred.visits.push_back(Visit::Fill(self.wire.conns().id(slot)));
    }

    /// Continues the visit of a connection in this turn, if the connection still exists and has no
    /// request in flight.
    pub(in crate::engine) fn fill_if_idle(&mut self, conn: ConnId) {
        if self.wire.is_idle(conn) {
            self.visits.deferred.visits.push_back(Visit::Fill(conn));
        }
    }

    /// Resumes deferred visits and begins new ones, in alternation, as long as servers are ready,
    /// slots are free, and budget is left.
    pub(in crate::engine) fn begin_visits(&mut self) {
        let stage = self.turn.enter(Stage::Schedule, 0);
        self.visits.deferred.is_pumping = true;
        loop {
            let resumed = self.resume_visit();
            let begun = self.begin_next_visit();
            if !resumed && !begun {
                break;
            }
        }
        self.visits.deferred.is_pumping = false;
        self.turn.back(stage);
    }

    /// Returns the units of the budget for queues at which a visit must stop: when no more than
    /// these are left, it has spent its share.
    pub(in crate::engine) fn share_floor(&self) -> usize {
        let budget = self.settings.turn_bytes_max;
        let kept = if self.visits.deferred.is_pumping { 0 } else { budget / 2 };
        let share = (budget / SHARES).max(1);
        self.turn.left(Work::Rules).saturating_sub(share).max(kept)
    }

    fn resume_visit(&mut self) -> bool {
        // If the crawl stops or pauses, no queue is examined, so no budget is needed.
        let is_paused = self.storage.is_paused() || self.visits.orders.pauses_all();
        let is_idle = self.is_stopping() || is_paused;
        if !is_idle && self.turn.is_spent(Work::Rules) {
            return false;
        }
        match self.visits.deferred.visits.pop_front() {
            None => return false,
            Some(Visit::Begin(id)) if is_idle => self.backlog.hand_back(id, self.turn.at()),
            Some(Visit::Begin(id)) => self.begin_visit(id),
            Some(Visit::Fill(conn)) => {
                // The connection may have ended meanwhile.
                if self.wire.is_idle(conn) {
                    self.fill(conn.slot);
                }
            }
        }
        true
    }
}
