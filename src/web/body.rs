//! Bodies: HTML with prose, links in the spellings of the wild, and what isn't a link.
//!
//! Laws: a body has the length the page was drawn with, unless its links alone need more; the
//! references a crawler follows in it, joined to the page's URL by the WHATWG rules, are exactly
//! the page's [`super::Link`]s and, on noisy pages, some that lead outside `.test`; everything in
//! comments, scripts and raw text that looks like a reference leads to `/decoy/`, where nothing is.

use super::draw::{Draw, Purpose};
use super::hostile::Play;
use super::{Link, Place, Reply, Resource, Web};
use std::fmt::Write;

const WORDS: [&str; 64] = [
    "river", "stone", "the", "of", "and", "crawl", "garden", "winter", "a", "lamp", "to", "page",
    "in", "harbour", "letter", "is", "green", "market", "with", "bridge", "old", "for", "paper",
    "that", "city", "field", "on", "copper", "night", "by", "window", "salt", "from", "road", "it",
    "morning", "as", "engine", "silver", "was", "thread", "queue", "are", "forest", "quiet", "at",
    "number", "coast", "be", "index", "north", "story", "this", "wheel", "map", "or", "signal",
    "bread", "an", "archive", "glass", "mountain", "one", "host",
];

/// Long against a page, so that a page rarely holds the same passage twice.
const PROSE_BYTES: usize = 256 << 10;
const TAIL: &str = "</p>\n</body></html>\n";

/// How a link's reference is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// Relative to the base's folder.
    Relative,
    /// From the root of the host.
    Rooted,
    /// The whole URL.
    Whole,
    /// Without the scheme.
    Schemeless,
    /// Whole, scheme and host in capitals.
    Capitals,
    /// Rooted, with dot segments.
    Dotted,
    /// Rooted, with a fragment.
    Fragment,
    /// Rooted, some characters as references.
    Entities,
    /// Rooted, blanks around and a line end and a tab inside.
    Blanks,
    /// Rooted, the path's slashes turned round.
    Backslashes,
    /// Rooted, what is escaped in the URL written as it reads.
    Raw,
}

const PLAIN: [Spelling; 4] =
    [Spelling::Relative, Spelling::Relative, Spelling::Rooted, Spelling::Whole];
const ODD: [Spelling; 8] = [
    Spelling::Schemeless,
    Spelling::Capitals,
    Spelling::Dotted,
    Spelling::Fragment,
    Spelling::Entities,
    Spelling::Blanks,
    Spelling::Backslashes,
    Spelling::Raw,
];

impl Web {
    /// The body of an HTML page.
    pub(super) fn body(&self, host: u32, page: u32) -> String {
        let place = Place { host, resource: Resource::Page(page) };
        self.html(place, self.page_bytes(host, page))
    }

    /// The body of an HTML page without the prose: the same links, spelt the same way. For worlds
    /// that charge a page at its length and don't move its bytes.
    pub fn compact_body(&self, host: u32, page: u32) -> String {
        self.html(Place { host, resource: Resource::Page(page) }, 0)
    }

    /// The page of a hostile host's play; a small one.
    pub(super) fn row_body(&self, place: Place) -> String {
        self.html(place, 1_500)
    }

    /// One of the bodies that duplicates share. It names nothing of the page it is on.
    pub(super) fn shared_body(&self, host: u32, which: u32) -> String {
        let mut body = format!("<!DOCTYPE html>\n<title>Print view {which}</title>\n<body>\n<p>");
        body.push_str("<a href=\"/\">Home</a>\n");
        let mut draw = self.draw(Purpose::Size, host, u32::MAX - which);
        let bytes = draw.lognormal(self.settings.page_bytes).min(64e6) as usize;
        finish(&mut body, &self.prose, &mut draw, bytes);
        body
    }

    pub(super) fn binary_reply(&self, host: u32, page: u32) -> Reply {
        let mut draw = self.draw(Purpose::Body, host, page);
        let types = ["application/pdf", "image/png", "application/octet-stream"];
        let content_type = *draw.pick(&types);
        let mut body = b"\x89\x00\xff<a href=\"/decoy/binary\">".to_vec();
        let bytes = self.page_bytes(host, page);
        while body.len() < bytes {
            body.extend(draw.next().to_le_bytes());
        }
        Reply { status: 200, content_type, fields: String::new(), body }
    }

