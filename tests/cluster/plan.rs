//! The plan of a crawl by several nodes, chosen by a seed: the web, the queue and its faults, and
//! what happens to each node.

use crate::sim::stand;
use std::fmt::Write;
use std::time::Duration;
use sted::cluster::queue::Name;
use sted::cluster::{member, outbox};
use sted::engine::ledger::STEP_UNITS;
use sted::engine::node;
use sted::ground::random::Random;
use sted::study::sim::cluster::judge::Laws;
use sted::study::sim::{self, queue};
use sted::study::web::{self, Spread, TimeSpread};

/// The hash key of all crawls.
pub const KEY: [u8; 16] = [7; 16];
/// The rest of a server after each request.
const DELAY: Duration = ms(200);
/// The bound on the drift of clocks, in millionths.
const DRIFT: u32 = 500;
/// A lease.
const TTL: Duration = ms(6_000);
/// The most bytes of a log that are read at once.
const PORTION: usize = 16 << 10;
/// How long a machine is suspended.
const SUSPENDED: Duration = ms(600_000);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A crawl by several nodes.
pub struct Plan {
    pub crawl: stand::Plan,
    pub laws: Laws,
    pub queue: queue::Settings,
    pub nodes: Vec<Node>,
    settle: Duration,
    pub outbox: outbox::Settings,
    snapshot_bytes_min: u64,
    /// Until when everything that goes wrong has gone wrong.
    pub calm: Duration,
    text: String,
}

/// A node, and what happens to it.
#[derive(Clone, Debug)]
pub struct Node {
    /// When its first process begins.
    pub begins: Duration,
    /// How much faster its clock runs, in millionths.
    pub drift: i32,
    /// What happens to it, in order of time.
    pub events: Vec<(Duration, Event)>,
}

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Its process is stopped for a while.
    Stop(Duration),
    /// Its process is stopped for a while as soon as it is about to send.
    StopAmidst(Duration),
    /// Its process is killed. The unfinished job does as many verbs of its disk.
    Kill { power: bool, job_verbs: u64, seed: u64 },
    /// Another process begins.
    Return,
    /// Its crawl is asked to stop, and leaves in order.
    Leave,
}

impl Event {
    /// Returns how long it takes, as far as that is known.
    fn takes(&self) -> Duration {
        match self {
            Self::Stop(time) => *time,
            // It may take a while until something is sent.
            Self::StopAmidst(time) => *time + ms(2_000),
            _ => Duration::ZERO,
        }
    }
}

impl Node {
    /// Returns whether its process is killed.
    fn ends(&self) -> bool {
        self.events.iter().any(|(_, event)| matches!(event, Event::Kill { .. }))
    }
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let mut draw = Random(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0xc105);
        let web = web(&mut draw);
        let address_delay = ms(draw.pick(&[50, 100, 150]));
        let address_visits_max = draw.pick(&[4, 6]);
        let settle = ms(draw.pick(&[2_000, 3_000, 4_000]));
        let checkpoints = draw.pick(&[2, 3, 5]);
        let crawl = crawl(web, address_delay, address_visits_max, checkpoints);
        let outbox = outbox::Settings {
            wait_max: ms(draw.pick(&[200, 1_000, 4_000])),
            answer_max: ms(5_000),
            ..outbox::Settings::default()
        };
        let mut nodes = nodes(&mut draw);
        // Added later, with their own draw.
        let mut amidst = Random(seed ^ 0xa31d);
        for (_, event) in nodes.iter_mut().flat_map(|node| &mut node.events) {
            if let Event::Stop(time) = event
                && amidst.one_in(3)
            {
                *event = Event::StopAmidst(*time);
            }
        }
        let mut leaving = Random(seed ^ 0x1ea5e);
        for node in nodes.iter_mut().skip(1).filter(|node| !node.ends()) {
            let last = node.events.last().map_or(node.begins, |(at, event)| *at + event.takes());
            let at = last + ms(5_000 + leaving.below(20_000_u64));
            node.events.extend(leaving.one_in(3).then_some((at, Event::Leave)));
        }
        let faults = draw.one_in(2);
        let share = |draw: &mut Random, most: f64| if faults { draw.unit() * most } else { 0.0 };
        let queue = queue::Settings {
            seed: draw.word(),
            delay_min: ms(20),
            delay_max: ms(draw.pick(&[30, 100, 400])),
            lost: share(&mut draw, 0.05),
            repeated: share(&mut draw, 0.05),
            cut: share(&mut draw, 0.003),
            cut_max: ms(draw.pick(&[2_000, 15_000])),
            until: Some(ms(45_000)),
        };
        let last = |node: &Node| {
            let end = |(at, event): &(Duration, Event)| *at + event.takes();
            node.events.iter().map(end).max().unwrap_or_default().max(node.begins)
        };
        let calm = nodes.iter().map(last).max().unwrap_or_default().max(ms(60_000));
        let laws = Laws {
            settle,
            delay: DELAY,
            drift_ppm: DRIFT,
            address_visits_max,
            address_delay,
            robots: true,
            tries_max: 4,
            outbox_bytes_max: outbox.memory_max as u64,
            portion_bytes_max: PORTION,
            turn_units_max: {
                let units = crawl.parts().2.turn_bytes_max + STEP_UNITS;
                (units, units + 2 * 6 * ((64 << 10) + (5 << 20)))
            },
        };
        let mut text = format!("{address_delay:?} an address, {settle:?} to settle, {queue:?}");
        for node in &nodes {
            let _ = write!(text, "\n  {node:?}");
        }
        // Added later, with its own draw.
        let snapshot_bytes_min = Random(seed).pick(&[500, 4_000, 1 << 20]);
        Self { crawl, laws, queue, nodes, settle, outbox, snapshot_bytes_min, calm, text }
    }

    /// Describes the plan in words.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the settings of a process of a node; `lives` is the number of those before it.
    pub fn settings_of(&self, node: usize, lives: u64) -> node::Settings {
        let incarnation = |lives: u64| 1 + node as u64 + 100 * lives;
        node::Settings {
            node: Name::new(&name_of(node)).expect("a name"),
            incarnation: incarnation(lives),
            previous: lives.checked_sub(1).map(incarnation),
            member: member::Settings {
                key: KEY,
                partitions: 1_024,
                ttl: TTL,
                drift_ppm: DRIFT,
                settle: self.settle,
                equal: Vec::new(),
            },
            outbox: self.outbox,
            sent_log2: 8,
            facts_log2: 8,
            portion_bytes: PORTION,
            snapshot_bytes_min: self.snapshot_bytes_min,
            reading_wait: ms(5_000),
            broken: None,
        }
    }
}

