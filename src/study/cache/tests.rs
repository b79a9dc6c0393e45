//! Policies compared with brute force on small streams, and their laws.

use super::misses::WINDOWS;
use super::policy::{Job, Policy, replay};
use super::read::Facts;
use super::stream::{Numbers, Stream};
use super::study::Curves;
use super::watch::Watch;
use super::{names, power_of_two, read, textbook};
use crate::commands::Exit;
use crate::ground::random::{Random, mix};
use crate::seen::cache::Replacement;
use crate::seen::trace::{Link, Page, Writer};
use crate::url::Fingerprint;
use std::fs;
use std::path::PathBuf;

/// Returns streams of several kinds: uniform, skewed, a drifting set, a loop, few URLs.
fn stream(seed: u64, links: usize) -> Stream {
    let (mut draw, mut stream, mut numbers) = (Random(seed), Stream::default(), Numbers::default());
    let urls = 1 + draw.below(60);
    for place in 0..links as u64 {
        let url = match seed % 5 {
            0 => draw.below(urls),
            1 => draw.below(urls) * draw.below(urls) / urls,
            2 => place / 9 + draw.below(8),
            3 => place % urls,
            _ => draw.below(3),
        };
        numbers.add(&mut stream, mix(url));
    }
    stream
}

fn curves(stream: &Stream) -> Curves {
    Curves::of(stream, 1, "test", &Watch::new())
}

/// Counts the misses of a cache of `room` entries that evicts what `victim` returns: its index,
/// given the entries in order of their last link and the position in the stream.
fn brute(links: &[u32], room: usize, victim: impl Fn(&[u32], usize) -> usize) -> u64 {
    let (mut entries, mut misses) = (Vec::new(), 0);
    for (place, url) in links.iter().enumerate() {
        match entries.iter().position(|entry| entry == url) {
            Some(at) => {
                entries.remove(at);
            }
            None => {
                misses += 1;
                if entries.len() == room {
                    let at = victim(&entries, place);
                    entries.remove(at);
                }
            }
        }
        entries.push(*url);
    }
    misses
}

fn farthest(links: &[u32], entries: &[u32], place: usize) -> usize {
    let next = |url: &u32| {
        let ahead = links[place..].iter().position(|link| link == url);
        ahead.unwrap_or(usize::MAX)
    };
    (0..entries.len()).max_by_key(|at| next(&entries[*at])).expect("a full cache has entries")
}

#[test]
fn lru_min_and_static_are_what_brute_force_finds() {
    for seed in 0..150 {
        let stream = stream(seed, 30 + (seed as usize * 7) % 400);
        let (links, curves) = (&stream.links, curves(&stream));
        for level in 0..curves.levels() {
            let room = 1 << level;
            let found = |policy| curves.misses(policy, level);
            let context = format!("seed {seed}, {room} entries");
            assert_eq!(found(Policy::Lru), brute(links, room, |_, _| 0), "LRU, {context}");
            let min = brute(links, room, |entries, place| farthest(links, entries, place));
            assert_eq!(found(Policy::Min), min, "MIN, {context}");
            let mut counts = vec![0_u64; stream.urls()];
            links.iter().for_each(|url| counts[*url as usize] += 1);
            counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
            let held: u64 = counts.iter().take(room).sum();
            assert_eq!(found(Policy::Static), links.len() as u64 - held, "STATIC, {context}");
            assert_eq!(found(Policy::Infinite), stream.urls() as u64, "INFINITE, {context}");
        }
    }
}

/// Brute-force MIN is only as good as its rule: on tiny streams, all choices of victims can be
/// tried.
#[test]
fn no_choice_of_victims_beats_min() {
    fn best(links: &[u32], held: &[u32], room: usize) -> u64 {
        let Some((url, rest)) = links.split_first() else { return 0 };
        if held.contains(url) {
            return best(rest, held, room);
        }
        let with = |held: &[u32]| best(rest, &[held, &[*url]].concat(), room);
        if held.len() < room {
            return 1 + with(held);
        }
        let without = |at: usize| {
            let mut held = held.to_vec();
            held.remove(at);
            with(&held)
        };
        1 + (0..held.len()).map(without).min().expect("a full cache has entries")
    }
    for seed in 0..60 {
        let stream = stream(seed, 12);
        let curves = curves(&stream);
        for level in 0..curves.levels().min(3) {
            let best = best(&stream.links, &[], 1 << level);
            assert_eq!(curves.misses(Policy::Min, level), best, "seed {seed}, level {level}");
        }
    }
}

