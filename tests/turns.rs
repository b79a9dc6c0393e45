//! No turn does more than its budgets admit, whatever is received: strangers' input at its worst,
//! with small budgets, and the same outcomes as with large ones.

use crate::scenario::played;
use sted::engine::ledger::Purse;
use sted::store::log;

/// URLs that a page queues at another server.
const MANY: usize = 4_000;
/// Units of a turn: as few as a configuration may say, and as many as it says by itself.
const BUDGETS: [usize; 2] = [16 << 10, 1 << 20];

/// How many lines of the log have this reason.
fn count(log: &[u8], reason: &str) -> usize {
    let lines = std::str::from_utf8(log).expect("UTF-8").lines();
    let entries =
        lines.map(|line| log::parse(line).unwrap_or_else(|bad| panic!("{bad:?}: {line}")));
    entries.filter(|entry| entry.extra.reason.as_deref() == Some(reason)).count()
}

/// Plays a script with each budget: how many lines have this reason, and the most that a turn took
/// from this purse with the small one.
fn play(text: &str, reason: &str, purse: Purse) -> (usize, usize) {
    let mut found = Vec::new();
    for budget in BUDGETS {
        let (log, ledger) = played(text, &|settings| settings.turn_bytes_max = budget);
        for purse in Purse::ALL {
            let (peak, max) = (ledger.peak(purse), ledger.units_max(purse));
            assert!(peak <= max, "{} of {max} units: {:?}", peak, ledger.largest());
        }
        // No step is large here, so that a turn which overran its budget would show.
        assert!(ledger.peak(Purse::Queues) <= budget + (8 << 10), "{:?}", ledger.largest());
        found.push((count(&log, reason), ledger.peak(purse)));
    }
    assert_eq!(found[0].0, found[1].0, "lines do not depend on the budget");
    found[0]
}

/// A page with a link to another server's page of each number.
fn many_links(host: &str) -> String {
    let links: Vec<String> =
        (0..MANY).map(|number| format!("http://{host}:{{port}}/{number}")).collect();
    format!(
        "host a.test\non connection\n  request /robots.txt\n  reply 404\n  request /\n  \
         reply 200 links {}\n",
        links.join(" ")
    )
}

#[test]
fn urls_that_robots_txt_forbids_are_dropped_over_turns() {
    let text = format!(
        "seed http://a.test/\n{}host b.test\non connection\n  request /robots.txt\n  \
         reply 200 text User-agent:* Disallow:/\n",
        many_links("b.test")
    );
    let (lines, units) = play(&text, "robots-denied", Purse::Queues);
    assert_eq!(lines, MANY);
    assert!(units > BUDGETS[0] / 2, "they were charged: {units}");
}

#[test]
fn urls_of_a_server_that_is_given_up_are_dropped_over_turns() {
    let text = format!("seed http://a.test/\n{}refuse b.test\n", many_links("b.test"));
    let (lines, units) = play(&text, "connect-refused", Purse::Queues);
    assert!(lines >= MANY, "{lines}");
    assert!(units > BUDGETS[0] / 2, "they were charged: {units}");
}

#[test]
fn links_with_long_hosts_are_joined_over_turns() {
    let host = |letters: usize, number: usize| -> String {
        let letter = |at: usize| (0x4e00 + (at * 37 + number) % 20_000) as u32;
        (0..letters).filter_map(|at| char::from_u32(letter(at))).collect()
    };
    let short = (0..200).map(|number| format!("http://{}/", host(330, number)));
    let long = (0..200).map(|number| format!("http://{}/", host(990, number)));
    let links = short.chain(long).chain(["/x".to_owned()]);
    let links: Vec<String> = links.map(|link| format!("<a href='{link}'>")).collect();
    let text = format!(
        "seed http://a.test/\nhost a.test\non connection\n  request /robots.txt\n  reply 404\n  \
         request /\n  raw HTTP/1.1 200 OK\\r\\nContent-Type: text/html;charset=utf-8\\r\\n\n  \
         body {}\n  request /x\n  reply 404\n",
        links.join("")
    );
    let (_, units) = play(&text, "404", Purse::Pages);
    assert!((BUDGETS[0]..100_000).contains(&units), "they were charged: {units}");
}
