//! What the loop hands over once a second, for the page and the metrics.

use crate::conf::Conf;
use crate::engine::Engine;
use crate::engine::counts::Counts;
use crate::engine::status::{Status, Wait};
use crate::ground::stats::Histogram;
use crate::ground::time::UnixTime;
use crate::os::{Usage, View};
use crate::{seen, store};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The figures of a run when it began.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    pub(super) counts: Counts,
    pub(super) archive: store::Totals,
}

impl Beginning {
    pub(super) fn of(engine: &Engine) -> Self {
        Self { counts: engine.counts().clone(), archive: engine.archive() }
    }
}

/// The figures of a crawl at one time.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) time: UnixTime,
    pub(super) elapsed: Duration,
    pub(super) status: Status,
    /// The counts of all runs.
    pub(super) counts: Counts,
    pub(super) began: Arc<Beginning>,
    pub(super) archive: store::Totals,
    pub(super) seen: seen::Totals,
    pub(super) looping: Looping,
    /// The memory in use, in the order of [`PARTS`].
    pub(super) memory: [usize; PARTS.len()],
}

/// The figures of the event loop.
#[derive(Debug, Default)]
pub(super) struct Looping {
    pub(super) turns: u64,
    /// The lengths of all turns, in microseconds.
    pub(super) lag_us: Histogram,
    /// The lengths of the turns since the snapshot before.
    pub(super) recent_us: Histogram,
    /// The share of a core that the loop used since the snapshot before.
    pub(super) busy: f64,
    pub(super) usage: Usage,
}

/// The parts whose memory has a bound: the keys of the section `[memory]`.
pub(super) const PARTS: [&str; 4] = ["buffers", "queues", "seen", "robots"];

/// The bounds of a crawl, and its name.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) job: String,
    /// The bounds of memory, in the order of [`PARTS`].
    pub(super) memory: [usize; PARTS.len()],
    /// The free space that the crawl leaves, in bytes.
    pub(super) free_min: u64,
}

impl Bounds {
    pub(super) fn of(conf: &Conf) -> Self {
        let memory = &conf.memory;
        Self {
            job: conf.job.name.clone(),
            memory: [memory.buffers, memory.queues, memory.seen, memory.robots],
            free_min: conf.disk.free_min,
        }
    }
}

/// A snapshot with what the side thread measures itself when somebody asks.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) bounds: &'a Bounds,
    /// The memory of the process.
    pub(super) resident_bytes: Option<u64>,
    /// The free space of the disk of the job directory.
    pub(super) free_bytes: Option<u64>,
}

/// The memory of one part, and its bound.
#[derive(Debug, Serialize)]
pub(super) struct Part {
    pub(super) part: &'static str,
    pub(super) bytes: usize,
    pub(super) max_bytes: usize,
}

impl Shown<'_> {
    /// Returns the memory of each part.
    pub(super) fn memory(&self) -> [Part; PARTS.len()] {
        std::array::from_fn(|at| Part {
            part: PARTS[at],
            bytes: self.snapshot.memory[at],
            max_bytes: self.bounds.memory[at],
        })
    }
}

impl Snapshot {
    /// Collects the present figures of a run. `last` is the snapshot before.
    pub(super) fn of(view: &View<'_>, began: &Arc<Beginning>, last: Option<&Self>) -> Self {
        let engine = &view.engine;
        let mut counts = engine.counts().clone();
        if let Some(last) = last {
            hold(&mut counts, &last.counts);
        }
        Self {
            time: view.now.unix,
            elapsed: engine.elapsed(),
            status: engine.status(),
            counts,
            began: Arc::clone(began),
            archive: engine.archive(),
            seen: engine.seen_totals(),
            looping: Looping::of(view, last.map(|last| &last.looping)),
            memory: [
                engine.held_bytes(),
                engine.frontier().memory_bytes(),
                engine.seen_bytes(),
                engine.rules_bytes(),
            ],
        }
    }

    /// Returns the time of the snapshot, in seconds.
    pub(super) fn unix_s(&self) -> f64 {
        self.time.as_micros() as f64 / 1e6
    }

    /// Returns how much a count has grown in this run.
    pub(super) fn grown(&self, count: impl Fn(&Counts) -> u64) -> f64 {
        count(&self.counts).saturating_sub(count(&self.began.counts)) as f64
    }

    /// Returns how much each count of a table has grown in this run.
    pub(super) fn grown_by<'a, K: Ord + 'a>(
        &'a self,
        table: impl Fn(&'a Counts) -> &'a BTreeMap<K, u64>,
    ) -> impl Iterator<Item = (&'a K, f64)> {
        let before = table(&self.began.counts);
        table(&self.counts).iter().map(move |(name, count)| {
            (name, count.saturating_sub(before.get(name).copied().unwrap_or(0)) as f64)
        })
    }

    /// Returns what each class of waiting servers waits for, in words, by name.
    pub(super) fn wait_texts(&self) -> BTreeMap<String, &'static str> {
        Wait::ALL.map(|wait| (name_of(wait), wait.text())).into()
    }
}

impl Looping {
    fn of(view: &View<'_>, last: Option<&Self>) -> Self {
        let none = Self::default();
        let last = last.unwrap_or(&none);
        let used = view.usage.since(&last.usage);
        let wall_us = (used.wall.as_micros() as f64).max(1.0);
        Self {
            turns: view.turns,
            lag_us: view.lag_us.clone(),
            recent_us: view.lag_us.since(&last.lag_us),
            busy: used.looping.sum_us() as f64 / wall_us,
            usage: view.usage.clone(),
        }
    }
}

/// Returns the name of a value of an enum in JSON.
pub(super) fn name_of(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("an enum without fields");
    value.as_str().expect("its name").to_owned()
}

/// Keeps counts that have gone back at what they were: a reply that could not be archived is
/// subtracted again. Prometheus would take that for a restart, and count all anew.
fn hold(now: &mut Counts, before: &Counts) {
    hold_table(&mut now.outcomes, &before.outcomes);
    hold_table(&mut now.failed, &before.failed);
    hold_table(&mut now.statuses, &before.statuses);
}

fn hold_table<K: Ord + Clone>(now: &mut BTreeMap<K, u64>, before: &BTreeMap<K, u64>) {
    for (name, count) in before {
        let now = now.entry(name.clone()).or_default();
        *now = (*now).max(*count);
    }
}
