//! The table of connections: one record in each slot, with its deadline.
//!
//! A *visit* is a series of requests to one server over one connection; after it the server rests.
//! Between two visits a connection may be *parked*, which means that it is kept open without a
//! request. The *flight* of a connection is its requests without a complete reply, in the order in
//! which they were written; replies arrive in the same order.
//!
//! Laws: a slot is reused only with a higher generation. The parked connections are exactly those
//! without a visit. Every connection has one deadline, which is computed from its phase.

use super::fetch::{Fetch, Reply};
use super::held::Batch;
use super::pool::Pool;
use crate::engine::contract::{ConnFacts, ConnId};
use crate::engine::settings::Connections;
use crate::frontier::{Rule, ServerId, Visit};
use crate::ground::time::{Instant, Timers};
use crate::http::pipeline::Pipeline;
use crate::http::response::{Head, Limits, Reader};
use slab::Slab;
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The least space, in bytes, that the end of a buffer must have. If it has less, the unread bytes
/// are moved to the front of the buffer.
const ROOM_MIN: usize = 16 << 10;

/// The phase that a connection is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// TCP is being established.
    Connecting,
    /// TCP is established, and the TLS handshake is in progress.
    Securing,
    /// The connection is established and used by a visit.
    Active,
    /// The connection is kept open between two visits.
    Parked {
        /// When the connection is closed if no visit begins.
        until: Instant,
        /// When the connection's server may be visited again.
        due: Instant,
    },
}

/// A visit in progress: the requests made to a server on one connection, until the server rests.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct OpenVisit {
    /// What the visit has done so far, which the frontier computes the rest from.
    pub(in crate::engine) tally: Visit,
    /// Whether the connection of the visit was parked before (kept open since an earlier visit).
    pub(in crate::engine) reused: bool,
    /// Whether the visit has requested a known page whose visit was granted.
    pub(in crate::engine) serves_known: bool,
    /// Whether the visit makes no more requests, even if it may make more by its burst (the maximum
    /// number of requests in a visit).
    pub(in crate::engine) over: bool,
}

impl OpenVisit {
    /// Returns a visit that begins now.
    pub(in crate::engine) fn new(began: Instant, reused: bool) -> Self {
        let tally = Visit { began, ..Visit::default() };
        Self { tally, reused, serves_known: false, over: false }
    }

    /// Makes the next visit of the server begin no earlier than `until`, by this rule.
    pub(in crate::engine) fn rest(&mut self, until: Instant, rule: Rule) {
        if until > self.tally.not_before {
            (self.tally.not_before, self.tally.rule) = (until, rule);
        }
    }

    /// Makes this visit send no more requests, and the next one of the server begin no earlier than
    /// `until`.
    pub(in crate::engine) fn end(&mut self, until: Instant) {
        self.rest(until, Rule::Backoff);
        self.over = true;
    }
}

/// One connection to a server. Only the files of this folder can change its fields.
#[derive(Debug)]
pub(in crate::engine) struct Conn {
    /// The number of the connection in this crawl, for the log.
    pub(in crate::engine) number: u64,
    pub(in crate::engine) server: ServerId,
    pub(super) phase: Phase,
    pub(in crate::engine) peer: Peer,
    pub(in crate::engine) visit: OpenVisit,
    pub(super) timeouts: Timeouts,
    pub(super) pipeline: Pipeline,
    /// Requests without a complete reply, in order. They are called the *flight* of the connection.
    pub(super) flight: VecDeque<Fetch>,
    /// Complete replies that are held until it is proven which request each answers.
    pub(super) batch: Batch,
    pub(super) incoming: Incoming,
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
}

