//! Tests each rule of the key by a table, and that a key is its own key.

use super::*;
use crate::ground::random::Random;
use crate::url::Url;

/// Settings without any rule: each test enables its own.
fn none() -> Settings {
    Settings {
        normalise_escapes: false,
        drop_params: vec![],
        drop_path_params: vec![],
        drop_sessions: false,
        drop_empty_query: false,
        drop_host_dot: false,
        sort_query: false,
        drop_index: vec![],
        drop_trailing_slash: false,
        drop_www: false,
        merge_schemes: false,
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.into()).collect()
}

fn key(rules: &KeyRules, url: &str) -> String {
    let url = Url::parse(url).expect(url);
    let mut scratch = b"left over".to_vec();
    let key = rules.key(url.view(), &mut scratch).to_vec();
    String::from_utf8(key).expect("keys are ASCII")
}

/// Checks that each URL has the key beside it; `=` means its own bytes.
fn check(settings: Settings, cases: &[(&str, &str)]) {
    let rules = KeyRules::new(settings);
    for &(url, expected) in cases {
        let expected = if expected == "=" { url } else { expected };
        assert_eq!(key(&rules, url), expected, "{url}");
        assert_eq!(key(&rules, expected), expected, "the key of a key is that key: {url}");
    }
}

#[test]
fn without_rules_the_url_is_its_key() {
    let cases = ["http://www.a.test./b%7e/index.html;jsessionid=1?b&a&utm_x=1", "https://a.test/?"];
    check(none(), &cases.map(|url| (url, "=")));
}

#[test]
fn escapes() {
    let cases = [
        ("http://a.test/caf%c3%a9", "http://a.test/caf%C3%A9"),
        ("http://a.test/caf%C3%A9", "="),
        ("http://a.test/%7Eu/%41%2d%2E%5f", "http://a.test/~u/A-._"),
        ("http://a.test/a%2fb%3f%26", "http://a.test/a%2Fb%3F%26"),
        ("http://a.test/?q=%61%26b", "http://a.test/?q=a%26b"),
        ("http://a.test/?a[]=1&b|c", "http://a.test/?a%5B%5D=1&b%7Cc"),
        ("http://a.test/%zz%4%", "http://a.test/%25zz%254%25"),
        ("http://a.test/%25%34%31", "http://a.test/%2541"),
        ("http://a.test/!$&'()*+,;=:@?/", "="),
    ];
    check(Settings { normalise_escapes: true, ..none() }, &cases);
}

#[test]
fn params_left_out() {
    let cases = [
        ("http://a.test/?utm_source=x", "http://a.test/"),
        ("http://a.test/?UTM_Source=x&b", "http://a.test/?b"),
        ("http://a.test/?a=1&utm_source=x&gclid=2&b=2", "http://a.test/?a=1&b=2"),
        ("http://a.test/?gclid", "http://a.test/"),
        ("http://a.test/?gclids=1&xutm_a=2&utm", "="),
        ("http://a.test/?a=utm_source=x", "="),
        ("http://a.test/?&&gclid=1&", "http://a.test/?&&"),
        ("http://a.test/?", "="),
        ("http://a.test/utm_x=1", "="),
    ];
    check(Settings { drop_params: names(&["utm_*", "GCLID", ""]), ..none() }, &cases);
    let all = Settings { drop_params: names(&["*"]), ..none() };
    check(all, &[("http://a.test/?a=1&b", "http://a.test/"), ("http://a.test/?", "=")]);
}

#[test]
fn escaped_names_of_params_are_recognised() {
    let settings = Settings {
        normalise_escapes: true,
        drop_params: names(&["utm_*"]),
        drop_path_params: names(&["jsessionid"]),
        ..none()
    };
    let cases = [
        ("http://a.test/?%75tm%5Fx=1&b", "http://a.test/?b"),
        ("http://a.test/b;%6asessionid=1", "http://a.test/b"),
    ];
    check(settings, &cases);
}

#[test]
fn path_params_left_out() {
    let cases = [
        ("http://a.test/b;jsessionid=AB12", "http://a.test/b"),
        ("http://a.test/b;JSESSIONID=AB12.n1?c", "http://a.test/b?c"),
        ("http://a.test/b;v=1;jsessionid=2;w/c", "http://a.test/b;v=1;w/c"),
        ("http://a.test/;jsessionid=2/", "http://a.test//"),
        ("http://a.test/..;jsessionid=2", "="),
        ("http://a.test/...;jsessionid=2", "http://a.test/..."),
        ("http://a.test/b;jsessionids=1?;jsessionid=1", "="),
    ];
    check(Settings { drop_path_params: names(&["jsessionid"]), ..none() }, &cases);
}

