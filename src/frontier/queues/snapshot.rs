//! What a checkpoint keeps of the queues: their state at one moment, written while they change.
//!
//! Some queues are written in each turn, by number; one that is about to change is copied first
//! (decision 29). URLs under way count as waiting.
//!
//! ```text
//! kind 17, a queue    number | URLs under way, near, far | chunks | URLs in chunks
//! kind 18, URLs       number of the queue | a chunk of those near, far, under way
//! kind 19, chunks     number of the queue | reference u64 of each, the next one last
//! state               queues | URLs | arrivals | segments | for each: number, bytes that count
//! ```
//! An empty queue is not written.
//!
//! Law: what is restored is what was there when the snapshot began, whatever was done since (held
//! to a naive model). Cost: a copy of each queue, its URLs packed; one bit of memory a queue.

use super::chunk::{ChunkRef, Packer, Unpacker};
use super::entry::{Entry, Order};
use super::queue::Queue;
use super::records::Records;
use super::{FOLDER, Key, QueueId, Queues, Settings};
use crate::ground::codec::{Put, Take};
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, Flaw, Mark};
use crate::ground::map::Map;
use crate::ground::segments;

/// Kinds of frames.
const QUEUE: u8 = 17;
const URLS: u8 = 18;
const CHUNKS: u8 = 19;

/// Unpacked bytes of URLs in a frame.
const FRAME_BYTES: usize = if cfg!(test) { 90 } else { 32 << 10 };
/// Chunks in a frame.
const FRAME_CHUNKS: usize = 4 << 10;

/// A moment that is being written.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Queues at that moment, URLs in them and under way, and arrivals.
    queues: usize,
    urls: usize,
    arrivals: u64,
    /// Segments that were needed, and how long they were.
    segments: Vec<(u32, u64)>,
    /// URLs under way, with their payloads.
    flights: Map<QueueId, Vec<(Key, Vec<u8>)>>,
    /// A bit for each queue that is written.
    written: Vec<u64>,
    /// The queue to be written next.
    next: usize,
    /// Frames of queues that were about to change.
    ahead: Vec<u8>,
    packer: Packer,
}

/// What is missing of queues that are being restored.
#[derive(Debug, Default)]
pub(super) struct Restoring {
    segments: Vec<(u32, u64)>,
    queues: usize,
    urls: usize,
    missing: Map<QueueId, Missing>,
    unpacker: Unpacker,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Missing {
    under_way: usize,
    near: usize,
    far: usize,
    chunks: usize,
}

impl Queues {
    /// Begins to write the state of this moment. URLs of `flights` are under way: they count as
    /// waiting. A snapshot that was not finished is given up.
    pub fn begin_snapshot(&mut self, flights: Vec<(QueueId, Key, Vec<u8>)>) {
        let urls = self.urls + flights.len();
        let mut by_queue: Map<QueueId, Vec<(Key, Vec<u8>)>> = Map::default();
        for (id, key, payload) in flights {
            by_queue.entry(id).or_default().push((key, payload));
        }
        let segments = self.disk.as_ref().map_or(Vec::new(), |disk| disk.segments.alive());
        self.snapshot = Some(Box::new(Snapshot {
            queues: self.queues.len(),
            urls,
            arrivals: self.arrivals,
            segments,
            flights: by_queue,
            written: vec![0; self.queues.len().div_ceil(64)],
            next: 0,
            ahead: Vec::new(),
            packer: Packer::default(),
        }));
    }

    /// Appends frames to `out`, about `budget_bytes` beside those of queues that have changed;
    /// `true` when all are written.
    pub fn snapshot_some(&mut self, budget_bytes: usize, out: &mut Vec<u8>) -> bool {
        let Some(mut snapshot) = self.snapshot.take() else { return true };
        out.append(&mut snapshot.ahead);
        let enough = out.len() + budget_bytes;
        let mut steps = 0;
        while out.len() < enough && snapshot.next < snapshot.queues && steps < budget_bytes {
            let id = snapshot.next as QueueId;
            snapshot.write(
                id,
                &self.queues[snapshot.next],
                &self.records,
                self.settings.order,
                out,
            );
            (snapshot.next, steps) = (snapshot.next + 1, steps + 1);
        }
        let is_done = snapshot.next == snapshot.queues;
        self.snapshot = (!is_done).then_some(snapshot);
        is_done
    }

