//! The commands of the study on the command line, and which module runs each.

use super::{cache, compare, profile, serve};
use crate::commands::{Exit, Failure};
use clap::Subcommand;
use std::path::PathBuf;

/// Commands of the study.
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

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// What kept the command from finishing, with its exit code.
    pub fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Cache(asked) => cache::run(asked),
            Self::Compare { conf } => compare::run(conf),
            Self::Profile { conf, flame } => profile::run(conf, *flame),
            Self::Web { conf, ports } => serve::run(conf, *ports),
        }
    }
}
