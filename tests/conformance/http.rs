//! Replies from llhttp, h11, curl, Go and the web-platform tests, with the results of six real
//! clients.
//!
//! All cases of tier A, on which the clients agree, must pass: parsed alike, or refused like the
//! clients do. All of tier B (most of them agree) must pass, too. Every case, also of tier C (no
//! agreement), must end, with the same result however its bytes are cut.

use super::{Report, base64, folder, lines};
use sha1::{Digest, Sha1};
use std::path::Path;
use sted::http::response::{Event, Limits, Reader};

/// Cases of tier B that most of the six clients refuse and this crawler accepts, as browsers do
/// (DECISIONS.md 80), each with what Chromium does.
const READ_AS_BROWSERS_DO: &[(&str, &str)] = &[
    ("llhttp-0028", "a tab behind the version: 200"),
    ("go-net-http-0136", "a blank before the first field: the line is skipped"),
    ("go-net-http-0137", "a tab before the first field: likewise"),
    ("wpt-0192", "up to four bytes of junk before the status line"),
    ("wpt-0243", "the reason on a line of its own: it has no colon and is skipped"),
    ("wpt-0258", "a blank before the first field: the line is skipped"),
    ("wpt-0261", "a line end within a name: a line without a colon, and another field"),
    ("wpt-0267", "a line end before the colon: likewise"),
    ("wpt-0273", "a line end behind the colon: a void field, and a line without a colon"),
    ("curl-0316", "a transfer coding nobody knows is no framing: the length holds"),
    ("curl-0326", "rubbish in Content-Length: the body ends with the connection"),
    ("curl-0327", "a length past 64 bits: likewise"),
    ("curl-0330", "a line without a colon is skipped"),
    ("curl-0331", "a length below zero: the body ends with the connection"),
    ("curl-0332", "many transfer codings that are not chunked: the length holds"),
    ("curl-0411", "chunked twice and another coding: chunked"),
];

/// What a client makes of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Reply { status: u16, body: Vec<u8> },
    Refused(String),
}

/// Runs the cases that must pass.
pub fn run(folder: &Path) -> Report {
    run_tiers(folder, "A-")
}

fn run_tiers(folder: &Path, tiers: &str) -> Report {
    let mut report = Report::default();
    for case in lines(&folder.join("http.jsonl")) {
        let text = |key: &str| case[key].as_str().unwrap_or_else(|| panic!("{key} of {case}"));
        if !text("tier").starts_with(tiers) {
            continue;
        }
        let raw = base64(text("raw_b64")).expect("base64 of a case");
        let found = read(&raw, text("method"), raw.len());
        for cut in [1, 2, 7] {
            assert_eq!(read(&raw, text("method"), cut), found, "{}: cut by {cut}", text("id"));
        }
        let expected = &case["consensus"];
        if READ_AS_BROWSERS_DO.iter().any(|(id, _)| *id == text("id")) {
            let is_read = matches!(found, Outcome::Reply { status: 200, .. });
            assert!(is_read, "{} is read no more: {found:?}", text("id"));
            continue;
        }
        let agrees = match &found {
            Outcome::Refused(_) => text("tier").ends_with("-err"),
            Outcome::Reply { status, body } => {
                let sum: String = Sha1::digest(body).iter().map(|b| format!("{b:02x}")).collect();
                expected["status"].as_u64() == Some(u64::from(*status))
                    && expected["body_sha1"].as_str() == Some(sum.as_str())
            }
        };
        report.add((!agrees).then(|| {
            let found = match &found {
                Outcome::Reply { status, body } => format!("{status}, {} bytes", body.len()),
                Outcome::Refused(reason) => reason.clone(),
            };
            let (id, name, tier) = (text("id"), text("name"), text("tier"));
            format!("{id}: {name}: {tier}, found {found}; votes {}", case["votes"])
        }));
    }
    report
}

/// Parses the reply of a case, `cut` bytes at a time.
fn read(raw: &[u8], method: &str, cut: usize) -> Outcome {
    let mut reader = Reader::new(Limits::default());
    if method == "HEAD" {
        reader.begin_bodiless()
    } else {
        reader.begin()
    }
    let (mut at, mut come, mut status, mut body) = (0, cut.min(raw.len()), 0, Vec::new());
    loop {
        let step = match reader.read(&raw[at..come], come == raw.len()) {
            Ok(step) => step,
            Err(broken) => return Outcome::Refused(format!("{broken:?}")),
        };
        match step.event {
            Event::Head => status = reader.head().status,
            Event::Payload(range) => body.extend_from_slice(&raw[at..][range]),
            Event::End(_) => return Outcome::Reply { status, body },
            Event::More => {
                assert!(come < raw.len(), "more than there is");
                come = (come + cut).min(raw.len());
            }
            Event::Blank | Event::Interim => {}
        }
        at += step.used;
    }
}

#[test]
#[ignore = "needs the cases: make conformance DIR=folder"]
fn all_of_tier_a() {
    let folder = folder();
    let report = run(&folder);
    assert!(report.total > 0 && report.differences.is_empty(), "{report}");
}

/// All of tier B must pass. Of tier C, `run_tiers` only demands an end that doesn't depend on cuts.
#[test]
#[ignore = "needs the cases: make conformance DIR=folder"]
fn the_other_tiers() {
    let folder = folder();
    let report = run_tiers(&folder, "B-");
    assert!(report.total > 0 && report.differences.is_empty(), "{report}");
    assert!(run_tiers(&folder, "C").total > 0, "cases of tier C");
}
