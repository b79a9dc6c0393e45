//! Detects an outage on our side: if no server can be reached, the servers are not to blame.
//!
//! A failure *counts* as a sign of an outage if no server has answered a request sent since the
//! previous failure of the same server. A server that fails while others answer is itself at fault.
//! The crawl pauses if failures count of at least [`SERVERS_MIN`] servers on [`PREFIXES_MIN`]
//! address prefixes (/24 of IPv4, /48 of IPv6; the registrable domain if the name doesn't resolve),
//! over at least [`WINDOW`], and nine in ten of them are failures to reach the server. During the
//! pause only a few visits begin in each round, as probes: servers whose rest is over, and some
//! that answered recently even if they have no URLs left. The first answer ends the pause.
//!
//! Any page can link to names that don't exist, to forbidden addresses and to closed ports. So the
//! first two don't count for a server that has never answered, and before the crawl pauses, servers
//! that answered recently are probed.
//!
//! A crawl of few servers can't distinguish the two cases. There a server whose failures count, and
//! which had answered before, is not given up: its waits grow to the longest.
//!
//! Laws: failures during the pause don't count against servers. Servers keep their rests. If no
//! server answers until [`Outage::deadline`], the crawl ends in order, with its URLs still queued.
//! Cost: a map entry for each failure that counts, at most [`FAILED_MAX`]; an answer clears the
//! map.

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

/// The number of servers that must have failed before an outage is detected.
const SERVERS_MIN: usize = 8;
/// The number of address prefixes on which servers must have failed before an outage is detected.
const PREFIXES_MIN: usize = 3;
/// The time for which failures must last before an outage is detected, since answers of other
/// servers may still be in transit.
const WINDOW: Duration = Duration::from_secs(2);
/// The maximum number of failed servers that are remembered.
const FAILED_MAX: usize = 4_096;
/// The number of visits in a round of probes.
const PROBES: u32 = 4;
/// The number of recently answering servers that are remembered.
const RECENT: usize = 8;

/// The failures since the last answer, the pause that an outage causes, and servers to probe.
#[derive(Debug, Default)]
pub(in crate::engine) struct Outage {
    /// The time between two rounds of probes.
    probe_wait: Duration,
    /// How long no server may answer before the crawl ends.
    wait_max: Duration,
    /// When the latest request that was answered had been sent; `None` if no server has answered in
    /// this run.
    last_answered: Option<Instant>,
    /// The servers whose failures count as a sign of an outage, with the last failure of each.
    failed: Map<ServerId, Failure>,
    /// The number of servers in `failed` that could not be reached.
    unreached: usize,
    prefixes: Map<Prefix, u32>,
    /// When the first server in `failed` failed.
    since: Instant,
    /// Whether a server in `failed` was spared: it had failed so often that it would have been
    /// given up.
    is_sparing: bool,
    pause: Option<Probing>,
    /// Servers that answered recently: each in the slot of its number modulo [`RECENT`].
    recent: [Option<ServerId>; RECENT],
}

/// The last failure of a server that counts as a sign of an outage.
#[derive(Clone, Debug)]
struct Failure {
    /// When the server failed.
    at: Instant,
    /// Whether the server had answered before, in this run or an earlier one.
    is_known: bool,
    /// The number of failures of the server in a row before this one.
    before: u8,
    /// When the visit of the server before this one ended.
    ended: Instant,
    prefix: Prefix,
    outcome: Outcome,
}

/// Who is thought to be at fault when servers fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Servers,
    /// Our side is at fault, unless another server answers soon.
    Unclear,
    Ours,
}

/// A network as the prefix of an address; if there is no address, a registrable domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Prefix {
    V4([u8; 3]),
    V6([u8; 6]),
    Domain(Box<str>),
}

/// The pause of the crawl during an outage: only probes are visited, in rounds.
#[derive(Clone, Copy, Debug)]
struct Probing {
    began: Instant,
    /// When the next round of probes begins.
    next_round: Instant,
    /// How many visits are left in this round.
    left: u32,
}

