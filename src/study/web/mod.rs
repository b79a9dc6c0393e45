//! A synthetic web, described: hosts, pages, links, times and faults, all drawn from one seed.
//!
//! No socket, file or clock: the lab serves it over real sockets, the simulator over virtual ones,
//! and both take from here what there is ([`Web::host`]), what is at a URL ([`Web::place`]), what
//! the server says ([`Web::answer`], turned into bytes by [`wire`]), and what a crawler should
//! make of it ([`Manifest`]), and what a page is worth ([`Web::page_rank`]). Pages are made when
//! asked for; nothing but the number of pages per host, one block of prose and a graph is kept.
//!
//! Shape, drawn: pages of a host form a tree under its root, hosts form a tree under the seeds;
//! each page links to its children and then to others at random. Pages that can't be parents
//! (errors, redirects, closed ones) hand their children to the next lower page that can.
//! Shape, real: hosts, pages and links are those of a [`graph`], all pages HTML; the rest is drawn.
//!
//! Laws: equal settings and ports give equal webs, byte for byte, on every machine; every page of
//! every behaving host is reachable from the seeds by links a crawler follows, except below hosts
//! closed by robots.txt, whose root is reachable and refused (of a graph: every page that its entry
//! reaches); paths and places map one to one, but for session ids.
//! Cost (measured): traits of a host 0.1 us, a link 15 ns, an HTML body of 25 links 5.6 us for
//! 16.7 kB, one without prose 4.4 us; the manifest of 100,000 pages 0.1 s and 10 MB.

mod body;
mod draw;
pub mod graph;
mod host;
mod hostile;
mod manifest;
mod muddle;
mod page;
mod rank;
pub mod script;
mod settings;
pub mod wire;

#[cfg(test)]
pub(crate) mod tests;

pub use host::{Coding, Host, Robots, Scheme};
pub use hostile::{Asked, Certificate, Hostile, Manner, Naming, Play, Row, Spec};
pub use manifest::{Budget, Entry, Manifest, Outcome, Range};
pub use muddle::Muddle;
pub use page::{Compact, Kind, Link, Reply};
pub use rank::{DAMPING, ERROR_MAX, PageRank};
pub use settings::{Settings, Spread, TimeSpread};

use draw::{Draw, Purpose};
use graph::Graph;
use std::sync::Arc;

/// Ports that the web's URLs name; 80 and 443 are left out of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Of plain hosts.
    pub http: u16,
    /// Of hosts over TLS.
    pub https: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self { http: 80, https: 443 }
    }
}

/// One resource of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the host.
    pub host: u32,
    /// What of it.
    pub resource: Resource,
}

/// What there is on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// `/robots.txt`
    Robots,
    /// A page of a behaving host; 0 is its root.
    Page(u32),
    /// The `index`-th of a row of a hostile host's table.
    Row {
        /// Place of the row in the table.
        row: u32,
        /// Which of the row, counted from 0.
        index: u32,
    },
}

/// What a server gives for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A reply, sent as the host sends.
    Reply(Reply),
    /// Something a behaving server would not do; for hostile hosts.
    Play(Play),
}

/// A synthetic web.
#[derive(Clone, Debug)]
pub struct Web {
    settings: Settings,
    ports: Ports,
    /// Pages before each behaving host's, and after the last host all pages.
    starts: Vec<u32>,
    /// Host of the first seed.
    first_host: u32,
    shape: Shape,
    /// What pages are filled with.
    prose: Box<str>,
}

/// Where the pages and their links come from.
#[derive(Clone, Debug)]
enum Shape {
    Drawn,
    Graph(Arc<Graph>),
}

const ROBOTS_PATH: &str = "/robots.txt";

impl Web {
    /// The web of these settings, with URLs naming these ports. At least one host behaves.
    pub fn new(mut settings: Settings, ports: Ports) -> Self {
        settings.hosts = settings.hosts.max(1);
        settings.seeds = settings.seeds.clamp(1, settings.hosts);
        settings.fanout = settings.fanout.max(1);
        settings.host_fanout = settings.host_fanout.max(1);
        settings.link_skew = settings.link_skew.clamp(1, 16);
        let starts = host::spread_pages(&settings);
        let prose = body::prose(settings.seed);
        Self { settings, ports, starts, first_host: 0, shape: Shape::Drawn, prose }
    }

    /// The web of a graph: its hosts, pages and links, and one seed, its entry. Times, sizes,
    /// codings and all else a host does are drawn from the settings, whose own numbers of hosts,
    /// pages, seeds and links, and shares of kinds of pages, say nothing.
    pub fn of_graph(graph: Arc<Graph>, mut settings: Settings, ports: Ports) -> Self {
        settings.hosts = graph.hosts();
        settings.pages = graph.pages();
        settings.seeds = 1;
        let starts = graph.starts().to_vec();
        let prose = body::prose(settings.seed);
        let first_host = graph.host_of(graph.entry().page);
        Self { settings, ports, starts, first_host, shape: Shape::Graph(graph), prose }
    }

    /// The same web, its URLs naming other ports.
    pub fn at_ports(&self, ports: Ports) -> Self {
        Self { ports, ..self.clone() }
    }

    /// The settings, put into range.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// URLs a crawl starts from: the first hosts' roots, or a graph's entry, and every hostile
    /// host's root.
    pub fn seeds(&self) -> Vec<String> {
        self.seed_places().map(|place| self.url(place)).collect()
    }

