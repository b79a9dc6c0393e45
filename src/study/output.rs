//! Writes the results of the study's commands: files in a directory, and text for a terminal.

#![expect(clippy::disallowed_methods, reason = "commands write files of results")]

use crate::commands::{Exit, Failure};
use std::fmt::Display;
use std::fs;
use std::path::Path;

/// Returns what has made a result: the program, its version, and the commit if it was built by
/// `make build`.
pub(crate) fn version() -> String {
    let commit = option_env!("STED_COMMIT").filter(|commit| !commit.is_empty());
    let commit = commit.map(|commit| format!(", commit {commit}")).unwrap_or_default();
    format!("sted {}{commit}", env!("CARGO_PKG_VERSION"))
}

/// Writes the file `name` in `directory`.
///
/// # Errors
/// The file could not be written.
pub(crate) fn put(directory: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(|error| failed(&path, &error))
}

/// Returns the failure to report for a file that could not be written.
pub(crate) fn failed(path: &Path, error: &dyn Display) -> Failure {
    Failure::new(Exit::Disk, format!("{}: {error}", path.display()))
}

/// Wraps a text to lines of at most 100 columns, each followed by a line end.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        if column > 0 && column + 1 + word.len() > 100 {
            lines.push('\n');
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += word.len();
    }
    lines.push('\n');
    lines
}