#[test]
fn empty_queries_left_out() {
    let cases = [
        ("http://a.test/?", "http://a.test/"),
        ("http://a.test/b?", "http://a.test/b"),
        ("http://a.test/b?&", "="),
        ("http://a.test/b??", "="),
    ];
    check(Settings { drop_empty_query: true, ..none() }, &cases);
    let both = Settings { drop_empty_query: true, drop_params: names(&["gclid"]), ..none() };
    check(both, &[("http://a.test/?gclid=1&", "http://a.test/")]);
}

#[test]
fn dots_behind_hosts_left_out() {
    let cases = [
        ("http://a.test./b", "http://a.test/b"),
        ("https://a.test.:8443/", "https://a.test:8443/"),
        ("http://a.test/b.", "="),
        ("http://[::1]:81/", "="),
    ];
    check(Settings { drop_host_dot: true, ..none() }, &cases);
}

#[test]
fn params_sorted() {
    let cases = [
        ("http://a.test/?b=1&a=2&ab=0", "http://a.test/?a=2&ab=0&b=1"),
        ("http://a.test/?a&a=&a=1", "="),
        ("http://a.test/?b&&a", "http://a.test/?&a&b"),
        ("http://a.test/?", "="),
        ("http://a.test/b&a", "="),
    ];
    check(Settings { sort_query: true, ..none() }, &cases);
    let escaped = Settings { sort_query: true, normalise_escapes: true, ..none() };
    check(escaped, &[("http://a.test/?c=1&%7a=1&b=%7e", "http://a.test/?b=~&c=1&z=1")]);
}

#[test]
fn index_pages_left_out() {
    let cases = [
        ("http://a.test/b/index.html", "http://a.test/b/"),
        ("http://a.test/index.php?c", "http://a.test/?c"),
        ("http://a.test/index.html/", "="),
        ("http://a.test/xindex.html", "="),
        ("http://a.test/INDEX.HTML", "="),
    ];
    check(Settings { drop_index: names(&["index.html", "index.php"]), ..none() }, &cases);
}

#[test]
fn trailing_slashes_left_out() {
    let cases = [
        ("http://a.test/b/", "http://a.test/b"),
        ("http://a.test/b/?c/", "http://a.test/b?c/"),
        ("http://a.test/b//", "http://a.test/b"),
        ("http://a.test/", "="),
    ];
    check(Settings { drop_trailing_slash: true, ..none() }, &cases);
    let settings =
        Settings { drop_trailing_slash: true, drop_index: names(&["index.html"]), ..none() };
    check(settings, &[("http://a.test/index.html/b/index.html/", "http://a.test/index.html/b")]);
}

#[test]
fn www_left_out() {
    let cases = [
        ("http://www.a.test/", "http://a.test/"),
        ("http://www.www.a.test:81/", "http://a.test:81/"),
        ("http://wwww.a.test/", "="),
        ("http://www.test/", "="),
    ];
    check(Settings { drop_www: true, ..none() }, &cases);
}

#[test]
fn schemes_merged() {
    let cases = [
        ("https://a.test/b", "http://a.test/b"),
        ("http://a.test/b", "="),
        ("https://a.test:80/", "="),
        ("https://a.test:8443/", "="),
    ];
    check(Settings { merge_schemes: true, ..none() }, &cases);
}

#[test]
fn the_default_keeps_what_servers_may_tell_apart() {
    let cases = [
        ("https://www.a.test/b/?b=2&a=1", "="),
        ("https://www.a.test/b", "="),
        ("https://a.test/index.html", "="),
        ("https://a.test/?sid=1&s=2&id=3&ref=x", "="),
        ("https://a.test/B//c;v=1", "="),
        ("https://a.test./%7eu/?PHPSESSID=1&fbclid=2", "https://a.test/~u/"),
    ];
    check(Settings::default(), &cases);
}

