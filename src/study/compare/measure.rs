//! The figures of a crawl, and their ratios to those of the reference policy on the same web.
//!
//! All crawls of one web and repeat are measured alike, those of all variants and values of a sweep
//! together: "all pages" and "all quality" are those of the crawl that fetched most, and the
//! *counted time* is from the start to the instant at which the first of them under the reference
//! policy has fetched `compare.counted_share` of all pages. (The last few pages depend on the
//! slowest servers, whatever the policy.) What that crawl has spent by then in requests, bytes and
//! time of the core is what is counted of these. Between two samples, values are interpolated
//! linearly.

use super::bound::Bound;
use super::plan::{Plan, Spec};
use super::series::{Along, Run, Sample, Series};
use std::collections::BTreeMap;

/// The shares of all quality for which is reported what a crawl has spent to reach them.
pub(super) const QUALITY_SHARES: [f64; 4] = [0.5, 0.6, 0.8, 0.9];

/// The values by which the crawls of one web and repeat are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measure {
    /// The number of all pages.
    pub(super) pages: f64,
    /// The sum of all quality, in millionths of the mean page's.
    pub(super) quality: f64,
    /// How much is counted along each axis of [`Along::ALL`]: seconds, requests, bytes, seconds of
    /// the core.
    pub(super) counted: [f64; 4],
}

/// A crawl's quality along one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Course {
    /// The area under the share of all quality, over what is counted of the axis from 0 to 1; all
    /// quality at once would be 1.
    pub(super) area: f64,
    /// How much the crawl has spent when it reaches each of [`QUALITY_SHARES`]: seconds, requests,
    /// bytes, or seconds of the core. `None` if it doesn't reach it.
    pub(super) spent: [Option<f64>; 4],
}

/// What one crawl is measured by: its totals, and how they compare with the reference policy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    /// The number of pages fetched.
    pub(super) pages: f64,
    /// The sum of the qualities of the pages fetched; the mean page has 1.
    pub(super) quality: f64,
    /// Time from the crawl's start to its end, in seconds.
    pub(super) seconds: f64,
    /// The counted time in seconds, the same for all policies.
    pub(super) counted_seconds: f64,
    /// The crawl's quality along each axis of [`Along::ALL`].
    pub(super) along: [Course; 4],
    /// The area over time as a share of that of the bound, which no crawl can pass; NaN if there is
    /// none.
    pub(super) bound_share: f64,
    /// The area over time as a ratio to that of the reference.
    pub(super) area_ratio: f64,
    /// What was fetched in the first half of the counted time.
    pub(super) half: Half,
    /// Pages per second until the crawl has fetched half of all pages, or until its end if it never
    /// does; in this time all servers still have URLs.
    pub(super) pages_per_second: f64,
    /// Bits received per second in the time of `pages_per_second`.
    pub(super) bits_per_second: f64,
    /// The share of the time of `pages_per_second` in which the core worked.
    pub(super) busy_share: f64,
    /// How far copies were up to date.
    pub(super) copies: Upkeep,
}

/// What a crawl has fetched in the first half of the counted time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Half {
    /// The number of pages, as a share of all pages.
    pub(super) pages: f64,
    /// The same as a ratio to that of the reference.
    pub(super) ratio: f64,
}

/// How far the copies of a crawl were up to date: means over its second half.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Upkeep {
    /// The share of the copies that were, weighted with qualities.
    pub(super) fresh: f64,
    /// The mean time for which copies had been out of date, in seconds.
    pub(super) age: f64,
}

impl Figures {
    /// Returns the crawl's quality over time.
    pub(super) fn over_time(&self) -> &Course {
        &self.along[Along::Time as usize]
    }
}

pub(super) fn pages(sample: &Sample) -> f64 {
    sample.pages as f64
}

pub(super) fn quality(sample: &Sample) -> f64 {
    sample.quality_millionths as f64
}

fn bytes(sample: &Sample) -> f64 {
    sample.bytes as f64
}

fn busy(sample: &Sample) -> f64 {
    sample.busy_seconds
}

pub(super) fn fresh(sample: &Sample) -> f64 {
    sample.fresh
}

pub(super) fn age(sample: &Sample) -> f64 {
    sample.age
}

/// Returns the mean of `of` over the second half of a crawl; NaN of a crawl that took no time.
fn second_half(series: &Series, of: fn(&Sample) -> f64) -> f64 {
    let end = series.last().seconds;
    let until = |seconds: f64| series.area(Along::Time, seconds, of);
    ratio(until(end) - until(end / 2.0), end / 2.0)
}

