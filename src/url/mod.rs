//! URLs: one owned, one borrowed, an arena of them for a page, and their fingerprints.
//!
//! A [`Url`] is the form that is fetched: absolute, http or https, serialised as the WHATWG URL
//! standard says, without fragment and without user name and password. It is made by
//! [`canon`] only, so that one spelling stands for one address; the key it is deduplicated by may
//! merge more ([`key`]).
//!
//! Laws: the text is ASCII; it begins with `http://` or `https://` and a host that isn't empty; the
//! default port is never written; the path begins with `/`; parsing the text again gives the same
//! text; no text is longer than [`URL_BYTES_CAP`]. Cost: a [`UrlRef`] is 24 bytes and every part of
//! it is a slice; a [`Url`] is one allocation.
//! Source: WHATWG URL standard, sections 4.3 (serialising) and 4.4 (parsing).

use look::Shape;
use siphasher::sip::SipHasher13;
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub mod canon;
pub mod domain;
pub mod key;
mod look;
pub mod scope;

/// No URL is longer, whatever [`Limits`] say: offsets within it are 16 bits.
pub const URL_BYTES_CAP: usize = 65_535;

/// A reference from a header field as text. If its bytes are not UTF-8, those outside ASCII become
/// percent escapes: the server gets back the bytes that it sent. Browsers do so, too (Chromium
/// escapes a `Location` before it parses it).
pub fn text_of(reference: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(reference) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(3 * reference.len());
    for &byte in reference {
        match byte {
            0..0x80 => text.push(char::from(byte)),
            _ => write!(text, "%{byte:02X}").expect("a string takes all"),
        }
    }
    Cow::Owned(text)
}

/// Bounds on what is accepted as a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest canonical URL, in bytes; at most [`URL_BYTES_CAP`].
    pub url_bytes_max: usize,
}

impl Default for Limits {
    /// As long as a URL can be: what may be crawled is the scope's to say.
    fn default() -> Self {
        Self { url_bytes_max: URL_BYTES_CAP }
    }
}

/// Why a text is not a URL that can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invalid {
    /// Not a URL by the standard.
    Syntax,
    /// A URL, but neither http nor https.
    Scheme,
    /// No host, a host the standard forbids, or one that can't be asked for in the DNS.
    Host,
    /// Not a port, or port 0.
    Port,
    /// Longer than the limit.
    TooLong,
    /// The batch holds as much as it may.
    Full,
}

impl Invalid {
    /// Its name in logs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Scheme => "scheme",
            Self::Host => "host",
            Self::Port => "port",
            Self::TooLong => "too-long",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "not a URL",
            Self::Scheme => "neither http nor https",
            Self::Host => "no host, or not a valid one",
            Self::Port => "not a valid port",
            Self::TooLong => "longer than the limit",
            Self::Full => "too many URLs on one page",
        })
    }
}

/// An owned canonical URL. Equality, order and hash are those of its text.
#[derive(Clone)]
pub struct Url {
    text: Box<str>,
    marks: Marks,
}

impl Url {
    /// The canonical form of an absolute URL, within the default [`Limits`].
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::parse_within(text, Limits::default())
    }

    /// The canonical form of an absolute URL, within `limits`.
    pub fn parse_within(text: &str, limits: Limits) -> Result<Self, Invalid> {
        canon::parse(text, limits)
    }

    /// The borrowed view, which has all the parts.
    pub fn view(&self) -> UrlRef<'_> {
        UrlRef { text: &self.text, marks: self.marks, shape: Shape::UNSEEN }
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A borrowed canonical URL; free to copy.
#[derive(Clone, Copy)]
pub struct UrlRef<'a> {
    text: &'a str,
    marks: Marks,
    /// Of the target; what is on a page was looked at as it was joined.
    shape: Shape,
}

