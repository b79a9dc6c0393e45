//! A report as text, for people: at most 100 columns.

use super::collect::Report;
use super::tables::{ALL, Cell, Table};
use crate::commands::show::{clip, count};
use crate::ground::time::UnixTime;
use indicatif::HumanBytes;
use std::io::{self, Write};

/// The columns of a line.
const COLUMNS: usize = 100;
/// A column of texts is not cut below this width.
const TEXT_MIN: usize = 14;

/// Writes the first rows of the tables.
///
/// # Errors
/// The result can't be written.
pub(super) fn write(
    out: &mut dyn Write,
    reports: &[Report],
    tables: &[&Table],
    top: usize,
) -> io::Result<()> {
    // On demand, a text shows every table.
    let is_chosen = tables.len() < ALL.len();
    for report in reports {
        writeln!(out, "{}", report.job)?;
        let doubts = report.doubts();
        if !doubts.is_empty() {
            writeln!(out, "\nWhat to know of these figures:")?;
        }
        doubts.iter().try_for_each(|doubt| writeln!(out, "  {doubt}"))?;
        for table in tables {
            let columns = match table.text_columns {
                0 if is_chosen => table.columns.len(),
                columns => columns,
            };
            if columns > 0 {
                write_table(out, report, table, columns, top)?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_table(
    out: &mut dyn Write,
    report: &Report,
    table: &Table,
    columns: usize,
    top: usize,
) -> io::Result<()> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut are_texts = vec![true; columns];
    let left = table.each(report, top, &mut |row| {
        for (is_text, cell) in are_texts.iter_mut().zip(row) {
            *is_text &= matches!(cell, Cell::Text(_) | Cell::None);
        }
        rows.push(row.iter().take(columns).map(show).collect());
        Ok(())
    })?;
    if rows.is_empty() {
        return Ok(());
    }
    let heads = table.columns[..columns].iter();
    let heads = heads.map(|head| plain(head)).collect();
    match table.columns[0] {
        "item" => rows.iter_mut().for_each(|row| row[0] = plain(&row[0])),
        _ => rows.insert(0, heads),
    }
    let widths = widths(&rows, &are_texts);
    writeln!(out, "\n{}", table.title)?;
    for row in &rows {
        let cells = row.iter().zip(&widths).zip(&are_texts);
        let cells = cells.map(|((cell, width), is_text)| {
            let cell = clip(cell, *width);
            if *is_text { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        writeln!(out, "  {}", line.trim_end())?;
    }
    if left > 0 {
        writeln!(out, "  ... and {} more", count(left))?;
    }
    Ok(())
}

/// Returns the widths of the columns. The widest ones with texts are cut until a line fits.
fn widths(rows: &[Vec<String>], are_texts: &[bool]) -> Vec<usize> {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..are_texts.len()).map(width).collect();
    let most = COLUMNS - 2 * widths.len();
    while widths.iter().sum::<usize>() > most {
        let texts = (0..widths.len()).filter(|at| are_texts[*at] && widths[*at] > TEXT_MIN);
        let Some(widest) = texts.max_by_key(|at| widths[*at]) else { break };
        widths[widest] -= 1;
    }
    widths
}

/// Returns the name of a column or an item, without its unit.
pub(super) fn plain(name: &str) -> String {
    name.trim_end_matches("_us").replace('_', " ")
}

/// Formats a cell for people.
pub(super) fn show(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Text(text) => text.clone().into_owned(),
        Cell::Count(number) => count(*number),
        Cell::Code(code) => code.to_string(),
        Cell::Bytes(bytes) => HumanBytes(*bytes).to_string(),
        Cell::Micros(us) if *us < 999_950 => format!("{:.1} ms", *us as f64 / 1e3),
        Cell::Micros(us) => format!("{:.1} s", *us as f64 / 1e6),
        Cell::Time(us) => UnixTime::from_micros(*us).civil().to_seconds(),
        Cell::None => "-".to_owned(),
    }
}
