//! Connections: requests are written to them, and replies are read from them in order.
//!
//! This part of the engine owns the connections with their buffers, requests in flight and
//! time-outs, and the pool of memory that replies use.
//!
//! Laws: receive buffers and bodies come from one pool with a budget; when most of it is held,
//! connections are paused, except some that may finish a reply. A slot is reused only with a new
//! generation. A connection that no visit (a series of requests to one server) uses is parked: kept
//! open without a request.
//! Cost: some hundred bytes for a connection; a receive buffer only while it holds unread bytes.

mod conn;
mod fetch;
mod grants;
mod held;
pub(super) mod opening;
mod pause;
mod pool;
mod receive;
mod requests;
mod send;

use super::Engine;
use super::contract::{Action, ConnFacts, ConnId};
use super::ledger::Work;
use super::settings::{Connections, Settings};
use crate::frontier::ServerId;
use crate::ground::time::Instant;
pub(super) use conn::{Conn, OpenVisit};
use conn::{Conns, Phase};
pub(super) use fetch::{Evidence, Fetch, FinishedFetch, Reply};
use opening::Opening;
use pause::Pauses;
pub(super) use pool::Pool;
pub(super) use receive::SURPLUS;
pub(super) use requests::Requests;

/// All connections, with the memory that their replies use.
#[derive(Debug)]
pub(super) struct Wire {
    conns: Conns,
    pool: Pool,
    pauses: Pauses,
    /// Whether the world has closed the connection that is being processed.
    peer_closed: bool,
    /// Whether bodies are kept with their chunk framing (true), which the archive needs.
    keeps_framing: bool,
    requests: Requests,
    first_request: Option<Instant>,
    opening: Opening,
}

/// How much larger than the longest head a receive buffer is, in bytes.
const BUFFER_SLACK_BYTES: usize = 32 << 10;

impl Wire {
    /// Returns a `Wire` without connections. `requests` holds what is the same in all requests to a
    /// site.
    pub(super) fn new(settings: &Settings, requests: Requests) -> Self {
        let buffer_bytes = settings.reply.head_bytes_max + BUFFER_SLACK_BYTES;
        Self {
            conns: Conns::new(settings.connections.clone()),
            pool: Pool::new(buffer_bytes, settings.held_bytes_max),
            pauses: Pauses::default(),
            peer_closed: false,
            keeps_framing: settings.keeps_archive(),
            requests,
            first_request: None,
            opening: Opening::new(settings.coding.clone()),
        }
    }

    /// Returns the beginning of the reply that was read last.
    pub(super) fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Returns it for reading another one.
    pub(super) fn opening_mut(&mut self) -> &mut Opening {
        &mut self.opening
    }

    /// Gives the text of the reply that was read last to the reply, if that is all of its text, so
    /// that it isn't decoded again. Not if memory is short.
    pub(super) fn keep_text(&mut self, reply: &mut Reply) {
        if !self.pool.is_over()
            && let Some(text) = self.opening.take_whole(&mut self.pool)
        {
            reply.take_text(text, &mut self.pool);
        }
    }

    /// Changes the time-outs. A timer that is set is not brought forward.
    pub(super) fn set_timeouts(&mut self, settings: &Connections) {
        self.conns.set_timeouts(settings);
    }

    /// Returns the table of all connections.
    pub(super) fn conns(&self) -> &Conns {
        &self.conns
    }

    /// Returns the connection in a slot, which must be in use.
    pub(super) fn conn(&self, slot: u32) -> &Conn {
        self.conns.get(slot)
    }

    /// Returns the visit on the connection in a slot, which must be in use.
    pub(super) fn visit_mut(&mut self, slot: u32) -> &mut OpenVisit {
        &mut self.conns.get_mut(slot).visit
    }

    /// Returns whether the connection exists, is on a visit, and has no request in flight.
    pub(super) fn is_idle(&self, id: ConnId) -> bool {
        self.conns.knows(id)
            && self.conn(id.slot).is_active()
            && self.conn(id.slot).flight.is_empty()
    }

    /// Returns the bytes to send on a connection; none if the connection no longer exists.
    pub(super) fn outgoing(&self, id: ConnId) -> &[u8] {
        if self.conns.knows(id) { self.conn(id.slot).outbox.pending() } else { &[] }
    }

