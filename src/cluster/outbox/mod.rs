//! The outbox: collects what this node has to say to the logs of partitions, and publishes it.
//!
//! Records are collected in one open batch a partition. A batch is sealed when it is long enough or
//! its oldest record has waited long enough. Sealed batches wait in one line, first in memory, then
//! on disk. From its front they are grouped into publications, of which a few are under way at
//! once. A publication that failed, or whose answer is lost, is handed out again with the same
//! number after a pause, until the queue has taken it.
//!
//! Each record has a *place*: the number of records that were accepted up to it. Records may be
//! *held*: they are published only after all records up to a place are in their logs. Held records
//! of a partition are collected in a batch of their own, and get their places when it is sealed.
//! All batches that it depends on are sealed before it, so it never waits for what is behind it in
//! the line.
//!
//! ```text
//! file   state/outbox/segment-N: the opening frame, then batches
//! BATCH  kind 1: the payload of a message (see `record`)
//! mark   place varint | publications under way, each: process u64, number varint, batches
//!        | batches in memory | open batches | held open batches | batches on disk, each: segment,
//!        offset, length, partition, first, after and records, varints
//! batch  partition, first, after and records, varints | payload bytes
//! ```
//!
//! Every list in the mark is preceded by its length, a varint. `first` is the place of the batch's
//! first record (0 if it has none yet), `after` the place that it waits for, `records` their
//! number.
//!
//! Laws: a record that was accepted is published at least once. A held record is never handed out
//! before its place is durable. A publication has the same id and content each time it is handed
//! out, and no two have the same id. After each call what is collected, sealed and under way takes
//! at most [`Settings::memory_max`] bytes, unless one batch alone exceeds half of that. After a
//! restart from a checkpoint what was accepted before it is published, perhaps for the second time.
//! Not in the bound are batches that wait for [`Outbox::write`] (about 64 KiB; more while the disk
//! is full), and the copies of publications that the world has.
//!
//! Cost: 150 ns for a record of 68 bytes, of random partitions; a copy of each batch when it is
//! handed out; about 100 bytes of memory for a batch on disk. Work of a call: `push` and `hold`
//! copy the records and seal as many bytes as they add, or one batch more; a held batch that is
//! full seals the plain ones that it waits for, at most one a partition. `next` seals at most the
//! length of a publication and one batch more, reads back as much and copies as much. `published`
//! is O(log n) for each message. `mark` copies what is in memory.

mod collect;
mod mark;
mod under_way;
mod waiting;

#[cfg(test)]
mod tests;

use super::Partition;
use super::partition::PARTITIONS;
use super::queue::{Publication, PublicationId};
use super::record::{Records, Sender};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Flaw, Mark};
use crate::ground::time::Instant;
use collect::{Collector, Which};
use std::collections::BTreeSet;
use std::time::Duration;
use under_way::UnderWay;
pub use waiting::FOLDER;
use waiting::Waiting;

/// The limits of an outbox.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The length at which a batch is sealed, in bytes. It may be exceeded by one record.
    pub batch_bytes: usize,
    /// How long the oldest record of a batch waits at most until the batch is sealed. Batches are
    /// sealed ten times in this time, not each by itself, so that there are few publications.
    pub wait_max: Duration,
    /// The maximum number of messages in a publication. A server that syncs each message answers
    /// nothing else about the stream meanwhile: some five milliseconds for each.
    pub messages_max: usize,
    /// The maximum length of a publication, in bytes. A message that is longer is published alone.
    pub publication_bytes: usize,
    /// The maximum number of publications that are under way at once.
    pub window: usize,
    /// How long an answer is waited for. After that it counts as lost.
    pub answer_max: Duration,
    /// The maximum length of all batches in memory, in bytes. Half of it is for open batches.
    pub memory_max: usize,
}

/// The number of times in `wait_max` at which batches are sealed.
const BEATS: u64 = 10;

impl Default for Settings {
    fn default() -> Self {
        Self {
            batch_bytes: 128 << 10,
            wait_max: Duration::from_secs(5),
            messages_max: 64,
            publication_bytes: 1 << 20,
            window: 4,
            answer_max: Duration::from_secs(60),
            memory_max: 64 << 20,
        }
    }
}

