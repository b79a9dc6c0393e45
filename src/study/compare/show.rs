//! The results of a comparison as tables: for people, and for spreadsheets.

use super::measure::{Figures, Measure, Spread, figures};
use super::plan::Plan;
use super::series::Run;
use crate::study::output::wrapped;
use crate::study::report::number::duration;
use crate::study::report::table::{Best, Cell, Column, Table};
use std::collections::BTreeSet;
use std::path::Path;

/// The results of a comparison, from which its tables and figures are made.
#[derive(Debug)]
pub(super) struct Results<'a> {
    /// The plan of the comparison.
    pub(super) plan: &'a Plan,
    /// The crawls, in the order of the plan.
    pub(super) runs: &'a [Run],
    /// The figures of each crawl, in the same order.
    pub(super) figures: Vec<Figures>,
    /// The values by which each crawl is measured, in the same order.
    pub(super) measures: Vec<Measure>,
    /// One row for each variant, value and policy, with its repeats.
    pub(super) rows: Vec<Row>,
}

/// The repeats of one crawl: the runs of one variant, value and policy.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The indices of the crawls in [`Results::runs`].
    pub(super) runs: Vec<usize>,
    /// The number of repeats in which this policy has the largest area of all policies, which
    /// medians don't show.
    pub(super) firsts: usize,
}

impl<'a> Results<'a> {
    /// Computes the results of `runs`, which are all crawls of the plan in its order.
    pub(super) fn new(plan: &'a Plan, runs: &'a [Run]) -> Self {
        let (mut all, mut measures) = (Vec::new(), Vec::new());
        let policies = plan.policies.len();
        for group in runs.chunks(policies) {
            let group: Vec<&Run> = group.iter().collect();
            all.extend(figures(&group, plan));
            measures.extend(vec![Measure::of(&group, plan); policies]);
        }
        let repeats = usize::try_from(plan.repeats).expect("a few");
        let first = (0..runs.len()).step_by(policies * repeats);
        let firsts = firsts(&all, policies);
        let row = |at: usize| {
            let runs: Vec<usize> = (0..repeats).map(|turn| at + turn * policies).collect();
            Row { firsts: runs.iter().filter(|run| firsts.contains(run)).count(), runs }
        };
        let rows = first.flat_map(|at| (0..policies).map(move |policy| row(at + policy)));
        Self { plan, runs, rows: rows.collect(), figures: all, measures }
    }

    /// Returns the median and the range of a figure over the repeats of a row.
    pub(super) fn spread(&self, row: &Row, of: fn(&Figures) -> f64) -> Spread {
        Spread::of(row.runs.iter().map(|run| of(&self.figures[*run])))
    }

    /// Returns the plan of the first crawl of a row, for what it has in common with its repeats.
    pub(super) fn spec(&self, row: &Row) -> &super::plan::Spec {
        &self.runs[row.runs[0]].spec
    }
}

/// Returns the indices of the crawls with the largest area of each web and repeat; crawls with
/// equal areas all count.
fn firsts(figures: &[Figures], policies: usize) -> BTreeSet<usize> {
    let area = |run: usize| figures[run].area;
    let first = |at: usize| {
        let runs = at..at + policies;
        let most = runs.clone().map(area).filter(|area| area.is_finite());
        let most = most.fold(f64::NEG_INFINITY, f64::max);
        runs.filter(move |run| area(*run) == most)
    };
    (0..figures.len()).step_by(policies).flat_map(first).collect()
}

/// A column of numbers: one figure of the crawls.
pub(super) struct Figure {
    /// The heading of the column for people.
    pub(super) name: &'static str,
    /// The unit of the numbers.
    pub(super) unit: &'static str,
    /// The heading of the column in summary.csv.
    pub(super) key: &'static str,
    decimals: usize,
    best: Option<Best>,
    /// Which tables show the column.
    shown: Shown,
    /// Computes the number of one crawl from its figures.
    pub(super) of: fn(&Figures) -> f64,
}

const fn figure(
    name: &'static str,
    unit: &'static str,
    key: &'static str,
    decimals: usize,
    of: fn(&Figures) -> f64,
) -> Figure {
    Figure { name, unit, key, decimals, best: None, shown: Shown::Always, of }
}

impl Figure {
    const fn high(self) -> Self {
        Self { best: Some(Best::Highest), ..self }
    }

    const fn low(self) -> Self {
        Self { best: Some(Best::Lowest), ..self }
    }

    const fn kept(self) -> Self {
        Self { shown: Shown::Never, ..self }
    }

    const fn between(self) -> Self {
        Self { shown: Shown::BetweenPolicies, ..self }
    }

    fn is_shown(&self, plan: &Plan) -> bool {
        match self.shown {
            Shown::Always => true,
            Shown::BetweenPolicies => plan.policies.len() > 1,
            Shown::Never => false,
        }
    }
}

