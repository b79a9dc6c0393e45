//! The web-platform tests of URL parsing, compared with the standard's parser and with the joiner.
//!
//! Reads `url.jsonl` of a folder with cases of other projects. A case has `base`, `input`, and the
//! `href` that the standard expects (absent for a failure); `enqueue` is that without its fragment.

use super::{Report, folder, lines};
use serde_json::Value;
use std::path::Path;
use sted::url::canon::{Joiner, whatwg};
use sted::url::{Batch, Url};

const REFUSED: &str = "no web URL";

/// Adds one case to the report.
fn take(report: &mut Report, case: &str, actual: &str, expected: &str) {
    let differs = actual != expected;
    report.add(differs.then(|| format!("{case}: {actual}, expected {expected}")));
}

/// Runs every case of `folder/url.jsonl`; one with an http base counts twice, parsed and joined.
pub fn run(folder: &Path) -> Report {
    let mut report = Report::default();
    for case in lines(&folder.join("url.jsonl")) {
        parse(&case, &mut report);
        join(&case, &mut report);
    }
    report
}

#[test]
#[ignore = "needs the cases: make conformance DIR=folder"]
fn all_web_urls() {
    let folder = folder();
    let report = run(&folder);
    println!("{report}");
    assert!(report.total > 0 && report.differences.is_empty(), "{report}");
}

/// Checks the standard's parser, which keeps user and fragment; URLs of other schemes only have to
/// be refused.
fn parse(case: &Value, report: &mut Report) {
    let input = case["input"].as_str().expect("input is a text");
    let actual = whatwg(case["base"].as_str(), input).ok();
    let expected = case["href"].as_str();
    take(report, &name("parse", case), web(actual.as_deref()), web(expected));
}

fn web(href: Option<&str>) -> &str {
    href.filter(|href| href.starts_with("http:") || href.starts_with("https:")).unwrap_or(REFUSED)
}

/// Checks the joiner: as the standard, without user, fragment, and what can't be requested.
fn join(case: &Value, report: &mut Report) {
    let Some(Ok(base)) = case["base"].as_str().map(Url::parse) else { return };
    let mut batch = Batch::new();
    let input = case["input"].as_str().expect("input is a text");
    let joined = Joiner::new(base.view()).join(input.as_bytes(), encoding_rs::UTF_8, &mut batch);
    let actual = if joined.is_ok() { batch.get(0).as_str() } else { REFUSED };
    let expected = case["enqueue"].as_str().map(without_user).filter(|url| can_be_asked_for(url));
    take(report, &name("join", case), actual, expected.as_deref().unwrap_or(REFUSED));
}

fn name(how: &str, case: &Value) -> String {
    format!("{how} {} against {}", case["input"], case["base"])
}

fn without_user(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("enqueue is an http URL");
    let authority = rest.find(['/', '?']).map_or(rest, |end| &rest[..end]);
    let user_bytes = authority.rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[user_bytes..])
}

/// Whether the crawler has no rule to refuse the URL: a host that DNS allows, and a port other than
/// 0.
fn can_be_asked_for(url: &str) -> bool {
    let rest = url.split_once("://").expect("enqueue is an http URL").1;
    let authority = rest.find('/').map_or(rest, |end| &rest[..end]);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    port != "0" && name.len() <= 253 && name.split('.').all(|l| (1..=63).contains(&l.len()))
}
