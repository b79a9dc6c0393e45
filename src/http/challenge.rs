//! Detects replies that are a bot challenge instead of the page or robots.txt that was requested.
//!
//! Products that keep crawlers out answer in place of the site, often with status 200. They are
//! recognized by header fields of their own or, if the body is an HTML page, by the cookies they
//! set and the paths of their scripts. Cookies, fields and paths that the same products also put on
//! ordinary pages are not used: `x-datadome: protected` comes with every page, and sites call
//! `KPSDK.configure` themselves.
//!
//! Sources: for Cloudflare's field its documentation, "Detect a Challenge Page response"; for that
//! of AWS WAF and its statuses "CAPTCHA and Challenge action behavior"; for Anubis and go-away
//! their programs; for the others pages as seen in crawls, and what crawlers' issues say of them
//! (germondai/trawl 82 and 83 of AWS WAF and DataDome, ziplokk1/incapsula-cracker-py3 1 of Imperva,
//! agentrhq/webcmd 264 of marks that ordinary pages have).
//!
//! Law: the result is a pure function of head and body; only the first [`BODY_BYTES`] of a body are
//! read.
//! Cost: two passes over the fields. An ordinary HTML page takes up to four searches of its first
//! 64 KiB, a suspicious one about a dozen.

use aho_corasick::AhoCorasick;
use memchr::memmem;
use std::sync::LazyLock;

/// The number of bytes at the start of a body that are searched.
pub const BODY_BYTES: usize = 64 << 10;

/// The fields by which a product declares a challenge: name, value, name of the product.
const FIELDS: [(&[u8], &[u8], &str); 5] = [
    (b"cf-mitigated", b"challenge", "cloudflare"),
    (b"x-amzn-waf-action", b"challenge", "aws-waf"),
    (b"x-amzn-waf-action", b"captcha", "aws-waf"),
    (b"x-vercel-mitigated", b"challenge", "vercel"),
    (b"sg-captcha", b"challenge", "siteground"),
];

/// The fields whose name alone indicates a challenge, if the reply contains no robots.txt rules: no
/// reply seen with one of them was an ordinary page, but no product documents that.
const NAMES: [(&[u8], &str); 2] = [(b"x-kpsdk-ct", "kasada"), (b"x-dd-b", "datadome")];

/// The prefixes of the names of cookies that only challenges set, each with the product.
const COOKIES: [(&[u8], &str); 3] = [
    (b"techaro.lol-anubis", "anubis"),
    (b"__cf_chl", "cloudflare"),
    (b"within.website-x-cmd-anubis", "anubis"),
];

/// When a text counts that was found in a page.
#[derive(Clone, Copy, Debug)]
enum Counts {
    /// If the status refuses the page, and the page has no link: ordinary pages have it, too, and
    /// a site may refuse one with a page of its own.
    Refused,
    /// If the status refuses the page, or if the page has no link: other pages only speak of it.
    Alone,
    /// If the status refuses the page, or if it is what a script or a style sheet is loaded from:
    /// the product serves the pages of its site unchanged.
    Loaded,
    /// If `Alone` would count, and the page shows the widget that it loads.
    Shown,
}

/// A text of challenge pages: a path of scripts, or a name that the scripts use.
struct Mark {
    text: &'static [u8],
    product: &'static str,
    counts: Counts,
}

const fn refused(text: &'static [u8], product: &'static str) -> Mark {
    Mark { text, product, counts: Counts::Refused }
}

const fn alone(text: &'static [u8], product: &'static str) -> Mark {
    Mark { text, product, counts: Counts::Alone }
}

const fn loaded(text: &'static [u8], product: &'static str) -> Mark {
    Mark { text, product, counts: Counts::Loaded }
}

