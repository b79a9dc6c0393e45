//! The inputs of the stations: pages, references, keys, heads, the same in every run.

use std::time::Duration;
use sted::links::{Found, Progress, Scanner, Settings};
use sted::study::web::{self, Answer, Coding, Place, Ports, Resource, Web, wire};
use sted::url::Url;

/// A page and its URL.
pub(super) struct Page {
    pub(super) url: Url,
    pub(super) body: Vec<u8>,
}

impl Page {
    /// Returns its links.
    pub(super) fn links(&self) -> Found {
        let mut scanner = Scanner::new(Settings::default());
        let mut found = Found::new();
        scanner.begin(encoding_rs::UTF_8);
        while scanner.scan(&self.body, usize::MAX, &mut found) == Progress::More {}
        found
    }
}

/// Returns pages of the lab's `bench` web, 16.7 KB and 25 links each on average.
pub(super) fn lab_pages() -> Vec<Page> {
    let web = Web::new(web::Settings::bench(64), Ports { http: 8_080, https: 8_443 });
    (0..48).map(|number| page(&web, number, 5 * number)).collect()
}

/// Returns pages of the web of 2025 of average length, 242 KB.
pub(super) fn large_pages() -> Vec<Page> {
    let web = Web::new(web::Settings::scenario_2025(), Ports::default());
    let places = (0..2_000).map(|host| (host, 0));
    let fitting = places.map(|(host, number)| (host, number, web.page_bytes(host, number)));
    let fitting = fitting.filter(|(.., bytes)| (230_000..255_000).contains(bytes));
    fitting.take(4).map(|(host, number, _)| page(&web, host, number)).collect()
}

/// Returns these pages as a server codes them.
pub(super) fn coded_pages() -> Vec<Vec<u8>> {
    large_pages().iter().map(|page| wire::compress(Coding::Gzip, &page.body)).collect()
}

fn page(web: &Web, host: u32, number: u32) -> Page {
    let place = Place { host, resource: Resource::Page(number) };
    let Answer::Reply(reply) = web.answer_at(place, Duration::ZERO) else {
        unreachable!("the host behaves")
    };
    Page { url: Url::parse(&web.url(place)).expect("the lab's URLs"), body: reply.body }
}

/// Returns a page like those of documentation generators, 90 KB of dense markup: trees of relative
/// links, references in running text, anchors at every heading, code in spans.
pub(super) fn docs_page() -> Page {
    let mut body = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\" />\
         <title>Built-in Functions</title>\n\
         <link rel=\"stylesheet\" type=\"text/css\" href=\"../_static/pydoctheme.css?v=23252803\" />\n\
         <link rel=\"next\" title=\"Constants\" href=\"constants.html\" />\n\
         <link rel=\"canonical\" href=\"https://docs.example.org/3/library/functions.html\" />\n\
         </head><body>\n",
    );
    let mut random = Random(3);
    let words = ["open", "range", "iter", "compile", "property", "type", "super", "memoryview"];
    for part in 0..60 {
        let word = words[random.below(8) as usize];
        body.push_str(&format!(
            "<dl class=\"py function\">\n<dt class=\"sig sig-object py\" id=\"{word}{part}\">\n\
             <span class=\"sig-name descname\"><span class=\"pre\">{word}</span></span>\
             <span class=\"sig-paren\">(</span><em class=\"sig-param\"><span class=\"n\">\
             <span class=\"pre\">object</span></span></em><span class=\"sig-paren\">)</span>\
             <a class=\"headerlink\" href=\"#{word}{part}\" title=\"Link to this definition\">\u{b6}</a>\
             </dt>\n<dd>"
        ));
        for _ in 0..3 {
            let word = words[random.below(8) as usize];
            let (folder, page) = match random.below(4) {
                0 => ("", "stdtypes"),
                1 => ("../reference/", "datamodel"),
                2 => ("../tutorial/", "classes"),
                _ => ("../howto/", "descriptor"),
            };
            body.push_str(&format!(
                "<p>Return what <a class=\"reference internal\" \
                 href=\"{folder}{page}.html#{word}\" title=\"{word}\"><code class=\"xref py \
                 py-func docutils literal notranslate\"><span class=\"pre\">{word}()</span></code>\
                 </a> does, or <code class=\"docutils literal notranslate\"><span class=\"pre\">\
                 None</span></code>. The order of what is given is kept; see the section on it \
                 for how equal ones compare.</p>\n"
            ));
        }
        body.push_str(
            "<div class=\"highlight-python3 notranslate\"><div class=\"highlight\"><pre><span>\
             </span><span class=\"gp\">&gt;&gt;&gt; </span><span class=\"n\">x</span> \
             <span class=\"o\">=</span> <span class=\"mi\">42</span>\n<span class=\"k\">for</span> \
             <span class=\"n\">i</span> <span class=\"ow\">in</span> <span class=\"nb\">range</span>\
             <span class=\"p\">(</span><span class=\"n\">x</span><span class=\"p\">):</span>\n\
             </pre></div></div>\n</dd></dl>\n",
        );
        if part % 4 == 0 {
            let issue = random.below(90_000);
            body.push_str(&format!(
                "<li><a href=\"/3/whatsnew/3.{part}.html\">What's new</a>, \
                 <a class=\"reference external\" href=\"https://bugs.example.org/issue?@action=\
                 redirect&amp;bpo={issue}\">bpo-{issue}</a></li>\n"
            ));
        }
    }
    body.push_str("</body></html>\n");
    let url = Url::parse("https://docs.example.org/3/library/functions.html").expect("a URL");
    Page { url, body: body.into_bytes() }
}

