//! `sted web`: serves the synthetic web that a configuration describes.

#![expect(
    clippy::disallowed_methods,
    reason = "a command, which makes its folder and waits for signals"
)]

use super::inputs;
use super::lab;
use super::settings;
use crate::commands::{ConfFile, Exit, Failure};
use crate::os::signal::{self, Asked, Signals};
use std::fs;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The time between two checks of the signals.
const LOOK: Duration = Duration::from_millis(50);

/// Serves the web of the configuration `file` until a signal or the end of standard input, on
/// `ports` if they are given, else on free ones. Prints a line of JSON when it is ready, and
/// another one with the totals at the end.
///
/// # Errors
/// What kept the lab from serving, with its exit code.
pub fn run(file: &ConfFile, ports: Option<(u16, u16)>) -> Result<Exit, Failure> {
    let (conf, path) = (file.load()?, &file.path);
    let Some(lab) = &conf.lab else {
        let text = format!("{}: has no [lab]: there is no web to serve", path.display());
        return Err(Failure::new(Exit::Usage, text));
    };
    fs::create_dir_all(&lab.directory).map_err(|error| {
        Failure::new(Exit::Disk, format!("{}: {error}", lab.directory.display()))
    })?;
    signal::descriptor_limit();
    let keys = inputs::keys(lab)?;
    let mut settings = lab::Settings {
        http_port: ports.map(|(http, _)| http),
        https_port: ports.map(|(_, https)| https),
        ..settings::lab(&conf, lab)
    };
    settings.web.keys = keys;
    let stop = AtomicBool::new(false);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| heed_signals(&stop, &done));
        let served = {
            let _done = SetAtEnd(&done);
            lab::serve(&settings, &mut announce, &stop)
        };
        watch.join().expect("the watch does not panic").map_err(system)?;
        served.map_err(system)
    })
    .map(|totals| say(&serde_json::to_string(&totals).expect("plain fields only")))?;
    Ok(Exit::Finished)
}

/// Sets a flag when it is dropped, so that a thread that waits for it ends after a panic, too.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn system(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::System, error)
}

/// Prints that the lab is ready, and where, as one line of JSON.
fn announce(ready: &lab::Ready) {
    say(&ready.to_json());
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    // If the reader of standard output is gone, the end of standard input stops the lab.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn heed_signals(stop: &AtomicBool, done: &AtomicBool) -> io::Result<()> {
    let poll = mio::Poll::new()?;
    let signals = Signals::new(poll.registry(), mio::Token(0))?;
    while !done.load(Ordering::SeqCst) {
        if signals.asked() != Asked::Nothing {
            stop.store(true, Ordering::SeqCst);
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Parses the two ports (HTTP, HTTPS) given on the command line.
pub(crate) fn ports(text: &str) -> Result<(u16, u16), String> {
    let ports = text.split_once(',').and_then(|(http, https)| {
        let port = |text: &str| text.parse().ok().filter(|port| *port > 0);
        Some((port(http)?, port(https)?))
    });
    ports.ok_or_else(|| "two ports with a comma between them, like 7001,7002".to_owned())
}
