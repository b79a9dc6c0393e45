//! Handwritten events, each with a promise broken on purpose.

use super::super::order::{Clock, Place};
use super::super::promises::{Own, Tables};
use super::*;

const MS: u64 = 1_000;

/// A request: its node, its server, its visit, and its beginning and end in ms.
type Asked = (u32, u32, u32, u64, u64);

/// Returns what is found in requests of one node, each given without it.
fn breaches(requests: &[(u32, u32, u64, u64)]) -> Vec<Breach> {
    let requests = requests.iter().map(|&(server, visit, at, ended)| (0, server, visit, at, ended));
    audited(&books(1, 0), &requests.collect::<Vec<_>>()).0
}

/// Returns the books of some nodes, whose calendars are some ms apart. Servers 0 and 1 are of one
/// host, 2 and 3 of others in one domain; all have one address.
fn books(nodes: usize, skew: u64) -> impl Fn() -> Books {
    move || {
        let mut books = Books::new(Clocks::new(nodes, skew * MS));
        [(0, 0), (0, 0), (1, 1), (2, 1)].into_iter().for_each(|(host, domain)| {
            books.add_server(host, domain);
        });
        books.reach(Kind::Address, 0);
        for node in 0..u32::try_from(nodes).expect("few") {
            let promise = Promise {
                delay: 100 * MS,
                factor_milli: 10_000,
                delay_max: 1_000 * MS,
                address: (3, 10 * MS * nodes as u64),
                domain: (1, 0),
                is_single: true,
                from: 1,
            };
            let own = Own { delay: Some(300 * MS), ..Own::default() };
            let own = [(3, own)].into_iter().collect();
            books.promise(node, Promised { promise, own, tables: Tables::default() });
            books.clocks.begin_run(node, 1, 0);
        }
        books.whole = (nodes > 1).then_some(Whole { visits_max: 3, delay: 10 * MS });
        books
    }
}

/// Returns what is found in requests, and the number of late visits.
fn audited(books: &impl Fn() -> Books, requests: &[Asked]) -> (Vec<Breach>, u64) {
    let mut books = books();
    let mut found = Vec::new();
    for asked in requests {
        let event = event(asked, 1);
        if books.is_shared() {
            let began = Event { what: What::Visit, ..event };
            books.take(&began, &mut |breach| found.push(breach));
        }
        books.take(&event, &mut |breach| found.push(breach));
    }
    (found, books.tally.late)
}

/// Returns the event of a request with this number in its visit.
fn event(&(node, server, visit, at, ended): &Asked, number: u32) -> Event {
    let (at, ended) = (at * MS, ended * MS);
    Event {
        what: What::Request(number),
        at,
        ended,
        began: at,
        owed: 0,
        wait: 0,
        server,
        address: 0,
        visit,
        clock: Clock { run: node, drift_ms: 0 },
        place: Place::default(),
        rule: 0,
    }
}

/// Requests that were sent together have the same time, and their lines come in the order in which
/// the replies were dealt with.
#[test]
fn the_requests_of_a_visit_come_in_any_order() {
    for numbers in [[1, 2, 3], [3, 1, 2], [2, 3, 1]] {
        for (next, expected) in [(405, vec![]), (404, vec![gap(Kind::Server, 299, 300)])] {
            let (mut books, mut found) = (books(1, 0)(), Vec::new());
            for number in numbers {
                let event = event(&(0, 0, 1, 100, 105), number);
                books.take(&event, &mut |breach| found.push(breach));
            }
            let event = event(&(0, 0, 2, next, next + 5), 1);
            books.take(&event, &mut |breach| found.push(breach));
            assert_eq!(found, expected, "{numbers:?}");
        }
    }
}

