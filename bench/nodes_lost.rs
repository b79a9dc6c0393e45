//! Crawls by three nodes, of which one is lost at each tenth of the pages: how many pages are
//! fetched twice because of it, and when its servers are asked again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sted::cluster::queue::Name;
use sted::cluster::{member, outbox};
use sted::commands::settings;
use sted::conf::Conf;
use sted::engine::{Engine, node};
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::seeds;
use sted::study::sim::cluster::Cluster;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::queue;
use sted::study::sim::{self, Observation, World};
use sted::study::web::{Place, Ports, Resource, Settings, Spread, Web};

/// What is crawled, and how it is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) pages: u32,
    pub(super) hosts: u32,
    /// The time between two checkpoints, in seconds.
    pub(super) period_s: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self { seed: 1, pages: 1_000, hosts: 60, period_s: 60 }
    }
}

/// The head of the table that [`run`] prints a line of for each tenth.
pub(super) const HEAD: &str = "period_s,seed,tenth,pages,twice,hosts,moved_min_s,moved_median_s,\
    moved_90_s,moved_max_s,seconds";

const NODES: usize = 3;
/// The node that is lost.
const LOST: usize = 1;
/// How long a server rests after a page.
const DELAY: &str = "30s";
/// A lease, and the time for which a new owner waits: the default of `politeness.delay_max`.
const TTL: Duration = Duration::from_secs(30);
const SETTLE: Duration = Duration::from_secs(300);

fn web(plan: &Plan) -> Settings {
    Settings {
        seed: plan.seed,
        hosts: plan.hosts,
        seeds: plan.hosts,
        pages: plan.pages,
        pages_sigma: 0.5,
        links: Spread { median: 12.0, sigma: 0.5 },
        locality: 0.8,
        page_bytes: Spread { median: 4_000.0, sigma: 0.5 },
        ..Settings::default()
    }
}

