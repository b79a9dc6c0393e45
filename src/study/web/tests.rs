//! Laws of the synthetic web, checked with an HTML tokenizer and a URL parser from other projects.

mod compact;
mod scenarios;
pub(crate) mod shapes;

use super::wire::{self, Terms};
use super::*;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::time::Duration;

const PORTS: Ports = Ports { http: 8_080, https: 8_443 };

/// Returns a web in which everything happens often.
fn rich(seed: u64) -> Web {
    let settings = Settings {
        seed,
        hosts: 40,
        pages: 1_500,
        seeds: 2,
        odd_links: 0.6,
        noise: 0.6,
        page_bytes: Spread { median: 3_000.0, sigma: 1.0 },
        robots_part: 0.4,
        robots_deny: 0.1,
        not_found: 0.08,
        server_error: 0.05,
        redirect: 0.15,
        tls: 0.3,
        ..Settings::quickstart()
    };
    Web::new(settings, PORTS)
}

/// Collects references: (tag name, reference).
#[derive(Default)]
struct Sink(RefCell<Vec<(String, String)>>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else { return TokenSinkResult::Continue };
        if tag.kind == TagKind::EndTag {
            return TokenSinkResult::Continue;
        }
        let wanted = match &*tag.name {
            "a" | "area" | "base" => "href",
            "iframe" => "src",
            "script" => return TokenSinkResult::RawData(RawKind::ScriptData),
            "style" => return TokenSinkResult::RawData(RawKind::Rawtext),
            "title" | "textarea" => return TokenSinkResult::RawData(RawKind::Rcdata),
            _ => "",
        };
        for attribute in tag.attrs {
            if &*attribute.name.local == wanted {
                let found = (tag.name.to_string(), attribute.value.to_string());
                self.0.borrow_mut().push(found);
            }
        }
        TokenSinkResult::Continue
    }
}

/// Returns what a crawler finds on a page: references joined, fragments removed, scope `.test`.
fn references(url: &str, body: &[u8]) -> Vec<String> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(String::from_utf8_lossy(body).as_ref()));
    let tokenizer = Tokenizer::new(Sink::default(), Default::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut base = ::url::Url::parse(url).unwrap();
    let mut found = Vec::new();
    for (tag, reference) in tokenizer.sink.0.into_inner() {
        let Ok(mut joined) = base.join(&reference) else { continue };
        if tag == "base" {
            base = joined;
            continue;
        }
        joined.set_fragment(None);
        let test = joined.host_str().is_some_and(|name| name.ends_with(".test"));
        if test && joined.scheme().starts_with("http") {
            found.push(joined.into());
        }
    }
    found
}

/// Returns the host number and path of one of the web's own URLs.
fn split(web: &Web, url: &str) -> (u32, String) {
    let url = ::url::Url::parse(url).unwrap();
    let host = web
        .host_named(url.host_str().unwrap())
        .or_else(|| (0..web.hosts()).find(|host| web.name_of(*host) == url.host_str().unwrap()));
    let host = host.unwrap_or_else(|| panic!("no host of ours: {url}"));
    assert!(url.as_str().starts_with(&web.origin(host)), "{url}: scheme or port");
    (host, url[::url::Position::BeforePath..].to_owned())
}

fn all_pages(web: &Web) -> impl Iterator<Item = (u32, u32)> + '_ {
    (0..web.settings().hosts).flat_map(|host| (0..web.pages_of(host)).map(move |page| (host, page)))
}

fn page_place(host: u32, page: u32) -> Place {
    Place { host, resource: Resource::Page(page) }
}

#[test]
fn equal_seeds_give_equal_webs() {
    let (one, same, other) = (rich(3), rich(3), rich(4));
    let mut differing = 0;
    for (host, page) in all_pages(&one) {
        let place = page_place(host, page);
        assert_eq!(one.answer_at(place, Duration::ZERO), same.answer_at(place, Duration::ZERO));
        differing += u32::from(
            one.answer_at(place, Duration::ZERO) != other.answer_at(place, Duration::ZERO),
        );
    }
    assert!(differing > 1_400, "another seed changes almost every page, changed {differing}");
    let budget = Budget::default();
    assert_eq!(Manifest::new(&one, budget), Manifest::new(&same, budget));
}

