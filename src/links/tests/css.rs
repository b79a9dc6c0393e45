//! Tests which tokens of a style sheet are references, and that scanning takes linear time.

use crate::ground::random::Random;
use crate::links::css::{Sheet, scan_declarations};
use crate::links::{Found, Progress, Scanner, Settings, sheet_charset};
use encoding_rs::{Encoding, GBK, UTF_8, UTF_16BE, WINDOWS_1252};

fn settings() -> Settings {
    Settings { requisites: true, ..Settings::default() }
}

/// Scans a style sheet that is fed in pieces of `piece` bytes.
fn fed(text: &[u8], piece: usize) -> Found {
    let (mut sheet, mut found, settings) = (Sheet::new(UTF_8), Found::new(), settings());
    let mut at = 0;
    loop {
        let end = text.len().min(at + piece);
        sheet.feed(&text[at..end], end == text.len(), &settings, &mut found);
        if end == text.len() {
            return found;
        }
        at = end;
    }
}

fn references(found: &Found) -> Vec<&str> {
    found.links().map(|link| link.reference).collect()
}

#[test]
fn what_is_a_reference() {
    let cases: [(&str, &[&str], &str); 40] = [
        ("a{b:url(x)}", &["x"], "a URL token"),
        ("a{b:URL( 'x' )}", &["x"], "a function, any case"),
        ("a{b:u\\72l(x)}", &["x"], "an escaped name"),
        ("a{b:url(x\\)y)}", &["x)y"], "an escaped parenthesis"),
        ("a{b:url('x\\\ny')}", &["xy"], "an escaped line end"),
        ("a{b:url(x y)}c{d:url(z)}", &["z"], "a bad URL"),
        ("a{b:url(x\"y)}c{d:url(z)}", &["z"], "a bad URL"),
        ("a{b:url('x\n)}", &[], "a bad string"),
        ("a{b:url()} c{d:url('')}", &[], "empty"),
        ("a{b:url(#x)} c{d:url('#y')}", &[], "a part of the document"),
        ("a{b:url(data:,x)}", &[], "nothing to fetch"),
        ("a{b:src('x')}", &["x"], "CSS Values 5"),
        ("@font-face{src:url(x) format('n'), local('n')}", &["x"], "fonts"),
        ("a{b:'n'} a[b='url(n)']{c:d}", &[], "strings"),
        ("/* url(n) */ a{/*url(n)*/}", &[], "comments"),
        ("a{b:image-set('x' 1x type('n'), url(y) 2x)}", &["x", "y"], "image sets"),
        ("a{b:-webkit-image-set(url(x) 1x, 'y' 2x)}", &["x", "y"], "the older name"),
        ("a{b:cross-fade(url(x), url('y'))}", &["x", "y"], "functions"),
        ("a{--b:url(x)}", &["x"], "custom properties"),
        ("@import 'x';@import url(y) screen;@import url('z')", &["x", "y", "z"], "imports"),
        ("@import /**/ \"x\" layer('n') supports(a:url(n)) url(n);", &["x"], "its conditions"),
        ("@IMPORT src('x');", &["x"], "CSS Cascade 5"),
        ("@import n 'n';a{b:url(x)}", &["x"], "not a reference"),
        ("@imported 'n';@\\69mport 'x';", &["x"], "an escaped name"),
        ("a{b:c}@import 'x';", &["x"], "too late for browsers, but who knows"),
        ("@media x{@import 'n';a{b:url(x)}}", &["x"], "not in a block"),
        ("@charset 'n';@namespace url(n);@namespace a 'n';", &[], "other rules"),
        ("@namespace url('n');a{b:url(x)}", &["x"], "what follows"),
        ("@document url(n), url('n'){a{b:url(x)}}", &["x"], "a condition"),
        ("@supports (a:url(n)){a{b:url(x)}}", &["x"], "a condition"),
        ("@supports (a:(;{})){a{b:url(x)}}", &["x"], "blocks in a condition"),
        ("a{@media b{c:url(x)}d:url(y)}", &["x", "y"], "nested rules"),
        ("a{b:c @import 'n'; d:url(x)}", &["x"], "no rule inside a value"),
        ("a{@b url(n);c:url(x)}", &["x"], "a rule in a block"),
        ("a{@b url(n)}c{d:url(x)}", &["x"], "the block ends the rule"),
        ("<!-- a{b:url(x)} --> @import 'y';", &["x", "y"], "CDO and CDC"),
        ("a{b:url(x", &["x"], "the end of the text closes everything"),
        ("@import 'x", &["x"], "the end of the text closes everything"),
        ("}})]a{b:url(x)}@import 'y';", &["x", "y"], "stray brackets"),
        ("a{b:url(  \n x\t )}", &["x"], "white space"),
    ];
    for (text, expected, why) in cases {
        for piece in [1, 2, 3, 7, usize::MAX / 2] {
            let found = fed(text.as_bytes(), piece);
            assert_eq!(references(&found), expected, "{text}: {why}, in pieces of {piece}");
        }
    }
}

