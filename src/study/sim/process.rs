//! The clocks of the crawler's process: its own time begins at zero with each process, the calendar
//! continues between processes.
//!
//! The simulated world counts time from its own beginning; an engine receives the time since its
//! process began, as in the real world, so that an instant of one process means nothing to the
//! next. The calendar may jump between two processes, as if the machine's clock had been set.

use super::disk::MemoryDisk;
use crate::ground::time::{Instant, Now, UnixTime};
use std::time::Duration;

/// The calendar time at the start of every simulation: 2026-01-01T00:00:00Z.
const EPOCH: UnixTime = UnixTime::from_micros(1_767_225_600_000_000);

/// The crawler's process that runs now.
#[derive(Debug)]
pub(super) struct Process {
    born: Instant,
    /// The calendar time at the start of the world, by the calendar as it is set now.
    epoch: UnixTime,
    /// The disk whose death is also the process's; `None` if there is none.
    disk: Option<MemoryDisk>,
    /// Whether the process has not had a turn yet.
    pub(super) is_new: bool,
}

impl Process {
    pub(super) fn new() -> Self {
        Self { born: Instant::ZERO, epoch: EPOCH, disk: None, is_new: true }
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
        Self { born, epoch: UnixTime::from_micros(us), disk: self.disk.clone(), is_new: true }
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
        Now { at: Instant::from_micros(lived_us), unix }
    }

    /// Converts an instant of the process to an instant of the world.
    pub(super) fn in_world(&self, own: Instant) -> Instant {
        Instant::from_micros(self.born.as_micros().saturating_add(own.as_micros()))
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
}
