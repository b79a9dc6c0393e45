//! The cost of the ratings: nanoseconds for a link of a page and for a look-up, by source.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sted::ground::random::Random;
use sted::rating::{Found, Rating, Settings, Site, Source, Table};
use sted::url::{Batch, Limits, Url, canon::Joiner};

/// Links of a page; three quarters of them stay on its server.
const LINKS: usize = 25;

/// Runs the measurement itself, too briefly to measure anything.
#[test]
fn costs_can_be_measured() {
    let table = measure(20, 50);
    assert_eq!(table.lines().count(), 11, "{table}");
}

/// `cargo test --release --test tests costs_of_ratings -- --ignored --nocapture`
#[test]
#[ignore = "measures: wants a release build and a quiet machine"]
fn costs_of_ratings() {
    println!("{}", measure(40_000, 200_000));
}

/// Returns a line of costs for each source, for `pages` pages of a web of `hosts` hosts.
fn measure(pages: u64, hosts: u64) -> String {
    let mut random = Random(0x5eed_0610);
    let mut below = |bound: u64| random.below(bound);
    let web: Vec<(Url, Batch)> = (0..pages).map(|_| page(hosts, &mut below)).collect();
    let (table, mut report) = (listed(&web), String::new());
    writeln!(report, "table: {:.0} ns a line", table.1).expect("a string takes all");
    let cases = [
        (Source::Uniform, 1_000, Site::Server),
        (Source::Zipf, 1_000, Site::Server),
        (Source::Zipf, 800, Site::Server),
        (Source::Table, 1_000, Site::Server),
        (Source::Inlinks, 1_000, Site::Server),
        (Source::Inlinks, 1_000, Site::Domain),
        (Source::Opic, 1_000, Site::Server),
        (Source::Opic, 1_000, Site::Domain),
        (Source::Parent, 1_000, Site::Server),
        (Source::Depth, 1_000, Site::Server),
    ];
    for (source, zipf_exponent_milli, site) in cases {
        let table = Some(table.0.clone());
        let mut rating = Rating::new(Settings {
            source,
            zipf_exponent_milli,
            site,
            table,
            ..Settings::default()
        });
        // Two rounds: in the first the sites are new, the second measures the steady state.
        let [_, counted] = [(); 2]
            .map(|()| ns_a_link(&web, |page, links| rating.page(page.view(), &mut links.iter())));
        let mut sum = 0_u64;
        let asked = ns_a_link(&web, |_, links| {
            sum += links
                .iter()
                .map(|link| rating.of(link, Found::default()).millionths())
                .sum::<u64>();
        });
        let (name, sites) = (source.name(), rating.sites());
        writeln!(
            report,
            "{name} {zipf_exponent_milli} by {}: {counted:.1} ns a link, {asked:.1} ns a look-up; \
             {sites} sites, {} forgotten; sum {}",
            site.name(),
            rating.evicted(),
            black_box(sum),
        )
        .expect("a string takes all");
    }
    report
}

/// Returns a page of some host, and its links.
fn page(hosts: u64, below: &mut impl FnMut(u64) -> u64) -> (Url, Batch) {
    let name = |host: u64| format!("https://www{}.domain-{}.test", host % 3, host / 3);
    let page = Url::parse(&format!("{}/a/page.html", name(below(hosts)))).expect("a URL");
    let mut links = Batch::new();
    let mut joiner = Joiner::new(page.view());
    for _ in 0..LINKS {
        let path = format!("/section-{}/article-{}.html", below(20), below(1_000));
        let other = if below(4) == 0 { name(below(hosts)) } else { String::new() };
        let joined = joiner.join((other + &path).as_bytes(), encoding_rs::UTF_8, &mut links);
        joined.expect("a URL");
    }
    (page, links)
}

/// Returns a table of all linked URLs, and the nanoseconds per line.
fn listed(web: &[(Url, Batch)]) -> (Arc<Table>, f64) {
    let mut text = String::new();
    for link in web.iter().flat_map(|(_, links)| links.iter()) {
        writeln!(text, "{link} 0.25").expect("a string takes all");
    }
    let start = Instant::now();
    let table = Table::parse(text.as_bytes(), [1; 16], Limits::default()).expect("no mistake");
    let spent = start.elapsed().as_nanos() as f64;
    (Arc::new(table), spent / (web.len() * LINKS) as f64)
}

/// Measures the time with the page's links in the processor's caches, where joining leaves them. It
/// includes two clock reads per page: some 2 ns a link.
fn ns_a_link(web: &[(Url, Batch)], mut visit: impl FnMut(&Url, &Batch)) -> f64 {
    let mut spent = Duration::ZERO;
    for (page, links) in web {
        black_box(links.iter().map(|link| link.as_str().bytes().fold(0, u8::wrapping_add)).max());
        let start = Instant::now();
        visit(page, links);
        spent += start.elapsed();
    }
    spent.as_nanos() as f64 / (web.len() * LINKS) as f64
}
