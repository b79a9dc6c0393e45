//! Tests the scanner against the tokenizer of html5ever, and with its input split into pieces.

mod bounds;
mod css;
mod foreign;
mod oracle;
mod requisites;

use super::*;
use crate::ground::random::Random;
use oracle::tokenized;

/// The compared links: kind, reference, nofollow.
type Links = Vec<(Kind, String, bool)>;

/// Everything that is extracted from a page.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    links: Links,
    base: Option<String>,
    directives: Directives,
}

fn everything() -> Settings {
    Settings { requisites: true, forms: true, ..Settings::default() }
}

/// Scans the page in steps of `budget` bytes.
fn scanned(text: &[u8], settings: &Settings, budget: usize) -> Page {
    let mut scanner = Scanner::new(settings.clone());
    let mut found = Found::new();
    scanner.begin(UTF_8);
    let mut calls = 0;
    while scanner.scan(text, budget, &mut found) == Progress::More {
        calls += 1;
        assert!(calls <= text.len(), "each call gets on");
    }
    page_of(&found)
}

fn page_of(found: &Found) -> Page {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("references are UTF-8");
    Page {
        links: found
            .links()
            .map(|link| (link.kind, text(link.reference.as_bytes()), link.nofollow))
            .collect(),
        base: found.base().map(text),
        directives: found.directives(),
    }
}

/// Pieces that are difficult for tokenizers.
const DIFFICULT: &[&str] = &[
    "<",
    ">",
    "/",
    "=",
    "\"",
    "'",
    "&",
    "\0",
    "!",
    "-",
    "--",
    "<!--",
    "-->",
    "--!>",
    "<!-->",
    "<!--->",
    "<!",
    "<?",
    "</",
    "</>",
    "<![CDATA[",
    "]]>",
    "<!doctype html \"",
    "<script",
    "<script>",
    "</script",
    "</script >",
    "</script>",
    "<SCRIPT src=x>",
    "<style>",
    "</style>",
    "<style type=x>",
    "url(u.png)",
    "@import 'm';",
    "/*",
    "*/",
    "a{b:url('c')}",
    "<p style=\"background:url(s.png)\">",
    "<a style='x:url(&quot;t&#41;&quot;)'>",
    "<td background=k>",
    "<iframe srcdoc='<img src=d><a href=e>'>",
    " srcdoc='&lt;iframe srcdoc=&quot;&lt;img src=o>\">'",
    "<button formaction=q>",
    "<title>",
    "</title>",
    "<textarea>",
    "</textarea/>",
    "<xmp>",
    "</xmp>",
    "<iframe src=f>",
    "</iframe>",
    "<noembed>",
    "</noembed>",
    "<noframes>",
    "</noframes\n>",
    "<noscript>",
    "<plaintext>",
    "<plaintextx>",
    "<scriptx>",
    "<a href=",
    "<a href=x>",
    "<A HREF='x'>",
    "</a>",
    "<a/href=x/>",
    "<a href=\"x\"href=y>",
    " href = \"q\" ",
    "\thref\n=\r'v'",
    "<area href=a>",
    "<abbr href=n>",
    "<base href=b>",
    "<basefont href=n>",
    "<frame src=s>",
    "<link rel=next href=l>",
    "<link rel=icon href=i>",
    "<meta http-equiv=refresh content='0;url=r'>",
    "<meta name=robots content=nofollow>",
    "<form action=t>",
    "<img src=i>",
    "<image src=i>",
    "<source src=s>",
    "<video src=v>",
    "<input type=image src=n>",
    "<input src=n>",
    " rel=nofollow",
    " rel='x NoFollow'",
    "<p class=\"a b\" id='c'>",
    "<p class=\"a>b\">",
    "<p =\">",
    "<p=\"x>",
    "<p a==\"x\">",
    "<p a = b>",
    "<p x\"y=\"z\">",
    "<p a=\"b\"=\"c\">",
    "</p a=\">\">",
    "<p\x01a=\">",
    "<p\ta=\">\" b>",
    "<p/a=\">\">",
    "&amp;",
    "&amp",
    "&copy=",
    "&copy",
    "&notin;",
    "&not",
    "&#65;",
    "&#x41",
    "&#0;",
    "&#x80;",
    "&#",
    "&NotEqualTilde;",
    "&lt",
    "&Newline;",
    "&NewLine;",
    "&Tab;",
    "&nbsp;",
    "é",
    "\u{2028}",
    "😀",
    " ",
    "\n",
    "\t",
    "\r",
    "\r\n",
    "\x0c",
    "\x0b",
    "a",
    "x",
    "1",
    "word",
];

