//! Which partitions this node may crawl, and by which number it multiplies rests of addresses.
//!
//! A [`Member`] is a state machine. Its inputs are the time, entries, and what became of its
//! writes; it returns writes, changes and its next deadline. It does no I/O.
//!
//! The protocol:
//! 1. The crawl's entry is created by whoever comes first. A node with other settings is refused.
//! 2. A node begins a *session* by a write of its own entry, and renews it each third of a lease.
//!    It counts from the instant before it sends a renewal (`own`).
//! 3. Others count from the instant at which they saw one. A session that has passed is *fenced*
//!    before it counts as over (`peers`).
//! 4. A session is added to the *roll*, whose length is the number n of nodes. It becomes active
//!    when all others on the roll have said that they know it (`crawl`).
//! 5. An active node takes the partitions that should go to it, once they have no owner or a dead
//!    one; it waits for the longest rest of a server before it asks, unless nobody else has had the
//!    partition since its last such wait (`holdings`).
//! 6. It gives up those that should go to another active node.
//!
//! Why that is safe: permission to ask follows from a confirmed renewal, and ends a lease after
//! that renewal was handed out. A fence succeeds only on the last renewal that was carried out, a
//! lease after an observer saw it, which is later. So when a session is over its permission has
//! ended, by the slowest clock that counts it and the fastest that fences it; and only then is any
//! of its partitions taken, or its place on the roll.
//!
//! Duties of the caller:
//! - After each call that brings news, drain [`next_write`](Member::next_write), then
//!   [`next_change`](Member::next_change). At the [`deadline`](Member::deadline) call
//!   [`expired`](Member::expired) first. Writes may be sent in any order, repeated and lost.
//! - Call [`may_ask`](Member::may_ask) with the present time immediately before each request.
//! - The clock must go on while the machine is suspended (on Linux `CLOCK_BOOTTIME`, not
//!   `CLOCK_MONOTONIC`), and keep to the bound on drift. What a hypervisor that stops a machine
//!   hides from all of its clocks, no lease can notice.
//!
//! Laws: those of [`crate::cluster`]. With all nodes at rest, each writes thrice a lease.
//! Cost: a step per call. When a node begins or ends, a pass over the partitions, 20 ns for each
//! and each active node.
//! Source: Gray and Cheriton, "Leases" (1989); Burrows, "The Chubby lock service" (2006), for
//! sequencers and sessions; Kleppmann, "How to do distributed locking" (2016), for fencing.

mod change;
mod crawl;
mod ending;
mod holdings;
mod own;
mod peers;
mod progress;
mod settings;
#[cfg(test)]
mod tests;
mod value;

pub use change::Change;
pub use settings::{Difference, Settings};
pub use value::{Bearing, Owner, State, bearing_in, crawl_in, owner_in, value_of_crawl};

use super::queue::{Entry, Key, Name, Revision, Write, WriteFailure, WriteId};
use super::{Partition, Partitioner};
use crate::ground::time::Instant;
use crawl::Crawl;
use ending::{Ending, agreement};
use holdings::{Holdings, Scene};
use own::{Own, Says, Sight};
use peers::{News, Peers};
use std::collections::VecDeque;
#[cfg(test)]
use tests::sabotage::{self, Sabotage};
use value::{CrawlValue, NodeValue, PartitionValue, Session};

/// This node's part in a crawl of several nodes.
#[derive(Debug)]
pub struct Member {
    settings: Settings,
    own: Own,
    peers: Peers,
    crawl: Crawl,
    holdings: Holdings,
    ending: Ending,
    standing: Standing,
    /// The computer of partitions, once the settings are agreed on.
    partitioner: Option<Partitioner>,
    /// The names of the active nodes at the last review of the partitions.
    active: Vec<Name>,
    /// The number of writes so far.
    writes: u64,
    changes: VecDeque<Change>,
}

/// How this node stands with the queue and its crawl.
#[derive(Debug, Default)]
struct Standing {
    is_connected: bool,
    is_refused: bool,
    is_leaving: bool,
    has_left: bool,
    /// Whether `NameTaken` was reported.
    is_name_taken: bool,
    /// Whether the present session has been reported as joined.
    has_joined: bool,
}

