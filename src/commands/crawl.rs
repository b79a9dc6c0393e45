//! `sted crawl`: runs the job that a configuration describes, or goes on with it.
//!
//! Sets the job directory up (one process at a time), starts the lab if the configuration has one,
//! runs the engine in the real world, and says at the end what was done and where it is. A job
//! that was stopped, however it was, goes on: its checkpoint has what it knew, and its archive what
//! it did since.

use super::check::refuse_missing_files;
use super::missing::Missing;
use super::progress::Progress;
use super::summary::Summary;
use super::{Exit, Failure, inputs, load, settings, study};
use crate::conf::{Conf, Flag, Key};
use crate::engine::contract::StopReason;
use crate::engine::{self, Earlier, Engine};
use crate::ground::disk::Disk;
use crate::ground::frame;
use crate::ground::stats::Meter;
use crate::ground::time::UnixTime;
use crate::os::disk::{Lock, LockError, OsDisk};
use crate::os::{self, signal};
use crate::store;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

/// Crawls as the configuration at `path` says; with `rebuild` from the archive alone, whatever else
/// the job knew. With `retry_given_up` servers that were given up are tried again.
///
/// # Errors
/// Whatever kept the crawl from its end, with the exit code it means.
pub fn run(path: &Path, rebuild: bool, retry_given_up: bool) -> Result<Exit, Failure> {
    signal::catch_early();
    let began = std::time::Instant::now();
    let mut conf = configuration(path)?;
    let directory = conf.job.directory.clone();
    let cannot = |error: &dyn std::fmt::Display| cannot(&directory, error);
    let _lock = take_job(&directory)?;
    let mut disk = OsDisk::open(&directory).map_err(|error| cannot(&error))?;
    if rebuild {
        // Before anything is made anew.
        refuse_what_may_not_change(&conf, &directory, rebuild)?;
    }
    let earlier = match rebuild {
        true => Some(rebuilt(&directory, &mut disk)?),
        false => Earlier::find(&mut disk).map_err(|error| damaged(&directory, &error))?,
    };
    refuse_what_cannot_go_on(&conf, &directory, &mut disk, earlier.as_ref())?;
    if earlier.is_some() && !rebuild {
        refuse_what_may_not_change(&conf, &directory, rebuild)?;
    }
    inputs::check_descriptors(&conf)?;
    let key = earlier.as_ref().map_or_else(signal::entropy, Earlier::key);
    let table = inputs::qualities(&conf, key)?;
    let effective = conf.render();
    let lab = study::lab_of(&mut conf, path, &directory)?;
    let seeds = inputs::seeds(&conf)?;
    inputs::warn_of_scope(&conf, &seeds);
    inputs::warn_of_hosts(&conf);
    let mut settings = settings::engine(&conf, key);
    settings.rating.table = table;
    write_whole(&directory, "conf.toml", &effective)?;
    let progress = Progress::new(&conf);
    let mut world = os::World::new(&settings::world(&conf, progress.period()))
        .map_err(|error| Failure::new(Exit::System, error))?;
    let before = began.elapsed();
    let now = world.now();
    let meter = Meter::new(signal::tick);
    let mut engine = Engine::open(settings, &seeds, Box::new(disk), meter, now)
        .map_err(|error| refused(&directory, error))?;
    say_how_it_begins(&directory, earlier.as_ref(), &engine, seeds.len());
    if retry_given_up {
        engine.revive();
    }
    let mut summary = Summary::default();
    world
        .run(&mut engine, &mut |view| {
            progress.show(&view);
            summary = Summary::of(&view);
        })
        .map_err(|error| Failure::new(Exit::System, error))?;
    progress.clear();
    summary.add_start(before);
    inputs::warn_of_table(&conf, engine.rating());
    if let Some(lab) = lab {
        lab.end();
    }
    // From here on a second signal ends the process, whatever it waits for.
    drop(world);
    write_whole(&directory, "summary.json", &summary.json())?;
    // Who has closed stdout does not want to read it.
    let missing = Missing::of(engine.counts(), &conf);
    let _ = io::stdout().write_all((summary.text(&directory) + &missing.text()).as_bytes());
    finish(&engine, &missing)
}