#[test]
fn each_promise_is_checked_to_the_microsecond() {
    let most = |kind, visits, most| Breach::AtOnce { kind, visits, most };
    use Kind::{Address, Domain, Host, Server};
    let cases = [
        (vec![(0, 1, 100, 105), (0, 2, 205, 210)], vec![], "the delay"),
        (vec![(0, 1, 100, 105), (0, 2, 204, 210)], vec![gap(Server, 99, 100)], "less"),
        (vec![(0, 1, 100, 120), (0, 2, 320, 330)], vec![], "the factor"),
        (vec![(0, 1, 100, 120), (0, 2, 319, 330)], vec![gap(Server, 199, 200)], "less"),
        (vec![(0, 1, 100, 900), (0, 2, 1_900, 1_910)], vec![], "delay_max"),
        (vec![(0, 1, 100, 105), (1, 1, 204, 210)], vec![gap(Host, 99, 100)], "the host rests"),
        (vec![(0, 1, 100, 105), (1, 1, 205, 210)], vec![], "the host has rested"),
        (vec![(0, 1, 100, 105), (2, 1, 109, 120)], vec![gap(Address, 4, 10)], "the address"),
        (vec![(0, 1, 100, 105), (2, 1, 115, 120)], vec![], "the address has rested"),
        (vec![(2, 1, 100, 205), (3, 1, 115, 120)], vec![most(Domain, 2, 1)], "two in a domain"),
        (
            vec![(0, 1, 100, 205), (1, 1, 115, 120)],
            vec![most(Host, 2, 1), most(Domain, 2, 1)],
            "two of a host",
        ),
        (vec![(0, 1, 100, 205), (2, 1, 115, 120)], vec![], "others"),
        (vec![(3, 1, 100, 105), (3, 2, 405, 410)], vec![], "a site's own delay"),
        (vec![(3, 1, 100, 105), (3, 2, 404, 410)], vec![gap(Server, 299, 300)], "less"),
    ];
    for (requests, expected, why) in cases {
        assert_eq!(breaches(&requests), expected, "{why}");
    }
    assert_eq!(breaches(&[(0, 1, 100, 400), (0, 2, 300, 400)]), [Breach::Overlap]);
}

/// A case: requests of two nodes, what is found in them, the number of late visits, and why.
type Case<'a> = (&'a [Asked], Vec<Breach>, u64, &'a str);

