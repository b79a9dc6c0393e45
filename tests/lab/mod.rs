//! The lab, crawled by the program as users run it: the results are compared with the lab's
//! manifest, the crawler's politeness with the lab's log.
//!
//! The shipped configurations themselves are tested. The archive is read back in Python, by readers
//! of other projects.

mod again;
mod citizen;
mod compare;
mod consent;
mod crawl;
mod kill;
#[cfg(feature = "cluster")]
mod nodes;
mod one_line;
mod operate;
mod polite;
mod queue;
mod repeats;
mod replay;
mod signing;
mod stand;

use crate::util::{Run, python};
use compare::Facts;
use crawl::{Crawl, shipped};
use polite::Watch;
use serde_json::Value;
use sted::conf::Conf;
use sted::study::web::{Robots, Scheme};

/// The fetched URLs are those of the lab's manifest, all of them are in the archive, and the
/// archive is valid.
#[test]
fn the_quickstart_comes_to_its_manifest() {
    let crawl = Crawl::of_shipped("quickstart");
    assert_eq!(crawl.run.code, Some(0), "{}", crawl.run.err);
    let facts = Facts::of(&crawl);
    assert!(facts.expected.len() > 3_000, "{} URLs", facts.expected.len());
    none(&facts.mistakes());
    let read = read_back(&crawl);
    assert_eq!(read["lines"], crawl.index().len(), "each line leads to its record");
    for kind in ["revisits", "chunked", "robots"] {
        assert!(read[kind].as_u64() > Some(0), "the archive holds some {kind}: {read}");
    }
    let watch = Watch::of(&crawl);
    none(&watch.double_connections());
    none(&watch.disallowed());
    // Only Crawl-delays are promised here.
    none(&watch.short_rests().0);
    eprintln!("quickstart: {} URLs in {:.1?}; {read}", facts.expected.len(), crawl.took);
}

/// Whatever a hostile server does, its URLs have acceptable outcomes, all others are fetched as if
/// it did not exist, and memory stays within its limits.
#[test]
fn hostile_hosts_harm_nobody() {
    let control = Crawl::of(&format!("{}hostile = []\n", shipped("lab")));
    assert_eq!(control.run.code, Some(0), "{}", control.run.err);
    let alone = Facts::of(&control);
    none(&alone.mistakes());
    let crawl = Crawl::of_shipped("lab");
    // Hostile hosts are seeds, most of which fail: the crawl reports that.
    assert_eq!(crawl.run.code, Some(12), "{}", crawl.run.err);
    assert!(crawl.run.out.contains("failed seeds"), "{}", crawl.run.out);
    let facts = Facts::of(&crawl);
    none(&facts.mistakes());
    assert!(alone.of_behaving().len() > 150, "{} URLs", alone.of_behaving().len());
    assert_eq!(facts.of_behaving(), alone.of_behaving(), "as if the others weren't there");
    let read = read_back(&crawl);
    assert!(read["truncated"].as_u64() > Some(0), "the archive holds cut bodies: {read}");
    let watch = Watch::of(&crawl);
    none(&watch.double_connections());
    none(&watch.disallowed());
    let (hasty, retries) = watch.hasty_retries();
    none(&hasty);
    assert!(retries >= 3, "two pages and a robots.txt are asked for again");
    bombs_are_defused(&crawl);
    memory_is_bounded(&control, &crawl);
}

/// Each of the six bombs was cut at the limit; otherwise the count of decoded bytes would be
/// larger.
fn bombs_are_defused(crawl: &Crawl) {
    let counts = &crawl.summary()["counts"];
    let (cut, text) = (&counts["cut"]["codingTooLarge"], counts["text_bytes"].as_u64());
    assert!(cut.as_u64() >= Some(6), "{counts}");
    let cap = crawl.conf.fetch.decoded_bytes_max as u64;
    assert!(text < Some(cap * 7), "{counts}");
}

/// Hostile hosts may cost the memory that the configuration allows, and no more.
fn memory_is_bounded(control: &Crawl, crawl: &Crawl) {
    let caps = caps_bytes(&crawl.conf);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let (alone, hostile) = (control.peak_bytes, crawl.peak_bytes);
    eprintln!(
        "lab: peak {:.1} MiB with hostile hosts, {:.1} without, caps {:.1}; {:.1?}",
        mib(hostile),
        mib(alone),
        mib(caps),
        crawl.took
    );
    assert!(alone > 1 << 20, "the memory of a program was seen");
    assert!(hostile <= alone + caps, "{hostile} bytes, control {alone}, caps {caps}");
}

/// Returns the memory that may be used: buffered replies, one more body and one decoded body that
/// are being handled, and the tables, at the cost per entry given in `conf/reference.toml`.
fn caps_bytes(conf: &Conf) -> u64 {
    let memory = &conf.memory;
    let tables = [
        (memory.urls_max, 100),
        (memory.seen_max, 10),
        (memory.servers_max, 200),
        (conf.store.revisits_max, 100),
    ];
    let replies = memory.buffers + conf.fetch.body_bytes_max + conf.fetch.decoded_bytes_max;
    let tables: usize = tables.iter().map(|(entries, bytes)| entries * bytes).sum();
    (replies + memory.robots + tables) as u64
}

