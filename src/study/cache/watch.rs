//! The progress of replays: prints a progress line, and stops at a signal.

use crate::commands::Exit;
use crate::os::console;
use crate::os::signal::{self, Asked, Signals};
use indicatif::{ProgressBar, ProgressStyle};
use std::io;
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The time between two checks of the progress and of the signals.
const LOOK: Duration = Duration::from_millis(50);
/// The number of checks between two progress lines if standard error is not a terminal.
const LINE_LOOKS: u64 = 200;

/// The progress of a computation, shared between threads. The work is counted in equal parts, such
/// as links: the workers report the parts that are done, and one thread displays their number.
#[derive(Debug)]
pub(super) struct Watch {
    what: Mutex<String>,
    all: AtomicU64,
    done: AtomicU64,
    line: Option<ProgressBar>,
}

impl Watch {
    /// Creates the progress of work that has not begun.
    pub(super) fn new() -> Self {
        let line = (signal::is_terminal() && !console::is_quiet()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            ProgressBar::new_spinner().with_style(style.expect("the template is right"))
        });
        let (what, all, done) = (Mutex::default(), AtomicU64::new(0), AtomicU64::new(0));
        Self { what, all, done, line }
    }

    /// Begins a piece of work of `all` parts; `what` names it in the progress line.
    pub(super) fn begin(&self, what: &str, all: u64) {
        *self.what.lock().expect("nobody panics with it in hand") = what.to_owned();
        self.all.store(all, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    /// Counts `parts` more parts that are done.
    pub(super) fn more(&self, parts: u64) {
        self.done.fetch_add(parts, Ordering::Relaxed);
    }

    /// Shows the progress until `is_over` returns true. A signal ends the program at once: nothing
    /// is worth saving before the end.
    pub(super) fn until(&self, is_over: impl Fn() -> bool) -> io::Result<()> {
        let poll = mio::Poll::new()?;
        let signals = Signals::new(poll.registry(), mio::Token(0))?;
        let mut looks = 0_u64;
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
            match &self.line {
                Some(line) => {
                    line.set_message(self.text());
                    line.tick();
                }
                None if looks.is_multiple_of(LINE_LOOKS) => console::progress(&self.text()),
                None => {}
            }
            thread::sleep(LOOK);
        }
        self.clear();
        Ok(())
    }

    fn clear(&self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }

    fn text(&self) -> String {
        let what = self.what.lock().expect("nobody panics with it in hand");
        let (all, done) = (self.all.load(Ordering::Relaxed), self.done.load(Ordering::Relaxed));
        let percent = done.min(all) as f64 / all.max(1) as f64 * 100.0;
        format!("{what}: {percent:.0}%")
    }
}
