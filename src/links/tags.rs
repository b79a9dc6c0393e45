//! The tags and attributes that are relevant to links, and how the attributes of each tag are
//! evaluated.
//!
//! Nearly all tags of a page are not relevant, so that case must be fast: the first three letters
//! of a name are looked up in a hash table without collisions, and only a hit is compared in full.

use super::find::{is_space, tag_name_end};
use super::foreign::Space;
use super::srcset::Candidates;
use super::{Directives, Found, Kind, Rel, Settings, append_value, charset, headers, is_plain};
use encoding_rs::Encoding;
use std::borrow::Cow;

/// The maximum length of an attribute value that is decoded and evaluated here, in bytes.
/// References have a limit of their own.
const VALUE_BYTES_MAX: usize = 64 << 10;

/// The number of bytes after which a charset declaration is ignored, because the page would have to
/// be read again.
const DECLARED_BYTES: usize = 64 << 10;

/// A tag that is relevant to links or to how the text after it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    /// Any tag that is not relevant, and all end tags.
    Other,
    A,
    Area,
    Audio,
    Base,
    Embed,
    Form,
    Frame,
    Iframe,
    Image,
    Img,
    Input,
    Link,
    Math,
    Meta,
    Noembed,
    Noframes,
    Object,
    Plaintext,
    Script,
    Source,
    Style,
    Svg,
    Textarea,
    Title,
    Track,
    Video,
    Xmp,
}

/// All relevant tags whose names have three letters or more.
const TAGS: [(&[u8], Tag); 26] = [
    (b"area", Tag::Area),
    (b"audio", Tag::Audio),
    (b"base", Tag::Base),
    (b"embed", Tag::Embed),
    (b"form", Tag::Form),
    (b"frame", Tag::Frame),
    (b"iframe", Tag::Iframe),
    (b"image", Tag::Image),
    (b"img", Tag::Img),
    (b"input", Tag::Input),
    (b"link", Tag::Link),
    (b"math", Tag::Math),
    (b"meta", Tag::Meta),
    (b"noembed", Tag::Noembed),
    (b"noframes", Tag::Noframes),
    (b"object", Tag::Object),
    (b"plaintext", Tag::Plaintext),
    (b"script", Tag::Script),
    (b"source", Tag::Source),
    (b"style", Tag::Style),
    (b"svg", Tag::Svg),
    (b"textarea", Tag::Textarea),
    (b"title", Tag::Title),
    (b"track", Tag::Track),
    (b"video", Tag::Video),
    (b"xmp", Tag::Xmp),
];

const SLOT_BITS: u32 = 6;
const EMPTY: u8 = u8::MAX;

/// Maps the hash of the first three letters of a tag name to these letters and an index in
/// [`TAGS`].
static SLOTS: [(u32, u8); 1 << SLOT_BITS] = slots();

/// The factor of the hash function, for which the names in [`TAGS`] have no collisions. It was
/// found by trying odd numbers; `slots` asserts this at compile time.
const FACTOR: u32 = 0xa336_14a5;

const fn slot_of(key: u32) -> usize {
    (key.wrapping_mul(FACTOR) >> (32 - SLOT_BITS)) as usize
}

const fn slots() -> [(u32, u8); 1 << SLOT_BITS] {
    let mut slots = [(0, EMPTY); 1 << SLOT_BITS];
    let mut index = 0;
    while index < TAGS.len() {
        let name = TAGS[index].0;
        let key = u32::from_le_bytes([name[0], name[1], name[2], 0]);
        let slot = slot_of(key);
        assert!(slots[slot].1 == EMPTY, "two names share a slot");
        slots[slot] = (key, index as u8);
        index += 1;
    }
    slots
}

