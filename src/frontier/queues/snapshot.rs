//! Snapshots: the state of all queues at one instant, written to a checkpoint while they change.
//!
//! In each turn some queues are written, in the order of their numbers. If a queue that is not
//! written yet is about to change, it is written before (decision 29). URLs that are being fetched
//! (*in flight*) are written as waiting URLs. *Near* are the next URLs of a queue in memory, *far*
//! its others in memory, and *chunks* hold its URLs on disk.
//!
//! ```text
//! kind 17, chunks   number of the queue | URLs in all of its chunks; 0 in frames that continue
//!                   reference u64 of each chunk, the next one last
//! kind 18, URLs     number of the queue | a chunk of URLs: those in flight, and those of near
//! kind 19, URLs     the same for those of far, which by arrival come after the chunks
//! state             number of queues | of URLs | of arrivals | bytes of all chunks
//! ```
//! The frames of a queue come in this order. An empty queue is not written.
//!
//! Law (tested against a naive model): what is restored is the state at the instant when the
//! snapshot began, whatever happened since.
//! Cost: a copy of each queue with its URLs packed; one bit of memory for each queue.

use super::chunk::{ChunkRef, Packer};
use super::entry::{Entry, Order};
use super::queue::Queue;
use super::{Key, QueueId, Queues, Settings, Store};
use crate::ground::codec::{Put, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Flaw, Mark};
use crate::ground::map::Map;

/// The kind of frames with references to chunks on disk.
const CHUNKS: u8 = 17;
/// The kind of frames with URLs that are in flight or near.
const FRONT: u8 = 18;
/// The kind of frames with far URLs.
const BACK: u8 = 19;

/// The number of queues whose payloads are prefetched into the CPU cache at once.
const BATCH: usize = 16;
/// The packed length at which a frame of URLs is finished, in bytes.
const FRAME_BYTES: usize = if cfg!(test) { 90 } else { 32 << 10 };
/// The largest number of chunk references in a frame.
const FRAME_CHUNKS: usize = 4 << 10;

/// A snapshot that is being written. Its instant is the call of [`Queues::begin_snapshot`].
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The number of queues at that instant.
    queues: usize,
    /// The number of URLs in the queues and in flight at that instant.
    urls: usize,
    /// The number of URLs queued until that instant.
    arrivals: u64,
    /// The length of all chunks on disk at that instant, in bytes.
    chunk_bytes: u64,
    /// The segments that were needed at that instant, with their lengths in bytes.
    segments: Vec<(u32, u64)>,
    /// The URLs in flight of queues that are not written yet, with their payloads.
    flights: Map<QueueId, Vec<(Key, Vec<u8>)>>,
    /// A bit for each queue, which is set if the queue is in the snapshot already.
    written: Vec<u64>,
    /// The number of the next queue to write, unless it is written already.
    next: usize,
    /// Frames of queues that were written early, since they were about to change. The next
    /// [`Queues::snapshot_some`] returns them.
    ahead: Vec<u8>,
    packer: Packer,
}

/// The totals that the restored frames of a snapshot must add up to in the end.
#[derive(Debug)]
pub(super) struct Restoring {
    queues: usize,
    urls: usize,
    chunk_bytes: u64,
}

impl Queues {
    /// Begins a snapshot of the present state. `flights` are the URLs that are being fetched; the
    /// snapshot has them as waiting URLs. An earlier snapshot that is not finished is discarded.
    pub fn begin_snapshot(&mut self, flights: Vec<(QueueId, Key, Vec<u8>)>) {
        let urls = self.urls + flights.len();
        let mut by_queue: Map<QueueId, Vec<(Key, Vec<u8>)>> = Map::default();
        for (id, key, payload) in flights {
            by_queue.entry(id).or_default().push((key, payload));
        }
        let segments = self.store.disk.as_ref().map_or(Vec::new(), |disk| disk.segments.alive());
        self.snapshot = Some(Box::new(Snapshot {
            queues: self.queues.len(),
            urls,
            arrivals: self.arrivals,
            chunk_bytes: self.disk_bytes().1,
            segments,
            flights: by_queue,
            written: vec![0; self.queues.len().div_ceil(64)],
            next: 0,
            ahead: Vec::new(),
            packer: Packer::default(),
        }));
    }

