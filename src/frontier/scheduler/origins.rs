//! The origins of all servers: their text in one arena, and two hash look-ups to find them.
//!
//! The first server of a host is indexed by its host, all others of that host by their origin. So
//! most look-ups are one probe, the host group of a new server is found without a table of hosts,
//! and a host with a server on each of its ports makes no probe sequence long.
//!
//! Laws: no text moves or is copied; every origin added is found (tested against a map). Cost: the
//! bytes of the text, 8 for its place, and a slot of the index.

use super::index::Index;
use super::state::ServerId;
use crate::ground::table::Table;
use crate::url::UrlRef;

/// The place of an origin's text: its offset in the arena, and its length in the lower 16 bits.
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

/// The origins of all servers.
#[derive(Debug)]
pub(super) struct Origins {
    chunks: Vec<String>,
    /// Where the origin of each server is, by number.
    names: Table<Name>,
    index: Index,
}

/// Bytes of one allocation; the longest origin is a sixteenth of this.
const CHUNK_BYTES: usize = 1 << 20;

impl Origins {
    pub(super) fn new(seed: u64) -> Self {
        Self { chunks: Vec::new(), names: Table::default(), index: Index::new(seed) }
    }

    /// The origin of a server.
    pub(super) fn get(&self, id: ServerId) -> Origin<'_> {
        let name = self.names[id.index()];
        let (chunk, from) = (name.offset() / CHUNK_BYTES, name.offset() % CHUNK_BYTES);
        Origin(&self.chunks[chunk][from..][..name.len()])
    }

    /// Looks for the server of a URL; if it is new, for the first server of its host.
    ///
    /// # Errors
    /// The server is new: the first server of its host, if there is one.
    pub(super) fn find(&self, url: UrlRef<'_>) -> Result<ServerId, Option<ServerId>> {
        let (origin, host) = (url.origin(), url.host());
        let of = |number| self.get(ServerId(number));
        let first = self.index.find(self.index.hash(host.as_bytes()), |number| {
            // Most hosts have one server: whether it is the one is known without its host.
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

    /// The hash of the host of a URL.
    pub(super) fn hash(&self, url: UrlRef<'_>) -> u64 {
        self.index.hash(url.host().as_bytes())
    }

    /// The first server of a host with this hash; hosts of equal hashes are mistaken for another.
    pub(super) fn guess(&self, hash: u64) -> Option<ServerId> {
        self.index.find(hash, |_| true).map(ServerId)
    }

    /// Adds the origin of the next server.
    pub(super) fn add(&mut self, url: UrlRef<'_>, has_sibling: bool) {
        let id = ServerId::from_index(self.names.len());
        let key = if has_sibling { url.origin() } else { url.host() };
        self.index.insert(self.index.hash(key.as_bytes()), id.0);
        let origin = url.origin();
        if self.chunks.last().is_none_or(|last| last.len() + origin.len() > CHUNK_BYTES) {
            // The first allocation grows on demand: most crawls have few servers.
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

/// An origin: `scheme://host[:port]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a>(&'a str);

impl<'a> Origin<'a> {
    /// Its text.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Whether its scheme is https; otherwise it is http.
    pub fn is_https(self) -> bool {
        self.0.as_bytes().get(4) == Some(&b's')
    }

    /// `host` or `host:port`, as in a Host field.
    pub fn authority(self) -> &'a str {
        let scheme = if self.is_https() { "https://" } else { "http://" };
        &self.0[scheme.len()..]
    }

    /// Its host as written in URLs: lower case, IPv6 in brackets.
    pub fn host(self) -> &'a str {
        &self.authority()[..self.host_bytes()]
    }

    /// The port to connect to, written or implied.
    pub fn port(self) -> u16 {
        let implied = if self.is_https() { 443 } else { 80 };
        let written = self.authority()[self.host_bytes()..].strip_prefix(':');
        written.and_then(|digits| digits.parse().ok()).unwrap_or(implied)
    }

    /// The URL of a request target at this origin.
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
