//! The engine: joins the stations into a crawl. The stations decide; the engine connects them.
//!
//! It consists of parts, each of which owns its own fields: `Turn` (time, budget of work, actions),
//! `Storage` (the disk), `Wire` (connections), `Sites` (what is known of each server), `Visits`
//! (whose turn it is), `Backlog` (the queues), `RobotsFiles`, `Admission` (which URLs are queued),
//! `Archive`, `Pages` (links of fetched pages), `Chains` (redirects), `Shutdown` and `Checkpoints`.
//!
//! # The contract
//!
//! The engine does no network I/O, starts no thread and reads no clock. A *world* drives it: `os`
//! with sockets, `sim` with a virtual clock. One turn of a world consists of four steps:
//!
//! 1. Sleep until [`Engine::deadline`], or until something happens. Read the clock once.
//! 2. Feed any number of inputs with that `now`; received bytes and closed connections carry the
//!    time at which they were read. The inputs are [`Engine::seed`], [`Engine::resolved`],
//!    [`Engine::opened`], [`Engine::securing`], [`Engine::connected`], [`Engine::space`] then
//!    [`Engine::received`], [`Engine::sent`], [`Engine::closed`], [`Engine::worked`],
//!    [`Engine::scored`], [`Engine::command`] and [`Engine::stop`]. Between them [`Engine::why`]
//!    may be asked.
//! 3. Call [`Engine::expired`] once.
//! 4. Call [`Engine::next_action`] until it returns `None`, and carry each action out. An action
//!    may cause inputs (a refused connection, for example). They are fed in the next turn; only
//!    `sent` is reported at once.
//!
//! Laws:
//! - The engine owns the receive buffers: the world writes into [`Space::Room`] and reports how
//!   many bytes it wrote. An idle connection holds no buffer.
//! - When the bytes held take most of their budget, connections are paused.
//! - A turn does a bounded amount of work. If work is left, the deadline is *now*.
//! - A world that could feed more bytes asks [`Engine::is_sated`] first.
//! - A late event of a connection that is gone is counted and dropped.
//! - A server has at most one connection.

pub mod checkpoint;
pub mod contract;
pub mod counts;
pub mod outcome;
pub mod settings;

pub mod admission;
mod again;
mod archive;
pub mod backlog;
mod budgets;
mod chain;
mod challenge;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "alone.rs"]
mod cluster;
pub mod command;
mod complete;
mod disk_jobs;
pub mod ledger;
pub mod node;
mod page;
mod redirect;
mod reload;
mod repeats;
mod resume;
mod revive;
mod robots;
pub mod seeds;
mod shutdown;
mod signing;
mod site;
pub mod status;
mod storage;
mod turn;
mod view;
mod visit;
pub mod why;
mod wire;

use crate::frontier::{ServerId, ServerState};
use crate::ground::disk::Disk;
use crate::ground::frame;
use crate::ground::stats::{Meter, Stage};
use crate::ground::time::{Instant, Now};
use crate::seeds::Seed;
use crate::store::{self, Position};
use crate::url::UrlRef;
pub use resume::Earlier;
pub use storage::FatalError;

use admission::{Admission, Discovery};
use again::Again;
use archive::Archive;
use backlog::Backlog;
use chain::Chains;
use checkpoint::Checkpoints;
use cluster::Cluster;
use contract::{
    Action, Answer, CloseReason, ConnFacts, ConnId, Done, LookupId, NameFailure, Scored, Space,
    StopReason,
};
use counts::Counts;
use ledger::{Ledger, Work};
use page::Pages;
use shutdown::Shutdown;

use robots::RobotsFiles;
use settings::Settings;
use site::Sites;
use std::fmt;
use storage::Storage;
use turn::Turn;
use visit::Visits;
use wire::{Requests, Wire};

