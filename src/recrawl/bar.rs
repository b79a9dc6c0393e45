//! Which visits to known pages are made: those that are worth at least as much as the *bar*, which
//! follows the share of requests that coming back may have.
//!
//! Each request for something new, and each moment in which nothing else is to be done, grants
//! visits to known pages. A page is filed for the time at which its visit will be worth most of the
//! bar, and comes up then. If it is worth the bar as it is now, and a visit is granted, it is
//! visited; else it is filed again. If more pages come up than visits are granted, the bar rises;
//! if visits are granted and no page has come up, the next in line is visited early, and the bar
//! falls.
//!
//! Laws: no more visits are made than were granted. While pages are known, granted visits are made.
//! Cost: no call looks at more than one page.

use crate::ground::real::exp;
use std::ops::RangeInclusive;

/// The share of the bar at which a page is filed: it comes up early, so that it isn't late when the
/// bar has fallen.
const FILED_AT: f64 = 0.7;
/// How much the bar follows, as a power of e, if all granted visits of as many as a tenth of the
/// known pages say the same.
const GAIN: f64 = 10.0;
/// The least number of known pages for [`GAIN`]: a crawl that begins finds its bar slowly.
const PAGES_MIN: f64 = 100.0;
/// The most visits that wait to be made: more are not saved up.
const SAVED_MAX: f64 = 16.0;
/// The range of the bar.
const WORTH: RangeInclusive<f64> = 1e-12..=1e18;

/// The bar, and the visits that were granted and not made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    worth: f64,
    granted: f64,
}

impl Bar {
    /// Creates the bar of a crawl that begins. It finds its place by itself.
    pub fn new(worth: f64) -> Self {
        Self { worth: worth.clamp(*WORTH.start(), *WORTH.end()), granted: 0.0 }
    }

    /// Returns what a checkpoint keeps: the bar, and the visits that were granted and not made.
    pub fn parts(&self) -> (f64, f64) {
        (self.worth, self.granted)
    }

    /// Returns the bar that has these parts; `None` if none has.
    pub fn of_parts(worth: f64, granted: f64) -> Option<Self> {
        let is_right = WORTH.contains(&worth) && (0.0..=1e9).contains(&granted);
        is_right.then_some(Self { worth, granted })
    }

    /// Returns what a visit has to be worth.
    pub fn worth(&self) -> f64 {
        self.worth
    }

    /// Returns what a visit will be worth when its page comes up.
    pub fn filed_at(&self) -> f64 {
        FILED_AT * self.worth
    }

    /// Grants a number of visits, not necessarily a whole one. `is_late` says that a page has come
    /// up that no granted visit was left for; `known` is the number of known pages.
    pub fn grant(&mut self, visits: f64, is_late: bool, known: usize) {
        if is_late {
            self.follow(visits, known);
        }
        self.granted = (self.granted + visits).min(SAVED_MAX.max(visits));
    }

    /// Returns whether a visit is granted.
    pub fn may_visit(&self) -> bool {
        self.granted >= 1.0
    }

    /// Notes that a granted visit is made. `is_early` says that its page hadn't come up.
    pub fn visit(&mut self, is_early: bool, known: usize) {
        self.granted -= 1.0;
        if is_early {
            self.follow(-1.0, known);
        }
    }

    fn follow(&mut self, visits: f64, known: usize) {
        let known = (known as f64).max(PAGES_MIN);
        self.worth *= exp((GAIN * visits / known).clamp(-1.0, 1.0));
        self.worth = self.worth.clamp(*WORTH.start(), *WORTH.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    /// Law: no more visits are made than were granted, whatever else is said.
    #[test]
    fn visits_are_granted_before_they_are_made() {
        let (mut random, mut bar) = (Random(3), Bar::new(1.0));
        let (mut granted, mut made) = (0.0, 0.0);
        for _ in 0..100_000 {
            let visits = random.below(300_u64) as f64 / 100.0;
            bar.grant(visits, random.one_in(2), random.below(1_000_usize));
            granted += visits;
            while bar.may_visit() && random.below(8_u64) > 0 {
                bar.visit(random.one_in(3), random.below(1_000_usize));
                made += 1.0;
            }
            assert!(made <= granted + 1e-6, "{made} of {granted}");
            assert!(bar.worth().is_finite() && bar.filed_at() < bar.worth(), "{bar:?}");
        }
        assert!(made > 0.5 * granted, "{made} of {granted}");
    }

    #[test]
    fn the_bar_follows_what_is_late_and_what_is_early() {
        let mut bar = Bar::new(1.0);
        bar.grant(10.0, true, 1_000);
        let risen = bar.worth();
        assert!((risen - exp(0.1)).abs() < 1e-12, "a tenth for a hundredth of the pages");
        bar.grant(10.0, false, 1_000);
        bar.visit(false, 1_000);
        assert!((bar.worth() - risen).abs() < 1e-12, "all is as it should be");
        (0..10).for_each(|_| bar.visit(true, 1_000));
        assert!((bar.worth() - 1.0).abs() < 1e-12, "{bar:?}");
    }
}
