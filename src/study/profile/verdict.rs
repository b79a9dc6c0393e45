//! The verdict on the steps of a profile: where more connections bring no more pages, whether the
//! core is saturated there, and what its time is spent on.

use super::step::{ACCEPTED, Step, best_known};
use crate::ground::stats::Stage;
use crate::study::report::number::{grouped, percent};

/// The verdict on a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The index of the first step whose throughput is at least [`NEAR`] of the maximum.
    pub(super) knee: usize,
    /// The index of the first step at which the core is saturated; `None` if there is none.
    pub(super) full: Option<usize>,
    /// The verdict in words, one sentence each.
    pub(super) words: Vec<String>,
}

/// Throughput of at least this share of the maximum counts as the maximum: steps vary by chance.
const NEAR: f64 = 0.95;
/// A loop that is busy for this share of the time is saturated: the rest is the cost of sleeping
/// and waking.
const FULL: f64 = 0.9;
/// The number of stages of the loop that the verdict names: those that take most time.
const NAMED: usize = 4;

impl Verdict {
    /// Returns the verdict on `steps`: at least one step, in order of the number of connections.
    pub(super) fn of(steps: &[Step]) -> Self {
        let most = steps.iter().map(Step::rate).fold(0.0, f64::max);
        let knee = steps.iter().position(|step| step.rate() >= most * NEAR).unwrap_or(0);
        let full = steps.iter().position(|step| step.busy() >= FULL);
        let mut words = vec![of_core(steps, knee, full), of_knee(steps, knee)];
        words.extend(of_stages(&steps[full.unwrap_or(knee)]));
        words.extend(beyond(steps, knee));
        words.extend(of_lag(steps));
        words.extend(of_lab(steps));
        words.extend(unequal(&steps[knee..]));
        words.extend(of_repeats(steps));
        words.extend(of_limits(steps));
        words.extend(of_doubt(steps));
        Self { knee, full, words }
    }
}

fn of_core(steps: &[Step], knee: usize, full: Option<usize>) -> String {
    match full {
        Some(at) => {
            let step = &steps[at];
            format!(
                "The core is full at {}: {} in user mode, {} in the kernel.",
                connections(step),
                percent(step.user(), 0),
                percent(step.system(), 0)
            )
        }
        None => of_limit(steps, knee),
    }
}

/// Names what limited a crawl that never filled the core.
fn of_limit(steps: &[Step], knee: usize) -> String {
    let busiest = steps.iter().map(Step::busy).fold(0.0, f64::max);
    let never = format!(
        "The core was never full ({} busy at most, {} at the knee)",
        percent(busiest, 0),
        percent(steps[knee].busy(), 0)
    );
    let wanted = |step: &Step| (step.busy() + step.taken()).min(1.0);
    let taken = steps.iter().filter(|step| is_taken(step));
    let worst = taken.max_by(|one, next| wanted(one).total_cmp(&wanted(next)));
    match worst {
        Some(worst) => format!(
            "{never}. It was taken away: with {} the loop had work for {} of the time, and the \
             core for {}. So {} limited the crawl: other programs had the core, or other machines, \
             if this one is virtual. Repeat it when nothing else runs.",
            connections(worst),
            percent(wanted(worst), 0),
            percent(worst.busy(), 0),
            if wanted(worst) >= FULL { "that" } else { "that, among other things," },
        ),
        None => format!(
            "{never}: the crawl was limited by the servers, the network, or the number of \
             connections."
        ),
    }
}

/// Whether others had the core for a part of the time in which the loop had work: more than a
/// twentieth of the loop's CPU time, and a hundredth of all time.
fn is_taken(step: &Step) -> bool {
    step.taken() > AWAY * step.busy() && step.taken() >= AWAY_LEAST
}

fn of_knee(steps: &[Step], knee: usize) -> String {
    let step = &steps[knee];
    let grows = knee + 1 == steps.len() && knee > 0;
    let what = format!(
        "{} pages/s, {} Mb/s, {} us of CPU a page",
        grouped(step.rate(), 0),
        grouped(step.megabits(), 1),
        grouped(step.page_us(), 1)
    );
    if grows {
        return format!(
            "Throughput still grows at {}, the most that was tried ({what}): there is no knee yet.",
            connections(step)
        );
    }
    format!("Beyond {} throughput grows no further: {what}.", connections(step))
}

fn of_stages(step: &Step) -> Option<String> {
    let mut shares: Vec<(Stage, f64)> =
        Stage::ALL.into_iter().map(|stage| (stage, step.share(stage) / step.busy())).collect();
    shares.sort_by(|one, next| next.1.total_cmp(&one.1));
    let named = shares.iter().take(NAMED).filter(|(_, share)| *share > 0.0);
    let named: Vec<String> =
        named.map(|(stage, share)| format!("{} {}", percent(*share, 0), stage.name())).collect();
    (!named.is_empty())
        .then(|| format!("Of its time there: {} (of the loop's CPU time).", named.join(", ")))
}

