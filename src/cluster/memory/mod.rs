//! The memory of a partition: what its log says, for a new owner, and snapshots that keep the log
//! short.
//!
//! A new owner reads the last snapshot of the partition and then the messages since, twice: first
//! it learns what is settled, how often URLs were tried and what servers wait for, then it receives
//! the links that aren't settled ([`Replay`]). A snapshot says what a log says, each thing once. A
//! new one is the old one merged with the messages since ([`Merge`]).
//!
//! A snapshot consists of parts, which are read and written one after the other, however large the
//! snapshot is. Its records are in six sections, each sorted: settled URLs, tries, links (these by
//! fingerprint), facts (by source and target), waits and retired servers (by origin).
//!
//! ```text
//! part  one frame (see `ground::frame`) of kind 1:
//!       format u8 (1) | partition u16 | sequence u64 | number u32 | whether it is the last u8
//!       | record* (see `record`)
//! ```
//!
//! `sequence` is the number of the last message that the snapshot includes, and the same in all
//! parts. `number` counts the parts from 0. There is at least one.
//!
//! What is kept: of the links with a fingerprint the first, unless it is settled; of the tries of a
//! URL the most, unless it is settled; of the waits of a server the longest; the first cause for
//! which a server was retired; every fact once.
//!
//! Laws: replaying a log gives the same as replaying a snapshot of its beginning and then the rest,
//! wherever it is cut, and if some messages of the beginning are repeated in the rest. Merging
//! nothing changes nothing. A damaged, missing or foreign part is reported with its number, and an
//! unreadable record with its offset.
//! Cost: 6 bytes for a settled URL at 10^6 in the partition, 7 at 10^5, and what a record takes for
//! everything else. A replay keeps 8 bytes for each settled URL of the snapshot, and about 16 for
//! those of the messages. A merge keeps one old part, one new part and the messages, whose links
//! take 24 bytes each besides their records.

mod merge;
mod news;
mod part;
mod replay;

#[cfg(test)]
mod tests;

pub use merge::{Merge, Merging, merge};
pub use replay::{Cursor, Known, Links, Replay};

use super::record;
use crate::ground::frame;
use std::fmt;

/// The maximum length of a part, in bytes.
pub const PART_BYTES: usize = 256 << 10;
/// The least length of the messages that are worth a snapshot, in bytes.
const LOG_BYTES_MIN: u64 = 4 << 20;
/// The length of the messages at which a snapshot is made in any case, in bytes, because a merge
/// keeps all of them in memory.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Returns whether a partition should have a new snapshot: `log_bytes` is the length of the
/// messages since the last one, and `snapshot_bytes` the length of that one.
///
/// With messages of half the snapshot's length, a new owner reads at most half more than it must,
/// and each message costs at most three times its length to be written again.
pub fn is_due(log_bytes: u64, snapshot_bytes: u64) -> bool {
    log_bytes >= (snapshot_bytes / 2).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX)
}

/// What was being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A part of a snapshot, by its number.
    Part(u32),
    /// A message: the number of messages that were read before it.
    Message(u64),
}

/// A defect of a part or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The part that was expected, or the message.
    pub source: Source,
    /// The offset of the defect, in bytes.
    pub offset: usize,
    /// The defect.
    pub flaw: Flaw,
}

/// What is wrong with a part or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The part is not intact.
    Frame(frame::Flaw),
    /// The part is not the expected one of this snapshot.
    Foreign,
    /// The snapshot has no last part.
    Missing,
    /// A record can't be read.
    Record(record::Flaw),
    /// A record is not where its order demands.
    Order,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(flaw) => flaw.fmt(f),
            Self::Foreign => f.write_str("is not the next part of this snapshot"),
            Self::Missing => f.write_str("is missing, though it is not the end of the snapshot"),
            Self::Record(flaw) => flaw.fmt(f),
            Self::Order => f.write_str("contains a record out of order"),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::Part(number) => write!(f, "part {number} of a snapshot"),
            Source::Message(number) => write!(f, "message {number} of a log"),
        }?;
        write!(f, ": at byte {}: {}", self.offset, self.flaw)
    }
}

impl std::error::Error for Damage {}

impl Damage {
    /// Returns the report of a record that can't be read.
    fn of_record(source: Source, damage: record::Damage) -> Self {
        let record::Damage { offset, flaw } = damage;
        Self { source, offset, flaw: Flaw::Record(flaw) }
    }
}
