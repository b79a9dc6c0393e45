//! The scanner: reads a page from `<` to `<`, tag by tag.
//!
//! It is the tokenizer of the HTML standard without the parts that no link depends on. Text is
//! skipped; of a tag that is not relevant to links only the end is searched; of the other tags the
//! positions of some attribute values are recorded and evaluated at the `>`.
//!
//! Its state between two calls is a position and the kind of text there. It stops only between
//! steps. A step is one search for one byte, at the speed of `memchr`, or one attribute, whose name
//! and value are searched in the same way (white space after its equals sign takes a cycle a byte).
//! Source: the HTML standard, section 13.2.5.

mod elements;

use super::css::Sheet;
use super::find::{self, skip_space, tag_name_end};
use super::foreign::{Foreign, Space};
use super::requisites::{BESIDE, ON_ANY_TAG};
use super::tags::{self, Attribute, Attributes, ParsedTag, Tag};
use super::{Found, Settings, append_value};
use elements::Nested;
use encoding_rs::{Encoding, UTF_8};

/// The result of one call of [`Scanner::scan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The scan is not complete: call again with the same text.
    More,
    /// The whole text has been scanned.
    Done,
}

/// Scans one page after another.
#[derive(Debug)]
pub struct Scanner {
    settings: Settings,
    /// The set of tags whose attributes are read.
    watched: u32,
    /// True to read the attributes of all other tags, too: in foreign content, and if the settings
    /// want references that may be on any tag.
    reads_all: bool,
    charset: &'static Encoding,
    /// All text before this position has been scanned.
    at: usize,
    state: State,
    tag: CurrentTag,
    foreign: Foreign,
    /// The style sheet of a `style` element, or the text itself if it is one.
    sheet: Sheet,
    /// True if the last form is sent by POST.
    posts: bool,
    nested: Nested,
}

/// The number of bytes in which the end of a plain attribute name is searched: two vectors, which
/// is more than such a name has.
const NEAR_BYTES: usize = 33;

/// The kind of text at the position of the scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Text in which `<` may begin a tag.
    Text,
    /// Inside a tag, before the name of an attribute.
    Tag,
    /// Inside a comment, whose text begins at this position.
    Comment(usize),
    /// Inside a CDATA section, whose text begins at this position.
    Cdata(usize),
    /// Inside an element of this tag whose content is not markup, such as `title`.
    Raw(Tag),
    /// Inside a `style` element that is scanned as a style sheet.
    Style,
    /// Inside a text that is a style sheet.
    Sheet,
    /// Inside a script.
    Script,
    /// Inside a comment in a script, in which `<script` leads to the state `ScriptInComment`.
    /// Dashes from this position on may end the comment.
    ScriptComment(usize),
    /// Inside a script in a comment in a script. Its end tag leads back to `ScriptComment`. Dashes
    /// from this position on may end the comment.
    ScriptInComment(usize),
}

/// The tag that is being read.
#[derive(Debug)]
struct CurrentTag {
    tag: Tag,
    is_end: bool,
    name_start: usize,
    /// The end of the last unquoted attribute value. A slash directly before it belongs to the
    /// value.
    bare_end: usize,
    attributes: Attributes,
}

impl Scanner {
    /// Creates a scanner at the beginning of its first page.
    pub fn new(settings: Settings) -> Self {
        let watched = tags::watched(&settings);
        let attributes = Attributes::default();
        Self {
            reads_all: settings.requisites || settings.forms,
            settings,
            watched,
            charset: UTF_8,
            at: 0,
            state: State::Text,
            tag: CurrentTag {
                tag: Tag::Other,
                is_end: false,
                name_start: 0,
                bare_end: 0,
                attributes,
            },
            foreign: Foreign::default(),
            sheet: Sheet::new(UTF_8),
            posts: false,
            nested: Nested::default(),
        }
    }

    /// Changes the settings, from the next tag on.
    pub fn set_settings(&mut self, settings: &Settings) {
        if self.settings != *settings {
            self.watched = tags::watched(settings);
            self.settings.clone_from(settings);
            self.update_reads_all();
        }
    }

    fn update_reads_all(&mut self) {
        let Settings { requisites, forms, .. } = self.settings;
        self.reads_all = requisites || forms || !self.foreign.is_empty();
    }

    /// Begins a page in `charset`, which must be scannable ([`super::is_scannable`]). References of
    /// the page are converted from this charset to UTF-8.
    pub fn begin(&mut self, charset: &'static Encoding) {
        assert!(super::is_scannable(charset), "{} has to be decoded first", charset.name());
        self.charset = charset;
        self.at = 0;
        self.state = State::Text;
        self.tag.bare_end = 0;
        self.foreign.clear();
        self.update_reads_all();
        self.posts = false;
        self.nested.document = None;
    }

