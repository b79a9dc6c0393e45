//! The duplicate URL eliminator: each URL passes once.
//!
//! URLs are offered as fingerprints with opaque bytes; those never seen before come out of
//! [`Seen::fresh`]. As long as all fingerprints fit into memory the answer is there at once, and
//! first-timers come out in order of arrival. Past that they lie in sorted buckets on disk, and
//! the test takes three steps: a cache of fingerprints met of late drops most repeats; the others
//! wait in a batch, their keys in memory and their bytes in a log; when the batch is large (or the
//! frontier starves, [`Seen::hasten`]), jobs merge it with the buckets, one by one, and then read
//! its first-timers from the log, in order of arrival within the batch. Meanwhile the next fills.
//!
//! Files, under `state/seen/`, made of frames ([`crate::ground::frame`]):
//!
//! ```text
//! keys-N        fingerprints in order of arrival, while they are in memory; grows
//! pending-N     URLs of a batch in order of arrival; grows
//! bucket-BB-N   sorted fingerprints; written once, replaced by one of a higher number
//! ```
//!
//! Laws: of all offers with one fingerprint exactly the first comes out, or is counted as dropped
//! when a cap is reached; whatever fails on the disk, nothing is lost or doubled, and the step can
//! be tried again; a crawl restored from a mark answers as the one that was marked.
//! Cost (measured by `bench/seen.rs`): in memory one probe, which is a miss or two of the
//! processor's caches, and 10 to 15 bytes a fingerprint. On disk, beside the cache: 8 bytes of
//! memory an offer of the batch, some 20 ns of the loop, and, on the side thread, its share of a
//! merge, which moves 10 bytes of disk for each fingerprint known: `10 x known / batch`.
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
mod merge;
mod round;
mod sort;
mod table;
#[cfg(test)]
mod tests;
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
use merge::{Founding, Merged, Merging};
use round::{Round, Step};
use serde::Serialize;
use table::{Insertion, Table};

/// Settings of the station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Fingerprints kept, in memory and on disk.
    pub urls_max: usize,
    /// Bytes for fingerprints in memory: all of them as long as they fit, then those of a batch.
    pub memory_bytes: usize,
    /// Entries of the cache before the test on disk, as a power of two; 0: no cache.
    pub cache_entries_log2: u32,
    /// Number of the crawl whose files are kept under `state/`; `None`: nothing goes to the disk.
    pub crawl: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { urls_max: 50_000_000, memory_bytes: 256 << 20, cache_entries_log2: 20, crawl: None }
    }
}

impl Settings {
    /// An eighth is left for what is being written and sorted.
    fn table_bytes(&self) -> usize {
        self.memory_bytes / 8 * 7
    }

    /// URLs of a batch that is to be merged: a sixteenth more is for the next one to begin with.
    fn batch_urls(&self) -> usize {
        let urls = self.memory_bytes / 8 * 6 / ENTRY_BYTES;
        urls.clamp(1, u32::MAX as usize / 2)
    }
}

/// All fingerprints seen, URLs that wait for their test, and first-timers that wait to be taken.
#[derive(Debug)]
pub struct Seen {
    settings: Settings,
    known: Known,
    /// Fingerprints known: of URLs that came out, or will.
    len: usize,
    /// There from the moment on at which memory was full, if it is wanted.
    cache: Option<Cache>,
    /// URLs that wait for the next round; never empty.
    batch: Option<Batch>,
    round: Option<Round>,
    fresh: Fresh,
    files: Files,
    /// A job is out.
    is_working: bool,
    /// It has the end of a log.
    is_writing: bool,
    /// What a job that failed was to do.
    failed: Option<Box<Task>>,
    /// What of the keys a job has.
    hand: lookup::Hand,
    held: bool,
    hastened: bool,
    totals: Totals,
}

/// Where the fingerprints are.
#[derive(Debug)]
enum Known {
    /// All in a table.
    Memory(Memory),
    /// The table is becoming buckets.
    Moving {
        table: Table,
        buckets: Vec<Option<Bucket>>,
        /// Its file, which goes when that is done.
        log: Option<Log>,
    },
    /// In buckets.
    Disk(Vec<Option<Bucket>>),
}

#[derive(Debug)]
struct Memory {
    table: Table,
    /// The same keys in order of arrival, if the crawl is kept; comes into being with the first.
    log: Option<Log>,
    /// A key has found no room.
    is_full: bool,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Fingerprints known.
    pub known: u64,
    /// Those of them that are on disk only.
    pub on_disk: u64,
    /// URLs that wait for their test, repeats included.
    pub waiting: u64,
    /// URLs offered.
    pub checks: u64,
    /// Of them, repeats told by the cache.
    pub hits: u64,
    /// URLs dropped because a cap was reached.
    pub dropped: u64,
    /// Buckets merged.
    pub merges: u64,
    /// Bytes that merges read: buckets and logs.
    pub merge_read_bytes: u64,
    /// Bytes that merges wrote.
    pub merge_written_bytes: u64,
}

