//! Parses one line of a seed file to a URL: removes quotes and the like around the URL, and finds
//! mistakes and doubts.
//!
//! Law: the canonical text of a parsed URL is itself parsed to the same URL.

use super::{Doubt, Reason};
use crate::url::{Invalid, Url};

/// Parses a line whose comment was removed. `is_cell` is true if the text is a cell of a table, so
/// that commas and other separators in it belong to the URL.
pub(super) fn read(content: &[u8], is_cell: bool) -> Result<(Url, Vec<Doubt>), Reason> {
    let content = without_rank(content);
    let (wrapped, note) = without_quotes(content);
    let text = std::str::from_utf8(wrapped).map_err(|_| Reason::NotUtf8)?;
    let text = without_curly_quotes(text.trim_matches(is_invisible)).ok_or(Reason::Quote)?;
    let url = url_of(text)?;
    let mut doubts = Vec::new();
    if !is_cell && !content.starts_with(b"\"") && !content.starts_with(b"<") {
        let separators = [',', ';', '|'].into_iter().filter(|c| is_separated(text, *c));
        doubts.extend(separators.map(Doubt::Separator));
    }
    let kinds = [
        (Doubt::SecondUrl, holds_url(note)),
        (Doubt::Credentials, authority(text).contains('@')),
        (Doubt::Ending, has_odd_ending(text)),
        (Doubt::Entity, text.contains("&amp;")),
        (Doubt::Backslash, text.contains('\\')),
    ];
    doubts.extend(kinds.into_iter().filter(|(_, is_so)| *is_so).map(|(doubt, _)| doubt));
    doubts.extend(doubt_of_host(text, &url));
    Ok((url, doubts))
}

/// Returns the line without a rank and a tab before the URL. A rank is written `1`, `1.` or `1)`.
fn without_rank(content: &[u8]) -> &[u8] {
    let Some(at) = memchr::memchr(b'\t', content) else { return content };
    let rank = content[..at].trim_ascii_end();
    let rank = rank.strip_suffix(b".").or_else(|| rank.strip_suffix(b")")).unwrap_or(rank);
    let is_rank = !rank.is_empty() && rank.iter().all(u8::is_ascii_digit);
    if is_rank { content[at..].trim_ascii() } else { content }
}

/// Splits a line into the URL, without its quotes or angle brackets, and the note after it. If
/// another word and a tab precede the URL, the word stays in the first part, so that [`url_of`]
/// refuses it.
pub(super) fn without_quotes(content: &[u8]) -> (&[u8], &[u8]) {
    let inner = |open: u8, close: u8| -> Option<(&[u8], &[u8])> {
        let rest = content.strip_prefix(&[open])?;
        let (inner, after) = rest.split_at(memchr::memchr(close, rest)?);
        let after = &after[1..];
        let is_end = after.first().is_none_or(|byte| b",;|\t ".contains(byte));
        (is_end && (open != b'<' || !is_tag(inner))).then_some((inner, after))
    };
    let wrapped = inner(b'"', b'"').or_else(|| inner(b'\'', b'\'')).or_else(|| inner(b'<', b'>'));
    let (content, after) = wrapped.unwrap_or((content, b""));
    let Some(end) = memchr::memchr(b'\t', content) else { return (content, after) };
    let (first, note) = (&content[..end], content[end..].trim_ascii());
    let is_url = note.starts_with(b"http://") || note.starts_with(b"https://");
    let is_word = !first.iter().any(|byte| b".:/?".contains(byte));
    if is_url && is_word {
        return (content, after);
    }
    (first.trim_ascii(), if after.is_empty() { note } else { after })
}

/// Returns whether the text after an opening angle bracket is a tag of HTML or XML, not a URL.
fn is_tag(inner: &[u8]) -> bool {
    let inner = inner.split(|byte| *byte == b'>').next().unwrap_or_default();
    let is_url = inner.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"http"));
    let is_end = inner.starts_with(b"/") && !inner.starts_with(b"//");
    !is_url && (!inner.contains(&b'.') || inner.iter().any(u8::is_ascii_whitespace) || is_end)
}

