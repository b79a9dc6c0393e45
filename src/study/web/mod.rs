//! The description of a synthetic web: hosts, pages, links, times and faults, drawn from one seed.
//!
//! It uses no socket, file or clock: the lab serves it over real sockets, the simulator over
//! virtual ones. Both read from here which hosts exist ([`Web::host`]), what a URL refers to
//! ([`Web::place`]), what the server replies ([`Web::answer`], encoded by [`wire`]), what a crawler
//! should make of it ([`Manifest`]), and the quality of a page ([`Web::page_rank`],
//! [`Web::zipf_permutation`], [`Web::topical`]). Pages are made when requested; only the number of
//! pages per host, one block of prose and a graph are kept in memory.
//!
//! Shape of a drawn web: the pages of a host form a tree under its root, hosts form a tree under
//! the seeds; each page links to its children and then to random pages. Pages that can't be parents
//! (errors, redirects, disallowed ones) leave their children to the next lower page that can. Shape
//! of a real web: hosts, pages and links are those of a [`graph`], all pages are HTML, and the rest
//! is drawn. Pages stay as they are unless [`Changes`] says how they change with time.
//!
//! Laws: equal settings and ports give equal webs, byte for byte, on every machine. Every page of
//! every well-behaved host is reachable from the seeds by links that a crawler follows, except
//! below hosts that robots.txt disallows, whose root is linked to and refused (in a graph: every
//! page that its entry reaches). Paths and places map one to one, except for session ids.
//!
//! Cost (measured): the traits of a host 0.1 us, a link 15 ns, an HTML body of 25 links 5.6 us for
//! 16.7 kB, one without prose 4.4 us; the manifest of 100,000 pages 0.1 s and 10 MB.

mod body;
mod change;
mod draw;
pub mod graph;
mod host;
mod hostile;
mod manifest;
mod muddle;
mod page;
mod rank;
mod reach;
pub mod script;
mod settings;
mod signed;
mod sitemap;
mod topical;
mod voice;
pub mod wire;

#[cfg(test)]
pub(crate) mod tests;

pub use change::{Version, is_unmodified};
pub use host::{Coding, Host, Robots, Scheme};
pub use hostile::{Asked, Certificate, Hostile, Manner, Naming, Play, Row, Spec, WALLS, Wall};
pub use manifest::{Budget, Entry, Manifest, Outcome, Range};
pub use muddle::Muddle;
pub use page::{Compact, Kind, Link, Reply};
pub use rank::{DAMPING, ERROR_MAX, PageRank};
pub use settings::{Changes, Settings, Spread, TimeSpread};
pub use signed::{Keys, Proof};
pub use topical::Topical;
pub use voice::Voice;

use draw::{Draw, Purpose};
use graph::Graph;
use std::sync::Arc;
use std::time::Duration;

/// The ports in the web's URLs. URLs with the default ports 80 (HTTP) and 443 (HTTPS) leave them
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The port of plain-text hosts.
    pub http: u16,
    /// The port of TLS hosts.
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
    /// The number of the host.
    pub host: u32,
    /// The resource on the host.
    pub resource: Resource,
}

/// A resource of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// `/robots.txt`
    Robots,
    /// `/sitemap.xml`, which lists all pages of the host.
    Sitemap,
    /// A page of a well-behaved host; 0 is its root.
    Page(u32),
    /// The `index`-th resource of a row of a hostile host's table.
    Row {
        /// The position of the row in the table.
        row: u32,
        /// The position within the row, counted from 0.
        index: u32,
    },
}

/// How a server answers a request for a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A reply, which is framed and encoded as the host does it.
    Reply(Reply),
    /// Behaviour that no well-behaved server shows, of a hostile host.
    Play(Play),
}

/// A synthetic web.
#[derive(Clone, Debug)]
pub struct Web {
    settings: Settings,
    ports: Ports,
    /// For each well-behaved host the number of pages on the hosts before it; after the last host,
    /// the number of pages on all of them.
    starts: Vec<u32>,
    /// The number of the host of the first seed.
    first_host: u32,
    shape: Shape,
    /// The block of prose from which the text of pages is cut.
    prose: Box<str>,
}

/// Where the pages and their links come from.
#[derive(Clone, Debug)]
enum Shape {
    Drawn,
    Graph(Arc<Graph>),
}

const ROBOTS_PATH: &str = "/robots.txt";
const SITEMAP_PATH: &str = "/sitemap.xml";

impl Web {
    /// Creates the web of these settings, whose URLs use `ports`. The web has at least one
    /// well-behaved host.
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

