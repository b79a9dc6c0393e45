//! What is said while traces are replayed, and what ends it: a line of progress, a signal.

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

/// Between two looks at the work, and at the signals.
const LOOK: Duration = Duration::from_millis(50);
/// Looks between two lines where there is no terminal.
const LINE_LOOKS: u64 = 200;

/// How far the work is, counted by itself.
#[derive(Debug)]
pub(super) struct Watch {
    what: Mutex<String>,
    all: AtomicU64,
    done: AtomicU64,
    line: Option<ProgressBar>,
}

impl Watch {
    /// Nothing is begun.
    pub(super) fn new() -> Self {
        let line = (signal::is_terminal() && !console::is_quiet()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            ProgressBar::new_spinner().with_style(style.expect("the template is right"))
        });
        let (what, all, done) = (Mutex::default(), AtomicU64::new(0), AtomicU64::new(0));
        Self { what, all, done, line }
    }

    /// Begins a piece of work of so many parts.
    pub(super) fn begin(&self, what: &str, all: u64) {
        *self.what.lock().expect("nobody panics with it in hand") = what.to_owned();
        self.all.store(all, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    /// More parts are done.
    pub(super) fn more(&self, parts: u64) {
        self.done.fetch_add(parts, Ordering::Relaxed);
    }

    /// Shows how far it is until `is_over`. A signal ends the program at once: there is nothing
    /// worth keeping before the end.
    pub(super) fn until(&self, is_over: impl Fn() -> bool) -> io::Result<()> {
        let poll = mio::Poll::new()?;
        let signals = Signals::new(poll.registry(), mio::Token(0))?;
        let mut looks = 0_u64;
        while !is_over() {
            if signals.asked() != Asked::Nothing {
                self.clear();
                let text = self.text();
                console::last_words(&format!(
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
