//! robots.txt on the road: when it is asked for, what a reply means, redirects to other servers.

use super::Engine;
use super::fetch::Fetched;
use super::outcome::Outcome;
use super::record::Aside;
use super::site::{ELSEWHERE_MAX, Known, Robots};
use crate::frontier::{Added, Errand, Item, Retirement, ServerId};
use crate::http::coding::{Codings, DecodeLimits, Decoder, State};
use crate::quality::Quality;
use crate::robots::{Meaning, Rules, SIZE_BYTES_MAX, meaning};
use crate::url::{Batch, UrlRef, canon::Joiner};

impl Engine {
    /// Whether the rules of a server are known.
    pub(super) fn robots_of(&mut self, id: ServerId) -> Known {
        if !self.settings.robots.obey {
            return Known::Rules;
        }
        let now = self.now.at;
        if self.sites.look(id).robots_elsewhere().is_some_and(|until| until <= now) {
            self.still_elsewhere(id);
        }
        match self.sites.look(id).known(now) {
            // The crawl is about to end: nothing is asked for.
            Known::Rules if !self.unshelve(id) => Known::Pending,
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
            Robots::Unreachable(self.now.at + self.settings.robots.ttl)
        } else {
            Robots::Elsewhere(self.now.at + ELSEWHERE_MAX)
        };
        self.set_robots(id, robots);
    }

    /// The fetch of a robots.txt, for the server `of`, has its outcome.
    pub(super) fn robots_settled(
        &mut self,
        slot: u32,
        fetched: Fetched<'_>,
        (of, hops): (ServerId, u8),
    ) {
        let means = match fetched.outcome {
            Outcome::Status(status) => meaning(status),
            Outcome::BodyTooLarge => Meaning::Parse,
            // What a cut file doesn't say may be what matters; a coded one shows whether it is.
            Outcome::Short(status, _) => match meaning(status) {
                Meaning::Parse if !is_coded(&fetched) => Meaning::Unreachable,
                means => means,
            },
            _ => Meaning::Unreachable,
        };
        let rules = match means {
            Meaning::Parse => self.parse_robots(&fetched),
            _ => Some(Rules::allow_all()),
        };
        let means = if rules.is_some() { means } else { Meaning::Unreachable };
        let rules = rules.unwrap_or_else(Rules::deny_all);
        let sitemaps: Vec<&str> = rules.sitemaps().collect();
        if !self.record(slot, &fetched, Aside { is_last: true, sitemaps: &sitemaps }) {
            return self.robots_unrecorded(slot, fetched, (of, hops));
        }
        match means {
            Meaning::Parse | Meaning::Unavailable => self.robots_known(of, rules),
            Meaning::Follow => self.follow_robots(&fetched, (of, hops)),
            Meaning::Unreachable => {
                let own = self.conns.look(slot).server == of;
                if let Some(until) = self.robots_unreachable(of).filter(|_| own) {
                    let turn = &mut self.conns.at(slot).turn;
                    turn.not_before = turn.not_before.max(until);
                    turn.over = true;
                }
            }
        }
        fetched.reply.release(&mut self.pool);
    }

    /// The archive had no room for it: it is asked for again.
    fn robots_unrecorded(&mut self, slot: u32, fetched: Fetched<'_>, (of, hops): (ServerId, u8)) {
        self.counts.uncount(fetched.outcome);
        fetched.reply.release(&mut self.pool);
        if hops == 0 {
            self.robots_again(of);
        } else {
            let id = self.conns.look(slot).server;
            self.frontier.give_back(id, fetched.fetch.item);
        }
    }

    /// The rules of a reply; `None` if its content coding is broken. One that is not known is
    /// taken for a slip: the text is read as it is.
    fn parse_robots(&mut self, fetched: &Fetched<'_>) -> Option<Rules> {
        let (head, reply) = (fetched.head?, &fetched.reply);
        let product = &self.settings.identity.product;
        let codings = match head.codings(reply.head()) {
            Codings::Known(codings) if !codings.is_empty() => codings,
            _ => return Some(Rules::parse(reply.payload(), product)),
        };
        let limits = DecodeLimits { decoded_bytes_max: SIZE_BYTES_MAX as u64 + 1 };
        let mut text = self.pool.body();
        let mut decoder = Decoder::new(limits);
        decoder.begin(&codings);
        let (mut input, mut state) = (reply.payload(), State::More);
        while matches!(state, State::More) {
            let step = decoder.decode(input, true, &mut text, SIZE_BYTES_MAX);
            input = &input[step.used..];
            state = step.state;
        }
        let whole = matches!(state, State::Done | State::TooLarge);
        let rules = whole.then(|| Rules::parse(&text, product));
        self.pool.give_body(text);
        rules
    }

