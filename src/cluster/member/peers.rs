//! The sessions of other nodes, by this observer's count, and how they are ended.
//!
//! A session that isn't renewed for a lease *has passed*: its node doesn't ask any more. But an
//! observer may have missed renewals, since it sees changes late. So it *fences* the session first:
//! it changes the node's entry from the revision that it has seen to one that says that the session
//! is over. That succeeds only if there was no renewal, and makes all later ones fail. Only then,
//! or if the entry says so for another reason, is the session over for anybody.
//!
//! While the connection is lost, silence means nothing, so nothing passes; after it, all counts
//! begin anew. That saves useless writes; the fence makes even a wrong count harmless.
//!
//! Why sessions: if each of 1,024 partitions had a lease of its own, nodes would renew a hundred
//! entries a second, of the 160 to 195 writes that a queue that syncs each of them was measured to
//! take. A session is one entry, three writes a lease, whatever the node holds.
//!
//! Cost: an entry of a map for each name that ever was in the crawl; `due` reads them all.

use super::progress::Progress;
use super::settings::Timing;
#[cfg(test)]
use super::tests::sabotage::{self, Sabotage};
use super::value::{Idleness, NodeValue, Session, State};
use crate::cluster::queue::{Key, Name, Revision, Write, WriteFailure, WriteId};
use crate::ground::time::Instant;
use std::collections::BTreeMap;

/// The other nodes.
#[derive(Debug)]
pub(super) struct Peers {
    all: BTreeMap<Name, Peer>,
    timing: Timing,
}

/// What an entry that was seen has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing: it isn't later than what is known.
    Old,
    /// The session goes on.
    Renewal,
    /// Another session, or another state.
    Session,
}

/// What is known of another node.
#[derive(Debug)]
struct Peer {
    revision: Revision,
    /// The value of the entry; `None` if it can't be decoded.
    value: Option<NodeValue>,
    /// When the entry was last seen to change, or the connection began.
    seen_at: Instant,
    progress: Progress,
    /// Whether the session has passed, fenced or not; for faults.
    #[cfg(test)]
    has_passed: bool,
}

impl Peer {
    /// Returns when the session may be fenced.
    fn due(&self, timing: Timing) -> Instant {
        if self.value.is_none_or(|value| value.state.is_over()) {
            return Instant::FAR;
        }
        self.progress.due().max(self.seen_at + timing.passing)
    }
}

impl Peers {
    pub(super) fn new(timing: Timing) -> Self {
        Self { all: BTreeMap::new(), timing }
    }

    /// Notes that all entries are shown anew from now on: the counts begin anew.
    pub(super) fn connected(&mut self, now: Instant) {
        for peer in self.all.values_mut() {
            peer.seen_at = now;
            peer.progress.reset();
        }
    }

    /// Notes what the entry of a node says. Returns what has changed.
    pub(super) fn see(
        &mut self,
        now: Instant,
        name: &Name,
        revision: Revision,
        value: Option<NodeValue>,
    ) -> News {
        let standing = |value: Option<NodeValue>| value.map(|value| (value.number, value.state));
        let peer = Peer {
            revision,
            value,
            seen_at: now,
            progress: Progress::default(),
            #[cfg(test)]
            has_passed: false,
        };
        let Some(known) = self.all.get_mut(name) else {
            self.all.insert(name.clone(), peer);
            return News::Session;
        };
        if known.revision >= revision {
            return News::Old;
        }
        let has_changed = standing(known.value) != standing(value);
        *known = peer;
        if has_changed { News::Session } else { News::Renewal }
    }

    /// Returns whether a session is over, beyond doubt. An entry that shows an earlier session is
    /// old news.
    pub(super) fn is_over(&self, session: &Session) -> bool {
        let Some(peer) = self.all.get(&session.name) else { return false };
        let Some(value) = peer.value else { return false };
        #[cfg(test)]
        if peer.has_passed && sabotage::is(Sabotage::NotFenced)
            || value.number < session.number && sabotage::is(Sabotage::StaleSessionOver)
        {
            return true;
        }
        value.number > session.number || value.number == session.number && value.state.is_over()
    }

