//! The presets of 2003 and 2025 have the shares and spreads they claim, drawn on many hosts.

use super::*;
use std::time::Duration;

/// Returns the hosts of a preset with `count` hosts.
fn hosts_of(settings: Settings, count: u32) -> (Web, Vec<Host>) {
    let web = Web::new(Settings { hosts: count, pages: count, ..settings }, PORTS);
    let hosts = (0..count).map(|number| web.host(number)).collect();
    (web, hosts)
}

/// Checks a share, within four standard deviations.
fn assert_share(what: &str, hosts: &[Host], wanted: f64, fits: impl Fn(&Host) -> bool) {
    let count = hosts.len() as f64;
    let found = hosts.iter().filter(|host| fits(host)).count() as f64 / count;
    let spread = 4.0 * (wanted * (1.0 - wanted) / count).sqrt();
    assert!((found - wanted).abs() <= spread, "{what}: {found}, not {wanted}");
}

fn assert_median(what: &str, hosts: &[Host], wanted_ms: f64, of: impl Fn(&Host) -> Duration) {
    let mut times: Vec<Duration> = hosts.iter().map(of).collect();
    times.sort();
    let found = times[times.len() / 2].as_secs_f64() * 1e3;
    assert!((found / wanted_ms - 1.0).abs() < 0.05, "{what}: {found} ms, not {wanted_ms}");
}

#[test]
fn of_2003() {
    let web = Web::new(Settings::scenario_2003(), PORTS);
    assert_eq!((web.hosts(), web.pages_total(), web.seeds().len()), (500, 30_000, 1));
    let rank = web.page_rank(DAMPING);
    assert_eq!(rank.pages, 30_000, "a crawl reaches all");
    let (_, hosts) = hosts_of(Settings::scenario_2003(), 20_000);
    // Figure 3: a quarter takes one request, two thirds a hundred; ten of a hundred are between.
    assert_share("HTTP/1.0", &hosts, 0.24, |host| host.http10);
    for (requests, share) in [(1, 0.24), (100, 0.66), (10, 0.05), (50, 0.05), (u32::MAX, 0.0)] {
        let what = format!("{requests} requests");
        assert_share(&what, &hosts, share, |host| host.requests_max == requests);
    }
    let plain = |host: &Host| {
        host.scheme == Scheme::Http && host.coding == Coding::Identity && !host.chunked
    };
    assert_share("plain", &hosts, 1.0, plain);
    let open = |host: &Host| host.robots == Robots::None || host.number == 0;
    assert_share("no robots.txt", &hosts, 1.0, open);
    // Figure 5: 20 of 500 are known that answer within 100 ms and take 100 requests.
    let quick = hosts
        .iter()
        .filter(|host| host.requests_max == 100 && host.think_time < Duration::from_millis(100));
    assert!((20 * 40..60 * 40).contains(&quick.count()), "20 of 500, and not many more");
    assert_median("think", &hosts, 400.0, |host| host.think_time);
    assert_median("accept", &hosts, 800.0, |host| host.accept_time);
    assert_median("round trip", &hosts, 80.0, |host| host.round_trip);
    assert_median("names", &hosts, 60.0, |host| host.dns_time);
}

#[test]
fn of_2025() {
    let web = Web::new(Settings::scenario_2025(), PORTS);
    assert_eq!((web.hosts(), web.pages_total(), web.seeds().len()), (2_000, 60_000, 1));
    let (many, hosts) = hosts_of(Settings::scenario_2025(), 20_000);
    assert_share("TLS", &hosts, 0.95, |host| host.scheme == Scheme::Https);
    for (requests, share) in [(100, 0.25), (1_000, 0.60), (u32::MAX, 0.15)] {
        let what = format!("{requests} requests");
        assert_share(&what, &hosts, share, |host| host.requests_max == requests);
    }
    assert_share("gzip", &hosts, 0.5, |host| host.coding == Coding::Gzip);
    assert_share("brotli", &hosts, 0.4, |host| host.coding == Coding::Brotli);
    let at_once = |host: &Host| host.accept_time.is_zero();
    assert_share("no time to accept", &hosts, 1.0, at_once);
    assert_median("think", &hosts, 120.0, |host| host.think_time);
    assert_median("round trip", &hosts, 60.0, |host| host.round_trip);
    assert_median("names", &hosts, 30.0, |host| host.dns_time);
    // The spread is designed for a mean of 242 kB.
    let sizes = (0..20_000).map(|host| many.page_bytes(host, 0) as f64);
    let mean = sizes.sum::<f64>() / 20_000.0;
    assert!((mean / 242_000.0 - 1.0).abs() < 0.05, "mean page of {mean}");
    let kinds =
        |kind| all_pages(&web).filter(|(host, page)| web.kind(*host, *page) == kind).count();
    // All pages but the roots have a drawn kind.
    for (kind, share) in [(Kind::NotFound, 0.02), (Kind::Redirect, 0.03), (Kind::Binary, 0.0)] {
        let (found, wanted) = (kinds(kind) as f64, 58_000.0 * share);
        assert!((found - wanted).abs() <= 4.0 * wanted.sqrt(), "{kind:?}: {found} of {wanted}");
    }
}
