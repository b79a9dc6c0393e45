//! The DNS cache of a crawl, and the list of those that wait for each name.
//!
//! Laws: only one look-up is in flight for a name, however many wait for it; at most the configured
//! number of look-ups is in flight; answers, including negative ones, are kept for their time to
//! live, within limits. This module sends no queries: the world takes the names to look up from
//! [`Names::next_lookup`].
//! Cost: one hash probe for a request; memory for `names_max` names.

pub mod address;

use crate::ground::map::Map;
use crate::ground::time::Instant;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

/// The settings of name resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The minimum time for which an answer is kept, even if its time to live is shorter.
    pub ttl_min: Duration,
    /// The maximum time for which an answer is kept, even if its time to live is longer.
    pub ttl_max: Duration,
    /// The time for which the answers "no such name" and "no address" are kept.
    pub negative_ttl: Duration,
    /// The time for which a timeout or a failed name server is kept before the name is looked up
    /// again.
    pub failure_ttl: Duration,
    /// The maximum number of look-ups in flight.
    pub in_flight_max: usize,
    /// The maximum number of names in the cache. Beyond it the oldest answer is evicted.
    pub names_max: usize,
    /// Which address families are looked up, and which is tried first.
    pub families: Families,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ttl_min: Duration::from_secs(60),
            ttl_max: Duration::from_secs(24 * 3_600),
            negative_ttl: Duration::from_secs(600),
            failure_ttl: Duration::from_secs(30),
            in_flight_max: 1_000,
            names_max: 1_000_000,
            families: Families::Ipv4ThenIpv6,
        }
    }
}

/// The address families that are looked up, and the order in which addresses are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Families {
    /// Both are looked up; IPv4 is tried first, IPv6 if no IPv4 address works.
    #[default]
    Ipv4ThenIpv6,
    /// Both are looked up; IPv6 is tried first, IPv4 if no IPv6 address works.
    Ipv6ThenIpv4,
    /// Only A records (IPv4) are looked up.
    Ipv4,
    /// Only AAAA records (IPv6) are looked up.
    Ipv6,
}

/// The addresses of a name, in the order in which they are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The addresses; never empty.
    pub addresses: SmallVec<[IpAddr; 4]>,
    /// The shortest time to live of the DNS records.
    pub ttl: Duration,
}

/// The reason why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NameFailure {
    /// NXDOMAIN: the name does not exist.
    NoSuchName,
    /// The name exists, but has no address.
    NoAddress,
    /// There was no answer in time.
    TimedOut,
    /// The name server refused, failed (SERVFAIL), or is unreachable.
    ServerFailed,
    /// The answer is malformed, or the name can't be looked up.
    Malformed,
}

/// The DNS cache, and the names that are being looked up. A waiter is identified by a number that
/// the engine chooses.
#[derive(Debug)]
pub struct Names {
    settings: Settings,
    entries: Map<Box<str>, Entry>,
    /// The names with an answer, oldest answer first, which is the order of eviction.
    ages: VecDeque<(Box<str>, u64)>,
    waiting: Map<u32, (Box<str>, Vec<u32>)>,
    /// The number of waiters for all names that are being looked up or queued.
    waiters: usize,
    next_lookup: u32,
    sequence: u64,
    /// The names that are queued because the maximum number of look-ups is in flight.
    line: VecDeque<Box<str>>,
}

#[derive(Debug)]
enum Entry {
    Known { answer: Result<Answer, NameFailure>, until: Instant, sequence: u64 },
    Asked { lookup: u32 },
    InLine { waiters: Vec<u32> },
}

/// The result of a request for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// The answer is known now: the addresses, or the reason why there are none.
    Now(Result<Answer, NameFailure>),
    /// The answer comes later: [`Names::answered`] will then return the waiter.
    Later,
}

