//! The checks by which a crawl obeys orders: where a visit begins, and before each request.

use super::{HELD, Hold};
use crate::engine::Engine;
use crate::engine::admission::Discovery;
use crate::engine::backlog::{Item, Purpose};
use crate::engine::ledger::Work;
use crate::engine::outcome::Outcome;
use crate::frontier::{ServerId, ServerState};
use crate::ground::time::Instant;
use std::net::IpAddr;
use std::time::Duration;

/// The cost of holding or waking a server, in units of work (see `ledger`).
const SERVER_UNITS: usize = 64;
/// The spread of the times at which paused servers are examined again, in milliseconds.
const HELD_SPREAD_MS: u64 = 60_000;

impl Engine {
    /// Returns why an order doesn't let a server be visited now, at `address` if it is known, or
    /// `None` if none forbids it.
    pub(in crate::engine) fn held_by(&self, id: ServerId, address: Option<IpAddr>) -> Option<Hold> {
        if let Some(until) = self.is_elsewhere(id) {
            return Some(Hold::Elsewhere(until));
        }
        let rules = &self.visits.orders.rules;
        if !rules.is_any() {
            return None;
        }
        if rules.pauses_all() {
            return Some(Hold::Paused);
        }
        let origin = self.backlog.origin(id);
        rules.hold((origin.as_str(), origin.host()), address, self.turn.at())
    }

    /// Returns whether an order forbids all requests to a server, at this address.
    pub(in crate::engine) fn forbids_request(&self, id: ServerId, address: IpAddr) -> bool {
        let hold = self.held_by(id, Some(address));
        matches!(hold, Some(Hold::Paused | Hold::Blocked | Hold::Elsewhere(_)))
    }

    /// Returns how many requests a visit to a server may make if its host is slowed: one, or none
    /// as long as the delay of the host is not over. Returns `None` if it is not slowed.
    pub(in crate::engine) fn slowed_burst(&self, id: ServerId) -> Option<u32> {
        let not_before = self.slowed_until(id)?;
        Some(u32::from(not_before <= self.turn.at()))
    }

    /// Returns the time before which no visit to a server begins because its host is slowed.
    pub(in crate::engine) fn slowed_until(&self, id: ServerId) -> Option<Instant> {
        let rules = &self.visits.orders.rules;
        if !rules.is_any() {
            return None;
        }
        rules.not_before(self.backlog.origin(id).host())
    }

    /// Ends a visit that has made no request, as an order demands. The URLs of a blocked server are
    /// dropped first, within the budget.
    pub(in crate::engine) fn obey_hold(&mut self, id: ServerId, hold: Hold) {
        let now = self.turn.at();
        if self.is_stopping() {
            return self.backlog.hand_back(id, now);
        }
        self.turn.charge(Work::Rules, SERVER_UNITS);
        let until = match hold {
            Hold::Blocked => return self.drop_blocked(id),
            Hold::Elsewhere(until) => return self.leave_to_others(id, until),
            Hold::Slowed(until) => until,
            // Not all servers of a large pause wake in the same turn.
            Hold::Paused => now + HELD + Duration::from_millis(id.0 as u64 % HELD_SPREAD_MS),
        };
        self.visits.orders.held.insert(id);
        self.backlog.hand_back(id, now);
        self.backlog.snooze(id, until, now);
    }

    /// Ends a visit to a server that isn't this node's to crawl now. What waits in its queue for a
    /// chain or for the robots.txt of another server can't wait until it is.
    fn leave_to_others(&mut self, id: ServerId, until: Instant) {
        let floor = self.share_floor();
        while self.backlog.peek(id).is_some_and(|item| item.purpose != Purpose::Page) {
            if self.turn.left(Work::Rules) <= floor {
                return self.begin_later(id);
            }
            self.turn.charge(Work::Rules, SERVER_UNITS);
            self.abandon_head(id);
        }
        self.backlog.hand_back(id, self.turn.at());
        self.backlog.snooze(id, until, self.turn.at());
    }

    /// Gives the URLs of a blocked server their outcome, as many as the visit's share of the budget
    /// allows, and ends the visit.
    fn drop_blocked(&mut self, id: ServerId) {
        let floor = self.share_floor();
        while let Some(item) = self.backlog.peek(id).cloned() {
            if self.turn.left(Work::Rules) <= floor {
                return self.begin_later(id);
            }
            if self.drop_without_request(id) {
                continue;
            }
            let taken = self.backlog.take(id).expect("just examined");
            match item.purpose {
                // Its own file is requested again when it is no longer blocked.
                Purpose::Robots(of, _) if of == id => {}
                Purpose::Robots(of, _) => {
                    self.robots_unreachable(of);
                    self.end_waits(id, None);
                }
                Purpose::Page | Purpose::Hop(_) | Purpose::Again => {
                    self.drop_unsent(id, &taken, Outcome::Blocked, None);
                }
            }
        }
        self.backlog.hand_back(id, self.turn.at());
    }

