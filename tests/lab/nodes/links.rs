//! `make cluster-links`: pages with a thousand links each, all to other hosts, by two nodes,
//! the first of which has a core of its own and fills it.

use super::{NAMES, Shared, web};
use crate::trials;
use std::fs;
use std::process::{Command, id};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The most memory of a node. Its budgets sum up to a little more: replies 256 MiB, queues 512,
/// seen URLs 256, robots.txt and the outbox 64 each.
const MEMORY_MAX: u64 = 1 << 30;

/// Pins all threads of a process to a core.
fn pin(process: u32, core: u32) {
    let arguments = ["-acp", &core.to_string(), &process.to_string()];
    let pinned = Command::new("taskset").args(arguments).output().expect("taskset is there");
    assert!(pinned.status.success(), "{pinned:?}");
}

/// Returns a number of a server's monitoring port.
fn number(text: &str, name: &str) -> u64 {
    let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
    value[name].as_u64().unwrap_or_else(|| panic!("{name}: {text}"))
}

/// Returns the largest resident set of a process so far, 0 if it has ended.
fn peak_bytes(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib = line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Law: however much goes to other nodes, the loop's lag stays below 5 ms in 99% of cases, and
/// memory within its budgets.
#[test]
#[ignore = "it takes ten minutes: make cluster-links"]
fn a_thousand_links_a_page() {
    let seconds = trials::asked("STED_LINKS_S").unwrap_or(600);
    let time = Duration::from_secs(seconds);
    let web = web(1_000, 3_000_000, 100, 9)
        .replace("links_per_page = 12", "links_per_page = 1000\nlinks_sigma = 0.0\nlocality = 0.0")
        .replace("page_bytes = \"2KB\"", "page_bytes = \"60KB\"")
        .replace("seeds = 4", "seeds = 1000")
        .replace("checkpoint_period = \"1s\"", "checkpoint_period = \"60s\"")
        .replace("events = \"requests\"", "events = \"none\"\nmanifest = false")
        .replace("[disk]", &format!("[limits]\ntime_max = \"{seconds}s\"\n[disk]"));
    // Lab, server and the second node share the other core.
    pin(id(), 1);
    let mut shared = Shared::new(&web, 2);
    // The defaults: a server that syncs each message can't do more of them.
    shared.more.extend(["cluster.lease=30s", "cluster.batch_wait=5s"].map(str::to_owned));
    (0..2).for_each(|node| shared.start(node));
    let processes: Vec<u32> = shared.nodes.iter().flatten().map(std::process::Child::id).collect();
    pin(processes[0], 0);
    let before = shared.server.monitor("/varz");
    let begun = Instant::now();
    let mut peaks = [0; 2];
    while begun.elapsed() + Duration::from_secs(2) < time {
        sleep(Duration::from_secs(1));
        for (peak, process) in peaks.iter_mut().zip(&processes) {
            *peak = peak_bytes(*process).max(*peak);
        }
    }
    let (after, took) = (shared.server.monitor("/varz"), begun.elapsed().as_secs_f64());
    let status = shared.status();
    shared.wait();
    let a_second = |name: &str| (number(&after, name) - number(&before, name)) as f64 / took;
    println!(
        "to the server {:.0} messages and {:.2} MB a second, from it {:.0} and {:.2}",
        a_second("in_msgs"),
        a_second("in_bytes") / 1e6,
        a_second("out_msgs"),
        a_second("out_bytes") / 1e6,
    );
    println!("{status}");
    let mut lags = Vec::new();
    for (node, peak) in peaks.iter().enumerate() {
        let text = fs::read_to_string(shared.job(node).join("summary.json")).expect("a summary");
        let summary: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let (counts, looping) = (&summary["counts"], &summary["loop"]);
        let lag = looping["lag_us"]["p99"].as_u64().expect("a number");
        println!(
            "node {}: {} pages, {} links, lag 99% {lag} us, at most {} us, peak {} MiB, cpu {}",
            NAMES[node],
            counts["pages"],
            counts["links"],
            looping["lag_us"]["max"],
            peak >> 20,
            looping["cpu"],
        );
        println!("  cut: {}\n{}", counts["cut"], shared.said(node, "err"));
        lags.push(lag);
    }
    assert!(lags[0] < 5_000, "lag of the node with a core of its own: {} us", lags[0]);
    assert!(peaks.iter().all(|peak| *peak < MEMORY_MAX), "{peaks:?} bytes");
}
