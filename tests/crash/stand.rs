//! Runs a crawl in several processes, from its first to its end: one web, one disk, one judge.

use super::archive::{Archive, Taken, take_away};
use super::plan::{self, Life, Plan, Trouble};
use crate::sweep::{place_of, qualities};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use sted::engine::Engine;

use sted::engine::contract::{Command, Order, Reload, Reply, StopReason, Target};
use sted::ground::disk::Disk;
use sted::ground::stats::{Meter, still};
use sted::ground::time::Instant;
use sted::rating;
use sted::seeds::{self, Seed};
use sted::store::{Format, log};
use sted::study::sim::disk::MemoryDisk;
use sted::study::sim::judge::{Captures, End, Judge, Violation};
use sted::study::sim::settings::DiskFaults;
use sted::study::sim::{Jump, Ran, View, World};
use sted::study::web::{Place, Ports, Web};
use sted::url::scope::Scope;

/// A deliberate fault, to test whether the judge notices it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    #[default]
    None,
    /// Syncs report success and make nothing durable.
    Lies,
    /// Everything under `state/` is deleted after a crash.
    Amnesia,
    /// After a crash the checkpoint is changed to say that the crawl was stopped in order.
    Claimed,
    /// The judge expects longer rests than the crawl keeps.
    Haste,
    /// At the end, a capture is removed from the index, entered twice, or damaged.
    Removed,
    Doubled,
    Damaged,
    /// The engine doesn't get the operator's commands.
    Deaf,
}

/// The result of a plan.
pub struct Outcome {
    pub verdict: Result<(), String>,
    pub actions: String,
    pub files: Vec<(String, Vec<u8>)>,
    /// The number of processes that ended before the crawl did.
    pub cut_short: usize,
    /// The number of robots.txt rules that were read back from the disk.
    pub rules_read: u64,
}

const CHECKPOINT: &str = "state/checkpoint";
/// The mark of a checkpoint after an orderly stop.
const CLEAN: &str = "\"clean\":true";

/// The state of a running plan.
struct Stand<'a> {
    plan: &'a Plan,
    sabotage: Sabotage,
    web: Arc<Web>,
    seeds: Vec<Seed>,
    disk: MemoryDisk,
    world: World,
    judge: Rc<RefCell<Judge>>,
    looks: u32,
    cut_short: usize,
    is_full: bool,
    /// What a process leaves to the next one if it dies while it opens what was there.
    carried: Option<Carried>,
    /// Files moved away from the archive.
    taken: Taken,
    /// The commands carried out so far, with their numbers.
    given: Vec<(u64, Command)>,
    /// The number of the last command that has been reported as durable.
    durable_orders: u64,
}

/// What a process that died while opening leaves to the next one: all of it from the process
/// before.
struct Carried {
    /// How the process before it ended.
    end: End,
    /// Captures that must still be there.
    kept: Captures,
    /// Captures that survive a loss of power, because a sync has reported them as durable. Others
    /// may survive by chance.
    durable: Captures,
}

/// How a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The crawl is finished.
    Finished,
    /// It was asked to stop.
    Stopped,
    /// It stopped because of the disk.
    Troubled,
    Killed,
}

impl Ended {
    /// Converts it to the judge's enum.
    fn for_judge(self) -> End {
        match self {
            Self::Finished | Self::Stopped => End::Stopped,
            Self::Troubled => End::Failed,
            Self::Killed => End::Killed,
        }
    }
}

