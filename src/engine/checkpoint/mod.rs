//! Checkpoints: everything that the crawl knows at one instant, saved while it continues.
//!
//! This part owns the schedule and the progress of checkpoints; the stations encode their own
//! state. A checkpoint goes through four stages:
//!
//! 1. *Wanted*: a period has passed, or the crawl ends. Nothing happens until no page is half
//!    processed and no batch of the seen test is being merged.
//! 2. *Begun*: this is the instant. Every station gives its state; URLs in flight are saved as
//!    waiting. From now on, a server that is about to change is written first.
//! 3. *Written*: the servers are written to `state/snapshot-N`, some in each turn.
//! 4. *Published*: a job syncs all files of the state and replaces `state/checkpoint`. Then files
//!    that no checkpoint names are removed. Rules of robots.txt on disk are named as of this
//!    moment.
//!
//! ```text
//! state/snapshot-N   role Snapshot; frames in this order:
//!   1  counters of the crawl, JSON
//!   2  the seen test's own state       3  the frontier's own state
//!   7  a revival in progress           see engine::backlog::given_up
//!   6  what was learnt of qualities    see rating::inlinks, rating::opic
//!   9  a redirect that joined the scope   see engine::admission
//!   4  a capture not yet read back     key u64, hash of its URL u64, its place in the archive,
//!      and the number of its server plus one, 0 if that is not known
//!   8  a link to a target that a redirect chain requests   key u64, see engine::admission
//!   16 to 31  servers and their queues, see frontier
//!   5  a server's side table           see engine::site
//! ```
//!
//! Laws: a published checkpoint names only what is durable; a failed one changes nothing.
//! Cost: at most `SLICE_BYTES` written in a turn; one pass over the state in memory each period.

mod job;
pub(super) mod manifest;

pub use job::{StateDone, StateJob};

use super::Engine;
use super::backlog::{GIVEN_UP_FOLDER, Item, Purpose};
use super::contract::{Action, Job};
use super::robots::FOLDER as ROBOTS_FOLDER;
use crate::frontier::ServerId;
use crate::ground::codec::Put;
use crate::ground::disk::{self, Disk};
use crate::ground::frame::{self, FORMAT, Role};
use crate::ground::tail::Tail;
use crate::ground::time::Instant;
use crate::url::Fingerprint;
use job::Task;
use manifest::{Manifest, digits_of};
use std::time::Duration;

/// The kinds of frames in a snapshot. The frontier uses those from 16 on.
pub(super) const COUNTS: u8 = 1;
pub(super) const SEEN: u8 = 2;
pub(super) const FRONTIER: u8 = 3;
pub(super) const KEPT: u8 = 4;
pub(super) const SITE: u8 = 5;
pub(super) const RATING: u8 = 6;
pub(super) const GIVEN_UP: u8 = 7;
pub(super) const HELD: u8 = 8;
pub(super) const JOINED: u8 = 9;

/// The number of bytes of a snapshot that are encoded in a turn.
const SLICE_BYTES: usize = 256 << 10;
/// The number of bytes that are written to disk at once.
const PIECE_BYTES: usize = 1 << 20;

/// The schedule and progress of the checkpoints of a crawl that keeps its state.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    crawl: u64,
    key: [u8; 16],
    period: Duration,
    /// When the next checkpoint is wanted.
    next: Instant,
    stage: Stage,
    /// The number of the last checkpoint that was begun.
    number: u64,
    /// The snapshot file of the published checkpoint.
    snapshot: Option<String>,
    /// Files of failed checkpoints, to be removed.
    stale: Vec<String>,
    /// WARC files with lower serial numbers may be closed when the checkpoint in progress is
    /// published: nothing in them is to be read back.
    releases: u32,
    /// At the checkpoint before: the number of replies read back, and of requests sent.
    before: (u64, u64),
    /// The number of checkpoints since a reply was read back. Those between which no request was
    /// sent are left out.
    idle: u32,
}

/// A crawl that resumes reads from the archive the replies that are newer than its checkpoint, each
/// when its URL is about to be requested. WARC files with such replies stay open for at most this
/// many checkpoints in a row in which no reply was read: the URLs of the others are no longer
/// queued. Checkpoints since which no request was sent don't count.
const IDLE_MAX: u32 = 10;

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Idle,
    Wanted,
    Writing(Box<Writing>),
    /// The job that publishes it is in progress.
    Publishing,
}

