//! Tests seed files as people write them, and as programs export them.

use super::*;
use crate::ground::random::Random;

fn one(line: &str) -> Result<String, Reason> {
    let (seeds, mistakes) = parse(line.as_bytes());
    assert_eq!(seeds.len() + mistakes.len(), 1, "{line:?}");
    match mistakes.first() {
        Some(mistake) => Err(mistake.reason),
        None => Ok(seeds[0].url.as_str().into()),
    }
}

#[test]
fn a_file_with_everything() {
    let text = "\u{feff}http://a.test/\r\n# comment\r\n\r\n  b.test/x  # why\n\t#\nA.test\n\
                http://a.test/#top\nhttp://\nlast.test/#f";
    let (seeds, mistakes) = parse(text.as_bytes());
    let seeds: Vec<_> = seeds.iter().map(|seed| (seed.line, seed.url.as_str())).collect();
    let expected = [(1, "http://a.test/"), (4, "http://b.test/x"), (9, "http://last.test/")];
    assert_eq!(seeds, expected);
    let mistakes: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
    let expected = [
        "line 6: \"A.test\": the same as line 1",
        "line 8: \"http://\": no host, or not a valid one",
    ];
    assert_eq!(mistakes, expected);
    assert_eq!(parse(b""), (vec![], vec![]));
}

#[test]
fn lines_as_people_write_them() {
    let cases = [
        ("https://a.test", Ok("https://a.test/")),
        ("HTTP://A.test:80/", Ok("http://a.test/")),
        ("a.test", Ok("http://a.test/")),
        ("//a.test/x", Ok("http://a.test/x")),
        ("localhost:8080", Ok("http://localhost:8080/")),
        ("localhost:8080/x:y", Ok("http://localhost:8080/x:y")),
        ("a.test:81?x", Ok("http://a.test:81/?x")),
        ("a.test/?u=http://b.test/", Ok("http://a.test/?u=http://b.test/")),
        ("[::1]:81/", Ok("http://[::1]:81/")),
        ("10.0.0.1", Ok("http://10.0.0.1/")),
        ("b\u{fc}cher.test", Ok("http://xn--bcher-kva.test/")),
        ("a.test/@user", Ok("http://a.test/@user")),
        ("ftp://a.test/", Err(Reason::Invalid(Invalid::Scheme))),
        ("mailto:x@a.test", Err(Reason::Invalid(Invalid::Scheme))),
        ("x@a.test", Err(Reason::MailAddress)),
        ("/var/log", Err(Reason::Invalid(Invalid::Host))),
        ("a test", Err(Reason::WhiteSpace)),
        ("http://a.test/my page", Err(Reason::WhiteSpace)),
        ("http://a.test/x\tits note, with more", Ok("http://a.test/x")),
        ("\"http://a.test/x\",", Ok("http://a.test/x")),
        ("'a.test'", Ok("http://a.test/")),
        ("<https://a.test/x>", Ok("https://a.test/x")),
        ("\"a.test", Err(Reason::Quote)),
        ("http://a.test/x,y", Ok("http://a.test/x,y")),
        ("+a.test", Err(Reason::Directive)),
        ("1\thttp://a.test/1", Ok("http://a.test/1")),
        ("12. \t\"a.test/1\"\ta note", Ok("http://a.test/1")),
        ("Title\thttp://a.test/1", Err(Reason::Prefix)),
        ("a.test\thttp://b.test/", Ok("http://a.test/")),
        ("10.0.0.1\tits note", Ok("http://10.0.0.1/")),
        ("\u{201c}http://a.test/1\u{201d},", Ok("http://a.test/1")),
        ("\u{2018}\u{200b}a.test\u{2019}", Ok("http://a.test/")),
        ("\u{201c}http://a.test/1", Err(Reason::Quote)),
        ("\u{201c}http://a.test/\u{201d}x", Err(Reason::Quote)),
        ("\u{200b}http://a.test/1\u{feff}", Ok("http://a.test/1")),
        ("\u{a0}http://a.test/1\u{a0}", Ok("http://a.test/1")),
        ("http\u{200b}://a.test/", Err(Reason::Invisible('\u{200b}'))),
        ("1http://a.test/", Err(Reason::Prefix)),
        ("a.test,http://a.test/", Err(Reason::Prefix)),
        ("http://http://a.test/", Err(Reason::Prefix)),
        ("http://a.test?u=http://b.test/", Ok("http://a.test/?u=http://b.test/")),
        ("a.test/save/http://b.test/", Ok("http://a.test/save/http://b.test/")),
        ("a.test:99999", Err(Reason::Invalid(Invalid::Port))),
    ];
    for (line, expected) in cases {
        assert_eq!(one(line).as_deref().map_err(|reason| *reason), expected, "{line}");
    }
}

