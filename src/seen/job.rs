//! The station's jobs: what would stall a turn, with all that it needs.
//!
//! A job first removes files that nobody needs, then brings the ends of logs to the disk, then does
//! its task: so what the task reads is there.
//!
//! Laws: a task leaves old files as they are, so one that fails, or is cut off by a crash, can be
//! run again from its beginning; inputs come back with the answer, the ends of logs with what of
//! them isn't written.

use super::log;
use super::merge::{Founding, Merging};
use super::round::Reading;
use crate::ground::disk::{self, Disk};
use crate::ground::frame;
use crate::ground::tail::Tail;
use std::fmt;
use std::io;

/// Merge a bucket, or read first-timers; write what waits, and remove files that nobody needs.
pub struct SeenJob {
    /// A handle of the job's own.
    pub(super) disk: Box<dyn Disk>,
    pub(super) crawl: u64,
    pub(super) rubbish: Vec<String>,
    /// Ends of logs.
    pub(super) tails: Vec<Tail>,
    pub(super) task: Box<Task>,
}

/// What came of a [`SeenJob`].
#[derive(Debug)]
pub struct SeenDone {
    /// Files that are still there, and why the first of them is.
    pub(super) rubbish: Vec<String>,
    pub(super) stuck: Option<disk::Error>,
    /// Ends of logs.
    pub(super) tails: Vec<Tail>,
    pub(super) task: Box<Task>,
    pub(super) result: Result<(), frame::Error>,
}

/// What is to be done, and what came of it.
#[derive(Debug)]
pub(super) enum Task {
    /// Only what comes before it.
    Nothing,
    Found(Founding),
    Merge(Merging),
    Read(Reading),
}

impl fmt::Debug for SeenJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeenJob").field("kind", &self.kind()).finish_non_exhaustive()
    }
}

impl SeenJob {
    /// Does the work.
    pub fn run(mut self) -> SeenDone {
        // First, for it makes room.
        let stuck = self.remove();
        let result = self.work();
        SeenDone { rubbish: self.rubbish, stuck, tails: self.tails, task: self.task, result }
    }

    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match *self.task {
            Task::Nothing if self.tails.is_empty() => "sweep",
            Task::Nothing => "write",
            Task::Found(_) => "found",
            Task::Merge(_) => "merge",
            Task::Read(_) => "read",
        }
    }

    fn work(&mut self) -> Result<(), frame::Error> {
        let disk = self.disk.as_mut();
        for tail in &mut self.tails {
            log::flush(tail, disk)?;
        }
        match &mut *self.task {
            Task::Nothing => Ok(()),
            Task::Found(founding) => founding.run(self.crawl, disk),
            Task::Merge(merging) => merging.run(self.crawl, disk),
            Task::Read(reading) => reading.run(self.crawl, disk),
        }
    }

    fn remove(&mut self) -> Option<disk::Error> {
        let mut stuck = None;
        let disk = &mut self.disk;
        self.rubbish.retain(|name| match disk.remove(name) {
            Err(error) if error.source.kind() != io::ErrorKind::NotFound => {
                stuck.get_or_insert(error);
                true
            }
            _ => false,
        });
        stuck
    }
}
