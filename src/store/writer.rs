//! Writes captures to the growing WARC file and its index.
//!
//! The writer has everything that the records of a capture depend on: ids, the compressor, the
//! index of payloads for `revisit` records, the buffers of both files. So it can be moved to a side
//! thread as a whole, and write there what it would have written here (see `write_job`).
//!
//! Laws: the same captures in the same order give the same bytes, wherever they are written. On an
//! error a capture is not stored, and leaves no trace.
//! Cost: see [`super`].

use super::Totals;
use super::capture::{Capture, Known, Ready, Receipt, Truncated, Unmodified};
use super::cdxj;
use super::digest::{Digest, First, RevisitIndex};
use super::job::Full;
use super::replay::Position;
use super::segment::{self, Segment};
use super::settings::{Error, Identity, Settings};
use super::surt::Surt;
use super::text::Stamps;
use super::warc::{Ids, Kind, Packed, Packer, Record, RecordId};
use crate::ground::disk::{self, Disk};
use crate::ground::tail::{Outlet, Tail};
use std::sync::Arc;

/// Writes captures to the growing WARC file and its index.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) settings: Arc<Settings>,
    identity: Identity,
    ids: Ids,
    packer: Packer,
    buffers: Buffers,
    pub(super) revisit_index: RevisitIndex,
    /// The WARC file that grows now, with its index; `None` before the first capture.
    pub(super) segment: Option<Segment>,
    /// Files that have become full, oldest first, until [`Writer::take_full`].
    full: Vec<Full>,
    /// The serial number of the next WARC file.
    serial: u32,
    /// The counters that captures change; the others are zero.
    totals: Totals,
    /// An estimate of the length of the capture that could not be stored because the disk was full,
    /// in bytes; 0 if there is none.
    wanted_bytes: usize,
}

/// What is kept from capture to capture only to be reused.
#[derive(Debug, Default)]
struct Buffers {
    stamps: Stamps,
    surt: Surt,
    /// The URL of the earlier record to which a `revisit` record refers.
    first_url: Vec<u8>,
}

impl Writer {
    /// Creates a writer whose first file has the number `serial`. Record ids are drawn from `seed`.
    pub(super) fn new(settings: Arc<Settings>, identity: Identity, seed: u64, serial: u32) -> Self {
        Self {
            identity,
            ids: Ids::new(seed),
            packer: Packer::new(settings.gzip_level, settings.gzip_bytes_max),
            buffers: Buffers::default(),
            revisit_index: RevisitIndex::new(settings.revisit_names_max),
            segment: None,
            full: Vec::new(),
            serial,
            totals: Totals::default(),
            wanted_bytes: 0,
            settings,
        }
    }

    /// Stores a capture.
    ///
    /// # Errors
    /// Returns an error of the disk; then nothing was stored.
    pub(super) fn keep(
        &mut self,
        capture: &Capture<'_>,
        disk: &mut dyn Disk,
    ) -> Result<Receipt, Error> {
        capture.check();
        // This value stays until the capture is stored.
        self.wanted_bytes = capture.bytes_about();
        if self.is_flush_due() {
            self.flush(disk)?;
        }
        self.ready_segment(capture, disk)?;
        let known = capture.unmodified.map(|it| Digest::of_sha1(it.digest));
        let digest = known.unwrap_or_else(|| self.settings.digest.of(capture.payload));
        let first = self.find_first(capture, &digest);
        let receipt = self.write(capture, digest, first, disk)?;
        self.wanted_bytes = 0;
        Ok(receipt)
    }

    /// Returns whether as much waits in memory as is written at once.
    pub(super) fn is_flush_due(&self) -> bool {
        let waits = |tail: &Tail| tail.pending.len() >= self.settings.buffer_bytes;
        let segment = self.segment.as_ref();
        segment.is_some_and(|segment| waits(&segment.warc) || waits(&segment.index))
    }

    /// Writes what waits in memory to the WARC file and its index.
    ///
    /// # Errors
    /// Returns an error of the disk; everything still waits.
    pub(super) fn flush(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        let kept_bytes = 2 * self.settings.buffer_bytes;
        self.segment.as_mut().map_or(Ok(()), |segment| segment.flush(disk, kept_bytes))
    }

