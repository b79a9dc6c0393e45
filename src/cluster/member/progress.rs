//! The write of one entry that is in progress: at most one at a time.
//!
//! Every write names the revision that it expects. So once the entry is known to have a later one,
//! a write that was begun before it has been carried out or never will be, and its answer doesn't
//! matter. An answer that says nothing (it is lost, late, or the entry has changed) is not resolved
//! by asking: the write is repeated, or the entry is seen.

use crate::cluster::queue::WriteId;
use crate::ground::time::Instant;
use std::time::Duration;

/// The progress of the writes of one entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The write whose answer is awaited, and when it counts as lost.
    pending: Option<(WriteId, Instant)>,
    /// No write is begun before this instant.
    not_before: Instant,
}

impl Progress {
    /// Whether a write may begin.
    pub(super) fn is_free(&self, now: Instant) -> bool {
        self.due() <= now
    }

    /// Returns when a write may begin.
    pub(super) fn due(&self) -> Instant {
        self.pending.map_or(self.not_before, |(_, late)| late)
    }

    /// Notes a write that begins.
    pub(super) fn begin(&mut self, id: WriteId, late: Instant) {
        self.pending = Some((id, late));
    }

    /// Notes an answer. Returns false if it isn't that of the write in progress.
    pub(super) fn end(&mut self, id: WriteId) -> bool {
        self.pending.take_if(|(pending, _)| *pending == id).is_some()
    }

    /// Puts off the next write, unless the entry changes before.
    pub(super) fn wait(&mut self, now: Instant, by: Duration) {
        self.not_before = now + by;
    }

    /// Notes that the entry has changed, or that nothing that was asked is awaited any more.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}