    /// Begins a style sheet in `charset`, which may be any.
    pub fn begin_sheet(&mut self, charset: &'static Encoding) {
        self.begin(UTF_8);
        self.sheet = Sheet::new(charset);
        self.state = State::Sheet;
    }

    /// Returns the position in the page up to which the text has been scanned.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Continues the page in another charset. The text that was scanned must read the same in it.
    pub fn change(&mut self, charset: &'static Encoding) {
        assert!(super::is_scannable(charset), "{} has to be decoded first", charset.name());
        self.charset = charset;
    }

    /// Continues the scan of a page for about `budget_bytes` bytes. `text` is the whole page, the
    /// same in each call.
    pub fn scan(&mut self, text: &[u8], budget_bytes: usize, found: &mut Found) -> Progress {
        let mut budget = budget_bytes.max(1);
        loop {
            budget = budget.saturating_sub(self.scan_srcdoc(budget, found));
            let (start, nested) = (self.at, self.nested.bytes);
            self.scan_page(text, start.saturating_add(budget).min(text.len()), found);
            budget = budget.saturating_sub(self.at - start + self.nested.bytes - nested);
            if self.nested.document.is_none() && self.at >= text.len() {
                return Progress::Done;
            }
            if budget == 0 {
                return Progress::More;
            }
        }
    }

    /// Returns the number of bytes decoded and scanned in `srcdoc` attributes since the last call.
    /// They are no part of [`Scanner::position`].
    pub fn take_nested(&mut self) -> usize {
        std::mem::take(&mut self.nested.bytes)
    }

    /// Scans the page itself up to `limit`, or up to a document in an attribute.
    fn scan_page(&mut self, text: &[u8], limit: usize, found: &mut Found) {
        while self.at < limit && self.nested.document.is_none() {
            match self.state {
                State::Text => self.text(text, limit, found),
                State::Tag => self.attributes(text, limit, found),
                State::Comment(from) => self.comment(text, from),
                State::Cdata(from) => self.cdata(text, from),
                State::Raw(tag) => self.raw(text, tag),
                State::Style => self.style(text, found),
                State::Sheet => self.sheet(text, found),
                State::Script => self.script(text),
                State::ScriptComment(from) => self.script_comment(text, from),
                State::ScriptInComment(from) => self.script_in_comment(text, from),
            }
        }
    }

    /// Scans text up to `limit`, or up to a position at which the state changes.
    ///
    /// The next `<` is searched before the tag is read: it is mostly after the tag, and the
    /// processor can then overlap the two searches.
    fn text(&mut self, text: &[u8], limit: usize, found: &mut Found) {
        let mut open = find::byte(text, self.at, b'<').unwrap_or(text.len());
        while open < limit {
            let next = find::byte(text, open + 1, b'<').unwrap_or(text.len());
            let is_end = text.get(open + 1) == Some(&b'/');
            let name = open + 1 + usize::from(is_end);
            let end = if text.get(name).is_some_and(u8::is_ascii_alphabetic) {
                self.any_tag(text, name, is_end, limit, found)
            } else {
                self.declaration(text, open + 1)
            };
            if self.state != State::Text {
                self.at = end;
                return;
            }
            open =
                if next >= end { next } else { find::byte(text, end, b'<').unwrap_or(text.len()) };
        }
        self.at = open;
    }

    /// Reads the tag whose name begins at `name`; returns the position up to which it could be
    /// read.
    #[inline(always)]
    fn any_tag(
        &mut self,
        text: &[u8],
        name: usize,
        is_end: bool,
        limit: usize,
        found: &mut Found,
    ) -> usize {
        let (tag, name_end) = if is_end { (Tag::Other, name) } else { Tag::at(text, name) };
        if self.watched & tag.bit() != 0 {
            self.open(tag, false, name);
            self.at = name_end;
        } else {
            match self.skip_tag(text, name, limit) {
                Ok(end) => return end,
                Err(stop) => {
                    self.open(Tag::Other, is_end, name);
                    self.at = if stop == name { tag_name_end(text, name) } else { stop };
                }
            }
        }
        self.attributes(text, limit, found);
        self.at
    }

    /// Searches the end of a tag that is not relevant to links. Tags of the common forms (no
    /// attributes, or only plainly named ones with quoted values) are skipped quickly. Other tags
    /// are read in full, and so is every tag if `reads_all` is true.
    #[inline(always)]
    fn skip_tag(&self, text: &[u8], name: usize, limit: usize) -> Result<usize, usize> {
        if self.reads_all { Err(name) } else { skip_tag(text, name, limit) }
    }

