//! Converts the text of a robots.txt to plain lines: from UTF-16, UTF-32 or HTML.
//!
//! A file should be plain UTF-8 (RFC 9309 2.3), but editors save it as UTF-16 or UTF-32, and
//! servers send it as an HTML page. All are converted, so that their rules are obeyed; no other
//! encoding is guessed.
//!
//! Cost: one pass.

use super::SIZE_BYTES_MAX;
use super::parse::Lines;
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use std::borrow::Cow;

/// Returns the complete lines in the first [`SIZE_BYTES_MAX`] bytes of the file. A line that this
/// limit cuts off is left out, because half a rule may forbid more than the whole one.
pub(super) fn whole_lines(text: &[u8]) -> Cow<'_, [u8]> {
    let kept = &text[..text.len().min(SIZE_BYTES_MAX)];
    let next = text.get(kept.len());
    let Some(encoding) = utf_16(text) else {
        let is_whole = matches!(next, None | Some(b'\r' | b'\n'));
        return Cow::Borrowed(if is_whole { kept } else { to_last_end(kept) });
    };
    let (decoded, _) = encoding.decode_with_bom_removal(kept);
    let mut decoded = decoded.into_owned().into_bytes();
    if is_utf_32(text) {
        decoded.retain(|byte| *byte != 0);
    }
    if next.is_some() {
        decoded.truncate(to_last_end(&decoded).len());
    }
    Cow::Owned(decoded)
}

/// Returns the text up to and including its last line end.
pub(super) fn to_last_end(text: &[u8]) -> &[u8] {
    &text[..memchr::memrchr2(b'\r', b'\n', text).map_or(0, |end| end + 1)]
}

/// Returns the byte order of a text in UTF-16, by its byte order mark, or because every other byte
/// of its first two characters is zero. Returns `None` if the text is not in UTF-16.
fn utf_16(text: &[u8]) -> Option<&'static Encoding> {
    match text {
        [0xFF, 0xFE, ..] => Some(UTF_16LE),
        [0xFE, 0xFF, ..] | [0, 0, 0xFE, 0xFF, ..] => Some(UTF_16BE),
        [1..=0x7F, 0, 1..=0x7F, 0, ..] => Some(UTF_16LE),
        [0, 1..=0x7F, 0, 1..=0x7F, ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// Returns whether a text is in UTF-32, by its byte order mark. It is then decoded as UTF-16, so
/// that each ASCII character has a zero beside it.
fn is_utf_32(text: &[u8]) -> bool {
    text.starts_with(&[0xFF, 0xFE, 0, 0]) || text.starts_with(&[0, 0, 0xFE, 0xFF])
}

/// Returns whether a text begins with an HTML tag, or with a declaration of an HTML or XML page.
pub(super) fn begins_with_tag(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text).trim_ascii_start();
    match text {
        [b'<', b'!' | b'?', ..] => true,
        [b'<', next, ..] => next.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Returns whether a line contains an HTML tag. Other text in angle brackets, such as a mail
/// address, doesn't count.
pub(super) fn has_tag(line: &[u8]) -> bool {
    memchr::memchr_iter(b'<', line).any(|at| {
        let inside = &line[at + 1..];
        let inside = inside.strip_prefix(b"/").unwrap_or(inside);
        let end = inside.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'!');
        let name = &inside[..end.unwrap_or(inside.len())];
        let is_ended = end.is_none_or(|end| matches!(inside[end], b'>' | b'/' | b' ' | b'\t'));
        is_ended && BREAKS.iter().chain(&INLINE).any(|known| name.eq_ignore_ascii_case(known))
    })
}

/// Names of elements that end a line, and that begin pages or are common in short ones; and that of
/// the doctype.
const BREAKS: [&[u8]; 26] = [
    b"!doctype",
    b"article",
    b"body",
    b"br",
    b"center",
    b"div",
    b"form",
    b"h1",
    b"h2",
    b"h3",
    b"head",
    b"hr",
    b"html",
    b"iframe",
    b"img",
    b"link",
    b"main",
    b"meta",
    b"p",
    b"pre",
    b"script",
    b"style",
    b"table",
    b"title",
    b"ul",
    b"xmp",
];

/// Names of elements that are part of a line.
const INLINE: [&[u8]; 14] = [
    b"a", b"abbr", b"b", b"big", b"code", b"em", b"font", b"i", b"kbd", b"small", b"span",
    b"strong", b"tt", b"u",
];

/// The text of an HTML page.
pub(super) struct Extract {
    pub(super) text: Vec<u8>,
    /// Offsets in the text and in the page, of each part that was copied.
    parts: Vec<(usize, usize)>,
}

/// Extracts the text of an HTML page. Tags of elements that are not inline end a line; scripts,
/// styles and comments are left out.
pub(super) fn html_to_text(html: &[u8]) -> Extract {
    let mut text = Vec::with_capacity(html.len());
    let mut parts = Vec::new();
    let mut rest = html;
    while let Some(at) = memchr::memchr2(b'<', b'&', rest) {
        parts.push((text.len(), html.len() - rest.len()));
        text.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        rest = match rest {
            [b'&', ..] => reference(rest, &mut text),
            [b'<', b'!', b'-', b'-', ..] => after(rest, b"-->"),
            [b'<', b'/' | b'!' | b'?' | b'a'..=b'z' | b'A'..=b'Z', ..] => tag(rest, &mut text),
            _ => {
                text.push(b'<');
                &rest[1..]
            }
        };
    }
    parts.push((text.len(), html.len() - rest.len()));
    text.extend_from_slice(rest);
    Extract { text, parts }
}

impl Extract {
    /// Returns the line of the page, counted from 1, on which each line of the text begins.
    pub(super) fn page_lines(&self, html: &[u8]) -> Vec<u32> {
        let mut page_lines = Vec::new();
        let (mut part, mut counted, mut page_line) = (0, 0, 1);
        let mut lines = Lines(&self.text);
        loop {
            let start = self.text.len() - lines.0.len();
            if lines.next().is_none() {
                return page_lines;
            }
            while self.parts.get(part + 1).is_some_and(|(text, _)| *text <= start) {
                part += 1;
            }
            let (text, page) = self.parts[part];
            let at = page + start - text;
            page_line += line_ends(&html[counted..at]);
            counted = at;
            page_lines.push(page_line);
        }
    }
}

/// Counts the line ends: LF, CR, or both.
fn line_ends(text: &[u8]) -> u32 {
    let pairs = memchr::memmem::find_iter(text, b"\r\n").count();
    (memchr::memchr2_iter(b'\r', b'\n', text).count() - pairs) as u32
}

/// Skips the tag at the start of `html`, and the whole element if it shows no text. Returns the
/// text after it.
fn tag<'t>(html: &'t [u8], text: &mut Vec<u8>) -> &'t [u8] {
    let inside = &html[1..];
    let inside = inside.strip_prefix(b"/").unwrap_or(inside);
    let name = &inside[..inside.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()];
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    if !INLINE.into_iter().any(is) {
        text.push(b'\n');
    }
    let rest = after(html, b">");
    let hidden = [&b"</script"[..], b"</style"].into_iter().find(|end| is(&end[2..]));
    match hidden {
        Some(end) if html[1] != b'/' => {
            let mut ends = memchr::memmem::find_iter(rest, b"</");
            let is_end = |at: &usize| {
                rest.get(*at..at + end.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(end))
            };
            ends.find(is_end).map_or(&[], |at| &rest[at..])
        }
        _ => rest,
    }
}

