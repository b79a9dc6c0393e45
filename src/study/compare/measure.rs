//! The figures of a crawl, and their ratios to those of the reference policy on the same web.
//!
//! The *counted time* is from the start to the instant at which the reference has fetched 95% of
//! all pages: the last few pages depend on the slowest servers, whatever the policy. "All pages"
//! and "all quality" are those of the crawl that fetched most, among the crawls of the same web and
//! repeat. Between two samples, values are interpolated linearly.

use super::plan::Plan;
use super::series::{Run, Sample, Series};

/// The share of all pages at which the counted time ends: when the reference has fetched it.
pub(super) const COUNTED_SHARE: f64 = 0.95;
/// The shares of all quality for which the time to reach them is reported.
pub(super) const QUALITY_SHARES: [f64; 4] = [0.5, 0.6, 0.8, 0.9];

/// The values by which the crawls of one web and repeat are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measure {
    /// The number of all pages.
    pub(super) pages: f64,
    /// The sum of all quality, in millionths of the mean page's.
    pub(super) quality: f64,
    /// The counted time, in seconds.
    pub(super) seconds: f64,
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
    /// The area under the crawl's share of all quality, over the counted time from 0 to 1; all
    /// quality at once would be 1.
    pub(super) area: f64,
    /// The area as a ratio to that of the reference.
    pub(super) area_ratio: f64,
    /// When the crawl reaches each of [`QUALITY_SHARES`], as a share of the counted time; `None` if
    /// it doesn't.
    pub(super) times: [Option<f64>; 4],
    /// The number of pages fetched in the first half of the counted time, as a share of all pages.
    pub(super) half_pages: f64,
    /// `half_pages` as a ratio to that of the reference.
    pub(super) half_pages_ratio: f64,
    /// Pages per second until the crawl has fetched half of all pages, or until its end if it never
    /// does; in this time all servers still have URLs.
    pub(super) pages_per_second: f64,
    /// Bits received per second in the time of `pages_per_second`.
    pub(super) bits_per_second: f64,
    /// The share of the time of `pages_per_second` in which the core worked.
    pub(super) busy_share: f64,
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

impl Measure {
    /// Returns the measure of the crawls of one web and repeat, which are `runs`.
    pub(super) fn of(runs: &[&Run], plan: &Plan) -> Self {
        let most = |of: fn(&Sample) -> f64| {
            runs.iter().map(|run| of(&run.series.last())).fold(0.0, f64::max)
        };
        let reference = reference(runs, plan);
        let all = most(pages);
        // If the reference gives up before it has fetched that share, its whole time counts.
        let whole = reference.last().seconds;
        let seconds = reference.when(COUNTED_SHARE * all, pages).unwrap_or(whole);
        Self { pages: all, quality: most(quality), seconds }
    }

    /// Computes the figures of a crawl by itself; its ratios to the reference are set to 1.
    fn alone(&self, series: &Series) -> Figures {
        let end = series.last();
        let half = series.when(self.pages / 2.0, pages).unwrap_or(end.seconds);
        let rate = |of: fn(&Sample) -> f64| ratio(series.at(half, of), half);
        let share = |part: f64| {
            let at = series.when(part * self.quality, quality).filter(|_| self.quality > 0.0)?;
            Some(ratio(at, self.seconds))
        };
        // A counted time of zero has no half.
        let half_pages =
            (self.seconds > 0.0).then(|| ratio(series.at(self.seconds / 2.0, pages), self.pages));
        Figures {
            pages: pages(&end),
            quality: quality(&end) / 1e6,
            seconds: end.seconds,
            counted_seconds: self.seconds,
            area: ratio(series.area(self.seconds, quality), self.seconds * self.quality),
            area_ratio: 1.0,
            times: QUALITY_SHARES.map(share),
            half_pages: half_pages.unwrap_or(f64::NAN),
            half_pages_ratio: 1.0,
            pages_per_second: rate(pages),
            bits_per_second: 8.0 * rate(bytes),
            // Work is charged when it begins, so it may run ahead of the time.
            busy_share: rate(busy).clamp(0.0, 1.0),
        }
    }
}

