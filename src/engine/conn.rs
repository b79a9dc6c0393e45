//! Connections: one record a slot, their deadlines, and which are parked.
//!
//! Laws: a slot is used again only with a higher generation; the parked ones are exactly those
//! without a visit; every connection has one deadline, computed from its phase.

use super::contract::{ConnFacts, ConnId};
use super::fetch::{Fetch, Reply};
use super::held::Batch;
use super::settings::Connections;
use crate::frontier::ServerId;
use crate::ground::time::{Instant, Timers};
use crate::http::pipeline::Pipeline;
use crate::http::response::Reader;
use slab::Slab;
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// TCP is being set up.
    Connecting,
    /// TCP stands, TLS is being set up.
    Securing,
    /// On a visit.
    Active,
    /// Between two visits.
    Parked {
        /// Kept until then.
        until: Instant,
        /// When its server may be visited again.
        due: Instant,
    },
}

/// One turn of a server on this connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenVisit {
    pub(super) requests: u32,
    pub(super) replies: u32,
    /// Time they took, each from the end of the one before.
    pub(super) response_time: Duration,
    /// From asking for the connection to its standing, if it was asked for in this turn.
    pub(super) connect_time: Option<Duration>,
    pub(super) began: Instant,
    /// It goes on with a connection kept from the visit before.
    pub(super) reused: bool,
    /// The server asked for rest, which its host is owed, too.
    pub(super) strained: bool,
    /// No more requests, whatever the burst would allow.
    pub(super) over: bool,
    /// The next visit is not before this.
    pub(super) not_before: Instant,
}

impl OpenVisit {
    pub(super) fn new(began: Instant, reused: bool) -> Self {
        let not_before = Instant::ZERO;
        Self {
            requests: 0,
            replies: 0,
            response_time: Duration::ZERO,
            connect_time: None,
            began,
            reused,
            strained: false,
            over: false,
            not_before,
        }
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) generation: u32,
    /// Counted over the crawl, for the log.
    pub(super) number: u64,
    pub(super) server: ServerId,
    pub(super) phase: Phase,
    pub(super) address: SocketAddr,
    /// Addresses not tried yet, should this one fail.
    pub(super) untried: SmallVec<[IpAddr; 4]>,
    pub(super) facts: ConnFacts,
    /// Bytes that the TLS handshake under way holds.
    pub(super) handshake_bytes: usize,
    pub(super) visit: OpenVisit,
    pub(super) pipeline: Pipeline,
    /// What it took to stand: a round trip, over TLS more.
    pub(super) round_trip: Duration,
    /// Requests it has carried in all.
    pub(super) requests: u64,
    /// Requests unanswered, in order.
    pub(super) flight: VecDeque<Fetch>,
    /// Replies whose place is not proven yet.
    pub(super) batch: Batch,
    pub(super) reader: Reader,
    pub(super) reply: Reply,
    /// Received and unread: `buffer[start..end]`.
    pub(super) buffer: Option<Box<[u8]>>,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Requests written and not yet sent: `out[out_sent..]`.
    pub(super) out: Vec<u8>,
    pub(super) out_sent: usize,
    /// Requests of the flight, its last ones, of which not a byte has been sent.
    pub(super) unsent: usize,
    pub(super) paused: bool,
    pub(super) paused_at: Instant,
    /// When the phase began; when the reply at the head became the one waited for.
    pub(super) since: Instant,
    /// When a byte of it came last.
    pub(super) heard: Instant,
}

impl Conn {
    /// The instant at which patience ends.
    fn deadline(&self, settings: &Connections) -> Instant {
        match self.phase {
            Phase::Connecting => self.since + settings.connect_timeout,
            Phase::Securing => self.since + settings.tls_timeout,
            Phase::Parked { until, .. } => until,
            // While we don't read, the silence is ours.
            Phase::Active if self.flight.is_empty() || self.paused => Instant::FAR,
            Phase::Active => {
                let whole = self.since + settings.fetch_timeout;
                let silence = match self.reply.head_bytes {
                    0 => self.since + settings.head_timeout,
                    _ => self.heard + settings.body_timeout,
                };
                whole.min(silence)
            }
        }
    }

    /// Bytes received and not yet read.
    pub(super) fn unread(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[self.start..self.end])
    }

    /// Whether a byte of the reply at the head of the flight has come.
    pub(super) fn has_begun(&self) -> bool {
        self.reply.has_begun() || self.start < self.end
    }

    /// What was asked for and is not settled, in order. The repeat of a request is not among it.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = &Fetch> {
        let repeats = usize::from(self.batch.is_comparing());
        self.batch.fetches().chain(self.flight.iter().skip(repeats))
    }

    /// So many bytes of its requests have been sent.
    pub(super) fn has_sent(&mut self, bytes: usize) {
        self.out_sent += bytes;
        self.unsent = 0;
        assert!(self.out_sent <= self.out.len(), "no more is sent than there was");
        if self.out_sent == self.out.len() {
            self.out.clear();
            self.out_sent = 0;
        }
    }

    /// Whether it holds memory of the pool.
    pub(super) fn holds(&self) -> bool {
        self.buffer.is_some() || self.reply.bytes() > 0 || !self.batch.is_empty()
    }
}

