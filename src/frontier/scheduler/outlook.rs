//! What a ready server waits for, and how long the URLs of a server will take, for reports.
//!
//! Cost: some comparisons, and a look at up to three groups.

use super::{GroupKind, Scheduler, ServerId, Visit};
use crate::ground::time::Instant;
use std::time::Duration;

impl Scheduler {
    /// Returns the kind of group that doesn't admit a visit to a server now, and the instant before
    /// which it will not; `None` if all its groups admit one.
    pub fn blocked_by(&self, id: ServerId, now: Instant) -> Option<(GroupKind, Instant)> {
        let groups = GroupKind::ALL.into_iter().zip(self.server(id).groups);
        let mut groups = groups.filter_map(|(kind, group)| Some((kind, group?)));
        let (kind, group) = groups.find(|(_, group)| !self.groups.admits(*group, now))?;
        Some((kind, self.groups.next(group)))
    }

    /// Estimates how long `urls` URLs of a server take from the beginning of the first visit, if
    /// each visit begins when the rest after the last one is over.
    pub fn time_of(&self, id: ServerId, urls: u32) -> Duration {
        let (server, settings) = (self.server(id), &self.settings);
        let pace = self.pace(id);
        let burst = server.burst(pace.burst);
        let pages = server.estimates.visit_max(burst, &settings.schedule).min(urls).max(1);
        let slot_us = server.estimates.slot_us(u64::from(pages), &settings.schedule);
        let slot = Duration::from_micros(slot_us);
        let visit = Visit::new(pages, Instant::ZERO, Instant::ZERO + slot);
        let rest = pace.rest(&visit, server.crawl_delay());
        let visits = urls.div_ceil(pages);
        slot.saturating_mul(visits) + rest.saturating_mul(visits.saturating_sub(1))
    }
}
