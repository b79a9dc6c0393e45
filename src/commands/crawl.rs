//! `sted crawl`: runs the job that a configuration describes.
//!
//! Sets the job directory up (one process at a time), starts the lab if the configuration has one,
//! runs the engine in the real world, and says at the end what was done and where it is.

use super::lab::Lab;
use super::progress::Progress;
use super::summary::Summary;
use super::{Exit, Failure, inputs, load, wire};
use crate::conf::Conf;
use crate::engine::Engine;
use crate::engine::contract::StopReason;
use crate::os::{self, disk::OsDisk, signal};
use crate::stats::Meter;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Crawls as the configuration at `path` says.
///
/// # Errors
/// Whatever kept the crawl from its end, with the exit code it means.
pub fn run(path: &Path) -> Result<Exit, Failure> {
    let mut conf = load(path)?;
    if conf.lab.is_none() && conf.compare.is_some() {
        let text = format!(
            "{}: has [compare] and no [lab]: compare with `sted compare`, or add [lab] to crawl \
             this web",
            path.display()
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    let key = signal::entropy();
    let table = inputs::qualities(&conf, key)?;
    let directory = conf.job.directory.clone();
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Disk, format!("{}: {error}", directory.display()))
    };
    fs::create_dir_all(&directory).map_err(|error| cannot(&error))?;
    let _lock = os::disk::lock(&directory).map_err(|error| Failure::new(Exit::Job, error))?;
    refuse_earlier(&directory)?;
    check_descriptors(&conf)?;
    let effective = conf.render();
    let lab = conf.lab.is_some().then(|| Lab::start(path)).transpose()?;
    if let Some(lab) = &lab {
        lab.adapt(&mut conf)?;
    }
    let seeds = inputs::seeds(&conf)?;
    let mut settings = wire::engine(&conf, key);
    settings.rating.table = table;
    let disk = OsDisk::open(&directory).map_err(|error| cannot(&error))?;
    fs::write(directory.join("conf.toml"), effective).map_err(|error| cannot(&error))?;
    log::info!("the crawl begins with {} seeds, in {}", seeds.len(), directory.display());
    let progress = Progress::new(&conf);
    let mut world = os::World::new(&wire::world(&conf, progress.period()))
        .map_err(|error| Failure::new(Exit::System, error))?;
    let now = world.now();
    let meter = Meter::new(signal::tick);
    let mut engine = Engine::new(settings, &seeds, Box::new(disk), meter, now)
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    let mut summary = Summary::default();
    world
        .run(&mut engine, &mut |view| {
            progress.show(&view);
            summary = Summary::of(&view);
        })
        .map_err(|error| Failure::new(Exit::System, error))?;
    progress.clear();
    inputs::warn_of_table(&conf, engine.rating());
    drop(lab);
    fs::write(directory.join("summary.json"), summary.json()).map_err(|error| cannot(&error))?;
    // Who has closed stdout does not want to read it.
    let _ = io::stdout().write_all(summary.text(&directory).as_bytes());
    finish(&engine)
}

/// How the crawl ended, as an exit code.
fn finish(engine: &Engine) -> Result<Exit, Failure> {
    if let Some(trouble) = engine.trouble() {
        return Err(Failure::new(Exit::Disk, trouble));
    }
    Ok(match (engine.stop_reason(), engine.is_finished()) {
        (_, false) => Exit::Forced,
        (Some(StopReason::Interrupted), _) => Exit::Interrupted,
        (Some(StopReason::Pages | StopReason::Bytes), _) => Exit::Budget,
        (Some(StopReason::Time), _) => Exit::Time,
        (Some(StopReason::Trouble), _) => Exit::Disk,
        (Some(StopReason::Finished) | None, _) => Exit::Finished,
    })
}

/// An earlier crawl's archive is never added to by a crawl that doesn't know what is in it.
fn refuse_earlier(directory: &Path) -> Result<(), Failure> {
    let log = directory.join("crawl.log");
    if !log.exists() {
        return Ok(());
    }
    let directory = directory.display();
    let text = format!(
        "{directory}: holds an earlier crawl, which this version can't go on with; move it away, \
         or name another job.directory"
    );
    Err(Failure::new(Exit::Job, text))
}

/// Descriptors that the loop needs beside its connections: files, poller, resolver, and spares.
const DESCRIPTORS_BESIDE: u64 = 96;

/// Whether the system allows as many descriptors as the crawl needs.
pub(super) fn check_descriptors(conf: &Conf) -> Result<(), Failure> {
    let limit = signal::descriptor_limit();
    let wanted = conf.connections.open_max as u64 + DESCRIPTORS_BESIDE;
    if wanted <= limit {
        return Ok(());
    }
    let text = format!(
        "connections.open_max: {} connections need {wanted} descriptors, the system allows \
         {limit}; lower it, or raise the limit (ulimit -n)",
        conf.connections.open_max
    );
    Err(Failure::new(Exit::System, text))
}
