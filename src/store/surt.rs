//! The SURT key of the index: a URL with its host reversed, in the form that replay tools look up.
//!
//! `https://www.Example.com:8080/B/A/?y=2&x=1` becomes `com,example:8080)/b/a?x=1&y=2`: the rules
//! are those of the default canonicalizer of the `surt` package, applied to a URL that is canonical
//! already. Different spellings of a page share a key on purpose: a reader looks the page up, then
//! compares.
//!
//! Not implemented: removing ASP.NET's session directories from paths.
//! Laws: a key contains visible ASCII only, so it can't shift the fields of its line.
//! Cost: linear in the URL except for sorting its arguments; no allocation once the buffers have
//! grown.

use super::text::{push_percent, push_visible};
use smallvec::SmallVec;

/// Converts URLs to SURT keys; its buffers are reused.
#[derive(Debug, Default)]
pub(super) struct Surt {
    plain: Vec<u8>,
    part: Vec<u8>,
}

impl Surt {
    /// Appends the SURT key of `url`, which must be absolute and canonical.
    pub(super) fn push(&mut self, out: &mut Vec<u8>, url: &str) {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let rest = rest.split('#').next().unwrap_or("");
        let authority_bytes = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(authority_bytes);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        push_host(out, scheme, authority);
        out.push(b')');
        self.push_path(out, path.as_bytes());
        self.push_query(out, query.as_bytes());
    }

    fn push_path(&mut self, out: &mut Vec<u8>, path: &[u8]) {
        decode(&mut self.plain, path);
        self.part.clear();
        normal_path(&mut self.part, &self.plain);
        if self.part.len() > 1 && self.part.ends_with(b"/") {
            self.part.pop();
        }
        let start = out.len();
        encode(out, &self.part);
        out[start..].make_ascii_lowercase();
    }

    fn push_query(&mut self, out: &mut Vec<u8>, query: &[u8]) {
        if query.is_empty() {
            return;
        }
        decode(&mut self.plain, query);
        self.part.clear();
        encode(&mut self.part, &self.plain);
        self.part.make_ascii_lowercase();
        SESSIONS.iter().for_each(|session| session.strip(&mut self.part));
        if self.part.is_empty() {
            return;
        }
        let mut arguments: SmallVec<[&[u8]; 16]> = self.part.split(|&byte| byte == b'&').collect();
        arguments.sort_by_key(|argument| key_and_value(argument));
        for (place, argument) in arguments.iter().enumerate() {
            out.push(if place == 0 { b'?' } else { b'&' });
            out.extend_from_slice(argument);
        }
    }
}

/// Appends the host and port of `authority` in SURT form: `www.example.com:8080` becomes
/// `com,example:8080`. IPv4 addresses are reversed like names; the brackets of IPv6 addresses are
/// removed.
fn push_host(out: &mut Vec<u8>, scheme: &str, authority: &str) {
    let host_and_port = authority.rsplit('@').next().unwrap_or("");
    let start = out.len();
    let (host, port) = match host_and_port.strip_prefix('[') {
        Some(literal) => literal.split_once(']').unwrap_or((literal, "")),
        None => host_and_port.split_at(host_and_port.find(':').unwrap_or(host_and_port.len())),
    };
    let host = without_www(host.trim_matches('.'));
    for (place, label) in host.rsplit('.').enumerate() {
        if place > 0 {
            out.push(b',');
        }
        label.bytes().for_each(|byte| push_visible(out, byte.to_ascii_lowercase()));
    }
    let standard = matches!((scheme, port), (_, "" | ":") | ("http", ":80") | ("https", ":443"));
    if !standard {
        port.bytes().for_each(|byte| push_visible(out, byte));
    }
    out[start..].make_ascii_lowercase();
}

/// Returns the host without a leading `www.`, `www2.` and the like.
fn without_www(host: &str) -> &str {
    let number_on = host.get(..3).filter(|www| www.eq_ignore_ascii_case("www")).map(|_| &host[3..]);
    let rest = number_on.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.and_then(|rest| rest.strip_prefix('.')).unwrap_or(host)
}

/// Appends `text` after decoding its percent escapes repeatedly until none is left. This takes one
/// pass: if a decoded byte completes another escape, that is decoded in turn.
fn decode(out: &mut Vec<u8>, text: &[u8]) {
    out.clear();
    for &byte in text {
        out.push(byte);
        while let [.., b'%', high, low] = out[..]
            && let (Some(high), Some(low)) = (hex(high), hex(low))
        {
            out.truncate(out.len() - 3);
            out.push(high << 4 | low);
        }
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Appends `text`, with the bytes percent-encoded that are not allowed in a URL, and the two
/// characters that would change its meaning.
fn encode(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'%' | b'#' => push_percent(out, byte),
            _ => push_visible(out, byte),
        }
    }
}

/// Appends `path` without its empty segments and dot segments. A `..` without a segment before it
/// is kept.
fn normal_path(out: &mut Vec<u8>, path: &[u8]) {
    let mut kept: SmallVec<[&[u8]; 16]> = SmallVec::new();
    for segment in path.split(|&byte| byte == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    out.push(b'/');
    let Some((last, folders)) = kept.split_last() else {
        return;
    };
    for folder in folders.iter().filter(|folder| !folder.is_empty()) {
        out.extend_from_slice(folder);
        out.push(b'/');
    }
    out.extend_from_slice(last);
}

/// Returns the sort key of a query argument: its name and its value. An argument without `=` has no
/// value, and sorts before one with an empty value.
fn key_and_value(argument: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', argument) {
        Some(place) => (&argument[..place], Some(&argument[place + 1..])),
        None => (argument, None),
    }
}