/// The low bits of a write's number, which say whose write it is: a partition's number, or one of
/// these.
const WHOSE_BITS: u32 = 12;
const OWN: u64 = (1 << WHOSE_BITS) - 1;
const CRAWL: u64 = OWN - 1;
const FENCE: u64 = OWN - 2;
/// The low bits of the numbers of writes that aren't the member's, and how many bits these are.
pub const OTHER_WRITES: (u64, u32) = (OWN - 3, WHOSE_BITS);

impl Member {
    /// Creates the member of a process. `incarnation` is a random number, another one for each
    /// process. `previous` is that of the process that had the same job directory before, which
    /// must be dead: a lock on the directory proves it. The member is disconnected at first.
    pub fn new(settings: Settings, name: Name, incarnation: u64, previous: Option<u64>) -> Self {
        let timing = settings.timing();
        Self {
            own: Own::new(name, incarnation, previous, timing),
            peers: Peers::new(timing),
            crawl: Crawl::new(timing, incarnation),
            holdings: Holdings::new(settings.partitions, timing),
            settings,
            ending: Ending::default(),
            standing: Standing::default(),
            partitioner: None,
            active: Vec::new(),
            writes: 0,
            changes: VecDeque::new(),
        }
    }

    /// Notes that the queue can be reached, and that all entries are shown from now on, first as
    /// they are.
    pub fn connected(&mut self, now: Instant) {
        self.standing.is_connected = true;
        self.own.connected(now);
        self.peers.connected(now);
        self.crawl.connected();
        self.holdings.connected();
    }

    /// Notes that the queue can't be reached: silence of others means nothing from now on, and
    /// answers that don't arrive any more are lost.
    pub fn disconnected(&mut self, _now: Instant) {
        self.standing.is_connected = false;
    }

    /// Notes what an entry says. Entries that are repeated, or older than what is known, are
    /// ignored.
    pub fn entry(&mut self, now: Instant, entry: &Entry) {
        let Entry { key, revision, value } = entry;
        let is_damaged = match key {
            Key::Crawl => self.see_crawl(now, *revision, value),
            Key::Node(name) if name == self.own.name() => {
                let value = NodeValue::decode(value).ok();
                self.see_own(now, *revision, value) && value.is_none()
            }
            Key::Node(name) => {
                let value = NodeValue::decode(value).ok();
                let news = self.peers.see(now, name, *revision, value);
                if news == News::Session {
                    self.review(now);
                }
                news != News::Old && value.is_none()
            }
            Key::Report(_) | Key::Orders => false,
            Key::Partition(partition) => {
                let value = PartitionValue::decode(value).ok();
                let is_damaged = value.is_none();
                let own = self.own.session();
                let scene = self.scene_of(own.as_ref(), now);
                let is_news = scene.1.see(*partition, *revision, value, scene.0.as_ref());
                is_damaged && is_news
            }
        };
        if is_damaged {
            self.report(Change::Damaged { key: key.clone() });
        }
    }

    /// Takes the answer to a write. Answers that come twice or too late are ignored.
    pub fn wrote(&mut self, now: Instant, id: WriteId, answer: Result<Revision, WriteFailure>) {
        match id.0 & OWN {
            OWN => {
                let before = (self.own.number(), self.own.state());
                self.own.wrote(now, id, answer);
                self.after_own(now, before);
            }
            CRAWL => {
                let own = self.own.session();
                if self.crawl.wrote(now, id, answer, own.as_ref()) {
                    self.agree();
                }
            }
            FENCE => {
                if self.peers.wrote(now, id, answer) {
                    self.review(now);
                }
            }
            number => {
                let partition = u16::try_from(number).ok().and_then(Partition::new);
                let Some(partition) = partition else { return };
                let own = self.own.session();
                let (scene, holdings) = self.scene_of(own.as_ref(), now);
                holdings.wrote(partition, id, answer, scene.as_ref(), now);
            }
        }
    }