    fn html(&self, place: Place, bytes: usize) -> String {
        let number = match place.resource {
            Resource::Page(page) => page,
            Resource::Row { row, index } => row << 24 ^ index,
            Resource::Robots => 0,
        };
        // Links and prose draw apart, so that a body without prose spells its links alike.
        let mut draw = self.draw(Purpose::Body, place.host, number);
        let mut noise = self.draw(Purpose::Noise, place.host, number);
        let mut prose = noise.clone();
        prose.next();
        let links = self.links(place);
        let mut body = String::with_capacity(bytes + 256 + links.len() * 16);
        let path = self.path(place);
        let _ = write!(
            body,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <title>Page {number} of {}</title>\n",
            self.name_of(place.host)
        );
        let base = self.write_base(&mut body, &mut draw, place.host, &path);
        let noisy = noise.chance(self.settings.noise);
        if noisy {
            write_head_noise(&mut body);
        }
        body.push_str("</head><body>\n<h1>");
        push_prose(&mut body, &self.prose, &mut prose, if bytes == 0 { 0 } else { 30 });
        body.push_str("</h1>\n<p>");
        let gap = bytes.saturating_sub(body.len() + TAIL.len()) / (links.len() + 1);
        for (at, link) in links.iter().enumerate() {
            let before = body.len();
            self.write_link(&mut body, &mut draw, *link, place.host, &base);
            if noisy && at % 5 == 2 {
                write_noise(&mut body, &mut noise);
            }
            let filled = body.len() - before;
            push_prose(&mut body, &self.prose, &mut prose, gap.saturating_sub(filled + 4));
            body.push_str("</p>\n<p>");
        }
        finish(&mut body, &self.prose, &mut prose, bytes);
        body
    }

    /// Writes a base element now and then. Returns the folder that references are relative to.
    fn write_base(&self, body: &mut String, draw: &mut Draw, host: u32, path: &str) -> String {
        if draw.chance(self.settings.odd_links / 4.0) {
            let whole = draw.chance(0.5);
            let origin = if whole { self.origin(host) } else { String::new() };
            let _ = writeln!(body, "<base href=\"{origin}/s1/deep/\" target=_top>");
            return "/s1/deep/".to_owned();
        }
        folder_of(path).to_owned()
    }

    fn write_link(&self, body: &mut String, draw: &mut Draw, link: Link, host: u32, base: &str) {
        let odd = draw.chance(self.settings.odd_links);
        let list = if odd { &ODD[..] } else { &PLAIN[..] };
        let drawn = *draw.pick(list);
        let reference = self.reference(link.to, host, base, drawn);
        let _ = match (odd, draw.below(10)) {
            (true, 0) => write!(body, "<map><area shape=rect href=\"{reference}\"></map>"),
            (true, 1) => write!(body, "<iframe src='{reference}'></iframe>"),
            (true, 2) => write!(body, "<A\nclass=\"x>y\" HREF = '{reference}'>there</A>"),
            (true, 3) if !link.sure => {
                write!(body, "<a rel=\"nofollow\" href=\"{reference}\">here</a>")
            }
            (true, 4) if is_bare(&reference) => write!(body, "<a href={reference}>bare</a>"),
            _ => write!(body, "<a href=\"{reference}\">{}</a>", draw.pick(&WORDS)),
        };
    }

    /// The reference as it stands in an attribute's value.
    fn reference(&self, to: Place, host: u32, base: &str, spelling: Spelling) -> String {
        let path = self.path(to);
        let local = to.host == host;
        let spelling = match spelling {
            Spelling::Schemeless if self.scheme_of(to.host) != self.scheme_of(host) => {
                Spelling::Whole
            }
            other => other,
        };
        let origin = || self.origin(to.host);
        // What starts at the root needs the origin in front of it if it is another's.
        let rooted = |path: &str| {
            if local { path.to_owned() } else { format!("{}{path}", origin()) }
        };
        let text = match spelling {
            Spelling::Relative if local => relative(base, &path),
            Spelling::Relative | Spelling::Rooted => rooted(&path),
            Spelling::Whole => format!("{}{path}", origin()),
            Spelling::Schemeless => {
                let origin = origin();
                let (_, rest) = origin.split_once(':').expect("an origin has a scheme");
                format!("{rest}{path}")
            }
            Spelling::Capitals => format!("{}{path}", origin().to_ascii_uppercase()),
            Spelling::Dotted => rooted(&format!("/x/./y/../..{path}")),
            Spelling::Fragment => rooted(&format!("{path}#part-2")),
            Spelling::Blanks => {
                let inside = path.replacen("/p", "/\n\tp", 1);
                format!(" \n{} ", rooted(&inside))
            }
            Spelling::Backslashes if !path.contains('?') => rooted(&path.replace('/', "\\")),
            Spelling::Backslashes => rooted(&path),
            Spelling::Raw => rooted(&path.replace("%C3%A9", "é").replace("%20", " ")),
            Spelling::Entities => {
                let entities = rooted(&path).replace('&', "&#38;");
                return entities.replacen('/', "&#x2F;", 1).replacen('t', "&#116;", 1);
            }
        };
        if text.contains('&') { text.replace('&', "&amp;") } else { text }
    }
}

