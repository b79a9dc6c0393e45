//! The judge of a simulated cluster: checks that all nodes together keep what a crawl promises.
//!
//! It sees what an observer at the servers sees of all nodes, and after each slice the engines and
//! the queue. Its limits are its own ([`Laws`]), not the crawl's configuration. The caller says
//! how entries and messages are to be read, and which node should have a partition ([`Words`]).
//!
//! | law | rule |
//! |---|---|
//! | `owner` | between requests of two nodes to servers of one partition lies the settling time |
//! | `rest` | the delay passes between two visits to a server, whoever makes them |
//! | `crawl-delay` | so does the Crawl-delay of its robots.txt, once that is known |
//! | `addresses` | all nodes' visits to an address are not too many at once, nor in any time |
//! | `once` | what was answered wholly is asked for again only if whoever asks could not know it |
//! | `complete` | in the end everything that can be reached has been answered by some node |
//! | `owners` | in the end each partition belongs to the node that should have it, if any runs |
//! | `memory` | batches to be published, and messages that were read, take no more than allowed |
//! | `turn` | no turn does more work than its budgets, plus the steps already begun |
//!
//! A request that a process had decided on before it was stopped, and sends when it goes on, is
//! counted apart: at most one a server for each stop.
//!
//! Times are those of the worlds. The clock of a node may run too fast by [`Laws::drift_ppm`], so
//! that its rests are that much shorter. A node counts from the sending of a request, not from its
//! arrival. The settling time is counted by a node that adds the drift, so nothing is taken off it.
//!
//! Cost: a few look-ups for an observation, and one for each partition with hosts after each slice;
//! a page that is asked for again reads the whole log of its partition.

mod addresses;
mod pages;

use super::Cluster;
use crate::engine::contract::queue::{Key, Partition};
use crate::engine::contract::{ConnId, StopReason};
use crate::ground::map::Map;
use crate::ground::time::Instant;
use crate::study::sim::Observation;
use crate::study::sim::judge::{Violation, turn_above};
use crate::study::web::{Place, Resource, Robots, Web};
use addresses::Addresses;
use pages::Pages;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// The limits that a crawl of several nodes has promised to keep. Each visit is one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laws {
    /// The least time between the requests of two nodes to servers of one partition.
    pub settle: Duration,
    /// The rest of a server after each visit.
    pub delay: Duration,
    /// How much too fast the clock of a node may run, in millionths.
    pub drift_ppm: u32,
    /// The most servers of one address that have unanswered requests at the same time.
    pub address_visits_max: usize,
    /// The least time between the beginnings of two visits to an address, were there one node.
    pub address_delay: Duration,
    /// Whether robots.txt is obeyed.
    pub robots: bool,
    /// How often a URL may be requested until it is given up.
    pub tries_max: u32,
    /// The most bytes of batches that are to be published.
    pub outbox_bytes_max: u64,
    /// The most bytes of one log that were read and aren't used up.
    pub portion_bytes_max: usize,
    /// The most units of work of a turn, and those on incoming bytes: see `judge::Laws`.
    pub turn_units_max: (usize, usize),
}

/// Reads what nodes write to their queue. Nodes have numbers, those of the cluster.
pub trait Words {
    /// Returns the partition of a host.
    fn partition_of(&self, host: &str) -> Partition;
    /// Returns whom the value of a partition's entry names; `None` if nobody.
    fn owner_in(&self, value: &[u8]) -> Option<Owner>;
    /// Returns which of these nodes should have a partition.
    fn should_have(&self, partition: Partition, live: &[usize]) -> Option<usize>;
    /// Returns the node that wrote a message if it says that this URL is settled.
    fn settles(&self, payload: &[u8], url: &str) -> Option<usize>;
}

/// The owner of a partition, as its entry names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The number of the node.
    pub node: usize,
    /// The number of its session.
    pub session: u64,
    /// The first epoch from which on only this node's processes have had the partition; zero if it
    /// is the entry's own revision.
    pub since: u64,
}

