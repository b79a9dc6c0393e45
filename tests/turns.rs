//! No turn exceeds its budgets, whatever is received: the worst input with small budgets gives the
//! same outcomes as with large ones.

use crate::scenario::{played, rebuilt};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use sted::engine::ledger::{Budget, Ledger, STEP_UNITS};
use sted::ground::random::Random;
use sted::store::log;

/// The number of URLs that a page queues at another server.
const MANY: usize = 4_000;
/// Units of work per turn: the least that a configuration may have, and the default.
const BUDGETS: [usize; 2] = [16 << 10, 1 << 20];

/// Counts the lines of the log with this reason.
fn count(log: &[u8], reason: &str) -> usize {
    let lines = std::str::from_utf8(log).expect("UTF-8").lines();
    let entries =
        lines.map(|line| log::parse(line).unwrap_or_else(|bad| panic!("{bad:?}: {line}")));
    entries.filter(|entry| entry.extra.reason.as_deref() == Some(reason)).count()
}

/// Plays a script with each size of the budgets; returns the number of lines with this reason, and
/// the most units that a turn took from this budget when it was small.
fn play(text: &str, reason: &str, kind: Budget) -> (usize, usize) {
    let mut found = Vec::new();
    for budget in BUDGETS {
        let (log, ledger) = played(text, &|settings| settings.turn_bytes_max = budget);
        for kind in Budget::ALL {
            let (peak, max) = (ledger.peak(kind), ledger.units_max(kind));
            assert!(peak <= max, "{} of {max} units: {:?}", peak, ledger.largest());
        }
        // No step is large here, so that a turn that exceeds its budget would be noticed.
        assert!(ledger.peak(Budget::Queues) <= budget + (8 << 10), "{:?}", ledger.largest());
        found.push((count(&log, reason), ledger.peak(kind)));
    }
    assert_eq!(found[0].0, found[1].0, "lines do not depend on the budget");
    found[0]
}

/// A page with a link to each of [`MANY`] pages of another server.
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
    let (lines, units) = play(&text, "robots-denied", Budget::Queues);
    assert_eq!(lines, MANY);
    assert!(units > BUDGETS[0] / 2, "they were charged: {units}");
}

/// Links are counted for budgets and for qualities, and what is over a budget is moved.
#[test]
fn urls_over_a_budget_are_moved_over_turns() {
    let text = format!(
        "conf schedule.budget_max = 20\nconf quality.source = \"inlinks\"\n\
         seed http://a.test/\n{}host b.test\non connection\n  request /robots.txt\n  \
         reply 200 text User-agent:* Disallow:/\n",
        many_links("b.test")
    );
    let (lines, _) = play_large_steps(&text, "robots-denied");
    assert_eq!(lines, MANY);
}

#[test]
fn urls_of_a_server_that_is_given_up_are_dropped_over_turns() {
    let text = format!("seed http://a.test/\n{}refuse b.test\n", many_links("b.test"));
    let (lines, units) = play(&text, "connect-refused", Budget::Queues);
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
    let (_, units) = play(&text, "404", Budget::Pages);
    assert!((BUDGETS[0]..100_000).contains(&units), "they were charged: {units}");
}

/// Plays a script with each budget. Every turn keeps to its budgets, and the number of lines with
/// this reason is the same. Returns it, and the ledgers.
fn play_large_steps(text: &str, reason: &str) -> (usize, [Ledger; 2]) {
    let [small, large] = BUDGETS.map(|budget| {
        let (log, ledger) = played(text, &|settings| settings.turn_bytes_max = budget);
        for kind in Budget::ALL {
            let (peak, max) = (ledger.peak(kind), ledger.units_max(kind));
            assert!(peak <= max, "{peak} of {max} units: {:?}", ledger.largest());
        }
        (count(&log, reason), ledger)
    });
    assert_eq!(small.0, large.0, "lines do not depend on the budget");
    (small.0, [small.1, large.1])
}

/// A robots.txt of `bytes` bytes that disallows `/no`, and that compresses badly.
fn robots_txt(bytes: usize) -> String {
    let mut text = "User-agent: *\nDisallow: /no\n".to_owned();
    let mut random = Random(1);
    while text.len() < bytes {
        text += "Disallow: /";
        for _ in 0..40 {
            text.push(char::from_digit(random.below(36), 36).expect("a digit"));
        }
        text.push('\n');
    }
    text
}

/// Escapes bytes for the text of a script.
fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
}

/// The script of a server with one page, after other steps on its connection.
fn one_page(host: &str, robots: &str, links: &str) -> String {
    format!(
        "host {host}\non connection\n  request /robots.txt\n{robots}  request /\n  \
         reply 200 links {links}\n  request /yes\n  reply 200 text yes\n"
    )
}