impl<'a> UrlRef<'a> {
    /// Reads back a text that was canonical when it was written down. Checks the shape (scheme,
    /// host, port, path), not the spelling of the parts: `None` means a damaged file.
    pub fn from_canonical(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
        Some(Self { text, marks: Marks::find(text)?, shape: Shape::UNSEEN })
    }

    /// The whole text.
    pub fn as_str(self) -> &'a str {
        self.text
    }

    /// Whether the scheme is https; else it is http.
    pub fn is_https(self) -> bool {
        self.marks.is_https
    }

    /// Host as written in the URL: lower case, IPv6 in brackets.
    pub fn host(self) -> &'a str {
        &self.text[self.marks.host_start()..usize::from(self.marks.host_end)]
    }

    /// Port to connect to, written or implied.
    pub fn port(self) -> u16 {
        self.marks.port
    }

    /// The address, if the host is one.
    pub fn ip(self) -> Option<IpAddr> {
        ip_of_host(self.host())
    }

    /// `https://host` or `http://host:8080`: the text up to its path.
    pub fn origin(self) -> &'a str {
        &self.text[..usize::from(self.marks.path_start)]
    }

    /// `host` or `host:port`, as in the Host header.
    pub fn authority(self) -> &'a str {
        &self.text[self.marks.host_start()..usize::from(self.marks.path_start)]
    }

    /// Path and query; begins with `/`.
    pub fn target(self) -> &'a str {
        &self.text[usize::from(self.marks.path_start)..]
    }

    /// Path alone; begins with `/`.
    pub fn path(self) -> &'a str {
        let target = self.target();
        &target[..memchr::memchr(b'?', target.as_bytes()).unwrap_or(target.len())]
    }

    /// What follows the first `?`, if there is one.
    pub fn query(self) -> Option<&'a str> {
        let target = self.target();
        memchr::memchr(b'?', target.as_bytes()).map(|mark| &target[mark + 1..])
    }

    /// What its target is like.
    #[inline]
    fn shape(self) -> Shape {
        let is_seen = self.shape != Shape::UNSEEN;
        if is_seen { self.shape } else { Shape::of(self.target().as_bytes()) }
    }

    /// A copy that owns its text.
    pub fn to_owned(self) -> Url {
        Url { text: self.text.into(), marks: self.marks }
    }
}

/// The URLs joined on one page, in one block of memory that is used again for the next page.
///
/// Its memory is bounded: past the limit [`canon::Joiner::join`] answers [`Invalid::Full`].
#[derive(Clone, Debug)]
pub struct Batch {
    text: String,
    spans: Vec<Span>,
    bytes_max: usize,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    end: u32,
    marks: Marks,
    shape: Shape,
}

/// Bytes a batch holds unless told otherwise: some 100,000 URLs.
const BATCH_BYTES_MAX: usize = 16 << 20;

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty batch of at most 16 MiB.
    pub fn new() -> Self {
        Self::with_bytes_max(BATCH_BYTES_MAX)
    }

    /// An empty batch that never holds more than about `bytes_max` bytes (less than 4 GiB).
    pub fn with_bytes_max(bytes_max: usize) -> Self {
        assert!(u32::try_from(bytes_max).is_ok(), "offsets of a batch are 32 bits");
        Self { text: String::new(), spans: Vec::new(), bytes_max }
    }

    /// Forgets the URLs, keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
    }

    /// Bytes of all URLs held.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// URLs held.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The `index`-th URL, in order of joining. Panics if there are not so many.
    pub fn get(&self, index: usize) -> UrlRef<'_> {
        self.at(self.spans[index])
    }

    /// All URLs, in order of joining.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = UrlRef<'_>> {
        self.spans.iter().map(|&span| self.at(span))
    }

    fn at(&self, span: Span) -> UrlRef<'_> {
        let text = &self.text[span.start as usize..span.end as usize];
        UrlRef { text, marks: span.marks, shape: span.shape }
    }

    /// Whether one more URL of at most `bytes` bytes may go in.
    fn has_room(&self, bytes: usize) -> bool {
        let held = self.text.len() + (self.spans.len() + 1) * size_of::<Span>();
        held + bytes <= self.bytes_max
    }

    /// Makes the text from `start` on the next URL.
    fn seal(&mut self, start: usize, marks: Marks) {
        let narrow = |at: usize| u32::try_from(at).expect("has_room keeps a batch below 4 GiB");
        let target = &self.text.as_bytes()[start + usize::from(marks.path_start)..];
        let shape = Shape::of(target);
        let (start, end) = (narrow(start), narrow(self.text.len()));
        self.spans.push(Span { start, end, marks, shape });
    }
}

