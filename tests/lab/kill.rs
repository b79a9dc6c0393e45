//! Crawls by real processes that are killed, stopped or short of disk space, and resume: nothing is
//! lost, nothing is archived twice, and the lab sees no gap shorter than promised.
//!
//! The lab is a separate process that outlives the crawls. `make kill N=100` kills more often.

use super::compare::Facts;
use super::crawl::{Crawl, Expected};
use super::polite::Watch;
use super::replay::replays_elsewhere;
use super::stand::{Stand, signal};
use super::{none, read_back};
use crate::trials;
use crate::util::Run;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use sted::ground::frame;
use sted::ground::random::Random;

/// The politeness of all crawls here, and their limits.
const MANNERS: &str = r#"
[politeness]
burst = 1
delay = "20ms"
delay_factor = 2
delay_max = "60ms"
crawl_delay_max = "60ms"
address_delay = "0s"
domain_delay = "0s"
robots_retry_wait = "1s"
[retries]
retry_wait = "1s"
retry_wait_max = "1s"
[store]
sync_period = "100ms"
[state]
checkpoint_period = "1s"
[disk]
free_min = "0B"
full_wait = "20ms"
"#;

/// Some three hundred URLs on eight hosts: two seconds for a crawl that is not killed.
const WEB: &str = r#"
[lab]
directory = "lab"
events = "requests"
[web]
preset = "plain"
hosts = 8
seeds = 3
pages = 280
links_per_page = 12
page_bytes = "2KB"
think_time = "6ms"
think_time_sigma = 0.5
tls_share = 0.3
requests_per_connection = ["1 for 0.3", "5 for 0.3"]
silent_close_share = 0.5
redirect_share = 0.05
not_found_share = 0.05
robots_part_share = 0.3
robots_delay_share = 0.2
crawl_delay = "50ms"
"#;

/// The number of kills in every run of the tests.
const KILLS: u64 = 25;
/// The number of kills of one crawl.
const KILLS_A_CRAWL: u64 = 15;
/// The latest time of a kill, in milliseconds after the start.
const MOMENT_MAX_MS: u64 = 400;

#[test]
fn killed_at_any_moment_a_crawl_comes_to_its_end() {
    kill_often(KILLS);
}

/// `make kill N=100`.
#[test]
#[ignore = "more kills are done by hand: make kill"]
fn killed_more_often() {
    kill_often(trials::asked("STED_KILL_N").unwrap_or(100));
}

/// Returns the settings of a crawl with so many threads that archive.
fn manners(threads: u64) -> String {
    MANNERS.replacen("[store]\n", &format!("[store]\nthreads = {threads}\n"), 1)
}

fn kill_often(kills: u64) {
    let mut draw = Random(kills);
    let (mut left, mut web) = (kills, 0);
    while left > 0 {
        web += 1;
        // Every other crawl archives on a thread of its own.
        let stand = Stand::new(&format!("{}{WEB}seed = {web}\n", manners((web + 1) % 2)));
        let mut killed = 0;
        let run = loop {
            let crawl = stand.start();
            if killed == left.min(KILLS_A_CRAWL) {
                break stand.wait(crawl);
            }
            let moment = Duration::from_millis(draw.below(MOMENT_MAX_MS));
            match stand.kill_after(crawl, moment) {
                None => killed += 1,
                Some(run) => break run,
            }
        };
        assert!(killed > 0, "web {web}: it was over before the first kill");
        left -= killed;
        eprintln!("web {web}: {killed} kills");
        stand.judge(run, killed);
    }
}

/// An orderly stop, one that is not waited for, and the end.
#[test]
fn a_crawl_that_was_stopped_goes_on() {
    let slow = WEB.replace("think_time = \"6ms\"", "think_time = \"150ms\"");
    // A server that is working on a request learns only afterwards that its client is gone: here
    // the rest after a crash is longer than that.
    let manners = MANNERS.replace("delay_max = \"60ms\"", "delay_max = \"1s\"");
    let stand =
        Stand::new(&format!("{manners}{slow}pages = 60\n").replacen("pages = 280\n", "", 1));
    let crawl = stand.start_until_it_fetches();
    signal(&crawl, "-TERM");
    let run = stand.wait(crawl);
    assert_eq!(run.code, Some(11), "{}", run.err);
    let crawl = stand.start_until_it_fetches();
    // Two signals of one kind could be merged into one.
    signal(&crawl, "-TERM");
    signal(&crawl, "-INT");
    let run = stand.wait(crawl);
    assert_eq!(run.code, Some(13), "{}", run.err);
    let run = stand.wait(stand.start());
    stand.judge(run, 1);
}

