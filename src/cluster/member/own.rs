//! This node's own session, by its own count.
//!
//! The session is one chain of compare-and-set writes of the node's entry. It lasts for a lease
//! from the instant at which its last confirmed write was handed out, so a write that travels for
//! long counts from its beginning. Which of several unanswered writes was carried out is known by
//! the counter in the entry.
//!
//! A session whose count has run out isn't lost: nobody can end it but by a compare-and-set of the
//! same entry, so a renewal that succeeds proves that nobody has. Until then the node may not ask.
//! So an outage of the queue costs a pause, not a thousand takings. The session is lost if the
//! entry says so; then another one begins, with the next number.

use super::progress::Progress;
use super::settings::Timing;
#[cfg(test)]
use super::tests::sabotage::{self, Sabotage};
use super::value::{Idleness, NodeValue, Session, State};
use crate::cluster::queue::{Key, Name, Revision, Write, WriteFailure, WriteId};
use crate::ground::time::Instant;
use std::time::Duration;

/// The most unconfirmed writes that are remembered.
const ATTEMPTS_MAX: usize = 16;

/// What the own entry shows that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Another process renews a session under this node's name.
    Usurper,
    /// Anything else.
    Other,
}

/// What the own entry is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Says {
    pub(super) state: State,
    /// The revision of the roll that the node has adopted.
    pub(super) roll: Revision,
    pub(super) idleness: Idleness,
}

/// This node's own entry, and the session that it proves.
#[derive(Debug)]
pub(super) struct Own {
    name: Name,
    incarnation: u64,
    /// The process that had this job directory before, which is dead.
    previous: Option<u64>,
    timing: Timing,
    /// The last known revision and value of the entry; no value if it can't be decoded.
    known: Option<(Revision, Option<NodeValue>)>,
    /// When the entry changed, or the connection began.
    seen_at: Instant,
    /// The number of the session; `None` if there is none.
    session: Option<u64>,
    /// When the session ends by the own count.
    end: Instant,
    /// The writes that may have been carried out since the last known revision.
    attempts: Vec<Attempt>,
    progress: Progress,
    /// When the last write was handed out.
    sent_at: Instant,
    settling: Settling,
}

/// A write that was handed out.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    sent: Instant,
    value: NodeValue,
}

/// A clock whose hands are revisions: which takings have settled.
#[derive(Debug, Default)]
struct Settling {
    /// All takings up to this revision have settled.
    settled: Revision,
    /// The next such revision, and when it counts.
    next: Option<(Revision, Instant)>,
}

impl Settling {
    fn at(&mut self, now: Instant) -> Revision {
        if let Some((revision, _)) = self.next.take_if(|(_, at)| *at <= now) {
            self.settled = self.settled.max(revision);
        }
        self.settled
    }
}

impl Own {
    pub(super) fn new(name: Name, incarnation: u64, previous: Option<u64>, timing: Timing) -> Self {
        Self {
            name,
            incarnation,
            previous,
            timing,
            known: None,
            seen_at: Instant::ZERO,
            session: None,
            end: Instant::ZERO,
            attempts: Vec::new(),
            progress: Progress::default(),
            sent_at: Instant::ZERO,
            settling: Settling::default(),
        }
    }

    pub(super) fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the present session.
    pub(super) fn session(&self) -> Option<Session> {
        self.session.map(|number| Session { name: self.name.clone(), number })
    }

    /// Returns the number of the present session.
    pub(super) fn number(&self) -> Option<u64> {
        self.session
    }

    /// Returns the state that the entry is known to have in the present session.
    pub(super) fn state(&self) -> Option<State> {
        self.session.and(self.value()).map(|value| value.state)
    }

    /// Returns whether the entry shows a session of another process, which isn't over.
    pub(super) fn is_taken(&self) -> bool {
        let is_other = |value: NodeValue| !self.is_lineage(&value) && !value.state.is_over();
        self.session.is_none() && self.value().is_some_and(is_other)
    }

    /// Returns the first session of this node's lineage.
    pub(super) fn lineage(&self) -> u64 {
        self.value().map_or(u64::MAX, |value| value.lineage)
    }

    /// Returns when this node must stop asking.
    pub(super) fn end(&self) -> Instant {
        self.end
    }

    /// Returns up to which revision all takings have settled.
    pub(super) fn settled(&mut self, now: Instant) -> Revision {
        self.settling.at(now)
    }

    /// Notes that all entries are shown anew from now on.
    pub(super) fn connected(&mut self, now: Instant) {
        self.seen_at = now;
        self.progress.reset();
    }

