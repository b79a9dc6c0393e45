//! Runs one crawl in the simulated world and checks it with the judge.

use super::bound::Bound;
use super::copies::Copies;
use super::measure::pages;
use super::nowhere::Nowhere;
use super::plan::Spec;
use super::scene::{Scene, stay_in_the_web};
use super::series::{Along, Run, Sample, Series};
use crate::commands::{Exit, Failure, inputs, settings};
use crate::conf::{Burst, Conf, Source};
use crate::dns::address::Block;
use crate::engine::Engine;
use crate::engine::settings::{Challenges, Consent, Settings};
use crate::ground::quality::Quality;
use crate::ground::stats::{self, Meter};
use crate::ground::time::Instant;
use crate::seeds::{self, Seed};
use crate::store;
use crate::study;
use crate::study::sim::judge::{Complete, Judge, Laws, Signs};
use crate::study::sim::observation::Observation;
use crate::study::sim::{View, World, now_at};
use crate::study::web::{Place, Resource, Web};
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Runs the crawl `spec` to its end. Calls `progress` with the number of pages fetched since the
/// last call.
///
/// # Errors
/// A crawl that could not begin, or did not end.
pub(super) fn run(spec: &Spec, scene: &Scene, progress: &dyn Fn(u64)) -> Result<Run, Failure> {
    let settings = settings(&spec.conf, scene)?;
    let seeds = starts(&spec.conf, &scene.web)?;
    let (meter, now) = (Meter::new(stats::still), now_at(Instant::ZERO));
    let disk = Nowhere::but_for(spec.trace.as_deref())?;
    let mut engine = Engine::new(settings, &seeds, Box::new(disk), meter, now).map_err(wrong)?;
    let mut world = World::of_web(Arc::clone(&scene.web), study::settings::sim(&spec.conf.sim));
    let judge = Rc::new(RefCell::new(Judge::new(&scene.web, laws(&spec.conf))));
    let truth = Truth::of(scene).filter(|_| estimates(&spec.conf));
    let copies = copies(scene);
    watch(&mut world, &judge, (truth.clone(), Rc::clone(&copies)), scene);
    let mut series = Series::new();
    let (mut reported, mut last, mut looks) = (0, Sample::default(), 0_u64);
    let period = period(&spec.conf);
    let ended = world.run_watched(&mut engine, period, &mut |view| {
        last = sample(view, truth.as_ref(), &mut copies.borrow_mut());
        series.push(last);
        progress(last.pages - reported);
        reported = last.pages;
        looks += 1;
        // Checking the order of all servers takes long, so it is done more and more rarely.
        if looks.is_power_of_two() {
            judge.borrow_mut().inspect(view);
        }
    });
    ended.map_err(|how| stuck(&how, &spec.conf, last))?;
    drop(world);
    conclude(judge, &engine, last, &spec.conf)?;
    inputs::warn_of_table(&spec.conf, engine.rating());
    series.end(last);
    if let Some(error) = engine.fatal_error() {
        // Files other than the trace are discarded, so it is the trace that could not be written.
        let named = spec.trace.iter().map(|path| format!("{}: ", path.display()));
        return Err(Failure::new(Exit::Disk, named.collect::<String>() + &error.to_string()));
    }
    let bound = bound(spec, scene, &series);
    Ok(Run { spec: spec.clone(), series: Arc::new(series), web: scene.crawled(), bound })
}

/// Computes what bounds the crawls with the web and the configuration of this one, if this one is
/// that of the reference policy and the qualities of pages are known.
fn bound(spec: &Spec, scene: &Scene, series: &Series) -> Option<Arc<Bound>> {
    if !spec.is_reference || scene.worths.is_empty() {
        return None;
    }
    let end = series.last();
    // Some more than is counted, and shown in figures.
    let main = 1.2 * series.when(Along::Time, 0.95 * end.pages as f64, pages)?;
    let span = (main.min(end.seconds), end.seconds);
    Some(Arc::new(Bound::new(&scene.web, &scene.worths, &spec.conf, span)))
}

