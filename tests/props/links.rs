//! The scanner of pages, style sheets and header fields for references.
//!
//! Laws: the number of times a scan stops for its budget does not change what is found; limits
//! hold; no reference has white space around it or line ends in it; header fields are read to their
//! end.

use super::{Target, seeded};
use encoding_rs::{SHIFT_JIS, UTF_8, WINDOWS_1252};
use sted::links::{
    Converter, Found, Kind, Progress, Scanner, Settings, charset, header_links, is_scannable,
    refresh, robots_tag, sheet_charset,
};

pub const TARGET: Target = Target {
    samples: &[
        b"<!doctype html><html><head><base href=/b/><meta name=robots content='noindex,follow'>\
          <link rel=next href=\"/n?a=1&amp;b\"><title>a <a href=no></title></head><body>\
          <a href='x' rel=\"nofollow ugc\">x</a><A HREF = y >y</a><img srcset='a 1x, b 2x' src=c>",
        b"<script>var a = '<a href=no>'; <!-- <script> --></script><!-- <a href=no> --><noscript>\
          <a href=yes></noscript><style><a href=no></style><textarea><a href=no></textarea>",
        b"<meta charset=shift_jis><svg><a xlink:href=s></a><![CDATA[<a href=no>]]></svg>\
          <iframe src=&#x2F;f&#47;></iframe><form action=q><area href=\"\ttab\n\">",
        b"<https://a.test/>; rel=\"next\"; title=\"a, b\", </c>; rel=canonical nofollow",
        b"@charset \"utf-8\"; @import 'a' supports(b:url(c)); d{e:url( f\\)g ) image-set('h' 1x, \
          url(\"i\") 2x)} @namespace url(j); @media k{l{m:src('n')}} /* url(o) */",
        b"<style>@import url(a);</style><p style='b:url(c)'><td background=d><iframe srcdoc=\
          '<img src=e><iframe srcdoc=&quot;<p style=f:url(g)>&quot;>'><button formaction=h>",
        b"5; url='/later', sted: noindex, nofollow, unavailable_after: 25 Jun",
    ],
    words: &[
        "<",
        ">",
        "</",
        "<!--",
        "-->",
        "<script>",
        "</script",
        "<a href=",
        "href='",
        "\"",
        "'",
        "=",
        "&amp;",
        "&#x41;",
        "&notit;",
        "<base href=",
        "<svg>",
        "</svg>",
        "<![CDATA[",
        "]]>",
        "<meta http-equiv=refresh content='0;url=",
        "<plaintext>",
        "srcset=",
        " rel=nofollow ",
        "<template>",
        "<math>",
        "/>",
        "\0",
        "<title>",
        "<style>",
        "</style>",
        "url(",
        "image-set('",
        "@import '",
        "/*",
        "*/",
        "\\",
        "<p style='a:url(",
        "<iframe srcdoc='",
        "(",
        ")",
        "{",
        "}",
        ";",
    ],
    check,
};

pub fn check(bytes: &[u8]) {
    let settings = Settings {
        requisites: true,
        forms: true,
        links_max: 40,
        reference_bytes_max: 100,
        found_bytes_max: 1_000,
        ..Settings::default()
    };
    let mut random = seeded(bytes);
    let charset_of_page = [UTF_8, WINDOWS_1252, SHIFT_JIS][random.below(3)];
    let mut scanner = Scanner::new(settings.clone());
    let whole = scan(&mut scanner, charset_of_page, bytes, || usize::MAX / 2);
    let cut = scan(&mut scanner, charset_of_page, bytes, || 1 + random.below(60));
    assert_eq!(whole.links().collect::<Vec<_>>(), cut.links().collect::<Vec<_>>());
    assert_eq!(
        (whole.base(), whole.directives(), whole.charset(), whole.cut()),
        (cut.base(), cut.directives(), cut.charset(), cut.cut())
    );

    let sheet = |budget: &mut dyn FnMut() -> usize| {
        let (mut scanner, mut found) = (Scanner::new(settings.clone()), Found::new());
        scanner.begin_sheet(sheet_charset(None, bytes));
        while let Progress::More = scanner.scan(bytes, budget(), &mut found) {}
        assert_tame(&found, &settings);
        found
    };
    let (whole_sheet, cut) = (sheet(&mut || usize::MAX / 2), sheet(&mut || 1 + random.below(60)));
    assert_eq!(whole_sheet.links().collect::<Vec<_>>(), cut.links().collect::<Vec<_>>());
    assert_eq!(whole_sheet.cut(), cut.cut());

    let mut found = Found::new();
    header_links(bytes, &settings, &mut found);
    for found in [&whole, &found] {
        assert_tame(found, &settings);
    }
    let _ = refresh(bytes);
    let _ = robots_tag(bytes, "sted");

    let named = charset(Some(bytes), bytes).encoding;
    let (mut whole, mut text) = (Vec::new(), Vec::new());
    assert!(Converter::new(named).convert(bytes, &mut whole, usize::MAX, 64).is_done);
    assert!(whole.len() <= 64 && std::str::from_utf8(&whole).is_ok());
    let (mut converter, mut at) = (Converter::new(named), 0);
    loop {
        let step = converter.convert(&bytes[at..], &mut text, 1, 64);
        at += step.used;
        if step.is_done {
            break;
        }
    }
    assert_eq!(whole, text);
    assert!(is_scannable(UTF_8));
}

fn scan(
    scanner: &mut Scanner,
    charset: &'static encoding_rs::Encoding,
    text: &[u8],
    mut budget: impl FnMut() -> usize,
) -> Found {
    let mut found = Found::new();
    scanner.begin(charset);
    while let Progress::More = scanner.scan(text, budget(), &mut found) {}
    found
}

fn assert_tame(found: &Found, settings: &Settings) {
    assert!(found.links().len() <= settings.links_max);
    let bytes: usize = found.links().map(|link| link.reference.len()).sum();
    assert!(bytes <= settings.found_bytes_max, "{bytes}");
    for link in found.links() {
        let reference = link.reference;
        let breaks = reference.contains(['\n', '\r', '\t']);
        assert!(!breaks || link.kind == Kind::Header, "{reference:?}");
        assert_eq!(reference.trim_ascii(), reference);
    }
}
