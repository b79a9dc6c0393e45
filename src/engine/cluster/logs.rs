//! What this node has read of the logs of partitions, and what it reads next.
//!
//! A node reads the logs of the partitions that it holds, one portion of each at a time: the next
//! portion is asked for when the last one is used up, so that what waits in memory is bounded. An
//! answer that doesn't come is asked for again. A partition that was taken from another node is
//! read twice from the beginning: first for the URLs that are settled, then for those that are not.
//! After that it is *owned*, and what others add is read as it comes.
//!
//! Law: a position is never ahead of what the engine has been offered.

use crate::cluster::Partition;
use crate::cluster::memory;
use crate::cluster::partition::PARTITIONS;
use crate::cluster::queue::{Delivery, Purpose, Reading, Revision, Sequence};
use crate::ground::time::Instant;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// How far this node has got with a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Another node's, or nobody's: this node knows nothing of it.
    #[default]
    Foreign,
    /// It was this node's. What it knew is kept until it is known whether another had it since.
    Lapsed,
    /// It was taken from another node: what was known of it is being forgotten.
    Void,
    /// The log is read for settled URLs.
    Settled,
    /// The log is read for links, up to the number at which the settled ones ended.
    Links(Sequence),
    /// All that was in the log when it was taken is known.
    Owned,
    /// It goes to another node: nothing new is begun.
    Leaving,
}

impl Phase {
    /// Returns whether all is known that was in the log when the partition was taken.
    fn is_whole(self) -> bool {
        matches!(self, Self::Owned | Self::Leaving | Self::Lapsed)
    }

    /// Returns whether the log is read.
    fn is_reading(self) -> bool {
        matches!(self, Self::Settled | Self::Links(_) | Self::Owned)
    }
}

/// What is known of one partition.
#[derive(Debug, Default)]
struct Log {
    phase: Phase,
    /// Whose state this node has: see `Change::Taken`.
    since: Option<Revision>,
    /// All messages up to this number have been read, and what they say was offered.
    position: Sequence,
    unread: Unread,
    /// When a portion was asked for that hasn't come.
    asked: Option<Instant>,
    /// When the last portion was asked for that had nothing in it.
    ended: Instant,
    /// When the next portion may be asked for; if one is asked for, when that is asked for again.
    not_before: Instant,
    /// The number of times that what was known of it has become void.
    generation: u32,
    /// The number of URLs that were ever queued here when what was known became void: those up to
    /// it are queued again, from the log.
    stale: u64,
    /// The length of the messages that were read since the last snapshot, in bytes.
    log_bytes: u64,
    /// The length of that snapshot.
    snapshot_bytes: u64,
}

/// The messages of a log after its position.
#[derive(Debug, Default)]
struct Unread {
    /// The part of the last portion that isn't used up.
    messages: VecDeque<Delivery>,
    /// The offset of the next record in the first of them; 0 at its beginning.
    offset: usize,
    /// The number of messages after that portion, when it was read.
    left: u64,
    /// Since when there have been any messages without a break.
    since: Option<Instant>,
}

/// A message that was read, as far as its length matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) partition: Partition,
    pub(super) bytes: usize,
    /// Whether it is a part of a snapshot.
    pub(super) is_part: bool,
}

/// What a checkpoint keeps of a partition. The fields are those of [`Log`]; `since` is `None` if
/// what is known counts for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) since: Option<Revision>,
    pub(super) position: Sequence,
    pub(super) generation: u32,
    pub(super) stale: u64,
    pub(super) log_bytes: u64,
    pub(super) snapshot_bytes: u64,
}

/// What is known of all partitions.
#[derive(Debug)]
pub(super) struct Logs {
    logs: Box<[Log]>,
    /// The partitions that are read and have no messages, by `not_before`.
    waits: BTreeSet<(Instant, Partition)>,
    /// The partitions that go to other nodes.
    leaving: BTreeSet<Partition>,
    /// When it is looked at next whether they can be released.
    release_at: Instant,
    /// The partitions with messages that aren't used up, in the order in which they came.
    ready: VecDeque<Partition>,
    connection: Connection,
    /// The messages that were used up, and their length in bytes.
    used: (u64, u64),
    /// The last check of the ends of all logs: its number, and when it began.
    check: (u64, Instant),
    /// How often a partition has come or gone.
    changes: u64,
    portion_bytes: usize,
    /// How long the queue is asked to wait for messages.
    wait: Duration,
}

/// Whether logs can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// They could never be read so far.
    Never,
    /// They can be read.
    Up,
    /// They can't be read since then.
    Lost(Instant),
}

