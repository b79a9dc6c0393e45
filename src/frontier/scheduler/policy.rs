//! The policies: how ready servers are ranked, and in which order the URLs of each are taken.
//!
//! | policy | rank of a server | order of its URLs |
//! |---|---|---|
//! | breadth-first | first in, first out | first in, first out |
//! | performance | R = P / T | first in, first out |
//! | quality | best Q(u) in its queue | by Q |
//! | capability | C = (sum of Q over its best P URLs) / T | by Q |
//! | random | by lot, drawn for each visit | first in, first out |
//! | largest-site-first | URLs waiting | first in, first out |
//! | yield | C' = (sum of Q over its best P' URLs) / (T' + price) | by Q |
//!
//! `random` and `largest-site-first` are what others are measured against: a policy that is no
//! better than `random` has chosen nothing.
//!
//! P = min(burst, requests the server allows on a connection, queue length) is the number of pages
//! of the server's next visit. T = (0 if parked, else 2 x connection time) + P x response time / p
//! is how long that visit occupies a connection slot. Q(u) is the quality of URL u. A connection is
//! parked if it is kept open between two visits. p is the speedup of a connection that is kept
//! open. A server that rests is not ready, so rests are not part of its rank.
//!
//! Under `yield` a visit ends early if its next page gives less per unit of time than the best
//! waiting server: see `Estimates::offers_less`. So a rank counts only the pages that a visit
//! surely takes first: P' = min(P, 6), and T' is the T of these. A page and a new connection also
//! cost what the [`Price`] says, since on a full core all slots wait for them.
//!
//! Laws: a rank is a fraction of integers, rounded as IEEE 754 defines it. Two fractions that
//! differ by more than one part in 2^52 still differ when rounded. Servers of equal fraction go in
//! the order of arrival, which is when they became ready or went to sleep. So the same inputs give
//! the same order on every machine.
//! Cost: one division to compute a rank; one comparison of integers to compare two.
//!
//! Source: Cao, Jiang, Singh: Scheduling Web Crawl for Better Performance and Quality, Princeton
//! TR-682-03, sections 3 and 4. Largest-site-first: Baeza-Yates, Castillo, Marin, Rodriguez:
//! Crawling a country, WWW 2005.

use super::ServerId;
use super::price::Price;
use super::visit::{Burst, Visit};
use crate::ground::random::mix;
use std::num::NonZeroU64;
use std::time::Duration;

/// The rule that decides which ready server is visited first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Breadth-first: servers go in the order of arrival.
    #[default]
    Bfs,
    /// The server that gives the most pages per unit of time goes first.
    Performance,
    /// The server that has the page of the highest quality goes first.
    Quality,
    /// The server that gives the most quality per unit of time goes first.
    Capability,
    /// A server drawn by lot goes first.
    Random,
    /// The server with the most URLs waiting goes first.
    LargestSiteFirst,
    /// The server that gives the most quality per unit of time goes first, where time on a full
    /// core has a price; a visit ends early if another server offers more.
    Yield,
}

impl Policy {
    /// All policies, in the order in which tables and charts compare them.
    pub const ALL: [Self; 7] = [
        Self::Bfs,
        Self::Performance,
        Self::Quality,
        Self::Capability,
        Self::Yield,
        Self::Random,
        Self::LargestSiteFirst,
    ];

    /// The four policies of the paper.
    pub const PAPER: [Self; 4] = [Self::Bfs, Self::Performance, Self::Quality, Self::Capability];

    /// Returns the name of the policy in the configuration, in tables and on charts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bfs => "bfs",
            Self::Performance => "performance",
            Self::Quality => "quality",
            Self::Capability => "capability",
            Self::Random => "random",
            Self::LargestSiteFirst => "largest-site-first",
            Self::Yield => "yield",
        }
    }

    /// Returns whether visits end early, and time of the core has a price.
    pub fn ends_early(self) -> bool {
        self == Self::Yield
    }

    /// Returns whether the URLs of a server are taken in the order of quality, not of arrival.
    pub fn is_by_quality(self) -> bool {
        matches!(self, Self::Quality | Self::Capability | Self::Yield)
    }
}

/// The policy and the constants of its formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The rule that decides which ready server is visited first.
    pub policy: Policy,
    /// The p of the formulas, in thousandths: how many times faster a server is assumed to answer
    /// on a connection that is kept open.
    pub speedup_milli: u32,
    /// The weight of the old estimate when a new measurement arrives, in thousandths. The
    /// measurement has the rest of the weight.
    pub smoothing_milli: u32,
    /// The connection time assumed for a server that has not been measured.
    pub connect_time_new: Duration,
    /// The response time assumed for a server that has not been measured.
    pub response_time_new: Duration,
    /// The number of requests that a new server is assumed to allow on a connection.
    pub allowance_new: u32,
    /// The share of visits that go to the oldest server of a list of ready servers, whatever its
    /// rank, in thousandths; 0 is none. See `lists.rs`.
    pub random_share_milli: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::Bfs,
            speedup_milli: 1_200,
            smoothing_milli: 800,
            connect_time_new: Duration::from_millis(100),
            response_time_new: Duration::from_millis(500),
            allowance_new: 50,
            random_share_milli: 0,
        }
    }
}

