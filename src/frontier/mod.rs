//! The frontier: all URLs known and not yet fetched, and who is visited next.
//!
//! Two levels. A [`Server`] (scheme, host, port) owns one URL queue and is idle (no URLs), ready,
//! busy (being visited), snoozed (until an instant) or retired. The [`workbench`] decides which
//! ready server is visited next and holds back those whose group (host, address, registrable
//! domain) is at its cap or at rest. Queues that are too long for memory wait on disk (`spill`).
//!
//! Promises: a server is handed out by [`Frontier::next`] only if it has a URL, its rest is over
//! and all its groups admit it, and of these it is the best by the [`policy`]; it stays busy until
//! [`Frontier::finish`]. URLs of one server come out in the order of the policy.
//! Laws (held to a naive model in `tests.rs`, for each policy): no URL is lost or duplicated; no
//! two visits to a server or a group are closer than its rest; caps of groups hold; who is handed
//! out is who a model finds that computes all ranks anew; nothing scans all servers.
//! Cost: one map look-up to add; all else O(log servers) and O(log URLs of the server).

#[macro_use]
pub(crate) mod calls;
mod ahead;
mod audit;
pub mod group;
mod index;
mod items;
mod log;
mod look;
mod loose;
mod meet;
mod names;
mod place;
pub mod policy;
pub mod queue;
mod ranking;
pub mod rest;
mod restore;
mod runs;
#[cfg(test)]
pub(crate) mod sabotage;
pub mod server;
mod snapshot;
mod spill;
#[cfg(test)]
mod tests;
mod unpacked;
pub mod workbench;

use crate::table::Table;
use crate::time::Instant;
use crate::url::UrlRef;
pub use ahead::EXPECTED;
pub use group::GroupKind;
pub use names::Origin;
use names::{Met, Names};
use policy::Rank;
#[cfg(test)]
use queue::Weight;
pub use queue::{Errand, Item};
pub use rest::{Burst, Settings, Visit};
use restore::Restoring;
pub use server::{Retirement, Server, ServerId, ServerState};
use snapshot::Snapshot;
use spill::Spill;
pub use spill::job::{FrontierDone, FrontierJob};
use std::collections::VecDeque;
use std::net::IpAddr;
use workbench::Workbench;

