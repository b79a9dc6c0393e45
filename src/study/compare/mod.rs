//! `sted compare`: crawls the same web under each policy, and draws the curves side by side.
//!
//! `plan` lists the crawls, `simulate` and `sockets` run one each, `measure` computes figures from
//! the samples, `show` and `curves` make tables and figures. Simulated crawls run in parallel, each
//! on its own thread with its own engine and world. A crawl depends on nothing but its
//! configuration, so the results are the same with any number of threads. Files are written when
//! all crawls have ended.

#![expect(clippy::disallowed_methods, reason = "commands open the files their arguments name")]

mod bound;
mod columns;
mod copies;
mod curves;
mod files;
mod hints;
mod measure;
mod nowhere;
mod paired;
mod plan;
mod results;
mod scene;
mod series;
mod show;
mod simulate;
mod sockets;
mod stats;
#[cfg(test)]
mod tests;
mod watch;

use crate::commands::{ConfFile, Exit, Failure};
use crate::conf::{Compare, Conf, Over};
use crate::os;
use crate::study::output;
use plan::Plan;
use results::Results;
use scene::Scenes;
use series::Run;
use std::fs;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use watch::Watch;

/// The exit codes of this command, for its help.
pub(crate) const EXITS: &str = "Exit codes:
   0  every crawl ended, and the results are written
   2  the command line or the configuration is wrong, or a file that it names
   3  the results could not be written
   4  the system refused what a crawl over sockets needs
   5  another comparison is writing to the same directory
  11  stopped by a signal: no results were written
  17  a crawl did not end: a bug of this program; please report it";

/// Runs the comparison of the configuration `file`.
///
/// # Errors
/// What kept a crawl from ending, with its exit code.
pub fn run(file: &ConfFile) -> Result<Exit, Failure> {
    let (conf, path) = (file.load()?, &file.path);
    let Some(compare) = conf.compare.clone() else {
        let text = format!("{}: has no [compare]: there is nothing to compare", path.display());
        return Err(Failure::new(Exit::Usage, text));
    };
    let plan = Plan::new(&conf, &compare, &path.display().to_string())?;
    let directory = &compare.directory;
    fs::create_dir_all(directory).map_err(|error| output::failed(directory, &error))?;
    let _lock = os::disk::lock(directory).map_err(|error| Failure::new(Exit::Job, error))?;
    let (runs, graphs) = match compare.over {
        Over::Simulation => simulated(&plan, &conf, &compare)?,
        Over::Sockets => (sockets::run_all(&plan, &conf, &compare)?, Vec::new()),
    };
    let mut results =
        Results::new(&plan, &runs).map_err(|wrong| Failure::new(Exit::Internal, wrong))?;
    results.graphs = graphs;
    files::write(directory, &conf, path, &results)?;
    // An error means that the reader has closed standard output.
    let _ = io::stdout().write_all(show::text(&results, directory).as_bytes());
    Ok(Exit::Finished)
}

/// Runs all simulated crawls of a plan, on the configured number of threads; returns them in the
/// plan's order, and the descriptions of the graphs that they crawled.
fn simulated(
    plan: &Plan,
    conf: &Conf,
    compare: &Compare,
) -> Result<(Vec<Run>, Vec<String>), Failure> {
    let crawls = plan.crawls();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = compare.threads.unwrap_or(cores).min(crawls.len()).max(1);
    let watch = Watch::new(crawls.len(), conf);
    let scenes = Scenes::new(plan);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done: Mutex<Vec<(usize, Result<Run, Failure>)>> = Mutex::new(Vec::new());
    let work = || {
        while !failed.load(Ordering::SeqCst)
            && let Some(&index) = crawls.get(next.fetch_add(1, Ordering::SeqCst))
        {
            let spec = &plan.runs[index];
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
        // A panic of a crawl is passed on: it is a bug of this program.
        workers.into_iter().for_each(|worker| worker.join().expect("a crawl panicked"));
        watched.map_err(|error| Failure::new(Exit::System, error))
    })?;
    let mut done = done.into_inner().expect("nobody panicked with it in hand");
    done.sort_by_key(|(index, _)| *index);
    let runs =
        done.into_iter().map(|(index, run)| run.map_err(|failure| named(plan, index, failure)));
    let runs = series::spread(plan, runs.collect::<Result<_, _>>()?);
    Ok((runs, scenes.graphs()))
}

/// Adds the name of run number `index` to a failure, unless it is about a file that all runs share.
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
