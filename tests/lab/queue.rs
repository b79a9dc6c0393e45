//! Shared crawls whose server is full, is one of three that is lost, or has strangers in it: each
//! crawl says so, and ends whole.

use super::nodes::{Shared, USER, web};
use crate::real::nats::{Client, Server};
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a message in a log is waited for.
const SAID_MAX: Duration = Duration::from_secs(60);

/// Waits until a node has said something.
fn wait_until_said(shared: &mut Shared, node: usize, what: &str) {
    let begun = Instant::now();
    while !shared.said(node, "err").contains(what) {
        let is_late = begun.elapsed() > SAID_MAX || shared.running() == 0;
        assert!(!is_late, "node {node} doesn't say {what:?}: {}", shared.said(node, "err"));
        sleep(Duration::from_millis(50));
    }
}

/// JetStream's store is full before the crawl is done: the nodes wait, with the cause and a fix in
/// their logs, until the server is restarted with more room.
#[test]
fn a_full_store_is_waited_for() {
    let server = Server::start_limited("2m", "max_file_store: 200KB", USER);
    let mut shared = Shared::with(server, &web(24, 900, 50, 11), 2);
    (0..2).for_each(|node| shared.start(node));
    wait_until_said(&mut shared, 0, "give JetStream more room (max_file_store");
    sleep(Duration::from_secs(8));
    assert_eq!(shared.running(), 2, "{}", shared.said(0, "err"));
    shared.server.lift_limits();
    shared.wait();
    let said = shared.said(0, "err");
    println!("{}", said.lines().filter(|line| line.contains("cluster:")).collect::<String>());
    println!("{} pages again", shared.judge(1));
}

/// Someone else publishes to the crawl's logs and writes in its bucket: messages that make no
/// sense, under subjects and keys of the crawl and others.
#[test]
fn strangers_in_the_queue_are_skipped() {
    let mut shared = Shared::with(Server::start("2m", USER), &web(24, 600, 80, 12), 2);
    (0..2).for_each(|node| shared.start(node));
    shared.wait_until_it_fetches();
    let mut client = Client::connect(shared.server.address());
    client.log_in("stranger", "other");
    for subject in ["log.5", "log.17", "log.500", "log.1023", "log.1024", "log.x"] {
        for message in ["", "hello", "\u{1}\u{2}\u{3}", &"x".repeat(5_000)] {
            client.request(&format!("sted.lab.{subject}"), message);
        }
    }
    for key in ["report.a", "report.zz", "orders", "stranger", "partition.5000", "node.A"] {
        client.request(&format!("$KV.sted-lab.{key}"), "hello");
    }
    shared.wait();
    for node in 0..2 {
        let said = shared.said(node, "err");
        for what in [
            "the subject \"sted.lab.log.x\", which is no log",
            "has the key \"stranger\", which is no crawl's: remove it",
            "the report of the node zz makes no sense",
            "the commands to all nodes make no sense",
        ] {
            assert!(said.contains(what), "{node}: {what:?} isn't in {said}");
        }
        let out = shared.said(node, "out");
        assert!(out.contains("that make no sense: skipped"), "{out}");
    }
    // One node may own all partitions that have such messages, and warns of ten.
    let said = [0, 1].map(|node| shared.said(node, "err")).concat();
    let warnings = said.matches("cluster: a message of partition ").count();
    assert!((10..=16).contains(&warnings), "{warnings}: {said}");
    shared.judge(1);
}

/// Three servers keep each message. The one that leads the stream of the logs is killed, and the
/// crawl goes on with the two others.
#[test]
fn a_server_of_three_is_lost() {
    let mut servers = Server::start_several(3);
    let urls = json!(servers.iter().map(Server::url).collect::<Vec<_>>()).to_string();
    let mut clients: Vec<_> =
        servers.iter().map(|server| Client::connect(server.address())).collect();
    clients.iter_mut().for_each(Client::greet);
    let mut shared = Shared::with(servers.pop().expect("three"), &web(24, 600, 80, 13), 2);
    shared.servers = Some(urls);
    shared.more = vec!["cluster.replicas=3".to_owned()];
    (0..2).for_each(|node| shared.start(node));
    shared.wait_until_it_fetches();
    let info = clients[0].request("$JS.API.STREAM.INFO.sted-lab", "");
    assert_eq!(info["config"]["num_replicas"], 3, "{info}");
    let leader = info["cluster"]["leader"].as_str().and_then(|name| name[1..].parse().ok());
    let leader: usize = leader.unwrap_or_else(|| panic!("no leader: {info}"));
    println!("server {leader} leads, and is killed");
    match servers.get_mut(leader) {
        Some(server) => server.kill(),
        None => shared.server.kill(),
    }
    shared.wait();
    for node in 0..2 {
        println!("{}", shared.said(node, "err"));
    }
    println!("{} pages again", shared.judge(1));
}
