//! Replies that cost a crawler much work: each is small on the wire, and made when it is requested.
//!
//! A crawler that limits its work by the bytes it outputs, not by those it reads, stalls at each of
//! them.
//!
//! Source: RFC 1951, section 3.2 (blocks); RFC 1952, section 2.2 (members); RFC 9309, section 2.2.3
//! (rules); WHATWG Encoding.

use super::super::wire::compress;
use super::Coding;
use super::Heavy;
use std::fmt::Write;

/// The bytes of empty blocks or members in a body before it is compressed again.
const EMPTY_BYTES: usize = 1 << 20;
/// The number of links to hosts with non-ASCII names, some longer than IDNA allows.
const LONG_HOSTS: usize = 400;
/// The length in bytes of the long robots.txt: parsers read at least 500 KiB (RFC 9309, section
/// 2.5).
const RULES_BYTES: usize = 495 << 10;
/// The bytes of text in a charset that a crawler has to convert.
const WIDE_BYTES: usize = 1 << 20;

/// Returns the header fields and the body of the reply for `heavy`.
pub(in super::super) fn reply(heavy: Heavy) -> (&'static str, Vec<u8>) {
    const HTML: &str = "Content-Type: text/html\r\n";
    const TWICE: &str = "Content-Type: text/html\r\nContent-Encoding: gzip, gzip\r\n";
    let zip = |body: &[u8]| compress(Coding::Gzip, body);
    match heavy {
        Heavy::EmptyBlocks => (TWICE, zip(&empty_blocks())),
        Heavy::EmptyMembers => {
            let member = zip(b"");
            (TWICE, zip(&member.repeat(EMPTY_BYTES / member.len())))
        }
        Heavy::LongHosts => (HTML, long_hosts().into_bytes()),
        Heavy::ManyRules => ("Content-Type: text/plain\r\n", many_rules().into_bytes()),
        Heavy::ClosedRules => {
            ("Content-Type: text/plain\r\n", b"User-agent: *\nDisallow: /late/\n".to_vec())
        }
        Heavy::Utf16 => {
            const FIELDS: &str =
                "Content-Type: text/html; charset=utf-16le\r\nContent-Encoding: gzip\r\n";
            let bytes: Vec<u8> = wide().encode_utf16().flat_map(u16::to_le_bytes).collect();
            (FIELDS, zip(&bytes))
        }
        Heavy::Iso2022Jp => {
            const FIELDS: &str =
                "Content-Type: text/html; charset=iso-2022-jp\r\nContent-Encoding: gzip\r\n";
            (FIELDS, zip(&encoding_rs::ISO_2022_JP.encode(&wide()).0))
        }
    }
}

/// Returns a gzip member made of empty deflate blocks with fixed codes. A block has ten bits: one
/// for "not the last", two for the type and seven zeros that end it; four of them are five bytes.
fn empty_blocks() -> Vec<u8> {
    const FOUR: [u8; 5] = [0b0000_0010, 0b0000_1000, 0b0010_0000, 0b1000_0000, 0];
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    bytes.extend(FOUR.repeat(EMPTY_BYTES / FOUR.len()));
    // The last block, then the checksum and the length of the content, which is empty.
    bytes.extend([0b0000_0011, 0]);
    bytes.extend([0; 8]);
    bytes
}

fn long_hosts() -> String {
    let mut page = String::from("<!DOCTYPE html><title>Names</title>\n");
    for number in 0..LONG_HOSTS {
        let letters = if number % 2 == 0 { 330 } else { 990 };
        page.push_str("<a href=\"http://");
        page.extend(
            (0..letters)
                .filter_map(|at| char::from_u32(0x4e00 + (at * 37 + number as u32 * 11) % 20_000)),
        );
        page.push_str("/\">x</a>\n");
    }
    page
}

/// Returns robots.txt rules with wildcards: each matches a part of every path of the host, so that
/// matching costs work; the last rule, without wildcards, disallows all of these paths.
fn many_rules() -> String {
    let mut rules = String::from("User-agent: *\n");
    let mut number = 0;
    while rules.len() < RULES_BYTES {
        let _ = writeln!(rules, "Disallow: /*p*{number}*x*{}$", number % 7);
        number += 1;
    }
    rules.push_str("Disallow: /p\n");
    rules
}

fn wide() -> String {
    let mut text = String::from("<!DOCTYPE html><title>Wide</title>\n<p>");
    while text.len() < WIDE_BYTES {
        text.push_str("\u{6f22}\u{5b57}\u{4eee}\u{540d} and letters ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn unzipped(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out).expect("whole");
        out
    }

    #[test]
    fn heavy_replies_are_small_and_whole() {
        for heavy in [Heavy::EmptyBlocks, Heavy::EmptyMembers] {
            let (_, body) = reply(heavy);
            assert!(body.len() < EMPTY_BYTES / 50, "{heavy:?}: {} bytes", body.len());
            let inner = unzipped(&body);
            assert!(inner.len() > EMPTY_BYTES - 100, "{heavy:?}");
            assert!(unzipped(&inner).is_empty(), "{heavy:?}: there is nothing in it");
        }
        for heavy in [Heavy::Utf16, Heavy::Iso2022Jp] {
            let (_, body) = reply(heavy);
            assert!(body.len() < WIDE_BYTES / 20 && unzipped(&body).len() > WIDE_BYTES / 2);
        }
        let (_, rules) = reply(Heavy::ManyRules);
        assert!((RULES_BYTES..500 << 10).contains(&rules.len()) && rules.ends_with(b": /p\n"));
    }
}