/// Lines that a URL parser would accept with a meaning that nobody intends.
#[test]
fn lines_that_cannot_be_meant_are_mistakes() {
    let cases: &[(Reason, &[&str])] = &[
        (
            Reason::Scheme,
            &[
                "http//a.test/x",
                "https//b.test/y",
                "HTTPS//b.test/y",
                "http;//i.test/",
                "http.//j.test/",
                "https,//j.test/",
                "http/a.test/",
                "htps//a.test/x",
                "ttp//a.test",
                "http://http//a.test/",
                "http://https:/a.test/",
                "https",
            ],
        ),
        (
            Reason::TwoUrls,
            &[
                "http://a.test/x|http://b.test/y",
                "http://a.test/x;http://b.test/y",
                "http://a.test/x,https://b.test/y",
                "http://a.test,http://b.test/",
                "http://a.test/x,HTTP://b.test/y",
                "a.test/x;http://b.test/",
                "http://a.test/?p=1|http://b.test/",
                "http://a.test/x|http:\\\\b.test\\y",
                "http://a.test/xhttp://b.test/y",
                "http://a.test/#top|http://b.test/y",
                "http://a.test/x\u{ff0c}http://b.test/y",
            ],
        ),
    ];
    hold(cases);
}

#[test]
fn markup_leftovers_and_unseen_characters_are_mistakes() {
    hold(&[
        (
            Reason::Quote,
            &["http://h.test/\"", "http://d.test/>", "<http://d.test/", "http://h.test/\u{201d}"],
        ),
        (
            Reason::Markup,
            &[
                "<urlset>",
                "<url>",
                "</url>",
                "<loc>http://a.test/</loc>",
                "<?xml version=\"1.0\"?>",
                "<!-- x -->",
                "<a href=\"http://a.test/\">",
            ],
        ),
        (
            Reason::HostName,
            &["lines\"x\"", "a.test,b.test", "seeds;title", "*.a.test", "{", "(org,a,)/", "x=y"],
        ),
        (Reason::Invisible('\0'), &["http://a.test/x\0http://b.test/y", "a.test\0", "\0"]),
        (Reason::Invisible('\u{b}'), &["http://a.test/x\u{b}http://b.test/y"]),
        (Reason::Invisible('\u{c}'), &["http://a.test/x\u{c}http://b.test/y"]),
        (Reason::Invisible('\u{1e}'), &["http://a.test/x\u{1e}http://b.test/y"]),
        (Reason::Invisible('\u{85}'), &["http://a.test/x\u{85}http://b.test/y"]),
        (
            Reason::Invisible('\u{2028}'),
            &[
                "http://a.test/x\u{2028}http://b.test/y",
                "http://a.test/x\tnote\u{2028}http://b.test/y",
                "http://a.test/x # note\u{2028}http://b.test/y",
            ],
        ),
        (Reason::Invisible('\u{1a}'), &["\u{1a}"]),
        (Reason::Invisible('\u{200b}'), &["http://a.test/x\u{200b}y"]),
        (Reason::WhiteSpace, &["http://a.test/x\u{a0}y", "http://a.test/x\u{3000}http://b.test/"]),
    ]);
}

