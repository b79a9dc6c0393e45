//! Digests of blocks and payloads, and a bounded index of payloads that were stored before.
//!
//! A digest is printed in the usual form of archives: `sha1:` and base 32 (RFC 4648, section 6),
//! which replay tools and indexes expect; SHA-256 is optional.
//!
//! `RevisitIndex` returns whether, where and when a payload was stored before. It is bounded in
//! entries and in bytes of their URLs, and evicts the oldest entries. An evicted payload is stored
//! in full once more, which costs space but loses no content.
//! Cost: a digest is one pass of SHA-1 or SHA-256; a look-up or insertion is a hash probe and a
//! copy of the URL, without allocation once the tables have reached their bound.

use super::text::put;
use super::warc::RecordId;
use crate::ground::map::Map;
use crate::ground::time::UnixTime;
use sha1::Digest as _;
use std::collections::VecDeque;
use std::fmt;

/// The digest algorithm and the text form of its digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// `sha1:` and 32 characters of base 32: the usual form in archives.
    #[default]
    Sha1Base32,
    /// `sha256:` and 56 characters of base 32 with padding.
    Sha256Base32,
    /// `sha256:` and 64 lower-case hexadecimal digits.
    Sha256Hex,
}

impl Algorithm {
    /// Returns the digest of `bytes`.
    pub fn of(self, bytes: &[u8]) -> Digest {
        let mut value = [0; 32];
        match self {
            Self::Sha1Base32 => value[..20].copy_from_slice(&sha1::Sha1::digest(bytes)),
            Self::Sha256Base32 | Self::Sha256Hex => {
                value.copy_from_slice(&sha2::Sha256::digest(bytes));
            }
        }
        Digest { algorithm: self, value }
    }

    /// Parses a digest in the form that index lines have ([`Digest::push_indexed`]). Returns `None`
    /// if the text is not a digest of this algorithm.
    pub(super) fn parse_indexed(self, text: &str) -> Option<Digest> {
        let mut value = [0; 32];
        let bytes = &mut value[..self.bytes()];
        match self {
            Self::Sha1Base32 => take_base32(text, bytes)?,
            Self::Sha256Base32 => take_base32(text.strip_prefix(self.label())?, bytes)?,
            Self::Sha256Hex => take_hex(text.strip_prefix(self.label())?, bytes)?,
        }
        Some(Digest { algorithm: self, value })
    }

    fn label(self) -> &'static str {
        match self {
            Self::Sha1Base32 => "sha1:",
            Self::Sha256Base32 | Self::Sha256Hex => "sha256:",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Sha1Base32 => 20,
            Self::Sha256Base32 | Self::Sha256Hex => 32,
        }
    }
}

/// A digest. Its `Display` output is the form used in the field WARC-Payload-Digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    /// The bytes of the digest. SHA-1 uses the first 20; the rest is zero.
    value: [u8; 32],
}

impl Digest {
    /// Returns the digest that has this SHA-1.
    pub(super) fn of_sha1(sha1: [u8; 20]) -> Self {
        let mut value = [0; 32];
        value[..20].copy_from_slice(&sha1);
        Self { algorithm: Algorithm::Sha1Base32, value }
    }

    /// Returns the first twenty bytes of the digest, which is all of SHA-1.
    pub fn beginning(&self) -> [u8; 20] {
        self.value[..20].try_into().expect("twenty of thirty-two bytes")
    }

    /// Parses a digest with its label, as in WARC-Payload-Digest.
    pub(super) fn parse(text: &str) -> Option<Self> {
        use Algorithm::{Sha1Base32, Sha256Base32, Sha256Hex};
        let text = text.strip_prefix(Sha1Base32.label()).unwrap_or(text);
        [Sha1Base32, Sha256Base32, Sha256Hex].into_iter().find_map(|kind| kind.parse_indexed(text))
    }

