//! Reads a trace from its file: its two streams of links (all of them, and those that lead to
//! another process), and statistics that need no cache.

use super::stream::{Numbers, Stream};
use super::watch::Watch;
use crate::commands::{Exit, Failure};
use crate::ground::frame::{Flaw, OPENING_BYTES};
use crate::ground::map::Set;
use crate::seen::trace::{Broken, Group, Page, Reader};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The number of bytes read from a file at once.
const BLOCK_BYTES: usize = 1 << 20;

/// A trace in memory: its streams and statistics.
#[derive(Debug)]
pub(super) struct Traced {
    /// The stream of all links.
    pub(super) full: Stream,
    /// The stream of links that lead to another process than that of their page.
    pub(super) cross: Stream,
    /// Statistics of the trace.
    pub(super) facts: Facts,
}

/// Counts and means of a trace that need no cache: of its pages, servers, hosts and links.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// The number of pages scanned for links.
    pub(super) pages: u64,
    /// The number of servers that the pages came from.
    pub(super) servers: usize,
    /// The number of hosts of pages and links.
    pub(super) hosts: usize,
    /// The number of links on these pages.
    pub(super) links: u64,
    /// Seconds from the first page scanned to the last.
    pub(super) seconds: f64,
    /// Links per page: mean and median, over pages that have any.
    pub(super) per_page: (f64, f64),
    /// Distinct links per page: mean and median, over pages that have any.
    pub(super) unique_per_page: (f64, f64),
    /// The number of links that stay on their page's host.
    pub(super) local: u64,
    /// The number of links by where their URL was linked before.
    pub(super) origins: Origins,
    /// The mean number of connections on a visit to a server at the time a page was scanned.
    pub(super) busy: f64,
    /// The mean number of parked connections (kept open between visits) at the time a page was
    /// scanned.
    pub(super) parked: f64,
    /// The damage at which reading the trace stopped; `None` if it was read to its end.
    pub(super) broken: Option<Broken>,
}

/// The number of links, by where their URL was linked last. A URL that was never linked before is
/// new to every cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origins {
    /// Links whose URL was not linked before.
    pub(super) new: u64,
    /// Links whose URL was last linked on the same page.
    pub(super) page: u64,
    /// Links whose URL was last linked on another page of the same host.
    pub(super) host: u64,
    /// Links whose URL was last linked on a page of another host.
    pub(super) elsewhere: u64,
}

/// Reads the trace at `path`, up to `links_max` links.
///
/// # Errors
/// The file can't be read, is not a trace, or has no links.
pub(super) fn read(
    path: &Path,
    processes: u64,
    links_max: u64,
    watch: &Watch,
) -> Result<Traced, Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("{}: {why}", path.display()))
    };
    let mut file = File::open(path).map_err(|error| cannot(&error))?;
    let length = file.metadata().map_err(|error| cannot(&error))?.len();
    watch.begin(&format!("reading {}", path.display()), length);
    let (mut reader, mut block) = (Reader::default(), vec![0; BLOCK_BYTES]);
    let mut gathered = Gathered::new(processes);
    let broken = 'file: loop {
        let bytes = file.read(&mut block).map_err(|error| cannot(&error))?;
        if bytes == 0 {
            break reader.end().err();
        }
        watch.more(bytes as u64);
        reader.feed(&block[..bytes]);
        loop {
            match reader.group() {
                Ok(Some(group)) => gathered.add(&group),
                Ok(None) => break,
                Err(broken) => break 'file Some(broken),
            }
            if gathered.full.links.len() as u64 >= links_max {
                break 'file None;
            }
        }
    };
    if let Some(broken) = broken.filter(|broken| broken.offset == 0) {
        return Err(cannot(&no_trace(&broken)));
    }
    if gathered.full.links.is_empty() {
        let why = broken.map_or_else(|| "has no links".to_owned(), |broken| broken.to_string());
        return Err(cannot(&why));
    }
    if let Some(broken) = broken {
        log::warn!("{}: {broken}: what is before it is used", path.display());
    }
    Ok(gathered.conclude(broken))
}

/// Checks that a file begins as a trace does, to detect errors before long work on other files.
///
/// # Errors
/// The file can't be read, or is not a trace.
pub(super) fn look(path: &Path) -> Result<(), Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("{}: {why}", path.display()))
    };
    let mut begins = Vec::new();
    let file = File::open(path).map_err(|error| cannot(&error))?;
    let opening = OPENING_BYTES as u64;
    file.take(opening).read_to_end(&mut begins).map_err(|error| cannot(&error))?;
    let mut reader = Reader::default();
    reader.feed(&begins);
    let begun = reader.group().map(|_| ()).and_then(|()| reader.end());
    begun.map_err(|broken| cannot(&no_trace(&broken)))
}

/// Describes why a file does not begin as a trace does.
fn no_trace(broken: &Broken) -> String {
    match broken.flaw {
        Flaw::Version(_) => broken.to_string(),
        _ => "is no trace of a crawl".to_owned(),
    }
}

