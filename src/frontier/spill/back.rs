//! Chunks that come back: which are read when, and what becomes of what was read.
//!
//! When a visit leaves fewer URLs in memory than the next may take, the next chunk is read, of
//! several servers in one job, while the server rests. A server whose next URL is not in memory is
//! not in line until it is there. The same jobs make many short chunks of a queue into fewer, and
//! write anew what is alive in a segment of which little is. When what was read comes in is told in
//! [`intake`](super::intake). While others are ready a job of few reads waits for more: to hand one
//! out, and to have its memory asked for in time, costs the same for few as for many.
//!
//! Laws: whoever waits for a chunk is in the list of those, once; what was read is believed only
//! if its checksum and its server are right, and of its URLs those that are used, at the end their
//! number, too; nothing of a queue changes before all that is wanted was looked at. Cost: a
//! look-up a chunk; one job at a time, a MiB at most.

use super::super::Frontier;
use super::super::items::Written;
use super::super::log::{self, CHUNK, Log};
use super::super::look::Bounds;
use super::super::place::Place;
use super::super::policy::Rank;
use super::super::queue::Weight;
use super::super::queue::cold::Task;
use super::super::server::{ServerId, ServerState};
use super::super::unpacked::Raw;
use super::chunk::{Chunk, Used};
use super::job::{self, FrontierJob, Read, Reads, Work};
use super::{Spill, Sweep, short_min};
use crate::codec::Take;
use crate::disk::Disk;
use crate::frame::{self, Damage, Flaw};
use crate::time::Instant;

/// Servers that a job reads for, if others are ready meanwhile; it is held back for so many calls
/// at most until there are as many.
const SERVERS_ENOUGH: usize = if cfg!(test) { 3 } else { 64 };
const HELD_CALLS_MAX: u32 = 7;
/// Chunks and bytes that one job reads.
const READS_MAX: usize = if cfg!(test) { 40 } else { 1 << 12 };
const READ_BYTES_MAX: usize = 1 << 20;
/// By quality: of more chunks of a server than these all is taken, so that they become fewer on the
/// way; of fewer what is wanted, since what is left where it is needn't be written again.
const CHUNKS_FEW: usize = if cfg!(test) { 2 } else { 3 };
/// Texts of a chunk, written out, are no more: few URLs may lean on much, but not on any amount.
const TEXTS_BYTES_MAX: usize = 128 << 20;
/// A sweep reads a segment in pieces of this size.
const PIECE_BYTES: usize = if cfg!(test) { 700 } else { 512 << 10 };

impl Frontier {
    /// A URL has been taken from a queue: more may have to be read.
    pub(in super::super) fn restock(&mut self, id: ServerId) {
        let server = &mut self.servers[id.index()];
        let Some(spill) = &mut self.spill else { return };
        let wants = match server.state {
            ServerState::Retired(_) => server.queue.in_memory() == 0,
            _ => server.queue.is_short(spill.kept(server, &self.settings)),
        };
        if let Some(cold) = server.queue.cold_mut()
            && wants
            && cold.task == Task::Nothing
            && !cold.places().is_empty()
        {
            cold.task = Task::Reading;
            spill.wanted.push_back(id);
            // The visit goes on if its URLs are there in time.
            let is_visited = server.state == ServerState::Busy;
            spill.is_urgent |= is_visited && server.visit_max(&self.settings) > 1;
        }
    }

    /// The next job, if there is any and none is under way. One that would read little is held back
    /// for some calls while others are ready, so whoever has begun their visits is to call again.
    pub fn job(&mut self, disk: &dyn Disk) -> Option<FrontierJob> {
        called!(Job);
        let spill = self.spill.as_mut().filter(|spill| !spill.is_working)?;
        spill.jobs = spill.jobs.wrapping_add(1);
        // Servers that are waited for must not keep the disk from being tidied up for ever.
        let first = match spill.jobs % 4 {
            0 => self.sweep(),
            2 => self.merge(),
            _ => None,
        };
        if first.is_none() && self.holds_back() {
            return None;
        }
        let work = first.or_else(|| self.back()).or_else(|| self.merge());
        let work = work.or_else(|| self.sweep())?;
        let spill = self.spill.as_mut().expect("as above");
        spill.is_working = true;
        let disk = spill.disk.take().unwrap_or_else(|| disk.handle());
        Some(FrontierJob { disk, work })
    }

