//! The load of the loop's core, for the engine: how busy it is, and what a page and a connection
//! take of it.
//!
//! Time in which another process had the core counts as work: it is as scarce.
//! Cost: a copy of the meter's accounts once a second.

use crate::engine::Engine;
use crate::engine::contract::Load;
use crate::ground::stats::{Account, STAGES, Stage};
use crate::ground::time::{Instant, Now};
use std::time::Duration;

/// How often the load is reported.
const PERIOD: Duration = Duration::from_secs(1);

/// Reports the load of the core to the engine.
#[derive(Debug)]
pub(super) struct Loads {
    at: Instant,
    before: Totals,
}

impl Loads {
    pub(super) fn begin(engine: &Engine, at: Instant) -> Self {
        Self { at, before: Totals::of(engine) }
    }

    /// Reports the load since the last report, if that is a second ago or more.
    pub(super) fn report(&mut self, engine: &mut Engine, now: Now) {
        if now.at.since(self.at) >= PERIOD {
            let before = std::mem::replace(self, Self::begin(engine, now.at)).before;
            engine.load(now, &self.before.load_since(&before));
        }
    }
}

/// What the load is computed from: totals of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    accounts: [Account; STAGES],
    requests: u64,
    connections: u64,
}

impl Totals {
    fn of(engine: &Engine) -> Self {
        let counts = engine.counts();
        let (requests, connections) = (counts.requests, counts.connections);
        Self { accounts: engine.meter().read(), requests, connections }
    }

    /// Returns the load between an earlier time, of which the totals are `before`, and these.
    fn load_since(&self, before: &Self) -> Load {
        let ns = |stages: &[Stage]| -> u64 {
            let ticks = |totals: &Self, stage| totals.accounts[stage as usize].ticks;
            let spent = |stage: &Stage| ticks(self, *stage).saturating_sub(ticks(before, *stage));
            stages.iter().map(spent).sum()
        };
        let all_ns = ns(&Stage::ALL);
        let busy_ns = all_ns.saturating_sub(ns(&[Stage::Wait]));
        // Of TLS, nearly all time goes to handshakes.
        let opening_ns = ns(&[Stage::Dns, Stage::Tls]);
        let each = |ns: u64, count: u64| Duration::from_nanos(ns / count.max(1));
        Load {
            busy_milli: u32::try_from(u128::from(busy_ns) * 1_000 / u128::from(all_ns.max(1)))
                .expect("a share of a thousand"),
            page: each(busy_ns.saturating_sub(opening_ns), self.requests - before.requests),
            connection: each(opening_ns, self.connections - before.connections),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(stages: &[(Stage, u64)], requests: u64, connections: u64) -> Totals {
        let mut totals = Totals { requests, connections, ..Totals::default() };
        stages.iter().for_each(|(stage, ns)| totals.accounts[*stage as usize].ticks = *ns);
        totals
    }

    /// Law: waiting is no work; connections pay for names and TLS, pages for the rest.
    #[test]
    fn the_load_is_that_of_the_time_between() {
        let before = totals(&[(Stage::Wait, 7_000), (Stage::Links, 5_000)], 3, 1);
        let stages = [
            (Stage::Wait, 407_000),
            (Stage::Links, 305_000),
            (Stage::Store, 100_000),
            (Stage::Tls, 150_000),
            (Stage::Dns, 50_000),
        ];
        let after = totals(&stages, 103, 5);
        let expected = Load {
            busy_milli: 600,
            page: Duration::from_nanos(4_000),
            connection: Duration::from_nanos(50_000),
        };
        assert_eq!(after.load_since(&before), expected);
        let idle = Load { busy_milli: 0, ..Load::default() };
        assert_eq!(after.load_since(&after), idle);
    }
}
