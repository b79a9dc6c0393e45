//! The fast path: recognizes references that are canonical already, and copies them.
//!
//! Nearly every link of a page is an absolute path, a relative path or an absolute URL in which
//! nothing needs to be escaped, lower-cased or decoded. Each function here either does exactly what
//! the standard's parser would, or declines with `None` and leaves a part of its output in `out`.
//! In doubt it declines: escapes of dots, hidden files, hosts that end in a number, user names,
//! backslashes, line breaks, everything that isn't ASCII.
//!
//! [`short`] handles nearly all of them: it classifies the bytes of a reference of up to 64 bytes
//! once. References that it declines because they are longer or have a host with upper-case letters
//! may still be handled by [`relative`] and [`absolute`], with a table look-up a byte.
//!
//! Cost: two copies, and some 250 instructions a reference (`bench/stations`); beyond 64 bytes, 10
//! instructions a byte.

use super::super::byte_class::{self, ByteClasses};
use super::super::{default_port, scheme_bytes};
use super::standard::WebBase;
use super::{LABEL_BYTES_MAX, NAME_BYTES_MAX, Parts, Scheme};

/// Resolves a short reference that is given as it is in the page. Declines white space around the
/// reference and anything else unusual, but accepts a fragment.
#[inline]
pub(super) fn short(base: &WebBase<'_>, text: &str, out: &mut String) -> Option<Parts> {
    let bytes = text.as_bytes();
    let classes = ByteClasses::of(bytes)?;
    if bytes.starts_with(b"http") {
        let is_https = bytes.get(4) == Some(&b's');
        if bytes[4 + usize::from(is_https)..].starts_with(b"://") {
            let authority = match bytes.strip_prefix(base.origin().as_bytes()) {
                Some([b'/', ..]) => base.parts,
                _ => short_authority(bytes, classes, is_https)?,
            };
            return short_absolute(text, classes, authority, out);
        }
    }
    let (path_end, end) = ends(bytes, classes)?;
    let mut text = &text[..end];
    let (mut start, mut kept) = (0, base.origin_bytes);
    match bytes.first() {
        _ if end == 0 => kept = base.text.len(),
        Some(b'/') if bytes.get(1) == Some(&b'/') => return None,
        Some(b'/') => {}
        Some(b'?') => kept = base.path_end,
        Some(b'.') => {
            let folder;
            (folder, text) = climb(&base.target()[..base.folder_bytes()], text);
            kept = base.origin_bytes + folder.len();
            start = end - text.len();
        }
        _ => kept = base.folder_end,
    }
    has_no_dot_segment(classes, start, path_end).then_some(())?;
    out.push_str(&base.text[..kept]);
    out.push_str(text);
    Some(base.parts)
}

/// Resolves a short URL that has a lower-case scheme and a path. `parts` describe its authority,
/// which is canonical.
fn short_absolute(
    text: &str,
    classes: ByteClasses,
    parts: Parts,
    out: &mut String,
) -> Option<Parts> {
    let path_start = usize::from(parts.path_start);
    let rest =
        ByteClasses { special: classes.special & !byte_class::before(path_start), ..classes };
    let (path_end, end) = ends(text.as_bytes(), rest)?;
    has_no_dot_segment(classes, path_start, path_end).then_some(())?;
    out.push_str(&text[..end]);
    Some(parts)
}

/// Parses a short URL up to its path; `None` if it has no path or is not canonical up to it.
fn short_authority(bytes: &[u8], classes: ByteClasses, is_https: bool) -> Option<Parts> {
    let start = scheme_bytes(is_https);
    let slashes = classes.slash & !byte_class::before(start);
    (slashes != 0).then_some(())?;
    let path_start = slashes.trailing_zeros() as usize;
    let authority = byte_class::before(path_start) & !byte_class::before(start);
    let (mut host_end, mut port) = (path_start, default_port(is_https));
    if let Some(colon) = byte_class::BitPositions(classes.special & authority).next() {
        (bytes[colon] == b':').then_some(())?;
        host_end = colon;
        port = short_port(&bytes[colon + 1..path_start]).filter(|written| *written != port)?;
    }
    let dots = classes.dot & byte_class::before(host_end) & authority;
    let last = (u64::BITS - dots.leading_zeros()) as usize;
    // A label is empty if a dot is at either end of the name or follows another dot.
    let has_empty = dots & (dots << 1 | 1 << start) != 0 || last.max(start) == host_end;
    let ends_in_number = bytes[last.max(start)].is_ascii_digit();
    if has_empty || ends_in_number || bytes[start..host_end].iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    let narrow = |at: usize| u16::try_from(at).expect("the text is short");
    Some(Parts { host_end: narrow(host_end), path_start: narrow(path_start), port, is_https })
}

