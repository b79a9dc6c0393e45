//! Several nodes that share one crawl, simulated.

use super::stand::Plan;
use super::varied;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sted::cluster::queue::{Key, Name};
use sted::cluster::{Partition, Partitioner, member, outbox};
use sted::engine::Engine;
use sted::engine::command::{Command, Order, SharedOrder, SharedOrders, Target};
use sted::engine::contract::StopReason;
use sted::engine::node::Settings;
use sted::engine::status::{NodeState, Partitions, Sharing};
use sted::ground::stats::{Meter, still};
use sted::ground::time::{Instant, Now};
use sted::seeds::Seed;
use sted::study::sim::cluster::Cluster;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::settings::Exchange;
use sted::study::sim::{Observation, World, queue};
use sted::study::web::{Budget, Kind, Manifest, Place, Resource, Web};
use sted::url::Url;

const KEY: [u8; 16] = [7; 16];
/// The least time between two requests to a server.
const DELAY: Duration = Duration::from_millis(200);

/// A request that a server has received.
#[derive(Clone, Debug)]
struct Asked {
    at: Instant,
    node: usize,
    host: u32,
    path: Box<str>,
}

type Log = Arc<Mutex<Vec<Asked>>>;

fn plan() -> Plan {
    let web = sted::study::web::Settings { hosts: 60, pages: 1_500, ..varied(3) };
    Plan::new(web).with(&[
        "connections.open_max = 16",
        "politeness.delay = \"200ms\"",
        "politeness.delay_factor = 0",
        "politeness.burst = 1",
        "politeness.address_visits_max = 6",
        "state.keep = true",
        "state.checkpoint_period = \"5s\"",
    ])
}

fn settings_of(node: usize) -> Settings {
    Settings {
        node: Name::new(&format!("node-{node}")).expect("a name"),
        incarnation: 1 + node as u64,
        previous: None,
        member: member::Settings {
            key: KEY,
            partitions: 1_024,
            ttl: Duration::from_secs(6),
            drift_ppm: 500,
            settle: Duration::from_secs(5),
            equal: Vec::new(),
        },
        outbox: outbox::Settings { wait_max: Duration::from_millis(500), ..Default::default() },
        sent_log2: 12,
        facts_log2: 12,
        portion_bytes: 128 << 10,
        snapshot_bytes_min: 2 << 10,
        reading_wait: Duration::from_secs(20),
        broken: None,
    }
}

/// Returns a world and the crawl in it: a node's, or one of its own.
fn node(plan: &Plan, cluster: Option<Settings>, number: usize, log: &Log) -> (World, Engine) {
    node_with(&plan.parts().1, plan, cluster, number, log)
}

/// Returns a world and the crawl in it, which begins with these seeds.
fn node_with(
    seeds: &[Seed],
    plan: &Plan,
    cluster: Option<Settings>,
    number: usize,
    log: &Log,
) -> (World, Engine) {
    let world = world(plan, number, log);
    let engine = crawl(seeds, plan, cluster, world.now()).unwrap_or_else(|error| panic!("{error}"));
    (world, engine)
}

/// Returns the world that a node sees, which logs the node's requests.
fn world(plan: &Plan, number: usize, log: &Log) -> World {
    let mut world = World::of_web(plan.parts().0, plan.world.clone());
    let log = Arc::clone(log);
    world.watch_servers(Box::new(move |at, seen| {
        if let Observation::Request { host, path, .. } = seen {
            let asked = Asked { at, node: number, host: *host, path: path.clone() };
            log.lock().expect("no test panics here").push(asked);
        }
    }));
    world
}

/// Begins a crawl.
fn crawl(
    seeds: &[Seed],
    plan: &Plan,
    cluster: Option<Settings>,
    now: Now,
) -> Result<Engine, String> {
    let (.., mut settings) = plan.parts();
    (settings.cluster, settings.fingerprint_key) = (cluster, KEY);
    let disk = Box::new(MemoryDisk::new());
    let engine = Engine::open(settings, seeds, disk, Meter::new(still), now);
    engine.map_err(|error| error.to_string())
}

