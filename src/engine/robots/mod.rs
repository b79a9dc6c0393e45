//! robots.txt files: when they are requested, what their replies mean, and their redirects.
//!
//! This part of the engine owns the rules of all servers (`cache`), replies that wait to be read
//! (`work`), and servers that wait for the file of another. If the file of one server redirects to
//! the `/robots.txt` of another, that is the other's own file as well. It is requested once, and
//! the servers that wait for it are its *followers*. A chain of such redirects has cookies of its
//! own, like that of a page.
//!
//! Laws: RFC 9309, where a configuration key does not say otherwise; a server is asked for no page
//! before its file is known.
//! Cost: that of the rules, within a budget of memory.

mod cache;
mod reading;
pub(super) mod state;
mod work;

use super::Engine;
use super::archive::{Filed, Recorded};
use super::backlog::{Item, Purpose, Queued, ROBOTS_TXT};
use super::ledger::Work;
use super::outcome::Outcome;
use super::wire::{FinishedFetch, SURPLUS};
use crate::frontier::{Retirement, Rule, ServerId, ServerState};
use crate::ground::quality::Quality;
use crate::ground::time::Instant;
use crate::http::cookies::Jar;
use crate::http::response::Framing;
use crate::robots::{Meaning, Rules};
use crate::url::{Batch, UrlRef, canon::Joiner};
pub(super) use cache::{FOLDER, RobotsCache};
pub(super) use reading::RobotsReply;
use reading::{Reading, Step};
use state::{REDIRECTED_MAX, Robots, RobotsStatus};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use work::Task;

/// The bytes of rules that can be copied for one unit of work (see `ledger`).
pub(super) const COPY_BYTES: usize = 4;

/// The robots.txt files of all servers: their rules, and the work they cause. What is known of the
/// file of one server is in its [`Site`](super::site::Site).
#[derive(Debug)]
pub(super) struct RobotsFiles {
    cache: RobotsCache,
    tasks: VecDeque<Task>,
    /// The cookies that redirects of a robots.txt have set, by the server whose robots.txt is
    /// wanted.
    jars: BTreeMap<ServerId, Jar>,
    /// For each server whose robots.txt is requested: the servers whose robots.txt redirects to it.
    followers: BTreeMap<ServerId, Vec<ServerId>>,
}

/// How archive and log show the rules of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The server sent its own complete file, which is archived as it came, or it answered that it
    /// has none.
    InArchive,
    /// The reply is the server's own, but isn't archived, or it isn't evident how it was read. The
    /// rules are in its line of the log.
    InLine,
    /// The rules are not those of the server's own reply. They have a line of their own.
    No,
}

impl Shown {
    /// Returns how the rules of a reply with this meaning are shown.
    fn by(answer: &RobotsReply, means: Meaning) -> Self {
        let is_plain = matches!(answer.outcome, Outcome::Status(_))
            && answer.surplus.is_empty()
            && !answer.fetch.notes.iter().any(|note| note.starts_with("robots-"));
        if answer.hops > 0 || answer.server != answer.of {
            Self::No
        } else if is_plain && (means == Meaning::Unavailable || answer.facts.is_new_record()) {
            Self::InArchive
        } else {
            Self::InLine
        }
    }
}

impl RobotsFiles {
    /// Returns a `RobotsFiles` without any file. Rules may be written to disk if `crawl` is the
    /// number of a crawl that keeps its state.
    pub(super) fn new(crawl: Option<u64>) -> Self {
        let cache = RobotsCache::new(crawl);
        Self { cache, tasks: VecDeque::new(), jars: BTreeMap::new(), followers: BTreeMap::new() }
    }

    /// Returns the cache of rules, in memory and on disk, to read.
    pub(super) fn cached(&self) -> &RobotsCache {
        &self.cache
    }

    /// Returns the cache of rules, in memory and on disk.
    pub(super) fn cache(&mut self) -> &mut RobotsCache {
        &mut self.cache
    }

