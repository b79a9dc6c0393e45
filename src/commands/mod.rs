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
mod summary;
pub mod wire;

pub use exit::{Exit, Failure};
pub use inputs::load;

use crate::study::{cache, compare, profile, serve};
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
    /// Say what a cache of known URLs would be worth
    ///
    /// Replays the stream of URLs that a crawl found (job.trace or compare.trace = true) through
    /// caches of 1, 2, 4... entries under six policies: INFINITE, MIN (which knows the future),
    /// LRU, CLOCK, RANDOM, STATIC; once all links, once those that would go to another process.
    /// Says where the miss rate falls and which size will do. Of several traces it shows whether
    /// entries per connection are what counts. Prints tables; writes a report (HTML), curves (SVG)
    /// and all numbers (CSV).
    ///
    /// Example: sted cache jobs/crawl/trace
    #[command(after_long_help = cache::EXITS)]
    Cache(cache::Asked),
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
    /// Compare policies on the same web
    ///
    /// Crawls the synthetic web that the file describes under each policy, and where it asks for
    /// them under several variants, values and seeds: in simulation, on a virtual clock, or over
    /// real sockets. Prints a summary; writes a report (HTML), curves (SVG) and all samples (CSV)
    /// to the comparison's directory. Nobody else is asked for anything.
    ///
    /// Example: sted compare conf/compare-2003.toml
    #[command(after_long_help = compare::EXITS)]
    Compare {
        /// The configuration: a TOML file with a compare section
        conf: PathBuf,
    },
    /// Say where a core is full, and what it spends its time on
    ///
    /// Crawls the same web (that of the file's lab, or the seeds of its job) with one number of
    /// open connections after the other. Says for each how many pages a second there were, how much
    /// of the core was busy, and what with; names the number past which more connections bring
    /// nothing more. Prints a table and a verdict; writes a report (HTML), figures (SVG) and all
    /// numbers (CSV) to the profile's directory.
    ///
    /// Example: sted profile --flame conf/profile-lab.toml
    #[command(after_long_help = profile::EXITS)]
    Profile {
        /// The configuration: a TOML file with a profile section
        conf: PathBuf,
        /// Crawl once more where the core is full, sampled by perf, and draw a flame graph
        /// (flame.svg) in the profile's directory
        #[arg(long)]
        flame: bool,
    },
    /// Serve a synthetic web on this machine
    ///
    /// Serves the web that the file describes, with real sockets on 127.0.0.0/8 and its own
    /// name server, for any crawler. Prints one line of JSON when it is ready: where its name
    /// server is, where to start. Serves until SIGINT, SIGTERM, or the end of standard input; then
    /// another line says what was served.
    ///
    /// Example: sted web conf/lab.toml
    #[command(after_long_help = Exit::table())]
    Web {
        /// The configuration: a TOML file with a lab section
        conf: PathBuf,
        /// Ports for HTTP and HTTPS; without them two that are free are taken
        #[arg(long, value_name = "HTTP,HTTPS", value_parser = serve::ports)]
        ports: Option<(u16, u16)>,
    },
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
            Command::Cache(asked) => cache::run(asked),
            Command::Check { conf } => check::run(conf),
            Command::Compare { conf } => compare::run(conf),
            Command::Crawl { conf, rebuild, retry_given_up } => {
                crawl::run(conf, *rebuild, *retry_given_up)
            }
            Command::Profile { conf, flame } => profile::run(conf, *flame),
            Command::Web { conf, ports } => serve::run(conf, *ports),
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
