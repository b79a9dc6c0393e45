//! Collects the figures of a job from its crawl log, line by line.
//!
//! Laws: the rows of hosts, statuses, outcomes and intervals add up to the totals; a line that is
//! there twice, and a reply that was read back after its line was written, count once.

use super::hosts::{Hosts, Row};
use super::known::{Known, fingerprint};
use super::seeds::Seeds;
use super::series::{Interval, Series};
use super::tally::Tally;
use super::top::Top;
use crate::commands::crawl_log::{self, Line, Place, Sequence};
use crate::commands::{Failure, load, show};
use crate::conf::Conf;
use std::io;
use std::path::Path;

/// The number of bytes that a report takes without any host or seed.
const RESERVED_BYTES: usize = 64 << 20;
/// The most runs with a row of their own; later ones are added to the last.
const RUNS_MAX: usize = 5_000;

/// The figures of a run.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// When it began, in microseconds since 1970; 0 if the log doesn't say it.
    pub(super) began: u64,
    pub(super) lines: u64,
    pub(super) row: Row,
}

/// The runs of a job, in the order of the log.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// The first [`RUNS_MAX`] of them.
    pub(super) list: Vec<Run>,
    /// The number of the others, which are part of the last row.
    pub(super) beyond: u64,
    /// When the run of the last line began.
    began: u64,
}

impl Runs {
    /// Returns the row of the run of the next line, which began at `began`.
    fn row(&mut self, began: u64) -> &mut Run {
        if self.list.is_empty() || self.began != began {
            self.began = began;
            match self.list.len() < RUNS_MAX {
                true => self.list.push(Run { began, ..Run::default() }),
                false => self.beyond += 1,
            }
        }
        self.list.last_mut().expect("there is one")
    }

    pub(super) fn count(&self) -> u64 {
        self.list.len() as u64 + self.beyond
    }
}

/// Sums by name.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    /// Pages by media type.
    pub(super) types: Tally,
    /// Replies by status.
    pub(super) statuses: Tally,
    pub(super) outcomes: Tally,
    /// Lines by annotation; those with a number of tries count as `tries`.
    pub(super) annotations: Tally,
    /// Lines by annotation, without those of tries that another one follows or that failed.
    pub(super) kept: Tally,
    /// Requests for robots.txt files by the first digit of the status; at 0 those that failed.
    pub(super) robots: [u64; 6],
}

/// Numbers of lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    sequence: Sequence,
    pub(super) all: u64,
    /// Lines that are not of a crawl log, and lines of format 1.
    pub(super) illegible: u64,
    pub(super) old: u64,
    /// Replies that were read back from the archive, and those among them that have a line of their
    /// own from before.
    pub(super) replayed: u64,
    pub(super) logged_twice: u64,
    /// Connections that could not be established.
    pub(super) unconnected: u64,
}

/// The report of one job.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) job: String,
    /// The configuration of the last run, or why it can't be read.
    pub(super) conf: Result<Conf, Failure>,
    pub(super) lines: Lines,
    pub(super) runs: Runs,
    /// The figures of the whole job.
    pub(super) total: Row,
    pub(super) hosts: Hosts,
    pub(super) seeds: Seeds,
    pub(super) tallies: Tallies,
    /// The largest replies, and the slowest.
    pub(super) most: [Top; 2],
    pub(super) series: Series,
    pub(super) known: Known,
}

/// What a line counts as.
struct Kind {
    is_page: bool,
    is_failed: bool,
    is_denied: bool,
    /// The length of the reply that was received.
    bytes: u64,
}

impl Kind {
    fn of(line: &Line<'_>, outcome: &str) -> Self {
        let is_followed = line.is_followed();
        let is_cut = outcome == "body-too-large";
        let is_reply = (line.status > 0 && !is_followed) || is_cut;
        Self {
            is_page: is_reply && !line.is_for_robots() && !line.has("retried"),
            is_failed: (matches!(line.status, -5..=-1) && !is_cut)
                || matches!(outcome, "forbidden-address" | "challenged"),
            is_denied: matches!(line.status, -9_998 | -61),
            bytes: line.size.unwrap_or(0),
        }
    }

    /// Returns the first digit of the status of a reply, or 0 for a failed try; `None` if the line
    /// is neither.
    fn class(&self, status: i32) -> Option<usize> {
        match status {
            100..=599 => usize::try_from(status / 100).ok(),
            600.. => Some(5),
            _ => self.is_failed.then_some(0),
        }
    }
}

