//! Names of servers: their origins in one arena, found by host and by origin.
//!
//! The first server of a host is filed under the hash of its host, all others under that of their
//! origin. So most look-ups are one probe, a server's siblings are found without a table of hosts,
//! and a host with a server on each of its ports makes no probe longer.
//!
//! Laws: no name moves or is copied; a name filed is found (held to a map, in the frontier's
//! tests). Cost: a name's bytes once, nine with its place, and a slot of the index.

use super::index::Index;
use super::server::{Server, ServerId};
use crate::url::UrlRef;

/// Where a name lies: offset in the arena, and length in the lower 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name(u64);

impl Name {
    /// How long it is, without a look at it.
    pub(super) fn len(self) -> usize {
        usize::from(self.0 as u16)
    }

    fn offset(self) -> usize {
        (self.0 >> 16) as usize
    }
}

/// All names.
#[derive(Debug)]
pub(super) struct Names {
    chunks: Vec<String>,
    index: Index,
}

/// What is known of the name of a URL's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// The server itself.
    Known(ServerId),
    /// The first server of its host.
    Sibling(ServerId),
    /// Nothing.
    New,
}

/// The longest name is a sixteenth of this.
const CHUNK_BYTES: usize = 1 << 20;

impl Names {
    pub(super) fn new(seed: u64) -> Self {
        Self { chunks: Vec::new(), index: Index::new(seed) }
    }

    /// The origin of that name.
    pub(super) fn get(&self, name: Name) -> Origin<'_> {
        let (chunk, from) = (name.offset() / CHUNK_BYTES, name.offset() % CHUNK_BYTES);
        Origin(&self.chunks[chunk][from..][..name.len()])
    }

    /// The bytes of a name, which are not looked at.
    pub(super) fn bytes(&self, name: Name) -> &[u8] {
        let (chunk, from) = (name.offset() / CHUNK_BYTES, name.offset() % CHUNK_BYTES);
        &self.chunks[chunk].as_bytes()[from..][..name.len()]
    }

    /// Under what the server of a URL is looked for first.
    pub(super) fn hash(&self, url: UrlRef<'_>) -> u64 {
        self.index.hash(url.host().as_bytes())
    }

    /// Where the search for that begins.
    pub(super) fn home(&self, hash: u64) -> Option<&u64> {
        self.index.home(hash)
    }

    /// The first server that is filed under these bits, most likely the one: no name is looked at.
    pub(super) fn guess(&self, hash: u64) -> Option<ServerId> {
        self.index.find(hash, |_| true).map(ServerId)
    }

    /// Looks for the server of a URL among `servers`.
    pub(super) fn find<'a>(&self, url: UrlRef<'_>, server: impl Fn(u32) -> &'a Server) -> Met {
        let (origin, host) = (url.origin(), url.host());
        let mut sibling = None;
        let found = self.index.find(self.index.hash(host.as_bytes()), |number| {
            let other = self.get(server(number).name);
            let is_known = other.0 == origin;
            if !is_known && other.host() == host {
                sibling = Some(ServerId(number));
            }
            is_known || sibling.is_some()
        });
        match (found, sibling) {
            (None, _) => Met::New,
            (Some(number), None) => Met::Known(ServerId(number)),
            (_, Some(sibling)) => {
                let is = |number| self.get(server(number).name).0 == origin;
                let found = self.index.find(self.index.hash(origin.as_bytes()), is);
                found.map_or(Met::Sibling(sibling), |number| Met::Known(ServerId(number)))
            }
        }
    }

    /// Writes down the name of a new server.
    pub(super) fn add(&mut self, url: UrlRef<'_>, id: ServerId, has_sibling: bool) -> Name {
        let key = if has_sibling { url.origin() } else { url.host() };
        self.index.insert(self.index.hash(key.as_bytes()), id.0);
        let origin = url.origin();
        if self.chunks.last().is_none_or(|last| last.len() + origin.len() > CHUNK_BYTES) {
            // The first one grows as it must: most crawls have few names.
            let room = if self.chunks.is_empty() { 0 } else { CHUNK_BYTES };
            self.chunks.push(String::with_capacity(room));
        }
        let chunk = self.chunks.len() - 1;
        let last = &mut self.chunks[chunk];
        let offset = (chunk * CHUNK_BYTES + last.len()) as u64;
        last.push_str(origin);
        let len = u16::try_from(origin.len()).expect("no URL is longer");
        Name(offset << 16 | u64::from(len))
    }
}

/// The name of a server: `scheme://host[:port]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a>(&'a str);

impl<'a> Origin<'a> {
    /// The whole of it.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Whether the scheme is https; else it is http.
    pub fn is_https(self) -> bool {
        self.0.as_bytes().get(4) == Some(&b's')
    }

    /// `host` or `host:port`, as the Host field has it.
    pub fn authority(self) -> &'a str {
        let scheme = if self.is_https() { "https://" } else { "http://" };
        &self.0[scheme.len()..]
    }

    /// Host as written in URLs: lower case, IPv6 in brackets.
    pub fn host(self) -> &'a str {
        &self.authority()[..self.host_bytes()]
    }

    /// Port to connect to, written or implied.
    pub fn port(self) -> u16 {
        let implied = if self.is_https() { 443 } else { 80 };
        let written = self.authority()[self.host_bytes()..].strip_prefix(':');
        written.and_then(|digits| digits.parse().ok()).unwrap_or(implied)
    }

    /// The URL of a target on this server.
    pub fn url_of(self, target: &str) -> String {
        let mut url = String::with_capacity(self.0.len() + target.len());
        url.push_str(self.0);
        url.push_str(target);
        url
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

    /// An origin says what the URL it was taken from says.
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
