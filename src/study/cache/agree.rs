//! Compares the curves of several traces: are they more alike over the size of the cache, or over
//! its entries per connection?

use super::policy::Policy;
use super::reading::Reading;
use super::study::{Curves, Study};

/// A curve: its points (binary logarithm of x, miss rate), ascending in x.
pub(super) type Line = Vec<(f64, f64)>;

/// Returns a curve of CLOCK's miss rates on a stream. Its x is the logarithm of the cache size
/// divided by `share`, the number of connections that share the cache (1: the size itself).
pub(super) fn line(curves: &Curves, share: f64) -> Line {
    let point = |level: usize| (level as f64 - share.log2(), curves.rate(Policy::Clock, level));
    (0..curves.levels()).map(point).collect()
}

/// Returns how far curves are apart where all are defined: the mean and the maximum, over x, of the
/// difference between the highest and the lowest miss rate. `None` if there is one curve only, or
/// they have no x in common.
pub(super) fn apart(lines: &[Line]) -> Option<(f64, f64)> {
    const STEPS: u32 = 400;
    let ends = |line: &Line| Some((line.first()?.0, line.last()?.0));
    let ends: Vec<(f64, f64)> = lines.iter().map(ends).collect::<Option<_>>()?;
    let low = ends.iter().map(|(low, _)| *low).fold(f64::NEG_INFINITY, f64::max);
    let high = ends.iter().map(|(_, high)| *high).fold(f64::INFINITY, f64::min);
    if lines.len() < 2 || low >= high {
        return None;
    }
    let (mut sum, mut most) = (0.0, 0.0_f64);
    for step in 0..=STEPS {
        let x = low + (high - low) * f64::from(step) / f64::from(STEPS);
        let heights = lines.iter().map(|line| height(line, x));
        let (least, largest) = heights
            .fold((f64::INFINITY, 0.0_f64), |(least, largest), y| (least.min(y), largest.max(y)));
        sum += largest - least;
        most = most.max(largest - least);
    }
    Some((sum / f64::from(STEPS + 1), most))
}

/// Returns a curve's miss rate at an x between its ends, interpolated.
fn height(line: &Line, x: f64) -> f64 {
    let next = line.partition_point(|point| point.0 < x).clamp(1, line.len() - 1);
    let ((x0, y0), (x1, y1)) = (line[next - 1], line[next]);
    y0 + (y1 - y0) * ((x - x0) / (x1 - x0)).clamp(0.0, 1.0)
}

/// Returns where each curve falls to the miss rate `rate`, as logarithms of x; `None` if one of
/// them never does, or begins at or below it.
fn crossings(lines: &[Line], rate: f64) -> Option<Vec<f64>> {
    let crossing = |line: &Line| {
        let below = line.iter().position(|point| point.1 <= rate).filter(|at| *at > 0)?;
        let ((x0, y0), (x1, y1)) = (line[below - 1], line[below]);
        Some(x0 + (x1 - x0) * (y0 - rate) / (y0 - y1))
    };
    lines.iter().map(crossing).collect()
}

/// Returns the miss rate in the middle of the curves' falls: for each trace, halfway between the
/// miss rates at the begin and the end of its critical region; of these, the mean. `None` if a
/// trace has no such region.
fn middle(studies: &[Study]) -> Option<f64> {
    let of = |study: &Study| {
        let Reading { critical, rates, .. } = Reading::of(&study.full);
        critical.map(|(from, to)| f64::midpoint(rates[from], rates[to]))
    };
    let middles: Vec<f64> = studies.iter().map(of).collect::<Option<_>>()?;
    Some(middles.iter().sum::<f64>() / middles.len() as f64)
}

