//! Tests of what is known of servers.

use super::*;

#[test]
fn a_side_table_is_small() {
    assert_eq!(size_of::<Site>(), 80);
    assert_eq!(size_of::<Option<NonZeroU32>>(), 4);
}

/// Law: a table is freed when it holds nothing of use, and not before. Its server then has the
/// default facts again.
#[test]
fn tables_of_idle_servers_go() {
    let mut sites = Sites::default();
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    type Change = fn(&mut Site);
    let cases: [(Change, bool, &str); 10] = [
        (|_| {}, true, "nothing to say"),
        (|site| site.failures = 1, false, "failures count in a row"),
        (|site| site.robots_tries = 1, false, "so do tries for robots.txt"),
        (|site| site.set_conn(Some(0)), false, "its connection stands"),
        (|site| site.learnt = Learnt::restored(7, 0), false, "requests it takes"),
        (|site| site.learnt = Learnt::restored(0, 1), false, "pipelining is barred"),
        (|site| site.learnt = Learnt::restored(0, 2), false, "a batch has been compared"),
        (|site| site.set_retired(Outcome::Reset), false, "it was given up"),
        (|site| site.robots = Robots::Open(Instant::FAR), false, "robots.txt is known"),
        (|site| site.robots = Robots::Open(Instant::ZERO), true, "and is not any more"),
    ];
    for (number, (change, ..)) in (0..).zip(cases) {
        sites.extend_to(ServerId(number));
        let site = sites.get_mut(ServerId(number));
        site.set_rest(at(10), at(20), Rule::Delay);
        change(site);
    }
    let has = |sites: &Sites, number: usize| sites.places[number].is_some();
    sites.free_idle(at(3_609), |_| true);
    assert!((0..cases.len()).all(|number| has(&sites, number)), "not an hour has passed");
    sites.free_idle(at(3_610), |_| false);
    assert!((0..cases.len()).all(|number| has(&sites, number)), "nobody is idle");
    sites.free_idle(at(3_610), |_| true);
    for (number, (_, goes, why)) in (0..).zip(cases) {
        assert_eq!(has(&sites, number), !goes, "{why}");
    }
    assert_eq!(sites.get(ServerId(0)).due(), Instant::ZERO);
    let tables = sites.sites.len();
    sites.get_mut(ServerId(0)).failures = 3;
    sites.get_mut(ServerId(9)).failures = 4;
    assert_eq!((sites.sites.len(), sites.free.len()), (tables, 0), "they are used again");
    assert_eq!(sites.get(ServerId(0)).failures, 3);
}

/// Law: only failures of one kind in a row count as lasting, whatever happened before.
#[test]
fn failures_of_another_kind_begin_a_new_row() {
    use Lasting::{Barred, Challenged, Denied};
    let retries = Retries::default();
    let (other, lasts) = (None, Some);
    let cases = [
        (vec![lasts(Denied); 3], lasts(Denied)),
        (vec![lasts(Barred); 2], lasts(Barred)),
        (vec![other, other, lasts(Denied)], None),
        (vec![other, lasts(Barred)], None),
        (vec![lasts(Denied), lasts(Denied), lasts(Barred)], None),
        (vec![lasts(Denied), lasts(Denied), other, lasts(Denied), lasts(Denied)], None),
        (vec![lasts(Barred), lasts(Denied), lasts(Barred), lasts(Barred)], lasts(Barred)),
        (vec![other, lasts(Denied), lasts(Denied), lasts(Denied)], lasts(Denied)),
        (vec![lasts(Challenged); 4], None),
        (vec![lasts(Challenged); 5], lasts(Challenged)),
    ];
    for (failures, lasting) in cases {
        let mut site = Site::default();
        failures.iter().for_each(|how| site.add_failure(*how));
        assert_eq!(usize::from(site.failures), failures.len());
        for how in [Barred, Denied, Challenged] {
            assert_eq!(site.is_lasting(how, &retries), lasting == lasts(how), "{failures:?}");
        }
        site.recover();
        let lasts = [Barred, Denied, Challenged].map(|how| site.is_lasting(how, &retries));
        assert!(site.rare.is_none() && lasts == [false; 3]);
    }
}

/// Law: rare facts are freed when they no longer hold.
#[test]
fn rare_facts_go_when_they_are_over() {
    let mut site = Site::default();
    let now = Instant::from_micros(5);
    assert_eq!(site.note_robots_failure(now), now);
    assert_eq!(site.note_robots_failure(Instant::from_micros(9)), now, "the first time counts");
    site.set_retiring(Retirement::Failures, Outcome::Reset);
    site.recover();
    assert!(!site.is_retiring() && site.rare.is_some());
    assert!(site.note_robots_cut());
    site.robots_tries = 1;
    assert!(!site.note_robots_cut(), "the second of a row");
    site.robots_tries = 0;
    assert!(site.note_robots_cut(), "the next day's row");
    site.note_robots_fetched();
    assert!(site.rare.is_none());
    site.set_retiring(Retirement::Name, Outcome::Reset);
    site.recover();
    assert_eq!(site.take_retiring(), Some((Retirement::Name, Outcome::Reset)));
    assert!(site.rare.is_none() && site.take_retiring().is_none());
}

/// Law: that a server asks for signed requests is no reason to keep its table.
#[test]
fn a_server_that_asks_for_signatures_may_be_forgotten() {
    let (mut site, later) = (Site::default(), Instant::ZERO + IDLE);
    site.set_asks_signature();
    assert!(site.asks_signature() && site.can_be_freed(later));
    site.set_robots_lost(1);
    assert!(!site.can_be_freed(later));
    site.set_robots_lost(0);
    assert!(site.asks_signature() && site.can_be_freed(later));
}
