//! Sitemaps and feeds as sites write them, and as they break.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

fn of(bytes: &[u8]) -> Listing {
    read(bytes, None, &Limits::default())
}

fn urls(read: &Listing) -> Vec<&str> {
    read.entries.iter().map(|entry| entry.url.as_str()).collect()
}

fn sitemap(entries: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{entries}</urlset>\n"
    )
}

const TWO: &str = "<url><loc>https://a.test/</loc><lastmod>2023-11-14</lastmod>\
    <priority>0.8</priority></url>\n<url>\n  <loc> https://a.test/b?x=1&amp;y=2 </loc>\n</url>\n";
const NAMES: [&str; 2] = ["https://a.test/", "https://a.test/b?x=1&y=2"];

#[test]
fn a_sitemap_has_urls_dates_and_priorities() {
    let read = of(sitemap(TWO).as_bytes());
    assert_eq!((read.kind, read.flaw, read.left_out), (Some(Kind::Pages), None, 0));
    assert_eq!(urls(&read), NAMES);
    assert_eq!(read.entries[0].modified, Some(1_699_920_000));
    assert_eq!(read.entries[0].priority, Some(800));
    assert_eq!((read.entries[1].modified, read.entries[1].priority), (None, None));
}

#[test]
fn spellings_of_sitemaps_are_read_alike() {
    let plain = sitemap(TWO);
    let none = plain.replace(" xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"", "");
    let wrong = plain.replace("www.sitemaps.org/schemas/sitemap/0.9", "example.org/x");
    let prefixed = plain.replace("<url", "<s:url").replace("</url", "</s:url");
    let cdata =
        plain.replace("<loc>https://a.test/</loc>", "<loc><![CDATA[https://a.test/]]></loc>");
    let undeclared = plain.split_once("?>\n").expect("it has one").1.to_owned();
    let dangling = plain.replace("&amp;y", "&y");
    let image = plain.replace(
        "</url>",
        "<image:image><image:loc>https://a.test/i.png</image:loc></image:image></url>",
    );
    let upper = plain.replace("\n<urlset", "\n<!-- a comment --><?pi?><!DOCTYPE urlset>\n<urlset");
    for text in [none, wrong, prefixed, cdata, undeclared, dangling, image, upper] {
        let read = of(text.as_bytes());
        assert_eq!((urls(&read), read.flaw), (NAMES.to_vec(), None), "{text}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory")
}

#[test]
fn encodings_are_recognised() {
    let text = sitemap("<url><loc>https://a.test/\u{e9}</loc></url>");
    let expected = vec!["https://a.test/\u{e9}"];
    let wide = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    };
    let latin = text.replace("UTF-8", "ISO-8859-1");
    let latin: Vec<u8> = latin.chars().map(|letter| letter as u8).collect();
    let marked = format!("\u{feff}{text}");
    // It says UTF-16 and isn't.
    let liar = text.replace("UTF-8", "utf-16");
    for bytes in [
        text.clone().into_bytes(),
        gzip(text.as_bytes()),
        marked.clone().into_bytes(),
        wide(&marked, u16::to_le_bytes),
        wide(&marked, u16::to_be_bytes),
        wide(&text, u16::to_le_bytes),
        latin.clone(),
        gzip(&latin),
        liar.into_bytes(),
    ] {
        let read = of(&bytes);
        assert_eq!((urls(&read), read.flaw), (expected.clone(), None), "{bytes:?}");
    }
    let undeclared: Vec<u8> = latin[latin.iter().position(|byte| *byte == b'\n').unwrap()..].into();
    let by_header = read(&undeclared[..], Some("latin1"), &Limits::default());
    assert_eq!(urls(&by_header), expected);
}

/// The URL of an entry, and when it changed.
type Expected = (&'static str, Option<u32>);

#[test]
fn indexes_feeds_and_lists() {
    let index = "<sitemapindex><sitemap><loc>https://a.test/1.xml.gz</loc>\
        <lastmod>2023-11-14T12:00:00Z</lastmod></sitemap></sitemapindex>";
    let rss = "<rss version=\"2.0\"><channel><title>News</title><link>https://a.test/</link>\
        <item><title>A &amp; B</title><link>https://a.test/1</link>\
        <pubDate>Tue, 14 Nov 2023 12:00:00 GMT</pubDate></item>\
        <item><link>https://a.test/2</link></item></channel></rss>";
    let rdf = "<rdf:RDF xmlns:rdf=\"x\"><channel><link>https://a.test/</link></channel>\
        <item><link>https://a.test/1</link><dc:date>2023-11-14T12:00:00Z</dc:date></item>\
        </rdf:RDF>";
    let atom = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><link href=\"https://a.test/\"/>\
        <entry><link rel=\"edit\" href=\"https://a.test/e\"/>\
        <link rel=\"alternate\" href=\"https://a.test/1?a&amp;b\"/>\
        <published>2020-01-01T00:00:00Z</published><updated>2023-11-14T12:00:00Z</updated></entry>\
        <entry><link href='https://a.test/2'></link><published>2023-11-14</published></entry>\
        </feed>";
    let noon = Some(1_699_963_200);
    let cases: [(&str, Kind, &[Expected]); 5] = [
        (index, Kind::Index, &[("https://a.test/1.xml.gz", noon)]),
        (rss, Kind::Feed, &[("https://a.test/1", noon), ("https://a.test/2", None)]),
        (rdf, Kind::Feed, &[("https://a.test/1", noon)]),
        (
            atom,
            Kind::Feed,
            &[("https://a.test/1?a&b", noon), ("https://a.test/2", Some(1_699_920_000))],
        ),
        (
            "\n  https://a.test/1 \r\nHTTPS://a.test/2\n\nno url\nhttps://a.test/3",
            Kind::Pages,
            &[("https://a.test/1", None), ("HTTPS://a.test/2", None), ("https://a.test/3", None)],
        ),
    ];
    for (text, kind, entries) in cases {
        let read = of(text.as_bytes());
        let found: Vec<(&str, Option<u32>)> =
            read.entries.iter().map(|entry| (entry.url.as_str(), entry.modified)).collect();
        assert_eq!((read.kind, &found[..], read.flaw), (Some(kind), entries, None), "{text}");
    }
}

/// What is before a flaw is read, and the flaw is named.
#[test]
fn broken_files_are_read_as_far_as_they_go() {
    let good = sitemap(TWO);
    let cut = &good[..good.len() - 16];
    let packed = gzip(good.repeat(2_000).as_bytes());
    let mut damaged = gzip(good.as_bytes());
    let length = damaged.len();
    damaged[length - 6] ^= 1;
    let deep = format!("<urlset>{TWO}<url>{}", "<x>".repeat(70));
    let long = format!("<urlset>{TWO}<url><loc>{}</loc></url></urlset>", "x".repeat(2 << 20));
    let tag = format!("<urlset>{TWO}<url a=\"{}\"></url></urlset>", "x".repeat(2 << 20));
    let malformed = good.replacen("</url>\n<url>", "</url>\n<url a=<", 1);
    let cases: [(&[u8], usize, Option<Flaw>); 12] = [
        (b"", 0, Some(Flaw::Foreign)),
        (b" \n", 0, Some(Flaw::Foreign)),
        (b"<!DOCTYPE html><html><body>Not found</body></html>", 0, Some(Flaw::Foreign)),
        (b"Not found", 0, Some(Flaw::Foreign)),
        (b"{\"error\": 404}", 0, Some(Flaw::Foreign)),
        (b"\x1f\x8bnot gzip", 0, Some(Flaw::Gzip)),
        (&packed[..packed.len() - 9], 2, Some(Flaw::Gzip)),
        (&damaged, 2, Some(Flaw::Gzip)),
        (deep.as_bytes(), 2, Some(Flaw::TooDeep)),
        (long.as_bytes(), 2, Some(Flaw::TokenTooLong)),
        (tag.as_bytes(), 2, Some(Flaw::TokenTooLong)),
        (cut.as_bytes(), 2, Some(Flaw::EndsEarly)),
    ];
    for (bytes, least, flaw) in cases {
        let read = of(bytes);
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        assert!(read.entries.len() >= least, "{start}: {:?}", read.flaw);
        assert_eq!(read.flaw, flaw, "{start}");
    }
    let read = of(malformed.as_bytes());
    assert_eq!(urls(&read)[0], NAMES[0]);
    assert!(!matches!(read.flaw, Some(Flaw::Foreign)), "{read:?}");
}

#[test]
fn limits_are_kept() {
    let many = sitemap(&"<url><loc>https://a.test/</loc></url>\n".repeat(50_001));
    let read = of(many.as_bytes());
    assert_eq!((read.entries.len(), read.flaw), (50_000, Some(Flaw::TooManyEntries)));
    let lines = "https://a.test/\n".repeat(50_001);
    assert_eq!(of(lines.as_bytes()).flaw, Some(Flaw::TooManyEntries));
    let limits = Limits { bytes: 100_000, ..Limits::default() };
    let read = super::read(many.as_bytes(), None, &limits);
    assert_eq!(read.flaw, Some(Flaw::TooLong));
    assert!(read.entries.len() > 2_000, "{}", read.entries.len());
    // 64 MB of nothing in some KB.
    let bomb = gzip(&[b"<!-- nothing -->".repeat(4 << 20), b"<urlset/>".to_vec()].concat());
    assert_eq!(of(&bomb).flaw, Some(Flaw::TooLong));
    let long =
        format!("<urlset><url><loc>https://a.test/{}</loc></url>{TWO}</urlset>", "x".repeat(3_000));
    let read = of(long.as_bytes());
    assert_eq!((read.entries.len(), read.left_out, read.flaw), (2, 1, None));
}

/// Law: no bytes panic.
#[test]
fn any_bytes_are_read_or_refused() {
    let mut state = 1_u64;
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let rss = "<rss><channel><item><link>https://a.test/1</link></item></channel></rss>";
    let all = [sitemap(TWO), rss.to_owned(), "https://a.test/\nhttps://a.test/2\n".to_owned()];
    for text in &all {
        for bytes in [text.clone().into_bytes(), gzip(text.as_bytes())] {
            for _ in 0..5_000 {
                let mut bytes = bytes.clone();
                for _ in 0..=draw(4) {
                    let at = draw(bytes.len());
                    bytes[at] =
                        [b'<', b'>', b'&', b'"', 0, 0xff, b']', b'/', draw(256) as u8][draw(9)];
                }
                bytes.truncate(draw(bytes.len()) + 1);
                let read = of(&bytes);
                assert!(read.entries.len() < 10);
            }
        }
    }
}
