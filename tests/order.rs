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
