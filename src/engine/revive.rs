//! Revival: the servers that were given up are tried again, with their URLs.
//!
//! The servers are looked at one by one, then their URLs are read back from
//! [`backlog::given_up`](super::backlog) and queued, within the budget of the turn. URLs that wait
//! in the queue of a retired server first get their lines in the crawl log.

use super::Engine;
use super::admission::Discovery;
use super::backlog::Item;
use super::counts::{Loss, Losses};
use super::ledger::Work;
use super::outcome::Outcome;
use super::robots::state::Robots;
use super::seeds::SEED;
use crate::frontier::{Retirement, ServerId, ServerState};
use crate::url::Url;

/// What looking at a server costs, in units of work.
const SERVER_UNITS: usize = 64;

impl Engine {
    /// Takes back the servers that were given up, with their URLs. The work is done in the turns
    /// that follow.
    pub fn revive(&mut self) {
        if self.backlog.given_up_log().is_kept() {
            log::info!("{} servers that were given up are tried again", self.counts.retired);
            self.counts.losses = Losses::default();
            self.backlog.given_up_mut().begin();
            self.retry_seeds();
        }
    }

    /// Failed seeds are tried again: those of servers that come back do so with their URLs.
    fn retry_seeds(&mut self) {
        for url in self.counts.seeds.begin_again() {
            let Ok(url) = Url::parse(&url) else { continue };
            let id = self.backlog.find(url.view());
            let comes_back = id.is_some_and(|id| {
                let is_retired = matches!(self.backlog.server(id).state(), ServerState::Retired(_));
                is_retired || self.sites.look(id).robots_lost() > 0
            });
            if !comes_back {
                self.queue(Discovery { letter: SEED, hops: 0, depth: 0 }, url.view(), None);
            }
        }
    }

    /// Whether a revival has something to do now.
    pub(super) fn has_revival_work(&self) -> bool {
        self.backlog.given_up_log().has_work() && !self.is_stopping() && !self.storage.is_paused()
    }

    /// Keeps a URL whose server was given up.
    pub(super) fn keep_given_up(&mut self, id: ServerId, item: &Item) {
        let found = Discovery { letter: item.found_as, hops: item.hops, depth: item.depth };
        let url = self.backlog.origin(id).url_of(&item.target);
        let via = item.via.as_deref().unwrap_or("");
        self.backlog.given_up_mut().add(|out| found.encode(&url, via, out));
    }

    /// A URL may not be fetched because the robots.txt of its server can't be had.
    pub(super) fn lose_to_robots(&mut self, id: ServerId, item: &Item) {
        self.keep_given_up(id, item);
        let slot = self.sites.look(id).conn();
        let replies = slot.map_or(0, |slot| self.wire.conn(slot).visit.tally.replies);
        let answered = self.backlog.server(id).has_answered() || replies > 0;
        let cause = Outcome::RobotsUnreachable.name().into();
        let before = self.sites.look(id).robots_lost();
        if before == 0 {
            let origin = self.backlog.origin(id).as_str();
            log::info!("{origin}: its robots.txt can't be had: its URLs are given up");
        }
        let loss = Loss { urls: 1, cause, answered };
        self.counts.losses.add(self.backlog.origin(id).as_str(), loss, before.into());
        self.sites.at(id).set_robots_lost(before.saturating_add(1));
    }

    /// Some more of a revival.
    pub(super) fn work_revival(&mut self) {
        if !self.backlog.is_reviving() || self.is_stopping() || self.storage.is_paused() {
            return;
        }
        while !self.turn.is_spent(Work::Reread) {
            let servers = self.backlog.servers();
            let Some(id) = self.backlog.given_up_mut().next_server() else { return };
            if id.index() < servers {
                self.turn.charge(Work::Dropped, SERVER_UNITS);
                let is_back = self.take_back(id);
                self.backlog.given_up_mut().looked_at(is_back);
                if !is_back {
                    return;
                }
                continue;
            }
            match self.backlog.given_up_mut().read(self.storage.disk()) {
                Ok(Some(entry)) => {
                    self.turn.charge(Work::Reread, entry.len());
                    let (found, url, via) = Discovery::decode(&entry);
                    self.queue(found, url, (!via.is_empty()).then_some(via));
                }
                Ok(None) => log::info!("the URLs of servers that were given up are queued again"),
                Err(error) => return self.on_disk_error(error),
            }
        }
    }

    /// Takes a server back, and has a robots.txt that could not be had asked for again; `false` if
    /// its URLs have first to leave its queue.
    fn take_back(&mut self, id: ServerId) -> bool {
        if matches!(self.sites.look(id).robots, Robots::Unreachable(_)) {
            self.set_robots(id, Robots::Unknown);
            self.sites.at(id).set_failures(0);
        }
        if self.sites.look(id).robots_lost() > 0 {
            self.sites.at(id).set_robots_lost(0);
        }
        let server = self.backlog.server(id);
        let ServerState::Retired(why) = server.state() else { return true };
        let delay_max = self.settings.robots.crawl_delay_max;
        let is_slow = server.crawl_delay().is_some_and(|delay| delay > delay_max);
        if why == Retirement::CrawlDelay && is_slow {
            let answered = server.has_answered();
            let loss = Loss { urls: 0, cause: why.name().into(), answered };
            self.counts.losses.still(self.backlog.origin(id).as_str(), loss);
            return true;
        }
        if self.backlog.queue_len(id) > 0 {
            return false;
        }
        self.backlog.reinstate(id);
        self.sites.at(id).is_taken_back();
        self.visits.expire_name(self.backlog.origin(id).host(), self.turn.at());
        self.counts.retired = self.counts.retired.saturating_sub(1);
        true
    }
}
