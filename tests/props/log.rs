//! Lines of the crawl log, parsed back.
//!
//! Laws: every parsed field occurs in the line; the number of spaces between fields makes no
//! difference; an error names one of the thirteen fields.

use super::Target;
use sted::store::log::parse;

pub const TARGET: Target = Target {
    samples: &[
        b"2026-11-20T09:38:49.123Z   200      16712 http://a.test/x?y L http://a.test/ text/html \
          #000 20261120093849078+45 sha1:ABCDEFGH - 2t {\"warcFilename\":\"a-0.warc.gz\",\
          \"warcFileOffset\":4711,\"server\":\"http://a.test\",\"visit\":1,\"conn\":2,\
          \"sent\":1795167529078000,\"hops\":0}",
        b"1970-01-01T00:00:00.000Z    -2          - http://b.test/ - - - #000 - - - - \
          {\"server\":\"http://b.test\",\"visit\":0,\"reason\":\"refused \\u00e9\",\"hops\":3}",
    ],
    words: &[
        " ",
        "  ",
        "-",
        "#000",
        "+",
        "{",
        "}",
        "\"",
        "\"hops\":1",
        "\\",
        "2026-02-30T23:59:60.999Z",
        "99999999999999999999",
        "-9998",
        "20261120093849123+1",
        "{\"server\":",
        "\u{e9}",
    ],
    check,
};

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse(&text) {
        Err(malformed) => assert!((1..=13).contains(&malformed.field)),
        Ok(entry) => {
            let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
            assert_eq!(words[3], entry.url);
            assert_eq!(words[1].parse(), Ok(entry.status));
            assert_eq!(entry.size.is_none(), words[2] == "-");
            let found = [entry.path, entry.via, entry.mime, entry.digest, entry.source];
            for (word, found) in [4, 5, 6, 9, 10].into_iter().zip(found) {
                assert_eq!(found.unwrap_or("-"), words[word]);
            }
            let mut json = text.as_ref();
            for word in &words[..12] {
                json = &json.trim_start_matches(' ')[word.len()..];
            }
            let tight = format!("{} {}", words[..12].join(" "), json.trim_start_matches(' '));
            assert_eq!(parse(&tight).as_ref(), Ok(&entry));
        }
    }
}
