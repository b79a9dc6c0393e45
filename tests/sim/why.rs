//! The question why: it changes nothing in a crawl, and its answers agree with what happens later.

use super::stand::Plan;
use super::varied;
use std::collections::BTreeMap;
use std::time::Duration;
use sted::engine::Engine;
use sted::engine::why::{About, Place, Subject, Why};
use sted::ground::random::Random;
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::store::log;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::settings::Faults;
use sted::study::sim::{self, World};
use sted::study::web::TimeSpread;

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
        think_time: TimeSpread { median: Duration::from_millis(400), sigma: 0.1 },
        ..varied(seed)
    };
    let mut plan = Plan::new(web).with(&[
        "politeness.burst = 3",
        "politeness.delay = \"2s\"",
        "politeness.address_visits_max = 2",
        "politeness.domain_visits_max = 1",
    ]);
    plan.world.faults = Faults { refusals: 0.05, resets: 0.05, ..Faults::default() };
    plan
}

/// Crawls a web. Every [`STEP`] it asks about a few of `urls`. Returns the hash of the actions, the
/// crawl log and the answers.
fn crawl(seed: u64, urls: &[String]) -> (u64, String, Vec<Asked>) {
    let plan = plan(seed);
    let (web, seeds, mut settings) = plan.parts();
    settings.state.crawl = Some(7);
    settings.frontier.crawl = Some(7);
    settings.seen.crawl = Some(7);
    settings.frontier.memory_bytes = 8 << 10;
    let disk = MemoryDisk::new();
    let now = sim::now_at(Instant::ZERO);
    let mut engine = Engine::open(settings, &seeds, Box::new(disk.clone()), Meter::new(still), now)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut world = World::of_web(web, plan.world.clone());
    let (mut random, mut asked) = (Random(seed), Vec::new());
    while !engine.is_finished() {
        let until = world.at() + STEP;
        let ended = world.run_until(&mut engine, until, &mut |_| true);
        ended.unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..if urls.is_empty() || engine.is_finished() { 0 } else { 1 } {
            let url = &urls[random.below(urls.len() as u64) as usize];
            let Why { at_us, subject, errors, .. } = engine.why(world.now(), url);
            let Subject::Url(about) = subject else { panic!("{url}") };
            assert_eq!(errors, [""; 0], "{url}");
            asked.push(Asked { url: url.clone(), at_us, about: *about });
        }
    }
    let log = disk.read("crawl.log").unwrap_or_default();
    (world.actions_hash(), String::from_utf8(log).expect("UTF-8"), asked)
}

/// The times of the lines of each URL, and whether the first of them is of the end of a redirect.
fn lines(log: &str) -> BTreeMap<&str, Vec<(u64, u32)>> {
    let mut lines = BTreeMap::<_, Vec<_>>::new();
    for line in log.lines() {
        let entry = log::parse(line).unwrap_or_else(|bad| panic!("{bad:?}: {line}"));
        let found = lines.entry(entry.url).or_default();
        found.push((entry.time.as_micros(), entry.extra.hops));
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
            let later = written.iter().any(|(time, _)| time + 1_000 >= at_us);
            let earlier = written.iter().find(|(time, _)| time + 1_000 < at_us);
            let kind = match &about.place {
                Place::Waiting(waiting) => {
                    assert!(later, "{url} waits for ever: {about:?}");
                    assert!(waiting.before_min <= waiting.before_max);
                    let server = about.server.as_ref().expect("it waits there");
                    assert!(waiting.before_max < server.urls, "{about:?}");
                    if waiting.is_on_disk { "on disk" } else { "in memory" }
                }
                Place::Fetching { sent_us } => {
                    assert!(later && *sent_us <= at_us, "{url}: {about:?}");
                    "fetching"
                }
                Place::Nowhere if about.is_known == Some(false) => {
                    // The hops of a redirect don't count as known.
                    let was = earlier.filter(|(_, hops)| *hops == 0);
                    assert_eq!(was, None, "{url} was settled: {about:?}");
                    "not discovered"
                }
                Place::Nowhere => "settled",
                _ => "other",
            };
            if let Some(earliest) = about.earliest_us.filter(|_| about.place != Place::Nowhere) {
                assert!(earliest >= at_us);
            }
            *kinds.entry(kind).or_default() += 1;
        }
    }
    eprintln!("{kinds:?}");
    for kind in ["on disk", "in memory", "fetching", "not discovered", "settled"] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 5), "{kind}: {kinds:?}");
    }
}
