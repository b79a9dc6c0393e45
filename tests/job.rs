//! The job directory of a crawl that runs, and what others do to it meanwhile: logs renamed and
//! emptied, files taken away, locks removed; and a crawl that is killed and goes on.

use crate::util::{Run, sted};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use sted::store::{cdxj, log};

/// A lab that takes its time, and archive files that are soon full.
const SLOW: &str = r#"
[job]
directory = "DIR/job"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[store]
sync_period = "100ms"
file_bytes_max = "1MiB"
gzip_level = 0
[state]
checkpoint_period = "1s"
[report]
progress_period = "1s"
[lab]
directory = "DIR/lab"
[web]
preset = "plain"
hosts = 20
seeds = 20
pages = 6000
page_bytes = "4KB"
think_time = "150ms"
"#;

/// What should come soon, in a test that waits for it.
const SOON: Duration = Duration::from_secs(60);

/// A crawl in a folder of its own.
struct Crawl {
    folder: tempfile::TempDir,
    child: Child,
    lines: BufReader<ChildStderr>,
}

impl Crawl {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = SLOW.replace("DIR", folder.path().to_str().expect("UTF-8"));
        fs::write(folder.path().join("crawl.toml"), text).expect("writable");
        let (child, lines) = begin(folder.path());
        Self { folder, child, lines }
    }

    fn job(&self) -> PathBuf {
        self.folder.path().join("job")
    }

    /// The next line of its standard error that has this in it.
    fn wait_for(&mut self, text: &str) -> String {
        let started = Instant::now();
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).expect("UTF-8") > 0, "it ended: no {text:?}");
            if line.contains(text) {
                return line;
            }
            assert!(started.elapsed() < SOON, "no {text:?}: {line}");
        }
    }

    fn signal(&self, signal: i32) {
        let id = i32::try_from(self.child.id()).expect("a process id");
        // SAFETY: the process is a child of ours that has not been waited for: the id is its own.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0, "the child runs");
    }

    /// Killed, and started again in the same folder, with rests as by default.
    fn kill_and_begin_again(mut self) -> Self {
        self.child.kill().expect("a child of ours");
        self.child.wait().expect("a child of ours");
        let conf = self.folder.path().join("crawl.toml");
        let text = fs::read_to_string(&conf).expect("it was written");
        fs::write(conf, text.replace("delay_factor = 0", "delay_factor = 10")).expect("writable");
        let (child, lines) = begin(self.folder.path());
        Self { child, lines, ..self }
    }

    /// Stopped in order; its folder.
    fn stop(self) -> tempfile::TempDir {
        self.signal(libc::SIGINT);
        drop(self.lines);
        let run = Run::of(self.child.wait_with_output().expect("it ends"));
        assert_eq!(run.code, Some(11), "{}", run.out);
        self.folder
    }
}

fn begin(folder: &Path) -> (Child, BufReader<ChildStderr>) {
    let mut command = sted(&["crawl", folder.join("crawl.toml").to_str().expect("UTF-8")]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let lines = BufReader::new(child.stderr.take().expect("piped"));
    (child, lines)
}

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < SOON, "{what} did not come");
        thread::sleep(Duration::from_millis(20));
    }
}

fn bytes(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |facts| facts.len())
}

/// URLs in the index of these folders, and how often.
fn indexed(folders: &[PathBuf]) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for file in folders.iter().flat_map(|folder| fs::read_dir(folder).expect("an index")) {
        let text = fs::read_to_string(file.expect("a file").path()).expect("text");
        for entry in text.lines().filter_map(|line| cdxj::parse(line).ok()) {
            *all.entry(entry.url.into_owned()).or_default() += 1;
        }
    }
    all
}