/// All queues and their order.
#[derive(Debug)]
pub struct Frontier {
    settings: Settings,
    servers: Table<Server>,
    names: Names,
    workbench: Workbench,
    urls: usize,
    /// Visits begun so far.
    visits: usize,
    /// URLs queued so far: their order of arrival.
    arrivals: u64,
    /// Nobody who comes to be known is visited before this.
    quiet_until: Instant,
    /// The moment that is being written down.
    snapshot: Option<Box<Snapshot>>,
    /// Ends of queues on disk; `None` if nothing goes there.
    spill: Option<Box<Spill>>,
    /// Retired servers that have URLs in memory, which are yet to be reported.
    given_up: VecDeque<ServerId>,
    /// What is still missing of a frontier that was written down.
    restoring: Option<Box<Restoring>>,
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
        Self {
            spill: Spill::new(&settings),
            names: Names::new(settings.crawl.unwrap_or(0)),
            workbench: Workbench::new(&settings),
            settings,
            servers: Table::default(),
            urls: 0,
            visits: 0,
            arrivals: 0,
            quiet_until: Instant::ZERO,
            snapshot: None,
            given_up: VecDeque::new(),
            restoring: None,
        }
    }

    /// Whether the server of `url` is known, or may become known.
    pub fn has_room_for(&self, url: UrlRef<'_>) -> bool {
        called!(HasRoomFor(url.as_str().to_owned()));
        self.servers.len() < self.settings.servers_max || matches!(self.met(url), Met::Known(_))
    }

    /// The server of `url`, if it is known.
    pub fn find(&self, url: UrlRef<'_>) -> Option<ServerId> {
        called!(Find(url.as_str().to_owned()));
        match self.met(url) {
            Met::Known(id) => Some(id),
            _ => None,
        }
    }

    /// Files `item` under the server of `url`, which comes to be if it is new.
    pub fn add(&mut self, url: UrlRef<'_>, item: Item, now: Instant) -> Added {
        let id = self.server_of(url);
        self.add_to(id, item, now)
    }

    /// Files `item` under a server that is known.
    pub fn add_to(&mut self, id: ServerId, mut item: Item, now: Instant) -> Added {
        called!(AddTo(id, item.clone(), now));
        let server = &self.servers[id.index()];
        if let ServerState::Retired(why) = server.state {
            return Added::Retired(id, why, item);
        }
        let full = self.urls >= self.settings.urls_max
            || server.queue.len() >= self.settings.urls_per_server_max;
        if full && !item.is_prior() {
            return Added::Full(id, item);
        }
        self.pass_hand(now);
        self.write_ahead(id);
        self.arrivals += 1;
        #[cfg(test)]
        if sabotage::is(sabotage::Sabotage::UrlsDropped) && self.arrivals.is_multiple_of(50) {
            return Added::Queued(id);
        }
        self.urls += 1;
        item.arrival = self.arrivals;
        let before = self.servers[id.index()].rank(&self.settings);
        self.put(id, item);
        match self.servers[id.index()].state {
            ServerState::Ready | ServerState::Reading => self.line_up(id, before, now),
            _ => self.offer(id, now),
        }
        Added::Queued(id)
    }

    /// The server of `url`; a new one is idle.
    pub fn server_of(&mut self, url: UrlRef<'_>) -> ServerId {
        called!(ServerOf(url.as_str().to_owned()));
        let met = self.met(url);
        if let Met::Known(id) = met {
            return id;
        }
        let id = ServerId::from_index(self.servers.len());
        let mut server = self.new_server(url, id, met);
        server.due = self.quiet_until;
        self.servers.push(server);
        self.workbench.meet();
        id
    }

    /// Nobody is visited before this, because nobody knows what was owed.
    pub fn quiet_until(&self) -> Instant {
        self.quiet_until
    }

    /// Opens the queue of a server that is not visited, as for a visit, so that URLs can be taken
    /// off it that need no request, whatever rest is owed. [`Frontier::hand_back`] closes it.
    /// `false` if it is visited or given up.
    pub fn open_queue(&mut self, id: ServerId, now: Instant) -> bool {
        called!(OpenQueue(id, now));
        self.expire(now);
        let state = self.servers[id.index()].state;
        if matches!(state, ServerState::Busy | ServerState::Retired(_)) {
            return false;
        }
        self.write_ahead(id);
        self.workbench.withdraw(&mut self.servers, id, now);
        self.servers[id.index()].state = ServerState::Busy;
        true
    }

    /// Takes the server to be visited next, which is busy from here on; `None` if none may be
    /// visited now.
    pub fn next(&mut self, now: Instant) -> Option<ServerId> {
        called!(Next(now));
        self.expire(now);
        let id = self.workbench.take(&mut self.servers, now)?;
        self.turn_over(id);
        self.look_along();
        debug_assert!(self.has_next(id), "a ready server has a URL: {:?}", self.server(id));
        Some(id)
    }

    /// Takes the next URL of a server that is being visited; `None` as well if it is still on disk:
    /// then the visit ends, and the server comes back when it has been read.
    pub fn take(&mut self, id: ServerId) -> Option<Item> {
        self.write_ahead(id);
        let server = &mut self.servers[id.index()];
        assert_eq!(server.state, ServerState::Busy, "URLs are taken during a visit only");
        let before = server.queue.weight();
        let item = server.queue.pop(self.spill.as_mut().map(|spill| &mut spill.blocks));
        called!(Take(id, item.clone()));
        self.urls -= usize::from(item.is_some());
        if self.spill.is_some() {
            self.weigh(id, before);
            self.turn_over(id);
            self.restock(id);
        }
        item
    }

    /// Brings the next URL of a server that is being visited to hand, so that it can be looked at.
    /// `false`: there is none, or it is still on disk.
    pub fn ready_next(&mut self, id: ServerId) -> bool {
        called!(ReadyNext(id));
        self.warm(id);
        self.peek(id).is_some()
    }

    /// Looks at the next URL of a server, if it is at hand.
    pub fn peek(&self, id: ServerId) -> Option<&Item> {
        called!(Peek(id));
        self.servers[id.index()].queue.front()
    }

    /// Whether there is a next URL of a server that is not still on disk.
    pub fn has_next(&self, id: ServerId) -> bool {
        called!(HasNext(id));
        let queue = &self.servers[id.index()].queue;
        queue.in_memory() > 0 && !queue.is_behind()
    }

    /// Puts a URL back to where it was before the visit ends: in order of arrival that is before
    /// all others of its server. Several are given back last one first.
    pub fn give_back(&mut self, id: ServerId, item: Item) {
        called!(GiveBack(id, item.clone()));
        self.write_ahead(id);
        let server = &mut self.servers[id.index()];
        assert_eq!(server.state, ServerState::Busy, "URLs are given back during a visit only");
        self.urls += 1;
        let before = server.queue.weight();
        match &mut self.spill {
            Some(spill) => server.queue.put_back(item, &mut spill.blocks),
            None => server.queue.put_back_hot(item),
        }
        self.weigh(id, before);
    }

    /// Puts a URL back before the visit ends, behind all others (by quality: all equal ones) of its
    /// server: a later try.
    pub fn put_off(&mut self, id: ServerId, mut item: Item) {
        called!(PutOff(id, item.clone()));
        self.write_ahead(id);
        let server = &self.servers[id.index()];
        assert_eq!(server.state, ServerState::Busy, "URLs are put off during a visit only");
        self.urls += 1;
        self.arrivals += 1;
        item.arrival = self.arrivals;
        self.put(id, item);
    }

    /// Binds a server to the group of the address it is reached at. `false` if that group does
    /// not admit it now: the visit must be ended with [`Frontier::hand_back`].
    pub fn bind(&mut self, id: ServerId, address: IpAddr, now: Instant) -> bool {
        called!(Bind(id, address, now));
        if !self.workbench.groups.hold(GroupKind::Address) {
            return true;
        }
        let group = self.workbench.groups.address(address);
        self.workbench.bind(&mut self.servers, id, group, now)
    }

    /// A server is about to be asked, at first or at another address. `false` if another visit to
    /// its domain or address began while its name was looked up: [`Frontier::hand_back`] follows.
    pub fn begin(&mut self, id: ServerId, is_first: bool, now: Instant) -> bool {
        called!(Begin(id, is_first, now));
        self.workbench.begin(&mut self.servers, id, is_first, now)
    }

    /// Ends a visit that never began (no slot, or its address group is busy): no rest is owed, and
    /// it keeps its place among servers of equal rank.
    pub fn hand_back(&mut self, id: ServerId, now: Instant) {
        called!(HandBack(id, now));
        self.write_ahead(id);
        let server = &self.servers[id.index()];
        assert_eq!(server.state, ServerState::Busy, "only a visit under way can end");
        self.expire(now);
        self.workbench.release(&mut self.servers, id, None, now);
        self.servers[id.index()].state = ServerState::Idle;
        self.cool(id);
        let server = &mut self.servers[id.index()];
        if !server.queue.is_empty() {
            self.workbench.readmit(server, id, &self.settings, now);
        }
    }

    /// Ends a visit. The server rests as long as it is owed, and at least until `not_before`; its
    /// host rests as long as is owed, since another of its servers may be in better health.
    /// Returns the instant from which the server may be visited again.
    pub fn finish(&mut self, id: ServerId, visit: &Visit, now: Instant) -> Instant {
        called!(Finish(id, *visit, now));
        self.write_ahead(id);
        self.keep_clock(id);
        self.expire(now);
        let server = &mut self.servers[id.index()];
        assert_eq!(server.state, ServerState::Busy, "only a visit under way can end");
        let rest = self.settings.rest(visit, server.crawl_delay());
        server.visits += 1;
        server.estimates.observe(visit, &self.settings.schedule);
        let owed = visit.ended + rest;
        server.due = owed.max(visit.not_before);
        let due = server.due;
        let host_due = if visit.strained { due } else { owed };
        self.workbench.release(&mut self.servers, id, Some((visit.ended, host_due)), now);
        self.servers[id.index()].state = ServerState::Idle;
        self.limit(id);
        self.cool(id);
        self.restock(id);
        self.pass_hand(now);
        self.offer(id, now);
        due
    }

    /// Whether a connection to a server stands between two visits: the next one is the cheaper
    /// for it.
    pub fn set_parked(&mut self, id: ServerId, is_parked: bool, now: Instant) {
        called!(SetParked(id, is_parked, now));
        let server = &mut self.servers[id.index()];
        let before = server.rank(&self.settings);
        server.estimates.is_parked = is_parked;
        self.workbench.rerank(&mut self.servers, id, before, &self.settings, now);
    }

    /// Keeps a server from being visited before `until`, busy ones excepted.
    pub fn snooze(&mut self, id: ServerId, until: Instant, now: Instant) {
        called!(Snooze(id, until, now));
        self.write_ahead(id);
        self.expire(now);
        let server = &mut self.servers[id.index()];
        assert_ne!(server.state, ServerState::Busy, "a visit is ended before a server is snoozed");
        server.due = server.due.max(until);
        self.reconsider(id, now);
    }

    /// Takes back what [`Frontier::snooze`] said: the server is owed no more than `due`.
    pub fn rouse(&mut self, id: ServerId, due: Instant, now: Instant) {
        called!(Rouse(id, due, now));
        self.write_ahead(id);
        self.expire(now);
        let server = &mut self.servers[id.index()];
        server.due = due;
        self.workbench.keep_host_clock(server);
        self.reconsider(id, now);
    }

    /// Gives a server up. Its URLs are reported one by one by [`Frontier::given_up`], so that each
    /// gets its line in the log.
    pub fn retire(&mut self, id: ServerId, why: Retirement, now: Instant) {
        called!(Retire(id, now));
        self.write_ahead(id);
        self.workbench.withdraw(&mut self.servers, id, now);
        let server = &mut self.servers[id.index()];
        assert_ne!(server.state, ServerState::Busy, "a visit is ended before a server is retired");
        server.state = ServerState::Retired(why);
        if server.queue.is_in_hand() {
            self.given_up.push_back(id);
        } else {
            self.restock(id);
        }
    }

    /// Whether [`Frontier::given_up`] has a URL.
    pub fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// The next URL of a server that was retired. Those on disk come after they were read:
    /// [`Frontier::worked`].
    pub fn given_up(&mut self) -> Option<(ServerId, Item)> {
        called!(GivenUp);
        while let Some(&id) = self.given_up.front() {
            self.write_ahead(id);
            let server = &mut self.servers[id.index()];
            let before = server.queue.weight();
            let blocks = self.spill.as_mut().map(|spill| &mut spill.blocks);
            // Nothing, if the disk had to take what was in memory.
            let item = server.queue.pop_own(blocks);
            self.urls -= usize::from(item.is_some());
            let is_last = !server.queue.is_in_hand();
            if is_last {
                server.queue.tidy();
                self.given_up.pop_front();
            }
            self.weigh(id, before);
            if is_last {
                self.restock(id);
            }
            if let Some(item) = item {
                return Some((id, item));
            }
        }
        None
    }

    /// A server that was given up, and has no URLs left, may have some again.
    pub fn reinstate(&mut self, id: ServerId) {
        called!(Reinstate(id));
        self.write_ahead(id);
        let server = &mut self.servers[id.index()];
        assert!(server.queue.is_empty(), "its URLs have left its queue");
        if let ServerState::Retired(_) = server.state {
            server.state = ServerState::Idle;
        }
    }

    /// Sets the delay that the server's robots.txt asks for.
    pub fn set_crawl_delay(
        &mut self,
        id: ServerId,
        delay: Option<std::time::Duration>,
        now: Instant,
    ) {
        called!(SetCrawlDelay(id, delay, now));
        self.write_ahead(id);
        let server = &mut self.servers[id.index()];
        let before = server.rank(&self.settings);
        server.set_crawl_delay(delay);
        self.limit(id);
        self.workbench.rerank(&mut self.servers, id, before, &self.settings, now);
    }

    /// How many requests one visit to this server may make.
    pub fn burst(&self, id: ServerId) -> Burst {
        self.servers[id.index()].burst(&self.settings)
    }

    /// The record of a server.
    pub fn server(&self, id: ServerId) -> &Server {
        match self.servers.get(id.index()) {
            Some(server) => server,
            None => self.restoring.as_ref().and_then(|some| some.early(id)).expect("it is known"),
        }
    }

    /// The name of a server.
    pub fn origin(&self, id: ServerId) -> Origin<'_> {
        self.names.get(self.server(id).name)
    }

    /// The nearest instant at which a server or a group wakes.
    pub fn deadline(&self) -> Option<Instant> {
        self.workbench.deadline()
    }

    /// Servers that stand in line; a group may still hold one back.
    pub fn ready(&self) -> usize {
        self.workbench.ready()
    }

    /// URLs waiting in all queues.
    pub fn urls(&self) -> usize {
        self.urls
    }

    /// Bytes of URLs in memory, as far as they are counted: 0 if nothing goes to the disk.
    pub fn memory_bytes(&self) -> usize {
        self.spill.as_ref().map_or(0, |spill| spill.bytes())
    }

    /// Bytes of all segments on disk, and of the chunks in them that are needed still.
    pub fn disk_bytes(&self) -> (u64, u64) {
        self.spill.as_ref().map_or((0, 0), |spill| spill.log.bytes())
    }

    /// Servers known.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Servers that are snoozed, those waiting in a group included.
    pub fn snoozed(&self) -> usize {
        self.workbench.snoozed()
    }

    /// A URL goes into a queue; the disk may have to take others.
    fn put(&mut self, id: ServerId, item: Item) {
        self.prepare(id);
        let server = &mut self.servers[id.index()];
        let before = server.queue.weight();
        let blocks = self.spill.as_mut().map(|spill| &mut spill.blocks);
        server.queue.push(item, blocks);
        if self.spill.is_some() {
            self.make_room(id, before);
            if self.servers[id.index()].state == ServerState::Busy {
                self.turn_over(id);
            }
        }
    }

    /// The URLs of a server that wait in memory in their order, in no order; in order of arrival in
    /// that.
    fn in_memory(&self, server: &Server) -> Vec<Item> {
        server.queue.items(self.spill.as_ref().map(|spill| &spill.blocks))
    }

    /// A server whose URLs had to be read stands in line, if they are there; one that does, with
    /// what was its rank `before`, where it belongs now.
    fn line_up(&mut self, id: ServerId, before: Rank, now: Instant) {
        let server = &mut self.servers[id.index()];
        match server.state {
            ServerState::Reading => self.workbench.stand(server, id, &self.settings),
            _ => self.workbench.rerank(&mut self.servers, id, before, &self.settings, now),
        }
    }

    /// What is known of the server of `url`.
    fn met(&self, url: UrlRef<'_>) -> Met {
        self.names.find(url, |number| self.server(ServerId(number)))
    }

    /// Whoever is due stands in line before anybody who comes later.
    fn expire(&mut self, now: Instant) {
        self.workbench.expire(&mut self.servers, &self.settings, now);
    }

    /// A server whose rest has changed stands in line or sleeps accordingly.
    fn reconsider(&mut self, id: ServerId, now: Instant) {
        let server = &mut self.servers[id.index()];
        let due = server.due;
        match server.state {
            ServerState::Ready if due > now => {
                self.workbench.withdraw(&mut self.servers, id, now);
                self.servers[id.index()].state = ServerState::Idle;
            }
            ServerState::Reading if due > now => server.state = ServerState::Idle,
            ServerState::Snoozed => {
                self.workbench.withdraw(&mut self.servers, id, now);
                self.servers[id.index()].state = ServerState::Idle;
            }
            _ => {}
        }
        self.offer(id, now);
    }

    /// An idle server with URLs becomes ready, or snoozed if its rest is not over.
    fn offer(&mut self, id: ServerId, now: Instant) {
        self.expire(now);
        let server = &mut self.servers[id.index()];
        if server.state != ServerState::Idle || server.queue.is_empty() {
        } else if server.due > now {
            self.workbench.sleep(server, id);
        } else {
            self.workbench.admit(server, id, &self.settings);
        }
    }
}
