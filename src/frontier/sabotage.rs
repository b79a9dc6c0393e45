//! Ways to break the scheduler on purpose, so that tests can show that it would be noticed.
//!
//! Not part of the program: it is there in unit tests only, and for the thread that asked for it.

use std::cell::Cell;

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// Ranks are turned round: the worst goes first.
    RankInverted,
    /// A rank stays what it was when its server came to stand in line.
    RanksStale,
    /// Of those that wait in a group the worst is let in line.
    WorstReleased,
    /// No rest is kept.
    DelayIgnored,
    /// One URL in fifty is lost.
    UrlsDropped,
    /// Groups have no caps.
    CapsIgnored,
    /// What robots.txt asks for counts for nothing.
    CrawlDelayIgnored,
}

thread_local! {
    static COMMITTED: Cell<Option<Sabotage>> = const { Cell::new(None) };
}

/// Breaks every frontier of this thread, or none any more.
pub(crate) fn commit(sabotage: Option<Sabotage>) {
    COMMITTED.set(sabotage);
}

/// Whether this is broken.
pub(super) fn is(sabotage: Sabotage) -> bool {
    COMMITTED.get() == Some(sabotage)
}
