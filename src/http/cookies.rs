//! A cookie jar for one chain of redirects.
//!
//! Some servers show a page only to a client that returns the cookie set by a redirect. A jar lives
//! as long as its chain: no other fetch sends its cookies, and they are stored nowhere but in the
//! archived requests.
//!
//! Laws:
//! - A cookie is sent to the host that set it, or to the hosts of its `Domain` attribute unless
//!   that is a public suffix. It is not sent outside its path, after it expires, or, if it is
//!   `Secure`, over plain HTTP.
//! - A jar holds at most [`COOKIES_MAX`] cookies and [`JAR_BYTES_MAX`] bytes.
//!
//! `SameSite` is ignored, because a chain is a navigation from its first URL. Names and values are
//! octets, and are sent back unchanged; a name may be empty.
//! Source: RFC 6265bis, sections 5.1 to 5.8; the `cookie` crate parses the attributes.

use crate::ground::time::UnixTime;
use crate::url::{UrlRef, domain};
use cookie::Cookie;

/// The maximum number of cookies of one chain.
pub const COOKIES_MAX: usize = 50;
/// The maximum length of a cookie's name and value together, in bytes (RFC 6265bis 5.6).
const COOKIE_BYTES_MAX: usize = 4_096;
/// The maximum length of all names, values, domains and paths of one chain, in bytes.
pub const JAR_BYTES_MAX: usize = 8_192;
/// The maximum length of an attribute's value, in bytes (RFC 6265bis 5.6); a longer one is ignored.
const ATTRIBUTE_BYTES_MAX: usize = 1_024;

/// The cookies of one chain of redirects.
#[derive(Clone, Debug, Default)]
pub struct Jar {
    /// The cookies, in the order in which they were first set.
    cookies: Vec<Stored>,
}

#[derive(Clone, Debug)]
struct Stored {
    name: Box<[u8]>,
    value: Box<[u8]>,
    /// The host that the cookie is sent to. Unless `host_only` is true, the cookie is also sent to
    /// the hosts below it.
    domain: Box<str>,
    host_only: bool,
    path: Box<str>,
    secure: bool,
    expires: Option<UnixTime>,
}

/// The result of processing a `Set-Cookie` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOutcome {
    /// The cookie was stored, or an existing cookie was deleted as the field asks.
    Kept,
    /// The field is malformed, or the host of the URL may not set such a cookie.
    Refused,
    /// The jar is full, or the cookie is too large.
    Full,
}

impl Jar {
    /// Processes the value of one `Set-Cookie` field in the reply to `url`.
    pub fn take(&mut self, field: &[u8], url: UrlRef<'_>, now: UnixTime) -> SetOutcome {
        // Control characters could split the field in two, or end a line.
        if field.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            return SetOutcome::Refused;
        }
        let Some(cookie) = Stored::parse(field, url, now) else {
            return SetOutcome::Refused;
        };
        if cookie.name.len() + cookie.value.len() > COOKIE_BYTES_MAX {
            return SetOutcome::Full;
        }
        if !url.is_https() && self.cookies.iter().any(|other| other.is_shadowed_by(&cookie)) {
            return SetOutcome::Refused;
        }
        let place = self.cookies.iter().position(|other| other.is_replaced_by(&cookie));
        if cookie.is_expired(now) {
            place.into_iter().for_each(|place| drop(self.cookies.remove(place)));
            return SetOutcome::Kept;
        }
        let freed = place.map_or(0, |place| self.cookies[place].bytes());
        if self.bytes() - freed + cookie.bytes() > JAR_BYTES_MAX {
            return SetOutcome::Full;
        }
        match place {
            Some(place) => self.cookies[place] = cookie,
            None if self.cookies.len() < COOKIES_MAX => self.cookies.push(cookie),
            None => return SetOutcome::Full,
        }
        SetOutcome::Kept
    }

    /// Returns the value of the `Cookie` field for a request to `url`, or `None` if no cookie
    /// matches.
    pub fn field(&self, url: UrlRef<'_>, now: UnixTime) -> Option<Vec<u8>> {
        let mut sent: Vec<&Stored> = self
            .cookies
            .iter()
            .filter(|cookie| cookie.matches(url) && !cookie.is_expired(now))
            .collect();
        // The cookie with the longest path comes first; of equal paths, the cookie that was set
        // first (RFC 6265bis 5.8.3).
        sent.sort_by_key(|cookie| usize::MAX - cookie.path.len());
        let pairs: Vec<Vec<u8>> = sent.iter().map(|cookie| cookie.pair()).collect();
        (!pairs.is_empty()).then(|| pairs.join(&b"; "[..]))
    }

    /// Returns whether the jar has no cookies.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    fn bytes(&self) -> usize {
        self.cookies.iter().map(Stored::bytes).sum()
    }
}

