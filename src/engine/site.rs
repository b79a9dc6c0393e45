//! Side tables of servers: what the engine knows of a server beside its queue.
//!
//! That is what its robots.txt says, when it was visited, how its connections behave, and whether
//! it is to be given up. The tables are indexed by [`ServerId`], so that the stations that define
//! these facts need not know each other.
//!
//! Law: a table is freed when its server has had no URLs for an hour and the table holds nothing
//! that the next run needs. Some servers are checked in each turn.
//!
//! Cost: four bytes for a server that was never visited, 84 bytes for one that was. Rare facts and
//! robots.txt rules are allocated separately.

#[cfg(test)]
mod tests;

use super::ledger::Work;
use super::outcome::{Lasting, Outcome};
use super::robots::state::Robots;
use super::settings::Retries;
use super::turn::Turn;
use crate::frontier::{Retirement, Rule, ServerId};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::stats::Histogram;
use crate::ground::table::Table;
use crate::ground::time::{Instant, Now};
use crate::http::pipeline::Learnt;
use crate::robots::Verdict;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

/// The side tables of all servers.
#[derive(Debug, Default)]
pub(super) struct Sites {
    /// For each server, the index of its table plus one; `None` if it has no table.
    places: Table<Option<NonZeroU32>>,
    sites: Table<Site>,
    /// The indices plus one, as in `places`, of tables that no server uses.
    free: Vec<NonZeroU32>,
    /// The server that [`Sites::free_idle`] checks next.
    next: usize,
    /// The table that is used for all servers that an earlier run knew and that this run has not
    /// visited.
    known_default: Site,
    /// The table that is used for all servers that are new in this run and not visited yet.
    new_default: Site,
    /// The number of servers that earlier runs knew.
    known: usize,
}

impl Sites {
    /// Returns the number of servers.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Adds servers up to and including this one, without allocating tables.
    pub(super) fn extend_to(&mut self, id: ServerId) {
        while self.places.len() <= id.index() {
            self.places.push(None);
        }
    }

    /// Resumes a crawl: all servers added so far count as known to earlier runs. Those without a
    /// table owe a rest from `now` until `due`.
    pub(super) fn resume(&mut self, now: Instant, due: Instant) {
        self.known = self.len();
        self.known_default.set_rest(now, due, Rule::Restart);
    }

    /// Returns what is known of a server.
    pub(super) fn get(&self, id: ServerId) -> &Site {
        match self.places[id.index()] {
            Some(place) => &self.sites[place.get() as usize - 1],
            None if id.index() < self.known => &self.known_default,
            None => &self.new_default,
        }
    }

    /// Returns the table of a server for changes, which is allocated if it has none yet.
    pub(super) fn get_mut(&mut self, id: ServerId) -> &mut Site {
        let place = match self.places[id.index()] {
            Some(place) => place.get(),
            None => {
                let (rest, rule) = (self.get(id).rest, self.get(id).rule);
                let place = self.free.pop().unwrap_or_else(|| {
                    self.sites.push(Site::default());
                    let place = u32::try_from(self.sites.len()).ok().and_then(NonZeroU32::new);
                    place.expect("fewer than 2^32 servers")
                });
                let site = &mut self.sites[place.get() as usize - 1];
                (site.rest, site.rule) = (rest, rule);
                self.places[id.index()] = Some(place);
                place.get()
            }
        };
        &mut self.sites[place as usize - 1]
    }

    /// Checks the next few servers, and frees the tables of idle servers that hold nothing of use.
    pub(super) fn free_idle(&mut self, now: Instant, is_idle: impl Fn(ServerId) -> bool) {
        for _ in 0..CHECKED.min(self.places.len()) {
            self.next = if self.next < self.places.len() { self.next } else { 0 };
            let id = ServerId::from_index(self.next);
            self.next += 1;
            if let Some(place) = self.places[id.index()]
                && is_idle(id)
            {
                let site = &mut self.sites[place.get() as usize - 1];
                if site.can_be_freed(now) {
                    *site = Site::default();
                    self.places[id.index()] = None;
                    self.free.push(place);
                }
            }
        }
    }
}

