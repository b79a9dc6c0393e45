//! Pages of a synthetic web: their paths, their kinds, their links, and the replies that carry
//! them.

use super::draw::Purpose;
use super::graph::Graph;
use super::hostile::{ENDLESS, Play};
use super::wire::CODED_BYTES_MIN;
use super::{Coding, Host, Place, ROBOTS_PATH, Resource, Robots, Shape, Web, push_number};
use std::fmt::Write;
use std::time::Duration;

/// The kind of a page of a well-behaved host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// HTML with links of the page's own.
    Html,
    /// HTML with the same body as other pages of the host; its one link leads to the root.
    Duplicate,
    /// A page that is not HTML, though parts of its body look like HTML.
    Binary,
    /// A redirect to another page.
    Redirect,
    /// Nothing is there: answered with 404.
    NotFound,
    /// An error of the server: answered with 500.
    ServerError,
    /// A page that the host's robots.txt disallows.
    Closed,
}

/// A link that a crawler is meant to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The target of the link.
    pub to: Place,
    /// True if this link may be the only one to `to`: the link from its parent in the tree of pages
    /// or hosts, any link of a graph, or one to a host that robots.txt disallows. Such a link is
    /// never written in a form that a crawler may be told not to follow. False if `to` is found
    /// without it.
    pub sure: bool,
}

/// A server's reply before framing and content coding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The value of Content-Type.
    pub content_type: &'static str,
    /// Further header fields, each with its own line end.
    pub fields: String,
    /// The body, without content coding.
    pub body: Vec<u8>,
}

impl Reply {
    pub(super) fn html(status: u16, body: String) -> Self {
        let content_type = "text/html; charset=utf-8";
        Self { status, content_type, fields: String::new(), body: body.into_bytes() }
    }

    pub(super) fn is_html(&self) -> bool {
        self.content_type.starts_with("text/html")
    }

    pub(super) fn text(body: String) -> Self {
        Self { content_type: "text/plain; charset=utf-8", ..Self::html(200, body) }
    }

    pub(super) fn not_found() -> Self {
        let body = "<!DOCTYPE html><title>404</title><p>Nothing here. <a href=\"/\">Home</a>";
        Self::html(404, body.to_owned())
    }

    pub(super) fn redirect(status: u16, location: &str) -> Self {
        let mut reply = Self::html(status, "<!DOCTYPE html><title>Elsewhere</title>".to_owned());
        reply.fields = format!("Location: {location}\r\n");
        reply
    }
}

/// A reply without most of its body: with the same links, and the lengths that the whole body would
/// have. It is for simulations, which count a body's length and don't move its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compact {
    /// The reply; its body holds the links and little else.
    pub reply: Reply,
    /// The length of the whole body on the wire in bytes: in the host's content coding if the
    /// client accepts it.
    pub wire_bytes: u64,
    /// The length of the whole body in bytes, before content coding.
    pub text_bytes: u64,
}

/// The number of pages in a folder.
const FOLDER_PAGES: u32 = 16;
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];
/// The number of bodies that the duplicates of a host share.
const DUPLICATES: u32 = 4;

impl Web {
    /// Returns the number of pages of the host with this number; 0 for hostile hosts.
    pub fn pages_of(&self, host: u32) -> u32 {
        let host = host as usize;
        self.starts.get(host + 1).map_or(0, |until| until - self.starts[host])
    }

    /// Returns the kind of a page of a well-behaved host.
    pub fn kind(&self, host: u32, page: u32) -> Kind {
        let of = &self.settings;
        if page == 0 || matches!(self.shape, Shape::Graph(_)) {
            return Kind::Html;
        }
        let mut at = self.draw(Purpose::Kind, host, page).unit();
        let closed = if self.robots_of(host) == Robots::Part { 0.15 } else { 0.0 };
        let shares = [
            (closed, Kind::Closed),
            (of.not_found, Kind::NotFound),
            (of.server_error, Kind::ServerError),
            (of.redirect, Kind::Redirect),
            (of.duplicate, Kind::Duplicate),
            (of.binary, Kind::Binary),
        ];
        for (share, kind) in shares {
            if at < share {
                return kind;
            }
            at -= share;
        }
        Kind::Html
    }

