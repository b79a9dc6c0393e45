//! The question why: it changes nothing in a crawl, and its answers agree with what happens later.

use super::stand::Plan;
use super::varied;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use sted::engine::Engine;
use sted::engine::settings::Settings;
use sted::engine::why::{About, Place, RobotsVerdict, Subject, Why};
use sted::ground::disk::overlay::Overlay;
use sted::ground::random::Random;
use sted::ground::stats::{Meter, still};
use sted::ground::time::{Instant, Now};
use sted::seeds::Seed;
use sted::store::log;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::settings::Faults;
use sted::study::sim::{self, World};
use sted::study::web::{TimeSpread, Web};

/// The virtual time between two moments at which questions are asked.
const STEP: Duration = Duration::from_millis(97);

/// A question that was asked during a crawl: the URL, when, and the answer.
struct Asked {
    url: String,
    at_us: u64,
    about: About,
}

fn plan(seed: u64) -> Plan {
    let web = sted::study::web::Settings {
        hosts: 12,
        pages: 400,
        hosts_per_address: 3,
        hosts_per_domain: 3,
        robots_part: 0.5,
        think_time: TimeSpread { median: Duration::from_millis(400), sigma: 0.1 },
        ..varied(seed)
    };
    let mut plan = Plan::new(web).with(&[
        "politeness.burst = 3",
        "politeness.delay = \"2s\"",
        "politeness.address_visits_max = 2",
        "politeness.domain_visits_max = 1",
        "store.format = \"warc\"",
    ]);
    plan.world.faults = Faults { refusals: 0.05, resets: 0.05, ..Faults::default() };
    plan
}

/// A crawl of a web, with all that can be on disk on disk: queues, seen URLs and rules.
struct Crawl {
    plan: Plan,
    world: World,
    engine: Engine,
    disk: MemoryDisk,
}

/// Returns the settings of a plan and its seeds.
fn settings(plan: &Plan) -> (Arc<Web>, Vec<Seed>, Settings) {
    let (web, seeds, mut settings) = plan.parts();
    settings.state.crawl = Some(7);
    settings.frontier.crawl = Some(7);
    settings.seen.crawl = Some(7);
    settings.state.period = Duration::from_secs(20);
    settings.frontier.memory_bytes = 8 << 10;
    settings.seen.memory_bytes = 2 << 10;
    settings.seen.cache_entries_log2 = 4;
    settings.robots_bytes_max = 0;
    (web, seeds, settings)
}

impl Crawl {
    fn begin(seed: u64) -> Self {
        let plan = plan(seed);
        let (web, seeds, settings) = settings(&plan);
        let (disk, now) = (MemoryDisk::new(), sim::now_at(Instant::ZERO));
        let engine = Engine::open(settings, &seeds, Box::new(disk.clone()), Meter::new(still), now)
            .unwrap_or_else(|error| panic!("{error}"));
        let world = World::of_web(web, plan.world.clone());
        Self { plan, world, engine, disk }
    }

    fn go_on(&mut self, until: Instant) {
        let ended = self.world.run_until(&mut self.engine, until, &mut |_| true);
        ended.unwrap_or_else(|error| panic!("{error}"));
    }

    fn log(&self) -> String {
        let log = self.disk.read("crawl.log").unwrap_or_default();
        String::from_utf8(log).expect("UTF-8")
    }
}

/// Asks an engine about a URL.
fn ask(engine: &mut Engine, now: Now, url: &str) -> About {
    let Why { subject, errors, .. } = engine.why(now, url);
    let Subject::Url(about) = subject else { panic!("{url}") };
    assert_eq!(errors, [""; 0], "{url}");
    *about
}

/// Crawls a web. Every [`STEP`] it asks about one of `urls`, if there are any. Returns the hash of
/// the actions, the crawl log and the answers.
fn crawl(seed: u64, urls: &[String]) -> (u64, String, Vec<Asked>) {
    let mut crawl = Crawl::begin(seed);
    let (mut random, mut asked) = (Random(seed), Vec::new());
    while !crawl.engine.is_finished() {
        crawl.go_on(crawl.world.at() + STEP);
        if !urls.is_empty() && !crawl.engine.is_finished() {
            let url = &urls[random.below(urls.len() as u64) as usize];
            let now = crawl.world.now();
            let about = ask(&mut crawl.engine, now, url);
            asked.push(Asked { url: url.clone(), at_us: now.unix.as_micros(), about });
        }
    }
    (crawl.world.actions_hash(), crawl.log(), asked)
}

/// A line of the log: when it was written, the number of redirects before, the code, and whether
/// the reply is archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    at_us: u64,
    hops: u32,
    code: i32,
    is_kept: bool,
}