    /// Returns whether no work on robots.txt files waits.
    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns the cookies for the next hop, where the robots.txt of a server redirects; `None` if
    /// there are none.
    pub(super) fn jar(&self, of: ServerId) -> Option<&Jar> {
        self.jars.get(&of)
    }
}

impl Engine {
    /// Returns whether the robots.txt of a server is known. No page is requested before it is.
    pub(super) fn robots_status(&mut self, id: ServerId) -> RobotsStatus {
        if !self.settings.robots.obey {
            return RobotsStatus::Known;
        }
        let now = self.turn.at();
        if self.sites.get(id).robots_redirected().is_some_and(|until| until <= now) {
            self.wait_for_redirected(id);
        }
        match self.sites.get(id).robots.status(now) {
            // The rules can't be read, which ends the crawl: nothing is requested.
            RobotsStatus::Known if !self.load_rules(id) => RobotsStatus::Pending,
            known => known,
        }
    }

    /// Makes the robots.txt of a server be requested again, because the request for it got no
    /// answer.
    pub(super) fn forget_robots_request(&mut self, of: ServerId) {
        if matches!(self.sites.get(of).robots, Robots::Asked) {
            self.set_robots(of, Robots::Unknown);
        }
    }

    /// Handles a server that has waited too long for the robots.txt of another one, to which its
    /// own redirects. It waits on, but after the maximum number of tries its file counts as
    /// unreachable.
    fn wait_for_redirected(&mut self, id: ServerId) {
        let site = self.sites.get_mut(id);
        site.robots_tries = site.robots_tries.saturating_add(1);
        let robots = if site.robots_tries > self.settings.retries.url_retries_max {
            Robots::Unreachable(self.turn.at() + self.settings.robots.ttl)
        } else {
            Robots::Redirected(self.turn.at() + REDIRECTED_MAX)
        };
        self.set_robots(id, robots);
    }

    /// Completes the fetch of a robots.txt for the server `of`: archives it, then reads it.
    pub(super) fn robots_complete(&mut self, slot: u32, fetched: FinishedFetch<'_>, of: ServerId) {
        let (facts, capture) = match self.record(slot, &fetched, None) {
            Recorded::Done(facts) => (facts, None),
            Recorded::Later(facts, capture) => (facts, Some(capture)),
            Recorded::Failed => return self.robots_unrecorded(slot, fetched, of),
        };
        let conn = self.wire.conn(slot);
        let server = conn.server;
        let came = fetched.reply.payload().len() as u64;
        let missing_bytes = match fetched.head.map(|head| head.framing) {
            Some(Framing::Length(len)) => len.saturating_sub(came),
            _ => conn.missing_bytes(),
        };
        // If a redirect led to the file of another server, it is that server's own file as well.
        let is_own = *fetched.fetch.item.target == *ROBOTS_TXT
            && matches!(self.sites.get(server).robots, Robots::Asked);
        let has_surplus = fetched.fetch.notes.contains(&SURPLUS);
        let answer = RobotsReply {
            surplus: if has_surplus { conn.unread().into() } else { Box::default() },
            missing_bytes,
            of,
            hops: fetched.fetch.item.hops,
            server,
            other: (is_own && server != of).then_some(server),
            facts,
            head: fetched.head.cloned(),
            fetch: fetched.fetch,
            reply: fetched.reply,
            outcome: fetched.outcome,
            step: Step::Begin,
        };
        let answer = Box::new(answer);
        let Some(capture) = capture else { return self.take_robots_reply(answer) };
        self.make_wait(&answer);
        let conn = self.wire.conns().id(slot);
        self.file_reply(*capture, Filed::Robots(answer, conn));
    }