    /// Appends the digest with its label, such as `sha1:3I42H3S6...`.
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.algorithm.label().as_bytes());
        self.push_value(out);
    }

    /// Appends the digest in the form used in the index: SHA-1 without its label, as replay tools
    /// look it up; other digests with their label.
    pub(super) fn push_indexed(&self, out: &mut Vec<u8>) {
        match self.algorithm {
            Algorithm::Sha1Base32 => self.push_value(out),
            Algorithm::Sha256Base32 | Algorithm::Sha256Hex => self.push(out),
        }
    }

    fn push_value(&self, out: &mut Vec<u8>) {
        let bytes = &self.value[..self.algorithm.bytes()];
        match self.algorithm {
            Algorithm::Sha1Base32 | Algorithm::Sha256Base32 => push_base32(out, bytes),
            Algorithm::Sha256Hex => bytes.iter().for_each(|byte| put!(out, "{byte:02x}")),
        }
    }

    /// Returns the first eight bytes of the digest as a number; nearly all digests differ in it.
    fn prefix(&self) -> u64 {
        u64::from_le_bytes(self.value[..8].try_into().expect("eight of thirty-two bytes"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(72);
        self.push(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns whether `digest` is the digest of `block`; true as well if the kind of digest is
/// unknown.
pub(super) fn is_of(block: &[u8], digest: &str) -> bool {
    use Algorithm::{Sha1Base32, Sha256Base32, Sha256Hex};
    let kind = match (digest.strip_prefix("sha1:"), digest.strip_prefix("sha256:")) {
        (Some(_), _) => Sha1Base32,
        (_, Some(value)) if value.len() == 64 => Sha256Hex,
        (_, Some(_)) => Sha256Base32,
        _ => return true,
    };
    kind.of(block).to_string() == digest
}

/// Appends `bytes` in base 32, where five bytes become eight characters. A shorter rest is padded
/// with `=`.
fn push_base32(out: &mut Vec<u8>, bytes: &[u8]) {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    for group in bytes.chunks(5) {
        let mut bits = [0; 8];
        bits[3..3 + group.len()].copy_from_slice(group);
        let bits = u64::from_be_bytes(bits);
        let characters = (group.len() * 8).div_ceil(5);
        let mut text = [b'='; 8];
        for (place, character) in text.iter_mut().enumerate().take(characters) {
            *character = ALPHABET[(bits >> (35 - 5 * place)) as usize & 31];
        }
        out.extend_from_slice(&text);
    }
}

/// Decodes the output of [`push_base32`] to exactly fill `bytes`; `None` if the text is not such
/// output.
fn take_base32(text: &str, bytes: &mut [u8]) -> Option<()> {
    if text.len() != bytes.len().div_ceil(5) * 8 {
        return None;
    }
    for (group, characters) in bytes.chunks_mut(5).zip(text.as_bytes().chunks(8)) {
        let told = (group.len() * 8).div_ceil(5);
        let mut bits = 0_u64;
        for character in &characters[..told] {
            let value = match character {
                b'A'..=b'Z' => character - b'A',
                b'2'..=b'7' => character - b'2' + 26,
                _ => return None,
            };
            bits = bits << 5 | u64::from(value);
        }
        bits <<= 5 * (8 - told);
        group.copy_from_slice(&bits.to_be_bytes()[3..3 + group.len()]);
    }
    let mut again = Vec::with_capacity(text.len());
    push_base32(&mut again, bytes);
    (again == text.as_bytes()).then_some(())
}

/// Decodes lower-case hexadecimal digits to exactly fill `bytes`.
fn take_hex(text: &str, bytes: &mut [u8]) -> Option<()> {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hex || text.len() != 2 * bytes.len() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(())
}

/// The record in which a payload was stored first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First {
    /// The id of the record; `None` if an earlier run wrote it.
    pub(super) id: Option<RecordId>,
    /// The date of the record, as in its WARC-Date.
    pub(super) date: UnixTime,
    /// True if the body of the stored response was sent in chunks.
    pub(super) chunked: bool,
}

/// An index of the payloads that were stored last; finds the first record of a payload by its
/// digest.
#[derive(Debug)]
pub(super) struct RevisitIndex {
    names_max: usize,
    /// The maximum total length of all URLs in the index, in bytes: [`URL_BYTES`] for each entry.
    url_bytes_max: usize,
    /// Maps the first eight bytes of a digest to the number of its entry. If two digests have the
    /// same first bytes, only the later entry can be found.
    numbers: Map<u64, u64>,
    entries: VecDeque<Entry>,
    /// The URLs of the entries, concatenated.
    urls: VecDeque<u8>,
    /// The number of the oldest entry. The next field is the position of that entry's URL in the
    /// sequence of all URLs ever added.
    first_number: u64,
    first_place: u64,
}

#[derive(Debug)]
struct Entry {
    digest: Digest,
    first: First,
    url_place: u64,
    url_bytes: usize,
}

/// The average length that is allowed for a URL, in bytes. Longer URLs cause more old entries to be
/// evicted.
const URL_BYTES: usize = 100;

impl RevisitIndex {
    /// Creates an index of at most `names_max` payloads; each takes some 250 bytes of memory.
    pub(super) fn new(names_max: usize) -> Self {
        Self {
            names_max,
            url_bytes_max: names_max.saturating_mul(URL_BYTES),
            numbers: Map::default(),
            entries: VecDeque::new(),
            urls: VecDeque::new(),
            first_number: 0,
            first_place: 0,
        }
    }

    /// Returns the record in which the payload with this digest was stored first, and writes the
    /// URL of that record to `url`. Returns `None` if the payload is not in the index.
    pub(super) fn find(&self, digest: &Digest, url: &mut Vec<u8>) -> Option<First> {
        let number = self.numbers.get(&digest.prefix())?;
        let entry = &self.entries[index(*number - self.first_number)];
        if entry.digest != *digest {
            return None;
        }
        let start = index(entry.url_place - self.first_place);
        url.clear();
        url.extend(self.urls.range(start..start + entry.url_bytes));
        Some(entry.first)
    }

    /// Adds a payload that was stored in full. It is not added if its URL alone exceeds the limit
    /// on the length of all URLs.
    pub(super) fn add(&mut self, digest: Digest, url: &str, first: First) {
        if self.names_max == 0 || url.len() > self.url_bytes_max {
            return;
        }
        while self.entries.len() >= self.names_max
            || self.urls.len() + url.len() > self.url_bytes_max
        {
            self.forget_oldest();
        }
        let number = self.first_number + self.entries.len() as u64;
        let url_place = self.first_place + self.urls.len() as u64;
        self.numbers.insert(digest.prefix(), number);
        self.entries.push_back(Entry { digest, first, url_place, url_bytes: url.len() });
        self.urls.extend(url.as_bytes());
    }

    fn forget_oldest(&mut self) {
        let oldest = self.entries.pop_front().expect("over a bound, so not empty");
        self.urls.drain(..oldest.url_bytes);
        self.first_place += oldest.url_bytes as u64;
        let prefix = oldest.digest.prefix();
        if self.numbers.get(&prefix) == Some(&self.first_number) {
            self.numbers.remove(&prefix);
        }
        self.first_number += 1;
    }
}

fn index(distance: u64) -> usize {
    usize::try_from(distance).expect("entries are in memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_digests() {
        let cases = [
            (Algorithm::Sha1Base32, "", "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
            (Algorithm::Sha1Base32, "abc", "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"),
            (
                Algorithm::Sha256Base32,
                "abc",
                "sha256:XJ4BNP4PAHH6UQKBIDPF3LRCEOYAGYNDSYLXVHFUCD7WD4QACWWQ====",
            ),
            (
                Algorithm::Sha256Hex,
                "abc",
                "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
        ];
        for (algorithm, text, expected) in cases {
            assert_eq!(algorithm.of(text.as_bytes()).to_string(), expected, "FIPS 180-4 vectors");
        }
    }

    /// Law: digests in an index are parsed as they were written, and nothing else is accepted.
    #[test]
    fn indexed_digests_read_back() {
        let kinds = [Algorithm::Sha1Base32, Algorithm::Sha256Base32, Algorithm::Sha256Hex];
        for (kind, text) in kinds.into_iter().flat_map(|kind| [(kind, "abc"), (kind, "")]) {
            let digest = kind.of(text.as_bytes());
            let mut written = Vec::new();
            digest.push_indexed(&mut written);
            let written = String::from_utf8(written).expect("a digest is ASCII");
            for other in kinds {
                let expected = (other == kind).then_some(digest);
                assert_eq!(other.parse_indexed(&written), expected, "{written} as {other:?}");
            }
            for place in 0..written.len() {
                for byte in ["", "0", "1", "B", "g", "=", "\0", "\u{e9}"] {
                    let changed = [&written[..place], byte, &written[place + 1..]].concat();
                    let read = kind.parse_indexed(&changed).map(|digest| {
                        let mut again = Vec::new();
                        digest.push_indexed(&mut again);
                        String::from_utf8(again).expect("a digest is ASCII")
                    });
                    assert!(read.is_none_or(|read| read == changed), "{changed}");
                }
            }
        }
    }

    /// RFC 4648, section 10.
    #[test]
    fn base32_vectors() {
        let cases = [
            ("", ""),
            ("f", "MY======"),
            ("fo", "MZXQ===="),
            ("foo", "MZXW6==="),
            ("foob", "MZXW6YQ="),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI======"),
        ];
        for (text, expected) in cases {
            let mut out = Vec::new();
            push_base32(&mut out, text.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    /// Law: the index agrees with a list that is searched from its end and truncated naively.
    #[test]
    fn repeats_agree_with_a_list() {
        let (mut revisit_index, mut list) =
            (RevisitIndex::new(8), Vec::<(Digest, String, First)>::new());
        let mut ids = super::super::warc::Ids::new(7);
        let mut url = Vec::new();
        for step in 0..5_000_u64 {
            let random = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let digest = Algorithm::Sha1Base32.of(&[(random % 24) as u8]);
            let found = list.iter().find(|(known, ..)| *known == digest);
            let answer = revisit_index.find(&digest, &mut url);
            assert_eq!(answer, found.map(|(.., first)| *first), "step {step}");
            if let Some((_, known_url, _)) = found {
                assert_eq!(url, known_url.as_bytes());
                continue;
            }
            let text = "u".repeat((random % 300) as usize);
            let first =
                First { id: Some(ids.next()), date: UnixTime::from_micros(step), chunked: false };
            revisit_index.add(digest, &text, first);
            list.push((digest, text, first));
            while list.len() > 8 || list.iter().map(|(_, url, _)| url.len()).sum::<usize>() > 800 {
                list.remove(0);
            }
            assert_eq!(revisit_index.numbers.len(), list.len());
        }
    }

    #[test]
    fn no_names_means_no_memory() {
        let mut revisit_index = RevisitIndex::new(0);
        let digest = Algorithm::Sha1Base32.of(b"x");
        let first = First { id: None, date: UnixTime::default(), chunked: false };
        revisit_index.add(digest, "", first);
        assert_eq!(revisit_index.find(&digest, &mut Vec::new()), None);
    }
}