/// A change here changes every recorded run: seeds no longer mean what they meant.
#[test]
fn the_web_of_a_seed_stays_what_it_is() {
    let web = rich(3);
    let mut sum = 0_u64;
    for (host, page) in all_pages(&web) {
        if let Answer::Reply(reply) = web.answer_at(page_place(host, page), Duration::ZERO) {
            for byte in reply.fields.bytes().chain(reply.body) {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    assert_eq!(format!("{sum:016x}"), GOLDEN);
}

const GOLDEN: &str = "e8eff4e77c0126cd";

#[test]
fn paths_and_places_map_one_to_one() {
    let web = rich(5);
    for (host, page) in all_pages(&web) {
        let place = page_place(host, page);
        let path = web.path(place);
        assert_eq!(web.place(host, &path), Some(place), "{path}");
    }
    let mut random = Draw::new(1, Purpose::Path, 0, 0);
    let mut changed = 0;
    for _ in 0..20_000 {
        let host = random.below(web.hosts());
        let page = random.below(web.pages_of(host).max(1));
        let mut path = web.path(page_place(host.min(39), page)).into_bytes();
        let at = random.below(u32::try_from(path.len()).unwrap()) as usize;
        path[at] = *random.pick(b"p0123/%?.+-a");
        let path = String::from_utf8(path).unwrap();
        if let Some(place) = web.place(host, &path) {
            assert_eq!(web.path(place), path);
            changed += 1;
        }
    }
    assert!(changed > 100, "some changes hit another page: {changed}");
}

/// Any crawler can read the paths, each of which is one page; replies keep the connection
/// explicitly.
#[test]
fn an_easy_web_is_easy() {
    let web = Web::new(Settings { easy: true, ..Settings::bench(3) }, PORTS);
    for (host, page) in all_pages(&web) {
        let path = web.path(page_place(host, page));
        assert!(path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.".contains(&byte)));
        assert_eq!(web.place(host, &path), Some(page_place(host, page)), "{path}");
    }
    let reply = web.page_reply(1, 3, Duration::ZERO);
    let wire = wire::encode(&reply, &web.host(1), Terms::default());
    assert_eq!(&wire.bytes[wire.fields_at..wire.fields_end], b"Connection: keep-alive\r\n");
    assert_eq!(&wire.bytes[wire.fields_end..][..2], b"\r\n");
    let old = wire::encode(&reply, &web.host(1), Terms { http10: true, ..Terms::default() });
    assert_eq!(old.fields_at, old.fields_end);
}

#[test]
fn names_are_found_in_any_case() {
    let web = Web::new(Settings { hosts_per_domain: 3, ..Settings::hostile() }, PORTS);
    for number in 0..web.hosts() {
        let name = web.host(number).name;
        let found = web.host_named(&name.to_uppercase());
        assert_eq!(found, Some(number), "{name}");
        assert_eq!(web.host_named(&format!("{name}.")), Some(number));
    }
    for wrong in ["h1.d0000.test", "h0001.test", "h0010.d0003.test", "h.test", "", ".", "test"] {
        assert_eq!(web.host_named(wrong), None, "{wrong}");
    }
}

#[test]
fn hosts_have_the_domains_that_they_are_given() {
    let domains = Some(vec![7, 12_345, 7].into());
    let web =
        Web::new(Settings { hosts: 4, hosts_per_domain: 2, domains, ..Settings::default() }, PORTS);
    let names = ["h0000.d0007.test", "h0001.d12345.test", "h0002.d0007.test", "h0003.test"];
    for (number, name) in (0..4).zip(names) {
        assert_eq!(web.host(number).name, name);
        assert_eq!(web.host_named(name), Some(number));
    }
    assert_eq!(web.host_named("h0001.d0007.test"), None);
}

/// The references in each body are the page's links, no more and no fewer, in order; with and
/// without prose.
#[test]
fn bodies_hold_exactly_their_links() {
    let web = rich(6);
    for (host, page) in all_pages(&web) {
        let place = page_place(host, page);
        let Answer::Reply(reply) = web.answer_at(place, Duration::ZERO) else {
            panic!("pages reply")
        };
        if !reply.content_type.starts_with("text/html") || reply.status != 200 {
            continue;
        }
        let url = web.url(place);
        let expected: Vec<String> = web.links(place).iter().map(|link| web.url(link.to)).collect();
        assert_eq!(references(&url, &reply.body), expected, "{url}");
        if web.kind(host, page) == Kind::Html {
            let (compact, whole_bytes) = web.compact_body(host, page, Duration::ZERO);
            assert_eq!(whole_bytes, reply.body.len(), "{url}: what prose was left out");
            assert_eq!(references(&url, compact.as_bytes()), expected, "compact {url}");
            let drawn = web.page_bytes(host, page);
            assert!(reply.body.len() >= drawn, "{url} is shorter than drawn");
            assert!(
                compact.len() <= reply.body.len() && compact.len() < 400 + expected.len() * 170
            );
        }
    }
}

#[test]
fn bodies_have_the_length_drawn() {
    let web = Web::new(Settings::bench(2), PORTS);
    for (host, page) in all_pages(&web) {
        assert_eq!(web.page_reply(host, page, Duration::ZERO).body.len(), 16_700);
    }
}

/// Evaluates the rules of this web's robots.txt files in a naive way: prefixes, `*.bak$`, longest
/// wins.
fn allowed(rules: &str, path: &str) -> bool {
    let ours = rules.rsplit("User-agent: *").next().unwrap();
    let mut best = (0, true);
    for line in ours.lines() {
        let Some((verb, rule)) = line.split_once(": ") else { continue };
        let fits = if rule == "/*.bak$" { path.ends_with(".bak") } else { path.starts_with(rule) };
        if fits && (verb == "Allow" || verb == "Disallow") && rule.len() >= best.0 {
            best = (rule.len(), verb == "Allow");
        }
    }
    best.1
}

/// The manifest agrees with a crawl of the served HTML by parsers of other projects.
#[test]
fn the_manifest_agrees_with_a_crawl_of_the_pages() {
    let web = rich(7);
    let behaving = |host| web.hostile_of(host).is_none();
    let mut urls: Vec<String> = web.seeds();
    urls.retain(|url| (0..40).any(|host| url.starts_with(&web.origin(host))));
    let mut seen: BTreeSet<String> = urls.iter().cloned().collect();
    let mut outcomes = BTreeMap::new();
    while let Some(url) = urls.pop() {
        let (host, path) = split(&web, &url);
        let rules = web.robots_reply(host);
        if rules.status == 200 && !allowed(&String::from_utf8(rules.body).unwrap(), &path) {
            outcomes.insert(url, Outcome::RobotsDenied);
            continue;
        }
        let Answer::Reply(reply) = web.answer(web.place(host, &path), Duration::ZERO) else {
            panic!("a play at {url}")
        };
        let (outcome, next) = match reply.status {
            200 if reply.content_type.starts_with("text/html") => {
                (Outcome::Ok, references(&url, &reply.body))
            }
            200 => (Outcome::Ok, Vec::new()),
            300..400 => {
                let location = reply.fields.strip_prefix("Location: ").unwrap().trim();
                let next = ::url::Url::parse(&url).unwrap().join(location).unwrap();
                (Outcome::Redirect, vec![next.into()])
            }
            _ => (Outcome::HttpError, Vec::new()),
        };
        outcomes.insert(url, outcome);
        urls.extend(next.into_iter().filter(|url| seen.insert(url.clone())));
    }
    let manifest = Manifest::new(&web, Budget::default());
    let pages = manifest
        .entries
        .iter()
        .filter(|entry| behaving(entry.place.host) && entry.place.resource != Resource::Robots);
    let expected: BTreeMap<String, Outcome> =
        pages.map(|entry| (web.url(entry.place), entry.outcomes[0])).collect();
    assert_eq!(outcomes, expected);
    assert!(outcomes.keys().all(|url| !url.contains("decoy")));
    for outcome in [Outcome::Ok, Outcome::Redirect, Outcome::HttpError, Outcome::RobotsDenied] {
        assert!(outcomes.values().filter(|of| **of == outcome).count() > 20, "{outcome:?}");
    }
}

#[test]
fn every_page_is_reachable_unless_its_host_is_closed() {
    for seed in 0..20 {
        let web = rich(seed);
        let manifest = Manifest::new(&web, Budget::default());
        let known: BTreeSet<Place> = manifest.entries.iter().map(|entry| entry.place).collect();
        assert_eq!(known.len(), manifest.entries.len(), "no URL twice");
        for (host, page) in all_pages(&web) {
            let open = web.robots_of(host) != Robots::Deny;
            // Besides its root, only a page of a disallowed host that others link to at random is
            // known.
            assert!(!open && page > 0 || known.contains(&page_place(host, page)), "{host} {page}");
        }
    }
}

#[test]
fn redirects_end_within_two_hops() {
    let web = rich(8);
    let mut chains = [0; 3];
    for (host, page) in all_pages(&web) {
        let (mut place, mut hops) = (page_place(host, page), 0);
        while let Resource::Page(page) = place.resource
            && web.kind(place.host, page) == Kind::Redirect
        {
            place = web.redirect_of(place.host, page);
            hops += 1;
            assert!(hops <= 2, "{}", web.url(page_place(host, page)));
        }
        chains[hops] += 1;
    }
    assert!(chains.iter().all(|count| *count > 2), "{chains:?}");
}

#[test]
fn the_manifest_lists_every_hostile_host() {
    let web = Web::new(Settings::hostile(), PORTS);
    let manifest = Manifest::new(&web, Budget::default());
    let find = |url: &str| {
        let fits = |entry: &&Entry| web.url(entry.place) == url;
        manifest.entries.iter().find(fits).unwrap_or_else(|| panic!("{url} isn't listed"))
    };
    let cases = [
        ("http://endless-head.test:8080/", Outcome::HeadTooLarge, (1, 3)),
        ("http://early-close.test:8080/", Outcome::ClosedEarly, (1, 4)),
        ("http://mute.test:8080/", Outcome::RobotsUnreachable, (0, 0)),
        ("http://mute.test:8080/robots.txt", Outcome::HeadTimedOut, (0, 0)),
        ("http://nx.test:8080/", Outcome::DnsNoSuchName, (0, 0)),
        ("https://expired.test:8443/", Outcome::CertificateExpired, (0, 0)),
        ("http://retry-after.test:8080/twice", Outcome::Ok, (3, 3)),
        ("http://redirect-loop.test:8080/on/10", Outcome::Redirect, (1, 1)),
        ("http://redirect-loop.test:8080/on/11", Outcome::RedirectLimit, (0, 0)),
        ("http://mid-pipeline-close.test:8080/p23", Outcome::Ok, (1, 1)),
        ("http://robots-huge.test:8080/closed", Outcome::RobotsDenied, (0, 0)),
        ("http://robots-error.test:8080/", Outcome::RobotsUnreachable, (0, 0)),
    ];
    for (url, outcome, (min, max)) in cases {
        let entry = find(url);
        assert_eq!(entry.outcomes[0], outcome, "{url}");
        assert_eq!(entry.requests, Range { min, max }, "{url}");
    }
    let absent = [
        ("http://redirect-loop.test:8080/on/12", "beyond what a redirect too many names"),
        ("http://nx.test:8080/robots.txt", "there is nobody to ask for it"),
        ("https://expired.test:8443/robots.txt", "there is nobody to be asked"),
    ];
    for (url, why) in absent {
        assert!(manifest.entries.iter().all(|entry| web.url(entry.place) != url), "{url}: {why}");
    }
    let hosts: BTreeSet<u32> = manifest.entries.iter().map(|entry| entry.place.host).collect();
    assert_eq!(hosts.len(), web.hosts() as usize, "every host is in it");
    let twice = Manifest::new(&web, Budget { tries: 2, ..Budget::default() });
    let given_up =
        twice.entries.iter().find(|entry| web.url(entry.place).ends_with("after.test:8080/twice"));
    assert_eq!(given_up.unwrap().outcomes, [Outcome::HttpError]);
    let lawless = Manifest::new(&web, Budget { robots: false, ..Budget::default() });
    for (url, outcome, requests) in [
        ("http://mute.test:8080/", Outcome::HeadTimedOut, 0),
        ("http://robots-error.test:8080/", Outcome::Ok, 1),
        ("http://robots-huge.test:8080/closed", Outcome::Ok, 1),
    ] {
        let entry = lawless.entries.iter().find(|entry| web.url(entry.place) == url).unwrap();
        let expected = Range { min: requests, max: requests };
        assert_eq!((entry.outcomes, entry.requests), (&[outcome][..], expected), "{url}");
    }
}

/// A page with links only from other hosts is never hidden behind `nofollow`: its own host is
/// disallowed.
#[test]
fn links_to_pages_of_closed_hosts_are_plain() {
    let web = rich(3);
    let mut count = 0;
    for (host, page) in all_pages(&web) {
        for link in web.links(page_place(host, page)) {
            let closed = web.host(link.to.host).robots == Robots::Deny;
            if closed && link.to.host != host {
                assert!(link.sure, "{}", web.url(link.to));
                count += 1;
            }
        }
    }
    assert!(count > 10, "{count} such links");
}

#[test]
fn manifests_are_json_lines() {
    let web = Web::new(Settings::hostile(), PORTS);
    let manifest = Manifest::new(&web, Budget::default());
    let mut out = Vec::new();
    manifest.write(&web, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut lines =
        text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let head = lines.next().unwrap();
    assert_eq!(head["urls"].as_u64().unwrap() as usize, manifest.entries.len());
    for (line, entry) in lines.by_ref().zip(&manifest.entries) {
        assert_eq!(line["url"].as_str().unwrap(), web.url(entry.place));
        assert_eq!(line["outcomes"][0].as_str().unwrap(), entry.outcomes[0].name());
        assert_eq!(line["requests"][1].as_u64().unwrap(), u64::from(entry.requests.max));
    }
    assert!(lines.next().is_none());
}

#[test]
fn presets_are_what_they_say() {
    let count = |web: &Web| (0..web.settings().hosts).map(|host| web.pages_of(host)).sum::<u32>();
    let quick = Web::new(Settings::quickstart(), PORTS);
    assert_eq!((quick.settings().hosts, count(&quick)), (60, 3_000));
    assert!(quick.settings().hostile.iter().all(|kind| kind.is_quick()));
    let bench = Web::new(Settings::bench(64), PORTS);
    assert_eq!((count(&bench), bench.pages_of(0), bench.pages_of(63)), (19_200, 300, 300));
    let mean = all_pages(&bench).map(|(host, page)| bench.links(page_place(host, page)).len());
    assert_eq!(mean.sum::<usize>(), 19_200 * 25);
    let hostile = Web::new(Settings::hostile(), PORTS);
    assert_eq!(hostile.hosts() as usize, 10 + Hostile::ALL.len());
    let names: BTreeSet<&str> = Hostile::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), Hostile::ALL.len());
    for kind in Hostile::ALL {
        assert_eq!(Hostile::named(kind.name()), Some(kind));
        assert!(kind.spec().rows.iter().any(|row| row.path == "/"), "{} has a root", kind.name());
    }
}

/// Shares of hosts are drawn as set: within four standard deviations for 4,000 hosts.
#[test]
fn shares_are_kept() {
    let settings = Settings { hosts: 4_000, pages: 4_000, ..Settings::quickstart() };
    let web = Web::new(settings, PORTS);
    let hosts: Vec<Host> = (0..4_000).map(|number| web.host(number)).collect();
    let share = |fits: &dyn Fn(&Host) -> bool| {
        hosts.iter().filter(|host| fits(host)).count() as f64 / 4_000.0
    };
    let cases: [(&str, f64, f64); 6] = [
        ("http10", share(&|host| host.http10), 0.1),
        ("tls", share(&|host| host.scheme == Scheme::Https), 0.15),
        ("gzip", share(&|host| host.coding == Coding::Gzip), 0.4),
        ("deny", share(&|host| host.robots == Robots::Deny), 0.04),
        ("one request", share(&|host| !host.http10 && host.requests_max == 1), 0.24 * 0.9),
        ("hundred", share(&|host| host.requests_max == 100), 0.46 * 0.9),
    ];
    for (what, found, wanted) in cases {
        let spread = 4.0 * (wanted * (1.0 - wanted) / 4_000.0).sqrt();
        assert!((found - wanted).abs() < spread, "{what}: {found}, set to {wanted}");
    }
}

/// Decodes chunks in a naive way.
pub(crate) fn dechunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n").unwrap();
        let line = std::str::from_utf8(&bytes[..end]).unwrap();
        let size = usize::from_str_radix(line.split(';').next().unwrap(), 16).unwrap();
        bytes = &bytes[end + 2..];
        if size == 0 {
            assert!(bytes.ends_with(b"\r\n\r\n"));
            return body;
        }
        body.extend(&bytes[..size]);
        assert_eq!(&bytes[size..size + 2], b"\r\n");
        bytes = &bytes[size + 2..];
    }
}

pub(crate) fn decode(coding: Coding, bytes: &[u8]) -> Box<dyn Read + '_> {
    match coding {
        Coding::Identity => Box::new(bytes),
        Coding::Gzip => Box::new(flate2::read::GzDecoder::new(bytes)),
        Coding::Deflate => Box::new(flate2::read::ZlibDecoder::new(bytes)),
        Coding::RawDeflate => Box::new(flate2::read::DeflateDecoder::new(bytes)),
        Coding::Brotli => Box::new(brotli_decompressor::Decompressor::new(bytes, 4_096)),
        Coding::Zstd => Box::new(zstd::stream::Decoder::new(bytes).unwrap()),
    }
}

