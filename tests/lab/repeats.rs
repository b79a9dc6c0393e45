//! Hosts of the lab that show the same page under ever new URLs end by themselves, and nothing else
//! is left out.

use super::crawl::Crawl;
use std::collections::BTreeMap;

const CONF: &str = r#"
[job]
name = "repeats"
directory = "job"
[politeness]
burst = "server"
delay = "0s"
delay_factor = 0
address_delay = "0s"
domain_delay = "0s"
[web]
preset = "plain"
hosts = 20
seeds = 20
pages = 2000
duplicate_share = 0.2
hostile = ["calendar", "facets", "maze"]
[lab]
directory = "lab"
events = "requests"
"#;

/// The most requests that a host gets whose pages are alike.
const REQUESTS_MAX: usize = 100;

#[test]
fn hosts_that_repeat_end_within_a_hundred_requests() {
    let crawl = Crawl::of(CONF);
    assert_eq!(crawl.run.code, Some(0), "{}{}", crawl.run.out, crawl.run.err);
    let mut hosts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut pages = 0;
    for line in crawl.log() {
        let host = line.url.split('/').nth(2).and_then(|host| host.split(':').next());
        let host = host.expect("a URL").to_owned();
        let is_trap = ["calendar.test", "facets.test", "maze.test"].contains(&&*host);
        let (asked, left_out) = hosts.entry(host).or_default();
        match &*line.outcome {
            "repeats" => *left_out += 1,
            _ => *asked += 1,
        }
        pages += usize::from(!is_trap && line.outcome == "ok");
    }
    for name in ["calendar.test", "facets.test", "maze.test"] {
        let (asked, left_out) = hosts.remove(name).expect("it was crawled");
        assert!(
            (40..=REQUESTS_MAX).contains(&asked) && left_out > 0,
            "{name}: {asked}, {left_out}"
        );
    }
    assert!(hosts.values().all(|(_, left_out)| *left_out == 0), "{hosts:?}");
    assert!(pages > 1_900, "{pages} pages");
    let counts = &crawl.summary()["counts"]["repeats"];
    assert_eq!((&counts["slowed"], &counts["ended"]), (&3.into(), &3.into()), "{counts}");
}

/// Pages of random words repeat nothing. A limit of pages ends their host, and no other.
#[test]
fn a_host_of_random_words_ends_at_its_limit() {
    let limits = "[limits]\npages_per_server_max = 300\n";
    let conf = CONF.replace(r#""calendar", "facets", "maze""#, r#""babble""#);
    let crawl = Crawl::of(&format!("{conf}{limits}"));
    assert_eq!(crawl.run.code, Some(0), "{}{}", crawl.run.out, crawl.run.err);
    let (mut babble, mut others, mut left) = (0, 0, 0);
    for line in crawl.log() {
        let count = match line.url.contains("//babble.test") {
            true if line.outcome == "ok" => &mut babble,
            false if line.outcome == "ok" => &mut others,
            true => &mut left,
            false => continue,
        };
        *count += 1;
        assert_ne!(line.outcome, "repeats", "{}", line.url);
    }
    // Its robots.txt is no page.
    assert_eq!((babble, left > 0), (301, true), "{left}");
    assert!(others > 1_900, "{others} pages");
}

/// With `end_after = "none"` nothing is left out: the crawl ends at its limit.
#[test]
fn repeats_are_fetched_if_the_operator_wants_them() {
    let limits = "[limits]\npages_max = 2600\n[repeats]\nend_after = \"none\"\n";
    let crawl = Crawl::of(&format!("{CONF}{limits}"));
    assert_eq!(crawl.run.code, Some(14), "{}{}", crawl.run.out, crawl.run.err);
    assert!(crawl.log().iter().all(|line| line.outcome != "repeats"));
}
