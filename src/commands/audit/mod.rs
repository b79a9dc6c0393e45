//! `sted audit`: checks from the crawl log whether a crawl kept its promises to servers.
//!
//! The log has the times of every request, and the robots.txt files are in the archive or in the
//! log. The arithmetic is that of `books`, which shares no code with the scheduler: rests, requests
//! at once, requests a day. The rules of robots.txt are parsed and matched by `robots`, as in the
//! crawl.
//!
//! A log is read once, from its oldest part to its newest. Missing lines are noticed by their
//! numbers. The logs of several nodes of one crawl are read at once and merged by time.
//!
//! Cost: some microseconds a line, 40 MiB for the lines that are being sorted, and for each server
//! about 700 bytes, its names, and its rules: some 170,000 servers in 256 MiB. More are counted,
//! not audited. Several nodes share a quarter of the memory for sorting, and each further one takes
//! 1 MiB; that quarter holds 280,000 lines in 256 MiB.

mod archive;
mod books;
mod clocks;
mod crowd;
mod csv;
mod html;
mod job;
mod lines;
mod order;
mod promises;
mod robots;
mod rows;
mod text;

use super::crawl_log::host_of;
use super::{Exit, Failure, print};
use crate::conf::duration;
use crate::ground::map::Map;
use books::{Books, Breach};
use clap::{Args, ValueEnum};
use clocks::Clocks;
use job::Job;
use order::{Event, Place};
use rows::Kind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// The exit codes of `sted audit`, for its help text.
pub(super) const HELP: &str =
    "How to read it: `gap` is the time from the end of a visit to the next
visit, and `owed` is what was promised, computed from the times in the log, the settings,
robots.txt and Retry-After. `at once` is the largest number of requests in progress. A broken
promise is listed with the file and the line of the request that broke it. `cannot tell` means
that nothing is wrong in what is there, but lines or robots.txt files are missing.

With --cluster, name the jobs of all nodes of a crawl. Each promise is then checked over all logs:
a server, a host or a domain rests whoever made the last visit; a node that takes a domain over
waits delay_max; visits to an address keep the cap and the rest of conf.toml over all nodes. A
request that a node had decided on before it was stopped reaches its server late; the log shows
a visit that ended after another node had begun its own. At most one such visit for each server
and change of owner is allowed, and counted as `late`.

Exit codes:
   0  polite: every promise was kept
   2  the command line or the configuration is wrong
   3  a file could not be read or written
  20  not polite: a promise was broken
  21  no verdict, because something is missing";

/// The largest number of findings that are listed.
const FINDINGS_MAX: usize = 20;
/// The approximate number of bytes that a server takes, with its host, domain and address.
const SERVER_BYTES: usize = 700;
/// The number of bytes that an audit takes without any server, mostly for sorting.
const RESERVED_BYTES: usize = 40 << 20;
/// The numbers of events of a job that are held to be sorted, and the bytes that each takes while
/// it is.
const HELD_MAX: usize = 1 << 18;
const HELD_MIN: usize = 1 << 12;
const HELD_BYTES: usize = 120;

/// The form of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The verdict and what it rests on, for people.
    #[default]
    Text,
    /// One row for each server, host, address and domain.
    Csv,
    /// A page with the verdict and the rows.
    Html,
}

/// What an audit found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Polite,
    CannotTell,
    NotPolite,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Polite => "polite",
            Self::CannotTell => "cannot tell",
            Self::NotPolite => "not polite",
        }
    }
}

/// The arguments of `sted audit`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Job directories, or files of crawl logs
    #[arg(required = true)]
    jobs: Vec<PathBuf>,
    /// Audit the jobs as the nodes of one crawl: each promise is checked over all of their logs
    #[arg(long)]
    cluster: bool,
    /// How far the calendars of two nodes may be apart
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = duration)]
    #[arg(requires = "cluster")]
    clock_skew: Duration,
    /// The form of the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write the result to this file instead of stdout
    #[arg(long)]
    out: Option<PathBuf>,
    /// The memory that may be used, in MiB; servers beyond it are counted, not audited
    #[arg(long, default_value_t = 256, value_name = "MIB")]
    memory: u64,
}

