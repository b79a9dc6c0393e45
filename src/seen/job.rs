//! The station's jobs: what would stall a turn, with all that it needs.
//!
//! Laws: a job leaves old files as they are, so one that fails, or is cut off by a crash, can be
//! run again from its beginning; its inputs come back with the answer.

use super::merge::{Founding, Merging};
use super::round::Reading;
use crate::disk::{self, Disk};
use crate::frame;
use std::fmt;
use std::io;

/// Merge a bucket, or read first-timers; and remove files that nobody needs.
pub struct SeenJob {
    /// A handle of the job's own.
    pub(super) disk: Box<dyn Disk>,
    pub(super) crawl: u64,
    pub(super) rubbish: Vec<String>,
    pub(super) task: Box<Task>,
}

/// What came of a [`SeenJob`].
#[derive(Debug)]
pub struct SeenDone {
    /// Files that are still there, and why the first of them is.
    pub(super) rubbish: Vec<String>,
    pub(super) stuck: Option<disk::Error>,
    pub(super) task: Box<Task>,
    pub(super) result: Result<(), frame::Error>,
}

/// What is to be done, and what came of it.
#[derive(Debug)]
pub(super) enum Task {
    /// Only remove files.
    Sweep,
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
        let disk = self.disk.as_mut();
        let result = match &mut *self.task {
            Task::Sweep => Ok(()),
            Task::Found(founding) => founding.run(self.crawl, disk),
            Task::Merge(merging) => merging.run(self.crawl, disk),
            Task::Read(reading) => reading.run(self.crawl, disk),
        };
        SeenDone { rubbish: self.rubbish, stuck, task: self.task, result }
    }

    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match *self.task {
            Task::Sweep => "sweep",
            Task::Found(_) => "found",
            Task::Merge(_) => "merge",
            Task::Read(_) => "read",
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
