//! The servers of a script: what each says on its connections, played as text says.
//!
//! All hosts are 20 ms away there and back. What they send arrives in pieces no larger than a
//! segment buffer, cut at places drawn from the seed, so that no reader may count on boundaries;
//! order and content are kept.

use super::draw::{Draw, Purpose};
use super::pipe::{End, Parcel};
use super::server::Doing;
use crate::ground::time::Instant;
use crate::study::web::script::{Play, Player, Script};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// How often a host was connected to, and what it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Connections accepted.
    pub connections: usize,
    /// Targets asked for, in order.
    pub requests: Vec<String>,
    /// What went otherwise than the script says.
    pub faults: Vec<String>,
}

/// All servers of a script.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) script: Script,
    pub(super) seen: BTreeMap<String, Seen>,
    /// Look-ups so far, by name.
    pub(super) lookups: BTreeMap<String, usize>,
    /// Hosts by address, as they are first asked for.
    addresses: BTreeMap<IpAddr, String>,
    cuts: Draw,
}

/// One connection of a scripted server.
#[derive(Debug)]
pub(super) struct Scripted {
    host: String,
    player: Player,
    pieces: VecDeque<Vec<u8>>,
}

/// There and back; a look-up takes half of it.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(20);
/// Largest piece of bytes that arrives at once.
const PIECE_BYTES_MAX: u64 = 4_096;

impl Scripts {
    pub(super) fn new(script: Script, seed: u64) -> Self {
        let cuts = Draw::new(seed, Purpose::Cuts, 0, 0);
        let (seen, lookups, addresses) = Default::default();
        Self { script, seen, lookups, addresses, cuts }
    }

    /// Every host has an address of its own.
    pub(super) fn address_of(&mut self, host: &str) -> IpAddr {
        if let Some((address, _)) = self.addresses.iter().find(|(_, known)| *known == host) {
            return *address;
        }
        let next = u8::try_from(self.addresses.len() + 1).expect("a script has few hosts");
        let address = IpAddr::V4(Ipv4Addr::new(127, 1, 0, next));
        self.addresses.insert(address, host.to_owned());
        address
    }

    /// The host that listens at an address.
    pub(super) fn listening(&self, address: IpAddr) -> Option<&str> {
        let host = self.addresses.get(&address)?;
        let refuses = self.script.refusing.contains(host);
        (!refuses && self.script.hosts.contains_key(host)).then_some(host)
    }

    /// A connection comes to stand.
    pub(super) fn accept(&mut self, host: &str) -> Scripted {
        let seen = self.seen.entry(host.to_owned()).or_default();
        let scripts = &self.script.hosts[host];
        let place = seen.connections.min(scripts.len() - 1);
        seen.connections += 1;
        let player = Player::new(&scripts[place]);
        Scripted { host: host.to_owned(), player, pieces: VecDeque::new() }
    }

    /// Books what a server has seen on a connection that is over.
    pub(super) fn settle(&mut self, scripted: &mut Scripted, to_the_end: bool) {
        if to_the_end {
            // What had reached the server and was not waited for counts as asked.
            scripted.player.play(Instant::FAR);
        }
        let seen = self.seen.get_mut(&scripted.host).expect("it was accepted");
        seen.requests.extend_from_slice(scripted.player.requests());
        seen.faults.extend_from_slice(scripted.player.faults());
    }

    fn cut(&mut self, bytes: &[u8], pieces: &mut VecDeque<Vec<u8>>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let cut = usize::try_from(self.cuts.below(PIECE_BYTES_MAX)).expect("small") + 1;
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            pieces.push_back(piece.to_vec());
            rest = after;
        }
    }
}

impl Scripted {
    pub(super) fn received(&mut self, bytes: &[u8]) {
        self.player.received(bytes);
    }

    /// What the server does now.
    pub(super) fn act(&mut self, now: Instant, scripts: &mut Scripts) -> Doing {
        loop {
            if let Some(bytes) = self.pieces.pop_front() {
                let nominal = bytes.len() as u64;
                return Doing::Send(Parcel { bytes, nominal, head: nominal, ends_reply: false });
            }
            match self.player.play(now) {
                Play::Send(bytes) => scripts.cut(&bytes, &mut self.pieces),
                Play::WaitUntil(until) => return Doing::WaitUntil(until),
                Play::WaitForBytes => return Doing::Wait,
                Play::Close => return Doing::Ends(End::InOrder),
                Play::Reset => return Doing::Ends(End::Reset),
            }
        }
    }
}