/// A keyed 64-bit hash of a URL's key bytes; stable across runs and machines for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

/// Makes fingerprints: SipHash-1-3 under the key of the crawl. Who doesn't know the key can't make
/// two URLs collide. 10 to 20 ns a URL.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprinter {
    hasher: SipHasher13,
}

impl Fingerprinter {
    /// Under this key, which is kept with the crawl.
    pub fn new(key: [u8; 16]) -> Self {
        Self { hasher: SipHasher13::new_with_key(&key) }
    }

    /// The fingerprint of `bytes`.
    pub fn of(&self, bytes: &[u8]) -> Fingerprint {
        Fingerprint(self.hasher.hash(bytes))
    }
}

/// Where the parts of a canonical text are. The host begins behind the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    host_end: u16,
    path_start: u16,
    port: u16,
    is_https: bool,
}

impl Marks {
    /// Finds the parts of a canonical text; `None` if it doesn't have the shape of one.
    fn find(text: &str) -> Option<Self> {
        let is_https = text.starts_with("https://");
        let host_start = scheme_bytes(is_https);
        let rest = text.strip_prefix(if is_https { "https://" } else { "http://" })?;
        let authority = &rest[..memchr::memchr(b'/', rest.as_bytes())?];
        // A colon within brackets belongs to an IPv6 address.
        let host_bytes = match memchr::memrchr(b']', authority.as_bytes()) {
            Some(bracket) => bracket + 1,
            None => memchr::memchr(b':', authority.as_bytes()).unwrap_or(authority.len()),
        };
        let port = match &authority[host_bytes..] {
            "" => default_port(is_https),
            port => {
                let digits = port.strip_prefix(':')?;
                digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))?
            }
        };
        if host_bytes == 0 || text.len() > URL_BYTES_CAP {
            return None;
        }
        let narrow = |at: usize| u16::try_from(host_start + at).ok();
        Some(Self {
            host_end: narrow(host_bytes)?,
            path_start: narrow(authority.len())?,
            port,
            is_https,
        })
    }

    fn host_start(self) -> usize {
        scheme_bytes(self.is_https)
    }
}

/// Bytes of `https://` or `http://`.
fn scheme_bytes(is_https: bool) -> usize {
    if is_https { 8 } else { 7 }
}

fn default_port(is_https: bool) -> u16 {
    if is_https { 443 } else { 80 }
}

/// The address a canonical host is. A host that ends in a number is IPv4 by the standard, so a
/// last byte that isn't a digit or a bracket settles it.
fn ip_of_host(host: &str) -> Option<IpAddr> {
    match host.as_bytes().last()? {
        b']' => {
            let inner = host.strip_prefix('[')?.strip_suffix(']')?;
            inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
        }
        b'0'..=b'9' => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        _ => None,
    }
}

macro_rules! text_is_all {
    ($($type:ty),*) => {$(
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.text == other.text
            }
        }
        impl Eq for $type {}
        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $type {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.text.cmp(&other.text)
            }
        }
        impl Hash for $type {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.text.hash(state);
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.text)
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "<{}>", self.text)
            }
        }
    )*};
}

