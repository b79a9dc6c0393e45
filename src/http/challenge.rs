//! Detects replies that are a bot challenge instead of the page or robots.txt that was requested.
//!
//! Products that keep crawlers out answer in place of the site, often with status 200. They are
//! recognized by header fields of their own or, if the body is an HTML page, by the cookies they
//! set and the paths of their scripts. Cookies, fields and paths that the same products also put on
//! ordinary pages are not used: `x-datadome: protected` comes with every page, and sites call
//! `KPSDK.configure` themselves.
//!
//! Law: the result is a pure function of head and body; only the first [`BODY_BYTES`] of a body are
//! read.
//! Cost: one pass over the names of the fields, and over the body only if the caller passes one.

use memchr::memmem;

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

/// Texts that only challenge pages contain, each with the product: paths of scripts, and names that
/// the scripts use.
const SCRIPTS: [(&[u8], &str); 27] = [
    (b"/.within.website/x/cmd/anubis/", "anubis"),
    (b"/.within.website/x/xess/", "anubis"),
    (b"/cdn-cgi/challenge-platform/h/", "cloudflare"),
    (b"/cdn-cgi/l/chk_jschl", "cloudflare"),
    (b"_cf_chl_opt", "cloudflare"),
    (b".awswaf.com/", "aws-waf"),
    (b"awsWafCookieDomainList", "aws-waf"),
    (b"/_Incapsula_Resource?", "imperva"),
    (b"geo.captcha-delivery.com", "datadome"),
    (b"ct.captcha-delivery.com", "datadome"),
    (b"/px/captcha", "human"),
    (b"_pxCaptcha", "human"),
    (b"/.well-known/ddos-guard/js-challenge", "ddos-guard"),
    (b"/.well-known/vercel/security/", "vercel"),
    (b"sucuri_cloudproxy_js", "sucuri"),
    (b"/.go-away/", "go-away"),
    (b"/.well-known/sgcaptcha/", "siteground"),
    (b"sec-if-cpt-container", "akamai"),
    (b"window.KPSDK={}", "kasada"),
    (b"/2d206a39-8ed7-437e-a3be-862e0f06eea3/ips.js", "kasada"),
    (b"x-kpsdk-im=", "kasada"),
    (b"id=\"px-captcha\"", "human"),
    (b"id='px-captcha'", "human"),
    (b"captcha.px-cdn.net/", "human"),
    (b"captcha.px-cloud.net/", "human"),
    (b"/_fs-ch-", "fastly"),
    // Other paths under /.bunny-shield/ are scripts of ordinary pages.
    (b"/.bunny-shield/assets/", "bunny"),
];

/// The path of Cloudflare's Turnstile, which also protects single forms on ordinary pages.
const TURNSTILE: &[u8] = b"challenges.cloudflare.com/turnstile/";
/// Texts of pages that show Turnstile instead of a page.
const WIDGETS: [&[u8]; 3] = [b"cf-turnstile", b"turnstile.render", b"Just a moment"];

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

/// Returns the name of the product whose challenge the reply is; `None` if it isn't one. The reply
/// must not contain robots.txt rules. Checks the names of the header fields and, if the reply is an
/// HTML page (`html` is its body), its cookies and its text.
pub fn in_reply<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    html: Option<&[u8]>,
) -> Option<&'static str> {
    for (name, value) in fields {
        let named = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        let is_cookie = html.is_some() && name.eq_ignore_ascii_case(b"set-cookie");
        let value = value.trim_ascii_start();
        let mut cookies = COOKIES.iter().filter(|_| is_cookie);
        let known = named.or_else(|| cookies.find(|(cookie, _)| value.starts_with(cookie)));
        if let Some((_, product)) = known {
            return Some(product);
        }
    }
    let body = html?;
    let body = &body[..body.len().min(BODY_BYTES)];
    let has = |mark: &[u8]| memmem::find(body, mark).is_some();
    let by_script = SCRIPTS.iter().find(|(mark, _)| has(mark)).map(|(_, product)| *product);
    by_script.or_else(|| {
        let is_wall = has(TURNSTILE) && WIDGETS.into_iter().any(has) && !has_link(body);
        is_wall.then_some("cloudflare")
    })
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
            let lower = tag.windows(end.len()).position(|window| window.eq_ignore_ascii_case(end));
            lower.map(|place| &tag[place..])
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
