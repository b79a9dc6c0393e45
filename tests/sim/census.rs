//! The census of what servers wait for: its sums are those of a naive count, in crawls with rests,
//! caps, failures and pauses of every kind.

use super::stand::Plan;
use super::varied;
use std::collections::BTreeMap;
use std::time::Duration;
use sted::engine::Engine;
use sted::engine::status::Wait;
use sted::frontier::{ServerId, ServerState};
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::settings::Faults;
use sted::study::sim::{self, World};

/// The states of servers that a class of the census may have.
fn state_of(wait: Wait) -> &'static str {
    match wait {
        Wait::Visited | Wait::Names => "busy",
        Wait::Connection | Wait::Host | Wait::Address | Wait::Domain => "ready",
        Wait::Disk => "reading",
        Wait::Rest
        | Wait::Failures
        | Wait::Robots
        | Wait::RobotsOfOther
        | Wait::Operator
        | Wait::OtherNode => "snoozed",
        Wait::GivenUp => "retired",
    }
}

/// Counts servers and their queued URLs by state, all at once.
fn naive(engine: &Engine) -> BTreeMap<&'static str, (u64, u64)> {
    let frontier = engine.frontier();
    let mut sums = BTreeMap::<_, (u64, u64)>::new();
    for id in (0..frontier.servers()).map(ServerId::from_index) {
        let urls = frontier.queue_len(id) as u64;
        let name = match frontier.server(id).state() {
            ServerState::Idle => continue,
            ServerState::Busy => "busy",
            ServerState::Ready => "ready",
            ServerState::Reading => "reading",
            ServerState::Snoozed => "snoozed",
            ServerState::Retired(_) if urls == 0 => continue,
            ServerState::Retired(_) => "retired",
        };
        let sum = sums.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1 + urls);
    }
    sums
}

/// Compares the census with a naive count. Returns whether one ended in the last turn.
fn compared(engine: &Engine, seen: &mut BTreeMap<Wait, u64>) -> bool {
    let status = engine.status();
    if status.counted_s_ago != Some(0.0) {
        return false;
    }
    let mut sums = BTreeMap::<_, (u64, u64)>::new();
    for class in &status.waiting {
        let sum = sums.entry(state_of(class.r#for)).or_default();
        *sum = (sum.0 + class.servers, sum.1 + class.urls);
        *seen.entry(class.r#for).or_default() += 1;
    }
    let all: u64 = sums.values().map(|(_, urls)| urls).sum();
    assert_eq!(all, status.urls_waiting, "{status:?}");
    let mut naive = naive(engine);
    // A server under visit holds its next URL outside of its queue.
    for sums in [&mut sums, &mut naive] {
        sums.entry("busy").and_modify(|sum| sum.1 = 0);
    }
    assert_eq!(sums, naive, "{status:?}");
    let largest: Vec<u64> = status.largest.iter().map(|server| server.urls).collect();
    assert!(largest.is_sorted_by(|one, next| one >= next), "{largest:?}");
    true
}

#[test]
fn the_census_counts_what_a_naive_count_does() {
    let mut seen = BTreeMap::new();
    let mut passes = 0;
    for seed in 0..4 {
        let web = sted::study::web::Settings {
            hosts: 40,
            pages: 400,
            hosts_per_address: 5,
            hosts_per_domain: 3,
            ..varied(seed)
        };
        let mut plan = Plan::new(web).with(&[
            "politeness.burst = 2",
            "politeness.delay = \"3s\"",
            "politeness.address_visits_max = 2",
            "politeness.domain_visits_max = 1",
            "politeness.address_delay = \"500ms\"",
            "connections.open_max = 8",
        ]);
        plan.world.faults = Faults { refusals: 0.05, dns_failures: 0.05, ..Faults::default() };
        let (web, seeds, settings) = plan.parts();
        let start = sim::now_at(Instant::ZERO);
        let disk = Box::new(MemoryDisk::new());
        let mut engine = Engine::new(settings, &seeds, disk, Meter::new(still), start)
            .unwrap_or_else(|error| panic!("{error}"));
        let mut world = World::of_web(web, plan.world.clone());
        let ended = world.run_until(&mut engine, Instant::FAR, &mut |view| {
            passes += u64::from(compared(view.engine, &mut seen));
            true
        });
        ended.unwrap_or_else(|error| panic!("{error}"));
    }
    assert!(passes > 20, "{passes}");
    for wait in [Wait::Visited, Wait::Rest, Wait::Address, Wait::Domain, Wait::Failures] {
        assert!(seen.contains_key(&wait), "{wait:?} was never seen: {seen:?}");
    }
}

/// More servers than a turn examines, and nothing else to do: the pass goes on by itself, and its
/// turns stay small.
#[test]
fn a_pass_over_many_servers_takes_many_turns() {
    let urls: String = (0..3_000).map(|n| format!("http://h{n}.test/{n}\n")).collect();
    let (seeds, mistakes) = sted::seeds::parse(urls.as_bytes());
    assert!(mistakes.is_empty());
    let (_, _, settings) = Plan::new(varied(1)).parts();
    let mut now = sim::now_at(Instant::ZERO);
    let disk = Box::new(MemoryDisk::new());
    let mut engine = Engine::new(settings, &seeds, disk, Meter::new(still), now)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut turns = 0;
    while engine.status().counted_s_ago.is_none() {
        engine.expired(now);
        // Nobody answers: look-ups stay in flight. A turn begins few of them: each takes 50 us.
        assert!(std::iter::from_fn(|| engine.next_action()).count() <= 32);
        turns += 1;
        assert!(turns < 100, "the pass does not end");
        if let Some(due) = engine.deadline() {
            assert!(due.since(now.at) <= Duration::from_millis(20));
            now.at = due.max(now.at + Duration::from_micros(1));
        }
    }
    assert!(turns >= 6, "{turns}");
    let status = engine.status();
    assert_eq!((status.servers_waiting, status.urls_waiting), (3_000, 3_000));
    assert_eq!(status.waiting.iter().map(|class| class.urls).sum::<u64>(), 3_000);
    assert_eq!(status.largest.len(), 10);
}