/// The texts of challenge pages.
static SCRIPTS: [Mark; 28] = [
    loaded(b"/.within.website/x/cmd/anubis/", "anubis"),
    loaded(b"/.within.website/x/xess/", "anubis"),
    // Ordinary pages have scripts of the next three, which watch the visitor.
    refused(b"/cdn-cgi/challenge-platform/h/", "cloudflare"),
    refused(b".awswaf.com/", "aws-waf"),
    refused(b"/_Incapsula_Resource?", "imperva"),
    alone(b"/cdn-cgi/l/chk_jschl", "cloudflare"),
    alone(b"_cf_chl_opt", "cloudflare"),
    alone(b"awsWafCookieDomainList", "aws-waf"),
    alone(b"geo.captcha-delivery.com", "datadome"),
    alone(b"ct.captcha-delivery.com", "datadome"),
    alone(b"/px/captcha", "human"),
    alone(b"_pxCaptcha", "human"),
    alone(b"/.well-known/ddos-guard/js-challenge", "ddos-guard"),
    alone(b"/.well-known/vercel/security/", "vercel"),
    alone(b"sucuri_cloudproxy_js", "sucuri"),
    loaded(b"/.go-away/", "go-away"),
    alone(b"/.well-known/sgcaptcha/", "siteground"),
    alone(b"sec-if-cpt-container", "akamai"),
    alone(b"window.KPSDK={}", "kasada"),
    alone(b"/2d206a39-8ed7-437e-a3be-862e0f06eea3/ips.js", "kasada"),
    alone(b"x-kpsdk-im=", "kasada"),
    alone(b"id=\"px-captcha\"", "human"),
    alone(b"id='px-captcha'", "human"),
    alone(b"captcha.px-cdn.net/", "human"),
    alone(b"captcha.px-cloud.net/", "human"),
    alone(b"/_fs-ch-", "fastly"),
    // Other paths under /.bunny-shield/ are scripts of ordinary pages.
    alone(b"/.bunny-shield/assets/", "bunny"),
    // It also protects single forms on ordinary pages.
    Mark { text: TURNSTILE, product: "cloudflare", counts: Counts::Shown },
];

/// What tests the browser with a script and nothing else, whatever product it is.
pub const SCRIPT_ONLY: &str = "script-only";

/// The path of Cloudflare's Turnstile.
const TURNSTILE: &[u8] = b"challenges.cloudflare.com/turnstile/";
/// Texts of pages that show Turnstile instead of a page.
const WIDGETS: [&[u8]; 3] = [b"cf-turnstile", b"turnstile.render", b"Just a moment"];

/// Returns the names of all products that are known, some more than once.
pub fn products() -> impl Iterator<Item = &'static str> {
    let fields = FIELDS.iter().map(|(_, _, product)| *product);
    let names = NAMES.iter().map(|(_, product)| *product);
    let cookies = COOKIES.iter().map(|(_, product)| *product);
    let scripts = SCRIPTS.iter().map(|mark| mark.product);
    fields.chain(names).chain(cookies).chain(scripts).chain([SCRIPT_ONLY])
}

/// Returns the name of the product whose challenge the reply is, if its header fields declare one;
/// otherwise `None`.
pub fn in_head<'a>(mut fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Option<&'static str> {
    fields.find_map(|(name, value)| {
        let says = |known: &&(&[u8], &[u8], &str)| {
            name.eq_ignore_ascii_case(known.0) && value.trim_ascii().eq_ignore_ascii_case(known.1)
        };
        FIELDS.iter().find(says).map(|(_, _, product)| *product)
    })
}

/// Returns the product whose challenge the reply is; `None` if it isn't one. Doesn't check what
/// [`in_head`] checks. The reply must not contain robots.txt rules. Checks the names of the fields
/// and, if the reply is an HTML page (`html` is its body), its cookies and its text.
pub fn in_reply<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    html: Option<&[u8]>,
) -> Option<&'static str> {
    let by_field = in_fields(fields, html.is_some());
    by_field.or_else(|| {
        let is_known = |(_, mark): &(usize, &Mark)| !matches!(mark.counts, Counts::Shown);
        marks(html?).find(is_known).map(|(_, mark)| mark.product).or_else(|| in_widget(html?))
    })
}

