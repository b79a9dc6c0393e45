//! The network model compared with times computed by hand.

use super::ms;
use super::stand::Plan;
use std::time::Duration;
use sted::study::sim::Observation;
use sted::study::web::wire::{self, Terms};
use sted::study::web::{Ports, Settings, Spread, TimeSpread, Web};

/// The round-trip time to every host, in milliseconds.
const TRIP_MS: u64 = 100;
/// The initial window, in bytes.
const WINDOW: u64 = 14_600;
/// The tolerance for rounding, in microseconds.
const SLACK_US: u64 = 20;

fn always(time_ms: u64) -> TimeSpread {
    TimeSpread { median: ms(time_ms), sigma: 0.0 }
}

/// A web of one host with `pages` pages of `page_bytes` bytes, and no delay but the distance.
fn far(pages: u32, page_bytes: u64) -> Settings {
    Settings {
        hosts: 1,
        pages,
        links: Spread { median: 0.0, sigma: 0.0 },
        page_bytes: Spread { median: page_bytes as f64, sigma: 0.0 },
        round_trip: always(TRIP_MS),
        ..Settings::default()
    }
}

fn plan(web: Settings) -> Plan {
    Plan::new(web).with(&["politeness.robots = false", "pipeline.enabled = false"])
}

/// Returns the bytes on the wire of a host's root page.
fn wire_bytes(settings: &Settings) -> u64 {
    let web = Web::new(settings.clone(), Ports::default());
    let host = web.host(0);
    let compact = web.compact(&host, 0, true, Duration::ZERO);
    let wire = wire::encode(&compact.reply, &host, Terms::default());
    (wire.bytes.len() - compact.reply.body.len()) as u64 + compact.wire_bytes
}

/// Returns the microseconds that `bytes` bytes take at `rate` bytes per second.
fn at_rate(bytes: u64, rate: u64) -> u64 {
    bytes * 1_000_000 / rate
}

fn assert_near(got: u64, expected: u64, why: &str) {
    assert!(got.abs_diff(expected) <= SLACK_US, "{why}: {got} us, not {expected}");
}

/// TCP takes a round trip, request and reply another one, each further window one more.
#[test]
fn one_page_on_a_fresh_connection() {
    let trip = TRIP_MS * 1_000;
    let at = |bytes: u64, rate: f64| Settings {
        rate: Spread { median: rate, sigma: 0.0 },
        ..far(1, bytes)
    };
    let bytes_of = |bytes| wire_bytes(&at(bytes, 0.0));
    let cases: [(Settings, u64, &str); 9] = [
        (far(1, 2_000), 2 * trip, "a window is enough"),
        (far(1, 30_000), 3 * trip, "14,600 and 29,200 bytes: two rounds"),
        (far(1, 43_000), 3 * trip, "just within two rounds"),
        (far(1, 44_000), 4 * trip, "a third one"),
        (
            Settings { accept_time: always(30), think_time: always(70), ..far(1, 2_000) },
            2 * trip + 100_000,
            "30 ms to accept, 70 ms to think",
        ),
        (Settings { dns_time: always(25), ..far(1, 2_000) }, 2 * trip + 25_000, "a look-up"),
        (Settings { tls: 1.0, ..far(1, 2_000) }, 3 * trip, "TLS 1.3: one more"),
        (
            at(40_000, 100_000.0),
            2 * trip + at_rate(bytes_of(40_000), 100_000),
            "the first window fills the line of 10,000 bytes a round trip",
        ),
        (
            at(40_000, 200_000.0),
            3 * trip + at_rate(bytes_of(40_000) - WINDOW, 200_000),
            "73 ms of a first window, a pause, then the line is full",
        ),
    ];
    for (web, expected, why) in cases {
        let replies = plan(web).run().replies_us();
        assert_eq!(replies.len(), 1, "{why}");
        assert_near(replies[0], expected, why);
    }
}

