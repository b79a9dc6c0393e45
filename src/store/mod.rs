//! The archive: writes captures to WARC files, the index, and the crawl log.
//!
//! A capture is the bytes of a request and of its response, unchanged. It becomes a `request`
//! record (optional) and after it a `response` record, or a `revisit` record if the same payload
//! was stored before; a line of the index points to the latter. The files, relative to the job
//! directory:
//!
//! ```text
//! warc/PREFIX-20261120093849-00000.warc.gz    with the suffix .open while it grows
//! index/PREFIX-20261120093849-00000.cdxj      likewise; in order of capture until it is sorted
//! crawl.log                                   one line an attempt, stored or not: see log
//! ```
//!
//! Guarantees:
//! - *Verbatim*: head, framing and content coding are stored as received. WARC-Payload-Digest is
//!   that of the body without its transfer coding (RFC 9112, section 7), as the standard defines
//!   it; readers that compute it over the chunks (warcio's `check` does) report chunked responses.
//! - *A name without `.open` is final*: such a file is complete, durable and, if checkpoints are
//!   made, one of them contains everything in it ([`Store::release`]). It may be moved away.
//! - *Committed means durable*: bytes wait in memory, are written in pieces, and are synced by a
//!   job every `sync_period`, records before index before log. [`Totals::committed`] counts the
//!   captures that survive any crash; the remains of others are cut off by the next
//!   [`Store::open`], see `recover`.
//! - *An error changes nothing*: a capture that failed on a full disk was not stored, and can be
//!   offered again. A file whose only capture failed contains only its first record, and has no
//!   index.
//! - *Bounded memory*: buffers of `buffer_bytes` for each file, and two that may grow to the length
//!   of a compressed record, at most `gzip_bytes_max`, and are freed again. A longer response is
//!   never copied as a whole, but written in pieces. An index takes at most `index_bytes_max` for
//!   each file, and a remembered payload some 250 bytes.
//!
//! Laws: no file is overwritten; file, offset and length in a [`Receipt`] and in the index are
//! those of the record; a WARC file is at most `file_bytes_max` long unless a single capture is
//! longer; the same calls write the same bytes.
//!
//! Cost of a capture: one compression, two digests, one copy, in order of cost (for 17 KB: 71, 18
//! and 1 us), and 1.5 us for its fields, its line and the look-up of its payload; nothing is
//! allocated but the text of a date, once a second and once for each `revisit`. Its request takes
//! another 9 us and 490 bytes, of 101 us and 6.2 KB in all; 0.5 us without gzip. A response longer
//! than `gzip_bytes_max` is stored without compressing, so that only its digests hold up the loop
//! (two, at about 0.6 ms a MB). The same is done if its payload is compressed already: compressing
//! it again would run at half speed and save nothing. A line of the log takes less than a
//! microsecond.
//! Source: WARC 1.1 (ISO 28500:2017); the proposed fields WARC-Protocol and WARC-Cipher-Suite.

pub mod cdxj;
pub mod digest;
pub mod job;
pub mod log;
pub mod write_job;

mod capture;
mod free_space;
mod log_file;
mod records;
mod recover;
mod repair;
mod replay;
mod reread;
mod revisit_index;
mod segment;
mod settings;
mod surt;
mod text;
mod warc;
mod writer;

#[cfg(test)]
mod tests;

pub use capture::{Capture, OwnCapture, Receipt, Tls, Truncated, Unmodified, Usage};
pub use digest::{Algorithm, Digest};
pub use recover::Cut;
pub use repair::{Finding, HeadFacts, ReadHead, Repaired, repair};
pub use replay::{Kept, Place, Position, Reply};
pub use reread::{Reread, Step};
pub use settings::{Error, Format, Identity, Settings};

use crate::ground::disk::Disk;
use crate::ground::time::{Instant, UnixTime};
use job::{Full, StoreDone, StoreJob};
use log_file::LogFile;
pub use log_file::parts as log_parts;
use serde::Serialize;
use std::mem;
use std::sync::Arc;
use warc::Ids;
use write_job::{WriteDone, WriteJob, Written};
use writer::Writer;

/// The archive of one job.
#[derive(Debug)]
pub struct Store {
    settings: Arc<Settings>,
    writer: WriterAt,
    /// The disk handle of jobs that write captures; `None` before the first, and during each.
    disk: Option<Box<dyn Disk>>,
    log_clock: log::Clock,
    /// Full WARC files with their indexes that are not closed yet, oldest first.
    full: Vec<Full>,
    /// The release limit: full files with serial numbers below this one may be closed.
    released: u32,
    log: LogFile,
    syncs: Syncs,
    /// True if anything was written since the last sync job began.
    dirty: bool,
    /// The counters that captures don't change; the others are zero.
    totals: Totals,
    cut: Cut,
    /// Whether the growing WARC file must end as soon as the writer is back.
    must_retire: bool,
}