/// The number of servers that are checked for idle tables in a turn.
const CHECKED: usize = 32;
/// How long after the last visit the table of a server is kept at least.
const IDLE: Duration = Duration::from_secs(3_600);

/// What is known of one server.
#[derive(Debug, Default)]
pub(super) struct Site {
    pub(super) robots: Robots,
    /// When the last visit of the server ended, and the time before which the next one may not
    /// begin.
    rest: (Instant, Instant),
    rare: Option<Box<Rare>>,
    pub(super) learnt: Learnt,
    /// The slot, plus one, of the server's only connection, open or being opened; `None` without
    /// one.
    conn: Option<NonZeroU32>,
    /// The number of failed visits in a row: see [`Site::add_failure`].
    pub(super) failures: u8,
    /// The number of tries in a row in which the server's robots.txt could not be fetched.
    pub(super) robots_tries: u8,
    /// The rule that the rest after the last visit follows from.
    rule: Rule,
    /// How the cache of robots.txt rules sees the server.
    pub(super) cached: Cached,
}

/// Whether the cache of rules (CLOCK algorithm) lists a server among those with robots.txt rules in
/// memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Cached {
    /// The server is not listed.
    #[default]
    No,
    /// The server is listed, and its rules were not used since the hand passed it last.
    Unused,
    /// The server is listed, and its rules were used.
    Used,
}

/// Facts that few servers have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rare {
    /// The time of the first failure to fetch robots.txt; `None` if it can be fetched.
    robots_failing_since: Option<Instant>,
    /// Whether one of the failed tries to fetch robots.txt returned a truncated but legible file.
    robots_cut: bool,
    /// Why the server is to be given up when its visit ends, with the outcome that its URLs get;
    /// `None` if it is not to be given up.
    retiring: Option<(Retirement, Outcome)>,
    /// The outcome of the server's URLs if it is given up; `None` if it is not.
    retired_as: Option<Outcome>,
    /// If the last failures in a row are of one lasting kind: that kind, and their number. It is
    /// lost at a restart, which costs some more tries.
    lasting: Option<(Lasting, u8)>,
    /// Whether the server has asked for signed requests. It is lost at a restart, which costs a
    /// request.
    asks_signature: bool,
    /// The number of URLs lost in the time since robots.txt can't be fetched.
    robots_lost: u32,
    /// The number of URLs at the front of the server's queue whose replies arrived once, but could
    /// not be matched with a request.
    put_back: u32,
    /// When each URL in the server's queue that waits for a retry is due, in queue order; at most
    /// [`RETRIES_DUE_MAX`] times.
    retries_due: VecDeque<Instant>,
}

impl Rare {
    /// Returns whether nothing is known but that the server has asked for signed requests.
    fn is_only_asking(&self) -> bool {
        *self == Self { asks_signature: self.asks_signature, ..Self::default() }
    }
}

/// The maximum number of retry times kept for a server. Further URLs are retried without a wait of
/// their own.
const RETRIES_DUE_MAX: usize = 1_000;

impl Site {
    /// Returns whether the table can be freed: the last visit was long ago, and all facts are at
    /// their defaults, out of date, or of no use to another run.
    fn can_be_freed(&self, now: Instant) -> bool {
        let (ended, due) = self.rest;
        let asks_again = match self.robots {
            Robots::Unknown => true,
            Robots::Open(until) | Robots::OnDisk(_, until) | Robots::Unreachable(until) => {
                until <= now
            }
            Robots::Asked | Robots::Redirected(_) | Robots::Rules(..) => false,
        };
        asks_again
            && due.max(ended + IDLE) <= now
            && (self.conn, self.failures, self.robots_tries) == (None, 0, 0)
            && self.rare.as_ref().is_none_or(|rare| rare.is_only_asking())
            && self.cached == Cached::No
            && self.learnt.saved() == Learnt::default().saved()
    }

