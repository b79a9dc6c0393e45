//! The frontier: all URLs known and not yet fetched, and which server is visited next.
//!
//! Two parts that don't know each other: the [`scheduler`] holds servers and decides which of them
//! is visited next; the [`queues`] hold what waits at each, as bytes with a priority. This file
//! joins them: it tells the scheduler what a queue has, whenever that changes.
//!
//! Laws (tested against a naive model, for each policy): no URL is lost or duplicated; no two
//! visits to a server or a group are closer than its rest; caps of groups hold; a server is taken
//! only if its next URL is in memory, and is the best of those that may be visited now; nothing
//! scans all servers.
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
pub use queues::{Key, QueuesDone, QueuesJob};
use scheduler::{Audited, Scheduler};
pub use scheduler::{
    Burst, Origin, Retirement, Server, ServerId, ServerState, Visit, Waiting, policy,
};
use snapshot::Snapshot;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Deref;
use std::time::Duration;
#[cfg(test)]
use tests::sabotage::{self, Sabotage};

/// What an operator sets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of the scheduler.
    pub scheduler: scheduler::Settings,
    /// URLs queued in all, at most.
    pub urls_max: usize,
    /// URLs queued for one server, at most.
    pub urls_per_server_max: usize,
    /// Bytes of URLs in memory; what is beyond goes to the disk.
    pub memory_bytes: usize,
    /// Number of the crawl whose files are kept under `state/`; `None`: nothing goes to the disk.
    pub crawl: Option<u64>,
    /// Whether bytes are a payload: asked of what comes from the disk.
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

/// Servers and their queues. The queue of a server has its number.
#[derive(Debug)]
pub struct Frontier {
    settings: Settings,
    scheduler: Scheduler,
    queues: Queues,
    /// Retired servers that may have URLs in memory, which are yet to be reported.
    given_up: VecDeque<ServerId>,
    snapshot: Option<Box<Snapshot>>,
    /// Servers that a snapshot has which is being restored.
    restoring: usize,
    /// How many of the next visits are to servers that were prefetched.
    prefetched: usize,
}

/// What became of a URL that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It waits in the queue of its server.
    Queued,
    /// Its server is retired: why.
    Retired(Retirement),
    /// A cap on queued URLs is reached.
    Full,
}

/// Bytes of what jobs have read that are taken in in one turn.
const TAKE_IN_BYTES: usize = if cfg!(test) { 300 } else { 32 << 10 };

impl Frontier {
    /// An empty frontier.
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

    /// Whether the server of `url` is known, or may be added.
    pub fn has_room_for(&self, url: UrlRef<'_>) -> bool {
        called!(HasRoomFor(url.as_str().to_owned()));
        self.scheduler.has_room_for(url)
    }

