//! Differences from a named policy, repeat by repeat, and which policy may be named the best.

use super::columns::{Figure, area, name_cells, names, spent};
use super::measure::Figures;
use super::plan::Spec;
use super::results::{Results, Row};
use super::series::Along;
use super::stats::Paired;
use crate::study::report::table::{Best, Cell, Column, Table};

/// A figure that is compared repeat by repeat.
struct Compared {
    name: &'static str,
    /// The name of the figure in paired.csv.
    key: &'static str,
    /// Whether the quotients are compared, not the differences: times and other expenses, of which
    /// a tenth more means as much on any web.
    is_ratio: bool,
    of: fn(&Figures) -> f64,
}

const fn points(name: &'static str, key: &'static str, of: fn(&Figures) -> f64) -> Compared {
    Compared { name, key, is_ratio: false, of }
}

const fn ratio(name: &'static str, key: &'static str, of: fn(&Figures) -> f64) -> Compared {
    Compared { name, key, is_ratio: true, of }
}

/// The figures of paired.csv. The table for people has the first [`SHOWN`].
const COMPARED: [Compared; 10] = [
    points("area", "area_percent", |of| area(of, Along::Time)),
    ratio("to 50%", "to_50_seconds", |of| spent(of, Along::Time, 0)),
    ratio("to 80%", "to_80_seconds", |of| spent(of, Along::Time, 2)),
    ratio("to 90%", "to_90_seconds", |of| spent(of, Along::Time, 3)),
    points("area by request", "area_requests_percent", |of| area(of, Along::Requests)),
    ratio("requests to 80%", "to_80_requests", |of| spent(of, Along::Requests, 2)),
    points("area by byte", "area_bytes_percent", |of| area(of, Along::Bytes)),
    ratio("bytes to 80%", "to_80_megabytes", |of| spent(of, Along::Bytes, 2)),
    points("area by CPU", "area_cpu_percent", |of| area(of, Along::Core)),
    ratio("CPU to 80%", "to_80_cpu_seconds", |of| spent(of, Along::Core, 2)),
];
const SHOWN: usize = 6;

/// Returns the comparison of every policy with that of `compare.against`, for people; `None` if
/// there is nothing to compare, or one repeat only.
pub(super) fn table(results: &Results<'_>) -> Option<Table> {
    let plan = results.plan;
    if plan.repeats < 2 || pairs(results).next().is_none() {
        return None;
    }
    let mut header = names(plan);
    header.extend(plan.against_variant.map(|_| Column::text("against")));
    header.extend(COMPARED[..SHOWN].iter().map(|compared| Column::number(compared.name, "")));
    header.push(Column::number("larger area", "repeats"));
    header.push(Column::number("sign test", "p"));
    let rows = pairs(results).map(|(row, other)| {
        let mut cells = name_cells(results, row);
        cells.extend(plan.against_variant.map(|_| Cell::Text(against_name(results, other))));
        let paired = |compared: &Compared| of_pair(results, (row, other), compared);
        cells.extend(COMPARED[..SHOWN].iter().map(|compared| match paired(compared) {
            Some(paired) => Cell::Text(in_words(&paired, compared.is_ratio, plan.repeats as usize)),
            None => Cell::Missing,
        }));
        match paired(&COMPARED[0]) {
            Some(Paired { above, below, sign_p, .. }) => {
                cells.push(Cell::Text(format!("{above} of {}", above + below)));
                cells.push(Cell::number(sign_p, 4));
            }
            None => cells.extend([Cell::Missing, Cell::Missing]),
        }
        cells
    });
    let caption = format!(
        "Against {}, repeat by repeat: mean difference of areas in percentage points, mean \
         quotient of what is spent; in brackets the 95% interval",
        plan.against.name()
    );
    Some(Table { rows: rows.collect(), header, caption })
}

/// Returns all comparisons with the policy of `compare.against` for programs, one a row.
pub(super) fn whole_table(results: &Results<'_>) -> Table {
    let words = ["variant", "value", "policy", "against", "figure", "kind"].map(Column::text);
    let numbers = ["repeats", "mean", "low", "high", "above", "below", "sign_p"];
    let numbers = numbers.map(|name| Column::number(name, ""));
    let header = words.into_iter().chain(numbers).collect();
    let mut rows = Vec::new();
    for (row, other) in pairs(results) {
        let Spec { variant, value, policy, .. } = results.spec(row);
        for compared in &COMPARED {
            let Some(paired) = of_pair(results, (row, other), compared) else { continue };
            let kind = if compared.is_ratio { "ratio" } else { "difference" };
            let mut cells: Vec<Cell> = [
                &results.plan.variants[*variant],
                results.plan.value_name(*value),
                policy.name(),
                &against_name(results, other),
                compared.key,
                kind,
            ]
            .map(Cell::text)
            .into();
            let end = |of: fn((f64, f64)) -> f64| {
                paired.interval.map_or(Cell::Missing, |ends| Cell::number(of(ends), 6))
            };
            cells.extend([
                Cell::number(paired.repeats as f64, 0),
                Cell::number(paired.mean, 6),
                end(|ends| ends.0),
                end(|ends| ends.1),
                Cell::number(paired.above as f64, 0),
                Cell::number(paired.below as f64, 0),
                Cell::number(paired.sign_p, 6),
            ]);
            rows.push(cells);
        }
    }
    Table { caption: String::new(), header, rows }
}