    /// Notes what the entry says; `value` is `None` if it can't be decoded. Returns what was
    /// seen; `None` if it is old.
    pub(super) fn see(
        &mut self,
        now: Instant,
        revision: Revision,
        value: Option<NodeValue>,
    ) -> Option<Sight> {
        let before = match &self.known {
            Some((known, _)) if *known >= revision => return None,
            Some((_, before)) => *before,
            None => None,
        };
        self.known = Some((revision, value));
        self.seen_at = now;
        self.progress.reset();
        if self.settling.next.is_none() {
            self.settling.next = Some((revision, now + self.timing.settling));
        }
        self.settling.settled = self.settling.settled.max(value.map_or(Revision(0), |v| v.settled));
        #[cfg(test)]
        if sabotage::is(Sabotage::CountedFromAnswer) {
            self.attempts.iter_mut().for_each(|attempt| attempt.sent = now);
        }
        match value {
            Some(value) if self.is_same(&value) && value.state != State::Over => {
                self.confirm(&value);
            }
            _ => (self.session, self.end) = (None, Instant::ZERO),
        }
        // What was handed out expected an earlier revision.
        self.attempts.clear();
        let is_renewal = |value: NodeValue| {
            let same = |before: NodeValue| before.incarnation == value.incarnation;
            !self.is_lineage(&value) && !value.state.is_over() && before.is_some_and(same)
        };
        Some(if value.is_some_and(is_renewal) { Sight::Usurper } else { Sight::Other })
    }

    /// Takes the answer to a write of the entry.
    pub(super) fn wrote(
        &mut self,
        now: Instant,
        id: WriteId,
        answer: Result<Revision, WriteFailure>,
    ) {
        if !self.progress.end(id) {
            return;
        }
        let Some(Attempt { value, .. }) = self.attempts.last().copied() else { return };
        match answer {
            Ok(revision) => _ = self.see(now, revision, Some(value)),
            // Whose write it was that came first, the entry will show.
            Err(WriteFailure::Conflict) => self.progress.wait(now, self.timing.renewal),
            Err(WriteFailure::Unknown) => self.progress.wait(self.sent_at, self.timing.patience),
        }
    }

    /// Returns when the next write is due, if the entry is to say this. A session begins only for
    /// [`State::Joining`].
    pub(super) fn due(&self, says: Says) -> Instant {
        let Says { state, roll, idleness } = says;
        let due = match (self.session, self.value()) {
            (Some(_), Some(value)) => {
                let wait = match self.attempts[..] {
                    _ if value.state != state => Duration::ZERO,
                    // While many nodes begin, one write covers several changes of the roll.
                    _ if (value.roll, value.idleness) != (roll, idleness) => self.timing.pace,
                    [] => self.timing.renewal,
                    [..] => self.timing.patience,
                };
                self.sent_at + wait
            }
            _ if state != State::Joining => return Instant::FAR,
            _ => match self.known {
                None => Instant::ZERO,
                Some((_, None)) => return Instant::FAR,
                Some((_, Some(value))) if value.state.is_over() || self.is_lineage(&value) => {
                    Instant::ZERO
                }
                Some(_) => self.seen_at + self.timing.passing,
            },
        };
        due.max(self.progress.due())
    }

    /// Returns the next write, if one is due.
    pub(super) fn write(&mut self, now: Instant, id: WriteId, says: Says) -> Option<Write> {
        if self.due(says) > now {
            return None;
        }
        let Says { state, roll, idleness } = says;
        let settled = self.settling.at(now);
        let counter = self.attempts.last().map_or(0, |last| last.value.counter);
        let counter = counter.max(self.value().map_or(0, |value| value.counter)) + 1;
        let known = self.value();
        let number = self.session.unwrap_or_else(|| known.map_or(1, |value| value.number + 1));
        let lineage = match known {
            Some(value) if self.is_lineage(&value) => value.lineage,
            _ => number,
        };
        let incarnation = self.incarnation;
        let value =
            NodeValue { incarnation, number, lineage, state, counter, roll, settled, idleness };
        if self.attempts.len() == ATTEMPTS_MAX {
            self.attempts.remove(0);
        }
        self.attempts.push(Attempt { sent: now, value });
        self.sent_at = now;
        self.progress.begin(id, now + self.timing.patience);
        let expected = self.known.map(|(revision, _)| revision);
        Some(Write { id, key: Key::Node(self.name.clone()), expected, value: value.encode() })
    }

    /// Prolongs the session: the entry has this value, which this process has written.
    fn confirm(&mut self, value: &NodeValue) {
        let sent = self.attempts.iter().find(|attempt| attempt.value.counter == value.counter);
        if let Some(attempt) = sent {
            self.end = self.end.max(attempt.sent + self.timing.session);
        }
        self.session = Some(value.number).filter(|_| value.state != State::Left);
        if self.session.is_none() {
            self.end = Instant::ZERO;
        }
    }

    /// Whether the value is of the present session, or of the one that this process begins.
    fn is_same(&self, value: &NodeValue) -> bool {
        let begun = |attempt: &Attempt| attempt.value.number == value.number;
        value.incarnation == self.incarnation
            && (self.session == Some(value.number) || self.attempts.iter().any(begun))
    }

    /// Whether the value was written by this process, or by its dead predecessor.
    fn is_lineage(&self, value: &NodeValue) -> bool {
        value.incarnation == self.incarnation || Some(value.incarnation) == self.previous
    }

    fn value(&self) -> Option<NodeValue> {
        self.known.and_then(|(_, value)| value)
    }
}
