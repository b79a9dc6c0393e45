//! Makes a snapshot from the messages of a log, which may be an older one's parts among others.
//!
//! The parts of the new one come out as they are full.
//!
//! Laws: those of `memory`. No more than one part of the old snapshot is in memory at a time.
//! Cost: what is kept of the messages (see `news`); each record of the snapshot is decoded and
//! encoded once, 140 ns for a link, and looked up among the news.

use super::news::News;
use super::parts::{Census, Emit, Id, Writer};
use super::{COLLECTED_MAX, Damage, Flaw, PART_BYTES};
use crate::cluster::queue::Sequence;
use crate::cluster::record::{self, Link, Reader, Record, Sender};
use crate::ground::time::UnixTime;
use crate::url::Fingerprint;

/// The sections of a snapshot, in their order. What is settled comes first, because links and tries
/// depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Settled,
    Tries,
    Links,
    Facts,
    Waits,
    Retired,
}

impl Section {
    fn of(record: &Record<'_>) -> Self {
        match record {
            Record::Settled(_) => Self::Settled,
            Record::Tries { .. } => Self::Tries,
            Record::Link(_) => Self::Links,
            Record::Fact { .. } => Self::Facts,
            Record::Wait { .. } => Self::Waits,
            Record::Retired { .. } => Self::Retired,
        }
    }

    fn next(self) -> Option<Self> {
        Some(match self {
            Self::Settled => Self::Tries,
            Self::Tries => Self::Links,
            Self::Links => Self::Facts,
            Self::Facts => Self::Waits,
            Self::Waits => Self::Retired,
            Self::Retired => return None,
        })
    }
}

/// What a merge needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The messages are to be fed once more, from the first to the same last one.
    Again,
    /// Nothing: the snapshot is complete.
    Done,
}

/// What is done with the messages of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pass {
    /// Everything but parts is collected.
    Plain,
    /// The parts of other snapshots than the old one are collected.
    Others(Option<Id>),
    /// The parts of the old snapshot are merged, of which this is the next.
    Old(Id, u32),
}

/// The making of a snapshot.
#[derive(Debug)]
pub struct Merge {
    pass: Pass,
    /// The number of messages that were fed in this pass.
    messages: u64,
    census: Census,
    news: News,
    /// The section that is being read and written.
    section: Section,
    /// The key of the last old record of this section.
    last: Option<Vec<u8>>,
    writer: Writer,
}

impl Merge {
    /// Begins a snapshot of a log up to the message number `through`, which is that of this node.
    pub fn new(sender: Sender, through: Sequence) -> Self {
        Self::with_part_bytes(sender, through, PART_BYTES)
    }

    pub(super) fn with_part_bytes(sender: Sender, through: Sequence, part_bytes: usize) -> Self {
        Self {
            pass: Pass::Plain,
            messages: 0,
            census: Census::default(),
            news: News::default(),
            section: Section::Settled,
            last: None,
            writer: Writer::new(sender, through, part_bytes),
        }
    }