/// Returns the name of a node.
pub fn name_of(node: usize) -> String {
    format!("node-{node}")
}

fn web(draw: &mut Random) -> web::Settings {
    web::Settings {
        seed: draw.word(),
        hosts: 8 + draw.below(13_u32),
        seeds: 1 + draw.below(4_u32),
        pages: 60 + draw.below(141_u32),
        pages_sigma: 0.5,
        hosts_per_domain: draw.pick(&[1, 1, 2]),
        hosts_per_address: draw.pick(&[2, 4, 8]),
        fanout: draw.pick(&[2, 4, 8]),
        links: Spread { median: 8.0, sigma: 0.5 },
        locality: draw.pick(&[0.3, 0.7]),
        page_bytes: Spread { median: 1_500.0, sigma: 0.5 },
        round_trip: TimeSpread { median: ms(40), sigma: 0.6 },
        round_trip_jitter: 0.2,
        accept_time: TimeSpread { median: ms(5), sigma: 0.5 },
        dns_time: TimeSpread { median: ms(30), sigma: 0.8 },
        robots_deny: 0.0,
        server_error: 0.0,
        hostile: Vec::new(),
        ..web::Settings::quickstart()
    }
}

fn crawl(web: web::Settings, delay: Duration, visits_max: usize, period_s: u64) -> stand::Plan {
    let mut plan = stand::Plan::new(web).with(&[
        "connections.open_max = 16",
        "politeness.delay = \"200ms\"",
        "politeness.delay_factor = 0",
        "politeness.burst = 1",
        &format!("politeness.address_visits_max = {visits_max}"),
        &format!("politeness.address_delay = \"{}ms\"", delay.as_millis()),
        // A server that hung up on it while a machine was suspended waits that long, else an hour.
        "politeness.robots_retry_wait = \"30s\"",
        "state.keep = true",
        &format!("state.checkpoint_period = \"{period_s}s\""),
    ]);
    plan.world = sim::Settings::default();
    plan
}

/// Draws two to four nodes. The first one outlives the crawl.
fn nodes(draw: &mut Random) -> Vec<Node> {
    let is_suspended = draw.one_in(16);
    let count = 2 + draw.below(3_u64);
    let mut nodes: Vec<Node> = (0..count).map(|number| node(draw, number)).collect();
    if is_suspended {
        let at = ms(5_000 + draw.below(25_000_u64));
        let node = &mut nodes[draw.below(count) as usize];
        node.events.retain(|(_, event)| matches!(event, Event::Stop(_)));
        node.events.retain(|(begin, _)| *begin < at);
        node.events.push((at.max(node.begins) + ms(10_000), Event::Stop(SUSPENDED)));
    }
    nodes
}

fn node(draw: &mut Random, number: u64) -> Node {
    let begins = ms(draw.pick(&[0, 0, 1_000, 10_000, 30_000]));
    let drift = i32::try_from(draw.below(2 * DRIFT + 1)).expect("small") - DRIFT as i32;
    let mut events = Vec::new();
    let mut at = begins;
    for _ in 0..draw.below(3_u64) {
        at += ms(1_000 + draw.below(20_000_u64));
        let time = ms(draw.pick(&[100, 3_000, 5_800, 6_500, 12_000]));
        events.push((at, Event::Stop(time)));
        at += time;
    }
    if draw.one_in(3) {
        at += ms(draw.below(20_000_u64));
        let (power, job_verbs, seed) = (draw.one_in(2), draw.below(6), draw.word());
        let returns = draw.one_in(2);
        let after = ms(draw.pick(&[100, 3_000, 9_000, 30_000]));
        let stays = number == 0 && !returns;
        if !stays {
            events.push((at, Event::Kill { power, job_verbs, seed }));
        }
        if returns {
            events.push((at + after, Event::Return));
        }
    }
    Node { begins, drift, events }
}
