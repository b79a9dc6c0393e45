//! `sted crawl`: runs or resumes the crawl that a configuration describes.
//!
//! It prepares the job directory (for one process at a time), starts the lab (a local synthetic
//! web) if the configuration has one, runs the engine in the real world, and prints a summary at
//! the end. A job that was stopped, in any way, is resumed from its checkpoint and its archive.

use super::check::refuse_missing_files;
use super::missing::Missing;
use super::progress::Progress;
use super::reload::FileReloader;
use super::summary::Summary;
use super::{Exit, Failure, admin, inputs, load, settings, study};
use crate::conf::{Conf, Flag, Key};
use crate::engine::contract::StopReason;
use crate::engine::{self, Earlier, Engine};
use crate::ground::disk::Disk;
use crate::ground::frame;
use crate::ground::stats::Meter;
use crate::ground::time::UnixTime;
use crate::os::disk::{Lock, LockError, OsDisk};
use crate::os::{self, console, signal};
use crate::store;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

/// Runs the crawl that the configuration at `path` describes. If `rebuild`, the state is rebuilt
/// from the archive alone. If `retry_given_up`, the URLs of given-up servers are queued again.
///
/// # Errors
/// The reason why the crawl could not start or ended early, with the exit code for it.
pub fn run(path: &Path, rebuild: bool, retry_given_up: bool) -> Result<Exit, Failure> {
    signal::catch_early();
    let began = std::time::Instant::now();
    let mut conf = configuration(path)?;
    let directory = conf.job.directory.clone();
    let cannot = |error: &dyn std::fmt::Display| cannot(&directory, error);
    let lock = take_job(&directory)?;
    let mut disk = OsDisk::open(&directory).map_err(|error| cannot(&error))?;
    if rebuild {
        // Check before anything is rebuilt.
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
    let (effective, read) = (conf.render(), conf.clone());
    let lab = study::lab_of(&mut conf, path, &directory)?;
    let seeds = inputs::seeds(&conf)?;
    inputs::warn_of_scope(&conf, &seeds);
    inputs::warn_of_hosts(&conf);
    let mut settings = settings::engine(&conf, key);
    settings.rating.table = table;
    write_whole(&directory, "conf.toml", &effective)?;
    let progress = Progress::new(&conf);
    let (admin, board) = admin::admin(&conf).unzip();
    let period = progress.period().min(admin::period(board.as_ref()));
    let world = os::World::new(&settings::world(&conf, period));
    let mut world = world.map_err(|error| Failure::new(Exit::System, error))?;
    listen(&mut world, &lock, FileReloader::new(path, read, conf.clone(), key), admin)?;
    let before = began.elapsed();
    let now = world.now();
    let meter = Meter::new(signal::tick);
    let mut engine = Engine::open(settings, &seeds, Box::new(disk), meter, now)
        .map_err(|error| refused(&directory, error))?;
    say_how_it_begins(&directory, earlier.as_ref(), &engine, seeds.len());
    if retry_given_up {
        engine.revive();
    }
    let mut publisher = admin::Publisher::new(board, &engine);
    let mut summary = Summary::default();
    let ran = world.run(&mut engine, &mut |view| {
        progress.show(&view);
        publisher.publish(&view);
        summary = Summary::of(&view);
    });
    ran.map_err(|error| Failure::new(Exit::System, error))?;
    progress.clear();
    summary.complete(before, &engine);
    inputs::warn_of_table(&conf, engine.rating());
    if let Some(lab) = lab {
        lab.end();
    }
    // Restore the signals' previous handlers: from here on a second signal ends the process at
    // once.
    drop(world);
    write_whole(&directory, "summary.json", &summary.json())?;
    // Ignore errors: a reader that has closed stdout doesn't want the summary.
    let missing = Missing::of(engine.counts(), &conf);
    let text = summary.text(&directory, &missing.text(), console::is_verbose());
    let _ = io::stdout().write_all(text.as_bytes());
    finish(&engine, &missing)
}

/// Loads the configuration at `path`. Checks that it describes a crawl and that the files it names
/// exist.
fn configuration(path: &Path) -> Result<Conf, Failure> {
    let conf = load(path)?;
    if conf.lab.is_none() && conf.compare.is_some() {
        let text = format!(
            "{}: has [compare] but no [lab]: use `sted compare`, or add [lab] to crawl this web",
            path.display()
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    study::refuse_lab(&conf, path)?;
    refuse_missing_files(&conf, path)?;
    Ok(conf)
}

/// Replaces the file `name` in `directory` atomically, because half a configuration would parse as
/// one with other values.
fn write_whole(directory: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let written = os::disk::replace(directory, name, text.as_bytes());
    written.map_err(|error| cannot(&directory.join(name), &error))
}

/// Creates the job directory if necessary, and locks it for this process.
fn take_job(directory: &Path) -> Result<Lock, Failure> {
    fs::create_dir_all(directory).map_err(|error| cannot(directory, &error))?;
    let lock = os::disk::lock(directory).map_err(not_locked)?;
    if let Some(how) = os::disk::exposure(directory) {
        log::warn!(
            "{}: other users can change the files of this crawl: {how}",
            directory.display()
        );
    }
    Ok(lock)
}

/// Opens the admin listener if it is configured, and the control socket. A crawl can do without
/// the socket.
fn listen(
    world: &mut os::World,
    lock: &Lock,
    reloader: FileReloader,
    admin: Option<os::Admin>,
) -> Result<(), Failure> {
    if let Some(admin) = admin {
        let at = admin.listen.map_or_else(|| "admin.textfile".to_owned(), |at| at.to_string());
        world.admin(admin).map_err(|error| {
            let text =
                format!("[admin]: {at}: {error}; check admin.listen: port 0 takes a free one");
            Failure::new(Exit::System, text)
        })?;
    }
    if let Err(error) = world.listen(lock, Box::new(reloader)) {
        log::warn!("`sted ctl`, `sted status` and the admin page don't work: {error}");
    }
    Ok(())
}

/// Converts the error of locking a job to a failure with an exit code.
fn not_locked(error: LockError) -> Failure {
    let exit = match error {
        LockError::Held { .. } => Exit::Job,
        LockError::Failed { .. } => Exit::Disk,
    };
    Failure::new(exit, error)
}

pub(super) fn cannot(directory: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Disk, format!("{}: {error}", directory.display()))
}

/// Returns the failure for a state on disk that can't be read, with a fix.
pub(super) fn damaged(directory: &Path, error: &frame::Error) -> Failure {
    let job = directory.display();
    match error {
        frame::Error::Disk(error) => cannot(directory, error),
        frame::Error::Damaged(damage) => {
            let fix = match damage.flaw {
                frame::Flaw::Version(format) if format > frame::FORMAT => {
                    "resume it with that version".to_owned()
                }
                frame::Flaw::Version(_) => "resume it with that version, or rebuild the state \
                                            from the archive with `sted crawl --rebuild`"
                    .to_owned(),
                _ => "restore the file from a copy, or rebuild the state from the archive with \
                      `sted crawl --rebuild`"
                    .to_owned(),
            };
            Failure::new(Exit::Job, format!("{job}/{damage}; {fix}"))
        }
    }
}

/// Rebuilds the state of the job from its archive.
fn rebuilt(directory: &Path, disk: &mut OsDisk) -> Result<Earlier, Failure> {
    if !holds_crawl(disk).map_err(|error| cannot(directory, &error))? {
        let job = directory.display();
        return Err(Failure::new(Exit::Job, format!("{job}: has no crawl to rebuild")));
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = UnixTime::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    Earlier::rebuild(signal::entropy(), now, disk).map_err(|error| cannot(directory, &error))
}

/// Returns whether a crawl has written anything in this job directory. Its log may have been moved
/// away.
fn holds_crawl(disk: &mut OsDisk) -> Result<bool, crate::ground::disk::Error> {
    let has_log = disk.len("crawl.log")?.is_some() || !store::log_parts(disk)?.is_empty();
    Ok(has_log || !disk.list("warc")?.is_empty() || !disk.list("index")?.is_empty())
}

/// Converts an error that the engine returned at its start to a failure.
pub(super) fn refused(directory: &Path, error: engine::Error) -> Failure {
    match error {
        engine::Error::State(error) => damaged(directory, &error),
        engine::Error::Store(error) => cannot(directory, &error),
        error => Failure::new(Exit::Usage, error),
    }
}

fn say_how_it_begins(directory: &Path, earlier: Option<&Earlier>, engine: &Engine, seeds: usize) {
    let job = directory.display();
    let Some(earlier) = earlier else {
        return log::info!("the crawl starts with {seeds} seeds, in {job}");
    };
    let (urls, servers) = (engine.frontier().urls(), engine.frontier().servers());
    if earlier.is_rebuilt() {
        return log::info!(
            "the crawl in {job} resumes from its archive; {urls} URLs wait on {servers} servers"
        );
    }
    let how = if earlier.is_clean() { "was stopped in order" } else { "was not stopped in order" };
    log::info!(
        "the crawl in {job} resumes from its checkpoint of {}; it {how}; {urls} URLs wait on \
         {servers} servers",
        earlier.written()
    );
    if earlier.is_finished() {
        log::warn!(
            "{job}: this crawl was finished: add seeds, or use --retry-given-up if servers were \
             given up"
        );
    }
}

/// Refuses to start a crawl that would add to an archive of which no state is known, or that would
/// discard a state that could be resumed.
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
            "{job}: has a crawl that can be resumed, but state.keep is false; set it to true, or \
             choose another job.directory"
        ),
        None if holds => format!(
            "{job}: has an earlier crawl without a checkpoint; resume it from its archive with \
             `sted crawl --rebuild`, move it away, or choose another job.directory"
        ),
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::Job, text))
}

