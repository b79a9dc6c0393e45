//! Resolves a reference against a base to a canonical URL, with a fast path for common references.
//!
//! The WHATWG URL standard applies. In addition, for URLs that are fetched: the fragment is
//! removed; user name and password are removed (they are not sent, and would make two URLs of one
//! page); the host must be valid in the DNS (RFC 1035 section 2.3.4: labels of 1 to 63 bytes, 253
//! in all); port 0 and URLs that are too long are refused. [`whatwg`] is the standard without these
//! rules.
//!
//! Law: fast and slow path return the same bytes for every reference that the fast path handles.
//! Cost: the fast path is linear in the reference, without allocation once the batch has grown. The
//! slow path allocates and takes about ten times as long. A reference of more than four times the
//! longest URL is refused unread, and so is a host of more than 1,024 bytes in its raw form,
//! because IDNA takes time that grows with the square of its length (the standard has no such
//! limit). [`Joiner::take_work`] returns the cost of references.
//! Source: WHATWG URL standard, section 4.4.

mod fast;
mod standard;
#[cfg(test)]
mod tests;

use self::standard::{Base, Resolved, resolve};
use super::{Batch, Invalid, Limits, Parts, URL_BYTES_CAP, Url, UrlRef, ip_of_host, text_of};
use encoding_rs::{Encoding, UTF_8};

/// Resolves the references of one page.
#[derive(Clone, Debug)]
pub struct Joiner<'a> {
    /// The URL of the page, which is the base unless the page sets another one.
    document: UrlRef<'a>,
    base: Base<'a>,
    limits: Limits,
    /// The cost of references on the slow path since the last [`Joiner::take_work`], in units.
    work: usize,
}

impl<'a> Joiner<'a> {
    /// Creates a joiner for the page at `base`, within the default [`Limits`].
    pub fn new(base: UrlRef<'a>) -> Self {
        Self::within(base, Limits::default())
    }

    /// Creates a joiner for the page at `base`, within `limits`.
    pub fn within(base: UrlRef<'a>, limits: Limits) -> Self {
        Self { document: base, base: Base::web(base.text, base.parts), limits, work: 0 }
    }

    /// Sets the base from the page's `<base href>`. Call it only for the first such element with
    /// the attribute.
    ///
    /// The href is resolved against the URL of the page. If it is invalid, or is `data:` or
    /// `javascript:`, the URL of the page stays the base (HTML standard, section 4.2.3, "set the
    /// frozen base URL"), and also if it is a web URL that can't be fetched. Any other scheme is
    /// accepted as base: relative references then lead nowhere.
    pub fn rebase(&mut self, href: &[u8]) {
        let href = text_of(href);
        let href = relevant(&href);
        if href.len() > reference_bytes_max(self.limits) {
            return;
        }
        self.work += slow_units(href);
        let mut document = Base::web(self.document.text, self.document.parts);
        let Ok(resolved) = resolve(Some(&mut document), href, UTF_8) else { return };
        let mut text = String::new();
        match write_fetched(&resolved, &mut text) {
            Ok(parts) => self.base = Base::web(text, parts),
            Err(Invalid::Scheme) if !matches!(resolved.scheme(), "data" | "javascript") => {
                self.base = Base::other(&resolved);
            }
            Err(_) => {}
        }
    }

    /// Resolves a reference and adds the URL to the batch; on an error the batch is unchanged.
    ///
    /// `reference` is the value of a header field. Bytes outside ASCII that are not UTF-8 are kept
    /// as escapes ([`text_of`]). The query is encoded in `charset`.
    ///
    /// # Errors
    /// Returns why the reference is not a URL that can be fetched, or that the batch is full.
    pub fn join(
        &mut self,
        reference: &[u8],
        charset: &'static Encoding,
        batch: &mut Batch,
    ) -> Result<(), Invalid> {
        self.join_str(&text_of(reference), charset, batch)
    }