/// All that the scheduler knows of a server's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The number of URLs in the queue, in memory and on disk.
    pub urls: u32,
    /// Whether the next URL of the queue is in memory.
    pub at_hand: bool,
    /// The sum of the qualities of the queue's best URLs, in millionths.
    /// [`counted`](super::Scheduler::counted) returns how many URLs are part of it.
    pub best_sum: u64,
}

/// The place of a ready server in the ready queue. The server with the lesser rank goes first.
///
/// A rank has two parts, compared one after the other. The first is the fraction gain / cost of a
/// visit, inverted so that the greatest fraction is the least number; its first bit is clear if the
/// server is called. The second is the server's number in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub(super) fraction: NonZeroU64,
    pub(super) arrival: u64,
}

/// The first bit of a fraction, which is set unless the server is called.
const NOT_CALLED: u64 = 1 << 63;

/// Returns the first part of a [`Rank`], for a visit that gains `gain` in `cost_us` microseconds.
/// The greater the quotient, the lesser the result. Its first bit is set: the quotient is positive.
pub(super) fn fraction(gain: u64, cost_us: u64) -> NonZeroU64 {
    let fraction = gain as f64 / cost_us.max(1) as f64;
    // The bits of two numbers that aren't negative compare as the numbers do. No number has all
    // bits set, so the inverted bits are never 0.
    NonZeroU64::new(!fraction.to_bits()).unwrap_or(NonZeroU64::MIN)
}

/// The number of pages of a visit that a rank counts under `yield` (DECISIONS.md 114).
const SURE_PAGES: u32 = 6;

/// The share of the best waiting server's quotient down to which a visit goes on, so that a visit
/// isn't given up for a gain that a new connection uses up.
const STAY: f64 = 0.8;

/// Returns the quotient gain / cost that a fraction was computed from, whether or not its server is
/// called.
pub(super) fn quotient(fraction: NonZeroU64) -> f64 {
    f64::from_bits(!(fraction.get() | NOT_CALLED))
}

/// The number of URLs that a typical server has waiting.
const TYPICAL_URLS: u32 = 64;
/// The quality of a typical URL, in millionths: the mean.
const TYPICAL_QUALITY: u64 = 1_000_000;

/// Returns the quotient of a typical server: one that has not been measured, with
/// [`TYPICAL_URLS`] URLs of mean quality and visits of this burst. Returns `None` if quotients have
/// no magnitude under the policy.
pub(super) fn typical(burst: Burst, settings: &Settings) -> Option<f64> {
    if matches!(settings.policy, Policy::Bfs | Policy::Random) {
        return None;
    }
    let server = Estimates::default();
    let pages = server.counted(burst, settings).min(TYPICAL_URLS);
    let best_sum = u64::from(pages) * TYPICAL_QUALITY;
    let waiting = Waiting { urls: TYPICAL_URLS, at_hand: true, best_sum };
    let rank = server.rank(waiting, burst, settings, Price::default(), (ServerId(0), 0));
    rank.map(quotient)
}

/// Returns the fraction that a server with this fraction has if it is called.
pub(super) fn called(fraction: NonZeroU64) -> NonZeroU64 {
    NonZeroU64::new(fraction.get() & !NOT_CALLED).unwrap_or(NonZeroU64::MIN)
}

/// Returns the lot of a server's next visit: the same whenever it is computed, so that a server
/// keeps its place while it waits.
pub(in crate::frontier) fn lot((server, visits): (ServerId, u32)) -> NonZeroU64 {
    let drawn = mix(mix(u64::from(server.0)) ^ u64::from(visits));
    NonZeroU64::new(drawn >> 1 | NOT_CALLED).expect("its first bit is set")
}

/// Estimates of how a server answers. Times are in microseconds; a time of 0 means that it has not
/// been measured.
///
/// The struct is packed, so that a server's record has no padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed)]
pub(super) struct Estimates {
    pub(super) connect_us: u32,
    pub(super) response_us: u32,
    /// The number of requests that the server allows on a connection; 0 if it is not known.
    pub(super) allowance: u16,
    /// Whether a connection to the server is kept open between two visits.
    pub(super) is_parked: bool,
}

