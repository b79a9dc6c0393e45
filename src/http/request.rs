//! Writes requests: one line that differs, and a block of fields that is always the same.
//!
//! [`Fixed`] is validated and rendered once a crawl, so a request is three short copies. `Host`
//! comes first (RFC 9110 section 7.2). There is no `Connection` field, because persistence is the
//! default of HTTP/1.1 (RFC 9112 section 9.3).
//!
//! Law: with everything that [`Fixed::new`] accepts, the bytes are exactly one request. Line ends,
//! control characters and the fields that frame a message can't get in.
//! Cost: no allocation besides the growth of `out`.
//! Source: RFC 9110 sections 5.5, 5.6.2 and 12.5; RFC 9112 section 3.

use super::coding::Coding;
use super::date;
use smallvec::SmallVec;
use std::fmt;

/// The value of the `Accept` field, unless the operator adds another one.
const ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// Fields that the operator can't add: they frame messages, manage connections, or have a setting
/// of their own.
const RESERVED: [&str; 12] = [
    "host",
    "user-agent",
    "from",
    "accept-encoding",
    "connection",
    "keep-alive",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

/// The fields that are the same in every request, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The bytes from the end of the Host line to the blank line, both included.
    block: Vec<u8>,
    /// The operator's own cookies, which are sent in one field with those of a redirect chain.
    cookies: Option<String>,
}

/// The error for a field that may not be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadField {
    /// The name of the field.
    pub name: String,
    /// What is wrong with the field.
    pub reason: &'static str,
}

impl fmt::Display for BadField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request field {:?}: {}", self.name, self.reason)
    }
}

impl std::error::Error for BadField {}

impl Fixed {
    /// Renders the fields: `agent` for User-Agent, `from` (a mail address), the accepted `codings`
    /// (the preferred one first), and `extra` fields. An extra `Accept` replaces the default.
    ///
    /// # Errors
    /// Returns the first field whose name or value is invalid, or which the crawler sets itself.
    pub fn new(
        agent: &str,
        from: Option<&str>,
        codings: &[Coding],
        extra: &[(String, String)],
    ) -> Result<Self, BadField> {
        let (mut block, mut cookies) = (b"\r\n".to_vec(), None);
        push_field(&mut block, "User-Agent", agent)?;
        if let Some(from) = from {
            push_field(&mut block, "From", from)?;
        }
        if !extra.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept")) {
            push_field(&mut block, "Accept", ACCEPT)?;
        }
        push_field(&mut block, "Accept-Encoding", &accepted(codings))?;
        for (name, value) in extra {
            if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
                return Err(bad(name, "is set by the crawler itself"));
            }
            // This field is written before the others: see write_get.
            let mut own = Vec::new();
            let is_cookie = name.eq_ignore_ascii_case("cookie");
            push_field(if is_cookie { &mut own } else { &mut block }, name, value)?;
            if is_cookie {
                let before = cookies.map(|before: String| before + "; ").unwrap_or_default();
                cookies = Some(before + value);
            }
        }
        block.extend_from_slice(b"\r\n");
        Ok(Self { block, cookies })
    }

    /// Appends a GET for `target` (path and query, beginning with `/`) to `out`. `authority` is the
    /// host, and the port unless it is the scheme's default. `own` is what else this request has.
    ///
    /// # Panics
    /// Panics if target or host contain white space or control characters, which canonical URLs
    /// don't, or if the cookies contain control characters.
    pub fn write_get(&self, out: &mut Vec<u8>, target: &str, authority: &str, own: &Own<'_>) {
        let Own { cookies, conditions, signature } = own;
        assert!(target.starts_with('/') && is_visible(target), "a canonical path: {target:?}");
        assert!(!authority.is_empty() && is_visible(authority), "a host: {authority:?}");
        out.reserve(target.len() + authority.len() + self.block.len() + 32);
        out.extend_from_slice(b"GET ");
        out.extend_from_slice(target.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        out.extend_from_slice(authority.as_bytes());
        let all = [self.cookies.as_deref().map(str::as_bytes), *cookies];
        for (place, cookies) in all.into_iter().flatten().enumerate() {
            let is_clean = |byte: &u8| !byte.is_ascii_control() || *byte == b'\t';
            assert!(cookies.iter().all(is_clean), "clean ones");
            out.extend_from_slice(if place == 0 { b"\r\nCookie: " } else { b"; " });
            out.extend_from_slice(cookies);
        }
        if !conditions.etag.is_empty() {
            assert!(is_field(&conditions.etag), "a value of a field");
            out.extend_from_slice(b"\r\nIf-None-Match: ");
            out.extend_from_slice(&conditions.etag);
        }
        if let Some(modified) = conditions.modified {
            out.extend_from_slice(b"\r\nIf-Modified-Since: ");
            out.extend_from_slice(date::of_seconds(modified).as_bytes());
        }
        out.extend_from_slice(signature.unwrap_or_default().as_bytes());
        out.extend_from_slice(&self.block);
    }
}

