//! When visits to servers of one group began: no two within the group's delay.

use super::{Group, Laws};
use crate::ground::map::Map;
use crate::ground::time::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

/// Beginnings of visits, by group. They are not seen in order.
#[derive(Debug, Default)]
pub(super) struct Begun(Map<Group, BTreeSet<Instant>>);

impl Begun {
    /// A visit to a server of these groups began; what is wrong with that.
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
