//! `sted profile`: measures at how many connections a core saturates, and what its time is spent
//! on.
//!
//! It crawls the same web repeatedly and changes only the number of open connections; `step` runs
//! one crawl, `verdict` interprets the results, `show` and `figures` make tables and curves. Crawls
//! run one at a time, because their times count. Where the core is saturated, another crawl may be
//! sampled by a profiler for a flame graph (`flame`); where that fails, the profile has none.

#![expect(clippy::disallowed_methods, reason = "commands open the files their arguments name")]

mod figures;
mod files;
mod flame;
mod show;
mod step;
#[cfg(test)]
mod tests;
mod verdict;

use super::child::Lab;
use crate::commands::{ConfFile, Exit, Failure, inputs};
use crate::conf::{self, Conf, Events, Profile};
use crate::os::{self, console};
use files::Results;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use step::Step;
use verdict::Verdict;

/// The exit codes of this command, for its help.
pub(crate) const EXITS: &str = "Exit codes:
   0  every step was measured, and the results are written
   2  the command line or the configuration is wrong, or a file that it names
   3  the results could not be written
   4  the system refused what the crawls need
   5  another profile is writing to the same directory, or its crawls are there
  11  stopped by a signal: no results were written";

/// Runs the profile of the configuration `file`.
///
/// # Errors
/// What kept a step from being measured, with its exit code.
pub fn run(file: &ConfFile, flame: bool) -> Result<Exit, Failure> {
    let (conf, path) = (file.load()?, &file.path);
    let Some(profile) = conf.profile.clone() else {
        let text = format!("{}: has no [profile]: add one, if an empty one", path.display());
        return Err(Failure::new(Exit::Usage, text));
    };
    let directory = &profile.directory;
    let disk = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Disk, format!("{}: {error}", directory.display()))
    };
    fs::create_dir_all(directory).map_err(|error| disk(&error))?;
    let _lock = os::disk::lock(directory).map_err(|error| Failure::new(Exit::Job, error))?;
    let can_sample = flame.then(|| flame::check(directory));
    if let Some(Err(why)) = &can_sample {
        console::line(&format!("There will be no flame graph: {why}."));
    }
    let sweep = Sweep::new(&conf, &profile)?;
    let all = sweep.steps()?;
    let steps = step::medians(&all, &profile.connections);
    let verdict = Verdict::of(&steps);
    let at = steps[verdict.full.unwrap_or(verdict.knee)].connections;
    let graph = can_sample.map(|can| can.and_then(|()| sweep.flame(at)));
    let results = Results { all: &all, steps: &steps, verdict: &verdict, graph: graph.as_ref() };
    files::write(directory, &conf, path, &results)?;
    // An error means that the reader has closed standard output.
    let text = show::text(&steps, &verdict, graph.as_ref(), directory);
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(Exit::Finished)
}

/// The crawls of a profile: all crawl one web, with different numbers of connections.
struct Sweep<'a> {
    /// The configuration, adapted to the lab if the lab is crawled.
    conf: Conf,
    profile: &'a Profile,
    folder: PathBuf,
    /// The lab, which serves the web until this is dropped; `None` if another web is crawled.
    lab: Option<Lab>,
}

impl<'a> Sweep<'a> {
    /// Creates the directory of the crawls, and starts the lab if the configuration has one.
    fn new(conf: &Conf, profile: &'a Profile) -> Result<Self, Failure> {
        let folder = profile.directory.join("steps");
        if folder.exists() {
            let text = format!(
                "{}: holds the crawls of an earlier profile; move them away, or name another \
                 profile.directory",
                folder.display()
            );
            return Err(Failure::new(Exit::Job, text));
        }
        let most = profile.connections.iter().max().copied().unwrap_or(1);
        inputs::check_descriptors(&with_connections(conf, most))?;
        fs::create_dir_all(&folder)
            .map_err(|error| Failure::new(Exit::Disk, format!("{}: {error}", folder.display())))?;
        let mut conf = conf.clone();
        let lab = conf.lab.is_some().then(|| start_lab(&conf, &profile.directory)).transpose()?;
        if let Some(lab) = &lab {
            lab.adapt(&mut conf)?;
        }
        Ok(Self { conf, profile, folder, lab })
    }

    /// Runs all steps from the first to the last, and repeats the whole sequence: a drift over time
    /// then affects all steps alike.
    fn steps(&self) -> Result<Vec<Step>, Failure> {
        let (connections, repeats) = (&self.profile.connections, self.profile.repeats);
        let all = connections.len() * repeats as usize;
        let steps =
            (1..=repeats).flat_map(|repeat| connections.iter().map(move |of| (repeat, *of)));
        let steps = steps.enumerate().map(|(number, (repeat, connections))| {
            let folder = match repeats {
                1 => format!("{connections:05}"),
                _ => format!("{connections:05}-{repeat}"),
            };
            let step = self.step(connections, &folder)?;
            console::progress(&format!("step {} of {all}: {}", number + 1, show::line(&step)));
            Ok(Step { repeat, ..step })
        });
        steps.collect()
    }

    fn step(&self, connections: usize, name: &str) -> Result<Step, Failure> {
        let conf = with_connections(&self.conf, connections);
        let lab_us = || self.lab.as_ref().and_then(Lab::cpu_us);
        step::run(conf, self.profile, &self.folder.join(name), &lab_us)
    }

    /// Runs one more step, sampled by the profiler, and draws the flame graph; returns the graph's
    /// file.
    ///
    /// # Errors
    /// Why there is no graph, in words.
    fn flame(&self, connections: usize) -> Result<PathBuf, String> {
        let directory = &self.profile.directory;
        let recording = flame::begin(directory, self.profile)?;
        let step = match self.step(connections, "flame") {
            Ok(step) => step,
            Err(failure) => {
                recording.abandon();
                return Err(match failure.exit {
                    Exit::Interrupted => "its crawl was stopped by a signal".to_owned(),
                    _ => failure.text,
                });
            }
        };
        let title = format!("{connections} connections, {} pages/s", step.rate().round());
        recording.draw(directory, &title)?;
        Ok(directory.join(flame::FILE))
    }
}

fn with_connections(conf: &Conf, connections: usize) -> Conf {
    let mut conf = conf.clone();
    conf.connections.open_max = connections;
    conf
}

/// Starts one lab for all steps: it has no memory of earlier clients.
fn start_lab(conf: &Conf, directory: &Path) -> Result<Lab, Failure> {
    let file = directory.join("lab.toml");
    let mut conf = conf.clone();
    conf.profile = None;
    let lab = directory.join("lab");
    conf.lab =
        Some(conf::Lab { directory: lab, manifest: false, events: Events::None, keys_file: None });
    fs::write(&file, conf.render())
        .map_err(|error| Failure::new(Exit::Disk, format!("{}: {error}", file.display())))?;
    Lab::start(&ConfFile::new(&file), None)
}
