//! Tests the scope case by case, and the laws of prefixes, domains and traps.

use super::*;
use crate::ground::random::Random;
use crate::url::site::Matcher;

fn url(text: &str) -> Url {
    Url::parse(text).expect(text)
}

fn list(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.into()).collect()
}

/// Checks URLs against the name of their rejection; `in` if there is none.
fn check(settings: &Settings, seeds: &[&str], cases: &[(&str, &str)]) {
    let seeds: Vec<Url> = seeds.iter().map(|seed| url(seed)).collect();
    let scope = Scope::new(settings.clone(), &seeds).expect("good settings");
    for &(text, expected) in cases {
        let verdict = scope.check(url(text).view(), 0);
        assert_eq!(verdict.map_or_else(Rejection::name, |()| "in"), expected, "{text}");
    }
    // Checked one after the other, the result must not depend on the URL before.
    let urls: Vec<Url> = cases.iter().map(|(text, _)| url(text)).collect();
    for first in &urls {
        let mut listed = "";
        let _ = scope.check_after(first.view(), 0, &mut listed);
        for url in &urls {
            let alone = scope.check(url.view(), 0);
            let mut listed = listed;
            assert_eq!(scope.check_after(url.view(), 0, &mut listed), alone, "{url:?}");
        }
    }
}

#[test]
fn the_default_is_the_open_web_without_its_traps() {
    let deep = format!("http://a.test/{}", (0..21).map(|n| format!("{n}/")).collect::<String>());
    let params =
        format!("http://a.test/?{}", (0..33).map(|n| format!("&p{n}")).collect::<String>());
    let cases = [
        ("http://a.test/", "in"),
        ("https://b.test:8443/x/y/z?q=1&r=2", "in"),
        ("http://127.0.0.1/", "in"),
        ("http://a.test:25/", "port"),
        ("http://a.test:6667/", "port"),
        ("https://a.test:22/", "port"),
        ("http://a.test/x/y/x/y/x/y", "in"),
        ("http://a.test/x/y/x/y/x/y/x/", "segment-repeats"),
        ("http://a.test/x//////////y", "in"),
        ("http://a.test/?a=1&a=1&a=1&b", "in"),
        ("http://a.test/?a=1&a=1&b&a=1&a=1", "param-repeats"),
        ("http://a.test/?a=1&a=2&a=3&a=4&a=5", "in"),
        (&deep, "path-depth"),
        (&params, "query-params"),
    ];
    check(&Settings::default(), &["http://seed.test/"], &cases);
}

/// Law: many parts are judged like few.
#[test]
fn repeats_agree_with_a_naive_count() {
    let mut draw = Random(0x5eed_0007);
    for _ in 0..2_000 {
        let random = draw.word();
        let (kinds, parts) = ((random >> 33) % 12 + 1, (random >> 40) % 50);
        let part = |n: u64| format!("{}", (random.rotate_left(n as u32 % 64) ^ n) % kinds);
        let parts: Vec<String> = (0..parts).map(part).collect();
        let text = parts.join("//");
        let most = parts.iter().map(|a| parts.iter().filter(|b| *b == a).count()).max();
        assert_eq!(count(text.as_bytes(), b'/'), parts.len());
        for max in 0..8 {
            let repeated = is_repeated(text.as_bytes(), b'/', parts.len(), max);
            assert_eq!(repeated, most.unwrap_or(0) > max, "{text} {max}");
        }
    }
}

#[test]
fn schemes_and_length() {
    let https = Settings { schemes: Schemes::Https, ..Settings::default() };
    check(&https, &[], &[("https://a.test/", "in"), ("http://a.test/", "scheme")]);
    let http = Settings { schemes: Schemes::Http, ..Settings::default() };
    check(&http, &[], &[("https://a.test/", "scheme"), ("http://a.test/", "in")]);
    let short = Settings { url_bytes_max: 15, ..Settings::default() };
    check(&short, &[], &[("http://a.test/b", "in"), ("http://a.test/bc", "length")]);
}

#[test]
fn depth() {
    let settings = Settings { depth_max: 2, ..Settings::default() };
    let scope = Scope::new(settings, &[]).expect("good settings");
    let url = url("http://a.test/");
    assert_eq!(scope.check(url.view(), 2), Ok(()));
    assert_eq!(scope.check(url.view(), 3), Err(Rejection::Depth));
    let open = Scope::new(Settings::default(), &[]).expect("good settings");
    assert_eq!(open.check(url.view(), u32::MAX), Ok(()));
}

