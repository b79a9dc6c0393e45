//! The real world: one mio event loop, and side threads for name resolution and jobs.
//!
//! One turn of the loop: take the nearest deadline, sleep at most until then, read the clock once;
//! then handle name look-ups, jobs and signals, sockets, [`Engine::expired`], and the engine's
//! actions. The world (this module) makes no decisions: it reports events and carries out actions.
//!
//! Two things forbid sleep: a socket that was not yet read until it blocked, and a TLS stream that
//! holds plaintext. The loop's lag is the time that a ready socket may have to wait: the length of
//! a turn. Every turn is measured (`turns`).

#![expect(clippy::disallowed_methods, reason = "the world that reads the clocks")]

mod admin;
pub mod console;
#[cfg(feature = "control")]
pub mod control;
pub mod disk;
pub mod dns;
pub mod input;
mod load;
pub mod net;
#[cfg(feature = "cluster")]
pub mod queue;
pub mod scorer;
pub mod signal;
pub mod tls;
mod turns;
mod usage;
pub mod work;

pub use admin::{Admin, METRICS, Page, Pages};

use crate::engine::Engine;
use crate::engine::contract::{Action, Job, Reload, ScoreRequest, StopReason};
use crate::ground::stats::{Histogram, Stage};
use crate::ground::time::{Instant, Now, UnixTime};
use load::Loads;
use mio::{Events, Poll, Token, Waker};
use net::Net;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
pub use turns::Turn;
use turns::Turns;
use usage::{Gauge, SideCpu};
pub use usage::{Queued, StageUsage, Usage};

/// Settings of the loop.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Settings of the resolver.
    pub names: dns::Settings,
    /// Settings of TLS.
    pub tls: tls::Settings,
    /// The program that scores pages; `None` if pages are not scored.
    pub scorer: Option<scorer::Settings>,
    /// The queue that nodes of a crawl share; `None` if the crawl is one machine's.
    #[cfg(feature = "cluster")]
    pub queue: Option<queue::Settings>,
    /// Whether the jobs that write to the archive have a side thread of their own.
    pub has_store_thread: bool,
    /// The number of bytes read from one socket in one turn, so that a fast server can't starve
    /// others.
    pub read_bytes_per_turn: usize,
    /// The longest time between two calls of the observer, the function that is passed to
    /// [`World::run`].
    pub period: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            names: dns::Settings::default(),
            tls: tls::Settings::default(),
            scorer: None,
            #[cfg(feature = "cluster")]
            queue: None,
            has_store_thread: false,
            read_bytes_per_turn: 256 << 10,
            period: Duration::from_secs(1),
        }
    }
}

