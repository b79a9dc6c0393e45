//! One step of a profile: a crawl with a given number of connections, and its measurements.

use crate::commands::{Exit, Failure, inputs, settings};
use crate::conf::{Conf, Profile};
use crate::engine::Engine;
use crate::engine::contract::StopReason;
use crate::ground::stats::{Histogram, Meter, Stage};
use crate::os::disk::OsDisk;
use crate::os::{self, Usage, View, signal};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What was measured between the warm-up and the end of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    /// The number of open connections allowed.
    pub(super) connections: usize,
    /// Which of the crawls with this number of connections it is, counted from 1: each is repeated
    /// to see how results vary.
    pub(super) repeat: u32,
    /// The pages per second of the slowest and of the fastest crawl with this number of
    /// connections. `None` if there was only one, and in every step that [`medians`] did not
    /// return.
    pub(super) spread: Option<(f64, f64)>,
    /// The number of pages fetched.
    pub(super) pages: u64,
    /// The number of bytes received, after TLS has decrypted them.
    pub(super) bytes: u64,
    /// The number of URLs found that were new to the crawl: they cost more than known ones.
    pub(super) urls_new: u64,
    /// The number of connections that the crawl began to open.
    pub(super) opened: u64,
    /// The requests without a complete reply.
    pub(super) failed: Failed,
    /// The CPU time used by the crawl, and the wall time.
    pub(super) usage: Usage,
    /// The CPU time in microseconds of the lab, which serves the synthetic web; `None` if no lab
    /// was crawled.
    pub(super) lab_us: Option<u64>,
    /// The loop's lag in microseconds: how long what is ready waits for the loop.
    pub(super) lag_us: Histogram,
    /// Whether the crawl ended early because nothing was left to fetch.
    pub(super) ran_dry: bool,
    /// For each of [`ACCEPTED`], the number of servers that accept so many requests on one
    /// connection, of those that have shown it by the end of the crawl.
    pub(super) accepted: [u64; ACCEPTED.len()],
}

/// The requests of a step without a complete reply.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Failed {
    /// The number of all of them.
    pub(super) lost: u64,
    /// The number of those whose time limit had passed.
    pub(super) timed_out: u64,
}

/// Classes of numbers of requests that a server accepts on one connection: the least of the class,
/// and its name. 1 is HTTP/1.0, 100 what most servers of 2003 were set to.
pub(super) const ACCEPTED: [(u32, &str); 7] = [
    (1, "1"),
    (2, "2 to 9"),
    (10, "10 to 49"),
    (50, "50 to 99"),
    (100, "100"),
    (101, "101 to 999"),
    (1_000, "1,000 or more"),
];

/// Returns the step in which most servers have shown how many requests they accept on one
/// connection, and their number; `None` if no server has.
pub(super) fn best_known(steps: &[Step]) -> Option<(&Step, u64)> {
    let known = steps.iter().map(|step| (step, step.accepted.iter().sum()));
    known.max_by_key(|(_, servers)| *servers).filter(|(_, servers)| *servers > 0)
}

/// Counts the servers of each of [`ACCEPTED`] by how many requests they accept.
pub(super) fn classes_of(accepted: impl Iterator<Item = u32>) -> [u64; ACCEPTED.len()] {
    let mut counts = [0; ACCEPTED.len()];
    for requests in accepted {
        let above = ACCEPTED.partition_point(|(least, _)| *least <= requests);
        counts[above.saturating_sub(1)] += 1;
    }
    counts
}

impl Step {
    /// Returns the length of the measurement in seconds of wall time.
    pub(super) fn seconds(&self) -> f64 {
        self.usage.wall.as_secs_f64().max(1e-6)
    }

    /// Returns the number of pages fetched per second.
    pub(super) fn rate(&self) -> f64 {
        self.pages as f64 / self.seconds()
    }

    /// Returns the megabits received per second.
    pub(super) fn megabits(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e6 / self.seconds()
    }

    /// Returns the share of a core that the loop's thread used in user mode.
    pub(super) fn user(&self) -> f64 {
        self.usage.looping.user_us as f64 / 1e6 / self.seconds()
    }

