//! This node's part in a crawl that several machines share: which partitions it crawls, what it
//! writes to their logs, and what it reads there.
//!
//! This part of the engine owns the member (`cluster::member`), the outbox, the logs that are read,
//! and the cache of links that were sent to other partitions.
//!
//! Laws: a request is made only to a server of a partition that this node owns, while its session
//! lasts. Each link in scope is offered to the own seen test or is in the outbox; one that the seen
//! test doesn't know at once is in both.

mod logs;
mod masks;
mod share;

use super::Engine;
use super::contract::Action;
use super::node::Settings;
use crate::cluster::member::{Change, Member};
use crate::cluster::outbox::{Failure, Outbox};
use crate::cluster::queue::{Event, Request};
use crate::cluster::record::{Records, Sender};
use crate::cluster::{Partition, Partitioner};
use crate::frontier::{ServerId, scheduler};
use crate::ground::time::Instant;
use crate::seen::cache::{Cache, Replacement};
use crate::url::{Fingerprint, UrlRef};
use logs::{Logs, Phase};
pub(super) use masks::Masks;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a server of a partition that this node may not crawl is left alone.
const ELSEWHERE: Duration = Duration::from_secs(1);

/// This node's part in a crawl of several nodes.
#[derive(Debug)]
pub(super) struct Cluster {
    member: Member,
    outbox: Outbox,
    logs: Logs,
    sent: Cache,
    partitioner: Partitioner,
    records: Records,
    /// The URLs that have their final outcome since the last checkpoint began.
    settled: BTreeMap<Partition, Vec<Fingerprint>>,
    /// Those since the checkpoint before it.
    settled_before: BTreeMap<Partition, Vec<Fingerprint>>,
    /// The politeness as it is configured, and the number of nodes that it is shared by now.
    pace: (scheduler::Settings, u32),
}

impl Cluster {
    pub(super) fn new(
        settings: &Settings,
        pace: &scheduler::Settings,
        crawl: u64,
        first: u64,
    ) -> Self {
        let Settings { node, incarnation, previous, member, .. } = settings.clone();
        let sender = Sender { name: node.clone(), incarnation };
        Self {
            partitioner: Partitioner::new(member.key),
            member: Member::new(member, node, incarnation, previous),
            outbox: Outbox::new(settings.outbox, &sender, crawl, first),
            logs: Logs::new(settings.portion_bytes, settings.poll),
            sent: Cache::new(settings.sent_log2, Replacement::Clock, incarnation),
            records: Records::new(),
            settled: BTreeMap::new(),
            settled_before: BTreeMap::new(),
            pace: (pace.clone(), 1),
        }
    }

    /// Returns the masks of a node that knows nothing yet.
    pub(super) fn masks(&self) -> Masks {
        Masks::new(self.partitioner)
    }

    /// Returns the partition of a host.
    pub(super) fn partition_of(&self, host: &str) -> Partition {
        self.partitioner.of(host)
    }

    /// Returns what turns the fingerprint of a URL of a partition into that which this node's seen
    /// test knows it by, and back. It is another one each time that the partition was another
    /// node's in between, so that the seen test knows nothing of it then.
    pub(in crate::engine) fn mask(&self, partition: Partition) -> u64 {
        masks::mask(partition, self.logs.generation(partition))
    }

    /// Returns whether the servers of a partition may be asked at `now`.
    fn may_ask(&self, partition: Partition, now: Instant) -> bool {
        self.logs.phase(partition) == Phase::Owned && self.member.may_ask(partition, now)
    }

    /// Returns when there is something to do; `None` if nothing but an event causes it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.logs.has_messages() {
            return Some(Instant::ZERO);
        }
        let member = Some(self.member.deadline()).filter(|at| *at != Instant::FAR);
        [member, self.outbox.next_at(), self.logs.due()].into_iter().flatten().min()
    }
}

impl Engine {
    /// Takes an event of the queue of the cluster.
    pub(super) fn take_queue_event(&mut self, event: Event) {
        let now = self.turn.at();
        let Some(cluster) = &mut self.cluster else { return };
        match event {
            Event::Connected => cluster.member.connected(now),
            Event::Disconnected => {
                cluster.member.disconnected(now);
                cluster.logs.disconnected();
            }
            Event::Entry(entry) => cluster.member.entry(now, &entry),
            Event::Wrote { id, result } => cluster.member.wrote(now, id, result),
            Event::Published { id, is_durable } => {
                let result = if is_durable { Ok(()) } else { Err(Failure::Unknown) };
                cluster.outbox.published(id, result, now);
            }
            Event::Read { reading, messages } => cluster.logs.read(&reading, messages, now),
        }
        // Before the next request.
        self.share_pace();
    }

    /// Notes that time has passed.
    pub(super) fn expire_cluster(&mut self) {
        let now = self.turn.at();
        if let Some(cluster) = &mut self.cluster {
            cluster.member.expired(now);
        }
    }

