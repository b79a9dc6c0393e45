//! Tests malformed files of the kinds that exist: the rules in them that forbid are obeyed.

use super::super::*;

fn allowed(file: &[u8], target: &str) -> bool {
    Rules::parse(file, "sted").check(target).allowed
}

#[test]
fn misspelt_keys() {
    let keys = [
        ("Disallow", false, "RFC 9309 2.2"),
        ("Dissallow", false, "reference"),
        ("dissalow", false, "reference"),
        ("DISALOW", false, "reference"),
        ("Diasllow", false, "reference"),
        ("Disallaw", false, "reference"),
        ("Disallowed", false, "reference: what begins so"),
        ("\u{feff}Disallow", false, "a byte order mark within the file"),
        ("\u{a0}Disallow\u{a0}", false, "no-break spaces"),
        ("\0Disallow\0", false, "zeros"),
        ("Disalllow", true, "nobody knows it"),
        ("No-Disallow", true, "another key"),
        ("", true, "no key"),
    ];
    for (key, expected, why) in keys {
        let file = format!("User-agent: *\n{key}: /");
        assert_eq!(allowed(file.as_bytes(), "/a"), expected, "{why}: {key:?}");
    }
    let agents = [
        ("User-agent: *", false, "RFC 9309 2.2.1"),
        ("Useragent: *", false, "reference"),
        ("UserAgent : sted", false, "reference"),
        ("User Agent: *", false, "reference: with a blank"),
        ("user agent:\tSTED/2.0", false, "reference: with a blank"),
        ("User-agents: *", false, "reference: what begins so"),
        ("Useragent *", false, "without a colon"),
        ("\u{feff}User-agent: *", false, "a byte order mark"),
        ("User-agent: *\u{a0}", false, "a no-break space"),
        ("User-agent: *\0\0", false, "zeros"),
        ("User agent *", true, "three words"),
        ("Agent: *", true, "another key"),
    ];
    for (line, expected, why) in agents {
        let file = format!("User-agent: other\nDisallow:\n{line}\nDisallow: /");
        assert_eq!(allowed(file.as_bytes(), "/a"), expected, "{why}: {line:?}");
    }
    let misspelt = b"User-agent: *\nDisallow: /\nAllowed: /a\nAllow-: /a\nAlow: /a";
    assert!(!allowed(misspelt, "/a"), "what allows is known by its name only");
    let sitemaps = b"Site-map: http://a/1\nsite map: http://a/2\nSitemaps: http://a/3";
    assert_eq!(Rules::parse(sitemaps, "sted").sitemaps().count(), 3);
    let delay = Rules::parse(b"useragent: *\nCrawldelay: 3", "sted").crawl_delay();
    assert_eq!(delay, Some(Duration::from_secs(3)));
}

fn utf_16(text: &str, bytes_of: impl Fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes_of).collect()
}

#[test]
fn utf_16_is_decoded() {
    let file = "User-agent: *\r\nDisallow: /privé\r\nAllow: /a\r\nDisallow: /b";
    for bom in ["\u{feff}", ""] {
        let text = format!("{bom}{file}");
        for bytes in [utf_16(&text, u16::to_le_bytes), utf_16(&text, u16::to_be_bytes)] {
            assert!(!allowed(&bytes, "/priv%C3%A9"), "{bom:?}");
            assert!(!allowed(&bytes, "/b"), "the last line has no end");
            assert!(allowed(&bytes, "/c"));
            assert!(!allowed(&bytes[..bytes.len() - 1], "/priv%C3%A9"), "half a character");
        }
    }
    let rule = "Disallow: /0123456789\n";
    let long = format!("\u{feff}User-agent: *\n{}Disallow: /b\n", rule.repeat(SIZE_BYTES_MAX / 40));
    let bytes = utf_16(&long, u16::to_le_bytes);
    assert!(bytes.len() > SIZE_BYTES_MAX);
    assert!(!allowed(&bytes, "/0123456789"), "the limit counts bytes as they came");
    assert!(allowed(&bytes, "/0"), "and leaves the line out that it cuts");
    assert!(allowed(&bytes, "/b"), "nothing is read past it");
}

/// Of a rule that forbids and has two interpretations, both count.
#[test]
fn doubtful_values() {
    let cases: [(&[u8], &str, bool, &str); 8] = [
        (b"Disallow: /caf\xE9", "/caf%C3%A9", false, "Latin-1, meant for browsers"),
        (b"Disallow: /caf\xE9", "/caf%E9", false, "Latin-1 as it is"),
        (b"Disallow: /*?a=1&amp;b=2", "/x?a=1&b=2", false, "escaped for HTML"),
        (b"Disallow: /*?a=1&amp;b=2", "/x?a=1&amp;b=2", false, "as it is"),
        (b"Disallow: /a\0\0\0", "/a", false, "filled up with zeros"),
        (b"Disallow: /a\0b", "/ac", false, "reference: up to a zero"),
        (b"Disallow:\xC2\xA0/a", "/a", false, "a no-break space"),
        (b"Disallow: /\nAllow:\xC2\xA0/a", "/a", false, "which allows nothing"),
    ];
    for (rules, target, expected, why) in cases {
        let file = [b"User-agent: *\n", rules].concat();
        assert_eq!(allowed(&file, target), expected, "{why}");
    }
}

