//! Read-back: jobs read chunks before a visit needs them, and sweep sparse segments.
//!
//! A *chunk* holds URLs of one queue on disk. It is a checksummed frame of a *segment*, a file of
//! the log. A queue that has fewer URLs ready in memory than its next visit may take is listed for
//! a read, once. A job reads chunks of many queues at once, in the order in which they lie on disk.
//! What it has read is applied piece by piece, within the budget of each turn of the caller.
//!
//! A segment is sparse when less than a quarter of it is still needed. A *sweep* reads it and
//! appends the chunks that are still needed to the log again, so that the file can be removed.
//!
//! Laws: a queue that needs a read is listed, or a read for it has begun. What was read is used
//! only if its checksum, its queue and its payloads are right.
//! Cost: one job at a time, which reads about a mebibyte.

use super::chunk::{ChunkRef, Unpacker};
use super::entry::Order;
use super::evict::{CHUNK, append};
use super::queue::Queue;
use super::{FOLDER, OnDisk, QueueId, Queues};
use crate::ground::codec::Take;
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Damage, Flaw};
use crate::ground::segments::{self, Location};
use crate::ground::table::Table;
use std::collections::VecDeque;

/// The approximate number of bytes that one job reads.
const JOB_BYTES: usize = if cfg!(test) { 600 } else { 1 << 20 };
/// The number of bytes that a job reads for one queue in the order of arrival: it reads chunks
/// until their lengths reach it.
const READ_BYTES: usize = if cfg!(test) { 200 } else { 512 };
/// The number of bytes that a job reads for one queue in the order of quality: it reads chunks
/// until their lengths reach it. It is greater than in the order of arrival, since the URLs of
/// short chunks are merged in memory and written again as longer chunks.
const READ_BYTES_BY_QUALITY: usize = if cfg!(test) { 400 } else { 2 << 10 };
/// The length of a chunk up to which, in the order of quality, all of its URLs are taken at once,
/// in bytes.
const SHORT_BYTES: usize = if cfg!(test) { 150 } else { READ_BYTES };
/// The number of near URLs to which a read fills a queue, unless the visits of its server need
/// more.
const URLS_MIN: usize = 16;

/// A job that reads chunks or a piece of a segment, to be run on a side thread.
#[derive(Debug)]
pub struct QueuesJob {
    /// The disk handle that the job reads with. No one else uses it meanwhile.
    pub disk: Box<dyn Disk>,
    work: Work,
}

/// A [`QueuesJob`] that has run, with what it has read or the error.
#[derive(Debug)]
pub struct QueuesDone {
    work: Work,
    result: Result<(), disk::Error>,
    disk: Box<dyn Disk>,
}

/// What a job reads, and the bytes once they are read.
#[derive(Debug)]
enum Work {
    /// Chunks to read back. Those of one queue follow each other.
    Back(VecDeque<Read>),
    /// A piece of a segment to sweep: `bytes` is what lies from `offset` on.
    Sweep { segment: u32, offset: u64, bytes: Vec<u8> },
}

/// A chunk to read back for a queue, and the bytes once they are read.
#[derive(Debug)]
pub(super) struct Read {
    id: QueueId,
    chunk: ChunkRef,
    /// The frame of the chunk, or no bytes if it is not read yet. Bytes of later frames may follow.
    frame: Vec<u8>,
}

/// The state of reading: the queues listed for a read, and what was read for them.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The queues that are listed for a read.
    wanted: VecDeque<QueueId>,
    /// Whether a job is running, or what it has read is not applied to the queues completely.
    is_working: bool,
    /// What a job has read and [`Queues::take_in`] has not applied yet.
    intake: Option<Work>,
    /// The segment that is being swept, the offset in it up to which it is swept, and its length in
    /// bytes; `None` if none is being swept.
    sweep: Option<(u32, u64, u64)>,
    /// The number of attempts to start a job so far.
    jobs: u64,
    /// The disk handle of the last job. It is reused since it has files open.
    disk: Option<Box<dyn Disk>>,
}

impl Reader {
    /// Lists a queue for a read if it needs one and is not listed. `kept` is the number of near
    /// URLs that it may keep.
    pub(super) fn note(&mut self, id: QueueId, queue: &mut Queue, order: Order, kept: usize) {
        if !queue.is_wanted && queue.needs_read(order, kept) {
            queue.is_wanted = true;
            self.wanted.push_back(id);
        }
    }

    /// Ends a job whose results are not all applied. The queues of the other results are listed for
    /// a read again.
    fn read_later(&mut self, work: Work) {
        self.is_working = false;
        if let Work::Back(reads) = work {
            let mut ids: Vec<QueueId> = reads.iter().map(|read| read.id).collect();
            ids.dedup();
            self.wanted.extend(ids);
        }
    }

