//! The most quality that any policy could have fetched by an instant: a curve above all others.
//!
//! It supposes that all pages are known from the start and that hosts answer back to back, without
//! look-ups, connections, round trips, faults or robots.txt. Then a crawl of `t` seconds is bounded
//! by four things:
//! - each host: the `n`-th reply comes after the host has thought about `n` requests and, with
//!   politeness, has had its rests between them;
//! - the core: each page costs its reply, its links and its bytes;
//! - the connections: a host occupies one while it thinks;
//! - the access line: each page costs its bytes.
//!
//! With the hosts' bound alone the best is to take of each host its best pages, which is exact,
//! since bounds by host and in all are laminar. The other three are priced (Lagrange): for any
//! prices, what remains of the quality of the pages taken, when their cost is subtracted, plus the
//! price of all that `t` seconds have, bounds the quality from above. The bound is the least of
//! such sums that a search over the prices finds, so it is valid however coarse the search.
//!
//! Law: no crawl is above it at any time, whatever its policy.
//! Cost: sorts all pages once per price tried: seconds for a web of 30,000 pages.
//!
//! Source: Everett: Generalized Lagrange multiplier method, Operations Research 11 (1963).

use crate::conf::{Burst, Conf};
use crate::ground::quality::Quality;
use crate::study::sim::settings::Core;
use crate::study::web::{Coding, Kind, Place, Resource, Web};

/// The number of instants at which the bound is computed up to the time that matters most, and
/// after that.
const INSTANTS: (u32, u32) = (56, 8);
/// How many prices are tried for each of the three costs at each instant.
const PRICES: usize = 14;

/// The most quality that can be fetched, over time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bound {
    /// Instants, in seconds, with the most quality in millionths that a crawl can have then.
    points: Vec<(f64, f64)>,
}

/// What is costly beside the hosts' time.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    /// Seconds of the core.
    core: f64,
    /// Bytes.
    bytes: f64,
}

/// The pages of a host.
struct HostPages {
    /// The quality and the costs of each page.
    pages: Vec<(f64, Costs)>,
    /// When its n-th reply can be there at the earliest, counted from the first request, and how
    /// long the host has occupied a connection by then; in seconds.
    replies: Vec<(f64, f64)>,
}

/// The prices of a second of the core, of a byte, and of a second of a connection, in quality.
#[derive(Clone, Copy, Debug, Default)]
struct Prices {
    core: f64,
    byte: f64,
    slot: f64,
}

/// The resources of a crawl per second.
#[derive(Clone, Copy, Debug)]
struct Supply {
    core: f64,
    bytes: f64,
    slots: f64,
}

impl Bound {
    /// Computes the bound of the crawls of `web`, whose pages have the qualities `worths`: most
    /// closely for the first `main` seconds, and up to `end`. All crawls are configured by `conf`,
    /// but for their policy.
    pub(super) fn new(web: &Web, worths: &[Quality], conf: &Conf, (main, end): (f64, f64)) -> Self {
        let core = crate::study::settings::sim(&conf.sim).core;
        let hosts: Vec<HostPages> =
            (0..web.hosts()).map(|host| HostPages::new(web, worths, host, conf, &core)).collect();
        let gateway = crate::study::settings::sim(&conf.sim).gateway_bytes_per_second;
        let supply = Supply {
            core: 1.0,
            // A line without a limit has no price.
            bytes: if gateway == 0 { f64::INFINITY } else { gateway as f64 },
            slots: conf.connections.open_max as f64,
        };
        let mut prices = Prices::default();
        let mut least = 0.0_f64;
        // Most of the quality comes early, so instants are closer there.
        let (first, then) = INSTANTS;
        let early = (1..=first).map(|step| main * (f64::from(step) / f64::from(first)).powi(2));
        let later = (1..=then).map(|step| main + (end - main) * f64::from(step) / f64::from(then));
        let points = early.chain(later).map(|at| {
            // What can be fetched never decreases.
            least = least.max(search(&hosts, &supply, at, &mut prices));
            (at, least)
        });
        Self { points: points.collect() }
    }

    /// Returns the most quality, in millionths, at a time in seconds.
    pub(super) fn at(&self, seconds: f64) -> f64 {
        let next = self.points.partition_point(|point| point.0 < seconds);
        // Between two instants the later one bounds, too.
        self.points.get(next).map_or(f64::INFINITY, |point| point.1)
    }

    /// Returns the area under the bound up to a time in seconds.
    pub(super) fn area(&self, until: f64) -> f64 {
        let (mut area, mut from) = (0.0, 0.0);
        for (at, most) in &self.points {
            let to = at.min(until);
            area += (to - from) * most;
            from = to;
        }
        // It ends later than what is counted.
        area + (until - from).max(0.0) * self.points.last().map_or(0.0, |point| point.1)
    }
}

