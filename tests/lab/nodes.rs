//! Crawls that real processes share through a real nats-server: everything in the manifest is
//! archived by some node, nothing is requested more often than faults explain, and the lab sees no
//! gap shorter than promised, whoever makes the next visit.
//!
//! `queue` does the same to servers that are full, lost, or used by strangers.
//! `make cluster` crawls 600 hosts by three nodes; `make cluster-faults N=50` does the worst to
//! nodes, server and network; `make cluster-links` measures pages with a thousand links to others;
//! `make cluster-upgrade OLD=path` replaces the program under a running crawl.

mod handover;
mod links;

use super::compare::Facts;
use super::crawl::Crawl;
use super::none;
use super::polite::Watch;
use super::stand::{Stand, ends_within, signal};
use crate::real::nats::{Relay, Server};
use crate::trials;
use crate::util::{Run, lacks, sted};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};
use sted::ground::random::Random;

/// The names of the nodes.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// A crawl that takes longer than this counts as hanging.
const TIME_MAX: Duration = Duration::from_secs(240);
/// The lease of the nodes: the shortest that is allowed.
const LEASE: Duration = Duration::from_secs(5);

/// The user of all nodes, who may do what the manual lists and nothing else; and the password.
pub(super) const USER: &str = r#"authorization {
  users: [{
    user: node, password: secret
    permissions: {
      publish: ["$JS.API.>", "$JS.FC.>", "$KV.sted-lab.>", "sted.lab.log.*"]
      subscribe: ["_INBOX.>"]
    }
  }, { user: stranger, password: other }]
}"#;
const PASSWORD: &str = "secret\n";

/// Returns a lab and the politeness of its crawls, with this rest between visits to a server.
pub(super) fn web(hosts: u32, pages: u32, delay_ms: u32, seed: u64) -> String {
    format!(
        r#"
[politeness]
burst = 1
delay = "{delay_ms}ms"
delay_factor = 0
delay_max = "1s"
crawl_delay_max = "1s"
address_delay = "0s"
address_visits_max = 100
domain_delay = "0s"
robots_retry_wait = "1s"
[retries]
retry_wait = "1s"
retry_wait_max = "1s"
[state]
checkpoint_period = "1s"
[disk]
free_min = "0B"
[lab]
directory = "lab"
events = "requests"
[web]
preset = "plain"
hosts = {hosts}
seeds = 4
pages = {pages}
links_per_page = 12
page_bytes = "2KB"
think_time = "4ms"
think_time_sigma = 0.0
redirect_share = 0.05
not_found_share = 0.05
robots_part_share = 0.3
seed = {seed}
"#
    )
}

/// A lab, a server, and nodes that crawl the one through the other.
pub(super) struct Shared {
    stand: Stand,
    pub(super) server: Server,
    /// Between the last node and the server.
    relay: Relay,
    /// More settings of each node, and the servers if the nodes know others.
    pub(super) more: Vec<String>,
    pub(super) servers: Option<String>,
    /// The process of each node, while it has one.
    nodes: Vec<Option<Child>>,
    /// Another program than this one, which processes are started of.
    program: Option<PathBuf>,
    /// The results of the processes that have ended by themselves, by node.
    ends: Vec<Vec<Run>>,
}

impl Shared {
    fn new(text: &str, nodes: usize) -> Self {
        Self::with(Server::start("always", USER), text, nodes)
    }

    /// Prepares nodes that share a crawl through a server.
    pub(super) fn with(server: Server, text: &str, nodes: usize) -> Self {
        let stand = Stand::new(text);
        fs::write(stand.path("password"), PASSWORD).expect("written");
        let relay = Relay::listen(server.address());
        let nodes: Vec<_> = (0..nodes).map(|_| None).collect();
        let ends = nodes.iter().map(|_| Vec::new()).collect();
        let more = vec!["cluster.user=node".into(), "cluster.password_file=password".into()];
        Self { stand, server, relay, more, servers: None, nodes, program: None, ends }
    }

    fn job(&self, node: usize) -> PathBuf {
        self.stand.path(&format!("job-{}", NAMES[node]))
    }

