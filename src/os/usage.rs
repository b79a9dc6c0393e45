//! The resources that the process has used since the loop began: by stage, by thread, by CPU mode.
//!
//! Stages are metered in wall time (decision 38), and the loop's thread by the system's CPU clock.
//! The CPU time of the stage that calls the poller is measured in one turn of sixteen; the rest of
//! the thread's CPU time is shared among the other stages in proportion to their wall time. So the
//! sum is right by construction. [`Usage::accounted`] shows whether the *shares* are right: it is
//! metered time divided by CPU time. A value above one means that the system gave the CPU core to
//! another process, a value below one that something is not metered.
//!
//! The cost of metering is reported, too: the number of the meter's clock readings times the cost
//! of one, which is measured in a series. A reading is a vDSO call, whose code and data stay in the
//! caches of a busy loop.
//!
//! Cost: three system calls for each [`Usage`] that is read, two more in one turn of sixteen; 0.1
//! ms the first time.

use super::signal::{self, Cpu};
use crate::ground::stats::{Account, Meter, STAGES, Stage};
use std::time::Duration;

/// The resources used since the loop began, or between two readings.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// The wall time that has passed.
    pub wall: Duration,
    /// CPU time of the event loop's thread.
    pub looping: Cpu,
    /// CPU time of the side thread that runs jobs, in microseconds.
    pub jobs_us: u64,
    /// CPU time of the side thread that serves the control socket, in microseconds.
    pub control_us: u64,
    /// CPU time of all other threads, which resolve names, in microseconds.
    pub names_us: u64,
    /// CPU time that metering took on the loop's thread, in nanoseconds.
    pub metering_ns: u64,
    /// The usage of each stage, in the order of [`Stage::ALL`].
    pub stages: [StageUsage; STAGES],
}

/// The usage of one stage of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageUsage {
    /// Wall time, in nanoseconds.
    pub wall_ns: u64,
    /// CPU time, in nanoseconds: measured for the poller, an estimated share for the other stages.
    pub cpu_ns: u64,
    /// How often the stage began.
    pub calls: u64,
    /// The bytes that the stage worked on; 0 if it doesn't report them.
    pub bytes: u64,
}

impl Usage {
    /// Returns the usage of one stage.
    pub fn of(&self, stage: Stage) -> StageUsage {
        self.stages[stage as usize]
    }

    /// Returns the metered wall time of the loop, without sleep, divided by the CPU time of its
    /// thread.
    pub fn accounted(&self) -> f64 {
        let metered_ns = self.busy_ns() + self.of(Stage::Wait).cpu_ns;
        metered_ns as f64 / (self.looping.sum_us() as f64 * 1e3).max(1.0)
    }

    /// Returns the share of the loop's CPU time that metering takes.
    pub fn metering(&self) -> f64 {
        self.metering_ns as f64 / (self.looping.sum_us() as f64 * 1e3).max(1.0)
    }

    /// Returns the CPU time of all threads, in microseconds.
    pub fn cpu_us(&self) -> u64 {
        self.looping.sum_us() + self.jobs_us + self.control_us + self.names_us
    }

    /// Returns what was used since `earlier`, an older reading.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut stages = self.stages;
        for (stage, before) in stages.iter_mut().zip(&earlier.stages) {
            stage.wall_ns = stage.wall_ns.saturating_sub(before.wall_ns);
            stage.cpu_ns = stage.cpu_ns.saturating_sub(before.cpu_ns);
            stage.calls -= before.calls;
            stage.bytes -= before.bytes;
        }
        Self {
            wall: self.wall.saturating_sub(earlier.wall),
            looping: self.looping.since(earlier.looping),
            jobs_us: self.jobs_us.saturating_sub(earlier.jobs_us),
            control_us: self.control_us.saturating_sub(earlier.control_us),
            names_us: self.names_us.saturating_sub(earlier.names_us),
            metering_ns: self.metering_ns.saturating_sub(earlier.metering_ns),
            stages,
        }
    }

    fn busy_ns(&self) -> u64 {
        let busy = Stage::ALL.iter().filter(|stage| **stage != Stage::Wait);
        busy.map(|stage| self.of(*stage).wall_ns).sum()
    }

    /// Distributes the CPU time of the loop's thread over the stages. The poller gets `polling_ns`,
    /// which was measured; the others share the rest.
    fn share(&mut self, polling_ns: u64) {
        let busy_ns = self.busy_ns().max(1);
        let cpu_ns = self.looping.sum_us() * 1_000;
        let wait = &mut self.stages[Stage::Wait as usize];
        wait.cpu_ns = polling_ns.min(wait.wall_ns).min(cpu_ns);
        let left_ns = u128::from(cpu_ns - wait.cpu_ns);
        for stage in Stage::ALL.into_iter().filter(|stage| *stage != Stage::Wait) {
            let usage = &mut self.stages[stage as usize];
            let share_ns = u128::from(usage.wall_ns) * left_ns / u128::from(busy_ns);
            usage.cpu_ns = u64::try_from(share_ns).unwrap_or(u64::MAX);
        }
    }
}

/// The CPU time of the side threads that are known, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SideCpu {
    /// Of the thread that runs jobs.
    pub(super) jobs_ns: u64,
    /// Of the thread that serves the control socket.
    pub(super) control_ns: u64,
}

