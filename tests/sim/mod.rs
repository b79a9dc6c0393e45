//! Whole webs in the simulated world: crawls compared with the web's own manifest, faults that end,
//! histories that repeat, a core that saturates.

mod again;
mod budget;
mod census;
mod cluster;
mod commands;
mod domain_budgets;
mod held;
mod outage;
mod resume;
mod scoring;
mod space;
pub mod stand;
mod times;
mod why;

use stand::{Crawl, PERIOD, Plan};
use std::collections::BTreeSet;
use std::time::Duration;
use sted::ground::map::Map;
use sted::study::sim::settings::{Core, DiskFaults, Faults};
use sted::study::sim::{Figures, Observation};
use sted::study::web::{Budget, Hostile, Manifest, Settings, Spread, TimeSpread};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A small web with everything that well-behaved servers do, at realistic distances.
fn varied(seed: u64) -> Settings {
    Settings {
        seed,
        hosts: 40,
        pages: 1_200,
        round_trip: TimeSpread { median: ms(60), sigma: 0.6 },
        round_trip_jitter: 0.2,
        accept_time: TimeSpread { median: ms(5), sigma: 0.5 },
        dns_time: TimeSpread { median: ms(30), sigma: 0.8 },
        rate: Spread { median: 400_000.0, sigma: 1.0 },
        hosts_per_address: 3,
        hostile: Vec::new(),
        ..Settings::quickstart()
    }
}

/// Returns the deviations from the manifest, one per line.
fn mistakes(crawl: &Crawl, budget: Budget) -> Vec<String> {
    let manifest = Manifest::new(&crawl.web, budget);
    let (outcomes, requests) = (crawl.outcomes(), crawl.requests());
    let mut left: BTreeSet<&String> = outcomes.keys().chain(requests.keys()).collect();
    let mut mistakes = Vec::new();
    let open = manifest.entries.iter().any(|entry| entry.open);
    for entry in &manifest.entries {
        let url = crawl.web.url(entry.place);
        let got = outcomes.get(&url).map(String::as_str);
        let fits = |name| entry.outcomes.iter().any(|outcome| outcome.name() == name);
        if !got.is_some_and(fits) {
            mistakes.push(format!("{url}: {got:?}, not {:?}", entry.outcomes));
        }
        let count = requests.get(&url).copied().unwrap_or(0);
        if !(entry.requests.min..=entry.requests.max).contains(&count) {
            mistakes.push(format!("{url}: {count} requests, not {:?}", entry.requests));
        }
        left.remove(&url);
    }
    if !open {
        mistakes.extend(left.into_iter().map(|url| format!("{url}: nobody could know it")));
    }
    mistakes
}

fn none(mistakes: &[String]) {
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
}

/// Counts the requests of a connection that were sent while another was unanswered.
fn pipelined(crawl: &Crawl) -> usize {
    let deep = |seen: &Observation| matches!(seen, Observation::Request { unanswered: 1.., .. });
    crawl.times_us(deep).len()
}

#[test]
fn a_crawl_of_a_web_comes_to_its_manifest() {
    for (seed, pipelines) in [(1, true), (2, true), (3, false)] {
        let switch = format!("pipeline.enabled = {pipelines}");
        let crawl = Plan::new(varied(seed)).with(&[&switch]).run();
        none(&mistakes(&crawl, Budget { tries: 4, ..Budget::default() }));
        assert_eq!(pipelined(&crawl) > 100, pipelines, "{} of {:?}", pipelined(&crawl), seed);
        assert!(crawl.outcomes().len() > 1_000);
        assert!(crawl.counts.left_over > 0 || !pipelines, "silent closes lose what is behind");
        assert_eq!(crawl.figures.connections, 0);
        let resumed = crawl.counts.handshakes_resumed;
        assert!(crawl.counts.handshakes_full > 0 && resumed > 0, "{:?}", crawl.counts);
    }
}

/// Two runs of one seed have the same history; another seed of the world gives another one.
#[test]
fn one_seed_gives_one_history() {
    let mut plan = Plan::new(Settings { pages: 400, hosts: 20, ..varied(5) });
    plan.world.faults = SOME_FAULTS;
    plan.world.gateway_bytes_per_second = 2_000_000;
    plan.world.core = Core { turn_ns: 5_000, reply_ns: 300_000, byte_ps: 900, ..Core::default() };
    let (one, same) = (plan.run(), plan.run());
    assert!(one.actions.lines().count() > 500, "{}", one.actions.lines().count());
    assert_eq!(one.actions, same.actions);
    assert_eq!((one.hash, &one.log, one.figures), (same.hash, &same.log, same.figures));
    assert_eq!(one.observations, same.observations);
    assert!(one.figures.faults > 20, "{:?}", one.figures);
    plan.world.seed += 1;
    assert_ne!(plan.run().hash, one.hash, "another seed of the world");
}

