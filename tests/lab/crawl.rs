//! Crawls of the lab by the program, each in its own folder, and the files they leave behind.

use crate::util::{Run, read, sted};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};
use sted::conf::Conf;
use sted::store::{cdxj, log};
use tempfile::TempDir;

/// A crawl that takes longer than this counts as hanging.
const TIME_MAX: Duration = Duration::from_secs(120);
/// The time between two readings of the crawler's memory.
const LOOK: Duration = Duration::from_millis(5);

/// A crawl that has ended by itself.
pub struct Crawl {
    folder: TempDir,
    /// Its configuration.
    pub conf: Conf,
    /// The most resident memory of the crawler in bytes, without the lab, and without pages of
    /// files: its program and libraries, of which more are read the more of them a crawl uses.
    pub peak_bytes: u64,
    /// The time from start to end.
    pub took: Duration,
    /// What it printed, and its exit code.
    pub run: Run,
}

impl Crawl {
    /// Runs the program on a configuration whose directories are relative.
    pub fn of(text: &str) -> Self {
        let conf = Conf::parse(text, "crawl.toml").unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("crawl.toml"), text).expect("written");
        let create = |name: &str| File::create(path(name)).expect("created");
        let started = Instant::now();
        let mut child = sted(&["crawl", "crawl.toml"])
            .current_dir(folder.path())
            .stdout(create("out"))
            .stderr(create("err"))
            .spawn()
            .expect("the program starts");
        let (status, peak_bytes) = watch(&mut child, started);
        let text = |name: &str| fs::read_to_string(path(name)).expect("the program writes UTF-8");
        let run = Run { code: status.code(), out: text("out"), err: text("err") };
        Self { folder, conf, peak_bytes, took: started.elapsed(), run }
    }

    /// Runs a shipped configuration, with a line of the lab's log for each request.
    pub fn of_shipped(name: &str) -> Self {
        Self::of(&shipped(name))
    }

    /// Returns the results of several processes in a folder; `run` is the last one's. `conf` is
    /// their configuration, with the paths of the lab.
    pub fn left_in(folder: TempDir, conf: Conf, run: Run) -> Self {
        Self { folder, conf, peak_bytes: 0, took: Duration::ZERO, run }
    }

    /// Returns the job's directory.
    pub fn job(&self) -> PathBuf {
        self.folder.path().join(&self.conf.job.directory)
    }

    /// Returns what the lab expects, by URL.
    pub fn manifest(&self) -> BTreeMap<String, Expected> {
        let text = self.lab_file("manifest.jsonl");
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let head = lines.next().expect("a head");
        let all: BTreeMap<_, _> = lines.map(|line| Expected::of(&line)).collect();
        assert_eq!(head["urls"], all.len(), "each URL has one line");
        all
    }

    /// Returns the events at the lab, in order.
    pub fn events(&self) -> Vec<Event> {
        Event::all_in(&self.lab_file("events.jsonl"))
    }

    /// Returns when the lab started, in microseconds since 1970. The times of events count from it.
    pub fn lab_started_us(&self) -> u64 {
        let text = self.lab_file("events.jsonl");
        let head: Value = serde_json::from_str(text.lines().next().expect("a head")).expect("JSON");
        head["unix_us"].as_u64().expect("a number")
    }

    /// Returns the lines of the crawl log, in order, without those that only show rules.
    pub fn log(&self) -> Vec<Logged> {
        let text = fs::read_to_string(self.job().join("crawl.log")).expect("a crawl log");
        text.lines().filter(|line| !line.contains(" - rules {")).map(Logged::of).collect()
    }

    /// Returns the lines of the index: URL, file, offset.
    pub fn index(&self) -> Vec<(String, String, u64)> {
        let mut all = Vec::new();
        for file in fs::read_dir(self.job().join("index")).expect("an index") {
            let text = fs::read_to_string(file.expect("a file").path()).expect("text");
            for line in text.lines() {
                let entry = cdxj::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                all.push((entry.url.into_owned(), entry.file.into_owned(), entry.offset));
            }
        }
        all
    }

    /// Returns the crawl's summary.
    pub fn summary(&self) -> Value {
        let text = fs::read_to_string(self.job().join("summary.json")).expect("a summary");
        serde_json::from_str(&text).expect("JSON")
    }

    fn lab_file(&self, name: &str) -> String {
        let lab = self.conf.lab.as_ref().expect("a crawl of the lab");
        let path = self.folder.path().join(&lab.directory).join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// Returns the text of a shipped configuration, changed only in what the lab logs.
pub fn shipped(name: &str) -> String {
    let text = read(&format!("conf/{name}.toml"));
    if text.contains("events = \"requests\"") {
        return text;
    }
    assert!(!text.contains("events ="), "{name}: a lab that writes down something else");
    text.replacen("\n[lab]\n", "\n[lab]\nevents = \"requests\"\n", 1)
}

/// Waits for the end of the crawl; returns its exit status and the peak of its memory, as the
/// kernel reported it last.
fn watch(child: &mut Child, started: Instant) -> (ExitStatus, u64) {
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_bytes = 0;
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return (status, peak_bytes);
        }
        let text = fs::read_to_string(&status_file).unwrap_or_default();
        let bytes = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
        };
        if let (Some(peak), Some(files)) = (bytes("VmHWM:"), bytes("RssFile:")) {
            peak_bytes = peak_bytes.max(peak.saturating_sub(files));
        }
        if started.elapsed() > TIME_MAX {
            child.kill().expect("a child of ours");
            child.wait().expect("a child of ours");
            panic!("the crawl did not end within {TIME_MAX:?}");
        }
        thread::sleep(LOOK);
    }
}

