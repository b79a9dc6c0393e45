//! Beginnings of visits per group (the servers of one address, or of one registrable domain): two
//! visits to a group must begin at least the group's delay apart.

use super::{Group, Laws};
use crate::ground::map::Map;
use crate::ground::time::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

/// The times at which visits began, by group. The caller does not add them in order of time.
#[derive(Debug, Default)]
pub(super) struct Begun(Map<Group, BTreeSet<Instant>>);

impl Begun {
    /// Adds a visit that began at `at` to a server of these groups; returns what is wrong with it,
    /// in words, or `None`.
    pub(super) fn visit(&mut self, laws: &Laws, groups: &[Group], at: Instant) -> Option<String> {
        let mut wrong = None;
        for group in groups {
            let delay = match group {
                Group::Address(_) => laws.address_delay,
                Group::Domain(_) => laws.domain_delay,
            };
            if delay == Duration::ZERO {
                continue;
            }
            let begun = self.0.entry(group.clone()).or_default();
            let before = begun.range(..=at).next_back().map(|other| at.since(*other));
            let after = begun.range(at..).next().map(|other| other.since(at));
            if let Some(gap) = before.into_iter().chain(after).find(|gap| *gap < delay) {
                wrong = Some(format!("visits to {group:?} began within {gap:?}, not {delay:?}"));
            }
            begun.insert(at);
        }
        wrong
    }
}
