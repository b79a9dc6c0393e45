//! The summary of a crawl: as text for people, and as JSON in the job directory.

use crate::engine::contract::StopReason;
use crate::engine::counts::Counts;
use crate::engine::ledger::{Budget, Ledger, TurnWork};
use crate::ground::stats::Stage;
use crate::ground::time::Instant;
use crate::os::{Turn, Usage, View};
use crate::seen;
use crate::store::Totals;
use indicatif::{HumanBytes, HumanCount};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The causes of [`Counts::cut`], each with what it means and a fix.
const CAUSES: [(&str, &str); 22] = [
    ("badLocation", "redirects with an invalid Location: treated as pages"),
    ("baseTooLong", "pages with a base URL of more than 4 KiB: the page's own URL was used"),
    ("chains-loosened", "redirects followed as links, because 8,192 chains were in progress"),
    ("charsetTooLarge", "pages truncated as UTF-8; raise fetch.decoded_bytes_max"),
    ("codingBroken", "pages with broken or truncated content coding: decoded up to the fault"),
    ("codingLabel", "pages that are not in their declared content coding: used as received"),
    ("codingSum", "pages with a wrong gzip or zlib checksum or length: used anyway"),
    ("codingTooLarge", "pages truncated when decoded; raise fetch.decoded_bytes_max"),
    ("codingUnknown", "responses in an unknown content coding: used as received"),
    ("codingsTooMany", "pages with more than three content codings: not decoded"),
    ("cookies-max", "cookies dropped: a redirect chain keeps at most 50, and 8 KiB"),
    ("disconnectTrunc", "responses that ended early: stored as truncated"),
    ("linkTooLong", "links skipped: longer than twice scope.url_bytes_max"),
    ("linksBytesCut", "links dropped: more than 4 MiB of links on a page"),
    ("linksCut", "links dropped from pages with more targets; raise links.links_max"),
    ("surplus", "responses with bytes after their end: check the server's Content-Length"),
    ("retries-max", "URLs that failed at every try; raise retries.retries_max"),
    (
        "timeTrunc",
        "responses that took too long: stored as truncated; see connections.body_timeout and \
         fetch_timeout",
    ),
    ("trunc", "responses with broken chunk framing: stored up to the fault, as truncated"),
    ("urlTooLong", "links skipped: URL longer than scope.url_bytes_max"),
    ("urlsBytesCut", "links dropped: more than 16 MiB of URLs on a page"),
    ("valueTooLong", "attributes skipped: longer than 64 KiB"),
];

/// The figures of a crawl that its summary shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    reason: Option<StopReason>,
    elapsed: Duration,
    counts: Counts,
    pages_of_run: u64,
    /// The time to the first request, `None` if there was none: since the start of the loop, or
    /// since the start of the command once [`Self::add_start`] was called.
    first_request: Option<Duration>,
    seen: seen::Totals,
    archive: Totals,
    servers: usize,
    urls_waiting: usize,
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

impl Summary {
    /// Collects the present figures of a crawl.
    pub(super) fn of(view: &View<'_>) -> Self {
        let engine = &view.engine;
        Self {
            reason: engine.stop_reason(),
            elapsed: engine.elapsed(),
            counts: engine.counts().clone(),
            pages_of_run: engine.counts().pages_of_run,
            first_request: engine.first_request().map(|at| at.since(Instant::ZERO)),
            seen: engine.seen_totals(),
            archive: engine.archive(),
            servers: engine.frontier().servers(),
            urls_waiting: engine.frontier().urls(),
            usage: view.usage.clone(),
            lag_p50_us: view.lag_us.quantile(0.5),
            lag_p99_us: view.lag_us.quantile(0.99),
            lag_max_us: view.lag_us.max(),
            turns: view.turns,
            longest_turn: view.longest_turn.clone(),
            turn_cpu_max: view.turn_cpu_max,
            ledger: engine.ledger().clone(),
        }
    }

    /// Adds the time that passed between the program's start and the start of the loop's clock to
    /// the time of the first request.
    pub(super) fn add_start(&mut self, before: Duration) {
        self.first_request = self.first_request.map(|first| first + before);
    }