impl Tag {
    /// Returns the tag whose name begins at `at`, where there is a letter. Also returns the end of
    /// the name, if the tag is relevant.
    #[inline(always)]
    pub(super) fn at(text: &[u8], at: usize) -> (Self, usize) {
        let word = match text.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
            Some(bytes) => u32::from_le_bytes(*bytes),
            None => return Self::at_end_of_text(text, at),
        };
        if word & 0xdf == u32::from(b'A') && ends_name((word >> 8) as u8) {
            return (Self::A, at + 1);
        }
        let key = (word | 0x20_2020) & 0xff_ffff;
        let (known, index) = SLOTS[slot_of(key)];
        if known != key || index == EMPTY {
            return (Self::Other, at);
        }
        Self::compare(text, at, index)
    }

    #[inline(never)]
    fn compare(text: &[u8], at: usize, index: u8) -> (Self, usize) {
        let (name, tag) = TAGS[usize::from(index)];
        let end = at + name.len();
        let same = text.get(at..end).is_some_and(|bytes| bytes.eq_ignore_ascii_case(name));
        if same && text.get(end).is_some_and(|byte| ends_name(*byte)) {
            (tag, end)
        } else {
            (Self::Other, at)
        }
    }

    /// Returns the tag at the end of the text. With three bytes left only `<a>` can still be a
    /// complete tag.
    #[cold]
    fn at_end_of_text(text: &[u8], at: usize) -> (Self, usize) {
        let is_a = text[at].eq_ignore_ascii_case(&b'a');
        if is_a && text.get(at + 1).is_some_and(|byte| ends_name(*byte)) {
            (Self::A, at + 1)
        } else {
            (Self::Other, at)
        }
    }

    /// Returns the name of the tag in lower case.
    pub(super) fn name(self) -> &'static [u8] {
        let known = TAGS.iter().find(|(_, tag)| *tag == self);
        known.map_or(b"a", |(name, _)| name)
    }

    /// Returns the bit that stands for this tag in a set of tags.
    pub(super) const fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// Returns whether `byte` ends the name of a tag.
#[inline(always)]
pub(super) fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

/// Returns whether a tag name at `at` equals `name`, which is in lower case, without regard to
/// case.
pub(super) fn is_name_at(text: &[u8], at: usize, name: &[u8]) -> bool {
    let end = at + name.len();
    text.get(end).is_some_and(|byte| ends_name(*byte)) && text[at..end].eq_ignore_ascii_case(name)
}

/// Returns the tag name that begins at `at`.
pub(super) fn name_at(text: &[u8], at: usize) -> &[u8] {
    &text[at..tag_name_end(text, at)]
}

/// Returns the set of tags whose attributes or content the scanner must read.
pub(super) fn watched(settings: &Settings) -> u32 {
    use Tag::{
        A, Area, Audio, Base, Embed, Form, Frame, Iframe, Image, Img, Input, Link, Math, Meta,
        Noembed, Noframes, Object, Plaintext, Script, Source, Style, Svg, Textarea, Title, Track,
        Video, Xmp,
    };
    let set = |tags: &[Tag]| tags.iter().fold(0, |set, tag| set | tag.bit());
    let always = set(&[A, Area, Base, Frame, Iframe, Link, Meta])
        | set(&[Noembed, Noframes, Plaintext, Script, Style, Textarea, Title, Xmp, Svg, Math]);
    let requisites = set(&[Audio, Embed, Image, Img, Input, Object, Source, Track, Video]);
    always
        | if settings.requisites { requisites } else { 0 }
        | if settings.forms { Form.bit() } else { 0 }
}

/// An attribute that is relevant on some tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Attribute {
    Action,
    Background,
    Charset,
    Codebase,
    Content,
    Data,
    DataSrc,
    DataSrcset,
    Encoding,
    FormAction,
    FormMethod,
    Href,
    HttpEquiv,
    ImageSrcset,
    Method,
    Name,
    Poster,
    Rel,
    Src,
    Srcdoc,
    Srcset,
    Style,
    Type,
    XlinkHref,
}

const ATTRIBUTES: usize = Attribute::XlinkHref as usize + 1;

