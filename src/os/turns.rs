//! Turns of the loop: how many there were, how long each took, and what the longest was spent on.
//!
//! A turn is the time from one return of the poller to its next call: how long a ready socket may
//! have to wait (the loop's lag). A loop that is usually quick but stalled once differs from a
//! saturated one only by its longest turn, so that turn is recorded stage by stage.
//!
//! Law: the times of the stages of the longest turn add up to its length, except for two clock
//! reads. Cost: a copy of the meter's accounts each turn, about 20 ns, and a system call for the
//! CPU time.

use crate::ground::stats::{Account, Histogram, Meter, STAGES, Stage};
use crate::ground::time::Instant;
use std::time::Duration;

/// Measurements of the turns of the loop so far.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) lag_us: Histogram,
    pub(super) count: u64,
    pub(super) longest: Turn,
    /// The most CPU time that the loop's thread spent in one turn.
    pub(super) cpu_max: Duration,
    /// The thread's CPU time when the current turn began.
    cpu_began_ns: u64,
    /// The meter's accounts when the current turn began.
    before: [Account; STAGES],
}

/// The measurements of one turn of the loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The time at which the turn began.
    pub began: Instant,
    /// How long the turn took.
    pub took: Duration,
    /// The time of each stage, in the order of [`Stage::ALL`], in nanoseconds.
    pub stages_ns: [u64; STAGES],
}

impl Turn {
    /// Returns the stages of the turn with their shares of its time (0 to 1), the largest first.
    pub fn shares(&self) -> Vec<(Stage, f64)> {
        let all_ns = self.stages_ns.iter().sum::<u64>().max(1) as f64;
        let share = |stage: Stage| (stage, self.stages_ns[stage as usize] as f64 / all_ns);
        let mut shares: Vec<(Stage, f64)> = Stage::ALL.into_iter().map(share).collect();
        shares.sort_by(|one, next| next.1.total_cmp(&one.1));
        shares
    }
}

impl Turns {
    pub(super) fn new() -> Self {
        Self {
            lag_us: Histogram::default(),
            count: 0,
            longest: Turn::default(),
            cpu_max: Duration::ZERO,
            cpu_began_ns: 0,
            before: [Account::default(); STAGES],
        }
    }

    /// Begins a turn. The poller must have returned, and the meter must have been charged with its
    /// time. `cpu_ns` is the thread's CPU time so far.
    pub(super) fn begin(&mut self, meter: &Meter, cpu_ns: u64) {
        self.count += 1;
        self.cpu_began_ns = cpu_ns;
        self.before = meter.read();
    }

    /// Ends a turn, which began at `began` and took `took`. The meter must have been charged with
    /// all of its time. `cpu_ns` is the thread's CPU time so far.
    pub(super) fn end(&mut self, meter: &Meter, began: Instant, took: Duration, cpu_ns: u64) {
        self.lag_us.add_duration(took);
        let cpu = Duration::from_nanos(cpu_ns.saturating_sub(self.cpu_began_ns));
        self.cpu_max = self.cpu_max.max(cpu);
        if took <= self.longest.took {
            return;
        }
        let mut stages_ns = [0; STAGES];
        for ((ns, now), before) in stages_ns.iter_mut().zip(meter.read()).zip(&self.before) {
            *ns = now.ticks.saturating_sub(before.ticks);
        }
        self.longest = Turn { began, took, stages_ns };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local!(static CLOCK_NS: Cell<u64> = const { Cell::new(0) });

    #[test]
    fn the_longest_turn_is_kept_by_stage() {
        let mut meter = Meter::new(|| CLOCK_NS.with(Cell::get));
        let mut turns = Turns::new();
        let mut turn = |at_us: u64, links_us: u64, store_us: u64| {
            turns.begin(&meter, 1_000 * at_us);
            for (stage, us) in [(Stage::Links, links_us), (Stage::Store, store_us)] {
                let outer = meter.enter(stage, 0);
                CLOCK_NS.with(|clock| clock.set(clock.get() + us * 1_000));
                meter.back(outer);
            }
            let took = Duration::from_micros(links_us + store_us);
            // The thread had the processor only for the links.
            let cpu_ns = 1_000 * (at_us + links_us);
            turns.end(&meter, Instant::from_micros(at_us), took, cpu_ns);
        };
        turn(0, 40, 10);
        turn(100, 100, 300);
        turn(600, 190, 20);
        let longest = &turns.longest;
        assert_eq!((longest.began.as_micros(), longest.took.as_micros()), (100, 400));
        assert_eq!(longest.stages_ns.iter().sum::<u64>(), 400_000);
        assert_eq!(longest.shares()[..2], [(Stage::Store, 0.75), (Stage::Links, 0.25)]);
        assert_eq!((turns.count, turns.lag_us.max()), (3, 400));
        assert_eq!(turns.cpu_max, Duration::from_micros(190), "of another turn");
    }
}