    /// Applies what a reply says to the servers whose robots.txt it is.
    fn apply_robots(&mut self, mut answer: RobotsReply, mut reading: Reading) {
        let (of, hops, server, other) = (answer.of, answer.hops, answer.server, answer.other);
        let mut wait = self.settings.robots.retry_wait;
        if reading.is_doubtful {
            let site = self.sites.get_mut(of);
            if site.note_robots_cut() && site.robots_tries < self.settings.retries.url_retries_max {
                // The server answers, so a short wait is enough for the rest of the file.
                wait = wait.min(self.settings.retries.wait);
                reading.means = Meaning::Unreachable;
            }
            reading.note.get_or_insert("robots-cut");
        }
        if let Some(note) = reading.note {
            *self.counts.robots_odd.entry(note.into()).or_default() += 1;
            answer.fetch.notes.push(note);
        }
        let Reading { means, rules, .. } = reading;
        let is_read = means == Meaning::Parse;
        let is_asked = matches!(answer.outcome, Outcome::SignatureAsked(_));
        let sitemaps: Vec<&str> = rules.sitemaps().filter(|_| is_read).collect();
        let shown = Shown::by(&answer, means);
        let is_file = matches!(means, Meaning::Parse | Meaning::Unavailable);
        let written = Some(&rules).filter(|_| is_file && shown == Shown::InLine);
        self.write_robots_line(&answer.fetch, &answer.facts, &sitemaps, written);
        if is_file {
            self.offer_sitemaps(of, answer.fetch.item.distance(), &sitemaps);
        }
        match means {
            Meaning::Parse | Meaning::Unavailable => {
                let until = self.turn.at() + self.settings.robots.ttl;
                if let Some(other) = other {
                    self.robots_known(other, rules.clone(), until, Shown::No);
                }
                self.robots_known(of, rules, until, shown);
            }
            Meaning::Follow => {
                self.follow_robots(&answer, (of, hops));
                if let Some(other) = other {
                    self.redirect_follower(&answer, other, of);
                }
            }
            Meaning::Unreachable if is_asked => self.ask_robots_again(&answer),
            Meaning::Unreachable => {
                let until = self.robots_failed(of, wait).filter(|_| server == of);
                let others = other.and_then(|other| self.robots_failed(other, wait));
                if let Some(until) = until.or(others) {
                    self.end_visit_of(server, until);
                }
            }
        }
        self.wire.release(answer.reply);
    }

    /// Requests a file again at once, because its server wants a signature.
    fn ask_robots_again(&mut self, answer: &RobotsReply) {
        let RobotsReply { of, server, other, .. } = *answer;
        let now = self.turn.at();
        for own in [Some(of).filter(|_| server == of), other].into_iter().flatten() {
            // It waits as for another server's file if the reply wasn't read at once.
            let waits = self.sites.get(own).robots_redirected().is_some();
            self.set_robots(own, Robots::Unknown);
            if waits && self.backlog.server(own).state() != ServerState::Busy {
                let due = self.sites.get(own).due();
                self.backlog.rouse(own, due, now);
            }
        }
        if server != of {
            let item = &answer.fetch.item;
            self.set_robots(of, Robots::Redirected(now + REDIRECTED_MAX));
            let added = self.backlog.add_to(server, &item.parts(), item.quality, now);
            if !matches!(added, Queued::Waits) {
                self.robots_unreachable(of);
            }
        }
    }

    /// Handles a reply that could not be archived: the file is requested again.
    fn robots_unrecorded(&mut self, slot: u32, fetched: FinishedFetch<'_>, of: ServerId) {
        self.counts.uncount(fetched.outcome);
        self.wire.release(fetched.reply);
        if fetched.fetch.item.hops == 0 {
            self.forget_robots_request(of);
        } else {
            let id = self.wire.conn(slot).server;
            self.forget_robots_request(id);
            self.backlog.give_back(id, &fetched.fetch.item);
        }
    }

