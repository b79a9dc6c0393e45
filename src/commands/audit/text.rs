//! The result of an audit as text, for people.

use super::Audit;
use super::rows::{self, Kind, Row};
use crate::commands::show::{clip, count};
use crate::ground::time::UnixTime;
use std::fmt::Write;

/// The number of servers that are listed.
const SERVERS_MAX: usize = 20;
/// The number of places with missing lines that are listed.
const HOLES_MAX: usize = 5;

/// Formats the result of an audit.
pub(super) fn of(audit: &Audit) -> String {
    let mut out = format!("{}: {}\n\n", audit.title(), audit.verdict().name());
    let (counts, books) = (&audit.counts, &audit.books);
    let mut row = |name: &str, text: String| {
        writeln!(out, "  {name:<12}{text}").expect("a string takes every write");
    };
    let runs = audit.jobs.iter().map(|job| job.sequence.runs).sum();
    if audit.is_shared() {
        for job in &audit.jobs {
            row("node", job.name());
        }
        let skew = u64::try_from(audit.skew.as_micros()).unwrap_or(u64::MAX);
        row("calendars", format!("may be {} apart between two nodes", seconds(skew)));
    }
    row("log", format!("{} lines of {}", count(counts.lines), plural(runs, "run")));
    let number =
        |kind: Kind, name: &str| plural(audit.names[kind as usize].list.len() as u64, name);
    row(
        "requests",
        format!(
            "{} to {}; {} failed",
            count(counts.requests),
            number(Kind::Server, "server"),
            plural(counts.failed_connects, "connection")
        ),
    );
    row(
        "of",
        format!(
            "{}, {}, {}",
            number(Kind::Host, "host"),
            match audit.names[Kind::Address as usize].list.len() as u64 {
                1 => "1 address".to_owned(),
                addresses => format!("{} addresses", count(addresses)),
            },
            number(Kind::Domain, "domain")
        ),
    );
    if let Some(first) = counts.first {
        let clock = |us| UnixTime::from_micros(us).civil().to_seconds();
        row("from", format!("{} to {}", clock(first), clock(counts.last)));
    }
    row("rests", format!("{} checked", count(books.tally.checked)));
    if audit.is_shared() {
        let late = books.tally.late;
        let is_any = if late > 0 { ", which is allowed: when it ended, another node" } else { "" };
        row("late", format!("{}{is_any}", plural(late, "visit")));
    }
    if books.tally.late > 0 {
        row("", "had taken the server over. Its own node was stopped between its".to_owned());
        row("", "check and the request, or while it waited for the reply.".to_owned());
    }
    row(
        "robots.txt",
        match audit.jobs.iter().any(|job| job.robots.obeys) {
            true => format!(
                "{} requests checked, {} disallowed",
                count(counts.checked),
                count(counts.disallowed)
            ),
            false => "not obeyed by this crawl".to_owned(),
        },
    );
    row("broken", plural(audit.findings.total, "promise"));
    push_doubts(&mut out, audit);
    push_findings(&mut out, audit);
    push_servers(&mut out, audit);
    out
}

fn push_doubts(out: &mut String, audit: &Audit) {
    let doubts = audit.doubts();
    if !doubts.is_empty() {
        out.push_str("\nWhat is missing for a proof:\n");
    }
    for doubt in doubts {
        out.push_str(&format!("  {doubt}\n"));
    }
    let holes =
        audit.jobs.iter().flat_map(|job| job.sequence.holes.iter().map(move |it| (job, it)));
    for (job, hole) in holes.take(HOLES_MAX) {
        let lines = match hole.last - hole.first {
            0 => format!("line {} is", hole.first),
            _ => format!("lines {} to {} are", hole.first, hole.last),
        };
        let run = UnixTime::from_micros(hole.run).civil().to_seconds();
        let of = if audit.is_shared() { format!(" of {}", job.name()) } else { String::new() };
        out.push_str(&format!("  {lines} missing in the run of {run}{of}\n"));
    }
}

fn push_findings(out: &mut String, audit: &Audit) {
    if !audit.findings.list.is_empty() {
        out.push_str("\nBroken promises");
        let left = audit.findings.total - audit.findings.list.len() as u64;
        let listed = format!(" (the first {}; {} more)", audit.findings.list.len(), count(left));
        out.push_str(if left > 0 { &listed } else { "" });
        out.push_str(":\n");
    }
    for finding in &audit.findings.list {
        let (job, place) = (&audit.jobs[finding.job], finding.place);
        let file = job.source.files.get(usize::from(place.file)).map_or("", String::as_str);
        let of = if audit.is_shared() { format!("{}: ", job.name()) } else { String::new() };
        out.push_str(&format!("  {of}{file}:{}: {}\n", place.line, finding.text));
    }
}

/// Lists the servers with the smallest margins.
fn push_servers(out: &mut String, audit: &Audit) {
    let rows = &audit.books.rows[Kind::Server as usize];
    let names = &audit.names[Kind::Server as usize].list;
    let mut servers: Vec<_> = rows.iter().zip(names).filter(|(row, _)| row.requests > 0).collect();
    servers.sort_by_key(|(row, name)| (margin(row), (*name).clone()));
    if servers.is_empty() {
        return;
    }
    let shown = servers.len().min(SERVERS_MAX);
    out.push_str(&format!("\nServers with the smallest margins ({shown} of {}):\n", servers.len()));
    out.push_str("   requests  a day  at once       gap      owed  server\n");
    for (row, name) in servers.into_iter().take(SERVERS_MAX) {
        let (gap, owed) = row
            .tightest
            .map_or(("-".to_owned(), "-".to_owned()), |(gap, owed)| (seconds(gap), seconds(owed)));
        out.push_str(&format!(
            "{:>11}{:>7}{:>9}{gap:>10}{owed:>10}  {}\n",
            count(row.requests),
            row.a_day,
            row.at_once,
            clip(name, 31)
        ));
    }
}

/// Returns the smallest difference between a gap and what was owed.
pub(super) fn margin(row: &Row) -> i128 {
    row.tightest.map_or(i128::MAX, rows::margin)
}

/// Formats a time in seconds, rounded down to milliseconds.
pub(super) fn seconds(us: u64) -> String {
    format!("{}.{:03} s", us / 1_000_000, us / 1_000 % 1_000)
}

fn plural(number: u64, name: &str) -> String {
    format!("{} {name}{}", count(number), if number == 1 { "" } else { "s" })
}
