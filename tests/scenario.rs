//! Scripted conversations in both worlds: what a server sends is text (`tests/scenarios/*.txt`, see
//! `sted::study::web::script`); the results of the crawl are checked, and both worlds must agree.

use crate::player::Servers;
use crate::util::LOOP;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;
use sted::commands::settings;
use sted::conf::Conf;
use sted::engine::contract::StopReason;
use sted::engine::ledger::Ledger;
use sted::engine::settings::Settings;
use sted::engine::{Earlier, Engine};
use sted::ground::disk::Disk;
use sted::ground::stats::{Meter, still};
use sted::ground::time;
use sted::os;
use sted::os::disk::OsDisk;
use sted::seeds;
use sted::store::log;
use sted::study::sim::{self, disk::MemoryDisk};
use sted::study::web::script::Script;

/// The configuration of every script's crawl, unless the script changes it: fast, because scripts
/// are also played in real time, and with access to loopback addresses.
const BASE: &[&str] = &[
    "job.seeds = [\"http://a.test/\"]",
    "identity.contact = \"crawler@sted.dev\"",
    "scope.span = \"host\"",
    "scope.domains = [\"test\"]",
    "connections.addresses_allowed = [\"127.0.0.0/8\"]",
    "connections.connect_timeout = \"2s\"",
    "connections.tls_timeout = \"2s\"",
    "connections.head_timeout = \"1s\"",
    "connections.body_timeout = \"1s\"",
    "connections.fetch_timeout = \"3s\"",
    "connections.idle_timeout = \"2s\"",
    "politeness.burst = \"server\"",
    "politeness.delay = \"0s\"",
    "politeness.delay_factor = 0",
    "politeness.address_delay = \"0s\"",
    "politeness.domain_delay = \"0s\"",
    "retries.retry_after_max = \"1s\"",
    "retries.retries_max = 2",
    "retries.server_failures_max = 3",
    "store.format = \"none\"",
    // Scripts that test probation set it.
    "pipeline.probation = 0",
    "limits.time_max = \"60s\"",
];

/// The results of a script in one world.
#[derive(Debug, PartialEq, Eq)]
struct Result {
    /// For each URL, its last outcome and the number of its lines in the log.
    outcomes: BTreeMap<String, (String, usize)>,
    /// For each URL, the annotations of its last line.
    notes: BTreeMap<String, Vec<String>>,
    /// For each host, the request targets in order, and the number of connections.
    seen: BTreeMap<String, (Vec<String>, usize)>,
    faults: Vec<String>,
}