/// Parses a port of two to five digits, the first not zero.
fn short_port(digits: &[u8]) -> Option<u16> {
    let fits = (2..=5).contains(&digits.len()) && digits[0] != b'0';
    let add =
        |port: u32, digit: &u8| digit.is_ascii_digit().then(|| port * 10 + u32::from(digit - b'0'));
    let port = if fits { digits.iter().try_fold(0, add)? } else { return None };
    u16::try_from(port).ok()
}

/// Returns whether no path segment between `start` and `path_end` begins with a dot; a segment must
/// begin at `start`.
#[inline]
fn has_no_dot_segment(classes: ByteClasses, start: usize, path_end: usize) -> bool {
    let within = byte_class::before(path_end) & !byte_class::before(start);
    let first = within & within.wrapping_neg();
    classes.dot & within & (classes.slash << 1 | first) == 0
}

/// Returns the ends of the path and of the query of a reference. Returns `None` if a special byte
/// is not canonical or may end a scheme. The fragment is not checked.
#[inline]
fn ends(bytes: &[u8], classes: ByteClasses) -> Option<(usize, usize)> {
    let mut path_end = None;
    for at in byte_class::BitPositions(classes.special) {
        let within = if path_end.is_none() { NOT_PATH } else { NOT_QUERY };
        match bytes[at] {
            b'#' => return Some((path_end.unwrap_or(at), at)),
            b'?' if path_end.is_none() => path_end = Some(at),
            // The text before the colon may be a scheme.
            b':' if path_end.is_none() && classes.slash & byte_class::before(at) == 0 => {
                return None;
            }
            // The escape may encode a dot.
            b'%' if path_end.is_none() && (at == 0 || bytes[at - 1] == b'/') => return None,
            byte if CLASS[usize::from(byte)] & within != 0 => return None,
            _ => {}
        }
    }
    Some((path_end.unwrap_or(bytes.len()), bytes.len()))
}

/// Resolves a reference without a scheme against a web base.
pub(super) fn relative(base: &WebBase<'_>, text: &str, out: &mut String) -> Option<Parts> {
    let origin = base.origin();
    match text.as_bytes() {
        [] => {
            out.push_str(&base.text);
        }
        [b'/', b'/', ..] => return authority(&text[2..], base.parts.is_https, out),
        [b'/', rest @ ..] => {
            is_plain_target(rest).then_some(())?;
            out.push_str(origin);
            out.push_str(text);
        }
        [b'?', query @ ..] => {
            is_plain_query(query).then_some(())?;
            out.push_str(&base.text[..base.path_end]);
            out.push_str(text);
        }
        _ => {
            let (folder, rest) = climb(&base.target()[..base.folder_bytes()], text);
            is_plain_target(rest.as_bytes()).then_some(())?;
            out.push_str(origin);
            out.push_str(folder);
            out.push_str(rest);
        }
    }
    Some(base.parts)
}

/// Resolves a reference with a scheme, which must be in lower case.
pub(super) fn absolute(scheme: Scheme, text: &str, out: &mut String) -> Option<Parts> {
    match scheme {
        Scheme::Http => authority(text.strip_prefix("http://")?, false, out),
        Scheme::Https => authority(text.strip_prefix("https://")?, true, out),
        Scheme::None | Scheme::Other => None,
    }
}

/// Resolves the leading `./` and `../` of a relative path. Returns the resulting folder, which is
/// never above the root, and the rest of the path.
fn climb<'a, 'b>(mut folder: &'a str, mut rest: &'b str) -> (&'a str, &'b str) {
    // Segments are short: a loop over the bytes is faster than a call.
    let is_slash = |byte: &u8| *byte == b'/';
    let parent =
        |folder: &'a str| match folder.as_bytes()[..folder.len() - 1].iter().rposition(is_slash) {
            Some(slash) => &folder[..=slash],
            None => folder,
        };
    while rest.starts_with('.') {
        if let Some(below) = rest.strip_prefix("./") {
            rest = below;
        } else if let Some(above) = rest.strip_prefix("../") {
            (folder, rest) = (parent(folder), above);
        } else if rest == "." {
            rest = "";
        } else if rest == ".." {
            (folder, rest) = (parent(folder), "");
        } else {
            break;
        }
    }
    (folder, rest)
}

/// Resolves the text `host[:port][path][?query]` that follows the two slashes of a web URL.
fn authority(text: &str, is_https: bool, out: &mut String) -> Option<Parts> {
    let start = out.len();
    let bytes = text.as_bytes();
    let host_bytes = name_bytes(bytes)?;
    let (port, port_bytes) = match bytes.get(host_bytes) {
        Some(b':') => port(&bytes[host_bytes + 1..])?,
        _ => (default_port(is_https), 0),
    };
    let rest = &text[host_bytes + port_bytes..];
    match rest.as_bytes() {
        [] => {}
        [b'/', target @ ..] => is_plain_target(target).then_some(())?,
        [b'?', query @ ..] => is_plain_query(query).then_some(())?,
        _ => return None,
    }
    out.push_str(if is_https { "https://" } else { "http://" });
    out.push_str(&text[..host_bytes]);
    out[start..].make_ascii_lowercase();
    let host_end = out.len() - start;
    if port != default_port(is_https) {
        out.push_str(&text[host_bytes..host_bytes + port_bytes]);
    }
    let path_start = out.len() - start;
    if !rest.starts_with('/') {
        out.push('/');
    }
    out.push_str(rest);
    let narrow = |at: usize| u16::try_from(at).expect("a name and a port are short");
    Some(Parts { host_end: narrow(host_end), path_start: narrow(path_start), port, is_https })
}

