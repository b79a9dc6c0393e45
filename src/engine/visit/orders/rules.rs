//! The rules that orders have made: what is paused, blocked or slowed.

use super::Hold;
use crate::engine::command::{Command, Target};
use crate::ground::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// The maximum number of rules of one kind; each prefix is compared with every URL.
const RULES_MAX: usize = 1_000;

/// The longest delay of a slowed host, in milliseconds: 30 days.
const DELAY_MS_MAX: u64 = 30 * 24 * 3_600 * 1_000;

/// All rules in force.
#[derive(Debug, Default)]
pub(super) struct Rules {
    paused: Targets,
    blocked: Targets,
    /// The slowed hosts, by name.
    slowed: BTreeMap<String, Slow>,
    /// Whether there is any rule.
    is_any: bool,
}

/// The rule of a host that is slowed.
#[derive(Clone, Copy, Debug)]
struct Slow {
    delay: Duration,
    /// No visit of the host begins before this time.
    not_before: Instant,
}

/// A set of targets, by kind.
#[derive(Debug, Default)]
struct Targets {
    all: bool,
    servers: BTreeSet<String>,
    hosts: BTreeSet<String>,
    domains: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
    prefixes: BTreeSet<String>,
}

impl Rules {
    /// Returns why a command can't be carried out, or `None` if it can.
    pub(super) fn objection(&self, command: &Command) -> Option<String> {
        let not_there = |verb: &str, target: &Target, set: &Targets| {
            (!set.has(target))
                .then(|| format!("{target} is not {verb}; {verb} now: {}", set.list()))
        };
        let too_many = |set: &Targets| {
            (set.len() >= RULES_MAX).then(|| {
                format!("{RULES_MAX} targets are in force; use a domain instead of its hosts")
            })
        };
        match command {
            Command::Pause { .. } => too_many(&self.paused),
            Command::Block { target: Target::All } => {
                Some("the whole crawl can't be blocked; use pause or stop".to_owned())
            }
            Command::Block { .. } => too_many(&self.blocked),
            Command::Resume { target } => not_there("paused", target, &self.paused),
            Command::Unblock { target } => not_there("blocked", target, &self.blocked),
            Command::Slow { host, delay_ms: 0 } => (!self.slowed.contains_key(host))
                .then(|| format!("{host} is not slowed; write the name as in its URLs")),
            Command::Slow { host, .. } if !is_host(host) => Some(format!(
                "\"{}\" is no host; write its name as in its URLs, without a port",
                host.escape_debug()
            )),
            Command::Slow { delay_ms, .. } if *delay_ms > DELAY_MS_MAX => {
                Some("a delay is at most 30 days; use pause or block".to_owned())
            }
            Command::Slow { .. } if self.slowed.len() >= RULES_MAX => {
                Some(format!("{RULES_MAX} hosts are slowed; raise politeness.delay instead"))
            }
            _ => None,
        }
    }

    /// Carries out a command. Commands of other kinds change nothing.
    pub(super) fn apply(&mut self, command: &Command, now: Instant) {
        match command {
            Command::Pause { target } => self.paused.add(target),
            Command::Resume { target } => self.paused.remove(target),
            Command::Block { target } => self.blocked.add(target),
            Command::Unblock { target } => self.blocked.remove(target),
            Command::Slow { host, delay_ms: 0 } => _ = self.slowed.remove(host),
            Command::Slow { host, delay_ms } => {
                let delay = Duration::from_millis(*delay_ms);
                let not_before = now + delay;
                self.slowed.insert(host.clone(), Slow { delay, not_before });
            }
            _ => return,
        }
        self.is_any = self.paused.len() + self.blocked.len() + self.slowed.len() > 0;
    }

    pub(super) fn is_any(&self) -> bool {
        self.is_any
    }

    pub(super) fn pauses_all(&self) -> bool {
        self.paused.all
    }

    /// Returns whether a server may not be visited now, and why. `address` is `None` as long as it
    /// is not known.
    pub(super) fn hold(
        &self,
        (origin, host): (&str, &str),
        address: Option<IpAddr>,
        now: Instant,
    ) -> Option<Hold> {
        if !self.is_any {
            return None;
        }
        let is_in = |set: &Targets| {
            set.has_server(origin, host) || address.is_some_and(|ip| set.has_address(ip))
        };
        if is_in(&self.blocked) {
            return Some(Hold::Blocked);
        }
        if is_in(&self.paused) {
            return Some(Hold::Paused);
        }
        let until = self.not_before(host)?;
        (until > now).then_some(Hold::Slowed(until))
    }