    fn robots_known(&mut self, of: ServerId, rules: Rules) {
        let settings = self.settings.robots;
        if !settings.obey {
            // It was asked for to see whether anybody answers.
            return;
        }
        let delay = rules.crawl_delay();
        let site = self.sites.at(of);
        let waits = site.robots_elsewhere().is_some();
        site.robots_told();
        self.set_robots(of, Robots::of(rules, self.now.at + settings.ttl));
        self.frontier.set_crawl_delay(of, delay, self.now.at);
        if delay.is_some_and(|delay| delay > settings.crawl_delay_max) {
            let why = Retirement::CrawlDelay;
            self.sites.at(of).set_hopeless(why, Outcome::ServerRetired(why));
            if !self.is_visited(of) {
                self.retire_if_hopeless(of);
            }
        } else if waits {
            let due = self.sites.look(of).due();
            self.frontier.rouse(of, due, self.now.at);
        }
    }

    /// robots.txt can't be had now, which forbids all. It is asked for again a few times, each
    /// after a wait (until when is returned); then the URLs are given up, and so is what is found
    /// until the next day's try. A server that has not answered for as long as the config
    /// says counts as one without the file (RFC 9309 2.3.1.4).
    pub(super) fn robots_unreachable(&mut self, of: ServerId) -> Option<crate::time::Instant> {
        let now = self.now.at;
        let settings = self.settings.robots;
        let site = self.sites.at(of);
        let since = site.robots_fails(now);
        if now.since(since) >= settings.unreachable_max {
            self.robots_known(of, Rules::allow_all());
            return None;
        }
        site.robots_tries = site.robots_tries.saturating_add(1);
        let waits = site.robots_elsewhere().is_some();
        let again = site.robots_tries <= self.settings.retries.url_retries_max;
        // Never before the rest that is owed.
        let until = if again { (now + settings.retry_wait).max(site.due()) } else { site.due() };
        if again {
            self.set_robots(of, Robots::Unknown);
        } else {
            site.robots_tries = 0;
            self.set_robots(of, Robots::Unreachable(now + settings.ttl));
        }
        if waits {
            self.frontier.rouse(of, until, now);
        }
        again.then_some(until)
    }

    /// RFC 9309 2.3.1.2: redirects are followed, even to another authority; the rules found are
    /// those of the first one. Past the cap the file counts as unavailable.
    fn follow_robots(&mut self, fetched: &Fetched<'_>, (of, hops): (ServerId, u8)) {
        let fetch = &fetched.fetch;
        let mut batch = Batch::default();
        let base = UrlRef::from_canonical(fetch.url.as_bytes()).expect("it was fetched");
        let joined = fetched.field("location").is_some_and(|location| {
            Joiner::new(base).join(location, encoding_rs::UTF_8, &mut batch).is_ok()
        });
        if !joined
            || hops >= self.settings.robots.redirects_max
            || !self.frontier.has_room_for(batch.get(0))
        {
            return self.robots_known(of, Rules::allow_all());
        }
        let url = batch.get(0);
        self.frontier.ready_next(of);
        let item = Item {
            target: url.target().into(),
            // As much as the best of what waits for it: with none of its own it would go behind
            // every page of every other server.
            quality: self.frontier.peek(of).map_or(Quality::ZERO, |best| best.quality),
            arrival: 0,
            depth: 0,
            hops: hops + 1,
            tries: 0,
            errand: Errand::Robots(of, hops + 1),
            found_as: b'P',
            via: Some(fetch.url.as_ref().into()),
        };
        let until = self.now.at + ELSEWHERE_MAX;
        let server = self.server_of(url);
        let robots = if server == of { Robots::Asked } else { Robots::Elsewhere(until) };
        self.set_robots(of, robots);
        let added = self.frontier.add(url, item, self.now.at);
        if !matches!(added, Added::Queued(_)) {
            self.robots_unreachable(of);
        } else if self.sites.look(server).robots_elsewhere().is_some() && server != of {
            // It sleeps until its own file is told elsewhere: this errand need not wait for that.
            let due = self.sites.look(server).due();
            self.frontier.rouse(server, due, self.now.at);
        }
    }

    fn is_visited(&self, id: ServerId) -> bool {
        self.frontier.server(id).state == crate::frontier::ServerState::Busy
    }
}

/// Whether the body has a content coding, whose end shows that it is whole.
fn is_coded(fetched: &Fetched<'_>) -> bool {
    let codings = fetched.head.map(|head| head.codings(fetched.reply.head()));
    matches!(codings, Some(Codings::Known(codings)) if !codings.is_empty())
}