/// Where the writer of captures is.
#[derive(Debug)]
enum WriterAt {
    Loop(Box<Writer>),
    /// A job has it. The counters are those at the job's start.
    Job(Totals),
}

/// The jobs that sync.
#[derive(Debug)]
struct Syncs {
    outstanding: Option<Outstanding>,
    /// The number of jobs so far.
    tickets: u64,
    /// When the last one began.
    last: Instant,
}

/// What becomes durable once the running job has succeeded.
#[derive(Debug)]
struct Outstanding {
    ticket: u64,
    full: usize,
    files: Vec<String>,
    captures: u64,
    log_lines: u64,
}

/// The counters of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The number of captures stored.
    pub captures: u64,
    /// The number of captures that are durable together with their index lines. They are the first
    /// ones: a capture is among them if its number is not greater.
    pub committed: u64,
    /// The number of captures stored as `revisit` records.
    pub revisits: u64,
    /// The number of incomplete captures.
    pub truncated: u64,
    /// The number of records of all types.
    pub records: u64,
    /// The number of WARC files begun.
    pub files: u64,
    /// The length of all records before compression, in bytes.
    pub raw_bytes: u64,
    /// The length of all WARC files, in bytes.
    pub warc_bytes: u64,
    /// The total length of all index lines, in bytes.
    pub index_bytes: u64,
    /// The number of lines written to the crawl log.
    pub log_lines: u64,
    /// The total length of the lines of the crawl log, in bytes.
    pub log_bytes: u64,
    /// The number of lines of the crawl log that are durable, counted from the first line.
    pub log_synced: u64,
    /// The number of completed sync jobs.
    pub syncs: u64,
}

impl Store {
    /// Opens the archive in the job directory. Files that an earlier run left open are truncated to
    /// their complete part, and closed by the next job; serial numbers continue. Record ids are
    /// drawn from `seed` and `now`.
    ///
    /// # Errors
    /// Returns an invalid setting, or an error of the disk.
    pub fn open(
        settings: Settings,
        identity: Identity,
        seed: u64,
        disk: &mut dyn Disk,
        now: UnixTime,
    ) -> Result<Self, Error> {
        Self::open_since(Position::default(), settings, identity, seed, disk, now)
    }

    /// Opens the archive like [`Store::open`], but only reads what follows the position `durable`.
    /// Everything before that position must be known to be complete.
    ///
    /// # Errors
    /// Returns an invalid setting, or an error of the disk.
    pub fn open_since(
        durable: Position,
        settings: Settings,
        identity: Identity,
        seed: u64,
        disk: &mut dyn Disk,
        now: UnixTime,
    ) -> Result<Self, Error> {
        settings.validate()?;
        let found = recover::recover(&settings.prefix, durable, disk)?;
        let start = Ids::new(seed).word() ^ now.as_micros();
        let settings = Arc::new(settings);
        let mut writer = Writer::new(Arc::clone(&settings), identity, start, found.serial);
        writer.load_revisit_index(disk)?;
        Ok(Self {
            writer: WriterAt::Loop(Box::new(writer)),
            disk: None,
            log_clock: log::Clock::new(now),
            dirty: !found.full.is_empty(),
            full: found.full,
            released: u32::MAX,
            log: LogFile::open(settings.log_bytes_max, disk)?,
            syncs: Syncs { outstanding: None, tickets: 0, last: Instant::ZERO },
            totals: Totals::default(),
            cut: found.cut,
            must_retire: false,
            settings,
        })
    }

    /// Stores a capture; returns `None` if the settings exclude it.
    ///
    /// # Errors
    /// Returns an error of the disk; then nothing was stored.
    pub fn keep(
        &mut self,
        capture: &Capture<'_>,
        disk: &mut dyn Disk,
    ) -> Result<Option<Receipt>, Error> {
        if !self.wants(capture) {
            return Ok(None);
        }
        let kept = self.here().keep(capture, disk);
        self.take_full();
        self.dirty |= kept.is_ok();
        kept.map(Some)
    }

    /// Returns whether the settings include a capture.
    pub fn wants(&self, capture: &Capture<'_>) -> bool {
        self.settings.format != Format::None && (self.settings.robots || !capture.robots)
    }

