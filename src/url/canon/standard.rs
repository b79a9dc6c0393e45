//! The slow path: the WHATWG URL standard, by the `url` crate, mended where it lags behind.
//!
//! Three rules of the standard are newer than the crate, and are kept here for web URLs:
//! a reference that begins with three slashes names a host like one with two; `^` is escaped in
//! a path; a host that is all ASCII never fails for its punycode (whatwg/url change 914: such names
//! are registered and served). To that end the crate sees either an absolute URL or, against a
//! stand-in host, a reference that has none; so a base with such a host is no special case.

use super::super::{Invalid, Marks};
use super::Scheme;
use ::url::{ParseError, Position};
use encoding_rs::{EncoderResult, Encoding, UTF_8};
use std::borrow::Cow;
use std::ops::Range;

/// What references are resolved against.
#[derive(Clone, Debug)]
pub(super) enum Base<'a> {
    /// An http or https URL.
    Web(WebBase<'a>),
    /// Anything else a page names: only its absolute references lead anywhere.
    Other(Box<::url::Url>),
}

#[derive(Clone, Debug)]
pub(super) struct WebBase<'a> {
    /// All of it.
    pub(super) text: Cow<'a, str>,
    /// Bytes before the path.
    pub(super) origin_bytes: usize,
    /// Where the path ends and the query begins.
    pub(super) path_end: usize,
    /// Where the path's last slash ends.
    pub(super) folder_end: usize,
    /// Where the parts of a URL with this origin are; right if the origin names no user, which
    /// holds for every base but those of [`super::whatwg`].
    pub(super) marks: Marks,
    /// The target behind a host that stands in for any other, made when it is first needed.
    stand_in: Option<Box<::url::Url>>,
}

impl<'a> Base<'a> {
    /// A canonical URL.
    pub(super) fn web(text: impl Into<Cow<'a, str>>, marks: Marks) -> Self {
        Self::Web(WebBase::new(text.into(), usize::from(marks.path_start), marks))
    }

    /// A URL that isn't on the web.
    pub(super) fn other(resolved: &Resolved) -> Self {
        let url = ::url::Url::parse(&resolved.text).expect("a serialised URL parses");
        Self::Other(Box::new(url))
    }

    /// Any URL, at the level of the standard.
    pub(super) fn of(resolved: &Resolved) -> Result<Self, Invalid> {
        let Some(is_https) = resolved.is_https() else { return Ok(Self::other(resolved)) };
        let scheme = if is_https { "https://" } else { "http://" };
        let marks = Marks::find(&format!("{scheme}{}", resolved.host_to_query()));
        let marks = marks.ok_or(Invalid::TooLong)?;
        let user_bytes = resolved.host_start - scheme.len();
        let text = resolved.text[..resolved.query_end].to_owned().into();
        let origin_bytes = usize::from(marks.path_start) + user_bytes;
        Ok(Self::Web(WebBase::new(text, origin_bytes, marks)))
    }
}

impl<'a> WebBase<'a> {
    fn new(text: Cow<'a, str>, origin_bytes: usize, marks: Marks) -> Self {
        let target = &text.as_bytes()[origin_bytes..];
        let path_bytes = memchr::memchr(b'?', target).unwrap_or(target.len());
        let slash = memchr::memrchr(b'/', &target[..path_bytes]);
        let path_end = origin_bytes + path_bytes;
        let folder_end = origin_bytes + slash.expect("a path begins with a slash") + 1;
        Self { text, origin_bytes, path_end, folder_end, marks, stand_in: None }
    }

    /// What comes before the path.
    #[inline]
    pub(super) fn origin(&self) -> &str {
        &self.text[..self.origin_bytes]
    }

    /// Path and query.
    #[inline]
    pub(super) fn target(&self) -> &str {
        &self.text[self.origin_bytes..]
    }

    /// Bytes of the path up to its last slash, and with it.
    #[inline]
    pub(super) fn folder_bytes(&self) -> usize {
        self.folder_end - self.origin_bytes
    }

    fn scheme(&self) -> Scheme {
        if self.marks.is_https { Scheme::Https } else { Scheme::Http }
    }

    fn stand_in(&mut self) -> &::url::Url {
        let scheme = if self.marks.is_https { "https" } else { "http" };
        self.stand_in.get_or_insert_with(|| {
            let text = format!("{scheme}://h{}", &self.text[self.origin_bytes..]);
            Box::new(::url::Url::parse(&text).expect("a canonical target parses"))
        })
    }
}

/// What the standard made of a reference.
#[derive(Debug)]
pub(super) struct Resolved {
    text: String,
    host_start: usize,
    query_end: usize,
}

impl Resolved {
    fn of(url: &::url::Url) -> Self {
        let mut text = String::from(&url[..Position::BeforePath]);
        push_target(url, &mut text);
        let query_end = text.len() - url[Position::AfterQuery..].len();
        Self { text, host_start: url[..Position::BeforeHost].len(), query_end }
    }