/// What has been counted of a trace while it is read.
#[derive(Debug)]
struct Gathered {
    processes: u64,
    full: Stream,
    cross: Stream,
    numbers: Numbers,
    /// For each URL of the full stream, by its number: its number in the cross stream, or [`NONE`].
    cross_numbers: Vec<u32>,
    last: Vec<(u32, u32)>,
    hosts: Set<u32>,
    servers: Set<u32>,
    origins: Origins,
    local: u64,
    /// The number of links of each page that has any.
    counts: Vec<u32>,
    /// The number of distinct links of each page that has any.
    unique: Vec<u32>,
    pages: u64,
    times_us: Option<(u64, u64)>,
    busy: u64,
    parked: u64,
}

/// Instead of a number in the cross stream: the URL is not in it.
const NONE: u32 = u32::MAX;

impl Gathered {
    fn new(processes: u64) -> Self {
        Self {
            processes,
            full: Stream::default(),
            cross: Stream::default(),
            numbers: Numbers::default(),
            cross_numbers: Vec::new(),
            last: Vec::new(),
            hosts: Set::default(),
            servers: Set::default(),
            origins: Origins::default(),
            local: 0,
            counts: Vec::new(),
            unique: Vec::new(),
            pages: 0,
            times_us: None,
            busy: 0,
            parked: 0,
        }
    }

    fn add(&mut self, group: &Group<'_>) {
        let page = group.page;
        let number = u32::try_from(self.pages).unwrap_or(u32::MAX);
        self.pages += 1;
        let first = self.times_us.map_or(page.time_us, |(first, _)| first);
        self.times_us = Some((first, page.time_us.max(first)));
        self.busy += u64::from(page.busy);
        self.parked += u64::from(page.parked);
        self.hosts.insert(page.host);
        self.servers.insert(page.server);
        let mut unique = 0;
        for link in group.links() {
            unique += u32::from(self.link(number, &page, link.fingerprint.0, link.host));
        }
        if group.links().len() > 0 {
            self.counts.push(u32::try_from(group.links().len()).expect("groups are capped"));
            self.unique.push(unique);
        }
    }

    /// Adds a link of `page`, the page with this number, to the streams and statistics. Returns
    /// whether it is the page's first link to its URL.
    fn link(&mut self, number: u32, page: &Page, fingerprint: u64, host: u32) -> bool {
        let (url, is_new) = self.numbers.add(&mut self.full, fingerprint);
        if is_new {
            self.hosts.insert(host);
            self.cross_numbers.push(NONE);
            self.last.push((number, page.host));
            self.origins.new += 1;
        }
        let place = url as usize;
        let (last_page, last_host) = std::mem::replace(&mut self.last[place], (number, page.host));
        let is_repeat = !is_new && last_page == number;
        self.origins.page += u64::from(is_repeat);
        self.origins.host += u64::from(!is_new && !is_repeat && last_host == page.host);
        self.origins.elsewhere += u64::from(!is_new && !is_repeat && last_host != page.host);
        self.local += u64::from(host == page.host);
        if process_of(host, self.processes) != process_of(page.host, self.processes) {
            if self.cross_numbers[place] == NONE {
                self.cross_numbers[place] =
                    u32::try_from(self.cross.urls()).expect("no more than in the full stream");
                self.cross.prints.push(fingerprint);
            }
            self.cross.links.push(self.cross_numbers[place]);
        }
        !is_repeat
    }

    fn conclude(mut self, broken: Option<Broken>) -> Traced {
        let pages = self.pages.max(1) as f64;
        let (first, last) = self.times_us.unwrap_or_default();
        let facts = Facts {
            pages: self.pages,
            servers: self.servers.len(),
            hosts: self.hosts.len(),
            links: self.full.links.len() as u64,
            seconds: (last - first) as f64 / 1e6,
            per_page: mean_and_median(&mut self.counts),
            unique_per_page: mean_and_median(&mut self.unique),
            local: self.local,
            origins: self.origins,
            busy: self.busy as f64 / pages,
            parked: self.parked as f64 / pages,
            broken,
        };
        for stream in [&mut self.full, &mut self.cross] {
            stream.links.shrink_to_fit();
            stream.prints.shrink_to_fit();
        }
        Traced { full: self.full, cross: self.cross, facts }
    }
}

/// Returns the number of the process that crawls a host. Hosts are distributed evenly over
/// `processes` by their hash.
fn process_of(host: u32, processes: u64) -> u64 {
    (u64::from(host) * processes) >> 32
}

fn mean_and_median(counts: &mut [u32]) -> (f64, f64) {
    if counts.is_empty() {
        return (0.0, 0.0);
    }
    counts.sort_unstable();
    let sum: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let middle = |at: usize| f64::from(counts[at]);
    let median = f64::midpoint(middle((counts.len() - 1) / 2), middle(counts.len() / 2));
    (sum as f64 / counts.len() as f64, median)
}
