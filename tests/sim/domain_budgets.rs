//! Budgets of registrable domains: what is over them waits on disk, is shown, and is fetched.

use super::stand::{Pieces, Plan, outcomes_of};
use super::varied;
use std::time::Duration;
use sted::engine::contract::StopReason;
use sted::engine::why::{Place, Subject};

const BUDGETS: [&str; 3] =
    ["schedule.budget_max = 5", "schedule.budget_min = 1", "schedule.budget_top = 4"];

fn plan() -> Plan {
    let web = sted::study::web::Settings { hosts_per_domain: 4, ..varied(11) };
    Plan::new(web).with(&["connections.open_max = 2", "politeness.burst = \"server\""])
}

/// Law: budgets change when a URL is requested, not whether.
#[test]
fn what_is_over_a_budget_is_fetched_later() {
    let (without, with) = (plan().run(), plan().with(&BUDGETS).run());
    assert!(without.over_budget.is_none());
    let over = with.over_budget.expect("domains have budgets");
    assert_eq!(over.waiting, 0);
    assert!(over.pass > 10 && over.domains == 10, "{over:?}");
    assert_eq!(outcomes_of(&without.log), outcomes_of(&with.log));
    assert_eq!(without.counts.pages, with.counts.pages);
}

/// A crawl that is stopped says what waits, and a run without budgets fetches it.
#[test]
fn what_waits_is_shown_and_survives() {
    let all = outcomes_of(&plan().run().log);
    for is_killed in [false, true] {
        let plan = plan().with(&BUDGETS).with(&["state.checkpoint_period = \"1s\""]);
        let mut pieces = Pieces::of(&plan);
        let mut engine = pieces.open();
        pieces.run_until(&mut engine, |view| view.engine.counts().pages >= 300);
        let before = engine.over_budget().expect("domains have budgets");
        assert!(before.waiting > 20 && before.pass > 0, "{before:?}");
        let mut held = 0;
        for url in all.keys() {
            let why = engine.why(pieces.world.now(), url);
            if let Subject::Url(about) = why.subject
                && let Place::OverBudget { budget, .. } = about.place
            {
                assert!((1..=5).contains(&budget), "{url}: {budget}");
                held += 1;
            }
        }
        // Of a domain with URLs that wait, any known URL may be one of them.
        assert!(held >= before.waiting, "{held} of {}", before.waiting);
        if !is_killed {
            pieces.stop(&mut engine);
        }
        pieces.end(engine, Duration::from_secs(60));
        pieces.settings.budgets = None;
        let mut engine = pieces.open();
        let after = engine.over_budget().expect("URLs wait");
        assert!(after.waiting > 0 && after.pass > 0, "{after:?}");
        pieces.run(&mut engine);
        assert_eq!(engine.stop_reason(), Some(StopReason::Finished));
        assert!(engine.over_budget().is_none(), "they have gone");
        assert_eq!(outcomes_of(&pieces.log()), all);
    }
}

/// A crawl that has no budgets any more, and had no URL over one, doesn't keep what is known of
/// domains.
#[test]
fn budgets_without_urls_go() {
    let plan = plan().with(&["schedule.budget_max = 1_000", "schedule.budget_min = 1_000"]);
    let mut pieces = Pieces::of(&plan);
    let mut engine = pieces.open();
    pieces.run_until(&mut engine, |view| view.engine.counts().pages >= 100);
    let before = engine.over_budget().expect("domains have budgets");
    assert!(before.waiting == 0 && before.domains > 0, "{before:?}");
    pieces.stop(&mut engine);
    pieces.end(engine, Duration::from_secs(60));
    pieces.settings.budgets = None;
    assert!(pieces.open().over_budget().is_none());
}
