//! Judges what all members do at one global time, with knowledge that none of them has.
//!
//! It looks at all processes after each event, and at each process just before anything happens to
//! it and just before its own count runs out. Permission to ask begins at an event, since the end
//! of each settling time is one. So nothing between the events escapes it.

use super::world::{Process, Rule};
use crate::cluster::Partition;
use std::collections::{BTreeMap, BTreeSet};

/// A multiple of all numbers up to 24, so that shares of the pace are whole numbers.
const PACE: u64 = 5_354_228_880;

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// When each job last asked for each partition, by partition and job.
    asks: BTreeMap<(u16, u32), u64>,
    /// The partitions that each process holds, as it was reported.
    held: BTreeMap<u32, BTreeSet<Partition>>,
    /// The partitions that each process has been asked to release.
    given_up: BTreeMap<u32, BTreeSet<Partition>>,
}

impl Judge {
    /// Notes that a process reports a partition as taken.
    pub(super) fn taken(&mut self, process: &Process, partition: Partition) -> Result<(), String> {
        let held = self.held.entry(process.id).or_default();
        let given = self.given_up.entry(process.id).or_default();
        given.remove(&partition);
        expect(held.insert(partition), || format!("{} took {partition} twice", process.name))
    }

    /// Notes that a process is asked to give a partition up.
    pub(super) fn give_up(
        &mut self,
        process: &Process,
        partition: Partition,
    ) -> Result<(), String> {
        let is_held = self.held.entry(process.id).or_default().contains(&partition);
        let is_first = self.given_up.entry(process.id).or_default().insert(partition);
        expect(is_held && is_first, || format!("{} gave {partition} up twice", process.name))
    }

    /// Notes that a process doesn't hold a partition any more.
    pub(super) fn ended(&mut self, process: &Process, partition: Partition) -> Result<(), String> {
        let was_held = self.held.entry(process.id).or_default().remove(&partition);
        expect(was_held, || format!("{} lost {partition}, which it had not", process.name))
    }

    /// Returns whether a process holds a partition, as it was reported.
    pub(super) fn holds(&self, process: &Process, partition: Partition) -> bool {
        self.held.get(&process.id).is_some_and(|held| held.contains(&partition))
    }

    /// Law: requests of two jobs to one partition are at least a settling time apart. (So no two
    /// ask at once.) `at` may be in the past, if nothing has happened to the process since.
    pub(super) fn asks(&mut self, process: &Process, at: u64, rule: Rule) -> Result<(), String> {
        let local = process.clock.local(at);
        for partition in Partition::all().take(usize::from(rule.partitions)) {
            if !process.member.may_ask(partition, local) {
                continue;
            }
            let is_held = self.holds(process, partition);
            expect(is_held, || format!("{} asks {partition}, not held", process.name))?;
            let number = partition.number();
            for ((_, job), other) in self.asks.range((number, 0)..=(number, u32::MAX)) {
                let is_apart = *job == process.job || other.abs_diff(at) >= rule.settle_us;
                expect(is_apart, || {
                    format!("{partition}: {} asks at {at}, job {job} at {other}", process.name)
                })?;
            }
            let last = self.asks.entry((number, process.job)).or_default();
            *last = at.max(*last);
        }
        Ok(())
    }

    /// Law: the sum of 1/n over the processes that may ask is at most 1.
    pub(super) fn pace<'a>(
        processes: impl Iterator<Item = &'a Process>,
        at: u64,
        rule: Rule,
    ) -> Result<(), String> {
        let mut sum = 0;
        let mut who = String::new();
        for process in processes {
            let local = process.clock.local(at);
            let mut all = Partition::all().take(usize::from(rule.partitions));
            if all.any(|partition| process.member.may_ask(partition, local)) {
                sum += PACE / u64::from(process.member.nodes());
                who += &format!(" {} 1/{}", process.name, process.member.nodes());
            }
        }
        expect(sum <= PACE, || format!("the pace is too fast at {at}:{who}"))
    }
}

/// Returns an error unless a law holds.
pub(super) fn expect(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}