    /// Returns the share of a core that the loop's thread used in the kernel.
    pub(super) fn system(&self) -> f64 {
        self.usage.looping.system_us as f64 / 1e6 / self.seconds()
    }

    /// Returns the share of a core that the loop's thread used, in user mode and in the kernel
    /// together.
    pub(super) fn busy(&self) -> f64 {
        self.user() + self.system()
    }

    /// Returns the share of the time for which the loop had work, but somebody else the core.
    pub(super) fn taken(&self) -> f64 {
        self.usage.taken_us() as f64 / 1e6 / self.seconds()
    }

    /// Returns the share of the time for which the loop had no work.
    pub(super) fn idle(&self) -> f64 {
        (1.0 - self.busy() - self.taken()).max(0.0)
    }

    /// Returns the share of a core that a stage of the loop used.
    pub(super) fn share(&self, stage: Stage) -> f64 {
        self.usage.of(stage).cpu_ns as f64 / 1e9 / self.seconds()
    }

    /// Returns the share of a core that the lab used; `None` if no lab was crawled.
    pub(super) fn lab(&self) -> Option<f64> {
        Some(self.lab_us? as f64 / 1e6 / self.seconds())
    }

    /// Returns the number of new URLs found per page.
    pub(super) fn found(&self) -> f64 {
        self.urls_new as f64 / self.pages.max(1) as f64
    }

    /// Returns the CPU time of all threads, in microseconds per page.
    pub(super) fn page_us(&self) -> f64 {
        self.usage.cpu_us() as f64 / self.pages.max(1) as f64
    }
}

/// Returns, for each of the numbers `connections`, the step in `all` with the median throughput (of
/// an even number, the lower of the two in the middle).
pub(super) fn medians(all: &[Step], connections: &[usize]) -> Vec<Step> {
    let median = |connections: &usize| {
        let of = all.iter().filter(|step| step.connections == *connections);
        let mut repeats: Vec<&Step> = of.collect();
        repeats.sort_by(|one, next| one.rate().total_cmp(&next.rate()));
        let (first, last) = (repeats.first()?.rate(), repeats.last()?.rate());
        let spread = (repeats.len() > 1).then_some((first, last));
        Some(Step { spread, ..repeats[(repeats.len() - 1) / 2].clone() })
    };
    connections.iter().filter_map(median).collect()
}

/// The totals of a crawl at a moment; the difference of two makes a [`Step`].
#[derive(Clone, Debug)]
struct Reading {
    pages: u64,
    bytes: u64,
    urls_new: u64,
    opened: u64,
    lost: u64,
    timed_out: u64,
    usage: Usage,
    lab_us: Option<u64>,
    lag_us: Histogram,
}

impl Reading {
    fn of(view: &View<'_>, lab_us: Option<u64>) -> Self {
        let counts = view.engine.counts();
        let of = |is: &dyn Fn(&str) -> bool| {
            counts.outcomes.iter().filter(|(name, _)| is(name)).map(|(_, count)| *count).sum()
        };
        Self {
            pages: counts.pages,
            bytes: counts.received_bytes,
            urls_new: counts.urls_new,
            opened: counts.connections,
            lost: of(&|name| LOST.contains(&name) || is_timeout(name)),
            timed_out: of(&is_timeout),
            usage: view.usage.clone(),
            lab_us,
            lag_us: view.lag_us.clone(),
        }
    }

    fn since(&self, earlier: &Self, connections: usize, ran_dry: bool) -> Step {
        Step {
            connections,
            repeat: 1,
            spread: None,
            pages: self.pages - earlier.pages,
            bytes: self.bytes - earlier.bytes,
            urls_new: self.urls_new - earlier.urls_new,
            opened: self.opened - earlier.opened,
            failed: Failed {
                lost: self.lost - earlier.lost,
                timed_out: self.timed_out - earlier.timed_out,
            },
            usage: self.usage.since(&earlier.usage),
            lab_us: self.lab_us.zip(earlier.lab_us).map(|(now, then)| now.saturating_sub(then)),
            lag_us: self.lag_us.since(&earlier.lag_us),
            ran_dry,
            accepted: Default::default(),
        }
    }
}

