//! This node's part in a crawl that several machines share: which partitions it crawls, what it
//! writes to their logs, and what it reads there.
//!
//! This part of the engine owns the member (`cluster::member`), the outbox, the logs that are read
//! and what was learnt from them, the snapshot that is being made, the URLs whose outcome isn't
//! published, and the caches of what was sent: links to other partitions, and pairs of domains.
//!
//! Laws: a request is made only to a server of a partition that this node owns, while its session
//! lasts. Each link in scope is offered to the own seen test or is in the outbox; one that the seen
//! test doesn't know at once is in both.

mod ending;
mod facts;
mod inherited;
mod logs;
mod mark;
mod masks;
mod orders;
mod reports;
mod share;
mod snapshot_job;
mod snapshots;
mod status;
mod voids;

use super::Engine;
use super::contract::Action;
use super::node::{Broken, Settings};
use super::storage::FatalError;
use crate::cluster::member::OTHER_WRITES;
use crate::cluster::member::{Change, Member};
pub(super) use crate::cluster::outbox::FOLDER as OUTBOX_FOLDER;
use crate::cluster::outbox::{Failure, Outbox};
use crate::cluster::queue::{Event, Key, Purpose, Request, Revision};
use crate::cluster::record::{Records, Sender};
use crate::cluster::{Partition, Partitioner};
use crate::frontier::{ServerId, scheduler};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Flaw, Mark};
use crate::ground::quality::Quality;
use crate::ground::time::Instant;
use crate::rating::Found;
use crate::seen::cache::{Cache, Replacement};
use crate::url::{Fingerprint, UrlRef};
use facts::Facts;
use inherited::Inherited;
use logs::{Logs, Phase};
use mark::Settled;
pub(super) use masks::Masks;
use reports::Reports;
pub use snapshot_job::{SnapshotDone, SnapshotJob};
use snapshots::Snapshots;
use std::time::Duration;
use voids::Voids;

/// How long a server of a partition that this node may not crawl is left alone.
const ELSEWHERE: Duration = Duration::from_secs(5);
/// What is said when another process has this node's name.
const NAME_TAKEN: &str = "another process has this node's name, or had it until a moment ago: this \
                          one waits until that one's session is over";

/// This node's part in a crawl of several nodes.
#[derive(Debug)]
pub(super) struct Cluster {
    member: Member,
    outbox: Outbox,
    logs: Logs,
    voids: Voids,
    sent: Sent,
    partitioner: Partitioner,
    records: Records,
    settled: Settled,
    snapshots: Snapshots,
    heard: Heard,
    /// The politeness as it is configured, and the number of nodes that it is shared by now.
    pace: (scheduler::Settings, u32),
    broken: Option<Broken>,
}

/// What other nodes have said.
#[derive(Debug)]
struct Heard {
    /// Of servers and URLs, in logs.
    inherited: Inherited,
    /// Of their progress, in entries.
    reports: Reports,
    /// Whether the list of commands to all nodes was seen.
    has_orders: bool,
    /// The number of messages that made no sense.
    damaged: u64,
}

/// The name under which what makes no sense is counted.
const DAMAGED: &str = "cluster-damaged";
/// The number of damaged messages that are warned of; more are only counted.
const DAMAGED_SHOWN: u64 = 10;

impl Heard {
    /// Notes a message that makes no sense, or a part of one.
    fn note_damage(&mut self, partition: Partition, damage: &dyn std::fmt::Display) {
        self.damaged += 1;
        let more = if self.damaged == DAMAGED_SHOWN { "; more are only counted" } else { "" };
        if self.damaged <= DAMAGED_SHOWN {
            log::warn!("cluster: a message of partition {partition} {damage}{more}");
        }
    }
}

/// What was sent to the logs recently and isn't sent again.
#[derive(Debug)]
struct Sent {
    /// Links to partitions that this node doesn't own.
    links: Cache,
    /// The links that were written, since the cache didn't have them.
    written: u64,
    /// The links that weren't written, since the cache had them.
    held_back: u64,
    /// Links between domains; `None` if nobody counts them.
    facts: Option<Facts>,
}

