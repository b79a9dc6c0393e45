//! Replies that keep crawlers out, as the products that send them do: one for each mark by which
//! `http::challenge` knows them. The texts are made up but for the marks.

/// A reply in place of a page.
#[derive(Clone, Copy, Debug)]
pub struct Wall {
    /// The name of the product.
    pub product: &'static str,
    /// Its status.
    pub status: u16,
    /// Header fields, each with its line end.
    pub fields: &'static str,
    /// What the page has beside its title and a text.
    mark: &'static str,
}

const fn field(product: &'static str, status: u16, fields: &'static str) -> Wall {
    Wall { product, status, fields, mark: "" }
}

const fn page(product: &'static str, status: u16, mark: &'static str) -> Wall {
    Wall { product, status, fields: "", mark }
}

/// All of them.
pub const WALLS: [Wall; 41] = [
    field("cloudflare", 403, "CF-Mitigated: challenge\r\nServer: cloudflare\r\n"),
    field("aws-waf", 202, "x-amzn-waf-action: challenge\r\n"),
    field("aws-waf", 405, "x-amzn-waf-action: captcha\r\n"),
    field("vercel", 429, "X-Vercel-Mitigated: challenge\r\n"),
    field("siteground", 202, "SG-Captcha: challenge\r\n"),
    field("kasada", 429, "x-kpsdk-ct: 0a1b2c\r\n"),
    field("datadome", 403, "X-DD-B: 1\r\nX-DataDome: protected\r\n"),
    field("anubis", 200, "Set-Cookie: techaro.lol-anubis-cookie-verification=7; Path=/\r\n"),
    field("anubis", 200, "Set-Cookie: within.website-x-cmd-anubis-auth=; Path=/; Max-Age=0\r\n"),
    field("cloudflare", 503, "Set-Cookie: __cf_chl_rc_i=1; Path=/\r\n"),
    page(
        "anubis",
        200,
        "<script src=\"/.within.website/x/cmd/anubis/main.mjs\"></script><a href=/>?</a>",
    ),
    page(
        "anubis",
        200,
        "<link rel=stylesheet href=\"/.within.website/x/xess/xess.css\"><a href=/>?</a>",
    ),
    page(
        "cloudflare",
        403,
        "<script src=\"/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1\"></script>",
    ),
    page("cloudflare", 503, "<form action=\"/cdn-cgi/l/chk_jschl\"></form>"),
    page("cloudflare", 403, "<script>window._cf_chl_opt={cType:'managed'}</script>"),
    page(
        "cloudflare",
        200,
        "<script src=//challenges.cloudflare.com/turnstile/a.js></script><p class=cf-turnstile>",
    ),
    page(
        "aws-waf",
        202,
        "<script src=\"https://a1.edge.sdk.awswaf.com/a1/challenge.js\"></script>",
    ),
    page("aws-waf", 405, "<script>window.awsWafCookieDomainList = [];</script>"),
    page(
        "imperva",
        403,
        "<iframe src=\"/_Incapsula_Resource?SWUDNSAI=9\">Request unsuccessful</iframe>",
    ),
    page("datadome", 403, "<script src=\"https://geo.captcha-delivery.com/c.js\"></script>"),
    page("datadome", 403, "<script src=\"https://ct.captcha-delivery.com/c.js\"></script>"),
    page("human", 403, "<script src=\"/a1/px/captcha/?b=1\"></script>"),
    page("human", 403, "<script>window._pxCaptcha={}</script>"),
    page("human", 403, "<div id=\"px-captcha\"></div>"),
    page("human", 403, "<div id='px-captcha'></div>"),
    page("human", 403, "<script src=\"https://captcha.px-cdn.net/PX1/captcha.js\"></script>"),
    page("human", 403, "<script src=\"https://captcha.px-cloud.net/PX1/captcha.js\"></script>"),
    page(
        "ddos-guard",
        403,
        "<script src=\"/.well-known/ddos-guard/js-challenge/index.js\"></script>",
    ),
    page(
        "vercel",
        429,
        "<script src=\"/.well-known/vercel/security/static/challenge.v2.min.js\"></script>",
    ),
    page("sucuri", 200, "<script>sucuri_cloudproxy_js='';S='b'</script>"),
    page(
        "go-away",
        200,
        "<link href=\"/.go-away/assets/style.css\" rel=stylesheet><a href=/>?</a>",
    ),
    page(
        "siteground",
        202,
        "<meta http-equiv=refresh content=\"0;/.well-known/sgcaptcha/?r=%2F\">",
    ),
    page("akamai", 428, "<div id=\"sec-if-cpt-container\"></div>"),
    page("kasada", 429, "<script>window.KPSDK={};KPSDK.now=1</script>"),
    page(
        "kasada",
        429,
        "<script src=\"/14/2d206a39-8ed7-437e-a3be-862e0f06eea3/ips.js?a=1\"></script>",
    ),
    page("kasada", 429, "<script src=\"/a.js?x-kpsdk-im=1\"></script>"),
    page("fastly", 200, "<script src=\"/_fs-ch-1T1wmsGaOgGaSxcX/script.js\"></script>"),
    page("bunny", 403, "<script src=\"/.bunny-shield/assets/shield-challenge.js\"></script>"),
    page(
        "cloudflare",
        403,
        "Just a moment...<script src=\"//challenges.cloudflare.com/turnstile/a.js\"></script>",
    ),
    page(
        "cloudflare",
        200,
        "<script src=//challenges.cloudflare.com/turnstile/a></script><b onclick=turnstile.render>",
    ),
    page("script-only", 200, "<script>go()</script><noscript>Enable JavaScript</noscript>"),
];

impl Wall {
    /// Returns the page.
    pub fn body(&self) -> String {
        let text = if self.product == "script-only" { "" } else { "<p>Checking your browser.</p>" };
        format!("<!DOCTYPE html><title>One moment</title>{}{text}", self.mark)
    }
}