/// All connections.
#[derive(Debug)]
pub(super) struct Conns {
    settings: Connections,
    slots: Slab<Conn>,
    generations: Vec<u32>,
    timers: Timers,
    /// Parked ones by when their server is due: the last goes first when a slot is needed.
    parked: BTreeSet<(Instant, u32)>,
    opened: u64,
}

impl Conns {
    pub(super) fn new(settings: Connections) -> Self {
        Self {
            settings,
            slots: Slab::new(),
            generations: Vec::new(),
            timers: Timers::new(),
            parked: BTreeSet::new(),
            opened: 0,
        }
    }

    /// Adds a connection that is being set up.
    pub(super) fn insert(&mut self, make: impl FnOnce(u32, u64) -> Conn) -> ConnId {
        self.opened += 1;
        let slot = u32::try_from(self.slots.vacant_key()).expect("slots are capped");
        if slot as usize >= self.generations.len() {
            self.generations.push(0);
        }
        let generation = self.generations[slot as usize];
        let conn = make(generation, self.opened);
        self.slots.insert(conn);
        self.arm(slot);
        ConnId { slot, generation }
    }

    /// Takes a connection out; its slot may be used again.
    pub(super) fn remove(&mut self, slot: u32) -> Conn {
        self.timers.cancel(slot);
        self.generations[slot as usize] += 1;
        let conn = self.slots.remove(slot as usize);
        if let Phase::Parked { due, .. } = conn.phase {
            self.parked.remove(&(due, slot));
        }
        conn
    }

    /// The connection in a slot, which must be in use.
    pub(super) fn at(&mut self, slot: u32) -> &mut Conn {
        &mut self.slots[slot as usize]
    }

    /// The connection in a slot, which must be in use.
    pub(super) fn look(&self, slot: u32) -> &Conn {
        &self.slots[slot as usize]
    }

    /// Whether `id` is still in use.
    pub(super) fn knows(&self, id: ConnId) -> bool {
        self.slots.get(id.slot as usize).is_some_and(|conn| conn.generation == id.generation)
    }

    /// The id of a slot in use.
    pub(super) fn id(&self, slot: u32) -> ConnId {
        ConnId { slot, generation: self.look(slot).generation }
    }

    /// Connections, parked ones included.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Connections on a visit.
    pub(super) fn busy(&self) -> usize {
        self.len() - self.parked()
    }

    /// Pages that were asked for and are not settled.
    pub(super) fn pages_out(&self) -> usize {
        let pages = |conn: &Conn| conn.unsettled().filter(|it| !it.item.is_robots()).count();
        self.slots.iter().map(|(_, conn)| pages(conn)).sum()
    }

    /// Slots in use, in ascending order.
    pub(super) fn slots(&self) -> Vec<u32> {
        self.slots.iter().map(|(slot, _)| u32::try_from(slot).expect("slots are capped")).collect()
    }

    /// Keeps a connection until `until`; its server is due at `due`.
    pub(super) fn park(&mut self, slot: u32, due: Instant, until: Instant) {
        self.at(slot).phase = Phase::Parked { until, due };
        self.parked.insert((due, slot));
        self.timers.set(slot, until);
    }

    /// Takes a parked connection back to work.
    pub(super) fn unpark(&mut self, slot: u32, now: Instant) {
        let Phase::Parked { due, .. } = self.look(slot).phase else {
            panic!("only a parked connection is taken back to work");
        };
        self.parked.remove(&(due, slot));
        let conn = self.at(slot);
        conn.phase = Phase::Active;
        conn.visit = OpenVisit::new(now, true);
    }

    /// The parked connection whose server is due last.
    pub(super) fn least_wanted(&self) -> Option<u32> {
        self.parked.last().map(|(_, slot)| *slot)
    }

    /// Sees to it that the timer rings no later than patience ends. It may ring early: then
    /// [`Conns::expire`] sets it again. So bytes that put the end off cost nothing here.
    pub(super) fn arm(&mut self, slot: u32) {
        let deadline = self.look(slot).deadline(&self.settings);
        if deadline == Instant::FAR {
            self.timers.cancel(slot);
        } else if self.timers.at(slot).is_none_or(|set| set > deadline) {
            self.timers.set(slot, deadline);
        }
    }

    /// A connection whose patience has ended.
    pub(super) fn expire(&mut self, now: Instant) -> Option<u32> {
        while let Some(slot) = self.timers.expire(now) {
            if self.look(slot).deadline(&self.settings) <= now {
                return Some(slot);
            }
            self.arm(slot);
        }
        None
    }

    pub(super) fn nearest(&self) -> Option<Instant> {
        self.timers.nearest()
    }
}
