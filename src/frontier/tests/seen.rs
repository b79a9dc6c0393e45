//! What histories must have led through for their agreement with the model to mean anything.

use super::*;
use std::ops::AddAssign;

/// Jobs of each kind done, turns that left some of what was read to the next, appends that failed,
/// and what the frontier counted itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) backs: u32,
    pub(super) merges: u32,
    pub(super) sweeps: u32,
    pub(super) parted: u32,
    pub(super) failures: u32,
    pub(super) packs: u32,
    pub(super) cuts: u32,
    pub(super) halvings: u32,
    pub(super) doublings: u32,
    pub(super) mixed: u32,
}

impl Seen {
    pub(super) fn assert_enough(&self, policy: Policy) {
        let Self { backs, merges, sweeps, parted, failures, .. } = *self;
        assert!(backs > 500 && merges > 50 && sweeps > 10 && failures > 20, "{self:?}");
        assert!(parted > 50, "{self:?}");
        let Self { packs, cuts, halvings, doublings, mixed, .. } = *self;
        assert!(packs > 500 && cuts > 500 && halvings > 50 && doublings > 20, "{self:?}");
        assert!(mixed > 50 || !policy.is_by_quality(), "{self:?}");
    }
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.backs += other.backs;
        self.merges += other.merges;
        self.sweeps += other.sweeps;
        self.parted += other.parted;
        self.failures += other.failures;
        self.packs += other.packs;
        self.cuts += other.cuts;
        self.halvings += other.halvings;
        self.doublings += other.doublings;
        self.mixed += other.mixed;
    }
}
