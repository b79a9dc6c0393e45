//! `sted audit`: checks from the crawl log whether a crawl kept its promises to servers.
//!
//! The log has the times of every request, and the robots.txt files are in the archive or in the
//! log. The arithmetic is that of `books`, which shares no code with the scheduler: rests, requests
//! at once, requests a day. The rules of robots.txt are parsed and matched by `robots`, as in the
//! crawl.
//!
//! A log is read once, from its oldest part to its newest. Missing lines are noticed by their
//! numbers.
//!
//! Cost: some microseconds a line, 40 MiB for the lines that are being sorted, and for each server
//! about 700 bytes, its names, and its rules: some 170,000 servers in 256 MiB. More are counted,
//! not audited.

mod archive;
mod books;
mod csv;
mod html;
mod order;
mod promises;
mod robots;
mod text;

use super::crawl_log::{self, Line, Place, Sequence, host_of};
use super::{Exit, Failure, load, print};
use crate::conf::Conf;
use crate::frontier::Rule;
use crate::ground::map::Map;
use crate::url::domain::registrable;
use archive::Archive;
use books::{Books, Breach, Kind};
use clap::ValueEnum;
use order::{Event, Order};
use robots::{Robots, Verdict as Allowed};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The exit codes of `sted audit`, for its help text.
pub(super) const HELP: &str =
    "How to read it: `gap` is the time from the end of a visit to the next
visit, and `owed` is what was promised, computed from the times in the log, the settings,
robots.txt and Retry-After. `at once` is the largest number of requests in progress. A broken
promise is listed with the file and the line of the request that broke it. `cannot tell` means
that nothing is wrong in what is there, but lines or robots.txt files are missing.

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

