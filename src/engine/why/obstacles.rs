//! What the request of a URL waits for, and when it could be sent at the earliest.

use super::{Found, Obstacle, Question, RobotsVerdict};
use crate::engine::Engine;
use crate::engine::outcome::Outcome;
use crate::engine::visit::Hold;
use crate::frontier::{Burst, GroupKind, Rule, ServerId, ServerState, Visit};
use crate::ground::time::Instant;
use crate::url::scope::Rejection;

/// Collects the obstacles of a request.
struct Obstacles<'a> {
    engine: &'a Engine,
    list: Vec<Obstacle>,
}

impl Obstacles<'_> {
    /// Adds an obstacle that lasts until an instant, if that is ahead.
    fn until(&mut self, until: Instant, text: impl Into<String>) {
        if until > self.engine.turn.at() {
            let until_us = Some(self.engine.turn.now().unix_of(until).as_micros());
            self.list.push(Obstacle { text: text.into(), until_us, is_open: false });
        }
    }

    /// Adds an obstacle that ends soon, but nobody knows when.
    fn soon(&mut self, is_there: bool, text: impl Into<String>) {
        if is_there {
            self.list.push(Obstacle { text: text.into(), until_us: None, is_open: false });
        }
    }

    /// Adds an obstacle that may last until the operator does something.
    fn open(&mut self, is_there: bool, text: &str) {
        if is_there {
            self.list.push(Obstacle { text: text.to_owned(), until_us: None, is_open: true });
        }
    }
}

impl Engine {
    /// Returns the outcome that the URL would get without a request if it came up now.
    pub(super) fn outcome_now(
        &self,
        question: &Question<'_>,
        found: Option<&Found>,
        rejection: Option<Rejection>,
        robots: RobotsVerdict,
    ) -> Option<String> {
        let id = question.servers.first().copied();
        let named = |outcome: Outcome| Some(outcome.name().to_owned());
        if let Some(why) = rejection {
            return named(match found {
                Some(_) if self.admission.is_rescoped() => Outcome::Excluded,
                _ => Outcome::OutOfScope(why),
            });
        }
        let is_retired = |id| matches!(self.backlog.server(id).state(), ServerState::Retired(_));
        if let Some(id) = id.filter(|id| is_retired(*id)) {
            return named(self.given_up_as(id));
        }
        let address = question.url.ip();
        let is_forbidden = |address| !self.settings.connections.addresses.allow(address);
        if address.is_some_and(is_forbidden) {
            return named(Outcome::ForbiddenAddress);
        }
        let hold = id.and_then(|id| self.held_by(id, address));
        if [hold, self.hold_of(question.url.as_str())].contains(&Some(Hold::Blocked)) {
            return named(Outcome::Blocked);
        }
        let is_robots = question.url.target() == super::super::backlog::ROBOTS_TXT;
        match robots {
            RobotsVerdict::Disallowed => return named(Outcome::RobotsDenied),
            RobotsVerdict::Unreachable if !is_robots => return named(Outcome::RobotsUnreachable),
            _ => {}
        }
        let full = self.admission.quotas().full(question.url).filter(|_| !is_robots);
        if let Some(limit) = full {
            return named(Outcome::PagesMax(limit));
        }
        if found.is_some() {
            return None;
        }
        match id {
            None => self.server_limit(question.url, b'L').map(|limit| limit.cause().to_owned()),
            Some(_) if self.backlog.is_full(id) => named(Outcome::QueueFull),
            Some(_) => None,
        }
    }

    /// Returns what the request of the URL has to wait for, the crawl's own obstacles first.
    pub(super) fn obstacles(
        &self,
        question: &Question<'_>,
        found: Option<&Found>,
        robots: RobotsVerdict,
    ) -> Vec<Obstacle> {
        let mut all = Obstacles { engine: self, list: Vec::new() };
        self.obstacles_of_crawl(&mut all);
        let hold = self.hold_of(question.url.as_str());
        all.open(hold == Some(Hold::Paused), "the operator has paused a prefix of the URL");
        match question.servers.first() {
            Some(id) => self.obstacles_of_server(&mut all, *id),
            None => all.until(
                self.backlog.quiet_until(),
                "servers rest, because the crawl was not stopped in order",
            ),
        }
        all.soon(
            self.admission.quotas().is_full_later(question.url),
            "requests in flight may reach a limit on the pages of its site",
        );
        let is_first = matches!(robots, RobotsVerdict::NotKnown | RobotsVerdict::Requested);
        all.soon(is_first, "robots.txt of its server is requested first");
        let retried = found.filter(|found| found.item.tries > 0);
        if let Some(due) = retried.and_then(|found| self.sites.get(found.id).retry_due()) {
            all.until(due, "it waits to be tried again");
        }
        all.list
    }

