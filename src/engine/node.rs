//! The settings of a crawl that is a part of a larger one: one node of a cluster.

#[cfg(feature = "cluster")]
use crate::cluster::{member, outbox, queue::Name};
#[cfg(feature = "cluster")]
use std::time::Duration;

#[cfg(feature = "cluster")]
/// What makes this crawl a part of a larger one.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of this node.
    pub node: Name,
    /// A random number, another one for each process.
    pub incarnation: u64,
    /// The number of the process that had the same job directory before.
    pub previous: Option<u64>,
    /// What all nodes have in common.
    pub member: member::Settings,
    /// The limits on what waits to be published.
    pub outbox: outbox::Settings,
    /// The size of the cache of links that were sent, as a power of two.
    pub sent_log2: u32,
    /// The size of the cache of pairs of domains that were sent, as a power of two. It is allocated
    /// only if links between domains are counted.
    pub facts_log2: u32,
    /// The most bytes of a log that are read at once.
    pub portion_bytes: usize,
    /// The length of the messages in a log that are worth a snapshot, in bytes.
    pub snapshot_bytes_min: u64,
    /// How long the queue is asked to wait for messages in a log that has nothing new.
    pub reading_wait: Duration,
    /// What this node breaks on purpose, to test that a judge notices.
    pub broken: Option<Broken>,
}

#[cfg(feature = "cluster")]
/// A promise that a node breaks on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A page is settled in its log at once, before its links are in theirs.
    SettledFirst,
    /// Rests of addresses are not multiplied by the number of nodes.
    PaceUndivided,
    /// A checkpoint has positions in logs that are ahead of what it knows.
    PositionAhead,
    /// The crawl counts as over as soon as all nodes say that they are idle.
    EndsUnconfirmed,
}

/// What makes this crawl a part of a larger one: nothing does.
#[cfg(not(feature = "cluster"))]
#[derive(Clone, Debug)]
pub enum Settings {}