/// Returns the failure of a crawl that did not end: its time was up, or it makes no progress, which
/// is a bug.
fn stuck(how: &str, conf: &Conf, last: Sample) -> Failure {
    let time_max = conf.sim.time_max;
    if Duration::from_secs_f64(last.seconds) + period(conf) < time_max {
        return wrong(how);
    }
    let text = format!(
        "sim.time_max: after {time_max:?} of virtual time the crawl has {} pages and goes on; give \
         it more, or shorten what it waits for (retries, time-outs, rests)",
        last.pages
    );
    Failure::new(Exit::Usage, text)
}

fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Internal, error)
}

fn period(conf: &Conf) -> Duration {
    conf.compare.as_ref().map_or(Duration::from_secs(1), |compare| compare.sample_period)
}

/// Returns the URLs that a crawl starts from: those in the configuration, or the web's own if it
/// has none.
fn starts(conf: &Conf, web: &Web) -> Result<Vec<Seed>, Failure> {
    if has_seeds(conf) {
        return inputs::seeds(conf);
    }
    let (seeds, mistakes) = seeds::parse(web.seeds().join("\n").as_bytes());
    assert!(mistakes.is_empty(), "a synthetic web's own URLs are URLs");
    Ok(seeds)
}

fn has_seeds(conf: &Conf) -> bool {
    !conf.job.seeds.is_empty() || conf.job.seeds_file.is_some()
}

/// Returns the engine's settings for a crawl: as configured, but with the simulated addresses, and
/// without state on disk.
fn settings(conf: &Conf, scene: &Scene) -> Result<Settings, Failure> {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&conf.sim.seed.to_le_bytes());
    let mut settings = settings::engine(conf, key);
    let loopback = Block::new(IpAddr::from([127, 0, 0, 0]), 8).expect("8 of 32 bits");
    settings.connections.addresses.allowed.push(loopback);
    settings.store.format = store::Format::None;
    // Nothing is left in which it could be recorded.
    settings.consent = Consent::default();
    settings.challenges = Challenges::default();
    settings.keep_no_state();
    settings.trace = conf.compare.as_ref().is_some_and(|compare| compare.trace);
    stay_in_the_web(&mut settings.scope);
    if conf.quality.source == Source::Uniform
        && let Some(table) = &scene.table
    {
        settings.rating.source = Source::Table;
        settings.rating.table = Some(Arc::clone(table));
        settings.rating.unlisted = Quality::ZERO;
    } else {
        settings.rating.table = inputs::qualities(conf, key)?;
        settings.signing = inputs::signing(conf)?;
        if conf.quality.source == Source::Parent && settings.rating.table.is_none() {
            // These are the qualities of fetched pages; those of links are estimated.
            settings.rating.table.clone_from(&scene.table);
        }
    }
    Ok(settings)
}

/// Whether the crawls estimate page qualities themselves; then the results are measured by the true
/// qualities, which the crawls don't know.
fn estimates(conf: &Conf) -> bool {
    conf.quality.source != Source::Uniform
}

/// Returns the copies of a crawl that begins.
fn copies(scene: &Scene) -> Rc<RefCell<Copies>> {
    let weights = scene.worths.iter().map(|worth| worth.millionths() as f64 / 1e6).collect();
    Rc::new(RefCell::new(Copies::new(&scene.web, weights)))
}

fn sample(view: &View<'_>, truth: Option<&Truth>, copies: &mut Copies) -> Sample {
    let counts = view.engine.counts();
    let (fresh, age) = copies.freshness(view.at);
    Sample {
        seconds: view.at.since(Instant::ZERO).as_secs_f64(),
        pages: counts.pages,
        quality_millionths: truth.map_or(counts.quality_millionths, Truth::millionths),
        requests: counts.requests,
        bytes: view.figures.received_bytes,
        connections: view.figures.connections,
        busy_seconds: view.figures.core_busy.as_secs_f64(),
        fresh,
        age,
    }
}

/// The most work that the last step of a turn (one call of the engine) may take beyond the turn's
/// budget, in units of the engine's ledger of work.
const TURN_STEP_UNITS: usize = 512 << 10;