const SOME_FAULTS: Faults = Faults {
    losses: 0.05,
    resets: 0.05,
    refusals: 0.05,
    dns_failures: 0.1,
    silences: 0.03,
    until: None,
};

/// Once faults end, everything is fetched.
#[test]
fn faults_that_end_cost_time_only() {
    let mut plan = Plan::new(varied(6)).with(&[
        "retries.retries_max = 30",
        "retries.server_failures_max = 100",
        "retries.retry_wait = \"2s\"",
        "retries.retry_wait_max = \"30s\"",
        "politeness.robots_retry_wait = \"20s\"",
    ]);
    // A page that breaks two connections in a row is given up early, which must not happen where
    // breaks are drawn.
    plan.change = |settings| {
        settings.pipeline.head_faults_max = u8::MAX;
        settings.retries.short_retries_max = u8::MAX;
    };
    let sound = plan.run();
    plan.world.faults = Faults { until: Some(Duration::from_secs(60)), ..SOME_FAULTS };
    let crawl = plan.run();
    none(&mistakes(&sound, Budget { tries: 31, ..Budget::default() }));
    let (with, without) = (crawl.outcomes(), sound.outcomes());
    let differ = with.iter().filter(|(url, outcome)| without.get(*url) != Some(outcome));
    none(&differ.map(|(url, outcome)| format!("{url}: {outcome}")).collect::<Vec<_>>());
    assert_eq!(with.len(), without.len());
    assert!(crawl.figures.faults > 50, "{:?}", crawl.figures);
    assert!(crawl.counts.retries > 20 && sound.counts.retries < crawl.counts.retries);
    assert!(crawl.took > sound.took);
}

/// A server that can't speak TLS is tried twice, the longest wait apart; one whose certificate is
/// refused only once.
#[test]
fn tls_failures_that_last_are_not_tried_often() {
    let hostile = vec![Hostile::NotTls, Hostile::Expired];
    let web = Settings { hosts: 4, pages: 20, hostile, ..varied(5) };
    let plan =
        Plan::new(web).with(&["retries.retry_wait = \"1s\"", "retries.retry_wait_max = \"2h\""]);
    let crawl = plan.run();
    for (kind, name, tries) in
        [(Hostile::NotTls, "tls-not-tls", 2), (Hostile::Expired, "certificate-expired", 1)]
    {
        let is_kind = |host: &u32| crawl.web.hostile_of(*host) == Some(kind);
        let asked: Vec<_> = crawl
            .observations
            .iter()
            .filter_map(|(at, seen)| match seen {
                Observation::Connecting { host, .. } if is_kind(host) => Some(*at),
                _ => None,
            })
            .collect();
        assert_eq!(asked.len(), tries, "{name}");
        assert!(asked.windows(2).all(|two| two[1].since(two[0]) >= Duration::from_secs(7_200)));
        assert!(crawl.outcomes().values().any(|outcome| outcome == name), "{name}");
    }
}

/// Each kind of fault has its own outcome, and occurs with its share.
#[test]
fn faults_show_as_what_they_are() {
    let none = Faults::default();
    let cases: [(Faults, &[&str]); 4] = [
        (Faults { resets: 0.2, ..none }, &["reset"]),
        (Faults { silences: 0.2, ..none }, &["head-timed-out"]),
        (Faults { refusals: 0.2, ..none }, &["connect-refused"]),
        (Faults { dns_failures: 0.5, ..none }, &["dns-timed-out", "dns-failed"]),
    ];
    for (faults, names) in cases {
        // Hosts that take one request on a connection, so that there are many connections.
        let web = Settings { http10: 1.0, hosts: 30, pages: 300, ..varied(11) };
        let mut plan = Plan::new(web).with(&["retries.retry_wait = \"1s\""]);
        plan.world.faults = faults;
        let crawl = plan.run();
        let outcomes = &crawl.counts.outcomes;
        assert!(names.iter().all(|name| outcomes.contains_key(*name)), "{faults:?}: {outcomes:?}");
        let (happened, share) = (crawl.figures.faults, share(faults));
        let tries = match names[0] {
            "connect-refused" => crawl.counts.connections,
            "dns-timed-out" => {
                crawl.times_us(|seen| matches!(seen, Observation::Resolved { .. })).len() as u64
            }
            _ => crawl.figures.replies + happened,
        };
        let within = |part: f64| (share * 0.6..share * 1.4).contains(&part);
        assert!(within(happened as f64 / tries as f64), "{faults:?}: {happened} of {tries}");
    }
}

fn share(faults: Faults) -> f64 {
    faults.resets + faults.silences + faults.refusals + faults.dns_failures
}

