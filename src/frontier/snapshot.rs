//! The state of one moment, written down while the crawl goes on.
//!
//! Some servers are written in each turn, by number; one that is about to change is written first
//! (decision 29). URLs under way count as waiting, before what waits at their server. Servers that
//! come to be later are not part of it.
//!
//! ```text
//! kind 16, a server   number | origin | retired as u8 | place in line | visits
//!                     crawl delay, 0 or 1 + us | connect us | response us | allowance
//!                     wait of the server | wait of its host
//!                     URLs in memory | chunks | URLs in chunks | URLs in the tail
//!                     URLs in memory, to the end
//! kind 17, more URLs  number of their server | URLs in memory, to the end
//! kind 18, chunks     number of their server | place u64 of each, to the end
//! kind 19, a tail     number of its server | URLs, to the end
//! URLs                runs ([`super::runs`]), the first of which begins with its first, there or
//!                     gone: what is packed goes in as it is, and is cut where a frame is full
//! wait                us left | unless none is left: end, us of Unix time
//! state               servers | arrivals of URLs
//!                     segments of the log | for each: number, bytes that count
//! ```
//!
//! Law: what [`super::restore`] makes of it is the frontier as it was at the moment of
//! [`Frontier::begin_snapshot`], whatever was done to it since (held to a naive model).
//! Cost: a copy of each server, and a look at the URLs of those that take more than one frame; one
//! bit of memory a server, and what was written ahead.

use super::log;
use super::names::Names;
use super::queue::blocks::{Blocks, Chain, Cursor};
use super::queue::cold::Cold;
use super::queue::{Errand, Item};
use super::runs::{FIRST, GONE, Record, Run};
use super::server::{Retirement, Server, ServerId, ServerState};
use super::workbench::Workbench;
use super::{Frontier, group::GroupId};
use crate::codec::{Put, Take};
use crate::disk::{self, Disk};
use crate::frame::{self, Mark};
use crate::map::Map;
use crate::time::{Instant, Now};
use std::ops::Range;

/// Kinds of frames.
pub(super) const SERVER: u8 = 16;
pub(super) const MORE: u8 = 17;
pub(super) const CHUNKS: u8 = 18;
pub(super) const TAIL: u8 = 19;

/// URLs go into a frame until it has so many bytes; in tests, only a few.
const FRAME_BYTES: usize = if cfg!(test) { 90 } else { 64 << 10 };

/// A moment that is being written down.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The moment.
    now: Now,
    /// Servers known at that moment.
    servers: usize,
    /// URLs queued until then.
    arrivals: u64,
    /// Segments of the log that were alive, and how long they were.
    segments: Vec<(u32, u64)>,
    /// URLs under way then, in order.
    flights: Map<ServerId, Vec<Item>>,
    /// Clocks of hosts that were visited since, as they were.
    clocks: Map<GroupId, Instant>,
    /// A bit for each server that is written.
    written: Vec<u64>,
    /// The server to be written next, and how much of it is.
    next: usize,
    walk: Walk,
    /// Frames of servers that were about to change.
    ahead: Vec<u8>,
}

/// How far a server is written: it doesn't change before it is written whole.
#[derive(Debug, Default)]
struct Walk {
    is_begun: bool,
    /// URLs that are under way or at hand.
    urls: usize,
    packed: Packed,
}

/// How far a chain is written.
#[derive(Debug, Default)]
struct Packed {
    /// Where it goes on.
    from: Cursor,
    /// What of it was read and is not written; begins with the first of a run.
    rest: Vec<u8>,
}

