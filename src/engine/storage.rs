//! The disk, and what its errors cause: a full disk pauses the crawl, any other error ends it. A
//! disk counts as full when less is free than the crawl leaves to others.
//!
//! This part of the engine owns the disk, the pause and the first fatal error. What could not be
//! written waits in memory or is fetched again: a reply that the archive could not take returns to
//! its queue, bytes of queues and logs wait in their buffers, and a job that failed is handed out
//! again. During the pause no request is sent, so what waits is bounded by what was in progress
//! when it began.
//!
//! Law: after the pause nothing that was known is lost, and every outcome is written.
//! Cost: none in addition to that of the disk.

use super::Engine;
use super::contract::StopReason;
use crate::ground::disk::Disk;
use crate::ground::time::Instant;
use crate::ground::{disk, frame};
use crate::store;
use std::fmt;
use std::time::Duration;

/// The disk, and whether it can be used now.
#[derive(Debug)]
pub(super) struct Storage {
    disk: Box<dyn Disk>,
    pause: Option<Pause>,
    fatal: Option<FatalError>,
    /// When the free space is measured next.
    measured_next: Instant,
}

/// A pause of the crawl because the disk is full.
#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Instant,
    /// When writing to the disk is tried again.
    until: Instant,
}

/// The time between two measurements of the free space.
const MEASURE_PERIOD: Duration = Duration::from_secs(1);

/// An error of the archive or of the state. It pauses the crawl if the disk is full, else it ends
/// the crawl.
#[derive(Debug)]
pub enum FatalError {
    /// The archive or the crawl log can't be written.
    Archive(store::Error),
    /// The state from which a crawl resumes can't be written or read.
    State(frame::Error),
    /// This node may take no part in the crawl that it shares; the text says why.
    Cluster(String),
    /// The disk has less free space, in bytes, than the crawl leaves to others.
    Low {
        /// The free space.
        free: u64,
        /// What the crawl leaves to others.
        free_min: u64,
    },
}

impl FatalError {
    /// Returns whether the cause of the error is a full disk.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Archive(error) => error.is_full(),
            Self::State(frame::Error::Disk(error)) => error.is_full(),
            Self::State(frame::Error::Damaged(_)) | Self::Cluster(_) => false,
            Self::Low { .. } => true,
        }
    }
}

impl From<store::Error> for FatalError {
    fn from(error: store::Error) -> Self {
        Self::Archive(error)
    }
}

impl From<frame::Error> for FatalError {
    fn from(error: frame::Error) -> Self {
        Self::State(error)
    }
}

impl From<disk::Error> for FatalError {
    fn from(error: disk::Error) -> Self {
        Self::State(error.into())
    }
}

impl fmt::Display for FatalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive(error) => error.fmt(f),
            Self::State(error) => error.fmt(f),
            Self::Cluster(why) => f.write_str(why),
            Self::Low { free, free_min } => write!(
                f,
                "only {} MiB are free on the disk of the job, less than disk.free_min, {} MiB",
                free >> 20,
                free_min >> 20
            ),
        }
    }
}

impl Storage {
    pub(super) fn new(disk: Box<dyn Disk>) -> Self {
        Self { disk, pause: None, fatal: None, measured_next: Instant::ZERO }
    }

    /// Returns the disk, for writing.
    pub(super) fn disk(&mut self) -> &mut dyn Disk {
        self.disk.as_mut()
    }

    /// Returns the disk, for reading.
    pub(super) fn disk_ref(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// Returns whether the crawl pauses because the disk is full.
    pub(super) fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// Makes writing to a full disk be tried again at once, since the crawl ends.
    pub(super) fn end_pause_at(&mut self, now: Instant) {
        if let Some(pause) = &mut self.pause {
            pause.until = now;
        }
    }

    /// Returns whether the disk can be written to: it is not full, and there was no fatal error.
    pub(super) fn is_usable(&self) -> bool {
        self.pause.is_none() && self.fatal.is_none()
    }

    /// Returns the first fatal error, or `None` if there was none.
    pub(super) fn fatal(&self) -> Option<&FatalError> {
        self.fatal.as_ref()
    }

    /// Records a fatal error, which ends the crawl. Only the first one is kept.
    pub(super) fn fail(&mut self, error: impl Into<FatalError>) {
        self.fatal.get_or_insert(error.into());
    }

    /// Returns when writing to the full disk is tried again, or `None` outside a pause.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pause.map(|pause| pause.until)
    }
}