/// An ordinary page, to be corrupted.
const ORDINARY: &str = r#"<!doctype html><html><head><title>A &amp; B</title><base href="/b/">
<meta charset="utf-8"><link rel="next" href="/next?a=1&amp;b=2"><style>a > b { x: "<a href=no>" }
</style><script>if (a < b) document.write("<a href='no'>"); <!-- <script> --></script></head><body>
<p class="one two">text <a class="x" href="/one">one</a> and <a href='/two' rel="nofollow">two</a>,
<b>bold</b><br/><img src="/i.png" alt="a > b"><!-- <a href="no"> --><code>a<span>b</span></code>
<a title="x > y" href=/three?a=1&copy=2>three</a><textarea><a href=no></textarea>
<iframe src="/frame"><a href=no></iframe><ul><li><a href=four>four</a><li><a href=five>five</a></ul>
<form action="/form"><input type=image src=in></form><noscript><a href="/plain">p</a></noscript>"#;

fn corrupted(random: &mut Random) -> String {
    let mut text = String::new();
    if random.below(3) > 0 {
        text.push_str(ORDINARY);
    }
    let edits = 1 + random.below(if text.is_empty() { 24 } else { 8 });
    for _ in 0..edits {
        let mut at = random.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        match random.below(8) {
            0 => text.truncate(at),
            1 => drop(text.drain(at..).take(random.below(40)).count()),
            2 => {
                let tail: String = text[at..].chars().take(random.below(60)).collect();
                text.insert_str(at, &tail);
            }
            _ => text.insert_str(at, random.pick(DIFFICULT)),
        }
    }
    text
}

/// Law: on any text the scanner finds what the standard's tokenizer finds, whatever the budget.
#[test]
fn corrupted_pages_agree_with_the_tokenizer() {
    let mut random = Random(0x5ced_0001);
    let rounds = 20_000;
    let mut links = 0;
    for round in 0..rounds {
        let text = corrupted(&mut random);
        let settings = if round % 4 == 0 { Settings::default() } else { everything() };
        let expected = tokenized(&text, &settings);
        assert_eq!(scanned(text.as_bytes(), &settings, usize::MAX), expected, "{text:?}");
        let budget = 1 + random.below(40);
        assert_eq!(scanned(text.as_bytes(), &settings, budget), expected, "{budget} of {text:?}");
        links += expected.links.len();
    }
    assert!(links > rounds, "the pages must hold links, not {links}");
}