impl Report {
    /// Reads a job, given by its directory or by a file of its log. `memory` is what hosts and
    /// seeds may take with all else, in bytes, and `top` the number of largest replies.
    ///
    /// # Errors
    /// A file can't be read.
    pub(super) fn of(job: &Path, memory: usize, top: usize) -> io::Result<Self> {
        let folder = if job.is_dir() { job } else { job.parent().unwrap_or(job) };
        let left = memory.saturating_sub(RESERVED_BYTES);
        let mut report = Self {
            job: job.display().to_string(),
            conf: load(&folder.join("conf.toml")),
            lines: Lines::default(),
            runs: Runs::default(),
            total: Row::default(),
            hosts: Hosts::new(left / 4 * 3),
            seeds: Seeds::new(left / 4),
            tallies: Tallies::default(),
            most: [Top::new(top), Top::new(top)],
            series: Series::default(),
            known: Known::default(),
        };
        if let Ok(conf) = &report.conf {
            report.seeds.read(folder, conf);
        }
        let mut line = Vec::new();
        for part in crawl_log::parts(job)? {
            let mut file = crawl_log::open(&part)?;
            while crawl_log::read_line(&mut *file, &mut line)? {
                report.take(&line);
            }
        }
        Ok(report)
    }

    /// Takes the next line of the log.
    fn take(&mut self, bytes: &[u8]) {
        self.lines.all += 1;
        let Some(line) = Line::parse(bytes) else {
            self.lines.illegible += 1;
            return;
        };
        match (line.more.run, line.more.line) {
            (Some(run), Some(number)) => {
                if self.lines.sequence.take(run, number) == Place::Repeated {
                    return;
                }
            }
            _ => self.lines.old += 1,
        }
        if line.is_read_back() {
            self.lines.replayed += 1;
            if self.known.pages.has(fingerprint(line.url)) {
                self.lines.logged_twice += 1;
                return;
            }
        }
        let at = line.written();
        self.note_run(line.more.run.unwrap_or(0), at);
        self.count_annotations(&line);
        // Lines about the rules of a robots.txt are no tries.
        if line.status != 0 {
            self.take_try(&line, at);
        }
    }

    fn note_run(&mut self, began: u64, at: Option<u64>) {
        let run = self.runs.row(began);
        run.lines += 1;
        for row in [&mut run.row, &mut self.total] {
            at.into_iter().for_each(|at| row.note_time(at));
        }
    }

    fn count_annotations(&mut self, line: &Line<'_>) {
        let is_kept = line.status > 0 && !line.has("retried");
        for word in line.annotations.split(',').filter(|word| *word != "-") {
            let is_tries = word.strip_suffix('t').is_some_and(|tries| tries.parse::<u32>().is_ok());
            self.tallies.annotations.add(if is_tries { "tries" } else { word }, 0);
            if is_kept && !is_tries {
                self.tallies.kept.add(word, 0);
            }
        }
    }

    /// Takes a line that is about a try to fetch a URL, or about a URL that was not tried.
    fn take_try(&mut self, line: &Line<'_>, at: Option<u64>) {
        let outcome = match (line.more.reason.as_deref(), line.status) {
            (Some(reason), _) => reason,
            (None, 200..=299) => "ok",
            (None, 300..=399) => "redirect",
            (None, _) => "http-error",
        };
        let kind = Kind::of(line, outcome);
        let class = kind.class(line.status);
        self.count(line, &kind, at);
        self.tallies.outcomes.add(outcome, kind.bytes);
        if line.status > 0 {
            self.tallies.statuses.add(&line.status.to_string(), kind.bytes);
        }
        if kind.is_page {
            self.tallies.types.add(&media_type(line.mime), kind.bytes);
            self.known.pages.add(fingerprint(line.url));
        }
        if let Some(digest) = line.digest {
            self.known.payloads.add(fingerprint(digest));
        }
        let is_request = line.more.sent.is_some();
        self.lines.unconnected += u64::from(!is_request && line.more.address.is_some());
        if is_request && line.is_for_robots() {
            self.tallies.robots[class.unwrap_or(0)] += 1;
        }
        let facts = (line.url, line.status, line.mime);
        if is_request {
            self.most[0].add(kind.bytes, facts);
            line.took().into_iter().for_each(|took| self.most[1].add(took, facts));
        }
        if let Some(at) = at {
            let pages = u64::from(kind.is_page);
            let mut interval = Interval { pages, bytes: kind.bytes, ..Interval::default() };
            class.into_iter().for_each(|class| interval.by_class[class] = 1);
            self.series.add(at, &interval);
        }
        self.seeds.take(line, outcome);
    }

