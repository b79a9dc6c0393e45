//! Bodies of pages: HTML with prose, links in many spellings, and text that only looks like links.
//!
//! Laws: a body has the length drawn for the page, unless its links alone need more. The references
//! that a crawler follows in it, joined to the page's URL by the WHATWG rules, are exactly the
//! page's [`super::Link`]s and, on noisy pages, some that lead outside `.test`. Everything in
//! comments, scripts and raw text that looks like a reference leads to `/decoy/`, where nothing
//! exists.

use super::draw::{Draw, Purpose};
use super::hostile::Play;
use super::{Link, Place, Reply, Resource, Web};
use std::fmt::Write;
use std::time::Duration;

const WORDS: [&str; 64] = [
    "river", "stone", "the", "of", "and", "crawl", "garden", "winter", "a", "lamp", "to", "page",
    "in", "harbour", "letter", "is", "green", "market", "with", "bridge", "old", "for", "paper",
    "that", "city", "field", "on", "copper", "night", "by", "window", "salt", "from", "road", "it",
    "morning", "as", "engine", "silver", "was", "thread", "queue", "are", "forest", "quiet", "at",
    "number", "coast", "be", "index", "north", "story", "this", "wheel", "map", "or", "signal",
    "bread", "an", "archive", "glass", "mountain", "one", "host",
];

/// The length of the block of prose: much longer than a page, so that a page rarely has the same
/// passage twice.
const PROSE_BYTES: usize = 256 << 10;
/// The bytes of prose kept in a compact copy of a shared body, so that the bodies of different
/// hosts differ.
const COMPACT_PROSE_BYTES: usize = 64;
const TAIL: &str = "</p>\n</body></html>\n";

/// How the reference of a link is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// Relative to the folder of the page, or of its base element.
    Relative,
    /// From the root of the host: `/path`.
    Rooted,
    /// The full URL, scheme included.
    Whole,
    /// The URL without its scheme.
    Schemeless,
    /// The full URL, with scheme and host in capitals.
    Capitals,
    /// From the root of the host, with dot segments such as `/./`.
    Dotted,
    /// From the root of the host, with a fragment.
    Fragment,
    /// From the root of the host, with some characters as HTML entities.
    Entities,
    /// From the root of the host, with blanks around it and a line end and a tab inside.
    Blanks,
    /// From the root of the host, with backslashes in place of the path's slashes.
    Backslashes,
    /// From the root of the host, with those characters unescaped that the page's URL has escaped.
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

/// A body being written.
struct Sheet<'a> {
    text: String,
    /// The prose to cut text from; `None` if prose is only counted, not written.
    prose: Option<&'a str>,
    /// The bytes of prose that were counted, but not written.
    omitted: usize,
}

/// What the references of a page are relative to, and a buffer to write them in.
struct Desk {
    host: u32,
    /// The folder that relative references start from.
    base: String,
    path: String,
    reference: String,
}

impl Web {
    /// Returns the body of an HTML page of a well-behaved host.
    pub(super) fn body(&self, host: u32, page: u32, at: Duration) -> String {
        let place = Place { host, resource: Resource::Page(page) };
        self.html(place, self.page_bytes(host, page), Some(&self.prose), at).text
    }

    /// Returns the body of an HTML page without prose, with the same links in the same spellings,
    /// and the length it would have with prose.
    pub(super) fn compact_body(&self, host: u32, page: u32, at: Duration) -> (String, usize) {
        let place = Place { host, resource: Resource::Page(page) };
        let sheet = self.html(place, self.page_bytes(host, page), None, at);
        let bytes = sheet.len();
        (sheet.text, bytes)
    }

    /// Returns the small HTML page at a resource of a hostile host.
    pub(super) fn row_body(&self, place: Place) -> String {
        self.html(place, 1_500, Some(&self.prose), Duration::ZERO).text
    }

    /// Returns the body that all duplicates with the number `which` on a host share, and its whole
    /// length. It contains nothing specific to the page. With `compact` it is cut short, but still
    /// differs from the other bodies.
    pub(super) fn shared_body(&self, host: u32, which: u32, compact: bool) -> (String, usize) {
        let mut sheet = Sheet { text: String::new(), prose: Some(&self.prose), omitted: 0 };
        sheet.text = format!("<!DOCTYPE html>\n<title>Print view {which}</title>\n<body>\n<p>");
        sheet.text.push_str("<a href=\"/\">Home</a>\n");
        let mut draw = self.draw(Purpose::Size, host, u32::MAX - which);
        let bytes = draw.lognormal(self.settings.page_bytes).min(64e6) as usize;
        let least = sheet.len() + TAIL.len();
        let written = if compact { bytes.min(least + COMPACT_PROSE_BYTES) } else { bytes };
        sheet.finish(&mut draw, written);
        (sheet.text, bytes.max(least))
    }

