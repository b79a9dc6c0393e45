//! Sockets by slot: passes the poller's events to the engine and carries out its actions.
//!
//! mio is edge-triggered: it reports each change once. So a socket is read until it blocks. If its
//! limit of bytes for a turn is used up first, or if a TLS stream still holds plaintext, the socket
//! goes on the *ready* list, which forbids the loop to sleep. Nothing is decided here: bytes are
//! read into the engine's buffers, and a close is reported with the reason that the system or TLS
//! gave.

use super::Clock;
use super::tls::{Client, Progress, Read, Stream, Write, reason_of};
use crate::engine::Engine;
use crate::engine::contract::{CloseReason, ConnFacts, ConnId, Space};
use crate::ground::time::Now;
use mio::event::Event;
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// All sockets of the loop.
#[derive(Debug)]
pub(super) struct Net {
    sockets: Vec<Option<Socket>>,
    /// The ready list: sockets to read again without a new event, the longest waiting first.
    ready: VecDeque<ConnId>,
    /// Connections whose TLS handshake was not continued in this turn because its budget was used
    /// up, the longest waiting first.
    securing: VecDeque<ConnId>,
    /// Connections that ended while actions were carried out, with the reason. They are reported to
    /// the engine in the next turn.
    ends: Vec<(ConnId, CloseReason)>,
    /// The most bytes read from one socket in one turn.
    read_bytes_max: usize,
    clock: Clock,
}

/// The socket of one connection.
struct Socket {
    generation: u32,
    stream: Stream,
    state: State,
    tls: bool,
    paused: bool,
    /// Whether the socket is on the ready list.
    listed: bool,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Socket({}, {:?})", self.generation, self.state)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connecting,
    Handshaking,
    Open,
}

impl Net {
    pub(super) fn new(read_bytes_max: usize, clock: Clock) -> Self {
        let (ready, securing, ends) = (VecDeque::new(), VecDeque::new(), Vec::new());
        Self { sockets: Vec::new(), ready, securing, ends, read_bytes_max, clock }
    }

    /// Returns whether the loop may not sleep, because there is work that no event will announce.
    pub(super) fn forbids_sleep(&self) -> bool {
        !self.ready.is_empty() || !self.securing.is_empty() || !self.ends.is_empty()
    }

    /// Returns the token that a connection's events carry.
    fn token_of(conn: ConnId) -> Token {
        Token((conn.generation as usize) << 32 | conn.slot as usize)
    }

    fn conn_of(token: Token) -> ConnId {
        let low = |value: usize| u32::try_from(value & 0xffff_ffff).expect("32 bits");
        ConnId { slot: low(token.0), generation: low(token.0 >> 32) }
    }

    /// Starts a TCP connection.
    pub(super) fn connect(
        &mut self,
        registry: &Registry,
        client: &Client,
        conn: ConnId,
        address: SocketAddr,
        tls: Option<&str>,
    ) {
        match open(registry, client, conn, address, tls) {
            Ok(stream) => {
                let slot = conn.slot as usize;
                if slot >= self.sockets.len() {
                    self.sockets.resize_with(slot + 1, || None);
                }
                let generation = conn.generation;
                let state = State::Connecting;
                let tls = tls.is_some();
                let socket =
                    Socket { generation, stream, state, tls, paused: false, listed: false };
                self.sockets[slot] = Some(socket);
            }
            Err(reason) => self.ends.push((conn, reason)),
        }
    }

    /// Reports the connections that ended while actions were carried out, after reading what each
    /// had received before its end.
    pub(super) fn report_ends(&mut self, engine: &mut Engine, now: Now) {
        for (conn, reason) in std::mem::take(&mut self.ends) {
            if self.socket(conn).is_some_and(|socket| socket.state == State::Open) {
                self.read(engine, now, conn, true);
            }
            if self.drop_socket(conn).is_some() || !engine.is_gone(conn) {
                engine.closed(now, conn, &reason);
            }
        }
    }

