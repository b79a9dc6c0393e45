//! Parses references and directives in header fields, and in the `meta` elements that imitate them.
//!
//! These are `Link` (RFC 8288), `Refresh` (the HTML standard's shared declarative refresh steps),
//! `X-Robots-Tag`, and the content of `<meta name=robots>`, which has the same directives. Parsing
//! never fails: malformed parts are skipped.
//!
//! Cost: one pass over the value; nothing is allocated but what [`Found`] stores.

use super::find::is_space;
use super::{Directives, Found, Kind, Rel, Settings};

/// Stores the links of one `Link` field that the settings want. Their references are relative to
/// the URL of the response, not to a `<base>` of its page. A link with an `anchor` parameter is
/// about another resource, and is skipped.
pub fn header_links(value: &[u8], settings: &Settings, found: &mut Found) {
    let mut rest = value;
    while let Some(open) = memchr::memchr(b'<', rest) {
        let after = &rest[open + 1..];
        let Some(close) = memchr::memchr(b'>', after) else { return };
        let reference = &after[..close];
        let mut parameters = Parameters { rest: &after[close + 1..] };
        let (mut rel, mut media, mut anchored) = (None, None, false);
        for (name, text) in parameters.by_ref() {
            if name.eq_ignore_ascii_case(b"rel") {
                rel = rel.or(Some(text));
            } else if name.eq_ignore_ascii_case(b"type") {
                media = media.or(Some(text));
            } else if name.eq_ignore_ascii_case(b"anchor") {
                anchored = true;
            }
        }
        rest = parameters.rest;
        let rel = Rel::of(rel.unwrap_or_default(), media);
        if rel.canonical && !anchored {
            found.set_canonical(settings, reference, true);
        }
        let wanted = rel.page || (rel.embed && settings.requisites);
        if wanted && !anchored {
            let kind = if rel.page { Kind::Header } else { Kind::Embed };
            found.push_text(settings, kind, rel.nofollow, reference);
        }
    }
}

/// Iterates over the `;name=value` parameters of one link in a `Link` field, up to a comma or the
/// end. Quotes are removed. Backslash escapes are kept, because no relation or type contains them.
struct Parameters<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Parameters<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.rest = self.rest.trim_ascii_start();
        while let Some((b';', after)) = self.rest.split_first() {
            self.rest = after.trim_ascii_start();
        }
        let end = self.rest.iter().position(|byte| matches!(byte, b'=' | b';' | b',' | b'<'));
        let end = end.unwrap_or(self.rest.len());
        let name = self.rest[..end].trim_ascii();
        self.rest = &self.rest[end..];
        match self.rest.first() {
            Some(b'=') => self.rest = self.rest[1..].trim_ascii_start(),
            Some(b';') => return Some((name, b"")),
            _ => return (!name.is_empty()).then_some((name, b"")),
        }
        if let Some((b'"', after)) = self.rest.split_first() {
            let end = quoted_end(after);
            self.rest = after.get(end + 1..).unwrap_or_default();
            return Some((name, &after[..end]));
        }
        let end = self.rest.iter().position(|byte| matches!(byte, b';' | b','));
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Some((name, text.trim_ascii()))
    }
}

/// Returns the length of the text inside a quoted string. A quote after a backslash doesn't end it.
fn quoted_end(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(distance) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += distance;
        if text[at] == b'"' {
            return at;
        }
        at = (at + 2).min(text.len());
    }
    text.len()
}

/// Parses a refresh: returns the delay in seconds and the target URL, which is `None` if the page
/// itself is to be loaded again. Returns `None` if `value` is invalid. `value` is that of a
/// `Refresh` field, or the decoded content of a `meta` element.
pub fn refresh(value: &[u8]) -> Option<(u32, Option<&[u8]>)> {
    let rest = trim_start(value);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 && rest.first() != Some(&b'.') {
        return None;
    }
    let add = |sum: u32, digit: &u8| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
    let seconds = rest[..digits].iter().fold(0, add);
    let fraction = rest[digits..].iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.'));
    let rest = &rest[digits + fraction.count()..];
    let Some(&next) = rest.first() else { return Some((seconds, None)) };
    if !matches!(next, b';' | b',') && !is_space(next) {
        return None;
    }
    let rest = trim_start(rest);
    let rest = match rest.first() {
        Some(b';' | b',') => trim_start(&rest[1..]),
        _ => rest,
    };
    Some((seconds, (!rest.is_empty()).then(|| target(rest))))
}