/// Returns the URLs of pages that were asked for, by host and path, and how often.
fn pages(log: &Log) -> BTreeMap<(u32, Box<str>), usize> {
    let mut pages = BTreeMap::new();
    for asked in log.lock().expect("no test panics here").iter() {
        if &*asked.path != "/robots.txt" {
            *pages.entry((asked.host, asked.path.clone())).or_default() += 1;
        }
    }
    pages
}

/// Three nodes, which join one after the other, ask together for what one crawler asks for, each
/// URL once; whoever asks a server, it gets its rests.
#[test]
fn three_nodes_fetch_what_one_does() {
    let alone = Log::default();
    let plan = plan();
    let (mut world, mut engine) = node(&plan, None, 0, &alone);
    world.run(&mut engine).expect("it ends");
    let expected = pages(&alone);
    assert!(expected.len() > 1_000);

    let log = Log::default();
    let nodes = (0..3).map(|number| node(&plan, Some(settings_of(number)), number, &log));
    let mut cluster = Cluster::new(nodes.collect(), queue::Settings::default());
    let enough = &mut |_: &mut Cluster| true;
    cluster.run_until(Instant::from_micros(150_000_000), enough).expect("it goes on");
    let found = pages(&log);
    let repeated: Vec<_> =
        found.iter().filter(|(url, times)| expected.get(*url) != Some(times)).collect();
    let how = |(host, path): &(u32, Box<str>)| {
        let log = log.lock().expect("no test panics here").clone();
        log.into_iter().filter(|it| it.host == *host && it.path == *path).collect::<Vec<_>>()
    };
    let first = repeated.first().map(|(url, _)| how(url));
    assert!(repeated.is_empty(), "asked for otherwise: {repeated:?}, {first:?}");
    let (found, expected): (BTreeSet<_>, BTreeSet<_>) =
        (found.into_keys().collect(), expected.into_keys().collect());
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(missing.is_empty(), "never asked for: {missing:?}");

    let mut last: BTreeMap<u32, Asked> = BTreeMap::new();
    let mut shares = [0; 3];
    let mut log = log.lock().expect("no test panics here").clone();
    log.sort_by_key(|asked| asked.at);
    for asked in log {
        shares[asked.node] += 1;
        if let Some(before) = last.insert(asked.host, asked.clone()) {
            assert!(asked.at.since(before.at) >= DELAY, "{before:?}, {asked:?}");
        }
    }
    assert!(shares.iter().all(|requests| *requests > 200), "{shares:?}");
    println!("{shares:?} {:?}", cluster.queue().figures());
}

/// Returns whether no crawl has come to its end.
fn goes_on(cluster: &Cluster) -> bool {
    let mut engines = cluster.nodes().iter().filter_map(|node| node.engine.as_ref());
    engines.all(|engine| engine.stop_reason().is_none())
}

/// Returns, for each domain of a web, how many other domains have a page that links or redirects to
/// it: of the pages that a crawl of all hosts fetches.
fn linking_domains(web: &Web) -> BTreeMap<String, usize> {
    let domain = |host: u32| {
        let name = web.host(host).name;
        let labels: Vec<&str> = name.rsplitn(3, '.').take(2).collect();
        format!("{}.{}", labels[1], labels[0])
    };
    let mut pairs = BTreeSet::new();
    for entry in Manifest::new(web, Budget::default()).entries {
        let Place { host, resource } = entry.place;
        if entry.requests.max > 0 {
            let mut targets: Vec<Place> =
                web.links(entry.place).into_iter().map(|link| link.to).collect();
            if let Resource::Page(page) = resource
                && web.kind(host, page) == Kind::Redirect
            {
                targets.push(web.redirect_of(host, page));
            }
            pairs.extend(targets.into_iter().map(|to| (domain(to.host), domain(host))));
        }
    }
    let mut counts: BTreeMap<String, usize> =
        (0..web.hosts()).map(|host| (domain(host), 0)).collect();
    for (target, source) in pairs {
        *counts.entry(target.clone()).or_default() += usize::from(source != target);
    }
    counts
}

