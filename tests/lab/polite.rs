//! Politeness as seen from outside: the lab's log compared with what configuration and robots.txt
//! promise.
//!
//! The crawler's own records are not used. The end of a reply is not in the lab's log; it is no
//! earlier than the request plus the time the host thinks, so rests are counted from that.

use super::crawl::{Crawl, Event, What};
use super::stand::Stand;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use sted::conf::Conf;
use sted::study::settings;
use sted::study::web::{Host, Ports, Robots, Web};
use sted::url::Url;

/// How much shorter than promised a gap may be: clocks and wake-ups of two processes differ.
const SLACK: Duration = Duration::from_millis(5);

/// The lab's log, and the promises it is compared with.
pub struct Watch {
    /// The configuration of the crawl.
    pub conf: Conf,
    /// The hosts by name.
    hosts: BTreeMap<String, Host>,
    /// Whether a host's think time is constant.
    is_steady: bool,
    /// The events at the lab, in order.
    pub events: Vec<Event>,
    /// Whether the crawler was killed and resumed.
    pub was_killed: bool,
}

impl Watch {
    /// Reads the log of a crawl.
    pub fn of(crawl: &Crawl) -> Self {
        Self { events: crawl.events(), ..Self::of_conf(crawl.conf.clone()) }
    }

    /// Returns what is known of a lab before it has a log.
    pub fn of_stand(stand: &Stand) -> Self {
        Self::of_conf(stand.conf.clone())
    }

    /// Returns the names of the hosts whose root pages are seeds.
    pub fn seeds(&self, stand: &Stand) -> impl Iterator<Item = String> {
        let seeds = stand.ready["seeds"].as_array().expect("a list").iter();
        let urls: Vec<Url> =
            seeds.map(|seed| Url::parse(seed.as_str().expect("a text")).expect("a URL")).collect();
        urls.into_iter().map(|url| url.view().host().to_owned())
    }

    /// Returns the root pages of all other well-behaved hosts.
    pub fn others(&self, stand: &Stand) -> impl Iterator<Item = String> {
        let known: BTreeSet<String> = self.seeds(stand).collect();
        let port = &stand.ready["http_port"];
        let others = self.hosts().filter(|host| {
            !known.contains(&host.name) && host.hostile.is_none() && host.robots != Robots::Deny
        });
        others.map(|host| format!("http://{}:{port}/", host.name)).collect::<Vec<_>>().into_iter()
    }

    fn of_conf(conf: Conf) -> Self {
        let settings = settings::web(&conf.web);
        let is_steady = settings.think_jitter == 0.0;
        let web = Web::new(settings, Ports::default());
        let hosts = (0..web.hosts()).map(|number| web.host(number));
        let hosts = hosts.map(|host| (host.name.clone(), host)).collect();
        Self { conf, hosts, is_steady, events: Vec::new(), was_killed: false }
    }