/// Audits the jobs, and writes the result to a file, or to stdout.
///
/// # Errors
/// A file can't be read or written, or two jobs of a cluster are the same.
pub(super) fn run(options: &Options) -> Result<Exit, Failure> {
    let memory = usize::try_from(options.memory << 20).unwrap_or(usize::MAX);
    let size = if options.cluster { options.jobs.len() } else { 1 };
    let audits = options.jobs.chunks(size).map(|jobs| audit(jobs, memory, options.clock_skew));
    let audits: Vec<Audit> = audits.collect::<Result<_, _>>()?;
    let result = match options.format {
        Format::Text => audits.iter().map(text::of).collect::<Vec<_>>().join("\n"),
        Format::Csv => csv::of(&audits),
        Format::Html => html::of(&audits),
    };
    match &options.out {
        Some(path) => fs::write(path, result).map_err(|error| Failure::of_file(path, &error))?,
        None => print(&result)?,
    }
    let worst = audits.iter().map(Audit::verdict).max().unwrap_or(Verdict::CannotTell);
    Ok(match worst {
        Verdict::Polite => Exit::Finished,
        Verdict::CannotTell => Exit::Unproven,
        Verdict::NotPolite => Exit::Impolite,
    })
}

/// Audits one crawl: a job, or several that are its nodes, each given by its directory or by a file
/// of its log. The calendars of two nodes are at most `skew` apart.
fn audit(jobs: &[PathBuf], memory: usize, skew: Duration) -> Result<Audit, Failure> {
    refuse_repeats(jobs)?;
    let mut audit = Audit::open(jobs, memory, skew)?;
    let mut heads = BinaryHeap::new();
    let advance = |audit: &mut Audit, heads: &mut BinaryHeap<_>, job: usize| {
        audit.read(job).map_err(|error| Failure::of_file(&jobs[job], &error))?;
        let first = audit.jobs[job].order.first();
        heads.extend(first.map(|event| Reverse((event.calendar(), job))));
        Ok::<_, Failure>(())
    };
    for job in 0..jobs.len() {
        advance(&mut audit, &mut heads, job)?;
        audit.refuse_same_log(job)?;
    }
    while let Some(Reverse((_, job))) = heads.pop() {
        if let Some(event) = audit.jobs[job].order.pop() {
            audit.account(job, &event);
        }
        advance(&mut audit, &mut heads, job)?;
    }
    Ok(audit)
}

/// Refuses a job that is named twice.
fn refuse_repeats(jobs: &[PathBuf]) -> Result<(), Failure> {
    let mut places = Vec::new();
    for job in jobs {
        let place = fs::canonicalize(job).map_err(|error| Failure::of_file(job, &error))?;
        if places.contains(&place) {
            let text = format!("{}: is the same job as one before it", job.display());
            return Err(Failure::new(Exit::Usage, text));
        }
        places.push(place);
    }
    Ok(())
}

/// Returns the number of a node, which is that of its job.
fn node_of(job: usize) -> u32 {
    u32::try_from(job).expect("fewer than 2^32 jobs")
}

/// Names with their numbers.
#[derive(Debug, Default)]
struct Names {
    numbers: Map<Rc<str>, u32>,
    list: Vec<Rc<str>>,
}

impl Names {
    /// Returns the number of a name, and whether it is new.
    fn number(&mut self, name: &str) -> (u32, bool) {
        if let Some(number) = self.numbers.get(name) {
            return (*number, false);
        }
        let number = u32::try_from(self.list.len()).expect("memory ends before");
        let name: Rc<str> = name.into();
        self.numbers.insert(Rc::clone(&name), number);
        self.list.push(name);
        (number, true)
    }
}

