//! The tables of a report. Each is declared once; all formats show the same rows.

use super::collect::Report;
use super::hosts::{OTHERS, Row};
use super::seeds::State;
use super::tally::{Sum, Tally};
use super::top::Top;
use crate::commands::{missing, summary};
use clap::builder::PossibleValuesParser;
use std::borrow::Cow;
use std::io;

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    Text(Cow<'a, str>),
    Count(u64),
    Code(i32),
    Bytes(u64),
    /// A duration in microseconds.
    Micros(u64),
    /// A point in time, in microseconds since 1970.
    Time(u64),
    None,
}

impl<'a> Cell<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::None } else { Self::Text(text) }
    }

    fn micros(us: Option<u64>) -> Self {
        us.map_or(Self::None, Self::Micros)
    }

    fn time(us: Option<u64>) -> Self {
        us.filter(|us| *us > 0).map_or(Self::None, Self::Time)
    }
}

/// Takes the rows of a table, one after the other.
pub(super) type Sink<'a> = dyn FnMut(&[Cell<'_>]) -> io::Result<()> + 'a;

/// A table of a report.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// The names of the columns, as CSV has them.
    pub(super) columns: &'static [&'static str],
    /// The number of columns that a text shows; 0 if it shows the table only on demand.
    pub(super) text_columns: usize,
    rows: fn(&Report, usize, &mut Sink<'_>) -> io::Result<u64>,
}

impl Table {
    /// Passes the first rows to `sink`; returns the number of the others.
    ///
    /// # Errors
    /// Those of `sink`.
    pub(super) fn each(
        &self,
        report: &Report,
        most: usize,
        sink: &mut Sink<'_>,
    ) -> io::Result<u64> {
        (self.rows)(report, most, sink)
    }
}

/// All tables.
pub(super) const ALL: [Table; 15] = [
    Table {
        name: "totals",
        title: "Totals",
        columns: &["item", "value"],
        text_columns: 2,
        rows: totals,
    },
    Table {
        name: "runs",
        title: "Runs",
        columns: &["began", "last", "lines", "requests", "pages", "bytes", "failed"],
        text_columns: 7,
        rows: runs,
    },
    Table {
        name: "seeds",
        title: "Seeds",
        columns: &["seed", "state", "outcome", "target", "status", "fix"],
        text_columns: 4,
        rows: seeds,
    },
    Table { name: "hosts", title: "Hosts", columns: HOST_COLUMNS, text_columns: 9, rows: hosts },
    Table {
        name: "domains",
        title: "Registrable domains",
        columns: DOMAIN_COLUMNS,
        text_columns: 10,
        rows: domains,
    },
    Table {
        name: "types",
        title: "Media types of pages",
        columns: &["type", "pages", "bytes"],
        text_columns: 3,
        rows: |report, most, sink| tally(&report.tallies.types, most, sink),
    },
    Table {
        name: "statuses",
        title: "Statuses of replies",
        columns: &["status", "replies", "bytes"],
        text_columns: 3,
        rows: |report, most, sink| tally(&report.tallies.statuses, most, sink),
    },
    Table {
        name: "outcomes",
        title: "Outcomes of tries",
        columns: &["outcome", "lines", "bytes", "fix"],
        text_columns: 4,
        rows: outcomes,
    },
    Table {
        name: "cut",
        title: "Cut or left out",
        columns: &["cause", "lines", "meaning", "fix"],
        text_columns: 3,
        rows: cut,
    },
    Table {
        name: "robots",
        title: "robots.txt",
        columns: &["item", "count"],
        text_columns: 2,
        rows: robots,
    },
    Table {
        name: "consent",
        title: "What was said of the use of pages",
        columns: CONSENT_COLUMNS,
        text_columns: 8,
        rows: consent,
    },
    Table {
        name: "largest",
        title: "Largest replies",
        columns: &["bytes", "status", "type", "url"],
        text_columns: 4,
        rows: |report, most, sink| top(&report.most[0], Cell::Bytes, most, sink),
    },
    Table {
        name: "slowest",
        title: "Slowest replies",
        columns: &["duration_us", "status", "type", "url"],
        text_columns: 4,
        rows: |report, most, sink| top(&report.most[1], Cell::Micros, most, sink),
    },
    Table {
        name: "annotations",
        title: "Annotations",
        columns: &["annotation", "lines"],
        text_columns: 0,
        rows: annotations,
    },
    Table {
        name: "time",
        title: "Over time",
        columns: &[
            "from",
            "seconds",
            "pages",
            "bytes",
            "status_1xx",
            "status_2xx",
            "status_3xx",
            "status_4xx",
            "status_5xx",
            "failed",
        ],
        text_columns: 0,
        rows: time,
    },
];

const HOST_COLUMNS: &[&str] = &[
    "host",
    "requests",
    "pages",
    "bytes",
    "http_errors",
    "failed",
    "denied",
    "median_us",
    "p95_us",
    "first",
    "last",
];
const CONSENT_COLUMNS: &[&str] = &[
    "host",
    "pages",
    "stated",
    "no_search",
    "no_archive",
    "no_mining",
    "no_ai_train",
    "no_ai_input",
    "search",
    "archive",
    "mining",
    "ai_train",
    "ai_input",
];
const DOMAIN_COLUMNS: &[&str] = &[
    "domain",
    "hosts",
    "requests",
    "pages",
    "bytes",
    "http_errors",
    "failed",
    "denied",
    "median_us",
    "p95_us",
    "first",
    "last",
];