/// Every state file with a changed bit, or of a newer version, is refused with its name and
/// position, and nothing is written.
#[test]
fn a_damaged_state_is_refused() {
    let stand = Stand::new(&format!("{MANNERS}{WEB}"));
    let crawl = stand.start_until_it_fetches();
    signal(&crawl, "-TERM");
    assert_eq!(stand.wait(crawl).code, Some(11));
    let sound = files_below(&stand.job(), "state");
    assert!(sound.len() > 2, "{:?}", sound.iter().map(|(name, _)| name).collect::<Vec<_>>());
    let mut draw = Random(1);
    for (name, bytes) in &sound {
        let last = bytes.len() as u64 - 1;
        for place in [0, draw.below(last), draw.below(last), last] {
            let mut changed = bytes.clone();
            changed[place as usize] ^= 1 << draw.below(8);
            let run = stand.run_with(name, &changed);
            assert_eq!(run.code, Some(5), "{name} at {place}: {}", run.err);
            let says = run.err.contains(&**name) && run.err.contains("at byte ");
            assert!(says && !run.err.contains("panicked"), "{name} at {place}: {}", run.err);
        }
        let run = stand.run_with(name, &newer(bytes));
        assert_eq!(run.code, Some(5), "{name}: {}", run.err);
        assert!(run.err.contains(&**name) && run.err.contains("newer sted"), "{}", run.err);
    }
    assert!(files_below(&stand.job(), "state") == sound, "what was refused was left alone");
    let run = stand.wait(stand.start());
    stand.judge(run, 0);
}

/// Returns the same file as a version with newer formats would write it.
fn newer(bytes: &[u8]) -> Vec<u8> {
    if let Some((_, json)) = bytes.strip_prefix(b"sted checkpoint ").and_then(halves) {
        let [this, next] = [0, 1].map(|more| format!("\"format\":{},", frame::FORMAT + more));
        assert!(json.contains(&this), "{json}");
        let json = json.replacen(&this, &next, 1);
        let sum = libdeflater::crc32(json.trim_end().as_bytes());
        return format!("sted checkpoint {} {sum:08x}\n{json}", frame::FORMAT + 1).into_bytes();
    }
    let (opening, used) = frame::parse(bytes, 0).expect("a file of ours");
    let mut payload = opening.payload.to_vec();
    // The version follows "sted" and the role.
    payload[5..7].copy_from_slice(&(frame::FORMAT + 1).to_le_bytes());
    let mut newer = Vec::new();
    frame::push(opening.kind, &payload, &mut newer);
    newer.extend_from_slice(&bytes[used..]);
    newer
}

/// Splits a text after its first line.
fn halves(text: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(text).ok()?.split_once('\n')
}

/// Ways to get a small disk that grows later: the command that runs the script, what makes `job`
/// small, what makes room for a crawl that is started later, and what makes room for one that is
/// running. Where mounting is not allowed, a limit on the size of files is used instead.
const SMALL: [[&str; 4]; 3] = [
    ["unshare -rm", MOUNT, GROW, GROW],
    ["unshare -m", MOUNT, GROW, GROW],
    ["env", "ulimit -Sf 320", "ulimit -Sf unlimited", "prlimit --pid $crawl --fsize=unlimited:"],
];
const MOUNT: &str = "mount -t tmpfs -o size=160k none job";
const GROW: &str = "mount -o remount,size=64m none job";

/// Returns the first way that works on this machine.
fn small_disk() -> [&'static str; 4] {
    let works = |[runner, make, ..]: &[&str; 4]| {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("job")).expect("created");
        let mut words = runner.split(' ');
        let mut shell = Command::new(words.next().expect("a program"));
        shell.args(words).args(["sh", "-c", make]).current_dir(folder.path());
        shell.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    SMALL.into_iter().find(works).expect("a shell can limit the size of files")
}