    /// Adds a line to the rows of its host, its run and the job.
    fn count(&mut self, line: &Line<'_>, kind: &Kind, at: Option<u64>) {
        let is_request = line.more.sent.is_some();
        let is_http_error = line.status >= 400;
        let change = |row: &mut Row| {
            row.requests += u64::from(is_request);
            row.pages += u64::from(kind.is_page);
            row.bytes += kind.bytes;
            row.http_errors += u64::from(is_http_error);
            row.failed += u64::from(kind.is_failed);
            row.denied += u64::from(kind.is_denied);
            if kind.is_page {
                row.uses.take(line);
            }
        };
        let took = line.took().filter(|_| is_request);
        self.hosts.change(line.host(), took, |row| {
            change(row);
            at.into_iter().for_each(|at| row.note_time(at));
        });
        let run = self.runs.list.last_mut().expect("its line was noted");
        for row in [&mut run.row, &mut self.total] {
            change(row);
            took.into_iter().for_each(|took| _ = row.took.add(took, true));
        }
    }

    /// Returns what is missing in the report, or less exact than it could be, one sentence each.
    pub(super) fn doubts(&self) -> Vec<String> {
        let (lines, sequence) = (&self.lines, &self.lines.sequence);
        let mut doubts = self.seeds.doubts.clone();
        let mut doubt = |number: u64, text: &str| {
            if number > 0 {
                doubts.push(format!("{} {text}", show::count(number)));
            }
        };
        doubt(lines.illegible, "lines can't be read");
        doubt(lines.old, "lines are of format 1, which doesn't show runs or missing lines");
        doubt(sequence.missing(), "lines are missing in the log");
        doubt(sequence.unlisted, "further places where lines are missing");
        doubt(sequence.repeated, "lines are there twice, and count once");
        doubt(self.runs.beyond, "runs have no row of their own: they are part of the last row");
        doubt(self.hosts.left_out, "lines are of hosts beyond --memory: they share one row");
        doubt(self.hosts.rounded, "durations are less exact, because --memory is used up");
        doubt(self.seeds.left_out, "seeds are beyond --memory, and not listed");
        if let Err(why) = &self.conf {
            let why = why.text.replace('\n', "; ");
            doubts.push(format!(
                "conf.toml can't be read, so seeds without a line are not listed, and limits are \
                 taken for the default ones: {why}"
            ));
        }
        doubts
    }
}

/// Returns the media type in lower case; `none` without one.
fn media_type(mime: &str) -> String {
    if mime == "-" { "none".to_owned() } else { mime.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::fs;

    fn doubts_of(log: &str, conf: &str) -> (Report, String) {
        let job = tempfile::tempdir().expect("a folder");
        fs::write(job.path().join("crawl.log"), log).expect("written");
        fs::write(job.path().join("conf.toml"), conf).expect("written");
        let report = Report::of(job.path(), 128 << 20, 20).expect("readable");
        let doubts = report.doubts().join("\n");
        (report, doubts)
    }

    /// Runs beyond those that are listed are counted and reported.
    #[test]
    fn runs_beyond_the_list_are_told() {
        let mut log = String::new();
        for run in 1..=RUNS_MAX + 3 {
            for line in 1..=2 {
                let _ = writeln!(
                    log,
                    "2026-11-20T09:38:49.123Z 200 5 http://a.test/{run} L - text/html #000 \
                     20261120093849078+45 - - - {{\"run\":{run},\"line\":{line},\
                     \"server\":\"http://a.test\",\"visit\":7,\"hops\":0}}"
                );
            }
        }
        let (report, doubts) = doubts_of(&log, "lab = {}");
        let last = report.runs.list.last().expect("a row");
        assert_eq!((report.runs.count(), last.lines), (RUNS_MAX as u64 + 3, 8));
        assert_eq!(doubts, "3 runs have no row of their own: they are part of the last row");
    }

    /// The mistakes of a configuration that can't be read are reported.
    #[test]
    fn mistakes_of_the_configuration_are_told() {
        let (_, doubts) = doubts_of("", "lab = {}\n[limits]\npages_max = 0\nbytes_max = 1");
        for says in ["conf.toml:3: limits.pages_max", "; ", "limits.bytes_max", "not listed"] {
            assert!(doubts.contains(says), "{says}: {doubts}");
        }
    }
}
