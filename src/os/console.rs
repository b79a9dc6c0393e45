//! Standard error as a place for lines that may be lost: none of them ends or stalls a crawl.
//!
//! A line is written only as far as that can't block (a pipe that nobody reads, a terminal that is
//! held), and an error is no reason to stop (a full disk, a closed pipe). Lines that could not be
//! written are counted, and the count is written before the next line that can be.
//!
//! Text from the network and from files may hold control characters, which a terminal would obey:
//! [`printable`] escapes them.

use super::signal;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// The descriptor of standard error.
const STDERR: i32 = 2;
/// Bytes that a pipe which is writable takes without blocking: POSIX's least `PIPE_BUF` is less,
/// Linux's is this.
const PIECE_BYTES: usize = 4 << 10;

/// Lines that were lost since the last one that was written.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Writes one line, if that can be done without waiting.
pub fn line(text: &str) {
    put(format!("{text}\n").as_bytes());
}

/// Writes a line of progress, unless only errors are wanted on standard error.
pub fn progress(text: &str) {
    if !is_quiet() {
        line(text);
    }
}

/// Whether only errors are wanted on standard error: no progress is shown then.
pub fn is_quiet() -> bool {
    log::max_level() < log::LevelFilter::Warn
}

/// Writes the last words of a command: waits for a reader, if there is one, but never fails.
pub fn last_words(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// The sink of the log: each write is a whole line, or more.
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
        let text = format!("{lost} lines of output were lost: standard error was not read\n");
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

/// The text with its control characters escaped, line ends and tabs excepted.
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

/// Characters that change the direction of what follows, so that a line reads as another.
fn is_override(c: char) -> bool {
    matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

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