/// How long the answer to a reading is waited for, in addition to the time that the queue waits for
/// messages.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How often it is looked at whether partitions that go to others can be released.
const RELEASE_PERIOD: Duration = Duration::from_millis(250);
/// The pause after a reading that failed.
pub(super) const RETRY: Duration = Duration::from_secs(1);

impl Logs {
    pub(super) fn new(portion_bytes: usize, wait: Duration) -> Self {
        let logs = (0..PARTITIONS).map(|_| Log::default()).collect();
        let (waits, leaving, ready) = (BTreeSet::new(), BTreeSet::new(), VecDeque::new());
        Self {
            logs,
            waits,
            leaving,
            release_at: Instant::ZERO,
            ready,
            connection: Connection::Never,
            used: (0, 0),
            check: (0, Instant::ZERO),
            changes: 0,
            portion_bytes,
            wait,
        }
    }

    fn log(&mut self, partition: Partition) -> &mut Log {
        &mut self.logs[partition.index()]
    }

    /// Sets when a log is asked for (again), and lists it by that time if it is to be read.
    fn wait_until(&mut self, partition: Partition, at: Instant) {
        let log = &mut self.logs[partition.index()];
        self.waits.remove(&(log.not_before, partition));
        log.not_before = at;
        if log.phase.is_reading() && log.unread.messages.is_empty() {
            self.waits.insert((at, partition));
        }
    }

    pub(super) fn phase(&self, partition: Partition) -> Phase {
        self.logs[partition.index()].phase
    }

    /// Returns the number of times that what this node knew of a partition has become void, because
    /// another node had it.
    pub(super) fn generation(&self, partition: Partition) -> u32 {
        self.logs[partition.index()].generation
    }

    /// Notes that a partition is held. Returns whether what was known of it is void: then it must
    /// be forgotten before [`Self::begin`].
    pub(super) fn take(&mut self, partition: Partition, since: Revision) -> bool {
        self.leaving.remove(&partition);
        self.changes += 1;
        let log = self.log(partition);
        let is_known = log.since == Some(since);
        log.phase = if is_known { Phase::Owned } else { Phase::Void };
        log.since = Some(since);
        self.wait_until(partition, Instant::ZERO);
        !is_known
    }

    /// Begins to read the log of a partition whose former state is forgotten. `queued` is the
    /// number of URLs that were ever queued here.
    pub(super) fn begin(&mut self, partition: Partition, queued: u64) {
        let log = self.log(partition);
        if log.phase == Phase::Void {
            (log.phase, log.position, log.stale) = (Phase::Settled, Sequence::default(), queued);
            (log.log_bytes, log.snapshot_bytes) = (0, 0);
            log.generation += 1;
            self.wait_until(partition, Instant::ZERO);
        }
    }

    /// Returns whether the URL of this number among all that were queued here was queued before
    /// what was known of its partition became void.
    pub(super) fn is_stale(&self, partition: Partition, arrival: u64) -> bool {
        arrival <= self.logs[partition.index()].stale
    }

    /// Notes that a partition goes to another node.
    pub(super) fn leave(&mut self, partition: Partition) {
        self.stop_reading(partition, Phase::Leaving);
        self.leaving.insert(partition);
    }

    /// Notes that a partition isn't held any more.
    pub(super) fn lapse(&mut self, partition: Partition) {
        self.leaving.remove(&partition);
        self.stop_reading(partition, Phase::Lapsed);
    }

    /// Begins a phase in which the log isn't read. What was read and not used up is forgotten; the
    /// position stays.
    fn stop_reading(&mut self, partition: Partition, phase: Phase) {
        self.changes += 1;
        let log = self.log(partition);
        // What is known in part is worth nothing.
        log.since = log.since.filter(|_| log.phase.is_whole());
        log.phase = phase;
        (log.asked, log.unread) = (None, Unread::default());
        self.ready.retain(|ready| *ready != partition);
        self.wait_until(partition, Instant::ZERO);
    }

    /// Notes the length of a message that is used up. Returns whether the log has grown so much
    /// that a snapshot of it is due, if `bytes_min` bytes are worth one.
    pub(super) fn note_length(&mut self, message: &Message, bytes_min: u64) -> bool {
        let (messages, bytes) = self.used;
        self.used = (messages + 1, bytes + message.bytes as u64);
        let log = self.log(message.partition);
        if matches!(log.phase, Phase::Links(_)) {
            return false; // They were counted in the pass before.
        }
        match message.is_part {
            true => log.snapshot_bytes += message.bytes as u64,
            false => log.log_bytes += message.bytes as u64,
        }
        log.phase == Phase::Owned && memory::is_due(log.log_bytes, log.snapshot_bytes, bytes_min)
    }