/// What a request has besides its URL and the fields that are the same in all.
#[derive(Clone, Debug, Default)]
pub struct Own<'a> {
    /// Cookies, which are sent with the operator's own.
    pub cookies: Option<&'a [u8]>,
    /// They ask for the page only if it isn't what the client has.
    pub conditions: Conditions,
    /// The fields of a signature, each after a line end.
    pub signature: Option<&'a str>,
}

/// What a client has of a page: it is sent only if it is another (RFC 9110, section 13.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The ETag field as received; empty if there was none.
    pub etag: SmallVec<[u8; 40]>,
    /// The Last-Modified field, in seconds since 1970; `None` if there was none.
    pub modified: Option<u32>,
}

impl Conditions {
    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.etag.is_empty() && self.modified.is_none()
    }
}

/// Returns whether bytes can be sent as the value of a field: none is a control character.
pub fn is_field(value: &[u8]) -> bool {
    value.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t')
}

fn accepted(codings: &[Coding]) -> String {
    if codings.is_empty() {
        // If the field were missing, a server might choose any coding (RFC 9110 section 12.5.3).
        return "identity".to_owned();
    }
    codings.iter().map(|coding| coding.name()).collect::<Vec<_>>().join(", ")
}

fn push_field(block: &mut Vec<u8>, name: &str, value: &str) -> Result<(), BadField> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(bad(name, "the name must be a token: letters, digits and -_.!#$%&'*+^`|~"));
    }
    if value.is_empty() || value.trim() != value {
        return Err(bad(name, "the value must not be empty, nor begin or end with white space"));
    }
    if value.chars().any(|char| char.is_control() && char != '\t') {
        return Err(bad(name, "the value must not hold line ends or control characters"));
    }
    for piece in [name, ": ", value, "\r\n"] {
        block.extend_from_slice(piece.as_bytes());
    }
    Ok(())
}

fn bad(name: &str, reason: &'static str) -> BadField {
    BadField { name: name.to_owned(), reason }
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte > b' ' && byte != 0x7f)
}

