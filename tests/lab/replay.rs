//! Archives replayed by tools of other projects: warcio, FastWARC, and pywb with two indexes.
//!
//! The archives of crawls that were killed are replayed in [`super::kill`].

use super::ask_python;
use super::crawl::Crawl;
use serde_json::Value;

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

/// Replays all of an archive; returns the counts of its records.
pub fn replays_elsewhere(crawl: &Crawl) -> Value {
    let counts = ask_python("replay", crawl);
    let number = |name: &str| counts[name].as_u64().expect("a number");
    let captures = number("responses") + number("revisits");
    assert!(captures > 50, "{counts}");
    assert_eq!((number("ours"), number("own")), (captures, captures), "all replay: {counts}");
    counts
}
