//! Replies, made once and cached: from a request to the acts on its connection.
//!
//! Cached are the replies of well-behaved hosts to `GET` over HTTP/1.1, both unencoded and in the
//! host's content coding, until the memory set for them is used up (later ones are made for each
//! request), and the expensive replies of hostile hosts. Cost of a cached reply: one hash and one
//! comparison of its path.

use super::connection::Act;
use super::request::{Request, has_token};
use super::{Settings, Totals, log::Log};
use crate::ground::map::Map;
use crate::ground::time::Instant;
use crate::study::web::wire::{self, Step, Terms, Wire};
use crate::study::web::{
    Answer, Coding, Host, Place, Play, Proof, Reply, Resource, Web, is_unmodified,
};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// A reply ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) bytes: Rc<[u8]>,
    /// The range in `bytes` that a `Connection: close` field replaces if the connection ends.
    pub(super) fields: Range<usize>,
    /// Whether the end of the connection marks the end of the body.
    pub(super) closes: bool,
    /// The page's number in the whole web; `None` if the reply is not that of a page of a
    /// well-behaved host.
    index: Option<usize>,
}

/// How a request is answered.
#[derive(Debug)]
pub(super) enum Response {
    Page(Page),
    Acts(Vec<Act>),
}

/// The cached replies of one host by path, unencoded and in the host's content coding.
#[derive(Debug, Default)]
struct Kept {
    plain: Map<Box<[u8]>, Page>,
    coded: Map<Box<[u8]>, Page>,
}

/// Answers requests, and counts and logs them.
#[derive(Debug)]
pub(super) struct Responder {
    pub(super) web: Web,
    pub(super) hosts: Vec<Host>,
    pub(super) log: Log,
    pub(super) totals: Totals,
    kept: Vec<Kept>,
    /// Memory left for cached replies, in bytes.
    bytes_left: usize,
    /// When the lab began, since 1970.
    unix: Duration,
    /// How old the web was when the lab began.
    began: Duration,
    /// How often a resource was requested, for hostile replies that depend on it.
    asked: Map<Place, u32>,
    /// For each page, whether it was requested.
    requested: Vec<bool>,
    plays: Map<Place, Vec<Act>>,
}

impl Responder {
    /// Creates the responder of a lab that begins at `unix`, a time since 1970.
    pub(super) fn new(settings: &Settings, web: Web, log: Log, unix: Duration) -> Self {
        let changes = web.settings().changes.as_ref();
        let changes = changes.map(|changes| Duration::from_secs(changes.epoch));
        let hosts: Vec<Host> = (0..web.hosts()).map(|number| web.host(number)).collect();
        let kept = hosts.iter().map(|_| Kept::default()).collect();
        let mut responder = Self {
            requested: vec![false; web.pages_total()],
            web,
            hosts,
            log,
            totals: Totals::default(),
            kept,
            // Pages that change are made again for each request.
            bytes_left: if changes.is_some() { 0 } else { settings.cache_bytes_max },
            unix,
            began: changes.map_or(Duration::ZERO, |epoch| unix.saturating_sub(epoch)),
            asked: Map::default(),
            plays: Map::default(),
        };
        if settings.warm {
            responder.warm();
        }
        responder
    }

    /// Makes all replies that can be cached: those in the hosts' codings first, because most
    /// clients accept these, and memory may not suffice for both forms.
    fn warm(&mut self) {
        for host in 0..self.web.hosts() {
            let rows = self.hosts[host as usize].hostile.map_or(&[][..], |kind| kind.spec().rows);
            for (row, at) in rows.iter().zip(0..).filter(|(row, _)| is_costly(row.play)) {
                let place = Place { host, resource: Resource::Row { row: at, index: 0 } };
                self.play(place, row.play, Terms::default());
            }
        }
        for is_coded in [true, false] {
            for host in 0..self.web.hosts() {
                let traits = &self.hosts[host as usize];
                let has_form = !is_coded || traits.coding != Coding::Identity;
                let is_good = traits.hostile.is_none_or(|kind| kind.spec().rows.is_empty());
                if is_good && has_form {
                    self.warm_host(host, Terms { coded: is_coded, ..Terms::default() });
                }
            }
        }
    }

    /// Makes the replies of a well-behaved host in one form.
    fn warm_host(&mut self, host: u32, terms: Terms) {
        let pages = (0..self.web.pages_of(host)).map(Resource::Page);
        let has_sitemap = self.web.has_sitemap(host);
        let others = [Resource::Robots].into_iter().chain(has_sitemap.then_some(Resource::Sitemap));
        for resource in pages.chain(others) {
            if self.bytes_left == 0 {
                return;
            }
            let place = Place { host, resource };
            let Answer::Reply(reply) = self.web.answer_at(place, Duration::ZERO) else { continue };
            let path = self.web.path(place);
            self.page(host, &path, Some(place), &reply, terms);
        }
    }

    /// Returns the host that a Host field names, among those behind one listener; the first of
    /// these hosts if the field is empty or an IP address; `None` if it names any other host.
    pub(super) fn route(&self, hosts: &[u32], field: &[u8]) -> Option<u32> {
        let name = field.split(|byte| *byte == b':').next().unwrap_or_default();
        let named =
            |host: &&u32| self.hosts[**host as usize].name.as_bytes().eq_ignore_ascii_case(name);
        let is_address = name.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        hosts.iter().find(named).or_else(|| hosts.first().filter(|_| is_address)).copied()
    }

