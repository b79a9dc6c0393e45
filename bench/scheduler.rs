//! What one decision of the scheduler costs, and what a server costs in memory, by their number.
//!
//! Question: does the cost stay flat from ten thousand to ten million servers? A *decision* is a
//! visit: it takes the best server and its URL, and ends with new measurements, which rank the
//! server anew. To *file* a URL is to find its server by name, drawn at random, to queue it, and to
//! rank that server anew. Both by the calls that the engine makes ([`driver`]). All servers are
//! ready but the last thousand that were visited: the hardest case for an order.
//!
//! `scheduler POLICY SERVERS DECISIONS` prints one line of JSON; without arguments it runs small,
//! as a test. `bench/scheduler.sh` runs all sizes and counts instructions. `scheduler engine
//! SERVERS` makes servers that have no URLs through the engine with the default configuration, and
//! says what one takes as memory grows from so many to twice as many, all tables counted (the
//! fingerprint of its URL, too).

#![expect(clippy::disallowed_methods, reason = "a bench reads clocks")]

mod driver;
mod nowhere;

use driver::crawl::{Crawl, Plan, Random};
use driver::{Found, Policy};
use nowhere::Nowhere;
use std::time::{Duration, Instant as Clock};
use sted::commands::settings;
use sted::conf::Conf;
use sted::engine::Engine;
use sted::ground::quality::Quality;
use sted::ground::stats::{Meter, still};
use sted::ground::time::Now;
use sted::seeds::Seed;
use sted::url::{Url, UrlRef};

/// URLs that wait at each server from the start.
const URLS: u32 = 2;
/// Decisions made before URLs are filed in their place.
const BATCH: u32 = 500;
/// URLs found on a page.
const PAGE: u32 = 25;
const BYTES_PER_PAGE: usize = 4_096;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [policy, servers, decisions] = &arguments[..] {
        let named = |policy_: &Policy| policy_.name() == policy;
        let policy =
            Policy::PAPER.into_iter().find(named).expect("bfs, performance, quality, capability");
        let number = |text: &str| text.parse().expect("a number");
        println!("{}", run(policy, number(servers), number(decisions)));
    } else if let [_, servers] = &arguments[..] {
        println!("{}", idle(servers.parse().expect("a number")));
    } else {
        println!("{}", idle(1_000));
        Policy::PAPER.into_iter().for_each(|policy| println!("{}", run(policy, 1_000, 5_000)));
    }
}

fn run(policy: Policy, servers: u32, decisions: u32) -> String {
    let mut crawl = Crawl::new(&Plan::of(policy));
    let before = resident();
    let mut longest_meet = Duration::ZERO;
    for server in 0..servers {
        let began = Clock::now();
        with_url(server, |url| crawl.meet(url));
        longest_meet = longest_meet.max(began.elapsed());
    }
    let idle = resident();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for first in (0..servers * URLS).step_by(PAGE as usize) {
        let page = first..(first + PAGE).min(servers * URLS);
        find(&mut crawl, page.map(|number| number % servers), &mut random);
    }
    let queued = resident();
    if std::env::var_os("BENCH_WAIT").is_some() {
        // For a counter of instructions, which begins here.
        eprintln!("ready");
        let _ = std::io::stdin().read_line(&mut String::new());
    }
    let (mut deciding, mut filing) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..decisions / BATCH {
        let began = Clock::now();
        decide(&mut crawl);
        deciding += began.elapsed();
        let began = Clock::now();
        file(&mut crawl, servers, &mut random);
        filing += began.elapsed();
    }
    let ns = |time: Duration| time.as_nanos() as f64 / f64::from(decisions);
    let per_server = |to: usize| to.saturating_sub(before) as f64 / f64::from(servers);
    format!(
        "{{\"policy\":\"{}\",\"servers\":{servers},\"decisions\":{decisions},\
         \"decide_ns\":{:.0},\"file_ns\":{:.0},\"longest_meet_us\":{},\"idle_server_bytes\":{:.0},\
         \"server_with_{URLS}_urls_bytes\":{:.0},\"checksum\":{}}}",
        policy.name(),
        ns(deciding),
        ns(filing),
        longest_meet.as_micros(),
        per_server(idle),
        per_server(queued),
        crawl.checksum,
    )
}

/// Servers without URLs, as the engine keeps them: their URLs are turned away.
fn idle(servers: u32) -> String {
    let text = "[job]\nseeds = [\"http://a.test/\"]\n[identity]\ncontact = \"a@sted.dev\"\n\
                [limits]\npages_max = \"none\"\n[store]\nformat = \"none\"\n";
    let conf = Conf::parse(text, "bench").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let mut settings = settings::engine(&conf, [7; 16]);
    settings.keep_no_state();
    (settings.frontier.urls_max, settings.frontier.scheduler.servers_max) = (0, usize::MAX);
    let now = Now::default();
    let meter = Meter::new(still);
    let engine = Engine::new(settings, &[], Box::new(Nowhere), meter, now);
    let mut engine = engine.expect("sound settings");
    let mut grown = [0_usize; 2];
    for (half, grown) in (0..).zip(&mut grown) {
        for server in half * servers..(half + 1) * servers {
            let url = with_url(server, |url| Url::parse(url.as_str()).expect("canonical"));
            engine.seed(now, &Seed { url, line: 1 });
        }
        *grown = resident();
    }
    assert_eq!(engine.frontier().servers(), 2 * servers as usize);
    let bytes = grown[1].saturating_sub(grown[0]) as f64 / f64::from(servers);
    format!("{{\"servers\":{servers},\"idle_server_bytes_in_engine\":{bytes:.0}}}")
}

/// Decisions, counted by themselves.
#[inline(never)]
fn decide(crawl: &mut Crawl) {
    for _ in 0..BATCH {
        while crawl.visit(1).is_none() {
            assert!(crawl.sleep(), "who isn't ready rests");
        }
    }
}

/// URLs in place of those that were taken, counted by themselves.
#[inline(never)]
fn file(crawl: &mut Crawl, servers: u32, random: &mut Random) {
    for _ in 0..BATCH / PAGE {
        let drawn: [u32; PAGE as usize] = std::array::from_fn(|_| {
            u32::try_from(random.below(u64::from(servers))).expect("below a u32")
        });
        find(crawl, drawn.into_iter(), random);
    }
}

/// A page is found that links to these servers.
fn find(crawl: &mut Crawl, servers: impl Iterator<Item = u32>, random: &mut Random) {
    let urls: Vec<Url> = servers
        .map(|server| with_url(server, |url| Url::parse(url.as_str()).expect("canonical")))
        .collect();
    let found: Vec<Found<'_>> = urls
        .iter()
        .map(|url| {
            let quality = Quality::from_millionths(random.below(5_000_000));
            Found { url: url.view(), via: "", quality, depth: 1, letter: b'L' }
        })
        .collect();
    crawl.found(&found);
}

/// A server with a name of twenty bytes.
fn with_url<T>(server: u32, act: impl FnOnce(UrlRef<'_>) -> T) -> T {
    let url = format!("http://host{server:010}.test1/page/12345");
    act(UrlRef::from_canonical(url.as_bytes()).expect("canonical"))
}

/// Bytes of memory in use.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * BYTES_PER_PAGE
}
