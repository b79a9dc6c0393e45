//! A synthetic web, described: hosts, pages, links, times and faults, all drawn from one seed.
//!
//! No socket, file or clock: the lab serves it over real sockets, the simulator over virtual ones,
//! and both take from here what there is ([`Web::host`]), what is at a URL ([`Web::place`]), what
//! the server says ([`Web::answer`], turned into bytes by [`wire`]), and what a crawler should
//! make of it ([`Manifest`]). Pages are made when asked for; nothing but the number of pages per
//! host and one block of prose is kept.
//!
//! Shape: pages of a host form a tree under its root, hosts form a tree under the seeds; each page
//! links to its children and then to others at random. Pages that can't be parents (errors,
//! redirects, closed ones) hand their children to the next lower page that can.
//!
//! Laws: equal settings and ports give equal webs, byte for byte, on every machine; every page of
//! every behaving host is reachable from the seeds by links a crawler follows, except below hosts
//! closed by robots.txt, whose root is reachable and refused; paths and places map one to one.
//! Cost (measured): traits of a host 0.2 us, a link 15 ns, an HTML body 8 us for 14 kB, one without
//! prose 7 us; the manifest of 100,000 pages 0.1 s and 10 MB.

mod body;
mod draw;
mod host;
mod hostile;
mod manifest;
mod page;
pub mod script;
mod settings;
pub mod wire;

#[cfg(test)]
pub(crate) mod tests;

pub use host::{Coding, Host, Robots, Scheme};
pub use hostile::{Asked, Certificate, Hostile, Manner, Naming, Play, Row, Spec};
pub use manifest::{Budget, Entry, Manifest, Outcome, Range};
pub use page::{Kind, Link, Reply};
pub use settings::{Settings, Spread, TimeSpread};

use draw::{Draw, Purpose};

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
    /// Pages of each behaving host.
    pages: Vec<u32>,
    /// What pages are filled with.
    prose: Box<str>,
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
        let pages = host::spread_pages(&settings);
        let prose = body::prose(settings.seed);
        Self { settings, ports, pages, prose }
    }

    /// The settings, put into range.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// URLs a crawl starts from: the first hosts' roots, and every hostile host's.
    pub fn seeds(&self) -> Vec<String> {
        self.seed_places().map(|place| self.url(place)).collect()
    }

    pub(crate) fn seed_places(&self) -> impl Iterator<Item = Place> + '_ {
        let hostile = self.settings.hosts..self.hosts();
        (0..self.settings.seeds).chain(hostile).filter_map(|host| self.place(host, "/"))
    }

    /// The whole URL of a place.
    pub fn url(&self, place: Place) -> String {
        let mut url = self.origin(place.host);
        url.push_str(&self.path(place));
        url
    }

    /// Path and query of a place.
    pub fn path(&self, place: Place) -> String {
        match place.resource {
            Resource::Robots => ROBOTS_PATH.to_owned(),
            Resource::Page(page) => self.page_path(place.host, page),
            Resource::Row { row, index } => {
                let rows = self.hostile_of(place.host).map_or(&[][..], |kind| kind.spec().rows);
                rows.get(row as usize).map_or_else(String::new, |row| row_path(row, index))
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

    /// What the server says to a request for this path. `Reply`s are complete but for how the
    /// host frames and codes them.
    pub fn answer(&self, host: u32, path: &str) -> Answer {
        let Some(place) = self.place(host, path) else {
            return Answer::Reply(Reply::not_found());
        };
        self.answer_at(place)
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

fn row_path(row: &Row, index: u32) -> String {
    if row.count == 1 { row.path.to_owned() } else { format!("{}{index}", row.path) }
}

fn find_row(rows: &[Row], path: &str) -> Option<Resource> {
    let index_in = |row: &Row| -> Option<u32> {
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