/// Why a publication is not known to be in the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The queue has refused it, for another reason than that it has it already.
    Refused,
    /// The answer is lost: the messages may be in the logs or not.
    Unknown,
}

/// What an outbox has done since it was created, and what waits in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records that were accepted.
    pub records: u64,
    /// The length of these records, in bytes.
    pub record_bytes: u64,
    /// Publications that are in the logs.
    pub publications: u64,
    /// Messages that are in the logs.
    pub messages: u64,
    /// The length of these messages, in bytes.
    pub message_bytes: u64,
    /// How often a publication was handed out again.
    pub repeats: u64,
    /// How often a publication was refused.
    pub refusals: u64,
    /// The length of the batches in memory now: open, sealed and under way.
    pub memory_bytes: u64,
    /// The length of the batches that wait on disk now.
    pub disk_bytes: u64,
}

/// What waits to be published, as the head of this file describes.
#[derive(Debug)]
pub struct Outbox {
    settings: Settings,
    collector: Collector,
    waiting: Waiting,
    under_way: UnderWay,
    /// Whether the queue can be reached.
    is_connected: bool,
    /// The number of records that have a place.
    place: u64,
    /// The places of the first records of all sealed batches that are not in the logs.
    unpublished: BTreeSet<u64>,
    /// For each partition, the number of sealed batches that are not in its log.
    partitions: Vec<u32>,
    counts: Counts,
    /// Whether held records are let out at once, to see that the tests notice.
    #[cfg(test)]
    is_mutant: bool,
}

impl Outbox {
    /// Creates an empty outbox of the node `sender` in the crawl number `crawl`. The queue can't be
    /// reached at first.
    pub fn new(settings: Settings, sender: &Sender, crawl: u64) -> Self {
        Self {
            settings,
            collector: Collector::new(sender),
            waiting: Waiting::new(crawl),
            under_way: UnderWay::new(sender.incarnation),
            is_connected: false,
            place: 0,
            unpublished: BTreeSet::new(),
            partitions: vec![0; usize::from(PARTITIONS)],
            counts: Counts::default(),
            #[cfg(test)]
            is_mutant: false,
        }
    }

    /// Accepts records for the log of a partition, each at the next place.
    pub fn push(&mut self, partition: Partition, records: &Records, now: Instant) {
        for record in records.iter() {
            self.place += 1;
            self.accept(Which::Plain, partition, record, self.place, now);
        }
    }

    /// Accepts records that may be published only when all records up to `place` are in their logs.
    /// They have no place until their batch is sealed.
    ///
    /// # Panics
    ///
    /// If there is no such place yet.
    pub fn hold(&mut self, place: u64, partition: Partition, records: &Records, now: Instant) {
        assert!(place <= self.place, "a record is held for earlier ones");
        for record in records.iter() {
            self.accept(Which::Held, partition, record, place, now);
        }
    }

    fn accept(
        &mut self,
        which: Which,
        partition: Partition,
        record: &[u8],
        place: u64,
        now: Instant,
    ) {
        self.counts.records += 1;
        self.counts.record_bytes += record.len() as u64;
        // Batches that are begun close together are sealed at once, and published together.
        let beat_us = (self.settings.wait_max.as_micros() as u64 / BEATS).max(1);
        let since = Instant::from_micros(now.as_micros() / beat_us * beat_us);
        let bytes = self.collector.add(which, partition, record, place, since);
        if bytes >= self.settings.batch_bytes {
            self.seal(which, partition);
        }
        while self.collector.bytes() > self.settings.memory_max / 2
            && let Some((which, partition)) = self.collector.oldest()
        {
            self.seal_next(which, partition);
        }
    }

    /// Accepts a message for the log of a partition that is complete, as a batch of its own.
    /// Returns its place.
    pub fn send(&mut self, partition: Partition, payload: Box<[u8]>) -> u64 {
        self.place += 1;
        self.counts.records += 1;
        self.counts.record_bytes += payload.len() as u64;
        let batch = collect::Batch { partition, first: self.place, after: 0, records: 1, payload };
        self.line_up(batch);
        self.place
    }

