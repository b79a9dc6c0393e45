//! Keeps the logs of this node's partitions short: makes snapshots of them, one at a time, and
//! purges what they say (see `cluster::memory`).
//!
//! A log that has grown enough is read from its beginning to what this node has read of it, in
//! portions, each of which a job merges. The parts of the snapshot go through the outbox. When all
//! of them are in the log, what was before is purged.
//!
//! Laws: nothing is purged before the whole snapshot is in the log. A snapshot that can't be
//! completed changes nothing. While the outbox is full, no more is read.
//! Cost: a portion, and what `cluster::memory` states, in memory; the work is a job's.

use super::logs::{ANSWER_MAX, Phase, RETRY};
use super::snapshot_job::{SnapshotDone, SnapshotJob};
use crate::cluster::Partition;
use crate::cluster::memory::{Flaw, Merge, Step};
use crate::cluster::queue::{Delivery, Purge, Purpose, Reading, Request, Sequence};
use crate::cluster::record::{Head, Sender};
use crate::engine::Engine;
use crate::engine::contract::{Action, Job};
use crate::engine::node::Settings;
use crate::ground::time::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

/// The making of snapshots.
#[derive(Debug)]
pub(super) struct Snapshots {
    sender: Sender,
    portion_bytes: usize,
    /// The length of messages that are worth a snapshot, in bytes.
    pub(super) bytes_min: u64,
    /// The partitions whose logs have grown enough.
    due: BTreeSet<Partition>,
    making: Option<Making>,
    /// The number of snapshots that were begun.
    begun: u64,
}

/// A snapshot that is being made.
#[derive(Debug)]
struct Making {
    number: u64,
    partition: Partition,
    /// It says what the log says up to this message.
    through: Sequence,
    /// All messages up to this one were merged in this pass.
    after: Sequence,
    /// The length of the messages since the last snapshot when this one was begun.
    log_bytes: u64,
    /// The length of the parts so far.
    bytes: u64,
    /// The place of the last part in the outbox.
    place: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// A portion is to be asked for from this time on.
    Wants(Merge, Instant),
    /// A portion is asked for, until this time.
    Asks(Merge, Instant),
    /// A job merges a portion.
    Works,
    /// The parts are on their way to the log.
    Publishes,
}

impl Snapshots {
    pub(super) fn new(sender: Sender, settings: &Settings) -> Self {
        let (portion_bytes, bytes_min) = (settings.portion_bytes, settings.snapshot_bytes_min);
        Self { sender, portion_bytes, bytes_min, due: BTreeSet::new(), making: None, begun: 0 }
    }

    /// Returns whether this process has written a message.
    pub(super) fn is_by_own(&self, head: &Head) -> bool {
        head.sender == self.sender
    }

    /// Returns whether a message is a part of a snapshot that this process has made.
    pub(super) fn is_own(&self, head: &Head) -> bool {
        head.part.is_some() && head.sender == self.sender
    }

    /// Lists a partition whose log has grown enough.
    pub(super) fn add(&mut self, partition: Partition) {
        self.due.insert(partition);
    }

    /// Drops a partition that isn't this node's any more.
    pub(super) fn remove(&mut self, partition: Partition) {
        self.due.remove(&partition);
        self.making.take_if(|making| making.partition == partition);
    }

