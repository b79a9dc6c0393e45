//! URLs: owned and borrowed types, a batch for the URLs of a page, and fingerprints.
//!
//! A [`Url`] is in the form that is fetched: absolute, http or https, serialized as the WHATWG URL
//! standard says, without fragment, user name and password. Only [`canon`] creates it, so that one
//! address has one spelling. The key by which it is deduplicated ([`key`]) may merge several URLs.
//!
//! Laws: the text is ASCII; it begins with `http://` or `https://` and a host that isn't empty; it
//! never contains the default port; the path begins with `/`; parsing the text again returns the
//! same text; no text is longer than [`URL_BYTES_CAP`].
//! Cost: a [`UrlRef`] takes 24 bytes and each of its parts is a slice; a [`Url`] is one allocation.
//! Source: WHATWG URL standard, sections 4.3 (serializing) and 4.4 (parsing).

use byte_class::Shape;
use siphasher::sip::SipHasher13;
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

mod byte_class;
pub mod canon;
pub mod domain;
pub mod key;
pub mod scope;
pub mod site;

/// The maximum length of a URL in bytes, whatever [`Limits`] say: offsets within it are 16 bits.
pub const URL_BYTES_CAP: usize = 65_535;

/// Returns a reference from a header field as text. If its bytes are not UTF-8, those outside ASCII
/// become percent escapes, so that the server gets back the bytes that it sent. Browsers do the
/// same (Chromium escapes a `Location` before it parses it).
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

/// The limits on what is accepted as a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum length of a canonical URL, in bytes; at most [`URL_BYTES_CAP`].
    pub url_bytes_max: usize,
}

impl Default for Limits {
    /// Returns limits that allow the longest possible URL: what may be crawled is decided by the
    /// scope.
    fn default() -> Self {
        Self { url_bytes_max: URL_BYTES_CAP }
    }
}

/// The reason why a text is not a URL that can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invalid {
    /// The text is not a URL by the standard.
    Syntax,
    /// The text is a URL, but neither http nor https.
    Scheme,
    /// The URL has no host, a host that the standard forbids, or one that is invalid in the DNS.
    Host,
    /// The port of the URL is invalid, or 0.
    Port,
    /// The URL is longer than [`Limits`] allow.
    TooLong,
    /// The [`Batch`] to which the URL should be added is full.
    Full,
}

impl Invalid {
    /// Returns the name of the reason that is used in logs and reports.
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

/// An owned canonical URL. Equality, order and hash are those of the URL's text.
#[derive(Clone)]
pub struct Url {
    text: Box<str>,
    parts: Parts,
}

impl Url {
    /// Parses an absolute URL to its canonical form, within the default [`Limits`].
    ///
    /// # Errors
    /// Returns why the text is not a URL that can be fetched.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::parse_within(text, Limits::default())
    }

    /// Parses an absolute URL to its canonical form, within `limits`.
    ///
    /// # Errors
    /// Returns why the text is not a URL that can be fetched.
    pub fn parse_within(text: &str, limits: Limits) -> Result<Self, Invalid> {
        canon::parse(text, limits)
    }

    /// Returns the borrowed form of this URL, which gives access to its parts.
    pub fn view(&self) -> UrlRef<'_> {
        UrlRef { text: &self.text, parts: self.parts, shape: Shape::UNKNOWN }
    }

    /// Returns the whole URL as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A borrowed canonical URL; it is `Copy`.
#[derive(Clone, Copy)]
pub struct UrlRef<'a> {
    text: &'a str,
    parts: Parts,
    /// Properties of path and query; [`Batch`] computes them when a URL is joined.
    shape: Shape,
}

impl<'a> UrlRef<'a> {
    /// Converts a text that was canonical when it was stored to a URL. Checks the structure
    /// (scheme, host, port, path), not the spelling of the parts. Returns `None` if the structure
    /// is invalid, which means that the file with the text is damaged.
    pub fn from_canonical(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
        Some(Self { text, parts: Parts::find(text)?, shape: Shape::UNKNOWN })
    }

    /// Returns the whole URL as text.
    pub fn as_str(self) -> &'a str {
        self.text
    }

    /// Returns whether the scheme is https; otherwise it is http.
    pub fn is_https(self) -> bool {
        self.parts.is_https
    }

    /// Returns the host as it is in the URL: lower case, IPv6 in brackets.
    pub fn host(self) -> &'a str {
        &self.text[self.parts.host_start()..usize::from(self.parts.host_end)]
    }

    /// Returns the port to connect to: that in the URL, or the default port of the scheme.
    pub fn port(self) -> u16 {
        self.parts.port
    }

    /// Returns the host as an IP address; `None` if it is a name.
    pub fn ip(self) -> Option<IpAddr> {
        ip_of_host(self.host())
    }

    /// Returns the part of the URL before the path, such as `https://host` or `http://host:8080`.
    pub fn origin(self) -> &'a str {
        &self.text[..usize::from(self.parts.path_start)]
    }

    /// Returns the host, and the port if it is in the URL, as in the `Host` header: `host` or
    /// `host:port`.
    pub fn authority(self) -> &'a str {
        &self.text[self.parts.host_start()..usize::from(self.parts.path_start)]
    }

    /// Returns the path and the query as one text, which begins with `/`.
    pub fn target(self) -> &'a str {
        &self.text[usize::from(self.parts.path_start)..]
    }

    /// Returns the path, which begins with `/`.
    pub fn path(self) -> &'a str {
        let target = self.target();
        &target[..memchr::memchr(b'?', target.as_bytes()).unwrap_or(target.len())]
    }

    /// Returns the text after the first `?`; `None` if the URL has no query.
    pub fn query(self) -> Option<&'a str> {
        let target = self.target();
        memchr::memchr(b'?', target.as_bytes()).map(|mark| &target[mark + 1..])
    }

    /// Returns the properties of path and query.
    #[inline]
    fn shape(self) -> Shape {
        let is_seen = self.shape != Shape::UNKNOWN;
        if is_seen { self.shape } else { Shape::of(self.target().as_bytes()) }
    }

    /// Returns an owned copy of the URL.
    pub fn to_owned(self) -> Url {
        Url { text: self.text.into(), parts: self.parts }
    }
}

