//! Crawls that are stopped, killed or lose power, and resume: the laws of the sweep hold over all
//! processes of a crawl together, and its archive is complete.
//!
//! A seed chooses a crawl as in [`crate::sweep`], with little memory and full disks, and one to
//! five processes that end before the crawl does: when and how each ends, what remains on the disk,
//! how long the pause is and how the clock is set meanwhile. `make crash N=1000` runs seeds 1 to
//! 1000, `make crash SEED=7` one of them with its plan, and with `FOLDER=new` what it did and
//! wrote. Seeds that failed once stay in [`REGRESSIONS`].

mod archive;
mod plan;
mod stand;

use crate::trials;
use plan::Plan;
use stand::{Outcome, Sabotage, run};
use std::fs;
use std::path::Path;
use sted::engine::settings::Settings;

/// Seeds that failed once, and what was wrong.
const REGRESSIONS: &[(u64, &str)] = &[
    (15, "at the end the loop turned on the spot for a sync that nobody handed out"),
    (45, "the same, after a crash"),
    (308, "a page of the archive that read as zeros, with whole records behind it"),
    (243, "a page of the crawl log that read as zeros"),
    (430, "lines written after the archive's end were waited for, and nobody synced them"),
    (343, "replies that came while the disk was full were asked for again: the judge was wrong"),
    (317, "killed when all was written and it had only to exit: the judge called that a crash"),
    (1182, "with room for small things, the pages of a full disk were asked for every two seconds"),
    (6119, "a connection that stood idle while the disk was full was called a long visit"),
    (7104, "hosts hung up on whoever came a second late with the first request: they wait longer"),
    (131, "and its opening was counted with the visit that came long after"),
    (4941, "the end of a process that cut a try short was called a try"),
    (3768, "a page of zeros in the index ended within a key: the line passed for whole"),
    (7602, "the same, with an archive that went on behind it"),
    (146, "files of an archive whose earlier ones were taken away got serials of before the stop"),
    (261, "the same: a crash before the next checkpoint had their pages asked for again"),
    (621, "the same, after a crash amidst a write"),
    (5427, "a server that became better waited in a group for another to be held back"),
    (5598, "pages that outlived a loss of power by chance were held to be durable"),
    (3964, "a batch given up while the disk was full: its first repeat passed for the comparison"),
    (
        142,
        "a loss of power ended a WARC file between two records: all of its lines counted as lost",
    ),
    (126, "the same, amidst its lines"),
    (342, "an index half written stayed after its WARC file had been taken away"),
    (9529, "rules that were over were looked for in a segment begun since, of the same number"),
    (6246, "while all rested, files with replies still to be read back were closed after a while"),
    (9272, "a Crawl-delay known only to a killed process was kept for one request only"),
    (
        476_916_716_144,
        "a page of zeros from one record's head to another's made one record of both",
    ),
    (
        112_295_168_054,
        "a server that had mixed up its replies was held to be asked: the judge was wrong",
    ),
    (
        915_485_626_423,
        "the same, corrected halfway: a page of such a server passed for a comparison",
    ),
    (
        428_980_175_611,
        "a batch given up while the disk was full was counted as compared: the judge was wrong",
    ),
    (
        1_085_611_772_436,
        "a copy of a reply passed for a repeated one, and that one for the next page's: all equal",
    ),
    (
        685,
        "after the grace period of its end a crawl turned on the spot until the disk had written",
    ),
    (
        205_197_536_734,
        "reserved pages that came while the disk was full counted as lost: the judge was wrong",
    ),
];
/// The same, of crawls that get commands.
const ORDERS_REGRESSIONS: &[(u64, &str)] = &[
    (53, "a batch of a paused domain was compared: one of its requests was repeated"),
    (74, "the same, while the whole crawl was paused"),
    (572, "requests written together before a pause arrived after it: the judge was wrong"),
    (256, "a batch that a pause cut short was requested again: the judge was wrong"),
    (1_630, "a seed is tried again that was revived in the process before: the judge was wrong"),
    (122_229_376_580, "an added seed that is not there is tried again: the judge was wrong"),
    (809_223_352_731, "a reserved redirect that was cut has no capture: the judge was wrong"),
    (
        1_090_539_892_496,
        "files removed after a loss of power were back after the next: their captures counted as \
         lost",
    ),
];