    /// Appends frames of the snapshot to `out`: those of queues that were about to change since the
    /// last call, and about `budget_bytes` of others. Returns `true` when all queues are written.
    pub fn snapshot_some(&mut self, budget_bytes: usize, out: &mut Vec<u8>) -> bool {
        let Some(mut snapshot) = self.snapshot.take() else { return true };
        out.append(&mut snapshot.ahead);
        let enough = out.len() + budget_bytes;
        let mut steps = 0;
        while out.len() < enough && snapshot.next < snapshot.queues && steps < budget_bytes {
            let id = snapshot.next as QueueId;
            if snapshot.next.is_multiple_of(BATCH) {
                (id..self.count() as QueueId).take(BATCH).for_each(|id| self.prefetch_more(id));
            }
            snapshot.write(id, &self.queues[snapshot.next], &self.store, out);
            (snapshot.next, steps) = (snapshot.next + 1, steps + 1);
        }
        let is_done = snapshot.next == snapshot.queues;
        self.snapshot = (!is_done).then_some(snapshot);
        is_done
    }

    /// Writes all buffered chunks to the disk. Returns the part of the checkpoint that belongs to
    /// no single queue, as of the instant of the snapshot that is being written: totals and the
    /// list of segments.
    ///
    /// # Errors
    /// The disk reports an error. The call can be repeated.
    pub fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        self.write(true, disk)?;
        let snapshot = self.snapshot.as_ref().expect("a snapshot has begun");
        let mut state = Vec::new();
        state.put_varint(snapshot.queues as u64);
        state.put_varint(snapshot.urls as u64);
        state.put_varint(snapshot.arrivals);
        state.put_varint(snapshot.chunk_bytes);
        let mut files = Vec::new();
        if let Some(on_disk) = &mut self.store.disk {
            on_disk.segments.set_marked(snapshot.segments.iter().map(|(number, _)| *number));
            let name = |(number, bytes): &(u32, u64)| (on_disk.segments.name_of(*number), *bytes);
            files = snapshot.segments.iter().map(name).collect();
        }
        Ok(Mark { state, files })
    }

    /// Reports that the checkpoint with the last [`Queues::mark`] is durable. Returns the names of
    /// the files that nothing needs any more, which the caller removes.
    pub fn on_durable(&mut self) -> Vec<String> {
        let disk = self.store.disk.as_mut();
        disk.map_or(Vec::new(), |disk| disk.segments.on_durable(disk.reader.swept()))
    }

    /// Writes a queue that is about to change to the snapshot, if one is being written.
    pub(super) fn copy_before_change(&mut self, id: QueueId) {
        if let Some(snapshot) = &mut self.snapshot {
            let mut ahead = std::mem::take(&mut snapshot.ahead);
            snapshot.write(id, &self.queues[id as usize], &self.store, &mut ahead);
            snapshot.ahead = ahead;
        }
    }

    /// Begins to restore the queues of a checkpoint from the state of its mark. The caller then
    /// calls [`Queues::restore_files`], [`Queues::restore_frame`] for each frame, and last
    /// [`Queues::restored`].
    ///
    /// # Errors
    /// The state is not valid.
    pub fn restore(settings: Settings, state: &[u8]) -> Result<Self, Flaw> {
        let mut take = Take::new(state);
        let mut queues = Self::new(settings);
        let (count, urls) = (take.number::<u32>()? as usize, take.number()?);
        queues.arrivals = take.varint()?;
        let chunk_bytes = take.varint()?;
        if !take.is_empty() {
            return Err(Flaw::Senseless);
        }
        let restoring = Restoring { queues: count, urls, chunk_bytes };
        queues.restoring = Some(Box::new(restoring));
        Ok(queues)
    }

    /// Restores the segments of the log. `files` are all files that the checkpoint names, with
    /// their lengths in bytes; those that are no segments are ignored.
    ///
    /// # Errors
    /// Those of [`Segments::restore_files`](crate::ground::segments::Segments::restore_files).
    pub fn restore_files(
        &mut self,
        files: &[(String, u64)],
        disk: &mut dyn Disk,
    ) -> Result<(), frame::Error> {
        let Some(on_disk) = &mut self.store.disk else { return Ok(()) };
        on_disk.segments.restore_files(files, disk).map(|_| ())
    }

    /// Restores one frame of the snapshot. Frames must come in the order in which they were
    /// written.
    ///
    /// # Errors
    /// The frame is not valid or cannot belong to this snapshot.
    pub fn restore_frame(&mut self, kind: u8, payload: &[u8]) -> Result<(), Flaw> {
        let mut take = Take::new(payload);
        let id: QueueId = take.number()?;
        if self.restoring.as_ref().is_none_or(|restoring| id as usize >= restoring.queues) {
            return Err(Flaw::Senseless);
        }
        while self.queues.len() <= id as usize {
            self.add_queue();
        }
        match kind {
            CHUNKS => self.restore_chunks(id, &mut take),
            FRONT => self.restore_urls(id, take.rest(), Queue::put_back),
            BACK => self.restore_urls(id, take.rest(), Queue::push),
            _ => Err(Flaw::Senseless),
        }
    }

    fn restore_urls(
        &mut self,
        id: QueueId,
        chunk: &[u8],
        how: fn(&mut Queue, Order, Entry),
    ) -> Result<(), Flaw> {
        let mut unpacker = std::mem::take(&mut self.store.unpacker);
        unpacker.unpack(chunk)?;
        if !unpacker.are_right(self.arrivals, self.settings.is_payload) {
            return Err(Flaw::Senseless);
        }
        for (key, range) in &unpacker.urls {
            self.put(id, *key, unpacker.payload(range), how);
        }
        self.store.unpacker = unpacker;
        Ok(())
    }

    fn restore_chunks(&mut self, id: QueueId, take: &mut Take<'_>) -> Result<(), Flaw> {
        let mut urls = take.number::<u32>()? as usize;
        self.urls = self.urls.saturating_add(urls);
        while !take.is_empty() {
            let chunk = ChunkRef::from_word(take.u64()?);
            let segments = &mut self.store.disk.as_mut().ok_or(Flaw::Senseless)?.segments;
            if !segments.retain(chunk.place()) {
                return Err(Flaw::Senseless);
            }
            self.change(id, |queue, _| queue.add_chunk(chunk, std::mem::take(&mut urls), true));
        }
        let is_right = urls == 0 && self.at(id).on_disk() > 0;
        if is_right { Ok(()) } else { Err(Flaw::Senseless) }
    }

    /// Ends the restoration after the last frame. `queues` is the number of queues that the caller
    /// expects. Moves URLs to disk if memory is full.
    ///
    /// # Errors
    /// Queues, URLs or chunks are missing, or there are too many.
    pub fn restored(&mut self, queues: usize) -> Result<(), Flaw> {
        let restoring = self.restoring.take().ok_or(Flaw::Senseless)?;
        let is_whole = restoring.urls == self.urls && restoring.chunk_bytes == self.disk_bytes().1;
        if !is_whole || restoring.queues != queues {
            return Err(Flaw::Senseless);
        }
        while self.queues.len() < queues {
            self.add_queue();
        }
        if let Some(on_disk) = &mut self.store.disk {
            on_disk.segments.find_sparse();
        }
        self.make_all_room();
        self.changed.clear();
        Ok(())
    }
}