/// Which tables show a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// All tables show it.
    Always,
    /// Tables that compare policies: the figure of one policy alone says little.
    BetweenPolicies,
    /// No table shows it; it is only in summary.csv.
    Never,
}

fn percent(share: Option<f64>) -> f64 {
    share.map_or(f64::NAN, |share| 100.0 * share)
}

/// All figures, in the order of the columns.
pub(super) const FIGURES: [Figure; 19] = [
    figure("area", "%", "area_percent", 1, |of| 100.0 * of.area).high().between(),
    figure("x ref", "", "area_ratio", 2, |of| of.area_ratio).between(),
    figure("50% at", "%", "to_50_percent", 1, |of| percent(of.times[0])).low().between(),
    figure("60% at", "%", "to_60_percent", 1, |of| percent(of.times[1])).low().between(),
    figure("80% at", "%", "to_80_percent", 1, |of| percent(of.times[2])).low().between(),
    figure("90% at", "%", "to_90_percent", 1, |of| percent(of.times[3])).low().between(),
    figure("half-time pages", "%", "half_pages_percent", 1, |of| 100.0 * of.half_pages)
        .high()
        .between(),
    figure("x ref", "", "half_pages_ratio", 2, |of| of.half_pages_ratio).between(),
    figure("pages/s", "", "pages_per_second", 1, |of| of.pages_per_second).high(),
    figure("Mb/s", "", "megabits_per_second", 2, |of| of.bits_per_second / 1e6),
    figure("core busy", "%", "core_busy_percent", 1, |of| 100.0 * of.busy_share),
    figure("counted", "s", "counted_seconds", 1, |of| of.counted_seconds).kept(),
    figure("to 50%", "s", "to_50_seconds", 1, |of| seconds(of, 0)).kept(),
    figure("to 60%", "s", "to_60_seconds", 1, |of| seconds(of, 1)).kept(),
    figure("to 80%", "s", "to_80_seconds", 1, |of| seconds(of, 2)).kept(),
    figure("to 90%", "s", "to_90_seconds", 1, |of| seconds(of, 3)).kept(),
    figure("pages", "", "pages", 0, |of| of.pages),
    figure("quality", "", "quality", 1, |of| of.quality).kept(),
    figure("whole time", "s", "seconds", 0, |of| of.seconds),
];

fn seconds(of: &Figures, share: usize) -> f64 {
    of.times[share].map_or(f64::NAN, |share| share * of.counted_seconds)
}

