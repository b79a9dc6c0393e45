//! What the engine knows of a server beside its queue: what its robots.txt says, how its
//! connections behave. Side tables by [`ServerId`], so that the stations that own these facts stay
//! strangers.
//!
//! A server that has had no URLs for an hour and of which nothing is known that outlives a run
//! gives its table up: some are looked at in each turn.
//!
//! Cost: four bytes for a server that was never visited, 84 for one that was; what is rarely known
//! of one, and its rules, apart.

use super::ledger::Work;
use super::outcome::{Lasting, Outcome};
use super::robots::state::Robots;
use super::turn::Turn;
use crate::frontier::{Retirement, ServerId};
use crate::ground::codec::{Put, Short, Take};
use crate::ground::stats::Histogram;
use crate::ground::table::Table;
use crate::ground::time::{Instant, Now};
use crate::http::pipeline::Learnt;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

/// The side tables of all servers.
#[derive(Debug, Default)]
pub(super) struct Sites {
    /// Where that of each server is, and 1; nothing if there is nothing to say.
    places: Table<Option<NonZeroU32>>,
    sites: Table<Site>,
    /// Those that are nobody's.
    free: Vec<NonZeroU32>,
    /// The server to be looked at next.
    next: usize,
    /// That of a server that this run has not visited.
    stranger: Site,
    /// That of one which no earlier run knew either.
    newcomer: Site,
    /// Servers known to earlier runs.
    known: usize,
}

impl Sites {
    /// Servers told of so far.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// A server has come to be known.
    pub(super) fn reach(&mut self, id: ServerId) {
        while self.places.len() <= id.index() {
            self.places.push(None);
        }
    }

    /// Servers known so far were known to earlier runs; whoever has no table yet owes a rest from
    /// now until then.
    pub(super) fn begin_again(&mut self, now: Instant, due: Instant) {
        self.known = self.len();
        self.stranger.rests(now, due);
    }

    /// What is known of a server.
    pub(super) fn look(&self, id: ServerId) -> &Site {
        match self.places[id.index()] {
            Some(place) => &self.sites[place.get() as usize - 1],
            None if id.index() < self.known => &self.stranger,
            None => &self.newcomer,
        }
    }

    /// The same, to be changed: from here on there is something to say of it.
    pub(super) fn at(&mut self, id: ServerId) -> &mut Site {
        let place = match self.places[id.index()] {
            Some(place) => place.get(),
            None => {
                let rest = self.look(id).rest;
                let place = self.free.pop().unwrap_or_else(|| {
                    self.sites.push(Site::default());
                    let place = u32::try_from(self.sites.len()).ok().and_then(NonZeroU32::new);
                    place.expect("fewer than 2^32 servers")
                });
                self.sites[place.get() as usize - 1].rest = rest;
                self.places[id.index()] = Some(place);
                place.get()
            }
        };
        &mut self.sites[place as usize - 1]
    }

    /// Looks at some more servers: tables that say nothing of one that is idle are given up.
    pub(super) fn tidy(&mut self, now: Instant, is_idle: impl Fn(ServerId) -> bool) {
        for _ in 0..TIDIED.min(self.places.len()) {
            self.next = if self.next < self.places.len() { self.next } else { 0 };
            let id = ServerId::from_index(self.next);
            self.next += 1;
            if let Some(place) = self.places[id.index()]
                && is_idle(id)
            {
                let site = &mut self.sites[place.get() as usize - 1];
                if site.is_spent(now) {
                    *site = Site::default();
                    self.places[id.index()] = None;
                    self.free.push(place);
                }
            }
        }
    }
}

/// Servers looked at in a turn.
const TIDIED: usize = 32;
/// A server is idle for long when its last visit was so long ago.
const IDLE: Duration = Duration::from_secs(3_600);

/// Facts of one server.
#[derive(Debug, Default)]
pub(super) struct Site {
    pub(super) robots: Robots,
    /// End of the last visit, and the instant before which no other may begin.
    rest: (Instant, Instant),
    rare: Option<Box<Rare>>,
    pub(super) learnt: Learnt,
    /// Slot of its one connection, open or being set up, and 1.
    conn: Option<NonZeroU32>,
    /// Failed visits in a row: see [`Site::fails`].
    pub(super) failures: u8,
    /// Failed tries to get robots.txt.
    pub(super) robots_tries: u8,
    /// Its rules have been asked since they were last looked at.
    pub(super) rules_used: bool,
    /// It is in the line of those whose rules are in memory.
    pub(super) rules_listed: bool,
}

