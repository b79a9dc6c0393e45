//! The columns of a comparison's tables: one figure each.

use super::measure::Figures;
use super::plan::Plan;
use super::results::{Results, Row};
use super::series::Along;
use crate::study::report::table::{Best, Cell, Column};

/// A column of numbers: one figure of the crawls.
pub(super) struct Figure {
    /// The heading of the column for people.
    pub(super) name: &'static str,
    /// The unit of the numbers.
    pub(super) unit: &'static str,
    /// The heading of the column in summary.csv.
    pub(super) key: &'static str,
    pub(super) decimals: usize,
    pub(super) best: Option<Best>,
    shown: Shown,
    /// Computes the number of one crawl from its figures.
    pub(super) of: fn(&Figures) -> f64,
}

/// Which table for people shows a figure; all are in summary.csv.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The first table.
    Always,
    /// The first table, if it compares policies: the figure of one policy alone says little.
    BetweenPolicies,
    /// The first table, if pages change.
    IfChanging,
    /// The table of what is spent beside time, if it compares policies.
    Spent,
    Never,
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

    const fn changing(self) -> Self {
        Self { shown: Shown::IfChanging, ..self }
    }

    const fn spent(self) -> Self {
        Self { shown: Shown::Spent, ..self }
    }

    /// Returns whether the table of `shown` has the column.
    pub(super) fn is_in(&self, shown: Shown, plan: &Plan) -> bool {
        let compares = plan.policies.len() > 1;
        match self.shown {
            Shown::BetweenPolicies => compares && shown == Shown::Always,
            Shown::IfChanging => plan.has_changes() && shown == Shown::Always,
            Shown::Spent => compares && shown == Shown::Spent,
            own => own == shown,
        }
    }
}

/// All figures, in the order of the columns.
pub(super) const FIGURES: [Figure; 37] = [
    figure("area", "%", "area_percent", 1, |of| area(of, Along::Time)).high().between(),
    figure("x ref", "", "area_ratio", 2, |of| of.area_ratio).between(),
    figure("of bound", "%", "bound_share_percent", 1, |of| 100.0 * of.bound_share).between(),
    figure("50% at", "%", "to_50_percent", 1, |of| percent(of, 0)).low().kept(),
    figure("60% at", "%", "to_60_percent", 1, |of| percent(of, 1)).low().kept(),
    figure("80% at", "%", "to_80_percent", 1, |of| percent(of, 2)).low().kept(),
    figure("90% at", "%", "to_90_percent", 1, |of| percent(of, 3)).low().kept(),
    figure("to 50%", "s", "to_50_seconds", 1, |of| spent(of, Along::Time, 0)).low().between(),
    figure("to 60%", "s", "to_60_seconds", 1, |of| spent(of, Along::Time, 1)).low().kept(),
    figure("to 80%", "s", "to_80_seconds", 1, |of| spent(of, Along::Time, 2)).low().between(),
    figure("to 90%", "s", "to_90_seconds", 1, |of| spent(of, Along::Time, 3)).low().between(),
    figure("counted", "s", "counted_seconds", 1, |of| of.counted_seconds).between(),
    figure("half-time pages", "%", "half_pages_percent", 1, |of| 100.0 * of.half.pages)
        .high()
        .between(),
    figure("x ref", "", "half_pages_ratio", 2, |of| of.half.ratio).between(),
    figure("pages/s", "", "pages_per_second", 1, |of| of.pages_per_second).high(),
    figure("Mb/s", "", "megabits_per_second", 2, |of| of.bits_per_second / 1e6),
    figure("core busy", "%", "core_busy_percent", 1, |of| 100.0 * of.busy_share),
    figure("pages", "", "pages", 0, |of| of.pages),
    figure("up to date", "%", "fresh_percent", 1, |of| 100.0 * of.copies.fresh).high().changing(),
    figure("out of date for", "s", "age_seconds", 0, |of| of.copies.age).low().changing(),
    figure("quality", "", "quality", 1, |of| of.quality).kept(),
    figure("whole time", "s", "seconds", 0, |of| of.seconds),
    figure("area by request", "%", "area_requests_percent", 1, |of| area(of, Along::Requests))
        .high()
        .spent(),
    figure("to 50%", "requests", "to_50_requests", 0, |of| spent(of, Along::Requests, 0))
        .low()
        .spent(),
    figure("to 60%", "requests", "to_60_requests", 0, |of| spent(of, Along::Requests, 1))
        .low()
        .kept(),
    figure("to 80%", "requests", "to_80_requests", 0, |of| spent(of, Along::Requests, 2))
        .low()
        .spent(),
    figure("to 90%", "requests", "to_90_requests", 0, |of| spent(of, Along::Requests, 3))
        .low()
        .kept(),
    figure("area by byte", "%", "area_bytes_percent", 1, |of| area(of, Along::Bytes))
        .high()
        .spent(),
    figure("to 50%", "MB", "to_50_megabytes", 1, |of| megabytes(of, 0)).low().kept(),
    figure("to 60%", "MB", "to_60_megabytes", 1, |of| megabytes(of, 1)).low().kept(),
    figure("to 80%", "MB", "to_80_megabytes", 1, |of| megabytes(of, 2)).low().spent(),
    figure("to 90%", "MB", "to_90_megabytes", 1, |of| megabytes(of, 3)).low().kept(),
    figure("area by CPU", "%", "area_cpu_percent", 1, |of| area(of, Along::Core)).high().spent(),
    figure("to 50%", "CPU s", "to_50_cpu_seconds", 1, |of| spent(of, Along::Core, 0)).low().kept(),
    figure("to 60%", "CPU s", "to_60_cpu_seconds", 1, |of| spent(of, Along::Core, 1)).low().kept(),
    figure("to 80%", "CPU s", "to_80_cpu_seconds", 1, |of| spent(of, Along::Core, 2)).low().spent(),
    figure("to 90%", "CPU s", "to_90_cpu_seconds", 1, |of| spent(of, Along::Core, 3)).low().kept(),
];

/// Returns the columns that name a row.
pub(super) fn names(plan: &Plan) -> Vec<Column> {
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

/// Returns the cells that name a row.
pub(super) fn name_cells(results: &Results<'_>, row: &Row) -> Vec<Cell> {
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

/// Returns the area along an axis, in per cent.
pub(super) fn area(of: &Figures, along: Along) -> f64 {
    100.0 * of.along[along as usize].area
}

/// Returns how much a crawl has spent when it reaches a share of all quality, which is given by its
/// index; NaN if it doesn't.
pub(super) fn spent(of: &Figures, along: Along, share: usize) -> f64 {
    of.along[along as usize].spent[share].unwrap_or(f64::NAN)
}

fn percent(of: &Figures, share: usize) -> f64 {
    100.0 * spent(of, Along::Time, share) / of.counted_seconds
}

fn megabytes(of: &Figures, share: usize) -> f64 {
    spent(of, Along::Bytes, share) / 1e6
}
