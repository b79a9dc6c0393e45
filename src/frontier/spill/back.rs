//! Chunks that come back: which are read when, and what becomes of what was read.
//!
//! When a visit leaves fewer URLs in memory than the next may take, the next chunk is read, of
//! several servers in one job, while the server rests. A server whose next URL is not in memory is
//! not in line until it is there. The same jobs make many short chunks of a queue into fewer, and
//! write anew what is alive in a segment of which little is.
//!
//! Laws: whoever waits for a chunk is in the list of those, once; what was read is believed only
//! if its checksum, its server and its number of URLs are right. Cost: a look-up a chunk; one job
//! at a time, a MiB at most.

use super::super::Frontier;
use super::super::items::Run;
use super::super::log::{self, CHUNK, Log};
use super::super::place::Place;
use super::super::queue::depot::Task;
use super::super::queue::{Errand, Item};
use super::super::server::{ServerId, ServerState};
use super::Sweep;
use super::job::{self, FrontierDone, FrontierJob, Read, Work};
use crate::codec::Take;
use crate::disk::Disk;
use crate::frame::{self, Damage, Flaw};
use crate::time::Instant;

/// Chunks and bytes that one job reads.
const READS_MAX: usize = if cfg!(test) { 5 } else { 256 };
const READ_BYTES_MAX: usize = 1 << 20;
/// Chunks of one queue that come in at once.
const CHUNKS_MAX: usize = 16;
/// A sweep reads a segment in pieces of this size.
const PIECE_BYTES: usize = if cfg!(test) { 700 } else { 512 << 10 };

impl Frontier {
    /// A URL has been taken from a queue: more may have to be read.
    pub(in super::super) fn restock(&mut self, id: ServerId) {
        let server = &mut self.servers[id.index()];
        let Some(spill) = &mut self.spill else { return };
        let before = server.queue.bytes();
        if let Some(place) = server.queue.spent() {
            spill.log.release(place);
        }
        spill.weigh(before, server.queue.bytes());
        let wants = match server.state {
            ServerState::Retired(_) => server.queue.in_memory() == 0,
            _ => server.queue.is_short(server.visit_max(&self.settings)),
        };
        if let Some(depot) = server.queue.depot_mut()
            && wants
            && depot.task == Task::Nothing
            && !depot.chunks().is_empty()
        {
            depot.task = Task::Reading;
            spill.wanted.push_back(id);
        }
    }

    /// The next job, if there is any and none is under way.
    pub fn job(&mut self, disk: &dyn Disk) -> Option<FrontierJob> {
        let spill = self.spill.as_mut().filter(|spill| !spill.is_working)?;
        spill.jobs = spill.jobs.wrapping_add(1);
        // Servers that are waited for must not keep the disk from being tidied up for ever.
        let sweep = if spill.jobs.is_multiple_of(4) { self.sweep() } else { None };
        let work = sweep.or_else(|| self.back()).or_else(|| self.merge()).or_else(|| self.sweep());
        let work = work?;
        self.spill.as_mut().expect("as above").is_working = true;
        Some(FrontierJob { disk: disk.handle(), work })
    }

    fn back(&mut self) -> Option<Work> {
        let spill = self.spill.as_mut()?;
        let (mut reads, mut bytes) = (Vec::new(), 0);
        while reads.len() < READS_MAX
            && bytes < READ_BYTES_MAX
            && let Some(id) = spill.wanted.pop_front()
        {
            let server = &mut self.servers[id.index()];
            let visit_max = server.visit_max(&self.settings);
            let Some(depot) = server.queue.depot_mut() else { continue };
            if depot.chunks().is_empty() {
                depot.task = Task::Nothing;
                continue;
            }
            let mean = depot.urls() / depot.chunks().len();
            let wanted = (visit_max / mean.max(1)).clamp(1, CHUNKS_MAX);
            for place in depot.chunks().iter().take(wanted) {
                bytes += place.bytes();
                reads.push(spill.log.read(id, *place));
            }
        }
        (!reads.is_empty()).then_some(Work::Back(reads))
    }

    fn merge(&mut self) -> Option<Work> {
        while let Some(id) = self.spill.as_mut()?.merging.pop_front() {
            let Some(depot) = self.servers[id.index()].queue.depot_mut() else { continue };
            let mut row = depot.row();
            row.truncate(READS_MAX);
            if row.len() > 1 {
                let log = &self.spill.as_ref()?.log;
                let reads = row.into_iter().map(|place| log.read(id, place));
                return Some(Work::Merge(id, reads.collect()));
            }
            depot.task = Task::Nothing;
            self.restock(id);
        }
        None
    }

    fn sweep(&mut self) -> Option<Work> {
        let spill = self.spill.as_mut()?;
        spill.sweep = spill.sweep.filter(|sweep| spill.log.is_alive(sweep.segment));
        if spill.sweep.is_none() {
            let (segment, end) = spill.log.next_sparse()?;
            spill.sweep = Some(Sweep { segment, offset: 0, end, piece_bytes: PIECE_BYTES });
        }
        let Sweep { segment, offset, end, piece_bytes } = spill.sweep?;
        let left = usize::try_from(end - offset).expect("segments are short");
        let bytes = vec![0; piece_bytes.min(left)];
        Some(Work::Sweep { segment, offset, bytes })
    }