/// The URLs joined on one page, in one block of memory that is reused for the next page.
///
/// Its memory is bounded: past the limit [`canon::Joiner::join`] returns [`Invalid::Full`].
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
    parts: Parts,
    shape: Shape,
}

/// The default maximum size of a batch, in bytes: some 100,000 URLs.
const BATCH_BYTES_MAX: usize = 16 << 20;

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// Creates an empty batch of at most 16 MiB.
    pub fn new() -> Self {
        Self::with_bytes_max(BATCH_BYTES_MAX)
    }

    /// Creates an empty batch that never holds more than about `bytes_max` bytes (less than 4 GiB).
    pub fn with_bytes_max(bytes_max: usize) -> Self {
        assert!(u32::try_from(bytes_max).is_ok(), "offsets of a batch are 32 bits");
        Self { text: String::new(), spans: Vec::new(), bytes_max }
    }

    /// Removes all URLs, but keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
    }

    /// Returns the total length of all URLs, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the memory that the URLs take, in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len() + self.spans.len() * size_of::<Span>()
    }

    /// Frees the memory that the URLs don't need.
    pub fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.spans.shrink_to_fit();
    }

    /// Returns the number of URLs in the batch.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the URL with this index, in the order of joining.
    ///
    /// # Panics
    /// Panics if the batch has no URL with this index.
    pub fn get(&self, index: usize) -> UrlRef<'_> {
        self.at(self.spans[index])
    }

    /// Returns all URLs of the batch, in the order of joining.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = UrlRef<'_>> {
        self.spans.iter().map(|&span| self.at(span))
    }

    fn at(&self, span: Span) -> UrlRef<'_> {
        let text = &self.text[span.start as usize..span.end as usize];
        UrlRef { text, parts: span.parts, shape: span.shape }
    }

    /// Returns whether one more URL of at most `bytes` bytes fits into the batch.
    fn has_room(&self, bytes: usize) -> bool {
        self.bytes() + size_of::<Span>() + bytes <= self.bytes_max
    }

    /// Completes a URL that was appended to the text of the batch from `start` on.
    fn seal(&mut self, start: usize, parts: Parts) {
        let narrow = |at: usize| u32::try_from(at).expect("has_room keeps a batch below 4 GiB");
        let target = &self.text.as_bytes()[start + usize::from(parts.path_start)..];
        let shape = Shape::of(target);
        let (start, end) = (narrow(start), narrow(self.text.len()));
        self.spans.push(Span { start, end, parts, shape });
    }
}

/// The keyed 64-bit hash of a URL's deduplication key. With the same hash key it is the same in all
/// runs and on all machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

/// Computes fingerprints by SipHash-1-3, under the hash key of the crawl. Without knowing that hash
/// key nobody can construct two URLs that collide. Takes 10 to 20 ns a URL.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprinter {
    hasher: SipHasher13,
}

impl Fingerprinter {
    /// Creates a fingerprinter for this hash key, which is stored with the crawl.
    pub fn new(key: [u8; 16]) -> Self {
        Self { hasher: SipHasher13::new_with_key(&key) }
    }

    /// Returns the fingerprint of `bytes`, which are the deduplication key of a URL.
    pub fn of(&self, bytes: &[u8]) -> Fingerprint {
        Fingerprint(self.hasher.hash(bytes))
    }
}

/// The offsets at which the parts of a canonical URL end, and what was parsed with them. The host
/// begins after the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    host_end: u16,
    path_start: u16,
    port: u16,
    is_https: bool,
}

impl Parts {
    /// Finds the parts of a canonical URL; `None` if the text doesn't have the structure of one.
    fn find(text: &str) -> Option<Self> {
        let is_https = text.starts_with("https://");
        let host_start = scheme_bytes(is_https);
        let rest = text.strip_prefix(if is_https { "https://" } else { "http://" })?;
        let authority = &rest[..memchr::memchr(b'/', rest.as_bytes())?];
        // A colon inside brackets belongs to an IPv6 address.
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

/// Returns the length of `https://` or `http://`, in bytes.
fn scheme_bytes(is_https: bool) -> usize {
    if is_https { 8 } else { 7 }
}

fn default_port(is_https: bool) -> u16 {
    if is_https { 443 } else { 80 }
}

/// Returns a canonical host as an IP address; `None` if it is a name. By the standard a host that
/// ends in a number is IPv4, so a host whose last byte is neither a digit nor a bracket is a name.
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
            assert_eq!((read, read.parts), (url.view(), url.parts), "{text}");
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
        // Fingerprints are stored with crawls: if these values changed, old crawls would lose their
        // seen URLs.
        assert_eq!(one.of(b""), Fingerprint(0xabac_0158_050f_c4dc));
        assert_eq!(one.of(&[0, 1, 2, 3, 4, 5, 6, 7]), Fingerprint(0x3690_9511_8d29_9a8e));
    }
}
