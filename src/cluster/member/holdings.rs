//! The partitions: which this node holds, and what it writes to take and release them.
//!
//! A partition is taken by compare-and-set from nobody, or from a session that is over. The
//! revision of the taking is its *epoch*. A node that is to give a partition up goes on until it is
//! told to release it; from then on it never resumes, since the release may be carried out at any
//! time: it takes the partition again, with a new epoch.
//!
//! A partition whose owner is over is left to a node of the same name that is about to join: it
//! may have been restarted, and then it keeps what it knows of the servers.
//!
//! Law: of the nodes that hold a partition, at most one has a session that isn't over.
//! Cost: 150 bytes a partition. A review reads all partitions, and happens only when a node begins
//! or ends; anything else is a step for one partition. At most [`WINDOW`] writes await an answer.

use super::change::Change;
use super::peers::Peers;
use super::progress::Progress;
use super::settings::Timing;
#[cfg(test)]
use super::tests::sabotage::{self, Sabotage};
use super::value::{PartitionValue, Session};
use crate::cluster::Partition;
use crate::cluster::queue::{Key, Name, Revision, Write, WriteFailure, WriteId};
use crate::ground::time::{Instant, Timers};
use std::collections::{BTreeSet, VecDeque};

/// The most writes of partitions that await an answer at a time. A queue that takes 180 writes a
/// second takes a third of a second for them, well within the patience of any sensible lease.
pub(super) const WINDOW: usize = 64;

/// All partitions.
#[derive(Debug)]
pub(super) struct Holdings {
    timing: Timing,
    slots: Vec<Slot>,
    /// The partitions to look at, since a write may be due.
    todo: BTreeSet<Partition>,
    /// When to look at a partition again, by its number.
    timers: Timers,
    /// The partitions whose writes await an answer.
    awaited: BTreeSet<Partition>,
    /// What happened, for the engine.
    changes: VecDeque<Change>,
}

/// A partition.
#[derive(Clone, Debug)]
struct Slot {
    /// The last known revision; `None` if the entry isn't known to exist.
    revision: Option<Revision>,
    owner: Owner,
    /// The first epoch from which on only the owner's lineage has had the partition.
    since: Revision,
    hold: Hold,
    /// Whether the partition should go to this node.
    is_target: bool,
    /// The value that was written last.
    proposed: Option<PartitionValue>,
    progress: Progress,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    Session(Session),
    /// The entry makes no sense.
    Unknown,
}

/// How far this node holds a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Not,
    /// Requests may be sent from this instant on.
    Held(Instant),
    /// The same, and the engine has been asked to release it.
    GivingUp(Instant),
    /// The release isn't known to be carried out.
    Releasing,
}

/// What is to happen with a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Accept,
    GiveUp,
    /// With the first epoch of the lineage; zero if it begins anew.
    Take(Revision),
    Release,
}

/// What a decision about a partition depends on besides its entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) now: Instant,
    /// The present session of this node.
    pub(super) own: &'a Session,
    /// The first session of its lineage.
    pub(super) lineage: u64,
    /// All takings up to this revision have settled.
    pub(super) settled: Revision,
    /// Whether the node takes partitions, and keeps them.
    pub(super) is_active: bool,
    pub(super) peers: &'a Peers,
}

impl Slot {
    fn step(&self, scene: &Scene<'_>) -> Step {
        let is_wanted = scene.is_active && self.is_target;
        match &self.owner {
            Owner::Unknown => Step::Nothing,
            Owner::Session(owner) if owner == scene.own => match self.hold {
                Hold::Not if is_wanted => Step::Accept,
                #[cfg(test)]
                Hold::Releasing if is_wanted && sabotage::is(Sabotage::ReleaseResumed) => {
                    Step::Accept
                }
                Hold::Not | Hold::Releasing => Step::Release,
                Hold::Held(_) if !is_wanted => Step::GiveUp,
                Hold::Held(_) | Hold::GivingUp(_) => Step::Nothing,
            },
            _ if !is_wanted => Step::Nothing,
            Owner::Nobody => Step::Take(Revision(0)),
            Owner::Session(owner) if owner.name == scene.own.name => {
                let is_lineage = owner.number >= scene.lineage;
                let since = if is_lineage { self.since } else { Revision(0) };
                if owner.number < scene.own.number { Step::Take(since) } else { Step::Nothing }
            }
            Owner::Session(owner) if scene.peers.is_over(owner) => {
                let returns = scene.peers.is_joining(&owner.name);
                if returns { Step::Nothing } else { Step::Take(Revision(0)) }
            }
            Owner::Session(_) => Step::Nothing,
        }
    }
}