    /// Notes that time has passed.
    pub fn expired(&mut self, now: Instant) {
        self.holdings.expire(now);
        #[cfg(test)]
        self.peers.note_passed(now);
        #[cfg(test)]
        if sabotage::is(Sabotage::NotFenced) {
            self.review(now);
        }
    }

    /// Returns when [`expired`](Self::expired) is to be called and writes are due, if nothing
    /// happens before; the past if writes that are due weren't drained.
    pub fn deadline(&self) -> Instant {
        if !self.is_taking_part() {
            return Instant::FAR;
        }
        let own = self.own.session();
        let crawl = self.crawl.due(own.as_ref(), &self.peers);
        if self.partitioner.is_none() {
            return crawl;
        }
        let due = self.own.due(self.says());
        let holdings = if own.is_some() { self.holdings.due() } else { Instant::FAR };
        due.min(crawl).min(self.peers.due()).min(holdings)
    }

    /// Returns the next write, which must be handed to the queue at once: the session counts from
    /// `now`.
    pub fn next_write(&mut self, now: Instant) -> Option<Write> {
        if !self.is_taking_part() {
            return None;
        }
        let own = self.own.session();
        let base = (self.writes + 1) << WHOSE_BITS;
        let write = self.own_write(now, WriteId(base | OWN));
        let write = write.or_else(|| {
            let id = WriteId(base | CRAWL);
            self.crawl.write(now, id, &self.settings, own.as_ref(), &self.peers)
        });
        let write = write.or_else(|| self.peers.write(now, WriteId(base | FENCE)));
        let write = write.or_else(|| {
            let id = |partition: Partition| WriteId(base | u64::from(partition.number()));
            let (scene, holdings) = self.scene_of(own.as_ref(), now);
            holdings.write(&scene?, id)
        });
        // Once nothing is left to release, the node can leave.
        let write = write.or_else(|| self.own_write(now, WriteId(base | OWN)));
        self.writes += u64::from(write.is_some());
        write
    }

    /// Returns the next change that the engine should know.
    pub fn next_change(&mut self) -> Option<Change> {
        self.changes.pop_front().or_else(|| self.holdings.next_change())
    }

    /// Returns whether a request may be sent now to a server of this partition.
    pub fn may_ask(&self, partition: Partition, now: Instant) -> bool {
        now < self.own.end() && self.asks_from(partition).is_some_and(|from| from <= now)
    }

    /// Returns from when on requests may be sent to servers of this partition, if the session lasts
    /// until then; `None` if the partition isn't held.
    pub fn asks_from(&self, partition: Partition) -> Option<Instant> {
        self.holdings.asks_from(partition)
    }

    /// Returns whether a partition is known to belong to another node.
    pub fn is_of_other(&self, partition: Partition) -> bool {
        self.holdings.is_of_other(partition, self.own.name())
    }

    /// Returns what the own entry is known to say of this node; `None` without a session.
    pub fn state(&self) -> Option<State> {
        self.own.state()
    }

    /// Returns whether there is no session because another process has this node's name, or had it
    /// until a moment ago.
    pub fn is_name_taken(&self) -> bool {
        self.own.is_taken()
    }

    /// Returns until when (exclusive) requests may be sent, unless the session is renewed.
    pub fn asks_until(&self) -> Instant {
        self.own.end()
    }

    /// Returns the number by which this node multiplies the rests of addresses. It is to be asked
    /// anew after each input, before the next request.
    pub fn nodes(&self) -> u32 {
        self.crawl.nodes()
    }

    /// Returns the computer of partitions, once the node has agreed with its crawl.
    pub fn partitioner(&self) -> Option<&Partitioner> {
        self.partitioner.as_ref()
    }

    /// Notes whether this node has nothing to do: nothing waits or is under way here, all that it
    /// has found is in the logs, and it has read its own logs to their ends.
    pub fn set_idle(&mut self, is_idle: bool) {
        self.ending.set_idle(is_idle);
    }

