//! A model of the CPU core that crawls: the CPU time of each operation, and when the core is free.
//!
//! A turn is charged at its end, by what was done since the turn before. Events that become due
//! while the core works wait for it; what the crawler sends in a turn leaves at the turn's
//! beginning.

use super::line::Exchanged;
use super::settings;
use crate::engine::contract::Load;
use crate::ground::time::Instant;
use std::time::Duration;

/// The CPU core that crawls.
#[derive(Debug)]
pub(super) struct Core {
    costs: settings::Core,
    free_ns: u64,
    /// Work of less than a nanosecond that is still to be charged, in picoseconds.
    rest_ps: u64,
    busy_ns: u64,
    charged: Tally,
    reported: Reported,
}

/// What the last report of the core's load was computed from.
#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    at: Instant,
    busy_ns: u64,
    tally: Tally,
}

/// How often the load of the core is reported to the crawler.
const PERIOD: Duration = Duration::from_secs(1);

/// What the crawler has done since the start, in total.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) connections: u64,
    pub(super) handshakes: u64,
    pub(super) replies: u64,
    pub(super) received_bytes: u64,
    pub(super) text_bytes: u64,
    pub(super) links: u64,
    /// What has passed between a node of a cluster and its queue.
    pub(super) exchanged: Exchanged,
    /// The links that a node of a cluster has found; 0 for other crawlers.
    pub(super) shared_links: u64,
}

impl Core {
    pub(super) fn new(costs: settings::Core) -> Self {
        Self {
            costs,
            free_ns: 0,
            rest_ps: 0,
            busy_ns: 0,
            charged: Tally::default(),
            reported: Reported::default(),
        }
    }

    /// Gives the core to another process, which has already done `tally`; that is not charged.
    pub(super) fn is_taken_over(&mut self, now: Instant, tally: Tally) {
        self.free_ns = self.free_ns.min(now.as_micros() * 1_000);
        self.charged = tally;
        self.reported = Reported { at: now, busy_ns: self.busy_ns, tally };
    }

    /// Returns the load of the core since the last report, if that is a second ago or more.
    pub(super) fn report(&mut self, now: Instant) -> Option<Load> {
        let length = now.since(self.reported.at);
        if length < PERIOD {
            return None;
        }
        let next = Reported { at: now, busy_ns: self.busy_ns, tally: self.charged };
        let last = std::mem::replace(&mut self.reported, next);
        let busy_ns = next.busy_ns - last.busy_ns;
        let connections = next.tally.connections - last.tally.connections;
        let opening_ns = self.costs.connect_ns * connections
            + self.costs.handshake_ns * (next.tally.handshakes - last.tally.handshakes);
        let pages = next.tally.replies - last.tally.replies;
        let each = |ns: u64, count: u64| Duration::from_nanos(ns / count.max(1));
        let busy_milli = u128::from(busy_ns) * 1_000 / length.as_nanos();
        Some(Load {
            busy_milli: u32::try_from(busy_milli).unwrap_or(u32::MAX),
            page: each(busy_ns.saturating_sub(opening_ns), pages),
            connection: each(opening_ns, connections),
        })
    }

    /// Charges a turn that began at `now` with `open` connections and brought the total to `tally`.
    pub(super) fn charge(&mut self, now: Instant, open: usize, tally: Tally) {
        let (costs, before) = (&self.costs, std::mem::replace(&mut self.charged, tally));
        let ns = costs.turn_ns
            + costs.watch_ns * open as u64
            + costs.connect_ns * (tally.connections - before.connections)
            + costs.handshake_ns * (tally.handshakes - before.handshakes)
            + costs.reply_ns * (tally.replies - before.replies)
            + costs.link_ns * (tally.links - before.links);
        let ps = costs.byte_ps * (tally.received_bytes - before.received_bytes)
            + costs.text_byte_ps * (tally.text_bytes - before.text_bytes)
            + exchange_ps(&costs.exchange, before, tally)
            + self.rest_ps;
        self.rest_ps = ps % 1_000;
        let work_ns = ns + ps / 1_000;
        self.free_ns = self.free_ns.max(now.as_micros() * 1_000) + work_ns;
        self.busy_ns += work_ns;
    }

    /// Returns when the core is free for the next turn.
    pub(super) fn free(&self) -> Instant {
        Instant::from_micros(self.free_ns.div_ceil(1_000))
    }

    /// Returns how long the core has worked.
    pub(super) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_ns)
    }
}

/// Returns the CPU time of what a node exchanged with its queue between two tallies, in
/// picoseconds.
fn exchange_ps(costs: &settings::Exchange, before: Tally, after: Tally) -> u64 {
    let (was, is) = (before.exchanged, after.exchanged);
    let ns = costs.link_ns * (after.shared_links - before.shared_links)
        + costs.write_ns * (is.urls_written - was.urls_written)
        + costs.write_message_ns * (is.messages_written - was.messages_written)
        + costs.read_ns * (is.links_read - was.links_read)
        + costs.settled_ns * (is.settled_read - was.settled_read)
        + costs.read_message_ns * (is.messages_read - was.messages_read)
        + costs.call_ns * (is.calls - was.calls);
    ns * 1_000
        + costs.write_byte_ps * (is.bytes_written - was.bytes_written)
        + costs.read_byte_ps * (is.bytes_read - was.bytes_read)
}
