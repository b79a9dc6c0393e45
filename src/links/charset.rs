//! Determines the charset of a page from its bytes, its header and its markup, in this order.
//!
//! A byte order mark takes precedence, then the `Content-Type` field, then a `meta` element or an
//! XML declaration in the first 1,024 bytes. If none of them names a charset, text that is not
//! ASCII and is valid UTF-8 is UTF-8; all other text is windows-1252, as in a browser without a
//! language setting. All but the first two are tentative: a `meta` that the scanner finds may name
//! another charset.
//!
//! Pages in nearly all charsets can be scanned for links without conversion, because the bytes of
//! markup are the same in them. Exceptions are UTF-16, ISO-2022-JP and the charsets that no browser
//! decodes; pages in these go through a [`Converter`].
//!
//! Cost: the first 1,024 bytes. For undeclared pages also a search for the first byte outside
//! ASCII, at memory speed, in the first 4 MiB, and a check of at most 256 KiB from there.
//! Source: the HTML standard, section 13.2.3; the Encoding standard.

use super::find::is_space;
use encoding_rs::{
    CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED,
};
use std::fmt;

/// The number of bytes at the start of a page that are searched for a declaration.
const PRESCAN_BYTES: usize = 1_024;

/// The number of bytes, from the first one outside ASCII on, by which the charset of an undeclared
/// page is guessed.
const GUESS_BYTES: usize = 256 << 10;

/// The number of bytes at the start of an undeclared page in which the first byte outside ASCII is
/// searched.
const ASCII_BYTES: usize = 4 << 20;

/// The charset of a page, as far as it is known before the page is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset {
    /// The charset.
    pub encoding: &'static Encoding,
    /// True if a `meta` later in the page may name another charset.
    pub is_tentative: bool,
    /// The cost of guessing the charset, in units of the cost of scanning one byte; 0 if nothing
    /// was guessed.
    pub checked_bytes: usize,
}

/// Determines the charset of a page whose Content-Type names the charset `label` and whose body is
/// `text`.
pub fn charset(label: Option<&[u8]>, text: &[u8]) -> Charset {
    let known = |encoding, is_tentative| Charset { encoding, is_tentative, checked_bytes: 0 };
    if let Some((encoding, _)) = Encoding::for_bom(text) {
        return known(encoding, false);
    }
    if let Some(encoding) = label.and_then(Encoding::for_label) {
        return known(encoding, false);
    }
    match prescan(&text[..text.len().min(PRESCAN_BYTES)]) {
        Some(encoding) => known(encoding, true),
        None => guess(text),
    }
}

/// Returns whether pages in `charset` can be scanned without conversion. Pages in other charsets
/// are converted with a [`Converter`] and then scanned as UTF-8.
pub fn is_scannable(charset: &'static Encoding) -> bool {
    charset.is_ascii_compatible()
}

/// Converts the text of a page to UTF-8, piece by piece.
pub struct Converter {
    decoder: Decoder,
}

/// What one call of [`Converter::convert`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The number of bytes, from the start of the text, that were converted.
    pub used: usize,
    /// The work done: the number of bytes read or the number of bytes written, whichever is more.
    pub work: usize,
    /// True if the whole text was converted.
    pub is_done: bool,
    /// True if the limit on the size was reached, so that the rest of the text is discarded.
    pub is_cut: bool,
}

impl fmt::Debug for Converter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converter").field("charset", &self.decoder.encoding()).finish()
    }
}

impl Converter {
    /// Creates a converter for a page in `charset`, from its beginning.
    pub fn new(charset: &'static Encoding) -> Self {
        Self { decoder: charset.new_decoder_with_bom_removal() }
    }