/// Why the loop could not start or continue.
#[derive(Debug)]
pub enum Error {
    /// The system refused something: what failed, such as creating the poller, and the system's
    /// error.
    System(&'static str, io::Error),
    /// The resolver failed to start.
    Names(dns::Error),
    /// The TLS configuration is not valid.
    Tls(tls::Error),
    /// The program that scores pages can't be started.
    Scorer(scorer::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(what, error) => write!(f, "{what}: {error}"),
            Self::Names(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Scorer(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// The event loop and everything that it watches.
pub struct World {
    poll: Poll,
    clock: Clock,
    net: Net,
    client: tls::Client,
    resolver: dns::Resolver,
    side: Side,
    signals: signal::Signals,
    period: Duration,
    turns: Turns,
    #[cfg(feature = "control")]
    waker: Arc<Waker>,
    #[cfg(feature = "control")]
    control: Option<control::Control>,
    #[cfg(feature = "control")]
    admin: Option<control::admin::Bound>,
}

/// What works for the loop on side threads, beside the resolver.
struct Side {
    worker: work::Worker,
    /// The thread of the jobs that write to the archive; `None` if there are no such jobs.
    writer: Option<work::Worker>,
    /// The program that scores pages; `None` if pages are not scored.
    scorer: Option<scorer::Scorer>,
    /// The queue that nodes of a crawl share; `None` if the crawl is one machine's.
    #[cfg(feature = "cluster")]
    queue: Option<queue::Queue>,
}

impl Side {
    fn start(settings: &Settings, waker: &Arc<Waker>) -> Result<Self, Error> {
        let begin = |name: &str| {
            let worker = work::Worker::new(name, Arc::clone(waker));
            worker.map_err(|error| Error::System("the side thread", error))
        };
        let worker = begin("sted-work")?;
        let writer = settings.has_store_thread.then(|| begin("sted-store")).transpose()?;
        let start = |settings| scorer::Scorer::start(settings, Arc::clone(waker));
        let scorer = settings.scorer.as_ref().map(start).transpose().map_err(Error::Scorer)?;
        Ok(Self {
            worker,
            writer,
            scorer,
            #[cfg(feature = "cluster")]
            queue: queue::Queue::of(settings.queue.as_ref(), waker)
                .map_err(|error| Error::System("the side thread", error))?,
        })
    }

    /// Passes the results of side threads to the engine.
    fn feed(&mut self, engine: &mut Engine, now: Now) {
        for worker in [Some(&mut self.worker), self.writer.as_mut()].into_iter().flatten() {
            worker.drain(|done| engine.worked(now, done));
        }
        if let Some(scorer) = &mut self.scorer {
            scorer.drain(|answer| engine.scored(now, answer));
        }
        #[cfg(feature = "cluster")]
        if let Some(queue) = &mut self.queue {
            queue.drain(|event| engine.queue_event(now, event));
        }
    }

    fn start_job(&mut self, job: Job) {
        match &mut self.writer {
            Some(writer) if matches!(job, Job::Write(_)) => writer.start(job),
            _ => self.worker.start(job),
        }
    }

    fn score(&mut self, page: Box<ScoreRequest>) {
        let scorer = self.scorer.as_mut();
        scorer.expect("the engine has pages scored only with a program").score(page);
    }

    #[cfg(feature = "cluster")]
    fn ask(&self, request: crate::engine::contract::queue::Request) {
        let queue = self.queue.as_ref();
        queue.expect("the engine is a node only with a queue").ask(request);
    }

    fn cpu_ns(&self) -> u64 {
        let writer = self.writer.as_ref().map_or(0, work::Worker::cpu_ns);
        let scorer = self.scorer.as_ref().map_or(0, scorer::Scorer::cpu_ns);
        #[cfg(feature = "cluster")]
        let queue = self.queue.as_ref().map_or(0, queue::Queue::cpu_ns);
        #[cfg(not(feature = "cluster"))]
        let queue = 0;
        self.worker.cpu_ns() + writer + scorer + queue
    }
}

/// Reads the configuration of a running crawl again. A side thread calls it.
pub trait Reloader: Send {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Why it can't be reloaded, for the operator.
    fn load(&mut self) -> Result<Reload, String>;
    /// Notes that the engine has adopted what was loaded last.
    fn accept(&mut self);
}

/// What the observer of [`World::run`] sees, once a period and at the end.
#[derive(Debug)]
pub struct View<'a> {
    /// The engine that runs the crawl.
    pub engine: &'a mut Engine,
    /// The current time.
    pub now: Now,
    /// The lengths of all turns so far, in microseconds: the loop's lag.
    pub lag_us: &'a Histogram,
    /// The number of turns of the loop so far.
    pub turns: u64,
    /// The longest turn of the loop so far.
    pub longest_turn: &'a Turn,
    /// The most CPU time that the loop's thread spent in one turn.
    pub turn_cpu_max: Duration,
    /// The CPU time so far, by stage and thread.
    pub usage: Usage,
}

/// The tokens of the waker and of the signals. They belong to no connection, because the highest
/// slots are never used.
const WAKER: Token = Token(usize::MAX);
const SIGNALS: Token = Token(usize::MAX - 1);
const EVENTS: usize = 1_024;

impl World {
    /// Sets up the loop without starting anything.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let system = |what| move |error| Error::System(what, error);
        let poll = Poll::new().map_err(system("the poller"))?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(system("the waker"))?;
        let waker = Arc::new(waker);
        let signals = signal::Signals::new(poll.registry(), SIGNALS);
        let clock = Clock::start();
        Ok(Self {
            clock,
            net: Net::new(settings.read_bytes_per_turn, clock),
            client: tls::Client::new(&settings.tls).map_err(Error::Tls)?,
            resolver: dns::Resolver::new(&settings.names, Arc::clone(&waker))
                .map_err(Error::Names)?,
            side: Side::start(settings, &waker)?,
            signals: signals.map_err(system("signals"))?,
            poll,
            period: settings.period,
            turns: Turns::new(),
            #[cfg(feature = "control")]
            waker,
            #[cfg(feature = "control")]
            control: None,
            #[cfg(feature = "control")]
            admin: None,
        })
    }

    /// Binds the admin listener. [`Self::listen`] begins to serve it.
    ///
    /// # Errors
    /// The address can't be bound, or the program was built without the feature `control`.
    pub fn admin(&mut self, admin: Admin) -> io::Result<()> {
        #[cfg(feature = "control")]
        {
            self.admin = Some(control::admin::Bound::bind(admin)?);
            Ok(())
        }
        #[cfg(not(feature = "control"))]
        {
            drop(admin);
            Err(io::Error::other("this program was built without the feature `control`"))
        }
    }

    /// Opens the control socket of the job that `lock` locks, and serves the admin listener if
    /// there is one. `reloader` reads the configuration when an operator asks for it. A binary
    /// built without the feature `control` does nothing.
    ///
    /// # Errors
    /// The system refuses the side thread.
    #[cfg_attr(not(feature = "control"), expect(unused_variables))]
    pub fn listen(&mut self, lock: &disk::Lock, reloader: Box<dyn Reloader>) -> io::Result<()> {
        #[cfg(feature = "control")]
        {
            let waker = Arc::clone(&self.waker);
            let admin = self.admin.take();
            self.control = Some(control::Control::open(lock, waker, reloader, admin)?);
        }
        Ok(())
    }

    /// Returns the current time, for work before the loop runs.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Runs the crawl to its end. `observe` is called once a period and once at the end.
    pub fn run(
        &mut self,
        engine: &mut Engine,
        observe: &mut dyn FnMut(View<'_>),
    ) -> Result<(), Error> {
        let mut events = Events::with_capacity(EVENTS);
        let mut now = self.clock.now();
        let mut report = now.at + self.period;
        let mut gauge = Gauge::begin(engine.meter(), self.side_cpu());
        let mut loads = Loads::begin(engine, now.at);
        self.turns.begin(engine.meter(), signal::thread_cpu_ns());
        // A signal may have arrived before there was a loop that it could wake.
        let mut is_over = self.handle_signals(engine, now);
        self.drain_actions(engine, now);
        while !is_over && !engine.is_finished() {
            let wait = self.wait(engine, now, report);
            let stage = engine.meter_mut().enter(Stage::Wait, 0);
            let took = self.clock.now().at.since(now.at);
            self.turns.end(engine.meter(), now.at, took, signal::thread_cpu_ns());
            if let Err(error) = gauge.poll(|| self.poll.poll(&mut events, Some(wait)))
                && error.kind() != io::ErrorKind::Interrupted
            {
                return Err(Error::System("waiting for events", error));
            }
            engine.meter_mut().back(stage);
            now = self.clock.now();
            self.turns.begin(engine.meter(), signal::thread_cpu_ns());
            is_over = self.handle_signals(engine, now);
            if is_over {
                break;
            }
            loads.report(engine, now);
            self.feed(engine, now, &events);
            engine.expired(now);
            self.drain_actions(engine, now);
            if now.at >= report {
                report = now.at + self.period;
                observe(self.view(engine, now, &gauge));
            }
        }
        #[cfg(feature = "control")]
        if let Some(control) = &mut self.control {
            control.send_durable(engine);
        }
        observe(self.view(engine, now, &gauge));
        Ok(())
    }

    fn view<'a>(&'a self, engine: &'a mut Engine, now: Now, gauge: &Gauge) -> View<'a> {
        let usage = gauge.read(engine.meter(), self.side_cpu());
        let turns = &self.turns;
        let (lag_us, longest_turn) = (&turns.lag_us, &turns.longest);
        let turn_cpu_max = turns.cpu_max;
        View { engine, now, lag_us, turns: turns.count, longest_turn, turn_cpu_max, usage }
    }

    /// Returns the CPU time of the side threads so far.
    fn side_cpu(&self) -> SideCpu {
        #[cfg(feature = "control")]
        let control_ns = self.control.as_ref().map_or(0, control::Control::cpu_ns);
        #[cfg(not(feature = "control"))]
        let control_ns = 0;
        SideCpu { jobs_ns: self.side.cpu_ns(), control_ns }
    }

    /// Returns how long the loop may sleep: until the next deadline of the engine, or until
    /// `report`.
    fn wait(&self, engine: &Engine, now: Now, report: Instant) -> Duration {
        #[cfg(feature = "control")]
        if self.control.as_ref().is_some_and(control::Control::has_requests) {
            return Duration::ZERO;
        }
        #[cfg(feature = "cluster")]
        if self.side.queue.as_ref().is_some_and(queue::Queue::has_events) {
            return Duration::ZERO;
        }
        if self.net.forbids_sleep() && !engine.waits_for_job() {
            return Duration::ZERO;
        }
        let deadline = engine.deadline().unwrap_or(Instant::FAR).min(report);
        if deadline <= now.at {
            return Duration::ZERO;
        }
        // Read the clock again, because the turn itself took time.
        deadline.since(self.clock.now().at)
    }

    /// Handles the signals that have arrived. Returns whether the loop should end at once.
    fn handle_signals(&self, engine: &mut Engine, now: Now) -> bool {
        if self.signals.asked_to_rotate() {
            engine.rotate_log(now);
        }
        match self.signals.asked() {
            signal::Asked::Nothing => false,
            signal::Asked::Stop => {
                engine.stop(now, StopReason::Interrupted);
                false
            }
            signal::Asked::StopAtOnce => {
                engine.stop(now, StopReason::Interrupted);
                true
            }
        }
    }

    /// Passes all events of the turn to the engine, with `now` as the time of all of them.
    fn feed(&mut self, engine: &mut Engine, now: Now, events: &Events) {
        self.resolver.drain(|lookup, answer| engine.resolved(now, lookup, answer));
        self.side.feed(engine, now);
        #[cfg(feature = "control")]
        if let Some(control) = &mut self.control {
            let stage = engine.meter_mut().enter(Stage::State, 0);
            control.answer(engine, now);
            engine.meter_mut().back(stage);
        }
        let stage = engine.meter_mut().enter(Stage::Receive, 0);
        self.net.report_ends(engine, now);
        self.net.read_ready(engine, now);
        for event in events {
            if event.token() != WAKER && event.token() != SIGNALS {
                self.net.event(engine, now, event);
            }
        }
        self.charge_tls(engine);
        engine.meter_mut().back(stage);
    }

    /// Moves the time that TLS took from the current stage of the meter to [`Stage::Tls`].
    fn charge_tls(&self, engine: &mut Engine) {
        let (ticks, verbs) = self.client.take_spent();
        if verbs > 0 {
            engine.meter_mut().move_over(ticks, verbs, Stage::Tls);
        }
    }

    /// Carries out the engine's actions.
    fn drain_actions(&mut self, engine: &mut Engine, now: Now) {
        while let Some(action) = engine.next_action() {
            let meter = engine.meter_mut();
            let stage = match &action {
                Action::Resolve { .. } => meter.enter(Stage::Dns, 0),
                Action::Work(_) | Action::Score(_) => meter.enter(Stage::State, 0),
                _ => meter.enter(Stage::Send, 0),
            };
            self.carry_out(engine, now, action);
            self.charge_tls(engine);
            engine.meter_mut().back(stage);
        }
    }

    fn carry_out(&mut self, engine: &mut Engine, now: Now, action: Action) {
        match action {
            Action::Resolve { lookup, name, families } => {
                self.resolver.resolve(lookup, &name, families);
            }
            Action::Connect { conn, address, tls } => {
                let registry = self.poll.registry();
                self.net.connect(registry, &self.client, conn, address, tls.as_deref());
            }
            Action::Send(conn) => self.net.write(engine, now, conn),
            Action::Pause(conn) => self.net.pause(conn),
            Action::Resume(conn) => self.net.resume(conn),
            Action::Close(conn) => self.net.close(conn),
            Action::Work(job) => self.side.start_job(job),
            Action::Score(page) => self.side.score(page),
            #[cfg(feature = "cluster")]
            Action::Queue(request) => self.side.ask(*request),
        }
    }
}

/// Returns the current time, for work without a world.
pub fn now() -> Now {
    Clock::start().now()
}

/// The clocks, which are read nowhere below this file. The engine's time is that since the machine
/// was booted, which runs while the machine is suspended: rests and leases that pass meanwhile have
/// passed.
#[derive(Clone, Copy, Debug)]
struct Clock {
    start_us: u64,
}

impl Clock {
    fn start() -> Self {
        Self { start_us: signal::boot_ns() / 1_000 }
    }

    fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix_us = u64::try_from(unix.as_micros()).unwrap_or(u64::MAX);
        Now { at: self.at(), unix: UnixTime::from_micros(unix_us) }
    }

    fn at(&self) -> Instant {
        Instant::from_micros((signal::boot_ns() / 1_000).saturating_sub(self.start_us))
    }

    /// Returns the current time in the turn that began at `turn`. It reads one clock instead of
    /// two.
    fn after(&self, turn: Now) -> Now {
        let at = self.at().max(turn.at);
        let passed_us = at.as_micros() - turn.at.as_micros();
        Now { at, unix: UnixTime::from_micros(turn.unix.as_micros() + passed_us) }
    }
}
