//! The order of ready servers, computed from nothing: for whoever judges a simulated crawl.
//!
//! The formulas of design D5 written out once more, over the URLs in memory, with no sum or order
//! that is kept: an inverted or forgotten rank can't agree with it by chance.
//! Cost: looks at every URL of every ready server; never on the road of a crawl.

use super::policy::Policy;
use super::server::Hold;
use super::{Burst, Frontier, Server, ServerId, ServerState};

/// Gain and cost of a visit.
type Worth = (u128, u128);

impl Frontier {
    /// Checks that nobody in line goes before one that is better, in line or in a group that would
    /// admit it.
    ///
    /// # Errors
    /// The first server that is out of place, and why.
    pub fn audit(&self) -> Result<(), String> {
        let ready = |(number, server): (usize, &Server)| {
            let in_line = server.state == ServerState::Ready && server.hold != Hold::Held;
            in_line.then(|| (ServerId::from_index(number), self.worth(server)))
        };
        let line: Vec<_> = self.servers.iter().enumerate().filter_map(ready).collect();
        if line.len() != self.workbench.ready() {
            return Err(format!("{} are ready, {} in line", line.len(), self.workbench.ready()));
        }
        if let Some(id) = self.workbench.forgotten(&self.servers) {
            return Err(format!("{} waits in a group for nothing", self.origin(id).as_str()));
        }
        let Some(first) = self.workbench.coming(0) else { return Ok(()) };
        let worth = self.worth(self.server(first));
        for (id, other) in line {
            let (server, best) = (self.server(id), self.server(first));
            let earlier = (server.arrival, id) < (best.arrival, first);
            if is_better(other, worth) || (!is_better(worth, other) && earlier) {
                let [own, others] = [first, id].map(|id| self.origin(id).as_str());
                return Err(format!("{own} {worth:?} goes before {others} {other:?}"));
            }
        }
        Ok(())
    }

    fn worth(&self, server: &Server) -> Worth {
        let schedule = &self.settings.schedule;
        let by_quality = schedule.policy.is_by_quality();
        let mut items = self.in_memory(server);
        if by_quality {
            items.sort_by_key(|item| (!item.is_prior(), u64::MAX - item.quality.millionths()));
        }
        let (connect_us, response_us, allowance) = server.estimates.told(schedule);
        let burst = match self.settings.burst {
            _ if server.crawl_delay().is_some() => 1,
            Burst::Requests(most) => most,
            Burst::Server => u32::MAX,
        };
        let pages = server.queue.len().min(burst.min(allowance).max(1) as usize);
        let speedup = if allowance > 1 { u128::from(schedule.speedup_milli.max(1)) } else { 1_000 };
        let opening = if server.estimates.is_parked { 0 } else { 2 * u128::from(connect_us) };
        let hold = opening + pages as u128 * u128::from(response_us) * 1_000 / speedup;
        let counted = server.queue.counted();
        let quality = |most: usize| {
            let best = items.iter().take(most.min(counted));
            best.map(|item| u128::from(item.quality.millionths())).sum()
        };
        match schedule.policy {
            Policy::Bfs => (1, 1),
            Policy::Performance => (pages as u128, hold.max(1)),
            Policy::Quality => (quality(1), 1),
            Policy::Capability => (quality(pages), hold.max(1)),
        }
    }
}

fn is_better((gain, cost): Worth, (others_gain, others_cost): Worth) -> bool {
    gain * others_cost > others_gain * cost
}