#[test]
fn policies_keep_their_laws() {
    for seed in 0..40 {
        let stream = stream(seed, 3_000);
        let curves = curves(&stream);
        let top = curves.levels() - 1;
        for level in 0..=top {
            let found = |policy| curves.misses(policy, level);
            let context = format!("seed {seed}, level {level}");
            assert!(found(Policy::Infinite) <= found(Policy::Min), "{context}");
            for policy in [Policy::Lru, Policy::Clock, Policy::Random] {
                assert!(found(Policy::Min) <= found(policy), "{policy:?}, {context}");
            }
            if level > 0 {
                // For stack algorithms, more room never means more misses.
                for policy in [Policy::Lru, Policy::Min, Policy::Static] {
                    let smaller = curves.misses(policy, level - 1);
                    assert!(found(policy) <= smaller, "{policy:?}, {context}");
                }
            }
        }
        for policy in [Policy::Min, Policy::Lru, Policy::Clock, Policy::Random] {
            assert_eq!(
                curves.misses(policy, top),
                stream.urls() as u64,
                "{policy:?}: room for all"
            );
        }
        for policy in Policy::ALL {
            let windows = (0..WINDOWS).map(|at| curves.in_window(policy, 0, at));
            let (links, misses) = windows.fold((0, 0), |(links, misses), (more, missed)| {
                (links + more, misses + u64::from(missed))
            });
            assert_eq!((links, misses), (stream.links.len(), curves.misses(policy, 0)));
        }
    }
}

/// The crawler's cache moves entries within its table; its misses are close to a textbook
/// implementation's nevertheless.
#[test]
fn clock_and_random_are_about_the_textbook_s() {
    const LINKS: usize = 20_000;
    for seed in 0..10 {
        let (mut draw, mut stream) = (Random(seed), Stream::default());
        let mut numbers = Numbers::default();
        for place in 0..LINKS as u64 {
            // A drifting set of 500, and a few that all link to.
            let url = match draw.below(10) {
                0 => draw.below(20),
                _ => 100 + place / 40 + draw.below(500),
            };
            numbers.add(&mut stream, mix(url + (seed << 32)));
        }
        let curves = curves(&stream);
        for level in 0..curves.levels() - 1 {
            for (policy, replacement) in
                [(Policy::Clock, Replacement::Clock), (Policy::Random, Replacement::Random)]
            {
                let log2 = u32::try_from(level).expect("few");
                let mut book = textbook::Cache::new(log2, replacement, seed);
                let prints = &stream.prints;
                let misses =
                    stream.links.iter().filter(|url| !book.touch(prints[**url as usize])).count();
                let apart = curves.misses(policy, level).abs_diff(misses as u64);
                let most = LINKS as u64 * 2 / 100;
                assert!(apart <= most, "{policy:?}, seed {seed}, level {level}: {apart} apart");
            }
        }
    }
}

/// With any number of threads and any stream, all jobs are done once.
#[test]
fn threads_change_nothing() {
    let stream = stream(2, 5_000);
    let (one, many) = (curves(&stream), Curves::of(&stream, 7, "test", &Watch::new()));
    for policy in Policy::ALL {
        for level in 0..one.levels() {
            assert_eq!(one.misses(policy, level), many.misses(policy, level), "{policy:?}");
        }
    }
    let jobs = Job::all(&stream);
    assert_eq!(jobs.len(), 4 + 2 * (stream.levels() - 1));
}

fn page(host: u32, time_us: u64) -> Page {
    Page { time_us, server: host, host, busy: 4, parked: 1 }
}

