//! Extracts links, base URL and robots directives from pages and header fields.
//!
//! A [`Scanner`] reads the text of a page once and stores what it finds in a [`Found`]. It
//! recognizes the tags that the HTML standard's tokenizer produces with a tree builder that runs no
//! scripts: the text of scripts, titles and comments contains no links, that of `noscript` does. Of
//! style sheets, in a page or in a reply of their own, it reads the resources that they load.
//! References are returned in UTF-8 whatever the page's charset, with character references decoded,
//! white space trimmed, and tabs and line ends removed. They are neither joined to a base nor
//! checked.
//!
//! Laws:
//! - The result depends on the text alone, not on how it was split into calls.
//! - A tag counts once its `>` is read; a tag cut off by the end of the text does not count.
//! - Of two attributes with the same name the first counts.
//! - A [`Found`] never holds more than its settings allow.
//!
//! Cost: one pass, linear for any input, no allocation once the tables have grown; 1 to 10 GB/s.
//! Source: the HTML standard, section 13.2 (parsing), 13.2.3 (charset), RFC 8288, and the documents
//! that accompany RFC 9309 (meta robots, X-Robots-Tag).

mod charset;
mod css;
mod entities;
mod find;
mod foreign;
mod headers;
mod names;
mod rels;
mod requisites;
mod scan;
mod srcset;
mod tags;
#[cfg(test)]
mod tests;

pub use charset::{Charset, Converted, Converter, charset, is_scannable};
pub use css::sheet_charset;
pub use headers::{header_links, refresh, robots_tag, robots_words};
pub use scan::{Progress, Scanner};

use crate::ground::map::Set;
use crate::url::text_of;
use encoding_rs::{Encoding, UTF_8};
use rels::Rel;

/// The capacity of the set of targets that is kept for the next page.
const TARGETS_SPARE: usize = 1 << 10;

/// The maximum number of `meta` elements about the use of a page that are kept.
pub const STATEMENTS_MAX: usize = 16;

/// The settings of link extraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// True to extract the requisites of a page as well: images, scripts, style sheets, media.
    pub requisites: bool,
    /// True to extract the targets of forms that are sent by GET.
    pub forms: bool,
    /// True to skip links that are marked `nofollow`.
    pub obey_nofollow: bool,
    /// True to keep the `meta` elements about the use of the page.
    pub statements: bool,
    /// True to obey the directives of `<meta name=robots>` and `X-Robots-Tag`.
    pub obey_meta: bool,
    /// The name of this crawler, which `<meta name=...>` may contain instead of `robots`.
    pub product: String,
    /// The maximum number of different targets of one page. URLs that differ only in their
    /// fragments are one target.
    pub links_max: usize,
    /// The maximum length of one reference as it is in the page, in bytes.
    pub reference_bytes_max: usize,
    /// The maximum total length of all references of one page, in bytes.
    pub found_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            requisites: false,
            forms: false,
            obey_nofollow: true,
            statements: false,
            obey_meta: true,
            product: "sted".to_owned(),
            links_max: 10_000,
            reference_bytes_max: 4 << 10,
            found_bytes_max: 4 << 20,
        }
    }
}

impl Settings {
    /// Returns whether `link` may be followed. `directives` are those of the page and of its header
    /// fields, merged.
    pub fn may_follow(&self, link: &Link<'_>, directives: Directives) -> bool {
        !(self.obey_nofollow && link.nofollow || self.obey_meta && directives.nofollow)
    }
}

/// Where a reference was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In an `a` or `area` element.
    Anchor,
    /// In a `frame` or `iframe` element.
    Frame,
    /// In a `link` element whose relation leads to a page: next, canonical, alternate.
    Related,
    /// In a `meta` element or a `Refresh` field that asks for a refresh.
    Refresh,
    /// In a `Link` header field. The reference is relative to the URL of the response, not to the
    /// base of the page.
    Header,
    /// In an element that embeds a resource of the page.
    Embed,
    /// In a `form` element.
    Form,
    /// In a sitemap or a feed, or a sitemap that a robots.txt names.
    Listed,
}

impl Kind {
    /// Returns the letter of this kind in a hop path, as Heritrix writes it.
    pub fn hop(self) -> char {
        match self {
            Self::Anchor | Self::Related | Self::Header => 'L',
            Self::Frame | Self::Embed => 'E',
            Self::Refresh => 'R',
            Self::Form => 'S',
            Self::Listed => 'M',
        }
    }

    /// Returns the name of this kind that is used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anchor => "anchor",
            Self::Frame => "frame",
            Self::Related => "related",
            Self::Refresh => "refresh",
            Self::Header => "header",
            Self::Embed => "embed",
            Self::Form => "form",
            Self::Listed => "listed",
        }
    }
}

/// A reference found in a page or header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// The reference as input for the URL parser: in UTF-8, trimmed, without tabs and line ends. An
    /// empty reference means the page itself.
    pub reference: &'a str,
    /// The kind of place in which the reference was found.
    pub kind: Kind,
    /// True if the relation of the link contains `nofollow`.
    pub nofollow: bool,
}