/// What is known of few servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rare {
    /// Since when robots.txt could not be had.
    robots_failing_since: Option<Instant>,
    /// One of the failed tries brought a robots.txt that was cut, but legible.
    robots_cut: bool,
    /// To be given up when its visit ends: why, and what its URLs come to.
    hopeless: Option<(Retirement, Outcome)>,
    /// Given up: what its URLs come to.
    retired_as: Option<Outcome>,
    /// The last of its failures in a row are of this kind, and so many. A restart forgets it,
    /// which costs some tries.
    lasting: Option<(Lasting, u8)>,
    /// URLs that were lost because robots.txt could not be had, since it could be last.
    robots_lost: u32,
    /// So many URLs at the front of its queue were answered, but the replies were not filed.
    put_back: u32,
    /// When the URLs in its queue that wait for another try are due, in the order in which they
    /// were put off; not all of very many.
    retries_due: VecDeque<Instant>,
}

/// Most times of a server that are kept: what is put off beyond them has no wait of its own.
const RETRIES_DUE_MAX: usize = 1_000;

impl Site {
    /// Whether nothing is lost without it: its last visit was long ago, and what is known of it is
    /// over, or would not outlive this run.
    fn is_spent(&self, now: Instant) -> bool {
        let (ended, due) = self.rest;
        let asks_again = match self.robots {
            Robots::Unknown => true,
            Robots::Open(until) | Robots::OnDisk(_, until) | Robots::Unreachable(until) => {
                until <= now
            }
            Robots::Asked | Robots::Elsewhere(_) | Robots::Rules(..) => false,
        };
        asks_again
            && due.max(ended + IDLE) <= now
            && (self.conn, self.failures, self.robots_tries) == (None, 0, 0)
            && self.rare.is_none()
            && !self.rules_listed
            && self.learnt.saved() == Learnt::default().saved()
    }

    /// Slot of its one connection, open or being set up.
    pub(super) fn conn(&self) -> Option<u32> {
        self.conn.map(|slot| slot.get() - 1)
    }

    pub(super) fn set_conn(&mut self, slot: Option<u32>) {
        self.conn = slot.and_then(|slot| NonZeroU32::new(slot + 1));
    }