    /// Returns the reply for a page that isn't HTML, and the whole length of its body. With
    /// `compact` the body is cut short.
    pub(super) fn binary_reply(&self, host: u32, page: u32, compact: bool) -> (Reply, usize) {
        let mut draw = self.draw(Purpose::Body, host, page);
        let types = ["application/pdf", "image/png", "application/octet-stream"];
        let content_type = *draw.pick(&types);
        let mut body = b"\x89\x00\xff<a href=\"/decoy/binary\">".to_vec();
        let rest = self.page_bytes(host, page).saturating_sub(body.len());
        let words = rest.div_ceil(8);
        let bytes = body.len() + words * 8;
        for _ in 0..if compact { words.min(1) } else { words } {
            body.extend(draw.next().to_le_bytes());
        }
        (Reply { status: 200, content_type, fields: String::new(), body }, bytes)
    }

    /// Writes the HTML of a place with the links that it has `at` a time since the web began.
    fn html<'a>(
        &'a self,
        place: Place,
        bytes: usize,
        prose: Option<&'a str>,
        at: Duration,
    ) -> Sheet<'a> {
        let number = match place.resource {
            Resource::Page(page) => page,
            Resource::Row { row, index } => row << 24 ^ index,
            Resource::Robots | Resource::Sitemap => 0,
        };
        // Links and prose have separate draws, so that a body without prose spells its links alike.
        let mut draw = self.draw(Purpose::Body, place.host, number);
        let mut noise = self.draw(Purpose::Noise, place.host, number);
        let mut prose_draw = noise.clone();
        prose_draw.next();
        let mut links = self.links(place);
        links.retain(|link| self.has_appeared(link.to, at));
        let room = 300 + links.len() * 64 + if prose.is_some() { bytes } else { 0 };
        let mut sheet = Sheet { text: String::with_capacity(room), prose, omitted: 0 };
        let _ = write!(
            sheet.text,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <title>Page {number} of {}</title>\n",
            self.name_of(place.host)
        );
        let mut desk = self.desk(place);
        self.write_base(&mut sheet.text, &mut draw, &mut desk);
        let noisy = noise.chance(self.settings.noise);
        if noisy {
            write_head_noise(&mut sheet.text);
        }
        sheet.text.push_str("</head><body>\n<h1>");
        sheet.push_prose(&mut prose_draw, if bytes == 0 { 0 } else { 30 });
        sheet.text.push_str("</h1>\n<p>");
        let gap = bytes.saturating_sub(sheet.len() + TAIL.len()) / (links.len() + 1);
        for (at, link) in links.iter().enumerate() {
            let before = sheet.text.len();
            self.write_link(&mut sheet.text, &mut draw, &mut desk, *link);
            if noisy && at % 5 == 2 {
                write_noise(&mut sheet.text, &mut noise);
            }
            let filled = sheet.text.len() - before;
            sheet.push_prose(&mut prose_draw, gap.saturating_sub(filled + 4));
            sheet.text.push_str("</p>\n<p>");
        }
        sheet.finish(&mut prose_draw, bytes);
        sheet
    }

    fn desk(&self, place: Place) -> Desk {
        let path = self.path(place);
        let base = folder_of(&path).to_owned();
        Desk { host: place.host, base, path, reference: String::new() }
    }

    /// Writes a base element on some pages, and sets the base in `desk` accordingly.
    fn write_base(&self, body: &mut String, draw: &mut Draw, desk: &mut Desk) {
        if draw.chance(self.settings.odd_links / 4.0) {
            let whole = draw.chance(0.5);
            let origin = if whole { self.origin(desk.host) } else { String::new() };
            let _ = writeln!(body, "<base href=\"{origin}/s1/deep/\" target=_top>");
            "/s1/deep/".clone_into(&mut desk.base);
        }
    }

    fn write_link(&self, body: &mut String, draw: &mut Draw, desk: &mut Desk, link: Link) {
        let odd = draw.chance(self.settings.odd_links);
        let list = if odd { &ODD[..] } else { &PLAIN[..] };
        let drawn = *draw.pick(list);
        self.write_reference(desk, link.to, drawn);
        let reference = desk.reference.as_str();
        let _ = match (odd, draw.below(10)) {
            (true, 0) => write!(body, "<map><area shape=rect href=\"{reference}\"></map>"),
            (true, 1) => write!(body, "<iframe src='{reference}'></iframe>"),
            (true, 2) => write!(body, "<A\nclass=\"x>y\" HREF = '{reference}'>there</A>"),
            (true, 3) if !link.sure => {
                write!(body, "<a rel=\"nofollow\" href=\"{reference}\">here</a>")
            }
            (true, 4) if is_bare(reference) => write!(body, "<a href={reference}>bare</a>"),
            // Nearly all links take this case: writing in pieces is twice as fast.
            _ => {
                for piece in ["<a href=\"", reference, "\">", draw.pick::<&str>(&WORDS), "</a>"] {
                    body.push_str(piece);
                }
                Ok(())
            }
        };
    }

    /// Writes the reference to a place as the value of an attribute, in the given spelling.
    fn write_reference(&self, desk: &mut Desk, to: Place, spelling: Spelling) {
        let Desk { host, base, path, reference } = desk;
        let local = to.host == *host;
        path.clear();
        self.push_path(path, to);
        reference.clear();
        let spelling = match spelling {
            Spelling::Relative if !local => Spelling::Rooted,
            Spelling::Schemeless if self.scheme_of(to.host) != self.scheme_of(*host) => {
                Spelling::Whole
            }
            Spelling::Backslashes if path.contains('?') => Spelling::Rooted,
            other => other,
        };
        if spelling == Spelling::Blanks {
            reference.push_str(" \n");
        }
        // A reference from the root needs an origin in front of it if it leads to another host.
        let whole = [Spelling::Whole, Spelling::Schemeless, Spelling::Capitals];
        if !local || whole.contains(&spelling) {
            self.push_origin(reference, to.host);
        }
        match spelling {
            Spelling::Relative => push_relative(reference, base, path),
            Spelling::Rooted | Spelling::Whole => reference.push_str(path),
            Spelling::Schemeless => {
                let colon = reference.find(':').expect("an origin has a scheme");
                reference.drain(..=colon);
                reference.push_str(path);
            }
            Spelling::Capitals => {
                reference.make_ascii_uppercase();
                reference.push_str(path);
            }
            Spelling::Dotted => {
                reference.push_str("/x/./y/../..");
                reference.push_str(path);
            }
            Spelling::Fragment => {
                reference.push_str(path);
                reference.push_str("#part-2");
            }
            Spelling::Blanks => {
                reference.push_str(&path.replacen("/p", "/\n\tp", 1));
                reference.push(' ');
            }
            Spelling::Backslashes => reference.push_str(&path.replace('/', "\\")),
            Spelling::Raw => {
                reference.push_str(&path.replace("%C3%A9", "é").replace("%20", " "));
            }
            Spelling::Entities => {
                reference.push_str(path);
                let entities = reference.replace('&', "&#38;");
                *reference = entities.replacen('/', "&#x2F;", 1).replacen('t', "&#116;", 1);
                return;
            }
        }
        if reference.contains('&') {
            *reference = reference.replace('&', "&amp;");
        }
    }
}