#[test]
fn lists_add_up() {
    let settings = Settings {
        hosts: list(&["WWW.a.test", "[::01]"]),
        domains: list(&["b.test", "B\u{fc}cher.test"]),
        prefixes: list(&["c.test/docs/", "https://c.test/man"]),
        ..Settings::default()
    };
    let cases = [
        ("http://www.a.test:81/x", "in"),
        ("https://www.a.test./", "in"),
        ("http://a.test/", "elsewhere"),
        ("http://x.www.a.test/", "elsewhere"),
        ("http://[::1]/", "in"),
        ("http://b.test/", "in"),
        ("http://x.y.b.test/", "in"),
        ("http://xb.test/", "elsewhere"),
        ("http://b.test.evil.test/", "elsewhere"),
        ("http://b\u{fc}cher.test/", "in"),
        ("http://c.test/docs/x", "in"),
        ("https://c.test:444/manual", "in"),
        ("http://c.test/docs", "elsewhere"),
        ("http://x.c.test/docs/", "elsewhere"),
        ("http://test/", "elsewhere"),
    ];
    check(&settings, &[], &cases);
}

#[test]
fn seeds_say_where_to_go() {
    let seeds = ["http://www.a.co.uk/x/y?z", "https://10.0.0.1/"];
    let from = |from_seeds| Settings { from_seeds, ..Settings::default() };
    let host = [
        ("https://www.a.co.uk/", "in"),
        ("http://a.co.uk/", "elsewhere"),
        ("http://10.0.0.1:81/", "in"),
    ];
    check(&from(FromSeeds::Host), &seeds, &host);
    let domain = [
        ("http://a.co.uk/", "in"),
        ("http://x.y.a.co.uk/", "in"),
        ("http://b.co.uk/", "elsewhere"),
        ("http://10.0.0.1/", "in"),
        ("http://10.0.0.2/", "elsewhere"),
    ];
    check(&from(FromSeeds::Domain), &seeds, &domain);
    let prefix = [
        ("https://www.a.co.uk/x/", "in"),
        ("http://www.a.co.uk/x/z/", "in"),
        ("http://www.a.co.uk/x", "elsewhere"),
        ("http://www.a.co.uk/", "elsewhere"),
        ("https://10.0.0.1/any", "in"),
    ];
    check(&from(FromSeeds::Prefix), &seeds, &prefix);
    check(&from(FromSeeds::Host), &[], &[("http://a.test/", "elsewhere")]);
}

/// A host `1` listed as a domain must not accept every address that ends in it.
#[test]
fn addresses_are_not_below_domains() {
    let scope = Scope::new(
        Settings { domains: list(&["10.0.0.1", "localhost"]), ..Settings::default() },
        &[],
    );
    let mut scope = scope.expect("good settings");
    scope.domains.insert("0.1".into());
    assert_eq!(scope.check(url("http://10.0.0.1/").view(), 0), Ok(()));
    assert_eq!(scope.check(url("http://11.0.0.1/").view(), 0), Err(Rejection::Elsewhere));
}

#[test]
fn patterns_include_and_exclude() {
    let settings = Settings {
        include: list(&[r"/docs/", r"\.PDF$", "(?i)manual"]),
        exclude: list(&[r"[?&]print=", "^https://x\\."]),
        ..Settings::default()
    };
    let cases = [
        ("http://a.test/docs/b", "in"),
        ("http://a.test/b.PDF", "in"),
        ("http://a.test/b.pdf", "not-included"),
        ("http://a.test/MANUAL", "in"),
        ("http://a.test/docs/?print=1", "excluded"),
        ("https://x.test/docs/", "excluded"),
        ("http://x.test/docs/", "in"),
    ];
    check(&settings, &[], &cases);
    let scope = Scope::new(settings, &[]).expect("good settings");
    let excluded = url("http://a.test/docs/?print=1");
    assert_eq!(scope.excluded_by(excluded.view()), Some(r"[?&]print="));
    assert_eq!(scope.excluded_by(url("http://a.test/").view()), None);
}

#[test]
fn wrong_settings_are_named() {
    let cases = [
        (Settings { exclude: list(&["a", "b(", "c"]), ..Settings::default() }, "exclude", "b("),
        (Settings { include: list(&["[z-a]"]), ..Settings::default() }, "include", "[z-a]"),
        (Settings { hosts: list(&["a.test/"]), ..Settings::default() }, "hosts", "a.test/"),
        (Settings { domains: list(&["a:80"]), ..Settings::default() }, "domains", "a:80"),
        (Settings { prefixes: list(&["ftp://a/"]), ..Settings::default() }, "prefixes", "ftp://a/"),
    ];
    for (settings, key, text) in cases {
        let error = Scope::new(settings, &[]).expect_err(text);
        assert_eq!((error.key, error.text.as_str()), (key, text));
        assert!(!error.reason.is_empty() && !error.to_string().contains('\n'), "{error}");
    }
}