    /// Continues the handshakes and reads that a budget cut short in the previous turn. A
    /// connection that needs still more is moved to the end of its list.
    pub(super) fn read_ready(&mut self, engine: &mut Engine, now: Now) {
        for _ in 0..self.securing.len() {
            let Some(conn) = self.securing.pop_front() else { break };
            if self.socket(conn).is_some_and(|socket| socket.state == State::Handshaking) {
                self.handshake(engine, now, conn);
            }
        }
        for _ in 0..self.ready.len() {
            if engine.is_sated() {
                return;
            }
            let Some(conn) = self.ready.pop_front() else { return };
            if let Some(socket) = self.socket(conn) {
                socket.listed = false;
                match socket.state {
                    State::Handshaking => self.handshake(engine, now, conn),
                    State::Connecting | State::Open => self.read(engine, now, conn, true),
                }
            }
        }
    }

    /// Handles an event of the poller for a socket.
    pub(super) fn event(&mut self, engine: &mut Engine, now: Now, event: &Event) {
        let conn = Self::conn_of(event.token());
        let ended = event.is_error() || event.is_read_closed() || event.is_write_closed();
        let Some(socket) = self.socket(conn) else { return };
        match socket.state {
            State::Connecting => self.connecting(engine, now, conn),
            State::Handshaking => self.handshake(engine, now, conn),
            State::Open => {
                if event.is_writable() || ended {
                    self.write(engine, now, conn);
                }
                if event.is_readable() || ended {
                    self.read(engine, now, conn, ended);
                }
            }
        }
    }

    /// Handles an event of a socket that is connecting: TCP is connected, TCP has failed, or the
    /// event meant nothing.
    fn connecting(&mut self, engine: &mut Engine, now: Now, conn: ConnId) {
        let socket = self.socket(conn).expect("it was looked up");
        let tcp = socket.stream.socket();
        match (tcp.take_error(), tcp.peer_addr()) {
            (Ok(Some(error)) | Err(error), _) => self.end(engine, now, conn, &reason_of(&error)),
            (_, Err(error)) if error.kind() == std::io::ErrorKind::NotConnected => {}
            (_, Err(error)) => self.end(engine, now, conn, &reason_of(&error)),
            (Ok(None), Ok(_)) => {
                // Requests are written whole, so delaying small packets would only slow them down.
                let _ = tcp.set_nodelay(true);
                socket.state = State::Handshaking;
                if socket.tls {
                    engine.opened(now, conn);
                }
                self.handshake(engine, now, conn);
            }
        }
    }

    fn handshake(&mut self, engine: &mut Engine, now: Now, conn: ConnId) {
        let socket = self.socket(conn).expect("it was looked up");
        if socket.paused {
            return;
        }
        if socket.tls && !engine.may_secure() {
            return self.securing.push_back(conn);
        }
        match socket.stream.handshake() {
            Progress::Pending => {
                let bytes = socket.stream.handshake_bytes();
                engine.securing(now, conn, bytes);
            }
            Progress::Failed(reason) => self.end(engine, now, conn, &reason),
            Progress::Done(facts) => {
                socket.state = State::Open;
                self.stands(engine, now, conn, facts);
            }
        }
    }

    fn stands(&mut self, engine: &mut Engine, now: Now, conn: ConnId, facts: ConnFacts) {
        engine.connected(now, conn, facts);
        // Data may have arrived with the last message of the handshake.
        self.list(conn);
    }

