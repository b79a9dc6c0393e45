//! An audit of the ready queue: computes all ranks from nothing, for whoever judges a simulation.
//!
//! The formulas of design D5 are written out a second time, over the qualities of the URLs, without
//! any sum or order that is kept. An inverted or forgotten rank can't agree with them by chance.
//! Cost: looks at all servers and groups; never called by a crawl.

use super::policy::Policy;
use super::server::Standing;
use super::{Burst, Scheduler, Server, ServerId};

/// The queue of a server, for an audit.
#[derive(Clone, Debug, Default)]
pub struct Audited {
    /// URLs in it.
    pub urls: usize,
    /// Qualities, in millionths, of the URLs that may count, best first.
    pub best: Vec<u64>,
}

/// Gain and cost of a visit.
type Worth = (u128, u128);

impl Scheduler {
    /// Checks that the first server of the ready queue is the best, that the queue and its counts
    /// are consistent, and that no server waits in a group that would admit it.
    ///
    /// # Errors
    /// The first server that is out of place, and why.
    pub fn audit(&self, queue: impl Fn(ServerId) -> Audited) -> Result<(), String> {
        let servers = || self.servers.iter().enumerate();
        let all = |standing| servers().filter(move |(_, one)| one.standing == standing);
        let worth = |(index, server)| {
            let id = ServerId::from_index(index);
            (id, self.worth(server, queue(id)))
        };
        let line: Vec<_> = all(Standing::InLine).map(worth).collect();
        let found = [line.len(), all(Standing::Asleep).count(), all(Standing::Held).count()];
        let counted = [self.ready.len(), self.asleep.len(), self.groups.held()];
        if found != counted {
            return Err(format!("{found:?} are ready, snoozed, held; {counted:?} are counted"));
        }
        if let Some(id) = self.forgotten() {
            return Err(format!("{} waits in a group for nothing", self.origin(id).as_str()));
        }
        let Some((_, &first)) = self.ready.first_key_value() else { return Ok(()) };
        let worth = self.worth(self.server(first), queue(first));
        for (id, other) in line {
            let earlier = (self.server(id).arrival, id) < (self.server(first).arrival, first);
            if is_better(other, worth) || (!is_better(worth, other) && earlier) {
                let [own, others] = [first, id].map(|id| self.origin(id).as_str());
                return Err(format!("{own} {worth:?} goes before {others} {other:?}"));
            }
        }
        Ok(())
    }

    /// A server that a group with room holds back without an alarm, and that is better than all in
    /// the queue that might go in its place. There must be none.
    fn forgotten(&self) -> Option<ServerId> {
        let is_forgotten = |(group, rank, _): &(_, _, _)| {
            let mut better = self.ready.range(..rank);
            !better.any(|(_, id)| self.server(*id).groups.contains(&Some(*group)))
        };
        self.groups.unalarmed().find(is_forgotten).map(|(.., id)| id)
    }

    fn worth(&self, server: &Server, queue: Audited) -> Worth {
        let schedule = &self.settings.schedule;
        let (connect_us, response_us, allowance) = server.estimates.or_assumed(schedule);
        let burst = match self.settings.burst {
            _ if server.crawl_delay().is_some() => 1,
            Burst::Requests(most) => most,
            Burst::Server => u32::MAX,
        };
        let pages = queue.urls.min(burst.min(allowance).max(1) as usize);
        let speedup = if allowance > 1 { u128::from(schedule.speedup_milli.max(1)) } else { 1_000 };
        let opening = if server.estimates.is_parked { 0 } else { 2 * u128::from(connect_us) };
        let slot = opening + pages as u128 * u128::from(response_us) * 1_000 / speedup;
        let quality = |most: usize| queue.best.iter().take(most).copied().map(u128::from).sum();
        match schedule.policy {
            Policy::Bfs => (1, 1),
            Policy::Performance => (pages as u128, slot.max(1)),
            Policy::Quality => (quality(1), 1),
            Policy::Capability => (quality(pages), slot.max(1)),
        }
    }
}

fn is_better((gain, cost): Worth, (others_gain, others_cost): Worth) -> bool {
    gain * others_cost > others_gain * cost
}