    /// Returns a job that stores captures; the settings must include them. The caller passes its
    /// result to [`Store::wrote`]. Until then nothing else may be stored, and lines of the crawl
    /// log wait in memory.
    pub fn write_job(&mut self, captures: Vec<OwnCapture>, disk: &dyn Disk) -> WriteJob {
        let job = WriterAt::Job(self.here().totals());
        let WriterAt::Loop(writer) = mem::replace(&mut self.writer, job) else { unreachable!() };
        let disk = self.disk.take().unwrap_or_else(|| disk.handle());
        WriteJob { disk, writer, captures }
    }

    /// Returns whether a job of [`Store::write_job`] is in progress.
    pub fn is_writing(&self) -> bool {
        matches!(self.writer, WriterAt::Job(_))
    }

    /// Processes the result of a job that [`Store::write_job`] returned. Returns what it has
    /// written, with its own error, and the error of the disk, if there was one, at writing what
    /// has waited for the job, which then still waits.
    pub fn wrote(&mut self, done: WriteDone, disk: &mut dyn Disk) -> (Written, Result<(), Error>) {
        assert!(self.is_writing(), "one result for each job");
        self.writer = WriterAt::Loop(done.writer);
        self.disk = Some(done.disk);
        self.take_full();
        self.dirty |= !done.written.receipts.is_empty();
        let flushed = if self.must_retire { self.rotate(disk) } else { self.flush_if_full(disk) };
        (done.written, flushed)
    }

    /// Returns the writer, which no job may have.
    fn here(&mut self) -> &mut Writer {
        match &mut self.writer {
            WriterAt::Loop(writer) => writer,
            WriterAt::Job(_) => panic!("a job is writing"),
        }
    }

    /// Appends a line to the crawl log.
    ///
    /// # Errors
    /// Returns an error of the disk; the line then waits in memory, and is not lost.
    pub fn note(&mut self, line: &log::Line<'_>, disk: &mut dyn Disk) -> Result<(), Error> {
        if !self.settings.log {
            return Ok(());
        }
        let pending = self.log.pending();
        let before = pending.len();
        line.push(pending, &mut self.log_clock);
        self.totals.log_lines += 1;
        self.totals.log_bytes += (pending.len() - before) as u64;
        self.dirty = true;
        self.flush_if_full(disk)
    }

    /// Tries to write everything that waits in memory after the disk was full, and checks whether
    /// the capture that failed now fits. If a job is writing captures, it finds that out.
    ///
    /// # Errors
    /// Returns an error of the disk; everything still waits.
    pub fn try_again(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        self.flush(disk)?;
        if let WriterAt::Loop(writer) = &mut self.writer {
            free_space::probe(writer.wanted_bytes(), disk)?;
            writer.has_room();
        }
        Ok(())
    }

    /// Returns the time at which the next sync job is due; `None` if there is nothing to sync or a
    /// job is running.
    pub fn next_sync(&self) -> Option<Instant> {
        let waiting = self.dirty && self.syncs.outstanding.is_none() && !self.is_writing();
        waiting.then(|| self.syncs.last + self.settings.sync_period)
    }

    /// Returns whether a job is due at the time `at`.
    pub fn due(&self, at: Instant) -> bool {
        self.next_sync().is_some_and(|next| next <= at)
    }

    /// Flushes, and returns a job that makes everything durable that was stored so far, even if it
    /// is not due yet. Returns `None` if there is nothing to sync or a job is running. The caller
    /// passes the result of the job to [`Store::synced`].
    ///
    /// # Errors
    /// Returns an error of the disk.
    pub fn sync_job(
        &mut self,
        at: Instant,
        disk: &mut dyn Disk,
    ) -> Result<Option<StoreJob>, Error> {
        if !self.dirty || self.syncs.outstanding.is_some() || self.is_writing() {
            return Ok(None);
        }
        self.flush(disk)?;
        self.syncs.last = at;
        self.syncs.tickets += 1;
        let job = self.job(disk)?;
        self.syncs.outstanding = Some(Outstanding {
            ticket: job.ticket,
            full: job.full.len(),
            files: job.files.clone(),
            captures: self.totals().captures,
            log_lines: self.totals.log_lines,
        });
        self.dirty = false;
        Ok(Some(job))
    }

    /// Processes the result of a job that [`Store::sync_job`] or [`Store::close`] returned.
    ///
    /// # Errors
    /// Returns the error of the job. It is then unknown what is durable: the caller should stop; a
    /// later job tries everything again.
    pub fn synced(&mut self, done: StoreDone) -> Result<(), Error> {
        let outstanding = self.syncs.outstanding.take().expect("one answer for each job");
        assert_eq!(outstanding.ticket, done.ticket, "the answer is that of the job under way");
        if let Err(error) = done.result {
            self.dirty = true;
            return Err(error.into());
        }
        self.full.drain(..outstanding.full);
        self.log.synced(&outstanding.files);
        self.totals.committed = outstanding.captures;
        self.totals.log_synced = outstanding.log_lines;
        self.totals.syncs += 1;
        Ok(())
    }

