//! A crawl of a lab with all that a good citizen has to do: what hosts say of their pages, requests
//! that must be signed, challenges, pages that repeat, budgets. `sted audit` and `sted report` are
//! read.

use super::crawl::Crawl;
use crate::util::{Run, sted};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const CONF: &str = r#"
[job]
name = "citizen"
directory = "job"
[politeness]
burst = 3
delay = "20ms"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[schedule]
policy = "capability"
random_share = 0.1
budget_max = 40
budget_min = 5
budget_top = 10
[retries]
retry_wait = "1s"
retry_wait_max = "2s"
[consent]
purpose = "ai-train"
obey = true
[connections]
open_max = 8
[web]
preset = "plain"
hosts = 60
hosts_per_domain = 3
seeds = 10
pages = 1500
page_bytes = "3KB"
consent_share = 0.5
robots_allow_share = 0.5
redirect_share = 0.05
duplicate_share = 0.1
hostile = ["challenges", "signatures", "signed-robots", "calendar", "facets", "maze"]
"#;

#[test]
fn a_crawl_does_all_that_is_asked_of_it() {
    let keys = tempfile::tempdir().expect("a folder");
    let (pem, document) = (keys.path().join("own.pem"), keys.path().join("own.json"));
    let words = ["key", "new", pem.to_str().expect("UTF-8")];
    let made = Run::of(sted(&words).output().expect("it runs"));
    fs::write(&document, &made.out).expect("written");
    let crawl = Crawl::of(&format!(
        "{CONF}[lab]\ndirectory = \"lab\"\nkeys_file = {document:?}\n[identity.signature]\n\
         sign = \"when-asked\"\nkey = {pem:?}\nagent = \"https://crawler.example\"\n"
    ));
    // A server that shows challenges was given up, which is said.
    assert_eq!(crawl.run.code, Some(12), "{}{}", crawl.run.out, crawl.run.err);

    // Each rule was applied: its outcome is in the log, for the hosts that it is for.
    let mut outcomes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in crawl.log() {
        let host = line.url.split('/').nth(2).and_then(|host| host.split(':').next());
        let host = host.expect("a URL").to_owned();
        *counts.entry(line.outcome.clone()).or_default() += 1;
        outcomes.entry(line.outcome).or_default().insert(host);
    }
    let of = |outcome: &str| outcomes.get(outcome).cloned().unwrap_or_default();
    assert!(of("challenged").iter().all(|host| host == "challenges.test"), "{outcomes:?}");
    assert!(of("challenged").len() == 1 && of("reserved").len() > 5, "{outcomes:?}");
    let signed = ["signatures.test", "signed-robots.test"].map(str::to_owned);
    assert!(of("signature-asked").iter().all(|host| signed.contains(host)), "{outcomes:?}");
    assert!(of("ok").is_superset(&BTreeSet::from(signed)), "they were signed: {outcomes:?}");
    let traps = ["calendar.test", "facets.test", "maze.test"].map(str::to_owned);
    assert_eq!(of("repeats"), BTreeSet::from(traps));

    let summary = crawl.summary();
    assert_eq!(summary["counts"]["given_up"]["challenges"], 1, "{summary}");
    let over = &summary["over_budget"];
    assert_eq!(over["waiting"], 0, "{over}");
    assert!(over["pass"].as_u64() > Some(3), "{over}");

    // The audit has nothing to complain of, and the report has the same counts as the log.
    let job = crawl.job();
    let job = job.to_str().expect("UTF-8");
    let run = |arguments: &[&str]| Run::of(sted(arguments).output().expect("it starts"));
    let audit = run(&["audit", job]);
    assert_eq!(audit.code, Some(0), "{}{}", audit.out, audit.err);
    let report = run(&["report", job]);
    assert_eq!(report.code, Some(0), "{}", report.err);
    assert!(report.out.contains("\nWhat was said of the use of pages\n"), "{}", report.out);
    for outcome in ["challenged", "reserved", "repeats"] {
        let line = report.out.lines().find(|line| line.trim_start().starts_with(outcome));
        let count = line.and_then(|line| line.split_whitespace().nth(1));
        let count = count.and_then(|count| count.replace(',', "").parse().ok());
        assert_eq!(count, Some(counts[outcome]), "{outcome}: {}", report.out);
    }
}