    /// Formats the summary for people.
    pub(super) fn text(&self, directory: &Path) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            writeln!(text, "{name:<22}{value}").expect("writing to a string does not fail");
        };
        let counts = &self.counts;
        let seconds = self.elapsed.as_secs_f64().max(1e-3);
        let cpu = self.usage.cpu_us() as f64 / 1e6;
        let pages = self.pages_of_run as f64;
        let per_cpu = pages / cpu.max(1e-6);
        line("ended", self.reason_text().to_owned());
        line("time", format!("{seconds:.1} s, of which {cpu:.1} s of CPU"));
        if let Some(first) = self.first_request {
            line("first request", format!("{:.0} ms after the start", first.as_secs_f64() * 1e3));
        }
        line("pages", format!("{} ({:.0}/s)", HumanCount(counts.pages), pages / seconds));
        if self.pages_of_run < counts.pages {
            let earlier = HumanCount(counts.pages - self.pages_of_run);
            line("pages of earlier runs", earlier.to_string());
        }
        line("pages per CPU-second", format!("{per_cpu:.0}"));
        line("outcomes", pairs(counts.outcomes.iter()));
        line("statuses", pairs(counts.statuses.iter()));
        line("bytes received", HumanBytes(counts.received_bytes).to_string());
        let requests = &counts.requests_per_connection;
        line(
            "requests",
            format!(
                "{}, on {} connections: {:.1} each, {} at most",
                HumanCount(counts.requests),
                HumanCount(counts.connections),
                requests.mean(),
                requests.max(),
            ),
        );
        line("pipelined", pipelined(counts));
        line(
            "handshakes",
            format!(
                "{} full, {} resumed; {} visits on kept connections",
                counts.handshakes_full, counts.handshakes_resumed, counts.parked_again
            ),
        );
        line("servers", format!("{}, {} given up", self.servers, counts.retired));
        line(
            "links",
            format!("{}, {} new URLs", HumanCount(counts.links), HumanCount(counts.urls_new)),
        );
        line(
            "loop lag",
            format!(
                "{} us median, {} us at 99%, {} us at most",
                self.lag_p50_us, self.lag_p99_us, self.lag_max_us
            ),
        );
        line("longest turn", turn_text(&self.longest_turn, self.turn_cpu_max));
        line("largest turn", work_text(self.ledger.largest()));
        self.add_cpu(&mut line);
        if self.urls_waiting > 0 {
            line("URLs left", HumanCount(self.urls_waiting as u64).to_string());
        }
        self.add_cuts(&mut line);
        self.add_memory(&mut line);
        self.add_files(directory, &mut line);
        text
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
                "{:.0}% busy: {:.0}% user, {:.0}% system; side threads: jobs {:.1}%, names \
                 {:.1}%; metering takes {:.1}% of it",
                share(looping.sum_us()),
                share(looping.user_us),
                share(looping.system_us),
                share(jobs),
                share(names),
                usage.metering() * 100.0
            ),
        );
    }

    /// Adds the lines about what was cut or could not be read, with the servers that lost most and
    /// a fix.
    fn add_cuts(&self, line: &mut dyn FnMut(&str, String)) {
        for (cause, count) in &self.counts.cut {
            let mut text = HumanCount(*count).to_string();
            if let Some((_, meaning)) = CAUSES.iter().find(|(known, _)| known == cause) {
                text = format!("{text} {meaning}");
            }
            let most = self.counts.cut_most.get(cause).map_or(&[][..], Vec::as_slice);
            for (at, (lost, whom)) in most.iter().enumerate() {
                let before = if at == 0 { "; most: " } else { ", " };
                text += &format!("{before}{whom} ({})", HumanCount(*lost));
            }
            line(cause, text);
        }
    }

    /// Adds the lines about the seen test (has this URL been queued before?), robots.txt, a full
    /// disk and outages.
    fn add_memory(&self, line: &mut dyn FnMut(&str, String)) {
        let seen = &self.seen;
        if seen.on_disk > 0 {
            let hits = seen.hits as f64 / seen.checks.max(1) as f64;
            line(
                "seen test",
                format!(
                    "{} URLs known, {} on disk; the cache answered {:.0}% of {} checks; {} merges",
                    HumanCount(seen.known),
                    HumanCount(seen.on_disk),
                    hits * 100.0,
                    HumanCount(seen.checks),
                    seen.merges
                ),
            );
        }
        if !self.counts.robots_odd.is_empty() {
            let odd = pairs(self.counts.robots_odd.iter());
            line("odd robots.txt", format!("{odd}; see politeness.robots_html"));
        }
        if self.counts.disk_full > 0 {
            line("disk full", format!("{} times", self.counts.disk_full));
        }
        if self.counts.outages > 0 {
            line("outages", format!("{} times no server could be reached", self.counts.outages));
        }
    }

    fn add_files(&self, directory: &Path, line: &mut dyn FnMut(&str, String)) {
        let place = |name: &str| directory.join(name).display().to_string();
        if self.archive.records > 0 {
            let size = HumanBytes(self.archive.warc_bytes);
            line(
                "archive",
                format!("{} ({} records, {size})", place("warc"), self.archive.records),
            );
            line("index", place("index"));
        }
        let cut = |cause: &str| self.counts.cut.get(cause).copied().unwrap_or(0);
        if self.counts.replayed > 0 {
            let unread = match cut("not-read-back") {
                0 => String::new(),
                unread => format!("; {unread} could not be read and were fetched again"),
            };
            let replies = HumanCount(self.counts.replayed);
            line("read back", format!("{replies} replies from the archive{unread}"));
        }
        line("crawl log", place("crawl.log"));
        line("figures", place("summary.json"));
    }

    /// Formats the summary as JSON.
    pub(super) fn json(&self) -> String {
        let value = json!({
            "ended": self.reason_text(),
            "seconds": self.elapsed.as_secs_f64(),
            "cpu_us": self.usage.cpu_us(),
            "pages_of_run": self.pages_of_run,
            "first_request_ms": self.first_request.map(|first| first.as_secs_f64() * 1e3),
            "servers": self.servers,
            "urls_left": self.urls_waiting,
            "counts": self.counts,
            "archive": self.archive,
            "seen": self.seen,
            "loop": {
                "turns": self.turns,
                "longest_turn": turn_json(&self.longest_turn, self.turn_cpu_max),
                "largest_turn": work_json(&self.ledger),
                "lag_us": {
                    "p50": self.lag_p50_us,
                    "p99": self.lag_p99_us,
                    "max": self.lag_max_us,
                },
                "cpu": cpu_json(&self.usage),
            },
        });
        let mut text = serde_json::to_string_pretty(&value).expect("plain values");
        text.push('\n');
        text
    }

    fn reason_text(&self) -> &'static str {
        self.reason.map_or("stopped at once", StopReason::text)
    }
}

/// Describes how much was pipelined, and what replies that didn't match their requests cost.
fn pipelined(counts: &Counts) -> String {
    let mut text = format!("{}, {} sent again", counts.pipelined, counts.left_over);
    if counts.compared > 0 {
        let _ = write!(text, "; {} repeated alone to compare replies", counts.compared);
    }
    if counts.put_back > 0 {
        let _ =
            write!(text, "; {} unverified replies discarded and requested again", counts.put_back);
    }
    if counts.unmatched > 0 {
        let _ = write!(
            text,
            "; {} servers no longer pipelined, because replies did not match requests",
            counts.unmatched
        );
    }
    text
}

/// Returns the stages with their shares of the loop's CPU time, the largest first.
pub(super) fn shares(usage: &Usage) -> Vec<(&'static str, f64)> {
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

fn pairs<K: std::fmt::Display, V: std::fmt::Display>(
    pairs: impl Iterator<Item = (K, V)>,
) -> String {
    let words: Vec<String> = pairs.map(|(key, value)| format!("{key} {value}")).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}