    /// Returns the hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.values()
    }

    /// Counts the hosts that received requests.
    pub fn hosts_asked(&self) -> usize {
        self.requests_by(|host| host.name.clone()).len()
    }

    /// Returns the cases of two simultaneous connections to one server, one per line. Connections
    /// that ended without a request are attributed to their address's first host, which is right
    /// unless hosts share addresses.
    pub fn double_connections(&self) -> Vec<String> {
        let mut servers: BTreeMap<u64, &str> = BTreeMap::new();
        let mut mistakes = Vec::new();
        for event in self.events.iter().filter(|event| matches!(event.what, What::Request(_))) {
            let server = *servers.entry(event.connection).or_insert(&event.host);
            if server != event.host {
                mistakes.push(format!("one connection for {server} and {}", event.host));
            }
        }
        let mut open: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for event in &self.events {
            let server = servers.get(&event.connection).copied().unwrap_or(&event.host);
            let mine = open.entry(server).or_default();
            match event.what {
                What::Accept => {
                    if !mine.is_empty() {
                        let at = event.at_us;
                        mistakes.push(format!("{server}: two connections at {at} us"));
                    }
                    mine.push(event.connection);
                }
                What::Close => mine.retain(|number| *number != event.connection),
                What::Request(_) | What::Reply => {}
            }
        }
        mistakes
    }

    /// Returns the requests that a server received on one connection before it had answered what
    /// was asked on another, one per line.
    pub fn simultaneous_requests(&self) -> Vec<String> {
        // The requests of each connection that aren't answered.
        let mut asked: BTreeMap<&str, BTreeMap<u64, usize>> = BTreeMap::new();
        let mut mistakes = Vec::new();
        for event in &self.events {
            let connections = asked.entry(&event.host).or_default();
            match &event.what {
                What::Request(path) => {
                    *connections.entry(event.connection).or_default() += 1;
                    if connections.len() > 1 {
                        let (host, at) = (&event.host, event.at_us);
                        mistakes.push(format!("{host}{path} at {at} us beside another request"));
                    }
                }
                What::Reply => {
                    if let Some(open) = connections.get_mut(&event.connection) {
                        *open -= 1;
                    }
                    connections.retain(|_, open| *open > 0);
                }
                What::Close => {
                    connections.remove(&event.connection);
                }
                What::Accept => {}
            }
        }
        mistakes
    }

    /// Returns the requests that robots.txt disallows, and those sent before it was requested, one
    /// per line.
    pub fn disallowed(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        for (name, requests) in self.requests_by(|host| host.name.clone()) {
            if requests[0].1 != "/robots.txt" {
                mistakes.push(format!("{name}: {} before robots.txt", requests[0].1));
            }
            let robots = self.hosts[&name].robots;
            let wrong = requests.iter().filter(|(_, path)| is_closed(robots, path));
            mistakes.extend(wrong.map(|(_, path)| format!("{name}: {path} is closed")));
        }
        mistakes
    }

    /// Returns the requests to one server that came before its rest was over, one per line, and the
    /// number of rests.
    pub fn short_rests(&self) -> (Vec<String>, usize) {
        let politeness = &self.conf.politeness;
        self.gaps(
            |host| host.name.clone(),
            |host| {
                let think = self.think_time(host);
                let factor = politeness.delay_factor.thousandths();
                let own = (think * factor / 1_000).max(politeness.delay).min(politeness.delay_max);
                match host.robots {
                    Robots::Delay => own.max(self.crawl_delay()),
                    _ => own,
                }
            },
        )
    }

    /// Returns short rests between servers of one address, of which one is visited at a time.
    pub fn short_rests_of_addresses(&self) -> (Vec<String>, usize) {
        assert_eq!(self.conf.politeness.address_visits_max, 1, "gaps show it only so");
        let delay = self.conf.politeness.address_delay;
        self.gaps(|host| host.address.to_string(), |_| delay)
    }

    /// Returns short rests between servers of one registrable domain (the last two labels of their
    /// names).
    pub fn short_rests_of_domains(&self) -> (Vec<String>, usize) {
        assert_eq!(self.conf.politeness.domain_visits_max, 1, "gaps show it only so");
        let delay = self.conf.politeness.domain_delay;
        let domain = |host: &Host| {
            let labels: Vec<&str> = host.name.rsplit('.').take(2).collect();
            labels.join(".")
        };
        self.gaps(domain, |_| delay)
    }

    /// Returns the retries that came too early (after `Retry-After: 1`, or after an unavailable
    /// robots.txt), one per line, and the number of retries.
    pub fn hasty_retries(&self) -> (Vec<String>, usize) {
        let (mut mistakes, mut count) = (Vec::new(), 0);
        let of_robots = self.conf.politeness.robots_retry_wait;
        let waits =
            [("retry-after.test", Duration::from_secs(1)), ("robots-error.test", of_robots)];
        let asked = self.requests_by(|host| host.name.clone());
        for (host, wait) in waits {
            let mut last: BTreeMap<&str, u64> = BTreeMap::new();
            for (event, path) in asked.get(host).into_iter().flatten() {
                if let Some(before_us) = last.insert(path, event.at_us) {
                    let gap = Duration::from_micros(event.at_us - before_us);
                    count += 1;
                    if gap + SLACK < wait {
                        mistakes.push(format!("{host}{path} again after {gap:?}"));
                    }
                }
            }
        }
        (mistakes, count)
    }

    /// Checks the gaps between consecutive requests of a group: the second must come after the
    /// think time of the first plus the rest.
    fn gaps(
        &self,
        group: impl Fn(&Host) -> String,
        rest: impl Fn(&Host) -> Duration,
    ) -> (Vec<String>, usize) {
        let (mut mistakes, mut count) = (Vec::new(), 0);
        for (name, requests) in self.requests_by(group) {
            for pair in requests.windows(2) {
                let ((before, first), (after, path)) = (&pair[0], &pair[1]);
                let host = &self.hosts[&before.host];
                // Requested again: the crawler was killed, which ended its visit, before the host
                // had answered.
                let was_cut = self.was_killed && first == path;
                let think = if was_cut { Duration::ZERO } else { self.think_time(host) };
                let promised = think + rest(host);
                let gap = Duration::from_micros(after.at_us - before.at_us);
                count += 1;
                if gap + SLACK < promised {
                    let text = format!("{name}: {path} {gap:?} after {first}, not {promised:?}");
                    mistakes.push(text);
                }
            }
        }
        (mistakes, count)
    }

    fn requests_by(
        &self,
        group: impl Fn(&Host) -> String,
    ) -> BTreeMap<String, Vec<(&Event, &str)>> {
        let mut all: BTreeMap<String, Vec<(&Event, &str)>> = BTreeMap::new();
        for event in &self.events {
            if let What::Request(path) = &event.what {
                let host = self.hosts.get(&event.host).expect("a host of this web");
                all.entry(group(host)).or_default().push((event, path));
            }
        }
        all
    }

    /// Returns the least time that a host takes to answer.
    fn think_time(&self, host: &Host) -> Duration {
        if self.is_steady { host.think_time } else { Duration::ZERO }
    }

    fn crawl_delay(&self) -> Duration {
        settings::web(&self.conf.web).crawl_delay
    }
}

/// Whether the robots.txt of such a host disallows a path for all crawlers.
fn is_closed(robots: Robots, path: &str) -> bool {
    let closed = match robots {
        Robots::None | Robots::Allow => false,
        Robots::Part => {
            path.starts_with("/private/") && !path.starts_with("/private/open/")
                || path.ends_with(".bak")
        }
        Robots::Delay => path.starts_with("/decoy/"),
        Robots::Deny => true,
    };
    closed && path != "/robots.txt"
}
