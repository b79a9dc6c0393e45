//! The results of a cache study as tables: for people, and for spreadsheets.

use super::misses::WINDOWS;
use super::policy::Policy;
use super::reading::Reading;
use super::study::{Curves, Study};
use super::{Asked, agree};
use crate::study::output::wrapped;
use crate::study::report::table::{Cell, Column, Table};
use std::path::Path;

/// The name of the stream of all links: for people, and for programs.
pub(super) const FULL: (&str, &str) = ("all links", "full");
/// The name of the stream of links to other processes: for people, and for programs.
pub(super) const CROSS: (&str, &str) = ("links across", "cross");

/// Returns those streams of a study that have links: their names and their results.
pub(super) fn streams(study: &Study) -> Vec<((&'static str, &'static str), &Curves)> {
    let cross = study.cross.as_ref().map(|curves| (CROSS, curves));
    [Some((FULL, &study.full)), cross].into_iter().flatten().collect()
}

/// Returns a table of the traces' statistics, a row for each.
pub(super) fn traces(studies: &[Study]) -> Table {
    let mut header = vec![Column::text("trace")];
    header.extend(["pages", "servers", "links", "URLs"].map(|name| Column::number(name, "")));
    header.extend([
        Column::number("links a page", "mean"),
        Column::number("unique", "mean"),
        Column::number("stay on host", "%"),
        Column::number("new", "%"),
        Column::number("met on page", "%"),
        Column::number("on host", "%"),
        Column::number("elsewhere", "%"),
        Column::number("connections", "mean"),
        Column::number("parked", "mean"),
    ]);
    let row = |study: &Study| {
        let facts = &study.facts;
        let share = |count: u64| Cell::number(100.0 * count as f64 / facts.links as f64, 1);
        vec![
            Cell::text(&study.name),
            Cell::number(facts.pages as f64, 0),
            Cell::number(facts.servers as f64, 0),
            Cell::number(facts.links as f64, 0),
            Cell::number(study.full.urls as f64, 0),
            Cell::number(facts.per_page.0, 1),
            Cell::number(facts.unique_per_page.0, 1),
            share(facts.local),
            share(facts.origins.new),
            share(facts.origins.page),
            share(facts.origins.host),
            share(facts.origins.elsewhere),
            Cell::number(facts.busy, 1),
            Cell::number(facts.parked, 1),
        ]
    };
    Table { caption: String::new(), header, rows: studies.iter().map(row).collect() }
}

/// The meaning of the columns of [`traces`].
pub(super) const TRACES_LEGEND: &str = "\
    new: links to URLs that were never linked before, in per cent of all links; the other URLs \
    were linked last on the same page, on another page of the same host, or on another host. \
    connections: on a visit when a page was scanned; parked: kept open between visits.";

/// Returns a table of the miss rates of a stream, a row for each size.
pub(super) fn rates(study: &Study, name: &str, curves: &Curves) -> Table {
    let mut header = vec![Column::number("entries", ""), Column::number("per connection", "")];
    header.extend(Policy::ALL.map(|policy| Column::number(policy.name(), "%")));
    header.extend(["LRU", "CLOCK", "RANDOM"].map(|name| Column::number(name, "x MIN")));
    let row = |level: usize| {
        let entries = (1_u64 << level) as f64;
        let mut cells = vec![Cell::number(entries, 0)];
        let share = entries / study.connections();
        cells.push(Cell::number(share, if share < 10.0 { 2 } else { 0 }));
        let rate = |policy| Cell::number(100.0 * curves.rate(policy, level), 2);
        cells.extend(Policy::ALL.map(rate));
        let ratio = |policy| match curves.against_min(policy, level) {
            Some(ratio) => Cell::number(ratio, 3),
            None => Cell::Missing,
        };
        cells.extend([Policy::Lru, Policy::Clock, Policy::Random].map(ratio));
        cells
    };
    let caption = format!("Misses, {}: {name}", study.name);
    Table { caption, header, rows: (0..curves.levels()).map(row).collect() }
}

/// Returns a table of every miss count of every stream, for programs.
pub(super) fn all_misses(studies: &[Study]) -> Table {
    let mut header = ["trace", "stream", "policy"].map(Column::text).to_vec();
    header.extend(
        ["entries", "entries_per_connection", "links", "misses", "miss_rate", "relative_to_min"]
            .map(|name| Column::number(name, "")),
    );
    let mut rows = Vec::new();
    for (study, (_, stream), curves, policy, level) in each(studies) {
        let entries = (1_u64 << level) as f64;
        rows.push(vec![
            Cell::text(&study.name),
            Cell::text(stream),
            Cell::text(policy.name()),
            Cell::number(entries, 0),
            Cell::number(entries / study.connections(), 3),
            Cell::number(curves.links as f64, 0),
            Cell::number(curves.misses(policy, level) as f64, 0),
            Cell::number(curves.rate(policy, level), 6),
            curves.against_min(policy, level).map_or(Cell::Missing, |ratio| Cell::number(ratio, 6)),
        ]);
    }
    Table { caption: String::new(), header, rows }
}

/// Returns a table of the misses in each window of links at the selected cache size, for programs.
pub(super) fn over_time(studies: &[Study], asked: &Asked) -> Table {
    let mut header = ["trace", "stream", "policy"].map(Column::text).to_vec();
    header.extend(["entries", "window", "links", "misses"].map(|name| Column::number(name, "")));
    let mut rows = Vec::new();
    for (study, (_, stream), curves, policy, level) in each(studies) {
        if level != asked.level(curves) {
            continue;
        }
        for at in 0..WINDOWS {
            let (links, misses) = curves.in_window(policy, level, at);
            rows.push(vec![
                Cell::text(&study.name),
                Cell::text(stream),
                Cell::text(policy.name()),
                Cell::number((1_u64 << level) as f64, 0),
                Cell::number((at + 1) as f64, 0),
                Cell::number(links as f64, 0),
                Cell::number(f64::from(misses), 0),
            ]);
        }
    }
    Table { caption: String::new(), header, rows }
}

/// Visits every point of every curve: the study, the names of the stream, the results of the
/// stream, the policy, and the level.
fn each(
    studies: &[Study],
) -> impl Iterator<Item = (&Study, (&'static str, &'static str), &Curves, Policy, usize)> {
    studies.iter().flat_map(|study| {
        streams(study).into_iter().flat_map(move |(names, curves)| {
            Policy::ALL.into_iter().flat_map(move |policy| {
                (0..curves.levels()).map(move |level| (study, names, curves, policy, level))
            })
        })
    })
}

/// Returns the text that the command prints at the end.
pub(super) fn text(studies: &[Study], asked: &Asked, report: &Path) -> String {
    let mut text = traces(studies).text();
    text.push('\n');
    text.push_str(&wrapped(TRACES_LEGEND));
    for study in studies {
        for ((name, _), curves) in streams(study) {
            text.push('\n');
            text.push_str(&rates(study, name, curves).text());
            text.push('\n');
            text.push_str(&wrapped(&Reading::of(curves).text(study.connections())));
        }
    }
    if let Some(agreement) = agree::text(studies) {
        text.push('\n');
        text.push_str(&wrapped(&agreement));
    }
    let what = if studies.len() == 1 { "trace" } else { "traces" };
    text.push_str(&format!(
        "\n{} {what}, {} processes; report: {}\n",
        studies.len(),
        asked.processes,
        report.display()
    ));
    text
}