/// Returns the text after the next occurrence of `end`.
fn after<'t>(text: &'t [u8], end: &[u8]) -> &'t [u8] {
    memchr::memmem::find(text, end).map_or(&[], |at| &text[at + end.len()..])
}

/// Decodes the character reference at the start of `html` to `text`, if it is that of an ASCII
/// character or a space. Returns the text after it.
fn reference<'t>(html: &'t [u8], text: &mut Vec<u8>) -> &'t [u8] {
    const NAMED: [(&[u8], u8); 5] =
        [(b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"quot", b'"'), (b"nbsp", b' ')];
    let name = &html[1..html.len().min(10)];
    let name = memchr::memchr(b';', name).map(|end| &name[..end]);
    let value = name.and_then(|name| match name {
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16),
        [b'#', digits @ ..] => number(digits, 10),
        _ => NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value),
    });
    text.push(value.unwrap_or(b'&'));
    match (name, value) {
        (Some(name), Some(_)) => &html[name.len() + 2..],
        _ => &html[1..],
    }
}

fn number(digits: &[u8], radix: u32) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(digits, radix).ok().filter(u8::is_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_end_lines_and_scripts_are_left_out() {
        let cases = [
            ("<pre>a\nb</pre>", "\na\nb\n", "a page that shows a file"),
            ("<html><body>a<br>b<BR/>c", "\n\na\nb\nc", "breaks"),
            ("<p>a: <b>*</b></p>c", "\na: *\nc", "inline tags are no break"),
            ("<script>a: /\n</SCRIPT>b", "\n\nb", "scripts"),
            ("<style>a", "\n", "not ended"),
            ("a<!-- b: / -->c", "ac", "comments"),
            ("a &amp;&lt;&#42;&#x2F;&nbsp;&ouml;& b", "a &<*/ &ouml;& b", "references"),
            ("a < b <", "a < b <", "no tag"),
            ("a <b", "a ", "a tag without an end"),
        ];
        for (html, expected, why) in cases {
            assert_eq!(
                String::from_utf8_lossy(&html_to_text(html.as_bytes()).text),
                expected,
                "{why}"
            );
        }
    }

    #[test]
    fn utf_32_with_a_mark_is_decoded() {
        let text = "\u{FEFF}User-agent: *\r\nDisallow: /caf\u{e9}\r\n";
        let plain = text.trim_start_matches('\u{FEFF}');
        let little: Vec<u8> = text.chars().flat_map(|it| u32::from(it).to_le_bytes()).collect();
        let big: Vec<u8> = text.chars().flat_map(|it| u32::from(it).to_be_bytes()).collect();
        for coded in [little, big] {
            let lines = whole_lines(&coded);
            let lines = lines.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&lines);
            assert_eq!(String::from_utf8_lossy(lines), plain);
            let rules = crate::robots::Rules::parse(&coded, "sted");
            assert!(!rules.check("/caf%C3%A9").allowed && rules.check("/").allowed);
        }
    }
}
