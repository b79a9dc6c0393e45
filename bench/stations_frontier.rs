//! Queues of a hundred URLs, for the gate on instructions: a URL filed, packed, its way to the disk
//! and back, its visit. What the system does for a read or a write is not counted.

use super::Work;
use super::inputs::Random;
use std::time::Duration;
use sted::frontier::policy::{self, Policy};
use sted::frontier::{Burst, Errand, Frontier, Item, Settings, Visit};
use sted::os::disk::OsDisk;
use sted::quality::Quality;
use sted::time::Instant;
use sted::url::UrlRef;
use tempfile::TempDir;

const SERVERS: u64 = 300;
/// URLs that wait.
const WAITING: u64 = 30_000;
/// Bytes for a server that hold all of its URLs, packed.
const ROOMY_BYTES: usize = 8_000;
/// As many as a million servers have with 736 MiB: nine in ten of a hundred URLs are on disk.
const TIGHT_BYTES: usize = 770;
/// URLs of a round.
const ROUND: u64 = 500;
/// URLs between two turns of the loop.
const TURN: u64 = 50;

/// URLs filed and visited while a hundred a server wait in memory.
pub(super) fn packed(policy: Policy) -> Work {
    work(policy, ROOMY_BYTES)
}

/// The same, most of them on disk.
pub(super) fn spilled(policy: Policy) -> Work {
    work(policy, TIGHT_BYTES)
}

fn work(policy: Policy, bytes_per_server: usize) -> Work {
    let mut crawl = Crawl::new(policy, bytes_per_server * SERVERS as usize);
    (0..WAITING / TURN).for_each(|_| crawl.find());
    let round = move || (0..ROUND / TURN).fold(0, |checksum, _| checksum ^ crawl.go_on());
    Work { operations: ROUND as usize, bytes: 0, round: Box::new(round) }
}

/// A crawl without a network.
struct Crawl {
    frontier: Frontier,
    disk: OsDisk,
    /// Where that lies; it goes with the crawl.
    _folder: TempDir,
    random: Random,
    /// In microseconds.
    time: u64,
    found: u64,
}

impl Crawl {
    fn new(policy: Policy, memory_bytes: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let frontier = Frontier::new(Settings {
            schedule: policy::Settings { policy, ..policy::Settings::default() },
            burst: Burst::Requests(1),
            delay: Duration::ZERO,
            delay_factor_milli: 0,
            domain_visits_max: 0,
            urls_max: usize::MAX,
            servers_max: usize::MAX,
            memory_bytes,
            crawl: Some(1),
            ..Settings::default()
        });
        let disk = OsDisk::open(folder.path()).expect("a folder that was just made");
        Self { frontier, disk, _folder: folder, random: Random(1), time: 1, found: 0 }
    }

    /// As many URLs are found and visited.
    fn go_on(&mut self) -> u64 {
        self.find();
        (0..TURN).fold(0, |checksum, _| checksum.rotate_left(5) ^ self.visit())
    }

    fn find(&mut self) {
        for _ in 0..TURN {
            let (server, number) = (self.random.below(SERVERS), self.found);
            self.found += 1;
            let url =
                format!("http://host{server:05}.test1/archive/2026/article-{number:012}.html");
            let url = UrlRef::from_canonical(url.as_bytes()).expect("canonical");
            let item = Item {
                target: url.target().into(),
                quality: Quality::from_millionths(self.random.below(5_000_000)),
                arrival: 0,
                depth: 3,
                hops: 0,
                tries: 0,
                errand: Errand::Page,
                found_as: b'L',
                via: Some(format!("http://host{number:010}.test1/the/page/it/was/on").into()),
            };
            self.frontier.add(url, item, Instant::from_micros(self.time));
        }
        self.turn();
    }

    fn visit(&mut self) -> u64 {
        self.time += 1;
        let now = Instant::from_micros(self.time);
        let id = loop {
            match self.frontier.next(now) {
                Some(id) => break id,
                // All ready servers wait for their chunks.
                None => self.turn(),
            }
        };
        let item = self.frontier.take(id).expect("it has a URL");
        let visit = Visit {
            connect_time: Some(Duration::from_micros(20_000 + self.random.below(200_000))),
            replies: 1,
            response_time: Duration::from_micros(5_000 + self.random.below(500_000)),
            allowance: 100,
            ..Visit::new(1, now, now)
        };
        self.frontier.finish(id, &visit, now);
        u64::from(id.0) ^ item.quality.millionths()
    }

    fn turn(&mut self) {
        self.frontier.take_in(Instant::from_micros(self.time)).expect("the disk is whole");
        self.frontier.write(false, &mut self.disk).expect("there is room");
        if let Some(job) = self.frontier.job(&self.disk) {
            self.frontier.worked(job.run()).expect("the disk is whole");
        }
    }
}
