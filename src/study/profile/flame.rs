//! A flame graph of the steady state: one more step, sampled by the machine's profiler.
//!
//! `perf` samples every thread of this process, some hundred times a second of CPU time, with its
//! stack; it resolves the symbols, a library folds and draws the stacks. Sampling needs no hardware
//! counters, only the permission (`perf_event_paranoid`): that is tested before the first step, so
//! that a refusal is reported at once. Without a graph the profile has all else: a failure is the
//! reason in words, and no failure of the command.
//!
//! Law: all measured steps end before the sampled one begins, so that their figures don't include
//! the cost of sampling. Cost: 8 KiB a sample on disk, deleted when the graph is drawn.

use crate::conf::Profile;
use inferno::collapse::Collapse;
use inferno::collapse::perf::Folder;
use inferno::flamegraph;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The sampling profiler.
const PERF: &str = "perf";
/// Samples per second of CPU time: an odd number, so that it doesn't run in step with periodic
/// work.
const SAMPLES_PER_SECOND: &str = "499";
/// How `perf` records stacks: by debug information, because frame pointers are not kept, from 8,192
/// bytes of each stack.
const STACKS: &str = "dwarf,8192";
/// The event at which `perf` takes a sample: that of a timer, which virtual machines have, too.
const EVENT: &str = "cpu-clock";

/// A running recording of samples by the profiler.
#[derive(Debug)]
pub(super) struct Recording {
    child: Child,
    samples: PathBuf,
}

/// Checks whether a flame graph can be made on this machine.
///
/// # Errors
/// There is no profiler, or it has no permission to sample. The text says what to do about it.
pub(super) fn check(directory: &Path) -> Result<(), String> {
    let samples = directory.join(SAMPLES);
    let tried = record(&samples).args(["--", "true"]).stderr(Stdio::piped()).output();
    let _ = fs::remove_file(&samples);
    let done =
        tried.map_err(|error| format!("{PERF}: {error}; install it (Debian: linux-perf)"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.lines().map(str::trim).find(|line| !line.is_empty());
    let said = said.map_or_else(|| done.status.to_string(), str::to_owned);
    Err(format!(
        "{PERF} can't sample here: {said}; if it lacks permission, set kernel.perf_event_paranoid \
         to 1 as root"
    ))
}

/// Begins to sample this process from the end of the warm-up of the next step on.
///
/// # Errors
/// The profiler did not start.
pub(super) fn begin(directory: &Path, profile: &Profile) -> Result<Recording, String> {
    let samples = directory.join(SAMPLES);
    let all = profile.warm_up + profile.step_time;
    let child = record(&samples)
        .args(["--delay", &profile.warm_up.as_millis().to_string()])
        .args(["--pid", &std::process::id().to_string()])
        .args(["--", "sleep", &seconds(all)])
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{PERF}: {error}"))?;
    Ok(Recording { child, samples })
}

impl Recording {
    /// Waits for the end of the recording and draws its samples: `flame.svg`, and `flame.folded`
    /// for other tools.
    ///
    /// # Errors
    /// The profiler failed, there was no sample, or a file could not be written.
    pub(super) fn draw(mut self, directory: &Path, title: &str) -> Result<(), String> {
        let status = self.child.wait().map_err(|error| format!("{PERF}: {error}"))?;
        let folded =
            if status.success() { self.fold() } else { Err(format!("{PERF} record: {status}")) };
        let _ = fs::remove_file(&self.samples);
        let folded = folded?;
        let disk = |error: io::Error| format!("{}: {error}", directory.display());
        fs::write(directory.join("flame.folded"), &folded).map_err(disk)?;
        let file = File::create(directory.join(FILE)).map_err(disk)?;
        let mut options = flamegraph::Options::default();
        title.clone_into(&mut options.title);
        "samples of CPU time".clone_into(&mut options.count_name);
        let lines = folded.lines();
        flamegraph::from_lines(&mut options, lines, BufWriter::new(file)).map_err(disk)
    }

    /// Ends the recording of a step that failed, and deletes its samples.
    pub(super) fn abandon(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.samples);
    }

    /// Returns the samples as text: one line for each distinct stack, with the number of its
    /// samples.
    fn fold(&self) -> Result<String, String> {
        let mut script = Command::new(PERF)
            .args(["script", "--no-inline", "--input"])
            .arg(&self.samples)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{PERF} script: {error}"))?;
        let stacks = io::BufReader::new(script.stdout.take().expect("it was asked for"));
        let mut folded = Vec::new();
        let read = Folder::default().collapse(stacks, &mut folded);
        let status = script.wait().map_err(|error| format!("{PERF} script: {error}"))?;
        if !status.success() {
            return Err(format!("{PERF} script: {status}"));
        }
        read.map_err(|error| format!("{PERF} script: {error}"))?;
        let folded = String::from_utf8_lossy(&folded).into_owned();
        if folded.is_empty() {
            return Err(format!("{PERF} took no sample of the step"));
        }
        Ok(folded)
    }
}

/// The name of the flame graph's file.
pub(super) const FILE: &str = "flame.svg";
const SAMPLES: &str = "perf.data";

fn record(samples: &Path) -> Command {
    let mut command = Command::new(PERF);
    command.args(["record", "--quiet", "--event", EVENT, "--freq", SAMPLES_PER_SECOND]);
    command.args(["--call-graph", STACKS, "--output"]).arg(samples);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}