impl Outage {
    pub(in crate::engine) fn new(retries: &Retries) -> Self {
        let mut outage = Self::default();
        outage.set_retries(retries);
        outage
    }

    /// Changes the time between probes and the longest time of an outage.
    pub(in crate::engine) fn set_retries(&mut self, retries: &Retries) {
        (self.probe_wait, self.wait_max) = (retries.wait, retries.outage_max);
    }

    /// Returns whether the crawl pauses because of an outage.
    pub(in crate::engine) fn is_on(&self) -> bool {
        self.pause.is_some()
    }

    /// Returns whether another visit may begin now.
    pub(in crate::engine) fn may_visit(&self, now: Instant) -> bool {
        self.opens_at() <= now
    }

    /// Returns when another visit may begin; the start of time if at once.
    pub(in crate::engine) fn opens_at(&self) -> Instant {
        match self.pause {
            Some(Probing { next_round, left: 0, .. }) => next_round,
            _ => Instant::ZERO,
        }
    }

    /// Counts a visit that begins, which is a probe if the crawl pauses.
    pub(in crate::engine) fn note_visit(&mut self, now: Instant) {
        let Some(pause) = &mut self.pause else { return };
        if pause.next_round <= now {
            pause.next_round = now + self.probe_wait;
            pause.left = PROBES;
        }
        pause.left = pause.left.saturating_sub(1);
    }

    /// Returns when the crawl ends if no server answers, or `None` if no outage is suspected.
    pub(in crate::engine) fn deadline(&self) -> Option<Instant> {
        (self.is_on() || self.is_sparing).then(|| self.since + self.wait_max)
    }

    /// Counts the time of an outage from `now` on.
    pub(in crate::engine) fn begin_again(&mut self, now: Instant) {
        self.since = self.since.max(now);
    }

    /// Returns whether a server that failed too often is kept, because no server has answered since
    /// it failed.
    pub(in crate::engine) fn spares(&mut self, id: ServerId) -> bool {
        let holds = self.failed.contains_key(&id) && self.is_widespread();
        self.is_sparing |= holds;
        holds
    }

    /// Remembers a server that has answered, in this run or an earlier one, so that it may be
    /// probed.
    pub(in crate::engine) fn note_answering(&mut self, id: ServerId) {
        self.recent[id.index() % RECENT] = Some(id);
    }

    /// Notes that a server has failed. Returns who is thought to be at fault.
    fn note_failure(&mut self, id: ServerId, failure: Failure) -> Fault {
        let Failure { at, is_known, before, ended, outcome, .. } = failure;
        let old = self.remove(id);
        let is_hearsay = outcome.is_denial() && !is_known;
        let began_before =
            before > 0 && self.last_answered.is_some_and(|last_answered| ended < last_answered);
        let may_not = is_hearsay || began_before || self.failed.len() >= FAILED_MAX;
        if old.is_none() && may_not {
            return Fault::Servers;
        }
        if self.failed.is_empty() && old.is_none() {
            self.since = at;
        }
        let before = old.map_or(before, |old| old.before);
        *self.prefixes.entry(failure.prefix.clone()).or_default() += 1;
        self.unreached += usize::from(outcome.is_unreached());
        self.failed.insert(id, Failure { before, ..failure });
        let is_many = self.failed.len() >= SERVERS_MIN && self.prefixes.len() >= PREFIXES_MIN;
        if self.is_on() || !is_many || !self.is_widespread() {
            Fault::Servers
        } else if at.since(self.since) < WINDOW {
            Fault::Unclear
        } else {
            Fault::Ours
        }
    }