impl Estimates {
    /// Updates the estimates with the measurements of a visit.
    pub(super) fn observe(&mut self, visit: &Visit, settings: &Settings) {
        if let Some(time) = visit.connect_time {
            self.connect_us = smooth(self.connect_us, time, settings.smoothing_milli);
        }
        if visit.replies > 0 {
            let mean = visit.response_time / visit.replies;
            self.response_us = smooth(self.response_us, mean, settings.smoothing_milli);
        }
        // An allowance above `u16::MAX` makes no difference to a visit.
        self.allowance = u16::try_from(visit.allowance).unwrap_or(u16::MAX);
    }

    /// Returns how many requests the next visit makes if the queue holds enough URLs.
    pub(super) fn visit_max(&self, burst: Burst, settings: &Settings) -> u32 {
        let allowance = self.allowance_or_assumed(settings);
        match burst {
            Burst::Requests(most) => most.clamp(1, allowance),
            Burst::Server => allowance,
        }
    }

    /// Returns three values: the connection time and the response time in microseconds, and the
    /// number of requests on a connection. For a value that was not measured it returns the one
    /// that the settings assume.
    pub(super) fn or_assumed(&self, settings: &Settings) -> (u32, u32, u32) {
        let or = |measured_us, new| if measured_us == 0 { narrow(new) } else { measured_us };
        let connect = or(self.connect_us, settings.connect_time_new);
        let response = or(self.response_us, settings.response_time_new);
        (connect, response, self.allowance_or_assumed(settings))
    }

    fn allowance_or_assumed(&self, settings: &Settings) -> u32 {
        if self.allowance == 0 { settings.allowance_new.max(1) } else { self.allowance.into() }
    }

    /// Returns how many of the best URLs in a queue a rank is computed from.
    pub(super) fn counted(&self, burst: Burst, settings: &Settings) -> u32 {
        match settings.policy {
            Policy::Quality => 1,
            Policy::Yield => self.visit_max(burst, settings).min(SURE_PAGES),
            _ => self.visit_max(burst, settings),
        }
    }

    /// Returns the fraction of the rank that the server has if its queue is in the state `waiting`;
    /// `None` if the next URL is not in memory. `visit` is the server's number and how many visits
    /// it has had: what a lot is drawn for.
    pub(super) fn rank(
        &self,
        waiting: Waiting,
        burst: Burst,
        settings: &Settings,
        price: Price,
        visit: (ServerId, u32),
    ) -> Option<NonZeroU64> {
        if waiting.urls == 0 || !waiting.at_hand {
            return None;
        }
        let pages = || u64::from(waiting.urls.min(self.counted(burst, settings)));
        Some(match settings.policy {
            Policy::Bfs => fraction(0, 1),
            Policy::Performance => fraction(pages(), self.slot_us(pages(), settings)),
            Policy::Quality => fraction(waiting.best_sum, 1),
            Policy::Capability => fraction(waiting.best_sum, self.slot_us(pages(), settings)),
            Policy::Random => lot(visit),
            Policy::LargestSiteFirst => fraction(waiting.urls.into(), 1),
            Policy::Yield => fraction(waiting.best_sum, self.priced_us(pages(), settings, price)),
        })
    }

    /// Returns the cost of a visit of `pages` pages under the policy `yield`, in microseconds: the
    /// slot's time and the price of the core's.
    fn priced_us(&self, pages: u64, settings: &Settings, price: Price) -> u64 {
        let opening = if self.is_parked { 0 } else { u64::from(price.connection_us) };
        let core = opening + pages * u64::from(price.page_us);
        self.slot_us(pages, settings).saturating_add(core)
    }

    /// Returns whether the next page of a visit gives so much less per unit of time than the best
    /// waiting server that the visit should end. The page is described by its quality in millionths
    /// and by the pace of this visit, the mean time of its replies; before the first one the
    /// estimate counts. `best` is the fraction of that server's rank.
    pub(super) fn offers_less(
        &self,
        (quality, pace): (u64, Option<Duration>),
        best: NonZeroU64,
        settings: &Settings,
        price: Price,
    ) -> bool {
        let response_us = pace.map_or(self.response_us, narrow);
        let next = Self { is_parked: true, response_us, ..*self };
        let own = fraction(quality, next.priced_us(1, settings, price));
        quotient(own) < STAY * quotient(best)
    }

    /// Returns the T of the formulas: how long a visit of `pages` pages occupies a connection slot,
    /// in microseconds.
    pub(super) fn slot_us(&self, pages: u64, settings: &Settings) -> u64 {
        let (connect, response, allowance) = self.or_assumed(settings);
        let (connect, response) = (u64::from(connect), u64::from(response));
        let speedup = if allowance > 1 { u64::from(settings.speedup_milli.max(1)) } else { 1_000 };
        let opening = if self.is_parked { 0 } else { 2 * connect };
        // Both factors are below 2^32, so their product does not overflow.
        opening + (pages * response).saturating_mul(1_000) / speedup
    }
}

