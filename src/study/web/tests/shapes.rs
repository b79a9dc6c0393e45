//! Laws that webs of real graphs keep like drawn ones, and the numbering of pages.

use super::*;
use crate::study::web::graph::{Cut, Graph, Links, tests::arrays};
use std::sync::Arc;
use std::time::Duration;

/// A small graph like a real one: pages in hosts of ten to fifty, linked to pages nearby and at
/// random, with links to themselves and repeated links. Page 77 reaches all.
pub(crate) fn knotted() -> Arc<Graph> {
    let mut draw = Draw::new(11, Purpose::Links, 0, 0);
    let (mut pages, mut last_pages, mut host) = (Vec::new(), Vec::new(), 0..0);
    for page in 0..600 {
        if page == host.end {
            host = page..(page + 10 + draw.below(40)).min(600);
            last_pages.push(host.end - 1);
        }
        let near = (0..draw.below(6)).map(|_| host.start + draw.below(host.end - host.start));
        let mut links: Vec<u32> = near.collect();
        // From the last page of a host a crawl reaches its first, and continues to an earlier host.
        links.extend((page > host.start).then(|| page - 1));
        links.extend((page == host.start && page > 0).then(|| draw.below(page)));
        pages.push(links);
    }
    pages[77].extend([77, 5, 5]);
    pages[77].extend(last_pages);
    let (degrees, targets) = arrays(&pages);
    let links = Links::read(&degrees, &targets).unwrap();
    Arc::new(Graph::cut(links, Cut { span_max: 8, crossing_max: 0 }))
}

/// A web on this graph in which hosts have all drawn traits.
pub(crate) fn rich_graph(seed: u64) -> Web {
    let settings = Settings {
        robots_part: 0.4,
        odd_links: 0.6,
        noise: 0.6,
        robots_deny: 0.0,
        ..rich(seed).settings().clone()
    };
    Web::of_graph(knotted(), settings, PORTS)
}

#[test]
fn a_graph_keeps_its_pages_and_links() {
    let (graph, web) = (knotted(), rich_graph(1));
    assert!(graph.hosts() > 10, "{}", graph.hosts());
    assert_eq!(web.settings().hosts, graph.hosts());
    assert_eq!((web.pages_total(), web.settings().pages), (600, 600));
    for page in 0..600 {
        let place = web.place_of(page as usize);
        let Resource::Page(number) = place.resource else { panic!("{place:?}") };
        assert_eq!(graph.pages_of(place.host).nth(number as usize), Some(page));
        assert_eq!(web.kind(place.host, number), Kind::Html);
        let links = web.links(place).into_iter().map(|link| match link.to.resource {
            Resource::Page(page) => web.page_index(link.to.host, page) as u32,
            other => panic!("{other:?}"),
        });
        assert_eq!(links.collect::<Vec<_>>(), graph.links(page), "page {page}");
    }
}

#[test]
fn a_graph_is_served_and_crawled_whole() {
    let web = rich_graph(2);
    for (host, page) in all_pages(&web) {
        let place = page_place(host, page);
        assert_eq!(web.place(host, &web.path(place)), Some(place));
        let url = web.url(place);
        let expected: Vec<String> = web.links(place).iter().map(|link| web.url(link.to)).collect();
        assert_eq!(
            references(&url, &web.page_reply(host, page, Duration::ZERO).body),
            expected,
            "{url}"
        );
        let compact = web.compact(&web.host(host), page, true, Duration::ZERO);
        assert_eq!(references(&url, &compact.reply.body), expected, "compact {url}");
    }
    let entry = web.seed_places().next().unwrap();
    assert_eq!(entry, web.place_of(knotted().entry().page as usize));
    assert_eq!(knotted().entry().reached, 600);
    assert_eq!(web.robots_of(entry.host), Robots::Allow, "the way in is never closed");
    let manifest = Manifest::new(&web, Budget::default());
    let is_page = |entry: &&Entry| matches!(entry.place.resource, Resource::Page(_));
    let asked = manifest.entries.iter().filter(is_page).filter(|entry| entry.requests.min == 1);
    assert_eq!(asked.count(), 600, "every page is found and may be asked for");
    // One seed, and those of the hostile hosts, as in a drawn web.
    let hostile = web.settings().hostile.len();
    assert_eq!(
        (web.seeds().len(), web.hosts() as usize),
        (1 + hostile, web.settings().hosts as usize + hostile)
    );
    assert_eq!(web.seeds()[0], web.url(entry));
}

#[test]
fn equal_graphs_and_seeds_give_equal_webs() {
    let sum = |web: &Web| {
        let replies = all_pages(web).map(|(host, page)| web.page_reply(host, page, Duration::ZERO));
        let bytes =
            replies.flat_map(|reply| reply.fields.into_bytes().into_iter().chain(reply.body));
        bytes.fold(0_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    let budget = Budget::default();
    assert_eq!(Manifest::new(&rich_graph(3), budget), Manifest::new(&rich_graph(3), budget));
    assert_ne!(sum(&rich_graph(3)), sum(&rich_graph(4)));
    // A change here changes every recorded run on a graph.
    assert_eq!(format!("{:016x}", sum(&rich_graph(3))), GOLDEN);
}

const GOLDEN: &str = "ad81108b5ee67429";

#[test]
fn every_page_has_one_number() {
    let drawn = Settings { hosts: 70, pages: 2_000, pages_sigma: 2.0, ..Settings::quickstart() };
    let few = Settings { hosts: 9, pages: 3, hostile: Vec::new(), ..Settings::default() };
    let webs = [Web::new(drawn, PORTS), Web::new(few, PORTS), rich_graph(5)];
    for (web, total) in webs.iter().zip([2_000, 9, 600]) {
        let numbers: Vec<usize> = all_pages(web).map(|at| web.page_index(at.0, at.1)).collect();
        assert_eq!(numbers, (0..total).collect::<Vec<_>>());
        assert_eq!(web.pages_total(), total);
        for (index, (host, page)) in all_pages(web).enumerate() {
            assert_eq!(web.place_of(index), page_place(host, page));
        }
        assert_eq!(web.pages_of(web.hosts()), 0);
    }
}

#[test]
fn ports_are_in_urls_and_change_nothing_else() {
    for web in [rich(6), rich_graph(6)] {
        let other = web.at_ports(Ports { http: 81, https: 443 });
        for (from, to) in web.seeds().iter().zip(other.seeds()) {
            assert_eq!(from.replace(":8080", ":81").replace(":8443", ""), to);
        }
        for (host, page) in all_pages(&web) {
            let place = page_place(host, page);
            assert_eq!(web.links(place), other.links(place));
            assert_eq!(web.path(place), other.path(place));
        }
    }
}