    /// Returns the slot of the server's only connection, open or being opened.
    pub(super) fn conn(&self) -> Option<u32> {
        self.conn.map(|slot| slot.get() - 1)
    }

    pub(super) fn set_conn(&mut self, slot: Option<u32>) {
        self.conn = slot.and_then(|slot| NonZeroU32::new(slot + 1));
    }

    /// Returns whether the server is to be given up when its visit ends.
    pub(super) fn is_retiring(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.retiring.is_some())
    }

    /// Makes the server be given up when its visit ends, for the reason `why`; its URLs get
    /// `outcome`.
    pub(super) fn set_retiring(&mut self, why: Retirement, outcome: Outcome) {
        self.change_rare(|rare| rare.retiring = Some((why, outcome)));
    }

    /// Takes out the reason and the outcome that [`Site::set_retiring`] set, if it was called.
    pub(super) fn take_retiring(&mut self) -> Option<(Retirement, Outcome)> {
        self.rare.as_ref()?.retiring?;
        self.change_rare(|rare| rare.retiring.take())
    }

    /// Returns the outcome of the server's URLs if it is given up, else `None`.
    pub(super) fn retired_as(&self) -> Option<Outcome> {
        self.rare.as_ref()?.retired_as
    }

    pub(super) fn set_retired(&mut self, outcome: Outcome) {
        self.change_rare(|rare| {
            rare.retired_as = Some(outcome);
            rare.retries_due.clear();
        });
    }

    /// Notes that the server is no longer given up.
    pub(super) fn reinstate(&mut self) {
        self.set_failures(0);
        self.change_rare(|rare| rare.retired_as = None);
    }

    /// Returns whether the server has asked for signed requests.
    pub(super) fn asks_signature(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.asks_signature)
    }

    /// Notes that the server asks for signed requests.
    pub(super) fn set_asks_signature(&mut self) {
        self.change_rare(|rare| rare.asks_signature = true);
    }

    /// Returns the number of URLs lost because robots.txt could not be fetched.
    pub(super) fn robots_lost(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.robots_lost)
    }

    pub(super) fn set_robots_lost(&mut self, urls: u32) {
        self.change_rare(|rare| rare.robots_lost = urls);
    }

    /// Counts `urls` that return to the front of the queue although their replies arrived.
    pub(super) fn add_put_back(&mut self, urls: u32) {
        self.change_rare(|rare| rare.put_back = rare.put_back.saturating_add(urls));
    }

    /// Called when a URL of the server is requested. Returns whether the URL is one that
    /// [`Site::add_put_back`] counted, and uncounts it.
    pub(super) fn take_put_back(&mut self) -> bool {
        let is_one = self.rare.as_ref().is_some_and(|rare| rare.put_back > 0);
        if is_one {
            self.change_rare(|rare| rare.put_back -= 1);
        }
        is_one
    }

    /// Adds the time at which a queued URL is due to be retried.
    pub(super) fn add_retry(&mut self, due: Instant) {
        self.change_rare(|rare| {
            if rare.retries_due.len() < RETRIES_DUE_MAX {
                rare.retries_due.push_back(due);
            }
        });
    }

    /// Returns when the first URL in the queue that waits for a retry is due; `None` if none waits.
    pub(super) fn retry_due(&self) -> Option<Instant> {
        self.rare.as_ref()?.retries_due.front().copied()
    }

    /// Removes the first retry time, because its URL leaves the queue.
    pub(super) fn take_retry(&mut self) {
        if self.retry_due().is_some() {
            self.change_rare(|rare| rare.retries_due.pop_front());
        }
    }

    /// Notes that robots.txt could not be fetched. Returns when the failures began.
    pub(super) fn note_robots_failure(&mut self, now: Instant) -> Instant {
        self.change_rare(|rare| *rare.robots_failing_since.get_or_insert(now))
    }

    /// Notes that robots.txt was truncated. Returns whether this is the first time in this series
    /// of tries. A restart loses this fact, which costs one more try.
    pub(super) fn note_robots_cut(&mut self) -> bool {
        let was_cut = self.change_rare(|rare| std::mem::replace(&mut rare.robots_cut, true));
        !was_cut || self.robots_tries == 0
    }

    /// Notes that robots.txt was fetched, which ends the series of failed tries.
    pub(super) fn note_robots_fetched(&mut self) {
        self.robots_tries = 0;
        if self.rare.is_some() {
            self.change_rare(|rare| {
                rare.robots_failing_since = None;
                rare.robots_cut = false;
                rare.robots_lost = 0;
            });
        }
    }

    fn change_rare<T>(&mut self, change: impl FnOnce(&mut Rare) -> T) -> T {
        let rare = self.rare.get_or_insert_default();
        let result = change(rare);
        self.rare.take_if(|rare| **rare == Rare::default());
        result
    }

    /// Counts a failed visit; `how` is the kind of failure if that is a lasting one.
    pub(super) fn add_failure(&mut self, how: Option<Lasting>) {
        let before = self.rare.as_ref().and_then(|rare| rare.lasting);
        let row = how.map(|how| match before {
            Some((same, row)) if same == how => (how, row.saturating_add(1)),
            _ => (how, 1),
        });
        self.set_failures(self.failures.saturating_add(1));
        if row.is_some() {
            self.change_rare(|rare| rare.lasting = row);
        }
    }

    /// Sets the number of failed visits in a row, none of which counts as a lasting failure.
    pub(super) fn set_failures(&mut self, failures: u8) {
        self.failures = failures;
        if self.rare.is_some() {
            self.change_rare(|rare| rare.lasting = None);
        }
    }

    /// Returns whether there were so many failures of this kind in a row that the server is given
    /// up.
    pub(super) fn is_lasting(&self, how: Lasting, settings: &Retries) -> bool {
        let row = self.rare.as_ref().and_then(|rare| rare.lasting);
        row.is_some_and(|(same, row)| same == how && row >= how.failures_max(settings))
    }

    /// Notes that the server has answered, which ends its series of failures.
    pub(super) fn recover(&mut self) {
        self.set_failures(0);
        if self.is_retiring() {
            self.change_rare(|rare| {
                let is_over = |why| matches!(why, Retirement::Failures | Retirement::Challenges);
                rare.retiring = rare.retiring.filter(|(why, _)| !is_over(*why));
            });
        }
    }

    /// Returns whether robots.txt allows a target, and the line that decided; `None` if the file
    /// can't be fetched, which forbids all targets. The work of matching the rules is charged to
    /// the turn.
    pub(super) fn robots_verdict(&mut self, target: &str, turn: &mut Turn) -> Option<Verdict> {
        match &self.robots {
            Robots::Open(_) => Some(Verdict::NO_RULE),
            Robots::Rules(held, _) => {
                self.cached = Cached::Used;
                let (verdict, units) = held.rules.check_counted(target);
                turn.charge(Work::Rules, units);
                Some(verdict)
            }
            _ => None,
        }
    }

    /// Returns until when this server waits for another server, to whose robots.txt its own
    /// redirects. It is not visited before. `None` if it waits for none.
    pub(super) fn robots_redirected(&self) -> Option<Instant> {
        match self.robots {
            Robots::Redirected(until) => Some(until),
            _ => None,
        }
    }

    /// Sets that a visit of the server ended at `now`, and that the next one may begin at `due` by
    /// this rule.
    pub(super) fn set_rest(&mut self, now: Instant, due: Instant, rule: Rule) {
        (self.rest, self.rule) = ((now, due), rule);
    }

    /// Returns the rest that is owed since the last visit, and its rule. The operator may have
    /// slowed the server until the time `slowed`.
    pub(super) fn owed(&self, slowed: Option<Instant>) -> (Duration, Rule) {
        let (ended, due) = self.rest;
        match slowed.filter(|until| *until > due && ended > Instant::ZERO) {
            Some(until) => (until.since(ended), Rule::Slow),
            None => (due.since(ended), self.rule),
        }
    }

    /// Returns when the last visit of the server ended.
    pub(super) fn ended(&self) -> Instant {
        self.rest.0
    }

    /// Returns when the next visit of the server may begin.
    pub(super) fn due(&self) -> Instant {
        self.rest.1
    }

    /// Called for the first request of a visit: adds the rest since the last visit to `kept_milli`,
    /// in thousandths of the promised rest.
    pub(super) fn observe_rest(&mut self, now: Instant, kept_milli: &mut Histogram) {
        let (ended, due) = self.rest;
        if due > ended {
            let (kept, promised) = (now.since(ended), due.since(ended));
            assert!(kept >= promised, "no server is visited before its rest is over");
            let milli = kept.as_micros().saturating_mul(1_000) / promised.as_micros();
            kept_milli.add(u64::try_from(milli).unwrap_or(u64::MAX));
        }
    }
}

