//! `sted compare`: the same web under each policy, and the curves side by side.
//!
//! `plan` says which crawls there are, `simulate` and `sockets` run one each, `measure`
//! turns what was seen into numbers, `show` and `curves` into tables and figures. Simulated
//! crawls run side by side, each with its own engine and world, a thread each; what a crawl does
//! depends on nothing but its configuration, so the results are the same on any number of threads.
//! Files are written when all crawls are done.

#![expect(clippy::disallowed_methods, reason = "commands open the files their arguments name")]

mod curves;
mod files;
mod measure;
mod nowhere;
mod plan;
mod scene;
mod series;
mod show;
mod simulate;
mod sockets;
#[cfg(test)]
mod tests;
mod watch;

use crate::commands::{Exit, Failure, load};
use crate::conf::{Compare, Conf, Over};
use crate::os;
use plan::Plan;
use scene::Scenes;
use series::Run;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use watch::Watch;

/// The exit codes of this command, for its help.
pub(crate) const EXITS: &str = "Exit codes:
   0  every crawl came to its end, and the results are written
   2  the command line or the configuration is wrong, or a file that it names
   3  the results could not be written
   4  the system refused what a crawl over sockets needs
   5  another comparison is writing to the same directory
  11  stopped by a signal: no results were written
  17  a crawl did not come to its end: a fault of the program; please report it";

/// Compares as the configuration at `path` says.
///
/// # Errors
/// Whatever kept a crawl from its end, with the exit code it means.
pub fn run(path: &Path) -> Result<Exit, Failure> {
    let conf = load(path)?;
    let Some(compare) = conf.compare.clone() else {
        let text = format!("{}: has no [compare]: there is nothing to compare", path.display());
        return Err(Failure::new(Exit::Usage, text));
    };
    let plan = Plan::new(&conf, &compare, &path.display().to_string())?;
    let directory = &compare.directory;
    fs::create_dir_all(directory)
        .map_err(|error| Failure::new(Exit::Disk, format!("{}: {error}", directory.display())))?;
    let _lock = os::disk::lock(directory).map_err(|error| Failure::new(Exit::Job, error))?;
    let runs = match compare.over {
        Over::Simulation => simulated(&plan, &conf, &compare)?,
        Over::Sockets => sockets::run_all(&plan, &conf, &compare)?,
    };
    let results = show::Results::new(&plan, &runs);
    files::write(directory, &conf, path, &results)
        .map_err(|error| Failure::new(Exit::Disk, error))?;
    // Who has closed stdout does not want to read it.
    let _ = io::stdout().write_all(show::text(&results, directory).as_bytes());
    Ok(Exit::Finished)
}

/// All runs of a plan, in its order, on as many threads as are wanted.
fn simulated(plan: &Plan, conf: &Conf, compare: &Compare) -> Result<Vec<Run>, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = compare.threads.unwrap_or(cores).min(plan.runs.len()).max(1);
    let watch = Watch::new(plan.runs.len(), conf);
    let scenes = Scenes::new(plan);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done: Mutex<Vec<(usize, Result<Run, Failure>)>> = Mutex::new(Vec::new());
    let work = || {
        while !failed.load(Ordering::SeqCst)
            && let index = next.fetch_add(1, Ordering::SeqCst)
            && let Some(spec) = plan.runs.get(index)
        {
            let scene = scenes.of(spec.ground);
            let run = scene
                .and_then(|scene| simulate::run(spec, &scene, &|pages| watch.more_pages(pages)));
            failed.fetch_or(run.is_err(), Ordering::SeqCst);
            watch.one_done();
            done.lock().expect("nobody panics with it in hand").push((index, run));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let watched = watch.until(|| workers.iter().all(thread::ScopedJoinHandle::is_finished));
        // A panic of a crawl is this command's: it is told as a fault of the program.
        workers.into_iter().for_each(|worker| worker.join().expect("a crawl panicked"));
        watched.map_err(|error| Failure::new(Exit::System, error))
    })?;
    let mut done = done.into_inner().expect("nobody panicked with it in hand");
    done.sort_by_key(|(index, _)| *index);
    let told =
        done.into_iter().map(|(index, run)| run.map_err(|failure| named(plan, index, failure)));
    told.collect()
}

/// The failure of a run, with its name if it is not about a file that all runs share.
fn named(plan: &Plan, index: usize, failure: Failure) -> Failure {
    if failure.exit == Exit::Usage {
        return failure;
    }
    let spec = &plan.runs[index];
    let names = [spec.policy.name(), &plan.variants[spec.variant], plan.value_name(spec.value)];
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let text = format!("{}, repeat {}: {}", names.join(", "), spec.repeat + 1, failure.text);
    Failure::new(failure.exit, text)
}