    /// What is not one queue's, as of the moment of the snapshot that is being written; brings all
    /// chunks to the disk.
    ///
    /// # Errors
    /// The disk's; this may be called again.
    pub fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        self.write(true, disk)?;
        let snapshot = self.snapshot.as_ref().expect("a snapshot has begun");
        let mut state = Vec::new();
        state.put_varint(snapshot.queues as u64);
        state.put_varint(snapshot.urls as u64);
        state.put_varint(snapshot.arrivals);
        state.put_varint(snapshot.segments.len() as u64);
        for (number, bytes) in &snapshot.segments {
            state.put_varint(u64::from(*number));
            state.put_varint(*bytes);
        }
        let mut files = Vec::new();
        if let Some(on_disk) = &mut self.disk {
            on_disk.segments.set_marked(snapshot.segments.iter().map(|(number, _)| *number));
            let name = |(number, bytes): &(u32, u64)| (on_disk.segments.name_of(*number), *bytes);
            files = snapshot.segments.iter().map(name).collect();
        }
        Ok(Mark { state, files })
    }

    /// The last mark is durable: names of files that nothing needs any more, to be removed.
    pub fn settled(&mut self) -> Vec<String> {
        let settled = self.disk.as_mut().map(|disk| disk.segments.settled(disk.reader.swept()));
        settled.unwrap_or_default()
    }

    pub(super) fn copy_before_change(&mut self, id: QueueId) {
        if let Some(snapshot) = &mut self.snapshot {
            let mut ahead = std::mem::take(&mut snapshot.ahead);
            let queue = &self.queues[id as usize];
            snapshot.write(id, queue, &self.records, self.settings.order, &mut ahead);
            snapshot.ahead = ahead;
        }
    }

    /// The queues that a checkpoint keeps: [`Queues::restore_frame`] for each of its frames and
    /// [`Queues::restored`] are to follow.
    ///
    /// # Errors
    /// The state can't be one.
    pub fn restore(settings: Settings, state: &[u8]) -> Result<Self, Flaw> {
        let mut take = Take::new(state);
        let mut queues = Self::new(settings);
        let (count, urls) = (take.number::<u32>()?, take.number()?);
        queues.arrivals = take.varint()?;
        let mut named = Vec::new();
        for _ in 0..take.varint()? {
            let (number, bytes) = (take.number()?, take.varint()?);
            named.push((number, bytes));
            let segments = &mut queues.disk.as_mut().ok_or(Flaw::Senseless)?.segments;
            if !segments.restore(number, bytes) {
                return Err(Flaw::Senseless);
            }
        }
        if !take.is_empty() {
            return Err(Flaw::Senseless);
        }
        let (segments, count) = (named, count as usize);
        let restoring = Restoring { segments, queues: count, urls, ..Restoring::default() };
        queues.restoring = Some(Box::new(restoring));
        Ok(queues)
    }

    /// Numbers of segments up to this are those of files that exist.
    pub fn skip_segments_to(&mut self, segment: u32) {
        if let Some(on_disk) = &mut self.disk {
            on_disk.segments.skip_to(segment);
        }
    }

    /// Takes in one frame of a snapshot.
    ///
    /// # Errors
    /// The frame can't belong to this snapshot.
    pub fn restore_frame(&mut self, kind: u8, payload: &[u8]) -> Result<(), Flaw> {
        let mut restoring = self.restoring.take().ok_or(Flaw::Senseless)?;
        let result = self.restore_part(kind, payload, &mut restoring);
        self.restoring = Some(restoring);
        result
    }

    fn restore_part(
        &mut self,
        kind: u8,
        payload: &[u8],
        restoring: &mut Restoring,
    ) -> Result<(), Flaw> {
        let mut take = Take::new(payload);
        let id: QueueId = take.number()?;
        if id as usize >= restoring.queues {
            return Err(Flaw::Senseless);
        }
        while self.queues.len() <= id as usize {
            self.add_queue();
        }
        let missing = restoring.missing.remove(&id);
        let mut missing = match (kind, missing) {
            (QUEUE, None) if self.len(id) == 0 => self.restore_counts(id, &mut take)?,
            (URLS | CHUNKS, Some(missing)) => missing,
            _ => return Err(Flaw::Senseless),
        };
        match kind {
            CHUNKS => self.restore_chunks(id, &mut missing, &mut take)?,
            URLS => self.restore_urls(id, &mut missing, &take, &mut restoring.unpacker)?,
            _ if take.is_empty() => {}
            _ => return Err(Flaw::Senseless),
        }
        if missing != Missing::default() {
            restoring.missing.insert(id, missing);
        } else if !self.at(id).is_in_order(self.settings.order) {
            return Err(Flaw::Senseless);
        }
        Ok(())
    }

    fn restore_counts(&mut self, id: QueueId, take: &mut Take<'_>) -> Result<Missing, Flaw> {
        let (under_way, near, far) = (take.number()?, take.number()?, take.number()?);
        let (chunks, on_disk) = (take.number()?, take.number::<u32>()?);
        if (chunks == 0) != (on_disk == 0) {
            return Err(Flaw::Senseless);
        }
        if on_disk > 0 {
            self.change(id, |queue, _, _| queue.restore_on_disk(on_disk));
            self.urls += on_disk as usize;
        }
        Ok(Missing { under_way, near, far, chunks })
    }

