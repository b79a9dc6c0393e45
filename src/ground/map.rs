//! Hash maps and sets whose order repeats: the standard ones under a hasher of fixed seed.
//!
//! The standard hasher draws its seed per process, so that iteration order differs from run to
//! run. Here the seed is fixed; iteration order still must not decide anything. Keys that a page
//! author chooses go in as keyed fingerprints ([`crate::url::Fingerprint`]), or their count has a
//! cap.

#![expect(clippy::disallowed_types, reason = "the one place that names the standard maps")]

use foldhash::quality::FixedState;

/// A map with a fixed hasher.
pub type Map<K, V> = std::collections::HashMap<K, V, FixedState>;

/// A set with a fixed hasher.
pub type Set<K> = std::collections::HashSet<K, FixedState>;
