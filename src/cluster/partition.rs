//! Partitions of the web, and which node each of them should go to.
//!
//! A registrable domain belongs to one of 1,024 partitions, by a keyed hash that all nodes of a
//! crawl compute alike. So the servers of a host and the hosts of a domain always have one owner,
//! and the rests of servers, hosts and domains need no word between nodes.
//!
//! A partition goes to the node with the highest hash of partition and name (*rendezvous hashing*),
//! so that a node that joins or leaves moves its own share and no other.
//! Law: if a node is added to a set, each partition keeps its node or goes to the new one.
//! Cost: 50 ns for the partition of a host; 20 ns a node to choose one.
//! Source: Thaler and Ravishankar, "A name-based mapping scheme for rendezvous" (1996).

use crate::url::Fingerprinter;
use crate::url::domain::registrable;
use std::fmt;

/// The number of partitions: enough that a hundred nodes have ten each, few enough that a node can
/// keep a batch of messages for each.
pub const PARTITIONS: u16 = 1 << BITS;
const BITS: u32 = 10;

/// One of the [`PARTITIONS`] parts of the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(u16);

impl Partition {
    /// Returns the partition with this number; `None` if there is none.
    pub fn new(number: u16) -> Option<Self> {
        (number < PARTITIONS).then_some(Self(number))
    }

    /// Returns the number of the partition, below [`PARTITIONS`].
    pub fn number(self) -> u16 {
        self.0
    }

    /// Returns the number of the partition as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns all partitions, in the order of their numbers.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..PARTITIONS).map(Self)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}", self.0)
    }
}

/// Computes partitions under the hash key of a crawl.
#[derive(Clone, Copy, Debug)]
pub struct Partitioner {
    hasher: Fingerprinter,
}

impl Partitioner {
    /// Creates a partitioner for the hash key of a crawl.
    pub fn new(key: [u8; 16]) -> Self {
        Self { hasher: Fingerprinter::new(key) }
    }

    /// Returns the partition of a canonical host: that of its registrable domain.
    pub fn of(&self, host: &str) -> Partition {
        let hash = self.hasher.of(registrable(host).as_bytes());
        Partition((hash.0 >> (u64::BITS - BITS)) as u16)
    }

    /// Returns the node that a partition should go to, of those with these names; `None` if there
    /// are none. The order of the names doesn't matter.
    pub fn node_for<'a>(
        &self,
        partition: Partition,
        nodes: impl Iterator<Item = &'a str>,
    ) -> Option<&'a str> {
        let mut text = Vec::with_capacity(64);
        nodes.max_by_key(|name| {
            text.clear();
            text.extend_from_slice(&partition.0.to_le_bytes());
            text.extend_from_slice(name.as_bytes());
            (self.hasher.of(&text), *name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 16] = *b"partition's key.";

    #[test]
    fn a_domain_is_in_one_partition() {
        let partitioner = Partitioner::new(KEY);
        let of = |host| partitioner.of(host);
        assert_eq!(of("www.example.co.uk"), of("example.co.uk"));
        assert_eq!(of("example.co.uk."), of("example.co.uk"));
        assert_ne!(of("a.github.io"), of("b.github.io"), "the hash of these differs");
        assert_ne!(Partitioner::new([0; 16]).of("a.example"), of("a.example"));
    }

    #[test]
    fn partitions_have_even_shares_of_domains() {
        let partitioner = Partitioner::new(KEY);
        let mut domains = vec![0; usize::from(PARTITIONS)];
        (0..102_400).for_each(|n| domains[partitioner.of(&format!("d{n}.test")).index()] += 1);
        // 100 each; the standard deviation is 10.
        assert!(domains.iter().all(|domains| (50..160).contains(domains)), "{domains:?}");
    }

    /// A node that joins takes its share, evenly from all, and nothing else moves.
    #[test]
    fn joining_moves_a_share() {
        let partitioner = Partitioner::new(KEY);
        let names: Vec<String> = (0..20).map(|n| format!("node-{n}")).collect();
        let mut before: Vec<&str> = vec![""; usize::from(PARTITIONS)];
        for nodes in 1..=names.len() {
            let mut shares = vec![0; nodes];
            for partition in Partition::all() {
                let some = names[..nodes].iter().map(String::as_str);
                let node = partitioner.node_for(partition, some.rev()).expect("there are nodes");
                let was = std::mem::replace(&mut before[partition.index()], node);
                assert!(node == was || node == names[nodes - 1], "{partition}: {was} to {node}");
                shares[names.iter().position(|name| name == node).expect("one of them")] += 1;
            }
            let even = f64::from(PARTITIONS) / nodes as f64;
            let spread = 4.0 * even.sqrt();
            for share in shares {
                assert!((f64::from(share) - even).abs() <= spread, "{share} of {even}");
            }
        }
        let nobody = partitioner.node_for(Partition(0), std::iter::empty());
        assert_eq!(nobody, None);
    }
}
