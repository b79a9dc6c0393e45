//! The charset of a page: what its bytes, its header and its head say, in this order.
//!
//! A byte order mark wins, then the `Content-Type` field, then what a `meta` element or an XML
//! declaration in the first 1,024 bytes says. If nobody says anything, text that is not ASCII and
//! reads as UTF-8 is UTF-8; the rest is windows-1252, as in a browser that knows no language.
//!
//! Nearly all charsets can be scanned for links as they are: the bytes of markup mean the same in
//! them. Not so UTF-16, ISO-2022-JP and the charsets that no browser decodes; [`to_utf8`] is for
//! these.
//!
//! Cost: the first 1,024 bytes, and for undeclared pages a look at all bytes at memory speed.
//! Source: the HTML standard, section 13.2.3; the Encoding standard.

use super::find::is_space;
use encoding_rs::{CoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// How many bytes a declaration is searched in.
const PRESCAN_BYTES: usize = 1_024;

/// The charset of a page with the head field `content_type` and the body `text`.
pub fn charset(content_type: Option<&[u8]>, text: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(text) {
        return encoding;
    }
    content_type
        .and_then(of_field)
        .or_else(|| prescan(&text[..text.len().min(PRESCAN_BYTES)]))
        .unwrap_or_else(|| guess(text))
}

/// Whether pages in `charset` can be scanned as they are. Others go through [`to_utf8`] first, and
/// are then scanned as UTF-8.
pub fn is_scannable(charset: &'static Encoding) -> bool {
    charset.is_ascii_compatible()
}

/// Appends `text` to `into` as UTF-8, a byte order mark left out, what can't be read as U+FFFD;
/// stops at `bytes_max` bytes. Returns whether all of it is there.
pub fn to_utf8(
    charset: &'static Encoding,
    text: &[u8],
    into: &mut Vec<u8>,
    bytes_max: usize,
) -> bool {
    let mut decoder = charset.new_decoder_with_bom_removal();
    let mut rest = text;
    let mut room = bytes_max;
    let mut piece = [0; 4_096];
    loop {
        let (result, read, written, _) = decoder.decode_to_utf8(rest, &mut piece, true);
        let text = std::str::from_utf8(&piece[..written]).expect("a decoder writes UTF-8");
        if written > room {
            let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            into.extend_from_slice(&text.as_bytes()[..end]);
            return false;
        }
        into.extend_from_slice(text.as_bytes());
        rest = &rest[read..];
        room -= written;
        if result == CoderResult::InputEmpty {
            return true;
        }
    }
}

fn guess(text: &[u8]) -> &'static Encoding {
    let is_utf8 = !text.is_ascii() && std::str::from_utf8(text).is_ok();
    if is_utf8 { UTF_8 } else { WINDOWS_1252 }
}

/// The charset parameter of a `Content-Type` field.
fn of_field(field: &[u8]) -> Option<&'static Encoding> {
    let mut rest = field;
    while let Some(semicolon) = memchr::memchr(b';', rest) {
        rest = rest[semicolon + 1..].trim_ascii_start();
        let name_end = rest.iter().position(|byte| matches!(byte, b'=' | b';'));
        let (name, value) = rest.split_at(name_end.unwrap_or(rest.len()));
        let Some((b'=', value)) = value.split_first() else { continue };
        let end = match value.split_first() {
            Some((b'"', inside)) => memchr::memchr(b'"', inside).map(|end| end + 1),
            _ => memchr::memchr(b';', value),
        };
        let (value, after) = value.split_at(end.unwrap_or(value.len()));
        if name.trim_ascii().eq_ignore_ascii_case(b"charset") {
            return Encoding::for_label(value.strip_prefix(b"\"").unwrap_or(value));
        }
        rest = after;
    }
    None
}

/// The charset that a page means when it names `label` in its text: it can't be UTF-16 if it could
/// be read up to there.
pub(super) fn declared(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(label)?;
    Some(if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    })
}