#[test]
fn declarations_in_attributes() {
    let cases: [(&str, &[&str]); 5] = [
        ("background: url(x)", &["x"]),
        ("a:image-set('x' 1x);b:url('y')", &["x", "y"]),
        ("@import 'n';a:url(x)", &["x"]),
        ("@n url(n);a:url(x)", &["x"]),
        ("}a:url(x)", &["x"]),
    ];
    for (text, expected) in cases {
        let mut found = Found::new();
        scan_declarations(text.as_bytes(), &settings(), &mut found);
        assert_eq!(references(&found), expected, "{text}");
    }
}

#[test]
fn charsets_of_style_sheets() {
    let cases: [(Option<&str>, &[u8], &'static Encoding, &str); 9] = [
        (Some("gbk"), b"\xef\xbb\xbfa", UTF_8, "the mark wins"),
        (Some("gbk"), b"@charset \"windows-1252\";", GBK, "then the header"),
        (None, b"@charset \"windows-1252\";", WINDOWS_1252, "then the rule"),
        (Some("nonsense"), b"@charset \"gbk\";", GBK, "an unknown label"),
        (None, b"@charset 'gbk';", UTF_8, "only these bytes"),
        (None, b" @charset \"gbk\";", UTF_8, "only at the start"),
        (None, b"@charset \"gbk\" ;", UTF_8, "only these bytes"),
        (None, b"@charset \"utf-16le\";", UTF_8, "it was read as ASCII"),
        (None, b"\xfe\xff\0a", UTF_16BE, "the mark"),
    ];
    for (label, text, expected, why) in cases {
        let label = label.map(str::as_bytes);
        assert_eq!(sheet_charset(label, text), expected, "{why}");
    }
}

/// A file is decoded from its charset, with any budget.
#[test]
fn files_in_any_charset() {
    let text = "\u{feff}@import 'é';a{b:url(\u{30bd})}";
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (charset, bytes) in [(UTF_8, text.as_bytes()), (UTF_16BE, &utf16)] {
        for budget in [1, 5, usize::MAX] {
            let (mut scanner, mut found) = (Scanner::new(settings()), Found::new());
            scanner.begin_sheet(charset);
            while scanner.scan(bytes, budget, &mut found) == Progress::More {}
            assert_eq!(references(&found), ["é", "\u{30bd}"], "{}", charset.name());
        }
    }
}

/// Law: tokens of any length are found or skipped, as they would be if the text were whole.
#[test]
fn long_tokens() {
    let long = 300 << 10;
    let fill = |text: &str| text.repeat(long / text.len());
    let cases = [
        (format!("/*{}*/a{{b:url(x)}}", fill("* /")), 0),
        (format!("a{{b:url({})}}c{{d:url(x)}}", fill("y")), 1),
        (format!("a{{b:url(data:{})}}c{{d:url(x)}}", fill("y")), 0),
        (format!("a{{b:url('{}')}}c{{d:url(x)}}", fill("y\\'")), 1),
        (format!("a{{b:'{}'}}c{{d:url(x)}}", fill("y")), 0),
        (format!("a{{b:'{}\n}}c{{d:url(x)}}", fill("y")), 0),
        (format!("a{{b:url({}", fill(" ")) + "'x')}", 0),
        (format!("a{{b:url({}", fill(" ")) + "x)}", 0),
        (format!("a{{b:url(y{}", fill(" ")) + ")}c{d:url(x)}", 1),
        (format!("{}url(y) a{{b:url(x)}}", fill("y")), 0),
        (format!("{}url(x)", fill("1")), 0),
        (format!("@{} url(y);a{{b:url(x)}}", fill("y")), 0),
        (format!("@import{}'x';", fill(" ")), 0),
        (format!("@import '{}';a{{b:url(x)}}", fill("y")), 1),
    ];
    for (text, cut) in cases {
        for piece in [1 << 10, 16 << 10] {
            let found = fed(text.as_bytes(), piece);
            let shown = (&text[..20.min(text.len())], piece);
            let expected: &[&str] = match text.contains("(y) a") || text.starts_with('1') {
                // A name before the parenthesis makes another function of it.
                true if text.starts_with('1') => &[],
                _ => &["x"],
            };
            assert_eq!(references(&found), expected, "{shown:?}");
            assert_eq!(found.cut().long, cut, "{shown:?}");
        }
    }
}

/// Law: the time grows with the length of the text, whatever it is made of.
#[test]
fn hostile_style_sheets_take_linear_time() {
    let pieces = [
        "url(",
        "url('",
        "url( ",
        "(",
        "{",
        "[",
        "}",
        "@import ",
        "@import 'x' ",
        "image-set(",
        "\\",
        "'",
        "\"\\\n",
        "/*",
        "*",
        "<",
        "<!--",
        "-",
        "#",
        "@",
        "a",
        "é",
        "1",
        "e",
        "\0",
        ";",
        "u\\72l(",
        "src('x')",
        "url(x)",
        "-->",
        "\n",
    ];
    for piece in pieces {
        let text = piece.repeat((1 << 20) / piece.len());
        for before in ["", "a{b:", "@x ", "url("] {
            fed((before.to_owned() + &text).as_bytes(), 16 << 10);
        }
    }
}

/// Law: any bytes end well, and the size of the pieces doesn't change what is found.
#[test]
fn pieces_make_no_difference() {
    const WORDS: [&str; 40] = [
        "url(",
        "url('",
        "url(\"",
        "src(",
        "image-set(",
        "'",
        "\"",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ";",
        ":",
        ",",
        "@import ",
        "@media ",
        "@namespace ",
        "@x",
        "/*",
        "*/",
        "\\",
        "\n",
        "\r\n",
        " ",
        "x",
        "y.png",
        "#",
        "data:",
        "<!--",
        "-->",
        "1e3",
        "u\\72 l(",
        "é",
        "\0",
        "\u{fffd}",
        "type(",
        "a{b:",
        "\\29 ",
    ];
    let mut random = Random(0x5ced_0055);
    let mut count = 0;
    for _ in 0..20_000 {
        let mut text = Vec::new();
        for _ in 0..random.below(30) {
            text.extend_from_slice(random.pick(&WORDS).as_bytes());
            if random.below(20) == 0 {
                text.push(random.below(256) as u8);
            }
        }
        let whole = fed(&text, usize::MAX / 2);
        let piece = 1 + random.below(9);
        let cut = fed(&text, piece);
        assert_eq!(references(&whole), references(&cut), "{piece} of {}", text.escape_ascii());
        count += whole.links().len();
    }
    assert!(count > 3_000, "the texts must have references, not {count}");
}