/// Returns the new estimate after a measurement. The first measurement becomes the estimate, and
/// later ones change it by their weight.
fn smooth(estimate_us: u32, measured: Duration, smoothing_milli: u32) -> u32 {
    let measured = narrow(measured);
    let old_share = u64::from(smoothing_milli.min(1_000));
    let old = if estimate_us == 0 { measured } else { estimate_us };
    let sum = u64::from(old) * old_share + u64::from(measured) * (1_000 - old_share);
    u32::try_from((sum + 500) / 1_000).unwrap_or(u32::MAX).max(1)
}

/// Returns a time in microseconds, at least 1 and at most `u32::MAX` (71 minutes).
fn narrow(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: fractions compare as those of integers do, whatever their size.
    #[test]
    fn fractions_compare_as_cross_products_do() {
        let numbers = [0, 1, 2, 3, 999, 1_000, 1 << 31, (1 << 50) + 1, 1 << 50];
        for (gain, cost) in numbers.into_iter().flat_map(|gain| numbers.map(|cost| (gain, cost))) {
            for (other, others) in numbers.into_iter().flat_map(|gain| numbers.map(|c| (gain, c))) {
                let own = u128::from(gain) * u128::from(others.max(1));
                let their = u128::from(other) * u128::from(cost.max(1));
                let ranks = (fraction(gain, cost), fraction(other, others));
                // The greater fraction has the lesser rank.
                assert_eq!(
                    ranks.1.cmp(&ranks.0),
                    own.cmp(&their),
                    "{gain}/{cost} {other}/{others}"
                );
            }
        }
    }

    /// Design D5, worked out by hand.
    #[test]
    fn ranks_follow_the_formulas() {
        let ms = |ms: u64| Duration::from_millis(ms);
        let visit = Visit {
            connect_time: Some(ms(50)),
            replies: 2,
            response_time: ms(240),
            allowance: 10,
            ..Visit::new(2, crate::ground::time::Instant::ZERO, crate::ground::time::Instant::ZERO)
        };
        let waiting = Waiting { urls: 4, at_hand: true, best_sum: 3_000_000 };
        let price = Price { page_us: 3_000, connection_us: 7_000 };
        for (policy, is_parked, gain, cost) in [
            (Policy::Bfs, false, 0, 1),
            (Policy::Performance, false, 4, 2 * 50_000 + 4 * 120_000 * 10 / 12),
            (Policy::Performance, true, 4, 4 * 120_000 * 10 / 12),
            (Policy::Quality, false, 3_000_000, 1),
            (Policy::Capability, false, 3_000_000, 2 * 50_000 + 4 * 120_000 * 10 / 12),
            (Policy::Capability, true, 3_000_000, 4 * 120_000 * 10 / 12),
            (Policy::LargestSiteFirst, false, 4, 1),
            (Policy::Yield, false, 3_000_000, 2 * 50_000 + 7_000 + 4 * (120_000 * 10 / 12 + 3_000)),
            (Policy::Yield, true, 3_000_000, 4 * (120_000 * 10 / 12 + 3_000)),
        ] {
            let settings = Settings { policy, ..Settings::default() };
            let mut estimates = Estimates { is_parked, ..Estimates::default() };
            estimates.observe(&visit, &settings);
            let rank = |waiting| {
                estimates.rank(waiting, Burst::Server, &settings, price, (ServerId(3), 2))
            };
            let own = rank(waiting);
            assert_eq!(own, Some(fraction(gain, cost)), "{policy:?}, parked: {is_parked}");
            for nothing in [Waiting { urls: 0, ..waiting }, Waiting { at_hand: false, ..waiting }] {
                assert_eq!(rank(nothing), None);
            }
        }
    }

    /// Law: each visit has a lot of its own, and every server is as likely to go first.
    #[test]
    fn lots_are_even() {
        let mut firsts = [0_u32; 8];
        for visits in 0..8_000 {
            let of = |server: &usize| lot((ServerId::from_index(*server), visits));
            firsts[(0..8).min_by_key(of).expect("eight")] += 1;
        }
        assert!(firsts.iter().all(|count| (900..1_100).contains(count)), "{firsts:?}");
    }

    /// Law: the first measurement counts whole, later ones by a fifth.
    #[test]
    fn estimates_are_smoothed() {
        let mut estimate = 0;
        for (measured_us, expected) in [(1_000, 1_000), (2_000, 1_200), (0, 960)] {
            estimate = smooth(estimate, Duration::from_micros(measured_us), 800);
            assert_eq!(estimate, expected);
        }
        assert_eq!(
            smooth(estimate, Duration::MAX, 0),
            u32::MAX,
            "a time that is too long saturates"
        );
    }
}
