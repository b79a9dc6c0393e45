//! Outages of 10 seconds to 24 hours, of all hosts, of half of them, of one, and resolvers that
//! give wrong answers: they cost time, and no URL.

use super::stand::{Crawl, Pieces, Plan, outcomes_of};
use super::varied;
use std::collections::BTreeMap;
use std::time::Duration;
use sted::engine::contract::StopReason;
use sted::study::sim::settings::{Affected, Away, Outage};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// A crawl of a small web with the default waits, patient enough for all outages here.
pub fn plan(outages: Vec<Outage>) -> Plan {
    let web =
        sted::study::web::Settings { hosts: 12, pages: 240, hosts_per_address: 1, ..varied(3) };
    let mut plan = Plan::new(web).with(&[
        "politeness.burst = 1",
        "politeness.delay = \"200ms\"",
        "names.ttl_min = \"0s\"",
        "names.ttl_max = \"2s\"",
        "connections.idle_timeout = \"0s\"",
        "retries.outage_max = \"2d\"",
    ]);
    plan.world.outages = outages;
    plan
}

pub fn outage(of: Affected, how: Away, length: Duration) -> Outage {
    Outage { from: Duration::from_millis(2_500), length, of, how }
}

/// Returns the pages that a crawl has fetched, by URL.
fn pages(crawl: &Crawl) -> BTreeMap<String, String> {
    pages_of(&crawl.log)
}

fn pages_of(log: &[u8]) -> BTreeMap<String, String> {
    let answers = ["ok", "redirect", "http-error", "robots-denied"];
    let mut outcomes = outcomes_of(log);
    outcomes.retain(|url, outcome| !url.ends_with("/robots.txt") && answers.contains(&&**outcome));
    outcomes
}

fn same(crawl: &Crawl, undisturbed: &BTreeMap<String, String>, what: &str) {
    let (pages, outcomes) = (pages(crawl), crawl.outcomes());
    let mut missing = undisturbed.keys().filter(|url| !pages.contains_key(*url));
    if let Some(first) = missing.next() {
        let came_to = outcomes.get(first);
        panic!("{what}: {first} and {} more are missing: {came_to:?}", missing.count());
    }
    assert_eq!(&pages, undisturbed, "{what}");
}

#[test]
fn an_outage_of_all_or_a_lying_resolver_loses_nothing() {
    let undisturbed = pages(&plan(Vec::new()).run());
    assert!(undisturbed.len() > 200);
    let hows = [Away::Silent, Away::Unreachable, Away::Denied, Away::Empty, Away::Private];
    for how in hows {
        let short = Duration::from_millis(1_500);
        for length in [short, 10 * Duration::from_secs(1), 20 * MINUTE, 24 * HOUR] {
            if how.is_of_names() && length > HOUR {
                continue;
            }
            let crawl = plan(vec![outage(Affected::All, how, length)]).run();
            let of = format!("{how:?} for {length:?}");
            same(&crawl, &undisturbed, &of);
            assert_eq!(crawl.counts.servers_given_up(), 0, "{of}");
            // While the last answer for a name is valid, its host still answers: the crawl can't
            // notice the outage.
            if length > MINUTE && !how.is_of_names() {
                assert!(crawl.counts.outages > 0, "{of}: it was noticed");
                assert!(crawl.took < length + 30 * MINUTE, "{of}: and its end, too");
            }
        }
    }
}

#[test]
fn an_outage_of_some_is_theirs_and_loses_nothing() {
    let undisturbed = pages(&plan(Vec::new()).run());
    for of in [Affected::Half, Affected::One(0), Affected::One(5)] {
        for how in [Away::Silent, Away::Unreachable, Away::Refuses] {
            for length in [10 * Duration::from_secs(1), 20 * MINUTE, 4 * HOUR] {
                let crawl = plan(vec![outage(of, how, length)]).run();
                let what = format!("{of:?} {how:?} for {length:?}");
                same(&crawl, &undisturbed, &what);
                assert_eq!(
                    (crawl.counts.servers_given_up(), crawl.counts.outages),
                    (0, 0),
                    "{what}"
                );
            }
        }
    }
}