/// A broken promise, with the place of the request that broke it.
#[derive(Debug)]
struct Finding {
    text: String,
    job: usize,
    place: Place,
}

/// The first broken promises, and the number of all.
#[derive(Debug, Default)]
struct Findings {
    list: Vec<Finding>,
    total: u64,
}

/// The audit of one crawl.
struct Audit {
    /// Its nodes, or its only job.
    jobs: Vec<Job>,
    skew: Duration,
    books: Books,
    /// The names by [`Kind`].
    names: [Names; 4],
    memory_left: usize,
    findings: Findings,
    counts: Counts,
    /// The line that is being read.
    line: Vec<u8>,
}

/// What has been counted.
#[derive(Debug, Default)]
struct Counts {
    lines: u64,
    /// Lines that are not of a crawl log, or of format 1.
    illegible: u64,
    old: u64,
    requests: u64,
    failed_connects: u64,
    /// Requests whose URL was checked against robots.txt, and those that could not be.
    checked: u64,
    unchecked: u64,
    /// The first URL that could not be checked.
    first_unchecked: Option<String>,
    disallowed: u64,
    /// Lines of servers for which there is no memory.
    left_out: u64,
    first: Option<u64>,
    last: u64,
}

impl Audit {
    fn open(paths: &[PathBuf], memory: usize, skew: Duration) -> Result<Self, Failure> {
        let nodes = paths.len();
        let (held_max, reserved) = match nodes {
            1 => (HELD_MAX, RESERVED_BYTES),
            _ => {
                let all = (memory / 4).max(RESERVED_BYTES);
                let held = all / nodes / HELD_BYTES;
                (held.clamp(HELD_MIN, HELD_MAX), all.saturating_add(nodes << 20))
            }
        };
        let left = memory.saturating_sub(reserved);
        let open = |path: &PathBuf| {
            Job::open(path, left / 3 / nodes, held_max)
                .map_err(|error| Failure::of_file(path, &error))
        };
        let skew_us = u64::try_from(skew.as_micros()).unwrap_or(u64::MAX);
        let mut audit = Self {
            jobs: paths.iter().map(open).collect::<Result<_, _>>()?,
            skew,
            books: Books::new(Clocks::new(nodes, skew_us)),
            names: Default::default(),
            memory_left: left / 3 * 2,
            findings: Findings::default(),
            counts: Counts::default(),
            line: Vec::new(),
        };
        if audit.is_shared() {
            audit.books.whole = audit.whole();
        }
        Ok(audit)
    }

    /// Returns whether several nodes are audited.
    fn is_shared(&self) -> bool {
        self.jobs.len() > 1
    }

    /// Returns what names the audit: the job, or the number of nodes.
    fn title(&self) -> String {
        match &self.jobs[..] {
            [job] => job.name(),
            jobs => format!("{} nodes", jobs.len()),
        }
    }

    /// Refuses a job whose log begins with the same request as that of a job before it.
    fn refuse_same_log(&self, job: usize) -> Result<(), Failure> {
        let (before, own) = (&self.jobs[..job], &self.jobs[job]);
        let same = before.iter().find(|other| other.first.is_some() && other.first == own.first);
        same.map_or(Ok(()), |same| {
            let text = format!("{}: has the log of the same node as {}", own.name(), same.name());
            Err(Failure::new(Exit::Usage, text))
        })
    }

    fn find(&mut self, finding: Finding) {
        self.findings.total += 1;
        if self.findings.list.len() < FINDINGS_MAX {
            self.findings.list.push(finding);
        }
    }

    /// Takes an event in the order of time.
    fn account(&mut self, job: usize, event: &Event) {
        let mut breaches = Vec::new();
        self.books.take(event, &mut |breach| breaches.push(breach));
        for breach in breaches {
            let text = self.describe(event, breach);
            self.find(Finding { text, job, place: event.place });
        }
    }

