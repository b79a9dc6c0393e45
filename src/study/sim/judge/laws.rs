//! What a crawl has promised to the judge, and the rests that follow from it.

use super::Line;
use crate::ground::time::Instant;
use std::time::Duration;

/// What a crawl has promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laws {
    /// Connections open at once.
    pub connections_max: usize,
    /// Requests unanswered on one connection.
    pub depth_max: u32,
    /// Requests of one visit; `None`: as many as the server takes, and no rest.
    pub burst: Option<u32>,
    /// Rest for each request of a visit.
    pub delay: Duration,
    /// Rest as a multiple of the visit's duration, in thousandths.
    pub delay_factor_milli: u32,
    /// Longest rest of the two.
    pub delay_max: Duration,
    /// Whether robots.txt is obeyed.
    pub robots: bool,
    /// Times a URL may be asked for, not counting those that a closing server never answered.
    pub tries_max: u32,
    /// Batches of a server that are compared by one more request each, or by two.
    pub probation: u32,
    /// Bytes of replies held at once: the budget, and what the one connection that may pass it
    /// adds.
    pub held_bytes_max: usize,
    /// Whether an archive is kept.
    pub archive: bool,
    /// When a crawl that says it is finished must have all there is.
    pub complete: Complete,
    /// Servers at one address that are asked at once.
    pub address_visits_max: u32,
    /// Servers in one registrable domain that are asked at once.
    pub domain_visits_max: u32,
    /// Shortest time between the beginnings of two visits to servers of one address.
    pub address_delay: Duration,
    /// The same for a registrable domain.
    pub domain_delay: Duration,
    /// Units of work that a turn may take from one budget.
    pub turn_units_max: usize,
    /// The same of bytes that come in, records of the archive among them.
    pub turn_intake_max: usize,
}

/// When a finished crawl must have every page that can be reached from the web's own seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complete {
    /// Whatever happens.
    Always,
    /// Unless it says that it gave something up or left something out.
    Unless,
    /// Not at all: it begins elsewhere, or doesn't follow all links.
    Never,
}

impl Laws {
    /// The rest owed after a visit of one request that took so long.
    pub(super) fn rest(&self, length: Duration) -> Duration {
        let by_length = length.saturating_mul(self.delay_factor_milli) / 1_000;
        self.delay.max(by_length).min(self.delay_max)
    }

    /// When the visit began whose first request on this connection was sent then. While it stood
    /// and nothing was asked, it was no burden; if it stood for as long as its opening had earned,
    /// that was a visit by itself (a crawl that pauses opens what it then has no use for).
    pub(super) fn began(&self, line: &Line, sent: Instant) -> Instant {
        let Some(stood) = line.stood else { return line.asked };
        let idle = sent.since(stood);
        if idle >= self.rest(stood.since(line.asked)) && idle > Duration::ZERO {
            return sent;
        }
        line.asked + idle
    }

    /// The longest rest that a server can be owed without having asked for it itself.
    pub(super) fn longest_rest(&self) -> Duration {
        match (self.burst, self.delay_factor_milli) {
            (None, _) => Duration::ZERO,
            (Some(_), 0) => self.delay.min(self.delay_max),
            (Some(_), _) => self.delay_max,
        }
    }
}
