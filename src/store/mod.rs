//! The archive: which fetches become which records, in which file; the index and the crawl log.
//!
//! A capture is what a server was asked and what it answered, verbatim. It becomes a `request`
//! record (on demand) and behind it a `response` record, or a `revisit` record if the same payload
//! was stored before; a line of the index points to the latter. Files, relative to the job:
//!
//! ```text
//! warc/PREFIX-20261120093849-00000.warc.gz    .open behind it while it grows
//! index/PREFIX-20261120093849-00000.cdxj      likewise; in order of capture until it is sorted
//! crawl.log                                   one line an attempt, kept or not: see log
//! ```
//!
//! What it promises:
//! - *Verbatim*: head, framing and content coding as they came. WARC-Payload-Digest is over the
//!   body without its transfer coding (RFC 9112, section 7), as the standard means it; readers
//!   that take it over the chunks (warcio's `check` does) report chunked responses.
//! - *A name without `.open` is final*: such a file is whole, durable and, where checkpoints are
//!   made, known to one in all that it holds ([`Store::release`]). It may be taken away.
//! - *Committed means durable*: bytes wait in memory, reach the disk in pieces, and are synced by
//!   a job every `sync_period`, records before index before log. [`Totals::committed`] counts what
//!   no crash can take back; what it can take is cut by the next [`Store::open`], see `recover`.
//! - *An error changes nothing*: a capture that met a full disk was not kept, and can be offered
//!   again. A file whose only capture met one holds its opening record alone, and has no index.
//! - *Bounded*: buffers of `buffer_bytes` a file, and two that a record which gets compressed may
//!   grow to its length, at most `gzip_bytes_max`, and that are given back; a longer response is
//!   never copied whole, it goes to the disk in pieces. An index of at most `index_bytes_max` a
//!   file; some 250 bytes a remembered payload.
//!
//! Laws: no file is written over; file, offset and length in a [`Receipt`] and in the index are
//! those of the record; a WARC file is at most `file_bytes_max` long unless one capture alone is
//! longer; the same calls give the same bytes.
//!
//! Cost of a capture: one compression, two digests, one copy, in that order of weight (of 17 KB:
//! 71, 18 and 1 us), and 1.5 us for its fields, its line and the look-up of its payload; nothing
//! is allocated but a date's text once a second and once a repeat. Its request takes 9 us and 490
//! bytes more, of 101 us and 6.2 KB in all; 0.5 us without gzip. A response past `gzip_bytes_max`
//! is wrapped without compressing, so that it holds the loop up by its digests alone (two, at
//! about 0.6 ms a MB); one whose payload is compressed already likewise: compressing it again would
//! run at half speed and save nothing. A line of the log takes less than a microsecond.
//! Source: WARC 1.1 (ISO 28500:2017); the proposed fields WARC-Protocol and WARC-Cipher-Suite.

pub mod cdxj;
pub mod digest;
pub mod job;
pub mod log;

mod capture;
mod log_file;
mod recall;
mod records;
mod recover;
mod repair;
mod replay;
mod reread;
mod room;
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
use digest::{First, Repeats};
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
    repeats: Repeats,
    /// URL of a repeat's first record.
    first_url: Vec<u8>,
    /// The file that grows; none before the first capture.
    segment: Option<Segment>,
    /// Files that are full and not settled yet, oldest first.
    full: Vec<Full>,
    /// Files of lower serial numbers may get their final names.
    released: u32,
    log: LogFile,
    /// The next file's.
    serial: u32,
    outstanding: Option<Outstanding>,
    tickets: u64,
    last_sync: Instant,
    /// Something was written since the last job went out.
    dirty: bool,
    totals: Totals,
    cut: Cut,
    /// Bytes of the capture that could not be kept, about: 0 if all could.
    wanted_bytes: usize,
}

/// What the job under way will have made durable.
#[derive(Debug)]
struct Outstanding {
    ticket: u64,
    full: usize,
    files: Vec<String>,
    captures: u64,
    log_lines: u64,
}

/// Counters of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Captures kept.
    pub captures: u64,
    /// Captures that are durable, index line included: the first so many.
    pub committed: u64,
    /// Captures kept as `revisit` records.
    pub revisits: u64,
    /// Captures that hold less than the server had to give.
    pub truncated: u64,
    /// Records of all types.
    pub records: u64,
    /// WARC files begun.
    pub files: u64,
    /// Bytes of records before compression.
    pub raw_bytes: u64,
    /// Bytes of WARC files.
    pub warc_bytes: u64,
    /// Bytes of index lines.
    pub index_bytes: u64,
    /// Lines in the crawl log.
    pub log_lines: u64,
    /// Bytes of those lines.
    pub log_bytes: u64,
    /// Lines that are durable: the first so many.
    pub log_synced: u64,
    /// Jobs that synced what there was.
    pub syncs: u64,
}

impl Store {
    /// Opens the archive in the job directory. What an earlier run left open is cut to what is
    /// whole and settled by the next job; numbering goes on. Ids are drawn from `seed` and `now`.
    pub fn open(
        settings: Settings,
        identity: Identity,
        seed: u64,
        disk: &mut dyn Disk,
        now: UnixTime,
    ) -> Result<Self, Error> {
        Self::open_since(Position::default(), settings, identity, seed, disk, now)
    }