#[test]
fn every_script_ends_as_it_says_in_both_worlds() {
    let mut wrong = Vec::new();
    for path in scripts() {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("readable");
        let script = read(&text, SIMULATED_PORT);
        let simulated = simulate(&script, 1);
        wrong.extend(check(&script, &simulated).map(|text| format!("{name} (sim): {text}")));
        let real = run_for_real(&text);
        wrong.extend(check(&script, &real).map(|text| format!("{name} (os): {text}")));
        if simulated.outcomes != real.outcomes {
            wrong.push(format!(
                "{name}: the worlds differ\n  sim {:?}\n  os  {:?}",
                simulated.outcomes, real.outcomes
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn one_seed_gives_one_history_and_cuts_change_nothing() {
    for path in scripts() {
        let script = read(&fs::read_to_string(&path).expect("readable"), SIMULATED_PORT);
        let (first, again) = (history(&script, 7), history(&script, 7));
        assert_eq!(first, again, "{}: two runs of one seed", path.display());
        for seed in 2..6 {
            let cut = simulate(&script, seed).outcomes;
            assert_eq!(cut, simulate(&script, 1).outcomes, "{}: seed {seed}", path.display());
        }
    }
}

/// A host that a seed's redirect has added to the scope stays in it after a restart, as long as
/// that seed exists; a seed whose redirect leaves the scope has failed.
#[test]
fn a_host_that_joined_the_scope_stays_in_it() {
    let server = |host: &str, rest: &str| {
        format!("host {host}\non connection\n request /robots.txt\n reply 404\n{rest}")
    };
    let conf = "conf scope.domains = []\nconf state.keep = true\n";
    let to_www = server("a.test", " request /\n reply 301 to http://www.a.test:{port}/\n");
    let www = server("www.a.test", " request /\n reply 200 text page\n");
    let away = server("b.test", " request /\n reply 301 to http://c.test:{port}/\n");
    let first = format!("{conf}seed http://a.test/\nseed http://b.test/\n{to_www}{www}{away}");
    let more = "host d.test\non connection\n request /robots.txt\n reply 404\n request /\n \
                reply 200 links http://www.a.test:{port}/more\n";
    let later = server("www.a.test", " request /more\n reply 200 text page\n");
    let again = |seed: &str| format!("{conf}{seed}seed http://d.test/\n{more}{later}");
    for (seed, joins) in [("seed http://a.test/\n", true), ("", false)] {
        let disk = MemoryDisk::new();
        for (text, failed) in [(&first, 1), (&again(seed), 1)] {
            let script = read(text, SIMULATED_PORT);
            let (_, settings) = settings(&script, &[]);
            let seeds = seeds_of(&script, SIMULATED_PORT);
            let now = sim::now_at(time::Instant::ZERO);
            let mut engine = Engine::open(settings, &seeds, disk.handle(), Meter::new(still), now)
                .unwrap_or_else(|error| panic!("{error}"));
            let mut world = sim::World::new(&script, 1);
            world.run(&mut engine).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(engine.counts().seeds.failed_count(), failed, "b.test leads away");
        }
        let log = disk.read("crawl.log").unwrap_or_default();
        let outcomes = outcomes(&log, SIMULATED_PORT);
        assert_eq!(outcomes.contains_key("http://www.a.test/more"), joins, "{outcomes:?}");
    }
}

/// Nobody knows which Crawl-delay a server has sent to a run that was killed. Until its robots.txt
/// has been read again, requests for that are as far apart as the longest Crawl-delay that is
/// obeyed.
#[test]
fn a_crawl_delay_that_was_lost_is_presumed() {
    let host = "conf state.keep = true\nconf limits.time_max = \"1h\"\nseed http://a.test/\n\
                host a.test\non connection\n request /robots.txt\n";
    let rules = " reply 200 text User-agent:* Crawl-delay:20\n request /\n reply 200 text page\n";
    let disk = MemoryDisk::new();
    let live = |text: &str, goes_on: &dyn Fn(&sim::View<'_>) -> bool, is_stopped| {
        let script = read(text, SIMULATED_PORT);
        let (_, settings) = settings(&script, &[]);
        let seeds = seeds_of(&script, SIMULATED_PORT);
        let now = sim::now_at(time::Instant::ZERO);
        let mut engine = Engine::open(settings, &seeds, disk.handle(), Meter::new(still), now)
            .unwrap_or_else(|error| panic!("{error}"));
        let mut world = sim::World::new(&script, 1);
        let ran = world.run_until(&mut engine, time::Instant::FAR, &mut |view| goes_on(view));
        ran.unwrap_or_else(|error| panic!("{error}"));
        let at = world.at();
        if is_stopped {
            engine.stop(world.now(), StopReason::Interrupted);
            world.run(&mut engine).unwrap_or_else(|error| panic!("{error}"));
        }
        at.since(time::Instant::ZERO)
    };
    let is_quiet = |view: &sim::View<'_>| view.engine.counts().statuses.is_empty();
    live(&format!("{host}{rules}"), &is_quiet, false);
    // The next run requests it, too, and is stopped before there is an answer.
    let longest = Duration::from_secs(60)..Duration::from_secs(62);
    let rested = live(host, &|view| view.engine.counts().requests < 1, true);
    assert!(longest.contains(&rested), "after a kill: {rested:?}");
    let rested = live(&format!("{host}{rules}"), &|view| view.engine.counts().requests < 2, true);
    assert!(longest.contains(&rested), "without its rules: {rested:?}");
}

/// A URL may be as long as `scope.url_bytes_max` allows, wherever it comes from. A longer one is
/// reported with the key, but a seed is fetched nevertheless.
#[test]
fn urls_are_as_long_as_the_scope_says() {
    let script = |bytes_max: &str| {
        let [seed, link, target] =
            ["s", "l", "t"].map(|letter| format!("/{}", letter.repeat(8_000)));
        let text = format!(
            "conf scope.url_bytes_max = \"{bytes_max}\"\nseed http://a.test{seed}\nhost a.test\n\
             on connection\n request /robots.txt\n reply 404\n request {seed}\n \
             reply 200 links {link}\n request {link}\n reply 302 to {target}\n \
             request {target}\n reply 200 text page\n"
        );
        let script = read(&text, SIMULATED_PORT);
        let result = simulate(&script, 1);
        let of = |path: &str| result.outcomes.get(&format!("http://a.test{path}")).cloned();
        assert_eq!(result.faults, [""; 0]);
        (of(&seed), of(&link), of(&target), result.notes[&format!("http://a.test{seed}")].clone())
    };
    let ok = |_| Some(("ok".to_owned(), 1));
    let (seed, link, target, notes) = script("16KiB");
    assert_eq!((seed, target), (ok(1), ok(1)));
    assert!(link.is_some(), "the redirect");
    assert!(!notes.contains(&"urlTooLong".to_owned()), "{notes:?}");
    let (seed, link, target, notes) = script("4KiB");
    assert_eq!((seed, link, target), (ok(1), None, None));
    assert!(notes.contains(&"urlTooLong".to_owned()), "{notes:?}");
}

/// `--retry-given-up` retries failed seeds together with the servers that were given up; a seed
/// stays failed until it succeeds.
#[test]
fn failed_seeds_are_tried_again_when_that_is_asked_for() {
    let text = |status: &str| {
        format!(
            "conf state.keep = true\nconf politeness.robots = false\nseed http://a.test/\n\
             host a.test\non connection\n request /\n reply {status} text page\n"
        )
    };
    let disk = MemoryDisk::new();
    let runs =
        [("410", false, 1, 1), ("200", false, 0, 1), ("410", true, 1, 1), ("200", true, 1, 0)];
    for (status, revives, requests, failed) in runs {
        let script = read(&text(status), SIMULATED_PORT);
        let (_, settings) = settings(&script, &[]);
        let seeds = seeds_of(&script, SIMULATED_PORT);
        let now = sim::now_at(time::Instant::ZERO);
        let mut engine = Engine::open(settings, &seeds, disk.handle(), Meter::new(still), now)
            .unwrap_or_else(|error| panic!("{error}"));
        if revives {
            engine.revive();
        }
        let mut world = sim::World::new(&script, 1);
        world.run(&mut engine).unwrap_or_else(|error| panic!("{error}"));
        let seen = world.seen().get("a.test").map_or(0, |what| what.requests.len());
        assert_eq!((seen, engine.counts().seeds.failed_count()), (requests, failed), "{status}");
    }
}

/// A page for which a gateway had an error is requested again after its wait, not at once, though
/// its server works; other pages are fetched meanwhile.
#[test]
fn pages_of_a_gateway_wait_on_their_own() {
    let text = "seed http://a.test/1\nseed http://a.test/2\nconf pipeline.enabled = false\n\
                host a.test\non connection\n request /robots.txt\n reply 404\n \
                request /1\n reply 502\n request /2\n reply 504\n request /1\n reply 502\n \
                request /2\n reply 200 text two\n request /1\n reply 200 text one\n";
    let log = String::from_utf8(log_of(text)).expect("UTF-8");
    let lines = log.lines().map(|line| log::parse(line).expect("a line"));
    let times = |end: &str| -> Vec<u64> {
        let own = lines.clone().filter(|line| line.url.ends_with(end));
        own.map(|line| line.time.as_micros() / 1_000 % 1_000).collect()
    };
    // A reply takes 20 ms, the first wait 50, the second 100.
    assert_eq!((times("/1"), times("/2")), (vec![70, 140, 260], vec![90, 160]), "{log}");
}

/// A server's Retry-After counts once; if it asks again, the crawl's own wait, which doubles,
/// counts as well.
#[test]
fn a_server_that_asks_for_no_rest_again_and_again_gets_one() {
    let busy = " request /\n raw HTTP/1.1 503 Busy\\r\\nRetry-After: 0\\r\\n\
                Content-Length: 0\\r\\n\\r\\n\n";
    let text = format!(
        "conf retries.retries_max = 4\nconf retries.server_failures_max = 9\n\
         seed http://a.test/\nhost a.test\non connection\n request /robots.txt\n reply 404\n{}\
         request /\n reply 200 text page\n",
        busy.repeat(3)
    );
    let log = String::from_utf8(log_of(&text)).expect("UTF-8");
    let lines = log.lines().map(|line| log::parse(line).expect("a line"));
    let times: Vec<u64> =
        lines.filter(|line| line.url.ends_with("/")).map(|line| line.time.as_micros()).collect();
    let gaps: Vec<u64> = times.windows(2).map(|two| (two[1] - two[0]) / 1_000).collect();
    // A reply takes 20 ms; the second wait, and the longest, is 100 ms: see settings.
    assert_eq!(gaps, [20, 120, 120], "{log}");
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let entries = fs::read_dir(folder).expect("the scenarios are there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    assert!(paths.len() >= 10, "there are scenarios: {paths:?}");
    paths
}

/// Parses a script; `{port}` stands for the port of all its servers.
pub(crate) fn read(text: &str, port: u16) -> Script {
    Script::parse(&text.replace("{port}", &port.to_string()))
        .unwrap_or_else(|mistake| panic!("line {}: {}\n{text}", mistake.line, mistake.reason))
}

fn settings(script: &Script, extra: &[String]) -> (Conf, Settings) {
    let mut sections: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    let lines = BASE.iter().copied().chain(script.conf.iter().map(String::as_str));
    let lines = lines.chain(extra.iter().map(String::as_str));
    for line in lines {
        let (key, value) = line.split_once('=').expect("a key and a value");
        let (section, name) = key.trim().rsplit_once('.').expect("section.key");
        sections.entry(section).or_default().insert(name, value);
    }
    let mut text = String::new();
    for (section, keys) in sections {
        text += &format!("[{section}]\n");
        keys.iter().for_each(|(name, value)| text += &format!("{name} = {value}\n"));
    }
    let conf = Conf::parse(&text, "script").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let mut settings = settings::engine(&conf, [7; 16]);
    // Shorter than a real crawl may have: scripts are played in real time, too.
    settings.retries.wait = Duration::from_millis(50);
    settings.retries.wait_max = Duration::from_millis(100);
    settings.names.failure_ttl = Duration::from_millis(10);
    if conf.politeness.robots_retry_wait == Conf::default().politeness.robots_retry_wait {
        settings.robots.retry_wait = Duration::from_millis(100);
    }
    (conf, settings)
}

/// Adds the port at which URLs without a port are crawled: the same in both worlds.
fn with_port(url: &str, port: u16) -> String {
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    format!("{scheme}://{host}:{port}/{path}")
}

fn seeds_of(script: &Script, port: u16) -> Vec<seeds::Seed> {
    let text: Vec<String> = script.seeds.iter().map(|seed| with_port(seed, port)).collect();
    let (seeds, mistakes) = seeds::parse(text.join("\n").as_bytes());
    assert!(mistakes.is_empty(), "{mistakes:?}");
    seeds
}

fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("{name:?}")).collect()
}

const SIMULATED_PORT: u16 = 8_080;

fn simulate(script: &Script, seed: u64) -> Result {
    let (world, disk, _) = play(script, seed, &|_| {});
    let log = disk.read("crawl.log").unwrap_or_default();
    let mut seen = BTreeMap::new();
    let mut faults = Vec::new();
    for (host, what) in world.seen() {
        seen.insert(host.clone(), (what.requests.clone(), what.connections));
        faults.extend(what.faults.iter().map(|fault| format!("{host}: {fault}")));
    }
    let (outcomes, notes) = (outcomes(&log, SIMULATED_PORT), notes(&log, SIMULATED_PORT));
    Result { outcomes, notes, seen, faults }
}

/// Returns the crawl log of a script's crawl in the simulated world.
pub(crate) fn log_of(text: &str) -> Vec<u8> {
    played(text, &|_| {}).0
}

/// Returns the crawl log of a script's crawl with other settings, and the ledger of its turns.
pub(crate) fn played(text: &str, change: &dyn Fn(&mut Settings)) -> (Vec<u8>, Ledger) {
    let (_, disk, engine) = play(&read(text, SIMULATED_PORT), 1, change);
    (disk.read("crawl.log").unwrap_or_default(), engine.ledger().clone())
}

/// Returns the records of a script's crawl in the simulated world, one file behind the other.
pub(crate) fn archive_of(text: &str) -> Vec<u8> {
    let (_, disk, _) = play(&read(text, SIMULATED_PORT), 1, &|_| {});
    let mut names = disk.handle().list("warc").expect("a folder");
    names.sort();
    names.iter().flat_map(|name| disk.read(&format!("warc/{name}")).unwrap_or_default()).collect()
}

/// Returns the lines that a script's crawl adds to its log after a rebuild from its archive.
pub(crate) fn log_of_rebuilt(text: &str) -> String {
    rebuilt(text, &|_| {}).0
}

/// Returns the lines that a script's crawl adds after a rebuild with other settings, and the ledger
/// of its turns.
pub(crate) fn rebuilt(text: &str, change: &dyn Fn(&mut Settings)) -> (String, Ledger) {
    let script = read(text, SIMULATED_PORT);
    let (_, disk, _) = play(&script, 1, &|_| {});
    let before = disk.read("crawl.log").unwrap_or_default().len();
    let now = sim::now_at(time::Instant::ZERO);
    Earlier::rebuild([7; 16], now.unix, disk.handle().as_mut()).expect("a disk");
    let (_, mut settings) = settings(&script, &[]);
    settings.state.crawl = Some(7);
    change(&mut settings);
    let seeds = seeds_of(&script, SIMULATED_PORT);
    let meter = Meter::new(still);
    let mut engine = Engine::open(settings, &seeds, disk.handle(), meter, now)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut world = sim::World::new(&script, 1);
    world.run(&mut engine).unwrap_or_else(|error| panic!("{error}"));
    let log = disk.read("crawl.log").unwrap_or_default();
    let ledger = engine.ledger().clone();
    (String::from_utf8(log[before..].to_vec()).expect("UTF-8"), ledger)
}

fn history(script: &Script, seed: u64) -> (u64, Vec<u8>) {
    let (world, disk, _) = play(script, seed, &|_| {});
    (world.actions_hash(), disk.read("crawl.log").unwrap_or_default())
}

fn play(
    script: &Script,
    seed: u64,
    change: &dyn Fn(&mut Settings),
) -> (sim::World, MemoryDisk, Engine) {
    let (_, mut settings) = settings(script, &[]);
    change(&mut settings);
    let disk = MemoryDisk::new();
    let now = sim::now_at(time::Instant::ZERO);
    let seeds = seeds_of(script, SIMULATED_PORT);
    let mut engine = Engine::new(settings, &seeds, disk.handle(), Meter::new(still), now)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut world = sim::World::new(script, seed);
    world.run(&mut engine).unwrap_or_else(|error| panic!("{error}"));
    (world, disk, engine)
}

fn run_for_real(text: &str) -> Result {
    let folder = tempfile::tempdir().expect("a folder");
    let servers = Servers::start(text);
    let script = servers.script();
    let extra = [
        format!("names.servers = [{}]", quoted(&[servers.dns()]).join(", ")),
        "names.timeout = \"1s\"".to_owned(),
        "names.tries = 1".to_owned(),
    ];
    let (conf, settings) = settings(script, &extra);
    let disk = Box::new(OsDisk::open(folder.path()).expect("a folder"));
    let _loop = LOOP.lock().unwrap_or_else(PoisonError::into_inner);
    let mut world = os::World::new(&settings::world(&conf, Duration::from_secs(1)))
        .unwrap_or_else(|error| panic!("{error}"));
    let seeds = seeds_of(script, servers.port());
    let now = world.now();
    let mut engine = Engine::new(settings, &seeds, disk, Meter::new(still), now)
        .unwrap_or_else(|error| panic!("{error}"));
    world.run(&mut engine, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    drop(engine);
    let log = fs::read(folder.path().join("crawl.log")).unwrap_or_default();
    let (outcomes, notes) = (outcomes(&log, servers.port()), notes(&log, servers.port()));
    let (seen, faults) = servers.stop();
    Result { outcomes, notes, seen, faults }
}

/// Returns the annotations in the last line of each URL, with the detail and evidence of a refused
/// reply, and what was said of the use of the page.
fn notes(log: &[u8], port: u16) -> BTreeMap<String, Vec<String>> {
    let lines = std::str::from_utf8(log).expect("UTF-8").lines();
    let of = |line| log::parse(line).unwrap_or_else(|bad| panic!("{bad:?}: {line}"));
    let note = |entry: log::Entry<'_>| {
        let url = entry.url.replacen(&format!(":{port}"), "", 1);
        let words = entry.annotations.unwrap_or("").split(',').map(str::to_owned);
        let shown = [entry.extra.detail, entry.extra.evidence].into_iter().flatten();
        let said =
            |name: &str, words: Option<Cow<'_, str>>| words.map(|it| format!("{name}: {it}"));
        let means = [said("allowed", entry.extra.allowed), said("reserved", entry.extra.reserved)];
        let plain = |url: Cow<'_, str>| url.replacen(&format!(":{port}"), "", 1).into();
        let canonical = said("canonical", entry.extra.canonical.map(plain));
        let words = words.chain(means.into_iter().flatten()).chain(canonical);
        let shown = shown.chain(entry.extra.consent);
        (url, words.chain(shown.map(Into::into)).collect())
    };
    lines.map(of).map(note).collect()
}

/// Returns the last outcome of each URL, with its port removed, and the number of its lines.
fn outcomes(log: &[u8], port: u16) -> BTreeMap<String, (String, usize)> {
    let mut outcomes: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for line in std::str::from_utf8(log).expect("UTF-8").lines() {
        let entry = log::parse(line).unwrap_or_else(|bad| panic!("{bad:?}: {line}"));
        let url = entry.url.replacen(&format!(":{port}"), "", 1);
        let name = match (entry.status, entry.extra.reason) {
            (_, Some(reason)) => reason.into_owned(),
            (200..300, None) => "ok".to_owned(),
            (300..400, None) => "redirect".to_owned(),
            (status, None) => status.to_string(),
        };
        let outcome = outcomes.entry(url).or_default();
        *outcome = (name, outcome.1 + 1);
    }
    outcomes
}

/// Returns the deviations from what the script expects.
fn check<'a>(script: &'a Script, result: &'a Result) -> impl Iterator<Item = String> + 'a {
    let outcomes = script.outcomes.iter().filter_map(|(url, expected, lines)| {
        match result.outcomes.get(url) {
            None => Some(format!("{url}: not in the log; {:?}", result.outcomes)),
            Some((name, count)) => {
                let right = name == expected && lines.is_none_or(|lines| lines == *count);
                (!right).then(|| format!("{url}: {name} after {count} lines, not {expected}"))
            }
        }
    });
    let notes = script.notes.iter().filter_map(|(url, word)| {
        let words = result.notes.get(url).map_or(&[][..], Vec::as_slice);
        let is_kept = match word.strip_prefix("without ") {
            Some(absent) => !words.iter().any(|word| word.starts_with(absent)),
            None => words.contains(word),
        };
        (!is_kept).then(|| format!("{url}: annotated {words:?}, not {word}"))
    });
    let seen = move |host: &String| result.seen.get(host).map(|(targets, _)| targets.clone());
    let requests = script.requests.iter().filter_map(move |(host, count)| {
        let targets = seen(host).unwrap_or_default();
        (targets.len() != *count)
            .then(|| format!("{host}: asked for {targets:?}, not {count} times"))
    });
    let connections = script.connections.iter().filter_map(|(host, count)| {
        let connections = result.seen.get(host).map_or(0, |(_, connections)| *connections);
        (connections != *count).then(|| format!("{host}: {connections} connections, not {count}"))
    });
    outcomes.chain(notes).chain(requests).chain(connections).chain(result.faults.iter().cloned())
}
