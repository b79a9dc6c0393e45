//! The resources that the process has used since the loop began: by stage, by thread, by CPU mode.
//!
//! Stages are metered in wall time (decision 38), and the loop's thread by the system's CPU clock.
//! The CPU time of the stage that calls the poller is measured in one turn of sixteen; the rest of
//! the thread's CPU time is shared among the other stages in proportion to their wall time. So the
//! sum is right by construction. [`Usage::accounted`] shows whether the *shares* are right: a value
//! below one means that something is not metered. Metered time *beyond* the CPU time is no share of
//! anything: the thread had work, but another process had the core, or another machine if this one
//! is virtual. [`Usage::taken_us`] is that time. The scheduler's statistics add what the meter does
//! not see: how long the thread waited for a core when the poller had something for it.
//!
//! The cost of metering is reported, too: the number of the meter's clock readings times the cost
//! of one, which is measured in a series. A reading is a vDSO call, whose code and data stay in the
//! caches of a busy loop.
//!
//! Cost: three system calls and a file of `/proc` for each [`Usage`] that is read, two more calls
//! in one turn of sixteen; 0.1 ms the first time.

#![expect(clippy::disallowed_methods, reason = "reads the scheduler's statistics")]

use super::signal::{self, Cpu};
use crate::ground::stats::{Account, Meter, STAGES, Stage};
use std::fs;
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
    /// How long the loop's thread waited for a core although it could have run.
    pub queued: Queued,
    /// The usage of each stage, in the order of [`Stage::ALL`].
    pub stages: [StageUsage; STAGES],
}

/// How long a thread waited for a core although it could have run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// The sum of these times, in nanoseconds.
    pub ns: u64,
    /// How often the thread got a core.
    pub times: u64,
}

/// The time in nanoseconds from when a thread may run to when it runs, if the core is idle: what
/// waking a sleeping core takes. A longer wait means that somebody else had the core.
const WAKE_NS: u64 = 50_000;

impl Queued {
    /// Reads the statistics of the calling thread; zeroes if the system keeps none.
    fn of_thread() -> Self {
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        Self::parsed(&text).unwrap_or_default()
    }

    /// Parses a line of the scheduler: nanoseconds on a core, nanoseconds of waiting for one, and
    /// how often the thread got one.
    fn parsed(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().skip(1).map(|number| number.parse().ok());
        Some(Self { ns: numbers.next()??, times: numbers.next()?? })
    }

    fn since(self, earlier: Self) -> Self {
        let times = self.times.saturating_sub(earlier.times);
        Self { ns: self.ns.saturating_sub(earlier.ns), times }
    }

    /// Returns the nanoseconds of waiting beyond what waking an idle core takes.
    fn behind_others_ns(self) -> u64 {
        self.ns.saturating_sub(self.times * WAKE_NS)
    }
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

    /// Returns the share of the CPU time of the loop's thread that the meter has charged to stages,
    /// at most 1: what was metered beyond it is in [`Self::taken_us`].
    pub fn accounted(&self) -> f64 {
        let share = self.metered_ns() as f64 / (self.looping.sum_us() as f64 * 1e3).max(1.0);
        share.min(1.0)
    }

    /// Returns the time in microseconds for which the loop had work but not the core: another
    /// process had it, or another machine, if this one is virtual.
    pub fn taken_us(&self) -> u64 {
        let cpu_us = self.looping.sum_us();
        let metered_ns = self.metered_ns().saturating_sub(cpu_us * 1_000);
        let taken_us = metered_ns.max(self.queued.behind_others_ns()) / 1_000;
        let wall_us = u64::try_from(self.wall.as_micros()).unwrap_or(u64::MAX);
        taken_us.min(wall_us.saturating_sub(cpu_us))
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
            queued: self.queued.since(earlier.queued),
            stages,
        }
    }

    /// Returns the wall time of all stages without sleep, in nanoseconds.
    fn metered_ns(&self) -> u64 {
        self.busy_ns() + self.of(Stage::Wait).cpu_ns
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
    queued: Queued,
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
            queued: Queued::of_thread(),
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
            queued: Queued::of_thread().since(self.queued),
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
        assert!(usage.queued.times > 32, "it slept: {:?}", usage.queued);
        let none = usage.since(&usage);
        assert_eq!((none.cpu_us(), none.of(Stage::Links)), (0, StageUsage::default()));
    }

    /// Returns the usage of a second in which a loop used the CPU for `cpu_us` and metered
    /// `wall_us` in one stage.
    fn second(cpu_us: u64, wall_us: u64, queued: Queued) -> Usage {
        let looping = Cpu { user_us: cpu_us, system_us: 0 };
        let mut usage = Usage { wall: Duration::from_secs(1), looping, queued, ..Usage::default() };
        usage.stages[Stage::Links as usize].wall_ns = wall_us * 1_000;
        usage
    }

    #[test]
    fn time_beyond_the_threads_own_was_taken() {
        let queued = |ms: u64, times| Queued { ns: ms * 1_000_000, times };
        let cases = [
            (second(400_000, 400_000, queued(0, 0)), 1.0, 0, "all is metered"),
            (second(400_000, 300_000, queued(0, 0)), 0.75, 0, "some is not metered"),
            (second(400_000, 900_000, queued(0, 0)), 1.0, 500_000, "metered beyond"),
            (second(400_000, 400_000, queued(300, 10)), 1.0, 299_500, "waited for a core"),
            (second(400_000, 400_000, queued(300, 10_000)), 1.0, 0, "cores wake up in time"),
            (second(400_000, 600_000, queued(300, 0)), 1.0, 300_000, "one time, not two"),
            (second(400_000, 1_500_000, queued(0, 0)), 1.0, 600_000, "at most what was left"),
        ];
        for (usage, share, taken_us, why) in cases {
            assert_eq!((usage.accounted(), usage.taken_us()), (share, taken_us), "{why}");
        }
        assert_eq!(Queued::parsed("14 51387 3\n"), Some(Queued { ns: 51_387, times: 3 }));
        assert_eq!(Queued::parsed("14 x"), None);
    }
}
