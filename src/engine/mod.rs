//! The road: joins the stations into a crawl. Wiring only; what is decided, the stations decide.
//!
//! # The contract
//!
//! The engine does no network I/O, starts no thread and reads no clock. A *world* drives it:
//! `os` with sockets, `sim` with a virtual clock. One turn of a world is
//!
//! 1. sleep until [`Engine::deadline`], or until something happens; take the time once;
//! 2. feed any number of inputs with that `now`, bytes and ends with the time at which they were
//!    read: [`Engine::seed`], [`Engine::resolved`], [`Engine::opened`], [`Engine::securing`],
//!    [`Engine::connected`], [`Engine::space`] then [`Engine::received`], [`Engine::sent`],
//!    [`Engine::closed`], [`Engine::worked`], [`Engine::stop`];
//! 3. call [`Engine::expired`], once;
//! 4. drain [`Engine::next_action`] to `None`, carrying each action out. Carrying one out may
//!    produce inputs (a refused connection, say): they are fed in the next turn. Only `sent` is
//!    told at once.
//!
//! Laws: receive buffers are the engine's (the world writes into [`Space::Room`] and says how
//! much); an idle connection holds none; past the budget of held bytes connections are paused; a
//! turn does a bounded amount of work, and unfinished work makes the deadline *now*; a world that
//! could still feed bytes looks at [`Engine::is_sated`] first; a late event of a connection that is
//! gone is counted and dropped; a server has at most one connection.

pub mod checkpoint;
pub mod contract;
pub mod counts;
pub mod outcome;
pub mod settings;