    /// Reads what begins with a `<` but is not a tag: a comment, a declaration, or text. Returns
    /// the position after it.
    fn declaration(&mut self, text: &[u8], at: usize) -> usize {
        let rest = &text[at..];
        if rest.starts_with(b"!--") {
            self.state = State::Comment(at + 3);
            at + 3
        } else if rest.starts_with(b"![CDATA[") && !self.foreign.is_html() {
            self.state = State::Cdata(at + 8);
            at + 8
        } else if rest.first().is_some_and(|byte| matches!(byte, b'!' | b'?' | b'/')) {
            after(find::byte(text, at, b'>'), text)
        } else {
            at
        }
    }

    #[inline(always)]
    fn open(&mut self, tag: Tag, is_end: bool, name_start: usize) {
        self.tag.tag = tag;
        self.tag.is_end = is_end;
        self.tag.name_start = name_start;
        self.tag.attributes.clear();
    }

    /// Reads attributes up to `limit` or the end of the tag, and evaluates a complete tag.
    fn attributes(&mut self, text: &[u8], limit: usize, found: &mut Found) {
        self.state = State::Tag;
        while self.at < limit {
            match text[self.at] {
                b'>' => return self.close(text, found),
                b'/' => self.at += 1,
                byte if find::is_space(byte) => self.at = skip_space(&text[..limit], self.at + 1),
                _ => self.at = self.attribute(text).unwrap_or(text.len()),
            }
        }
    }

    /// Reads the attribute at the current position and returns its end; `None` if the text ends
    /// first.
    #[inline(always)]
    fn attribute(&mut self, text: &[u8]) -> Option<usize> {
        let name = self.at;
        // The common form: a short plain name, an equals sign, quotes. Only a few bytes are
        // searched: names that are not followed by such a byte would each cost a search of the
        // whole text.
        let near = &text[..text.len().min(name + NEAR_BYTES)];
        if let Some(equals) = find::any(near, name + 1, b'=', b'>', b' ')
            && let Some(quote @ (b'"' | b'\'')) = text.get(equals + 1)
            && text[equals] == b'='
            && let Some(key) = tags::plain_key(text, name, equals)
        {
            let end = find::byte(text, equals + 2, *quote)?;
            self.note(Attribute::of_key(key), equals + 2, end);
            return Some(end + 1);
        }
        self.any_attribute(text)
    }

    fn any_attribute(&mut self, text: &[u8]) -> Option<usize> {
        let name = self.at;
        let name_end = find::attribute_name_end(text, name + 1);
        let attribute = Attribute::of(&text[name..name_end]);
        let after = skip_space(text, name_end);
        if *text.get(after)? != b'=' {
            self.note(attribute, name_end, name_end);
            return Some(after);
        }
        let start = skip_space(text, after + 1);
        let (start, end, next) = match *text.get(start)? {
            quote @ (b'"' | b'\'') => {
                let end = find::byte(text, start + 1, quote)?;
                (start + 1, end, end + 1)
            }
            b'>' => (start, start, start),
            _ => {
                let end = find::bare_value_end(text, start);
                self.tag.bare_end = end;
                (start, end, end)
            }
        };
        self.note(attribute, start, end);
        Some(next)
    }

    #[inline(always)]
    fn note(&mut self, attribute: Option<Attribute>, start: usize, end: usize) {
        let matters = self.tag.tag != Tag::Other || self.reads_all;
        if let Some(attribute) = attribute.filter(|_| matters) {
            self.tag.attributes.note(attribute, start, end);
        }
    }

    /// Handles the `>` of a tag: stores its references, and determines the kind of the text after
    /// it.
    fn close(&mut self, text: &[u8], found: &mut Found) {
        let is_closed = text[self.at - 1] == b'/' && self.tag.bare_end != self.at;
        self.at += 1;
        self.state = State::Text;
        let tag = self.tag.tag;
        if !self.foreign.is_empty() || matches!(tag, Tag::Svg | Tag::Math) {
            let space = self.update_foreign(text, is_closed);
            if space != Space::Html {
                return self.file_foreign(text, space, found);
            }
        }
        if tag == Tag::Other || self.tag.is_end {
            if self.tag.attributes.has_any(ON_ANY_TAG) && !self.tag.is_end {
                self.parsed(text).file_beside(self.posts, found);
            }
            return;
        }
        self.state = match tag {
            Tag::Style if self.settings.requisites && self.parsed(text).is_css(found) => {
                self.sheet = Sheet::new(self.charset);
                State::Style
            }
            Tag::Script => State::Script,
            Tag::Iframe | Tag::Noembed | Tag::Noframes | Tag::Plaintext => State::Raw(tag),
            Tag::Style | Tag::Textarea | Tag::Title | Tag::Xmp => State::Raw(tag),
            _ => State::Text,
        };
        self.parsed(text).file(found);
        if tag == Tag::Form || self.tag.attributes.has_any(BESIDE) {
            self.file_beside(text, found);
        }
    }

