//! Crawls by several nodes that share a queue: no law is broken by all of them together, and in the
//! end everything that can be reached is fetched.
//!
//! A seed chooses a small web, two to four nodes, and what goes wrong: the queue loses, repeats and
//! delays what it is asked, connections to it are cut; clocks drift; nodes join late, are stopped,
//! suspended for ten minutes, leave, or are killed, and may come back. `make clusters N=1000` runs
//! seeds 1 to 1000, `make clusters SEED=7` one of them with its plan. Seeds that failed once stay
//! in [`REGRESSIONS`].

mod audit;
mod plan;
mod stand;

use crate::trials;
use plan::{Event, Plan};
use stand::{run, run_and_count};
use std::time::Duration;
use sted::engine::node::Broken;
use sted::study::sim::cluster::judge::Laws;

/// Seeds that failed once, and what was wrong.
const REGRESSIONS: &[(u64, &str)] = &[
    (4, "a connection that stood idle was ended as a visit when its partition was lost"),
    (9, "a redirect that was followed wasn't settled: the next owner asked for it again"),
    (36, "a link read from a log led to a page that a redirect chain was asking for: asked twice"),
    (2, "the answer to a reading was lost, and the log was never read again"),
    (192, "what a node hadn't published when it took a partition again was fetched again"),
    (515, "the same, after a kill"),
    (937, "the same, by a process that had resumed"),
    (
        4974,
        "a robots.txt cut short by a suspend was to be asked for an hour later, beyond the bound",
    ),
    (2736, "a snapshot says what others had settled too late: the judge was wrong"),
];
/// Seeds of every run of the tests.
const FIXED: std::ops::RangeInclusive<u64> = 1..=200;

#[test]
fn no_law_is_broken_in_a_fixed_set_of_seeds() {
    let seeds: Vec<u64> = FIXED.chain(REGRESSIONS.iter().map(|(seed, _)| *seed)).collect();
    judge_all(&seeds);
}

fn judge_all(seeds: &[u64]) {
    let text = |seed| format!("(make clusters SEED={seed}) {}", Plan::of(seed).text());
    trials::each(seeds, |seed| run(&Plan::of(seed), None).map(|_| ()), text);
}

/// Crawls that count links between domains, whose facts go through the logs, keep the laws, too.
#[test]
fn no_law_is_broken_by_facts_of_domains() {
    let counting = |seed| {
        let mut plan = Plan::of(seed);
        plan.crawl = plan.crawl.with(&[
            "quality.source = \"inlinks\"",
            "quality.site = \"domain\"",
            "quality.sites_max = 1_000",
        ]);
        plan
    };
    let seeds: Vec<u64> = (1..=30).collect();
    trials::each(
        &seeds,
        |seed| run(&counting(seed), None).map(|_| ()),
        |seed| format!("seed {seed}, counting links between domains: {}", counting(seed).text()),
    );
}

/// What nodes count as lost is about as much as what is asked for again: more where it was
/// published in time after all, less where a node never came back to count it.
#[test]
fn what_is_lost_is_counted() {
    let (mut repeats, mut lost) = (0, 0);
    for seed in 1..=30 {
        let found = run_and_count(None, &Plan::of(seed), None);
        let (tally, count) = found.unwrap_or_else(|how| panic!("seed {seed}: {how}"));
        repeats += tally.repeats;
        lost += count;
    }
    assert!(repeats > 50, "{repeats}");
    assert!((repeats / 2..=2 * repeats).contains(&lost), "{repeats} asked again, {lost} lost");
}

/// Two runs of a seed do the same.
#[test]
fn two_runs_of_a_seed_are_the_same() {
    for seed in [3, 8, 13] {
        let plan = Plan::of(seed);
        let first = run(&plan, None);
        assert!(first.as_ref().is_ok_and(|tally| tally.requests > 50), "{first:?}");
        assert_eq!(first, run(&plan, None), "seed {seed}");
    }
}

/// Returns how many of the first seeds notice a promise that is broken on purpose; at most 3.
fn noticed(seeds: u64, broken: Broken, law: &str, change: fn(&mut Plan)) -> usize {
    let notices = |seed: &u64| {
        let mut plan = Plan::of(*seed);
        change(&mut plan);
        run(&plan, Some(broken)).is_err_and(|how| how.contains(law))
    };
    (1..=seeds).filter(notices).take(3).count()
}

/// Sabotage: each node visits an address as if it were alone.
#[test]
fn an_undivided_pace_is_noticed() {
    let count = noticed(40, Broken::PaceUndivided, "`addresses`", |_| {});
    assert_eq!(count, 3, "noticed in {count} of 40 seeds");
}

