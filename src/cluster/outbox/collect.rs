//! Open batches: two a partition, one for records that may be published at once and one for those
//! that are held.
//!
//! Laws: a batch is listed by its age, and a plain one by the place of its first record, exactly
//! while it is open. Plain batches come before held ones of the same age.
//! Cost: O(1) for a record, O(log n) to begin or seal a batch; 128 KiB of memory for the tables.

use crate::cluster::Partition;
use crate::cluster::partition::PARTITIONS;
use crate::cluster::record::Sender;
use crate::ground::time::Instant;
use std::collections::BTreeSet;

/// Which of the two open batches of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    /// The one whose records wait for nothing.
    Plain,
    /// The one whose records are held.
    Held,
}

/// A sealed batch: a message, and what the outbox must know of it.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) partition: Partition,
    /// The place of the first record; 0 if the records have no places yet.
    pub(super) first: u64,
    /// The place up to which records must be in their logs before the batch is published.
    pub(super) after: u64,
    /// The number of records.
    pub(super) records: u32,
    pub(super) payload: Box<[u8]>,
}

/// The open batches of all partitions.
#[derive(Debug)]
pub(super) struct Collector {
    /// The head of every payload.
    head: Vec<u8>,
    /// The open batches: those of a partition are at twice its number and after that.
    open: Vec<Option<Open>>,
    /// The open batches by the time of their oldest record.
    ages: BTreeSet<(Instant, Which, Partition)>,
    /// The open plain batches by the place of their first record.
    firsts: BTreeSet<(u64, Partition)>,
    /// The memory that the payloads take, in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct Open {
    since: Instant,
    first: u64,
    after: u64,
    records: u32,
    payload: Vec<u8>,
}

impl Collector {
    pub(super) fn new(sender: &Sender) -> Self {
        let mut head = Vec::new();
        sender.put(&mut head);
        let open = (0..2 * PARTITIONS).map(|_| None).collect();
        Self { head, open, ages: BTreeSet::new(), firsts: BTreeSet::new(), bytes: 0 }
    }

    /// Adds a record. `place` is its own, or the one that it waits for if it is held. Returns the
    /// length of its batch, in bytes.
    pub(super) fn add(
        &mut self,
        which: Which,
        partition: Partition,
        record: &[u8],
        place: u64,
        now: Instant,
    ) -> usize {
        let slot = &mut self.open[slot(which, partition)];
        if slot.is_none() {
            self.ages.insert((now, which, partition));
            if which == Which::Plain {
                self.firsts.insert((place, partition));
            }
        }
        let open = slot.get_or_insert_with(|| {
            let first = if which == Which::Plain { place } else { 0 };
            Open { since: now, first, after: 0, records: 0, payload: Vec::new() }
        });
        let before = open.payload.capacity();
        if open.payload.is_empty() {
            open.payload.extend_from_slice(&self.head);
        }
        if which == Which::Held {
            open.after = open.after.max(place);
        }
        open.payload.extend_from_slice(record);
        open.records += 1;
        self.bytes += open.payload.capacity() - before;
        open.payload.len()
    }

    /// Returns whether this batch is open.
    pub(super) fn contains(&self, which: Which, partition: Partition) -> bool {
        self.open[slot(which, partition)].is_some()
    }

    /// Returns whether a batch of this partition is open.
    pub(super) fn has(&self, partition: Partition) -> bool {
        self.contains(Which::Plain, partition) || self.contains(Which::Held, partition)
    }

    /// Returns the batch with the oldest record.
    pub(super) fn oldest(&self) -> Option<(Which, Partition)> {
        self.ages.first().map(|(_, which, partition)| (*which, *partition))
    }

    /// Returns when the oldest record was added.
    pub(super) fn since(&self) -> Option<Instant> {
        self.ages.first().map(|(since, ..)| *since)
    }

    /// Returns the first place of a record that is in an open batch.
    pub(super) fn first(&self) -> Option<u64> {
        self.firsts.first().map(|(first, _)| *first)
    }

    /// Returns the batch that must be sealed first so that this open batch can be sealed: a plain
    /// one that it waits for, or else itself.
    pub(super) fn first_of(&self, which: Which, partition: Partition) -> (Which, Partition) {
        let open = self.open[slot(which, partition)].as_ref();
        let after = open.map_or(0, |open| open.after);
        match self.firsts.first() {
            Some((first, earlier)) if *first <= after => (Which::Plain, *earlier),
            _ => (which, partition),
        }
    }

    /// Takes a batch that is open.
    pub(super) fn close(&mut self, which: Which, partition: Partition) -> Batch {
        let open = self.open[slot(which, partition)].take().expect("it is open");
        let Open { since, first, after, records, payload } = open;
        self.ages.remove(&(since, which, partition));
        self.firsts.remove(&(first, partition));
        self.bytes -= payload.capacity();
        Batch { partition, first, after, records, payload: payload.into_boxed_slice() }
    }

    /// Returns the memory that the open batches take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the open batches of one kind, oldest first: their partitions, first places, places
    /// to wait for, numbers of records and payloads.
    pub(super) fn all(
        &self,
        which: Which,
    ) -> impl Iterator<Item = (Partition, u64, u64, u32, &[u8])> {
        let of = move |open: &(Instant, Which, Partition)| open.1 == which;
        self.ages.iter().filter(move |open| of(open)).map(|(_, which, partition)| {
            let open = self.open[slot(*which, *partition)].as_ref().expect("it is listed");
            (*partition, open.first, open.after, open.records, open.payload.as_slice())
        })
    }
}

fn slot(which: Which, partition: Partition) -> usize {
    2 * partition.index() + usize::from(which == Which::Held)
}
