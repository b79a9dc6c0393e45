//! The frontier: all URLs that are known and not fetched yet, and the order in which their servers
//! are visited.
//!
//! It has two parts that don't know each other. The [`scheduler`] holds the servers and decides
//! which of them is visited next. The [`queues`] hold the URLs that wait at each server, as bytes
//! (the payload) with a priority. This file joins the two: whenever a queue changes, it reports to
//! the scheduler what the queue holds.
//!
//! Terms:
//! - A *server* is a scheme, a host and a port. A *visit* to it is up to a burst of requests on one
//!   connection, followed by a *rest*, during which the server is not visited.
//! - A *group* is all servers that share a host, an address or a registrable domain. It has a clock
//!   (an instant before which no visit begins) and a cap on simultaneous visits. The *clock of a
//!   host* is the instant before which none of its servers is visited. A ready server is *held
//!   back* while one of its groups doesn't admit a visit.
//! - A server is *idle* (it has no URLs), *ready* (it may be visited), *reading* (its next URLs are
//!   on disk), *busy* (it is being visited), *snoozed* (it has URLs and rests until it is due) or
//!   *retired* (it was given up). A connection is *parked* if it is kept open between two visits.
//! - The *rank* of a server is its place in the order of the policy. Servers of equal rank go in
//!   the order of their *arrival*, which is when they became ready or went to sleep.
//! - The *key* of a URL is its place in its queue. URLs that *count* are the next ones of a queue,
//!   as many as the rank of its server is computed from.
//!
//! Laws (tested against a naive model, for each policy): no URL is lost or duplicated. No two
//! visits to a server or a group are closer to each other than its rest. The caps of groups hold. A
//! server is taken only if its next URL is in memory, and if it is the best of those that may be
//! visited now (or, in a share of visits, one that has waited long). Nothing scans all servers.
//! Cost: O(log servers) and O(log URLs of the server) for each call.

#[macro_use]
mod calls;
pub mod queues;
pub mod scheduler;
mod snapshot;
#[cfg(test)]
pub(crate) mod tests;

use crate::ground::disk::{self, Disk};
use crate::ground::frame;
use crate::ground::quality::Quality;
use crate::ground::time::Instant;
use crate::url::UrlRef;
use queues::Queues;
pub use queues::{Found, Key, QueuesDone, QueuesJob, Search};
use scheduler::{Audited, Scheduler};
pub use scheduler::{
    Burst, GroupKind, Load, Origin, Price, Retirement, Rule, Server, ServerId, ServerState, Visit,
    Waiting, policy,
};
use snapshot::Snapshot;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Deref;
use std::time::Duration;
#[cfg(test)]
use tests::sabotage::{self, Sabotage};

/// The settings of the frontier, most of them from the configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The settings of the scheduler: policy, politeness and the cap on servers.
    pub scheduler: scheduler::Settings,
    /// The largest number of URLs in all queues together.
    pub urls_max: usize,
    /// The largest number of URLs in the queue of one server.
    pub urls_per_server_max: usize,
    /// The number of bytes that URLs may take in memory. URLs beyond it are written to disk.
    pub memory_bytes: usize,
    /// The number of the crawl whose files are kept under `state/`. If it is `None`, nothing is
    /// written to disk.
    pub crawl: Option<u64>,
    /// Checks whether bytes are a valid payload. It is called for what is read from disk.
    pub is_payload: fn(&[u8]) -> bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scheduler: scheduler::Settings::default(),
            urls_max: 10_000_000,
            urls_per_server_max: 1_000_000,
            memory_bytes: 512 << 20,
            crawl: None,
            is_payload: |_| true,
        }
    }
}

/// All servers and their queues. A queue has the same number as its server.
#[derive(Debug)]
pub struct Frontier {
    settings: Settings,
    scheduler: Scheduler,
    queues: Queues,
    /// Retired servers with URLs that [`Frontier::given_up`] may not have returned yet.
    given_up: VecDeque<ServerId>,
    snapshot: Option<Box<Snapshot>>,
    /// The number of servers in the snapshot that is being restored.
    restoring: usize,
    /// How many of the next calls of [`Frontier::next`] take a server whose record was prefetched
    /// already.
    prefetched: usize,
}

