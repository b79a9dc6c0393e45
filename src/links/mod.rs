//! Page bytes to raw references: links, base, robots directives, of pages and of header fields.
//!
//! A [`Scanner`] goes over the text of a page once and files what it finds in a [`Found`]. It sees
//! the tags that the HTML standard's tokenizer sees with a tree builder that runs no scripts: text
//! of scripts, styles, titles and comments holds no links, `noscript` does. References come out
//! with character references replaced, white space trimmed, tabs and line ends removed, in UTF-8
//! whatever the page's charset; they are not joined to a base and not judged.
//!
//! Laws: what is found depends on the text alone, not on how it was cut into calls; a tag counts
//! at its `>`, one cut off by the end of the text doesn't; of two attributes with one name the
//! first counts; a [`Found`] never holds more than its settings allow.
//! Cost: one pass, linear for any input, no allocation once the tables have grown; 1 to 10 GB/s.
//! Source: the HTML standard, section 13.2 (parsing), 13.2.3 (charset), RFC 8288, RFC 9309's
//! companions (meta robots, X-Robots-Tag).

mod charset;
mod entities;
mod find;
mod foreign;
mod headers;
mod names;
mod rels;
mod scan;
mod srcset;
mod tags;
#[cfg(test)]
mod tests;

pub use charset::{Charset, Converted, Converter, charset, is_scannable};
pub use headers::{header_links, refresh, robots_tag};
pub use scan::{Progress, Scanner};

use crate::ground::map::Set;
use crate::url::text_of;
use encoding_rs::{Encoding, UTF_8};
use rels::Rel;

/// Room for targets that is kept from page to page.
const TARGETS_SPARE: usize = 1 << 10;

/// Settings of the station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether what a page is made of is found, too: images, scripts, styles, media.
    pub embedded: bool,
    /// Whether the targets of forms are found, those that are sent by GET.
    pub forms: bool,
    /// Whether links marked `nofollow` are left alone.
    pub obey_nofollow: bool,
    /// Whether directives of `<meta name=robots>` and `X-Robots-Tag` are obeyed.
    pub obey_meta: bool,
    /// The name that `<meta name=...>` may use instead of `robots` to speak to this crawler.
    pub product: String,
    /// Different targets kept of a page, whatever their fragments.
    pub links_max: usize,
    /// Longest reference kept, bytes as they stand in the page.
    pub reference_bytes_max: usize,
    /// All references kept of a page, bytes.
    pub found_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            embedded: false,
            forms: false,
            obey_nofollow: true,
            obey_meta: true,
            product: "sted".to_owned(),
            links_max: 10_000,
            reference_bytes_max: 4 << 10,
            found_bytes_max: 4 << 20,
        }
    }
}

impl Settings {
    /// Whether `link` may be followed, on a page about which `directives` are known (those of the
    /// page and of its header, merged).
    pub fn may_follow(&self, link: &Link<'_>, directives: Directives) -> bool {
        !(self.obey_nofollow && link.nofollow || self.obey_meta && directives.nofollow)
    }
}

/// Where a reference stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `a` or `area`.
    Anchor,
    /// `frame` or `iframe`.
    Frame,
    /// `link` with a relation that leads to a page: next, canonical, alternate.
    Related,
    /// `meta` that refreshes, or a `Refresh` field.
    Refresh,
    /// `Link` field: relative to the URL of the response, not to the page's base.
    Header,
    /// What the page is made of.
    Embed,
    /// `form`.
    Form,
}

impl Kind {
    /// Its letter in a hop path, as Heritrix writes it.
    pub fn hop(self) -> char {
        match self {
            Self::Anchor | Self::Related | Self::Header => 'L',
            Self::Frame | Self::Embed => 'E',
            Self::Refresh => 'R',
            Self::Form => 'S',
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anchor => "anchor",
            Self::Frame => "frame",
            Self::Related => "related",
            Self::Refresh => "refresh",
            Self::Header => "header",
            Self::Embed => "embed",
            Self::Form => "form",
        }
    }
}

