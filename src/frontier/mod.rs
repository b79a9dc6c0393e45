//! The frontier: all URLs known and not yet fetched, and who is visited next.
//!
//! Two levels. A [`Server`] (scheme, host, port) owns one URL queue and is idle (no URLs), ready,
//! busy (being visited), snoozed (until an instant) or retired. The [`workbench`] decides which
//! ready server is visited next and holds back those whose group (host, address, registrable
//! domain) is at its cap or at rest.
//!
//! Promises: a server is handed out by [`Frontier::next`] only if it has a URL, its rest is over
//! and all its groups admit it; it stays busy until [`Frontier::finish`]. URLs of one server come
//! out first in, first out, those given back before all others.
//! Laws (held to a naive model in `tests.rs`): no URL is lost or duplicated; no two visits to a
//! server or a group are closer than its rest; caps of groups hold; nothing scans all servers.
//! Cost: add O(1) after one map look-up; next, finish O(log servers).

pub mod group;
pub mod queue;
pub mod rest;
pub mod server;
#[cfg(test)]
mod tests;
pub mod workbench;

use crate::map::Map;
use crate::time::Instant;
use crate::url::{UrlRef, domain};
pub use group::GroupKind;
pub use queue::{Errand, Item};
pub use rest::{Burst, Settings, Visit};
pub use server::{Retirement, Server, ServerId, ServerState};
use std::net::IpAddr;
use workbench::Workbench;

/// All queues and their order.
#[derive(Debug)]
pub struct Frontier {
    settings: Settings,
    servers: Vec<Server>,
    ids: Map<Box<str>, ServerId>,
    workbench: Workbench,
    urls: usize,
}

/// What became of a URL that was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It waits in the queue of its server.
    Queued(ServerId),
    /// Its server is retired: why. The URL is handed back.
    Retired(ServerId, Retirement, Item),
    /// A cap on queued URLs is reached. The URL is handed back.
    Full(ServerId, Item),
}

impl Frontier {
    /// An empty frontier.
    pub fn new(settings: Settings) -> Self {
        let workbench = Workbench::new();
        Self { settings, servers: Vec::new(), ids: Map::default(), workbench, urls: 0 }
    }

    /// Whether the server of `url` is known, or may become known.
    pub fn has_room_for(&self, url: UrlRef<'_>) -> bool {
        self.servers.len() < self.settings.servers_max || self.ids.contains_key(url.origin())
    }

    /// Files `item` under the server of `url`, which comes to be if it is new.
    pub fn add(&mut self, url: UrlRef<'_>, item: Item, now: Instant) -> Added {
        let id = self.server_of(url);
        let server = &mut self.servers[id.index()];
        if let ServerState::Retired(why) = server.state {
            return Added::Retired(id, why, item);
        }
        let full = self.urls >= self.settings.urls_max
            || server.queue.len() >= self.settings.urls_per_server_max;
        if full && !item.is_prior() {
            return Added::Full(id, item);
        }
        self.urls += 1;
        if item.is_prior() {
            server.queue.push_front(item);
        } else {
            server.queue.push_back(item);
        }
        self.offer(id, now);
        Added::Queued(id)
    }

    /// The server of `url`; a new one is idle.
    pub fn server_of(&mut self, url: UrlRef<'_>) -> ServerId {
        if let Some(&id) = self.ids.get(url.origin()) {
            return id;
        }
        let id = ServerId::from_index(self.servers.len());
        let host = self.workbench.group(GroupKind::Host, url.host(), &self.settings);
        let name = domain::registrable(url.host());
        let domain = self.workbench.group(GroupKind::Domain, name, &self.settings);
        self.servers.push(Server::new(url, [host, domain]));
        self.ids.insert(url.origin().into(), id);
        id
    }

    /// Takes the server to be visited next, which is busy from here on; `None` if none may be
    /// visited now.
    pub fn next(&mut self, now: Instant) -> Option<ServerId> {
        self.workbench.expire(&mut self.servers, now);
        let id = self.workbench.take(&mut self.servers, now)?;
        debug_assert!(!self.servers[id.index()].queue.is_empty(), "a ready server has a URL");
        Some(id)
    }

    /// Takes the next URL of a server that is being visited.
    pub fn take(&mut self, id: ServerId) -> Option<Item> {
        let server = &mut self.servers[id.index()];
        assert_eq!(server.state, ServerState::Busy, "URLs are taken during a visit only");
        let item = server.queue.pop_front();
        self.urls -= usize::from(item.is_some());
        item
    }

    /// Looks at the next URL of a server.
    pub fn peek(&self, id: ServerId) -> Option<&Item> {
        self.servers[id.index()].queue.front()
    }

    /// Puts a URL back before the visit ends, in front of all others of its server. Several are
    /// given back last one first.
    pub fn give_back(&mut self, id: ServerId, item: Item) {
        let server = &mut self.servers[id.index()];
        assert_eq!(server.state, ServerState::Busy, "URLs are given back during a visit only");
        self.urls += 1;
        server.queue.push_front(item);
    }

