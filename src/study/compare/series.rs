//! Samples of a running crawl by time, and interpolation between them: over time, or over what the
//! crawl has spent so far.

use super::bound::Bound;
use super::plan::{Plan, Spec};
use std::sync::Arc;

/// The totals of a crawl at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Seconds since the start of the crawl.
    pub(super) seconds: f64,
    /// The number of pages fetched so far.
    pub(super) pages: u64,
    /// The sum of the qualities of these pages, in millionths of the mean page's.
    pub(super) quality_millionths: u64,
    /// The number of requests sent so far, those for robots.txt and repeated ones included.
    pub(super) requests: u64,
    /// The number of bytes received so far.
    pub(super) bytes: u64,
    /// The number of connections open at the instant.
    pub(super) connections: usize,
    /// Seconds that the core has worked so far.
    pub(super) busy_seconds: f64,
    /// The share of the copies that are up to date, weighted with qualities.
    pub(super) fresh: f64,
    /// The mean time for which copies have been out of date, in seconds.
    pub(super) age: f64,
}

/// What a crawl spends: the x axes of its curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    Time,
    Requests,
    Bytes,
    Core,
}

impl Along {
    /// All axes, in the order of tables.
    pub(super) const ALL: [Self; 4] = [Self::Time, Self::Requests, Self::Bytes, Self::Core];

    /// Returns how much a crawl has spent: seconds, requests, bytes, or seconds of the core.
    pub(super) fn of(self, sample: &Sample) -> f64 {
        match self {
            Self::Time => sample.seconds,
            Self::Requests => sample.requests as f64,
            Self::Bytes => sample.bytes as f64,
            Self::Core => sample.busy_seconds,
        }
    }
}

/// The samples of a crawl that has ended.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The plan of the crawl.
    pub(super) spec: Spec,
    /// The samples by time: the start first, the end last. Crawls that differ only in how they are
    /// measured share them.
    pub(super) series: Arc<Series>,
    /// The web that was crawled.
    pub(super) web: Crawled,
    /// The most quality that a crawl of this web with this configuration could have fetched, over
    /// time; `None` if it isn't known, or if this crawl's policy is not the reference.
    pub(super) bound: Option<Arc<Bound>>,
}

/// Returns a run for each of a plan, in its order, from `crawls`: those of [`Plan::crawls`], in
/// their order.
pub(super) fn spread(plan: &Plan, crawls: Vec<Run>) -> Vec<Run> {
    let mut crawls = crawls.into_iter();
    let mut runs: Vec<Run> = Vec::with_capacity(plan.runs.len());
    for spec in &plan.runs {
        let run = match spec.same_as {
            None => crawls.next(),
            Some(same) => Some(Run { spec: spec.clone(), ..runs[same].clone() }),
        };
        runs.extend(run);
    }
    runs
}

/// What identifies a web, and decides whether policies can differ on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Crawled {
    pub(super) hosts: u32,
    pub(super) pages: usize,
    /// The sum of the qualities of all pages, in millionths; 0 if the crawls estimate them.
    pub(super) quality_millionths: u64,
    /// Whether all pages have the same quality.
    pub(super) is_alike: bool,
}

/// The samples of one crawl by time.
#[derive(Clone, Debug)]
pub(super) struct Series {
    samples: Vec<Sample>,
    /// Of this many samples that are added, one is kept.
    stride: usize,
    /// The number of samples skipped since the last one kept.
    skipped: usize,
}

/// The most samples kept of one crawl: beyond that number, every other one is dropped.
const SAMPLES_MAX: usize = 16_384;

impl Series {
    /// Creates the series of a crawl that begins, with a sample of zeros; no copy is out of date.
    pub(super) fn new() -> Self {
        Self { samples: vec![Sample { fresh: 1.0, ..Sample::default() }], stride: 1, skipped: 0 }
    }

