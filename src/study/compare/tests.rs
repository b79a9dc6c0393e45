//! Every simulated crawl is judged: each scheduler that is broken on purpose violates its law, and
//! the correct one violates none.

use super::measure::quality;
use super::plan::Plan;
use super::scene::Scene;
use super::series::{Along, Run};
use super::simulate;
use crate::conf::Conf;
use crate::frontier::tests::sabotage::{Sabotage, commit};

const STUDY: &str = "
[compare]
policies = [\"capability\"]
quality = \"zipf\"
sample_period = \"10ms\"

[web]
preset = \"plain\"
hosts = 20
seeds = 20
pages = 1_000
pages_sigma = 1
think_time = \"30ms\"
think_time_sigma = 1
round_trip = \"20ms\"

[politeness]
burst = 1
delay = \"500ms\"
delay_factor = 0
address_delay = \"0s\"
domain_delay = \"0s\"
robots = false

[connections]
open_max = 4
";

/// The study with servers that wait for each other, in more domains than there are connections.
fn crowded() -> String {
    hasty()
        .replace("hosts = 20", "hosts = 20\nhosts_per_domain = 5")
        .replace("robots = false", "robots = false\ndomain_visits_max = 1")
        .replace("open_max = 4", "open_max = 2")
}

/// A study of servers that share domains and ask for Crawl-delays.
fn shared() -> String {
    STUDY
        .replace("hosts = 20", "hosts = 20\nhosts_per_domain = 5\nrobots_delay_share = 0.3")
        .replace("robots = false", "robots = true\ndomain_visits_max = 1")
        .replace("burst = 1", "burst = \"server\"")
        .replace("delay = \"500ms\"", "delay = \"0s\"")
}

/// A study of servers without delays: most of them are ready.
fn hasty() -> String {
    STUDY.replace("delay = \"500ms\"", "delay = \"0s\"")
}

/// A study with visits that are for the servers that have waited for the longest time.
fn fair() -> String {
    hasty() + "\n[schedule]\nrandom_share = 0.3\n"
}

/// Runs all crawls of a study, which are sound.
fn crawled(study: &str) -> Vec<Run> {
    let conf = Conf::parse(study, "study.toml").unwrap_or_else(|error| panic!("{error}"));
    let compare = conf.compare.clone().expect("a comparison");
    let plan = Plan::new(&conf, &compare, "study.toml").expect("a plan");
    let crawl = |spec| {
        let scene = Scene::new(&plan.grounds[0]).expect("a web");
        simulate::run(spec, &scene, &|_| {}).unwrap_or_else(|failure| panic!("{}", failure.text))
    };
    plan.runs.iter().map(crawl).collect()
}

/// Runs the last crawl of a study; returns its pages, or the violations.
fn judged(study: &str) -> Result<u64, String> {
    let conf = Conf::parse(study, "study.toml").expect("a study");
    let compare = conf.compare.clone().expect("a comparison");
    let plan = Plan::new(&conf, &compare, "study.toml").expect("a plan");
    let spec = plan.runs.last().expect("a crawl");
    assert_eq!(spec.policy.name(), "capability");
    let scene = Scene::new(&plan.grounds[spec.ground]).expect("a web");
    let run = simulate::run(spec, &scene, &|_| {});
    run.map(|run| run.series.last().pages).map_err(|failure| failure.text)
}

#[test]
fn a_sound_scheduler_breaks_no_law() {
    assert_eq!(judged(STUDY), Ok(1_000));
    assert_eq!(judged(&hasty()), Ok(1_000));
    assert_eq!(judged(&crowded()), Ok(1_000));
    assert_eq!(judged(&shared()), Ok(1_000));
    assert_eq!(judged(&fair()), Ok(1_000));
}

/// What a crawl was configured to leave out is not missing.
#[test]
fn a_crawl_of_less_breaks_no_law() {
    let page = judged(&format!("{STUDY}\n[job]\nseeds = [\"http://h0003.test/no-page\"]"));
    assert_eq!(page, Ok(1), "its seed leads nowhere");
    let links =
        judged(&format!("{STUDY}\n[links]\nlinks_max = 1").replace("seeds = 20", "seeds = 1"));
    assert!(links.as_ref().is_ok_and(|pages| (1..500).contains(pages)), "{links:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seeds.txt");
    std::fs::write(&file, "http://h0003.test/no-page\nhttp://h0004.test/none\n").expect("written");
    let file = judged(&format!("{STUDY}\n[job]\nseeds_file = {file:?}"));
    assert_eq!(file, Ok(2), "as many as its file names");
}

/// No policy crosses the bound, on webs where the hosts, the core, the connections or the line
/// limit the crawls, and the bound is not far above them.
#[test]
fn law_no_crawl_is_above_the_bound() {
    let ample =
        STUDY.replace("delay = \"500ms\"", "delay = \"0s\"").replace("burst = 1", "burst = 50");
    let webs = [
        ("rests", STUDY.to_owned(), 0.95),
        ("connections", ample.clone(), 0.65),
        ("core", format!("{ample}\n[sim]\ncore_reply = \"40ms\"\ncore_link = \"100us\""), 0.5),
        ("line", format!("{ample}\n[sim]\ngateway = \"300KB\""), 0.5),
        ("one host", ample.replace("hosts = 20\nseeds = 20", "hosts = 1\nseeds = 1"), 0.8),
    ];
    for (name, study, least) in webs {
        for seed in 1..=2 {
            let study = study
                .replace("[web]", &format!("[web]\nseed = {seed}"))
                .replace("[\"capability\"]", "[\"bfs\", \"quality\", \"capability\"]");
            let runs = crawled(&study);
            let bound = runs[0].bound.clone().expect("the reference has one");
            for run in &runs {
                for sample in run.series.samples() {
                    // Work is charged when it begins, so it may run ahead of the time.
                    let most = bound.at(sample.seconds.max(sample.busy_seconds));
                    let has = sample.quality_millionths as f64;
                    let policy = run.spec.policy.name();
                    assert!(has <= most, "{name}, {policy} at {}: {has}, {most}", sample.seconds);
                }
            }
            let early = runs[1].series.last().seconds / 4.0;
            let share = runs[1].series.at(Along::Time, early, quality) / bound.at(early);
            assert!(share > least, "{name}: the bound is too far away: {share}");
        }
    }
}

#[test]
fn broken_schedulers_are_caught_each_by_its_law() {
    let cases = [
        (Sabotage::RankInverted, STUDY.to_owned(), "order"),
        (Sabotage::RanksStale, hasty(), "order"),
        (Sabotage::WorstReleased, crowded(), "order"),
        (Sabotage::YoungestFirst, fair(), "wait"),
        (Sabotage::ListSkipped, fair(), "wait"),
        (Sabotage::DelayIgnored, STUDY.to_owned(), "rest"),
        (Sabotage::UrlsDropped, STUDY.to_owned(), "complete"),
        (Sabotage::CapsIgnored, shared(), "groups"),
        (Sabotage::CrawlDelayIgnored, shared(), "crawl-delay"),
    ];
    for (sabotage, study, law) in cases {
        commit(Some(sabotage));
        // The order is checked only now and then, so not every crawl shows that it is wrong.
        let webs = (1..=10).map(|seed| study.replace("[web]", &format!("[web]\nseed = {seed}")));
        let verdict = webs.map(|study| judged(&study)).find(Result::is_err);
        commit(None);
        let message =
            verdict.unwrap_or_else(|| panic!("{sabotage:?} is noticed")).expect_err("a fault");
        assert!(message.contains(&format!("law `{law}` broken")), "{sabotage:?}: {message}");
    }
}
