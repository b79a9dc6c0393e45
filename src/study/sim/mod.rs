//! The simulated world: drives the engine by a virtual clock.
//!
//! Its servers are those of a script (a test's text that says what each server sends) or of a whole
//! synthetic web.
//!
//! Time jumps to the next event; nothing else advances it. Events outside the crawler (requests
//! arrive at servers, send windows open) happen at their own time. Events for the crawler wait
//! until its CPU core is free, if the core is modelled, and are fed in one turn as the engine's
//! contract demands.
//!
//! A crawl may be stopped, killed and restarted in one world: servers and calendar continue, the
//! state of the crawler's process is lost, and its clock begins at zero again.
//!
//! Laws: two runs with one description and one seed are equal, byte for byte; the hash over all
//! actions proves it. An observer at the servers receives observations in order of time.
//!
//! Cost (measured, one thread): some 40 us for a page of 25 links, nearly all of it the engine's
//! work and making the page; a million pages on 10,000 hosts take 43 s and 360 MB, of which 230 MB
//! are the crawl log. Memory is used for hosts that were contacted and connections that are open.

pub mod cluster;
pub mod disk;
pub mod judge;
pub mod observation;
pub mod queue;
pub mod settings;

mod agenda;
mod core;
mod dns;
mod draw;
mod flow;
mod gateway;
mod history;
mod hosts;
mod line;
mod net;
mod pipe;
mod process;
mod request;
mod scene;
mod scorer;
mod scripted;
mod server;
mod stop;
mod work;

use crate::engine::Engine;
use crate::engine::contract::queue::Request;
use crate::engine::contract::{Action, ConnId, Job};
use crate::ground::time::{Instant, Now};
use crate::study::web::Web;
use crate::study::web::script::Script;
use agenda::{Event, Named};
use core::{Core, Tally};
use disk::MemoryDisk;
use history::History;
use hosts::Hosts;
use line::Line;
use net::{Net, Origin};
use process::Process;
use scene::Scene;
use scorer::Scorer;
use scripted::Scripts;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use stop::Stop;
use work::Worker;

pub use line::Exchanged;
pub use observation::{Observation, Observer};
pub use process::{Jump, now_at};
pub use scorer::Judgement;
pub use scripted::Seen;
pub use settings::Settings;

/// A simulated world in which one crawl runs.
#[derive(Debug)]
pub struct World {
    scene: Scene,
    net: Net,
    worker: Worker,
    scorer: Scorer,
    core: Core,
    process: Process,
    history: History,
    time_max: Duration,
    stop: Stop,
    /// Events for the crawler that are due and wait for its next turn, each with the time at which
    /// it became due.
    inbox: VecDeque<(Instant, Event)>,
    /// The line to the queue of a cluster.
    line: Line,
}

/// What the callbacks of [`World::run_watched`] and [`World::run_until`] receive.
#[derive(Debug)]
pub struct View<'a> {
    /// The engine of the crawl.
    pub engine: &'a Engine,
    /// The time in the world.
    pub at: Instant,
    /// The world's figures so far.
    pub figures: Figures,
}

/// The world's figures: totals since its start, unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes received by the crawler as they would be on the wire: heads, and bodies at their
    /// nominal length.
    pub received_bytes: u64,
    /// The decoded bytes of text in replies that were content-coded.
    pub text_bytes: u64,
    /// The time that the crawler's core has worked.
    pub core_busy: Duration,
    /// The number of connections open now, those being established included.
    pub connections: usize,
    /// Whole replies delivered, of any status.
    pub replies: u64,
    /// Faults of the network and the name servers: losses, resets, refusals, silences, failed
    /// look-ups.
    pub faults: u64,
    /// Turns of the crawler's loop.
    pub turns: u64,
    /// What the crawler has exchanged with the queue of its cluster.
    pub exchanged: Exchanged,
}

/// Why a run of a crawl has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// The crawl has finished.
    ToEnd,
    /// The time given by the caller was reached, or the caller's callback returned false.
    AsFar,
    /// The crawler's process has died with its disk: see [`World::dies_with`].
    Died,
}

/// The most turns in a row at one instant without an event. Beyond it the run fails: the engine
/// waits for something that is not due.
const TURNS_MAX: u32 = 100_000;
/// The most events passed to the engine in one turn: a real poller has such a limit, too.
const EVENTS_PER_TURN: usize = 1_024;

impl World {
    /// Creates a world with the servers of `script`.
    pub fn new(script: &Script, seed: u64) -> Self {
        let settings = Settings { seed, ..Settings::default() };
        Self::with(Origin::Script(Scripts::new(script.clone(), seed)), &settings)
    }

