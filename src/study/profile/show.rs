//! The steps of a profile as tables: for a terminal, and for a spreadsheet.

use super::step::{ACCEPTED, Step};
use super::verdict::Verdict;
use crate::ground::stats::Stage;
use crate::study::report::number::{grouped, percent};
use crate::study::report::table::{Best, Cell, Column, Table};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Returns the text that is printed at the end of a profile.
///
/// `graph` is the file of the flame graph, or why there is none.
pub(super) fn text(
    steps: &[Step],
    verdict: &Verdict,
    graph: Option<&Result<PathBuf, String>>,
    directory: &Path,
) -> String {
    let mut text = summary(steps).text();
    text.push('\n');
    for sentence in &verdict.words {
        text.push_str(sentence);
        text.push('\n');
    }
    let report = directory.join("report.html");
    writeln!(text, "\nThe report: {}", report.display()).expect("a string takes all");
    match graph {
        Some(Ok(file)) => writeln!(text, "The flame graph: {}", file.display()),
        Some(Err(why)) => writeln!(text, "There is no flame graph: {why}."),
        None => Ok(()),
    }
    .expect("a string takes all");
    text
}

/// Describes a step in one line of text.
pub(super) fn line(step: &Step) -> String {
    format!(
        "{} connections, {} pages/s, core {} busy, {} us of CPU a page",
        grouped(step.connections as f64, 0),
        grouped(step.rate(), 0),
        percent(step.busy(), 0),
        grouped(step.page_us(), 1)
    )
}

/// Returns a table of the most important figures, one row per step, with the range of throughput
/// over repeats.
pub(super) fn summary(steps: &[Step]) -> Table {
    let is_repeated = steps.iter().any(|step| step.spread.is_some());
    let mut header = vec![
        Column::number("connections", ""),
        Column::number("pages/s", "").with_best(Best::Highest),
        Column::number("Mb/s", ""),
        Column::number("user", "%"),
        Column::number("system", "%"),
        Column::number("idle", "%"),
        Column::number("taken away", "%"),
        Column::number("CPU a page", "us").with_best(Best::Lowest),
        Column::number("lag at 99%", "ms"),
        Column::number("new URLs a page", ""),
        Column::number("lost", ""),
    ];
    let has_lab = steps.iter().any(|step| step.lab_us.is_some());
    if has_lab {
        header.push(Column::number("lab", "%"));
    }
    if is_repeated {
        header.push(Column::number("least", "pages/s"));
        header.push(Column::number("most", "pages/s"));
    }
    let rows = steps.iter().map(|step| {
        let mut row = vec![
            Cell::number(step.connections as f64, 0),
            Cell::number(step.rate(), 0),
            Cell::number(step.megabits(), 1),
            Cell::number(step.user() * 100.0, 0),
            Cell::number(step.system() * 100.0, 0),
            Cell::number(step.idle() * 100.0, 0),
            Cell::number(step.taken() * 100.0, 0),
            Cell::number(step.page_us(), 1),
            Cell::number(step.lag_us.quantile(0.99) as f64 / 1e3, 2),
            Cell::number(step.found(), 2),
            Cell::number(step.failed.lost as f64, 0),
        ];
        if has_lab {
            row.push(step.lab().map_or(Cell::Missing, |share| Cell::number(share * 100.0, 0)));
        }
        if let Some((least, most)) = step.spread {
            row.extend([Cell::number(least, 0), Cell::number(most, 0)]);
        }
        row
    });
    Table { caption: String::new(), header, rows: rows.collect() }
}

/// Returns a table of a step's CPU time per page, one row per stage of the loop.
pub(super) fn stages(step: &Step) -> Table {
    let header = vec![
        Column::text("stage"),
        Column::number("CPU a page", "us"),
        Column::number("share", "%"),
        Column::number("begun a page", ""),
        Column::number("bytes a page", ""),
    ];
    let pages = step.pages.max(1) as f64;
    let rows = Stage::ALL.into_iter().map(|stage| {
        let usage = step.usage.of(stage);
        vec![
            Cell::text(stage.name()),
            Cell::number(usage.cpu_ns as f64 / 1e3 / pages, 2),
            Cell::number(step.share(stage) / step.busy().max(1e-9) * 100.0, 1),
            Cell::number(usage.calls as f64 / pages, 2),
            if usage.bytes > 0 {
                Cell::number(usage.bytes as f64 / pages, 0)
            } else {
                Cell::Missing
            },
        ]
    });
    Table { caption: String::new(), header, rows: rows.collect() }
}

/// Returns a table of all figures, one row per step. A column of servers counts those that accept
/// so many requests on one connection, or more, but fewer than the next column says.
pub(super) fn whole(steps: &[Step]) -> Table {
    let names = [
        "connections",
        "repeat",
        "seconds",
        "pages",
        "bytes",
        "urls_new",
        "opened",
        "lost",
        "timed_out",
        "user_us",
        "system_us",
        "jobs_us",
        "names_us",
        "lab_us",
        "lag_p50_us",
        "lag_p99_us",
        "lag_max_us",
        "metered_share",
        "metering_share",
        "taken_us",
        "ran_dry",
    ];
    let stages = Stage::ALL.into_iter().flat_map(|stage| {
        let name = stage.name();
        [format!("{name}_cpu_ns"), format!("{name}_calls"), format!("{name}_bytes")]
    });
    let accepted = ACCEPTED.iter().map(|(least, _)| format!("servers_accepting_{least}"));
    let header = names.iter().map(|name| (*name).to_owned()).chain(stages).chain(accepted);
    let header = header.map(|name| Column::number(&name, "")).collect();
    let rows = steps.iter().map(|step| {
        let usage = &step.usage;
        let mut row = vec![
            step.connections as f64,
            f64::from(step.repeat),
            step.seconds(),
            step.pages as f64,
            step.bytes as f64,
            step.urls_new as f64,
            step.opened as f64,
            step.failed.lost as f64,
            step.failed.timed_out as f64,
            usage.looping.user_us as f64,
            usage.looping.system_us as f64,
            usage.jobs_us as f64,
            usage.names_us as f64,
            step.lab_us.map_or(f64::NAN, |us| us as f64),
            step.lag_us.quantile(0.5) as f64,
            step.lag_us.quantile(0.99) as f64,
            step.lag_us.max() as f64,
            usage.accounted(),
            usage.metering(),
            usage.taken_us() as f64,
            f64::from(u8::from(step.ran_dry)),
        ];
        for stage in Stage::ALL {
            let usage = usage.of(stage);
            row.extend([usage.cpu_ns as f64, usage.calls as f64, usage.bytes as f64]);
        }
        row.extend(step.accepted.map(|servers| servers as f64));
        row.into_iter().map(|value| Cell::number(value, 3)).collect()
    });
    Table { caption: String::new(), header, rows: rows.collect() }
}