    /// Converts `text`, the rest of the page, and appends it to `into` as UTF-8. A byte order mark
    /// is removed; invalid bytes become U+FFFD. It stops when the work exceeds `budget`, or when
    /// `into` has `bytes_max` bytes.
    pub fn convert(
        &mut self,
        text: &[u8],
        into: &mut Vec<u8>,
        budget: usize,
        bytes_max: usize,
    ) -> Converted {
        let (mut used, mut work) = (0, 0);
        let mut piece = [0; PIECE_BYTES];
        let step = |used, work, is_done, is_cut| Converted { used, work, is_done, is_cut };
        while work < budget {
            let rest = &text[used..];
            let input = &rest[..rest.len().min(PIECE_BYTES)];
            let is_last = input.len() == rest.len();
            let (result, read, written, _) =
                self.decoder.decode_to_utf8(input, &mut piece, is_last);
            let piece = std::str::from_utf8(&piece[..written]).expect("a decoder writes UTF-8");
            used += read;
            work += read.max(written);
            let room = bytes_max - into.len();
            if written > room {
                let end = (0..=room).rev().find(|end| piece.is_char_boundary(*end)).unwrap_or(0);
                into.extend_from_slice(&piece.as_bytes()[..end]);
                return step(used, work, true, true);
            }
            into.extend_from_slice(piece.as_bytes());
            if is_last && result == CoderResult::InputEmpty {
                return step(used, work, true, false);
            }
        }
        step(used, work, false, false)
    }
}

/// The number of bytes converted at a time.
const PIECE_BYTES: usize = 4 << 10;

/// Guesses the charset of an undeclared page: UTF-8, if the text from its first byte outside ASCII
/// on is valid UTF-8; otherwise windows-1252.
fn guess(text: &[u8]) -> Charset {
    let pieces = text.chunks(PIECE_BYTES).take(ASCII_BYTES / PIECE_BYTES);
    let ascii = pieces.take_while(|piece| piece.is_ascii()).count();
    let start = (ascii * PIECE_BYTES).min(text.len());
    let rest = &text[start..];
    let checked = &rest[..rest.len().min(GUESS_BYTES)];
    let is_utf8 = match std::str::from_utf8(checked) {
        Ok(_) => true,
        // An incomplete character at the end of the checked part is valid.
        Err(error) => error.error_len().is_none() && checked.len() < rest.len(),
    };
    let encoding = if is_utf8 && !checked.is_ascii() { UTF_8 } else { WINDOWS_1252 };
    // ASCII text is checked sixteen bytes at a time, so these bytes cost less.
    Charset { encoding, is_tentative: true, checked_bytes: start / 16 + checked.len() }
}

/// Returns the charset that a page means with `label` in its markup; `None` if it is unknown. It
/// can't be UTF-16, because the markup was read as ASCII.
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

/// Returns the label of a charset in the content of `<meta http-equiv=content-type>`; `None` if it
/// contains none.
pub(super) fn label_in_content(content: &[u8]) -> Option<&[u8]> {
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

/// Implements the standard's algorithm "prescan a byte stream to determine its encoding". Returns
/// `None` if no charset is declared.
fn prescan(head: &[u8]) -> Option<&'static Encoding> {
    if head.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    in_meta(head).or_else(|| in_declaration(head))
}

/// Returns the charset of the first `meta` element that names one.
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

/// Returns the charset that the attributes of one `meta` element name, or `Some(None)` if they name
/// none. Returns `None` if the bytes end inside the tag.
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
    Some(content.filter(|_| is_type).and_then(label_in_content).and_then(declared))
}

/// Iterates over the attributes of one tag, by the rules of the standard's prescan.
struct Prescanned<'a> {
    head: &'a [u8],
    at: usize,
}

impl<'a> Prescanned<'a> {
    /// Returns the name and the value of the next attribute, or `Some(None)` at the end of the tag.
    /// Returns `None` if the bytes end before.
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

/// Returns the charset in an XML declaration at the very beginning of the page; `None` if there is
/// none.
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
        let cases: [Case; 26] = [
            (Some("gbk"), b"\xef\xbb\xbfx", UTF_8, "the mark wins"),
            (None, b"\xff\xfe<\0", UTF_16LE, "a mark"),
            (None, b"\xfe\xff\0<", UTF_16BE, "a mark"),
            (Some("Shift_JIS"), b"<meta charset=gbk>", SHIFT_JIS, "field"),
            (Some(" EUC-kr "), b"", EUC_KR, "any case, spaces"),
            (Some("utf-16le"), b"", UTF_16LE, "a field may say so"),
            (Some("nonsense"), b"<meta charset=gbk>", GBK, "unknown label"),
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
        for (label, text, expected, why) in cases {
            let said = charset(label.map(str::as_bytes), text);
            assert_eq!(said.encoding, expected, "{label:?} {}: {why}", text.escape_ascii());
            let is_known =
                label.is_some_and(|label| Encoding::for_label(label.as_bytes()).is_some());
            let has_mark = Encoding::for_bom(text).is_some();
            assert_eq!(said.is_tentative, !is_known && !has_mark, "13.2.3.2: confidence");
        }
    }