pub mod admission;
mod archive;
pub mod backlog;
mod chain;
mod complete;
mod disk_jobs;
pub mod ledger;
mod page;
mod redirect;
mod resume;
mod revive;
mod robots;
pub mod seeds;
mod shutdown;
mod site;
mod storage;
mod turn;
mod view;
mod visit;
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
use archive::Archive;
use backlog::Backlog;
use chain::Chains;
use checkpoint::Checkpoints;
use contract::{
    Action, Answer, CloseReason, ConnFacts, ConnId, Done, LookupId, NameFailure, Space, StopReason,
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
use wire::Wire;

/// A crawl, driven by a world.
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
    /// Chains of redirects under way.
    chains: Chains,
    counts: Counts,
    shutdown: Shutdown,
    /// None if nothing is kept to go on with.
    checkpoints: Option<Checkpoints>,
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
    /// The scope makes no sense.
    Scope(crate::url::scope::Error),
    /// A request field may not be sent.
    Request(crate::http::request::BadField),
    /// The archive can't be written.
    Store(store::Error),
    /// What an earlier run left can't be read.
    State(frame::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope(error) => error.fmt(f),
            Self::Request(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::State(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl Engine {
    /// A crawl that begins now, with these seeds, writing to this disk. It can't be gone on with:
    /// see [`Engine::open`].
    ///
    /// # Errors
    /// A setting that makes no sense, or an archive that can't be written.
    pub fn new(
        settings: Settings,
        seeds: &[Seed],
        disk: Box<dyn Disk>,
        meter: Meter,
        now: Now,
    ) -> Result<Self, Error> {
        let mut engine = Self::bare(Position::default(), settings, seeds, disk, meter, now)?;
        seeds.iter().for_each(|seed| engine.seed(now, seed));
        Ok(engine)
    }

    /// A crawl that knows nothing yet, but that its archive is whole before `durable`; the seeds
    /// are for its scope.
    fn bare(
        durable: Position,
        settings: Settings,
        seeds: &[Seed],
        mut disk: Box<dyn Disk>,
        meter: Meter,
        now: Now,
    ) -> Result<Self, Error> {
        let request = settings.request().map_err(Error::Request)?;
        let archive = Archive::open(durable, &settings, disk.as_mut(), now)?;
        let admission = Admission::new(&settings, seeds, disk.as_mut())?;
        let ledger = Ledger::new(settings.turn_bytes_max, archive::units_max(&settings));
        Ok(Self {
            backlog: Backlog::new(&settings.frontier, settings.state.crawl),
            visits: Visits::new(&settings),
            admission,
            wire: Wire::new(&settings, request),
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
            settings,
        })
    }

    // Inputs.

    /// A URL that the operator gives. Known ones are passed over.
    pub fn seed(&mut self, now: Now, seed: &Seed) {
        self.turn.set_time(now);
        let url = seed.url.view();
        let fingerprint = self.admission.key_of(url, &mut Vec::new());
        let mut entry = Vec::new();
        Discovery { letter: seeds::SEED, hops: 0, depth: 0 }.encode(url.as_str(), "", &mut entry);
        self.admission.seen_mut().offer(fingerprint, &entry);
        self.queue_seeds();
    }

    /// The answer to [`Action::Resolve`].
    pub fn resolved(&mut self, now: Now, lookup: LookupId, answer: Result<Answer, NameFailure>) {
        self.turn.set_time(now);
        self.take_answer_of(lookup, &answer);
    }

    /// TCP stands on a connection that is to speak TLS.
    pub fn opened(&mut self, now: Now, conn: ConnId) {
        self.turn.set_time(now);
        if !self.is_current(conn) {
            return;
        }
        self.wire.opened(conn.slot, now.at);
    }

    /// The TLS handshake of a connection is under way, and holds so many bytes.
    pub fn securing(&mut self, now: Now, conn: ConnId, bytes: usize) {
        self.turn.set_time(now);
        if self.is_current(conn) {
            self.hold_handshake(conn.slot, bytes);
        }
    }

    /// The connection stands, TLS included.
    pub fn connected(&mut self, now: Now, conn: ConnId, facts: ConnFacts) {
        self.turn.set_time(now);
        if !self.is_current(conn) {
            return;
        }
        self.take_connected(conn.slot, facts);
    }

    /// Room for the bytes of a connection: at least 16 KiB, or why there is none.
    pub fn space(&mut self, now: Now, conn: ConnId) -> Space<'_> {
        self.turn.set_time(now);
        self.room_for(conn)
    }

    /// So many bytes are in the room that [`Engine::space`] gave; none, if nothing came after all.
    pub fn received(&mut self, now: Now, conn: ConnId, bytes: usize) {
        self.turn.set_time(now);
        if self.is_current(conn) {
            self.take_received(conn.slot, bytes);
        }
    }

    /// So many bytes of [`Engine::outgoing`] have been sent.
    pub fn sent(&mut self, now: Now, conn: ConnId, bytes: usize) {
        self.turn.set_time(now);
        if self.is_current(conn) {
            self.wire.sent(conn.slot, bytes);
        }
    }

    /// The connection has ended, or never stood.
    pub fn closed(&mut self, now: Now, conn: ConnId, reason: &CloseReason) {
        self.turn.set_time(now);
        if self.is_current(conn) {
            self.take_closed(conn.slot, reason);
        }
    }

    /// A job is done.
    pub fn worked(&mut self, now: Now, done: Done) {
        self.turn.set_time(now);
        let is_archive = matches!(done, Done::Store(_));
        let stage = self.turn.enter(if is_archive { Stage::Store } else { Stage::State }, 0);
        match done {
            Done::Store(done) => self.store_worked(done),
            Done::Seen(done) => self.seen_worked(done),
            Done::Frontier(done) => self.queues_worked(done),
            Done::State(done) => self.state_worked(done),
        }
        self.turn.back(stage);
    }

    /// All events of this turn are in. To be called once a turn, after them.
    pub fn expired(&mut self, now: Now) {
        self.turn.set_time(now);
        while let Some(slot) = self.wire.expire(self.turn.at()) {
            self.timed_out(slot);
            if self.turn.is_spent(Work::Archived) {
                break;
            }
        }
        self.expire_pause();
        self.expire_outage();
        self.expire_shutdown();
        let stage = self.turn.enter(Stage::Store, 0);
        self.sync_store();
        self.turn.enter(Stage::State, 0);
        self.take_queues_in();
        self.turn.back(stage);
        self.expire_checkpoint();
        let frontier = &self.backlog;
        self.sites.tidy(self.turn.at(), |id| frontier.server(id).state() == ServerState::Idle);
    }

    /// Ends the crawl: open replies may finish, nothing new is asked for.
    pub fn stop(&mut self, now: Now, reason: StopReason) {
        self.turn.set_time(now);
        self.begin_stop(reason);
    }

    /// The crawl log begins a new file, as soon as that can be.
    pub fn rotate_log(&mut self, now: Now) {
        self.turn.set_time(now);
        self.archive.store_mut().rotate_log();
        self.sync_store_now();
    }

    // Outputs.

    /// The next thing the world is asked to do; `None` ends the turn.
    pub fn next_action(&mut self) -> Option<Action> {
        if !self.turn.has_actions() {
            self.pump();
        }
        let action = self.turn.next_action();
        if action.is_none() {
            self.turn.end();
        }
        action
    }

    /// Whether this turn has had its share of bytes, or the pages that wait are a turn's work
    /// already: what is still unread is better left for the next.
    pub fn is_sated(&self) -> bool {
        self.turn.is_spent(Work::Received)
            || self.turn.is_spent(Work::Rules)
            || self.pages.bytes() > self.settings.turn_bytes_max
            || self.is_clearing()
            || self.admission.seen().is_overloaded()
    }

    /// Whether this turn has work left for a TLS handshake.
    pub fn may_secure(&self) -> bool {
        !self.turn.is_spent(Work::Secured)
    }

    /// Whether the engine has done with a connection.
    pub fn is_gone(&self, conn: ConnId) -> bool {
        !self.wire.conns().knows(conn)
    }

    /// Requests of a connection that are not yet sent.
    pub fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.wire.outgoing(conn)
    }

    /// When the engine wants to be called again, whatever happens; `None` if only events can
    /// bring it on.
    pub fn deadline(&self) -> Option<Instant> {
        let has_fresh = self.admission.seen().has_fresh() || self.backlog.has_read();
        let has_old = self.has_revival_work() || self.may_report_given_up();
        let rereads = self.archive.replays().is_active() && self.may_reread();
        let has_urls = has_fresh || has_old || rereads || self.visits.has_deferred();
        let decides = self.may_decide() && !self.admission.seen().is_working();
        if self.turn.has_actions() || self.has_replies() || has_urls || decides {
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
        ];
        candidates.into_iter().flatten().min().map(|at| at.max(self.turn.at()))
    }

    /// Deferred work of the turn: robots.txt files, pages, look-ups, new visits, the end.
    fn pump(&mut self) {
        self.work_robots();
        self.work_pages();
        self.work_chains();
        let stage = self.turn.enter(Stage::State, 0);
        self.work_disk_jobs();
        self.work_given_up();
        self.work_revival();
        self.work_checkpoint();
        self.turn.back(stage);
        self.resume();
        self.work_replays();
        self.check_limits();
        self.begin_visits();
        let stage = self.turn.enter(Stage::State, 0);
        self.work_queues();
        self.turn.back(stage);
        self.ask_names();
        self.end_if_done();
    }

    /// The server of a URL, with its side table.
    fn server_of(&mut self, url: UrlRef<'_>) -> ServerId {
        let known = self.backlog.servers();
        let id = self.backlog.server_of(url);
        if self.backlog.servers() > known {
            self.admission.add_server(url.host());
            if self.turn.at() < self.backlog.quiet_until() {
                self.presume_crawl_delay(id);
            }
        }
        self.sites.reach(id);
        id
    }

    fn is_current(&mut self, conn: ConnId) -> bool {
        let known = self.wire.conns().knows(conn);
        self.counts.late_events += u64::from(!known);
        known
    }
}
