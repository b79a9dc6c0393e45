//! Tests the limits of a page: how many targets count, and what is counted as discarded.

use crate::links::{Cut, Found, Progress, Scanner, Settings};
use encoding_rs::UTF_8;

fn found(html: &str, settings: &Settings, budget: usize) -> Found {
    let (mut scanner, mut found) = (Scanner::new(settings.clone()), Found::new());
    scanner.begin(UTF_8);
    while scanner.scan(html.as_bytes(), budget, &mut found) == Progress::More {}
    found
}

/// A table of contents has thousands of links to fragments of a few pages: each page is one target.
#[test]
fn targets_count_without_their_fragments() {
    let settings = Settings { links_max: 500, ..Settings::default() };
    let part = |number: usize| format!("<a href='{}.html#s{number}'>x</a>\n", number % 499);
    let mut html: String = (0..13_962).map(part).collect();
    html += "<a href=last.html>";
    for budget in [usize::MAX, 1_000] {
        let found = found(&html, &settings, budget);
        assert_eq!(found.cut(), Cut::default());
        assert_eq!(found.links().len(), 500);
        let last = found.links().last().map(|link| link.reference.to_owned());
        assert_eq!(last.as_deref(), Some("last.html"));
    }
    html += "<a href=#here><a href=more.html#a><a href=more.html#b>";
    let found = found(&html, &settings, usize::MAX);
    assert_eq!(found.cut(), Cut { targets: 3, ..Cut::default() });
    assert_eq!(found.cut().causes().collect::<Vec<_>>(), [("linksCut", 3)]);
}

#[test]
fn a_target_that_may_be_followed_is_another() {
    let settings = Settings { links_max: 2, ..Settings::default() };
    let html = "<a href=x rel=nofollow><a href=x#1 rel=nofollow><a href=x#2><a href=y>";
    let found = found(html, &settings, usize::MAX);
    let links: Vec<_> = found.links().map(|link| (link.reference, link.nofollow)).collect();
    assert_eq!(links, [("x", true), ("x#2", false)]);
    assert_eq!(found.cut().targets, 1);
}

/// References of schemes that aren't fetched use up neither targets nor bytes.
#[test]
fn other_schemes_take_no_place() {
    let settings =
        Settings { requisites: true, links_max: 8, found_bytes_max: 60, ..Settings::default() };
    let foreign = |number: usize| {
        format!(
            "<a href='javascript:f({number})'><a href=tel:+{number}><a href=' MAILTO:{number}@b.c'>
            <img src=data:{number}><a href='java\tscript:{number}'><a href=&#115;ms:{number}>
            <a href=x-y+z.1:{number}><img srcset='data:{number} 1x'>"
        )
    };
    let mut html: String = (0..100).map(foreign).collect();
    let ours = ["/next", "HTTPS:/a", "http:b", "1:2", "./c:d", "e/f:g", ":h", "?i:j"];
    ours.iter().for_each(|reference| html += &format!("<a href='{reference}'>"));
    html += &foreign(0);
    for budget in [usize::MAX, 1_000] {
        let found = found(&html, &settings, budget);
        let links: Vec<_> = found.links().map(|link| link.reference).collect();
        assert_eq!((links, found.cut()), (ours.to_vec(), Cut::default()));
    }
}

#[test]
fn each_bound_is_counted_by_its_cause() {
    let settings = Settings {
        requisites: true,
        links_max: 3,
        reference_bytes_max: 20,
        found_bytes_max: 30,
        ..Settings::default()
    };
    let long = "x".repeat(21);
    let list = "y ".repeat(40_000);
    let cases: [(String, &[(&str, u64)]); 10] = [
        ("<a href=1><a href=2><a href=3><a href=4><a href=5>".into(), &[("linksCut", 2)]),
        (format!("<a href={long}>"), &[("linkTooLong", 1)]),
        (format!("<a href=http://{long}><a href=HTTPS:{long}>"), &[("linkTooLong", 2)]),
        (format!("<img src=data:{long}><a href=javascript:{long}>"), &[]),
        (format!("<a href='  mailto:{long}'>"), &[]),
        (format!("<a href=1:{long}><a href=:{long}>"), &[("linkTooLong", 2)]),
        (format!("<base href={long}><a href=x>"), &[("baseTooLong", 1)]),
        (format!("<img srcset='{list}'>"), &[("valueTooLong", 1)]),
        ("<a href=0123456789012345><a href=1123456789012345>".into(), &[("linksBytesCut", 1)]),
        ("<a href=1><a href=2><a href=3><a href=1#a><a href=#a>".into(), &[("linksCut", 1)]),
    ];
    for (html, expected) in cases {
        let found = found(&html, &settings, 7);
        let causes: Vec<_> = found.cut().causes().collect();
        assert_eq!(causes, expected, "{}", &html[..html.len().min(80)]);
    }
}

/// A charset declared after the first 64 KiB is ignored.
#[test]
fn charsets_declared_too_late() {
    for (fill, expected) in [(65_535, Some("GBK")), (65_536, None)] {
        // The name of the tag begins after the fill and the bracket.
        let html = "x".repeat(fill - 1) + "<meta charset=gbk>";
        let found = found(&html, &Settings::default(), 1_000);
        assert_eq!(found.charset().map(encoding_rs::Encoding::name), expected, "{fill}");
    }
}

/// Law: the cost of an attribute does not depend on the length of the text after it. With a search
/// to the end of the text for each of them, this takes hours.
#[test]
fn a_million_attributes_take_linear_time() {
    for (tag, attribute) in
        [("<a", "/b"), ("<p", "/b"), ("</p", "/c"), ("<a", "\tb"), ("<a", "/b\"")]
    {
        let html = tag.to_owned() + &attribute.repeat(1 << 20) + "><a href=x>";
        for settings in [Settings::default(), Settings { requisites: true, ..Settings::default() }]
        {
            let found = found(&html, &settings, 1 << 16);
            let links: Vec<_> = found.links().map(|link| link.reference).collect();
            assert_eq!(links, ["x"], "{tag} {attribute:?}");
        }
    }
}
