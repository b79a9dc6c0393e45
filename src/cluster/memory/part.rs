//! The parts of a snapshot: their format, their sequence, and the writer that fills them.
//!
//! Laws: the parts of a snapshot are read in their order, all of one snapshot, and completely. A
//! part that is written has at most the agreed length, unless one record is longer.
//! Cost: a checksum and two copies of each record.

use super::{Damage, Flaw, Source};
use crate::cluster::Partition;
use crate::cluster::queue::Sequence;
use crate::cluster::record::{self, SETTLED_MAX};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::frame;
use crate::url::Fingerprint;

const FORMAT: u8 = 1;
/// The kind of the frame that is a part.
const PART: u8 = 1;
/// The length of what precedes the records in a part, in bytes.
pub(super) const HEAD_BYTES: usize = frame::OVERHEAD_BYTES + 16;

/// What precedes the records in a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    partition: u16,
    sequence: Sequence,
    number: u32,
    is_last: bool,
}

impl Head {
    fn put(self, out: &mut Vec<u8>) {
        out.put_u8(FORMAT);
        out.put_u16(self.partition);
        out.put_u64(self.sequence.0);
        out.put_u32(self.number);
        out.put_bool(self.is_last);
    }

    fn take(payload: &[u8]) -> Result<Self, Flaw> {
        let mut take = Take::new(payload);
        let short = |Short| Flaw::Frame(frame::Flaw::Senseless);
        let format = take.u8().map_err(short)?;
        if format != FORMAT {
            return Err(Flaw::Record(record::Flaw::Format(format)));
        }
        Ok(Self {
            partition: take.u16().map_err(short)?,
            sequence: Sequence(take.u64().map_err(short)?),
            number: take.u32().map_err(short)?,
            is_last: take.bool().map_err(short)?,
        })
    }
}

/// The position in a snapshot that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    partition: Partition,
    /// The number of the next part.
    next: u32,
    /// The last message that the snapshot includes, once a part was read.
    sequence: Option<Sequence>,
    /// Whether the last part was read.
    is_complete: bool,
}

impl Parts {
    pub(super) fn new(partition: Partition) -> Self {
        Self { partition, next: 0, sequence: None, is_complete: false }
    }

    /// Checks that `bytes` are the next part. Returns its source; its records begin at
    /// [`HEAD_BYTES`].
    pub(super) fn begin(&mut self, bytes: &[u8]) -> Result<Source, Damage> {
        let source = Source::Part(self.next);
        let head = self.check(bytes).map_err(|flaw| Damage { source, offset: 0, flaw })?;
        self.next += 1;
        self.sequence = Some(head.sequence);
        self.is_complete = head.is_last;
        Ok(source)
    }

    fn check(&self, bytes: &[u8]) -> Result<Head, Flaw> {
        let (frame, used) = frame::parse(bytes, 0).map_err(Flaw::Frame)?;
        if frame.kind != PART || used != bytes.len() {
            return Err(Flaw::Frame(frame::Flaw::Senseless));
        }
        let head = Head::take(frame.payload)?;
        let is_next = head.number == self.next
            && head.partition == self.partition.number()
            && self.sequence.is_none_or(|sequence| sequence == head.sequence)
            && !self.is_complete;
        if is_next { Ok(head) } else { Err(Flaw::Foreign) }
    }

    /// Checks that there was no part, or the last one was read.
    pub(super) fn end(&self) -> Result<(), Damage> {
        if self.next == 0 || self.is_complete {
            return Ok(());
        }
        Err(Damage { source: Source::Part(self.next), offset: 0, flaw: Flaw::Missing })
    }

    /// Returns the last message that the snapshot includes; `None` if no part was read.
    pub(super) fn sequence(&self) -> Option<Sequence> {
        self.sequence
    }
}

/// Receives the parts of a new snapshot, in order.
pub(super) type Emit<'a> = &'a mut dyn FnMut(Vec<u8>);

/// Writes the parts of a snapshot.
#[derive(Debug)]
pub(super) struct Writer {
    partition: Partition,
    sequence: Sequence,
    part_bytes: usize,
    /// The number of the part that is being filled.
    number: u32,
    /// The records of that part.
    records: Vec<u8>,
    /// Settled URLs that aren't in a record yet.
    settled: Vec<Fingerprint>,
}

impl Writer {
    pub(super) fn new(partition: Partition, sequence: Sequence, part_bytes: usize) -> Self {
        Self {
            partition,
            sequence,
            part_bytes,
            number: 0,
            records: Vec::new(),
            settled: Vec::new(),
        }
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
    pub(super) fn end(self, emit: Emit<'_>) {
        emit(self.part(self.records.len(), true));
    }

    fn part(&self, bytes: usize, is_last: bool) -> Vec<u8> {
        let Self { sequence, number, .. } = *self;
        let head = Head { partition: self.partition.number(), sequence, number, is_last };
        let mut part = Vec::with_capacity(HEAD_BYTES + bytes);
        frame::push_with(PART, &mut part, |out| {
            head.put(out);
            out.extend_from_slice(&self.records[..bytes]);
        });
        part
    }
}