    /// Creates a world with the hosts of `web`. URLs must use the default ports, or any one port
    /// for each scheme: hosts accept connections at every port.
    pub fn of_web(web: Arc<Web>, settings: Settings) -> Self {
        Self::with(Origin::Web(Hosts::new(web, &settings)), &settings)
    }

    fn with(origin: Origin, settings: &Settings) -> Self {
        Self {
            scene: Scene::default(),
            net: Net::new(origin, settings.gateway_bytes_per_second),
            worker: Worker::new(settings.job_time),
            scorer: Scorer::new(settings.scores, settings.seed),
            core: Core::new(settings.core),
            process: Process::new(),
            history: History::new(),
            time_max: settings.time_max,
            stop: Stop::default(),
            inbox: VecDeque::new(),
            line: Line::default(),
        }
    }

    /// Reports all further observations at the servers of a web to `observer`, in order of time.
    pub fn watch_servers(&mut self, observer: Observer) {
        self.scene.observer = Some(observer);
    }

    /// Makes the program that scores pages score them by `judgement`.
    pub fn score_by(&mut self, judgement: Judgement) {
        self.scorer.judge_by(judgement);
    }

    /// Makes the crawler's process die as soon as `disk` is dead, even in the middle of a turn.
    pub fn dies_with(&mut self, disk: MemoryDisk) {
        self.process.dies_with(disk);
    }

    /// Makes the clocks of the crawler's processes run faster than the world's, by this many
    /// millionths. May be negative. To be called before the first run.
    pub fn drift_by(&mut self, millionths: i32) {
        self.process.drift_by(millionths);
    }

    /// Stops the crawler's process for this long (SIGSTOP, a machine that is suspended): it has no
    /// turn meanwhile. Its clocks, its side threads and the servers go on.
    pub fn stop_for(&mut self, time: Duration) {
        self.stop.stop(self.scene.now + time);
    }

    /// Stops the crawler's process for this long when it is about to send next. What it sends then
    /// leaves when it goes on.
    pub fn stop_at_send(&mut self, time: Duration) {
        self.stop.stop_at_send(time);
    }

    /// Returns from when to when the process was stopped last amidst a turn.
    pub fn stopped_amidst(&self) -> Option<(Instant, Instant)> {
        self.stop.amidst()
    }

    /// Returns what the crawler has asked of its cluster's queue since the last call, and when.
    pub fn take_requests(&mut self) -> Vec<(Instant, Request)> {
        self.line.take()
    }

    /// Brings something from the queue of the cluster to the crawler.
    pub fn bring(&mut self, arrival: queue::Arrival) {
        let event = Event::Queue(arrival.connection, Box::new(arrival.event));
        self.scene.agenda.at(arrival.at, event);
    }

    /// Keeps all further actions of the crawler as text, one per line, for [`World::actions`].
    pub fn record_actions(&mut self) {
        self.history.record();
    }

    /// Runs a crawl to its end.
    ///
    /// # Errors
    /// The crawl stopped making progress; the text says at which instant.
    pub fn run(&mut self, engine: &mut Engine) -> Result<(), String> {
        self.run_watched(engine, Duration::MAX, &mut |_| {})
    }

