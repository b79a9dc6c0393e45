//! The results of a comparison as tables and text: for people, and for spreadsheets.

use super::columns::{FIGURES, Figure, Shown, name_cells, names};
use super::hints;
use super::paired;
use super::plan::Plan;
use super::results::{Results, Row};
use super::series::Run;
use crate::study::output::wrapped;
use crate::study::report::table::{Cell, Column, Table};
use std::path::Path;

/// Returns the summary for people: medians of the repeats, over time.
pub(super) fn summary(results: &Results<'_>) -> Table {
    medians(results, Shown::Always)
}

/// Returns the summary by request, by byte and by time of the core, for people; `None` if there is
/// one policy only.
pub(super) fn summary_by_expense(results: &Results<'_>) -> Option<Table> {
    (results.plan.policies.len() > 1).then(|| Table {
        caption: "By what is spent beside time".to_owned(),
        ..medians(results, Shown::Spent)
    })
}

/// Returns the comparison of every policy with that of `compare.against`, for people; `None` if
/// there is none.
pub(super) fn paired_summary(results: &Results<'_>) -> Option<Table> {
    paired::table(results)
}

fn medians(results: &Results<'_>, which: Shown) -> Table {
    let plan = results.plan;
    let shown: Vec<&Figure> = FIGURES.iter().filter(|figure| figure.is_in(which, plan)).collect();
    let mut header = names(plan);
    // The best value is marked only if all crawls are of one web, because among different webs it
    // would mean nothing, and if it may not be luck.
    let is_one = is_one(plan);
    header.extend(shown.iter().map(|figure| {
        let name = figure.name.replace("ref", plan.reference.name());
        let column = Column::number(&name, figure.unit);
        match figure.best.filter(|_| is_one && paired::has_winner(results, figure)) {
            Some(best) => column.with_best(best),
            None => column,
        }
    }));
    let counts_firsts = which == Shown::Always && plan.repeats > 1 && plan.policies.len() > 1;
    if counts_firsts {
        header.push(Column::number("largest area", "times"));
    }
    let row = |row: &Row| {
        let mut cells = name_cells(results, row);
        let middle =
            |figure: &&Figure| cell(results.spread(row, figure.of).median, figure.decimals);
        cells.extend(shown.iter().map(middle));
        if counts_firsts {
            cells.push(Cell::number(row.firsts as f64, 0));
        }
        cells
    };
    let rows = results.rows.iter().map(row).collect();
    Table { caption: String::new(), header, rows }
}

/// Whether all crawls are of one configuration but for the policy.
fn is_one(plan: &Plan) -> bool {
    plan.variants.len() == 1 && plan.values() == 1 && plan.policies.len() > 1
}

/// Returns the summary for programs: of each row the median, minimum and maximum of every figure,
/// then the figures of each repeat.
pub(super) fn whole_summary(results: &Results<'_>) -> Table {
    let mut header: Vec<Column> =
        ["variant", "value", "policy", "repeat"].map(Column::text).to_vec();
    header.push(Column::number("area_first_times", ""));
    for figure in &FIGURES {
        let (least, most) = (format!("{}_least", figure.key), format!("{}_most", figure.key));
        header.extend([figure.key, &least, &most].map(|name| Column::number(name, "")));
    }
    let mut rows = Vec::new();
    for row in &results.rows {
        let spec = results.spec(row);
        let names = |repeat: &str| {
            let value = results.plan.value_name(spec.value);
            [&results.plan.variants[spec.variant], value, spec.policy.name(), repeat]
                .map(Cell::text)
                .to_vec()
        };
        let mut cells = names("median");
        cells.push(Cell::number(row.firsts as f64, 0));
        for figure in &FIGURES {
            let spread = results.spread(row, figure.of);
            let values = [spread.median, spread.least, spread.most];
            cells.extend(values.map(|value| cell(value, 6)));
        }
        rows.push(cells);
        for (repeat, run) in row.runs.iter().enumerate() {
            let mut cells = names(&(repeat + 1).to_string());
            cells.push(Cell::Missing);
            for figure in &FIGURES {
                let value = (figure.of)(&results.figures[*run]);
                cells.extend([cell(value, 6), Cell::Missing, Cell::Missing]);
            }
            rows.push(cells);
        }
    }
    Table { caption: String::new(), header, rows }
}

/// Returns the table of ranges: minimum and maximum of the most important figures over the repeats.
pub(super) fn ranges(results: &Results<'_>) -> Table {
    let mut header = names(results.plan);
    let is_shown =
        |figure: &&Figure| figure.best.is_some() && figure.is_in(Shown::Always, results.plan);
    let shown: Vec<&Figure> = FIGURES.iter().filter(is_shown).collect();
    header.extend(shown.iter().map(|figure| Column::number(figure.name, figure.unit)));
    let row = |row: &Row| {
        let mut cells = name_cells(results, row);
        cells.extend(shown.iter().map(|figure| {
            let spread = results.spread(row, figure.of);
            if !spread.median.is_finite() {
                return Cell::Missing;
            }
            let decimals = figure.decimals;
            Cell::Text(format!("{:.decimals$} to {:.decimals$}", spread.least, spread.most))
        }));
        cells
    };
    let rows = results.rows.iter().map(row).collect();
    let caption = format!("Least and most of {} repeats", results.plan.repeats);
    Table { caption, header, rows }
}

