//! The simulated network: connections from the crawler to servers, with the delays of each
//! direction.
//!
//! The model for a web (a script's is in [`super::scripted`]):
//! - A TCP connection is established after a round trip and the host's time to accept; TLS takes
//!   one more round trip (TLS 1.3) and resumes a session from the second connection to a host on.
//! - A message takes half a round-trip time, which is drawn anew for each message
//!   (`Web::round_trip`). Order is kept.
//! - Replies are delivered by window, not by packet: [`super::flow`] decides how much leaves in a
//!   round, the host's rate how long that takes. Where a rate limits them, bytes arrive in pieces
//!   of at most 64 KiB or a tenth of a second.
//! - Everything that arrives passes the crawler's [`super::gateway`].
//! - A persistent connection keeps its window until it has been idle for a second.
//! - Faults, each with the probability that the settings give: a burst that loses a segment arrives
//!   a retransmission timeout (200 ms, or two round trips) later; replies are interrupted by a
//!   reset, or never arrive; connections are refused.
//! - While a host is unreachable (`settings::Outage`), connections to it fail or are never
//!   established, and open ones lose everything on its way from then on.
//! - When the crawler closes a connection, the server learns it at once, and what is still on its
//!   way is lost.
//! - Flow control: a server stops while two windows of the largest size are unread.

use super::agenda::Event;
use super::flow::Line;
use super::gateway::Gateway;
use super::hosts::Hosts;
use super::observation::Observation;
use super::pipe::{Arrival, End, Pipe};
use super::scene::Scene;
use super::scripted::{ROUND_TRIP, Scripted, Scripts};
use super::server::{Doing, Server};
use super::settings::Away;
use crate::engine::Engine;
use crate::engine::contract::{
    CertificateFault as Fault, CloseReason, ConnFacts, ConnId, Space, TlsFacts, TlsFault,
};
use crate::ground::time::{Instant, Now};
use crate::study::web::{Certificate, Manner, Scheme};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// All connections and the servers behind them.
#[derive(Debug)]
pub(super) struct Net {
    links: Vec<Option<Box<Link>>>,
    open: usize,
    gateway: Gateway,
    pub(super) origin: Origin,
}

/// Where the servers come from: a script, or a synthetic web.
#[derive(Debug)]
pub(super) enum Origin {
    Script(Scripts),
    Web(Hosts),
}

/// One connection of the crawler.
#[derive(Debug)]
struct Link {
    conn: ConnId,
    peer: Peer,
    line: Line,
    facts: ConnFacts,
    paused: bool,
    /// Whether nothing arrives any more in either direction, because the host was unreachable.
    cut: bool,
    /// Whether the server has ended the connection; the end is on its way to the crawler.
    ended: bool,
    /// Messages on the way to the server, in order; the last arrives at `upward_last`.
    upward: VecDeque<Vec<u8>>,
    upward_last: Instant,
    /// The bytes from the server to the crawler: queued, on their way and arrived.
    pipe: Pipe,
    /// Whether the next arrival at the crawler has been scheduled as an event.
    scheduled: bool,
    /// The next time at which the server is called; `FAR` if none is scheduled.
    wake: Instant,
    /// When the server is called because its idle time ends; `FAR` if that is not scheduled.
    alarm: Instant,
}

/// The other end of a connection.
#[derive(Debug)]
enum Peer {
    /// Nobody: no server listens at the address, or the host can't be reached.
    Nobody,
    Script(Scripted),
    Web(Server),
}

/// Windows and a rate that limit nothing. A connection to a script's server has them: such a server
/// sends everything at once.
const UNBOUNDED: Line = Line { first_bytes: 1 << 40, max_bytes: 1 << 40, rate: 0 };
/// How long it takes to learn that an address has no route.
const NOWHERE: Duration = Duration::from_millis(100);

impl Net {
    pub(super) fn new(origin: Origin, gateway_rate: u64) -> Self {
        Self { links: Vec::new(), open: 0, gateway: Gateway::new(gateway_rate), origin }
    }

    /// Returns the number of open connections, those being established included.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    // Actions of the crawler.

