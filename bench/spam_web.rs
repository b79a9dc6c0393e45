//! Webs with a link farm: an honest part, a farm of hosts on few registrable domains that link to
//! one another, and links from honest pages into the farm.
//!
//! Honest hosts are numbered by how well they are linked to. A host links to a few others, drawn by
//! a power law: most domains are linked to from two to five others, a few from thousands. The pages
//! of a host form a tree, hosts form a tree under the first one, so all pages can be reached. Farm
//! pages link to their own host and to any hosts of the farm, never to honest ones.
//!
//! Law: equal plans give equal webs, and the honest part depends on nothing of the farm.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use sted::ground::random::Random;
use sted::study::web::graph::{Graph, HostRanges, Links};
use sted::study::web::{Place, Ports, Resource, Settings, Spread, TimeSpread, Web};

/// The size of the honest part, the farm, and the seed of their draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// The number of honest domains.
    pub(super) domains: u32,
    /// The farm; `None` for the clean web.
    pub(super) farm: Option<Farm>,
}

/// A link farm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Farm {
    /// The number of its registrable domains, over which its hosts are spread evenly.
    pub(super) domains: u32,
    pub(super) hosts: u32,
    /// The number of honest pages that link to it: the root of the host that is linked to best, and
    /// then pages of any hosts.
    pub(super) entrances: u32,
}

/// A web, and how much of it is honest: its first hosts and pages.
#[derive(Debug)]
pub(super) struct Spam {
    pub(super) web: Arc<Web>,
    pub(super) honest_hosts: u32,
    pub(super) honest_pages: u32,
    /// For each honest domain, the number of other domains that link to it.
    pub(super) linking: Vec<u32>,
}

/// One of so many domains has one host more.
const DOMAINS_PER_HOST: u32 = 10;
/// The number of pages of an honest host: a few hosts have most of the pages, as on the open web.
const PAGES: Spread = Spread { median: 5.0, sigma: 1.7 };
/// The correlation between how well a host is linked to and the logarithm of its number of pages.
const CORRELATION: f64 = 0.5;
/// The number of pages of each host of a farm.
const FARM_PAGES: u32 = 100;
/// The number of pages that a page is the first to link to.
const FANOUT: u32 = 8;
/// The links of a page: from the first to the second number, both included.
const LINKS: (u32, u32) = (10, 20);
/// The share of links to pages of the same host: on honest hosts, and on those of a farm.
const LOCALITY: (f64, f64) = (0.7, 0.3);
/// The share of links to other hosts that lead to their roots.
const ROOTS: f64 = 0.7;
/// The number of seeds: the roots of the first hosts.
const SEEDS: u32 = 5;

/// The graph while it is made.
struct Maker {
    random: Random,
    /// The number of each host's first page; after the last host, the number of pages.
    starts: Vec<u32>,
    /// For each host, the hosts that its pages link to.
    friends: Vec<Rc<[u32]>>,
    /// The targets of the links of each page.
    links: Vec<Vec<u32>>,
}

impl Spam {
    pub(super) fn new(plan: &Plan) -> Self {
        let hosts = plan.domains + plan.domains / DOMAINS_PER_HOST;
        let mut domains: Vec<u32> = (0..plan.domains).collect();
        let random = Random(plan.seed);
        let mut maker = Maker { random, starts: vec![0], friends: Vec::new(), links: Vec::new() };
        domains.extend((plan.domains..hosts).map(|_| maker.random.below(plan.domains)));
        maker.honest(hosts);
        let honest_pages = maker.pages();
        let linking = linking(&maker.friends, &domains, plan.domains);
        if let Some(farm) = plan.farm {
            maker.random = Random(plan.seed + 1);
            maker.farm(farm);
            domains.extend((0..farm.hosts).map(|host| plan.domains + host % farm.domains));
        }
        let graph = Arc::new(maker.graph());
        let web = Arc::new(Web::of_graph(graph, settings(plan.seed, domains), Ports::default()));
        Self { web, honest_hosts: hosts, honest_pages, linking }
    }

    /// Returns the URLs that a crawl starts from.
    pub(super) fn seeds(&self) -> String {
        let root = |host| Place { host, resource: Resource::Page(0) };
        let urls = (0..SEEDS.min(self.honest_hosts)).map(|host| self.web.url(root(host)));
        urls.collect::<Vec<_>>().join("\n")
    }
}

impl Maker {
    fn hosts(&self) -> u32 {
        u32::try_from(self.starts.len() - 1).expect("there are fewer hosts than pages")
    }

    fn pages(&self) -> u32 {
        *self.starts.last().expect("the first start")
    }