/// The record of a server in a checkpoint.
///
/// ```text
/// number varint | robots.txt u8: 0 unknown, 1 rules, 2 unreachable, 3 rules on disk
/// | if 1 to 3: valid until u64 (microseconds, UTC) | if 1: the rules
/// | if 3: segment u32, offset u32, bytes u32
/// | failed tries u8 | unreachable since u64, 0 if it is not
/// | requests per connection u32, 0 if not known
/// | pipelining u8: 0 nothing known, 1 barred, 2 and more: batches compared plus one,
///   255: one request a connection
/// | failures u8 | given up u8 | if given up: the outcome of its URLs, JSON
/// ```
impl Site {
    /// Returns whether the table differs from that of a new server in anything that a checkpoint
    /// keeps.
    pub(super) fn needs_saving(&self) -> bool {
        let rare = self.rare.as_ref();
        !self.robots.is_forgettable()
            || self.robots_tries > 0
            || rare.is_some_and(|rare| rare.robots_failing_since.is_some())
            || self.learnt != Learnt::default()
            || self.failures > 0
            || self.retired_as().is_some()
    }

    pub(super) fn encode(&self, number: usize, now: Now, out: &mut Vec<u8>) {
        out.put_varint(number as u64);
        self.robots.encode(now, out);
        out.put_u8(self.robots_tries);
        let since = self.rare.as_ref().and_then(|rare| rare.robots_failing_since);
        out.put_u64(since.map_or(0, |since| now.unix_of(since).as_micros().max(1)));
        let (allowance, trust) = self.learnt.saved();
        out.put_u32(allowance);
        out.put_u8(trust);
        out.put_u8(self.failures);
        out.put_bool(self.retired_as().is_some());
        if let Some(outcome) = self.retired_as() {
            out.put_str(&serde_json::to_string(&outcome).expect("a plain value"));
        }
    }

    /// Decodes the part of a server's record that follows its number. No robots.txt is trusted for
    /// longer than `ttl` from now, whatever the wall clock says.
    pub(super) fn decode(
        &mut self,
        take: &mut Take<'_>,
        ttl: Duration,
        now: Now,
    ) -> Result<(), Short> {
        self.robots = Robots::decode(take, ttl, now)?;
        self.robots_tries = take.u8()?;
        // The monotonic clock of this run can't express times of an earlier one, so the wait for an
        // unreachable server starts again. That makes no request earlier.
        if take.u64()? > 0 {
            self.note_robots_failure(now.at);
        }
        let (allowance, trust) = (take.u32()?, take.u8()?);
        self.learnt = Learnt::restored(allowance, trust);
        self.failures = take.u8()?;
        if take.bool()? {
            self.set_retired(serde_json::from_str(take.str()?).map_err(|_| Short)?);
        }
        Ok(())
    }
}
