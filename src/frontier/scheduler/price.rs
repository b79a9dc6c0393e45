//! The price of the core's time, for the policy `yield`: what a page and a connection cost the
//! other slots while the core is nearly full.
//!
//! On an idle core a visit costs its slot only. On a full core each microsecond that it takes of
//! the core is one that all slots wait for. So time of the core counts
//! `lambda = slots x clamp((busy - 0.5) / 0.45, 0, 1)` times: `busy` is the share of the time in
//! which the core works, as the world measures it.
//!
//! A price changes the ranks of all servers. They are computed again in the order of the servers'
//! numbers, some in each turn: see [`Prices`].
//!
//! Laws: the price of a server's rank is that of [`Prices::of`] at any time. Prices are integers of
//! the world's figures, so the same figures give the same order on every machine.
//! Cost: a comparison to find a server's price; a ranking of each server when the price changes by
//! more than a sixteenth.

use super::ServerId;
use std::time::Duration;

/// What the core of the crawler does, as the world measures it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The share of the time in which the core works, in thousandths.
    pub busy_milli: u32,
    /// The core's time for a page, from its request to its links.
    pub page: Duration,
    /// The core's time for a connection: name, handshakes and end.
    pub connection: Duration,
}

/// What the core's time adds to the cost of a visit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// For each page, in microseconds of a slot.
    pub page_us: u32,
    /// For a new connection, in microseconds of a slot.
    pub connection_us: u32,
}

/// The share of the time up to which the core is idle enough to cost nothing, in thousandths.
const FREE_MILLI: u32 = 500;
/// The share of the time, beyond [`FREE_MILLI`], at which the core is full, in thousandths.
const FULL_MILLI: u32 = 450;

impl Price {
    /// Returns the price of the core's time under a load, if `slots` connections share the core.
    pub fn of(load: &Load, slots: usize) -> Self {
        let full_milli = load.busy_milli.saturating_sub(FREE_MILLI).min(FULL_MILLI);
        let priced = |time: Duration| {
            let slots_ns = time.as_nanos().saturating_mul(slots as u128);
            let us = slots_ns.saturating_mul(full_milli.into()) / u128::from(FULL_MILLI) / 1_000;
            u32::try_from(us).unwrap_or(u32::MAX)
        };
        Self { page_us: priced(load.page), connection_us: priced(load.connection) }
    }

    /// Returns whether another price differs so much that it is worth ranking all servers again.
    fn differs(self, other: Self) -> bool {
        let pairs = [(self.page_us, other.page_us), (self.connection_us, other.connection_us)];
        pairs.into_iter().any(|(one, next)| one.abs_diff(next) > one.max(next) / 16)
    }
}

/// The prices of all servers while these change from one price to the next.
#[derive(Debug, Default)]
pub(super) struct Prices {
    /// The price of the servers from number `done` on.
    old: Price,
    /// The price of the servers before number `done`.
    new: Price,
    done: u32,
    /// The latest price; it applies when all servers have the price before it.
    wanted: Price,
}

impl Prices {
    /// Returns the price that the rank of a server is computed with.
    pub(super) fn of(&self, id: ServerId) -> Price {
        if id.0 < self.done { self.new } else { self.old }
    }

    /// Sets the latest price.
    pub(super) fn want(&mut self, price: Price) {
        self.wanted = price;
    }

    /// Gives the next server the new price and returns it, so that it is ranked again; `None` if
    /// all `servers` have the latest price, or one that hardly differs.
    pub(super) fn next(&mut self, servers: usize) -> Option<ServerId> {
        if self.done as usize >= servers {
            (self.old, self.done) = (self.new, 0);
        }
        if self.done == 0 {
            if !self.wanted.differs(self.old) || servers == 0 {
                return None;
            }
            self.new = self.wanted;
        }
        self.done += 1;
        Some(ServerId(self.done - 1))
    }

    /// Returns whether [`Prices::next`] has a server to return.
    pub(super) fn is_due(&self, servers: usize) -> bool {
        let under_way = self.done > 0 && (self.done as usize) < servers;
        let last = if self.done > 0 { self.new } else { self.old };
        servers > 0 && (under_way || self.wanted.differs(last))
    }
}
