//! Crawls of one web by a crawler alone or by several nodes, and what they did in the middle half
//! of the pages.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sted::cluster::queue::{Event, Name, Request};
use sted::cluster::record::{Reader, Record};
use sted::cluster::{member, outbox};
use sted::commands::settings;
use sted::conf::Conf;
use sted::engine::{Engine, node};
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::seeds;
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::queue::{self, Queue};
use sted::study::sim::settings::{Core, Exchange};
use sted::study::sim::{self, Figures, Observation, World};
use sted::study::web::{Place, Ports, Resource, Settings, Spread, TimeSpread, Web};

/// What is crawled, and by whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The number of nodes; 0 for a crawler without a cluster.
    pub(super) nodes: usize,
    /// The pages that all of them together get.
    pub(super) pages: u32,
    /// The pages that there are.
    pub(super) of_pages: u32,
    pub(super) hosts: u32,
    /// How long a server rests after a page.
    pub(super) delay_ms: u64,
    /// The size of the cache of links that were sent, as a power of two.
    pub(super) sent_log2: u32,
}

impl Default for Plan {
    fn default() -> Self {
        Self { nodes: 1, pages: 3_000, of_pages: 10_000, hosts: 100, delay_ms: 300, sent_log2: 16 }
    }
}

/// The head of the table that [`run`] prints a line of.
pub(super) const HEAD: &str = "nodes,pages,of_pages,delay_ms,sent_log2,pages_per_second,\
    middle_seconds,seconds,pages_by_node,busy,links_per_page,links_written,settled_written,\
    links_read,links_read_own,bytes_written,bytes_read,bytes_read_own,messages_written,\
    messages_read,publications,bytes_compressed,calls,exchange_us,page_us,repeated";

/// The web of the crawls: pages like those of the open web, of 190 KB and 60 links on average, over
/// TLS and coded, one a connection, from servers that are near.
pub(super) fn web(hosts: u32, pages: u32) -> Settings {
    let times = |ms, sigma| TimeSpread { median: Duration::from_millis(ms), sigma };
    Settings {
        hosts,
        seeds: hosts,
        pages,
        links: Spread { median: 60.0, sigma: 0.0 },
        locality: 0.8,
        link_skew: 4,
        page_bytes: Spread { median: 138_000.0, sigma: 0.8 },
        tls: 1.0,
        gzip: 1.0,
        requests_per_connection: vec![(1.0, 1)],
        think_time: times(30, 0.5),
        round_trip: times(20, 0.5),
        dns_time: times(20, 0.5),
        ..Settings::default()
    }
}

/// The core of the machine that `bench/runs/2026-11-27-open` describes, by the stages that are
/// listed there for `warc`: 550 us for a page.
fn core() -> Core {
    Core {
        turn_ns: 5_000,
        watch_ns: 0,
        // Half of `send`, and `dns`.
        connect_ns: 70_000,
        // Of `tls` what isn't bytes.
        handshake_ns: 78_000,
        // The other half of `send`; `http`, `schedule`, `seen`, `state`, `rest`.
        reply_ns: 95_000,
        // `receive`, a quarter of `tls`, and of `store` the file and one digest, for 38 KB.
        byte_ps: 2_800,
        // `decode` and the other digest, for 190 KB.
        text_byte_ps: 950,
        // `links` and `url`.
        link_ns: 350,
        exchange: Exchange::MEASURED,
    }
}

fn conf(plan: &Plan) -> Conf {
    let text = format!(
        "[job]\nseeds = [\"https://h0000.test/\"]\n\
         [identity]\ncontact = \"crawler@sted.dev\"\n\
         [scope]\nspan = \"host\"\ndomains = [\"test\"]\n\
         [connections]\naddresses_allowed = [\"127.0.0.0/8\"]\nopen_max = 600\n\
         [politeness]\nburst = 1\ndelay = \"{}ms\"\ndelay_factor = 0\naddress_delay = \"0s\"\n\
         domain_delay = \"0s\"\nrobots = false\n\
         [state]\nkeep = true\ncheckpoint_period = \"20s\"\n\
         [store]\nformat = \"none\"\n",
        plan.delay_ms
    );
    Conf::parse(&text, "bench").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn node(plan: &Plan, number: usize) -> node::Settings {
    node::Settings {
        node: Name::new(&format!("node-{number}")).expect("a name"),
        incarnation: 1 + number as u64,
        previous: None,
        member: member::Settings {
            key: super::KEY,
            partitions: 1_024,
            ttl: Duration::from_secs(10),
            drift_ppm: 500,
            settle: Duration::from_secs(2),
            equal: Vec::new(),
        },
        outbox: outbox::Settings::default(),
        sent_log2: plan.sent_log2,
        facts_log2: plan.sent_log2,
        portion_bytes: 128 << 10,
        snapshot_bytes_min: 4 << 20,
        reading_wait: Duration::from_secs(30),
        broken: None,
    }
}

/// The pages that all crawlers together have got.
#[derive(Debug, Default)]
struct Got {
    pages: BTreeSet<Place>,
    by_node: Vec<u64>,
    repeated: u64,
}

/// What the crawlers exchanged.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    links: u64,
    settled: u64,
    publications: u64,
    compressed: u64,
    read: u64,
    read_own: u64,
    bytes_read_own: u64,
}