    /// Puts a URL back before the visit ends, behind all others of its server: a later try.
    pub fn put_off(&mut self, id: ServerId, item: Item) {
        let server = &mut self.servers[id.index()];
        assert_eq!(server.state, ServerState::Busy, "URLs are put off during a visit only");
        self.urls += 1;
        server.queue.push_back(item);
    }

    /// Binds a server to the group of the address it is reached at. `false` if that group does
    /// not admit it now: the visit must be ended with [`Frontier::hand_back`].
    pub fn bind(&mut self, id: ServerId, address: IpAddr, now: Instant) -> bool {
        let name = address.to_string();
        let group = self.workbench.group(GroupKind::Address, &name, &self.settings);
        self.workbench.bind(&mut self.servers[id.index()], group, now)
    }

    /// Ends a visit that never began (no slot, or its address group is busy): no rest is owed.
    pub fn hand_back(&mut self, id: ServerId, now: Instant) {
        let server = &self.servers[id.index()];
        assert_eq!(server.state, ServerState::Busy, "only a visit under way can end");
        self.workbench.release(&mut self.servers, id, None, now);
        let server = &mut self.servers[id.index()];
        server.state = ServerState::Idle;
        let due = server.due;
        if !server.queue.is_empty() {
            self.workbench.hand_back(&mut self.servers, id, due, now);
        }
    }

    /// Ends a visit. The server rests as long as it is owed, and at least until `not_before`; its
    /// host rests as long as is owed, since another of its servers may be in better health.
    /// Returns the instant from which the server may be visited again.
    pub fn finish(&mut self, id: ServerId, visit: &Visit, now: Instant) -> Instant {
        let server = &mut self.servers[id.index()];
        assert_eq!(server.state, ServerState::Busy, "only a visit under way can end");
        let rest = self.settings.rest(visit, server.crawl_delay);
        server.visits += 1;
        let owed = visit.ended + rest;
        server.due = owed.max(visit.not_before);
        let due = server.due;
        let host_due = if visit.strained { due } else { owed };
        self.workbench.release(&mut self.servers, id, Some((visit.ended, host_due)), now);
        self.servers[id.index()].state = ServerState::Idle;
        self.offer(id, now);
        due
    }

    /// Keeps a server from being visited before `until`, busy ones excepted.
    pub fn snooze(&mut self, id: ServerId, until: Instant, now: Instant) {
        let server = &mut self.servers[id.index()];
        assert_ne!(server.state, ServerState::Busy, "a visit is ended before a server is snoozed");
        server.due = server.due.max(until);
        if matches!(server.state, ServerState::Snoozed(_)) {
            server.state = ServerState::Idle;
        }
        self.offer(id, now);
    }

    /// Takes back what [`Frontier::snooze`] said: the server is owed no more than `due`.
    pub fn rouse(&mut self, id: ServerId, due: Instant, now: Instant) {
        let server = &mut self.servers[id.index()];
        server.due = due;
        if matches!(server.state, ServerState::Snoozed(_)) {
            server.state = ServerState::Idle;
            self.offer(id, now);
        }
    }

    /// Gives a server up; returns its URLs, so that each gets its line in the log.
    pub fn retire(&mut self, id: ServerId, why: Retirement) -> Vec<Item> {
        self.workbench.forget(id);
        let server = &mut self.servers[id.index()];
        assert_ne!(server.state, ServerState::Busy, "a visit is ended before a server is retired");
        server.state = ServerState::Retired(why);
        let items: Vec<Item> = server.queue.drain().collect();
        self.urls -= items.len();
        items
    }

    /// Sets the delay that the server's robots.txt asks for.
    pub fn set_crawl_delay(&mut self, id: ServerId, delay: Option<std::time::Duration>) {
        self.servers[id.index()].crawl_delay = delay;
    }

    /// How many requests one visit to this server may make.
    pub fn burst(&self, id: ServerId) -> Burst {
        match self.servers[id.index()].crawl_delay {
            Some(_) => Burst::Requests(1),
            None => self.settings.burst,
        }
    }

    /// The record of a server.
    pub fn server(&self, id: ServerId) -> &Server {
        &self.servers[id.index()]
    }

    /// The nearest instant at which a server or a group wakes.
    pub fn deadline(&self) -> Option<Instant> {
        self.workbench.deadline()
    }

    /// Whether a server may be ready to be visited now.
    pub fn has_ready(&self) -> bool {
        self.workbench.has_ready()
    }

    /// URLs waiting in all queues.
    pub fn urls(&self) -> usize {
        self.urls
    }

    /// Servers known.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Servers that are snoozed, those waiting in a group included. One that is retired while it
    /// waits counts until its group passes it over.
    pub fn snoozed(&self) -> usize {
        self.workbench.snoozed()
    }

    /// An idle server with URLs becomes ready, or snoozed if its rest is not over. One that
    /// stands in line and is owed a longer rest is sent to sleep when its turn comes.
    fn offer(&mut self, id: ServerId, now: Instant) {
        let server = &mut self.servers[id.index()];
        if server.state == ServerState::Idle && !server.queue.is_empty() {
            let due = server.due;
            self.workbench.admit(&mut self.servers, id, due, now);
        }
    }
}