/// Sabotage: pages are settled before their links to other hosts are in the logs, and the node is
/// killed.
#[test]
fn pages_settled_before_their_links_are_noticed() {
    let few_links = |plan: &mut Plan| {
        let web = &mut plan.crawl.web;
        (web.links.median, web.links.sigma, web.host_fanout, web.seeds) = (2.0, 0.0, 2, 1);
        plan.outbox.wait_max = Duration::from_secs(4);
        plan.nodes.truncate(2);
        for (number, node) in plan.nodes.iter_mut().enumerate() {
            let kill = Event::Kill { power: false, job_verbs: 0, seed: 1 };
            let at = Duration::from_millis(7_000 + web.seed % 8_000);
            node.begins = Duration::ZERO;
            node.events = if number == 1 { vec![(at, kill)] } else { Vec::new() };
        }
    };
    let count = noticed(40, Broken::SettledFirst, "`end`", few_links);
    assert_eq!(count, 3, "noticed in {count} of 40 seeds");
}

/// Sabotage: a checkpoint says that more of the logs was read than was, and the node is killed and
/// returns before anybody has noticed.
#[test]
fn positions_ahead_of_the_checkpoint_are_noticed() {
    let returns_soon = |plan: &mut Plan| {
        let web = &mut plan.crawl.web;
        (web.links.median, web.links.sigma, web.host_fanout, web.seeds) = (2.0, 0.0, 2, 1);
        plan.nodes.truncate(2);
        for (number, node) in plan.nodes.iter_mut().enumerate() {
            let kill = Event::Kill { power: false, job_verbs: 0, seed: 1 };
            let at = Duration::from_millis(7_000 + plan.crawl.web.seed % 8_000);
            let back = at + Duration::from_secs(1);
            node.begins = Duration::ZERO;
            let all = [(at, kill), (back, Event::Return)];
            node.events = if number == 1 { all.to_vec() } else { Vec::new() };
        }
    };
    let count = noticed(40, Broken::PositionAhead, "`end`", returns_soon);
    assert_eq!(count, 3, "noticed in {count} of 40 seeds");
}

/// Sabotage: a node ends the crawl when all say that they are idle, without looking once more,
/// while answers of the queue are lost, so that others read late what they were sent.
#[test]
fn an_end_that_nobody_confirms_is_noticed() {
    let reads_late = |plan: &mut Plan| {
        let web = &mut plan.crawl.web;
        (web.links.median, web.links.sigma, web.host_fanout, web.seeds) = (2.0, 0.0, 2, 1);
        (plan.queue.lost, plan.queue.repeated, plan.queue.cut) = (0.2, 0.0, 0.0);
        plan.outbox.wait_max = Duration::from_millis(200);
        plan.nodes.truncate(2);
        for node in &mut plan.nodes {
            (node.begins, node.events) = (Duration::ZERO, Vec::new());
        }
    };
    let count = noticed(40, Broken::EndsUnconfirmed, "`end`", reads_late);
    assert_eq!(count, 3, "noticed in {count} of 40 seeds");
}

/// The judge notices crawls that keep less than it demands.
#[test]
fn the_laws_notice() {
    type Change = fn(&mut Laws);
    let cases: [(Change, &str); 6] = [
        (|laws| laws.settle *= 4, "`owner`"),
        (|laws| laws.delay *= 2, "`rest`"),
        (|laws| laws.address_delay *= 20, "`addresses`"),
        (|laws| laws.address_visits_max = 0, "`addresses`"),
        (|laws| laws.outbox_bytes_max = 0, "`memory`"),
        (|laws| laws.turn_units_max.0 = 1_000, "`turn`"),
    ];
    for (number, (change, law)) in cases.into_iter().enumerate() {
        let notices = |seed: u64| {
            let mut plan = Plan::of(seed);
            change(&mut plan.laws);
            run(&plan, None).is_err_and(|how| how.contains(law))
        };
        assert!((1..=20).any(notices), "case {number}: {law} isn't broken in 20 seeds");
    }
}

/// The whole sweep: `make clusters N=1000`, or one seed: `make clusters SEED=7`.
#[test]
#[ignore = "the full sweep is run by hand: make clusters"]
fn sweep_of_clusters() {
    if let Some(seed) = trials::asked("STED_CLUSTER_SEED") {
        let plan = Plan::of(seed);
        println!("{}\n{:?}", plan.text(), run(&plan, None));
        return judge_all(&[seed]);
    }
    let seeds: Vec<u64> = (1..=trials::asked("STED_CLUSTER_N").unwrap_or(1_000)).collect();
    judge_all(&seeds);
    println!("{} seeds, no law broken", seeds.len());
}

/// Seeds that were never run before: `make fresh`.
#[test]
#[ignore = "takes its time, with other seeds each time: make fresh"]
fn fresh() {
    trials::fresh_seeds("clusters", judge_all);
}