    fn restore_urls(
        &mut self,
        id: QueueId,
        missing: &mut Missing,
        take: &Take<'_>,
        unpacker: &mut Unpacker,
    ) -> Result<(), Flaw> {
        unpacker.unpack(take.rest())?;
        for (key, range) in &unpacker.urls {
            let payload = unpacker.payload(range);
            if key.arrival > self.arrivals || !(self.settings.is_payload)(payload) {
                return Err(Flaw::Senseless);
            }
            let is_near = missing.near > 0;
            if is_near {
                missing.near -= 1;
            } else if missing.far > 0 {
                missing.far -= 1;
            } else {
                missing.under_way = missing.under_way.checked_sub(1).ok_or(Flaw::Senseless)?;
                self.put_back(id, *key, payload);
                continue;
            }
            self.urls += 1;
            self.change(id, |queue, records, order| {
                let record = records.put(payload, &mut queue.base);
                queue.restore(Entry::new(order, *key, record), is_near);
            });
        }
        Ok(())
    }

    fn restore_chunks(
        &mut self,
        id: QueueId,
        missing: &mut Missing,
        take: &mut Take<'_>,
    ) -> Result<(), Flaw> {
        while !take.is_empty() {
            let chunk = ChunkRef::from_word(take.u64()?);
            missing.chunks = missing.chunks.checked_sub(1).ok_or(Flaw::Senseless)?;
            let segments = &mut self.disk.as_mut().ok_or(Flaw::Senseless)?.segments;
            if !segments.retain(chunk.place()) {
                return Err(Flaw::Senseless);
            }
            if !self.change(id, |queue, _, _| queue.restore_chunk(chunk)) {
                return Err(Flaw::Senseless);
            }
        }
        Ok(())
    }

    /// Segments that the snapshot names, and how many bytes of each.
    pub fn files(&self) -> Vec<(String, u64)> {
        let segments = self.restoring.iter().flat_map(|restoring| &restoring.segments);
        segments.map(|(number, bytes)| (segments::name_of(FOLDER, *number), *bytes)).collect()
    }

    /// All frames of a snapshot of so many queues were taken in.
    ///
    /// # Errors
    /// Something is missing.
    pub fn restored(&mut self, queues: usize) -> Result<(), Flaw> {
        let restoring = self.restoring.take().ok_or(Flaw::Senseless)?;
        let is_whole = restoring.missing.is_empty() && restoring.urls == self.urls;
        if !is_whole || restoring.queues != queues {
            return Err(Flaw::Senseless);
        }
        while self.queues.len() < queues {
            self.add_queue();
        }
        if let Some(on_disk) = &mut self.disk {
            on_disk.segments.find_sparse();
        }
        self.make_all_room();
        self.changed.clear();
        Ok(())
    }
}

impl Snapshot {
    /// Writes a queue, unless it is written already or came later.
    fn write(
        &mut self,
        id: QueueId,
        queue: &Queue,
        records: &Records,
        order: Order,
        out: &mut Vec<u8>,
    ) {
        let (word, bit) = (id as usize / 64, id % 64);
        if id as usize >= self.queues || self.written[word] >> bit & 1 == 1 {
            return;
        }
        self.written[word] |= 1 << bit;
        let flights = self.flights.remove(&id).unwrap_or_default();
        if queue.len() + flights.len() == 0 {
            return;
        }
        let under_way = flights.len();
        let counts = [under_way, queue.near_len(), queue.far_len(), queue.chunks().len()];
        frame::push_with(QUEUE, out, |out| {
            out.put_varint(u64::from(id));
            counts.iter().for_each(|count| out.put_varint(*count as u64));
            out.put_varint(queue.on_disk() as u64);
        });
        // By arrival chunks come between: they are there before what is put back.
        for chunks in queue.chunks().chunks(FRAME_CHUNKS) {
            frame::push_with(CHUNKS, out, |out| {
                out.put_varint(u64::from(id));
                chunks.iter().for_each(|chunk| out.put_u64(chunk.word()));
            });
        }
        for entry in queue.entries() {
            self.packer.put(entry.key(order), |out| records.read(entry.record(), out));
            self.push_urls(id, FRAME_BYTES, out);
        }
        for (key, payload) in flights {
            self.packer.put(key, |out| out.extend_from_slice(&payload));
            self.push_urls(id, FRAME_BYTES, out);
        }
        self.push_urls(id, 1, out);
    }

    /// Writes the URLs that are packed, if they have so many bytes.
    fn push_urls(&mut self, id: QueueId, bytes: usize, out: &mut Vec<u8>) {
        if self.packer.is_full(bytes) {
            frame::push_with(URLS, out, |out| {
                out.put_varint(u64::from(id));
                self.packer.finish(out);
            });
        }
    }
}