/// Returns the name of the product whose challenge the reply to a request for a page is, or
/// [`SCRIPT_ONLY`]; `None` if it isn't one. `html` is the beginning of its text if it is an HTML
/// page.
///
/// Ordinary pages may mention these products, or load their scripts. If the status refuses the page
/// (202, 403, 405, 428, 429, 503), a mark counts, but one that ordinary pages have, too, only if
/// the page has no link. With status 200, marks of challenges count if the page is under 64 KiB and
/// has no link; a script or style sheet loaded from a proxy's path always counts. With any other
/// status only [`in_head`] counts.
pub fn in_page<'a>(
    status: u16,
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
    html: Option<&[u8]>,
) -> Option<&'static str> {
    if let Some(product) = in_head(fields.clone()) {
        return Some(product);
    }
    let refuses = matches!(status, 202 | 403 | 405 | 428 | 429 | 503);
    let Some(html) = html.filter(|html| !html.is_empty()) else {
        return in_fields(fields, false).filter(|_| refuses);
    };
    if !refuses && status != 200 {
        return None;
    }
    let is_whole = html.len() < BODY_BYTES;
    let html = &html[..html.len().min(BODY_BYTES)];
    let is_bare = || is_whole && !has_link(html);
    let has_loaded = |mark: &Mark| {
        matches!(mark.counts, Counts::Loaded) && memmem::find(html, mark.text).is_some()
    };
    if !refuses && !is_bare() && !SCRIPTS.iter().any(has_loaded) {
        // Nearly all pages: looking for the marks of all products costs far more than this.
        return None;
    }
    let by_field = in_fields(fields, true).filter(|_| refuses || is_bare());
    by_field.or_else(|| in_text(html, refuses, is_bare)).or_else(|| {
        let tests = is_script_only(html) && memmem::find(html, b"http-equiv").is_none();
        (tests && is_bare()).then_some(SCRIPT_ONLY)
    })
}

/// Looks for the marks of products in the text of a page.
fn in_text(html: &[u8], refuses: bool, is_bare: impl Fn() -> bool) -> Option<&'static str> {
    let (mut tag, mut bare, mut shown) = (Tag::default(), None, None);
    for (place, mark) in marks(html) {
        tag.go_to(html, place);
        let has_widget = || WIDGETS.iter().any(|widget| memmem::find(html, widget).is_some());
        let mut is_bare = || *bare.get_or_insert_with(&is_bare);
        let counts = match mark.counts {
            Counts::Refused => refuses && is_bare(),
            Counts::Alone => refuses || is_bare(),
            Counts::Loaded => refuses || tag.loads(html, place),
            Counts::Shown => (refuses || is_bare()) && *shown.get_or_insert_with(has_widget),
        };
        if counts {
            return Some(mark.product);
        }
    }
    None
}

/// Returns the name of the product whose field or cookie is among the fields.
fn in_fields<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    is_html: bool,
) -> Option<&'static str> {
    for (name, value) in fields {
        let named = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        let is_cookie = is_html && name.eq_ignore_ascii_case(b"set-cookie");
        let value = value.trim_ascii_start();
        let mut cookies = COOKIES.iter().filter(|_| is_cookie);
        let known = named.or_else(|| cookies.find(|(cookie, _)| value.starts_with(cookie)));
        if let Some((_, product)) = known {
            return Some(product);
        }
    }
    None
}

/// Finds the texts of challenges in a page, with their places.
fn marks(html: &[u8]) -> impl Iterator<Item = (usize, &'static Mark)> {
    static FINDER: LazyLock<AhoCorasick> = LazyLock::new(|| {
        let texts = SCRIPTS.iter().map(|mark| mark.text);
        AhoCorasick::new(texts).expect("a few short texts")
    });
    let html = &html[..html.len().min(BODY_BYTES)];
    FINDER.find_iter(html).map(|found| (found.start(), &SCRIPTS[found.pattern().as_usize()]))
}

/// Returns the name of the product if a page shows its widget and nothing else.
fn in_widget(html: &[u8]) -> Option<&'static str> {
    let html = &html[..html.len().min(BODY_BYTES)];
    let has = |mark: &[u8]| memmem::find(html, mark).is_some();
    let is_wall = has(TURNSTILE) && WIDGETS.into_iter().any(has) && !has_link(html);
    is_wall.then_some("cloudflare")
}

/// The tag around a place in the HTML of a page, which moves forward.
#[derive(Default)]
struct Tag {
    /// Where it begins; `None` outside of tags.
    begin: Option<usize>,
    /// Up to where the page was read.
    read: usize,
}

