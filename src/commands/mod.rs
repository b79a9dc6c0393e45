//! The command line: what is asked for, and which command does it. One file per command.
//!
//! A command returns how it ended ([`Exit`]) or a [`Failure`], which `main` prints as one line per
//! fault on stderr. Results go to stdout, everything else to stderr.

#![expect(clippy::disallowed_methods, reason = "commands open the files their arguments name")]

pub mod check;
pub mod crawl;
pub mod exit;
pub(crate) mod inputs;
mod missing;
mod progress;
pub mod settings;
pub mod study;
mod summary;

pub use exit::{Exit, Failure};
pub use inputs::load;

use clap::{ArgAction, Parser, Subcommand};
use log::LevelFilter;
use std::path::PathBuf;

/// A single-threaded, event-driven web crawler: polite, bounded, reproducible.
///
/// Everything a crawl does is decided by one configuration file; conf/reference.toml is its manual.
#[derive(Debug, Parser)]
#[command(name = "sted", version, arg_required_else_help = true, after_long_help = Exit::table())]
#[command(max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli {
    /// Say more on stderr: -v what happens, -vv to each server, -vvv to each URL
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Say less on stderr: -q errors only, -qq nothing
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "verbose")]
    pub quiet: u8,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Crawl as a configuration says
    ///
    /// Runs the crawl until there is nothing left, a budget is reached, or SIGINT or SIGTERM comes:
    /// then what is under way is finished and written. A second signal stops at once. Started
    /// again, it goes on where it was, however it was stopped. Progress goes to stderr; everything
    /// that was fetched, and all that is needed to go on, goes to the job directory.
    ///
    /// Example: sted crawl conf/quickstart.toml
    #[command(after_long_help = Exit::table())]
    Crawl {
        /// The configuration: a TOML file
        conf: PathBuf,
        /// Make the job's state anew from its archive, as after damage: what the archive holds is
        /// read back and not fetched again
        #[arg(long)]
        rebuild: bool,
        /// Take back the servers that were given up, with their URLs, and try them and the failed
        /// seeds again
        #[arg(long)]
        retry_given_up: bool,
    },
    /// Say whether a configuration is right, and what it comes to
    ///
    /// Names all mistakes at once, each with its line, or prints the effective configuration: every
    /// key with its value, defaults included, as a file that can be used itself. Files that the
    /// configuration names must be there.
    ///
    /// Example: sted check conf/polite.toml
    #[command(after_long_help = check::EXITS)]
    Check {
        /// The configuration: a TOML file
        conf: PathBuf,
    },
    /// A command of the study
    #[command(flatten)]
    Study(study::Command),
}

impl Cli {
    /// How much goes to stderr; `None`: as the environment (`RUST_LOG`) says, warnings at least.
    pub fn log_level(&self) -> Option<LevelFilter> {
        match (self.verbose, self.quiet) {
            (0, 0) => None,
            (0, 1) => Some(LevelFilter::Error),
            (0, _) => Some(LevelFilter::Off),
            (1, _) => Some(LevelFilter::Info),
            (2, _) => Some(LevelFilter::Debug),
            _ => Some(LevelFilter::Trace),
        }
    }

    /// Does what is asked for.
    ///
    /// # Errors
    /// Whatever kept the command from its end, with the exit code it means.
    pub fn run(&self) -> Result<Exit, Failure> {
        match &self.command {
            Command::Check { conf } => check::run(conf),
            Command::Crawl { conf, rebuild, retry_given_up } => {
                crawl::run(conf, *rebuild, *retry_given_up)
            }
            Command::Study(command) => command.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn log_levels() {
        for (arguments, expected) in [
            (&["sted", "check", "x"][..], None),
            (&["sted", "-v", "check", "x"], Some(LevelFilter::Info)),
            (&["sted", "check", "-vv", "x"], Some(LevelFilter::Debug)),
            (&["sted", "-vvvv", "check", "x"], Some(LevelFilter::Trace)),
            (&["sted", "-q", "check", "x"], Some(LevelFilter::Error)),
            (&["sted", "-qq", "check", "x"], Some(LevelFilter::Off)),
        ] {
            let cli = Cli::try_parse_from(arguments).expect("valid arguments");
            assert_eq!(cli.log_level(), expected, "{arguments:?}");
        }
    }
}