impl Frontier {
    /// Begins to write the state of this moment down. What `flights` lists is under way; it counts
    /// as waiting, before what waits at its server, in that order. A snapshot that has not come to
    /// its end is given up.
    pub fn begin_snapshot(&mut self, flights: Vec<(ServerId, Item)>, now: Now) {
        called!(BeginSnapshot);
        // Who still sleeps from here on has a wait to be kept.
        self.expire(now.at);
        let mut by_server: Map<ServerId, Vec<Item>> = Map::default();
        for (id, item) in flights {
            // A server's own robots.txt is asked for again by whoever needs it.
            if item.errand != Errand::Robots(id, 0) {
                by_server.entry(id).or_default().push(item);
            }
        }
        self.snapshot = Some(Box::new(Snapshot {
            now,
            servers: self.servers.len(),
            arrivals: self.arrivals,
            segments: self.spill.as_ref().map_or(Vec::new(), |spill| spill.log.alive()),
            flights: by_server,
            clocks: Map::default(),
            written: vec![0; self.servers.len().div_ceil(64)],
            next: 0,
            walk: Walk::default(),
            ahead: Vec::new(),
        }));
    }

    /// Writes some more as frames, about `budget_bytes` beside what was written ahead; `true` when
    /// all is written.
    pub fn snapshot_some(&mut self, budget_bytes: usize, out: &mut Vec<u8>) -> bool {
        called!(SnapshotSome);
        let Some(mut snapshot) = self.snapshot.take() else { return true };
        out.append(&mut snapshot.ahead);
        let (enough, mut step) = (out.len() + budget_bytes, 0);
        while out.len() < enough && snapshot.next < snapshot.servers {
            let id = ServerId::from_index(snapshot.next);
            if !snapshot.is_written(id) {
                self.look_through(step, id.index());
                step += 1;
                let server = &self.servers[id.index()];
                let blocks = self.spill.as_ref().map(|spill| &spill.blocks);
                let known = (&self.names, &self.workbench);
                snapshot.write_some(id, server, known, blocks, enough, out);
            }
            snapshot.pass_written();
        }
        let done = snapshot.next == snapshot.servers;
        self.snapshot = (!done).then_some(snapshot);
        done
    }

    /// Whether a moment is being written down.
    pub fn is_snapshotting(&self) -> bool {
        self.snapshot.is_some()
    }

    /// What is not a server's, as of the moment of the snapshot that is being written; brings all
    /// chunks to the disk.
    ///
    /// # Errors
    /// The disk's; the mark may be asked for again.
    pub fn mark(&mut self, disk: &mut dyn Disk) -> Result<Mark, disk::Error> {
        called!(Mark);
        self.write(true, disk)?;
        let snapshot = self.snapshot.as_ref().expect("a snapshot has begun");
        if let Some(spill) = &mut self.spill {
            spill.log.set_marked(snapshot.segments.iter().map(|(number, _)| *number));
        }
        let mut state = Vec::new();
        state.put_varint(snapshot.servers as u64);
        state.put_varint(snapshot.arrivals);
        state.put_varint(snapshot.segments.len() as u64);
        for (number, bytes) in &snapshot.segments {
            state.put_varint(u64::from(*number));
            state.put_varint(*bytes);
        }
        let file = |(number, bytes): &(u32, u64)| (log::name_of(*number), *bytes);
        Ok(Mark { state, files: snapshot.segments.iter().map(file).collect() })
    }

    /// The last mark is durable: names of files that nothing needs any more, to be removed.
    pub fn settled(&mut self) -> Vec<String> {
        called!(Settled);
        self.spill.as_mut().map_or(Vec::new(), |spill| spill.settled())
    }

    /// A server is about to change: what it was at the moment of the snapshot is written first.
    pub(super) fn write_ahead(&mut self, id: ServerId) {
        if let Some(snapshot) = &mut self.snapshot {
            let blocks = self.spill.as_ref().map(|spill| &spill.blocks);
            let known = (&self.names, &self.workbench);
            snapshot.write_ahead(id, &self.servers[id.index()], known, blocks);
        }
    }

