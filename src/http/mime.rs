//! Media types: parses Content-Type fields, and decides whether a body is HTML or CSS.
//!
//! All Content-Type fields together are one list; its last member that is a media type wins
//! ([`MediaType::of`]). If there is none, or it says "unknown", the first bytes of the body decide,
//! as they do in browsers, unless the server forbids that with `X-Content-Type-Options: nosniff`.
//!
//! Cost: one pass over the fields, and over at most 1,445 bytes of the body.
//! Source: the Fetch standard, "extract a MIME type" and "determine nosniff"; the MIME Sniffing
//! standard, sections 4.4 (parsing), 5.1 and 7.1.

use super::request::is_token;
use super::response::Head;
use smallvec::SmallVec;

/// The number of bytes at the start of a body that are sniffed: the standard's "resource header".
const SNIFF_BYTES: usize = 1_445;

/// The inline buffer for a type or charset; real ones fit into it without an allocation.
type Word = SmallVec<[u8; 32]>;

/// A media type, as far as a crawler needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaType {
    /// The type and the subtype in lower case, such as `text/html`.
    pub essence: Word,
    /// The value of the `charset` parameter; `None` if there is none.
    pub charset: Option<Word>,
}

impl MediaType {
    /// Returns the media type that the Content-Type fields of `head` state; `bytes` are the bytes
    /// of that head. Returns `None` if no field is a media type.
    pub fn of(head: &Head, bytes: &[u8]) -> Option<Self> {
        let mut found: Option<Self> = None;
        for value in members(head, bytes, "content-type") {
            let Some(mut next) = Self::parse(value).filter(|next| *next.essence != *b"*/*") else {
                continue;
            };
            // The charset also applies to later media types of the list, if they have the same
            // type.
            if let Some(found) = found.filter(|found| found.essence == next.essence) {
                next.charset = next.charset.or(found.charset);
            }
            found = Some(next);
        }
        found
    }

    /// Parses one media type; `None` if `text` is malformed.
    fn parse(text: &[u8]) -> Option<Self> {
        let end = memchr::memchr(b';', text).unwrap_or(text.len());
        let essence = trim_end(&text[..end]);
        let slash = memchr::memchr(b'/', essence)?;
        let (kind, subtype) = (&essence[..slash], &essence[slash + 1..]);
        let is_word = |word: &[u8]| !word.is_empty() && word.iter().copied().all(is_token);
        if !is_word(kind) || !is_word(subtype) {
            return None;
        }
        let charset = charset_of(&text[end..]).map(Word::from_slice);
        let mut essence = Word::from_slice(essence);
        essence.make_ascii_lowercase();
        Some(Self { essence, charset })
    }

    /// Returns whether this is one of the standard's "unknown" types.
    fn is_unknown(&self) -> bool {
        matches!(&*self.essence, b"unknown/unknown" | b"application/unknown")
    }
}

/// What the head of a reply says about whether the body is HTML or CSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markup {
    /// The media type is HTML.
    Html,
    /// The media type is that of style sheets.
    Css,
    /// The media type is another one, or is missing and may not be sniffed.
    Other,
    /// The media type is missing: [`looks_like_html`] decides by the body.
    Sniff,
}

/// Returns whether the reply with `head` is HTML or CSS, as far as its head says. `bytes` are the
/// bytes of the head, `media` is what [`MediaType::of`] returned for it.
pub fn markup(media: Option<&MediaType>, head: &Head, bytes: &[u8]) -> Markup {
    match media.filter(|media| !media.is_unknown()) {
        Some(media) => match &*media.essence {
            b"text/html" | b"application/xhtml+xml" => Markup::Html,
            b"text/css" => Markup::Css,
            _ => Markup::Other,
        },
        None if !is_nosniff(head, bytes) => Markup::Sniff,
        None => Markup::Other,
    }
}

fn is_nosniff(head: &Head, bytes: &[u8]) -> bool {
    let mut options = members(head, bytes, "x-content-type-options");
    options.next().is_some_and(|first| first.eq_ignore_ascii_case(b"nosniff"))
}

/// Returns the members of the comma-separated list that all fields called `name` form together.
fn members<'a>(
    head: &'a Head,
    bytes: &'a [u8],
    name: &'static str,
) -> impl Iterator<Item = &'a [u8]> {
    let is_it = move |(field, _): &(&[u8], &[u8])| field.eq_ignore_ascii_case(name.as_bytes());
    head.fields(bytes).filter(is_it).flat_map(|(_, value)| Members { rest: Some(value) })
}

