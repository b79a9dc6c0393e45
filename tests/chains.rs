//! Redirect chains in situations that a script alone can't show: read back from the archive, beyond
//! their limit, with most data on disk, and at their worst for a turn.

use crate::scenario::{log_of, log_of_rebuilt, played};
use std::collections::BTreeMap;
use sted::engine::ledger::{Budget, Work};
use sted::engine::settings::Settings;

/// Cookie walls, a hop on another server, a URL with its own key, a loop.
const SCRIPT: &str = "
seed http://a.test/
conf store.format = \"warc\"
conf store.gzip_level = 0
conf pipeline.enabled = false
conf limits.time_max = \"1h\"
host a.test
on connection
  request /robots.txt
  reply 404
  request /
  reply 200 links /self /go /s?utm_source=mail /loop
  request /self
  reply 302 to /self field Set-Cookie:k=1
  request /self with k=1
  reply 200 links /x
  request /go
  reply 302 to http://b.test:{port}/via
  request /s?utm_source=mail
  reply 302 to /s
  request /s
  reply 200 text page
  request /loop
  reply 302 to /loop
host b.test
on connection
  request /robots.txt
  reply 404
  request /via
  reply 302 to http://b.test:{port}/end
  request /end
  reply 200 text end
";

/// Counts the lines of a log for each URL and status or reason, without robots.txt.
fn lines_of(log: &str) -> BTreeMap<(String, String), usize> {
    let mut lines = BTreeMap::new();
    for line in log.lines().filter(|line| !line.contains("/robots.txt ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        *lines.entry((words[3].to_owned(), words[1].to_owned())).or_default() += 1;
    }
    lines
}

/// A crawl that has only its archive reads its chains back, hop by hop, without requests.
#[test]
fn chains_are_read_back_from_the_archive() {
    let whole = SCRIPT.replace("host b.test", "  request /x\n  reply 200 text x\nhost b.test");
    let first = String::from_utf8(log_of(&whole)).expect("UTF-8");
    let again = log_of_rebuilt(&whole);
    assert_eq!(lines_of(&first), lines_of(&again), "{first}\n{again}");
    assert_eq!(lines_of(&first).values().sum::<usize>(), 11, "{first}");
    let asked = again.lines().filter(|line| !line.contains("replayed") && !line.contains(" -4"));
    assert_eq!(asked.count(), 0, "{again}");
}

/// Pages of a host that each redirect to the same slow login page.
fn logins(count: usize) -> String {
    let numbers = 0..count;
    let links: Vec<String> = numbers.clone().map(|number| format!("/{number}")).collect();
    let mut text = format!(
        "seed http://a.test/\nconf pipeline.enabled = false\nhost a.test\non connection\n  \
         request /robots.txt\n  reply 404\n  request /\n  reply 200 links {}\n",
        links.join(" ")
    );
    for number in numbers {
        text += &format!("  request /{number}\n  reply 302 to http://b.test:{{port}}/login\n");
    }
    text + "host b.test\non connection\n  wait 300ms\n  request /robots.txt\n  reply 404\n  \
            request /login\n  reply 200 text page\n"
}

/// The login page is requested once, and each page has a line, whatever fits into memory and into a
/// turn.
#[test]
fn a_login_that_pages_redirect_to_is_asked_for_once() {
    let count = 150;
    type Change = fn(&mut Settings);
    let cases: [(&str, Change); 4] = [
        ("by itself", |_| {}),
        ("small turns", |settings| settings.turn_bytes_max = 4_000),
        ("what is known is on disk", |settings| {
            settings.seen.memory_bytes = 1 << 10;
            settings.seen.cache_entries_log2 = 4;
            settings.turn_bytes_max = 4_000;
        }),
        ("few chains at once", |settings| settings.chains_max = 3),
    ];
    for (why, change) in cases {
        let (log, ledger) = played(&logins(count), &|settings| change(settings));
        let lines = lines_of(std::str::from_utf8(&log).expect("UTF-8"));
        let count_of = |path: &str, status: &str| -> usize {
            let fits = |(url, is): &(String, String)| url.ends_with(path) && is == status;
            lines.iter().filter(|(line, _)| fits(line)).map(|(_, count)| count).sum()
        };
        assert_eq!(count_of("/login", "200"), 1, "{why}");
        assert_eq!(count_of("", "302"), count, "{why}");
        let known = count_of("/login", "-4003");
        let least = if why.starts_with("few") { 2 } else { count - 1 };
        assert!(known >= least, "{why}: {known} lines say that it is known");
        for budget in Budget::ALL {
            assert!(ledger.peak(budget) <= ledger.units_max(budget), "{why}");
        }
    }
}

/// What is joined and kept for redirects is charged to its turn: hosts that must be mapped, and
/// dozens of cookies.
#[test]
fn redirects_are_charged_to_their_turn() {
    let links: Vec<String> = (0..8).map(|number| format!("/{number}")).collect();
    let mut text = format!(
        "seed http://a.test/\nhost a.test\non connection\n  request /robots.txt\n  reply 404\n  \
         request /\n  reply 200 links {}\n",
        links.join(" ")
    );
    let cookies: String = (0..50).map(|number| format!(" field Set-Cookie:k{number}=1")).collect();
    for link in links {
        let host = "%E6%BC%A2".repeat(100);
        text += &format!("  request {link}\n  reply 302 to http://{host}/{cookies}\n");
    }
    let (_, ledger) = played(&text, &|_| {});
    let least = 8 * (50 * 500 + 50_000) / 8;
    let charged = ledger.largest().by_kind[Work::Redirects as usize];
    assert!(charged >= least, "{charged} units, not {least}: {:?}", ledger.largest());
}

/// A site redirects every URL to https, and the crawl's keys treat both schemes as one page: each
/// is fetched once.
#[test]
fn a_site_that_moves_to_https_is_fetched() {
    let script = "
seed http://a.test/
conf url.merge_schemes = true
conf scope.domains = []
conf pipeline.enabled = false
host a.test
on connection
  request /robots.txt
  reply 404
  request /
  reply 200 links http://a.test/ http://a.test/old
on connection
  request /robots.txt
  reply 404
  request /
  reply 301 to https://a.test/
  request /old
  reply 301 to https://a.test/old
on connection
  request /robots.txt
  reply 404
  request /
  reply 200 links /new http://a.test/old http://a.test/new
  request /old
  reply 200 text old
  request /new
  reply 200 text new
";
    let log = String::from_utf8(log_of(script)).expect("UTF-8");
    let lines = lines_of(&log);
    let line = |url: &str, status: &str| ((url.to_owned(), status.to_owned()), 1);
    let expected = BTreeMap::from([
        line("http://a.test:8080/", "200"),
        line("http://a.test/", "301"),
        line("https://a.test/", "200"),
        line("https://a.test/new", "200"),
        line("http://a.test/old", "301"),
        line("https://a.test/old", "200"),
    ]);
    assert_eq!(lines, expected, "{log}");
}
