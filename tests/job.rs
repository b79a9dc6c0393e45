//! What others do to the job directory of a running crawl: logs renamed and emptied, files moved
//! away, locks removed; and a crawl that is killed and resumed.

use crate::crawl;
use crate::operate::short;
use crate::util::{Run, sted};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use sted::store::{cdxj, log};

/// A slow lab, and small archive files.
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

/// How long a test waits for something that should come soon.
const SOON: Duration = Duration::from_secs(60);

/// A crawl in its own folder.
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

    /// Waits for the next line of its standard error that contains `text`.
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
        // SAFETY: the process is this process's child and has not been waited for, so the id is its
        // own.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0, "the child runs");
    }

    /// Kills the crawl and starts it again in the same folder, with the default rests.
    fn kill_and_restart(mut self) -> Self {
        self.child.kill().expect("a child of ours");
        self.child.wait().expect("a child of ours");
        let conf = self.folder.path().join("crawl.toml");
        let text = fs::read_to_string(&conf).expect("it was written");
        fs::write(conf, text.replace("delay_factor = 0", "delay_factor = 10")).expect("writable");
        let (child, lines) = begin(self.folder.path());
        Self { child, lines, ..self }
    }

    /// Stops the crawl in order; returns its folder.
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

/// Waits until a condition holds.
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

/// Counts the URLs in the index of these folders.
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

/// The crawl log begins a new file on request, and when its file was moved or emptied by others;
/// every line is in one of the files.
#[test]
fn the_log_is_rotated_by_anybody() {
    let crawl = Crawl::start();
    let job = crawl.job();
    let at = |name: &str| job.join(name);
    until("a log", || bytes(&at("crawl.log")) > 0);
    crawl.signal(libc::SIGUSR1);
    until("a part", || bytes(&at("crawl-00000.log")) > 0 && bytes(&at("crawl.log")) > 0);
    // Renamed to the name that the next part would have had.
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
    // This way of rotating loses what is written between the copy and the truncation.
    let missing = all.keys().filter(|url| !logged.contains(*url)).count();
    assert!(all.len() > 50 && missing <= 64, "{missing} of {} are in no log", all.len());
}

/// A second process is refused even if the lock file was removed.
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

/// Closed files are moved away while a crawl runs, then it is killed: nothing is fetched twice. The
/// resumed crawl says why it waits, and reads back its archive meanwhile.
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
    let mut crawl = crawl.kill_and_restart();
    crawl.wait_for("the crawl was not stopped in order: servers rest until ");
    let line = crawl.wait_for(" after an unclean stop; ");
    assert!(line.contains(" servers rest until "), "{line}");
    let folder = crawl.stop();
    let job = folder.path().join("job");
    let all = indexed(&[job.join("index"), away.join("index")]);
    let twice: Vec<_> = all.iter().filter(|(_, count)| **count > 1).collect();
    assert!(all.len() > 200 && twice.is_empty(), "{} of {}: {twice:?}", twice.len(), all.len());
    let log = fs::read_to_string(job.join("crawl.log")).expect("a log");
    assert!(log.contains(" replayed "), "what the archive held was read back at once");
    assert!(!log.contains("notReadBack"));
}

/// Resumes the crawl in this folder; returns its exit code and its output.
fn ends(folder: &Path, more: &[&str]) -> (Option<i32>, String) {
    let conf = folder.join("crawl.toml");
    let conf = conf.to_str().expect("UTF-8");
    let run = Run::of(sted(&[&["crawl", conf], more].concat()).output().expect("it starts"));
    (run.code, run.out + &run.err)
}

/// Lists the files in a folder of the job.
fn files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("job").join(name)).expect("a folder");
    entries.map(|entry| entry.expect("readable").path()).collect()
}

/// No rest after an unclean stop: no Crawl-delay is presumed.
const NO_REST: &str = "crawl_delay_max = \"0s\"\n";

/// A change of a file's bytes.
type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

