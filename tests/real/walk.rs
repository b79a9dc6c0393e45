//! The oracle of the real sites: a walk over the files that finds what can be reached from the
//! seeds.
//!
//! It uses the files, html5ever's tokens, the `url` crate and what each server does about folders,
//! but no code of the crawler. It says for every URL what a polite and complete crawl makes of it.

use super::servers::Rule;
use super::sites::Site;
use super::tags::{self, Links};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use url::Url;

/// The expected result of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is fetched once: the status, and the file if its content is one's.
    Fetched(u16, Option<PathBuf>),
    /// robots.txt disallows it.
    Closed,
}

/// The fates of all URLs that can be reached, by key.
pub(super) type Fates = BTreeMap<String, Fate>;

/// Walks from the seeds, at most `depth_max` links deep.
pub(super) fn walk(sites: &[Site], seeds: &[String], depth_max: usize) -> Fates {
    let mut walk =
        Walk { sites, pages: BTreeMap::new(), fates: Fates::new(), next: VecDeque::new() };
    for seed in seeds {
        walk.offer(Url::parse(seed).expect("seeds are URLs"), 0, depth_max);
    }
    while let Some((url, depth)) = walk.next.pop_front() {
        walk.visit(&url, depth, depth_max);
    }
    walk.fates
}

/// Returns the form in which URLs are compared: normalised escapes (RFC 3986, section 6.2.2), no
/// fragment, no empty query.
pub(super) fn key(url: &Url) -> String {
    let mut key = format!("{}{}", url.origin().ascii_serialization(), normal(url.path()));
    if let Some(query) = url.query().filter(|query| !query.is_empty()) {
        key = key + "?" + &normal(query);
    }
    key
}

struct Walk<'a> {
    sites: &'a [Site],
    /// The links of the pages visited: many servers have the same files.
    pages: BTreeMap<PathBuf, Rc<Links>>,
    fates: Fates,
    next: VecDeque<(Url, usize)>,
}

impl Walk<'_> {
    /// Adds a URL that was found: if it is wanted and new, it gets its fate and is visited later.
    fn offer(&mut self, url: Url, depth: usize, depth_max: usize) {
        let key = key(&url);
        let Some(site) = self.sites.iter().find(|site| is_on(&url, site)) else { return };
        if depth > depth_max || self.fates.contains_key(&key) {
            return;
        }
        let fate = if is_open(site, url.path()) { answer(site, &url) } else { Fate::Closed };
        self.fates.insert(key, fate);
        self.next.push_back((url, depth));
    }

    /// Follows the links of a URL.
    fn visit(&mut self, url: &Url, depth: usize, depth_max: usize) {
        match self.fates[&key(url)].clone() {
            Fate::Fetched(200, Some(file)) if file.extension().is_some_and(|e| e == "html") => {
                let links = self.links(&file);
                let base = links.base.as_ref().and_then(|base| url.join(base).ok());
                let base = base.as_ref().unwrap_or(url);
                for found in links.references.iter().filter_map(|it| base.join(it).ok()) {
                    self.offer(found, depth + 1, depth_max);
                }
            }
            // A folder's name without its slash: the redirect leads to it, but is no link.
            Fate::Fetched(301 | 308, _) => {
                let mut target = url.clone();
                target.set_path(&format!("{}/", url.path()));
                self.offer(target, depth, depth_max);
            }
            _ => {}
        }
    }

    fn links(&mut self, file: &Path) -> Rc<Links> {
        let real = file.canonicalize().expect("it is served");
        let read = |file: &Path| Rc::new(tags::links(&fs::read_to_string(file).expect("UTF-8")));
        Rc::clone(self.pages.entry(real).or_insert_with_key(|file| read(file)))
    }
}

fn is_on(url: &Url, site: &Site) -> bool {
    url.origin().ascii_serialization() == site.origin()
}

/// RFC 9309, section 2.2.2: the longest rule decides; of two equally long ones, the one that
/// allows.
fn is_open(site: &Site, path: &str) -> bool {
    let lengths = site.rules().map(|rule| match rule {
        Rule::Allow(prefix) => (prefix, true),
        Rule::Disallow(prefix) => (prefix, false),
    });
    let matching = lengths.filter(|(prefix, _)| path.starts_with(prefix));
    matching.map(|(prefix, open)| (prefix.len(), open)).max().is_none_or(|(_, open)| open)
}

/// Returns what a server answers.
fn answer(site: &Site, url: &Url) -> Fate {
    let path = String::from_utf8(unescaped(url.path())).expect("our names are UTF-8");
    let file = site.root.join(path.trim_start_matches('/'));
    let slash = path.ends_with('/');
    if file.is_dir() {
        let index = Some(file.join("index.html")).filter(|index| index.is_file());
        let status = site.server.status_of_folder(slash, index.is_some());
        let status = status.expect("nothing leads to lists of files");
        return Fate::Fetched(status, index.filter(|_| slash));
    }
    let is_file = file.is_file() && !slash;
    if is_file { Fate::Fetched(200, Some(file)) } else { Fate::Fetched(404, None) }
}

/// Decodes all escapes.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escape = escape(rest);
        bytes.push(escape.unwrap_or(first));
        rest = if escape.is_some() { &rest[3..] } else { after };
    }
    bytes
}

/// Normalises escapes: upper case; those of letters, digits and `-._~` are decoded.
fn normal(text: &str) -> String {
    let mut normal = String::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        match escape(rest) {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                normal.push(char::from(byte));
            }
            Some(byte) => normal += &format!("%{byte:02X}"),
            None => normal.push(char::from(first)),
        }
        rest = if escape(rest).is_some() { &rest[3..] } else { after };
    }
    normal
}

/// Decodes the escape at the start of `text`.
fn escape(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    let byte = digit(1)? * 16 + digit(2)?;
    (text[0] == b'%').then_some(byte as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_one_for_one_page() {
        let cases = [
            ("http://a.test:8/x%7ey#z", "http://a.test:8/x~y", "escapes of plain letters"),
            ("http://a.test:8/%c3%bc", "http://a.test:8/%C3%BC", "upper case"),
            ("http://a.test:8/\u{fc}", "http://a.test:8/%C3%BC", "what the URL standard escapes"),
            ("http://a.test:8/%2fx%", "http://a.test:8/%2Fx%", "a slash stays escaped"),
            ("http://a.test:8/?", "http://a.test:8/", "an empty query"),
            ("http://a.test:8/?b=%41&a", "http://a.test:8/?b=A&a", "a query keeps its order"),
        ];
        for (url, expected, why) in cases {
            assert_eq!(key(&Url::parse(url).expect("a URL")), expected, "{why}");
        }
    }
}
