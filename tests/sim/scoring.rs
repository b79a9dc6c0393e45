//! Pages that a program scores: their links wait for it, and no longer than they may.

use super::stand::{Crawl, Pieces, Plan, outcomes_of};
use super::{Settings, mistakes, ms, none, varied};
use std::collections::BTreeSet;
use std::time::Duration;
use sted::engine::Engine;
use sted::engine::contract::{ScoreFailure, ScoreId, Scored};
use sted::engine::settings::Scoring;
use sted::ground::time::Instant;
use sted::rating::Source;
use sted::store::log;
use sted::study::sim::settings::Scores;
use sted::study::web::Budget;

const SECOND: Duration = Duration::from_secs(1);

/// A crawl whose pages are scored, each within 50 ms, and whose links wait for a second at most.
fn plan(scores: Scores) -> Plan {
    let mut plan = Plan::new(Settings { hosts: 12, pages: 300, ..varied(21) });
    plan.world.scores = Scores { time: ms(50), ..scores };
    plan.change = |settings| {
        settings.rating.source = Source::Command;
        settings.scoring = Some(Scoring { timeout: SECOND, waiting_max: 1_000 });
    };
    plan
}

/// Returns the number of pages without a score, by cause.
fn missing<const N: usize>(crawl: &Crawl, causes: [&str; N]) -> [u64; N] {
    causes.map(|cause| crawl.counts.cut.get(cause).copied().unwrap_or(0))
}

const CAUSES: [&str; 4] = ["score-timed-out", "score-invalid", "score-failed", "score-full"];

/// Whatever the program does, the crawl fetches all pages, and each is counted once.
#[test]
fn each_page_has_a_score_or_a_cause() {
    let sound = plan(Scores::default()).run();
    let pages = sound.counts.scored;
    assert!(pages > 200, "{pages}");
    assert_eq!(missing(&sound, CAUSES), [0; 4]);
    let cases = [
        Scores { never: 1.0, ..Scores::default() },
        Scores { late: 1.0, late_time: 3 * SECOND, ..Scores::default() },
        Scores { failed: 1.0, ..Scores::default() },
        Scores { odd: 1.0, ..Scores::default() },
    ];
    for (number, scores) in cases.into_iter().enumerate() {
        let crawl = plan(scores).run();
        none(&mistakes(&crawl, Budget { tries: 4, ..Budget::default() }));
        let found = missing(&crawl, CAUSES);
        assert_eq!(crawl.counts.scored + found.iter().sum::<u64>(), pages, "{number}: {found:?}");
        let [timed_out, invalid, failed, _] = found;
        let counts = &crawl.counts;
        match number {
            0 => assert_eq!((timed_out, counts.scores_late), (pages, 0)),
            1 => assert!(timed_out == pages && counts.scores_late > pages / 2),
            2 => assert!(invalid + failed == pages && counts.scores_invalid == invalid),
            _ => assert_eq!((counts.scored, counts.scores_invalid), (pages, pages)),
        }
        assert_eq!(crawl.took > sound.took + SECOND, number < 2, "{number}");
    }
}

/// The text of a page whose use is reserved isn't for the program, and its links don't wait.
#[test]
fn reserved_pages_are_not_scored() {
    let of = |conf: &[&str]| {
        let mut plan = plan(Scores::default());
        plan.web.voices = 0.6;
        plan.conf.extend(conf.iter().map(|line| (*line).to_owned()));
        plan.run()
    };
    let all = of(&[]);
    let crawl = of(&["consent.purpose = \"mining\"", "consent.obey = true"]);
    let is_reserved = |line: &log::Entry<'_>| {
        line.extra.reason.as_deref() == Some("reserved")
            && line.status == 200
            && line.mime == Some("text/html")
    };
    let log = std::str::from_utf8(&crawl.log).expect("UTF-8");
    let lines = log.lines().map(|line| log::parse(line).expect("a line"));
    let reserved = lines.filter(is_reserved).count() as u64;
    assert!(reserved > 20, "{reserved}");
    assert_eq!(crawl.counts.pages, all.counts.pages, "links are followed");
    assert_eq!(crawl.counts.scored + reserved, all.counts.scored);
}