/// Returns a parser of the names of tables.
pub(super) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(ALL.iter().map(|table| table.name))
}

/// Passes the first rows of a list to `sink`; returns the number of the others.
fn limited<T>(
    rows: Vec<T>,
    most: usize,
    sink: &mut Sink<'_>,
    mut cells: impl FnMut(T) -> Vec<Cell<'static>>,
) -> io::Result<u64> {
    let others = rows.len().saturating_sub(most);
    for row in rows.into_iter().take(most) {
        sink(&cells(row))?;
    }
    Ok(others as u64)
}

fn totals(report: &Report, _: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    let (total, lines) = (&report.total, &report.lines);
    let mut rows = vec![
        ("lines", Cell::Count(lines.all)),
        ("runs", Cell::Count(report.runs.count())),
        ("first", Cell::time(total.first)),
        ("last", Cell::time(Some(total.last))),
        ("hosts", Cell::Count(report.hosts.count() as u64)),
        ("requests", Cell::Count(total.requests)),
        ("pages", Cell::Count(total.pages)),
        ("bytes", Cell::Bytes(total.bytes)),
        ("http_errors", Cell::Count(total.http_errors)),
        ("failed", Cell::Count(total.failed)),
        ("failed_connections", Cell::Count(lines.unconnected)),
        ("denied", Cell::Count(total.denied)),
        ("median_us", Cell::micros(total.took.quantile(0.5))),
        ("p95_us", Cell::micros(total.took.quantile(0.95))),
        ("tried_again", Cell::Count(report.tallies.annotations.lines("tries"))),
        ("read_back", Cell::Count(lines.replayed)),
        ("read_back_logged_before", Cell::Count(lines.logged_twice)),
    ];
    let payloads = &report.known.payloads;
    if payloads.all > 0 {
        let names = match payloads.is_exact() {
            true => ("distinct_payloads", "repeated_payloads"),
            false => ("distinct_payloads_about", "repeated_payloads_about"),
        };
        rows.push(("archived_replies", Cell::Count(payloads.all)));
        rows.push((names.0, Cell::Count(payloads.count())));
        rows.push((names.1, Cell::Count(payloads.all - payloads.count())));
    }
    for state in State::ALL {
        let name = match state {
            State::Fetched => "seeds_fetched",
            State::Redirected => "seeds_redirected",
            State::Failed => "seeds_failed",
            State::Waiting => "seeds_waiting",
            State::Limited => "seeds_limited",
            State::Blocked => "seeds_blocked",
        };
        rows.push((name, Cell::Count(report.seeds.count(state))));
    }
    // There are few, and all are shown.
    limited(rows, usize::MAX, sink, |(name, cell)| vec![Cell::text(name), cell])
}

fn runs(report: &Report, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    limited(report.runs.list.iter().collect(), most, sink, |run| {
        vec![
            Cell::time(Some(run.began).filter(|began| *began > 0).or(run.row.first)),
            Cell::time(Some(run.row.last)),
            Cell::Count(run.lines),
            Cell::Count(run.row.requests),
            Cell::Count(run.row.pages),
            Cell::Bytes(run.row.bytes),
            Cell::Count(run.row.failed),
        ]
    })
}

fn seeds(report: &Report, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    limited(report.seeds.by_state(), most, sink, |(url, seed)| {
        vec![
            Cell::text(url.to_owned()),
            Cell::text(seed.state.name()),
            Cell::text(seed.outcome.clone()),
            Cell::text(seed.target.as_deref().unwrap_or("").to_owned()),
            if seed.status == 0 { Cell::None } else { Cell::Code(seed.status) },
            Cell::text(seed.fix()),
        ]
    })
}

fn figures(row: &Row) -> [Cell<'static>; 10] {
    [
        Cell::Count(row.requests),
        Cell::Count(row.pages),
        Cell::Bytes(row.bytes),
        Cell::Count(row.http_errors),
        Cell::Count(row.failed),
        Cell::Count(row.denied),
        Cell::micros(row.took.quantile(0.5)),
        Cell::micros(row.took.quantile(0.95)),
        Cell::time(row.first),
        Cell::time(Some(row.last)),
    ]
}

fn hosts(report: &Report, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    let rows = report.hosts.by_requests();
    let left = limited(rows, most, sink, |(name, row)| {
        [Cell::text(name.to_owned())].into_iter().chain(figures(row)).collect()
    })?;
    if let Some(row) = report.hosts.others() {
        let cells: Vec<_> = [Cell::text(OTHERS)].into_iter().chain(figures(row)).collect();
        sink(&cells)?;
    }
    Ok(left)
}