/// The crawl ends by itself when the disk is full, and reports why.
#[test]
fn a_full_disk_ends_the_crawl() {
    let lines = ["store.format = \"warc\"", "disk.full = \"stop\"", "disk.free_min = \"0B\""];
    let mut plan = Plan::new(varied(12)).with(&lines);
    plan.disk = DiskFaults { room_bytes: Some(600_000), ..DiskFaults::default() };
    let crawl = plan.run();
    assert!(crawl.trouble.is_some_and(|text| text.contains("append to")));
    plan.disk = DiskFaults { syncs: 1.0, ..DiskFaults::default() };
    let crawl = plan.run();
    assert!(crawl.trouble.is_some_and(|text| text.contains("sync")));
    plan.disk = DiskFaults::default();
    assert_eq!(plan.run().trouble, None);
}

/// The callback is called once a period, and once at the end, with figures that only grow.
#[test]
fn a_crawl_is_watched_once_a_period() {
    let plan = Plan::new(varied(13));
    let crawl = plan.run();
    let looks = &crawl.looks;
    let (last, others) = looks.split_last().expect("one at the end");
    for (number, (at, _)) in (1..).zip(others) {
        assert_eq!(*at, PERIOD * number);
    }
    assert!(others.len() > 10 && crawl.took.abs_diff(PERIOD * others.len() as u32) < PERIOD);
    assert_eq!((last.0, last.1.replies), (crawl.took, crawl.figures.replies));
    let grows = |two: &[(Duration, Figures)]| two[0].1.received_bytes <= two[1].1.received_bytes;
    assert!(looks.windows(2).all(grows));
    assert!(others.iter().any(|(_, figures)| figures.connections > 20));
}

/// A core that needs a millisecond for a reply handles a thousand a second, even if the servers
/// could send more.
#[test]
fn a_full_core_bounds_what_is_crawled() {
    let web = Settings { hosts: 32, seeds: 32, pages: 1_600, ..Settings::default() };
    let mut plan = Plan::new(web);
    plan.record = false;
    plan.world.core = Core { reply_ns: 1_000_000, ..Core::default() };
    let crawl = plan.run();
    let replies = crawl.figures.replies;
    assert_eq!(replies, 1_632, "pages and robots.txt");
    assert_eq!(crawl.figures.core_busy, ms(replies));
    assert!(crawl.took >= ms(replies - 100) && crawl.took < ms(replies + 100), "{crawl:?}");
    plan.world.core = Core { reply_ns: 500_000, link_ns: 20_000, ..Core::default() };
    let cheaper = plan.run();
    let expected = ms(replies) / 2 + Duration::from_micros(20) * cheaper.counts.links as u32;
    assert_eq!(cheaper.figures.core_busy, expected);
}

/// Each hostile host does the same in simulation as in the lab.
#[test]
fn hostile_hosts_come_to_their_manifest() {
    let endless = [Hostile::EndlessLinks, Hostile::Babble];
    let hostile = Hostile::ALL.into_iter().filter(|kind| !endless.contains(kind));
    let web = Settings { hostile: hostile.collect(), ..Settings::hostile() };
    let crawl = Plan::new(web)
        .with(&[
            "retries.retry_wait = \"1s\"",
            "retries.retries_max = 2",
            "politeness.robots_retry_wait = \"1s\"",
            "politeness.robots_unreachable_max = \"1h\"",
        ])
        .run();
    none(&mistakes(&crawl, Budget::default()));
}

/// Observations are reported in order of time, and are consistent.
#[test]
fn observations_are_consistent() {
    let crawl = Plan::new(varied(9)).run();
    let mut open = Map::default();
    let mut last = 0;
    for (at, seen) in &crawl.observations {
        assert!(at.as_micros() >= last, "{seen:?} at {at}, after {last}");
        last = at.as_micros();
        match seen {
            Observation::Connecting { conn, .. } => assert_eq!(open.insert(*conn, (0, 0)), None),
            Observation::Closed { conn, .. } => assert!(open.remove(conn).is_some()),
            Observation::Request { conn, unanswered, .. } => {
                let (asked, answered) = open.get_mut(conn).expect("an open connection");
                assert_eq!(u64::from(*unanswered), *asked - *answered);
                *asked += 1;
            }
            Observation::Reply { conn, whole, .. } => {
                assert!(whole, "nobody cuts replies here");
                open.get_mut(conn).expect("an open connection").1 += 1;
            }
            Observation::Sent { conn } | Observation::Established { conn, .. } => {
                assert!(open.contains_key(conn));
            }
            Observation::Resolved { host, .. } => assert!(host.is_some()),
        }
    }
    assert!(open.is_empty(), "the end of a crawl closes what is open");
    let requests: u32 = crawl.requests().values().sum();
    let replies = crawl.replies_us().len() as u64;
    assert_eq!((u64::from(requests), replies), (crawl.figures.replies, crawl.figures.replies));
}