impl Stored {
    /// Parses the value of a `Set-Cookie` field (RFC 6265bis 5.6). Returns `None` if it is
    /// malformed, or the host of `url` may not set this cookie (5.7).
    fn parse(field: &[u8], url: UrlRef<'_>, now: UnixTime) -> Option<Self> {
        let (pair, attributes) = split(field, b';').unwrap_or((field, b""));
        let (name, value) = split(pair, b'=').unwrap_or((b"", pair));
        let (name, value) = (name.trim_ascii(), value.trim_ascii());
        if name.is_empty() && value.is_empty() {
            return None;
        }
        // The crate accepts neither an empty name nor octets that aren't UTF-8.
        let attributes = format!("k=;{}", String::from_utf8_lossy(attributes));
        let attributes = &Cookie::parse(attributes).ok()?;
        let within = |text: &&str| text.len() <= ATTRIBUTE_BYTES_MAX;
        let host = url.host();
        let named = attributes.domain().filter(within).map(str::to_ascii_lowercase);
        let named = named.filter(|named| !named.is_empty());
        // A host that is itself a public suffix may set a cookie for itself alone.
        let named = match named {
            Some(named) if domain::is_suffix(&named) && named == host => None,
            Some(named) if domain::is_suffix(&named) => return None,
            named => named,
        };
        if named.as_ref().is_some_and(|named| !domain::is_within(host, named)) {
            return None;
        }
        let secure = attributes.secure().unwrap_or(false);
        let path = attributes.path().filter(within).filter(|path| path.starts_with('/'));
        let path = path.unwrap_or_else(|| default_path(url));
        // A cookie without a name is sent as its bare value, which must not look like a name with
        // one of these prefixes.
        let shown = if name.is_empty() { value } else { name };
        let begins = |prefix: &str| {
            let start = shown.get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        let must_be_secure = begins("__Secure-") || begins("__Host-");
        if must_be_secure && (name.is_empty() || !secure) || secure && !url.is_https() {
            return None;
        }
        if begins("__Host-") && (named.is_some() || path != "/" || attributes.path() != Some("/")) {
            return None;
        }
        Some(Self {
            name: name.into(),
            value: value.into(),
            host_only: named.is_none(),
            domain: named.as_deref().unwrap_or(host).into(),
            path: path.into(),
            secure,
            expires: expiry(attributes, now),
        })
    }

    /// Returns the cookie in the form in which it is sent (RFC 6265bis 5.8.3).
    fn pair(&self) -> Vec<u8> {
        let separator: &[u8] = if self.name.is_empty() { b"" } else { b"=" };
        [&self.name, separator, &self.value].concat()
    }

    fn is_expired(&self, now: UnixTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    fn matches(&self, url: UrlRef<'_>) -> bool {
        let host = url.host();
        let is_host = if self.host_only {
            host == &*self.domain
        } else {
            domain::is_within(host, &self.domain)
        };
        is_host && (url.is_https() || !self.secure) && is_below(url.path(), &self.path)
    }

    fn is_replaced_by(&self, other: &Self) -> bool {
        (&self.name, &self.domain, self.host_only, &self.path)
            == (&other.name, &other.domain, other.host_only, &other.path)
    }

    /// Returns whether `other`, set over plain HTTP, must not shadow this secure cookie (RFC
    /// 6265bis 5.7, step 16).
    fn is_shadowed_by(&self, other: &Self) -> bool {
        let near = domain::is_within(&self.domain, &other.domain)
            || domain::is_within(&other.domain, &self.domain);
        self.secure && self.name == other.name && near && is_below(&other.path, &self.path)
    }

    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + self.domain.len() + self.path.len()
    }
}

/// Splits `text` at the first `separator` into the part before it and the part after it.
fn split(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Returns the time at which a cookie with these attributes expires; `None` if it has none.
/// `Max-Age` takes precedence over `Expires` (RFC 6265bis 5.7, step 3).
fn expiry(attributes: &Cookie<'_>, now: UnixTime) -> Option<UnixTime> {
    if let Some(age) = attributes.max_age() {
        let us = u64::try_from(age.whole_seconds()).unwrap_or(0).saturating_mul(1_000_000);
        return Some(UnixTime::from_micros(now.as_micros().saturating_add(us)));
    }
    let at = attributes.expires_datetime()?.unix_timestamp();
    let us = u64::try_from(at).unwrap_or(0).saturating_mul(1_000_000);
    Some(UnixTime::from_micros(us))
}

/// Returns whether `path` matches the cookie path `folder` (RFC 6265bis 5.1.4).
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || folder.ends_with('/') || rest.starts_with('/'))
}

