//! The history of the crawler's actions and their times: always as a hash, as text on request.
//!
//! Two runs with one seed have the same history, byte for byte.

use crate::engine::contract::{Action, Families, Job, Load};
use crate::ground::time::Instant;
use std::fmt::Write;
use std::net::IpAddr;

/// All actions of the crawler so far.
#[derive(Debug)]
pub(super) struct History {
    hash: u64,
    text: Option<String>,
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl History {
    pub(super) fn new() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, text: None }
    }

    /// Keeps all further actions as text, in addition to the hash.
    pub(super) fn record(&mut self) {
        self.text.get_or_insert_default();
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or("")
    }

    /// Adds an action at the time `at`; `bytes` are what it sends, empty unless it is a send.
    pub(super) fn note(&mut self, at: Instant, action: &Action, bytes: &[u8]) {
        self.number(at.as_micros());
        self.action(action);
        self.bytes(bytes);
        if let Some(text) = &mut self.text {
            let _ = write!(text, "{at} {action:?}");
            if !bytes.is_empty() {
                let _ = write!(text, " {:?}", String::from_utf8_lossy(bytes));
            }
            text.push('\n');
        }
    }

    /// Adds a report of the core's load at the time `at`: an input that decides the order of a
    /// crawl, and that hangs on what the crawl has done before.
    pub(super) fn note_load(&mut self, at: Instant, load: &Load) {
        let Load { busy_milli, page, connection } = *load;
        for number in [at.as_micros(), busy_milli.into()] {
            self.number(number);
        }
        self.bytes(format!("{page:?} {connection:?}").as_bytes());
        if let Some(text) = &mut self.text {
            let _ = writeln!(text, "{at} {load:?}");
        }
    }

    fn action(&mut self, action: &Action) {
        let kind = match action {
            Action::Resolve { .. } => 1,
            Action::Connect { .. } => 2,
            Action::Send(_) => 3,
            Action::Pause(_) => 4,
            Action::Resume(_) => 5,
            Action::Close(_) => 6,
            Action::Work(_) => 7,
            Action::Score(_) => 8,
            Action::Queue(_) => 9,
        };
        self.number(kind);
        match action {
            Action::Resolve { lookup, name, families } => {
                self.number(u64::from(lookup.0));
                self.bytes(name.as_bytes());
                self.number(match families {
                    Families::Ipv4ThenIpv6 => 0,
                    Families::Ipv6ThenIpv4 => 1,
                    Families::Ipv4 => 2,
                    Families::Ipv6 => 3,
                });
            }
            Action::Connect { conn, address, tls } => {
                self.number(u64::from(conn.slot) << 32 | u64::from(conn.generation));
                match address.ip() {
                    IpAddr::V4(ip) => self.number(u64::from(ip.to_bits())),
                    IpAddr::V6(ip) => self.bytes(&ip.octets()),
                }
                self.number(u64::from(address.port()));
                self.bytes(tls.as_deref().unwrap_or("").as_bytes());
            }
            Action::Send(conn)
            | Action::Pause(conn)
            | Action::Resume(conn)
            | Action::Close(conn) => {
                self.number(u64::from(conn.slot) << 32 | u64::from(conn.generation));
            }
            Action::Work(Job::Store(job)) => self.number(job.ticket),
            Action::Work(Job::State(_)) => self.number(1),
            Action::Work(Job::Seen(_)) => self.number(2),
            Action::Work(Job::Frontier(_)) => self.number(3),
            Action::Work(Job::Commands(_)) => self.number(4),
            Action::Work(Job::List(_)) => self.number(u64::MAX - 1),
            Action::Work(Job::Snapshot(_)) => self.number(u64::MAX),
            Action::Work(Job::Write(job)) => self.number(5 + job.captures() as u64),
            Action::Score(page) => {
                self.number(page.id.0);
                self.bytes(page.text.as_bytes());
            }
            Action::Queue(request) => self.bytes(format!("{request:?}").as_bytes()),
        }
    }

    fn number(&mut self, number: u64) {
        self.hash = (self.hash.rotate_left(23) ^ number).wrapping_mul(FACTOR);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.number(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.number(u64::from_le_bytes(last));
    }
}