/// Law: any bytes in any charset are scanned without a panic, with the same result for any budget,
/// and the result is UTF-8 within the caps.
#[test]
fn any_bytes_end_well() {
    use encoding_rs::{BIG5, EUC_JP, EUC_KR, GB18030, SHIFT_JIS, WINDOWS_1252};
    let mut random = Random(0x5ced_0002);
    let charsets = [UTF_8, WINDOWS_1252, SHIFT_JIS, GB18030, BIG5, EUC_KR, EUC_JP];
    let caps = Settings { links_max: 6, reference_bytes_max: 40, ..everything() };
    let settings = Settings { found_bytes_max: 60, ..caps };
    let (mut kept, mut dropped) = (0, 0);
    for _ in 0..10_000 {
        let mut text = corrupted(&mut random).into_bytes();
        for _ in 0..random.below(30) {
            let at = random.below(text.len() + 1);
            text.insert(at, 0x80 | random.below(128) as u8);
        }
        let mut scanner = Scanner::new(settings.clone());
        let mut pages = Vec::new();
        let charset = charsets[random.below(charsets.len())];
        for budget in [usize::MAX, 1 + random.below(20)] {
            let mut found = Found::new();
            scanner.begin(charset);
            while scanner.scan(&text, budget, &mut found) == Progress::More {}
            assert!(found.links().len() <= 6);
            assert!(found.links().map(|link| link.reference.len()).sum::<usize>() <= 60);
            let cut = found.cut();
            (kept, dropped) =
                (kept + found.links().len(), dropped + cut.targets + cut.bytes + cut.long);
            pages.push(page_of(&found));
        }
        assert_eq!(pages[0], pages[1], "{}", text.escape_ascii());
    }
    assert!(kept > 10_000 && dropped > 5_000, "caps must bite: {kept} kept, {dropped} dropped");
}

/// Law: the time for a page grows with its length, not with its square. Each of these pages takes a
/// millisecond or two; if a piece made the scanner search to the end of the page, it would take
/// minutes.
#[test]
fn hostile_pages_take_linear_time() {
    let ends = ["", "--><a href=x>", "</script><a href=x>", "\"><a href=x>"];
    for piece in DIFFICULT.iter().chain(&["<a href=\"", "<p a='", "<script><!--", "<svg><title>"]) {
        for end in ends {
            let page = piece.repeat((1 << 18) / piece.len()) + end;
            scanned(page.as_bytes(), &everything(), 1 << 12);
        }
    }
}

/// Returns all links of a page, as `kind reference`, with `!` if they are not to be followed.
fn listed(html: &str, settings: &Settings) -> Vec<String> {
    let page = scanned(html.as_bytes(), settings, 7);
    let line = |(kind, reference, nofollow): &(Kind, String, bool)| {
        format!("{} {reference}{}", kind.name(), if *nofollow { "!" } else { "" })
    };
    page.links.iter().map(line).collect()
}

#[test]
fn what_is_a_link() {
    let cases: [(&str, &[&str], &[&str]); 26] = [
        ("<a href=x>", &["anchor x"], &[]),
        ("<a href>", &["anchor "], &[]),
        ("<a name=x>", &[], &[]),
        ("<a href=x rel='noopener NOFOLLOW'>", &["anchor x!"], &[]),
        ("<area href=x><abbr href=y>", &["anchor x"], &[]),
        ("<frame src=x><iframe src=y></iframe>", &["frame x", "frame y"], &[]),
        ("<iframe src>", &[], &[]),
        ("<link rel=next href=x>", &["related x"], &[]),
        ("<link rel='stylesheet' href=x>", &[], &["embed x"]),
        ("<link rel=alternate type=application/rss+xml href=x>", &[], &[]),
        ("<link rel=preload imagesrcset='a 1x, b 2x'>", &[], &["embed a", "embed b"]),
        ("<link href=x>", &[], &[]),
        ("<meta http-equiv=Refresh content='1; URL=x'>", &["refresh x"], &[]),
        ("<meta http-equiv=refresh content='1'>", &[], &[]),
        ("<img src=x srcset='a 1x, b&amp;c 2x'>", &[], &["embed x", "embed a", "embed b&c"]),
        ("<img src=''><img srcset>", &[], &[]),
        ("<script src=x></script>", &[], &["embed x"]),
        ("<video src=x poster=y>", &[], &["embed x", "embed y"]),
        ("<source src=x><track src=y>", &[], &["embed x", "embed y"]),
        ("<audio src=x><embed src=y>", &[], &["embed x", "embed y"]),
        ("<object data=x src=y>", &[], &["embed x"]),
        ("<input type=image src=x>", &[], &["embed x"]),
        ("<form action=x><form method=POST action=y><form>", &[], &["form x"]),
        ("<a href=' x&#32;\n&Tab;y\r\nz '>", &["anchor x yz"], &[]),
        ("<noscript><a href=x></noscript>", &["anchor x"], &[]),
        ("<template><a href=x></template>", &["anchor x"], &[]),
    ];
    for (html, always, wanted) in cases {
        assert_eq!(listed(html, &Settings::default()), always, "{html}");
        assert_eq!(listed(html, &everything()), [always, wanted].concat(), "{html}");
    }
}