/// Computes the figures of `runs`, the crawls of one web and repeat, in their order.
pub(super) fn figures(runs: &[&Run], plan: &Plan) -> Vec<Figures> {
    let measure = Measure::of(runs, plan);
    let base = measure.alone(reference(runs, plan));
    let computed = runs.iter().map(|run| {
        let own = measure.alone(&run.series);
        Figures {
            area_ratio: ratio(own.area, base.area),
            half_pages_ratio: ratio(own.half_pages, base.half_pages),
            ..own
        }
    });
    computed.collect()
}

fn reference<'a>(runs: &[&'a Run], plan: &Plan) -> &'a Series {
    let found = runs.iter().find(|run| run.spec.policy == plan.reference);
    &found.expect("every web is crawled by the reference").series
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
    use super::super::plan::Spec;
    use super::*;
    use crate::conf::Conf;
    use crate::frontier::policy::Policy;

    fn run(policy: Policy, points: &[(f64, u64, u64)]) -> Run {
        let spec = Spec {
            variant: 0,
            value: 0,
            repeat: 0,
            policy,
            ground: 0,
            conf: Conf::default(),
            trace: None,
        };
        let mut series = Series::new();
        for &(seconds, pages, quality) in points {
            series.push(Sample {
                seconds,
                pages,
                quality_millionths: quality * 1_000_000,
                bytes: 1_000 * pages,
                busy_seconds: seconds / 4.0,
                ..Sample::default()
            });
        }
        Run { spec, series }
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
        let computed = figures(&[&other, &bfs], &plan());
        let (other, bfs) = (&computed[0], &computed[1]);
        assert_eq!(bfs.counted_seconds, 95.0, "95 of 100 pages");
        assert_eq!(bfs.area, 0.95 / 2.0, "a triangle up to 95% of all quality");
        assert_eq!(bfs.times, [0.5, 0.6, 0.8, 0.9].map(|share| Some(100.0 * share / 95.0)));
        assert_eq!(bfs.half_pages, 0.475);
        assert_eq!((bfs.area_ratio, bfs.half_pages_ratio), (1.0, 1.0));
        assert_eq!((bfs.pages_per_second, bfs.bits_per_second), (1.0, 8_000.0));
        assert_eq!(bfs.busy_share, 0.25);
        let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-12, "{one} {other}");
        close(other.area, (20.0 + 55.0) / 95.0);
        close(other.area_ratio, (75.0 / 95.0) / 0.475);
        close(other.times[0].expect("half of it"), 20.0 / 95.0);
        close(other.times[3].expect("most of it"), 36.0 / 95.0);
        close(other.half_pages, 0.675);
        close(other.half_pages_ratio, 0.675 / 0.475);
        close(other.pages_per_second, 1.5);
        assert_eq!(other.seconds, 80.0);
    }

    #[test]
    fn what_never_comes_is_missing() {
        let bfs = run(Policy::Bfs, &[(10.0, 10, 10)]);
        let cut = run(Policy::Quality, &[(5.0, 4, 7)]);
        let computed = figures(&[&bfs, &cut], &plan());
        assert_eq!(computed[1].times.map(|time| time.is_some()), [true, true, false, false]);
        let nothing = run(Policy::Bfs, &[(10.0, 0, 0)]);
        let computed = figures(&[&nothing], &plan());
        assert!(computed[0].area.is_nan() && computed[0].times == [None; 4], "{computed:?}");
        let at_once = run(Policy::Bfs, &[(0.0, 10, 10)]);
        let computed = figures(&[&at_once], &plan()).remove(0);
        let rates =
            [computed.area, computed.half_pages, computed.pages_per_second, computed.busy_share];
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