    /// Runs a crawl to its end. `watch` is called every `period` of virtual time and once at the
    /// end.
    ///
    /// # Errors
    /// The crawl stopped making progress; the text says at which instant.
    pub fn run_watched(
        &mut self,
        engine: &mut Engine,
        period: Duration,
        watch: &mut dyn FnMut(&View<'_>),
    ) -> Result<(), String> {
        assert!(!period.is_zero(), "a period is a time");
        let mut look = self.scene.now + period;
        self.advance(engine, Instant::FAR, &mut |view| {
            while look <= view.at {
                watch(&View { at: look, ..*view });
                look = look + period;
            }
            true
        })?;
        watch(&View { engine, at: self.scene.now, figures: self.figures() });
        Ok(())
    }

    /// Runs a crawl until the time `until`, or to its end, or until the callback `goes_on`, which
    /// is called before each turn, returns false. Events outside the crawler happen exactly up to
    /// `until`. The run may be continued by another call.
    ///
    /// # Errors
    /// The crawl stopped making progress; the text says at which instant.
    pub fn run_until(
        &mut self,
        engine: &mut Engine,
        until: Instant,
        goes_on: &mut dyn FnMut(&View<'_>) -> bool,
    ) -> Result<Ran, String> {
        self.advance(engine, until, goes_on)
    }

    /// Ends the crawler's process, whether it stopped or died: servers see its connections close,
    /// and look-ups and jobs are dropped. Returns the jobs of the side thread that were not done,
    /// in order. (With real threads, the first of them may have been done in part.)
    pub fn exit(&mut self) -> Vec<Job> {
        self.net.end(&mut self.scene);
        if let Origin::Web(hosts) = &mut self.net.origin {
            hosts.forget_sessions();
        }
        self.worker.end();
        let waiting = self.inbox.drain(..).filter_map(|(_, event)| match event {
            Event::Works(job) => Some(*job),
            _ => None,
        });
        waiting.chain(self.scene.agenda.clear()).collect()
    }

    /// Begins another process of the crawler, `pause` after [`World::exit`]; `jump` says how the
    /// calendar was set in between. Returns what the clocks of the new process show.
    pub fn restart(&mut self, pause: Duration, jump: Jump) -> Now {
        assert!(self.scene.agenda.next_at().is_none(), "the process before is gone");
        self.scene.now = self.scene.now + pause;
        self.process = self.process.next(self.scene.now, jump);
        self.stop = Stop::default();
        self.now()
    }

    /// Returns what the clocks of the crawler's process show.
    pub fn now(&self) -> Now {
        self.process.now(self.scene.now)
    }

    /// Returns the world's own time.
    pub fn at(&self) -> Instant {
        self.scene.now
    }

    /// Returns what each host of a script has observed, by the host's name; empty if the world has
    /// a web.
    pub fn seen(&self) -> &BTreeMap<String, Seen> {
        const NONE: &BTreeMap<String, Seen> = &BTreeMap::new();
        match &self.net.origin {
            Origin::Script(scripts) => &scripts.seen,
            Origin::Web(_) => NONE,
        }
    }

    /// Returns a hash over all actions of the crawler, their times, and the bytes that were sent.
    pub fn actions_hash(&self) -> u64 {
        self.history.hash()
    }

    /// Returns the crawler's actions kept since [`World::record_actions`], as text.
    pub fn actions(&self) -> &str {
        self.history.text()
    }

    /// Returns the world's figures so far.
    pub fn figures(&self) -> Figures {
        let (core_busy, connections) = (self.core.busy(), self.net.open());
        let exchanged = self.line.exchanged();
        Figures { core_busy, connections, exchanged, ..self.scene.figures }
    }

    /// Runs turns until the crawl ends, `until` is reached, or `goes_on` returns false: all
    /// functions that run a crawl call it.
    fn advance(
        &mut self,
        engine: &mut Engine,
        until: Instant,
        goes_on: &mut dyn FnMut(&View<'_>) -> bool,
    ) -> Result<Ran, String> {
        let mut idle_turns = 0;
        if std::mem::take(&mut self.process.is_new) {
            self.core.is_taken_over(self.scene.now, self.tally(engine));
        }
        self.obey(engine);
        while !engine.is_finished() {
            if self.process.is_dead() {
                return Ok(Ran::Died);
            }
            let last = self.scene.now;
            let Some(at) = self.await_turn(engine, last, until)? else {
                self.scene.now = until;
                return Ok(Ran::AsFar);
            };
            idle_turns = if at > last || !self.inbox.is_empty() { 0 } else { idle_turns + 1 };
            if idle_turns > TURNS_MAX {
                return Err(format!("at {at} the crawl turns on the spot"));
            }
            if at.since(Instant::ZERO) > self.time_max {
                return Err(format!("the crawl has not ended at {at}"));
            }
            if !goes_on(&View { engine, at, figures: self.figures() }) {
                return Ok(Ran::AsFar);
            }
            self.turn(engine, at);
        }
        if self.process.is_dead() {
            return Ok(Ran::Died);
        }
        self.net.end(&mut self.scene);
        Ok(Ran::ToEnd)
    }

    /// Handles the events outside the crawler that come before its next turn; returns the time of
    /// that turn, or `None` if it is after `until`.
    fn await_turn(
        &mut self,
        engine: &Engine,
        last: Instant,
        until: Instant,
    ) -> Result<Option<Instant>, String> {
        let free = self.core.free().max(self.stop.until()).max(last);
        let deadline = engine.deadline().map_or(Instant::FAR, |at| self.process.in_world(at));
        let deadline = if self.stop.has_held() { Instant::ZERO } else { deadline };
        loop {
            // What can be read wakes no loop that must not read it yet.
            let sleeps = engine.waits_for_job();
            let wakes = |event: &Event| !sleeps || !matches!(event, Event::Arrives(_));
            let mut due = self.inbox.iter().filter(|(_, event)| wakes(event));
            let due = due.next().map_or(deadline, |(at, _)| *at);
            let turn = due.max(free);
            match self.scene.agenda.take(turn.min(until)) {
                Some((at, event)) if event.is_for_crawler() => self.inbox.push_back((at, event)),
                Some((at, event)) => {
                    self.scene.now = self.scene.now.max(at);
                    self.happen(event);
                }
                None if turn == Instant::FAR && until == Instant::FAR => {
                    return Err(format!(
                        "at {last} nothing is left to happen, and the crawl goes on"
                    ));
                }
                None => return Ok((turn <= until).then_some(turn)),
            }
        }
    }

    /// Handles an event outside the crawler.
    fn happen(&mut self, event: Event) {
        match event {
            Event::Requests(conn) => self.net.requests(conn, &mut self.scene),
            Event::Serve(conn) => self.net.serve(conn, &mut self.scene),
            Event::Gateway(conn) => self.net.at_gateway(conn, &mut self.scene),
            _ => unreachable!("what is for the crawler waits for its turn"),
        }
    }

    /// Runs one turn of the crawler's loop.
    fn turn(&mut self, engine: &mut Engine, at: Instant) {
        self.scene.now = at;
        // What the turn amidst which the process was stopped has left comes first.
        while let Some(action) = self.stop.release(at) {
            self.carry_out(engine, action);
        }
        let now = self.now();
        self.scene.figures.turns += 1;
        for _ in 0..self.inbox.len().min(EVENTS_PER_TURN) {
            let (_, event) = self.inbox.pop_front().expect("as many as there were");
            self.feed(engine, now, event);
        }
        if let Some(load) = self.core.report(at) {
            self.history.note_load(at, &load);
            engine.load(now, &load);
        }
        engine.expired(now);
        self.obey(engine);
        self.core.charge(at, self.net.open(), self.tally(engine));
    }

    /// Returns what the crawler has done so far; the model of its core charges CPU time for it.
    fn tally(&self, engine: &Engine) -> Tally {
        let counts = engine.counts();
        Tally {
            connections: counts.connections,
            handshakes: counts.handshakes_full + counts.handshakes_resumed,
            replies: self.scene.figures.replies,
            received_bytes: self.scene.figures.received_bytes,
            text_bytes: self.scene.figures.text_bytes,
            links: counts.links,
            exchanged: self.line.exchanged(),
            shared_links: if self.line.is_used() { counts.links } else { 0 },
        }
    }

    /// Passes an event for the crawler to the engine.
    fn feed(&mut self, engine: &mut Engine, now: Now, event: Event) {
        let (net, scene) = (&mut self.net, &mut self.scene);
        match event {
            Event::Named(named) => {
                net.resolved(&named.name, scene);
                engine.resolved(now, named.lookup, named.answer);
            }
            Event::Opened(conn) => engine.opened(now, conn),
            Event::Established(conn) => net.establish(engine, conn, now, scene),
            Event::Failed(conn, reason) => net.fail(engine, conn, &reason, now, scene),
            Event::Arrives(conn) => net.deliver(engine, conn, now, scene),
            Event::Works(job) => engine.worked(now, job.run()),
            Event::Scored(answer) => engine.scored(now, *answer),
            Event::Queue(connection, event) => {
                if self.line.hears(connection, &event) {
                    engine.queue_event(now, *event);
                }
            }
            Event::Requests(_) | Event::Serve(_) | Event::Gateway(_) => {
                unreachable!("what happens outside waits for nobody")
            }
        }
    }

    /// Carries out the crawler's actions, while its process lives and isn't stopped.
    fn obey(&mut self, engine: &mut Engine) {
        while let Some(action) = engine.next_action() {
            if self.process.is_dead() {
                return;
            }
            if let Some(action) = self.stop.passes(action, self.scene.now) {
                self.carry_out(engine, action);
            }
        }
    }

    fn carry_out(&mut self, engine: &mut Engine, action: Action) {
        let outgoing = match action {
            Action::Send(conn) => engine.outgoing(conn),
            _ => &[],
        };
        self.history.note(self.scene.now, &action, outgoing);
        let (net, scene) = (&mut self.net, &mut self.scene);
        match action {
            Action::Resolve { lookup, name, families } => {
                let (time, answer) = dns::look_up(&mut net.origin, &name, families, scene);
                let named = Box::new(Named { lookup, name, answer });
                scene.agenda.at(scene.now + time, Event::Named(named));
            }
            Action::Connect { conn, address, tls } => {
                net.connect(conn, address, tls.as_deref(), scene);
            }
            Action::Send(conn) => self.send(engine, conn),
            Action::Pause(conn) => net.pause(conn),
            Action::Resume(conn) => net.resume(conn, scene),
            Action::Close(conn) => net.close(conn, scene),
            Action::Work(job) => self.worker.start(job, scene),
            Action::Score(page) => self.scorer.score(&page, scene),
            Action::Queue(request) => self.line.ask(scene.now, *request),
        }
    }

    fn send(&mut self, engine: &mut Engine, conn: ConnId) {
        let bytes = engine.outgoing(conn).to_vec();
        if !bytes.is_empty() {
            engine.sent(self.now(), conn, bytes.len());
            self.net.send(conn, bytes, &mut self.scene);
        }
    }
}
