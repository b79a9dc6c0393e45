//! The figures of a comparison: three curves for each web, as in figures 6 and 7 of the paper, or
//! the results of a sweep over its values.
//!
//! Source: Cao, Jiang, Singh: Scheduling Web Crawl for Better Performance and Quality, Princeton
//! TR-682-03, figures 4 to 7.

use super::measure::{Figures, Measure, Spread, age, fresh, pages, quality};
use super::results::{Results, Row};
use super::series::{Along, Sample, Series};
use super::show;
use crate::study::report::chart::{self, Chart, Mark};
use crate::study::report::number::{Format, duration};
use crate::study::report::scale::Axis;

/// The number of equal steps into which a curve's x axis is divided for its points.
const POINTS: u32 = 400;
/// The end of the time axis as a multiple of the counted time.
const TIME_SHOWN: f64 = 1.1;
/// The least ratio of the largest to the smallest value of a sweep for which the axis is
/// logarithmic.
const DOUBLINGS_FROM: f64 = 16.0;

/// A figure and the name of its file.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    /// The file's name without extension.
    pub(super) file: String,
    /// The name of the variant that the figure shows; empty if it shows all.
    pub(super) about: String,
    /// The drawing itself.
    pub(super) chart: Chart,
}

/// Draws all figures of a comparison.
pub(super) fn all(results: &Results<'_>) -> Vec<Drawn> {
    if results.plan.sweep.is_some() {
        return over_values(results);
    }
    let rows = results.rows.chunks(results.plan.policies.len());
    let over_time = rows.flat_map(|rows| over_time(results, rows));
    freshness(results).into_iter().chain(over_time).collect()
}

/// Draws how far copies are up to date over the whole time of all crawls, if pages change: a line
/// for each variant and policy.
fn freshness(results: &Results<'_>) -> Vec<Drawn> {
    let plan = results.plan;
    if !plan.has_changes() {
        return Vec::new();
    }
    let times = results.runs.iter().map(|run| run.series.last().seconds);
    let end = times.fold(0.0, f64::max);
    let named = |row: &Row| {
        let spec = results.spec(row);
        let variant = plan.variants[spec.variant].as_str();
        match (variant, plan.policies.len()) {
            ("", _) => spec.policy.name().to_owned(),
            (_, 1) => variant.to_owned(),
            _ => format!("{variant}, {}", spec.policy.name()),
        }
    };
    let chart = |title: &str, y: Axis, of: fn(&Sample) -> f64| {
        let time = Axis { range: Some((0.0, end)), ..Axis::linear("seconds", Format::Short) };
        let mut chart = Chart::new(title, time, y);
        if plan.repeats > 1 {
            chart.subtitle = format!("median of {} repeats", plan.repeats);
        }
        chart.series = results
            .rows
            .iter()
            .map(|row| {
                let at = |step: u32| {
                    let x = end * f64::from(step) / f64::from(POINTS);
                    let values =
                        row.runs.iter().map(|run| results.runs[*run].series.at(Along::Time, x, of));
                    (x, Spread::of(values).median)
                };
                chart::Series::line(&named(row), (0..=POINTS).map(at).collect())
            })
            .collect();
        chart
    };
    let share = Axis { range: Some((0.0, 1.0)), ..Axis::linear("share of copies", Format::Share) };
    let seconds = Axis::linear("seconds out of date, mean of copies", Format::Short);
    let drawn = |file: &str, chart| Drawn { file: file.to_owned(), about: String::new(), chart };
    vec![
        drawn("fresh-over-time", chart("Copies up to date", share, fresh)),
        drawn("age-over-time", chart("Age of copies", seconds, age)),
    ]
}