/// Iterates over the members of a comma-separated list. Commas inside quotes don't count.
struct Members<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        if memchr::memchr(b',', rest).is_none() {
            self.rest = None;
            return Some(trim(rest));
        }
        let (mut quoted, mut escaped) = (false, false);
        let comma = rest.iter().position(|byte| {
            let is_end = *byte == b',' && !quoted;
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ => {}
            }
            is_end
        });
        self.rest = comma.map(|comma| &rest[comma + 1..]);
        Some(trim(&rest[..comma.unwrap_or(rest.len())]))
    }
}

/// Returns the first `charset` of `parameters`, which begin with their semicolon. White space
/// around the equals sign is accepted: not by the standard, but by Chromium.
fn charset_of(parameters: &[u8]) -> Option<&[u8]> {
    let mut rest = parameters;
    while let Some((b';', after)) = rest.split_first() {
        let after = trim_start(after);
        let name_end = memchr::memchr2(b'=', b';', after).unwrap_or(after.len());
        let (name, value) = after.split_at(name_end);
        let Some((b'=', value)) = value.split_first() else {
            rest = value;
            continue;
        };
        let value = trim_start(value);
        let text;
        if let Some((b'"', inside)) = value.split_first() {
            let end = memchr::memchr(b'"', inside).unwrap_or(inside.len());
            text = &inside[..end];
            let behind = &inside[end..];
            rest = &behind[memchr::memchr(b';', behind).unwrap_or(behind.len())..];
        } else {
            let end = memchr::memchr(b';', value).unwrap_or(value.len());
            text = trim_end(&value[..end]);
            rest = &value[end..];
        }
        if trim_end(name).eq_ignore_ascii_case(b"charset") && !text.is_empty() {
            return Some(text);
        }
    }
    None
}

/// Returns whether a decoded body is HTML by MIME Sniffing 7.1: after white space it begins with
/// one of certain tags, or with a comment.
pub fn looks_like_html(body: &[u8]) -> bool {
    const TAGS: [&[u8]; 16] = [
        b"!DOCTYPE HTML",
        b"HTML",
        b"HEAD",
        b"SCRIPT",
        b"IFRAME",
        b"H1",
        b"DIV",
        b"FONT",
        b"TABLE",
        b"A",
        b"STYLE",
        b"TITLE",
        b"B",
        b"BODY",
        b"BR",
        b"P",
    ];
    let head = &body[..body.len().min(SNIFF_BYTES)];
    let is_space = |byte: &&u8| matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ');
    let Some(rest) = head[head.iter().take_while(is_space).count()..].strip_prefix(b"<") else {
        return false;
    };
    let begins = |tag: &&[u8]| {
        let same = rest.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
        same && matches!(rest.get(tag.len()), Some(b' ' | b'>'))
    };
    rest.starts_with(b"!--") || TAGS.iter().any(begins)
}

/// Returns whether a byte is white space in HTTP, which unlike ASCII's has no form feed.
fn is_http_space(byte: &&u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' ')
}

fn trim_start(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(is_http_space).count()..]
}

fn trim_end(text: &[u8]) -> &[u8] {
    &text[..text.len() - text.iter().rev().take_while(is_http_space).count()]
}