/// The other end of a connection: its address, and what connecting to it took.
#[derive(Debug)]
pub(in crate::engine) struct Peer {
    pub(in crate::engine) address: SocketAddr,
    /// Further addresses of the host name, to try if this one fails.
    pub(super) untried: SmallVec<[IpAddr; 4]>,
    pub(in crate::engine) facts: ConnFacts,
    /// The number of bytes that the TLS handshake holds in memory while it lasts.
    pub(super) handshake_bytes: usize,
    /// The time that it took to connect: one network round trip, or more with TLS.
    pub(super) round_trip: Duration,
}

impl Peer {
    pub(super) fn new(address: SocketAddr, untried: SmallVec<[IpAddr; 4]>) -> Self {
        let facts = ConnFacts::default();
        Self { address, untried, facts, handshake_bytes: 0, round_trip: Duration::MAX }
    }
}

/// The times from which the time-outs of a connection are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// When the phase began. On a visit: when the wait for the reply to the first request of the
    /// flight began.
    pub(super) since: Instant,
    /// When the last byte of the reply at the head of the flight was received.
    pub(super) last_byte: Instant,
    /// Since when reading is paused; `None` if it is not. The time of a pause doesn't count as
    /// silence of the server.
    pub(super) paused: Option<Instant>,
}

impl Timeouts {
    /// Starts the time-outs of a phase, or of the wait for a reply.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.since, self.last_byte) = (now, now);
    }

    /// Ends a pause of reading. Its time does not count for the time-outs.
    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(paused) = self.paused.take() {
            self.since = self.since + now.since(paused);
            self.last_byte = now;
        }
    }
}

/// The reply to the first request of the flight, as far as it was received.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) reader: Reader,
    pub(super) reply: Reply,
}

impl Incoming {
    pub(super) fn new(limits: &Limits) -> Self {
        let mut reader = Reader::new(limits.clone());
        reader.begin();
        Self { reader, reply: Reply::default() }
    }

    /// Takes out the reply and its parsed head. The caller must give the head back to the reader,
    /// which reuses its memory.
    pub(super) fn take(&mut self) -> (Reply, Head) {
        (std::mem::take(&mut self.reply), self.reader.lend_head())
    }
}

/// The bytes that a connection has received and that are not parsed yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// The buffer with the unread bytes, `buffer[start..end]`; `None` if no byte is unread.
    buffer: Option<Box<[u8]>>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// Returns the unread bytes.
    pub(super) fn unread(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[self.start..self.end])
    }

    /// Returns whether no byte is unread.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns whether the inbox holds a buffer of the pool.
    pub(super) fn is_held(&self) -> bool {
        self.buffer.is_some()
    }

    /// Returns space for more bytes, in a buffer of the pool; at least [`ROOM_MIN`] bytes if fewer
    /// than that are unread.
    pub(super) fn space(&mut self, pool: &mut Pool) -> &mut [u8] {
        let buffer = self.buffer.get_or_insert_with(|| pool.buffer());
        if buffer.len() - self.end < ROOM_MIN && self.start > 0 {
            buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut buffer[self.end..]
    }

    /// Marks `bytes` bytes, written to the front of [`Inbox::space`], as received.
    pub(super) fn received(&mut self, bytes: usize) {
        self.end += bytes;
        assert!(
            self.buffer.as_ref().is_some_and(|buffer| self.end <= buffer.len()),
            "no more bytes are received than there was room for"
        );
    }

    /// Marks the first `bytes` unread bytes as read.
    pub(super) fn read(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Discards the unread bytes.
    pub(super) fn clear(&mut self) {
        self.start = self.end;
    }

    /// Returns the buffer to the pool if no byte in it is unread.
    pub(super) fn free_if_read(&mut self, pool: &mut Pool) {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
            self.buffer.take().into_iter().for_each(|buffer| pool.give_buffer(buffer));
        }
    }
}

/// The requests that are written to memory and not yet sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// The requests as bytes, of which `bytes[sent..]` are still to be sent.
    bytes: Vec<u8>,
    sent: usize,
    /// The number of requests at the end of the flight of which no byte has been sent.
    unsent: usize,
    /// The number of requests written since the connection was opened.
    requests: u64,
}

