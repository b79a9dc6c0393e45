//! What single commands do: each to a crawl of a synthetic web. The sweep of drawn commands is in
//! `crash`.

use super::outage::{outage, plan};
use super::stand::{Plan, outcomes_of};
use super::varied;
use std::sync::Arc;
use std::time::Duration;
use sted::engine::Engine;
use sted::engine::contract::{Command, Order, Reload, Reply, StopReason, Target};
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::store::log;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::settings::{Affected, Away};
use sted::study::sim::{View, World};
use sted::study::web::Web;
use sted::url::scope::Scope;

/// A crawl that gets commands while it runs.
struct Operated {
    web: Arc<Web>,
    world: World,
    engine: Engine,
    disk: MemoryDisk,
    settings: sted::engine::settings::Settings,
    seeds: Vec<sted::seeds::Seed>,
}

impl Operated {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(lines: &[&str]) -> Self {
        Self::of(&Plan::new(varied(5)).with(&["connections.open_max = 4"]).with(lines))
    }

    fn of(plan: &Plan) -> Self {
        let (web, seeds, settings) = plan.parts();
        let world = World::of_web(Arc::clone(&web), plan.world.clone());
        let disk = MemoryDisk::new();
        let (own, meter) = (Box::new(disk.clone()), Meter::new(still));
        let engine = Engine::open(settings.clone(), &seeds, own, meter, world.now());
        let engine = engine.unwrap_or_else(|error| panic!("{error}"));
        Self { web, world, engine, disk, settings, seeds }
    }

    /// Runs the crawl until it has this many pages.
    fn until(&mut self, pages: u64) {
        let goes_on = &mut |view: &View<'_>| view.engine.counts().pages < pages;
        self.world.run_until(&mut self.engine, Instant::FAR, goes_on).expect("it goes on");
    }

    /// Runs the crawl for a time.
    fn run_for(&mut self, seconds: u64) {
        let until = self.world.at() + Duration::from_secs(seconds);
        self.world.run_until(&mut self.engine, until, &mut |_| true).expect("it goes on");
    }

    fn finish(&mut self) {
        self.world.run(&mut self.engine).expect("it ends");
        assert_eq!(self.engine.stop_reason(), Some(StopReason::Finished));
    }

    fn give(&mut self, command: Command) -> Reply {
        let order = Order::new("ann", command);
        self.engine.command(self.world.now(), &order)
    }

    /// Gives a command that must be carried out. Returns the time, in microseconds since 1970.
    fn order(&mut self, command: Command) -> u64 {
        let reply = self.give(command);
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
        self.world.now().unix.as_micros()
    }

    /// Returns the URLs of all requests so far, each with the time at which it was sent, in
    /// microseconds since 1970.
    fn requests(&self) -> Vec<(u64, String)> {
        let log = self.disk.read("crawl.log").expect("there is one");
        let log = String::from_utf8(log).expect("the log is text");
        let entries = log.lines().map(|line| log::parse(line).expect("a line of the log"));
        let sent = entries.filter_map(|entry| Some((entry.extra.sent?, entry.url.to_owned())));
        sent.collect()
    }

    /// Returns the host with most pages.
    fn largest(&self) -> String {
        let hosts = 0..self.web.hosts();
        let largest = hosts.max_by_key(|host| self.web.host(*host).pages).expect("there are some");
        self.web.host(largest).name.clone()
    }
}

fn is_of(url: &str, host: &str) -> bool {
    url.split('/').nth(2) == Some(host)
}

#[test]
fn a_paused_crawl_requests_nothing_until_it_is_resumed() {
    let mut crawl = Operated::new();
    crawl.until(100);
    let paused = crawl.order(Command::Pause { target: Target::All });
    crawl.run_for(100_000);
    let resumed = crawl.order(Command::Resume { target: Target::All });
    crawl.finish();
    let requests = crawl.requests();
    assert!(requests.iter().all(|(sent, _)| *sent <= paused || *sent >= resumed));
    assert!(requests.iter().any(|(sent, _)| *sent >= resumed));
    assert_eq!(crawl.engine.counts().commands, 2);
}