/// A checkpoint that is being written.
#[derive(Debug)]
struct Writing {
    manifest: Manifest,
    tail: Tail,
    /// The number of servers when it began, and the next one whose side table is written.
    sites: usize,
    next_site: usize,
    servers_done: bool,
    ended: bool,
    /// How many captures and log lines must be durable before it is published.
    captures: u64,
    log_lines: u64,
}

impl Checkpoints {
    pub(super) fn new(crawl: u64, key: [u8; 16], period: Duration, now: Instant) -> Self {
        Self { crawl, key, period, next: now + period, ..Self::default() }
    }

    /// Continues from the checkpoint that was found.
    pub(super) fn resume_from(&mut self, found: &Manifest) {
        self.number = found.number;
        self.snapshot.clone_from(&found.snapshot);
    }

    /// When it has something to do.
    fn deadline(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Idle => Some(self.next),
            // The rest is encoded in the next turn. Then the archive's job wakes the loop when it
            // is durable.
            Stage::Writing(writing) if !writing.ended => Some(Instant::ZERO),
            Stage::Wanted | Stage::Writing(_) | Stage::Publishing => None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    pub(super) fn is_wanted(&self) -> bool {
        matches!(self.stage, Stage::Wanted)
    }
}

impl Engine {
    /// When a checkpoint has something to do; `None` while the disk is full, or while the crawl
    /// ends, which starts the last checkpoint by itself.
    pub(super) fn checkpoint_deadline(&self) -> Option<Instant> {
        let own = self.checkpoints.as_ref()?;
        let idle = self.is_stopping() && own.is_idle();
        own.deadline().filter(|_| !self.storage.is_paused() && !idle)
    }

    /// Starts a checkpoint if the period is over.
    pub(super) fn expire_checkpoint(&mut self) {
        let now = self.turn.at();
        let due = self.checkpoints.as_ref().filter(|own| own.is_idle() && own.next <= now);
        if due.is_some() && !self.is_stopping() && !self.storage.is_paused() {
            self.want_checkpoint();
        }
    }

