//! Detects an outage on our own side: when nobody can be reached, nobody is to blame.
//!
//! A server *testifies* when it fails and nobody has answered a request that was sent since its
//! failure before that, if there was one; one that fails while others answer is at fault itself.
//! When at least [`SERVERS_MIN`] servers on [`PREFIXES_MIN`] address prefixes testify (/24 of
//! IPv4, /48 of IPv6; where a name doesn't resolve, its registrable domain), for [`WINDOW`] at
//! least, and nine in ten of them could not be reached, the crawl pauses. Then only a few visits a
//! round begin, as probes: servers whose rest is over, and some that answered last (*witnesses*),
//! which may have nothing else left to ask for. The first answer ends the pause.
//!
//! Any page can link to names that don't exist, to addresses that may not be connected to, and to
//! closed ports: a server that has never answered doesn't testify by the first two, and before a
//! row of others is believed, witnesses are asked.
//!
//! In a smaller crawl nothing can be told apart. There a server that had answered, and that
//! testifies, is not given up: its waits grow to the longest.
//!
//! Laws: failures while the crawl pauses don't count against servers; rests are kept; the crawl
//! ends in order when [`Outage::deadline`] has passed without an answer, and all its URLs wait.
//! Cost: a map entry a server that testifies, [`FAILED_MAX`] at most; an answer clears the map.

use super::robots_item;
use crate::engine::Engine;
use crate::engine::contract::StopReason;
use crate::engine::outcome::Outcome;
use crate::engine::settings::Retries;
use crate::frontier::{ServerId, ServerState};
use crate::ground::map::Map;
use crate::ground::time::Instant;
use crate::url::domain;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Fewer servers than these prove nothing.
const SERVERS_MIN: usize = 8;
/// Nor do servers on fewer networks.
const PREFIXES_MIN: usize = 3;
/// Nor does a moment, however many fail in it: the answers of others may be on their way.
const WINDOW: Duration = Duration::from_secs(2);
/// Most servers that are kept in mind.
const FAILED_MAX: usize = 4_096;
/// Visits begun in a round of probes.
const PROBES: u32 = 4;
/// Servers that answered last.
const WITNESSES: usize = 8;

/// What is known of failures since the last answer.
#[derive(Debug)]
pub(in crate::engine) struct Outage {
    /// Between two rounds of probes.
    probe_wait: Duration,
    /// Without an answer for so long the crawl ends.
    wait_max: Duration,
    /// When the last request was sent that was answered, if any was in this run.
    heard: Option<Instant>,
    /// Servers that testify.
    failed: Map<ServerId, Testimony>,
    /// Of these, how many could not be reached.
    unreached: usize,
    prefixes: Map<Prefix, u32>,
    /// When the first of them failed.
    since: Instant,
    /// One of them would have been given up by now.
    is_holding: bool,
    pause: Option<Probing>,
    /// In the place of its number: the last server that answered.
    witnesses: [Option<ServerId>; WITNESSES],
}

/// What a failure says.
#[derive(Clone, Debug)]
struct Testimony {
    /// When it failed.
    at: Instant,
    /// It had answered, in this run or an earlier one.
    is_known: bool,
    /// Failures in a row before, and when the last visit ended.
    before: u8,
    ended: Instant,
    prefix: Prefix,
    outcome: Outcome,
}

/// Whose fault it is that servers fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belief {
    Theirs,
    /// Ours, if nobody else answers soon.
    Doubt,
    Ours,
}

/// A network, as far as an observer outside can tell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Prefix {
    V4([u8; 3]),
    V6([u8; 6]),
    Domain(Box<str>),
}

/// The pause.
#[derive(Clone, Copy, Debug)]
struct Probing {
    began: Instant,
    /// When the next round begins, and what is left of this one.
    next_round: Instant,
    left: u32,
}

impl Outage {
    pub(in crate::engine) fn new(retries: &Retries) -> Self {
        Self {
            probe_wait: retries.wait,
            wait_max: retries.outage_max,
            heard: None,
            failed: Map::default(),
            unreached: 0,
            prefixes: Map::default(),
            since: Instant::ZERO,
            is_holding: false,
            pause: None,
            witnesses: [None; WITNESSES],
        }
    }

    /// Whether the crawl pauses for it.
    pub(in crate::engine) fn is_on(&self) -> bool {
        self.pause.is_some()
    }

    /// Whether another visit may begin.
    pub(in crate::engine) fn may_visit(&self, now: Instant) -> bool {
        self.opens_at() <= now
    }

    /// When another visit may begin.
    pub(in crate::engine) fn opens_at(&self) -> Instant {
        match self.pause {
            Some(Probing { next_round, left: 0, .. }) => next_round,
            _ => Instant::ZERO,
        }
    }