impl Cluster {
    /// Creates the part in the crawl number `crawl`. `counts_domains` says whether qualities count
    /// the links between domains.
    pub(super) fn new(
        settings: &Settings,
        pace: &scheduler::Settings,
        crawl: u64,
        counts_domains: bool,
    ) -> Self {
        let Settings { node, incarnation, previous, member, .. } = settings.clone();
        let sender = Sender { name: node.clone(), incarnation };
        let links = Cache::new(settings.sent_log2, Replacement::Clock, incarnation);
        let facts = counts_domains.then(|| Facts::new(settings));
        let reports = Reports::new(node.clone(), member.ttl / 3);
        Self {
            partitioner: Partitioner::new(member.key),
            member: Member::new(member, node, incarnation, previous),
            outbox: Outbox::new(settings.outbox, &sender, crawl),
            logs: Logs::new(settings.portion_bytes, settings.reading_wait),
            voids: Voids::default(),
            sent: Sent { links, written: 0, held_back: 0, facts },
            records: Records::new(),
            settled: Settled::default(),
            snapshots: Snapshots::new(sender, settings),
            heard: Heard {
                inherited: Inherited::default(),
                reports,
                has_orders: false,
                damaged: 0,
            },
            pace: (pace.clone(), 1),
            broken: settings.broken,
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

    /// Notes that a partition is held. `ticket` is that of what was offered to the seen test until
    /// now. Returns the number of pages that were at risk, if another node has had the partition.
    fn take(&mut self, partition: Partition, since: Revision, ticket: u64) -> u64 {
        let at_risk = self.settled.at_risk.remove(&partition).unwrap_or(0);
        if !self.logs.take(partition, since) {
            return 0;
        }
        self.voids.add(partition, ticket);
        at_risk
    }

    /// Writes what waits to be written; only enough of it for an append unless `all` is true.
    ///
    /// # Errors
    /// The disk reports an error. Nothing is lost, and the call can be repeated.
    pub(super) fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.outbox.write(all, disk)
    }

    /// Begins a checkpoint: returns the outbox's part of it. What was settled before is published
    /// once the checkpoint is durable.
    ///
    /// # Errors
    /// The disk reports an error.
    pub(super) fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        for (partition, settled) in std::mem::take(&mut self.settled.since) {
            self.settled.before.entry(partition).or_default().extend(settled);
        }
        self.outbox.mark(disk)
    }

    /// Appends the part of the checkpoint that isn't the outbox's.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        mark::put(self, out);
    }

    /// Called when a checkpoint is durable: lets what was settled before it began be published,
    /// once the links found before it are in their logs. Returns the names of files that are no
    /// longer needed.
    pub(super) fn checkpoint_is_durable(&mut self, now: Instant) -> Vec<String> {
        let place = self.outbox.place();
        for (partition, mut settled) in std::mem::take(&mut self.settled.before) {
            self.records.clear();
            self.records.settled(&mut settled);
            self.outbox.hold(place, partition, &self.records, now);
        }
        self.outbox.on_durable()
    }

    /// Restores the files of the outbox.
    ///
    /// # Errors
    /// The disk reports an error, or a file is damaged.
    pub(super) fn restore_files(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        self.outbox.restore_files(files, disk)
    }

    /// Restores the outbox, after its files.
    ///
    /// # Errors
    /// The bytes are no mark.
    pub(super) fn restore_outbox(&mut self, bytes: &[u8]) -> Result<(), Flaw> {
        self.outbox.restore_mark(bytes)
    }

    /// Restores what isn't the outbox's.
    ///
    /// # Errors
    /// The bytes are no mark.
    pub(super) fn decode(&mut self, bytes: &[u8], masks: &mut Masks) -> Result<(), Flaw> {
        self.settled.before = mark::restore(bytes, &mut self.logs)?;
        self.logs.kept().for_each(|(partition, kept)| masks.set(partition, kept.generation));
        Ok(())
    }

    /// Returns whether a snapshot may be continued: the queue can be reached, and there is room for
    /// its parts.
    fn may_make_snapshots(&self) -> bool {
        self.logs.is_connected() && self.outbox.has_room()
    }

    /// Returns when there is something to do; `None` if nothing but an event causes it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.logs.has_messages() || self.voids.has_servers() {
            return Some(Instant::ZERO);
        }
        let member = Some(self.member.deadline()).filter(|at| *at != Instant::FAR);
        let release = self.logs.leaving_at();
        let making = self.snapshots.deadline().filter(|_| self.may_make_snapshots());
        let (outbox, logs) = (self.outbox.next_at(), self.logs.due());
        let report = Some(self.heard.reports.due()).filter(|_| self.logs.is_connected());
        [member, release, outbox, logs, making, report].into_iter().flatten().min()
    }
}

