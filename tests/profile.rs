//! The profile command as a process: with the lab over real sockets, and what it refuses.

use crate::util::{Run, lacks, sted};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CONF: &str = r#"
[profile]
directory = "DIR/profile"
connections = [1, 4]
step_time = "1s"
warm_up = "200ms"
repeats = 2
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[store]
format = "none"
[lab]
[web]
preset = "plain"
hosts = 40
seeds = 40
pages = 20_000
tls_share = 1
think_time = "5ms"
"#;

const ONE_STEP: &str = r#"
[profile]
directory = "DIR/profile"
connections = [1]
step_time = "1s"
step_pages = 20
warm_up = "0s"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[store]
format = "none"
[lab]
[web]
preset = "plain"
hosts = 2
seeds = 2
pages = 20_000
think_time = "5ms"
"#;

fn run(folder: &Path, more: &str) -> Run {
    run_with(folder, more, &[])
}

fn run_with(folder: &Path, more: &str, flags: &[&str]) -> Run {
    let text = CONF.replace("DIR", folder.to_str().expect("UTF-8")) + more;
    let path = folder.join("profile.toml");
    fs::write(&path, text).expect("writable");
    let profile = ["profile", path.to_str().expect("UTF-8")];
    Run::of(sted(&profile).args(flags).output().expect("starts"))
}

/// Steps with more connections fetch more pages where hosts are slow; every stage that must have
/// worked has its time and its bytes; the CPU times of the stages add up to that of the loop's
/// thread.
#[test]
fn a_profile_of_the_lab_says_what_a_page_takes() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = run(folder.path(), "");
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(done.err.contains("step 4 of 4: 4 connections"), "{}", done.err);
    assert!(
        done.out.contains("connections") && done.out.contains("the median of its repeats"),
        "{}",
        done.out
    );
    let results = folder.path().join("profile");
    let figures = ["throughput.svg", "core.svg", "stages.svg", "lag.svg"];
    for file in figures.into_iter().chain(["report.html", "conf.toml"]) {
        assert!(fs::metadata(results.join(file)).is_ok_and(|file| file.len() > 500), "{file}");
    }
    let csv = fs::read_to_string(results.join("steps.csv")).expect("written");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let [head, one, four, _, again] = &lines[..] else { panic!("{csv}") };
    let value = |row: &[&str], name: &str| -> f64 {
        let column = head.iter().position(|head| *head == name).expect(name);
        row[column].parse().expect("a number")
    };
    assert_eq!((value(four, "repeat"), value(again, "repeat")), (1.0, 2.0));
    assert_eq!((value(four, "connections"), value(again, "connections")), (4.0, 4.0));
    assert!(value(four, "pages") > 1.5 * value(one, "pages"), "{csv}");
    for stage in ["receive", "send", "tls", "http", "links", "url", "seen", "schedule", "store"] {
        assert!(value(four, &format!("{stage}_cpu_ns")) > 0.0, "{stage}: {csv}");
    }
    for stage in ["receive", "send", "links", "url"] {
        assert!(value(four, &format!("{stage}_bytes")) > 0.0, "{stage}: {csv}");
    }
    let by_stage: f64 = (0..head.len())
        .filter(|&at| head[at].ends_with("_cpu_ns"))
        .map(|at| four[at].parse::<f64>().expect("a number"))
        .sum();
    let of_loop = (value(four, "user_us") + value(four, "system_us")) * 1e3;
    assert!((by_stage / of_loop - 1.0).abs() < 0.05, "{by_stage} of {of_loop}");
    assert!(value(four, "metered_share") > 0.95, "what is used is metered: {csv}");
    let metering = value(four, "metering_share");
    assert!(metering > 0.0 && metering < 0.2, "it is counted: {csv}");

    let again = run(folder.path(), "");
    assert_eq!(again.code, Some(5), "{}", again.err);
    assert!(again.err.contains("profile.directory"), "{}", again.err);
}

/// If the machine allows a profiler to sample, the graph shows the loop and its stages.
#[test]
fn a_flame_graph_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = run_with(folder.path(), "", &["--flame"]);
    let results = folder.path().join("profile");
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    if done.out.contains("There is no flame graph: perf") {
        lacks("a_flame_graph_is_drawn", "a profiler that may sample");
        return;
    }
    assert!(done.out.contains("flame.svg"), "{}", done.out);
    let folded = fs::read_to_string(results.join("flame.folded")).expect("written");
    assert!(folded.contains("sted::os::World::run"), "{folded}");
    assert!(fs::read_to_string(results.join("flame.svg")).expect("drawn").contains("</svg>"));
    let report = fs::read_to_string(results.join("report.html")).expect("written");
    assert!(report.contains("flame.svg"), "the report names it");
    assert!(!results.join("perf.data").exists(), "samples are removed");
}

/// A profiler that is missing, that may not sample, that fails later, or that takes no sample: the
/// reason is shown and is in the report, and the profile is complete without the graph.
#[test]
fn a_profile_without_its_flame_graph_is_whole() {
    let cases = [
        ("", "perf: No such file or directory (os error 2); install it", true),
        ("echo 'Access is limited.' >&2; exit 255", "can't sample here: Access is limited.;", true),
        ("exit 7", "perf can't sample here: exit status: 7;", true),
        ("case $* in *--pid*) exit 3;; esac", "perf record: exit status: 3", false),
        ("case $1 in script) exit 5;; esac", "perf script: exit status: 5", false),
        ("true", "perf took no sample of the step", false),
    ];
    for (script, why, is_early) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).expect("a folder");
        if !script.is_empty() {
            fs::write(bin.join("perf"), format!("#!/bin/sh\n{script}\n")).expect("written");
            let can_run = fs::Permissions::from_mode(0o755);
            fs::set_permissions(bin.join("perf"), can_run).expect("set");
        }
        let short = ONE_STEP.replace("DIR", folder.path().to_str().expect("UTF-8"));
        let path = folder.path().join("profile.toml");
        fs::write(&path, short).expect("written");
        let flags = ["profile", path.to_str().expect("UTF-8"), "--flame"];
        let done = Run::of(sted(&flags).env("PATH", &bin).output().expect("starts"));
        assert_eq!(done.code, Some(0), "{script}: {}{}", done.out, done.err);
        let says = done.out.lines().last().unwrap_or_default();
        assert!(says.starts_with("There is no flame graph: ") && says.contains(why), "{says}");
        let early = done.err.find("There will be no flame graph");
        assert_eq!(early.is_some(), is_early, "{}", done.err);
        assert!(early < done.err.find("step 1"), "before the first step: {}", done.err);
        let results = folder.path().join("profile");
        let report = fs::read_to_string(results.join("report.html")).expect("written");
        assert!(report.contains("There is no flame graph: "), "{why}");
        assert!(!results.join("flame.svg").exists() && !results.join("perf.data").exists());
        assert!(fs::metadata(results.join("steps.csv")).is_ok(), "{why}");
    }
}

#[test]
fn what_cannot_be_measured_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let dry = run(folder.path(), "pages_sigma = 0\n[limits]\npages_max = 30");
    assert_eq!(dry.code, Some(2), "{}", dry.err);
    assert!(dry.err.contains("nothing left to fetch within the warm-up"), "{}", dry.err);
}