fn domains(report: &Report, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    let left = limited(report.hosts.domains(), most, sink, |domain| {
        let begin = [Cell::text(domain.name), Cell::Count(domain.hosts)];
        begin.into_iter().chain(figures(&domain.row)).collect()
    })?;
    if let Some(row) = report.hosts.others() {
        let begin = [Cell::text(OTHERS), Cell::None];
        let cells: Vec<_> = begin.into_iter().chain(figures(row)).collect();
        sink(&cells)?;
    }
    Ok(left)
}

fn tally(tally: &Tally, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    limited(tally.by_lines(), most, sink, |(name, Sum { lines, bytes })| {
        vec![Cell::text(name.to_owned()), Cell::Count(lines), Cell::Bytes(bytes)]
    })
}

fn outcomes(report: &Report, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    limited(report.tallies.outcomes.by_lines(), most, sink, |(name, Sum { lines, bytes })| {
        let fix = match name {
            "ok" | "redirect" | "http-error" | "redirect-to-known" | "canonical-known"
            | "signature-asked" => "",
            name => missing::fix(name),
        };
        let (lines, bytes) = (Cell::Count(lines), Cell::Bytes(bytes));
        vec![Cell::text(name.to_owned()), lines, bytes, Cell::text(fix)]
    })
}

/// Lists what a bound or a defect has cut: annotations and outcomes that have a fix.
fn cut(report: &Report, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    let conf = report.conf.as_ref().cloned().unwrap_or_default();
    let tallies = [&report.tallies.kept, &report.tallies.outcomes];
    let all = tallies.into_iter().flat_map(Tally::by_lines);
    let found = all.filter_map(|(name, sum)| {
        let meaning = summary::meaning_of(name);
        let fix = missing::fix_of_bound(name, &conf);
        (meaning.is_some() || fix.is_some()).then_some((name, sum.lines, meaning, fix))
    });
    limited(found.collect(), most, sink, |(name, lines, meaning, fix)| {
        let fix = fix.unwrap_or_default();
        let meaning = meaning.map_or_else(|| fix.clone(), str::to_owned);
        let (name, lines) = (Cell::text(name.to_owned()), Cell::Count(lines));
        vec![name, lines, Cell::text(meaning), Cell::text(fix)]
    })
}

fn robots(report: &Report, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    let [failed, _, read, redirected, absent, broken] = report.tallies.robots;
    let outcomes = &report.tallies.outcomes;
    let mut rows = vec![
        ("files_read".to_owned(), read),
        ("files_redirected".to_owned(), redirected),
        ("files_absent".to_owned(), absent),
        ("files_refused".to_owned(), broken),
        ("files_failed".to_owned(), failed),
        ("urls_forbidden".to_owned(), outcomes.lines("robots-denied")),
        ("urls_of_unreachable_files".to_owned(), outcomes.lines("robots-unreachable")),
    ];
    let odd = report.tallies.annotations.by_lines().into_iter();
    let odd = odd.filter(|(name, _)| name.starts_with("robots-"));
    rows.extend(odd.map(|(name, sum)| (name.to_owned(), sum.lines)));
    limited(rows, most, sink, |(name, count)| vec![Cell::text(name), Cell::Count(count)])
}

fn consent(report: &Report, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    let rows = report.hosts.by_uses();
    let others = report.hosts.others().filter(|row| row.uses.stated > 0);
    let left = limited(rows, most, sink, |(name, row)| consent_of(name, row))?;
    others.iter().try_for_each(|row| sink(&consent_of(OTHERS, row)))?;
    Ok(left)
}

fn consent_of(name: &str, row: &Row) -> Vec<Cell<'static>> {
    let counts = row.uses.reserved.into_iter().chain(row.uses.allowed).map(u64::from);
    let counts = [row.pages, row.uses.stated].into_iter().chain(counts).map(Cell::Count);
    [Cell::text(name.to_owned())].into_iter().chain(counts).collect()
}

fn top(
    top: &Top,
    cell: fn(u64) -> Cell<'static>,
    most: usize,
    sink: &mut Sink<'_>,
) -> io::Result<u64> {
    limited(top.list.iter().collect(), most, sink, |fetch| {
        let mime = if fetch.mime == "-" { "" } else { &fetch.mime };
        vec![
            cell(fetch.amount),
            Cell::Code(fetch.status),
            Cell::text(mime.to_owned()),
            Cell::text(fetch.url.clone()),
        ]
    })
}

fn annotations(report: &Report, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    limited(report.tallies.annotations.by_lines(), most, sink, |(name, sum)| {
        vec![Cell::text(name.to_owned()), Cell::Count(sum.lines)]
    })
}

fn time(report: &Report, most: usize, sink: &mut Sink<'_>) -> io::Result<u64> {
    let seconds = report.series.seconds();
    limited(report.series.intervals().collect(), most, sink, |(at, interval)| {
        let [failed, classes @ ..] = interval.by_class;
        let (pages, bytes) = (Cell::Count(interval.pages), Cell::Bytes(interval.bytes));
        let begin = [Cell::Time(at), Cell::Count(seconds), pages, bytes];
        let classes = classes.into_iter().chain([failed]).map(Cell::Count);
        begin.into_iter().chain(classes).collect()
    })
}