/// The owner of a domain knows how many others link to it, however many nodes fetch the pages that
/// do. The nodes share the partitions before they get the seeds, so that no domain changes hands.
#[test]
fn nodes_count_links_between_domains() {
    let mut plan = plan().with(&[
        "quality.source = \"inlinks\"",
        "quality.site = \"domain\"",
        "quality.sites_max = 10_000",
        "links.nofollow = \"ignore\"",
    ]);
    plan.web.hosts_per_domain = 2;
    let (web, seeds, _) = plan.parts();
    let expected = linking_domains(&web);
    assert!(expected.len() > 25 && expected.values().filter(|count| **count > 3).count() > 10);
    for count in [1, 3] {
        let log = Log::default();
        let begin = |number| node_with(&[], &plan, Some(settings_of(number)), number, &log);
        let mut cluster = Cluster::new((0..count).map(begin).collect(), Default::default());
        let names: Vec<String> = (0..count).map(|number| format!("node-{number}")).collect();
        let partitioner = Partitioner::new(KEY);
        // A crawl without seeds ends as soon as its nodes have shared the partitions.
        let is_shared = |cluster: &Cluster| {
            Partition::all().all(|partition| {
                let should = partitioner.node_for(partition, names.iter().map(String::as_str));
                let entry = cluster.queue().entry(&Key::Partition(partition));
                let owner = entry.and_then(|(_, value)| member::owner_in(value));
                owner.is_some_and(|owner| Some(owner.name.as_str()) == should)
            })
        };
        let until_shared = &mut |cluster: &mut Cluster| !is_shared(cluster);
        cluster.run_until(Instant::from_micros(40_000_000), until_shared).expect("it goes on");
        let node = &mut cluster.nodes_mut()[0];
        let (now, engine) = (node.world.now(), node.engine.as_mut().expect("it lives"));
        seeds.iter().for_each(|seed| engine.seed(now, seed));
        let until_over = &mut |cluster: &mut Cluster| goes_on(cluster);
        cluster.run_until(Instant::from_micros(300_000_000), until_over).expect("it goes on");
        let known = expected.keys().map(|domain| {
            let partition = partitioner.of(domain);
            let owner = partitioner.node_for(partition, names.iter().map(String::as_str));
            let owner = names.iter().position(|name| Some(name.as_str()) == owner);
            let node = &cluster.nodes()[owner.expect("one of them")];
            let engine = node.engine.as_ref().expect("it lives");
            let url = Url::parse(&format!("http://www.{domain}/")).expect("a URL");
            let quality = engine.quality_of(url.view()).millionths();
            (domain.clone(), (quality / 1_000_000 - 1) as usize)
        });
        let known: BTreeMap<String, usize> = known.collect();
        let asked = log.lock().expect("no test panics here").len();
        assert_eq!(known, expected, "{count} nodes, {asked} requests");
    }
}

/// The core works for exactly what passes between a node and the queue, if nothing else costs
/// anything; what the nodes have counted is what the queue has.
#[test]
fn what_is_exchanged_is_charged() {
    let mut plan = plan();
    plan.world.core.exchange = Exchange::MEASURED;
    let log = Log::default();
    let nodes = (0..2).map(|number| node(&plan, Some(settings_of(number)), number, &log));
    let mut cluster = Cluster::new(nodes.collect(), queue::Settings::default());
    let goes_on = &mut |cluster: &mut Cluster| goes_on(cluster);
    cluster.run_until(Instant::from_micros(40_000_000), goes_on).expect("it goes on");
    let costs = Exchange::MEASURED;
    let (mut bytes, mut messages) = (0, 0);
    for node in cluster.nodes() {
        let (figures, engine) = (node.world.figures(), node.engine.as_ref().expect("it lives"));
        let sums = figures.exchanged;
        assert!(sums.urls_written > 500 && sums.links_read > 500 && sums.settled_read > 0);
        let ns = costs.link_ns * engine.counts().links
            + costs.write_ns * sums.urls_written
            + costs.write_message_ns * sums.messages_written
            + costs.read_ns * sums.links_read
            + costs.settled_ns * sums.settled_read
            + costs.read_message_ns * sums.messages_read
            + costs.call_ns * sums.calls;
        let ps = costs.write_byte_ps * sums.bytes_written + costs.read_byte_ps * sums.bytes_read;
        assert_eq!(figures.core_busy, Duration::from_nanos(ns + ps / 1_000));
        bytes += sums.bytes_written;
        messages += sums.messages_written;
    }
    let queue = cluster.queue().figures();
    assert_eq!((queue.message_bytes, queue.messages), (bytes, messages));
}