    /// Returns the length in bytes that an HTML page's body has before coding; if its links need
    /// more, the body is longer.
    pub fn page_bytes(&self, host: u32, page: u32) -> usize {
        let mut draw = self.draw(Purpose::Size, host, page);
        draw.lognormal(self.settings.page_bytes).min(64e6) as usize
    }

    /// Returns the links of the page at a place, in the order of the page. Those of a graph are as
    /// in the graph; of drawn ones, links to the page's children come first, then random ones.
    pub fn links(&self, place: Place) -> Vec<Link> {
        let host = place.host;
        match place.resource {
            Resource::Robots | Resource::Sitemap => Vec::new(),
            Resource::Row { row, index } => self.row_links(host, row, index),
            Resource::Page(page) if let Shape::Graph(graph) = &self.shape => {
                self.graph_links(graph, host, page)
            }
            Resource::Page(page) => match self.kind(host, page) {
                Kind::Html => self.html_links(host, page),
                Kind::Duplicate => {
                    vec![Link { to: Place { host, resource: Resource::Page(0) }, sure: false }]
                }
                _ => Vec::new(),
            },
        }
    }

    /// Returns the target of a page that redirects: page `page` of host `from`.
    pub fn redirect_of(&self, from: u32, page: u32) -> Place {
        let mut draw = self.draw(Purpose::Redirect, from, page);
        let (host, mut to) = if draw.chance(0.2) {
            let other = draw.below(self.settings.hosts);
            let deep = self.settings.deep_redirects;
            let below = if deep { page.min(self.pages_of(other)).max(1) } else { 1 };
            (other, draw.below(below))
        } else {
            (from, draw.below(page))
        };
        // A third of the redirects may lead to a redirect that leads to a page: chains have at most
        // two hops. Page numbers decrease along a chain, so that there are no loops.
        let relays = |host, page| self.draw(Purpose::Redirect, host, page).next().is_multiple_of(3);
        let relayed = relays(from, page);
        while self.kind(host, to) == Kind::Redirect && (relays(host, to) || !relayed) {
            to -= 1;
        }
        Place { host, resource: Resource::Page(to) }
    }

    /// Returns the links of a page of a graph. Each of them may be the only one to its target.
    fn graph_links(&self, graph: &Graph, host: u32, page: u32) -> Vec<Link> {
        let links = graph.links(self.starts[host as usize] + page).iter();
        links.map(|to| Link { to: self.place_of(*to as usize), sure: true }).collect()
    }

    fn html_links(&self, host: u32, page: u32) -> Vec<Link> {
        let mut draw = self.draw(Purpose::Links, host, page);
        let wanted = draw.lognormal(self.settings.links).min(10_000.0) as usize;
        let mut links = Vec::with_capacity(wanted.max(16));
        let first = |to| Link { to, sure: true };
        self.child_pages(host, page, &mut |child| {
            links.push(first(Place { host, resource: Resource::Page(child) }));
        });
        self.child_hosts(host, page, &mut |child| {
            links.push(first(Place { host: child, resource: Resource::Page(0) }));
        });
        let skew = self.settings.link_skew;
        while links.len() < wanted {
            let stays = draw.chance(self.settings.locality);
            let host = if stays { host } else { draw.skewed(self.settings.hosts, skew) };
            let page = draw.skewed(self.pages_of(host), skew);
            let to = Place { host, resource: Resource::Page(page) };
            // Robots.txt keeps crawlers from reading the pages of the target's host and the links
            // on them: this may be the only link to its target.
            let sure = !stays && self.robots_of(host) == Robots::Deny;
            links.push(Link { to, sure });
        }
        links
    }

    /// Calls `found` with each page whose first link is on page `page`: the page's children in the
    /// tree, and those of the pages numbered right after it that can't have links.
    fn child_pages(&self, host: u32, page: u32, found: &mut dyn FnMut(u32)) {
        let pages = u64::from(self.pages_of(host));
        let fanout = u64::from(self.settings.fanout);
        let mut parent = page;
        loop {
            let first = u64::from(parent) * fanout + 1;
            if first >= pages {
                return;
            }
            for child in first..(first + fanout).min(pages) {
                found(u32::try_from(child).expect("below the number of pages"));
            }
            parent += 1;
            if self.kind(host, parent) == Kind::Html {
                return;
            }
        }
    }