/// Returns the target after the delay of a refresh; `url=` and quotes are optional.
fn target(rest: &[u8]) -> &[u8] {
    let Some(rest) = after_url_word(rest) else { return rest };
    match rest.first() {
        Some(&quote @ (b'"' | b'\'')) => {
            let inside = &rest[1..];
            memchr::memchr(quote, inside).map_or(inside, |end| &inside[..end])
        }
        _ => rest,
    }
}

/// Returns the text after `url =`. Returns all of the text if it does not begin with `u`. Returns
/// `None` if it begins with `u` but not with `url =`; quotes are then part of the URL.
fn after_url_word(text: &[u8]) -> Option<&[u8]> {
    if !text[0].eq_ignore_ascii_case(&b'u') {
        return Some(text);
    }
    let is_word = text.get(..3).is_some_and(|word| word.eq_ignore_ascii_case(b"url"));
    let after = trim_start(text.get(3..).filter(|_| is_word)?);
    (after.first() == Some(&b'=')).then(|| trim_start(&after[1..]))
}

fn trim_start(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    &text[spaces..]
}

/// Parses an `X-Robots-Tag` field for the crawler named `product`.
pub fn robots_tag(value: &[u8], product: &str) -> Directives {
    let mut directives = Directives::default();
    robots_words(value, product).for_each(|word| directives.add_word(word));
    directives
}

/// Returns the directives of an `X-Robots-Tag` field, or of the content of a `meta` element, that
/// apply to the crawler named `product`. Directives after a name and a colon apply to that crawler
/// alone, up to the next name; directives before any name apply to all.
pub fn robots_words<'a>(value: &'a [u8], product: &str) -> impl Iterator<Item = &'a [u8]> {
    let mut ours = true;
    value.split(|byte| *byte == b',').filter_map(move |part| {
        let mut word = part.trim_ascii();
        if let Some(colon) = memchr::memchr(b':', word) {
            let name = word[..colon].trim_ascii();
            if is_name(name) && !has_value(name) {
                ours = name.eq_ignore_ascii_case(product.as_bytes());
                word = word[colon + 1..].trim_ascii();
            }
        }
        ours.then_some(word)
    })
}

/// Returns whether the text before a colon is a name, not the part of a date up to its hours: the
/// one of `unavailable_after` may have a comma. Names may begin with digits.
fn is_name(text: &[u8]) -> bool {
    let is_date = text.first().is_some_and(u8::is_ascii_digit) && text.contains(&b' ');
    !text.is_empty() && !is_date
}

