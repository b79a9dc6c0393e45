//! Parses requests of any client: GET and HEAD, pipelined or not, with the few fields that matter.
//!
//! It is lenient where clients differ, and strict where guessing could lose the boundary between
//! two requests (a request with a body is refused). Source: RFC 9112, sections 2 and 3.

use memchr::{memchr, memmem};

/// The longest head that is accepted, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The head of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Request<'a> {
    /// Whether the method is HEAD; else it is GET.
    pub(super) head: bool,
    /// Path and query; the origin of an absolute target is removed.
    pub(super) path: &'a [u8],
    /// The Host field or the target's authority, with its port; empty if there is neither.
    pub(super) host: &'a [u8],
    /// Whether the version is HTTP/1.0; else it is HTTP/1.1.
    pub(super) http10: bool,
    /// Whether the connection ends after the reply: the client asks for that, or it uses HTTP/1.0
    /// without keep-alive.
    pub(super) close: bool,
    pub(super) accept_encoding: &'a [u8],
    /// The value of the field If-None-Match; empty if there is none.
    pub(super) none_match: &'a [u8],
    /// The value of the field If-Modified-Since; empty if there is none.
    pub(super) modified_since: &'a [u8],
    /// The whole head.
    pub(super) head_bytes: &'a [u8],
}

/// The result of parsing the front of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// A request, and its length in bytes.
    Whole(Request<'a>, usize),
    /// An incomplete request.
    Partial,
    /// Bytes that are no request that can be answered, and the HTTP status to refuse them with.
    Bad(u16),
}

/// Parses the request at the front of `bytes`.
pub(super) fn parse(bytes: &[u8]) -> Parsed<'_> {
    // Some clients send an extra empty line between requests (RFC 9112, section 2.2).
    let blank = bytes.iter().take_while(|byte| b"\r\n".contains(byte)).count();
    if blank > 4 {
        return Parsed::Bad(400);
    }
    let rest = &bytes[blank..];
    // Refused at once: a client of another protocol may send only a greeting and then wait.
    if rest.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
        return Parsed::Bad(400);
    }
    let Some(end) = memmem::find(rest, b"\r\n\r\n") else {
        let long = rest.len() >= HEAD_BYTES_MAX;
        return if long { Parsed::Bad(431) } else { Parsed::Partial };
    };
    if end > HEAD_BYTES_MAX {
        return Parsed::Bad(431);
    }
    match parse_head(&rest[..end + 2]) {
        Ok(request) => {
            let request = Request { head_bytes: &rest[..end + 4], ..request };
            Parsed::Whole(request, blank + end + 4)
        }
        Err(status) => Parsed::Bad(status),
    }
}

/// Parses a request's head, given with the line end of its last line but without the empty line
/// behind that. The error is the HTTP status to refuse the request with.
fn parse_head(head: &[u8]) -> Result<Request<'_>, u16> {
    let (line, mut fields) = split_line(head);
    let mut request = parse_line(line)?;
    let mut keep_alive = false;
    while !fields.is_empty() {
        let (line, rest) = split_line(fields);
        fields = rest;
        // Most fields don't matter, and their first letter shows it.
        let wanted = matches!(
            line.first().map(u8::to_ascii_lowercase),
            Some(b'h' | b'c' | b'a' | b't' | b'i')
        );
        let Some(colon) = memchr(b':', line).filter(|_| wanted) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"host") {
            if request.host.is_empty() {
                request.host = value;
            }
        } else if name.eq_ignore_ascii_case(b"connection") {
            request.close |= has_token(value, b"close");
            keep_alive |= has_token(value, b"keep-alive");
        } else if name.eq_ignore_ascii_case(b"accept-encoding") {
            request.accept_encoding = value;
        } else if name.eq_ignore_ascii_case(b"if-none-match") {
            request.none_match = value;
        } else if name.eq_ignore_ascii_case(b"if-modified-since") {
            request.modified_since = value;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding")
            || (name.eq_ignore_ascii_case(b"content-length") && value != b"0")
        {
            return Err(400);
        }
    }
    request.close |= request.http10 && !keep_alive;
    Ok(request)
}

