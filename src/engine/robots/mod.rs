//! robots.txt on the road: when it is asked for, what a reply means, redirects to other servers.
//!
//! A redirect to the `/robots.txt` of another server brings that server's own file as well: it is
//! asked for once, and servers that wait for it are its followers. A chain of redirects has cookies
//! of its own, as that of a page has.

mod cache;
mod reading;
pub(super) mod state;
mod work;

use super::Engine;
use super::backlog::{Item, Purpose, Queued, ROBOTS_TXT};
use super::ledger::Work;
use super::outcome::Outcome;
use super::wire::{Fetched, SURPLUS};
use crate::frontier::{Retirement, ServerId};
use crate::ground::quality::Quality;
use crate::ground::time::Instant;
use crate::http::cookies::Jar;
use crate::http::response::Framing;
use crate::robots::{Meaning, Rules};
use crate::url::{Batch, UrlRef, canon::Joiner};
pub(super) use cache::{FOLDER, RobotsCache};
use reading::{Answer, Reading, Step};
use state::{ELSEWHERE_MAX, Known, Robots};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use work::Task;

/// Bytes of rules that are copied at the cost of a unit.
pub(super) const COPY_BYTES: usize = 4;

/// The robots.txt files of all servers: their rules, and the work that they make. What is known of
/// the file of one server is in its [`Site`](super::site::Site).
#[derive(Debug)]
pub(super) struct RobotsFiles {
    cache: RobotsCache,
    tasks: VecDeque<Task>,
    /// Cookies of files that redirect, by the server whose file is wanted.
    jars: BTreeMap<ServerId, Jar>,
    /// Servers whose robots.txt redirects to that of another, by that, which is to be asked for it.
    followers: BTreeMap<ServerId, Vec<ServerId>>,
}

impl RobotsFiles {
    /// None is known yet. Rules go to disk if the `crawl` keeps its state.
    pub(super) fn new(crawl: Option<u64>) -> Self {
        let cache = RobotsCache::new(crawl);
        Self { cache, tasks: VecDeque::new(), jars: BTreeMap::new(), followers: BTreeMap::new() }
    }

    /// The rules, in memory and on disk.
    pub(super) fn cache(&mut self) -> &mut RobotsCache {
        &mut self.cache
    }

    /// Whether no work waits.
    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The cookies for the next hop of the redirects of a server's file.
    pub(super) fn jar(&self, of: ServerId) -> Option<&Jar> {
        self.jars.get(&of)
    }
}

impl Engine {
    /// Whether the rules of a server are known.
    pub(super) fn robots_of(&mut self, id: ServerId) -> Known {
        if !self.settings.robots.obey {
            return Known::Rules;
        }
        let now = self.turn.at();
        if self.sites.look(id).robots_elsewhere().is_some_and(|until| until <= now) {
            self.still_elsewhere(id);
        }
        match self.sites.look(id).robots.known(now) {
            // The crawl is about to end: nothing is asked for.
            Known::Rules if !self.load_rules(id) => Known::Pending,
            known => known,
        }
    }

    /// The request for robots.txt got no answer: it is to be asked again.
    pub(super) fn robots_again(&mut self, of: ServerId) {
        if matches!(self.sites.look(of).robots, Robots::Asked) {
            self.set_robots(of, Robots::Unknown);
        }
    }

    /// The other server has not answered for long: its errand goes on, but not for ever.
    fn still_elsewhere(&mut self, id: ServerId) {
        let site = self.sites.at(id);
        site.robots_tries = site.robots_tries.saturating_add(1);
        let robots = if site.robots_tries > self.settings.retries.url_retries_max {
            Robots::Unreachable(self.turn.at() + self.settings.robots.ttl)
        } else {
            Robots::Elsewhere(self.turn.at() + ELSEWHERE_MAX)
        };
        self.set_robots(id, robots);
    }

    /// The fetch of a robots.txt, for the server `of`, has its outcome: it is recorded, then read.
    pub(super) fn robots_complete(
        &mut self,
        slot: u32,
        fetched: Fetched<'_>,
        (of, hops): (ServerId, u8),
    ) {
        let Some(settled) = self.record(slot, &fetched, true) else {
            return self.robots_unrecorded(slot, fetched, (of, hops));
        };
        let conn = self.wire.conn(slot);
        let server = conn.server;
        let came = fetched.reply.payload().len() as u64;
        let missing_bytes = match fetched.head.map(|head| head.framing) {
            Some(Framing::Length(len)) => len.saturating_sub(came),
            _ => conn.missing_bytes(),
        };
        // A redirect that led to the file of another server has brought that server's own, too.
        let is_own = *fetched.fetch.item.target == *ROBOTS_TXT
            && matches!(self.sites.look(server).robots, Robots::Asked);
        let has_surplus = fetched.fetch.notes.contains(&SURPLUS);
        let answer = Answer {
            surplus: if has_surplus { conn.unread().into() } else { Box::default() },
            missing_bytes,
            of,
            hops,
            server,
            other: (is_own && server != of).then_some(server),
            settled,
            head: fetched.head.cloned(),
            fetch: fetched.fetch,
            reply: fetched.reply,
            outcome: fetched.outcome,
            step: Step::Begin,
        };
        self.take_answer(Box::new(answer));
    }