/// Texts that the rules act on, and similar ones that they must not act on.
#[rustfmt::skip]
const PIECES: [&str; 36] = [
    "a", "/", "?", "&", "=", ";", "%41", "%7e", "%c3%A9",
    "%", "[", "|", "utm_x", "b", "//", "jsessionid=1", "index.html", "gclid",
    "&&", ";;", "%3B", "%26", "%2f", "www.", ".", "/(", "sid=9e107d9d372bb6826bd81d3542a419d6",
    "/(S(lit3py55t21z5v55vlm25s55))", "/(%4c(lit3py55t21z5v55vlm25s55))", "/sid",
    "/9e107d9d372bb6826bd81d3542a419d6/", "BV_SessionID=@@@@1.2@@@@",
    "/9e107d9d372bb6826bd81d3542a419d6", "/osCsid/847ve0olpeu5bs5ujkt9ulrgn0",
    "/%28s%28lit3py55t21z5v55vlm25s55%29%29", "s%5b]=9e107d9d372bb6826bd81d3542a419d6",
];

/// Law, on random URLs under every combination of rules: the key of a key is that key, and the
/// quick check never says that a URL is its own key if the rules would change it.
#[test]
fn keys_are_fixed_points_under_any_rules() {
    let hosts = ["a.test", "www.a.test", "www.a.test.", "www.test", "127.0.0.1", "[::1]", "a."];
    let mut random = Random(0x5eed_0005);
    let mut below = |bound: usize| random.below(bound);
    let mut changed = 0;
    for _ in 0..40_000 {
        let on = below(1 << 11);
        let list = |bit: usize, list: &[&str]| if on & bit > 0 { names(list) } else { vec![] };
        let settings = Settings {
            normalise_escapes: on & 1 > 0,
            drop_params: list(2, &["utm_*", "gclid"]),
            drop_path_params: list(4, &["jsessionid"]),
            drop_sessions: on & 1_024 > 0,
            drop_empty_query: on & 8 > 0,
            drop_host_dot: on & 16 > 0,
            sort_query: on & 32 > 0,
            drop_index: list(64, &["index.html", "a"]),
            drop_trailing_slash: on & 128 > 0,
            drop_www: on & 256 > 0,
            merge_schemes: on & 512 > 0,
        };
        let rules = KeyRules::new(settings);
        let scheme = if below(2) == 0 { "http" } else { "https" };
        let mut text = format!("{scheme}://{}/", hosts[below(hosts.len())]);
        for _ in 0..below(9) {
            text.push_str(PIECES[below(PIECES.len())]);
        }
        let url = Url::parse(&text).expect(&text);
        let first = key(&rules, url.as_str());
        changed += usize::from(first != url.as_str());
        assert_eq!(key(&rules, &first), first, "{url} under {:?}", rules.settings);
        if rules.is_its_own_key(url.view()) {
            let mut long = Vec::new();
            rules.push_origin(url.view(), &mut long);
            rules.push_path(url.view().path().as_bytes(), &mut long);
            if let Some(query) = url.view().query() {
                rules.push_query(query.as_bytes(), &mut long);
            }
            assert_eq!(long, url.as_str().as_bytes(), "{url} under {:?}", rules.settings);
        }
    }
    assert!(changed > 10_000, "rules changed {changed} URLs only");
}