/// Outcomes of requests without a complete reply, other than timeouts.
const LOST: [&str; 7] = [
    "connect-refused",
    "unreachable",
    "tls-closed",
    "tls-broken",
    "reset",
    "closed-early",
    "cut-short",
];

fn is_timeout(name: &str) -> bool {
    name.ends_with("timed-out")
}

/// How often a step is checked for its end, at least.
const LOOKS: u32 = 50;

/// Crawls for one step into `directory`. `lab_us` returns the lab's CPU time so far in
/// microseconds, `None` if no lab is crawled.
///
/// # Errors
/// The crawl could not begin, or was stopped, or there was nothing to measure.
pub(super) fn run(
    conf: Conf,
    profile: &Profile,
    directory: &Path,
    lab_us: &dyn Fn() -> Option<u64>,
) -> Result<Step, Failure> {
    let disk = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Disk, format!("{}: {error}", directory.display()))
    };
    let system = |error: &dyn std::fmt::Display| Failure::new(Exit::System, error);
    let mut conf = conf;
    directory.clone_into(&mut conf.job.directory);
    fs::create_dir_all(directory).map_err(|error| disk(&error))?;
    let seeds = inputs::seeds(&conf)?;
    let key = signal::entropy();
    let mut settings = settings::engine(&conf, key);
    settings.rating.table = inputs::qualities(&conf, key)?;
    settings.signing = inputs::signing(&conf)?;
    settings.keep_no_state();
    let files = OsDisk::open(directory).map_err(|error| disk(&error))?;
    let period = (profile.step_time / LOOKS).min(Duration::from_millis(200));
    let mut world =
        os::World::new(&settings::world(&conf, period)).map_err(|error| system(&error))?;
    let (meter, now) = (Meter::new(signal::tick), world.now());
    let mut engine = Engine::new(settings, &seeds, Box::new(files), meter, now)
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    let mut watch = Watch::new(profile, lab_us);
    world.run(&mut engine, &mut |view| watch.looks(view)).map_err(|error| system(&error))?;
    if let Some(trouble) = engine.fatal_error() {
        return Err(disk(trouble));
    }
    if engine.stop_reason() == Some(StopReason::Interrupted) {
        return Err(Failure::new(
            Exit::Interrupted,
            "stopped by a signal: no results were written",
        ));
    }
    let step = watch.step(conf.connections.open_max)?;
    Ok(Step { accepted: classes_of(engine.requests_accepted()), ..step })
}

/// Watches a crawl: takes the totals at the end of the warm-up and at the end of the step, and then
/// stops the crawl.
struct Watch<'a> {
    profile: &'a Profile,
    lab_us: &'a dyn Fn() -> Option<u64>,
    first: Option<Reading>,
    last: Option<Reading>,
    is_over: bool,
}

impl<'a> Watch<'a> {
    fn new(profile: &'a Profile, lab_us: &'a dyn Fn() -> Option<u64>) -> Self {
        Self { profile, lab_us, first: None, last: None, is_over: false }
    }

    fn looks(&mut self, view: View<'_>) {
        if self.is_over {
            // The step has ended: what is unfinished is not measured.
            return;
        }
        let reading = Reading::of(&view, (self.lab_us)());
        let Some(first) = &self.first else {
            if reading.usage.wall >= self.profile.warm_up {
                self.first = Some(reading);
            }
            return;
        };
        let wall = reading.usage.wall.saturating_sub(first.usage.wall);
        let pages = reading.pages - first.pages;
        self.is_over = wall >= self.profile.step_time
            || self.profile.step_pages.is_some_and(|most| pages >= most);
        self.last = Some(reading);
        if self.is_over {
            view.engine.stop(view.now, StopReason::Time);
        }
    }

    fn step(self, connections: usize) -> Result<Step, Failure> {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            let text = format!(
                "with {connections} connections there was nothing left to fetch within the \
                 warm-up; take a larger web (web.pages), or shorten profile.warm_up"
            );
            return Err(Failure::new(Exit::Usage, text));
        };
        Ok(last.since(&first, connections, !self.is_over))
    }
}
