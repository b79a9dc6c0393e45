//! The result of an audit as CSV: one row for each server, host, address and domain.

use super::Audit;
use super::rows::{Kind, Row};
use crate::commands::cells::csv as quoted;

const HEAD: &str = "job,verdict,kind,name,requests,requests_a_day_max,requests_at_once_max,\
                    visits_at_once_max,gap_min_us,tightest_gap_us,tightest_owed_us,broken\n";

/// Formats the results of audits.
pub(super) fn of(audits: &[Audit]) -> String {
    let mut out = HEAD.to_owned();
    for audit in audits {
        let begin = format!("{},{}", quoted(&audit.title()), audit.verdict().name());
        each(audit, |kind, name, row| {
            let number = |number: Option<u64>| number.map_or(String::new(), |us| us.to_string());
            let cells = [
                begin.clone(),
                kind.name().to_owned(),
                quoted(name),
                row.requests.to_string(),
                row.a_day.to_string(),
                row.at_once.to_string(),
                row.visits_at_once.to_string(),
                number(row.gap),
                number(row.tightest.map(|(gap, _)| gap)),
                number(row.tightest.map(|(_, owed)| owed)),
                row.broken.to_string(),
            ];
            out.push_str(&cells.join(","));
            out.push('\n');
        });
    }
    out
}

/// Calls `each` for each row of an audit that has requests, in the order of kinds and names.
pub(super) fn each(audit: &Audit, mut each: impl FnMut(Kind, &str, &Row)) {
    for kind in Kind::ALL {
        let names = &audit.names[kind as usize].list;
        let mut rows: Vec<_> = names.iter().zip(&audit.books.rows[kind as usize]).collect();
        rows.sort_by(|one, other| one.0.cmp(other.0));
        let rows = rows.into_iter().filter(|(_, row)| row.requests > 0);
        rows.for_each(|(name, row)| each(kind, name, row));
    }
}