impl Snapshot {
    /// Writes the frames of a queue to `out`, unless it is written already or was added after the
    /// snapshot began.
    fn write(&mut self, id: QueueId, queue: &Queue, store: &Store, out: &mut Vec<u8>) {
        let (word, bit) = (id as usize / 64, id % 64);
        if id as usize >= self.queues || self.written[word] >> bit & 1 == 1 {
            return;
        }
        self.written[word] |= 1 << bit;
        // Chunks are written first: in the order of arrival they come between near and far, so they
        // must be restored before far is.
        let mut on_disk = queue.on_disk() as u64;
        for chunks in queue.chunks().chunks(FRAME_CHUNKS) {
            frame::push_with(CHUNKS, out, |out| {
                out.put_varint(u64::from(id));
                out.put_varint(std::mem::take(&mut on_disk));
                chunks.iter().for_each(|chunk| out.put_u64(chunk.word()));
            });
        }
        for (key, payload) in self.flights.remove(&id).unwrap_or_default() {
            self.packer.put(key, |out| out.extend_from_slice(&payload));
            self.push_urls(FRONT, id, FRAME_BYTES, out);
        }
        for (number, entry) in queue.entries().enumerate() {
            if number == queue.near_len() {
                self.push_urls(FRONT, id, 1, out);
            }
            let kind = if number < queue.near_len() { FRONT } else { BACK };
            self.packer.put(entry.key(store.order), |out| store.records.read(entry.record(), out));
            self.push_urls(kind, id, FRAME_BYTES, out);
        }
        let kind = if queue.far_len() > 0 { BACK } else { FRONT };
        self.push_urls(kind, id, 1, out);
    }

    /// Appends the URLs packed so far to `out` as a frame, if they take at least `bytes` bytes.
    fn push_urls(&mut self, kind: u8, id: QueueId, bytes: usize, out: &mut Vec<u8>) {
        if self.packer.is_full(bytes) {
            frame::push_with(kind, out, |out| {
                out.put_varint(u64::from(id));
                self.packer.finish(out);
            });
        }
    }
}