/// Runs a plan.
pub fn run(plan: &Plan, sabotage: Sabotage, records: bool) -> Outcome {
    let web = Arc::new(Web::new(plan.crawl.web.clone(), Ports::default()));
    let (seeds, mistakes) = seeds::parse(web.seeds().join("\n").as_bytes());
    assert!(mistakes.is_empty(), "a web's seeds are URLs");
    let disk = MemoryDisk::new();
    let mut laws = plan.crawl.laws.clone();
    if sabotage == Sabotage::Haste {
        laws.delay *= 3;
        laws.delay_max *= 3;
    }
    let judge = Rc::new(RefCell::new(Judge::new(&web, laws)));
    let mut world = World::of_web(Arc::clone(&web), plan.crawl.world.clone());
    world.score_by(Box::new(qualities::score));
    let observer = Rc::clone(&judge);
    world.watch_servers(Box::new(move |at, seen| observer.borrow_mut().observe(at, seen)));
    world.dies_with(disk.clone());
    if records {
        world.record_actions();
    }
    let mut stand = Stand {
        plan,
        sabotage,
        web,
        seeds,
        disk,
        world,
        judge,
        looks: 0,
        cut_short: 0,
        is_full: false,
        carried: None,
        taken: Taken::new(),
        given: Vec::new(),
        durable_orders: 0,
    };
    stand.set_faults(None);
    let ended = stand.run();
    let Stand { disk, world, judge, cut_short, web, taken, .. } = stand;
    let (actions, at) = (world.actions().to_owned(), world.at());
    drop(world);
    let judge = Rc::into_inner(judge).expect("the world is gone").into_inner();
    spoil(&disk, sabotage);
    let rules_read = ended.as_ref().map_or(0, |engine| engine.counts().rules_read);
    let verdict = ended.and_then(|engine| {
        let with_archive = plan.crawl.engine.store.format == Format::Warc;
        let rating = &plan.crawl.engine.rating;
        conclude(judge, &engine, at, (&disk, &taken), with_archive.then_some(&web), rating)
    });
    let named = |name: String| (name.clone(), disk.read(&name).expect("it is there"));
    let files = disk.names().into_iter().map(named).collect();
    Outcome { verdict, actions, files, cut_short, rules_read }
}

/// Checks the last laws after the end of the crawl.
fn conclude(
    mut judge: Judge,
    engine: &Engine,
    at: Instant,
    (disk, taken): (&MemoryDisk, &Taken),
    archived: Option<&Web>,
    rating: &rating::Settings,
) -> Result<(), String> {
    let mut captures = Captures::default();
    if let Some(web) = archived {
        captures = Archive::of(disk, taken).read(web)?;
        judge.check_archive(at, &captures);
    }
    // A crawl that ends at a limit may go on with its files.
    let is_over = engine.stop_reason() == Some(StopReason::Finished);
    if let Some(name) = disk.names().iter().find(|name| is_over && is_unfinished(name)) {
        return Err(format!("{name} was left behind"));
    }
    let is_log = |name: &String| name.starts_with("crawl") && name.ends_with(".log");
    let logs = disk.names().into_iter().filter(is_log);
    let text = logs.filter_map(|name| disk.read(&name)).collect::<Vec<_>>().concat();
    let text = String::from_utf8(text).map_err(|error| format!("crawl.log: {error}"))?;
    if let Some(line) = text.lines().find(|line| log::parse(line).is_err()) {
        return Err(format!("crawl.log: {line:?}"));
    }
    if let Some((known, web)) = engine.known_pages().zip(archived) {
        // Pages that redirects led to may be the targets of known ones.
        let is_found = |entry: &log::Entry<'_>| {
            entry.status == 200 && !entry.path.unwrap_or_default().contains('R')
        };
        let found = text.lines().filter_map(|line| log::parse(line).ok()).filter(is_found);
        let places = found.filter_map(|entry| place_of(web, entry.url));
        let pages: BTreeSet<Place> = places.filter(|place| captures.contains_key(place)).collect();
        let (least, left) = (pages.len() as u64, engine.captures_left() as u64);
        let remembered = known.pages + known.visits.forgotten + left;
        if remembered < least {
            return Err(format!("{remembered} of {least} pages are known or were given up"));
        }
    }
    let listed = |broken: Vec<Violation>| -> String {
        broken.iter().map(|one| format!("\n  {one}")).collect()
    };
    judge.conclude(engine, at).map_err(listed)?;
    qualities::check(&text, rating)?;
    match engine.counts().cut.get("archive-lost") {
        Some(lost) => Err(format!("{lost} captures count as lost, and nobody took them")),
        None => Ok(()),
    }
}

fn is_unfinished(name: &str) -> bool {
    name.ends_with(".open") || name.ends_with(".sorting")
}