    /// Returns the number of the segment that is being swept, if any.
    pub(super) fn swept(&self) -> Option<u32> {
        self.sweep.map(|(segment, ..)| segment)
    }
}

impl QueuesJob {
    /// Reads what the job asks for. It blocks, and stops at the first error.
    pub fn run(mut self) -> QueuesDone {
        let result = self.work.run(self.disk.as_mut());
        QueuesDone { work: self.work, result, disk: self.disk }
    }
}

impl Work {
    fn run(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        match self {
            Self::Back(reads) => {
                let missing = reads.iter_mut().filter(|read| read.frame.is_empty());
                let mut missing: Vec<&mut Read> = missing.collect();
                missing.sort_unstable_by_key(|read| read.chunk.place());
                missing.into_iter().try_for_each(|read| read.run(disk))
            }
            Self::Sweep { segment, offset, bytes } => {
                disk::read_all(disk, &segments::name_of(FOLDER, *segment), *offset, 0, bytes)
            }
        }
    }
}

impl Read {
    /// Returns the read of a chunk. `frame` is its frame if that is still in memory, or no bytes.
    pub(super) fn new(id: QueueId, chunk: ChunkRef, frame: Vec<u8>) -> Self {
        Self { id, chunk, frame }
    }

    /// Returns how many bytes were read; 0 if the chunk was not read yet.
    pub(super) fn bytes(&self) -> usize {
        self.frame.len()
    }

    /// Reads the chunk from the disk.
    pub(super) fn run(&mut self, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        let place = self.chunk.place();
        let (name, offset) = (segments::name_of(FOLDER, place.segment), place.offset.into());
        self.frame.resize(place.bytes as usize, 0);
        disk::read_all(disk, &name, offset, 0, &mut self.frame)?;
        // The length in a reference is capped at 16,320 bytes, but the frame may be longer: its
        // header has the full length.
        let have = self.frame.len();
        if let Some(len) = frame_bytes(&self.frame).filter(|len| *len > have) {
            self.frame.resize(len, 0);
            disk::read_all(disk, &name, offset, have, &mut self.frame)?;
        }
        Ok(())
    }
}

/// Returns the length of the frame at the start of `bytes`, as its header states it.
fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    Some(frame::OVERHEAD_BYTES + len.min(frame::PAYLOAD_BYTES_MAX))
}

impl Queues {
    /// Returns the next job if there is anything to read. There is one job at a time: the next is
    /// returned only after the last was handed to [`Queues::worked`] and completely applied.
    pub fn job(&mut self, disk: &dyn Disk) -> Option<QueuesJob> {
        let most = match (self.store.order, self.evictor.kept() == usize::MAX) {
            (_, false) => 1, // memory is short, so it reads one chunk of each queue
            (Order::Arrival, true) => READ_BYTES,
            (Order::Quality, true) => READ_BYTES_BY_QUALITY,
        };
        let on_disk = self.store.disk.as_deref_mut()?;
        if on_disk.reader.is_working {
            return None;
        }
        on_disk.reader.jobs += 1;
        // Every fourth job is a sweep, so that reads do not delay sweeps without end.
        let sweeps = on_disk.reader.jobs.is_multiple_of(4) || on_disk.reader.wanted.is_empty();
        let sweep = if sweeps { on_disk.sweep() } else { None };
        let work = sweep.or_else(|| on_disk.reads(&mut self.queues, most))?;
        on_disk.reader.is_working = true;
        let disk = on_disk.reader.disk.take().unwrap_or_else(|| disk.handle());
        Some(QueuesJob { disk, work })
    }

    /// Accepts a job that has run. The caller then calls [`Queues::take_in`] once in each turn
    /// while [`Queues::has_read`] is true.
    ///
    /// # Errors
    /// The disk reported an error to the job. Nothing is lost: the chunks are read later.
    pub fn worked(&mut self, done: QueuesDone) -> Result<(), disk::Error> {
        let on_disk = self.store.disk.as_deref_mut().expect("the job came from here");
        on_disk.reader.disk = Some(done.disk);
        match &done.result {
            Ok(()) => on_disk.reader.intake = Some(done.work),
            Err(_) => on_disk.reader.read_later(done.work),
        }
        done.result
    }

    /// Returns whether a job has read anything that is not applied yet.
    pub fn has_read(&self) -> bool {
        self.store.disk.as_ref().is_some_and(|on_disk| on_disk.reader.intake.is_some())
    }