    const BIG5: &Encoding = encoding_rs::BIG5;

    #[test]
    fn a_declaration_counts_within_1024_bytes() {
        for (fill, expected) in [(1_005, GBK), (1_007, WINDOWS_1252)] {
            let page = format!("{}<meta charset=gbk>", " ".repeat(fill));
            assert_eq!(charset(None, page.as_bytes()).encoding, expected, "{fill} bytes before");
        }
    }

    /// Law: a truncated declaration is read as no declaration or as a shorter one, and never
    /// panics.
    #[test]
    fn cut_declarations_do_no_harm() {
        let page =
            b"<!-- x --><?xml version='1' encoding='gbk'?></p a=b><meta http-equiv='content-\
            type' content='text/html; charset=\"gbk\"'>";
        for cut in 0..page.len() {
            assert_eq!(charset(None, &page[..cut]).encoding, WINDOWS_1252, "{cut}");
            charset(Some(&page[cut..]), &page[cut..]);
        }
        assert_eq!(charset(None, page).encoding, GBK);
    }

    /// Law: the charset of an undeclared page depends on 256 KiB from its first byte outside ASCII
    /// on.
    #[test]
    fn long_pages_are_guessed_by_a_part() {
        let euro = "\u{20ac}".repeat(GUESS_BYTES / 2);
        for (start, end, expected) in
            [("x".repeat(9_000), "", UTF_8), (String::new(), "\u{20ac}", UTF_8)]
        {
            let mut page = (start + &euro + end).into_bytes();
            assert_eq!(charset(None, &page).encoding, expected);
            page.push(0xff);
            assert_eq!(charset(None, &page).encoding, expected, "a fault behind the look");
            let at = page.len() - euro.len();
            page[at] = 0xff;
            assert_eq!(charset(None, &page).encoding, WINDOWS_1252, "a fault within it");
        }
        assert_eq!(charset(None, b"\xe2\x82").encoding, WINDOWS_1252, "cut by its end");
        let zeros = vec![0; 2 * ASCII_BYTES];
        let said = charset(None, &zeros);
        assert_eq!(said.encoding, WINDOWS_1252, "ASCII as far as is searched");
        assert!(said.checked_bytes <= 512 << 10, "a step of a turn: {}", said.checked_bytes);
    }

    /// Converts all of `text` to UTF-8, `budget` units at a time; also returns whether it is
    /// complete.
    fn to_utf8(
        encoding: &'static Encoding,
        text: &[u8],
        into: &mut Vec<u8>,
        (bytes_max, budget): (usize, usize),
    ) -> bool {
        let (mut converter, mut at) = (Converter::new(encoding), 0);
        loop {
            let step = converter.convert(&text[at..], into, budget, bytes_max);
            assert!(step.work <= budget.saturating_add(PIECE_BYTES));
            at += step.used;
            if step.is_done {
                return !step.is_cut;
            }
        }
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
            let cut = (bytes_max, usize::MAX);
            assert_eq!(to_utf8(encoding, text, &mut into, cut), whole, "{expected}");
            assert_eq!(into, expected.as_bytes());
            assert!(!is_scannable(encoding));
        }
    }

    /// Law: decoding in pieces gives the same text as decoding at once, and never more than the
    /// cap.
    #[test]
    fn long_text_to_utf8() {
        let text: String = (0..20_000).map(|i| if i % 7 == 0 { '\u{20ac}' } else { 'x' }).collect();
        let coded: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes_max in [text.len() - 1, text.len(), text.len() + 1, 4_096, 4_097, 5] {
            let mut into = Vec::new();
            let whole = to_utf8(UTF_16LE, &coded, &mut into, (bytes_max, bytes_max + 1));
            assert_eq!(whole, bytes_max >= text.len(), "{bytes_max}");
            assert!(into.len() <= bytes_max && text.as_bytes().starts_with(&into));
            assert!(into.len() + 4 > bytes_max.min(text.len()), "{bytes_max}: {}", into.len());
        }
    }
}