fn url_of(text: &str) -> Result<Url, Reason> {
    if text.starts_with('<') && is_tag(&text.as_bytes()[1..]) {
        return Err(Reason::Markup);
    }
    if let Some(c) = text.chars().find(|&c| is_invisible_in_url(c)) {
        return Err(Reason::Invisible(c));
    }
    if text.contains(|c: char| c.is_whitespace() && c != '\t') {
        return Err(Reason::WhiteSpace);
    }
    if text.starts_with(['"', '\'', '<']) || is_unpaired(text) {
        return Err(Reason::Quote);
    }
    if text.starts_with(['+', '-']) {
        return Err(Reason::Directive);
    }
    let scheme = missing_scheme(text);
    if holds_two(text) {
        return Err(Reason::TwoUrls);
    }
    let rest = if scheme.is_none() { text.split_once("://").unwrap_or_default().1 } else { text };
    // The `://` is where the host should be. By the URL standard the text before it would be the
    // host.
    if rest.find("://").is_some_and(|at| !rest[..at].contains(['/', '?', '#'])) {
        return Err(Reason::Prefix);
    }
    let url = match scheme {
        None => Url::parse(text),
        // A path without a host: by the URL standard its first folder would be the host.
        Some(_) if text.starts_with('/') && !text.starts_with("//") => Err(Invalid::Host),
        Some(_) if looks_like_mail(text) => return Err(Reason::MailAddress),
        Some(scheme) => Url::parse(&format!("{scheme}{text}")),
    };
    let url = url.map_err(Reason::Invalid)?;
    refused_host(&url, scheme.is_some()).map_or(Ok(()), Err)?;
    // The URL standard's replacement of backslashes by slashes may have created a second URL.
    if holds_two(url.as_str()) { Err(Reason::TwoUrls) } else { Ok(url) }
}

/// Returns the mistake in a host that the URL standard allows but no seed has; `None` if there is
/// none.
fn refused_host(url: &Url, lacks_scheme: bool) -> Option<Reason> {
    let url = url.view();
    let host = url.host();
    let name = host.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_misspelt = lacks_scheme && !host.contains('.') && url.path().starts_with("//");
    if is_misspelt || matches!(name, "http" | "https" | "ftp") {
        return Some(Reason::Scheme);
    }
    let is_named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (!host.starts_with('[') && !host.bytes().all(is_named)).then_some(Reason::HostName)
}

/// Returns whether a second URL begins inside the text: after a separator, or directly after the
/// first one if the line end between them is missing. A URL that is part of the first one's path
/// (after a slash) or the value of a parameter doesn't count.
fn holds_two(text: &str) -> bool {
    let bytes = text.as_bytes();
    let query = memchr::memchr(b'?', bytes).unwrap_or(bytes.len());
    let mut is_list = false;
    for at in memchr::memmem::find_iter(bytes, b"://") {
        let letters = |byte: &u8| !byte.is_ascii_alphanumeric();
        let start = bytes[..at].iter().rposition(letters).map_or(0, |before| before + 1);
        // There is no path before this `://`, so it is at the host, which `url_of` checks.
        if !bytes[..start].contains(&b'/') {
            continue;
        }
        let (mut word, before) = (&bytes[start..at], bytes[start - 1]);
        if before == b'%' {
            word = word.get(2..).unwrap_or_default();
        }
        let is_one = |scheme: &&[u8]| word.to_ascii_lowercase().ends_with(scheme);
        let Some(scheme) = [&b"https"[..], b"http", b"ftp"].into_iter().find(is_one) else {
            continue;
        };
        let is_joined = word.len() > scheme.len() || !before.is_ascii();
        let is_separated = b",;|\"<>)]}^`\t ".contains(&before);
        // URLs that are separated by commas inside one parameter are a list, which belongs to the
        // first URL.
        if is_joined || is_separated && !is_list {
            return true;
        }
        is_list |= start > query && before == b'=';
    }
    false
}

/// Returns whether a character is invisible: white space (also beyond ASCII) or without a width.
pub(super) fn is_invisible(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
}

/// Returns whether a character is invisible and never part of a URL. The joiners U+200C and U+200D
/// can be part of one, because some scripts write words with them.
fn is_invisible_in_url(c: char) -> bool {
    let is_invisible =
        is_invisible(c) && !c.is_whitespace() && !matches!(c, '\u{200c}' | '\u{200d}');
    is_invisible
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || is_line_end(c)
        || c.is_control() && c != '\t'
}