/// One reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// As the URL parser wants it: UTF-8, trimmed, without tabs and line ends. May be empty: the
    /// page itself.
    pub reference: &'a str,
    /// Where it stood.
    pub kind: Kind,
    /// Its relation says `nofollow`.
    pub nofollow: bool,
}

/// What a page or its header asks of crawlers. Merged with `|`: what one forbids is forbidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Not to be found by searching.
    pub noindex: bool,
    /// Its links are not to be followed.
    pub nofollow: bool,
    /// No copy is to be shown.
    pub noarchive: bool,
    /// No extract is to be shown.
    pub nosnippet: bool,
    /// Not to be used for training: neither text nor images.
    pub noai: bool,
    /// Its images are not to be used for training.
    pub noimageai: bool,
}

impl Directives {
    /// The words of a list with commas.
    fn of(list: &[u8]) -> Self {
        let mut directives = Self::default();
        list.split(|byte| *byte == b',').for_each(|word| directives.add_word(word.trim_ascii()));
        directives
    }

    fn add_word(&mut self, word: &[u8]) {
        let is = |known: &[u8]| word.eq_ignore_ascii_case(known);
        self.noindex |= is(b"noindex") || is(b"none");
        self.nofollow |= is(b"nofollow") || is(b"none");
        self.noarchive |= is(b"noarchive");
        self.nosnippet |= is(b"nosnippet");
        self.noai |= is(b"noai");
        self.noimageai |= is(b"noimageai") || is(b"noai");
    }
}

impl std::ops::BitOr for Directives {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self {
            noindex: self.noindex | other.noindex,
            nofollow: self.nofollow | other.nofollow,
            noarchive: self.noarchive | other.noarchive,
            nosnippet: self.nosnippet | other.nosnippet,
            noai: self.noai | other.noai,
            noimageai: self.noimageai | other.noimageai,
        }
    }
}

/// What was found on a page: an arena that is cleared and used again.
#[derive(Debug, Default)]
pub struct Found {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    base: Option<Box<[u8]>>,
    directives: Directives,
    charset: Option<&'static Encoding>,
    cut: Cut,
    /// Targets of the references kept, once there are as many as may be: by what is before their
    /// fragment, and whether they may be followed.
    targets: Set<(bool, Box<[u8]>)>,
}

/// What was left out of a page for a bound, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// References beyond [`Settings::links_max`] different targets.
    pub targets: u64,
    /// References beyond [`Settings::found_bytes_max`].
    pub bytes: u64,
    /// References longer than [`Settings::reference_bytes_max`], of the web's schemes.
    pub long: u64,
    /// Attributes with lists, relations or directives that are longer than is read.
    pub values: u64,
    /// A base that is too long: references are relative to the page instead.
    pub bases: u64,
}

impl Cut {
    /// The causes by name, with their counts, those that occurred.
    pub fn causes(self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("linksCut", self.targets),
            ("linksBytesCut", self.bytes),
            ("linkTooLong", self.long),
            ("valueTooLong", self.values),
            ("baseTooLong", self.bases),
        ];
        all.into_iter().filter(|(_, count)| *count > 0)
    }
}

impl std::ops::Add for Cut {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            targets: self.targets + other.targets,
            bytes: self.bytes + other.bytes,
            long: self.long + other.long,
            values: self.values + other.values,
            bases: self.bases + other.bases,
        }
    }
}

/// A reference in the arena.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    end: usize,
    kind: Kind,
    nofollow: bool,
}

