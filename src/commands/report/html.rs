//! A report as one HTML page, without scripts, which needs no other file and can be printed.

use super::collect::Report;
use super::tables::{Cell, Table};
use super::{plot, text};
use crate::commands::cells::html as escaped;
use crate::commands::show::count;
use std::io::{self, Write};

const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
style-src 'unsafe-inline'\">\n<title>sted report</title>\n<style>\n\
:root { color-scheme: light dark }\n\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em }\n\
section { overflow-x: auto }\n\
table { border-collapse: collapse; font-variant-numeric: tabular-nums }\n\
th, td { padding: .15em .7em; text-align: right; border-bottom: 1px solid #8884 }\n\
th { position: sticky; top: 0; background: Canvas }\n\
.t { text-align: left; overflow-wrap: anywhere; max-width: 36em }\n\
svg { max-width: 100%; height: auto } svg text { font: 12px system-ui, sans-serif; \
fill: CanvasText }\n\
@media print { body { max-width: none; font-size: 9pt } section { overflow: visible } \
th { position: static } tr, svg { break-inside: avoid } h2 { break-after: avoid } }\n\
</style>\n";

/// Writes plots and the first rows of the tables.
///
/// # Errors
/// The result can't be written.
pub(super) fn write(
    out: &mut dyn Write,
    reports: &[Report],
    tables: &[&Table],
    top: usize,
) -> io::Result<()> {
    out.write_all(HEAD.as_bytes())?;
    for report in reports {
        writeln!(out, "<h1>{}</h1>", escaped(&report.job))?;
        let doubts = report.doubts();
        if !doubts.is_empty() {
            writeln!(out, "<p>What to know of these figures:\n<ul>")?;
        }
        doubts.iter().try_for_each(|doubt| writeln!(out, "<li>{}", escaped(doubt)))?;
        if !doubts.is_empty() {
            writeln!(out, "</ul>")?;
        }
        for table in tables {
            write_table(out, report, table, top)?;
            if table.name == "totals" {
                plot::write(out, &report.series)?;
            }
        }
    }
    Ok(())
}

fn write_table(out: &mut dyn Write, report: &Report, table: &Table, top: usize) -> io::Result<()> {
    let mut is_begun = false;
    let left = table.each(report, top, &mut |row| {
        if !is_begun {
            writeln!(out, "<section><h2>{}</h2>\n<table>\n<thead><tr>", escaped(table.title))?;
            for (head, cell) in table.columns.iter().zip(row) {
                writeln!(out, "<th{}>{}", class(cell), text::plain(head))?;
            }
            writeln!(out, "<tbody>")?;
        }
        is_begun = true;
        write!(out, "<tr>")?;
        for (column, cell) in table.columns.iter().zip(row) {
            let shown = match *column {
                "item" => text::plain(&text::show(cell)),
                _ => text::show(cell),
            };
            write!(out, "<td{}>{}", class(cell), escaped(&shown))?;
        }
        writeln!(out)
    })?;
    if is_begun {
        writeln!(out, "</table>")?;
    }
    if left > 0 {
        writeln!(out, "<p>... and {} more: use --top, or --format csv", count(left))?;
    }
    if is_begun { writeln!(out, "</section>") } else { Ok(()) }
}

fn class(cell: &Cell<'_>) -> &'static str {
    if matches!(cell, Cell::Text(_) | Cell::None) { " class=\"t\"" } else { "" }
}