    /// A visit begins.
    pub(in crate::engine) fn visits(&mut self, now: Instant) {
        let Some(pause) = &mut self.pause else { return };
        if pause.next_round <= now {
            pause.next_round = now + self.probe_wait;
            pause.left = PROBES;
        }
        pause.left = pause.left.saturating_sub(1);
    }

    /// When the crawl ends for want of answers.
    pub(in crate::engine) fn deadline(&self) -> Option<Instant> {
        (self.is_on() || self.is_holding).then(|| self.since + self.wait_max)
    }

    /// Whether a server that failed too often is kept all the same: nobody has answered since.
    pub(in crate::engine) fn holds(&mut self, id: ServerId) -> bool {
        let holds = self.failed.contains_key(&id) && self.is_general();
        self.is_holding |= holds;
        holds
    }

    /// A server has answered, in this run or an earlier one: it may be asked in doubt.
    pub(in crate::engine) fn may_witness(&mut self, id: ServerId) {
        self.witnesses[id.index() % WITNESSES] = Some(id);
    }

    /// A server has failed, after so many failures in a row: what that makes of it.
    fn fails(&mut self, id: ServerId, testimony: Testimony) -> Belief {
        let Testimony { at, is_known, before, ended, outcome, .. } = testimony;
        let old = self.remove(id);
        let is_hearsay = outcome.is_denial() && !is_known;
        let began_before = before > 0 && self.heard.is_some_and(|heard| ended < heard);
        let may_not = is_hearsay || began_before || self.failed.len() >= FAILED_MAX;
        if old.is_none() && may_not {
            return Belief::Theirs;
        }
        if self.failed.is_empty() && old.is_none() {
            self.since = at;
        }
        let before = old.map_or(before, |old| old.before);
        *self.prefixes.entry(testimony.prefix.clone()).or_default() += 1;
        self.unreached += usize::from(outcome.is_unreached());
        self.failed.insert(id, Testimony { before, ..testimony });
        let is_many = self.failed.len() >= SERVERS_MIN && self.prefixes.len() >= PREFIXES_MIN;
        if self.is_on() || !is_many || !self.is_general() {
            Belief::Theirs
        } else if at.since(self.since) < WINDOW {
            Belief::Doubt
        } else {
            Belief::Ours
        }
    }

    fn remove(&mut self, id: ServerId) -> Option<Testimony> {
        let old = self.failed.remove(&id)?;
        self.unreached -= usize::from(old.outcome.is_unreached());
        let count = self.prefixes.get_mut(&old.prefix).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            self.prefixes.remove(&old.prefix);
        }
        Some(old)
    }

    /// Nine in ten of those that failed could not be reached.
    fn is_general(&self) -> bool {
        10 * self.unreached >= 9 * self.failed.len()
    }

    /// Somebody has answered a request that was sent then: what failed before that had its own
    /// reasons, unless the crawl paused. Then those that failed and what they had failed before
    /// are returned. An answer that was on its way already proves nothing.
    fn answers(&mut self, id: ServerId, sent: Instant) -> Option<Map<ServerId, Testimony>> {
        self.heard = self.heard.max(Some(sent));
        self.may_witness(id);
        if let Some(pause) = self.pause {
            if sent < pause.began {
                return None;
            }
            self.pause = None;
            self.clear();
            return Some(std::mem::take(&mut self.failed));
        }
        if !self.failed.is_empty() && self.since < sent {
            let earlier = |(id, it): (&ServerId, &Testimony)| (it.at < sent).then_some(*id);
            let earlier: Vec<ServerId> = self.failed.iter().filter_map(earlier).collect();
            earlier.into_iter().for_each(|id| {
                self.remove(id);
            });
            self.is_holding = false;
            let first = self.failed.values().map(|testimony| testimony.at).min();
            self.since = first.unwrap_or(sent);
        }
        None
    }

    fn clear(&mut self) {
        self.unreached = 0;
        self.is_holding = false;
        self.prefixes.clear();
    }

    /// How often each outcome was met.
    fn causes(&self) -> String {
        let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
        for testimony in self.failed.values() {
            *causes.entry(testimony.outcome.name()).or_default() += 1;
        }
        let causes: Vec<String> =
            causes.into_iter().map(|(name, count)| format!("{count} {name}")).collect();
        causes.join(", ")
    }
}

