//! The slow path: the WHATWG URL standard by the `url` crate, corrected where the crate lags
//! behind.
//!
//! Three rules of the standard are newer than the crate, and are implemented here for web URLs:
//! - A reference that begins with three slashes names a host like one with two.
//! - `^` is escaped in a path.
//! - An all-ASCII host is never rejected for invalid punycode (whatwg/url change 914), because such
//!   names are registered and served.
//!
//! For this the crate parses either an absolute URL, or a reference without a host against a base
//! with a placeholder host. So a base with an invalid punycode host is no special case.

use super::super::{Invalid, Parts};
use super::Scheme;
use ::url::{ParseError, Position};
use encoding_rs::{EncoderResult, Encoding, UTF_8};
use std::borrow::Cow;
use std::ops::Range;

/// The base that references are resolved against.
#[derive(Clone, Debug)]
pub(super) enum Base<'a> {
    /// An http or https URL.
    Web(WebBase<'a>),
    /// A URL that is neither http nor https. Only absolute references can be resolved against it.
    Other(Box<::url::Url>),
}

#[derive(Clone, Debug)]
pub(super) struct WebBase<'a> {
    /// The whole URL as text.
    pub(super) text: Cow<'a, str>,
    /// The length of the text before the path, in bytes.
    pub(super) origin_bytes: usize,
    /// The offset at which the path ends and the query begins.
    pub(super) path_end: usize,
    /// The offset after the last slash of the path.
    pub(super) folder_end: usize,
    /// The parts that a URL with the same origin has. Correct only if the origin contains no user
    /// name, which is true of every base but those of [`super::whatwg`].
    pub(super) parts: Parts,
    /// The path and query of the base after a placeholder host, as a URL of the `url` crate.
    /// Created when it is first needed.
    placeholder: Option<Box<::url::Url>>,
}

impl<'a> Base<'a> {
    /// Creates a base from a canonical URL.
    pub(super) fn web(text: impl Into<Cow<'a, str>>, parts: Parts) -> Self {
        Self::Web(WebBase::new(text.into(), usize::from(parts.path_start), parts))
    }

    /// Creates a base from a URL that is neither http nor https.
    pub(super) fn other(resolved: &Resolved) -> Self {
        let url = ::url::Url::parse(&resolved.text).expect("a serialised URL parses");
        Self::Other(Box::new(url))
    }

    /// Creates a base from any URL, by the rules of the standard alone.
    pub(super) fn of(resolved: &Resolved) -> Result<Self, Invalid> {
        let Some(is_https) = resolved.is_https() else { return Ok(Self::other(resolved)) };
        let scheme = if is_https { "https://" } else { "http://" };
        let parts = Parts::find(&format!("{scheme}{}", resolved.host_to_query()));
        let parts = parts.ok_or(Invalid::TooLong)?;
        let user_bytes = resolved.host_start - scheme.len();
        let text = resolved.text[..resolved.query_end].to_owned().into();
        let origin_bytes = usize::from(parts.path_start) + user_bytes;
        Ok(Self::Web(WebBase::new(text, origin_bytes, parts)))
    }
}

impl<'a> WebBase<'a> {
    fn new(text: Cow<'a, str>, origin_bytes: usize, parts: Parts) -> Self {
        let target = &text.as_bytes()[origin_bytes..];
        let path_bytes = memchr::memchr(b'?', target).unwrap_or(target.len());
        let slash = memchr::memrchr(b'/', &target[..path_bytes]);
        let path_end = origin_bytes + path_bytes;
        let folder_end = origin_bytes + slash.expect("a path begins with a slash") + 1;
        Self { text, origin_bytes, path_end, folder_end, parts, placeholder: None }
    }

    /// Returns the part of the base before its path.
    #[inline]
    pub(super) fn origin(&self) -> &str {
        &self.text[..self.origin_bytes]
    }

    /// Returns the path and the query of the base.
    #[inline]
    pub(super) fn target(&self) -> &str {
        &self.text[self.origin_bytes..]
    }

    /// Returns the length of the base's path up to and including its last slash, in bytes.
    #[inline]
    pub(super) fn folder_bytes(&self) -> usize {
        self.folder_end - self.origin_bytes
    }

    fn scheme(&self) -> Scheme {
        if self.parts.is_https { Scheme::Https } else { Scheme::Http }
    }

    fn placeholder(&mut self) -> &::url::Url {
        let scheme = if self.parts.is_https { "https" } else { "http" };
        self.placeholder.get_or_insert_with(|| {
            let text = format!("{scheme}://h{}", &self.text[self.origin_bytes..]);
            Box::new(::url::Url::parse(&text).expect("a canonical target parses"))
        })
    }
}