    /// Returns the memory that what was collected takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.news.bytes()
    }

    /// Takes the next message of the log. `emit` receives the payloads of new parts that are full.
    ///
    /// # Errors
    /// The message is damaged. The merge can't continue then.
    pub fn message(&mut self, payload: &[u8], emit: Emit<'_>) -> Result<(), Damage> {
        let message = self.messages;
        self.messages += 1;
        let of_record = |damage: record::Damage| Damage {
            message,
            offset: damage.offset,
            flaw: Flaw::Record(damage.flaw),
        };
        let (head, mut records) = Reader::open(payload).map_err(of_record)?;
        let part = Id::of(&head);
        match (&mut self.pass, part) {
            (Pass::Plain, Some((id, part))) => {
                self.census.note(id, part, payload.len());
                return Ok(());
            }
            (Pass::Plain, None) => {}
            (Pass::Others(old), Some((id, _))) if old.as_ref() != Some(&id) => {}
            (Pass::Old(old, next), Some((id, part))) if id == *old && part.number == *next => {
                *next += 1;
                loop {
                    let offset = records.position();
                    let Some(record) = records.next() else { return Ok(()) };
                    let record = record.map_err(of_record)?;
                    self.old(record, emit).map_err(|flaw| Damage { message, offset, flaw })?;
                }
            }
            _ => return Ok(()),
        }
        records.try_for_each(|record| {
            self.news.add(record.map_err(of_record)?);
            Ok(())
        })?;
        let is_large = self.news.bytes() > COLLECTED_MAX;
        if is_large { Err(Damage { message, offset: 0, flaw: Flaw::Large }) } else { Ok(()) }
    }

    /// Ends a pass over the messages. `emit` receives the payloads of new parts.
    ///
    /// # Errors
    /// The old snapshot isn't whole any more. The merge can't continue then.
    pub fn end_pass(&mut self, emit: Emit<'_>) -> Result<Step, Damage> {
        let messages = std::mem::take(&mut self.messages);
        let old = self.census.largest();
        let others = self.census.len() - usize::from(old.is_some());
        self.pass = match (&self.pass, old) {
            (Pass::Plain, old) if others > 0 => Pass::Others(old),
            (Pass::Plain | Pass::Others(_), Some(old)) => {
                self.news.sort();
                Pass::Old(old, 0)
            }
            (Pass::Plain | Pass::Others(_), None) => {
                self.news.sort();
                self.finish(emit);
                return Ok(Step::Done);
            }
            (Pass::Old(old, next), _) => {
                if !self.census.is_whole(old, *next) {
                    return Err(Damage { message: messages, offset: 0, flaw: Flaw::Missing });
                }
                self.finish(emit);
                return Ok(Step::Done);
            }
        };
        Ok(Step::Again)
    }

    /// Writes what is left, and the last part.
    fn finish(&mut self, emit: Emit<'_>) {
        while self.end_section(emit) {}
        self.writer.end(emit);
    }

    /// Merges a record of the old snapshot with the news.
    fn old(&mut self, record: Record<'_>, emit: Emit<'_>) -> Result<(), Flaw> {
        let section = Section::of(&record);
        if section < self.section {
            return Err(Flaw::Order);
        }
        while self.section < section && self.end_section(emit) {}
        match record {
            Record::Settled(all) => {
                all.into_iter().try_for_each(|fingerprint| self.old_settled(fingerprint, emit))
            }
            Record::Tries { fingerprint, tries } => self.old_tries(fingerprint, tries, emit),
            Record::Link(link) => self.old_link(&link, emit),
            Record::Fact { source, target } => self.old_fact(source, target, emit),
            Record::Wait { origin, until } => self.old_wait(origin, until, emit),
            Record::Retired { origin, cause } => self.old_retired(origin, cause, emit),
        }
    }

    fn old_settled(&mut self, fingerprint: Fingerprint, emit: Emit<'_>) -> Result<(), Flaw> {
        self.keep_order(&fingerprint.0.to_be_bytes())?;
        self.new_settled(Some(fingerprint.0), emit);
        self.news.settled.at(fingerprint.0);
        self.news.forget(fingerprint.0);
        self.writer.settled(fingerprint, emit);
        Ok(())
    }

    fn old_tries(&mut self, key: Fingerprint, tries: u8, emit: Emit<'_>) -> Result<(), Flaw> {
        self.keep_order(&key.0.to_be_bytes())?;
        self.new_tries(Some(key.0), emit);
        let tries = self.news.tries.at(key.0).map_or(tries, |new| new.max(tries));
        if !self.news.settled.contains(key.0) {
            self.writer.add(|out| record::put_tries(key, tries, out), emit);
        }
        Ok(())
    }

    fn old_link(&mut self, link: &Link<'_>, emit: Emit<'_>) -> Result<(), Flaw> {
        let key = link.fingerprint.0;
        self.keep_order(&key.to_be_bytes())?;
        self.new_links(Some(key), emit);
        self.news.links.at(key);
        if !self.news.settled.contains(key) {
            self.writer.add(|out| record::put_link(link, out), emit);
        }
        Ok(())
    }

    fn old_fact(&mut self, source: &str, target: &str, emit: Emit<'_>) -> Result<(), Flaw> {
        // Zero is in no name, so the joined names have the order of the pairs.
        self.keep_order(&[source.as_bytes(), target.as_bytes()].join(&0))?;
        self.new_facts(Some((source, target)), emit);
        let is_same = |fact: &&(Box<str>, Box<str>)| (&*fact.0, &*fact.1) == (source, target);
        if self.news.facts.first().filter(is_same).is_some() {
            self.news.facts.pop_first();
        }
        self.writer.add(|out| record::put_fact(source, target, out), emit);
        Ok(())
    }

    fn old_wait(&mut self, origin: &str, until: UnixTime, emit: Emit<'_>) -> Result<(), Flaw> {
        self.keep_order(origin.as_bytes())?;
        self.new_waits(Some(origin), emit);
        let until = self.news.waits.remove(origin).map_or(until, |new| new.max(until));
        self.writer.add(|out| record::put_wait(origin, until, out), emit);
        Ok(())
    }

    fn old_retired(&mut self, origin: &str, cause: &str, emit: Emit<'_>) -> Result<(), Flaw> {
        self.keep_order(origin.as_bytes())?;
        self.new_retired(Some(origin), emit);
        self.news.retired.remove(origin);
        self.writer.add(|out| record::put_retired(origin, cause, out), emit);
        Ok(())
    }

    /// Checks that the keys of the old records of a section ascend.
    fn keep_order(&mut self, key: &[u8]) -> Result<(), Flaw> {
        match &mut self.last {
            Some(last) if last.as_slice() >= key => return Err(Flaw::Order),
            Some(last) => {
                last.clear();
                last.extend_from_slice(key);
            }
            None => self.last = Some(key.to_vec()),
        }
        Ok(())
    }

    /// Writes the news that are left of this section, and begins the next one. Returns `false` if
    /// there is none.
    fn end_section(&mut self, emit: Emit<'_>) -> bool {
        match self.section {
            Section::Settled => {
                self.new_settled(None, emit);
                self.writer.end_settled(emit);
            }
            Section::Tries => self.new_tries(None, emit),
            Section::Links => self.new_links(None, emit),
            Section::Facts => self.new_facts(None, emit),
            Section::Waits => self.new_waits(None, emit),
            Section::Retired => self.new_retired(None, emit),
        }
        self.last = None;
        let next = self.section.next();
        self.section = next.unwrap_or(self.section);
        next.is_some()
    }

    // The following write the news of a section that come before the key of an old record, or all
    // that are left if there is none.

    fn new_settled(&mut self, before: Option<u64>, emit: Emit<'_>) {
        while let Some((key, ())) = self.news.settled.below(before) {
            self.writer.settled(Fingerprint(key), emit);
        }
    }

    fn new_tries(&mut self, before: Option<u64>, emit: Emit<'_>) {
        while let Some((key, tries)) = self.news.tries.below(before) {
            self.writer.add(|out| record::put_tries(Fingerprint(key), tries, out), emit);
        }
    }

    fn new_links(&mut self, before: Option<u64>, emit: Emit<'_>) {
        while let Some((_, place)) = self.news.links.below(before) {
            let link = self.news.link(place);
            self.writer.add(|out| out.extend_from_slice(link), emit);
        }
    }

    fn new_facts(&mut self, before: Option<(&str, &str)>, emit: Emit<'_>) {
        while let Some((source, target)) = self.news.facts.first()
            && before.is_none_or(|before| (&**source, &**target) < before)
        {
            self.writer.add(|out| record::put_fact(source, target, out), emit);
            self.news.facts.pop_first();
        }
    }

    fn new_waits(&mut self, before: Option<&str>, emit: Emit<'_>) {
        while let Some((origin, until)) = self.news.waits.first_key_value()
            && before.is_none_or(|before| &**origin < before)
        {
            self.writer.add(|out| record::put_wait(origin, *until, out), emit);
            self.news.waits.pop_first();
        }
    }

    fn new_retired(&mut self, before: Option<&str>, emit: Emit<'_>) {
        while let Some((origin, cause)) = self.news.retired.first_key_value()
            && before.is_none_or(|before| &**origin < before)
        {
            self.writer.add(|out| record::put_retired(origin, cause, out), emit);
            self.news.retired.pop_first();
        }
    }
}