    /// Stores the references of a tag in foreign content.
    #[cold]
    fn file_foreign(&self, text: &[u8], space: Space, found: &mut Found) {
        if !self.tag.is_end {
            let name = tags::name_at(text, self.tag.name_start);
            self.parsed(text).file_foreign(space, name, found);
        }
    }

    #[inline(always)]
    fn parsed<'a>(&'a self, text: &'a [u8]) -> ParsedTag<'a> {
        let CurrentTag { tag, name_start, ref attributes, .. } = self.tag;
        let (settings, charset) = (&self.settings, self.charset);
        let is_srcdoc = self.nested.depth > 0;
        ParsedTag { settings, charset, text, tag, name_start, attributes, is_srcdoc }
    }

    /// Reports a tag to the tracker of foreign content; returns the language that the tag belongs
    /// to.
    #[cold]
    fn update_foreign(&mut self, text: &[u8], is_closed: bool) -> Space {
        let space = self.space_of_tag(text, is_closed);
        self.update_reads_all();
        space
    }

    fn space_of_tag(&mut self, text: &[u8], is_closed: bool) -> Space {
        let name = tags::name_at(text, self.tag.name_start);
        if self.tag.is_end {
            return self.foreign.end(name);
        }
        let raw = self.tag.attributes.value(text, Attribute::Encoding).unwrap_or_default();
        let mut encoding = Vec::new();
        if raw.len() <= self.settings.reference_bytes_max {
            append_value(self.charset, raw, &mut encoding);
        }
        let is = |known: &[u8]| encoding.eq_ignore_ascii_case(known);
        let is_document = is(b"text/html") || is(b"application/xhtml+xml");
        self.foreign.start(name, is_closed, is_document)
    }

    /// Searches the next `>` in a comment. The `>` ends the comment after `--`, which may be the
    /// one that opened the comment, and after `--!`, which must come later.
    fn comment(&mut self, text: &[u8], from: usize) {
        let Some(close) = find::byte(text, self.at, b'>') else {
            self.at = text.len();
            return;
        };
        self.at = close + 1;
        let before = &text[from - 2..close];
        if before.ends_with(b"--") || before[2..].ends_with(b"--!") {
            self.state = State::Text;
        }
    }

    fn cdata(&mut self, text: &[u8], from: usize) {
        let Some(close) = find::byte(text, self.at, b'>') else {
            self.at = text.len();
            return;
        };
        self.at = close + 1;
        if text[from..close].ends_with(b"]]") {
            self.state = State::Text;
        }
    }
}

/// Skips a tag whose name begins at `name`; returns the position after its `>`.
///
/// # Errors
/// If the tag isn't of a common form, returns the position from which its attributes must be read
/// one by one, or `name` if they must be read from the end of the name.
#[inline(always)]
fn skip_tag(text: &[u8], name: usize, limit: usize) -> Result<usize, usize> {
    let mut position = find::any(text, name, b'>', b' ', b'=').ok_or(name)?;
    // An equals sign here may be part of the tag's name.
    let mut start = match text[position] {
        b'>' => return Ok(position + 1),
        b' ' => name,
        _ => return Err(name),
    };
    loop {
        position = find::either(text, position, b'>', b'=').ok_or(start)?;
        if text[position] == b'>' {
            return Ok(position + 1);
        }
        position = quoted_value_end(text, start, position).ok_or(start)? + 1;
        start = position;
        if start >= limit {
            return Err(start);
        }
    }
}

/// Returns the position of the closing quote, if a quoted value begins at `equals` and the name of
/// its attribute, from `start` on, is plain. Otherwise returns `None`.
#[inline(always)]
fn quoted_value_end(text: &[u8], start: usize, equals: usize) -> Option<usize> {
    let is_plain = equals > start && text[equals - 1].is_ascii_alphanumeric();
    let quote = *text.get(equals + 1)?;
    if !is_plain || !matches!(quote, b'"' | b'\'') {
        return None;
    }
    find::byte(text, equals + 2, quote)
}

fn after(close: Option<usize>, text: &[u8]) -> usize {
    close.map_or(text.len(), |close| close + 1)
}