/// The crawl log begins a new file when it is asked to, and when somebody took its file away or
/// emptied it; every line is in one of the files.
#[test]
fn the_log_is_rotated_by_anybody() {
    let crawl = Crawl::start();
    let job = crawl.job();
    let at = |name: &str| job.join(name);
    until("a log", || bytes(&at("crawl.log")) > 0);
    crawl.signal(libc::SIGUSR1);
    until("a part", || bytes(&at("crawl-00000.log")) > 0 && bytes(&at("crawl.log")) > 0);
    // By the name that the next part would have had.
    fs::rename(at("crawl.log"), at("crawl-00001.log")).expect("it is there");
    crawl.signal(libc::SIGUSR1);
    until("the next part", || bytes(&at("crawl-00002.log")) > 0 && bytes(&at("crawl.log")) > 0);
    fs::rename(at("crawl.log"), at("crawl.log.1")).expect("it is there");
    until("a new log", || bytes(&at("crawl.log")) > 0);
    fs::rename(at("crawl.log"), at("crawl.log.2")).expect("it is there");
    fs::write(at("crawl.log"), b"").expect("writable");
    until("lines in the new log", || bytes(&at("crawl.log")) > 0);
    fs::copy(at("crawl.log"), at("crawl.log.3")).expect("it is there");
    fs::OpenOptions::new().write(true).truncate(true).open(at("crawl.log")).expect("there");
    until("lines in the emptied log", || bytes(&at("crawl.log")) > 0);
    let folder = crawl.stop();
    let mut logged = BTreeSet::new();
    let parts = ["crawl-00000.log", "crawl-00001.log", "crawl-00002.log"];
    for name in parts.into_iter().chain(["crawl.log.1", "crawl.log.2", "crawl.log.3", "crawl.log"])
    {
        let text = fs::read_to_string(folder.path().join("job").join(name)).expect("text");
        for line in text.lines() {
            let entry = log::parse(line).unwrap_or_else(|bad| panic!("{name}: {bad}: {line}"));
            logged.insert(entry.url.to_owned());
        }
    }
    let all = indexed(&[folder.path().join("job/index")]);
    // What was written between the copy and the cut is lost by whoever rotates that way.
    let missing = all.keys().filter(|url| !logged.contains(*url)).count();
    assert!(all.len() > 50 && missing <= 64, "{missing} of {} are in no log", all.len());
}

/// A second process is refused though somebody has removed the lock file.
#[test]
fn a_removed_lock_lets_nobody_in() {
    let crawl = Crawl::start();
    until("a log", || bytes(&crawl.job().join("crawl.log")) > 0);
    fs::remove_file(crawl.job().join("lock")).expect("it is there");
    let conf = crawl.folder.path().join("crawl.toml");
    let second = sted(&["crawl", conf.to_str().expect("UTF-8")]).output().expect("starts");
    let second = Run::of(second);
    assert_eq!(second.code, Some(5), "{}", second.err);
    assert!(second.err.contains("another process is working on this job"), "{}", second.err);
    crawl.stop();
}

/// Closed files are taken away while a crawl runs, then it is killed: nothing is fetched twice. It
/// says why it waits, and reads back what it has meanwhile.
#[test]
fn files_may_be_taken_away_and_a_killed_crawl_says_what_it_waits_for() {
    let mut crawl = Crawl::start();
    let job = crawl.job();
    let away = crawl.folder.path().join("away");
    fs::create_dir(&away).expect("writable");
    let mut taken = 0;
    while taken < 3 {
        crawl.wait_for("pages, ");
        for file in fs::read_dir(job.join("warc")).expect("an archive") {
            let name = file.expect("a file").file_name().into_string().expect("ours");
            let Some(stem) = name.strip_suffix(".warc") else { continue };
            let index = format!("{stem}.cdxj");
            fs::rename(job.join("warc").join(&name), away.join(&name)).expect("it is closed");
            fs::rename(job.join("index").join(&index), away.join(&index)).expect("it is sorted");
            taken += 1;
        }
    }
    fs::create_dir(away.join("index")).expect("writable");
    for file in fs::read_dir(&away).expect("a folder") {
        let file = file.expect("a file").path();
        if file.extension().is_some_and(|end| end == "cdxj") {
            let name = file.file_name().expect("a name");
            fs::rename(&file, away.join("index").join(name)).expect("it is there");
        }
    }
    let mut crawl = crawl.kill_and_begin_again();
    crawl.wait_for("the crawl was not stopped in order: servers rest until ");
    let line = crawl.wait_for("after an unclean stop or a rebuild (politeness.delay_max)");
    assert!(line.starts_with("servers rest until "), "{line}");
    let folder = crawl.stop();
    let job = folder.path().join("job");
    let all = indexed(&[job.join("index"), away.join("index")]);
    let twice: Vec<_> = all.iter().filter(|(_, count)| **count > 1).collect();
    assert!(all.len() > 200 && twice.is_empty(), "{} of {}: {twice:?}", twice.len(), all.len());
    let log = fs::read_to_string(job.join("crawl.log")).expect("a log");
    assert!(log.contains(" replayed "), "what the archive held was read back at once");
    assert!(!log.contains("notReadBack"));
}