/// What was counted besides violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that servers received.
    pub requests: u64,
    /// Requests for pages that had been answered wholly, all of them allowed.
    pub repeats: u64,
    /// Partitions with hosts that went from one session to another without a release.
    pub losses: u64,
    /// Partitions with hosts that were released in order.
    pub releases: u64,
    /// Requests that a process had decided on before it was stopped, and sent when it went on.
    pub late: u64,
}

/// The judge of one simulated cluster.
#[allow(missing_debug_implementations, reason = "it has the caller's code")]
pub struct Judge {
    laws: Laws,
    words: Box<dyn Words>,
    web: Arc<Web>,
    hosts: Vec<Host>,
    conns: Map<(usize, ConnId), Line>,
    partitions: BTreeMap<Partition, Held>,
    addresses: Addresses,
    pages: Pages,
    nodes: Vec<Node>,
    tally: Tally,
    broken: Vec<Violation>,
}

/// A host, and its server as observed.
#[derive(Debug)]
struct Host {
    partition: Partition,
    address: Ipv4Addr,
    /// The Crawl-delay of its robots.txt; `None` if it has none.
    crawl_delay: Option<Duration>,
    /// For each node that asked the server: when it sent its last request, when its last visit
    /// ended, and whether it knows the Crawl-delay.
    visits: BTreeMap<usize, (Instant, Instant, bool)>,
}

/// A connection, as observed.
#[derive(Debug, Default)]
struct Line {
    asked: Instant,
    /// When the crawler learned that the connection was established.
    stood: Option<Instant>,
    host: u32,
    /// When the requests were sent that have not reached the server yet.
    sent: VecDeque<Instant>,
    /// When the last request was sent.
    wrote: Instant,
    /// The number of requests that have no reply yet.
    open: usize,
    has_served: bool,
}

/// Who has a partition by its entry, and who had it before.
#[derive(Debug, Default)]
struct Held {
    revision: u64,
    owner: Option<Owner>,
    /// When each node lost the partition last without having released it.
    lost: BTreeMap<usize, Instant>,
    /// When each node sent its last request to a server of the partition.
    asked: BTreeMap<usize, Instant>,
}

/// A node, as the judge knows it.
#[derive(Clone, Debug, Default)]
struct Node {
    /// The number of its processes that were killed.
    lives: u32,
    /// From when to when its process is or was stopped.
    stopped: Option<(Instant, Instant)>,
    /// When it went on after it was stopped amidst a turn, and the servers whose requests had been
    /// decided on before and were sent then.
    late: (Instant, BTreeSet<u32>),
    /// Whether its last process has said that the crawl is over.
    has_ended: bool,
}

/// The most violations reported for one run.
const BROKEN_MAX: usize = 20;

impl Judge {
    /// Creates a judge for a crawl of `web` by this many nodes, which have promised to keep `laws`.
    pub fn new(web: Arc<Web>, nodes: usize, laws: Laws, words: Box<dyn Words>) -> Self {
        let host = |number| {
            let host = web.host(number);
            let asks = laws.robots && host.robots == Robots::Delay;
            Host {
                partition: words.partition_of(&host.name),
                address: host.address,
                crawl_delay: asks.then_some(web.settings().crawl_delay),
                visits: BTreeMap::new(),
            }
        };
        let hosts: Vec<Host> = (0..web.hosts()).map(host).collect();
        Self {
            pages: Pages::of(&web, &laws),
            partitions: hosts.iter().map(|host| (host.partition, Held::default())).collect(),
            laws,
            words,
            web,
            hosts,
            conns: Map::default(),
            addresses: Addresses::default(),
            nodes: vec![Node::default(); nodes],
            tally: Tally::default(),
            broken: Vec::new(),
        }
    }

    /// Returns what was counted so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns whether a law was broken.
    pub fn has_found(&self) -> bool {
        !self.broken.is_empty()
    }