    /// Notes which sessions have passed, fenced or not.
    #[cfg(test)]
    pub(super) fn note_passed(&mut self, now: Instant) {
        for peer in self.all.values_mut() {
            peer.has_passed = peer.seen_at + self.timing.passing <= now;
        }
    }

    /// Returns whether a session has passed, fenced or not.
    #[cfg(test)]
    pub(super) fn has_passed(&self, session: &Session) -> bool {
        self.all.get(&session.name).is_some_and(|peer| peer.has_passed)
    }

    /// Returns whether a session sets its pace by this roll or a later one.
    pub(super) fn has_adopted(&self, session: &Session, roll: Revision) -> bool {
        let value = self.all.get(&session.name).and_then(|peer| peer.value);
        value.is_some_and(|value| value.number == session.number && value.roll >= roll)
    }

    /// Returns what an active session says of its idleness.
    pub(super) fn idleness(&self, session: &Session) -> Option<Idleness> {
        let value = self.all.get(&session.name).and_then(|peer| peer.value)?;
        let is_active = value.number == session.number && value.state == State::Active;
        is_active.then_some(value.idleness)
    }

    /// Returns whether a node has found that the crawl is over, by this agreement.
    pub(super) fn has_ended(&self, agreement: u64) -> bool {
        let mut said = self.all.values().filter_map(|peer| peer.value.map(|value| value.idleness));
        said.any(|says| says.is_over && says.confirmed == agreement)
    }

    /// Returns whether a node of this name is about to join.
    pub(super) fn is_joining(&self, name: &Name) -> bool {
        let value = self.all.get(name).and_then(|peer| peer.value);
        value.is_some_and(|value| value.state == State::Joining)
    }

    /// Returns the nodes that may take partitions, in the order of their names.
    pub(super) fn active(&self) -> impl Iterator<Item = &Name> {
        let is_active = |peer: &Peer| peer.value.is_some_and(|value| value.state == State::Active);
        self.all.iter().filter(move |(_, peer)| is_active(peer)).map(|(name, _)| name)
    }

    /// Returns when the next session is to be fenced.
    pub(super) fn due(&self) -> Instant {
        let due = self.all.values().map(|peer| peer.due(self.timing)).min();
        due.unwrap_or(Instant::FAR)
    }

    /// Returns the write that fences a session that has passed, if there is one.
    pub(super) fn write(&mut self, now: Instant, id: WriteId) -> Option<Write> {
        let timing = self.timing;
        let (name, peer) = self.all.iter_mut().find(|(_, peer)| peer.due(timing) <= now)?;
        let value = NodeValue { state: State::Over, ..peer.value? };
        peer.progress.begin(id, now + timing.patience);
        let expected = Some(peer.revision);
        Some(Write { id, key: Key::Node(name.clone()), expected, value: value.encode() })
    }

    /// Takes the answer to a write. Returns whether a session is over by it.
    pub(super) fn wrote(
        &mut self,
        now: Instant,
        id: WriteId,
        answer: Result<Revision, WriteFailure>,
    ) -> bool {
        let Some(peer) =
            self.all.values_mut().find_map(|peer| peer.progress.end(id).then_some(peer))
        else {
            return false;
        };
        match answer {
            Ok(revision) => {
                peer.revision = revision;
                peer.value = peer.value.map(|value| NodeValue { state: State::Over, ..value });
            }
            // The entry has changed; it will be seen.
            Err(WriteFailure::Conflict) => peer.progress.wait(now, self.timing.renewal),
            Err(WriteFailure::Unknown) => peer.progress.wait(now, self.timing.patience),
        }
        answer.is_ok()
    }
}