    /// Whether there will be more to read soon, and enough to do until then.
    fn holds_back(&mut self) -> bool {
        let ready = self.ready();
        self.spill.as_mut().is_some_and(|spill| spill.holds_back(ready))
    }

    fn back(&mut self) -> Option<Work> {
        let spill = self.spill.as_mut()?;
        spill.is_urgent = false;
        let (mut reads, mut bytes) = (spill.begin_reads(), 0);
        for step in 0.. {
            if reads.reads.len() >= READS_MAX || bytes >= READ_BYTES_MAX {
                break;
            }
            let wanted = &self.spill.as_ref()?.wanted;
            self.look_ahead(step, |later| wanted.get(later).copied());
            let spill = self.spill.as_mut()?;
            let Some(id) = spill.wanted.pop_front() else { break };
            let server = &mut self.servers[id.index()];
            let kept = spill.kept(server, &self.settings);
            let by_quality = !server.queue.is_by_arrival();
            // What is read beyond what is wanted must not have to go again at once.
            let is_roomy = by_quality || !spill.is_nearly_full();
            let room = if is_roomy { spill.room(kept) } else { kept };
            let Some(cold) = server.queue.cold_mut() else { continue };
            let next = cold.next(by_quality, room, &spill.blocks);
            if next.is_empty() {
                cold.task = Task::Nothing;
            }
            for place in next {
                bytes += place.bytes();
                spill.log.read(id, place, &mut reads);
            }
        }
        self.spill.as_mut()?.some_reads(reads).map(Work::Back)
    }

    fn merge(&mut self) -> Option<Work> {
        let (mut reads, mut bytes) = (self.spill.as_mut()?.begin_reads(), 0);
        while reads.reads.len() < READS_MAX
            && bytes < READ_BYTES_MAX
            && let Some(id) = self.spill.as_mut()?.merging.pop_front()
        {
            let queue = &mut self.servers[id.index()].queue;
            let by_quality = !queue.is_by_arrival();
            let Some(cold) = queue.cold_mut() else { continue };
            let spill = self.spill.as_mut()?;
            let row = cold.short(by_quality, short_min(by_quality), &spill.blocks);
            if row.len() < 2 {
                cold.task = Task::Nothing;
                self.restock(id);
                continue;
            }
            for place in row {
                bytes += place.bytes();
                spill.log.read(id, place, &mut reads);
            }
        }
        self.spill.as_mut()?.some_reads(reads).map(Work::Merge)
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

    /// The next chunks of a server have been read.
    pub(super) fn take_back(
        &mut self,
        reads: &[Read],
        bytes: &[u8],
        now: Instant,
    ) -> Result<(), Damage> {
        let id = reads[0].id;
        let chunks = self.opened(id, reads, bytes)?;
        self.write_ahead(id);
        let spill = self.spill.as_mut().expect("the job was ours");
        let server = &mut self.servers[id.index()];
        let before = (server.queue.weight(), server.rank(&self.settings));
        let is_told = matches!(server.state, ServerState::Retired(_));
        let by_quality = !server.queue.is_by_arrival();
        let kept = spill.kept(server, &self.settings);
        let mut room = spill.room(kept);
        let mut missing = room.saturating_sub(server.queue.in_memory()).max(1);
        // What is read must not have to go again at once.
        let most = spill.head_max(&server.queue, kept).saturating_sub(server.queue.in_memory());
        if is_told {
            (room, missing) = (usize::MAX, usize::MAX);
        } else if by_quality && chunks.len() > CHUNKS_FEW {
            missing = usize::MAX;
        }
        // What wasn't at hand is sorted as bytes.
        let is_bare = by_quality && server.queue.is_bare();
        let mut loose = is_bare.then(|| spill.blocks.loose());
        let mut used = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            let place = chunk.read.place;
            let is_whole = match by_quality {
                true => place.is_unsorted(),
                false => place.is_short() && chunk.left() <= most,
            };
            let wanted = if is_whole { usize::MAX } else { missing };
            let taken = chunk.take(wanted, loose.as_mut());
            let taken = taken.ok_or_else(|| chunk.read.damage(Flaw::Senseless))?;
            missing = missing.saturating_sub(taken.range.len());
            used.push(taken);
            if missing == 0 {
                break;
            }
        }
        for Used { read, range, steps, next, .. } in &used {
            let next = next.map(|url| if by_quality { url.band() } else { 0 });
            let blocks = &mut spill.blocks;
            let cold = server.queue.cold_mut();
            let is_over =
                cold.and_then(|cold| cold.use_up(read.place, range, *steps, next, blocks));
            if is_over.ok_or_else(|| read.damage(Flaw::Senseless))? {
                spill.log.release(read.place);
            }
        }
        if by_quality {
            let urls: Vec<Raw<'_>> = used.iter().map(|used| used.raw).collect();
            spill.own(id, &mut server.queue, &urls, loose, room);
        } else {
            let cold = server.queue.cold_or_new();
            used.iter().for_each(|used| cold.put_head_raw(&used.raw, &mut spill.blocks));
        }
        self.settle_back(id, before, now);
        Ok(())
    }