    fn remove(&mut self, id: ServerId) -> Option<Failure> {
        let old = self.failed.remove(&id)?;
        self.unreached -= usize::from(old.outcome.is_unreached());
        let count = self.prefixes.get_mut(&old.prefix).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            self.prefixes.remove(&old.prefix);
        }
        Some(old)
    }

    /// Returns whether nine in ten of the servers in `failed` could not be reached.
    fn is_widespread(&self) -> bool {
        10 * self.unreached >= 9 * self.failed.len()
    }

    /// Notes that a server has answered a request that was sent at `sent`. The failures before that
    /// were the servers' own, unless the crawl paused: then the pause ends, and the servers that
    /// failed are returned. During a pause, an answer to a request from before it proves nothing.
    fn note_answer(&mut self, id: ServerId, sent: Instant) -> Option<Map<ServerId, Failure>> {
        self.last_answered = self.last_answered.max(Some(sent));
        self.note_answering(id);
        if let Some(pause) = self.pause {
            if sent < pause.began {
                return None;
            }
            self.pause = None;
            self.clear();
            return Some(std::mem::take(&mut self.failed));
        }
        if !self.failed.is_empty() && self.since < sent {
            let earlier = |(id, it): (&ServerId, &Failure)| (it.at < sent).then_some(*id);
            let earlier: Vec<ServerId> = self.failed.iter().filter_map(earlier).collect();
            earlier.into_iter().for_each(|id| {
                self.remove(id);
            });
            self.is_sparing = false;
            let first = self.failed.values().map(|failure| failure.at).min();
            self.since = first.unwrap_or(sent);
        }
        None
    }

    fn clear(&mut self) {
        self.unreached = 0;
        self.is_sparing = false;
        self.prefixes.clear();
    }

    /// Returns a text that lists the outcomes of the failures with their counts.
    fn causes(&self) -> String {
        let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
        for failure in self.failed.values() {
            *causes.entry(failure.outcome.name()).or_default() += 1;
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
    /// Notes that a server has failed before it sent a byte of a reply. `address` is the address
    /// that was tried, or `None` if there was none.
    pub(in crate::engine) fn note_failure(
        &mut self,
        id: ServerId,
        address: Option<IpAddr>,
        outcome: Outcome,
    ) {
        let site = self.sites.get(id);
        let (before, ended) = (site.failures, site.ended());
        let prefix = Prefix::of(address, self.backlog.origin(id).host());
        let at = self.turn.at();
        let is_known = self.backlog.server(id).has_answered();
        let failure = Failure { at, is_known, before, ended, prefix, outcome };
        match self.visits.outage.note_failure(id, failure) {
            Fault::Servers => {}
            Fault::Unclear => self.probe_recent(),
            Fault::Ours => self.begin_outage(),
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
        self.probe_recent();
    }

    /// Queues a request for robots.txt at those servers that answered recently and have nothing
    /// else queued. Servers with queued URLs are visited anyway.
    pub(in crate::engine) fn probe_recent(&mut self) {
        for id in self.visits.outage.recent.into_iter().flatten() {
            let server = self.backlog.server(id);
            let is_idle = server.state() == ServerState::Idle && self.backlog.queue_len(id) == 0;
            if is_idle && !self.visits.outage.failed.contains_key(&id) {
                let item = robots_item(id);
                self.backlog.add_to(id, &item.parts(), item.quality, self.turn.at());
            }
        }
    }

    /// Notes that a server has answered a request that was sent at `sent`.
    pub(in crate::engine) fn note_answer(&mut self, id: ServerId, sent: Instant) {
        let Some(failed) = self.visits.outage.note_answer(id, sent) else { return };
        for (id, failure) in &failed {
            // One failure is left, so that the next one counts as the server's own.
            self.sites.get_mut(*id).set_failures(failure.before.max(1));
        }
        log::info!(
            "{} answered; the crawl resumes after {:?}",
            self.backlog.origin(id).as_str(),
            self.turn.at().since(self.visits.outage.since)
        );
    }

    /// Ends the crawl if no server has answered for too long.
    pub(in crate::engine) fn expire_outage(&mut self) {
        if self.visits.deadline().is_some_and(|at| at <= self.turn.at()) && !self.is_stopping() {
            log::error!(
                "no server has answered for {:?} (retries.outage_max): the crawl ends here, with \
                 its URLs still queued; start it again to continue",
                self.visits.outage.wait_max
            );
            self.begin_stop(StopReason::Outage);
        }
    }

    /// Returns for how long no server could be reached, or `None` if the crawl doesn't pause for an
    /// outage.
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

    /// Notes the failure of a server on a /24 of its own.
    fn fails(outage: &mut Outage, number: u8, before: u8, outcome: Outcome) -> bool {
        fails_as(outage, number, before, outcome, true)
    }

    /// The same, of a server that had answered before or had not.
    fn fails_as(
        outage: &mut Outage,
        number: u8,
        before: u8,
        outcome: Outcome,
        is_known: bool,
    ) -> bool {
        let prefix = Prefix::of(Some(IpAddr::from([192, 0, number, 1])), "a.test");
        let at = at(100 + u64::from(number));
        let failure = Failure { at, is_known, before, ended: self::at(99), prefix, outcome };
        outage.note_failure(ServerId(number.into()), failure) == Fault::Ours
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
            let failure = Failure { at, is_known: true, before: 0, ended, prefix, outcome: DEAD };
            let fault = one.note_failure(ServerId(number), failure);
            assert_eq!(fault, Fault::Servers, "one network may be down");
        }
        let mut mixed = outage();
        let outcome = |number| if number < 2 { Outcome::HeadTimedOut } else { NO_NAME };
        assert!(!(0..19).any(|number| fails(&mut mixed, number, 0, outcome(number))));
        assert!(fails(&mut mixed, 19, 0, NO_NAME), "18 of 20 could not be reached");
    }

    #[test]
    fn who_failed_while_others_answered_proves_nothing() {
        let mut tail = outage();
        assert!(tail.note_answer(ServerId(100), at(100)).is_none());
        assert!((0..20).all(|number| !fails(&mut tail, number, 1, DEAD)), "one was sent since");
        assert!((0..7).all(|number| !fails(&mut tail, number, 0, DEAD)));
        assert!(
            tail.note_answer(ServerId(101), at(107)).is_none(),
            "an answer clears those before it"
        );
        assert!(!fails(&mut tail, 7, 0, DEAD));
        let mut start = outage();
        assert!(start.note_answer(ServerId(100), at(98)).is_none());
        assert!((0..7).all(|number| !fails(&mut start, number, 1, DEAD)));
        assert!(start.note_answer(ServerId(101), at(99)).is_none());
        assert!(fails(&mut start, 7, 1, DEAD), "those answers were on their way");
    }

    #[test]
    fn a_resolver_is_believed_of_servers_that_never_answered() {
        for denial in [NO_NAME, Outcome::ForbiddenAddress] {
            let mut strangers = outage();
            strangers.note_answering(ServerId(50));
            assert!((0..20).all(|number| !fails_as(&mut strangers, number, 0, denial, false)));
            assert!(!strangers.spares(ServerId(3)));
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
            let failure = Failure { at, is_known: false, before: 0, ended, prefix, outcome: DEAD };
            outage.note_failure(ServerId(number.into()), failure)
        };
        assert!((0..7).all(|number| fails_at(number, at(100)) == Fault::Servers));
        assert!((7..20).all(|number| fails_at(number, at(100)) == Fault::Unclear));
        assert_eq!(fails_at(3, at(101)), Fault::Unclear);
        assert_eq!(fails_at(3, at(102)), Fault::Ours, "nobody has answered for two seconds");
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
            outage.note_visit(at(140));
        }
        assert_eq!(outage.opens_at(), at(170));
        assert_eq!(outage.deadline(), Some(at(100 + 24 * 3_600)), "since the first failure");
        assert!(outage.note_answer(ServerId(3), at(109)).is_none(), "it was sent before");
        let failed = outage.note_answer(ServerId(3), at(141)).expect("it paused");
        assert!(failed.len() == 8 && failed.values().all(|it| it.before == 2));
        assert!(!outage.is_on() && outage.may_visit(at(142)) && outage.deadline().is_none());
    }
}