    /// Returns a number for what this node sees, if all nodes have nothing to do and each partition
    /// is held by one of them; `None` otherwise. Reads all partitions.
    pub fn agreement(&self) -> Option<u64> {
        if self.ending.says().period == 0 || self.own.state() != Some(State::Active) {
            return None;
        }
        let own = self.own.session()?;
        let period_of = |session: &Session| match session == &own {
            true => Some(self.ending.says().period),
            false => self.peers.idleness(session).map(|idleness| idleness.period),
        };
        let sessions = self.crawl.sessions();
        let periods = sessions.iter().map(|it| Some((it.clone(), period_of(it)?)));
        let mut periods = periods.collect::<Option<Vec<_>>>()?;
        let all_idle = periods.iter().all(|(_, period)| *period > 0);
        let are_quiet = all_idle && sessions.contains(&own) && self.holdings.are_held_by(sessions);
        are_quiet.then(|| agreement(&mut periods))
    }

    /// Notes that this node, idle all the time, has read its logs to their ends after it saw this
    /// agreement, and found nothing.
    pub fn confirm(&mut self, agreement: u64) {
        self.ending.confirm(agreement);
    }

    /// Returns whether the crawl is over: all nodes have confirmed the same.
    pub fn is_over(&mut self) -> bool {
        let confirmed = self.ending.says().confirmed;
        if confirmed == 0 {
            return false;
        }
        let own = self.own.session();
        let has_confirmed = |session: &Session| {
            let says = self.peers.idleness(session);
            Some(session) == own.as_ref() || says.is_some_and(|says| says.confirmed == confirmed)
        };
        let all_confirmed = self.crawl.sessions().iter().all(has_confirmed);
        let all = all_confirmed && self.agreement() == Some(confirmed);
        self.ending.conclude(all, self.peers.has_ended(confirmed))
    }

    /// Releases a partition: nothing is under way for it, and nothing may be sent any more.
    pub fn release(&mut self, partition: Partition) {
        self.holdings.release(partition);
    }

    /// Returns whether the node has left the crawl in order.
    pub fn has_left(&self) -> bool {
        self.standing.has_left
    }

    /// Begins to leave the crawl in order: all partitions are given up. When all are released, the
    /// session ends and [`Change::Left`] is reported.
    pub fn leave(&mut self, now: Instant) {
        self.standing.is_leaving = true;
        self.look_at_partitions(now);
        self.note_left();
    }
}

impl Member {
    fn is_taking_part(&self) -> bool {
        let Standing { is_connected, is_refused, has_left, .. } = self.standing;
        is_connected && !is_refused && !has_left
    }

    /// Returns the next write of the own entry, if one is due.
    fn own_write(&mut self, now: Instant, id: WriteId) -> Option<Write> {
        self.partitioner?;
        self.own.write(now, id, self.says())
    }

    /// Returns what the own entry should say.
    fn says(&self) -> Says {
        let (state, roll) = (self.state_to_be(), self.crawl.roll());
        Says { state, roll, idleness: self.ending.says() }
    }

    /// Returns the state that the own entry should have.
    fn state_to_be(&self) -> State {
        let Some(own) = self.own.session() else {
            return if self.standing.is_leaving { State::Left } else { State::Joining };
        };
        if self.standing.is_leaving {
            let is_done = self.holdings.is_empty(&own);
            return if is_done { State::Left } else { State::Leaving };
        }
        let is_active = self.own.state() == Some(State::Active);
        let is_adopted = is_active || self.crawl.is_adopted(&own, &self.peers);
        if is_adopted { State::Active } else { State::Joining }
    }