#[test]
fn a_paused_prefix_waits_and_the_rest_goes_on() {
    let mut crawl = Operated::new();
    crawl.until(100);
    let host = crawl.largest();
    let url = |number: u32| (number, format!("http://{host}/s{number}/"));
    let (_, prefix) = url(0);
    let target: Target = prefix.parse().expect("a URL");
    let paused = crawl.order(Command::Pause { target: target.clone() });
    crawl.run_for(200_000);
    assert!(!crawl.engine.is_finished(), "paused URLs wait");
    assert!(crawl.engine.counts().shelved > 0, "{prefix} has URLs");
    let resumed = crawl.order(Command::Resume { target });
    crawl.finish();
    assert_eq!(crawl.engine.counts().shelved, 0);
    let requests = crawl.requests();
    let of_prefix = requests.iter().filter(|(_, url)| url.starts_with(&prefix));
    assert!(of_prefix.clone().all(|(sent, _)| *sent <= paused || *sent >= resumed));
    assert!(of_prefix.clone().any(|(sent, _)| *sent >= resumed));
    let others = requests.iter().filter(|(_, url)| !url.starts_with(&prefix));
    assert!(others.clone().any(|(sent, _)| *sent > paused && *sent < resumed));
}

#[test]
fn a_blocked_host_gets_no_request_and_its_urls_have_an_outcome() {
    let mut crawl = Operated::new();
    crawl.until(100);
    let host = crawl.largest();
    let blocked = crawl.order(Command::Block { target: Target::Host(host.clone()) });
    crawl.finish();
    let late = |(sent, url): &&(u64, String)| *sent > blocked && is_of(url, &host);
    assert_eq!(crawl.requests().iter().find(late), None);
    let log = crawl.disk.read("crawl.log").expect("there is one");
    let blocked = outcomes_of(&log).into_iter().filter(|(_, outcome)| outcome == "blocked");
    let blocked: Vec<_> = blocked.collect();
    assert!(blocked.len() > 3 && blocked.iter().all(|(url, _)| is_of(url, &host)), "{blocked:?}");
}

/// A reload with a narrower scope and a longer delay: both hold from the next request on.
#[test]
fn a_reload_holds_from_the_next_request_on() {
    let mut crawl = Operated::with(&["politeness.burst = 1"]);
    crawl.until(100);
    let host = crawl.largest();
    let mut new = crawl.settings.clone();
    new.scope.exclude = vec![format!("//{host}/")];
    new.frontier.scheduler.delay = 3 * new.frontier.scheduler.delay + Duration::from_secs(2);
    new.connections.open_max = 999;
    let reload = |crawl: &mut Operated, settings: sted::engine::settings::Settings| {
        let seeds = crawl.seeds.iter().map(|seed| &seed.url);
        let scope = Scope::new(settings.scope.clone(), seeds).expect("it is valid");
        let changed = vec!["scope.exclude".to_owned()];
        crawl.engine.reload(crawl.world.now(), "ann", Reload { settings, scope, changed })
    };
    let now = crawl.world.now();
    let reply = reload(&mut crawl, new.clone());
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    crawl.finish();
    let reloaded = now.unix.as_micros();
    let later = crawl.requests().into_iter().filter(|(sent, _)| *sent > reloaded);
    let seeds: Vec<&str> = crawl.seeds.iter().map(|seed| seed.url.as_str()).collect();
    let mut by_server = std::collections::BTreeMap::<String, Vec<u64>>::new();
    for (sent, url) in later {
        let is_robots = url.ends_with("/robots.txt");
        assert!(!is_of(&url, &host) || is_robots || seeds.contains(&&*url), "{url}");
        let server = url.split('/').take(3).collect::<Vec<_>>().join("/");
        by_server.entry(server).or_default().push(sent);
    }
    let delay = new.frontier.scheduler.delay.as_micros() as u64;
    let mut gaps = 0;
    for times in by_server.values_mut() {
        times.sort_unstable();
        // The first rest after the reload was owed by the old delay.
        for pair in times.windows(2) {
            assert!(pair[1] - pair[0] >= delay, "{pair:?}");
            gaps += 1;
        }
    }
    assert!(gaps > 20, "{gaps}");
    let mut unlimited = new.clone();
    unlimited.frontier.scheduler.address_delay = match new.frontier.scheduler.address_delay {
        Duration::ZERO => Duration::from_secs(1),
        _ => Duration::ZERO,
    };
    let mut crawl = Operated::new();
    let reply = reload(&mut crawl, unlimited);
    assert!(matches!(reply, Reply::Refused(why) if why.contains("politeness.address_delay")));
}

