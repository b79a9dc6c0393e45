//! Parses requests as the crawler under test writes them: the few fields that matter to a server.
//!
//! The crawler's requests are GETs without a body; anything else is an error of the engine and gets
//! an empty path. Source: RFC 9112, sections 2 and 3.

use memchr::{memchr, memmem};

/// The head of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Request<'a> {
    /// Path and query.
    pub(super) path: &'a str,
    /// The host's name, without its port.
    pub(super) host: &'a str,
    pub(super) accept_encoding: &'a str,
    /// The value of the field Authorization; empty if there is none.
    pub(super) authorization: &'a str,
    /// The value of the field If-None-Match; empty if there is none.
    pub(super) none_match: &'a str,
    /// The value of the field If-Modified-Since; empty if there is none.
    pub(super) modified_since: &'a str,
    /// The whole head.
    pub(super) head_bytes: &'a [u8],
}

/// Parses the request at the front of `bytes`; returns it with its length, `None` if it is
/// incomplete. A malformed head becomes a request for the empty path.
pub(super) fn parse(bytes: &[u8]) -> Option<(Request<'_>, usize)> {
    let end = memmem::find(bytes, b"\r\n\r\n")? + 4;
    let mut request = Request { head_bytes: &bytes[..end], ..Request::default() };
    let head = std::str::from_utf8(&bytes[..end - 2]).unwrap_or("");
    let mut lines = Lines(head);
    if let Some(line) = lines.next()
        && let Some(rest) = line.strip_prefix("GET ")
        && let Some(path) = rest.strip_suffix(" HTTP/1.1")
    {
        request.path = path;
    }
    for line in lines {
        if let Some(authority) = line.strip_prefix("Host: ") {
            let name = memchr(b':', authority.as_bytes()).unwrap_or(authority.len());
            request.host = &authority[..name];
        } else if let Some(list) = line.strip_prefix("Accept-Encoding: ") {
            request.accept_encoding = list;
        } else if let Some(value) = line.strip_prefix("Authorization: ") {
            request.authorization = value;
        } else if let Some(value) = line.strip_prefix("If-None-Match: ") {
            request.none_match = value;
        } else if let Some(value) = line.strip_prefix("If-Modified-Since: ") {
            request.modified_since = value;
        }
    }
    Some((request, end))
}

/// Whether `list`, a list of content codings separated by commas, contains `coding`.
pub(super) fn accepts(list: &str, coding: &str) -> bool {
    list.split(',').any(|item| item.trim_ascii().eq_ignore_ascii_case(coding))
}

/// Iterates over lines that end in CR LF.
struct Lines<'a>(&'a str);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let end = memchr(b'\n', self.0.as_bytes())?;
        let line = self.0[..end].trim_end_matches('\r');
        self.0 = &self.0[end + 1..];
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_one_after_the_other() {
        let one = "GET /a?b HTTP/1.1\r\nHost: h0001.test:8080\r\nUser-Agent: x\r\n\
                   Accept-Encoding: br, gzip\r\n\r\n";
        let stream = [one, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "POST /x HTTP/1.1\r\n\r\n"];
        let text = stream.concat();
        for cut in 0..one.len() {
            assert_eq!(parse(&text.as_bytes()[..cut]), None, "cut at {cut}");
        }
        let (first, used) = parse(text.as_bytes()).unwrap();
        assert_eq!((first.path, first.host, used), ("/a?b", "h0001.test", one.len()));
        assert!(accepts(first.accept_encoding, "gzip") && !accepts(first.accept_encoding, "zip"));
        let (second, more) = parse(&text.as_bytes()[used..]).unwrap();
        assert_eq!((second.path, second.host, second.accept_encoding), ("/", "h", ""));
        let (third, _) = parse(&text.as_bytes()[used + more..]).unwrap();
        assert_eq!(third.path, "", "not a request of ours");
        assert_eq!(parse(b"GET /\xff HTTP/1.1\r\n\r\n").unwrap().0.path, "");
    }
}
