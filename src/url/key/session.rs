//! Recognizes session ids in URLs by their shape.
//!
//! A site that puts a new id into the links of each page would otherwise never end.
//!
//! Names defined by server software (`phpsessid`, `oscsid`) are dropped by the lists of
//! [`super::Settings`], whatever their value. This module handles names that have other meanings
//! elsewhere (`sid`, `s`): they are dropped only if the value looks random, also after a `;` in a
//! query. It also handles path segments: ASP.NET's `/(S(lit3py55t21z5v55vlm25s55))/`, and pairs of
//! an unambiguous name and an id, such as `/sid/<md5>`; osCommerce writes all parameters this way.
//!
//! A hash under another name, such as `?id=<md5>`, never counts as a session id.
//! Cost: a check of the first byte of each parameter, of the first `(` of a path, and of segments
//! as long as an id.

use crate::url::byte_class::ID_BYTES as PAIR_BYTES;
use std::borrow::Cow;

/// Names of parameters that carry session ids on some sites, and other values on others.
const NAMES: [&str; 13] = [
    "s",
    "sid",
    "sess",
    "sessid",
    "session",
    "session_id",
    "session-id",
    "sessionid",
    "transid",
    "nsid",
    "ppsid",
    "xtcsid",
    "phpsession",
];
/// The maximum length of a name, in bytes: that of Drupal's.
const NAME_BYTES_MAX: usize = "SSESS".len() + 32;

/// Names of session ids in a path: the segment after the name is the value.
const PAIR_NAMES: [&str; 8] =
    ["sid", "sessid", "session_id", "sessionid", "phpsessid", "xtcsid", "oscsid", "zenid"];

/// Returns whether a parameter, given as name and value, is a session id.
pub(super) fn is_session(param: &[u8]) -> bool {
    let Some(first) = param.first() else { return false };
    match first.to_ascii_lowercase() {
        b's' | b't' | b'n' | b'p' | b'x' => {}
        b'b' => return is_broadvision(param),
        _ => return false,
    }
    let Some(at) = param.iter().take(NAME_BYTES_MAX + 1).position(|byte| *byte == b'=') else {
        return false;
    };
    let name = without_list_mark(&param[..at]);
    if !NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())) {
        return is_drupal(name);
    }
    let value = unescaped(&param[at + 1..]);
    // `s` is the search term on many sites, so only a hash counts.
    is_hash(&value) || name.len() > 1 && is_random(&value)
}

/// Returns the name of a parameter without the `[]` that marks a list in PHP.
fn without_list_mark(name: &[u8]) -> &[u8] {
    let marks: [&[u8]; 3] = [b"[]", b"%5B%5D", b"%5b%5d"];
    marks.into_iter().find_map(|mark| name.strip_suffix(mark)).unwrap_or(name)
}

/// Returns whether a name is one that Drupal gives to session ids, whatever the value: `SESS`
/// (`SSESS` over TLS) and 32 hexadecimal digits, a hash of the site's address.
fn is_drupal(name: &[u8]) -> bool {
    let Some((name, hash)) = name.split_last_chunk::<32>() else { return false };
    (name.eq_ignore_ascii_case(b"sess") || name.eq_ignore_ascii_case(b"ssess")) && is_hex(hash)
}

/// Returns whether a parameter is a session id of BroadVision, such as
/// `BV_SessionID=@@@@0551234567.1104012345@@@@`.
fn is_broadvision(param: &[u8]) -> bool {
    const NAME: &[u8] = b"bv_sessionid=";
    let Some((name, value)) = param.split_at_checked(NAME.len()) else { return false };
    let marks: [&[u8]; 2] = [b"@@@@", b"%40%40%40%40"];
    let is_within = |mark: &[u8]| {
        value.strip_prefix(mark).is_some_and(|rest| rest.len() > mark.len() && rest.ends_with(mark))
    };
    name.eq_ignore_ascii_case(NAME) && marks.into_iter().any(is_within)
}

/// Removes session ids from a parameter that is a list separated by `;`. The parameter is the text
/// of `out` from `start` on. Returns whether the list had nothing but session ids.
pub(super) fn remove_from_list(start: usize, out: &mut Vec<u8>) -> bool {
    let parts = out[start..].split(|byte| *byte == b';');
    if !parts.clone().any(is_session) {
        return false;
    }
    let kept: Vec<&[u8]> = parts.filter(|part| !is_session(part)).collect();
    let (is_empty, text) = (kept.is_empty(), kept.join(&b';'));
    out.truncate(start);
    out.extend_from_slice(&text);
    is_empty
}

/// Returns whether a value is a hash in hexadecimal digits, a UUID, or PHP's encoding of a hash
/// with its default settings.
fn is_hash(value: &[u8]) -> bool {
    let within = value.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
    match value.len() {
        32 | 40 | 64 => is_hex(value),
        26 => is_random_in(value, b'v'),
        36 | 38 => is_uuid(within.unwrap_or(value)),
        _ => false,
    }
}