/// The relevant attributes whose names have up to eight letters.
const ATTRIBUTES_SHORT: [(&[u8], Attribute); 17] = [
    (b"action", Attribute::Action),
    (b"charset", Attribute::Charset),
    (b"codebase", Attribute::Codebase),
    (b"content", Attribute::Content),
    (b"data", Attribute::Data),
    (b"data-src", Attribute::DataSrc),
    (b"encoding", Attribute::Encoding),
    (b"href", Attribute::Href),
    (b"method", Attribute::Method),
    (b"name", Attribute::Name),
    (b"poster", Attribute::Poster),
    (b"rel", Attribute::Rel),
    (b"src", Attribute::Src),
    (b"srcdoc", Attribute::Srcdoc),
    (b"srcset", Attribute::Srcset),
    (b"style", Attribute::Style),
    (b"type", Attribute::Type),
];

/// Maps the hash of a name's key ([`key_of`]) to the key and its attribute.
static KEYS: [(u64, Option<Attribute>); 1 << KEY_BITS] = keys();
const KEY_BITS: u32 = 5;
const KEY_FACTOR: u64 = 0x012b_cc15_93bd_04cf;

const fn slot_of_key(key: u64) -> usize {
    (key.wrapping_mul(KEY_FACTOR) >> (64 - KEY_BITS)) as usize
}

const fn keys() -> [(u64, Option<Attribute>); 1 << KEY_BITS] {
    let mut keys = [(0, None); 1 << KEY_BITS];
    let mut index = 0;
    while index < ATTRIBUTES_SHORT.len() {
        let (name, attribute) = ATTRIBUTES_SHORT[index];
        let key = key_of(name);
        let slot = slot_of_key(key);
        assert!(keys[slot].1.is_none(), "two names share a slot");
        keys[slot] = (key, Some(attribute));
        index += 1;
    }
    keys
}

/// Returns the key of an attribute name of up to eight bytes: the name as a 64-bit word, with bit 5
/// set in each byte to ignore case.
const fn key_of(name: &[u8]) -> u64 {
    let (mut key, mut index) = (0, name.len());
    while index > 0 {
        index -= 1;
        key = key << 8 | (name[index] | CASE) as u64;
    }
    key
}

const CASE: u8 = 0x20;

/// Returns the key of the attribute name at `start..end`; `None` if the name is too long or
/// contains a byte that would end it. `end` is the position of the first `=`, `>` or space. There
/// is no branch on the length of the name.
#[inline(always)]
pub(super) fn plain_key(text: &[u8], start: usize, end: usize) -> Option<u64> {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(*text.get(start..)?.first_chunk()?);
    let bits = 8 * (end - start);
    if bits > 64 {
        return None;
    }
    let mask = u64::MAX >> (64 - bits);
    // The top bits of bytes below 0x20 and of slashes; exact for the lowest such byte.
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    let slash = word ^ (ONES * b'/' as u64);
    let slashes = slash.wrapping_sub(ONES) & !slash;
    let is_plain = (controls | slashes) & (ONES << 7) & mask == 0;
    is_plain.then_some((word | (ONES * CASE as u64)) & mask)
}

impl Attribute {
    /// Returns the attribute with this name; `None` if it is not relevant.
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        match name.len() {
            0..=8 => Self::of_key(key_of(name)),
            10 if name.eq_ignore_ascii_case(b"http-equiv") => Some(Self::HttpEquiv),
            10 if name.eq_ignore_ascii_case(b"xlink:href") => Some(Self::XlinkHref),
            10 if name.eq_ignore_ascii_case(b"background") => Some(Self::Background),
            10 if name.eq_ignore_ascii_case(b"formaction") => Some(Self::FormAction),
            10 if name.eq_ignore_ascii_case(b"formmethod") => Some(Self::FormMethod),
            11 if name.eq_ignore_ascii_case(b"data-srcset") => Some(Self::DataSrcset),
            11 if name.eq_ignore_ascii_case(b"imagesrcset") => Some(Self::ImageSrcset),
            _ => None,
        }
    }

    /// Returns the attribute whose name has this key; `None` if it is not relevant.
    #[inline(always)]
    pub(super) fn of_key(key: u64) -> Option<Self> {
        let (known, attribute) = KEYS[slot_of_key(key)];
        if known == key { attribute } else { None }
    }
}

