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

#[cfg(test)]
mod tests;

pub use capture::{Capture, Receipt, Tls, Truncated};
pub use digest::{Algorithm, Digest};
pub use recover::Cut;
pub use repair::{Finding, HeadFacts, ReadHead, Repaired, repair};
pub use replay::{Kept, Place, Position, Reply};
pub use reread::{Reread, Step};
pub use settings::{Error, Format, Identity, Settings};

use crate::ground::disk::Disk;
use crate::ground::tail::{Outlet, Tail};
use crate::ground::time::{Instant, UnixTime};
use capture::{Known, Ready};
use digest::{First, RevisitIndex};
use job::{Full, StoreDone, StoreJob};
use log_file::LogFile;
pub use log_file::parts as log_parts;
use segment::Segment;
use serde::Serialize;
use std::rc::Rc;
use surt::Surt;

use text::Stamps;
use warc::{Ids, Kind, Packed, Packer, Record, RecordId};

/// The archive of one job.
#[derive(Debug)]
pub struct Store {
    settings: Settings,
    identity: Identity,
    ids: Ids,
    packer: Packer,
    stamps: Stamps,
    log_clock: log::Clock,
    surt: Surt,
    revisit_index: RevisitIndex,
    /// The URL of the earlier record to which a `revisit` record refers; a buffer that is reused.
    first_url: Vec<u8>,
    /// The WARC file that grows now, with its index; `None` before the first capture.
    segment: Option<Segment>,
    /// Full WARC files with their indexes that are not closed yet, oldest first.
    full: Vec<Full>,
    /// The release limit: full files with serial numbers below this one may be closed.
    released: u32,
    log: LogFile,
    /// The serial number of the next WARC file.
    serial: u32,
    outstanding: Option<Outstanding>,
    tickets: u64,
    last_sync: Instant,
    /// True if anything was written since the last job began.
    dirty: bool,
    totals: Totals,
    cut: Cut,
    /// An estimate of the length of the capture that could not be stored because the disk was full,
    /// in bytes; 0 if there is none.
    wanted_bytes: usize,
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
        let mut store = Self {
            identity,
            ids: Ids::new(start),
            packer: Packer::new(settings.gzip_level, settings.gzip_bytes_max),
            stamps: Stamps::default(),
            log_clock: log::Clock::new(now),
            surt: Surt::default(),
            revisit_index: RevisitIndex::new(settings.revisit_names_max),
            first_url: Vec::new(),
            segment: None,
            dirty: !found.full.is_empty(),
            full: found.full,
            released: u32::MAX,
            log: LogFile::open(settings.log_bytes_max, disk)?,
            serial: found.serial,
            outstanding: None,
            tickets: 0,
            last_sync: Instant::ZERO,
            totals: Totals::default(),
            cut: found.cut,
            wanted_bytes: 0,
            settings,
        };
        store.load_revisit_index(disk)?;
        Ok(store)
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
        capture.check();
        if self.settings.format == Format::None || capture.robots && !self.settings.robots {
            return Ok(None);
        }
        // This value stays until the capture is stored.
        self.wanted_bytes = capture.bytes_about();
        self.flush_if_full(disk)?;
        self.ready_segment(capture, disk)?;
        let digest = self.settings.digest.of(capture.payload);
        let first = self.find_first(capture, &digest);
        let receipt = self.write(capture, digest, first, disk)?;
        self.wanted_bytes = 0;
        Ok(Some(receipt))
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
    /// the capture that failed now fits.
    ///
    /// # Errors
    /// Returns an error of the disk; everything still waits.
    pub fn try_again(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        self.flush(disk)?;
        free_space::probe(self.wanted_bytes, disk)?;
        self.wanted_bytes = 0;
        Ok(())
    }