    /// Closes the archive: flushes, and returns the job that syncs everything and closes the full
    /// files that may be closed ([`Store::release`]). Returns `None` if nothing is left to do. No
    /// other job may be running.
    ///
    /// # Errors
    /// Returns an error of the disk. After an error, here or in the result of the job, it can be
    /// called again.
    pub fn close(&mut self, at: Instant, disk: &mut dyn Disk) -> Result<Option<StoreJob>, Error> {
        assert!(self.syncs.outstanding.is_none(), "the last job's answer comes before the end");
        self.flush(disk)?;
        self.retire();
        self.sync_job(at, disk)
    }

    /// Allows the full files with serial numbers below `serial` to be closed, and no others,
    /// because a checkpoint contains everything in them. As long as this is never called, all full
    /// files may be closed.
    pub fn release(&mut self, serial: u32) {
        self.released = serial;
        let some = self.releasable().next().is_some();
        self.dirty |= some;
    }

    fn releasable(&self) -> impl Iterator<Item = &Full> {
        self.full.iter().take_while(|full| full.serial() < self.released)
    }

    /// Returns the counters of this run.
    pub fn totals(&self) -> Totals {
        let Totals { committed, log_lines, log_bytes, log_synced, syncs, .. } = self.totals;
        let captures = match &self.writer {
            WriterAt::Loop(writer) => writer.totals(),
            WriterAt::Job(totals) => *totals,
        };
        Totals { committed, log_lines, log_bytes, log_synced, syncs, ..captures }
    }

    /// Returns what [`Store::open`] had to cut off.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// Writes the buffers of the current WARC file, its index and the crawl log to their files, in
    /// this order. While a job is writing captures, nothing is written: the log must not name
    /// records that still wait.
    fn flush(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        let WriterAt::Loop(writer) = &mut self.writer else { return Ok(()) };
        writer.flush(disk)?;
        let kept_bytes = 2 * self.settings.buffer_bytes;
        // A file that a running job must sync has to keep its name until then.
        let may_rotate = self.syncs.outstanding.is_none();
        self.log.flush(may_rotate, disk, kept_bytes)?;
        Ok(())
    }

    /// Requests that the crawl log is rotated as soon as possible, whatever its length.
    pub fn rotate_log(&mut self) {
        self.log.want_rotation();
        self.dirty = true;
    }

    /// Ends the growing WARC file, and requests that the crawl log is rotated. The next capture
    /// begins a new file. The ended one is closed when a checkpoint contains everything in it. If a
    /// job is writing captures, that happens when it is done.
    ///
    /// # Errors
    /// Returns an error of the disk; then nothing is rotated.
    pub fn rotate(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        if self.is_writing() {
            self.must_retire = true;
        } else {
            self.flush(disk)?;
            self.retire();
            self.must_retire = false;
        }
        self.rotate_log();
        Ok(())
    }

    fn flush_if_full(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        let log_waits = self.log.pending().len() >= self.settings.buffer_bytes;
        let WriterAt::Loop(writer) = &self.writer else { return Ok(()) };
        if log_waits || writer.is_flush_due() { self.flush(disk) } else { Ok(()) }
    }

    fn job(&self, disk: &mut dyn Disk) -> Result<StoreJob, Error> {
        let mut files = Vec::new();
        for full in &self.full {
            files.extend([full.warc_open(), full.index_open()]);
        }
        if let WriterAt::Loop(writer) = &self.writer
            && let Some(segment) = &writer.segment
        {
            files.extend([segment.warc.name().to_owned(), segment.index.name().to_owned()]);
        }
        files.extend(self.log.files().map(str::to_owned));
        // A job that failed half-way may have closed some files; the log may not exist yet.
        let mut there = Vec::new();
        for name in files {
            if disk.len(&name)?.is_some() {
                there.push(name);
            }
        }
        let full = self.releasable().cloned().collect();
        Ok(StoreJob { disk: disk.handle(), files: there, full, ticket: self.syncs.tickets })
    }

    /// Marks the growing WARC file as full.
    fn retire(&mut self) {
        self.here().retire();
        self.take_full();
    }

    /// Takes over the files that the writer has filled.
    fn take_full(&mut self) {
        if let WriterAt::Loop(writer) = &mut self.writer {
            writer.take_full(&mut self.full);
        }
        self.dirty |= !self.full.is_empty();
    }
}
