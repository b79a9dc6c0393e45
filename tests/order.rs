//! The order of fetches, read off the crawl log: ranks depend on what servers do.

use crate::scenario;
use sted::store::log;

/// Returns the pages of a crawl in the order in which they were completed, without robots.txt.
fn order(text: &str) -> Vec<String> {
    let log = scenario::log_of(text);
    let lines = std::str::from_utf8(&log).expect("UTF-8").lines();
    let urls = lines.map(|line| log::parse(line).expect("a line of the log").url.to_owned());
    urls.filter(|url| !url.ends_with("/robots.txt") && !url.ends_with("/rules")).collect()
}

fn place(order: &[String], url: &str) -> usize {
    order.iter().position(|other| other == url).unwrap_or_else(|| panic!("{url} in {order:?}"))
}

/// One request per connection, each with its own conversation.
const ALONE: &str = "conf connections.open_max = 1\nconf politeness.burst = 1\n\
                     conf connections.idle_timeout = \"0s\"\n";

/// A server whose bodies exceed the limit counts as slow as they arrive, not as infinitely fast.
#[test]
fn the_time_of_a_body_that_is_cut_off_counts() {
    let mut text = format!(
        "{ALONE}conf schedule.policy = \"performance\"\nconf politeness.robots = false\n\
         conf fetch.body_bytes_max = \"64KiB\"\nhost slow.test\n"
    );
    for page in 1..=3 {
        text += &format!(
            "seed http://slow.test/{page}\non connection\n  request /{page}\n\
             raw HTTP/1.1 200 OK\\r\\n\\r\\n\n  wait 900ms\n  fill 200000\n  close\n"
        );
    }
    text += "host swift.test\n";
    for page in 1..=3 {
        text += &format!(
            "seed http://swift.test/{page}\non connection\n  request /{page}\n  reply 200 text x\n"
        );
    }
    let order = order(&text);
    let (slow, swift) = ("http://slow.test:8080/2", "http://swift.test:8080/3");
    assert!(place(&order, swift) < place(&order, slow), "{order:?}");
}

/// A server whose robots.txt is on another server ranks by what waits for it there. (Servers count
/// as fast until they have been measured, so that only quality decides.)
#[test]
fn a_robots_txt_that_is_elsewhere_is_worth_what_waits_for_it() {
    for policy in ["quality", "capability"] {
        let mut text = format!(
            "{ALONE}conf schedule.policy = \"{policy}\"\n\
             conf schedule.connect_time_new = \"1ms\"\n\
             conf schedule.response_time_new = \"1ms\"\n\
             seed http://a.test/\nhost a.test\n\
             on connection\n  request /robots.txt\n  reply 301 to http://b.test:8080/rules\n\
             on connection\n  request /\n  reply 200 text x\n\
             host b.test\non connection\n  request /rules\n  reply 404\n\
             host c.test\non connection\n  request /robots.txt\n  reply 404\n"
        );
        for page in 1..=4 {
            text += &format!(
                "seed http://c.test/{page}\n\
                 on connection\n  request /{page}\n  reply 200 text x\n"
            );
        }
        let order = order(&text);
        let (waits, last) = ("http://a.test:8080/", "http://c.test:8080/4");
        assert!(place(&order, waits) < place(&order, last), "{policy}: {order:?}");
    }
}

/// Under "yield" the visit to a server that turns out to be slow ends when another offers more, and
/// goes on later. Under "capability" it takes all it may.
#[test]
fn a_visit_ends_early_if_another_server_offers_more() {
    for (policy, first) in [("capability", "slow"), ("yield", "swift")] {
        let mut text = format!(
            "conf connections.open_max = 1\nconf politeness.burst = \"server\"\n\
             conf politeness.robots = false\nconf politeness.delay_factor = 0\n\
             conf connections.idle_timeout = \"0s\"\nconf pipeline.enabled = false\n\
             conf politeness.delay = \"0s\"\nconf schedule.policy = \"{policy}\"\n"
        );
        for (host, pages) in [("slow", 1..=4), ("swift", 1..=4)] {
            text += &format!("host {host}.test\n");
            for page in pages.clone() {
                text += &format!("seed http://{host}.test/{page}\n");
            }
            // The slow server is visited twice if its first visit ends early.
            let visits: Vec<_> = match (host, policy) {
                ("slow", "yield") => vec![1..=1, 2..=4],
                _ => vec![pages],
            };
            for visit in visits {
                text += "on connection\n";
                for page in visit {
                    let wait = if host == "slow" { "  wait 900ms\n" } else { "" };
                    text += &format!("  request /{page}\n{wait}  reply 200 text x\n");
                }
            }
        }
        let order = order(&text);
        assert_eq!(order.len(), 8, "{order:?}");
        let other = if first == "slow" { "swift" } else { "slow" };
        let (last, next) =
            (format!("http://{first}.test:8080/4"), format!("http://{other}.test:8080/2"));
        assert!(place(&order, &last) < place(&order, &next), "{policy}: {order:?}");
    }
}
