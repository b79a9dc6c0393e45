//! Truncated bodies in the archive: they are never the original of a revisit record, never a
//! revisit record themselves, and marked as truncated.

use crate::scenario::{archive_of, log_of_rebuilt};

/// Four URLs with the same bytes, one after the other: truncated, whole, whole, truncated.
const SCRIPT: &str = r#"
seed http://a.test/1
conf store.format = "warc"
conf store.gzip_level = 0
conf pipeline.enabled = false
conf limits.time_max = "1h"
host a.test
on connection
  request /robots.txt
  reply 404
  request /1
  raw {head}90{body}
  close
on connection
  request /1
  raw {head}90{body}
  close
on connection
  request /2
  raw {head}48{body}
  request /3
  raw {head}48{body}
  request /4
  raw {head}90{body}
  wait 10000ms
on connection
  request /4
  raw {head}90{body}
  wait 10000ms
"#;

fn script() -> String {
    let head = r"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ";
    let body = r"\r\n\r\n<a href=/2>2</a><a href=/3>3</a><a href=/4>4</a>";
    SCRIPT.replace("{head}", head).replace("{body}", body)
}

#[test]
fn a_short_body_is_neither_a_revisit_nor_the_original_of_one() {
    let archive = archive_of(&script());
    let archive = String::from_utf8_lossy(&archive).into_owned();
    let records: Vec<&str> = archive.split("WARC/1.1\r\n").collect();
    let of = |url: &str| {
        let target = format!("WARC-Target-URI: http://a.test:8080{url}\r\n");
        let is_reply =
            |record: &&&str| record.contains(&target) && !record.contains("WARC-Type: request\r\n");
        let found: Vec<_> = records.iter().filter(is_reply).collect();
        assert_eq!(found.len(), 1, "{url}: {found:?}");
        let value = |name: &str| {
            let line = found[0].lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or("-").trim().to_owned()
        };
        (value("WARC-Type:"), value("WARC-Truncated:"), value("WARC-Refers-To-Target-URI:"))
    };
    let record = |kind: &str, cut: &str, first: &str| (kind.into(), cut.into(), first.into());
    assert_eq!(of("/1"), record("response", "disconnect", "-"));
    assert_eq!(of("/2"), record("response", "-", "-"));
    assert_eq!(of("/3"), record("revisit", "length", "http://a.test:8080/2"));
    assert_eq!(of("/4"), record("response", "time", "-"));
}

/// A crawl that resumes from its archive alone reads the truncated page back and follows its links.
#[test]
fn a_short_body_that_is_read_back_leads_on() {
    let log = log_of_rebuilt(&script());
    for number in 1..=4 {
        let url = format!("http://a.test:8080/{number}");
        let lines = log.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let lines: Vec<_> = lines.filter(|words| words[3] == url).collect();
        let cut = ["disconnectTrunc", "", "", "timeTrunc"][number - 1];
        let notes = [cut, "replayed"].join(",");
        assert_eq!(lines.len(), 1, "{url}: {log}");
        assert_eq!((lines[0][1], lines[0][11]), ("200", notes.trim_start_matches(',')), "{url}");
    }
}