/// Returns a head as nginx writes it.
pub(super) fn nginx_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\nDate: Sat, 21 Nov 2026 10:00:00 GMT\r\n\
      Content-Type: text/html; charset=utf-8\r\nContent-Length: 0\r\n\
      Last-Modified: Mon, 02 Nov 2026 08:30:12 GMT\r\nConnection: keep-alive\r\n\
      Vary: Accept-Encoding\r\nETag: \"6726e4d4-4153\"\r\n\
      Strict-Transport-Security: max-age=31536000\r\nAccept-Ranges: bytes\r\n\r\n"
        .to_vec()
}

/// Returns a reply in chunks as servers cut them, and their number: most have the size of a buffer,
/// some come from a template.
pub(super) fn chunked_reply() -> (Vec<u8>, usize) {
    let mut reply = b"HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\n\
                      Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
        .to_vec();
    let (mut random, chunks) = (Random(5), 100);
    for _ in 0..chunks {
        let bytes = if random.below(3) == 0 { 1 + random.below(900) } else { 4_096 };
        reply.extend_from_slice(format!("{bytes:x}\r\n").as_bytes());
        reply.resize(reply.len() + bytes as usize, b'x');
        reply.extend_from_slice(b"\r\n");
    }
    reply.extend_from_slice(b"0\r\n\r\n");
    (reply, chunks)
}

/// Returns captures of the lab's pages: URL, request, response, length of its head.
pub(super) fn captures() -> Vec<(Url, Vec<u8>, Vec<u8>, usize)> {
    let capture = |page: Page| {
        let (host, target) = (page.url.view().authority(), page.url.view().target());
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: sted/0.1 (+mailto:a@sted.dev)\r\n\
             Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n\
             Accept-Encoding: gzip, deflate, br, zstd\r\n\r\n"
        );
        let mut response = format!(
            "HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\nContent-Type: text/html; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: keep-alive\r\n\r\n",
            page.body.len()
        )
        .into_bytes();
        let head_bytes = response.len();
        response.extend_from_slice(&page.body);
        (page.url, request.into_bytes(), response, head_bytes)
    };
    lab_pages().into_iter().take(12).map(capture).collect()
}

/// Returns sixty rules like those of large sites: folders, some with wildcards.
pub(super) fn robots_txt() -> String {
    let mut text = String::from("User-agent: *\nCrawl-delay: 1\n");
    for number in 0..20 {
        text.push_str(&format!("Disallow: /private{number}/\nAllow: /private{number}/open/\n"));
        text.push_str(&format!("Disallow: /*/print{number}$\n"));
    }
    text
}

/// Returns targets that match those rules.
pub(super) fn closed_targets() -> impl Iterator<Item = String> {
    let target = |number| match number % 3 {
        0 => format!("/private{number}/a/b.html"),
        1 => format!("/private{number}/open/c%20d.html?x=1"),
        _ => format!("/s1/print{number}"),
    };
    (0..24).map(target)
}

/// Keys of which some are new, the others drawn from the latest ones.
pub(super) struct Keys {
    random: Random,
    /// New keys so far, by number.
    newest: u64,
    window: u64,
    new_of_hundred: u64,
}

impl Keys {
    pub(super) fn new(window: u64, new_of_hundred: u64) -> Self {
        Self { random: Random(7), newest: window, window, new_of_hundred }
    }

    pub(super) fn next(&mut self) -> u64 {
        if self.random.below(100) < self.new_of_hundred {
            return self.new_key();
        }
        mix(self.newest - self.random.below(self.window))
    }

    pub(super) fn new_key(&mut self) -> u64 {
        self.newest += 1;
        mix(self.newest)
    }
}

/// Draws.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mix(self.0)) * u128::from(limit)) >> 64) as u64
    }
}

/// One number to another, uniform to the eye; no two to the same.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