/// Returns the length of a host name that needs neither IDNA (ASCII names are kept as they are) nor
/// the IPv4 parser, and that is valid in the DNS.
fn name_bytes(bytes: &[u8]) -> Option<usize> {
    let (mut end, mut label_start) = (0, 0);
    let fits = |label: usize| (1..=LABEL_BYTES_MAX).contains(&label);
    while let Some(&byte) = bytes.get(end).filter(|&&b| CLASS[usize::from(b)] & NOT_NAME == 0) {
        if byte == b'.' {
            fits(end - label_start).then_some(())?;
            label_start = end + 1;
        }
        end += 1;
    }
    let last = &bytes[label_start..end];
    let ends_in_number = last.first().is_some_and(u8::is_ascii_digit);
    (fits(last.len()) && !ends_in_number && end <= NAME_BYTES_MAX).then_some(end)
}

/// Parses a colon and a port of one to five digits without leading zero. Returns the port and the
/// length of this text.
fn port(bytes: &[u8]) -> Option<(u16, usize)> {
    let digits = bytes.iter().take(6).take_while(|b| b.is_ascii_digit()).count();
    let text = std::str::from_utf8(&bytes[..digits]).ok()?;
    let port = text.parse::<u16>().ok().filter(|_| !text.starts_with('0'))?;
    Some((port, digits + 1))
}

/// Returns whether path and query, from the start of a path segment on, are canonical already.
fn is_plain_target(bytes: &[u8]) -> bool {
    let seen = classes_in(bytes);
    if seen & QUESTION == 0 {
        return is_plain_path(seen, bytes);
    }
    let path_bytes = memchr::memchr(b'?', bytes).expect("there is a question mark");
    let (path, query) = bytes.split_at(path_bytes);
    is_plain_path(classes_in(path), path) && is_plain_query(query)
}

/// Returns whether a path is canonical, by the classes of its bytes. If a segment may begin with a
/// dot or its escape, the segments are checked one by one.
fn is_plain_path(seen: u16, path: &[u8]) -> bool {
    seen & NOT_PATH == 0 && (seen & DOT == 0 || !path.split(|&b| b == b'/').any(starts_with_dot))
}

/// Returns whether a segment may be a dot segment: it begins with a dot, plain or escaped.
fn starts_with_dot(segment: &[u8]) -> bool {
    matches!(segment, [b'.', ..] | [b'%', b'2', b'e' | b'E', ..])
}

fn is_plain_query(bytes: &[u8]) -> bool {
    classes_in(bytes) & NOT_QUERY == 0
}

/// Returns the classes of all bytes together, but `DOT` only for bytes at the start of a segment.
/// The loop has no branch that depends on a byte: mispredicted branches cost more than the rest.
fn classes_in(bytes: &[u8]) -> u16 {
    let (mut seen, mut mask) = (0, 0xff);
    for &byte in bytes {
        let class = CLASS[usize::from(byte)];
        seen |= class & mask;
        mask = class >> 8;
    }
    seen
}

/// The class of bytes that must be escaped in a path segment.
const NOT_PATH: u16 = 1;
/// The class of bytes that must be escaped in a query.
const NOT_QUERY: u16 = 2;
/// The class of bytes that are not allowed in a host name, in upper or lower case.
const NOT_NAME: u16 = 4;
const QUESTION: u16 = 8;
/// The class of the dot, and of the first byte of its escape.
const DOT: u16 = 16;

/// The class of each byte, in the lower half. The upper half has the classes that apply to the byte
/// after it. Source: WHATWG URL standard, section 1.3, the percent-encode sets.
static CLASS: [u16; 256] = classes();

const fn classes() -> [u16; 256] {
    let within = (0xff & !DOT) << 8;
    let mut classes = [NOT_PATH | NOT_QUERY | NOT_NAME | within; 256];
    let mut byte = 0x21_u8;
    while byte < 0x7f {
        let name = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let class = match byte {
            b'"' | b'#' | b'<' | b'>' => NOT_PATH | NOT_QUERY,
            b'^' | b'`' | b'{' | b'}' | b'\\' => NOT_PATH,
            b'\'' => NOT_QUERY,
            b'?' => QUESTION,
            b'.' | b'%' => DOT,
            _ => 0,
        };
        let behind = if byte == b'/' { 0xff << 8 } else { within };
        classes[byte as usize] = class | behind | if name { 0 } else { NOT_NAME };
        byte += 1;
    }
    classes
}
