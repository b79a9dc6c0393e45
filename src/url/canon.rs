//! Reference and base to canonical URL: the WHATWG parser, and a fast path for what pages hold.
//!
//! On top of the standard, for what is fetched: the fragment goes; user name and password go (they
//! are not sent, and would make two URLs of one page); the host must fit the DNS (RFC 1035 section
//! 2.3.4: labels of 1 to 63 bytes, 253 in all); port 0 and over-long URLs are refused.
//! [`whatwg`] is the standard without these rules.
//!
//! Law: what the fast path makes of a reference is what the slow path makes of it, byte for byte.
//! Cost: the fast path is linear in the reference, without allocation once the batch has grown; the
//! slow path allocates and takes some ten times as long. A reference of more than four times the
//! longest URL is refused unread, and a host of more than 1,024 bytes as it is written, since IDNA
//! takes time that grows with the square of its length (the standard has no such limit).
//! [`Joiner::take_work`] says what references cost. Source: WHATWG URL standard, section 4.4.

mod fast;
mod standard;
#[cfg(test)]
mod tests;

use self::standard::{Base, Resolved, resolve};
use super::{Batch, Invalid, Limits, Marks, URL_BYTES_CAP, Url, UrlRef, ip_of_host, text_of};
use encoding_rs::{Encoding, UTF_8};

/// Resolves the references of one page.
#[derive(Clone, Debug)]
pub struct Joiner<'a> {
    /// Where the page is; the base unless the page says otherwise.
    document: UrlRef<'a>,
    base: Base<'a>,
    limits: Limits,
    /// What the slow path cost since [`Joiner::take_work`], in units.
    work: usize,
}

impl<'a> Joiner<'a> {
    /// For a page that came from `base`, within the default [`Limits`].
    pub fn new(base: UrlRef<'a>) -> Self {
        Self::within(base, Limits::default())
    }

    /// For a page that came from `base`, within `limits`.
    pub fn within(base: UrlRef<'a>, limits: Limits) -> Self {
        Self { document: base, base: Base::web(base.text, base.marks), limits, work: 0 }
    }

    /// Takes the page's `<base href>`: to be called for the first that has the attribute, alone.
    ///
    /// It is resolved against the page's own URL. One that doesn't parse, or is `data:` or
    /// `javascript:`, leaves the page's own URL in force (HTML standard, section 4.2.3, "set the
    /// frozen base URL"), and so does a web URL that can't be fetched. Another scheme does count:
    /// relative references then lead nowhere.
    pub fn rebase(&mut self, href: &[u8]) {
        let href = text_of(href);
        let href = relevant(&href);
        if href.len() > reference_bytes_max(self.limits) {
            return;
        }
        self.work += slow_units(href);
        let mut document = Base::web(self.document.text, self.document.marks);
        let Ok(resolved) = resolve(Some(&mut document), href, UTF_8) else { return };
        let mut text = String::new();
        match write_fetched(&resolved, &mut text) {
            Ok(marks) => self.base = Base::web(text, marks),
            Err(Invalid::Scheme) if !matches!(resolved.scheme(), "data" | "javascript") => {
                self.base = Base::other(&resolved);
            }
            Err(_) => {}
        }
    }

    /// Resolves a reference and puts the URL into the batch, or leaves the batch as it was.
    ///
    /// `reference` is the value of a header field. Bytes outside ASCII that are not UTF-8 stay the
    /// bytes they are, as escapes ([`text_of`]). `charset` is the one that the query is escaped in.
    pub fn join(
        &mut self,
        reference: &[u8],
        charset: &'static Encoding,
        batch: &mut Batch,
    ) -> Result<(), Invalid> {
        self.join_str(&text_of(reference), charset, batch)
    }

    /// [`Joiner::join`] of what is known to be UTF-8. The `charset` of a link is its page's:
    /// browsers escape the query in it.
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
            Some(marks) => Ok(marks),
            None => self.append(relevant(reference), charset, &mut batch.text),
        };
        match joined.and_then(|marks| within(self.limits, batch.text.len() - start, marks)) {
            Ok(marks) => {
                batch.seal(start, marks);
                Ok(())
            }
            Err(invalid) => {
                batch.text.truncate(start);
                Err(invalid)
            }
        }
    }

    /// What the slow path cost since the last call, in units of about 2 to 10 nanoseconds.
    pub fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// Appends the canonical URL to `out`; on failure `out` may hold a part of it.
    #[inline(never)]
    fn append(
        &mut self,
        text: &str,
        charset: &'static Encoding,
        out: &mut String,
    ) -> Result<Marks, Invalid> {
        let scheme = Scheme::of(text.as_bytes());
        check_reference(text, scheme, self.limits)?;
        let start = out.len();
        let fast = match (scheme, &self.base) {
            (Scheme::None, Base::Web(base)) => fast::relative(base, text, out),
            (Scheme::None, Base::Other(_)) => None,
            (scheme, _) => fast::absolute(scheme, text, out),
        };
        if let Some(marks) = fast {
            return Ok(marks);
        }
        out.truncate(start);
        self.work += slow_units(text);
        write_fetched(&resolve(Some(&mut self.base), text, charset)?, out)
    }
}

