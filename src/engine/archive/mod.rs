//! The archive: what is fetched is recorded here, and read back when a crawl resumes.
//!
//! Law: one job of the archive is under way at a time; the last one closes its files.

mod record;
mod replay;
mod reread;
mod verify;

use super::contract::{Action, Job, StoreDone, StoreJob};
use super::settings::Settings;
use super::{Engine, Error};
use crate::ground::disk::Disk;
use crate::ground::stats::Stage;
use crate::ground::time::{Instant, Now};
use crate::store::{Position, Store, Totals};
pub(super) use record::{Settled, cut_as, units_max};
use replay::Replays;
pub(super) use verify::verify;

/// The archive with the crawl log, and the replies that are to be read back from it.
#[derive(Debug)]
pub(super) struct Archive {
    store: Store,
    /// Whether a job of the store is under way.
    is_syncing: bool,
    /// The request of the record that is being written; kept for its memory.
    request: Vec<u8>,
    replays: Replays,
}

impl Archive {
    /// Opens the archive, which is whole before `durable`.
    ///
    /// # Errors
    /// Its files can't be written.
    pub(super) fn open(
        durable: Position,
        settings: &Settings,
        disk: &mut dyn Disk,
        now: Now,
    ) -> Result<Self, Error> {
        let (identity, seed) = (settings.archive_identity(), settings.store_seed());
        let own = settings.store.clone();
        let store = Store::open_since(durable, own, identity, seed, disk, now.unix);
        let store = store.map_err(Error::Store)?;
        let replays = Replays::default();
        Ok(Self { store, is_syncing: false, request: Vec::new(), replays })
    }

    /// The archive's files.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The archive's files, to be written.
    pub(super) fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Whether a job of the store is under way.
    pub(super) fn is_syncing(&self) -> bool {
        self.is_syncing
    }

    /// The replies to be read back.
    pub(super) fn replays(&self) -> &Replays {
        &self.replays
    }

    /// The replies to be read back, to be added to, and the files that they are in.
    pub(super) fn replays_mut(&mut self) -> (&mut Replays, &Store) {
        (&mut self.replays, &self.store)
    }
}

impl Engine {
    /// What the archive holds.
    pub fn archive(&self) -> Totals {
        self.archive.store.totals()
    }

    /// A job of the store is done.
    pub(super) fn store_worked(&mut self, done: StoreDone) {
        self.archive.is_syncing = false;
        if let Err(error) = self.archive.store.synced(done) {
            self.on_disk_error(error);
        }
    }

    /// Hands out the archive's last job, after a fatal error as well: what can still be made
    /// durable is.
    pub(super) fn close_store(&mut self) {
        self.write_trace();
        let stage = self.turn.enter(Stage::Store, 0);
        // The last checkpoint knows all that they hold.
        if self.storage.fatal().is_none() && !self.holds_files() {
            self.archive.store.release(u32::MAX);
        }
        match self.archive.store.close(self.turn.at(), self.storage.disk()) {
            Ok(job) => self.start_sync(job),
            Err(error) => self.storage.fails(error),
        }
        self.turn.back(stage);
    }

    fn start_sync(&mut self, job: Option<StoreJob>) {
        if let Some(job) = job {
            self.archive.is_syncing = true;
            self.turn.act(Action::Work(Job::Store(job)));
        }
    }

    /// Whether the archive may have its next job.
    fn may_sync(&self) -> bool {
        !self.shutdown.is_settling() && !self.archive.is_syncing && self.storage.is_usable()
    }

    /// When the archive's next job is due; once nothing is fetched any more only the last
    /// checkpoint asks for one.
    pub(super) fn sync_deadline(&self) -> Option<Instant> {
        let crawls = !self.shutdown.is_closing();
        self.archive.store.next_sync().filter(|_| crawls && self.may_sync())
    }

    /// Hands out the archive's next job if it is due.
    pub(super) fn sync_store(&mut self) {
        if self.sync_deadline().is_some_and(|due| due <= self.turn.at()) {
            self.sync_store_now();
        }
    }

    /// Hands out the archive's next job, due or not.
    pub(super) fn sync_store_now(&mut self) {
        if !self.may_sync() {
            return;
        }
        match self.archive.store.sync_job(self.turn.at(), self.storage.disk()) {
            Ok(job) => self.start_sync(job),
            Err(error) => self.on_disk_error(error),
        }
    }
}