fn hold(cases: &[(Reason, &[&str])]) {
    for (reason, lines) in cases {
        for line in *lines {
            assert_eq!(one(line), Err(*reason), "{line:?}");
        }
    }
}

#[test]
fn urls_within_urls_are_one() {
    let urls = [
        "https://web.archive.org/web/2020/http://a.test/",
        "http://a.test/?u=http://b.test/",
        "http://a.test/?u=http://b.test/,http://c.test/",
        "http://a.test/go*http://b.test/",
        "http://a.test/f:w(http://b.test/y.png)/x",
        "http://a.test/?u%3Dhttp://b.test/",
        "http://a.test/cache:xyz:http://b.test/",
    ];
    for url in urls {
        assert_eq!(one(url).as_deref(), Ok(url));
    }
}

/// Lines that give a seed, and may have another meaning.
#[test]
fn doubts_are_pointed_out() {
    let cases: &[(&str, &[Doubt])] = &[
        ("http://a.test/x", &[]),
        ("http://a.test/x|Title", &[Doubt::Separator('|')]),
        ("http://a.test/x;Title", &[Doubt::Separator(';')]),
        ("http://a.test/x,Title", &[Doubt::Separator(',')]),
        ("http://a.test/x;id=1?a=1;b=2", &[]),
        ("http://a.test/x?a=1&amp;b=2", &[Doubt::Entity]),
        ("<http://a.test/x,y>", &[]),
        ("http://a.test/x\thttp://b.test/y", &[Doubt::SecondUrl]),
        ("http://a.test/x\tb.test", &[Doubt::SecondUrl]),
        ("http://a.test/x\tits note, v1.2", &[]),
        ("\"http://a.test/x\",\"http://b.test/y\"", &[Doubt::SecondUrl]),
        ("http://u:p@a.test/x", &[Doubt::Credentials]),
        ("u@a.test/x", &[Doubt::Credentials]),
        ("http://a.test/@u", &[]),
        ("http://a.test/x.", &[Doubt::Ending]),
        ("http://a.test.", &[]),
        ("http://a.test/x)", &[Doubt::Ending]),
        ("http://a.test/(x)", &[]),
        ("http://a.test/'", &[Doubt::Ending]),
        ("http://a.test/*", &[Doubt::Ending]),
        ("http://a.test/long\u{2026}", &[Doubt::Ending]),
        ("http:\\/\\/a.test\\/x", &[Doubt::Backslash]),
        ("wiki", &[Doubt::Dotless]),
        ("wiki/x.html", &[Doubt::Dotless]),
        ("//wiki:80", &[Doubt::Dotless]),
        ("http:///wiki/x", &[Doubt::Dotless]),
        ("http://wiki/", &[]),
        ("localhost:8080", &[]),
        ("[::1]:80", &[]),
        ("42", &[Doubt::Number]),
        ("1.2", &[Doubt::Number]),
        ("10.0.0.1:80", &[]),
    ];
    for (line, expected) in cases {
        let parsed = parse_file(line.as_bytes());
        let doubts: Vec<Doubt> = parsed.doubts.iter().map(|found| found.doubt).collect();
        assert_eq!((&*doubts, parsed.seeds.len()), (*expected, 1), "{line:?}: {parsed:?}");
    }
}

