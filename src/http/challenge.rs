//! Marks by which a reply shows that it is a challenge: neither a page nor a permission.
//!
//! Products that keep crawlers out answer in place of the site, often with status 200. What they
//! answer is known by header fields of their own, or, where the body is an HTML page, by their
//! cookies and the paths of their scripts. Cookies and paths that the same products also put on
//! ordinary pages are no marks.
//!
//! Law: a pure function of head and body; a body is looked at to [`BODY_BYTES`].
//! Cost: one pass over the names of the fields; over the body only if it is asked for.

use memchr::memmem;

/// How much of a body is looked at, in bytes.
pub const BODY_BYTES: usize = 64 << 10;

/// Fields with which a product says that it challenges: name, value, product.
const FIELDS: [(&[u8], &[u8], &str); 4] = [
    (b"cf-mitigated", b"challenge", "cloudflare"),
    (b"x-amzn-waf-action", b"challenge", "aws-waf"),
    (b"x-amzn-waf-action", b"captcha", "aws-waf"),
    (b"x-vercel-mitigated", b"challenge", "vercel"),
];

/// Beginnings of the names of cookies that only challenges set.
const COOKIES: [(&[u8], &str); 3] = [
    (b"techaro.lol-anubis", "anubis"),
    (b"__cf_chl", "cloudflare"),
    (b"within.website-x-cmd-anubis", "anubis"),
];

/// What stands in the pages of challenges: paths of scripts, and names that their scripts use.
const SCRIPTS: [(&[u8], &str); 16] = [
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
];

/// The product whose head says that this is a challenge.
pub fn in_head<'a>(mut fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Option<&'static str> {
    fields.find_map(|(name, value)| {
        let says = |known: &&(&[u8], &[u8], &str)| {
            name.eq_ignore_ascii_case(known.0) && value.trim_ascii().eq_ignore_ascii_case(known.1)
        };
        FIELDS.iter().find(says).map(|(_, _, product)| *product)
    })
}

/// The product whose challenge an HTML page is, by the cookies it sets and by what stands in it.
pub fn in_page<'a>(
    mut fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    body: &[u8],
) -> Option<&'static str> {
    let by_cookie = fields.find_map(|(name, value)| {
        let value = value.trim_ascii_start();
        let is_cookie = name.eq_ignore_ascii_case(b"set-cookie");
        let known = COOKIES.iter().find(|(cookie, _)| is_cookie && value.starts_with(cookie));
        known.map(|(_, product)| *product)
    });
    let body = &body[..body.len().min(BODY_BYTES)];
    let is_in = |known: &&(&[u8], &str)| memmem::find(body, known.0).is_some();
    by_cookie.or_else(|| SCRIPTS.iter().find(is_in).map(|(_, product)| *product))
}

/// Whether all that an HTML page has is a script and a line for browsers without scripts: it tests
/// browsers. Pages that a script is to fill have an element for that.
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
            // Something for a script to fill, say.
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
        let cases: [(&str, &str, Option<&str>, &str); 7] = [
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
    fn pages() {
        let anubis = "<script src=\"/.within.website/x/cmd/anubis/static/js/main.mjs\"></script>";
        let cases: [(&str, &str, Option<&str>, &str); 7] = [
            ("techaro.lol-anubis-cookie-verification=1", "<p>", Some("anubis"), "its cookie"),
            ("techaro.lol-anubis-auth-ab12=; Path=/", "", Some("anubis"), "one for each host"),
            ("__cf_chl_rc_i=1", "", Some("cloudflare"), "its cookie"),
            ("__cf_bm=x", "<p>", None, "set on every page"),
            ("", anubis, Some("anubis"), "its script"),
            ("", "window._cf_chl_opt={", Some("cloudflare"), "its script"),
            ("", "<script src=\"/cdn-cgi/scripts/x.js\">", None, "a script of ordinary pages"),
        ];
        for (cookie, body, expected, why) in cases {
            let fields = [(&b"Set-Cookie"[..], cookie.as_bytes())];
            assert_eq!(in_page(fields.into_iter(), body.as_bytes()), expected, "{why}");
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