    /// Applies about `budget_bytes` of what a job has read: adds the URLs to their queues, or moves
    /// chunks out of the segment that is swept. A piece of a sweep is applied whole, whatever the
    /// budget. [`Queues::next_changed`] returns the queues that changed.
    ///
    /// # Errors
    /// A segment is damaged. The URLs that it was to give remain on disk.
    pub fn take_in(&mut self, budget_bytes: usize) -> Result<(), Damage> {
        let Some(on_disk) = self.store.disk.as_deref_mut() else { return Ok(()) };
        let Some(mut work) = on_disk.reader.intake.take() else { return Ok(()) };
        let result = match &mut work {
            Work::Back(reads) => self.take_in_reads(reads, budget_bytes),
            Work::Sweep { segment, offset, bytes } => self.sweep_piece(*segment, *offset, bytes),
        };
        let is_over = !matches!(&work, Work::Back(reads) if !reads.is_empty());
        let reader = &mut self.store.disk.as_deref_mut().expect("as above").reader;
        if result.is_err() || is_over {
            reader.read_later(work);
        } else {
            reader.intake = Some(work);
        }
        self.make_room();
        result
    }

    fn take_in_reads(
        &mut self,
        reads: &mut VecDeque<Read>,
        budget_bytes: usize,
    ) -> Result<(), Damage> {
        let mut left = budget_bytes;
        while left > 0
            && let Some(first) = reads.front()
        {
            let id = first.id;
            while let Some(read) = reads.front().filter(|read| read.id == id) {
                self.take_in_chunk(read)?;
                left = left.saturating_sub(read.frame.len());
                reads.pop_front();
            }
            self.queues[id as usize].is_wanted = false;
            self.change(id, |queue, store| queue.refill(store.order));
            self.changed.push_back(id);
        }
        Ok(())
    }

    fn take_in_chunk(&mut self, read: &Read) -> Result<(), Damage> {
        let order = self.store.order;
        let queue = self.at(read.id);
        // A sweep may have moved the chunk since, or other chunks may go before it now. Then it is
        // read again later.
        let number = queue.chunks().iter().rposition(|chunk| chunk.is(read.chunk));
        let Some(number) = number else { return Ok(()) };
        let is_next = number + 1 == queue.chunks().len();
        if order == Order::Arrival && !is_next {
            #[cfg(test)]
            super::tests::seen::count(|seen| seen.overtaken += 1);
            return Ok(());
        }
        let chunk = queue.chunks()[number];
        let wanted = URLS_MIN.min(self.evictor.kept()).max(queue.counted as usize);
        let wanted = match order {
            Order::Quality if chunk.place().bytes as usize <= SHORT_BYTES => usize::MAX,
            _ => wanted.saturating_sub(queue.near_len()),
        };
        let (urls, is_only) = (queue.on_disk(), queue.chunks().len() == 1);
        let (arrivals, is_payload) = (self.arrivals, self.settings.is_payload);
        let result = self.change(read.id, |queue, store| {
            let mut unpacker = std::mem::take(&mut store.unpacker);
            let opened = open(read, &mut unpacker).and_then(|()| {
                let (range, rest) = unpacker.take(chunk, wanted, |key| key.band(order));
                // The number of URLs on disk may be wrong if it is from a damaged snapshot.
                let is_over = is_only && rest.is_none();
                let is_counted = range.len() <= urls && is_over == (range.len() == urls);
                let is_right = is_counted && unpacker.are_right(arrivals, is_payload);
                if is_right { Ok((range, rest)) } else { Err(Flaw::Senseless) }
            });
            if let Ok((range, rest)) = opened.clone() {
                #[cfg(test)]
                super::tests::seen::count(|seen| {
                    (seen.reads, seen.parts) =
                        (seen.reads + 1, seen.parts + u32::from(rest.is_some()));
                    seen.rebanded +=
                        u32::from(rest.is_some_and(|rest| rest.band() != chunk.band()));
                });
                queue.replace_chunk(number, rest, range.len());
                for (key, payload) in &unpacker.urls[range] {
                    store.put(queue, *key, unpacker.payload(payload), Queue::put_back);
                }
                if rest.is_none() {
                    let on_disk = store.disk.as_mut().expect("chunks are on it");
                    on_disk.segments.release(chunk.place());
                }
            }
            store.unpacker = unpacker;
            opened.map(|_| ())
        });
        let place = chunk.place();
        result.map_err(|flaw| damage(place.segment, place.offset.into(), flaw))
    }