    /// Ends the growing WARC file. The next capture begins a new one.
    pub(super) fn retire(&mut self) {
        self.full.extend(self.segment.take().map(|segment| segment.full));
    }

    /// Moves the names of the files that have become full to the end of `into`.
    pub(super) fn take_full(&mut self, into: &mut Vec<Full>) {
        into.append(&mut self.full);
    }

    /// Returns the position after everything that was stored so far.
    pub(super) fn position(&self) -> Position {
        match &self.segment {
            Some(segment) => {
                Position { serial: self.serial.saturating_sub(1), offset: segment.warc.len() }
            }
            None => Position { serial: self.serial, offset: 0 },
        }
    }

    /// Returns the counters that captures change; the others are zero.
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns an estimate of the length of the capture that could not be stored because the disk
    /// was full, in bytes; 0 if there is none.
    pub(super) fn wanted_bytes(&self) -> usize {
        self.wanted_bytes
    }

    /// Forgets that a capture could not be stored, because there is space for it now.
    pub(super) fn has_room(&mut self) {
        self.wanted_bytes = 0;
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
        let digits = self.buffers.stamps.digits(capture.started);
        let stem = segment::stem(&self.settings.prefix, digits, self.serial);
        let gzip = self.settings.gzip_level > 0;
        let info = self.ids.next();
        let mut segment = Segment::begin(&stem, gzip, info, disk)?;
        let date = self.buffers.stamps.iso(capture.started);
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
        self.buffers.first_url.clear();
        if let Some(Unmodified { captured, .. }) = capture.unmodified {
            self.buffers.first_url.extend_from_slice(capture.url.as_bytes());
            return Some(First { id: None, date: captured, chunked: capture.chunked });
        }
        if !capture.can_repeat() {
            return None;
        }
        let first = self.revisit_index.find(digest, &mut self.buffers.first_url);
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
        let segment = self.segment.as_mut().expect("made ready before");
        segment.captures += 1;
        let receipt = Receipt {
            number: self.totals.captures,
            file: Arc::clone(&segment.file),
            offset: segment.warc.len() - packed.bytes,
            length: packed.bytes,
            digest,
            revisit: first.is_some(),
        };
        self.push_line(capture, &receipt);
        Ok(receipt)
    }

    /// Appends the `metadata` record, if anything was said of the use of the page, and the request
    /// record, then the `response` or `revisit` record, which is the last one because the index
    /// line with its end marks the end of the capture; on an error none is appended. Returns the
    /// lengths of the `response` or `revisit` record.
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
        let url = std::str::from_utf8(&self.buffers.first_url).expect("a URL was put in");
        let known = first.zip(first_date.as_deref());
        let ready = Ready {
            capture,
            date: self.buffers.stamps.iso(capture.started),
            info: segment.info,
            id,
            digest,
            first: known.map(|(first, date)| Known { id: first.id, date, url }),
            digests: self.settings.block_digests.then_some(self.settings.digest),
        };
        let pending = &mut segment.warc.pending;
        let metadata = capture.usage.map(|usage| {
            let (block, id) = (Ready::usage_block(usage), self.ids.next());
            let fields = |out: &mut _| ready.push_metadata(out, id, &block);
            self.packer.pack(pending, &block, fields)
        });
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
        metadata.into_iter().chain(request).for_each(|packed| self.totals.add(packed));
        self.totals.add(response);
        Ok(response)
    }

    /// Appends the index line of a capture. With this line the capture counts as stored.
    fn push_line(&mut self, capture: &Capture<'_>, receipt: &Receipt) {
        let index = &mut self.segment.as_mut().expect("made ready before").index;
        let before = index.len();
        let line = cdxj::Capture {
            url: capture.url,
            stamp: self.buffers.stamps.digits(capture.started),
            mime: capture.mime,
            status: capture.status,
            digest: Some(&receipt.digest),
            revisit: receipt.revisit,
            file: &receipt.file,
            place: (receipt.offset, receipt.length),
            chunked: capture.chunked,
            truncated: capture.truncated.map(Truncated::name),
            redirect: capture.redirect,
            uses: capture.usage.map(|usage| (usage.allowed, usage.reserved)).unwrap_or_default(),
        };
        line.push(&mut index.pending, &mut self.buffers.surt);
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