impl Measure {
    /// Returns the counted time, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.counted[Along::Time as usize]
    }

    /// Computes the measure of the crawls of one web and repeat, which are `runs`, and that of
    /// `baseline`, the crawl among them that the others are compared with.
    fn of(runs: &[&Run], baseline: &Run) -> Self {
        let most = |of: fn(&Sample) -> f64| {
            runs.iter().map(|run| of(&run.series.last())).fold(0.0, f64::max)
        };
        let all = most(pages);
        let share = counted_share(&baseline.spec);
        let counted = Along::ALL.map(|along| {
            // If the baseline gives up before it has fetched that share, all that it has spent
            // counts.
            let reached = baseline.series.when(along, share * all, pages);
            reached.unwrap_or(along.of(&baseline.series.last()))
        });
        Self { pages: all, quality: most(quality), counted }
    }

    /// Computes the figures of a crawl by itself; its ratios to the reference are set to 1.
    fn alone(&self, series: &Series) -> Figures {
        let end = series.last();
        let half = series.when(Along::Time, self.pages / 2.0, pages).unwrap_or(end.seconds);
        let rate = |of: fn(&Sample) -> f64| ratio(series.at(Along::Time, half, of), half);
        let seconds = self.seconds();
        // A counted time of zero has no half.
        let at_half = || series.at(Along::Time, seconds / 2.0, pages);
        let half_pages = (seconds > 0.0).then(|| ratio(at_half(), self.pages));
        Figures {
            pages: pages(&end),
            quality: quality(&end) / 1e6,
            seconds: end.seconds,
            counted_seconds: seconds,
            along: Along::ALL.map(|along| self.course(series, along)),
            bound_share: f64::NAN,
            area_ratio: 1.0,
            half: Half { pages: half_pages.unwrap_or(f64::NAN), ratio: 1.0 },
            pages_per_second: rate(pages),
            bits_per_second: 8.0 * rate(bytes),
            // Work is charged when it begins, so it may run ahead of the time.
            busy_share: rate(busy).clamp(0.0, 1.0),
            copies: Upkeep { fresh: second_half(series, fresh), age: second_half(series, age) },
        }
    }

    fn course(&self, series: &Series, along: Along) -> Course {
        let counted = self.counted[along as usize];
        let reached = |share: f64| {
            let has_any = self.quality > 0.0 && counted > 0.0;
            has_any.then(|| series.when(along, share * self.quality, quality)).flatten()
        };
        Course {
            area: ratio(series.area(along, counted, quality), counted * self.quality),
            spent: QUALITY_SHARES.map(reached),
        }
    }
}

/// The share of all pages at which the counted time of a crawl's web ends.
fn counted_share(spec: &Spec) -> f64 {
    let compare = spec.conf.compare.as_ref();
    compare.expect("a run is part of a comparison").counted_share.as_f64()
}

/// Computes the figures of all crawls of a plan, `runs`, in its order, and what each is measured
/// by.
pub(super) fn figures(runs: &[Run], plan: &Plan) -> (Vec<Figures>, Vec<Measure>) {
    // Where the counted time ends may itself be swept, over the same web.
    let key = |run: &Run| (run.spec.ground, counted_share(&run.spec).to_bits());
    let mut alike: BTreeMap<_, Vec<&Run>> = BTreeMap::new();
    runs.iter().for_each(|run| alike.entry(key(run)).or_default().push(run));
    let measured = alike.into_iter().map(|(key, runs)| {
        let baseline = runs.iter().find(|run| run.spec.policy == plan.reference);
        let baseline = baseline.expect("every web is crawled by the reference");
        let measure = Measure::of(&runs, baseline);
        (key, (measure, measure.alone(&baseline.series)))
    });
    let measured: BTreeMap<_, (Measure, Figures)> = measured.collect();
    let crawl = |run: &Run| (run.spec.variant, run.spec.value, run.spec.repeat);
    let bounds: BTreeMap<_, &Bound> =
        runs.iter().filter_map(|run| Some((crawl(run), run.bound.as_deref()?))).collect();
    let figures = runs.iter().map(|run| {
        let (measure, base) = &measured[&key(run)];
        let own = measure.alone(&run.series);
        let bound = bounds.get(&crawl(run)).map_or(f64::NAN, |bound| {
            ratio(bound.area(measure.seconds()), measure.seconds() * measure.quality)
        });
        Figures {
            bound_share: ratio(own.over_time().area, bound),
            area_ratio: ratio(own.over_time().area, base.over_time().area),
            half: Half { ratio: ratio(own.half.pages, base.half.pages), ..own.half },
            ..own
        }
    });
    (figures.collect(), runs.iter().map(|run| measured[&key(run)].0).collect())
}

/// Divides `part` by `whole`. If `whole` is zero, the result is NaN, which is shown as missing.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { f64::NAN }
}

/// Median, minimum and maximum of a figure, over the repeats that have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// The median; of an even number of values, the mean of the two in the middle.
    pub(super) median: f64,
    /// The minimum.
    pub(super) least: f64,
    /// The maximum.
    pub(super) most: f64,
}