    /// Returns the answer to a request to `host`.
    pub(super) fn respond(&mut self, host: u32, request: &Request<'_>, now: Instant) -> Response {
        let coding = self.hosts[host as usize].coding;
        let terms = Terms {
            http10: request.http10,
            head: request.head,
            coded: coding != Coding::Identity
                && has_token(request.accept_encoding, coding.name().as_bytes()),
            ..Terms::default()
        };
        if !terms.head && !terms.http10 {
            let kept = &self.kept[host as usize];
            let by_path = if terms.coded { &kept.coded } else { &kept.plain };
            if let Some(page) = by_path.get(request.path) {
                let page = page.clone();
                self.count_page(&page);
                return Response::Page(page);
            }
        }
        // A path that isn't UTF-8 belongs to no resource.
        let path = std::str::from_utf8(request.path).unwrap_or("");
        let place = self.web.place(host, path);
        let at = self.began + now.since(Instant::ZERO);
        let reply = match self.web.answer(place, at) {
            Answer::Reply(reply) => reply,
            Answer::Play(play) => {
                let place = place.expect("plays have their places");
                let keys = self
                    .web
                    .settings()
                    .keys
                    .as_ref()
                    .filter(|_| matches!(play, Play::Signed | Play::SignedRules));
                let unix = (self.unix + now.since(Instant::ZERO)).as_secs();
                let proof = keys.map(|keys| keys.proof(request.head_bytes, Some(unix)));
                let terms = Terms { signed: proof == Some(Proof::Holds), ..terms };
                return Response::Acts(self.play(place, play, terms));
            }
        };
        let unmodified = is_unmodified(&reply, request.none_match, request.modified_since);
        let page = self.page(host, path, place, &reply, Terms { unmodified, ..terms });
        if !terms.head {
            self.count_page(&page);
        }
        Response::Page(page)
    }

    /// Counts a page as requested, if this is its first request.
    fn count_page(&mut self, page: &Page) {
        if let Some(requested) = page.index.map(|index| &mut self.requested[index]) {
            self.totals.pages += u64::from(!std::mem::replace(requested, true));
        }
    }

    /// Encodes a reply to a request for `path` of a host and returns it; caches it if there is
    /// memory.
    fn page(
        &mut self,
        host: u32,
        path: &str,
        place: Option<Place>,
        reply: &Reply,
        terms: Terms,
    ) -> Page {
        let wire = wire::encode(reply, &self.hosts[host as usize], terms);
        let page = Page::new(wire, place.and_then(|place| self.index(place)));
        let cost = page.bytes.len() + path.len() + 64;
        if !terms.head && !terms.http10 && place.is_some() {
            // A reply that doesn't fit ends the caching, so that later ones are not tried in vain.
            let Some(left) = self.bytes_left.checked_sub(cost) else {
                self.bytes_left = 0;
                return page;
            };
            self.bytes_left = left;
            let kept = &mut self.kept[host as usize];
            let by_path = if terms.coded { &mut kept.coded } else { &mut kept.plain };
            by_path.insert(path.as_bytes().into(), page.clone());
        }
        page
    }

    /// Returns the number of a page in the whole web; `None` if the place is not a page.
    fn index(&self, place: Place) -> Option<usize> {
        match place.resource {
            Resource::Page(page) => Some(self.web.page_index(place.host, page)),
            Resource::Robots | Resource::Sitemap | Resource::Row { .. } => None,
        }
    }

    fn play(&mut self, place: Place, play: Play, terms: Terms) -> Vec<Act> {
        if let Some(acts) = self.plays.get(&place) {
            return acts.clone();
        }
        let mut asked = 0;
        if matches!(play, Play::RetryAfter { .. }) {
            let count = self.asked.entry(place).or_default();
            asked = std::mem::replace(count, count.saturating_add(1));
        }
        let steps = wire::script(&self.web, place, play, asked, terms);
        let acts: Vec<Act> = steps.into_iter().map(Act::from).collect();
        if is_costly(play) {
            self.plays.insert(place, acts.clone());
        }
        acts
    }

    /// Returns the acts that send a refusal with this status. The caller closes the connection
    /// after them.
    pub(super) fn refusal(status: u16) -> Vec<Act> {
        let text =
            format!("HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        vec![Act::send(text.into_bytes())]
    }

    /// Returns the time to the first byte of the next reply of a host.
    pub(super) fn think_time(&self, host: u32) -> Duration {
        let request = self.totals.requests as u32;
        self.web.think_time(&self.hosts[host as usize], request)
    }
}

impl Page {
    fn new(wire: Wire, index: Option<usize>) -> Self {
        let Wire { bytes, fields_at, fields_end, closes } = wire;
        Self { bytes: bytes.into(), fields: fields_at..fields_end, closes, index }
    }
}

impl From<Step> for Act {
    fn from(step: Step) -> Self {
        match step {
            Step::Send(bytes) => Self::send(bytes),
            Step::Repeat(bytes) => Self::Repeat { bytes: bytes.into(), at: 0 },
            Step::Drip(bytes) => Self::Drip { bytes: bytes.into(), at: 0 },
            Step::Stall => Self::Stall,
            Step::Close => Self::Close(super::log::End::Play),
            Step::Reset => Self::Reset,
        }
    }
}

fn is_costly(play: Play) -> bool {
    matches!(play, Play::Bomb(_) | Play::BombTwice | Play::Heavy(_) | Play::HugeRobots)
}
