//! Connections: requests are written to them, replies are read from them, in order.
//!
//! Laws: receive buffers and bodies come from one pool with a budget; past it connections are
//! paused, all but one that may finish its reply; a slot is reused only with a new generation.

mod conn;
mod fetch;
mod held;
mod pool;
mod receive;
mod send;

use super::Engine;
use super::contract::{Action, ConnFacts, ConnId};
use super::ledger::Work;
use super::settings::Settings;
use crate::frontier::ServerId;
use crate::ground::time::Instant;
use crate::http::request::Fixed;
pub(super) use conn::{Conn, OpenVisit};
use conn::{Conns, Phase};
pub(super) use fetch::{Fetch, Fetched, Reply};
pub(super) use pool::Pool;
pub(super) use receive::SURPLUS;

/// All connections, with the memory that their replies take.
#[derive(Debug)]
pub(super) struct Wire {
    conns: Conns,
    pool: Pool,
    /// Slots of connections that are paused because the pool is over its budget.
    paused: Vec<u32>,
    /// The slot of the one connection that may read past the budget.
    privileged: Option<u32>,
    /// Whether the world itself has closed the connection that is being processed.
    peer_closed: bool,
    /// Whether the archive wants bodies with their chunk framing.
    keeps_framing: bool,
    /// The parts of a request that are the same for every URL.
    request: Fixed,
    first_request: Option<Instant>,
}

/// Room that a receive buffer has beyond the longest head.
const BUFFER_SLACK_BYTES: usize = 32 << 10;

impl Wire {
    /// No connections yet; `request` is what every request has in common.
    pub(super) fn new(settings: &Settings, request: Fixed) -> Self {
        let buffer_bytes = settings.reply.head_bytes_max + BUFFER_SLACK_BYTES;
        Self {
            conns: Conns::new(settings.connections.clone()),
            pool: Pool::new(buffer_bytes, settings.held_bytes_max),
            paused: Vec::new(),
            privileged: None,
            peer_closed: false,
            keeps_framing: settings.keeps_archive(),
            request,
            first_request: None,
        }
    }

    /// All connections.
    pub(super) fn conns(&self) -> &Conns {
        &self.conns
    }

    /// The connection in a slot, which must be in use.
    pub(super) fn conn(&self, slot: u32) -> &Conn {
        self.conns.look(slot)
    }

    /// The visit on the connection in a slot, which must be in use.
    pub(super) fn visit_mut(&mut self, slot: u32) -> &mut OpenVisit {
        &mut self.conns.at(slot).visit
    }

    /// Whether a visit on this connection has nothing under way, and may be resumed.
    pub(super) fn is_idle(&self, id: ConnId) -> bool {
        self.conns.knows(id)
            && self.conn(id.slot).is_active()
            && self.conn(id.slot).flight.is_empty()
    }

    /// The bytes that are to be sent on a connection; none if it is gone.
    pub(super) fn outgoing(&self, id: ConnId) -> &[u8] {
        if self.conns.knows(id) { self.conn(id.slot).outbox.pending() } else { &[] }
    }

    /// The memory of replies, for those that are read back from the archive.
    pub(super) fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Whether the replies that are held take more than their budget.
    pub(super) fn is_over(&self) -> bool {
        self.pool.is_over()
    }

    /// Bytes of replies held.
    pub(super) fn held_bytes(&self) -> usize {
        self.pool.held()
    }

    /// Takes back the memory of a reply.
    pub(super) fn release(&mut self, reply: Reply) {
        reply.release(&mut self.pool);
    }

    /// When the first request of this run was written.
    pub(super) fn first_request(&self) -> Option<Instant> {
        self.first_request
    }

    /// The parts of a request that are the same for every URL.
    pub(super) fn request(&self) -> &Fixed {
        &self.request
    }

    /// TCP is established on a connection; TLS is next.
    pub(super) fn opened(&mut self, slot: u32, now: Instant) {
        let conn = self.conns.at(slot);
        assert_eq!(conn.phase, Phase::Connecting, "a connection opens once");
        conn.phase = Phase::Securing;
        conn.patience.begin(now);
        self.conns.arm(slot);
    }

    /// So many bytes of [`Wire::outgoing`] have been sent.
    pub(super) fn sent(&mut self, slot: u32, bytes: usize) {
        self.conns.at(slot).outbox.sent(bytes);
    }

    /// Takes a parked connection back for a visit.
    pub(super) fn unpark(&mut self, slot: u32, now: Instant) {
        self.conns.unpark(slot, now);
    }

    /// The slot of a connection that has timed out.
    pub(super) fn expire(&mut self, now: Instant) -> Option<u32> {
        self.conns.expire(now)
    }

    /// The instant of the next time-out, or of the next look at paused connections.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let unpause = (!self.paused.is_empty()).then(|| now + receive::SILENCE_MAX);
        self.conns.nearest().into_iter().chain(unpause).min()
    }
}

impl Engine {
    /// A connection is established, TLS included: its visit begins.
    pub(super) fn take_connected(&mut self, slot: u32, facts: ConnFacts) {
        match &facts.tls {
            Some(tls) if tls.resumed => self.counts.handshakes_resumed += 1,
            Some(_) => {
                self.counts.handshakes_full += 1;
                self.turn.charge(Work::Secured, receive::SECURED_UNITS);
            }
            None => {}
        }
        let conn = self.wire.conns.at(slot);
        let is_new = matches!(conn.phase, Phase::Connecting | Phase::Securing);
        assert!(is_new, "a connection is established once");
        conn.phase = Phase::Active;
        conn.peer.round_trip = self.turn.at().since(conn.visit.tally.began);
        conn.peer.facts = facts;
        conn.visit.tally.connect_time = Some(conn.peer.round_trip);
        self.hold_handshake(slot, 0);
        self.fill(slot);
    }

    /// Closes the connections that carry no request: a new one is not begun any more.
    pub(super) fn close_idle(&mut self) {
        for slot in self.wire.conns.slots() {
            let conn = self.wire.conn(slot);
            let (id, phase) = (conn.server, conn.phase);
            if phase != Phase::Active {
                self.hang_up(slot);
            }
            if matches!(phase, Phase::Connecting | Phase::Securing) {
                self.backlog.hand_back(id, self.turn.at());
            }
        }
    }

    /// The visit of a server, if one is under way, asks for nothing more, and the next begins no
    /// earlier than `until`. Returns whether there was one.
    pub(super) fn end_visit_of(&mut self, id: ServerId, until: Instant) -> bool {
        let slot = self.sites.look(id).conn().filter(|&slot| self.wire.conn(slot).is_active());
        slot.map(|slot| self.wire.visit_mut(slot).end(until)).is_some()
    }

    /// Closes a connection that no visit needs, and frees its slot.
    fn hang_up(&mut self, slot: u32) {
        self.turn.act(Action::Close(self.wire.conns.id(slot)));
        self.forget(slot);
    }

    /// Frees the slot of a connection that is gone.
    fn forget(&mut self, slot: u32) -> Conn {
        let Wire { conns, pool, paused, privileged, .. } = &mut self.wire;
        let mut conn = conns.remove(slot);
        if matches!(conn.phase, Phase::Parked { .. }) {
            self.backlog.set_parked(conn.server, false, self.turn.at());
        }
        self.sites.at(conn.server).set_conn(None);
        self.counts.requests_per_connection.add(conn.outbox.requests());
        pool.discharge(conn.peer.handshake_bytes);
        conn.inbox.clear();
        conn.inbox.tidy(pool);
        paused.retain(|other| *other != slot);
        *privileged = privileged.filter(|other| *other != slot);
        conn
    }
}