    /// To be given up when its visit ends.
    pub(super) fn is_hopeless(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.hopeless.is_some())
    }

    /// It is to be given up when its visit ends: why, and what its URLs come to.
    pub(super) fn set_hopeless(&mut self, why: Retirement, outcome: Outcome) {
        self.change_rare(|rare| rare.hopeless = Some((why, outcome)));
    }

    /// Why it is to be given up, if it is.
    pub(super) fn take_hopeless(&mut self) -> Option<(Retirement, Outcome)> {
        self.rare.as_ref()?.hopeless?;
        self.change_rare(|rare| rare.hopeless.take())
    }

    /// Given up: what its URLs come to.
    pub(super) fn retired_as(&self) -> Option<Outcome> {
        self.rare.as_ref()?.retired_as
    }

    pub(super) fn set_retired(&mut self, outcome: Outcome) {
        self.change_rare(|rare| {
            rare.retired_as = Some(outcome);
            rare.retries_due.clear();
        });
    }

    /// It is not given up any more.
    pub(super) fn is_taken_back(&mut self) {
        self.set_failures(0);
        self.change_rare(|rare| rare.retired_as = None);
    }

    /// URLs that were lost because robots.txt could not be had.
    pub(super) fn robots_lost(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.robots_lost)
    }

    pub(super) fn set_robots_lost(&mut self, urls: u32) {
        self.change_rare(|rare| rare.robots_lost = urls);
    }

    /// So many URLs were answered and go back to the front of its queue.
    pub(super) fn puts_back(&mut self, urls: u32) {
        self.change_rare(|rare| rare.put_back = rare.put_back.saturating_add(urls));
    }

    /// A URL is asked for: whether it is one of those.
    pub(super) fn takes_put_back(&mut self) -> bool {
        let is_one = self.rare.as_ref().is_some_and(|rare| rare.put_back > 0);
        if is_one {
            self.change_rare(|rare| rare.put_back -= 1);
        }
        is_one
    }

    /// A URL was put off, and is due then.
    pub(super) fn puts_off(&mut self, due: Instant) {
        self.change_rare(|rare| {
            if rare.retries_due.len() < RETRIES_DUE_MAX {
                rare.retries_due.push_back(due);
            }
        });
    }

    /// When the first URL is due that was put off.
    pub(super) fn retry_due(&self) -> Option<Instant> {
        self.rare.as_ref()?.retries_due.front().copied()
    }

    /// A URL that was put off leaves its queue.
    pub(super) fn takes_put_off(&mut self) {
        if self.retry_due().is_some() {
            self.change_rare(|rare| rare.retries_due.pop_front());
        }
    }

    /// It could not tell its robots.txt now: since when that is so.
    pub(super) fn robots_fails(&mut self, now: Instant) -> Instant {
        self.change_rare(|rare| *rare.robots_failing_since.get_or_insert(now))
    }

    /// Its robots.txt came cut. Returns whether that is the first time in this row of tries; a
    /// restart forgets it, which costs a try.
    pub(super) fn robots_came_cut(&mut self) -> bool {
        let was_cut = self.change_rare(|rare| std::mem::replace(&mut rare.robots_cut, true));
        !was_cut || self.robots_tries == 0
    }

    /// It has told its robots.txt.
    pub(super) fn robots_told(&mut self) {
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

    /// One more visit has failed, perhaps in a way that lasts.
    pub(super) fn fails(&mut self, how: Option<Lasting>) {
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

    /// So many visits in a row have failed, none in a way that is known to last.
    pub(super) fn set_failures(&mut self, failures: u8) {
        self.failures = failures;
        if self.rare.is_some() {
            self.change_rare(|rare| rare.lasting = None);
        }
    }

    /// Whether it has failed in that way as often in a row as gives a server up.
    pub(super) fn is_lasting(&self, how: Lasting) -> bool {
        let row = self.rare.as_ref().and_then(|rare| rare.lasting);
        row.is_some_and(|(same, row)| same == how && row >= how.failures_max())
    }

    /// It has answered: what went wrong before is over.
    pub(super) fn recovers(&mut self) {
        self.set_failures(0);
        if self.is_hopeless() {
            self.change_rare(|rare| {
                rare.hopeless = rare.hopeless.filter(|(why, _)| *why != Retirement::Failures);
            });
        }
    }

    /// Why a target may not be fetched, if it may not. Matching rules is charged to the turn.
    pub(super) fn forbids(&mut self, target: &str, turn: &mut Turn) -> Option<Outcome> {
        match &self.robots {
            Robots::Open(_) => None,
            Robots::Rules(held, _) => {
                self.rules_used = true;
                let (verdict, units) = held.rules.check_counted(target);
                turn.charge(Work::Rules, units);
                (!verdict.allowed).then_some(Outcome::RobotsDenied)
            }
            _ => Some(Outcome::RobotsUnreachable),
        }
    }

    /// While another server is asked for the robots.txt of this one, there is nothing to visit it
    /// for: until when.
    pub(super) fn robots_elsewhere(&self) -> Option<Instant> {
        match self.robots {
            Robots::Elsewhere(until) => Some(until),
            _ => None,
        }
    }

    /// A visit ended now; the next may begin at `due`.
    pub(super) fn rests(&mut self, now: Instant, due: Instant) {
        self.rest = (now, due);
    }

    /// When the last visit ended.
    pub(super) fn ended(&self) -> Instant {
        self.rest.0
    }

    /// The rest owed ends at this instant.
    pub(super) fn due(&self) -> Instant {
        self.rest.1
    }

    /// A visit's first request goes out now: how does the rest compare with what was promised?
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

/// What a checkpoint keeps of a server, for the next run.
///
/// ```text
/// number varint | robots.txt u8: 0 unknown, 1 rules, 2 can't be had, 3 rules on disk
/// | 1 to 3: until u64 (microseconds, UTC) | 1: the rules | 3: segment u32, offset u32,
/// bytes u32
/// | failed tries u8 | can't be had since u64, 0: it can | requests it takes u32, 0: not known
/// | pipelining u8: 0 nothing known, 1 barred, 2 and more: batches compared and 1, 255: one request
/// a connection | failures u8 | given up u8 | if so: what its URLs come to, JSON
/// ```
impl Site {
    /// Whether there is anything that a new one would not have.
    pub(super) fn is_worth_keeping(&self) -> bool {
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

    /// The number of the server whose side table comes next.
    pub(super) fn number_of(take: &mut Take<'_>) -> Result<usize, Short> {
        take.number()
    }

    /// Takes in what an earlier run wrote down, its number excepted. No answer about robots.txt is
    /// believed for longer than `ttl`, whatever the calendar says.
    pub(super) fn decode(
        &mut self,
        take: &mut Take<'_>,
        ttl: Duration,
        now: Now,
    ) -> Result<(), Short> {
        self.robots = Robots::decode(take, ttl, now)?;
        self.robots_tries = take.u8()?;
        // Time before this run can't be told in it: the wait for a server without an answer
        // starts anew, which asks no more often.
        if take.u64()? > 0 {
            self.robots_fails(now.at);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_table_is_small() {
        assert_eq!(size_of::<Site>(), 80);
        assert_eq!(size_of::<Option<NonZeroU32>>(), 4);
    }

    /// Law: a table goes when it says nothing that has to be known, and not before; the server
    /// that it was of is a stranger again.
    #[test]
    fn tables_of_idle_servers_go() {
        let mut sites = Sites::default();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        type Change = fn(&mut Site);
        let cases: [(Change, bool, &str); 10] = [
            (|_| {}, true, "nothing to say"),
            (|site| site.failures = 1, false, "failures count in a row"),
            (|site| site.robots_tries = 1, false, "so do tries for robots.txt"),
            (|site| site.set_conn(Some(0)), false, "its connection stands"),
            (|site| site.learnt = Learnt::restored(7, 0), false, "requests it takes"),
            (|site| site.learnt = Learnt::restored(0, 1), false, "pipelining is barred"),
            (|site| site.learnt = Learnt::restored(0, 2), false, "a batch has been compared"),
            (|site| site.set_retired(Outcome::Reset), false, "it was given up"),
            (|site| site.robots = Robots::Open(Instant::FAR), false, "robots.txt is known"),
            (|site| site.robots = Robots::Open(Instant::ZERO), true, "and is not any more"),
        ];
        for (number, (change, ..)) in (0..).zip(cases) {
            sites.reach(ServerId(number));
            let site = sites.at(ServerId(number));
            site.rests(at(10), at(20));
            change(site);
        }
        let has = |sites: &Sites, number: usize| sites.places[number].is_some();
        sites.tidy(at(3_609), |_| true);
        assert!((0..cases.len()).all(|number| has(&sites, number)), "not an hour has passed");
        sites.tidy(at(3_610), |_| false);
        assert!((0..cases.len()).all(|number| has(&sites, number)), "nobody is idle");
        sites.tidy(at(3_610), |_| true);
        for (number, (_, goes, why)) in (0..).zip(cases) {
            assert_eq!(has(&sites, number), !goes, "{why}");
        }
        assert_eq!(sites.look(ServerId(0)).due(), Instant::ZERO);
        let tables = sites.sites.len();
        sites.at(ServerId(0)).failures = 3;
        sites.at(ServerId(9)).failures = 4;
        assert_eq!((sites.sites.len(), sites.free.len()), (tables, 0), "they are used again");
        assert_eq!(sites.look(ServerId(0)).failures, 3);
    }

    /// Law: only failures of one kind in a row count as lasting, whatever happened before.
    #[test]
    fn failures_of_another_kind_begin_a_new_row() {
        use Lasting::{Barred, Denied};
        let (other, lasts) = (None, Some);
        let cases = [
            (vec![lasts(Denied); 3], lasts(Denied)),
            (vec![lasts(Barred); 2], lasts(Barred)),
            (vec![other, other, lasts(Denied)], None),
            (vec![other, lasts(Barred)], None),
            (vec![lasts(Denied), lasts(Denied), lasts(Barred)], None),
            (vec![lasts(Denied), lasts(Denied), other, lasts(Denied), lasts(Denied)], None),
            (vec![lasts(Barred), lasts(Denied), lasts(Barred), lasts(Barred)], lasts(Barred)),
            (vec![other, lasts(Denied), lasts(Denied), lasts(Denied)], lasts(Denied)),
        ];
        for (failures, lasting) in cases {
            let mut site = Site::default();
            failures.iter().for_each(|how| site.fails(*how));
            assert_eq!(usize::from(site.failures), failures.len());
            for how in [Barred, Denied] {
                assert_eq!(site.is_lasting(how), lasting == lasts(how), "{failures:?}");
            }
            site.recovers();
            assert!(site.rare.is_none() && !site.is_lasting(Barred) && !site.is_lasting(Denied));
        }
    }

    /// Law: what few servers have is given up when it is over.
    #[test]
    fn rare_facts_go_when_they_are_over() {
        let mut site = Site::default();
        let now = Instant::from_micros(5);
        assert_eq!(site.robots_fails(now), now);
        assert_eq!(site.robots_fails(Instant::from_micros(9)), now, "the first time counts");
        site.set_hopeless(Retirement::Failures, Outcome::Reset);
        site.recovers();
        assert!(!site.is_hopeless() && site.rare.is_some());
        assert!(site.robots_came_cut());
        site.robots_tries = 1;
        assert!(!site.robots_came_cut(), "the second of a row");
        site.robots_tries = 0;
        assert!(site.robots_came_cut(), "the next day's row");
        site.robots_told();
        assert!(site.rare.is_none());
        site.set_hopeless(Retirement::Name, Outcome::Reset);
        site.recovers();
        assert_eq!(site.take_hopeless(), Some((Retirement::Name, Outcome::Reset)));
        assert!(site.rare.is_none() && site.take_hopeless().is_none());
    }
}
