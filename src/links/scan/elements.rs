//! The text of elements that are no markup: scripts, titles, style sheets; and documents in
//! attributes.

use super::{Progress, Scanner, State};
use crate::links::Found;
use crate::links::find;
use crate::links::tags::{Attribute, Tag, is_name_at};

/// Documents in attributes: that which is being scanned, and those around the text.
#[derive(Debug, Default)]
pub(super) struct Nested {
    /// The document that is scanned before the page continues.
    pub(super) document: Option<Box<Srcdoc>>,
    /// The number of `srcdoc` attributes that the text itself is nested in.
    pub(super) depth: usize,
    /// The number of bytes of documents decoded and scanned since [`Scanner::take_nested`].
    pub(super) bytes: usize,
}

/// A document in an attribute of a page, and its scanner.
#[derive(Debug)]
pub(super) struct Srcdoc {
    text: Vec<u8>,
    scanner: Scanner,
}

/// The maximum number of `srcdoc` attributes that are nested in each other.
const SRCDOCS_MAX: usize = 3;

/// The number of bytes of a style sheet that are scanned in one step.
const SHEET_BYTES: usize = 16 << 10;

impl Scanner {
    /// Continues the scan of a document in an attribute, if there is one. Returns the number of
    /// bytes scanned.
    pub(super) fn scan_srcdoc(&mut self, budget_bytes: usize, found: &mut Found) -> usize {
        let Some(Srcdoc { text, scanner }) = self.nested.document.as_deref_mut() else { return 0 };
        let start = scanner.position();
        let progress = scanner.scan(text, budget_bytes, found);
        let work = scanner.position() - start + scanner.take_nested();
        self.nested.bytes += work;
        if progress == Progress::Done {
            self.nested.document = None;
        }
        work
    }

    /// Handles what few tags have: the method of a form, a `style` attribute, a document in an
    /// attribute.
    #[cold]
    pub(super) fn file_beside(&mut self, text: &[u8], found: &mut Found) {
        let tag = self.parsed(text);
        if self.tag.tag == Tag::Form {
            self.posts = tag.sends_by_get(found, Attribute::Method) == Some(false);
        }
        let tag = self.parsed(text);
        tag.file_beside(self.posts, found);
        if self.tag.tag != Tag::Iframe {
            return;
        }
        let Some(document) = tag.srcdoc(found) else { return };
        // It was decoded.
        self.nested.bytes += document.len();
        if self.nested.depth == SRCDOCS_MAX {
            found.cut.nested += 1;
            return;
        }
        let mut scanner = Scanner::new(self.settings.clone());
        scanner.nested.depth = self.nested.depth + 1;
        self.nested.document = Some(Box::new(Srcdoc { text: document, scanner }));
    }

    pub(super) fn raw(&mut self, text: &[u8], tag: Tag) {
        if tag == Tag::Plaintext {
            self.at = text.len();
            return;
        }
        let Some(open) = find::byte(text, self.at, b'<') else {
            self.at = text.len();
            return;
        };
        self.at = open + 1;
        self.try_end(text, open, tag);
    }

    /// Scans the text of a `style` element up to the next `<`, or one piece of it.
    pub(super) fn style(&mut self, text: &[u8], found: &mut Found) {
        let end = text.len().min(self.at + SHEET_BYTES);
        let open = find::byte(&text[..end], self.at, b'<');
        if open == Some(self.at) {
            self.try_end(text, self.at, Tag::Style);
            if self.state == State::Tag {
                return self.sheet.feed(b"", true, &self.settings, found);
            }
            return self.feed(text, self.at + 1, self.at + 1 == text.len(), found);
        }
        let end = open.unwrap_or(end);
        self.feed(text, end, end == text.len(), found);
    }

    /// Scans one piece of a text that is a style sheet.
    pub(super) fn sheet(&mut self, text: &[u8], found: &mut Found) {
        let end = text.len().min(self.at + SHEET_BYTES);
        self.feed(text, end, end == text.len(), found);
    }

    /// Scans a piece of a style sheet, up to `end`.
    fn feed(&mut self, text: &[u8], end: usize, is_last: bool, found: &mut Found) {
        self.sheet.feed(&text[self.at..end], is_last, &self.settings, found);
        self.at = end;
    }

    pub(super) fn script(&mut self, text: &[u8]) {
        let Some(open) = find::byte(text, self.at, b'<') else {
            self.at = text.len();
            return;
        };
        self.at = open + 1;
        if text[open..].starts_with(b"<!--") {
            self.at = open + 4;
            self.state = State::ScriptComment(open + 2);
        } else {
            self.try_end(text, open, Tag::Script);
        }
    }

    pub(super) fn script_comment(&mut self, text: &[u8], from: usize) {
        let Some(open) = self.script_comment_step(text, from) else { return };
        if is_name_at(text, open + 1, Tag::Script.name()) {
            self.at = open + 1 + Tag::Script.name().len();
            self.state = State::ScriptInComment(from);
        } else {
            self.try_end(text, open, Tag::Script);
        }
    }

    pub(super) fn script_in_comment(&mut self, text: &[u8], from: usize) {
        let Some(open) = self.script_comment_step(text, from) else { return };
        let name = open + 2;
        if text.get(open + 1) == Some(&b'/') && is_name_at(text, name, Tag::Script.name()) {
            self.at = name + Tag::Script.name().len();
            self.state = State::ScriptComment(from);
        }
    }

    /// Searches the next `<` or `>` in a comment in a script. Returns the position of a `<`. A `>`
    /// after two dashes ends the comment.
    fn script_comment_step(&mut self, text: &[u8], from: usize) -> Option<usize> {
        let Some(position) = find::either(text, self.at, b'<', b'>') else {
            self.at = text.len();
            return None;
        };
        self.at = position + 1;
        if text[position] == b'<' {
            return Some(position);
        }
        if text[from..position].ends_with(b"--") {
            self.state = State::Script;
        }
        None
    }

    /// Begins to read the end tag of `tag` like any other tag, if it is at the position `open`.
    fn try_end(&mut self, text: &[u8], open: usize, tag: Tag) {
        let name = open + 2;
        if text.get(open + 1) == Some(&b'/') && is_name_at(text, name, tag.name()) {
            self.open(Tag::Other, true, name);
            self.at = name + tag.name().len();
            self.state = State::Tag;
        }
    }
}
