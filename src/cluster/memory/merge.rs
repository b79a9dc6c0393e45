//! Makes a new snapshot from the old one and the messages since.
//!
//! The messages come first, all of them; then the parts of the old snapshot, one after the other.
//! The parts of the new one come out as they are full.
//!
//! Laws: those of `memory`. At most one old part and one new part are in memory at a time, whatever
//! the snapshot's length.
//! Cost: what is kept of the messages (see `news`); each record of the snapshot is decoded and
//! encoded once, 140 ns for a link, and looked up among the news.

use super::news::News;
use super::part::{Emit, HEAD_BYTES, Parts, Writer};
use super::{Damage, Flaw, PART_BYTES, Source};
use crate::cluster::Partition;
use crate::cluster::queue::Sequence;
use crate::cluster::record::{self, Link, Reader, Record};
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

/// Makes a new snapshot of a partition, as a whole. `old` are the parts of the old snapshot (none
/// if there is none) and `messages` the payloads since, in order; `sequence` is the number of the
/// last of them. `emit` receives the new parts.
///
/// # Errors
/// A part or a message is damaged, or a part is missing. What came out is no snapshot then.
pub fn merge<P: AsRef<[u8]>, M: AsRef<[u8]>>(
    partition: Partition,
    sequence: Sequence,
    old: impl IntoIterator<Item = P>,
    messages: impl IntoIterator<Item = M>,
    mut emit: impl FnMut(Vec<u8>),
) -> Result<(), Damage> {
    let mut merge = Merge::new(partition, sequence);
    messages.into_iter().try_for_each(|payload| merge.message(payload.as_ref()))?;
    let mut merging = merge.begin();
    old.into_iter().try_for_each(|part| merging.part(part.as_ref(), &mut emit))?;
    merging.finish(&mut emit)
}

/// Collects the messages since the old snapshot.
#[derive(Debug)]
pub struct Merge {
    partition: Partition,
    sequence: Sequence,
    part_bytes: usize,
    messages: u64,
    news: News,
}

impl Merge {
    /// Begins a snapshot of a partition up to the message number `sequence`.
    pub fn new(partition: Partition, sequence: Sequence) -> Self {
        Self::with_part_bytes(partition, sequence, PART_BYTES)
    }

    pub(super) fn with_part_bytes(
        partition: Partition,
        sequence: Sequence,
        part_bytes: usize,
    ) -> Self {
        Self { partition, sequence, part_bytes, messages: 0, news: News::default() }
    }

    /// Adds the next message.
    ///
    /// # Errors
    /// It is damaged. What precedes the damage is added.
    pub fn message(&mut self, payload: &[u8]) -> Result<(), Damage> {
        let source = Source::Message(self.messages);
        self.messages += 1;
        let of_record = |damage| Damage::of_record(source, damage);
        let (_, records) = Reader::open(payload).map_err(of_record)?;
        for record in records {
            self.news.add(record.map_err(of_record)?);
        }
        Ok(())
    }

    /// Sorts what the messages say. After that the parts of the old snapshot are read.
    pub fn begin(mut self) -> Merging {
        self.news.sort();
        Merging {
            news: self.news,
            parts: Parts::new(self.partition),
            section: Section::Settled,
            last: None,
            writer: Writer::new(self.partition, self.sequence, self.part_bytes),
        }
    }
}

/// A merge that reads the parts of the old snapshot.
#[derive(Debug)]
pub struct Merging {
    news: News,
    parts: Parts,
    /// The section that is being read and written.
    section: Section,
    /// The key of the last old record of this section.
    last: Option<Vec<u8>>,
    writer: Writer,
}

impl Merging {
    /// Reads the next part of the old snapshot. `emit` receives the new parts that are full.
    ///
    /// # Errors
    /// The part is damaged, or isn't the next one. The merge can't continue then.
    pub fn part(&mut self, bytes: &[u8], emit: &mut dyn FnMut(Vec<u8>)) -> Result<(), Damage> {
        let source = self.parts.begin(bytes)?;
        let mut records = Reader::resume(bytes, HEAD_BYTES);
        loop {
            let offset = records.position();
            let Some(record) = records.next() else { return Ok(()) };
            let record = record.map_err(|damage| Damage::of_record(source, damage))?;
            self.old(record, emit).map_err(|flaw| Damage { source, offset, flaw })?;
        }
    }

    /// Writes what is left, and the last part.
    ///
    /// # Errors
    /// The last part of the old snapshot was not read.
    pub fn finish(mut self, emit: &mut dyn FnMut(Vec<u8>)) -> Result<(), Damage> {
        self.parts.end()?;
        while self.end_section(emit) {}
        self.writer.end(emit);
        Ok(())
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
