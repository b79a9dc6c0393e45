//! Politeness as arithmetic: how long a visit may be, and the rest that is owed after it.

use super::policy;
#[cfg(test)]
use super::sabotage::{self, Sabotage};
use crate::time::Instant;
use std::time::Duration;

/// Settings of the frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who comes first.
    pub schedule: policy::Settings,
    /// Requests that one visit may make.
    pub burst: Burst,
    /// Rest owed for each request.
    pub delay: Duration,
    /// Rest owed as a multiple of the visit's duration, in thousandths.
    pub delay_factor_milli: u32,
    /// Longest rest that the two rules above may come to.
    pub delay_max: Duration,
    /// Visits at one address at the same time; 0 is no cap.
    pub address_visits_max: u32,
    /// Rest of an address after a visit to any of its servers.
    pub address_delay: Duration,
    /// Visits in one registrable domain at the same time; 0 is no cap.
    pub domain_visits_max: u32,
    /// Rest of a registrable domain after a visit to any of its servers.
    pub domain_delay: Duration,
    /// URLs queued in all.
    pub urls_max: usize,
    /// URLs queued for one server.
    pub urls_per_server_max: usize,
    /// Servers known.
    pub servers_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            schedule: policy::Settings::default(),
            burst: Burst::Requests(1),
            delay: Duration::from_secs(1),
            delay_factor_milli: 10_000,
            delay_max: Duration::from_secs(300),
            address_visits_max: 4,
            address_delay: Duration::ZERO,
            domain_visits_max: 2,
            domain_delay: Duration::ZERO,
            urls_max: 10_000_000,
            urls_per_server_max: 1_000_000,
            servers_max: 1_000_000,
        }
    }
}

/// How many requests one visit may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// At most so many.
    Requests(u32),
    /// As many as the server allows on a connection.
    Server,
}

/// A visit that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Requests made, robots.txt, retries and redirects included. A failed connection counts
    /// as one.
    pub requests: u32,
    /// When the connection was asked for, or the first request sent on a parked one.
    pub began: Instant,
    /// When the last reply was complete, or the connection failed.
    pub ended: Instant,
    /// The next visit is not before this, whatever rest is owed.
    pub not_before: Instant,
    /// That is what the server asked for, and holds for its whole host.
    pub strained: bool,
    /// From asking for the connection to its standing, TLS included; `None` if it was kept from
    /// the visit before, or never stood.
    pub connect_time: Option<Duration>,
    /// Whole replies.
    pub replies: u32,
    /// Time they took, each from its request, or from the end of the reply before it.
    pub response_time: Duration,
    /// Requests that the server is now thought to take on a connection; 0 is not known.
    pub allowance: u32,
}

impl Visit {
    /// A visit of so many requests of which nothing else is known.
    pub fn new(requests: u32, began: Instant, ended: Instant) -> Self {
        Self {
            requests,
            began,
            ended,
            not_before: Instant::ZERO,
            strained: false,
            connect_time: None,
            replies: 0,
            response_time: Duration::ZERO,
            allowance: 0,
        }
    }
}

impl Settings {
    /// The rest owed after `visit`: `max(requests x delay, delay_factor x duration)`, at most
    /// `delay_max`, but never less than the server's own Crawl-delay for each request.
    pub fn rest(&self, visit: &Visit, crawl_delay: Option<Duration>) -> Duration {
        #[cfg(test)]
        if sabotage::is(Sabotage::DelayIgnored) {
            return Duration::ZERO;
        }
        let requests = visit.requests.max(1);
        let by_count = self.delay.saturating_mul(requests);
        let duration = visit.ended.since(visit.began);
        let by_duration = duration.saturating_mul(self.delay_factor_milli) / 1_000;
        let own = by_count.max(by_duration).min(self.delay_max);
        #[cfg(test)]
        let crawl_delay = crawl_delay.filter(|_| !sabotage::is(Sabotage::CrawlDelayIgnored));
        own.max(crawl_delay.unwrap_or_default().saturating_mul(requests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_the_larger_claim_within_its_cap() {
        let settings = Settings::default();
        let ms = Duration::from_millis;
        let cases = [
            (1, ms(20), None, ms(1_000), "one request: the delay"),
            (5, ms(20), None, ms(5_000), "five requests: five delays"),
            (1, ms(400), None, ms(4_000), "a slow visit: ten times its duration"),
            (1, ms(90_000), None, ms(300_000), "never past delay_max"),
            (1, ms(20), Some(ms(10_000)), ms(10_000), "the server's Crawl-delay"),
            (1, ms(20), Some(ms(400_000)), ms(400_000), "even past delay_max"),
            (1, ms(20), Some(ms(100)), ms(1_000), "but never below our own delay"),
            (0, ms(0), None, ms(1_000), "a failed connection counts as a visit"),
        ];
        for (requests, duration, crawl_delay, expected, why) in cases {
            let began = Instant::from_micros(7);
            let visit = Visit::new(requests, began, began + duration);
            assert_eq!(settings.rest(&visit, crawl_delay), expected, "{why}");
        }
    }
}