#[test]
fn base_and_directives() {
    let html = b"<base target=x><base href=' /b&amp;c '><base href=/d>\
        <meta name=ROBOTS content='NoIndex, noarchive'><meta name=sted content=nofollow>\
        <meta name=otherbot content=noai>";
    let page = scanned(html, &Settings::default(), 3);
    assert_eq!(page.base.as_deref(), Some("/b&c"));
    let told = Directives { noindex: true, nofollow: true, noarchive: true, ..Default::default() };
    assert_eq!(page.directives, told);
    let link = Link { reference: "x", kind: Kind::Anchor, nofollow: false };
    let obedient = Settings::default();
    let free = Settings { obey_meta: false, obey_nofollow: false, ..Settings::default() };
    assert!(obedient.may_follow(&link, Directives::default()));
    assert!(!obedient.may_follow(&link, told));
    assert!(!obedient.may_follow(&Link { nofollow: true, ..link }, Directives::default()));
    assert!(free.may_follow(&Link { nofollow: true, ..link }, told));
}

/// References of legacy pages: the bytes are decoded in the page's charset, character references
/// are Unicode in any charset, and bytes that look like ASCII inside a character do no harm.
#[test]
fn references_in_other_charsets() {
    use encoding_rs::{GBK, ISO_8859_2, SHIFT_JIS, WINDOWS_1252};
    type Case = (&'static Encoding, &'static [u8], &'static str, &'static str);
    let cases: [Case; 8] = [
        (WINDOWS_1252, b"<a href='/\xe9?q=\x80&eacute;'>", "/\u{e9}?q=\u{20ac}\u{e9}", "Latin"),
        (ISO_8859_2, b"<a href=/?q=\xb1\xe6>", "/?q=\u{105}\u{107}", "Polish, without quotes"),
        (SHIFT_JIS, b"<a href='/\x83\x5c\x95\x5c'>", "/\u{30bd}\u{8868}", "backslash as trail"),
        (SHIFT_JIS, b"<a href='\x83'>", "\u{fffd}", "the quote is not swallowed"),
        (GBK, b"<a href='/\xd6\xd0\x81\x7c'>", "/\u{4e2d}\u{4e85}", "bar as trail"),
        (UTF_8, "<a href='/é'>".as_bytes(), "/é", "as it is"),
        (UTF_8, b"<a href='/\xe9&amp;'>", "/\u{fffd}&", "invalid"),
        (WINDOWS_1252, b"<a href='/\0\xe9'>", "/\u{fffd}\u{e9}", "NUL"),
    ];
    for (charset, html, expected, why) in cases {
        let (mut scanner, mut found) = (Scanner::new(Settings::default()), Found::new());
        scanner.begin(charset);
        assert_eq!(scanner.scan(html, usize::MAX, &mut found), Progress::Done);
        let links: Vec<_> = found.links().map(|link| link.reference.as_bytes()).collect();
        assert_eq!(links, [expected.as_bytes()], "{} {why}", charset.name());
    }
}