#[test]
fn tables_are_read_by_their_column() {
    let cases: &[(&str, &[&str])] = &[
        ("url,title\nhttp://a.test/,\"x, y\"\nb.test,z\n", &["http://a.test/", "http://b.test/"]),
        ("Title;URL\nx;a.test/1,2\n", &["http://a.test/1,2"]),
        ("id\tdomain\n7\ta.test\n", &["http://a.test/"]),
        ("1,a.test\n2,b.test\n", &["http://a.test/", "http://b.test/"]),
        ("\"url\",\"note\"\n\"http://a.test/x\",\"y\"\n", &["http://a.test/x"]),
        ("http://a.test/1,2\nhttp://a.test/3,4\n", &["http://a.test/1,2", "http://a.test/3,4"]),
        ("url\nhttp://a.test/\n", &["http://a.test/"]),
        ("\u{feff}# mine\n\"Domain\"\r\na.test\r\n", &["http://a.test/"]),
        ("Website URL\nhttp://a.test/1,2\n", &["http://a.test/1,2"]),
        ("sep=;\nurl;title\nhttp://a.test/;x\n", &["http://a.test/"]),
        ("\"sep=;\"\nhttp://a.test/;x\nb.test;y\n", &["http://a.test/", "http://b.test/"]),
        ("sep=,\r\n1,a.test\r\n2,b.test\r\n", &["http://a.test/", "http://b.test/"]),
        ("seed_url,title\nhttp://a.test/,x\n", &["http://a.test/"]),
        ("site_id,pageUrl\n7,http://a.test/\n", &["http://a.test/"]),
        ("page_url,url\nhttp://b.test/,http://a.test/\n", &["http://a.test/"]),
        ("Title|URL (final)\nx|http://a.test/\n", &["http://a.test/"]),
        ("http://a.test/x,link\nhttp://b.test/\n", &["http://a.test/x,link", "http://b.test/"]),
        ("1;a.test\n2;b.test\n", &["http://a.test/", "http://b.test/"]),
        ("title\turl\n\thttp://a.test/\n", &["http://a.test/"]),
        ("title,url\n5\" disk,http://a.test/\n,,\n", &["http://a.test/"]),
        (
            "url,title\nhttp://a.test/,\"two\n# \"\"lines\"\"\r\n\"\nb.test,\"x # y\"\n# c\n",
            &["http://a.test/", "http://b.test/"],
        ),
        (
            "title,url\n\"two\n\nlines\",http://a.test/\nx,b.test # c\n",
            &["http://a.test/", "http://b.test/"],
        ),
        ("url,x\na.test,\"5\nb.test,\"6\"\n", &["http://a.test/", "http://b.test/"]),
    ];
    for &(text, expected) in cases {
        let parsed = parse_file(text.as_bytes());
        let found: Vec<_> = parsed.seeds.iter().map(|seed| seed.url.as_str()).collect();
        assert_eq!((&*found, parsed.mistakes.len()), (expected, 0), "{text:?}");
    }
    let plain = parse_file(b"a.test\nhttp://a.test/1,2\nhttp://a.test/3,4\n");
    let comma = Doubtful { doubt: Doubt::Separator(','), lines: 2, first: 2 };
    assert_eq!(plain.doubts, [comma], "commas of a list are pointed out");
}

/// Where the first lines may be misread as a header this is reported; rows keep their numbers.
#[test]
fn headers_and_rows_without_a_url_are_reported() {
    let cases: &[(&str, &[(usize, Reason)])] = &[
        ("site\nwiki\nmail\n", &[(1, Reason::Header)]),
        ("url\n", &[(1, Reason::Header)]),
        ("url\na.test\nurl\n", &[(3, Reason::Header)]),
        ("url,title\na.test,\"x\ny\"\n\u{feff}url,title\nb.test,y\n", &[(4, Reason::Header)]),
        ("title,url\nx\na.test,\nx,c.test\n", &[(2, Reason::NoCell), (3, Reason::NoCell)]),
        (
            "name,homepages\nx,a.test\ny,http://a.test/\n",
            &[(1, Reason::HostName), (2, Reason::HostName), (3, Reason::Prefix)],
        ),
    ];
    for (text, expected) in cases {
        let (_, mistakes) = parse(text.as_bytes());
        let found: Vec<_> = mistakes.iter().map(|wrong| (wrong.line, wrong.reason)).collect();
        assert_eq!(found, *expected, "{text:?}");
    }
}