    /// Adds the next sample; times must not decrease.
    pub(super) fn push(&mut self, sample: Sample) {
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        self.samples.push(sample);
        if self.samples.len() > SAMPLES_MAX {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Adds the last sample, which is always kept.
    pub(super) fn end(&mut self, sample: Sample) {
        if self.last().seconds == sample.seconds && self.samples.len() > 1 {
            self.samples.pop();
        }
        self.samples.push(sample);
    }

    /// Returns all samples kept.
    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Returns the last sample: the totals at the end of the crawl, once it has ended.
    pub(super) fn last(&self) -> Sample {
        *self.samples.last().expect("the start at least")
    }

    /// Returns the value of `of` when the crawl has spent `spent`, interpolated linearly; after the
    /// end, the last value.
    pub(super) fn at(&self, along: Along, spent: f64, of: fn(&Sample) -> f64) -> f64 {
        let after = self.samples.partition_point(|sample| along.of(sample) <= spent);
        let Some(before) = after.checked_sub(1) else { return of(&self.samples[0]) };
        let from = &self.samples[before];
        let Some(to) = self.samples.get(after) else { return of(from) };
        let share = (spent - along.of(from)) / (along.of(to) - along.of(from));
        of(from) + share * (of(to) - of(from))
    }

    /// Returns how much the crawl has spent when `of`, which never decreases, is first at least
    /// `value`; `None` if it never is.
    pub(super) fn when(&self, along: Along, value: f64, of: fn(&Sample) -> f64) -> Option<f64> {
        let at = self.samples.partition_point(|sample| of(sample) < value);
        let to = self.samples.get(at)?;
        let Some(from) = at.checked_sub(1).map(|before| &self.samples[before]) else {
            return Some(along.of(to));
        };
        let share = (value - of(from)) / (of(to) - of(from));
        Some(along.of(from) + share * (along.of(to) - along.of(from)))
    }

    /// Returns the area under `of` until the crawl has spent `until`, in units of the axis times
    /// those of `of`.
    pub(super) fn area(&self, along: Along, until: f64, of: fn(&Sample) -> f64) -> f64 {
        let (mut area, mut from) = (0.0, (0.0, of(&self.samples[0])));
        for sample in &self.samples[1..] {
            let spent = along.of(sample);
            let value = if spent <= until { of(sample) } else { self.at(along, until, of) };
            let to = (spent.min(until), value);
            area += (to.0 - from.0) * (from.1 + to.1) / 2.0;
            from = to;
            if spent >= until {
                return area;
            }
        }
        // After the end the value is constant.
        area + (until - from.0).max(0.0) * from.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(sample: &Sample) -> f64 {
        sample.pages as f64
    }

    fn series(points: &[(f64, u64)]) -> Series {
        let mut series = Series::new();
        for &(seconds, pages) in points {
            series.push(Sample { seconds, pages, ..Sample::default() });
        }
        series
    }

    #[test]
    fn between_samples_the_line_is_straight() {
        let series = series(&[(1.0, 10), (3.0, 10), (4.0, 40)]);
        for (seconds, expected) in [
            (0.0, 0.0),
            (0.5, 5.0),
            (1.0, 10.0),
            (2.0, 10.0),
            (3.5, 25.0),
            (4.0, 40.0),
            (9.0, 40.0),
        ] {
            assert_eq!(series.at(Along::Time, seconds, pages), expected, "at {seconds}");
        }
        for (value, expected) in [
            (0.0, Some(0.0)),
            (5.0, Some(0.5)),
            (10.0, Some(1.0)),
            (25.0, Some(3.5)),
            (40.0, Some(4.0)),
            (40.5, None),
        ] {
            assert_eq!(series.when(Along::Time, value, pages), expected, "{value} pages");
        }
        for (until, expected) in
            [(0.0, 0.0), (1.0, 5.0), (3.0, 25.0), (3.5, 33.75), (4.0, 50.0), (5.0, 90.0)]
        {
            assert_eq!(series.area(Along::Time, until, pages), expected, "until {until}");
        }
    }

    /// However long a crawl, its samples are bounded, in order, and on the curve.
    #[test]
    fn law_long_crawls_are_thinned() {
        let mut series = Series::new();
        for second in 1..=100_000_u64 {
            series.push(Sample { seconds: second as f64, pages: 3 * second, ..Sample::default() });
        }
        series.end(Sample { seconds: 100_001.0, pages: 300_003, ..Sample::default() });
        let samples = series.samples();
        assert!((SAMPLES_MAX / 2..=SAMPLES_MAX + 2).contains(&samples.len()));
        assert!(samples.windows(2).all(|pair| pair[0].seconds < pair[1].seconds));
        assert!(samples.iter().all(|sample| sample.pages as f64 == 3.0 * sample.seconds));
        assert_eq!(series.last().pages, 300_003);
    }
}