/// Returns the comparison of several traces in words; `None` if they can't be compared.
pub(super) fn text(studies: &[Study]) -> Option<String> {
    let lines = |of: &dyn Fn(&Study) -> f64| -> Vec<Line> {
        studies.iter().map(|study| line(&study.full, of(study))).collect()
    };
    let (by_size, by_share) = (lines(&|_| 1.0), lines(&Study::connections));
    let (mean_by_size, most_by_size) = apart(&by_size)?;
    let (mean_by_share, most_by_share) = apart(&by_share)?;
    let mut text = format!(
        "At equal size the curves of CLOCK are {:.1} points apart on average and {:.1} at most; \
         at equal entries per connection {:.1} and {:.1}.",
        100.0 * mean_by_size,
        100.0 * most_by_size,
        100.0 * mean_by_share,
        100.0 * most_by_share
    );
    let Some(rate) = middle(studies) else { return Some(text) };
    let (Some(sizes), Some(shares)) = (crossings(&by_size, rate), crossings(&by_share, rate))
    else {
        return Some(text);
    };
    let places: Vec<String> = studies
        .iter()
        .zip(sizes.iter().zip(&shares))
        .map(|(study, (size, share))| {
            format!("2^{size:.1} entries for {}, {:.0} per connection", study.name, share.exp2())
        })
        .collect();
    let (sizes, shares) = (times(&sizes), times(&shares));
    text.push_str(&format!(
        " In the middle of their falls, at {:.0}% misses, they are at {}: the sizes differ \
         {sizes:.1} times, the entries per connection {shares:.1} times. {}",
        100.0 * rate,
        places.join("; "),
        verdict(sizes, shares)
    ));
    Some(text)
}

/// Returns how many times the largest number is the smallest, given their binary logarithms.
fn times(logarithms: &[f64]) -> f64 {
    let least = logarithms.iter().copied().fold(f64::INFINITY, f64::min);
    let most = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (most - least).exp2()
}

/// Says whether the entries per connection make the curves more alike than the size does: ratios of
/// the largest to the smallest of each (`shares`, `sizes`) are compared.
fn verdict(sizes: f64, shares: f64) -> &'static str {
    match shares.log2() / sizes.log2().max(f64::MIN_POSITIVE) {
        ratio if ratio <= 0.25 => "There the entries per connection decide.",
        ratio if ratio < 1.0 => {
            "There the entries per connection say more than the size, but not everything."
        }
        _ => "There the entries per connection say no more than the size.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_are_found_at_equal_entries_per_connection() {
        let line = |shift: f64| vec![(shift, 0.8), (shift + 4.0, 0.8), (shift + 8.0, 0.2)];
        let found = crossings(&[line(0.0), line(2.0)], 0.5).expect("both fall to it");
        assert_eq!(found, [6.0, 8.0]);
        assert_eq!(times(&found), 4.0);
        assert_eq!(crossings(&[line(0.0)], 0.1), None, "never so low");
        assert_eq!(crossings(&[line(0.0)], 0.9), None, "never so high");
        for (sizes, shares, says) in [
            (16.0, 1.2, "decide"),
            (16.0, 8.0, "more than the size"),
            (2.0, 4.0, "no more"),
            (1.0, 1.0, "decide"),
            (1.0, 2.0, "no more"),
        ] {
            assert!(verdict(sizes, shares).contains(says), "{sizes}, {shares}");
        }
    }

    #[test]
    fn lines_apart() {
        let line = |shift: f64| vec![(shift, 0.8), (shift + 4.0, 0.8), (shift + 8.0, 0.2)];
        assert_eq!(apart(&[line(0.0), line(0.0)]), Some((0.0, 0.0)));
        let (mean, most) = apart(&[line(0.0), line(1.0)]).expect("they overlap");
        assert!((most - 0.15).abs() < 1e-9, "a quarter of the fall of 0.6 an x apart: {most}");
        assert!(mean > 0.0 && mean < most, "{mean}");
        assert_eq!(apart(&[line(0.0), line(9.0)]), None, "nothing in common");
        assert_eq!(apart(&[line(0.0)]), None, "one alone");
        assert_eq!(apart(&[vec![(0.0, 1.0)], line(0.0)]), None, "a point");
    }
}