impl Prefix {
    fn of(address: Option<IpAddr>, host: &str) -> Self {
        let address = address.or_else(|| host.trim_matches(['[', ']']).parse().ok());
        match address {
            Some(IpAddr::V4(address)) => {
                let [one, two, three, _] = address.octets();
                Self::V4([one, two, three])
            }
            Some(IpAddr::V6(address)) => {
                let [one, two, three, four, five, six, ..] = address.octets();
                Self::V6([one, two, three, four, five, six])
            }
            None => Self::Domain(domain::registrable(host).into()),
        }
    }
}

impl Engine {
    /// A server has failed without a byte of a reply; at this address, if at any.
    pub(in crate::engine) fn note_failure(
        &mut self,
        id: ServerId,
        address: Option<IpAddr>,
        outcome: Outcome,
    ) {
        let site = self.sites.look(id);
        let (before, ended) = (site.failures, site.ended());
        let prefix = Prefix::of(address, self.backlog.origin(id).host());
        let at = self.turn.at();
        let is_known = self.backlog.server(id).has_answered();
        let testimony = Testimony { at, is_known, before, ended, prefix, outcome };
        match self.visits.outage.fails(id, testimony) {
            Belief::Theirs => {}
            Belief::Doubt => self.ask_witnesses(),
            Belief::Ours => self.begin_outage(),
        }
    }

    fn begin_outage(&mut self) {
        let outage = &mut self.visits.outage;
        self.counts.outages += 1;
        log::error!(
            "{} servers in a row, on {} networks, could not be reached ({}), and none has \
             answered since: the fault seems to be on this side. The crawl pauses and tries some \
             servers every {:?}; it ends after {:?} without an answer (retries.outage_max). Check \
             this machine's network, its firewall, and its name servers (names.servers)",
            outage.failed.len(),
            outage.prefixes.len(),
            outage.causes(),
            outage.probe_wait,
            outage.wait_max
        );
        let began = self.turn.at();
        let next_round = began + outage.probe_wait;
        outage.pause = Some(Probing { began, next_round, left: 0 });
        self.ask_witnesses();
    }

    /// Has servers that answered last asked again, those that have nothing else to ask for: the
    /// others are visited anyway.
    pub(in crate::engine) fn ask_witnesses(&mut self) {
        for id in self.visits.outage.witnesses.into_iter().flatten() {
            let server = self.backlog.server(id);
            let is_idle = server.state() == ServerState::Idle && self.backlog.queue_len(id) == 0;
            if is_idle && !self.visits.outage.failed.contains_key(&id) {
                let item = robots_item(id);
                self.backlog.add_to(id, &item.parts(), item.quality, self.turn.at());
            }
        }
    }

    /// A server has answered a request that was sent then.
    pub(in crate::engine) fn note_answer(&mut self, id: ServerId, sent: Instant) {
        let Some(failed) = self.visits.outage.answers(id, sent) else { return };
        for (id, testimony) in &failed {
            // One failure stays: the next one of theirs is their own.
            self.sites.at(*id).set_failures(testimony.before.max(1));
        }
        log::info!(
            "{} answers; the crawl goes on after {:?}",
            self.backlog.origin(id).as_str(),
            self.turn.at().since(self.visits.outage.since)
        );
    }

    /// The crawl ends when nobody has answered for too long.
    pub(in crate::engine) fn expire_outage(&mut self) {
        if self.visits.outage.deadline().is_some_and(|at| at <= self.turn.at())
            && !self.is_stopping()
        {
            log::error!(
                "nobody has answered for {:?} (retries.outage_max): the crawl ends here, with its \
                 URLs still queued; start it again to continue",
                self.visits.outage.wait_max
            );
            self.begin_stop(StopReason::Outage);
        }
    }