impl Spread {
    /// Computes the spread of `values`, leaving out NaN; all three are NaN if none is left.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else {
            return Self { median: f64::NAN, least: f64::NAN, most: f64::NAN };
        };
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Self { median, least, most }
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::Crawled;
    use super::*;
    use crate::conf::Conf;
    use crate::frontier::policy::Policy;
    use std::sync::Arc;

    fn run(policy: Policy, points: &[(f64, u64, u64)]) -> Run {
        let spec = plan().runs.into_iter().find(|spec| spec.policy == policy).expect("planned");
        let mut series = Series::new();
        for &(seconds, pages, quality) in points {
            series.push(Sample {
                seconds,
                pages,
                quality_millionths: quality * 1_000_000,
                bytes: 1_000 * pages,
                requests: 2 * pages,
                busy_seconds: seconds / 4.0,
                fresh: if seconds > 50.0 { 0.5 } else { 1.0 },
                ..Sample::default()
            });
        }
        Run { spec, series: Arc::new(series), web: Crawled::default(), bound: None }
    }

    fn plan() -> Plan {
        let conf = Conf::parse("[compare]", "x.toml").expect("valid");
        let compare = conf.compare.clone().expect("a comparison");
        Plan::new(&conf, &compare, "x.toml").expect("a plan")
    }

    /// Two crawls of 100 pages with a total quality of 200: one evenly in 100 s, one with all
    /// quality in the first half of its 80 s.
    #[test]
    fn figures_are_as_computed_by_hand() {
        let bfs = run(Policy::Bfs, &[(100.0, 100, 200)]);
        let other = run(Policy::Capability, &[(40.0, 60, 200), (80.0, 100, 200)]);
        let computed = figures(&[other, bfs], &plan()).0;
        let (other, bfs) = (&computed[0], &computed[1]);
        assert_eq!(bfs.counted_seconds, 95.0, "95 of 100 pages");
        for (along, unit) in Along::ALL.into_iter().zip([100.0, 200.0, 100_000.0, 25.0]) {
            let course = bfs.along[along as usize];
            assert_eq!(course.area, 0.95 / 2.0, "a triangle up to 95% of all quality");
            assert_eq!(course.spent, [0.5, 0.6, 0.8, 0.9].map(|share| Some(unit * share)));
        }
        assert_eq!(bfs.half.pages, 0.475);
        assert_eq!((bfs.area_ratio, bfs.half.ratio), (1.0, 1.0));
        assert_eq!((bfs.pages_per_second, bfs.bits_per_second), (1.0, 8_000.0));
        assert_eq!(bfs.busy_share, 0.25);
        assert_eq!(
            (bfs.copies.fresh, bfs.copies.age),
            (0.625, 0.0),
            "it falls from 1 to one half in 100 s"
        );
        let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-12, "{one} {other}");
        close(other.over_time().area, (20.0 + 55.0) / 95.0);
        close(other.area_ratio, (75.0 / 95.0) / 0.475);
        close(other.over_time().spent[0].expect("half of it"), 20.0);
        close(other.over_time().spent[3].expect("most of it"), 36.0);
        let by_request = other.along[Along::Requests as usize];
        assert_eq!(by_request.spent[0], Some(60.0), "60 pages have all quality");
        close(by_request.area, (60.0 + 70.0) / 190.0);
        close(other.half.pages, 0.675);
        close(other.half.ratio, 0.675 / 0.475);
        close(other.pages_per_second, 1.5);
        assert_eq!(other.seconds, 80.0);
    }

    #[test]
    fn what_never_comes_is_missing() {
        let bfs = run(Policy::Bfs, &[(10.0, 10, 10)]);
        let cut = run(Policy::Quality, &[(5.0, 4, 7)]);
        let computed = figures(&[bfs, cut], &plan()).0;
        assert_eq!(
            computed[1].over_time().spent.map(|spent| spent.is_some()),
            [true, true, false, false]
        );
        let nothing = run(Policy::Bfs, &[(10.0, 0, 0)]);
        let computed = figures(&[nothing], &plan()).0;
        let course = computed[0].over_time();
        assert!(course.area.is_nan() && course.spent == [None; 4], "{computed:?}");
        let at_once = run(Policy::Bfs, &[(0.0, 10, 10)]);
        let computed = figures(&[at_once], &plan()).0.remove(0);
        let area = computed.over_time().area;
        let rates = [area, computed.half.pages, computed.pages_per_second, computed.busy_share];
        assert!(rates.iter().all(|rate| rate.is_nan()), "of no time: {rates:?}");
    }

    #[test]
    fn spreads() {
        for (values, expected) in [
            (&[3.0][..], (3.0, 3.0, 3.0)),
            (&[3.0, 1.0, 2.0], (2.0, 1.0, 3.0)),
            (&[4.0, 1.0, 2.0, 3.0], (2.5, 1.0, 4.0)),
            (&[f64::NAN, 1.0], (1.0, 1.0, 1.0)),
        ] {
            let spread = Spread::of(values.iter().copied());
            assert_eq!((spread.median, spread.least, spread.most), expected, "{values:?}");
        }
        assert!(Spread::of(std::iter::empty()).median.is_nan());
    }
}
