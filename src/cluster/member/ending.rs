//! The end of the crawl: how the nodes find that none of them has anything left to do.
//!
//! A node without work may be given some by another node's message, so it isn't enough that each
//! of them was idle once. They agree in two steps, each in its own entry:
//! 1. A node that is idle says so, with the number of this period of idleness.
//! 2. A node that sees all sessions on the roll idle, and every partition held by one of them,
//!    reads its logs to their ends once more. If nothing has come it *confirms* what it saw: a
//!    digest of the sessions and their periods.
//!
//! The crawl is over when all of them have confirmed the same. A node that finds so says it when it
//! leaves, so that the others needn't have seen the last confirmation.
//!
//! Law: when a node finds that the crawl is over, no node has anything to do, and no log has a
//! message that its owner hasn't read. For each node was idle from its first step to its second
//! without a break, since the period is the same; and each second step came after all first ones.
//! So at the time of the last first step all were idle at once, what any of them had written was
//! in the logs, and the owners have read these to their ends after that.

use super::value::{Idleness, Session};
use crate::ground::random::mix;

/// This node's part in the end of the crawl.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// The number of periods so far.
    periods: u64,
    says: Idleness,
}

impl Ending {
    /// Returns what the own entry is to say.
    pub(super) fn says(&self) -> Idleness {
        self.says
    }

    /// Notes whether this node has anything to do.
    pub(super) fn set_idle(&mut self, is_idle: bool) {
        if is_idle == (self.says.period > 0) || self.says.is_over {
            return;
        }
        self.periods += u64::from(is_idle);
        let period = if is_idle { self.periods } else { 0 };
        self.says = Idleness { period, ..Idleness::default() };
    }

    /// Notes that nothing has come since the agreement was seen.
    pub(super) fn confirm(&mut self, agreement: u64) {
        self.says.confirmed = agreement;
    }

    /// Notes what is known of the confirmations of the others: whether `all` of them have confirmed
    /// what this node has, or `one` has found that they have. Returns whether the crawl is over.
    pub(super) fn conclude(&mut self, all: bool, one: bool) -> bool {
        self.says.is_over |= self.says.confirmed != 0 && (all || one);
        self.says.is_over
    }
}

/// Returns a number for these sessions and their periods of idleness: another one for others.
pub(super) fn agreement(sessions: &mut [(Session, u64)]) -> u64 {
    sessions.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    let mut sum = 0;
    for (session, period) in sessions {
        let name = session.name.as_str().bytes().map(u64::from);
        for part in name.chain([session.number, *period]) {
            sum = mix(sum ^ part);
        }
    }
    sum.max(1)
}