    /// Sets the rules of a server and of its followers, valid until `until`. Unless the archive and
    /// the log show them already, the log gets a line with them.
    fn robots_known(&mut self, of: ServerId, rules: Rules, until: Instant, shown: Shown) {
        self.end_waits(of, Some((&rules, until)));
        self.robots.jars.remove(&of);
        let settings = self.settings.robots;
        if !settings.obey {
            // The file was only requested to find out whether the server answers.
            return;
        }
        if shown == Shown::No {
            self.log_rules(of, &rules);
        }
        let delay = rules.crawl_delay();
        let site = self.sites.get_mut(of);
        let waits = site.robots_redirected().is_some();
        site.note_robots_fetched();
        self.set_robots(of, Robots::of(rules, until));
        self.backlog.set_crawl_delay(of, delay, self.turn.at());
        self.extend_rest(of, delay.unwrap_or_default());
        if delay.is_some_and(|delay| delay > settings.crawl_delay_max) {
            let why = Retirement::CrawlDelay;
            self.sites.get_mut(of).set_retiring(why, Outcome::ServerRetired(why));
            if self.backlog.server(of).state() != ServerState::Busy {
                self.retire_if_due(of);
            }
        } else if waits && self.backlog.server(of).state() != ServerState::Busy {
            let due = self.sites.get(of).due();
            self.backlog.rouse(of, due, self.turn.at());
        }
    }

    /// Makes the rest of a server last for its Crawl-delay, which became known after its last
    /// visit. A visit in progress has its rest computed when it ends.
    fn extend_rest(&mut self, of: ServerId, delay: Duration) {
        let now = self.turn.at();
        let server = self.backlog.server(of);
        let rests = server.visits > 0 && server.state() != ServerState::Busy;
        let due = self.sites.get(of).ended() + delay;
        if rests && due > self.sites.get(of).due().max(now) {
            let site = self.sites.get_mut(of);
            site.set_rest(site.ended(), due, Rule::CrawlDelay);
            self.backlog.snooze(of, due, now);
        }
    }

    /// Handles a robots.txt that can't be fetched now, which forbids all URLs. The file is
    /// requested again a few times, after a wait: then the time of the next try is returned. After
    /// the last try `None` is returned and the server's URLs are given up, also those found before
    /// the next try a day later. A server that has not answered for `robots.unreachable_max` is
    /// treated as one without the file (RFC 9309 2.3.1.4).
    pub(super) fn robots_unreachable(&mut self, of: ServerId) -> Option<Instant> {
        self.robots_failed(of, self.settings.robots.retry_wait)
    }

    /// Does what [`Engine::robots_unreachable`] does, with `wait` as the wait before the next try.
    fn robots_failed(&mut self, of: ServerId, wait: Duration) -> Option<Instant> {
        self.end_waits(of, None);
        self.robots.jars.remove(&of);
        let now = self.turn.at();
        let settings = self.settings.robots;
        let site = self.sites.get_mut(of);
        let since = site.note_robots_failure(now);
        if now.since(since) >= settings.unreachable_max {
            self.robots_known(of, Rules::allow_all(), now + settings.ttl, Shown::No);
            return None;
        }
        site.robots_tries = site.robots_tries.saturating_add(1);
        let waits = site.robots_redirected().is_some();
        let again = site.robots_tries <= self.settings.retries.url_retries_max;
        // The next try may not come before the end of the server's rest.
        let until = if again { (now + wait).max(site.due()) } else { site.due() };
        if again {
            self.set_robots(of, Robots::Unknown);
        } else {
            site.robots_tries = 0;
            self.set_robots(of, Robots::Unreachable(now + settings.ttl));
        }
        if waits && self.backlog.server(of).state() != ServerState::Busy {
            self.backlog.rouse(of, until, now);
        }
        again.then_some(until)
    }

