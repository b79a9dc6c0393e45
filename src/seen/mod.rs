//! The seen-set, also called duplicate URL eliminator: each URL passes once.
//!
//! URLs are offered as fingerprints with opaque bytes; those never seen before come out of
//! [`Seen::fresh`]. As long as all fingerprints fit into memory the answer is immediate, and new
//! URLs come out in order of arrival. Beyond that the fingerprints are in sorted buckets on disk,
//! and the test takes three steps:
//! 1. A cache of recently seen fingerprints drops most duplicates.
//! 2. The others wait in a batch, with their keys in memory and their bytes in a log.
//! 3. When the batch is large (or the frontier runs dry, [`Seen::hasten`]), jobs merge it with the
//!    buckets, one by one, and then read its new URLs from the log, in order of arrival within the
//!    batch. Meanwhile the next batch fills.
//!
//! Files, under `state/seen/`, made of frames ([`crate::ground::frame`]):
//!
//! ```text
//! keys-N        fingerprints in order of arrival, while they are in memory; grows
//! pending-N     URLs of a batch in order of arrival; grows
//! bucket-BB-N   sorted fingerprints; written once, replaced by one of a higher number
//! ```
//!
//! Laws:
//! - Of all offers with one fingerprint exactly the first comes out, or is counted as dropped when
//!   a cap is reached.
//! - After any failure of the disk nothing is lost or doubled, and the step can be repeated.
//! - A crawl restored from a mark answers as the marked one would have.
//!
//! Cost (measured by `bench/seen.rs`): in memory one probe, which is one or two misses of the
//! processor's caches, and 10 to 15 bytes a fingerprint. On disk, in addition to the cache: 8 bytes
//! of memory for each offer in the batch, some 20 ns of the loop, and on the side thread its share
//! of a merge, which reads and writes 10 bytes for each known fingerprint: `10 x known / batch`.
//! Source: DRUM (Lee, Leonard, Wang, Loguinov 2008); the cache, Broder, Najork, Wiener 2003.

mod batch;
mod bucket;
pub mod cache;
mod files;
mod fresh;
mod job;
mod log;
pub mod lookup;
mod mark;
mod memory;
mod merge;
mod round;
mod sort;
mod table;
#[cfg(test)]
mod tests;
mod ticket;
pub mod trace;

use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Role};
use crate::ground::tail::Tail;
use crate::url::Fingerprint;
use batch::{BUCKET_BITS, BUCKETS, Batch, ENTRY_BYTES};
use bucket::{Bucket, FOLDER};
use cache::{Cache, Replacement};
use files::Files;
use fresh::Fresh;
use job::Task;
pub use job::{SeenDone, SeenJob};
use log::Log;
use merge::{Creation, Merged, Merging};
use round::{Round, Step};
use serde::Serialize;
use table::{Insertion, Table};

/// The settings of the seen-set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The maximum number of fingerprints, in memory and on disk.
    pub urls_max: usize,
    /// The memory for fingerprints, in bytes. While all fingerprints fit into it, it holds all of
    /// them; after that it holds those of a batch.
    pub memory_bytes: usize,
    /// The base-2 logarithm of the number of cache entries, used once fingerprints are on disk; 0
    /// for no cache.
    pub cache_entries_log2: u32,
    /// The number of the crawl whose files are kept under `state/`; `None` to use no disk.
    pub crawl: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { urls_max: 50_000_000, memory_bytes: 256 << 20, cache_entries_log2: 20, crawl: None }
    }
}

impl Settings {
    /// Returns the maximum size of the table in bytes. An eighth of the memory is left for data
    /// that is being written and sorted.
    fn table_bytes(&self) -> usize {
        self.memory_bytes / 8 * 7
    }

    /// Returns the number of URLs at which a batch is merged. Memory for a sixteenth more is
    /// reserved, for the start of the next batch.
    fn batch_urls(&self) -> usize {
        let urls = self.memory_bytes / 8 * 6 / ENTRY_BYTES;
        urls.clamp(1, u32::MAX as usize / 2)
    }
}

