//! Visits: which server is visited next, what is requested from it, and how long it rests
//! afterwards.
//!
//! A *visit* is a series of requests to one server over one connection; after it the server rests.
//!
//! This part of the engine owns what decides when a visit begins, apart from the frontier: DNS
//! look-ups, visits that wait for budget, and the detection of outages. A visit begins when its
//! server is ready and a slot is free; its name is resolved, a connection is opened, and requests
//! are sent up to the burst of the server, the maximum number of requests in one visit (`wire`).
//!
//! Laws: robots.txt is known before a page is requested, if it is obeyed; a URL that leaves its
//! queue without a request has a line in the crawl log; a server that failed rests longer each
//! time, and is given up after too many failures in a row.
//! Cost: that of the frontier, and a look-up of the name in a cache.

pub(super) mod census;
mod deferred;
mod orders;
mod outage;
mod price;

use super::Engine;
use super::archive::Unsent;
use super::backlog::{Item, Purpose, ROBOTS_TXT, robots_item};
use super::contract::{Action, Answer, LookupId, NameFailure};
use super::counts::Loss;
use super::ledger::Work;
use super::outcome::{Lasting, Outcome, ServerFate};
use super::robots::state::{Robots, RobotsStatus};
use super::settings::{Retries, Settings};
use super::wire::OpenVisit;
use crate::dns::{self, Names};
use crate::frontier::{Retirement, Rule, ServerId, Visit};
use crate::ground::stats::Stage;
use crate::ground::time::Instant;
use crate::robots::Verdict;
use crate::url::scope::Distance;
use census::Census;
use deferred::Deferred;
pub(super) use orders::BadLog;
pub(super) use orders::Hold;
use orders::Orders;
pub use orders::{CommandsDone, CommandsJob};
use outage::Outage;
use smallvec::SmallVec;
use std::net::IpAddr;

/// The cost of beginning a DNS look-up, in units of work: 50 us, as c-ares sends a query for each
/// address family.
const LOOKUP_UNITS: usize = 32 << 10;

/// What decides when visits begin, apart from the frontier.
#[derive(Debug)]
pub(super) struct Visits {
    names: Names,
    deferred: Deferred,
    outage: Outage,
    orders: Orders,
    census: Census,
}

impl Visits {
    pub(super) fn new(settings: &Settings) -> Self {
        let names = Names::new(settings.names.clone());
        Self {
            names,
            deferred: Deferred::default(),
            outage: Outage::new(&settings.retries),
            orders: Orders::default(),
            census: Census::default(),
        }
    }

    /// Returns whether a name is queued and may be looked up now.
    pub(super) fn can_ask(&self) -> bool {
        self.names.can_ask()
    }

    /// Returns the operator's commands that are in force.
    pub(super) fn orders(&self) -> &Orders {
        &self.orders
    }

    /// Returns the operator's commands that are in force, for changes.
    pub(super) fn orders_mut(&mut self) -> &mut Orders {
        &mut self.orders
    }

    /// Changes the rules for outages.
    pub(super) fn set_retries(&mut self, retries: &Retries) {
        self.outage.set_retries(retries);
    }

    /// Returns the count of what servers wait for.
    pub(super) fn census(&self) -> &Census {
        &self.census
    }

    /// Returns the count of what servers wait for, to continue it.
    pub(super) fn census_mut(&mut self) -> &mut Census {
        &mut self.census
    }

    /// Returns the number of visits that wait for a DNS look-up.
    pub(super) fn waiters(&self) -> usize {
        self.names.waiters()
    }

    /// Returns whether a visit waits for the budget of the next turn.
    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Makes the host name `host` be resolved again for visits after `at`, since its addresses may
    /// be wrong.
    pub(super) fn expire_name(&mut self, host: &str, at: Instant) {
        self.names.expire_by(host, at);
    }

    /// Remembers a server that has answered, so that it may be probed in an outage: see
    /// [`Outage::note_answering`].
    pub(super) fn note_answering(&mut self, id: ServerId) {
        self.outage.note_answering(id);
    }