impl Engine {
    /// Handles an error of the archive or of the state. The crawl pauses if the disk is full and
    /// the configuration allows to wait; else it ends.
    pub(super) fn on_disk_error(&mut self, error: impl Into<FatalError>) {
        let error = error.into();
        self.end_held_visits();
        let wait = self.settings.state.full_wait.filter(|_| error.is_full());
        let Some(wait) = wait.filter(|_| !self.shutdown.is_closing()) else {
            if let FatalError::Low { .. } = error {
                // There is space for an orderly end.
                log::error!("{error}");
                return self.begin_stop(StopReason::LowDisk);
            }
            return self.storage.fail(error);
        };
        let now = self.turn.at();
        if !self.storage.is_paused() {
            self.counts.disk_full += 1;
            log::error!(
                "{error}; the crawl pauses and tries again every {wait:?} \
                 (disk.full = \"stop\" ends it instead)"
            );
        }
        let since = self.storage.pause.map_or(now, |pause| pause.since);
        // Other failures during a pause don't postpone its end.
        let planned = self.storage.pause.map(|pause| pause.until).filter(|until| *until > now);
        self.storage.pause = Some(Pause { since, until: planned.unwrap_or(now + wait) });
    }

    /// Returns the value of an operation on the disk. If it failed, handles the error and returns
    /// `None`.
    pub(super) fn checked<T>(&mut self, result: Result<T, impl Into<FatalError>>) -> Option<T> {
        result.map_err(|error| self.on_disk_error(error)).ok()
    }

    /// Tries to write what waits, once the pause has lasted long enough. If all of it can be
    /// written, the crawl resumes.
    pub(super) fn expire_pause(&mut self) {
        let Some(Pause { since, until }) = self.storage.pause else { return };
        if self.turn.at() < until {
            return;
        }
        // A crawl that ends may use the space that it leaves to others: it needs little.
        let space = if self.is_stopping() { Ok(()) } else { self.measure_space() };
        match space.and_then(|()| self.write_waiting()) {
            Ok(()) => {
                self.storage.pause = None;
                let paused = self.turn.at().since(since);
                log::info!("there is room on the disk; the crawl resumes after {paused:?}");
            }
            Err(error) => self.on_disk_error(error),
        }
    }

    /// Measures the free space from time to time. If it is less than the crawl leaves to others,
    /// the crawl pauses as for a full disk.
    pub(super) fn check_space(&mut self) {
        let now = self.turn.at();
        let is_due = self.settings.state.free_min > 0 && now >= self.storage.measured_next;
        if !is_due || !self.storage.is_usable() || self.shutdown.is_closing() {
            return;
        }
        self.storage.measured_next = now + MEASURE_PERIOD;
        let space = self.measure_space();
        self.checked(space);
    }

    fn measure_space(&mut self) -> Result<(), FatalError> {
        let free_min = self.settings.state.free_min;
        match self.storage.disk().free() {
            Ok(Some(free)) if free < free_min => Err(FatalError::Low { free, free_min }),
            Ok(_) => Ok(()),
            Err(error) => {
                log::warn!("{error}: disk.free_min has no effect");
                self.storage.measured_next = Instant::FAR;
                Ok(())
            }
        }
    }

    fn write_waiting(&mut self) -> Result<(), FatalError> {
        let disk = self.storage.disk();
        self.archive.store_mut().try_again(disk)?;
        self.admission.seen_mut().write(disk)?;
        self.backlog.write(true, disk)?;
        self.robots.cache().write(true, disk)?;
        self.backlog.write_segments(true, disk)?;
        self.cluster.as_deref_mut().map_or(Ok(()), |cluster| cluster.write(true, disk))?;
        Ok(())
    }

    /// Returns whether the crawl pauses because the disk is full.
    pub fn is_paused(&self) -> bool {
        self.storage.is_paused()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::disk::memory::Memory;
    use crate::ground::frame::{Damage, Flaw};

    fn damage(offset: u64) -> frame::Error {
        Damage { name: "state/x".to_owned(), offset, flaw: Flaw::Cut }.into()
    }

    #[test]
    fn the_first_fatal_error_is_kept_and_ends_all_use() {
        let mut storage = Storage::new(Box::new(Memory::default()));
        assert!(storage.is_usable() && storage.fatal().is_none());
        let (since, until) = (Instant::ZERO, Instant::from_micros(7));
        storage.pause = Some(Pause { since, until });
        assert!(storage.is_paused() && !storage.is_usable());
        assert_eq!(storage.deadline(), Some(until));
        storage.pause = None;
        storage.fail(damage(1));
        storage.fail(damage(2));
        assert!(!storage.is_usable() && !storage.is_paused());
        let kept = storage.fatal().expect("it has failed");
        assert!(!kept.is_full() && kept.to_string() == FatalError::from(damage(1)).to_string());
    }
}
