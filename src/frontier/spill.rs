//! Ends of queues to the disk and back, so that URLs in memory keep to their bytes.
//!
//! When URLs take more memory than they may, the queue that has most of it beyond its head is cut:
//! by arrival its last URLs, by quality all but the best few, become chunks of the [`log`]. How
//! they come back is told in [`back`].
//!
//! Laws: no URL is lost or doubled, whatever fails; by arrival the order is exact, by quality by
//! band (decision 34); each server that waits for a chunk is in the list of those, once. A head, as
//! many URLs as a visit takes, stays in memory: so the bound holds beside one head a server.
//! Cost: a queue is cut in pieces of a quarter MiB (by quality: of four MiB at most), which are
//! found by a list for each power of two of bytes; a URL on disk was written once, and once more
//! for each sweep of its segment that found it alive.
//!
//! [`log`]: super::log

mod back;
pub(super) mod job;

use super::items::Run;
use super::log::Log;
use super::place::{Band, Place, band_of};
use super::queue::depot::Task;
use super::queue::{Item, UrlQueue};
use super::server::{Server, ServerId};
use super::{Frontier, Settings};
use crate::disk::{self, Disk};
use crate::table::Table;
use std::collections::VecDeque;

/// Bytes of URLs in a chunk: what a disk reads at once. In tests, few.
const CHUNK_BYTES: usize = if cfg!(test) { 120 } else { 4_096 };
/// Fewer URLs are better kept in a buffer.
const CHUNK_URLS: usize = if cfg!(test) { 3 } else { 8 };
/// Chunks of a queue are made into fewer when there are so many and they are that short.
const CHUNKS_SHORT: usize = if cfg!(test) { 4 } else { 16 };
/// A queue by arrival is cut in pieces of this size.
const CUT_BYTES: usize = 256 << 10;
/// A queue by quality is cut when it has so much in memory, or its cut would stall the turn.
const RANKED_BYTES_MAX: usize = 4 << 20;
/// Queues cut for one URL that comes.
const CUTS_MAX: u32 = 4;
/// A server is no victim for less.
const SPILLABLE_MIN: usize = if cfg!(test) { 1 } else { 512 };

/// Powers of two that queues in memory may come to.
const CLASSES: usize = 48;

/// What goes to the disk and what comes back.
#[derive(Debug)]
pub(super) struct Spill {
    pub(super) log: Log,
    /// Bytes of URLs in memory, and how many there may be.
    bytes: usize,
    bytes_max: usize,
    victims: Victims,
    /// Servers that wait for their next chunks.
    wanted: VecDeque<ServerId>,
    /// Servers that have many short chunks.
    merging: VecDeque<ServerId>,
    /// Retired servers whose URLs are in memory to be told.
    given_up: VecDeque<ServerId>,
    sweep: Option<Sweep>,
    is_working: bool,
    jobs: u32,
}

/// A segment that is being swept.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    segment: u32,
    offset: u64,
    end: u64,
    piece_bytes: usize,
}

/// Servers by how much of their queues could go to the disk, in powers of two: lists that may hold
/// a server more than once, of which only the entry under its present class counts.
#[derive(Debug)]
struct Victims {
    /// None are listed until memory is full for the first time.
    is_on: bool,
    classes: [Vec<ServerId>; CLASSES],
}

impl Spill {
    pub(super) fn new(settings: &Settings) -> Option<Box<Self>> {
        Some(Box::new(Self {
            log: Log::new(settings.crawl?),
            bytes: 0,
            bytes_max: settings.memory_bytes,
            victims: Victims { is_on: false, classes: [const { Vec::new() }; CLASSES] },
            wanted: VecDeque::new(),
            merging: VecDeque::new(),
            given_up: VecDeque::new(),
            sweep: None,
            is_working: false,
            jobs: 0,
        }))
    }

    /// The last mark is durable: names of segments that are of no use any more.
    pub(super) fn settled(&mut self) -> Vec<String> {
        self.log.settled(self.sweep.map(|sweep| sweep.segment))
    }