    /// Returns whether a URL begins with a prefix that is blocked, or else with one that is paused.
    pub(super) fn holds_url(&self, url: &str) -> Option<Hold> {
        if self.blocked.has_url(url) {
            return Some(Hold::Blocked);
        }
        self.paused.has_url(url).then_some(Hold::Paused)
    }

    /// Returns the number of prefixes, which are all compared with a URL.
    pub(super) fn prefixes(&self) -> usize {
        self.paused.prefixes.len() + self.blocked.prefixes.len()
    }

    /// Returns whether prefixes are paused or blocked.
    pub(super) fn has_prefixes(&self) -> bool {
        self.is_any && self.prefixes() > 0
    }

    /// Returns the time before which no visit of `host` begins, or `None` if it is not slowed.
    pub(super) fn not_before(&self, host: &str) -> Option<Instant> {
        self.slowed.get(host).map(|slow| slow.not_before)
    }

    /// Notes that a visit of `host` has ended at `now`. Returns until when the host rests, if it is
    /// slowed.
    pub(super) fn note_visit(&mut self, host: &str, now: Instant) -> Option<Instant> {
        if !self.is_any {
            return None;
        }
        let slow = self.slowed.get_mut(host)?;
        slow.not_before = now + slow.delay;
        Some(slow.not_before)
    }
}

/// Returns whether a text is the name of a host in its canonical form.
fn is_host(name: &str) -> bool {
    let target = format!("host:{name}").parse();
    target.is_ok_and(|target: Target| target == Target::Host(name.to_owned()))
}

impl Targets {
    fn add(&mut self, target: &Target) {
        match target {
            Target::All => self.all = true,
            Target::Server(origin) => _ = self.servers.insert(origin.clone()),
            Target::Host(name) => _ = self.hosts.insert(name.clone()),
            Target::Domain(name) => _ = self.domains.insert(name.clone()),
            Target::Address(ip) => _ = self.addresses.insert(*ip),
            Target::Prefix(url) => _ = self.prefixes.insert(url.clone()),
        }
    }

    fn remove(&mut self, target: &Target) {
        match target {
            Target::All => self.all = false,
            Target::Server(origin) => _ = self.servers.remove(origin),
            Target::Host(name) => _ = self.hosts.remove(name),
            Target::Domain(name) => _ = self.domains.remove(name),
            Target::Address(ip) => _ = self.addresses.remove(ip),
            Target::Prefix(url) => _ = self.prefixes.remove(url),
        }
    }

    fn has(&self, target: &Target) -> bool {
        match target {
            Target::All => self.all,
            Target::Server(origin) => self.servers.contains(origin),
            Target::Host(name) => self.hosts.contains(name),
            Target::Domain(name) => self.domains.contains(name),
            Target::Address(ip) => self.addresses.contains(ip),
            Target::Prefix(url) => self.prefixes.contains(url),
        }
    }

    fn len(&self) -> usize {
        let names = self.servers.len() + self.hosts.len() + self.domains.len();
        usize::from(self.all) + names + self.addresses.len() + self.prefixes.len()
    }

    /// Returns whether the set contains the server itself, its host, or a domain above its host.
    fn has_server(&self, origin: &str, host: &str) -> bool {
        self.hosts.contains(host)
            || self.servers.contains(origin)
            || !self.domains.is_empty() && self.has_domain_of(host)
    }

    fn has_domain_of(&self, host: &str) -> bool {
        let below = host.match_indices('.').map(|(dot, _)| &host[dot + 1..]);
        std::iter::once(host).chain(below).any(|name| self.domains.contains(name))
    }

    fn has_address(&self, ip: IpAddr) -> bool {
        !self.addresses.is_empty() && self.addresses.contains(&ip)
    }

    fn has_url(&self, url: &str) -> bool {
        self.prefixes.iter().any(|prefix| url.starts_with(prefix.as_str()))
    }

