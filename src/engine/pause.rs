//! What a full disk means: the crawl pauses, or ends, and nothing is lost.
//!
//! Whatever could not be written waits in memory, or is asked for again: a reply that the archive
//! could not take goes back to its queue, bytes of queues and logs wait in their tails, a job that
//! failed is handed out again. While the crawl pauses nothing new is asked for, so what waits is
//! bounded by what was under way.
//!
//! Law: after the pause everything that was known is known, and what was settled has been written.

use super::Engine;
use crate::ground::time::Instant;
use crate::ground::{disk, frame};
use crate::store;
use std::fmt;

/// The disk is full, since when and until when it is left alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    since: Instant,
    pub(super) until: Instant,
}

/// Our own trouble, because of which a crawl pauses or ends.
#[derive(Debug)]
pub enum Trouble {
    /// With the archive.
    Archive(store::Error),
    /// With what is kept to go on with.
    State(frame::Error),
}

impl Trouble {
    /// Whether there is no room left on the disk: the one that goes away by itself.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Archive(error) => error.is_full(),
            Self::State(frame::Error::Disk(error)) => error.is_full(),
            Self::State(frame::Error::Damaged(_)) => false,
        }
    }
}

impl From<store::Error> for Trouble {
    fn from(error: store::Error) -> Self {
        Self::Archive(error)
    }
}

impl From<frame::Error> for Trouble {
    fn from(error: frame::Error) -> Self {
        Self::State(error)
    }
}

impl From<disk::Error> for Trouble {
    fn from(error: disk::Error) -> Self {
        Self::State(error.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive(error) => error.fmt(f),
            Self::State(error) => error.fmt(f),
        }
    }
}

impl Engine {
    /// Our own trouble: a full disk is waited for, if the operator wants that; all else ends the
    /// crawl. The first trouble is the one that is told.
    pub(super) fn meet(&mut self, error: impl Into<Trouble>) {
        let error = error.into();
        let wait = self.settings.state.full_wait.filter(|_| error.is_full());
        let is_ending = self.ending.is_closing();
        let Some(wait) = wait.filter(|_| !is_ending) else {
            self.trouble.get_or_insert(error);
            return;
        };
        let now = self.turn.at();
        if self.pause.is_none() {
            self.counts.disk_full += 1;
            log::error!(
                "{error}; the crawl pauses and looks every {wait:?} whether there is room again \
                 (state.disk_full = \"stop\" would end it)"
            );
        }
        let since = self.pause.map_or(now, |pause| pause.since);
        self.pause = Some(Pause { since, until: now + wait });
    }

    /// There may be room again: what waits is tried, and if all of it is written the crawl goes on.
    pub(super) fn expire_pause(&mut self) {
        let Some(pause) = self.pause.filter(|pause| pause.until <= self.turn.at()) else { return };
        let disk = self.disk.as_mut();
        let written = self.store.try_again(disk).map_err(Trouble::from);
        let written = written.and_then(|()| Ok(self.admission.seen_mut().write(disk)?));
        let written = written.and_then(|()| Ok(self.frontier.write(true, disk)?));
        let written = written.and_then(|()| Ok(self.rules.write(true, disk)?));
        let written = written.and_then(|()| Ok(self.given_up.write(true, disk)?));
        match written {
            Ok(()) => {
                self.pause = None;
                log::info!(
                    "there is room on the disk; the crawl goes on after {:?}",
                    self.turn.at().since(pause.since)
                );
            }
            Err(error) => self.meet(error),
        }
    }

    /// Whether the disk is full.
    pub fn is_paused(&self) -> bool {
        self.pause.is_some()
    }
}
