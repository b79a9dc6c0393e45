//! What all nodes have in common: the settings of the crawl, and the roll of its nodes.
//!
//! The *roll* is the list of the sessions that are reckoned with. The pace of each node follows
//! from its length: n nodes may ask, and each rests n times as long. It is one entry, changed by
//! compare-and-set, so that of two nodes that join at once the later one knows the earlier one. (If
//! each only announced itself in its own entry, each could become active before it saw the other:
//! the changes of different entries are seen in any order.)
//!
//! A session is added before it may become active, and every session on the roll must have said
//! that it reckons with that roll or a later one. It is removed when it is over, by whoever sees
//! that.
//!
//! Law: a node that may ask is on the roll of every node that may ask. For of two, the one that was
//! added later found the other on the roll; and it became active only when the other had said that
//! it knew the later roll; and neither is removed before its session is over.

use super::peers::Peers;
use super::progress::Progress;
use super::settings::{Settings, Timing};
#[cfg(test)]
use super::tests::sabotage::{self, Sabotage};
use super::value::{CrawlValue, Session};
use crate::cluster::queue::{Key, Revision, Write, WriteFailure, WriteId};
use crate::ground::random::mix;
use crate::ground::time::Instant;

/// The crawl's entry.
#[derive(Debug)]
pub(super) struct Crawl {
    timing: Timing,
    /// The last known revision and value.
    known: Option<(Revision, CrawlValue)>,
    /// Whether the entry says something else than that of a crawl with these settings.
    is_foreign: bool,
    /// The value that was written last.
    proposed: Option<CrawlValue>,
    /// The first known roll with this node's present session.
    added: Option<Revision>,
    /// Whether the present session was on the roll and isn't any more: it is over, as the own entry
    /// will show. A node that hasn't seen that must not put itself on the roll again.
    is_struck: bool,
    progress: Progress,
    /// Whether another node's write came before this one's last.
    is_contended: bool,
    /// A number that differs from that of other nodes.
    seed: u64,
}

impl Crawl {
    pub(super) fn new(timing: Timing, seed: u64) -> Self {
        Self {
            timing,
            known: None,
            is_foreign: false,
            proposed: None,
            added: None,
            is_struck: false,
            progress: Progress::default(),
            is_contended: false,
            seed,
        }
    }

    /// Returns the settings of the crawl, once they are known.
    pub(super) fn settings(&self) -> Option<&Settings> {
        self.known.as_ref().map(|(_, value)| &value.settings)
    }

    /// Returns the number of nodes that this node reckons with, itself included.
    pub(super) fn nodes(&self) -> u32 {
        let roll = self.known.as_ref().map_or(0, |(_, value)| value.roll.len());
        let own = usize::from(self.added.is_none());
        u32::try_from(roll + own).expect("an entry of fewer than 2^32 bytes")
    }

    /// Returns the revision of the roll that this node has adopted; zero if it isn't on it.
    pub(super) fn roll(&self) -> Revision {
        let known = self.known.as_ref().filter(|_| self.added.is_some());
        known.map_or(Revision(0), |(revision, _)| *revision)
    }

    /// Notes that a session begins or ends.
    pub(super) fn forget_session(&mut self) {
        (self.added, self.is_struck) = (None, false);
    }

    /// Notes that the connection is new.
    pub(super) fn connected(&mut self) {
        self.progress.reset();
    }

    /// Notes what the entry says: `None` if it isn't that of a crawl with these settings. Returns
    /// whether the entry is news.
    pub(super) fn see(
        &mut self,
        now: Instant,
        revision: Revision,
        value: Option<CrawlValue>,
        own: Option<&Session>,
    ) -> bool {
        if self.known.as_ref().is_some_and(|(known, _)| *known >= revision) {
            return false;
        }
        self.progress.reset();
        if self.is_contended {
            // When many nodes begin at once, they don't all try again at once.
            let part = (mix(self.seed ^ revision.0) % 1_024) as u32;
            self.progress.wait(now, self.timing.pace * part / 1_024);
        }
        let Some(value) = value else {
            // The last roll stays in force: it may be too long, never too short.
            self.is_foreign = true;
            return true;
        };
        self.is_foreign = false;
        self.known = Some((revision, value));
        self.look_for(own);
        true
    }

