//! What a member reports to the engine.

use super::settings::Difference;
use crate::cluster::Partition;
use crate::cluster::queue::{Key, Revision};
use crate::ground::time::Instant;

/// Something that happened to this node's part in the crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The settings are those of the crawl; this is its hash key.
    Agreed {
        /// The hash key of partitions and URLs.
        key: [u8; 16],
    },
    /// The settings aren't those of the crawl. The node takes no part in it.
    Refused(Difference),
    /// Another process is at work under this node's name. This one waits for it to end. Reported
    /// once.
    NameTaken,
    /// All nodes reckon with this one, which may take partitions from now on.
    Joined {
        /// The number of nodes, this one included.
        nodes: u32,
    },
    /// A partition is held.
    Taken {
        /// The partition.
        partition: Partition,
        /// The revision of the taking.
        epoch: Revision,
        /// The first epoch from which on nobody but this job directory's processes has held the
        /// partition. If it is earlier than `epoch`, whatever this job knew of the partition under
        /// the same `since` is still all there is to know.
        since: Revision,
        /// When requests may be sent, if the session lasts until then.
        asks_from: Instant,
    },
    /// A partition should go to another node: end what is under way, then call
    /// [`release`](super::Member::release). Reported once for each taking.
    GiveUp(Partition),
    /// A partition isn't held any more. Nothing may be sent or appended for it.
    Lost {
        /// The partition.
        partition: Partition,
    },
    /// An entry makes no sense: it is damaged, or of another program or version. What it is about
    /// counts as taken by somebody unknown, until the entry changes.
    Damaged {
        /// The entry.
        key: Key,
    },
    /// The node has left the crawl in order.
    Left,
}
