//! Laws of graphs: flaws by table, the cut and the entry compared with naive models.

mod lists;
mod xz;

use super::entry::STARTS_MAX;
use super::*;
use crate::study::web::draw::{Draw, Purpose};
use std::collections::BTreeSet;

fn packed(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Encodes a list of pages with their links as the two arrays.
pub(in crate::study::web) fn arrays(pages: &[Vec<u32>]) -> (Vec<u8>, Vec<u8>) {
    let degrees: Vec<u32> = pages.iter().map(|links| u32::try_from(links.len()).unwrap()).collect();
    (packed(&degrees), packed(&pages.concat()))
}

fn graph(pages: &[Vec<u32>], cut: Cut) -> Graph {
    let (degrees, targets) = arrays(pages);
    Graph::cut(Links::read(&degrees, &targets).unwrap(), cut)
}

fn random(draw: &mut Draw, pages: u32, links_max: u32) -> Vec<Vec<u32>> {
    let mut links = || (0..draw.below(links_max + 1)).map(|_| draw.below(pages)).collect();
    (0..pages).map(|_| links()).collect()
}

#[test]
fn links_are_read_as_they_are() {
    let pages = [vec![1, 1, 0], vec![], vec![2, 0]];
    let graph = graph(&pages, Cut::default());
    assert_eq!((graph.pages(), graph.links_total()), (3, 5));
    for (page, links) in (0..).zip(&pages) {
        assert_eq!(graph.links(page), links, "its own, and twice the same, in order");
    }
}

#[test]
fn flaws_are_named() {
    // Degrees, targets, bytes cut off the targets, the flaw, and its message.
    type Case<'a> = (&'a [u32], &'a [u32], usize, Flaw, &'a str);
    let cases: [Case; 8] = [
        (&[], &[], 0, Flaw::Empty, "there are no pages"),
        (&[], &[7], 0, Flaw::Empty, "there are no pages"),
        (&[2, 1], &[0, 1], 0, Flaw::Missing(1), "1 link targets are missing"),
        (&[u32::MAX, u32::MAX], &[0], 0, Flaw::Missing(8_589_934_589), "8589934589 link targets"),
        (&[1, 0], &[0, 1, 1], 0, Flaw::Surplus(2), "2 link targets belong to no page"),
        (&[1, 1], &[0, 2], 0, Flaw::Nowhere { link: 1, target: 2 }, "link 1 leads to page 2"),
        (&[1, 1], &[0, 1], 1, Flaw::Uneven(Part::Targets), "the length of the targets"),
        (&[1, 1], &[0, 1], 7, Flaw::Uneven(Part::Targets), "the length of the targets"),
    ];
    for (degrees, targets, cut_bytes, flaw, text) in cases {
        let targets = packed(targets);
        let targets = &targets[..targets.len() - cut_bytes];
        let read = Links::read(&packed(degrees), targets);
        assert_eq!(read, Err(flaw));
        assert!(flaw.to_string().starts_with(text), "{flaw}");
    }
    let flaw = Links::read(&[1, 0, 0], &[]).unwrap_err();
    assert_eq!(flaw, Flaw::Uneven(Part::Degrees));
    assert!(flaw.to_string().starts_with("the length of the degrees"), "{flaw}");
}