    /// Resolves a reference like [`Joiner::join`], but takes it as UTF-8 text. For a link,
    /// `charset` is that of its page: browsers encode the query in it.
    pub fn join_str(
        &mut self,
        reference: &str,
        charset: &'static Encoding,
        batch: &mut Batch,
    ) -> Result<(), Invalid> {
        if !batch.has_room(self.limits.url_bytes_max.min(URL_BYTES_CAP)) {
            return Err(Invalid::Full);
        }
        let start = batch.text.len();
        let short = match &self.base {
            Base::Web(base) => fast::short(base, reference, &mut batch.text),
            Base::Other(_) => None,
        };
        let joined = match short {
            Some(parts) => Ok(parts),
            None => self.append(relevant(reference), charset, &mut batch.text),
        };
        match joined.and_then(|parts| within(self.limits, batch.text.len() - start, parts)) {
            Ok(parts) => {
                batch.seal(start, parts);
                Ok(())
            }
            Err(invalid) => {
                batch.text.truncate(start);
                Err(invalid)
            }
        }
    }

    /// Returns the cost of the slow path since the last call, in units of about 2 to 10
    /// nanoseconds.
    pub fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// Appends the canonical URL of a reference to `out`; on failure `out` may contain a part of
    /// it.
    #[inline(never)]
    fn append(
        &mut self,
        text: &str,
        charset: &'static Encoding,
        out: &mut String,
    ) -> Result<Parts, Invalid> {
        let scheme = Scheme::of(text.as_bytes());
        check_reference(text, scheme, self.limits)?;
        let start = out.len();
        let fast = match (scheme, &self.base) {
            (Scheme::None, Base::Web(base)) => fast::relative(base, text, out),
            (Scheme::None, Base::Other(_)) => None,
            (scheme, _) => fast::absolute(scheme, text, out),
        };
        if let Some(parts) = fast {
            return Ok(parts);
        }
        out.truncate(start);
        self.work += slow_units(text);
        write_fetched(&resolve(Some(&mut self.base), text, charset)?, out)
    }
}

/// The cost of one call of the slow path, in units (see [`Joiner::take_work`]), in addition to a
/// cost for each byte.
const SLOW_UNITS: usize = 500;
/// The cost of each byte of a reference on the slow path, in units.
const SLOW_WEIGHT: usize = 4;
/// The cost of punycode, in units, is the square of the host's length divided by this number: 340
/// ideographs take 144 microseconds, 1,000 letters after `xn--` that decode to nothing 475.
const IDNA_DIVISOR: usize = 16;

/// Returns the estimated cost of the slow path for a reference, in units.
fn slow_units(text: &str) -> usize {
    let host_bytes = standard::raw_host_bytes(text).min(standard::RAW_HOST_BYTES_MAX);
    SLOW_UNITS + SLOW_WEIGHT * text.len() + host_bytes * host_bytes / IDNA_DIVISOR
}

/// Returns the maximum of [`Joiner::take_work`] for one reference of this many bytes, each of which
/// may become an escape.
pub const fn units_max(bytes: usize) -> usize {
    let host_bytes = standard::RAW_HOST_BYTES_MAX;
    SLOW_UNITS + SLOW_WEIGHT * 3 * bytes + host_bytes * host_bytes / IDNA_DIVISOR
}

/// Parses an absolute URL to its canonical form.
pub(super) fn parse(text: &str, limits: Limits) -> Result<Url, Invalid> {
    let text = relevant(text);
    let scheme = Scheme::of(text.as_bytes());
    check_reference(text, scheme, limits)?;
    let mut out = String::with_capacity(text.len() + 1);
    let parts = match fast::absolute(scheme, text, &mut out) {
        Some(parts) => parts,
        None => {
            out.clear();
            write_fetched(&resolve(None, text, UTF_8)?, &mut out)?
        }
    };
    let parts = within(limits, out.len(), parts)?;
    Ok(Url { text: out.into(), parts })
}

/// Resolves a reference by the standard alone, without the rules of this module. Returns the
/// serialized URL, with user, password and fragment, whatever its scheme. Web URLs follow the
/// standard of 2026, others the `url` crate.
pub fn whatwg(base: Option<&str>, reference: &str) -> Result<String, Invalid> {
    let base = base.map(|base| resolve(None, base, UTF_8)).transpose()?;
    let mut base = base.map(|resolved| Base::of(&resolved)).transpose()?;
    Ok(resolve(base.as_mut(), reference, UTF_8)?.into_text())
}

/// Returns the canonical form of a host that the operator wrote in the configuration.
pub(super) fn host(text: &str) -> Result<String, Invalid> {
    if text.contains(['/', '\\', '?', '#', '@']) {
        return Err(Invalid::Host);
    }
    // A port is appended, so that a text that contains a port already is refused.
    let url = parse(&format!("http://{text}:81/"), Limits::default())?;
    Ok(url.view().host().into())
}