    /// Notes whether the own session is on the roll.
    pub(super) fn look_for(&mut self, own: Option<&Session>) {
        let Some((revision, value)) = &self.known else { return };
        let is_on = own.is_some_and(|own| value.roll.contains(own));
        let is_later = |other: &Session| own.is_some_and(|own| own.is_before(other));
        self.is_struck |= !is_on && self.added.is_some() || value.roll.iter().any(is_later);
        self.added = is_on.then(|| self.added.unwrap_or(*revision));
    }

    /// Returns the sessions on the roll; none if the entry makes no sense.
    pub(super) fn sessions(&self) -> &[Session] {
        let known = self.known.as_ref().filter(|_| !self.is_foreign);
        known.map_or(&[], |(_, value)| &value.roll)
    }

    /// Returns whether all others on the roll reckon with this node.
    pub(super) fn is_adopted(&self, own: &Session, peers: &Peers) -> bool {
        let (Some(added), Some((_, value))) = (self.added, &self.known) else { return false };
        #[cfg(test)]
        if sabotage::is(Sabotage::JoinedUnadopted) {
            return true;
        }
        let has_adopted = |other: &Session| {
            other == own || peers.has_adopted(other, added) || peers.is_over(other)
        };
        value.roll.iter().all(has_adopted)
    }

    /// Returns when a write is due.
    pub(super) fn due(&self, own: Option<&Session>, peers: &Peers) -> Instant {
        let own = own.filter(|_| !self.is_struck);
        let is_wanted = match &self.known {
            _ if self.is_foreign => false,
            None => true,
            Some((_, value)) => {
                let is_missing = own.is_some_and(|own| !value.roll.contains(own));
                is_missing || value.roll.iter().any(|other| is_gone(other, own, peers))
            }
        };
        if is_wanted { self.progress.due() } else { Instant::FAR }
    }

    /// Returns the next write, if one is due.
    pub(super) fn write(
        &mut self,
        now: Instant,
        id: WriteId,
        settings: &Settings,
        own: Option<&Session>,
        peers: &Peers,
    ) -> Option<Write> {
        if self.due(own, peers) > now {
            return None;
        }
        let own = own.filter(|_| !self.is_struck);
        let (expected, value) = match &self.known {
            None => (None, CrawlValue { settings: settings.clone(), roll: Vec::new() }),
            Some((revision, value)) => {
                let mut value = value.clone();
                value.roll.retain(|session| !is_gone(session, own, peers));
                let added = own.filter(|own| !value.roll.contains(own));
                value.roll.extend(added.cloned());
                (Some(*revision), value)
            }
        };
        self.progress.begin(id, now + self.timing.patience);
        let write = Write { id, key: Key::Crawl, expected, value: value.encode() };
        self.proposed = Some(value);
        Some(write)
    }

    /// Takes the answer to a write. Returns whether the entry has changed by it.
    pub(super) fn wrote(
        &mut self,
        now: Instant,
        id: WriteId,
        answer: Result<Revision, WriteFailure>,
        own: Option<&Session>,
    ) -> bool {
        if !self.progress.end(id) {
            return false;
        }
        match answer {
            Ok(revision) => {
                self.is_contended = false;
                let proposed = self.proposed.take();
                return self.see(now, revision, proposed, own);
            }
            Err(WriteFailure::Conflict) => {
                self.is_contended = true;
                self.progress.wait(now, self.timing.renewal);
            }
            Err(WriteFailure::Unknown) => self.progress.wait(now, self.timing.patience),
        }
        false
    }
}

/// Whether a session on the roll is to be removed.
fn is_gone(session: &Session, own: Option<&Session>, peers: &Peers) -> bool {
    if own.is_some_and(|own| own.name == session.name) {
        return own.is_some_and(|own| session.is_before(own));
    }
    #[cfg(test)]
    if sabotage::is(Sabotage::EarlyShrink) && peers.has_passed(session) {
        return true;
    }
    peers.is_over(session)
}
