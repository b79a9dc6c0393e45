//! Visits: how many requests one may make, and what one has measured of its server.
//!
//! A visit is up to a burst of requests to one server on one connection, followed by a rest.

use crate::ground::time::Instant;
use std::time::Duration;

/// How many requests one visit may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// A visit makes at most this many requests.
    Requests(u32),
    /// A visit makes as many requests as the server allows on a connection.
    Server,
}

/// The rule that the rest of a server follows from. The crawl log names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Nothing is owed, or nothing is known of the last visit because it is long ago.
    #[default]
    None,
    /// `delay`, for each request of the visit.
    Delay,
    /// `delay_factor`, for the duration of the visit.
    DelayFactor,
    /// The Crawl-delay of the server's robots.txt.
    CrawlDelay,
    /// The Retry-After field of a reply.
    RetryAfter,
    /// The wait after a failed or overloaded visit.
    Backoff,
    /// What was left of the rest when the crawl was resumed, or the longest rest that may be owed
    /// after an unclean stop. It counts from the beginning of the run.
    Restart,
    /// The delay that the operator has set for the server.
    Slow,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::Delay,
        Self::DelayFactor,
        Self::CrawlDelay,
        Self::RetryAfter,
        Self::Backoff,
        Self::Restart,
        Self::Slow,
    ];

    /// Returns the name of the rule in the crawl log.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Delay => "delay",
            Self::DelayFactor => "delay-factor",
            Self::CrawlDelay => "crawl-delay",
            Self::RetryAfter => "retry-after",
            Self::Backoff => "backoff",
            Self::Restart => "restart",
            Self::Slow => "slow",
        }
    }
}

/// The measurements of a visit that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// The number of requests made, including robots.txt, retries and redirects. A failed
    /// connection counts as one.
    pub requests: u32,
    /// The instant at which the connection was requested, or at which the first request was sent on
    /// a parked connection (one kept open since the visit before).
    pub began: Instant,
    /// The instant at which the last reply was complete or the connection failed.
    pub ended: Instant,
    /// The instant before which the next visit doesn't begin, even if the rest is over earlier.
    pub not_before: Instant,
    /// The rule that `not_before` follows from.
    pub rule: Rule,
    /// Whether the server asked for `not_before`. If so, it applies to the whole host.
    pub strained: bool,
    /// The time from the request for the connection until it was open, including TLS. It is `None`
    /// if the connection was kept from the visit before or was never opened.
    pub connect_time: Option<Duration>,
    /// The number of replies that were received completely.
    pub replies: u32,
    /// The total time of the complete replies. The time of a reply begins when its request was
    /// sent, or when the reply before it ended.
    pub response_time: Duration,
    /// The estimated number of requests that the server allows on a connection; 0 if it is not
    /// known.
    pub allowance: u32,
}

impl Visit {
    /// Creates a visit of which only the number of requests, the beginning and the end are known.
    pub fn new(requests: u32, began: Instant, ended: Instant) -> Self {
        Self { requests, began, ended, ..Self::default() }
    }
}