text_is_all!(Url, UrlRef<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        // (text, origin, authority, host, port, ip, target, path, query)
        let cases = [
            ("http://a.test", "http://a.test", "a.test", "a.test", 80, "", "/", "/", None),
            ("https://a.test/", "https://a.test", "a.test", "a.test", 443, "", "/", "/", None),
            (
                "http://u:p@A.test:8080/b?c?d#e",
                "http://a.test:8080",
                "a.test:8080",
                "a.test",
                8080,
                "",
                "/b?c?d",
                "/b",
                Some("c?d"),
            ),
            (
                "https://[2001:DB8::1]:443?",
                "https://[2001:db8::1]",
                "[2001:db8::1]",
                "[2001:db8::1]",
                443,
                "2001:db8::1",
                "/?",
                "/",
                Some(""),
            ),
            (
                "https://[::ffff:1.2.3.4]:80/",
                "https://[::ffff:102:304]:80",
                "[::ffff:102:304]:80",
                "[::ffff:102:304]",
                80,
                "::ffff:1.2.3.4",
                "/",
                "/",
                None,
            ),
            (
                "http://0x7f.1/",
                "http://127.0.0.1",
                "127.0.0.1",
                "127.0.0.1",
                80,
                "127.0.0.1",
                "/",
                "/",
                None,
            ),
        ];
        for (text, origin, authority, host, port, ip, target, path, query) in cases {
            let url = Url::parse(text).expect(text);
            let view = url.view();
            assert_eq!(view.origin(), origin, "{text}");
            assert_eq!(view.authority(), authority, "{text}");
            assert_eq!(view.host(), host, "{text}");
            assert_eq!(view.port(), port, "{text}");
            assert_eq!(view.ip(), ip.parse().ok(), "{text}");
            assert_eq!(view.target(), target, "{text}");
            assert_eq!(view.path(), path, "{text}");
            assert_eq!(view.query(), query, "{text}");
            assert_eq!(view.is_https(), text.starts_with("https"), "{text}");
            assert_eq!(format!("{origin}{target}"), view.as_str(), "{text}");
            assert_eq!(view.to_owned(), url, "{text}");
        }
    }

    #[test]
    fn canonical_text_is_read_back_and_damaged_text_is_not() {
        for text in ["http://a.test/", "https://[::1]:8443/x?y", "http://1.2.3.4:1/"] {
            let url = Url::parse(text).expect(text);
            let read = UrlRef::from_canonical(text.as_bytes()).expect(text);
            assert_eq!((read, read.marks), (url.view(), url.marks), "{text}");
        }
        let long = format!("http://a.test/{}", "x".repeat(URL_BYTES_CAP));
        let damaged = [
            "",
            "http://",
            "http:///",
            "ftp://a.test/",
            "http://a.test",
            "http://a.test:/",
            "http://a.test:65536/",
            "http://a.test:+1/",
            "http://[::1]x/",
            "http://\u{e9}.test/",
            &long,
        ];
        for text in damaged {
            assert_eq!(UrlRef::from_canonical(text.as_bytes()), None, "{text}");
        }
        assert_eq!(UrlRef::from_canonical(b"http://a.test/\xff"), None);
    }

    /// Two of the published vectors of SipHash-1-3: key 00..0f, message empty and 00..07.
    #[test]
    fn fingerprints_are_keyed_and_stable() {
        let key = std::array::from_fn(|i| u8::try_from(i).expect("below 16"));
        let one = Fingerprinter::new(key);
        let other = Fingerprinter::new([7; 16]);
        let url = b"https://example.com/a";
        assert_eq!(one.of(url), Fingerprinter::new(key).of(url));
        assert_ne!(one.of(url), other.of(url));
        assert_ne!(one.of(url), one.of(b"https://example.com/b"));
        // Stored with crawls: a change of these values would forget what was seen.
        assert_eq!(one.of(b""), Fingerprint(0xabac_0158_050f_c4dc));
        assert_eq!(one.of(&[0, 1, 2, 3, 4, 5, 6, 7]), Fingerprint(0x3690_9511_8d29_9a8e));
    }
}
