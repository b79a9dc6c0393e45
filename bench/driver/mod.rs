//! The frontier as the engine drives it: every bench of it goes through here.
//!
//! Each step makes the calls that the engine makes at that point, in its order (`engine/fresh.rs`,
//! `engine/visit.rs`, `engine/remember.rs`), in a crawl without trouble: every name has an address,
//! every robots.txt is known and allows all, every reply is good, and requests are not pipelined.
//! `study/driven.rs` holds these calls equal to those of an engine that crawls a small web.
//! Calls that only read a number or a record (`urls`, `server`, `origin`, `burst`, ...) are left
//! out.
//!
//! Nothing of the frontier's is in the interface but the policy: servers are numbers. [`crawl`]
//! makes a crawl of these steps.

#![allow(dead_code, reason = "no bench needs all of it")]

pub(crate) mod crawl;

use std::hint::black_box;
use std::net::IpAddr;
use std::time::Duration;
use sted::engine::backlog::{Backlog, Parts, Purpose, Queued};
use sted::frontier::{ServerId, Settings, Visit};
use sted::ground::disk::Disk;
use sted::ground::quality::Quality;
use sted::ground::time::{Instant, Now};
use sted::url::UrlRef;

pub(crate) use sted::frontier::policy::Policy;
pub(crate) use sted::frontier::{QueuesDone as JobDone, QueuesJob as Job};

/// Requests that servers allow on a connection.
pub(crate) const ALLOWANCE: u32 = 100;

/// What waits, and the steps that the engine takes with it.
#[derive(Debug)]
pub(crate) struct Driver {
    backlog: Backlog,
}

/// A URL that the seen test has let out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) url: UrlRef<'a>,
    /// The page it was found on; empty if there is none.
    pub(crate) via: &'a str,
    pub(crate) quality: Quality,
    /// Links from a seed to here.
    pub(crate) depth: u16,
    /// How it was found, as in the crawl log.
    pub(crate) letter: u8,
}

/// What a visit has measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) requests: u32,
    /// `None` if the connection was kept from the visit before.
    pub(crate) connect_time: Option<Duration>,
    pub(crate) response_time: Duration,
}

