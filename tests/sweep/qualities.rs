//! Inherited qualities, recomputed from the crawl log: that of a link follows from the page that it
//! was found on, that of a redirect's target is the redirect's, and a seed has one, or its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use sted::engine::settings::{self, Scoring};
use sted::ground::quality::Quality;
use sted::ground::random::Random;
use sted::rating::{Settings, Source, Table};
use sted::store::log::{self, Entry};
use sted::study::sim;
use sted::study::sim::settings::Scores;
use sted::study::web::{self, Ports, Web};
use sted::url::Url;

/// Makes a quarter of the seeds inherit qualities, and another quarter have pages scored, with
/// their own draws: seeds that failed once stay the same.
pub fn draw(
    seed: u64,
    web: &web::Settings,
    engine: &mut settings::Settings,
    world: &mut sim::Settings,
) {
    let mut draw = Random(seed ^ 0x7061_7265);
    let rating = &mut engine.rating;
    if !draw.one_in(4) {
        let mut draw = Random(seed ^ 0x7363_6f72);
        if draw.one_in(3) {
            rating.source = Source::Command;
            rating.fall_milli = draw.pick(&[0, 800, 1_000]);
            (engine.scoring, world.scores) = (Some(scoring(&mut draw)), scores(&mut draw));
        }
        return;
    }
    rating.source = draw.pick(&[Source::Parent, Source::Parent, Source::Depth]);
    rating.fall_milli = draw.pick(&[0, 500, 800, 999, 1_000]);
    rating.table = draw.one_in(2).then(|| Arc::new(table(web, &mut draw)));
}

fn scoring(draw: &mut Random) -> Scoring {
    Scoring {
        timeout: Duration::from_millis(draw.pick(&[100, 5_000, 600_000])),
        waiting_max: draw.pick(&[1, 10, 1_000]),
    }
}

fn scores(draw: &mut Random) -> Scores {
    let share = |draw: &mut Random| draw.pick(&[0.0, 0.0, 0.05, 0.5]);
    Scores {
        time: Duration::from_millis(draw.pick(&[0, 20, 3_000])),
        late: share(draw),
        late_time: Duration::from_millis(draw.pick(&[1_000, 20_000])),
        never: share(draw),
        failed: share(draw),
        odd: share(draw),
    }
}

/// Returns the score that the simulated program gives a page.
pub fn score(url: &str) -> Quality {
    let hash = url.bytes().fold(1, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x1b3));
    Quality::from_millionths(Random(hash).below(4_000_000))
}

/// Returns a table of some pages of a web.
fn table(web: &web::Settings, draw: &mut Random) -> Table {
    let web = Web::new(web.clone(), Ports::default());
    let mut table = Table::default();
    for index in 0..web.pages_total() {
        let url = Url::parse(&web.url(web.place_of(index))).expect("a URL");
        if draw.one_in(2) {
            let most = draw.pick(&[10, 3_000_000, 1_000_000_000_000]);
            table.insert(url.view(), Quality::from_millionths(draw.below(most)));
        }
    }
    table
}

/// Checks the qualities in a crawl log. A page that several processes have read may have had
/// another quality each time, and one that a program scores may have its score or not: any of them
/// explains its links.
pub fn check(log: &str, rating: &Settings) -> Result<(), String> {
    let lines: Vec<Entry<'_>> = log.lines().filter_map(|line| log::parse(line).ok()).collect();
    let mut queued: BTreeMap<&str, Vec<Quality>> = BTreeMap::new();
    for line in &lines {
        let inherits = matches!(rating.source, Source::Parent | Source::Command)
            && !line.url.ends_with("/robots.txt");
        let is_shown = line.extra.quality.is_some();
        if is_shown && !inherits {
            return Err(format!("{}: has a quality in the log", line.url));
        }
        queued.entry(line.url).or_default().extend(line.extra.quality);
    }
    let is_scored = rating.source == Source::Command;
    let known = |url: &str| {
        let url = Url::parse(url).ok()?;
        rating.table.as_ref()?.of(url.view())
    };
    for line in &lines {
        let Some(found) = line.extra.quality else { continue };
        // A visit to a known page names no page that led to it.
        if line.annotations.is_some_and(|all| all.split(',').any(|word| word == "again")) {
            continue;
        }
        let follows = |page: &Quality| follows(found, *page, rating.fall_milli);
        // What a robots.txt names is as good as a seed.
        let is_right = match line.via.filter(|via| !via.ends_with("/robots.txt")) {
            None => found == known(line.url).unwrap_or(Quality::ONE),
            Some(via) => {
                let all = queued.get(via).map_or(&[][..], Vec::as_slice);
                match (line.extra.hops, known(via)) {
                    (1.., _) => all.contains(&found),
                    (0, Some(page)) => follows(&page),
                    (0, None) => all.iter().any(follows) || is_scored && follows(&score(via)),
                }
            }
        };
        if !is_right {
            let (url, via) = (line.url, line.via.unwrap_or("nowhere"));
            return Err(format!("{url}: quality {found} does not follow from {via}"));
        }
        let own = if is_scored { Some(score(line.url)) } else { known(line.url) };
        if line.extra.score.is_some_and(|score| Some(score) != own) {
            return Err(format!("{}: has another score", line.url));
        }
    }
    Ok(())
}

/// Returns whether `link` is the quality of what a page links to: times `milli` thousandths.
fn follows(link: Quality, page: Quality, milli: u32) -> bool {
    let exact = u128::from(page.millionths()) * u128::from(milli);
    u128::from(link.millionths()) == exact / 1_000
}