impl Found {
    /// Nothing found.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all, keeps the room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.base = None;
        self.directives = Directives::default();
        self.charset = None;
        self.cut = Cut::default();
        self.targets.clear();
        self.targets.shrink_to(TARGETS_SPARE);
    }

    /// The references, in the order of the page.
    pub fn links(&self) -> impl ExactSizeIterator<Item = Link<'_>> {
        self.links_from(0)
    }

    /// The references from this one on.
    pub fn links_from(&self, start: usize) -> impl ExactSizeIterator<Item = Link<'_>> {
        // Once for all of them: one by one it takes ten times as long.
        let text = std::str::from_utf8(&self.bytes).expect("references are kept in UTF-8");
        self.entries[start..].iter().map(|entry| Link {
            reference: &text[entry.start..entry.end],
            kind: entry.kind,
            nofollow: entry.nofollow,
        })
    }

    /// The first `<base href>`: what all but [`Kind::Header`] are relative to.
    pub fn base(&self) -> Option<&[u8]> {
        self.base.as_deref()
    }

    /// What `<meta name=robots>` says.
    pub fn directives(&self) -> Directives {
        self.directives
    }

    /// The charset that the page's first `meta` with one names, within the first 64 KiB:
    /// [`charset()`] only sees the first 1,024 bytes.
    pub fn charset(&self) -> Option<&'static Encoding> {
        self.charset
    }

    /// What was left out for a bound.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// Keeps a reference that stands in a page as `raw`, unless a cap forbids it.
    #[inline]
    fn push(
        &mut self,
        settings: &Settings,
        charset: &'static Encoding,
        kind: Kind,
        nofollow: bool,
        raw: &[u8],
    ) {
        if raw.len() > settings.reference_bytes_max {
            return self.leave_out(raw);
        }
        let start = self.bytes.len();
        let raw = raw.trim_ascii();
        if is_plain(raw) {
            self.bytes.extend_from_slice(raw);
        } else {
            append_value(charset, raw, &mut self.bytes);
            clean(&mut self.bytes, start);
        }
        self.keep(settings, kind, nofollow, start);
    }

    /// Keeps a reference that is text already: of a header field, or cut out of a value.
    fn push_text(&mut self, settings: &Settings, kind: Kind, nofollow: bool, text: &[u8]) {
        if text.len() > settings.reference_bytes_max {
            return self.leave_out(text);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text_of(text).as_bytes());
        clean(&mut self.bytes, start);
        self.keep(settings, kind, nofollow, start);
    }

    /// A reference that is too long is counted, unless it is of another scheme: images as `data:`
    /// are no loss.
    #[cold]
    fn leave_out(&mut self, raw: &[u8]) {
        self.cut.long += u64::from(!is_foreign(raw.trim_ascii_start()));
    }

    /// Keeps what lies behind `start`, unless nothing can be fetched there, or a cap forbids it.
    fn keep(&mut self, settings: &Settings, kind: Kind, nofollow: bool, start: usize) {
        // What is loaded without a click is not loaded from an empty reference.
        let is_click = matches!(kind, Kind::Anchor | Kind::Form | Kind::Refresh);
        if self.bytes.len() == start && !is_click {
            return;
        }
        if is_foreign(&self.bytes[start..]) {
            return self.bytes.truncate(start);
        }
        let is_full = self.entries.len() >= settings.links_max || !self.targets.is_empty();
        if is_full && !self.is_new_target(settings, nofollow, start) {
            self.bytes.truncate(start);
        } else if self.bytes.len() <= settings.found_bytes_max {
            self.entries.push(Entry { start, end: self.bytes.len(), kind, nofollow });
        } else {
            self.bytes.truncate(start);
            self.cut.bytes += 1;
        }
    }

    /// Whether the reference at `start` leads where none kept does, and may be kept: pages have
    /// many links to parts of few other pages, and only different targets count. What repeats a
    /// target is no loss; one too many is counted.
    ///
    /// Nothing of this is done before there are as many references as there may be targets; then
    /// the repetitions among them go.
    #[cold]
    fn is_new_target(&mut self, settings: &Settings, nofollow: bool, start: usize) -> bool {
        if self.targets.is_empty() {
            let (bytes, targets) = (&self.bytes, &mut self.targets);
            self.entries.retain(|entry| {
                targets.insert((entry.nofollow, target(&bytes[entry.start..entry.end]).into()))
            });
        }
        let target = (nofollow, target(&self.bytes[start..]).into());
        if self.targets.contains(&target) {
            return false;
        }
        let has_room = self.targets.len() < settings.links_max;
        if has_room {
            self.targets.insert(target);
        } else {
            self.cut.targets += 1;
        }
        has_room
    }

    /// Keeps the base, if it is the first.
    fn set_base(&mut self, settings: &Settings, charset: &'static Encoding, raw: &[u8]) {
        if self.base.is_some() {
            return;
        }
        let mut bytes = Vec::new();
        if raw.len() <= settings.reference_bytes_max {
            append_value(charset, raw, &mut bytes);
            clean(&mut bytes, 0);
        } else {
            self.cut.bases += 1;
        }
        self.base = Some(bytes.into());
    }
}

