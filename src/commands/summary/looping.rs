//! The figures of the event loop in the summary: lag, turns, and where the CPU time went.

use crate::engine::ledger::{Budget, Ledger, TurnWork};
use crate::ground::stats::Stage;
use crate::ground::time::Instant;
use crate::os::{Turn, Usage, View};
use indicatif::HumanCount;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The figures of the event loop.
#[derive(Clone, Debug, Default)]
pub(super) struct Looping {
    /// The CPU time used since the loop began.
    usage: Usage,
    lag_p50_us: u64,
    lag_p99_us: u64,
    lag_max_us: u64,
    turns: u64,
    longest_turn: Turn,
    turn_cpu_max: Duration,
    ledger: Ledger,
}

impl Looping {
    /// Collects the present figures.
    pub(super) fn of(view: &View<'_>) -> Self {
        Self {
            usage: view.usage.clone(),
            lag_p50_us: view.lag_us.quantile(0.5),
            lag_p99_us: view.lag_us.quantile(0.99),
            lag_max_us: view.lag_us.max(),
            turns: view.turns,
            longest_turn: view.longest_turn.clone(),
            turn_cpu_max: view.turn_cpu_max,
            ledger: view.engine.ledger().clone(),
        }
    }

    /// Returns the CPU time of all threads, in microseconds.
    pub(super) fn cpu_us(&self) -> u64 {
        self.usage.cpu_us()
    }

    /// Returns the CPU time of all threads, in seconds.
    pub(super) fn cpu_seconds(&self) -> f64 {
        self.usage.cpu_us() as f64 / 1e6
    }

    /// Adds the lines about the loop.
    pub(super) fn add_lines(&self, line: &mut dyn FnMut(&str, String)) {
        line(
            "loop lag",
            format!(
                "{} us median, {} us at 99%, {} us at most",
                self.lag_p50_us, self.lag_p99_us, self.lag_max_us
            ),
        );
        line("longest turn", turn_text(&self.longest_turn, self.turn_cpu_max));
        line("largest turn", work_text(self.ledger.largest()));
        self.add_cpu(line);
    }

    /// Adds the lines about CPU time.
    fn add_cpu(&self, line: &mut dyn FnMut(&str, String)) {
        let (usage, stages) = (&self.usage, shares(&self.usage));
        let shown = stages.iter().filter(|(_, share)| *share >= 0.005);
        let shown: Vec<String> =
            shown.map(|(name, share)| format!("{name} {:.0}%", share * 100.0)).collect();
        line("CPU of the loop", shown.join(", "));
        let share = |us: u64| us as f64 / (usage.wall.as_micros() as f64).max(1.0) * 100.0;
        let (looping, jobs, names) = (usage.looping, usage.jobs_us, usage.names_us);
        line(
            "core",
            format!(
                "{:.0}% busy: {:.0}% user, {:.0}% system; side threads: jobs {:.1}%, \
                 control {:.1}%, names {:.1}%; metering takes {:.1}% of it; other programs had it \
                 for {:.0}% while the loop had work",
                share(looping.sum_us()),
                share(looping.user_us),
                share(looping.system_us),
                share(jobs),
                share(usage.control_us),
                share(names),
                usage.metering() * 100.0,
                share(usage.taken_us())
            ),
        );
    }

    /// Formats the figures as JSON.
    pub(super) fn json(&self) -> serde_json::Value {
        json!({
            "turns": self.turns,
            "longest_turn": turn_json(&self.longest_turn, self.turn_cpu_max),
            "largest_turn": work_json(&self.ledger),
            "lag_us": {
                "p50": self.lag_p50_us,
                "p99": self.lag_p99_us,
                "max": self.lag_max_us,
            },
            "cpu": cpu_json(&self.usage),
        })
    }
}

