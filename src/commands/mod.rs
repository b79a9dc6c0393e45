//! The command line: parses the arguments and runs the command. One file per command.
//!
//! A command returns an [`Exit`], which says how it ended, or a [`Failure`], which `main` prints on
//! stderr, one line for each fault. Results go to stdout, everything else to stderr.

#![expect(clippy::disallowed_methods, reason = "commands open the files their arguments name")]
#![allow(rustdoc::bare_urls, reason = "the comments are help texts: no markup")]

mod admin;
pub mod audit;
mod cells;
pub mod check;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "alone.rs"]
mod cluster;
pub mod crawl;
mod crawl_log;
#[cfg(feature = "control")]
pub mod ctl;
pub mod exit;
pub(crate) mod file;
pub(crate) mod inputs;
mod job;
pub mod key;
mod missing;
mod named;
mod progress;
mod reload;
pub mod report;
pub mod settings;
mod show;
mod sites;
#[cfg(feature = "control")]
pub mod status;
pub mod study;
mod summary;
mod wacz;
pub mod why;

pub use exit::{Exit, Failure};
pub use file::{ConfFile, load};

use clap::{ArgAction, CommandFactory, Parser, Subcommand};
use log::LevelFilter;
use std::io::{self, Write};
use std::path::PathBuf;

/// The heading of the options that all commands have.
const LOGGING: &str = "Logging";

