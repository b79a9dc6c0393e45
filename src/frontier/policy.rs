//! The four policies: how ready servers are ranked, and the URLs of each. Numbers in, ranks out.
//!
//! | policy | rank of a server | order of its URLs |
//! |---|---|---|
//! | breadth-first | first in, first out | first in, first out |
//! | performance | R = P / T | first in, first out |
//! | quality | best Q(u) in its queue | by Q |
//! | capability | C = (sum of Q over its best P URLs) / T | by Q |
//!
//! P = min(burst, requests the server takes on a connection, queue length): pages of its next
//! visit. T = (0 if parked, else 2 x connection time) + P x response time / p: how long that visit
//! holds a slot. Rests make a server not ready; they are not in its rank.
//!
//! Laws: ranks are fractions of integers, rounded as IEEE 754 says, so that those that differ by
//! more than one part in 2^52 are told apart; ties go by order of arrival; so the same inputs give
//! the same order on every machine. Cost: a division a rank, a comparison of integers to compare.
//! Source: Cao, Jiang, Singh: Scheduling Web Crawl for Better Performance and Quality, Princeton
//! TR-682-03, sections 3 and 4.

use super::rest::{Burst, Visit};
use std::num::NonZeroU64;
use std::time::Duration;

/// Who comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Breadth-first: in order of arrival.
    #[default]
    Bfs,
    /// The server that gives most pages per unit of time.
    Performance,
    /// The server that has the best page.
    Quality,
    /// The server that gives most quality per unit of time.
    Capability,
}

impl Policy {
    /// All there are, in the order in which they are compared.
    pub const ALL: [Self; 4] = [Self::Bfs, Self::Performance, Self::Quality, Self::Capability];

    /// Its name in configuration, tables and curves.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bfs => "bfs",
            Self::Performance => "performance",
            Self::Quality => "quality",
            Self::Capability => "capability",
        }
    }

    /// Whether the URLs of a server come out by quality, not in order of arrival.
    pub(super) fn is_by_quality(self) -> bool {
        matches!(self, Self::Quality | Self::Capability)
    }
}

/// What ranks are made of, beside the servers' own measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who comes first.
    pub policy: Policy,
    /// p: how many times faster a server that keeps connections open is thought to answer, in
    /// thousandths.
    pub speedup_milli: u32,
    /// Weight of the old estimate against a new measurement, in thousandths.
    pub smoothing_milli: u32,
    /// Connection time of a server that has not been measured.
    pub connect_time_new: Duration,
    /// Response time of a server that has not been measured.
    pub response_time_new: Duration,
    /// Requests that a new server is thought to take on a connection.
    pub allowance_new: u32,
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
        }
    }
}

/// Where a ready server stands: the lesser rank goes first.
///
/// A fraction, gain by cost, and the order of arrival for equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// The complement of the fraction's bits: those of numbers that aren't negative are in their
    /// order.
    behind: NonZeroU64,
    arrival: u64,
}

impl Rank {
    /// A visit that gains so much in so many microseconds; one at least.
    pub(super) fn new(gain: u64, cost_us: u64, arrival: u64) -> Self {
        let fraction = gain as f64 / cost_us.max(1) as f64;
        // Only what is not a number has all bits set.
        Self { behind: NonZeroU64::new(!fraction.to_bits()).unwrap_or(NonZeroU64::MIN), arrival }
    }

    /// The lesser fraction and the last one first: wrong in every respect.
    #[cfg(test)]
    pub(super) fn inverted(self) -> Self {
        let behind = NonZeroU64::new(u64::MAX - self.behind.get()).unwrap_or(NonZeroU64::MIN);
        Self { behind, arrival: u64::MAX - self.arrival }
    }
}

/// What is known of how a server answers. Times of 0 have not been measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Estimates {
    connect_us: u32,
    response_us: u32,
    /// Requests it takes on a connection, as far as can be told; 0 is not known.
    allowance: u16,
    /// A connection to it stands between two visits.
    pub(super) is_parked: bool,
}

/// What a queue holds, as far as ranks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// URLs.
    pub(super) len: usize,
    /// Quality of the best as many as a visit takes, in millionths.
    pub(super) best_sum: u64,
}

