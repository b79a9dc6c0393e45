//! References to canonical URLs. The input is a base, a line end and a reference.
//!
//! Laws: the result is canonical (parsed again, it stays the same) and within the length limit; its
//! parts are those of a fetchable URL; it agrees with the standard's result, except for user,
//! password and fragment; the key of a key is that key; what a URL carries from its page does not
//! change its key or its scope.

use super::Target;
use encoding_rs::UTF_8;
use sted::url::canon::{Joiner, whatwg};
use sted::url::key::{KeyRules, Settings};
use sted::url::scope::{self, Scope};
use sted::url::{Batch, Limits, Url, UrlRef, text_of};

pub const TARGET: Target = Target {
    samples: &[
        b"http://a.test/b/c?d\n../e/./f?g=h#i",
        b"https://user@b\xc3\xbccher.test:8443/x\n//other.test:443/y z",
        b"http://[2001:db8::1]:80/\nHTTP://EXAMPLE.test/%7Euser/a%20b;c=d",
        b"http://0x7f.1/\n?sid=1&utm_source=x&a=b",
        b"http://a.test/\n\\\\host\\path\\..\\q",
        b"http://xn--bcher-kva.test./\njavascript:void(0)",
        b"http://a.test/\nhttp:b/c",
    ],
    words: &[
        "http://",
        "https:",
        "//",
        "/../",
        "/.",
        "%2e",
        "%",
        "?",
        "#",
        "@",
        ":80",
        ":443",
        ":0",
        "[::1]",
        "xn--",
        "\\",
        "\u{ad}",
        "ß",
        "。",
        "&sid=2",
        ";jsessionid=3",
        "index.html",
        ".",
    ],
    check,
};

pub fn check(bytes: &[u8]) {
    let cut = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let (base, reference) = (&bytes[..cut], bytes.get(cut + 1..).unwrap_or_default());
    let base = String::from_utf8_lossy(base);
    let base = Url::parse(&base).unwrap_or_else(|_| Url::parse("http://a.test/b/c?d").expect("is"));
    assert_canonical(base.view());

    let mut batch = Batch::default();
    let joined = Joiner::new(base.view()).join(reference, UTF_8, &mut batch);
    assert_eq!(batch.len(), usize::from(joined.is_ok()));
    if joined.is_ok() {
        assert_canonical(batch.get(0));
        let standard = whatwg(Some(base.as_str()), &text_of(reference));
        let standard = standard.expect("what is fetched is a URL by the standard, too");
        let standard = Url::parse(&standard).expect("and the standard's form of it is fetched");
        // The oracle doesn't leave a segment such as `b|` by `..` in any scheme: it takes it for a
        // drive of Windows. The standard does so in file URLs only.
        let (reference, base) = (path_of(&text_of(reference)), path_of(base.as_str()));
        if !has_parent(&reference) || !(has_drive(&base) || has_drive(&reference)) {
            assert_eq!(standard.as_str(), batch.get(0).as_str());
        }
    }
}

/// Returns what a parser reads of a reference before its query and fragment.
fn path_of(reference: &str) -> String {
    let text = reference.replace(['\t', '\n', '\r'], "");
    let text = text.trim_matches(|c: char| c <= ' ');
    text.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Whether a segment leads to the parent folder.
fn has_parent(path: &str) -> bool {
    let mut segments = path.split(['/', '\\']);
    segments.any(|it| it.to_ascii_lowercase().replace("%2e", ".") == "..")
}

/// Whether a segment looks like a drive of Windows, such as `C:` or `C|`.
fn has_drive(path: &str) -> bool {
    let mut segments = path.split(['/', '\\']);
    segments.any(|it| matches!(it.as_bytes(), [b'a'..=b'z' | b'A'..=b'Z', b':' | b'|']))
}

fn assert_canonical(url: UrlRef<'_>) {
    let text = url.as_str();
    assert!(text.is_ascii() && text.len() <= Limits::default().url_bytes_max, "{text}");
    assert_eq!(Url::parse(text).expect("canonical").as_str(), text);
    let read = UrlRef::from_canonical(text.as_bytes()).expect("the shape is right");
    assert_eq!((read.host(), read.port(), read.target()), (url.host(), url.port(), url.target()));
    assert_eq!(format!("{}{}", url.origin(), url.target()), text);
    assert!(url.target().starts_with('/') && !text.contains('#') && url.port() > 0, "{text}");

    let everything = Settings {
        sort_query: true,
        drop_trailing_slash: true,
        drop_www: true,
        merge_schemes: true,
        ..Settings::default()
    };
    let scope = Scope::new(scope::Settings::default(), &[]).expect("sane");
    assert_eq!(scope.check(url, 0), scope.check(read, 0), "{text}");
    for settings in [Settings::default(), everything] {
        let rules = KeyRules::new(settings);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let key = rules.key(url, &mut first);
        assert_eq!(key, rules.key(read, &mut second), "the key of {text}");
        let key = UrlRef::from_canonical(key).expect("a key has the shape of a URL");
        assert_eq!(rules.key(key, &mut second), key.as_str().as_bytes(), "the key of {text}");
    }
}
