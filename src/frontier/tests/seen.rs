//! What histories must have led through for their agreement with the model to mean anything.

use super::queues::tests::seen::Seen as OfQueues;
use super::*;
use std::ops::AddAssign;

/// What the disk had to do with it: what the queues counted, turns that left some of what was read
/// to the next, appends that failed, and URLs of servers that were given up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) queues: OfQueues,
    pub(super) parted: u32,
    pub(super) failures: u32,
    pub(super) given_up: u32,
}

impl Seen {
    pub(super) fn assert_enough(&self, policy: Policy) {
        let Self { parted, failures, given_up, .. } = *self;
        assert!(parted > 50 && failures > 20 && given_up > 200, "{self:?}");
        let OfQueues { evictions, before, halvings, doublings, .. } = self.queues;
        assert!(evictions > 500 && halvings > 50 && doublings > 20, "{self:?}");
        let OfQueues { reads, parts, overtaken, sweeps, moved, rebanded, .. } = self.queues;
        assert!(reads > 500 && parts > 50 && sweeps > 10 && moved > 50, "{self:?}");
        match policy.is_by_quality() {
            true => assert!(rebanded > 50, "{self:?}"),
            false => assert!(before > 50 && overtaken > 5, "{self:?}"),
        }
    }
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.queues += other.queues;
        self.parted += other.parted;
        self.failures += other.failures;
        self.given_up += other.given_up;
    }
}
