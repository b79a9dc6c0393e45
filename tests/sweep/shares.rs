//! Simulated crawls that set aside a share of the visits for servers that have waited long
//! (`schedule.random_share`).

use super::{Plan, is_old, run_plan};
use sted::engine::settings::Settings;
use sted::ground::random::Random;
use sted::study::sim::judge::Laws;

/// Draws the share of such visits. Added later: the seeds that failed once stay the same.
pub(super) fn draw(seed: u64, engine: &mut Settings, laws: &mut Laws) {
    if !is_old(seed) {
        let share_milli = Random(seed ^ 0x7368_6172).pick(&[0, 0, 0, 50, 300, 500]);
        engine.frontier.scheduler.schedule.random_share_milli = share_milli;
        laws.random_share_milli = share_milli;
    }
}

/// Sabotage: a crawl that gives less than it has promised is noticed.
#[test]
fn a_share_that_is_not_given_is_noticed() {
    for given_milli in [0, 100] {
        let mut plan = Plan::of(1);
        plan.engine.frontier.scheduler.schedule.random_share_milli = given_milli;
        plan.laws.random_share_milli = 500;
        let verdict = run_plan(plan, false).verdict;
        assert!(verdict.is_err_and(|how| how.contains("law `wait` broken")), "{given_milli}");
    }
}