/// Whether a reference has a scheme that isn't fetched: `javascript:`, `mailto:`, `data:`. Such
/// ones are never kept: thousands of them must not leave a page's links without a place.
fn is_foreign(reference: &[u8]) -> bool {
    // Most are paths.
    if !reference.first().is_some_and(u8::is_ascii_alphabetic) {
        return false;
    }
    let end = reference.iter().position(|byte| matches!(byte, b':' | b'/' | b'?' | b'#'));
    let Some(end) = end.filter(|end| reference[*end] == b':') else { return false };
    let name = &reference[..end];
    let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let is_web = name.eq_ignore_ascii_case(b"http") || name.eq_ignore_ascii_case(b"https");
    !is_web && name.iter().all(is_of_scheme)
}

/// A reference without its fragment.
fn target(reference: &[u8]) -> &[u8] {
    &reference[..memchr::memchr(b'#', reference).unwrap_or(reference.len())]
}

/// Appends an attribute's value: its text in UTF-8, its character references replaced.
fn append_value(charset: &'static Encoding, raw: &[u8], into: &mut Vec<u8>) {
    if raw.is_ascii() || charset == UTF_8 && std::str::from_utf8(raw).is_ok() {
        entities::decode(raw, into);
    } else {
        let (text, _) = charset.decode_without_bom_handling(raw);
        entities::decode(text.as_bytes(), into);
    }
}

/// Whether `raw` is its own value: ASCII without references, NUL, tabs and line ends.
fn is_plain(raw: &[u8]) -> bool {
    let (words, rest) = raw.as_chunks();
    match raw.last_chunk() {
        // Nearly all are long enough; the last word overlaps the one before.
        Some(last) => words.iter().fold(odd(*last), |odds, word| odds | odd(*word)) == 0,
        None => rest.iter().all(|byte| matches!(byte, b' '..=b'%' | b'\''..=b'~')),
    }
}

/// Not 0 if one of eight bytes is a control character, DEL, beyond ASCII, or an ampersand.
#[inline(always)]
fn odd(bytes: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(bytes);
    let ampersand = word ^ (ONES * b'&' as u64);
    // A borrow or a carry only comes from a byte that is odd itself.
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let ampersands = ampersand.wrapping_sub(ONES) & !ampersand;
    let delete = word.wrapping_add(ONES);
    (word | control | ampersands | delete) & (ONES << 7)
}

/// Trims what lies in `bytes` from `start` on and removes its tabs and line ends, as the URL
/// parser would: they may have come from references.
fn clean(bytes: &mut Vec<u8>, start: usize) {
    let tail = &bytes[start..];
    let from = start + tail.len() - tail.trim_ascii_start().len();
    let end = start + tail.trim_ascii_end().len();
    let mut to = start;
    for at in from..end {
        if !matches!(bytes[at], b'\t' | b'\n' | b'\r') {
            bytes[to] = bytes[at];
            to += 1;
        }
    }
    bytes.truncate(to);
}