    fn obstacles_of_crawl(&self, all: &mut Obstacles<'_>) {
        all.open(self.is_stopping(), "the crawl is ending");
        all.open(self.visits.orders().pauses_all(), "the operator has paused the crawl");
        all.open(self.storage.is_paused(), "the disk is full");
        all.until(self.visits.opens_at(), "no server answers: only a few are tried");
        let reads_back = self.archive.replays().is_active();
        all.soon(reads_back, "replies in the archive are read back first");
        let most = self.settings.connections.open_max;
        let is_full = self.wire.conns().busy() >= most;
        all.soon(is_full, format!("all {most} connections are in use"));
    }

    fn obstacles_of_server(&self, all: &mut Obstacles<'_>, id: ServerId) {
        let (server, site, now) = (self.backlog.server(id), self.sites.get(id), self.turn.at());
        let address = site.conn().map(|slot| self.wire.conn(slot).peer.address.ip());
        match self.held_by(id, address) {
            Some(Hold::Paused) => {
                all.open(!self.visits.orders().pauses_all(), "the operator has paused its server");
            }
            Some(Hold::Slowed(until)) => all.until(until, "the operator has slowed its host"),
            Some(Hold::Elsewhere(until)) => {
                all.until(until, "another node crawls its server, or none does yet");
            }
            Some(Hold::Blocked) | None => {}
        }
        all.soon(server.state() == ServerState::Busy, "its server is being visited");
        let why = match (site.failures, site.owed(None).1) {
            (1, _) => "its server rests after a failed visit".to_owned(),
            (2.., _) => format!("its server rests after {} failed visits", site.failures),
            (0, rule) => rested(rule).to_owned(),
        };
        all.until(server.due, why);
        if let Some(until) = site.robots_redirected() {
            all.until(until, "robots.txt of its server redirects to another server");
        }
        let is_reading = server.state() == ServerState::Reading;
        all.soon(is_reading, "the next URLs of its server are read from disk");
        let is_busy = server.state() == ServerState::Busy;
        if let Some((kind, next)) = self.backlog.blocked_by(id, now).filter(|_| !is_busy) {
            let what = match kind {
                GroupKind::Host => "host",
                GroupKind::Domain => "registrable domain",
                GroupKind::Address => "address",
            };
            match next > now {
                true if next <= server.due => {}
                true => {
                    all.until(next, format!("its {what} rests after a visit to another server"))
                }
                false => all.soon(true, format!("other servers of its {what} are being visited")),
            }
        }
    }

    /// Returns the earliest time at which the URL could be requested, in microseconds since 1970,
    /// if at least `before` URLs go before it. Returns `None` if an obstacle may last until the
    /// operator does something.
    pub(super) fn earliest_us(
        &self,
        question: &Question<'_>,
        before: usize,
        obstacles: &[Obstacle],
    ) -> Option<u64> {
        if obstacles.iter().any(|obstacle| obstacle.is_open) {
            return None;
        }
        let now_us = self.turn.unix().as_micros();
        let free_us = obstacles.iter().filter_map(|obstacle| obstacle.until_us).max();
        let free_us = free_us.unwrap_or(now_us).max(now_us);
        let Some(&id) = question.servers.first() else { return Some(free_us) };
        // A visit that takes no time is followed by the shortest rest.
        let Burst::Requests(burst) = self.backlog.burst(id) else { return Some(free_us) };
        let burst = burst.max(1);
        let visit = Visit::new(burst, Instant::ZERO, Instant::ZERO);
        let crawl_delay = self.backlog.server(id).crawl_delay();
        let rest = self.backlog.pace(id).rest(&visit, crawl_delay);
        let visits = u32::try_from(before / burst as usize).unwrap_or(u32::MAX);
        let rests_us = u64::try_from(rest.saturating_mul(visits).as_micros()).unwrap_or(u64::MAX);
        Some(free_us.saturating_add(rests_us))
    }
}

/// Says why a server rests.
fn rested(rule: Rule) -> &'static str {
    match rule {
        Rule::None | Rule::Backoff => "its server rests after the last visit",
        Rule::Delay => "its server rests after the last visit (politeness.delay)",
        Rule::DelayFactor => "its server rests after the last visit (politeness.delay_factor)",
        Rule::CrawlDelay => "its server rests after the last visit (Crawl-delay in robots.txt)",
        Rule::RetryAfter => "its server has asked to wait (Retry-After)",
        Rule::Restart => "its server rests, as it may be owed since the crawl was resumed",
        Rule::Slow => "the operator has slowed its host",
    }
}
