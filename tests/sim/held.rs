//! The memory of replies: connections that it has no room for wait, but not for one another.

use super::ms;
use super::stand::Plan;
use std::time::Duration;
use sted::study::web::{Settings, Spread, TimeSpread};

/// Servers that take about ten seconds to send a page, so that the crawler waits for them and not
/// they for the crawler.
fn slow(chunked: f64) -> Settings {
    Settings {
        hosts: 32,
        seeds: 32,
        pages: 128,
        links: Spread { median: 3_000.0, sigma: 0.3 },
        page_bytes: Spread { median: 3e6, sigma: 0.3 },
        rate: Spread { median: 3e5, sigma: 0.0 },
        round_trip: TimeSpread { median: ms(20), sigma: 0.0 },
        chunked,
        ..Settings::default()
    }
}

/// Law: where memory has room for a few replies, a few are received at once. If one connection at
/// a time could read, others would wait for its server although their own replies had arrived.
#[test]
fn little_memory_does_not_make_all_wait_for_one_slow_server() {
    // A chunked body is stored twice for the archive: with its framing and without.
    let cases = [(0.0, "none", "2MiB"), (1.0, "none", "2MiB"), (1.0, "warc", "4MiB")];
    for (chunked, format, little) in cases {
        let took = |buffers: &str| -> (Duration, u64) {
            let mut plan = Plan::new(slow(chunked)).with(&[
                &format!("memory.buffers = {buffers:?}"),
                &format!("store.format = {format:?}"),
                "fetch.body_bytes_max = \"1MiB\"",
                "fetch.decoded_bytes_max = \"1MiB\"",
                "politeness.robots = false",
            ]);
            plan.record = false;
            let crawl = plan.run();
            assert_eq!(crawl.counts.pages, 128);
            (crawl.took, crawl.counts.pauses)
        };
        let (roomy, pauses) = took("64MiB");
        assert_eq!(pauses, 0);
        let (tight, pauses) = took(little);
        println!("{chunked} {format}: {roomy:?}, {tight:?} with {pauses} pauses");
        assert!(pauses > 30, "{pauses} pauses");
        let most = roomy * 3 / 2;
        assert!(tight < most, "chunked {chunked}, {format}: {tight:?}, and {roomy:?} with memory");
    }
}
