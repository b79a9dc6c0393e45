//! Answers what a new owner of a partition must know, from its snapshot and its log.
//!
//! The owner feeds the parts of the snapshot and then the messages since, in order, and does so
//! twice. In the first pass everything but links comes out, in the second the links that aren't
//! settled. A link may come out more than once; the seen test drops the repeats.
//!
//! Laws: those of `memory`. A step reads at most as many bytes as the caller allows, and one record
//! more, and continues where it stopped.
//! Cost: 30 ns for a record a pass, and the memory that `memory` states. No step is longer for the
//! number of URLs, except that a list of 8 bytes for each settled URL is moved when it grows.

use super::part::{HEAD_BYTES, Parts};
use super::{Damage, Flaw, Source};
use crate::cluster::Partition;
use crate::cluster::queue::Sequence;
use crate::cluster::record::{Fingerprints, Link, Reader, Record};
use crate::url::Fingerprint;
use std::collections::BTreeSet;

/// The replay of a partition's memory.
#[derive(Debug)]
pub struct Replay {
    partition: Partition,
    parts: Parts,
    /// The number of messages that were begun in this pass.
    messages: u64,
    is_second: bool,
    /// The settled URLs of the snapshot, in ascending order.
    old: Vec<u64>,
    /// The settled URLs of the messages.
    new: BTreeSet<u64>,
}

/// The position in a part or a message. It is the caller's, so that it may go on later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    source: Source,
    position: usize,
}

impl Cursor {
    /// Returns whether everything in `bytes`, the part or message, was read.
    pub fn is_at_end(&self, bytes: &[u8]) -> bool {
        self.position >= bytes.len()
    }
}

impl Replay {
    /// Begins the first pass over the memory of a partition.
    pub fn new(partition: Partition) -> Self {
        Self {
            partition,
            parts: Parts::new(partition),
            messages: 0,
            is_second: false,
            old: Vec::new(),
            new: BTreeSet::new(),
        }
    }

    /// Begins the second pass: the same parts and messages are fed again.
    ///
    /// # Errors
    /// The last part of the snapshot was not read.
    pub fn begin_second(&mut self) -> Result<(), Damage> {
        self.parts.end()?;
        (self.parts, self.messages) = (Parts::new(self.partition), 0);
        self.is_second = true;
        Ok(())
    }

    /// Returns the number of the last message that the snapshot includes: those after it are to be
    /// fed. `None` if no part was fed.
    pub fn sequence(&self) -> Option<Sequence> {
        self.parts.sequence()
    }

    /// Returns the number of URLs that are known to be settled; those that are in the snapshot and
    /// in messages count twice.
    pub fn settled(&self) -> usize {
        self.old.len() + self.new.len()
    }

    /// Begins the next part of the snapshot.
    ///
    /// # Errors
    /// The part is damaged, or isn't the next one.
    pub fn part(&mut self, bytes: &[u8]) -> Result<Cursor, Damage> {
        let source = self.parts.begin(bytes)?;
        Ok(Cursor { source, position: HEAD_BYTES })
    }

    /// Begins the next message.
    ///
    /// # Errors
    /// The message is damaged, or the last part of the snapshot was not read.
    pub fn message(&mut self, payload: &[u8]) -> Result<Cursor, Damage> {
        self.parts.end()?;
        let source = Source::Message(self.messages);
        self.messages += 1;
        let opened = Reader::open(payload).map_err(|damage| Damage::of_record(source, damage));
        opened.map(|(_, reader)| Cursor { source, position: reader.position() })
    }

    /// Reads on in a part or message in the first pass, `budget` bytes (above zero) and one record
    /// at most.
    /// Yields everything but links. The cursor is moved to where reading ends.
    ///
    /// # Panics
    ///
    /// If the second pass has begun.
    pub fn known<'a, 'r>(
        &'r mut self,
        bytes: &'a [u8],
        cursor: &'r mut Cursor,
        budget: usize,
    ) -> Known<'a, 'r> {
        assert!(!self.is_second, "what is settled belongs to the first pass");
        let steps = Steps::new(bytes, cursor, budget);
        Known { replay: self, steps }
    }

    /// Reads on in a part or message in the second pass, `budget` bytes (above zero) and one record
    /// at most.
    /// Yields the links that aren't settled. The cursor is moved to where reading ends.
    ///
    /// # Panics
    ///
    /// If the second pass has not begun.
    pub fn links<'a, 'r>(
        &'r self,
        bytes: &'a [u8],
        cursor: &'r mut Cursor,
        budget: usize,
    ) -> Links<'a, 'r> {
        assert!(self.is_second, "links are not known to be settled before the second pass");
        let steps = Steps::new(bytes, cursor, budget);
        Links { replay: self, steps }
    }

    fn is_settled(&self, Fingerprint(key): Fingerprint) -> bool {
        self.old.binary_search(&key).is_ok() || self.new.contains(&key)
    }

    /// Notes what is settled.
    fn settle(&mut self, source: Source, all: Fingerprints<'_>) -> Result<(), Flaw> {
        match source {
            Source::Message(_) => self.new.extend(all.map(|key| key.0)),
            Source::Part(_) => {
                for Fingerprint(key) in all {
                    if self.old.last().is_some_and(|last| *last >= key) {
                        return Err(Flaw::Order);
                    }
                    self.old.push(key);
                }
            }
        }
        Ok(())
    }
}

/// Reads records within a budget, and moves the cursor.
#[derive(Debug)]
struct Steps<'a, 'r> {
    reader: Reader<'a>,
    cursor: &'r mut Cursor,
    /// The position at which the budget is spent.
    end: usize,
}

impl<'a, 'r> Steps<'a, 'r> {
    fn new(bytes: &'a [u8], cursor: &'r mut Cursor, budget: usize) -> Self {
        let reader = Reader::resume(bytes, cursor.position);
        let end = cursor.position.saturating_add(budget);
        Self { reader, cursor, end }
    }

    /// Returns the next record and its offset.
    fn next(&mut self) -> Option<Result<(Record<'a>, usize), Damage>> {
        let offset = self.cursor.position;
        let record = if offset < self.end { self.reader.next()? } else { return None };
        self.cursor.position = self.reader.position();
        let source = self.cursor.source;
        let record = record.map_err(|damage| Damage::of_record(source, damage));
        Some(record.map(|record| (record, offset)))
    }
}

/// What a part or message says besides links. See [`Replay::known`].
#[derive(Debug)]
pub struct Known<'a, 'r> {
    replay: &'r mut Replay,
    steps: Steps<'a, 'r>,
}

impl<'a> Iterator for Known<'a, '_> {
    type Item = Result<Record<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (record, offset) = match self.steps.next()? {
                Ok((Record::Link(_), _)) => continue,
                Ok(step) => step,
                Err(damage) => return Some(Err(damage)),
            };
            if let Record::Settled(all) = record {
                let source = self.steps.cursor.source;
                if let Err(flaw) = self.replay.settle(source, all) {
                    return Some(Err(Damage { source, offset, flaw }));
                }
            }
            return Some(Ok(record));
        }
    }
}

/// The links of a part or message that aren't settled. See [`Replay::links`].
#[derive(Debug)]
pub struct Links<'a, 'r> {
    replay: &'r Replay,
    steps: Steps<'a, 'r>,
}

impl<'a> Iterator for Links<'a, '_> {
    type Item = Result<Link<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.steps.next()? {
                Ok((Record::Link(link), _)) if !self.replay.is_settled(link.fingerprint) => {
                    return Some(Ok(link));
                }
                Ok(_) => {}
                Err(damage) => return Some(Err(damage)),
            }
        }
    }
}