/// A page in UTF-16 is converted to UTF-8 first.
#[test]
fn a_page_in_utf_16() {
    let html = "\u{feff}<a href='/é'><a href=x>";
    let page: Vec<u8> = html.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let declared = charset(Some(b"utf-8"), &page).encoding;
    assert_eq!(declared, encoding_rs::UTF_16BE, "the mark wins");
    let mut text = Vec::new();
    let whole = Converter::new(declared).convert(&page, &mut text, usize::MAX, 1 << 20);
    assert!(!is_scannable(declared) && whole.is_done && !whole.is_cut);
    let page = scanned(&text, &Settings::default(), 5);
    assert_eq!(page.links.iter().map(|link| &*link.1).collect::<Vec<_>>(), ["/é", "x"]);
}

/// The charset that a page names after the bytes of the prescan.
#[test]
fn late_charsets() {
    let cases = [
        ("<meta charset=gbk><meta charset=big5>", Some("GBK")),
        ("<meta http-equiv=content-type content='a; charset=big5'>", Some("Big5")),
        ("<meta charset=nonsense><meta charset=koi8-r>", Some("KOI8-R")),
        ("<!-- <meta charset=gbk> -->", None),
    ];
    for (html, expected) in cases {
        let (mut scanner, mut found) = (Scanner::new(Settings::default()), Found::new());
        scanner.begin(UTF_8);
        scanner.scan(html.as_bytes(), usize::MAX, &mut found);
        assert_eq!(found.charset().map(Encoding::name), expected, "{html}");
        found.clear();
        assert_eq!((found.charset(), found.links().len(), found.base()), (None, 0, None));
    }
}

/// Law: every name of the table is decoded as the tokenizer does, wherever it may be.
#[test]
fn every_named_reference() {
    let settings = Settings::default();
    for (name, _) in names::NAMED {
        for after in [";", "", "=", ";=", "x", "-", ";x", "&", "\u{e9}"] {
            let html = format!("<a href='/{{&{name}{after}}}'>");
            let expected = tokenized(&html, &settings);
            assert_eq!(scanned(html.as_bytes(), &settings, 9), expected, "{html}");
        }
    }
}

/// Law: all short texts of these alphabets agree with the tokenizer; random tests may miss some.
#[test]
fn all_short_texts_agree_with_the_tokenizer() {
    let alphabets: [(&str, [&str; 8]); 5] = [
        ("<script>", ["<!--", "-", ">", "<script>", "</script>", "</script/", "!", "<a href=x>"]),
        ("<!--", ["<!--", "-", "--", ">", "!", "<", "-->", "<a href=x>"]),
        ("<p ", [" ", "a", "=", "\"", "'", "/", ">", "<a href=x>"]),
        ("<a ", [" ", "href", "=", "\"", "x'", "/", ">", "\n"]),
        ("<title>", ["<title>", "</", "title", ">", "</title/", " ", "\"", "<a href=x>"]),
    ];
    let settings = Settings::default();
    for (start, alphabet) in alphabets {
        for number in 0..8_usize.pow(5) {
            let mut text = start.to_owned();
            (0..5).for_each(|place| text.push_str(alphabet[number >> (3 * place) & 7]));
            text.push_str("<a href=y>");
            let expected = tokenized(&text, &settings);
            assert_eq!(scanned(text.as_bytes(), &settings, 1 + number % 9), expected, "{text}");
        }
    }
}

#[test]
fn plain_values_are_those_that_a_loop_finds_plain() {
    let is_own = |byte: u8| matches!(byte, b' '..=b'%' | b'\''..=b'~');
    for len in 1..=20 {
        for (place, byte) in (0..len).flat_map(|at| (0..=255_u8).map(move |byte| (at, byte))) {
            // Bytes next to a special byte must neither hide it, nor be mistaken for it.
            for around in [b' ', b'%', b'\'', b'~'] {
                let mut raw = vec![around; len];
                raw[place] = byte;
                assert_eq!(is_plain(&raw), is_own(byte), "{byte} at {place} of {len}");
            }
        }
    }
    assert!(is_plain(b""));
}
