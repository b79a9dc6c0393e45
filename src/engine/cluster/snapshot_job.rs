//! The job that merges a portion of a log into a snapshot: sorting and merging may take longer than
//! a turn.
//!
//! Cost: 140 ns for a link, and less for anything else.

use crate::cluster::memory::{Damage, Merge, Step};
use crate::cluster::queue::{Delivery, Sequence};

/// The merging of a portion of a log.
#[derive(Debug)]
pub struct SnapshotJob {
    /// The number of the snapshot.
    pub(super) number: u64,
    pub(super) merge: Merge,
    pub(super) messages: Vec<Delivery>,
    /// Whether the portion is the last one.
    pub(super) is_last: bool,
}

/// The result of a [`SnapshotJob`].
#[derive(Debug)]
pub struct SnapshotDone {
    pub(super) number: u64,
    pub(super) merge: Merge,
    /// The last message that was merged.
    pub(super) after: Option<Sequence>,
    /// The parts that are full.
    pub(super) parts: Vec<Vec<u8>>,
    /// What is to be done next if the portion was the last one.
    pub(super) step: Result<Option<Step>, Damage>,
}

impl SnapshotJob {
    /// Merges the portion.
    pub fn run(self) -> SnapshotDone {
        let Self { number, mut merge, messages, is_last } = self;
        let mut parts = Vec::new();
        let mut emit = |part| parts.push(part);
        let merged = messages.iter().try_for_each(|it| merge.message(&it.payload, &mut emit));
        let step = merged.and_then(|()| match is_last {
            true => merge.end_pass(&mut emit).map(Some),
            false => Ok(None),
        });
        let after = messages.last().map(|message| message.sequence);
        SnapshotDone { number, merge, after, parts, step }
    }
}
