//! An operated crawl: paused, blocked, slowed, given seeds, reloaded, revived, killed and resumed,
//! all by `sted ctl`. The lab's log shows that each command holds from the next request on.
//!
//! In every run of the tests the web is small and its rests are short; `make operate` does the same
//! with 3,000 hosts at the default politeness, which takes a quarter of an hour.

use super::crawl::{Crawl, What};
use super::none;
use super::polite::Watch;
use super::stand::{Stand, signal};
use crate::util::{run, sted};
use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use sted::study::web::Robots;

/// How long before the reply to a command a request may have been sent that arrives after it.
const IN_FLIGHT: Duration = Duration::from_millis(150);

/// The size and the speed of a test.
struct Scale {
    hosts: u32,
    seeds: u32,
    pages_per_host: u32,
    /// The section `[politeness]`.
    politeness: &'static str,
    /// The delay of the slowed host.
    slowed: Duration,
    /// How long each step is watched.
    watched: Duration,
    /// How long all servers rest at most after the kill.
    rest_max: Duration,
}

#[test]
fn each_command_holds_from_the_next_request_on() {
    operate(&Scale {
        hosts: 90,
        seeds: 60,
        pages_per_host: 40,
        politeness: "delay = \"300ms\"\ndelay_factor = 2\ndelay_max = \"1s\"\n\
                     crawl_delay_max = \"1s\"\ndomain_delay = \"0s\"\naddress_delay = \"0s\"\n",
        slowed: Duration::from_millis(1_500),
        watched: Duration::from_secs(3),
        rest_max: Duration::from_secs(1),
    });
}

/// `make operate`.
#[test]
#[ignore = "takes a quarter of an hour: make operate"]
fn three_thousand_hosts_at_polite_defaults() {
    operate(&Scale {
        hosts: 3_000,
        seeds: 2_000,
        pages_per_host: 400,
        politeness: "",
        slowed: Duration::from_secs(12),
        watched: Duration::from_secs(60),
        rest_max: Duration::from_secs(300),
    });
}

/// When the operator did what, in microseconds since 1970: for what forbids requests, the time of
/// the reply; for what allows them, the time before the command.
#[derive(Debug, Default)]
struct Times {
    paused: u64,
    resumed: u64,
    blocked: u64,
    slowed: u64,
    added: u64,
    reloaded: u64,
    revived: u64,
    killed: u64,
}

/// Returns the configuration of the lab, with the politeness of the crawl.
fn configuration(scale: &Scale) -> String {
    let Scale { hosts, seeds, politeness, .. } = scale;
    format!(
        r#"[politeness]
{politeness}[retries]
server_failures_max = 1
retry_wait = "1s"
[store]
sync_period = "100ms"
[state]
checkpoint_period = "5s"
[disk]
free_min = "0B"
[lab]
directory = "lab"
events = "requests"
[web]
preset = "plain"
hosts = {hosts}
seeds = {seeds}
pages = {}
links_per_page = 12
locality = 1
page_bytes = "2KB"
think_time = "6ms"
robots_part_share = 0.1
robots_delay_share = 0.05
crawl_delay = "1s"
hostile = ["early-close"]
"#,
        hosts * scale.pages_per_host
    )
}

