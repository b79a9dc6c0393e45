//! What link farms take of a crawl, simulated: the share of requests that go to a farm until half
//! of the honest pages are fetched, and how many requests 99% of the honest pages take, beside the
//! same web without a farm.
//!
//! The honest web has 20,000 registrable domains, a farm 10,000 hosts on 10 or on 100 domains. The
//! root of the best-linked site links to the farm, alone or with 999 other pages.
//!
//! `spam` prints a line of a table for each web and crawl; `spam 10` does so with a tenth of all
//! domains, hosts and links to the farm. Both fail if a farm takes more than it may. As a test, a
//! twentieth of the first two webs is crawled. Everything is on a virtual clock: the same on every
//! machine.

#[path = "spam_crawl.rs"]
mod crawl;
#[path = "spam_web.rs"]
mod web;

use crawl::{Outcome, Requests};
use sted::budgets;
use sted::engine::settings::Settings;
use web::{Farm, Plan, Spam};

/// A kind of crawl.
struct Crawler {
    name: &'static str,
    /// Whether it limits what a registrable domain may have.
    has_budgets: bool,
    /// Changes the settings of a crawl of a web of one such part of the whole size.
    change: fn(&mut Settings, u32),
}

/// The crawls of each web.
const CRAWLERS: [Crawler; 2] = [
    Crawler { name: "bfs", has_budgets: false, change: |_, _| {} },
    Crawler { name: "budgets", has_budgets: true, change: set_budgets },
];

/// The webs: without a farm, and with one of so many domains, to which so many pages link.
const WEBS: [Option<(u32, u32)>; 5] =
    [None, Some((10, 1)), Some((10, 1_000)), Some((100, 1)), Some((100, 1_000))];
/// The largest and the least budget, in URLs a pass.
const BUDGETS: (u32, u32) = (1_000, 10);
const HONEST_DOMAINS: u32 = 20_000;
const FARM_HOSTS: u32 = 10_000;

/// The largest share of requests that a farm of [`FEW`] domains may get from a crawl with budgets,
/// until half of the honest pages are fetched.
const SHARE_MAX: f64 = 0.05;
/// The share that it gets at least from a crawl without: else the web would show nothing.
const SHARE_BFS: f64 = 0.5;
const FEW: u32 = 10;
/// How many times as many requests half of the honest pages may take as on the clean web. 99% of
/// them take more, which is only stated: a few of the largest honest sites are linked to from few
/// domains, and last for as many passes as the farm does.
const COST_MAX: f64 = 1.1;
/// The smallest webs, as one such part of the whole, that the first limit is for: on smaller ones
/// ten domains are a large share of all. The third one is for the whole.
const PART_MAX: u32 = 20;

/// Sets budgets: a twentieth of all domains have more than the least.
fn set_budgets(settings: &mut Settings, part: u32) {
    let (max, min, top) = (BUDGETS.0, BUDGETS.1, (HONEST_DOMAINS / 20 / part).max(1));
    settings.budgets = Some(budgets::Settings { max, min, top });
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_bench = words.iter().any(|word| word == "--bench");
    let parts: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    let part = match parts[..] {
        [] => {
            if is_bench {
                1
            } else {
                PART_MAX
            }
        }
        [part] => part.parse().ok().filter(|part| (1..=100).contains(part)).expect("1 to 100"),
        _ => panic!("nothing, or one number: 10 for a tenth of the size"),
    };
    println!(
        "web,crawl,half_requests,half_farm_share,half_cost,most_requests,most_farm_share,most_cost"
    );
    let (mut clean, mut wrong) = (None, Vec::new());
    let webs = if is_bench || !parts.is_empty() { &WEBS[..] } else { &WEBS[..2] };
    for &farm in webs {
        let spam = make(part, farm);
        let name = farm.map_or("clean".to_owned(), |(domains, entrances)| {
            format!("farm-{domains}-domains-{entrances}-links")
        });
        for crawler in &CRAWLERS {
            let outcome = crawl::run(&spam, &|settings| (crawler.change)(settings, part));
            let (half, most) = complete(&outcome, &name, crawler.name);
            let (clean_half, clean_most) = *clean.get_or_insert((half.all, most.all));
            let cost = half.all as f64 / clean_half as f64;
            println!(
                "{name},{},{},{:.4},{cost:.4},{},{:.4},{:.4}",
                crawler.name,
                half.all,
                half.farm_share(),
                most.all,
                most.farm_share(),
                most.all as f64 / clean_most as f64
            );
            wrong.extend(judge(crawler, farm, part, (half.farm_share(), cost)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the web of one such part of the whole size, with or without a farm.
fn make(part: u32, farm: Option<(u32, u32)>) -> Spam {
    let farm = farm.map(|(domains, entrances)| Farm {
        domains,
        hosts: FARM_HOSTS / part,
        entrances: entrances.div_ceil(part),
    });
    let spam = Spam::new(&Plan { seed: 1, domains: HONEST_DOMAINS / part, farm });
    if farm.is_none() {
        let mut linking = spam.linking.clone();
        linking.sort_unstable();
        let at = |percent: usize| linking[(linking.len() - 1) * percent / 100];
        eprintln!(
            "{} honest pages on {} hosts; half of their domains are linked to from {} others or \
             more, a hundredth from {}, the first from {}",
            spam.honest_pages,
            spam.honest_hosts,
            at(50),
            at(99),
            at(100)
        );
    }
    spam
}

/// Returns the requests until half and until 99% of the honest pages were fetched.
fn complete(outcome: &Outcome, web: &str, crawler: &str) -> (Requests, Requests) {
    match (outcome.half, outcome.most) {
        (Some(half), Some(most)) => (half, most),
        _ => panic!("{web}, {crawler}: the crawl has ended without 99% of the honest pages"),
    }
}

/// Returns what is wrong if a farm got too much of a crawl, or of one without budgets too little.
fn judge(
    crawler: &Crawler,
    farm: Option<(u32, u32)>,
    part: u32,
    (share, cost): (f64, f64),
) -> Option<String> {
    let is_few = farm.is_some_and(|(domains, _)| domains == FEW);
    let wrong = match farm {
        None => (share > 0.0 || cost > COST_MAX).then(|| format!("the clean web costs {cost:.3}")),
        Some(_) if !crawler.has_budgets => {
            (is_few && share < SHARE_BFS).then(|| format!("the farm gets only {share:.3}"))
        }
        Some(_) => {
            let is_much = is_few && share > if part <= PART_MAX { SHARE_MAX } else { SHARE_BFS };
            let is_dear = is_few && part == 1 && cost > COST_MAX;
            (is_much || is_dear)
                .then(|| format!("the farm gets {share:.3}, honest pages cost {cost:.3} times"))
        }
    };
    wrong.map(|wrong| format!("{}, {farm:?}: {wrong}", crawler.name))
}