impl Seen {
    /// Nothing seen.
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
            hand: lookup::Hand::default(),
            held: false,
            hastened: false,
            totals: Totals::default(),
        }
    }

    /// Asks memory for what the offers of these will read, some [`AHEAD`] at once: no miss of the
    /// processor's caches then waits for the one before.
    pub fn look_ahead(&self, fingerprints: &[Fingerprint]) {
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

    /// Offers a URL; if it is new, the bytes that `write` appends will come out of
    /// [`Seen::fresh`]. They are not asked for if the URL is known to be none. Doesn't touch the
    /// disk: bytes wait in memory for a job, or for [`Seen::write`].
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
                    Insertion::New => return self.let_in(key, write),
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

    /// Takes the next first-timer's bytes. When there are none, a job may bring more.
    pub fn fresh(&mut self) -> Option<&[u8]> {
        self.fresh.next()
    }

    /// Whether there is a next first-timer at once.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_dry()
    }

    /// The frontier starves: what waits is to be merged now, and comes out as early as it can.
    pub fn hasten(&mut self) {
        self.hastened |= self.batch.is_some() || self.round.is_some();
    }

    /// Begins no new round of merges (a checkpoint is wanted), or does so again.
    pub fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Brings all bytes that wait to the disk, but for those that a job has. On an error (a full
    /// disk) nothing is lost or doubled: to be called again.
    pub fn write(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        if self.logs().any(|log| log.waiting_bytes() > 0) {
            self.files.sweep(disk)?;
        }
        self.logs().try_for_each(|log| log.write(disk))
    }

    /// The next job, if one is due and none is out. To be asked for after each turn's offers and
    /// each answer. On an error of the disk nothing has changed.
    pub fn job(&mut self, disk: &mut dyn Disk) -> Result<Option<SeenJob>, disk::Error> {
        let Some(crawl) = self.settings.crawl.filter(|_| !self.is_working) else {
            return Ok(None);
        };
        if self.logs().any(|log| log.is_due()) {
            self.files.sweep(disk)?;
        }
        let task = loop {
            let failed = self.failed.take().map(|task| *task);
            if let Some(task) = failed.or_else(|| self.move_on()).or_else(|| self.go_on()) {
                break Some(task);
            }
            if !self.is_due() {
                break None;
            }
            self.begin(disk)?;
        };
        if task.is_some() {
            self.hand.takes(task.as_ref());
        }
        let rubbish = self.files.rubbish();
        let tails = self.tails(task.is_some());
        if task.is_none() && rubbish.is_empty() && tails.is_empty() {
            return Ok(None);
        }
        (self.is_working, self.is_writing) = (true, !tails.is_empty());
        let task = Box::new(task.unwrap_or(Task::Nothing));
        Ok(Some(SeenJob { disk: disk.handle(), crawl, rubbish, tails, task }))
    }

    /// A job's answer. After an error of the disk the job will be handed out again when
    /// [`Seen::job`] is asked; the crawl can go on if the disk can. After damage it can't.
    pub fn worked(&mut self, done: SeenDone) -> Result<(), frame::Error> {
        (self.is_working, self.is_writing) = (false, false);
        let SeenDone { rubbish, stuck, tails, task, result } = done;
        rubbish.into_iter().for_each(|name| self.files.let_go(name));
        for tail in tails {
            let log = self.logs().find(|log| log.name() == tail.name());
            log.expect("logs stay while a job is out").take_back(tail);
        }
        if result.is_err() {
            self.failed = Some(task);
            return result;
        }
        self.hand.takes(None);
        match *task {
            Task::Nothing => {}
            Task::Found(founding) => self.founded(&founding),
            Task::Merge(mut merging) => self.merged(&mut merging),
            Task::Read(mut reading) => {
                self.totals.merge_read_bytes += reading.bytes;
                self.fresh.fill(std::mem::take(&mut reading.found));
                self.round.as_mut().expect("it is read for a round").read(reading);
            }
        }
        self.end_round();
        stuck.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Whether every offer has its answer, and all first-timers were taken.
    pub fn is_settled(&self) -> bool {
        self.batch.is_none() && self.round.is_none() && self.fresh.is_dry()
    }

    /// Whether no batch is being merged or let out and nothing written: a moment that can be
    /// marked. While held, it comes by itself; offers may wait.
    pub fn is_quiet(&self) -> bool {
        let moving = matches!(self.known, Known::Moving { .. });
        !moving && self.round.is_none() && self.fresh.is_dry() && !self.is_writing
    }

    /// Whether more waits than there is memory for: offers are better kept back until jobs and the
    /// disk have caught up.
    pub fn is_sated(&self) -> bool {
        // Of 32 shares the table has 28, what waits behind it one, until it gives way. The rest is
        // for jobs (a bucket's keys in two orders), and for what the allocator loses.
        let share = self.settings.memory_bytes / 32;
        let (known_bytes, most) = match &self.known {
            Known::Memory(memory) => {
                let log_bytes = memory.log.as_ref().map_or(0, Log::waiting_bytes);
                (memory.table.bytes() + log_bytes, 29 * share)
            }
            Known::Moving { table, .. } => (table.bytes(), 29 * share),
            Known::Disk(_) => (0, 26 * share),
        };
        let batch_bytes = self.batch.as_ref().map_or(0, Batch::memory_bytes);
        let log_bytes = self.batch.as_ref().map_or(0, |batch| batch.log.waiting_bytes());
        let round_bytes = self
            .round
            .as_ref()
            .map_or(0, |round| round.keys() * ENTRY_BYTES + round.log.waiting_bytes());
        // What can't be written as fast as it comes is held back early: its memory grows by moves.
        let is_late = log_bytes > (2 * share).max(SATED_BYTES_MIN);
        is_late || known_bytes + batch_bytes + round_bytes > most.max(SATED_BYTES_MIN)
    }

    /// Whether a job is out: it may have what a look-up waits for.
    pub fn is_working(&self) -> bool {
        self.is_working
    }

    /// Fingerprints known.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a cap is reached: on fingerprints, or on memory if there is only that.
    pub fn is_full(&self) -> bool {
        let memory = matches!(&self.known, Known::Memory(memory) if memory.is_full);
        self.len >= self.settings.urls_max || memory && self.settings.crawl.is_none()
    }

    /// URLs dropped because of that: new ones, and on disk all that the cache doesn't know.
    pub fn dropped(&self) -> u64 {
        self.totals.dropped
    }

    /// What was counted so far.
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

    /// The logs that offers go to, and that of the round.
    fn logs(&mut self) -> impl Iterator<Item = &mut Log> {
        let keys = match &mut self.known {
            Known::Memory(memory) => memory.log.as_mut(),
            Known::Moving { .. } | Known::Disk(_) => None,
        };
        let round = self.round.as_mut().map(|round| &mut round.log);
        let batch = self.batch.as_mut().map(|batch| &mut batch.log);
        [keys, round, batch].into_iter().flatten()
    }

    /// What the next job is to write: what the round will read, and where much waits. Nothing new
    /// is begun while held.
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

    /// A first-timer whose fingerprint went into the table.
    fn let_in(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
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

    /// Memory is full: what is new from here on waits for the disk.
    fn overflow(&mut self) {
        if let Known::Memory(memory) = &mut self.known {
            memory.is_full = true;
        }
        let entries_log2 = self.settings.cache_entries_log2;
        if entries_log2 > 0 && self.cache.is_none() {
            self.cache = Some(Cache::new(entries_log2, Replacement::Clock, 0));
        }
    }

    /// Puts an offer into the batch, unless the cache knows it.
    fn defer(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if self.cache.as_mut().is_some_and(|cache| cache.touch(key)) {
            self.totals.hits += 1;
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

    /// Whether the table is to move, or a round to begin.
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

    /// Begins what is due.
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

    /// The next bucket that the table becomes.
    fn move_on(&mut self) -> Option<Task> {
        let Known::Moving { table, buckets, log } = &mut self.known else { return None };
        while buckets.len() < BUCKETS {
            let number = buckets.len();
            let segments = table.take(number, BUCKET_BITS);
            if segments.iter().any(|segment| segment.keys().next().is_some()) {
                let serial = self.files.next_serial();
                return Some(Task::Found(Founding { number, serial, segments, new: None }));
            }
            buckets.push(None);
        }
        if let Some(log) = log {
            self.files.let_go(log.name().to_owned());
        }
        self.known = Known::Disk(std::mem::take(buckets));
        None
    }

    /// The round's next step.
    fn go_on(&mut self) -> Option<Task> {
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

    fn founded(&mut self, founding: &Founding) {
        let Known::Moving { buckets, .. } = &mut self.known else {
            unreachable!("buckets are founded while the table moves")
        };
        self.totals.merge_written_bytes += founding.new.map_or(0, |new| new.bytes);
        buckets.push(founding.new);
    }

    fn merged(&mut self, merging: &mut Merging) {
        let (number, merged) = (merging.number, &merging.merged);
        let Known::Disk(buckets) = &mut self.known else { unreachable!("rounds need buckets") };
        if let Some(new) = merged.new {
            let old = buckets[number].replace(new);
            old.iter().for_each(|old| self.files.let_go(bucket::name(number, old.serial)));
        }
        self.totals.merge_read_bytes += merged.read_bytes;
        self.totals.merge_written_bytes += merged.new.map_or(0, |new| new.bytes);
        self.totals.merges += 1;
        self.totals.dropped += merged.dropped;
        self.len += merged.admitted;
        self.round.as_mut().expect("it is merged for a round").merged(merging);
    }

    /// Ends the round if there is nothing left to do.
    fn end_round(&mut self) {
        if self.round.as_ref().is_some_and(Round::is_over) {
            let round = self.round.take().expect("it is over");
            self.files.let_go(round.log.name().to_owned());
            self.hastened = false;
        }
    }
}

/// Offers to [`Seen::look_ahead`] at: more reads than a core has room for.
pub const AHEAD: usize = 32;
/// Below this much, what waits is never too much.
const SATED_BYTES_MIN: usize = 1 << 20;

fn keys_of(buckets: &[Option<Bucket>]) -> u64 {
    buckets.iter().flatten().map(|bucket| bucket.keys).sum()
}