    /// Creates the web of a graph: it has the graph's hosts, pages and links, and one seed, the
    /// graph's entry. Times, sizes, codings and all other traits of hosts are drawn from
    /// `settings`; the numbers of hosts, pages, seeds and links in them, and their shares of page
    /// kinds, are ignored.
    pub fn of_graph(graph: Arc<Graph>, mut settings: Settings, ports: Ports) -> Self {
        settings.hosts = graph.hosts();
        settings.pages = graph.pages();
        settings.seeds = 1;
        let starts = graph.starts().to_vec();
        let prose = body::prose(settings.seed);
        let first_host = graph.host_of(graph.entry().page);
        Self { settings, ports, starts, first_host, shape: Shape::Graph(graph), prose }
    }

    /// Returns the graph that the web is made of; `None` if the web is drawn.
    pub fn graph(&self) -> Option<&Graph> {
        match &self.shape {
            Shape::Drawn => None,
            Shape::Graph(graph) => Some(graph),
        }
    }

    /// Returns the same web with URLs that use other ports.
    pub fn at_ports(&self, ports: Ports) -> Self {
        Self { ports, ..self.clone() }
    }

    /// Returns the settings, limited to their valid ranges.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the URLs to start a crawl from: the roots of the first hosts (or a graph's entry)
    /// and of every hostile host.
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

    /// Returns the number of pages on all well-behaved hosts together.
    pub fn pages_total(&self) -> usize {
        self.starts[self.settings.hosts as usize] as usize
    }

    /// Returns the index of a page among those of all well-behaved hosts, counted host after host
    /// from 0.
    pub fn page_index(&self, host: u32, page: u32) -> usize {
        assert!(page < self.pages_of(host), "host {host} has no page {page}");
        (self.starts[host as usize] + page) as usize
    }

    /// Returns the place of the page with this index among all pages, which is below
    /// [`Web::pages_total`].
    pub fn place_of(&self, index: usize) -> Place {
        assert!(index < self.pages_total(), "there is no page {index}");
        let index = u32::try_from(index).expect("below the number of pages");
        let host = self.starts.partition_point(|start| *start <= index) - 1;
        let page = index - self.starts[host];
        let host = u32::try_from(host).expect("below the number of hosts");
        Place { host, resource: Resource::Page(page) }
    }

    /// Returns the full URL of a place.
    pub fn url(&self, place: Place) -> String {
        let mut url = String::new();
        self.push_origin(&mut url, place.host);
        self.push_path(&mut url, place);
        url
    }

    /// Returns the path and query of a place.
    pub fn path(&self, place: Place) -> String {
        let mut path = String::new();
        self.push_path(&mut path, place);
        path
    }

    fn push_path(&self, out: &mut String, place: Place) {
        match place.resource {
            Resource::Robots => out.push_str(ROBOTS_PATH),
            Resource::Sitemap => out.push_str(SITEMAP_PATH),
            Resource::Page(page) => self.push_page_path(out, place.host, page),
            Resource::Row { row, index } => {
                let rows = self.hostile_of(place.host).map_or(&[][..], |kind| kind.spec().rows);
                if let Some(row) = rows.get(row as usize) {
                    out.push_str(&row_path(row, index));
                }
            }
        }
    }

    /// Returns the place at a path (with its query) of a host; `None` if nothing is there, so that
    /// the server replies 404.
    pub fn place(&self, host: u32, path: &str) -> Option<Place> {
        let resource = match self.hostile_of(host) {
            Some(kind) => find_row(kind.spec().rows, path)
                .or_else(|| (path == ROBOTS_PATH).then_some(Resource::Robots))?,
            None if path == ROBOTS_PATH => Resource::Robots,
            None if path == SITEMAP_PATH && self.has_sitemap(host) => Resource::Sitemap,
            None => Resource::Page(self.page_at(host, path)?),
        };
        Some(Place { host, resource })
    }

    /// Returns the server's answer to a request for a place, `at` a time since the web began;
    /// `None` is a path where nothing is. A `Reply` is complete except for the host's framing and
    /// content coding.
    pub fn answer(&self, place: Option<Place>, at: Duration) -> Answer {
        place.map_or_else(|| Answer::Reply(Reply::not_found()), |place| self.answer_at(place, at))
    }

    /// Returns the server's answer to a request for a place that exists.
    pub fn answer_at(&self, place: Place, at: Duration) -> Answer {
        match place.resource {
            Resource::Robots => Answer::Reply(self.robots_reply(place.host)),
            Resource::Sitemap => Answer::Reply(self.sitemap_reply(place.host, at)),
            Resource::Page(page) => Answer::Reply(self.page_reply(place.host, page, at)),
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
/// the standard formatter takes three times as long.
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
        // `+1` and `01` parse, too, but are not paths of this web.
        (row_path(row, index) == path).then_some(index)
    };
    let found = rows.iter().enumerate().find_map(|(place, row)| Some((place, index_in(row)?)));
    found.map(|(place, index)| {
        let row = u32::try_from(place).expect("a short table");
        Resource::Row { row, index }
    })
}