impl Tag {
    fn go_to(&mut self, html: &[u8], place: usize) {
        if let Some(before) = memchr::memrchr2(b'<', b'>', &html[self.read..place]) {
            let at = self.read + before;
            self.begin = (html[at] == b'<').then_some(at);
        }
        self.read = place;
    }

    /// Returns whether the tag loads a script or a style sheet whose URL begins at this place.
    fn loads(&self, html: &[u8], place: usize) -> bool {
        let names: [&[u8]; 2] = [b"<script", b"<link"];
        let has_name = self.begin.is_some_and(|begin| {
            let tag = &html[begin..place];
            let is = |name: &&[u8]| {
                tag.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name))
            };
            names.iter().any(is)
        });
        has_name && matches!(html[place - 1], b'"' | b'\'' | b'=')
    }
}

/// Returns whether the HTML of a page contains a link, as ordinary pages do.
fn has_link(body: &[u8]) -> bool {
    memchr::memchr_iter(b'<', body).any(
        |place| matches!(body[place + 1..], [b'a' | b'A', next, ..] if next.is_ascii_whitespace()),
    )
}

/// Returns whether an HTML page has no content but a script and a `noscript` element, which means
/// that it tests the browser. A page that a script fills in later has an element to hold the
/// content.
pub fn is_script_only(body: &[u8]) -> bool {
    let body = &body[..body.len().min(BODY_BYTES)];
    let mut rest = body;
    let (mut has_script, mut has_noscript) = (false, false);
    while let Some(place) = memchr::memchr(b'<', rest) {
        if !rest[..place].trim_ascii().is_empty() {
            return false;
        }
        let tag = &rest[place + 1..];
        let name = tag.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let end: &[u8] = match &tag[..name].to_ascii_lowercase()[..] {
            b"script" => {
                has_script = true;
                b"</script"
            }
            b"noscript" => {
                has_noscript = true;
                b"</noscript"
            }
            b"title" => b"</title",
            b"style" => b"</style",
            b"html" | b"head" | b"body" | b"meta" | b"link" => b">",
            b"" if tag.starts_with(b"!--") => b"-->",
            b"" if tag.starts_with(b"!") || tag.starts_with(b"/") => b">",
            // Any other element may be content, or a container that a script fills.
            _ => return false,
        };
        let find = |end: &[u8]| {
            let is_it = |place: &usize| {
                tag.get(*place..place + end.len()).is_some_and(|it| it.eq_ignore_ascii_case(end))
            };
            memchr::memchr_iter(end[0], tag).find(is_it).map(|place| &tag[place..])
        };
        let Some(at_end) = find(end) else { return has_script && has_noscript };
        rest = memchr::memchr(b'>', at_end).map_or(&[], |end| &at_end[end + 1..]);
    }
    rest.trim_ascii().is_empty() && has_script && has_noscript
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        let cases: [(&str, &str, Option<&str>, &str); 8] = [
            ("sg-captcha", "challenge", Some("siteground"), "as seen, with 202"),
            ("cf-mitigated", "challenge", Some("cloudflare"), "as documented"),
            ("CF-Mitigated", " Challenge ", Some("cloudflare"), "case and blanks don't matter"),
            ("x-amzn-waf-action", "challenge", Some("aws-waf"), "as documented, with 202"),
            ("x-amzn-waf-action", "captcha", Some("aws-waf"), "as documented, with 405"),
            ("x-vercel-mitigated", "challenge", Some("vercel"), "as documented"),
            ("cf-mitigated", "none", None, "another value"),
            ("server", "cloudflare", None, "who serves is no mark"),
        ];
        for (name, value, expected, why) in cases {
            let fields = [(&b"server"[..], &b"x"[..]), (name.as_bytes(), value.as_bytes())];
            assert_eq!(in_head(fields.into_iter()), expected, "{why}: {name}: {value}");
        }
    }

    #[test]
    fn cookies_and_fields() {
        let cases: [(&str, &str, bool, Option<&str>, &str); 10] = [
            ("Set-Cookie", "techaro.lol-anubis-cookie-verification=1", true, Some("anubis"), ""),
            (
                "set-cookie",
                " techaro.lol-anubis-auth-ab12=; Path=/",
                true,
                Some("anubis"),
                "a host",
            ),
            ("Set-Cookie", "__cf_chl_rc_i=1", true, Some("cloudflare"), "its cookie"),
            ("Set-Cookie", "__cf_chl_rc_i=1", false, None, "cookies count in pages"),
            ("Set-Cookie", "__cf_bm=x", true, None, "set on every page"),
            ("Cookie", "__cf_chl_rc_i=1", true, None, "another field"),
            ("X-DD-B", "1", false, Some("datadome"), "also with a JSON body"),
            ("x-dd-b", "259", true, Some("datadome"), "values differ"),
            ("x-kpsdk-ct", "0ab", false, Some("kasada"), "its token"),
            ("X-DataDome", "protected", true, None, "on every page"),
        ];
        for (name, value, is_html, expected, why) in cases {
            let fields = [(&b"server"[..], &b"x"[..]), (name.as_bytes(), value.as_bytes())];
            let html = is_html.then_some(&b"<p>"[..]);
            assert_eq!(in_reply(fields.into_iter(), html), expected, "{why}: {name}: {value}");
        }
    }

    #[test]
    fn pages() {
        let turnstile = r#"<script src="https://challenges.cloudflare.com/turnstile/v0/api.js">"#;
        let wall = format!(r#"{turnstile}</script><div class="cf-turnstile"></div>"#);
        let form = format!(r#"<A href="/">Home</a><form>{wall}</form>"#);
        let app = format!("{turnstile}</script><div id=root></div>");
        #[rustfmt::skip]
        let cases: [(&str, Option<&str>); 21] = [
            ("<script src=\"/.within.website/x/cmd/anubis/a.mjs\">", Some("anubis")),
            ("window._cf_chl_opt={", Some("cloudflare")),
            ("<script src=\"/cdn-cgi/scripts/x.js\">", None),
            ("<script src=\"/cdn-cgi/challenge-platform/scripts/jsd/main.js\">", None),
            (&wall, Some("cloudflare")),
            (&format!("<title>Just a moment...</title>{turnstile}"), Some("cloudflare")),
            (&form, None),
            (&app, None),
            ("<meta content=\"0;/.well-known/sgcaptcha/?r=%2F\">", Some("siteground")),
            ("<div id=\"sec-if-cpt-container\">", Some("akamai")),
            ("<script>window.KPSDK={};KPSDK.now=1</script>", Some("kasada")),
            ("<script src=\"/14/2d206a39-8ed7-437e-a3be-862e0f06eea3/ips.js?a\">", Some("kasada")),
            ("<script src=\"/14/2d206a39-8ed7-437e-a3be-862e0f06eea3/p.js\">", None),
            ("<script>window.KPSDK.configure([])</script>", None),
            ("<div id=\"px-captcha\"></div>", Some("human")),
            ("<script src=https://captcha.px-cdn.net/PX1/captcha.js>", Some("human")),
            ("<script>window._pxAppId = 'PX1'</script>", None),
            ("<link href=\"/_fs-ch-1T1wmsGaOgGaSxcX/assets/styles.css\">", Some("fastly")),
            ("<script src=\"/.bunny-shield/assets/shield-challenge.js\">", Some("bunny")),
            ("<script src=\"/.bunny-shield/bunnyprint/x.js\">", None),
            ("", None),
        ];
        for (body, expected) in cases {
            let found = in_reply(std::iter::empty(), Some(body.as_bytes()));
            assert_eq!(found, expected, "{body}");
            assert_eq!(in_reply(std::iter::empty(), None), None);
        }
    }

    /// Pages that speak of a product, or let it watch the visitor, are no challenges.
    #[test]
    fn what_counts_in_a_page() {
        let home = "<a href=/>Home</a>";
        let anubis = r#"<script src="/.within.website/x/cmd/anubis/main.mjs"></script>"#;
        let imperva = "<script src=/_Incapsula_Resource?SWJIYLWA=7></script>";
        let quoted = "<code>src=/.within.website/x/cmd/anubis/main.mjs</code>";
        let picture = "<img src='/.within.website/x/xess/x.png'>";
        let foreign = "<script src='//a.b/.go-away/x.js'></script>";
        let long = " ".repeat(BODY_BYTES);
        let loading = "<script>go()</script><noscript>Enable it</noscript>";
        let moved = "<script>go()</script><noscript><meta http-equiv=refresh content=0></noscript>";
        #[rustfmt::skip]
        let cases: [(u16, &str, &str, Option<&str>, &str); 28] = [
            (200, "cf-mitigated: challenge", home, Some("cloudflare"), "a field that says so"),
            (200, "x-kpsdk-ct: 0ab", home, None, "a token beside a page"),
            (429, "x-kpsdk-ct: 0ab", home, Some("kasada"), "a token in place of one"),
            (403, "x-dd-b: 1", "", Some("datadome"), "without a text"),
            (200, "x: y", anubis, Some("anubis"), "its script"),
            (200, "x: y", &format!("{anubis}{home}"), Some("anubis"), "and its own links"),
            (200, "x: y", &format!("{quoted}{home}"), None, "a page about it"),
            (403, "x: y", &format!("{quoted}{home}"), Some("anubis"), "that is refused"),
            (200, "x: y", &format!("{imperva}{home}"), None, "who watches the visitor"),
            (200, "x: y", imperva, None, "even if a script shows the page"),
            (503, "x: y", imperva, Some("imperva"), "or refuses the page"),
            (503, "x: y", &format!("{imperva}{home}"), None, "or watches who reads a refusal"),
            (404, "x: y", imperva, None, "what isn't there"),
            (404, "x: y", anubis, None, "nor there"),
            (301, "x-kpsdk-ct: 0ab", "", None, "a redirect with a token"),
            (301, "x-kpsdk-ct: 0ab", "<title>Moved</title>", None, "and a text"),
            (304, "x-dd-b: 1", "", None, "what hasn't changed"),
            (401, "x: y", imperva, None, "who asks for a password"),
            (401, "x-vercel-mitigated: challenge", "", Some("vercel"), "but says what it is"),
            (200, "x: y", &format!("{picture}{home}"), None, "a picture"),
            (200, "x: y", &format!("{foreign}{home}"), None, "a script of another site"),
            (200, "x: y", "<script>sucuri_cloudproxy_js=1</script>", Some("sucuri"), "alone"),
            (200, "x: y", &format!("sucuri_cloudproxy_js{home}"), None, "spoken of"),
            (200, "x: y", &format!("sucuri_cloudproxy_js{long}"), None, "a long page"),
            (200, "set-cookie: __cf_chl_rc_i=1", home, None, "a cookie beside a page"),
            (403, "set-cookie: __cf_chl_rc_i=1", home, Some("cloudflare"), "one in place of it"),
            (200, "x: y", loading, Some(SCRIPT_ONLY), "a test without a name"),
            (200, "x: y", moved, None, "a redirect"),
        ];
        for (status, field, html, expected, why) in cases {
            let (name, value) = field.split_once(": ").expect("a field");
            let fields = [(name.as_bytes(), value.as_bytes())];
            let html = Some(html.as_bytes());
            assert_eq!(
                in_page(status, fields.into_iter(), html),
                expected,
                "{why}: {field} {html:?}"
            );
        }
    }

    #[test]
    fn pages_of_a_script_only() {
        let cases = [
            ("<html><script>x()</script><noscript>Enable JavaScript</noscript></html>", true),
            ("<!doctype html><title>One moment</title>\n<SCRIPT src=a></SCRIPT><noscript>a", true),
            ("<script>if (a < b) {}</script><noscript><p>Please</p></noscript>", true),
            ("<script>x()</script>", false),
            ("<noscript>x</noscript>", false),
            ("<script>x()</script><noscript>x</noscript><p>Text</p>", false),
            ("<div id=root></div><script>x()</script><noscript>x</noscript>", false),
            ("Text<script>x()</script><noscript>x</noscript>", false),
            ("", false),
            ("<", false),
        ];
        for (body, expected) in cases {
            assert_eq!(is_script_only(body.as_bytes()), expected, "{body}");
        }
    }
}
