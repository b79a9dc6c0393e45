//! `sted crawl`: runs or resumes the crawl that a configuration describes.
//!
//! It prepares the job directory (for one process at a time), starts the lab (a local synthetic
//! web) if the configuration has one, runs the engine in the real world, and prints a summary at
//! the end. A job that was stopped, in any way, is resumed from its checkpoint and its archive.

mod asked;
mod claim;
mod site;

use super::missing::Missing;
use super::progress::Progress;
use super::reload::FileReloader;
use super::summary::Summary;
use super::{ConfFile, Exit, Failure, admin, cluster, inputs, named, settings, sites, study};
use crate::conf::Conf;
use crate::engine::contract::StopReason;
use crate::engine::settings::Settings;
use crate::engine::{Earlier, Engine};
use crate::ground::stats::Meter;
use crate::os::disk::{Lock, OsDisk};
use crate::os::{self, console, signal};
pub use asked::Asked;
use asked::Form;
pub(super) use claim::{damaged, refused};
use claim::{rebuilt, refuse_what_cannot_go_on, refuse_what_may_not_change, take_job, write_whole};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Runs or resumes the crawl that the arguments ask for.
///
/// # Errors
/// The reason why the crawl could not start or ended early, with the exit code for it.
pub fn run(asked: &Asked) -> Result<Exit, Failure> {
    signal::catch_early();
    let began = std::time::Instant::now();
    let (file, mut conf, lock) = prepare(asked)?;
    let (rebuild, resume) = (asked.rebuild, file.crawl_command());
    let directory = conf.job.directory.clone();
    let disk = OsDisk::open(&directory);
    let mut disk = disk.map_err(|error| Failure::of_file(&directory, &error))?;
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
    let joined = cluster::join(&conf, key, earlier.is_some())?;
    let key = joined.as_ref().map_or(key, cluster::Joined::key);
    let (table, signing) = (inputs::qualities(&conf, key)?, inputs::signing(&conf)?);
    let (effective, read) = (conf.render(), conf.clone());
    let lab = study::lab_of(&mut conf, &file, &directory)?;
    let seeds = inputs::seeds(&conf)?;
    inputs::warn_of_scope(&conf, &seeds);
    inputs::warn_of_conf(&conf);
    let mut settings = settings::engine(&conf, key);
    (settings.rating.table, settings.signing) = (table, signing);
    write_whole(&directory, "conf.toml", &effective)?;
    let progress = Progress::new(&conf);
    let (admin, board) = admin::admin(&conf).unzip();
    let period = progress.period().min(admin::period(board.as_ref()));
    let mut world = world(&conf, period, joined, &mut settings)?;
    listen(&mut world, &lock, FileReloader::new(file, read, conf.clone(), key), admin)?;
    let (before, now) = (began.elapsed(), world.now());
    let meter = Meter::new(signal::tick);
    let mut engine = Engine::open(settings, &seeds, Box::new(disk), meter, now)
        .map_err(|error| refused(&directory, error))?;
    say_how_it_begins(&directory, earlier.as_ref(), &engine, seeds.len());
    if asked.retry_given_up {
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
    let missing = Missing::of(engine.counts(), &conf);
    let exit = finish(&engine, &missing);
    let resume = exit.is_ok().then(|| how_to_resume(&engine, &resume)).flatten();
    print(&summary.text(&directory, resume.as_deref(), &missing.text(), console::is_verbose()));
    exit
}

/// Prints the summary. Ignores errors: a reader that has closed stdout doesn't want it.
fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// Returns the configuration that the arguments ask for, and the lock on its job.
fn prepare(asked: &Asked) -> Result<(ConfFile, Conf, Lock), Failure> {
    match asked.form()? {
        Form::Urls(urls) => site::prepare(asked, &urls),
        Form::File(file) => {
            let conf = configuration(&file)?;
            let lock = take_job(&conf, Some(&file.path))?;
            Ok((file, conf, lock))
        }
    }
}

/// Loads the configuration `file`. Checks that it describes a crawl and that the files it names
/// exist.
fn configuration(file: &ConfFile) -> Result<Conf, Failure> {
    let (conf, path) = (file.load()?, &file.path);
    if conf.lab.is_none() && conf.compare.is_some() {
        let text = format!(
            "{}: has [compare] but no [lab]: use `sted compare`, or add [lab] to crawl this web",
            path.display()
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    let named = path.display().to_string();
    conf.has_all_headers(&named).map_err(|mistakes| Failure::new(Exit::Usage, mistakes))?;
    sites::warn(&conf, path);
    study::refuse_lab(&conf, path)?;
    named::refuse_missing(&conf, path)?;
    Ok(conf)
}

/// Sets up the world of a crawl, and the engine's settings if it is a node of a shared crawl.
fn world(
    conf: &Conf,
    period: Duration,
    joined: Option<cluster::Joined>,
    engine: &mut Settings,
) -> Result<os::World, Failure> {
    let mut world = settings::world(conf, period);
    if let Some(joined) = joined {
        joined.apply(engine, &mut world);
    }
    os::World::new(&world).map_err(cannot_begin)
}

/// Returns the failure of a world that could not be set up.
fn cannot_begin(error: os::Error) -> Failure {
    match error {
        os::Error::Scorer(error) => Failure::new(Exit::Usage, format!("quality.command: {error}")),
        error => Failure::new(Exit::System, error),
    }
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

/// Returns how to resume the crawl, if there is more to fetch.
fn how_to_resume(engine: &Engine, command: &str) -> Option<String> {
    how_to_resume_after(engine.stop_reason().filter(|_| engine.is_finished()), command)
}

/// Returns how to resume a crawl that ended for this reason, if there is more to fetch: `command`,
/// which runs it again, and what to do before, because otherwise it would end at once for the same
/// reason. `None` is a crawl that was stopped at once.
fn how_to_resume_after(reason: Option<StopReason>, command: &str) -> Option<String> {
    let raise = |key: &str| format!("raise {key}: {command} --set {key}=N");
    match reason {
        Some(StopReason::Pages) => Some(raise("limits.pages_max")),
        Some(StopReason::Bytes) => Some(raise("limits.bytes_max")),
        Some(StopReason::Outage) => Some(format!("when servers can be reached again: {command}")),
        Some(StopReason::LowDisk) => {
            Some(format!("free disk space, or lower disk.free_min: {command}"))
        }
        // The limit on time is one of each run.
        None | Some(StopReason::Interrupted | StopReason::Time) => Some(command.to_owned()),
        Some(StopReason::Finished | StopReason::FatalError) => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The command alone is named only where it would fetch more.
    #[test]
    fn a_limit_is_raised_before_a_crawl_is_resumed() {
        use StopReason as Reason;
        for (reason, expected) in [
            (None, Some("sted crawl a.toml")),
            (Some(Reason::Interrupted), Some("sted crawl a.toml")),
            (Some(Reason::Time), Some("sted crawl a.toml")),
            (
                Some(Reason::Pages),
                Some("raise limits.pages_max: sted crawl a.toml --set limits.pages_max=N"),
            ),
            (
                Some(Reason::Bytes),
                Some("raise limits.bytes_max: sted crawl a.toml --set limits.bytes_max=N"),
            ),
            (Some(Reason::Outage), Some("when servers can be reached again: sted crawl a.toml")),
            (
                Some(Reason::LowDisk),
                Some("free disk space, or lower disk.free_min: sted crawl a.toml"),
            ),
            (Some(Reason::Finished), None),
            (Some(Reason::FatalError), None),
        ] {
            let how = how_to_resume_after(reason, "sted crawl a.toml");
            assert_eq!(how.as_deref(), expected, "{reason:?}");
        }
    }
}
