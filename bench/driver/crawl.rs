//! A crawl without a network, by the steps of the engine: URLs are found, servers are visited one
//! after the other, a microsecond each.
//!
//! As on the open web servers rest between two visits, far longer than a connection can be parked:
//! most slots are busy, so [`SLOTS`] are left for those. A server has always the same slot, and its
//! connection is closed when another one's visit needs that.

use super::{ALLOWANCE, Driver, Found, Job, JobDone, Measured, Policy};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use sted::frontier::{Burst, Settings, policy, scheduler};
use sted::ground::disk::Disk;
use sted::ground::time::Instant;
use sted::url::UrlRef;

/// Connections that can be parked.
const SLOTS: usize = 64;
/// One visit after the other.
const STEP: Duration = Duration::from_micros(1);

/// What a crawl is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) policy: Policy,
    /// Requests of a visit; `None`: as many as a server allows on a connection, without a rest.
    pub(crate) burst: Option<u32>,
    /// Visits to others between two of one server, for each of its requests.
    pub(crate) rest: u32,
    /// Bytes of URLs in memory; past it queues go to the disk. `None`: nothing goes there.
    pub(crate) memory_bytes: Option<usize>,
}

/// A crawl.
#[derive(Debug)]
pub(crate) struct Crawl {
    driver: Driver,
    /// Requests of a visit.
    burst: u32,
    now: Instant,
    /// Which servers' connections are parked, and how many requests they have had.
    slots: [Option<(u32, u32)>; SLOTS],
    random: Random,
    pub(crate) checksum: u64,
    pub(crate) visits: u64,
}

impl Plan {
    /// One URL a visit, as on the open web, nothing on disk.
    pub(crate) fn of(policy: Policy) -> Self {
        Self { policy, burst: Some(1), rest: 1_000, memory_bytes: None }
    }

    fn settings(&self) -> Settings {
        let rest = self.burst.map_or(0, |_| self.rest);
        let scheduler = scheduler::Settings {
            schedule: policy::Settings { policy: self.policy, ..policy::Settings::default() },
            burst: self.burst.map_or(Burst::Server, Burst::Requests),
            delay: STEP * rest,
            delay_factor_milli: 0,
            domain_visits_max: 0,
            servers_max: usize::MAX,
            ..scheduler::Settings::default()
        };
        Settings {
            scheduler,
            urls_max: usize::MAX,
            urls_per_server_max: usize::MAX,
            memory_bytes: self.memory_bytes.unwrap_or(usize::MAX),
            crawl: self.memory_bytes.map(|_| 1),
            ..Settings::default()
        }
    }
}

impl Crawl {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            driver: Driver::new(plan.settings()),
            burst: plan.burst.unwrap_or(ALLOWANCE),
            now: Instant::from_micros(1),
            slots: [None; SLOTS],
            random: Random(0x9e37_79b9_7f4a_7c15),
            checksum: 0,
            visits: 0,
        }
    }

    /// A server comes to be known, without a URL.
    pub(crate) fn meet(&mut self, url: UrlRef<'_>) {
        self.driver.meet(url);
    }

    /// URLs are queued.
    pub(crate) fn found(&mut self, urls: &[Found<'_>]) {
        self.driver.found(urls, self.now);
    }

    /// Visits the next server, for at most so many URLs; how many were taken, or `None` if nobody
    /// may be visited now.
    pub(crate) fn visit(&mut self, most: u64) -> Option<u32> {
        self.now = self.now + STEP;
        let server = self.driver.next(self.now)?;
        let slot = server as usize % SLOTS;
        let parked = self.slots[slot].take();
        let kept = parked.filter(|(other, _)| *other == server);
        let begins = match kept {
            Some(_) => self.driver.reuse(server, self.now),
            None => {
                let address = IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + server));
                let unwanted = parked.map(|(other, _)| other);
                self.driver.connect(server, address, unwanted, self.now)
            }
        };
        assert!(begins, "every server has an address of its own");
        let before = kept.map_or(0, |(_, requests)| requests);
        let most = u64::from(self.burst.min(ALLOWANCE - before)).min(most);
        let requests = self.ask(server, most);
        assert!(requests > 0, "it has a URL");
        let all = before + requests;
        let parks = all < ALLOWANCE;
        self.slots[slot] = parks.then_some((server, all));
        let measured = self.measure(requests, kept.is_none());
        self.driver.finish(server, measured, parks, self.now);
        self.visits += 1;
        Some(requests)
    }

    /// Asks for one URL after the other.
    fn ask(&mut self, server: u32, most: u64) -> u32 {
        let mut requests = 0;
        while u64::from(requests) < most
            && let Some(quality) = self.driver.take(server)
        {
            let checksum = self.checksum.rotate_left(5) ^ u64::from(server);
            self.checksum = checksum ^ quality.millionths();
            requests += 1;
        }
        requests
    }

    fn measure(&mut self, requests: u32, is_new: bool) -> Measured {
        let connect_us = 20_000 + self.random.below(200_000);
        let response_us = (5_000 + self.random.below(500_000)) * u64::from(requests);
        Measured {
            requests,
            connect_time: is_new.then_some(Duration::from_micros(connect_us)),
            response_time: Duration::from_micros(response_us),
        }
    }

    /// A turn of the loop ends without a job.
    pub(crate) fn write(&mut self, disk: &mut dyn Disk) {
        self.driver.write(disk);
    }

    /// The job that it hands out.
    pub(crate) fn job(&mut self, disk: &dyn Disk) -> Option<Job> {
        self.driver.job(disk)
    }

    /// The job is done.
    pub(crate) fn worked(&mut self, done: JobDone) {
        self.driver.worked(done);
    }

    /// The next turn begins.
    pub(crate) fn take_in(&mut self) {
        self.driver.take_in(self.now);
    }

    /// All of it: a turn ends, its job is done at once, and the next one begins.
    pub(crate) fn turn(&mut self, disk: &mut dyn Disk) {
        self.write(disk);
        if let Some(job) = self.job(disk) {
            self.worked(job.run());
        }
        self.take_in();
    }

    /// Time passes until somebody's rest is over; `false` if nobody rests.
    pub(crate) fn sleep(&mut self) -> bool {
        let deadline = self.driver.deadline();
        self.now = deadline.map_or(self.now, |at| at.max(self.now));
        deadline.is_some()
    }

    /// Writes a checkpoint into a file.
    pub(crate) fn checkpoint(&mut self, name: &str, disk: &mut dyn Disk) {
        self.driver.checkpoint(name, disk, self.now);
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }
}

/// Random numbers by xorshift.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
