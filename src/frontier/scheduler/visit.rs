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
