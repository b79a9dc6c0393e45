//! Deliberate faults of members and their queue, so that tests can show that they would be noticed.
//!
//! Compiled for unit tests only. A fault affects the thread that commits it.

use std::cell::Cell;

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) enum Sabotage {
    /// The queue carries out renewals of a session whatever revision the entry has.
    RenewedByPut,
    /// A session counts from the answer to a renewal.
    CountedFromAnswer,
    /// A session leaves the roll when it has passed, before it is fenced.
    EarlyShrink,
    /// A node becomes active before the others reckon with it.
    JoinedUnadopted,
    /// A session that has passed is over without a fence.
    NotFenced,
    /// A new owner asks at once.
    NotSettled,
    /// All clocks are taken for exact.
    DriftIgnored,
    /// An entry that shows another session than the owner's counts as its end, though it be older.
    StaleSessionOver,
    /// Whoever comes back asks at once, though it had not waited long enough before it went.
    UnsettledReturn,
    /// A node goes on with a partition whose release may yet be carried out.
    ReleaseResumed,
}

impl Sabotage {
    /// The faults that a story of one of the first seeds reveals. The last one needs an unlucky
    /// sequence of events, which has a test of its own.
    pub(in crate::cluster) const OF_STORIES: [Self; 9] = [
        Self::RenewedByPut,
        Self::CountedFromAnswer,
        Self::EarlyShrink,
        Self::JoinedUnadopted,
        Self::NotFenced,
        Self::NotSettled,
        Self::DriftIgnored,
        Self::StaleSessionOver,
        Self::UnsettledReturn,
    ];
}

thread_local! {
    static COMMITTED: Cell<Option<Sabotage>> = const { Cell::new(None) };
}

/// Breaks every member of this thread in that way; `None` ends it.
pub(in crate::cluster) fn commit(sabotage: Option<Sabotage>) {
    COMMITTED.set(sabotage);
}

/// Whether this is broken.
pub(in crate::cluster) fn is(sabotage: Sabotage) -> bool {
    COMMITTED.get() == Some(sabotage)
}