    /// Reads into the engine's buffers until the socket blocks or a budget is used up. Each piece
    /// is reported with the time after it was read (decision 15): a rest (the pause before the next
    /// visit to a server) that begins with the bytes must not begin before they were sent. If
    /// `to_the_end`, a short read doesn't mean that the socket is empty, because the end of the
    /// stream may follow.
    fn read(&mut self, engine: &mut Engine, now: Now, conn: ConnId, to_the_end: bool) {
        let (mut left, clock) = (self.read_bytes_max, self.clock);
        while let Some(socket) = self.socket(conn)
            && !socket.paused
        {
            if left == 0 || engine.is_sated() {
                return self.list(conn);
            }
            let room = match engine.space(now, conn) {
                Space::Room(room) => room,
                // The engine's Pause and Close arrive as actions, so there is nothing to do here.
                Space::Paused | Space::Gone => return,
            };
            let room_bytes = room.len();
            match socket.stream.read(room) {
                Read::Some(bytes) => {
                    engine.meter_mut().add_bytes(bytes);
                    let short = bytes < room_bytes && !socket.tls && !to_the_end;
                    engine.received(clock.after(now), conn, bytes);
                    left = left.saturating_sub(bytes);
                    if short {
                        return;
                    }
                }
                Read::Blocked => {
                    // Nothing was read, so the buffer is given back.
                    let again = socket.stream.has_plaintext();
                    engine.received(now, conn, 0);
                    return if again {
                        self.list(conn)
                    };
                }
                Read::Closed(reason) => {
                    return self.end(engine, clock.after(now), conn, &reason);
                }
            }
        }
    }

    /// Sends as many of the engine's outgoing bytes of the connection as the socket takes.
    pub(super) fn write(&mut self, engine: &mut Engine, now: Now, conn: ConnId) {
        loop {
            let bytes = engine.outgoing(conn);
            let Some(socket) = self.socket(conn).filter(|socket| socket.state == State::Open)
            else {
                return;
            };
            if bytes.is_empty() && !socket.stream.wants_write() {
                return;
            }
            match socket.stream.write(bytes) {
                Write::Some(0) | Write::Blocked => return,
                Write::Some(sent) => {
                    engine.meter_mut().add_bytes(sent);
                    engine.sent(now, conn, sent);
                }
                Write::Closed(reason) => return self.ends.push((conn, reason)),
            }
        }
    }

    pub(super) fn pause(&mut self, conn: ConnId) {
        if let Some(socket) = self.socket(conn) {
            socket.paused = true;
        }
    }

    pub(super) fn resume(&mut self, conn: ConnId) {
        if let Some(socket) = self.socket(conn) {
            socket.paused = false;
            self.list(conn);
        }
    }

    /// Closes a socket at the engine's request.
    pub(super) fn close(&mut self, conn: ConnId) {
        if let Some(socket) = self.drop_socket(conn) {
            socket.stream.close();
        }
    }

    fn end(&mut self, engine: &mut Engine, now: Now, conn: ConnId, reason: &CloseReason) {
        self.drop_socket(conn);
        engine.closed(now, conn, reason);
    }

    /// Removes a socket from the table. Dropping it also removes it from the poller.
    fn drop_socket(&mut self, conn: ConnId) -> Option<Socket> {
        self.socket(conn)?;
        self.sockets[conn.slot as usize].take()
    }

    fn list(&mut self, conn: ConnId) {
        if let Some(socket) = self.socket(conn)
            && !std::mem::replace(&mut socket.listed, true)
        {
            self.ready.push_back(conn);
        }
    }

    fn socket(&mut self, conn: ConnId) -> Option<&mut Socket> {
        let socket = self.sockets.get_mut(conn.slot as usize)?.as_mut()?;
        (socket.generation == conn.generation).then_some(socket)
    }
}

fn open(
    registry: &Registry,
    client: &Client,
    conn: ConnId,
    address: SocketAddr,
    tls: Option<&str>,
) -> Result<Stream, CloseReason> {
    let tcp = mio::net::TcpStream::connect(address).map_err(|error| reason_of(&error))?;
    let mut stream = match tls {
        Some(name) => Stream::tls(tcp, client, name)?,
        None => Stream::plain(tcp),
    };
    registry
        .register(stream.socket(), Net::token_of(conn), Interest::READABLE | Interest::WRITABLE)
        .map_err(|error| CloseReason::Local(error.to_string()))?;
    Ok(stream)
}