/// Refuses to resume a crawl if keys that are fixed for the life of a job have changed: its state
/// and its archive were made with the old values, so it would fetch again what it has. If the state
/// is rebuilt, the rules for URLs may change.
fn refuse_what_may_not_change(conf: &Conf, directory: &Path, rebuild: bool) -> Result<(), Failure> {
    let file = directory.join("conf.toml");
    let text = match os::disk::read(directory, "conf.toml") {
        // The earlier crawl ended before it wrote its configuration, so it has fetched nothing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text.map_err(|error| cannot(directory, &error))?,
    };
    let text = String::from_utf8_lossy(&text);
    let name = file.display();
    let began = match Conf::parse(&text, &name.to_string()) {
        Ok(began) => began,
        Err(mistakes) => {
            log::warn!("can't check whether fixed keys have changed: {mistakes}");
            return Ok(());
        }
    };
    // A rebuilt state is made with the present rules of the section [url], so those may differ.
    let kept = |key: &Key| key.flags.contains(&Flag::Kept) && !(rebuild && key.section == "url");
    let changed = began.keys().into_iter().filter(kept).zip(conf.keys().into_iter().filter(kept));
    let differences: Vec<String> = changed
        .filter(|(before, now)| before.value != now.value)
        .map(|(Key { section, name, value, .. }, now)| {
            format!("{section}.{name} was {value} and is now {}", now.value)
        })
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    let text = format!(
        "{}: keys that are fixed for a crawl have changed: {}; restore them (see {name}), or \
         choose another job.directory",
        directory.display(),
        differences.join("; ")
    );
    Err(Failure::new(Exit::Job, text))
}

/// Returns the exit code for the way in which the crawl ended, or the failure that ended it.
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
        (Some(StopReason::FatalError | StopReason::LowDisk), _) => Exit::Disk,
        (Some(StopReason::Finished), _) if missing.is_any() => Exit::NotWhole,
        (Some(StopReason::Finished) | None, _) => Exit::Finished,
    })
}