    /// Returns the memory pool, for replies that are read back from the archive.
    pub(super) fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Returns whether the bytes of replies and buffers take most of their budget.
    pub(super) fn is_over(&self) -> bool {
        self.pool.is_over()
    }

    /// Returns the number of bytes that replies and buffers hold in memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.pool.held()
    }

    /// Returns the memory of a reply to the pool.
    pub(super) fn release(&mut self, reply: Reply) {
        reply.release(&mut self.pool);
    }

    /// Returns when the first request of this run was written, or `None` if none was yet.
    pub(super) fn first_request(&self) -> Option<Instant> {
        self.first_request
    }

    /// Returns the parts that are the same in all requests to a site.
    pub(super) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Notes that TCP is established on a connection, and that its TLS handshake begins.
    pub(super) fn opened(&mut self, slot: u32, now: Instant) {
        let conn = self.conns.get_mut(slot);
        assert_eq!(conn.phase, Phase::Connecting, "a connection opens once");
        conn.phase = Phase::Securing;
        conn.timeouts.begin(now);
        self.conns.arm(slot);
    }

    /// Notes that `bytes` bytes of [`Wire::outgoing`] have been sent.
    pub(super) fn sent(&mut self, slot: u32, bytes: usize) {
        self.conns.get_mut(slot).outbox.sent(bytes);
    }

    /// Uses a parked connection for a visit.
    pub(super) fn unpark(&mut self, slot: u32, now: Instant) {
        self.conns.unpark(slot, now);
    }

    /// Returns the slot of a connection that has timed out, if there is one.
    pub(super) fn expire(&mut self, now: Instant) -> Option<u32> {
        self.conns.expire(now)
    }

    /// Returns when the next connection times out, or when paused connections are checked again,
    /// whichever is first; `None` if neither will happen.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        self.conns.nearest().into_iter().chain(self.pauses.deadline(now)).min()
    }
}

impl Engine {
    /// Begins the visit on a connection that is now established, including TLS.
    pub(super) fn take_connected(&mut self, slot: u32, facts: ConnFacts) {
        match &facts.tls {
            Some(tls) if tls.resumed => self.counts.handshakes_resumed += 1,
            Some(_) => {
                self.counts.handshakes_full += 1;
                self.turn.charge(Work::Secured, receive::SECURED_UNITS);
            }
            None => {}
        }
        let conn = self.wire.conns.get_mut(slot);
        let is_new = matches!(conn.phase, Phase::Connecting | Phase::Securing);
        assert!(is_new, "a connection is established once");
        conn.phase = Phase::Active;
        conn.peer.round_trip = self.turn.at().since(conn.visit.tally.began);
        conn.peer.facts = facts;
        conn.visit.tally.connect_time = Some(conn.peer.round_trip);
        self.hold_handshake(slot, 0);
        self.fill(slot);
    }

    /// Closes the connections that carry no request, because no new request will be sent.
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

    /// Ends the visit of a server, if there is one: no more requests are sent in it, and the next
    /// visit begins no earlier than `until`. Returns whether there was a visit.
    pub(super) fn end_visit_of(&mut self, id: ServerId, until: Instant) -> bool {
        let slot = self.sites.get(id).conn().filter(|&slot| self.wire.conn(slot).is_active());
        slot.map(|slot| self.wire.visit_mut(slot).end(until)).is_some()
    }

    /// Closes a connection that no visit uses, and frees its slot.
    fn hang_up(&mut self, slot: u32) {
        self.turn.act(Action::Close(self.wire.conns.id(slot)));
        self.forget(slot);
    }

    /// Frees the slot of a connection that is closed.
    fn forget(&mut self, slot: u32) -> Conn {
        let Wire { conns, pool, pauses, .. } = &mut self.wire;
        let mut conn = conns.remove(slot);
        if matches!(conn.phase, Phase::Parked { .. }) {
            self.backlog.set_parked(conn.server, false, self.turn.at());
        }
        self.sites.get_mut(conn.server).set_conn(None);
        self.counts.requests_per_connection.add(conn.outbox.requests());
        pool.discharge(conn.peer.handshake_bytes);
        conn.inbox.clear();
        conn.inbox.free_if_read(pool);
        pauses.forget(slot, conn.timeouts.paused.is_some());
        conn
    }
}
