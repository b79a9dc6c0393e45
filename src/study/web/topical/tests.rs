//! Drawn qualities have the shares and correlations asked for, measured on several webs.

use super::*;
use crate::study::web::tests::shapes::rich_graph;
use crate::study::web::{Ports, Settings, Spread};

const EVEN: Topical = Topical { sigma: 1.0, site: 0.0, parent: 0.0, speed: 0.0, size: 0.0 };

/// Returns a web of 500 hosts like that of 2003, in which some pages may not be requested.
fn web(seed: u64) -> Web {
    let settings = Settings {
        seed,
        seeds: 50,
        pages: 8_000,
        links: Spread { median: 8.0, sigma: 0.5 },
        host_fanout: 4,
        redirect: 0.05,
        robots_part: 0.2,
        ..Settings::scenario_2003()
    };
    Web::new(settings, Ports::default())
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (one, other) = (sum(&|pair| pair.0), sum(&|pair| pair.1));
    let covariance = sum(&|pair| (pair.0 - one) * (pair.1 - other));
    let variances = sum(&|pair| (pair.0 - one).powi(2)) * sum(&|pair| (pair.1 - other).powi(2));
    covariance / variances.sqrt()
}

/// Spearman's rank correlation, by counting.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let rank = |of: f64, all: &mut dyn Iterator<Item = f64>| {
        let (mut below, mut equal) = (0, 0);
        for other in all {
            below += i32::from(other < of);
            equal += i32::from(other == of);
        }
        f64::from(2 * below + equal)
    };
    let ranks = pairs.iter().map(|pair| {
        let one = rank(pair.0, &mut pairs.iter().map(|pair| pair.0));
        (one, rank(pair.1, &mut pairs.iter().map(|pair| pair.1)))
    });
    correlation(&ranks.collect::<Vec<_>>())
}

/// Returns the correlation of the logarithms of a page's and its parent's quality: of pages on one
/// host, and of pages on two.
fn along_links(web: &Web, quality: &[f64]) -> [f64; 2] {
    let reach = Reach::of(web);
    let log = |at: usize| {
        let (host, page) = reach.pages[at];
        draw::ln(quality[web.page_index(host, page)])
    };
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for (at, &parent) in reach.parents.iter().enumerate() {
        let parent = parent as usize;
        if parent != at {
            let is_near = reach.pages[parent].0 == reach.pages[at].0;
            if is_near { &mut near } else { &mut far }.push((log(parent), log(at)));
        }
    }
    assert!(near.len() > 5_000 && far.len() > 300, "{} {}", near.len(), far.len());
    [correlation(&near), correlation(&far)]
}

/// The mean over five webs is within 0.04 of what the shares imply; 400 pairs of pages on two hosts
/// a web leave a standard error of 0.02.
#[test]
fn pages_resemble_their_parents_as_much_as_asked() {
    let webs: Vec<Web> = (1..=5).map(web).collect();
    for (site, parent) in [(0.3, 0.2), (0.0, 0.5), (0.5, 0.0), (0.2, 0.6), (0.0, 0.0)] {
        let measured: Vec<[f64; 2]> = webs
            .iter()
            .map(|web| along_links(web, &web.topical(Topical { site, parent, ..EVEN })))
            .collect();
        let mean = |at: usize| measured.iter().map(|found| found[at]).sum::<f64>() / 5.0;
        let across = (parent * (1.0 - site)).sqrt();
        let expected = [site + across, across];
        let found = [mean(0), mean(1)];
        let is_close = |at: usize| (found[at] - expected[at]).abs() < 0.04;
        assert!(is_close(0) && is_close(1), "{site} {parent}: {found:?}, not {expected:?}");
    }
}

/// Returns the rank correlations of sites with speed and size, over all hosts.
fn with_traits(web: &Web, quality: &[f64]) -> [f64; 2] {
    let (mut speeds, mut sizes) = (Vec::new(), Vec::new());
    for number in 0..web.settings().hosts {
        let (quality, host) = (quality[web.page_index(number, 0)], web.host(number));
        speeds.push((quality, -(host.think_time + host.round_trip).as_secs_f64()));
        sizes.push((quality, f64::from(host.pages)));
    }
    [rank_correlation(&speeds), rank_correlation(&sizes)]
}