/// A look at the whole crawl.
#[derive(Clone, Debug)]
struct Look {
    at: Instant,
    by_node: Vec<u64>,
    figures: Vec<Figures>,
    links_found: u64,
    sums: Sums,
}

/// The crawlers, their queue, and what is known of them.
struct Crawl {
    nodes: Vec<(World, Engine)>,
    queue: Queue,
    now: Instant,
    got: Arc<Mutex<Got>>,
    sums: Sums,
    compressor: zstd::bulk::Compressor<'static>,
}

/// Crawls the web until so many of its pages are there and prints a line.
pub(super) fn run(plan: &Plan) {
    let web = Arc::new(Web::new(web(plan.hosts, plan.of_pages), Ports::default()));
    let pages = plan.pages as usize;
    let mut crawl = Crawl::new(plan, &web);
    let (mut looks, mut told) = (Vec::new(), 0);
    loop {
        let count = crawl.got.lock().expect("no panic").pages.len();
        let quarters = [pages / 4, pages / 4 * 3];
        if looks.len() < quarters.len() && count >= quarters[looks.len()] {
            looks.push(crawl.look());
        }
        if count >= pages {
            break;
        }
        if count * 20 / pages > told {
            told = count * 20 / pages;
            eprintln!("nodes {}: {}% at {}", plan.nodes, 5 * told, crawl.now);
        }
        assert!(crawl.now < Instant::from_micros(20_000_000_000), "{count} of {pages} pages");
        crawl.step();
    }
    println!("{}", line(plan, &crawl, &looks));
}

/// The time that the crawlers run one after the other, the shortest way to the queue.
const SLICE: Duration = Duration::from_millis(2);

impl Crawl {
    fn new(plan: &Plan, web: &Arc<Web>) -> Self {
        let count = plan.nodes.max(1);
        let got = Arc::new(Mutex::new(Got { by_node: vec![0; count], ..Default::default() }));
        let (seeds, mistakes) = seeds::parse(web.seeds().join("\n").as_bytes());
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let make = |number: usize| {
            let mut settings = settings::engine(&conf(plan), super::KEY);
            settings.cluster = (plan.nodes > 0).then(|| node(plan, number));
            let world = sim::Settings { core: core(), ..Default::default() };
            let mut world = World::of_web(Arc::clone(web), world);
            let got = Arc::clone(&got);
            world.watch_servers(Box::new(move |_, seen| {
                if let Observation::Reply { place: Some(place), whole: true, .. } = seen
                    && matches!(place.resource, Resource::Page(_))
                {
                    got.lock().expect("no panic").note(number, *place);
                }
            }));
            let disk = Box::new(MemoryDisk::new());
            let engine = Engine::open(settings, &seeds, disk, Meter::new(still), world.now());
            (world, engine.unwrap_or_else(|error| panic!("{error}")))
        };
        let nodes = (0..count).map(make).collect();
        let delays = queue::Settings {
            delay_min: SLICE,
            delay_max: Duration::from_millis(10),
            ..Default::default()
        };
        let mut queue = Queue::new(delays, count);
        (0..plan.nodes).for_each(|node| queue.begin(node, Instant::ZERO));
        let compressor = zstd::bulk::Compressor::new(1).expect("memory");
        let (now, sums) = (Instant::ZERO, Sums::default());
        Self { nodes, queue, now, got, sums, compressor }
    }

    /// Runs all crawlers for a slice of time, and brings what they exchange.
    fn step(&mut self) {
        self.now = self.now + SLICE;
        for number in 0..self.nodes.len() {
            let (world, engine) = &mut self.nodes[number];
            let ran = world.run_until(engine, self.now, &mut |_| true);
            ran.unwrap_or_else(|how| panic!("node {number}: {how}"));
            for (at, request) in world.take_requests() {
                self.count_written(&request);
                self.queue.ask(number, at, request);
            }
        }
        for arrival in self.queue.advance(self.now) {
            self.count_read(arrival.node, &arrival.event);
            self.nodes[arrival.node].0.bring(arrival);
        }
    }

    fn count_written(&mut self, request: &Request) {
        let Request::Publish(publication) = request else { return };
        self.sums.publications += 1;
        for message in &publication.messages {
            let compressed = self.compressor.compress(&message.payload).expect("memory");
            self.sums.compressed += compressed.len() as u64;
            for record in Reader::open(&message.payload).expect("an engine wrote it").1 {
                match record.expect("an engine wrote it") {
                    Record::Settled(settled) => self.sums.settled += settled.len() as u64,
                    _ => self.sums.links += 1,
                }
            }
        }
    }