/// Takes readings of the resources that an event loop uses.
#[derive(Debug)]
pub(super) struct Gauge {
    began_ns: u64,
    looping: Cpu,
    process: Cpu,
    side: SideCpu,
    accounts: [Account; STAGES],
    readings: u64,
    /// The cost of one clock reading of the meter, in picoseconds.
    reading_ps: u64,
    polls: u64,
    /// The CPU time of those poller calls that were measured, in nanoseconds.
    measured_ns: u64,
}

/// The CPU time of the poller is measured in one of this many calls.
const SAMPLE: u64 = 16;

impl Gauge {
    /// Starts measuring, when the loop begins. `side` is the CPU time of the side threads so far.
    pub(super) fn begin(meter: &Meter, side: SideCpu) -> Self {
        Self {
            began_ns: signal::tick(),
            looping: signal::thread_cpu(),
            process: signal::process_cpu(),
            side,
            accounts: meter.read(),
            readings: meter.readings(),
            reading_ps: reading_ps(),
            polls: 0,
            measured_ns: 0,
        }
    }

    /// Calls the poller, and measures the CPU time of one call in `SAMPLE`.
    pub(super) fn poll<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        self.polls += 1;
        if !self.polls.is_multiple_of(SAMPLE) {
            return poll();
        }
        let began_ns = signal::thread_cpu_ns();
        let polled = poll();
        self.measured_ns += signal::thread_cpu_ns() - began_ns;
        polled
    }

    /// Returns what was used since [`Self::begin`]. `side` is the CPU time of the side threads so
    /// far.
    pub(super) fn read(&self, meter: &Meter, side: SideCpu) -> Usage {
        let looping = signal::thread_cpu().since(self.looping);
        let process = signal::process_cpu().since(self.process);
        let jobs_us = side.jobs_ns.saturating_sub(self.side.jobs_ns) / 1_000;
        let control_us = side.control_ns.saturating_sub(self.side.control_ns) / 1_000;
        let mut usage = Usage {
            wall: Duration::from_nanos(signal::tick() - self.began_ns),
            looping,
            jobs_us,
            control_us,
            names_us: process.sum_us().saturating_sub(looping.sum_us() + jobs_us + control_us),
            metering_ns: 0,
            stages: [StageUsage::default(); STAGES],
        };
        let read = meter.read();
        for ((stage, now), before) in usage.stages.iter_mut().zip(&read).zip(&self.accounts) {
            stage.wall_ns = now.ticks.saturating_sub(before.ticks);
            (stage.calls, stage.bytes) = (now.calls - before.calls, now.bytes - before.bytes);
        }
        usage.metering_ns = (meter.readings() - self.readings) * self.reading_ps / 1_000;
        let measured = self.polls / SAMPLE;
        let mean_ns = self.measured_ns.checked_div(measured).unwrap_or(0);
        let polling_ns = mean_ns * self.polls;
        usage.share(polling_ns);
        usage
    }
}

/// Measures the cost of one clock reading of the meter in picoseconds: the median of some series of
/// readings.
fn reading_ps() -> u64 {
    const ROW: u64 = 500;
    let mut meter = Meter::new(signal::tick);
    let mut rows = [0; 9];
    for row in &mut rows {
        let began_ns = signal::thread_cpu_ns();
        for _ in 0..ROW / 2 {
            let stage = meter.enter(Stage::Links, 1);
            meter.back(std::hint::black_box(stage));
        }
        *row = (signal::thread_cpu_ns() - began_ns) * 1_000 / ROW;
    }
    rows.sort_unstable();
    rows[rows.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burn(us: u64) {
        let until = signal::thread_cpu_ns() + us * 1_000;
        while signal::thread_cpu_ns() < until {}
    }

    /// A loop that works and sleeps: the stages' CPU time adds up to the thread's, sleep costs
    /// almost nothing, and stages are distinguished.
    #[test]
    fn cpu_time_is_shared_among_stages() {
        let mut meter = Meter::new(signal::tick);
        let mut gauge = Gauge::begin(&meter, SideCpu::default());
        for _ in 0..64 {
            let stage = meter.enter(Stage::Wait, 0);
            gauge.poll(|| std::thread::park_timeout(Duration::from_micros(200)));
            meter.back(stage);
            let stage = meter.enter(Stage::Links, 10);
            burn(600);
            meter.back(stage);
            let stage = meter.enter(Stage::Url, 0);
            burn(200);
            meter.back(stage);
        }
        let usage = gauge.read(&meter, SideCpu::default());
        let cpu_ns: u64 = usage.stages.iter().map(|stage| stage.cpu_ns).sum();
        let all_ns = usage.looping.sum_us() * 1_000;
        assert!(cpu_ns.abs_diff(all_ns) <= all_ns / 100, "{cpu_ns} of {all_ns}");
        assert!(usage.accounted() > 0.95, "what is used is metered: {}", usage.accounted());
        let of_one_ns = usage.metering_ns / (6 * 64);
        assert!((1..2_000).contains(&of_one_ns), "{of_one_ns} ns a reading of the meter");
        let (links, url) = (usage.of(Stage::Links), usage.of(Stage::Url));
        assert_eq!((links.calls, links.bytes, url.calls), (64, 640, 64));
        assert!(links.cpu_ns > url.cpu_ns, "{links:?} {url:?}");
        let wait = usage.of(Stage::Wait);
        assert!(wait.wall_ns > 64 * 100_000 && wait.cpu_ns < wait.wall_ns, "{wait:?}");
        let none = usage.since(&usage);
        assert_eq!((none.cpu_us(), none.of(Stage::Links)), (0, StageUsage::default()));
    }
}