    /// A reply is read.
    fn robots_answered(&mut self, mut answer: Answer, mut reading: Reading) {
        let (of, hops, server, other) = (answer.of, answer.hops, answer.server, answer.other);
        let mut wait = self.settings.robots.retry_wait;
        if reading.is_doubtful {
            let site = self.sites.at(of);
            if site.robots_came_cut() && site.robots_tries < self.settings.retries.url_retries_max {
                // It answers: the rest of the file is soon had, or never.
                wait = wait.min(self.settings.retries.wait);
                reading.means = Meaning::Unreachable;
            }
            reading.note.get_or_insert("robots-cut");
        }
        if let Some(note) = reading.note {
            self.counts.robots_odd(note);
            answer.fetch.notes.push(note);
        }
        let Reading { means, rules, .. } = reading;
        let is_read = means == Meaning::Parse;
        let sitemaps: Vec<&str> = rules.sitemaps().filter(|_| is_read).collect();
        self.write_line(&answer.fetch, &answer.settled, &sitemaps);
        match means {
            Meaning::Parse | Meaning::Unavailable => {
                let until = self.turn.at() + self.settings.robots.ttl;
                if let Some(other) = other {
                    self.robots_known(other, rules.clone(), until);
                }
                self.robots_known(of, rules, until);
            }
            Meaning::Follow => {
                self.follow_robots(&answer, (of, hops));
                if let Some(other) = other {
                    self.follow_along(&answer, other, of);
                }
            }
            Meaning::Unreachable => {
                let until = self.robots_fails(of, wait).filter(|_| server == of);
                let others = other.and_then(|other| self.robots_fails(other, wait));
                if let Some(until) = until.or(others) {
                    self.end_visit_of(server, until);
                }
            }
        }
        self.wire.release(answer.reply);
    }

    /// The archive had no room for it: it is asked for again.
    fn robots_unrecorded(&mut self, slot: u32, fetched: Fetched<'_>, (of, hops): (ServerId, u8)) {
        self.counts.uncount(fetched.outcome);
        self.wire.release(fetched.reply);
        if hops == 0 {
            self.robots_again(of);
        } else {
            let id = self.wire.conn(slot).server;
            self.robots_again(id);
            self.backlog.give_back(id, &fetched.fetch.item);
        }
    }

    /// The rules of a server are known until then, and so are those of servers that wait for them.
    fn robots_known(&mut self, of: ServerId, rules: Rules, until: Instant) {
        if let Some(followers) = self.robots.followers.remove(&of).filter(|all| !all.is_empty()) {
            self.share_rules(rules.clone(), until, followers);
        }
        self.robots.jars.remove(&of);
        let settings = self.settings.robots;
        if !settings.obey {
            // It was asked for to see whether anybody answers.
            return;
        }
        let delay = rules.crawl_delay();
        let site = self.sites.at(of);
        let waits = site.robots_elsewhere().is_some();
        site.robots_told();
        self.set_robots(of, Robots::of(rules, until));
        self.backlog.set_crawl_delay(of, delay, self.turn.at());
        if delay.is_some_and(|delay| delay > settings.crawl_delay_max) {
            let why = Retirement::CrawlDelay;
            self.sites.at(of).set_hopeless(why, Outcome::ServerRetired(why));
            if !self.is_visited(of) {
                self.retire_if_hopeless(of);
            }
        } else if waits {
            let due = self.sites.look(of).due();
            self.backlog.rouse(of, due, self.turn.at());
        }
    }

    /// robots.txt can't be had now, which forbids all. It is asked for again a few times, each
    /// after a wait (until when is returned); then the URLs are given up, and so is what is found
    /// until the next day's try. A server that has not answered for as long as the config
    /// says counts as one without the file (RFC 9309 2.3.1.4).
    pub(super) fn robots_unreachable(&mut self, of: ServerId) -> Option<Instant> {
        self.robots_fails(of, self.settings.robots.retry_wait)
    }

    /// The same, with the wait before the next try.
    fn robots_fails(&mut self, of: ServerId, wait: Duration) -> Option<Instant> {
        self.followers_wait_no_more(of);
        self.robots.jars.remove(&of);
        let now = self.turn.at();
        let settings = self.settings.robots;
        let site = self.sites.at(of);
        let since = site.robots_fails(now);
        if now.since(since) >= settings.unreachable_max {
            self.robots_known(of, Rules::allow_all(), now + settings.ttl);
            return None;
        }
        site.robots_tries = site.robots_tries.saturating_add(1);
        let waits = site.robots_elsewhere().is_some();
        let again = site.robots_tries <= self.settings.retries.url_retries_max;
        // Never before the rest that is owed.
        let until = if again { (now + wait).max(site.due()) } else { site.due() };
        if again {
            self.set_robots(of, Robots::Unknown);
        } else {
            site.robots_tries = 0;
            self.set_robots(of, Robots::Unreachable(now + settings.ttl));
        }
        if waits {
            self.backlog.rouse(of, until, now);
        }
        again.then_some(until)
    }