    /// The same where all before `durable` is known to be whole: only what is behind it is read.
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
            log_clock: log::Clock::default(),
            surt: Surt::default(),
            repeats: Repeats::new(settings.revisit_names_max),
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
        store.recall(disk)?;
        Ok(store)
    }

    /// Keeps a capture; `None` if the settings don't want it. On an error nothing was kept.
    pub fn keep(
        &mut self,
        capture: &Capture<'_>,
        disk: &mut dyn Disk,
    ) -> Result<Option<Receipt>, Error> {
        capture.check();
        if self.settings.format == Format::None || capture.robots && !self.settings.robots {
            return Ok(None);
        }
        // Until it is kept.
        self.wanted_bytes = capture.bytes_about();
        self.flush_if_full(disk)?;
        self.ready_segment(capture, disk)?;
        let digest = self.settings.digest.of(capture.payload);
        let first = self.find_first(capture, &digest);
        let receipt = self.write(capture, digest, first, disk)?;
        self.wanted_bytes = 0;
        Ok(Some(receipt))
    }

    /// Writes a line of the crawl log. On an error it waits in memory, and is not lost.
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

    /// The disk was full. Brings what waits in memory to it, and looks whether there is room for
    /// the capture that it could not take. On an error all waits on.
    pub fn try_again(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        self.flush(disk)?;
        room::probe(self.wanted_bytes, disk)?;
        self.wanted_bytes = 0;
        Ok(())
    }

    /// When the next job is due; `None` if there is nothing to sync or a job is under way.
    pub fn next_sync(&self) -> Option<Instant> {
        let waiting = self.dirty && self.outstanding.is_none();
        waiting.then(|| self.last_sync + self.settings.sync_period)
    }

    /// Whether a job is due.
    pub fn due(&self, at: Instant) -> bool {
        self.next_sync().is_some_and(|next| next <= at)
    }

    /// Flushes and hands out the job that makes durable what was kept so far, due or not; `None`
    /// as for [`Store::next_sync`]. Its answer belongs to [`Store::synced`].
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

    /// Takes the answer of the job. After an error it is not known what is durable: the caller
    /// should stop; a later job tries all of it again.
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

    /// Ends the archive: flushes, and hands out the job that syncs all, and closes the files that
    /// are released; `None` if that is done. No other job may be under way. After an error, here or
    /// in the answer, it can be called again.
    pub fn close(&mut self, at: Instant, disk: &mut dyn Disk) -> Result<Option<StoreJob>, Error> {
        assert!(self.outstanding.is_none(), "the last job's answer comes before the end");
        self.flush(disk)?;
        self.retire();
        self.sync_job(at, disk)
    }

    /// Full files before this one may get their final names, no others: what they hold is known
    /// without them. As long as nobody calls this, all may.
    pub fn release(&mut self, serial: u32) {
        self.released = serial;
        let some = self.releasable().next().is_some();
        self.dirty |= some;
    }

    fn releasable(&self) -> impl Iterator<Item = &Full> {
        self.full.iter().take_while(|full| full.serial() < self.released)
    }

    /// Counters of this run.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What [`Store::open`] had to cut.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// The segment's files and the log, whatever is due of them.
    fn flush(&mut self, disk: &mut dyn Disk) -> Result<(), Error> {
        let kept_bytes = 2 * self.settings.buffer_bytes;
        if let Some(segment) = &mut self.segment {
            segment.flush(disk, kept_bytes)?;
        }
        // What a job has been told to sync must keep its name until then.
        let may_rotate = self.outstanding.is_none();
        self.log.flush(may_rotate, disk, kept_bytes)?;
        Ok(())
    }

    /// The crawl log begins a new file as soon as that can be.
    pub fn rotate_log(&mut self) {
        self.log.want_rotation();
        self.dirty = true;
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
        // A job that failed half-way may have settled some; the log may not have begun.
        let mut there = Vec::new();
        for name in files {
            if disk.len(&name)?.is_some() {
                there.push(name);
            }
        }
        let full = self.releasable().cloned().collect();
        Ok(StoreJob { disk: disk.handle(), files: there, full, ticket: self.tickets })
    }

    /// The file that grows is full.
    fn retire(&mut self) {
        self.full.extend(self.segment.take().map(|segment| segment.full));
        self.dirty |= !self.full.is_empty();
    }

    /// Sees to it that there is a file with room for the capture.
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

    /// The record that holds the same payload already.
    fn find_first(&mut self, capture: &Capture<'_>, digest: &Digest) -> Option<First> {
        self.first_url.clear();
        if !capture.can_repeat() {
            return None;
        }
        let first = self.repeats.find(digest, &mut self.first_url);
        first.filter(|first| first.chunked == capture.chunked)
    }

    /// Builds the records and the line.
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
            self.repeats.add(digest, capture.url, First { id: Some(id), date, chunked });
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

    /// Appends the request, then the response or the reference, both or neither; what it says is
    /// of the latter.
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

    /// Appends the line of the index: from here on the capture counts.
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
