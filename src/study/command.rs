//! The study's commands on the command line, and the module that runs each.

use super::{cache, compare, profile, serve};
use crate::commands::{ConfFile, Exit, Failure};
use clap::Subcommand;

/// The commands of the study.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure which hit rate a cache of known URLs would have
    ///
    /// Replays the stream of URLs that a crawl found (job.trace or compare.trace = true) through
    /// caches of 1, 2, 4... entries under six policies: INFINITE, MIN (which knows the future),
    /// LRU, CLOCK, RANDOM, STATIC; first with all links, then with those that would go to another
    /// process. Reports where the miss rate falls and which size suffices. With several traces it
    /// shows whether the entries per connection decide. Prints tables; writes a report (HTML),
    /// curves (SVG) and all numbers (CSV).
    ///
    /// Example: sted cache jobs/crawl/trace
    #[command(after_long_help = cache::EXITS)]
    Cache(cache::Asked),
    /// Compare policies on the same web
    ///
    /// Crawls the synthetic web that the file describes under each policy and, if the file asks for
    /// it, with several variants, values and seeds: in simulation, on a virtual clock, or over real
    /// sockets. Prints a summary; writes a report (HTML), curves (SVG) and all samples (CSV) to the
    /// comparison's directory. Sends no request to any other machine.
    ///
    /// Example: sted compare conf/compare-2003.toml
    #[command(after_long_help = compare::EXITS)]
    Compare(ConfFile),
    /// Measure at how many connections a core saturates, and what its time is spent on
    ///
    /// Crawls the same web (that of the file's lab, or the seeds of its job) with increasing
    /// numbers of open connections. Reports for each the pages per second, how busy the core was,
    /// and with what; names the number above which more connections bring no more pages. Prints a
    /// table and a verdict; writes a report (HTML), figures (SVG) and all numbers (CSV) to the
    /// profile's directory.
    ///
    /// Example: sted profile --flame conf/profile-lab.toml
    #[command(after_long_help = profile::EXITS)]
    Profile {
        /// The configuration, with a profile section.
        #[command(flatten)]
        conf: ConfFile,
        /// Crawl once more where the core is saturated, sampled by perf, and write a flame graph
        /// (flame.svg) to the profile's directory; where perf can't sample, the profile says why
        #[arg(long)]
        flame: bool,
    },
    /// Serve a synthetic web on this machine
    ///
    /// Serves the web that the file describes, with real sockets on 127.0.0.0/8 and its own name
    /// server, to any crawler. Prints one line of JSON when it is ready, with its name server and
    /// its seeds. Serves until SIGINT, SIGTERM, or the end of standard input; then prints the
    /// totals of what was served.
    ///
    /// Example: sted web conf/lab.toml
    #[command(after_long_help = Exit::table())]
    Web {
        /// The configuration, with a lab section.
        #[command(flatten)]
        conf: ConfFile,
        /// Ports for HTTP and HTTPS [default: two free ones]
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
            Self::Compare(conf) => compare::run(conf),
            Self::Profile { conf, flame } => profile::run(conf, *flame),
            Self::Web { conf, ports } => serve::run(conf, *ports),
        }
    }
}