fn trim(text: &[u8]) -> &[u8] {
    trim_end(trim_start(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::response::{Limits, Reader};

    /// Parses a head with these fields; returns its reader and its bytes.
    fn head_of(fields: &str) -> (Reader, Vec<u8>) {
        let bytes = format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into_bytes();
        let mut reader = Reader::new(Limits::default());
        reader.begin();
        reader.read(&bytes, true).expect("a head");
        (reader, bytes)
    }

    fn media(fields: &str) -> Option<(String, Option<String>)> {
        let (reader, bytes) = head_of(fields);
        let text = |word: Word| String::from_utf8(word.to_vec()).expect("ASCII");
        MediaType::of(reader.head(), &bytes)
            .map(|media| (text(media.essence), media.charset.map(text)))
    }

    #[test]
    fn media_types_of_fields() {
        let cases = [
            ("text/html", "text/html", None, "plain"),
            ("Text/HTML ; Charset=GBK", "text/html", Some("GBK"), "any case"),
            ("text/html, text/html", "text/html", None, "Fetch: a list"),
            ("text/html;charset=gbk, text/html", "text/html", Some("gbk"), "it holds on"),
            ("text/html;charset=gbk, x/x, text/html", "text/html", None, "not across another"),
            ("text/html;charset=gbk, text/html;charset=big5", "text/html", Some("big5"), "last"),
            ("text/html;charset=gbk;charset=big5", "text/html", Some("gbk"), "first parameter"),
            ("text/html;charset=\"a,b;c\"", "text/html", Some("a,b;c"), "quoted"),
            ("text/html;x=\";charset=a\";charset=b", "text/html", Some("b"), "quoted"),
            ("text/html; charset = b ;c=d", "text/html", Some("b"), "spaces"),
            ("text/html;;charset=;charset=b", "text/html", Some("b"), "empty parameters"),
            ("text/html, */*", "text/html", None, "Fetch: */* is skipped"),
            ("text/plain, html", "text/plain", None, "Fetch: failures are skipped"),
            ("text/html, text/plain", "text/plain", None, "Fetch: the last counts"),
            ("text/html\r\nContent-Type: image/png", "image/png", None, "two fields"),
            ("", "", None, "void"),
            ("html", "", None, "4.4: no slash"),
            ("charset=utf-8", "", None, "4.4: no slash"),
            ("text/html charset=utf-8", "", None, "4.4: not a token"),
            ("text /html", "", None, "4.4: not a token"),
            ("/html", "", None, "4.4: no type"),
            ("text/", "", None, "4.4: no subtype"),
            ("*/*", "", None, "Fetch: skipped"),
        ];
        for (value, essence, charset, why) in cases {
            let found = media(&format!("Content-Type: {value}\r\n"));
            let expected =
                (!essence.is_empty()).then(|| (essence.to_owned(), charset.map(str::to_owned)));
            assert_eq!(found, expected, "{value}: {why}");
        }
        assert_eq!(media(""), None, "no field");
    }

    #[test]
    fn style_sheets_by_type_only() {
        for (fields, expected) in [
            ("Content-Type: Text/CSS; charset=x\r\n", Markup::Css),
            ("Content-Type: text/plain\r\n", Markup::Other),
            ("", Markup::Sniff),
        ] {
            let (reader, bytes) = head_of(fields);
            let media = MediaType::of(reader.head(), &bytes);
            assert_eq!(markup(media.as_ref(), reader.head(), &bytes), expected, "{fields}");
        }
    }

    #[test]
    fn html_by_type_or_by_its_first_bytes() {
        let page = "\n <!doctype html>";
        let nosniff = "X-Content-Type-Options: NoSniff\r\n";
        let typed = |value: &str| format!("Content-Type: {value}\r\n");
        let cases = [
            (typed("text/html"), "x", true, "7, step 1"),
            (typed("application/xhtml+xml"), "x", true, "7, step 1"),
            (typed("text/plain"), page, false, "7: a known type stands"),
            (typed("application/octet-stream"), page, false, "a known type stands"),
            (typed("text/xml"), page, false, "not of ours"),
            (typed("unknown/unknown"), page, true, "7, step 2"),
            (typed("application/unknown"), page, true, "7, step 2"),
            (typed("*/*"), page, true, "7, step 2"),
            (typed("html"), page, true, "5.1: no type"),
            (typed("html"), "plain text", false, "7.1: text"),
            (typed("html") + nosniff, page, false, "7.1: not sniffed"),
            (typed("text/html") + nosniff, page, true, "the type is legible"),
            (nosniff.to_owned(), page, false, "no type, and no sniffing"),
            ("X-Content-Type-Options: x, nosniff\r\n".to_owned(), page, true, "Fetch: the first"),
            (String::new(), "<HTML>", true, "7.1"),
            (String::new(), "<p class=a>", true, "7.1"),
            (String::new(), "<!-- x", true, "7.1"),
            (String::new(), "<pre>", false, "7.1: not a tag of the table"),
            (String::new(), "<body", false, "7.1: no byte that ends the tag"),
            (String::new(), "<?xml version='1.0'?><html>", false, "7.1: XML"),
            (String::new(), "x<html>", false, "7.1: text before"),
        ];
        for (fields, body, expected, why) in cases {
            let (reader, bytes) = head_of(&fields);
            let head = reader.head();
            let media = MediaType::of(head, &bytes);
            let is = match markup(media.as_ref(), head, &bytes) {
                Markup::Sniff => looks_like_html(body.as_bytes()),
                said => said == Markup::Html,
            };
            assert_eq!(is, expected, "{fields:?} {body}: {why}");
        }
    }
}
