//! Test cases of other projects, run with the parsers of this one.
//!
//! The cases have their own licences and are not part of this repository: the environment variable
//! `STED_CONFORMANCE` names the folder that holds them (`make conformance DIR=...`). Without it
//! these tests are ignored, and cargo says so.
//!
//! A runner is a function from the folder to a [`Report`]; each module states what share must pass,
//! and lists every accepted difference with its reason, enforced both ways.

pub mod html;
pub mod http;
pub mod robots;
pub mod url;

use std::fmt;
use std::path::{Path, PathBuf};

/// The results of the cases of one kind.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases run.
    pub total: usize,
    /// Cases with the expected answer.
    pub passed: usize,
    /// The other cases: case, expected, found; one line each.
    pub differences: Vec<String>,
}

impl Report {
    /// Adds one case; `difference` says what was expected and found, if they differ.
    pub fn add(&mut self, difference: Option<String>) {
        self.total += 1;
        match difference {
            None => self.passed += 1,
            Some(difference) => self.differences.push(difference),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} as expected", self.passed, self.total)?;
        self.differences.iter().try_for_each(|difference| write!(f, "\n  {difference}"))
    }
}

/// Returns the folder of the cases.
pub fn folder() -> PathBuf {
    let folder = std::env::var_os("STED_CONFORMANCE").map(PathBuf::from);
    folder.expect("STED_CONFORMANCE names the folder of the cases: make conformance DIR=folder")
}

/// Returns the JSON objects of a file, which has one per line.
pub fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let parse = |(number, line)| {
        serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{}:{number}: {error}", path.display()))
    };
    (1..).zip(text.lines()).map(parse).collect()
}

/// Decodes standard base64 with its padding (RFC 4648, section 4); `None` if it isn't valid.
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let quads = text.as_bytes().chunks(4);
    let last = quads.len().saturating_sub(1);
    for (place, quad) in quads.enumerate() {
        let padding = quad.iter().rev().take_while(|&&letter| letter == b'=').count();
        if quad.len() != 4 || padding > 2 || (padding > 0 && place != last) {
            return None;
        }
        let mut bits = 0;
        for &letter in &quad[..4 - padding] {
            bits = bits << 6 | six_bits(letter)?;
        }
        bits <<= 6 * padding;
        let unused = 8 * padding;
        if bits & ((1 << unused) - 1) != 0 {
            return None;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

fn six_bits(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[test]
fn base64_of_the_standards_vectors() {
    let cases = [
        ("", Some("")),
        ("Zg==", Some("f")),
        ("Zm8=", Some("fo")),
        ("Zm9v", Some("foo")),
        ("Zm9vYg==", Some("foob")),
        ("Zm9vYmE=", Some("fooba")),
        ("Zm9vYmFy", Some("foobar")),
        ("Zm9", None),
        ("Zm9v=", None),
        ("Zh==", None),
        ("Z===", None),
        ("====", None),
        ("Zg==Zm9v", None),
        ("Zm-v", None),
    ];
    for (text, expected) in cases {
        assert_eq!(base64(text).as_deref(), expected.map(str::as_bytes), "{text}");
    }
    assert_eq!(base64("+/8="), Some(vec![0xFB, 0xFF]));
}
