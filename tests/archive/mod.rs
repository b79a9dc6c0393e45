//! What is handed on of a crawl: WACZ files, checked by other programs, and the page on reading the
//! archive, whose commands and scripts are run.

use crate::util::{Run, python, root, sted};
use serde_json::Value;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A crawl with several WARC files, repeated pages, redirects and missing pages.
const CRAWL: &str = r#"
[job]
directory = "jobs/crawl"
name = "lab"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
crawl_delay_max = "1s"
address_delay = "0s"
domain_delay = "0s"
[store]
file_bytes_max = "1MiB"
gzip_level = 1
sync_period = "100ms"
[state]
checkpoint_period = "1s"
[lab]
directory = "lab"
[web]
preset = "plain"
hosts = 6
seeds = 3
pages = 300
page_bytes = "20KB"
chunked_share = 0.3
duplicate_share = 0.2
redirect_share = 0.05
not_found_share = 0.05
"#;

/// How long a test waits for something that should come soon.
const SOON: Duration = Duration::from_secs(60);

/// A folder with a crawl in jobs/crawl.
struct Job(TempDir);

impl Job {
    fn crawled() -> Self {
        let job = Self(tempfile::tempdir().expect("a folder"));
        fs::write(job.path("crawl.toml"), CRAWL).expect("written");
        let run = job.run(&["crawl", "crawl.toml"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        job
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Run {
        Run::of(sted(arguments).current_dir(self.0.path()).output().expect("it starts"))
    }

    /// Returns the files of a folder of the job.
    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("jobs/crawl").join(folder)).expect("a folder");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        files
    }

    /// Packs the job, checks the package, and replays its pages if it is whole. Returns what it
    /// has.
    fn packed(&self, code: i32, says: &[&str]) -> Value {
        self.checked(code, says, if code == 0 { "replay" } else { "read" })
    }

    /// Packs a job whose package was replayed before, and checks it without a replay: that takes
    /// longer than all else, and the same index and files replay alike.
    fn packed_again(&self) -> Value {
        self.checked(0, &[], "read")
    }

    fn checked(&self, code: i32, says: &[&str], how: &str) -> Value {
        let run = self.run(&["wacz", "jobs/crawl"]);
        assert_eq!(run.code, Some(code), "{run:?}");
        assert!(says.iter().all(|says| run.out.contains(says)), "{says:?}: {run:?}");
        let mut check = python("archive/check.py");
        check.arg(self.path("jobs/crawl.wacz"));
        check.arg(how);
        let found = Run::of(check.output().expect("python starts"));
        assert_eq!(found.code, Some(0), "{}{}", found.out, found.err);
        let left: Vec<_> = fs::read_dir(self.path("jobs")).expect("a folder").collect();
        assert_eq!(left.len(), 2, "no temporary file is left: {left:?}");
        serde_json::from_str(&found.out).expect("counts as JSON")
    }
}

/// A package has every capture of the job, is valid, and replays. Its index is the same from index
/// files that are not sorted; what was moved away is named.
#[test]
fn a_package_has_all_of_a_job_and_replays() {
    let job = Job::crawled();
    let whole = job.packed(0, &[" captures, "]);
    let warcs = job.files("warc").len() as u64;
    assert!(warcs > 1 && whole["warcs"] == warcs, "{whole}");
    let index: Vec<String> =
        job.files("index").iter().map(|file| fs::read_to_string(file).expect("an index")).collect();
    let lines: usize = index.iter().map(|text| text.lines().count()).sum();
    assert_eq!(
        (whole["captures"].as_u64(), whole["seeds"].as_u64()),
        (Some(lines as u64), Some(3))
    );
    let log = fs::read_to_string(job.path("jobs/crawl/crawl.log")).expect("a log");
    let pages = log.lines().filter(|line| line.contains("   200 ") && !line.contains(" P "));
    assert_eq!(whole["pages"], pages.count() as u64);
    let mut wacz = Command::new(root().join(".venv/bin/wacz"));
    wacz.args(["validate", "-f"]).arg(job.path("jobs/crawl.wacz"));
    let valid = Run::of(wacz.output().expect("`make deps` gets py-wacz"));
    assert!(valid.out.contains("the passed WACZ is valid"), "{valid:?}");

    // The same index from one that was not sorted when it was closed.
    let first = &job.files("index")[0];
    let mut shuffled: Vec<&str> = index[0].lines().collect();
    shuffled.reverse();
    fs::remove_file(first).expect("it is there");
    let open = first.with_extension("cdxj.open");
    fs::write(&open, shuffled.join("\n") + "\n").expect("written");
    assert_eq!(job.packed_again()["index"], whole["index"]);

    // Without its index, a WARC file is packed and named; without the file, its captures are.
    fs::remove_file(&open).expect("it is there");
    let name = |file: &Path| file.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
    let unindexed = name(&job.files("warc")[0]);
    let less = job.packed(12, &["without a line in the index", &unindexed]);
    assert_eq!(less["warcs"], warcs, "{less}");
    fs::write(first, &index[0]).expect("written");
    let moved = job.files("warc")[1].clone();
    fs::rename(&moved, job.path("moved")).expect("it is there");
    let gone = format!("{}: {} captures", name(&moved), index[1].lines().count());
    let less = job.packed(12, &["its captures are left out", &gone]);
    assert_eq!(less["captures"], (lines - index[1].lines().count()) as u64);
    fs::rename(job.path("moved"), moved).expect("as above");
    let parts = job.path("jobs/crawl/crawl.parts");
    fs::write(&parts, "crawl-00000.log\n").expect("written");
    job.packed(12, &["crawl-00000.log", "its pages are not listed"]);
    fs::remove_file(parts).expect("as above");
    assert_eq!(job.packed_again()["index"], whole["index"]);

    let run = job.run(&["wacz", "jobs/crawl", "--out", "crawl.zip"]);
    assert!(run.code == Some(2) && run.err.contains("ends with .wacz"), "{run:?}");
    let run = job.run(&["wacz", "jobs/crawl", "--out", "nowhere/x.wacz"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    fs::remove_dir_all(job.path("jobs/crawl/warc")).expect("as above");
    let run = job.run(&["wacz", "jobs/crawl"]);
    assert!(run.code == Some(5) && run.err.contains("has no archive"), "{run:?}");
}

/// A job that is running or was killed is refused, with what to do.
#[test]
fn only_a_crawl_that_has_ended_is_packed() {
    let job = Job(tempfile::tempdir().expect("a folder"));
    let slow = CRAWL.replace("pages = 300", "pages = 100");
    let slow = slow.replace("burst = \"server\"\ndelay = \"0s\"", "burst = 1\ndelay = \"300ms\"");
    fs::write(job.path("crawl.toml"), slow).expect("written");
    let mut crawl = sted(&["crawl", "crawl.toml"])
        .current_dir(job.0.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let begun = Instant::now();
    let log = job.path("jobs/crawl/crawl.log");
    while fs::metadata(&log).map_or(0, |facts| facts.len()) == 0 {
        assert!(begun.elapsed() < SOON, "no page was fetched");
        thread::sleep(Duration::from_millis(20));
    }
    let run = job.run(&["wacz", "jobs/crawl"]);
    assert!(run.code == Some(5) && run.err.contains("ctl jobs/crawl stop"), "{run:?}");
    crawl.kill().expect("it runs");
    crawl.wait().expect("it ends");
    let run = job.run(&["wacz", "jobs/crawl"]);
    assert!(run.code == Some(5) && run.err.contains("was not stopped in order"), "{run:?}");
    let run = job.run(&["crawl", "crawl.toml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let packed = job.packed(0, &[]);
    assert!(packed["captures"].as_u64() > Some(50), "{packed}");
    // A page whose line was lost in the kill is listed, too.
    let log = fs::read_to_string(log).expect("a log");
    let lines = log.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let pages = lines.filter(|words| words[1] == "200" && words[4] != "P");
    let pages: BTreeSet<_> = pages.map(|words| words[3].to_owned()).collect();
    assert_eq!(packed["pages"], pages.len() as u64, "{log}");
}

/// The blocks of code in the page on reading the archive, each with its language.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("\n```").skip(1).step_by(2);
    parts.map(|part| part.split_once('\n').expect("a language and code")).collect()
}

/// Every command and every script on the page works, and finds something.
#[test]
fn the_page_on_reading_is_true() {
    let job = Job::crawled();
    let blocks = blocks(include_str!("../../src/store/READING.md"));
    assert!(blocks.len() > 8, "{blocks:?}");
    let venv = root().join(".venv/bin");
    let own = Path::new(env!("CARGO_BIN_EXE_sted")).parent().expect("a folder");
    let path =
        format!("{}:{}:{}", venv.display(), own.display(), env::var("PATH").expect("a path"));
    for (language, code) in blocks {
        if code.starts_with("wayback") {
            serves(&job, &path, code);
            continue;
        }
        let (program, argument) = match language {
            "python" => (venv.join("python"), "-c"),
            "sh" => (PathBuf::from("/bin/sh"), "-ec"),
            other => panic!("{other}: {code}"),
        };
        let mut command = Command::new(program);
        command.args([argument, code]).current_dir(job.0.path()).env("PATH", &path);
        let run = Run::of(command.output().expect("it starts"));
        assert_eq!(run.code, Some(0), "{code}\n{}{}", run.out, run.err);
        let is_silent = code.contains("wb-manager") || code.contains("mkdir");
        assert!(is_silent || !run.out.is_empty(), "{code}\n{}{}", run.out, run.err);
    }
}

/// A process that ends with the test, also if that panics.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server on the page shows an archived page of both collections.
fn serves(job: &Job, path: &str, code: &str) {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one").port();
    let code = code.replace("8080", &port.to_string());
    let server = Command::new("/bin/sh")
        .args(["-ec", &format!("exec {code}")])
        .current_dir(job.0.path())
        .env("PATH", path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _server = Killed(server.expect("it starts"));
    let line = fs::read_to_string(&job.files("index")[0]).expect("an index");
    let page = line.lines().find(|line| line.contains("\"status\": \"200\"")).expect("a page");
    let (head, fields) = page.split_once(" {").expect("JSON");
    let stamp = head.rsplit(' ').next().expect("a time");
    let fields: Value = serde_json::from_str(&format!("{{{fields}")).expect("JSON");
    let begun = Instant::now();
    for collection in ["crawl", "big"] {
        let url = fields["url"].as_str().expect("a URL");
        let target = format!("/{collection}/{stamp}id_/{url}");
        let status = loop {
            match status_of(port, &target) {
                Some(status) => break status,
                None if begun.elapsed() > SOON => panic!("wayback doesn't answer"),
                None => thread::sleep(Duration::from_millis(100)),
            }
        };
        assert!(status.contains(" 200 "), "{target}: {status}");
    }
}

/// Returns the first line of the reply of a server on this machine; `None` without a connection.
fn status_of(port: u16, target: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(SOON)).ok()?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n")
        .ok()?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).ok()?;
    Some(line)
}
