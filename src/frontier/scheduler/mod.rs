//! The scheduler: decides which server is visited next.
//!
//! It holds the servers: their origins and numbers, their politeness (rests, and the clocks and
//! caps of hosts, addresses and domains), and the ready queue in the order of the [`policy`]. All
//! that it knows of a server's queue is in [`Waiting`]. It knows no URLs, robots rules, logs or
//! disk, does no I/O and reads no clock.
//!
//! A server is idle (no URLs), ready, reading (its next URLs are on disk), busy, snoozed (it rests
//! until an instant, its *due*) or retired (given up). When a queue changes,
//! [`Scheduler::set_waiting`] must be called. A visit begins with [`Scheduler::next`], which makes
//! a server busy. It ends with [`Scheduler::finish`], or with [`Scheduler::hand_back`] if no
//! request was made.
//!
//! A *group* is all servers that share a host, an address or a registrable domain. It has a clock
//! (no visit begins before it) and a cap on simultaneous visits. A ready server that one of its
//! groups doesn't admit is *held back*: it waits in that group. The *rank* of a ready server is its
//! place in the order of the policy; servers that are *called* come before those that aren't.
//! Servers of equal rank go in the order of *arrival*, a number that a server gets when it becomes
//! ready or goes to sleep.
//!
//! Laws (tested against a naive model, for each policy): [`Scheduler::next`] returns the best
//! server, by the policy, of all that have a URL in memory, whose rest is over and whose groups all
//! admit it. If the settings set aside a share of the visits for servers that have waited long,
//! these visits take the oldest server of a list of similar ranks instead, unless a called server
//! may be visited; that bounds the wait in the ready queue (`lists.rs`). No two visits to a server
//! or a group are closer to each other than its rest. The caps of groups hold. A server that its
//! group may release is not forgotten. One exception bounds a turn: one call wakes at most
//! [`WAKES_MAX`] snoozed servers and as many groups. The others wake in the next calls, and until
//! then [`Scheduler::deadline`] is not later than now.
//! Cost: at most two hash look-ups to find a server; O(log servers) for everything else.

mod audit;
mod groups;
mod index;
mod lists;
mod origins;
mod outlook;
pub mod policy;
mod politeness;
mod price;
mod ready;
mod record;
mod server;
mod state;
#[cfg(test)]
pub(super) mod tests;
mod visit;

use crate::ground::map::{Map, Set};
use crate::ground::table::Table;
use crate::ground::time::Instant;
use crate::url::site::SiteId;
use crate::url::{UrlRef, domain};
pub use audit::Audited;
use groups::Groups;
pub use groups::{GroupId, GroupKind};
use lists::Lists;
pub use origins::Origin;
use origins::Origins;
pub use policy::{Rank, Waiting};
pub use politeness::{Pace, Settings, SitePace};
use price::Prices;
pub use price::{Load, Price};
pub use ready::{MOVES_MAX, WAKES_MAX};
pub use server::Server;
use server::Standing;
use smallvec::SmallVec;
pub use state::{Retirement, ServerId, ServerState};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::time::Duration;
pub use visit::{Burst, Rule, Visit};

/// How many records of servers are prefetched together: about as many memory reads as a processor
/// has pending at the same time.
const BATCH: usize = 16;
/// A batch of servers whose records are prefetched together.
pub type Batch = SmallVec<[ServerId; BATCH]>;

/// All servers, and the order in which they are visited.
#[derive(Debug)]
pub struct Scheduler {
    settings: Settings,
    servers: Table<Server>,
    origins: Origins,
    groups: Groups,
    /// The ready queue: ready servers by rank, except those that a group holds back. The best
    /// server is the last entry: a server that enters is most often the worst, and a map that is
    /// searched from the front finds its place first.
    ready: BTreeMap<Reverse<Rank>, ServerId>,
    /// Snoozed servers, by the instant at which they are due, then by arrival. The server that is
    /// due next is the last entry, because a server that enters is most often due last.
    asleep: BTreeMap<Reverse<(Instant, u64)>, ServerId>,
    /// The servers of the ready queue by age; `None` if no visits are for the oldest.
    lists: Option<Box<Lists>>,
    /// The tables of settings that hold for servers; a server without a table has no entry.
    sites: Map<ServerId, SiteId>,
    prices: Prices,
    /// The servers that go ahead of all others until their next visit ends.
    called: Set<ServerId>,
    /// The number of arrivals so far: how many times a server became ready or went to sleep.
    arrivals: u64,
    /// The instant before which no server that becomes known is visited.
    quiet_until: Instant,
}

