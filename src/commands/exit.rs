//! Exit codes: what a script or a supervisor can tell from the end of the program.
//!
//! "Finished", "budget reached" and "interrupted" differ: only after the first is there nothing
//! left to do. What is missing counts only for a crawl that has nothing left to do: one that a
//! signal or a budget ended is incomplete anyway. The numbers are part of the interface and never
//! change their meaning.

use std::fmt;
use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All there was to do is done.
    Finished,
    /// The command line or the configuration is wrong.
    Usage,
    /// A file could not be read or written, or the disk is full.
    Disk,
    /// The system refused what the crawl needs: descriptors, sockets, a resolver.
    System,
    /// The job directory is in use, or what it holds can't be gone on with.
    Job,
    /// Stopped by a signal; what was under way was finished, everything is on disk, and the crawl
    /// can go on.
    Interrupted,
    /// It ended, and something is missing that it should have fetched.
    NotWhole,
    /// Stopped at once by a second signal; what was not yet synced is fetched again.
    Forced,
    /// The budget of pages or bytes is reached; there is more to fetch.
    Budget,
    /// The budget of time is reached; there is more to fetch.
    Time,
    /// A fault of the program: please report it.
    Internal,
}

impl Exit {
    /// Every exit there is, by number.
    pub const ALL: [Self; 11] = [
        Self::Finished,
        Self::Usage,
        Self::Disk,
        Self::System,
        Self::Job,
        Self::Interrupted,
        Self::NotWhole,
        Self::Forced,
        Self::Budget,
        Self::Time,
        Self::Internal,
    ];

    /// The number the program exits with.
    pub const fn code(self) -> u8 {
        match self {
            Self::Finished => 0,
            Self::Usage => 2,
            Self::Disk => 3,
            Self::System => 4,
            Self::Job => 5,
            Self::Interrupted => 11,
            Self::NotWhole => 12,
            Self::Forced => 13,
            Self::Budget => 14,
            Self::Time => 15,
            Self::Internal => 17,
        }
    }

    /// What it means, in a line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Finished => "finished: all there was to do is done",
            Self::Usage => "the command line or the configuration is wrong",
            Self::Disk => "a file could not be read or written, or the disk is full",
            Self::System => "the system refused descriptors, sockets or a resolver",
            Self::Job => "the job directory is in use, or what it holds can't be gone on with",
            Self::Interrupted => "stopped by a signal; all is on disk, the crawl can go on",
            Self::NotWhole => {
                "ended, with something missing that was asked for; the summary says what"
            }
            Self::Forced => {
                "stopped at once by a second signal; what was not synced is fetched again"
            }
            Self::Budget => "pages_max or bytes_max is reached; there is more to fetch",
            Self::Time => "time_max is reached; there is more to fetch",
            Self::Internal => "a fault of the program; please report it",
        }
    }

    /// The table of all exits, as the help shows it.
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

/// Why a command did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code to exit with.
    pub exit: Exit,
    /// What went wrong, for people: one line per fault.
    pub text: String,
}

impl Failure {
    /// A failure in one's own words.
    pub fn new(exit: Exit, text: impl fmt::Display) -> Self {
        Self { exit, text: text.to_string() }
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
