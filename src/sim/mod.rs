//! The simulated world: the same engine on a virtual clock.
//!
//! Time jumps to the next event; nothing else makes it pass. Two runs with one script and one seed
//! do the same, byte for byte: the log of actions has a hash to prove it.

pub mod disk;
pub mod net;

use crate::engine::Engine;
use crate::engine::contract::{
    Action, Answer, CloseReason, ConnFacts, ConnId, Done, LookupId, NameFailure, Space,
};
use crate::time::{Instant, Now, UnixTime};
use crate::web::script::Script;
use net::{Arrival, Net};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

pub use net::Seen;

/// A world that plays one script.
#[derive(Debug)]
pub struct World {
    script: Script,
    net: Net,
    /// Addresses by host, as they are first asked for.
    addresses: BTreeMap<String, IpAddr>,
    events: BTreeMap<(Instant, u64), Event>,
    sequence: u64,
    actions_hash: u64,
}

/// What happens at an instant.
#[derive(Debug)]
enum Event {
    Answer(LookupId, Result<Answer, NameFailure>),
    Connected(ConnId, Option<String>),
    ToServer(ConnId, Vec<u8>),
    ServerActs(ConnId),
    Arrives(ConnId),
    Worked(Done),
}

/// Calendar time at the start of every simulation: 2026-01-01T00:00:00Z.
const EPOCH: UnixTime = UnixTime::from_micros(1_767_225_600_000_000);
/// Time a look-up takes, and one way through the network.
const DELAY: Duration = Duration::from_millis(10);
/// A crawl that needs more virtual time than this will never end.
const TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Turns at one instant after which the engine must be waiting for something that is not due.
const TURNS_MAX: u32 = 100_000;

/// The time at an instant of a simulation.
pub fn now_at(at: Instant) -> Now {
    Now { at, unix: UnixTime::from_micros(EPOCH.as_micros() + at.as_micros()) }
}