/// Audits the jobs, and writes the result to `out`, or to stdout.
///
/// # Errors
/// A file can't be read or written.
pub(super) fn run(
    jobs: &[PathBuf],
    format: Format,
    out: Option<&Path>,
    memory: u64,
) -> Result<Exit, Failure> {
    let mut audits = Vec::new();
    for job in jobs {
        let memory = usize::try_from(memory).unwrap_or(usize::MAX);
        audits.push(audit(job, memory).map_err(|error| Failure::of_file(job, &error))?);
    }
    let result = match format {
        Format::Text => audits.iter().map(text::of).collect::<Vec<_>>().join("\n"),
        Format::Csv => csv::of(&audits),
        Format::Html => html::of(&audits),
    };
    match out {
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

/// Audits one job, given by its directory or by a file of its log.
fn audit(job: &Path, memory: usize) -> io::Result<Audit> {
    let folder = if job.is_dir() { job } else { job.parent().unwrap_or(job) };
    let mut audit = Audit::new(job, folder, memory);
    if let Ok(conf) = load(&folder.join("conf.toml")) {
        audit.conf = Some(conf);
    }
    let mut line = Vec::new();
    for part in crawl_log::parts(job)? {
        let mut file = crawl_log::open(&part)?;
        audit.begin_file(&part);
        while crawl_log::read_line(&mut *file, &mut line)? {
            audit.take(&line);
        }
    }
    audit.end();
    Ok(audit)
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
    file: u16,
    line: u32,
}

/// The first broken promises, and the number of all.
#[derive(Debug, Default)]
struct Findings {
    list: Vec<Finding>,
    total: u64,
}

/// The files that were read, and the number of the line in the last of them.
#[derive(Debug, Default)]
struct Source {
    files: Vec<String>,
    line: u32,
}

/// The audit of one job.
#[derive(Debug)]
struct Audit {
    job: String,
    conf: Option<Conf>,
    source: Source,
    sequence: Sequence,
    order: Order,
    books: Books,
    robots: Robots,
    /// The names by [`Kind`].
    names: [Names; 4],
    memory_left: usize,
    /// How much later the calendar is than the clock of the run, in microseconds.
    drift: i64,
    findings: Findings,
    counts: Counts,
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
    fn new(job: &Path, folder: &Path, memory: usize) -> Self {
        let left = memory.saturating_sub(RESERVED_BYTES);
        Self {
            job: job.display().to_string(),
            conf: None,
            source: Source::default(),
            sequence: Sequence::default(),
            order: Order::default(),
            books: Books::default(),
            robots: Robots::new(Archive::new(folder.join("warc")), left / 3),
            names: Default::default(),
            memory_left: left / 3 * 2,
            drift: 0,
            findings: Findings::default(),
            counts: Counts::default(),
        }
    }

    fn begin_file(&mut self, path: &Path) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.source.files.push(name.unwrap_or_default());
        self.source.line = 0;
    }

    /// Takes the next line of the log.
    fn take(&mut self, bytes: &[u8]) {
        self.source.line += 1;
        self.counts.lines += 1;
        let Some(line) = Line::parse(bytes) else {
            self.counts.illegible += 1;
            return;
        };
        let (Some(run), Some(number)) = (line.more.run, line.more.line) else {
            self.counts.old += 1;
            return;
        };
        match self.sequence.take(run, number) {
            Place::Repeated => return,
            Place::NewRun => self.begin_run(run),
            Place::Next => {}
        }
        if let Some(settings) = &line.more.settings {
            self.promise(settings);
        } else if !self.books.has_promises() {
            self.promise_from_conf();
        }
        self.drift = line.drift().unwrap_or(self.drift);
        match self.server(&line.more.server) {
            Some(server) => self.take_of(server, &line),
            None => self.counts.left_out += 1,
        }
    }

    /// Takes a line that is about a server.
    fn take_of(&mut self, server: u32, line: &Line<'_>) {
        let (more, file) = (&line.more, self.source.files.len() - 1);
        let address = more.address.map(|ip| self.number(Kind::Address, &ip.to_string()));
        let Some(at) = more.sent.or(more.ended) else { return };
        let ended = more.ended.unwrap_or(at).max(at);
        let event = Event {
            at,
            ended,
            began: more.began.unwrap_or(0),
            owed: more.owed.unwrap_or(0),
            wait: more.retry_after.unwrap_or(0),
            server,
            address: address.unwrap_or(u32::MAX),
            visit: u32::try_from(more.visit).unwrap_or(u32::MAX),
            request: more.request.unwrap_or(1).max(1),
            line: self.source.line,
            file: u16::try_from(file).unwrap_or(u16::MAX),
            rule: rule_of(more.rule.as_deref()),
        };
        if more.sent.is_some() {
            self.counts.requests += 1;
            self.check_path(server, line, at);
        } else if address.is_some() {
            self.counts.failed_connects += 1;
        }
        if more.sent.is_some() || address.is_some() {
            self.counts.first = Some(self.counts.first.map_or(at, |first| first.min(at)));
            self.counts.last = self.counts.last.max(ended);
            self.push(event);
        }
        if self.robots.obeys
            && let Some(delay) = self.robots.take(server, line)
        {
            self.push(Event { at: ended, ended, owed: 0, wait: delay, request: 0, ..event });
        }
    }

    /// Checks the URL of a request against the robots.txt that was known when it was sent.
    fn check_path(&mut self, server: u32, line: &Line<'_>, sent: u64) {
        if !self.robots.obeys || line.is_for_robots() {
            return;
        }
        let why = match self.robots.check(server, line.target(), sent) {
            Allowed::Unknown => {
                self.counts.unchecked += 1;
                self.counts.first_unchecked.get_or_insert_with(|| line.url.to_owned());
                return;
            }
            Allowed::Allowed => return self.counts.checked += 1,
            Allowed::Forbidden(rule) => format!("line {rule} of its robots.txt forbids it"),
            Allowed::Unread => "its robots.txt was not known to allow it".to_owned(),
        };
        self.counts.checked += 1;
        self.counts.disallowed += 1;
        self.books.rows[0][server as usize].broken += 1;
        let (file, line_number) = (self.source.files.len() - 1, self.source.line);
        let text = format!("{} was requested, but {why}", line.url);
        let file = u16::try_from(file).unwrap_or(u16::MAX);
        self.find(Finding { text, file, line: line_number });
    }

    fn find(&mut self, finding: Finding) {
        self.findings.total += 1;
        if self.findings.list.len() < FINDINGS_MAX {
            self.findings.list.push(finding);
        }
    }

    fn push(&mut self, event: Event) {
        let mut order = std::mem::take(&mut self.order);
        order.push(event, &mut |event| self.account(event));
        self.order = order;
    }

    /// Takes an event in the order of time.
    fn account(&mut self, event: &Event) {
        let mut breaches = Vec::new();
        self.books.take(event, &mut |breach| breaches.push(breach));
        for breach in breaches {
            let text = self.describe(event, breach);
            self.find(Finding { text, file: event.file, line: event.line });
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
        match breach {
            Breach::Overlap => format!("server {name} was visited before its last visit had ended"),
            Breach::Gap { gap, owed, .. } => format!(
                "{} {name} was visited after {}, but {} were owed",
                kind.name(),
                text::seconds(gap),
                text::seconds(owed)
            ),
            Breach::AtOnce { visits, most, .. } => {
                format!("{} {name} had {visits} visits at once; {most} are allowed", kind.name())
            }
        }
    }

    fn begin_run(&mut self, run: u64) {
        self.flush();
        self.books.begin_run(run, self.drift);
        self.drift = 0;
    }

    fn flush(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.flush(&mut |event| self.account(event));
        self.order = order;
    }

    fn end(&mut self) {
        self.flush();
    }

    /// Returns the number of a server; `None` if there is no memory for another one.
    fn server(&mut self, origin: &str) -> Option<u32> {
        if let Some(number) = self.names[0].numbers.get(origin) {
            return Some(*number);
        }
        let bytes = SERVER_BYTES + 6 * origin.len();
        self.memory_left = self.memory_left.checked_sub(bytes)?;
        let (number, _) = self.names[0].number(origin);
        let host = host_of(origin);
        let host_number = self.number(Kind::Host, host);
        let domain = self.number(Kind::Domain, registrable(host));
        self.books.add_server(host_number, domain);
        self.books.promise_server(host);
        Some(number)
    }

    fn number(&mut self, kind: Kind, name: &str) -> u32 {
        let (number, is_new) = self.names[kind as usize].number(name);
        if is_new {
            self.books.reach(kind, number);
        }
        number
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
        let (counts, sequence) = (&self.counts, &self.sequence);
        let mut doubts = Vec::new();
        let mut doubt = |number: u64, text: &str| {
            if number > 0 {
                doubts.push(format!("{number} {text}"));
            }
        };
        doubt(counts.old, "lines are of format 1, which doesn't show when replies ended");
        doubt(counts.illegible, "lines can't be read");
        doubt(sequence.missing(), "lines are missing");
        doubt(sequence.unlisted, "further places where lines are missing");
        doubt(sequence.moved.map_or(0, |(_, lines)| lines), "lines are out of order");
        doubt(self.books.disordered, "visits have times that contradict their numbers");
        doubt(self.order.late, "lines were written too late to be sorted");
        doubt(self.books.set_back, "visits came after the calendar was set back");
        doubt(counts.unchecked, "requests can't be checked against robots.txt");
        doubt(counts.left_out, "lines are of servers beyond --memory");
        if let Some(url) = &counts.first_unchecked {
            doubts.push(format!("  the first of them is {url}"));
        }
        if counts.requests > 0 && !self.books.has_promises() {
            doubts.push("neither the log nor conf.toml says what was promised".to_owned());
        }
        if counts.lines == 0 {
            doubts.push("there is no crawl log".to_owned());
        }
        doubts
    }
}

fn rule_of(name: Option<&str>) -> u8 {
    let place = Rule::ALL.iter().position(|rule| Some(rule.name()) == name);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or(0)
}