    /// A visit to a server is about to set the clock of its host.
    pub(super) fn keep_clock(&mut self, id: ServerId) {
        if let Some(snapshot) = &mut self.snapshot
            && let Some(host) = self.servers[id.index()].host()
        {
            snapshot.clocks.entry(host).or_insert(self.workbench.groups[host].next);
        }
    }
}

impl Snapshot {
    fn is_written(&self, id: ServerId) -> bool {
        self.written[id.index() / 64] >> (id.index() % 64) & 1 == 1
    }

    #[cold]
    fn write_ahead(
        &mut self,
        id: ServerId,
        server: &Server,
        known: (&Names, &Workbench),
        blocks: Option<&Blocks>,
    ) {
        if id.index() >= self.servers || self.is_written(id) {
            return;
        }
        // The server whose turn it is may be half written, and only goes on.
        let is_next = id.index() == self.next;
        let half = if is_next { None } else { Some(std::mem::take(&mut self.walk)) };
        let mut ahead = std::mem::take(&mut self.ahead);
        self.write_some(id, server, known, blocks, usize::MAX, &mut ahead);
        self.ahead = ahead;
        self.walk = half.unwrap_or_default();
    }

    /// Goes on to a server that is not written yet.
    fn pass_written(&mut self) {
        while self.next < self.servers && self.is_written(ServerId::from_index(self.next)) {
            (self.next, self.walk) = (self.next + 1, Walk::default());
        }
    }

    /// Goes on to write a server, frame by frame, until `out` has `enough` bytes.
    fn write_some(
        &mut self,
        id: ServerId,
        server: &Server,
        known: (&Names, &Workbench),
        blocks: Option<&Blocks>,
        enough: usize,
        out: &mut Vec<u8>,
    ) {
        let mut walk = std::mem::take(&mut self.walk);
        let under_way = self.flights.get(&id).map_or(&[][..], Vec::as_slice);
        let packed = server.queue.cold().zip(blocks);
        if let (Some((cold, _)), false) = (packed, walk.is_begun) {
            walk.packed = Packed::of(&cold.head);
        }
        let mut items = under_way.iter().chain(server.queue.hot_items()).skip(walk.urls).peekable();
        while !walk.is_begun
            || out.len() < enough && !(items.peek().is_none() && walk.packed.is_over())
        {
            let kind = if walk.is_begun { MORE } else { SERVER };
            frame::push_with(kind, out, |out| {
                let most = out.len() + FRAME_BYTES;
                out.put_varint(id.index() as u64);
                if !walk.is_begun {
                    self.put_record(server, known, out);
                    out.put_varint((under_way.len() + server.queue.in_memory()) as u64);
                    put_outside(server.queue.cold(), out);
                }
                let mut run = Run::default();
                while out.len() < most
                    && let Some(item) = items.next()
                {
                    run.put(item.written(), out);
                    walk.urls += 1;
                }
                if let Some((_, blocks)) = packed {
                    walk.packed.put_some(blocks, most, out);
                }
            });
            walk.is_begun = true;
        }
        if items.peek().is_none() && walk.packed.is_over() {
            if let Some((cold, blocks)) = packed {
                put_cold(id, cold, blocks, out);
            }
            self.written[id.index() / 64] |= 1 << (id.index() % 64);
        }
        self.walk = walk;
    }

    fn put_record(
        &self,
        server: &Server,
        (names, workbench): (&Names, &Workbench),
        out: &mut Vec<u8>,
    ) {
        out.put_str(names.get(server.name).as_str());
        let retired_as = match server.state {
            ServerState::Retired(why) => code_of(why),
            _ => 0,
        };
        out.put_u8(retired_as);
        out.put_varint(server.arrival);
        out.put_varint(u64::from(server.visits));
        out.put_varint(server.crawl_delay().map_or(0, |delay| 1 + narrow(delay.as_micros())));
        for estimate in server.estimates.measured() {
            out.put_varint(u64::from(estimate));
        }
        self.put_wait(server.due, out);
        let kept = server.host().and_then(|host| self.clocks.get(&host).copied());
        self.put_wait(kept.unwrap_or_else(|| workbench.host_clock(server)), out);
    }