impl Names {
    /// Creates an empty cache.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            entries: Map::default(),
            ages: VecDeque::new(),
            waiting: Map::default(),
            waiters: 0,
            next_lookup: 0,
            sequence: 0,
            line: VecDeque::new(),
        }
    }

    /// Returns the address families that every look-up asks for.
    pub fn families(&self) -> Families {
        self.settings.families
    }

    /// Requests the addresses of `name` for `waiter`. An IP address as the name is its own answer.
    pub fn ask(&mut self, name: &str, waiter: u32, now: Instant) -> Known {
        if let Some(address) = literal(name) {
            let addresses = smallvec::smallvec![address];
            return Known::Now(Ok(Answer { addresses, ttl: self.settings.ttl_max }));
        }
        match self.entries.get_mut(name) {
            Some(Entry::Known { answer, until, .. }) if *until > now => {
                return Known::Now(answer.clone());
            }
            Some(Entry::Asked { lookup }) => {
                let (_, waiters) = self.waiting.get_mut(lookup).expect("asked names have waiters");
                waiters.push(waiter);
            }
            Some(Entry::InLine { waiters }) => waiters.push(waiter),
            Some(Entry::Known { .. }) | None => {
                self.entries.insert(name.into(), Entry::InLine { waiters: vec![waiter] });
                self.line.push_back(name.into());
            }
        }
        self.waiters += 1;
        Known::Later
    }

    /// Returns whether a name is queued and may be looked up now.
    pub fn can_ask(&self) -> bool {
        !self.line.is_empty() && self.waiting.len() < self.settings.in_flight_max
    }

    /// Returns the number of the next look-up and the name to look up; `None` if no name is queued
    /// or the maximum number of look-ups is in flight.
    pub fn next_lookup(&mut self) -> Option<(u32, Box<str>)> {
        if !self.can_ask() {
            return None;
        }
        let name = self.line.pop_front()?;
        let lookup = self.next_lookup;
        self.next_lookup = self.next_lookup.wrapping_add(1);
        let entry = self.entries.insert(name.clone(), Entry::Asked { lookup });
        let Some(Entry::InLine { waiters }) = entry else {
            unreachable!("names in line are entered as such");
        };
        self.waiting.insert(lookup, (name.clone(), waiters));
        Some((lookup, name))
    }

    /// Stores the answer of the look-up with this number, and returns its waiters. An answer to an
    /// unknown look-up is dropped.
    pub fn answered(
        &mut self,
        lookup: u32,
        answer: &Result<Answer, NameFailure>,
        now: Instant,
    ) -> Vec<u32> {
        let Some((name, waiters)) = self.waiting.remove(&lookup) else {
            return Vec::new();
        };
        self.waiters -= waiters.len();
        self.sequence += 1;
        let until = now + self.keep_for(answer);
        let known = Entry::Known { answer: answer.clone(), until, sequence: self.sequence };
        self.entries.insert(name.clone(), known);
        self.ages.push_back((name, self.sequence));
        self.trim();
        waiters
    }

    /// Lets the stored answer for a name expire at `at` or earlier, because it may be wrong.
    pub fn expire_by(&mut self, name: &str, at: Instant) {
        if let Some(Entry::Known { until, .. }) = self.entries.get_mut(name) {
            *until = (*until).min(at);
        }
    }

    /// Returns the number of waiters for all names.
    pub fn waiters(&self) -> usize {
        self.waiters
    }

    /// Returns the number of look-ups in flight.
    pub fn in_flight(&self) -> usize {
        self.waiting.len()
    }

    fn keep_for(&self, answer: &Result<Answer, NameFailure>) -> Duration {
        let Settings { ttl_min, ttl_max, negative_ttl, failure_ttl, .. } = self.settings;
        match answer {
            Ok(answer) => answer.ttl.max(ttl_min).min(ttl_max),
            Err(NameFailure::NoSuchName | NameFailure::NoAddress) => negative_ttl,
            Err(_) => failure_ttl,
        }
    }

    /// Evicts the oldest answers beyond the maximum number of names. A newer answer for the same
    /// name stays.
    fn trim(&mut self) {
        while self.ages.len() > self.settings.names_max {
            let Some((name, aged)) = self.ages.pop_front() else { break };
            if let Some(Entry::Known { sequence, .. }) = self.entries.get(&name)
                && *sequence == aged
            {
                self.entries.remove(&name);
            }
        }
    }
}

