//! URLs of histories by number, their payloads, and random draws.

use super::*;

pub(super) fn url(server: usize) -> String {
    let scheme = if server / DOMAINS == 1 { "https" } else { "http" };
    let port = if server / DOMAINS == 3 { ":8080" } else { "" };
    format!("{scheme}://{}.d{}.com{port}/", prefix(server), server % DOMAINS)
}

/// What is queued for a URL: a few bytes, its number, and the page on which it was found.
pub(super) fn payload(number: u32) -> Vec<u8> {
    let via = format!("http://via.test/{}", number / 6);
    long_payload(number, "", if number.is_multiple_of(4) { "" } else { &via })
}

/// The same with a longer target, found on this page.
pub(super) fn long_payload(number: u32, rest: &str, via: &str) -> Vec<u8> {
    let (third, fifth) = (number as usize % 3, u8::from(number.is_multiple_of(5)));
    let mut payload = vec![b"LER"[third], fifth, third as u8];
    payload.extend_from_slice(format!("/{number}/{rest}\n{via}").as_bytes());
    payload
}

/// The number of the URL with this payload.
pub(super) fn number_of(payload: &[u8]) -> u32 {
    number_in(payload).expect("targets begin with numbers")
}

/// What frontiers ask of what comes from the disk.
pub(super) fn is_payload(payload: &[u8]) -> bool {
    number_in(payload).is_some()
}

fn number_in(payload: &[u8]) -> Option<u32> {
    let target = payload.get(3..)?.strip_prefix(b"/")?;
    let digits = target.split(|byte| *byte == b'/').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Less than so many milliseconds; one in eight is none at all.
pub(super) fn time(random: &mut Random, ms: u64) -> Duration {
    let us = if random.one_in(8) { 0 } else { random.below(ms * 1_000) };
    Duration::from_micros(us)
}

/// Seeds from 1 to this: so many, or as many as `SEEDS=N` asks for.
pub(super) fn seeds(usual: u64) -> u64 {
    std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