    /// Begins a connection that the crawler has asked for: to `address`, with TLS for the name
    /// `tls` if there is one.
    pub(super) fn connect(
        &mut self,
        conn: ConnId,
        address: SocketAddr,
        tls: Option<&str>,
        scene: &mut Scene,
    ) {
        let now = scene.now;
        let hosts = match &mut self.origin {
            Origin::Script(scripts) => {
                let listens = scripts.listening(address.ip()).is_some();
                let fails = || Event::Failed(conn, Box::new(CloseReason::Refused));
                let event = if listens { Event::Established(conn) } else { fails() };
                scene.agenda.at(now + ROUND_TRIP, event);
                let facts = ConnFacts::default();
                let peer = match scripts.listening(address.ip()).map(str::to_owned) {
                    Some(host) => Peer::Script(scripts.accept(&host)),
                    None => Peer::Nobody,
                };
                return self.insert(conn, peer, UNBOUNDED, facts);
            }
            Origin::Web(hosts) => hosts,
        };
        let named = tls.and_then(|name| hosts.web.host_named(name));
        let number = named.or_else(|| hosts.behind(address.ip(), tls.is_some()));
        let Some(number) = number else {
            scene.agenda.at(now + NOWHERE, Event::Failed(conn, Box::new(CloseReason::Unreachable)));
            return self.insert(conn, Peer::Nobody, UNBOUNDED, ConnFacts::default());
        };
        let away = hosts.away(number, now);
        if let Some(how @ (Away::Silent | Away::Unreachable)) = away {
            // The attempt never reaches the host, so it is not counted there.
            if how == Away::Unreachable {
                let fails = Event::Failed(conn, Box::new(CloseReason::Unreachable));
                scene.agenda.at(now + NOWHERE, fails);
            }
            return self.insert(conn, Peer::Nobody, UNBOUNDED, ConnFacts::default());
        }
        scene.show(|| Observation::Connecting { conn, host: number });
        let (draw, refused) = hosts.connection(number, now);
        let refused = refused || away == Some(Away::Refuses);
        scene.figures.faults += u64::from(refused);
        let way = Way { conn, number, tls: tls.is_some(), refused };
        let facts = way.set_up(hosts, scene);
        let server = Server::new(conn, number, hosts.manner(number), draw);
        let line = hosts.at(number).line;
        self.insert(conn, Peer::Web(server), line, facts);
    }

    /// Sends the crawler's requests, `bytes`, to the server of a connection.
    pub(super) fn send(&mut self, conn: ConnId, bytes: Vec<u8>, scene: &mut Scene) {
        let Some(link) = find(&mut self.links, conn) else { return };
        let trip = round_trip(&mut self.origin, &link.peer);
        scene.show(|| Observation::Sent { conn });
        link.upward_last = link.upward_last.max(scene.now + trip / 2);
        link.upward.push_back(bytes);
        scene.agenda.at(link.upward_last, Event::Requests(conn));
    }

    pub(super) fn pause(&mut self, conn: ConnId) {
        if let Some(link) = find(&mut self.links, conn) {
            link.paused = true;
        }
    }

    pub(super) fn resume(&mut self, conn: ConnId, scene: &mut Scene) {
        if let Some(link) = find(&mut self.links, conn) {
            link.paused = false;
            link.schedule_arrival(scene);
        }
    }

    /// Closes a connection as the crawler has asked.
    pub(super) fn close(&mut self, conn: ConnId, scene: &mut Scene) {
        self.forget(conn, true, scene);
    }

    /// Ends all connections because the crawler has ended; records what their servers have seen.
    pub(super) fn end(&mut self, scene: &mut Scene) {
        let conns: Vec<ConnId> = self.links.iter().flatten().map(|link| link.conn).collect();
        for conn in conns {
            if let Some(Link { peer: Peer::Script(_), .. }) = find(&mut self.links, conn) {
                self.settle(conn, false);
                self.links[conn.slot as usize] = None;
                self.open -= 1;
            } else {
                self.forget(conn, true, scene);
            }
        }
    }

    // Events outside the crawler.

    /// Delivers the next message of the crawler to the server of a connection.
    pub(super) fn requests(&mut self, conn: ConnId, scene: &mut Scene) {
        let Some(link) = find(&mut self.links, conn) else { return };
        let bytes = link.upward.pop_front().expect("an event for each message");
        if link.is_cut(&self.origin, scene) {
            return;
        }
        match (&mut link.peer, &mut self.origin) {
            (Peer::Script(scripted), _) => scripted.received(&bytes),
            (Peer::Web(server), Origin::Web(hosts)) if !link.ended => {
                server.received(&bytes, hosts, scene);
            }
            _ => {}
        }
        self.serve(conn, scene);
    }