impl Engine {
    /// Returns, for judges, how many bytes of batches are to be published, and the most bytes of
    /// messages of one log that were read and aren't used up; zeros without a cluster. Reads all
    /// partitions.
    pub fn cluster_memory(&self) -> (u64, usize) {
        let of = |own: &Cluster| (own.outbox.counts().memory_bytes, own.logs.portion_bytes_now());
        self.cluster.as_deref().map_or((0, 0), of)
    }

    /// Returns, for judges, the quality that a URL has now if it is found on no page.
    pub fn quality_of(&self, url: UrlRef<'_>) -> Quality {
        self.admission.rating().of(url, Found::default())
    }

    /// Takes an event of the queue of the cluster.
    pub(super) fn take_queue_event(&mut self, event: Event) {
        let now = self.turn.at();
        let Some(cluster) = &mut self.cluster else { return };
        match event {
            Event::Connected => {
                cluster.member.connected(now);
                cluster.outbox.connected();
                cluster.logs.connected();
            }
            Event::Disconnected => {
                cluster.member.disconnected(now);
                cluster.outbox.disconnected();
                cluster.logs.disconnected(now);
            }
            Event::Entry(entry) => match &entry.key {
                Key::Report(name) => {
                    if !cluster.heard.reports.see(name, &entry) {
                        log::warn!("cluster: the report of the node {name} makes no sense");
                        self.counts.cut(DAMAGED, 1);
                    }
                }
                Key::Orders => {
                    let now = self.turn.now();
                    let is_first = !std::mem::replace(&mut cluster.heard.has_orders, true);
                    self.take_shared_orders(&entry.value, is_first, now);
                }
                Key::Crawl | Key::Node(_) | Key::Partition(_) => cluster.member.entry(now, &entry),
            },
            Event::Wrote { id, result } if id.0 % (1 << OTHER_WRITES.1) == OTHER_WRITES.0 => {
                cluster.heard.reports.wrote(id, result);
            }
            Event::Wrote { id, result } => cluster.member.wrote(now, id, result),
            Event::Published { id, is_durable } => {
                let result = if is_durable { Ok(()) } else { Err(Failure::Unknown) };
                cluster.outbox.published(id, result, now);
            }
            Event::Read { reading, messages, left } => match reading.purpose {
                Purpose::Crawl => cluster.logs.read(&reading, (messages, left), now),
                Purpose::Snapshot => self.take_portion(&reading, messages),
            },
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

    /// Begins to leave the cluster, since the crawl ends here.
    pub(super) fn leave_cluster(&mut self) {
        let now = self.turn.at();
        if let Some(cluster) = &mut self.cluster {
            cluster.member.leave(now);
        }
    }

    /// Returns whether this node is in no cluster (any more).
    pub(super) fn has_left_cluster(&self) -> bool {
        self.cluster.as_deref().is_none_or(|cluster| cluster.member.has_left())
    }

    /// Returns whether anything can be published.
    pub(super) fn can_leave_cluster(&self) -> bool {
        let is_connected = self.cluster.as_deref().is_some_and(|it| it.logs.is_connected());
        is_connected && self.storage.fatal().is_none()
    }

    /// Asks the world for what the cluster needs of its queue, and follows what came from there.
    pub(super) fn work_cluster(&mut self) {
        if self.cluster.is_none() {
            return;
        }
        self.forget_voids();
        self.use_messages();
        self.release_left();
        let now = self.turn.at();
        let Some(cluster) = &mut self.cluster else { return };
        let mut lost = Vec::new();
        while let Some(change) = cluster.member.next_change() {
            match change {
                Change::Taken { partition, since, .. } => {
                    let ticket = self.admission.seen().ticket();
                    self.counts.pages_lost += cluster.take(partition, since, ticket);
                }
                Change::GiveUp(partition) => {
                    cluster.voids.remove(partition);
                    cluster.snapshots.remove(partition);
                    cluster.logs.leave(partition);
                }
                Change::Lost { partition } => {
                    cluster.voids.remove(partition);
                    cluster.snapshots.remove(partition);
                    cluster.heard.inherited.forget(partition, now);
                    cluster.settled.note_lost(partition);
                    cluster.logs.lapse(partition);
                    lost.push(partition);
                }
                Change::Refused(difference) => {
                    self.storage.fail(FatalError::Cluster(difference.to_string()));
                }
                Change::Damaged { key } => {
                    log::warn!("cluster: the entry {key:?} makes no sense");
                    self.counts.cut(DAMAGED, 1);
                }
                Change::NameTaken => log::warn!("cluster: {NAME_TAKEN}"),
                change @ (Change::Agreed { .. } | Change::Joined { .. } | Change::Left) => {
                    log::info!("cluster: {change:?}");
                }
            }
        }
        while let Some(write) = cluster.member.next_write(now) {
            self.turn.act(Action::Queue(Box::new(Request::Write(write))));
        }
        if let Some(write) = self.next_report() {
            self.turn.act(Action::Queue(Box::new(Request::Write(write))));
        }
        let Some(cluster) = &mut self.cluster else { return };
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
        self.work_snapshots();
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

    /// Returns whether the partition of a server isn't this node's.
    pub(super) fn is_foreign_server(&self, id: ServerId) -> bool {
        let host = self.backlog.origin(id).host();
        let of = |cluster: &Cluster| cluster.logs.phase(cluster.partition_of(host));
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
        let is_undivided = cluster.broken == Some(Broken::PaceUndivided);
        let nodes = if is_undivided { 1 } else { cluster.member.nodes().max(1) };
        if cluster.pace.1 == nodes {
            return;
        }
        cluster.pace.1 = nodes;
        self.settings.frontier.scheduler = cluster.pace.0.shared_by(nodes);
        self.backlog.set_politeness(&self.settings.frontier.scheduler);
        self.archive.announce_settings(self.turn.steady(self.turn.at()));
    }

    /// Returns until when a server may not be visited because its partition isn't this node's to
    /// crawl, or because the node that had it before must have waited so long; `None` if it may.
    pub(super) fn is_elsewhere(&self, id: ServerId) -> Option<Instant> {
        let cluster = self.cluster.as_ref()?;
        let now = self.turn.at();
        let origin = self.backlog.origin(id);
        if !cluster.may_ask(cluster.partition_of(origin.host()), now) {
            return Some(now + ELSEWHERE);
        }
        cluster.heard.inherited.wait(origin.as_str(), now)
    }

    /// Releases the partitions that go to other nodes, once nothing of theirs is under way here and
    /// what was settled is in their logs, which it is after a checkpoint.
    fn release_left(&mut self) {
        let now = self.turn.at();
        let Some(cluster) = &mut self.cluster else { return };
        let leaving = cluster.logs.leaving(now);
        if leaving.is_empty() {
            return;
        }
        let busy = self.partitions_under_way();
        let Some(cluster) = &mut self.cluster else { return };
        let mut waits_for_checkpoint = false;
        for partition in leaving.into_iter().filter(|partition| !busy.contains(partition)) {
            let is_settled = cluster.settled.since.contains_key(&partition);
            waits_for_checkpoint |= is_settled;
            if is_settled || cluster.settled.before.contains_key(&partition) {
                continue;
            }
            cluster.outbox.flush(partition);
            if cluster.outbox.is_drained(partition) {
                cluster.member.release(partition);
                cluster.logs.lapse(partition);
            }
        }
        if waits_for_checkpoint {
            self.hasten_checkpoint();
        }
    }
}
