//! The crawler's process: its clock begins with it, the calendar goes on without it.
//!
//! Worlds count time from their own beginning; an engine is told time since its process began, as
//! in the real world, so that no instant of one process means anything to the next. The calendar
//! may jump between two processes: the machine's clock was set.

use super::disk::MemoryDisk;
use crate::ground::time::{Instant, Now, UnixTime};
use std::time::Duration;

/// Calendar time at the start of every simulation: 2026-01-01T00:00:00Z.
const EPOCH: UnixTime = UnixTime::from_micros(1_767_225_600_000_000);

/// The process that runs now.
#[derive(Debug)]
pub(super) struct Process {
    born: Instant,
    /// The calendar at the start of the world, as it is set now.
    epoch: UnixTime,
    /// It is gone when this disk says so.
    disk: Option<MemoryDisk>,
    /// It has not had a turn.
    pub(super) is_new: bool,
}

impl Process {
    pub(super) fn new() -> Self {
        Self { born: Instant::ZERO, epoch: EPOCH, disk: None, is_new: true }
    }

    /// The next one, begun at `born` on a calendar that has jumped.
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

    /// From now on it dies with the disk's say.
    pub(super) fn dies_with(&mut self, disk: MemoryDisk) {
        self.disk = Some(disk);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.disk.as_ref().is_some_and(MemoryDisk::is_dead)
    }

    /// What its clocks show at an instant of the world.
    pub(super) fn now(&self, at: Instant) -> Now {
        let us = at.as_micros();
        let lived_us = us.checked_sub(self.born.as_micros()).expect("it has been born");
        let unix = UnixTime::from_micros(self.epoch.as_micros() + us);
        Now { at: Instant::from_micros(lived_us), unix }
    }

    /// The world's instant for one of its own.
    pub(super) fn in_world(&self, own: Instant) -> Instant {
        Instant::from_micros(self.born.as_micros().saturating_add(own.as_micros()))
    }
}

/// How the calendar has been set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// Not at all.
    None,
    /// It shows so much more.
    Forward(Duration),
    /// It shows so much less.
    Back(Duration),
}

/// The time at an instant of a simulation's first process.
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
