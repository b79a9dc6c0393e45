//! The servers of a script: what each sends on its connections, as the script's text says.
//!
//! The round-trip time to every host is 20 ms. What the servers send arrives in pieces of at most 4
//! KiB, cut at places drawn from the seed, so that no reader may rely on boundaries; order and
//! content are kept.

use super::draw::{Draw, Purpose};
use super::pipe::{End, Parcel};
use super::server::Doing;
use crate::ground::time::Instant;
use crate::study::web::script::{Play, Player, Script};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// What a host of a script has observed: its connections and its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The number of connections accepted.
    pub connections: usize,
    /// The request targets, in order.
    pub requests: Vec<String>,
    /// Deviations from what the script expects.
    pub faults: Vec<String>,
}

/// All servers of a script.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) script: Script,
    pub(super) seen: BTreeMap<String, Seen>,
    /// The number of look-ups so far, by name.
    pub(super) lookups: BTreeMap<String, usize>,
    /// Hosts by address; a host gets its address when it is first asked for.
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

/// The round-trip time to every host of a script; a look-up takes half of it.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(20);
/// The largest piece that arrives at once, in bytes.
const PIECE_BYTES_MAX: u64 = 4_096;

impl Scripts {
    pub(super) fn new(script: Script, seed: u64) -> Self {
        let cuts = Draw::new(seed, Purpose::Cuts, 0, 0);
        let (seen, lookups, addresses) = Default::default();
        Self { script, seen, lookups, addresses, cuts }
    }

    /// Returns the address of a host: each has its own.
    pub(super) fn address_of(&mut self, host: &str) -> IpAddr {
        if let Some((address, _)) = self.addresses.iter().find(|(_, known)| *known == host) {
            return *address;
        }
        let next = u8::try_from(self.addresses.len() + 1).expect("a script has few hosts");
        let address = IpAddr::V4(Ipv4Addr::new(127, 1, 0, next));
        self.addresses.insert(address, host.to_owned());
        address
    }

    /// Returns the host that listens at an address; `None` if the address is no host's, or the host
    /// refuses connections.
    pub(super) fn listening(&self, address: IpAddr) -> Option<&str> {
        let host = self.addresses.get(&address)?;
        let refuses = self.script.refusing.contains(host);
        (!refuses && self.script.hosts.contains_key(host)).then_some(host)
    }

    /// Accepts a connection to `host`, whose server follows the script's text for its next
    /// connection; further connections repeat the last text.
    pub(super) fn accept(&mut self, host: &str) -> Scripted {
        let seen = self.seen.entry(host.to_owned()).or_default();
        let scripts = &self.script.hosts[host];
        let place = seen.connections.min(scripts.len() - 1);
        seen.connections += 1;
        let player = Player::new(&scripts[place]);
        Scripted { host: host.to_owned(), player, pieces: VecDeque::new() }
    }

    /// Records what a server has seen on a connection that has ended. `to_the_end`: whether
    /// requests that arrived and that the script did not wait for count, too.
    pub(super) fn settle(&mut self, scripted: &mut Scripted, to_the_end: bool) {
        if to_the_end {
            // Requests that arrived but that the script did not wait for are recorded, too.
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

    /// Returns what the server of this connection does now.
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
