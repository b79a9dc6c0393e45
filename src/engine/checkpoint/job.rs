//! The jobs of a checkpoint: publishing it, and removing the files that it replaces.

use super::manifest::Manifest;
use crate::ground::disk::{Disk, Error};
use std::fmt;

/// A job of a checkpoint, which the world runs on a side thread.
pub struct StateJob {
    /// The disk handle that this job alone uses.
    pub(super) disk: Box<dyn Disk>,
    pub(super) task: Task,
}

#[derive(Debug)]
pub(super) enum Task {
    /// Sync the files with these names, then publish the checkpoint.
    Publish(Vec<String>, Box<Manifest>),
    /// Remove the files with these names, which no checkpoint names any more.
    Remove(Vec<String>),
}

/// The result of a [`StateJob`], with which the engine continues.
#[derive(Debug)]
pub struct StateDone {
    pub(super) published: bool,
    pub(super) result: Result<(), Error>,
}

impl fmt::Debug for StateJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateJob").field("task", &self.task).finish_non_exhaustive()
    }
}

impl StateJob {
    /// Runs the job. It blocks until the disk is done.
    pub fn run(mut self) -> StateDone {
        let published = matches!(self.task, Task::Publish(..));
        StateDone { published, result: self.work() }
    }

    fn work(&mut self) -> Result<(), Error> {
        match &self.task {
            Task::Publish(files, manifest) => {
                for name in files {
                    self.disk.sync(name)?;
                }
                manifest.publish(self.disk.as_mut())
            }
            Task::Remove(names) => {
                for name in names {
                    if self.disk.len(name)?.is_some() {
                        self.disk.remove(name)?;
                    }
                }
                Ok(())
            }
        }
    }
}
