//! Why a command that needs the queue can't go on: the cause, the key of the configuration that it
//! is about, and a fix.

use super::runtime;
use super::trouble::{code_of, fix_of};
use std::error::Error;
use std::fmt;

/// Why a node can't begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The key of the configuration that it is about.
    pub key: &'static str,
    /// What is wrong, and what to do.
    pub text: String,
    /// Whether the configuration has to be changed; otherwise the same may succeed later.
    pub is_mistake: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.text)
    }
}

pub(super) fn mistake(key: &'static str, text: String) -> Failure {
    Failure { key, text, is_mistake: true }
}

pub(super) fn trouble(key: &'static str, text: String) -> Failure {
    Failure { key, text, is_mistake: false }
}

/// Runs work in a runtime of its own.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime().map_err(|error| trouble("cluster", error.to_string()))?;
    runtime.block_on(work)
}

/// Returns the text of an error and of what caused it, with a fix if there is one.
pub(super) fn all(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text + fix_of(code_of(error))
}