/// A query parameter that carries the session of a visitor; names are in lower case.
enum Session {
    /// Any parameter with this name, whose value consists of so many letters and digits.
    Value(&'static [u8], usize),
    /// ASP's parameter: `aspsessionid`, eight letters, `=`, twenty-four letters.
    Asp,
    /// ColdFusion's two parameters: `cfid=...&cftoken=...`.
    ColdFusion,
}

const SESSIONS: [Session; 5] = [
    Session::Value(b"jsessionid=", 32),
    Session::Value(b"phpsessid=", 32),
    Session::Value(b"sid=", 32),
    Session::Asp,
    Session::ColdFusion,
];

impl Session {
    /// Removes the last parameter of this kind from `query`, and the `&` after it.
    fn strip(&self, query: &mut Vec<u8>) {
        let found = (0..query.len()).rev().find_map(|start| {
            let bytes = self.matches(&query[start..])?;
            let end = start + bytes;
            match query.get(end) {
                None => Some(start..end),
                Some(b'&') => Some(start..end + 1),
                Some(_) => None,
            }
        });
        if let Some(range) = found {
            query.drain(range);
        }
    }

    /// Returns the length of the session parameter with which `text` begins.
    fn matches(&self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Value(name, bytes) => {
                let value = text.strip_prefix(*name)?.get(..*bytes)?;
                value.iter().all(u8::is_ascii_alphanumeric).then_some(name.len() + bytes)
            }
            Self::Asp => {
                let rest = text.strip_prefix(b"aspsessionid")?.get(..33)?;
                let (letters, value) = rest.split_at(8);
                let value = value.strip_prefix(b"=")?;
                let plain = letters.iter().chain(value).all(u8::is_ascii_alphabetic);
                plain.then_some(12 + 33)
            }
            Self::ColdFusion => {
                let id = until_ampersand(text.strip_prefix(b"cfid=")?)?;
                let rest = text[5 + id..].strip_prefix(b"&cftoken=")?;
                Some(5 + id + 9 + until_ampersand(rest)?)
            }
        }
    }
}

/// Returns the length of the text before the next `&`; `None` if it is empty.
fn until_ampersand(text: &[u8]) -> Option<usize> {
    let bytes = memchr::memchr(b'&', text).unwrap_or(text.len());
    (bytes > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(url: &str) -> String {
        let mut out = Vec::new();
        Surt::default().push(&mut out, url);
        String::from_utf8(out).expect("keys are ASCII")
    }

    /// The expected values are the output of `surt` 0.3.1.
    #[test]
    fn keys_as_replay_tools_make_them() {
        let cases = [
            ("http://example.com/", "com,example)/"),
            ("https://www.example.com/", "com,example)/"),
            ("http://www2.example.com/", "com,example)/"),
            ("http://wwwx.example.com/", "com,example,wwwx)/"),
            ("http://example.com:80/", "com,example)/"),
            ("https://example.com:80/", "com,example:80)/"),
            ("https://example.com:8443/a", "com,example:8443)/a"),
            ("http://user:pass@example.com/a", "com,example)/a"),
            ("http://127.0.0.1:8080/x", "1,0,0,127:8080)/x"),
            ("http://example.com/A/B/", "com,example)/a/b"),
            ("http://example.com/a//b/../c/./d", "com,example)/a/c/d"),
            ("http://example.com/%41%2fb%2523?Q=%41", "com,example)/a/b%23?q=a"),
            ("http://example.com/a%20b", "com,example)/a%20b"),
            ("http://example.com/%C3%A9", "com,example)/%c3%a9"),
            ("http://example.com/?", "com,example)/"),
            ("http://example.com?q=1", "com,example)/?q=1"),
            ("http://example.com/?b=2&a=1&a&a=", "com,example)/?a&a=&a=1&b=2"),
            (
                "http://example.com/x?a=1&PHPSESSID=0123456789abcdefghijklemopqrstuv&b=2",
                "com,example)/x?a=1&b=2",
            ),
            ("http://example.com/x?jsessionid=0123456789abcdefghijklemopqrstuv", "com,example)/x"),
            ("http://example.com/x?cfid=1&cftoken=2&z=3", "com,example)/x?z=3"),
            ("http://example.com/..", "com,example)/.."),
        ];
        for (url, expected) in cases {
            assert_eq!(key(url), expected, "{url}");
        }
    }

    #[test]
    fn ipv6_hosts_lose_their_brackets() {
        assert_eq!(key("http://[::1]:8080/a"), "::1:8080)/a");
    }

    /// Law: for any URL the key is one visible word; nested escapes cost one pass.
    #[test]
    fn keys_of_anything_are_visible_ascii() {
        let mut random = super::super::warc::Ids::new(5);
        let alphabet = b"ab%2541/.?&=#:@[] \t\n\0\xc3\xa9wW";
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.word() % 40)
                .map(|_| alphabet[random.word() as usize % alphabet.len()])
                .collect();
            let url = format!("http://{}", String::from_utf8_lossy(&bytes));
            let key = key(&url);
            assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{url:?} {key:?}");
        }
        assert_eq!(key(&format!("http://a/%{}41", "25".repeat(100_000))), "a)/a");
    }
}