impl Driver {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { backlog: Backlog::new(&settings, None) }
    }

    /// A server comes to be known, without a URL.
    pub(crate) fn meet(&mut self, url: UrlRef<'_>) -> u32 {
        self.backlog.server_of(url).0
    }

    /// URLs are queued, one after the other.
    pub(crate) fn found(&mut self, urls: &[Found<'_>], now: Instant) {
        for urls in urls.chunks(16) {
            self.backlog.prefetch(urls.iter().map(|found| found.url));
            urls.iter().for_each(|found| self.queue(found, now));
        }
    }

    fn queue(&mut self, found: &Found<'_>, now: Instant) {
        let id = match self.backlog.find(found.url) {
            Some(id) => id,
            None => {
                assert!(self.backlog.has_room_for(found.url), "there is room");
                self.backlog.server_of(found.url)
            }
        };
        let parts = Parts {
            found_as: found.letter,
            hops: 0,
            tries: 0,
            is_late: false,
            depth: found.depth,
            requisite: 0,
            purpose: Purpose::Page,
            target: found.url.target(),
            via: (!found.via.is_empty()).then_some(found.via),
            known: &[],
        };
        let added = self.backlog.add_to(id, &parts, found.quality, now);
        assert!(matches!(added, Queued::Waits), "there is room");
    }

    /// Begins the visit of the next server that has a URL at hand.
    pub(crate) fn next(&mut self, now: Instant) -> Option<u32> {
        loop {
            let id = self.backlog.next(now)?;
            self.weed(id);
            if self.backlog.has_next(id) {
                return Some(id.0);
            }
            self.backlog.hand_back(id, now);
        }
    }

    /// Asks for a connection to a server under visit, in place of the parked one to `unwanted`.
    /// `false` if its address admits no visit now, which ends this one.
    pub(crate) fn connect(
        &mut self,
        server: u32,
        address: IpAddr,
        unwanted: Option<u32>,
        now: Instant,
    ) -> bool {
        let id = ServerId(server);
        let mut begins = self.backlog.bind(id, address, now);
        if begins {
            unwanted.into_iter().for_each(|other| self.close(other, now));
            begins = self.backlog.begin(id, true, now);
        }
        if !begins {
            self.backlog.hand_back(id, now);
        }
        begins
    }

    /// The visit takes the parked connection of its server. `false` as for [`Driver::connect`].
    pub(crate) fn reuse(&mut self, server: u32, now: Instant) -> bool {
        let id = ServerId(server);
        let begins = self.backlog.begin(id, true, now);
        match begins {
            true => self.backlog.set_parked(id, false, now),
            false => self.backlog.hand_back(id, now),
        }
        begins
    }

    /// Takes the next URL to be asked for; `None` if there is none at hand. Of what it is made only
    /// the quality is of use here.
    pub(crate) fn take(&mut self, server: u32) -> Option<Quality> {
        let id = ServerId(server);
        if self.look(id) {
            self.weed(id);
        }
        self.backlog.take(id).map(|item| item.quality)
    }

    /// As [`Driver::take`], but the next to be asked for is the server's robots.txt.
    pub(crate) fn ask_robots(&mut self, server: u32) {
        self.look(ServerId(server)); // is it a robots.txt?
    }

    /// That is known.
    pub(crate) fn robots_known(&mut self, server: u32, delay: Option<Duration>, now: Instant) {
        self.backlog.set_crawl_delay(ServerId(server), delay, now);
    }

    /// The candidate of a visit is judged: it is allowed.
    fn weed(&mut self, id: ServerId) {
        if self.look(id) {
            self.look(id); // a hop of a chain that is over?
            self.look(id); // forbidden?
        }
    }

    /// Looks at the candidate; `false` if there is none.
    fn look(&mut self, id: ServerId) -> bool {
        black_box(self.backlog.peek(id)).is_some()
    }

    /// Ends a visit, whose connection is parked or closed.
    pub(crate) fn finish(&mut self, server: u32, measured: Measured, parks: bool, now: Instant) {
        let visit = Visit {
            connect_time: measured.connect_time,
            replies: measured.requests,
            response_time: measured.response_time,
            allowance: ALLOWANCE,
            ..Visit::new(measured.requests, now, now)
        };
        self.finish_as(server, &visit, parks, now);
    }

    /// The same with all that is known of the visit.
    pub(crate) fn finish_as(&mut self, server: u32, visit: &Visit, parks: bool, now: Instant) {
        let id = ServerId(server);
        self.backlog.finish(id, visit, now);
        if parks {
            black_box(self.backlog.has_next(id));
            self.backlog.set_parked(id, true, now);
        }
    }

    /// The parked connection of a server is closed.
    pub(crate) fn close(&mut self, server: u32, now: Instant) {
        self.backlog.set_parked(ServerId(server), false, now);
    }

    /// What was read comes into the queues: at the beginning of a turn.
    pub(crate) fn take_in(&mut self, now: Instant) {
        self.backlog.take_in(now).expect("the disk is whole");
    }

    /// Ends of queues go to the disk: at the end of a turn.
    pub(crate) fn write(&mut self, disk: &mut dyn Disk) {
        self.backlog.write(false, disk).expect("there is room");
    }

    /// The next job, if there is one: after that.
    pub(crate) fn job(&mut self, disk: &dyn Disk) -> Option<Job> {
        self.backlog.job(disk)
    }

    /// The job is done.
    pub(crate) fn worked(&mut self, done: JobDone) {
        self.backlog.worked(done).expect("the disk is whole");
    }

    /// Writes all that is known into a file, and removes the files that are of no use after it.
    pub(crate) fn checkpoint(&mut self, name: &str, disk: &mut dyn Disk, now: Instant) {
        self.backlog.write(true, disk).expect("there is room");
        self.backlog.begin_snapshot(Vec::new(), Now { at: now, ..Now::default() });
        self.backlog.mark(disk).expect("there is room");
        let mut out = Vec::new();
        while !self.backlog.snapshot_some(1 << 20, &mut out) {
            disk.append(name, &out).expect("there is room");
            out.clear();
        }
        self.backlog
            .on_durable()
            .iter()
            .for_each(|name| disk.remove(name).expect("it was written"));
    }

    /// Whether something that was read is to be taken in.
    pub(crate) fn has_read(&self) -> bool {
        self.backlog.has_read()
    }

    /// When the next rest is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.backlog.deadline()
    }

    /// URLs that wait.
    pub(crate) fn urls(&self) -> usize {
        self.backlog.urls()
    }

    /// Bytes of URLs in memory, as far as they are counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.backlog.memory_bytes()
    }

    /// Bytes of all files of queues.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.backlog.disk_bytes().0
    }
}