    /// Takes in one observation of a node; observations must come in order of time.
    pub fn observe(&mut self, node: usize, at: Instant, seen: &Observation) {
        match seen {
            Observation::Connecting { conn, host } => {
                let line = Line { asked: at, host: *host, ..Line::default() };
                self.conns.insert((node, *conn), line);
            }
            Observation::Established { conn, .. } => {
                if let Some(line) = self.conns.get_mut(&(node, *conn)) {
                    line.stood = Some(at);
                }
            }
            Observation::Sent { conn } => {
                if let Some(line) = self.conns.get_mut(&(node, *conn)) {
                    line.sent.push_back(at);
                }
            }
            Observation::Request { conn, host, place, path, .. } => {
                self.asked(node, at, (*conn, *host), *place, path);
            }
            Observation::Reply { conn, host, place, status, whole, .. } => {
                let line = self.conns.entry((node, *conn)).or_default();
                line.open = line.open.saturating_sub(1);
                if line.open == 0 {
                    self.addresses.quiet(self.hosts[*host as usize].address, (node, *conn));
                }
                self.visited(node, at, *host);
                let Some(place) = *place else { return };
                if place.resource == Resource::Robots && *whole && *status == 200 {
                    let visits = &mut self.hosts[*host as usize].visits;
                    visits.entry(node).and_modify(|(.., knows)| *knows = true);
                }
                self.answered(node, at, place, (*status, *whole));
            }
            Observation::Closed { conn, .. } => {
                let Some(line) = self.conns.remove(&(node, *conn)) else { return };
                if line.open > 0 {
                    self.addresses.quiet(self.hosts[line.host as usize].address, (node, *conn));
                    self.visited(node, at, line.host);
                }
            }
            Observation::Resolved { .. } => {}
        }
    }

    /// Takes in that a node's process is stopped from `at` to `until`.
    pub fn stopped(&mut self, node: usize, at: Instant, until: Instant) {
        self.nodes[node].stopped = Some((at, until));
    }

    /// Takes in that a node's process is stopped amidst a turn, from `at` to `until`.
    pub fn stopped_amidst(&mut self, node: usize, at: Instant, until: Instant) {
        if self.nodes[node].late.0 != until {
            self.stopped(node, at, until);
            self.nodes[node].late = (until, BTreeSet::new());
        }
    }

    /// Returns whether a request was decided on before its process was stopped: at most one a
    /// server is.
    fn is_late(&mut self, node: usize, sent: Instant, host: u32) -> bool {
        let (until, servers) = &mut self.nodes[node].late;
        let is_late = *until == sent && sent > Instant::ZERO && servers.insert(host);
        self.tally.late += u64::from(is_late);
        is_late
    }

    /// Takes in that a node's process was killed.
    pub fn killed(&mut self, node: usize) {
        self.nodes[node].lives += 1;
        self.nodes[node].stopped = None;
        for host in &mut self.hosts {
            host.visits.entry(node).and_modify(|(.., knows)| *knows = false);
        }
    }

    /// Looks at the queue; to be called after each slice.
    pub fn look(&mut self, cluster: &Cluster) {
        for (partition, held) in &mut self.partitions {
            let Some((revision, value)) = cluster.queue().entry(&Key::Partition(*partition)) else {
                continue;
            };
            if revision.0 == held.revision {
                continue;
            }
            let mut owner = self.words.owner_in(value);
            if let Some(owner) = owner.as_mut().filter(|owner| owner.since == 0) {
                owner.since = revision.0;
            }
            match (held.owner, owner) {
                (Some(_), None) => self.tally.releases += 1,
                (Some(before), Some(_)) => {
                    self.tally.losses += 1;
                    held.lost.insert(before.node, cluster.now());
                }
                (None, _) => {}
            }
            (held.revision, held.owner) = (revision.0, owner);
        }
        self.judge_again(cluster);
        self.judge_ends(cluster);
    }

