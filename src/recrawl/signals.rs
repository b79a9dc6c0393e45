//! What signals of change are worth: a sitemap's `lastmod`, an entry of a feed.
//!
//! A page whose site says that it has changed counts as older than it is: with l the share of
//! changes that the site signals, n the signals a second of a page that are none of a change, and D
//! the rate of change, each signal since the last visit adds
//!
//! ```text
//! ln(1 + l D / n) / D
//! ```
//!
//! to its age: the time in which a change would become as probable as it is by the signal. (WWW
//! 2025, GREEDY-NCIS, has in addition the factor 1 / (1 - l), which makes signals of a site that
//! announces most changes count for more; it gave less, see `bench/runs/2026-11-28-recrawl`.)
//! Both numbers are learnt for each site: visits show whether what was signalled is so. A site that
//! lies loses its weight.
//!
//! Law: a signal never makes a page younger.
//! Cost: 16 bytes a site.

use super::rate::Rate;
use crate::ground::codec::{Put, Short, Take};
use crate::ground::real::{exp_m1, ln_1p};
use std::time::Duration;

/// The share of changes that a site signals is believed to be at most this.
const SHARE_MAX: f64 = 0.95;
/// The number of observed changes from which on older ones fade.
const MEMORY: f32 = 1_000.0;
/// The share of signals that must be those of changes for them to say how often a page changes, and
/// for a list of them to be worth visits of its own.
const PRECISION_MIN: f64 = 0.25;
/// The least number of false signals that is believed in.
const FALSE_MIN: f32 = 0.01;
/// The least number of changes that counts as signalled, and as silent.
const SIGNALLED_MIN: f32 = 1.0;
/// A month, in which one signal of a page is believed to be false until more is known.
const MONTH: f32 = 30.0 * 86_400.0;

/// How far the signals of a site are to be believed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trust {
    /// Changes that were signalled, and the others, as far as visits have found them.
    signalled: f32,
    silent: f32,
    /// Signals of no change, and the seconds in which they came, of all pages together.
    false_signals: f32,
    seconds: f32,
}

/// What a visit has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The time since the one before.
    pub time: Duration,
    /// The signals in it.
    pub signals: u8,
    /// Whether the page has changed.
    pub is_changed: bool,
}

impl Default for Trust {
    fn default() -> Self {
        Self { signalled: 1.0, silent: 1.0, false_signals: 1.0, seconds: MONTH }
    }
}

impl Trust {
    fn share(&self) -> f64 {
        f64::from(self.signalled / (self.signalled + self.silent)).min(SHARE_MAX)
    }

    /// False signals of a page a second.
    fn false_rate(&self) -> f64 {
        f64::from(self.false_signals / self.seconds)
    }

    /// Returns how many seconds a signal adds to the age of a page with this rate of change.
    pub fn adds(&self, rate: f64) -> f64 {
        ln_1p(self.share() * rate / self.false_rate()) / rate
    }

    /// Returns whether enough signals are of changes for them to say much.
    pub fn is_believed(&self) -> bool {
        self.precision() >= PRECISION_MIN
    }

    /// Returns the share of signals that are of changes.
    pub fn precision(&self) -> f64 {
        f64::from(self.signalled / (self.signalled + self.false_signals))
    }

