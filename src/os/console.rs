//! Writes lines to standard error without ever blocking or ending a crawl.
//!
//! A line is written only as far as that doesn't block (nobody may read the pipe, or the terminal
//! may be stopped). Errors such as a full disk or a closed pipe are ignored. Lines that could not
//! be written are counted, and the count is written before the next line.
//!
//! Text from the network and from files may contain control characters, which a terminal would
//! obey: [`printable`] escapes them.

#![expect(clippy::disallowed_methods, reason = "a log line has the time at which it is written")]

use super::signal;
use crate::ground::time::UnixTime;
use serde_json::json;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

/// The descriptor of standard error.
const STDERR: i32 = 2;
/// The number of bytes that a pipe that is reported as writable takes without blocking: Linux's
/// `PIPE_BUF`.
const PIECE_BYTES: usize = 4 << 10;

/// The number of lines lost since the last line that was written.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Whether lines are written as JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// Makes every further line a JSON object with `time` (RFC 3339, UTC), `level` and `message`.
pub fn write_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// Returns whether lines are written as JSON.
pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Returns a line of JSON for a message.
pub fn json_line(level: &str, message: &str) -> String {
    let time = now().civil().to_seconds();
    let mut line = json!({ "time": time, "level": level, "message": message }).to_string();
    line.push('\n');
    line
}

/// Writes one line, or counts it as lost if writing would block.
pub fn line(text: &str) {
    match is_json() {
        true => put(json_line("INFO", text).as_bytes()),
        false => put(format!("{text}\n").as_bytes()),
    }
}

/// Writes a progress line, unless the log level shows only errors.
pub fn progress(text: &str) {
    if !is_quiet() {
        line(text);
    }
}

/// Returns whether only errors should be shown on standard error, and no progress.
pub fn is_quiet() -> bool {
    log::max_level() < log::LevelFilter::Warn
}

/// Returns whether events of the crawl are shown on standard error, as `-v` asks.
pub fn is_verbose() -> bool {
    log::max_level() >= log::LevelFilter::Info
}

/// Writes the final output of a command to standard error. Waits for a slow reader, but never
/// fails.
pub fn write_final(text: &str) {
    let _ = match is_json() {
        true => write!(io::stderr(), "{}", json_line("ERROR", text)),
        false => writeln!(io::stderr(), "{}", printable(text)),
    };
}

/// A writer to standard error for the log. Each write must contain whole lines.
#[derive(Clone, Copy, Debug)]
pub struct Console;

impl Write for Console {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn put(bytes: &[u8]) {
    let lost = LOST.load(Ordering::Relaxed);
    if lost > 0 {
        let text = format!("{lost} lines of output were lost: standard error was not read");
        let text = if is_json() { json_line("WARN", &text) } else { format!("{text}\n") };
        if pieces(text.as_bytes()).is_err() {
            LOST.fetch_add(1, Ordering::Relaxed);
            return;
        }
        LOST.fetch_sub(lost, Ordering::Relaxed);
    }
    if pieces(bytes).is_err() {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

fn pieces(bytes: &[u8]) -> io::Result<()> {
    for piece in bytes.chunks(PIECE_BYTES) {
        if !signal::is_writable(STDERR) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        io::stderr().write_all(piece)?;
    }
    Ok(())
}

fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixTime::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// Escapes the control characters of a text, except line ends and tabs.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || is_override(c);
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_odd(c) {
            write!(clean, "\\u{{{:x}}}", u32::from(c)).expect("a string takes all");
        } else {
            clean.push(c);
        }
    }
    Cow::Owned(clean)
}

/// Returns whether the character changes the direction of text, which could disguise a line.
fn is_override(c: char) -> bool {
    matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_line_is_one_object_whatever_the_message() {
        for message in ["plain", "two\nlines", "\u{1b}[31m\"red\"", ""] {
            let line = json_line("INFO", message);
            assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line:?}");
            let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!((&value["level"], &value["message"]), (&"INFO".into(), &message.into()));
            assert!(value["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        let cases = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\rb\u{9b}c\u{7f}", "a\\u{d}b\\u{9b}c\\u{7f}"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("caf\u{e9}", "caf\u{e9}"),
        ];
        for (text, expected) in cases {
            assert_eq!(printable(text), expected);
        }
    }
}
