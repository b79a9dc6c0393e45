//! Visits: which server's turn it is, what is asked of it, and what it is owed afterwards.

mod deferred;
mod outage;

use super::Engine;
use super::backlog::{Item, Purpose, ROBOTS_TXT};
use super::contract::{Action, Answer, LookupId, NameFailure};
use super::counts::Loss;
use super::ledger::Work;
use super::outcome::{Outcome, ServerFate};
use super::robots::state::{Known, Robots};
use super::settings::Settings;
use super::wire::OpenVisit;
use crate::dns::{self, Names};
use crate::frontier::{Retirement, ServerId, Visit};
use crate::ground::quality::Quality;
use crate::ground::stats::Stage;
use crate::ground::time::Instant;
use deferred::Deferred;
use outage::Outage;
use smallvec::SmallVec;
use std::net::IpAddr;

/// What decides when visits begin, beside the frontier.
#[derive(Debug)]
pub(super) struct Visits {
    names: Names,
    deferred: Deferred,
    outage: Outage,
}

impl Visits {
    pub(super) fn new(settings: &Settings) -> Self {
        let names = Names::new(settings.names.clone());
        Self { names, deferred: Deferred::default(), outage: Outage::new(&settings.retries) }
    }

    /// Whether a visit waits for the answer of a look-up.
    pub(super) fn is_resolving(&self) -> bool {
        self.names.waiters() > 0
    }

    /// Whether a visit waits for the budget of the next turn.
    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// What is known of the name `host` is asked for again after `at`: it may be wrong.
    pub(super) fn expire_name(&mut self, host: &str, at: Instant) {
        self.names.expire_by(host, at);
    }

    /// A server has answered, in this run or an earlier one: see [`Outage::may_witness`].
    pub(super) fn may_witness(&mut self, id: ServerId) {
        self.outage.may_witness(id);
    }

    /// When the crawl ends because nobody answers.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.outage.deadline()
    }
}

impl Engine {
    /// The world's answer to a look-up: the visits that waited for it resume.
    pub(super) fn take_answer_of(
        &mut self,
        lookup: LookupId,
        answer: &Result<Answer, NameFailure>,
    ) {
        let stage = self.turn.enter(Stage::Dns, 0);
        for waiter in self.visits.names.answered(lookup.0, answer, self.turn.at()) {
            self.named(ServerId(waiter), answer.clone());
        }
        self.turn.back(stage);
    }

    /// Hands out look-ups of names that visits wait for.
    pub(super) fn ask_names(&mut self) {
        let stage = self.turn.enter(Stage::Dns, 0);
        while let Some((lookup, name)) = self.visits.names.next_lookup() {
            let families = self.visits.names.families();
            self.turn.act(Action::Resolve { lookup: LookupId(lookup), name, families });
        }
        self.turn.back(stage);
    }

    /// Begins visits as long as there are servers ready, slots free, and budget.
    pub(super) fn begin_visits(&mut self) {
        let stage = self.turn.enter(Stage::Schedule, 0);
        self.pump_visits();
        self.turn.back(stage);
    }

    /// Begins the visit of the next server, if there is one.
    pub(super) fn begin_next_visit(&mut self) -> bool {
        if !self.may_begin() || self.turn.is_spent(Work::Rules) {
            return false;
        }
        let Some(id) = self.backlog.next(self.turn.at()) else { return false };
        self.begin_visit(id);
        true
    }

    pub(super) fn may_begin(&self) -> bool {
        self.has_slots() && self.visits.outage.may_visit(self.turn.at())
    }

    fn has_slots(&self) -> bool {
        !self.is_stopping()
            && !self.storage.is_paused()
            && !self.archive.replays().is_active()
            && !self.wire.is_over()
            && self.wire.conns().busy() < self.settings.connections.open_max
            && self.visits.names.waiters() < self.settings.names.in_flight_max
            && self.may_ask()
    }

