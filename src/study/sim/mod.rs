//! The simulated world: the same engine on a virtual clock, over a script or a whole web.
//!
//! Time jumps to the next event; nothing else makes it pass. What happens outside (requests come
//! to servers, windows open) happens at its own time; what is for the crawler waits until its core
//! is free, if the core is modelled at all, and is fed in one turn as the engine's contract has it.
//!
//! A crawl may be stopped, killed and begun again in one world: servers and calendar go on, what
//! the crawler's process had in hand is gone, its clock begins anew.
//!
//! Laws: two runs with one description and one seed do the same, byte for byte: the log of actions
//! has a hash to prove it. An observer at the servers sees things in order of time.
//! Cost (measured, one thread): some 40 us a page of 25 links, nearly all of it the engine's and
//! the making of the page; a million pages on 10,000 hosts 43 s and 360 MB, of which 230 MB are
//! the crawl log. Memory for the hosts that were met and the connections that are open.

pub mod disk;
pub mod judge;
pub mod settings;
pub mod sight;

mod agenda;
mod core;
mod dns;
mod draw;
mod flow;
mod gateway;
mod history;
mod hosts;
mod net;
mod pipe;
mod process;
mod request;
mod scene;
mod scripted;
mod server;
mod work;

use crate::engine::Engine;
use crate::engine::contract::{Action, ConnId, Job};
use crate::ground::time::{Instant, Now};
use crate::study::web::Web;
use crate::study::web::script::Script;
use agenda::{Event, Named};
use core::{Core, Tally};
use disk::MemoryDisk;
use history::History;
use hosts::Hosts;
use net::{Net, Origin};
use process::Process;
use scene::Scene;
use scripted::Scripts;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use work::Worker;

pub use process::{Jump, now_at};
pub use scripted::Seen;
pub use settings::Settings;
pub use sight::{Eye, Sight};

/// A world in which one crawl runs.
#[derive(Debug)]
pub struct World {
    scene: Scene,
    net: Net,
    worker: Worker,
    core: Core,
    process: Process,
    history: History,
    time_max: Duration,
    /// What is due for the crawler, and since when.
    inbox: VecDeque<(Instant, Event)>,
}

/// What an observer is shown.
#[derive(Debug)]
pub struct View<'a> {
    /// The crawl.
    pub engine: &'a Engine,
    /// When.
    pub at: Instant,
    /// The world's account.
    pub figures: Figures,
}

/// What the world has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes that the crawler has received as they would be on the wire: heads, and bodies at
    /// their nominal length.
    pub received_bytes: u64,
    /// Bytes of text in replies that came coded, decoded.
    pub text_bytes: u64,
    /// Time that the crawler's core has worked.
    pub core_busy: Duration,
    /// Connections open now, those being set up included.
    pub connections: usize,
    /// Whole replies delivered, of whatever status.
    pub replies: u64,
    /// Faults of the network and the name servers: losses, resets, refusals, silences, failed
    /// look-ups.
    pub faults: u64,
    /// Turns of the crawler's loop.
    pub turns: u64,
}

/// How far a crawl has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// To its end.
    ToEnd,
    /// As far as it was let.
    AsFar,
    /// The process has died with its disk.
    Died,
}

/// Turns at one instant without an event, after which the engine must be waiting for something
/// that is not due.
const TURNS_MAX: u32 = 100_000;
/// Events fed in one turn: what a poller hands out at once.
const EVENTS_PER_TURN: usize = 1_024;

impl World {
    /// A world in which the servers of `script` live.
    pub fn new(script: &Script, seed: u64) -> Self {
        let settings = Settings { seed, ..Settings::default() };
        Self::with(Origin::Script(Scripts::new(script.clone(), seed)), &settings)
    }

    /// A world in which the hosts of `web` live. URLs must name the schemes' own ports, or any one
    /// port for each scheme: hosts listen on whatever port their scheme is asked for at.
    pub fn of_web(web: Arc<Web>, settings: Settings) -> Self {
        Self::with(Origin::Web(Hosts::new(web, &settings)), &settings)
    }

    fn with(origin: Origin, settings: &Settings) -> Self {
        Self {
            scene: Scene::default(),
            net: Net::new(origin, settings.gateway_bytes_per_second),
            worker: Worker::new(settings.job_time),
            core: Core::new(settings.core),
            process: Process::new(),
            history: History::new(),
            time_max: settings.time_max,
            inbox: VecDeque::new(),
        }
    }

    /// Shows `eye` from now on what happens at the servers of a web, in order of time.
    pub fn watch_servers(&mut self, eye: Eye) {
        self.scene.eye = Some(eye);
    }

    /// From now on the crawler's process is gone as soon as this disk is dead: in the midst of a
    /// turn, too.
    pub fn dies_with(&mut self, disk: MemoryDisk) {
        self.process.dies_with(disk);
    }

    /// Keeps the actions from now on as text, one a line.
    pub fn record_actions(&mut self) {
        self.history.record();
    }

    /// Runs a crawl to its end. `Err` names the instant at which it stood still.
    pub fn run(&mut self, engine: &mut Engine) -> Result<(), String> {
        self.run_watched(engine, Duration::MAX, &mut |_| {})
    }

