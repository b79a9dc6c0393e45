//! Answers from the state of a crawl that doesn't run: the state is opened as if the crawl resumed
//! now, over a disk that is only read. When a page is visited again is read from it for a crawl
//! that runs, too: to find a page there, all known pages are read.

use crate::commands::crawl::{damaged, refused};
use crate::commands::{Exit, Failure, inputs, settings, study};
use crate::conf::Conf;
use crate::engine::why::Why;
use crate::engine::{Earlier, Engine};
use crate::ground::disk::overlay::Overlay;
use crate::ground::stats::{Meter, still};
use crate::os::disk::OsDisk;
use crate::seeds::Seed;
use crate::url::scope::FromSeeds;
use log::LevelFilter;
use std::path::Path;

/// Answers the question about the URL `text` from the state of the job in `directory`.
///
/// # Errors
/// The job has no state, or its state can't be read.
pub(super) fn why(directory: &Path, conf: &Conf, text: &str) -> Result<Why, Failure> {
    let mut engine = open(directory, conf)?;
    let mut why = engine.why(crate::os::now(), text);
    engine.add_known(&mut why);
    Ok(why)
}

/// Adds to the answer of a running crawl when it comes back to the page, from its last checkpoint.
/// If that can't be read, the answer says so.
pub(super) fn add_known(directory: &Path, conf: &Conf, why: &mut Why) {
    // A checkpoint that was found may be replaced while it is read.
    let opened = open(directory, conf).or_else(|_| open(directory, conf));
    match opened {
        Ok(mut engine) => engine.add_known(why),
        Err(failure) => why.errors.push(format!("its next visit isn't known: {failure}")),
    }
}

/// Opens the state of the job as if it resumed, to be read only.
fn open(directory: &Path, conf: &Conf) -> Result<Engine, Failure> {
    let mut conf = conf.clone();
    study::recall_lab(&mut conf, directory);
    let disk =
        OsDisk::open_to_read(directory).map_err(|error| Failure::of_file(directory, &error))?;
    let mut disk = Overlay::over(Box::new(disk));
    let found = Earlier::find(&mut disk).map_err(|error| damaged(directory, &error))?;
    let Some(earlier) = found.filter(|_| conf.state.keep) else {
        let job = directory.display();
        let text = format!("{job}: has no state to read; only its crawl.log says what was fetched");
        return Err(Failure::new(Exit::Job, text));
    };
    // Messages about resuming don't concern a crawl that doesn't run.
    let level = log::max_level();
    log::set_max_level(LevelFilter::Off);
    let seeds = seeds(&conf);
    let mut settings = settings::engine(&conf, earlier.key());
    settings.store.verify_bytes_max = 0;
    settings.trace = false;
    let now = crate::os::now();
    let engine = seeds.and_then(|seeds| {
        Engine::open(settings, &seeds, Box::new(disk), Meter::new(still), now)
            .map_err(|error| refused(directory, error))
    });
    log::set_max_level(level);
    engine
}

/// Returns the seeds of the crawl. If their file can't be read, and they don't define the scope,
/// the answer is the same without them.
fn seeds(conf: &Conf) -> Result<Vec<Seed>, Failure> {
    match inputs::seeds(conf) {
        Err(_) if conf.scope.span == FromSeeds::Any => Ok(Vec::new()),
        seeds => seeds,
    }
}