/// Returns whether the seed failed once.
fn is_old(seed: u64) -> bool {
    REGRESSIONS.iter().chain(ORDERS_REGRESSIONS).any(|(old, _)| *old == seed)
}

/// Seeds of every run of the tests.
const FIXED: std::ops::RangeInclusive<u64> = 1..=60;

/// A crawl without crashes leaves a complete archive with each page once.
#[test]
fn an_undisturbed_crawl_keeps_all_laws() {
    let seeds: Vec<u64> = (1..=12).collect();
    trials::each(&seeds, |seed| run(&undisturbed(seed), Sabotage::None, false).verdict, text);
}

fn undisturbed(seed: u64) -> Plan {
    Plan { lives: Vec::new(), ..Plan::of(seed) }
}

fn text(seed: u64) -> String {
    format!("(make crash SEED={seed}) {}", Plan::of(seed).text())
}

#[test]
fn no_law_is_broken_in_a_fixed_set_of_seeds() {
    let seeds: Vec<u64> = FIXED.chain(REGRESSIONS.iter().map(|(seed, _)| *seed)).collect();
    judge_all(&seeds);
}

fn judge_all(seeds: &[u64]) {
    trials::each(seeds, |seed| run(&Plan::of(seed), Sabotage::None, false).verdict, text);
}

/// Two runs of a seed do the same, crashes included.
#[test]
fn two_runs_of_a_seed_are_the_same_to_the_byte() {
    let mut cut_short = 0;
    for seed in [2, 5, 9, 12] {
        let plan = Plan::of(seed);
        let (first, again) = (run(&plan, Sabotage::None, true), run(&plan, Sabotage::None, true));
        assert!(first.actions.len() > 1_000, "seed {seed} did something");
        assert!(first.actions == again.actions, "seed {seed}: the actions differ");
        assert!(first.files == again.files, "seed {seed}: the archives differ");
        assert_eq!(first.verdict, again.verdict, "seed {seed}");
        cut_short += first.cut_short;
    }
    assert!(cut_short > 4, "{cut_short} processes did not come to the end");
}

/// Rules of robots.txt files that exceed memory are read from the disk, by the process that wrote
/// them and by later ones; the judge checks every request by them.
#[test]
fn rules_come_back_from_the_disk() {
    let wants = |engine: &Settings| engine.robots.obey && engine.robots_bytes_max < 1_000;
    let seeds = (1..=60).filter(|seed| wants(&Plan::of(*seed).crawl.engine));
    let outcomes: Vec<_> = seeds.map(|seed| run(&Plan::of(seed), Sabotage::None, false)).collect();
    assert!(outcomes.iter().all(|outcome| outcome.verdict.is_ok()));
    let read: Vec<u64> = outcomes.iter().map(|outcome| outcome.rules_read).collect();
    assert!(read.iter().sum::<u64>() > 3, "{read:?}");
}

/// A disk that lies, a crawler that forgets or hurries, an archive with a missing part: each is
/// noticed, by the law that it breaks.
#[test]
fn the_laws_notice() {
    let cases: [(Sabotage, &[&str], &str); 7] = [
        (Sabotage::Lies, &["`kept`", "state/"], "a sync that lies, and power that goes"),
        (Sabotage::Amnesia, &["`once`"], "a process that knows nothing of the one before"),
        (Sabotage::Claimed, &["`rest`", "`pace`", "`once`"], "a crash that calls itself a stop"),
        (Sabotage::Haste, &["`rest`", "`pace`", "`restart`"], "rests a third of what is owed"),
        (Sabotage::Removed, &["a reply without a line", "`records`"], "a line is gone"),
        (Sabotage::Doubled, &["two lines for one record"], "a line is there twice"),
        (Sabotage::Damaged, &["warc"], "a bit of a record is another"),
    ];
    for (sabotage, says, why) in cases {
        let noticed = (1..=30).filter(|seed| {
            let mut plan = Plan::of(*seed);
            plan.crawl.engine.store.gzip_level = 1;
            let verdict = run(&plan, sabotage, false).verdict;
            verdict.is_err_and(|how| says.iter().any(|word| how.contains(word)))
        });
        let count = noticed.take(3).count();
        assert_eq!(count, 3, "{why}: noticed in {count} of 30 seeds");
    }
}