fn cell(value: f64, decimals: usize) -> Cell {
    if value.is_finite() { Cell::number(value, decimals) } else { Cell::Missing }
}

/// Returns the meaning of the columns, one paragraph each; paragraphs are separated by `gap`.
pub(super) fn legend(results: &Results<'_>, gap: &str) -> String {
    let reference = results.plan.reference.name();
    let rates = "pages/s, Mb/s, core busy: up to half of all pages.".to_owned();
    if results.plan.policies.len() == 1 {
        return rates;
    }
    let mut paragraphs = vec![
        format!(
            "counted: the time that {} took for {} of all pages (compare.counted_share): areas and \
             half time hang on it, seconds don't.",
            baseline(results.plan),
            counted(results),
        ),
        format!(
            "area: under the curve of quality over the counted time; all quality at once would be \
             100%. x {reference}: as a ratio to that crawl."
        ),
        "of bound: the area as a share of that of the most quality that the servers' time, the \
         core, the connections and the line allow if all pages are known from the start. No policy \
         can have more, and discovery keeps every one from reaching it."
            .to_owned(),
        "to 50%, 80%, 90%: seconds, requests, megabytes or seconds of the core until that share of \
         all quality was reached."
            .to_owned(),
        "half-time pages: the share of all pages fetched in half of the counted time.".to_owned(),
        "area by request, by byte, by CPU: the same over what that crawl had spent when the \
         counted time ended."
            .to_owned(),
        rates,
    ];
    if results.plan.repeats > 1 {
        let text = "largest area: repeats in which the policy has the largest. Other figures are \
            medians, ratios medians of ratios; the axes are marked with the median time.";
        paragraphs.push(text.to_owned());
        if is_one(results.plan) {
            let text = "*: better than each other policy, repeat by repeat, by a 95% interval \
                that leaves out zero. A column without * has no winner.";
            paragraphs.push(text.to_owned());
        }
    }
    paragraphs.extend(coarse(results));
    paragraphs.extend(hints::all(results));
    paragraphs.join(gap)
}

/// Names the crawl that the others of a web are measured by.
fn baseline(plan: &Plan) -> String {
    let reference = plan.reference.name();
    match is_one(plan) {
        true => reference.to_owned(),
        false => format!("{reference} in the first row of the same web"),
    }
}

/// Says at which shares of all pages the counted times end.
pub(super) fn counted(results: &Results<'_>) -> String {
    let share = |run: &Run| run.spec.conf.compare.as_ref().map(|compare| compare.counted_share);
    let mut shares: Vec<_> = results.runs.iter().filter_map(share).collect();
    shares.dedup();
    shares.sort_by_key(|share| share.thousandths());
    shares.dedup();
    let shares: Vec<String> =
        shares.iter().map(|share| format!("{}%", 100.0 * share.as_f64())).collect();
    shares.join(", ")
}

/// Returns a warning if the figures are rough, because they are interpolated between few samples.
fn coarse(results: &Results<'_>) -> Option<String> {
    const SAMPLES_MIN: f64 = 200.0;
    let period = |run: &Run| {
        let compare = run.spec.conf.compare.as_ref();
        compare.map_or(1.0, |compare| compare.sample_period.as_secs_f64())
    };
    let samples = results.runs.iter().zip(&results.measures);
    let samples = samples.map(|(run, measure)| measure.seconds() / period(run));
    let least = samples.fold(f64::INFINITY, f64::min);
    (least < SAMPLES_MIN).then(|| {
        format!(
            "Rough: only {least:.0} samples in the counted time; a shorter \
             compare.sample_period makes the figures more exact."
        )
    })
}

/// Returns the text that the command prints at the end.
pub(super) fn text(results: &Results<'_>, directory: &Path) -> String {
    let mut text = summary(results).text();
    for table in [summary_by_expense(results), paired_summary(results)].into_iter().flatten() {
        text.push('\n');
        text.push_str(&table.text());
    }
    text.push('\n');
    let legend = legend(results, "\n");
    legend.lines().for_each(|line| text.push_str(&wrapped(line)));
    if results.plan.repeats > 1 {
        text.push_str(&format!("\nMedians of {} repeats.\n", results.plan.repeats));
    }
    for graph in &results.graphs {
        text.push('\n');
        text.push_str(&wrapped(graph));
    }
    let crawls = results.runs.len();
    let report = directory.join("report.html");
    text.push_str(&format!("\n{crawls} crawls; report: {}\n", report.display()));
    text
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;

    /// Variants whose names differ only in characters that file names don't keep.
    #[test]
    fn each_figure_has_a_file_of_its_own() {
        for variants in [
            "\"one\", \"two\"",
            "\"HTTP/1.0\", \"http-1.0\", \"2-http-1-0\"",
            "\"\u{e4}\", \"\u{f6}\"",
        ] {
            let text = format!("[compare]\nvariants = [{variants}]");
            let quality = [10; 12];
            let files = results(&text, &quality, |results| {
                let drawn = super::super::curves::all(results);
                drawn.into_iter().map(|drawn| drawn.file).collect::<Vec<String>>()
            });
            let mut once = files.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), files.len(), "{files:?}");
        }
    }
}