/// A single-threaded, event-driven web crawler: polite, bounded, reproducible.
///
/// To archive a site: sted crawl https://your.site/ --contact you@your.site
///
/// A configuration file describes all that a crawl does; conf/reference.toml is its manual.
#[derive(Debug, Parser)]
#[command(name = "sted", version, arg_required_else_help = true, after_long_help = Exit::table())]
#[command(max_term_width = 100)]
pub struct Cli {
    /// Log more to stderr: -v events of the crawl, -vv of each server, -vvv of each URL
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = LOGGING)]
    pub verbose: u8,
    /// Log less to stderr: -q only errors, -qq nothing
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "verbose")]
    #[arg(help_heading = LOGGING)]
    pub quiet: u8,
    /// Log to stderr as JSON, one object a line, with time, level and message
    #[arg(long, global = true, help_heading = LOGGING)]
    pub log_json: bool,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Archive the site of a URL, or run or resume the crawl that a configuration describes
    ///
    /// Example: sted crawl https://your.site/ --contact you@your.site
    ///
    /// With URLs, it crawls their hosts and writes to jobs/HOST; --span, --pages and --out change
    /// that, and --set sets any other key of the configuration. The configuration is written to
    /// job.toml in the job directory. With a file, it runs the crawl that the file describes: sted
    /// crawl conf/quickstart.toml
    ///
    /// Tables `[[site]]`, with settings for some of the URLs, are only in files: stop the crawl,
    /// add them to its job.toml, and resume it with that file.
    ///
    /// The crawl runs until no URLs are left, a limit is reached, or SIGINT or SIGTERM arrives;
    /// then it finishes open requests and writes everything to disk. A second signal stops it at
    /// once. The same command resumes the crawl, however it was stopped. Progress goes to stderr;
    /// pages, logs and state go to the job directory.
    #[command(after_long_help = Exit::table())]
    Crawl(crawl::Asked),
    /// Check a configuration and print it with all defaults
    ///
    /// Reports all mistakes at once, each with its line and a fix. Otherwise prints the effective
    /// configuration: every key with its value, as a file that can be used itself. With --url,
    /// prints instead which settings apply to a URL, from which lines, and whether it is in scope.
    /// The files that the configuration names must exist.
    ///
    /// Example: sted check conf/polite.toml
    #[command(after_long_help = check::EXITS)]
    Check {
        /// The configuration.
        #[command(flatten)]
        file: ConfFile,
        /// Show which settings apply to this URL; may be repeated
        #[arg(long = "url", value_name = "URL")]
        urls: Vec<String>,
        /// Print what applies to the URLs as JSON
        #[arg(long, requires = "urls")]
        json: bool,
    },
    /// Give a command to a running crawl: pause, block, slow, add seeds, stop
    ///
    /// Talks to the crawl through the socket control.sock in its job directory, which only the user
    /// that runs the crawl and root may use.
    #[cfg(feature = "control")]
    #[command(after_long_help = ctl::help())]
    Ctl {
        /// The job: its directory, or its configuration
        job: PathBuf,
        /// What the crawl is asked to do
        #[command(subcommand)]
        verb: ctl::Verb,
    },
    /// Show what a running crawl does, what holds it up and until when
    ///
    /// Lists what the servers of the crawl wait for, the servers with most URLs, when each is due,
    /// and when the crawl may end. Talks to the crawl through the socket control.sock in its job
    /// directory.
    ///
    /// Example: sted status jobs/crawl --watch
    #[cfg(feature = "control")]
    #[command(after_long_help = ctl::EXITS)]
    Status {
        /// The job: its directory, or its configuration
        job: PathBuf,
        /// Show it again every second, until the crawl ends
        #[arg(short, long)]
        watch: bool,
        /// Print the crawl's reply as JSON
        #[arg(long)]
        json: bool,
    },
    /// Say why a URL was fetched, was not, or waits, and for what
    ///
    /// Goes through the crawl's decisions step by step: canonical form and deduplication key, scope
    /// with the rule that decides, robots.txt with its line, the lines of the crawl log, the record
    /// in the archive, and the place in the queue of its server with all that it waits for. Asks
    /// the running crawl, or reads the state of a crawl that doesn't run; nothing is changed, and
    /// nothing is requested.
    #[command(after_long_help = why::EXITS)]
    Why {
        /// The job: its directory, or its configuration
        job: PathBuf,
        /// The URL, with its scheme
        url: String,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check from its crawl log whether a crawl kept its promises to servers
    ///
    /// Computes from the times in the log, without the crawler's own arithmetic, for each server,
    /// host, address and registrable domain: requests, the smallest gap between visits against
    /// what was owed (delay, delay_factor, Crawl-delay, Retry-After, across restarts), the most
    /// requests at once, and the most requests a day. Each request is checked against the
    /// robots.txt that was known when it was sent. Rotated and compressed parts of the log are read
    /// in order.
    ///
    /// Example: sted audit jobs/crawl --format html --out audit.html
    ///
    /// Example: sted audit --cluster nodes/a nodes/b nodes/c
    #[command(after_long_help = audit::HELP)]
    Audit(audit::Options),
    /// Watch or command a crawl that several machines share
    #[cfg(feature = "cluster")]
    Cluster {
        /// What to do
        #[command(subcommand)]
        verb: ClusterVerb,
    },
    /// Report from its crawl log what a crawl fetched, what it did not, and why
    ///
    /// Lists runs, seeds with what became of each, hosts and registrable domains, media types,
    /// statuses and outcomes, what was cut and by which limit, the largest and the slowest replies,
    /// and how the crawl went over time. Rotated and compressed parts of the log are read in order,
    /// in bounded memory, also while the crawl runs.
    #[command(after_long_help = report::HELP)]
    Report(report::Options),
    /// Pack the archive of a finished or stopped crawl as one WACZ file
    ///
    /// The file has the WARC files, one sorted index, the list of pages, and the digests of all
    /// that. Replay programs open it as it is. Files that were moved out of the job are named.
    #[command(after_long_help = wacz::HELP)]
    Wacz {
        /// The job: its directory, or its configuration
        job: PathBuf,
        /// The file [default: the job directory with .wacz after its name]
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Make the key that signs requests, or print the document by which servers verify them
    ///
    /// A crawl whose configuration names the key in [identity.signature] signs its requests, so
    /// that servers can verify who asks (Web Bot Auth). The document must be published at the
    /// crawler's own origin.
    #[command(after_long_help = key::EXITS)]
    Key {
        /// What to do
        #[command(subcommand)]
        verb: key::Verb,
    },
    /// Print the completions of a shell
    ///
    /// Example: sted completions bash > /etc/bash_completion.d/sted
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// A command of the study
    #[command(flatten)]
    Study(study::Command),
}

/// What is asked of a shared crawl.
#[cfg(feature = "cluster")]
#[derive(Debug, Subcommand)]
pub enum ClusterVerb {
    /// Show the nodes with their partitions and progress, and which logs aren't read to their ends
    ///
    /// Asks the queue, not the nodes; a node reports three times in `cluster.lease`.
    Status {
        /// The configuration of a node, or of anyone who may read the queue
        #[command(flatten)]
        file: ConfFile,
        /// Print the state as JSON
        #[arg(long)]
        json: bool,
    },
    /// Give a command to all nodes: `block`, `slow`, `pause`, `stop` and others of `sted ctl`
    ///
    /// The command is kept in the queue. Nodes that run carry it out within moments, others when
    /// they come back or join; `stop`, `checkpoint` and `rotate` only those that run.
    #[cfg(feature = "control")]
    Ctl {
        /// The configuration of a node, or of anyone who may write to the queue
        #[command(flatten)]
        file: ConfFile,
        /// The command
        #[command(subcommand)]
        verb: ctl::Verb,
    },
}

impl Cli {
    /// Returns the log level for stderr. `None` means that the environment (`RUST_LOG`) sets the
    /// level, with warnings as the default.
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

    /// Runs the command that the arguments name.
    ///
    /// # Errors
    /// The reason why the command failed, with the exit code for it.
    pub fn run(&self) -> Result<Exit, Failure> {
        match &self.command {
            Command::Check { file, urls, json } => check::run(file, urls, *json),
            Command::Audit(options) => audit::run(options),
            Command::Report(options) => report::run(options),
            Command::Crawl(asked) => crawl::run(asked),
            #[cfg(feature = "control")]
            Command::Ctl { job, verb } => ctl::run(job, verb),
            #[cfg(feature = "control")]
            Command::Status { job, watch, json } => status::run(job, *watch, *json),
            #[cfg(feature = "cluster")]
            Command::Cluster { verb } => match verb {
                ClusterVerb::Status { file, json } => cluster::status::run(file, *json),
                #[cfg(feature = "control")]
                ClusterVerb::Ctl { file, verb } => cluster::ctl::run(file, verb),
            },
            Command::Wacz { job, out } => wacz::run(job, out.as_deref()),
            Command::Why { job, url, json } => why::run(job, url, *json),
            Command::Key { verb } => key::run(verb),
            Command::Completions { shell } => completions(*shell),
            Command::Study(command) => command.run(),
        }
    }
}

/// Prints the completions of a shell.
fn completions(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sted", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Finished)
}

/// Writes a result to stdout. A reader that has closed it has read enough: `sted check x | head`.
///
/// # Errors
/// Stdout can't be written to.
fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Disk, format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
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