/// Returns the path of the URL up to its last slash, without that slash (RFC 6265bis 5.1.4).
fn default_path(url: UrlRef<'_>) -> &str {
    let path = url.path();
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(end) => &path[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Url;

    const NOW: UnixTime = UnixTime::from_micros(1_800_000_000_000_000);

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    fn sent(jar: &Jar, to: &str) -> Option<String> {
        let field = jar.field(url(to).view(), NOW)?;
        Some(String::from_utf8(field).expect("UTF-8 was set"))
    }

    /// The URL that sets the cookie, the field, the URL requested next, whether the cookie is sent
    /// to it, and why (sections of RFC 6265bis).
    type Case = (&'static str, &'static str, &'static str, bool, &'static str);
    const CASES: &[Case] = &[
        ("http://a.test/", "k=1", "http://a.test/x", true, "5.8.3: the host that set it"),
        ("http://a.test/", "k=1", "https://a.test/", true, "5.8.3: schemes are one site"),
        ("http://a.test/", "k=1", "http://a.test:81/", true, "8.5: ports don't matter"),
        ("http://a.test/", "k=1", "http://www.a.test/", false, "5.1.3: host-only"),
        ("http://www.a.test/", "k=1; Domain=a.test", "http://a.test/", true, "5.1.3"),
        ("http://www.a.test/", "k=1; Domain=.A.test", "http://x.a.test/", true, "5.6.3"),
        ("http://a.test/", "k=1; Domain=www.a.test", "http://www.a.test/", false, "5.7, 9"),
        ("http://a.test/", "k=1; Domain=b.test", "http://b.test/", false, "5.7, 9"),
        ("http://a.test/", "k=1; Domain=test", "http://b.test/", false, "5.7, 8: a suffix"),
        ("http://a.co.uk/", "k=1; Domain=co.uk", "http://a.co.uk/", false, "5.7, 8"),
        ("http://a.github.io/", "k=1; Domain=github.io", "http://b.github.io/", false, "5.7"),
        ("http://github.io/", "k=1; Domain=github.io", "http://github.io/", true, "5.7, 8"),
        ("http://github.io/", "k=1; Domain=github.io", "http://b.github.io/", false, "5.7"),
        ("http://1.2.3.4/", "k=1", "http://1.2.3.4/", true, "an address is a host"),
        ("http://9.1.2.3/", "k=1; Domain=1.2.3", "http://9.1.2.3/", false, "5.1.3: a name"),
        ("http://ab.test/", "k=1; Domain=b.test", "http://ab.test/", false, "5.1.3: a label"),
        ("http://a.test/d/x", "k=1", "http://a.test/d/y", true, "5.1.4: default path"),
        ("http://a.test/d/x", "k=1", "http://a.test/d", true, "5.1.4: default path"),
        ("http://a.test/d/x", "k=1", "http://a.test/", false, "5.1.4: default path"),
        ("http://a.test/d/x", "k=1", "http://a.test/dd", false, "5.1.4: whole segments"),
        ("http://a.test/d/x", "k=1; Path=/", "http://a.test/e", true, "5.6.4"),
        ("http://a.test/d/x", "k=1; Path=e", "http://a.test/e", false, "5.6.4: not absolute"),
        ("https://a.test/", "k=1; Secure", "https://a.test/", true, "5.8.3"),
        ("https://a.test/", "k=1; Secure", "http://a.test/", false, "5.8.3: plain HTTP"),
        ("http://a.test/", "k=1; Secure", "https://a.test/", false, "5.7, 12: plain HTTP"),
        ("http://a.test/", "k=1; Max-Age=60", "http://a.test/", true, "5.6.2"),
        ("http://a.test/", "k=1; Max-Age=0", "http://a.test/", false, "5.6.2"),
        ("http://a.test/", "k=1; Max-Age=-9", "http://a.test/", false, "5.6.2"),
        (
            "http://a.test/",
            "k=1; Expires=Wed, 09 Jun 2021 10:18:14 GMT",
            "http://a.test/",
            false,
            "5.6.1: it is later than that",
        ),
        (
            "http://a.test/",
            "k=1; Expires=Wed, 09-Jun-2060 10:18:14 GMT",
            "http://a.test/",
            true,
            "5.6.1",
        ),
        (
            "http://a.test/",
            "k=1; Max-Age=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "http://a.test/",
            true,
            "5.7, 3: Max-Age first",
        ),
        ("http://a.test/", "k=1; HttpOnly; SameSite=Strict", "http://a.test/", true, "ours"),
        ("https://a.test/", "__Secure-k=1; Secure", "https://a.test/", true, "4.1.3.1"),
        ("https://a.test/", "__Secure-k=1", "https://a.test/", false, "4.1.3.1"),
        ("https://a.test/", "__Host-k=1; Secure; Path=/", "https://a.test/", true, "4.1.3.2"),
        ("https://a.test/", "__Host-k=1; Secure", "https://a.test/", false, "4.1.3.2"),
        (
            "https://w.a.test/",
            "__host-k=1; Secure; Path=/; Domain=a.test",
            "https://w.a.test/",
            false,
            "4.1.3.2",
        ),
        ("http://a.test/", "k", "http://a.test/", true, "5.6, 4: a value without a name"),
        ("http://a.test/", "=1", "http://a.test/", true, "5.6, 4: a value without a name"),
        ("http://a.test/", " = ; Path=/", "http://a.test/", false, "5.6: neither name nor value"),
        ("http://a.test/", "; Path=/", "http://a.test/", false, "5.6: neither name nor value"),
        ("https://a.test/", "=__Host-k=1; Secure; Path=/", "https://a.test/", false, "5.7"),
        ("https://a.test/", "__secure-k; Secure", "https://a.test/", false, "5.7"),
        ("http://a.test/", "k=1\u{1}", "http://a.test/", false, "5.6, 1: control characters"),
    ];

    /// A cookie set by one URL is sent to another or not, case by case (RFC 6265bis).
    #[test]
    fn cookies_go_where_they_belong() {
        for &(set_by, field, to, goes, why) in CASES {
            let mut jar = Jar::default();
            jar.take(field.as_bytes(), url(set_by).view(), NOW);
            assert_eq!(sent(&jar, to).is_some(), goes, "{set_by} sets {field:?}, {to}: {why}");
        }
    }

    /// Names and values are octets, and a name may be empty (RFC 6265bis 5.6 and 5.8.3).
    #[test]
    fn cookies_are_sent_as_they_came() {
        let cases: [(&[u8], &[u8]); 11] = [
            (b"flag", b"flag"),
            (b" flag ; Path=/; HttpOnly", b"flag"),
            (b"=flag", b"flag"),
            (b"=a=b", b"a=b"),
            (b"k=", b"k="),
            (b"k = a b=c\t;Path=/", b"k=a b=c"),
            (b"u=caf\xe9", b"u=caf\xe9"),
            (b"caf\xe9=\xff\x85; Path=/; X=\xff", b"caf\xe9=\xff\x85"),
            ("u=voil\u{e0}; Path=/".as_bytes(), "u=voil\u{e0}".as_bytes()),
            (b"u=\xa0x\xa0", b"u=\xa0x\xa0"),
            (b"k=\"a\"", b"k=\"a\""),
        ];
        let at = url("http://a.test/");
        for (field, expected) in cases {
            let mut jar = Jar::default();
            assert_eq!(jar.take(field, at.view(), NOW), SetOutcome::Kept);
            let sent = jar.field(at.view(), NOW).expect("it goes there");
            assert_eq!(sent, expected, "{}: {}", field.escape_ascii(), sent.escape_ascii());
        }
        let mut jar = Jar::default();
        for field in ["flag", "k=1", "other", "; Max-Age=0"] {
            jar.take(field.as_bytes(), at.view(), NOW);
        }
        assert_eq!(sent(&jar, "http://a.test/").as_deref(), Some("other; k=1"), "one has no name");
    }

    #[test]
    fn a_jar_replaces_deletes_and_sorts() {
        let (plain, deep) = (url("http://a.test/"), url("https://a.test/d/x"));
        let mut jar = Jar::default();
        for field in ["a=1", "b=2", "a=3"] {
            assert_eq!(jar.take(field.as_bytes(), plain.view(), NOW), SetOutcome::Kept);
        }
        jar.take(b"c=4; Secure", deep.view(), NOW);
        assert_eq!(sent(&jar, "http://a.test/d/y").as_deref(), Some("a=3; b=2"));
        assert_eq!(sent(&jar, "https://a.test/d/y").as_deref(), Some("c=4; a=3; b=2"));
        jar.take(b"b=; Max-Age=0", plain.view(), NOW);
        assert_eq!(sent(&jar, "http://a.test/").as_deref(), Some("a=3"));
        let over = url("http://a.test/d/x");
        assert_eq!(jar.take(b"c=5", over.view(), NOW), SetOutcome::Refused, "it is for HTTPS");
        let later = UnixTime::from_micros(NOW.as_micros() + 61_000_000);
        jar.take(b"t=1; Max-Age=60", plain.view(), NOW);
        assert_eq!(
            jar.field(plain.view(), later).as_deref(),
            Some(&b"a=3"[..]),
            "t is over by then"
        );
    }

    /// Law: a jar stays within its caps, whatever is set.
    #[test]
    fn a_jar_is_bounded() {
        let at = url("http://a.test/");
        let mut jar = Jar::default();
        let large = format!("k={}", "x".repeat(COOKIE_BYTES_MAX));
        assert_eq!(jar.take(large.as_bytes(), at.view(), NOW), SetOutcome::Full);
        for number in 0..200 {
            let field = format!("k{number}={}", "x".repeat(number * 7));
            jar.take(field.as_bytes(), at.view(), NOW);
        }
        assert!(jar.cookies.len() <= COOKIES_MAX && jar.bytes() <= JAR_BYTES_MAX);
        assert!(jar.cookies.len() > 20);
    }
}
