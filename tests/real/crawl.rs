//! Runs the program on a configuration, and reads what it wrote.

use super::stand::Stand;
use super::walk;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use url::Url;

/// How long a crawl may take: a limit for one that hangs, not a measurement.
const CRAWL_MAX: Duration = Duration::from_secs(240);

/// The fields of a line of the crawl log that are used here.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) status: i32,
    pub(super) url: Url,
    pub(super) text: String,
}

/// A crawl that has ended.
#[derive(Debug)]
pub(super) struct Crawl {
    /// Its job directory.
    pub(super) job: PathBuf,
    /// Its log.
    pub(super) lines: Vec<Line>,
    /// Requests that were sent, including those sent again.
    pub(super) requests: usize,
    /// How long it took.
    pub(super) took: Duration,
}

/// Crawls the sites of a stand from `seeds`; `more` is appended to the configuration.
pub(super) fn crawl(stand: &Stand, seeds: &[String], more: &str) -> Crawl {
    let folder = stand.folder();
    let conf = CONF
        .replace("@SEEDS@", &format!("{seeds:?}"))
        .replace("@FOLDER@", &folder.display().to_string())
        .replace("@NAMES@", &stand.names.to_string());
    let file = folder.join("real.toml");
    fs::write(&file, conf + more).expect("the folder is the test's");
    let took = run(&file, &folder.join("output.log"));
    let job = folder.join("job");
    let log = fs::read_to_string(job.join("crawl.log")).expect("a crawl leaves its log");
    let figures = fs::read_to_string(job.join("summary.json")).expect("a crawl leaves its figures");
    let figures: serde_json::Value = serde_json::from_str(&figures).expect("they are JSON");
    let requests = figures["counts"]["requests"].as_u64().expect("requests are counted");
    let requests = usize::try_from(requests).expect("not so many");
    Crawl { job, lines: log.lines().map(Line::of).collect(), requests, took }
}

/// Runs the program to its end, which must be a success.
fn run(conf: &Path, output: &Path) -> Duration {
    let said = || fs::read_to_string(output).unwrap_or_default();
    let file = File::create(output).expect("the folder is the test's");
    let begun = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sted"))
        .args(["crawl".as_ref(), conf.as_os_str()])
        .stdin(Stdio::null())
        .stdout(file.try_clone().expect("a descriptor"))
        .stderr(file)
        .spawn()
        .expect("the program starts");
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be asked for") {
            break status;
        }
        if begun.elapsed() > CRAWL_MAX {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the crawl doesn't end:\n{}", said());
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(0), "the crawl ends well:\n{}", said());
    begun.elapsed()
}

impl Line {
    /// Parses a line of a crawl log in Heritrix's format.
    fn of(text: &str) -> Self {
        let mut words = text.split_ascii_whitespace().skip(1);
        let mut word = || words.next().unwrap_or_else(|| panic!("a line of 13 fields: {text}"));
        let status = word().parse().unwrap_or_else(|_| panic!("a status, second: {text}"));
        let _size = word();
        let url = Url::parse(word()).unwrap_or_else(|_| panic!("a URL, fourth: {text}"));
        for _ in 5..=12 {
            let _ = word();
        }
        assert!(word().starts_with('{'), "JSON, thirteenth: {text}");
        Self { status, url, text: text.to_owned() }
    }
}

impl Crawl {
    /// Returns the lines of pages by key, and those of robots.txt.
    pub(super) fn by_key(&self) -> (BTreeMap<String, Vec<&Line>>, Vec<&Line>) {
        let mut pages: BTreeMap<String, Vec<&Line>> = BTreeMap::new();
        let mut robots = Vec::new();
        for line in &self.lines {
            match line.url.path() {
                "/robots.txt" => robots.push(line),
                _ => pages.entry(walk::key(&line.url)).or_default().push(line),
            }
        }
        (pages, robots)
    }
}

/// The common configuration: only the test's servers, and nothing lost by cautious limits.
const CONF: &str = r#"
[job]
name = "real"
directory = "@FOLDER@/job"
seeds = @SEEDS@

[identity]
contact = "crawler@sted.dev"

[names]
servers = ["@NAMES@"]

[connections]
addresses_allowed = ["127.77.0.0/16"]

[tls]
roots_file = "@FOLDER@/ca.pem"

[retries]
retry_wait = "1s"
"#;
