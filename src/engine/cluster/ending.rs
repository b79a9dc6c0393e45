//! The end of a shared crawl, as this node sees it: whether it has anything left to do, and whether
//! anybody has (`cluster::member`).
//!
//! Nothing is left here when nothing waits or is under way, the logs are read to their ends, and
//! all that this node found and settled is in the logs. URLs that wait at servers of other nodes'
//! partitions don't count: their owners have them, too. They are counted by the census
//! (`engine::visit::census`), whose pass counts only if nothing was queued, requested, taken or
//! lost since it began.
//!
//! Cost: while the node is idle, a pass over the partitions a turn.

use super::Cluster;
use crate::engine::Engine;
use crate::engine::node::Broken;
use crate::ground::time::Instant;

impl Cluster {
    /// Takes the next step to the end of the crawl. Returns whether it is over.
    fn is_over(&mut self, is_idle: bool, now: Instant) -> bool {
        self.member.set_idle(is_idle);
        let agreed = self.member.agreement();
        if let Some(agreement) = agreed
            && self.logs.are_ends_checked(agreement, now)
        {
            self.member.confirm(agreement);
        }
        let is_early = self.broken == Some(Broken::EndsUnconfirmed) && agreed.is_some();
        is_early || self.member.is_over()
    }
}

impl Engine {
    /// Returns whether there is nothing left to fetch, anywhere, if `is_idle` is whether there is
    /// nothing here.
    pub(in crate::engine) fn is_nothing_left(&mut self, is_idle: bool) -> bool {
        let Some(cluster) = &self.cluster else { return is_idle };
        let is_idle = is_idle
            && cluster.settled.before.is_empty()
            && !cluster.voids.is_any()
            && cluster.logs.are_read();
        if is_idle && !cluster.settled.since.is_empty() {
            // What was settled is published after a checkpoint.
            self.hasten_checkpoint();
        }
        let now = self.turn.at();
        self.cluster.as_mut().is_none_or(|cluster| {
            let is_idle = is_idle && cluster.settled.since.is_empty() && cluster.outbox.is_empty();
            cluster.is_over(is_idle, now)
        })
    }

    /// Returns how many URLs wait at servers of other nodes; `None` if that isn't known now.
    pub(in crate::engine) fn urls_elsewhere(&self) -> Option<u64> {
        let (_, tally) = self.visits.census().last()?;
        let is_still_true = tally.stamp.is_some() && tally.stamp == self.stamp();
        is_still_true.then_some(tally.elsewhere)
    }

    /// Returns a number that grows whenever a URL is queued or requested, and when a partition
    /// comes or goes; `None` while anything is under way, or in a crawl of one machine.
    pub(in crate::engine) fn stamp(&self) -> Option<u64> {
        let cluster = self.cluster.as_deref().filter(|_| !self.is_busy())?;
        Some(self.backlog.arrivals() + self.counts.requests + cluster.logs.changes())
    }
}
