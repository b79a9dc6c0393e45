//! `sted profile`: where a core is full, and what it spends its time on.
//!
//! One crawl of the same web after the other, each with another number of open connections and
//! nothing else changed; `step` runs one, `verdict` says what they come to, `show` and `figures`
//! tell it in tables and curves. Crawls run one at a time: their times count.

mod figures;
mod files;
mod show;
mod step;
#[cfg(test)]
mod tests;
mod verdict;

use super::lab::Lab;
use super::{Exit, Failure, crawl, load};
use crate::conf::{self, Conf, Events, Profile};
use crate::os;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use step::Step;
use verdict::Verdict;

/// The exit codes of this command, for its help.
pub(super) const EXITS: &str = "Exit codes:
   0  every step was measured, and the results are written
   2  the command line or the configuration is wrong, or a file that it names
   3  the results could not be written
   4  the system refused what the crawls need
   5  another profile is writing to the same directory, or its crawls are there
  11  stopped by a signal: no results were written";

/// Profiles as the configuration at `path` says.
///
/// # Errors
/// Whatever kept a step from being measured, with the exit code it means.
pub fn run(path: &Path) -> Result<Exit, Failure> {
    let conf = load(path)?;
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
    let steps = measured(&conf, &profile)?;
    let verdict = Verdict::of(&steps);
    files::write(directory, &conf, path, &steps, &verdict)
        .map_err(|error| Failure::new(Exit::Disk, error))?;
    // Who has closed stdout does not want to read it.
    let _ = io::stdout().write_all(show::text(&steps, &verdict, directory).as_bytes());
    Ok(Exit::Finished)
}

/// All steps, in order.
fn measured(conf: &Conf, profile: &Profile) -> Result<Vec<Step>, Failure> {
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
    crawl::check_descriptors(&with_connections(conf, most))?;
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(Exit::Disk, format!("{}: {error}", folder.display())))?;
    let mut conf = conf.clone();
    let lab = conf.lab.is_some().then(|| start_lab(&conf, &profile.directory)).transpose()?;
    if let Some(lab) = &lab {
        lab.adapt(&mut conf)?;
    }
    let all = profile.connections.len();
    let steps = profile.connections.iter().enumerate().map(|(number, &connections)| {
        let conf = with_connections(&conf, connections);
        let step = step::run(conf, profile, &folder.join(format!("{connections:05}")))?;
        eprintln!("step {} of {all}: {}", number + 1, show::line(&step));
        Ok(step)
    });
    steps.collect()
}

fn with_connections(conf: &Conf, connections: usize) -> Conf {
    let mut conf = conf.clone();
    conf.connections.open_max = connections;
    conf
}

/// One lab for all steps: it remembers nothing of whom it served.
fn start_lab(conf: &Conf, directory: &Path) -> Result<Lab, Failure> {
    let file = directory.join("lab.toml");
    let mut conf = conf.clone();
    conf.profile = None;
    let lab = directory.join("lab");
    conf.lab = Some(conf::Lab { directory: lab, manifest: false, events: Events::None });
    fs::write(&file, conf.render())
        .map_err(|error| Failure::new(Exit::Disk, format!("{}: {error}", file.display())))?;
    Lab::start(&file, None)
}