impl HostPages {
    fn new(web: &Web, worths: &[Quality], number: u32, conf: &Conf, core: &Core) -> Self {
        let host = web.host(number);
        let page = |page: u32| {
            let index = web.page_index(number, page);
            let worth = worths.get(index).map_or(0, |worth| worth.millionths());
            (worth as f64, costs(web, number, page, host.coding, core))
        };
        let mut pages: Vec<_> = (0..web.pages_of(number)).map(page).collect();
        pages.sort_by(|one, other| other.0.total_cmp(&one.0));
        let politeness = &conf.politeness;
        let burst = match politeness.burst {
            Burst::Requests(requests) => requests,
            Burst::Server => host.requests_max,
        };
        let (delay, longest) = (politeness.delay.as_secs_f64(), politeness.delay_max.as_secs_f64());
        let factor = politeness.delay_factor.as_f64();
        let (mut thought, mut rested) = (0.0, 0.0);
        let replies = (1..=web.pages_of(number)).map(|reply| {
            let thinks = web.think_time(&host, reply).as_secs_f64();
            thought += thinks;
            let ready = thought + rested;
            // The rest after a visit is at least its requests x delay. If a visit has one request,
            // its duration is known, too.
            rested = match burst {
                1 => rested + delay.max(factor * thinks).min(longest),
                _ => delay.min(longest) * f64::from((reply + 1).saturating_sub(burst)),
            };
            (ready, thought)
        });
        Self { replies: replies.collect(), pages }
    }

    /// Returns the most of the quality of this host's pages that is left by an instant when their
    /// costs are paid.
    fn most(&self, at: f64, prices: &Prices, values: &mut Vec<f64>) -> f64 {
        let replies = self.replies.partition_point(|reply| reply.0 <= at);
        values.clear();
        values.extend(
            self.pages
                .iter()
                .map(|(worth, costs)| worth - prices.core * costs.core - prices.byte * costs.bytes),
        );
        // Without prices they are in order already.
        if prices.core > 0.0 || prices.byte > 0.0 {
            values.sort_unstable_by(|one, other| other.total_cmp(one));
        }
        let (mut sum, mut most) = (0.0, 0.0_f64);
        for (value, (_, thought)) in values.iter().zip(&self.replies[..replies]) {
            if *value <= 0.0 {
                break;
            }
            sum += value;
            most = most.max(sum - prices.slot * thought);
        }
        most
    }
}

/// Returns the least that a page costs.
fn costs(web: &Web, host: u32, page: u32, coding: Coding, core: &Core) -> Costs {
    let place = Place { host, resource: Resource::Page(page) };
    let is_page = web.kind(host, page) == Kind::Html;
    // The length of coded bodies isn't known without coding them.
    let bytes = match coding {
        Coding::Identity if is_page => web.page_bytes(host, page) as f64,
        _ => 0.0,
    };
    let links = if is_page { web.links(place).len() as f64 } else { 0.0 };
    let nanoseconds = core.reply_ns as f64 + links * core.link_ns as f64;
    Costs { core: nanoseconds / 1e9 + bytes * core.byte_ps as f64 / 1e12, bytes }
}

/// Returns the least bound that a search over the prices finds for an instant. It begins with
/// `prices` and leaves the best ones there, for the next instant.
fn search(hosts: &[HostPages], supply: &Supply, at: f64, prices: &mut Prices) -> f64 {
    let mut values = Vec::new();
    let mut bound = |prices: &Prices| {
        let kept: f64 = hosts.iter().map(|host| host.most(at, prices, &mut values)).sum();
        let paid = prices.core * supply.core + prices.slot * supply.slots;
        let line = if prices.byte > 0.0 { prices.byte * supply.bytes } else { 0.0 };
        kept + at * (paid + line)
    };
    let mut least = bound(&Prices::default());
    let mut best = Prices::default();
    let whole: f64 = hosts.iter().flat_map(|host| &host.pages).map(|page| page.0).sum();
    for which in [Prices::core_mut, Prices::byte_mut, Prices::slot_mut] {
        let before = *which(prices);
        let mut tried = best;
        let supplied =
            *which(&mut Prices { core: supply.core, byte: supply.bytes, slot: supply.slots });
        if !supplied.is_finite() || at <= 0.0 {
            continue;
        }
        // The bound is convex in each price. At this price all that is supplied is worth more than
        // all pages, so the least is below it.
        let (mut low, mut high) = (0.0, whole / (supplied * at));
        if before > 0.0 {
            high = high.min(4.0 * before);
        }
        for _ in 0..PRICES / 2 {
            let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            let mut value = |price: f64| {
                *which(&mut tried) = price;
                let value = bound(&tried);
                if value < least {
                    (least, best) = (value, tried);
                }
                value
            };
            if value(left) <= value(right) { high = right } else { low = left }
        }
    }
    *prices = best;
    least
}

impl Prices {
    fn core_mut(&mut self) -> &mut f64 {
        &mut self.core
    }

    fn byte_mut(&mut self) -> &mut f64 {
        &mut self.byte
    }

    fn slot_mut(&mut self) -> &mut f64 {
        &mut self.slot
    }
}