    /// Takes in what a job has read.
    ///
    /// # Errors
    /// What the disk says, or what is wrong with a segment. The URLs are where they were.
    pub fn worked(&mut self, done: FrontierDone, now: Instant) -> Result<(), frame::Error> {
        self.expire(now);
        let spill = self.spill.as_mut().expect("the job was ours");
        spill.is_working = false;
        if let Err(error) = done.result {
            match done.work {
                Work::Back(reads) => {
                    let mut ids: Vec<ServerId> = reads.iter().map(|read| read.id).collect();
                    ids.dedup();
                    spill.wanted.extend(ids);
                }
                Work::Merge(id, _) => spill.merging.push_back(id),
                Work::Sweep { .. } => {}
            }
            return Err(error.into());
        }
        match done.work {
            Work::Back(reads) => {
                for reads in reads.chunk_by(|one, next| one.id == next.id) {
                    self.take_back(reads, now)?;
                }
            }
            Work::Merge(id, reads) => self.merged(id, &reads, now)?,
            Work::Sweep { segment, offset, bytes } => self.swept(segment, offset, &bytes)?,
        }
        self.cut_some();
        Ok(())
    }

    /// The next chunks of a server have been read.
    fn take_back(&mut self, reads: &[Read], now: Instant) -> Result<(), Damage> {
        let id = reads[0].id;
        let chunks = self.parsed(id, reads)?;
        self.write_ahead(id);
        let spill = self.spill.as_mut().expect("the job was ours");
        let server = &mut self.servers[id.index()];
        let before = server.queue.bytes();
        let is_one = chunks.len() == 1;
        for ((place, mut items), read) in chunks.into_iter().zip(reads) {
            let urls = u32::try_from(items.len()).unwrap_or(u32::MAX);
            let depot = server.queue.depot_mut();
            let skip = depot.and_then(|depot| depot.remove(place, urls));
            let skip = skip.ok_or_else(|| read.damage(Flaw::Senseless))?;
            items.drain(..skip as usize);
            let spent = if is_one && !matches!(server.state, ServerState::Retired(_)) {
                server.queue.open(place, urls, items)
            } else {
                let before = server.queue.own_opened();
                server.queue.own_all(items);
                [before, Some(place)]
            };
            spent.into_iter().flatten().for_each(|place| spill.log.release(place));
        }
        self.settle_back(id, before, now);
        Ok(())
    }

    /// What a server's chunks are read for is done.
    fn settle_back(&mut self, id: ServerId, before: usize, now: Instant) {
        let server = &mut self.servers[id.index()];
        let spill = self.spill.as_mut().expect("the job was ours");
        if let Some(depot) = server.queue.depot_mut() {
            depot.task = Task::Nothing;
        }
        server.queue.empty_buffers();
        spill.weigh(before, server.queue.bytes());
        spill.victims.note(server, id, server.visit_max(&self.settings));
        let is_told = matches!(server.state, ServerState::Retired(_));
        if is_told && server.queue.in_memory() > 0 && !spill.given_up.contains(&id) {
            spill.given_up.push_back(id);
        }
        self.restock(id);
        self.line_up(id, now);
    }

    /// Many short chunks have been read, to be made into fewer.
    fn merged(&mut self, id: ServerId, reads: &[Read], now: Instant) -> Result<(), Damage> {
        let chunks = self.parsed(id, reads)?;
        self.write_ahead(id);
        let spill = self.spill.as_mut().expect("the job was ours");
        let server = &mut self.servers[id.index()];
        let before = server.queue.bytes();
        let row: Vec<Place> = reads.iter().map(|read| read.place).collect();
        let mut items = Vec::new();
        let depot = server.queue.depot().expect("what is being merged stays");
        for (place, chunk) in chunks {
            items.extend(chunk.into_iter().skip(depot.skip(place) as usize));
        }
        server.queue.sort(&mut items);
        let merged = spill.write_chunks(id, row[0].band(), &items);
        let merged: Vec<Place> = merged.into_iter().map(|(place, _)| place).collect();
        server.queue.depot_or_new().merge(&row, &merged);
        row.into_iter().for_each(|place| spill.log.release(place));
        self.settle_back(id, before, now);
        Ok(())
    }