    /// Calls `found` with each host whose root has its first link on this page.
    fn child_hosts(&self, host: u32, page: u32, found: &mut dyn FnMut(u32)) {
        let hosts = u64::from(self.settings.hosts);
        let fanout = u64::from(self.settings.host_fanout);
        let seeds = u64::from(self.settings.seeds);
        let mut parent = host;
        loop {
            let first = u64::from(parent) * fanout + seeds;
            if first >= hosts {
                return;
            }
            for child in first..(first + fanout).min(hosts) {
                let child = u32::try_from(child).expect("below the number of hosts");
                if self.parent_page(host, child) == page {
                    found(child);
                }
            }
            parent += 1;
            if self.robots_of(parent) != Robots::Deny {
                return;
            }
        }
    }

    /// Returns the page of `host` with the first link to the root of host `child`.
    fn parent_page(&self, host: u32, child: u32) -> u32 {
        let mut page = self.draw(Purpose::Hang, host, child).below(self.pages_of(host));
        while self.kind(host, page) != Kind::Html {
            page -= 1;
        }
        page
    }

    fn row_links(&self, host: u32, row: u32, index: u32) -> Vec<Link> {
        let kind = self.hostile_of(host).expect("only hostile hosts have rows");
        let rows = kind.spec().rows;
        let link = |row, index| {
            let to = Place { host, resource: Resource::Row { row, index } };
            Link { to, sure: true }
        };
        match rows[row as usize].play {
            Play::Index => {
                let others = rows
                    .iter()
                    .zip(0..)
                    .filter(|(other, _)| other.path != ROBOTS_PATH && other.play != Play::Index);
                let heads = |(row, place): (&super::Row, u32)| {
                    let count = if row.count == ENDLESS { 1 } else { row.count };
                    (0..count).map(move |index| link(place, index))
                };
                others.flat_map(heads).collect()
            }
            Play::TwoMore | Play::Alike => {
                let next = index.saturating_mul(2).min(ENDLESS - 3);
                vec![link(row, next + 1), link(row, next + 2)]
            }
            _ => Vec::new(),
        }
    }

    /// Writes the path of a page. There is a folder for every sixteen pages; hosts name their
    /// folders and pages in several styles.
    pub(super) fn push_page_path(&self, out: &mut String, host: u32, page: u32) {
        if page == 0 {
            return out.push('/');
        }
        let drawn = self.draw(Purpose::Path, host, page).below(10);
        let fashion = if self.settings.easy { 0 } else { drawn };
        let part = self.robots_of(host) == Robots::Part;
        // The pieces of the path before the folder's number, between it and the page's number, and
        // after that.
        let (before, between, after) = match fashion {
            0..6 if part && self.kind(host, page) == Kind::Closed => ("/private/s", "/p", ".html"),
            _ if part && self.kind(host, page) == Kind::Closed => ("/s", "/p", ".bak"),
            0 if part => {
                out.push_str("/private/open/p");
                push_number(out, page, 1);
                return out.push_str(".html");
            }
            0..=3 => ("/s", "/p", ".html"),
            4 => ("/s", "/p", ""),
            5 => ("/s", "/view?sort=up&id=p", ""),
            6 => ("/s", "/deep/er/p", "/"),
            7 => ("/~u", "/p", ".htm"),
            8 => ("/s", "/caf%C3%A9/p", ".html"),
            _ => ("/s", "/a%20b/p", ".html"),
        };
        out.push_str(before);
        push_number(out, page / FOLDER_PAGES, 1);
        out.push_str(between);
        push_number(out, page, 1);
        out.push_str(after);
    }

    /// Returns the number of the page at a path; `None` if there is none. Every path but the root
    /// has the page's number after its last `p`.
    pub(super) fn page_at(&self, host: u32, path: &str) -> Option<u32> {
        if path == "/" {
            return Some(0);
        }
        let numbers = path.split('p').rev().filter_map(|rest| {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            rest[..digits].parse::<u32>().ok()
        });
        let pages = self.pages_of(host);
        let mut fitting = numbers.take(3).filter(|page| *page != 0 && *page < pages);
        fitting.find(|page| {
            let mut found = String::with_capacity(path.len());
            self.push_page_path(&mut found, host, *page);
            found == path
        })
    }