    /// A wait as calendar time, and what is left of it, so that a calendar that jumps can't make
    /// it longer.
    fn put_wait(&self, until: Instant, out: &mut Vec<u8>) {
        let left_us = until.as_micros().saturating_sub(self.now.at.as_micros());
        out.put_varint(left_us);
        if left_us > 0 {
            out.put_varint(self.now.unix_of(until).as_micros());
        }
    }
}

impl Packed {
    fn of(chain: &Chain) -> Self {
        Self { from: chain.cursor(), rest: Vec::new() }
    }

    /// Whether all of it is written.
    fn is_over(&self) -> bool {
        self.rest.is_empty() && self.from.is_over()
    }

    /// Appends URLs as they are, until `out` has about `most` bytes; at least one if it has fewer.
    fn put_some(&mut self, blocks: &Blocks, most: usize, out: &mut Vec<u8>) {
        if out.len() >= most {
            return;
        }
        let start = out.len();
        out.append(&mut self.rest);
        blocks.read_on(&mut self.from, most.saturating_sub(out.len()), out);
        // A chain ends with a whole URL, a block hardly ever.
        while !self.from.is_over() {
            let (first, end) = last_whole(&out[start..]);
            let later = &out[start + end..];
            if end > 0 && !later.is_empty() {
                if later[0] & FIRST == 0 {
                    self.rest.extend_from_slice(&out[start..][first]);
                    self.rest[0] |= GONE;
                }
                self.rest.extend_from_slice(later);
                return out.truncate(start + end);
            }
            blocks.read_on(&mut self.from, 1, out);
        }
    }
}

/// Where in bytes that begin with the first of a run the last whole URL ends, and where the first
/// of its run is if what follows leans on that, too.
fn last_whole(bytes: &[u8]) -> (Range<usize>, usize) {
    let (mut take, mut used) = (Take::new(bytes), 0);
    let (mut first, mut end) = (0..0, 0);
    while let Ok(record) = Record::take(&mut take) {
        let from = std::mem::replace(&mut used, bytes.len() - take.rest().len());
        if record.is_first {
            first = from..used;
        }
        if !record.is_gone {
            end = used;
        }
    }
    (first, end)
}

/// How much of a queue waits outside: what to expect.
fn put_outside(cold: Option<&Cold>, out: &mut Vec<u8>) {
    let Some(cold) = cold else { return out.extend_from_slice(&[0; 3]) };
    let (in_tail, in_chunks) = cold.urls_outside();
    out.put_varint(cold.places().len() as u64);
    out.put_varint(in_chunks as u64);
    out.put_varint(in_tail as u64);
}

/// What waits outside, in frames of its own.
fn put_cold(id: ServerId, cold: &Cold, blocks: &Blocks, out: &mut Vec<u8>) {
    let mut places = cold.places().iter(blocks).peekable();
    while places.peek().is_some() {
        frame::push_with(CHUNKS, out, |out| {
            out.put_varint(id.index() as u64);
            places.by_ref().take(FRAME_BYTES / 9).for_each(|place| out.put_u64(place.word()));
        });
    }
    let mut tail = Packed::of(&cold.tail);
    while !tail.is_over() {
        frame::push_with(TAIL, out, |out| {
            let most = out.len() + FRAME_BYTES;
            out.put_varint(id.index() as u64);
            tail.put_some(blocks, most, out);
        });
    }
}

/// Room for one more.
fn narrow(us: u128) -> u64 {
    u64::try_from(us).unwrap_or(u64::MAX).min(u64::MAX - 1)
}

fn code_of(why: Retirement) -> u8 {
    let place = Retirement::ALL.iter().position(|other| *other == why).expect("all are listed");
    u8::try_from(place + 1).expect("few reasons")
}