/// Returns the name of a row that another is compared with: its policy, and its variant if there
/// is a choice.
fn against_name(results: &Results<'_>, row: &Row) -> String {
    let (plan, spec) = (results.plan, results.spec(row));
    let variant = plan.against_variant.map(|_| plan.variants[spec.variant].as_str());
    variant.into_iter().chain([spec.policy.name()]).collect::<Vec<_>>().join(": ")
}

/// Returns each row beside those that it is compared with.
fn pairs<'a>(results: &'a Results<'a>) -> impl Iterator<Item = (&'a Row, &'a Row)> {
    let rows = results.rows.iter();
    rows.flat_map(|row| results.against(row).map(move |other| (row, other)))
}

fn of_pair(results: &Results<'_>, pair: (&Row, &Row), compared: &Compared) -> Option<Paired> {
    let paired = results.paired(pair, compared.of, compared.is_ratio)?;
    Some(if compared.is_ratio { paired.map(f64::exp) } else { paired })
}

/// Says a difference with its interval, and in how many of `planned` repeats it was found.
fn in_words(paired: &Paired, is_ratio: bool, planned: usize) -> String {
    let one = |value: f64| if is_ratio { format!("{value:.3}") } else { format!("{value:+.2}") };
    let mean = if is_ratio { format!("x {}", one(paired.mean)) } else { one(paired.mean) };
    let ends = paired.interval.map(|(low, high)| format!(" [{}, {}]", one(low), one(high)));
    let some = (paired.repeats < planned).then(|| format!(" ({} of {planned})", paired.repeats));
    [mean, ends.unwrap_or_default(), some.unwrap_or_default()].concat()
}

/// Returns whether the best policy by a figure may be named: one policy is better than each other
/// one by an interval that leaves out zero. All rows must be of one variant and value.
pub(super) fn has_winner(results: &Results<'_>, figure: &Figure) -> bool {
    let Some(best) = figure.best else { return false };
    let sign = if best == Best::Highest { 1 } else { -1 };
    let beats = |row: &Row, other: &Row| {
        let paired = results.paired((row, other), figure.of, false);
        paired.is_some_and(|paired| paired.sign() == sign)
    };
    let beats_all = |row: &Row| {
        let mut others = results.rows.iter().filter(|other| other.runs != row.runs);
        others.all(|other| beats(row, other))
    };
    results.rows.len() > 1 && results.rows.iter().any(beats_all)
}

#[cfg(test)]
mod tests {
    use super::super::columns::FIGURES;
    use super::super::results::tests::results;
    use super::*;

    const STUDY: &str =
        "[compare]\npolicies = [\"bfs\", \"capability\"]\nagainst = \"bfs\"\nrepeats = 6";

    /// Six repeats in which the second policy has 20 to 30 millionths more after half the time.
    #[test]
    fn differences_are_those_of_repeats() {
        let quality = [10, 30, 20, 50, 10, 40, 30, 50, 10, 30, 20, 40];
        let rows = results(STUDY, &quality, |results| whole_table(results).csv());
        let row = rows.lines().find(|line| line.contains("area_percent")).expect("a row");
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!(cells[2..7], ["capability", "bfs", "area_percent", "difference", "6"]);
        assert_eq!(cells[10..13], ["6", "0", "0.03125"], "{row}");
        let number = |at: usize| cells[at].parse::<f64>().expect("a number");
        assert!(number(8) > 0.0 && number(8) < number(7) && number(7) < number(9), "{row}");
    }

    #[test]
    fn another_variant_is_compared_with() {
        let text = "[compare]\npolicies = [\"bfs\"]\nagainst = \"bfs\"\nrepeats = 2\n\
                    variants = [\"a\", \"b: connections.open_max=2\"]\nagainst_variant = \"a\"";
        let rows = results(text, &[50, 60, 20, 30], |results| whole_table(results).csv());
        let rows: Vec<&str> = rows.lines().skip(1).collect();
        let is_of_b = |row: &&str| row.starts_with("b,,bfs,a: bfs,");
        assert!(!rows.is_empty() && rows.iter().all(is_of_b), "{rows:?}");
    }

    #[test]
    fn no_winner_where_the_interval_holds_zero() {
        let is_named = |results: &Results<'_>| has_winner(results, &FIGURES[0]);
        for (quality, expected) in [
            ([10, 30, 20, 50, 10, 40, 30, 50, 10, 30, 20, 40], true),
            ([10, 30, 50, 20, 10, 40, 50, 30, 10, 20, 40, 20], false),
            ([10, 10, 20, 20, 10, 10, 30, 30, 10, 10, 20, 20], false),
        ] {
            assert_eq!(results(STUDY, &quality, is_named), expected, "{quality:?}");
        }
        let once = STUDY.replace("repeats = 6", "repeats = 1");
        assert!(!results(&once, &[10, 90], is_named), "one repeat may be luck");
    }
}