/// Parses a host name that is an IP address (IPv6 in brackets, as in URLs); `None` if it isn't one.
fn literal(name: &str) -> Option<IpAddr> {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(name).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(last: u8, ttl_s: u64) -> Result<Answer, NameFailure> {
        let addresses = smallvec::smallvec![IpAddr::from([192, 0, 2, last])];
        Ok(Answer { addresses, ttl: Duration::from_secs(ttl_s) })
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn many_wait_for_one_lookup() {
        let mut names = Names::new(Settings::default());
        assert_eq!(names.ask("a.test", 1, at(0)), Known::Later);
        let (lookup, name) = names.next_lookup().expect("one name in line");
        assert_eq!(&*name, "a.test");
        assert_eq!(names.ask("a.test", 2, at(0)), Known::Later);
        assert_eq!(names.next_lookup(), None, "asked once");
        assert_eq!(names.answered(lookup, &answer(1, 300), at(1)), [1, 2]);
        assert_eq!(names.ask("a.test", 3, at(2)), Known::Now(answer(1, 300)));
        assert!(names.answered(lookup, &answer(2, 300), at(3)).is_empty(), "a late answer");
        assert_eq!(names.ask("a.test", 3, at(302)), Known::Later, "its time to live is over");
    }

    #[test]
    fn times_to_live_are_clamped_and_failures_expire() {
        let mut names = Names::new(Settings::default());
        let cases = [
            (answer(1, 0), 59, 61, "at least ttl_min"),
            (answer(1, 1_000_000), 86_399, 86_401, "at most ttl_max"),
            (Err(NameFailure::NoSuchName), 599, 601, "negative answers"),
            (Err(NameFailure::TimedOut), 29, 31, "failures: soon again"),
        ];
        for (place, (given, known_s, gone_s, why)) in cases.into_iter().enumerate() {
            let name = format!("{place}.test");
            assert_eq!(names.ask(&name, 0, at(0)), Known::Later);
            let (lookup, _) = names.next_lookup().expect("in line");
            names.answered(lookup, &given, at(0));
            assert_eq!(names.ask(&name, 0, at(known_s)), Known::Now(given), "{why}");
            assert_eq!(names.ask(&name, 0, at(gone_s)), Known::Later, "{why}");
            let (lookup, _) = names.next_lookup().expect("in line");
            names.answered(lookup, &answer(9, 60), at(gone_s));
        }
    }

    #[test]
    fn lookups_and_names_are_capped() {
        let settings = Settings { in_flight_max: 2, names_max: 3, ..Settings::default() };
        let mut names = Names::new(settings);
        for waiter in 0..5 {
            names.ask(&format!("{waiter}.test"), waiter, at(0));
        }
        for _ in 0..5 {
            let (lookup, _) = names.next_lookup().expect("fewer than two under way");
            assert!(names.in_flight() <= 2);
            names.answered(lookup, &answer(1, 300), at(0));
        }
        assert_eq!(names.entries.len(), 3, "the oldest answers are gone");
        assert_eq!(names.ask("0.test", 0, at(1)), Known::Later);
        assert!(matches!(names.ask("4.test", 0, at(1)), Known::Now(_)));
    }

    #[test]
    fn a_doubtful_answer_expires_early_and_never_late() {
        let mut names = Names::new(Settings::default());
        names.ask("a.test", 0, at(0));
        names.expire_by("a.test", at(0));
        let (lookup, _) = names.next_lookup().expect("in line");
        names.answered(lookup, &Err(NameFailure::NoSuchName), at(0));
        names.expire_by("a.test", at(30));
        names.expire_by("a.test", at(500));
        assert!(matches!(names.ask("a.test", 0, at(29)), Known::Now(Err(_))));
        assert_eq!(names.ask("a.test", 0, at(30)), Known::Later);
    }

    #[test]
    fn address_literals_need_no_lookup() {
        let mut names = Names::new(Settings::default());
        for (name, address) in [("192.0.2.7", "192.0.2.7"), ("[2001:db8::1]", "2001:db8::1")] {
            let Known::Now(Ok(answer)) = names.ask(name, 0, at(0)) else {
                panic!("{name} is an address");
            };
            assert_eq!(answer.addresses[0], address.parse::<IpAddr>().unwrap());
        }
        assert_eq!(names.next_lookup(), None);
    }
}