    /// Checks that a crawl which says that it is over is.
    fn judge_ends(&mut self, cluster: &Cluster) {
        for (number, node) in cluster.nodes().iter().enumerate() {
            let has_ended = node.ended == Some(StopReason::Finished);
            let is_news = has_ended && !self.nodes[number].has_ended;
            self.nodes[number].has_ended = has_ended;
            if let Some(how) = self.missing().filter(|_| is_news) {
                let how = format!("node {number} says that the crawl is over, but {how}");
                self.report("end", cluster.now(), how);
            }
        }
    }

    /// Checks the memory and the turns of all engines.
    pub fn inspect(&mut self, cluster: &Cluster) {
        for (number, node) in cluster.nodes().iter().enumerate() {
            let Some(engine) = &node.engine else { continue };
            let (outbox, portion) = engine.cluster_memory();
            if outbox > self.laws.outbox_bytes_max {
                let how = format!("node {number}: {outbox} bytes wait to be published");
                self.report("memory", cluster.now(), how);
            }
            if portion > self.laws.portion_bytes_max {
                let how = format!("node {number}: {portion} bytes of a log aren't used up");
                self.report("memory", cluster.now(), how);
            }
            let is_known = self.broken.iter().any(|broken| broken.law == "turn");
            let turn = turn_above(engine, self.laws.turn_units_max).filter(|_| !is_known);
            if let Some(how) = turn {
                self.report("turn", cluster.now(), format!("node {number}: {how}"));
            }
        }
    }

    /// Returns whether everything is answered and in the right hands: what `complete` and `owners`
    /// demand at the end.
    pub fn is_done(&self, cluster: &Cluster) -> bool {
        self.pages.is_complete() && self.misplaced(cluster).is_none()
    }

    /// Takes in the end of the crawl, long enough after the last fault, and returns what was
    /// counted if no law was broken.
    ///
    /// # Errors
    /// The violations, at most `BROKEN_MAX` of them.
    pub fn conclude(mut self, cluster: &Cluster) -> Result<Tally, Vec<Violation>> {
        self.inspect(cluster);
        let at = cluster.now();
        let windows = self.addresses.judge(&self.laws, self.nodes.len());
        windows.into_iter().for_each(|(at, how)| self.report("addresses", at, how));
        // A crawl that broke a law before may have been cut short.
        if !self.has_found() {
            let missing = self.missing().map(|how| ("complete", how));
            let misplaced = self.misplaced(cluster).map(|how| ("owners", how));
            let all = missing.into_iter().chain(misplaced);
            all.for_each(|(law, how)| self.report(law, at, how));
        }
        if self.broken.is_empty() { Ok(self.tally) } else { Err(self.broken) }
    }

    fn report(&mut self, law: &'static str, at: Instant, how: String) {
        if self.broken.len() < BROKEN_MAX {
            self.broken.push(Violation { law, at, how });
        }
    }

    /// Returns the rest that a clock which is too fast makes of `rest`.
    fn shortest(&self, rest: Duration) -> Duration {
        rest.saturating_sub(rest * self.laws.drift_ppm / 1_000_000)
    }

    /// Takes in a request that has arrived at a server.
    fn asked(
        &mut self,
        node: usize,
        at: Instant,
        (conn, host): (ConnId, u32),
        place: Option<Place>,
        path: &str,
    ) {
        let named = format!("host {host} {path} by node {node}");
        self.tally.requests += 1;
        let line = self.conns.entry((node, conn)).or_default();
        line.host = host;
        let sent = line.sent.pop_front().unwrap_or(line.wrote);
        line.wrote = sent;
        let begun = addresses::begun(line, sent, self.laws.delay);
        (line.open, line.has_served) = (line.open + 1, true);
        let is_first = line.open == 1;
        if self.is_late(node, sent, host) {
            return;
        }
        self.judge_owner(node, sent, host, &named);
        self.judge_rest(node, sent, host, &named);
        let address = self.hosts[host as usize].address;
        begun.for_each(|begun| self.addresses.begins(address, begun));
        if is_first {
            let count = self.addresses.asks(address, (node, conn), |other| {
                self.nodes[other].stopped.is_none_or(|stopped| !addresses::is_over(stopped, at))
            });
            if count > self.laws.address_visits_max {
                let most = self.laws.address_visits_max;
                let how = format!("{named}: {count} visits to {address} at once, not {most}");
                self.report("addresses", at, how);
            }
        }
        if let Some(place) = place {
            self.judge_once((node, at), place, &named);
        }
    }

