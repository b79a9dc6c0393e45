//! `[profile]`: how many connections are tried, and how long each number.

use std::path::PathBuf;
use std::time::Duration;

/// `[profile]`: what is measured, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Folder of the results.
    pub directory: PathBuf,
    /// Open connections, a step each.
    pub connections: Vec<usize>,
    /// Time that is measured at each step.
    pub step_time: Duration,
    /// Pages that end a step before its time.
    pub step_pages: Option<u64>,
    /// Time before that, not measured.
    pub warm_up: Duration,
    /// How often all steps are taken: what is told is the median.
    pub repeats: u32,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            directory: PathBuf::from("jobs/profile"),
            connections: vec![1, 2, 4, 8, 16, 32, 64, 128, 256],
            step_time: Duration::from_secs(5),
            step_pages: None,
            warm_up: Duration::from_secs(1),
            repeats: 1,
        }
    }
}