    /// Appends the numbers: 16 bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        let Self { signalled, silent, false_signals, seconds } = *self;
        [signalled, silent, false_signals, seconds]
            .iter()
            .for_each(|value| out.put_u32(value.to_bits()));
    }

    /// Reads the numbers.
    ///
    /// # Errors
    /// The bytes are too few, or no such numbers.
    pub fn take(take: &mut Take<'_>) -> Result<Self, Short> {
        let mut number = || take.u32().map(f32::from_bits);
        let (signalled, silent) = (number()?, number()?);
        let (false_signals, seconds) = (number()?, number()?);
        let all = [signalled, silent, false_signals, seconds];
        let is_right = all.iter().all(|value| *value > 0.0 && value.is_finite());
        is_right.then_some(Self { signalled, silent, false_signals, seconds }).ok_or(Short)
    }

    /// Notes what a visit to a page of the site has found. Returns the page's rate after it.
    ///
    /// A visit that a signal brought about comes soon after the change, so that its time says
    /// little: signals are counted instead, as a process of rate l D.
    #[must_use]
    pub fn observe(&mut self, rate: Rate, visit: Visit) -> Rate {
        let Visit { time, signals, is_changed } = visit;
        let (share, false_rate, seconds) = (self.share(), self.false_rate(), time.as_secs_f64());
        let after = match (is_changed, signals) {
            (false, _) => rate.observe(time, false),
            (true, 0) => {
                // The change was silent, and there was none that was signalled.
                rate.observe(time.mul_f64(1.0 - share), true).observe(time.mul_f64(share), false)
            }
            (true, _) if !self.is_believed() => rate.observe(time, true),
            (true, _) => {
                let of_changes = share * rate.mean();
                let is_true = of_changes / (of_changes + false_rate);
                rate.count(1.0 + f64::from(signals - 1) * is_true, time.mul_f64(share))
            }
        };
        let mut is_signalled = 0.0;
        if is_changed && signals > 0 {
            // The change may have been silent, and the signal false.
            let by_chance = -exp_m1(-false_rate * seconds);
            is_signalled = share / (share + (1.0 - share) * by_chance);
        }
        if is_changed {
            self.signalled += is_signalled as f32;
            self.silent += (1.0 - is_signalled) as f32;
        }
        self.false_signals += (f64::from(signals) - is_signalled) as f32;
        self.seconds += seconds as f32;
        if self.signalled + self.silent > MEMORY {
            // However long a site was silent, or honest: it may be another tomorrow.
            self.signalled = (self.signalled / 2.0).max(SIGNALLED_MIN);
            self.silent = (self.silent / 2.0).max(SIGNALLED_MIN);
            self.false_signals = (self.false_signals / 2.0).max(FALSE_MIN);
            self.seconds /= 2.0;
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn visits(of: &mut Trust, signals: u8, is_changed: bool, count: u32) {
        let visit = Visit { time: Duration::from_secs(5 * DAY), signals, is_changed };
        for _ in 0..count {
            let _ = of.observe(Rate::of_mean(1e-6), visit);
        }
    }

    #[test]
    fn a_site_that_lies_loses_its_weight() {
        let (mut honest, mut liar) = (Trust::default(), Trust::default());
        for _ in 0..100 {
            visits(&mut honest, 1, true, 1);
            visits(&mut honest, 0, false, 3);
            visits(&mut liar, 3, false, 4);
            visits(&mut liar, 3, true, 1);
        }
        let rate = 1.0 / (25.0 * DAY as f64);
        let days = |trust: &Trust| trust.adds(rate) / DAY as f64;
        assert!(days(&honest) > 60.0 && days(&liar) < 2.0, "{honest:?} {liar:?}");
    }

    /// Law: what was silent for ever is read back as it was written, and believed again when its
    /// signals are true.
    #[test]
    fn a_silent_site_may_become_honest() {
        let mut trust = Trust::default();
        visits(&mut trust, 0, true, 200_000);
        let mut bytes = Vec::new();
        trust.put(&mut bytes);
        assert_eq!(Trust::take(&mut Take::new(&bytes)), Ok(trust));
        visits(&mut trust, 1, true, 1_000);
        assert!(trust.is_believed() && trust.share() > 0.4, "{trust:?}");
    }

    /// Law: whatever is observed, a signal makes a page older, by a finite time.
    #[test]
    fn a_signal_always_adds() {
        let mut random = crate::ground::random::Random(4);
        let (mut trust, mut rate) = (Trust::default(), Rate::of_mean(1e-6));
        for _ in 0..50_000 {
            let time = Duration::from_secs(random.below(1_u64 << random.clone().below(30_u64)));
            let signals = random.below(5_u64) as u8 * random.below(60_u64) as u8;
            let visit = Visit { time, signals, is_changed: random.one_in(2) };
            rate = trust.observe(rate, visit);
            let adds = trust.adds(rate.mean());
            assert!(adds > 0.0 && adds.is_finite(), "{trust:?} {rate:?}");
        }
    }
}