/// Returns whether the name before a colon is that of a directive with a value, not that of a
/// crawler.
fn has_value(name: &[u8]) -> bool {
    const RULES: [&[u8]; 4] =
        [b"unavailable_after", b"max-snippet", b"max-image-preview", b"max-video-preview"];
    RULES.iter().any(|rule| name.eq_ignore_ascii_case(rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links_of(value: &str, requisites: bool) -> Vec<(String, char, bool)> {
        let mut found = Found::default();
        let settings = Settings { requisites, ..Settings::default() };
        header_links(value.as_bytes(), &settings, &mut found);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        found
            .links()
            .map(|link| (text(link.reference.as_bytes()), link.kind.hop(), link.nofollow))
            .collect()
    }

    #[test]
    fn link_fields() {
        let cases: [(&str, &[&str], &str); 14] = [
            ("<http://a/2>; rel=\"next\"", &["http://a/2"], "RFC 8288 section 3"),
            ("</2>;rel=next,</1>; rel = prev", &["/2", "/1"], "a list, spaces around `=`"),
            ("</2>; rel=\"start next\"", &["/2"], "several relations"),
            ("</2>; REL=Next", &["/2"], "names and relations in any case"),
            ("</2>", &[], "no relation"),
            ("</2>; rel=stylesheet; rel=next", &[], "3.3: only the first rel counts"),
            ("</a,b>; rel=next", &["/a,b"], "commas inside the brackets"),
            ("</a>; title=\"x, <y>; rel=next\", </b>; rel=next", &["/b"], "inside quotes"),
            ("</a>; title=\"\\\"\"; rel=next", &["/a"], "a quote behind a backslash"),
            ("</a>; anchor=\"#x\"; rel=next", &[], "3.2: about another resource"),
            ("</a>; rel=alternate; type=\"text/html\"", &["/a"], "another form of the page"),
            ("</a>; rel=alternate; type=application/rss+xml", &[], "a feed is no page"),
            ("</a", &[], "not closed"),
            ("</a>; rel=\"next", &["/a"], "quote not closed"),
        ];
        for (value, expected, why) in cases {
            let links = links_of(value, false);
            let references: Vec<_> = links.iter().map(|link| link.0.as_str()).collect();
            assert_eq!(references, expected, "{value}: {why}");
        }
        assert_eq!(links_of("</s>; rel=preload", true), [("/s".to_owned(), 'E', false)]);
        assert_eq!(links_of("</s>; rel=\"next nofollow\"", true), [("/s".to_owned(), 'L', true)]);
    }

    #[test]
    fn refreshes() {
        type Expected = Option<(u32, Option<&'static str>)>;
        let cases: [(&str, Expected, &str); 24] = [
            ("5", Some((5, None)), "a time alone: the page itself"),
            (" 5 ; url=/a", Some((5, Some("/a"))), "white space"),
            ("0;URL='/a'", Some((0, Some("/a"))), "quotes"),
            ("0;url=\"/a\"b", Some((0, Some("/a"))), "cut at the closing quote"),
            ("0;url='/a", Some((0, Some("/a"))), "quote not closed"),
            ("0;'/a'", Some((0, Some("/a"))), "quotes without the word"),
            ("0,/a", Some((0, Some("/a"))), "comma"),
            ("0 /a", Some((0, Some("/a"))), "space"),
            ("0/a", None, "no separator"),
            ("0;;/a", Some((0, Some(";/a"))), "one separator only"),
            ("1.5.2;u", Some((1, Some("u"))), "a fraction is dropped; word cut short is a URL"),
            (".5; url=a", Some((0, Some("a"))), "no whole part"),
            (";url=a", None, "no time"),
            ("-1;url=a", None, "no sign"),
            ("", None, "empty"),
            ("0;", Some((0, None)), "nothing behind the separator"),
            ("0;url", Some((0, Some("url"))), "word without `=` is a URL"),
            ("0;url =", Some((0, Some(""))), "empty URL: the page itself, by joining"),
            ("0;url\t=\n 'x y'", Some((0, Some("x y"))), "white space around `=`"),
            ("0;ur'l'", Some((0, Some("ur'l'"))), "not the word: quotes stay"),
            ("0;url'x'", Some((0, Some("url'x'"))), "not the word: quotes stay"),
            ("0;xurl=a", Some((0, Some("xurl=a"))), "begins otherwise"),
            ("99999999999;a", Some((u32::MAX, Some("a"))), "does not overflow"),
            ("0; url=url=a", Some((0, Some("url=a"))), "once"),
        ];
        for (value, expected, why) in cases {
            let text = |bytes| std::str::from_utf8(bytes).expect("ASCII");
            let read = refresh(value.as_bytes()).map(|(seconds, to)| (seconds, to.map(text)));
            assert_eq!(read, expected, "{value}: {why}");
        }
    }

    #[test]
    fn robots_tags() {
        let (index, follow) = ((true, false), (false, true));
        let cases: [(&str, (bool, bool), &str); 18] = [
            ("noindex", index, "a word for all"),
            ("NoIndex , nofollow", (true, true), "any case, spaces"),
            ("none", (true, true), "both"),
            ("all, follow, index", (false, false), "nothing is forbidden"),
            ("otherbot: noindex", (false, false), "for another"),
            ("Mail.RU_Bot: noindex, nofollow", (false, false), "a name with a dot"),
            ("360Spider: nofollow", (false, false), "one that begins with digits"),
            ("other bot: noindex", (false, false), "one of two words"),
            ("Sted: noindex", index, "for us, any case"),
            ("otherbot: noindex, nofollow", (false, false), "the list is the other's, too"),
            ("nofollow, otherbot: noindex", follow, "before any name: all"),
            ("otherbot: noindex, sted: nofollow", follow, "the next name"),
            ("unavailable_after: 25 Jun 2010, noindex", index, "a rule with a value"),
            (
                "unavailable_after: Friday, 25-Jun-2027 15:00:00 GMT, nofollow",
                follow,
                "a date with a comma and colons is no name",
            ),
            ("unavailable_after: Fri, 25 Jun 2027 15:00:00 GMT, noindex", index, "nor this one"),
            ("max-snippet: -1, nofollow", follow, "a rule with a value"),
            ("noindexed, xnofollow", (false, false), "whole words"),
            ("sted:nofollow", follow, "no space"),
        ];
        for (value, expected, why) in cases {
            let directives = robots_tag(value.as_bytes(), "sted");
            assert_eq!((directives.noindex, directives.nofollow), expected, "{value}: {why}");
        }
    }
}