/// Draws the figures of one web over time, the most important one first. `rows` has its
/// policies.
fn over_time(results: &Results<'_>, rows: &[Row]) -> Vec<Drawn> {
    let reference = results.plan.reference.name();
    let variant = results.spec(&rows[0]).variant;
    let name = &results.plan.variants[variant];
    let counted = Spread::of(rows[0].runs.iter().map(|run| results.measures[*run].seconds()));
    let label = format!(
        "time, 100% = {reference} has {} of all pages ({})",
        show::counted(results),
        duration(counted.median)
    );
    let share = |label: &str, most: f64| Axis {
        range: Some((0.0, most)),
        ..Axis::linear(label, Format::Share)
    };
    let time = share(&label, TIME_SHOWN);
    let (of_pages, of_quality) = ("share of all pages", "share of all quality");
    let (over_time, over_pages) = ("Quality over time", "Quality over pages");
    let mut drawn = Vec::new();
    let mut add = |file: &str, title: &str, x: Axis, y: &str, curve: Curve, marks: Vec<Mark>| {
        let most = x.range.map_or(1.0, |(_, most)| most);
        let mut chart = Chart::new(title, x, share(y, 1.0));
        chart.subtitle = subtitle(results, name);
        chart.series = rows.iter().map(|row| line(results, row, most, curve)).collect();
        if title == over_time {
            chart.series.extend(bound(results, &rows[0], most));
        }
        chart.marks = marks;
        let file = format!("{}{file}", prefix(&results.plan.variants, variant));
        drawn.push(Drawn { file, about: name.clone(), chart });
    };
    let half = vec![Mark::x(0.5, "half time")];
    let all_pages = share(of_pages, 1.0);
    let none = Vec::new;
    add("quality-over-time", over_time, time.clone(), of_quality, quality_over_time, none());
    add("pages-over-time", "Pages over time", time, of_pages, pages_over_time, half);
    add("quality-over-pages", over_pages, all_pages, of_quality, quality_over_pages, none());
    let spent =
        |what: &str| share(&format!("{what}, 100% = what {reference} had spent"), TIME_SHOWN);
    for (file, title, axis, curve) in [
        ("quality-over-requests", "Quality by request", "requests", quality_over_requests as Curve),
        ("quality-over-cpu", "Quality by time of the core", "CPU time", quality_over_cpu),
    ] {
        add(file, title, spent(axis), of_quality, curve, none());
    }
    drawn
}

