//! Tests that the driver of the benches (which calls the frontier without an engine) calls it as
//! the engine does, call by call.
//!
//! An engine crawls a small simulated web, and the frontier records its calls. Then the driver
//! takes the same steps at the same times: it receives the first call of each step, and must make
//! all calls of the step in the same order, for the same servers and URLs.
//!
//! Requests are not pipelined here: with a pipeline, an empty queue is asked once more for each
//! unanswered request.

use crate::commands::settings;
use crate::conf::Conf;
use crate::engine::Engine;
use crate::engine::backlog::Item;
use crate::frontier::tests::calls::{self, Call};
use crate::frontier::{Key, QueuesJob, ServerId, Settings};
use crate::ground::stats::{Meter, still};
use crate::ground::time::Instant;
use crate::seeds;
use crate::study::sim::disk::MemoryDisk;
use crate::study::sim::{self, World};
use crate::study::web::{self, Ports, Web};
use crate::url::UrlRef;
use driver::{Driver, Found};
use std::collections::BTreeSet;
use std::sync::Arc;

#[path = "../../bench/driver/mod.rs"]
mod driver;

const CONF: &str = "
[job]
seeds = [\"http://h0000.test/\"]

[identity]
contact = \"crawler@sted.dev\"

[scope]
span = \"host\"
domains = [\"test\"]

[connections]
addresses_allowed = [\"127.0.0.0/8\"]
open_max = 4

[names]
in_flight_max = 1

[pipeline]
enabled = false

[politeness]
burst = BURST
delay = \"DELAY\"
delay_factor = 0
address_delay = \"0s\"
domain_delay = \"0s\"
domain_visits_max = 64

[schedule]
policy = \"POLICY\"

[quality]
source = \"zipf\"

[store]
format = \"none\"
";

/// Returns the frontier calls of an engine that crawls a web of twelve servers, and its frontier's
/// settings.
fn crawl(policy: &str, burst: &str, memory_bytes: Option<usize>) -> (Vec<Call>, Settings) {
    let delay = if burst == "1" { "500ms" } else { "0s" };
    let text = CONF.replace("POLICY", policy).replace("DELAY", delay).replace("BURST", burst);
    let conf = Conf::parse(&text, "driven.toml").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let mut settings = settings::engine(&conf, [7; 16]);
    match memory_bytes {
        Some(bytes) => settings.frontier.memory_bytes = bytes,
        None => settings.keep_no_state(),
    }
    let frontier = settings.frontier.clone();
    let web = web::Settings { hosts: 12, seeds: 3, pages: 600, ..web::Settings::default() };
    let web = Arc::new(Web::new(web, Ports::default()));
    let (found, mistakes) = seeds::parse(web.seeds().join("\n").as_bytes());
    assert!(mistakes.is_empty(), "{mistakes:?}");
    calls::begin();
    let (meter, now) = (Meter::new(still), sim::now_at(Instant::ZERO));
    let disk = Box::new(MemoryDisk::new());
    let engine = Engine::new(settings, &found, disk, meter, now);
    let mut engine = engine.unwrap_or_else(|error| panic!("{error}"));
    World::of_web(web, sim::Settings::default()).run(&mut engine).expect("it ends");
    assert!(engine.counts().pages > 500, "{} pages", engine.counts().pages);
    (calls::end(), frontier)
}

/// A driver that repeats the steps of an engine, and what it has to remember between them.
struct Twin {
    driver: Driver,
    disk: MemoryDisk,
    job: Option<QueuesJob>,
    /// The numbers of the servers whose robots.txt is known.
    ruled: BTreeSet<u32>,
    /// The numbers of the servers on a visit: from being handed out by the frontier until finished.
    visited: BTreeSet<u32>,
}

/// Repeats the steps behind the calls of `engine` with a driver of its own. Describes the first
/// call in which the two differ; returns `None` if all calls are equal.
fn differs(engine: &[Call], settings: Settings) -> Option<String> {
    calls::begin();
    let mut twin = Twin {
        driver: Driver::new(settings),
        disk: MemoryDisk::new(),
        job: None,
        ruled: BTreeSet::new(),
        visited: BTreeSet::new(),
    };
    let mut at = 0;
    let mut difference = None;
    while at < engine.len() && difference.is_none() {
        let known = twin.step(&engine[at..]);
        let made = calls::since(at);
        let same = made.iter().zip(&engine[at..]).take_while(|(one, other)| one == other).count();
        if !known || made.is_empty() || same < made.len() {
            let expected = engine[at..].iter().take(made.len() + 3).collect::<Vec<_>>();
            difference = Some(format!("call {at}:\n engine {expected:#?}\n driver {made:#?}"));
        }
        at += made.len();
    }
    calls::end();
    difference
}

impl Twin {
    /// Takes the step of the engine that begins with the first of `calls`; returns false if no step
    /// begins with such a call.
    fn step(&mut self, calls: &[Call]) -> bool {
        let driver = &mut self.driver;
        match &calls[0] {
            Call::Find(_) => find(driver, calls),
            Call::Next(now) => self.visited.extend(driver.next(*now)),
            Call::Bind(id, address, now) => {
                let unwanted = match calls.get(1) {
                    Some(Call::SetParked(other, false, _)) => Some(other.0),
                    _ => None,
                };
                driver.connect(id.0, *address, unwanted, *now);
            }
            Call::Begin(id, _, now) => {
                driver.reuse(id.0, *now);
            }
            Call::HasBetter(id, _) | Call::Take(id, _) if self.ruled.contains(&id.0) => {
                driver.take(id.0);
            }
            Call::HasBetter(id, _) | Call::Take(id, _) => driver.ask_robots(id.0),
            Call::SetCrawlDelay(id, delay, now) => {
                self.ruled.insert(id.0);
                driver.robots_known(id.0, *delay, *now);
            }
            Call::Finish(..) => return self.finish(calls),
            // The engine gives the candidate of a visit back before it ends the visit.
            Call::GiveBack(..) => return self.finish(&calls[1..]),
            Call::SetParked(id, false, now) if !self.visited.contains(&id.0) => {
                driver.close(id.0, *now);
            }
            Call::TakeIn(now) => driver.take_in(*now),
            Call::Write(false) => driver.write(&mut self.disk),
            Call::Job => self.job = driver.job(&self.disk).or(self.job.take()),
            Call::Worked => driver.worked(self.job.take().expect("there was a job").run()),
            _ => return false,
        }
        true
    }

    fn finish(&mut self, calls: &[Call]) -> bool {
        let Some(Call::Finish(id, visit, now)) = calls.first() else { return false };
        let parks = matches!(calls.get(2), Some(Call::SetParked(other, true, _)) if other == id);
        let is_visited = self.visited.remove(&id.0);
        if is_visited {
            self.driver.finish_as(id.0, visit, parks, *now);
        }
        is_visited
    }
}

/// Adds the URLs that the engine has found, one after the other.
fn find(driver: &mut Driver, calls: &[Call]) {
    let is_of_one = |call: &&Call| {
        use Call::{AddTo, Find, HasRoomFor, ServerOf};
        matches!(call, Find(_) | HasRoomFor(_) | ServerOf(_) | AddTo(..))
    };
    let (mut url, mut found) = (None, Vec::new());
    for call in calls.iter().take_while(is_of_one) {
        match call {
            Call::Find(text) => url = UrlRef::from_canonical(text.as_bytes()),
            Call::AddTo(_, quality, payload, now) => {
                let key = Key { is_first: false, quality: *quality, arrival: 0 };
                let item = Item::decode(payload, key).expect("the engine has encoded it");
                found.push((url.expect("it was looked up"), item, *now));
            }
            _ => {}
        }
    }
    let now = found.last().map_or(Instant::ZERO, |(.., now)| *now);
    let found = found.iter().map(|(url, item, _)| Found {
        url: *url,
        via: item.via.as_deref().unwrap_or(""),
        quality: item.quality,
        depth: item.depth,
        letter: item.found_as,
    });
    driver.found(&found.collect::<Vec<_>>(), now);
}

#[test]
fn the_driver_calls_what_the_engine_calls() {
    for policy in ["bfs", "capability"] {
        for burst in ["1", "\"server\""] {
            for memory_bytes in [None, Some(6_000)] {
                let (calls, settings) = crawl(policy, burst, memory_bytes);
                let jobs = calls.iter().filter(|call| **call == Call::Worked).count();
                assert_eq!(jobs > 0, memory_bytes.is_some(), "queues go to the disk, or don't");
                if let Some(difference) = differs(&calls, settings) {
                    panic!("{policy}, burst {burst}, memory {memory_bytes:?}: {difference}");
                }
            }
        }
    }
}

/// Tests that one call more or less within a step is noticed. A call that is a step by itself is
/// repeated as often as the engine makes it, so it is not tested.
#[test]
fn a_call_more_or_less_is_noticed() {
    let (calls, settings) = crawl("capability", "1", None);
    let visited = calls.iter().position(|call| matches!(call, Call::Take(..))).expect("a visit");
    let mut looked_at = 0;
    for at in visited + 1..visited + 150 {
        let call = &calls[at];
        if let Call::TakeIn(_) | Call::Write(_) | Call::Job | Call::Next(_) = call {
            continue;
        }
        // A request for robots.txt makes one call, which is a step by itself.
        let is_ruled = |of: &ServerId| {
            calls[..at].iter().any(|call| matches!(call, Call::SetCrawlDelay(id, ..) if id == of))
        };
        if matches!(call, Call::HasBetter(id, _) if !is_ruled(id)) {
            continue;
        }
        if let Call::SetCrawlDelay(..) | Call::SetParked(_, false, _) = call {
            continue;
        }
        let less = [&calls[..at], &calls[at + 1..]].concat();
        let more = [&calls[..=at], &calls[at..]].concat();
        for (changed, how) in [(less, "less"), (more, "more")] {
            let difference = differs(&changed, settings.clone());
            assert!(difference.is_some(), "{how}: call {at}, {call:?}");
        }
        looked_at += 1;
    }
    assert!(looked_at > 50, "{looked_at} of them");
}
