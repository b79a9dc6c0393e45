//! Simulated crawls from end to end: a web, a world, a configuration, and the results.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use sted::commands::settings;
use sted::conf::Conf;
use sted::engine::Engine;
use sted::engine::contract::StopReason;
use sted::engine::counts::Counts;
use sted::engine::settings::Settings;
use sted::engine::status::{KnownPages, OverBudget};
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::seeds;
use sted::store::log;
use sted::study::sim::settings::DiskFaults;
use sted::study::sim::{self, Figures, Jump, Observation, View, World, disk::MemoryDisk};
use sted::study::web::{Ports, Web};

/// The configuration of every crawl unless a test changes it: no delays.
const BASE: &[&str] = &[
    "identity.contact = \"crawler@sted.dev\"",
    "scope.span = \"host\"",
    "scope.domains = [\"test\"]",
    "connections.addresses_allowed = [\"127.0.0.0/8\"]",
    "politeness.burst = \"server\"",
    "politeness.delay = \"0s\"",
    "politeness.delay_factor = 0",
    "politeness.address_delay = \"0s\"",
    "politeness.address_visits_max = 64",
    "politeness.domain_delay = \"0s\"",
    "politeness.domain_visits_max = 64",
    "store.format = \"none\"",
    // Separate tests cover repeated requests.
    "pipeline.probation = 0",
];

/// What to crawl, in which world, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    pub web: sted::study::web::Settings,
    pub world: sim::Settings,
    pub disk: DiskFaults,
    /// Lines `section.key = value`; the last one for a key counts.
    pub conf: Vec<String>,
    /// Changes to settings that have no key in the configuration.
    pub change: fn(&mut Settings),
    /// Whether to keep observations and the text of actions.
    pub record: bool,
}

/// The period at which figures are recorded.
pub const PERIOD: Duration = Duration::from_millis(500);

/// A crawl that has ended.
#[derive(Debug)]
pub struct Crawl {
    pub web: Arc<Web>,
    pub observations: Vec<(Instant, Observation)>,
    pub hash: u64,
    pub actions: String,
    pub counts: Counts,
    pub figures: Figures,
    pub took: Duration,
    pub trouble: Option<String>,
    /// Figures once a [`PERIOD`] and at the end.
    pub looks: Vec<(Duration, Figures)>,
    pub log: Vec<u8>,
    /// The pages that the crawl comes back to.
    pub known: Option<KnownPages>,
    /// The URLs over the budget of their domain.
    pub over_budget: Option<OverBudget>,
}

impl Plan {
    pub fn new(web: sted::study::web::Settings) -> Self {
        Self {
            web,
            world: sim::Settings::default(),
            disk: DiskFaults::default(),
            conf: Vec::new(),
            change: |_| {},
            record: true,
        }
    }

    pub fn with(mut self, lines: &[&str]) -> Self {
        self.conf.extend(lines.iter().map(|line| (*line).to_owned()));
        self
    }

    /// Returns the web, its seeds, and the settings of the engine.
    pub fn parts(&self) -> (Arc<Web>, Vec<seeds::Seed>, Settings) {
        let web = Arc::new(Web::new(self.web.clone(), Ports::default()));
        let (found, mistakes) = seeds::parse(web.seeds().join("\n").as_bytes());
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let mut settings = settings::engine(&self.conf(), [7; 16]);
        (self.change)(&mut settings);
        (web, found, settings)
    }

    pub fn run(&self) -> Crawl {
        let (web, found, settings) = self.parts();
        let disk = MemoryDisk::with(self.disk);
        let (meter, now) = (Meter::new(still), sim::now_at(Instant::ZERO));
        let mut engine = Engine::new(settings, &found, Box::new(disk.clone()), meter, now)
            .unwrap_or_else(|error| panic!("{error}"));
        let mut world = World::of_web(Arc::clone(&web), self.world.clone());
        let observations = Rc::new(RefCell::new(Vec::new()));
        if self.record {
            let kept = Rc::clone(&observations);
            let observer = move |at, seen: &Observation| kept.borrow_mut().push((at, seen.clone()));
            world.watch_servers(Box::new(observer));
            world.record_actions();
        }
        let mut looks = Vec::new();
        let mut look = |view: &View<'_>| {
            looks.push((view.at.since(Instant::ZERO), view.figures));
            assert!(view.engine.counts().requests >= view.figures.replies);
        };
        let ended = world.run_watched(&mut engine, PERIOD, &mut look);
        ended.unwrap_or_else(|error| panic!("{error}"));
        let (hash, actions) = (world.actions_hash(), world.actions().to_owned());
        let (counts, figures) = (engine.counts().clone(), world.figures());
        let (took, known) = (engine.elapsed(), engine.known_pages());
        let over_budget = engine.over_budget();
        let trouble = engine.fatal_error().map(ToString::to_string);
        drop((engine, world));
        let log = disk.read("crawl.log").unwrap_or_default();
        let observations = Rc::into_inner(observations).expect("the world is gone").into_inner();
        Crawl {
            web,
            observations,
            hash,
            actions,
            counts,
            figures,
            took,
            trouble,
            looks,
            log,
            known,
            over_budget,
        }
    }

    fn conf(&self) -> Conf {
        Conf::parse(&self.conf_text(), "plan").unwrap_or_else(|mistakes| panic!("{mistakes}"))
    }

    /// Returns the configuration as a file has it.
    pub fn conf_text(&self) -> String {
        let mut sections: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        let seeds = "job.seeds = [\"http://h0000.test/\"]";
        let lines = BASE.iter().copied().chain([seeds]);
        for line in lines.chain(self.conf.iter().map(String::as_str)) {
            let (key, value) = line.split_once('=').expect("a key and a value");
            let (section, name) = key.trim().rsplit_once('.').expect("section.key");
            sections.entry(section).or_default().insert(name, value);
        }
        let mut text = String::new();
        for (section, keys) in sections {
            text += &format!("[{section}]\n");
            keys.iter().for_each(|(name, value)| text += &format!("{name} = {value}\n"));
        }
        text
    }
}