/// Returns whether a byte may be part of a token (RFC 9110 section 5.6.2, `tchar`).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extra(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    #[test]
    fn the_bytes_of_a_request() {
        let agent = "sted/1 (+https://example.org/bot)";
        let fixed = Fixed::new(
            agent,
            Some("bot@example.org"),
            &[Coding::Gzip, Coding::Brotli],
            &extra("Accept-Language", "en, *;q=0.5"),
        )
        .expect("plain fields");
        let mut out = Vec::new();
        fixed.write_get(&mut out, "/a?b=c", "example.com:8080", &Own::default());
        let expected = "GET /a?b=c HTTP/1.1\r\nHost: example.com:8080\r\n\
             User-Agent: sted/1 (+https://example.org/bot)\r\nFrom: bot@example.org\r\n\
             Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
             Accept-Encoding: gzip, br\r\nAccept-Language: en, *;q=0.5\r\n\r\n";
        assert_eq!(String::from_utf8(out.clone()).expect("ASCII"), expected);

        // Requests are appended to one buffer, to be sent at once.
        let one = out.len();
        fixed.write_get(&mut out, "/a?b=c", "example.com:8080", &Own::default());
        assert_eq!(out.len(), 2 * one);
        assert_eq!(out[..one], out[one..]);
    }

    #[test]
    fn requests_parse_as_what_was_asked() {
        let fixed = Fixed::new("a", None, &[], &extra("Accept", "text/plain")).expect("plain");
        let mut out = Vec::new();
        fixed.write_get(&mut out, "/", "h", &Own::default());
        let mut fields = [httparse::EMPTY_HEADER; 8];
        let mut request = httparse::Request::new(&mut fields);
        assert_eq!(request.parse(&out), Ok(httparse::Status::Complete(out.len())));
        assert_eq!((request.method, request.path), (Some("GET"), Some("/")));
        let told: Vec<_> = request.headers.iter().map(|field| (field.name, field.value)).collect();
        let expected: [(&str, &[u8]); 4] = [
            ("Host", b"h"),
            ("User-Agent", b"a"),
            ("Accept-Encoding", b"identity"),
            ("Accept", b"text/plain"),
        ];
        assert_eq!(told, expected);
    }

    /// RFC 9110, sections 13.1.2 and 13.1.3.
    #[test]
    fn conditions_are_fields() {
        let fixed = Fixed::new("a", None, &[], &[]).expect("plain");
        let conditions =
            Conditions { etag: SmallVec::from_slice(b"W/\"x\""), modified: Some(784_111_777) };
        let mut out = Vec::new();
        let own = Own { cookies: Some(b"k=1"), conditions, signature: Some("\r\nSignature: s") };
        fixed.write_get(&mut out, "/", "h", &own);
        let text = String::from_utf8(out).expect("ASCII");
        let expected = "GET / HTTP/1.1\r\nHost: h\r\nCookie: k=1\r\nIf-None-Match: W/\"x\"\r\n\
                        If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\nSignature: s\r\n\
                        User-Agent: a\r\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(is_field(b"\"a\tb\xe9\"") && !is_field(b"\"a\r\nX: y\"") && !is_field(b"\x7f"));
    }

    /// RFC 6265bis 5.8.1: all cookies are sent in one Cookie field, whatever their source.
    #[test]
    fn cookies_are_one_field() {
        let own = |name| Fixed::new("a", None, &[], &extra(name, "own=1")).expect("plain");
        type Case = (&'static str, Option<&'static [u8]>, Option<&'static [u8]>);
        let cases: [Case; 5] = [
            ("X", None, None),
            ("X", Some(b"k=2; l=3"), Some(b"k=2; l=3")),
            ("X", Some(b"u=caf\xe9; flag"), Some(b"u=caf\xe9; flag")),
            ("cookie", None, Some(b"own=1")),
            ("Cookie", Some(b"k=2"), Some(b"own=1; k=2")),
        ];
        for (name, cookies, expected) in cases {
            let mut out = Vec::new();
            let all = Own { cookies, ..Own::default() };
            own(name).write_get(&mut out, "/", "h", &all);
            let mut fields = [httparse::EMPTY_HEADER; 8];
            let mut request = httparse::Request::new(&mut fields);
            assert_eq!(request.parse(&out), Ok(httparse::Status::Complete(out.len())));
            let mut sent = request.headers.iter().filter(|field| field.name == "Cookie");
            assert_eq!(sent.next().map(|field| field.value), expected);
            assert!(sent.next().is_none(), "one field");
        }
    }

    #[test]
    fn fields_that_are_refused() {
        let cases = [
            ("X", "a\r\nHost: other", "RFC 9110 5.5: CR and LF would begin another field"),
            ("X", "a\nb", "RFC 9110 5.5: LF alone as well"),
            ("X", "a\0b", "RFC 9110 5.5: NUL"),
            ("X", "a\u{7f}", "RFC 9110 5.5: DEL is a control character"),
            ("X", " a", "RFC 9110 5.5: no white space around a value"),
            ("X", "", "an empty field is a mistake in the config"),
            ("", "a", "RFC 9110 5.1: a name is a token"),
            ("X Y", "a", "RFC 9110 5.1: no space in a name"),
            ("X:", "a", "RFC 9110 5.1: no colon in a name"),
            ("host", "a", "RFC 9110 7.2: exactly one Host"),
            ("Content-Length", "1", "RFC 9112 6.3: would announce a body"),
            ("Transfer-Encoding", "chunked", "RFC 9112 6.3: would announce a body"),
            ("Connection", "close", "persistence is the crawler's business"),
        ];
        for (name, value, why) in cases {
            let refused = Fixed::new("agent", None, &[], &extra(name, value));
            assert_eq!(refused.expect_err(why).name, name, "{why}");
        }
        assert!(Fixed::new("a\r\nb: c", None, &[], &[]).is_err());
        assert!(Fixed::new("a", Some("b\n"), &[], &[]).is_err());
    }
}
