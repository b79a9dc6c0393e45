//! What this node has read of the logs of partitions, and what it reads next.
//!
//! A node reads the logs of the partitions that it holds, one portion of each at a time: the next
//! portion is asked for when the last one is used up, so that what waits in memory is bounded. A
//! partition that was taken from another node is read twice from the beginning: first for the URLs
//! that are settled, then for those that are not. After that it is *owned*, and what others add is
//! read as it comes.
//!
//! Law: a position is never ahead of what the engine has been offered.

use crate::cluster::Partition;
use crate::cluster::partition::PARTITIONS;
use crate::cluster::queue::{Delivery, Reading, Revision, Sequence};
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
    /// The part of the last portion that isn't used up.
    messages: VecDeque<Delivery>,
    /// The offset of the next record in the first of them; 0 at its beginning.
    offset: usize,
    /// Whether a portion is asked for.
    is_asked: bool,
    /// When the next portion may be asked for.
    not_before: Instant,
    /// The number of times that what was known of it has become void.
    generation: u32,
    /// The number of URLs that were ever queued here when what was known became void: those up to
    /// it are queued again, from the log.
    stale: u64,
}

/// What is known of all partitions.
#[derive(Debug)]
pub(super) struct Logs {
    logs: Box<[Log]>,
    /// The partitions of which the next portion may be asked for, by the time from which it may.
    waits: BTreeSet<(Instant, Partition)>,
    /// The partitions that go to other nodes.
    leaving: BTreeSet<Partition>,
    /// The partitions with messages that aren't used up, in the order in which they came.
    ready: VecDeque<Partition>,
    portion_bytes: usize,
    poll: Duration,
}

impl Logs {
    pub(super) fn new(portion_bytes: usize, poll: Duration) -> Self {
        let logs = (0..PARTITIONS).map(|_| Log::default()).collect();
        let (waits, leaving, ready) = (BTreeSet::new(), BTreeSet::new(), VecDeque::new());
        Self { logs, waits, leaving, ready, portion_bytes, poll }
    }

    fn log(&mut self, partition: Partition) -> &mut Log {
        &mut self.logs[partition.index()]
    }

    /// Sets the time from which the next portion of a log may be asked for, and lists it by that
    /// time if it is to be read.
    fn wait_until(&mut self, partition: Partition, at: Instant) {
        let log = &mut self.logs[partition.index()];
        self.waits.remove(&(log.not_before, partition));
        log.not_before = at;
        if log.phase.is_reading() && !log.is_asked && log.messages.is_empty() {
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

    /// Notes that a partition is held. Returns whether what was known of it has become void.
    /// `queued` is the number of URLs that were ever queued here.
    pub(super) fn take(&mut self, partition: Partition, since: Revision, queued: u64) -> bool {
        self.leaving.remove(&partition);
        let log = self.log(partition);
        let is_known = log.since == Some(since);
        if is_known {
            log.phase = Phase::Owned;
        } else {
            let (generation, not_before) = (log.generation + 1, log.not_before);
            let (phase, since, stale) = (Phase::Settled, Some(since), queued);
            *log = Log { phase, since, generation, stale, not_before, ..Log::default() };
            self.ready.retain(|ready| *ready != partition);
        }
        self.wait_until(partition, Instant::ZERO);
        !is_known
    }

    /// Returns whether the URL of this number among all that were queued here was queued before
    /// what was known of its partition became void.
    pub(super) fn is_stale(&self, partition: Partition, arrival: u64) -> bool {
        arrival <= self.logs[partition.index()].stale
    }

    /// Notes that a partition goes to another node.
    pub(super) fn leave(&mut self, partition: Partition) {
        self.log(partition).phase = Phase::Leaving;
        self.leaving.insert(partition);
        self.wait_until(partition, Instant::ZERO);
    }

    /// Notes that a partition isn't held any more.
    pub(super) fn lapse(&mut self, partition: Partition) {
        self.leaving.remove(&partition);
        let log = self.log(partition);
        // What is known in part is worth nothing.
        let is_whole = matches!(log.phase, Phase::Owned | Phase::Leaving | Phase::Lapsed);
        (log.phase, log.is_asked) = (Phase::Lapsed, false);
        log.since = log.since.filter(|_| is_whole);
        self.wait_until(partition, Instant::ZERO);
    }

    /// Returns the partitions that go to another node.
    pub(super) fn leaving(&self) -> impl Iterator<Item = Partition> {
        self.leaving.iter().copied()
    }

    /// Notes that what was asked for will not come: the connection is another one.
    pub(super) fn disconnected(&mut self) {
        for partition in Partition::all() {
            if std::mem::take(&mut self.log(partition).is_asked) {
                self.wait_until(partition, Instant::ZERO);
            }
        }
    }

    /// Takes a portion of a log. One that wasn't asked for, or is from another place, is dropped.
    pub(super) fn read(&mut self, reading: &Reading, found: Option<Vec<Delivery>>, now: Instant) {
        let (partition, poll) = (reading.partition, self.poll);
        let log = self.log(partition);
        if !log.is_asked || log.position != reading.after || !log.phase.is_reading() {
            return;
        }
        log.is_asked = false;
        match found {
            Some(messages) if !messages.is_empty() => {
                log.messages = messages.into();
                self.ready.push_back(partition);
            }
            Some(_) => self.reach_end(partition, now),
            None => self.wait_until(partition, now + poll),
        }
    }

    /// Notes that a log has no more messages now.
    fn reach_end(&mut self, partition: Partition, now: Instant) {
        let poll = self.poll;
        let log = self.log(partition);
        let mut next = now + poll;
        match log.phase {
            Phase::Settled => {
                log.phase = Phase::Links(log.position);
                log.position = Sequence::default();
                next = now;
            }
            Phase::Links(_) => log.phase = Phase::Owned,
            _ => {}
        }
        self.wait_until(partition, next);
    }

    /// Returns a portion to ask for; `None` if there is none now.
    pub(super) fn next_reading(&mut self, now: Instant) -> Option<Reading> {
        let bytes_max = self.portion_bytes;
        let partition = self.waits.first().filter(|(at, _)| *at <= now)?.1;
        let log = self.log(partition);
        log.is_asked = true;
        let (after, not_before) = (log.position, log.not_before);
        self.wait_until(partition, not_before);
        Some(Reading { partition, after, bytes_max })
    }

    /// Returns when the next portion may be asked for.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waits.first().map(|(at, _)| *at)
    }

    /// Returns whether there are messages to be used up.
    pub(super) fn has_messages(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the first message that isn't used up, the offset of its next record, and the phase
    /// of its partition.
    pub(super) fn message(&self) -> Option<(&Delivery, usize, Phase)> {
        let partition = *self.ready.front()?;
        let log = &self.logs[partition.index()];
        Some((log.messages.front()?, log.offset, log.phase))
    }

    /// Notes that the first message was used up to this offset; to its end if `None`.
    pub(super) fn advance(&mut self, offset: Option<usize>) {
        let Some(partition) = self.ready.front().copied() else { return };
        let log = self.log(partition);
        if let Some(offset) = offset {
            log.offset = offset;
            return;
        }
        let Some(message) = log.messages.pop_front() else { return };
        (log.position, log.offset) = (message.sequence, 0);
        if matches!(log.phase, Phase::Links(end) if log.position >= end) {
            log.phase = Phase::Owned;
        }
        if log.messages.is_empty() {
            self.ready.pop_front();
            self.wait_until(partition, Instant::ZERO);
        }
    }
}