    /// Starts or restarts a node.
    pub(super) fn start(&mut self, node: usize) {
        let name = NAMES[node];
        let url = match node + 1 == self.nodes.len() {
            true => format!("nats://{}", self.relay.address()),
            false => self.server.url(),
        };
        let set = [
            format!("job.directory=job-{name}"),
            format!("cluster.node={name}"),
            "cluster.name=lab".to_owned(),
            format!("cluster.servers={}", self.servers.clone().unwrap_or(format!("[{url:?}]"))),
            format!("cluster.lease={}s", LEASE.as_secs()),
            "cluster.batch_wait=200ms".to_owned(),
            format!("admin.textfile={name}.prom"),
        ];
        let mut arguments = vec!["crawl", "crawl.toml"];
        set.iter().chain(&self.more).for_each(|set| arguments.extend(["--set", set]));
        let create = |kind: &str| {
            let path = self.stand.path(&format!("{name}.{kind}"));
            File::options().create(true).append(true).open(path).expect("created")
        };
        let mut command = sted(&arguments);
        if let Some(program) = &self.program {
            command = Command::new(program);
            command.args(&arguments);
        }
        command.current_dir(self.stand.folder.path());
        let child = command.stdout(create("out")).stderr(create("err")).spawn();
        self.nodes[node] = Some(child.expect("the program starts"));
    }

    /// Returns what a node's processes have said.
    pub(super) fn said(&self, node: usize, kind: &str) -> String {
        let path = self.stand.path(&format!("{}.{kind}", NAMES[node]));
        fs::read_to_string(path).unwrap_or_default()
    }

