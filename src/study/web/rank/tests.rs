//! PageRank compared with a dense solution and with known values, and bit for bit.

use super::*;
use crate::study::web::graph::{Cut, Graph, Links, tests::arrays};
use crate::study::web::page::Kind;
use crate::study::web::tests::shapes::rich_graph;
use crate::study::web::{Budget, Hostile, Manifest, Outcome, Place, Ports, Resource, Settings};
use std::collections::BTreeMap;
use std::sync::Arc;

fn web_of(pages: &[Vec<u32>]) -> Web {
    let (degrees, targets) = arrays(pages);
    let graph = Graph::cut(Links::read(&degrees, &targets).unwrap(), Cut::default());
    Web::of_graph(Arc::new(graph), Settings::default(), Ports::default())
}

/// Returns a web with everything that can lie between a page and its links.
fn mixed(seed: u64) -> Web {
    let settings = Settings {
        seed,
        hosts: 12,
        seeds: 2,
        pages: 160,
        links: crate::study::web::Spread { median: 4.0, sigma: 0.5 },
        redirect: 0.15,
        not_found: 0.1,
        robots_part: 0.4,
        robots_deny: 0.2,
        hostile: vec![Hostile::EndlessLinks],
        ..Settings::quickstart()
    };
    Web::new(settings, Ports::default())
}

/// Solves the equations by elimination. The manifest says which pages are in them.
fn dense(web: &Web, damping: f64) -> Vec<f64> {
    let manifest = Manifest::new(web, Budget::default());
    let fetched = manifest.entries.iter().filter(|entry| entry.outcomes != [Outcome::RobotsDenied]);
    let pages = fetched.filter_map(|entry| match entry.place.resource {
        Resource::Page(page) => Some((entry.place.host, page)),
        _ => None,
    });
    let numbers: BTreeMap<(u32, u32), usize> = pages.zip(0..).collect();
    let count = numbers.len();
    // Row u: R(u) - d * the sum of its shares of the R(v) = 1 - d.
    let mut rows = vec![vec![0.0; count + 1]; count];
    for (at, row) in rows.iter_mut().enumerate() {
        row[at] = 1.0;
        row[count] = 1.0 - damping;
    }
    for (&(host, page), &from) in &numbers {
        let mut to: Vec<Place> = web
            .links(Place { host, resource: Resource::Page(page) })
            .iter()
            .map(|link| link.to)
            .collect();
        if web.kind(host, page) == Kind::Redirect {
            to.push(web.redirect_of(host, page));
        }
        let found = to.iter().filter_map(|place| match place.resource {
            Resource::Page(page) => numbers.get(&(place.host, page)).copied(),
            _ => None,
        });
        let found: Vec<usize> = found.collect();
        for &to in &found {
            rows[to][from] -= damping / found.len() as f64;
        }
        if found.is_empty() {
            rows.iter_mut().for_each(|row| row[from] -= damping / count as f64);
        }
    }
    let solution = eliminate(rows);
    let mut quality = vec![0.0; web.pages_total()];
    for ((host, page), at) in numbers {
        quality[web.page_index(host, page)] = solution[at];
    }
    quality
}

/// Gauss-Jordan elimination; the diagonal dominates by columns, so no pivoting is needed.
fn eliminate(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let count = rows.len();
    for at in 0..count {
        let lead = rows[at][at];
        rows[at].iter_mut().for_each(|value| *value /= lead);
        let lead = rows[at].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let times = row[at];
            row.iter_mut().zip(&lead).for_each(|(value, lead)| *value -= times * lead);
        }
    }
    rows.iter().map(|row| row[count]).collect()
}

fn distance(one: &[f64], other: &[f64]) -> f64 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).sum::<f64>() / one.len() as f64
}

#[test]
fn qualities_solve_the_equations() {
    for seed in 0..6 {
        for damping in [0.0, 0.5, DAMPING, 0.99] {
            let web = mixed(seed);
            let rank = web.page_rank(damping);
            let off = distance(&rank.quality, &dense(&web, damping));
            assert!(off < ERROR_MAX, "off by {off} at {damping}");
            assert!(0 < rank.pages && rank.pages < web.pages_total(), "some are closed");
        }
    }
    let web = rich_graph(1);
    let off = distance(&web.page_rank(DAMPING).quality, &dense(&web, DAMPING));
    assert!(off < ERROR_MAX, "off by {off}");
}