    /// Returns whether there is room in memory for much more: half of what is sealed may take.
    pub fn has_room(&self) -> bool {
        self.closed_bytes() < self.settings.memory_max / 4
    }

    /// Seals all open batches of a partition, so that they don't wait any longer.
    pub fn flush(&mut self, partition: Partition) {
        self.seal(Which::Plain, partition);
        self.seal(Which::Held, partition);
    }

    /// Returns the number of records that were accepted and have a place.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Returns a place up to which all records are in their logs.
    pub fn durable(&self) -> u64 {
        let sealed = self.unpublished.first().copied();
        let first = [sealed, self.collector.first()].into_iter().flatten().min();
        first.map_or(self.place, |first| first - 1)
    }

    /// Returns whether all records for a partition are in its log.
    pub fn is_drained(&self, partition: Partition) -> bool {
        self.partitions[partition.index()] == 0 && !self.collector.has(partition)
    }

    /// Returns whether all records are in their logs.
    pub fn is_empty(&self) -> bool {
        self.unpublished.is_empty() && self.collector.oldest().is_none()
    }

    /// Returns what was done, and what waits.
    pub fn counts(&self) -> Counts {
        let memory_bytes = (self.collector.bytes() + self.closed_bytes()) as u64;
        Counts { memory_bytes, disk_bytes: self.waiting.disk_bytes(), ..self.counts }
    }

    /// Notes that the queue can be reached.
    pub fn connected(&mut self) {
        self.is_connected = true;
    }

    /// Notes that the queue can't be reached any more. Publications without an answer are handed
    /// out again when it can.
    pub fn disconnected(&mut self) {
        self.is_connected = false;
        self.under_way.lose_answers();
    }

    /// Returns the next publication, for the world to carry to the queue; `None` if nothing is
    /// ready, as many are under way as may be, or the queue can't be reached.
    ///
    /// # Errors
    /// A batch can't be read back from the disk. It stays at the front of the line, and the call
    /// can be repeated.
    pub fn next(
        &mut self,
        now: Instant,
        disk: &mut dyn Disk,
    ) -> Result<Option<Publication>, frame::Error> {
        self.seal_due(now);
        if !self.is_connected {
            return Ok(None);
        }
        if let Some(publication) = self.under_way.again(now, self.settings.answer_max) {
            self.counts.repeats += 1;
            return Ok(Some(publication));
        }
        if self.under_way.len() >= self.settings.window {
            return Ok(None);
        }
        self.read_back(disk)?;
        let durable = self.durable();
        #[cfg(test)]
        let durable = if self.is_mutant { u64::MAX } else { durable };
        let Settings { messages_max, publication_bytes, .. } = self.settings;
        let batches = self.waiting.take(durable, messages_max, publication_bytes);
        Ok((!batches.is_empty()).then(|| self.under_way.begin(batches, now)))
    }

    /// Returns when [`Self::next`] has something to do that no other call causes: batches to seal,
    /// or a publication to repeat. `None` if there is no such time.
    pub fn next_at(&self) -> Option<Instant> {
        let sealed = self.collector.since().map(|since| since + self.settings.wait_max);
        let repeated = self.under_way.next_at(self.settings.answer_max);
        let repeated = repeated.filter(|_| self.is_connected);
        [sealed, repeated].into_iter().flatten().min()
    }

    /// Reports the answer to the publication with this id. That the queue has it already is
    /// success. An answer to a publication that is not under way is ignored.
    pub fn published(&mut self, id: PublicationId, result: Result<(), Failure>, now: Instant) {
        match result {
            Ok(()) => {
                let Some(batches) = self.under_way.end(id) else { return };
                self.counts.publications += 1;
                for batch in batches {
                    self.counts.messages += 1;
                    self.counts.message_bytes += batch.payload.len() as u64;
                    self.unpublished.remove(&batch.first);
                    self.partitions[batch.partition.index()] -= 1;
                }
            }
            Err(failure) => {
                self.under_way.fail(id, now);
                self.counts.refusals += u64::from(failure == Failure::Refused);
            }
        }
    }

