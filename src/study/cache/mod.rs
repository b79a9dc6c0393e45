//! `sted cache`: measures which hit rates a cache of known URLs would have had in a traced crawl.
//!
//! `read` converts a trace to streams of consecutive numbers, `policy` replays them (`stack` for
//! LRU, `min` for MIN, the crawler's own cache for CLOCK and RANDOM), `study` collects the misses,
//! `reading` and `agree` interpret them, `show`, `curves` and `files` make tables and figures.
//!
//! One trace is in memory at a time. Cost: 8 bytes a link (12 if it leads to another process), 20
//! to 80 a URL; measured: 27 bytes a link of a trace in which one in five is new; 70 million links
//! take 1.8 GiB. Time: some 35 replays of each stream, 15 to 60 ns a link each.

#![expect(clippy::disallowed_methods, reason = "commands open the files their arguments name")]

mod agree;
mod curves;
mod files;
mod min;
mod misses;
mod policy;
mod read;
mod reading;
mod show;
mod stack;
mod stream;
mod study;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod textbook;
mod watch;

use crate::commands::{Exit, Failure};
use crate::study::output;

use clap::Args;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread;
use study::{Curves, Study};
use watch::Watch;

/// The exit codes of this command, for its help.
pub(crate) const EXITS: &str = "Exit codes:
   0  the traces are replayed, and the results are written
   2  the command line is wrong, or a file is no trace
   3  the results could not be written
   4  the system refused what the work needs
  11  stopped by a signal: no results were written";

/// The arguments of the command.
#[derive(Args, Clone, Debug)]
pub struct Asked {
    /// Traces of crawls: the file "trace" of a job, or a trace of `sted compare`
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    /// Folder of the report [default: "cache" beside the first trace]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Processes over which hosts are distributed, for the links from one to another
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = numbers(1..=65_536))]
    pub processes: u64,
    /// Entries of the cache that is shown over time, a power of two [default: the size that
    /// suffices]
    #[arg(long, value_name = "ENTRIES", value_parser = power_of_two)]
    pub size: Option<u64>,
    /// Use the first LINKS links of each trace only
    #[arg(long, value_name = "LINKS", value_parser = numbers(1..=LINKS_MAX))]
    pub links_max: Option<u64>,
    /// Simultaneous replays [default: one per core]
    #[arg(long, value_name = "N", value_parser = numbers(1..=1_024))]
    pub threads: Option<u64>,
}

/// The most links of a trace: they are counted in 32 bits, and pages are read whole.
const LINKS_MAX: u64 = 4_000_000_000;

fn numbers(range: RangeInclusive<u64>) -> clap::builder::RangedU64ValueParser {
    clap::builder::RangedU64ValueParser::new().range(range)
}

fn power_of_two(text: &str) -> Result<u64, String> {
    let entries: u64 = text.replace('_', "").parse().map_err(|_| "not a number".to_owned())?;
    if entries.is_power_of_two() { Ok(entries) } else { Err("not a power of two".to_owned()) }
}

impl Asked {
    /// Returns the level that is shown over time: the one asked for, but at most the largest there
    /// is.
    fn level(&self, curves: &Curves) -> usize {
        let asked = self.size.map(|entries| entries.trailing_zeros() as usize);
        asked.unwrap_or_else(|| reading::Reading::of(curves).enough).min(curves.levels() - 1)
    }

    /// Returns the folder of the report.
    fn directory(&self) -> PathBuf {
        let beside = || self.traces[0].parent().unwrap_or(Path::new("")).join("cache");
        self.out.clone().unwrap_or_else(beside)
    }
}

/// Replays the traces that `asked` names and writes the report.
///
/// # Errors
/// What kept it from finishing, with its exit code.
pub fn run(asked: &Asked) -> Result<Exit, Failure> {
    let directory = asked.directory();
    asked.traces.iter().try_for_each(|path| read::look(path))?;
    fs::create_dir_all(&directory).map_err(|error| output::failed(&directory, &error))?;
    let watch = Watch::new();
    let studies = thread::scope(|scope| {
        let worker = scope.spawn(|| studies(asked, &watch));
        let watched = watch.until(|| worker.is_finished());
        watched.map_err(|error| Failure::new(Exit::System, error))?;
        worker.join().expect("a replay panicked")
    })?;
    files::write(&directory, &studies, asked)?;
    let text = show::text(&studies, asked, &directory.join("report.html"));
    // An error means that the reader has closed standard output.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(Exit::Finished)
}

/// Reads and studies all traces, one after the other.
fn studies(asked: &Asked, watch: &Watch) -> Result<Vec<Study>, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let asked_for = asked.threads.and_then(|threads| usize::try_from(threads).ok());
    let threads = asked_for.unwrap_or(cores);
    let links_max = asked.links_max.unwrap_or(LINKS_MAX);
    let names = names(&asked.traces);
    let studies = asked.traces.iter().zip(names).map(|(path, name)| {
        let traced = read::read(path, asked.processes, links_max, watch)?;
        Ok(Study::of(&name, &traced, threads, watch))
    });
    studies.collect()
}

/// Returns a name for each trace: that of its file or, if the file is called `trace` as in every
/// job, that of its job. Names have only letters that every file system accepts, and no two are
/// equal.
fn names(traces: &[PathBuf]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default();
        let job = path.parent().and_then(Path::file_name).filter(|_| stem == "trace");
        let name = job.unwrap_or(stem).to_string_lossy();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let free = (1..).map(|number| match number {
            1 => plain.clone(),
            number => format!("{plain}-{number}"),
        });
        let free = free.into_iter().find(|name| !taken.contains(name));
        let free = free.expect("numbers don't end");
        taken.insert(free.clone());
        free
    };
    traces.iter().map(name).collect()
}