impl Crawl {
    /// Returns the last outcome of each URL.
    pub fn outcomes(&self) -> BTreeMap<String, String> {
        outcomes_of(&self.log)
    }

    /// Counts the requests for each URL that arrived at its server.
    pub fn requests(&self) -> BTreeMap<String, u32> {
        let mut requests = BTreeMap::new();
        for (_, seen) in &self.observations {
            if let Observation::Request { host, path, .. } = seen {
                *requests.entry(format!("{}{path}", self.web.origin(*host))).or_default() += 1;
            }
        }
        requests
    }

    /// Returns when whole replies had arrived, in microseconds.
    pub fn replies_us(&self) -> Vec<u64> {
        let whole = |seen: &Observation| matches!(seen, Observation::Reply { whole: true, .. });
        self.times_us(whole)
    }

    /// Returns the times of matching observations, in microseconds.
    pub fn times_us(&self, such: impl Fn(&Observation) -> bool) -> Vec<u64> {
        let seen = self.observations.iter().filter(|(_, seen)| such(seen));
        seen.map(|(at, _)| at.as_micros()).collect()
    }
}

/// Returns the last outcome of each URL in a crawl log.
pub fn outcomes_of(log: &[u8]) -> BTreeMap<String, String> {
    let mut outcomes = BTreeMap::new();
    for line in std::str::from_utf8(log).expect("UTF-8").lines() {
        let entry = log::parse(line).unwrap_or_else(|bad| panic!("{bad:?}: {line}"));
        let by_status = match entry.status {
            200..=299 => "ok",
            300..=399 => "redirect",
            _ => "http-error",
        };
        let outcome = entry.extra.reason.as_deref().unwrap_or(by_status);
        // These lines are about the end of a chain and about the rules of a server, not about the
        // URL's own outcome.
        if outcome == "redirect-to-known" || entry.annotations == Some("rules") {
            continue;
        }
        outcomes.insert(entry.url.to_owned(), outcome.to_owned());
    }
    outcomes
}

/// A crawl that is run piece by piece, by one process after the other, on one disk.
pub struct Pieces {
    /// Those of the next process.
    pub settings: Settings,
    pub world: World,
    disk: MemoryDisk,
    seeds: Vec<seeds::Seed>,
}

impl Pieces {
    pub fn of(plan: &Plan) -> Self {
        let (web, seeds, settings) = plan.parts();
        let world = World::of_web(web, plan.world.clone());
        Self { settings, world, disk: MemoryDisk::new(), seeds }
    }

    /// Opens the crawl in a new process.
    pub fn open(&self) -> Engine {
        let (disk, meter) = (Box::new(self.disk.clone()), Meter::new(still));
        Engine::open(self.settings.clone(), &self.seeds, disk, meter, self.world.now())
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs the crawl until `until` is true, or to its end.
    pub fn run_until(&mut self, engine: &mut Engine, mut until: impl FnMut(&View<'_>) -> bool) {
        let goes_on = &mut |view: &View<'_>| !until(view);
        self.world.run_until(engine, Instant::FAR, goes_on).expect("it goes on");
    }

    /// Runs the crawl to its end.
    pub fn run(&mut self, engine: &mut Engine) {
        self.world.run(engine).expect("it ends");
    }

    /// Stops the crawl as an operator does.
    pub fn stop(&mut self, engine: &mut Engine) {
        engine.stop(self.world.now(), StopReason::Interrupted);
        self.run(engine);
    }

    /// Ends the process, whatever the crawl does. The next one may begin after `pause`.
    pub fn end(&mut self, engine: Engine, pause: Duration) {
        drop(engine);
        self.world.exit();
        self.world.restart(pause, Jump::None);
    }

    /// Returns the crawl log.
    pub fn log(&self) -> Vec<u8> {
        self.disk.read("crawl.log").expect("there is one")
    }
}