/// Commands of an operator to each process: all laws hold under them, and those whose lines are
/// durable are obeyed after a crash, too.
#[test]
fn no_law_is_broken_under_commands() {
    let seeds = (1..=40).chain(ORDERS_REGRESSIONS.iter().map(|(seed, _)| *seed));
    judge_orders(&seeds.collect::<Vec<u64>>());
}

/// Sabotage: a crawl that doesn't get its commands breaks the law.
#[test]
fn disobedience_is_noticed() {
    let noticed = (1..=30).filter(|seed| {
        let verdict = run(&Plan::with_orders(*seed), Sabotage::Deaf, false).verdict;
        verdict.is_err_and(|how| how.contains("law `orders`"))
    });
    assert!(noticed.take(5).count() == 5, "few of 30 seeds notice it");
}

fn judge_orders(seeds: &[u64]) {
    let text = |seed| format!("(make orders SEED={seed}) {}", Plan::with_orders(seed).text());
    trials::each(seeds, |seed| run(&Plan::with_orders(seed), Sabotage::None, false).verdict, text);
}

/// The sweep of commands: `make orders N=1000`, or one seed: `make orders SEED=7`.
#[test]
#[ignore = "the full sweep is run by hand: make orders"]
fn sweep_of_orders() {
    sweep(Plan::with_orders, judge_orders);
}

/// Crawls that come back: no page is forgotten, and none is visited again too soon.
#[test]
fn no_law_is_broken_by_crawls_that_come_back() {
    // Replies that came while the disk was full were requested again: the judge was wrong.
    let seeds = (1..=40).chain([1394]);
    judge_again(&seeds.collect::<Vec<u64>>());
}

fn judge_again(seeds: &[u64]) {
    let text = |seed| format!("(make again-crash SEED={seed}) {}", Plan::coming_back(seed).text());
    trials::each(seeds, |seed| run(&Plan::coming_back(seed), Sabotage::None, false).verdict, text);
}

/// The sweep of crawls that come back: `make again-crash N=1000`, or one seed:
/// `make again-crash SEED=7`.
#[test]
#[ignore = "the full sweep is run by hand: make again-crash"]
fn sweep_of_again() {
    sweep(Plan::coming_back, judge_again);
}

/// The whole sweep: `make crash N=1000`, or one seed: `make crash SEED=7`.
#[test]
#[ignore = "the full sweep is run by hand: make crash"]
fn sweep_of_crashes() {
    if let Some(seed) = trials::asked("STED_CRASH_SEED") {
        println!("undisturbed: {:?}", run(&undisturbed(seed), Sabotage::None, false).verdict);
    }
    sweep(Plan::of, judge_all);
}

/// Judges the crawls of all seeds asked for, or one, which is shown and may leave its files.
fn sweep(plan: impl Fn(u64) -> Plan, judge: impl Fn(&[u64])) {
    if let Some(seed) = trials::asked("STED_CRASH_SEED") {
        let plan = plan(seed);
        println!("{}\n  {:?}", plan.text(), plan.orders);
        if let Ok(folder) = std::env::var("STED_CRASH_FOLDER") {
            leave(&run(&plan, Sabotage::None, true), Path::new(&folder));
        }
        return judge(&[seed]);
    }
    let seeds: Vec<u64> = (1..=trials::asked("STED_CRASH_N").unwrap_or(1_000)).collect();
    judge(&seeds);
    println!("{} seeds, no law broken", seeds.len());
}

/// Seeds that were never run before: `make fresh`.
#[test]
#[ignore = "takes its time, with other seeds each time: make fresh"]
fn fresh() {
    trials::fresh_seeds("crashes", judge_all);
    trials::fresh_seeds("crashes under commands", judge_orders);
    trials::fresh_seeds("crashes of crawls that come back", judge_again);
}

/// Writes what a crawl did and wrote to `folder`, for inspection.
fn leave(outcome: &Outcome, folder: &Path) {
    let all = outcome.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    for (name, bytes) in all.chain([("actions", outcome.actions.as_bytes())]) {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().expect("it has a folder")).expect("writable");
        fs::write(file, bytes).expect("writable");
    }
}
