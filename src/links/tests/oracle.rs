//! The oracle of the scanner: html5ever's tokenizer, with a sink that records what is extracted.

use super::{Page, page_of};
use crate::links::css::{self, Sheet};
use crate::links::{Directives, Found, Kind, Settings, refresh};
use encoding_rs::UTF_8;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use std::cell::{Cell, RefCell};

/// A sink that records links as tags are emitted, in the simplest way.
struct Oracle {
    settings: Settings,
    page: RefCell<Page>,
    /// The text of the style element that is open.
    style: RefCell<Option<String>>,
    /// Whether the last form is sent by POST.
    posts: Cell<bool>,
    /// The number of `srcdoc` attributes around the text.
    depth: usize,
}

impl TokenSink for Oracle {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let tag = match token {
            Token::TagToken(tag) => tag,
            Token::CharacterTokens(text) => return self.text(&text),
            Token::NullCharacterToken => return self.text("\u{fffd}"),
            Token::EOFToken => {
                self.end_style();
                return TokenSinkResult::Continue;
            }
            _ => return TokenSinkResult::Continue,
        };
        self.end_style();
        if tag.kind == TagKind::EndTag {
            return TokenSinkResult::Continue;
        }
        self.note(&tag);
        match &*tag.name {
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }
}

impl Oracle {
    fn text(&self, text: &str) -> TokenSinkResult<()> {
        if let Some(style) = &mut *self.style.borrow_mut() {
            style.push_str(text);
        }
        TokenSinkResult::Continue
    }

    fn end_style(&self) {
        if let Some(text) = self.style.take() {
            let mut found = Found::new();
            Sheet::new(UTF_8).feed(text.as_bytes(), true, &self.settings, &mut found);
            self.page.borrow_mut().links.extend(page_of(&found).links);
        }
    }

    /// Notes the references of attributes that may be on any tag.
    fn beside(&self, name: &str, value: impl Fn(&str) -> Option<String>) {
        if self.settings.requisites {
            if matches!(name, "body" | "table" | "td" | "th" | "tr") {
                self.link(Kind::Embed, value("background"), false);
            }
            let mut found = Found::new();
            let style = value("style").unwrap_or_default();
            css::scan_declarations(style.as_bytes(), &self.settings, &mut found);
            self.page.borrow_mut().links.extend(page_of(&found).links);
        }
        let is_button = matches!(name, "button" | "input") && value("formaction").is_some();
        if self.settings.forms && is_button && !self.posts.get() {
            self.link(Kind::Form, value("formaction"), false);
        }
        if name == "iframe"
            && self.depth < 3
            && let Some(text) = value("srcdoc")
        {
            let inner = tokenized_at(self.depth + 1, &text, &self.settings);
            let mut page = self.page.borrow_mut();
            page.links.extend(inner.links);
            page.directives = page.directives | inner.directives;
        }
    }

    fn note(&self, tag: &Tag) {
        let value = |name: &str| {
            let attribute = tag.attrs.iter().find(|attribute| &*attribute.name.local == name);
            attribute.map(|attribute| attribute.value.to_string())
        };
        let has = |list: &str, word: &str| {
            list.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(word))
        };
        let rel = value("rel").unwrap_or_default();
        let (nofollow, requisites) = (has(&rel, "nofollow"), self.settings.requisites);
        let kind = value("type").unwrap_or_default();
        match &*tag.name {
            "a" | "area" => self.link(Kind::Anchor, value("href"), nofollow),
            "frame" | "iframe" => self.link(Kind::Frame, value("src"), false),
            "base" if self.depth == 0 => {
                let base = &mut self.page.borrow_mut().base;
                *base = base.take().or(value("href").map(|href| cleaned(&href)));
            }
            "link" if has(&rel, "next") && kind.trim().is_empty() => {
                self.link(Kind::Related, value("href"), nofollow)
            }
            "link" if has(&rel, "icon") && requisites => {
                self.link(Kind::Embed, value("href"), nofollow);
            }
            "meta" => self.meta(value("name"), value("http-equiv"), value("content")),
            "form" if self.settings.forms => {
                self.posts.set(value("method").is_some_and(|it| it.eq_ignore_ascii_case("post")));
                if !self.posts.get() {
                    self.link(Kind::Form, value("action"), false);
                }
            }
            "input" if !kind.eq_ignore_ascii_case("image") => {}
            "img" | "image" | "source" | "script" | "video" | "input" if requisites => {
                self.link(Kind::Embed, value("src"), false);
            }
            "style" if requisites && (kind.is_empty() || kind.eq_ignore_ascii_case("text/css")) => {
                *self.style.borrow_mut() = Some(String::new());
            }
            _ => {}
        }
        self.beside(&tag.name, value);
    }

    fn meta(&self, name: Option<String>, field: Option<String>, content: Option<String>) {
        let Some(content) = content else { return };
        if name.is_some_and(|name| name.eq_ignore_ascii_case("robots")) {
            let directives = &mut self.page.borrow_mut().directives;
            *directives = *directives | Directives::of(content.as_bytes());
        }
        if field.is_some_and(|field| field.eq_ignore_ascii_case("refresh"))
            && let Some((_, Some(to))) = refresh(content.as_bytes())
        {
            let to = String::from_utf8(to.to_vec()).expect("cut between characters");
            self.link(Kind::Refresh, Some(to), false);
        }
    }

    fn link(&self, kind: Kind, value: Option<String>, nofollow: bool) {
        let is_click = matches!(kind, Kind::Anchor | Kind::Form | Kind::Refresh);
        if let Some(value) = value.filter(|value| is_click || !cleaned(value).is_empty()) {
            self.page.borrow_mut().links.push((kind, cleaned(&value), nofollow));
        }
    }
}

fn cleaned(value: &str) -> String {
    let trimmed = value.trim_matches(['\t', '\n', '\x0c', '\r', ' ']);
    trimmed.replace(['\t', '\n', '\r'], "")
}

/// Returns what is extracted from a page by the standard's tokenizer.
pub(super) fn tokenized(text: &str, settings: &Settings) -> Page {
    tokenized_at(0, text, settings)
}

fn tokenized_at(depth: usize, text: &str, settings: &Settings) -> Page {
    let oracle = Oracle {
        settings: settings.clone(),
        page: RefCell::default(),
        style: RefCell::default(),
        posts: Cell::new(false),
        depth,
    };
    let tokenizer = Tokenizer::new(oracle, TokenizerOpts::default());
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from(text));
    while !queue.is_empty() {
        let _ = tokenizer.feed(&queue);
    }
    tokenizer.end();
    tokenizer.sink.page.into_inner()
}
