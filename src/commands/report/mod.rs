//! `sted report`: what a crawl fetched, what it did not, and why, from its crawl log.
//!
//! `collect` reads the log once, in bounded memory. `tables` arranges the figures as tables, which
//! `text`, `csv` and `html` format.
//!
//! Cost: some microseconds a line; 64 MiB, and for each host about 700 bytes: some 180,000 hosts in
//! 256 MiB. Hosts beyond that share a row.

mod collect;
mod csv;
mod hosts;
mod html;
mod known;
mod plot;
mod seeds;
mod series;
mod sketch;
mod tables;
mod tally;
mod text;
mod top;
mod uses;

use super::{Exit, Failure, load};
use clap::ValueEnum;
use collect::Report;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tables::Table;

/// What `sted report --help` says after its options.
pub(super) const HELP: &str = "Tables: totals, runs, hosts, domains, types, statuses, outcomes, \
seeds, largest, slowest,
cut, robots, consent, annotations, time.

`pages` are final replies that are no redirect and no robots.txt. `failed` are tries without a
reply that could be used. `denied` are URLs that robots.txt forbids. Durations are within 5%.

A CSV file has a header, plain numbers with their unit in the column's name, and times in UTC. A
text that a spreadsheet would take for a formula has a ' before it.

Examples:
  sted report jobs/crawl
  sted report jobs/crawl --format html --out report.html
  sted report jobs/crawl --format csv --out report/        one file for each table
  sted report jobs/crawl --format csv --table hosts > hosts.csv

Exit codes:
   0  the report was written
   2  the command line or the configuration is wrong
   3  a file could not be read or written
   5  there is no crawl log";

/// The number of rows of a table in a text, and of replies that are listed as the largest.
const TEXT_ROWS: usize = 20;
/// The number of rows of a table on a page.
const HTML_ROWS: usize = 500;

/// The form of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: the first rows of each table.
    #[default]
    Text,
    /// For programs: all rows of one table, or of each table in a file of its own.
    Csv,
    /// A page with plots and the first rows of each table.
    Html,
}

/// The arguments of `sted report`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Jobs: their directories, their configurations, or files of crawl logs
    #[arg(required = true)]
    pub jobs: Vec<PathBuf>,
    /// The form of the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Only these tables
    #[arg(long = "table", value_name = "TABLE", value_parser = tables::names())]
    pub tables: Vec<String>,
    /// Write the result to this file instead of stdout; with CSV, the tables to this directory
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// The rows of each table in a text [default: 20] or on a page [default: 500]
    #[arg(long, value_name = "ROWS")]
    pub top: Option<usize>,
    /// The memory that may be used, in MiB; hosts beyond it share a row
    #[arg(long, default_value_t = 256, value_name = "MIB")]
    pub memory: u64,
}

/// Reports on jobs.
///
/// # Errors
/// A file can't be read or written, or there is no crawl log.
pub(super) fn run(options: &Options) -> Result<Exit, Failure> {
    let tables: Vec<&Table> = tables::ALL
        .iter()
        .filter(|table| {
            options.tables.is_empty() || options.tables.iter().any(|it| it == table.name)
        })
        .collect();
    let is_one = tables.len() == 1;
    if options.format == Format::Csv && options.out.is_none() && !is_one {
        let text = "report: CSV has one table a file: name a directory with --out, or one table \
                    with --table";
        return Err(Failure::new(Exit::Usage, text));
    }
    let mut reports = Vec::new();
    for job in &options.jobs {
        reports.push(report(job, options)?);
    }
    let top = options.top.unwrap_or(match options.format {
        Format::Html => HTML_ROWS,
        Format::Text | Format::Csv => TEXT_ROWS,
    });
    let out = options.out.as_deref();
    match (options.format, out) {
        (Format::Csv, Some(folder)) if !is_one || folder.is_dir() => {
            fs::create_dir_all(folder).map_err(|error| Failure::of_file(folder, &error))?;
            for table in tables {
                let path = folder.join(format!("{}.csv", table.name));
                write(Some(&path), |out| csv::write(out, &reports, table))?;
            }
        }
        (Format::Csv, _) => write(out, |out| csv::write(out, &reports, tables[0]))?,
        (Format::Text, _) => write(out, |out| text::write(out, &reports, &tables, top))?,
        (Format::Html, _) => write(out, |out| html::write(out, &reports, &tables, top))?,
    }
    Ok(Exit::Finished)
}

/// Reads one job.
fn report(job: &Path, options: &Options) -> Result<Report, Failure> {
    let is_conf = job.is_file() && job.extension().is_some_and(|ending| ending == "toml");
    let folder = if is_conf { load(job)?.job.directory } else { job.to_owned() };
    let memory = usize::try_from(options.memory << 20).unwrap_or(usize::MAX);
    let top = options.top.unwrap_or(TEXT_ROWS);
    let report =
        Report::of(&folder, memory, top).map_err(|error| Failure::of_file(&folder, &error))?;
    if report.lines.all == report.lines.illegible {
        let text = format!("{}: there is no crawl log", folder.display());
        return Err(Failure::new(Exit::Job, text));
    }
    Ok(report)
}

/// Writes a result to a file, or to stdout.
fn write(
    path: Option<&Path>,
    result: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let name = path.unwrap_or(Path::new("stdout"));
    let written = match path {
        Some(path) => File::create(path).and_then(|file| {
            let mut file = BufWriter::new(file);
            result(&mut file)?;
            file.flush()
        }),
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            result(&mut out).and_then(|()| out.flush())
        }
    };
    match written {
        // A reader such as `head` has read enough.
        Err(error) if path.is_none() && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::of_file(name, &error)),
    }
}