/// The positions of the relevant attribute values of one tag.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    present: u32,
    spans: [(usize, usize); ATTRIBUTES],
}

impl Attributes {
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.present = 0;
    }

    /// Records that the value of an attribute is at `start..end`, unless an earlier attribute has
    /// the same name.
    #[inline(always)]
    pub(super) fn note(&mut self, attribute: Attribute, start: usize, end: usize) {
        let bit = 1 << attribute as u32;
        if self.present & bit == 0 {
            self.present |= bit;
            self.spans[attribute as usize] = (start, end);
        }
    }

    /// Returns whether the tag has one of these attributes. `set` has a bit for each of them.
    #[inline(always)]
    pub(super) fn has_any(&self, set: u32) -> bool {
        self.present & set != 0
    }

    /// Returns the value of an attribute as it is in the page; `None` if the tag doesn't have it.
    #[inline(always)]
    pub(super) fn value<'a>(&self, text: &'a [u8], attribute: Attribute) -> Option<&'a [u8]> {
        let (start, end) = self.spans[attribute as usize];
        (self.present & 1 << attribute as u32 != 0).then(|| &text[start..end])
    }
}

/// A tag that was read up to its `>`.
#[derive(Clone, Copy)]
pub(super) struct ParsedTag<'a> {
    pub(super) settings: &'a Settings,
    pub(super) charset: &'static Encoding,
    pub(super) text: &'a [u8],
    pub(super) tag: Tag,
    pub(super) name_start: usize,
    pub(super) attributes: &'a Attributes,
    /// True if the tag is in the document of an `srcdoc` attribute, which declares nothing about
    /// the page.
    pub(super) is_srcdoc: bool,
}

impl<'a> ParsedTag<'a> {
    /// Stores the references and directives of the tag in `found`.
    #[inline]
    pub(super) fn file(self, found: &mut Found) {
        match self.tag {
            Tag::A | Tag::Area => self.anchor(found, Attribute::Href),
            Tag::Frame | Tag::Iframe => self.frame(found),
            Tag::Base => {
                if let Some(raw) = self.raw(Attribute::Href).filter(|_| !self.is_srcdoc) {
                    found.set_base(self.settings, self.charset, raw);
                }
            }
            Tag::Link => self.link(found),
            Tag::Meta => self.meta(found),
            Tag::Form => self.form(found),
            _ if self.settings.requisites => self.embed(found),
            _ => {}
        }
    }

    /// Stores the references of a tag in SVG or MathML content (`space`): links, and in SVG also
    /// resources. Any element of MathML may be a link (MathML 3 section 6.4.3), as it is in Firefox
    /// and Safari.
    pub(super) fn file_foreign(self, space: Space, name: &[u8], found: &mut Found) {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        // Older SVG uses `xlink:href`; `href` takes precedence (SVG 2 section 16.1.5).
        let attribute = match self.raw(Attribute::Href) {
            None if space == Space::Svg => Attribute::XlinkHref,
            _ => Attribute::Href,
        };
        if space == Space::Math || is(b"a") {
            self.anchor(found, attribute);
        }
        if space == Space::Svg && self.settings.requisites {
            self.svg_resource(name, attribute, found);
        }
    }