/// The status of each node says what the node does, what it waits for, and what it has exchanged
/// with the queue; at last all partitions are crawled and all is read.
#[test]
fn a_status_says_what_a_node_does() {
    let plan = plan();
    let log = Log::default();
    let (_, engine) = node(&plan, None, 0, &log);
    assert_eq!(engine.status().cluster, None, "nobody shares it");
    let nodes = (0..3).map(|number| {
        // Small portions, so that some of a log is left.
        let settings = Settings { portion_bytes: 256, ..settings_of(number) };
        node(&plan, Some(settings), number, &log)
    });
    let mut cluster = Cluster::new(nodes.collect(), queue::Settings::default());
    let of = |cluster: &Cluster, node: usize| {
        let engine = cluster.nodes()[node].engine.as_ref().expect("it lives");
        engine.status().cluster.expect("it is a node")
    };
    let begun = of(&cluster, 0);
    assert_eq!((begun.node.as_str(), begun.state), ("node-0", NodeState::NoSession));
    assert_eq!((begun.session_left_s, begun.disconnected_s), (None, Some(0)));
    assert!(begun.held_up_by[0].contains("never reached"), "{begun:?}");

    let (mut slices, mut waited, mut unread) = (0, BTreeSet::new(), 0);
    let watch = &mut |cluster: &mut Cluster| {
        slices += 1;
        for node in (0..3).filter(|_| slices % 10 == 0) {
            let part = of(cluster, node);
            let Partitions { waiting, reading, .. } = part.partitions;
            let is_said = |what: &str| part.held_up_by.iter().any(|how| how.contains(what));
            assert_eq!(waiting > 0, is_said("delay_max"), "{part:?}");
            assert_eq!(reading > 0, is_said("logs are read"), "{part:?}");
            assert_eq!(part.reading.unread_messages > 0, part.reading.unread_logs > 0);
            waited.extend((waiting > 0).then_some(node));
            unread += part.reading.unread_messages;
        }
        true
    };
    cluster.run_until(Instant::from_micros(30_000_000), watch).expect("it goes on");
    assert!(waited.len() == 3 && unread > 0, "{waited:?}, {unread}");
    let is_busy =
        |part: Sharing| part.reading.unread_messages > 0 || part.publishing.unsent_memory_bytes > 0;
    let until_quiet = &mut |cluster: &mut Cluster| {
        slices += 1;
        slices % 50 > 0 || (0..3).any(|node| is_busy(of(cluster, node)))
    };
    cluster.run_until(Instant::from_micros(150_000_000), until_quiet).expect("it goes on");

    let parts: Vec<Sharing> = (0..3).map(|node| of(&cluster, node)).collect();
    let sum = |of: fn(&Sharing) -> u64| parts.iter().map(of).sum::<u64>();
    for part in &parts {
        assert_eq!((part.state, part.nodes), (NodeState::Active, 3), "{part:?}");
        assert!(part.session_left_s.is_some_and(|left| left > 0.0 && left < 6.0), "{part:?}");
        assert!(part.held_up_by.is_empty() && part.disconnected_s.is_none(), "{part:?}");
        assert!(part.publishing.links > 50 && part.publishing.links_held_back > 50, "{part:?}");
        assert_eq!((part.reading.unread_messages, part.reading.behind_s), (0, 0.0), "{part:?}");
        assert_eq!((part.reading.damaged, part.pages_lost), (0, 0), "{part:?}");
    }
    assert_eq!(sum(|part| part.partitions.crawled.into()), 1_024);
    assert_eq!(sum(|part| part.partitions.held().into()), 1_024);
    let queue = cluster.queue().figures();
    assert_eq!(sum(|part| part.publishing.messages), queue.messages);
    assert_eq!(sum(|part| part.publishing.bytes), queue.message_bytes);
    assert_eq!(sum(|part| part.publishing.publications), queue.publications);
    assert!(sum(|part| part.reading.messages) >= queue.messages - queue.purged);
}

