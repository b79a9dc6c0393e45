//! Forgets what this node knew of partitions that it takes after other nodes had them.
//!
//! Three things are remembered of an earlier time: rules of robots.txt, which a new owner must
//! fetch anew, URLs that still wait for the seen test's answer, and URLs in queues. The first are
//! found by a pass over all servers. The second are waited for, since they come out under the mask
//! of that time. Then the partition gets another mask, and whatever was queued before counts as
//! stale.
//!
//! What facts of domains count for isn't forgotten: they count again when the log is read again.
//!
//! What this node had settled by then and not published is published first, so that it is read
//! again with the rest of the log, and not fetched again.
//!
//! Cost: 100 ns for each server, within the turn's budget; one pass for partitions that are taken
//! together.

use super::Cluster;
use crate::cluster::Partition;
use crate::engine::Engine;
use crate::engine::ledger::Work;
use crate::engine::robots::state::{Robots, RobotsStatus};
use crate::frontier::ServerId;
use std::collections::BTreeSet;

/// The cost of looking at a server, in units of work (see `ledger`).
const SERVER_UNITS: usize = 64;

/// The partitions of which something is to be forgotten.
#[derive(Debug, Default)]
pub(super) struct Voids {
    partitions: BTreeSet<Partition>,
    /// The number of servers that were looked at since a partition was added.
    servers: usize,
    /// Whether all servers were looked at.
    is_passed: bool,
    /// What the seen test must have answered: see [`crate::seen::Seen::ticket`].
    ticket: u64,
    /// The place in the outbox up to which records must be in their logs; `None` if there is
    /// something that isn't in the outbox yet.
    place: Option<u64>,
}

impl Voids {
    /// Returns whether anything is being forgotten.
    pub(super) fn is_any(&self) -> bool {
        !self.partitions.is_empty()
    }

    /// Adds a partition. `ticket` is that of what was offered to the seen test until now.
    pub(super) fn add(&mut self, partition: Partition, ticket: u64) {
        self.partitions.insert(partition);
        let partitions = std::mem::take(&mut self.partitions);
        *self = Self { partitions, ticket, ..Self::default() };
    }

    /// Removes a partition that isn't this node's any more.
    pub(super) fn remove(&mut self, partition: Partition) {
        self.partitions.remove(&partition);
    }

    /// Returns whether there are servers to be looked at.
    pub(super) fn has_servers(&self) -> bool {
        !self.partitions.is_empty() && !self.is_passed
    }
}

impl Cluster {
    /// Returns whether all is in the logs that this node had settled of the partitions when the
    /// last checkpoint began.
    fn has_published_voids(&mut self) -> bool {
        let Self { voids, settled, outbox, .. } = self;
        if voids.partitions.iter().any(|of| settled.before.contains_key(of)) {
            return false;
        }
        if voids.place.is_none() {
            voids.partitions.iter().for_each(|partition| outbox.flush(*partition));
        }
        outbox.durable() >= *voids.place.get_or_insert(outbox.place())
    }
}

impl Engine {
    /// Looks at some more servers, within the turn's budget. Begins to read the logs once all is
    /// forgotten.
    pub(super) fn forget_voids(&mut self) {
        let now = self.turn.at();
        while let Some(cluster) = &mut self.cluster
            && cluster.voids.has_servers()
            && !self.turn.is_spent(Work::Joined)
        {
            let number = cluster.voids.servers;
            if number == self.backlog.servers() {
                cluster.voids.is_passed = true;
                break;
            }
            cluster.voids.servers += 1;
            self.turn.charge(Work::Joined, SERVER_UNITS);
            let id = ServerId::from_index(number);
            let partition = cluster.partition_of(self.backlog.origin(id).host());
            let is_void = cluster.voids.partitions.contains(&partition);
            if is_void && self.sites.get(id).robots.status(now) == RobotsStatus::Known {
                self.set_robots(id, Robots::Unknown);
            }
        }
        let Some(cluster) = &mut self.cluster else { return };
        let voids = &mut cluster.voids;
        if voids.partitions.is_empty() || !voids.is_passed {
            return;
        }
        if !self.admission.seen().has_answered(voids.ticket) {
            return self.admission.seen_mut().hasten();
        }
        if voids.partitions.iter().any(|of| cluster.settled.since.contains_key(of)) {
            return self.hasten_checkpoint();
        }
        if !cluster.has_published_voids() {
            return;
        }
        for partition in std::mem::take(&mut cluster.voids.partitions) {
            cluster.logs.begin(partition, self.backlog.arrivals());
            if let Some(masks) = self.admission.masks_mut() {
                masks.set(partition, cluster.logs.generation(partition));
            }
        }
    }
}