/// The label in the content of `<meta http-equiv=content-type>`.
pub(super) fn of_content(content: &[u8]) -> Option<&[u8]> {
    const WORD: &[u8] = b"charset";
    let mut rest = content;
    loop {
        let place = rest.windows(WORD.len()).position(|word| word.eq_ignore_ascii_case(WORD))?;
        rest = rest[place + WORD.len()..].trim_ascii_start();
        if let Some((b'=', after)) = rest.split_first() {
            rest = after.trim_ascii_start();
            break;
        }
    }
    match rest.split_first()? {
        (quote @ (b'"' | b'\''), inside) => Some(&inside[..memchr::memchr(*quote, inside)?]),
        _ => {
            let end = rest.iter().position(|byte| is_space(*byte) || *byte == b';');
            Some(&rest[..end.unwrap_or(rest.len())])
        }
    }
}

/// The standard's "prescan a byte stream to determine its encoding".
fn prescan(head: &[u8]) -> Option<&'static Encoding> {
    if head.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    in_meta(head).or_else(|| in_declaration(head))
}

/// What the first `meta` that names a charset says.
fn in_meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    while at < head.len() {
        at += memchr::memchr(b'<', &head[at..])?;
        let rest = &head[at..];
        let name = 1 + usize::from(rest.get(1) == Some(&b'/'));
        if rest.starts_with(b"<!--") {
            at += 5 + rest[2..].windows(3).position(|end| end == b"-->")?;
        } else if is_meta(rest) {
            let mut attributes = Prescanned { head, at: at + 5 };
            let encoding = of_meta(&mut attributes)?;
            if encoding.is_some() {
                return encoding;
            }
            at = attributes.at;
        } else if rest.get(name).is_some_and(u8::is_ascii_alphabetic) {
            at += rest.iter().position(|byte| is_space(*byte) || *byte == b'>')?;
            let mut attributes = Prescanned { head, at };
            while attributes.next()?.is_some() {}
            at = attributes.at;
        } else if matches!(rest.get(1), Some(b'!' | b'/' | b'?')) {
            at += memchr::memchr(b'>', rest)? + 1;
        } else {
            at += 1;
        }
    }
    None
}

fn is_meta(rest: &[u8]) -> bool {
    rest.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"<meta"))
        && rest.get(5).is_some_and(|byte| is_space(*byte) || *byte == b'/')
}

/// The charset that one `meta` names, if any; `None` outside if the bytes end within it.
fn of_meta(attributes: &mut Prescanned<'_>) -> Option<Option<&'static Encoding>> {
    let (mut field, mut content, mut charset) = (None, None, None);
    while let Some((name, value)) = attributes.next()? {
        let slot = if name.eq_ignore_ascii_case(b"http-equiv") {
            &mut field
        } else if name.eq_ignore_ascii_case(b"content") {
            &mut content
        } else if name.eq_ignore_ascii_case(b"charset") {
            &mut charset
        } else {
            continue;
        };
        *slot = slot.or(Some(value));
    }
    if let Some(label) = charset {
        return Some(declared(label));
    }
    let is_type = field.is_some_and(|field: &[u8]| field.eq_ignore_ascii_case(b"content-type"));
    Some(content.filter(|_| is_type).and_then(of_content).and_then(declared))
}

/// The attributes of a tag, read as the prescan does.
struct Prescanned<'a> {
    head: &'a [u8],
    at: usize,
}

impl<'a> Prescanned<'a> {
    /// The next attribute, none at the `>`; `None` outside if the bytes end before.
    fn next(&mut self) -> Option<Option<(&'a [u8], &'a [u8])>> {
        self.skip(|byte| is_space(byte) || byte == b'/');
        if *self.head.get(self.at)? == b'>' {
            return Some(None);
        }
        let start = self.at;
        self.at += 1;
        self.skip(|byte| !is_space(byte) && !matches!(byte, b'=' | b'/' | b'>'));
        let name = &self.head[start..self.at];
        self.skip(is_space);
        if *self.head.get(self.at)? != b'=' {
            return Some(Some((name, b"")));
        }
        self.at += 1;
        self.skip(is_space);
        let first = *self.head.get(self.at)?;
        if matches!(first, b'"' | b'\'') {
            let inside = &self.head[self.at + 1..];
            let end = memchr::memchr(first, inside)?;
            self.at += end + 2;
            return Some(Some((name, &inside[..end])));
        }
        let start = self.at;
        self.skip(|byte| !is_space(byte) && byte != b'>');
        self.head.get(self.at)?;
        Some(Some((name, &self.head[start..self.at])))
    }