/// Returns the stages with their shares of the loop's CPU time, the largest first.
fn shares(usage: &Usage) -> Vec<(&'static str, f64)> {
    let all_ns = (usage.looping.sum_us() as f64 * 1e3).max(1.0);
    let share = |stage: Stage| (stage.name(), usage.of(stage).cpu_ns as f64 / all_ns);
    let mut shares: Vec<(&'static str, f64)> = Stage::ALL.into_iter().map(share).collect();
    shares.sort_by(|one, next| next.1.total_cmp(&one.1));
    shares
}

/// Formats CPU times as JSON: of the process, by thread and by stage.
fn cpu_json(usage: &Usage) -> serde_json::Value {
    let stage = |stage: Stage| {
        let usage = usage.of(stage);
        let value = json!({
            "cpu_ns": usage.cpu_ns,
            "wall_ns": usage.wall_ns,
            "calls": usage.calls,
            "bytes": usage.bytes,
        });
        (stage.name(), value)
    };
    json!({
        "wall_us": u64::try_from(usage.wall.as_micros()).unwrap_or(u64::MAX),
        "loop_user_us": usage.looping.user_us,
        "loop_system_us": usage.looping.system_us,
        "jobs_us": usage.jobs_us,
        "control_us": usage.control_us,
        "names_us": usage.names_us,
        "metered_share": usage.accounted(),
        "metering_share": usage.metering(),
        "taken_us": usage.taken_us(),
        "stages": Stage::ALL.into_iter().map(stage).collect::<BTreeMap<_, _>>(),
    })
}

/// Describes the longest turn of the loop: its length, when it began, and its three largest stages.
/// Adds the most CPU time that any turn took.
fn turn_text(turn: &Turn, cpu_max: Duration) -> String {
    let shares = turn.shares();
    let shown = shares.iter().filter(|(_, share)| *share >= 0.01).take(3);
    let shown: Vec<String> =
        shown.map(|(stage, share)| format!("{} {:.0}%", stage.name(), share * 100.0)).collect();
    format!(
        "{:.1} ms, {:.1} s after the start: {}; {:.1} ms of CPU at most in one",
        turn.took.as_secs_f64() * 1e3,
        turn.began.since(Instant::ZERO).as_secs_f64(),
        if shown.is_empty() { "-".to_owned() } else { shown.join(", ") },
        cpu_max.as_secs_f64() * 1e3
    )
}

/// Formats the longest turn of the loop as JSON, with the most CPU time that any turn took.
fn turn_json(turn: &Turn, cpu_max: Duration) -> serde_json::Value {
    let us = |stage: Stage| (stage.name(), turn.stages_ns[stage as usize] / 1_000);
    json!({
        "began_us": turn.began.as_micros(),
        "cpu_us_max": u64::try_from(cpu_max.as_micros()).unwrap_or(u64::MAX),
        "took_us": u64::try_from(turn.took.as_micros()).unwrap_or(u64::MAX),
        "stages_us": Stage::ALL.into_iter().map(us).collect::<BTreeMap<_, _>>(),
    })
}

/// Describes the turn of the loop that did the most work: the amount, and the three kinds of work
/// that took most of it, counted in the units of the engine's ledger.
fn work_text(turn: &TurnWork) -> String {
    let mut kinds: Vec<_> = turn.kinds().collect();
    kinds.sort_by_key(|(_, units)| std::cmp::Reverse(*units));
    let shown = kinds.iter().take(3).filter(|(_, units)| 100 * units >= turn.units.max(1));
    let shown: Vec<String> = shown
        .map(|(work, units)| format!("{} {}", work.name(), HumanCount(*units as u64)))
        .collect();
    format!(
        "{} units of work: {}",
        HumanCount(turn.units as u64),
        if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
    )
}

/// Formats the turn that did the most work as JSON, with the largest use of each budget of work and
/// its limit.
fn work_json(ledger: &Ledger) -> serde_json::Value {
    let turn = ledger.largest();
    let budget = |budget: Budget| {
        (budget.name(), json!({ "units": ledger.peak(budget), "max": ledger.units_max(budget) }))
    };
    let kinds = turn.kinds().map(|(work, units)| (work.name(), units));
    json!({
        "units": turn.units,
        "by_kind": kinds.into_iter().collect::<BTreeMap<_, _>>(),
        "budgets": Budget::ALL.map(budget).into_iter().collect::<BTreeMap<_, _>>(),
    })
}