    /// Adds the honest hosts and their links.
    fn honest(&mut self, hosts: u32) {
        let mut fames: Vec<f64> = (0..hosts).map(|_| normal(&mut self.random)).collect();
        fames.sort_by(|one, other| other.total_cmp(one));
        for fame in fames {
            let own = normal(&mut self.random) * (1.0 - CORRELATION * CORRELATION).sqrt();
            let pages = PAGES.median * (PAGES.sigma * (CORRELATION * fame + own)).exp();
            let pages = (pages as u32).max(1);
            self.starts.push(self.pages() + pages);
            let friends = 2 + (1.5 * f64::from(pages).sqrt()) as u32;
            // The density of x = u^4 is x^(-3/4) / 4: that is how links in fall with the rank.
            let mut friend = || (f64::from(hosts) * self.random.unit().powi(4)) as u32;
            self.friends.push((0..friends).map(|_| friend()).collect());
        }
        self.link(0..hosts, LOCALITY.0);
    }

    /// Adds the farm, and the links that lead to it.
    fn farm(&mut self, farm: Farm) {
        let first = self.hosts();
        let all: Vec<u32> = (first..first + farm.hosts).collect();
        for _ in &all {
            self.starts.push(self.pages() + FARM_PAGES);
        }
        let all: Rc<[u32]> = all.into();
        self.friends.resize(self.hosts() as usize, all);
        self.link(first..first + farm.hosts, LOCALITY.1);
        let mut entrances = BTreeMap::from([(0, first)]);
        while entrances.len() < farm.entrances as usize {
            let host = self.random.below(first);
            let page = self.page_of(host);
            let target = first + self.random.below(farm.hosts);
            entrances.entry(page).or_insert(target);
        }
        for (page, host) in entrances {
            self.links[page as usize].push(self.starts[host as usize]);
        }
    }

    /// Adds the links of these hosts, the last ones, which form a tree under the first of them.
    fn link(&mut self, hosts: Range<u32>, locality: f64) {
        self.links.resize(self.pages() as usize, Vec::new());
        for host in hosts.start + 1..hosts.end {
            let parent = hosts.start + self.random.below(host - hosts.start);
            let page = self.page_of(parent);
            self.links[page as usize].push(self.starts[host as usize]);
        }
        for host in hosts {
            let (start, end) = (self.starts[host as usize], self.starts[host as usize + 1]);
            for page in start..end {
                let mut links = std::mem::take(&mut self.links[page as usize]);
                let child = start + (page - start) * FANOUT + 1;
                links.extend(child.min(end)..(child + FANOUT).min(end));
                let count = LINKS.0 + self.random.below(LINKS.1 - LINKS.0 + 1);
                while links.len() < count as usize {
                    links.push(self.target(host, locality));
                }
                self.links[page as usize] = links;
            }
        }
    }

    /// Returns the target of a link of a host that isn't part of a tree.
    fn target(&mut self, host: u32, locality: f64) -> u32 {
        if self.random.unit() < locality {
            return self.page_of(host);
        }
        let friend = self.random.pick(&self.friends[host as usize]);
        if self.random.unit() < ROOTS {
            return self.starts[friend as usize];
        }
        self.page_of(friend)
    }

    /// Returns a page of a host.
    fn page_of(&mut self, host: u32) -> u32 {
        let (start, end) = (self.starts[host as usize], self.starts[host as usize + 1]);
        start + self.random.below(end - start)
    }

    fn graph(self) -> Graph {
        let count = |links: &Vec<u32>| u32::try_from(links.len()).expect("few links");
        let bytes = |numbers: &mut dyn Iterator<Item = u32>| -> Vec<u8> {
            numbers.flat_map(u32::to_le_bytes).collect()
        };
        let degrees = bytes(&mut self.links.iter().map(count));
        let targets = bytes(&mut self.links.iter().flatten().copied());
        let links = Links::read(&degrees, &targets).expect("they agree");
        let mut ranges = HostRanges::default();
        for (line, pages) in (1..).zip(self.starts.windows(2)) {
            let text = format!("{} {} h{line}", pages[0], pages[1] - 1);
            ranges.read_line(text.as_bytes(), line).expect("a range");
        }
        Graph::listed(links, ranges).expect("all pages are on hosts")
    }
}

/// Returns for each honest domain the number of others with a host that has one of its hosts as a
/// friend.
fn linking(friends: &[Rc<[u32]>], domains: &[u32], count: u32) -> Vec<u32> {
    let pairs = friends.iter().zip(domains).flat_map(|(friends, from)| {
        friends.iter().map(move |friend| (domains[*friend as usize], *from))
    });
    let pairs: BTreeSet<(u32, u32)> = pairs.filter(|(to, from)| to != from).collect();
    let mut linking = vec![0; count as usize];
    for (to, _) in pairs {
        linking[to as usize] += 1;
    }
    linking
}

/// Returns the settings of the web: small pages, near servers that allow any number of requests on
/// a connection.
fn settings(seed: u64, domains: Vec<u32>) -> Settings {
    let times = |ms, sigma| TimeSpread { median: Duration::from_millis(ms), sigma };
    Settings {
        seed,
        domains: Some(domains.into()),
        easy: true,
        page_bytes: Spread { median: 500.0, sigma: 0.0 },
        think_time: times(50, 0.5),
        round_trip: times(30, 0.5),
        dns_time: times(20, 0.5),
        ..Settings::default()
    }
}

/// Returns a normal deviate: the sum of twelve uniform ones.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}