    /// Returns when there is something to do that no event causes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.making.as_ref().map(|making| &making.stage) {
            None => (!self.due.is_empty()).then_some(Instant::ZERO),
            Some(Stage::Wants(_, at) | Stage::Asks(_, at)) => Some(*at),
            Some(Stage::Works | Stage::Publishes) => None,
        }
    }

    /// Begins the next snapshot, of a log whose length since the last one is `log_bytes`, up to the
    /// message `through`.
    fn begin(&mut self, partition: Partition, through: Sequence, log_bytes: u64) {
        self.begun += 1;
        let merge = Merge::new(self.sender.clone(), through);
        self.making = Some(Making {
            number: self.begun,
            partition,
            through,
            after: Sequence::default(),
            log_bytes,
            bytes: 0,
            place: 0,
            stage: Stage::Wants(merge, Instant::ZERO),
        });
    }

    /// Returns the portion to ask for, if there is one now.
    fn next_reading(&mut self, now: Instant) -> Option<Reading> {
        let making = self.making.as_mut()?;
        if !matches!(&making.stage, Stage::Wants(_, at) | Stage::Asks(_, at) if *at <= now) {
            return None;
        }
        let stage = std::mem::replace(&mut making.stage, Stage::Works);
        let (Stage::Wants(merge, _) | Stage::Asks(merge, _)) = stage else { return None };
        making.stage = Stage::Asks(merge, now + ANSWER_MAX);
        Some(Reading {
            partition: making.partition,
            after: making.after,
            bytes_max: self.portion_bytes,
            wait: Duration::ZERO,
            purpose: Purpose::Snapshot,
        })
    }

    /// Takes a portion of a log; `None` if the reading failed. Returns the job that merges it.
    pub(super) fn read(
        &mut self,
        reading: &Reading,
        found: Option<Vec<Delivery>>,
        now: Instant,
    ) -> Option<SnapshotJob> {
        let is_asked = |making: &&mut Making| {
            (making.partition, making.after) == (reading.partition, reading.after)
        };
        let making = self.making.as_mut().filter(is_asked)?;
        let stage = std::mem::replace(&mut making.stage, Stage::Works);
        let merge = match stage {
            Stage::Asks(merge, _) => merge,
            other => {
                making.stage = other;
                return None;
            }
        };
        let Some(mut messages) = found else {
            making.stage = Stage::Wants(merge, now + RETRY);
            return None;
        };
        let before = messages.len();
        messages.retain(|message| message.sequence <= making.through);
        let last = messages.last().map(|message| message.sequence);
        let is_last = messages.len() < before || last.is_none_or(|last| last >= making.through);
        Some(SnapshotJob { number: making.number, merge, messages, is_last })
    }
}

impl Engine {
    /// Takes the next steps of the snapshot that is being made, or begins one.
    pub(super) fn work_snapshots(&mut self) {
        let now = self.turn.at();
        let Some(cluster) = &mut self.cluster else { return };
        while cluster.snapshots.making.is_none()
            && let Some(partition) = cluster.snapshots.due.pop_first()
        {
            if cluster.logs.phase(partition) == Phase::Owned {
                let (through, log_bytes) = cluster.logs.read_so_far(partition);
                cluster.snapshots.begin(partition, through, log_bytes);
            }
        }
        let durable = cluster.outbox.durable();
        let is_published = |making: &mut Making| {
            matches!(making.stage, Stage::Publishes) && making.place <= durable
        };
        if let Some(making) = cluster.snapshots.making.take_if(is_published) {
            let Making { partition, through, log_bytes, bytes, .. } = making;
            cluster.logs.compacted(partition, log_bytes, Some(bytes));
            self.turn.act(Action::Queue(Box::new(Request::Purge(Purge { partition, through }))));
            return;
        }
        if cluster.may_make_snapshots() {
            let reading = cluster.snapshots.next_reading(now);
            let requests = reading.map(|reading| Action::Queue(Box::new(Request::Read(reading))));
            requests.into_iter().for_each(|request| self.turn.act(request));
        }
    }

    /// Takes a portion of the log of which a snapshot is being made.
    pub(super) fn take_portion(&mut self, reading: &Reading, found: Option<Vec<Delivery>>) {
        let now = self.turn.at();
        let Some(cluster) = &mut self.cluster else { return };
        if let Some(job) = cluster.snapshots.read(reading, found, now) {
            self.turn.act(Action::Work(Job::Snapshot(Box::new(job))));
        }
    }

    /// Takes what a job has merged.
    pub(in crate::engine) fn snapshot_worked(&mut self, done: SnapshotDone) {
        let now = self.turn.at();
        let SnapshotDone { number, merge, after, parts, step } = done;
        let Some(cluster) = &mut self.cluster else { return };
        let Some(making) = &mut cluster.snapshots.making else { return };
        if making.number != number {
            return;
        }
        let partition = making.partition;
        for part in parts {
            making.bytes += part.len() as u64;
            making.place = cluster.outbox.send(partition, part.into());
        }
        match step {
            Ok(Some(Step::Done)) => making.stage = Stage::Publishes,
            Ok(next) => {
                let is_again = next == Some(Step::Again);
                making.after = after.filter(|_| !is_again).unwrap_or_default();
                making.stage = Stage::Wants(merge, now);
            }
            Err(damage) => {
                // It is tried again when the log has grown as much once more. A purge may come
                // between two passes, for this node's last snapshot as well: that is no damage.
                if damage.flaw == Flaw::Missing {
                    log::debug!("cluster: no snapshot of partition {partition} yet: {damage}");
                } else {
                    log::warn!("cluster: no snapshot of partition {partition}: {damage}");
                    self.counts.cut(super::DAMAGED, 1);
                }
                let log_bytes = making.log_bytes;
                cluster.logs.compacted(partition, log_bytes, None);
                cluster.snapshots.making = None;
            }
        }
    }
}