impl Sheet<'_> {
    /// Returns the length of the body, including the prose that was counted, but not written.
    fn len(&self) -> usize {
        self.text.len() + self.omitted
    }

    /// Adds exactly `bytes` of prose, from a drawn position of the block on.
    fn push_prose(&mut self, draw: &mut Draw, bytes: usize) {
        let Some(prose) = self.prose else {
            self.omitted += bytes;
            return;
        };
        let end = self.text.len() + bytes;
        while self.text.len() < end {
            let from = draw.below(PROSE_BYTES as u32) as usize;
            // Start at the next word.
            let word = prose[from..].find(' ').unwrap_or(0);
            let rest = &prose[from + word..];
            self.text.push_str(&rest[..rest.len().min(end - self.text.len())]);
        }
    }

    /// Fills the body with prose up to `bytes` and ends it.
    fn finish(&mut self, draw: &mut Draw, bytes: usize) {
        let room = bytes.saturating_sub(self.len() + TAIL.len());
        self.push_prose(draw, room);
        self.text.push_str(TAIL);
    }
}

impl Web {
    /// Returns the reply with the page that a [`Play::Index`], [`Play::Plain`] or [`Play::TwoMore`]
    /// sends.
    pub(super) fn play_reply(&self, place: Place, play: Play) -> Reply {
        let mut reply = Reply::html(200, self.row_body(place));
        if play == Play::Plain {
            // By this field a client can detect a reply to another request (RFC 9110, section 8.7).
            reply.fields = format!("Content-Location: {}\r\n", self.path(place));
        }
        reply
    }
}

/// Whether `reference` can be written as an attribute value without quotes.
fn is_bare(reference: &str) -> bool {
    !reference.is_empty()
        && reference.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.:_-#".contains(&byte))
        // In `<a href=/x/>` the slash belongs to the value, but many parsers misread it.
        && !reference.ends_with('/')
}

fn folder_of(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or(path);
    &path[..path.rfind('/').map_or(0, |slash| slash + 1)]
}

/// Writes the shortest reference from a folder to a path on the same host.
fn push_relative(out: &mut String, base: &str, path: &str) {
    let folder = folder_of(path);
    let same = base.bytes().zip(folder.bytes()).take_while(|(a, b)| a == b).count();
    let shared = base[..same].rfind('/').map_or(0, |slash| slash + 1);
    let up = base[shared..].matches('/').count();
    let rest = &path[shared..];
    for _ in 0..up {
        out.push_str("../");
    }
    out.push_str(if up == 0 && rest.is_empty() { "./" } else { rest });
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

/// Returns the block of prose that all pages are cut from: a single one, so that filling a page is
/// copying.
pub(super) fn prose(seed: u64) -> Box<str> {
    let mut draw = Draw::new(seed, Purpose::Prose, 0, 0);
    let mut prose = String::with_capacity(PROSE_BYTES);
    while prose.len() < PROSE_BYTES {
        prose.push_str(draw.pick::<&str>(&WORDS));
        prose.push(if draw.chance(0.05) { '\n' } else { ' ' });
    }
    prose.into()
}
