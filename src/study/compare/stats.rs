//! Statistics of differences between two policies, repeat by repeat: a mean with its interval, and
//! a sign test.
//!
//! A repeat is one web that both policies crawl, so the difference between webs, which is larger
//! than that between policies, is not in the differences. The interval is the percentile bootstrap
//! of the mean: the differences are drawn again with replacement, and 2.5% of the means drawn lie
//! below it and above it. It supposes nothing of how the differences are distributed, but few
//! repeats make it too narrow: with [`REPEATS_MIN`] it is nearer to 85% than to 95%.
//!
//! Law: the same differences give the same interval on every machine.
//! Cost: [`RESAMPLES`] draws for each difference, some milliseconds for twenty repeats.
//!
//! Source: Efron, Tibshirani: An Introduction to the Bootstrap (1993), chapter 13; Dixon, Mood: The
//! statistical sign test, JASA 41 (1946).

use crate::ground::random::Random;

/// How often the differences are drawn again.
const RESAMPLES: usize = 10_000;
/// The share of the means drawn that lie on each side of the interval.
const TAIL: f64 = 0.025;
/// The least number of repeats for which an interval is computed.
pub(super) const REPEATS_MIN: usize = 5;

/// The differences between two policies, over the repeats that both have a figure for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Paired {
    /// The number of repeats.
    pub(super) repeats: usize,
    /// The mean of the differences.
    pub(super) mean: f64,
    /// The 95% interval of the mean; `None` with fewer than [`REPEATS_MIN`] repeats.
    pub(super) interval: Option<(f64, f64)>,
    /// The number of differences above zero.
    pub(super) above: usize,
    /// The number of differences below zero.
    pub(super) below: usize,
    /// The two-sided p of the sign test: the probability of signs at least as unequal if each were
    /// as likely as the other. Differences of zero are left out; 1 if all are zero.
    pub(super) sign_p: f64,
}

impl Paired {
    /// Computes the statistics of differences; `None` if there is none.
    pub(super) fn of(differences: &[f64]) -> Option<Self> {
        let repeats = differences.len();
        if repeats == 0 {
            return None;
        }
        let count = |is: fn(f64) -> bool| differences.iter().filter(|value| is(**value)).count();
        let (above, below) = (count(|value| value > 0.0), count(|value| value < 0.0));
        Some(Self {
            repeats,
            mean: differences.iter().sum::<f64>() / repeats as f64,
            interval: (repeats >= REPEATS_MIN).then(|| interval(differences)),
            above,
            below,
            sign_p: sign_p(above, below),
        })
    }

    /// Returns the sign of the difference: 1 or -1 if its interval leaves out zero, else 0.
    pub(super) fn sign(&self) -> i8 {
        match self.interval {
            Some((low, _)) if low > 0.0 => 1,
            Some((_, high)) if high < 0.0 => -1,
            _ => 0,
        }
    }

    /// Returns the statistics of the same repeats with `of` applied to the mean and the ends of its
    /// interval, such as to turn differences of logarithms into ratios.
    pub(super) fn map(self, of: fn(f64) -> f64) -> Self {
        let interval = self.interval.map(|(low, high)| (of(low), of(high)));
        Self { mean: of(self.mean), interval, ..self }
    }
}

fn interval(differences: &[f64]) -> (f64, f64) {
    // The seed is no secret and needs no entropy: every report is to be repeatable.
    let mut random = Random(differences.len() as u64);
    let draw = |_| {
        let drawn = differences.iter().map(|_| random.pick(differences));
        drawn.sum::<f64>() / differences.len() as f64
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(draw).collect();
    means.sort_unstable_by(f64::total_cmp);
    let beyond = (TAIL * RESAMPLES as f64) as usize;
    (means[beyond], means[RESAMPLES - 1 - beyond])
}

/// Returns the two-sided p of a sign test.
fn sign_p(above: usize, below: usize) -> f64 {
    let signs = above + below;
    let fewer = above.min(below);
    // The probability of `fewer` or less of `signs` coins, and as much again for the other side.
    let (mut term, mut sum) = (0.5_f64.powi(i32::try_from(signs).unwrap_or(i32::MAX)), 0.0);
    for heads in 0..=fewer {
        sum += term;
        term *= (signs - heads) as f64 / (heads + 1) as f64;
    }
    (2.0 * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the binomial sums in exact arithmetic, which Python's `math.comb` gives.
    #[test]
    fn signs_are_tested_exactly() {
        for (above, below, expected) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (5, 0, 0.0625),
            (0, 5, 0.0625),
            (15, 5, 0.041_389_465_332_031_25),
            (20, 0, 1.907_348_632_812_5e-6),
            (10, 10, 1.0),
            (12, 8, 0.503_444_671_630_859_4),
        ] {
            let p = sign_p(above, below);
            assert!((p - expected).abs() < 1e-12, "{above} above, {below} below: {p}");
        }
    }

    #[test]
    fn differences_by_hand() {
        let paired = Paired::of(&[2.0, -1.0, 0.0, 3.0]).expect("some");
        assert_eq!((paired.repeats, paired.mean), (4, 1.0));
        assert_eq!((paired.above, paired.below, paired.sign_p), (2, 1, 1.0));
        assert_eq!((paired.interval, paired.sign()), (None, 0), "too few");
        assert_eq!(Paired::of(&[]), None);
        let same = Paired::of(&[3.0; 5]).expect("some");
        assert_eq!((same.interval, same.sign()), (Some((3.0, 3.0)), 1));
        assert_eq!(same.map(|value| -value).sign(), -1);
    }

    /// Of normal differences the bootstrap's interval is that of the normal law, and it holds the
    /// true mean about as often as it says: somewhat less with few repeats.
    #[test]
    fn intervals_hold_the_mean_as_often_as_they_say() {
        let mut random = Random(7);
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let many: Vec<f64> = (0..2_000).map(|_| normal()).collect();
        let paired = Paired::of(&many).expect("some");
        let (low, high) = paired.interval.expect("enough");
        let half = 1.96 / 2_000_f64.sqrt();
        assert!((high - low - 2.0 * half).abs() < 0.2 * half, "{low} to {high}, not {half}");
        let mut trial = |repeats: usize| {
            let drawn: Vec<f64> = (0..repeats).map(|_| normal()).collect();
            let (low, high) = Paired::of(&drawn).expect("some").interval.expect("enough");
            low <= 0.0 && 0.0 <= high
        };
        for (repeats, least, most) in [(20, 170, 199), (REPEATS_MIN, 145, 190)] {
            let held = (0..200).filter(|_| trial(repeats)).count();
            assert!((least..=most).contains(&held), "{held} of 200 with {repeats} repeats");
        }
    }
}
