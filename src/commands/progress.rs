//! Shows the progress of a crawl: one line that is updated on a terminal, otherwise a line per
//! period.

use super::summary::shares;
use crate::conf::Conf;
use crate::os::{Usage, View, console, signal};
use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Shows progress on stderr.
#[derive(Debug)]
pub(super) struct Progress {
    /// The line that is updated; `None` if stderr is not a terminal or only errors are shown.
    line: Option<ProgressBar>,
    period: Duration,
    /// The number of pages and the seconds at the last call of [`Self::show`], to compute the rate.
    last: Cell<(u64, f64)>,
    /// The CPU time at the last call of [`Self::show`].
    usage: RefCell<Usage>,
}

/// The time between two updates of the line on a terminal.
const LOOK: Duration = Duration::from_millis(200);

impl Progress {
    /// Creates the progress display that suits the configuration and the terminal.
    pub(super) fn new(conf: &Conf) -> Self {
        let line = (signal::is_terminal() && !console::is_quiet()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            ProgressBar::new_spinner().with_style(style.expect("the template is valid"))
        });
        let period = if line.is_some() { LOOK } else { conf.report.progress_period };
        Self { line, period, last: Cell::default(), usage: RefCell::default() }
    }

    /// Returns how often [`Self::show`] should be called.
    pub(super) fn period(&self) -> Duration {
        self.period
    }

    /// Shows the present progress of the crawl.
    pub(super) fn show(&self, view: &View<'_>) {
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
        let engine = &view.engine;
        let counts = engine.counts();
        let seconds = engine.elapsed().as_secs_f64();
        let pages = engine.counts().pages_of_run;
        let (pages_before, seconds_before) = self.last.replace((pages, seconds));
        let since = (seconds - seconds_before).max(1e-3);
        let rate = (pages - pages_before) as f64 / since;
        let (busy, parked) = engine.connections();
        let used = view.usage.since(&self.usage.replace(view.usage.clone()));
        let text = format!(
            "{}{} pages, {rate:.0}/s, {}; {} URLs wait on {} servers; {busy} connections, {parked} \
             parked; core {}; {}",
            waiting(view),
            HumanCount(counts.pages),
            HumanBytes(counts.received_bytes),
            HumanCount(engine.frontier().urls() as u64),
            HumanCount(engine.frontier().servers() as u64),
            core(&used),
            HumanDuration(Duration::from_secs(engine.elapsed().as_secs())),
        );
        match engine.outage() {
            Some(silence) => {
                let silence = HumanDuration(Duration::from_secs(silence.as_secs()));
                format!("paused: no server could be reached for {silence}; {text}")
            }
            None => text,
        }
    }
}

/// Describes what a resumed crawl does before it fetches anything; empty if it fetches.
fn waiting(view: &View<'_>) -> String {
    if let Some((done, of)) = view.engine.reread() {
        return format!("reading back {done} of {of} replies from the archive; ");
    }
    view.engine.rests_until().map_or_else(String::new, |until| {
        let until = until.civil().to_clock();
        format!(
            "servers rest until {until} UTC after an unclean stop or a rebuild \
             (politeness.delay_max); "
        )
    })
}

/// Describes which share of its time the loop's thread was busy, and which stages took most of it.
fn core(used: &Usage) -> String {
    let busy = used.looping.sum_us() as f64 / (used.wall.as_micros() as f64).max(1.0) * 100.0;
    let most = shares(used).into_iter().take(2).filter(|(_, share)| *share > 0.0);
    let most: Vec<String> =
        most.map(|(name, share)| format!("{name} {:.0}", share * busy)).collect();
    if most.is_empty() {
        return format!("{busy:.0}%");
    }
    format!("{busy:.0}% ({})", most.join(", "))
}