    /// Runs a crawl to its end. `watch` is called every `period` of virtual time and once at the
    /// end. `Err` names the instant at which it stood still.
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

    /// Runs a crawl until a time of the world (exactly: what happens outside until then happens,
    /// too), or to its end, or until `goes_on`, which is asked before each turn, says no. It may
    /// be run on. `Err` names the instant at which it stood still.
    pub fn run_until(
        &mut self,
        engine: &mut Engine,
        until: Instant,
        goes_on: &mut dyn FnMut(&View<'_>) -> bool,
    ) -> Result<Ran, String> {
        self.advance(engine, until, goes_on)
    }

    /// The crawler's process is gone, however it came to that: servers see its connections close;
    /// what it was waiting for, nobody does any more. Returns the jobs that were not done, in
    /// order: with real threads the first may have come some way.
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

    /// After [`World::exit`] another process begins, a while later; returns what its clocks show.
    pub fn begin_again(&mut self, pause: Duration, jump: Jump) -> Now {
        assert!(self.scene.agenda.next_at().is_none(), "the process before is gone");
        self.scene.now = self.scene.now + pause;
        self.process = self.process.next(self.scene.now, jump);
        self.now()
    }

    /// What the clocks of the process show.
    pub fn now(&self) -> Now {
        self.process.now(self.scene.now)
    }

    /// The world's own time.
    pub fn at(&self) -> Instant {
        self.scene.now
    }

    /// What each host of a script has seen; empty for a web.
    pub fn seen(&self) -> &BTreeMap<String, Seen> {
        const NONE: &BTreeMap<String, Seen> = &BTreeMap::new();
        match &self.net.origin {
            Origin::Script(scripts) => &scripts.seen,
            Origin::Web(_) => NONE,
        }
    }

    /// A hash over all actions, their times, and the bytes that were sent.
    pub fn actions_hash(&self) -> u64 {
        self.history.hash()
    }

    /// The actions kept since [`World::record_actions`].
    pub fn actions(&self) -> &str {
        self.history.text()
    }

    /// The account so far.
    pub fn figures(&self) -> Figures {
        let (core_busy, connections) = (self.core.busy(), self.net.open());
        Figures { core_busy, connections, ..self.scene.figures }
    }

    /// Runs a crawl as far as it is let.
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

    /// Lets the world outside go on until the crawler's next turn; returns when that is, or `None`
    /// if that is after `until`.
    fn await_turn(
        &mut self,
        engine: &Engine,
        last: Instant,
        until: Instant,
    ) -> Result<Option<Instant>, String> {
        let free = self.core.free().max(last);
        let deadline = engine.deadline().map_or(Instant::FAR, |at| self.process.in_world(at));
        loop {
            let due = self.inbox.front().map_or(deadline, |(at, _)| *at);
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

    /// Something happens outside.
    fn happen(&mut self, event: Event) {
        match event {
            Event::Requests(conn) => self.net.requests(conn, &mut self.scene),
            Event::Serve(conn) => self.net.serve(conn, &mut self.scene),
            Event::Gateway(conn) => self.net.at_gateway(conn, &mut self.scene),
            _ => unreachable!("what is for the crawler waits for its turn"),
        }
    }

    /// One turn of the crawler's loop.
    fn turn(&mut self, engine: &mut Engine, at: Instant) {
        self.scene.now = at;
        let now = self.now();
        self.scene.figures.turns += 1;
        for _ in 0..self.inbox.len().min(EVENTS_PER_TURN) {
            let (_, event) = self.inbox.pop_front().expect("as many as there were");
            self.feed(engine, now, event);
        }
        engine.expired(now);
        self.obey(engine);
        self.core.charge(at, self.net.open(), self.tally(engine));
    }

    /// What has been done, as the core is charged for it.
    fn tally(&self, engine: &Engine) -> Tally {
        let counts = engine.counts();
        Tally {
            connections: counts.connections,
            handshakes: counts.handshakes_full + counts.handshakes_resumed,
            replies: self.scene.figures.replies,
            received_bytes: self.scene.figures.received_bytes,
            text_bytes: self.scene.figures.text_bytes,
            links: counts.links,
        }
    }

    /// The crawler learns of something.
    fn feed(&mut self, engine: &mut Engine, now: Now, event: Event) {
        let (net, scene) = (&mut self.net, &mut self.scene);
        match event {
            Event::Named(named) => {
                net.resolved(&named.name, scene);
                engine.resolved(now, named.lookup, named.answer);
            }
            Event::Opened(conn) => engine.opened(now, conn),
            Event::Stands(conn) => net.stands(engine, conn, now, scene),
            Event::Fails(conn, reason) => net.fails(engine, conn, &reason, now, scene),
            Event::Arrives(conn) => net.deliver(engine, conn, now, scene),
            Event::Works(job) => engine.worked(now, job.run()),
            Event::Requests(_) | Event::Serve(_) | Event::Gateway(_) => {
                unreachable!("what happens outside waits for nobody")
            }
        }
    }

    /// Carries out what the crawler asks for, if it is still there to ask.
    fn obey(&mut self, engine: &mut Engine) {
        while let Some(action) = engine.next_action() {
            if self.process.is_dead() {
                return;
            }
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
            }
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
