//! The settings that all nodes of a crawl have in common, and the times that follow from them.
//!
//! The clocks of two nodes agree on nothing, but neither runs faster or slower than true time by
//! more than the bound on drift. So whoever must not be late measures a shorter time, and whoever
//! must not be early a longer one.

#[cfg(test)]
use super::tests::sabotage::{self, Sabotage};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The settings of a node that must be those of the crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The hash key of the crawl. Only the node that begins the crawl has its own accepted; the
    /// others take the crawl's.
    pub key: [u8; 16],
    /// The number of partitions: [`PARTITIONS`](crate::cluster::partition::PARTITIONS), fewer in
    /// tests.
    pub partitions: u16,
    /// How long a session lasts after it was renewed.
    pub ttl: Duration,
    /// How much faster or slower than true time a clock may run, in millionths.
    pub drift_ppm: u32,
    /// How long a new owner of a partition waits before it asks: the longest rest of a server.
    pub settle: Duration,
    /// Other settings that must be equal, by name.
    pub equal: Vec<(Box<str>, Box<str>)>,
}

/// A setting in which a node differs from its crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name of the setting.
    pub setting: Box<str>,
    /// Its value in this node; empty if it has none.
    pub own: Box<str>,
    /// Its value in the crawl; empty if it has none.
    pub crawl: Box<str>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, own, crawl } = self;
        let or_none = |value: &str| if value.is_empty() { "nothing" } else { value }.to_owned();
        let (own, crawl) = (or_none(own), or_none(crawl));
        write!(
            f,
            "`{setting}` is {own} here, but {crawl} in the crawl that this node is to share: give \
             all nodes the same value, or begin another crawl"
        )
    }
}

/// Durations by this node's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// How long this node's session lasts after a renewal was handed out.
    pub(super) session: Duration,
    /// How long after the last change that was seen another node's session has passed.
    pub(super) passing: Duration,
    /// How long a new owner of a partition waits.
    pub(super) settling: Duration,
    /// The time between two renewals.
    pub(super) renewal: Duration,
    /// The least time between two writes of a node's own entry that name a new roll.
    pub(super) pace: Duration,
    /// How long an answer may take before it counts as lost.
    pub(super) patience: Duration,
}

impl Settings {
    /// Returns a setting in which this node differs from `crawl`; `None` if they agree. The hash
    /// key isn't compared.
    pub fn difference(&self, crawl: &Self) -> Option<Difference> {
        let (own, theirs) = (self.by_name(), crawl.by_name());
        let names = own.keys().chain(theirs.keys());
        let differing = names.into_iter().find(|name| own.get(*name) != theirs.get(*name))?;
        let value = |of: &BTreeMap<&str, Box<str>>| of.get(differing).cloned().unwrap_or_default();
        let setting = (*differing).into();
        Some(Difference { setting, own: value(&own), crawl: value(&theirs) })
    }

    fn by_name(&self) -> BTreeMap<&str, Box<str>> {
        let equal = self.equal.iter().map(|(name, value)| (&**name, value.clone()));
        let text = |value: String| value.into_boxed_str();
        let drift = format!("{} ppm", self.drift_ppm);
        let own = [
            ("partitions", text(self.partitions.to_string())),
            ("lease", text(format!("{:?}", self.ttl))),
            ("drift", text(drift)),
            ("settling time", text(format!("{:?}", self.settle))),
        ];
        own.into_iter().chain(equal).collect()
    }

    pub(super) fn timing(&self) -> Timing {
        let drift_ppm = self.drift_ppm.min(500_000);
        #[cfg(test)]
        let drift_ppm = if sabotage::is(Sabotage::DriftIgnored) { 0 } else { drift_ppm };
        let drift = |time: Duration| time * drift_ppm / 1_000_000;
        // The clock is read in whole microseconds.
        let longer = |time: Duration| time + drift(time) + Duration::from_micros(1);
        let settling = longer(self.settle);
        #[cfg(test)]
        let settling = if sabotage::is(Sabotage::NotSettled) { Duration::ZERO } else { settling };
        Timing {
            session: self.ttl.saturating_sub(drift(self.ttl)),
            passing: longer(self.ttl),
            settling,
            renewal: self.ttl / 3,
            pace: self.ttl / 24,
            patience: self.ttl / 6,
        }
    }
}