/// A reference resolved by the standard.
#[derive(Debug)]
pub(super) struct Resolved {
    text: String,
    host_start: usize,
    query_end: usize,
}

impl Resolved {
    fn from_url(url: &::url::Url) -> Self {
        let mut text = String::from(&url[..Position::BeforePath]);
        push_target(url, &mut text);
        let query_end = text.len() - url[Position::AfterQuery..].len();
        Self { text, host_start: url[..Position::BeforeHost].len(), query_end }
    }

    /// Returns whether the scheme of the resolved URL is https, or `None` if it is neither http nor
    /// https.
    pub(super) fn is_https(&self) -> Option<bool> {
        match self.scheme() {
            "http" => Some(false),
            "https" => Some(true),
            _ => None,
        }
    }

    pub(super) fn scheme(&self) -> &str {
        self.text.split_once(':').expect("a URL has a scheme").0
    }

    pub(super) fn host_to_query(&self) -> &str {
        &self.text[self.host_start..self.query_end]
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Resolves a reference by the standard. The query of the reference is encoded in `charset`.
pub(super) fn resolve(
    base: Option<&mut Base<'_>>,
    text: &str,
    charset: &'static Encoding,
) -> Result<Resolved, Invalid> {
    let text = cleaned(text);
    match (Scheme::of(text.as_bytes()), base) {
        (Scheme::None, None) => Err(Invalid::Syntax),
        (Scheme::None | Scheme::Other, Some(Base::Other(base))) => {
            parse(Some(base), &text, charset).map(|url| Resolved::from_url(&url))
        }
        (Scheme::Other, _) => parse(None, &text, charset).map(|url| Resolved::from_url(&url)),
        (Scheme::None, Some(Base::Web(base))) => match authority(&text) {
            Some(rest) => {
                let scheme = if base.parts.is_https { "https" } else { "http" };
                absolute(&format!("{scheme}://{rest}"), charset)
            }
            None => path_only(base, &text, charset),
        },
        (scheme, Some(Base::Web(base))) if scheme == base.scheme() && !has_slashes(&text) => {
            path_only(base, &text, charset)
        }
        (Scheme::Http | Scheme::Https, _) => absolute(&text, charset),
    }
}

/// Removes white space and control characters at both ends, and tabs and line breaks everywhere
/// (standard, "basic URL parser", steps 1 to 3).
fn cleaned(text: &str) -> Cow<'_, str> {
    let text = text.trim_matches(|c| c <= ' ');
    let is_dropped = |c| matches!(c, '\t' | '\n' | '\r');
    if text.contains(is_dropped) { text.replace(is_dropped, "").into() } else { text.into() }
}

/// Returns the text after the slashes at its start, if there are two or more; otherwise `None`
/// (standard, "special authority ignore slashes state").
fn authority(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(['/', '\\']);
    (text.len() - rest.len() >= 2).then_some(rest)
}

/// Returns whether two slashes follow the scheme of a reference. If not, and if its scheme is that
/// of the base, the reference is relative (standard, "special relative or authority state").
fn has_slashes(text: &str) -> bool {
    text.split_once(':').is_some_and(|(_, rest)| authority(rest).is_some())
}

/// Resolves a reference that keeps the host of its base.
fn path_only(
    base: &mut WebBase<'_>,
    text: &str,
    charset: &'static Encoding,
) -> Result<Resolved, Invalid> {
    let url = parse(Some(base.placeholder()), text, charset)?;
    let mut text = String::from(base.origin());
    push_target(&url, &mut text);
    let query_end = text.len() - url[Position::AfterQuery..].len();
    let user_bytes = base.origin_bytes - usize::from(base.parts.path_start);
    let host_start = base.parts.host_start() + user_bytes;
    Ok(Resolved { text, host_start, query_end })
}

/// The maximum length of a host in a reference, in bytes. A longer one is refused before it is
/// decoded and mapped, which takes time that grows with the square of its length. Valid DNS names
/// are shorter, but for some that are percent-encoded or full of characters that IDNA ignores.
pub(super) const RAW_HOST_BYTES_MAX: usize = 1_024;

/// Parses a web URL with a host of its own.
fn absolute(text: &str, charset: &'static Encoding) -> Result<Resolved, Invalid> {
    if raw_host(text).is_some_and(|host| host.len() > RAW_HOST_BYTES_MAX) {
        return Err(Invalid::Host);
    }
    match parse(None, text, charset) {
        Ok(url) => Ok(Resolved::from_url(&url)),
        Err(Invalid::Host) => ascii_host(text, charset).ok_or(Invalid::Host),
        Err(invalid) => Err(invalid),
    }
}

/// Parses a URL again whose host may have been rejected only for its punycode: an ASCII host is
/// kept, in lower case (standard, "domain to ASCII"). The `url` crate is given the host with
/// another prefix in place of `xn--`, so it still makes all other checks.
fn ascii_host(text: &str, charset: &'static Encoding) -> Option<Resolved> {
    let range = raw_host(text)?;
    let (host_start, host) = (range.start, &text[range]);
    let real = unescaped(host).filter(|host| host.is_ascii())?.to_ascii_lowercase();
    let masked: Vec<String> = real.split('.').map(mask).collect();
    let masked = masked.join(".");
    if masked == real {
        return None;
    }
    let text = format!("{}{masked}{}", &text[..host_start], &text[host_start + host.len()..]);
    let mut resolved = Resolved::from_url(&parse(None, &text, charset).ok()?);
    let range = resolved.host_start..resolved.host_start + real.len();
    if resolved.text.get(range.clone())? != masked {
        return None;
    }
    resolved.text.replace_range(range, &real);
    Some(resolved)
}

/// Returns the length of the host in a reference, in bytes; 0 if it has none.
pub(super) fn raw_host_bytes(text: &str) -> usize {
    let start = match Scheme::of(text.as_bytes()) {
        Scheme::None => authority(text).map(|_| 0),
        _ => text.find(':').map(|colon| colon + 1),
    };
    start.map_or(0, |start| host_after(text, start).len())
}

/// Returns the range of the host in an absolute URL, without its port.
fn raw_host(text: &str) -> Option<Range<usize>> {
    text.find(':').map(|colon| host_after(text, colon + 1))
}

/// Returns the range of the host in the text after the scheme, which begins at `start`.
fn host_after(text: &str, start: usize) -> Range<usize> {
    let rest = text[start..].trim_start_matches(['/', '\\']);
    let authority = &rest[..rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len())];
    let user_bytes = authority.rfind('@').map_or(0, |at| at + 1);
    let host = &authority[user_bytes..];
    let start = text.len() - rest.len() + user_bytes;
    start..start + host.find(':').unwrap_or(host.len())
}