impl Outbox {
    /// Returns the bytes to send.
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Returns the number of requests of which no byte has been sent.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Returns the number of requests written since the connection was opened.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Adds a request. Returns its length in bytes.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let before = self.bytes.len();
        write(&mut self.bytes);
        self.unsent += 1;
        self.requests += 1;
        self.bytes.len() - before
    }

    /// Marks the first `bytes` bytes of [`Outbox::pending`] as sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        self.unsent = 0;
        assert!(self.sent <= self.bytes.len(), "no more is sent than there was");
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        }
    }
}

impl Conn {
    /// Returns the bytes that were received and are not read yet.
    pub(in crate::engine) fn unread(&self) -> &[u8] {
        self.inbox.unread()
    }

    /// Returns how many bytes of the body in progress its framing announces that have not arrived.
    pub(in crate::engine) fn missing_bytes(&self) -> u64 {
        self.incoming.reader.missing_bytes()
    }

    /// Returns whether the connection is established and on a visit.
    pub(in crate::engine) fn is_active(&self) -> bool {
        self.phase == Phase::Active
    }

    /// Returns when the connection times out, in its present phase.
    fn deadline(&self, settings: &Connections) -> Instant {
        let Timeouts { since, last_byte, paused } = self.timeouts;
        match self.phase {
            Phase::Connecting => since + settings.connect_timeout,
            Phase::Securing => since + settings.tls_timeout,
            Phase::Parked { until, .. } => until,
            Phase::Active if self.flight.is_empty() || paused.is_some() => Instant::FAR,
            Phase::Active => {
                let whole = since + settings.fetch_timeout;
                let silence = match self.incoming.reply.head_bytes {
                    0 => since + settings.head_timeout,
                    _ => last_byte + settings.body_timeout,
                };
                whole.min(silence)
            }
        }
    }

    /// Returns whether a byte of the reply to the first request of the flight has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.incoming.reply.has_begun() || !self.inbox.is_empty()
    }

    /// Counts a reply that has ended, that to the first request of the flight, in the visit. Takes
    /// the fetch out of the flight and returns it.
    pub(super) fn finish_reply(&mut self, now: Instant) -> Fetch {
        self.visit.tally.replies += 1;
        self.visit.tally.response_time += now.since(self.timeouts.since);
        self.flight.pop_front().expect("a reply has its request")
    }

    /// Returns the fetches that have no outcome yet, in order: those of the batch, whose replies
    /// are held, then those in flight. While the batch repeats a request to compare the two
    /// replies, the first request in flight is that repetition. It is left out.
    pub(in crate::engine) fn unsettled(&self) -> impl Iterator<Item = &Fetch> {
        let repeats = usize::from(self.batch.is_comparing());
        self.batch.fetches().chain(self.flight.iter().skip(repeats))
    }

    /// Returns whether the connection holds memory of the pool.
    pub(super) fn holds(&self) -> bool {
        self.inbox.is_held() || self.incoming.reply.bytes() > 0 || !self.batch.is_empty()
    }
}

/// The table of all connections, by slot.
#[derive(Debug, Default)]
pub(in crate::engine) struct Conns {
    settings: Connections,
    slots: Slab<Conn>,
    generations: Vec<u32>,
    timers: Timers,
    /// The slots of the parked connections, sorted by when their servers are due. If a slot is
    /// needed, the connection whose server is due last is closed first.
    parked: BTreeSet<(Instant, u32)>,
    opened: u64,
}

impl Conns {
    pub(super) fn new(settings: Connections) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Changes the time-outs of all connections.
    pub(super) fn set_timeouts(&mut self, settings: &Connections) {
        self.settings = settings.clone();
    }