fn check(cases: &[Case<'_>]) {
    for (requests, expected, late, why) in cases {
        assert_eq!(audited(&books(2, 0), requests), (expected.clone(), *late), "{why}");
    }
}

fn gap(kind: Kind, gap: u64, owed: u64) -> Breach {
    Breach::Gap { kind, gap: gap * MS, owed: owed * MS }
}

fn takeover(other: u32, gap: u64) -> Breach {
    Breach::Takeover { other, gap: gap * MS, owed: 1_000 * MS }
}

#[test]
fn servers_that_change_their_owner_get_their_rests() {
    check(&[
        (&[(0, 0, 1, 100, 105), (1, 0, 1, 1_105, 1_110)], vec![], 0, "taken over"),
        (
            &[(0, 0, 1, 100, 105), (1, 0, 1, 1_090, 1_110)],
            vec![takeover(0, 990)],
            0,
            "too early for the domain, not for the server",
        ),
        (
            &[(0, 0, 1, 100, 105), (1, 1, 1, 150, 155)],
            vec![takeover(0, 50), gap(Kind::Host, 45, 98)],
            0,
            "a lease that is ignored",
        ),
        (
            &[(0, 0, 1, 100, 150), (1, 0, 1, 120, 130)],
            vec![takeover(0, 20), Breach::Overlap],
            0,
            "two visits at a time",
        ),
        (
            &[(0, 0, 1, 100, 5_050), (1, 0, 1, 5_000, 5_005), (1, 0, 2, 5_105, 5_110)],
            vec![],
            1,
            "a node was stopped",
        ),
        (
            &[(0, 0, 1, 100, 5_050), (1, 1, 1, 5_000, 5_005), (1, 0, 1, 5_105, 5_110)],
            vec![],
            1,
            "and the next owner asks another server first",
        ),
        (
            &[(0, 0, 1, 100, 5_050), (1, 1, 1, 5_000, 5_005), (1, 1, 2, 5_105, 5_110)],
            vec![],
            0,
            "and asks only that",
        ),
        (
            &[(0, 0, 1, 100, 5_050), (1, 0, 1, 5_000, 5_005), (0, 0, 2, 5_060, 5_070)],
            vec![takeover(1, 60), gap(Kind::Server, 55, 98)],
            1,
            "it goes on after its late request",
        ),
        (
            &[(0, 0, 1, 100, 5_050), (1, 0, 1, 5_000, 5_005), (1, 0, 2, 5_060, 5_065)],
            vec![gap(Kind::Server, 55, 100)],
            1,
            "the next owner owes its own rests",
        ),
    ]);
}

#[test]
fn nodes_share_an_address() {
    use Kind::{Address, Domain, Host};
    let most = |kind, visits, most| Breach::AtOnce { kind, visits, most };
    check(&[
        (&[(0, 0, 1, 100, 105), (1, 2, 1, 115, 120)], vec![], 0, "each has its own delay"),
        (&[(0, 2, 1, 100, 105), (0, 0, 1, 115, 120)], vec![gap(Address, 10, 20)], 0, "of a node"),
        (
            &[(0, 0, 1, 100, 105), (1, 2, 1, 100, 105), (1, 0, 1, 1_101, 1_106)],
            vec![],
            0,
            "both at once",
        ),
        (
            &[(0, 2, 1, 100, 300), (0, 3, 1, 200, 310)],
            vec![most(Domain, 2, 1)],
            0,
            "a domain's cap",
        ),
        (
            &[
                (0, 2, 1, 100, 5_000),
                (1, 0, 1, 110, 150),
                (0, 3, 1, 3_000, 5_000),
                (1, 0, 2, 3_050, 5_000),
                (1, 1, 1, 3_080, 5_000),
            ],
            vec![most(Domain, 2, 1), most(Host, 2, 1), most(Address, 4, 3), most(Domain, 2, 1)],
            0,
            "the cap of an address, over all nodes",
        ),
        (
            &[
                (0, 2, 1, 100, 5_000),
                (0, 3, 1, 150, 5_000),
                (1, 0, 1, 4_000, 5_000),
                (1, 1, 1, 4_050, 5_000),
            ],
            vec![most(Domain, 2, 1), most(Host, 2, 1), most(Domain, 2, 1)],
            0,
            "a node that may have been stopped doesn't count at an address",
        ),
    ]);
}

/// Each node keeps its own delay of the address, but not that of all nodes together.
#[test]
fn a_pace_that_is_not_divided_is_found() {
    let undivided = || {
        let mut books = books(2, 0)();
        for promised in books.promises.iter_mut().flatten() {
            promised.promise.address.1 = 10 * MS;
        }
        books
    };
    let requests: Vec<Asked> = (0..4_u32)
        .flat_map(|number| {
            let at = 1_000 + 150 * u64::from(number);
            [(0, 0, number + 1, at, at + 1), (1, 2, number + 1, at, at + 1)]
        })
        .collect();
    assert_eq!(audited(&undivided, &requests), (vec![], 0), "pauses");
    let requests: Vec<Asked> = (0..2_u32)
        .flat_map(|number| {
            let at = 1_000 + 11 * u64::from(number);
            [(0, number, 1, at, at + 1), (1, 2 + number, 1, at, at + 1)]
        })
        .collect();
    let (found, _) = audited(&undivided, &requests);
    let crowd = Breach::Crowd { visits: 4, time: 11 * MS, delay: 9_990 };
    assert!(found.contains(&crowd), "{found:?}");
}

/// What the calendars may be apart is allowed for between two nodes, and only there.
#[test]
fn the_skew_is_allowed_for() {
    let requests = [(0, 0, 1, 100, 105), (1, 0, 1, 900, 910)];
    assert_eq!(audited(&books(2, 0), &requests).0.len(), 1);
    assert_eq!(audited(&books(2, 200), &requests), (vec![], 0));
    let requests = [(0, 0, 1, 100, 105), (0, 0, 2, 200, 205)];
    assert_eq!(audited(&books(2, 200), &requests).0.len(), 1);
}

/// A delay that is raised applies from then on, not to a visit before.
#[test]
fn a_raised_delay_is_owed_between_later_visits() {
    let raised = || {
        let mut books = books(1, 0)();
        let Promised { promise, .. } = &books.promises[0][0];
        let mut promise = Promise { from: 110 * MS, ..*promise };
        promise.address.1 = 50 * MS;
        let (own, tables) = (Default::default(), Tables::default());
        books.promise(0, Promised { promise, own, tables });
        books
    };
    let requests = [(0, 0, 1, 100, 105), (0, 2, 1, 116, 120), (0, 3, 1, 160, 170)];
    assert_eq!(audited(&raised, &requests), (vec![gap(Kind::Address, 40, 50)], 0));
    assert_eq!(audited(&raised, &requests[..2]), (vec![], 0));
}
