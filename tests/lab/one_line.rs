//! Crawls that are described by one line, without a configuration file: what is fetched, how they
//! are resumed, and what they refuse.

use super::stand::{Stand, signal};
use crate::util::{Run, sted};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use sted::conf::Conf;
use sted::url::Url;

/// A lab of a few hosts that link to each other.
const LAB: &str = r#"
[politeness]
delay = "5ms"
crawl_delay_max = "60ms"
delay_max = "60ms"
[store]
sync_period = "100ms"
[lab]
directory = "lab"
manifest = false
[web]
preset = "plain"
seed = 5
hosts = 6
seeds = 6
pages = 240
links_per_page = 14
page_bytes = "1KB"
think_time = "5ms"
crawl_delay = "50ms"
robots_deny_share = 0
"#;

/// A crawl that takes longer than this counts as hanging.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A lab, and crawls of it that are started from its folder.
struct Lab(Stand);

impl Lab {
    fn new() -> Self {
        Self(Stand::new(LAB))
    }

    /// The first seed that is a plain http URL, and its host.
    fn seed(&self) -> (String, String) {
        let seeds = self.0.ready["seeds"].as_array().expect("a list");
        let mut seeds = seeds.iter().filter_map(|seed| seed.as_str());
        let seed = seeds.find(|seed| seed.starts_with("http://")).expect("a plain host").to_owned();
        let host = Url::parse(&seed).expect("a URL").view().host().to_owned();
        (seed, host)
    }

    /// What has to be set to reach the lab, and to crawl it fast.
    fn set(&self) -> Vec<String> {
        let ready = &self.0.ready;
        let set = [
            format!("names.servers={}", ready["dns"].as_str().expect("a name server")),
            format!("tls.roots_file={}", ready["ca"].as_str().expect("a file")),
            "connections.addresses_allowed=127.0.0.0/8".to_owned(),
            "politeness.delay=5ms".to_owned(),
            "politeness.delay_factor=1".to_owned(),
            "politeness.delay_max=60ms".to_owned(),
            "politeness.crawl_delay_max=60ms".to_owned(),
            "politeness.address_delay=0s".to_owned(),
            "politeness.domain_delay=0s".to_owned(),
            "retries.retry_wait=1s".to_owned(),
            "store.sync_period=100ms".to_owned(),
            "state.checkpoint_period=1s".to_owned(),
        ];
        set.into_iter().flat_map(|set| ["--set".to_owned(), set]).collect()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = sted(&["crawl"]);
        command.args(arguments).args(["--contact", "crawler@sted.dev"]).args(self.set());
        command.current_dir(self.0.folder.path());
        command
    }

    fn crawl(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments).output().expect("the program starts"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }
}

/// Returns the URLs in the crawl log of a job, without robots.txt and without their port.
fn fetched(job: &Path) -> BTreeSet<String> {
    let log = fs::read_to_string(job.join("crawl.log")).expect("a log");
    let lines = log.lines().filter(|line| !line.starts_with('#'));
    let urls = lines.filter_map(|line| Url::parse(line.split_whitespace().nth(3)?).ok());
    let urls = urls.map(|url| format!("{}{}", url.view().host(), url.view().target()));
    urls.filter(|url| !url.ends_with("/robots.txt")).collect()
}

