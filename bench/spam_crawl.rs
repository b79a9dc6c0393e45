//! A simulated crawl of a web with a link farm, and how many requests it makes until it has half of
//! the honest pages, and until it has 99% of them.

use super::web::Spam;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use sted::commands::settings;
use sted::conf::Conf;
use sted::engine::Engine;
use sted::engine::settings::Settings;
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::seeds;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::{self, Observation, World};
use sted::study::web::{Place, Resource, Web};

/// A crawl in which only the order of the queues decides what is fetched next: no server, address
/// or domain rests.
const CONF: &str = r#"
[job]
seeds = ["http://h0000.test/"]
[identity]
contact = "crawler@sted.dev"
[scope]
span = "host"
domains = ["test"]
[schedule]
policy = "bfs"
[connections]
open_max = 128
addresses_allowed = ["127.0.0.0/8"]
[politeness]
burst = 1
delay = "0s"
delay_factor = 0
address_visits_max = 100_000
address_delay = "0s"
domain_visits_max = 100_000
domain_delay = "0s"
[state]
keep = false
[store]
format = "none"
"#;
/// The capacity of the crawler's line, in bytes per second.
const LINE: u64 = 1_000_000;

/// Requests until some number of honest pages was fetched. All kinds count, robots.txt too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    pub(super) all: u64,
    /// Those to hosts of the farm.
    pub(super) farm: u64,
}

impl Requests {
    pub(super) fn farm_share(&self) -> f64 {
        self.farm as f64 / self.all as f64
    }
}

/// What a crawl did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// The requests until half of the honest pages were fetched; `None` if they never were.
    pub(super) half: Option<Requests>,
    /// The same for 99% of them.
    pub(super) most: Option<Requests>,
}

/// What the servers have seen.
struct Seen {
    honest_hosts: u32,
    /// Whether each honest page was fetched.
    fetched: Vec<bool>,
    count: usize,
    requests: Requests,
    outcome: Outcome,
}

impl Seen {
    fn note(&mut self, web: &Web, seen: &Observation) {
        match seen {
            Observation::Request { host, .. } => {
                self.requests.all += 1;
                self.requests.farm += u64::from(*host >= self.honest_hosts);
            }
            Observation::Reply {
                place: Some(Place { host, resource: Resource::Page(page) }),
                whole: true,
                ..
            } if *host < self.honest_hosts => {
                let fetched = &mut self.fetched[web.page_index(*host, *page)];
                self.count += usize::from(!std::mem::replace(fetched, true));
                let all = self.fetched.len();
                if self.count * 2 >= all {
                    self.outcome.half.get_or_insert(self.requests);
                }
                if self.count * 100 >= all * 99 {
                    self.outcome.most.get_or_insert(self.requests);
                }
            }
            _ => {}
        }
    }
}

/// Crawls the web until 99% of the honest pages are fetched. `change` changes the settings of the
/// crawl.
pub(super) fn run(spam: &Spam, change: &dyn Fn(&mut Settings)) -> Outcome {
    let conf = Conf::parse(CONF, "spam.toml").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let (seeds, mistakes) = seeds::parse(spam.seeds().as_bytes());
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let mut settings = settings::engine(&conf, [7; 16]);
    change(&mut settings);
    let world = sim::Settings { gateway_bytes_per_second: LINE, ..Default::default() };
    let mut world = World::of_web(Arc::clone(&spam.web), world);
    let seen = Rc::new(RefCell::new(Seen {
        honest_hosts: spam.honest_hosts,
        fetched: vec![false; spam.honest_pages as usize],
        count: 0,
        requests: Requests::default(),
        outcome: Outcome::default(),
    }));
    let (watching, web) = (Rc::clone(&seen), Arc::clone(&spam.web));
    world.watch_servers(Box::new(move |_, observation| {
        watching.borrow_mut().note(&web, observation);
    }));
    let disk = Box::new(MemoryDisk::new());
    let engine = Engine::open(settings, &seeds, disk, Meter::new(still), world.now());
    let mut engine = engine.unwrap_or_else(|error| panic!("{error}"));
    let goes_on = || seen.borrow().outcome.most.is_none();
    let ran = world.run_until(&mut engine, Instant::FAR, &mut |_| goes_on());
    ran.unwrap_or_else(|how| panic!("{how}"));
    seen.borrow().outcome
}
