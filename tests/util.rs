//! Helpers of the integration tests: running the program, golden files, files of the repository.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
#[cfg(feature = "study")]
use std::sync::Mutex;

/// Returns the folder of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the text of a file of the repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns a command that runs the program in the repository's folder. Variables of the caller
/// don't affect its output, and help is 100 columns wide as without a terminal.
pub(crate) fn sted(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sted"));
    command.args(arguments).current_dir(root());
    command.env_remove("RUST_LOG").env_remove("RUST_BACKTRACE").env("COLUMNS", "100");
    command
}

/// Returns a command that runs a Python script of the tests (`archive/check.py`) with the readers
/// of archives that `make deps` installs.
pub(crate) fn python(script: &str) -> Command {
    let python = root().join(".venv/bin/python");
    assert!(python.exists(), "no readers of archives; `make deps` installs them in .venv");
    let tests = root().join("tests");
    let mut command = Command::new(python);
    // Scripts share pywb_app.py. The sources stay as they are.
    command.env("PYTHONPATH", &tests).env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(tests.join(script));
    command
}

/// Held by tests that crawl over sockets within this process: only one loop of a process may handle
/// signals.
#[cfg(feature = "study")]
pub(crate) static LOOP: Mutex<()> = Mutex::new(());

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> Run {
    Run::of(sted(arguments).output().expect("the program starts"))
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl Run {
    /// Converts the system's output.
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Names of tests that may pass under `CI=true` though the machine lacks what they need.
#[cfg(feature = "study")]
const EXCUSED: &[&str] = &[
    // Containers may forbid sampling: then the refusal is tested instead of the graph.
    "a_flame_graph_is_drawn_or_refused_at_once",
];

/// Reports that a test does less because the machine lacks `what`. Under `CI=true`, only tests
/// excused by name may do that.
#[cfg(feature = "study")]
pub(crate) fn lacks(test: &str, what: &str) {
    let is_ci = env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci || EXCUSED.contains(&test), "{test}: this machine lacks {what}");
    eprintln!("{test} does less: this machine lacks {what}");
}

/// Compares `text` with `tests/golden/NAME`; with `STED_GOLDEN=1` in the environment it writes the
/// file instead, to be reviewed as a change.
pub(crate) fn golden(name: &str, text: &str) {
    let path: PathBuf = root().join("tests/golden").join(name);
    if env::var_os("STED_GOLDEN").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().expect("a file in a folder")).expect("golden folder");
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; `make golden` writes it", path.display());
    });
    let line = 1 + text.lines().zip(expected.lines()).take_while(|(a, b)| a == b).count();
    assert!(
        text == expected,
        "{name} differs from line {line} on; `make golden` rewrites it. Now:\n{text}"
    );
}