impl Holdings {
    pub(super) fn new(partitions: u16, timing: Timing) -> Self {
        let slot = Slot {
            revision: None,
            owner: Owner::Nobody,
            since: Revision(0),
            hold: Hold::Not,
            is_target: false,
            proposed: None,
            progress: Progress::default(),
        };
        Self {
            timing,
            slots: vec![slot; usize::from(partitions)],
            todo: BTreeSet::new(),
            timers: Timers::new(),
            awaited: BTreeSet::new(),
            changes: VecDeque::new(),
        }
    }

    /// Returns from when on requests may be sent, as far as the partition is concerned; `None` if
    /// it isn't held.
    pub(super) fn asks_from(&self, partition: Partition) -> Option<Instant> {
        match self.slots.get(partition.index())?.hold {
            Hold::Held(from) | Hold::GivingUp(from) => Some(from),
            Hold::Not | Hold::Releasing => None,
        }
    }

    /// Returns whether a partition is known to belong to another node than `own`.
    pub(super) fn is_of_other(&self, partition: Partition, own: &Name) -> bool {
        let owner = self.slots.get(partition.index()).map(|slot| &slot.owner);
        matches!(owner, Some(Owner::Session(session)) if session.name != *own)
    }

    /// Returns whether nothing is held, and no answer awaited that could change that.
    pub(super) fn is_empty(&self, own: &Session) -> bool {
        let is_done = |slot: &Slot| {
            slot.hold == Hold::Not && !matches!(&slot.owner, Owner::Session(owner) if owner == own)
        };
        self.todo.is_empty() && self.awaited.is_empty() && self.slots.iter().all(is_done)
    }

    /// Returns whether each partition is held by one of these sessions.
    pub(super) fn are_held_by(&self, sessions: &[Session]) -> bool {
        let is_held = |slot: &Slot| match &slot.owner {
            Owner::Session(owner) => sessions.contains(owner),
            Owner::Nobody | Owner::Unknown => false,
        };
        self.slots.iter().all(is_held)
    }

    pub(super) fn next_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// Notes what the entry of a partition says; `value` is `None` if it can't be decoded. Returns
    /// whether that is news.
    pub(super) fn see(
        &mut self,
        partition: Partition,
        revision: Revision,
        value: Option<PartitionValue>,
        scene: Option<&Scene<'_>>,
    ) -> bool {
        let Some(slot) = self.slots.get_mut(partition.index()) else { return false };
        if slot.revision.is_some_and(|known| known >= revision) {
            return false;
        }
        slot.revision = Some(revision);
        slot.progress.reset();
        slot.proposed = None;
        self.awaited.remove(&partition);
        self.timers.cancel(partition.number().into());
        (slot.owner, slot.since) = match value {
            None => (Owner::Unknown, revision),
            Some(PartitionValue::Free) => (Owner::Nobody, revision),
            Some(PartitionValue::Owned { owner, since }) => {
                (Owner::Session(owner), if since == Revision(0) { revision } else { since })
            }
        };
        if !matches!(&slot.owner, Owner::Session(owner) if scene.is_some_and(|it| it.own == owner))
        {
            if matches!(slot.hold, Hold::Held(_) | Hold::GivingUp(_)) {
                self.changes.push_back(Change::Lost { partition });
            }
            slot.hold = Hold::Not;
        }
        if let Some(scene) = scene {
            self.look_at(partition, scene);
        }
        true
    }

    /// Notes which partitions should go to this node.
    pub(super) fn set_targets(&mut self, is_target: impl Fn(Partition) -> bool) {
        for partition in partitions(self.slots.len()) {
            self.slots[partition.index()].is_target = is_target(partition);
        }
    }

    /// Looks at all partitions.
    pub(super) fn review(&mut self, scene: &Scene<'_>) {
        for partition in partitions(self.slots.len()) {
            self.look_at(partition, scene);
        }
    }

    /// Notes that the session is lost, and with it everything that is held.
    pub(super) fn lose(&mut self) {
        for partition in partitions(self.slots.len()) {
            let slot = &mut self.slots[partition.index()];
            if matches!(slot.hold, Hold::Held(_) | Hold::GivingUp(_)) {
                self.changes.push_back(Change::Lost { partition });
            }
            slot.hold = Hold::Not;
        }
        self.todo.clear();
        self.forget_writes();
    }

    /// Notes that the connection is new: what was asked before has been answered or never will be.
    pub(super) fn connected(&mut self) {
        let again: Vec<Partition> = self.timed().collect();
        self.forget_writes();
        self.todo.extend(again);
    }

    /// Begins to release a partition. Does nothing if it isn't held.
    pub(super) fn release(&mut self, partition: Partition) {
        let Some(slot) = self.slots.get_mut(partition.index()) else { return };
        if matches!(slot.hold, Hold::Held(_) | Hold::GivingUp(_)) {
            slot.hold = Hold::Releasing;
            self.todo.insert(partition);
        }
    }