    /// Follows a redirect of the robots.txt of the server `of`, even to another authority; the
    /// rules found there apply to `of` (RFC 9309 2.3.1.2). If there are more redirects than the
    /// limit allows, the file counts as unavailable, which allows everything.
    fn follow_robots(&mut self, answer: &RobotsReply, (of, hops): (ServerId, u8)) {
        let fetch = &answer.fetch;
        let mut batch = Batch::default();
        let base = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        let joined = answer.field("location").is_some_and(|location| {
            Joiner::new(base).join(location, encoding_rs::UTF_8, &mut batch).is_ok()
        });
        if joined && self.is_foreign(batch.get(0)) {
            // Only its owner may ask that server.
            self.counts.cut("robots-elsewhere", 1);
            self.robots_unreachable(of);
            return;
        }
        let follows = joined && hops < self.settings.robots.redirects_max;
        let server = if follows { self.server_for(batch.get(0), b'P').ok() } else { None };
        let Some(server) = server else {
            let until = self.turn.at() + self.settings.robots.ttl;
            return self.robots_known(of, Rules::allow_all(), until, Shown::No);
        };
        let url = batch.get(0);
        let until = self.turn.at() + REDIRECTED_MAX;
        self.take_robots_cookies(answer, (of, hops));
        if server != of && url.target() == ROBOTS_TXT && self.share_robots(of, server) {
            return;
        }
        let item = Item {
            target: url.target().into(),
            // The file has the quality of the best URL that waits for it. With a quality of zero
            // it would be queued behind every page of other servers.
            quality: self.backlog.next_quality(of).unwrap_or(Quality::ZERO),
            arrival: 0,
            depth: fetch.item.depth,
            requisite: fetch.item.requisite,
            hops: hops + 1,
            tries: 0,
            is_late: false,
            purpose: Purpose::Robots(of, hops + 1),
            found_as: b'P',
            via: Some((*fetch.url).into()),
            known: None,
        };
        let sleeps = self.sites.get(server).robots_redirected().is_some();
        let robots = if server == of { Robots::Asked } else { Robots::Redirected(until) };
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
            // This server itself waits for a redirected file, but the request for `of` need not
            // wait for that.
            let due = self.sites.get(server).due();
            self.backlog.rouse(server, due, self.turn.at());
        }
    }

    /// Stores the cookies that a redirect of the robots.txt of `of` sets, for the hops that follow.
    fn take_robots_cookies(&mut self, answer: &RobotsReply, (of, hops): (ServerId, u8)) {
        let jar = self.robots.jars.remove(&of);
        let mut jar = jar.filter(|_| hops > 0).unwrap_or_default();
        let from = UrlRef::from_canonical(answer.fetch.url.as_bytes()).expect("it was fetched");
        let set = answer.fields().filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie"));
        self.take_cookies(&mut jar, from, set.map(|(_, value)| value));
        if !jar.is_empty() && self.robots.jars.len() < self.settings.chains_max {
            self.robots.jars.insert(of, jar);
        }
    }

    /// Handles a redirect from the robots.txt of `of` to that of `server`. If the latter is known
    /// or being requested, it is used and `true` is returned; otherwise it must be requested.
    fn share_robots(&mut self, of: ServerId, server: ServerId) -> bool {
        let now = self.turn.at();
        let is_asked = match self.sites.get(server).robots.status(now) {
            RobotsStatus::Known if self.settings.robots.obey && self.load_rules(server) => {
                match &self.sites.get(server).robots {
                    Robots::Open(until) => {
                        let until = *until;
                        self.robots_known(of, Rules::allow_all(), until, Shown::No);
                    }
                    Robots::Rules(held, until) => {
                        let (rules, until) = (held.rules.clone(), *until);
                        self.turn.charge(Work::Rules, rules.size_bytes() / COPY_BYTES);
                        self.robots_known(of, rules, until, Shown::No);
                    }
                    _ => {
                        self.robots_unreachable(of);
                    }
                }
                return true;
            }
            RobotsStatus::Pending => self.sites.get(server).robots_redirected().is_none(),
            _ => self.robots.followers.contains_key(&server),
        };
        if is_asked {
            self.set_robots(of, Robots::Redirected(now + REDIRECTED_MAX));
            self.robots.followers.entry(server).or_default().push(of);
        }
        is_asked
    }

    /// Handles a further redirect of the file of `other`, which was requested on behalf of `of`:
    /// `other` waits for what `of` finds.
    fn redirect_follower(&mut self, answer: &RobotsReply, other: ServerId, of: ServerId) {
        match self.sites.get(of).robots.status(self.turn.at()) {
            RobotsStatus::Pending => {
                self.set_robots(other, Robots::Redirected(self.turn.at() + REDIRECTED_MAX));
                self.robots.followers.entry(of).or_default().push(other);
            }
            _ => self.follow_robots(answer, (other, 0)),
        }
    }
}