    /// Bytes of URLs in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn weigh(&mut self, before: usize, after: usize) {
        self.bytes = self.bytes + after - before;
    }

    /// Writes URLs in their order as chunks of one band.
    fn write_chunks(&mut self, id: ServerId, band: Band, items: &[Item]) -> Vec<(Place, u32)> {
        let (mut chunks, mut rest) = (Vec::new(), items);
        while !rest.is_empty() {
            let mut taken = 0;
            let place = self.log.append(id, band, |out| {
                let (from, mut run) = (out.len(), Run::default());
                while taken < rest.len() && out.len() - from < CHUNK_BYTES {
                    run.put(&rest[taken], out);
                    taken += 1;
                }
            });
            rest = &rest[taken..];
            chunks.push((place, u32::try_from(taken).expect("a chunk has few URLs")));
        }
        chunks
    }

    /// What was cut from a queue goes to the disk; if it is little, it stays.
    fn write_cut(&mut self, id: ServerId, queue: &mut UrlQueue, cut: Vec<Item>) {
        if queue.is_by_arrival() && cut.len() >= CHUNK_URLS {
            for (place, urls) in self.write_chunks(id, 0, &cut).into_iter().rev() {
                queue.depot_or_new().add(place, urls, true);
            }
        } else if queue.is_by_arrival() && queue.depot().is_some() {
            queue.own_all(cut);
        } else {
            let by_arrival = queue.is_by_arrival();
            let band = |item: &Item| if by_arrival { 0 } else { band_of(item) };
            for row in cut.chunk_by(|one, next| band(one) == band(next)) {
                let band = band(&row[0]);
                if row.len() >= CHUNK_URLS {
                    for (place, urls) in self.write_chunks(id, band, row) {
                        queue.depot_or_new().add(place, urls, false);
                    }
                } else {
                    row.iter().for_each(|item| queue.depot_or_new().put(band, item));
                }
            }
        }
    }

    /// Buffers that have at least so many bytes and URLs become chunks.
    fn write_buffers(&mut self, id: ServerId, queue: &mut UrlQueue, bytes: usize, urls: u32) {
        while let Some(buffer) = queue.depot_mut().and_then(|depot| depot.take_buffer(bytes, urls))
        {
            let chunks = if queue.is_by_arrival() {
                let write = |out: &mut Vec<u8>| out.extend_from_slice(&buffer.bytes);
                vec![(self.log.append(id, buffer.band, write), buffer.urls)]
            } else {
                let mut items = buffer.items();
                queue.sort(&mut items);
                self.write_chunks(id, buffer.band, &items)
            };
            let depot = queue.depot_or_new();
            chunks.into_iter().for_each(|(place, urls)| depot.add(place, urls, false));
            let are_short = depot.chunks().len() >= CHUNKS_SHORT
                && depot.urls() < CHUNK_URLS * depot.chunks().len();
            if are_short && depot.task == Task::Nothing {
                depot.task = Task::Merging;
                self.merging.push_back(id);
            }
        }
    }
}

impl Victims {
    fn class_of(spillable: usize) -> usize {
        if spillable < SPILLABLE_MIN { 0 } else { (spillable.ilog2() as usize).min(CLASSES - 1) }
    }

    /// A queue has grown, or was cut.
    fn note(&mut self, server: &mut Server, id: ServerId, kept: usize) {
        if self.is_on {
            let class = Self::class_of(server.queue.spillable(kept));
            if class > usize::from(server.filed) {
                server.filed = u8::try_from(class).expect("few classes");
                self.classes[class].push(id);
            }
        }
    }

    /// One of those who have most.
    fn take(&mut self, servers: &mut Table<Server>, settings: &Settings) -> Option<ServerId> {
        for class in (1..CLASSES).rev() {
            while let Some(id) = self.classes[class].pop() {
                let server = &mut servers[id.index()];
                if usize::from(server.filed) != class {
                    continue;
                }
                server.filed = 0;
                let kept = server.visit_max(settings);
                if Self::class_of(server.queue.spillable(kept)) >= class {
                    return Some(id);
                }
                self.note(server, id, kept);
            }
        }
        None
    }
}

impl Frontier {
    /// The queue of a server took `before` bytes and has changed.
    pub(super) fn weigh(&mut self, id: ServerId, before: usize) {
        if let Some(spill) = &mut self.spill {
            spill.weigh(before, self.servers[id.index()].queue.bytes());
        }
    }

    /// URLs have come into the queue of a server, which took `before` bytes: makes room for them.
    pub(super) fn make_room(&mut self, id: ServerId, before: usize) {
        let Some(spill) = &mut self.spill else { return };
        let server = &mut self.servers[id.index()];
        spill.write_buffers(id, &mut server.queue, CHUNK_BYTES, 1);
        spill.weigh(before, server.queue.bytes());
        spill.victims.note(server, id, server.visit_max(&self.settings));
        if !server.queue.is_by_arrival() && server.queue.bytes() > RANKED_BYTES_MAX {
            self.cut(id);
        }
        self.cut_some();
    }

    fn cut_some(&mut self) {
        for _ in 0..CUTS_MAX {
            let Some(spill) = &mut self.spill else { return };
            if spill.bytes <= spill.bytes_max {
                return;
            }
            if !spill.victims.is_on {
                spill.victims.is_on = true;
                for (index, server) in self.servers.iter_mut().enumerate() {
                    let kept = server.visit_max(&self.settings);
                    spill.victims.note(server, ServerId::from_index(index), kept);
                }
            }
            match spill.victims.take(&mut self.servers, &self.settings) {
                Some(id) => self.cut(id),
                None => return,
            }
        }
    }

    /// The end of a queue goes to the disk.
    fn cut(&mut self, id: ServerId) {
        self.write_ahead(id);
        let spill = self.spill.as_mut().expect("there is a disk to go to");
        let server = &mut self.servers[id.index()];
        let kept = server.visit_max(&self.settings);
        let queue = &mut server.queue;
        let before = queue.bytes();
        if queue.depot().is_none_or(|depot| depot.task == Task::Nothing) {
            queue.close(kept);
            let cut = queue.cut(kept, CUT_BYTES);
            spill.write_cut(id, queue, cut);
        }
        spill.write_buffers(id, queue, 1, CHUNK_URLS as u32);
        if queue.bytes() >= before {
            spill.write_buffers(id, queue, 1, 1);
        }
        let after = queue.bytes();
        spill.weigh(before, after);
        if after < before {
            spill.victims.note(server, id, kept);
        }
    }

    /// Brings what waits to be written to the disk: all, or if it is enough for an append.
    ///
    /// # Errors
    /// The disk's: nothing is lost, and this may be called again.
    pub fn write(&mut self, all: bool, disk: &mut dyn Disk) -> Result<(), disk::Error> {
        self.spill.as_mut().map_or(Ok(()), |spill| spill.log.write(all, disk))
    }
}