    /// Returns when the next visit may begin in a network outage; the start of time without one.
    pub(super) fn opens_at(&self) -> Instant {
        self.outage.opens_at()
    }

    /// Returns when the crawl ends if no server answers, or `None` if it doesn't end for that
    /// reason. While the operator pauses the whole crawl, no server is tried.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.outage.deadline().filter(|_| !self.orders.pauses_all())
    }

    /// Makes the longest time of an outage begin now, after a pause in which no server was tried.
    fn resume_clock(&mut self, now: Instant) {
        self.outage.begin_again(now);
    }
}

impl Engine {
    /// Takes the world's answer to a DNS look-up. The visits that waited for it continue.
    pub(super) fn finish_lookup(&mut self, lookup: LookupId, answer: &Result<Answer, NameFailure>) {
        let stage = self.turn.enter(Stage::Dns, 0);
        for waiter in self.visits.names.answered(lookup.0, answer, self.turn.at()) {
            self.on_resolved(ServerId(waiter), answer.clone());
        }
        self.turn.back(stage);
    }

    /// Asks the world for DNS look-ups that visits wait for, within the budget of the turn.
    pub(super) fn ask_names(&mut self) {
        let stage = self.turn.enter(Stage::Dns, 0);
        while !self.turn.is_spent(Work::Names) {
            let Some((lookup, name)) = self.visits.names.next_lookup() else { break };
            self.turn.charge(Work::Names, LOOKUP_UNITS);
            let families = self.visits.names.families();
            self.turn.act(Action::Resolve { lookup: LookupId(lookup), name, families });
        }
        self.turn.back(stage);
    }

    /// Begins the visit of the next server. Returns whether there was one.
    pub(super) fn begin_next_visit(&mut self) -> bool {
        if !self.may_visit_more() || self.turn.is_spent(Work::Rules) {
            return false;
        }
        let Some(id) = self.backlog.next(self.turn.at()) else { return false };
        self.begin_visit(id);
        true
    }

    /// Returns whether a visit could begin if a server were ready.
    pub(super) fn may_visit_more(&self) -> bool {
        self.has_slots() && self.visits.outage.may_visit(self.turn.at())
    }

    fn has_slots(&self) -> bool {
        self.may_visit() && self.wire.conns().busy() < self.settings.connections.open_max
    }

    /// Returns whether the crawl lets visits begin if a slot is free.
    fn may_visit(&self) -> bool {
        !self.is_stopping()
            && !self.storage.is_paused()
            && !self.visits.orders.pauses_all()
            && !self.archive.replays().is_active()
            && !self.wire.is_over()
            && self.visits.names.waiters() < self.settings.names.in_flight_max
            && self.may_ask()
    }

    /// Returns when the next visit may begin, if that is known.
    pub(super) fn visit_deadline(&self) -> Option<Instant> {
        // Without a free slot, a server that is due changes nothing.
        if !self.has_slots() {
            return None;
        }
        // A server that became ready after the visits of this turn began has no other event that
        // wakes the loop.
        let is_due = self.backlog.ready() > 0;
        let due = if is_due { Some(self.turn.at()) } else { self.backlog.deadline() };
        due.map(|due| due.max(self.visits.outage.opens_at()))
    }

    pub(super) fn begin_visit(&mut self, id: ServerId) {
        let address = self.sites.get(id).conn().map(|slot| self.wire.conn(slot).peer.address.ip());
        if let Some(hold) = self.held_by(id, address) {
            return self.obey_hold(id, hold);
        }
        if self.is_given_up_before(id) {
            return;
        }
        if self.drop_disallowed(id) == Head::Unknown {
            return self.begin_later(id);
        }
        if self.held_url(id).is_some() {
            return self.obey_hold(id, Hold::Paused);
        }
        self.visits.outage.note_visit(self.turn.at());
        if self.archive.replays().is_active() || !self.backlog.has_next(id) {
            return self.backlog.hand_back(id, self.turn.at());
        }
        if let Some(due) = self.retry_due(id).or_else(|| self.quota_due(id)) {
            self.backlog.hand_back(id, self.turn.at());
            return self.backlog.snooze(id, due, self.turn.at());
        }
        if let Some(slot) = self.sites.get(id).conn() {
            if !self.backlog.begin(id, true, self.turn.at()) {
                return self.backlog.hand_back(id, self.turn.at());
            }
            self.counts.parked_again += 1;
            self.wire.unpark(slot, self.turn.at());
            self.backlog.set_parked(id, false, self.turn.at());
            return self.fill(slot);
        }
        match self.visits.names.ask(self.backlog.origin(id).host(), id.0, self.turn.at()) {
            dns::Known::Now(answer) => self.on_resolved(id, answer),
            dns::Known::Later => {}
        }
    }