    /// When the next visit may begin, as far as that is known.
    pub(super) fn visit_deadline(&self) -> Option<Instant> {
        // While none may, a server that is due changes nothing.
        if !self.has_slots() {
            return None;
        }
        // Who has come to stand in line since visits began may be all there is to bring it on.
        let is_due = self.backlog.ready() > 0;
        let due = if is_due { Some(self.turn.at()) } else { self.backlog.deadline() };
        due.map(|due| due.max(self.visits.outage.opens_at()))
    }

    pub(super) fn begin_visit(&mut self, id: ServerId) {
        if !self.drop_disallowed(id) {
            return self.begin_later(id);
        }
        self.visits.outage.visits(self.turn.at());
        if self.archive.replays().is_active() || !self.backlog.has_next(id) {
            return self.backlog.hand_back(id, self.turn.at());
        }
        if let Some(due) = self.retry_due(id) {
            self.backlog.hand_back(id, self.turn.at());
            return self.backlog.snooze(id, due, self.turn.at());
        }
        if let Some(slot) = self.sites.look(id).conn() {
            if !self.backlog.begin(id, true, self.turn.at()) {
                return self.backlog.hand_back(id, self.turn.at());
            }
            self.counts.parked_again += 1;
            self.wire.unpark(slot, self.turn.at());
            self.backlog.set_parked(id, false, self.turn.at());
            return self.fill(slot);
        }
        match self.visits.names.ask(self.backlog.origin(id).host(), id.0, self.turn.at()) {
            dns::Known::Now(answer) => self.named(id, answer),
            dns::Known::Later => {}
        }
    }

