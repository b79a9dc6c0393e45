//! A lab that outlives the crawls of it: crawls may be killed, stopped and resumed.

use crate::util::{Run, sted};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use sted::conf::Conf;
use tempfile::TempDir;

/// A crawl that takes longer than this counts as hanging.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A running lab, and a crawl of it that may be started several times.
pub struct Stand {
    /// The folder of the lab and of the crawl.
    pub folder: TempDir,
    lab: Child,
    stdin: Option<ChildStdin>,
    /// The configuration of the lab.
    pub conf: Conf,
    /// Where the lab is, and its seeds.
    pub ready: Value,
}

impl Stand {
    /// Starts the lab of a configuration, with the politeness that the crawl has, too.
    pub fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!("[job]\nname = \"killed\"\ndirectory = \"job\"\n{text}");
        let conf = Conf::parse(&text, "lab.toml").unwrap_or_else(|error| panic!("{error}"));
        fs::write(folder.path().join("lab.toml"), &text).expect("written");
        let mut command = sted(&["web", "lab.toml"]);
        command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut lab = command.spawn().expect("the program starts");
        let mut line = String::new();
        let stdout = lab.stdout.take().expect("it was asked for");
        BufReader::new(stdout).read_line(&mut line).expect("UTF-8");
        let ready: Value = serde_json::from_str(&line).expect("the lab says where it is");
        let manners = text.split_once("\n[lab]\n").expect("a lab").0;
        let text = format!(
            "{manners}\n[identity]\ncontact = \"crawler@sted.dev\"\n\
             [scope]\nspan = \"host\"\ndomains = [\"test\"]\n\
             [names]\nservers = [{}]\n[tls]\nroots_file = {}\n\
             [connections]\naddresses_allowed = [\"127.0.0.0/8\"]\n",
            ready["dns"], ready["ca"]
        );
        let seeds = format!("[job]\nseeds = {}\n", ready["seeds"]);
        fs::write(folder.path().join("crawl.toml"), text.replacen("[job]\n", &seeds, 1))
            .expect("written");
        let stdin = lab.stdin.take();
        Self { folder, lab, stdin, conf, ready }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn job(&self) -> PathBuf {
        self.path(self.conf.job.directory.to_str().expect("UTF-8"))
    }

    /// Starts or resumes the crawl.
    pub fn start(&self) -> Child {
        let create = |name: &str| File::create(self.path(name)).expect("created");
        let mut command = sted(&["crawl", "crawl.toml"]);
        command.current_dir(self.folder.path()).stdout(create("out")).stderr(create("err"));
        command.spawn().expect("the program starts")
    }

    /// Starts the crawl, and waits until it has logged something new.
    pub fn start_until_it_fetches(&self) -> Child {
        let log = self.job().join("crawl.log");
        let len = || fs::metadata(&log).map_or(0, |data| data.len());
        let (before, begun) = (len(), Instant::now());
        let crawl = self.start();
        while len() <= before {
            assert!(begun.elapsed() < TIME_MAX, "nothing is fetched");
            thread::sleep(Duration::from_millis(5));
        }
        crawl
    }

    /// Ends the lab, so that its files are complete.
    pub fn end_lab(&mut self) {
        drop(self.stdin.take());
        self.lab.wait().expect("a child of ours");
    }

    /// Waits until the crawl has ended by itself.
    pub fn wait(&self, mut crawl: Child) -> Run {
        let ended = ends_within(&mut crawl, TIME_MAX);
        if !ended {
            crawl.kill().expect("a child of ours");
        }
        let run = self.said(&mut crawl);
        assert!(ended, "the crawl did not end within {TIME_MAX:?}: {}", run.err);
        run
    }

    /// Kills the crawl after a time; returns its results if it had ended before.
    pub fn kill_after(&self, mut crawl: Child, moment: Duration) -> Option<Run> {
        if ends_within(&mut crawl, moment) {
            return Some(self.said(&mut crawl));
        }
        crawl.kill().expect("a child of ours");
        let run = self.said(&mut crawl);
        assert!(!run.err.contains("panicked"), "{}", run.err);
        // It may have ended at the same moment.
        run.code.is_some().then_some(run)
    }

    pub fn said(&self, crawl: &mut Child) -> Run {
        let code = crawl.wait().expect("a child of ours").code();
        let text = |name: &str| fs::read_to_string(self.path(name)).expect("UTF-8");
        Run { code, out: text("out"), err: text("err") }
    }

    /// Resumes the crawl with other contents of one of its files, which is restored afterwards.
    pub fn run_with(&self, name: &str, bytes: &[u8]) -> Run {
        let path = self.job().join(name);
        let sound = fs::read(&path).expect("it is there");
        fs::write(&path, bytes).expect("written");
        let run = self.wait(self.start());
        fs::write(&path, sound).expect("written");
        run
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It exits by itself; waiting prevents a zombie process.
        let _ = self.lab.wait();
    }
}

/// Whether the process ends by itself within a time.
pub fn ends_within(child: &mut Child, time: Duration) -> bool {
    let begun = Instant::now();
    loop {
        if child.try_wait().expect("a child of ours").is_some() {
            return true;
        }
        let Some(left) = time.checked_sub(begun.elapsed()) else { return false };
        thread::sleep(left.min(Duration::from_millis(2)));
    }
}

pub fn signal(child: &Child, which: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([which, &id]).status();
    assert!(sent.expect("kill starts").success(), "the child runs");
}
