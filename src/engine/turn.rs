//! The current turn of the event loop: its time, its budget of work, and the actions for the world.
//!
//! This part of the engine owns its clock (set by the world, never read from the system), the
//! ledger of work, the meter of CPU time, and the queue of actions.
//!
//! Laws: time never goes back; each turn begins with its whole budget; actions are carried out in
//! the order in which they were asked for.

use super::contract::Action;
use super::ledger::{Ledger, Work};
use crate::ground::stats::{Meter, Stage};
use crate::ground::time::{Instant, Now, UnixTime};
use std::collections::VecDeque;
use std::time::Duration;

/// The state of the current turn. The engine has one, which it uses for the whole run.
#[derive(Debug)]
pub(super) struct Turn {
    now: Now,
    began: Now,
    meter: Meter,
    ledger: Ledger,
    actions: VecDeque<Action>,
}

impl Turn {
    /// Returns the first turn of a run, which begins at `now`.
    pub(super) fn new(now: Now, meter: Meter, ledger: Ledger) -> Self {
        Self { now, began: now, meter, ledger, actions: VecDeque::new() }
    }

    /// Sets the time of the turn. An earlier time is ignored: the last input of a turn may carry a
    /// later time than the first of the next turn.
    pub(super) fn set_time(&mut self, now: Now) {
        if now.at >= self.now.at {
            self.now = now;
        }
    }

    /// Returns the time of the turn, on both the monotonic and the wall clock.
    pub(super) fn now(&self) -> Now {
        self.now
    }

    /// Returns the time of the turn on the monotonic clock, which everything is scheduled by.
    pub(super) fn at(&self) -> Instant {
        self.now.at
    }

    /// Returns the time of the turn on the wall clock, for records and cookies.
    pub(super) fn unix(&self) -> UnixTime {
        self.now.unix
    }

    /// Returns an instant of this run in calendar time, as if the calendar had not been set since
    /// the run began. The differences of such times are exact.
    pub(super) fn steady(&self, at: Instant) -> UnixTime {
        self.began.unix_of(at)
    }

    /// Returns the time since the run began.
    pub(super) fn elapsed(&self) -> Duration {
        self.now.at.since(self.began.at)
    }

    /// Adds an action for the world, behind those added before.
    pub(super) fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// Takes out the next action for the world.
    pub(super) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns whether an action waits for the world.
    pub(super) fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Ends the turn: the next one has its whole budgets of work.
    pub(super) fn end(&mut self) {
        self.ledger.end_turn();
    }

    /// Charges work that was done, in units (see `ledger`), to the budget of its kind.
    pub(super) fn charge(&mut self, work: Work, units: usize) {
        self.ledger.charge(work, units);
    }

    /// Returns how many units of this kind of work may still be done in this turn (see `ledger`).
    pub(super) fn left(&self, work: Work) -> usize {
        self.ledger.left(work)
    }

    /// Returns whether the budget of this kind of work is spent, so that more of it must wait for
    /// the next turn.
    pub(super) fn is_spent(&self, work: Work) -> bool {
        self.ledger.is_spent(work)
    }

    /// Returns how many units are left of the first half of the budget of this kind of work.
    pub(super) fn half_left(&self, work: Work) -> usize {
        self.ledger.half_left(work)
    }

    /// Returns whether half of the budget of this kind of work is spent.
    pub(super) fn is_half_spent(&self, work: Work) -> bool {
        self.ledger.is_half_spent(work)
    }

    /// Charges the CPU time from now on to `stage`, and adds `bytes` to what that stage has
    /// processed. Returns the stage that was charged before.
    pub(super) fn enter(&mut self, stage: Stage, bytes: usize) -> Stage {
        self.meter.enter(stage, bytes)
    }

    /// Charges the CPU time from now on to `stage` again, which [`Turn::enter`] returned.
    pub(super) fn back(&mut self, stage: Stage) {
        self.meter.back(stage);
    }

    /// Returns the account of work.
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the account of CPU time by stage.
    pub(super) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns the account of CPU time by stage, to charge time and bytes to it.
    pub(super) fn meter_mut(&mut self) -> &mut Meter {
        &mut self.meter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::stats::still;

    #[test]
    fn time_never_goes_back_and_a_new_turn_has_its_whole_budget() {
        let at = |secs| Now { at: Instant::ZERO + Duration::from_secs(secs), ..Now::default() };
        let mut turn = Turn::new(at(1), Meter::new(still), Ledger::new(100, 0));
        turn.set_time(at(5));
        turn.set_time(at(4));
        assert_eq!((turn.at(), turn.elapsed()), (at(5).at, Duration::from_secs(4)));
        turn.charge(Work::Scanned, 100);
        assert!(turn.is_spent(Work::Joined));
        turn.end();
        assert_eq!(turn.left(Work::Joined), 100);
    }
}
