//! The law `orders`: no request is sent against a command of the operator.
//!
//! The judge compares names and times by its own code, and only with what it knows for certain: a
//! command that was given just before a crash may have been lost with it, so its target is no
//! longer judged.

use super::{Instant, Judge};
use crate::engine::contract::{Command, Target};
use crate::ground::map::{Map, Set};
use crate::study::web::{Place, Web};
use std::net::IpAddr;
use std::time::Duration;

/// What the judge knows of the operator's commands.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// For each host: its origin, its name and its address.
    hosts: Vec<(String, String, IpAddr)>,
    given: Vec<Given>,
    /// Whether anything was blocked at any time; then pages behind it are missing, too.
    pub(super) has_blocked: bool,
    /// Pages that were answered with an error status. Those that are seeds count as failed, and are
    /// requested again at each revival.
    failed: Set<Place>,
    /// How often each failed page may have been requested again.
    again: Map<Place, u32>,
}

/// A command in force.
#[derive(Debug)]
struct Given {
    number: u64,
    since: Instant,
    kind: Kind,
    target: Target,
    /// When the last request to a slowed host was sent.
    last: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Paused,
    Blocked,
    Slowed(Duration),
}

impl Orders {
    pub(super) fn of(web: &Web) -> Self {
        let known = |number| {
            let host = web.host(number);
            (web.origin(number), host.name.clone(), IpAddr::V4(host.address))
        };
        Self { hosts: (0..web.hosts()).map(known).collect(), ..Self::default() }
    }

    /// Takes in that a page was answered with this status.
    pub(super) fn note_status(&mut self, place: Place, status: u16) {
        if status >= 400 {
            self.failed.insert(place);
        }
    }

    /// Returns how many more captures of a page than usual may be in the archive.
    pub(super) fn captures_more(&self, place: Place) -> u32 {
        self.again.get(&place).copied().unwrap_or(0)
    }

    /// Returns whether a target includes a URL of a host.
    fn touches(&self, target: &Target, host: u32) -> bool {
        match target {
            Target::Prefix(prefix) => {
                let origin = self.hosts.get(host as usize).map(|(origin, ..)| format!("{origin}/"));
                origin.is_some_and(|origin| prefix.starts_with(&origin))
            }
            _ => self.applies(target, host, "/"),
        }
    }

    fn applies(&self, target: &Target, host: u32, path: &str) -> bool {
        let Some((origin, name, address)) = self.hosts.get(host as usize) else { return false };
        match target {
            Target::All => true,
            Target::Server(server) => server == origin,
            Target::Host(known) => known == name,
            Target::Domain(domain) => format!(".{name}").ends_with(&format!(".{domain}")),
            Target::Address(ip) => ip == address,
            // The robots.txt of a server is requested although a part of its URLs is paused.
            Target::Prefix(prefix) => {
                path != "/robots.txt" && format!("{origin}{path}").starts_with(prefix)
            }
        }
    }
}

impl Judge {
    /// Takes in that the engine has carried out a command, with the number that it was given.
    pub fn command(&mut self, at: Instant, number: u64, command: &Command) {
        let orders = &self.orders;
        let lines = self.conns.values_mut();
        let touched = lines.filter(|line| match command {
            Command::Pause { target } | Command::Block { target } => {
                orders.touches(target, line.host)
            }
            Command::Slow { host, .. } => orders.touches(&Target::Host(host.clone()), line.host),
            _ => false,
        });
        // A batch that may not be compared is discarded, and requested again later.
        touched.for_each(|line| line.batch.note_full());
        let orders = &mut self.orders;
        let mut give = |kind, target: Target| {
            orders.given.push(Given { number, since: at, kind, target, last: None });
        };
        match command {
            Command::Pause { target } => give(Kind::Paused, target.clone()),
            Command::Block { target } => {
                give(Kind::Blocked, target.clone());
                orders.has_blocked = true;
            }
            Command::Slow { host, delay_ms } => {
                let slowed = Target::Host(host.clone());
                orders
                    .given
                    .retain(|one| !(matches!(one.kind, Kind::Slowed(_)) && one.target == slowed));
                if *delay_ms > 0 {
                    let kind = Kind::Slowed(Duration::from_millis(*delay_ms));
                    orders.given.push(Given {
                        number,
                        since: at,
                        kind,
                        target: slowed,
                        last: None,
                    });
                }
            }
            Command::Resume { target } => {
                orders.given.retain(|one| !(one.kind == Kind::Paused && one.target == *target));
            }
            Command::Unblock { target } => {
                orders.given.retain(|one| !(one.kind == Kind::Blocked && one.target == *target));
            }
            // Servers that were given up and seeds that failed are tried again.
            Command::Revive => {
                self.asked.clear();
                for place in &orders.failed {
                    *orders.again.entry(*place).or_default() += 1;
                    if self.answered.remove(place) {
                        self.doubtful.insert(*place);
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes in that a process has ended, and that the first `durable` commands must survive it.
    /// Targets of later ones are no longer judged.
    pub fn keep_commands(&mut self, durable: u64, later: &[Command]) {
        let given = &mut self.orders.given;
        given.retain(|one| one.number <= durable);
        for command in later {
            let target = match command {
                Command::Pause { target }
                | Command::Resume { target }
                | Command::Block { target }
                | Command::Unblock { target } => target.clone(),
                Command::Slow { host, .. } => Target::Host(host.clone()),
                _ => continue,
            };
            given.retain(|one| one.target != target);
        }
        given.iter_mut().for_each(|one| one.last = None);
    }

    /// Checks a request that was sent at `sent` against all commands in force.
    pub(super) fn judge_orders(&mut self, sent: Instant, host: u32, path: &str, named: &str) {
        let mut broken = Vec::new();
        let mut given = std::mem::take(&mut self.orders.given);
        for one in given.iter_mut().filter(|one| one.since < sent) {
            if !self.orders.applies(&one.target, host, path) {
                continue;
            }
            match one.kind {
                Kind::Paused | Kind::Blocked => broken.push(format!(
                    "{named} was requested at {sent}: {} is {:?} since {}",
                    one.target, one.kind, one.since
                )),
                Kind::Slowed(delay) => {
                    let last = one.last.replace(sent).unwrap_or(one.since);
                    if sent.since(last) < delay {
                        broken.push(format!("{named}: {:?} of {delay:?}", sent.since(last)));
                    }
                }
            }
        }
        self.orders.given = given;
        broken.into_iter().for_each(|how| self.report("orders", sent, how));
    }
}
