//! The simulated network: connections to scripted servers, each way with the same delay.
//!
//! Fault model: what the scripts do (close, reset, silence, refusal); order and content of bytes
//! are kept, as TCP keeps them. Bytes reach the engine in pieces no larger than a segment buffer,
//! cut at places drawn from the seed, so that no reader may count on boundaries.

use crate::engine::contract::ConnId;
use crate::time::Instant;
use crate::web::script::{Play, Player, Script};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// One connection, seen from the server's side.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) conn: ConnId,
    pub(super) host: String,
    pub(super) player: Player,
    /// On the way to the engine.
    pub(super) arriving: VecDeque<Arrival>,
    pub(super) paused: bool,
    /// The server has closed its side.
    pub(super) ended: bool,
}

/// Something that reaches the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Bytes(Vec<u8>),
    End,
    Reset,
}

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

/// All connections, and the servers behind them.
#[derive(Debug)]
pub(super) struct Net {
    script: Script,
    pub(super) links: Vec<Link>,
    pub(super) seen: BTreeMap<String, Seen>,
    pub(super) delay: Duration,
    random: u64,
}

/// Largest piece of bytes that arrives at once.
const PIECE_BYTES_MAX: u64 = 4_096;

impl Net {
    pub(super) fn new(script: Script, delay: Duration, seed: u64) -> Self {
        let seen = BTreeMap::new();
        Self { script, links: Vec::new(), seen, delay, random: seed | 1 }
    }

    /// Whether somebody listens on that host.
    pub(super) fn listens(&self, host: &str) -> bool {
        !self.script.refusing.iter().any(|refusing| refusing == host)
            && self.script.hosts.contains_key(host)
    }

    /// A connection reaches its host.
    pub(super) fn accept(&mut self, conn: ConnId, host: &str) {
        let seen = self.seen.entry(host.to_owned()).or_default();
        let scripts = &self.script.hosts[host];
        let place = seen.connections.min(scripts.len() - 1);
        seen.connections += 1;
        self.links.push(Link {
            conn,
            host: host.to_owned(),
            player: Player::new(&scripts[place]),
            arriving: VecDeque::new(),
            paused: false,
            ended: false,
        });
    }

    pub(super) fn link(&mut self, conn: ConnId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.conn == conn)
    }

    /// The engine closes a connection, or the server's end has reached it.
    pub(super) fn drop_link(&mut self, conn: ConnId) {
        let Some(place) = self.links.iter().position(|link| link.conn == conn) else { return };
        let mut link = self.links.remove(place);
        // What had reached the server and was not waited for counts as asked.
        link.player.play(Instant::FAR);
        self.settle(&link);
    }

    /// Books what the servers of the connections still open have seen.
    pub(super) fn settle_all(&mut self) {
        for link in std::mem::take(&mut self.links) {
            self.settle(&link);
        }
    }

    fn settle(&mut self, link: &Link) {
        let seen = self.seen.get_mut(&link.host).expect("it was accepted");
        seen.requests.extend_from_slice(link.player.requests());
        seen.faults.extend_from_slice(link.player.faults());
    }

    /// Lets a server act; returns when it wants to act again, and whether something is to arrive.
    pub(super) fn act(&mut self, conn: ConnId, now: Instant) -> (Option<Instant>, bool) {
        let mut random = self.random;
        let Some(link) = self.link(conn) else { return (None, false) };
        let mut sent = false;
        let again = loop {
            if link.ended {
                break None;
            }
            match link.player.play(now) {
                Play::Send(bytes) => {
                    for piece in pieces(&bytes, &mut random) {
                        link.arriving.push_back(Arrival::Bytes(piece));
                    }
                    sent = true;
                }
                Play::WaitUntil(until) => break Some(until),
                Play::WaitForBytes => break None,
                end @ (Play::Close | Play::Reset) => {
                    let reset = end == Play::Reset;
                    link.arriving.push_back(if reset { Arrival::Reset } else { Arrival::End });
                    link.ended = true;
                    sent = true;
                }
            }
        };
        self.random = random;
        (again, sent)
    }
}

fn pieces(bytes: &[u8], random: &mut u64) -> Vec<Vec<u8>> {
    let (mut rest, mut pieces) = (bytes, Vec::new());
    while !rest.is_empty() {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        let cut = usize::try_from(*random % PIECE_BYTES_MAX).expect("small") + 1;
        let (piece, after) = rest.split_at(cut.min(rest.len()));
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces
}