/// A crawl: all parts of the engine, driven by a world through the methods below.
pub struct Engine {
    settings: Settings,
    turn: Turn,
    storage: Storage,
    sites: Sites,
    backlog: Backlog,
    visits: Visits,
    robots: RobotsFiles,
    admission: Admission,
    archive: Archive,
    wire: Wire,
    pages: Pages,
    chains: Chains,
    counts: Counts,
    shutdown: Shutdown,
    /// The checkpoints of the crawl; `None` if it keeps no state and so can't be resumed.
    checkpoints: Option<Checkpoints>,
    /// The part of a crawl that several machines share; `None` if this one crawls alone.
    cluster: Option<Box<Cluster>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("now", &self.turn.now())
            .field("connections", &self.wire.conns().slots().len())
            .field("urls", &self.backlog.urls())
            .field("ending", &self.shutdown)
            .finish_non_exhaustive()
    }
}

/// Why a crawl could not begin.
#[derive(Debug)]
pub enum Error {
    /// The scope contradicts itself.
    Scope(crate::url::scope::Error),
    /// A configured request field can't be sent.
    Request(crate::http::request::BadField),
    /// The archive can't be opened or written.
    Store(store::Error),
    /// The state that an earlier run left can't be read.
    State(frame::Error),
    /// The log of the operator's commands can't be read.
    Commands(visit::BadLog),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope(error) => error.fmt(f),
            Self::Request(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::State(error) => error.fmt(f),
            Self::Commands(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl Engine {
    /// Begins a crawl with these seeds, which writes to this disk. It keeps no state, so it can't
    /// be resumed; see [`Engine::open`] for one that does.
    ///
    /// # Errors
    /// A setting is invalid, or the archive can't be written.
    pub fn new(
        settings: Settings,
        seeds: &[Seed],
        disk: Box<dyn Disk>,
        meter: Meter,
        now: Now,
    ) -> Result<Self, Error> {
        let mut engine = Self::empty(Position::default(), settings, seeds, disk, meter, now)?;
        seeds.iter().for_each(|seed| engine.seed(now, seed));
        Ok(engine)
    }

    /// Returns an engine without URLs. Its archive is complete up to the position `durable`. The
    /// seeds only define the scope; they are not queued.
    fn empty(
        durable: Position,
        settings: Settings,
        seeds: &[Seed],
        mut disk: Box<dyn Disk>,
        meter: Meter,
        now: Now,
    ) -> Result<Self, Error> {
        let requests = Requests::new(&settings).map_err(Error::Request)?;
        let archive = Archive::open(durable, &settings, disk.as_mut(), now)?;
        let mut visits = Visits::new(&settings);
        visits.orders_mut().restore(disk.as_mut(), now.at).map_err(Error::Commands)?;
        let seeds = seeds.iter().map(|seed| &seed.url).chain(visits.orders().seeds());
        let mut admission = Admission::new(&settings, seeds, disk.as_mut())?;
        let crawl = settings.state.crawl.unwrap_or_default();
        let cluster = settings.cluster.as_ref().map(|own| {
            let counts_domains = admission.rating().counts_domains();
            let pace = &settings.frontier.scheduler;
            Box::new(Cluster::new(own, pace, crawl, counts_domains))
        });
        admission.set_masks(cluster.as_deref().map(Cluster::masks));
        let mut backlog = Backlog::new(&settings.frontier, settings.state.crawl);
        if let Some(recrawl) = settings.recrawl {
            backlog.set_again(Again::new(recrawl, settings.state.crawl, now.unix.seconds()));
        }
        backlog.begin_budgets(&settings);
        let ledger = Ledger::new(settings.turn_bytes_max, archive::units_max(&settings));
        Ok(Self {
            backlog,
            visits,
            admission,
            wire: Wire::new(&settings, requests),
            pages: Pages::new(&settings),
            turn: Turn::new(now, meter, ledger),
            shutdown: Shutdown::new(&settings, now),
            storage: Storage::new(disk),
            sites: Sites::default(),
            robots: RobotsFiles::new(settings.state.crawl),
            archive,
            chains: Chains::default(),
            counts: Counts::default(),
            checkpoints: None,
            cluster,
            settings,
        })
    }

    // Inputs: what the world reports to the engine.

    /// Queues a URL that the operator gives. A URL that was seen before is ignored.
    pub fn seed(&mut self, now: Now, seed: &Seed) {
        self.turn.set_time(now);
        self.offer_seed(seed.url.view());
        self.queue_seeds();
    }

    /// Offers a seed to the seen test. If it is new, it is queued later.
    fn offer_seed(&mut self, url: UrlRef<'_>) {
        let fingerprint = self.key_of(url);
        if self.cluster.is_some() {
            return self.share_seed(fingerprint, url);
        }
        let mut entry = Vec::new();
        Discovery::SEED.encode(url.as_str(), "", &mut entry);
        self.admission.seen_mut().offer(fingerprint, &entry);
    }

    /// Reports the answer to [`Action::Resolve`].
    pub fn resolved(&mut self, now: Now, lookup: LookupId, answer: Result<Answer, NameFailure>) {
        self.turn.set_time(now);
        self.finish_lookup(lookup, &answer);
    }

    /// Reports that TCP is established on a connection, on which the TLS handshake begins now.
    pub fn opened(&mut self, now: Now, conn: ConnId) {
        if self.is_current(now, conn) {
            self.wire.opened(conn.slot, now.at);
        }
    }

    /// Reports how many bytes the TLS handshake of a connection holds in memory.
    pub fn securing(&mut self, now: Now, conn: ConnId, bytes: usize) {
        if self.is_current(now, conn) {
            self.hold_handshake(conn.slot, bytes);
        }
    }

    /// Reports that a connection is established, including TLS.
    pub fn connected(&mut self, now: Now, conn: ConnId, facts: ConnFacts) {
        if self.is_current(now, conn) {
            self.take_connected(conn.slot, facts);
        }
    }

    /// Returns a buffer of at least 16 KiB for bytes received on a connection, or why there is
    /// none.
    pub fn space(&mut self, now: Now, conn: ConnId) -> Space<'_> {
        self.turn.set_time(now);
        self.receive_space(conn)
    }

    /// Reports how many bytes were written into the buffer of [`Engine::space`]; 0 if none arrived.
    pub fn received(&mut self, now: Now, conn: ConnId, bytes: usize) {
        if self.is_current(now, conn) {
            self.take_received(conn.slot, bytes);
        }
    }

    /// Reports how many bytes of [`Engine::outgoing`] have been sent.
    pub fn sent(&mut self, now: Now, conn: ConnId, bytes: usize) {
        if self.is_current(now, conn) {
            self.wire.sent(conn.slot, bytes);
        }
    }

    /// Reports that a connection has ended, or could not be established.
    pub fn closed(&mut self, now: Now, conn: ConnId, reason: &CloseReason) {
        if self.is_current(now, conn) {
            self.take_closed(conn.slot, reason);
        }
    }

    /// Reports that a job of [`Action::Work`] is done, with its result.
    pub fn worked(&mut self, now: Now, done: Done) {
        self.turn.set_time(now);
        let is_archive = matches!(done, Done::Store(_) | Done::Write(_));
        let stage = self.turn.enter(if is_archive { Stage::Store } else { Stage::State }, 0);
        match done {
            Done::Store(done) => self.store_worked(done),
            Done::Write(done) => self.filing_worked(done),
            // A job that failed because the disk is full is handed out again after the pause.
            Done::Seen(done) => {
                let worked = self.admission.seen_mut().worked(done);
                self.checked(worked);
            }
            Done::Frontier(done) => {
                let worked = self.backlog.worked(done);
                self.checked(worked);
            }
            Done::State(done) => self.state_worked(done),
            Done::Commands(done) => {
                let worked = self.visits.orders_mut().log_mut().worked(done);
                self.checked(worked);
            }
            Done::List(done) => self.list_read(*done),
            #[cfg(feature = "cluster")]
            Done::Snapshot(done) => self.snapshot_worked(*done),
        }
        self.turn.back(stage);
    }

    /// Reports an event of the queue that the nodes of a cluster share.
    #[cfg(feature = "cluster")]
    pub fn queue_event(&mut self, now: Now, event: contract::queue::Event) {
        self.turn.set_time(now);
        self.take_queue_event(event);
    }

    /// Reports the score of a page of [`Action::Score`], or that the program has failed.
    pub fn scored(&mut self, now: Now, answer: Scored) {
        self.turn.set_time(now);
        self.take_score(answer);
    }

    /// Processes what is due at `now`: time-outs, the end of a pause, syncs, checkpoints. The world
    /// calls it once a turn, after all inputs.
    pub fn expired(&mut self, now: Now) {
        self.turn.set_time(now);
        while let Some(slot) = self.wire.expire(self.turn.at()) {
            self.timed_out(slot);
            if self.turn.is_spent(Work::Archived) {
                break;
            }
        }
        self.expire_scores();
        self.expire_cluster();
        self.check_space();
        self.expire_pause();
        self.expire_outage();
        self.expire_shutdown();
        let stage = self.turn.enter(Stage::Store, 0);
        if self.sync_deadline().is_some_and(|due| due <= self.turn.at()) {
            self.sync_store();
        }
        self.turn.enter(Stage::State, 0);
        self.take_queues_in();
        self.turn.back(stage);
        self.expire_checkpoint();
        let frontier = &self.backlog;
        self.sites.free_idle(self.turn.at(), |id| frontier.server(id).state() == ServerState::Idle);
    }

    /// Begins to end the crawl: replies in progress may finish, and no further request is sent.
    pub fn stop(&mut self, now: Now, reason: StopReason) {
        self.turn.set_time(now);
        self.begin_stop(reason);
    }

    /// Starts a new file of the crawl log as soon as possible.
    pub fn rotate_log(&mut self, now: Now) {
        self.turn.set_time(now);
        self.archive.store_mut().rotate_log();
        self.sync_store();
    }

    // Outputs: what the engine asks of the world.

    /// Returns the next action for the world; `None` ends the turn.
    pub fn next_action(&mut self) -> Option<Action> {
        if !self.turn.has_actions() {
            self.pump();
        }
        let action = self.turn.next_action();
        if action.is_none() {
            self.work_census();
            self.turn.end();
        }
        action
    }

    /// Returns whether the world should stop reading from sockets in this turn: either the turn has
    /// used its budget, or enough replies wait to be processed. The unread bytes stay in the kernel
    /// until the next turn.
    pub fn is_sated(&self) -> bool {
        self.turn.is_spent(Work::Received)
            || self.turn.is_spent(Work::Rules)
            || self.pages.bytes() > self.settings.turn_bytes_max
            || self.is_draining()
            || self.is_ahead_of_archive()
            || self.is_ahead_of_lists()
            || self.admission.seen().is_overloaded()
    }

    /// Returns whether the world should not read from sockets before a job has ended, so that it
    /// may sleep although some can be read.
    pub fn waits_for_job(&self) -> bool {
        let is_ahead = self.is_ahead_of_archive() || self.is_ahead_of_lists();
        (self.is_draining() || is_ahead) && !self.has_replies()
    }

    /// Returns whether reading from sockets must pause, because a sitemap is being read and enough
    /// replies wait to be read as such.
    fn is_ahead_of_lists(&self) -> bool {
        let lists = self.pages.lists();
        lists.is_at_work() && lists.bytes() > self.settings.turn_bytes_max
    }

    /// Returns whether reading from sockets must pause, because a job of the archive is in progress
    /// and enough replies wait for the next one.
    fn is_ahead_of_archive(&self) -> bool {
        self.archive.filing().has_enough() && self.archive.store().is_writing()
    }

    /// Returns whether this turn has budget left for a TLS handshake.
    pub fn may_secure(&self) -> bool {
        !self.turn.is_spent(Work::Secured)
    }

    /// Returns whether the engine has forgotten a connection, so that events of it are dropped.
    pub fn is_gone(&self, conn: ConnId) -> bool {
        !self.wire.conns().knows(conn)
    }

    /// Returns the bytes to send on a connection: those of its requests that are not sent yet.
    pub fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.wire.outgoing(conn)
    }

    /// Returns when the world must call the engine again even if nothing happens, or `None` if the
    /// engine only waits for events.
    pub fn deadline(&self) -> Option<Instant> {
        let has_fresh = self.admission.seen().has_fresh() || self.backlog.has_read();
        let has_old =
            self.has_revival_work() || self.may_report_given_up() || self.has_order_work();
        let rereads = self.archive.replays().is_active() && self.may_reread();
        let has_urls = has_fresh || has_old || rereads || self.visits.has_deferred();
        let has_urls = has_urls || self.backlog.is_repricing() || self.has_budget_work();
        let has_urls = has_urls || self.archive.filing().has_archived();
        let decides = self.can_place_hops() && !self.admission.seen().is_working();
        let has_names = self.visits.can_ask() || self.pages.lists().can_begin();
        if self.turn.has_actions() || self.has_replies() || has_urls || decides || has_names {
            return Some(self.turn.at());
        }
        let candidates = [
            self.wire.deadline(self.turn.at()),
            self.visit_deadline(),
            self.sync_deadline(),
            self.shutdown.deadline(),
            self.storage.deadline(),
            self.visits.deadline().filter(|_| !self.is_stopping()),
            self.checkpoint_deadline(),
            self.visits.census().deadline(),
            self.again_deadline(),
            self.pages.scoring().deadline(),
            self.cluster.as_ref().and_then(|own| own.deadline()),
        ];
        candidates.into_iter().flatten().min().map(|at| at.max(self.turn.at()))
    }

    /// Does the work that the inputs of this turn have left: robots.txt files, pages, chains, jobs,
    /// new visits, DNS look-ups, and the end of the crawl.
    fn pump(&mut self) {
        self.work_robots();
        self.work_lists();
        self.work_pages();
        // It draws on the budget of pages, which is to be whole for the first of them.
        self.work_filing();
        self.work_cluster();
        self.work_chains();
        let stage = self.turn.enter(Stage::State, 0);
        self.work_disk_jobs();
        self.work_given_up();
        self.work_revival();
        self.work_orders();
        self.work_checkpoint();
        self.turn.back(stage);
        self.resume_paused();
        self.work_replays();
        self.work_again();
        self.work_budgets();
        self.check_limits();
        self.work_prices();
        self.begin_visits();
        let stage = self.turn.enter(Stage::State, 0);
        self.work_queues();
        self.turn.back(stage);
        self.ask_names();
        self.end_if_done();
    }

    /// Returns the server of a URL. If the server is new, it is added, with an entry in the side
    /// tables of `Sites`.
    fn server_of(&mut self, url: UrlRef<'_>) -> ServerId {
        let known = self.backlog.servers();
        let id = self.backlog.server_of(url);
        if self.backlog.servers() > known {
            self.admission.add_server(url.host());
            if self.turn.at() < self.backlog.quiet_until() {
                self.presume_crawl_delay(id);
            }
        }
        self.sites.extend_to(id);
        id
    }

    /// Begins to handle an event of a connection that happened at `now`. Returns whether the
    /// connection still exists; if not, the event is counted and to be dropped.
    fn is_current(&mut self, now: Now, conn: ConnId) -> bool {
        self.turn.set_time(now);
        let known = self.wire.conns().knows(conn);
        self.counts.late_events += u64::from(!known);
        known
    }
}