    /// Notes what the crawl's entry says. Returns whether it is news and makes no sense.
    fn see_crawl(&mut self, now: Instant, revision: Revision, value: &[u8]) -> bool {
        let value = CrawlValue::decode(value).ok();
        let settings = value.as_ref().map(|value| &value.settings);
        let difference = settings.and_then(|crawl| self.settings.difference(crawl));
        let is_first = self.crawl.settings().is_none();
        if let Some(difference) = difference.as_ref().filter(|_| is_first) {
            if !self.standing.is_refused {
                self.standing.is_refused = true;
                self.report(Change::Refused(difference.clone()));
            }
            return false;
        }
        let value = value.filter(|value| {
            let key = self.crawl.settings().is_none_or(|known| known.key == value.settings.key);
            key && difference.is_none()
        });
        let is_damaged = value.is_none();
        let own = self.own.session();
        let is_news = self.crawl.see(now, revision, value, own.as_ref());
        self.agree();
        is_news && is_damaged
    }

    /// Notes that the settings are known to be the crawl's.
    fn agree(&mut self) {
        let Some(settings) = self.crawl.settings() else { return };
        if self.partitioner.is_none() {
            let key = settings.key;
            self.partitioner = Some(Partitioner::new(key));
            self.report(Change::Agreed { key });
        }
    }

    /// Notes what the own entry says. Returns whether it is news.
    fn see_own(&mut self, now: Instant, revision: Revision, value: Option<NodeValue>) -> bool {
        let before = (self.own.number(), self.own.state());
        let Some(sight) = self.own.see(now, revision, value) else { return false };
        if sight == Sight::Usurper && !self.standing.is_name_taken {
            self.standing.is_name_taken = true;
            self.report(Change::NameTaken);
        }
        self.after_own(now, before);
        true
    }

    /// Follows a change of the own entry; `before` is the session and its state before it.
    fn after_own(&mut self, now: Instant, before: (Option<u64>, Option<State>)) {
        if (self.own.number(), self.own.state()) == before {
            return;
        }
        if self.own.number() != before.0 {
            if before.0.is_some() {
                self.holdings.lose();
            }
            self.standing.has_joined = false;
            self.crawl.forget_session();
            self.crawl.look_for(self.own.session().as_ref());
        }
        self.note_left();
        if self.own.state() == Some(State::Active) && !self.standing.has_joined {
            self.standing.has_joined = true;
            self.report(Change::Joined { nodes: self.nodes() });
        }
        self.review(now);
    }

    /// Reports a change, after those of partitions that came before it.
    fn report(&mut self, change: Change) {
        self.changes.extend(std::iter::from_fn(|| self.holdings.next_change()));
        self.changes.push_back(change);
    }

    /// Notes that a node that leaves has no session (any more).
    fn note_left(&mut self) {
        let is_done = self.standing.is_leaving && self.own.number().is_none();
        if is_done && !self.standing.has_left {
            self.standing.has_left = true;
            self.report(Change::Left);
        }
    }

    /// Finds which partitions should go to this node, if other nodes have begun or ended.
    fn review(&mut self, now: Instant) {
        if self.own.state() == Some(State::Active) {
            self.look_at_partitions(now);
        }
    }

    fn look_at_partitions(&mut self, now: Instant) {
        let (Some(own), Some(partitioner)) = (self.own.session(), self.partitioner) else {
            return;
        };
        let peers = self.peers.active().cloned();
        let active: Vec<Name> = peers.chain([own.name.clone()]).collect();
        if active != self.active {
            self.holdings.set_targets(|partition| {
                let names = active.iter().map(Name::as_str);
                partitioner.node_for(partition, names) == Some(own.name.as_str())
            });
            self.active = active;
        }
        let (scene, holdings) = self.scene_of(Some(&own), now);
        if let Some(scene) = scene {
            holdings.review(&scene);
        }
    }

    /// Returns what decisions about partitions depend on (nothing without a session), and the
    /// partitions.
    fn scene_of<'a>(
        &'a mut self,
        own: Option<&'a Session>,
        now: Instant,
    ) -> (Option<Scene<'a>>, &'a mut Holdings) {
        let settled = self.own.settled(now);
        let is_active = self.own.state() == Some(State::Active) && !self.standing.is_leaving;
        let lineage = self.own.lineage();
        let peers = &self.peers;
        let scene = own.map(|own| Scene { now, own, lineage, settled, is_active, peers });
        (scene, &mut self.holdings)
    }
}