    pub(super) fn raw(self, attribute: Attribute) -> Option<&'a [u8]> {
        self.attributes.value(self.text, attribute)
    }

    /// Returns the value of an attribute with character references decoded; `None` if the tag
    /// doesn't have it or it is too long.
    pub(super) fn value(self, found: &mut Found, attribute: Attribute) -> Option<Cow<'a, [u8]>> {
        let raw = self.raw(attribute)?;
        if raw.len() > VALUE_BYTES_MAX {
            found.cut.values += 1;
            return None;
        }
        if is_plain(raw) {
            return Some(Cow::Borrowed(raw));
        }
        let mut value = Vec::new();
        append_value(self.charset, raw, &mut value);
        Some(Cow::Owned(value))
    }

    fn rel(self, found: &mut Found) -> Rel {
        let Some(list) = self.value(found, Attribute::Rel) else { return Rel::default() };
        Rel::of(&list, self.value(found, Attribute::Type).as_deref())
    }

    pub(super) fn push(self, found: &mut Found, kind: Kind, nofollow: bool, attribute: Attribute) {
        if let Some(raw) = self.raw(attribute) {
            found.push(self.settings, self.charset, kind, nofollow, raw);
        }
    }

    pub(super) fn push_set(self, found: &mut Found, attribute: Attribute) {
        let Some(list) = self.value(found, attribute) else { return };
        for url in Candidates::of(&list) {
            found.push_text(self.settings, Kind::Embed, false, url);
        }
    }

    fn anchor(self, found: &mut Found, attribute: Attribute) {
        let nofollow = self.rel(found).nofollow;
        self.push(found, Kind::Anchor, nofollow, attribute);
    }

    fn link(self, found: &mut Found) {
        let rel = self.rel(found);
        if rel.canonical
            && !self.is_srcdoc
            && let Some(href) = self.value(found, Attribute::Href)
        {
            found.set_canonical(self.settings, &href, false);
        }
        if rel.page {
            self.push(found, Kind::Related, rel.nofollow, Attribute::Href);
        } else if rel.embed && self.settings.requisites {
            self.push(found, Kind::Embed, rel.nofollow, Attribute::Href);
            self.push_set(found, Attribute::ImageSrcset);
        }
    }

    fn form(self, found: &mut Found) {
        if self.sends_by_get(found, Attribute::Method) != Some(false) {
            self.push(found, Kind::Form, false, Attribute::Action);
        }
    }

    /// Returns whether the method that an attribute names is GET; `None` if the tag doesn't have
    /// the attribute. Unknown methods mean GET.
    pub(super) fn sends_by_get(self, found: &mut Found, attribute: Attribute) -> Option<bool> {
        let method = self.value(found, attribute)?;
        let is = |other: &[u8]| method.eq_ignore_ascii_case(other);
        Some(!is(b"post") && !is(b"dialog"))
    }

    fn meta(self, found: &mut Found) {
        let may_declare =
            found.charset.is_none() && !self.is_srcdoc && self.name_start < DECLARED_BYTES;
        if let Some(label) = self.value(found, Attribute::Charset).filter(|_| may_declare) {
            found.charset = charset::declared(&label);
        }
        let Some(content) = self.value(found, Attribute::Content) else { return };
        if let Some(name) = self.value(found, Attribute::Name) {
            let name = name.trim_ascii();
            let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
            let directs = is(b"robots") || is(self.settings.product.as_bytes());
            if directs {
                found.directives = found.directives | Directives::of(&content);
            }
            let is_wanted = self.settings.statements && !self.is_srcdoc;
            if is_wanted && (directs || is(b"tdm-reservation") || is(b"tdm-policy")) {
                found.add_statement(name, &content);
            }
        }
        let Some(field) = self.value(found, Attribute::HttpEquiv) else { return };
        if field.eq_ignore_ascii_case(b"refresh") {
            if let Some((_, Some(to))) = headers::refresh(&content) {
                found.push_text(self.settings, Kind::Refresh, false, to);
            }
            return;
        }
        let is_type = field.eq_ignore_ascii_case(b"content-type");
        if is_type && may_declare && found.charset.is_none() {
            found.charset = charset::label_in_content(&content).and_then(charset::declared);
        }
    }
}
