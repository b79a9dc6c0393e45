//! Groups of servers that share politeness: a host, an address, a registrable domain.
//!
//! A group has a clock and a cap on simultaneous visits. A server that its group holds back waits
//! in the group, and is woken by the clock or by the end of a visit, never found by a scan.

use super::policy::Rank;
use super::rest::Settings;
#[cfg(test)]
use super::sabotage::{self, Sabotage};
use super::server::ServerId;
use crate::time::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Number of a group, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupId(pub(super) u32);

impl GroupId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a group's servers have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// The host name: at most one visit at a time, whatever scheme or port.
    Host,
    /// The address: what shared hosting has in common, and what a content network has too.
    Address,
    /// The registrable domain.
    Domain,
}

/// One group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) kind: GroupKind,
    /// Visits under way.
    active: u32,
    /// Visits at the same time; `u32::MAX` is no cap.
    cap: u32,
    /// Rest of the group after a visit; a host rests as long as the server that was visited.
    pub(super) delay: Duration,
    /// No visit before this.
    pub(super) next: Instant,
    /// Servers held back, by rank.
    pub(super) waiting: BTreeMap<Rank, ServerId>,
}

impl Group {
    pub(super) fn new(kind: GroupKind, settings: &Settings) -> Self {
        let (cap, delay) = match kind {
            GroupKind::Host => (1, Duration::ZERO),
            GroupKind::Address => (settings.address_visits_max, settings.address_delay),
            GroupKind::Domain => (settings.domain_visits_max, settings.domain_delay),
        };
        let cap = if cap == 0 { u32::MAX } else { cap };
        #[cfg(test)]
        let cap = if sabotage::is(Sabotage::CapsIgnored) { u32::MAX } else { cap };
        let (next, waiting) = (Instant::ZERO, BTreeMap::new());
        Self { kind, active: 0, cap, delay, next, waiting }
    }

    /// Whether one more visit may begin.
    pub(super) fn admits(&self, now: Instant) -> bool {
        self.active < self.cap && self.next <= now
    }

    /// Whether the cap allows for one more visit.
    pub(super) fn has_room(&self) -> bool {
        self.active < self.cap
    }

    /// Whether only the clock holds it back.
    pub(super) fn rests(&self, now: Instant) -> bool {
        self.active < self.cap && self.next > now
    }

    pub(super) fn enter(&mut self) {
        self.active += 1;
        debug_assert!(self.active <= self.cap, "a group is never above its cap");
    }

    /// A visit ended at `ended` (`None`: it never began); its server rests until `due`.
    pub(super) fn leave(&mut self, visit: Option<(Instant, Instant)>) {
        assert!(self.active > 0, "a group counts each visit once");
        self.active -= 1;
        if let Some((ended, due)) = visit {
            let own = ended + self.delay;
            let next = if self.kind == GroupKind::Host { due.max(own) } else { own };
            self.next = self.next.max(next);
        }
    }
}
