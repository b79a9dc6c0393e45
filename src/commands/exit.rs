//! Exit codes: how the program ended, for scripts and supervisors.
//!
//! "Finished", "limit reached" and "interrupted" differ: only after the first is nothing left to
//! do. Exit code 12 (something is missing) applies only to a crawl that ended by itself, because
//! one that a signal or a limit ended is incomplete anyway. The numbers never change their meaning.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command has done everything; nothing is left to do.
    Finished,
    /// The command line or the configuration is wrong.
    Usage,
    /// A file could not be read or written, or the disk is full.
    Disk,
    /// The system refused descriptors, sockets or a resolver.
    System,
    /// The job directory is in use, or its crawl can't be resumed.
    Job,
    /// No crawl runs in the job directory.
    NotRunning,
    /// The running crawl refused a command.
    Refused,
    /// The crawl was stopped by a signal. Open requests were finished, everything is on disk, and
    /// the crawl can be resumed.
    Interrupted,
    /// The crawl ended, but something that it should have fetched is missing.
    NotWhole,
    /// The crawl was stopped at once by a second signal. What was not on disk is fetched again when
    /// the crawl is resumed.
    Forced,
    /// The crawl reached its limit of pages or bytes; there is more to fetch.
    Budget,
    /// The crawl reached its limit of time; there is more to fetch.
    Time,
    /// An internal error: please report it.
    Internal,
    /// An audit found that a promise was broken.
    Impolite,
    /// An audit can't tell whether all promises were kept.
    Unproven,
}

impl Exit {
    /// All exits, in the order of their codes.
    pub const ALL: [Self; 15] = [
        Self::Finished,
        Self::Usage,
        Self::Disk,
        Self::System,
        Self::Job,
        Self::NotRunning,
        Self::Refused,
        Self::Interrupted,
        Self::NotWhole,
        Self::Forced,
        Self::Budget,
        Self::Time,
        Self::Internal,
        Self::Impolite,
        Self::Unproven,
    ];

    /// Returns the exit code of the process.
    pub const fn code(self) -> u8 {
        match self {
            Self::Finished => 0,
            Self::Usage => 2,
            Self::Disk => 3,
            Self::System => 4,
            Self::Job => 5,
            Self::NotRunning => 6,
            Self::Refused => 7,
            Self::Interrupted => 11,
            Self::NotWhole => 12,
            Self::Forced => 13,
            Self::Budget => 14,
            Self::Time => 15,
            Self::Internal => 17,
            Self::Impolite => 20,
            Self::Unproven => 21,
        }
    }

    /// Describes this way of ending in one line, for the table of exit codes.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Finished => "finished: nothing is left to do",
            Self::Usage => "the command line or the configuration is wrong",
            Self::Disk => "a file could not be read or written, or the disk is full",
            Self::System => "the system refused descriptors, sockets or a resolver",
            Self::Job => "the job directory is in use, or its crawl can't be resumed",
            Self::NotRunning => "no crawl runs in the job directory (`sted ctl`, `sted status`)",
            Self::Refused => "the running crawl refused the command (`sted ctl`)",
            Self::Interrupted => {
                "stopped by a signal; everything is on disk, the crawl can be resumed"
            }
            Self::NotWhole => "ended, but something is missing; the summary says what",
            Self::Forced => {
                "stopped at once by a second signal; what was not on disk is fetched again"
            }
            Self::Budget => "pages_max or bytes_max was reached; raise it to fetch more",
            Self::Time => "time_max was reached; the crawl can be resumed",
            Self::Internal => "an internal error; please report it",
            Self::Impolite => "`sted audit`: a promise to a server was broken",
            Self::Unproven => "`sted audit`: can't tell, because something is missing",
        }
    }

    /// Formats the table of all exit codes for the help text.
    pub fn table() -> String {
        let mut table = String::from("Exit codes:\n");
        for exit in Self::ALL {
            table.push_str(&format!("  {:>2}  {}\n", exit.code(), exit.meaning()));
        }
        table.push_str("If several apply: 13, then 3, 11, 14 or 15, and 12 last.\n");
        table
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command failed: the exit code and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The message for people: one line for each fault.
    pub text: String,
}

impl Failure {
    /// Creates a failure with this exit code and message.
    pub fn new(exit: Exit, text: impl fmt::Display) -> Self {
        Self { exit, text: text.to_string() }
    }

    /// Creates the failure of a file or folder that can't be read or written, for this reason.
    pub fn of_file(path: &Path, why: &dyn fmt::Display) -> Self {
        Self::new(Exit::Disk, format!("{}: {why}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_differ_and_rise() {
        assert!(Exit::ALL.windows(2).all(|pair| pair[0].code() < pair[1].code()));
    }

    #[test]
    fn table_names_each_code() {
        let table = Exit::table();
        for exit in Exit::ALL {
            assert!(table.contains(&format!("{:>2}  {}", exit.code(), exit.meaning())));
        }
    }
}
