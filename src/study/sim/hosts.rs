//! The state of a web's hosts in a simulation: their traits, drawn once, and counts of requests.
//!
//! Cost: all traits of a host are drawn at its first request; some 300 bytes a host.

use super::draw::{Draw, Purpose};
use super::flow::Line;
use super::settings::{Affected, Away, Faults, Outage, Settings};
use crate::ground::map::Map;
use crate::ground::time::Instant;
use crate::study::web::wire::{self, Step, Terms};
use crate::study::web::{Answer, Host, Manner, Place, Play, Proof, Resource, Scheme, Web};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// All hosts of a web.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) web: Arc<Web>,
    seed: u64,
    faults: Faults,
    outages: Vec<Outage>,
    first_bytes: u64,
    max_bytes: u64,
    met: Vec<Option<Box<Known>>>,
    /// For each address and scheme (true: with TLS), the host there that was looked up first.
    by_address: Map<(IpAddr, bool), u32>,
    /// How often a resource was requested, for hostile replies that depend on it.
    asked: Map<Place, u32>,
    /// The hostile replies made so far that are expensive to make.
    plays: Map<Place, Rc<[Step]>>,
}

/// A host that the crawler has contacted or looked up.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) host: Host,
    pub(super) line: Line,
    /// Whether the crawler has a TLS session with the host that can be resumed.
    pub(super) has_session: bool,
    connections: u32,
    lookups: u32,
    messages: u32,
    requests: u32,
}

impl Hosts {
    pub(super) fn new(web: Arc<Web>, settings: &Settings) -> Self {
        let count = web.hosts() as usize;
        let mut met = Vec::new();
        met.resize_with(count, || None);
        Self {
            web,
            seed: settings.seed,
            faults: settings.faults,
            outages: settings.outages.clone(),
            first_bytes: u64::from(settings.window_first_bytes),
            max_bytes: u64::from(settings.window_max_bytes),
            met,
            by_address: Map::default(),
            asked: Map::default(),
            plays: Map::default(),
        }
    }

    /// Returns the host of this number; its traits are drawn at the first call.
    pub(super) fn at(&mut self, number: u32) -> &mut Known {
        let (first_bytes, max_bytes) = (self.first_bytes, self.max_bytes);
        self.met[number as usize].get_or_insert_with(|| {
            let host = self.web.host(number);
            let line = Line { first_bytes, max_bytes, rate: host.rate };
            Box::new(Known {
                host,
                line,
                has_session: false,
                connections: 0,
                lookups: 0,
                messages: 0,
                requests: 0,
            })
        })
    }

    /// Returns the faults in effect now.
    pub(super) fn faults(&self, now: Instant) -> Faults {
        let is_over = |until: Duration| now.since(Instant::ZERO) >= until;
        if self.faults.until.is_some_and(is_over) { Faults::default() } else { self.faults }
    }

    /// Returns how a host is unreachable now; `None` if it can be reached.
    pub(super) fn away(&self, number: u32, now: Instant) -> Option<Away> {
        let at = now.since(Instant::ZERO);
        let is_on = |outage: &&Outage| {
            let affected = match outage.of {
                Affected::All => true,
                Affected::Half => number % 2 == 1,
                Affected::One(one) => number == one,
            };
            affected && (outage.from..outage.from + outage.length).contains(&at)
        };
        self.outages.iter().find(is_on).map(|outage| outage.how)
    }

    /// Whether everything on its way from or to a host is lost now.
    pub(super) fn loses_all(&self, number: u32, now: Instant) -> bool {
        self.away(number, now).is_some_and(|how| !how.is_of_names())
    }

    /// Returns the random draws for a look-up of this host.
    pub(super) fn lookup(&mut self, number: u32) -> Draw {
        let seed = self.seed;
        let met = self.at(number);
        met.lookups += 1;
        Draw::new(seed, Purpose::Lookup, number, met.lookups)
    }

    /// Returns the random draws for a new connection to this host, and whether it is refused.
    pub(super) fn connection(&mut self, number: u32, now: Instant) -> (Draw, bool) {
        let (seed, share) = (self.seed, self.faults(now).refusals);
        let met = self.at(number);
        met.connections += 1;
        let mut draw = Draw::new(seed, Purpose::Connection, number, met.connections);
        let refused = draw.chance(share);
        (draw, refused)
    }

    /// Returns the round-trip time of the next message from or to this host.
    pub(super) fn round_trip(&mut self, number: u32) -> Duration {
        self.at(number);
        let met = self.met[number as usize].as_mut().expect("just met");
        met.messages = met.messages.wrapping_add(1);
        self.web.round_trip(&met.host, met.messages)
    }

    /// Returns the time to the first byte of this host's next reply.
    pub(super) fn think_time(&mut self, number: u32) -> Duration {
        self.at(number);
        let met = self.met[number as usize].as_mut().expect("just met");
        met.requests = met.requests.wrapping_add(1);
        self.web.think_time(&met.host, met.requests)
    }

    /// Forgets all TLS sessions, as a crawler that restarts does.
    pub(super) fn forget_sessions(&mut self) {
        self.met.iter_mut().flatten().for_each(|met| met.has_session = false);
    }

    /// Records that the crawler knows the address of a host.
    pub(super) fn found(&mut self, number: u32) {
        let host = &self.at(number).host;
        let key = (IpAddr::V4(host.address), host.scheme == Scheme::Https);
        self.by_address.entry(key).or_insert(number);
    }

    /// Returns the host that was looked up first of those at an address that speak TLS (`tls`), or
    /// of those that don't; `None` if none was.
    pub(super) fn behind(&self, address: IpAddr, tls: bool) -> Option<u32> {
        self.by_address.get(&(address, tls)).copied()
    }

    /// Whether two hosts share an address and a scheme.
    pub(super) fn share_address(&mut self, one: u32, other: u32) -> bool {
        let place = |host: &Host| (host.address, host.scheme);
        one == other || place(&self.at(one).host) == place(&self.at(other).host)
    }

    /// Returns how a host's sockets behave.
    pub(super) fn manner(&self, number: u32) -> Manner {
        self.web.hostile_of(number).map_or(Manner::Serve, |kind| kind.spec().manner)
    }

    /// Returns what a request says of who asks, given its head; `None` if the web knows no keys.
    /// The servers have no calendar: a signature is verified at the time that it names.
    pub(super) fn proof(&self, head: &[u8]) -> Option<Proof> {
        self.web.settings().keys.as_ref().map(|keys| keys.proof(head, None))
    }

    /// Returns the steps of a hostile reply to a request for `place`; `None` if the request is
    /// answered normally.
    /// `is_signed` says whether its signature holds.
    pub(super) fn play(&mut self, place: Place, is_signed: bool) -> Option<Rc<[Step]>> {
        if !matches!(place.resource, Resource::Row { .. }) {
            return None;
        }
        let Answer::Play(play) = self.web.answer_at(place, Duration::ZERO) else { return None };
        if let Some(steps) = self.plays.get(&place) {
            return Some(Rc::clone(steps));
        }
        let count = self.asked.entry(place).or_default();
        let asked = std::mem::replace(count, count.saturating_add(1));
        let terms = Terms { signed: is_signed, ..Terms::default() };
        let steps: Rc<[Step]> = wire::script(&self.web, place, play, asked, terms).into();
        if matches!(play, Play::Bomb(_) | Play::BombTwice | Play::Heavy(_) | Play::HugeRobots) {
            self.plays.insert(place, Rc::clone(&steps));
        }
        Some(steps)
    }
}
