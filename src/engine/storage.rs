//! The disk, and what an error of it means: the crawl pauses while it is full, or ends, and nothing
//! is lost.
//!
//! What could not be written waits in memory or is fetched again: a reply that the archive could
//! not take goes back to its queue, bytes of queues and logs wait in their tails, a job that failed
//! is handed out again. During the pause no request is sent, so what waits is bounded by what was
//! under way when it began.
//!
//! Law: after the pause everything that was known is known, and what was settled has been written.

use super::Engine;
use crate::ground::disk::Disk;
use crate::ground::time::Instant;
use crate::ground::{disk, frame};
use crate::store;
use std::fmt;

/// The disk, and whether it can be used.
#[derive(Debug)]
pub(super) struct Storage {
    disk: Box<dyn Disk>,
    pause: Option<Pause>,
    fatal: Option<FatalError>,
}

/// A pause because the disk is full.
#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Instant,
    /// When the disk is tried again.
    until: Instant,
}

/// An error of the archive or of the state. It ends the crawl, or pauses it if the disk is full.
#[derive(Debug)]
pub enum FatalError {
    /// The archive or the crawl log can't be written.
    Archive(store::Error),
    /// The state from which a crawl resumes can't be written or read.
    State(frame::Error),
}

impl FatalError {
    /// Whether the disk is full.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Archive(error) => error.is_full(),
            Self::State(frame::Error::Disk(error)) => error.is_full(),
            Self::State(frame::Error::Damaged(_)) => false,
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
        }
    }
}

impl Storage {
    pub(super) fn new(disk: Box<dyn Disk>) -> Self {
        Self { disk, pause: None, fatal: None }
    }

    /// The disk.
    pub(super) fn disk(&mut self) -> &mut dyn Disk {
        self.disk.as_mut()
    }

    /// The disk, to be read from.
    pub(super) fn reads(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// Whether the crawl pauses because the disk is full.
    pub(super) fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// Whether it may be written to: neither is it full, nor has it failed for good.
    pub(super) fn is_usable(&self) -> bool {
        self.pause.is_none() && self.fatal.is_none()
    }

    /// The error that ends the crawl, if there was one: the first.
    pub(super) fn fatal(&self) -> Option<&FatalError> {
        self.fatal.as_ref()
    }

    /// Ends the crawl because of this error. Only the first is kept.
    pub(super) fn fails(&mut self, error: impl Into<FatalError>) {
        self.fatal.get_or_insert(error.into());
    }

    /// When a full disk is tried again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pause.map(|pause| pause.until)
    }
}

impl Engine {
    /// An error of the archive or of the state: the crawl pauses if the disk is full and the
    /// operator wants to wait for room, else it ends.
    pub(super) fn on_disk_error(&mut self, error: impl Into<FatalError>) {
        let error = error.into();
        let wait = self.settings.state.full_wait.filter(|_| error.is_full());
        let Some(wait) = wait.filter(|_| !self.shutdown.is_closing()) else {
            return self.storage.fails(error);
        };
        let now = self.turn.at();
        if !self.storage.is_paused() {
            self.counts.disk_full += 1;
            log::error!(
                "{error}; the crawl pauses and looks every {wait:?} whether there is room again \
                 (state.disk_full = \"stop\" would end it)"
            );
        }
        let since = self.storage.pause.map_or(now, |pause| pause.since);
        self.storage.pause = Some(Pause { since, until: now + wait });
    }

    /// Tries to write what waits, when the pause has lasted long enough. The crawl resumes if all
    /// of it can be written.
    pub(super) fn expire_pause(&mut self) {
        let Some(Pause { since, until }) = self.storage.pause else { return };
        if self.turn.at() < until {
            return;
        }
        match self.write_waiting() {
            Ok(()) => {
                self.storage.pause = None;
                let paused = self.turn.at().since(since);
                log::info!("there is room on the disk; the crawl resumes after {paused:?}");
            }
            Err(error) => self.on_disk_error(error),
        }
    }

    fn write_waiting(&mut self) -> Result<(), FatalError> {
        let disk = self.storage.disk();
        self.archive.store_mut().try_again(disk)?;
        self.admission.seen_mut().write(disk)?;
        self.backlog.write(true, disk)?;
        self.robots.cache().write(true, disk)?;
        self.backlog.given_up_mut().write(true, disk)?;
        Ok(())
    }

    /// Whether the disk is full.
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
        storage.fails(damage(1));
        storage.fails(damage(2));
        assert!(!storage.is_usable() && !storage.is_paused());
        let kept = storage.fatal().expect("it has failed");
        assert!(!kept.is_full() && kept.to_string() == FatalError::from(damage(1)).to_string());
    }
}