/// As many pages wait as may; others don't wait.
#[test]
fn a_full_waiting_room_turns_pages_away() {
    let mut plan = plan(Scores { late: 1.0, late_time: ms(600), ..Scores::default() });
    plan.change = |settings| {
        settings.rating.source = Source::Command;
        settings.scoring = Some(Scoring { timeout: SECOND, waiting_max: 2 });
    };
    let crawl = plan.run();
    none(&mistakes(&crawl, Budget { tries: 4, ..Budget::default() }));
    let [full] = missing(&crawl, ["score-full"]);
    assert!(full > 50 && crawl.counts.scored > 5, "{full}, {}", crawl.counts.scored);
}

/// Opens a crawl whose links wait for a score for `timeout` at most.
fn open(pieces: &mut Pieces, timeout: Duration) -> Engine {
    pieces.settings.scoring = Some(Scoring { timeout, waiting_max: 1_000 });
    pieces.open()
}

/// When the program is gone, pages no longer wait for it.
#[test]
fn without_the_program_nothing_waits() {
    let mut pieces = Pieces::of(&plan(Scores::default()));
    let mut engine = open(&mut pieces, 1_000 * SECOND);
    pieces.run_until(&mut engine, |view| view.engine.counts().scored > 50);
    let gone = Scored::failed(ScoreId(u64::MAX), ScoreFailure::Gone);
    engine.scored(pieces.world.now(), gone);
    pieces.run(&mut engine);
    assert!(engine.is_finished());
    let (counts, most) = (engine.counts(), 50 + 64);
    assert!(counts.cut["score-failed"] > 100 && counts.scored < most, "{}", counts.scored);
}

/// A stop doesn't wait for scores, and loses no link.
#[test]
fn a_stop_gives_up_waiting() {
    let scores = Scores { never: 1.0, ..Scores::default() };
    let lines = ["state.keep = true", "connections.stop_timeout = \"1s\""];
    let mut pieces = Pieces::of(&plan(scores).with(&lines));
    let mut engine = open(&mut pieces, 1_000 * SECOND);
    pieces.run_until(&mut engine, |view| view.engine.status().scores_waiting > 0);
    let (asked, from) = (engine.status().scores_waiting, pieces.world.now().at);
    pieces.stop(&mut engine);
    assert!(engine.is_finished() && pieces.world.now().at.since(from) < 10 * SECOND);
    assert!(engine.counts().cut["score-stopped"] >= asked);
    pieces.end(engine, SECOND);
    let mut engine = open(&mut pieces, SECOND);
    pieces.run(&mut engine);
    all_were_found(&pieces);
}

/// A checkpoint saves the links that wait: after a kill they are followed, and their pages are not
/// fetched again.
#[test]
fn links_that_wait_survive_a_kill() {
    let scores = Scores { never: 1.0, ..Scores::default() };
    let lines = ["state.keep = true", "state.checkpoint_period = \"5s\""];
    let mut pieces = Pieces::of(&plan(scores).with(&lines));
    let mut engine = open(&mut pieces, 1_000 * SECOND);
    // All pages that are known wait: nothing else goes on.
    pieces.run_until(&mut engine, |view| view.at >= Instant::ZERO + 30 * SECOND);
    let waiting = engine.status().scores_waiting;
    assert!(waiting > 0 && engine.counts().checkpoints > 0, "{waiting}");
    let pages = engine.counts().pages;
    pieces.end(engine, SECOND);
    let mut engine = open(&mut pieces, SECOND);
    assert_eq!((engine.counts().pages, engine.status().scores_waiting), (pages, 0));
    pieces.run(&mut engine);
    all_were_found(&pieces);
    let lines = String::from_utf8(pieces.log()).expect("UTF-8");
    let mut pages: Vec<_> = lines.lines().filter_map(|line| log::parse(line).ok()).collect();
    pages.retain(|page| page.status == 200 && !page.url.ends_with("/robots.txt"));
    let urls: BTreeSet<&str> = pages.iter().map(|page| page.url).collect();
    assert_eq!(urls.len(), pages.len(), "none is fetched twice");
}

/// The crawl has found what one without kills and stops finds.
fn all_were_found(pieces: &Pieces) {
    let whole = plan(Scores::default()).run();
    assert_eq!(outcomes_of(&pieces.log()), whole.outcomes());
}