/// `limits.pages_max` is that of all nodes together. What is fetched beyond it is what was under
/// way and what the others fetch until they hear of it, at most a third of a lease later.
#[test]
fn a_limit_is_that_of_all_nodes() {
    const MOST: u64 = 700;
    let plan = plan().with(&[&format!("limits.pages_max = {MOST}")]);
    let log = Log::default();
    let nodes = (0..3).map(|number| node(&plan, Some(settings_of(number)), number, &log));
    let mut cluster = Cluster::new(nodes.collect(), queue::Settings::default());
    let (mut pages, mut reached) = ([0; 3], None);
    let until_over = &mut |cluster: &mut Cluster| {
        for (node, pages) in cluster.nodes().iter().zip(&mut pages) {
            *pages = node.engine.as_ref().map_or(*pages, |engine| engine.counts().pages);
        }
        if pages.iter().sum::<u64>() >= MOST {
            reached.get_or_insert(cluster.now());
        }
        cluster.nodes().iter().any(|node| node.engine.is_some())
    };
    cluster.run_until(Instant::from_micros(300_000_000), until_over).expect("it goes on");
    let ends: Vec<_> = cluster.nodes().iter().map(|node| node.ended).collect();
    assert_eq!(ends, [Some(StopReason::Pages); 3]);
    let beyond = pages.iter().sum::<u64>().checked_sub(MOST).expect("it was reached");
    assert!(pages.iter().all(|pages| *pages > 100), "{pages:?}");
    let last = log.lock().expect("no test panics here").iter().map(|asked| asked.at).max();
    let late = last.expect("there are requests").since(reached.expect("it was reached"));
    let hears = settings_of(0).member.ttl / 3 + Duration::from_millis(200);
    assert!(late <= hears, "asked {late:?} after the limit was reached, {beyond} pages beyond it");
    println!("{beyond} pages beyond {MOST}, the last request {late:?} after the limit was reached");
}