/// Law: a site that puts a session id into each link has no more keys than pages, for every format;
/// lists that differ by a hash are not merged.
#[test]
fn session_ids_that_never_end() {
    let rules = KeyRules::new(Settings::default());
    let hex = |number: u64| format!("{:032x}", u128::from(number + 1) * 0x9e37_79b9_7f4a_7c15_f39c);
    let asp =
        |number: u64| format!("{:a<24}", format!("b1{number}").replace(['6', '7', '8', '9'], "c"));
    let php = |number: u64| format!("8f3k0v2m1t{number:0>4}h5r9a6bcd7{:02}", number % 90);
    let uuid = |number: u64| format!("{:0>8}-7dec-11d0-a765-00a0c91e6bf6", number);
    type Fashion<'a> = (&'a str, &'a dyn Fn(u64, u64) -> String, bool);
    let fashions: [Fashion<'_>; 43] = [
        ("ASP.NET", &|page, id| format!("/(S({}))/p{page}.aspx", asp(id)), true),
        ("ASP.NET 1.1", &|page, id| format!("/app/({})/p{page}.aspx", asp(id)), true),
        ("ColdFusion", &|page, id| format!("/p{page}.cfm?CFID={id}&CFTOKEN={}", hex(id)), true),
        ("sid", &|page, id| format!("/p{page}?sid={}", hex(id)), true),
        ("sid in front", &|page, id| format!("/p?sid={}&page={page}", hex(id)), true),
        ("vBulletin", &|page, id| format!("/p?t={page}&s={}", hex(id)), true),
        ("osCommerce", &|page, id| format!("/p?p={page}&osCsid={}", hex(id)), true),
        ("Zen Cart", &|page, id| format!("/p?p={page}&zenid={id}"), true),
        ("PHP", &|page, id| format!("/p?p={page}&PHPSESSID={}", hex(id)), true),
        ("path", &|page, id| format!("/p{page};sid={}", hex(id)), true),
        ("semicolon", &|page, id| format!("/p?a={page};sid={}", hex(id)), true),
        ("in front of one", &|page, id| format!("/p?sid={};a={page}", hex(id)), true),
        ("before a mark", &|page, id| format!("/p{page}?sid={};utm_x=1", hex(id)), true),
        ("escaped twice", &|page, id| format!("/p?a={page}&amp;sid={}", hex(id)), true),
        ("BroadVision", &|page, id| format!("/p{page}?BV_SessionID=@@@@{id}.1@@@@"), true),
        ("pair", &|page, id| format!("/sid/{}/p{page}", hex(id)), true),
        ("twice", &|page, id| format!("/sid/SID/{0}/{0}/p{page}", hex(id)), true),
        ("deep", &|page, id| format!("/{:a<60}/sid/{}/?{page}", "a", hex(id)), true),
        ("a pair at the end", &|page, id| format!("/p{page}/sid/{}", hex(id)), true),
        ("a pair before a query", &|page, id| format!("/p/sid/{}?{page}", hex(id)), true),
        ("osCommerce 2", &|page, id| format!("/info.php/p/{page}/osCsid/{}", hex(id)), true),
        ("osCommerce 2, PHP 5", &|page, id| format!("/p.php/p/{page}/osCsid/{}", php(id)), true),
        ("xt:Commerce", &|page, id| format!("/p.php/XTCsid/{}/p/{page}", php(id)), true),
        ("a long target", &|page, id| format!("/{:a<60}/{page}/osCsid/{}", "a", php(id)), true),
        ("ASP.NET in lower case", &|page, id| format!("/(s({}))/p{page}.aspx", asp(id)), true),
        ("ASP.NET escaped", &|page, id| format!("/%28S%28{}%29%29/p{page}.aspx", asp(id)), true),
        ("Drupal", &|page, id| format!("/p{page}?SESS{}={id}", hex(0)), true),
        ("a list of one", &|page, id| format!("/p{page}?sid[]={}", hex(id)), true),
        ("5 bits", &|page, id| format!("/p{page}?sid={}", php(id)), true),
        ("a UUID in braces", &|page, id| format!("/p{page}?session={{{}}}", uuid(id)), true),
        ("a hash alone", &|page, id| format!("/p{page}?{}", hex(id)), false),
        ("a hash behind /s/", &|page, id| format!("/s/{}/{page}", hex(id)), false),
        ("a hash behind /s/ at the end", &|page, id| format!("/{page}/s/{}", hex(id)), false),
        ("a talk at the end", &|page, id| format!("/p{page}/session/{}", hex(id)), false),
        ("a hash behind /id/ at the end", &|page, id| format!("/p{page}/id/{}", hex(id)), false),
        ("a short name at the end", &|page, id| format!("/p{page}/sid/{id}"), false),
        ("a token", &|page, id| format!("/p{page}?token={}", hex(id)), false),
        ("a word in parentheses", &|page, id| format!("/(s(b{id}))/p{page}"), false),
        ("a hash in a list", &|page, id| format!("/p?a={page};id={};b", hex(id)), false),
        ("a hash behind /id/", &|page, id| format!("/id/{}/p{page}", hex(id)), false),
        ("a talk", &|page, id| format!("/session/{}/p{page}", hex(id)), false),
        ("a list by hash", &|page, id| format!("/p{page}?id={}", hex(id)), false),
        ("a wiki", &|page, id| format!("/wiki/P_({id})/{page}"), false),
    ];
    for (name, url, folds) in fashions {
        let mut keys = std::collections::BTreeSet::new();
        for id in 0..100 {
            for page in 0..5 {
                keys.insert(key(&rules, &format!("http://a.test{}", url(page, id))));
            }
        }
        assert_eq!(keys.len(), if folds { 5 } else { 500 }, "{name}: {:?}", keys.first());
        for one in keys {
            assert_eq!(key(&rules, &one), one, "the key of a key is that key");
        }
    }
}