/// The outcome of [`Frontier::add_to`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The URL was added to the queue of its server.
    Queued,
    /// The URL was not added, because its server is retired for this reason.
    Retired(Retirement),
    /// The URL was not added, because the number of queued URLs has reached one of its caps.
    Full,
}

/// The number of bytes that one call of [`Frontier::take_in`] adds to the queues, of those that
/// jobs have read from disk.
const TAKE_IN_BYTES: usize = if cfg!(test) { 300 } else { 32 << 10 };

impl Frontier {
    /// Creates an empty frontier.
    pub fn new(settings: Settings) -> Self {
        let queues = Queues::new(queues_of(&settings));
        Self {
            scheduler: Scheduler::new(scheduler_of(&settings)),
            queues,
            settings,
            given_up: VecDeque::new(),
            snapshot: None,
            restoring: 0,
            prefetched: 0,
        }
    }

    /// Returns whether the server of `url` is known, or may be added within the cap on servers.
    pub fn has_room_for(&self, url: UrlRef<'_>) -> bool {
        called!(HasRoomFor(url.as_str().to_owned()));
        self.scheduler.has_room_for(url)
    }

    /// Prefetches the memory that queuing these URLs will read.
    ///
    /// The records of servers and queues are scattered in memory. If they are read one after
    /// another, the processor waits for each of them. If they are read in a batch, it waits for all
    /// of them at the same time. This changes the speed and nothing else.
    pub fn prefetch<'a>(&self, urls: impl Iterator<Item = UrlRef<'a>>) {
        self.prefetch_servers(&self.scheduler.guess(urls));
    }

    fn prefetch_servers(&self, ids: &scheduler::Batch) {
        self.scheduler.prefetch(ids);
        ids.iter().for_each(|id| self.queues.prefetch(id.0));
        self.scheduler.prefetch_more(ids);
        ids.iter().for_each(|id| self.queues.prefetch_more(id.0));
    }

    /// Returns the server of `url`, or `None` if that server is not known.
    pub fn find(&self, url: UrlRef<'_>) -> Option<ServerId> {
        called!(Find(url.as_str().to_owned()));
        self.scheduler.find(url)
    }

    /// Returns the server of `url`. If it is not known, it is added in state idle.
    pub fn server_of(&mut self, url: UrlRef<'_>) -> ServerId {
        called!(ServerOf(url.as_str().to_owned()));
        let id = self.scheduler.server_of(url);
        if id.index() == self.queues.count() {
            self.queues.add_queue();
            self.queues.set_counted(id.0, self.scheduler.counted(id));
        }
        id
    }

    /// Adds a URL to the queue of a server. A URL with `is_first` goes before all URLs without it,
    /// and the caps on queued URLs don't apply to it.
    pub fn add_to(
        &mut self,
        id: ServerId,
        is_first: bool,
        quality: Quality,
        payload: &[u8],
        now: Instant,
    ) -> Added {
        called!(AddTo(id, quality, payload.to_vec(), now));
        if let ServerState::Retired(why) = self.server(id).state() {
            return Added::Retired(why);
        }
        if self.is_full(Some(id)) && !is_first {
            return Added::Full;
        }
        #[cfg(test)]
        if sabotage::is(Sabotage::UrlsDropped)
            && payload.iter().map(|byte| u32::from(*byte)).sum::<u32>().is_multiple_of(50)
        {
            return Added::Queued;
        }
        self.queues.push(id.0, is_first, quality, payload);
        self.scheduler.set_waiting(id, self.waiting(id), now);
        self.follow_changes(now);
        Added::Queued
    }

    /// Changes the politeness, from the next visits on. `settings` must agree with the present ones
    /// in what [`scheduler::Settings::fixed_difference`] compares.
    pub fn set_politeness(&mut self, settings: &scheduler::Settings) {
        self.scheduler.set_politeness(settings);
    }

    /// Delays the first visit to each server that becomes known from now on until `until` at least.
    /// A restored crawl calls this, since the previous run may have visited such a server. An
    /// earlier `until` than the present one has no effect.
    pub fn keep_new_quiet(&mut self, until: Instant) {
        self.scheduler.keep_new_quiet(until);
    }

    /// Makes a server busy without a visit, even while it rests, so that the caller can take those
    /// URLs from its queue that need no request. [`Frontier::hand_back`] makes the server available
    /// again. Returns `false`, and changes nothing, if the server is busy or retired.
    pub fn open_queue(&mut self, id: ServerId, now: Instant) -> bool {
        called!(OpenQueue(id, now));
        self.scheduler.open(id, now)
    }

    /// Takes the server to be visited next and makes it busy. Returns `None` if no server may be
    /// visited now.
    pub fn next(&mut self, now: Instant) -> Option<ServerId> {
        called!(Next(now));
        if self.prefetched == 0 {
            let upcoming = self.scheduler.upcoming();
            self.prefetch_servers(&upcoming);
            self.prefetched = upcoming.len();
        }
        self.prefetched = self.prefetched.saturating_sub(1);
        self.scheduler.next(now)
    }

    /// Removes the next URL of a busy server from its queue and appends its payload to `out`.
    /// Returns `None` if the queue is empty or its next URL is still on disk. In that case the
    /// visit must end; the server becomes ready when the URL has been read.
    pub fn take(&mut self, id: ServerId, out: &mut Vec<u8>) -> Option<Key> {
        debug_assert_eq!(self.server(id).state(), ServerState::Busy, "URLs are taken in a visit");
        let key = self.queues.pop(id.0, out);
        called!(Take(id, key));
        key
    }

    /// Returns whether a visit under way should end because the best waiting server gives more than
    /// its next URL, which is of this quality. `pace` is the mean time of the visit's replies:
    /// see [`Scheduler::is_outbid`].
    pub fn is_outbid(
        &mut self,
        id: ServerId,
        quality: Quality,
        pace: Option<Duration>,
        now: Instant,
    ) -> bool {
        called!(IsOutbid(id, quality, now));
        self.scheduler.is_outbid(id, (quality.millionths(), pace), now)
    }

    /// Returns the rank of the best server that may be visited; `None` if none may be. See
    /// [`Scheduler::best`].
    pub fn best(&mut self, now: Instant) -> Option<scheduler::Rank> {
        called!(Best(now));
        self.scheduler.best(now)
    }

    /// Sets the price of the core's time, which the policy `yield` ranks servers by. The servers
    /// get it one by one: see [`Frontier::reprice_one`].
    pub fn set_price(&mut self, price: Price) {
        if self.settings.scheduler.schedule.policy.ends_early() {
            called!(SetPrice(price));
            self.scheduler.set_price(price);
        }
    }

    /// Ranks the next server again at the latest price. Returns `false` if all servers are ranked
    /// by it.
    pub fn reprice_one(&mut self, now: Instant) -> bool {
        called!(RepriceOne(now));
        let Some(id) = self.scheduler.next_repriced() else { return false };
        if !matches!(self.server(id).state(), ServerState::Idle | ServerState::Retired(_)) {
            self.scheduler.set_waiting(id, self.waiting(id), now);
        }
        true
    }

    /// Returns whether the next URL of a server is in memory.
    pub fn has_next(&self, id: ServerId) -> bool {
        called!(HasNext(id));
        self.queues.is_at_hand(id.0)
    }

    /// Returns whether the queue of a server has a URL that goes before the one with key `than`,
    /// which was taken from it.
    pub fn has_better(&self, id: ServerId, than: Key) -> bool {
        called!(HasBetter(id, than));
        self.queues.has_better(id.0, than)
    }

    /// Returns the key of the next URL of a server, or `None` if that URL is not in memory.
    pub fn next_key(&self, id: ServerId) -> Option<Key> {
        self.queues.next_key(id.0)
    }

    /// Returns the number of URLs in the queue of a server, in memory and on disk.
    pub fn queue_len(&self, id: ServerId) -> usize {
        self.queues.len(id.0)
    }

    /// Puts a URL back in its former place in the queue that it was taken from. The server must be
    /// busy.
    pub fn give_back(&mut self, id: ServerId, key: Key, payload: &[u8]) {
        called!(GiveBack(id, key));
        assert_eq!(self.server(id).state(), ServerState::Busy, "URLs are given back in a visit");
        self.queues.put_back(id.0, key, payload);
    }

    /// Adds a URL that was taken to the queue again. Under a policy that orders URLs by quality it
    /// goes behind all of equal quality, under the others behind all URLs of the server. One that
    /// `is_first` still goes before all that are not. The server must be busy.
    pub fn put_off(&mut self, id: ServerId, is_first: bool, quality: Quality, payload: &[u8]) {
        called!(PutOff(id, payload.to_vec()));
        assert_eq!(self.server(id).state(), ServerState::Busy, "URLs are put off in a visit");
        self.queues.push(id.0, is_first, quality, payload);
    }

    /// Adds a busy server to the group of the IP address that its name resolved to. Returns `false`
    /// if that group doesn't admit a visit now; [`Frontier::hand_back`] must follow.
    pub fn bind(&mut self, id: ServerId, address: IpAddr, now: Instant) -> bool {
        called!(Bind(id, address, now));
        self.scheduler.bind(id, address, now)
    }

    /// Records that a busy server is about to be connected to, for the first time in this visit
    /// (`is_first`) or at another address. Returns `false` if another visit to its domain or
    /// address has begun since the server was taken; [`Frontier::hand_back`] must follow.
    pub fn begin(&mut self, id: ServerId, is_first: bool, now: Instant) -> bool {
        called!(Begin(id, is_first, now));
        self.scheduler.begin(id, is_first, now)
    }

    /// Ends a visit that made no request, or closes a queue that [`Frontier::open_queue`] opened.
    /// No rest follows, and the server keeps its place among servers of equal rank.
    pub fn hand_back(&mut self, id: ServerId, now: Instant) {
        called!(HandBack(id, now));
        self.copy_before_change(id);
        self.scheduler.hand_back(id, self.waiting(id), now);
        self.follow_changes(now);
    }

    /// Ends a visit. The server rests for as long as the settings ask for, and at least until
    /// `visit.not_before`. Returns the instant from which it may be visited again.
    pub fn finish(&mut self, id: ServerId, visit: &Visit, now: Instant) -> Instant {
        called!(Finish(id, *visit, now));
        self.copy_before_change(id);
        self.keep_host_clock(id);
        let queues = &mut self.queues;
        let due = self.scheduler.finish(id, visit, now, |counted| {
            queues.set_counted(id.0, counted);
            waiting_in(queues, id)
        });
        self.follow_changes(now);
        due
    }

    /// Returns the rule that decides when a server is due after `visit`, which has ended.
    pub fn rule(&self, id: ServerId, visit: &Visit) -> Rule {
        self.scheduler.rule(id, visit)
    }

    /// Returns the pace of a server: the burst and the rests of its site, or those of the crawl.
    pub fn pace(&self, id: ServerId) -> scheduler::Pace {
        self.scheduler.pace(id)
    }

    /// Records whether a connection to a server is parked (kept open between two visits), which
    /// makes the next visit cheaper.
    pub fn set_parked(&mut self, id: ServerId, is_parked: bool, now: Instant) {
        called!(SetParked(id, is_parked, now));
        let queues = &self.queues;
        self.scheduler.set_parked(id, is_parked, now, || waiting_in(queues, id));
    }

    /// Lets a server go ahead of all that aren't called, until its next visit ends. Servers that a
    /// snapshot restores aren't called.
    pub fn call(&mut self, id: ServerId, now: Instant) {
        called!(GoAhead(id, now));
        self.scheduler.call(id, self.waiting(id), now);
    }

    /// Postpones the next visit to a server until `until` at least. The server must not be busy.
    pub fn snooze(&mut self, id: ServerId, until: Instant, now: Instant) {
        called!(Snooze(id, until, now));
        self.copy_before_change(id);
        self.scheduler.snooze(id, until, now);
    }

    /// Cancels a [`Frontier::snooze`]: the server may be visited from `due` on.
    pub fn rouse(&mut self, id: ServerId, due: Instant, now: Instant) {
        called!(Rouse(id, due, now));
        self.copy_before_change(id);
        self.scheduler.rouse(id, due, now);
    }

    /// Retires a server, so that it is not visited again. [`Frontier::given_up`] returns its URLs
    /// one by one, so that each of them gets its line in the log.
    pub fn retire(&mut self, id: ServerId, why: Retirement, now: Instant) {
        called!(Retire(id, now));
        self.copy_before_change(id);
        self.scheduler.retire(id, why, now);
        self.queues.set_counted(id.0, usize::MAX); // so that all its URLs are read from disk
        self.given_up.push_back(id);
    }

    /// Returns whether [`Frontier::given_up`] may have a URL to return.
    pub fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Removes one URL of a retired server from its queue, appends its payload to `out`, and
    /// returns the server and the URL's key. URLs that are on disk follow after a job has read them
    /// ([`Frontier::worked`]).
    pub fn given_up(&mut self, out: &mut Vec<u8>) -> Option<(ServerId, Key)> {
        called!(GivenUp);
        while let Some(&id) = self.given_up.front() {
            // The server may have been reinstated since.
            if let ServerState::Retired(_) = self.server(id).state()
                && let Some(key) = self.queues.pop_any(id.0, out)
            {
                return Some((id, key));
            }
            self.given_up.pop_front();
        }
        None
    }

    /// Makes a retired server idle again, so that it can have URLs. Its queue must be empty.
    pub fn reinstate(&mut self, id: ServerId) {
        called!(Reinstate(id));
        assert_eq!(self.queue_len(id), 0, "its URLs have left its queue");
        self.copy_before_change(id);
        self.scheduler.reinstate(id);
        self.queues.set_counted(id.0, self.scheduler.counted(id));
    }

    /// Sets the Crawl-delay of a server's robots.txt; `None` means that it has none.
    pub fn set_crawl_delay(&mut self, id: ServerId, delay: Option<Duration>, now: Instant) {
        called!(SetCrawlDelay(id, delay, now));
        self.copy_before_change(id);
        let queues = &mut self.queues;
        self.scheduler.set_crawl_delay(id, delay, now, |counted| {
            queues.set_counted(id.0, counted);
            waiting_in(queues, id)
        });
    }

    /// Searches the queue of a server for a URL, without taking it: see [`Queues::find`].
    ///
    /// # Errors
    /// The disk reports an error, or a chunk is damaged.
    pub fn search(
        &self,
        id: ServerId,
        is_it: &mut dyn FnMut(&[u8]) -> bool,
        bytes_max: usize,
        disk: &mut dyn Disk,
    ) -> Result<(Search, usize), frame::Error> {
        self.queues.find(id.0, is_it, bytes_max, disk)
    }

    /// Returns whether the queue of a server takes no more URLs, because a cap is reached.
    pub fn is_full(&self, id: Option<ServerId>) -> bool {
        let own = id.map_or(0, |id| self.queue_len(id));
        self.urls() >= self.settings.urls_max || own >= self.settings.urls_per_server_max
    }

    /// Returns the number of URLs in all queues.
    pub fn urls(&self) -> usize {
        self.queues.urls()
    }

    /// Returns the number of URLs that were ever queued, which is the arrival number of the last.
    pub fn arrivals(&self) -> u64 {
        self.queues.arrivals()
    }

    /// Returns the number of bytes that URLs take in memory.
    pub fn memory_bytes(&self) -> usize {
        self.queues.memory_bytes()
    }

    /// Returns two numbers of bytes: the size of all segments on disk, and the size of the chunks
    /// in them that are still needed.
    pub fn disk_bytes(&self) -> (u64, u64) {
        self.queues.disk_bytes()
    }

    /// Writes buffered chunks of URLs to disk. If `all`, writes all of them, otherwise only when
    /// there are enough bytes for an append.
    ///
    /// # Errors
    /// The error of the disk. Nothing is lost, and the call may be repeated.
    pub fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        called!(Write(all));
        self.queues.write(all, disk)
    }

    /// Returns the next job, or `None` if there is nothing to do. A job reads URLs from disk and
    /// may run on another thread. At most one job exists at a time.
    pub fn job(&mut self, disk: &dyn Disk) -> Option<QueuesJob> {
        called!(Job);
        self.queues.job(disk)
    }

    /// Accepts the result of a job. [`Frontier::take_in`] must be called afterwards, once in each
    /// turn until [`Frontier::has_read`] returns false.
    ///
    /// # Errors
    /// The error of the disk. No URL is lost: those that the job should have read are still on
    /// disk.
    pub fn worked(&mut self, done: QueuesDone) -> Result<(), disk::Error> {
        called!(Worked);
        self.queues.worked(done)
    }

    /// Returns whether a job has read URLs that are not in their queues yet.
    pub fn has_read(&self) -> bool {
        self.queues.has_read()
    }

    /// Adds some of the URLs that a job has read to their queues.
    ///
    /// # Errors
    /// The damage that was found in a segment. The URLs are still where they were.
    pub fn take_in(&mut self, now: Instant) -> Result<(), frame::Error> {
        called!(TakeIn(now));
        let taken = self.queues.take_in(TAKE_IN_BYTES);
        self.follow_changes(now);
        Ok(taken?)
    }

    /// Checks that no server in the ready queue goes before a better one. This reads all servers,
    /// and is for simulations and tests.
    ///
    /// # Errors
    /// A message that names the first server that is out of place, and the reason.
    pub fn audit(&self) -> Result<(), String> {
        self.scheduler.audit(|id| Audited {
            urls: self.queue_len(id),
            best: self.queues.best_qualities(id.0),
        })
    }

    fn waiting(&self, id: ServerId) -> Waiting {
        waiting_in(&self.queues, id)
    }

    /// Reports to the scheduler each queue that changed as a side effect, such as a read from disk
    /// or an eviction, and not because a call named its server.
    fn follow_changes(&mut self, now: Instant) {
        while let Some(number) = self.queues.next_changed() {
            let id = ServerId(number);
            if let ServerState::Retired(_) = self.server(id).state() {
                self.given_up.push_back(id);
                continue;
            }
            self.queues.set_counted(number, self.scheduler.counted(id));
            self.scheduler.set_waiting(id, self.waiting(id), now);
        }
    }
}

/// Gives read access to the scheduler, so that its queries need no wrappers here.
impl Deref for Frontier {
    type Target = Scheduler;

    fn deref(&self) -> &Scheduler {
        &self.scheduler
    }
}

fn waiting_in(queues: &Queues, id: ServerId) -> Waiting {
    let (urls, at_hand, best_sum) = queues.waiting(id.0);
    Waiting { urls: u32::try_from(urls).unwrap_or(u32::MAX), at_hand, best_sum }
}

fn scheduler_of(settings: &Settings) -> scheduler::Settings {
    scheduler::Settings { seed: settings.crawl.unwrap_or(0), ..settings.scheduler.clone() }
}

fn queues_of(settings: &Settings) -> queues::Settings {
    let by_quality = settings.scheduler.schedule.policy.is_by_quality();
    queues::Settings {
        order: if by_quality { queues::Order::Quality } else { queues::Order::Arrival },
        memory_bytes: settings.memory_bytes,
        crawl: settings.crawl,
        is_payload: settings.is_payload,
    }
}
