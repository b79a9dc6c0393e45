//! The jobs of the seen-set: work that would stall a turn, with all the data it needs.
//!
//! A job first removes unneeded files, then writes the tails of logs, then performs its task, so
//! that the task can read what was written.
//!
//! Laws: a task leaves old files unchanged, so one that fails, or is interrupted by a crash, can be
//! run again from its beginning. The inputs come back with the result, and the tails of logs with
//! what of them is not yet written.

use super::log;
use super::merge::{Creation, Merging};
use super::round::Reading;
use crate::ground::disk::{self, Disk};
use crate::ground::frame;
use crate::ground::tail::Tail;
use std::fmt;
use std::io;

/// A job for a side thread: removes unneeded files, writes logs, and performs one task, such as
/// merging a bucket or extracting new URLs.
pub struct SeenJob {
    /// A disk handle that only this job uses.
    pub(super) disk: Box<dyn Disk>,
    pub(super) crawl: u64,
    pub(super) removable: Vec<String>,
    /// The tails of logs, to be written.
    pub(super) tails: Vec<Tail>,
    pub(super) task: Box<Task>,
}

/// The result of a [`SeenJob`].
#[derive(Debug)]
pub struct SeenDone {
    /// The files that could not be removed. The next field is the error of the first of them.
    pub(super) removable: Vec<String>,
    pub(super) remove_error: Option<disk::Error>,
    /// The tails of logs, with what could not be written.
    pub(super) tails: Vec<Tail>,
    pub(super) task: Box<Task>,
    pub(super) result: Result<(), frame::Error>,
}

/// A task of a job. Once it is done, it contains its result.
#[derive(Debug)]
pub(super) enum Task {
    /// No task: the job only removes files and writes logs.
    Nothing,
    Create(Creation),
    Merge(Merging),
    Read(Reading),
}

impl fmt::Debug for SeenJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeenJob").field("kind", &self.kind()).finish_non_exhaustive()
    }
}

impl SeenJob {
    /// Performs the job, and returns it with the results.
    pub fn run(mut self) -> SeenDone {
        // Removal comes first, because it frees space.
        let remove_error = self.remove();
        let result = self.work();
        SeenDone {
            removable: self.removable,
            remove_error,
            tails: self.tails,
            task: self.task,
            result,
        }
    }

    /// Returns the kind of the job's task as one word, for logs.
    pub fn kind(&self) -> &'static str {
        match *self.task {
            Task::Nothing if self.tails.is_empty() => "sweep",
            Task::Nothing => "write",
            Task::Create(_) => "found",
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
            Task::Create(creation) => creation.run(self.crawl, disk),
            Task::Merge(merging) => merging.run(self.crawl, disk),
            Task::Read(reading) => reading.run(self.crawl, disk),
        }
    }

    fn remove(&mut self) -> Option<disk::Error> {
        let mut remove_error = None;
        let disk = &mut self.disk;
        self.removable.retain(|name| match disk.remove(name) {
            Err(error) if error.source.kind() != io::ErrorKind::NotFound => {
                remove_error.get_or_insert(error);
                true
            }
            _ => false,
        });
        remove_error
    }
}