    /// The name of a server under visit is known, or has no address.
    pub(super) fn named(&mut self, id: ServerId, answer: Result<Answer, NameFailure>) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return self.visit_failed(id, None, Outcome::Name(failure)),
        };
        let mut addresses: SmallVec<[IpAddr; 4]> = answer.addresses;
        addresses.retain(|address| self.settings.connections.addresses.allow(*address));
        if addresses.is_empty() {
            return self.visit_failed(id, None, Outcome::ForbiddenAddress);
        }
        let first = addresses.remove(0);
        self.connect(id, first, addresses, None);
    }

    /// What is to be asked next: robots.txt if it isn't known, then what it allows.
    pub(super) fn next_item(&mut self, id: ServerId) -> Next {
        if self.backlog.peek(id).is_none_or(Item::is_robots) {
            let item = self.backlog.take(id);
            // For another server, but it is this one's file as well.
            if item.as_ref().is_some_and(|item| item.is_robots() && *item.target == *ROBOTS_TXT)
                && self.sites.look(id).robots.known(self.turn.at()) == Known::Unknown
            {
                self.set_robots(id, Robots::Asked);
            }
            return item.map_or(Next::Nothing, Next::Item);
        }
        match self.robots_of(id) {
            Known::Unknown => {
                self.set_robots(id, Robots::Asked);
                Next::Item(robots_item(id))
            }
            Known::Pending => Next::Nothing,
            Known::Rules if !self.drop_disallowed(id) => Next::Later,
            Known::Rules if self.retry_due(id).is_some() => Next::Nothing,
            Known::Rules => self.take_next(id),
        }
    }

    fn take_next(&mut self, id: ServerId) -> Next {
        let item = self.backlog.take(id);
        if item.as_ref().is_some_and(|item| item.tries > 0) {
            self.sites.at(id).takes_put_off();
        }
        item.map_or(Next::Nothing, Next::Item)
    }

    /// Until when the URL at the head of a queue waits for another try, if it does. Those behind it
    /// wait with it: what was put off is behind all that was queued then.
    fn retry_due(&mut self, id: ServerId) -> Option<Instant> {
        let due = self.sites.look(id).retry_due().filter(|due| *due > self.turn.at())?;
        self.backlog.peek(id).is_some_and(|item| item.tries > 0).then_some(due)
    }

    /// Drops what need not be asked for from the head of a queue: what robots.txt forbids, each
    /// with its line in the log, and what the archive has. `false` if the visit's share of the
    /// turn's budget is spent before the head is known to be wanted.
    fn drop_disallowed(&mut self, id: ServerId) -> bool {
        let obeys = self.settings.robots.obey && matches!(self.robots_of(id), Known::Rules);
        let floor = self.share_floor();
        while self.backlog.peek(id).is_some_and(|item| !item.is_robots()) {
            if self.turn.left(Work::Rules) <= floor {
                return false;
            }
            if self.drop_stray_hop(id) || self.take_kept_head(id) {
                self.turn.charge(Work::Reread, DROP_UNITS);
                continue;
            }
            let Some(outcome) = self.refuses(id, obeys) else { break };
            let item = self.backlog.take(id).expect("it was looked at");
            if outcome == Outcome::RobotsUnreachable {
                self.lose_to_robots(id, &item);
            }
            self.drop_unsent(id, &item, outcome);
        }
        true
    }

    /// Drops a hop that a checkpoint brought back: its chain begins again from its first URL.
    fn drop_stray_hop(&mut self, id: ServerId) -> bool {
        let errand = self.backlog.peek(id).map(|item| item.purpose);
        let is_stray = matches!(errand, Some(Purpose::Hop(chain)) if !self.chains.has(chain));
        if is_stray {
            self.backlog.take(id).expect("it was looked at");
        }
        is_stray
    }

    /// Why the URL at the head of a queue is not to be asked for, if it is not.
    fn refuses(&mut self, id: ServerId, obeys: bool) -> Option<Outcome> {
        if self.admission.is_rescoping() {
            let item = self.backlog.peek(id)?.clone();
            if let Some(outcome) = self.left_scope(id, &item) {
                return Some(outcome);
            }
        }
        let item = self.backlog.peek(id).filter(|_| obeys)?;
        self.sites.at(id).forbids(&item.target, &mut self.turn)
    }

    /// A URL that leaves its queue without a request.
    fn drop_unsent(&mut self, id: ServerId, item: &Item, outcome: Outcome) {
        let via_bytes = item.via.as_ref().map_or(0, |via| via.len());
        self.turn.charge(Work::Dropped, DROP_UNITS + item.target.len() + via_bytes);
        self.complete_unsent(id, item, outcome);
    }

    /// Tells the frontier that a visit has ended; returns when the server is due again.
    pub(super) fn finish_visit(&mut self, id: ServerId, visit: &OpenVisit) -> Instant {
        self.counts.visits += 1;
        let now = self.turn.at();
        let allowance = self.sites.look(id).learnt.allowance(&self.settings.pipeline);
        let reused = visit.reused;
        let visit = Visit { ended: now, allowance, ..visit.tally };
        if visit.requests == 0 && reused && !self.backlog.has_next(id) {
            // Nothing was asked: nothing is owed.
            self.backlog.hand_back(id, now);
            return self.backlog.server(id).due;
        }
        let retry_due = self.retry_due(id);
        let mut due = self.backlog.finish(id, &visit, now);
        log::debug!(
            "{}: {} requests in a visit; the next in {:?}",
            self.backlog.origin(id).as_str(),
            visit.requests,
            due.since(now)
        );
        let site = self.sites.at(id);
        site.rests(now, due);
        if let Some(until) = site.robots_elsewhere() {
            self.backlog.snooze(id, until, now);
        } else if let Some(until) = retry_due {
            self.backlog.snooze(id, until, now);
            due = due.max(until);
        }
        self.retire_if_hopeless(id);
        due
    }

    /// A visit that failed before it had a connection, to this address if it had any. What is
    /// known of the name is not believed beyond the next try: it may be what was wrong.
    pub(super) fn visit_failed(&mut self, id: ServerId, at: Option<IpAddr>, outcome: Outcome) {
        let mut visit = OpenVisit::new(self.turn.at(), false);
        if outcome != Outcome::Local {
            self.note_failure(id, at, outcome);
        }
        self.judge(id, &mut visit, outcome);
        // The URLs of a server that is given up have a line each.
        if !self.sites.look(id).is_hopeless()
            && let Some(item) = self.backlog.peek(id).cloned()
        {
            self.note_attempt(id, &item, outcome);
        }
        let due = self.finish_visit(id, &visit);
        self.visits.names.expire_by(self.backlog.origin(id).host(), due);
    }

    /// What an outcome means for the server: longer rest, or the end.
    pub(super) fn judge(&mut self, id: ServerId, visit: &mut OpenVisit, outcome: Outcome) {
        let lasting = outcome.lasting(self.backlog.server(id).has_answered());
        let site = self.sites.at(id);
        match outcome.verdict().server {
            ServerFate::Fine => {}
            fate @ (ServerFate::Strained | ServerFate::Failed | ServerFate::Barred) => {
                // Once a visit, however many of its requests fail.
                let counts = !visit.over && !self.visits.outage.is_on();
                if counts {
                    site.fails(lasting);
                }
                let retries = &self.settings.retries;
                let lasts = fate == ServerFate::Barred;
                let wait = if lasts { retries.wait_max } else { retries.after(site.failures) };
                visit.tally.strained |= fate == ServerFate::Strained;
                visit.end(self.turn.at() + wait);
            }
            ServerFate::Spared => visit.rest(self.turn.at() + self.settings.retries.wait),
            ServerFate::Retire(why) => {
                visit.over = true;
                site.set_hopeless(why, outcome);
            }
        }
        let is_final = site.failures >= self.settings.retries.server_failures_max
            || lasting.is_some_and(|how| site.is_lasting(how));
        if is_final {
            if self.backlog.server(id).has_answered() && self.visits.outage.holds(id) {
                return self.ask_witnesses();
            }
            self.sites.at(id).set_hopeless(outcome.retirement(), outcome);
        }
    }

    /// Gives a server up if it has turned out to be hopeless; its URLs share the outcome.
    pub(super) fn retire_if_hopeless(&mut self, id: ServerId) {
        if self.sites.look(id).is_hopeless()
            && let Some((why, outcome)) = self.sites.at(id).take_hopeless()
        {
            self.retire(id, why, outcome);
        }
    }

    /// Gives a server up. Each of its URLs gets its line in the log, some in each turn.
    fn retire(&mut self, id: ServerId, why: Retirement, outcome: Outcome) {
        self.sites.at(id).set_retired(outcome);
        self.counts.retired += 1;
        let server = self.backlog.server(id);
        let (urls, answered) = (self.backlog.queue_len(id) as u64, server.has_answered());
        let origin = self.backlog.origin(id).as_str();
        log::info!("{origin}: given up with {urls} URLs: {}, {}", why.name(), outcome.name());
        let loss = Loss { urls, cause: outcome.cause().into(), answered };
        self.counts.losses.add(origin, loss, self.sites.look(id).robots_lost().into());
        self.backlog.retire(id, why, self.turn.at());
    }

    /// A URL of a server that was given up.
    pub(super) fn note_given_up(&mut self, id: ServerId, item: &Item, outcome: Outcome) {
        match item.purpose {
            // Without its chain it is nothing: see drop_disallowed.
            Purpose::Hop(chain) if !self.chains.has(chain) => {}
            Purpose::Page | Purpose::Hop(_) => {
                self.keep_given_up(id, item);
                self.drop_unsent(id, item, outcome);
            }
            Purpose::Robots(of, _) => {
                self.robots_unreachable(of);
                self.followers_wait_no_more(id);
            }
        }
    }
}

/// What is to be asked next.
pub(super) enum Next {
    Item(Item),
    Nothing,
    /// It is not known yet: the turn's budget is spent.
    Later,
}

/// Units that a URL costs beside its bytes which is dropped: mostly its line in the crawl log.
const DROP_UNITS: usize = 512;

/// A fetch of a server's own robots.txt.
pub(super) fn robots_item(id: ServerId) -> Item {
    Item {
        target: ROBOTS_TXT.into(),
        quality: Quality::ZERO,
        arrival: 0,
        depth: 0,
        hops: 0,
        tries: 0,
        purpose: Purpose::Robots(id, 0),
        found_as: b'P',
        via: None,
    }
}