/// The directives to crawlers of a page or of its header fields. Two of them are merged with `|`:
/// what one of them forbids is forbidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// True if the page must not appear in search results.
    pub noindex: bool,
    /// True if the links of the page must not be followed.
    pub nofollow: bool,
    /// True if no copy of the page may be shown.
    pub noarchive: bool,
    /// True if no extract of the page may be shown.
    pub nosnippet: bool,
    /// True if neither the text nor the images of the page may be used for training.
    pub noai: bool,
    /// True if the images of the page must not be used for training.
    pub noimageai: bool,
}

impl Directives {
    /// Parses a comma-separated list of directives.
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

/// The name and the content of a `meta` element.
type Statement = (Box<[u8]>, Box<[u8]>);

/// The links, the base and the directives that were found in one page. The memory is reused for the
/// next page.
#[derive(Debug, Default)]
pub struct Found {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    base: Option<Box<[u8]>>,
    directives: Directives,
    /// Names and contents of the `meta` elements about the use of the page.
    statements: Vec<Statement>,
    /// Whether there were more of them than are kept.
    has_more_statements: bool,
    /// The reference of the first link with the relation `canonical`, and whether it was in a
    /// header field; only if the settings want statements.
    canonical: Option<(Box<[u8]>, bool)>,
    charset: Option<&'static Encoding>,
    cut: Cut,
    /// The different targets (references without their fragments) found so far, each with whether
    /// it may be followed. Empty until there are as many references as the settings allow targets.
    targets: Set<(bool, Box<[u8]>)>,
}

/// The number of references that were discarded because of a limit, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The number of references beyond the first [`Settings::links_max`] different targets.
    pub targets: u64,
    /// The number of references beyond a total length of [`Settings::found_bytes_max`].
    pub bytes: u64,
    /// The number of references longer than [`Settings::reference_bytes_max`], except those with
    /// schemes that are not fetched.
    pub long: u64,
    /// The number of lists, relations, directives, styles and documents in attributes that are too
    /// long to be decoded.
    pub values: u64,
    /// The number of documents in `srcdoc` attributes that are nested too deeply.
    pub nested: u64,
    /// The number of `<base>` URLs that are too long. References are then relative to the page
    /// instead.
    pub bases: u64,
}

impl Cut {
    /// Returns the name and the count of each cause that occurred.
    pub fn causes(self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("linksCut", self.targets),
            ("linksBytesCut", self.bytes),
            ("linkTooLong", self.long),
            ("valueTooLong", self.values),
            ("srcdocNested", self.nested),
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
            nested: self.nested + other.nested,
            bases: self.bases + other.bases,
        }
    }
}

/// The range of a reference within the bytes of [`Found`], and its properties.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    end: usize,
    kind: Kind,
    nofollow: bool,
}