#[test]
fn a_cut_line_counts_if_it_forbids() {
    let cases = [
        ("User-agent: *\nDisallow: /pri", "/privat", false, "half a rule forbids more"),
        ("User-agent: *\nDisallow: /\nAllow: /a", "/a", false, "and allows more: it is left out"),
        ("User-agent: *\nDisallow: /\nAllow: /a\n", "/a", true, "this line has its end"),
        ("User-agent: *\nDisallow: /\nUser-agent: sted", "/a", false, "it may be another's name"),
        ("User-agent: *\nDisallow: /a\r", "/a", false, "CR is an end"),
        ("Disallow: /", "/a", true, "nobody's"),
        ("", "/a", true, "nothing"),
    ];
    for (file, target, expected, why) in cases {
        let rules = File::parse(file.as_bytes(), "sted", Ending::Cut).rules;
        assert_eq!(rules.check(target).allowed, expected, "{why}: {file:?}");
    }
    let delayed = File::parse(b"User-agent: *\nCrawl-delay: 1", "sted", Ending::Cut).rules;
    assert_eq!(delayed.crawl_delay(), Some(Duration::from_secs(1)), "half a delay is some");
}

#[test]
fn html_pages() {
    let cases = [
        ("<html><body><pre>User-agent: *\nDisallow: /a\n</pre>", true, true, false),
        ("<p>User-agent: *<br>Disallow: /a</p>", true, true, false),
        (
            "<!DOCTYPE html>\n<title>x</title><p>User-agent: <b>*</b><p>Disallow: /<i>a</i>",
            true,
            true,
            false,
        ),
        ("\n <div>User-agent: &#42;</div>\nDisallow: &#x2f;a", true, true, false),
        ("<!doctype html><title>404</title><p>Not here", true, false, true),
        (
            "<script>var a = 'User-agent: *';\nUser-agent: *\nDisallow: /</script>",
            true,
            false,
            true,
        ),
        ("<html>Disallow: /a", true, false, true),
        ("User-agent: *\nDisallow: /a # <html>", false, true, false),
        ("Sorry! <b>down</b> for now", true, false, true),
        ("&nbsp;<html><p>Down", true, false, true),
        ("PHP Warning: x in /a.php on line 3\n\n<!doctype html><title>x", true, false, true),
        ("\u{feff}Warning: x<br />\n<pre>User-agent: *\nDisallow: /a</pre>", true, true, false),
        ("Closed.\r<a href=/b>User-agent: *</a><br>Disallow: /a", true, true, false),
        ("Ask <webmaster@a.test>, <http://a.test/>, x < y, <3", false, false, true),
        ("# <p>Hello</p>\nSitemap: http://a.test/<b>", false, false, true),
        ("# <br>Disallow: /b\nUser-agent: *\nDisallow: /a\n<b>x</b>", false, true, false),
        ("Down for maintenance", false, false, true),
        ("", false, false, true),
        ("{\"error\": 404}", false, false, true),
    ];
    for (text, is_html, has_rule_lines, expected) in cases {
        let file = File::parse(text.as_bytes(), "sted", Ending::Whole);
        let found = (file.is_html, file.has_rule_lines, file.rules.check("/a").allowed);
        assert_eq!(found, (is_html, has_rule_lines, expected), "{text:?}");
    }
    let page = "<!-- a\nb -->\r\n<p\n>User-agent: *<br>Disallow: /a<br\r>Disallow: /b\r<style>\n\
                </style>\r\n\n<b>Disallow</b>: /c\n\n<pre>Allow: /d</pre>Disallow: /e";
    for (target, line) in [("/a", 4), ("/b", 5), ("/c", 9), ("/d", 11), ("/e", 11), ("/f", 0)] {
        for ending in [Ending::Whole, Ending::Cut] {
            let rules = File::parse(page.as_bytes(), "sted", ending).rules;
            assert_eq!(rules.check(target).line, line, "{target}, the line of the page");
        }
    }
    let others = File::parse(b"User-agent: x\nDisallow: /", "sted", Ending::Whole);
    assert!(others.has_rule_lines && !others.rules.has_rules(), "rules for somebody else");
}
