//! Visits that wait for the next turn, because there was no budget left to look at their queues.
//!
//! What robots.txt forbids leaves its queue before anything is asked for, and a server may have
//! queued any number of such URLs. So each visit drops a share at a time; what is left over comes
//! here, and is resumed in order. Until then the server is under visit: its place in its groups is
//! kept, and it is asked for nothing.
//!
//! Laws: who was deferred is resumed, first come, first served, and no later than the end of the
//! crawl; while inputs are fed visits spend no more than half of the budget, so that these here and
//! those that are about to begin have the other half.

use crate::engine::Engine;
use crate::engine::contract::ConnId;
use crate::engine::ledger::Work;
use crate::frontier::ServerId;
use std::collections::VecDeque;

/// Visits may spend a budget's share of one in so many, then others have their turn.
const SHARES: usize = 16;

/// Visits that wait for the next turn.
#[derive(Debug, Default)]
pub(in crate::engine) struct Deferred {
    visits: VecDeque<Visit>,
    /// Visits are being begun and resumed: all of the budget is theirs.
    is_pumping: bool,
}

/// A visit that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    /// It has not begun: there may be nothing to be asked for.
    Begin(ServerId),
    /// There is nothing under way on its connection.
    Fill(ConnId),
}

impl Deferred {
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.visits.is_empty()
    }
}

impl Engine {
    /// The visit of this server begins later.
    pub(in crate::engine) fn begin_later(&mut self, id: ServerId) {
        self.visits.deferred.visits.push_back(Visit::Begin(id));
    }

    /// The visit on this connection, which has nothing under way, is resumed later.
    pub(in crate::engine) fn fill_later(&mut self, slot: u32) {
        self.visits.deferred.visits.push_back(Visit::Fill(self.wire.conns().id(slot)));
    }

    /// Begins and resumes visits in turns, as long as there are any and the budget admits them.
    pub(in crate::engine) fn pump_visits(&mut self) {
        self.visits.deferred.is_pumping = true;
        loop {
            let resumed = self.resume_visit();
            let begun = self.begin_next_visit();
            if !resumed && !begun {
                break;
            }
        }
        self.visits.deferred.is_pumping = false;
    }

    /// Units of queue work that must be left when a visit's share is spent.
    pub(in crate::engine) fn share_floor(&self) -> usize {
        let budget = self.settings.turn_bytes_max;
        let kept = if self.visits.deferred.is_pumping { 0 } else { budget / 2 };
        let share = (budget / SHARES).max(1);
        self.turn.left(Work::Rules).saturating_sub(share).max(kept)
    }

    fn resume_visit(&mut self) -> bool {
        // Then nothing is looked at.
        let is_idle = self.is_stopping() || self.storage.is_paused();
        if !is_idle && self.turn.is_spent(Work::Rules) {
            return false;
        }
        match self.visits.deferred.visits.pop_front() {
            None => return false,
            Some(Visit::Begin(id)) if is_idle => self.backlog.hand_back(id, self.turn.at()),
            Some(Visit::Begin(id)) => self.begin_visit(id),
            Some(Visit::Fill(conn)) => {
                // It may have ended meanwhile.
                if self.wire.is_idle(conn) {
                    self.fill(conn.slot);
                }
            }
        }
        true
    }
}
