//! The origins of all servers. Their text is kept in one arena; at most two hash look-ups find a
//! server by its origin.
//!
//! The first known server of a host is indexed by its host. All other servers of that host, its
//! *siblings*, are indexed by their origin. So most look-ups are one probe, the host group of a new
//! server is found without a table of hosts, and a host with servers on many ports makes no probe
//! sequence long.
//!
//! Laws: no text is moved or copied; every origin that was added is found (tested against a map).
//! Cost: the bytes of the text, 8 bytes for its place, and a slot of the index.

use super::index::Index;
use super::state::ServerId;
use crate::ground::table::Table;
use crate::url::UrlRef;

/// The place of an origin's text. The upper 48 bits are its offset in the arena, the lower 16 bits
/// its length in bytes.
#[derive(Clone, Copy, Debug)]
struct Name(u64);

impl Name {
    fn len(self) -> usize {
        usize::from(self.0 as u16)
    }

    fn offset(self) -> usize {
        (self.0 >> 16) as usize
    }
}

/// The origins of all servers, with the index that finds them.
#[derive(Debug)]
pub(super) struct Origins {
    chunks: Vec<String>,
    /// The place of the text of each server's origin. The index is the number of the server.
    names: Table<Name>,
    index: Index,
}

/// The number of bytes of one allocation of the arena. The longest origin is a sixteenth of it.
const CHUNK_BYTES: usize = 1 << 20;

impl Origins {
    pub(super) fn new(seed: u64) -> Self {
        Self { chunks: Vec::new(), names: Table::default(), index: Index::new(seed) }
    }

    /// Returns the origin of a server.
    pub(super) fn get(&self, id: ServerId) -> Origin<'_> {
        let name = self.names[id.index()];
        let (chunk, from) = (name.offset() / CHUNK_BYTES, name.offset() % CHUNK_BYTES);
        Origin(&self.chunks[chunk][from..][..name.len()])
    }

    /// Returns the server of a URL.
    ///
    /// # Errors
    /// The server is not known. The error is the first known server of the same host, or `None` if
    /// the host has no known server.
    pub(super) fn find(&self, url: UrlRef<'_>) -> Result<ServerId, Option<ServerId>> {
        let (origin, host) = (url.origin(), url.host());
        let of = |number| self.get(ServerId(number));
        let first = self.index.find(self.index.hash(host.as_bytes()), |number| {
            // Most hosts have one server. If its origin equals that of the URL, the host need not
            // be computed.
            of(number).0 == origin || of(number).host() == host
        });
        let first = first.ok_or(None)?;
        if of(first).0 == origin {
            return Ok(ServerId(first));
        }
        let found =
            self.index.find(self.index.hash(origin.as_bytes()), |number| of(number).0 == origin);
        found.map(ServerId).ok_or(Some(ServerId(first)))
    }

    /// Returns the hash of the host of a URL.
    pub(super) fn hash(&self, url: UrlRef<'_>) -> u64 {
        self.index.hash(url.host().as_bytes())
    }

    /// Returns the first known server of a host with this hash, or `None`. Since no names are
    /// compared, it may be a server of another host with the same hash.
    pub(super) fn guess(&self, hash: u64) -> Option<ServerId> {
        self.index.find(hash, |_| true).map(ServerId)
    }

    /// Adds the origin of the server that gets the next number. `has_sibling` is whether a server
    /// of the same host has been added before.
    pub(super) fn add(&mut self, url: UrlRef<'_>, has_sibling: bool) {
        let id = ServerId::from_index(self.names.len());
        let key = if has_sibling { url.origin() } else { url.host() };
        self.index.insert(self.index.hash(key.as_bytes()), id.0);
        let origin = url.origin();
        if self.chunks.last().is_none_or(|last| last.len() + origin.len() > CHUNK_BYTES) {
            // The first allocation grows on demand, since most crawls have few servers.
            let room = if self.chunks.is_empty() { 0 } else { CHUNK_BYTES };
            self.chunks.push(String::with_capacity(room));
        }
        let chunk = self.chunks.len() - 1;
        let last = &mut self.chunks[chunk];
        let offset = (chunk * CHUNK_BYTES + last.len()) as u64;
        last.push_str(origin);
        let len = u16::try_from(origin.len()).expect("no URL is longer");
        self.names.push(Name(offset << 16 | u64::from(len)));
    }
}

/// The origin of a server, as text: `scheme://host[:port]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a>(&'a str);

impl<'a> Origin<'a> {
    /// Returns the text of the origin.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Returns whether the scheme is https; otherwise it is http.
    pub fn is_https(self) -> bool {
        self.0.as_bytes().get(4) == Some(&b's')
    }

    /// Returns `host` or `host:port`, as in a Host header field.
    pub fn authority(self) -> &'a str {
        let scheme = if self.is_https() { "https://" } else { "http://" };
        &self.0[scheme.len()..]
    }

    /// Returns the host as written in URLs: in lower case, an IPv6 address in brackets.
    pub fn host(self) -> &'a str {
        &self.authority()[..self.host_bytes()]
    }

    /// Returns the port to connect to: the one in the text, or the default port of the scheme.
    pub fn port(self) -> u16 {
        let implied = if self.is_https() { 443 } else { 80 };
        let written = self.authority()[self.host_bytes()..].strip_prefix(':');
        written.and_then(|digits| digits.parse().ok()).unwrap_or(implied)
    }

    /// Returns the URL of a request target (path and query) at this origin, as text.
    pub fn url_of(self, target: &str) -> String {
        [self.0, target].concat()
    }

    fn host_bytes(self) -> usize {
        let authority = self.authority().as_bytes();
        let from = memchr::memchr(b']', authority).unwrap_or(0);
        memchr::memchr(b':', &authority[from..]).map_or(authority.len(), |colon| from + colon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: the parts of an origin are those of the URL that it was taken from.
    #[test]
    fn parts_of_an_origin_are_those_of_its_url() {
        let cases = [
            "http://a.test/",
            "https://a.test/x?y:z",
            "http://a.test:8080/]",
            "https://a.b.c.test:80/",
            "http://[2001:db8::1]/",
            "https://[::1]:8443/a:1",
            "http://192.0.2.7:1/",
            "http://s/",
            "http://shttps:65535/",
        ];
        for text in cases {
            let url = UrlRef::from_canonical(text.as_bytes()).expect("canonical");
            let origin = Origin(url.origin());
            assert_eq!(origin.as_str(), url.origin());
            assert_eq!(origin.is_https(), url.is_https(), "{text}");
            assert_eq!(origin.authority(), url.authority(), "{text}");
            assert_eq!(origin.host(), url.host(), "{text}");
            assert_eq!(origin.port(), url.port(), "{text}");
            assert_eq!(origin.url_of(url.target()), text);
        }
    }
}