    /// Continues a visit when there is an answer for the name of its server: connects to an
    /// address, or ends the visit.
    pub(super) fn on_resolved(&mut self, id: ServerId, answer: Result<Answer, NameFailure>) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return self.visit_failed(id, None, Outcome::Name(failure)),
        };
        let mut addresses: SmallVec<[IpAddr; 4]> = answer.addresses;
        addresses.retain(|address| self.settings.connections.addresses.allow(*address));
        if addresses.is_empty() {
            return self.visit_failed(id, None, Outcome::ForbiddenAddress);
        }
        // An order may have arrived while the name was looked up.
        let mut hold = self.held_by(id, None);
        addresses.retain(|address| {
            let own = self.held_by(id, Some(*address));
            hold = hold.or(own);
            own.is_none()
        });
        if let Some(hold) = hold.filter(|_| addresses.is_empty()) {
            return self.obey_hold(id, hold);
        }
        let first = addresses.remove(0);
        self.connect(id, first, addresses, None);
    }

    /// Takes the next URL to request from a server under visit: robots.txt if it is not known, then
    /// the next URL that it allows.
    pub(super) fn next_item(&mut self, id: ServerId) -> Next {
        if self.signs(id) && self.turn.is_spent(Work::Signed) {
            return Next::Later;
        }
        if self.backlog.peek(id).is_none_or(Item::is_robots) {
            let item = self.backlog.take(id);
            // The file was requested on behalf of another server, whose robots.txt redirects to it,
            // but it is also this server's own robots.txt.
            if item.as_ref().is_some_and(|item| item.is_robots() && *item.target == *ROBOTS_TXT)
                && self.sites.get(id).robots.status(self.turn.at()) == RobotsStatus::Unknown
            {
                self.set_robots(id, Robots::Asked);
            }
            return item.map_or(Next::Nothing, |item| Next::Item(item, None));
        }
        match self.robots_status(id) {
            RobotsStatus::Unknown => {
                self.set_robots(id, Robots::Asked);
                // Sitemaps that it names are as far away as the page for which it is requested.
                let near = self.backlog.peek(id).map(Item::distance).unwrap_or_default();
                let Distance { depth, requisite } = near;
                Next::Item(Item { depth, requisite, ..robots_item(id) }, None)
            }
            RobotsStatus::Pending if self.archive.filing().has_robots_from(id) => Next::Archived,
            RobotsStatus::Pending => Next::Nothing,
            RobotsStatus::Known => {
                let Head::Examined(line) = self.drop_disallowed(id) else { return Next::Later };
                let waits = self.retry_due(id).is_some() || self.held_url(id).is_some();
                if waits || self.quota_due(id).is_some() {
                    return Next::Nothing;
                }
                let item = self.backlog.take(id);
                if item.as_ref().is_some_and(|item| item.tries > 0) {
                    self.sites.get_mut(id).take_retry();
                }
                item.map_or(Next::Nothing, |item| Next::Item(item, line))
            }
        }
    }

    /// Returns until when the URL at the head of a queue waits for a retry, or `None` if it doesn't
    /// wait. The URLs behind it wait too: a retry is queued behind everything that was queued
    /// before it.
    fn retry_due(&mut self, id: ServerId) -> Option<Instant> {
        let due = self.sites.get(id).retry_due().filter(|due| *due > self.turn.at())?;
        self.backlog.peek(id).is_some_and(|item| item.tries > 0).then_some(due)
    }

    /// Drops URLs from the head of a queue that need no request: those that robots.txt forbids,
    /// each with its line in the log, and those whose replies are in the archive.
    fn drop_disallowed(&mut self, id: ServerId) -> Head {
        let obeys =
            self.settings.robots.obey && matches!(self.robots_status(id), RobotsStatus::Known);
        let floor = self.share_floor();
        while self.backlog.peek(id).is_some_and(|item| !item.is_robots()) {
            if self.turn.left(Work::Rules) <= floor {
                return Head::Unknown;
            }
            if self.drop_without_request(id) || self.shelve_paused(id) || self.put_behind(id) {
                continue;
            }
            let (outcome, line) = match self.refusal(id, obeys) {
                (Some(outcome), line) => (outcome, line),
                (None, line) => return Head::Examined(line),
            };
            let item = self.backlog.take(id).expect("just examined");
            if outcome == Outcome::RobotsUnreachable && item.purpose != Purpose::Again {
                self.lose_to_robots(id, &item);
            }
            self.drop_unsent(id, &item, outcome, line);
        }
        Head::Examined(None)
    }

    /// Drops the URL at the head of a queue if it needs neither a request nor an outcome: one that
    /// was queued before another node had its partition, a stray hop, or one whose reply is in the
    /// archive. Returns whether it was dropped.
    fn drop_without_request(&mut self, id: ServerId) -> bool {
        let is_dropped =
            self.drop_stale(id) || self.drop_stray_hop(id) || self.claim_capture_at_head(id);
        if is_dropped {
            self.turn.charge(Work::Reread, DROP_UNITS);
        }
        is_dropped
    }

    /// Drops the URL at the head of a queue if it was queued before another node had its partition:
    /// unless that node has settled it, it was queued again. Returns whether it was dropped.
    fn drop_stale(&mut self, id: ServerId) -> bool {
        let is_stale = self.is_stale(id);
        if is_stale {
            self.abandon_head(id);
        }
        is_stale
    }

    /// Takes the URL at the head of a queue, which isn't this node's to request any more. A page is
    /// in the log of its partition; what waits for anything else here waits no longer.
    pub(super) fn abandon_head(&mut self, id: ServerId) {
        let item = self.backlog.take(id).expect("just examined");
        match item.purpose {
            Purpose::Page => {}
            Purpose::Again => self.refuse_again(id, &item),
            Purpose::Hop(chain) => self.hand_over_hop(chain),
            // Its own file is requested again when the server is this node's again.
            Purpose::Robots(of, _) if of == id => self.set_robots(id, Robots::Unknown),
            Purpose::Robots(of, _) => {
                self.counts.cut("robots-elsewhere", 1);
                self.robots_unreachable(of);
                self.end_waits(id, None);
            }
        }
    }

    /// Drops the URL at the head of a queue if it is a hop that a checkpoint restored without its
    /// redirect chain, which starts again from its first URL. Returns whether it was dropped.
    fn drop_stray_hop(&mut self, id: ServerId) -> bool {
        let purpose = self.backlog.peek(id).map(|item| item.purpose);
        let is_stray = matches!(purpose, Some(Purpose::Hop(chain)) if !self.chains.has(chain));
        if is_stray {
            self.backlog.take(id).expect("just examined");
        }
        is_stray
    }

    /// Returns the outcome of the URL at the head of a queue if it may not be requested, else
    /// `None`; and the line of robots.txt that decided, if the file was consulted.
    fn refusal(&mut self, id: ServerId, obeys: bool) -> (Option<Outcome>, Option<u32>) {
        if self.held_url(id) == Some(Hold::Blocked) {
            return (Some(Outcome::Blocked), None);
        }
        if self.admission.rescope().is_due()
            && let Some(item) = self.backlog.peek(id).cloned()
            && let Some(outcome) = self.left_scope(id, &item)
        {
            return (Some(outcome), None);
        }
        if let Some(outcome) = self.repeats(id) {
            return (Some(outcome), None);
        }
        let Some(item) = self.backlog.peek(id).filter(|_| obeys) else {
            return (self.over_quota(id), None);
        };
        match self.sites.get_mut(id).robots_verdict(&item.target, &mut self.turn) {
            Some(Verdict { allowed: true, line }) => (self.over_quota(id), Some(line)),
            Some(Verdict { line, .. }) => (Some(Outcome::RobotsDenied), Some(line)),
            None => (Some(Outcome::RobotsUnreachable), None),
        }
    }

    /// Gives a URL, which leaves its queue without a request, its outcome and its line in the crawl
    /// log.
    fn drop_unsent(&mut self, id: ServerId, item: &Item, outcome: Outcome, robots: Option<u32>) {
        if item.tries > 0 {
            self.sites.get_mut(id).take_retry();
        }
        let via_bytes = item.via.as_ref().map_or(0, |via| via.len());
        self.turn.charge(Work::Dropped, DROP_UNITS + item.target.len() + via_bytes);
        self.note_attempt(id, item, outcome, Unsent { robots, address: None });
        self.finish_unsent(id, item, outcome);
    }

    /// Ends a visit for the frontier. Returns when the server may be visited again.
    pub(super) fn finish_visit(&mut self, id: ServerId, visit: &OpenVisit) -> Instant {
        self.counts.visits += 1;
        let now = self.turn.at();
        let allowance = self.sites.get(id).learnt.allowance(&self.settings.pipeline);
        let reused = visit.reused;
        let visit = Visit { ended: now, allowance, ..visit.tally };
        if visit.requests == 0 && reused && !self.backlog.has_next(id) {
            // No request was made, so no rest is owed.
            self.backlog.hand_back(id, now);
            return self.backlog.server(id).due;
        }
        let (retry_due, rule) = (self.retry_due(id), self.backlog.rule(id, &visit));
        let mut due = self.backlog.finish(id, &visit, now);
        log::debug!(
            "{}: {} requests in a visit; the next in {:?}",
            self.backlog.origin(id).as_str(),
            visit.requests,
            due.since(now)
        );
        let site = self.sites.get_mut(id);
        site.set_rest(now, due, rule);
        if let Some(until) = site.robots_redirected() {
            self.backlog.snooze(id, until, now);
        } else if let Some(until) = retry_due {
            self.backlog.snooze(id, until, now);
            due = due.max(until);
        }
        if visit.requests > 0
            && let Some(until) = self.slow_down(id)
        {
            due = due.max(until);
        }
        self.note_wait(id, due);
        self.retire_if_due(id);
        due
    }

    /// Ends a visit that failed before its connection was established. `at` is the address that was
    /// tried, or `None` if there was none. The name is resolved again for the next visit, since its
    /// addresses may be wrong.
    pub(super) fn visit_failed(&mut self, id: ServerId, at: Option<IpAddr>, outcome: Outcome) {
        let mut visit = OpenVisit::new(self.turn.at(), false);
        if outcome != Outcome::Local {
            self.note_failure(id, at, outcome);
        }
        self.judge(id, &mut visit, outcome);
        // The URLs of a server that is given up get their own lines in the crawl log later.
        if !self.sites.get(id).is_retiring()
            && let Some(item) = self.backlog.peek(id).cloned()
        {
            let address = at.filter(|_| outcome != Outcome::Local);
            self.note_attempt(id, &item, outcome, Unsent { robots: None, address });
        }
        let due = self.finish_visit(id, &visit);
        self.visits.names.expire_by(self.backlog.origin(id).host(), due);
    }

    /// Applies the outcome of a fetch to its server: the server rests longer, or is given up.
    pub(super) fn judge(&mut self, id: ServerId, visit: &mut OpenVisit, outcome: Outcome) {
        let lasting = outcome.lasting(self.backlog.server(id).has_answered());
        let site = self.sites.get_mut(id);
        match outcome.verdict().server {
            ServerFate::Fine => {}
            fate @ (ServerFate::Strained | ServerFate::Failed | ServerFate::Barred) => {
                // A visit counts as one failure, however many of its requests fail.
                let counts = !visit.over && !self.visits.outage.is_on();
                if counts {
                    site.add_failure(lasting);
                }
                let retries = &self.settings.retries;
                let lasts = fate == ServerFate::Barred;
                let wait = if lasts { retries.wait_max } else { retries.after(site.failures) };
                visit.tally.strained |= fate == ServerFate::Strained;
                visit.end(self.turn.at() + wait);
            }
            ServerFate::Spared => {
                visit.rest(self.turn.at() + self.settings.retries.wait, Rule::Backoff);
            }
            ServerFate::Retire(why) => {
                visit.over = true;
                site.set_retiring(why, outcome);
            }
        }
        let is_final = site.failures >= self.settings.retries.server_failures_max
            || lasting.is_some_and(|how| site.is_lasting(how, &self.settings.retries));
        if is_final {
            let is_away = lasting != Some(Lasting::Challenged);
            let has_answered = self.backlog.server(id).has_answered();
            if is_away && has_answered && self.visits.outage.spares(id) {
                return self.probe_recent();
            }
            self.sites.get_mut(id).set_retiring(outcome.retirement(), outcome);
        }
    }

    /// Gives a server up if [`super::site::Site::set_retiring`] was called for it. Its URLs get the
    /// outcome of the last fetch.
    pub(super) fn retire_if_due(&mut self, id: ServerId) {
        if self.sites.get(id).is_retiring()
            && let Some((why, outcome)) = self.sites.get_mut(id).take_retiring()
        {
            self.retire(id, why, outcome);
        }
    }

    /// Gives a server up for the reason `why`. Each of its URLs gets `outcome` and its line in the
    /// crawl log, some in each turn.
    fn retire(&mut self, id: ServerId, why: Retirement, outcome: Outcome) {
        self.sites.get_mut(id).set_retired(outcome);
        self.note_retired(id, outcome);
        *self.counts.given_up.entry(why.name().into()).or_default() += 1;
        let server = self.backlog.server(id);
        let (urls, answered) = (self.backlog.queue_len(id) as u64, server.has_answered());
        let origin = self.backlog.origin(id).as_str();
        log::info!("{origin}: given up with {urls} URLs: {}, {}", why.name(), outcome.name());
        let loss = Loss { urls, cause: outcome.cause().into(), answered };
        self.counts.losses.add(origin, loss, self.sites.get(id).robots_lost().into());
        self.backlog.retire(id, why, self.turn.at());
    }

    /// Gives a queued URL of a server that was given up its outcome and its line in the crawl log.
    pub(super) fn note_given_up(&mut self, id: ServerId, item: &Item, outcome: Outcome) {
        match item.purpose {
            // A hop without its chain has no line: see drop_stray_hop.
            Purpose::Hop(chain) if !self.chains.has(chain) => {}
            Purpose::Again => self.refuse_again(id, item),
            Purpose::Page | Purpose::Hop(_) => {
                self.keep_given_up(id, item);
                self.drop_unsent(id, item, outcome, None);
            }
            Purpose::Robots(of, _) => {
                self.robots_unreachable(of);
                self.end_waits(id, None);
            }
        }
    }
}

/// What to request next from a server.
pub(super) enum Next {
    /// The item, with the line of robots.txt that allows it if the file was consulted.
    Item(Item, Option<u32>),
    Nothing,
    /// The next URL is not known yet: the visit's share of the budget is spent.
    Later,
    /// It is known when the archive has the robots.txt that the server has sent.
    Archived,
}

/// What is known of the URL at the head of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    /// It may be requested; the line of robots.txt that allows it, if the file was consulted.
    Examined(Option<u32>),
    /// The visit's share of the budget ran out before a URL to request was found.
    Unknown,
}

/// The fixed cost of dropping a URL, in units of work (see `ledger`), in addition to one unit for
/// each of its bytes; mostly the cost of its line in the crawl log.
const DROP_UNITS: usize = 512;