    fn count_read(&mut self, node: usize, event: &Event) {
        let Event::Read { messages: Some(messages), .. } = event else { return };
        for message in messages {
            let (head, records) = Reader::open(&message.payload).expect("an engine wrote it");
            let links = records.filter(|record| matches!(record, Ok(Record::Link(_)))).count();
            self.sums.read += links as u64;
            if head.sender.incarnation == 1 + node as u64 {
                self.sums.read_own += links as u64;
                self.sums.bytes_read_own += message.payload.len() as u64;
            }
        }
    }

    fn look(&self) -> Look {
        let by_node = self.got.lock().expect("no panic").by_node.clone();
        let figures = self.nodes.iter().map(|(world, _)| world.figures()).collect();
        let links_found = self.nodes.iter().map(|(_, engine)| engine.counts().links).sum();
        Look { at: self.now, by_node, figures, links_found, sums: self.sums }
    }
}

impl Got {
    fn note(&mut self, node: usize, place: Place) {
        if self.pages.insert(place) {
            self.by_node[node] += 1;
        } else {
            self.repeated += 1;
        }
    }
}

/// Returns the line of a crawl: totals over the middle half of the pages, a page where that makes
/// sense.
fn line(plan: &Plan, crawl: &Crawl, looks: &[Look]) -> String {
    let (from, to) = (&looks[0], &looks[1]);
    let seconds = to.at.since(from.at).as_secs_f64();
    let by_node: Vec<u64> =
        to.by_node.iter().zip(&from.by_node).map(|(to, from)| to - from).collect();
    let pages = by_node.iter().sum::<u64>() as f64;
    let sum = |of: &dyn Fn(&Look) -> u64| (of(to) - of(from)) as f64 / pages;
    let exchanged = |of: &dyn Fn(&sim::Exchanged) -> u64| {
        sum(&|look| look.figures.iter().map(|figures| of(&figures.exchanged)).sum())
    };
    let busy_ns = |look: &Look, node: usize| look.figures[node].core_busy.as_nanos() as u64;
    let busy: Vec<u64> =
        (0..by_node.len()).map(|node| busy_ns(to, node) - busy_ns(from, node)).collect();
    let shares: Vec<String> =
        busy.iter().map(|ns| format!("{:.3}", *ns as f64 / 1e9 / seconds)).collect();
    let page_us = busy.iter().sum::<u64>() as f64 / 1e3 / pages;
    let exchange_us = (to.exchange_ns() - from.exchange_ns()) as f64 / 1e3 / pages;
    let got = crawl.got.lock().expect("no panic");
    let columns = [
        plan.nodes.to_string(),
        plan.pages.to_string(),
        plan.of_pages.to_string(),
        plan.delay_ms.to_string(),
        plan.sent_log2.to_string(),
        format!("{:.1}", pages / seconds),
        format!("{seconds:.2}"),
        format!("{:.1}", crawl.now.since(Instant::ZERO).as_secs_f64()),
        by_node.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
        shares.join(" "),
        format!("{:.2}", sum(&|look| look.links_found)),
        format!("{:.3}", sum(&|look| look.sums.links)),
        format!("{:.3}", sum(&|look| look.sums.settled)),
        format!("{:.3}", sum(&|look| look.sums.read)),
        format!("{:.3}", sum(&|look| look.sums.read_own)),
        format!("{:.1}", exchanged(&|sums| sums.bytes_written)),
        format!("{:.1}", exchanged(&|sums| sums.bytes_read)),
        format!("{:.1}", sum(&|look| look.sums.bytes_read_own)),
        format!("{:.4}", exchanged(&|sums| sums.messages_written)),
        format!("{:.4}", exchanged(&|sums| sums.messages_read)),
        format!("{:.5}", sum(&|look| look.sums.publications)),
        format!("{:.1}", sum(&|look| look.sums.compressed)),
        format!("{:.4}", exchanged(&|sums| sums.calls)),
        format!("{exchange_us:.2}"),
        format!("{page_us:.2}"),
        got.repeated.to_string(),
    ];
    columns.join(",")
}

impl Look {
    /// Returns what the exchange with the queue has cost the cores, in nanoseconds.
    fn exchange_ns(&self) -> u64 {
        let costs = Exchange::MEASURED;
        let of = |figures: &Figures| {
            let sums = &figures.exchanged;
            costs.write_ns * sums.urls_written
                + costs.write_message_ns * sums.messages_written
                + costs.read_ns * sums.links_read
                + costs.settled_ns * sums.settled_read
                + costs.read_message_ns * sums.messages_read
                + costs.call_ns * sums.calls
                + (costs.write_byte_ps * sums.bytes_written + costs.read_byte_ps * sums.bytes_read)
                    / 1_000
        };
        let is_shared = self.figures.iter().any(|figures| figures.exchanged.calls > 0);
        let links = if is_shared { self.links_found } else { 0 };
        self.figures.iter().map(of).sum::<u64>() + costs.link_ns * links
    }
}