/// Describes how throughput changes beyond the knee; `None` if no step lies beyond it.
fn beyond(steps: &[Step], knee: usize) -> Option<String> {
    let last = steps.last()?;
    let behind = &steps[knee..];
    if behind.len() < 2 {
        return None;
    }
    let best = behind.iter().map(Step::rate).fold(0.0, f64::max);
    let kept = last.rate() / best;
    Some(if kept < NEAR {
        format!(
            "Beyond the knee it falls: with {} it is {} of the maximum.",
            connections(last),
            percent(kept, 0)
        )
    } else {
        format!("Beyond the knee it stays: {} with {}.", percent(kept, 0), connections(last))
    })
}

/// Says from which step on the lab was saturated, too; `None` if it never was.
fn of_lab(steps: &[Step]) -> Option<String> {
    let is_full = |step: &&Step| step.lab().is_some_and(|share| share >= FULL);
    let first = steps.iter().find(is_full)?;
    Some(format!(
        "The lab fills a core of its own with {} ({}): from there on throughput depends on the \
         lab as much as on the crawl; only the CPU a page describes the crawl alone.",
        connections(first),
        percent(first.lab()?, 0)
    ))
}

/// Warns if the number of new URLs per page differs from step to step by more than a doubling of
/// connections explains in a crawl past its start; `None` if not. `steps` has at least one step.
fn unequal(steps: &[Step]) -> Option<String> {
    let found = || steps.iter().map(Step::found);
    let (least, most) = (found().fold(f64::MAX, f64::min), found().fold(0.0, f64::max));
    (most > least.max(1.0) * UNEQUAL).then(|| {
        format!(
            "From there on a page leads to {} to {} new URLs, which cost more than known ones: \
             the steps don't differ by their connections alone.",
            grouped(least, 1),
            grouped(most, 1)
        )
    })
}

/// Steps are not comparable if the largest number of new URLs per page exceeds the smallest (or 1,
/// if that is more) by more than this factor.
const UNEQUAL: f64 = 1.3;

/// Describes by how much repeats of a step differ at most; `None` if none was repeated.
fn of_repeats(steps: &[Step]) -> Option<String> {
    let apart = |step: &Step| step.spread.map(|(least, most)| most / least.max(1e-9) - 1.0);
    let worst = steps
        .iter()
        .max_by(|one, next| apart(one).unwrap_or(0.0).total_cmp(&apart(next).unwrap_or(0.0)))?;
    Some(format!(
        "Each step is the median of its repeats, which differ by up to {} (with {}).",
        percent(apart(worst)?, 0),
        connections(worst)
    ))
}

/// Says how many requests servers accept on one connection; `None` if no server has shown it.
fn of_limits(steps: &[Step]) -> Option<String> {
    let (best, all) = best_known(steps)?;
    let all = all as f64;
    let classes = ACCEPTED.iter().zip(best.accepted).filter(|(_, servers)| *servers > 0);
    let classes = classes
        .map(|((_, name), servers)| format!("{} accept {name}", percent(servers as f64 / all, 1)));
    Some(format!(
        "Requests on one connection, of the {} servers that have shown their limit: {}.",
        grouped(all, 0),
        classes.collect::<Vec<_>>().join(", ")
    ))
}

fn of_lag(steps: &[Step]) -> Option<String> {
    let worst = steps.iter().max_by_key(|step| step.lag_us.quantile(0.99))?;
    Some(format!(
        "The loop is never late by more than {} ms in 99 of 100 turns (the worst step: {}).",
        grouped(worst.lag_us.quantile(0.99) as f64 / 1e3, 1),
        connections(worst)
    ))
}

/// Lists what makes the numbers less reliable.
fn of_doubt(steps: &[Step]) -> Vec<String> {
    let mut doubts = Vec::new();
    let count = |is: &dyn Fn(&Step) -> bool| steps.iter().filter(|step| is(step)).count();
    let dry = count(&|step| step.ran_dry);
    if dry > 0 {
        doubts.push(format!(
            "In {dry} of {} steps there was nothing left to fetch before the time was over: a \
             larger web would show more.",
            steps.len()
        ));
    }
    let away = count(&is_taken);
    if away > 0 {
        let most = steps.iter().map(Step::taken).fold(0.0, f64::max);
        doubts.push(format!(
            "In {away} of {} steps other programs took the core away for more than a twentieth of \
             the loop's CPU time (for up to {} of the step): throughput, lag and the shares of \
             stages are less reliable there.",
            steps.len(),
            percent(most, 0)
        ));
    }
    let lost = count(&|step| step.failed.lost > 0);
    if lost > 0 {
        let requests: u64 = steps.iter().map(|step| step.failed.lost).sum();
        doubts.push(format!("{} requests got no reply.", grouped(requests as f64, 0)));
    }
    doubts
}

/// The core counts as taken away if it was for more than this share of the loop's CPU time.
const AWAY: f64 = 0.05;
/// The core doesn't count as taken away if it was for less than this share of the step.
const AWAY_LEAST: f64 = 0.01;

fn connections(step: &Step) -> String {
    match step.connections {
        1 => "1 connection".to_owned(),
        many => format!("{} connections", grouped(many as f64, 0)),
    }
}