    /// Returns the targets as a list for people.
    fn list(&self) -> String {
        let texts = |set: &BTreeSet<String>, kind: fn(String) -> Target| {
            set.iter().map(|name| kind(name.clone())).collect::<Vec<Target>>()
        };
        let mut all: Vec<Target> = self.all.then_some(Target::All).into_iter().collect();
        all.extend(texts(&self.servers, Target::Server));
        all.extend(texts(&self.hosts, Target::Host));
        all.extend(texts(&self.domains, Target::Domain));
        all.extend(self.addresses.iter().map(|ip| Target::Address(*ip)));
        all.extend(texts(&self.prefixes, Target::Prefix));
        match all.len() {
            0 => "nothing".to_owned(),
            _ => all.iter().map(Target::to_string).collect::<Vec<_>>().join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(target: &str) -> Command {
        Command::Pause { target: target.parse().expect("a target") }
    }

    fn hold(rules: &Rules, origin: &str) -> Option<Hold> {
        let (_, host) = origin.split_once("://").expect("an origin");
        let address = "192.0.2.7".parse().ok();
        rules.hold((origin, host.split(':').next().expect("a name")), address, Instant::ZERO)
    }

    #[test]
    fn each_kind_of_target_holds_what_it_names() {
        let cases = [
            ("http://a.test", "http://a.test", true),
            ("http://a.test", "https://a.test", false),
            ("host:a.test", "https://a.test:444", true),
            ("host:a.test", "https://b.a.test", false),
            ("domain:a.test", "http://a.test", true),
            ("domain:a.test", "http://c.b.a.test", true),
            ("domain:a.test", "http://ba.test", false),
            ("address:192.0.2.7", "http://x.test", true),
            ("address:192.0.2.8", "http://x.test", false),
            ("prefix:http://a.test/x", "http://a.test", false),
        ];
        for (target, origin, is_held) in cases {
            let mut rules = Rules::default();
            assert!(!rules.is_any());
            rules.apply(&pause(target), Instant::ZERO);
            assert_eq!(hold(&rules, origin), is_held.then_some(Hold::Paused), "{target} {origin}");
            let target = target.parse().expect("a target");
            assert_eq!(rules.objection(&Command::Resume { target }), None);
        }
    }

    #[test]
    fn commands_that_make_no_sense_are_refused_with_a_reason() {
        let mut rules = Rules::default();
        rules.apply(&pause("b.test"), Instant::ZERO);
        let resume = Command::Resume { target: Target::Host("a.test".to_owned()) };
        let why = rules.objection(&resume).expect("it is not paused");
        assert_eq!(why, "host:a.test is not paused; paused now: host:b.test");
        assert!(rules.objection(&Command::Block { target: Target::All }).is_some());
        let slow = |delay_ms| Command::Slow { host: "a.test".to_owned(), delay_ms };
        assert!(rules.objection(&slow(0)).is_some_and(|why| why.contains("not slowed")));
        assert!(rules.objection(&slow(u64::MAX)).is_some_and(|why| why.contains("30 days")));
        assert_eq!(rules.objection(&slow(1)), None);
        for host in ["A.test", "a.test:80", "http://a.test", "", "b\u{fc}cher.test"] {
            let slow = Command::Slow { host: host.to_owned(), delay_ms: 1 };
            assert!(rules.objection(&slow).is_some_and(|why| why.contains("no host")), "{host}");
        }
        for number in 0..RULES_MAX {
            rules.apply(&pause(&format!("h{number}.test")), Instant::ZERO);
        }
        assert!(rules.objection(&pause("c.test")).is_some_and(|why| why.contains("1000 targets")));
    }

    #[test]
    fn a_slowed_host_rests_after_the_command_and_after_each_visit() {
        let at = |ms: u64| Instant::from_micros(1_000 * ms);
        let mut rules = Rules::default();
        rules.apply(&Command::Slow { host: "a.test".to_owned(), delay_ms: 500 }, at(100));
        let hold = |rules: &Rules, now| rules.hold(("http://a.test", "a.test"), None, now);
        assert_eq!(hold(&rules, at(599)), Some(Hold::Slowed(at(600))));
        assert_eq!(hold(&rules, at(600)), None);
        assert_eq!(rules.note_visit("a.test", at(650)), Some(at(1_150)));
        assert_eq!(rules.note_visit("b.test", at(650)), None);
        rules.apply(&Command::Slow { host: "a.test".to_owned(), delay_ms: 0 }, at(700));
        assert!(!rules.is_any() && hold(&rules, at(700)).is_none());
    }

    #[test]
    fn a_block_goes_before_a_pause() {
        let mut rules = Rules::default();
        rules.apply(&pause("http://a.test/x/"), Instant::ZERO);
        let target: Target = "http://a.test/x/y".parse().expect("a target");
        rules.apply(&Command::Block { target }, Instant::ZERO);
        assert!(rules.has_prefixes());
        let held = ["http://a.test/x/z", "http://a.test/x/yz", "http://a.test/"];
        let holds = held.map(|url| rules.holds_url(url));
        assert_eq!(holds, [Some(Hold::Paused), Some(Hold::Blocked), None]);
    }
}