/// Files changed and truncated at random are read as they are now, or refused; never a panic, and
/// every link of an accepted graph leads to a page.
#[test]
fn no_bytes_make_it_stumble() {
    let mut draw = Draw::new(1, Purpose::Noise, 0, 0);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let pages = 1 + draw.below(12);
        let (mut degrees, mut targets) = arrays(&random(&mut draw, pages, 4));
        for bytes in [&mut degrees, &mut targets] {
            let length = u32::try_from(bytes.len()).unwrap();
            if draw.chance(0.2) {
                bytes.truncate(draw.below(length + 1) as usize);
            } else if draw.chance(0.5) && length > 0 {
                bytes[draw.below(length) as usize] = draw.below(14) as u8;
            }
        }
        let cut = Cut { span_max: draw.below(9), crossing_max: 0 };
        match Links::read(&degrees, &targets).map(|links| Graph::cut(links, cut)) {
            Ok(graph) => {
                let all = (0..graph.pages()).flat_map(|page| graph.links(page));
                assert!(all.clone().all(|target| *target < graph.pages()));
                assert_eq!(all.count(), targets.len() / 4);
                read += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 500 && refused > 500, "{read} read, {refused} refused");
}

/// Five hosts of known sizes: pages link to pages of their host within a distance of 20, and some
/// to a page of another host that is further away.
fn five_hosts() -> ([u32; 6], Vec<Vec<u32>>) {
    let starts = [0, 300, 310, 311, 700, 1_000];
    let mut draw = Draw::new(5, Purpose::Links, 0, 0);
    let mut pages = Vec::new();
    for host in starts.windows(2) {
        for page in host[0]..host[1] {
            let mut links = Vec::new();
            // A link to the previous page connects the host; others lead back to a page nearby.
            links.extend((page > host[0]).then(|| page - 1));
            links.push((page + draw.below(20)).min(host[1] - 1));
            let far = draw.below(1_000);
            links.extend((far.abs_diff(page) > 60).then_some(far));
            pages.push(links);
        }
    }
    (starts, pages)
}

#[test]
fn known_hosts_are_found() {
    let (starts, mut pages) = five_hosts();
    let strict = Cut { span_max: 60, crossing_max: 0 };
    let found = graph(&pages, strict);
    assert_eq!(found.starts(), starts);
    assert_eq!((found.hosts(), found.pages_of(3)), (5, 311..700));
    for (page, host) in [(0, 0), (299, 0), (300, 1), (310, 2), (311, 3), (999, 4)] {
        assert_eq!(found.host_of(page), host);
    }
    // One short link across a border joins two hosts, unless the limit allows it.
    pages[705].push(690);
    assert_eq!(graph(&pages, strict).starts(), [0, 300, 310, 311, 1_000]);
    // Every border that at most one link crosses: those of the five hosts, and some inside hosts.
    let lax = graph(&pages, Cut { crossing_max: 1, ..strict });
    assert!(starts.iter().all(|start| lax.starts().contains(start)));
    // A whole graph can be one host, and each page a host of its own.
    assert_eq!(graph(&pages, Cut { span_max: 1_000, crossing_max: 0 }).hosts(), 1);
    assert_eq!(graph(&pages, Cut { span_max: 0, crossing_max: 0 }).hosts(), 1_000);
}

#[test]
fn the_cut_is_the_naive_one() {
    let mut draw = Draw::new(2, Purpose::Noise, 0, 0);
    let mut inner = 0;
    for _ in 0..300 {
        let count = 1 + draw.below(40);
        let pages = random(&mut draw, count, 3);
        let cut = Cut { span_max: draw.below(12), crossing_max: draw.below(3) };
        let passes = |border: u32| {
            let links =
                (0..).zip(&pages).flat_map(|(from, to)| to.iter().map(move |to| (from, *to)));
            let passing = links.filter(|(from, to): &(u32, u32)| {
                (*from < border) != (*to < border) && from.abs_diff(*to) <= cut.span_max
            });
            passing.count()
        };
        let borders = (1..count).filter(|border| passes(*border) <= cut.crossing_max as usize);
        let expected: Vec<u32> = [0].into_iter().chain(borders).chain([count]).collect();
        let found = graph(&pages, cut);
        assert_eq!(found.starts(), expected, "{cut:?}");
        inner += found.hosts() - 1;
        let wider = graph(&pages, Cut { span_max: cut.span_max + 3, ..cut });
        let starts: BTreeSet<&u32> = found.starts().iter().collect();
        assert!(wider.starts().iter().all(|start| starts.contains(start)), "wider, so fewer");
    }
    assert!(inner > 1_000, "{inner} borders");
}

/// Counts the pages reached from each page, in a naive way.
fn reaches(pages: &[Vec<u32>]) -> Vec<u32> {
    let reach = |from: usize| {
        let mut seen = BTreeSet::from([from]);
        let mut found = vec![from];
        while let Some(page) = found.pop() {
            found.extend(pages[page].iter().map(|to| *to as usize).filter(|to| seen.insert(*to)));
        }
        u32::try_from(seen.len()).unwrap()
    };
    (0..pages.len()).map(reach).collect()
}

/// Up to this many pages the search for the entry is exact.
#[test]
fn the_entry_reaches_most() {
    let mut draw = Draw::new(3, Purpose::Noise, 0, 0);
    let (mut whole, mut part) = (0, 0);
    for _ in 0..400 {
        let count = 1 + draw.below(u32::try_from(STARTS_MAX).unwrap());
        let density = 1 + draw.below(6);
        let pages = random(&mut draw, count, density);
        let reaches = reaches(&pages);
        let reached = *reaches.iter().max().unwrap();
        let page = reaches.iter().position(|reach| *reach == reached).unwrap();
        let expected = Entry { page: u32::try_from(page).unwrap(), reached };
        assert_eq!(graph(&pages, Cut::default()).entry(), expected);
        *if reached == count { &mut whole } else { &mut part } += 1;
    }
    assert!(whole > 50 && part > 50, "{whole} with a page that reaches all, {part} without");
}

/// In larger graphs it still finds the page that reaches all, however high its number.
#[test]
fn a_page_that_reaches_all_is_found_among_many() {
    let count = 5_000;
    let mut pages = vec![Vec::new(); count as usize];
    pages[4_321] = (0..count).filter(|page| page % 2 == 0).collect();
    (0..count).step_by(2).for_each(|page| pages[page as usize].push(page + 1));
    assert_eq!(graph(&pages, Cut::default()).entry(), Entry { page: 4_320, reached: count });
}