fn parse_line(line: &[u8]) -> Result<Request<'_>, u16> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (method, target, version, more) = (parts.next(), parts.next(), parts.next(), parts.next());
    let http10 = match (version, more) {
        (Some(b"HTTP/1.1"), None) => false,
        (Some(b"HTTP/1.0"), None) => true,
        _ => return Err(400),
    };
    let head = match method {
        Some(b"GET") => false,
        Some(b"HEAD") => true,
        _ => return Err(405),
    };
    let target = target.unwrap_or_default();
    let (host, path) = split_target(target).ok_or(400_u16)?;
    Ok(Request { head, path, host, http10, ..Request::default() })
}

/// Splits a request target into its authority (empty if the target is only a path) and its path;
/// `None` if it is neither a path nor a URL of http or https.
fn split_target(target: &[u8]) -> Option<(&[u8], &[u8])> {
    if target.starts_with(b"/") {
        return Some((b"", target));
    }
    let rest = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"))?;
    let slash = memchr(b'/', rest).unwrap_or(rest.len());
    let path = if slash == rest.len() { b"/" } else { &rest[slash..] };
    Some((&rest[..slash], path))
}

fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'\n', bytes) {
        Some(end) => (bytes[..end].trim_ascii_end(), &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

/// Whether a comma-separated list has this token; parameters behind a token (`;q=1`) are ignored.
pub(super) fn has_token(list: &[u8], token: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|item| {
        let name = item.split(|byte| *byte == b';').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(token)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::random::Random;

    fn whole(bytes: &[u8]) -> Request<'_> {
        match parse(bytes) {
            Parsed::Whole(request, used) => {
                assert_eq!(used, bytes.len());
                request
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_of_common_clients() {
        let plain = whole(b"GET /p?q=1 HTTP/1.1\r\nHost: h0001.test:8080\r\nUser-Agent: x\r\n\r\n");
        assert_eq!((plain.path, plain.host), (&b"/p?q=1"[..], &b"h0001.test:8080"[..]));
        assert!(!plain.close && !plain.head && !plain.http10);
        let coded = whole(b"HEAD / HTTP/1.1\r\nhost:a\r\naccept-encoding: br;q=1, gzip\r\n\r\n");
        assert!(coded.head && has_token(coded.accept_encoding, b"br"));
        assert!(!has_token(coded.accept_encoding, b"zip"));
        assert!(whole(b"GET / HTTP/1.0\r\n\r\n").close, "RFC 9112 9.3: 1.0 closes");
        assert!(!whole(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").close);
        assert!(whole(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").close);
        let absolute = whole(b"\r\nGET http://a.test/x HTTP/1.1\r\nHost: b.test\r\n\r\n");
        assert_eq!((absolute.host, absolute.path), (&b"a.test"[..], &b"/x"[..]));
    }

    #[test]
    fn what_is_refused() {
        let cases: [(&[u8], u16, &str); 6] = [
            (b"POST / HTTP/1.1\r\n\r\n", 405, "not a method of ours"),
            (b"GET / HTTP/2.0\r\n\r\n", 400, "not a version of ours"),
            (b"GET /a b HTTP/1.1\r\n\r\n", 400, "RFC 9112 3: no blanks in a target"),
            (b"GET * HTTP/1.1\r\n\r\n", 400, "no origin or absolute form"),
            (b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 400, "a body would be misread"),
            (b"\x16\x03\x01\x02\x00", 400, "TLS on a plain port, at once"),
        ];
        for (bytes, status, why) in cases {
            assert_eq!(parse(bytes), Parsed::Bad(status), "{why}");
        }
        assert_eq!(parse(&[b'X'; HEAD_BYTES_MAX]), Parsed::Bad(431));
    }

    #[test]
    fn cuts_give_partial_and_changes_never_panic() {
        let stream = b"GET /a HTTP/1.1\r\nHost: a.test\r\nAccept-Encoding: gzip\r\n\r\n";
        for cut in 0..stream.len() {
            assert_eq!(parse(&stream[..cut]), Parsed::Partial, "cut at {cut}");
        }
        let mut random = Random(1);
        for _ in 0..20_000 {
            let mut bytes = stream.to_vec();
            for _ in 0..3 {
                let at = random.below(bytes.len());
                bytes[at] = random.pick(b"\r\n :,/\0\xffGH");
            }
            if let Parsed::Whole(request, used) = parse(&bytes) {
                assert!(used <= bytes.len() && request.path.starts_with(b"/"));
            }
        }
    }
}