/// Returns whether a value is another random id that servers generate: hexadecimal digits of other
/// lengths than a hash, PHP's 32 characters of 5 bits, Django's letters and digits, or PHP's
/// characters of 6 bits.
fn is_random(value: &[u8]) -> bool {
    match value.len() {
        16 | 128 => is_hex(value),
        32 => is_random_in(value, b'z'),
        22 | 27 => is_of_six_bits(value),
        _ => false,
    }
}

/// Returns whether all bytes of a value are hexadecimal digits, some of them letters and some not,
/// so that the value is neither a number nor a word.
fn is_hex(value: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && value.iter().all(u8::is_ascii_hexdigit)
}

fn is_uuid(value: &[u8]) -> bool {
    let digits: Vec<u8> = value.iter().copied().filter(|byte| *byte != b'-').collect();
    digits.len() == 32 && is_hex(&digits)
}

/// Returns whether all bytes of a value are digits and lower-case letters up to `last`, in a
/// mixture that a word with a number doesn't have. Three in a thousand random ids fail this test.
fn is_random_in(value: &[u8], last: u8) -> bool {
    let is_own = |byte: &u8| byte.is_ascii_digit() || (b'a'..=last).contains(byte);
    let is_change = |pair: &&[u8]| pair[0].is_ascii_digit() != pair[1].is_ascii_digit();
    value.iter().all(is_own) && value.windows(2).filter(is_change).count() >= 4
}

/// Returns whether all bytes of a value are digits, letters of both cases, `-` and `,`, in a
/// mixture that `RustConf2024Opening` does not have. Up to 20 in a thousand random ids fail this
/// test.
fn is_of_six_bits(value: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    let is_own = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b',');
    let is_odd = |pair: &&[u8]| match (pair[0], pair[1]) {
        (b'A'..=b'Z', second) => second.is_ascii_uppercase() || second.is_ascii_digit(),
        (b'0'..=b'9', second) => second.is_ascii_lowercase(),
        _ => false,
    };
    let changes = value.windows(2).filter(is_odd).count();
    let needed = if has(u8::is_ascii_digit) { 2 } else { 4 };
    value.iter().all(is_own)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && memchr::memchr_iter(b'-', value).count() <= 3
        && changes >= needed
}

/// Returns a text with its percent escapes decoded.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let escaped = match after {
            [high, low, ..] if *first == b'%' => super::hex_pair(*high, *low),
            _ => None,
        };
        plain.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    Cow::Owned(plain)
}

/// Returns whether a path may have a segment that is a session id of ASP.NET.
pub(super) fn may_have_segment(path: &[u8]) -> bool {
    memchr::memchr2_iter(b'(', b'%', path).any(|at| {
        at > 0 && path[at - 1] == b'/' && (path[at] == b'(' || path[at..].starts_with(b"%28"))
    })
}

/// Returns whether a target (path and query) may have a pair of segments, a name and its value,
/// that is a session id; `true` may be wrong.
pub(super) fn has_pair(target: &[u8]) -> bool {
    let is_pair = |at: usize| {
        let rest = &target[at + 1..];
        let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
        is_pair_value(&rest[..end]) && is_pair_name(super::last_segment(&target[..at]))
    };
    memchr::memchr_iter(b'/', target).any(is_pair)
}

/// Returns whether a path segment is a name of session ids, so that the segment after it is one.
pub(super) fn is_pair_name(segment: &[u8]) -> bool {
    PAIR_NAMES.iter().any(|name| segment.eq_ignore_ascii_case(name.as_bytes()))
}

/// Returns whether a path segment looks like a session id, for a segment that follows a name of
/// session ids.
pub(super) fn is_pair_value(segment: &[u8]) -> bool {
    PAIR_BYTES.contains(&segment.len()) && (is_hash(segment) || is_random(segment))
}

/// Returns whether a segment is a session id of ASP.NET: in parentheses, letters that are each
/// followed by a value in parentheses (`(X(1)S(lit3py55t21z5v55vlm25s55))`), or one value alone, as
/// in its first version.
pub(super) fn is_segment(segment: &[u8]) -> bool {
    if !matches!(segment, [b'(' | b'%', ..]) {
        return false;
    }
    let segment = unescaped(segment);
    let inner = segment.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
    let Some(mut rest) = inner else { return false };
    if is_id(rest) {
        return true;
    }
    let mut has_id = false;
    while let [letter, b'(', after @ ..] = rest {
        let Some(end) = memchr::memchr(b')', after) else { return false };
        if !letter.is_ascii_alphabetic() || end == 0 {
            return false;
        }
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        has_id |= end >= ID_BYTES && after[..end].iter().all(is_token);
        rest = &after[end + 1..];
    }
    has_id && rest.is_empty()
}

/// The length of a session id of ASP.NET, in bytes.
const ID_BYTES: usize = 24;