/// A trace of two pages of one host and one of another; hosts 0 and 1 << 31 belong to two
/// processes.
fn written() -> Vec<u8> {
    const AWAY: u32 = 1 << 31;
    let mut writer = Writer::new(7);
    for (host, time_us, links) in [
        (0, 1_000_000, &[(1, 0), (2, 0), (1, 0), (3, AWAY)][..]),
        (0, 2_000_000, &[(1, 0), (4, 0), (3, AWAY)]),
        (AWAY, 5_000_000, &[(3, AWAY), (1, 0)]),
        (AWAY, 6_000_000, &[]),
    ] {
        writer.begin(&page(host, time_us));
        for (fingerprint, host) in links {
            writer.link(&Link { fingerprint: Fingerprint(*fingerprint), host: *host });
        }
        writer.end();
    }
    writer.bytes().to_vec()
}

fn read_file(bytes: &[u8], links_max: u64) -> Result<read::Traced, super::Failure> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.trace");
    fs::write(&path, bytes).expect("written");
    read::read(&path, 2, links_max, &Watch::new())
}

#[test]
fn a_trace_becomes_two_streams_and_facts() {
    let traced = read_file(&written(), u64::MAX).expect("a trace");
    assert_eq!(traced.full.links, [0, 1, 0, 2, 0, 3, 2, 2, 0]);
    assert_eq!(traced.full.prints, [1, 2, 3, 4]);
    assert_eq!(traced.cross.links, [0, 0, 1], "from 0 to the other host, and back");
    assert_eq!(traced.cross.prints, [3, 1]);
    let Facts { pages, servers, hosts, links, seconds, local, origins, broken, .. } = traced.facts;
    assert_eq!((pages, servers, hosts, links, local, broken), (4, 2, 2, 9, 6, None));
    assert_eq!(seconds, 5.0);
    assert_eq!(traced.facts.per_page, (3.0, 3.0), "of the pages that have links");
    assert_eq!(traced.facts.unique_per_page, (8.0 / 3.0, 3.0));
    assert_eq!((traced.facts.busy, traced.facts.parked), (4.0, 1.0));
    let read::Origins { new, page, host, elsewhere } = origins;
    assert_eq!((new, page, host, elsewhere), (4, 1, 2, 2));
}

#[test]
fn torn_and_foreign_files_are_reported_with_their_offset() {
    let whole = written();
    let full = read_file(&whole, u64::MAX).expect("a trace").full.links;
    let torn = read_file(&whole[..whole.len() - 30], u64::MAX).expect("whole before its end");
    assert_eq!(torn.full.links, full[..7], "the page that was cut is left out");
    let broken = torn.facts.broken.expect("it is reported");
    assert!(broken.to_string().contains("ends too early"), "{broken}");
    let mut changed = whole.clone();
    changed[110] ^= 1; // in the second page
    let changed = read_file(&changed, u64::MAX).expect("whole before");
    assert_eq!(changed.full.links, full[..4]);
    assert!(changed.facts.broken.expect("reported").to_string().contains("wrong checksum"));
    for (bytes, says) in [
        (&b""[..], "is no trace"),
        (b"[job]\nname = \"a configuration of some length\"\n", "is no trace"),
        (&whole[..20], "is no trace"),
        (&whole[..24], "has no links"),
        (&whole[..60], "ends too early"),
    ] {
        let failure = read_file(bytes, u64::MAX).expect_err("nothing to use");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.text.contains(says), "{}: {says}", failure.text);
    }
    assert_eq!(read_file(&whole, 5).expect("a part").full.links, full[..7], "whole pages");
}

#[test]
fn names_are_those_of_files_or_jobs_and_differ() {
    let paths = ["a/x.trace", "b/x.trace", "jobs/one/trace", "trace", "a b/ü.trace"];
    let found = names(&paths.map(PathBuf::from));
    assert_eq!(found, ["x", "x-2", "one", "trace", "_"]);
}

#[test]
fn sizes_are_powers_of_two() {
    assert_eq!(power_of_two("262_144"), Ok(1 << 18));
    assert!(power_of_two("1000").is_err() && power_of_two("0").is_err());
    assert!(power_of_two("many").is_err());
}

#[test]
fn replays_count_by_window() {
    let links: Vec<u32> = (0..250).collect();
    let misses = replay(&links, &mut |url| url >= 125, &|_| {});
    assert_eq!(misses.iter().sum::<u32>(), 125);
    assert_eq!((misses[0], misses[49], misses[50], misses[99]), (2, 3, 0, 0));
}