/// Returns the laws by which the judge checks a crawl, as far as they follow from its
/// configuration.
fn laws(conf: &Conf) -> Laws {
    let (politeness, retries) = (&conf.politeness, &conf.retries);
    Laws {
        connections_max: conf.connections.open_max,
        depth_max: if conf.pipeline.enabled { conf.pipeline.depth_max.into() } else { 1 },
        burst: match politeness.burst {
            Burst::Requests(requests) => Some(requests),
            Burst::Server => None,
        },
        delay: politeness.delay,
        delay_factor_milli: politeness.delay_factor.thousandths(),
        delay_max: politeness.delay_max,
        robots: politeness.robots,
        tries_max: u32::from(retries.retries_max) + 1,
        probation: conf.pipeline.probation.into(),
        // One connection may exceed the budget of buffers, by up to a whole reply and a buffer.
        held_bytes_max: conf.memory.buffers + conf.fetch.body_bytes_max + (1 << 20),
        archive: false,
        // With other seeds, or when only some links are followed, not all pages can be reached.
        complete: match has_seeds(conf) || conf.links.links_max < Conf::default().links.links_max {
            true => Complete::Never,
            false => Complete::Unless,
        },
        address_visits_max: politeness.address_visits_max,
        domain_visits_max: politeness.domain_visits_max,
        address_delay: politeness.address_delay,
        domain_delay: politeness.domain_delay,
        random_share_milli: conf.schedule.random_share.thousandths(),
        turn_units_max: conf.fetch.work_bytes_per_turn + TURN_STEP_UNITS,
        // A record is written in one step that may exceed the budget; but none is kept here.
        turn_intake_max: conf.fetch.work_bytes_per_turn + TURN_STEP_UNITS,
        signs: Signs::Never,
        obeys: None,
        again: conf.recrawl.policy.map(|_| conf.recrawl.interval_min),
        server_pages_max: None,
        domain_pages_max: None,
        sites: Vec::new(),
    }
}

/// Ends the judge's work and returns its verdict.
fn conclude(
    judge: Rc<RefCell<Judge>>,
    engine: &Engine,
    last: Sample,
    conf: &Conf,
) -> Result<(), Failure> {
    let judge = Rc::into_inner(judge).expect("the world is gone").into_inner();
    let at = Instant::ZERO + Duration::from_secs_f64(last.seconds);
    judge.conclude(engine, at).map_err(|broken| {
        let violations: Vec<String> = broken.iter().map(ToString::to_string).collect();
        let (web, sim) = (conf.web.seed, conf.sim.seed);
        wrong(format!("{}; web.seed = {web} and sim.seed = {sim} repeat it", violations.join("; ")))
    })
}

/// Passes what the servers observe to the judge, to the copies, and, if there is one, to `truth`,
/// the sum of true qualities.
fn watch(
    world: &mut World,
    judge: &Rc<RefCell<Judge>>,
    (truth, copies): (Option<Truth>, Rc<RefCell<Copies>>),
    scene: &Scene,
) {
    let (judge, web) = (Rc::clone(judge), Arc::clone(&scene.web));
    world.watch_servers(Box::new(move |at, seen| {
        judge.borrow_mut().observe(at, seen);
        copies.borrow_mut().observe(&web, at, seen);
        if let Some(truth) = &truth
            && let Some(index) = page_of(&web, seen)
        {
            truth.arrived(index);
        }
    }));
}

/// Adds up the true qualities of pages as their replies arrive, whatever the crawl estimates.
#[derive(Clone)]
struct Truth {
    /// First the quality of each page, 0 once it has arrived; second the sum for those that have
    /// arrived.
    worths: Rc<RefCell<(Vec<u64>, u64)>>,
}

impl Truth {
    fn of(scene: &Scene) -> Option<Self> {
        let worths: Vec<u64> = scene.worths.iter().map(|worth| worth.millionths()).collect();
        (!worths.is_empty()).then(|| Self { worths: Rc::new(RefCell::new((worths, 0))) })
    }

    fn arrived(&self, index: usize) {
        let (worths, sum) = &mut *self.worths.borrow_mut();
        // Each page counts once: this leaves 0 for a second reply.
        *sum += std::mem::take(&mut worths[index]);
    }

    fn millionths(&self) -> u64 {
        self.worths.borrow().1
    }
}

/// Returns the index of the page whose complete reply an observation reports; `None` if it reports
/// something else. Redirects don't count.
fn page_of(web: &Web, seen: &Observation) -> Option<usize> {
    match seen {
        Observation::Reply {
            place: Some(Place { host, resource: Resource::Page(page) }),
            status,
            whole: true,
            ..
        } if !(300..400).contains(status) => Some(web.page_index(*host, *page)),
        _ => None,
    }
}
