//! Property tests: every parser of input from the network, a page or an operator, with mutated
//! samples.
//!
//! One body, two drivers. A [`Target`] has samples and a `check` that accepts any bytes and panics
//! if a law of the parser is broken. It depends on the bytes alone, so a fuzzer can drive it as it
//! is. Here a seeded loop drives it: samples as they are, then mutated, spliced and cut. A failure
//! prints the bytes that caused it: add them to the samples. The canary is a target with a planted
//! bug: a loop that doesn't find it is broken itself.

mod coding;
mod conf;
mod links;
mod log;
mod response;
mod robots;
#[cfg(feature = "study")]
mod script;
mod seeds;
mod target;
mod url;

use crate::trials;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sted::ground::random::Random;
use target::{Target, seeded};

/// The number of inputs made from the samples of one target.
const ROUNDS: usize = 15_000;
/// The longest input, in bytes.
const BYTES_MAX: usize = 8 << 10;

/// All targets by name.
const TARGETS: &[(&str, Target)] = &[
    ("coding", coding::TARGET),
    ("conf", conf::TARGET),
    ("links", links::TARGET),
    ("log", log::TARGET),
    ("response", response::TARGET),
    ("robots", robots::TARGET),
    #[cfg(feature = "study")]
    ("script", script::TARGET),
    ("seeds", seeds::TARGET),
    ("url", url::TARGET),
];

/// Runs `rounds` inputs; returns the first that breaks a law.
fn first_broken(target: &Target, seed: u64, rounds: usize) -> Option<Vec<u8>> {
    let broken = |bytes: &[u8]| catch_unwind(AssertUnwindSafe(|| (target.check)(bytes))).is_err();
    let whole = target.samples.iter().find(|sample| broken(sample));
    if let Some(sample) = whole {
        return Some(sample.to_vec());
    }
    let mut random = Random(seed);
    let mut inputs = (0..rounds).map(|_| input(target, &mut random));
    inputs.find(|bytes| broken(bytes))
}

fn hold(target: &Target) {
    if let Some(bytes) = first_broken(target, 0x5EED, ROUNDS) {
        panic!("a law is broken by these bytes: {}", bytes.escape_ascii());
    }
}

/// Checks the laws of all targets on inputs of other seeds.
fn hold_all(seeds: &[u64], rounds: usize) {
    let broken = |seed| {
        TARGETS.iter().find_map(|(name, target)| {
            let bytes = first_broken(target, seed, rounds)?;
            Some(format!("a law of {name} is broken by these bytes: {}", bytes.escape_ascii()))
        })
    };
    trials::each(
        seeds,
        |seed| broken(seed).map_or(Ok(()), Err),
        |seed| format!("(make props SEED={seed}) add the bytes to the samples of the target"),
    );
}

/// Returns a sample, mutated a few times.
fn input(target: &Target, random: &mut Random) -> Vec<u8> {
    let mut bytes = random.pick(target.samples).to_vec();
    for _ in 0..=random.below(6) {
        mutate(&mut bytes, target, random);
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

fn mutate(bytes: &mut Vec<u8>, target: &Target, random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let until = at + random.below(bytes.len() - at + 1).min(40);
    match random.below(8) {
        0 => bytes.insert(at, byte(random)),
        1 if at < bytes.len() => bytes[at] = byte(random),
        2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        3 => drop(bytes.drain(at..until)),
        4 => {
            let copy = bytes[at..until].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        5 => {
            let other = random.pick(target.samples);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.below(other.len() + 1)..]);
        }
        6 if random.below(4) == 0 => bytes.truncate(at),
        _ => {
            let word = random.pick(target.words).as_bytes();
            let replaced = if random.below(2) == 0 { at..until } else { at..at };
            bytes.splice(replaced, word.iter().copied());
        }
    }
}

/// Returns a random byte; one in four is a byte that parsers look for.
fn byte(random: &mut Random) -> u8 {
    const SPECIAL: &[u8] = b"\0\t\n\r \"#$%&'*+,-./0:;<=>?@[\\]^_`a{|}~\x7f\x80\xc3\xff";
    if random.one_in(4) { random.pick(SPECIAL) } else { (random.word() >> 56) as u8 }
}

#[test]
fn coding_holds() {
    hold(&coding::TARGET);
}

#[test]
fn conf_holds() {
    hold(&conf::TARGET);
}

#[test]
fn links_hold() {
    hold(&links::TARGET);
}

#[test]
fn log_holds() {
    hold(&log::TARGET);
}

#[test]
fn response_holds() {
    hold(&response::TARGET);
}

#[test]
fn robots_hold() {
    hold(&robots::TARGET);
}

#[cfg(feature = "study")]
#[test]
fn script_holds() {
    hold(&script::TARGET);
}

#[test]
fn seeds_hold() {
    hold(&seeds::TARGET);
}

#[test]
fn url_holds() {
    hold(&url::TARGET);
}

/// Seeds that were never run before: `make fresh`.
#[test]
#[ignore = "takes its time, with other seeds each time: make fresh"]
fn fresh() {
    trials::fresh_seeds("properties", |seeds| hold_all(seeds, ROUNDS / 50));
}

/// One seed again, or seeds 1 to N: `make props SEED=7`, `make props N=100`.
#[test]
#[ignore = "more inputs are tried by hand: make props"]
fn more() {
    let seeds = match trials::asked("STED_PROPS_SEED") {
        Some(seed) => vec![seed],
        None => (1..=trials::asked("STED_PROPS_N").unwrap_or(100)).collect(),
    };
    hold_all(&seeds, ROUNDS / 50);
    println!("{} seeds, no law broken", seeds.len());
}

/// A parser with a bug: it trusts the number of bytes that its input announces.
#[test]
fn the_canary_is_found() {
    let check = |bytes: &[u8]| {
        let announced = bytes.strip_prefix(b"take ").and_then(|rest| rest.first());
        if let Some(digit) = announced.filter(|byte| byte.is_ascii_digit()) {
            assert!(!bytes[bytes.len() - usize::from(digit - b'0')..].contains(&b'!'));
        }
    };
    let samples: &[&[u8]] = &[b"take 3 of these", b"take 2"];
    let canary = Target { samples, words: &["!"], check };
    let quiet = Target { check: |_| {}, ..canary };
    assert!(first_broken(&canary, 0x5EED, ROUNDS).is_some(), "the planted bug is not found");
    assert!(first_broken(&quiet, 0x5EED, ROUNDS).is_none(), "a bug where there is none");
}