/// Three denials in a row give up a server that never answered, and no other failure counts as one:
/// a resolver that denies, for a moment, the names of servers that had failed otherwise loses
/// nothing.
#[test]
fn other_failures_are_no_denials() {
    let quick = ["retries.retry_wait = \"1s\"", "retries.retry_factor = 1"];
    let undisturbed = pages(&plan(Vec::new()).run());
    for (how, lie) in [(Away::Unreachable, Away::Empty), (Away::Refuses, Away::Private)] {
        for tenths in 30..40 {
            let length = Duration::from_millis(100 * tenths);
            let away = Outage { from: Duration::ZERO, length, of: Affected::Half, how };
            let lies =
                Outage { from: length, length: Duration::from_millis(1_500), how: lie, ..away };
            let crawl = plan(vec![away, lies]).with(&quick).run();
            let what = format!("{how:?} for {length:?}, then {lie:?}");
            same(&crawl, &undisturbed, &what);
            assert_eq!(crawl.counts.servers_given_up(), 0, "{what}");
        }
    }
}

/// A crawl too small to distinguish outages keeps a server that had answered, and ends when no
/// server has answered for `outage_max`.
#[test]
fn a_small_crawl_waits_longer_and_ends_in_order() {
    let mut small = plan(vec![outage(Affected::All, Away::Unreachable, 20 * HOUR)]);
    small.web.hosts = 2;
    small.web.pages = 60;
    let mut calm = small.clone();
    calm.world.outages.clear();
    let crawl = small.run();
    assert_eq!(pages(&crawl), pages(&calm.run()));
    assert_eq!((crawl.counts.servers_given_up(), crawl.counts.outages), (0, 0));
    let crawl = small.with(&["retries.outage_max = \"10h\""]).run();
    assert!(crawl.took > 10 * HOUR && crawl.took < 12 * HOUR, "{:?}", crawl.took);
    assert_eq!(crawl.counts.servers_given_up(), 0, "its URLs wait");
}

/// Dead servers at the end of a crawl are not mistaken for an outage: a server that answered before
/// is tried, and answers.
#[test]
fn dead_servers_are_no_outage_while_a_witness_answers() {
    let mut plan = plan(vec![outage(Affected::Half, Away::Silent, 1_000 * HOUR)]);
    plan.world.outages[0].from = Duration::ZERO;
    plan.web.hosts = 40;
    plan.web.seeds = 40;
    let crawl = plan.run();
    assert_eq!(crawl.counts.servers_given_up(), 20);
    assert!(crawl.took < 12 * HOUR, "{:?}", crawl.took);
}

/// A server that is unreachable for a day is given up and reported, and comes back with all its
/// URLs on `--retry-given-up`; a restart in between changes nothing.
#[test]
fn servers_that_were_given_up_come_back() {
    let undisturbed = pages(&plan(Vec::new()).run());
    for of in [Affected::One(5), Affected::Half] {
        let plan = plan(vec![outage(of, Away::Refuses, 24 * HOUR)]);
        let mut pieces = Pieces::of(&plan);
        let mut engine = pieces.open();
        pieces.run(&mut engine);
        assert_eq!(engine.stop_reason(), Some(StopReason::Finished));
        let losses = engine.counts().losses.clone();
        assert!(engine.counts().servers_given_up() > 0 && losses.answered > 0 && losses.urls > 0);
        assert_eq!(losses.largest.values().map(|loss| loss.urls).sum::<u64>(), losses.urls);
        pieces.end(engine, 30 * HOUR);
        let mut engine = pieces.open();
        engine.revive();
        let mut turns = 0;
        pieces.run_until(&mut engine, |_| {
            turns += 1;
            turns >= 12
        });
        pieces.stop(&mut engine);
        pieces.end(engine, MINUTE);
        let mut engine = pieces.open();
        pieces.run(&mut engine);
        assert_eq!(engine.stop_reason(), Some(StopReason::Finished));
        let counts = engine.counts();
        assert_eq!((counts.servers_given_up(), counts.losses.urls), (0, 0), "{of:?}");
        assert_eq!(pages_of(&pieces.log()), undisturbed, "{of:?}");
    }
}
