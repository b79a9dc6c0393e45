//! The hosts of a web as they run: their traits drawn once, and how often each was met.
//!
//! Cost: a draw of all traits at the first meeting; some 300 bytes a host.

use super::draw::{Draw, Purpose};
use super::flow::Line;
use super::settings::{Affected, Away, Faults, Outage, Settings};
use crate::ground::map::Map;
use crate::ground::time::Instant;
use crate::study::web::wire::{self, Step, Terms};
use crate::study::web::{Answer, Host, Manner, Place, Play, Resource, Scheme, Web};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// All hosts.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) web: Arc<Web>,
    seed: u64,
    faults: Faults,
    outages: Vec<Outage>,
    first_bytes: u64,
    max_bytes: u64,
    met: Vec<Option<Box<Met>>>,
    /// Whoever was looked up first behind an address, by whether it speaks TLS.
    by_address: Map<(IpAddr, bool), u32>,
    /// How often a resource was asked for, of plays that count.
    asked: Map<Place, u32>,
    /// Plays that are costly to make.
    plays: Map<Place, Rc<[Step]>>,
}

/// One host that somebody has asked for.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) host: Host,
    pub(super) line: Line,
    /// A session with it can be resumed.
    pub(super) greeted: bool,
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

    /// The host of this number.
    pub(super) fn at(&mut self, number: u32) -> &mut Met {
        let (first_bytes, max_bytes) = (self.first_bytes, self.max_bytes);
        self.met[number as usize].get_or_insert_with(|| {
            let host = self.web.host(number);
            let line = Line { first_bytes, max_bytes, rate: host.rate };
            Box::new(Met {
                host,
                line,
                greeted: false,
                connections: 0,
                lookups: 0,
                messages: 0,
                requests: 0,
            })
        })
    }

    /// Faults as they are now.
    pub(super) fn faults(&self, now: Instant) -> Faults {
        let is_over = |until: Duration| now.since(Instant::ZERO) >= until;
        if self.faults.until.is_some_and(is_over) { Faults::default() } else { self.faults }
    }

    /// How a host is away now, if it is.
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

    /// Whether what is on its way from or to a host is lost now.
    pub(super) fn loses_all(&self, number: u32, now: Instant) -> bool {
        self.away(number, now).is_some_and(|how| !how.is_of_names())
    }

    /// The draws of a look-up of this host.
    pub(super) fn lookup(&mut self, number: u32) -> Draw {
        let seed = self.seed;
        let met = self.at(number);
        met.lookups += 1;
        Draw::new(seed, Purpose::Lookup, number, met.lookups)
    }

    /// The draws of a new connection to this host, of which the first says whether it is refused.
    pub(super) fn connection(&mut self, number: u32, now: Instant) -> (Draw, bool) {
        let (seed, share) = (self.seed, self.faults(now).refusals);
        let met = self.at(number);
        met.connections += 1;
        let mut draw = Draw::new(seed, Purpose::Connection, number, met.connections);
        let refused = draw.chance(share);
        (draw, refused)
    }

    /// Time there and back for the next message from or to this host.
    pub(super) fn round_trip(&mut self, number: u32) -> Duration {
        self.at(number);
        let met = self.met[number as usize].as_mut().expect("just met");
        met.messages = met.messages.wrapping_add(1);
        self.web.round_trip(&met.host, met.messages)
    }

    /// Time to the first byte of the next reply of this host.
    pub(super) fn think_time(&mut self, number: u32) -> Duration {
        self.at(number);
        let met = self.met[number as usize].as_mut().expect("just met");
        met.requests = met.requests.wrapping_add(1);
        self.web.think_time(&met.host, met.requests)
    }

    /// The crawler has lost its sessions.
    pub(super) fn forget_sessions(&mut self) {
        self.met.iter_mut().flatten().for_each(|met| met.greeted = false);
    }

    /// The crawler has learnt where a host is.
    pub(super) fn found(&mut self, number: u32) {
        let host = &self.at(number).host;
        let key = (IpAddr::V4(host.address), host.scheme == Scheme::Https);
        self.by_address.entry(key).or_insert(number);
    }

    /// The first host found behind an address.
    pub(super) fn behind(&self, address: IpAddr, tls: bool) -> Option<u32> {
        self.by_address.get(&(address, tls)).copied()
    }

    /// Whether two hosts are served by one machine in one way.
    pub(super) fn share_address(&mut self, one: u32, other: u32) -> bool {
        let place = |host: &Host| (host.address, host.scheme);
        one == other || place(&self.at(one).host) == place(&self.at(other).host)
    }

    /// How a host's sockets behave.
    pub(super) fn manner(&self, number: u32) -> Manner {
        self.web.hostile_of(number).map_or(Manner::Serve, |kind| kind.spec().manner)
    }

    /// What is played when a resource is asked for; `None`: it is answered.
    pub(super) fn play(&mut self, place: Place) -> Option<Rc<[Step]>> {
        if !matches!(place.resource, Resource::Row { .. }) {
            return None;
        }
        let Answer::Play(play) = self.web.answer_at(place) else { return None };
        if let Some(steps) = self.plays.get(&place) {
            return Some(Rc::clone(steps));
        }
        let count = self.asked.entry(place).or_default();
        let asked = std::mem::replace(count, count.saturating_add(1));
        let steps: Rc<[Step]> =
            wire::script(&self.web, place, play, asked, Terms::default()).into();
        if matches!(play, Play::Bomb(_) | Play::BombTwice | Play::Heavy(_) | Play::HugeRobots) {
            self.plays.insert(place, Rc::clone(&steps));
        }
        Some(steps)
    }
}
