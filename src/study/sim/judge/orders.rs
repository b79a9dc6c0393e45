//! The law `orders`: no request is sent against a command of the operator.
//!
//! The judge compares names and times by its own code, and only with what it knows for certain: a
//! command that was given just before a crash may have been lost with it, so its target is no
//! longer judged.

use super::{Captures, Instant, Judge};
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
    /// Failed pages that may be requested once more, because of a revival.
    reopened: Set<Place>,
    /// Pages that were reopened and then answered in the current process, and whether an earlier
    /// reply to each is sure to be kept.
    retried: Map<Place, bool>,
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

    /// Whether a page that was answered may be requested once more, because of a revival.
    pub(super) fn is_reopened(&self, place: Place) -> bool {
        self.reopened.contains(&place)
    }

    /// Takes in that a page was answered, so that a revival before this no longer allows another
    /// request for it. `was_kept`: an earlier reply is sure to be kept.
    pub(super) fn retried(&mut self, place: Place, was_kept: bool) {
        if self.reopened.remove(&place) {
            self.retried.insert(place, was_kept);
        }
    }

    /// Takes in that the last reply for a page may not have been kept: if that reply answered the
    /// request that a revival allows, another one is allowed. Returns whether an earlier reply is
    /// sure to be kept.
    pub(super) fn retry_lost(&mut self, place: Place) -> bool {
        let retried = self.retried.remove(&place);
        if retried.is_some() {
            self.reopened.insert(place);
        }
        retried.unwrap_or(false)
    }

    /// Begins another process. If the previous one may have lost something, pages whose capture
    /// after a revival is not in the archive are requested again.
    pub(super) fn restart(&mut self, is_clean: bool, captures: Option<&Captures>) {
        let retried = std::mem::take(&mut self.retried);
        let count =
            |place: &Place| captures.and_then(|known| known.get(place)).copied().unwrap_or(0);
        let is_lost = |place: &Place| count(place) < 1 + self.captures_more(*place);
        let lost: Vec<Place> = retried.into_keys().filter(|it| !is_clean && is_lost(it)).collect();
        self.reopened.extend(lost);
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
                self.visits.asked.clear();
                for place in &orders.failed {
                    *orders.again.entry(*place).or_default() += 1;
                }
                orders.reopened.extend(&orders.failed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::contract::ConnId;
    use crate::study::sim::Observation;
    use crate::study::sim::judge::asking::tests::laws;
    use crate::study::web::{Ports, Resource, Settings};

    const FAILED: Place = Place { host: 0, resource: Resource::Page(1) };

    fn judge() -> Judge {
        let settings = Settings { hosts: 1, pages: 9, ..Settings::default() };
        Judge::new(&Web::new(settings, Ports::default()), laws())
    }

    /// Observes a request for the page on a new connection, and a reply that says that it is gone.
    fn ask(judge: &mut Judge, slot: u32) {
        let (at, host, place) = (Instant::ZERO, FAILED.host, Some(FAILED));
        let conn = ConnId { slot, generation: 0 };
        judge.observe(at, &Observation::Connecting { conn, host });
        let (path, authorization) = ("/".into(), "".into());
        let (unanswered, proof) = (0, None);
        let seen =
            Observation::Request { conn, host, place, path, unanswered, authorization, proof };
        judge.observe(at, &seen);
        let (status, content, whole) = (404, 1, true);
        judge.observe(at, &Observation::Reply { conn, host, place, status, content, whole });
        judge.observe(at, &Observation::Closed { conn, host, by_crawler: true });
    }

    fn broken(judge: &Judge) -> Vec<&'static str> {
        judge.broken.iter().map(|broken| broken.law).collect()
    }

    /// A page that a revival may request again must still be in the archive, for each of its
    /// replies at most once.
    #[test]
    fn a_revival_waives_no_record() {
        for (captures, laws) in [(0, &["records"][..]), (1, &[]), (2, &[]), (3, &["records"])] {
            let mut judge = judge();
            ask(&mut judge, 1);
            judge.command(Instant::ZERO, 1, &Command::Revive);
            let archive = (captures > 0).then_some((FAILED, captures));
            judge.check_archive(Instant::ZERO, &archive.into_iter().collect());
            assert_eq!(broken(&judge), laws, "{captures} captures");
        }
    }

    #[test]
    fn a_revival_allows_one_request() {
        let mut judge = judge();
        ask(&mut judge, 1);
        judge.command(Instant::ZERO, 1, &Command::Revive);
        ask(&mut judge, 2);
        assert_eq!(broken(&judge), [""; 0]);
        ask(&mut judge, 3);
        assert_eq!(broken(&judge), ["once", "tries"]);
    }

    /// If the reply after a revival may be lost in a crash, the page may be requested again.
    #[test]
    fn a_crash_may_undo_a_retry() {
        for (captures, laws) in [(1, &[][..]), (2, &["once"])] {
            let mut judge = judge();
            ask(&mut judge, 1);
            judge.command(Instant::ZERO, 1, &Command::Revive);
            ask(&mut judge, 2);
            let archive: Captures = [(FAILED, captures)].into_iter().collect();
            judge.restart(Instant::ZERO, super::super::End::Failed, Some((&archive, &archive)));
            ask(&mut judge, 3);
            assert_eq!(broken(&judge), laws, "{captures} captures");
        }
    }
}
