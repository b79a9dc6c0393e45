//! Decodes character references in attribute values: `&amp;`, `&#38;`, `&#x26;`.
//!
//! In an attribute a name without its semicolon is a reference only if neither `=` nor a letter or
//! digit follows, so that `?a=1&copy=2` stays unchanged. Text that is no reference is kept.
//!
//! Laws: the result is the attribute value of the standard's tokenizer. Each byte is read a bounded
//! number of times (a name has at most 31 bytes, a number is read once).
//! Source: the HTML standard, sections 13.2.5.72 to 13.2.5.80.

use super::names::{BARE, NAMED};

/// The length of the longest name of a character reference, in bytes.
const NAME_BYTES_MAX: usize = 31;

/// Appends `value` to `into`, with its character references decoded and each NUL replaced by
/// U+FFFD.
pub(super) fn decode(value: &[u8], into: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(distance) = memchr::memchr2(b'&', 0, &value[at..]) {
        let special = at + distance;
        into.extend_from_slice(&value[at..special]);
        if value[special] == 0 {
            put(char::REPLACEMENT_CHARACTER, into);
            at = special + 1;
        } else {
            at = special + reference(&value[special..], into);
        }
    }
    into.extend_from_slice(&value[at..]);
}

/// Decodes the character reference that begins with the `&` at the start of `value`. Returns the
/// length of the reference, or 1 if it is only an `&`.
fn reference(value: &[u8], into: &mut Vec<u8>) -> usize {
    let read = match value.get(1) {
        Some(b'#') => number(value, into),
        Some(byte) if byte.is_ascii_alphanumeric() => name(value, into),
        _ => None,
    };
    read.unwrap_or_else(|| {
        into.push(b'&');
        1
    })
}

fn name(value: &[u8], into: &mut Vec<u8>) -> Option<usize> {
    if value.starts_with(b"&amp;") {
        into.push(b'&');
        return Some(5);
    }
    let longest = &value[1..value.len().min(1 + NAME_BYTES_MAX)];
    let len = longest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let name = std::str::from_utf8(&longest[..len]).expect("letters and digits");
    let after = value.get(1 + len);
    let ended = after == Some(&b';');
    let inside = after.is_some_and(|byte| *byte == b'=' || byte.is_ascii_alphanumeric());
    if !ended && (inside || BARE.binary_search(&name).is_err()) {
        return None;
    }
    let place = NAMED.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    into.extend_from_slice(NAMED[place].1.as_bytes());
    Some(1 + len + usize::from(ended))
}

fn number(value: &[u8], into: &mut Vec<u8>) -> Option<usize> {
    let is_hex = matches!(value.get(2), Some(b'x' | b'X'));
    let (radix, start) = if is_hex { (16, 3) } else { (10, 2) };
    let digits = value[start..].iter().map_while(|byte| char::from(*byte).to_digit(radix));
    let (mut code, mut count) = (0_u32, 0);
    for digit in digits {
        code = code.saturating_mul(radix).saturating_add(digit);
        count += 1;
    }
    if count == 0 {
        return None;
    }
    put(character(code), into);
    let end = start + count;
    Some(end + usize::from(value.get(end) == Some(&b';')))
}

/// Returns the character with the number `code` in a numeric reference. NUL, surrogates and numbers
/// past the last code point become U+FFFD; the C1 controls become the characters of windows-1252.
fn character(code: u32) -> char {
    const C1: [char; 32] = [
        '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}',
        '\u{2021}', '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}',
        '\u{8f}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}',
        '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}',
        '\u{178}',
    ];
    match code {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9f => C1[code as usize - 0x80],
        _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

fn put(character: char, into: &mut Vec<u8>) {
    into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(value: &str) -> String {
        let mut into = Vec::new();
        decode(value.as_bytes(), &mut into);
        String::from_utf8(into).expect("text in, text out")
    }

    #[test]
    fn references_in_attributes() {
        let cases = [
            ("a&amp;b", "a&b", "the usual one"),
            ("&amp", "&", "old names count without their semicolon at the end"),
            ("?a=1&copy=2", "?a=1&copy=2", "but not before `=`"),
            ("&copyright", "&copyright", "nor before a letter"),
            ("&copy2", "&copy2", "nor before a digit"),
            ("&copy-", "\u{a9}-", "but before anything else"),
            ("&copy&reg", "\u{a9}\u{ae}", "an ampersand included"),
            ("&notit;", "&notit;", "`&not` before a letter, no name in all"),
            ("&notin;", "\u{2209}", "the longest name"),
            ("&notin", "&notin", "a new name needs its semicolon"),
            ("&NotEqualTilde;", "\u{2242}\u{338}", "two code points"),
            ("&CounterClockwiseContourIntegral;", "\u{2233}", "the longest name there is"),
            ("&xCounterClockwiseContourIntegral;", "&xCounterClockwiseContourIntegral;", "longer"),
            ("&AMP;&Amp;", "&&Amp;", "case matters"),
            ("&#65;&#x42;&#X43;", "ABC", "numbers"),
            ("&#65B&#x4zz", "AB\u{4}zz", "semicolon left out"),
            ("&#;&#x;&#xg;&#", "&#;&#x;&#xg;&#", "no digits, no reference"),
            ("&#0;&#xd800;&#x110000;", "\u{fffd}\u{fffd}\u{fffd}", "no characters"),
            ("&#99999999999999999999;", "\u{fffd}", "does not overflow"),
            ("&#128;&#x9f;&#x81;", "\u{20ac}\u{178}\u{81}", "windows-1252 for C1"),
            ("&#xfdd0;&#x1ffff;", "\u{fdd0}\u{1ffff}", "noncharacters stay"),
            ("a\0b", "a\u{fffd}b", "NUL"),
            ("&", "&", "alone"),
            ("&&lt;", "&<", "the first is none"),
        ];
        for (value, expected, why) in cases {
            assert_eq!(decoded(value), expected, "{value}: {why}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_bare_names_are_in_it() {
        assert!(NAMED.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(BARE.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(NAMED.iter().all(|(name, _)| name.len() <= NAME_BYTES_MAX));
        for name in BARE {
            assert!(NAMED.binary_search_by(|(known, _)| (*known).cmp(name)).is_ok(), "{name}");
        }
    }
}