    /// Sweeps a piece of a segment: appends those chunks in it that are still needed to the log
    /// again.
    fn sweep_piece(&mut self, segment: u32, offset: u64, bytes: &[u8]) -> Result<(), Damage> {
        #[cfg(test)]
        super::tests::seen::count(|seen| seen.sweeps += 1);
        let mut at = 0;
        while let Some(len) = frame_bytes(&bytes[at..]).filter(|len| at + len <= bytes.len()) {
            let from = offset + at as u64;
            let (frame, _) =
                frame::parse(&bytes[at..], from).map_err(|flaw| damage(segment, from, flaw))?;
            if frame.kind == CHUNK {
                self.move_chunk(segment, from, frame.payload)
                    .map_err(|flaw| damage(segment, from, flaw))?;
            }
            at += len;
        }
        let reader = &mut self.store.disk.as_deref_mut().expect("it is being swept").reader;
        let (_, done, end) = reader.sweep.expect("as above");
        let is_over = at == 0 || done + at as u64 >= end;
        reader.sweep = (!is_over).then_some((segment, done + at as u64, end));
        Ok(())
    }

    fn move_chunk(&mut self, segment: u32, offset: u64, payload: &[u8]) -> Result<(), Flaw> {
        let id: QueueId = Take::new(payload).number()?;
        let queue = self.queues.get(id as usize).ok_or(Flaw::Senseless)?;
        let is_here = |chunk: &ChunkRef| {
            let place = chunk.place();
            (place.segment, u64::from(place.offset)) == (segment, offset)
        };
        let Some(number) = queue.chunks().iter().position(is_here) else { return Ok(()) };
        #[cfg(test)]
        super::tests::seen::count(|seen| seen.moved += 1);
        let old = queue.chunks()[number];
        let segments = &mut self.store.disk.as_deref_mut().expect("it is being swept").segments;
        let new = old.moved(append(segments, 0, |out| out.extend_from_slice(payload)));
        segments.release(old.place());
        self.change(id, |queue, _| queue.replace_chunk(number, Some(new), 0));
        Ok(())
    }
}

impl OnDisk {
    /// Returns the frame of a chunk that is still buffered in memory, or no bytes if it is on disk.
    pub(super) fn waiting(&self, chunk: ChunkRef) -> Vec<u8> {
        let from = Location { bytes: u32::MAX, ..chunk.place() };
        let Some(bytes) = self.segments.waiting(from) else { return Vec::new() };
        let len = frame_bytes(bytes).map_or(0, |len| len.min(bytes.len()));
        bytes[..len].to_vec()
    }

    /// Returns a job's work: the next chunks to read, about `most` bytes for each listed queue, but
    /// at least one chunk. Returns `None` if no listed queue has chunks.
    fn reads(&mut self, queues: &mut Table<Queue>, most: usize) -> Option<Work> {
        let (mut reads, mut bytes) = (VecDeque::new(), 0);
        while bytes < JOB_BYTES
            && let Some(id) = self.reader.wanted.pop_front()
        {
            let (queue, mut of_queue) = (&mut queues[id as usize], 0);
            for chunk in queue.chunks().iter().rev() {
                reads.push_back(Read::new(id, *chunk, self.waiting(*chunk)));
                of_queue += chunk.place().bytes as usize;
                if of_queue >= most {
                    break;
                }
            }
            queue.is_wanted = of_queue > 0;
            bytes += of_queue;
        }
        (!reads.is_empty()).then_some(Work::Back(reads))
    }

    /// Returns the next piece of the segment that is being swept. If there is none, begins with the
    /// next sparse segment.
    fn sweep(&mut self) -> Option<Work> {
        let is_alive = |sweep: &(u32, u64, u64)| self.segments.is_alive(sweep.0);
        if self.reader.sweep.filter(is_alive).is_none() {
            let next = self.segments.next_sparse();
            self.reader.sweep = next.map(|(segment, end)| (segment, 0, end));
        }
        let (segment, offset, end) = self.reader.sweep?;
        let bytes = usize::try_from(end - offset).unwrap_or(usize::MAX);
        // A piece must be long enough for the longest chunk.
        let bytes = vec![0; bytes.min(JOB_BYTES.max(128 << 10))];
        Some(Work::Sweep { segment, offset, bytes })
    }
}

/// Parses the frame that was read for a queue, and unpacks its chunk into `unpacker`. It fails if
/// the checksum or the number of the queue is wrong.
pub(super) fn open(read: &Read, unpacker: &mut Unpacker) -> Result<(), Flaw> {
    let (frame, _) = frame::parse(&read.frame, read.chunk.place().offset.into())?;
    let mut take = Take::new(frame.payload);
    if frame.kind != CHUNK || take.number() != Ok(read.id) {
        return Err(Flaw::Senseless);
    }
    Ok(unpacker.unpack(take.rest())?)
}

/// Returns the damage of a frame of a segment.
pub(super) fn damage(segment: u32, offset: u64, flaw: Flaw) -> Damage {
    Damage { name: segments::name_of(FOLDER, segment), offset, flaw }
}
