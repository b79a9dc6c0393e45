//! Masks of fingerprints: what a node knew of a partition before another had it doesn't count.

use crate::cluster::partition::PARTITIONS;
use crate::cluster::{Partition, Partitioner};
use crate::ground::random::mix;

/// For each partition, what the fingerprints of its URLs are combined with before this node's seen
/// test sees them. When a partition was another node's in between, it gets another mask, and the
/// seen test knows none of its URLs any more.
#[derive(Debug)]
pub(in crate::engine) struct Masks {
    partitioner: Partitioner,
    masks: Box<[u64]>,
}

impl Masks {
    pub(super) fn new(partitioner: Partitioner) -> Self {
        Self { partitioner, masks: vec![0; usize::from(PARTITIONS)].into() }
    }

    /// Returns the mask for the URLs of a host.
    pub(in crate::engine) fn of(&self, host: &str) -> u64 {
        self.masks[self.partitioner.of(host).index()]
    }

    /// Sets the mask of a partition to that of a generation.
    pub(super) fn set(&mut self, partition: Partition, generation: u32) {
        self.masks[partition.index()] = mask(partition, generation);
    }
}

/// Returns the mask of a partition in one of its generations.
pub(super) fn mask(partition: Partition, generation: u32) -> u64 {
    match generation {
        0 => 0,
        _ => mix(u64::from(generation) << 16 | u64::from(partition.number())),
    }
}
