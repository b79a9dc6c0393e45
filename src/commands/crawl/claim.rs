//! The claim of a crawl on its job directory: the lock, and what keeps a crawl from starting there.
//!
//! A job belongs to the crawl that began it. Nothing is written to a directory that has other files
//! and no job, or the job of another crawl.

use crate::commands::{Exit, Failure, named};
use crate::conf::{Conf, Flag, Key};
use crate::engine::{self, Earlier};
use crate::ground::disk::Disk;
use crate::ground::frame;
use crate::ground::time::UnixTime;
use crate::os::disk::{Lock, LockError, OsDisk};
use crate::os::{self, signal};
use crate::store;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Names of files and folders of which at least one is in every job directory.
const MARKS: [&str; 5] = ["lock", "state", "crawl.log", "crawl.parts", "warc"];
/// The number of foreign files that a message names.
const FOREIGN_SHOWN: usize = 3;

/// Creates the job directory if necessary, and locks it for this process. `file` is the
/// configuration, if it is a file already.
pub(super) fn take_job(conf: &Conf, file: Option<&Path>) -> Result<Lock, Failure> {
    let directory = &conf.job.directory;
    if let Some(file) = file {
        refuse_moved(directory, file)?;
    }
    refuse_foreign(conf, file)?;
    refuse_other_name(conf, file)?;
    fs::create_dir_all(directory).map_err(|error| Failure::of_file(directory, &error))?;
    let lock = os::disk::lock(directory).map_err(not_locked)?;
    if let Some(how) = os::disk::exposure(directory) {
        log::warn!(
            "{}: other users can change the files of this crawl: {how}",
            directory.display()
        );
    }
    Ok(lock)
}

/// Refuses a configuration that is a file of another job than the one it names: a job that was
/// moved would begin again in its old place.
fn refuse_moved(directory: &Path, file: &Path) -> Result<(), Failure> {
    let Ok(file) = file.canonicalize() else { return Ok(()) };
    let Some(folder) = file.parent() else { return Ok(()) };
    let is_own = file.file_name().is_some_and(|name| name == "job.toml" || name == "conf.toml");
    let is_there = directory.canonicalize().is_ok_and(|directory| directory == folder);
    if !is_own || is_there || !folder.join("lock").exists() {
        return Ok(());
    }
    let text = format!(
        "{}: names the job directory {}, but belongs to the job in {}; correct job.directory, or \
         add --set job.directory={}",
        file.display(),
        directory.display(),
        folder.display(),
        folder.display()
    );
    Err(Failure::new(Exit::Job, text))
}

/// Refuses a directory that has files, but no job.
fn refuse_foreign(conf: &Conf, file: Option<&Path>) -> Result<(), Failure> {
    let directory = &conf.job.directory;
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| Failure::of_file(directory, &error))?,
    };
    let own: Vec<PathBuf> = named::files(conf)
        .into_iter()
        .chain(file.map(Path::to_owned))
        .filter_map(|file| file.canonicalize().ok())
        .collect();
    let (mut foreign, mut count) = (Vec::new(), 0);
    for entry in entries {
        let entry = entry.map_err(|error| Failure::of_file(directory, &error))?;
        let name = entry.file_name();
        if MARKS.iter().any(|mark| name == *mark) {
            return Ok(());
        }
        // The operator may keep the configuration and the seeds where the job will be, but not as
        // conf.toml, which the crawl writes. A new file system has a folder of its own.
        let is_own = entry.path().canonicalize().is_ok_and(|path| own.contains(&path));
        if is_own && name != "conf.toml" || name == "lost+found" {
            continue;
        }
        count += 1;
        if foreign.len() < FOREIGN_SHOWN {
            foreign.push(name.to_string_lossy().into_owned());
        }
    }
    if count == 0 {
        return Ok(());
    }
    let more = if count > foreign.len() { ", ..." } else { "" };
    let text = format!(
        "{}: has files that are not of a crawl ({}{more}); choose a new or an empty directory as \
         {}",
        directory.display(),
        foreign.join(", "),
        directory_key(file)
    );
    Err(Failure::new(Exit::Job, text))
}

/// Returns what sets the job directory: a key of the configuration, or an option.
fn directory_key(file: Option<&Path>) -> &'static str {
    if file.is_some() { "job.directory" } else { "--out DIR" }
}

