//! The tags and attributes that matter, and what each tag's attributes amount to.
//!
//! Nearly all tags of a page matter to nobody, so that saying so must be quick: the first three
//! letters of a name are looked up in a table without collisions, and only a hit is compared.

use super::find::{is_space, tag_name_end};
use super::foreign::Space;
use super::srcset::Candidates;
use super::{Directives, Found, Kind, Rel, Settings, append_value, charset, headers, is_plain};
use encoding_rs::Encoding;
use std::borrow::Cow;

/// Longest value that is decoded to be read here, bytes; references have their own cap.
const VALUE_BYTES_MAX: usize = 64 << 10;

/// A charset declared behind so many bytes is ignored: the page would have to be read again.
const DECLARED_BYTES: usize = 64 << 10;

/// Elements of SVG that show what they refer to, or run it.
const DRAWN: [&[u8]; 4] = [b"image", b"use", b"feimage", b"script"];

/// A tag that matters to links or to what the text after it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    /// Any tag that matters to nobody, and all end tags.
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

/// All tags with names of three letters or more.
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

/// First three letters of a name to its place in [`TAGS`].
static SLOTS: [(u32, u8); 1 << SLOT_BITS] = slots();

/// Found by trying odd numbers; the table's making asserts that it fits.
const FACTOR: u32 = 0xa336_14a5;

const fn slot_of(key: u32) -> usize {
    (key.wrapping_mul(FACTOR) >> (32 - SLOT_BITS)) as usize
}

const fn slots() -> [(u32, u8); 1 << SLOT_BITS] {
    let mut slots = [(0, EMPTY); 1 << SLOT_BITS];
    let mut place = 0;
    while place < TAGS.len() {
        let name = TAGS[place].0;
        let key = u32::from_le_bytes([name[0], name[1], name[2], 0]);
        let slot = slot_of(key);
        assert!(slots[slot].1 == EMPTY, "two names share a slot");
        slots[slot] = (key, place as u8);
        place += 1;
    }
    slots
}

impl Tag {
    /// The tag whose name begins at `at`, where a letter stands, and the end of that name if the
    /// tag matters.
    #[inline(always)]
    pub(super) fn at(text: &[u8], at: usize) -> (Self, usize) {
        let word = match text.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
            Some(bytes) => u32::from_le_bytes(*bytes),
            None => return Self::near_end(text, at),
        };
        if word & 0xdf == u32::from(b'A') && ends_name((word >> 8) as u8) {
            return (Self::A, at + 1);
        }
        let key = (word | 0x20_2020) & 0xff_ffff;
        let (known, place) = SLOTS[slot_of(key)];
        if known != key || place == EMPTY {
            return (Self::Other, at);
        }
        Self::compared(text, at, place)
    }

    #[inline(never)]
    fn compared(text: &[u8], at: usize, place: u8) -> (Self, usize) {
        let (name, tag) = TAGS[usize::from(place)];
        let end = at + name.len();
        let same = text.get(at..end).is_some_and(|bytes| bytes.eq_ignore_ascii_case(name));
        if same && text.get(end).is_some_and(|byte| ends_name(*byte)) {
            (tag, end)
        } else {
            (Self::Other, at)
        }
    }

    /// With three bytes left only `<a>` can still be a whole tag.
    #[cold]
    fn near_end(text: &[u8], at: usize) -> (Self, usize) {
        let is_a = text[at].eq_ignore_ascii_case(&b'a');
        if is_a && text.get(at + 1).is_some_and(|byte| ends_name(*byte)) {
            (Self::A, at + 1)
        } else {
            (Self::Other, at)
        }
    }

    /// The name, in lower case.
    pub(super) fn name(self) -> &'static [u8] {
        let known = TAGS.iter().find(|(_, tag)| *tag == self);
        known.map_or(b"a", |(name, _)| name)
    }

    /// The bit that stands for it in a set of tags.
    pub(super) const fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// Whether a name ends before `byte`.
#[inline(always)]
pub(super) fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

/// Whether `name` stands at `at`, in any case, and ends there. `name` is in lower case.
pub(super) fn is_name_at(text: &[u8], at: usize, name: &[u8]) -> bool {
    let end = at + name.len();
    text.get(end).is_some_and(|byte| ends_name(*byte)) && text[at..end].eq_ignore_ascii_case(name)
}

/// The name that begins at `at`.
pub(super) fn name_at(text: &[u8], at: usize) -> &[u8] {
    &text[at..tag_name_end(text, at)]
}