    /// Lets the server of a connection do what is due now, and send what its window allows.
    pub(super) fn serve(&mut self, conn: ConnId, scene: &mut Scene) {
        let now = scene.now;
        let Some(link) = find(&mut self.links, conn) else { return };
        if link.wake <= now {
            link.wake = Instant::FAR;
        }
        if link.alarm <= now {
            link.alarm = Instant::FAR;
        }
        loop {
            link.transmit(&mut self.origin, &mut self.gateway, scene);
            if link.ended {
                break;
            }
            match link.doing(&mut self.origin, scene) {
                Doing::Send(parcel) => link.pipe.push(parcel),
                Doing::WaitUntil(at) => {
                    link.wake_at(at, scene);
                    break;
                }
                Doing::IdleUntil(at) => {
                    // The host's idle time became shorter with its first request.
                    if at < link.alarm {
                        link.alarm = at;
                        scene.agenda.at(at, Event::Serve(conn));
                    }
                    break;
                }
                Doing::Ends(end) if link.pipe.backlog() == 0 => {
                    link.ended = true;
                    let trip = round_trip(&mut self.origin, &link.peer);
                    let first = link.pipe.send_end(now, trip, end);
                    link.fly(first, &mut self.gateway, scene);
                }
                Doing::Ends(_) | Doing::Wait => break,
            }
        }
        let next = link.pipe.next(now, &link.line).filter(|at| *at != Instant::FAR);
        if let Some(at) = next {
            link.wake_at(at, scene);
        }
    }

    /// Lets the next bytes of a connection pass the crawler's gateway.
    pub(super) fn at_gateway(&mut self, conn: ConnId, scene: &mut Scene) {
        let Some(link) = find(&mut self.links, conn) else { return };
        link.pipe.pass(&mut self.gateway, &link.line);
        link.schedule_arrival(scene);
        self.serve(conn, scene);
    }

    // Events for the crawler.

    /// Reports to the observer that the crawler has the answer to a look-up.
    pub(super) fn resolved(&self, name: &str, scene: &mut Scene) {
        if let Origin::Web(hosts) = &self.origin {
            scene.show(|| Observation::Resolved {
                host: hosts.web.host_named(name),
                name: name.into(),
            });
        }
    }

    /// Establishes a connection: notifies the engine, and lets the server begin.
    pub(super) fn establish(
        &mut self,
        engine: &mut Engine,
        conn: ConnId,
        now: Now,
        scene: &mut Scene,
    ) {
        let Some(link) = find(&mut self.links, conn) else { return };
        if link.is_cut(&self.origin, scene) {
            return;
        }
        let facts = link.facts.clone();
        if let Peer::Web(server) = &mut link.peer {
            server.is_active(scene.now);
            let host = server.host;
            scene.show(|| Observation::Established { conn, host });
        }
        engine.connected(now, conn, facts);
        self.serve(conn, scene);
    }

    /// Ends a connection that could not be established, and notifies the engine of the reason.
    pub(super) fn fail(
        &mut self,
        engine: &mut Engine,
        conn: ConnId,
        reason: &CloseReason,
        now: Now,
        scene: &mut Scene,
    ) {
        if find(&mut self.links, conn).is_some() {
            self.forget(conn, false, scene);
            engine.closed(now, conn, reason);
        }
    }

    /// Delivers what has arrived on a connection, as far as the crawler has buffer space.
    pub(super) fn deliver(
        &mut self,
        engine: &mut Engine,
        conn: ConnId,
        now: Now,
        scene: &mut Scene,
    ) {
        let Some(link) = find(&mut self.links, conn) else { return };
        link.scheduled = false;
        if link.is_cut(&self.origin, scene) {
            return;
        }
        let was_full = link.pipe.is_full(&link.line);
        if let Some(end) = link.hand_over(engine, now, scene) {
            self.forget(conn, false, scene);
            let reset = end == End::Reset;
            let reason = if reset { CloseReason::Reset } else { CloseReason::End };
            return engine.closed(now, conn, &reason);
        }
        link.schedule_arrival(scene);
        if was_full && !link.pipe.is_full(&link.line) {
            let trip = round_trip(&mut self.origin, &link.peer);
            link.wake_at(scene.now + trip / 2, scene);
        }
    }