impl Scheduler {
    /// Creates a scheduler that knows no server.
    pub fn new(settings: Settings) -> Self {
        Self {
            servers: Table::default(),
            origins: Origins::new(settings.seed),
            groups: Groups::new(&settings),
            ready: BTreeMap::new(),
            asleep: BTreeMap::new(),
            lists: Lists::new(&settings),
            sites: Map::default(),
            prices: Prices::default(),
            called: Set::default(),
            arrivals: 0,
            quiet_until: Instant::ZERO,
            settings,
        }
    }

    /// Returns the server of `url`. If the server is not known, it is added: it is idle, and is not
    /// visited before [`Scheduler::quiet_until`].
    pub fn server_of(&mut self, url: UrlRef<'_>) -> ServerId {
        let sibling = match self.origins.find(url) {
            Ok(id) => return id,
            Err(sibling) => sibling,
        };
        let id = self.add(url, sibling);
        self.servers[id.index()].due = self.quiet_until;
        id
    }

    /// Returns the server of `url`, or `None` if that server is not known.
    pub fn find(&self, url: UrlRef<'_>) -> Option<ServerId> {
        self.origins.find(url).ok()
    }

    /// Guesses the servers of URLs by the hashes of their hosts, without comparing the names, so
    /// that their records can be prefetched. A wrong guess only makes a prefetch useless.
    pub fn guess<'a>(&self, urls: impl Iterator<Item = UrlRef<'a>>) -> Batch {
        let hashes: SmallVec<[u64; BATCH]> = urls.map(|url| self.origins.hash(url)).collect();
        hashes.iter().filter_map(|hash| self.origins.guess(*hash)).collect()
    }

    /// Returns the best servers of the ready queue, the best first, as many as one batch takes. A
    /// group may hold some of them back.
    pub fn upcoming(&self) -> Batch {
        self.ready.values().rev().copied().take(BATCH).collect()
    }

    /// Prefetches the records of servers; [`prefetch`](super::Frontier::prefetch) says why.
    pub fn prefetch(&self, ids: &Batch) {
        ids.iter().for_each(|id| _ = black_box(self.server(*id).arrival));
    }

    /// Prefetches the origins and groups of servers, whose records should be in the cache already.
    pub fn prefetch_more(&self, ids: &Batch) {
        for id in ids {
            black_box(self.origin(*id).as_str().as_bytes()[0]);
            let groups = self.server(*id).groups.into_iter().flatten();
            groups.for_each(|group| _ = black_box(self.groups.next(group)));
        }
    }

    /// Returns whether a URL can be given a server: the server of `url` is known, or may be added
    /// within `servers_max`.
    pub fn has_room_for(&self, url: UrlRef<'_>) -> bool {
        self.servers.len() < self.settings.servers_max || self.find(url).is_some()
    }

    /// Returns the origin (scheme, host and port) of a server.
    pub fn origin(&self, id: ServerId) -> Origin<'_> {
        self.origins.get(id)
    }

    /// Returns the number of known servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Returns the record of a server.
    pub fn server(&self, id: ServerId) -> &Server {
        &self.servers[id.index()]
    }

    /// Returns how many requests one visit to a server may make.
    pub fn burst(&self, id: ServerId) -> Burst {
        self.server(id).burst(self.settings.burst_of(self.site_of(id)))
    }

    /// Returns the pace of a server: that of its site, or that of the crawl.
    pub fn pace(&self, id: ServerId) -> Pace {
        self.settings.pace(self.site_of(id))
    }

    /// Returns the table of settings that holds for a server, if there is one.
    fn site_of(&self, id: ServerId) -> Option<SiteId> {
        if self.sites.is_empty() { None } else { self.sites.get(&id).copied() }
    }

    /// Returns how many of the best URLs in a server's queue its rank is computed from: as many as
    /// its next visit takes at most, but fewer under `quality` and `yield`.
    pub fn counted(&self, id: ServerId) -> usize {
        let schedule = &self.settings.schedule;
        self.server(id).estimates.counted(self.burst(id), schedule) as usize
    }

    /// Records that the queue of a server has changed to the state `waiting`. An idle server
    /// becomes ready or snoozed, a ready one is ranked again, and one without URLs becomes idle.
    /// Nothing changes for a busy or retired server.
    pub fn set_waiting(&mut self, id: ServerId, waiting: Waiting, now: Instant) {
        let rank = self.rank_of(id, waiting);
        let server = &mut self.servers[id.index()];
        match server.standing {
            Standing::Visited | Standing::Unbound | Standing::Open | Standing::Retired(_) => {}
            Standing::Idle => {
                self.wake(now); // those that were due before come first
                self.settle(id, waiting, now);
            }
            Standing::InLine | Standing::Held if rank.is_some() => self.rerank(id, rank, now),
            Standing::Asleep if waiting.urls > 0 => server.rank = rank,
            // The server's URLs were read from disk. It keeps its place among servers of equal
            // rank.
            Standing::Reading if rank.is_some() => self.line_up(id, rank),
            _ => {
                self.withdraw(id, now);
                if waiting.urls > 0 {
                    self.line_up(id, rank);
                }
            }
        }
    }

    /// Calls a server: until its next visit ends, it goes ahead of all servers that aren't called.
    /// Among those that are, the policy decides. `waiting` is the state of the server's queue.
    pub fn call(&mut self, id: ServerId, waiting: Waiting, now: Instant) {
        if !matches!(self.server(id).standing, Standing::Retired(_)) {
            self.called.insert(id);
            self.set_waiting(id, waiting, now);
        }
    }

    /// Returns the fraction of the rank of a server whose queue is in the state `waiting`; `None`
    /// if its next URL is not in memory.
    fn rank_of(&self, id: ServerId, waiting: Waiting) -> Option<NonZeroU64> {
        let terms = (&self.settings.schedule, self.prices.of(id));
        let own = self.server(id).rank_of(id, waiting, self.burst(id), terms)?;
        Some(if self.called.contains(&id) { policy::called(own) } else { own })
    }

    /// Takes the best ready server that all its groups admit, and makes it busy. A visit set aside
    /// for servers that have waited long takes the oldest of a list instead. Returns `None` if
    /// there is no such server, or if none was found in [`MOVES_MAX`] steps, of the ready queue or
    /// of the lists. In the latter case [`Scheduler::ready`] isn't 0, and the next call continues
    /// the search.
    pub fn next(&mut self, now: Instant) -> Option<ServerId> {
        self.wake(now);
        let id = self.take_next(now)?;
        let server = &mut self.servers[id.index()];
        server.standing = Standing::Visited;
        let groups = server.groups;
        groups.into_iter().flatten().for_each(|group| self.groups.enter(group));
        // A group releases one server at a time. This one has left the ready queue, so its groups
        // may release the next.
        self.wake_groups(groups, now);
        Some(id)
    }

    /// Returns the rank of the best server that may be visited, or `None` if there is none. It is
    /// the one that [`Scheduler::next`] would take, unless that visit is for the oldest of a list.
    pub fn best(&mut self, now: Instant) -> Option<Rank> {
        self.wake(now);
        let id = self.first_admitted(now)?;
        self.server(id).place()
    }

    /// Returns whether a visit under way should end, although it may go on, because the best
    /// waiting server gives more per unit of time than its `next` page. That page is described by
    /// its quality in millionths and the mean time of the replies so far, if there was one. Under
    /// policies other than `yield` no visit should.
    pub fn is_outbid(&mut self, id: ServerId, next: (u64, Option<Duration>), now: Instant) -> bool {
        if !self.settings.schedule.policy.ends_early() {
            return false;
        }
        // Of a called server the offer counts as that of any other, though it goes first.
        let Some(best) = self.best(now) else { return false };
        let (server, price) = (self.server(id), self.prices.of(id));
        server.estimates.offers_less(next, best.fraction, &self.settings.schedule, price)
    }

    /// Sets the price of the core's time. Ranks are computed again by [`Scheduler::next_repriced`].
    pub fn set_price(&mut self, price: Price) {
        self.prices.want(price);
    }

    /// Returns a server whose rank is to be computed again at the latest price, by
    /// [`Scheduler::set_waiting`]; `None` if there is none. Each call returns another.
    pub fn next_repriced(&mut self) -> Option<ServerId> {
        self.prices.next(self.servers.len())
    }

    /// Returns whether [`Scheduler::next_repriced`] has a server to return.
    pub fn is_repricing(&self) -> bool {
        self.prices.is_due(self.servers.len())
    }

    /// Makes a server busy without a visit, even while it rests, so that the caller can take those
    /// URLs from its queue that need no request. [`Scheduler::hand_back`] makes the server
    /// available again. Returns `false`, and changes nothing, if the server is busy or retired.
    pub fn open(&mut self, id: ServerId, now: Instant) -> bool {
        self.wake(now);
        if matches!(self.server(id).state(), ServerState::Busy | ServerState::Retired(_)) {
            return false;
        }
        self.withdraw(id, now);
        self.servers[id.index()].standing = Standing::Open;
        true
    }

    /// Adds a server under visit to the group of the IP address that its name resolved to. Returns
    /// `false` if that group doesn't admit a visit now; the visit must then end.
    pub fn bind(&mut self, id: ServerId, address: IpAddr, now: Instant) -> bool {
        if !self.groups.can_hold(GroupKind::Address) {
            return true;
        }
        let group = self.groups.address(address);
        let server = &mut self.servers[id.index()];
        assert_eq!(server.standing, Standing::Visited, "only a server under visit is bound");
        let old = server.groups[GroupKind::Address as usize].replace(group);
        if old == Some(group) {
            return true;
        }
        let admits = self.groups.admits(group, now);
        if admits {
            self.groups.enter(group);
        } else {
            server.standing = Standing::Unbound;
        }
        if let Some(old) = old {
            self.groups.leave(old, None);
            self.wake_group(old, now);
        }
        admits
    }

    /// Records that a server under visit is about to be connected to, for the first time in this
    /// visit (`is_first`) or at another address. Returns `false` if another visit to its domain or
    /// address has begun since the server was taken; this visit must then end.
    pub fn begin(&mut self, id: ServerId, is_first: bool, now: Instant) -> bool {
        let [_, domain, address] = self.server(id).groups;
        let groups = [None, domain.filter(|_| is_first), address];
        let begins = groups.into_iter().flatten().all(|group| self.groups.next(group) <= now);
        if begins {
            groups.into_iter().flatten().for_each(|group| self.groups.begin(group, now));
            // The groups' clocks have changed, so the servers that they hold back need new alarms.
            self.wake_groups(groups, now);
        }
        begins
    }

    /// Ends a visit that made no request, or closes a queue that [`Scheduler::open`] opened. No
    /// rest follows, and the server keeps its place among servers of equal rank.
    pub fn hand_back(&mut self, id: ServerId, waiting: Waiting, now: Instant) {
        assert_eq!(self.server(id).state(), ServerState::Busy, "only a visit under way can end");
        self.wake(now);
        self.release(id, None, now);
        let server = self.server(id);
        if waiting.urls > 0 && server.due <= now && server.arrival > 0 {
            let rank = self.rank_of(id, waiting);
            self.line_up(id, rank);
        } else {
            self.settle(id, waiting, now);
        }
    }

    /// Ends a visit. The server rests for as long as the settings ask for, and at least until
    /// `visit.not_before`. Its host rests for as long as the settings ask for. The host rests until
    /// `not_before` only if the server asked for that (`visit.strained`), since another server of
    /// the host may be in better health. `waiting` is called with the new result of
    /// [`Scheduler::counted`] and returns the state of the queue. Returns the instant at which the
    /// server is due.
    pub fn finish(
        &mut self,
        id: ServerId,
        visit: &Visit,
        now: Instant,
        waiting: impl FnOnce(usize) -> Waiting,
    ) -> Instant {
        self.wake(now);
        let pace = self.pace(id);
        let server = &mut self.servers[id.index()];
        assert_eq!(server.state(), ServerState::Busy, "only a visit under way can end");
        let rest = pace.rest(visit, server.crawl_delay());
        if !self.called.is_empty() {
            self.called.remove(&id);
        }
        server.visits += 1;
        server.estimates.observe(visit, &self.settings.schedule);
        let owed = visit.ended + rest;
        let due = owed.max(visit.not_before);
        server.due = due;
        let host_due = if visit.strained { due } else { owed };
        self.release(id, Some((visit.ended, host_due)), now);
        self.settle(id, waiting(self.counted(id)), now);
        due
    }

    /// Returns the rule that decides when a server is due after `visit`, which has ended.
    pub fn rule(&self, id: ServerId, visit: &Visit) -> Rule {
        self.pace(id).rule(visit, self.server(id).crawl_delay())
    }

    /// Records whether a connection to a server is parked (kept open between two visits), which
    /// makes the next visit cheaper. `waiting` returns the state of the server's queue; it is
    /// called if the server's rank depends on it now.
    pub fn set_parked(
        &mut self,
        id: ServerId,
        is_parked: bool,
        now: Instant,
        waiting: impl FnOnce() -> Waiting,
    ) {
        let server = &mut self.servers[id.index()];
        server.estimates.is_parked = is_parked;
        if !matches!(server.state(), ServerState::Busy | ServerState::Retired(_)) {
            self.set_waiting(id, waiting(), now);
        }
    }

    /// Sets the Crawl-delay of a server's robots.txt; `None` means that it has none. `waiting` is
    /// called with the new result of [`Scheduler::counted`] and returns the state of the queue.
    pub fn set_crawl_delay(
        &mut self,
        id: ServerId,
        delay: Option<Duration>,
        now: Instant,
        waiting: impl FnOnce(usize) -> Waiting,
    ) {
        self.servers[id.index()].set_crawl_delay(delay);
        self.set_waiting(id, waiting(self.counted(id)), now);
    }

    /// Postpones the next visit to a server until `until` at least. The server must not be busy.
    pub fn snooze(&mut self, id: ServerId, until: Instant, now: Instant) {
        let server = self.server(id);
        assert_ne!(server.state(), ServerState::Busy, "a visit ends before a server is snoozed");
        self.set_due(id, server.due.max(until), now);
    }

    /// Cancels a [`Scheduler::snooze`]: the server may be visited from `due` on.
    pub fn rouse(&mut self, id: ServerId, due: Instant, now: Instant) {
        self.set_due(id, due, now);
        self.keep_host_clock(id);
    }

    /// Retires a server, so that it is not visited again. It must not be busy.
    pub fn retire(&mut self, id: ServerId, why: Retirement, now: Instant) {
        self.withdraw(id, now);
        self.called.remove(&id);
        let server = &mut self.servers[id.index()];
        assert_ne!(server.state(), ServerState::Busy, "a visit ends before a server is retired");
        server.standing = Standing::Retired(why);
    }

    /// Makes a retired server idle again, so that it can have URLs. Its queue must be empty.
    pub fn reinstate(&mut self, id: ServerId) {
        let server = &mut self.servers[id.index()];
        if let Standing::Retired(_) = server.standing {
            server.standing = Standing::Idle;
        }
    }

    /// Changes the politeness, from the next visits on.
    pub fn set_politeness(&mut self, settings: &Settings) {
        self.settings.adopt(settings);
        self.groups.set_limits(&self.settings);
    }

    /// Returns the earliest instant at which a snoozed server or a group wakes; `None` if there is
    /// none.
    pub fn deadline(&self) -> Option<Instant> {
        let asleep = self.asleep.last_key_value().map(|(Reverse((due, _)), _)| *due);
        asleep.into_iter().chain(self.groups.deadline()).min()
    }

    /// Returns the number of servers in the ready queue. It includes servers whose groups don't
    /// admit a visit but which have not been moved to these groups yet.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Returns the number of servers that are snoozed or held back by a group.
    pub fn snoozed(&self) -> usize {
        self.asleep.len() + self.groups.held()
    }

    /// Returns the instant before which no server that becomes known is visited. Such a server may
    /// have been visited by the previous run, if that was killed.
    pub fn quiet_until(&self) -> Instant {
        self.quiet_until
    }

    /// Delays the first visit to each server that becomes known from now on until `until` at least.
    /// If an earlier call set a later instant, that one stays.
    pub fn keep_new_quiet(&mut self, until: Instant) {
        self.quiet_until = self.quiet_until.max(until);
    }

    /// Adds a server with its origin and its groups. `sibling` is the first known server of its
    /// host.
    fn add(&mut self, url: UrlRef<'_>, sibling: Option<ServerId>) -> ServerId {
        let id = ServerId::from_index(self.servers.len());
        self.origins.add(url, sibling.is_some());
        self.servers.push(Server::default());
        if let Some(site) = self.settings.sites.of_host(url.host()) {
            self.sites.insert(id, site);
        }
        if let Some(first) = sibling {
            let host = self.group_of(GroupKind::Host, first);
            self.servers[id.index()].groups[GroupKind::Host as usize] = Some(host);
        }
        if self.groups.can_hold(GroupKind::Domain) {
            let name = domain::registrable(url.host());
            let origins = &self.origins;
            let is = |other| domain::registrable(origins.get(other).host()) == name;
            let first = self.groups.first_of(name, id, is);
            if first.is_some() || self.groups.can_hold_one(GroupKind::Domain) {
                let domain = self.group_of(GroupKind::Domain, first.unwrap_or(id));
                self.servers[id.index()].groups[GroupKind::Domain as usize] = Some(domain);
            }
        }
        id
    }

    /// Returns the group of a server's host or domain, as `kind` says. The group is created if
    /// there is none.
    fn group_of(&mut self, kind: GroupKind, id: ServerId) -> GroupId {
        let server = &mut self.servers[id.index()];
        if let Some(group) = server.groups[kind as usize] {
            return group;
        }
        let is_visited = matches!(server.standing, Standing::Visited | Standing::Unbound);
        let next = if kind == GroupKind::Host { server.host_next } else { Instant::ZERO };
        let group = self.groups.add(kind, next, is_visited);
        server.groups[kind as usize] = Some(group);
        group
    }
}