/// An unclosed quote doesn't include the following lines in its cell.
#[test]
fn an_open_quote_does_not_swallow_the_rows_behind_it() {
    let mut text = "url,title\nhttp://a.test/,\"open\n".to_owned();
    (0..500).for_each(|row| text.push_str(&format!("http://a.test/{row},x\n")));
    assert_eq!(parse(text.as_bytes()).0.len(), 501);
}

#[test]
fn line_ends_and_encodings() {
    let text = "http://a.test/\r# note\rb.test/\u{e9}\r\rc.test";
    let utf16 = |to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    };
    let (low, high) = (utf16(u16::to_le_bytes), utf16(u16::to_be_bytes));
    let files = [
        text.as_bytes().to_vec(),
        text.replace('\r', "\r\n").into_bytes(),
        [b"\xff\xfe", low.as_slice()].concat(),
        [b"\xfe\xff", high.as_slice()].concat(),
        low,
        high,
    ];
    for (number, file) in files.iter().enumerate() {
        let (seeds, mistakes) = parse(file);
        let seeds: Vec<_> = seeds.iter().map(|seed| (seed.line, seed.url.as_str())).collect();
        let expected = [(1, "http://a.test/"), (3, "http://b.test/%C3%A9"), (5, "http://c.test/")];
        assert_eq!((&*seeds, mistakes.len()), (&expected[..], 0), "file {number}");
    }
}

#[test]
fn bytes_that_are_no_text_are_reported() {
    let (seeds, mistakes) = parse(b"http://a.test/\n\xff\xfe\nhttp://b.test/");
    assert_eq!(seeds.len(), 2);
    assert_eq!((mistakes[0].line, mistakes[0].reason), (2, Reason::NotUtf8));
}

#[test]
fn many_repeats_are_reported_once_and_long_lines_are_cut() {
    let (seeds, mistakes) = parse("a.test\n".repeat(50).as_bytes());
    assert_eq!((seeds.len(), mistakes.len()), (1, 1));
    let (seeds, mistakes) = parse(format!("a.test/{}", "\u{e9}".repeat(50_000)).as_bytes());
    assert_eq!((seeds.len(), mistakes[0].text.chars().count()), (0, 203));
    assert_eq!(mistakes[0].reason, Reason::Invalid(Invalid::TooLong));
}

/// Law: no text causes a panic, and every line that isn't blank gives a seed or is reported.
#[test]
fn mutated_files_are_survived() {
    let plain = "\u{feff}http://a.test/\r\n# c\nb.test:80/x # y\n\u{e9}.test\nx@y\n//z\n";
    let table =
        "sep=;\nurl;title\nhttp://a.test/;\"x\n\"\"y\"\nb.test;|http://c.test/,d\n\"c.test\"\n";
    let mut random = Random(0x5eed_0006);
    let mut below = |bound: usize| random.below(bound);
    for round in 0..40_000 {
        let text = if round % 2 == 0 { plain } else { table };
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..below(6) {
            let at = below(bytes.len());
            bytes[at] = u8::try_from(below(256)).expect("a byte");
        }
        bytes.truncate(below(bytes.len() + 1));
        let lines = bytes.split(|&byte| matches!(byte, b'\n' | b'\r')).count();
        let (seeds, mistakes) = parse(&bytes);
        assert!(seeds.len() + mistakes.len() <= lines);
        assert!(seeds.windows(2).all(|pair| pair[0].line < pair[1].line));
        for seed in &seeds {
            assert_eq!(Url::parse(seed.url.as_str()).as_ref(), Ok(&seed.url));
            let (again, _) = parse(seed.url.as_str().as_bytes());
            assert_eq!((again.len(), &again[0].url), (1, &seed.url));
        }
    }
}