    /// Returns what an order says about a URL, by its prefix.
    pub(in crate::engine) fn hold_of(&self, url: &str) -> Option<Hold> {
        self.visits.orders.rules.holds_url(url)
    }

    /// Returns what an order says about the URL at the head of a queue, by its prefix.
    pub(in crate::engine) fn held_url(&mut self, id: ServerId) -> Option<Hold> {
        if !self.visits.orders.rules.has_prefixes() {
            return None;
        }
        self.turn.charge(Work::Rules, self.visits.orders.rules.prefixes());
        let item = self.backlog.peek(id)?.clone();
        self.holds_url(id, &item)
    }

    /// Returns what an order says about a URL of a server, by its prefix. It says nothing about
    /// robots.txt.
    pub(in crate::engine) fn holds_url(&self, id: ServerId, item: &Item) -> Option<Hold> {
        let rules = &self.visits.orders.rules;
        if item.is_robots() || !rules.has_prefixes() {
            return None;
        }
        rules.holds_url(&self.backlog.origin(id).url_of(&item.target))
    }

    /// Moves the URL at the head of a queue to the shelf if its prefix is paused. Returns whether
    /// it did. A hop of a redirect chain stays, and its server waits.
    pub(in crate::engine) fn shelve_paused(&mut self, id: ServerId) -> bool {
        let is_hop = |item: &Item| matches!(item.purpose, Purpose::Hop(_));
        if self.held_url(id) != Some(Hold::Paused) || self.backlog.peek(id).is_some_and(is_hop) {
            return false;
        }
        let item = self.backlog.take(id).expect("just examined");
        if item.tries > 0 {
            self.sites.get_mut(id).take_retry();
        }
        if item.purpose == Purpose::Again {
            self.refuse_again(id, &item);
            return true;
        }
        let found = self.admission.found_of(&item);
        let url = self.backlog.origin(id).url_of(&item.target);
        let via = item.via.as_deref().unwrap_or("");
        self.backlog.shelf_mut().add(|out| found.encode(&url, via, out));
        self.counts.shelved += 1;
        self.turn.charge(Work::Dropped, url.len() + via.len());
        true
    }

    /// Notes that a visit to a server has ended. If its host is slowed, the server sleeps until the
    /// time that is returned.
    pub(in crate::engine) fn slow_down(&mut self, id: ServerId) -> Option<Instant> {
        let now = self.turn.at();
        let until = self.visits.orders.rules.note_visit(self.backlog.origin(id).host(), now)?;
        self.visits.orders.held.insert(id);
        self.backlog.snooze(id, until, now);
        Some(until)
    }

    /// Returns whether an ended pause has left something to do.
    pub(in crate::engine) fn has_order_work(&self) -> bool {
        let can_shelve = !self.is_stopping() && !self.storage.is_paused();
        self.visits.orders.has_waking() || self.backlog.shelf().has_work() && can_shelve
    }

    /// Wakes servers that a pause held back, and queues URLs again whose prefix was paused, within
    /// the budget of the turn.
    pub(in crate::engine) fn work_orders(&mut self) {
        while !self.turn.is_spent(Work::Reread)
            && let Some(id) = self.visits.orders.waking.pop_front()
        {
            self.turn.charge(Work::Reread, SERVER_UNITS);
            let is_asleep = self.backlog.server(id).state() == ServerState::Snoozed;
            if is_asleep && self.sites.get(id).robots_redirected().is_none() {
                let due = self.sites.get(id).due();
                self.backlog.rouse(id, due, self.turn.at());
            }
        }
        if !self.backlog.shelf().has_work() || self.is_stopping() || self.storage.is_paused() {
            return;
        }
        while !self.turn.is_spent(Work::Reread) {
            match self.backlog.shelf_mut().read(self.storage.disk()) {
                Ok(Some(entry)) => {
                    self.turn.charge(Work::Reread, entry.len());
                    self.counts.shelved = self.counts.shelved.saturating_sub(1);
                    let (found, url, via) = Discovery::decode(&entry);
                    self.queue(found, url, (!via.is_empty()).then_some(via));
                }
                Ok(None) => break,
                Err(error) => return self.on_disk_error(error),
            }
        }
    }
}
