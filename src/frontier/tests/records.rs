//! Records of servers: found by their names, bound to the groups they need, and small.

use super::*;
use crate::frontier::queue::UrlQueue;

/// Law: what was met is found under its name, whichever server of its host came first; servers of
/// one host share its group, others don't.
#[test]
fn names_agree_with_a_map() {
    let mut frontier = Frontier::new(Settings { domain_visits_max: 0, ..Settings::default() });
    let mut known: BTreeMap<String, ServerId> = BTreeMap::new();
    let mut random = Random(0x1234_5678);
    for _ in 0..30_000 {
        let scheme = random.pick(["http", "https"]);
        let host = random.pick(["a", "b.c", "[::1]", "host"]);
        let host =
            if random.below(2) == 0 { host.into() } else { format!("h{}", random.below(20_000)) };
        let port = if random.below(3) == 0 {
            String::new()
        } else {
            format!(":{}", 81 + random.below(90))
        };
        let text = format!("{scheme}://{host}{port}/x");
        let url = UrlRef::from_canonical(text.as_bytes()).expect("canonical");
        let expected = known.get(url.origin()).copied();
        let found = frontier.server_of(url);
        assert_eq!(found, expected.unwrap_or(ServerId::from_index(known.len())), "{text}");
        assert_eq!(frontier.origin(found).as_str(), url.origin());
        known.insert(url.origin().to_owned(), found);
        assert_eq!(frontier.servers(), known.len());
    }
    let mut hosts: BTreeMap<&str, Vec<ServerId>> = BTreeMap::new();
    for id in known.values() {
        hosts.entry(frontier.origin(*id).host()).or_default().push(*id);
    }
    let host_of = |id: &ServerId| frontier.server(*id).groups[0];
    let mut groups: Vec<_> = hosts.values().map(|ids| host_of(&ids[0])).collect();
    for (ids, group) in hosts.values().zip(&groups) {
        assert_eq!(group.is_some(), ids.len() > 1, "alone at its host it needs no group");
        assert!(ids.iter().all(|id| host_of(id) == *group));
    }
    groups.retain(Option::is_some);
    let all = groups.len();
    groups.sort_unstable();
    groups.dedup();
    assert!(groups.len() == all && all < hosts.len(), "{all} of {}", hosts.len());
}

/// Law: a domain is a group from its second server on if only a cap is set, from the first on if
/// it rests after a visit, and never if neither is.
#[test]
fn domains_are_groups_if_they_can_hold_somebody_back() {
    let second = Duration::from_secs(1);
    for (cap, delay, expected) in [
        (0, Duration::ZERO, [0, 0, 0]),
        (2, Duration::ZERO, [0, 1, 1]),
        (0, second, [1, 1, 2]),
        (2, second, [1, 1, 2]),
    ] {
        let settings =
            Settings { domain_visits_max: cap, domain_delay: delay, ..Settings::default() };
        let mut frontier = Frontier::new(settings);
        let met = ["http://a.x.com/", "http://b.x.com/", "http://a.y.com/"].map(|url| {
            frontier.server_of(UrlRef::from_canonical(url.as_bytes()).expect("canonical"));
            let groups = frontier.servers.iter().filter_map(|server| server.groups[1]);
            groups.collect::<std::collections::BTreeSet<_>>().len()
        });
        assert_eq!(met, expected, "cap {cap}, delay {delay:?}");
    }
}

/// Law: nobody comes to be known, or changes, because a URL is expected; whoever that may be.
#[test]
fn what_is_expected_changes_nothing() {
    let hosts = ["a.test", "a.test:81", "b.test", "retired.test", "x.c.test", "nobody.test"];
    let urls: Vec<String> = hosts.iter().map(|host| format!("http://{host}/")).collect();
    let urls: Vec<UrlRef<'_>> =
        urls.iter().map(|url| UrlRef::from_canonical(url.as_bytes()).expect("canonical")).collect();
    for (crawl, known) in [(None, 5), (Some(1), 5), (Some(1), 0)] {
        let mut frontier = Frontier::new(Settings { crawl, ..Settings::default() });
        for (number, url) in (0..).zip(&urls[..known]) {
            frontier.add(*url, item(number, 1, None), Instant::ZERO);
        }
        if known > 3 {
            frontier.retire(ServerId(3), Retirement::Failures, Instant::ZERO);
        }
        let before = format!("{frontier:?}");
        for few in 0..=2 * EXPECTED {
            frontier.expect(urls.iter().copied().cycle().take(few));
        }
        assert_eq!(format!("{frontier:?}"), before, "{known} known");
    }
}

#[test]
fn a_record_is_small() {
    let queue = size_of::<UrlQueue>();
    assert_eq!(size_of::<Server>() - queue, 72);
    assert_eq!(size_of::<group::Group>(), 24);
    let places_more = 2; // than in tests
    assert_eq!(size_of::<queue::cold::Cold>() + places_more * 8, 120);
}