fn subtitle(results: &Results<'_>, variant: &str) -> String {
    let repeats = match results.plan.repeats {
        1 => String::new(),
        repeats => format!("median and range of {repeats} repeats"),
    };
    [variant, &repeats].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Returns the beginning of the file names of a variant's figures. Names that would give equal file
/// names are numbered.
fn prefix(variants: &[String], variant: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let plain: Vec<String> =
        variants.iter().map(|name| name.chars().map(plain).collect()).collect();
    let is_repeated = |at: usize| plain[..at].contains(&plain[at]);
    match plain[variant].as_str() {
        "" => String::new(),
        name if (1..plain.len()).any(is_repeated) => format!("{}-{name}-", variant + 1),
        name => format!("{name}-"),
    }
}

/// Computes the y value of one crawl's curve at an x.
type Curve = fn(f64, &Series, &Measure) -> f64;

fn pages_over_time(x: f64, series: &Series, measure: &Measure) -> f64 {
    series.at(Along::Time, x * measure.seconds(), pages) / measure.pages
}

fn quality_over_time(x: f64, series: &Series, measure: &Measure) -> f64 {
    quality_along(Along::Time, x, series, measure)
}

fn quality_over_requests(x: f64, series: &Series, measure: &Measure) -> f64 {
    quality_along(Along::Requests, x, series, measure)
}

fn quality_over_cpu(x: f64, series: &Series, measure: &Measure) -> f64 {
    quality_along(Along::Core, x, series, measure)
}

fn quality_along(along: Along, x: f64, series: &Series, measure: &Measure) -> f64 {
    series.at(along, x * measure.counted[along as usize], quality) / measure.quality
}

fn quality_over_pages(x: f64, series: &Series, measure: &Measure) -> f64 {
    let reached = series.when(Along::Time, x * measure.pages, pages);
    reached.map_or(f64::NAN, |at| series.at(Along::Time, at, quality) / measure.quality)
}

/// Returns a policy's curve from 0 to `most`: at each x the median of its repeats and, if there are
/// several, their range.
fn line(results: &Results<'_>, row: &Row, most: f64, curve: Curve) -> chart::Series {
    let (mut points, mut band) = (Vec::new(), Vec::new());
    for step in 0..=POINTS {
        let x = most * f64::from(step) / f64::from(POINTS);
        let repeats = row.runs.iter();
        let spread = Spread::of(
            repeats.map(|run| curve(x, &results.runs[*run].series, &results.measures[*run])),
        );
        points.push((x, spread.median));
        band.push((x, spread.least, spread.most));
    }
    let mut line = chart::Series::line(results.spec(row).policy.name(), points);
    line.band = (row.runs.len() > 1).then_some(band);
    line
}

/// Returns the curve of the bound that no policy can pass; `None` if it isn't known. `row` is one
/// of the rows of the web.
fn bound(results: &Results<'_>, row: &Row, most: f64) -> Option<chart::Series> {
    let reference = results.under(row, results.plan.reference)?;
    let runs: Vec<usize> = reference.runs.clone();
    let share = |run: &usize, x: f64| {
        let (bound, measure) = (results.runs[*run].bound.as_ref()?, &results.measures[*run]);
        Some(bound.at(x * measure.seconds()) / measure.quality)
    };
    runs.iter().all(|run| results.runs[*run].bound.is_some()).then(|| {
        let point = |step: u32| {
            let x = most * f64::from(step) / f64::from(POINTS);
            let shares = runs.iter().filter_map(|run| share(run, x)).filter(|at| at.is_finite());
            (x, Spread::of(shares).median.min(1.0))
        };
        chart::Series::line("bound", (0..=POINTS).map(point).collect())
    })
}

/// A figure of a sweep: the name of its file, its title, the label of its y axis, the format of
/// that axis's values, and the value drawn.
type Swept = (&'static str, &'static str, &'static str, Format, fn(&Figures) -> f64);

const SWEPT: [Swept; 6] = [
    ("fresh", "Copies up to date", "share of copies", Format::Share, |of| of.copies.fresh),
    ("pages-per-second", "Pages per second", "pages per second", Format::Short, |of| {
        of.pages_per_second
    }),
    ("megabits-per-second", "Megabits per second", "Mb/s", Format::Decimal(1), |of| {
        of.bits_per_second / 1e6
    }),
    ("core-busy", "The core", "share of time busy", Format::Share, |of| of.busy_share),
    ("area", "Area under quality over time", "area", Format::Share, |of| of.over_time().area),
    ("to-80-percent", "Time to 80% of all quality", "seconds", Format::Short, |of| {
        of.over_time().spent[2].unwrap_or(f64::NAN)
    }),
];

/// Draws the figures over the values of a sweep: a curve for each variant and policy.
fn over_values(results: &Results<'_>) -> Vec<Drawn> {
    let plan = results.plan;
    let shown = SWEPT.iter().filter(|(file, ..)| {
        // Quality over time is meaningful only between policies.
        (plan.policies.len() > 1 || !["area", "to-80-percent"].contains(file))
            && (plan.has_changes() || *file != "fresh")
    });
    let drawn = shown.map(|(file, title, label, format, of)| {
        let mut chart = Chart::new(title, value_axis(results), Axis::linear(label, *format));
        chart.subtitle = subtitle(results, "");
        for variant in 0..plan.variants.len() {
            for policy in &plan.policies {
                let is = |row: &&Row| {
                    let spec = results.spec(row);
                    spec.variant == variant && spec.policy == *policy
                };
                let rows: Vec<&Row> = results.rows.iter().filter(is).collect();
                let name = series_name(results, variant, policy.name());
                chart.series.push(swept(results, &rows, name, *of));
            }
        }
        Drawn { file: (*file).to_owned(), about: String::new(), chart }
    });
    drawn.collect()
}

fn series_name(results: &Results<'_>, variant: usize, policy: &str) -> String {
    let variant = &results.plan.variants[variant];
    match (variant.as_str(), results.plan.policies.len()) {
        ("", _) => policy.to_owned(),
        (variant, 1) => variant.to_owned(),
        (variant, _) => format!("{variant}, {policy}"),
    }
}

fn swept(
    results: &Results<'_>,
    rows: &[&Row],
    name: String,
    of: fn(&Figures) -> f64,
) -> chart::Series {
    let places = places(results).0;
    let spreads = rows.iter().map(|row| (places[results.spec(row).value], results.spread(row, of)));
    let spreads: Vec<(f64, Spread)> = spreads.collect();
    let points = spreads.iter().map(|(x, spread)| (*x, spread.median)).collect();
    let band = spreads.iter().map(|(x, spread)| (*x, spread.least, spread.most)).collect();
    let mut line = chart::Series::marked(&name, points);
    line.band = (results.plan.repeats > 1).then_some(band);
    line
}

/// Returns the position of each value of a sweep on the x axis. The second result says whether
/// positions are the values themselves; if some value is not a number, values are placed in their
/// order.
fn places(results: &Results<'_>) -> (Vec<f64>, bool) {
    let values = results.plan.sweep.as_ref().map_or(&[][..], |(_, values)| values);
    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.number()).collect();
    let is_number = numbers.is_some();
    (numbers.unwrap_or_else(|| (1..=values.len()).map(|at| at as f64).collect()), is_number)
}

fn value_axis(results: &Results<'_>) -> Axis {
    let (places, is_number) = places(results);
    let (key, values) = results.plan.sweep.as_ref().expect("there is a sweep");
    if !is_number {
        let named = values.iter().enumerate();
        let named: Vec<String> =
            named.map(|(at, value)| format!("{}: {}", at + 1, value.name())).collect();
        return Axis::linear(&format!("{key} ({})", named.join(", ")), Format::Count);
    }
    let least = places.iter().copied().fold(f64::INFINITY, f64::min);
    let most = places.iter().copied().fold(0.0, f64::max);
    if least > 0.0 && most / least >= DOUBLINGS_FROM {
        return Axis::log2(key, Format::Short);
    }
    Axis::linear(key, Format::Short)
}
