//! The figures of a profile over the number of open connections: throughput, CPU time, stages of
//! the loop, lag. The first two are figure 5 of the 2003 paper, on this machine. What servers were
//! found to accept on one connection is its figure 3.

use super::step::{ACCEPTED, Step, best_known};
use super::verdict::Verdict;
use crate::ground::stats::Stage;
use crate::study::report::bars::{Bars, Group};
use crate::study::report::chart::{Chart, Mark, Series};
use crate::study::report::html::Figure;
use crate::study::report::number::{Format, grouped};
use crate::study::report::scale::Axis;

/// A figure and the name of its file.
pub(super) struct Drawn {
    pub(super) file: &'static str,
    pub(super) figure: Figure,
}

impl Drawn {
    /// Draws the figure as SVG.
    pub(super) fn svg(&self) -> String {
        match &self.figure {
            Figure::Chart(chart) => chart.svg(),
            Figure::Bars(bars) => bars.svg(),
        }
    }
}

/// Draws all figures of a profile.
pub(super) fn all(steps: &[Step], verdict: &Verdict) -> Vec<Drawn> {
    let mut drawn = vec![
        Drawn { file: "throughput", figure: Figure::Chart(throughput(steps, verdict)) },
        Drawn { file: "core", figure: Figure::Bars(core(steps)) },
        Drawn { file: "stages", figure: Figure::Bars(stages(steps)) },
        Drawn { file: "lag", figure: Figure::Chart(lag(steps)) },
    ];
    let limits = best_known(steps).map(|(step, all)| Figure::Bars(limits(step, all)));
    drawn.extend(limits.map(|figure| Drawn { file: "limits", figure }));
    drawn
}

/// Draws how many requests servers accept on one connection: `all` servers have shown it.
fn limits(step: &Step, all: u64) -> Bars {
    let group = |((_, name), count): (&(u32, &str), &u64)| Group {
        label: (*name).to_owned(),
        amounts: vec![*count as f64 / all as f64],
    };
    Bars {
        title: "Requests accepted per connection".to_owned(),
        subtitle: format!("Of the {} servers that have shown it", grouped(all as f64, 0)),
        x_label: "requests on one connection".to_owned(),
        y: Axis::linear("share of servers", Format::Share),
        parts: vec!["servers".to_owned()],
        groups: ACCEPTED.iter().zip(&step.accepted).map(group).collect(),
    }
}

fn throughput(steps: &[Step], verdict: &Verdict) -> Chart {
    let (x, y) = (axis(), Axis::linear("pages a second", Format::Short));
    let mut chart = Chart::new("Throughput", x, y);
    chart.subtitle = "Higher is better; the knee is where 95% of the maximum is reached".to_owned();
    let points = steps.iter().map(|step| (step.connections as f64, step.rate()));
    let spread = steps.iter().map(|step| {
        let (least, most) = step.spread?;
        Some((step.connections as f64, least, most))
    });
    let mut series = Series::marked("pages a second", points.collect());
    series.band = spread.collect();
    chart.series = vec![series];
    let knee = &steps[verdict.knee];
    chart.marks.push(Mark::x(knee.connections as f64, "knee"));
    if let Some(full) = verdict.full.filter(|full| *full != verdict.knee) {
        chart.marks.push(Mark::x(steps[full].connections as f64, "core full"));
    }
    chart
}

fn core(steps: &[Step]) -> Bars {
    let parts = ["user", "system", "idle", "taken away"].map(str::to_owned).to_vec();
    let group = |step: &Step| {
        let amounts = vec![step.user(), step.system(), step.idle(), step.taken()];
        Group { label: label(step), amounts }
    };
    Bars {
        title: "The core's time".to_owned(),
        subtitle:
            "Of the loop's thread, as a share of the time; others took it away while the loop \
                   had work"
                .to_owned(),
        x_label: X.to_owned(),
        y: Axis::linear("share of a core", Format::Share),
        parts,
        groups: steps.iter().map(group).collect(),
    }
}

/// Draws the CPU time per page by stage of the loop. Stages that never reach a hundredth of the
/// loop's time are drawn as one.
fn stages(steps: &[Step]) -> Bars {
    let is_seen =
        |stage: &Stage| steps.iter().any(|step| step.share(*stage) >= 0.01 * step.busy().max(1e-9));
    let (seen, rest): (Vec<Stage>, Vec<Stage>) =
        Stage::ALL.into_iter().filter(|stage| *stage != Stage::Rest).partition(is_seen);
    let mut parts: Vec<String> = seen.iter().map(|stage| stage.name().to_owned()).collect();
    parts.push("all else".to_owned());
    let group = |step: &Step| {
        let us = |stage: Stage| step.usage.of(stage).cpu_ns as f64 / 1e3 / step.pages.max(1) as f64;
        let mut amounts: Vec<f64> = seen.iter().map(|stage| us(*stage)).collect();
        amounts.push(rest.iter().chain(&[Stage::Rest]).map(|stage| us(*stage)).sum());
        Group { label: label(step), amounts }
    };
    Bars {
        title: "What a page takes".to_owned(),
        subtitle: "CPU time of the loop's thread by stage".to_owned(),
        x_label: X.to_owned(),
        y: Axis::linear("microseconds a page", Format::Decimal(1)),
        parts,
        groups: steps.iter().map(group).collect(),
    }
}

fn lag(steps: &[Step]) -> Chart {
    let y = Axis::linear("milliseconds", Format::Decimal(1));
    let mut chart = Chart::new("Loop lag", axis(), y);
    chart.subtitle = "How long what is ready waits for the loop".to_owned();
    let of = |share: f64| {
        let ms =
            move |step: &Step| (step.connections as f64, step.lag_us.quantile(share) as f64 / 1e3);
        steps.iter().map(ms).collect()
    };
    chart.series = vec![Series::marked("99%", of(0.99)), Series::marked("median", of(0.5))];
    chart
}

const X: &str = "open connections";

fn axis() -> Axis {
    Axis::log2(X, Format::Count)
}

fn label(step: &Step) -> String {
    step.connections.to_string()
}