    /// Returns the time at which the next job is due; `None` if there is nothing to sync or a job
    /// is running.
    pub fn next_sync(&self) -> Option<Instant> {
        let waiting = self.dirty && self.outstanding.is_none();
        waiting.then(|| self.last_sync + self.settings.sync_period)
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
        if !self.dirty || self.outstanding.is_some() {
            return Ok(None);
        }
        self.flush(disk)?;
        self.last_sync = at;
        self.tickets += 1;
        let job = self.job(disk)?;
        self.outstanding = Some(Outstanding {
            ticket: job.ticket,
            full: job.full.len(),
            files: job.files.clone(),
            captures: self.totals.captures,
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
        let outstanding = self.outstanding.take().expect("one answer for each job");
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
        assert!(self.outstanding.is_none(), "the last job's answer comes before the end");
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
        self.totals
    }

    /// Returns what [`Store::open`] had to cut off.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// Writes the buffers of the current WARC file, its index and the crawl log to their files.
    fn flush(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        let kept_bytes = 2 * self.settings.buffer_bytes;
        if let Some(segment) = &mut self.segment {
            segment.flush(disk, kept_bytes)?;
        }
        // A file that a running job must sync has to keep its name until then.
        let may_rotate = self.outstanding.is_none();
        self.log.flush(may_rotate, disk, kept_bytes)?;
        Ok(())
    }

    /// Requests that the crawl log is rotated as soon as possible, whatever its length.
    pub fn rotate_log(&mut self) {
        self.log.want_rotation();
        self.dirty = true;
    }

    /// Ends the growing WARC file, and requests that the crawl log is rotated. The next capture
    /// begins a new file. The ended one is closed when a checkpoint contains everything in it.
    ///
    /// # Errors
    /// Returns an error of the disk; then nothing is rotated.
    pub fn rotate(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        self.flush(disk)?;
        self.retire();
        self.rotate_log();
        Ok(())
    }

    fn flush_if_full(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        let log_waits = self.log.pending().len() >= self.settings.buffer_bytes;
        let waiting = |tail: &Tail| tail.pending.len() >= self.settings.buffer_bytes;
        let segment = self.segment.as_ref();
        let full = segment.is_some_and(|segment| waiting(&segment.warc) || waiting(&segment.index));
        if full || log_waits { self.flush(disk) } else { Ok(()) }
    }

    fn job(&self, disk: &mut dyn Disk) -> Result<StoreJob, Error> {
        let mut files = Vec::new();
        for full in &self.full {
            files.extend([full.warc_open(), full.index_open()]);
        }
        if let Some(segment) = &self.segment {
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
        Ok(StoreJob { disk: disk.handle(), files: there, full, ticket: self.tickets })
    }

    /// Marks the growing WARC file as full.
    fn retire(&mut self) {
        self.full.extend(self.segment.take().map(|segment| segment.full));
        self.dirty |= !self.full.is_empty();
    }

    /// Makes sure that there is a growing WARC file with space for the capture; begins a new one if
    /// not.
    fn ready_segment(&mut self, capture: &Capture<'_>, disk: &mut dyn Disk) -> Result<(), Error> {
        let wanted = capture.bytes_max();
        let fits = |segment: &Segment| {
            let warc_fits = segment.warc.len() + wanted <= self.settings.file_bytes_max;
            let index_fits = segment.index.len() < self.settings.index_bytes_max;
            segment.captures == 0 || warc_fits && index_fits
        };
        if self.segment.as_ref().is_some_and(fits) {
            return Ok(());
        }
        if self.segment.is_some() {
            self.flush(disk)?;
        }
        let digits = self.stamps.digits(capture.started);
        let stem = segment::stem(&self.settings.prefix, digits, self.serial);
        let gzip = self.settings.gzip_level > 0;
        let info = self.ids.next();
        let mut segment = Segment::begin(&stem, gzip, info, disk)?;
        let date = self.stamps.iso(capture.started);
        let block = self.identity.fields();
        let digest = self.settings.block_digests.then(|| self.settings.digest.of(&block));
        let packed = self.packer.pack(&mut segment.warc.pending, &block, |out| {
            let mut record = Record::begin(out, Kind::Info, info, date);
            record.text("WARC-Filename", &segment.file);
            digest.iter().for_each(|digest| _ = record.digest("WARC-Block-Digest", digest));
            record.end(&block);
        });
        self.totals.add(packed);
        self.totals.files += 1;
        self.serial += 1;
        self.retire();
        self.segment = Some(segment);
        Ok(())
    }

    /// Finds the earlier record that contains the same payload; `None` if there is none.
    fn find_first(&mut self, capture: &Capture<'_>, digest: &Digest) -> Option<First> {
        self.first_url.clear();
        if !capture.can_repeat() {
            return None;
        }
        let first = self.revisit_index.find(digest, &mut self.first_url);
        first.filter(|first| first.chunked == capture.chunked)
    }

    /// Writes the records of a capture and its index line.
    fn write(
        &mut self,
        capture: &Capture<'_>,
        digest: Digest,
        first: Option<First>,
        disk: &mut dyn Disk,
    ) -> Result<Receipt, Error> {
        let id = self.ids.next();
        let packed = self.push_records(capture, id, digest, first, disk)?;
        // From here on nothing can fail.
        if first.is_none() && capture.can_repeat() {
            let Capture { started: date, chunked, .. } = *capture;
            self.revisit_index.add(digest, capture.url, First { id: Some(id), date, chunked });
        }
        self.totals.captures += 1;
        self.totals.revisits += u64::from(first.is_some());
        self.totals.truncated += u64::from(capture.truncated.is_some());
        self.dirty = true;
        let segment = self.segment.as_mut().expect("made ready before");
        segment.captures += 1;
        let receipt = Receipt {
            number: self.totals.captures,
            file: Rc::clone(&segment.file),
            offset: segment.warc.len() - packed.bytes,
            length: packed.bytes,
            digest,
            revisit: first.is_some(),
        };
        self.push_line(capture, &receipt);
        Ok(receipt)
    }

    /// Appends the request record, then the `response` or `revisit` record; on an error neither is
    /// appended. Returns the lengths of the `response` or `revisit` record.
    fn push_records(
        &mut self,
        capture: &Capture<'_>,
        id: RecordId,
        digest: Digest,
        first: Option<First>,
        disk: &mut dyn Disk,
    ) -> Result<Packed, Error> {
        let segment = self.segment.as_mut().expect("made ready before");
        let start = segment.warc.len();
        let request_id = self.ids.next();
        let first_date = first.map(|first| first.date.civil().to_seconds());
        let url = std::str::from_utf8(&self.first_url).expect("a URL was put in");
        let known = first.zip(first_date.as_deref());
        let ready = Ready {
            capture,
            date: self.stamps.iso(capture.started),
            info: segment.info,
            id,
            digest,
            first: known.map(|(first, date)| Known { id: first.id, date, url }),
            digests: self.settings.block_digests.then_some(self.settings.digest),
        };
        let pending = &mut segment.warc.pending;
        let wanted = self.settings.requests && !capture.request.is_empty();
        let request = wanted.then(|| {
            let fields = |out: &mut _| ready.push_request(out, request_id);
            self.packer.pack(pending, capture.request, fields)
        });
        let block = ready.response_block();
        let fields = |out: &mut _| ready.push_response(out);
        let response = if self.packer.compresses(block.len()) && !ready.is_packed() {
            self.packer.pack(pending, block, fields)
        } else {
            let buffer_bytes = self.settings.buffer_bytes;
            let mut out = Outlet { tail: &mut segment.warc, disk, buffer_bytes };
            let streamed = self.packer.stream(&mut out, block, fields);
            streamed.inspect_err(|_| segment.warc.take_back(start))?
        };
        request.into_iter().for_each(|packed| self.totals.add(packed));
        self.totals.add(response);
        Ok(response)
    }

    /// Appends the index line of a capture. With this line the capture counts as stored.
    fn push_line(&mut self, capture: &Capture<'_>, receipt: &Receipt) {
        let index = &mut self.segment.as_mut().expect("made ready before").index;
        let before = index.len();
        let line = cdxj::Capture {
            url: capture.url,
            stamp: self.stamps.digits(capture.started),
            mime: capture.mime,
            status: capture.status,
            digest: Some(&receipt.digest),
            revisit: receipt.revisit,
            file: &receipt.file,
            offset: receipt.offset,
            length: receipt.length,
            chunked: capture.chunked,
            truncated: capture.truncated.map(Truncated::name),
            redirect: capture.redirect,
        };
        line.push(&mut index.pending, &mut self.surt);
        self.totals.index_bytes += index.len() - before;
    }
}

impl Totals {
    fn add(&mut self, packed: Packed) {
        self.records += 1;
        self.raw_bytes += packed.raw_bytes;
        self.warc_bytes += packed.bytes;
    }
}