/// What the lab expects of one URL.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The acceptable outcomes.
    pub outcomes: Vec<String>,
    /// The least and the most requests at the server.
    pub requests: (u64, u64),
    /// The least and the most responses in the archive.
    pub records: (u64, u64),
    /// Whether endlessly many URLs follow it.
    pub open: bool,
}

impl Expected {
    fn of(line: &Value) -> (String, Self) {
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        let range = |value: &Value| {
            let end = |at: usize| value[at].as_u64().expect("a number");
            (end(0), end(1))
        };
        let outcomes = line["outcomes"].as_array().expect("a list").iter().map(text).collect();
        let expected = Self {
            outcomes,
            requests: range(&line["requests"]),
            records: range(&line["records"]),
            open: line["open"] == true,
        };
        (text(&line["url"]), expected)
    }
}

/// An event at the lab.
#[derive(Clone, Debug)]
pub struct Event {
    /// Microseconds since the lab's start.
    pub at_us: u64,
    /// The number of the connection.
    pub connection: u64,
    /// The host that was asked; for an accepted connection, the first host of its address.
    pub host: String,
    /// The kind of event.
    pub what: What,
}

/// The kind of an event at the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A connection was accepted.
    Accept,
    /// A complete request was received, for this path.
    Request(String),
    /// A request of the connection has its whole reply.
    Reply,
    /// A connection ended.
    Close,
}

impl Event {
    /// Returns the events in the text of a lab's log, in order.
    pub fn all_in(log: &str) -> Vec<Self> {
        log.lines().skip(1).map(Self::of).collect()
    }

    fn of(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("JSON: {line}"));
        let number = |name: &str| value[name].as_u64().unwrap_or_else(|| panic!("{name}: {line}"));
        let text = |name: &str| value[name].as_str().unwrap_or_else(|| panic!("{name}: {line}"));
        let what = match text("event") {
            "accept" => What::Accept,
            "request" => What::Request(text("path").to_owned()),
            "reply" => What::Reply,
            "close" => What::Close,
            other => panic!("no such event: {other}"),
        };
        let host = text("host").to_owned();
        Self { at_us: number("at"), connection: number("connection"), host, what }
    }
}

/// The fields of a line of the crawl log that are used here.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The URL.
    pub url: String,
    /// The outcome of this fetch.
    pub outcome: String,
    /// File and offset of its record.
    pub stored: Option<(String, u64)>,
}

impl Logged {
    fn of(line: &str) -> Self {
        let entry = log::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let by_status = match entry.status {
            200..=299 => "ok",
            300..=399 => "redirect",
            400..=599 => "http-error",
            _ => "none",
        };
        let outcome = entry.extra.reason.as_deref().unwrap_or(by_status).to_owned();
        let file = entry.extra.file.map(|file| file.into_owned());
        Self { url: entry.url.to_owned(), outcome, stored: file.zip(entry.extra.offset) }
    }
}