/// Connections share the crawler's line: first come, first served.
#[test]
fn the_gateway_is_shared() {
    let trip = TRIP_MS * 1_000;
    let (rate, web) = (50_000, Settings { hosts: 2, seeds: 2, pages: 2, ..far(2, 10_000) });
    let one = at_rate(wire_bytes(&web), rate);
    let mut plan = plan(web);
    plan.world.gateway_bytes_per_second = rate;
    let replies = plan.run().replies_us();
    assert_near(replies[0], 2 * trip + one, "the first, as if alone");
    assert_near(replies[1], 2 * trip + 2 * one, "the second waits for the first");
    // Three windows of one connection: none waits for more than the line.
    let web = far(1, 60_000);
    let whole = at_rate(wire_bytes(&web), rate);
    let mut alone = Plan { web, ..plan };
    let replies = alone.run().replies_us();
    assert_near(replies[0], 2 * trip + whole, "the line is never idle");
    alone.world.gateway_bytes_per_second = 10_000_000;
    let replies = alone.run().replies_us();
    let last = at_rate(wire_bytes(&alone.web) - 3 * WINDOW, 10_000_000);
    assert_near(replies[0], 4 * trip + last, "a fast line waits for the windows");
}

/// A lost window arrives a retransmission timeout later, and the next one is half as large.
#[test]
fn losses_cost_a_time_out() {
    let trip = TRIP_MS * 1_000;
    let cases = [
        (2_000, 2 * trip + 200_000, "200 ms, the least there is"),
        (20_000, 3 * trip + 2 * 200_000, "14,600 bytes and 7,300, each late"),
    ];
    for (bytes, expected, why) in cases {
        let mut plan = plan(far(1, bytes));
        plan.world.faults.losses = 1.0;
        let crawl = plan.run();
        assert_near(crawl.replies_us()[0], expected, why);
    }
    let slow = Settings { round_trip: always(300), ..far(1, 2_000) };
    let mut plan = plan(slow);
    plan.world.faults.losses = 1.0;
    assert_near(plan.run().replies_us()[0], 600_000 + 600_000, "two round trips of 300 ms");
}

/// A persistent connection keeps its window for a second; then it starts at the initial size again.
#[test]
fn windows_are_kept_for_a_second() {
    let trip = TRIP_MS * 1_000;
    for (delay, rounds, why) in [("500ms", 1, "29,200 bytes at once"), ("2s", 2, "small again")] {
        let rest = format!("politeness.delay = \"{delay}\"");
        let plan = plan(far(2, 25_000)).with(&["politeness.burst = 1", &rest]);
        let crawl = plan.run();
        let requests = crawl.times_us(|seen| matches!(seen, Observation::Request { .. }));
        let replies = crawl.replies_us();
        assert_eq!(crawl.counts.connections, 1, "it is kept");
        assert_near(replies[0] - requests[0], 3 * trip / 2, "two rounds at first");
        assert_near(replies[1] - requests[1], (rounds - 1) * trip + trip / 2, why);
    }
}

/// Replies one after the other on a persistent connection, and each on its own with HTTP/1.0.
#[test]
fn one_reply_after_the_other() {
    let trip = TRIP_MS * 1_000;
    let kept = plan(far(3, 2_000)).run();
    assert_eq!(kept.counts.connections, 1);
    for (reply, expected) in kept.replies_us().into_iter().zip([2, 3, 4]) {
        assert_near(reply, expected * trip, "a round trip each");
    }
    let closing = plan(Settings { http10: 1.0, ..far(3, 2_000) }).run();
    assert_eq!(closing.counts.connections, 3);
    for (reply, expected) in closing.replies_us().into_iter().zip([2, 4, 6]) {
        assert_near(reply, expected * trip, "two round trips each");
    }
    let web = Settings { think_time: always(40), ..far(12, 2_000) };
    let piped = Plan::new(web).with(&["politeness.robots = false"]).run();
    let replies = piped.replies_us();
    let spans: Vec<u64> = replies.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(
        spans.iter().filter(|span| span.abs_diff(40_000) <= SLACK_US).count() >= 5,
        "{spans:?}"
    );
}

/// An idle connection is closed by its host, half a round trip before the crawler learns of it.
#[test]
fn idle_connections_are_closed() {
    let web = Settings { idle_time: ms(3_000), ..far(2, 2_000) };
    let rest = ["politeness.burst = 1", "politeness.delay = \"5s\""];
    let crawl = plan(web).with(&rest).run();
    let closed =
        crawl.times_us(|seen| matches!(seen, Observation::Closed { by_crawler: false, .. }));
    // The reply left at 150 ms; the crawler sees the close.
    assert_eq!(closed.len(), 1, "{:?}", crawl.observations);
    assert_near(closed[0], 150_000 + 3_000_000 + 50_000, "idle since the last byte left");
    assert_eq!(crawl.counts.connections, 2);
}