/// The seen-set: all seen fingerprints, URLs that wait for the test whether they are new, and new
/// URLs that wait to be taken.
#[derive(Debug)]
pub struct Seen {
    settings: Settings,
    known: Known,
    /// The number of known fingerprints: those of URLs that came out as new, or will.
    len: usize,
    /// The cache of recently seen fingerprints. It is created when memory is full, unless the
    /// settings disable it.
    cache: Option<Cache>,
    /// The URLs that wait for the next round of merges; `None` instead of an empty batch.
    batch: Option<Batch>,
    round: Option<Round>,
    fresh: Fresh,
    files: Files,
    /// True while a job is running.
    is_working: bool,
    /// True if the running job has the tail of a log.
    is_writing: bool,
    /// The task of a job that failed, to be run again.
    failed: Option<Box<Task>>,
    /// The data that is with a job, for look-ups.
    job_data: lookup::JobData,
    held: bool,
    hastened: bool,
    totals: Totals,
}

/// Where the known fingerprints are stored.
#[derive(Debug)]
enum Known {
    /// All fingerprints are in a table in memory.
    Memory(Memory),
    /// The fingerprints are being moved from the table in memory to buckets on disk.
    Moving {
        table: Table,
        buckets: Vec<Option<Bucket>>,
        /// The file with the keys of the table, which is removed when all of them are moved.
        log: Option<Log>,
    },
    /// All fingerprints are in buckets on disk.
    Disk(Vec<Option<Bucket>>),
}

#[derive(Debug)]
struct Memory {
    table: Table,
    /// The log with the keys of the table in order of arrival; it is created with the first key.
    /// `None` before, and if no disk is used.
    log: Option<Log>,
    /// True once a key did not fit into the table.
    is_full: bool,
}

/// The counters of the seen-set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The number of known fingerprints.
    pub known: u64,
    /// The number of known fingerprints that are only on disk.
    pub on_disk: u64,
    /// The number of URLs that wait for the test whether they are new, duplicates included.
    pub waiting: u64,
    /// The number of URLs offered.
    pub checks: u64,
    /// The number of offered URLs that the cache found to be duplicates.
    pub hits: u64,
    /// The number of look-ups in the cache in this run: there are none before memory is full.
    pub cache_lookups_of_run: u64,
    /// The number of them that found a duplicate.
    pub cache_hits_of_run: u64,
    /// The number of URLs dropped because a cap was reached.
    pub dropped: u64,
    /// The number of rounds of merges that have ended in this run.
    #[serde(skip)]
    pub rounds_of_run: u64,
    /// The number of buckets merged.
    pub merges: u64,
    /// The number of bytes that merges read, from buckets and logs.
    pub merge_read_bytes: u64,
    /// The number of bytes that merges wrote.
    pub merge_written_bytes: u64,
}

impl Seen {
    /// Creates an empty seen-set.
    pub fn new(settings: Settings) -> Self {
        let table = Table::new(settings.table_bytes());
        Self {
            settings,
            known: Known::Memory(Memory { table, log: None, is_full: false }),
            len: 0,
            cache: None,
            batch: None,
            round: None,
            fresh: Fresh::default(),
            files: Files::default(),
            is_working: false,
            is_writing: false,
            failed: None,
            job_data: lookup::JobData::default(),
            held: false,
            hastened: false,
            totals: Totals::default(),
        }
    }

    /// Prefetches the memory that offers of these fingerprints will read, about [`AHEAD`] at once,
    /// so that their cache misses overlap.
    pub fn prefetch(&self, fingerprints: &[Fingerprint]) {
        let keys = fingerprints.iter().map(|fingerprint| fingerprint.0);
        match (&self.known, &self.cache) {
            (Known::Memory(memory), _) => memory.table.fetch(keys),
            (_, Some(cache)) => cache.fetch(keys),
            (_, None) => {}
        }
    }

    /// Offers a URL with its bytes, as [`Seen::offer_with`] does.
    pub fn offer(&mut self, fingerprint: Fingerprint, bytes: &[u8]) {
        self.offer_with(fingerprint, |out| out.extend_from_slice(bytes));
    }

    /// Offers a URL. If it is new, the bytes that `write` appends will come out of [`Seen::fresh`];
    /// `write` is not called if the URL is already known to be a duplicate. Does not use the disk:
    /// the bytes wait in memory for a job, or for [`Seen::write`].
    pub fn offer_with(&mut self, fingerprint: Fingerprint, write: impl FnOnce(&mut Vec<u8>)) {
        self.totals.checks += 1;
        let key = fingerprint.0;
        let has_room = self.len < self.settings.urls_max;
        if let Known::Memory(memory) = &mut self.known {
            if !has_room || memory.is_full {
                if memory.table.contains(key) {
                    return;
                }
            } else {
                match memory.table.insert(key) {
                    Insertion::Known => return,
                    Insertion::New => return self.admit(key, write),
                    Insertion::Full => self.overflow(),
                }
            }
        }
        if !has_room || self.settings.crawl.is_none() {
            let known = self.cache.as_ref().is_some_and(|cache| cache.contains(key));
            self.totals.dropped += u64::from(!known);
            return;
        }
        self.defer(key, write);
    }

