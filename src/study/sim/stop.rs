//! The stops of the crawler's process (SIGSTOP, a machine that is suspended), between two turns or
//! amidst one.
//!
//! A process that is stopped amidst a turn has decided what to send and not sent it. It does when
//! it goes on, before it looks at anything else.

use crate::engine::contract::Action;
use crate::ground::time::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// The present or last stop of a process.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// Until when the process is stopped.
    until: Instant,
    /// For how long it is to be stopped when it is about to send next.
    at_send: Option<Duration>,
    /// What is left of the turn amidst which it was stopped.
    held: VecDeque<Action>,
    /// From when to when it was stopped amidst a turn.
    amidst: Option<(Instant, Instant)>,
}

impl Stop {
    /// Returns when the process may have a turn.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Stops the process until `until`.
    pub(super) fn stop(&mut self, until: Instant) {
        self.until = until;
    }

    /// Stops the process for this long when it is about to send next.
    pub(super) fn stop_at_send(&mut self, time: Duration) {
        self.at_send = Some(time);
    }

    /// Returns from when to when the process was stopped last amidst a turn.
    pub(super) fn amidst(&self) -> Option<(Instant, Instant)> {
        self.amidst
    }

    /// Returns whether something is left of a turn.
    pub(super) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns an action that is left of a turn, once the process goes on.
    pub(super) fn release(&mut self, now: Instant) -> Option<Action> {
        if self.until > now { None } else { self.held.pop_front() }
    }

    /// Stops the process if it is to be stopped before this action. Returns the action unless it
    /// has to wait for the process to go on.
    pub(super) fn passes(&mut self, action: Action, now: Instant) -> Option<Action> {
        if matches!(action, Action::Send(_))
            && let Some(time) = self.at_send.take()
        {
            self.until = now + time;
            self.amidst = Some((now, self.until));
        }
        if self.until <= now {
            return Some(action);
        }
        self.held.push_back(action);
        None
    }
}