fn conf(plan: &Plan) -> Conf {
    let text = format!(
        "[job]\nseeds = [\"http://h0000.test/\"]\n\
         [identity]\ncontact = \"crawler@sted.dev\"\n\
         [scope]\nspan = \"host\"\ndomains = [\"test\"]\n\
         [connections]\naddresses_allowed = [\"127.0.0.0/8\"]\n\
         [politeness]\nburst = 1\ndelay = \"{DELAY}\"\ndelay_factor = 0\naddress_delay = \"0s\"\n\
         domain_delay = \"0s\"\n\
         [state]\nkeep = true\ncheckpoint_period = \"{}s\"\n\
         [store]\nformat = \"none\"\n",
        plan.period_s
    );
    Conf::parse(&text, "bench").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn node(number: usize) -> node::Settings {
    node::Settings {
        node: Name::new(&format!("node-{number}")).expect("a name"),
        incarnation: 1 + number as u64,
        previous: None,
        member: member::Settings {
            key: super::KEY,
            partitions: 1_024,
            ttl: TTL,
            drift_ppm: 500,
            settle: SETTLE,
            equal: Vec::new(),
        },
        outbox: outbox::Settings::default(),
        sent_log2: 16,
        facts_log2: 16,
        portion_bytes: 128 << 10,
        snapshot_bytes_min: 4 << 20,
        reading_wait: Duration::from_secs(30),
        broken: None,
    }
}

/// What the servers have seen.
#[derive(Debug, Default)]
struct Got {
    /// How often each page was fetched.
    pages: BTreeMap<Place, u32>,
    twice: u64,
    /// For each host, the node that asked it last.
    asked_by: BTreeMap<u32, usize>,
    /// When each host of the lost node was asked again.
    moved: BTreeMap<u32, Instant>,
}

impl Got {
    fn note(&mut self, node: usize, at: Instant, seen: &Observation) {
        match seen {
            Observation::Request { host, .. } => {
                let before = self.asked_by.insert(*host, node);
                if before == Some(LOST) && node != LOST {
                    self.moved.insert(*host, at);
                }
            }
            Observation::Reply { place: Some(place), whole: true, status, .. }
                if matches!(place.resource, Resource::Page(_)) && *status < 300 =>
            {
                let times = self.pages.entry(*place).or_default();
                *times += 1;
                self.twice += u64::from(*times > 1);
            }
            _ => {}
        }
    }
}

/// Crawls the web once for each tenth of its pages, and prints a line for each.
pub(super) fn run(plan: &Plan) {
    let web = Arc::new(Web::new(web(plan), Ports::default()));
    let all = crawl(plan, &web, None).pages;
    for tenth in 1..=9 {
        let Outcome { pages, twice, mut moved, seconds } =
            crawl(plan, &web, Some(all * tenth / 10));
        moved.sort_unstable();
        let at = |share: usize| {
            let index = (moved.len().saturating_sub(1)) * share / 100;
            moved.get(index).map_or(f64::NAN, |time| time.as_secs_f64())
        };
        assert_eq!(pages, all, "nothing is forgotten");
        println!(
            "{},{},{tenth},{pages},{twice},{},{:.1},{:.1},{:.1},{:.1},{seconds:.0}",
            plan.period_s,
            plan.seed,
            moved.len(),
            at(0),
            at(50),
            at(90),
            at(100)
        );
    }
}

/// How a crawl went.
struct Outcome {
    /// The pages that were fetched.
    pages: usize,
    /// The fetches of pages that had been fetched.
    twice: u64,
    /// How long after the loss each host of the lost node was asked again.
    moved: Vec<Duration>,
    seconds: f64,
}

/// Crawls the web until no server has been asked for longer than any wait. The node is lost when so
/// many pages were fetched.
fn crawl(plan: &Plan, web: &Arc<Web>, lost_at: Option<usize>) -> Outcome {
    let (seeds, mistakes) = seeds::parse(web.seeds().join("\n").as_bytes());
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let nodes = (0..NODES).map(|number| {
        let mut settings = settings::engine(&conf(plan), super::KEY);
        settings.cluster = Some(node(number));
        let time_max = Duration::from_secs(10 * 86_400);
        let world = sim::Settings { time_max, ..Default::default() };
        let world = World::of_web(Arc::clone(web), world);
        let disk = Box::new(MemoryDisk::new());
        let engine = Engine::open(settings, &seeds, disk, Meter::new(still), world.now());
        (world, engine.unwrap_or_else(|error| panic!("{error}")))
    });
    let delays = queue::Settings {
        delay_min: Duration::from_millis(100),
        delay_max: Duration::from_millis(200),
        ..Default::default()
    };
    let mut cluster = Cluster::new(nodes.collect(), delays);
    let got = Arc::new(Mutex::new(Got::default()));
    let (noted, counted) = (Arc::clone(&got), Arc::clone(&got));
    cluster.watch(Box::new(move |node, at, seen| {
        noted.lock().expect("no panic").note(node, at, seen);
    }));
    let count = move || counted.lock().expect("no panic").pages.len();
    let mut lost = None;
    if let Some(lost_at) = lost_at {
        let goes_on = &mut |_: &mut Cluster| count() < lost_at;
        cluster.run_until(Instant::FAR, goes_on).expect("it goes on");
        cluster.kill(LOST);
        lost = Some(cluster.now());
    }
    let quiet = SETTLE + 2 * TTL + Duration::from_secs(120);
    let (mut pages, mut since) = (count(), cluster.now());
    let goes_on = &mut |cluster: &mut Cluster| {
        if count() != pages {
            (pages, since) = (count(), cluster.now());
        }
        cluster.now().since(since) < quiet
    };
    cluster.run_until(Instant::FAR, goes_on).expect("it goes on");
    let got = got.lock().expect("no panic");
    let moved =
        lost.map_or_else(Vec::new, |lost| got.moved.values().map(|at| at.since(lost)).collect());
    let seconds = since.since(Instant::ZERO).as_secs_f64();
    Outcome { pages: got.pages.len(), twice: got.twice, moved, seconds }
}