impl World {
    /// A world in which the servers of `script` live.
    pub fn new(script: &Script, seed: u64) -> Self {
        Self {
            script: script.clone(),
            net: Net::new(script.clone(), DELAY, seed),
            addresses: BTreeMap::new(),
            events: BTreeMap::new(),
            sequence: 0,
            actions_hash: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Runs a crawl to its end. `Err` names the instant at which it stood still.
    pub fn run(&mut self, engine: &mut Engine) -> Result<(), String> {
        let (mut at, mut turns) = (Instant::ZERO, 0);
        self.obey(engine, now_at(at));
        while !engine.is_finished() {
            let next = self.events.keys().next().map(|(at, _)| *at);
            let deadline = engine.deadline().map(|deadline| deadline.max(at));
            let Some(wake) = next.into_iter().chain(deadline).min() else {
                return Err(format!("at {at} nothing is left to happen, and the crawl goes on"));
            };
            turns = if wake == at { turns + 1 } else { 0 };
            if turns > TURNS_MAX {
                return Err(format!("at {at} the crawl turns on the spot"));
            }
            at = wake;
            if at.since(Instant::ZERO) > TIME_MAX {
                return Err(format!("the crawl has not ended at {at}"));
            }
            let now = now_at(at);
            while let Some(entry) = self.events.first_entry()
                && entry.key().0 <= at
            {
                let event = entry.remove();
                self.happen(engine, now, event);
            }
            engine.expired(now);
            self.obey(engine, now);
        }
        self.net.settle_all();
        Ok(())
    }

    /// What each host has seen.
    pub fn seen(&self) -> &BTreeMap<String, Seen> {
        &self.net.seen
    }

    /// A hash over all actions and their times.
    pub fn actions_hash(&self) -> u64 {
        self.actions_hash
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn happen(&mut self, engine: &mut Engine, now: Now, event: Event) {
        match event {
            Event::Answer(lookup, answer) => engine.resolved(now, lookup, answer),
            Event::Connected(conn, Some(host)) => {
                self.net.accept(conn, &host);
                engine.connected(now, conn, ConnFacts::default());
                self.server_acts(conn, now);
            }
            Event::Connected(conn, None) => engine.closed(now, conn, &CloseReason::Refused),
            Event::ToServer(conn, bytes) => {
                if let Some(link) = self.net.link(conn) {
                    link.player.received(&bytes);
                    self.server_acts(conn, now);
                }
            }
            Event::ServerActs(conn) => self.server_acts(conn, now),
            Event::Arrives(conn) => self.deliver(engine, conn, now),
            Event::Worked(done) => engine.worked(now, done),
        }
    }

    fn server_acts(&mut self, conn: ConnId, now: Now) {
        let (again, sent) = self.net.act(conn, now.at);
        if let Some(again) = again {
            self.at(again, Event::ServerActs(conn));
        }
        if sent {
            self.at(now.at + self.net.delay, Event::Arrives(conn));
        }
    }

    /// Hands the engine what has arrived on a connection, as far as it makes room.
    fn deliver(&mut self, engine: &mut Engine, conn: ConnId, now: Now) {
        while let Some(link) = self.net.link(conn)
            && !link.paused
            && let Some(arrival) = link.arriving.pop_front()
        {
            let bytes = match arrival {
                Arrival::Bytes(bytes) => bytes,
                end => {
                    let reset = end == Arrival::Reset;
                    self.net.drop_link(conn);
                    let reason = if reset { CloseReason::Reset } else { CloseReason::End };
                    return engine.closed(now, conn, &reason);
                }
            };
            match engine.space(now, conn) {
                Space::Room(room) => {
                    let count = room.len().min(bytes.len());
                    room[..count].copy_from_slice(&bytes[..count]);
                    if count < bytes.len() {
                        link.arriving.push_front(Arrival::Bytes(bytes[count..].to_vec()));
                    }
                    engine.received(now, conn, count);
                }
                Space::Paused => return link.arriving.push_front(Arrival::Bytes(bytes)),
                Space::Gone => return,
            }
        }
    }

    fn obey(&mut self, engine: &mut Engine, now: Now) {
        while let Some(action) = engine.next_action() {
            self.hash(now, &action);
            match action {
                Action::Resolve { lookup, name, .. } => {
                    let answer = self.answer(&name);
                    self.at(now.at + DELAY, Event::Answer(lookup, answer));
                }
                Action::Connect { conn, address, .. } => {
                    let host = self.addresses.iter().find(|(_, ip)| **ip == address.ip());
                    let host = host.map(|(host, _)| host.clone());
                    let host = host.filter(|host| self.net.listens(host));
                    self.at(now.at + DELAY * 2, Event::Connected(conn, host));
                }
                Action::Send(conn) => {
                    let bytes = engine.outgoing(conn).to_vec();
                    if !bytes.is_empty() {
                        engine.sent(now, conn, bytes.len());
                        self.at(now.at + DELAY, Event::ToServer(conn, bytes));
                    }
                }
                Action::Pause(conn) => {
                    if let Some(link) = self.net.link(conn) {
                        link.paused = true;
                    }
                }
                Action::Resume(conn) => {
                    if let Some(link) = self.net.link(conn) {
                        link.paused = false;
                        self.at(now.at, Event::Arrives(conn));
                    }
                }
                Action::Close(conn) => self.net.drop_link(conn),
                Action::Work(job) => self.at(now.at + DELAY, Event::Worked(job.run())),
            }
        }
    }

    /// Every host has an address of its own, unless the script says why it has none.
    fn answer(&mut self, name: &str) -> Result<Answer, NameFailure> {
        if let Some(why) = self.script.names.get(name) {
            return Err(match why.as_str() {
                "no-such-name" => NameFailure::NoSuchName,
                "no-address" => NameFailure::NoAddress,
                "timed-out" => NameFailure::TimedOut,
                _ => NameFailure::ServerFailed,
            });
        }
        let next = u8::try_from(self.addresses.len() + 1).expect("a script has few hosts");
        let address = IpAddr::V4(Ipv4Addr::new(127, 1, 0, next));
        let address = *self.addresses.entry(name.to_owned()).or_insert(address);
        Ok(Answer { addresses: smallvec::smallvec![address], ttl: Duration::from_secs(3_600) })
    }

    /// FNV-1a over what the engine asks for, and when.
    fn hash(&mut self, now: Now, action: &Action) {
        let text = format!("{} {action:?}", now.at);
        for byte in text.bytes() {
            self.actions_hash = (self.actions_hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