pub(crate) const CODINGS: [Coding; 6] = [
    Coding::Identity,
    Coding::Gzip,
    Coding::Deflate,
    Coding::RawDeflate,
    Coding::Brotli,
    Coding::Zstd,
];

#[test]
fn framed_and_coded_replies_hold_the_body() {
    let web = Web::new(Settings::bench(2), PORTS);
    let reply = web.page_reply(1, 3, Duration::ZERO);
    for coding in CODINGS {
        for (chunked, http10) in [(false, false), (true, false), (true, true)] {
            let host = Host { coding, chunked, ..web.host(1) };
            let terms = Terms { coded: true, http10, ..Terms::default() };
            let wire = wire::encode(&reply, &host, terms);
            let text = String::from_utf8_lossy(&wire.bytes);
            let head = text.split("\r\n\r\n").next().unwrap().to_owned();
            let mut body = wire.bytes[head.len() + 4..].to_vec();
            assert_eq!(wire.fields_at, wire.fields_end);
            assert_eq!(&wire.bytes[wire.fields_at..wire.fields_at + 2], b"\r\n");
            if chunked && !http10 {
                assert!(head.contains("Transfer-Encoding: chunked") && !head.contains("Length"));
                body = dechunk(&body);
            } else {
                assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
            }
            let named = head.contains(&format!("Content-Encoding: {}", coding.name()));
            assert_eq!(named, coding != Coding::Identity);
            let mut plain = Vec::new();
            decode(coding, &body).read_to_end(&mut plain).unwrap();
            assert_eq!(plain, reply.body, "{coding:?}");
            let only_head = wire::encode(&reply, &host, Terms { head: true, ..terms });
            assert_eq!(only_head.bytes, wire.bytes[..head.len() + 4]);
        }
    }
}

#[test]
fn bombs_are_small_and_grow() {
    for (coding, most) in [
        (Coding::Gzip, 1 << 18),
        (Coding::RawDeflate, 1 << 18),
        (Coding::Brotli, 1 << 10),
        (Coding::Zstd, 1 << 14),
    ] {
        let bomb = wire::bomb(coding);
        assert!(bomb.len() < most, "{coding:?}: {}", bomb.len());
        let mut reader = decode(coding, &bomb);
        let grown = std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
        assert_eq!(grown, wire::BOMB_BYTES as u64, "{coding:?}");
    }
}