impl Found {
    /// Creates an empty result.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all links, the base and the directives, but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.base = None;
        self.directives = Directives::default();
        self.statements.clear();
        self.has_more_statements = false;
        self.canonical = None;
        self.charset = None;
        self.cut = Cut::default();
        self.targets.clear();
        self.targets.shrink_to(TARGETS_SPARE);
    }

    /// Returns all links, in the order of the page.
    pub fn links(&self) -> impl ExactSizeIterator<Item = Link<'_>> {
        self.links_from(0)
    }

    /// Returns the links from index `start` on, in the order of the page.
    pub fn links_from(&self, start: usize) -> impl ExactSizeIterator<Item = Link<'_>> {
        // Checked once for all references: checking them one by one takes ten times as long.
        let text = std::str::from_utf8(&self.bytes).expect("references are kept in UTF-8");
        self.entries[start..].iter().map(|entry| Link {
            reference: &text[entry.start..entry.end],
            kind: entry.kind,
            nofollow: entry.nofollow,
        })
    }

    /// Returns the URL of the first `<base href>`; `None` if the page has none. All references are
    /// relative to it, except those of [`Kind::Header`].
    pub fn base(&self) -> Option<&[u8]> {
        self.base.as_deref()
    }

    /// Returns the directives of `<meta name=robots>`.
    pub fn directives(&self) -> Directives {
        self.directives
    }

    /// Returns the names and contents of the `meta` elements about the use of the page (robots, the
    /// name of the crawler, tdm-reservation, tdm-policy), the first [`STATEMENTS_MAX`] of them, if
    /// the settings want them.
    pub fn statements(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.statements.iter().map(|(name, content)| (&**name, &**content))
    }

    /// Returns whether there are more than [`Found::statements`] returns.
    pub fn has_more_statements(&self) -> bool {
        self.has_more_statements
    }

    /// Returns the reference by which the page names the URL that it prefers (RFC 6596), and the
    /// base that it is relative to, if that isn't the URL of the page; `None` if it names none, if
    /// the base is too long to be known, or if the settings don't want statements.
    pub fn canonical(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let (reference, is_field) = self.canonical.as_ref()?;
        let is_known = *is_field || self.cut.bases == 0;
        is_known.then(|| (&**reference, self.base().filter(|_| !is_field)))
    }

    /// Returns the charset of the first `meta` that names one, within the first 64 KiB of the page.
    /// In contrast, [`charset()`] only reads the first 1,024 bytes.
    pub fn charset(&self) -> Option<&'static Encoding> {
        self.charset
    }

    /// Returns how many references were discarded because of a limit, by cause.
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// Stores a reference that is given as it is in the page, unless a limit forbids it.
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
            return self.count_too_long(raw);
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

    /// Stores a reference that is decoded already, because it is from a header field or a part of
    /// an attribute value.
    fn push_text(&mut self, settings: &Settings, kind: Kind, nofollow: bool, text: &[u8]) {
        if text.len() > settings.reference_bytes_max {
            return self.count_too_long(text);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text_of(text).as_bytes());
        clean(&mut self.bytes, start);
        self.keep(settings, kind, nofollow, start);
    }

    /// Counts a reference that is too long as discarded, unless it has a scheme that is not
    /// fetched: images in `data:` URLs are no loss.
    #[cold]
    fn count_too_long(&mut self, raw: &[u8]) {
        self.cut.long += u64::from(!is_foreign(raw.trim_ascii_start()));
    }

    /// Stores the reference that was appended at `start`, unless it can't be fetched or a limit
    /// forbids it.
    fn keep(&mut self, settings: &Settings, kind: Kind, nofollow: bool, start: usize) {
        // Browsers don't load resources from an empty reference; only links that a user follows may
        // be empty.
        let is_click = matches!(kind, Kind::Anchor | Kind::Form | Kind::Refresh);
        if self.bytes.len() == start && !is_click {
            return;
        }
        let reference = &self.bytes[start..];
        // A resource that is only a fragment is a part of the page.
        if is_foreign(reference) || kind == Kind::Embed && reference[0] == b'#' {
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

    /// Returns whether the reference at `start` has a new target and may be stored. Pages have many
    /// links to fragments of a few other pages, so only different targets count. A repeated target
    /// is no loss; a new one beyond the limit is counted.
    ///
    /// No targets are tracked before there are as many references as targets are allowed; then the
    /// repeated ones among them are removed.
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

    /// Stores the reference of a link with the relation `canonical`, if it is the first.
    fn set_canonical(&mut self, settings: &Settings, reference: &[u8], is_field: bool) {
        if settings.statements && self.canonical.is_none() {
            self.canonical = Some((reference.into(), is_field));
        }
    }

    fn add_statement(&mut self, name: &[u8], content: &[u8]) {
        if self.statements.len() < STATEMENTS_MAX {
            self.statements.push((name.into(), content.into()));
        } else {
            self.has_more_statements = true;
        }
    }

    /// Stores the URL of a `<base>` element, if it is the first one.
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

/// Returns whether a reference has a scheme that isn't fetched: `javascript:`, `mailto:`, `data:`.
/// These are never stored, so that thousands of them can't use up the limits of a page.
fn is_foreign(reference: &[u8]) -> bool {
    // Most references are paths.
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

/// Returns the part of a reference before its fragment.
fn target(reference: &[u8]) -> &[u8] {
    &reference[..memchr::memchr(b'#', reference).unwrap_or(reference.len())]
}

/// Appends the text of an attribute value in UTF-8, with its character references decoded.
fn append_value(charset: &'static Encoding, raw: &[u8], into: &mut Vec<u8>) {
    if raw.is_ascii() || charset == UTF_8 && std::str::from_utf8(raw).is_ok() {
        entities::decode(raw, into);
    } else {
        let (text, _) = charset.decode_without_bom_handling(raw);
        entities::decode(text.as_bytes(), into);
    }
}

/// Returns whether `raw` needs no decoding: it is ASCII without character references, NUL, tabs and
/// line ends.
fn is_plain(raw: &[u8]) -> bool {
    let (words, rest) = raw.as_chunks();
    match raw.last_chunk() {
        // Nearly all values are long enough; the last word overlaps the one before.
        Some(last) => {
            words.iter().fold(special_bits(*last), |bits, word| bits | special_bits(*word)) == 0
        }
        None => rest.iter().all(|byte| matches!(byte, b' '..=b'%' | b'\''..=b'~')),
    }
}

/// Returns a value that is not 0 if one of eight bytes is a control character, DEL, outside ASCII,
/// or an ampersand.
#[inline(always)]
fn special_bits(bytes: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(bytes);
    let ampersand = word ^ (ONES * b'&' as u64);
    // Only a byte that matches itself causes a borrow or a carry into the next one.
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let ampersands = ampersand.wrapping_sub(ONES) & !ampersand;
    let delete = word.wrapping_add(ONES);
    (word | control | ampersands | delete) & (ONES << 7)
}

/// Trims the text in `bytes` from `start` on and removes its tabs and line ends, as the URL parser
/// would do. These characters may come from decoded character references.
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
