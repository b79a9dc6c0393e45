//! The archive's jobs: what is synced on a side thread, in which order.

use crate::disk::{Disk, Error};
use std::fmt;

/// Sync these files, in this order.
pub struct StoreJob {
    /// A handle of the job's own.
    pub disk: Box<dyn Disk>,
    /// Names relative to the job directory; data before index before log.
    pub files: Vec<String>,
    /// Handed back in the answer.
    pub ticket: u64,
}

impl fmt::Debug for StoreJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreJob")
            .field("files", &self.files)
            .field("ticket", &self.ticket)
            .finish()
    }
}

impl StoreJob {
    /// Syncs each file; stops at the first that fails.
    pub fn run(mut self) -> StoreDone {
        let disk = &mut self.disk;
        let result = self.files.iter().try_for_each(|name| disk.sync(name));
        StoreDone { ticket: self.ticket, result }
    }
}

/// What came of a [`StoreJob`].
#[derive(Debug)]
pub struct StoreDone {
    /// The job's.
    pub ticket: u64,
    /// `Ok` if all of it is durable.
    pub result: Result<(), Error>,
}