/// Units that the slow path costs beside those of a byte's copy.
const SLOW_UNITS: usize = 500;
/// Units that a byte of a reference costs on the slow path.
const SLOW_WEIGHT: usize = 4;
/// Punycode takes time by the square of a host's length: 340 ideographs 144 microseconds, 1,000
/// letters behind `xn--` that decode to nothing 475.
const IDNA_DIVISOR: usize = 16;

/// What the slow path costs for a reference, in units.
fn slow_units(text: &str) -> usize {
    let host_bytes = standard::raw_host_bytes(text).min(standard::RAW_HOST_BYTES_MAX);
    SLOW_UNITS + SLOW_WEIGHT * text.len() + host_bytes * host_bytes / IDNA_DIVISOR
}

/// The canonical form of an absolute URL.
pub(super) fn parse(text: &str, limits: Limits) -> Result<Url, Invalid> {
    let text = relevant(text);
    let scheme = Scheme::of(text.as_bytes());
    check_reference(text, scheme, limits)?;
    let mut out = String::with_capacity(text.len() + 1);
    let marks = match fast::absolute(scheme, text, &mut out) {
        Some(marks) => marks,
        None => {
            out.clear();
            write_fetched(&resolve(None, text, UTF_8)?, &mut out)?
        }
    };
    let marks = within(limits, out.len(), marks)?;
    Ok(Url { text: out.into(), marks })
}

/// What the standard makes of a reference: the serialised URL, with user, password and fragment,
/// whatever its scheme. For web URLs as of 2026; for others as the `url` crate has them.
pub fn whatwg(base: Option<&str>, reference: &str) -> Result<String, Invalid> {
    let base = base.map(|base| resolve(None, base, UTF_8)).transpose()?;
    let mut base = base.map(|resolved| Base::of(&resolved)).transpose()?;
    Ok(resolve(base.as_mut(), reference, UTF_8)?.into_text())
}

/// The canonical form of a host that somebody wrote down.
pub(super) fn host(text: &str) -> Result<String, Invalid> {
    if text.contains(['/', '\\', '?', '#', '@']) {
        return Err(Invalid::Host);
    }
    // With a port of its own behind it, a text that brings one is refused.
    let url = parse(&format!("http://{text}:81/"), Limits::default())?;
    Ok(url.view().host().into())
}

/// The part of a reference that decides about the URL: without white space and control characters
/// around it, and without the fragment. If white space precedes the fragment, the `#` stays to
/// keep it from being trimmed a second time.
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

/// Refuses what need not be read: other schemes, and references that are far too long.
fn check_reference(text: &str, scheme: Scheme, limits: Limits) -> Result<(), Invalid> {
    if scheme == Scheme::Other {
        Err(Invalid::Scheme)
    } else if text.len() > reference_bytes_max(limits) {
        Err(Invalid::TooLong)
    } else {
        Ok(())
    }
}

/// A URL may be shorter than its reference, by dot segments and line breaks; not four times.
fn reference_bytes_max(limits: Limits) -> usize {
    limits.url_bytes_max.min(URL_BYTES_CAP) * 4
}

fn within(limits: Limits, bytes: usize, marks: Marks) -> Result<Marks, Invalid> {
    if bytes > limits.url_bytes_max.min(URL_BYTES_CAP) { Err(Invalid::TooLong) } else { Ok(marks) }
}

/// The scheme a reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    None,
    Http,
    Https,
    Other,
}

impl Scheme {
    /// Standard, "scheme start state" and "scheme state": a letter, then letters, digits, `+`, `-`
    /// and `.` up to a colon. A name with line breaks in it is not recognised.
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

/// Appends the form that is fetched: our rules on top of the standard.
fn write_fetched(resolved: &Resolved, out: &mut String) -> Result<Marks, Invalid> {
    let Some(is_https) = resolved.is_https() else { return Err(Invalid::Scheme) };
    let rest = resolved.host_to_query();
    if rest.len() > URL_BYTES_CAP - "https://".len() {
        return Err(Invalid::TooLong);
    }
    let start = out.len();
    out.push_str(if is_https { "https://" } else { "http://" });
    out.push_str(rest);
    let marks = Marks::find(&out[start..]).expect("the standard's serialisation has this shape");
    if marks.port == 0 {
        return Err(Invalid::Port);
    }
    check_host(&out[start..][marks.host_start()..usize::from(marks.host_end)])?;
    Ok(marks)
}

/// RFC 1035 section 2.3.4.
const LABEL_BYTES_MAX: usize = 63;
/// RFC 1035 section 2.3.4: 255 on the wire, which is 253 as text without the last dot.
const NAME_BYTES_MAX: usize = 253;

/// Whether a host can be asked for: an address, or a name of the DNS. Letters are not judged, since
/// names with `_` do exist on the web.
fn check_host(host: &str) -> Result<(), Invalid> {
    let name = host.strip_suffix('.').unwrap_or(host);
    let fits = |label: &str| (1..=LABEL_BYTES_MAX).contains(&label.len());
    let is_name = name.len() <= NAME_BYTES_MAX && name.split('.').all(fits);
    if is_name || ip_of_host(host).is_some() { Ok(()) } else { Err(Invalid::Host) }
}
