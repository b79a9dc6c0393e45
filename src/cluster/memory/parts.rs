//! The parts of snapshots: which of those in a log are whole, and the writer of new ones.
//!
//! Law: a part that is written has at most the agreed length, unless one record is longer.
//! Cost: a look-up for each part that is read; two copies of each record that is written.

use crate::cluster::queue::Sequence;
use crate::cluster::record::{self, Head, Part, SETTLED_MAX, Sender};
use crate::url::Fingerprint;
use std::collections::BTreeMap;

/// The identity of a snapshot: who made it, and up to which message it goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    process: u64,
    through: Sequence,
}

impl Id {
    /// Returns which snapshot a payload with this head is a part of, and which part it is; `None`
    /// if it is none.
    pub(super) fn of(head: &Head) -> Option<(Self, Part)> {
        let part = head.part?;
        Some((Self { process: head.sender.incarnation, through: part.through }, part))
    }
}

/// What was found of a snapshot.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// The number of the next part.
    next: u32,
    is_complete: bool,
    bytes: u64,
}

/// The snapshots of which parts are in a log.
#[derive(Debug, Default)]
pub(super) struct Census {
    found: BTreeMap<Id, Found>,
}

impl Census {
    /// Notes a part. A part that comes twice counts once; one after a gap doesn't count.
    pub(super) fn note(&mut self, id: Id, part: Part, bytes: usize) {
        let found = self.found.entry(id).or_default();
        if part.number == found.next && !found.is_complete {
            found.next += 1;
            found.is_complete = part.is_last;
            found.bytes += bytes as u64;
        }
    }

    /// Returns the largest snapshot of which all parts were found.
    pub(super) fn largest(&self) -> Option<Id> {
        let whole = self.found.iter().filter(|(_, found)| found.is_complete);
        whole.max_by_key(|(_, found)| found.bytes).map(|(id, _)| id.clone())
    }

    /// Returns whether a snapshot has so many parts.
    pub(super) fn is_whole(&self, id: &Id, parts: u32) -> bool {
        self.found.get(id).is_some_and(|found| found.next == parts)
    }

    /// Returns the number of snapshots of which there are parts.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }
}

/// Receives the payloads of the parts of a new snapshot, in order.
pub(super) type Emit<'a> = &'a mut dyn FnMut(Vec<u8>);

/// Writes the parts of a snapshot.
#[derive(Debug)]
pub(super) struct Writer {
    sender: Sender,
    through: Sequence,
    part_bytes: usize,
    /// The number of the part that is being filled.
    number: u32,
    /// The records of that part.
    records: Vec<u8>,
    /// Settled URLs that aren't in a record yet.
    settled: Vec<Fingerprint>,
}

/// The length of what precedes the records of a part, at most.
const HEAD_BYTES: usize = 64;

impl Writer {
    pub(super) fn new(sender: Sender, through: Sequence, part_bytes: usize) -> Self {
        let (records, settled) = (Vec::new(), Vec::new());
        Self { sender, through, part_bytes, number: 0, records, settled }
    }

    /// Adds a settled URL. They must come in ascending order.
    pub(super) fn settled(&mut self, fingerprint: Fingerprint, emit: Emit<'_>) {
        self.settled.push(fingerprint);
        // An eighth of a part at most, so that parts are filled well.
        let count_max = (self.part_bytes / 64).clamp(1, SETTLED_MAX);
        if self.settled.len() >= count_max {
            self.end_settled(emit);
        }
    }

    /// Writes the settled URLs that aren't in a record yet.
    pub(super) fn end_settled(&mut self, emit: Emit<'_>) {
        let mut settled = std::mem::take(&mut self.settled);
        if !settled.is_empty() {
            self.add(|out| record::put_settled(&settled, out), emit);
        }
        settled.clear();
        self.settled = settled;
    }

    /// Adds the record that `put` appends. If the part is too long with it, a new part begins.
    pub(super) fn add(&mut self, put: impl FnOnce(&mut Vec<u8>), emit: Emit<'_>) {
        let before = self.records.len();
        put(&mut self.records);
        if before > 0 && HEAD_BYTES + self.records.len() > self.part_bytes {
            emit(self.part(before, false));
            self.records.drain(..before);
            self.number += 1;
        }
    }

    /// Writes the last part.
    pub(super) fn end(&mut self, emit: Emit<'_>) {
        emit(self.part(self.records.len(), true));
        self.records.clear();
    }

    fn part(&self, bytes: usize, is_last: bool) -> Vec<u8> {
        let Self { through, number, .. } = *self;
        let mut part = Vec::with_capacity(HEAD_BYTES + bytes);
        self.sender.put_part(Part { through, number, is_last }, &mut part);
        part.extend_from_slice(&self.records[..bytes]);
        part
    }
}