    fn describe(&self, event: &Event, breach: Breach) -> String {
        let (host, domain) = self.books.groups[event.server as usize];
        let (kind, index) = match breach.kind() {
            Kind::Server => (Kind::Server, event.server),
            Kind::Host => (Kind::Host, host),
            Kind::Address => (Kind::Address, event.address),
            Kind::Domain => (Kind::Domain, domain),
        };
        let name = &self.names[kind as usize].list[index as usize];
        let (kind, seconds) = (kind.name(), text::seconds);
        match breach {
            Breach::Overlap => format!("server {name} was visited before its last visit had ended"),
            Breach::Gap { gap, owed, .. } => {
                let (gap, owed) = (seconds(gap), seconds(owed));
                format!("{kind} {name} was visited after {gap}, but {owed} were owed")
            }
            Breach::AtOnce { visits, most, .. } => {
                format!("{kind} {name} had {visits} visits at once; {most} are allowed")
            }
            Breach::Takeover { other, gap, owed } => format!(
                "{kind} {name} was asked {} after {} had asked it, but a node that takes over \
                 waits {}",
                seconds(gap),
                self.jobs[other as usize].name(),
                seconds(owed)
            ),
            Breach::Crowd { visits, time, delay } => format!(
                "{kind} {name} had {visits} visits of all nodes in {}, but its rest is {}",
                seconds(time),
                seconds(delay)
            ),
        }
    }

    fn verdict(&self) -> Verdict {
        match () {
            () if self.findings.total > 0 => Verdict::NotPolite,
            () if !self.doubts().is_empty() => Verdict::CannotTell,
            () => Verdict::Polite,
        }
    }

    /// Returns why the log doesn't prove that the crawl was polite, one sentence each.
    fn doubts(&self) -> Vec<String> {
        let (counts, tally) = (&self.counts, &self.books.tally);
        let lines = |of: &dyn Fn(&Job) -> u64| self.jobs.iter().map(of).sum::<u64>();
        let mut doubts = Vec::new();
        let mut doubt = |number: u64, text: &str| {
            if number > 0 {
                doubts.push(format!("{number} {text}"));
            }
        };
        doubt(counts.old, "lines are of format 1, which doesn't show when replies ended");
        doubt(counts.illegible, "lines can't be read");
        doubt(lines(&|job| job.sequence.missing()), "lines are missing");
        let unlisted = lines(&|job| job.sequence.unlisted);
        doubt(unlisted, "further places where lines are missing");
        let moved = lines(&|job| job.sequence.moved.map_or(0, |(_, lines)| lines));
        doubt(moved, "lines are out of order");
        doubt(tally.disordered, "visits have times that contradict their numbers");
        doubt(lines(&|job| job.order.late), "lines were written too late to be sorted");
        doubt(tally.set_back, "visits came after the calendar was set back");
        doubt(counts.unchecked, "requests can't be checked against robots.txt");
        doubt(counts.left_out, "lines are of servers beyond --memory");
        if let Some(url) = &counts.first_unchecked {
            doubts.push(format!("  the first of them is {url}"));
        }
        let has_promises = |job| self.books.has_promises(node_of(job));
        if counts.requests > 0 && !(0..self.jobs.len()).any(has_promises) {
            doubts.push("neither the log nor conf.toml says what was promised".to_owned());
        }
        if self.is_shared() && self.books.whole.is_none() {
            doubts.push("a job has no conf.toml, so the pace of addresses isn't known".to_owned());
        }
        let empty = self.jobs.iter().filter(|job| job.sequence.runs == 0);
        for job in empty.filter(|_| self.is_shared()) {
            doubts.push(format!("the log of {} is missing or empty", job.name()));
        }
        if counts.lines == 0 {
            doubts.push("there is no crawl log".to_owned());
        }
        doubts
    }
}