    /// Takes the bytes of the next new URL. Returns `None` if there is none now; a job may bring
    /// more.
    pub fn fresh(&mut self) -> Option<&[u8]> {
        self.fresh.next()
    }

    /// Returns whether a new URL can be taken now.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_dry()
    }

    /// Reports that the frontier runs dry. The waiting URLs are then merged now, and the new ones
    /// come out as early as possible.
    pub fn hasten(&mut self) {
        self.hastened |= self.batch.is_some() || self.round.is_some();
    }

    /// Stops new rounds of merges if `held` is true, because a checkpoint is requested; allows them
    /// again if it is false.
    pub fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Writes all logs to disk, except what a job has.
    ///
    /// # Errors
    /// Returns an error of the disk, such as a full one. Nothing is lost or doubled: call again.
    pub fn write(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        if self.logs().any(|log| log.waiting_bytes() > 0) {
            self.files.sweep(disk)?;
        }
        self.logs().try_for_each(|log| log.write(disk))
    }

    /// Returns the next job, if one is due and none is running. Call it after the offers of each
    /// turn and after each result.
    ///
    /// # Errors
    /// Returns an error of the disk; then nothing has changed.
    pub fn job(&mut self, disk: &mut dyn Disk) -> Result<Option<SeenJob>, disk::Error> {
        let Some(crawl) = self.settings.crawl.filter(|_| !self.is_working) else {
            return Ok(None);
        };
        if self.logs().any(|log| log.is_due()) {
            self.files.sweep(disk)?;
        }
        let task = loop {
            let failed = self.failed.take().map(|task| *task);
            if let Some(task) = failed.or_else(|| self.next_bucket()).or_else(|| self.next_step()) {
                break Some(task);
            }
            if !self.is_due() {
                break None;
            }
            self.begin(disk)?;
        };
        if task.is_some() {
            self.job_data.set_task(task.as_ref());
        }
        let removable = self.files.removable();
        let tails = self.tails(task.is_some());
        if task.is_none() && removable.is_empty() && tails.is_empty() {
            return Ok(None);
        }
        (self.is_working, self.is_writing) = (true, !tails.is_empty());
        let task = Box::new(task.unwrap_or(Task::Nothing));
        Ok(Some(SeenJob { disk: disk.handle(), crawl, removable, tails, task }))
    }

    /// Processes the result of a job that [`Seen::job`] returned.
    ///
    /// # Errors
    /// After an error of the disk, [`Seen::job`] returns the same job again, so the crawl can
    /// continue if the disk recovers. After damage of a file the crawl can't continue.
    pub fn worked(&mut self, done: SeenDone) -> Result<(), frame::Error> {
        (self.is_working, self.is_writing) = (false, false);
        let SeenDone { removable, remove_error, tails, task, result } = done;
        removable.into_iter().for_each(|name| self.files.release(name));
        for tail in tails {
            let log = self.logs().find(|log| log.name() == tail.name());
            log.expect("logs stay while a job is out").take_back(tail);
        }
        if result.is_err() {
            self.failed = Some(task);
            return result;
        }
        self.job_data.set_task(None);
        match *task {
            Task::Nothing => {}
            Task::Create(creation) => self.created(&creation),
            Task::Merge(mut merging) => self.merged(&mut merging),
            Task::Read(mut reading) => {
                self.totals.merge_read_bytes += reading.bytes;
                self.fresh.fill(std::mem::take(&mut reading.found));
                self.round.as_mut().expect("it is read for a round").read(reading);
            }
        }
        self.end_round();
        remove_error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Returns whether no batch is being merged or extracted and nothing is being written, so that
    /// the state can be marked. While held, this state is reached by itself; offers may wait.
    pub fn is_quiet(&self) -> bool {
        let moving = matches!(self.known, Known::Moving { .. });
        !moving && self.round.is_none() && self.fresh.is_dry() && !self.is_writing
    }

    /// Returns whether more URLs wait than there is memory for: the caller should hold back offers
    /// until jobs and the disk have caught up.
    pub fn is_overloaded(&self) -> bool {
        // The memory is divided into 32 shares. The table has 28 of them, and the URLs that wait
        // until the table is converted have one. The rest is for jobs (the keys of a bucket in two
        // orders), and for the overhead of the allocator.
        let share = self.settings.memory_bytes / 32;
        let most = match &self.known {
            Known::Memory(_) | Known::Moving { .. } => 29 * share,
            Known::Disk(_) => 26 * share,
        };
        let log_bytes = self.batch.as_ref().map_or(0, |batch| batch.log.waiting_bytes());
        // If the log can't be written as fast as it grows, offers are held back early, because its
        // memory grows by reallocation.
        let is_late = log_bytes > (2 * share).max(OVERLOAD_BYTES_MIN);
        is_late || self.memory_bytes() > most.max(OVERLOAD_BYTES_MIN)
    }

    /// Returns whether a job is running; a look-up may wait for it.
    pub fn is_working(&self) -> bool {
        self.is_working
    }

    /// Returns the number of known fingerprints.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no fingerprint is known.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether a cap is reached: on fingerprints, or on memory if no disk is used.
    pub fn is_full(&self) -> bool {
        let memory = matches!(&self.known, Known::Memory(memory) if memory.is_full);
        self.len >= self.settings.urls_max || memory && self.settings.crawl.is_none()
    }

    /// Returns the number of URLs dropped because a cap was reached. These are new URLs and, once
    /// the fingerprints are on disk, all URLs that are not in the cache.
    pub fn dropped(&self) -> u64 {
        self.totals.dropped
    }

    /// Returns the counters of the seen-set.
    pub fn totals(&self) -> Totals {
        let known = self.len as u64;
        let on_disk = match &self.known {
            Known::Memory(_) => 0,
            Known::Moving { buckets, .. } | Known::Disk(buckets) => keys_of(buckets),
        };
        let merging = self.round.as_ref().map_or(0, Round::keys);
        let waiting = (self.waiting_urls() + merging) as u64;
        Totals { known, on_disk, waiting, ..self.totals }
    }

    /// Returns the logs of the table, the current round and the batch, as far as they exist.
    fn logs(&mut self) -> impl Iterator<Item = &mut Log> {
        let keys = match &mut self.known {
            Known::Memory(memory) => memory.log.as_mut(),
            Known::Moving { .. } | Known::Disk(_) => None,
        };
        let round = self.round.as_mut().map(|round| &mut round.log);
        let batch = self.batch.as_mut().map(|batch| &mut batch.log);
        [keys, round, batch].into_iter().flatten()
    }

    /// Returns the tails of logs that the next job must write: those of the log that the round will
    /// read, and long ones. While new rounds are stopped ([`Seen::hold`]), no other tails are
    /// handed out.
    fn tails(&mut self, has_task: bool) -> Vec<Tail> {
        let mut tails = Vec::new();
        if let Some(round) = &mut self.round {
            tails.extend(round.log.hand_out());
        }
        if has_task || !self.held {
            tails.extend(self.logs().filter(|log| log.is_due()).filter_map(Log::hand_out));
        }
        tails
    }

    fn waiting_urls(&self) -> usize {
        self.batch.as_ref().map_or(0, Batch::len)
    }

    /// Lets a new URL, whose fingerprint was added to the table, come out.
    fn admit(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.len += 1;
        log::push_body(&mut self.fresh.bytes, write);
        let (Known::Memory(memory), Some(crawl)) = (&mut self.known, self.settings.crawl) else {
            return;
        };
        let log = memory.log.get_or_insert_with(|| {
            let name = format!("{FOLDER}/keys-{}", self.files.next_serial());
            Log::new(name, Role::Keys, crawl)
        });
        log.add_key(key);
    }

    /// Records that memory is full: from now on URLs wait for the test on disk.
    fn overflow(&mut self) {
        if let Known::Memory(memory) = &mut self.known {
            memory.is_full = true;
        }
        let entries_log2 = self.settings.cache_entries_log2;
        if entries_log2 > 0 && self.cache.is_none() {
            self.cache = Some(Cache::new(entries_log2, Replacement::Clock, 0));
        }
    }

    /// Adds an offered URL to the batch, unless its key is in the cache.
    fn defer(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.totals.cache_lookups_of_run += u64::from(self.cache.is_some());
        if self.cache.as_mut().is_some_and(|cache| cache.touch(key)) {
            self.totals.hits += 1;
            self.totals.cache_hits_of_run += 1;
            return;
        }
        let crawl = self.settings.crawl.expect("only a crawl that is kept defers");
        let urls_max = self.settings.batch_urls();
        let batch = self.batch.get_or_insert_with(|| {
            let name = format!("{FOLDER}/pending-{}", self.files.next_serial());
            Batch::new(Log::new(name, Role::Pending, crawl), urls_max)
        });
        batch.push(key, write);
    }

    /// Returns whether the table must be moved to disk, or a round of merges must begin.
    fn is_due(&self) -> bool {
        let idle = !self.held && self.round.is_none();
        idle && match &self.known {
            Known::Memory(memory) => memory.is_full,
            Known::Moving { .. } => false,
            Known::Disk(_) => {
                let large = self.waiting_urls() >= self.settings.batch_urls();
                self.batch.is_some() && (large || self.hastened)
            }
        }
    }

    /// Begins to move the table to disk, or begins a round of merges.
    fn begin(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.files.sweep(disk)?;
        match &mut self.known {
            Known::Memory(memory) => {
                let table = std::mem::replace(&mut memory.table, Table::new(0));
                let log = memory.log.take();
                self.known = Known::Moving { table, buckets: Vec::with_capacity(BUCKETS), log };
            }
            Known::Moving { .. } => unreachable!("nothing is due while the table moves"),
            Known::Disk(_) => self.round = self.batch.take().map(Round::new),
        }
        Ok(())
    }

    /// Returns the task that moves the next part of the table to a bucket; `None` if all parts are
    /// moved.
    fn next_bucket(&mut self) -> Option<Task> {
        let Known::Moving { table, buckets, log } = &mut self.known else { return None };
        while buckets.len() < BUCKETS {
            let number = buckets.len();
            let segments = table.take(number, BUCKET_BITS);
            if segments.iter().any(|segment| segment.keys().next().is_some()) {
                let serial = self.files.next_serial();
                return Some(Task::Create(Creation { number, serial, segments, new: None }));
            }
            buckets.push(None);
        }
        if let Some(log) = log {
            self.files.release(log.name().to_owned());
        }
        self.known = Known::Disk(std::mem::take(buckets));
        None
    }

    /// Returns the next task of the current round; `None` if there is none to do now.
    fn next_step(&mut self) -> Option<Task> {
        match self.round.as_mut()?.step(self.hastened, self.fresh.spare()) {
            Step::Wait => None,
            Step::Read(reading) => Some(Task::Read(reading)),
            Step::Merge(number, part) => {
                let Known::Disk(buckets) = &self.known else { unreachable!("rounds need buckets") };
                let (old, serial) = (buckets[number], self.files.next_serial());
                let room = self.settings.urls_max.saturating_sub(self.len) as u64;
                let merged = Merged::default();
                Some(Task::Merge(Merging { number, serial, old, part, room, merged }))
            }
        }
    }

    fn created(&mut self, creation: &Creation) {
        let Known::Moving { buckets, .. } = &mut self.known else {
            unreachable!("buckets are created while the table moves")
        };
        self.totals.merge_written_bytes += creation.new.map_or(0, |new| new.bytes);
        buckets.push(creation.new);
    }

    fn merged(&mut self, merging: &mut Merging) {
        let (number, merged) = (merging.number, &merging.merged);
        let Known::Disk(buckets) = &mut self.known else { unreachable!("rounds need buckets") };
        if let Some(new) = merged.new {
            let old = buckets[number].replace(new);
            old.iter().for_each(|old| self.files.release(bucket::name(number, old.serial)));
        }
        self.totals.merge_read_bytes += merged.read_bytes;
        self.totals.merge_written_bytes += merged.new.map_or(0, |new| new.bytes);
        self.totals.merges += 1;
        self.totals.dropped += merged.dropped;
        self.len += merged.admitted;
        self.round.as_mut().expect("it is merged for a round").merged(merging);
    }

    /// Ends the current round if nothing is left to do in it.
    fn end_round(&mut self) {
        if self.round.as_ref().is_some_and(Round::is_over) {
            let round = self.round.take().expect("it is over");
            self.files.release(round.log.name().to_owned());
            self.hastened = false;
            self.totals.rounds_of_run += 1;
        }
    }
}

/// The number of fingerprints to prefetch at once: more reads than a core can have in flight.
pub const AHEAD: usize = 32;
/// The size up to which waiting data never holds back offers, in bytes.
const OVERLOAD_BYTES_MIN: usize = 1 << 20;

fn keys_of(buckets: &[Option<Bucket>]) -> u64 {
    buckets.iter().flatten().map(|bucket| bucket.keys).sum()
}