    /// Asks the world for what the cluster needs of its queue, and follows what came from there.
    pub(super) fn work_cluster(&mut self) {
        if self.cluster.is_none() {
            return;
        }
        self.use_messages();
        self.release_left();
        let now = self.turn.at();
        let Some(cluster) = &mut self.cluster else { return };
        let mut lost = Vec::new();
        while let Some(change) = cluster.member.next_change() {
            match change {
                Change::Taken { partition, since, .. } => {
                    if cluster.logs.take(partition, since, self.backlog.arrivals()) {
                        let generation = cluster.logs.generation(partition);
                        if let Some(masks) = self.admission.masks_mut() {
                            masks.set(partition, generation);
                        }
                    }
                }
                Change::GiveUp(partition) => cluster.logs.leave(partition),
                Change::Lost { partition } => {
                    cluster.logs.lapse(partition);
                    lost.push(partition);
                }
                change => log::info!("cluster: {change:?}"),
            }
        }
        while let Some(write) = cluster.member.next_write(now) {
            self.turn.act(Action::Queue(Box::new(Request::Write(write))));
        }
        while let Some(reading) = cluster.logs.next_reading(now) {
            self.turn.act(Action::Queue(Box::new(Request::Read(reading))));
        }
        loop {
            match cluster.outbox.next(now, self.storage.disk()) {
                Ok(Some(publication)) => {
                    self.turn.act(Action::Queue(Box::new(Request::Publish(publication))));
                }
                Ok(None) => break,
                Err(error) => {
                    self.storage.fail(error);
                    break;
                }
            }
        }
        for partition in lost {
            self.end_visits_to(partition);
        }
    }

    /// Returns whether the URL at the head of a queue was queued before another node had its
    /// partition.
    pub(super) fn is_stale(&mut self, id: ServerId) -> bool {
        let Some(cluster) = &self.cluster else { return false };
        let partition = cluster.partition_of(self.backlog.origin(id).host());
        let arrival = self.backlog.peek(id).map_or(u64::MAX, |item| item.arrival);
        cluster.logs.is_stale(partition, arrival)
    }

    /// Returns whether a URL is of a partition that isn't this node's.
    pub(super) fn is_foreign(&self, url: UrlRef<'_>) -> bool {
        let of = |cluster: &Cluster| cluster.logs.phase(cluster.partition_of(url.host()));
        self.cluster.as_deref().is_some_and(|cluster| of(cluster) != Phase::Owned)
    }

    /// Takes over the configured politeness, after it has changed.
    pub(super) fn set_pace(&mut self, pace: &scheduler::Settings) {
        if let Some(cluster) = &mut self.cluster {
            cluster.pace = (pace.clone(), 0);
            self.share_pace();
        }
    }

    /// Divides the pace of addresses by the number of nodes, if that has changed.
    fn share_pace(&mut self) {
        let Some(cluster) = &mut self.cluster else { return };
        let nodes = cluster.member.nodes().max(1);
        if cluster.pace.1 == nodes {
            return;
        }
        cluster.pace.1 = nodes;
        self.settings.frontier.scheduler = cluster.pace.0.shared_by(nodes);
        self.backlog.set_politeness(&self.settings.frontier.scheduler);
        self.archive.announce_settings(self.turn.steady(self.turn.at()));
    }

    /// Returns until when a server may not be visited because its partition isn't this node's to
    /// crawl; `None` if it may.
    pub(super) fn is_elsewhere(&self, id: ServerId) -> Option<Instant> {
        let cluster = self.cluster.as_ref()?;
        let now = self.turn.at();
        let partition = cluster.partition_of(self.backlog.origin(id).host());
        (!cluster.may_ask(partition, now)).then(|| now + ELSEWHERE)
    }

    /// Releases the partitions that go to other nodes, once nothing of theirs is under way here.
    fn release_left(&mut self) {
        let Some(cluster) = &self.cluster else { return };
        let leaving: Vec<Partition> = cluster.logs.leaving().collect();
        if leaving.is_empty() {
            return;
        }
        let busy = self.partitions_under_way();
        let now = self.turn.at();
        let Some(cluster) = &mut self.cluster else { return };
        for partition in leaving.into_iter().filter(|partition| !busy.contains(partition)) {
            let place = cluster.outbox.place();
            let mut settled = cluster.settled_before.remove(&partition).unwrap_or_default();
            settled.extend(cluster.settled.remove(&partition).unwrap_or_default());
            if !settled.is_empty() {
                cluster.records.clear();
                cluster.records.settled(&mut settled);
                cluster.outbox.hold(place, partition, &cluster.records, now);
            }
            cluster.outbox.flush(partition);
            if cluster.outbox.is_drained(partition) {
                cluster.member.release(partition);
            }
        }
    }
}
