//! Archives replayed by tools of other projects: warcio, FastWARC, and pywb with two indexes.
//!
//! The archives of crawls that were killed are replayed in [`super::kill`].

use super::ask_python;
use super::crawl::Crawl;
use serde_json::Value;
use std::collections::BTreeMap;

/// Pages with all framings and codings, many of them alike.
const WEB: &str = r#"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[lab]
directory = "lab"
[web]
preset = "plain"
hosts = 6
seeds = 3
pages = 200
page_bytes = "2KB"
chunked_share = 0.5
gzip_share = 0.3
duplicate_share = 0.4
redirect_share = 0.05
not_found_share = 0.05
"#;

/// Every response and every revisit replays, with the crawl's index and with one made by pywb.
#[test]
fn every_capture_replays_elsewhere() {
    let plain = replays_elsewhere(&Crawl::of(&format!("[store]\nrevisits_max = 0\n{WEB}")));
    assert_eq!(plain["revisits"], 0, "{plain}");
    let counts = replays_elsewhere(&Crawl::of(WEB));
    for kind in ["revisits", "chunked", "chunked_revisits"] {
        assert!(counts[kind].as_u64() > Some(5), "some {kind}: {counts}");
    }
    eprintln!("plain: {plain}\nwith revisits: {counts}");
}

/// A crawl that comes back to pages that change archives their versions: each replays at its time,
/// and so does each reply 304, which shows the version that the page still had.
#[test]
fn every_version_replays_elsewhere() {
    let web = WEB.replace("duplicate_share = 0.4", "duplicate_share = 0.1");
    let crawl = Crawl::of(&format!(
        "[recrawl]\npolicy = \"uniform\"\ninterval_min = \"2s\"\ninterval_max = \"1m\"\n\
         [limits]\ntime_max = \"45s\"\n{web}change_interval = \"20s\"\nappear_share = 0\n"
    ));
    let mut versions: BTreeMap<String, usize> = BTreeMap::new();
    for line in crawl.log().into_iter().filter(|line| line.outcome == "ok") {
        *versions.entry(line.url).or_default() += 1;
    }
    let most = versions.values().max();
    assert!(most > Some(&2), "several versions of a page: {most:?} of {}", versions.len());
    let counts = replays_elsewhere(&crawl);
    for kind in ["unmodified", "revisits"] {
        assert!(counts[kind].as_u64() > Some(20), "some {kind}: {counts}");
    }
    eprintln!("several versions: {counts}");
}

/// Replays all of an archive; returns the counts of its records.
pub fn replays_elsewhere(crawl: &Crawl) -> Value {
    let counts = ask_python("replay", crawl);
    let number = |name: &str| counts[name].as_u64().expect("a number");
    let captures = number("responses") + number("revisits");
    assert!(captures > 50, "{counts}");
    assert_eq!((number("ours"), number("own")), (captures, captures), "all replay: {counts}");
    counts
}