    /// Writes batches that go to the disk: all of them, or only if they are enough for an append.
    ///
    /// # Errors
    /// The disk reports an error. Nothing is lost, and the call can be repeated.
    pub fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.waiting.segments.write(all, disk)
    }

    /// Writes the batches that go to the disk, and returns the files that a checkpoint names and
    /// the bytes from which the outbox is restored.
    ///
    /// # Errors
    /// The disk reports an error.
    pub fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        let files = self.waiting.segments.mark(disk)?;
        let mut state = Vec::with_capacity(self.collector.bytes() + self.closed_bytes());
        mark::put(self, &mut state);
        Ok(Mark { state, files })
    }

    /// Called when the checkpoint with the last [`Self::mark`] is durable. Returns the names of
    /// files that are no longer needed.
    pub fn on_durable(&mut self) -> Vec<String> {
        self.waiting.segments.on_durable(None)
    }

    /// Restores the files of a new outbox. `files` are those that the checkpoint of an earlier run
    /// names, with their valid lengths.
    ///
    /// # Errors
    /// Those of [`crate::ground::segments::Segments::restore_files`].
    pub fn restore_files(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        self.waiting.segments.restore_files(files, disk).map(drop)
    }

    /// Restores a new outbox, whose files are restored, from the bytes of a mark.
    ///
    /// # Errors
    /// The bytes are invalid, or name a batch in a file that isn't restored. The outbox can't be
    /// used after that.
    pub fn restore_mark(&mut self, bytes: &[u8]) -> Result<(), Flaw> {
        mark::restore(self, bytes)
    }

    /// Returns the length of the batches that are sealed or under way, in bytes.
    fn closed_bytes(&self) -> usize {
        self.waiting.memory_bytes() + self.under_way.bytes()
    }

    /// Seals batches whose time has come: as many as have the length of a publication.
    fn seal_due(&mut self, now: Instant) {
        let mut bytes = 0;
        while bytes < self.settings.publication_bytes
            && let Some(since) = self.collector.since()
            && since + self.settings.wait_max <= now
            && let Some((which, partition)) = self.collector.oldest()
        {
            bytes += self.seal_next(which, partition);
        }
    }

    /// Seals an open batch, if there is one, and before it all those that it waits for.
    fn seal(&mut self, which: Which, partition: Partition) {
        while self.collector.contains(which, partition) {
            self.seal_next(which, partition);
        }
    }

    /// Seals an open batch, or one that it waits for. Returns the length of that one, in bytes.
    fn seal_next(&mut self, which: Which, partition: Partition) -> usize {
        let (which, partition) = self.collector.first_of(which, partition);
        let mut batch = self.collector.close(which, partition);
        if batch.first == 0 {
            batch.first = self.place + 1;
            self.place += u64::from(batch.records);
        }
        let bytes = batch.payload.len();
        self.line_up(batch);
        bytes
    }

    /// Adds a sealed batch to the line.
    fn line_up(&mut self, batch: collect::Batch) {
        self.enlist(&batch);
        let bytes = self.closed_bytes() + batch.payload.len();
        self.waiting.push(batch, bytes <= self.settings.memory_max / 2);
    }

    /// Notes that a sealed batch is not in the logs.
    fn enlist(&mut self, batch: &collect::Batch) {
        self.unpublished.insert(batch.first);
        self.partitions[batch.partition.index()] += 1;
    }

    /// Reads batches back from the disk while there is room, up to a publication.
    fn read_back(&mut self, disk: &mut dyn Disk) -> Result<(), frame::Error> {
        while self.waiting.memory_bytes() < self.settings.publication_bytes
            && let Some(bytes) = self.waiting.next_on_disk()
        {
            let is_idle = self.closed_bytes() == 0;
            if !is_idle && self.closed_bytes() + bytes > self.settings.memory_max / 2 {
                break;
            }
            self.waiting.read_back(disk)?;
        }
        Ok(())
    }
}
