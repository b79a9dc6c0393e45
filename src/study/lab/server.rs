//! The lab's event loop: listeners, connections, name server and timers on one thread.

use super::connection::{Connection, Fate};
use super::dns::{DNS_TOKENS, NameServer};
use super::log::{End, Log};
use super::replies::Responder;
use super::sockets::{Full, Listener, Sockets};
use super::tls::Authority;
use super::transport::Transport;
use super::{Error, Settings, Totals};
use crate::ground::time::{Instant, Timers};
use crate::study::web::{self, Certificate, Manner, Web};
use mio::event::Event;
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustls::{ServerConfig, ServerConnection};
use slab::Slab;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often the stop flag is checked.
const STOP_EVERY: Duration = Duration::from_millis(50);
/// How long the lab waits for the client to end its stream after the lab has ended its own stream.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// The most descriptors the lab uses, listeners included.
const DESCRIPTORS_MAX: usize = 18_000;
const SCRATCH_BYTES: usize = 64 << 10;
const STDIN_TOKEN: Token = Token(usize::MAX - 1);

/// The sockets and the state of a running lab.
pub(super) struct Server {
    poll: Poll,
    listeners: Vec<Listener>,
    /// The TLS configuration of each listener; `None` for plain text.
    configs: Vec<Option<Arc<ServerConfig>>>,
    /// The open connections; their poller tokens follow those of the listeners.
    connections: Slab<Connection>,
    connections_max: usize,
    /// Listeners that still had connections to accept when the limit on connections, or one of the
    /// system, was reached.
    starved: Vec<usize>,
    /// Listeners with connections to accept in this turn or the next.
    knocking: Vec<usize>,
    /// Connections accepted and not yet begun.
    accepted: Vec<(usize, TcpStream, SocketAddr)>,
    /// Connections to call again in the next turn, because they yielded to others.
    again: Vec<usize>,
    timers: Timers,
    names: NameServer,
    responder: Responder,
    scratch: Vec<u8>,
    idle_time: Duration,
    follow_stdin: bool,
    started: std::time::Instant,
    now: Instant,
    _full: Vec<Full>,
}