    fn skip(&mut self, is_passed: impl Fn(u8) -> bool) {
        let passed = self.head[self.at..].iter().take_while(|byte| is_passed(**byte));
        self.at += passed.count();
    }
}

/// What an XML declaration at the very beginning says.
fn in_declaration(head: &[u8]) -> Option<&'static Encoding> {
    const WORD: &[u8] = b"encoding";
    let inside = head.strip_prefix(b"<?xml")?;
    let inside = &inside[..memchr::memchr(b'>', inside)?];
    let word = inside.windows(WORD.len()).position(|word| word == WORD)?;
    let trim = |text: &[u8]| text.iter().take_while(|byte| **byte <= b' ').count();
    let rest = &inside[word + WORD.len()..];
    let rest = rest[trim(rest)..].strip_prefix(b"=")?;
    let (quote, label) = rest[trim(rest)..].split_first()?;
    let label = &label[..memchr::memchr(*quote, label)?];
    let is_label = matches!(quote, b'"' | b'\'') && label.iter().all(|byte| *byte > b' ');
    is_label.then(|| declared(label)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{EUC_KR, GBK, ISO_2022_JP, ISO_8859_2, REPLACEMENT, SHIFT_JIS, WINDOWS_1251};

    #[test]
    fn what_says_the_charset() {
        type Case = (Option<&'static str>, &'static [u8], &'static Encoding, &'static str);
        let cases: [Case; 27] = [
            (Some("text/html; charset=gbk"), b"\xef\xbb\xbfx", UTF_8, "the mark wins"),
            (None, b"\xff\xfe<\0", UTF_16LE, "a mark"),
            (None, b"\xfe\xff\0<", UTF_16BE, "a mark"),
            (Some("text/html;charset=\"Shift_JIS\""), b"<meta charset=gbk>", SHIFT_JIS, "field"),
            (Some("text/html; a=b; CHARSET = euc-kr ;c=d"), b"", EUC_KR, "any case, spaces"),
            (Some("text/html; q=\";charset=gbk;\"; charset=koi8-r"), b"", KOI8, "quoted"),
            (Some("text/html; charset=utf-16le"), b"", UTF_16LE, "a field may say so"),
            (Some("text/html; charset=nonsense"), b"<meta charset=gbk>", GBK, "unknown label"),
            (None, b"<META  CharSet = 'GB2312' >", GBK, "labels stand for a charset"),
            (None, b"<meta/charset=gbk>", GBK, "slash before the attribute"),
            (None, b"<metax charset=gbk>", WINDOWS_1252, "another element"),
            (None, b"<!-- <meta charset=gbk> --><meta charset=big5>", BIG5, "comment"),
            (None, b"<!--><meta charset=gbk>-->", GBK, "the shortest comment"),
            (None, b"<p title='<meta charset=gbk>'><meta charset=big5>", BIG5, "in a value"),
            (None, b"</p a='>'><?x <meta charset=gbk><meta charset=big5>", BIG5, "bogus"),
            (None, b"<meta charset=utf-16>", UTF_8, "can't be, if this was read"),
            (None, b"<meta charset=x-user-defined>", WINDOWS_1252, "as the standard says"),
            (None, b"<meta charset=x charset=gbk>", WINDOWS_1252, "the first counts"),
            (
                None,
                b"<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>",
                WINDOWS_1251,
                "as the field",
            ),
            (None, b"<meta content='charset=gbk'>", WINDOWS_1252, "not as the field"),
            (
                None,
                b"<meta content='charset charset = \"gbk\"' http-equiv=content-type>",
                GBK,
                "the word again, quotes",
            ),
            (
                None,
                b"<meta content='charset=\"gbk' http-equiv=content-type>",
                WINDOWS_1252,
                "quote not closed",
            ),
            (None, b"<?xml version='1.0' encoding=\"iso-8859-2\"?>", ISO_8859_2, "XML"),
            (None, b"<\0?\0x\0", UTF_16LE, "XML in UTF-16 without a mark"),
            (None, b"<meta charset=gbk", WINDOWS_1252, "not closed"),
            (None, "<p>Grüße".as_bytes(), UTF_8, "nobody says; it reads as such"),
            (None, b"<p>Gr\xfc\xdfe", WINDOWS_1252, "nobody says; it doesn't"),
        ];
        for (field, text, expected, why) in cases {
            let said = charset(field.map(str::as_bytes), text);
            assert_eq!(said, expected, "{field:?} {}: {why}", text.escape_ascii());
        }
    }

    const KOI8: &Encoding = encoding_rs::KOI8_R;
    const BIG5: &Encoding = encoding_rs::BIG5;

    #[test]
    fn a_declaration_counts_within_1024_bytes() {
        for (fill, expected) in [(1_005, GBK), (1_007, WINDOWS_1252)] {
            let page = format!("{}<meta charset=gbk>", " ".repeat(fill));
            assert_eq!(charset(None, page.as_bytes()), expected, "{fill} bytes before");
        }
    }

    /// Law: a declaration cut anywhere is no declaration, or a shorter one, and no panic.
    #[test]
    fn cut_declarations_do_no_harm() {
        let page =
            b"<!-- x --><?xml version='1' encoding='gbk'?></p a=b><meta http-equiv='content-\
            type' content='text/html; charset=\"gbk\"'>";
        for cut in 0..page.len() {
            assert_eq!(charset(None, &page[..cut]), WINDOWS_1252, "{cut}");
            charset(Some(&page[cut..]), &page[cut..]);
        }
        assert_eq!(charset(None, page), GBK);
    }

    #[test]
    fn text_to_utf8() {
        type Case = (&'static Encoding, &'static [u8], usize, &'static str, bool);
        let cases: [Case; 8] = [
            (UTF_16LE, b"\xff\xfea\0\xe9\0", 100, "a\u{e9}", true),
            (UTF_16BE, b"\0a\xd8\x3d\xde\0", 100, "a\u{1f600}", true),
            (UTF_16LE, b"a\0b", 100, "a\u{fffd}", true),
            (UTF_16LE, b"a\0\xe9\0b\0", 2, "a", false),
            (UTF_16LE, b"a\0\xe9\0b\0", 0, "", false),
            (ISO_2022_JP, b"\x1b$B<h\x1b(B<", 100, "\u{53d6}<", true),
            (REPLACEMENT, b"<a href=x>", 100, "\u{fffd}", true),
            (UTF_16LE, b"", 100, "", true),
        ];
        for (encoding, text, bytes_max, expected, whole) in cases {
            let mut into = Vec::new();
            assert_eq!(to_utf8(encoding, text, &mut into, bytes_max), whole, "{expected}");
            assert_eq!(into, expected.as_bytes());
            assert!(!is_scannable(encoding));
        }
    }

    /// Law: decoding in pieces gives what decoding at once does, and never more than the cap.
    #[test]
    fn long_text_to_utf8() {
        let text: String = (0..20_000).map(|i| if i % 7 == 0 { '\u{20ac}' } else { 'x' }).collect();
        let coded: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes_max in [text.len() - 1, text.len(), text.len() + 1, 4_096, 4_097, 5] {
            let mut into = Vec::new();
            let whole = to_utf8(UTF_16LE, &coded, &mut into, bytes_max);
            assert_eq!(whole, bytes_max >= text.len(), "{bytes_max}");
            assert!(into.len() <= bytes_max && text.as_bytes().starts_with(&into));
            assert!(into.len() + 4 > bytes_max.min(text.len()), "{bytes_max}: {}", into.len());
        }
    }
}