/// A crawl whose archive was damaged afterwards counts as incomplete until the file is restored, or
/// a rebuild has fetched the lost captures again.
#[test]
fn a_damaged_archive_is_missing_until_it_is_fetched_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let conf = short(folder, "");
    let text = fs::read_to_string(&conf).expect("it was written");
    fs::write(&conf, text.replace("[report]", &format!("{NO_REST}[report]"))).expect("writable");
    let (code, text) = ends(folder, &[]);
    assert_eq!(code, Some(0), "{text}");
    let warc = files(folder, "warc").remove(0);
    let whole = fs::read(&warc).expect("it is there");
    let damage = |change: Change<'_>| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        fs::write(&warc, bytes).expect("writable");
    };
    let middle = whole.len() / 2;
    let index = fs::read_to_string(files(folder, "index").remove(0)).expect("text");
    let entries = index.lines().filter_map(|line| cdxj::parse(line).ok());
    let offsets: BTreeSet<usize> = entries.map(|entry| entry.offset as usize).collect();
    let edge = *offsets.range(middle..).next().expect("records");
    let kinds: [Change<'_>; 5] = [
        &|bytes| bytes[middle] ^= 1,
        &|bytes| bytes[middle..middle + 3_000].fill(0),
        &|bytes| bytes.truncate(middle),
        &|bytes| bytes.truncate(edge),
        &|bytes| bytes.clear(),
    ];
    for (number, change) in kinds.into_iter().enumerate() {
        damage(change);
        for start in 0..2 {
            let (code, text) = ends(folder, &[]);
            let is_told = text.contains("captures lost: restore the files from a copy, or");
            assert!(code == Some(12) && is_told, "kind {number}, start {start}: {code:?}\n{text}");
        }
        fs::write(&warc, &whole).expect("writable");
        let (code, text) = ends(folder, &[]);
        assert!(code == Some(0) && !text.contains("lost"), "it was put back: {code:?}\n{text}");
    }
    damage(kinds[2]);
    for more in [&["--rebuild"][..], &[]] {
        let (code, text) = ends(folder, more);
        assert!(code == Some(0) && !text.contains("captures lost"), "{more:?}: {code:?}\n{text}");
        assert!(!text.contains("not stopped in order"), "it was: {text}");
    }
    for gone in ["state/checkpoint", "state"] {
        let gone = folder.join("job").join(gone);
        fs::remove_file(&gone).or_else(|_| fs::remove_dir_all(&gone)).expect("it was kept");
        let (code, text) = ends(folder, &[]);
        assert!(
            code == Some(5)
                && text.contains("resume it from its archive with `sted crawl --rebuild`"),
            "{text}"
        );
        let (code, text) = ends(folder, &["--rebuild"]);
        assert!(code == Some(0) && !text.contains("not stopped in order"), "{code:?}\n{text}");
    }
}

/// A file that a killed crawl was writing can't have been moved away by an operator.
#[test]
fn a_growing_file_that_is_gone_is_missing() {
    for which in ["warc", "both"] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let conf = crawl::write_conf(folder, "[state]\ncheckpoint_period = \"1s\"\n");
        let text = fs::read_to_string(&conf).expect("it was written");
        let text = text.replace("pages = 4000", "pages = 1500");
        let text = text.replace("[report]", &format!("{NO_REST}[report]"));
        fs::write(&conf, &text).expect("writable");
        let (mut child, lines) = crawl::start(&conf);
        until("a checkpoint that counts captures", || {
            let text = fs::read_to_string(folder.join("job/state/checkpoint")).unwrap_or_default();
            !text.contains("\"archive_offset\":0,")
        });
        child.kill().expect("a child of ours");
        child.wait().expect("a child of ours");
        drop(lines);
        let folders: &[&str] = if which == "both" { &["warc", "index"] } else { &["warc"] };
        for file in folders.iter().flat_map(|name| files(folder, name)) {
            assert_eq!(file.extension().and_then(|it| it.to_str()), Some("open"));
            fs::remove_file(file).expect("it is there");
        }
        fs::write(&conf, text.replace("40ms", "1ms")).expect("writable");
        let (code, text) = ends(folder, &[]);
        assert!(code == Some(12) && text.contains("captures lost"), "{which}: {code:?}\n{text}");
        assert!(text.contains("the crawl was still writing it"), "{text}");
        assert_eq!(ends(folder, &[]).0, Some(12), "a second start changes nothing");
        let (code, text) = ends(folder, &["--rebuild"]);
        assert!(code == Some(0) && !text.contains("captures lost"), "{which}: {code:?}\n{text}");
    }
}
