//! What a visit may do, and what it has shown of a server.

use crate::ground::time::Instant;
use std::time::Duration;

/// How many requests one visit may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// At most this many.
    Requests(u32),
    /// As many as the server allows on a connection.
    Server,
}

/// A visit that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// Requests made, robots.txt, retries and redirects included. A failed connection counts
    /// as one.
    pub requests: u32,
    /// When the connection was asked for, or the first request sent on a parked one.
    pub began: Instant,
    /// When the last reply was complete, or the connection failed.
    pub ended: Instant,
    /// The next visit doesn't begin before this, even if the rest is over.
    pub not_before: Instant,
    /// Whether the server asked for `not_before`, so that it applies to its whole host.
    pub strained: bool,
    /// From asking for the connection until it is open, TLS included; `None` if it was kept from
    /// the visit before, or was never opened.
    pub connect_time: Option<Duration>,
    /// Complete replies.
    pub replies: u32,
    /// Their total time, each from its request, or from the end of the reply before it.
    pub response_time: Duration,
    /// Estimate of the requests that the server allows on a connection; 0 is not known.
    pub allowance: u32,
}

impl Visit {
    /// A visit of which only the number of requests is known.
    pub fn new(requests: u32, began: Instant, ended: Instant) -> Self {
        Self { requests, began, ended, ..Self::default() }
    }
}