    /// Adds a connection that is being opened.
    pub(super) fn insert(&mut self, make: impl FnOnce(u64) -> Conn) -> ConnId {
        self.opened += 1;
        let slot = u32::try_from(self.slots.vacant_key()).expect("slots are capped");
        if slot as usize >= self.generations.len() {
            self.generations.push(0);
        }
        let generation = self.generations[slot as usize];
        self.slots.insert(make(self.opened));
        self.arm(slot);
        ConnId { slot, generation }
    }

    /// Removes a connection. Its slot may be reused, with the next generation.
    pub(super) fn remove(&mut self, slot: u32) -> Conn {
        self.timers.cancel(slot);
        self.generations[slot as usize] += 1;
        let conn = self.slots.remove(slot as usize);
        if let Phase::Parked { due, .. } = conn.phase {
            self.parked.remove(&(due, slot));
        }
        conn
    }

    /// Returns the connection in a slot, which must be in use, for changes.
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Conn {
        &mut self.slots[slot as usize]
    }

    /// Returns the connection in a slot, which must be in use.
    pub(in crate::engine) fn get(&self, slot: u32) -> &Conn {
        &self.slots[slot as usize]
    }

    /// Returns whether the connection with this id still exists.
    pub(in crate::engine) fn knows(&self, id: ConnId) -> bool {
        self.generations.get(id.slot as usize) == Some(&id.generation)
    }

    /// Returns the id of the connection in a slot, which must be in use.
    pub(in crate::engine) fn id(&self, slot: u32) -> ConnId {
        ConnId { slot, generation: self.generations[slot as usize] }
    }

    /// Returns the number of connections, including parked ones.
    pub(in crate::engine) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(in crate::engine) fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Returns the number of connections on a visit.
    pub(in crate::engine) fn busy(&self) -> usize {
        self.len() - self.parked()
    }

    /// Returns the number of pages that were requested and have no outcome yet.
    pub(in crate::engine) fn pages_out(&self) -> usize {
        let pages = |conn: &Conn| conn.unsettled().filter(|it| !it.item.is_robots()).count();
        self.slots.iter().map(|(_, conn)| pages(conn)).sum()
    }

    /// Returns the slots in use, in ascending order.
    pub(in crate::engine) fn slots(&self) -> Vec<u32> {
        self.slots.iter().map(|(slot, _)| u32::try_from(slot).expect("slots are capped")).collect()
    }

    /// Parks a connection: it is kept open until `until`. Its server may be visited again at `due`.
    pub(super) fn park(&mut self, slot: u32, due: Instant, until: Instant) {
        self.get_mut(slot).phase = Phase::Parked { until, due };
        self.parked.insert((due, slot));
        self.timers.set(slot, until);
    }

    /// Uses a parked connection for a visit.
    pub(super) fn unpark(&mut self, slot: u32, now: Instant) {
        let Phase::Parked { due, .. } = self.get(slot).phase else {
            panic!("only a parked connection is taken back to work");
        };
        self.parked.remove(&(due, slot));
        let conn = self.get_mut(slot);
        conn.phase = Phase::Active;
        conn.visit = OpenVisit::new(now, true);
    }

    /// Returns the slot of the parked connection whose server is due last, if there is one.
    pub(super) fn least_wanted(&self) -> Option<u32> {
        self.parked.last().map(|(_, slot)| *slot)
    }

    /// Sets the timer of a connection no later than its deadline. The timer may fire early, and
    /// [`Conns::expire`] then sets it again. So a received byte, which moves the deadline, costs
    /// nothing here.
    pub(super) fn arm(&mut self, slot: u32) {
        let deadline = self.get(slot).deadline(&self.settings);
        if deadline == Instant::FAR {
            self.timers.cancel(slot);
        } else if self.timers.at(slot).is_none_or(|set| set > deadline) {
            self.timers.set(slot, deadline);
        }
    }

    /// Returns the slot of a connection whose deadline has passed, if there is one.
    pub(super) fn expire(&mut self, now: Instant) -> Option<u32> {
        while let Some(slot) = self.timers.expire(now) {
            if self.get(slot).deadline(&self.settings) <= now {
                return Some(slot);
            }
            self.arm(slot);
        }
        None
    }