    /// Returns the last message that was read of a log, and the length of those since its last
    /// snapshot, in bytes.
    pub(super) fn read_so_far(&self, partition: Partition) -> (Sequence, u64) {
        let log = &self.logs[partition.index()];
        (log.position, log.log_bytes)
    }

    /// Notes that there is a snapshot of `bytes` bytes of messages of `log_bytes` bytes, or that
    /// none could be made.
    pub(super) fn compacted(&mut self, partition: Partition, log_bytes: u64, bytes: Option<u64>) {
        let log = self.log(partition);
        log.log_bytes = log.log_bytes.saturating_sub(log_bytes);
        log.snapshot_bytes = bytes.unwrap_or(log.snapshot_bytes);
    }

    /// Returns whether logs can be read.
    pub(super) fn is_connected(&self) -> bool {
        self.connection == Connection::Up
    }

    /// Returns whether logs can be read, and since when not.
    pub(super) fn connection(&self) -> Connection {
        self.connection
    }

    /// Returns the number of messages that were used up, and their length in bytes. Those of a log
    /// that is read twice count twice.
    pub(super) fn used(&self) -> (u64, u64) {
        self.used
    }

    /// Returns the number of messages of a log that aren't used up, as of its last portion, and
    /// since when there have been any.
    pub(super) fn unread(&self, partition: Partition) -> (u64, Option<Instant>) {
        let Unread { messages, left, since, .. } = &self.logs[partition.index()].unread;
        (messages.len() as u64 + left, *since)
    }

    /// Returns what a checkpoint keeps: for each partition that was ever taken, the state of what
    /// is known of it.
    pub(super) fn kept(&self) -> impl Iterator<Item = (Partition, Kept)> {
        Partition::all().zip(&self.logs).filter(|(_, log)| log.generation > 0).map(|(of, log)| {
            let Log { phase, position, generation, stale, .. } = *log;
            let Log { log_bytes, snapshot_bytes, .. } = *log;
            let since = log.since.filter(|_| phase.is_whole());
            (of, Kept { since, position, generation, stale, log_bytes, snapshot_bytes })
        })
    }

    /// Restores what is known of a partition, which isn't held.
    pub(super) fn restore(&mut self, partition: Partition, kept: Kept) {
        let Kept { since, position, generation, stale, log_bytes, snapshot_bytes } = kept;
        *self.log(partition) = Log {
            phase: Phase::Lapsed,
            since,
            position,
            generation,
            stale,
            log_bytes,
            snapshot_bytes,
            ..Log::default()
        };
    }

    /// Returns the partitions that go to another node, once each [`RELEASE_PERIOD`]; none in
    /// between.
    pub(super) fn leaving(&mut self, now: Instant) -> Vec<Partition> {
        if self.leaving_at().is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.release_at = now + RELEASE_PERIOD;
        self.leaving.iter().copied().collect()
    }

    /// Returns when [`Self::leaving`] returns partitions; `None` if none goes to another node.
    pub(super) fn leaving_at(&self) -> Option<Instant> {
        (!self.leaving.is_empty()).then_some(self.release_at)
    }

    /// Notes that logs can be read.
    pub(super) fn connected(&mut self) {
        self.connection = Connection::Up;
    }

    /// Notes that logs can't be read, and that what was asked for will not come.
    pub(super) fn disconnected(&mut self, now: Instant) {
        if self.is_connected() {
            self.connection = Connection::Lost(now);
        }
        for partition in Partition::all() {
            if self.log(partition).asked.take().is_some() {
                self.wait_until(partition, Instant::ZERO);
            }
        }
    }

    /// Takes a portion of a log, after which the log has `left` more messages. One that wasn't
    /// asked for, or is from another place, is dropped.
    pub(super) fn read(
        &mut self,
        reading: &Reading,
        (found, left): (Option<Vec<Delivery>>, u64),
        now: Instant,
    ) {
        let partition = reading.partition;
        let log = self.log(partition);
        if log.position != reading.after || !log.phase.is_reading() {
            return;
        }
        let Some(asked) = log.asked.take() else { return };
        match found {
            Some(messages) if !messages.is_empty() => {
                let since = log.unread.since.or(Some(now));
                log.unread = Unread { messages: messages.into(), offset: 0, left, since };
                self.ready.push_back(partition);
                self.wait_until(partition, Instant::ZERO);
            }
            Some(_) => {
                (log.ended, log.unread) = (asked, Unread::default());
                self.reach_end(partition);
            }
            None => self.wait_until(partition, now + RETRY),
        }
    }