impl Estimates {
    /// What was measured, 0 if it was not: connection time and response time in microseconds, and
    /// requests on a connection.
    pub(super) fn measured(&self) -> [u32; 3] {
        [self.connect_us, self.response_us, u32::from(self.allowance)]
    }

    /// As [`Estimates::measured`] told it; no connection stands.
    pub(super) fn from_measured([connect_us, response_us, allowance]: [u32; 3]) -> Self {
        Self { connect_us, response_us, allowance: short(allowance), is_parked: false }
    }

    /// Takes in what a visit has shown.
    pub(super) fn observe(&mut self, visit: &Visit, settings: &Settings) {
        if let Some(time) = visit.connect_time {
            smooth(&mut self.connect_us, time, settings.smoothing_milli);
        }
        if visit.replies > 0 {
            let mean = visit.response_time / visit.replies;
            smooth(&mut self.response_us, mean, settings.smoothing_milli);
        }
        self.allowance = short(visit.allowance);
    }

    /// Whether a reply of it was measured.
    pub(super) fn has_answered(&self) -> bool {
        self.response_us > 0
    }

    /// Requests of its next visit, if its queue holds as many.
    pub(super) fn visit_max(&self, burst: Burst, settings: &Settings) -> usize {
        let allowance = self.allowance(settings);
        let requests = match burst {
            Burst::Requests(most) => most.min(allowance),
            Burst::Server => allowance,
        };
        usize::try_from(requests.max(1)).unwrap_or(usize::MAX)
    }

    /// Connection time and response time in microseconds, and requests on a connection: measured,
    /// or thought to be.
    pub(super) fn told(&self, settings: &Settings) -> (u32, u32, u32) {
        let or = |measured_us, new| if measured_us == 0 { narrow(new) } else { measured_us };
        let connect = or(self.connect_us, settings.connect_time_new);
        let response = or(self.response_us, settings.response_time_new);
        (connect, response, self.allowance(settings))
    }

    fn allowance(&self, settings: &Settings) -> u32 {
        if self.allowance == 0 { settings.allowance_new.max(1) } else { u32::from(self.allowance) }
    }

    /// T: how long a visit of so many pages would hold a slot, in microseconds.
    fn hold_us(&self, pages: u64, settings: &Settings) -> u64 {
        let (connect, response, allowance) = self.told(settings);
        let (connect, response) = (u64::from(connect), u64::from(response));
        let speedup = if allowance > 1 { u64::from(settings.speedup_milli.max(1)) } else { 1_000 };
        let opening = if self.is_parked { 0 } else { 2 * connect };
        // Both factors are below 2^32.
        opening + (pages * response).saturating_mul(1_000) / speedup
    }

    /// The rank of a server with these URLs waiting.
    pub(super) fn rank(
        &self,
        waiting: Waiting,
        burst: Burst,
        settings: &Settings,
        arrival: u64,
    ) -> Rank {
        let pages = waiting.len.min(self.visit_max(burst, settings)) as u64;
        match settings.policy {
            Policy::Bfs => Rank::new(0, 1, arrival),
            Policy::Performance => Rank::new(pages, self.hold_us(pages, settings), arrival),
            Policy::Quality => Rank::new(waiting.best_sum, 1, arrival),
            Policy::Capability => {
                Rank::new(waiting.best_sum, self.hold_us(pages, settings), arrival)
            }
        }
    }
}

impl Settings {
    /// How many of the best URLs of a queue make the rank, if a visit takes so many.
    pub(super) fn counted(&self, visit_max: usize) -> usize {
        if self.policy == Policy::Quality { 1 } else { visit_max }
    }
}

/// The first measurement is taken whole; later ones move the estimate.
fn smooth(estimate_us: &mut u32, measured: Duration, smoothing_milli: u32) {
    let measured = narrow(measured);
    let old_share = u64::from(smoothing_milli.min(1_000));
    let old = if *estimate_us == 0 { measured } else { *estimate_us };
    let sum = u64::from(old) * old_share + u64::from(measured) * (1_000 - old_share);
    *estimate_us = u32::try_from((sum + 500) / 1_000).unwrap_or(u32::MAX).max(1);
}

/// More requests than that no visit makes a difference by.
fn short(allowance: u32) -> u16 {
    u16::try_from(allowance).unwrap_or(u16::MAX)
}

/// Microseconds, at least one and at most 71 minutes.
fn narrow(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX).max(1)
}