/// Returns whether other programs treat this character as a line end, although this parser doesn't.
fn is_line_end(c: char) -> bool {
    matches!(c, '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns the first character inside a line that other programs treat as a line end; `None` if
/// there is none.
pub(super) fn line_end_in(line: &[u8]) -> Option<char> {
    let text = std::str::from_utf8(line).ok()?;
    text.trim_matches(is_invisible).chars().find(|&c| is_line_end(c))
}

fn is_curly(c: char) -> bool {
    matches!(c, '\u{2018}'..='\u{201f}' | '\u{ab}' | '\u{bb}')
}

/// Returns the text without typographic quotes around it, or unchanged if it doesn't begin with
/// one. Returns `None` if there is an opening quote but no closing one at the end.
fn without_curly_quotes(text: &str) -> Option<&str> {
    let Some(inner) = text.strip_prefix(is_curly) else { return Some(text) };
    let (inner, after) = inner.rsplit_once(is_curly)?;
    after.trim_matches([',', ';']).is_empty().then(|| inner.trim_matches(is_invisible))
}

/// Returns whether a quote or an angle bracket in the text has no counterpart.
fn is_unpaired(text: &str) -> bool {
    let count = |wanted: u8| text.bytes().filter(|byte| *byte == wanted).count();
    count(b'"') % 2 == 1 || count(b'<') != count(b'>') || text.ends_with(is_curly)
}

/// Returns the prefix that makes a text without a scheme a URL: `http:` or `http://`. Returns
/// `None` if the text has a scheme. A name, a colon and a number are host and port, not a scheme.
fn missing_scheme(text: &str) -> Option<&'static str> {
    if text.starts_with("//") {
        return Some("http:");
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let has_scheme = text.split_once(':').is_some_and(|(name, rest)| {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_port =
            digits.len() < rest.len() && (digits.is_empty() || digits.starts_with(['/', '?']));
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name) && !is_port
    });
    if has_scheme { None } else { Some("http://") }
}

fn looks_like_mail(text: &str) -> bool {
    text.contains('@') && !text.contains(['/', ':', '?'])
}

/// Returns the part of a URL with user, host and port, as written.
fn authority(text: &str) -> &str {
    let rest = match missing_scheme(text) {
        None => text.split_once(':').unwrap_or_default().1,
        Some(_) => text,
    };
    let rest = rest.trim_start_matches(['/', '\\']);
    rest.split(['/', '\\', '?', '#']).next().unwrap_or_default()
}

/// Returns whether the text contains the separator. A semicolon before `name=` doesn't count,
/// because it is part of the URL.
fn is_separated(text: &str, separator: char) -> bool {
    let is_name = |c: char| !(c.is_ascii_alphanumeric() || b"-_.".contains(&(c as u8)));
    let mut parts = text.split(separator).skip(1);
    parts.any(|part| separator != ';' || !part.trim_start_matches(|c| !is_name(c)).starts_with('='))
}

/// Returns whether a note, or a row of a table, contains a URL: with its scheme, or as a word by
/// itself.
pub(super) fn holds_url(note: &[u8]) -> bool {
    let note = String::from_utf8_lossy(note);
    if note.contains("http://") || note.contains("https://") {
        return true;
    }
    let is_host = |cell: &str| {
        let host = cell.split(['/', '?', '#', ':']).next().unwrap_or_default();
        let is_end =
            |end: &str| end.len() > 1 && end.bytes().all(|byte| byte.is_ascii_alphabetic());
        !cell.contains(' ') && host.rsplit_once('.').is_some_and(|(_, end)| is_end(end))
    };
    let cells = note.split(['\t', ',', ';', '|']);
    cells.map(|cell| cell.trim_matches(['"', '\'', ' ', '<', '>'])).any(is_host)
}

/// Returns whether the text ends like a sentence (with a dot), a pattern (with a star) or a
/// truncated text.
fn has_odd_ending(text: &str) -> bool {
    let count = |wanted: char| text.chars().filter(|c| *c == wanted).count();
    match text.chars().next_back() {
        // A dot directly after a host name is that of the DNS root, and not odd.
        Some('.') => !text.ends_with(authority(text)),
        Some('*' | '`' | '\u{2026}') => true,
        Some('\'') => count('\'') % 2 == 1,
        Some(')') => count(')') != count('('),
        Some(']') => count(']') != count('['),
        Some('}') => count('}') != count('{'),
        _ => false,
    }
}

/// Returns the doubt about the host of a line in which `http://` or `https://` is missing or
/// malformed; `None` if there is no doubt.
fn doubt_of_host(text: &str, url: &Url) -> Option<Doubt> {
    let slashes = text.split_once("://").map(|(_, rest)| rest.starts_with(['/', '\\']));
    if missing_scheme(text).is_none() && slashes == Some(false) {
        return None;
    }
    let (url, written) = (url.view(), authority(text));
    let written = written.rsplit_once('@').map_or(written, |(_, host)| host);
    if url.ip().is_some_and(|ip| ip.is_ipv4()) {
        let host = written.split(':').next().unwrap_or_default();
        return (host.trim_end_matches('.') != url.host()).then_some(Doubt::Number);
    }
    let host = url.host().trim_end_matches('.');
    let is_dotless = !host.contains('.') && !host.starts_with('[') && host != "localhost";
    is_dotless.then_some(Doubt::Dotless)
}
