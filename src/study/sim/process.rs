//! The clocks of the crawler's process: its own time begins at zero with each process, the calendar
//! continues between processes.
//!
//! The simulated world counts time from its own beginning; an engine receives the time since its
//! process began, as in the real world, so that an instant of one process means nothing to the
//! next. The calendar may jump between two processes, as if the machine's clock had been set. The
//! clock of a machine may run too fast or too slow.

use super::disk::MemoryDisk;
use crate::ground::time::{Instant, Now, UnixTime};
use std::time::Duration;

/// The calendar time at the start of every simulation: 2026-01-01T00:00:00Z.
const EPOCH: UnixTime = UnixTime::from_micros(1_767_225_600_000_000);

const MILLION: u128 = 1_000_000;

/// The crawler's process that runs now.
#[derive(Debug)]
pub(super) struct Process {
    born: Instant,
    /// The calendar time at the start of the world, by the calendar as it is set now.
    epoch: UnixTime,
    /// How much faster its own clock runs than the world's, in millionths.
    drift: i32,
    /// The disk whose death is also the process's; `None` if there is none.
    disk: Option<MemoryDisk>,
    /// Whether the process has not had a turn yet.
    pub(super) is_new: bool,
}

impl Process {
    pub(super) fn new() -> Self {
        Self { born: Instant::ZERO, epoch: EPOCH, drift: 0, disk: None, is_new: true }
    }

    /// Returns the next process, begun at `born` with a calendar that has jumped.
    pub(super) fn next(&self, born: Instant, jump: Jump) -> Self {
        let us = self.epoch.as_micros();
        let by = |by: Duration| u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        let us = match jump {
            Jump::None => us,
            Jump::Forward(time) => us.saturating_add(by(time)),
            Jump::Back(time) => us.saturating_sub(by(time)),
        };
        let (epoch, disk) = (UnixTime::from_micros(us), self.disk.clone());
        Self { born, epoch, drift: self.drift, disk, is_new: true }
    }

    /// Makes the clock of the process and of those after it run faster than the world's, by this
    /// many millionths. May be negative.
    pub(super) fn drift_by(&mut self, millionths: i32) {
        self.drift = millionths;
    }

    /// Makes the process die as soon as `disk` is dead.
    pub(super) fn dies_with(&mut self, disk: MemoryDisk) {
        self.disk = Some(disk);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.disk.as_ref().is_some_and(MemoryDisk::is_dead)
    }

    /// Returns what the clocks of the process show at `at`, an instant of the world.
    pub(super) fn now(&self, at: Instant) -> Now {
        let us = at.as_micros();
        let lived_us = us.checked_sub(self.born.as_micros()).expect("it has been born");
        let unix = UnixTime::from_micros(self.epoch.as_micros() + us);
        let own_us = u128::from(lived_us) * self.rate() / MILLION;
        Now { at: Instant::from_micros(u64::try_from(own_us).unwrap_or(u64::MAX)), unix }
    }

    /// Converts an instant of the process to the first instant of the world at which the clock of
    /// the process shows it.
    pub(super) fn in_world(&self, own: Instant) -> Instant {
        let lived_us = (u128::from(own.as_micros()) * MILLION).div_ceil(self.rate());
        let lived_us = u64::try_from(lived_us).unwrap_or(u64::MAX);
        Instant::from_micros(self.born.as_micros().saturating_add(lived_us))
    }

    /// Returns how far its own clock runs in a million microseconds of the world.
    fn rate(&self) -> u128 {
        u128::try_from(1_000_000 + i64::from(self.drift)).expect("a clock runs forward")
    }
}

/// How the calendar was set between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// The calendar was not set.
    None,
    /// The calendar was set forward by this much.
    Forward(Duration),
    /// The calendar was set back by this much.
    Back(Duration),
}

/// Returns what the clocks of a simulation's first process show at `at`.
pub fn now_at(at: Instant) -> Now {
    Process::new().now(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    #[test]
    fn clocks_begin_anew_and_calendars_go_on() {
        let second = Duration::from_secs(1);
        let first = Process::new();
        assert_eq!(first.now(Instant::from_micros(7)), now_at(Instant::from_micros(7)));
        let born = Instant::from_micros(5_000_000);
        for (jump, expected_us) in [
            (Jump::None, 5_000_007),
            (Jump::Forward(second), 6_000_007),
            (Jump::Back(second), 4_000_007),
        ] {
            let next = first.next(born, jump);
            let at = Instant::from_micros(5_000_007);
            let now = next.now(at);
            assert_eq!(now.at, Instant::from_micros(7), "its own clock began with it");
            assert_eq!(now.unix.as_micros() - EPOCH.as_micros(), expected_us, "{jump:?}");
            assert_eq!(next.in_world(now.at), at);
            let later = next.next(at, Jump::None).now(at);
            assert_eq!(later.unix, now.unix, "the calendar stays as it was set");
        }
        assert_eq!(first.next(born, Jump::None).in_world(Instant::FAR), Instant::FAR);
    }

    /// A deadline of a process is met by its own clock, however that runs, and not a microsecond
    /// later than it must be.
    #[test]
    fn drifting_clocks_meet_their_deadlines() {
        let mut random = Random(5);
        for drift in [-900_000, -300, -1, 0, 1, 300, 5_000_000] {
            let mut process = Process::new().next(Instant::from_micros(977), Jump::None);
            process.drift_by(drift);
            for _ in 0..1_000 {
                let own = Instant::from_micros(random.below(1 << 40_u64));
                let at = process.in_world(own);
                assert!(process.now(at).at >= own, "{drift}: {own} is not reached at {at}");
                let before = Instant::from_micros(at.as_micros() - 1);
                assert!(
                    at <= process.born || process.now(before).at < own,
                    "{drift}: {own} is late"
                );
            }
        }
    }
}