/// A server whose page costs a thousand times the usual work rests longer in proportion, because
/// the pages of all others wait behind it.
#[test]
fn who_sends_heavy_pages_rests_for_them() {
    let gap = |kilobytes: usize| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(b"<a href=/1>").expect("in memory");
        packed.write_all(&b"heavy\n".repeat((kilobytes << 10) / 6)).expect("in memory");
        let packed = packed.finish().expect("in memory");
        let text = format!(
            "seed http://a.test/\nhost a.test\non connection\n  request /robots.txt\n  \
             reply 404\n  request /\n  raw HTTP/1.1 200 OK\\r\\nContent-Type: text/html\\r\\n\
             Content-Encoding: gzip\\r\\n\n  body {}\n  request /1\n  reply 200 text light\n",
            escaped(&packed)
        );
        let (log, _) = played(&text, &|_| {});
        let log = String::from_utf8(log).expect("UTF-8");
        let pages = log.lines().map(|line| log::parse(line).expect("a line")).skip(1);
        let times: Vec<u64> = pages.map(|line| line.time.as_micros()).collect();
        assert_eq!(times.len(), 2, "{log}");
        (times[1] - times[0]) / 1_000
    };
    assert!(gap(1_000) < 100, "a page of a megabyte is followed at once");
    assert!(gap(20_000) > 3_000, "one of twenty megabytes is not");
}

/// A compressed file of nearly 500 KiB costs more to decode than one turn may spend, and is read.
#[test]
fn a_packed_robots_txt_is_decoded_over_turns() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(robots_txt(490_000).as_bytes()).expect("in memory");
    let packed = packed.finish().expect("in memory");
    assert!(packed.len() > 200_000, "{}", packed.len());
    let robots = format!(
        "  raw HTTP/1.1 200 OK\\r\\nContent-Encoding: gzip\\r\\n\n  body {}\n",
        escaped(&packed)
    );
    let text = format!("seed http://a.test/\n{}", one_page("a.test", &robots, "/no /yes"));
    let (lines, [ledger, _]) = play_large_steps(&text, "robots-denied");
    assert_eq!(lines, 1, "the file is obeyed");
    let decoded = ledger.peak(Budget::Pages);
    assert!((BUDGETS[0] / 2..BUDGETS[0] + (64 << 10)).contains(&decoded), "{decoded}");
    let parsed = ledger.peak(Budget::Queues);
    assert!(parsed > 480_000, "parsing is charged: {parsed}");
}

/// Many servers may redirect to one robots.txt: its rules are copied over several turns.
#[test]
fn a_shared_robots_txt_is_copied_over_turns() {
    const SERVERS: usize = 40;
    let file = robots_txt(400_000);
    let mut text = "conf connections.open_max = 100\n".to_owned();
    for number in 0..SERVERS {
        let robots = "  wait 1ms\n  reply 302 to http://r.test:{port}/robots.txt\n";
        let host = format!("h{number}.test");
        text += &format!("seed http://{host}/\n{}", one_page(&host, robots, "/no /yes"));
    }
    let robots =
        format!("  wait 300ms\n  raw HTTP/1.1 200 OK\\r\\n\n  body {}\n", escaped(file.as_bytes()));
    text += &one_page("r.test", &robots, "");
    let (lines, [_, ledger]) = play_large_steps(&text, "robots-denied");
    assert_eq!(lines, SERVERS, "the file is obeyed by all");
    let units = ledger.peak(Budget::Queues);
    assert!((BUDGETS[1]..BUDGETS[1] + STEP_UNITS).contains(&units), "{units}");
}

/// The archive of a crawl that resumes is read back over several turns.
#[test]
fn replies_are_read_back_over_turns() {
    const PAGES: usize = 200;
    let links: Vec<String> = (0..PAGES).map(|page| format!("/{page}")).collect();
    let mut text = format!(
        "seed http://a.test/\nconf store.format = \"warc\"\nhost a.test\non connection\n  \
         request /robots.txt\n  reply 404\n  request /\n  reply 200 links {}\n",
        links.join(" ")
    );
    for link in &links {
        text += &format!("  request {link}\n  reply 200 text {link}{}\n", "x".repeat(1_000));
    }
    for budget in BUDGETS {
        let (log, ledger) = rebuilt(&text, &|settings| settings.turn_bytes_max = budget);
        let lines = log.lines().filter(|line| line.contains("replayed")).count();
        assert_eq!(lines, PAGES + 1, "{budget} units a turn");
        let (peak, max) = (ledger.peak(Budget::Queues), ledger.units_max(Budget::Queues));
        assert!((budget.min(150_000)..=max).contains(&peak), "{peak} of {budget} units");
        // No reply is large.
        assert!(peak <= budget + (16 << 10), "{peak} of {budget} units");
    }
}