    /// Whether the scheme is https; `None` if it isn't http either.
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

/// Resolves a reference by the standard, its query escaped in `charset`.
pub(super) fn resolve(
    base: Option<&mut Base<'_>>,
    text: &str,
    charset: &'static Encoding,
) -> Result<Resolved, Invalid> {
    let text = cleaned(text);
    match (Scheme::of(text.as_bytes()), base) {
        (Scheme::None, None) => Err(Invalid::Syntax),
        (Scheme::None | Scheme::Other, Some(Base::Other(base))) => {
            parse(Some(base), &text, charset).map(|url| Resolved::of(&url))
        }
        (Scheme::Other, _) => parse(None, &text, charset).map(|url| Resolved::of(&url)),
        (Scheme::None, Some(Base::Web(base))) => match authority(&text) {
            Some(rest) => {
                let scheme = if base.marks.is_https { "https" } else { "http" };
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

/// Standard, "basic URL parser", steps 1 to 3: white space and control characters around go, tabs
/// and line breaks go wherever they are.
fn cleaned(text: &str) -> Cow<'_, str> {
    let text = text.trim_matches(|c| c <= ' ');
    let is_dropped = |c| matches!(c, '\t' | '\n' | '\r');
    if text.contains(is_dropped) { text.replace(is_dropped, "").into() } else { text.into() }
}

/// What follows the slashes if there are two or more ("special authority ignore slashes state").
fn authority(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(['/', '\\']);
    (text.len() - rest.len() >= 2).then_some(rest)
}

/// Whether two slashes follow the scheme; if not, and it is that of the base, the reference is
/// relative ("special relative or authority state").
fn has_slashes(text: &str) -> bool {
    text.split_once(':').is_some_and(|(_, rest)| authority(rest).is_some())
}

/// A reference that keeps the host of its base.
fn path_only(
    base: &mut WebBase<'_>,
    text: &str,
    charset: &'static Encoding,
) -> Result<Resolved, Invalid> {
    let url = parse(Some(base.stand_in()), text, charset)?;
    let mut text = String::from(base.origin());
    push_target(&url, &mut text);
    let query_end = text.len() - url[Position::AfterQuery..].len();
    let user_bytes = base.origin_bytes - usize::from(base.marks.path_start);
    let host_start = base.marks.host_start() + user_bytes;
    Ok(Resolved { text, host_start, query_end })
}

/// A longer host, as it stands in a reference, is refused before it is decoded and mapped: that
/// takes time that grows with the square of its length. A name that the DNS has room for is
/// shorter, but for some that are percent-encoded or full of characters that IDNA ignores.
pub(super) const RAW_HOST_BYTES_MAX: usize = 1_024;

/// A web URL with a host of its own.
fn absolute(text: &str, charset: &'static Encoding) -> Result<Resolved, Invalid> {
    if raw_host(text).is_some_and(|host| host.len() > RAW_HOST_BYTES_MAX) {
        return Err(Invalid::Host);
    }
    match parse(None, text, charset) {
        Ok(url) => Ok(Resolved::of(&url)),
        Err(Invalid::Host) => ascii_host(text, charset).ok_or(Invalid::Host),
        Err(invalid) => Err(invalid),
    }
}

/// A second try for a host that may have failed for its punycode alone: an ASCII host is taken as
/// it is, in lower case ("domain to ASCII"). The crate gets to see a host with another mark in
/// place of `xn--`, which leaves all other checks to it.
fn ascii_host(text: &str, charset: &'static Encoding) -> Option<Resolved> {
    let place = raw_host(text)?;
    let (host_start, host) = (place.start, &text[place]);
    let real = unescaped(host).filter(|host| host.is_ascii())?.to_ascii_lowercase();
    let masked: Vec<String> = real.split('.').map(mask).collect();
    let masked = masked.join(".");
    if masked == real {
        return None;
    }
    let text = format!("{}{masked}{}", &text[..host_start], &text[host_start + host.len()..]);
    let mut resolved = Resolved::of(&parse(None, &text, charset).ok()?);
    let place = resolved.host_start..resolved.host_start + real.len();
    if resolved.text.get(place.clone())? != masked {
        return None;
    }
    resolved.text.replace_range(place, &real);
    Some(resolved)
}

/// Bytes of the host that a reference names, if it names one.
pub(super) fn raw_host_bytes(text: &str) -> usize {
    let start = match Scheme::of(text.as_bytes()) {
        Scheme::None => authority(text).map(|_| 0),
        _ => text.find(':').map(|colon| colon + 1),
    };
    start.map_or(0, |start| host_behind(text, start).len())
}

/// Where the host of an absolute URL stands, without its port.
fn raw_host(text: &str) -> Option<Range<usize>> {
    text.find(':').map(|colon| host_behind(text, colon + 1))
}

/// The same, in what begins behind the scheme.
fn host_behind(text: &str, start: usize) -> Range<usize> {
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

/// The text with its escapes undone; `None` if that isn't UTF-8.
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

/// Appends path, query and fragment, `^` escaped in the path if this is the web.
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

/// The crate's parser.
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

/// "Percent-encode after encoding": what the charset lacks becomes an escaped character reference.
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