fn mask(label: &str) -> String {
    label.strip_prefix("xn--").map_or(label.into(), |rest| format!("zz--{rest}"))
}

/// Returns a text with its percent escapes decoded; `None` if the result isn't UTF-8.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escape = match rest {
            [b'%', high, low, ..] => super::super::key::hex_pair(*high, *low),
            _ => None,
        };
        bytes.push(escape.unwrap_or(*first));
        rest = if escape.is_some() { &rest[3..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

/// Appends the path, the query and the fragment of a URL; escapes `^` in the path of a web URL.
fn push_target(url: &::url::Url, out: &mut String) {
    let (path, rest) = (url.path(), &url[Position::AfterPath..]);
    let start = out.len();
    out.push_str(path);
    if path.contains('^') && matches!(url.scheme(), "http" | "https") {
        let escaped = path.replace('^', "%5E");
        out.replace_range(start.., &escaped);
    }
    out.push_str(rest);
}

/// Calls the URL parser of the `url` crate.
fn parse(
    base: Option<&::url::Url>,
    text: &str,
    charset: &'static Encoding,
) -> Result<::url::Url, Invalid> {
    let encoding = charset.output_encoding();
    let options = ::url::Url::options().base_url(base);
    let url = if encoding == UTF_8 {
        options.parse(text)
    } else {
        options.encoding_override(Some(&|query| encoded(query, encoding).into())).parse(text)
    };
    url.map_err(|error| match error {
        ParseError::EmptyHost
        | ParseError::IdnaError
        | ParseError::InvalidIpv4Address
        | ParseError::InvalidIpv6Address
        | ParseError::InvalidDomainCharacter => Invalid::Host,
        ParseError::InvalidPort => Invalid::Port,
        ParseError::Overflow => Invalid::TooLong,
        _ => Invalid::Syntax,
    })
}

/// Encodes a query for "percent-encode after encoding": a character that the charset lacks becomes
/// an escaped character reference.
fn encoded(text: &str, encoding: &'static Encoding) -> Vec<u8> {
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::with_capacity(text.len() + 16);
    let mut rest = text;
    loop {
        let mut room = [0; 256];
        let (result, read, written) =
            encoder.encode_from_utf8_without_replacement(rest, &mut room, true);
        bytes.extend_from_slice(&room[..written]);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return bytes,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => {
                bytes.extend_from_slice(format!("%26%23{}%3B", u32::from(character)).as_bytes());
            }
        }
    }
}