    /// RFC 9309 2.3.1.2: redirects are followed, even to another authority; the rules found are
    /// those of the first one. Past the cap the file counts as unavailable.
    fn follow_robots(&mut self, answer: &Answer, (of, hops): (ServerId, u8)) {
        let fetch = &answer.fetch;
        let mut batch = Batch::default();
        let base = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        let joined = answer.field("location").is_some_and(|location| {
            Joiner::new(base).join(location, encoding_rs::UTF_8, &mut batch).is_ok()
        });
        let follows = joined && hops < self.settings.robots.redirects_max;
        let server = if follows { self.server_for(batch.get(0), b'P').ok() } else { None };
        let Some(server) = server else {
            let until = self.turn.at() + self.settings.robots.ttl;
            return self.robots_known(of, Rules::allow_all(), until);
        };
        let url = batch.get(0);
        let until = self.turn.at() + ELSEWHERE_MAX;
        self.take_robots_cookies(answer, (of, hops));
        if server != of && url.target() == ROBOTS_TXT && self.share_robots(of, server) {
            return;
        }
        let item = Item {
            target: url.target().into(),
            // As much as the best of what waits for it: with none of its own it would go behind
            // every page of every other server.
            quality: self.backlog.next_quality(of).unwrap_or(Quality::ZERO),
            arrival: 0,
            depth: 0,
            hops: hops + 1,
            tries: 0,
            purpose: Purpose::Robots(of, hops + 1),
            found_as: b'P',
            via: Some((*fetch.url).into()),
        };
        let sleeps = self.sites.look(server).robots_elsewhere().is_some();
        let robots = if server == of { Robots::Asked } else { Robots::Elsewhere(until) };
        self.set_robots(of, robots);
        let added = self.backlog.add_to(server, &item.parts(), item.quality, self.turn.at());
        if !matches!(added, Queued::Waits) {
            self.robots_unreachable(of);
            return;
        }
        if server != of && url.target() == ROBOTS_TXT {
            self.robots.followers.entry(server).or_default();
        }
        if sleeps {
            // Until its own file is known from elsewhere: this errand need not wait for that.
            let due = self.sites.look(server).due();
            self.backlog.rouse(server, due, self.turn.at());
        }
    }

    /// Keeps the cookies that a redirect sets, for the hops that follow it.
    fn take_robots_cookies(&mut self, answer: &Answer, (of, hops): (ServerId, u8)) {
        let jar = self.robots.jars.remove(&of);
        let mut jar = jar.filter(|_| hops > 0).unwrap_or_default();
        let from = UrlRef::from_canonical(answer.fetch.url.as_bytes()).expect("it was fetched");
        let set = answer.fields().filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie"));
        self.take_cookies(&mut jar, from, set.map(|(_, value)| value));
        if !jar.is_empty() && self.robots.jars.len() < self.settings.chains_max {
            self.robots.jars.insert(of, jar);
        }
    }

    /// A redirect of the robots.txt of `of` leads to that of `server`: if that is known, being
    /// asked for or about to be, no other request is made for it.
    fn share_robots(&mut self, of: ServerId, server: ServerId) -> bool {
        let now = self.turn.at();
        let is_asked = match self.sites.look(server).robots.known(now) {
            Known::Rules if self.settings.robots.obey && self.load_rules(server) => {
                match &self.sites.look(server).robots {
                    Robots::Open(until) => {
                        let until = *until;
                        self.robots_known(of, Rules::allow_all(), until);
                    }
                    Robots::Rules(held, until) => {
                        let (rules, until) = (held.rules.clone(), *until);
                        self.turn.charge(Work::Rules, rules.size_bytes() / COPY_BYTES);
                        self.robots_known(of, rules, until);
                    }
                    _ => {
                        self.robots_unreachable(of);
                    }
                }
                return true;
            }
            Known::Pending => self.sites.look(server).robots_elsewhere().is_none(),
            _ => self.robots.followers.contains_key(&server),
        };
        if is_asked {
            self.set_robots(of, Robots::Elsewhere(now + ELSEWHERE_MAX));
            self.robots.followers.entry(server).or_default().push(of);
        }
        is_asked
    }

    /// The robots.txt of `other`, asked for on behalf of `of`, redirects on: what `of` finds is the
    /// answer for both.
    fn follow_along(&mut self, answer: &Answer, other: ServerId, of: ServerId) {
        match self.sites.look(of).robots.known(self.turn.at()) {
            Known::Pending => {
                self.set_robots(other, Robots::Elsewhere(self.turn.at() + ELSEWHERE_MAX));
                self.robots.followers.entry(of).or_default().push(other);
            }
            _ => self.follow_robots(answer, (other, 0)),
        }
    }

    fn is_visited(&self, id: ServerId) -> bool {
        self.backlog.server(id).state() == crate::frontier::ServerState::Busy
    }
}