impl Server {
    /// Registers the sockets with a poller and makes the replies that can be made beforehand.
    pub(super) fn new(
        settings: &Settings,
        web: Web,
        sockets: Sockets,
        authority: &Authority,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Socket("watch the lab's sockets", source);
        let poll = Poll::new().map_err(failed)?;
        let registry = poll.registry();
        let Sockets { mut listeners, udp, tcp, full, .. } = sockets;
        let mut configs = Vec::with_capacity(listeners.len());
        for (place, listener) in listeners.iter_mut().enumerate() {
            registry
                .register(&mut listener.socket, Token(place), Interest::READABLE)
                .map_err(failed)?;
            configs.push(config_of(listener, &web, authority)?);
        }
        let names = NameServer::new(udp, tcp, settings.dns_ttl, registry)?;
        if settings.follow_stdin {
            // A regular file or /dev/null can't be watched, and never reports an end.
            let _ = registry.register(&mut SourceFd(&0), STDIN_TOKEN, Interest::READABLE);
        }
        let room = DESCRIPTORS_MAX.saturating_sub(listeners.len()).max(1);
        let idle_time = web.settings().idle_time;
        let log = Log::open(settings.log.as_deref(), settings.requests_logged)?;
        let started = std::time::Instant::now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            poll,
            listeners,
            configs,
            connections: Slab::new(),
            connections_max: settings.connections_max.clamp(1, room),
            starved: Vec::new(),
            knocking: Vec::new(),
            accepted: Vec::new(),
            again: Vec::new(),
            timers: Timers::new(),
            names,
            responder: Responder::new(settings, web, log, unix),
            scratch: vec![0; SCRATCH_BYTES],
            idle_time,
            follow_stdin: settings.follow_stdin,
            started,
            now: Instant::ZERO,
            _full: full,
        })
    }

    /// Serves until `stop` is set.
    pub(super) fn run(&mut self, stop: &AtomicBool) -> Result<Totals, Error> {
        let mut events = Events::with_capacity(1_024);
        let mut open = true;
        while open && !stop.load(Ordering::Relaxed) {
            let wait = self.wait();
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(Error::Socket("wait for events", error));
                }
                _ => {}
            }
            self.now = self.clock();
            for event in &events {
                open &= self.dispatch(event)?;
            }
            open &= self.welcome(&mut events)?;
            for slot in std::mem::take(&mut self.again) {
                self.pump(slot)?;
            }
            while let Some(slot) = self.timers.expire(self.now) {
                self.expire(slot as usize)?;
            }
            self.responder.log.turn(self.now)?;
        }
        let left: Vec<usize> = self.connections.iter().map(|(slot, _)| slot).collect();
        left.into_iter().try_for_each(|slot| self.drop_connection(slot, End::Stop))?;
        self.responder.log.turn(Instant::FAR)?;
        let lookups = self.names.lookups;
        Ok(Totals { lookups, ..self.responder.totals })
    }

    fn clock(&self) -> Instant {
        let us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Instant::from_micros(us)
    }

    fn wait(&self) -> Duration {
        if !self.again.is_empty() || !self.knocking.is_empty() {
            return Duration::ZERO;
        }
        let timer = self.timers.nearest().map_or(STOP_EVERY, |at| at.since(self.clock()));
        timer.min(STOP_EVERY)
    }

    /// Handles an event; returns false if the lab is to exit.
    fn dispatch(&mut self, event: &Event) -> Result<bool, Error> {
        let token = event.token();
        if token == STDIN_TOKEN {
            return Ok(!(self.follow_stdin && stdin_ended(event)));
        }
        if token.0 >= DNS_TOKENS {
            self.names.turn(&self.responder.web, self.poll.registry(), token);
        } else if token.0 < self.listeners.len() {
            self.knocking.push(token.0);
        } else {
            let slot = token.0 - self.listeners.len();
            if let Some(connection) = self.connections.get_mut(slot) {
                if event.is_readable() || event.is_error() {
                    connection.mark_readable(event.is_read_closed() || event.is_error());
                }
                self.pump(slot)?;
            }
        }
        Ok(true)
    }

    /// Accepts waiting connections. A client may close a connection and open the next one
    /// immediately: to log closes before the accepts that they preceded, new events are handled
    /// after connections are accepted and before they begin. Returns false if the lab is to exit.
    fn welcome(&mut self, events: &mut Events) -> Result<bool, Error> {
        if self.knocking.is_empty() {
            return Ok(true);
        }
        std::mem::take(&mut self.knocking).into_iter().for_each(|listener| self.accept(listener));
        // If the call is interrupted, the next turn repeats it.
        let _ = self.poll.poll(events, Some(Duration::ZERO));
        let mut open = true;
        for event in &*events {
            open &= self.dispatch(event)?;
        }
        for (listener, socket, from) in std::mem::take(&mut self.accepted) {
            self.begin(listener, socket, from)?;
        }
        Ok(open)
    }

    fn accept(&mut self, listener: usize) {
        loop {
            if self.connections.len() + self.accepted.len() >= self.connections_max {
                return self.starved.push(listener);
            }
            match self.listeners[listener].socket.accept() {
                Ok((socket, from)) => self.accepted.push((listener, socket, from)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_of_client(&error) => {}
                // Out of descriptors or memory: try again later.
                Err(_) => return self.starved.push(listener),
            }
        }
    }

    fn begin(
        &mut self,
        listener: usize,
        mut socket: TcpStream,
        from: SocketAddr,
    ) -> Result<(), Error> {
        let entry = self.connections.vacant_entry();
        let slot = entry.key();
        let token = Token(self.listeners.len() + slot);
        let both = Interest::READABLE | Interest::WRITABLE;
        let ready = socket
            .set_nodelay(true)
            .and_then(|()| self.poll.registry().register(&mut socket, token, both));
        if ready.is_err() {
            // The client has closed the connection already.
            return Ok(());
        }
        let transport = match &self.configs[listener] {
            None => Transport::Plain(socket),
            Some(config) => match ServerConnection::new(config.clone()) {
                Ok(tls) => Transport::Tls(socket, Box::new(tls)),
                Err(error) => return Err(Error::Certificate(error.to_string())),
            },
        };
        self.responder.totals.connections += 1;
        let number = self.responder.totals.connections;
        let host = self.listeners[listener].hosts[0];
        let mut connection = Connection::new(transport, listener, host, number, self.now);
        let traits = &self.responder.hosts[host as usize];
        if traits.hostile.is_some_and(|kind| kind.spec().manner == Manner::Mute) {
            connection.silence();
        }
        entry.insert(connection);
        self.responder.log.accepted(self.now, number, &traits.name, from)?;
        self.timers.set(key_of(slot), self.now + self.idle_time);
        self.pump(slot)
    }

    fn pump(&mut self, slot: usize) -> Result<(), Error> {
        // A request may have come in since the turn began, and must not be logged as earlier: rests
        // between requests are judged by the log.
        self.now = self.clock();
        let Some(connection) = self.connections.get_mut(slot) else { return Ok(()) };
        let from = &self.listeners[connection.listener];
        let fate = connection.pump(from, &mut self.responder, &mut self.scratch, self.now)?;
        match fate {
            Fate::Wait => {}
            Fate::Sleep(until) => self.timers.set(key_of(slot), until),
            Fate::Linger => {
                if self.timers.at(key_of(slot)).is_none_or(|at| at > self.now + LINGER_TIME) {
                    self.timers.set(key_of(slot), self.now + LINGER_TIME);
                }
            }
            Fate::Again => self.again.push(slot),
            Fate::Gone(end) => self.drop_connection(slot, end)?,
        }
        Ok(())
    }

    /// Handles a connection's timer: a wait or the time to linger has ended, or the idle time has
    /// to be checked.
    fn expire(&mut self, slot: usize) -> Result<(), Error> {
        self.timers.set(key_of(slot), self.now + self.idle_time);
        let Some(connection) = self.connections.get(slot) else { return Ok(()) };
        if let Some(end) = connection.lingers() {
            return self.drop_connection(slot, end);
        }
        let idle_at = connection.active + self.idle_time;
        if connection.is_idle() {
            if idle_at <= self.now {
                return self.drop_connection(slot, End::Idle);
            }
            self.timers.set(key_of(slot), idle_at);
            return Ok(());
        }
        self.pump(slot)
    }

    fn drop_connection(&mut self, slot: usize, end: End) -> Result<(), Error> {
        self.timers.cancel(key_of(slot));
        let mut connection = self.connections.remove(slot);
        // Dropping the socket removes it from the poller; mio expects the call nevertheless.
        let _ = self.poll.registry().deregister(connection.transport().socket());
        let name = &self.responder.hosts[connection.host as usize].name;
        let (number, served) = (connection.number, connection.served);
        self.responder.log.closed(self.now, number, name, served, end)?;
        drop(connection);
        self.knocking.extend(self.starved.pop());
        Ok(())
    }
}

/// Returns a listener's TLS configuration; `None` for plain text and for hosts that only claim to
/// speak TLS.
fn config_of(
    listener: &Listener,
    web: &Web,
    authority: &Authority,
) -> Result<Option<Arc<ServerConfig>>, Error> {
    let spec = web.hostile_of(listener.hosts[0]).map(|kind| kind.spec());
    let pretends = |spec: web::Spec| matches!(spec.manner, Manner::NotTls | Manner::Mute);
    if !listener.tls || spec.is_some_and(pretends) {
        return Ok(None);
    }
    let certificate = spec.and_then(|spec| spec.certificate).unwrap_or(Certificate::Good);
    let names = listener.hosts.iter().map(|host| web.host(*host).name).collect();
    authority.config(names, certificate, web.resumes(listener.hosts[0])).map(Some)
}

fn key_of(slot: usize) -> u32 {
    u32::try_from(slot).expect("fewer connections than descriptors")
}

/// Whether accepting failed because of the next client, not because of the lab.
fn is_of_client(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}

fn stdin_ended(event: &Event) -> bool {
    let mut line = [0; 512];
    event.is_read_closed() || io::stdin().lock().read(&mut line).is_ok_and(|length| length == 0)
}