    fn insert(&mut self, conn: ConnId, peer: Peer, line: Line, facts: ConnFacts) {
        let slot = conn.slot as usize;
        if slot >= self.links.len() {
            self.links.resize_with(slot + 1, || None);
        }
        assert!(self.links[slot].is_none(), "a slot is used again after its connection is over");
        self.open += 1;
        self.links[slot] = Some(Box::new(Link {
            conn,
            peer,
            line,
            facts,
            paused: false,
            cut: false,
            ended: false,
            upward: VecDeque::new(),
            upward_last: Instant::ZERO,
            pipe: Pipe::new(&line),
            scheduled: false,
            wake: Instant::FAR,
            alarm: Instant::FAR,
        }));
    }

    fn forget(&mut self, conn: ConnId, by_crawler: bool, scene: &mut Scene) {
        self.settle(conn, true);
        if find(&mut self.links, conn).is_none() {
            return;
        }
        let link = self.links[conn.slot as usize].take();
        self.open -= 1;
        if let Some(Peer::Web(mut server)) = link.map(|link| link.peer) {
            server.over(scene);
            let host = server.host;
            scene.show(|| Observation::Closed { conn, host, by_crawler });
        }
    }

    fn settle(&mut self, conn: ConnId, to_the_end: bool) {
        if let Some(link) = find(&mut self.links, conn)
            && let (Peer::Script(scripted), Origin::Script(scripts)) =
                (&mut link.peer, &mut self.origin)
        {
            scripts.settle(scripted, to_the_end);
        }
    }
}

impl Link {
    /// Whether nothing arrives any more on the connection: its host has been unreachable at some
    /// time since the connection was opened.
    fn is_cut(&mut self, origin: &Origin, scene: &mut Scene) -> bool {
        if let (Peer::Web(server), Origin::Web(hosts)) = (&self.peer, origin)
            && !self.cut
            && hosts.loses_all(server.host, scene.now)
        {
            self.cut = true;
            scene.figures.faults += 1;
        }
        self.cut
    }

    /// Sends as many of the server's queued bytes as its window allows now.
    fn transmit(&mut self, origin: &mut Origin, gateway: &mut Gateway, scene: &mut Scene) {
        while let Some(at) = self.pipe.next(scene.now, &self.line)
            && at <= scene.now
        {
            let trip = round_trip(origin, &self.peer);
            let mut is_lost = false;
            if let (Peer::Web(server), Origin::Web(hosts)) = (&mut self.peer, &*origin) {
                is_lost = server.loses(hosts.faults(scene.now).losses);
                scene.figures.faults += u64::from(is_lost);
            }
            let first = self.pipe.send(scene.now, trip, is_lost, &self.line);
            if let Peer::Web(server) = &mut self.peer {
                server.is_active(self.pipe.line_free());
            }
            self.fly(first, gateway, scene);
        }
    }

    fn doing(&mut self, origin: &mut Origin, scene: &mut Scene) -> Doing {
        match (&mut self.peer, origin) {
            (Peer::Script(scripted), Origin::Script(scripts)) => scripted.act(scene.now, scripts),
            (Peer::Web(server), Origin::Web(hosts)) => {
                server.act(scene.now, self.pipe.backlog(), hosts, scene)
            }
            _ => Doing::Wait,
        }
    }

    /// Schedules the arrival of bytes that have left the server at the crawler's gateway, which the
    /// first of them reaches at `first`.
    fn fly(&mut self, first: Instant, gateway: &mut Gateway, scene: &mut Scene) {
        if gateway.rate() == 0 {
            self.pipe.pass(gateway, &self.line);
            self.schedule_arrival(scene);
        } else {
            scene.agenda.at(first, Event::Gateway(self.conn));
        }
    }

    /// Schedules the next arrival at the crawler.
    fn schedule_arrival(&mut self, scene: &mut Scene) {
        if !self.scheduled
            && !self.paused
            && let Some(at) = self.pipe.arrives_at()
        {
            self.scheduled = true;
            // An overdue arrival is read in the next turn.
            scene.agenda.at(at.max(scene.now), Event::Arrives(self.conn));
        }
    }

    fn wake_at(&mut self, at: Instant, scene: &mut Scene) {
        if at < self.wake {
            self.wake = at;
            scene.agenda.at(at, Event::Serve(self.conn));
        }
    }