/// A small web of hosts that share addresses and domains; some use TLS, some are slow, some close
/// after each reply, some ask for a Crawl-delay.
const POLITE: &str = r#"
[job]
name = "polite"
directory = "job"

[politeness]
burst = 1
delay = "150ms"
delay_factor = 3
address_visits_max = 1
address_delay = "60ms"
domain_visits_max = 1
domain_delay = "40ms"

[lab]
directory = "lab"
events = "requests"

[web]
preset = "plain"
seed = 2
hosts = 12
seeds = 12
pages = 84
hosts_per_domain = 3
hosts_per_address = 2
page_bytes = "2KB"
think_time = "40ms"
think_time_sigma = 0.8
think_jitter = 0
tls_share = 0.4
requests_per_connection = ["1 for 0.3", "3 for 0.3"]
silent_close_share = 0.5
redirect_share = 0.1
not_found_share = 0.1
robots_allow_share = 0.2
robots_part_share = 0.3
robots_delay_share = 0.3
robots_deny_share = 0.1
crawl_delay = "400ms"
"#;

/// Large coded pages of many hosts, which arrive together.
const CODED: &str = r#"
[job]
directory = "job"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[lab]
directory = "lab"
[web]
preset = "bench"
hosts = 40
seeds = 40
pages = 400
page_bytes = "190KB"
gzip_share = 1
requests_per_connection = ["1 for 1"]
"#;

/// A page that the budget of a whole turn lets be decoded in one call is so: it waits for a turn
/// that has that budget, however many pages came before it.
#[test]
fn coded_pages_are_decoded_in_one_call() {
    for threads in [0, 1] {
        let crawl = Crawl::of(&format!("[store]\nthreads = {threads}\n{CODED}"));
        assert_eq!(crawl.run.code, Some(0), "{}", crawl.run.err);
        let summary = crawl.summary();
        assert_eq!(summary["counts"]["pages"], 400);
        assert_eq!(summary["loop"]["cpu"]["stages"]["decode"]["calls"], 400);
    }
}

/// A server has one connection at a time and gets the promised rests, robots.txt included, by the
/// lab's log alone.
#[test]
fn manners_are_seen_from_outside() {
    let crawl = Crawl::of(POLITE);
    // Every host is a seed, even those that disallow everything: these seeds fail.
    assert_eq!(crawl.run.code, Some(12), "{}", crawl.run.err);
    assert!(crawl.run.out.contains("robots-denied"), "{}", crawl.run.out);
    none(&Facts::of(&crawl).mistakes());
    let watch = Watch::of(&crawl);
    none(&watch.double_connections());
    none(&watch.disallowed());
    for rules in [Robots::None, Robots::Part, Robots::Delay, Robots::Deny] {
        assert!(watch.hosts().any(|host| host.robots == rules), "a host with {rules:?}");
    }
    for scheme in [Scheme::Http, Scheme::Https] {
        assert!(watch.hosts().filter(|host| host.scheme == scheme).count() > 2, "{scheme:?}");
    }
    assert_eq!(watch.hosts_asked(), watch.hosts().count());
    let (short, servers) = watch.short_rests();
    none(&short);
    let (short, addresses) = watch.short_rests_of_addresses();
    none(&short);
    let (short, domains) = watch.short_rests_of_domains();
    none(&short);
    assert!(servers > 40 && addresses > servers && domains > addresses, "rests were looked at");
    eprintln!("polite: {servers} rests of servers in {:.1?}", crawl.took);
    watch_sees_bad_manners(watch);
}

/// The same log with doubled promises, or with a connection that never closes, is reported.
fn watch_sees_bad_manners(mut watch: Watch) {
    let politeness = &mut watch.conf.politeness;
    politeness.delay *= 2;
    politeness.address_delay *= 20;
    politeness.domain_delay *= 20;
    assert!(!watch.short_rests().0.is_empty());
    assert!(!watch.short_rests_of_addresses().0.is_empty());
    assert!(!watch.short_rests_of_domains().0.is_empty());
    watch.events.retain(|event| event.what != crawl::What::Close);
    assert!(!watch.double_connections().is_empty());
    let first = watch.events.iter().position(|event| matches!(event.what, crawl::What::Request(_)));
    watch.events.remove(first.expect("a request"));
    assert_eq!(watch.disallowed().len(), 1, "robots.txt did not come first");
}

/// Reads the archive of a crawl by its index; returns counts of its contents.
fn read_back(crawl: &Crawl) -> Value {
    ask_python("read_back", crawl)
}

fn ask_python(script_name: &str, crawl: &Crawl) -> Value {
    let mut script = python(&format!("lab/{script_name}.py"));
    let run = Run::of(script.arg(crawl.job()).output().expect("python starts"));
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    serde_json::from_str(&run.out).expect("counts as JSON")
}

/// Panics with the first mistakes, if there are any.
fn none(mistakes: &[String]) {
    let first = &mistakes[..mistakes.len().min(20)];
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), first.join("\n"));
}