/// Returns the lines of each URL.
fn lines(log: &str) -> BTreeMap<&str, Vec<Line>> {
    let mut lines = BTreeMap::<_, Vec<_>>::new();
    for line in log.lines() {
        let entry = log::parse(line).unwrap_or_else(|bad| panic!("{bad:?}: {line}"));
        let (at_us, hops, code) = (entry.time.as_micros(), entry.extra.hops, entry.status);
        let is_kept = entry.extra.file.is_some();
        lines.entry(entry.url).or_default().push(Line { at_us, hops, code, is_kept });
    }
    lines
}

#[test]
fn questions_change_nothing_and_answers_come_true() {
    let mut kinds = BTreeMap::<_, u64>::new();
    for seed in 0..2 {
        let (hash, log, _) = crawl(seed, &[]);
        let mut urls: Vec<String> = lines(&log).into_keys().map(str::to_owned).collect();
        urls.retain(|url| !url.ends_with("/robots.txt"));
        urls.push("http://h0000.test/never/linked".to_owned());
        let (again, same, asked) = crawl(seed, &urls);
        assert_eq!((again, &same), (hash, &log), "seed {seed}: asking changes the crawl");
        let lines = lines(&log);
        for Asked { url, at_us, about } in asked {
            let none = Vec::new();
            let written = lines.get(url.as_str()).unwrap_or(&none);
            let later: Vec<&Line> =
                written.iter().filter(|line| line.at_us + 1_000 >= at_us).collect();
            let earlier = written.iter().find(|line| line.at_us + 1_000 < at_us);
            // A redirect may end at a disallowed URL before it is requested.
            let is_denied = later.iter().any(|line| line.code == -9_998);
            match about.robots.verdict {
                RobotsVerdict::Allowed => assert!(!is_denied, "{url}: {about:?}"),
                RobotsVerdict::Disallowed => {
                    let is_asked = later.iter().any(|line| line.code > 0);
                    assert!(!is_asked && about.robots.rule.is_some(), "{url}: {about:?}");
                    *kinds.entry("disallowed").or_default() += 1;
                }
                _ => {}
            }
            let kind = match &about.place {
                Place::Waiting(waiting) => {
                    assert!(!later.is_empty(), "{url} waits for ever: {about:?}");
                    assert!(waiting.before_min <= waiting.before_max);
                    let server = about.server.as_ref().expect("it waits there");
                    assert!(waiting.before_max < server.urls, "{about:?}");
                    if waiting.is_on_disk { "on disk" } else { "in memory" }
                }
                Place::Fetching { sent_us } => {
                    assert!(!later.is_empty() && *sent_us <= at_us, "{url}: {about:?}");
                    "fetching"
                }
                Place::Nowhere if about.is_known == Some(false) => {
                    // The hops of a redirect don't count as known.
                    let was = earlier.filter(|line| line.hops == 0);
                    assert_eq!(was, None, "{url} was settled: {about:?}");
                    "not discovered"
                }
                Place::Nowhere => "settled",
                Place::Redirected { .. } => "redirected",
                _ => "other",
            };
            if let Some(earliest) = about.earliest_us.filter(|_| about.place != Place::Nowhere) {
                assert!(earliest >= at_us);
            }
            *kinds.entry(kind).or_default() += 1;
        }
    }
    eprintln!("{kinds:?}");
    for kind in ["on disk", "in memory", "fetching", "not discovered", "settled", "disallowed"] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 5), "{kind}: {kinds:?}");
    }
}

/// Law: after a kill, the state on disk answers for everything that the archive holds, and is not
/// changed by that.
#[test]
fn the_state_of_a_killed_crawl_answers() {
    let mut kinds = BTreeMap::<_, u64>::new();
    for seed in 0..3 {
        let mut crawl = Crawl::begin(seed);
        crawl.go_on(Instant::from_micros(35_000_000));
        let (now, log, disk, plan) =
            (crawl.world.now(), crawl.log(), crawl.disk.clone(), crawl.plan);
        drop(crawl.engine);
        let before: Vec<_> = disk.names().iter().map(|name| disk.read(name)).collect();
        let (_, seeds, settings) = settings(&plan);
        let overlay = Box::new(Overlay::over(Box::new(disk.clone())));
        let mut engine = Engine::open(settings, &seeds, overlay, Meter::new(still), now)
            .unwrap_or_else(|error| panic!("{error}"));
        for (url, lines) in lines(&log) {
            let about = ask(&mut engine, now, url);
            let is_kept = lines.iter().any(|line| line.is_kept && line.hops == 0);
            let is_read_back = about.place == Place::ReadBack;
            let is_robots = url.ends_with("/robots.txt");
            let is_known = about.is_known == Some(true) || is_read_back || is_robots;
            assert!(is_known || !is_kept, "{url}: {lines:?} {about:?}");
            *kinds.entry(if is_read_back { "read back" } else { "known" }).or_default() += 1;
        }
        let after: Vec<_> = disk.names().iter().map(|name| disk.read(name)).collect();
        assert!(before == after, "the question has changed the disk");
    }
    assert!(kinds.len() == 2 && kinds.values().all(|count| *count > 20), "{kinds:?}");
}
