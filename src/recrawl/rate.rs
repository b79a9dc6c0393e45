//! How often a page changes, as far as is known: a Gamma distribution over its rate of change.
//!
//! A page changes as a Poisson process does. A visit after a time t says only whether there was a
//! change, whose probability is 1 - exp(-D t) at the rate D. If there was none, Gamma(a, b) becomes
//! Gamma(a, b + t), exactly. If there was one, the product of prior and probability is no Gamma
//! distribution; the one with the same mean and second moment takes its place. With
//! r = b / (b + t) these are
//!
//! ```text
//! mean            a / b (1 - r^(a+1)) / (1 - r^a)
//! second moment   a (a + 1) / b^2 (1 - r^(a+2)) / (1 - r^a)
//! ```
//!
//! Laws: the mean is finite and above 0 whatever is observed, also of a page that changed at every
//! visit. A change makes it larger, the lack of one smaller.
//! Cost: 8 bytes; 200 ns for the observation of a change, ten for that of none.

use crate::ground::codec::{Put, Short, Take};
use crate::ground::real::{exp_m1, ln_1p};
use std::time::Duration;

/// The most that counts as observed, in changes: what is older fades, so that a page whose rate
/// changes is believed after some visits.
const SHAPE_MAX: f64 = 50.0;
/// The least shape: a page that never changed for long is believed when it does.
const SHAPE_MIN: f64 = 0.05;
/// The bounds on the mean, in changes a second: one a second, and one in three thousand years.
const MEAN: (f64, f64) = (1e-11, 1.0);

/// The rate at which a page changes: a Gamma distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The shape: 1 / the square of the relative deviation.
    shape: f32,
    /// What the shape is divided by to get the mean, in seconds.
    seconds: f32,
}

impl Rate {
    /// Creates a rate of which only the mean is known, in changes a second; pages of one site
    /// deviate from their mean about as much as it is.
    pub fn of_mean(mean: f64) -> Self {
        Self::new(1.0, 1.0 / mean.clamp(MEAN.0, MEAN.1))
    }

    fn new(shape: f64, seconds: f64) -> Self {
        let fades = (SHAPE_MAX / shape).min(1.0);
        let (shape, seconds) = (shape * fades, seconds * fades);
        let mean = (shape / seconds).clamp(MEAN.0, MEAN.1);
        let shape = shape.max(SHAPE_MIN);
        Self { shape: shape as f32, seconds: (shape / mean) as f32 }
    }

    /// Returns the expected number of changes a second.
    pub fn mean(self) -> f64 {
        f64::from(self.shape) / f64::from(self.seconds)
    }

    /// Returns the rate after a visit, so long after the one before.
    #[must_use]
    pub fn observe(self, time: Duration, is_changed: bool) -> Self {
        let (a, b, t) = (f64::from(self.shape), f64::from(self.seconds), time.as_secs_f64());
        if !is_changed {
            return Self::new(a, b + t);
        }
        if t <= 0.0 {
            return self;
        }
        let log = ln_1p(t / b);
        // 1 - r^k
        let part = |k: f64| -exp_m1(-k * log);
        let mean = a / b * part(a + 1.0) / part(a);
        let second = a * (a + 1.0) / (b * b) * part(a + 2.0) / part(a);
        let variance = second - mean * mean;
        Self::new(mean * mean / variance, mean / variance)
    }

    /// Returns the rate after so many changes were counted in a time, by their signals.
    #[must_use]
    pub fn count(self, changes: f64, time: Duration) -> Self {
        let (shape, seconds) = (f64::from(self.shape), f64::from(self.seconds));
        Self::new(shape + changes, seconds + time.as_secs_f64())
    }

    /// Appends the rate: 8 bytes.
    pub(super) fn put(self, out: &mut Vec<u8>) {
        out.put_u32(self.shape.to_bits());
        out.put_u32(self.seconds.to_bits());
    }

    /// Reads a rate.
    ///
    /// # Errors
    /// The bytes are too few, or no rate.
    pub(super) fn take(take: &mut Take<'_>) -> Result<Self, Short> {
        let (shape, seconds) = (f32::from_bits(take.u32()?), f32::from_bits(take.u32()?));
        let is_right = (0.04..=51.0).contains(&shape) && seconds > 0.0 && seconds.is_finite();
        if is_right { Ok(Self { shape, seconds }) } else { Err(Short) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    /// Oracle: prior times probability, integrated numerically.
    #[test]
    fn a_change_has_the_moments_of_the_exact_posterior() {
        for (shape, seconds, time) in
            [(1.0, 1e6, 1e5), (0.3, 5e4, 2e6), (7.0, 2e7, 3e6), (20.0, 1e3, 10.0)]
        {
            let rate = Rate { shape: shape as f32, seconds: seconds as f32 };
            let after = rate.observe(Duration::from_secs_f64(time), true);
            // The substitution D = exp(x) makes the integrand smooth near 0.
            let (mut sums, mut x) = ([0.0; 3], -60.0_f64);
            while x < 10.0 {
                let d = x.exp();
                let weight = d.powf(shape) * (-seconds * d).exp() * -(-d * time).exp_m1();
                sums[0] += weight;
                sums[1] += weight * d;
                sums[2] += weight * d * d;
                x += 0.001;
            }
            let (mean, second) = (sums[1] / sums[0], sums[2] / sums[0]);
            let shape = mean * mean / (second - mean * mean);
            assert!((after.mean() / mean - 1.0).abs() < 1e-5, "{after:?}, not {mean}");
            assert!((f64::from(after.shape) / shape - 1.0).abs() < 1e-4, "{after:?}, not {shape}");
        }
    }

    #[test]
    fn estimates_come_near_to_the_rate() {
        // Changes every third visit, by chance of 1 - exp(-0.4).
        let mut rate = Rate::of_mean(1.0 / (30.0 * 86_400.0));
        for visit in 0..300 {
            rate = rate.observe(DAY, visit % 3 == 0);
        }
        let per_day = rate.mean() * 86_400.0;
        assert!((0.3..0.5).contains(&per_day), "{per_day} changes a day, not 0.405");
    }

    /// Law: whatever is observed, the mean is finite and above 0, and goes where it should.
    #[test]
    fn no_observation_is_too_much() {
        let mut rate = Rate::of_mean(1.0 / 86_400.0);
        let mut times = [0.0, 1e-3, 1.0, 3_600.0, 86_400.0, 1e9].into_iter().cycle();
        for step in 0..100_000 {
            let time = Duration::from_secs_f64(times.next().expect("it is a cycle"));
            let is_changed = step / 1_000 % 2 == 0 || step % 7 == 0;
            let after = rate.observe(time, is_changed);
            let mean = after.mean();
            assert!(mean.is_finite() && mean > 0.0, "{rate:?}, {time:?}: {after:?}");
            let slack = 1.0 + 1e-6;
            match is_changed {
                true => assert!(mean * slack >= rate.mean(), "{rate:?}, {time:?}: {after:?}"),
                false => assert!(mean <= rate.mean() * slack, "{rate:?}, {time:?}: {after:?}"),
            }
            let mut bytes = Vec::new();
            after.put(&mut bytes);
            assert_eq!(Rate::take(&mut Take::new(&bytes)), Ok(after));
            rate = after;
        }
    }
}