/// A command that is given to all nodes holds at once, whoever has the host, and for a node that
/// joins later.
#[test]
fn a_command_reaches_all_nodes() {
    let plan = plan().with(&["politeness.delay = \"1s\""]);
    let (web, seeds, _) = plan.parts();
    let log = Log::default();
    let worlds = (0..3).map(|number| world(&plan, number, &log)).collect();
    let mut cluster = Cluster::of_worlds(worlds, queue::Settings::default());
    let begin = |cluster: &mut Cluster, number| {
        let settings = Some(settings_of(number));
        let began = cluster.begin(number, |now| crawl(&seeds, &plan, settings, now));
        began.unwrap_or_else(|error| panic!("{error}"));
    };
    (0..2).for_each(|number| begin(&mut cluster, number));
    let run = |cluster: &mut Cluster, seconds: u64| {
        let until = Instant::from_micros(seconds * 1_000_000);
        cluster.run_until(until, &mut |_| true).expect("it goes on");
    };
    run(&mut cluster, 12);
    // Hosts with many pages: of the first node, and of the one that will join.
    let names = ["node-0", "node-1", "node-2"];
    let partitioner = Partitioner::new(KEY);
    let goes_to = |node: &str, host: u32| {
        let name = web.host(host).name;
        let labels: Vec<&str> = name.rsplitn(3, '.').take(2).collect();
        let partition = partitioner.of(&format!("{}.{}", labels[1], labels[0]));
        partitioner.node_for(partition, names.into_iter()) == Some(node)
    };
    let blocked = ["node-0", "node-2"].map(|node| {
        let hosts = (0..web.hosts()).filter(|host| goes_to(node, *host));
        hosts.max_by_key(|host| web.host(*host).pages).expect("it gets some")
    });
    let asked = |from: u64| {
        let log = log.lock().expect("no test panics here").clone();
        let late = move |asked: &Asked| asked.at >= Instant::from_micros(from * 1_000_000);
        log.into_iter().filter(late).collect::<Vec<_>>()
    };
    let all = asked(0);
    for host in blocked {
        let pages = all.iter().filter(|asked| asked.host == host).count();
        let most = web.host(host).pages as usize;
        assert!((1..most * 3 / 4).contains(&pages), "{pages} of {most}: it would go on");
    }
    let orders = blocked.into_iter().zip(1..).map(|(host, number)| {
        let target = Target::Host(web.host(host).name);
        let order = Order::new("ann", Command::Block { target });
        SharedOrder { number, at: String::new(), order }
    });
    let list = SharedOrders { format: 1, orders: orders.collect() };
    cluster.put(Key::Orders, serde_json::to_vec(&list).expect("plain values").into());
    run(&mut cluster, 14);
    begin(&mut cluster, 2);
    run(&mut cluster, 60);
    let late = asked(14);
    assert!(late.iter().any(|asked| asked.node == 2), "the third node takes part");
    let wrong: Vec<_> = late.iter().filter(|asked| blocked.contains(&asked.host)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// A node that is stopped while it follows redirects leaves at once: their next hops go to the logs
/// of whoever gets the partitions, and nothing is requested twice.
#[test]
fn a_node_leaves_amidst_redirects() {
    let mut plan = plan();
    plan.web.redirect = 0.15;
    let web = plan.parts().0;
    let alone = Log::default();
    let (mut world, mut engine) = node(&plan, None, 0, &alone);
    world.run(&mut engine).expect("it ends");
    let expected = pages(&alone);
    let mut amidst = 0;
    for at in (6_000..8_000).step_by(100) {
        let log = Log::default();
        let nodes = (0..2).map(|number| node(&plan, Some(settings_of(number)), number, &log));
        let mut cluster = Cluster::new(nodes.collect(), queue::Settings::default());
        let until = |ms: u64| Instant::from_micros(ms * 1_000);
        cluster.run_until(until(at), &mut |_| true).expect("it goes on");
        let node = &mut cluster.nodes_mut()[0];
        let (now, engine) = (node.world.now(), node.engine.as_mut().expect("it lives"));
        engine.stop(now, StopReason::Interrupted);
        // Before the next hop is requested the server rests.
        let is_followed = |asked: &&Asked| {
            let place = web.place(asked.host, &asked.path);
            let is_redirect = |place: Place| match place.resource {
                Resource::Page(page) => web.kind(place.host, page) == Kind::Redirect,
                _ => false,
            };
            asked.node == 0 && asked.at + DELAY / 2 > until(at) && place.is_some_and(is_redirect)
        };
        amidst += log.lock().expect("no test panics here").iter().filter(is_followed).count();
        let until_left = &mut |cluster: &mut Cluster| cluster.nodes()[0].engine.is_some();
        cluster.run_until(until(at + 15_000), until_left).expect("it goes on");
        let left = &cluster.nodes()[0];
        assert_eq!(left.ended, Some(StopReason::Interrupted), "stopped after {at} ms");
        let until_over = &mut |cluster: &mut Cluster| cluster.nodes()[1].engine.is_some();
        cluster.run_until(until(300_000), until_over).expect("it goes on");
        assert_eq!(pages(&log), expected, "stopped after {at} ms");
    }
    assert!(amidst > 5, "{amidst} times amidst a chain");
}
