//! Publications that are under way: handed out and not answered, or to be handed out again.
//!
//! Laws: a publication keeps its id and its messages until the queue has them. No two have the
//! same id, those of other processes included.
//! Cost: a call looks at all publications under way, of which there are a few.

use super::collect::Batch;
use crate::cluster::queue::{Message, Publication, PublicationId};
use crate::ground::time::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// The pause after the first failure of a publication. Each further failure doubles it.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The publications under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// The id of the next new publication.
    next: PublicationId,
    all: BTreeMap<PublicationId, Entry>,
    /// The length of all messages, in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    batches: Vec<Batch>,
    state: State,
    /// The pause after the next failure.
    pause: Duration,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The world has it since this time.
    Out(Instant),
    /// It is to be handed out again at this time.
    Pausing(Instant),
}

impl UnderWay {
    /// Creates an empty list of the process with this random number.
    pub(super) fn new(process: u64) -> Self {
        let next = PublicationId { process, number: 0 };
        Self { next, all: BTreeMap::new(), bytes: 0 }
    }

    /// Adds a new publication and hands it out.
    pub(super) fn begin(&mut self, batches: Vec<Batch>, now: Instant) -> Publication {
        let id = self.next;
        self.next.number += 1;
        self.add(id, batches, State::Out(now));
        publication(id, &self.all[&id])
    }

    /// Adds a publication of an earlier process, which is to be handed out again. Returns `false`
    /// if there is one with that id, or if it is this process's.
    pub(super) fn restore(&mut self, id: PublicationId, batches: Vec<Batch>) -> bool {
        let is_new = id.process != self.next.process && !self.all.contains_key(&id);
        if is_new {
            self.add(id, batches, State::Pausing(Instant::ZERO));
        }
        is_new
    }

    fn add(&mut self, id: PublicationId, batches: Vec<Batch>, state: State) {
        self.bytes += length(&batches);
        self.all.insert(id, Entry { batches, state, pause: PAUSE_MIN });
    }

    /// Makes all publications that have no answer be handed out again at once: none will come.
    pub(super) fn lose_answers(&mut self) {
        for entry in self.all.values_mut().filter(|entry| matches!(entry.state, State::Out(_))) {
            entry.state = State::Pausing(Instant::ZERO);
        }
    }

    /// Returns a publication that is to be handed out again, or that had no answer for
    /// `answer_max`; the oldest one.
    pub(super) fn again(&mut self, now: Instant, answer_max: Duration) -> Option<Publication> {
        let is_due = |entry: &Entry| entry.due_at(answer_max) <= now;
        let (id, entry) = self.all.iter_mut().find(|(_, entry)| is_due(entry))?;
        entry.state = State::Out(now);
        Some(publication(*id, entry))
    }

    /// Returns when the next publication is to be handed out again.
    pub(super) fn next_at(&self, answer_max: Duration) -> Option<Instant> {
        self.all.values().map(|entry| entry.due_at(answer_max)).min()
    }

    /// Removes a publication that is in the logs, and returns its batches; `None` if it isn't under
    /// way.
    pub(super) fn end(&mut self, id: PublicationId) -> Option<Vec<Batch>> {
        let Entry { batches, .. } = self.all.remove(&id)?;
        self.bytes -= length(&batches);
        Some(batches)
    }

    /// Notes that a publication has failed. A failure that is reported twice counts once.
    pub(super) fn fail(&mut self, id: PublicationId, now: Instant) {
        if let Some(entry) = self.all.get_mut(&id)
            && let State::Out(_) = entry.state
        {
            entry.state = State::Pausing(now + entry.pause);
            entry.pause = (2 * entry.pause).min(PAUSE_MAX);
        }
    }

    /// Returns the number of publications under way.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the length of all messages, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the ids of the publications and their batches.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = (PublicationId, &[Batch])> {
        self.all.iter().map(|(id, entry)| (*id, entry.batches.as_slice()))
    }
}

impl Entry {
    fn due_at(&self, answer_max: Duration) -> Instant {
        match self.state {
            State::Out(since) => since + answer_max,
            State::Pausing(until) => until,
        }
    }
}

fn length(batches: &[Batch]) -> usize {
    batches.iter().map(|batch| batch.payload.len()).sum()
}

fn publication(id: PublicationId, entry: &Entry) -> Publication {
    let message =
        |batch: &Batch| Message { partition: batch.partition, payload: batch.payload.clone() };
    Publication { id, messages: entry.batches.iter().map(message).collect() }
}
