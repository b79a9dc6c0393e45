//! The study of one trace: all policies at all sizes, on both of its streams.

use super::misses::{Misses, window};
use super::policy::{Job, Policy};
use super::read::{Facts, Traced};
use super::stream::Stream;
use super::watch::Watch;
use crate::seen::cache::Replacement;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The results of replaying one trace under all policies.
#[derive(Debug)]
pub(super) struct Study {
    /// The name of the trace.
    pub(super) name: String,
    /// The statistics of the trace.
    pub(super) facts: Facts,
    /// The results for the stream of all links.
    pub(super) full: Curves,
    /// The results for the stream of links to other processes; `None` if there are none.
    pub(super) cross: Option<Curves>,
}

impl Study {
    /// Replays a trace on `threads` threads.
    pub(super) fn of(name: &str, traced: &Traced, threads: usize, watch: &Watch) -> Self {
        let full = Curves::of(&traced.full, threads, &format!("{name}: all links"), watch);
        let cross = (!traced.cross.links.is_empty())
            .then(|| Curves::of(&traced.cross, threads, &format!("{name}: links across"), watch));
        Self { name: name.to_owned(), facts: traced.facts.clone(), full, cross }
    }

    /// Returns the number of connections that share the cache: the mean number of those on a visit
    /// to a server, at least one.
    pub(super) fn connections(&self) -> f64 {
        self.facts.busy.max(1.0)
    }
}

/// The misses of all policies on one stream.
#[derive(Debug)]
pub(super) struct Curves {
    /// The number of links in the stream.
    pub(super) links: usize,
    /// The number of distinct URLs in the stream.
    pub(super) urls: usize,
    levels: usize,
    /// The misses of each policy, in the order of [`Policy::ALL`].
    misses: Vec<Misses>,
}

impl Curves {
    /// Replays a stream under all policies on `threads` threads. `what` names it in the progress
    /// line.
    pub(super) fn of(stream: &Stream, threads: usize, what: &str, watch: &Watch) -> Self {
        let jobs = Job::all(stream);
        watch.begin(what, (jobs.len() * stream.links.len()) as u64);
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let misses = job.run(stream, &|links| watch.more(links as u64));
                done.lock().expect("nobody panics with it in hand").push((*job, misses));
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().for_each(|worker| worker.join().expect("a replay panicked"));
        });
        let done = done.into_inner().expect("nobody panicked with it in hand");
        let misses = Policy::ALL.map(|policy| put_together(&done, policy, stream.levels()));
        let (links, urls, levels) = (stream.links.len(), stream.urls(), stream.levels());
        Self { links, urls, levels, misses: misses.into() }
    }

    /// Returns the number of cache levels; the last one has room for all URLs.
    pub(super) fn levels(&self) -> usize {
        self.levels
    }

    /// Returns the number of misses of a policy with a cache of 2^level entries.
    pub(super) fn misses(&self, policy: Policy, level: usize) -> u64 {
        self.of_policy(policy).total(level)
    }

    /// Returns the misses of a policy with a cache of 2^level entries, as a share of all links.
    pub(super) fn rate(&self, policy: Policy, level: usize) -> f64 {
        self.misses(policy, level) as f64 / self.links as f64
    }

    /// Returns the misses of a policy as a ratio to MIN's at the same level; `None` if MIN has
    /// none.
    pub(super) fn against_min(&self, policy: Policy, level: usize) -> Option<f64> {
        let min = self.misses(Policy::Min, level);
        (min > 0).then(|| self.misses(policy, level) as f64 / min as f64)
    }

    /// Returns the number of links and of misses in window number `at` of the stream.
    pub(super) fn in_window(&self, policy: Policy, level: usize, at: usize) -> (usize, u32) {
        let links = window(self.links, at).len();
        (links, self.of_policy(policy).in_window(level, at))
    }

    /// Returns the share of links whose URL is new: the miss rate of an unlimited cache.
    pub(super) fn floor(&self) -> f64 {
        self.urls as f64 / self.links as f64
    }

    fn of_policy(&self, policy: Policy) -> &Misses {
        &self.misses[policy as usize]
    }
}

/// Returns the misses of a policy at all levels, put together from the jobs that are done.
fn put_together(done: &[(Job, Misses)], policy: Policy, levels: usize) -> Misses {
    let of = |wanted: Job| {
        let found = done.iter().find(|(job, _)| *job == wanted);
        &found.expect("every job is done").1
    };
    let replacement = match policy {
        Policy::Clock => Replacement::Clock,
        Policy::Random => Replacement::Random,
        whole => return of(Job::Whole(whole)).clone(),
    };
    let sized = (0..levels - 1).map(|level| of(Job::Sized(replacement, level)).row(0));
    let infinite = of(Job::Whole(Policy::Infinite)).row(levels - 1);
    Misses::of_levels(sized.chain([infinite]).collect())
}