/// A redirect of a seed extends the scope of the seed if it changes only `www.` or the scheme.
#[test]
fn a_redirect_of_a_seed_joins() {
    use FromSeeds::{Any, Domain, Host, Prefix};
    let cases = [
        (Host, "http://a.test/", "http://www.a.test/", true, "www. is added"),
        (Host, "http://www.a.test/x", "https://a.test:8443/y", true, "and dropped"),
        (Host, "http://a.test/", "https://a.test/", false, "the host is in already"),
        (Host, "http://a.test/", "http://m.a.test/", false, "another host"),
        (Host, "http://a.test/", "http://www.b.test/", false, "another host"),
        (Host, "http://a.test/", "http://www.www.a.test/", false, "another host"),
        (Domain, "http://co.uk/", "http://www.co.uk/", true, "a host that is a public suffix"),
        (Domain, "http://a.test/", "http://www.a.test/", false, "below the domain already"),
        (Prefix, "http://a.test/docs/x", "https://www.a.test/docs/y", true, "the same folder"),
        (Prefix, "http://a.test/docs/x", "https://a.test/docs/y", false, "in already"),
        (Any, "http://a.test/", "http://www.a.test/", false, "the seeds say nothing"),
    ];
    for (from_seeds, seed, target, joins, why) in cases {
        let settings = Settings { from_seeds, ..Settings::default() };
        let (seed, target) = (url(seed), url(target));
        let mut scope = Scope::new(settings, std::slice::from_ref(&seed)).expect("good settings");
        let before = scope.check(target.view(), 0).is_ok();
        assert_eq!(scope.join(seed.view(), target.view()), joins, "{from_seeds:?} {why}");
        assert_eq!(scope.check(target.view(), 0).is_ok(), before || joins, "{from_seeds:?} {why}");
        assert!(!scope.join(seed.view(), target.view()), "once is enough");
    }
}

/// Law: the rules of a site replace those of the crawl one by one, and the deciding table is named.
#[test]
fn a_site_has_its_own_rules() {
    let matchers = [Matcher::host("a.test"), Matcher::prefix("http://a.test/x/")];
    let matchers: Vec<Matcher> = matchers.into_iter().flatten().collect();
    let own = |name: &str, depth_max, include: Option<&str>, exclude: Option<&str>| SiteRules {
        name: name.to_owned(),
        depth_max,
        include: include.map(|text| vec![text.to_owned()]),
        exclude: exclude.map(|text| vec![text.to_owned()]),
    };
    let set = Settings {
        depth_max: 3,
        exclude: vec!["pdf$".to_owned()],
        sites: Arc::new(Sites::new(&matchers)),
        site_rules: vec![own("A", Some(1), None, None), own("X", None, Some("good"), Some("bad"))],
        ..Settings::default()
    };
    let scope = Scope::new(set, []).expect("good settings");
    let cases = [
        ("http://b.test/", 3, None, "scope.span"),
        ("http://b.test/", 4, Some(Rejection::Depth), "scope.depth_max is 3"),
        ("http://a.test/", 1, None, "scope.span"),
        ("http://a.test/", 2, Some(Rejection::Depth), "A: depth_max is 1"),
        ("http://a.test/a.pdf", 0, Some(Rejection::Excluded), "scope.exclude, pattern 1"),
        ("http://a.test/x/good.pdf", 3, None, "X: include, pattern 1"),
        ("http://a.test/x/good.pdf", 4, Some(Rejection::Depth), "scope.depth_max is 3"),
        ("http://a.test/x/goodbad", 0, Some(Rejection::Excluded), "X: exclude, pattern 1: \"bad\""),
        ("http://a.test/x/", 0, Some(Rejection::NotIncluded), "X: include: none of its 1"),
    ];
    for (text, depth, expected, says) in cases {
        let url = Url::parse(text).expect("a URL");
        let at = Distance { depth, requisite: 0 };
        let (why, rule) = scope.explain(url.view(), Some(at));
        assert_eq!(
            (why, scope.check(url.view(), depth.into()).err()),
            (expected, expected),
            "{text}"
        );
        assert!(rule.contains(says), "{text}: {rule}");
    }
    let bad = Url::parse("http://a.test/x/bad").expect("a URL");
    assert_eq!(scope.excluded_by(bad.view()), Some("bad"));
}