/// Tags whose attributes or content the scanner must see.
pub(super) fn watched(settings: &Settings) -> u32 {
    use Tag::{
        A, Area, Audio, Base, Embed, Form, Frame, Iframe, Image, Img, Input, Link, Math, Meta,
        Noembed, Noframes, Object, Plaintext, Script, Source, Style, Svg, Textarea, Title, Track,
        Video, Xmp,
    };
    let set = |tags: &[Tag]| tags.iter().fold(0, |set, tag| set | tag.bit());
    let always = set(&[A, Area, Base, Frame, Iframe, Link, Meta])
        | set(&[Noembed, Noframes, Plaintext, Script, Style, Textarea, Title, Xmp, Svg, Math]);
    let embedded = set(&[Audio, Embed, Image, Img, Input, Object, Source, Track, Video]);
    always
        | if settings.embedded { embedded } else { 0 }
        | if settings.forms { Form.bit() } else { 0 }
}

/// An attribute that matters to some tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Attribute {
    Action,
    Charset,
    Content,
    Data,
    Encoding,
    Href,
    HttpEquiv,
    ImageSrcset,
    Method,
    Name,
    Poster,
    Rel,
    Src,
    Srcset,
    Type,
    XlinkHref,
}

const ATTRIBUTES: usize = Attribute::XlinkHref as usize + 1;

/// Attributes with names of up to eight letters.
const ATTRIBUTES_SHORT: [(&[u8], Attribute); 13] = [
    (b"action", Attribute::Action),
    (b"charset", Attribute::Charset),
    (b"content", Attribute::Content),
    (b"data", Attribute::Data),
    (b"encoding", Attribute::Encoding),
    (b"href", Attribute::Href),
    (b"method", Attribute::Method),
    (b"name", Attribute::Name),
    (b"poster", Attribute::Poster),
    (b"rel", Attribute::Rel),
    (b"src", Attribute::Src),
    (b"srcset", Attribute::Srcset),
    (b"type", Attribute::Type),
];

/// Key of a name to its attribute.
static KEYS: [(u64, Option<Attribute>); 1 << KEY_BITS] = keys();
const KEY_BITS: u32 = 5;
const KEY_FACTOR: u64 = 0x01c3_d306_6352_1d89;

const fn slot_of_key(key: u64) -> usize {
    (key.wrapping_mul(KEY_FACTOR) >> (64 - KEY_BITS)) as usize
}

const fn keys() -> [(u64, Option<Attribute>); 1 << KEY_BITS] {
    let mut keys = [(0, None); 1 << KEY_BITS];
    let mut place = 0;
    while place < ATTRIBUTES_SHORT.len() {
        let (name, attribute) = ATTRIBUTES_SHORT[place];
        let key = key_of(name);
        let slot = slot_of_key(key);
        assert!(keys[slot].1.is_none(), "two names share a slot");
        keys[slot] = (key, Some(attribute));
        place += 1;
    }
    keys
}

/// A name of up to eight bytes as a word: bit 5, which is the case of letters, set in each byte.
const fn key_of(name: &[u8]) -> u64 {
    let (mut key, mut place) = (0, name.len());
    while place > 0 {
        place -= 1;
        key = key << 8 | (name[place] | CASE) as u64;
    }
    key
}

const CASE: u8 = 0x20;

/// The key of the name at `start..end`, if it is short and no byte in it could end it; `end` is the
/// first `=`, `>` or space. Without a branch on its length.
#[inline(always)]
pub(super) fn plain_key(text: &[u8], start: usize, end: usize) -> Option<u64> {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(*text.get(start..)?.first_chunk()?);
    let bits = 8 * (end - start);
    if bits > 64 {
        return None;
    }
    let mask = u64::MAX >> (64 - bits);
    // Top bits of bytes below 0x20 and of slashes; exact for the lowest.
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    let slash = word ^ (ONES * b'/' as u64);
    let slashes = slash.wrapping_sub(ONES) & !slash;
    let is_plain = (controls | slashes) & (ONES << 7) & mask == 0;
    is_plain.then_some((word | (ONES * CASE as u64)) & mask)
}

impl Attribute {
    /// The attribute with this name, if it matters.
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        match name.len() {
            0..=8 => Self::of_key(key_of(name)),
            10 if name.eq_ignore_ascii_case(b"http-equiv") => Some(Self::HttpEquiv),
            10 if name.eq_ignore_ascii_case(b"xlink:href") => Some(Self::XlinkHref),
            11 if name.eq_ignore_ascii_case(b"imagesrcset") => Some(Self::ImageSrcset),
            _ => None,
        }
    }

    /// The attribute whose name has this key.
    #[inline(always)]
    pub(super) fn of_key(key: u64) -> Option<Self> {
        let (known, attribute) = KEYS[slot_of_key(key)];
        if known == key { attribute } else { None }
    }
}

/// The attributes of one tag: where in the text their values are.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    present: u16,
    spans: [(usize, usize); ATTRIBUTES],
}

