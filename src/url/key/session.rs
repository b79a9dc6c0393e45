//! Session ids in URLs, recognised by their shape: a site that hands out a new one with each page
//! has no end otherwise.
//!
//! Names that the makers of server software gave (`phpsessid`, `oscsid`) are dropped by the lists
//! of [`super::Settings`], whatever the value. Here are names that mean other things elsewhere
//! (`sid`, `s`): they are dropped only with a value that is random to the eye. And ASP.NET's
//! segments of a path, `/(S(lit3py55t21z5v55vlm25s55))/`.
//!
//! A hash under another name, such as `?id=<md5>`, is never one. Cost: a look at the first byte of
//! each parameter, and at the first `(` of a path.

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

/// Whether a parameter, name and value, is a session id.
pub(super) fn is_session(param: &[u8]) -> bool {
    let Some(first) = param.first() else { return false };
    if !matches!(first.to_ascii_lowercase(), b's' | b't' | b'n' | b'p' | b'x') {
        return false;
    }
    let Some(at) = param.iter().take(NAME_BYTES_MAX + 1).position(|byte| *byte == b'=') else {
        return false;
    };
    let (name, value) = (&param[..at], &param[at + 1..]);
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())) && is_random(value)
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