    /// Returns the reply to a request for a page of a well-behaved host, without most of its body.
    /// `coded` says whether the client accepts the host's content coding. A body that isn't HTML,
    /// or is the same as other pages', is cut short. `at` is the time since the web began.
    pub fn compact(&self, host: &Host, page: u32, coded: bool, at: Duration) -> Compact {
        let (reply, text_bytes) = self.reply(host.number, page, true, at);
        let coded = coded
            && host.coding != Coding::Identity
            && reply.is_html()
            && text_bytes >= CODED_BYTES_MIN;
        let text_bytes = text_bytes as u64;
        let ratio = if coded { self.settings.coded_ratio.max(1.0) } else { 1.0 };
        let wire_bytes = (text_bytes as f64 / ratio).ceil() as u64;
        Compact { reply, wire_bytes, text_bytes }
    }

    pub(super) fn page_reply(&self, host: u32, page: u32, at: Duration) -> Reply {
        self.reply(host, page, false, at).0
    }

    /// Returns the reply to a request for a page, and the length of its whole body in bytes. With
    /// `compact` most of the body is left out.
    fn reply(&self, host: u32, page: u32, compact: bool, at: Duration) -> (Reply, usize) {
        let (mut reply, bytes) = self.reply_of_kind(host, page, compact, at);
        let written = reply.body.len();
        self.age_reply(Place { host, resource: Resource::Page(page) }, at, &mut reply);
        self.speak(host, &mut reply);
        let is_here = reply.status == 200;
        let bytes = if is_here { bytes + reply.body.len() - written } else { reply.body.len() };
        (reply, bytes)
    }

    fn reply_of_kind(&self, host: u32, page: u32, compact: bool, at: Duration) -> (Reply, usize) {
        let mut draw = self.draw(Purpose::Body, host, page);
        let html = |(body, bytes)| (Reply::html(200, body), bytes);
        let whole = |reply: Reply| {
            let bytes = reply.body.len();
            (reply, bytes)
        };
        match self.kind(host, page) {
            Kind::Html | Kind::Closed if compact => html(self.compact_body(host, page, at)),
            Kind::Html | Kind::Closed => whole(Reply::html(200, self.body(host, page, at))),
            Kind::Duplicate => html(self.shared_body(host, draw.below(DUPLICATES), compact)),
            Kind::Binary => self.binary_reply(host, page, compact),
            Kind::NotFound => whole(Reply::not_found()),
            Kind::ServerError => {
                let body = "<!DOCTYPE html><title>500</title><p>Out of order.";
                whole(Reply::html(500, body.to_owned()))
            }
            Kind::Redirect => {
                let to = self.redirect_of(host, page);
                let whole_url = to.host != host || draw.chance(0.5);
                let location = if whole_url { self.url(to) } else { self.path(to) };
                whole(Reply::redirect(*draw.pick(&REDIRECTS), &location))
            }
        }
    }

    pub(super) fn robots_reply(&self, host: u32) -> Reply {
        let mut rules = String::from("# Rules of a synthetic host.\nUser-agent: *\n");
        match self.robots_of(host) {
            Robots::None => return Reply::not_found(),
            Robots::Allow => rules.push_str("Disallow:\n"),
            // The rules for another crawler come first. Of the rules that match a path, the longest
            // wins, not the first.
            Robots::Part => {
                rules.insert_str(0, "User-agent: some-other-crawler\nDisallow: /\n\n");
                rules.push_str("Disallow: /private/\nAllow: /private/open/\nDisallow: /*.bak$\n");
            }
            Robots::Delay => {
                let seconds = self.settings.crawl_delay.as_secs_f64();
                let _ = writeln!(rules, "Crawl-delay: {seconds}\nDisallow: /decoy/");
            }
            Robots::Deny => rules.push_str("Disallow: /\n"),
        }
        self.speak_in_robots(host, &mut rules);
        if self.has_sitemap(host) {
            let place = Place { host, resource: Resource::Sitemap };
            let _ = writeln!(rules, "Sitemap: {}", self.url(place));
        }
        Reply::text(rules)
    }
}