    /// Prefetches what queuing these URLs will read. The records of servers and queues lie anywhere
    /// in memory. Read one after another each of them is waited for; read in a batch they are
    /// waited for side by side. Nothing but time depends on it.
    pub fn prefetch<'a>(&self, urls: impl Iterator<Item = UrlRef<'a>>) {
        self.prefetch_servers(&self.scheduler.guess(urls));
    }

    fn prefetch_servers(&self, ids: &scheduler::Batch) {
        self.scheduler.prefetch(ids);
        ids.iter().for_each(|id| self.queues.prefetch(id.0));
        self.scheduler.prefetch_more(ids);
        ids.iter().for_each(|id| self.queues.prefetch_more(id.0));
    }

    /// The server of `url`, if it is known.
    pub fn find(&self, url: UrlRef<'_>) -> Option<ServerId> {
        called!(Find(url.as_str().to_owned()));
        self.scheduler.find(url)
    }

    /// The server of `url`; a new one is idle.
    pub fn server_of(&mut self, url: UrlRef<'_>) -> ServerId {
        called!(ServerOf(url.as_str().to_owned()));
        let id = self.scheduler.server_of(url);
        if id.index() == self.queues.count() {
            self.queues.add_queue();
            self.queues.set_counted(id.0, self.scheduler.counted(id));
        }
        id
    }

    /// Queues a URL at a server. One that `is_first` goes before all others, and past the caps.
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
        let full = self.urls() >= self.settings.urls_max
            || self.queue_len(id) >= self.settings.urls_per_server_max;
        if full && !is_first {
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

    /// Extends that time.
    pub fn keep_new_quiet(&mut self, until: Instant) {
        self.scheduler.keep_new_quiet(until);
    }

    /// Makes a server busy outside a visit, whatever rest is owed, so that URLs can be taken from
    /// its queue that need no request. [`Frontier::hand_back`] ends that. `false` if it is busy or
    /// retired.
    pub fn open_queue(&mut self, id: ServerId, now: Instant) -> bool {
        called!(OpenQueue(id, now));
        self.scheduler.open(id, now)
    }

    /// Takes the server to be visited next, which is busy from here on; `None` if none may be
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

    /// Takes the next URL of a busy server and appends its payload to `out`; `None` if there is
    /// none, or if it is still on disk: then the visit ends, and the server is ready when it has
    /// been read.
    pub fn take(&mut self, id: ServerId, out: &mut Vec<u8>) -> Option<Key> {
        debug_assert_eq!(self.server(id).state(), ServerState::Busy, "URLs are taken in a visit");
        let key = self.queues.pop(id.0, out);
        called!(Take(id, key));
        key
    }

    /// Whether the next URL of a server is in memory.
    pub fn has_next(&self, id: ServerId) -> bool {
        called!(HasNext(id));
        self.queues.is_at_hand(id.0)
    }

    /// Whether a URL that waits at a server goes before one that was taken, with this key.
    pub fn has_better(&self, id: ServerId, than: Key) -> bool {
        called!(HasBetter(id, than));
        self.queues.has_better(id.0, than)
    }

    /// The key of the next URL of a server, if that is in memory.
    pub fn next_key(&self, id: ServerId) -> Option<Key> {
        self.queues.next_key(id.0)
    }

    /// URLs that wait at a server.
    pub fn queue_len(&self, id: ServerId) -> usize {
        self.queues.len(id.0)
    }

    /// Puts a URL back to where it was taken from, before the visit ends.
    pub fn give_back(&mut self, id: ServerId, key: Key, payload: &[u8]) {
        called!(GiveBack(id, key));
        assert_eq!(self.server(id).state(), ServerState::Busy, "URLs are given back in a visit");
        self.queues.put_back(id.0, key, payload);
    }

    /// Queues a URL again, before the visit ends: behind all others of its server, or by quality
    /// behind all equal ones.
    pub fn put_off(&mut self, id: ServerId, is_first: bool, quality: Quality, payload: &[u8]) {
        called!(PutOff(id, payload.to_vec()));
        assert_eq!(self.server(id).state(), ServerState::Busy, "URLs are put off in a visit");
        self.queues.push(id.0, is_first, quality, payload);
    }

    /// Binds a server to the group of the address at which it is reached. `false` if that group
    /// doesn't admit it now: [`Frontier::hand_back`] must follow.
    pub fn bind(&mut self, id: ServerId, address: IpAddr, now: Instant) -> bool {
        called!(Bind(id, address, now));
        self.scheduler.bind(id, address, now)
    }

    /// A server is about to be connected to, for the first time in this visit or at another
    /// address. `false` if another visit to its domain or address began since it was taken:
    /// [`Frontier::hand_back`] must follow.
    pub fn begin(&mut self, id: ServerId, is_first: bool, now: Instant) -> bool {
        called!(Begin(id, is_first, now));
        self.scheduler.begin(id, is_first, now)
    }

    /// Ends a visit that made no request. No rest is owed, and the server keeps its place among
    /// those of equal rank.
    pub fn hand_back(&mut self, id: ServerId, now: Instant) {
        called!(HandBack(id, now));
        self.copy_before_change(id);
        self.scheduler.hand_back(id, self.waiting(id), now);
        self.follow_changes(now);
    }

    /// Ends a visit. The server rests as long as it owes, and at least until `visit.not_before`.
    /// Returns the instant from which it may be visited again.
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

    /// Records whether a connection to a server is kept open between two visits, which makes the
    /// next one cheaper.
    pub fn set_parked(&mut self, id: ServerId, is_parked: bool, now: Instant) {
        called!(SetParked(id, is_parked, now));
        self.scheduler.set_parked(id, is_parked, self.waiting(id), now);
    }

    /// Postpones the next visit to a server until `until` at least. It must not be busy.
    pub fn snooze(&mut self, id: ServerId, until: Instant, now: Instant) {
        called!(Snooze(id, until, now));
        self.copy_before_change(id);
        self.scheduler.snooze(id, until, now);
    }

    /// Takes back a [`Frontier::snooze`]: the server is visited from `due` on.
    pub fn rouse(&mut self, id: ServerId, due: Instant, now: Instant) {
        called!(Rouse(id, due, now));
        self.copy_before_change(id);
        self.scheduler.rouse(id, due, now);
    }

    /// Gives a server up. Its URLs are reported one by one by [`Frontier::given_up`], so that each
    /// gets its line in the log.
    pub fn retire(&mut self, id: ServerId, why: Retirement, now: Instant) {
        called!(Retire(id, now));
        self.copy_before_change(id);
        self.scheduler.retire(id, why, now);
        self.queues.set_counted(id.0, usize::MAX); // all of it is to be read
        self.given_up.push_back(id);
    }

    /// Whether [`Frontier::given_up`] may have a URL.
    pub fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Takes a URL of a server that was retired. Those on disk come after they were read:
    /// [`Frontier::worked`].
    pub fn given_up(&mut self, out: &mut Vec<u8>) -> Option<(ServerId, Key)> {
        called!(GivenUp);
        while let Some(&id) = self.given_up.front() {
            // It may have been reinstated.
            if let ServerState::Retired(_) = self.server(id).state()
                && let Some(key) = self.queues.pop_any(id.0, out)
            {
                return Some((id, key));
            }
            self.given_up.pop_front();
        }
        None
    }

    /// A server that was retired may have URLs again. Its queue must be empty.
    pub fn reinstate(&mut self, id: ServerId) {
        called!(Reinstate(id));
        assert_eq!(self.queue_len(id), 0, "its URLs have left its queue");
        self.copy_before_change(id);
        self.scheduler.reinstate(id);
        self.queues.set_counted(id.0, self.scheduler.counted(id));
    }

    /// Sets the delay that the server's robots.txt asks for.
    pub fn set_crawl_delay(&mut self, id: ServerId, delay: Option<Duration>, now: Instant) {
        called!(SetCrawlDelay(id, delay, now));
        self.copy_before_change(id);
        let queues = &mut self.queues;
        self.scheduler.set_crawl_delay(id, delay, now, |counted| {
            queues.set_counted(id.0, counted);
            waiting_in(queues, id)
        });
    }

    /// URLs that wait in all queues.
    pub fn urls(&self) -> usize {
        self.queues.urls()
    }

    /// Bytes of URLs in memory.
    pub fn memory_bytes(&self) -> usize {
        self.queues.memory_bytes()
    }

    /// Bytes of all segments on disk, and of the chunks in them that are needed.
    pub fn disk_bytes(&self) -> (u64, u64) {
        self.queues.disk_bytes()
    }

    /// Brings what waits to be written to the disk: all, or if it is enough for an append.
    ///
    /// # Errors
    /// The disk's: nothing is lost, and this may be called again.
    pub fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        called!(Write(all));
        self.queues.write(all, disk)
    }

    /// The next job, if there is one: at most one at a time.
    pub fn job(&mut self, disk: &dyn Disk) -> Option<QueuesJob> {
        called!(Job);
        self.queues.job(disk)
    }

    /// A job is done: [`Frontier::take_in`] is to follow, once in each turn until nothing is left.
    ///
    /// # Errors
    /// The disk's. The URLs are where they were.
    pub fn worked(&mut self, done: QueuesDone) -> Result<(), disk::Error> {
        called!(Worked);
        self.queues.worked(done)
    }

    /// Whether something that was read is to be taken in.
    pub fn has_read(&self) -> bool {
        self.queues.has_read()
    }

    /// Takes in some of what a job has read.
    ///
    /// # Errors
    /// What is wrong with a segment. The URLs are where they were.
    pub fn take_in(&mut self, now: Instant) -> Result<(), frame::Error> {
        called!(TakeIn(now));
        let taken = self.queues.take_in(TAKE_IN_BYTES);
        self.follow_changes(now);
        Ok(taken?)
    }

    /// Checks that no server goes before a better one.
    ///
    /// # Errors
    /// The first server that is out of place, and why.
    pub fn audit(&self) -> Result<(), String> {
        self.scheduler.audit(|id| Audited {
            urls: self.queue_len(id),
            best: self.queues.best_qualities(id.0),
        })
    }

    fn waiting(&self, id: ServerId) -> Waiting {
        waiting_in(&self.queues, id)
    }

    /// Reports to the scheduler what changed in queues that no call had named.
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

/// What the scheduler knows can be read from it.
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