    /// What a server's chunks are read for is done, to a queue that had this weight and rank.
    fn settle_back(&mut self, id: ServerId, before: (Weight, Rank), now: Instant) {
        let server = &mut self.servers[id.index()];
        let spill = self.spill.as_mut().expect("the job was ours");
        if let Some(cold) = server.queue.cold_mut() {
            cold.task = Task::Nothing;
        }
        server.queue.take_turn(&mut spill.blocks);
        let kept = spill.kept(server, &self.settings);
        if server.state == ServerState::Busy {
            server.queue.warm_if_bare(kept, &mut spill.blocks);
        }
        let (weight, rank) = before;
        spill.weigh(weight, server.queue.weight());
        let is_told = matches!(server.state, ServerState::Retired(_));
        if is_told && server.queue.is_in_hand() && !self.given_up.contains(&id) {
            self.given_up.push_back(id);
        }
        if !is_told && server.state != ServerState::Busy {
            self.cool(id);
        }
        self.restock(id);
        self.line_up(id, rank, now);
    }

    /// Many short chunks have been read, to be made into fewer.
    pub(super) fn merged(
        &mut self,
        reads: &[Read],
        bytes: &[u8],
        now: Instant,
    ) -> Result<(), Damage> {
        let id = reads[0].id;
        let chunks = self.opened(id, reads, bytes)?;
        self.write_ahead(id);
        let spill = self.spill.as_mut().expect("the job was ours");
        let server = &mut self.servers[id.index()];
        let before = (server.queue.weight(), server.rank(&self.settings));
        let mut urls: Vec<Raw<'_>> = Vec::with_capacity(chunks.len());
        let mut loose = (!server.queue.is_by_arrival()).then(|| spill.blocks.loose());
        for chunk in &chunks {
            let used = chunk.take(usize::MAX, loose.as_mut());
            urls.push(used.ok_or_else(|| chunk.read.damage(Flaw::Senseless))?.raw);
        }
        let row: Vec<Place> = reads.iter().map(|read| read.place).collect();
        let count = urls.iter().map(|urls| urls.count).sum();
        let cold = server.queue.cold_mut();
        let index = cold.and_then(|cold| cold.remove(&row, count, &mut spill.blocks));
        let index = index.ok_or_else(|| reads[0].damage(Flaw::Senseless))?;
        if let Some(loose) = loose {
            spill.write_sorted(id, &mut server.queue, &urls, loose);
        } else {
            let taken = spill.unpacked(&urls);
            let urls: Vec<Written<'_>> = taken.iter().collect();
            let merged = spill.write_chunks(id, false, &urls);
            spill.blocks.put_unpacked_away(taken);
            let cold = server.queue.cold_or_new();
            for (place, urls) in merged.into_iter().rev() {
                cold.insert(index, place, urls, &mut spill.blocks);
            }
        }
        row.into_iter().for_each(|place| spill.log.release(place));
        self.settle_back(id, before, now);
        Ok(())
    }

