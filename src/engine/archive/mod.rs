//! The archive: fetches are recorded here, and replies are read back when a crawl resumes.
//!
//! This part of the engine owns the WARC files with their index, the crawl log, the replies that
//! jobs are archiving, and those that are still to be read back.
//!
//! Laws: at most one job that syncs the archive is in progress; the last one closes its files. At
//! most one job that writes to it is in progress, none while the engine writes. A capture
//! that is durable is not fetched again after a restart.
//! Cost: the compression of each record; appends are plain calls, syncs are jobs.

mod annotations;
mod filing;
mod record;
mod replay;
mod reread;
mod statements;
mod verify;

use super::contract::{Action, Job, StoreDone, StoreJob};
use super::settings::Settings;
use super::{Engine, Error};
use crate::ground::disk::Disk;
use crate::ground::stats::Stage;
use crate::ground::time::{Instant, Now, UnixTime};
use crate::store::{Position, Store, Totals};
pub(super) use annotations::{AGAIN, cut_as, cut_of};
pub(super) use filing::{Filed, FiledPage, Filing};
pub(super) use record::{LogFacts, Recorded, Unsent, units_max};
use replay::Replays;
pub(super) use verify::verify;

/// The archive with the crawl log, the replies that jobs are archiving, and the replies in it that
/// are to be read back.
#[derive(Debug)]
pub(super) struct Archive {
    store: Store,
    /// Whether a job of the store is in progress.
    is_syncing: bool,
    /// If the next line of the log must have the politeness settings: since when they apply.
    new_settings: Option<UnixTime>,
    /// The request of the record that is being written; kept to reuse its memory.
    request: Vec<u8>,
    replays: Replays,
    filing: Filing,
    statements: statements::Reader,
}

impl Archive {
    /// Opens the archive. Before the position `durable` it is known to be complete.
    ///
    /// # Errors
    /// The files of the archive can't be written.
    pub(super) fn open(
        durable: Position,
        settings: &Settings,
        disk: &mut dyn Disk,
        now: Now,
    ) -> Result<Self, Error> {
        let (own, identity) = (settings.store.clone(), settings.archive_identity());
        // The random ids of records are drawn from this seed.
        let (seed, _) = settings.fingerprint_key.split_first_chunk().expect("16 bytes");
        let seed = u64::from_le_bytes(*seed);
        let store = Store::open_since(durable, own, identity, seed, disk, now.unix);
        let store = store.map_err(Error::Store)?;
        let replays = Replays::default();
        let request = Vec::new();
        let new_settings = Some(now.unix);
        let filing = Filing::default();
        let statements = statements::Reader::new(&settings.links);
        let is_syncing = false;
        Ok(Self { store, is_syncing, new_settings, request, replays, filing, statements })
    }

    /// Makes the next line of the crawl log have the politeness settings, which apply since `from`.
    pub(super) fn announce_settings(&mut self, from: UnixTime) {
        self.new_settings = Some(from);
    }

    /// Returns the archive's files.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the archive's files, for writing.
    pub(super) fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Returns whether a job of the store is in progress.
    pub(super) fn is_syncing(&self) -> bool {
        self.is_syncing
    }

    /// Returns the replies that are being archived by jobs.
    pub(super) fn filing(&self) -> &Filing {
        &self.filing
    }

    /// Returns the replies to be read back.
    pub(super) fn replays(&self) -> &Replays {
        &self.replays
    }

    /// Returns the replies to be read back, for changes, together with the files that they are in.
    pub(super) fn replays_mut(&mut self) -> (&mut Replays, &Store) {
        (&mut self.replays, &self.store)
    }
}

impl Engine {
    /// Returns the counters of the archive.
    pub fn archive(&self) -> Totals {
        self.archive.store.totals()
    }

    /// Takes the result of a job of the store.
    pub(super) fn store_worked(&mut self, done: StoreDone) {
        self.archive.is_syncing = false;
        let synced = self.archive.store.synced(done);
        self.checked(synced);
    }

    /// Hands out the archive's last job, which closes its files. This happens even after a fatal
    /// error, since what can be made durable still should be.
    pub(super) fn close_store(&mut self) {
        self.write_trace();
        let stage = self.turn.enter(Stage::Store, 0);
        // The last checkpoint includes everything in these files.
        if self.storage.fatal().is_none() && !self.holds_files() {
            self.archive.store.release(u32::MAX);
        }
        match self.archive.store.close(self.turn.at(), self.storage.disk()) {
            Ok(job) => self.start_sync(job),
            Err(error) => self.storage.fail(error),
        }
        self.turn.back(stage);
    }

    fn start_sync(&mut self, job: Option<StoreJob>) {
        if let Some(job) = job {
            self.archive.is_syncing = true;
            self.turn.act(Action::Work(Job::Store(job)));
        }
    }

    /// Returns whether the next job of the archive may be handed out now.
    fn may_sync(&self) -> bool {
        !self.shutdown.is_settling() && !self.archive.is_syncing && self.storage.is_usable()
    }

    /// Returns when the archive's next job is due. Returns `None` near the end of the crawl, when
    /// only the last checkpoint starts one.
    pub(super) fn sync_deadline(&self) -> Option<Instant> {
        let crawls = !self.shutdown.is_closing();
        self.archive.store.next_sync().filter(|_| crawls && self.may_sync())
    }

    /// Hands out the archive's next job, even if it is not due.
    pub(super) fn sync_store(&mut self) {
        if !self.may_sync() {
            return;
        }
        let job = self.archive.store.sync_job(self.turn.at(), self.storage.disk());
        let job = self.checked(job).flatten();
        self.start_sync(job);
    }
}