    /// Part of a segment has been read: what of it is alive is written anew.
    fn swept(&mut self, segment: u32, offset: u64, bytes: &[u8]) -> Result<(), Damage> {
        let mut used = 0;
        while used < bytes.len() {
            let at = offset + used as u64;
            let damage = |flaw| Damage { name: log::name_of(segment), offset: at, flaw };
            let (frame, taken) = match frame::parse(&bytes[used..], at) {
                Ok(parsed) => parsed,
                Err(Flaw::Cut) => break,
                Err(flaw) => return Err(damage(flaw)),
            };
            used += taken;
            if frame.kind == CHUNK {
                let mut take = Take::new(frame.payload);
                let id = take.number().map(ServerId).map_err(|_| damage(Flaw::Senseless))?;
                self.keep_alive(id, segment, at, take.rest());
            }
        }
        let spill = self.spill.as_mut().expect("the job was ours");
        let sweep = spill.sweep.as_mut().expect("a sweep is under way");
        sweep.offset += used as u64;
        if sweep.offset >= sweep.end {
            spill.sweep = None;
        } else if used == 0 {
            // A chunk that is longer than a piece.
            let wanted = job::frame_bytes(bytes).unwrap_or(usize::MAX);
            if wanted <= bytes.len() || wanted as u64 > sweep.end - sweep.offset {
                let (name, offset) = (log::name_of(segment), sweep.offset);
                return Err(Damage { name, offset, flaw: Flaw::Cut });
            }
            sweep.piece_bytes = wanted;
        }
        Ok(())
    }

    /// If that chunk is alive, it is written anew.
    fn keep_alive(&mut self, id: ServerId, segment: u32, offset: u64, urls: &[u8]) {
        let depot = self.servers.get(id.index()).and_then(|server| server.queue.depot());
        let Some(old) = depot.and_then(|depot| depot.find(segment, offset)) else { return };
        self.write_ahead(id);
        let log = &mut self.spill.as_mut().expect("the job was ours").log;
        let new = log.append(id, old.band(), |out| out.extend_from_slice(urls));
        log.release(old);
        self.servers[id.index()].queue.depot_or_new().replace(old, new);
    }

    /// The URLs of chunks that were read.
    fn parsed(&self, id: ServerId, reads: &[Read]) -> Result<Vec<(Place, Vec<Item>)>, Damage> {
        let origin = self.origin(id).as_str();
        let may_be = |item: &Item| match item.errand {
            Errand::Page => item.arrival <= self.arrivals,
            Errand::Robots(of, _) => of.index() < self.servers.len(),
        };
        let parse = |read: &Read| {
            let urls = read.urls()?;
            let (mut take, mut run, mut items) = (Take::new(urls), Run::default(), Vec::new());
            while !take.is_empty() {
                let item = run.take(origin, &mut take).ok().filter(may_be);
                items.push(item.ok_or_else(|| read.damage(Flaw::Senseless))?);
            }
            Ok((read.place, items))
        };
        reads.iter().map(parse).collect()
    }

    /// The next URL of a server that was retired while URLs of it were on disk: each is to be told
    /// as those were that [`Frontier::retire`] returned. They come after [`Frontier::worked`].
    pub fn given_up(&mut self) -> Option<(ServerId, Item)> {
        let id = *self.spill.as_ref()?.given_up.front()?;
        self.write_ahead(id);
        let server = &mut self.servers[id.index()];
        let before = server.queue.bytes();
        let item = server.queue.pop_own().expect("it is listed because it has some");
        self.urls -= 1;
        let is_last = server.queue.in_memory() == 0;
        self.weigh(id, before);
        if is_last {
            self.spill.as_mut().expect("as above").given_up.pop_front();
            self.restock(id);
        }
        Some((id, item))
    }

    /// After a restart: the queues weigh what they weigh, and who waits for a chunk is listed.
    pub(in super::super) fn take_stock(&mut self) {
        for index in 0..self.servers.len() {
            let id = ServerId::from_index(index);
            let server = &mut self.servers[index];
            let after = server.queue.bytes();
            let is_told = matches!(server.state, ServerState::Retired(_));
            if let Some(spill) = &mut self.spill {
                spill.weigh(0, after);
                if is_told && server.queue.in_memory() > 0 {
                    spill.given_up.push_back(id);
                }
            }
            self.restock(id);
        }
        if let Some(spill) = &mut self.spill {
            let numbers = spill.log.numbers();
            numbers.into_iter().for_each(|number| spill.log.look_at(number));
        }
    }
}

impl Log {
    /// A chunk to be read; if it is not on disk yet it is there at once.
    fn read(&self, id: ServerId, place: Place) -> Read {
        let waiting = self.waiting(place).unwrap_or_default();
        let bytes = job::frame_bytes(waiting).map_or(0, |bytes| bytes.min(waiting.len()));
        Read { id, place, bytes: waiting[..bytes].to_vec() }
    }
}

impl Read {
    /// The URLs in it, in bytes.
    fn urls(&self) -> Result<&[u8], Damage> {
        let (frame, _) =
            frame::parse(&self.bytes, self.place.offset()).map_err(|flaw| self.damage(flaw))?;
        let mut take = Take::new(frame.payload);
        let id = take.number().map(ServerId);
        if frame.kind != CHUNK || id != Ok(self.id) {
            return Err(self.damage(Flaw::Senseless));
        }
        Ok(take.rest())
    }

    fn damage(&self, flaw: Flaw) -> Damage {
        let (name, offset) = (log::name_of(self.place.segment()), self.place.offset());
        Damage { name, offset, flaw }
    }
}