    /// Part of a segment has been read: what of it is alive is written anew.
    pub(super) fn swept(&mut self, segment: u32, offset: u64, bytes: &[u8]) -> Result<(), Damage> {
        let (mut used, mut chunks) = (0, Vec::new());
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
                chunks.push((id, at, take.rest()));
            }
        }
        for (place, (id, at, urls)) in chunks.iter().enumerate() {
            self.look_ahead(place, |later| Some(chunks.get(place + later)?.0));
            self.keep_alive(*id, segment, *at, urls);
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
        let cold = self.servers.get(id.index()).and_then(|server| server.queue.cold());
        let blocks = &self.spill.as_ref().expect("the job was ours").blocks;
        let Some(old) = cold.and_then(|cold| cold.find(segment, offset, blocks)) else { return };
        self.write_ahead(id);
        let spill = self.spill.as_mut().expect("the job was ours");
        let new = spill.log.append(id, old.band(), |out| out.extend_from_slice(urls));
        spill.log.release(old);
        let queue = &mut self.servers[id.index()].queue;
        queue.cold_or_new().replace(old, new, &mut spill.blocks);
    }

    /// Chunks that were read.
    fn opened<'a>(
        &self,
        id: ServerId,
        reads: &'a [Read],
        bytes: &'a [u8],
    ) -> Result<Vec<Chunk<'a>>, Damage> {
        let bounds = Bounds {
            origin_bytes: self.server(id).name.len(),
            arrivals: self.arrivals,
            servers: self.servers.len(),
            texts: TEXTS_BYTES_MAX,
        };
        let open = |read: &'a Read| {
            let chunk = Chunk::open(read, read.urls(bytes)?, bounds);
            chunk.ok_or_else(|| read.damage(Flaw::Senseless))
        };
        reads.iter().map(open).collect()
    }

    /// After a restart: who waits for a chunk is listed.
    pub(in super::super) fn take_stock(&mut self) {
        for index in 0..self.servers.len() {
            let id = ServerId::from_index(index);
            let server = &mut self.servers[index];
            let is_told = matches!(server.state, ServerState::Retired(_));
            if is_told && server.queue.is_in_hand() {
                self.given_up.push_back(id);
            }
            if let Some(spill) = &mut self.spill {
                spill.note(server, id, &self.settings);
            }
            self.restock(id);
        }
        if let Some(spill) = &mut self.spill {
            spill.log.find_sparse();
        }
    }
}

impl Spill {
    /// The same, while so many servers are ready.
    fn holds_back(&mut self, ready: usize) -> bool {
        let are_few = self.wanted.len() < SERVERS_ENOUGH.min(ready);
        let may = !self.wanted.is_empty() && are_few && !self.is_urgent;
        let holds = may && self.held_calls < HELD_CALLS_MAX;
        self.held_calls = if holds { self.held_calls + 1 } else { 0 };
        holds
    }

    fn begin_reads(&mut self) -> Reads {
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        Reads { bytes, ..Reads::default() }
    }

    fn some_reads(&mut self, reads: Reads) -> Option<Reads> {
        if reads.reads.is_empty() {
            self.spare = reads.bytes;
            return None;
        }
        Some(reads)
    }
}

impl Log {
    /// A chunk to be read; if it is not on disk yet it is there at once.
    fn read(&mut self, id: ServerId, place: Place, reads: &mut Reads) {
        let waiting = self.waiting(place).unwrap_or_default();
        let bytes = job::frame_bytes(waiting).map_or(0, |bytes| bytes.min(waiting.len()));
        let start = reads.bytes.len();
        reads.bytes.extend_from_slice(&waiting[..bytes]);
        reads.reads.push(Read { id, place, range: start..start + bytes });
    }
}

impl Read {
    /// The URLs in it, in bytes.
    fn urls<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], Damage> {
        let (frame, _) = frame::parse(&bytes[self.range.clone()], self.place.offset())
            .map_err(|flaw| self.damage(flaw))?;
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

#[cfg(test)]
mod tests {
    use super::super::super::Settings;
    use super::*;

    /// Law: a job that would read for few is held back, but not for ever, and not if somebody may
    /// be waiting for it.
    #[test]
    fn a_job_of_few_reads_waits_for_more() {
        let settings = Settings { crawl: Some(1), ..Settings::default() };
        let mut spill = Spill::new(&settings).expect("there is a disk");
        assert!(!spill.holds_back(100), "there is nothing to read");
        spill.wanted.push_back(ServerId(0));
        assert!(!spill.holds_back(0) && !spill.holds_back(1), "few others are ready");
        for _ in 0..3 {
            assert!((0..HELD_CALLS_MAX).all(|_| spill.holds_back(100)));
            assert!(!spill.holds_back(100), "it has waited long enough");
        }
        spill.is_urgent = true;
        assert!(!spill.holds_back(100), "a visit waits");
        spill.is_urgent = false;
        assert!(spill.holds_back(100));
        spill.wanted.extend((1..SERVERS_ENOUGH as u32).map(ServerId));
        assert!(!spill.holds_back(100), "these are enough");
    }
}
