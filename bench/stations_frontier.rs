//! Queues of a hundred URLs, for the gate on instructions: a URL filed, packed, its way to the disk
//! and back, its visit. What the system does for a read or a write is not counted.

use super::Work;
use super::driver::crawl::{Crawl, Plan};
use super::driver::{Found, Policy};
use super::inputs::Random;
use sted::ground::quality::Quality;
use sted::os::disk::OsDisk;
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

/// Decisions among ten thousand ready servers, each with a URL queued in its place.
pub(super) fn scheduler() -> Work {
    const READY: u64 = 10_000;
    let mut crawl = Spilling::new(&Plan { rest: 0, ..Plan::of(Policy::Capability) }, READY);
    for server in (0..READY).chain(0..READY) {
        crawl.find(server);
    }
    let round = move || {
        for _ in 0..ROUND {
            crawl.visit();
            let server = crawl.random.below(READY);
            crawl.find(server);
        }
        crawl.crawl.checksum
    };
    Work { operations: ROUND as usize, bytes: 0, round: Box::new(round) }
}

fn work(policy: Policy, bytes_per_server: usize) -> Work {
    let memory_bytes = Some(bytes_per_server * SERVERS as usize);
    let plan = Plan { policy, burst: Some(1), rest: 0, memory_bytes };
    let mut crawl = Spilling::new(&plan, SERVERS);
    (0..WAITING / TURN).for_each(|_| crawl.find_some());
    let round = move || {
        for _ in 0..ROUND / TURN {
            crawl.find_some();
            (0..TURN).for_each(|_| crawl.visit());
        }
        crawl.crawl.checksum
    };
    Work { operations: ROUND as usize, bytes: 0, round: Box::new(round) }
}

/// A crawl without a network, and its disk.
struct Spilling {
    crawl: Crawl,
    servers: u64,
    disk: OsDisk,
    /// Where that lies; it goes with the crawl.
    _folder: TempDir,
    random: Random,
    found: u64,
}

impl Spilling {
    fn new(plan: &Plan, servers: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let disk = OsDisk::open(folder.path()).expect("a folder that was just made");
        let (crawl, random) = (Crawl::new(plan), Random(1));
        Self { crawl, servers, disk, _folder: folder, random, found: 0 }
    }

    /// URLs of a turn are found.
    fn find_some(&mut self) {
        for _ in 0..TURN {
            let server = self.random.below(self.servers);
            self.find(server);
        }
        self.crawl.turn(&mut self.disk);
    }

    fn find(&mut self, server: u64) {
        let number = self.found;
        self.found += 1;
        let url = format!("http://host{server:05}.test1/archive/2026/article-{number:012}.html");
        let url = UrlRef::from_canonical(url.as_bytes()).expect("canonical");
        let via = format!("http://host{number:010}.test1/the/page/it/was/on");
        let quality = Quality::from_millionths(self.random.below(5_000_000));
        self.crawl.found(&[Found { url, via: &via, quality, depth: 3, letter: b'L' }]);
    }

    fn visit(&mut self) {
        // If none may be visited all ready servers wait for their chunks.
        while self.crawl.visit(1).is_none() {
            self.crawl.turn(&mut self.disk);
        }
    }
}