/// Returns the part of a reference that determines the URL: without white space and control
/// characters at both ends, and without the fragment. If white space precedes the fragment, the `#`
/// is kept so that this white space is not trimmed later.
fn relevant(text: &str) -> &str {
    let is_around = |byte: Option<&u8>| byte.is_some_and(|&b| b <= b' ');
    let text = match is_around(text.as_bytes().first()) || is_around(text.as_bytes().last()) {
        true => text.trim_matches(|c| c <= ' '),
        false => text,
    };
    let Some(hash) = memchr::memchr(b'#', text.as_bytes()) else { return text };
    let keep = hash > 0 && text.as_bytes()[hash - 1] <= b' ';
    &text[..hash + usize::from(keep)]
}

/// Refuses references that need not be parsed: other schemes, and far too long ones.
fn check_reference(text: &str, scheme: Scheme, limits: Limits) -> Result<(), Invalid> {
    if scheme == Scheme::Other {
        Err(Invalid::Scheme)
    } else if text.len() > reference_bytes_max(limits) {
        Err(Invalid::TooLong)
    } else {
        Ok(())
    }
}

/// Returns the maximum length of a reference. Dot segments and line breaks can make a URL shorter
/// than its reference, but in practice not four times.
fn reference_bytes_max(limits: Limits) -> usize {
    limits.url_bytes_max.min(URL_BYTES_CAP) * 4
}

fn within(limits: Limits, bytes: usize, parts: Parts) -> Result<Parts, Invalid> {
    if bytes > limits.url_bytes_max.min(URL_BYTES_CAP) { Err(Invalid::TooLong) } else { Ok(parts) }
}

/// The scheme that a reference names, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    None,
    Http,
    Https,
    Other,
}

impl Scheme {
    /// Parses the scheme: a letter, then letters, digits, `+`, `-` and `.` up to a colon (standard,
    /// "scheme start state" and "scheme state"). A name that contains line breaks is not
    /// recognized.
    fn of(text: &[u8]) -> Self {
        if !text.first().is_some_and(u8::is_ascii_alphabetic) {
            return Self::None;
        }
        let is_other = |&b: &u8| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
        match text.iter().position(is_other) {
            Some(end) if text[end] == b':' => match &text[..end] {
                name if name.eq_ignore_ascii_case(b"http") => Self::Http,
                name if name.eq_ignore_ascii_case(b"https") => Self::Https,
                _ => Self::Other,
            },
            _ => Self::None,
        }
    }
}

/// Appends a resolved URL in the form in which it is fetched: applies the rules of this module in
/// addition to the standard. Returns the offsets of its parts.
fn write_fetched(resolved: &Resolved, out: &mut String) -> Result<Parts, Invalid> {
    let Some(is_https) = resolved.is_https() else { return Err(Invalid::Scheme) };
    let rest = resolved.host_to_query();
    if rest.len() > URL_BYTES_CAP - "https://".len() {
        return Err(Invalid::TooLong);
    }
    let start = out.len();
    out.push_str(if is_https { "https://" } else { "http://" });
    out.push_str(rest);
    let parts = Parts::find(&out[start..]).expect("the standard's serialisation has this shape");
    if parts.port == 0 {
        return Err(Invalid::Port);
    }
    check_host(&out[start..][parts.host_start()..usize::from(parts.host_end)])?;
    Ok(parts)
}

/// The maximum length of a label of a host name, in bytes (RFC 1035 section 2.3.4).
const LABEL_BYTES_MAX: usize = 63;
/// The maximum length of a host name, in bytes (RFC 1035 section 2.3.4): 255 on the wire, which is
/// 253 as text without the last dot.
const NAME_BYTES_MAX: usize = 253;

/// Checks that a host is an address or has the form of a DNS name. Its characters are not checked,
/// because names with `_` do exist on the web.
fn check_host(host: &str) -> Result<(), Invalid> {
    let name = host.strip_suffix('.').unwrap_or(host);
    let fits = |label: &str| (1..=LABEL_BYTES_MAX).contains(&label.len());
    let is_name = name.len() <= NAME_BYTES_MAX && name.split('.').all(fits);
    if is_name || ip_of_host(host).is_some() { Ok(()) } else { Err(Invalid::Host) }
}