/// Each web has the correlations, within 0.04 by Spearman's measure, which is up to 0.02 lower.
#[test]
fn sites_correlate_with_speed_and_size_as_asked() {
    for web in (1..=3).map(web) {
        for (speed, size) in
            [(0.0, 0.0), (0.7, 0.0), (-0.4, 0.0), (0.0, -0.7), (0.5, 0.5), (-0.7, 0.5)]
        {
            let quality = web.topical(Topical { site: 1.0, speed, size, ..EVEN });
            let found = with_traits(&web, &quality);
            let is_close = (found[0] - speed).abs() < 0.04 && (found[1] - size).abs() < 0.04;
            assert!(is_close, "{found:?}, not {speed} and {size}");
        }
        for (speed, size) in [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)] {
            let quality = web.topical(Topical { site: 1.0, speed, size, ..EVEN });
            let found = with_traits(&web, &quality);
            let whole = found.map(|found| if found.abs() > 0.5 { found.round() } else { 0.0 });
            assert_eq!(whole, [speed, size], "{found:?}");
            let most = found[0].abs().max(found[1].abs());
            assert!(most > 0.995, "{found:?}: an order, not a tendency");
        }
    }
}

#[test]
fn extremes_are_what_they_say() {
    let web = web(7);
    let reached = |quality: &[f64]| -> Vec<f64> {
        quality.iter().copied().filter(|quality| *quality > 0.0).collect()
    };
    let alike = |values: &[f64]| values.iter().all(|value| (value / values[0] - 1.0).abs() < 1e-9);
    // A single seed passes its topic on to all pages.
    let one = Web::new(Settings { seeds: 1, ..web.settings().clone() }, Ports::default());
    for of in
        [Topical { sigma: 0.0, site: 0.3, parent: 0.2, ..EVEN }, Topical { parent: 1.0, ..EVEN }]
    {
        assert!(alike(&reached(&one.topical(of))), "{of:?}");
    }
    let quality = web.topical(Topical { site: 1.0, ..EVEN });
    for host in 0..web.settings().hosts {
        let first = web.page_index(host, 0);
        let pages = reached(&quality[first..first + web.pages_of(host) as usize]);
        assert!(alike(&pages), "host {host}");
    }
    // A single host has no trait that it shares with others.
    let one = Settings { hosts: 1, pages: 50, ..web.settings().clone() };
    let one = Web::new(one, Ports::default());
    let quality = one.topical(Topical { site: 1.0, speed: 1.0, ..EVEN });
    assert!(alike(&reached(&quality)) && quality[0] == 1.0, "{quality:?}");
}

#[test]
fn qualities_are_positive_with_a_mean_of_one() {
    let of = Topical { sigma: 2.0, site: 0.3, parent: 0.2, speed: 0.5, size: -0.5 };
    for web in [web(1), rich_graph(1), Web::new(Settings::quickstart(), Ports::default())] {
        let (quality, rank) = (web.topical(of), web.page_rank(0.85));
        let sum: f64 = quality.iter().sum();
        assert!((sum / rank.pages as f64 - 1.0).abs() < 1e-9, "{sum} of {}", rank.pages);
        for (quality, rank) in quality.iter().zip(&rank.quality) {
            assert_eq!(*quality > 0.0, *rank > 0.0, "those that a crawl can reach");
        }
    }
}

/// The same on every machine: a change here changes every comparison of policies.
#[test]
fn bits_are_what_they_were() {
    let of = Topical { sigma: 1.0, site: 0.3, parent: 0.2, speed: 0.5, size: -0.5 };
    let bits = |web: Web| {
        let quality = web.topical(of);
        assert_eq!(quality, web.topical(of));
        let sum = quality.iter().fold(0_u64, |sum, value| {
            (sum ^ value.to_bits()).wrapping_mul(0x0100_0000_01b3).rotate_left(7)
        });
        format!("{sum:016x}")
    };
    assert_eq!(
        [bits(web(1)), bits(web(2)), bits(rich_graph(1))],
        ["7d8bfa96a5b6ace7", "dab41a6238120b03", "51f8fe5d75b8432a"]
    );
}

/// Hosts have middle ranks where they are alike, and scores follow the ranks only.
#[test]
fn scores_are_those_of_normal_deviates() {
    for (share, expected) in [(0.5, 0.0), (0.841_345, 1.0), (0.158_655, -1.0), (0.977_25, 2.0)] {
        assert!((quantile(share) - expected).abs() < 0.02, "{share}: {}", quantile(share));
    }
    assert_eq!(scores(&[3.0, 1.0, 2.0, 1.0]), scores(&[900.0, -5.0, 0.1, -5.0]));
    assert_eq!(scores(&[4.0; 3]), [0.0; 3]);
    let found = scores(&[1.0, 2.0, 2.0, 3.0]);
    assert!(found[1] == found[2] && found[1].abs() < 1e-9, "{found:?}");
}