/// The configuration at `path`, if it is one of a crawl and the files that it names are there.
fn configuration(path: &Path) -> Result<Conf, Failure> {
    let conf = load(path)?;
    if conf.lab.is_none() && conf.compare.is_some() {
        let text = format!(
            "{}: has [compare] and no [lab]: compare with `sted compare`, or add [lab] to crawl \
             this web",
            path.display()
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    study::refuse_lab(&conf, path)?;
    refuse_missing_files(&conf, path)?;
    Ok(conf)
}

/// Writes a file so that whoever reads it finds all of it or what was there before: half a
/// configuration would read as one with other rules.
fn write_whole(directory: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let written = os::disk::replace(directory, name, text.as_bytes());
    written.map_err(|error| cannot(&directory.join(name), &error))
}

/// The directory, for this process alone.
fn take_job(directory: &Path) -> Result<Lock, Failure> {
    fs::create_dir_all(directory).map_err(|error| cannot(directory, &error))?;
    let lock = os::disk::lock(directory).map_err(not_locked)?;
    if let Some(how) = os::disk::exposure(directory) {
        log::warn!("{}: others can change what the crawl keeps there: {how}", directory.display());
    }
    Ok(lock)
}

/// Why the job is not this process's.
fn not_locked(error: LockError) -> Failure {
    let exit = match error {
        LockError::Held { .. } => Exit::Job,
        LockError::Failed { .. } => Exit::Disk,
    };
    Failure::new(exit, error)
}

fn cannot(directory: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Disk, format!("{}: {error}", directory.display()))
}

/// A state that can't be read, and what can be done about it.
fn damaged(directory: &Path, error: &frame::Error) -> Failure {
    let job = directory.display();
    match error {
        frame::Error::Disk(error) => cannot(directory, error),
        frame::Error::Damaged(damage) => {
            let mend = match damage.flaw {
                frame::Flaw::Version(format) if format > frame::FORMAT => {
                    "go on with it by that version".to_owned()
                }
                frame::Flaw::Version(_) => "go on with it by that version, or let `sted crawl \
                                            --rebuild` make the state anew from the archive"
                    .to_owned(),
                _ => "put the file back from a copy, or let `sted crawl --rebuild` make the state \
                      anew from the archive"
                    .to_owned(),
            };
            Failure::new(Exit::Job, format!("{job}/{damage}; {mend}"))
        }
    }
}

/// A state made anew from the archive.
fn rebuilt(directory: &Path, disk: &mut OsDisk) -> Result<Earlier, Failure> {
    if !holds_crawl(disk).map_err(|error| cannot(directory, &error))? {
        let job = directory.display();
        return Err(Failure::new(Exit::Job, format!("{job}: there is no crawl to rebuild")));
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = UnixTime::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    Earlier::rebuild(signal::entropy(), now, disk).map_err(|error| cannot(directory, &error))
}

/// Whether a crawl has written anything here: its log may have been taken away.
fn holds_crawl(disk: &mut OsDisk) -> Result<bool, crate::ground::disk::Error> {
    let has_log = disk.len("crawl.log")?.is_some() || !store::log_parts(disk)?.is_empty();
    Ok(has_log || !disk.list("warc")?.is_empty() || !disk.list("index")?.is_empty())
}

/// Why the engine would not begin.
fn refused(directory: &Path, error: engine::Error) -> Failure {
    match error {
        engine::Error::State(error) => damaged(directory, &error),
        engine::Error::Store(error) => cannot(directory, &error),
        error => Failure::new(Exit::Usage, error),
    }
}

fn say_how_it_begins(directory: &Path, earlier: Option<&Earlier>, engine: &Engine, seeds: usize) {
    let job = directory.display();
    let Some(earlier) = earlier else {
        return log::info!("the crawl begins with {seeds} seeds, in {job}");
    };
    let (urls, servers) = (engine.frontier().urls(), engine.frontier().servers());
    if earlier.is_rebuilt() {
        return log::info!(
            "the crawl in {job} resumes with what its archive holds; {urls} URLs wait on {servers} \
             servers"
        );
    }
    let how = if earlier.is_clean() { "was stopped in order" } else { "was not stopped in order" };
    log::info!(
        "the crawl in {job} goes on from its checkpoint of {}; it {how}; {urls} URLs wait on \
         {servers} servers",
        earlier.written()
    );
    if earlier.is_finished() {
        log::warn!(
            "{job}: this crawl was finished; only new seeds lead on, or --retry-given-up if \
             servers were given up"
        );
    }
}

/// An archive is never added to by a crawl that doesn't know what is in it, nor is a crawl that
/// could go on forgotten.
fn refuse_what_cannot_go_on(
    conf: &Conf,
    directory: &Path,
    disk: &mut OsDisk,
    earlier: Option<&Earlier>,
) -> Result<(), Failure> {
    let job = directory.display();
    let holds = holds_crawl(disk).map_err(|error| cannot(directory, &error))?;
    let text = match earlier {
        Some(_) if !conf.state.keep => format!(
            "{job}: holds a crawl that can go on, but state.keep = false; set it to true, or name \
             another job.directory"
        ),
        None if holds => format!(
            "{job}: holds an earlier crawl without a checkpoint; `sted crawl --rebuild` resumes it \
             from its archive; or move it away, or name another job.directory"
        ),
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::Job, text))
}

/// What a crawl knows of its URLs it knows by the rules that it began with (a state that is made
/// anew, by new ones), and its archive by the names of its files: a crawl that went on with others
/// would fetch again what it has.
fn refuse_what_may_not_change(conf: &Conf, directory: &Path, rebuild: bool) -> Result<(), Failure> {
    let file = directory.join("conf.toml");
    let text = match os::disk::read(directory, "conf.toml") {
        // It died before it had written that: then nothing had begun.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text.map_err(|error| cannot(directory, &error))?,
    };
    let text = String::from_utf8_lossy(&text);
    let name = file.display();
    let began = match Conf::parse(&text, &name.to_string()) {
        Ok(began) => began,
        Err(mistakes) => {
            log::warn!("whether its rules are still the same can't be told: {mistakes}");
            return Ok(());
        }
    };
    // A rebuilt job has no state that was made by the old rules of [url].
    let kept = |key: &Key| key.flags.contains(&Flag::Kept) && !(rebuild && key.section == "url");
    let changed = began.keys().into_iter().filter(kept).zip(conf.keys().into_iter().filter(kept));
    let told: Vec<String> = changed
        .filter(|(before, now)| before.value != now.value)
        .map(|(Key { section, name, value, .. }, now)| {
            format!("{section}.{name} was {value}, and is {} now", now.value)
        })
        .collect();
    if told.is_empty() {
        return Ok(());
    }
    let text = format!(
        "{}: this crawl began by other rules: {}; put them back (they are in {name}), or name \
         another job.directory",
        directory.display(),
        told.join("; ")
    );
    Err(Failure::new(Exit::Job, text))
}

/// How the crawl ended, as an exit code.
fn finish(engine: &Engine, missing: &Missing) -> Result<Exit, Failure> {
    if let Some(trouble) = engine.fatal_error() {
        return Err(Failure::new(Exit::Disk, trouble));
    }
    Ok(match (engine.stop_reason(), engine.is_finished()) {
        (_, false) => Exit::Forced,
        (Some(StopReason::Interrupted), _) => Exit::Interrupted,
        (Some(StopReason::Pages | StopReason::Bytes), _) => Exit::Budget,
        (Some(StopReason::Time), _) => Exit::Time,
        (Some(StopReason::Outage), _) => Exit::NotWhole,
        (Some(StopReason::FatalError), _) => Exit::Disk,
        (Some(StopReason::Finished), _) if missing.is_any() => Exit::NotWhole,
        (Some(StopReason::Finished) | None, _) => Exit::Finished,
    })
}
