//! The figures of a cache study: miss rates by size, relative to MIN, over time, by entries per
//! connection.

use super::Asked;
use super::misses::WINDOWS;
use super::policy::Policy;
use super::reading::Reading;
use super::show::{CROSS, FULL, streams};
use super::study::{Curves, Study};
use crate::study::report::chart::{Chart, Mark, Series};
use crate::study::report::number::{Format, grouped};
use crate::study::report::scale::Axis;

/// A figure and the name of its file.
#[derive(Debug)]
pub(super) struct Drawn {
    /// The name of the file without extension.
    pub(super) file: String,
    /// The drawing itself.
    pub(super) chart: Chart,
}

/// Draws the figures of one trace: for each stream by size, relative to MIN and over time. They
/// correspond to figures 2 to 5, 10 and 11 of the paper.
pub(super) fn of_trace(study: &Study, asked: &Asked) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    for ((name, short), curves) in streams(study) {
        let file = |what: &str| format!("{}-{short}-{what}", study.name);
        let name = format!("{}, {name}", study.name);
        drawn.push(Drawn { file: file("size"), chart: by_size(&name, curves) });
        drawn.push(Drawn { file: file("min"), chart: against_min(&name, curves) });
        let level = asked.level(curves);
        drawn.push(Drawn { file: file("time"), chart: over_time(&name, curves, level) });
    }
    drawn
}

/// Draws CLOCK's miss rates on all traces: over the size, and over entries per connection (figures
/// 6 to 9 of the paper).
pub(super) fn of_all(studies: &[Study]) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    for (name, short) in [FULL, CROSS] {
        let lines: Vec<(&Study, &Curves)> = studies
            .iter()
            .flat_map(|study| streams(study).into_iter().map(move |stream| (study, stream)))
            .filter(|(_, (names, _))| names.1 == short)
            .map(|(study, (_, curves))| (study, curves))
            .collect();
        if lines.is_empty() {
            continue;
        }
        let axis = Axis::log2("entries", Format::Power);
        let title = format!("CLOCK by size, {name}");
        drawn.push(Drawn {
            file: format!("clock-{short}-size"),
            chart: overlaid(&title, axis, &lines, |_| 1.0),
        });
        let axis = Axis::log2("entries for each connection on a visit", Format::Short);
        let title = format!("CLOCK by entries per connection, {name}");
        drawn.push(Drawn {
            file: format!("clock-{short}-connection"),
            chart: overlaid(&title, axis, &lines, Study::connections),
        });
    }
    drawn
}

fn rate_axis() -> Axis {
    Axis { range: Some((0.0, 1.0)), ..Axis::linear("miss rate", Format::Share) }
}

fn entries(level: usize) -> f64 {
    (1_u64 << level) as f64
}

fn by_size(name: &str, curves: &Curves) -> Chart {
    let axis = Axis::log2("entries", Format::Power);
    let mut chart = Chart::new("Miss rate by size of the cache", axis, rate_axis());
    chart.subtitle = name.to_owned();
    for policy in Policy::ALL {
        let points = (0..curves.levels())
            .map(|level| (entries(level), curves.rate(policy, level)))
            .collect();
        chart.series.push(Series::line(policy.name(), points));
    }
    if let Some((from, to)) = Reading::of(curves).critical {
        chart.marks.push(Mark::x(entries(from), "critical region from"));
        chart.marks.push(Mark::x(entries(to), "to"));
    }
    chart
}

fn against_min(name: &str, curves: &Curves) -> Chart {
    let x = Axis::log2("entries", Format::Power);
    let y = Axis::linear("misses, MIN = 1", Format::Decimal(2));
    let mut chart = Chart::new("Misses against MIN", x, y);
    chart.subtitle = name.to_owned();
    for policy in [Policy::Lru, Policy::Clock, Policy::Random, Policy::Static] {
        let point = |level| Some((entries(level), curves.against_min(policy, level)?));
        let points = (0..curves.levels()).filter_map(point).collect();
        chart.series.push(Series::line(policy.name(), points));
    }
    chart
}

fn over_time(name: &str, curves: &Curves, level: usize) -> Chart {
    let x = Axis::linear("links", Format::Short);
    let title = format!("Miss rate over time, 2^{level} entries");
    let mut chart = Chart::new(&title, x, rate_axis());
    chart.subtitle = format!(
        "{name}; each point is the mean of {} links",
        grouped((curves.links / WINDOWS) as f64, 0)
    );
    for policy in Policy::ALL {
        let mut done = 0;
        let point = |at: usize| {
            let (links, misses) = curves.in_window(policy, level, at);
            done += links;
            (done as f64, f64::from(misses) / links as f64)
        };
        chart.series.push(Series::line(policy.name(), (0..WINDOWS).map(point).collect()));
    }
    chart
}

fn overlaid(
    title: &str,
    x: Axis,
    lines: &[(&Study, &Curves)],
    share: impl Fn(&Study) -> f64,
) -> Chart {
    let mut chart = Chart::new(title, x, rate_axis());
    for (study, curves) in lines {
        let point = |level| (entries(level) / share(study), curves.rate(Policy::Clock, level));
        let points = (0..curves.levels()).map(point).collect();
        chart.series.push(Series::line(&study.name, points));
    }
    chart
}