    pub(in crate::engine) fn nearest(&self) -> Option<Instant> {
        self.timers.nearest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn conn(number: u64) -> Conn {
        let address = SocketAddr::from(([192, 0, 2, 1], 80));
        Conn {
            number,
            server: ServerId(1),
            phase: Phase::Active,
            peer: Peer::new(address, SmallVec::new()),
            visit: OpenVisit::new(at(0), false),
            timeouts: Timeouts { since: at(0), last_byte: at(0), paused: None },
            pipeline: Pipeline::default(),
            flight: VecDeque::new(),
            batch: Batch::default(),
            incoming: Incoming::new(&Limits::default()),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
        }
    }

    /// Law: received bytes are read in order, wherever they lie in the buffer, and a buffer that is
    /// read returns to the pool.
    #[test]
    fn an_inbox_gives_out_what_came_in_order() {
        let mut pool = Pool::new(2 * ROOM_MIN, usize::MAX);
        let mut inbox = Inbox::default();
        let (mut sent, mut read) = (0_u64, 0_u64);
        for round in 1..200 {
            let space = inbox.space(&mut pool);
            let came = space.len().min(1_000 * (round % 19));
            for byte in &mut space[..came] {
                *byte = sent.to_le_bytes()[0];
                sent += 1;
            }
            inbox.received(came);
            let taken = inbox.unread().len().min(800 * (round % 23));
            for byte in &inbox.unread()[..taken] {
                assert_eq!(*byte, read.to_le_bytes()[0]);
                read += 1;
            }
            inbox.read(taken);
            inbox.free_if_read(&mut pool);
            assert_eq!(inbox.is_held(), read < sent);
            assert_eq!(pool.held() > 0, inbox.is_held(), "an idle connection holds no buffer");
        }
        assert!(sent > 500_000 && sent - read <= 2 * ROOM_MIN as u64);
    }

    #[test]
    fn an_outbox_counts_requests_of_which_nothing_is_sent() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.add(|out| out.extend_from_slice(b"GET /a")), 6);
        outbox.add(|out| out.extend_from_slice(b"GET /b"));
        assert_eq!((outbox.pending(), outbox.unsent()), (&b"GET /aGET /b"[..], 2));
        outbox.sent(4);
        assert_eq!((outbox.pending(), outbox.unsent()), (&b"/aGET /b"[..], 0));
        outbox.sent(8);
        assert!(outbox.pending().is_empty() && outbox.requests() == 2);
    }

    #[test]
    fn the_time_of_a_pause_is_not_the_servers() {
        let mut timeouts = Timeouts { since: at(1), last_byte: at(1), paused: Some(at(3)) };
        timeouts.resume(at(8));
        assert_eq!((timeouts.since, timeouts.last_byte, timeouts.paused), (at(6), at(8), None));
    }

    /// Laws: a slot is reused only with another generation; of the parked connections, the one
    /// whose server is due last is closed first.
    #[test]
    fn slots_are_used_again_under_another_id() {
        let mut conns = Conns::new(Connections::default());
        let [first, second] = [conns.insert(conn), conns.insert(conn)];
        conns.park(first.slot, at(50), at(90));
        conns.park(second.slot, at(20), at(80));
        assert_eq!((conns.busy(), conns.least_wanted()), (0, Some(first.slot)));
        assert_eq!(conns.nearest(), Some(at(80)));
        assert_eq!(conns.remove(first.slot).number, 1);
        let again = conns.insert(conn);
        assert!(again.slot == first.slot && again != first);
        assert!(conns.knows(again) && !conns.knows(first) && conns.parked() == 1);
        conns.unpark(second.slot, at(30));
        assert!(conns.get(second.slot).visit.reused && conns.busy() == 2);
    }
}
