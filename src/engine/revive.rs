//! Revival: servers that were given up are tried again, with their URLs.
//!
//! First the servers are reinstated one by one. Then their URLs are read from the files of
//! [`backlog::given_up`](super::backlog) and queued, within the budget of each turn. A server that
//! was given up but whose queue still holds URLs is reinstated only when these URLs have been
//! written to the crawl log.

use super::Engine;
use super::admission::Discovery;
use super::backlog::Item;
use super::counts::{Loss, Losses};
use super::ledger::Work;
use super::outcome::Outcome;
use super::robots::state::Robots;
use crate::frontier::{Retirement, ServerId, ServerState};
use crate::url::Url;

/// The cost of examining a server, in units of work (see `ledger`).
const SERVER_UNITS: usize = 64;

impl Engine {
    /// Begins to reinstate the servers that were given up, with their URLs. The work is done in the
    /// following turns.
    pub fn revive(&mut self) {
        if self.backlog.given_up_mut().begin() {
            let servers = self.counts.servers_given_up();
            log::info!("{servers} servers that were given up are tried again");
            self.counts.losses = Losses::default();
            self.retry_seeds();
        }
    }

    /// Queues failed seeds again, except those whose servers are reinstated with their URLs.
    fn retry_seeds(&mut self) {
        for url in self.counts.seeds.take_failed() {
            let Ok(url) = Url::parse(&url) else { continue };
            let id = self.backlog.find(url.view());
            let comes_back = id.is_some_and(|id| {
                let is_retired = matches!(self.backlog.server(id).state(), ServerState::Retired(_));
                is_retired || self.sites.get(id).robots_lost() > 0
            });
            if !comes_back {
                self.queue(Discovery::SEED, url.view(), None);
            }
        }
    }

    /// Returns whether a revival is in progress and can continue now.
    pub(super) fn has_revival_work(&self) -> bool {
        self.backlog.given_up_log().has_work() && !self.is_stopping() && !self.storage.is_paused()
    }

    /// Keeps a URL whose server was given up on disk, so that a later revival can queue it again.
    pub(super) fn keep_given_up(&mut self, id: ServerId, item: &Item) {
        let found = self.admission.found_of(item);
        let url = self.backlog.origin(id).url_of(&item.target);
        let via = item.via.as_deref().unwrap_or("");
        self.backlog.given_up_mut().add(|out| found.encode(&url, via, out));
    }

    /// Keeps a URL on disk for a later revival, and counts it as lost, because it may not be
    /// fetched: the robots.txt of its server can't be fetched.
    pub(super) fn lose_to_robots(&mut self, id: ServerId, item: &Item) {
        self.keep_given_up(id, item);
        let slot = self.sites.get(id).conn();
        let replies = slot.map_or(0, |slot| self.wire.conn(slot).visit.tally.replies);
        let answered = self.backlog.server(id).has_answered() || replies > 0;
        let cause = Outcome::RobotsUnreachable.name().into();
        let before = self.sites.get(id).robots_lost();
        if before == 0 {
            let origin = self.backlog.origin(id).as_str();
            log::info!("{origin}: its robots.txt can't be fetched: its URLs are given up");
        }
        let loss = Loss { urls: 1, cause, answered };
        self.counts.losses.add(self.backlog.origin(id).as_str(), loss, before.into());
        self.sites.get_mut(id).set_robots_lost(before.saturating_add(1));
    }

    /// Continues a revival within the budget of the turn.
    pub(super) fn work_revival(&mut self) {
        if !self.backlog.given_up_log().is_reviving()
            || self.is_stopping()
            || self.storage.is_paused()
        {
            return;
        }
        while !self.turn.is_spent(Work::Reread) {
            let servers = self.backlog.servers();
            let Some(id) = self.backlog.given_up_mut().next_server() else { return };
            if id.index() < servers {
                self.turn.charge(Work::Dropped, SERVER_UNITS);
                let is_back = self.reinstate_server(id);
                self.backlog.given_up_mut().advance(is_back);
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

    /// Reinstates a server. If its robots.txt could not be fetched, makes the file be requested
    /// again. Returns `false` if the server is not reinstated yet, because its queue must become
    /// empty first.
    fn reinstate_server(&mut self, id: ServerId) -> bool {
        if matches!(self.sites.get(id).robots, Robots::Unreachable(_)) {
            self.set_robots(id, Robots::Unknown);
            self.sites.get_mut(id).set_failures(0);
        }
        if self.sites.get(id).robots_lost() > 0 {
            self.sites.get_mut(id).set_robots_lost(0);
        }
        let server = self.backlog.server(id);
        let ServerState::Retired(why) = server.state() else { return true };
        let delay_max = self.settings.robots.crawl_delay_max;
        let is_slow = server.crawl_delay().is_some_and(|delay| delay > delay_max);
        if why == Retirement::CrawlDelay && is_slow {
            let answered = server.has_answered();
            let loss = Loss { urls: 0, cause: why.name().into(), answered };
            self.counts.losses.keep_retired(self.backlog.origin(id).as_str(), loss);
            return true;
        }
        if self.backlog.queue_len(id) > 0 {
            return false;
        }
        self.backlog.reinstate(id);
        self.sites.get_mut(id).reinstate();
        self.visits.expire_name(self.backlog.origin(id).host(), self.turn.at());
        let count = self.counts.given_up.entry(why.name().into()).or_default();
        *count = count.saturating_sub(1);
        true
    }
}