    pub(crate) fn seed_places(&self) -> impl Iterator<Item = Place> + '_ {
        let root = |host| Place { host, resource: Resource::Page(0) };
        let behaving = (0..self.settings.seeds).map(move |host| match &self.shape {
            Shape::Drawn => root(host),
            Shape::Graph(graph) => self.place_of(graph.entry().page as usize),
        });
        let hostile = self.settings.hosts..self.hosts();
        behaving.chain(hostile.filter_map(|host| self.place(host, "/")))
    }

    /// Pages of all behaving hosts together.
    pub fn pages_total(&self) -> usize {
        self.starts[self.settings.hosts as usize] as usize
    }

    /// Number of a page among those of all behaving hosts: host after host, from 0.
    pub fn page_index(&self, host: u32, page: u32) -> usize {
        assert!(page < self.pages_of(host), "host {host} has no page {page}");
        (self.starts[host as usize] + page) as usize
    }

    /// The page of this number, below [`Web::pages_total`].
    pub fn place_of(&self, index: usize) -> Place {
        assert!(index < self.pages_total(), "there is no page {index}");
        let index = u32::try_from(index).expect("below the number of pages");
        let host = self.starts.partition_point(|start| *start <= index) - 1;
        let page = index - self.starts[host];
        let host = u32::try_from(host).expect("below the number of hosts");
        Place { host, resource: Resource::Page(page) }
    }

    /// The whole URL of a place.
    pub fn url(&self, place: Place) -> String {
        let mut url = String::new();
        self.push_origin(&mut url, place.host);
        self.push_path(&mut url, place);
        url
    }

    /// Path and query of a place.
    pub fn path(&self, place: Place) -> String {
        let mut path = String::new();
        self.push_path(&mut path, place);
        path
    }

    fn push_path(&self, out: &mut String, place: Place) {
        match place.resource {
            Resource::Robots => out.push_str(ROBOTS_PATH),
            Resource::Page(page) => self.push_page_path(out, place.host, page),
            Resource::Row { row, index } => {
                let rows = self.hostile_of(place.host).map_or(&[][..], |kind| kind.spec().rows);
                if let Some(row) = rows.get(row as usize) {
                    out.push_str(&row_path(row, index));
                }
            }
        }
    }

    /// What is at this path (with its query) of a host; nothing: 404.
    pub fn place(&self, host: u32, path: &str) -> Option<Place> {
        let resource = match self.hostile_of(host) {
            Some(kind) => find_row(kind.spec().rows, path)
                .or_else(|| (path == ROBOTS_PATH).then_some(Resource::Robots))?,
            None if path == ROBOTS_PATH => Resource::Robots,
            None => Resource::Page(self.page_at(host, path)?),
        };
        Some(Place { host, resource })
    }

    /// What the server says to a request for what is at this place, or for a path where nothing is.
    /// `Reply`s are complete but for how the host frames and codes them.
    pub fn answer(&self, place: Option<Place>) -> Answer {
        place.map_or_else(|| Answer::Reply(Reply::not_found()), |place| self.answer_at(place))
    }

    /// What the server says to a request for this place.
    pub fn answer_at(&self, place: Place) -> Answer {
        match place.resource {
            Resource::Robots => Answer::Reply(self.robots_reply(place.host)),
            Resource::Page(page) => Answer::Reply(self.page_reply(place.host, page)),
            Resource::Row { row, .. } => {
                let kind = self.hostile_of(place.host).expect("only hostile hosts have rows");
                Answer::Play(kind.spec().rows[row as usize].play)
            }
        }
    }

    fn draw(&self, purpose: Purpose, a: u32, b: u32) -> Draw {
        Draw::new(self.settings.seed, purpose, a, b)
    }
}

/// Writes a number in decimal, with leading zeros up to `digits`. Bodies are full of numbers, and
/// the formatter takes three times as long.
fn push_number(out: &mut String, mut number: u32, digits: usize) {
    let mut text = [b'0'; 10];
    let mut at = text.len();
    while number > 0 || at == text.len() {
        at -= 1;
        text[at] = b'0' + u8::try_from(number % 10).expect("a digit");
        number /= 10;
    }
    let first = at.min(text.len() - digits);
    out.extend(text[first..].iter().map(|digit| char::from(*digit)));
}

fn row_path(row: &Row, index: u32) -> String {
    if row.play == Play::Sessions {
        return hostile::sessions::path(index);
    }
    if row.count == 1 { row.path.to_owned() } else { format!("{}{index}", row.path) }
}

fn find_row(rows: &[Row], path: &str) -> Option<Resource> {
    let index_in = |row: &Row| -> Option<u32> {
        if row.play == Play::Sessions {
            return hostile::sessions::page_at(path);
        }
        let rest = path.strip_prefix(row.path)?;
        if row.count == 1 {
            return rest.is_empty().then_some(0);
        }
        let index = rest.parse().ok().filter(|index| *index < row.count)?;
        // `+1` and `01` parse too, and aren't paths of ours.
        (row_path(row, index) == path).then_some(index)
    };
    let found = rows.iter().enumerate().find_map(|(place, row)| Some((place, index_in(row)?)));
    found.map(|(place, index)| {
        let row = u32::try_from(place).expect("a short table");
        Resource::Row { row, index }
    })
}
