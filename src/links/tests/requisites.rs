//! Tests which requisites of a page are found: of each kind what is wanted and what is not.

use super::{everything, listed, scanned};
use crate::links::{Cut, Found, Progress, Scanner, Settings};
use encoding_rs::{SHIFT_JIS, UTF_8, WINDOWS_1252};

/// Every kind of requisite, and beside each what looks like one. References that are wanted begin
/// with `y`, all others with `n`.
const PAGE: &str = r##"<!doctype html><title>n</title>
<link rel=stylesheet href=y1><link rel="shortcut icon" href=y2><link rel=manifest href=y3>
<link rel=preload as=font href=y4><link rel=modulepreload href=y5><link rel=apple-touch-icon
href=y6>
<link rel=preload as=image imagesrcset="y7 1x, y8 2x"><link rel=prefetch href=n><link rel=prerender
href=n><link rel=dns-prefetch href=//n><link rel=preconnect href=//n><link rel=search href=n>
<meta property=og:image content=n><meta name=twitter:image content=n>
<style>@import "y9"; @namespace url(n); p { background: url(y10) } /* url(n) */ i { x: "url(n)" }
b { background: image-set("y11" 1x, url('y12') 2x type("n")); mask: url(#n) }</style>
<style type=text/less>p { background: url(n) }</style>
<script src=y13></script><script>var x = "<img src=n>"; url("n")</script>
<body background=y14><table background=y15><tr background=y16><th background=y17><td background=y18>
<p background=n data-href=n style="background:url(y19)">x<p style='--x: url(&quot;y20&quot;)'>
<a style="cursor:url(y21),auto" href="javascript:n" ping=n>x</a><p style="@import url(n); x: n">
<img src=y22 srcset="y23 1x, y24 2x" longdesc=n><img data-src=y25 data-srcset="y26 2x" src=data:,n>
<picture><source srcset="y27, y28 2x"></picture><video src=y29 poster=y30><track src=y31></video>
<video data-src=y32><source src=y33 data-src=y34></video><audio src=y35></audio><embed src=y36>
<object data=y37 classid=n></object><object data=y38 codebase=y39/></object><bgsound src=y40>
<object data=/y41 codebase=n/></object><input type=image src=y42><input src=n><image src=y43>
<svg style="filter:url(y44)"><image href=y45 /><image xlink:href=y46 /><use href=y47#x /><use
href=#n /><use xlink:href=y48 /><feImage href=y49 /><script href=y50 /><rect fill="url(n)"
style="fill:url(y51)"/><a style="x:url(y52)">x</a></svg><noscript><img src=y53></noscript>
<template><img src=y54></template><blockquote cite=n></blockquote><q cite=n></q><ins cite=n></ins>
<iframe srcdoc='<img src=y55><base href=n><style>p{x:url(y56)}</style><iframe
srcdoc="&amp;lt;img src=&amp;quot;y57&amp;quot;>"></iframe>'></iframe>
<iframe data-src=y58></iframe><div data-src=n data-background=n></div><!-- <img src=n> -->"##;

#[test]
fn every_kind_of_requisite_is_found() {
    for budget in [usize::MAX, 1, 7] {
        let page = scanned(PAGE.as_bytes(), &everything(), budget);
        let found: Vec<_> = page.links.iter().map(|(_, reference, _)| &**reference).collect();
        let wanted = |number| match number {
            39 => "y39/y38".to_owned(),
            41 => "/y41".to_owned(),
            47 => "y47#x".to_owned(),
            _ => format!("y{number}"),
        };
        let mut wanted: Vec<_> = (1..=58).map(wanted).collect();
        let mut sorted = found.clone();
        let number = |text: &str| -> usize {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        };
        // The object with a codebase has two references.
        sorted.sort_by_key(|text| if *text == "y39/y38" { 39 } else { number(text) });
        wanted.sort_by_key(|text| if *text == "y39/y38" { 39 } else { number(text) });
        assert_eq!(sorted, wanted);
        assert_eq!(page.base, None, "that of the srcdoc is not the page's");
    }
    let plain = scanned(PAGE.as_bytes(), &Settings::default(), usize::MAX);
    assert_eq!(plain.links, [], "no requisites unless the settings want them");
}

#[test]
fn documents_in_attributes() {
    let cases: [(&str, &[&str]); 5] = [
        (
            "<iframe srcdoc='<a href=x>' src=y></iframe><a href=z>",
            &["frame y", "anchor x", "anchor z"],
        ),
        ("<iframe srcdoc='<script><a href=n>'></iframe><a href=z>", &["anchor z"]),
        ("<iframe srcdoc></iframe><a href=z>", &["anchor z"]),
        ("<p srcdoc='<a href=n>'><a href=z>", &["anchor z"]),
        ("<iframe srcdoc='<a href=x", &[]),
    ];
    for (html, expected) in cases {
        assert_eq!(listed(html, &Settings::default()), expected, "{html}");
    }
    let mut html = "<a href=x>".to_owned();
    let mut lengths = Vec::new();
    for level in 1..=5 {
        lengths.push(html.len());
        let text = html.replace('&', "&amp;").replace('"', "&quot;");
        html = format!("<iframe srcdoc=\"{text}\"></iframe><a href={level}>");
    }
    let (mut scanner, mut found) = (Scanner::new(Settings::default()), Found::new());
    scanner.begin(UTF_8);
    while scanner.scan(html.as_bytes(), 3, &mut found) == Progress::More {}
    let links: Vec<_> = found.links().map(|link| link.reference).collect();
    assert_eq!(links, ["2", "3", "4", "5"], "the innermost two are nested too deeply");
    assert_eq!(found.cut(), Cut { nested: 1, ..Cut::default() });
    // Three documents are decoded and scanned, the fourth is decoded only.
    let work = lengths[1] + 2 * lengths[2..].iter().sum::<usize>();
    assert_eq!(scanner.take_nested(), work);
}

/// The targets of buttons, if the form is sent by GET.
#[test]
fn buttons_of_forms() {
    let settings = Settings { forms: true, ..Settings::default() };
    let cases: [(&str, &[&str]); 6] = [
        ("<form><button formaction=x>", &["form x"]),
        ("<form action=y><input type=submit formaction=x>", &["form y", "form x"]),
        ("<form method=post><button formaction=n>", &[]),
        ("<form method=post><button formaction=x formmethod=get>", &["form x"]),
        ("<form action=y><button formaction=n formmethod=POST>", &["form y"]),
        ("<p formaction=n><a href=z formaction=n>", &["anchor z"]),
    ];
    for (html, expected) in cases {
        assert_eq!(listed(html, &settings), expected, "{html}");
    }
    assert_eq!(listed("<form><button formaction=n>", &Settings::default()), [""; 0]);
}

/// Styles in pages of other charsets: the text is decoded before it is split into tokens, since a
/// backslash may be the second byte of a character.
#[test]
fn styles_in_other_charsets() {
    let cases: [(&'static encoding_rs::Encoding, &[u8], &str); 4] = [
        (UTF_8, "<style>a{b:url(é)}</style>".as_bytes(), "é"),
        (WINDOWS_1252, b"<style>a{b:url(\xe9)}", "é"),
        (SHIFT_JIS, b"<style>a{b:url('\x83\x5c')}", "\u{30bd}"),
        (SHIFT_JIS, b"<p style='a:url(\x83\x5c)'>", "\u{30bd}"),
    ];
    for (charset, html, expected) in cases {
        for budget in [1, usize::MAX] {
            let (mut scanner, mut found) = (Scanner::new(everything()), Found::new());
            scanner.begin(charset);
            while scanner.scan(html, budget, &mut found) == Progress::More {}
            let links: Vec<_> = found.links().map(|link| link.reference).collect();
            assert_eq!(links, [expected], "{} {}", charset.name(), html.escape_ascii());
        }
    }
}
