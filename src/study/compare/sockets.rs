//! Crawls the lab (a local server of the synthetic web) over the loopback interface, in wall time:
//! one crawl after the other, each with its own lab and its own job directory, `runs/NNNN` below
//! the comparison's. Each can be crawled again with the `conf.toml` in its directory.

use super::plan::{Plan, Spec};
use super::scene::stay_in_the_web;
use super::scene::{self, Scene, Scenes};
use super::series::{self, Run, Sample, Series};
use super::watch::Watch;
use crate::commands::{ConfFile, Exit, Failure, inputs, settings};
use crate::conf::{self, Compare, Conf, Events, Sim, Source};
use crate::engine::Engine;
use crate::engine::contract::StopReason;
use crate::engine::settings::Settings;
use crate::ground::quality::Quality;
use crate::ground::stats::Meter;
use crate::os::disk::OsDisk;
use crate::os::{self, View, signal};
use crate::study::child::Lab;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Runs all crawls of a plan, in its order.
///
/// # Errors
/// The first run that did not end by itself.
pub(super) fn run_all(plan: &Plan, conf: &Conf, compare: &Compare) -> Result<Vec<Run>, Failure> {
    let folder = compare.directory.join("runs");
    if folder.exists() {
        let text = format!(
            "{}: holds the crawls of an earlier comparison; move them away, or name another \
             compare.directory",
            folder.display()
        );
        return Err(Failure::new(Exit::Job, text));
    }
    let crawls = plan.crawls();
    let watch = Watch::new(crawls.len(), conf);
    let scenes = Scenes::new(plan);
    let runs = crawls.into_iter().map(|index| {
        let spec = &plan.runs[index];
        let scene = scenes.of(spec.ground)?;
        let directory = folder.join(format!("{:04}", index + 1));
        let run = run(spec, &scene, &directory, &watch).map_err(|failure| {
            watch.clear();
            super::named(plan, index, failure)
        })?;
        watch.one_done();
        Ok(run)
    });
    let runs: Result<Vec<Run>, Failure> = runs.collect();
    watch.clear();
    Ok(series::spread(plan, runs?))
}

fn run(spec: &Spec, scene: &Scene, directory: &Path, watch: &Watch) -> Result<Run, Failure> {
    let disk = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Disk, format!("{}: {error}", directory.display()))
    };
    let system = |error: &dyn std::fmt::Display| Failure::new(Exit::System, error);
    let mut conf = crawl_conf(&spec.conf, directory);
    inputs::check_descriptors(&conf)?;
    fs::create_dir_all(directory).map_err(|error| disk(&error))?;
    let file = directory.join("conf.toml");
    fs::write(&file, conf.render()).map_err(|error| disk(&error))?;
    let lab = Lab::start(&ConfFile::new(&file), None)?;
    lab.adapt(&mut conf)?;
    let seeds = inputs::seeds(&conf)?;
    let settings = settings(&conf, scene, &lab)?;
    let files = OsDisk::open(directory).map_err(|error| disk(&error))?;
    let period = spec.conf.compare.as_ref().map(|compare| compare.sample_period);
    let period = period.expect("a run is part of a comparison");
    let mut world =
        os::World::new(&settings::world(&conf, period)).map_err(|error| system(&error))?;
    let (meter, now) = (Meter::new(signal::tick), world.now());
    let mut engine = Engine::new(settings, &seeds, Box::new(files), meter, now)
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    let (mut series, mut last) = (Series::new(), Sample::default());
    let ended = world.run(&mut engine, &mut |view| {
        let now = sample(&view);
        watch.more_pages(now.pages - last.pages);
        watch.show();
        last = now;
        series.push(last);
    });
    ended.map_err(|error| system(&error))?;
    series.end(last);
    match (engine.fatal_error(), engine.stop_reason()) {
        (Some(trouble), _) => Err(disk(trouble)),
        (None, Some(StopReason::Interrupted)) => {
            let text = "stopped by a signal; no results were written";
            Err(Failure::new(Exit::Interrupted, text))
        }
        _ => Ok(Run {
            spec: spec.clone(),
            series: Arc::new(series),
            web: scene.crawled(),
            bound: None,
        }),
    }
}

/// Returns the configuration of a run for a crawl of its own in `directory`, outside the
/// comparison.
fn crawl_conf(conf: &Conf, directory: &Path) -> Conf {
    let mut conf = conf.clone();
    conf.job.trace |= conf.compare.take().is_some_and(|compare| compare.trace);
    conf.sim = Sim::default();
    conf.job.directory = directory.to_owned();
    let directory = directory.join("lab");
    conf.lab =
        Some(conf::Lab { directory, manifest: false, events: Events::None, keys_file: None });
    conf
}

fn settings(conf: &Conf, scene: &Scene, lab: &Lab) -> Result<Settings, Failure> {
    let key = signal::entropy();
    let mut settings = settings::engine(conf, key);
    stay_in_the_web(&mut settings.scope);
    settings.keep_no_state();
    if conf.quality.source == Source::Uniform && !scene.worths.is_empty() {
        // The URLs of the web must have the ports of the lab.
        let web = scene.web.at_ports(lab.ports()?);
        settings.rating.source = Source::Table;
        settings.rating.table = Some(Arc::new(scene::table(&web, &scene.worths)));
        settings.rating.unlisted = Quality::ZERO;
    } else {
        settings.rating.table = inputs::qualities(conf, key)?;
        settings.signing = inputs::signing(conf)?;
    }
    Ok(settings)
}

fn sample(view: &View<'_>) -> Sample {
    let engine = &view.engine;
    let counts = engine.counts();
    let (busy, parked) = engine.connections();
    Sample {
        seconds: engine.elapsed().as_secs_f64(),
        pages: counts.pages,
        quality_millionths: counts.quality_millionths,
        requests: counts.requests,
        bytes: counts.received_bytes,
        connections: busy + parked,
        busy_seconds: view.usage.cpu_us() as f64 / 1e6,
        // Nobody sees here what the servers send.
        fresh: f64::NAN,
        age: f64::NAN,
    }
}