    /// Notes the end of a visit.
    fn visited(&mut self, node: usize, at: Instant, host: u32) {
        let visits = &mut self.hosts[host as usize].visits;
        visits.entry(node).and_modify(|(_, ended, _)| *ended = at);
    }

    fn judge_owner(&mut self, node: usize, sent: Instant, host: u32, named: &str) {
        let partition = self.hosts[host as usize].partition;
        let Some(held) = self.partitions.get_mut(&partition) else { return };
        let others = held.asked.iter().filter(|(other, _)| **other != node);
        let gap = |last: Instant| sent.since(last).max(last.since(sent));
        let nearest = others.map(|(other, last)| (gap(*last), *other)).min();
        held.asked.insert(node, sent);
        if let Some((gap, other)) = nearest.filter(|(gap, _)| *gap < self.laws.settle) {
            let settle = self.laws.settle;
            let how = format!(
                "{named}, {gap:?} and not {settle:?} after node {other}; partition {partition}, \
                 its entry {:?}",
                self.partitions[&partition].owner
            );
            self.report("owner", sent, how);
        }
    }

    fn judge_rest(&mut self, node: usize, sent: Instant, host: u32, named: &str) {
        let rest = self.shortest(self.laws.delay);
        let Host { visits, crawl_delay, .. } = &mut self.hosts[host as usize];
        let mut owed = Vec::new();
        for (other, (last, ended, knows)) in visits.iter() {
            // When a visit of another node ended nobody knows who was not that node: it may have
            // slept.
            let kept = sent.since(if *other == node { *ended } else { *last });
            if kept < rest {
                owed.push(("rest", format!("{named} {kept:?} after node {other}, not {rest:?}")));
            }
            let asks = crawl_delay.filter(|_| *knows && *other == node);
            if let Some(asks) = asks.filter(|asks| kept < *asks - *asks / 1_000) {
                owed.push(("crawl-delay", format!("{named} after {kept:?}, not {asks:?}")));
            }
        }
        let (last, ended, _) = visits.entry(node).or_default();
        (*last, *ended) = (sent, sent);
        owed.into_iter().for_each(|(law, how)| self.report(law, sent, how));
    }

    /// Returns what is wrong, in words, if a partition doesn't belong to the node that it should
    /// belong to, of those that live.
    fn misplaced(&self, cluster: &Cluster) -> Option<String> {
        let nodes = cluster.nodes().iter().enumerate();
        let live: Vec<usize> =
            nodes.filter(|(_, node)| node.engine.is_some()).map(|(number, _)| number).collect();
        if live.is_empty() {
            return None;
        }
        let mut wrong = Partition::all().filter_map(|partition| {
            let entry = cluster.queue().entry(&Key::Partition(partition));
            let owner = entry.and_then(|(_, value)| self.words.owner_in(value));
            let owner = owner.map(|owner| owner.node);
            let should = self.words.should_have(partition, &live);
            (owner != should).then_some((partition, owner, should))
        });
        let (partition, owner, should) = wrong.next()?;
        let count = 1 + wrong.count();
        Some(format!(
            "{count} partitions have the wrong owner: {partition} has node {owner:?}, not \
             {should:?}"
        ))
    }
}