    /// Lets the crawler read what has arrived; returns how the connection ends, or `None` if its
    /// end has not been reached.
    fn hand_over(&mut self, engine: &mut Engine, now: Now, scene: &mut Scene) -> Option<End> {
        while !self.paused
            && let Some(arrival) = self.pipe.arriving.front().copied()
            && arrival.at <= scene.now
        {
            if arrival.end.is_some() {
                return arrival.end;
            }
            if engine.is_gone(self.conn) || engine.is_sated() {
                return None;
            }
            if arrival.actual == 0 {
                // A part of the page's nominal length with no actual byte to move.
                self.has_read(&arrival, 0, scene);
                continue;
            }
            let Space::Room(room) = engine.space(now, self.conn) else { return None };
            let count = self.pipe.read(room, arrival.actual);
            self.has_read(&arrival, count, scene);
            engine.received(now, self.conn, count);
        }
        None
    }

    /// Records that the crawler has read `count` actual bytes of `arrival`, the first in the pipe.
    fn has_read(&mut self, arrival: &Arrival, count: usize, scene: &mut Scene) {
        let front = self.pipe.arriving.front_mut().expect("it was looked at");
        front.actual -= count;
        if front.actual > 0 {
            return;
        }
        self.pipe.arriving.pop_front();
        self.pipe.done(arrival);
        scene.figures.received_bytes += arrival.nominal;
        if let Peer::Web(server) = &mut self.peer {
            server.arrived(arrival.ends_reply, scene);
        }
    }
}

fn find(links: &mut [Option<Box<Link>>], conn: ConnId) -> Option<&mut Link> {
    let link = links.get_mut(conn.slot as usize)?.as_deref_mut()?;
    (link.conn == conn).then_some(link)
}

fn round_trip(origin: &mut Origin, peer: &Peer) -> Duration {
    match (origin, peer) {
        (Origin::Web(hosts), Peer::Web(server)) => hosts.round_trip(server.host),
        _ => ROUND_TRIP,
    }
}

/// A connection that the crawler has asked for, to the host `number` of a web.
struct Way {
    conn: ConnId,
    number: u32,
    tls: bool,
    refused: bool,
}

impl Way {
    /// Schedules the establishment or the failure of the connection; returns the facts that the
    /// engine is given once it is established.
    fn set_up(&self, hosts: &mut Hosts, scene: &mut Scene) -> ConnFacts {
        let conn = self.conn;
        let manner = hosts.manner(self.number);
        let (trip, second) = (hosts.round_trip(self.number), hosts.round_trip(self.number));
        let met = hosts.at(self.number);
        let is_there = self.tls == (met.host.scheme == Scheme::Https);
        let answered = scene.now + trip;
        let fails = |reason| Event::Failed(conn, Box::new(reason));
        if manner == Manner::Full {
            return ConnFacts::default();
        }
        if self.refused || !is_there || manner == Manner::Refuse {
            scene.agenda.at(answered, fails(CloseReason::Refused));
            return ConnFacts::default();
        }
        let opens = answered + met.host.accept_time;
        if !self.tls {
            scene.agenda.at(opens, Event::Established(conn));
            return ConnFacts::default();
        }
        scene.agenda.at(opens, Event::Opened(conn));
        let secured = opens + second;
        let certificate = met.host.hostile.and_then(|kind| kind.spec().certificate);
        let event = match (manner, certificate) {
            (Manner::Mute, _) => return ConnFacts::default(),
            (Manner::NotTls, _) => {
                fails(CloseReason::Tls(TlsFault::NotTls, "no TLS record".to_owned()))
            }
            (_, None | Some(Certificate::Good)) => Event::Established(conn),
            (_, Some(Certificate::Expired)) => fails(CloseReason::Certificate(Fault::Expired)),
            (_, Some(Certificate::WrongName)) => fails(CloseReason::Certificate(Fault::WrongHost)),
            (_, Some(Certificate::UnknownIssuer)) => {
                fails(CloseReason::Certificate(Fault::UnknownIssuer))
            }
        };
        scene.agenda.at(secured, event);
        let resumed = std::mem::replace(&mut met.has_session, true);
        let (version, suite) = ("tls/1.3", "TLS_AES_128_GCM_SHA256");
        ConnFacts { tls: Some(TlsFacts { version, suite, resumed, verified: true }) }
    }
}
