//! Encodes text from the network so that it is safe in fields, logs and the index.
//!
//! Laws: a word contains no space, no control byte and no byte outside ASCII, and is never empty; a
//! field value contains no control byte. Whatever a server sends, it can't end a line or a field.
//! Cost: one pass, no allocation once the target has grown.

use crate::ground::time::UnixTime;

/// Appends formatted text to a byte vector.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {
        std::io::Write::write_fmt($out, format_args!($($format)*))
            .expect("a vector takes every write")
    };
}
pub(super) use put;

/// The maximum length of a media type in the output, in bytes (RFC 6838: 127 for each half).
const MEDIA_TYPE_BYTES_MAX: usize = 255;

/// Appends `text` as one word: visible ASCII unchanged, all else percent-encoded; `-` if it is
/// empty. Everything after the first `bytes_max` bytes of `text` is dropped.
pub(super) fn push_word(out: &mut Vec<u8>, text: &str, bytes_max: usize) {
    let text = &text.as_bytes()[..text.len().min(bytes_max)];
    if text.is_empty() {
        out.push(b'-');
    }
    // The loop has no branch on a byte, so it is compiled to vector code; nearly all words are
    // visible.
    if text.iter().fold(true, |all, byte| all & byte.is_ascii_graphic()) {
        return out.extend_from_slice(text);
    }
    text.iter().for_each(|byte| push_visible(out, *byte));
}

/// Appends a number, right-aligned to `width` bytes with `pad`. The formatting of the standard
/// library takes ten times as long, and a line of the log has a dozen numbers.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64, width: usize, pad: u8) {
    let mut digits = [pad; DIGITS_MAX];
    let mut at = DIGITS_MAX;
    while at == DIGITS_MAX || number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits[at.min(DIGITS_MAX - width.min(DIGITS_MAX))..]);
}

/// The number of digits of 2^64 - 1.
const DIGITS_MAX: usize = 20;

/// Appends one byte, percent-encoded unless it is visible ASCII.
pub(super) fn push_visible(out: &mut Vec<u8>, byte: u8) {
    if byte.is_ascii_graphic() {
        out.push(byte);
    } else {
        push_percent(out, byte);
    }
}

/// Appends a byte in its percent-encoded form, `%XX`.
pub(super) fn push_percent(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// Appends `text` as the value of a field: control bytes become spaces, so that no value can end
/// its line (WARC 1.1, section 4: a value is text without CTLs).
pub(super) fn push_value(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
}

/// Returns the media type of a Content-Type value, without parameters.
pub(super) fn media_type(value: &str) -> &str {
    let essence = value.split(';').next().unwrap_or("").trim();
    cut(essence, MEDIA_TYPE_BYTES_MAX)
}

/// Returns the first `bytes_max` bytes of `text`, or a few less, so as not to split a character.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Caches the two printed forms of the last time in whole seconds, because many records share them.
#[derive(Debug)]
pub(super) struct Stamps {
    second: u64,
    iso: String,
    digits: String,
}

impl Default for Stamps {
    fn default() -> Self {
        Self { second: u64::MAX, iso: String::new(), digits: String::new() }
    }
}

impl Stamps {
    /// Returns the time as `2026-11-20T09:38:49Z`, the form of WARC-Date.
    pub(super) fn iso(&mut self, time: UnixTime) -> &str {
        self.turn_to(time);
        &self.iso
    }

    /// Returns the time as `20261120093849`, the form used in the index and in file names.
    pub(super) fn digits(&mut self, time: UnixTime) -> &str {
        self.turn_to(time);
        &self.digits
    }

    fn turn_to(&mut self, time: UnixTime) {
        let second = time.as_micros() / 1_000_000;
        if second != self.second {
            let civil = time.civil();
            self.second = second;
            self.iso.clear();
            civil.put_seconds(&mut self.iso);
            self.digits.clear();
            civil.put_digits(&mut self.digits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_in_its_place() {
        let cases = [
            ("a b", "a%20b", "a space would shift the fields"),
            ("a\r\nWARC-Type: x", "a%0D%0AWARC-Type:%20x", "a line end would forge a line"),
            ("é", "%C3%A9", "bytes beyond ASCII"),
            ("", "-", "nothing is a hyphen"),
            ("\u{7f}\0", "%7F%00", "control bytes"),
            ("%20", "%20", "what is encoded stays so"),
        ];
        for (text, expected, why) in cases {
            let mut out = Vec::new();
            push_word(&mut out, text, 100);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{why}");
        }
        let mut out = Vec::new();
        push_value(&mut out, "x\r\nWARC-Type: warcinfo\0");
        assert_eq!(out, b"x  WARC-Type: warcinfo ");
    }

    #[test]
    fn numbers_are_as_the_standard_library_has_them() {
        let numbers = [0, 1, 9, 10, 99, 123, 9_999, 10_000, 1_795_167_529, u64::MAX];
        for number in numbers {
            for width in [0, 1, 2, 3, 5, 10, 20] {
                let (mut zeros, mut spaces) = (Vec::new(), Vec::new());
                push_number(&mut zeros, number, width, b'0');
                push_number(&mut spaces, number, width, b' ');
                assert_eq!(String::from_utf8(zeros).unwrap(), format!("{number:0width$}"));
                assert_eq!(String::from_utf8(spaces).unwrap(), format!("{number:width$}"));
            }
        }
    }

    #[test]
    fn media_types_without_parameters() {
        let cases = [
            ("text/html; charset=utf-8", "text/html"),
            (" text/plain ", "text/plain"),
            (";", ""),
            ("", ""),
        ];
        for (value, expected) in cases {
            assert_eq!(media_type(value), expected, "{value}");
        }
        assert_eq!(media_type(&"é".repeat(200)).len(), 254, "cut between characters");
    }

    #[test]
    fn stamps_follow_the_second() {
        let mut stamps = Stamps::default();
        for second in [0, 0, 1_795_167_529, 1_795_167_530, 1_795_167_529] {
            let time = UnixTime::from_micros(second * 1_000_000 + 999_999);
            assert_eq!(stamps.iso(time), time.civil().to_seconds());
            assert_eq!(stamps.digits(time), time.civil().to_digits());
        }
    }
}