/// Waits until a crawl has fetched some pages.
fn wait_for_pages(job: &Path, crawl: &mut Child) {
    let began = Instant::now();
    while !fs::read_to_string(job.join("crawl.log")).is_ok_and(|log| log.lines().count() > 8) {
        assert!(began.elapsed() < TIME_MAX, "it fetches nothing");
        assert_eq!(crawl.try_wait().expect("a child of ours"), None, "it ended early");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the arguments of the command that a message names after `to resume it: sted`.
fn printed(text: &str) -> Vec<String> {
    let (_, command) = text.split_once("to resume it: sted ").expect("a command");
    let line = command.lines().next().expect("a line");
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn one_line_archives_one_host_and_is_resumed_after_a_kill() {
    let lab = Lab::new();
    let (seed, host) = lab.seed();
    let whole = lab.crawl(&[&seed, "--out", "whole"]);
    assert_eq!(whole.code, Some(0), "{}{}", whole.out, whole.err);
    let pages = fetched(&lab.path("whole"));
    assert!(pages.len() > 10, "{pages:?}");
    let elsewhere: Vec<_> = pages.iter().filter(|url| !url.starts_with(&host)).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    assert!(whole.out.contains("to look at it"), "{}", whole.out);
    assert!(!whole.out.contains("to resume it"), "nothing is left: {}", whole.out);

    let conf = fs::read_to_string(lab.path("whole/job.toml")).expect("a configuration");
    assert!(conf.starts_with("# Made by: "), "{conf}");
    let parsed = Conf::parse(&conf, "job.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((parsed.job.seeds, parsed.job.name.as_str()), (vec![seed.clone()], &*name(&seed)));
    assert!(!conf.contains("gzip_level"), "only what was set: {conf}");

    // The same line again has nothing left to do; another one is refused, and so is a file.
    let again = lab.crawl(&[&seed, "--out", "whole"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    let other = lab.crawl(&[&seed, "--out", "whole", "--pages", "7"]);
    assert_eq!(other.code, Some(5), "{}", other.err);
    assert!(other.err.contains("limits.pages_max was \"none\" and is now 7;"), "{}", other.err);

    // Tables [[site]] are only in the file, and the line doesn't leave them out.
    let table = format!("\n[[site]]\nhost = {host:?}\nburst = 2\n");
    fs::write(lab.path("whole/job.toml"), conf.clone() + &table).expect("written");
    let without = lab.crawl(&[&seed, "--out", "whole"]);
    assert_eq!(without.code, Some(5), "{}", without.err);
    assert!(without.err.contains("tables [[site]] were added"), "{}", without.err);
    let with = lab.crawl(&["whole/job.toml"]);
    assert_eq!(with.code, Some(0), "{}{}", with.out, with.err);

    // A crawl that is killed is resumed by the command that it printed, from another directory.
    let mut command = lab.command(&[&seed, "--out", "killed"]);
    let mut crawl = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    wait_for_pages(&lab.path("killed"), &mut crawl);
    crawl.kill().expect("a child of ours");
    let run = Run::of(crawl.wait_with_output().expect("it ended"));
    let arguments = printed(&run.err);
    assert_eq!(arguments[0], "crawl");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let resumed = sted(&arguments).current_dir(elsewhere.path()).output().expect("starts");
    let resumed = Run::of(resumed);
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    assert_eq!(fetched(&lab.path("killed")), pages);
    assert_eq!(fs::read_dir(elsewhere.path()).expect("a folder").count(), 0);
}

fn name(seed: &str) -> String {
    let seed = Url::parse(seed).expect("a URL");
    seed.view().authority().replace(':', "-")
}

#[test]
fn seeds_from_stdin_are_kept_and_a_stop_names_the_command() {
    let lab = Lab::new();
    let (seed, host) = lab.seed();
    let text = format!("# seeds\n{seed}\n");
    fs::write(lab.path("list"), &text).expect("written");
    let slow = ["--seeds", "-", "--set", "politeness.delay=50ms"];
    let mut command = lab.command(&slow);
    command.stdin(fs::File::open(lab.path("list")).expect("it is there"));
    let mut crawl = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let job = lab.path("jobs").join(name(&seed));
    wait_for_pages(&job, &mut crawl);
    signal(&crawl, "-TERM");
    let run = Run::of(crawl.wait_with_output().expect("it ends"));
    assert_eq!(run.code, Some(11), "{}{}", run.out, run.err);
    let line = run.out.lines().find(|line| line.starts_with("to resume it")).expect("a command");
    assert!(line.ends_with(&format!("sted crawl {}", job.join("job.toml").display())), "{line}");
    assert_eq!(fs::read_to_string(job.join("seeds.txt")).expect("a copy"), text);
    // With other seeds it would be another crawl.
    fs::write(lab.path("list"), format!("{seed}\nhttp://h9999.test/\n")).expect("written");
    let other = lab.crawl(&["--seeds", "list", "--out", job.to_str().expect("UTF-8")]);
    assert_eq!(other.code, Some(5), "{}", other.err);
    assert!(other.err.contains("--seeds has other URLs"), "{}", other.err);
    let file = job.join("job.toml");
    let fast = ["crawl", file.to_str().expect("UTF-8"), "--set", "politeness.delay=5ms"];
    let rest = Run::of(sted(&fast).output().expect("starts"));
    assert_eq!(rest.code, Some(0), "{}{}", rest.out, rest.err);
    assert!(fetched(&job).iter().all(|url| url.starts_with(&host)));
}
