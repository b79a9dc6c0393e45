//! Budgets and scopes: a crawl ends at its limits, and requests nothing that a changed scope
//! excludes.

use super::stand::{Pieces, Plan, outcomes_of};
use super::varied;
use std::collections::BTreeMap;
use std::time::Duration;
use sted::engine::contract::StopReason;

/// Pipelined or not, with few connections or many, in bursts or one by one: exactly `pages_max`
/// pages.
#[test]
fn a_budget_of_pages_is_exact() {
    for burst in ["1", "7", "\"server\""] {
        for (open, depth, pages) in [(1, 1, 1), (3, 8, 100), (64, 8, 333), (64, 1, 400)] {
            let plan = Plan::new(varied(5)).with(&[
                &format!("politeness.burst = {burst}"),
                &format!("connections.open_max = {open}"),
                &format!("pipeline.depth_max = {depth}"),
                &format!("limits.pages_max = {pages}"),
            ]);
            let counts = plan.run().counts;
            assert_eq!(counts.pages, pages, "burst {burst}, {open} connections of {depth}");
        }
    }
}

/// A crawl that resumes with a narrower scope requests nothing from an excluded host, not even its
/// robots.txt; its URLs are completed with a line each. One that resumes unchanged excludes none.
#[test]
fn the_scope_is_asked_again_when_it_has_changed() {
    let crawl = |change: &dyn Fn(&mut sted::url::scope::Settings)| {
        let plan = Plan::new(varied(5)).with(&["connections.open_max = 4"]);
        let mut pieces = Pieces::of(&plan);
        let mut engine = pieces.open();
        pieces.run_until(&mut engine, |view| view.engine.counts().pages >= 200);
        pieces.stop(&mut engine);
        let before = pieces.log().len();
        pieces.end(engine, Duration::from_secs(60));
        change(&mut pieces.settings.scope);
        let mut engine = pieces.open();
        pieces.run(&mut engine);
        assert_eq!(engine.stop_reason(), Some(StopReason::Finished));
        outcomes_of(&pieces.log()[before..])
    };
    let unchanged = crawl(&|_| {});
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    for url in unchanged.keys() {
        *hosts.entry(url.split('/').nth(2).expect("a host")).or_default() += 1;
    }
    let (host, _) = hosts.iter().max_by_key(|(_, count)| **count).expect("there is more to fetch");
    let host = format!("//{host}/");
    let host = host.as_str();
    assert!(unchanged.values().all(|outcome| outcome != "excluded"));
    let changed = crawl(&|scope| scope.exclude.push(host.to_owned()));
    let of_host: Vec<_> = changed.iter().filter(|(url, _)| url.contains(host)).collect();
    assert!(!of_host.is_empty() && of_host.iter().all(|(_, outcome)| *outcome == "excluded"));
    let shallow = crawl(&|scope| scope.depth_max = 0);
    assert!(shallow.values().all(|outcome| outcome == "excluded"), "{shallow:?}");
}