fn operate(scale: &Scale) {
    let mut stand = Stand::new(&configuration(scale));
    let web = Watch::of_stand(&stand);
    let known: BTreeSet<String> = web.seeds(&stand).collect();
    let mut open = web.hosts().filter(|host| {
        known.contains(&host.name) && host.robots == Robots::None && host.pages > 30
    });
    let mut host = || open.next().expect("there are enough").name.clone();
    let (blocked, slowed, excluded) = (host(), host(), host());
    let job = stand.job().to_str().expect("UTF-8").to_owned();
    let ctl = |args: &[&str]| {
        let done = run(&[&["ctl", &job], args].concat());
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.err);
        now_us()
    };
    // Only the hosts of seeds are in scope.
    let conf = fs::read_to_string(stand.path("crawl.toml")).expect("it was written");
    let conf = conf.replacen("domains = [\"test\"]\n", "", 1);
    fs::write(stand.path("crawl.toml"), &conf).expect("written");
    let mut times = Times::default();

    let crawl = stand.start_until_it_fetches();
    thread::sleep(scale.watched);
    times.paused = ctl(&["pause"]);
    thread::sleep(scale.watched);
    times.resumed = now_us();
    ctl(&["resume"]);
    times.blocked = ctl(&["block", &blocked]);
    times.slowed = ctl(&["slow", &slowed, &format!("{}ms", scale.slowed.as_millis())]);
    let more = stand.path("more.txt");
    let added: Vec<String> = web.others(&stand).collect();
    fs::write(&more, added.join("\n")).expect("written");
    times.added = now_us();
    ctl(&["seeds", more.to_str().expect("UTF-8")]);
    let exclude = format!("[scope]\nexclude = [\"//{}[:/]\"]\n", excluded.replace('.', "[.]"));
    fs::write(stand.path("crawl.toml"), conf.replacen("[scope]\n", &exclude, 1)).expect("written");
    times.reloaded = ctl(&["reload"]);
    times.revived = now_us();
    ctl(&["revive"]);
    thread::sleep(scale.watched);

    signal(&crawl, "-KILL");
    times.killed = now_us();
    stand.said(&mut { crawl });
    let crawl = stand.start();
    wait_for_socket(&stand);
    thread::sleep(scale.rest_max + 3 * scale.watched);
    ctl(&["stop"]);
    let last = stand.wait(crawl);
    assert_eq!(last.code, Some(11), "{}", last.err);
    stand.end_lab();

    let folder = std::mem::replace(&mut stand.folder, tempfile::tempdir().expect("a folder"));
    let crawl = Crawl::left_in(folder, stand.conf.clone(), last);
    obeyed(&crawl, &times, scale, [&blocked, &slowed, &excluded], added.len());
    let mut watch = Watch::of(&crawl);
    watch.was_killed = true;
    none(&watch.double_connections());
    none(&watch.disallowed());
    let (short, rests) = watch.short_rests();
    none(&short);
    assert!(rests > 100, "{rests} rests were looked at");

    let audit = sted(&["audit", crawl.job().to_str().expect("UTF-8")]).output().expect("starts");
    let verdict = String::from_utf8_lossy(&audit.stdout).into_owned();
    assert_eq!(audit.status.code(), Some(0), "{verdict}");
    assert!(verdict.contains("polite"), "{verdict}");
    eprintln!("{times:?}\n{verdict}");
}

/// Compares the lab's log with the operator's commands.
fn obeyed(
    crawl: &Crawl,
    times: &Times,
    scale: &Scale,
    [blocked, slowed, excluded]: [&str; 3],
    added: usize,
) {
    let start = crawl.lab_started_us();
    let events = crawl.events();
    let in_flight = IN_FLIGHT.as_micros() as u64;
    let requests: Vec<(u64, &str, &str)> = events
        .iter()
        .filter_map(|event| match &event.what {
            What::Request(path) => Some((start + event.at_us, &*event.host, &**path)),
            _ => None,
        })
        .collect();
    let within = |from: u64, to: u64| {
        requests.iter().filter(move |(at, ..)| *at > from + in_flight && *at < to)
    };
    let none_of = |what: &str, mut found: Box<dyn Iterator<Item = &(u64, &str, &str)> + '_>| {
        assert_eq!(found.next(), None, "{what}");
    };
    assert!(within(0, times.paused).count() > 50, "it crawls before the pause");
    none_of("paused", Box::new(within(times.paused, times.resumed)));
    let of = |host: &str, since: u64| {
        let host = host.to_owned();
        within(since, u64::MAX).filter(move |(_, asked, _)| *asked == host)
    };
    assert!(requests.iter().any(|(at, host, _)| *host == blocked && *at < times.blocked));
    none_of("blocked", Box::new(of(blocked, times.blocked)));
    none_of("excluded", Box::new(of(excluded, times.reloaded)));
    let slow: Vec<u64> = of(slowed, times.slowed).map(|(at, ..)| *at).collect();
    assert!(slow.len() > 2, "the slowed host is still asked: {slow:?}");
    let delay = scale.slowed.as_micros() as u64;
    let short = slow.windows(2).find(|pair| pair[1] - pair[0] < delay - 5_000);
    assert_eq!(short, None, "of {delay} us: {slow:?}");
    assert!(slow.iter().any(|at| *at > times.killed), "slow after the kill, too");
    let known: BTreeSet<&str> = within(0, times.added).map(|(_, host, _)| *host).collect();
    let later = requests.iter().filter(|(at, ..)| *at >= times.added);
    let new: BTreeSet<&str> = later.map(|(_, host, _)| *host).collect();
    let new = new.difference(&known).count();
    assert!(new * 10 >= added * 9, "{new} of {added} added hosts were asked");
    let given_up = "early-close.test";
    let tried = |from: u64, to: u64| {
        let mut accepts = events.iter().filter(|event| event.what == What::Accept);
        accepts.any(|event| event.host == given_up && (from..to).contains(&(start + event.at_us)))
    };
    assert!(tried(0, times.paused), "it was tried");
    assert!(tried(times.revived, u64::MAX), "it was tried again after the revival");
}

fn wait_for_socket(stand: &Stand) {
    let begun = Instant::now();
    let job = stand.job();
    while run(&["status", job.to_str().expect("UTF-8")]).code != Some(0) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the crawl resumes");
        thread::sleep(Duration::from_millis(50));
    }
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("past 1970");
    u64::try_from(since.as_micros()).expect("for some time")
}
