//! Shows the progress of a crawl: one line that is updated on a terminal, otherwise a line per
//! period.

use super::show::{COLUMNS, clip, count, rate, short};
use crate::conf::Conf;
use crate::engine::status::{State, Status};
use crate::ground::time::Instant;
use crate::os::{Usage, View, console, signal};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Shows progress on stderr.
#[derive(Debug)]
pub(super) struct Progress {
    /// The line that is updated; `None` if stderr is not a terminal or only errors are shown.
    line: Option<ProgressBar>,
    period: Duration,
    /// The CPU time when progress was shown last.
    usage: RefCell<Usage>,
    /// When progress is shown next.
    due: Cell<Instant>,
}

/// The time between two updates of the line on a terminal.
const LOOK: Duration = Duration::from_millis(200);
/// The percentage of the time for which other programs had the core while the loop had work, from
/// which the line shows it. Less doesn't slow a crawl down noticeably.
const TAKEN_SHOWN: f64 = 10.0;

impl Progress {
    /// Creates the progress display that suits the configuration and the terminal.
    pub(super) fn new(conf: &Conf) -> Self {
        let line =
            (signal::is_terminal() && !console::is_quiet() && !console::is_json()).then(|| {
                let style = ProgressStyle::with_template("{wide_msg}");
                ProgressBar::new_spinner().with_style(style.expect("the template is valid"))
            });
        let period = if line.is_some() { LOOK } else { conf.report.progress_period };
        Self { line, period, usage: RefCell::default(), due: Cell::default() }
    }

    /// Returns how often [`Self::show`] should be called at least.
    pub(super) fn period(&self) -> Duration {
        self.period
    }

    /// Shows the present progress of the crawl if a period has passed since it was shown last, and
    /// at its end.
    pub(super) fn show(&self, view: &View<'_>) {
        if view.now.at < self.due.get() && !view.engine.is_finished() {
            return;
        }
        self.due.set(view.now.at + self.period);
        let text = self.text(view);
        match &self.line {
            Some(line) => {
                line.set_message(text);
                line.tick();
            }
            None => console::progress(&text),
        }
    }

    /// Removes the updated line from the terminal.
    pub(super) fn clear(&self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }

    fn text(&self, view: &View<'_>) -> String {
        let used = view.usage.since(&self.usage.replace(view.usage.clone()));
        let wall_us = (used.wall.as_micros() as f64).max(1.0);
        let percent = |us: u64| us as f64 / wall_us * 100.0;
        let clock = view.now.unix.civil().to_clock();
        let (busy, taken) = (percent(used.looping.sum_us()), percent(used.taken_us()));
        line(&clock, &view.engine.status(), busy, taken)
    }
}

/// Formats a line of progress of at most 80 columns. What doesn't fit is left out, from the end.
/// `busy` is the percentage of a core that the loop used, `taken` that for which other programs had
/// the core while the loop had work. Without `taken`, a crawl that gets no CPU time looks like one
/// that waits for its servers.
fn line(clock: &str, status: &Status, busy: f64, taken: f64) -> String {
    let mut parts = Vec::new();
    if status.state != State::Crawling {
        parts.push(clip(&status.state_text, COLUMNS / 2 + 10));
    } else if let Some(how) = status.stopped_by() {
        parts.push(clip(how, COLUMNS / 2 + 10));
    }
    parts.push(format!("{} pages, {}", count(status.pages), rate(status.pages_per_s)));
    if status.failed > 0 {
        parts.push(format!("{} failed", short(status.failed)));
    }
    let (urls, servers) = (short(status.urls_waiting), short(status.servers_waiting));
    let waiting = format!("{urls} URLs wait on {servers} servers");
    if taken < TAKEN_SHOWN {
        parts.extend([waiting, format!("core {busy:.0}%")]);
    } else {
        parts.extend([format!("core {busy:.0}%, others {taken:.0}%"), waiting]);
    }
    parts.push(HumanBytes(status.received_bytes).to_string());
    let mut text = format!("{clock} {}", parts[0]);
    for part in &parts[1..] {
        if text.chars().count() + 2 + part.chars().count() > COLUMNS {
            break;
        }
        text = text + "; " + part;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_a_terminal_and_begins_with_the_time() {
        let small = Status { pages: 12_345, pages_per_s: 120.4, ..Status::default() };
        let small = Status { failed: 45, urls_waiting: 120_345, servers_waiting: 230, ..small };
        assert_eq!(
            line("09:31:48", &small, 35.2, 9.4),
            "09:31:48 12,345 pages, 120/s; 45 failed; 120k URLs wait on 230 servers; core 35%"[..]
        );
        let starved = Status { pages_per_s: 3.9, failed: 0, ..small.clone() };
        assert_eq!(
            line("09:31:48", &starved, 2.1, 93.0),
            "09:31:48 12,345 pages, 3.9/s; core 2%, others 93%; 120k URLs wait on 230 servers"[..]
        );
        let state_text = "servers rest until 09:39:40 after an unclean stop".to_owned();
        let rests = Status { state: State::Resting, state_text, ..small };
        let text = line("09:31:48", &rests, 0.0, 0.0);
        assert!(text.starts_with("09:31:48 servers rest until 09:39:40 after an unclean stop; "));
        let large = Status {
            pages: u64::MAX,
            pages_per_s: 1e12,
            failed: u64::MAX,
            urls_waiting: u64::MAX,
            servers_waiting: u64::MAX,
            state_text: "x".repeat(200),
            ..rests
        };
        assert!(line("09:31:48", &large, 100.0, 0.0).chars().count() <= COLUMNS);
    }
}
