//! The result of an audit as one HTML page that needs no other file.

use super::{Audit, csv, text};
use crate::commands::cells::html as escaped;

/// The number of rows of a kind that a page shows; CSV has all.
const ROWS_MAX: usize = 2_000;

const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n<title>sted audit</title>\n<style>\n\
:root { color-scheme: light dark }\n\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em }\n\
pre { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums }\n\
th, td { padding: .2em .8em; text-align: right; border-bottom: 1px solid #8884 }\n\
th:first-child, td:first-child { text-align: left } .broken td { background: #f002 }\n\
</style>\n";

/// Formats the results of audits.
pub(super) fn of(audits: &[Audit]) -> String {
    let mut out = HEAD.to_owned();
    for audit in audits {
        let name = escaped(&audit.title());
        out.push_str(&format!("<h1>{name}: {}</h1>\n", audit.verdict().name()));
        out.push_str(&format!("<pre>{}</pre>\n", escaped(&text::of(audit))));
        push_tables(&mut out, audit);
    }
    out
}

fn push_tables(out: &mut String, audit: &Audit) {
    let (mut last, mut shown) = (None, 0);
    csv::each(audit, |kind, name, row| {
        if last != Some(kind) {
            let end = if last.is_some() { "</table>\n" } else { "" };
            let caption = format!("<h2>By {}</h2>\n<table>\n", kind.name());
            let heads = [kind.name(), "requests", "a day", "at once", "gap", "owed", "broken"];
            let heads: String = heads.iter().map(|head| format!("<th>{head}")).collect();
            out.push_str(&format!("{end}{caption}<tr>{heads}\n"));
            (last, shown) = (Some(kind), 0);
        }
        shown += 1;
        if shown == ROWS_MAX {
            out.push_str("<tr><td>... more: use --format csv\n");
        }
        if shown >= ROWS_MAX {
            return;
        }
        let class = if row.broken > 0 { " class=\"broken\"" } else { "" };
        let time = |us: Option<u64>| us.map_or("-".to_owned(), text::seconds);
        let cells = [
            escaped(name),
            row.requests.to_string(),
            row.a_day.to_string(),
            row.at_once.to_string(),
            time(row.tightest.map(|(gap, _)| gap)),
            time(row.tightest.map(|(_, owed)| owed)),
            row.broken.to_string(),
        ];
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}")).collect();
        out.push_str(&format!("<tr{class}>{cells}\n"));
    });
    out.push_str(if last.is_some() { "</table>\n" } else { "" });
}