/// Refuses the job of a crawl with another name.
fn refuse_other_name(conf: &Conf, file: Option<&Path>) -> Result<(), Failure> {
    let directory = &conf.job.directory;
    let Some(Ok(began)) = conf_of_job(directory)? else { return Ok(()) };
    if began.job.name == conf.job.name {
        return Ok(());
    }
    let (was, is) = (&began.job.name, &conf.job.name);
    let fix = match file {
        Some(_) => format!("write job.name = {was:?} to resume it"),
        None => "resume it by its job.toml".to_owned(),
    };
    let text = format!(
        "{}: has the job {was:?}, and this crawl is {is:?}; {fix}, or choose another {}",
        directory.display(),
        directory_key(file)
    );
    Err(Failure::new(Exit::Job, text))
}

/// Reads the configuration that a job began with, or its mistakes as text. Returns `None` if an
/// earlier crawl ended before it wrote its configuration, so that it has fetched nothing.
fn conf_of_job(directory: &Path) -> Result<Option<Result<Conf, String>>, Failure> {
    if !directory.is_dir() {
        return Ok(None);
    }
    let text = match os::disk::read(directory, "conf.toml") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| Failure::of_file(directory, &error))?,
    };
    let name = directory.join("conf.toml").display().to_string();
    let conf = Conf::parse(&String::from_utf8_lossy(&text), &name);
    Ok(Some(conf.map_err(|mistakes| mistakes.to_string())))
}

/// Replaces the file `name` in `directory` atomically, because half a configuration would parse as
/// one with other values.
pub(super) fn write_whole(directory: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let written = os::disk::replace(directory, name, text.as_bytes());
    written.map_err(|error| Failure::of_file(&directory.join(name), &error))
}

/// Converts the error of locking a job to a failure with an exit code.
fn not_locked(error: LockError) -> Failure {
    let exit = match error {
        LockError::Held { .. } => Exit::Job,
        LockError::Failed { .. } => Exit::Disk,
    };
    Failure::new(exit, error)
}

/// Returns the failure for a state on disk that can't be read, with a fix.
pub(in crate::commands) fn damaged(directory: &Path, error: &frame::Error) -> Failure {
    let job = directory.display();
    match error {
        frame::Error::Disk(error) => Failure::of_file(directory, error),
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
pub(super) fn rebuilt(directory: &Path, disk: &mut OsDisk) -> Result<Earlier, Failure> {
    if !holds_crawl(disk).map_err(|error| Failure::of_file(directory, &error))? {
        let job = directory.display();
        return Err(Failure::new(Exit::Job, format!("{job}: has no crawl to rebuild")));
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = UnixTime::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    Earlier::rebuild(signal::entropy(), now, disk)
        .map_err(|error| Failure::of_file(directory, &error))
}

/// Returns whether a crawl has written anything in this job directory. Its log may have been moved
/// away.
fn holds_crawl(disk: &mut OsDisk) -> Result<bool, crate::ground::disk::Error> {
    let has_log = disk.len("crawl.log")?.is_some() || !store::log_parts(disk)?.is_empty();
    Ok(has_log || !disk.list("warc")?.is_empty() || !disk.list("index")?.is_empty())
}

/// Converts an error that the engine returned at its start to a failure.
pub(in crate::commands) fn refused(directory: &Path, error: engine::Error) -> Failure {
    match error {
        engine::Error::State(error) => damaged(directory, &error),
        engine::Error::Store(error) => Failure::of_file(directory, &error),
        error => Failure::new(Exit::Usage, error),
    }
}

/// Refuses to start a crawl that would add to an archive of which no state is known, or that would
/// discard a state that could be resumed.
pub(super) fn refuse_what_cannot_go_on(
    conf: &Conf,
    directory: &Path,
    disk: &mut OsDisk,
    earlier: Option<&Earlier>,
) -> Result<(), Failure> {
    let job = directory.display();
    let holds = holds_crawl(disk).map_err(|error| Failure::of_file(directory, &error))?;
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
pub(super) fn refuse_what_may_not_change(
    conf: &Conf,
    directory: &Path,
    rebuild: bool,
) -> Result<(), Failure> {
    let began = match conf_of_job(directory)? {
        None => return Ok(()),
        Some(Ok(began)) => began,
        Some(Err(mistakes)) => {
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
        "{}: keys that are fixed for a crawl have changed: {}; restore them (see {}), or \
         choose another job.directory",
        directory.display(),
        differences.join("; "),
        directory.join("conf.toml").display()
    );
    Err(Failure::new(Exit::Job, text))
}
