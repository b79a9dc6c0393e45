//! The progress of a comparison: prints a progress line, and stops at a signal.

use crate::commands::Exit;
use crate::conf::Conf;
use crate::os::console;
use crate::os::signal::{self, Asked, Signals};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::io;
use std::process;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The time between two checks of the crawls and the signals.
const LOOK: Duration = Duration::from_millis(50);

/// The progress of a comparison. The threads that run the crawls count what is done.
#[derive(Debug)]
pub(super) struct Watch {
    all: usize,
    done: AtomicUsize,
    pages: AtomicU64,
    line: Option<ProgressBar>,
    /// The number of checks between two progress lines if standard error is not a terminal.
    period_looks: u128,
}

impl Watch {
    /// Creates the progress of `all` crawls.
    pub(super) fn new(all: usize, conf: &Conf) -> Self {
        let line = (signal::is_terminal() && !console::is_quiet()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            ProgressBar::new_spinner().with_style(style.expect("the template is right"))
        });
        let period_looks = conf.report.progress_period.as_millis() / LOOK.as_millis();
        let (done, pages) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { all, done, pages, line, period_looks: period_looks.max(1) }
    }

    /// Counts `pages` more pages that a crawl has fetched.
    pub(super) fn more_pages(&self, pages: u64) {
        self.pages.fetch_add(pages, Ordering::Relaxed);
    }

    /// Counts a crawl that has ended.
    pub(super) fn one_done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Shows the progress until `is_over` returns true. A signal ends the program at once:
    /// simulated crawls leave nothing behind that is worth saving.
    pub(super) fn until(&self, is_over: impl Fn() -> bool) -> io::Result<()> {
        let poll = mio::Poll::new()?;
        let signals = Signals::new(poll.registry(), mio::Token(0))?;
        let mut looks = 0_u128;
        while !is_over() {
            if signals.asked() != Asked::Nothing {
                self.clear();
                let text = self.text();
                console::write_final(&format!(
                    "stopped by a signal: {text}; no results were written"
                ));
                process::exit(Exit::Interrupted.code().into());
            }
            looks += 1;
            if self.line.is_some() || looks.is_multiple_of(self.period_looks) {
                self.show();
            }
            thread::sleep(LOOK);
        }
        self.clear();
        Ok(())
    }

    /// Shows the progress now.
    pub(super) fn show(&self) {
        match &self.line {
            Some(line) => {
                line.set_message(self.text());
                line.tick();
            }
            None => console::progress(&self.text()),
        }
    }

    /// Removes the progress line from the terminal.
    pub(super) fn clear(&self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }

    fn text(&self) -> String {
        let (done, pages) = (self.done.load(Ordering::Relaxed), self.pages.load(Ordering::Relaxed));
        format!("{done} of {} crawls done; {} pages fetched", self.all, HumanCount(pages))
    }
}