/// A crawl that stopped because its disk was full resumes when there is room; one that waits
/// continues by itself.
#[test]
fn a_full_disk_costs_time_only() {
    let [runner, make, grow, grow_running] = small_disk();
    let stops = format!(
        "{make}
        \"$0\" crawl crawl.toml >>out 2>>err; echo $? >>codes
        {grow}
        \"$0\" crawl crawl.toml >>out 2>>err; echo $? >>codes
        cp -a job kept"
    );
    let waits = format!(
        "{make}
        \"$0\" crawl crawl.toml >>out 2>>err & crawl=$!
        until grep -q full err || ! kill -0 $crawl; do sleep 0.05; done
        sleep 0.2; kill -0 $crawl && {grow_running}
        wait $crawl; echo $? >>codes
        {grow}
        cp -a job kept"
    );
    let (stops, waits) = (&*stops, &*waits);
    let scripts = [("stop", 0, stops), ("wait", 0, waits), ("stop", 1, stops), ("wait", 1, waits)];
    for (policy, threads, script) in scripts {
        let codes = if policy == "stop" { "3\n0\n" } else { "0\n" };
        let manners = format!("{}full = \"{policy}\"\n", manners(threads));
        let stand = Stand::new(&format!("{manners}{WEB}"));
        fs::create_dir(stand.job()).expect("created");
        let mut words = runner.split(' ');
        let mut shell = Command::new(words.next().expect("a program"));
        shell.args(words).args(["sh", "-c", script, env!("CARGO_BIN_EXE_sted")]);
        shell.current_dir(stand.folder.path()).stderr(Stdio::null());
        shell.status().expect("it ran a moment ago");
        let read = |name: &str| fs::read_to_string(stand.path(name)).expect("it was written");
        let err = read("err");
        assert_eq!(read("codes"), codes, "{policy} by {make}: {err}");
        let names_it = ["no space", "No space", "full", "File too large"];
        assert!(names_it.iter().any(|words| err.contains(words)), "{err}");
        fs::remove_dir_all(stand.job()).expect("the crawl's, or empty below the mount");
        fs::rename(stand.path("kept"), stand.job()).expect("moved");
        stand.judge(Run { code: Some(0), out: String::new(), err }, 1);
    }
}

impl Stand {
    /// Checks the results after the last process; `crashes` of those before it were killed.
    fn judge(mut self, run: Run, crashes: u64) {
        self.end_lab();
        assert_eq!(run.code, Some(0), "{}", run.err);
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().expect("a folder"));
        let crawl = Crawl::left_in(folder, self.conf.clone(), run);
        let facts = Facts::of(&crawl);
        assert!(facts.expected.len() > 50, "{} URLs", facts.expected.len());
        none(&mistakes(&facts, crashes));
        let read = read_back(&crawl);
        assert_eq!(read["lines"], crawl.index().len(), "each line leads to its record");
        if crashes > 0 {
            replays_elsewhere(&crawl);
        }
        let mut watch = Watch::of(&crawl);
        watch.was_killed = crashes > 0;
        none(&watch.double_connections());
        none(&watch.disallowed());
        let (short, rests) = watch.short_rests();
        none(&short);
        assert!(rests > 50, "{rests} rests were looked at");
    }
}

/// Returns all deviations, one per line: every page must be in the archive as often as the lab
/// expects, every URL in the log, none with a record that doesn't exist, and nothing may be
/// requested more often than crashes explain.
fn mistakes(facts: &Facts, crashes: u64) -> Vec<String> {
    let mut mistakes = Vec::new();
    for (url, Expected { outcomes, requests, records, .. }) in &facts.expected {
        let got = facts.got.get(url).cloned().unwrap_or_default();
        let mut wrong = |what: String| mistakes.push(format!("{url}: {what}"));
        if !got.outcome.as_ref().is_some_and(|outcome| outcomes.contains(outcome)) {
            wrong(format!("outcome {:?}, not {outcomes:?}", got.outcome));
        }
        // Rules may be requested again: they are archived as often as they were received.
        let again = if url.ends_with("/robots.txt") { crashes } else { 0 };
        let indexed = got.indexed.len() as u64;
        if !(records.0..=records.1 + again).contains(&indexed) {
            wrong(format!("{indexed} records, not {records:?}"));
        }
        if !(requests.0..=requests.1 + crashes).contains(&got.requests) {
            wrong(format!("{} requests, not {requests:?}, after {crashes} crashes", got.requests));
        }
        // The line of a fetch may be lost; that of its replay doesn't have the record's position.
        if !got.logged.is_subset(&got.indexed) {
            wrong(format!("log {:?}, index {:?}", got.logged, got.indexed));
        }
    }
    let strangers = facts.got.keys().filter(|url| !facts.expected.contains_key(*url));
    mistakes.extend(strangers.map(|url| format!("{url}: nobody could know it")));
    mistakes
}

/// Returns the files below a folder of `root`, by name.
fn files_below(root: &Path, folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root.join(folder)).expect("a folder") {
        let entry = entry.expect("readable");
        let name = format!("{folder}/{}", entry.file_name().to_str().expect("UTF-8"));
        if entry.path().is_dir() {
            all.extend(files_below(root, &name));
        } else {
            all.push((name, fs::read(entry.path()).expect("readable")));
        }
    }
    all.sort();
    all
}