/// Seeds that a command adds are crawled, with all that the scope implies of them.
#[test]
fn added_seeds_are_crawled() {
    let mut crawl = Operated::new();
    crawl.finish();
    let all = crawl.requests().len();
    let mut plan =
        Plan::new(varied(5)).with(&["connections.open_max = 4", "scope.span = \"host\""]);
    plan.web.seeds = 1;
    let mut crawl = Operated::of(&plan);
    crawl.until(3);
    let urls = (0..crawl.web.hosts()).map(|host| format!("{}/", crawl.web.origin(host)));
    crawl.order(Command::AddSeeds { seeds: urls.collect() });
    crawl.finish();
    assert_eq!(crawl.requests().len(), all, "every host was added");
    let bad = Command::AddSeeds { seeds: vec!["http://a.test/".into(), "ftp://b.test/".into()] };
    assert!(matches!(crawl.give(bad), Reply::Refused(_)));
}

/// A block reaches URLs of a paused prefix, so that the crawl can end.
#[test]
fn a_block_reaches_paused_urls() {
    let mut crawl = Operated::new();
    crawl.until(100);
    let prefix = format!("http://{}/s0/", crawl.largest());
    let target: Target = prefix.parse().expect("a URL");
    crawl.order(Command::Pause { target: target.clone() });
    crawl.run_for(100_000);
    assert!(crawl.engine.counts().shelved > 0 && !crawl.engine.is_finished());
    crawl.order(Command::Block { target });
    crawl.finish();
    let log = crawl.disk.read("crawl.log").expect("there is one");
    let blocked = outcomes_of(&log).into_iter().filter(|(_, outcome)| outcome == "blocked");
    assert!(blocked.count() > 0);
}

/// A host that was slowed by mistake goes on at once when that is taken back.
#[test]
fn a_host_that_is_no_longer_slowed_goes_on() {
    let mut crawl = Operated::new();
    crawl.until(100);
    let host = crawl.largest();
    let slow = |delay_ms| Command::Slow { host: host.clone(), delay_ms };
    crawl.order(slow(10 * 24 * 3_600_000));
    crawl.run_for(3_600);
    let off = crawl.order(slow(0));
    crawl.finish();
    let later = crawl.requests().into_iter().filter(|(sent, url)| *sent > off && is_of(url, &host));
    let times: Vec<u64> = later.map(|(sent, _)| sent).collect();
    assert!(times.len() > 3, "{times:?}");
    let hours = (times.iter().max().expect("some") - off) / 3_600_000_000;
    assert!(hours < 24, "{hours} hours after it was no longer slowed");
}

/// Nobody is tried while the whole crawl is paused, so that is no outage.
#[test]
fn a_pause_is_no_outage() {
    let outage = outage(Affected::All, Away::Unreachable, Duration::from_secs(40 * 3_600));
    let plan = plan(vec![outage]).with(&["retries.outage_max = \"12h\""]);
    let mut crawl = Operated::of(&plan);
    crawl.run_for(3_600);
    assert!(crawl.engine.outage().is_some(), "nobody answers");
    crawl.order(Command::Pause { target: Target::All });
    crawl.run_for(45 * 3_600);
    assert_eq!(crawl.engine.stop_reason(), None, "a pause doesn't end the crawl");
    crawl.order(Command::Resume { target: Target::All });
    crawl.finish();
}
