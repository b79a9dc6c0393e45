//! Deliberate faults of the frontier, so that tests can show that they would be noticed.
//!
//! Compiled for unit tests only. A fault affects the thread that commits it.

use std::cell::Cell;

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// Ranks are inverted: the worst server goes first.
    RankInverted,
    /// A server keeps the rank with which it became ready.
    RanksStale,
    /// A group releases the worst of the servers that it holds back.
    WorstReleased,
    /// A third of the servers that become ready are in none of the lists by age.
    ListsIncomplete,
    /// A list of ready servers gives its youngest server.
    YoungestFirst,
    /// The list of the lowest ranks gets no turn while a better one has servers.
    ListSkipped,
    /// Servers don't rest.
    DelayIgnored,
    /// One URL in fifty is lost.
    UrlsDropped,
    /// Groups have no caps.
    CapsIgnored,
    /// The Crawl-delay of a robots.txt is ignored.
    CrawlDelayIgnored,
}

thread_local! {
    static COMMITTED: Cell<Option<Sabotage>> = const { Cell::new(None) };
}

/// Breaks every frontier of this thread in that way; `None` ends it.
pub(crate) fn commit(sabotage: Option<Sabotage>) {
    COMMITTED.set(sabotage);
}

/// Whether this is broken.
pub(in crate::frontier) fn is(sabotage: Sabotage) -> bool {
    COMMITTED.get() == Some(sabotage)
}
