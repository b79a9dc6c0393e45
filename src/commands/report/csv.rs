//! A table of a report as CSV (RFC 4180), for programs: plain numbers, times in UTC.
//!
//! Law: a table is read back by any reader of CSV as it was, and a spreadsheet takes no text for a
//! formula.

use super::collect::Report;
use super::tables::{Cell, Table};
use crate::commands::cells;
use crate::ground::time::UnixTime;
use std::io::{self, Write};

/// Writes one table of all reports.
///
/// # Errors
/// The result can't be written.
pub(super) fn write(out: &mut dyn Write, reports: &[Report], table: &Table) -> io::Result<()> {
    writeln!(out, "job,{}", table.columns.join(","))?;
    for report in reports {
        let job = cells::csv(&cells::harmless(&report.job));
        table.each(report, usize::MAX, &mut |row| {
            write!(out, "{job}")?;
            row.iter().try_for_each(|cell| write!(out, ",{}", text_of(cell)))?;
            writeln!(out)
        })?;
    }
    Ok(())
}

fn text_of(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Text(text) => cells::csv(&cells::harmless(text)),
        Cell::Count(number) | Cell::Bytes(number) | Cell::Micros(number) => number.to_string(),
        Cell::Code(code) => code.to_string(),
        Cell::Time(us) => UnixTime::from_micros(*us).civil().to_seconds(),
        Cell::None => String::new(),
    }
}