    /// Starts a checkpoint as soon as it is possible.
    pub(super) fn want_checkpoint(&mut self) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.stage = Stage::Wanted;
            self.admission.seen_mut().hold(true);
        }
    }

    /// Whether reading must pause so that the pages in memory are processed: a checkpoint waits for
    /// that.
    pub(super) fn is_draining(&self) -> bool {
        self.checkpoints.as_ref().is_some_and(Checkpoints::is_wanted)
            && self.admission.seen().is_quiet()
            && self.has_replies()
    }

    /// Whether replies wait for their lines in the crawl log.
    pub(super) fn has_replies(&self) -> bool {
        !self.pages.is_empty() || !self.robots.is_idle()
    }

    /// Takes the next step of a checkpoint, if one is in progress.
    pub(super) fn work_checkpoint(&mut self) {
        if self.storage.is_paused() {
            return;
        }
        match self.checkpoints.as_ref().map(|own| &own.stage) {
            Some(Stage::Wanted) if !self.has_replies() && self.admission.seen().is_quiet() => {
                self.begin_checkpoint();
            }
            Some(Stage::Writing(_)) => self.write_checkpoint(),
            _ => {}
        }
    }

    /// Begins a checkpoint, which saves the state of this instant.
    fn begin_checkpoint(&mut self) {
        // This comes first because it can fail. After it, the stations only report their state.
        let disk = self.storage.disk();
        let flushed =
            self.admission.seen_mut().write(disk).and_then(|()| self.backlog.write(true, disk));
        let flushed = flushed.and_then(|()| self.backlog.given_up_mut().write(true, disk));
        if let Err(error) = flushed {
            return self.on_disk_error(error);
        }
        let (flights, held) = (self.flights(), self.chains_held());
        let disk = self.storage.disk();
        self.backlog.begin_snapshot(flights, self.turn.now());
        let marks = self.admission.seen_mut().mark(disk).and_then(|seen| {
            Ok((seen, self.backlog.mark(disk)?, self.backlog.given_up_mut().mark(disk)?))
        });
        let (seen, frontier, given_up) = match marks {
            Ok(marks) => marks,
            Err(error) => return self.storage.fail(error),
        };
        let archive = self.archive.store().position();
        let totals = self.archive.store().totals();
        self.note_releases(archive.serial);
        let checkpoints = self.checkpoints.as_mut().expect("one is wanted");
        checkpoints.number += 1;
        let name = format!("state/snapshot-{}", checkpoints.number);
        let manifest = Manifest {
            format: FORMAT,
            number: checkpoints.number,
            written: self.turn.unix().civil().to_seconds(),
            clean: self.shutdown.is_closing(),
            finished: self.shutdown.is_exhausted(),
            rebuilt: false,
            key: digits_of(checkpoints.key),
            archive_serial: archive.serial,
            archive_offset: archive.offset,
            snapshot: Some(name.clone()),
            scope: self.admission.rescope().mark(),
            files: [seen.files, frontier.files, given_up.files].concat(),
        };
        let mut tail = Tail::new(name, 0);
        let out = &mut tail.pending;
        frame::push_opening(Role::Snapshot, checkpoints.crawl, out);
        let counts = serde_json::to_vec(&self.counts).expect("plain values");
        frame::push(COUNTS, &counts, out);
        frame::push(SEEN, &seen.state, out);
        frame::push(FRONTIER, &frontier.state, out);
        if !given_up.state.is_empty() {
            frame::push(GIVEN_UP, &given_up.state, out);
        }
        self.admission.rating().encode(&mut |piece| frame::push(RATING, piece, out));
        self.admission.seed_redirects().encode(&mut |piece| frame::push(JOINED, piece, out));
        self.archive.replays().encode(out);
        push_held(&held, out);
        checkpoints.stage = Stage::Writing(Box::new(Writing {
            manifest,
            tail,
            sites: self.sites.len(),
            next_site: 0,
            servers_done: false,
            ended: false,
            captures: totals.captures,
            log_lines: totals.log_lines,
        }));
        self.admission.seen_mut().hold(false);
    }

    /// Determines which WARC files may be closed when the checkpoint that begins now is published.
    fn note_releases(&mut self, serial: u32) {
        let (replayed, requests) = (self.counts.replayed, self.counts.requests);
        let own = self.checkpoints.as_mut().expect("one is wanted");
        let before = std::mem::replace(&mut own.before, (replayed, requests));
        own.idle = match (before.0 != replayed, before.1 != requests) {
            (true, _) => 0,
            (false, asked) => own.idle + u32::from(asked),
        };
        if !self.holds_files() {
            self.checkpoints.as_mut().expect("one is wanted").releases = serial;
        }
    }

    /// Whether WARC files must stay open, because replies in them are still to be read back.
    pub(super) fn holds_files(&self) -> bool {
        let idles = self.checkpoints.as_ref().is_none_or(|own| own.idle > IDLE_MAX);
        let waits = !self.archive.replays().is_empty() && !idles && !self.shutdown.is_exhausted();
        waits || self.archive.replays().is_active()
    }

    /// The URLs in flight, which are saved as waiting. Chains are saved with their first URLs
    /// instead of their hops. A server's own robots.txt is left out, since it is requested again
    /// anyway.
    fn flights(&self) -> Vec<(ServerId, Item)> {
        let mut flights: Vec<_> = self.chains_waiting().collect();
        for slot in self.wire.conns().slots() {
            let conn = self.wire.conn(slot);
            if !conn.is_active() {
                continue;
            }
            let is_left_out = |item: &Item| match item.purpose {
                Purpose::Page => false,
                Purpose::Robots(of, redirects) => (of, redirects) == (conn.server, 0),
                Purpose::Hop(_) => true,
            };
            let items = conn.unsettled().map(|fetch| &fetch.item);
            let items = items.filter(|item| !is_left_out(item));
            flights.extend(items.map(|item| (conn.server, item.clone())));
        }
        // A chain begins again from its first URL.
        let claimed = self.archive.replays().claimed();
        let claimed = claimed.filter(|it| !matches!(it.item.purpose, Purpose::Hop(_)));
        flights.extend(claimed.map(|it| (it.server, it.item.clone())));
        flights
    }

    /// Writes some more of the snapshot. When it is complete and the archive is durable, publishes
    /// it.
    fn write_checkpoint(&mut self) {
        let Some(own) = &mut self.checkpoints else { return };
        let stage = std::mem::replace(&mut own.stage, Stage::Idle);
        let Stage::Writing(mut writing) = stage else { unreachable!("only then it is called") };
        self.write_some(&mut writing);
        let is_due = writing.tail.pending.len() >= PIECE_BYTES || writing.ended;
        if is_due && let Err(error) = writing.tail.flush(self.storage.disk(), 2 * PIECE_BYTES) {
            self.set_stage(Stage::Writing(writing));
            return self.on_disk_error(error);
        }
        if !writing.ended || !self.is_archive_durable(&writing) {
            return self.set_stage(Stage::Writing(writing));
        }
        // The side tables name rules that were evicted to disk since the instant.
        match self.robots.cache().mark(self.turn.at(), self.storage.disk()) {
            Ok(files) => {
                writing.manifest.files.extend(files);
                self.publish(*writing);
            }
            Err(error) => {
                self.set_stage(Stage::Writing(writing));
                self.on_disk_error(error);
            }
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        self.checkpoints.as_mut().expect("it is in progress").stage = stage;
    }

    fn write_some(&mut self, writing: &mut Writing) {
        let out = &mut writing.tail.pending;
        let most = out.len() + SLICE_BYTES;
        if !writing.servers_done {
            writing.servers_done = self.backlog.snapshot_some(SLICE_BYTES, out);
            return;
        }
        while writing.next_site < writing.sites && out.len() < most {
            let site = self.sites.get(ServerId::from_index(writing.next_site));
            if site.needs_saving() {
                frame::push_with(SITE, out, |out| {
                    site.encode(writing.next_site, self.turn.now(), out)
                });
            }
            writing.next_site += 1;
        }
        writing.ended = writing.next_site == writing.sites;
    }

    /// Whether every outcome from before the instant is durable in the archive and the log, which
    /// the checkpoint relies on. Starts a sync if not.
    fn is_archive_durable(&mut self, writing: &Writing) -> bool {
        let totals = self.archive.store().totals();
        let is_durable =
            totals.committed >= writing.captures && totals.log_synced >= writing.log_lines;
        if !is_durable && !self.archive.is_syncing() {
            self.sync_store();
        }
        is_durable
    }

    fn publish(&mut self, writing: Writing) {
        let Writing { mut manifest, tail, .. } = writing;
        manifest.files.push((tail.name().to_owned(), tail.len()));
        let files = manifest.files.iter().map(|(name, _)| name.clone()).collect();
        let task = Task::Publish(files, Box::new(manifest));
        self.set_stage(Stage::Publishing);
        let job = StateJob { disk: self.storage.disk_ref().handle(), task };
        self.turn.act(Action::Work(Job::State(job)));
    }

    /// Takes the result of a job of the checkpoints.
    pub(super) fn state_worked(&mut self, done: StateDone) {
        if !done.published {
            if let Err(error) = done.result {
                // The next start of the crawl removes what is left.
                log::warn!("{error}");
            }
            return;
        }
        let Some(own) = &mut self.checkpoints else { return };
        own.stage = Stage::Idle;
        own.next = self.turn.at() + own.period;
        let name = format!("state/snapshot-{}", own.number);
        if let Err(error) = done.result {
            own.stale.push(name);
            own.next = self.turn.at();
            return self.on_disk_error(error);
        }
        let mut names = std::mem::take(&mut own.stale);
        names.extend(own.snapshot.replace(name));
        names.extend(self.admission.seen_mut().on_durable());
        names.extend(self.backlog.on_durable());
        names.extend(self.robots.cache().on_durable());
        names.extend(self.backlog.given_up_mut().on_durable());
        log::debug!("checkpoint {} is on disk", own.number);
        self.archive.store_mut().release(own.releases);
        self.counts.checkpoints += 1;
        if !names.is_empty() {
            let job =
                StateJob { disk: self.storage.disk_ref().handle(), task: Task::Remove(names) };
            self.turn.act(Action::Work(Job::State(job)));
        }
    }
}

/// Appends the links that redirect chains hold, a frame each.
fn push_held(held: &[(Fingerprint, Vec<u8>)], out: &mut Vec<u8>) {
    for (key, entry) in held {
        frame::push_with(HELD, out, |out| {
            out.put_u64(key.0);
            out.extend_from_slice(entry);
        });
    }
}

/// Removes the files under `state/` that an earlier run left and the checkpoint doesn't name.
pub(super) fn remove_strays(found: &Manifest, disk: &mut dyn Disk) -> Result<(), disk::Error> {
    let folders = ["state", "state/seen", "state/frontier", ROBOTS_FOLDER, GIVEN_UP_FOLDER];
    for folder in folders {
        for name in disk.list(folder)? {
            let path = format!("{folder}/{name}");
            if path != manifest::NAME && found.bytes_of(&path).is_none() {
                disk.remove(&path)?;
            }
        }
    }
    Ok(())
}