/// Damages the archive as the sabotage demands.
fn spoil(disk: &MemoryDisk, sabotage: Sabotage) {
    let folder = if sabotage == Sabotage::Damaged { "warc/" } else { "index/" };
    let Some(name) = disk.names().into_iter().find(|name| name.starts_with(folder)) else { return };
    let mut bytes = disk.read(&name).expect("it is there");
    let line = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    match sabotage {
        Sabotage::Removed => drop(bytes.drain(..line)),
        Sabotage::Doubled => bytes.extend_from_within(..line),
        Sabotage::Damaged => {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
        }
        _ => return,
    }
    let mut handle = disk.handle();
    handle.remove(&name).and_then(|()| handle.append(&name, &bytes)).expect("there is room");
}

impl Stand<'_> {
    /// Runs all processes, one after the other; returns the last one, which finished the crawl.
    fn run(&mut self) -> Result<Engine, String> {
        let plan = self.plan;
        let mut engine = Some(self.begin()?);
        for (number, life) in plan.lives.iter().enumerate() {
            let ended = match &mut engine {
                Some(engine) => Some(self.live(engine, life)?),
                None => None,
            };
            if ended == Some(Ended::Finished) {
                return Ok(engine.expect("it has lived"));
            }
            self.cut_short += 1;
            if let Some(engine) = &engine {
                self.durable_orders = self.durable_orders.max(engine.durable_commands());
            }
            drop(engine);
            let opens_until = plan.lives.get(number + 1).and_then(|next| next.opens_until);
            engine = self.go_on(life, ended, opens_until)?;
        }
        let mut engine = engine.expect("nothing keeps the last one from opening");
        if let Some(ended) = self.give_orders(&mut engine, &plan.orders)? {
            return match ended {
                Ended::Finished => Ok(engine),
                other => Err(format!("the last process has ended otherwise: {other:?}")),
            };
        }
        self.release(&mut engine);
        match self.advance(&mut engine, Instant::FAR, u64::MAX)? {
            Some(Ended::Finished) => Ok(engine),
            other => Err(format!("the last process has ended otherwise: {other:?}")),
        }
    }

    /// Gives commands to a process, each after its wait. Returns how it has ended, if it did.
    fn give_orders(
        &mut self,
        engine: &mut Engine,
        orders: &[(Duration, Command)],
    ) -> Result<Option<Ended>, String> {
        for (wait, command) in orders {
            let until = self.world.at() + *wait;
            if let Some(ended) = self.advance(engine, until, u64::MAX)? {
                return Ok(Some(ended));
            }
            self.give(engine, command.clone());
        }
        Ok(None)
    }

    /// Gives a command to a process, and reports it to the judge if it is carried out.
    fn give(&mut self, engine: &mut Engine, command: Command) {
        let order = Order::new("the operator", command);
        if self.sabotage == Sabotage::Deaf {
            return self.judge.borrow_mut().command(self.world.at(), 0, &order.command);
        }
        let reply = match &order.command {
            Command::Reload { changed } => {
                // Longer rests break no law; the scope is the same.
                let mut settings = self.plan.crawl.engine.clone();
                settings.frontier.scheduler.delay *= 2;
                settings.connections.head_timeout *= 2;
                let seeds = self.seeds.iter().map(|seed| &seed.url);
                let scope = Scope::new(settings.scope.clone(), seeds).expect("it is valid");
                let reload = Reload { settings, scope, changed: changed.clone() };
                engine.reload(self.world.now(), &order.by, reload)
            }
            _ => engine.command(self.world.now(), &order),
        };
        if let Reply::Done { number, .. } = reply {
            self.judge.borrow_mut().command(self.world.at(), number, &order.command);
            self.given.push((number, order.command));
        }
    }

    /// Ends all pauses, so that the crawl can finish.
    fn release(&mut self, engine: &mut Engine) {
        let paused: Vec<Target> = self
            .given
            .iter()
            .filter_map(|(_, command)| match command {
                Command::Pause { target } => Some(target.clone()),
                _ => None,
            })
            .collect();
        paused.into_iter().for_each(|target| self.give(engine, Command::Resume { target }));
    }

    /// Runs one process until its plan ends it or the crawl is finished.
    fn live(&mut self, engine: &mut Engine, life: &Life) -> Result<Ended, String> {
        if let Some(ended) = self.give_orders(engine, &life.orders)? {
            return Ok(ended);
        }
        let begun = self.world.figures().replies;
        if let Some(trouble) = &life.trouble {
            let half = begun + life.replies / 2;
            if let Some(ended) = self.advance(engine, Instant::FAR, half)? {
                return Ok(ended);
            }
            self.set_faults(Some(trouble));
            let until = self.world.at() + trouble.lasts;
            let ended = self.advance(engine, until, u64::MAX)?;
            self.set_faults(None);
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
        if let Some(ended) = self.advance(engine, Instant::FAR, begun + life.replies)? {
            return Ok(ended);
        }
        let until = match life.end {
            plan::End::Kill(later) => self.world.at() + later,
            plan::End::KillAmidst(verbs) => {
                self.disk.die_after(verbs, life.seed);
                // A crawl may write nothing for a long time; then it is killed while it waits.
                self.world.at() + Duration::from_secs(1_000)
            }
            plan::End::Stop => {
                engine.stop(self.world.now(), StopReason::Interrupted);
                Instant::FAR
            }
            plan::End::StopAndKill(verbs) => {
                engine.stop(self.world.now(), StopReason::Interrupted);
                self.disk.die_after(verbs, life.seed);
                Instant::FAR
            }
        };
        Ok(self.advance(engine, until, u64::MAX)?.unwrap_or(Ended::Killed))
    }

    /// Runs the crawl on; returns `None` if it has not ended.
    fn advance(
        &mut self,
        engine: &mut Engine,
        until: Instant,
        replies: u64,
    ) -> Result<Option<Ended>, String> {
        let (judge, looks, is_full) = (&self.judge, &mut self.looks, self.is_full);
        let mut look = self.world.at();
        let ran = self.world.run_until(engine, until, &mut |view: &View<'_>| {
            judge.borrow_mut().set_full(is_full || view.engine.is_paused());
            if view.at >= look {
                look = view.at + Duration::from_secs(1);
                *looks += 1;
                // Often at first, then rarely: a crawl that waits for a day is inspected, too.
                if *looks < 100 || looks.is_multiple_of(*looks / 50) {
                    judge.borrow_mut().inspect(view);
                }
            }
            view.figures.replies < replies
        });
        let due = engine.deadline();
        let ran = ran.map_err(|how| {
            let paused = engine.is_paused();
            format!("{how}: due {due:?}, paused {paused}, {engine:?}, {:?}", engine.archive())
        })?;
        Ok(match (ran, engine.stop_reason()) {
            (Ran::AsFar, _) => None,
            (Ran::Died, _) => Some(Ended::Killed),
            (Ran::ToEnd, _) if engine.fatal_error().is_some() => Some(Ended::Troubled),
            (Ran::ToEnd, Some(StopReason::Finished | StopReason::Time)) => Some(Ended::Finished),
            (Ran::ToEnd, Some(StopReason::Interrupted | StopReason::LowDisk)) => {
                Some(Ended::Stopped)
            }
            (Ran::ToEnd, other) => {
                return Err(format!("it has ended for another reason: {other:?}"));
            }
        })
    }

    /// Handles the end of a process: the crash, the pause, and the start of the next one. `ended`
    /// is `None` if it died while it opened what was there; the result is `None` if the next one
    /// does.
    fn go_on(
        &mut self,
        life: &Life,
        ended: Option<Ended>,
        opens_until: Option<u64>,
    ) -> Result<Option<Engine>, String> {
        self.die(life);
        let left = match ended {
            Some(ended) => Carried {
                end: ended.for_judge(),
                kept: Archive::of(&self.disk, &self.taken).whole(&self.web),
                durable: Archive::promised(&self.disk, &self.taken).whole(&self.web),
            },
            None => self.carried.take().expect("somebody lived before"),
        };
        let durable_orders = self.durable_orders;
        let later = self.given.iter().filter(|(number, _)| *number > durable_orders);
        let later: Vec<Command> = later.map(|(_, command)| command.clone()).collect();
        self.judge.borrow_mut().keep_commands(durable_orders, &later);
        let Carried { mut end, durable, mut kept } = left;
        if life.power {
            self.disk.lose_power(life.seed + 2);
            kept = durable.clone();
        }
        if ended == Some(Ended::Killed) && self.was_stopped() {
            end = End::Stopped;
        }
        match self.sabotage {
            Sabotage::Amnesia => self.forget_state(),
            Sabotage::Claimed => self.claim_order(),
            _ => {}
        }
        let may_jump = ended == Some(Ended::Killed) || !matches!(life.jump, Jump::Forward(_));
        self.world.restart(life.pause, if may_jump { life.jump } else { Jump::None });
        if self.plan.takes_away {
            take_away(&self.disk, &mut self.taken);
        }
        if let Some(verbs) = opens_until {
            self.disk.die_after(verbs, life.seed + 3);
        }
        let begun = self.begin();
        if self.disk.is_dead() {
            self.carried = Some(Carried { end, kept, durable });
            return Ok(None);
        }
        let engine = begun?;
        if self.plan.crawl.engine.store.format == Format::Warc {
            let now = Archive::of(&self.disk, &self.taken).read(&self.web)?;
            self.judge.borrow_mut().restart(self.world.at(), end, Some((&kept, &now)));
        } else {
            self.judge.borrow_mut().restart(self.world.at(), end, None);
        }
        Ok(Some(engine))
    }

    /// Kills the process; the unfinished job is done in part.
    fn die(&mut self, life: &Life) {
        let jobs = self.world.exit();
        if !self.disk.is_dead() {
            self.disk.die_after(life.job_verbs, life.seed + 1);
        }
        jobs.into_iter().for_each(|job| drop(job.run()));
        self.disk.revive();
    }

    /// Whether the checkpoint on the disk says that the crawl was stopped in order and did nothing
    /// since. A process that died after writing it and before its exit has lost nothing, and the
    /// next one knows all clocks; the judge demands that, as after any stop.
    fn was_stopped(&self) -> bool {
        self.checkpoint().is_some_and(|(_, manifest)| manifest.contains(CLEAN))
    }

    /// Returns the two lines of the checkpoint; a disk that lies may have lost them.
    fn checkpoint(&self) -> Option<(String, String)> {
        let text = String::from_utf8(self.disk.read(CHECKPOINT)?).expect("a checkpoint is text");
        let (head, manifest) = text.split_once('\n')?;
        Some((head.to_owned(), manifest.trim_end().to_owned()))
    }

    fn claim_order(&self) {
        let Some((head, manifest)) = self.checkpoint() else { return };
        let manifest = manifest.replace("\"clean\":false", CLEAN);
        let (head, _) = head.rsplit_once(' ').expect("it ends in a checksum");
        let sum = libdeflater::crc32(manifest.as_bytes());
        let text = format!("{head} {sum:08x}\n{manifest}\n");
        let mut handle = self.disk.handle();
        let written =
            handle.remove(CHECKPOINT).and_then(|()| handle.append(CHECKPOINT, text.as_bytes()));
        written.expect("there is room");
    }

    fn forget_state(&self) {
        let state = self.disk.names().into_iter().filter(|name| name.starts_with("state/"));
        state.for_each(|name| self.disk.handle().remove(&name).expect("it is there"));
    }

    fn begin(&self) -> Result<Engine, String> {
        let settings = self.plan.crawl.engine.clone();
        let (disk, meter) = (Box::new(self.disk.clone()), Meter::new(still));
        Engine::open(settings, &self.seeds, disk, meter, self.world.now())
            .map_err(|error| format!("at {}: {error}", self.world.at()))
    }

    fn set_faults(&mut self, trouble: Option<&Trouble>) {
        let mut faults = trouble.map_or_else(DiskFaults::default, |trouble| DiskFaults {
            room_bytes: Some(self.disk.used() + trouble.slack_bytes),
            ..trouble.faults
        });
        self.is_full = trouble.is_some();
        faults.lies = self.sabotage == Sabotage::Lies;
        self.disk.set_faults(faults);
    }
}