    /// Notes that a log has no more messages now.
    fn reach_end(&mut self, partition: Partition) {
        let log = self.log(partition);
        match log.phase {
            Phase::Settled => {
                log.phase = Phase::Links(log.position);
                log.position = Sequence::default();
            }
            Phase::Links(_) => log.phase = Phase::Owned,
            _ => {}
        }
        self.wait_until(partition, Instant::ZERO);
    }

    /// Returns a portion to ask for; `None` if there is none now.
    pub(super) fn next_reading(&mut self, now: Instant) -> Option<Reading> {
        let (bytes_max, wait) = (self.portion_bytes, self.wait);
        let due = self.waits.first().filter(|(at, _)| *at <= now && self.is_connected());
        let partition = due?.1;
        let (_, check) = self.check;
        let log = self.log(partition);
        log.asked = Some(now);
        // Before a partition is owned, its end is looked for, not what comes next.
        let is_waiting = log.phase == Phase::Owned && log.ended >= check;
        let wait = if is_waiting { wait } else { Duration::ZERO };
        let after = log.position;
        self.wait_until(partition, now + wait + ANSWER_MAX);
        Some(Reading { partition, after, bytes_max, wait, purpose: Purpose::Crawl })
    }

    /// Returns when the next portion may be asked for.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waits.first().map(|(at, _)| *at).filter(|_| self.is_connected())
    }

    /// Begins the check of this number, unless it is the present one: asks each log that is read
    /// at once whether there is more in it. Returns whether none had more.
    pub(super) fn are_ends_checked(&mut self, check: u64, now: Instant) -> bool {
        if self.check.0 != check {
            self.check = (check, now);
            Partition::all().for_each(|partition| self.wait_until(partition, now));
        }
        let (_, since) = self.check;
        let is_checked = |log: &Log| !log.phase.is_reading() || log.ended >= since;
        self.logs.iter().all(is_checked)
    }

    /// Returns whether all that was read is used up, and no partition is on its way to this node or
    /// to another.
    pub(super) fn are_read(&self) -> bool {
        let is_still =
            |log: &Log| matches!(log.phase, Phase::Foreign | Phase::Lapsed | Phase::Owned);
        self.ready.is_empty() && self.logs.iter().all(is_still)
    }

    /// Returns the partitions that this node has, in order, each with the last message that was
    /// read.
    pub(super) fn positions(&self) -> impl Iterator<Item = (Partition, Sequence)> {
        let own = Partition::all().zip(&self.logs).filter(|(_, log)| log.phase.is_whole());
        let own = own.filter(|(_, log)| log.phase != Phase::Lapsed);
        own.map(|(partition, log)| (partition, log.position))
    }

    /// Returns the number of messages of all logs that aren't used up. Reads all partitions.
    pub(super) fn unread_messages(&self) -> u64 {
        Partition::all().map(|partition| self.unread(partition).0).sum()
    }

    /// Returns how often a partition has come or gone.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns whether there are messages to be used up.
    pub(super) fn has_messages(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the most bytes of messages of one log that aren't used up.
    pub(super) fn portion_bytes_now(&self) -> usize {
        let bytes =
            |log: &Log| log.unread.messages.iter().map(|message| message.payload.len()).sum();
        self.logs.iter().map(bytes).max().unwrap_or(0)
    }

    /// Returns the first message that isn't used up, the offset of its next record, and the phase
    /// of its partition.
    pub(super) fn message(&self) -> Option<(&Delivery, usize, Phase)> {
        let partition = *self.ready.front()?;
        let log = &self.logs[partition.index()];
        Some((log.unread.messages.front()?, log.unread.offset, log.phase))
    }

    /// Notes that the first message was used up to this offset; to its end if `None`.
    pub(super) fn advance(&mut self, offset: Option<usize>) {
        let Some(partition) = self.ready.front().copied() else { return };
        let log = self.log(partition);
        if let Some(offset) = offset {
            log.unread.offset = offset;
            return;
        }
        let Some(message) = log.unread.messages.pop_front() else { return };
        (log.position, log.unread.offset) = (message.sequence, 0);
        if matches!(log.phase, Phase::Links(end) if log.position >= end) {
            log.phase = Phase::Owned;
        }
        if log.unread.messages.is_empty() {
            log.unread.since = log.unread.since.filter(|_| log.unread.left > 0);
            self.ready.pop_front();
            self.wait_until(partition, Instant::ZERO);
        }
    }
}
