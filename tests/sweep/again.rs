//! Crawls that come back, of every kind: the laws of the sweep hold for them, and no page is
//! visited again too soon. `make again-sim N=1000` runs seeds 1 to 1000.

use super::{Plan, run_plan};
use crate::trials::{asked, each, fresh_seeds};
use std::time::Duration;
use sted::engine::settings::Recrawl;
use sted::ground::random::Random;
use sted::recrawl::worth::Policy;
use sted::study::sim::judge::Complete;
use sted::study::web::{Changes, TimeSpread};

/// Seeds of every run of the tests.
const FIXED: std::ops::RangeInclusive<u64> = 1..=30;

/// The plan of a seed, of a crawl that comes back.
fn plan(seed: u64) -> Plan {
    come_back(Plan::of(seed), seed)
}

/// Makes the crawl of a plan one that comes back, to a web that may change.
pub fn come_back(mut plan: Plan, seed: u64) -> Plan {
    let mut draw = Random(seed ^ 0x6167_6169);
    let interval_min = Duration::from_secs(draw.pick(&[60, 600, 3_600]));
    let change_interval = interval_min * draw.pick(&[1, 4, 30]);
    let recrawl = Recrawl {
        policy: draw.pick(&[Policy::Uniform, Policy::Proportional, Policy::Greedy, Policy::Greedy]),
        share: draw.pick(&[0.0, 0.3, 0.9]),
        interval_min,
        interval_max: interval_min * draw.pick(&[2, 50]),
        change_interval,
    };
    plan.engine.recrawl = Some(recrawl);
    plan.engine.limits.time_max = Some(interval_min * (4 + draw.below(20) as u32));
    plan.web.changes = draw.one_in(2).then(|| Changes {
        epoch: 1_767_225_600,
        interval: TimeSpread { median: change_interval, sigma: 1.3 },
        page_sigma: 0.8,
        scheduled: 0.1,
        // What was sent of a page that changes with each fetch can't be computed afterwards.
        always: 0.0,
        appear: 0.1,
        vanish: 0.1,
        span: 30 * interval_min,
        etags: draw.pick(&[0.0, 0.6]),
        modified: draw.pick(&[0.0, 0.6]),
    });
    plan.web.sitemaps = draw.pick(&[0.0, 0.7]);
    plan.web.sitemap_lies = draw.pick(&[0.0, 0.5]);
    plan.laws.again = Some(interval_min);
    // It ends at its limit.
    plan.laws.complete = Complete::Never;
    plan.text = format!("{recrawl:?}, {:?}, {}", plan.web.changes.is_some(), plan.text);
    plan
}

fn judge_all(seeds: &[u64]) {
    each(
        seeds,
        |seed| run_plan(plan(seed), false).verdict,
        |seed| format!("(make again-sim SEED={seed}) {}", plan(seed).text),
    );
}

#[test]
fn no_law_is_broken_in_a_fixed_set_of_seeds() {
    judge_all(&FIXED.collect::<Vec<u64>>());
}

/// Seeds that were never run before: `make fresh`.
#[test]
#[ignore = "takes its time, with other seeds each time: make fresh"]
fn fresh() {
    fresh_seeds("simulations of coming back", judge_all);
}

/// Sabotage: a crawl that promises a longer interval than it keeps.
#[test]
fn haste_is_noticed() {
    let noticed = FIXED.filter(|seed| {
        let mut plan = plan(*seed);
        plan.laws.again = plan.laws.again.map(|least| 3 * least);
        run_plan(plan, false).verdict.is_err_and(|how| how.contains("law `again` broken"))
    });
    assert_eq!(noticed.take(5).count(), 5, "few of 30 seeds notice it");
}

/// The whole sweep: `make again-sim N=1000`, or one seed: `make again-sim SEED=7`.
#[test]
#[ignore = "the full sweep is run by hand: make again-sim"]
fn sweep() {
    if let Some(seed) = asked("STED_SIM_SEED") {
        println!("{}", plan(seed).text);
        return judge_all(&[seed]);
    }
    let seeds: Vec<u64> = (1..=asked("STED_SIM_N").unwrap_or(1_000)).collect();
    judge_all(&seeds);
    println!("{} seeds, no law broken", seeds.len());
}