impl Attributes {
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.present = 0;
    }

    /// Notes the value of an attribute at `start..end`, if it is the first.
    #[inline(always)]
    pub(super) fn note(&mut self, attribute: Attribute, start: usize, end: usize) {
        let bit = 1 << attribute as u16;
        if self.present & bit == 0 {
            self.present |= bit;
            self.spans[attribute as usize] = (start, end);
        }
    }

    /// The raw value.
    #[inline(always)]
    pub(super) fn value<'a>(&self, text: &'a [u8], attribute: Attribute) -> Option<&'a [u8]> {
        let (start, end) = self.spans[attribute as usize];
        (self.present & 1 << attribute as u16 != 0).then(|| &text[start..end])
    }
}

/// A whole tag, as it is filed.
#[derive(Clone, Copy)]
pub(super) struct Whole<'a> {
    pub(super) settings: &'a Settings,
    pub(super) charset: &'static Encoding,
    pub(super) text: &'a [u8],
    pub(super) tag: Tag,
    pub(super) name_start: usize,
    pub(super) attributes: &'a Attributes,
}

impl<'a> Whole<'a> {
    /// Files what the tag refers to.
    #[inline]
    pub(super) fn file(self, found: &mut Found) {
        match self.tag {
            Tag::A | Tag::Area => self.anchor(found, Attribute::Href),
            Tag::Frame | Tag::Iframe => self.push(found, Kind::Frame, false, Attribute::Src),
            Tag::Base => {
                if let Some(raw) = self.raw(Attribute::Href) {
                    found.set_base(self.settings, self.charset, raw);
                }
            }
            Tag::Link => self.link(found),
            Tag::Meta => self.meta(found),
            Tag::Form => self.form(found),
            _ if self.settings.embedded => self.embed(found),
            _ => {}
        }
    }

    /// Files what a tag of a drawing refers to: links, and in SVG other parts of the drawing. Any
    /// element of MathML may be a link (MathML 3 section 6.4.3), as it is in Firefox and Safari.
    pub(super) fn file_foreign(self, space: Space, name: &[u8], found: &mut Found) {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        // Older drawings refer by `xlink:href`; SVG 2 section 16.1.5: `href` goes before it.
        let attribute = match self.raw(Attribute::Href) {
            None if space == Space::Svg => Attribute::XlinkHref,
            _ => Attribute::Href,
        };
        if space == Space::Math || is(b"a") {
            self.anchor(found, attribute);
        } else if self.settings.embedded && DRAWN.into_iter().any(is) {
            self.push(found, Kind::Embed, false, attribute);
        }
    }

    fn raw(self, attribute: Attribute) -> Option<&'a [u8]> {
        self.attributes.value(self.text, attribute)
    }

    /// The value with its references replaced; `None` if it is absent or absurdly long.
    fn value(self, found: &mut Found, attribute: Attribute) -> Option<Cow<'a, [u8]>> {
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

    fn push(self, found: &mut Found, kind: Kind, nofollow: bool, attribute: Attribute) {
        if let Some(raw) = self.raw(attribute) {
            found.push(self.settings, self.charset, kind, nofollow, raw);
        }
    }

    fn push_set(self, found: &mut Found, attribute: Attribute) {
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
        if rel.page {
            self.push(found, Kind::Related, rel.nofollow, Attribute::Href);
        } else if rel.embed && self.settings.embedded {
            self.push(found, Kind::Embed, rel.nofollow, Attribute::Href);
            self.push_set(found, Attribute::ImageSrcset);
        }
    }

    fn form(self, found: &mut Found) {
        let method = self.value(found, Attribute::Method).unwrap_or_default();
        let is = |other: &[u8]| method.eq_ignore_ascii_case(other);
        if !is(b"post") && !is(b"dialog") {
            self.push(found, Kind::Form, false, Attribute::Action);
        }
    }

    fn embed(self, found: &mut Found) {
        let main = if self.tag == Tag::Object { Attribute::Data } else { Attribute::Src };
        match self.tag {
            Tag::Audio | Tag::Embed | Tag::Image | Tag::Img | Tag::Input | Tag::Object => {}
            Tag::Script | Tag::Source | Tag::Track | Tag::Video => {}
            _ => return,
        }
        self.push(found, Kind::Embed, false, main);
        match self.tag {
            Tag::Image | Tag::Img | Tag::Source => self.push_set(found, Attribute::Srcset),
            Tag::Video => self.push(found, Kind::Embed, false, Attribute::Poster),
            _ => {}
        }
    }

    fn meta(self, found: &mut Found) {
        let may_declare = found.charset.is_none() && self.name_start < DECLARED_BYTES;
        if let Some(label) = self.value(found, Attribute::Charset).filter(|_| may_declare) {
            found.charset = charset::declared(&label);
        }
        let Some(content) = self.value(found, Attribute::Content) else { return };
        if let Some(name) = self.value(found, Attribute::Name) {
            let is = |known: &[u8]| name.trim_ascii().eq_ignore_ascii_case(known);
            if is(b"robots") || is(self.settings.product.as_bytes()) {
                found.directives = found.directives | Directives::of(&content);
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
            found.charset = charset::of_content(&content).and_then(charset::declared);
        }
    }
}
