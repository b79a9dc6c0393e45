//! Session ids in URLs, recognised by their shape: a site that hands out a new one with each page
//! has no end otherwise.
//!
//! Names that the makers of server software gave (`phpsessid`, `oscsid`) are dropped by the lists
//! of [`super::Settings`], whatever the value. Here are names that mean other things elsewhere
//! (`sid`, `s`): they are dropped only with a value that is random to the eye, also behind a `;`
//! within a query. And segments of a path: ASP.NET's `/(S(lit3py55t21z5v55vlm25s55))/`, and pairs
//! of a name that means nothing else and 32 digits, `/sid/<md5>/`.
//!
//! A hash under another name, such as `?id=<md5>`, is never one. Cost: a look at the first byte of
//! each parameter, at the first `(` of a path, and at slashes 33 bytes apart.

use crate::url::look::ID_BYTES as PAIR_BYTES;

/// Names that carry session ids, and other things as well.
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
/// Longest of them.
const NAME_BYTES_MAX: usize = 10;

/// Names of session ids that are a segment of a path, with the value in the next one.
const PAIR_NAMES: [&str; 7] =
    ["sid", "sessid", "session_id", "sessionid", "phpsessid", "xtcsid", "oscsid"];

/// Whether a parameter, name and value, is a session id.
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
    let (name, value) = (&param[..at], &param[at + 1..]);
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())) && is_random(value)
}

/// `BV_SessionID=@@@@0551234567.1104012345@@@@`
fn is_broadvision(param: &[u8]) -> bool {
    const NAME: &[u8] = b"bv_sessionid=";
    let Some((name, value)) = param.split_at_checked(NAME.len()) else { return false };
    let marks: [&[u8]; 2] = [b"@@@@", b"%40%40%40%40"];
    let is_within = |mark: &[u8]| {
        value.strip_prefix(mark).is_some_and(|rest| rest.len() > mark.len() && rest.ends_with(mark))
    };
    name.eq_ignore_ascii_case(NAME) && marks.into_iter().any(is_within)
}

/// Leaves session ids out of a parameter, from `start` to the end, that is a list of some, with
/// `;` between them; whether nothing is left of it.
pub(super) fn leaves_nothing(start: usize, out: &mut Vec<u8>) -> bool {
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

/// Whether a value looks drawn: a hash in hexadecimal digits, a UUID, or what PHP makes of one.
fn is_random(value: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    let mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    match value.len() {
        32 | 40 | 64 => mixed && value.iter().all(u8::is_ascii_hexdigit),
        26 => mixed && value.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'v')),
        36 => mixed && value.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-'),
        _ => false,
    }
}

/// Whether a path may have a segment that is a session id.
pub(super) fn may_have_segment(path: &[u8]) -> bool {
    memchr::memchr_iter(b'(', path).any(|at| at > 0 && path[at - 1] == b'/')
}

/// Whether a path may have a pair of segments that is one: [`super::Look::may_have_pair`] of a text
/// that is too long for a look.
pub(super) fn may_have_pair(path: &[u8]) -> bool {
    memchr::memchr_iter(b'/', path).any(|at| path.get(at + PAIR_BYTES + 1) == Some(&b'/'))
}

/// Whether a segment says that the next one is a session id.
pub(super) fn is_pair_name(segment: &[u8]) -> bool {
    PAIR_NAMES.iter().any(|name| segment.eq_ignore_ascii_case(name.as_bytes()))
}

/// Whether a segment is a session id, if the one before it is a name of one.
pub(super) fn is_pair_value(segment: &[u8]) -> bool {
    segment.len() == PAIR_BYTES && is_random(segment)
}

/// Whether a segment is a session id of ASP.NET: letters, each with a value in parentheses, all in
/// parentheses (`(X(1)S(lit3py55t21z5v55vlm25s55))`), or one value alone, as its first version had.
pub(super) fn is_segment(segment: &[u8]) -> bool {
    let inner = segment.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
    let Some(mut rest) = inner else { return false };
    if is_id(rest) {
        return true;
    }
    let mut has_id = false;
    while let [letter, b'(', after @ ..] = rest {
        let Some(end) = memchr::memchr(b')', after) else { return false };
        if !letter.is_ascii_uppercase() || end == 0 {
            return false;
        }
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        has_id |= end >= ID_BYTES && after[..end].iter().all(is_token);
        rest = &after[end + 1..];
    }
    has_id && rest.is_empty()
}

/// Characters of a session id of ASP.NET.
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
        let no = ["(S())", "(S(1))", "(disambiguation)", "(2)", "()", "S(x)", "(X(1))", "((a))"];
        for segment in no {
            assert!(!is_segment(segment.as_bytes()), "{segment}");
        }
        assert!(!may_have_segment(b"/wiki/Mercury_(planet)"));
    }
}
