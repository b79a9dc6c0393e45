//! Trials by seed: given seeds on all cores, or random seeds for some seconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use sted::ground::random::Random;

/// Runs `judge` with random seeds, several at once, for `STED_FRESH_S` seconds. `judge` panics with
/// the command that repeats each seed that fails.
pub fn fresh_seeds(what: &str, judge: impl Fn(&[u64])) {
    let begun = std::time::Instant::now();
    let time = Duration::from_secs(asked("STED_FRESH_S").unwrap_or(20));
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let first = u64::from(nanos.expect("a clock past 1970").subsec_nanos());
    let mut random = Random(first ^ u64::from(std::process::id()) << 32);
    let mut count = 0;
    while begun.elapsed() < time {
        let seeds: Vec<u64> = (0..16).map(|_| random.below(1 << 40)).collect();
        judge(&seeds);
        count += seeds.len();
    }
    println!("{count} fresh seeds of {what}, no law broken");
}

/// Judges all seeds, as many at once as there are cores; prints each that fails immediately, with
/// its plan.
pub fn each(
    seeds: &[u64],
    judge: impl Fn(u64) -> Result<(), String> + Sync + std::panic::RefUnwindSafe,
    plan: impl Fn(u64) -> String + Sync,
) {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut failed = Vec::new();
        loop {
            let place = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).expect("few seeds");
            let Some(&seed) = seeds.get(place) else { return failed };
            let verdict = std::panic::catch_unwind(|| judge(seed));
            let verdict = verdict.unwrap_or_else(|_| Err("it panicked".to_owned()));
            if let Err(how) = verdict {
                println!("seed {seed} failed: {how}\n  {}", plan(seed));
                failed.push(seed);
            }
        }
    };
    let failed: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it catches panics")).collect()
    });
    assert!(failed.is_empty(), "{} seeds failed: {failed:?}", failed.len());
}

/// Returns a number from an environment variable.
pub fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
