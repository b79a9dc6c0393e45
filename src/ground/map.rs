//! Hash maps and sets with a fixed seed, so that their iteration order repeats.
//!
//! The standard hasher draws a seed for each process, so iteration order differs from run to run.
//! Here the seed is fixed; still, no decision may depend on iteration order. Keys that a page's
//! author chooses are inserted as keyed fingerprints ([`crate::url::Fingerprint`]), or their number
//! is bounded, so that collisions can't be planted.

#![expect(clippy::disallowed_types, reason = "the one place that names the standard maps")]

use foldhash::quality::FixedState;

/// A hash map whose hasher has a fixed seed.
pub type Map<K, V> = std::collections::HashMap<K, V, FixedState>;

/// A hash set whose hasher has a fixed seed.
pub type Set<K> = std::collections::HashSet<K, FixedState>;