fn is_id(value: &[u8]) -> bool {
    let is_own = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'5');
    value.len() == ID_BYTES && value.iter().all(is_own) && value.iter().any(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5: &str = "9e107d9d372bb6826bd81d3542a419d6";

    #[test]
    fn parameters_are_sessions_by_name_and_shape() {
        let yes = [
            format!("sid={MD5}"),
            format!("S={MD5}"),
            format!("session_id={}", MD5.to_uppercase()),
            "sessionid=2fd4e1c67a2d28fced849ee1bb76e7391b93eb12".to_owned(),
            "sid=q6mvs3n8fb1m6jhb5q5e3rnj81".to_owned(),
            "session=f81d4fae-7dec-11d0-a765-00a0c91e6bf6".to_owned(),
            "BV_SessionID=@@@@0551234567.1104012345@@@@".to_owned(),
            "bv_sessionid=%40%40%40%40055.110%40%40%40%40".to_owned(),
            format!("sid[]={MD5}"),
            format!("sid%5B%5D={MD5}"),
            format!("SESS{MD5}=1"),
            format!("SSESS{MD5}=x,y"),
            format!("sid={}", &MD5[..16]),
            format!("session={0}{0}{0}{0}", MD5),
            "sessionid=ko5yw2gsq1x7t0zl9dfj3e8pvb6hnmca".to_owned(),
            "sid=3q8vm0t6b1u7kn2pe5rjd9s4gofhl2ac".to_owned(),
            "sid=7wQ2k-Zp,0GtR5xLmNa9bY".to_owned(),
            "sid=7wQ2k-Zp%2C0GtR5xLmNa9bY".to_owned(),
            "session=hX3kP9vTq2LmZ7RcW5yB1nDfG8s".to_owned(),
            "session=%7Bf81d4fae-7dec-11d0-a765-00a0c91e6bf6%7D".to_owned(),
            "session={f81d4fae-7dec-11d0-a765-00a0c91e6bf6}".to_owned(),
        ];
        for param in &yes {
            assert!(is_session(param.as_bytes()), "{param}");
        }
        let no = [
            format!("id={MD5}"),
            format!("hash={MD5}"),
            format!("sid2={MD5}"),
            format!("sidx{MD5}"),
            "s=sessions".to_owned(),
            "sid=12".to_owned(),
            "session=2024".to_owned(),
            "session=12345678901234567890123456789012".to_owned(),
            "s=abcdefabcdefabcdefabcdefabcdefab".to_owned(),
            "section=3".to_owned(),
            MD5.to_owned(),
            format!("id[]={MD5}"),
            format!("hash={MD5}"),
            format!("token={MD5}"),
            format!("SESS{}=1", &MD5[1..]),
            format!("LESS{MD5}=1"),
            format!("s={}", &MD5[..16]),
            "s=7wQ2k-Zp,0GtR5xLmNa9bY".to_owned(),
            "s=iPhone15ProMaxReviews9".to_owned(),
            "s=iphone15problemoffairplan1".to_owned(),
            "session=RustConf2024OpeningDay".to_owned(),
            "session=Rust-2024-Keynote-Intr".to_owned(),
            "session=NASA-Keynote-Rust-Talk".to_owned(),
            "session=WhatsNewInPostgres2024".to_owned(),
            "session=introductiontorust2024keynote123".to_owned(),
            "session=Introduction-To-Rust-2024-1".to_owned(),
            "sid=2024011520240115".to_owned(),
            "BV_SessionID=@@@@".to_owned(),
            "BV_SessionID=@@@@@@@@".to_owned(),
            "BV_SessionID=12".to_owned(),
            "BV_Session".to_owned(),
            "b=1".to_owned(),
            String::new(),
        ];
        for param in &no {
            assert!(!is_session(param.as_bytes()), "{param}");
        }
    }

    #[test]
    fn segments_of_asp_net() {
        let id = "lit3py55t21z5v55vlm25s55";
        for segment in [format!("(S({id}))"), format!("(X(1)S({id}))"), format!("({id})")] {
            assert!(is_segment(segment.as_bytes()), "{segment}");
            assert!(may_have_segment(format!("/{segment}/a").as_bytes()));
        }
        for segment in [
            format!("(s({id}))"),
            format!("(x(1)s({id}))"),
            format!("%28S%28{id}%29%29"),
            format!("%28{id}%29"),
            format!("(S%28{id}%29)"),
        ] {
            assert!(is_segment(segment.as_bytes()), "{segment}");
            assert!(may_have_segment(format!("/a/{segment}/b").as_bytes()));
        }
        let no = [
            "(S())",
            "(S(1))",
            "%28S%281%29%29",
            "(s(b))",
            "%28",
            "%2",
            "(1(2))",
            "(disambiguation)",
            "(2)",
            "()",
            "S(x)",
            "(X(1))",
            "((a))",
        ];
        for segment in no {
            assert!(!is_segment(segment.as_bytes()), "{segment}");
        }
        assert!(!may_have_segment(b"/wiki/Mercury_(planet)"));
        assert!(!may_have_segment(b"/wiki/%C3%A9_%28x%29"));
    }
}
