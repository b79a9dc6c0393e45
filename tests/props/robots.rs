//! robots.txt. The input is a file; its lines and parts of them also serve as request targets.
//!
//! Laws: the deciding line is in the file and agrees with the verdict; the kind of line ends makes
//! no difference, nor does a comment at the end; robots.txt itself may always be fetched; memory is
//! bounded by the file's size.

use super::{Target, seeded};
use sted::robots::{self, Rules, SITEMAPS_MAX};

pub const TARGET: Target = Target {
    samples: &[
        // From the fresh seed 957949126565: a no-break space of Latin-1 before a key, which the law
        // did not know.
        b"User-agent: *\n\xA0Disallow: /private/\nAllow: /private/open\nCrawl-delay: 2.5\n",
        // From the fresh seed 796508525463: a tag over five lines makes it an HTML page, whose
        // lines were counted in its text.
        b"<user-a*gent: sted\nuser-agent:%62 othMr\ndisallow: /*.php$\nallow> /a*b\n\n\
          user-agent: *\ndisallow: /\n",
        b"User-agent: *\nDisallow: /private/\nAllow: /private/open\nCrawl-delay: 2.5\n",
        b"user-agent: sted\nuser-agent: other\ndisallow: /*.php$\nallow: /a*b\n\nuser-agent: *\n\
          disallow: /\n",
        b"\xef\xbb\xbfUser-Agent: sted/1.0 # us\r\nDisallow: /%7Ea/\xe3\x83\x84\rAllow:/%62\r\n\
          Sitemap: https://a.test/map.xml\r\n",
    ],
    words: &[
        "User-agent: *\n",
        "user-agent:sted\n",
        "Disallow: ",
        "Allow: ",
        "\r\n",
        "*",
        "$",
        "%2A",
        "%62",
        "%E3",
        "ツ",
        "Crawl-delay: 9",
        "Sitemap: http://a.test/",
        "#",
        "/",
        "\nDisallow: /\n",
    ],
    check,
};

pub fn check(bytes: &[u8]) {
    let rules = Rules::parse(bytes, "sted");
    assert!(rules.size_bytes() < 400 + 64 * bytes.len(), "{} bytes", rules.size_bytes());
    assert!(rules.sitemaps().count() <= SITEMAPS_MAX);
    assert!(rules.check("/robots.txt").allowed);

    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = lines(&text);
    let same = Rules::parse(&[&lines.join("\r\n"), "# :"].concat().into_bytes(), "sted");
    let is_text = std::str::from_utf8(bytes).is_ok();
    let raw: Vec<&[u8]> = bytes
        .split(|byte| *byte == b'\n')
        .flat_map(|line| line.strip_suffix(b"\r").unwrap_or(line).split(|byte| *byte == b'\r'))
        .collect();
    assert_eq!(raw.len(), lines.len());
    let mut random = seeded(bytes);
    for _ in 0..8 {
        let line = lines[random.below(lines.len())];
        let target = line.split_once(':').map_or(line, |(_, value)| value.trim());
        let target = target.replace('*', "ab").replace('$', "");
        let verdict = rules.check(&target);
        if verdict.line == 0 {
            assert!(verdict.allowed, "forbidden by nobody: {target}");
            continue;
        }
        let line = bare(raw[verdict.line as usize - 1]).to_ascii_lowercase();
        // Misspelt keys disallow, too; none allows.
        let expected: &[&str] = if verdict.allowed { &["allow"] } else { &["dis", "dia"] };
        let speaks = |line: &[u8]| expected.iter().any(|word| line.starts_with(word.as_bytes()));
        // In an HTML page, tags may stand before the key.
        let speaks = if robots::is_html(bytes) {
            (0..line.len()).any(|start| speaks(&line[start..]))
        } else {
            speaks(&line)
        };
        assert!(speaks, "{target} by {}", line.escape_ascii());
        if is_text {
            assert_eq!(same.check(&target), verdict, "{target}");
        }
    }
}

/// Splits text into lines that end in CR, LF or both.
fn lines(text: &str) -> Vec<&str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r')).collect()
}

/// Removes what editors leave before a line's key: white space, zeros, byte order marks, and
/// no-break spaces in UTF-8 or Latin-1.
fn bare(mut line: &[u8]) -> &[u8] {
    const BLANKS: [&[u8]; 4] = [b"\0", b"\xEF\xBB\xBF", b"\xC2\xA0", b"\xA0"];
    loop {
        let before = line.len();
        line = line.trim_ascii_start();
        for blank in BLANKS {
            line = line.strip_prefix(blank).unwrap_or(line);
        }
        if line.len() == before {
            return line;
        }
    }
}
