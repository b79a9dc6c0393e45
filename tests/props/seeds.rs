//! Seed files.
//!
//! Laws: each line is a seed, a mistake or neither, never both; seeds are canonical and unique; the
//! seeds, written as a file, parse to the same seeds without a mistake.

use super::Target;
use std::collections::BTreeSet;
use sted::seeds::parse;

pub const TARGET: Target = Target {
    samples: &[
        b"http://a.test/\nexample.test/x # mine\r\n\n# nothing\nlocalhost:8080\n",
        b"\xef\xbb\xbfhttps://b\xc3\xbccher.test/?q#frag\nmail@example.test\nftp://c.test/\n",
        b"sep=;\nurl;title\nhttp://a.test/;\"x\ny\"\n;z\n\"b.test\";|http://c.test/,d\n",
        b"http://a.test\nHTTP://A.test:80/\nhttp://a.test/#x\nhttp://[::1]:81/\n",
    ],
    words: &[
        "http://", "\n", "\r\n", " # ", "#", "@", ":", "//", "a.test", "\t", "\u{feff}", "[::1]",
        "\"", ",", ";", "|", "\\", "<", ">", "?u=", "http", "url", "\u{2028}", "\0", "'", ".",
    ],
    check,
};

pub fn check(bytes: &[u8]) {
    let (seeds, mistakes) = parse(bytes);
    let lines = bytes.split(|&byte| matches!(byte, b'\n' | b'\r')).count();
    let mut seen = BTreeSet::new();
    for line in seeds.iter().map(|seed| seed.line).chain(mistakes.iter().map(|wrong| wrong.line)) {
        assert!((1..=lines).contains(&line) && seen.insert(line), "line {line}");
    }
    let unique: BTreeSet<&str> = seeds.iter().map(|seed| seed.url.as_str()).collect();
    assert_eq!(unique.len(), seeds.len());

    let texts: Vec<&str> = seeds.iter().map(|seed| seed.url.as_str()).collect();
    let (again, mistakes) = parse(texts.join("\n").as_bytes());
    assert!(mistakes.is_empty(), "{mistakes:?}");
    assert!(again.iter().map(|seed| seed.url.as_str()).eq(texts));
}
