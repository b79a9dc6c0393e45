//! An audit of the ready queue for simulations: it computes all ranks again from the URLs
//! themselves.
//!
//! The formulas of design D5, which are in the head of `policy.rs`, are implemented here a second
//! time. This implementation reads the qualities of the URLs and uses no sum or order that the
//! scheduler keeps, so a rank that is inverted or out of date can't agree with it by chance. A
//! server is *held back* if it is ready and waits in one of its groups, which doesn't admit a
//! visit. An *alarm* wakes a group when its clock is over.
//! Cost: it reads all servers and groups; a crawl never calls it.

use super::policy::{Policy, Rank, lot};
use super::server::Standing;
use super::{Burst, Scheduler, ServerId};
use std::cmp::Reverse;

/// The contents of a server's queue, as an audit needs them.
#[derive(Clone, Debug, Default)]
pub struct Audited {
    /// The number of URLs in the queue.
    pub urls: usize,
    /// The qualities, in millionths, of the queue's best URLs, the best first: as many as the rank
    /// of the server may be computed from.
    pub best: Vec<u64>,
}

/// The gain and the cost of a visit. The greater their quotient, the better the rank of the server.
type Worth = (u128, u128);

impl Scheduler {
    /// Checks that the first server of the ready queue is the best one, that the queue and its
    /// counts are consistent, and that no group holds back a server that it would admit.
    ///
    /// # Errors
    /// A message that names the first server that is out of place, and the reason.
    pub fn audit(&self, queue: impl Fn(ServerId) -> Audited) -> Result<(), String> {
        let servers = || self.servers.iter().enumerate();
        let all = |standing| servers().filter(move |(_, one)| one.standing == standing);
        let place = |id| (self.called.contains(&id), self.worth(id, queue(id)));
        let worth = |(index, _)| {
            let id = ServerId::from_index(index);
            (id, place(id))
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
        let Some((_, &first)) = self.ready.last_key_value() else { return Ok(()) };
        let (is_called, worth) = place(first);
        for (id, (other_is, other)) in line {
            let earlier = (self.server(id).arrival, id) < (self.server(first).arrival, first);
            let is_behind = is_better(other, worth) || (!is_better(worth, other) && earlier);
            if other_is && !is_called || other_is == is_called && is_behind {
                let [own, others] = [first, id].map(|id| self.origin(id).as_str());
                return Err(format!("{own} {worth:?} goes before {others} {other:?}"));
            }
        }
        Ok(())
    }

    /// Checks that ready servers are taken by age as often as a share of `share_milli` thousandths
    /// demands, so that their wait is bounded as `lists.rs` says. The shares of a crawl's settings
    /// and of the caller may differ.
    ///
    /// # Errors
    /// A message that says what contradicts the bound.
    pub fn audit_waits(&self, share_milli: u32) -> Result<(), String> {
        if share_milli == 0 {
            return Ok(());
        }
        let Some(lists) = &self.lists else { return Err("no visit is for the oldest".into()) };
        let servers = self.servers.iter().enumerate();
        let ready = servers.filter(|(_, server)| server.standing == Standing::InLine);
        let ranked = ready.filter_map(|(index, server)| {
            let rank = Rank { fraction: server.rank?, arrival: server.arrival };
            Some((rank, ServerId::from_index(index)))
        });
        lists.check(ranked, share_milli)
    }

    /// Returns a server that a group holds back by mistake, if there is one. It is a mistake if the
    /// group has room for a visit and no alarm, and the ready queue has no better server of that
    /// group that could go instead.
    fn forgotten(&self) -> Option<ServerId> {
        let is_forgotten = |(group, rank, _): &(_, _, _)| {
            let mut better = self.ready.range(Reverse(*rank)..);
            !better.any(|(_, id)| self.server(*id).groups.contains(&Some(*group)))
        };
        self.groups.unalarmed().find(is_forgotten).map(|(.., id)| id)
    }

    fn worth(&self, id: ServerId, queue: Audited) -> Worth {
        let server = self.server(id);
        let schedule = &self.settings.schedule;
        let (connect_us, response_us, allowance) = server.estimates.or_assumed(schedule);
        let burst = match self.pace(id).burst {
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
            // The lowest lot goes first.
            Policy::Random => (u128::from(!lot((id, server.visits)).get()), 1),
            Policy::LargestSiteFirst => (queue.urls as u128, 1),
            Policy::Yield => {
                let pages = pages.min(6);
                let slot = opening + pages as u128 * u128::from(response_us) * 1_000 / speedup;
                let price = self.prices.of(id);
                let connection = u128::from(!server.estimates.is_parked);
                let core = connection * u128::from(price.connection_us)
                    + pages as u128 * u128::from(price.page_us);
                (quality(pages), (slot + core).max(1))
            }
        }
    }
}

fn is_better((gain, cost): Worth, (others_gain, others_cost): Worth) -> bool {
    gain * others_cost > others_gain * cost
}