impl Web {
    /// The page that an [`Play::Index`], [`Play::Plain`] or [`Play::TwoMore`] shows.
    pub(super) fn play_reply(&self, place: Place, play: Play) -> Reply {
        let mut reply = Reply::html(200, self.row_body(place));
        if play == Play::Plain {
            // By this a client can tell a reply that isn't to its request (RFC 9110 8.7).
            reply.fields = format!("Content-Location: {}\r\n", self.path(place));
        }
        reply
    }
}

/// An attribute value that needs no quotes.
fn is_bare(reference: &str) -> bool {
    !reference.is_empty()
        && reference.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.:_-#".contains(&byte))
        // `<a href=/x/>`: the slash belongs to the value, but many a reader stumbles over it.
        && !reference.ends_with('/')
}

fn folder_of(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or(path);
    &path[..path.rfind('/').map_or(0, |slash| slash + 1)]
}

/// The shortest reference from a folder to a path on the same host.
fn relative(base: &str, path: &str) -> String {
    let folder = folder_of(path);
    let same = base.bytes().zip(folder.bytes()).take_while(|(a, b)| a == b).count();
    let shared = base[..same].rfind('/').map_or(0, |slash| slash + 1);
    let up = base[shared..].matches('/').count();
    let rest = &path[shared..];
    match (up, rest) {
        (0, "") => "./".to_owned(),
        _ => "../".repeat(up) + rest,
    }
}

fn write_head_noise(body: &mut String) {
    body.push_str(
        "<style>a::after { content: \"<a href='/decoy/style'>\" }</style>\n\
         <script>var s = '<a href=\"/decoy/script\">'; if (1 < 2) s += \"<\\/a>\"</script>\n\
         <!-- <a href=\"/decoy/comment\">old</a> -- > still a comment -->\n",
    );
}

fn write_noise(body: &mut String, draw: &mut Draw) {
    const NOISE: [&str; 10] = [
        "<a href=\"mailto:office@h0000.test\">mail</a>",
        "<a href=\"javascript:void('/decoy/code')\">do</a>",
        "<a href=\"tel:+49301234567\">call</a>",
        "<a name=\"part-2\">part 2</a>",
        "<textarea><a href=\"/decoy/area\"></textarea>",
        "<a href=\"http://www.example.org/\">elsewhere</a>",
        "<a href=\"http://\">nowhere</a>",
        "<div data-href=\"/decoy/data\" title=\"<a href='/decoy/title'>\">&copy; &lt;a&gt;</div>",
        "<!--><!-- <a href=\"/decoy/again\"> --!>",
        "<a href=\"data:text/html,<a href=/decoy/inner>\">data</a>",
    ];
    let noise: &str = draw.pick::<&str>(&NOISE);
    body.push_str(noise);
}

/// Fills up to `bytes` and ends the body.
fn finish(body: &mut String, prose: &str, draw: &mut Draw, bytes: usize) {
    let room = bytes.saturating_sub(body.len() + TAIL.len());
    push_prose(body, prose, draw, room);
    body.push_str(TAIL);
}

/// The prose that all pages are cut from: one block, so that filling a page is copying.
pub(super) fn prose(seed: u64) -> Box<str> {
    let mut draw = Draw::new(seed, Purpose::Prose, 0, 0);
    let mut prose = String::with_capacity(PROSE_BYTES);
    while prose.len() < PROSE_BYTES {
        prose.push_str(draw.pick::<&str>(&WORDS));
        prose.push(if draw.chance(0.05) { '\n' } else { ' ' });
    }
    prose.into()
}

/// Adds exactly `bytes` of prose, from a drawn place on.
fn push_prose(body: &mut String, prose: &str, draw: &mut Draw, bytes: usize) {
    let end = body.len() + bytes;
    while body.len() < end {
        let from = draw.below(PROSE_BYTES as u32) as usize;
        // From the next word on.
        let word = prose[from..].find(' ').unwrap_or(0);
        let rest = &prose[from + word..];
        body.push_str(&rest[..rest.len().min(end - body.len())]);
    }
}
