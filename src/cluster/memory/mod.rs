//! The memory of a partition is its log, and the log is kept short by *snapshots*: what it said up
//! to a message, each thing once, appended to it again in parts. When the last part is in the log,
//! all messages up to that one are purged.
//!
//! So a reader needs nothing but the log, and it doesn't matter who makes a snapshot, whether it is
//! completed, or whether two nodes make one at once: what was purged is in parts that are in the
//! log and weren't purged with it.
//!
//! A snapshot's records are in six sections, each sorted: settled URLs, tries, links (these by
//! fingerprint), facts (by source and target), waits and retired servers (by origin). The head of a
//! part says up to which message the snapshot goes, the part's number from 0, and whether it is the
//! last (see `record`).
//!
//! What is kept: of the links with a fingerprint one, unless it is settled; of the tries of a URL
//! the most, unless it is settled; of the waits of a server the longest; one cause for which a
//! server was retired; every fact once.
//!
//! A [`Merge`] is fed the messages of the log up to one, in order, in up to three passes: first
//! everything but parts is collected; then the parts of snapshots that aren't whole, which is rare;
//! then the parts of the largest whole snapshot are merged with what was collected, one after the
//! other, however large it is.
//!
//! Laws: a log and its snapshot say the same, wherever the log is cut, and if some of its messages
//! are repeated after it. Merging a snapshot alone changes nothing but the head. A record that
//! can't be read, or isn't where the order demands, is reported with its message and offset, and
//! nothing is to be purged then.
//! Cost: 6 bytes for a settled URL at 10^6 in the partition, 7 at 10^5, and what a record takes for
//! everything else. A merge keeps a new part and what it has collected, whose links take 24 bytes
//! each besides their records; 140 ns for a link of the old snapshot.

mod merge;
mod news;
mod parts;

#[cfg(test)]
mod tests;

pub use merge::{Merge, Step};

use super::record;
use std::fmt;

/// The maximum length of a part, in bytes.
pub const PART_BYTES: usize = 256 << 10;
/// The length of the messages at which a snapshot is made in any case, in bytes, because a merge
/// keeps all of them in memory.
const LOG_BYTES_MAX: u64 = 64 << 20;
/// The maximum memory for what a merge has collected, in bytes.
const COLLECTED_MAX: usize = 256 << 20;

/// Returns whether a partition should have a new snapshot: `log_bytes` is the length of the
/// messages since the last one, `snapshot_bytes` the length of that one, and `bytes_min` the least
/// length of messages that are worth one.
///
/// With messages of half the snapshot's length, a new owner reads at most half more than it must,
/// and each message costs at most three times its length to be written again.
pub fn is_due(log_bytes: u64, snapshot_bytes: u64, bytes_min: u64) -> bool {
    log_bytes >= (snapshot_bytes / 2).max(bytes_min).min(LOG_BYTES_MAX)
}

/// A defect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The number of messages that were read before it in this pass.
    pub message: u64,
    /// The offset of the defect, in bytes.
    pub offset: usize,
    /// The defect.
    pub flaw: Flaw,
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A record can't be read.
    Record(record::Flaw),
    /// A record of a snapshot is not where its order demands.
    Order,
    /// A part of the snapshot is not there any more: it was purged since the pass before.
    Missing,
    /// With this message, more is collected than a merge may keep in memory.
    Large,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(flaw) => flaw.fmt(f),
            Self::Order => f.write_str("contains a record out of order"),
            Self::Missing => f.write_str("should be a part of a snapshot that is gone"),
            Self::Large => f.write_str("is too much for a merge to keep in memory"),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, offset, flaw } = self;
        write!(f, "message {message} of a log: at byte {offset}: {flaw}")
    }
}

impl std::error::Error for Damage {}
