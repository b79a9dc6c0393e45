//! The links of a page, found by html5ever's tokenizer: the oracle for the crawler's own scanner.
//!
//! It finds the links that sted follows by default: a, area, frame, iframe, link to pages, meta
//! refresh; but not those marked nofollow, nor any of a page that asks for that.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::{Rawtext, Rcdata, ScriptData};
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use std::cell::RefCell;

/// The links of a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    /// The first `base`.
    pub(super) base: Option<String>,
    /// References, to be joined with the base.
    pub(super) references: Vec<String>,
    /// Whether the page asks that none of its links be followed.
    nofollow: bool,
}

/// Returns the links of a page in UTF-8.
pub(super) fn links(page: &str) -> Links {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    while !input.is_empty() {
        let _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    let mut links = tokenizer.sink.links.into_inner();
    if links.nofollow {
        links.references.clear();
    }
    links
}

/// Collects links from tags.
#[derive(Debug, Default)]
struct Sink {
    links: RefCell<Links>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else { return TokenSinkResult::Continue };
        if tag.kind == TagKind::EndTag {
            return TokenSinkResult::Continue;
        }
        self.links.borrow_mut().add(&tag);
        match &*tag.name {
            "title" | "textarea" => TokenSinkResult::RawData(Rcdata),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
                TokenSinkResult::RawData(Rawtext)
            }
            "script" => TokenSinkResult::RawData(ScriptData),
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }
}

impl Links {
    fn add(&mut self, tag: &Tag) {
        let value = |name: &str| {
            let attribute = tag.attrs.iter().find(|attribute| &*attribute.name.local == name);
            attribute.map(|attribute| &*attribute.value)
        };
        let rel = value("rel").unwrap_or_default();
        match &*tag.name {
            "base" if self.base.is_none() => self.base = value("href").map(str::to_owned),
            "a" | "area" if !has(rel, &["nofollow"]) => self.keep(value("href")),
            "link" if leads_to_a_page(rel, value("type")) => self.keep(value("href")),
            "frame" | "iframe" => {
                self.keep(value("src").filter(|source| !source.trim().is_empty()))
            }
            "meta" => {
                let content = value("content").unwrap_or_default();
                let named = |name: &str, wanted: &str| {
                    value(name).is_some_and(|found| found.trim().eq_ignore_ascii_case(wanted))
                };
                if named("http-equiv", "refresh") {
                    self.keep(refreshed(content));
                } else if named("name", "robots") || named("name", "sted") {
                    let words = content.replace(',', " ");
                    self.nofollow |= has(&words, &["nofollow", "none"]);
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, reference: Option<&str>) {
        self.references.extend(reference.map(str::to_owned));
    }
}

/// Whether a list of words has one of `wanted`.
fn has(list: &str, wanted: &[&str]) -> bool {
    let is = |word: &str| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted));
    list.split_ascii_whitespace().any(is)
}

/// Whether a `link` element's relations lead to another HTML page.
fn leads_to_a_page(rel: &str, media: Option<&str>) -> bool {
    const PAGES: [&str; 19] = [
        "alternate",
        "author",
        "bookmark",
        "canonical",
        "contents",
        "first",
        "help",
        "home",
        "index",
        "last",
        "license",
        "next",
        "prev",
        "previous",
        "privacy-policy",
        "start",
        "terms-of-service",
        "toc",
        "up",
    ];
    const PARTS: [&str; 5] = ["stylesheet", "icon", "manifest", "preload", "nofollow"];
    let media = media.unwrap_or_default().trim();
    let is_page = ["", "text/html", "application/xhtml+xml"].contains(&media);
    is_page && has(rel, &PAGES) && !has(rel, &PARTS)
}

/// Parses `5; url='x'`, in the simple forms that the pages here use.
fn refreshed(content: &str) -> Option<&str> {
    let (_, rest) = content.split_once([';', ','])?;
    let rest = rest.trim();
    let rest = match rest.get(..3) {
        Some(name) if name.eq_ignore_ascii_case("url") => {
            rest[3..].trim_start().strip_prefix('=').unwrap_or(rest).trim()
        }
        _ => rest,
    };
    Some(rest.trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leads_on_is_a_link() {
        let cases: [(&str, &[&str]); 12] = [
            ("<a href='x&amp;y'>", &["x&y"]),
            ("<a rel=nofollow href=x><a href=y>", &["y"]),
            ("<meta name=Robots content='index,NOFOLLOW'><a href=x>", &[]),
            ("<meta http-equiv=refresh content='0; url=\"x y\"'>", &["x y"]),
            ("<meta http-equiv=refresh content='5;x'><meta http-equiv=refresh content=5>", &["x"]),
            ("<link rel=stylesheet href=x><link rel='toc x' href=y>", &["y"]),
            ("<link rel=alternate type=application/rss+xml href=x>", &[]),
            ("<script><a href=x></script><noscript><a href=y></noscript>", &["y"]),
            ("<title><a href=x></title><textarea><a href=x></textarea>", &[]),
            ("<!-- <a href=x> --><style><a href=x></style><a href=", &[]),
            ("<iframe src=x><a href=y></iframe><frame src=z><area href=w>", &["x", "z", "w"]),
            ("</a href=x><img src=x><form action=x>", &[]),
        ];
        for (page, expected) in cases {
            assert_eq!(links(page).references, expected, "{page}");
        }
        assert_eq!(links("<base target=x><base href=y><base href=z>").base.as_deref(), Some("y"));
    }
}