#[test]
fn the_mean_quality_is_one() {
    for web in [mixed(7), rich_graph(2), Web::new(Settings::quickstart(), Ports::default())] {
        let rank = web.page_rank(DAMPING);
        let sum: f64 = rank.quality.iter().sum();
        assert!((sum / rank.pages as f64 - 1.0).abs() < ERROR_MAX, "{sum} of {}", rank.pages);
        let ranked = rank.quality.iter().filter(|quality| **quality > 0.0).count();
        assert_eq!(ranked, rank.pages, "exactly the reachable pages have a quality");
    }
}

#[test]
fn qualities_that_are_known() {
    // The links of each page, its expected quality, and why.
    type Case<'a> = (&'a [&'a [u32]], &'a [f64], &'a str);
    let d = DAMPING;
    let cases: [Case; 5] = [
        (&[&[]], &[1.0], "alone and stuck"),
        (&[&[0]], &[1.0], "alone, on itself"),
        (&[&[1], &[2], &[0]], &[1.0; 3], "a ring: all alike"),
        (&[&[1, 1], &[0, 0]], &[1.0; 2], "twice the same is no more than once"),
        // R0 = (1 - d) + d (2/3 R0 + R1) and R1 = (1 - d) + d R0 / 3: two links of three stay.
        (
            &[&[0, 0, 1], &[0]],
            &[
                (1.0 - d) * (1.0 + d) / (1.0 - d * 2.0 / 3.0 - d * d / 3.0),
                2.0 - (1.0 - d) * (1.0 + d) / (1.0 - d * 2.0 / 3.0 - d * d / 3.0),
            ],
            "links to itself and repeats count",
        ),
    ];
    for (pages, expected, why) in cases {
        let pages: Vec<Vec<u32>> = pages.iter().map(|links| links.to_vec()).collect();
        let rank = web_of(&pages).page_rank(d);
        assert!(distance(&rank.quality, expected) < ERROR_MAX, "{why}: {:?}", rank.quality);
    }
}

/// A page that no link leads to has the quality 0 and isn't counted.
#[test]
fn what_a_crawl_cannot_reach_has_no_quality() {
    let web = web_of(&[vec![1], vec![0], vec![0, 1], vec![3]]);
    let rank = web.page_rank(DAMPING);
    assert_eq!((rank.pages, rank.links), (3, 4), "from page 2 on");
    assert_eq!(rank.quality[3], 0.0);
}

fn bits(values: &[f64]) -> String {
    let sum = values.iter().fold(0_u64, |sum, value| {
        (sum ^ value.to_bits()).wrapping_mul(0x0100_0000_01b3).rotate_left(7)
    });
    format!("{sum:016x}")
}

/// The same on every machine: a change here changes every comparison of policies.
#[test]
fn bits_are_what_they_were() {
    let found = [
        bits(&mixed(1).page_rank(DAMPING).quality),
        bits(&rich_graph(1).page_rank(DAMPING).quality),
        bits(&mixed(1).zipf_permutation(1.0, 1)),
        bits(&mixed(1).zipf_permutation(0.7, 2)),
    ];
    assert_eq!(
        found,
        ["557773d595439e9c", "c2abeac4d2017c7d", "ddd0aa58fcd61dcf", "5197df383574742c"]
    );
}

#[test]
fn qualities_at_random_follow_the_law() {
    let web = mixed(3);
    let count = web.pages_total();
    for exponent in [0.0, 0.5, 1.0, 2.0] {
        let quality = web.zipf_permutation(exponent, 1);
        let sum: f64 = quality.iter().sum();
        assert!((sum / count as f64 - 1.0).abs() < 1e-12, "a mean of one: {sum}");
        let mut sorted = quality.clone();
        sorted.sort_by(|one, other| other.total_cmp(one));
        for (rank, quality) in (1..).zip(&sorted) {
            let expected = sorted[0] / f64::from(rank).powf(exponent);
            assert!((quality / expected - 1.0).abs() < 1e-11, "rank {rank}, {exponent}");
        }
        let mut other = web.zipf_permutation(exponent, 2);
        assert_eq!(quality == other, exponent == 0.0, "another seed, another order");
        other.sort_by(|one, other| other.total_cmp(one));
        assert_eq!(sorted, other);
    }
}

/// Every page is equally likely to be the best.
#[test]
fn ranks_are_spread_evenly() {
    let web = web_of(&vec![vec![0]; 10]);
    let mut best = [0; 10];
    for seed in 0..10_000 {
        let quality = web.zipf_permutation(1.0, seed);
        let top = (0..10).max_by(|one, other| quality[*one].total_cmp(&quality[*other])).unwrap();
        best[top] += 1;
    }
    // Within five standard deviations of 30.
    assert!(best.iter().all(|count| (850..1_150).contains(count)), "{best:?}");
}