/// Returns the summary for people: medians of the repeats.
pub(super) fn summary(results: &Results<'_>) -> Table {
    let plan = results.plan;
    let shown: Vec<&Figure> = FIGURES.iter().filter(|figure| figure.is_shown(plan)).collect();
    let mut header = names(plan);
    // The best value is marked only if all crawls are of one web: among different webs it would
    // mean nothing.
    let is_one = plan.variants.len() == 1 && plan.values() == 1 && plan.policies.len() > 1;
    header.extend(shown.iter().map(|figure| {
        let name = figure.name.replace("ref", plan.reference.name());
        let column = Column::number(&name, figure.unit);
        match figure.best.filter(|_| is_one) {
            Some(best) => column.with_best(best),
            None => column,
        }
    }));
    let counts_firsts = plan.repeats > 1 && plan.policies.len() > 1;
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

/// Returns the summary for programs: the median, minimum and maximum of every figure.
pub(super) fn whole_summary(results: &Results<'_>) -> Table {
    let mut header: Vec<Column> =
        ["variant", "value", "policy", "repeats"].map(Column::text).to_vec();
    header.push(Column::number("area_first_times", ""));
    for figure in &FIGURES {
        let (least, most) = (format!("{}_least", figure.key), format!("{}_most", figure.key));
        header.extend([figure.key, &least, &most].map(|name| Column::number(name, "")));
    }
    let row = |row: &Row| {
        let spec = results.spec(row);
        let mut cells = vec![
            Cell::text(&results.plan.variants[spec.variant]),
            Cell::text(results.plan.value_name(spec.value)),
            Cell::text(spec.policy.name()),
            Cell::number(f64::from(results.plan.repeats), 0),
            Cell::number(row.firsts as f64, 0),
        ];
        for figure in &FIGURES {
            let spread = results.spread(row, figure.of);
            let values = [spread.median, spread.least, spread.most];
            cells.extend(values.map(|value| cell(value, 6)));
        }
        cells
    };
    let rows = results.rows.iter().map(row).collect();
    Table { caption: String::new(), header, rows }
}

/// Returns the table of ranges: minimum and maximum of the most important figures over the repeats.
pub(super) fn ranges(results: &Results<'_>) -> Table {
    let mut header = names(results.plan);
    let is_shown = |figure: &&Figure| figure.best.is_some() && figure.is_shown(results.plan);
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

fn names(plan: &Plan) -> Vec<Column> {
    let mut header = Vec::new();
    if plan.variants.len() > 1 || !plan.variants[0].is_empty() {
        header.push(Column::text("variant"));
    }
    if let Some((key, _)) = &plan.sweep {
        header.push(Column::number(key, ""));
    }
    header.push(Column::text("policy"));
    header
}

fn name_cells(results: &Results<'_>, row: &Row) -> Vec<Cell> {
    let (plan, spec) = (results.plan, results.spec(row));
    let mut cells = Vec::new();
    if plan.variants.len() > 1 || !plan.variants[0].is_empty() {
        cells.push(Cell::text(&plan.variants[spec.variant]));
    }
    if plan.sweep.is_some() {
        cells.push(Cell::text(plan.value_name(spec.value)));
    }
    cells.push(Cell::text(spec.policy.name()));
    cells
}

/// Returns the meaning of the columns, one paragraph each; paragraphs are separated by `gap`.
pub(super) fn legend(results: &Results<'_>, gap: &str) -> String {
    let reference = results.plan.reference.name();
    let times = Spread::of(results.measures.iter().map(|measure| measure.seconds));
    let span = if times.least == times.most {
        format!("the {}", duration(times.least))
    } else {
        format!("the time ({} to {})", duration(times.least), duration(times.most))
    };
    let rates = "pages/s, Mb/s, core busy: up to half of all pages.".to_owned();
    if results.plan.policies.len() == 1 {
        return rates;
    }
    let mut paragraphs = vec![
        format!(
            "Times are in per cent of {span} that {reference} took for 95% of all pages; \
             x {reference}: as a ratio to {reference}."
        ),
        "area: under the curve of quality over that time; all quality at once would be 100%."
            .to_owned(),
        "50% at to 90% at: when that share of all quality was reached.".to_owned(),
        "half-time pages: the share of all pages fetched in half of that time.".to_owned(),
        rates,
    ];
    if results.plan.repeats > 1 {
        let text = "largest area: repeats in which the policy has the largest. Other figures are \
            medians, ratios medians of ratios; the axes are marked with the median time.";
        paragraphs.push(text.to_owned());
    }
    if results.plan.variants.len() == 1 && results.plan.values() == 1 {
        paragraphs.push("*: the best of its column.".to_owned());
    }
    if let Some(coarse) = coarse(results) {
        paragraphs.push(coarse);
    }
    paragraphs.join(gap)
}

/// Returns a warning if the figures are rough, because they are interpolated between few samples.
fn coarse(results: &Results<'_>) -> Option<String> {
    const SAMPLES_MIN: f64 = 200.0;
    let period = |run: &Run| {
        let compare = run.spec.conf.compare.as_ref();
        compare.map_or(1.0, |compare| compare.sample_period.as_secs_f64())
    };
    let samples = results.runs.iter().zip(&results.measures);
    let samples = samples.map(|(run, measure)| measure.seconds / period(run));
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
    text.push('\n');
    let legend = legend(results, "\n");
    legend.lines().for_each(|line| text.push_str(&wrapped(line)));
    if results.plan.repeats > 1 {
        text.push_str(&format!("\nMedians of {} repeats.\n", results.plan.repeats));
    }
    let crawls = results.runs.len();
    let report = directory.join("report.html");
    text.push_str(&format!("\n{crawls} crawls; report: {}\n", report.display()));
    text
}

#[cfg(test)]
mod tests {
    use super::super::series::{Sample, Series};
    use super::*;
    use crate::conf::Conf;

    /// Returns what `of` makes of the results of a comparison, whose runs have these qualities
    /// after one of two seconds.
    fn results<T>(text: &str, quality: &[u64], of: fn(&Results<'_>) -> T) -> T {
        let conf = Conf::parse(text, "x.toml").expect("valid");
        let compare = conf.compare.clone().expect("a comparison");
        let plan = Plan::new(&conf, &compare, "x.toml").expect("a plan");
        let runs = plan.runs.iter().zip(quality).map(|(spec, &quality_millionths)| {
            let mut series = Series::new();
            for (seconds, quality_millionths) in [(1.0, quality_millionths), (2.0, 100)] {
                let pages = if seconds > 1.0 { 100 } else { 10 };
                series.push(Sample { seconds, pages, quality_millionths, ..Sample::default() });
            }
            Run { spec: spec.clone(), series }
        });
        let runs: Vec<Run> = runs.collect();
        of(&Results::new(&plan, &runs))
    }

    #[test]
    fn who_shares_the_largest_area_has_it() {
        let text = "[compare]\npolicies = [\"performance\", \"capability\"]\nrepeats = 2";
        for (quality, expected) in
            [([10, 10, 10, 10], [2, 2]), ([10, 10, 20, 10], [2, 1]), ([10, 20, 10, 30], [0, 2])]
        {
            let firsts = |results: &Results<'_>| {
                results.rows.iter().map(|row| row.firsts).collect::<Vec<usize>>()
            };
            assert_eq!(results(text, &quality, firsts), expected, "{quality:?}");
        }
    }

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
