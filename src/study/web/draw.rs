//! Seeded random draws: the same numbers on every machine, without a stored stream.
//!
//! A [`Draw`] is created for a purpose and up to two numbers (host, page), so that any trait can be
//! drawn again at any time, in any order, and need not be stored.
//!
//! Laws: equal seed, purpose and numbers give equal draws on every machine: only integers and the
//! exactly rounded operations of IEEE 754 (`+ - * /`) are used, no libm.
//!
//! Cost: a few nanoseconds a draw, no allocation. Source: a normal deviate is the sum of twelve
//! uniform ones (the Irwin-Hall distribution), which is never farther from its mean than six
//! standard deviations.

use super::settings::Spread;
use crate::ground::random::{GOLDEN, Random, mix};

/// What a draw is used for; keeps the draws of one host or page independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Purpose {
    Host = 1,
    Weight,
    Kind,
    Path,
    Size,
    Links,
    Body,
    Redirect,
    Think,
    Hang,
    Noise,
    Prose,
    RoundTrip,
    Rank,
    Site,
    Topic,
    HostRate,
    PageRate,
    Change,
    Life,
    Validator,
    Sitemap,
}

/// A stream of pseudo-random numbers, all of which follow from the seed and the purpose.
#[derive(Clone, Debug)]
pub(super) struct Draw(Random);

impl Draw {
    /// Creates the stream of `purpose` for the numbers `a` and `b`.
    pub(super) fn new(seed: u64, purpose: Purpose, a: u32, b: u32) -> Self {
        let place = u64::from(a) << 32 | u64::from(b);
        Self(Random(mix(mix(seed ^ (purpose as u64).wrapping_mul(GOLDEN)) ^ place)))
    }

    /// Returns the stream of a part, one of any number, of this one, which has drawn nothing yet.
    pub(super) fn part(&self, number: u64) -> Self {
        Self(Random(mix(self.0.0 ^ mix(number.wrapping_add(GOLDEN)))))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.word()
    }

    /// Returns a number below `bound`; 0 if `bound` is 0.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        let high = (u128::from(self.next()) * u128::from(bound)) >> 64;
        u32::try_from(high).expect("below a 32-bit bound")
    }

    /// Returns a number from 0 up to, but not including, 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// Returns true with the probability `share`.
    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// Returns a number below `bound`, low ones more often: `bound` times the `skew`-th power of a
    /// uniform number from 0 to 1.
    pub(super) fn skewed(&mut self, bound: u32, skew: u32) -> u32 {
        let unit = self.unit();
        let share = (1..skew).fold(unit, |share, _| share * unit);
        // Rounding can't reach the bound: the share is below 1.
        ((f64::from(bound) * share) as u32).min(bound.saturating_sub(1))
    }

    /// Returns a lognormal value with the median and sigma (standard deviation of the logarithm) of
    /// `spread`; always the median if sigma is 0.
    pub(super) fn lognormal(&mut self, spread: Spread) -> f64 {
        if spread.sigma == 0.0 {
            return spread.median;
        }
        spread.median * exp(spread.sigma * self.normal())
    }

    /// Returns a normal deviate: its mean is 0, its standard deviation 1.
    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// Returns one of `items`, each with the same probability.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let bound = u32::try_from(items.len()).expect("a short list");
        &items[self.below(bound) as usize]
    }
}

/// Returns e to the power of `x`, by halving and a Taylor series: exact to about 1e-13 for |x| <=
/// 60, and the same bits on every machine.
pub(super) fn exp(x: f64) -> f64 {
    let x = x.clamp(-60.0, 60.0);
    let part = x / 64.0;
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..16 {
        term *= part / f64::from(n);
        sum += term;
    }
    for _ in 0..6 {
        sum *= sum;
    }
    sum
}

/// Returns the natural logarithm of a positive normal number, by a series in (m - 1) / (m + 1) for
/// the mantissa m: relative error about 1e-15, and the same bits on every machine.
pub(super) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0, "the logarithm of {x}");
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i32 - 1_023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1_023 << 52);
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    // The ratio is below 1/3, so a term is below a ninth of the one before it.
    let sum = (0..17).rev().fold(0.0, |sum, n| sum * square + 1.0 / f64::from(2 * n + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * ratio * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_to_the_library() {
        for step in -600_i32..=600 {
            let x = f64::from(step) / 10.0;
            let error = (exp(x) / x.exp() - 1.0).abs();
            assert!(error < 1e-11, "e^{x} is off by {error}");
        }
    }

    #[test]
    fn ln_is_close_to_the_library_and_undoes_exp() {
        assert_eq!(ln(1.0), 0.0);
        for step in 1_i32..=20_000 {
            for x in [f64::from(step), 1.0 / f64::from(step), f64::from(step) * 1e9 / 7.0] {
                let error = (ln(x) - x.ln()).abs();
                assert!(error <= 4e-16 * x.ln().abs().max(1.0), "ln {x} is off by {error}");
                let back = (exp(ln(x)) / x - 1.0).abs();
                assert!(back < 1e-11, "e^(ln {x}) is off by {back}");
            }
        }
    }

    #[test]
    fn lognormal_has_its_median_and_its_mean() {
        let spread = Spread { median: 100.0, sigma: 0.8 };
        let mut draw = Draw::new(1, Purpose::Size, 0, 0);
        let mut values: Vec<f64> = (0..20_000).map(|_| draw.lognormal(spread)).collect();
        values.sort_by(f64::total_cmp);
        let (median, mean) = (values[10_000], values.iter().sum::<f64>() / 20_000.0);
        assert!((97.0..103.0).contains(&median), "median {median}");
        // The mean of a lognormal is median * e^(sigma^2 / 2) = 137.7.
        assert!((133.0..142.0).contains(&mean), "mean {mean}");
    }

    #[test]
    fn draws_stay_below_their_bound() {
        let mut draw = Draw::new(7, Purpose::Links, 1, 2);
        let mut low = 0;
        for _ in 0..10_000 {
            assert!(draw.below(3) < 3);
            assert!(draw.skewed(10, 1) < 10);
            low += u32::from(draw.skewed(10, 3) == 0);
            assert_eq!(draw.below(0) + draw.skewed(0, 2) + draw.skewed(1, 2), 0);
        }
        assert!(low > 2_000, "a skew of 3 favours low numbers, got {low} of 10,000");
    }
}