    /// Returns when a partition is to be looked at again.
    pub(super) fn due(&self) -> Instant {
        if !self.todo.is_empty() && self.awaited.len() < WINDOW {
            return Instant::ZERO;
        }
        self.timers.nearest().unwrap_or(Instant::FAR)
    }

    /// Lists the partitions that are to be looked at again.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(number) = self.timers.expire(now) {
            let partition = u16::try_from(number).ok().and_then(Partition::new);
            let partition = partition.expect("the timer of a partition");
            self.awaited.remove(&partition);
            self.todo.insert(partition);
        }
    }

    /// Returns the next write, if one is due.
    pub(super) fn write(
        &mut self,
        scene: &Scene<'_>,
        id: impl FnOnce(Partition) -> WriteId,
    ) -> Option<Write> {
        while self.awaited.len() < WINDOW {
            let partition = self.todo.pop_first()?;
            let slot = &mut self.slots[partition.index()];
            let value = match slot.step(scene) {
                Step::Take(since) => PartitionValue::Owned { owner: scene.own.clone(), since },
                Step::Release => PartitionValue::Free,
                Step::Nothing | Step::Accept | Step::GiveUp => continue,
            };
            if !slot.progress.is_free(scene.now) {
                continue; // its timer will come
            }
            if value == PartitionValue::Free {
                slot.hold = Hold::Releasing;
            }
            let id = id(partition);
            let late = scene.now + self.timing.patience;
            slot.progress.begin(id, late);
            self.timers.set(partition.number().into(), late);
            self.awaited.insert(partition);
            let write = Write {
                id,
                key: Key::Partition(partition),
                expected: slot.revision,
                value: value.encode(),
            };
            slot.proposed = Some(value);
            return Some(write);
        }
        None
    }

    /// Takes the answer to a write.
    pub(super) fn wrote(
        &mut self,
        partition: Partition,
        id: WriteId,
        answer: Result<Revision, WriteFailure>,
        scene: Option<&Scene<'_>>,
        now: Instant,
    ) {
        let Some(slot) = self.slots.get_mut(partition.index()) else { return };
        if !slot.progress.end(id) {
            return;
        }
        self.awaited.remove(&partition);
        match answer {
            Ok(revision) => {
                let value = slot.proposed.take();
                self.see(partition, revision, value, scene);
                return;
            }
            // The entry has changed; it will be seen.
            Err(WriteFailure::Conflict) => slot.progress.wait(now, self.timing.renewal),
            Err(WriteFailure::Unknown) => slot.progress.wait(now, self.timing.patience),
        }
        self.timers.set(partition.number().into(), slot.progress.due());
    }

    /// Takes the step that a partition needs; a write is only listed.
    fn look_at(&mut self, partition: Partition, scene: &Scene<'_>) {
        let slot = &mut self.slots[partition.index()];
        match slot.step(scene) {
            Step::Nothing => {}
            Step::Take(_) | Step::Release => _ = self.todo.insert(partition),
            Step::GiveUp => {
                if let Hold::Held(from) = slot.hold {
                    slot.hold = Hold::GivingUp(from);
                }
                self.changes.push_back(Change::GiveUp(partition));
            }
            Step::Accept => {
                let epoch = slot.revision.expect("an entry with an owner");
                let is_settled = slot.since < epoch && slot.since <= scene.settled;
                #[cfg(test)]
                let is_settled =
                    is_settled || slot.since < epoch && sabotage::is(Sabotage::UnsettledReturn);
                let settling = scene.now + self.timing.settling;
                let asks_from = if is_settled { scene.now } else { settling };
                slot.hold = Hold::Held(asks_from);
                let since = slot.since;
                self.changes.push_back(Change::Taken { partition, epoch, since, asks_from });
            }
        }
    }

    /// Forgets which writes are under way.
    fn forget_writes(&mut self) {
        for partition in self.timed().collect::<Vec<_>>() {
            self.timers.cancel(partition.number().into());
            let slot = &mut self.slots[partition.index()];
            slot.progress.reset();
            slot.proposed = None;
        }
        self.awaited.clear();
    }

    /// Returns the partitions that have a timer: those with a write under way or put off.
    fn timed(&self) -> impl Iterator<Item = Partition> {
        let is_set = |partition: &Partition| self.timers.at(partition.number().into()).is_some();
        partitions(self.slots.len()).filter(is_set)
    }
}

/// Returns the first `count` partitions.
fn partitions(count: usize) -> impl Iterator<Item = Partition> {
    Partition::all().take(count)
}