    /// How long nobody could be reached, if the crawl pauses for that.
    pub fn outage(&self) -> Option<Duration> {
        self.visits.outage.is_on().then(|| self.turn.at().since(self.visits.outage.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::NameFailure;

    const DEAD: Outcome = Outcome::ConnectTimedOut;
    const NO_NAME: Outcome = Outcome::Name(NameFailure::NoSuchName);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn outage() -> Outage {
        Outage::new(&Retries::default())
    }

    /// The failure of a server on its own /24.
    fn fails(outage: &mut Outage, number: u8, before: u8, outcome: Outcome) -> bool {
        fails_as(outage, number, before, outcome, true)
    }

    /// The same of one that had answered, or never had.
    fn fails_as(
        outage: &mut Outage,
        number: u8,
        before: u8,
        outcome: Outcome,
        is_known: bool,
    ) -> bool {
        let prefix = Prefix::of(Some(IpAddr::from([192, 0, number, 1])), "a.test");
        let at = at(100 + u64::from(number));
        let testimony = Testimony { at, is_known, before, ended: self::at(99), prefix, outcome };
        outage.fails(ServerId(number.into()), testimony) == Belief::Ours
    }

    #[test]
    fn eight_servers_on_three_prefixes_make_an_outage() {
        let mut four = outage();
        assert!((0..7).all(|number| !fails(&mut four, number, 0, DEAD)), "seven are too few");
        assert!(fails(&mut four, 7, 0, DEAD));
        let mut one = outage();
        let prefix = Prefix::of(Some(IpAddr::from([192, 0, 2, 1])), "a.test");
        for number in 0..100 {
            let prefix = prefix.clone();
            let (at, ended) = (at(number.into()), at(0));
            let testimony =
                Testimony { at, is_known: true, before: 0, ended, prefix, outcome: DEAD };
            let belief = one.fails(ServerId(number), testimony);
            assert_eq!(belief, Belief::Theirs, "one network may be down");
        }
        let mut mixed = outage();
        let outcome = |number| if number < 2 { Outcome::HeadTimedOut } else { NO_NAME };
        assert!(!(0..19).any(|number| fails(&mut mixed, number, 0, outcome(number))));
        assert!(fails(&mut mixed, 19, 0, NO_NAME), "18 of 20 could not be reached");
    }

    #[test]
    fn who_failed_while_others_answered_proves_nothing() {
        let mut tail = outage();
        assert!(tail.answers(ServerId(100), at(100)).is_none());
        assert!((0..20).all(|number| !fails(&mut tail, number, 1, DEAD)), "one was sent since");
        assert!((0..7).all(|number| !fails(&mut tail, number, 0, DEAD)));
        assert!(tail.answers(ServerId(101), at(107)).is_none(), "an answer clears those before it");
        assert!(!fails(&mut tail, 7, 0, DEAD));
        let mut start = outage();
        assert!(start.answers(ServerId(100), at(98)).is_none());
        assert!((0..7).all(|number| !fails(&mut start, number, 1, DEAD)));
        assert!(start.answers(ServerId(101), at(99)).is_none());
        assert!(fails(&mut start, 7, 1, DEAD), "those answers were on their way");
    }

    #[test]
    fn a_resolver_is_believed_of_servers_that_never_answered() {
        for denial in [NO_NAME, Outcome::ForbiddenAddress] {
            let mut strangers = outage();
            strangers.may_witness(ServerId(50));
            assert!((0..20).all(|number| !fails_as(&mut strangers, number, 0, denial, false)));
            assert!(!strangers.holds(ServerId(3)));
            let silent = Outcome::Name(NameFailure::TimedOut);
            assert!(!(0..7).any(|number| fails_as(&mut strangers, number, 0, silent, false)));
            assert!(fails_as(&mut strangers, 7, 0, silent, false), "silence is another thing");
        }
    }

    #[test]
    fn a_moment_proves_nothing() {
        let mut outage = outage();
        let mut fails_at = |number: u8, at: Instant| {
            let prefix = Prefix::of(Some(IpAddr::from([192, 0, number, 1])), "a.test");
            let ended = self::at(0);
            let testimony =
                Testimony { at, is_known: false, before: 0, ended, prefix, outcome: DEAD };
            outage.fails(ServerId(number.into()), testimony)
        };
        assert!((0..7).all(|number| fails_at(number, at(100)) == Belief::Theirs));
        assert!((7..20).all(|number| fails_at(number, at(100)) == Belief::Doubt));
        assert_eq!(fails_at(3, at(101)), Belief::Doubt);
        assert_eq!(fails_at(3, at(102)), Belief::Ours, "nobody has answered for two seconds");
    }

    #[test]
    fn probes_come_in_rounds_and_an_answer_ends_them() {
        let mut outage = outage();
        (0..8).for_each(|number| _ = fails(&mut outage, number, 2, DEAD));
        let (began, next_round) = (at(110), at(140));
        outage.pause = Some(Probing { began, next_round, left: 0 });
        assert!(!outage.may_visit(at(139)) && outage.may_visit(at(140)));
        for _ in 0..PROBES {
            assert!(outage.may_visit(at(140)));
            outage.visits(at(140));
        }
        assert_eq!(outage.opens_at(), at(170));
        assert_eq!(outage.deadline(), Some(at(100 + 24 * 3_600)), "since the first failure");
        assert!(outage.answers(ServerId(3), at(109)).is_none(), "it was sent before");
        let failed = outage.answers(ServerId(3), at(141)).expect("it paused");
        assert!(failed.len() == 8 && failed.values().all(|it| it.before == 2));
        assert!(!outage.is_on() && outage.may_visit(at(142)) && outage.deadline().is_none());
    }
}