    /// Kills a node's process, if it still has one.
    fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.nodes[node].take() {
            child.kill().expect("a child of ours");
            child.wait().expect("a child of ours");
        }
    }

    /// Waits until a node's part in the crawl, as `sted status` has it, is so.
    fn wait_for_status(&self, node: usize, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let job = self.job(node);
            let mut command = sted(&["status", job.to_str().expect("UTF-8"), "--json"]);
            let status = Run::of(command.output().expect("the program starts"));
            let read = serde_json::from_str::<Value>(&status.out);
            let part = read.map_or(Value::Null, |read| read["cluster"].clone());
            if is_so(&part) {
                return part;
            }
            assert!(begun.elapsed() < TIME_MAX, "it doesn't become so: {status:?}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Stops a node's process in order, which must not be done with its crawl.
    fn leave(&mut self, node: usize) {
        let child = self.nodes[node].as_mut().expect("it runs");
        signal(child, "-TERM");
        let ended = ends_within(child, Duration::from_secs(60));
        assert!(ended, "{}", self.said(node, "err"));
        self.running();
        let code = self.ends[node].pop().and_then(|run| run.code);
        assert!(matches!(code, Some(0 | 11)), "{code:?}");
        let said = self.said(node, "err");
        assert!(!said.contains("hasn't left"), "{said}");
    }

    /// Runs a command that has the crawl's configuration: `before`, its file, some keys, `after`.
    fn ask(&self, before: &[&str], set: &[&str], after: &[&str]) -> Run {
        let url = format!("cluster.servers=[{:?}]", self.server.url());
        let monitor = format!("cluster.monitor={}", self.server.monitoring());
        let lease = format!("cluster.lease={}s", LEASE.as_secs());
        let mut all = [before, &["crawl.toml"]].concat();
        let own = ["cluster.name=lab", "cluster.node=x", &url, &monitor, &lease];
        let more = self.more.iter().map(String::as_str);
        let set = own.into_iter().chain(more).chain(set.iter().copied());
        set.for_each(|set| all.extend(["--set", set]));
        all.extend(after);
        let mut command = sted(&all);
        command.current_dir(self.stand.folder.path());
        Run::of(command.output().expect("the program starts"))
    }

    /// Returns the state of the crawl, as `sted cluster status` prints it.
    fn status(&self) -> Value {
        let status = self.ask(&["cluster", "status"], &[], &["--json"]);
        serde_json::from_str(&status.out).unwrap_or_else(|error| panic!("{error}: {status:?}"))
    }

    /// Returns how many partitions a node owns.
    fn partitions(&self, name: &str) -> u64 {
        let status = self.status();
        status["nodes"][name]["partitions"].as_u64().unwrap_or_else(|| panic!("{status}"))
    }

    /// Notes the ends of processes. Returns how many still run.
    pub(super) fn running(&mut self) -> usize {
        for node in 0..self.nodes.len() {
            let ended = self.nodes[node]
                .as_mut()
                .is_some_and(|child| child.try_wait().expect("a child of ours").is_some());
            if ended {
                let code = self.nodes[node].take().expect("it runs").wait().expect("ours").code();
                let (out, err) = (self.said(node, "out"), self.said(node, "err"));
                self.ends[node].push(Run { code, out, err });
            }
        }
        self.nodes.iter().flatten().count()
    }

    /// Waits until all processes have ended by themselves.
    pub(super) fn wait(&mut self) {
        let begun = Instant::now();
        while self.running() > 0 {
            if begun.elapsed() > TIME_MAX {
                let all = 0..self.nodes.len();
                let said: String = all.map(|node| self.said(node, "err")).collect();
                (0..self.nodes.len()).for_each(|node| self.kill(node));
                panic!("the crawl did not end within {TIME_MAX:?}: {said}");
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the nodes have archived something between them.
    pub(super) fn wait_until_it_fetches(&mut self) {
        let begun = Instant::now();
        let len = |shared: &Self, node| {
            fs::metadata(shared.job(node).join("crawl.log")).map_or(0, |data| data.len())
        };
        while (0..self.nodes.len()).any(|node| len(self, node) == 0) {
            assert!(begun.elapsed() < TIME_MAX, "a node fetches nothing: {}", self.said(0, "err"));
            sleep(Duration::from_millis(20));
        }
    }

    /// Checks the results of all nodes, of which `faults` came between. Returns how many pages were
    /// requested more than once.
    pub(super) fn judge(mut self, faults: u64) -> u64 {
        self.stand.end_lab();
        for (node, ends) in self.ends.iter().enumerate() {
            let end = ends.last().expect("each node has ended by itself");
            assert!(!end.err.contains("panicked"), "{}", end.err);
            assert_eq!(end.code, Some(0), "node {}: {}{}", NAMES[node], end.out, end.err);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let folder = std::mem::replace(&mut self.stand.folder, folder);
        let end = self.ends[0].pop().expect("it has ended");
        let mut crawl = Crawl::left_in(folder, self.stand.conf.clone(), end);
        let mut all: Option<Facts> = None;
        for name in &NAMES[..self.nodes.len()] {
            crawl.conf.job.directory = PathBuf::from(format!("job-{name}"));
            let facts = Facts::of(&crawl);
            let Some(all) = &mut all else {
                all = Some(facts);
                continue;
            };
            for (url, got) in facts.got {
                let known = all.got.entry(url).or_default();
                known.outcome = known.outcome.take().or(got.outcome);
                known.indexed.extend(got.indexed);
                known.logged.extend(got.logged);
            }
        }
        let facts = all.expect("there are nodes");
        let (mut mistakes, mut repeats) = (Vec::new(), 0);
        for (url, expected) in &facts.expected {
            let got = facts.got.get(url).cloned().unwrap_or_default();
            let is_rules = url.ends_with("/robots.txt");
            // A new owner asks for the rules anew.
            let more = if is_rules { 3 * (faults + 1) } else { faults };
            let outcome = got.outcome.as_ref();
            if !outcome.is_some_and(|outcome| expected.outcomes.contains(outcome)) {
                mistakes.push(format!("{url}: {outcome:?}, not {:?}", expected.outcomes));
            }
            if !(expected.requests.0..=expected.requests.1 + more).contains(&got.requests) {
                mistakes
                    .push(format!("{url}: {} requests, not {:?}", got.requests, expected.requests));
            }
            if (got.indexed.len() as u64) < expected.records.0 {
                mistakes.push(format!("{url}: not in an archive"));
            }
            repeats += u64::from(!is_rules && got.requests > expected.requests.1);
        }
        none(&mistakes);
        let jobs = NAMES[..self.nodes.len()].iter().map(|name| {
            crawl.conf.job.directory = PathBuf::from(format!("job-{name}"));
            crawl.job()
        });
        let jobs: Vec<PathBuf> = jobs.collect();
        let lost: u64 = jobs.iter().map(|job| lost_by(job)).sum();
        println!("{repeats} pages again; the nodes count {lost} as lost");
        assert!(faults > 0 || lost == 0, "{lost} lost without a fault");
        let mut audit = sted(&["audit", "--cluster"]);
        let audit = Run::of(audit.args(jobs).output().expect("the program starts"));
        // What a killed process had sent without a line can't be judged.
        let is_polite = audit.code == Some(0) || faults > 0 && audit.code == Some(21);
        assert!(is_polite, "{}{}", audit.out, audit.err);
        let mut watch = Watch::of(&crawl);
        watch.was_killed = faults > 0;
        none(&watch.disallowed());
        none(&watch.simultaneous_requests());
        let (short, rests) = watch.short_rests();
        none(&short);
        assert!(rests > 50, "{rests} rests were looked at");
        repeats
    }
}

/// Returns how many pages a node has lost to others, as its summary says.
fn lost_by(job: &Path) -> u64 {
    let summary = fs::read(job.join("summary.json")).expect("it has ended");
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    summary["counts"]["pages_lost"].as_u64().unwrap_or(0)
}

/// Three nodes that begin together share a crawl, see each other, and end together.
#[test]
fn three_nodes_share_a_crawl() {
    let mut shared = Shared::new(&web(24, 400, 50, 1), 3);
    (0..3).for_each(|node| shared.start(node));
    shared.wait_until_it_fetches();
    let status = shared.status();
    for name in NAMES {
        assert_eq!(status["nodes"][name]["state"], "active", "{status}");
        assert!(status["nodes"][name]["partitions"].as_u64() > Some(250), "{status}");
    }
    assert_eq!(status["lost"], 0, "{status}");
    let text = shared.ask(&["cluster", "status"], &[], &[]);
    assert!(text.out.contains("URLs wait") && text.out.contains("unread"), "{}", text.out);
    let check = shared.ask(&["check"], &[], &[]);
    assert!(check.out.contains("3 nodes run it now"), "{}", check.out);
    assert!(check.out.contains("the server syncs each message"), "{}", check.out);
    let other = shared.ask(&["check"], &["cluster.lease=60s"], &[]);
    assert!(other.out.contains("`lease` is 60s here, but 5s"), "{}", other.out);
    judge_status(&shared);
    let order = shared.ask(&["cluster", "ctl"], &[], &["slow", "h0001.test", "60ms"]);
    assert_eq!(order.code, Some(0), "{order:?}");
    shared.wait();
    for node in 0..3 {
        let log = fs::read_to_string(shared.job(node).join("commands.log")).expect("it has one");
        assert!(log.contains("\"shared\":1"), "{log}");
    }
    let repeats = shared.judge(0);
    assert_eq!(repeats, 0, "nothing went wrong");
}

/// Checks what `sted status` and the metrics say of the nodes of a running crawl; cuts off the last
/// one for a moment.
fn judge_status(shared: &Shared) {
    let part = shared.wait_for_status(0, |part| {
        let is_any = |number: &Value| number.as_u64() > Some(0);
        is_any(&part["reading"]["messages"]) && is_any(&part["publishing"]["messages"])
    });
    assert_eq!((&part["node"], &part["state"]), (&"a".into(), &"active".into()), "{part}");
    assert_eq!((&part["nodes"], &part["pages_lost"]), (&3.into(), &0.into()), "{part}");
    let partitions = part["partitions"].as_object().expect("counts");
    let held = partitions.values().filter_map(Value::as_u64).sum::<u64>();
    assert!((250..450).contains(&held), "{part}");
    let left = part["session_left_s"].as_f64().expect("it has a session");
    assert!(left > 0.0 && left < LEASE.as_secs_f64(), "{part}");
    assert_eq!(part["disconnected_s"], Value::Null, "{part}");
    let job = shared.job(0);
    let text = Run::of(sted(&["status", job.to_str().expect("UTF-8")]).output().expect("starts"));
    assert!(text.out.contains("shared crawl, node a of 3\n  session     active"), "{text:?}");

    shared.relay.cut();
    let cut = shared.wait_for_status(2, |part| part["disconnected_s"].is_u64());
    shared.relay.mend();
    let how = cut["held_up_by"][0].as_str().expect("a text");
    assert!(how.starts_with("the queue can't be reached since"), "{cut}");
    shared.wait_for_status(2, |part| part["disconnected_s"].is_null() && !part.is_null());

    let file = shared.stand.path("a.prom");
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < TIME_MAX, "there are no metrics");
        sleep(Duration::from_millis(20));
    }
    let metrics = File::open(&file).expect("the crawl runs");
    let said = fs::read_to_string(&file).expect("the crawl runs");
    assert!(said.contains("\nsted_cluster_node_info{node=\"a\"} 1\n"), "{said}");
    let checked = Command::new("promtool").args(["check", "metrics"]).stdin(metrics).output();
    let Ok(checked) = checked else { return lacks("three_nodes_share_a_crawl", "promtool") };
    let checked = Run::of(checked);
    assert_eq!((checked.out.as_str(), checked.err.as_str()), ("", ""), "no remark");
}

/// A node joins while two crawl, another leaves in order and comes back: nothing is fetched twice,
/// only the share of the one that joins moves, and a server that moves isn't asked for little more
/// than a lease and the second that its new owner has to wait (`delay_max`).
#[test]
fn nodes_join_and_leave_a_running_crawl() {
    let mut shared = Shared::new(&web(120, 9_000, 250, 2), 3);
    (0..2).for_each(|node| shared.start(node));
    sleep(Duration::from_secs(8));
    shared.start(2);
    sleep(Duration::from_secs(8));
    let moved = shared.partitions(NAMES[2]);
    assert!((280..=400).contains(&moved), "a third of 1,024 moves, not {moved}");
    shared.leave(1);
    shared.start(1);
    shared.wait();
    let handovers = shared.handovers();
    let repeats = shared.judge(0);
    assert_eq!(repeats, 0, "all went in order");
    println!("{moved} of 1,024 partitions went to the node that joined; {handovers}");
    let most = LEASE + Duration::from_secs(3);
    assert!(handovers.count() > 20 && handovers.median() < most, "{handovers}");
}

/// `make cluster-upgrade OLD=path`: nodes are stopped in order one after the other, and go on by
/// this program.
#[test]
#[ignore = "it needs the program of an earlier version: make cluster-upgrade"]
fn a_rolling_upgrade() {
    let Some(old) = std::env::var_os("STED_OLD") else { panic!("OLD is the path of a program") };
    let mut shared = Shared::new(&web(120, 4_800, 500, 3), 3);
    shared.program = Some(old.into());
    (0..3).for_each(|node| shared.start(node));
    shared.wait_until_it_fetches();
    shared.program = None;
    for node in 0..3 {
        sleep(Duration::from_secs(4));
        shared.leave(node);
        shared.start(node);
    }
    shared.wait();
    let handovers = shared.handovers();
    let repeats = shared.judge(0);
    println!("{handovers}");
    assert_eq!(repeats, 0, "all went in order");
}

/// A few faults, in every run of the tests.
#[test]
fn a_shared_crawl_survives_faults() {
    println!("{} pages again", survive(5, 3));
}

/// `make cluster-faults N=50`.
#[test]
#[ignore = "more faults are done by hand: make cluster-faults"]
fn more_faults() {
    let wanted = trials::asked("STED_FAULTS_N").unwrap_or(50);
    let (mut done, mut repeats) = (0, 0);
    while done < wanted {
        let faults = 5.min(wanted - done);
        repeats += survive(faults, 100 + done);
        done += faults;
        println!("{done} faults survived, {repeats} pages requested again so far");
    }
}

/// Crawls with so many faults, a few seconds apart. Returns how many pages were requested again.
fn survive(faults: u64, seed: u64) -> u64 {
    let mut draw = Random(seed);
    let mut shared = Shared::new(&web(24, 1_400, 200, seed), 3);
    (0..3).for_each(|node| shared.start(node));
    shared.wait_until_it_fetches();
    for fault in 0..faults {
        sleep(Duration::from_millis(500 + draw.below(2_500_u64)));
        let node = draw.below(3_usize);
        let kind = (seed + fault) % 6;
        println!("fault {fault} of seed {seed}: kind {kind}, node {}", NAMES[node]);
        match kind {
            0 => {
                shared.kill(node);
                sleep(Duration::from_millis(draw.below(3_000_u64)));
                shared.start(node);
            }
            1 => {
                shared.server.kill();
                sleep(Duration::from_millis(draw.below(2_000_u64)));
                shared.server.restart();
            }
            2 => {
                shared.kill(node);
                shared.server.kill();
                shared.server.restart();
                shared.start(node);
            }
            3 => {
                if let Some(child) = &shared.nodes[node] {
                    signal(child, "-STOP");
                    sleep(LEASE + Duration::from_secs(3));
                    signal(child, "-CONT");
                }
            }
            4 => {
                shared.relay.cut();
                sleep(Duration::from_millis(500 + draw.below(8_000_u64)));
                shared.relay.mend();
            }
            _ => {
                shared.server.stop();
                sleep(Duration::from_millis(500 + draw.below(3_000_u64)));
                shared.server.go_on();
            }
        }
        // A node whose process has ended in the meantime comes back: the crawl may be over for it.
        shared.running();
    }
    shared.wait();
    shared.judge(faults)
}

/// `make cluster`: 600 hosts, with a summary of the whole.
#[test]
#[ignore = "it takes minutes: make cluster"]
fn six_hundred_hosts() {
    let begun = Instant::now();
    let mut shared = Shared::new(&web(600, 24_000, 200, 7), 3);
    (0..3).for_each(|node| shared.start(node));
    shared.wait();
    for (node, name) in NAMES.iter().enumerate() {
        let out = shared.said(node, "out");
        let lines = ["pages", "requests", "received", "archive", "loop lag", "core"];
        let is_shown = |line: &&str| lines.iter().any(|name| line.starts_with(name));
        let shown: Vec<&str> = out.lines().filter(is_shown).collect();
        println!("node {name}\n  {}", shown.join("\n  "));
    }
    let took = begun.elapsed();
    let repeats = shared.judge(0);
    println!("600 hosts by three nodes in {took:.0?}, {repeats} pages requested twice");
    assert_eq!(repeats, 0, "nothing went wrong");
}
